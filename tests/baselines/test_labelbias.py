"""Label-bias weights: worked weights and violations, rounds against a loop by hand, behavior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from test_fairkde import simulated

from metrifair.baselines import LabelBiasClassifier
from metrifair.errors import DataError
from metrifair.estimators import FairClassifier
from tests.expected_errors import Refusals
from tests.seams.baselines import tilted_weights, violations

CRITERIA = ["statistical_parity", "equal_opportunity", "equalized_odds"]


def test_worked_weights() -> None:
    y, member = np.array([1, 0, 1, 0]), np.array([[True], [True], [False], [False]])
    multipliers = np.full((2, 1), np.log(3) / 2)
    assert tilted_weights(y, member, multipliers).tolist() == pytest.approx([0.75, 0.25, 0.5, 0.5])
    assert tilted_weights(y, member, 2 * multipliers, scale=1.0).tolist() == pytest.approx(
        [0.75, 0.25, 0.5, 0.5]
    )
    assert (tilted_weights(y, member, np.zeros((2, 1))) == 0.5).all()


def test_each_label_has_multipliers_of_its_own() -> None:
    y, member = np.array([1, 0]), np.array([[True, True], [True, True]])  # groups may overlap
    found = tilted_weights(y, member, np.array([[0.1, 0.2], [0.5, -0.1]]), scale=1.0)
    assert found.tolist() == pytest.approx([1 / (1 + np.exp(-0.3)), 1 - 1 / (1 + np.exp(-0.4))])


@settings(max_examples=30, deadline=None)
@given(st.floats(-1e6, 1e6))
def test_weights_never_vanish_nor_overflow(multiplier: float) -> None:
    found = tilted_weights(
        np.array([1, 0]), np.array([[True], [True]]), np.full((2, 1), multiplier)
    )
    assert ((found >= 1e-12) & (found <= 1)).all()


def test_violations_against_loops() -> None:
    rng = np.random.default_rng(0)
    predicted, y, a = rng.integers(2, size=80), rng.integers(2, size=80), rng.integers(3, size=80)
    member = a[:, None] == np.arange(3)
    among = {"statistical_parity": (y >= 0, y >= 0), "equal_opportunity": (y == 1, y == 1)}
    among["equalized_odds"] = (y == 1, y == 0)
    for criterion in CRITERIA:
        expected = [
            [predicted[rows].mean() - predicted[rows & (a == k)].mean() for k in range(3)]
            for rows in among[criterion]
        ]
        np.testing.assert_allclose(violations(predicted, y, member, criterion), expected)
    with pytest.raises(DataError, match="no row"):
        violations(predicted, np.zeros(80, dtype=int), member, "equal_opportunity")


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("variant", ["method", "reference"])
def test_rounds_against_a_loop(criterion: str, variant: Any) -> None:
    x, y, a = simulated(300)
    model = LabelBiasClassifier(
        LogisticRegression(), criterion=criterion, rounds=5, step=0.7, variant=variant
    )
    model.fit(x, y, sensitive_features=a)
    positive, negative, weights = np.zeros(2), np.zeros(2), np.ones(300)
    lagging = variant == "reference" and criterion != "statistical_parity"
    rate = lambda rows: learner.predict(x)[rows].mean()  # noqa: E731
    for _ in range(5):
        now = np.where(
            y == 1, 1 / (1 + np.exp(-2 * positive[a])), 1 - 1 / (1 + np.exp(-2 * negative[a]))
        )
        if not lagging:
            weights = now / now.mean() if variant == "method" else now
        learner = LogisticRegression().fit(x, y, sample_weight=weights)
        weights = now
        used = positive.copy()
        among = {
            "statistical_parity": (y >= 0, y >= 0),
            "equal_opportunity": (y == 1, y == 1),
            "equalized_odds": (y == 1, y == 0),
        }[criterion]
        positive = positive + 0.7 * np.array(
            [rate(among[0]) - rate(among[0] & (a == k)) for k in (0, 1)]
        )
        negative = negative + 0.7 * np.array(
            [rate(among[1]) - rate(among[1] & (a == k)) for k in (0, 1)]
        )
    np.testing.assert_allclose(model.predict_proba(x), learner.predict_proba(x), atol=1e-9)
    np.testing.assert_allclose(model.multipliers_[0], used, atol=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_violations_fall(criterion: str) -> None:
    """Four thousand rows, logistic regression with the group among the features, twenty rounds."""
    x, y, a = simulated(4000)
    before, after = (
        LabelBiasClassifier(LogisticRegression(), criterion=criterion, rounds=rounds)
        .fit(x, y, sensitive_features=a)
        .violation_
        for rounds in (0, 20)
    )
    assert before > 0.14
    assert after < (0.02 if criterion == "equalized_odds" else 0.01)  # which may stop short of zero


def test_no_rounds_is_a_plain_fit() -> None:
    x, y, a = simulated(100)
    plain = LogisticRegression().fit(x, y)
    for rounds in (0, 1):
        model = LabelBiasClassifier(LogisticRegression(), rounds=rounds).fit(
            x, y, sensitive_features=a
        )
        np.testing.assert_allclose(
            model.decision_function(x), plain.decision_function(x), atol=1e-9
        )


def test_fair_predictions_move_nothing() -> None:
    """Both groups hold the same rows: the multipliers stay 0 and the fit is the plain one."""
    x, y, _ = simulated(60)
    x, y, a = np.tile(x[:, :2], (2, 1)), np.tile(y, 2), np.repeat([0, 1], 60)
    model = LabelBiasClassifier(LogisticRegression(), rounds=4).fit(x, y, sensitive_features=a)
    assert not model.multipliers_.any()
    np.testing.assert_allclose(
        model.predict_proba(x), LogisticRegression().fit(x, y).predict_proba(x), atol=1e-9
    )


def test_the_best_round_is_kept_on_request() -> None:
    x, y, a = simulated(300)
    each = [
        LabelBiasClassifier(LogisticRegression(), rounds=rounds, step=5.0).fit(
            x, y, sensitive_features=a
        )
        for rounds in range(1, 8)
    ]
    least = min(each, key=lambda one: (one.violation_, (one.predict(x) != y).mean()))
    best = LabelBiasClassifier(LogisticRegression(), rounds=7, step=5.0, keep="best").fit(
        x, y, sensitive_features=a
    )
    assert best.violation_ == least.violation_ <= each[-1].violation_
    np.testing.assert_array_equal(best.predict(x), least.predict(x))


@pytest.mark.parametrize("rounds", [4, 9])
def test_the_best_round_is_not_trained_on_by_later_ones(rounds: int) -> None:
    x, y, a = simulated(300)
    base = SGDClassifier(loss="log_loss", random_state=0, max_iter=3, tol=None)
    model = LabelBiasClassifier(base, rounds=rounds, step=3.0, warm_start=True, keep="best")
    model.fit(x, y, sensitive_features=a)
    member = a[:, None] == np.arange(2)
    found = violations(model.predict(x), y, member, "statistical_parity")
    assert np.abs(found).max() == pytest.approx(model.violation_, abs=1e-12)
    # steps taken: an earlier round is the best here
    assert model.estimator_.t_ < 1 + rounds * 3 * 300


def test_prior_weights_are_repeated_rows() -> None:
    x, y, a = simulated(80)
    weight = np.arange(80) % 3
    model, repeated = (LabelBiasClassifier(LogisticRegression(), rounds=6) for _ in range(2))
    model.fit(x, y, sensitive_features=a, sample_weight=weight)
    times = np.repeat(np.arange(80), weight)
    repeated.fit(x[times], y[times], sensitive_features=a[times])
    np.testing.assert_allclose(model.decision_function(x), repeated.decision_function(x), atol=1e-6)


NETWORK = FairClassifier(0.0, hidden=(4,), epochs=10, batch_size=50, device="cpu", model="mlp")


def test_a_warm_start_goes_on() -> None:
    """Groups that are alike leave all weights equal, so that two warm rounds are one longer
    training.
    """
    x, y, _ = simulated(60)
    x, y, a = np.tile(x[:, :2], (2, 1)), np.tile(y, 2), np.repeat([0, 1], 60)
    outputs = [
        LabelBiasClassifier(NETWORK, rounds=rounds, warm_start=warm, random_state=0)
        .fit(x, y, sensitive_features=a)
        .decision_function(x)
        for rounds, warm in ((1, False), (3, False), (3, True))
    ]
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-6)
    assert np.abs(outputs[2]).mean() > 1.5 * np.abs(outputs[0]).mean()


def test_the_default_learner_is_a_network_of_the_seed() -> None:
    x, y, a = simulated(100)
    models = [
        LabelBiasClassifier(rounds=2, random_state=seed).fit(x, y, sensitive_features=a)
        for seed in (0, 0, 1)
    ]
    assert isinstance(models[0].estimator_, FairClassifier)
    np.testing.assert_array_equal(models[0].predict_proba(x), models[1].predict_proba(x))
    assert np.abs(models[0].predict_proba(x) - models[2].predict_proba(x)).max() > 1e-3


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"criterion": "risk_parity"}, "criterion"),
        ({"rounds": -1}, "rounds"),
        ({"rounds": 1.5}, "rounds"),
        ({"step": -1}, "step"),
        ({"scale": 0}, "scale"),
        ({"keep": "first"}, "keep"),
        ({"variant": "paper"}, "variant"),
        ({"warm_start": "yes"}, "warm_start"),
    ],
)
def test_fit_refuses(options: dict[str, Any], named: str) -> None:
    x, y, a = simulated(40)
    with pytest.raises(DataError, match=named):
        LabelBiasClassifier(LogisticRegression(), **options).fit(x, y, sensitive_features=a)


def test_an_empty_cell_is_named() -> None:
    x, y, a = simulated(40)
    y[a == 1] = 0
    with pytest.raises(DataError, match="group 1"):
        LabelBiasClassifier(LogisticRegression(), criterion="equalized_odds").fit(
            x, y, sensitive_features=a
        )


@pytest.mark.parametrize(
    "learner", [GaussianNB(), FairClassifier(0.5, model="mlp"), make_pipeline(LogisticRegression())]
)
def test_a_learner_that_cannot_go_on_is_refused_before_anything_is_trained(
    learner: Any, refused: Refusals
) -> None:
    x, y, a = simulated(40)
    model = LabelBiasClassifier(learner, warm_start=True, rounds=1)
    with refused(DataError):
        model.fit(x, y, sensitive_features=a)
