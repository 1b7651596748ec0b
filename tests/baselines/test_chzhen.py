"""Chzhen's map to the barycenter: worked numbers and properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from metrifair.baselines import ChzhenPostprocessor
from metrifair.errors import DataError, TooFewSamples
from metrifair.metrics import kolmogorov_distance
from tests.expected_errors import Refusals
from tests.seams.postprocessing import assign_folds


class FirstColumn(RegressorMixin, BaseEstimator):
    """A fitted model that predicts the first column."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> FirstColumn:
        return self

    def predict(self, X: Any) -> Any:
        return np.asarray(X)[:, 0]


def column(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=float)[:, None]


def mapped(values: Any, group: Any, **options: Any) -> ChzhenPostprocessor:
    return ChzhenPostprocessor(FirstColumn(), prefit=True, **options).fit(
        column(values), sensitive_features=group
    )


def test_two_groups_of_one_shape_meet_in_the_middle() -> None:
    values, group = np.r_[1:5, 3:7], np.repeat([0, 1], 4)
    found = mapped(values, group).predict(column(values), sensitive_features=group)
    assert found.tolist() == pytest.approx([2, 3, 4, 5, 2, 3, 4, 5])
    assert float(kolmogorov_distance(found[:4], found[4:])) == 0.0


def test_groups_of_unequal_size_and_new_rows() -> None:
    values, group = [1, 2, 3, 4, 10, 20], [0, 0, 0, 0, 1, 1]
    model = mapped(values, group)
    found = model.predict(column(values), sensitive_features=group)
    assert found.tolist() == pytest.approx([4, 14 / 3, 26 / 3, 28 / 3, 14 / 3, 28 / 3])
    new = model.predict(column([2.5, 0, 99]), sensitive_features=[0, 0, 1])
    assert new.tolist() == pytest.approx([14 / 3, 4, 28 / 3])


