"""Xian's post-processing: worked numbers, a linear program as oracle, properties."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags

from metrifair.baselines import XianPostprocessor
from metrifair.errors import DataError
from tests.seams.baselines import accepted, assignment, binary_assignment, offsets
from tests.seams.postprocessing import probabilities

SCORE = np.array([0.9, 0.6, 0.3, 0.1, 0.8, 0.7, 0.55, 0.2])
GROUP = np.repeat([0, 1], 4)


class Scored(ClassifierMixin, BaseEstimator):
    """A fitted model whose probabilities are the columns of X; one column is the later of two
    classes.
    """

    def __init__(self, classes: int = 2) -> None:
        self.classes = classes

    @property
    def classes_(self) -> np.ndarray:
        return np.arange(self.classes)

    def fit(self, X: Any, y: Any) -> Scored:
        return self

    def predict_proba(self, X: Any) -> Any:
        x = np.asarray(X)
        return x[:, 0] if x.shape[1] == 1 else x

    def __sklearn_is_fitted__(self) -> bool:
        return True


def processed(scores: np.ndarray, group: Any, **options: Any) -> XianPostprocessor:
    table = scores.reshape(len(scores), -1)
    base = Scored(max(2, table.shape[1]))
    return XianPostprocessor(base, prefit=True, **options).fit(table, sensitive_features=group)


def decided(model: XianPostprocessor, scores: np.ndarray, group: Any) -> np.ndarray:
    return model.predict(scores.reshape(len(scores), -1), sensitive_features=group)


def some_scores(seed: int, sizes: list[int], classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    output = (
        rng.normal(size=(len(group), classes)) * 1.5 + rng.normal(size=(len(sizes), classes))[group]
    )
    scores = np.exp(output)
    return scores / scores.sum(1, keepdims=True), group


def dense_program(scores: np.ndarray, group: np.ndarray, alpha: float) -> float:
    """The linear program as it stands in the paper, with all pairs of groups, row by row."""
    n, classes = scores.shape
    members = [(group == code) / (group == code).sum() for code in range(group.max() + 1)]
    rates = [[np.outer(own, np.eye(classes)[k]).ravel() for k in range(classes)] for own in members]
    bounds = [
        rates[a][k] - rates[b][k]
        for a in range(len(members))
        for b in range(len(members))
        for k in range(classes)
    ]
    found = linprog(
        (1 - scores).ravel() / n,
        A_ub=np.array(bounds),
        b_ub=np.full(len(bounds), alpha),
        A_eq=np.kron(np.eye(n), np.ones(classes)),
        b_eq=np.ones(n),
    )
    return float(found.fun)


@pytest.mark.parametrize(
    ("alpha", "rates", "cost", "thresholds"),
    [
        (0.0, (0.5, 0.5), 0.26875, (0.45, 0.625)),
        (0.1, (0.5, 0.6), 0.26375, (0.45, 0.55)),
        (0.25, (0.5, 0.75), 0.25625, (0.5, 0.5)),
        (np.inf, (0.5, 0.75), 0.25625, (0.5, 0.5)),
    ],
)
def test_the_worked_solutions(alpha: float, rates: Any, cost: float, thresholds: Any) -> None:
    model = processed(SCORE, GROUP, alpha=alpha)
    assert model.rates_[:, 1].tolist() == pytest.approx(rates)
    assert model.cost_ == pytest.approx(cost)
    assert model.thresholds_.tolist() == pytest.approx(thresholds)


def test_the_margin_is_accepted_by_a_share() -> None:
    found = binary_assignment(SCORE, GROUP, 0.1)
    assert found.probability[:, 1].tolist() == pytest.approx([1, 1, 0, 0, 1, 1, 0.4, 0])


def test_whole_rates_accept_whole_rows() -> None:
    for n in range(1, 60):
        for k in range(n + 1):
            assert accepted(np.arange(n) / n, k / n).tolist() == [0.0] * (n - k) + [1.0] * k
            assert accepted(np.arange(n) / n, (k / n + 0.3) - 0.3).sum() == k


def check_against_program(found: Any, scores: np.ndarray, group: np.ndarray, alpha: float) -> None:
    assert found.cost == pytest.approx(dense_program(scores, group, alpha), abs=1e-9)
    rates = np.stack([found.probability[group == code].mean(0) for code in range(group.max() + 1)])
    np.testing.assert_allclose(rates, found.rates, atol=1e-9)
    assert np.ptp(rates, axis=0).max() <= alpha + 1e-9
    np.testing.assert_allclose(found.probability.sum(1), 1)
    assert found.probability.min() >= 0


@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 15), min_size=2, max_size=4),
    alpha=st.sampled_from([0.0, 0.01, 0.1, 0.3]),
    digits=st.sampled_from([1, 12]),
)
@settings(max_examples=200, deadline=None)
def test_two_classes_cost_what_the_program_says(
    seed: int, sizes: list[int], alpha: float, digits: int
) -> None:
    scores, group = some_scores(seed, sizes)
    score = scores[:, 1].round(digits)  # one digit: many ties
    scores = np.stack([1 - score, score], axis=1)
    check_against_program(binary_assignment(score, group, alpha), scores, group, alpha)


@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 12), min_size=2, max_size=3),
    classes=st.integers(2, 4),
    alpha=st.sampled_from([0.0, 0.1, 0.3]),
)
@settings(max_examples=60, deadline=None)
def test_several_classes_cost_what_the_program_says(
    seed: int, sizes: list[int], classes: int, alpha: float
) -> None:
    scores, group = some_scores(seed, sizes, classes)
    check_against_program(assignment(scores, group, alpha), scores, group, alpha)


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_offsets_reproduce_the_assignment(seed: int, classes: int) -> None:
    scores, group = some_scores(seed, [25, 20], classes)
    found = assignment(scores, group, 0.0)
    for code in (0, 1):
        own, chance = scores[group == code], found.probability[group == code]
        reached = 2 * own + offsets(own, chance)
        given_class = np.where(chance > 0, reached, np.inf).min(1)
        assert (given_class >= reached.max(1) - 1e-6).all()
        whole = chance.max(1) == 1
        # these lie on a border exactly
        assert (reached.argmax(1) != chance.argmax(1))[whole].sum() <= classes


def test_offsets_of_two_classes_are_the_threshold_between() -> None:
    scores = np.stack([1 - SCORE, SCORE], axis=1)[:4]
    found = offsets(scores, np.array([[0, 1], [0, 1], [1, 0], [1, 0]]))
    # s1 - s0 beyond -0.1, halfway from -0.4 to 0.2: a score of 0.45
    assert found.tolist() == pytest.approx([0.0, 0.2], abs=1e-9)
    assert offsets(scores, np.array([[1.0, 0.0]] * 4)).tolist() == [0.0, -np.inf]


@pytest.mark.parametrize("classes", [2, 3])
def test_at_no_tolerance_rates_are_equal_up_to_rows_on_the_border(classes: int) -> None:
    scores, group = some_scores(1, [60, 45], classes)
    model = processed(scores, group, alpha=0.0)
    labels = decided(model, scores, group)
    free = scores.argmax(1)
    before, after = (
        max(
            abs((chosen[group == 0] == k).mean() - (chosen[group == 1] == k).mean())
            for k in range(classes)
        )
        for chosen in (free, labels)
    )
    assert before > 0.1
    assert after <= (classes - 1) / 45 + 1e-9


def test_the_cost_falls_and_is_convex_in_alpha() -> None:
    scores, group = some_scores(3, [40, 25, 30])
    alphas = np.linspace(0, 0.5, 26)
    costs = [binary_assignment(scores[:, 1], group, alpha).cost for alpha in alphas]
    falls = -np.diff(costs)
    assert (falls >= -1e-12).all()
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(falls))
    assert falls[0] > 1e-4


def test_decisions_rise_with_the_score_and_follow_the_groups_names() -> None:
    scores, group = some_scores(4, [30, 20])
    labels = decided(processed(scores, group, alpha=0.05), scores, group)
    for code in (0, 1):
        own = labels[group == code][np.argsort(scores[group == code, 1])]
        assert (np.diff(own) >= 0).all()
    renamed = np.where(group == 0, "z", "b")
    np.testing.assert_array_equal(
        decided(processed(scores, renamed, alpha=0.05), scores, renamed), labels
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_without_a_bound_labels_are_the_most_probable(classes: int) -> None:
    scores, group = some_scores(5, [20, 20], classes)
    model = processed(scores, group, alpha=np.inf)
    np.testing.assert_array_equal(decided(model, scores, group), scores.argmax(1))


@pytest.mark.parametrize("classes", [2, 3])
def test_drawn_labels_meet_the_rates_where_scores_are_tied(classes: int) -> None:
    table = np.array([[0.7, 0.3, 0.0], [0.4, 0.6, 0.0], [0.2, 0.3, 0.5]])[:, :classes]
    table = table / table.sum(1, keepdims=True)
    group = np.repeat([0, 1], 3000)
    scores = table[np.concatenate([np.resize([0, 0, 1, 2], 3000), np.resize([1, 1, 0, 2], 3000)])]
    model = processed(scores, group, alpha=0.0, randomized=True, random_state=0)
    labels = decided(model, scores, group)
    rates = np.array(
        [[(labels[group == code] == k).mean() for k in range(classes)] for code in (0, 1)]
    )
    np.testing.assert_allclose(rates, model.rates_, atol=0.04)
    again = processed(scores, group, alpha=0.0, randomized=True, random_state=0)
    np.testing.assert_array_equal(labels, decided(again, scores, group))
    sharp = decided(processed(scores, group, alpha=0.0), scores, group)
    sharp_rates = np.array(
        [[(sharp[group == code] == k).mean() for k in range(classes)] for code in (0, 1)]
    )
    assert np.abs(sharp_rates - model.rates_).max() > 0.1  # what one threshold cannot do


def test_labels_drawn_row_by_row_meet_the_rates_as_well() -> None:
    """All rows of a group are the same, so that nothing but the draws tells them apart."""
    score, group = np.repeat([0.2, 0.7], 200), np.repeat([0, 1], 200)
    model = processed(score, group, alpha=0.5, randomized=True, random_state=0)
    assert model.rates_[:, 1].tolist() == [0.0, 0.5]
    one_by_one = [decided(model, score[[row]], group[[row]])[0] for row in range(400)]
    at_once = decided(model, score, group)
    for labels in (np.array(one_by_one), at_once):
        assert not labels[group == 0].any()
        assert labels[group == 1].mean() == pytest.approx(0.5, abs=0.12)
    assert (at_once != one_by_one).any()
    assert get_tags(model).non_deterministic
    assert not get_tags(processed(score, group)).non_deterministic


def test_a_group_of_one_row() -> None:
    scores = np.array([0.9, 0.2, 0.4, 0.3])
    found = binary_assignment(scores, np.array([0, 1, 1, 1]), 0.0)
    assert found.rates[0].tolist() == pytest.approx(found.rates[1].tolist())


def test_around_an_estimator_with_rows_kept_apart() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 400)
    x = rng.normal(size=(400, 2)) + group[:, None]
    y = np.where(x.sum(1) + rng.normal(size=400) > 1, "yes", "no")
    model = XianPostprocessor(LogisticRegression(), folds=3, random_state=0).fit(
        x, y, sensitive_features=group
    )
    labels = model.predict(x, sensitive_features=group)
    assert set(labels) == {"no", "yes"}
    rates = [(labels[group == code] == "yes").mean() for code in (0, 1)]
    assert abs(rates[0] - rates[1]) < 0.1
    seen_all = XianPostprocessor(LogisticRegression()).fit(x, y, sensitive_features=group)
    assert np.array_equal(model.base_.coef_, seen_all.base_.coef_)
    assert not np.array_equal(model.thresholds_, seen_all.thresholds_)


def test_a_linear_model_is_the_default_estimator() -> None:
    rng = np.random.default_rng(1)
    group = np.repeat(["f", "m"], 100)
    x = rng.normal(size=(200, 2)) + (group == "m")[:, None]
    y = (x.sum(1) + rng.normal(size=200) > 1).astype(int)
    model = XianPostprocessor(random_state=0).fit(x, y, sensitive_features=group)
    labels = model.predict(x, sensitive_features=group)
    assert abs(labels[group == "f"].mean() - labels[group == "m"].mean()) <= 0.01 + 1e-9


@pytest.mark.parametrize(
    "options", [{"alpha": -0.1}, {"alpha": np.nan}, {"alpha": "0"}, {"randomized": 1}]
)
def test_parameters_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=next(iter(options))):
        processed(SCORE, GROUP, **options)


@pytest.mark.parametrize(
    "found", [[1.2, 0.1], [-0.1, 0.5], [np.nan, 0.5], [[0.5, 0.6], [0.5, 0.5]]]
)
def test_scores_that_are_no_probabilities(found: Any) -> None:
    with pytest.raises(DataError, match="predict_proba"):
        probabilities(SimpleNamespace(predict_proba=lambda X: np.array(found)), None, None)


def test_a_group_that_was_not_seen() -> None:
    with pytest.raises(DataError, match="2"):
        decided(processed(SCORE, GROUP), SCORE[:1], [2])
