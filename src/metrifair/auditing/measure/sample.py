"""The sample of an audit: its attributes, its scores, and the rows and weights of its units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.measure.bins import BinnedScores
from metrifair.auditing.measure.counted_scores import CountedScores, count_rows
from metrifair.auditing.records import ClusterFacts, Favorable
from metrifair.errors import DataError
from metrifair.figures.clusters import count_clusters
from metrifair.problem.criteria import Criterion
from metrifair.problem.predictions import criterion_scores
from metrifair.problem.problem import Problem
from metrifair.problem.unknown_names import are_unknown
from metrifair.support.arrays import Booleans, Floats, Integers

UNUSABLE = "unusable"
"""The reason why rows are left out, if the reasons were not distinguished."""
WITHHELD = "withheld"
"""The reason for rows that were withheld because their cells are too small."""


@dataclass(frozen=True, eq=False)
class SampleScores:
    """The scores of an audit, counted by unit."""

    # by the class whose probability it is; one score has the key None
    by_class: Mapping[object, CountedScores]
    ends: tuple[float, float]  # the smallest and the largest score
    selected: Floats  # rows, or weight, of each unit at or above the threshold, by default 0.5
    # the bins of scores that are out of core; None: units are rows in memory
    binned: BinnedScores | None = None
    favorable: Favorable = "high"  # whether high or low scores are favorable
    classes: tuple[object, ...] = ()  # of the predicted probabilities, if there are three or more

    @cached_property
    def prediction(self) -> Floats | None:
        """The predictions of rows in memory, (rows,) or (rows, classes); None out of core."""
        if self.binned is not None:
            return None
        columns = [scores.values[scores.place] for scores in self.by_class.values()]
        if len(columns) > 1:
            return np.stack(columns, -1)
        return columns[0]

    @property
    def single(self) -> Floats | None:
        """The one prediction of each row; None for several classes, and out of core."""
        if None in self.by_class:
            return self.prediction
        return None


@dataclass(frozen=True, eq=False)
class Units:
    """Rows in memory, or cells of rows out of core: their rows and weights."""

    count: int
    # rows in each unit: a fraction if groups have probabilities; None: one
    rows: NDArray[Any] | None = None
    weight: Floats | None = None  # of each unit; None: that of its rows
    exponent: int = 0  # ``weight`` times 2 to this power is the weight that the user passed
    order: Integers | None = None  # the position of each row in the input; None: unchanged
    # the attribute by which each unit was counted; None: by all attributes
    table: Integers | None = None

    @property
    def weighted(self) -> bool:
        """True if rows have weights."""
        return self.weight is not None

    @property
    def amount(self) -> Floats:
        """The weight of each unit, or the number of its rows."""
        amount = self.weight
        if self.weight is None:
            amount = self.rows
        if amount is None:
            return np.ones(self.count)
        return amount.astype(np.float64)

    def size(self, units: Integers) -> int:
        """The number of rows in some units; the expected number if groups have probabilities."""
        if self.rows is None:
            return len(units)
        return round(float(self.rows[units].sum()))

    def counted_by(self, place: int) -> Integers:
        """The units that count each row once, by the attribute at this place."""
        return self.counted_among(np.arange(self.count), place)

    def counted_among(self, units: Integers, place: int) -> Integers:
        """Those of some units that count each row once, by the attribute at this place."""
        if self.table is None:
            return units
        return np.asarray(units[self.table[units] == place])


@dataclass(frozen=True)
class ReadingFacts:
    """What is known of how the rows were read, for notes and provenance."""

    left_out: Mapping[str, int] = field(default_factory=dict)  # unusable rows, by reason
    # number of levels of numeric attributes that were cut
    levels: Mapping[str, int] = field(default_factory=dict)
    clusters: ClusterFacts | None = None  # None: rows are independent
    # by column: rows and different values
    repeated_ids: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class AuditSample:
    """The sample of an audit: attributes, scores, and rows and weights of its units."""

    problem: Problem  # one row for each unit
    scores: SampleScores
    units: Units
    facts: ReadingFacts
    # by each attribute and by their intersection; None: there is one attribute
    crossed: Problem | None = None
    known_names: Sequence[str] = ()  # of real groups, although they say that a group is not known

    @cached_property
    def unknown_names(self) -> Mapping[str, Booleans]:
        """Which groups of each attribute have a name that says that they are not known."""
        problems = [self.problem]
        if self.crossed is not None:
            problems = [self.problem, self.crossed]
        return {
            attribute.name: are_unknown(attribute.values, self.known_names)
            for problem in problems
            for attribute in problem.scheme.attributes
        }

    @property
    def has_squares(self) -> bool:
        """True if sums of squared weights are known, from which errors follow."""
        binned = self.scores.binned
        return binned is None or not self.units.weighted or binned.products is not None

    def squares_at(self, units: Integers, group: int) -> Floats:
        """The sum of squared weights at each score, of units in one group of an attribute."""
        scores = self.scores.by_class[None]
        binned = self.scores.binned
        if binned is not None and binned.products is not None:
            return binned.products.at(units, {group}, len(scores.values))
        weight = self.units.amount[units]
        return np.bincount(scores.place[units], weight**2, len(scores.values)).astype(np.float64)

    @property
    def probabilities(self) -> bool:
        """True if all predictions are in [0, 1] and the target is not numeric."""
        low, high = self.scores.ends
        is_target = self.problem.labels is not None and not self.problem.scheme.classes
        return not is_target and low >= 0 and high <= 1

    @property
    def positive(self) -> Booleans | None:
        """Which units have the label that high scores are of; None without two labels."""
        return problem_for_scores(self.problem, self.scores.favorable).is_positive

    @property
    def outcome(self) -> Floats | None:
        """The outcome as a number: the target, or 1 at the label that high scores are of; None
        for several classes.
        """
        if self.problem.labels is None or len(self.problem.scheme.classes) > 2:
            return None
        positive = self.positive
        return np.asarray(
            self.problem.labels if positive is None else positive,
            dtype=np.float64,
        )

    def independent(self, units: Integers) -> int:
        """The number of independent observations in some units: of their clusters, or of their
        rows.
        """
        clusters = self.problem.clusters
        if clusters is None:
            return self.units.size(units)
        return count_clusters(clusters[units])

    def compared_scores(
        self, criterion: Criterion, problem: Problem, loss: str | None
    ) -> Mapping[object, CountedScores]:
        """The scores that a criterion compares; ``problem`` contains the outcomes in the form
        that it needs.
        """
        if criterion.score == "prediction":
            return self.scores.by_class
        if self.scores.prediction is None:
            raise DataError(
                f"{criterion.name} compares other scores than the predictions, which is not done "
                "for files too large "
                "for memory; write those scores to the file, as a separate column"
            )
        outcomes = problem_for_scores(problem, self.scores.favorable)
        scores = criterion_scores(criterion, self.scores.prediction, outcomes, loss=loss)
        return scores_by_class(scores, self.scores.classes, self.units.weight)


def scores_by_class(
    scores: Floats, classes: Sequence[object], weight: Floats | None
) -> dict[object, CountedScores]:
    """The scores of rows in memory, by the class whose probability they are; one score has the
    key None.
    """
    if scores.ndim == 1:
        return {None: count_rows(scores, weight)}
    names = classes
    if len(classes) != scores.shape[1]:
        names = range(scores.shape[1])
    return {name: count_rows(column, weight) for name, column in zip(names, scores.T, strict=True)}


def problem_for_scores(problem: Problem, favorable: Favorable) -> Problem:
    """The problem whose positive label is that of high scores: the other label if low scores
    are favorable.
    """
    if favorable == "high" or len(problem.scheme.classes) != 2:
        return problem
    return replace(
        problem,
        scheme=replace(problem.scheme, positive=1 - problem.scheme.positive),
    )
