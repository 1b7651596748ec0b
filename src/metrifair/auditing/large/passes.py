"""Distances between the groups of a file of any size: bins, proven brackets, and passes that narrow them.

A first pass has surveyed the file. The second counts all rows in bins of about equal weight, the base. Each further
pass cuts up only the bins that matter: those which may hold a larger gap than any attained so far (until none is left:
the Kolmogorov distance is exact), and those that contribute most to a bracket wider than the tolerance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np

from metrifair.auditing.atoms import Gap
from metrifair.auditing.large.brackets import Bounds, Sides, Sum, bounds, exact
from metrifair.auditing.large.counting import Bins, Booleans, Pass, counted, held, joined, recounted
from metrifair.auditing.large.grids import Floats, Scale, grid_of
from metrifair.auditing.large.steps import Steps
from metrifair.checks import check_known
from metrifair.metrics.registry import METRICS, Integral, facts
from metrifair.results import Interval

_MOST_COUNTS = 2**21  # bins x cells
_MOST_BINS, _FEWEST_BINS = 2**16, 64
_MOST_PASSES = 16
_EXACT_ROWS = 2**20  # that are held in memory at the end
_MOST_STEPS = 2**30  # held rows x comparisons: some minutes
_ROUNDING = 1e-13


@dataclass
class Survey:
    """What the first pass learned: the range of the scores, and a sample of them spread over the whole file."""

    low: float = inf
    high: float = -inf
    rows: int = 0
    most: int = 2**17
    _step: int = 1
    _skip: int = 0
    _parts: list[Floats] = field(default_factory=list)

    def add(self, scores: Floats) -> None:
        """Take in the scores of some rows."""
        if len(scores) == 0:
            return
        self.low, self.high = min(self.low, float(scores.min())), max(self.high, float(scores.max()))
        self.rows += len(scores)
        self._parts.append(scores[self._skip :: self._step].copy())
        self._skip = (self._skip - len(scores)) % self._step
        while sum(map(len, self._parts)) > self.most:
            self._halve()

    def _halve(self) -> None:
        """Keep every second score of the sample, and take half as many from now on."""
        together = np.concatenate(self._parts)
        self._parts = [together[::2]]
        self._skip += self._step * (len(together) % 2)
        self._step *= 2

    @property
    def sample(self) -> Floats:
        """Scores at equal steps through the file."""
        return np.concatenate(self._parts)


@dataclass
class Measured:
    """What is known of one comparison, once bins need not be looked into any more."""

    sides: Sides
    gap: Gap = field(default=Gap(0.0, (0.0, 0.0)))
    reachable: float = 0.0
    low: defaultdict[Sum, float] = field(default_factory=lambda: defaultdict(float))
    high: defaultdict[Sum, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def attained(self) -> float:
        """The largest difference seen."""
        return abs(self.gap.shares[0] - self.gap.shares[1])

    def bracket(self, metric: str, scale: Scale) -> Interval:
        """Bounds between which the distance of the two empirical distributions lies."""
        known = facts(metric).bracket
        if isinstance(known, Integral):
            sums = (side[known.convex] / scale.inverse for side in (self.low, self.high))
            return Interval(*((known.factor * integral) ** known.power for integral in sums))
        if known == "atoms":
            return Interval(self.low[known], self.high[known])
        return Interval(self.attained, max(self.attained, self.reachable))

    def look(self, found: Bounds) -> None:
        """Remember the largest gap."""
        attained = found.attained
        at = int(attained.argmax())
        if attained[at] > self.attained or self.reachable == 0.0:
            shares = float(found.upto[0][at]), float(found.upto[1][at])
            self.gap = Gap(float(found.score[at]), shares)

    def settle(self, found: Bounds) -> None:
        """Add up bins that will not be cut."""
        self.reachable = max(self.reachable, float(found.reachable.max(initial=0.0)))
        for name in found.low:
            self.low[name] += float(found.low[name].sum())
            self.high[name] += float(found.high[name].sum())

    def urgency(self, found: Bounds, tolerances: Mapping[Sum, float]) -> Floats:
        """How much every bin matters; 0 for bins that need not be cut."""
        excess = found.reachable - self.attained
        urgent = np.where(excess > _ROUNDING, excess, 0.0)
        for name, tolerance in tolerances.items():
            width = found.high[name] - found.low[name]
            left = max((tolerance - (self.high[name] - self.low[name])) / 2, _ROUNDING)
            order = np.argsort(width)
            # The widest are cut, so that all others together stay within half of what is left of the tolerance.
            cut = order[np.cumsum(width[order]) > left]
            urgent[cut] = np.maximum(urgent[cut], width[cut] / left)
        return urgent


class Result(NamedTuple):
    """The base bins, their scale, what was found for each comparison, and whether every bracket is narrow enough."""

    base: Bins
    scale: Scale
    found: tuple[Measured, ...]
    complete: bool


def check_brackets(argument: str, metrics: Sequence[str]) -> None:
    """Raise a DataError for a metric of which counts in bins prove nothing, as MMD, which needs all pairs of scores."""
    known = [name for name, row in METRICS.items() if row.bracket is not None]
    for metric in metrics:
        check_known(argument, metric, known, otherwise="a smaller file")


def measured(
    read: Pass,
    survey: Survey,
    sides: Sequence[Sides],
    metrics: Sequence[str],
    *,
    cells: int,
    weighted: bool = False,
    tolerance: float = 1e-5,
    most_bins: int | None = None,
    exact_rows: int | None = None,
) -> Result:
    """Bracket every metric for every comparison; ``tolerance`` is a share of the range of the scores."""
    check_brackets("metric", metrics)
    most = most_bins or max(_FEWEST_BINS, min(_MOST_BINS, _MOST_COUNTS // cells))
    grid = grid_of(survey.sample, survey.low, survey.high, most)
    most_held = min(_EXACT_ROWS, _MOST_STEPS // max(1, len(sides))) if exact_rows is None else exact_rows
    found = tuple(Measured(one) for one in sides)
    goal = _Goal(tuple(metrics), tolerance, float(np.ptp(grid.scale.positions(np.array([survey.low, survey.high])))))
    base = counted(read, grid, cells, weighted=weighted)
    bins, urgent = _still_urgent(base, found, grid.scale, goal)
    for _ in range(_MOST_PASSES):
        if len(bins) == 0:
            break
        few = _worst_rows(bins, urgent, most_held)
        if few.all() or (few.any() and len(bins) > most):
            _settle(held(read, grid, bins[few]), found, grid.scale, goal)
            bins = bins[~few]
        else:
            worst = np.isin(np.arange(len(bins)), np.argsort(-urgent, kind="stable")[: max(1, most // 4)])
            bins = joined(bins[~worst], recounted(read, grid, bins[worst], most))
        bins, urgent = _still_urgent(bins, found, grid.scale, goal)
    _settle(bins, found, grid.scale, goal)
    return Result(base, grid.scale, found, len(bins) == 0)


def _worst_rows(bins: Bins, urgent: Floats, most: int) -> Booleans:
    """The most urgent bins, as long as they hold at most so many rows together."""
    order = np.argsort(-urgent, kind="stable")
    return np.isin(np.arange(len(bins)), order[np.cumsum(bins.rows[order]) <= most])


def _still_urgent(bins: Bins, found: Sequence[Measured], scale: Scale, goal: _Goal) -> tuple[Bins, Floats]:
    """The bins that have to be cut, and how urgently; the others are added up."""
    urgent = np.zeros(len(bins))
    if len(bins) == 0:
        return bins, urgent
    for one in found:
        proven = bounds(bins, one.sides, scale, goal.sums)
        one.look(proven)
        lowest = {name: one.low[name] + float(low.sum()) for name, low in proven.low.items()}
        np.maximum(urgent, one.urgency(proven, goal.widths(lowest)), out=urgent)
    _settle(bins[urgent == 0], found, scale, goal)
    return bins[urgent > 0], urgent[urgent > 0]


def _settle(rows: Bins | Steps, found: Sequence[Measured], scale: Scale, goal: _Goal) -> None:
    """Add up bins as they are, or rows that are held."""
    for one in found if len(rows) else ():
        if isinstance(rows, Steps):
            proven = exact(rows, one.sides, goal.sums)
        else:
            proven = bounds(rows, one.sides, scale, goal.sums)
        one.look(proven)
        one.settle(proven)


class _Goal(NamedTuple):
    """How wide the brackets may be."""

    metrics: tuple[str, ...]
    tolerance: float
    length: float  # of the range of the scores, on the scale

    @property
    def sums(self) -> tuple[Sum, ...]:
        """The sums that the metrics are functions of."""
        known = [facts(metric).bracket for metric in self.metrics]
        sums: list[Sum] = [one.convex for one in known if isinstance(one, Integral)]
        return tuple(dict.fromkeys([*sums, "atoms"] if "atoms" in known else sums))

    def widths(self, lowest: Mapping[Sum, float]) -> dict[Sum, float]:
        """By integral, how wide its bounds may be; ``lowest`` are lower bounds of the integrals.

        With f the factor and x a lower bound, (f (x + w))^power exceeds (f x)^power by at most t, the tolerance of the
        metric, where w is t^(1/power) / f, and also, the power being concave, where w is t / (slope at x).
        """
        widest: dict[Sum, float] = {}
        for metric in self.metrics:
            one = facts(metric).bracket
            if isinstance(one, Integral):
                tolerance = self.tolerance * self.length**one.power
                steepest = (one.factor * lowest[one.convex]) ** (1 - one.power) / one.power
                width = max(tolerance ** (1 / one.power), tolerance * steepest) / one.factor
                widest[one.convex] = min(widest.get(one.convex, inf), width)
        return widest
