"""Integer scores that floating-point numbers do not distinguish are refused wherever the rows
are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from metrifair import AuditOptions, AuditState, DataError, audit, audit_file, audit_table
from tests.expected_errors import Refusals
from tests.seams.auditing import Roles, count_file

ASKED: dict[str, Any] = {"score": "p", "group": "g"}


def quick(limit: int = 1000) -> AuditOptions:
    return AuditOptions(resamples=0, permutations=0, in_memory_rows=limit)


def frame(start: int, kind: Any) -> pl.DataFrame:
    """Two groups whose scores differ by 1 everywhere: the distance is 1."""
    return pl.DataFrame({"p": pl.Series([start, start + 1] * 40, dtype=kind), "g": ["a", "b"] * 40})


CASES = {
    "Int64": (2**53, pl.Int64),
    "below": (-(2**53) - 1, pl.Int64),
    "UInt64": (2**64 - 2, pl.UInt64),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ending", ["parquet", "csv", "ndjson"])
@pytest.mark.parametrize("limit", [2_000_000, 10], ids=["in memory", "counted"])
def test_files(case: str, ending: str, limit: int, tmp_path: Path, refused: Refusals) -> None:
    path = tmp_path / f"scores.{ending}"
    getattr(frame(*CASES[case]), f"write_{ending}")(path)
    with refused(DataError):
        audit_file(path, **ASKED, options=quick(limit))
    with refused(DataError):
        count_file(
            AuditState(score_range=(-1e300, 1e300)), path, Roles.from_names(score="p", group="g")
        )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("engine", ["polars", "polars, lazy", "pandas", "DuckDB"])
@pytest.mark.parametrize("limit", [2_000_000, 10], ids=["in memory", "counted"])
def test_tables(case: str, engine: str, limit: int, refused: Refusals) -> None:
    data = frame(*CASES[case])
    with duckdb.connect() as connection:
        table = {
            "polars": data,
            "polars, lazy": data.lazy(),
            "pandas": data.to_pandas(),
            "DuckDB": connection.register("rows", data.to_arrow()).table("rows"),
        }[engine]
        with refused(DataError):
            audit_table(table, **ASKED, options=quick(limit))


def test_arrays(refused: Refusals) -> None:
    with refused(DataError):
        audit(
            None, frame(2**53, pl.Int64)["p"], sensitive_features=["a", "b"] * 40, options=quick()
        )


@pytest.mark.parametrize("limit", [2_000_000, 10], ids=["in memory", "counted"])
def test_integers_below_are_exact(limit: int, tmp_path: Path) -> None:
    data = frame(2**53 - 2, pl.Int64)
    data.write_parquet(tmp_path / "scores.parquet")
    found = audit_file(
        tmp_path / "scores.parquet", **ASKED, metrics="kolmogorov", options=quick(limit)
    )
    assert found.findings[0].value == 1.0
    assert (
        audit_table(data, **ASKED, metrics="kolmogorov", options=quick(limit)).findings[0].value
        == 1.0
    )


@pytest.mark.parametrize("kind", ["DECIMAL(38, 10)", "DECIMAL(9, 4)", "HUGEINT"])
@pytest.mark.parametrize("limit", [2_000_000, 10], ids=["in memory", "counted"])
def test_decimals_are_numbers_and_other_columns_are_not_fetched(kind: str, limit: int) -> None:
    generator = np.random.default_rng(0)
    score, weight = generator.integers(0, 9, 60), generator.integers(1, 4, 60)
    data = pl.DataFrame({"p": score, "g": ["a", "b", "c"] * 20, "w": weight})
    with duckdb.connect() as connection:
        connection.register("rows", data.to_arrow())
        query = (
            f"SELECT p::{kind} AS p, g, w::{kind} AS w, 1e30::DECIMAL(38, 5) AS unused FROM rows"
        )
        found = audit_table(connection.sql(query), **ASKED, weight="w", options=quick(limit))
    expected = audit(
        None, score, sensitive_features={"g": data["g"]}, sample_weight=weight, options=quick()
    )
    assert [one.value for one in found.findings] == pytest.approx(
        [one.value for one in expected.findings]
    )


@pytest.mark.parametrize(
    "large", [2**63, 2**70, -(2**63) - 1, 10**400], ids=["2^63", "2^70", "-2^63-1", "10^400"]
)
def test_states_keep_the_names_of_integers_beyond_64_bits(large, tmp_path):
    """As groups and labels they are names: the same in an audit of the rows, of the state, and
    of the saved state.
    """
    scores = np.linspace(0, 1, 20)
    groups = np.array([large, 1] * 10, dtype=object)
    labels = np.array([1, large, large, 1] * 5, dtype=object)
    options = AuditOptions(resamples=0, permutations=0)
    rows = audit(None, scores, sensitive_features=groups, options=options)
    state = AuditState().add(None, scores, sensitive_features=groups)
    state.save(tmp_path / "large.state")
    for found in (state, AuditState.load(tmp_path / "large.state")):
        audited = found.audit(options=options)
        assert {frozenset(one.groups) for one in audited.findings} == {frozenset({str(large), "1"})}
        assert [one.value for one in audited.findings] == pytest.approx(
            [one.value for one in rows.findings]
        )
    labeled = AuditState().add(labels, scores, sensitive_features=["a", "b"] * 10)
    assert {cell[-1] for cell in labeled.cells} == {"1", str(large)}


def test_a_range_beyond_floating_point_numbers_is_refused(refused):
    with refused(DataError):
        AuditState(score_range=(0, 10**400))
