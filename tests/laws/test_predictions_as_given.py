"""Predictions mean the same however they are written: in any order of named columns, in any type of
number.

The expected figures are computed here from integers: scores are hundredths, so that no rounding
decides anything.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import permutations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from metrifair import Audit, AuditState, DataError, audit, audit_file, audit_table, unfairness
from tests.flat_options import flat

GENERATOR = np.random.default_rng(3)
N = 400
HUNDREDTHS = GENERATOR.integers(0, 101, N)
GROUP = np.where(GENERATOR.random(N) < 0.4, "f", "m")
QUICK: dict[str, Any] = {"resamples": 0, "permutations": 0, "random_state": 0}
THRESHOLD = 70  # hundredths; a score of exactly 0.7 exists
SELECTED = {group: int((HUNDREDTHS[group == GROUP] >= THRESHOLD).sum()) for group in ("f", "m")}
assert (HUNDREDTHS == THRESHOLD).any()

NUMBERS: dict[str, Callable[[], Any]] = {
    "float64": lambda: HUNDREDTHS / 100,
    "float32": lambda: (HUNDREDTHS / 100).astype(np.float32),
    "float16": lambda: (HUNDREDTHS / 100).astype(np.float16),
    "list": (HUNDREDTHS / 100).tolist,
    "Decimal": lambda: [Decimal(int(part)) / 100 for part in HUNDREDTHS],
    "polars Float32": lambda: pl.Series((HUNDREDTHS / 100).tolist(), dtype=pl.Float32),
    "pandas Float32": lambda: pd.Series(HUNDREDTHS / 100, dtype="Float32"),
}


def selected(result: Audit) -> dict[str, int | None]:
    return {rate.group: rate.selected for rate in result.decisions[0].rates}


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_score_at_the_threshold_is_selected_in_every_type_of_number(kind: str) -> None:
    result = audit(
        None, NUMBERS[kind](), sensitive_features=GROUP, threshold=THRESHOLD / 100, **flat(**QUICK)
    )
    assert selected(result) == SELECTED


def test_integer_scores_are_compared_with_an_integer_threshold() -> None:
    result = audit(None, HUNDREDTHS, sensitive_features=GROUP, threshold=THRESHOLD, **flat(**QUICK))
    assert selected(result) == SELECTED


def frame(dtype: Any) -> pl.DataFrame:
    return pl.DataFrame({"p": pl.Series(HUNDREDTHS / 100).cast(dtype), "sex": GROUP})


@pytest.mark.parametrize("in_memory_rows", [10_000, 0])
@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_score_at_the_threshold_is_selected_from_files(
    ending: str, dtype: Any, in_memory_rows: int, tmp_path: Path
) -> None:
    path = tmp_path / f"scores.{ending}"
    frame(dtype).write_csv(path) if ending == "csv" else frame(dtype).write_parquet(path)
    columns = {"score": "p", "group": "sex", "threshold": THRESHOLD / 100}
    assert (
        selected(audit_file(path, **flat(in_memory_rows=in_memory_rows, **columns, **QUICK)))
        == SELECTED
    )


@pytest.mark.parametrize("in_memory_rows", [10_000, 0])
@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32, pl.Decimal(5, 2)])
def test_a_score_at_the_threshold_is_selected_from_tables(dtype: Any, in_memory_rows: int) -> None:
    rows = frame(dtype)
    columns = {
        "score": "p",
        "group": "sex",
        "threshold": THRESHOLD / 100,
        "in_memory_rows": in_memory_rows,
    }
    assert selected(audit_table(rows.lazy(), **flat(**columns, **QUICK))) == SELECTED
    assert (
        selected(audit_table(duckdb.sql("select * from rows"), **flat(**columns, **QUICK)))
        == SELECTED
    )


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_score_at_the_threshold_is_selected_from_states(kind: str) -> None:
    state = AuditState(threshold=THRESHOLD / 100).add(
        None, NUMBERS[kind](), sensitive_features=GROUP
    )
    assert selected(state.audit(random_state=0)) == SELECTED


CLASSES = ("a", "b", "c")
LABEL = GENERATOR.choice(CLASSES, N)
RAW = GENERATOR.random((N, 3)) + 3 * (LABEL[:, None] == np.array(CLASSES))
PROBABILITY = dict(zip(CLASSES, (RAW / RAW.sum(1, keepdims=True)).T, strict=True))


def kolmogorov(score: np.ndarray) -> float:
    f, m = (np.sort(score[group == GROUP]) for group in ("f", "m"))
    below = [np.searchsorted(side, score, side="right") / len(side) for side in (f, m)]
    return float(np.abs(below[0] - below[1]).max())


@pytest.mark.parametrize("order", list(permutations(CLASSES)), ids="".join)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_named_columns_are_matched_to_classes_by_name(library: Any, order: tuple[str, ...]) -> None:
    table = library({name: PROBABILITY[name] for name in order})
    result = audit(
        LABEL, table, sensitive_features=GROUP, criteria="statistical_parity", **flat(**QUICK)
    )
    distances = [one.value for one in result.findings if one.metric == "kolmogorov"]
    assert distances == pytest.approx(
        [kolmogorov(PROBABILITY[name]) for name in CLASSES], abs=1e-12
    )
    given = {"sensitive_features": GROUP, "metric": "kolmogorov"}
    assert unfairness(LABEL, table, **given) == pytest.approx(max(distances), abs=1e-12)


@pytest.mark.parametrize("order", [("no", "yes"), ("yes", "no")])
def test_the_positive_class_is_found_among_two_named_columns(order: tuple[str, str]) -> None:
    positive = HUNDREDTHS > 50
    score = {"yes": HUNDREDTHS / 100, "no": 1 - HUNDREDTHS / 100}
    label = np.where(positive, "yes", "no")
    result = audit(
        label,
        pd.DataFrame({name: score[name] for name in order}),
        sensitive_features=GROUP,
        **flat(**QUICK),
    )
    assert [
        group.auc.value for group in result.record.by_group[0].groups if group.auc is not None
    ] == [1.0, 1.0]


def test_columns_named_by_no_class_are_refused() -> None:
    table = pd.DataFrame({"x": PROBABILITY["a"], "y": PROBABILITY["b"], "z": PROBABILITY["c"]})
    with pytest.raises(DataError, match="'a'"):
        audit(LABEL, table, sensitive_features=GROUP, **flat(**QUICK))


@pytest.mark.parametrize("name", ["p", "no", "anything"])
def test_a_single_column_is_the_score_whatever_its_name(name: str) -> None:
    score = HUNDREDTHS / 100
    label = np.where(HUNDREDTHS > 50, "yes", "no")
    for table in (pd.DataFrame({name: score}), pl.DataFrame({name: score})):
        result = audit(label, table, sensitive_features=GROUP, **flat(**QUICK))
        assert [
            group.auc.value for group in result.record.by_group[0].groups if group.auc is not None
        ] == [1.0, 1.0]
