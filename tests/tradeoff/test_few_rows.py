"""`frontier("auto")` of few rows: trees and stacks are left out, and nothing of LightGBM is
printed.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from metrifair import DataError, SearchOptions, frontier
from tests.seams.tradeoff import Portfolio


def rows(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(count, 3))
    group = np.arange(count) % 2
    return x, (x[:, 0] + generator.normal(size=count) > 0).astype(int), group


@pytest.mark.parametrize("count", [30, 48])
def test_auto_of_few_rows_has_no_trees_and_prints_nothing(
    count: int, capfd: pytest.CaptureFixture[str]
) -> None:
    x, y, group = rows(count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = SearchOptions(budget=1.0)
        front = frontier(
            "auto",
            x,
            y,
            sensitive_features=group,
            strengths=[0.0, 1.0],
            random_state=0,
            search=search,
        )
    printed = capfd.readouterr()
    assert "LightGBM" not in printed.out + printed.err
    assert "Fatal" not in printed.out + printed.err
    families = {point.family for point in front.points}
    assert "linear" in families
    assert not [name for name in families if "tree" in name or "stack" in name]
    assert "Trees and stacks were left out: too few rows train a model." in front.summary


def test_trees_are_families_where_they_can_be_trained() -> None:
    pytest.importorskip("lightgbm")
    few, enough = (
        Portfolio(rows=100, classes=2, training_rows=count).families() for count in (39, 40)
    )
    assert {*enough} - {*few} == {"small_trees", "stack", "stack_with_features"}
    assert {*few} < {*enough}


@pytest.mark.parametrize("test", ["some", "all", 2.0, 0.0])
def test_shares_that_are_none_are_refused(test: Any) -> None:
    x, y, group = rows(60)
    with pytest.raises(DataError, match="share"):
        frontier("auto", x, y, sensitive_features=group, test=test)
