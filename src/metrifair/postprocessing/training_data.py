"""What every baseline learns from: a table, its targets and its groups, checked, as arrays and codes;
and what a model says of rows that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, is_regressor
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from metrifair.errors import DataError, TooFewSamples
from metrifair.problem.attributes import warn_of_labels
from metrifair.problem.cells import Attribute
from metrifair.problem.criteria import BINARY, STATISTICAL_PARITY
from metrifair.problem.problem import Given, Problem, Scheme, later_problem, problem_of
from metrifair.problem.tables import UNKNOWN, Table

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


class LogOddsMixin(TwoClassMixin):
    """Two classes by the log-odds of the positive one, ``_log_odds``; it is decided for from one half upwards."""

    def decision_function(self, X: Table) -> Floats:
        """The score: log-odds of the positive class.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-odds.
        """
        found: Floats = self._log_odds(X)
        return found

    def predict_proba(self, X: Table) -> Floats:
        """Probabilities of the two classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        probability = BINARY.prediction(torch.as_tensor(self._log_odds(X))).numpy()
        return np.stack([1 - probability, probability], axis=1)

    def predict(self, X: Table) -> NDArray[Any]:
        """The class of each sample: the positive one where its probability reaches the threshold of the method.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        accepted = self._accepted(X)  # first, since it says where nothing is fitted yet
        predicted: NDArray[Any] = self.classes_[accepted.astype(int)]
        return predicted

    def _accepted(self, X: Table) -> NDArray[np.bool_]:
        accepted: NDArray[np.bool_] = self._log_odds(X) >= 0
        return accepted


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
    x, target = validate_data(estimator, X, y, dtype=np.float64, y_numeric=numeric, ensure_min_samples=2)
    if not numeric:
        check_classification_targets(target)
    given = Given(y, sensitive_features, sample_weight=sample_weight, rows={"X": X})
    problem = problem_of(given, target="numbers" if numeric else "labels")
    warn_of_labels(problem)
    if not numeric:
        _check_classes(list(problem.scheme.classes), two_classes=two_classes)
    group, groups = _known_groups(problem)
    if two_groups and len(groups) > 2:
        raise DataError(f"this method compares two groups, sensitive_features holds {len(groups)}: {list(groups)}")
    if not numeric:
        estimator.classes_ = np.asarray(problem.scheme.classes)
    estimator.groups_ = groups
    weight = np.ones(len(problem)) if problem.weight is None else problem.weight
    x = np.require(problem.of_kept(x), requirements="W")  # torch warns of memory it may not write to
    return TrainingData(x, np.asarray(problem.labels), group, groups, weight)


def groups_at_fit(estimator: Any, X: Table, y: Table, sensitive_features: Table) -> Integers:
    """Codes of two or more groups; notes ``groups_`` on the estimator. For methods that leave X to another model."""
    problem = problem_of(Given(sensitive_features=sensitive_features, rows={"X": X, "y": y}))
    codes, estimator.groups_ = _known_groups(problem)
    return codes


def groups_at_predict(estimator: Any, X: Table, sensitive_features: Table) -> Integers:
    """Codes of the groups that ``fit`` saw; another group is an error."""
    known = Scheme(STATISTICAL_PARITY, attributes=(Attribute("sensitive_features", tuple(estimator.groups_)),))
    return _known_groups(later_problem(Given(sensitive_features=sensitive_features, rows={"X": X}), known))[0]


def features_at_predict(estimator: Any, X: Table, fitted: str = "groups_") -> Floats:
    """The features of new rows, checked against those of ``fit``, which has left the attribute ``fitted``."""
    check_is_fitted(estimator, fitted)
    x: Floats = validate_data(estimator, X, dtype=np.float64, reset=False)
    return x


def _known_groups(problem: Problem) -> tuple[Integers, tuple[object, ...]]:
    """Codes and groups of the only attribute; a DataError where a row's is missing."""
    if len(problem.scheme.attributes) != 1:
        count = len(problem.scheme.attributes)
        raise DataError(f"sensitive_features must be one column, got {count}; join them into one")
    codes = problem.groups[:, 0]
    unknown = np.flatnonzero(codes == UNKNOWN)
    if len(unknown):
        row = int(unknown[0] if problem.kept is None else np.flatnonzero(problem.kept)[unknown[0]])
        raise DataError(f"sensitive_features is missing in row {row}; this method needs the group of each row")
    return codes, problem.scheme.attributes[0].groups


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


