"""The parts of an audit: the sets of its criteria, and the units and groups within them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from metrifair.auditing.measure.counted_scores import CountedScores
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.records import Conditions
from metrifair.errors import DataError, Remedy
from metrifair.problem.cells import Attribute
from metrifair.problem.criteria import EVERYONE, Criterion
from metrifair.problem.problem import Problem
from metrifair.problem.values import canonical, canonical_values
from metrifair.support.arrays import Integers

_DUMMY = Attribute("dummy", ("first", "second"))


class Part(NamedTuple):
    """The scores that one criterion compares within one of its sets."""

    criterion: str
    within: str
    conditions: Conditions  # what ``within`` names
    units: Integers  # that are in the set
    scores: CountedScores
    # False: of losses or another score, whose range is not that of the predictions
    of_predictions: bool = True


def parts_for(
    sample: AuditSample, criteria: Sequence[Criterion], loss: str | None
) -> Iterator[Part]:
    """Every criterion x set; probabilities of three or more classes one class at a time."""
    for criterion in criteria:
        problem = _problem_for_criterion(criterion, sample.problem, loss)
        scores = sample.compared_scores(
            criterion, problem, loss if criterion.score == "loss" else None
        )
        values = canonical_values(list(scores))
        for within, conditions, units in sets_for(criterion, problem):
            for (label, class_scores), value in zip(scores.items(), values, strict=True):
                part = Part(
                    criterion.name,
                    within,
                    conditions,
                    units,
                    class_scores,
                    criterion.score == "prediction",
                )
                if label is not None:
                    name = f"p({label})"
                    part = part._replace(
                        within=name if within in EVERYONE.names else f"{within},{name}",
                        conditions=(*conditions, ("probability", value)),
                    )
                yield part


def _problem_for_criterion(criterion: Criterion, problem: Problem, loss: str | None) -> Problem:
    """The problem with numeric labels if the criterion cuts them or its loss compares them as
    numbers.
    """
    if problem.labels is None and (
        criterion.needs_labels or criterion.score == "loss" or callable(criterion.score)
    ):
        raise DataError(f"{criterion.name} needs the true labels", remedy=Remedy("y_true"))
    numeric = criterion.bins is not None or (
        criterion.score == "loss" and loss not in (None, "log_loss")
    )
    if not numeric or not problem.scheme.classes:
        return problem
    try:
        numbers = np.asarray(problem.values, dtype=np.float64)
    except ValueError:
        raise DataError(
            f"{criterion.name} takes the outcome as a number, got labels such as "
            f"{problem.scheme.classes[0]!r}"
        ) from None
    return replace(
        problem,
        scheme=replace(problem.scheme, classes=(), positive=-1),
        labels=numbers,
    )


class AuditSet(NamedTuple):
    """A set of a criterion: its name, the conditions behind the name, and the units in it."""

    within: str
    conditions: Conditions
    units: Integers


def all_units(problem: Problem) -> AuditSet:
    """The set of all units."""
    return AuditSet(EVERYONE.names[0], (), np.arange(len(problem)))


def sets_for(criterion: Criterion, problem: Problem) -> list[AuditSet]:
    """The sets of a criterion, compiled as in training, for an attribute with one group."""
    all_rows = criterion.labels is None and criterion.sets is None and problem.strata is None
    # the cells of a million samples take longer to compute than their counts
    if all_rows and not criterion.strata:
        return [all_units(problem)]
    scheme = replace(
        problem.scheme,
        criterion=criterion,
        attributes=(_DUMMY,),
        intersectional=False,
        contrast="pairs",
    )
    one_group = replace(problem, scheme=scheme, groups=np.zeros((len(problem), 1), np.int64))
    sets: list[AuditSet] = []
    # Values that coincide in canonical form keep their text, as those of groups do.
    counts = Counter(_canonical(comparison.conditions) for comparison in one_group.comparisons)
    for comparison in one_group.comparisons:
        conditions = _canonical(comparison.conditions)
        if counts[conditions] > 1:
            conditions = tuple((column, str(value)) for column, value in comparison.conditions)
        sets.append(
            AuditSet(
                comparison.within,
                conditions,
                np.flatnonzero(np.isin(one_group.cell, comparison.left)),
            )
        )
    return sets


def _canonical(conditions: tuple[tuple[str, object], ...]) -> Conditions:
    return tuple((column, canonical(value)) for column, value in conditions)


class Members(NamedTuple):
    """The units of a set whose group of one attribute is known."""

    units: Integers
    codes: Integers
    present: list[int]  # codes of the groups that have units


def members_in(problem: Problem, units: Integers, place: int) -> Members:
    """The units of a set whose group of the attribute at this place is known."""
    codes = codes_in(problem, units, place)
    if codes.min(initial=0) < 0:
        has_group = codes >= 0
        units = units[has_group]
        codes = codes[has_group]
    return Members(units, codes, np.flatnonzero(np.bincount(codes)).tolist())


def codes_in(problem: Problem, units: Integers, place: int) -> Integers:
    """The codes of the units' groups of the attribute at this place; -1: missing."""
    column = problem.groups[:, place]
    # all units need no copy
    return np.asarray(column if len(units) == len(column) else column[units])
