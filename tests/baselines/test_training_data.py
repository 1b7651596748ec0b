"""What the methods refuse, and how they code what they take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from metrifair.errors import DataError
from tests.seams.baselines import (
    TrainingData,
    features_at_predict,
    groups_at_predict,
    training_data,
)

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0], [3.0, 3.0]])
Y = np.array([0, 1, 0, 1])
A = ["f", "m", "m", "f"]


class Plain(BaseEstimator):
    """An estimator for the attributes that are noted."""

    def fit(self) -> None: ...


def rows(
    x: Any = X, y: Any = Y, a: Any = A, *, two_groups: bool = True, **options: Any
) -> TrainingData:
    return training_data(Plain(), x, y, a, two_groups=two_groups, **options)


@pytest.mark.parametrize(
    ("y", "codes"),
    [
        ([0, 1, 0, 1], [0, 1, 0, 1]),
        ([-1, 1, 1, -1], [0, 1, 1, 0]),
        ([True, False, True, True], [1, 0, 1, 1]),
    ],
)
def test_labels_are_zero_and_one_or_minus_one_and_one_or_booleans(
    y: list[object], codes: list[int]
) -> None:
    estimator = Plain()
    found = training_data(estimator, X, y, A, two_groups=True)
    assert found.y.tolist() == codes
    assert estimator.classes_[found.y].tolist() == y


@pytest.mark.parametrize("y", [[1, 2, 1, 2], ["no", "yes", "no", "no"], [0, 1, 2, 0], [0, 0, 0, 0]])
def test_other_labels_are_refused(y: list[object]) -> None:
    with pytest.raises(DataError, match="class"):
        rows(y=y)


def test_several_classes_where_they_are_allowed() -> None:
    assert rows(y=["b", "a", "c", "b"], two_classes=False).y.tolist() == [1, 0, 2, 1]


@pytest.mark.parametrize("frame", [lambda a: a, np.array, pd.Series, lambda a: pl.Series("sex", a)])
def test_groups_may_be_any_values_in_any_column(frame: Any) -> None:
    estimator = Plain()
    found = training_data(estimator, X, Y, frame(A), two_groups=True)
    assert found.group.tolist() == [0, 1, 1, 0]
    assert found.groups == estimator.groups_ == ("f", "m")
    assert groups_at_predict(estimator, X[:3], frame(["m"] * 3)).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (None, "sensitive_features is missing"),
        (["f", "f", "f", "f"], "needs at least two"),
        (["a", "b", "c", "a"], "two groups"),
        (["f", None, "m", "m"], "missing in row 1"),
        (["f", "m"], "the same length"),
        (np.array([[0, 1], [1, 1], [0, 0], [1, 0]]), "one column"),
    ],
)
def test_groups_that_cannot_be_used(groups: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        rows(a=groups)


def test_three_groups_where_they_are_allowed() -> None:
    assert rows(a=["a", "b", "c", "a"], two_groups=False).groups == ("a", "b", "c")


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.array([1.0, 2.0, 3.0, 4.0]), Y),
        (np.where(X == 5, np.nan, X), Y),
        (np.where(X == 5, np.inf, X), Y),
        (X[:0], Y[:0]),
        (X, Y[:3]),
    ],
)
def test_tables_that_cannot_be_used(x: Any, y: Any) -> None:
    with pytest.raises(ValueError, match=r"array|NaN|infinity|sample|same length|empty|at least"):
        rows(x=x, y=y)


def test_rows_of_weight_zero_are_no_rows() -> None:
    found = rows(a=["f", "m", "m", "x"], y=[0, 1, 0, 7], sample_weight=[1.0, 2.0, 0.5, 0.0])
    assert found.weight.tolist() == [1.0, 2.0, 0.5]
    assert found.groups == ("f", "m")
    assert len(found) == 3
    with pytest.raises(ValueError, match="zero for every sample"):
        rows(sample_weight=np.zeros(4))


def test_a_missing_group_is_named_by_the_row_that_was_handed_over() -> None:
    with pytest.raises(DataError, match="missing in row 3"):
        rows(a=["f", None, "m", None], sample_weight=[1.0, 0.0, 1.0, 1.0])
    assert (
        len(rows(y=[0, 1, 1, 0], a=["f", None, "m", "m"], sample_weight=[1.0, 0.0, 1.0, 1.0])) == 3
    )


def test_new_rows_are_checked_against_those_of_fit() -> None:
    estimator = Plain()
    with pytest.raises(NotFittedError):
        features_at_predict(estimator, X, "groups_")
    training_data(estimator, X, Y, A, two_groups=True)
    with pytest.raises(ValueError, match="features"):
        features_at_predict(estimator, X[:, :1], "groups_")
    with pytest.raises(DataError, match="'x'"):
        groups_at_predict(estimator, X[:2], ["x", "f"])
    with pytest.raises(DataError, match="the same length"):
        groups_at_predict(estimator, X[:2], ["f"])


def test_an_empty_cell_is_named() -> None:
    found = rows(y=[1, 0, 0, 1])
    found.check_cells([])
    with pytest.raises(DataError, match="'m' has no row with label 1"):
        found.check_cells([1])
    with pytest.raises(DataError, match="'f' has no row with label 0"):
        found.check_cells([0])
