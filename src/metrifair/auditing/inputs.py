"""What an audit was given, checked once: predictions, groups, outcomes, weights, and the parts to compare within."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from metrifair.auditing.atoms import Floats, Integers
from metrifair.auditing.old_inputs import labels_of, positive_of, predictions_of, scores_of, weights_of
from metrifair.checks import is_whole
from metrifair.errors import DataError
from metrifair.problem.cells import EVERYONE, Attribute, Strata, compiled
from metrifair.problem.criteria import STATISTICAL_PARITY, Criterion
from metrifair.problem.tables import (
    Groups,
    Table,
    columns,
    group_codes,
    is_missing,
    levels,
    same_length,
    same_rows,
    stratum_codes,
)

MOST_GROUPS = 1_000  # that are compared unasked: a column with more values was mostly picked by mistake
MOST_LEVELS = 10_000  # that can be told apart
_FEW_GROUPS = 30  # up to so many may be as small as they like
_MOST_CLASSES = 20  # whole numbers with more values than this are measurements, not classes
_NOBODY = Attribute("nobody", ("one", "other"))


@dataclass(frozen=True, eq=False)
class Given:
    """The arguments of an audit as arrays."""

    prediction: Tensor  # (n,), or (n, classes)
    groups: Groups
    y_true: Table | None
    classes: tuple[object, ...]  # of the outcome; empty without one and for a regression target
    positive: int
    strata: tuple[Integers, Strata] | None
    weights: Floats | None
    loss: str | None
    positive_assumed: bool = False  # nobody said which label is the positive one

    def __len__(self) -> int:
        return len(self.prediction)

    @property
    def has_target(self) -> bool:
        """True where the outcome is a measurement."""
        return self.y_true is not None and not self.classes

    @property
    def score(self) -> Floats | None:
        """The one prediction of each sample: of the positive class, where there are two; None for more classes."""
        if self.prediction.ndim == 1:
            return self.prediction.numpy()
        if self.prediction.shape[1] != 2:
            return None
        # One label alone does not tell which column is its own; the last one is that of the positive class.
        return self.prediction[:, self.positive if len(self.classes) == 2 else 1].numpy()

    @property
    def outcome(self) -> Floats | None:
        """The outcome as a number: the target, or 1 at the positive one of two labels; None for several classes."""
        if self.y_true is None or len(self.classes) > 2:
            return None
        column = next(iter(columns("y_true", self.y_true).values()))
        if self.has_target:
            return np.asarray(column, dtype=np.float64)
        return np.asarray(column == self.classes[self.positive], dtype=np.float64)

    @property
    def probabilities(self) -> bool:
        """True where all predictions lie in [0, 1] and nothing says that they are measurements."""
        return not self.has_target and float(self.prediction.min()) >= 0 and float(self.prediction.max()) <= 1


def given(
    y_pred: Table,
    *,
    sensitive_features: Table,
    y_true: Table | None = None,
    control_features: Table | None = None,
    sample_weight: Table | None = None,
    intersectional: bool = False,
    pos_label: object = None,
    loss: str | None = None,
    most_groups: int | None = None,
) -> Given:
    """The arguments, checked."""
    prediction = predictions_of(y_pred)
    same_rows(
        y_pred=y_pred,
        y_true=y_true,
        sensitive_features=sensitive_features,
        control_features=control_features,
        sample_weight=sample_weight,
    )
    if not np.isfinite(float(prediction.max()) - float(prediction.min())):
        raise DataError("y_pred spans more than floating-point numbers can; scale the scores down")
    groups = group_codes(sensitive_features, intersectional=intersectional)
    strata = None if control_features is None else stratum_codes(control_features)
    same_length(
        y_pred=prediction,
        y_true=y_true,
        sensitive_features=groups.codes,
        control_features=None if strata is None else strata[0],
        sample_weight=sample_weight,
    )
    for attribute, codes in zip(groups.attributes, groups.codes.T, strict=True):
        check_groups(attribute.name, len(attribute.groups), int((codes >= 0).sum()), most_groups)
    weights = weights_of(sample_weight)
    classes = () if y_true is None else _classes(y_true)
    positive = positive_of(classes, pos_label)
    _check_columns(prediction, classes, pos_label)
    return Given(
        prediction,
        groups,
        y_true,
        classes,
        positive,
        strata,
        None if weights is None else weights.numpy(),
        loss,
        positive_assumed=pos_label is None,
    )


def check_groups(attribute: str, groups: int, samples: int, most: int | None = None) -> None:
    """Raise a DataError unless there are two groups to compare, and not more than were meant.

    An id, a date or a measurement makes a group of each value: there are then very many of them, or hardly any has two
    samples. ``most`` groups are compared where the user says so.
    """
    if groups < 2:
        raise DataError(f"{attribute} must hold at least two groups, got {groups}; there is nobody to compare with")
    if groups > groups_allowed(most):
        raise too_many_groups(attribute, f"{groups:,} different values", groups)
    if most is None and groups > _FEW_GROUPS and 2 * groups > samples:
        raise too_many_groups(attribute, f"{groups:,} different values in {samples:,} samples", groups)


def groups_allowed(most: int | None) -> int:
    """How many groups may be compared; a DataError where ``most`` is no such number."""
    if most is None:
        return MOST_GROUPS
    if not is_whole(most, least=2) or most > MOST_LEVELS:
        raise DataError(f"most_groups must be a whole number from 2 to {MOST_LEVELS:,}, or None, got {most!r}")
    return int(most)


def too_many_groups(attribute: str, found: str, groups: int) -> DataError:
    """What is wrong with a column that makes so many groups, and what to do about it."""
    insist = f"; pass most_groups={groups} if each value is a group" if groups <= MOST_LEVELS else ""
    return DataError(
        f"the groups {attribute!r} hold {found}, as an id or a measurement does: too many to compare; name another "
        f"column, or cut its values into a few ranges first{insist}"
    )


def _classes(y_true: Table) -> tuple[object, ...]:
    """The labels in ascending order; none where the outcome is a measurement."""
    (name, column), *others = columns("y_true", y_true).items()
    if others:
        raise DataError(f"y_true must be one column, got {len(others) + 1}")
    missing = int(is_missing(column).sum())
    if missing:
        raise DataError(f"{name} misses {missing} of {len(column)} values; leave those samples out")
    found = levels(name, column)
    numbers = [level for level in found if isinstance(level, Real | Decimal)]
    if len(numbers) < len(found):
        return _named_classes(name, found)
    if not all(isfinite(number) for number in numbers):
        raise DataError(f"{name} holds infinite values; leave those samples out")
    whole = all(float(number).is_integer() for number in numbers[: _MOST_CLASSES + 1])
    return found if len(found) <= 2 or (whole and len(found) <= _MOST_CLASSES) else ()


def _named_classes(name: str, found: tuple[object, ...]) -> tuple[object, ...]:
    """Labels that are words."""
    other = next((level for level in found if not isinstance(level, str)), None)
    if other is not None:
        raise DataError(
            f"{name} must hold labels (text, whole numbers) or a numeric target, got {type(other).__name__} values "
            f"such as {other}; turn them into numbers or text"
        )
    if len(found) > _MOST_CLASSES:
        raise DataError(
            f"{name} holds {len(found):,} labels, an audit compares at most {_MOST_CLASSES}; merge labels, pass a "
            "target as numbers, or leave y_true out"
        )
    return found


def _check_columns(prediction: Tensor, classes: tuple[object, ...], pos_label: object) -> None:
    """Raise a DataError unless it is clear whose probability each column of the predictions is."""
    if prediction.ndim == 1 or not classes:
        return
    if len(classes) > prediction.shape[1]:
        raise DataError(
            f"y_pred must have one column for each label, got {prediction.shape[1]} columns for the labels "
            f"{list(classes)}; pass the probabilities of all classes, or of one as a single column"
        )
    if prediction.shape[1] == 2 and len(classes) == 1 and pos_label is not None:
        raise DataError(
            f"y_true holds the label {classes[0]!r} only, which does not tell the column of pos_label={pos_label!r}; "
            "pass its probability as a single column"
        )


class Part(NamedTuple):
    """The scores that one criterion compares within one of its sets."""

    criterion: str
    within: str
    rows: Integers  # of the samples in the set
    distinct: Floats  # scores of those samples, ascending
    place: Integers  # of each sample's score among them
    of_predictions: bool = True  # False: of losses or another score, whose range is not that of the predictions


def parts(data: Given, criteria: Sequence[Criterion]) -> Iterator[Part]:
    """Every criterion x set; class probabilities of three or more classes one class at a time."""
    for criterion in criteria:
        labels, classes = labels_of(data.y_true, criterion, data.loss if criterion.score == "loss" else None)
        positive = data.positive if classes == data.classes else positive_of(classes, None)
        scores = _scores(data, criterion, labels, classes, positive)
        for name, inside in _sets(data, criterion, labels, classes, positive):
            rows = np.flatnonzero(inside)
            for of_class, score in scores.items():
                within = ", ".join(text for text in (name, of_class) if text)
                distinct, place = np.unique(score[rows], return_inverse=True)
                yield Part(criterion.name, within, rows, distinct, place, criterion.score == "prediction")


def _scores(
    data: Given, criterion: Criterion, labels: NDArray[Any] | None, classes: tuple[object, ...], positive: int
) -> dict[str, Floats]:
    """Scores (n,) by the class whose probability they are; by "" where there is one score."""
    if criterion.score == "prediction" and data.score is not None:
        return {"": data.score}
    loss = data.loss if criterion.score == "loss" else None
    found = scores_of(criterion, data.prediction, labels, classes=classes, positive=positive, loss=loss).numpy()
    if found.ndim == 1:
        return {"": found}
    names = data.classes if len(data.classes) == found.shape[1] else range(found.shape[1])
    return {f"probability of {name}": np.ascontiguousarray(found[:, place]) for place, name in enumerate(names)}


def strata_of(data: Given) -> list[tuple[str, NDArray[np.bool_]]]:
    """The strata by name, or everyone."""
    if data.strata is None:  # finding the cells of a million samples would take longer than counting them
        return [(name, np.ones(len(data), np.bool_)) for name in EVERYONE.names]
    return _sets(data, STATISTICAL_PARITY, None, (), 1)


def _sets(
    data: Given, criterion: Criterion, labels: NDArray[Any] | None, classes: tuple[object, ...], positive: int
) -> list[tuple[str, NDArray[np.bool_]]]:
    """Who is in which set: as in training, by cells, of an attribute that tells nobody apart."""
    strata, names = (None, None) if data.strata is None else data.strata
    cells = compiled(criterion, [_NOBODY], classes=classes, positive=positive, strata=names)
    cell = cells.of(np.zeros((len(data), 1), dtype=np.int64), labels=labels, strata=strata)
    return [(comparison.within, np.isin(cell, comparison.left)) for comparison in cells.comparisons]
