"""The solver against the best constant predictor, whose objective has a closed form."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import energy
from sklearn.metrics import log_loss

from metrifair import FairClassifier, FairRegressor

pytestmark = pytest.mark.filterwarnings("ignore:the model predicts the same")

STRENGTHS = [0.5, 3.0, 5.0, 20.0, 50.0, 300.0, 1e4]


def rows(seed: int) -> tuple[np.ndarray, ...]:
    """Three groups; whatever tells the label tells the group, so that a constant wins from some
    strength on.
    """
    generator = np.random.default_rng(seed)
    group = generator.integers(0, 3, 120)
    X = group[:, None] * [1.0, 0.7] + generator.normal(size=(120, 2))
    target = X[:, 0] + generator.normal(size=120)
    return X, target, group, generator.integers(1, 4, 120).astype(float)


def distance(score: np.ndarray, group: np.ndarray, weight: np.ndarray) -> float:
    """The mean energy distance of all pairs of groups, pair of rows by pair of rows."""
    sides = [(score[group == code], weight[group == code]) for code in range(3)]
    pairs = [(0, 1), (0, 2), (1, 2)]
    return float(
        np.mean([energy(sides[a][0], sides[b][0], sides[a][1], sides[b][1]) for a, b in pairs])
    )


@pytest.mark.oracle("linear models")
@pytest.mark.extended
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("strength", STRENGTHS)
def test_no_classifier_is_worse_than_the_constant(strength: float, weighted: bool) -> None:
    X, target, group, weight = rows(0)
    label, weight = (target > 1).astype(int), weight if weighted else np.ones(len(X))
    model = FairClassifier(strength, model="linear").fit(
        X, label, sensitive_features=group, sample_weight=weight
    )
    chance = model.predict_proba(X)[:, 1]
    height = log_loss(label, chance, sample_weight=weight) + strength * distance(
        chance, group, weight
    )
    rate = float(np.average(label, weights=weight))
    entropy = -rate * np.log(rate) - (1 - rate) * np.log(1 - rate)
    assert height <= entropy + 1e-9
    if strength >= 1e4:
        np.testing.assert_allclose(chance, rate, atol=1e-6)


@pytest.mark.parametrize("strength", STRENGTHS)
def test_no_regression_is_worse_than_the_constant(strength: float) -> None:
    X, target, group, weight = rows(1)
    model = FairRegressor(strength, model="linear").fit(
        X, target, sensitive_features=group, sample_weight=weight
    )
    found, mean = model.predict(X), float(np.average(target, weights=weight))
    height = float(np.average((found - target) ** 2, weights=weight)) + strength * distance(
        found, group, weight
    )
    assert height <= float(np.average((target - mean) ** 2, weights=weight)) * (1 + 1e-9)
    if strength >= 1e4:
        np.testing.assert_allclose(found, mean, atol=1e-6)
