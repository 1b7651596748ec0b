"""audit: what it prints, writes and decides, and one line for every file that cannot be audited."""

from __future__ import annotations

import hashlib
import json
import re
import resource
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import left_behind, refusal

from metrifair import AuditOptions, ReadOptions, audit, audit_file
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.flat_options import flat
from tests.seams.api import read_audit
from tests.seams.cli import Limit, broken_figures, metrics_argument

N = 160
ASKED = ("--score", "p", "--group", "sex", "--label", "y")
HOSTILE = ["=cmd|' /C calc'!A1", "<script>alert(1)</script>"]


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    sex = rng.integers(2, size=N)
    p = np.clip(rng.normal(0.45 + 0.15 * sex, 0.2, N), 0, 1).round(3)
    return pl.DataFrame(
        {
            "p": p,
            "sex": np.where(sex == 1, "men", "women"),
            "race": np.array(HOSTILE)[rng.integers(2, size=N)],
            "region": np.array(["north", "south"])[rng.integers(2, size=N)],
            "w": rng.integers(1, 4, N),
            "y": (rng.random(N) < p).astype(int),
            "person": np.arange(N) // 2,
        }
    )


@pytest.fixture
def scores(table: pl.DataFrame, tmp_path: Path) -> Path:
    table.write_csv(tmp_path / "scores.csv")
    return tmp_path / "scores.csv"


# --- what it finds
# ----------------------------------------------------------------------------------------------


def test_sentences_and_tables_say_what_was_found(scores: Path, call: Any) -> None:
    done = call("audit", scores, *ASKED, "--seed", 1)
    assert done.exit_code == 0, done.output
    found = audit_file(scores, score="p", group="sex", label="y", random_state=1)
    for sentence in found.summary.splitlines():
        assert sentence in done.stdout
    for words in (
        "(Statistical",
        "y=1 (Equal",
        "y=0 (Predictive",
        "men vs women",
        "Kolmogorov",
        "Energy",
    ):
        assert words in done.stdout
    assert done.stderr == ""


