"""The figures of a search from its counts: every configuration with bounds, the Pareto front, and
the choices that the rule allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from metrifair.auditing.release.suppression import Ends, spread
from metrifair.auditing.sources.state_parts import StateParts
from metrifair.errors import DataError
from metrifair.figures.count_bounds import (
    DECIDED_FROM,
    CountedSides,
    CountedUtility,
    IntervalCounts,
    ScoreKind,
    chance_square,
    exact_utility,
    gap_bounds,
    square_bounds,
    utility_bounds,
    worst_square,
)
from metrifair.figures.fold_gaps import FoldSides, gap_without_chance
from metrifair.figures.intervals import Interval
from metrifair.support.arrays import Booleans, Floats
from metrifair.support.special import normal_quantile
from metrifair.tradeoff.points import Point, pareto
from metrifair.tradeoff.possible_choices import ROUNDED, BoundedFigures
from metrifair.tradeoff.search_facts import (
    BoundedFigure,
    ConfigurationFigures,
    DeliveredFigures,
    JsonScalar,
    SearchFacts,
    SearchFigures,
)

DELIVERED = "delivered"
SCORE_RANGE = (0.0, 1.0)

Scoring = Sequence[tuple[StateParts, Sequence[Ends]]]
"""The tables of counts of one scoring of the rows, each with the interval of every entry."""


def count_files(number: int | str, tables: int) -> list[str]:
    """The names of the files of counts of a configuration.

    >>> count_files(3, 2)
    ['counts/3.state', 'counts/3-2.state']
    """
    return [
        f"counts/{number}.state",
        *(f"counts/{number}-{table}.state" for table in range(2, tables + 1)),
    ]


def search_figures(facts: SearchFacts, scorings: Mapping[str, Scoring]) -> SearchFigures:
    """The figures of all configurations; ``scorings`` are by number, and that of the delivered
    model.
    """
    usable = facts.usable
    found = [_counted(facts, scorings[str(item.number)], item.scores) for item in usable]
    counted = [item.figures for item in found]
    possible = bounded_figures(facts, found).possible()
    front = _front(facts, counted)
    table, _ = scorings[DELIVERED][0]
    return SearchFigures(
        kind="metrifair search figures",
        version=1,
        rows=table.rows,
        withheld=table.withheld,
        noise=sqrt(max((item.chance for item in found), default=0.0)),
        configurations=[
            ConfigurationFigures(
                number=item.number,
                unfairness=figures.unfairness,
                utility=figures.utility,
                accuracy=figures.accuracy,
                on_front=item.number in front,
                possible=bool(may_be),
            )
            for item, figures, may_be in zip(usable, counted, possible, strict=True)
        ],
        delivered=_counted(facts, scorings[DELIVERED], facts.delivered_scores).figures,
    )


def _front(facts: SearchFacts, counted: Sequence[DeliveredFigures]) -> set[int]:
    """The numbers of the configurations that no other beats, by their figures of the counts."""
    sign = 1.0 if facts.larger_is_better else -1.0
    points = [
        Point(item.number, 0, sign * figures.utility.value, figures.unfairness.value)
        for item, figures in zip(facts.usable, counted, strict=True)
    ]
    return {int(point.strength) for point in pareto(points)}


def bounded_figures(facts: SearchFacts, found: Sequence[_Counted]) -> BoundedFigures:
    """What the configurations need and how good they are, within bounds.

    Squared gaps without chance may be negative, as in the choice itself.
    """
    counted = [item.figures for item in found]
    usable = facts.usable
    sign = 1.0 if facts.larger_is_better else -1.0
    goal = facts.goal
    of_utility = [_ends([figures.utility for figures in counted], sign)]
    gaps = [figures.unfairness for figures in counted]
    needed = (
        np.array([item.square.low for item in found]),
        np.array([item.square.high for item in found]),
    )
    quality = of_utility[0]
    limit = None
    if goal is not None and facts.met and goal.min_accuracy is not None:
        accuracies = [figures.accuracy for figures in counted]
        if any(item is None for item in accuracies):
            raise DataError("a search for the least accuracy states no accuracies")
        known = [item for item in accuracies if item is not None]
        needed = _ends(known, -1.0)
        quality = _ends(gaps, -1.0)
        limit = -goal.min_accuracy
    elif goal is not None and facts.met and goal.max_unfairness is not None:
        limit = goal.max_unfairness**2
    allowance = np.full(len(usable), facts.allowance)
    rounding = ROUNDED * allowance
    if goal is not None and goal.confidence is not None:
        errors = np.array([item.square_error for item in usable])
        added = normal_quantile(goal.confidence) * errors
        allowance += added
        rounding += ROUNDED * np.abs(added)
    return BoundedFigures(
        needed_low=needed[0] + allowance - rounding,
        needed_high=needed[1] + allowance + rounding,
        quality_low=quality[0],
        quality_high=quality[1],
        errors=_matrix(facts.errors_of_differences, len(usable)),
        simplicity=np.array([item.simplicity for item in usable]),
        tier=np.array([item.tier for item in usable]),
        allowed=np.array([not item.excluded for item in usable]),
        limit=limit,
    )


def _matrix(rows: Sequence[Sequence[float]], count: int) -> Floats:
    if len(rows) != count or any(len(row) != count for row in rows):
        raise DataError("the standard errors of differences are not those of all pairs")
    return np.array(rows, dtype=np.float64).reshape(count, count)


def _ends(figures: Sequence[BoundedFigure], sign: float) -> tuple[Floats, Floats]:
    """The bounds of figures, in ascending order after the change of sign."""
    low = np.array([figure.low for figure in figures])
    high = np.array([figure.high for figure in figures])
    if sign > 0:
        return low, high
    return -high, -low


class _Counted(NamedTuple):
    """What the counts say of one scoring of the rows."""

    figures: DeliveredFigures
    square: Interval  # bounds of the squared gap without chance, which may be negative
    chance: float  # the squared gap that chance explains


def _counted(facts: SearchFacts, scoring: Scoring, kind: ScoreKind) -> _Counted:
    """The figures of one scoring of the rows, with their bounds."""
    tables = [_CountedTable(facts, table, ends) for table, ends in scoring]
    squares = []
    chances = []
    gaps = []
    for comparison, table in zip(facts.comparisons, _tables_of(facts, tables), strict=True):
        sides = CountedSides(table.on_side(comparison.left), table.on_side(comparison.right))
        squares.append(square_bounds(table.counts, sides, kind))
        chances.append(chance_square(table.counts, sides, kind))
        gaps.append(table.gap(comparison.left, comparison.right, kind))
    first = tables[0]
    accuracy = None
    if facts.utility in ("accuracy", "balanced_accuracy") or _limits_accuracy(facts):
        accuracy = first.utility("accuracy", kind)
    figures = DeliveredFigures(
        unfairness=_bounded(max(gaps, default=0.0), gap_bounds(squares)),
        utility=first.utility(facts.utility, kind),
        accuracy=accuracy,
    )
    return _Counted(figures, worst_square(squares), max(chances, default=0.0))


def _limits_accuracy(facts: SearchFacts) -> bool:
    return facts.goal is not None and facts.goal.min_accuracy is not None


def _tables_of(facts: SearchFacts, tables: Sequence[_CountedTable]) -> list[_CountedTable]:
    """The table of each comparison."""
    if any(comparison.table >= len(tables) for comparison in facts.comparisons):
        raise DataError("a comparison has no counts")
    return [tables[comparison.table] for comparison in facts.comparisons]


def _bounded(value: float, bounds: Interval) -> BoundedFigure:
    """A figure with its bounds, between which it lies in any case."""
    return BoundedFigure(
        value=min(max(value, bounds.low), bounds.high), low=bounds.low, high=bounds.high
    )


class _CountedTable:
    """A table of counts: the rows of each entry, and the cell that it is in."""

    def __init__(self, facts: SearchFacts, table: StateParts, ends: Sequence[Ends]) -> None:
        if table.counts is None or table.shape is None or len(table.counts.rows) != len(ends):
            raise DataError("the manifest does not list one interval of scores for each count")
        self._groups = len(table.shape.groups)
        self._facts = facts
        self._spread = spread(table, ends)
        self._cells = table.cells
        low, high = np.array(ends).reshape(-1, 2).T
        cell = table.counts.cell
        self._cell = cell
        self.counts = IntervalCounts(
            low,
            high,
            table.counts.rows,
            self._folds(table)[cell],
            self._positive(table)[cell],
            table.withheld,
        )

    def _folds(self, table: StateParts) -> np.ndarray:
        """The fold of each cell."""
        folds = [cell[self._groups] for cell in table.cells]
        if not all(type(fold) is int and fold >= 0 for fold in folds):
            raise DataError("a fold of the counts is not a number")
        return np.array(folds, np.int64)

    def _positive(self, table: StateParts) -> np.ndarray:
        return np.array([cell[-1] == self._facts.positive for cell in table.cells], bool)

    def _in_cells(self, keys: Sequence[Sequence[JsonScalar]]) -> Booleans:
        """Which cells have these values of groups, stratum and label."""
        chosen = {tuple(key) for key in keys}
        at = self._groups
        return np.array([(*cell[:at], *cell[at + 1 :]) in chosen for cell in self._cells], bool)

    def on_side(self, keys: Sequence[Sequence[JsonScalar]]) -> Booleans:
        """Which entries are on a side of a comparison."""
        inside: Booleans = self._in_cells(keys)[self._cell]
        return inside

    def gap(
        self,
        left: Sequence[Sequence[JsonScalar]],
        right: Sequence[Sequence[JsonScalar]],
        kind: ScoreKind,
    ) -> float:
        """The gap of the counts without chance, with their rows spread over the intervals."""
        counts = self._spread.counts
        assert counts is not None
        cell = np.repeat(counts.cell, counts.rows)
        scores = np.repeat(_scores(counts.low, kind), counts.rows)
        sides = FoldSides(
            self._in_cells(left)[cell][None].astype(np.float64),
            self._in_cells(right)[cell][None].astype(np.float64),
            self._folds(self._spread)[cell],
            labels=self._positive(self._spread)[cell].astype(np.int64),
        )
        if not sides.left.any() or not sides.right.any():
            return 0.0
        return gap_without_chance(scores[None], sides)

    def utility(self, name: CountedUtility, kind: ScoreKind) -> BoundedFigure:
        """A utility of the counts, with its bounds."""
        counts = self._spread.counts
        assert counts is not None
        value = exact_utility(
            name,
            _scores(counts.low, kind),
            counts.rows,
            self._folds(self._spread)[counts.cell],
            self._positive(self._spread)[counts.cell],
        )
        return _bounded(value, utility_bounds(name, self.counts))


def _scores(points: Floats, kind: ScoreKind) -> Floats:
    """The scores of spread counts; those of decisions are 0 and 1."""
    if kind == "decisions":
        return (points >= DECIDED_FROM).astype(np.float64)
    return points
