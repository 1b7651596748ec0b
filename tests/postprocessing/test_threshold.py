"""Relaxed thresholds: against programs over all thresholds, all tuples of thresholds,
fairlearn, and fresh rows.
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from metrifair import ThresholdPostprocessor
from metrifair.errors import DataError, TooFewSamples
from tests.seams.postprocessing import (
    best_mixtures,
    best_thresholds,
    blind_coin,
    blind_cut,
    lower_hull,
    probabilities,
    rate_curve,
)

SETS = {
    "statistical_parity": (None,),
    "equal_opportunity": (1,),
    "predictive_equality": (0,),
    "equalized_odds": (0, 1),
}


def some_curves(seed: int, sizes: list[int], sets: tuple[Any, ...], digits: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    curves = []
    for size in sizes:
        label = np.append([0, 1], rng.integers(0, 2, size))
        # some are worse than chance
        score = (rng.normal(size=len(label)) + label * rng.uniform(-1, 2)).round(digits)
        member = np.stack(
            [np.ones(len(label)) if one is None else label == one for one in sets], axis=1
        ).astype(float)
        curves.append(rate_curve(score, member, np.where(label == 1, -1.0, rng.uniform(0.5, 2))))
    return curves


def least_loss(curves: list[Any], tolerance: float) -> float:
    """The linear program over every threshold of every group, with all pairs of groups, not
    over hulls.
    """
    sizes = [len(curve.loss) for curve in curves]
    starts = np.append(0, np.cumsum(sizes))
    rows = []
    for k in range(curves[0].rate.shape[1]):
        rates = np.zeros((len(curves), starts[-1]))
        for at, curve in enumerate(curves):
            rates[at, starts[at] : starts[at + 1]] = curve.rate[:, k]
        rows += [a - b for a in rates for b in rates]
    total = np.zeros((len(curves), starts[-1]))
    for at in range(len(curves)):
        total[at, starts[at] : starts[at + 1]] = 1
    found = linprog(
        np.concatenate([curve.loss for curve in curves]),
        A_ub=np.array(rows),
        b_ub=np.full(len(rows), tolerance),
        A_eq=total,
        b_eq=np.ones(len(curves)),
    )
    return float(found.fun)


CASES = {
    "seed": st.integers(0, 10**6),
    "sizes": st.lists(st.integers(0, 12), min_size=2, max_size=3),
    "criterion": st.sampled_from(sorted(SETS)),
    "tolerance": st.sampled_from([0.0, 0.05, 0.2, 1.0]),
    "digits": st.sampled_from([0, 8]),
}


@given(**CASES)
@settings(max_examples=60, deadline=None)
def test_with_a_coin_no_mixture_of_thresholds_is_better(
    seed: int, sizes: list[int], criterion: str, tolerance: float, digits: int
) -> None:
    curves = some_curves(seed, sizes, SETS[criterion], digits)
    found, losses, rates = best_mixtures(curves, tolerance), [], []
    for curve, (thresholds, chances) in zip(curves, found, strict=True):
        places = [int(np.flatnonzero(curve.threshold == one)[0]) for one in thresholds]
        losses.append(curve.loss[places] @ chances)
        rates.append(chances @ curve.rate[places])
        assert chances.sum() == pytest.approx(1)
    assert np.ptp(rates, axis=0).max() <= tolerance + 1e-8
    assert sum(losses) == pytest.approx(least_loss(curves, tolerance), abs=1e-8)


@given(**CASES)
@settings(max_examples=60, deadline=None)
def test_without_a_coin_no_thresholds_are_better(
    seed: int, sizes: list[int], criterion: str, tolerance: float, digits: int
) -> None:
    curves = some_curves(seed, [min(size, 7) for size in sizes], SETS[criterion], digits)
    places = [
        int(np.flatnonzero(curve.threshold == one)[0])
        for curve, one in zip(curves, best_thresholds(curves, tolerance), strict=True)
    ]

    def of(chosen: tuple[int, ...]) -> tuple[float, float]:
        rates = [curve.rate[at] for curve, at in zip(curves, chosen, strict=True)]
        return float(np.ptp(rates, axis=0).max()), sum(
            float(curve.loss[at]) for curve, at in zip(curves, chosen, strict=True)
        )

    every = [of(chosen) for chosen in product(*(range(len(curve.loss)) for curve in curves))]
    apart, loss = of(tuple(places))
    assert apart <= tolerance + 1e-8
    assert loss == pytest.approx(
        min(loss for apart, loss in every if apart <= tolerance + 1e-9), abs=1e-9
    )


def test_the_hull_is_below_all_points_and_convex() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 200)).round(2)
    corners = lower_hull(x, y)
    assert (np.interp(x, x[corners], y[corners]) <= y + 1e-12).all()
    slopes = np.diff(y[corners]) / np.diff(x[corners])
    assert all(earlier < later for earlier, later in pairwise(slopes))


def people(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, count)
    X = rng.normal(size=(count, 3)) + np.outer(group, [1.0, 0.5, 0.0])
    return X, (X.sum(1) + rng.normal(size=count) > 1).astype(int), group


def rates_of(decided: np.ndarray, y: np.ndarray, a: np.ndarray, criterion: str) -> np.ndarray:
    """By group and set."""
    sets = [np.ones(len(y), dtype=bool) if one is None else y == one for one in SETS[criterion]]
    return np.array([[decided[(a == code) & own].mean() for own in sets] for code in np.unique(a)])


@pytest.mark.parametrize("criterion", SETS)
@pytest.mark.parametrize("form", ["deterministic", "randomized", "without groups"])
def test_rates_of_new_rows_keep_the_tolerance(criterion: str, form: str) -> None:
    (X, y, a), (fresh, truth, b) = people(4000, 0), people(4000, 1)
    options = {"randomized": {"randomized": True}, "without groups": {"needs_group": False}}.get(
        form, {}
    )
    given = {"criterion": criterion, "folds": 2, "random_state": 0, **options}
    # Equalized odds can hardly be met without a coin, unless there is room.
    tight, loose = (0.1, 1.0) if criterion == "equalized_odds" else (0.02, 1.0)
    models = ThresholdPostprocessor(LogisticRegression(), **given).fit_path(
        X, y, sensitive_features=a, tolerances=[tight, loose]
    )
    asked = {} if form == "without groups" else {"sensitive_features": b}
    gaps, right = [], []
    for model in models:
        decided = model.predict(fresh, **asked)
        gaps.append(np.ptp(rates_of(decided, truth, b, criterion), axis=0).max())
        right.append((decided == truth).mean())
    assert gaps[0] < tight + 0.06
    assert gaps[1] > tight + 0.06 or criterion != "statistical_parity"
    assert right[0] <= right[1] + 0.01
    assert right[0] > 0.6


def test_costs_and_balanced_accuracy_move_the_thresholds() -> None:
    X, y, a = people(2000, 0)
    found = {}
    for name, utility in {
        "accuracy": "accuracy",
        "balanced": "balanced_accuracy",
        "eager": [[0, 0.1], [1, 0]],
    }.items():
        model = ThresholdPostprocessor(
            LogisticRegression(), tolerance=1.0, utility=utility, folds=1
        )
        rare = y * (np.arange(2000) % 4 == 0)
        decided = model.fit(X, rare, sensitive_features=a).predict(X, sensitive_features=a)
        found[name] = (
            decided.mean(),
            np.mean([(decided == rare)[rare == one].mean() for one in (0, 1)]),
        )
    assert found["balanced"][1] > found["accuracy"][1] + 0.1
    assert found["eager"][0] > found["accuracy"][0] + 0.1


def test_costs_that_every_decision_has_change_nothing() -> None:
    """Only what a decision adds counts: 3 more for each person of one class are paid anyway."""
    X, y, a = people(800, 0)
    decided = []
    for utility in ([[0.0, 0.5], [1.0, 0.0]], [[3.0, 3.5], [1.5, 0.5]]):
        model = ThresholdPostprocessor(
            LogisticRegression(), tolerance=0.1, utility=utility, folds=1
        )
        fitted = model.fit(X, y, sensitive_features=a)
        decided.append(
            [(one.threshold.tolist(), one.probability.tolist()) for one in fitted.thresholds_]
        )
    assert decided[0] == decided[1]


def test_the_score_weighs_its_rows() -> None:
    X, y, a = people(400, 1)
    model = ThresholdPostprocessor(LogisticRegression(), folds=1).fit(X, y, sensitive_features=a)
    right = model.predict(X, sensitive_features=a) == y
    weight = np.where(right, 1.0, 3.0)
    expected = right.sum() / weight.sum()
    assert model.score(X, y, sensitive_features=a, sample_weight=weight) == pytest.approx(expected)
    assert expected < right.mean() - 0.05


def test_the_loss_falls_and_is_convex_in_the_tolerance() -> None:
    curves = some_curves(3, [60, 40, 50], SETS["equalized_odds"], 8)
    losses = []
    for tolerance in np.linspace(0, 0.6, 25):
        mixtures = best_mixtures(curves, tolerance)
        losses.append(
            sum(
                float(
                    curve.loss[np.searchsorted(-curve.threshold, -one.threshold)] @ one.probability
                )
                for curve, one in zip(curves, mixtures, strict=True)
            )
        )
    falls = -np.diff(losses)
    assert (falls >= -1e-8).all()
    assert all(later <= earlier + 1e-7 for earlier, later in pairwise(falls))
    assert falls[0] > 1e-3


@pytest.mark.parametrize(
    ("criterion", "constraint"),
    [("statistical_parity", "demographic_parity"), ("equalized_odds", "equalized_odds")],
)
def test_at_no_tolerance_no_worse_than_fairlearn(criterion: str, constraint: str) -> None:
    peers = pytest.importorskip("fairlearn.postprocessing")
    X, y, a = people(600, 4)
    base = LogisticRegression().fit(X, y)
    theirs = peers.ThresholdOptimizer(
        estimator=base,
        constraints=constraint,
        prefit=True,
        predict_method="predict_proba",
        grid_size=2000,
    ).fit(X, y, sensitive_features=a)
    chance = theirs._pmf_predict(X, sensitive_features=a)[:, 1]
    ours = ThresholdPostprocessor(base, criterion=criterion, prefit=True, randomized=True)
    ours.fit(X, y, sensitive_features=a)
    own = ours.adjust(base.predict_proba(X)[:, 1], a)
    expected = [np.where(y == 1, one, 1 - one).mean() for one in (own, chance)]
    assert np.ptp(rates_of(own, y, a, criterion), axis=0).max() < 1e-8
    assert expected[0] >= expected[1] - 1e-9
    assert expected[0] == pytest.approx(expected[1], abs=2e-3)  # a grid of 2,000


def two_switches(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Four kinds of rows: all scores are tied."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, count)
    X = np.stack(
        [rng.random(count) < 0.3 + 0.4 * a, rng.random(count) < 0.6 - 0.2 * a], axis=1
    ).astype(float)
    return X, (rng.random(count) < 0.15 + X @ [0.5, 0.2]).astype(int), a


@pytest.mark.parametrize(
    "base", [LogisticRegression(), DecisionTreeClassifier(max_depth=3, random_state=0)]
)
@pytest.mark.parametrize("tolerance", [0.0, 0.15])
def test_rates_of_tied_scores_are_those_that_are_predicted(base: Any, tolerance: float) -> None:
    """Each fold's model has its own scores of equal rows; thresholds between these would be of
    no use.
    """
    X, y, a = two_switches(3000, 0)
    if isinstance(base, DecisionTreeClassifier):
        X = X + np.random.default_rng(1).normal(size=X.shape)
    model = ThresholdPostprocessor(base, tolerance=tolerance, random_state=0).fit(
        X, y, sensitive_features=a
    )
    decided = model.predict(X, sensitive_features=a)
    np.testing.assert_allclose(
        rates_of(decided, y, a, "statistical_parity"), model.rates_, atol=1e-12
    )
    assert np.ptp(model.rates_) <= tolerance + 1e-3
    coin = model.set_params(randomized=True).fit(X, y, sensitive_features=a)
    assert np.ptp(coin.rates_) <= tolerance + 1e-9
    drawn = np.mean([coin.predict(X, sensitive_features=a) for _ in range(20)], axis=0)
    np.testing.assert_allclose(rates_of(drawn, y, a, "statistical_parity"), coin.rates_, atol=0.02)


@pytest.mark.parametrize("folds", [2, 5])
def test_a_model_that_knows_its_rows_by_heart_is_not_asked_about_them(folds: int) -> None:
    """All scores of a full-grown tree are 0 or 1: the labels, of its own rows."""
    X, y, a = people(600, 0)
    tree = DecisionTreeClassifier(random_state=0)
    model = ThresholdPostprocessor(tree, tolerance=1.0, folds=folds, random_state=0).fit(
        X, y, sensitive_features=a
    )
    labels = rates_of(y, y, a, "statistical_parity")
    assert np.abs(model.rates_ - labels).max() > 0.01
    own = ThresholdPostprocessor(tree, tolerance=1.0, folds=1).fit(X, y, sensitive_features=a)
    np.testing.assert_allclose(own.rates_, labels)


@pytest.mark.parametrize("criterion", SETS)
def test_without_groups_equal_rows_keep_the_tolerance(criterion: str) -> None:
    (X, y, a), (fresh, truth, b) = two_switches(4000, 0), two_switches(20_000, 1)
    for randomized in (True, False):
        model = ThresholdPostprocessor(
            LogisticRegression(),
            criterion=criterion,
            needs_group=False,
            randomized=randomized,
            folds=2,
            random_state=0,
        )
        tight, loose = model.fit_path(X, y, sensitive_features=a, tolerances=[0.05, 1.0])
        # By the groups themselves, which the probabilities tell up to chance.
        assert np.ptp(tight.rates_, axis=0).max() < 0.05 + 0.02
        assert (
            np.ptp(rates_of(tight.predict(fresh), truth, b, criterion), axis=0).max() < 0.05 + 0.04
        )
        assert (
            np.ptp(rates_of(loose.predict(fresh), truth, b, criterion), axis=0).max() > 0.05 + 0.06
        )
        if randomized:  # the other decides alike about all
            assert (tight.predict(fresh) == truth).mean() > 0.61


def test_the_coin_without_groups_is_the_best_up_to_its_ramp() -> None:
    """Against the linear program over all rows, whose rates are within the tolerance to the
    last digits.
    """
    rng = np.random.default_rng(0)
    cells = rng.dirichlet([1, 1, 1], 12).repeat(30, axis=0)
    price, weight, sets = (
        rng.uniform(-1, 1, 12).repeat(30),
        rng.uniform(0.5, 2, 360),
        np.zeros(3, dtype=int),
    )
    counted = weight[:, None] * cells / (weight @ cells)
    for tolerance in (0.0, 0.1):
        chance = blind_coin(price, cells, weight, sets, tolerance)(price, cells)
        pairs = [counted[:, i] - counted[:, j] for i in range(3) for j in range(3)]
        best = linprog(
            weight * price, A_ub=np.array(pairs), b_ub=np.full(9, tolerance), bounds=(0, 1)
        )
        assert np.ptp(chance @ counted) == pytest.approx(tolerance, abs=1e-5)
        assert 0 <= (weight * price) @ chance - best.fun < 0.015 * weight.sum()
        step = blind_cut(price, cells, weight, sets, tolerance)(price, cells)
        assert np.ptp(step @ counted) <= tolerance + 3 * counted.max()
        assert (weight * price) @ step <= 0


def test_without_groups_scores_need_not_be_calibrated() -> None:
    X, _, a = people(3000, 0)
    y = (np.random.default_rng(0).random(3000) < 1 / (1 + np.exp(3 - X[:, 0] - X[:, 1]))).astype(
        int
    )
    base = LogisticRegression(class_weight="balanced")
    model = ThresholdPostprocessor(base, needs_group=False, tolerance=1.0, folds=2, random_state=0)
    right = model.fit(X, y, sensitive_features=a).score(X, y)
    assert right > (y == 0).mean() + 0.005
    assert right == pytest.approx(LogisticRegression().fit(X, y).score(X, y), abs=0.01)


def test_drawn_decisions_meet_the_rates_where_scores_are_tied() -> None:
    X = np.repeat([0.2, 0.7, 0.4, 0.9], 300)[:, None]
    a, y = np.repeat([0, 1], 600), np.tile([0, 1, 1], 400)
    model = ThresholdPostprocessor(LogisticRegression(), randomized=True, folds=1, random_state=0)
    model.fit(X, y, sensitive_features=a)
    assert np.ptp(model.rates_, axis=0).max() < 1e-9
    decided = model.predict(X, sensitive_features=a)
    np.testing.assert_allclose(
        rates_of(decided, y, a, "statistical_parity"), model.rates_, atol=0.06
    )


def test_the_accepted_class_may_be_the_first() -> None:
    X, y, a = people(500, 0)
    plain = ThresholdPostprocessor(LogisticRegression(), criterion="equal_opportunity", folds=1)
    other = ThresholdPostprocessor(
        LogisticRegression(), criterion="equal_opportunity", pos_label="a", folds=1
    )
    plain.fit(X, y, sensitive_features=a)
    other.fit(X, np.where(y == 1, "a", "b"), sensitive_features=a)
    np.testing.assert_allclose(plain.rates_, other.rates_)


def test_what_cannot_be_used() -> None:
    X, y, a = people(60, 0)
    for options, words in (
        ({"criterion": "risk_parity"}, "criterion"),
        ({"criterion": "conditional_statistical_parity"}, "criterion"),
        ({"utility": "auc"}, "utility"),
        ({"utility": [[0, 1]]}, "utility"),
        ({"tolerance": -0.1}, "tolerance"),
    ):
        with pytest.raises(DataError, match=words):
            ThresholdPostprocessor(LogisticRegression(), **options).fit(X, y, sensitive_features=a)
    model = ThresholdPostprocessor(LogisticRegression(), criterion="equal_opportunity", folds=1)
    with pytest.raises(TooFewSamples, match=r"group 1 has no row with the positive label"):
        model.fit(X, y * (a == 0), sensitive_features=a)
    crossed = {"a": a, "b": np.arange(60) % 2}
    without = y * ~((a == 1) & (crossed["b"] == 1))
    assert model.fit(X, without, sensitive_features=crossed).groups_ == ((0, 0), (0, 1), (1, 0))
    assert len(model.predict(X, sensitive_features=crossed)) == 60


def test_scores_at_a_threshold_are_accepted_and_those_just_below_are_not() -> None:
    rng = np.random.default_rng(0)
    group, score = np.repeat(["a", "b"], 100), rng.random(200)
    model = ThresholdPostprocessor(None, tolerance=0.05).fit(
        score[:, None], (rng.random(200) < score).astype(int), sensitive_features=group
    )
    for code, (thresholds, chances) in enumerate(model.thresholds_[:2]):
        for threshold, chance in zip(thresholds, chances, strict=True):
            if np.isfinite(threshold) and chance > 0:
                around = np.array([np.nextafter(threshold, -np.inf), threshold])
                below, at = model.adjust(around, np.full(2, code))
                assert at - below == pytest.approx(chance)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[-0.2, 1.2], [0.5, 0.5]], "must give probabilities from 0 to 1"),
        ([[0.5, 0.5], [np.nan, np.nan]], "must give probabilities from 0 to 1"),
        ([[1.5, 0.5], [0.5, 0.5]], "must give probabilities from 0 to 1"),
        ([[0.5, 0.4], [0.5, 0.5]], "must sum to one"),
    ],
)
def test_what_is_no_probability_is_refused(given: list[list[float]], message: str) -> None:
    class Base:
        def predict_proba(self, X: Any) -> np.ndarray:
            return np.array(given)

    with pytest.raises(DataError, match=message):
        probabilities(Base(), np.zeros((2, 1)), None)


def test_a_single_column_is_the_probability_of_the_later_class() -> None:
    class Base:
        def predict_proba(self, X: Any) -> np.ndarray:
            return np.array([0.25, 1.0])

    np.testing.assert_allclose(
        probabilities(Base(), np.zeros((2, 1)), None), [[0.75, 0.25], [0.0, 1.0]]
    )


def test_decisions_of_a_fitted_model_need_labels_too() -> None:
    X, y, a = people(60, 0)
    base = LogisticRegression().fit(X, y)
    with pytest.raises(DataError, match="requires y"):
        ThresholdPostprocessor(base, prefit=True).fit(X, sensitive_features=a)
