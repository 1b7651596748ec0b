"""The sample of an audit: units and counts of their scores, which of them are compared, and their distances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations, groupby, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.bins import BinnedScores, Products
from metrifair.auditing.brackets import Brackets, CellSides, bracket_distances
from metrifair.auditing.distribution import (
    AllGroups,
    CountedScores,
    InBins,
    LargestGap,
    TwoSamples,
    count_rows,
    has_running_integrals,
    in_pooled_bins,
    largest_gap,
    plug_in_distances,
    shares,
)
from metrifair.auditing.records import REST, Conditions, Favorable
from metrifair.auditing.request import MOST_PAIRED
from metrifair.auditing.resampling import Rows
from metrifair.errors import DataError, Remedy
from metrifair.figures.intervals import Interval
from metrifair.problem.cells import Attribute, Contrast
from metrifair.problem.criteria import EVERYONE, Criterion
from metrifair.problem.predictions import criterion_scores
from metrifair.problem.problem import Problem
from metrifair.problem.values import Value, canonical, canonical_values
from metrifair.support.arrays import Booleans, Floats, Integers

UNUSABLE = "unusable"
"""The reason why rows are left out, if the reasons were not distinguished."""
WITHHELD = "withheld"
"""The reason for rows that were withheld because their cells are too small."""

_DUMMY = Attribute("dummy", ("first", "second"))


@dataclass(frozen=True, eq=False)
class AuditSample:
    """Units (rows in memory, or cells of rows out of core), their attributes, and counts of their scores."""

    problem: Problem  # one row for each unit
    ends: tuple[float, float]  # the smallest and the largest score
    predicted: Mapping[object, CountedScores]  # by the class whose probability it is; one score has the key None
    selected: Floats  # rows, or weight, of each unit at or above the threshold, by default 0.5
    binned: BinnedScores | None = None  # the bins of scores that are out of core; None: units are rows in memory
    rows: NDArray[Any] | None = None  # number in each unit: a fraction if groups have probabilities; None: one
    weight: Floats | None = None  # of each unit; None: that of its rows
    weighted: bool = False
    weight_exponent: int = 0  # ``weight`` times 2 to this power is the weight that the user passed
    left_out: Mapping[str, int] = field(default_factory=dict)  # unusable rows, by reason
    levels: Mapping[str, int] = field(default_factory=dict)  # number of levels of numeric attributes that were cut
    crossed: Problem | None = None  # by each attribute and by their intersection; None: there is one attribute
    favorable: Favorable = "high"  # whether high or low scores are favorable
    classes: tuple[object, ...] = ()  # of the predicted probabilities, if there are three or more
    order: Integers | None = None  # the position of each row in the input; None: unchanged

    @cached_property
    def prediction(self) -> Floats | None:
        """The predictions of rows in memory, (rows,) or (rows, classes); None out of core."""
        if self.binned is not None:
            return None
        columns = [scores.values[scores.place] for scores in self.predicted.values()]
        return np.stack(columns, -1) if len(columns) > 1 else columns[0]

    @property
    def score(self) -> Floats | None:
        """The one prediction of each row; None for several classes, and out of core."""
        return self.prediction if None in self.predicted else None

    @property
    def amount(self) -> Floats:
        """The weight of each unit, or the number of its rows."""
        amount = self.rows if self.weight is None else self.weight
        return np.ones(len(self.problem)) if amount is None else amount.astype(np.float64)

    @property
    def has_squares(self) -> bool:
        """True if sums of squared weights are known, from which errors follow."""
        return self.binned is None or not self.weighted or self.binned.products is not None

    def squares_at(self, units: Integers, group: int) -> Floats:
        """The sum of squared weights at each score, of units in one group of an attribute."""
        scores = self.predicted[None]
        if self.binned is not None and self.binned.products is not None:
            return self.binned.products.at(units, {group}, len(scores.values))
        weight = self.amount[units]
        return np.bincount(scores.place[units], weight**2, len(scores.values)).astype(np.float64)

    @property
    def probabilities(self) -> bool:
        """True if all predictions are in [0, 1] and the target is not numeric."""
        is_target = self.problem.labels is not None and not self.problem.scheme.classes
        return not is_target and self.ends[0] >= 0 and self.ends[1] <= 1

    @property
    def scored(self) -> Problem:
        """The problem whose positive label is that of high scores."""
        return problem_for_scores(self.problem, self.favorable)

    @property
    def outcome(self) -> Floats | None:
        """The outcome as a number: the target, or 1 at the label that high scores are of; None for several classes."""
        if self.problem.labels is None or len(self.problem.scheme.classes) > 2:
            return None
        positive = self.scored.is_positive
        return np.asarray(self.problem.labels if positive is None else positive, dtype=np.float64)

    def size(self, units: Integers) -> int:
        """The number of rows in some units; the expected number if groups have probabilities."""
        return len(units) if self.rows is None else round(float(self.rows[units].sum()))

    def scores(self, criterion: Criterion, problem: Problem, loss: str | None) -> Mapping[object, CountedScores]:
        """The scores that a criterion compares; ``problem`` contains the outcomes in the form that it needs."""
        if criterion.score == "prediction":
            return self.predicted
        if self.prediction is None:
            raise DataError(
                f"{criterion.name} compares other scores than the predictions, which is not done for files too large "
                "for memory; write those scores to the file, as a separate column"
            )
        scores = criterion_scores(criterion, self.prediction, problem_for_scores(problem, self.favorable), loss=loss)
        return scores_by_class(scores, self.classes, self.weight)


def scores_by_class(scores: Floats, classes: Sequence[object], weight: Floats | None) -> dict[object, CountedScores]:
    """The scores of rows in memory, by the class whose probability they are; one score has the key None."""
    if scores.ndim == 1:
        return {None: count_rows(scores, weight)}
    names = classes if len(classes) == scores.shape[1] else range(scores.shape[1])
    return {name: count_rows(column, weight) for name, column in zip(names, scores.T, strict=True)}


def problem_for_scores(problem: Problem, favorable: Favorable) -> Problem:
    """The problem whose positive label is that of high scores: the other label if low scores are favorable."""
    if favorable == "high" or len(problem.scheme.classes) != 2:
        return problem
    return replace(problem, scheme=replace(problem.scheme, positive=1 - problem.scheme.positive))


class Part(NamedTuple):
    """The scores that one criterion compares within one of its sets."""

    criterion: str
    within: str
    conditions: Conditions  # what ``within`` names
    units: Integers  # that are in the set
    scores: CountedScores
    of_predictions: bool = True  # False: of losses or another score, whose range is not that of the predictions


def parts_for(sample: AuditSample, criteria: Sequence[Criterion], loss: str | None) -> Iterator[Part]:
    """Every criterion x set; probabilities of three or more classes one class at a time."""
    for criterion in criteria:
        problem = _problem_for_criterion(criterion, sample.problem, loss)
        scores = sample.scores(criterion, problem, loss if criterion.score == "loss" else None)
        values = canonical_values(list(scores))
        for within, conditions, units in sets_for(criterion, problem):
            for (label, class_scores), value in zip(scores.items(), values, strict=True):
                part = Part(criterion.name, within, conditions, units, class_scores, criterion.score == "prediction")
                if label is not None:
                    name = f"p({label})"
                    part = part._replace(
                        within=name if within in EVERYONE.names else f"{within},{name}",
                        conditions=(*conditions, ("probability", value)),
                    )
                yield part


def _problem_for_criterion(criterion: Criterion, problem: Problem, loss: str | None) -> Problem:
    """The problem with numeric labels if the criterion cuts them or its loss compares them as numbers."""
    if problem.labels is None and (criterion.needs_labels or criterion.score == "loss" or callable(criterion.score)):
        raise DataError(f"{criterion.name} needs the true labels", remedy=Remedy("y_true"))
    numeric = criterion.bins is not None or (criterion.score == "loss" and loss not in (None, "log_loss"))
    if not numeric or not problem.scheme.classes:
        return problem
    try:
        numbers = np.asarray(problem.values, dtype=np.float64)
    except ValueError:
        raise DataError(
            f"{criterion.name} takes the outcome as a number, got labels such as {problem.scheme.classes[0]!r}"
        ) from None
    return replace(problem, scheme=replace(problem.scheme, classes=(), positive=-1), labels=numbers)


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
    if all_rows and not criterion.strata:  # the cells of a million samples take longer to compute than their counts
        return [all_units(problem)]
    scheme = replace(problem.scheme, criterion=criterion, attributes=(_DUMMY,), intersectional=False, contrast="pairs")
    one_group = replace(problem, scheme=scheme, groups=np.zeros((len(problem), 1), np.int64))
    sets: list[AuditSet] = []
    # Values that coincide in canonical form keep their text, as those of groups do.
    counts = Counter(_canonical(comparison.conditions) for comparison in one_group.comparisons)
    for comparison in one_group.comparisons:
        conditions = _canonical(comparison.conditions)
        if counts[conditions] > 1:
            conditions = tuple((column, str(value)) for column, value in comparison.conditions)
        sets.append(AuditSet(comparison.within, conditions, np.flatnonzero(np.isin(one_group.cell, comparison.left))))
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
    codes = _codes(problem, units, place)
    if codes.min(initial=0) < 0:
        has_group = codes >= 0
        units, codes = units[has_group], codes[has_group]
    return Members(units, codes, np.flatnonzero(np.bincount(codes)).tolist())


def _codes(problem: Problem, units: Integers, place: int) -> Integers:
    column = problem.groups[:, place]
    return np.asarray(column if len(units) == len(column) else column[units])  # all units need no copy


@dataclass(frozen=True, eq=False)
class GroupPair:
    """Two groups, or one and the rest, within a part. Units are computed on demand: there may be many."""

    problem: Problem
    part: Part
    place: int  # of the attribute
    left: int
    right: int | None  # None: the rest
    sizes: tuple[int, int]  # rows of both sides
    group_values: tuple[Value, Value]  # canonical; None: the rest

    @property
    def attribute(self) -> Attribute:
        """The attribute whose groups are compared."""
        return self.problem.scheme.attributes[self.place]

    @property
    def groups(self) -> tuple[str, str]:
        """The names of both sides."""
        names = self.attribute.groups
        return str(names[self.left]), REST if self.right is None else str(names[self.right])

    @property
    def sides(self) -> tuple[Integers, Integers]:
        """The units of both sides."""
        units, codes = self.part.units, _codes(self.problem, self.part.units, self.place)
        right = (codes >= 0) & (codes != self.left) if self.right is None else codes == self.right
        return units[codes == self.left], units[right]

    def two_samples(
        self, sides: tuple[Integers, Integers], products: Products | None = None
    ) -> tuple[TwoSamples, Rows | None]:
        """The scores of both sides; and their rows, if they have weights and are in memory or have ``products``."""
        scores = self.part.scores
        left, right = (scores.at(units) for units in sides)
        used = (left > 0) | (right > 0)
        samples = TwoSamples(*(part[used].astype(np.float64) for part in (scores.values, left, right)))
        if products is not None:
            return samples, self._rows_in_bins(samples, used, sides, products)
        if scores.amount is None or scores.starts is not None:
            return samples, None
        units, place, members = np.concatenate(sides), np.cumsum(used) - 1, self.problem.members
        on_left, amount = np.arange(len(units)) < len(sides[0]), scores.amount[units]
        at, left, right = place[scores.place[units]], amount * on_left, amount * ~on_left
        if members is not None:  # a row may be on both sides
            row, count = members.row[units], len(members.rows.values)
            left, right = (np.bincount(row, side, count).astype(np.float64) for side in (left, right))
            compared, at_row = np.flatnonzero(left + right), np.zeros(count, np.int64)
            at_row[row] = at
            at, left, right = at_row[compared], left[compared], right[compared]
        return samples, Rows.single(at, left, right)

    def _rows_in_bins(
        self, samples: TwoSamples, used: Booleans, sides: tuple[Integers, Integers], products: Products
    ) -> Rows:
        """One entry for each of the ``used`` bins."""
        rest = {*range(len(self.attribute.groups))} - {self.left}
        groups = {self.left}, rest if self.right is None else {self.right}
        totals = [side.sum() for side in samples[1:]]
        sums = (
            products.at(sides[first], groups[second], len(used))[used] / totals[first] / totals[second]
            for first, second in ((0, 0), (1, 1), (0, 1))
        )
        return Rows(np.arange(len(samples.values)), *map(shares, samples[1:]), *sums)


def group_pairs(sample: AuditSample, part: Part, contrast: Contrast) -> list[GroupPair]:
    """All comparisons of all attributes' groups within a part."""
    comparisons = []
    for place, attribute in enumerate(sample.problem.scheme.attributes):
        if attribute.cuts or contrast == "independence":  # its worst cut is searched
            continue
        units, codes, present = members_in(sample.problem, part.units, place)
        size = np.rint(np.bincount(codes, None if sample.rows is None else sample.rows[units])).astype(np.int64)
        paired = len(present) <= 2 or (contrast == "pairs" and len(attribute.groups) <= MOST_PAIRED)
        pairs = combinations(present, 2) if paired else product(present, [None])
        values = canonical_values(attribute.values)
        for left, right in pairs:
            sizes = int(size[left]), int(size.sum() - size[left] if right is None else size[right])
            pair_values = values[left], None if right is None else values[right]
            comparisons.append(GroupPair(sample.problem, part, place, left, right, sizes, pair_values))
    return comparisons