@given(seed=st.integers(0, 10**6), sizes=st.lists(st.integers(1, 40), min_size=2, max_size=4))
@settings(max_examples=50, deadline=None)
def test_order_is_kept_and_groups_agree_up_to_one_row(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    values = rng.permutation(len(group)) + rng.uniform(0, 0.5, len(group)) + 3 * group
    found = mapped(values, group).predict(column(values), sensitive_features=group)
    for code in range(len(sizes)):
        own = group == code
        assert (np.diff(found[own][np.argsort(values[own])]) >= 0).all()
        for other in range(code):
            gap = float(kolmogorov_distance(found[own], found[group == other]))
            assert gap <= 1 / min(sizes[code], sizes[other]) + 1e-9


def test_equal_laws_stay_and_a_dominating_group_keeps_its_own() -> None:
    values = np.array([3.0, 1.0, 2.0])
    both, group = np.tile(values, 2), np.repeat([0, 1], 3)
    np.testing.assert_allclose(
        mapped(both, group).predict(column(both), sensitive_features=group), both
    )
    many, group = np.append(np.arange(1000.0), [-5.0, 2000.0]), np.repeat([0, 1], [1000, 2])
    found = mapped(many, group).predict(column(many), sensitive_features=group)
    assert np.abs(found[:1000] - many[:1000]).max() < 3


def test_ranks_are_integers_whatever_floating_point_says() -> None:
    values, group = np.tile(np.arange(25.0), 2), np.repeat([0, 1], 25)
    np.testing.assert_allclose(
        mapped(values, group).predict(column(values), sensitive_features=group), values
    )


def test_the_way_there_is_a_line() -> None:
    values, group = np.array([1.0, 2.0, 3.0, 4.0, 10.0, 20.0]), [0, 0, 0, 0, 1, 1]
    fair = mapped(values, group).predict(column(values), sensitive_features=group)
    for t in (0.0, 0.3, 1.0):
        found = mapped(values, group, tolerance=1 - t).predict(
            column(values), sensitive_features=group
        )
        np.testing.assert_allclose(found, (1 - t) * values + t * fair)


def tied_rows() -> tuple[np.ndarray, np.ndarray]:
    """Rows of two groups whose first columns, the predictions, are tied; no two rows are equal."""
    values, group = np.repeat([0.0, 0.0, 1.0, 2.0], [50, 50, 50, 50]), np.tile([0, 1], 100)
    return np.column_stack([values + group, np.arange(200.0)]), group


def test_a_jitter_breaks_ties() -> None:
    rows, group = tied_rows()  # two atoms of different weight in each group
    plain, jittered = (
        ChzhenPostprocessor(FirstColumn(), prefit=True, sigma=sigma, random_state=0)
        .fit(rows, sensitive_features=group)
        .predict(rows, sensitive_features=group)
        for sigma in (0.0, 1e-6)
    )
    gaps = [
        float(kolmogorov_distance(found[group == 0], found[group == 1]))
        for found in (plain, jittered)
    ]
    assert gaps[0] == pytest.approx(0.0)
    assert len(np.unique(plain)) == 3
    assert len(np.unique(jittered)) >= 100


@pytest.mark.parametrize(
    "frame",
    [np.asarray, np.ndarray.tolist, pd.DataFrame, lambda rows: pd.DataFrame(rows).assign(name="a")],
)
@pytest.mark.parametrize("seed", [0, None])
def test_a_jittered_prediction_does_not_depend_on_the_other_rows(
    frame: Any, seed: int | None
) -> None:
    rows, group = tied_rows()
    model = ChzhenPostprocessor(FirstColumn(), prefit=True, sigma=0.5, random_state=seed)
    model.fit(rows, sensitive_features=group)

    def predict(which: Any) -> np.ndarray:
        return model.predict(frame(rows[which]), sensitive_features=group[which])

    together, order = predict(slice(None)), np.random.default_rng(0).permutation(len(rows))
    np.testing.assert_array_equal(predict(order), together[order])
    in_batches = np.concatenate(
        [predict(slice(start, start + 7)) for start in range(0, len(rows), 7)]
    )
    np.testing.assert_array_equal(in_batches, together)


def test_halves_rank_with_one_and_value_with_the_other() -> None:
    rng = np.random.default_rng(0)
    values, group = rng.normal(size=101) + np.repeat([0, 5], [50, 51]), np.repeat([0, 1], [50, 51])
    model = mapped(values, group, split=True, random_state=1)
    assert [len(part) for part in model.ranked_] == [25, 25]
    assert [len(part) for part in model.valued_] == [25, 26]
    for code in (0, 1):
        joined = np.sort(np.append(model.ranked_[code], model.valued_[code]))
        np.testing.assert_array_equal(joined, np.sort(values[group == code]))


def test_rows_are_kept_from_the_estimator_in_turn() -> None:
    rng = np.random.default_rng(0)
    x, group = rng.normal(size=(100, 2)), np.repeat([0, 1], [60, 40])
    y = x[:, 0] + group
    model = ChzhenPostprocessor(LinearRegression(), folds=4, random_state=0).fit(
        x, y, sensitive_features=group
    )
    everything = ChzhenPostprocessor(LinearRegression()).fit(x, y, sensitive_features=group)
    assert (
        [len(part) for part in model.valued_]
        == [len(part) for part in everything.valued_]
        == [60, 40]
    )
    assert np.array_equal(model.base_.coef_, everything.base_.coef_)  # which serves new rows
    folds = assign_folds(4, np.zeros_like(group), group, 0)
    apart = np.empty(100)
    for fold in range(4):
        others = LinearRegression().fit(x[folds != fold], y[folds != fold])
        apart[folds == fold] = others.predict(x[folds == fold])
    for code in (0, 1):
        np.testing.assert_allclose(model.valued_[code], np.sort(apart[group == code]))


def test_a_fit_that_fails_leaves_the_model_as_it_was(refused: Refusals) -> None:
    x, group = np.arange(8.0)[:, None], np.array(["a", "b"] * 4)
    model = ChzhenPostprocessor(LinearRegression(), split=True, random_state=0)
    one_of_b = {"sensitive_features": np.array(["a"] * 7 + ["b"])}
    with refused(TooFewSamples):
        model.fit(x, x[:, 0], **one_of_b)
    with pytest.raises(NotFittedError):
        model.predict(x, sensitive_features=group)
    before = model.fit(x, x[:, 0], sensitive_features=group).predict(x, sensitive_features=group)
    with pytest.raises(TooFewSamples):
        model.fit(x, -x[:, 0], **one_of_b)
    np.testing.assert_array_equal(model.predict(x, sensitive_features=group), before)


def test_groups_may_be_a_dictionary_where_rows_are_kept_apart() -> None:
    x, group = np.arange(12.0)[:, None], np.array(["a", "b"] * 6)
    found = [
        ChzhenPostprocessor(LinearRegression(), folds=2, random_state=0).fit(
            x, x[:, 0], sensitive_features=given
        )
        for given in (group, {"g": group.tolist()})
    ]
    one, other = (model.predict(x, sensitive_features=group) for model in found)
    np.testing.assert_array_equal(one, other)


def test_the_network_is_the_default_estimator() -> None:
    rng = np.random.default_rng(0)
    x, group = rng.normal(size=(200, 2)), np.repeat([0, 1], 100)
    y = x[:, 0] + 2 * group
    model = ChzhenPostprocessor(random_state=0).fit(
        np.column_stack([x, group]), y, sensitive_features=group
    )
    found = model.predict(np.column_stack([x, group]), sensitive_features=group)
    assert model.base_.strength == 0.0
    assert float(kolmogorov_distance(found[group == 0], found[group == 1])) < 0.02


@pytest.mark.parametrize(
    "options",
    [{"tolerance": -0.1}, {"tolerance": 1.1}, {"sigma": -1.0}, {"split": "yes"}, {"folds": 0}],
)
def test_parameters_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=next(iter(options))):
        mapped([1, 2, 3], [0, 1, 1], **options)


def test_what_cannot_be_used() -> None:
    with pytest.raises(DataError, match="two rows"):
        mapped([1, 2, 3], [0, 1, 1], split=True)
    with pytest.raises(DataError, match="needs at least two"):
        mapped([1, 2, 3], [0, 0, 0])
    with pytest.raises(DataError, match="2"):
        mapped([1, 2, 3], [0, 1, 1]).predict(column([1]), sensitive_features=[2])
    with pytest.raises(DataError, match="prefit"):
        ChzhenPostprocessor(prefit=True).fit(column([1, 2]), sensitive_features=[0, 1])
    with pytest.raises(DataError, match="requires y"):
        ChzhenPostprocessor(LinearRegression()).fit(column([1, 2]), sensitive_features=[0, 1])
    with pytest.raises(DataError, match="finite"):
        mapped([1, np.nan, 3], [0, 1, 1])
