"""Integers of every type train the same boosters and post-processors, and are the same columns of
files: no arithmetic wraps in the type of the user.

`test_integer_types` has batches, audits and linear models.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from metrifair import (
    BarycenterPostprocessor,
    FairLGBMClassifier,
    FairLGBMRegressor,
    FairXGBClassifier,
    FairXGBRegressor,
    ThresholdPostprocessor,
    audit_file,
    audit_table,
    baselines,
)
from tests.flat_options import flat

TYPES = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64")
N = 160
RANDOM = np.random.default_rng(4)
# Sums and products of these wrap in 8 bits, and differences wrap without a sign.
FEATURES = RANDOM.integers(0, 128, size=(N, 3))
GROUP = np.array([0, 1, 127])[RANDOM.integers(3, size=N)]
TWO_GROUPS = 127 * RANDOM.integers(2, size=N)
STRATUM = 100 * RANDOM.integers(2, size=N)
WEIGHT = RANDOM.integers(100, 128, size=N)
CLUSTER = np.arange(N) // 4
LABEL = (FEATURES[:, 0] + RANDOM.integers(0, 60, size=N) > 90).astype(int)
TARGET = RANDOM.integers(100, 128, size=N)

TREES: dict[str, Any] = {"n_estimators": 5, "random_state": 0}
CONDITIONAL = {"criterion": "conditional_statistical_parity"}
BOOSTERS: dict[str, Callable[[], Any]] = {
    "FairLGBMClassifier": lambda: FairLGBMClassifier(1.0, **CONDITIONAL, **TREES, verbose=-1),
    "FairLGBMRegressor": lambda: FairLGBMRegressor(1.0, **CONDITIONAL, **TREES, verbose=-1),
    "FairXGBClassifier": lambda: FairXGBClassifier(1.0, **CONDITIONAL, **TREES),
    "FairXGBRegressor": lambda: FairXGBRegressor(1.0, **CONDITIONAL, **TREES),
}


@pytest.mark.parametrize("booster", BOOSTERS)
def test_boosters_of_every_type_predict_the_same(booster: str) -> None:
    target = TARGET if booster.endswith("Regressor") else LABEL

    def predicted(kind: str) -> np.ndarray:
        model = BOOSTERS[booster]().fit(
            FEATURES.astype(kind),
            target.astype(kind),
            sensitive_features=GROUP.astype(kind),
            control_features=STRATUM.astype(kind),
            sample_weight=WEIGHT.astype(kind),
        )
        name = "predict" if booster.endswith("Regressor") else "predict_proba"
        return np.asarray(getattr(model, name)(FEATURES.astype(kind)))

    expected = predicted("int64")
    assert len(np.unique(expected)) > 2
    for kind in TYPES:
        assert np.array_equal(predicted(kind), expected), kind


POSTPROCESSORS: dict[str, Callable[[], Any]] = {
    "barycenter": lambda: BarycenterPostprocessor(LogisticRegression(), random_state=0),
    "barycenter of numbers": lambda: BarycenterPostprocessor(LinearRegression(), random_state=0),
    "barycenter without groups": lambda: BarycenterPostprocessor(
        LogisticRegression(), needs_group=False, random_state=0
    ),
    "thresholds": lambda: ThresholdPostprocessor(LogisticRegression(), random_state=0),
    "thresholds without groups": lambda: ThresholdPostprocessor(
        LogisticRegression(), needs_group=False, random_state=0
    ),
}


@pytest.mark.parametrize("postprocessor", POSTPROCESSORS)
def test_postprocessors_of_every_type_predict_the_same(postprocessor: str) -> None:
    of_numbers = postprocessor.endswith("numbers")

    def predicted(kind: str) -> np.ndarray:
        groups = GROUP.astype(kind)
        model = POSTPROCESSORS[postprocessor]().fit(
            FEATURES / 128,
            (TARGET if of_numbers else LABEL).astype(kind),
            sensitive_features=groups,
            sample_weight=WEIGHT.astype(kind),
            clusters=CLUSTER.astype(kind),
        )
        named = {} if postprocessor.endswith("without groups") else {"sensitive_features": groups}
        has_scores = hasattr(model, "predict_proba") and not of_numbers
        return np.asarray(
            (model.predict_proba if has_scores else model.predict)(FEATURES / 128, **named)
        )

    expected = predicted("int64")
    assert len(np.unique(expected)) > 1
    for kind in TYPES:
        assert np.array_equal(predicted(kind), expected), kind


PUBLISHED: dict[str, Callable[[], Any]] = {
    "XianPostprocessor": lambda: baselines.XianPostprocessor(LogisticRegression()),
    "ChzhenPostprocessor": lambda: baselines.ChzhenPostprocessor(LinearRegression()),
}


@pytest.mark.parametrize("postprocessor", PUBLISHED)
def test_published_postprocessors_of_every_type_predict_the_same(postprocessor: str) -> None:
    target = LABEL if postprocessor.startswith("Xian") else TARGET

    def predicted(kind: str) -> np.ndarray:
        groups = TWO_GROUPS.astype(kind)
        model = PUBLISHED[postprocessor]()
        model.fit(FEATURES / 128, target.astype(kind), sensitive_features=groups)
        return np.asarray(model.predict(FEATURES / 128, sensitive_features=groups))

    expected = predicted("int64")
    assert len(np.unique(expected)) > 1
    for kind in TYPES:
        assert np.array_equal(predicted(kind), expected), kind


# --- files and databases

ROLES: dict[str, Any] = {
    "score": "score",
    "label": "label",
    "group": "group",
    "control": "stratum",
    "weight": "weight",
    "metrics": ["kolmogorov", "energy", "wasserstein"],
    "resamples": 0,
    "permutations": 0,
    "random_state": 0,
}
COLUMNS = {
    "score": FEATURES[:, 0],
    "label": LABEL,
    "group": GROUP,
    "stratum": STRATUM,
    "weight": WEIGHT,
}
MORE_TYPES = (*TYPES, "int64")
POLARS = {kind: getattr(pl, kind.replace("int", "Int").replace("uI", "UI")) for kind in MORE_TYPES}


def rows_of(kind: str) -> pl.DataFrame:
    return pl.DataFrame(
        {name: pl.Series(values, dtype=POLARS[kind]) for name, values in COLUMNS.items()}
    )


def figures(kind: str, source: str, in_memory_rows: int, folder: Path) -> list[Any]:
    rows = rows_of(kind)
    assert set(rows.dtypes) == {POLARS[kind]}
    options = flat(in_memory_rows=in_memory_rows, **ROLES)
    if source == "database":
        result = audit_table(duckdb.sql("select * from rows"), **options)
    elif source == "table":
        result = audit_table(rows.lazy(), **options)
    else:
        path = folder / f"{kind}.{source}"
        rows.write_parquet(path) if source == "parquet" else rows.write_ipc(path)
        result = audit_file(path, **options)
    return [(finding.metric, finding.value) for finding in result.findings]


@pytest.mark.parametrize("in_memory_rows", [10_000, 20], ids=["in memory", "out of core"])
@pytest.mark.parametrize("source", ["parquet", "arrow", "table", "database"])
def test_files_and_tables_of_every_type_have_the_same_figures(
    source: str, in_memory_rows: int, tmp_path: Path
) -> None:
    expected = figures("int64", source, in_memory_rows, tmp_path)
    assert len(expected) > 3
    for kind in TYPES:
        found = figures(kind, source, in_memory_rows, tmp_path)
        assert [metric for metric, _ in found] == [metric for metric, _ in expected]
        assert [value for _, value in found] == pytest.approx(
            [value for _, value in expected], rel=1e-12
        ), kind
