"""A model that is fair to the rows that trained it, and to no others, is marked; others are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from metrifair import FairClassifier, frontier

ROWS = 600
FOLDS = 5


class Memorizing(ClassifierMixin, BaseEstimator):
    """Scores are the first feature, which differs between groups; with a strength, rows that it
    was trained on have random scores.
    """

    def __init__(self, strength: float = 0.0) -> None:
        self.strength = strength

    def fit(self, X: Any, y: Any, sensitive_features: Any = None) -> Memorizing:
        self.classes_ = np.unique(y)
        self.seen_ = {row.tobytes() for row in np.asarray(X)}
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        X = np.asarray(X)
        score = 1 / (1 + np.exp(-X[:, 0]))
        if self.strength > 0:
            seen = np.array([row.tobytes() in self.seen_ for row in X])
            score = np.where(seen, np.random.default_rng(0).random(len(X)), score)
        return np.column_stack([1 - score, score])

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[(self.predict_proba(X)[:, 1] >= 0.5).astype(int)]


def people(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    group = generator.random(ROWS) < 0.4
    X = generator.standard_normal((ROWS, 2))
    X[:, 0] += 1.5 * group
    y = (X[:, 0] + generator.logistic(size=ROWS) > 0.5).astype(int)
    return X, y, group.astype(int)


@pytest.mark.oracle("Point.overfit")
@pytest.mark.parametrize("seed", range(3))
def test_a_model_that_is_fair_to_its_training_rows_only_is_marked(seed: int) -> None:
    X, y, group = people(seed)
    front = frontier(
        Memorizing(), X, y, sensitive_features=group, strengths=[0.0, 1.0], random_state=0
    )
    assert [point.overfit for point in front.points] == [False, True]
    (note,) = (note for note in front.record.notes if note.kind == "overfit")
    assert note.facts["models"] == 1
    assert note.facts["value"] == 1.0
    assert note.facts["training"] < 0.15


def test_models_that_treat_all_rows_alike_are_hardly_ever_marked() -> None:
    """Of 60 models, one is expected at most."""
    marked = 0
    for seed in range(10):
        X, y, group = people(seed)
        front = frontier(
            FairClassifier(model="linear"),
            X,
            y,
            sensitive_features=group,
            strengths=[0.0, 0.3, 1.0, 3.0, 10.0, 30.0],
            random_state=0,
        )
        marked += sum(point.overfit for point in front.points)
    assert marked <= 3
