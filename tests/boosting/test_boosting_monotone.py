"""Monotone constraints hold exactly: at every strength, for both boosters, after saving."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from metrifair import FairLGBMClassifier, FairXGBClassifier, load

SETTINGS = {"n_estimators": 25, "n_jobs": 1, "random_state": 0}
BOOSTERS = {
    "lightgbm": (FairLGBMClassifier, {"verbose": -1, "monotone_constraints": [1, -1, 0]}),
    "xgboost": (FairXGBClassifier, {"monotone_constraints": (1, -1, 0)}),
}


def violations(model, X: np.ndarray) -> int:
    """Steps along a constrained feature in which the score moves against its promise."""
    steps = np.linspace(-3, 3, 61)
    moved = np.repeat(X[:100, None, :], len(steps), axis=1)
    count = 0
    for feature, sign in ((0, 1), (1, -1)):
        rows = moved.copy()
        rows[:, :, feature] = steps
        scores = model.predict_proba(rows.reshape(-1, X.shape[1]))[:, 1].reshape(100, -1)
        count += int((sign * np.diff(scores, axis=1) < 0).sum())
    return count


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels that do not keep the constraints, so that boosters without them break them."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((800, 3))
    group = generator.random(800) < 0.4
    X[:, 0] += group
    margin = np.sin(2 * X[:, 0]) + np.cos(2 * X[:, 1]) + group
    y = margin + 0.5 * generator.standard_normal(800) > 0.5
    return X, y.astype(int), group.astype(int)


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("strength", [0.0, 0.3, 3.0, 100.0])
def test_monotone_constraints_hold_at_every_strength(
    booster: str, strength: float, rows: tuple, tmp_path: Path
) -> None:
    X, y, group = rows
    kind, constraints = BOOSTERS[booster]
    model = kind(strength, **SETTINGS, **constraints).fit(X, y, sensitive_features=group)
    assert violations(model, X) == 0
    model.save(tmp_path / "model.metrifair")
    assert violations(load(tmp_path / "model.metrifair"), X) == 0


@pytest.mark.parametrize("booster", BOOSTERS)
def test_without_constraints_they_are_violated(booster: str, rows: tuple) -> None:
    X, y, group = rows
    kind, constraints = BOOSTERS[booster]
    free = {name: value for name, value in constraints.items() if "monotone" not in name}
    model = kind(0.3, **SETTINGS, **free).fit(X, y, sensitive_features=group)
    assert violations(model, X) > 100
