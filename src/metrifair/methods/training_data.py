"""What every baseline learns from: a table, its targets and its groups, checked, as arrays and codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, is_regressor
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from metrifair.errors import DataError
from metrifair.problem.cells import Attribute
from metrifair.problem.tables import UNKNOWN, Table, group_codes, same_length, same_rows

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CONDITIONED_ON: dict[str, tuple[int, ...]] = {
    "statistical_parity": (),
    "equal_opportunity": (1,),
    "equalized_odds": (0, 1),
}
"""The labels on which a criterion conditions; none: on no label."""

_LABELS = ({0, 1}, {-1, 1})  # booleans equal 0 and 1


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What a method learns from. Rows of weight zero are no rows: they are left out of every array."""

    x: Floats  # (n, features)
    y: NDArray[Any]  # class codes (the later of two classes is 1), or targets
    group: Integers  # codes into ``groups``
    groups: tuple[object, ...]
    weight: Floats  # ones where none was given

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: Integers) -> TrainingData:
        """Some of the rows; groups keep their codes."""
        return replace(self, x=self.x[rows], y=self.y[rows], group=self.group[rows], weight=self.weight[rows])

    def check_cells(self, labels: Iterable[int]) -> None:
        """Raise a DataError unless every group has a row with each of these labels (codes)."""
        for label in labels:
            for code, name in enumerate(self.groups):
                if not ((self.y == label) & (self.group == code)).any():
                    raise DataError(
                        f"group {name!r} has no row with label {label}, on which the criterion conditions; "
                        "leave the group out or take another criterion"
                    )


class TwoClassMixin(ClassifierMixin):
    """A classifier that says to scikit-learn that it takes two classes and no more."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def training_data(
    estimator: Any,
    X: Table,
    y: Table,
    sensitive_features: Table,
    *,
    sample_weight: ArrayLike | None = None,
    two_groups: bool,
    two_classes: bool = True,
) -> TrainingData:
    """Checked rows; notes the features, ``classes_`` of a classifier and ``groups_`` on the estimator.

    ``two_classes`` takes the labels 0 and 1, -1 and 1, False and True, and no others: which of two other values is the
    positive one would be a guess.
    """
    numeric = is_regressor(estimator)
    same_rows(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
    x, y = validate_data(estimator, X, y, dtype=np.float64, y_numeric=numeric, ensure_min_samples=2)
    weight: Floats = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    counts = weight > 0
    target, classes = y[counts], None
    if numeric:
        target = target.astype(np.float64)
    else:
        check_classification_targets(y)
        classes, target = np.unique(target, return_inverse=True)
        _check_classes(classes.tolist(), two_classes=two_classes)
    group, groups = _one_attribute(sensitive_features, len(x))
    present, group = np.unique(group[counts], return_inverse=True)
    groups = tuple(groups[code] for code in present)
    _check_groups(groups, len(group), two_groups=two_groups)
    if classes is not None:
        estimator.classes_ = classes
    estimator.groups_ = groups
    return TrainingData(x[counts], target, group.astype(np.int64), groups, weight[counts])


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


def features_at_predict(estimator: Any, X: Table, fitted: str = "groups_") -> Floats:
    """The features of new rows, checked against those of ``fit``, which has left the attribute ``fitted``."""
    check_is_fitted(estimator, fitted)
    x: Floats = validate_data(estimator, X, dtype=np.float64, reset=False)
    return x


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
