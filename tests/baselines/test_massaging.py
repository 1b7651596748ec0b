"""Massaging: the worked table, which labels change, and that nothing else does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from test_fairkde import simulated

from metrifair.baselines import MassagingClassifier
from metrifair.errors import DataError
from tests.expected_errors import Refusals
from tests.seams.baselines import rows_to_relabel

Y = np.array([1, 0, 0, 0, 1, 1, 1, 1, 0, 0])
DEPRIVED = np.array([1] * 4 + [0] * 6)


def changed(y: Any, changes: Any) -> Any:
    after = y.copy()
    after[changes.promoted], after[changes.demoted] = 1, 0
    return after


def test_the_worked_table() -> None:
    score = np.linspace(0, 1, 10)
    changes = rows_to_relabel(Y, DEPRIVED, score)
    assert (changes.promoted.tolist(), changes.demoted.tolist()) == ([3], [4])
    after = changed(Y, changes)
    assert after[:4].mean() == after[4:].mean() == 0.5
    assert after.sum() == 5
    assert Y.sum() == 5  # the input stays as it was


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_laws(data: st.DataObject) -> None:
    """Total kept, the difference at most half a pair's worth, the surest candidates kept, ties
    by place.
    """
    n = data.draw(st.integers(4, 40))
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    deprived = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    if not 0 < deprived.sum() < n or y[deprived].mean() > y[~deprived].mean():
        return
    score = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))) / 5
    size = n / (deprived.sum() * (n - deprived.sum()))
    for rounding, low, high in (("nearest", -size / 2, size / 2), ("ceiling", -size, 0.0)):
        changes = rows_to_relabel(y, deprived, score, rounding=rounding)
        after = changed(y, changes)
        assert after.sum() == y.sum()
        assert low - 1e-12 <= after[~deprived].mean() - after[deprived].mean() <= high + 1e-12
        assert len(changes.promoted) == len(changes.demoted)
        for chosen, candidates, sign in (
            (changes.promoted, np.flatnonzero(deprived & (y == 0)), -1),
            (changes.demoted, np.flatnonzero(~deprived & (y == 1)), 1),
        ):
            ranked = sorted(
                candidates.tolist(), key=lambda row, sign=sign: (sign * score[row], row)
            )
            assert chosen.tolist() == ranked[: len(chosen)]


def test_independent_labels_are_left_alone() -> None:
    changes = rows_to_relabel(
        np.array([1, 0, 1, 0, 1, 0]), np.array([1, 1, 0, 0, 0, 0]), np.zeros(6)
    )
    assert not len(changes.promoted)


def test_naive_bayes_ranks_and_the_learner_sees_the_changed_labels() -> None:
    x, y, a = simulated(200)
    model = MassagingClassifier(LogisticRegression()).fit(x, y, sensitive_features=a)
    deprived = a == np.argmin([y[a == 0].mean(), y[a == 1].mean()])
    expected = rows_to_relabel(y, deprived, GaussianNB().fit(x, y).predict_proba(x)[:, 1])
    np.testing.assert_array_equal(model.changes_.promoted, expected.promoted)
    np.testing.assert_array_equal(model.changes_.demoted, expected.demoted)
    assert len(expected.promoted) > 5
    by_hand = LogisticRegression().fit(x, changed(y, expected))
    np.testing.assert_allclose(model.predict_proba(x), by_hand.predict_proba(x), atol=1e-9)


def test_other_rankers() -> None:
    x, y, a = simulated(200)
    ranker = LogisticRegression(C=0.1)
    score = ranker.fit(x, y).predict_proba(x)[:, 1]
    for options in ({"ranker": LogisticRegression(C=0.1)}, {"ranker": "estimator"}):
        model = MassagingClassifier(LogisticRegression(C=0.1), **options).fit(
            x, y, sensitive_features=a
        )
        np.testing.assert_array_equal(
            model.changes_.promoted, rows_to_relabel(y, a == 0, score).promoted
        )


def test_a_group_that_is_not_deprived_changes_nothing_and_says_so() -> None:
    x, y, a = simulated(200)
    named = np.where(a == 1, "f", "d")
    model = MassagingClassifier(LogisticRegression(), deprived="f")
    with pytest.warns(UserWarning, match="not deprived"):
        model.fit(x, y, sensitive_features=named)
    assert not len(model.changes_.promoted)
    np.testing.assert_allclose(
        model.predict_proba(x), LogisticRegression().fit(x, y).predict_proba(x), atol=1e-9
    )
    given_d = MassagingClassifier(LogisticRegression(), deprived="d").fit(
        x, y, sensitive_features=named
    )
    assert len(given_d.changes_.promoted)


def test_only_methods_of_the_learner_are_there() -> None:
    x, y, a = simulated(100)
    model = MassagingClassifier(LinearSVC()).fit(x, y, sensitive_features=a)
    assert model.decision_function(x).shape == (100,)
    assert not hasattr(model, "predict_proba")
    assert set(model.predict(x)) <= {0, 1}


@pytest.mark.parametrize("options", [{"ranker": "estimator"}, {"ranker": LinearSVC()}])
def test_a_ranker_without_probabilities_is_named(
    options: dict[str, Any], refused: Refusals
) -> None:
    x, y, a = simulated(40)
    with refused(DataError):
        MassagingClassifier(LinearSVC(), **options).fit(x, y, sensitive_features=a)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"deprived": 7}, "deprived"),
        ({"rounding": "down"}, "rounding"),
        ({"ranker": "bayes"}, "ranker"),
    ],
)
def test_fit_refuses(options: dict[str, Any], named: str) -> None:
    x, y, a = simulated(40)
    with pytest.raises(DataError, match=named):
        MassagingClassifier(LogisticRegression(), **options).fit(x, y, sensitive_features=a)
