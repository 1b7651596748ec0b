"""Fairness criteria as values: the compared score, and the sets of samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError
from metrifair.problem.criterion_names import OTHER_NAMES
from metrifair.problem.values import number_name
from metrifair.support.arrays import Booleans, Integers
from metrifair.support.checks import check_known

ScoreName: TypeAlias = Literal["prediction", "output", "loss", "log_prediction"]
SCORES = get_args(ScoreName)
# (prediction, y) -> score; arrays, or tensors in training
ScoreFunction: TypeAlias = Callable[[Any, Any], Any]
Penalize: TypeAlias = Literal["prediction", "output"]


@dataclass(frozen=True)
class Criterion:
    """A score, and the sets of samples within which its distribution should not depend on the
    group.

    Parameters
    ----------
    name : str
        Name, for messages and reports.
    score : {"prediction", "output", "loss", "log_prediction"} or callable, default="prediction"
        The compared score. A function receives the prediction and the outcome: of two classes the
        positive one's probability, and 1 where the label is the positive one. Both are NumPy arrays
        in audits and tensors in training.
    labels : {"positive", "negative", "every"}, default=None
        The sets by label, "every" being one set for each; without it there is one set, everyone.
    bins : tuple of float, default=None
        Bins of a regression target, which are its labels: the cuts between them. The highest bin is
        the positive label.
    sets : callable, default=None
        Maps the outcomes, an array (n,), to a boolean membership (n, J).
    set_names : tuple of str, default=()
        A name for each of the J columns of ``sets``.
    strata : bool, default=False
        Requires ``control_features``, with which the sets of any criterion can be intersected.

    Examples
    --------
    >>> EQUAL_OPPORTUNITY == Criterion("equal_opportunity", labels="positive")
    True
    >>> from dataclasses import replace
    >>> replace(EQUALIZED_ODDS, bins=(10.0,)).needs_labels
    True
    """

    name: str
    score: ScoreName | ScoreFunction = "prediction"
    labels: Literal["positive", "negative", "every"] | None = None
    bins: tuple[float, ...] | None = None
    sets: Callable[[NDArray[Any]], Booleans] | None = None
    set_names: tuple[str, ...] = ()
    strata: bool = False

    @property
    def needs_labels(self) -> bool:
        """True if the sets depend on the label."""
        return self.labels is not None or self.sets is not None


STATISTICAL_PARITY = Criterion("statistical_parity")
EQUAL_OPPORTUNITY = Criterion("equal_opportunity", labels="positive")
PREDICTIVE_EQUALITY = Criterion("predictive_equality", labels="negative")
EQUALIZED_ODDS = Criterion("equalized_odds", labels="every")
RISK_PARITY = Criterion("risk_parity", score="loss")
CONDITIONAL_STATISTICAL_PARITY = Criterion("conditional_statistical_parity", strata=True)

CRITERIA = {
    criterion.name: criterion
    for criterion in (
        STATISTICAL_PARITY,
        EQUAL_OPPORTUNITY,
        PREDICTIVE_EQUALITY,
        EQUALIZED_ODDS,
        RISK_PARITY,
        CONDITIONAL_STATISTICAL_PARITY,
    )
}


def usual_name(name: str) -> str:
    """The name in `CRITERIA` of a criterion with this synonym; any other text is returned as it is.

    >>> usual_name("demographic_parity"), usual_name("equal_opportunity")
    ('statistical_parity', 'equal_opportunity')
    """
    return OTHER_NAMES.get(name, name) if isinstance(name, str) else name


def criterion_named(criterion: str | Criterion) -> Criterion:
    """The criterion of that name, or of one of `OTHER_NAMES`; a criterion is itself.

    Parameters
    ----------
    criterion : str or Criterion
        Fairness criterion, or its name.

    Returns
    -------
    Criterion
        The criterion.

    Raises
    ------
    DataError
        If no criterion has this name.

    Examples
    --------
    >>> criterion_named("equal_opportunity").labels
    'positive'
    >>> criterion_named("demographic_parity") == STATISTICAL_PARITY
    True
    """
    if isinstance(criterion, Criterion):
        return criterion
    name = usual_name(criterion)
    check_known("criterion", name, CRITERIA, otherwise="a Criterion")
    return CRITERIA[name]


_MOST_OVERLAPPING_SETS = 12


SetConditions: TypeAlias = tuple[tuple[str, object], ...]
"""The conditions of a set: pairs of a column, or "label", and its value; a tuple: one of its
values.