def test_constant_scores_are_named_on_the_terminal_in_json_and_on_the_page(
    table: pl.DataFrame, tmp_path: Path, call: Any
) -> None:
    table.with_columns(p=pl.lit(0.7)).write_csv(tmp_path / "scores.csv")
    done = call(
        "audit",
        tmp_path / "scores.csv",
        *ASKED,
        "--html",
        tmp_path / "r.html",
        "--json",
        tmp_path / "a.json",
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Every score is 0.7: the results are the same for everyone.")
    assert "Note: Every score is 0.7, so no gap can appear." in done.stdout
    kinds = [note["kind"] for note in json.loads((tmp_path / "a.json").read_text())["notes"]]
    assert kinds.count("constant_scores") == 1
    page = (tmp_path / "r.html").read_text()
    assert "the results are the same for everyone." in page
    assert 'class="remark constant"' in page
    counted = audit_file(
        tmp_path / "scores.csv",
        score="p",
        group="sex",
        random_state=0,
        options=AuditOptions(in_memory_rows=10, resamples=0),
    )
    assert "constant_scores" in [note.kind for note in counted.notes]
    done = call("audit", tmp_path / "scores.csv", *ASKED, "--threshold", "0.8")
    assert "Every score is 0.7" in done.stdout


def test_json_on_standard_output_is_all_of_it_and_nothing_else(scores: Path, call: Any) -> None:
    done = call("audit", scores, *ASKED, "--seed", 1, "--json", "-")
    assert done.exit_code == 0, done.output
    strict = json.loads(done.stdout, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    direct = json.loads(
        audit_file(scores, score="p", group="sex", label="y", random_state=1).to_json()
    )
    made = strict.pop("provenance"), direct.pop("provenance")
    assert strict == direct
    assert made[0]["files"] == made[1]["files"]
    assert (
        made[0]["call"]
        == f"metrifair audit {scores.name} --score p --group sex --label y --json - --seed 1"
    )
    assert "Kolmogorov" in done.stderr


def test_every_option_reaches_the_audit(
    scores: Path, tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def noted(path: str, **given: Any) -> Any:
        asked.update(given, path=path)
        return audit_file(path, **given)

    monkeypatch.setattr(f"{audit_file.__module__}.audit_file", noted)
    arguments = [
        "audit", scores, *ASKED, "--group", "region", "--control", "race", "--weight", "w", "--threshold", "0.4",
        "--criterion", "equal_opportunity", "--criterion", "statistical_parity", "--metric", "energy",
        "--confidence", "0.9", "--seed", "7", "--fail-above", "kolmogorov=1",
        "--separator", ",", "--format", "csv", "--positive", "0", "--loss", "log_loss", "--max-groups", "9",
        "--contrast", "rest", "--continuous", "none", "--min-group-size", "9",
        "--intersectional", "--title", "Mine", "--about", "source=payroll = all", "--about", "date=2026",
        "--reference", "sex x region=men x north", "--favorable", "low", "--min-group-share", "0.01",
        "--replace", "Approved=1", "--replace", "Declined=0", "--known-name", "Unknown",
        "--cluster", "person", "--json", tmp_path / "a.json",
    ]  # fmt: skip
    done = call(*arguments)
    assert done.exit_code == 0, done.output
    options = {
        "confidence": 0.9,
        "loss": "log_loss",
        "max_groups": 9,
        "contrast": "rest",
        "continuous": False,
        "min_group_size": 9,
        "known_names": ["Unknown"],
    }
    assert asked == {
        "path": str(scores),
        "score": "p",
        "group": ["sex", "region"],
        "label": "y",
        "control": ["race"],
        "weight": "w",
        "clusters": "person",
        "threshold": 0.4,
        "criteria": ["equal_opportunity", "statistical_parity"],
        "metrics": ["energy", "kolmogorov"],
        "random_state": 7,
        "pos_label": "0",
        "favorable": "low",
        "favorable_decision": None,
        "intersectional": True,
        "options": AuditOptions(**options),
        "reading": ReadOptions(
            separator=",", format="csv", replace={"Approved": "1", "Declined": "0"}
        ),
    }
    record = json.loads((tmp_path / "a.json").read_text())
    assert (record["provenance"]["title"], record["provenance"]["about"]) == (
        "Mine",
        {"source": "payroll = all", "date": "2026"},
    )
    assert record["settings"]["min_group_share"] == 0.01
    assert {table["reference"] for table in record["decisions"]} == {"men x north"}


@pytest.mark.parametrize("standard", ["ll144", "four-fifths", "credit"])
def test_the_tables_of_a_standard_are_shown_and_written(
    scores: Path, tmp_path: Path, call: Any, standard: str
) -> None:
    named = (
        ["--reference", "sex=men", "--reference", "region=north"] if standard == "credit" else []
    )
    asked = ["--score", "p", "--group", "sex", "--group", "region", "--standard", standard, *named]
    done = call(
        "audit", scores, *asked, "--rates", tmp_path / "r.csv", "--html", tmp_path / "r.html"
    )
    assert done.exit_code == 0, done.output
    table = pl.read_csv(tmp_path / "r.csv")
    assert set(table["standard"]) == {standard}
    assert set(table["attribute"]) == {"sex", "region"} | (
        {"sex x region"} if standard == "ll144" else set()
    )
    assert table.filter(pl.col("group") == "men")["selected_by"][0] == (
        "median" if standard == "ll144" else "threshold"
    )
    assert "These figures do not decide whether a law or a rule is met." in done.stdout
    page = (tmp_path / "r.html").read_text()
    assert 'id="ratios"' in page
    assert ("ratio_at_50" in table.columns) == (standard == "credit")


def test_the_table_of_findings_is_that_of_the_audit(
    scores: Path, tmp_path: Path, call: Any
) -> None:
    done = call("audit", scores, *ASKED, "--output", tmp_path / "f.parquet")
    assert done.exit_code == 0, done.output
    wanted = audit_file(scores, score="p", group="sex", label="y", random_state=0).to_frame(
        "polars"
    )
    assert pl.read_parquet(tmp_path / "f.parquet").equals(wanted)


def test_hostile_names_are_text_in_every_output(scores: Path, tmp_path: Path, call: Any) -> None:
    done = call(
        "audit",
        scores,
        "--score",
        "p",
        "--group",
        "race",
        "--html",
        tmp_path / "r.html",
        "--output",
        tmp_path / "f.csv",
    )
    assert done.exit_code == 0, done.output
    assert HOSTILE[1] in done.stdout
    assert "<script>alert(1)" not in (tmp_path / "r.html").read_text()
    for row in pl.read_csv(tmp_path / "f.csv", infer_schema=False).iter_rows():
        assert not [cell for cell in row if cell and cell[0] in "=+@"]
    assert "texts begin like a formula" in done.stderr


def test_names_cannot_steer_the_terminal(table: pl.DataFrame, tmp_path: Path, call: Any) -> None:
    names = {"men": "\x1b[31mmen\x1b[0m", "women": "[bold]women[/bold]\u202e"}
    table.with_columns(sex=pl.col("sex").replace(names)).write_parquet(tmp_path / "s.parquet")
    done = call("audit", tmp_path / "s.parquet", "--score", "p", "--group", "sex")
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "[bold]women[/bold]" in done.stdout


# --- the verdict
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (["kolmogorov=0.9"], 0),
        (["kolmogorov=0.01"], 1),
        (["kolmogorov=0.9", "energy=0.000001"], 1),
        (["cramer=0.000001"], 1),
        (["cramer=1"], 0),
        (["selection_difference=0.05"], 1),
        (["accuracy_difference=1"], 0),
        ([], 0),
    ],
)
def test_the_exit_code_is_one_where_a_limit_is_broken(
    scores: Path, call: Any, limits: list[str], code: int
) -> None:
    done = call(
        "audit",
        scores,
        *ASKED,
        "--criterion",
        "statistical_parity",
        *(part for limit in limits for part in ("--fail-above", limit)),
    )
    assert done.exit_code == code, done.output
    told = [line for line in done.stdout.splitlines() if line.startswith("Unfair: ")]
    assert len(told) == code
    assert all(line.startswith(f"Unfair: {limits[-1].split('=')[0]} is 0.") for line in told)


def test_json_has_the_limits_and_whether_they_are_broken(
    scores: Path, tmp_path: Path, call: Any
) -> None:
    asked = [*ASKED, "--criterion", "statistical_parity", "--seed", 0, "--json", "-"]
    plain = json.loads(call("audit", scores, *asked).stdout)
    assert "limits" not in plain
    worst = max(
        finding["value"] for finding in plain["findings"] if finding["metric"] == "kolmogorov"
    )
    kept, broken = worst + 0.001, worst - 0.001
    limits = ["--fail-above", f"kolmogorov={kept}", "--fail-certain-below", "selection_ratio=0.001"]
    for more, code in (([], 0), (["--fail-above", f"kolmogorov={broken}"], 1)):
        done = call("audit", scores, *asked, *limits, *more)
        assert done.exit_code == code, done.output
        found = json.loads(done.stdout)
        (tmp_path / "limited.json").write_text(done.stdout)
        assert read_audit(tmp_path / "limited.json").record.rows == plain["rows"]
        assert found["limits"] == [
            {
                "option": "--fail-above",
                "metric": "kolmogorov",
                "value": kept,
                "broken": False,
                "possibly_broken": False,
            },
            *(
                [
                    {
                        "option": "--fail-above",
                        "metric": "kolmogorov",
                        "value": broken,
                        "broken": True,
                        "possibly_broken": False,
                    }
                ]
                * code
            ),
            {
                "option": "--fail-certain-below",
                "metric": "selection_ratio",
                "value": 0.001,
                "broken": False,
                "possibly_broken": False,
            },
        ]
        del found["limits"], found["provenance"]
        assert found == {name: value for name, value in plain.items() if name != "provenance"}


def test_a_value_at_the_limit_keeps_it(table: pl.DataFrame) -> None:
    found = audit(None, table["p"], sensitive_features=table["sex"], random_state=0)
    worst = found.worst("kolmogorov").value
    assert broken_figures(found.record, Limit("kolmogorov", worst)) == []
    # rounding breaks no limit
    assert broken_figures(found.record, Limit("kolmogorov", np.nextafter(worst, 0))) == []
    (line,) = broken_figures(found.record, Limit("kolmogorov", worst * (1 - 1e-9)))
    assert "men against women (sex, statistical_parity, everyone)" in line


@pytest.mark.extended
def test_limits_judge_values_or_what_is_certain(scores: Path, call: Any, refused: Refusals) -> None:
    found = audit_file(scores, score="p", group="sex", label="y", random_state=0)
    head = found.headline
    assert head is not None
    low, ratio = head.joint_interval.low, found.decisions[0].selection_ratio
    high = found.decisions[0].selection_ratio_interval.high
    assert low < head.value
    assert ratio < high
    for option, name, passing, failing in (
        ("--fail-above", "kolmogorov", found.worst().value + 1e-6, found.worst().value - 1e-6),
        ("--fail-certain-above", "kolmogorov", low + 1e-6, low - 1e-6),
        ("--fail-below", "selection_ratio", ratio - 1e-6, ratio + 1e-6),
        ("--fail-certain-below", "selection_ratio", high - 1e-6, high + 1e-6),
    ):
        assert call("audit", scores, *ASKED, option, f"{name}={passing}").exit_code == 0, option
        done = call("audit", scores, *ASKED, option, f"{name}={failing}")
        assert done.exit_code == 1, option
        assert f"Unfair: {name} is {'at ' if 'certain' in option else ''}" in done.stdout
    said = refusal(
        call(
            "audit",
            scores,
            *ASKED,
            "--weight",
            "w",
            "--fail-certain-above",
            "kolmogorov=0.1",
            "--min-group-size",
            500,
        )
    )
    refused.said(said)
    assert "smaller: use --fail-above" in refusal(
        call("audit", scores, *ASKED, "--fail-below", "kolmogorov=1")
    )
    gate = ("--fail-below", "selection_ratio=0.8")
    said = refusal(call("audit", scores, *ASKED, *gate, "--threshold", 2))
    refused.said(said)
    said = refusal(
        call("audit", scores, *ASKED, *gate, "--reference", "men", "--min-group-share", 0.9)
    )
    refused.said(said)
    assert "labels" not in said


def test_reports_say_where_they_come_from_without_folders(
    scores: Path, tmp_path: Path, call: Any
) -> None:
    done = call(
        "audit", scores, *ASKED, "--title", "Hiring <2026>", "--about", "source=payroll", "--html", tmp_path / "r.html",
        "--json", tmp_path / "a.json", "--fail-certain-above", "kolmogorov=0.9",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    page, content = (tmp_path / "r.html").read_text(), json.loads((tmp_path / "a.json").read_text())
    made = content["provenance"]
    digest = hashlib.sha256(scores.read_bytes()).hexdigest()
    assert made["files"] == [
        {"name": "scores.csv", "size": scores.stat().st_size, "sha256": digest}
    ]
    assert (made["title"], made["about"], made["rows_read"], made["seed"]) == (
        "Hiring <2026>",
        {"source": "payroll"},
        N,
        0,
    )
    assert made["columns"] == {"score": ["p"], "label": ["y"], "group": ["sex"], "control": []}
    assert made["call"] == (
        "metrifair audit scores.csv --score p --group sex --label y --title 'Hiring <2026>' "
        "--about source=payroll "
        "--html r.html --json a.json --fail-certain-above kolmogorov=0.9"
    )
    assert set(made["versions"]) == {"metrifair", "Python", "torch", "numpy"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", made["time"])
    assert str(tmp_path) not in page + json.dumps(content)
    for text in (
        digest,
        "payroll",
        "metrifair audit scores.csv",
        made["time"],
        '<h1 id="title">Hiring &lt;2026&gt;',
    ):
        assert text in page
    # on each printed page
    assert "".join(f"\\{ord(c):06x}" if not c.isalnum() else c for c in "Hiring <2026>") in page


def test_the_command_of_a_report_runs_with_its_cuts(tmp_path: Path, call: Any) -> None:
    ages = list(range(20, 60))
    pl.DataFrame({"p": [age / 100 for age in ages], "age": ages}).write_csv(tmp_path / "ages.csv")
    for cuts in ("age=25,40.5", "30"):
        asked = ["--score", "p", "--group", "age", "--cuts", cuts, "--json", "-"]
        done = call("audit", tmp_path / "ages.csv", *asked)
        assert json.loads(done.stdout)["provenance"]["call"] == shlex.join(
            ["metrifair", "audit", "ages.csv", *asked]
        )


def test_a_limit_on_decisions_that_there_are_none_of_names_the_threshold(
    scores: Path, call: Any, refused: Refusals
) -> None:
    margins = pl.read_csv(scores).with_columns(p=10 * pl.col("p") - 5)
    margins.write_csv(scores)
    said = refusal(call("audit", scores, *ASKED, "--fail-above", "selection_difference=0.1"))
    refused.said(said)
    limits = ("--threshold", "0", "--fail-above", "selection_difference=1")
    assert call("audit", scores, *ASKED, *limits).exit_code == 0


def test_gap_is_another_name_of_the_distance_in_limits(scores: Path, call: Any) -> None:
    """Messages have the word that the user wrote, the JSON has the metric."""
    by_name = {
        name: call("audit", scores, *ASKED, "--metric", "energy", "--fail-above", f"{name}=0")
        for name in ("kolmogorov", "gap")
    }
    assert [done.exit_code for done in by_name.values()] == [1, 1]
    for name, done in by_name.items():
        assert f"Unfair: {name} is 0." in done.stdout
    lines = by_name["kolmogorov"].stdout.replace("Unfair: kolmogorov", "Unfair: gap")
    assert by_name["gap"].stdout == lines
    (limit,) = json.loads(
        call("audit", scores, *ASKED, "--fail-above", "gap=0", "--json", "-").stdout
    )["limits"]
    assert limit["metric"] == "kolmogorov"


def test_a_misspelled_gap_is_named(scores: Path, call: Any, refused: Refusals) -> None:
    said = refusal(call("audit", scores, *ASKED, "--fail-above", "gapp=0.1"))
    refused.said(said)


def test_files_are_written_even_where_the_verdict_is_unfair(
    scores: Path, tmp_path: Path, call: Any
) -> None:
    arguments = [
        "--html",
        tmp_path / "r.html",
        "--json",
        tmp_path / "f.json",
        "--output",
        tmp_path / "f.parquet",
    ]
    assert call("audit", scores, *ASKED, *arguments, "--fail-above", "kolmogorov=0").exit_code == 1
    assert left_behind(tmp_path) == ["f.json", "f.parquet", "r.html", "scores.csv"]


def test_limits_add_their_metric_to_the_usual_ones() -> None:
    assert metrics_argument([], []) is None
    assert metrics_argument([], [Limit("energy", 0.1)]) is None
    assert metrics_argument([], [Limit("mmd", 0.1)]) == [
        "kolmogorov",
        "wasserstein",
        "energy",
        "mmd",
    ]
    assert metrics_argument(["mmd"], [Limit("selection_difference", 0.1)]) == ["mmd"]


# --- refusals
# ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--score", "q", "--group", "sex"],
            "has no column 'q' (given as score); its columns are 'p', 'sex',",
        ),
        (["--score", "p", "--group", "gender"], "has no column 'gender' (given as group)"),
        (["--score", "p", "--group", "sex", "--label", "z"], "has no column 'z' (given as label)"),
        (
            ["--score", "p", "--group", "sex", "--control", "z"],
            "has no column 'z' (given as control)",
        ),
        (
            ["--score", "p", "--group", "sex", "--weight", "z"],
            "has no column 'z' (given as weight)",
        ),
        (["--score", "sex", "--group", "race"], "sex"),
        (["--score", "p", "--group", "sex", "--metric", "energi"], "did you mean 'energy'?"),
        (["--score", "p", "--group", "sex", "--criterion", "parity"], "criterion must be one of"),
        (["--score", "p", "--group", "sex", "--criterion", "equal_opportunity"], "label"),
        # before anything is read: there is no column q
        (
            ["--score", "p", "--score", "q", "--group", "sex", "--rates", "f.csv"],
            "--rates is the table of one audit",
        ),
        (
            ["--score", "p", "--group", "sex", "--label", "y", "--criterion", "risk_parity"],
            "use --loss NAME: 'log_loss'",
        ),
        (
            ["--score", "p", "--group", "sex", "--confidence", "1"],
            "'--confidence': 1.0 is not in the range 0<x<1",
        ),
        (
            ["--score", "p", "--group", "sex", "--confidence", "nan"],
            "'--confidence': 'nan' is not a finite number",
        ),
        (
            ["--score", "p", "--group", "sex", "--threshold", "inf"],
            "'--threshold': 'inf' is not a finite number",
        ),
        (["--score", "p", "--group", "sex", "--fail-above", "0.1"], "'0.1' is not METRIC=VALUE"),
        (
            ["--score", "p", "--group", "sex", "--fail-above", "energy=nan"],
            "'energy=nan' is not METRIC=VALUE",
        ),
        (
            ["--score", "p", "--group", "sex", "--fail-above", "energy=-1"],
            "'energy=-1' is not METRIC=VALUE",
        ),
        (
            ["--score", "p", "--group", "sex", "--fail-above", "kolmogorof=1"],
            "did you mean 'kolmogorov'",
        ),
        (
            ["--score", "p", "--group", "sex", "--fail-above", "selection_ratio=0.8"],
            "larger: use --fail-below",
        ),
        (
            ["--score", "p", "--group", "sex", "--fail-below", "kolmogorov=0.8"],
            "smaller: use --fail-above",
        ),
        (
            ["--score", "p", "--group", "sex", "--fail-above", "fairness=1"],
            "--fail-above must be one of 'gap', 'energy',",
        ),
        (
            ["--score", "p", "--group", "sex", "--fail-above", "accuracy_difference=1"],
            "the audit has no such figure",
        ),
        (["--score", "p"], "Missing option '--group'"),
        (
            ["--score", "p", "--group", "sex", "--output", "f.xlsx"],
            "'f.xlsx' must end in .csv, .tsv, .parquet",
        ),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    scores: Path, tmp_path: Path, call: Any, arguments: list[str], words: str
) -> None:
    done = call("audit", scores, *arguments, "--json", tmp_path / "f.json")
    assert words in refusal(done)
    assert left_behind(tmp_path) == ["scores.csv"]


def junk(folder: Path) -> None:
    (folder / "s.csv").write_bytes(bytes(range(256)) * 40)


def wrong_separator(folder: Path) -> None:
    (folder / "s.csv").write_text("p;sex;y\n0.1;f;0\n0.2;m;1\n")


def not_utf8(folder: Path) -> None:
    (folder / "s.csv").write_bytes(
        "p,sex,y\n0.5,müde,1\n".encode("latin-1") * 1 + "0.4,fröhlich,0\n".encode("latin-1")
    )


BAD: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no file": (lambda folder: None, "there is no file"),
    "a folder": (lambda folder: (folder / "s.csv").mkdir(), "is a folder"),
    "empty": (lambda folder: (folder / "s.csv").write_bytes(b""), "is empty"),
    "a header only": (lambda folder: (folder / "s.csv").write_text("p,sex,y\n"), "s.csv"),
    "binary junk": (junk, "is not text"),
    "another separator": (wrong_separator, "use --separator ';' if that separates its columns"),
    "not UTF-8": (not_utf8, "is not UTF-8 text"),
    "scores that are text": (
        lambda folder: (folder / "s.csv").write_text("p,sex,y\nhigh,f,1\nlow,m,0\n"),
        "'high'",
    ),
    "one group": (
        lambda folder: (folder / "s.csv").write_text("p,sex,y\n0.1,f,1\n0.2,f,0\n"),
        "sex",
    ),
    "no groups": (
        lambda folder: (folder / "s.csv").write_text("p,sex,y\n0.1,,1\n0.2,,0\n"),
        "two groups",
    ),
    "rows of several lengths": (
        lambda folder: (folder / "s.csv").write_text("p,sex,y\n0.1,f,1,2,3\n"),
        "more fields",
    ),
    "infinite scores": (
        lambda folder: (folder / "s.csv").write_text("p,sex,y\ninf,f,1\n0.1,m,0\n"),
        "p",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_cannot_be_audited_is_one_line(tmp_path: Path, call: Any, case: str) -> None:
    make, words = BAD[case]
    make(tmp_path)
    before = left_behind(tmp_path)
    done = call(
        "audit",
        tmp_path / "s.csv",
        *ASKED,
        "--json",
        tmp_path / "f.json",
        "--html",
        tmp_path / "r.html",
    )
    assert words in refusal(done)
    assert left_behind(tmp_path) == before


@pytest.mark.parametrize("content", [b"PAR1junk", b"ARROW1\0\0junk", b"x" * 5000])
@pytest.mark.parametrize("kind", ["parquet", "arrow", "ndjson"])
def test_binary_files_that_are_damaged_are_one_line(
    tmp_path: Path, call: Any, kind: str, content: bytes
) -> None:
    (tmp_path / f"s.{kind}").write_bytes(content)
    assert f"s.{kind}" in refusal(call("audit", tmp_path / f"s.{kind}", *ASKED))


def test_a_hundred_thousand_groups_are_refused(tmp_path: Path, call: Any) -> None:
    many = pl.DataFrame(
        {
            "p": np.linspace(0, 1, 100_000),
            "sex": [f"group {k}" for k in range(100_000)],
            "y": [0, 1] * 50_000,
        }
    )
    many.write_parquet(tmp_path / "s.parquet")
    assert "100,000" in refusal(call("audit", tmp_path / "s.parquet", *ASKED)).replace(
        "100000", "100,000"
    )


# --- real processes
# ---------------------------------------------------------------------------------------------


@pytest.mark.extended
def test_a_pipeline_of_processes_ends_with_a_verdict(
    table: pl.DataFrame, tmp_path: Path, shell: Any
) -> None:
    done = shell(
        "audit",
        "-",
        *ASKED,
        "--json",
        "-",
        "--fail-above",
        "kolmogorov=0.05",
        input=table.write_csv(),
    )
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["rows"] == N
    assert "Unfair: kolmogorov is 0." in done.stderr
    assert left_behind(tmp_path) == []


@pytest.mark.extended
def test_a_disk_that_fills_up_leaves_no_part_of_a_report(
    scores: Path, tmp_path: Path, shell: Any, refused: Refusals
) -> None:
    (tmp_path / "r.html").write_text("old")
    limit = 8_192
    done = shell(
        "audit", scores.name, *ASKED, "--html", "r.html",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    refused.said(refusal(done))
    assert left_behind(tmp_path) == ["r.html", "scores.csv"]
    assert (tmp_path / "r.html").read_text() == "old"


def test_a_limit_where_nothing_is_compared_does_not_blame_the_threshold() -> None:
    """Each stratum holds one group."""
    options = {
        "sensitive_features": list("aabb"),
        "control_features": list("nnss"),
        "random_state": 0,
    }
    record = audit(None, [0.1, 0.4, 0.6, 0.9], **flat(**options)).record
    assert not record.findings
    for metric in ("kolmogorov", "selection_difference"):
        with pytest.raises(DataError, match=f"--fail-above {metric}: nothing could be compared"):
            broken_figures(record, Limit(metric, 0.1))


def test_names_with_braces_are_audited(tmp_path: Path, call: Any) -> None:
    (tmp_path / "s.csv").write_text("p,g\n0.1,{x}\n0.4,{x}\n0.6,{y!r}\n0.9,{y!r}\n")
    done = call(
        "audit", tmp_path / "s.csv", "--score", "p", "--group", "g", "--html", tmp_path / "a.html"
    )
    assert done.exit_code == 0, done.output
    assert "{x}" in done.stdout