class PairDistances(NamedTuple):
    """One comparison: the distinguished scores of both sides, and its distances."""

    pair: TwoSamples
    permuted: InBins  # the samples in bins that do not depend on the groups, for permutations
    gap: LargestGap
    values: Mapping[str, float]
    brackets: Mapping[str, Interval] = {}  # none of rows in memory
    rows: Rows | None = None  # of both sides, if they have weights and are in memory, or if groups have probabilities
    # If scores were merged: all scores of the left side with its rows at each, and the means of both sides.
    left_scores: tuple[Floats, Floats] | None = None
    means: tuple[float, float] | None = None


def measure_pairs(
    sample: AuditSample, compared: Sequence[GroupPair], metrics: Sequence[str], max_scores: int
) -> tuple[Iterator[PairDistances], bool | None]:
    """Each comparison with its distances, and whether every bracket is narrow enough; None: values are exact.

    Many groups share ``max_scores`` distinct scores for resampling and curves.
    """
    if sample.binned is None:
        return _exact_pairs(sample, compared, metrics, max_scores), None
    amount = sample.amount
    sides = [
        CellSides(left, right, (float(amount[left].sum()), float(amount[right].sum())))
        for left, right in (comparison.sides for comparison in compared)
    ]
    brackets = bracket_distances(sample.binned, sides, metrics)
    return _bracketed_pairs(sample, compared, metrics, brackets, sample.binned.products), brackets.complete