A set of a criterion's own is a column whose value is True. Everyone has no conditions.
"""


class Strata(NamedTuple):
    """Sets of rows, by label or by the values of columns: which ones each stratum belongs to.

    Stratum -1 has none.
    """

    member: Booleans  # (strata, sets)
    names: tuple[str, ...]
    # of the columns in each stratum; None: of sets by label
    values: tuple[object, ...] | None = None
    conditions: tuple[SetConditions, ...] = ()  # of each set


def separate_strata(
    names: Sequence[str],
    values: Sequence[object] | None = None,
    conditions: Sequence[SetConditions] | None = None,
) -> Strata:
    """Strata that are themselves the sets."""
    if conditions is None:
        conditions = [((name, True),) for name in names]
    return Strata(
        np.eye(len(names), dtype=np.bool_),
        tuple(names),
        None if values is None else tuple(values),
        tuple(conditions),
    )


def overlapping_strata(names: Sequence[str]) -> Strata:
    """Every combination of sets that may overlap; stratum numbers are ``membership_codes``
    their membership.
    """
    if len(names) > _MOST_OVERLAPPING_SETS:
        raise DataError(
            f"at most {_MOST_OVERLAPPING_SETS} overlapping sets are supported, got {len(names)}"
        )
    patterns = np.arange(2 ** len(names))[:, None] >> np.arange(len(names))
    return Strata(
        (patterns & 1).astype(np.bool_),
        tuple(names),
        conditions=tuple(((name, True),) for name in names),
    )


def membership_codes(membership: Booleans) -> Integers:
    """The number of the combination of overlapping sets that each row (n, sets) belongs to."""
    return np.asarray(membership.astype(np.int64) @ (2 ** np.arange(membership.shape[1])))


EVERYONE = separate_strata(["everyone"], conditions=[()])
LABEL = "label"
"""The name of the outcome in conditions, and of an outcome without a name."""


def label_sets(
    criterion: Criterion, classes: Sequence[object], positive: int, outcome: str = LABEL
) -> Strata:
    """The sets within which a criterion compares, by label; their names call the label
    ``outcome``.
    """
    if criterion.sets is not None:
        return overlapping_strata(criterion.set_names)
    if criterion.labels is None:
        return EVERYONE
    if criterion.bins is not None:
        every = _sets_by_bin([number_name(cut) for cut in criterion.bins], outcome)
        positive = len(criterion.bins)  # the highest values
    else:
        labels = [((LABEL, label),) for label in classes]
        every = separate_strata([f"{outcome}={label}" for label in classes], conditions=labels)
    if criterion.labels == "every":
        return every
    mask = (np.arange(len(every.names)) == positive) == (criterion.labels == "positive")
    if mask.sum() == 1:
        place = int(mask.argmax())
        name = every.names[place]
        conditions = every.conditions[place]
    elif criterion.bins is not None:
        highest = number_name(criterion.bins[-1])
        name = f"{outcome}<{highest}"
        conditions = ((LABEL, f"<{highest}"),)
    else:
        name = f"{outcome}≠{classes[positive]}"
        conditions = ((LABEL, tuple(compress(classes, mask))),)
    return Strata(mask[:, None], (name,), conditions=(conditions,))


def _sets_by_bin(cuts: Sequence[str], outcome: str) -> Strata:
    """One set for each interval between the cuts, which includes its lower cut."""
    between = [f"{low}≤{outcome}<{high}" for low, high in pairwise(cuts)]
    names = [f"{outcome}<{cuts[0]}", *between, f"{outcome}≥{cuts[-1]}"]
    values = [f"<{cuts[0]}", *(f"[{low},{high})" for low, high in pairwise(cuts)), f"≥{cuts[-1]}"]
    return separate_strata(names, conditions=[((LABEL, value),) for value in values])
