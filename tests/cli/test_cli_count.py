"""count and merge, and audits of databases: what they print, write and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from refusals import refusal

from metrifair import AuditState, audit_file
from tests.expected_errors import Refusals

ASKED = ("--score", "p", "--group", "sex", "--label", "y")


@pytest.fixture
def days(tmp_path: Path) -> list[Path]:
    rng = np.random.default_rng(3)
    found = []
    for day in ("monday", "tuesday"):
        sex, y = rng.choice(["f", "m"], 80), rng.integers(0, 2, 80)
        p = (0.3 * y + 0.6 * rng.random(80) + 0.1 * (sex == "m")).round(3)
        pl.DataFrame({"p": p, "sex": sex, "y": y}).write_csv(tmp_path / f"{day}.csv")
        found.append(tmp_path / f"{day}.csv")
    return found


def states_of(days: list[Path], call: Any) -> list[Path]:
    found = []
    for day in days:
        found.append(day.with_suffix(".state"))
        done = call("count", day, *ASKED, "--name", day.stem, "--output", found[-1])
        assert done.exit_code == 0, done.output
        assert (
            f"AuditState of {day.stem}: 80 rows in 4 cells, scores from 0 to 1; 0 rows left out."
            in done.stdout
        )
    return found


def test_counts_of_two_days_are_audited_as_both_files_are(
    days: list[Path], tmp_path: Path, call: Any
) -> None:
    done = call(
        "merge", *states_of(days, call), "--html", tmp_path / "r.html", "--json", tmp_path / "r.json",
        "--output", tmp_path / "r.csv", "--save", tmp_path / "both.state", "--fail-above", "kolmogorov=0.01",
    )  # fmt: skip
    assert done.exit_code == 1, done.output
    exact = audit_file(tmp_path / "*day.csv", score="p", group="sex", label="y", random_state=0)
    found = json.loads((tmp_path / "r.json").read_text())
    assert [one["value"] for one in found["findings"]] == pytest.approx(
        [one.value for one in exact.findings], abs=1e-9
    )
    assert exact.summary.splitlines()[0] in done.stdout
    assert "Unfair: kolmogorov is" in done.stdout
    assert exact.summary.splitlines()[0].split(":")[0] in (tmp_path / "r.html").read_text()
    assert len(pl.read_csv(tmp_path / "r.csv")) == len(exact.findings)
    assert AuditState.load(tmp_path / "both.state").names == ("monday", "tuesday")


def test_no_counts_are_lost_where_one_file_is_called_as_the_other_says_it_is(
    days: list[Path], tmp_path: Path, call: Any
) -> None:
    monday, tuesday = (tmp_path / f"{day.stem}.state" for day in days)
    call("count", days[0], *ASKED, "--name", "tuesday", "--output", monday)
    call("count", days[1], *ASKED, "--output", tuesday)
    for files in ((monday, tuesday), (tuesday, monday)):
        done = call("merge", *files, "--save", tmp_path / "both.state")
        assert done.exit_code == 0, done.output
        assert AuditState.load(tmp_path / "both.state").rows == 160
        assert "tuesday 2" in call("compare", *files).output


def test_what_cannot_be_counted_or_merged_is_one_line(
    days: list[Path], tmp_path: Path, call: Any, refused: Refusals
) -> None:
    first, second = states_of(days, call)
    out = tmp_path / "x.state"
    for arguments, said in (
        (
            ("count", days[0], "--score", "q", "--group", "sex", "--output", out),
            "has no column 'q' (given as score)",
        ),
        (("count", days[0], *ASKED, "--output", days[0]), "cannot be written, as it is read too"),
        (
            ("count", days[0], *ASKED, "--control", "sex", "--output", out),
            "must name different columns, got ['sex', 'sex', 'y']",
        ),
        (
            ("count", days[0], *ASKED, "--score-range", "0", "0.5", "--output", out),
            (
                "lies beyond the range from 0 to 0.5; use --score-range LOW HIGH that contains all "
                "scores"
            ),
        ),
        (("merge", first, days[1]), "tuesday.csv'; first metrifair count "),
        (("merge", first, tmp_path / "no.state"), "there is no file"),
    ):
        assert said in refusal(call(*arguments))
    call("count", days[1], *ASKED, "--score-range", "0", "2", "--output", second)
    refused.said(refusal(call("merge", first, second)))


def test_small_cells_are_withheld(days: list[Path], tmp_path: Path, call: Any) -> None:
    done = call("count", days[0], *ASKED, "--min-group-size", 81, "--output", tmp_path / "x.state")
    assert done.exit_code == 0, done.output
    assert "0 rows in 0 cells, scores from 0 to 1; 80 rows left out." in done.stdout
    states = states_of(days, call)
    call("count", days[0], *ASKED, "--min-group-size", 20, "--output", states[0])
    merged = " ".join(call("merge", *states).stdout.split())
    kept = AuditState.load(states[0])
    assert 0 < kept.withheld < 80
    cells = (
        "cells (group, stratum and label) below the minimum group size when the counts were saved"
    )
    assert f"Note: Withheld: {kept.withheld} rows in {cells}." in merged


def test_a_database_is_audited_by_its_address(
    days: list[Path], tmp_path: Path, call: Any, refused: Refusals
) -> None:
    with duckdb.connect(str(tmp_path / "scores.db")) as connection:
        connection.register("frame", pl.read_csv(days[0]).to_arrow())
        connection.execute("CREATE TABLE scores AS SELECT * FROM frame")
    address = f"duckdb:{tmp_path / 'scores.db'}"
    done = call("audit", address, "--table", "scores", *ASKED, "--json", tmp_path / "a.json")
    assert done.exit_code == 0, done.output
    exact = audit_file(days[0], score="p", group="sex", label="y", random_state=0)
    found, direct = json.loads((tmp_path / "a.json").read_text()), json.loads(exact.to_json())
    made = found.pop("provenance")
    del direct["provenance"]
    assert found == direct
    assert made["source"] == "the table 'scores' of scores.db"
    assert [one["name"] for one in made["files"]] == ["scores.db"]
    assert str(tmp_path) not in json.dumps(made)
    for command in ("audit", "count"):
        more = ("--output", tmp_path / "d.state") if command == "count" else ()
        refused.said(refusal(call(command, address, *ASKED, *more)))
    counted = call("count", address, "--table", "scores", *ASKED, "--output", tmp_path / "d.state")
    assert "80 rows in 4 cells, scores from 0 to 1; 0 rows left out." in counted.stdout, (
        counted.output
    )
    merged = AuditState.load(tmp_path / "d.state").audit(random_state=0)
    assert [one.value for one in merged.findings] == pytest.approx(
        [one.value for one in exact.findings], abs=1e-12
    )
    refused.said(refusal(call("audit", address, "--table", "x", *ASKED)))
    refused.said(refusal(call("audit", days[0], "--table", "x", *ASKED)))


@pytest.mark.parametrize(
    "address", ["nothing://me:s3cret@host/db", "postgres://me:s3cret@127.0.0.1:1/db"]
)
def test_no_password_is_printed(address: str, call: Any) -> None:
    done = call("audit", address, "--table", "scores", *ASKED)
    said = refusal(done)
    assert "database" in said
    assert "s3cret" not in done.output + said


def test_a_file_counts_once(days: list[Path], tmp_path: Path, call: Any) -> None:
    scores = days[0]
    for name in ("Monday", "Tuesday"):
        counted = call(
            "count", scores, *ASKED, "--name", name, "--output", tmp_path / f"{name[:3]}.state"
        )
        assert counted.exit_code == 0, counted.output
    first, second = tmp_path / "Mon.state", tmp_path / "Tue.state"
    for command in ("merge", "monitor", "compare"):
        assert "named twice" in refusal(call(command, first, first))
    said = call("merge", first, second).stdout
    assert "Note: two of the states have the same counts of " in said
    assert "rows (Monday and Tuesday). If they are the same rows, they are counted twice." in said
    done = call("monitor", first, second, "--json", "-")
    # the given names, not those of the files
    assert json.loads(done.stdout)["looks"] == ["Monday", "Tuesday"]
    assert done.stderr.count("Note: two of the states have the same counts of ") == 1
    said = refusal(call("merge", first, scores))
    assert said.startswith(
        f"merge takes counts of metrifair count, got '{scores}'; first metrifair count "
    )