class CrossedGroups(NamedTuple):
    """The combinations of all attributes' groups that were seen: each is a group of its own.

    Parity of all crossed groups is parity of every attribute, whichever is looked at first; one attribute after the
    other would be exact for the last one only.
    """

    scheme: Scheme
    seen: Integers  # (groups, attributes): codes, in ascending order

    @classmethod
    def of_rows(cls, problem: Problem, sets: Mapping[str, NDArray[np.bool_]]) -> CrossedGroups:
        """Those with rows in each of the sets; a combination without is as one that was not seen, a group an error."""
        known = (problem.groups != UNKNOWN).all(1)
        seen = np.unique(problem.groups[known], axis=0)
        for name, member in sets.items():
            inside = {tuple(codes) for codes in problem.groups[known & member].tolist()}
            there = np.array([tuple(codes) in inside for codes in seen.tolist()])
            if not there.all() and len(problem.scheme.attributes) == 1:
                group = problem.scheme.attributes[0].groups[int(seen[~there][0, 0])]
                raise TooFewSamples(f"group {group!r} has no row with {name}, on which the criterion conditions")
            seen = seen[there]
        if len(seen) < 2:
            raise TooFewSamples(f"sensitive_features: rows of {len(seen)} group(s) can be compared; two are needed")
        return cls(problem.scheme, seen)

    def codes(self, groups: Integers) -> Integers:
        """The crossed group of rows of these groups; unknown where an attribute is, or the combination was not seen.

        >>> from metrifair.problem.problem import Given, problem_of
        >>> problem = problem_of(Given(sensitive_features={"sex": ["f", "m", "f"], "old": [0, 0, 1]}))
        >>> CrossedGroups.of_rows(problem, {}).codes(np.array([[1, 0], [0, 1], [1, 1], [0, -1]]))
        array([ 2,  1, -1, -1])
        """
        radix = [len(attribute.groups) + 1 for attribute in self.scheme.attributes]
        known, own = (np.ravel_multi_index(tuple((table % radix).T), radix) for table in (self.seen, groups))
        place = np.searchsorted(known, own).clip(max=len(known) - 1)
        return np.where(known[place] == own, place, UNKNOWN)

    @property
    def names(self) -> tuple[object, ...]:
        """What the groups are called: of several attributes, by one value of each."""
        parts = [
            tuple(attribute.groups[code] for attribute, code in zip(self.scheme.attributes, codes, strict=True))
            for codes in self.seen.tolist()
        ]
        return tuple(part[0] for part in parts) if len(self.scheme.attributes) == 1 else tuple(parts)


# A model may predict a row differently in the last digits when others are predicted along with it: relative to the
# value, and, where terms cancel to almost 0, to a usual one. Not to the largest one, which may be an outlier.
_ROUNDING, _CANCELLED = 1e-9, 1e-14
_BY_HEART = 0.1  # share of the variation of what was learned, from which a model's word on its own rows is not taken

Fitted = Callable[[Integers], Any]
"""Numbers of rows -> a model that has learned from these."""
Told = Callable[[Any, Integers], Floats]
"""A fitted model and numbers of rows -> what it says of these."""


def rounding_of(values: Floats, usual: float | None = None) -> Floats:
    """How far from each value another one counts as equal to it."""
    usual = float(np.median(np.abs(values))) if usual is None else usual
    found: Floats = _ROUNDING * np.abs(values) + _CANCELLED * usual
    return found


def dealt_folds(most: int, labels: Integers, group: Integers, seed: int) -> Integers:
    """Which fold each row is kept apart in: all have the same mix of labels and groups, up to one row of each.

    There are no more than ``most`` of them, and than rows of the rarest label.
    """
    count = min(most, int(np.bincount(labels)[np.unique(labels)].min()))
    order = np.lexsort((np.random.RandomState(seed).random(len(labels)), group, labels))
    folds = np.empty(len(labels), dtype=np.int64)
    folds[order] = np.arange(len(labels)) % max(count, 1)
    return folds


def out_of_fold(fitted: Fitted, told: Told, folds: Integers) -> Floats:
    """What models say of rows that they have not seen; with one fold, of those that they have.

    >>> out_of_fold(lambda rows: rows.sum(), lambda model, rows: model + 0.1 * rows, np.array([0, 1, 0]))
    array([1. , 2.1, 1.2])
    """
    parts = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
    rest = [np.flatnonzero(folds != fold) if len(parts) > 1 else parts[0] for fold in range(len(parts))]
    said = [told(fitted(others), own) for others, own in zip(rest, parts, strict=True)]
    found: Floats = np.concatenate(said)[np.argsort(np.concatenate(parts))]
    return found


def learned_by_heart(own: Floats, apart: Floats, truth: Floats, weight: Floats) -> bool:
    """Whether a model knows rows that it learned from much better than others: then only ``apart`` tells of new rows.

    The share of the variation of the truth by which ``own``, what it says of its own rows, is nearer to it: about the
    number of parameters over that of rows. Groups whose labels differ by d have scores that differ by that share of d
    too much.
    """
    off = truth - np.average(truth, axis=0, weights=weight)
    nearer, all_of_it = (weight @ (one * off).reshape(len(off), -1) for one in (own - apart, off))
    return bool(nearer.sum() > _BY_HEART * all_of_it.sum())


def with_ties(own: Floats, apart: Floats) -> Floats:
    """The scores by models that have not seen the rows, ``apart``; of rows that the final model ties, its ``own`` ones.

    Equal rows have another score by each fold's model, but one score when they are predicted: what is cut or ranked
    must be what will be predicted.

    >>> with_ties(np.array([0.5, 0.2, 0.5, 0.7]), np.array([0.4, 0.3, 0.6, 0.8]))
    array([0.5, 0.3, 0.5, 0.8])
    """
    order = np.argsort(own, kind="stable")
    ascending = own[order]
    first = np.append(True, np.diff(ascending) > rounding_of(ascending)[1:])
    run = np.cumsum(first) - 1
    found = np.empty(len(own))
    found[order] = np.where(np.bincount(run)[run] > 1, ascending[first][run], apart[order])
    return found
