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
from metrifair.methods import inputs

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0], [3.0, 3.0]])
Y = np.array([0, 1, 0, 1])
A = ["f", "m", "m", "f"]


class Plain(BaseEstimator):
    """An estimator for the attributes that are noted."""

    def fit(self) -> None: ...


def rows(x: Any = X, y: Any = Y, a: Any = A, **options: Any) -> inputs.Rows:
    return inputs.classification_rows(Plain(), x, y, a, **options)


@pytest.mark.parametrize(
    ("y", "codes"),
    [([0, 1, 0, 1], [0, 1, 0, 1]), ([-1, 1, 1, -1], [0, 1, 1, 0]), ([True, False, True, True], [1, 0, 1, 1])],
)
def test_labels_are_zero_and_one_or_minus_one_and_one_or_booleans(y: list[object], codes: list[int]) -> None:
    estimator = Plain()
    found = inputs.classification_rows(estimator, X, y, A)
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
    found = inputs.classification_rows(estimator, X, Y, frame(A))
    assert found.group.tolist() == [0, 1, 1, 0]
    assert found.groups == estimator.groups_ == ("f", "m")
    assert inputs.groups_at_predict(estimator, frame(["m"] * 3), 3).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (None, "sensitive_features is missing"),
        (["f", "f", "f", "f"], "at least two groups"),
        (["a", "b", "c", "a"], "two groups"),
        (["f", None, "m", "m"], "missing in row 1"),
        (["f", "m"], "one length"),
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
    with pytest.raises(ValueError, match=r"array|NaN|infinity|sample|one length|empty|at least"):
        rows(x=x, y=y)


def test_rows_of_weight_zero_are_no_rows() -> None:
    found = rows(a=["f", "m", "m", "x"], y=[0, 1, 0, 7], sample_weight=[1.0, 2.0, 0.5, 0.0])
    assert found.weight.tolist() == [1.0, 2.0, 0.5]
    assert found.groups == ("f", "m")
    assert len(found) == 3
    with pytest.raises(ValueError, match="at least one non-zero"):
        rows(sample_weight=np.zeros(4))


def test_new_rows_are_checked_against_those_of_fit() -> None:
    estimator = Plain()
    with pytest.raises(NotFittedError):
        inputs.features(estimator, X)
    inputs.classification_rows(estimator, X, Y, A)
    with pytest.raises(ValueError, match="features"):
        inputs.features(estimator, X[:, :1])
    with pytest.raises(DataError, match="'x'"):
        inputs.groups_at_predict(estimator, ["x", "f"], 2)
    with pytest.raises(DataError, match="one length"):
        inputs.groups_at_predict(estimator, ["f"], 2)


def test_an_empty_cell_is_named() -> None:
    found = rows(y=[1, 0, 0, 1])
    inputs.check_cells(found, [])
    with pytest.raises(DataError, match="'m' has no row with label 1"):
        inputs.check_cells(found, [1])
    with pytest.raises(DataError, match="'f' has no row with label 0"):
        inputs.check_cells(found, [0])


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.1, 1.1, True, "1", None, np.array([0.5])])
def test_numbers_out_of_range(value: object) -> None:
    with pytest.raises(DataError, match="alpha must be a finite number, at least 0, at most 1, got"):
        inputs.check_number("alpha", value, low=0, high=1)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.int64(1)])
def test_numbers_in_range(value: object) -> None:
    inputs.check_number("alpha", value, low=0, high=1)


def test_an_open_bound() -> None:
    with pytest.raises(DataError, match="above 0"):
        inputs.check_number("epsilon", 0.0, low=0, low_open=True)
