"""What every method here checks first: a table, its targets and its groups -> arrays and codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from metrifair.checks import is_whole
from metrifair.errors import DataError
from metrifair.problem.cells import Attribute
from metrifair.problem.tables import UNKNOWN, Table, group_codes, same_length, same_rows

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_NUMBERS = (int, float, np.integer, np.floating)
_LABELS = ({0, 1}, {-1, 1})  # booleans equal 0 and 1


@dataclass(frozen=True, eq=False)
class Rows:
    """What a method learns from. Rows of weight zero are no rows: they are left out of every array."""

    x: Floats  # (n, features)
    y: NDArray[Any]  # class codes (the later of two classes is 1), or targets
    group: Integers  # codes into ``groups``
    groups: tuple[object, ...]
    weight: Floats  # ones where none was given

    def __len__(self) -> int:
        return len(self.x)


class TwoClasses(ClassifierMixin):
    """A classifier that says to scikit-learn that it takes two classes and no more."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def classification_rows(
    estimator: Any,
    X: Table,
    y: Table,
    sensitive_features: Table,
    *,
    sample_weight: ArrayLike | None = None,
    two_groups: bool = True,
    two_classes: bool = True,
) -> Rows:
    """Checked rows; notes features, ``classes_`` and ``groups_`` on the estimator.

    ``two_classes`` takes the labels 0 and 1, -1 and 1, False and True, and no others: which of two other values is the
    positive one would be a guess.
    """
    same_rows(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
    x, y = validate_data(estimator, X, y, dtype=np.float64, ensure_min_samples=2)
    check_classification_targets(y)
    weight: Floats = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    classes, labels = np.unique(y[weight > 0], return_inverse=True)
    _check_classes(classes.tolist(), two_classes=two_classes)
    x, group, groups, weight = _counted(x, sensitive_features, weight, two_groups=two_groups)
    estimator.classes_, estimator.groups_ = classes, groups
    return Rows(x, labels.astype(np.int64), group, groups, weight)


def regression_rows(
    estimator: Any,
    X: Table,
    y: Table,
    sensitive_features: Table,
    *,
    sample_weight: ArrayLike | None = None,
    two_groups: bool = True,
) -> Rows:
    """Checked rows with real targets; notes features and ``groups_`` on the estimator."""
    same_rows(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
    x, y = validate_data(estimator, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
    weight: Floats = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    y = y[weight > 0].astype(np.float64)
    x, group, groups, weight = _counted(x, sensitive_features, weight, two_groups=two_groups)
    estimator.groups_ = groups
    return Rows(x, y, group, groups, weight)


def groups_at_fit(estimator: Any, sensitive_features: Table, n: int) -> Integers:
    """Codes of two or more groups; notes ``groups_`` on the estimator. For methods that leave X to another model."""
    codes, groups = _one_attribute(sensitive_features, n)
    _check_groups(groups, n, two_groups=False)
    estimator.groups_ = groups
    return codes


def groups_at_predict(estimator: Any, sensitive_features: Table, n: int) -> Integers:
    """Codes of the groups that ``fit`` saw; another group is an error."""
    known = (Attribute("sensitive_features", tuple(estimator.groups_)),)
    return _one_attribute(sensitive_features, n, known)[0]


def features(estimator: Any, X: Table) -> Floats:
    """The features of new rows, checked against those of ``fit``."""
    check_is_fitted(estimator, "groups_")
    x: Floats = validate_data(estimator, X, dtype=np.float64, reset=False)
    return x


def check_cells(rows: Rows, labels: Iterable[int]) -> None:
    """Raise a DataError unless every group has a row with each of these labels (codes)."""
    for label in labels:
        for code, name in enumerate(rows.groups):
            if not ((rows.y == label) & (rows.group == code)).any():
                raise DataError(
                    f"group {name!r} has no row with label {label}, on which the criterion conditions; "
                    "leave the group out or take another criterion"
                )


def check_number(name: str, value: object, *, low: float = -inf, high: float = inf, low_open: bool = False) -> None:
    """Raise a DataError unless the value is a finite number from ``low`` (or above it) to ``high``.

    >>> check_number("gamma", 0.5, low=0)
    >>> check_number("gamma", -1, low=0)
    Traceback (most recent call last):
    metrifair.errors.DataError: gamma must be a finite number, at least 0, got -1
    """
    number = float(value) if isinstance(value, _NUMBERS) and not isinstance(value, bool) else nan
    if isfinite(number) and (low < number if low_open else low <= number) and number <= high:
        return
    bounds = [f"{'above' if low_open else 'at least'} {low:g}"] if low > -inf else []
    bounds += [f"at most {high:g}"] if high < inf else []
    raise DataError(", ".join([f"{name} must be a finite number", *bounds]) + f", got {value!r}")


def check_whole(name: str, value: object, *, least: int) -> None:
    """Raise a DataError unless the value is a whole number from ``least`` upwards.

    >>> check_whole("rounds", 2.5, least=0)
    Traceback (most recent call last):
    metrifair.errors.DataError: rounds must be a whole number from 0 upwards, got 2.5
    """
    if not is_whole(value, least=least):
        raise DataError(f"{name} must be a whole number from {least} upwards, got {value!r}")


def _counted(
    x: Floats, sensitive_features: Table, weight: Floats, *, two_groups: bool
) -> tuple[Floats, Integers, tuple[object, ...], Floats]:
    """Features, groups and weights where the weight is not zero; groups are coded by those that remain."""
    group, groups = _one_attribute(sensitive_features, len(x))
    counts = weight > 0
    present, group = np.unique(group[counts], return_inverse=True)
    groups = tuple(groups[code] for code in present)
    _check_groups(groups, len(group), two_groups=two_groups)
    return x[counts], group.astype(np.int64), groups, weight[counts]


def _one_attribute(
    sensitive_features: Table, n: int, known: tuple[Attribute, ...] | None = None
) -> tuple[Integers, tuple[object, ...]]:
    if sensitive_features is None:
        raise DataError("sensitive_features is missing: this method needs the group of each row")
    found = group_codes(sensitive_features, attributes=known)
    if len(found.attributes) != 1:
        raise DataError(f"sensitive_features must be one column, got {len(found.attributes)}; join them into one")
    codes = found.codes[:, 0]
    same_length(X=range(n), sensitive_features=codes)
    if (codes == UNKNOWN).any():
        row = int(np.flatnonzero(codes == UNKNOWN)[0])
        raise DataError(f"sensitive_features is missing in row {row}; this method needs the group of each row")
    return codes, found.attributes[0].groups


def _check_groups(groups: tuple[object, ...], n: int, *, two_groups: bool) -> None:
    if len(groups) < 2:
        raise DataError(f"sensitive_features must hold at least two groups, got {list(groups)} in {n} sample(s)")
    if two_groups and len(groups) > 2:
        raise DataError(f"this method compares two groups, sensitive_features holds {len(groups)}: {list(groups)}")


def _check_classes(classes: list[object], *, two_classes: bool) -> None:
    if len(classes) < 2:
        raise DataError(f"y must hold at least two classes, got one class: {classes}")
    if two_classes and len(classes) > 2:
        raise DataError(f"Only binary classification is supported. y holds {len(classes)} classes: {classes[:5]}")
    if two_classes and set(classes) not in _LABELS:
        raise DataError(
            f"this method takes the labels 0 and 1, -1 and 1, or False and True in y, got the classes {classes}; "
            "convert them so that the positive class is 1"
        )
