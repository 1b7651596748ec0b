"""Scores moved to the barycenter: parity, proportions, ties, crossed and unknown groups, the
form without groups.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wasserstein_distance
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier

from metrifair import BarycenterPostprocessor, ThresholdPostprocessor
from metrifair.baselines import ChzhenPostprocessor
from metrifair.errors import DataError, MetrifairWarning, TooFewSamples
from metrifair.metrics import kolmogorov_distance
from tests.expected_errors import Refusals


class Same(RegressorMixin, BaseEstimator):
    """A fitted regressor that predicts the only column."""

    def fit(self, X: Any, y: Any) -> Same:
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(X)[:, 0]

    def __sklearn_is_fitted__(self) -> bool:
        return True


def column(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=float)[:, None]


def moved(values: Any, groups: Any, **options: Any) -> np.ndarray:
    weight = options.pop("sample_weight", None)
    model = BarycenterPostprocessor(Same(), prefit=True, random_state=0, **options)
    model.fit(column(values), sensitive_features=groups, sample_weight=weight)
    return model.predict(column(values), sensitive_features=groups)


def gap(values: np.ndarray, group: np.ndarray) -> float:
    codes = np.unique(group)
    return max(
        float(kolmogorov_distance(values[group == a], values[group == b]))
        for a in codes
        for b in codes
    )


@given(
    seed=st.integers(0, 10**6),
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=4),
    tolerance=st.sampled_from([0.0, 0.3, 1.0]),
)
@settings(max_examples=25, deadline=None)
def test_distances_shrink_in_proportion_and_order_stays(
    seed: int, sizes: list[int], tolerance: float
) -> None:
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    values = rng.normal(size=len(group)) * (1 + group) + 3 * group
    found, fair = (moved(values, group, tolerance=one) for one in (tolerance, 0.0))
    np.testing.assert_allclose(found, tolerance * values + (1 - tolerance) * fair)
    # A score is moved to the mean over the ranks of its row: it is right up to one row of either
    # group.
    assert gap(fair, group) <= sum(1 / size for size in sorted(sizes)[:2]) + 1e-9
    means = [fair[group == code].mean() for code in range(len(sizes))]
    np.testing.assert_allclose(means, means[0], atol=1e-9)
    for code in range(len(sizes)):
        own = np.argsort(values[group == code])
        assert (np.diff(found[group == code][own]) >= 0).all()


def test_of_groups_of_one_size_parity_is_exact_and_proportional() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 50)
    values = rng.normal(size=100) * (1 + group) + group
    before, half, fair = (moved(values, group, tolerance=one) for one in (1.0, 0.5, 0.0))
    apart = [wasserstein_distance(one[group == 0], one[group == 1]) for one in (before, half, fair)]
    assert apart[1] == pytest.approx(apart[0] / 2)
    assert apart[2] == pytest.approx(0, abs=1e-12)
    np.testing.assert_array_equal(before, values)
    chzhen = ChzhenPostprocessor(Same(), prefit=True).fit(column(values), sensitive_features=group)
    np.testing.assert_allclose(fair, chzhen.predict(column(values), sensitive_features=group))


def test_equal_scores_stay_equal_at_the_mean_or_are_spread_by_draws() -> None:
    """One group has a single score: it belongs at the mean of the other's, not at its end or in
    its middle.
    """
    values = np.append(np.full(400, 0.3), np.linspace(0, 1, 401)[1:] ** 3)
    group = np.repeat([0, 1], 400)
    with pytest.warns(MetrifairWarning, match=r"scores are tied, .* is left; randomized=True"):
        equal = moved(values, group)
    assert np.ptp(equal[:400]) == 0
    assert equal[0] == pytest.approx((0.3 + values[400:].mean()) / 2)
    assert equal[0] == pytest.approx(equal[400:].mean())  # means agree, whatever is tied
    assert gap(equal, group) > 0.4
    spread = moved(values, group, randomized=True)
    # of 400 draws: beyond with a probability of 1 in 100; the seed is fixed
    assert gap(spread, group) < 0.09
    np.testing.assert_array_equal(spread, moved(values, group, randomized=True))
    moved(values, group, tolerance=1.0)  # without a warning: nothing is moved


def test_an_outlier_ties_no_others() -> None:
    rng = np.random.default_rng(0)
    values, group = rng.normal(size=200), np.arange(200) % 2
    values[1] = 1e12
    fair = moved(values, group)
    assert len(np.unique(fair)) >= 100
    others = np.arange(200) > 1
    assert gap(fair[others], group[others]) < 0.03


def test_drawn_scores_are_alike_where_a_tree_ties_them() -> None:
    X, y, a = people(3000, 0)
    model = BarycenterPostprocessor(
        DecisionTreeClassifier(max_depth=3), randomized=True, random_state=0
    )
    fair = model.fit(X, y, sensitive_features=a).predict_proba(X, sensitive_features=a)[:, 1]
    plain = model.base_.predict_proba(X)[:, 1]
    left, before = (wasserstein_distance(one[a == 0], one[a == 1]) for one in (fair, plain))
    assert left < 0.1 * before


def test_weights_are_repetitions() -> None:
    rng = np.random.default_rng(1)
    values, group, weight = rng.normal(size=30), np.arange(30) % 3, rng.integers(0, 4, 30)
    rows = np.repeat(np.arange(30), weight)
    weighted = moved(values, group, sample_weight=weight)
    np.testing.assert_allclose(weighted[rows], moved(values[rows], group[rows]))


def test_attributes_are_crossed() -> None:
    rng = np.random.default_rng(2)
    sex, old = rng.integers(0, 2, (2, 600))
    values = rng.normal(size=600) + sex + 2 * old + 3 * sex * old
    model = BarycenterPostprocessor(Same(), prefit=True).fit(
        column(values), sensitive_features={"sex": sex, "old": old}
    )
    assert model.groups_ == ((0, 0), (0, 1), (1, 0), (1, 1))
    fair = model.predict(column(values), sensitive_features={"sex": sex, "old": old})
    for groups in (sex, old, 2 * sex + old):
        assert gap(fair, groups) < 0.03 < gap(values, groups)


def test_unknown_groups_and_combinations_are_ranked_among_all_and_other_values_refused() -> None:
    values = np.arange(12.0)
    groups = {"sex": ["f"] * 6 + ["m"] * 6, "old": ["no"] * 9 + ["yes"] * 3}
    model = BarycenterPostprocessor(Same(), prefit=True).fit(
        column(values), sensitive_features=groups
    )
    asked = {"sex": ["f", None, "f"], "old": ["no", "no", "yes"]}
    with pytest.warns(MetrifairWarning, match="sex is missing"):
        known, unknown, unseen = model.predict(column([5, 5, 5]), sensitive_features=asked)
    assert unknown == unseen != known
    with pytest.raises(DataError, match="'x'"):
        model.predict(column([5]), sensitive_features={"sex": ["x"], "old": ["no"]})
    with pytest.raises(DataError, match="needs sensitive_features"):
        model.predict(column([5]))


def people(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, count)
    X = rng.normal(size=(count, 3)) + np.outer(group, [1.0, 0.5, 0.0])
    return X, (X.sum(1) + rng.normal(size=count) > 1).astype(int), group


def test_probabilities_of_new_rows_reach_parity_and_the_model_itself() -> None:
    (X, y, a), (fresh, _, b) = people(3000, 0), people(3000, 1)
    y = np.where(y == 1, "yes", "no")
    exact, itself = BarycenterPostprocessor(LogisticRegression(), random_state=0).fit_path(
        X, y, sensitive_features=a, tolerances=[0, 1]
    )
    fair = exact.predict_proba(fresh, sensitive_features=b)
    np.testing.assert_allclose(fair.sum(1), 1)
    assert 0 <= fair.min() <= fair.max() <= 1
    plain = LogisticRegression().fit(X, y)
    np.testing.assert_array_equal(
        itself.predict_proba(fresh, sensitive_features=b), plain.predict_proba(fresh)
    )
    assert gap(fair[:, 1], b) < 0.07 < 0.3 < gap(plain.predict_proba(fresh)[:, 1], b)
    np.testing.assert_array_equal(
        exact.predict(fresh, sensitive_features=b) == "yes", fair[:, 1] >= 0.5
    )
    assert exact.base_ is itself.base_
    alone = BarycenterPostprocessor(LogisticRegression(), random_state=0).fit(
        X, y, sensitive_features=a
    )
    np.testing.assert_array_equal(alone.predict_proba(fresh, sensitive_features=b), fair)


def test_without_groups_scores_are_alike_as_far_as_features_tell() -> None:
    (X, y, a), (fresh, truth, b) = people(3000, 0), people(3000, 1)
    model = BarycenterPostprocessor(LogisticRegression(), needs_group=False, random_state=0)
    fair = model.fit(X, y, sensitive_features=a).predict_proba(fresh)[:, 1]
    assert gap(fair, b) < 0.08
    np.testing.assert_array_equal(fair, model.predict_proba(fresh, sensitive_features=b)[:, 1])
    # a constant: 0.5; the group itself tells 0.17 more
    assert ((fair >= 0.5) == truth).mean() > 0.62
    half = model.set_params(tolerance=0.5).predict_proba(fresh)[:, 1]
    np.testing.assert_allclose(
        half, (fair + LogisticRegression().fit(X, y).predict_proba(fresh)[:, 1]) / 2
    )


def test_rows_are_ranked_by_models_that_have_not_seen_them() -> None:
    rng = np.random.default_rng(0)
    X, a = rng.normal(size=(60, 1)), np.arange(60) % 2
    y = rng.normal(size=60)
    nearest = KNeighborsRegressor(1)
    own = BarycenterPostprocessor(nearest, folds=1).fit(X, y, sensitive_features=a)
    np.testing.assert_array_equal(own.distributions_[-1].values, np.sort(y))
    apart = BarycenterPostprocessor(nearest, folds=5, random_state=0).fit(
        X, y, sensitive_features=a
    )
    assert not np.array_equal(apart.distributions_[-1].values, np.sort(y))
    np.testing.assert_array_equal(apart.base_.predict(X), y)  # the estimator has seen all


@pytest.mark.parametrize("kind", [BarycenterPostprocessor, ThresholdPostprocessor])
def test_a_path_of_a_prefit_estimator_shares_it(kind: Any) -> None:
    X, y, a = people(200, 0)
    base = LogisticRegression().fit(X, y)
    assert clone(kind(base, prefit=True)).estimator is base
    assert clone(kind(base)).estimator is not base
    path = kind(base, prefit=True).fit_path(
        X, y, sensitive_features=a, tolerances=np.array([0.0, 0.5])
    )
    for model, tolerance in zip(path, (0.0, 0.5), strict=True):
        alone = kind(base, prefit=True, tolerance=tolerance).fit(X, y, sensitive_features=a)
        assert model.base_ is base
        np.testing.assert_array_equal(
            *(one.predict(X, sensitive_features=a) for one in (model, alone))
        )
    for wrong in (0.5, "auto", [0, "auto"], [2]):
        with pytest.raises(DataError, match="tolerances must be"):
            kind(base, prefit=True).fit_path(X, y, sensitive_features=a, tolerances=wrong)


@pytest.mark.parametrize("kind", [BarycenterPostprocessor, ThresholdPostprocessor])
def test_seeds_are_drawn_from_any_generator(kind: Any) -> None:
    X, y, a = people(200, 0)
    found = []
    for source in (np.random.default_rng(3), np.random.default_rng(3), np.random.RandomState(3)):
        model = kind(LogisticRegression(), randomized=True, random_state=source)
        found.append(model.fit(X, y, sensitive_features=a).predict(X, sensitive_features=a))
    np.testing.assert_array_equal(found[0], found[1])
    with pytest.raises(DataError, match="random_state"):
        kind(LogisticRegression(), random_state="x").fit(X, y, sensitive_features=a)


@pytest.mark.parametrize("kind", [BarycenterPostprocessor, ThresholdPostprocessor])
def test_parameters_that_are_set_later_are_checked(kind: Any, refused: Refusals) -> None:
    X, y, a = people(100, 0)
    model = kind(LogisticRegression(), folds=1).fit(X, y, sensitive_features=a)
    with pytest.raises(DataError, match="tolerance"):
        model.set_params(tolerance=7).predict(X, sensitive_features=a)
    with refused(DataError):
        model.set_params(tolerance=0.0, needs_group=False).predict(X)
    model.fit(X, y, sensitive_features=a).predict(X)
    with pytest.raises(DataError, match="needs_group was False"):
        model.set_params(needs_group=True).predict(X, sensitive_features=a)


@pytest.mark.parametrize("kind", [BarycenterPostprocessor, ThresholdPostprocessor])
def test_a_group_too_small_to_be_guessed_is_named(kind: Any, refused: Refusals) -> None:
    X, y, _ = people(50, 0)
    groups = np.array(["many"] * 49 + ["few"])
    model = kind(LogisticRegression(), needs_group=False, random_state=0)
    with refused(TooFewSamples):
        model.fit(X, y, sensitive_features=groups)
    model.set_params(folds=1).fit(X, y, sensitive_features=groups)


def test_what_cannot_be_used() -> None:
    X, y, a = people(40, 0)
    for options, words in (
        ({"tolerance": 1.5}, "tolerance"),
        ({"folds": 0}, "folds"),
        ({"group_model": LinearRegression(), "needs_group": False}, "group_model"),
        ({"prefit": True, "estimator": None}, "prefit"),
    ):
        with pytest.raises(DataError, match=words):
            BarycenterPostprocessor(**{"estimator": LogisticRegression()} | options).fit(
                X, y, sensitive_features=a
            )
    with pytest.raises(DataError, match="requires y"):
        BarycenterPostprocessor(LogisticRegression()).fit(X, sensitive_features=a)
    with pytest.raises(DataError, match="XianPostprocessor takes more"):
        BarycenterPostprocessor(LogisticRegression()).fit(
            X, np.arange(40) % 3, sensitive_features=a
        )
    with pytest.raises(DataError, match="takes no sample_weight"):
        BarycenterPostprocessor(KNeighborsRegressor()).fit(
            X, y, sensitive_features=a, sample_weight=1.0 + a
        )


@pytest.mark.parametrize("heavy", [True, False])
def test_tied_scores_are_reported_by_the_weight_of_the_rows(heavy: bool) -> None:
    """Nine rows in ten of one group are tied; weights decide whether these rows count."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 300)
    tied = (group == 0) & (np.arange(600) % 10 > 0)
    score = np.where(tied, 0.5, rng.random(600) + 0.2 * group)
    weight = np.where(tied, 1.0 if heavy else 1e-4, 1.0)
    with pytest.warns(MetrifairWarning, match="scores are tied") if heavy else nullcontext():
        moved(score, group, sample_weight=weight)
