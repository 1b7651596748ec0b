"""Numbers that boosters cut into levels: a weight is a repetition, and a level has the mean of
its rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from metrifair.errors import MetrifairWarning
from tests.seams.boosting import LEVELS_OF_NUMBERS, leveled_dependence
from tests.seams.problem import Dependence, Sides


def cut(values: np.ndarray, weight: np.ndarray | None = None) -> Any:
    rows = len(values)
    weights = None if weight is None else torch.as_tensor(weight).double()
    side = Sides(
        torch.arange(rows),
        (rows,),
        (),
        weights,
        torch.ones(1).double(),
        dependence=Dependence((0,), scale=1.0),
    )
    with pytest.warns(MetrifairWarning, match="is cut into 256 levels"):
        return leveled_dependence(side, torch.as_tensor(values)[:, None], "rows")


def skewed(rows: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Different values with ties among them, and weights that grow with them."""
    generator = np.random.default_rng(0)
    values = np.round(generator.exponential(30.0, rows), 1)
    return values, 1.0 + np.minimum(20, values // 5)


@pytest.mark.oracle("booster levels")
def test_weights_are_repetitions() -> None:
    values, weight = skewed()
    rows = np.repeat(np.arange(len(values)), weight.astype(int))
    weighted, repeated = cut(values, weight), cut(values[rows])
    np.testing.assert_array_equal(weighted.level[rows], repeated.level)
    np.testing.assert_allclose(weighted.distance, repeated.distance)


@pytest.mark.parametrize("weighted", [False, True])
def test_levels_have_about_equal_weight_and_the_mean_of_their_rows(weighted: bool) -> None:
    values, weight = skewed()
    weight = weight if weighted else np.ones(len(values))
    found = cut(values, weight if weighted else None)
    order = np.argsort(values, kind="stable")
    assert (np.diff(found.level[order]) >= 0).all()
    held = np.bincount(found.level, weight)
    heaviest = np.bincount(np.unique(values, return_inverse=True)[1], weight).max()
    assert held.max() <= weight.sum() / LEVELS_OF_NUMBERS + heaviest
    means = np.array(
        [
            np.average(values[own], weights=weight[own])
            for own in (found.level == k for k in range(len(held)))
        ]
    )
    np.testing.assert_allclose(found.distance, np.abs(means[:, None] - means))
