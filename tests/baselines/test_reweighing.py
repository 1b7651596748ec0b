"""Reweighing: the worked table, independence under the weights, learners with and without
weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from test_fairkde import simulated

from metrifair.baselines import ReweighingClassifier
from metrifair.errors import DataError
from metrifair.estimators import FairClassifier
from tests.flat_options import with_penalty
from tests.seams.baselines import independence_weights


def test_the_worked_table() -> None:
    y, a = np.array([1, 0, 0, 0, 1, 1, 1, 1, 0, 0]), np.array([0] * 4 + [1] * 6)
    weights = independence_weights(y, a)
    assert weights.tolist() == pytest.approx([2] + [2 / 3] * 3 + [0.75] * 4 + [1.5] * 2)
    assert weights.sum() == pytest.approx(10)
    for group in (0, 1):
        assert np.average(y[a == group], weights=weights[a == group]) == pytest.approx(0.5)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 4), st.integers(2, 4), st.integers(0, 2**32 - 1), st.booleans())
def test_label_and_group_are_independent(
    classes: int, groups: int, seed: int, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    cells = np.array([(k, g) for k in range(classes) for g in range(groups)])
    y, a = np.concatenate([cells, cells[rng.integers(len(cells), size=30)]]).T
    prior = rng.random(len(y)) + 0.1 if weighted else None
    weights = independence_weights(y, a, prior)
    counts = np.zeros((classes, groups))
    np.add.at(counts, (y, a), weights)
    np.testing.assert_allclose(counts, np.outer(counts.sum(1), counts.sum(0)) / counts.sum())
    before = np.ones(len(y)) if prior is None else prior
    np.testing.assert_allclose(counts.sum(0), np.bincount(a, before))  # the margins stay
    np.testing.assert_allclose(counts.sum(1), np.bincount(y, before))


def test_independent_labels_have_weights_1() -> None:
    assert (
        independence_weights(np.array([1, 0, 1, 0, 1, 0]), np.array([1, 1, 0, 0, 0, 0])).tolist()
        == [1] * 6
    )


def test_an_empty_cell_is_an_error() -> None:
    with pytest.raises(DataError, match="infinite"):
        independence_weights(np.array([1, 0, 1]), np.array([0, 0, 1]))
    with pytest.raises(DataError, match="'b'"):
        ReweighingClassifier(LogisticRegression()).fit(
            [[0.0], [1.0], [2.0], [3.0]], [1, 0, 1, 1], sensitive_features=["a", "a", "b", "b"]
        )


def test_the_learner_gets_the_weights() -> None:
    x, y, a = simulated(200)
    y = np.where(y == 1, "yes", "no")
    y[np.arange(0, 200, 9)] = "maybe"  # any number of classes
    model = ReweighingClassifier(LogisticRegression()).fit(x, y, sensitive_features=a)
    by_hand = LogisticRegression().fit(
        x, y, sample_weight=independence_weights(np.unique(y, return_inverse=True)[1], a)
    )
    np.testing.assert_array_equal(model.predict(x), by_hand.predict(x))
    np.testing.assert_allclose(model.predict_proba(x), by_hand.predict_proba(x), atol=1e-6)


def test_prior_weights_are_repeated_rows() -> None:
    x, y, a = simulated(80)
    weight = np.arange(80) % 3
    times = np.repeat(np.arange(80), weight)
    model = ReweighingClassifier(LogisticRegression()).fit(
        x, y, sensitive_features=a, sample_weight=weight
    )
    repeated = ReweighingClassifier(LogisticRegression()).fit(
        x[times], y[times], sensitive_features=a[times]
    )
    np.testing.assert_allclose(model.decision_function(x), repeated.decision_function(x), atol=1e-5)


def test_a_learner_without_weights_gets_rows_drawn_by_them() -> None:
    """A classifier that only counts: the drawn share of each cell is the weighted one."""
    x, y, a = simulated(4000)

    class Counting(KNeighborsClassifier):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            self.seen_ = X, y
            return super().fit(X, y)

    model = ReweighingClassifier(Counting(), random_state=0).fit(x, y, sensitive_features=a)
    seen, labels = model.estimator_.seen_
    for group in (0, 1):
        assert labels[seen[:, 2] == group].mean() == pytest.approx(y.mean(), abs=0.04)
        assert abs(y[a == group].mean() - y.mean()) > 0.15


def test_a_network_of_several_classes() -> None:
    x, y, a = simulated(120)
    y = y + (x[:, 0] > 1.5)
    model = ReweighingClassifier(random_state=0).fit(x, y, sensitive_features=a)
    assert model.predict_proba(x).shape == (120, 3)
    assert (model.predict(x) == y).mean() > 0.7


def test_a_network_lowers_the_weighted_loss() -> None:
    """Full batches: the same as FairClassifier with those weights."""
    x, y, a = simulated(120)
    # Left to itself ours would cool down towards the end.
    steps = {
        "model": "linear",
        "epochs": 40,
        "learning_rate_decay": 1.0,
        "random_state": 0,
        "device": "cpu",
    }
    model = ReweighingClassifier(FairClassifier(0.0, **with_penalty(**steps))).fit(
        x, y, sensitive_features=a
    )
    direct = FairClassifier(0.0, **with_penalty(**steps, standardize=False))
    scaled = (x - x.mean(0)) / x.std(0)
    direct.fit(scaled, y, sample_weight=independence_weights(y, a))
    np.testing.assert_allclose(
        model.decision_function(x), direct.decision_function(scaled), atol=1e-8
    )
