"""`metrifair find-groups`: the search of a file, its files and its refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from metrifair import find_groups


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Farm workers are rarely selected; five rows have no score and three no label."""
    rng = np.random.default_rng(0)
    job = rng.choice(["Sales", "Tech", "Farm"], 2_000)
    table = pl.DataFrame(
        {
            "job": job,
            "sex": rng.choice(["f", "m"], 2_000),
            "p": (rng.random(2_000) < np.where(job == "Farm", 0.4, 0.7)).astype(int),
            "y": rng.choice(["no", "yes"], 2_000),
        }
    ).with_row_index("row")
    table = table.with_columns(
        p=pl.when(pl.col("row") < 5).then(None).otherwise(pl.col("p")),
        y=pl.when(pl.col("row") >= 1_997).then(pl.lit("NA")).otherwise(pl.col("y")),
    )
    table.write_csv(tmp_path / "scores.csv")
    return tmp_path / "scores.csv"


def test_the_command_is_the_function(call: Any, file: Path, tmp_path: Path) -> None:
    done = call(
        "find-groups", file, "--score", "p", "--label", "y", "--outcome", "missed-positives",
        "--among", "job", "--group", "sex", "--min-rows", "40",
        "--json", tmp_path / "found.json", "--html", tmp_path / "found.html",
        "--output", tmp_path / "found.csv",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    table = pl.read_csv(file).drop_nulls("p").filter(pl.col("y") != "NA")
    search = find_groups(
        table["y"],
        table["p"],
        table.select("job"),
        sensitive_features=table.select("sex"),
        outcome="missed positives",
        min_rows=40,
    )
    content = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert content["worse"] == json.loads(search.to_json())["worse"]
    assert content["provenance"]["left_out"] == {"missing_score": 8}
    assert content["provenance"]["call"].startswith("metrifair find-groups scores.csv --score p")
    assert all(sentence in done.output for sentence in search.summary.splitlines())
    assert "job=Farm" in done.output
    assert "job=Farm" in (tmp_path / "found.html").read_text(encoding="utf-8")
    assert len(pl.read_csv(tmp_path / "found.csv")) == len(search.record.worse) > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "pass the columns to search: --among COLUMN, or --group COLUMN"),
        (["--among", "jbo"], "job"),
        (["--among", "job", "--outcome", "missed-positives"], "use --label COLUMN"),
        (["--among", "job", "--min-rows", "1999"], "use --min-rows NUMBER, a smaller number"),
    ],
)
def test_refusals_name_options(call: Any, file: Path, options: list[str], message: str) -> None:
    done = call("find-groups", file, "--score", "p", *options)
    assert done.exit_code == 2
    assert message in done.output


def test_an_audit_with_find_groups_has_the_search_of_the_same_rows(
    call: Any, file: Path, tmp_path: Path
) -> None:
    done = call(
        "audit", file, "--score", "p", "--label", "y", "--group", "sex",
        "--find-groups", "missed-positives", "--among", "job",
        "--json", tmp_path / "audit.json", "--html", tmp_path / "audit.html",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    searched = call(
        "find-groups", file, "--score", "p", "--label", "y", "--group", "sex",
        "--outcome", "missed-positives", "--among", "job", "--json", tmp_path / "found.json",
    )  # fmt: skip
    assert searched.exit_code == 0, searched.output
    content = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert content["group_search"]["worse"] == found["worse"] != []
    assert content["group_search"]["largest_gaps"] == found["largest_gaps"]
    assert content["provenance"]["columns"]["among"] == ["job"]
    assert "Search for groups: of " in done.output
    assert "Worse by at most" in done.output
    assert 'id="group-search"' in (tmp_path / "audit.html").read_text(encoding="utf-8")


def test_an_audit_searches_decisions_bands_and_clusters_as_it_counts_them(
    call: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    age = rng.integers(18, 70, 1_500)
    approved = rng.random(1_500) < np.where(age > 50, 0.3, 0.7)
    table = pl.DataFrame(
        {
            "age": age,
            "decision": np.where(approved, "approved", "declined"),
            "person": [f"p{number}" for number in range(1_500)],
        }
    )
    table.write_csv(tmp_path / "decisions.csv")
    done = call(
        "audit", tmp_path / "decisions.csv", "--score", "decision", "--group", "age",
        "--favorable-decision", "approved", "--cuts", "age=30,50", "--cluster", "person",
        "--find-groups", "selected", "--json", tmp_path / "audit.json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    content = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    search = content["group_search"]
    group = search["worse"][0]
    assert [part["value"] for part in group["conditions"]] == [">50"]
    assert group["figure"] == pytest.approx(approved[age > 50].mean())
    assert search["clusters"] == 1_500


def test_an_audit_by_a_standard_shows_the_search_too(call: Any, file: Path, tmp_path: Path) -> None:
    done = call(
        "audit", file, "--score", "p", "--group", "sex", "--standard", "four-fifths",
        "--find-groups", "selected", "--among", "job", "--html", tmp_path / "rates.html",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "Search for groups: of " in done.output
    assert 'id="group-search"' in (tmp_path / "rates.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--group", "sex", "--among", "job"], "--among needs --find-groups OUTCOME"),
        (["--group", "sex", "--find-groups", "rejected"], "'selected', 'missed-positives'"),
        (["--group", "sex", "--find-groups", "selected", "--among", "jbo"], "jbo"),
        (
            ["--group", "sex", "--find-groups", "selected", "--score", "y"],
            "searches one --score, got several",
        ),
        (
            ["--group", "sex", "--find-groups", "selected", "--favorable", "low"],
            "--find-groups compares high scores as favorable",
        ),
        (["--group", "sex", "--find-groups", "missed-positives"], "use --label COLUMN"),
    ],
)
def test_refusals_of_an_audit_name_options(
    call: Any, file: Path, options: list[str], message: str
) -> None:
    done = call("audit", file, "--score", "p", *options)
    assert done.exit_code == 2
    assert message in done.output


def test_a_search_of_standard_input_is_refused(call: Any) -> None:
    options = ["--score", "p", "--group", "sex", "--find-groups", "selected"]
    done = call("audit", "-", *options)
    assert done.exit_code == 2
    assert "FILE must be a file or a pattern of files" in done.output
