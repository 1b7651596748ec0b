"""Counts by states, files and databases against loops over the rows: thresholds at a score,
sums with weights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from metrifair import AuditOptions, AuditState, audit_file, audit_table
from tests.seams.auditing import (
    DatabaseTable,
    Roles,
    TableRows,
    bins,
    count_file,
    count_table,
    state_counts,
    state_rows,
)

ROLES = Roles.from_names(score="p", group="g", label="y", weight="w")


def frame(digits: int = 1, rows: int = 400, *, single: bool = False) -> pl.DataFrame:
    """Three groups, two labels, scores with ties (many of them at a threshold) and weights of
    four sizes.
    """
    generator = np.random.default_rng(0)
    score = generator.random(rows).round(digits)
    return pl.DataFrame(
        {
            "p": score.astype(np.float32) if single else score,
            "g": generator.choice(["a", "b", "c"], rows),
            "y": generator.integers(0, 2, rows),
            "w": generator.integers(1, 5, rows) / 4,
        }
    )


def counted_by(
    way: str, data: pl.DataFrame, state: AuditState, folder: Path, roles: Roles
) -> AuditState:
    if way == "rows":
        weight = None if roles.weight is None else data["w"]
        keys = {
            "sensitive_features": data.select("g"),
            "y_true": data["y"],
            "sample_weight": weight,
        }
        return state.add(y_pred=data["p"], **keys)  # type: ignore[arg-type]
    if way == "file":
        data.write_parquet(folder / "rows.parquet")
        count_file(state, folder / "rows.parquet", roles)
        return state
    with duckdb.connect() as connection:
        table = connection.register("rows", data.to_arrow()).table("rows")
        count_table(state, DatabaseTable("rows", table), roles)
    return state


@pytest.mark.oracle("decisions of a state")
@pytest.mark.parametrize("way", ["rows", "file", "DuckDB"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("threshold", "single"), [("auto", False), (0.3, False), (0.7, True)])
def test_scores_at_the_threshold_are_positive_decisions(
    way: str, weighted: bool, threshold: Any, single: bool, tmp_path: Path
) -> None:
    data = frame(single=single)
    state = AuditState(threshold=threshold)
    roles = ROLES if weighted else Roles.from_names(score="p", group="g", label="y")
    state = counted_by(way, data, state, tmp_path, roles)
    at = round(10 * (0.5 if threshold == "auto" else threshold))
    expected: dict[tuple[Any, ...], float] = {}
    for score, group, label, weight in data.rows():
        amount = weight if weighted else 1.0
        expected[group, label] = expected.get((group, label), 0.0) + amount * (
            round(10 * score) >= at
        )
    assert dict(zip(state.cells, state.selected, strict=True)) == pytest.approx(expected)
    assert sum(round(10 * score) == at for score in data["p"]) > 20


@pytest.mark.oracle("counts of an engine")
@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.extended), True])
def test_sums_of_an_engine_are_those_of_its_rows(
    weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By cell and bin: rows, weight, ends, and the sum of weight x position."""
    monkeypatch.setattr(bins, "_MOST_BINS", 64)
    data, roles = frame(3), ROLES if weighted else Roles.from_names(score="p", group="g", label="y")
    with duckdb.connect() as connection:
        table = connection.register("rows", data.to_arrow()).table("rows")
        rows = TableRows.of(DatabaseTable("the table", table), roles)
        rows.survey(0.5)
        binned = rows.count()
    found = binned.bins
    assert len(data) > len(found)
    names = [level.values for level in rows.levels]
    for number in range(len(found)):
        for place, (group, label) in enumerate(rows.cells):
            own = data.filter(
                pl.col("p").is_between(found.low[number], found.high[number]),
                pl.col("g") == names[0][group - 1],
                pl.col("y") == names[1][label - 1],
            )
            weight = own["w"].to_numpy() if weighted else np.ones(len(own))
            position = (own["p"].to_numpy() - found.scale.low) * found.scale.inverse
            assert found.counts[number, place] == pytest.approx(weight.sum())
            assert found.moments[number, place] == pytest.approx(float(weight @ position), abs=1e-9)
    assert int(found.rows.sum()) == len(data)


@pytest.mark.oracle("counts of a state")
@pytest.mark.parametrize("way", ["rows", "file", "DuckDB"])
@pytest.mark.parametrize("atoms", [2**12, 20])
def test_weighted_sums_of_a_state_are_those_of_its_rows(
    way: str, atoms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exact scores, and bins of the grid: the moment is the sum of weight x position in both."""
    for module in (state_counts, state_rows):
        monkeypatch.setattr(module, "MOST_ATOMS", atoms)
    data = frame(3)
    counts = (state := counted_by(way, data, AuditState(), tmp_path, ROLES)).counts
    assert counts is not None
    assert counts.exact == (atoms > 1000)
    for place, (group, label) in enumerate(state.cells):
        own = data.filter(pl.col("g") == group, pl.col("y") == label)
        entries = counts.cell == place
        assert counts.weight[entries].sum() == pytest.approx(own["w"].sum())
        # Scores from 0 to 1 have their halves as positions: the unit of a scale is a power of two
        # above the range.
        scale = state_counts.StateGrid.between(0.0, 1.0).scale.inverse
        assert counts.moment[entries].sum() == pytest.approx(
            float((own["w"] * own["p"]).sum()) * scale
        )
        assert counts.rows[entries].sum() == len(own)


@pytest.mark.oracle("decisions of files and tables")
@pytest.mark.parametrize("entry", ["file", "table"])
@pytest.mark.parametrize("in_memory_rows", [0, 1000])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("threshold", "single"), [(0.5, False), (0.3, False), (0.7, True)])
def test_rates_of_audits_count_scores_at_the_threshold(
    entry: str, in_memory_rows: int, weighted: bool, threshold: float, single: bool, tmp_path: Path
) -> None:
    """In memory and out of core alike: rows, selection rates and true positive rates are those
    of a loop.
    """
    data, at = frame(single=single), round(10 * threshold)
    options = AuditOptions(resamples=0, permutations=0, in_memory_rows=in_memory_rows)
    asked: dict[str, Any] = {
        "score": "p",
        "group": "g",
        "label": "y",
        "threshold": threshold,
        "options": options,
    }
    asked |= {"weight": "w"} if weighted else {}
    if entry == "file":
        data.write_parquet(tmp_path / "rows.parquet")
        (table,) = audit_file(tmp_path / "rows.parquet", **asked).decisions
    else:
        with duckdb.connect() as connection:
            (table,) = audit_table(
                connection.register("rows", data.to_arrow()).table("rows"), **asked
            ).decisions
    assert {rate.group for rate in table.rates} == {"a", "b", "c"}
    for rate in table.rates:
        rows = [
            (round(10 * p) >= at, y, w if weighted else 1.0)
            for p, g, y, w in data.rows()
            if g == rate.group
        ]
        assert rate.size == len(rows)
        for found, own in (
            (rate.selection_rate, rows),
            (rate.true_positive_rate, [row for row in rows if row[1]]),
        ):
            assert found == pytest.approx(
                sum(w for up, _, w in own if up) / sum(w for *_, w in own)
            )
