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
