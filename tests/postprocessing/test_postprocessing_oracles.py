"""Post-processors against closed forms and enumeration: shares of groups in a barycenter, slack
of one row.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from metrifair import BarycenterPostprocessor, ThresholdPostprocessor


class Same(RegressorMixin, BaseEstimator):
    """A fitted regressor that predicts the only column."""

    def fit(self, X: Any, y: Any) -> Same:
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(X)[:, 0]

    def __sklearn_is_fitted__(self) -> bool:
        return True


class SameChance(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose probability of class 1 is the only column."""

    classes_ = np.array([0, 1])

    def fit(self, X: Any, y: Any) -> SameChance:
        return self

    def predict_proba(self, X: Any) -> Any:
        chance = np.asarray(X)[:, 0]
        return np.stack([1 - chance, chance], axis=1)

    def predict(self, X: Any) -> Any:
        return (np.asarray(X)[:, 0] >= 0.5).astype(int)

    def __sklearn_is_fitted__(self) -> bool:
        return True


@pytest.mark.oracle("barycenter")
@pytest.mark.parametrize("weights", [None, (1.0, 1.0, 1.0), (3.0, 0.5, 1.0)])
@pytest.mark.parametrize("tolerance", [0.0, 0.25])
def test_shifted_groups_meet_at_the_mean_shift_by_their_shares(
    weights: tuple[float, ...] | None, tolerance: float
) -> None:
    """Three groups with one shape and different shifts: the barycenter has that shape, and the
    mean of the shifts.
    """
    shape, copies, shifts = (
        np.array([0.0, 1.0, 1.5, 4.0]),
        np.array([1, 2, 5]),
        np.array([0.0, 6.0, -1.0]),
    )
    group = np.repeat([0, 1, 2], 4 * copies)
    base = np.concatenate([np.repeat(shape, count) for count in copies])
    weight = None if weights is None else np.array(weights)[group]
    amounts = 4 * copies * (1.0 if weights is None else np.array(weights))
    share = amounts / amounts.sum()
    values = (base + shifts[group])[:, None]
    model = BarycenterPostprocessor(Same(), prefit=True, tolerance=tolerance)
    model.fit(values, sensitive_features=group, sample_weight=weight)
    np.testing.assert_allclose(model.shares_, share)
    fair = base + float(share @ shifts)
    found = model.predict(values, sensitive_features=group)
    np.testing.assert_allclose(found, tolerance * values[:, 0] + (1 - tolerance) * fair)


SETS = {"statistical_parity": (None,), "equal_opportunity": (1,), "equalized_odds": (0, 1)}


@pytest.mark.oracle("thresholds")
@pytest.mark.parametrize("utility", ["accuracy", "balanced_accuracy"])
@pytest.mark.parametrize("criterion", SETS)
@pytest.mark.parametrize("tolerance", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_thresholds_are_the_best_whose_rates_differ_by_one_row_more_than_the_tolerance(
    utility: str, criterion: str, tolerance: float, seed: int
) -> None:
    """All tuples of thresholds of three groups, with tied scores; a score at a threshold is
    accepted.
    """
    generator = np.random.default_rng(seed)
    group = np.repeat([0, 1, 2], [7, 9, 11])
    label = (generator.random(len(group)) < 0.3).astype(int)
    label[[0, 7, 16]], label[[1, 8, 17]] = 0, 1
    score = np.round(0.15 * label + 0.1 * group + 0.6 * generator.random(len(group)), 1)
    sets = [
        np.ones(len(group), dtype=bool) if one is None else label == one for one in SETS[criterion]
    ]
    slack = 1 / min((own & (group == code)).sum() for own in sets for code in range(3))

    def judge(accepted: np.ndarray) -> tuple[float, float]:
        rates = [[accepted[own & (group == code)].mean() for code in range(3)] for own in sets]
        wrong = accepted != label
        parts = [wrong] if utility == "accuracy" else [wrong[label == 0], wrong[label == 1]]
        return float(np.ptp(rates, axis=1).max()), float(np.mean([part.mean() for part in parts]))

    cuts = [*np.unique(score), np.inf]
    every = [judge(score >= np.array(chosen)[group]) for chosen in product(cuts, repeat=3)]
    least = min(loss for apart, loss in every if apart <= tolerance + slack + 1e-9)
    model = ThresholdPostprocessor(
        SameChance(), prefit=True, tolerance=tolerance, criterion=criterion, utility=utility
    )
    model.fit(score[:, None], label, sensitive_features=group)
    apart, loss = judge(model.predict(score[:, None], sensitive_features=group) == 1)
    assert apart <= tolerance + slack + 1e-9
    assert loss == pytest.approx(least)
