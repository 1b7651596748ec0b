"""`metrifair evidence`, `verify` and `plan`: exit codes, and the same figures as the other
commands.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import Result

Call = Callable[..., Result]
ASKED = ("--score", "p", "--group", "sex", "--label", "y", "--metric", "kolmogorov")


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    sex, age = rng.choice(["f", "m", "x"], 600, p=[0.5, 0.49, 0.01]), rng.integers(18, 80, 600)
    columns = {"p": rng.random(600).round(2), "sex": sex, "age": age, "y": rng.integers(0, 2, 600)}
    pl.DataFrame(columns).write_csv(tmp_path / "scores.csv")
    return tmp_path / "scores.csv"


def test_evidence_has_the_figures_of_an_audit_and_is_verified(
    call: Call, scores: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "evidence"
    done = call("evidence", scores, *ASKED, "--about", "who=me", "--no-pdf", "--out", folder)
    assert done.exit_code == 0, done.output
    assert f"Evidence: {folder}" in done.output
    call("audit", scores, *ASKED, "--json", tmp_path / "audit.json")
    ours, theirs = (
        json.loads(path.read_text()) for path in (folder / "audit.json", tmp_path / "audit.json")
    )
    assert [one["value"] for one in ours["findings"]] == pytest.approx(
        [one["value"] for one in theirs["findings"]]
    )
    assert ours["provenance"]["call"] == (
        "metrifair evidence scores.csv --score p --group sex --label y --metric kolmogorov --about "
        "who=me "
        "--out evidence --no-pdf"
    )
    done = call("verify", folder, "--data", scores, "--json", tmp_path / "checks.json")
    assert done.exit_code == 0, done.output
    assert done.output.startswith("The evidence agrees in all ")
    assert json.loads((tmp_path / "checks.json").read_text())["agrees"] is True


def test_exit_codes_say_whether_evidence_differs_or_cannot_be_checked(
    call: Call, scores: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "evidence"
    call("evidence", scores, *ASKED, "--no-pdf", "--out", folder)
    page = (folder / "report.html").read_text()
    (folder / "report.html").write_text(page.replace("rows", "lines", 1))
    done = call("verify", folder)
    assert done.exit_code == 1
    assert "DIFFERS: report.html" in done.output
    (folder / "report.html").write_text(page)
    (folder / "MANIFEST.json.sig").write_text("signed by somebody")
    done = call("verify", folder)
    assert done.exit_code == 2
    assert "not checked: The manifest is signed" in done.output
    done = call("verify", scores)
    assert done.exit_code == 2
    assert "name a folder or .zip file of evidence" in done.output


def test_a_second_release_of_the_same_rows_needs_again(
    call: Call, scores: Path, tmp_path: Path
) -> None:
    asked = ("evidence", scores, *ASKED[:4], "--metric", "kolmogorov", "--no-pdf")
    assert call(*asked, "--out", tmp_path / "a").exit_code == 0
    for number, more in enumerate((["--min-cell", 5], ["--threshold", 0.4], ["--group", "age"])):
        done = call(*asked, *more, "--out", tmp_path / f"b{number}.zip")
        assert done.exit_code == 2, done.output
        assert "the same rows were released as 'a' with other parameters" in " ".join(
            done.output.split()
        )
        assert "--again" in done.output
        assert not (tmp_path / f"b{number}.zip").exists()
    done = call(*asked, "--threshold", 0.4, "--again", "--out", tmp_path / "b")
    assert done.exit_code == 0, done.output
    assert "OTHER RELEASES OF THE SAME ROWS" in (tmp_path / "b" / "README.txt").read_text()


@pytest.mark.extended
def test_options_of_counting_are_those_of_verifying(
    call: Call, scores: Path, tmp_path: Path
) -> None:
    asked = (
        "--score",
        "p",
        "--group",
        "sex",
        "--group",
        "age",
        "--cuts",
        "age=30,60",
        "--standard",
        "ll144",
    )
    more = (
        "--about",
        "Justification=few applied",
        "--score-digits",
        "1",
        "--crosswalk",
        "ll144",
        "--sign",
        "no key",
    )
    done = call("evidence", scores, *asked, *more, "--out", tmp_path / "a.zip")
    assert done.exit_code == 2
    assert "ssh-keygen cannot sign with no key" in done.output
    done = call("evidence", scores, *asked, *more[:-2], "--no-pdf", "--out", tmp_path / "a.zip")
    assert done.exit_code == 0, done.output
    assert "Justification: few applied." in done.output
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        page = archive.read("report.html").decode()
    table = page[page.index('id="ratios"') :]
    assert re.search(
        r"Excluded from impact ratios by sex, [^<]*“x” \(\d+ rows, [\d.]+%\)\. Justification: few "
        r"applied\.",
        table,
    )
    assert "<dt>Justification</dt><dd>few applied</dd>" in table
    assert call("verify", tmp_path / "a.zip", "--data", scores).exit_code == 0


def test_decisions_that_are_words_stay_words(call: Call, scores: Path, tmp_path: Path) -> None:
    table = pl.read_csv(scores).with_columns(
        p=pl.when(pl.col("p") > 0.4).then(pl.lit("yes")).otherwise(pl.lit("no"))
    )
    table.write_csv(tmp_path / "words.csv")
    asked = ("--score", "p", "--group", "sex", "--favorable-decision", "yes", "--no-pdf")
    done = call("evidence", tmp_path / "words.csv", *asked, "--out", tmp_path / "evidence")
    assert done.exit_code == 0, done.output
    assert "With the decision “yes”" in (tmp_path / "evidence" / "README.txt").read_text()
    assert call("verify", tmp_path / "evidence", "--data", tmp_path / "words.csv").exit_code == 0


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            ["--gap", "0.1"],
            "412 and 412 rows detect a gap of 10.0 points with a power of 80%.",
        ),
        (
            ["--rows", "200", "--rows", "200"],
            "200 and 200 rows detect a gap of 14.5 points",
        ),
        (
            ["--rows", "2", "--rows", "2"],
            "2 and 2 rows are too few to detect any gap with a power of 80%.",
        ),
    ],
)
def test_plan_prints_rows_or_the_gap(call: Call, asked: list[str], words: str) -> None:
    done = call("plan", *asked)
    assert (done.exit_code, words in done.output) == (0, True)


@pytest.mark.parametrize(
    "asked",
    [
        [],
        ["--rows", "10"],
        ["--gap", "0.1", "--rows", "1", "--rows", "2"],
        ["--gap", "0.9", "--rate", "0.1"],
    ],
)
def test_plan_takes_a_gap_or_rows(call: Call, asked: list[str]) -> None:
    assert call("plan", *asked).exit_code == 2


def test_the_statements_of_a_report_come_first(tmp_path: Path, call: Callable[..., Result]) -> None:
    data = tmp_path / "scores.csv"
    rows = [f"{0.01 * at:.2f},{'f' if at % 2 else 'm'}" for at in range(100)]
    data.write_text("p,sex\n" + "\n".join(rows) + "\n")
    stated = ["--about", "site=north", "--period", "2026", "--signed-by", "A. Auditor"]
    folder = tmp_path / "evidence"
    base = ["evidence", data, "--score", "p", "--group", "sex", "--no-pdf"]
    done = call(*base, *stated, "--out", folder)
    assert done.exit_code == 0, done.output
    about = json.loads((folder / "MANIFEST.json").read_text())["provenance"]["about"]
    assert list(about.items()) == [
        ("signed by", "A. Auditor"),
        ("period", "2026"),
        ("site", "north"),
    ]
    readme = (folder / "README.txt").read_text()
    assert "Signed by: A. Auditor" in readme
    assert "Not stated: purpose, data." in readme