def _bracketed_pairs(
    sample: AuditSample,
    compared: Sequence[GroupPair],
    metrics: Sequence[str],
    brackets: Brackets,
    products: Products | None,
) -> Iterator[PairDistances]:
    for comparison, bracketing in zip(compared, brackets.comparisons, strict=True):
        pair, rows = comparison.two_samples(comparison.sides, products)
        yield PairDistances(
            # Bins with products are never refined: the gap is at the end of one.
            pair if rows is not None else _split_at(pair, bracketing.gap, counts=not sample.weighted),
            partial(in_pooled_bins, pair),
            bracketing.gap,
            {metric: bracketing.value(metric, brackets.scale) for metric in metrics},
            {metric: bracketing.bracket(metric, brackets.scale) for metric in metrics},
            rows,
        )


def _exact_pairs(
    sample: AuditSample, compared: Sequence[GroupPair], metrics: Sequence[str], max_scores: int
) -> Iterator[PairDistances]:
    """Measure rows in memory. For many groups, each against the rest, common counts are computed once."""
    for _, some in groupby(compared, lambda comparison: (id(comparison.part), comparison.place)):
        several = list(some)
        part, place = several[0].part, several[0].place
        many = len(several) > MOST_PAIRED and several[0].right is None and not sample.weighted
        if many and all(map(has_running_integrals, metrics)):
            members = members_in(sample.problem, part.units, place)
            all_groups = AllGroups(part.scores, members.units, members.codes, max_scores)
            for comparison in several:
                pair, permuted, left_scores, means, gap, values = all_groups.against_rest(comparison.left, metrics)
                split = _split_at(pair, gap, counts=True)
                yield PairDistances(split, permuted, gap, values, left_scores=left_scores, means=means)
            continue
        for comparison in several:
            pair, rows = comparison.two_samples(comparison.sides)
            values = {name: float(value) for name, value in plug_in_distances(*pair, metrics).items()}
            yield PairDistances(pair, partial(in_pooled_bins, pair), largest_gap(pair), values, rows=rows)


def _split_at(pair: TwoSamples, gap: LargestGap, *, counts: bool) -> TwoSamples:
    """Split the bin of the largest gap at its score, where shares are exact; ``counts``: amounts are integers."""
    at = int(np.searchsorted(pair.values, gap.score))
    if at == len(pair.values) or pair.values[at] == gap.score:
        return pair
    halves = []
    for side, share in zip(pair[1:], gap.shares, strict=True):
        first = np.clip(share * side.sum() - side[:at].sum(), 0.0, side[at])
        first = np.rint(first) if counts else first
        halves.append(np.concatenate([side[:at], [first, side[at] - first], side[at + 1 :]]))
    used = (halves[0] > 0) | (halves[1] > 0)
    return TwoSamples(np.insert(pair.values, at, gap.score)[used], halves[0][used], halves[1][used])
