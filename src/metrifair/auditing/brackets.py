"""Lower and upper bounds of the distance of two distributions, from counts in bins.

Let D = F0 - F1, and consider one bin whose rows lie in [a, b]. The counts give D just below a, and at b; in between

    u = D(below a) + share of side 0 in the bin,    l = D(below a) - share of side 1 in the bin

bound D, since at most all rows of one side come before those of the other. Integration by parts gives its mean over
[a, b], mu, from the sums of the scores: the integral of F - F(below a) is (b x rows - sum of scores) / all rows.

- Kolmogorov: |D| at the ends is attained; nothing in the bin exceeds max(u, -l). Rows of one side only, or of one
  distinct score, leave nothing in between: the ends are all there is.
- Integral of phi(D) over [a, b], phi convex (Wasserstein: |D|; Cramer: D^2): at least (b - a) phi(mu), by Jensen; at
  most (b - a) times the chord of phi from l to u, taken at mu, since phi lies below its chord. The two agree for |D|
  unless D may change its sign in the bin, and differ by at most (b - a)(u - l)^2 / 4 for D^2.
- Total variation: at least |share 0 - share 1| / 2, for merging scores brings distributions closer; at most their
  sum / 2, and the former again for one distinct score.

Between bins D is constant, so its integrals there are exact. So are they between the distinct scores of rows that are
in memory: their bounds are one value, not two.

All of this is computed in floats. Every sum comes with a bound of its rounding error, and brackets are widened by it.
Relative to the unit roundoff, shares of counts are off by at most 4; shares of weights, and sums of positions within a
bin, by as many more as rows were added up; a state's positions were rounded to 28 bits of a bin before.
A sum over bins is as far off as its terms, by the Lipschitz constant of phi, and by the rounding of adding them up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from metrifair.auditing.bins import BinnedScores, Bins, Scale, Steps, join_bins
from metrifair.auditing.distribution import LargestGap
from metrifair.figures.intervals import Interval
from metrifair.metrics.registry import METRICS, Convex, Integral, facts
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_known

_MOST_PASSES = 16
_MOST_STEPS = 2**30  # rows in memory x comparisons: some minutes
_ROUNDING = 1e-13
_UNIT = float(np.finfo(np.float64).eps) / 2  # of rounding
_SHARES = 4  # units by which a difference of shares may be off
_BEYOND = 2.0**-10  # beyond 1, where a slope is taken
_TERMS = 64  # units by which a sum of any number of terms may be off

Sum: TypeAlias = "Convex | Literal['atoms']"
"""The sum over bins: the integral of a convex function, or the differences at distinct scores."""


class CellSides(NamedTuple):
    """The cells on either side of a comparison, and the sum of their rows (or weights)."""

    left: Integers
    right: Integers
    totals: tuple[float, float]
    rounding: float = _SHARES  # units of rounding by which a difference of shares may be off
    position: float = 0.0  # by which positions of rows were rounded before they were added up


class Bounds(NamedTuple):
    """Bounds of one comparison by bin: the shares up to its end, the largest |D| possible in it, and bounds of sums."""

    score: Floats  # the end of the bin
    upto: tuple[Floats, Floats]
    reachable: Floats
    low: dict[Sum, Floats]
    high: dict[Sum, Floats]
    error: dict[Sum, float]  # of both sums over all bins, by rounding

    @property
    def attained(self) -> Floats:
        """|D| at the end of each bin; the value below a bin was attained in the bin before it."""
        return np.abs(self.upto[0] - self.upto[1])


class _Course(NamedTuple):
    """The difference of the distribution functions within each bin."""

    low: Floats
    high: Floats
    mean: Floats
    length: Floats


def bounds(bins: Bins, sides: CellSides, scale: Scale, sums: Collection[Sum]) -> Bounds:
    """The bounds of every bin; sums are on the scale of the positions."""
    share, upto, course = _course(bins, sides, scale)
    after = upto[0] - upto[1]
    plain = bins.single | (share[0] == 0) | (share[1] == 0)
    low: dict[Sum, Floats] = {}
    high: dict[Sum, Floats] = {}
    for kind in sums:
        if kind == "atoms":
            low[kind] = np.abs(share[0] - share[1]) / 2
            high[kind] = np.where(bins.single, low[kind], (share[0] + share[1]) / 2)
            continue
        between = kind(after) * bins.gap
        low[kind] = course.length * kind(course.mean) + between
        high[kind] = np.maximum(course.length * _chord(kind, course) + between, low[kind])
    reachable = np.where(plain, np.abs(after), np.maximum(course.high, -course.low))
    mass, loose = share[0] + share[1], ~bins.single
    far = float(scale.positions(bins.high[-1:])[0])
    area = float((mass[loose] * (far * (bins.rows[loose] + _SHARES) + sides.position / _UNIT)).sum())
    # In a bin of several scores, three more shares matter: both bounds of the difference, and its mean.
    length = float((4 * course.length + bins.gap).sum())
    rounding = _Rounding(sides.rounding, length, float(mass.sum()), area, far)
    return Bounds(bins.high, upto, reachable, low, high, {kind: rounding.of_sum(kind) for kind in sums})


def exact(steps: Steps, sides: CellSides, scale: Scale, sums: Collection[Sum]) -> Bounds:
    """The bounds from rows in memory: both equal the value."""
    counts = [steps.scores.at(cells) for cells in sides[:2]]
    left, right = (
        steps.upto(cells, count) / total for cells, count, total in zip(sides[:2], counts, sides.totals, strict=True)
    )
    after = left - right
    values: dict[Sum, Floats] = {kind: kind(after) * steps.gap for kind in sums if kind != "atoms"}
    share = [count / total for count, total in zip(counts, sides.totals, strict=True)]
    if "atoms" in sums:
        values["atoms"] = np.abs(share[0] - share[1]) / 2
    far, mass = float(scale.positions(steps.scores.values[-1:])[0]), float((share[0] + share[1]).sum())
    rounding = _Rounding(sides.rounding, float(steps.gap.sum()), mass, 0.0, far)
    error = {kind: rounding.of_sum(kind) for kind in sums}
    return Bounds(steps.scores.values, (left, right), np.abs(after), values, values, error)


class _Rounding(NamedTuple):
    """The inputs of the rounding error of sums over some bins."""

    share: float  # units by which a difference of shares is off
    length: float  # of the bins and the gaps between them, on the scale
    mass: float  # the shares of both sides in the bins
    area: float  # of the same, times the units by which the sums of their positions are off
    far: float  # the largest position

    def of_sum(self, name: Sum) -> float:
        """A bound of the error of one sum."""
        if name == "atoms":
            return _UNIT * (self.share + _TERMS) * self.mass
        # An even, convex function is steepest at the ends: beyond 1, more so than anywhere between.
        end, beyond = name(np.array([1.0, 1 + _BEYOND]))
        slope = float(beyond - end) / _BEYOND
        # The rounding of positions matters where the difference of the shares changes, which it does by at most 2.
        return _UNIT * slope * ((self.share + _TERMS) * self.length + 4 * self.area + 8 * self.mass * self.far)


def _course(bins: Bins, sides: CellSides, scale: Scale) -> tuple[list[Floats], tuple[Floats, Floats], _Course]:
    """The shares of both sides in each bin and up to its end, and the course of the difference through it."""
    end, start = scale.positions(bins.high), scale.positions(bins.low)
    share, below, upto, area = [], [], [], []
    for cells, total in zip(sides[:2], sides.totals, strict=True):
        counts, before = bins.total("counts", cells), bins.total("before", cells)
        share.append(counts / total)
        below.append(before / total)
        upto.append((before + counts) / total)
        area.append((end * counts - bins.total("moments", cells)) / total)
    before, length = below[0] - below[1], end - start
    low, high = before - share[1], before + share[0]
    mean = before + (area[0] - area[1]) / np.where(length > 0, length, 1.0)
    return share, (upto[0], upto[1]), _Course(low, high, np.clip(mean, low, high), length)


def _chord(convex: Convex, course: _Course) -> Floats:
    """The line through phi at both bounds of D, at its mean."""
    spread = course.high - course.low
    weight = np.divide(course.mean - course.low, spread, out=np.zeros_like(spread), where=spread > 0)
    return (1 - weight) * convex(course.low) + weight * convex(course.high)


@dataclass
class Bracketing:
    """The bounds of one comparison, once its bins need no more refinement."""

    sides: CellSides
    gap: LargestGap = field(default=LargestGap(0.0, (0.0, 0.0)))
    reachable: float = 0.0
    low: defaultdict[Sum, float] = field(default_factory=lambda: defaultdict(float))
    high: defaultdict[Sum, float] = field(default_factory=lambda: defaultdict(float))
    error: defaultdict[Sum, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def attained(self) -> float:
        """The largest difference so far."""
        return abs(self.gap.shares[0] - self.gap.shares[1])

    def value(self, metric: str, scale: Scale) -> float:
        """The middle of the bounds, as computed."""
        low, high = self._bounds(metric, scale, rounded=0)
        return min(low / 2 + high / 2, facts(metric).maximum)

    def bracket(self, metric: str, scale: Scale) -> Interval:
        """Bounds between which the distance of the two empirical distributions lies, rounded outwards."""
        low, high = self._bounds(metric, scale, rounded=1)
        # Factors, powers and the additions above are rounded, too.
        return Interval(max(0.0, low * (1 - 8 * _UNIT)), min(facts(metric).maximum, high * (1 + 8 * _UNIT)))

    def _bounds(self, metric: str, scale: Scale, *, rounded: int) -> tuple[float, float]:
        """Bounds as computed (``rounded=0``), or moved outwards by their errors (1)."""
        bracket = facts(metric).bracket
        if not isinstance(bracket, Integral) and bracket != "atoms":
            error = rounded * _UNIT * self.sides.rounding
            return max(0.0, self.attained - error), max(self.attained, self.reachable) + error
        name: Sum = bracket.convex if isinstance(bracket, Integral) else bracket
        error = rounded * self.error[name]
        low, high = max(0.0, self.low[name] - error), self.high[name] + error
        if isinstance(bracket, Integral):
            low, high = ((bracket.factor * (bound / scale.inverse)) ** bracket.power for bound in (low, high))
        return low, high

    def update_gap(self, bin_bounds: Bounds) -> None:
        """Update the largest gap."""
        attained = bin_bounds.attained
        at = int(attained.argmax())
        if attained[at] > self.attained or self.reachable == 0.0:
            shares = float(bin_bounds.upto[0][at]), float(bin_bounds.upto[1][at])
            self.gap = LargestGap(float(bin_bounds.score[at]), shares)

    def add_bins(self, bin_bounds: Bounds) -> None:
        """Add bins that need no refinement to the sums."""
        self.reachable = max(self.reachable, float(bin_bounds.reachable.max(initial=0.0)))
        for name in bin_bounds.low:
            self.low[name] += float(bin_bounds.low[name].sum())
            self.high[name] += float(bin_bounds.high[name].sum())
            self.error[name] += bin_bounds.error[name]

    def urgency(self, bin_bounds: Bounds, precisions: Mapping[Sum, float]) -> Floats:
        """The urgency of refining each bin; 0 for bins that need no refinement."""
        excess = bin_bounds.reachable - self.attained
        urgent = np.where(excess > _ROUNDING, excess, 0.0)
        for name, precision in precisions.items():
            width = bin_bounds.high[name] - bin_bounds.low[name]
            room = max((precision - (self.high[name] - self.low[name])) / 2, _ROUNDING)
            order = np.argsort(width)
            # The widest are cut, so that all others together stay within half of the remaining precision.
            cut = order[np.cumsum(width[order]) > room]
            urgent[cut] = np.maximum(urgent[cut], width[cut] / room)
        return urgent


class Brackets(NamedTuple):
    """The scale, the bracket of each comparison, and whether every bracket is narrow enough."""

    scale: Scale
    comparisons: tuple[Bracketing, ...]
    complete: bool


def check_brackets(argument: str, metrics: Sequence[str]) -> None:
    """Raise a DataError for a metric that binned counts cannot bound, such as MMD, which needs all pairs of scores."""
    names = [name for name, row in METRICS.items() if row.bracket is not None]
    for metric in metrics:
        check_known(argument, metric, names, otherwise="a smaller file")


def bracket_distances(
    binned: BinnedScores, sides: Sequence[CellSides], metrics: Sequence[str], *, exact_rows: int | None = None
) -> Brackets:
    """Bracket every metric for every comparison, to the precision of the bins.

    The base bins contain all rows. Each further pass refines only bins that matter: those that may contain a larger gap
    than any attained so far (until none is left: the Kolmogorov distance is exact), and those that contribute most to
    a bracket wider than the precision. Without a refiner, the base bins are all there is.
    """
    base, scale, refiner = binned.bins, binned.scale, binned.refiner
    check_brackets("metric", metrics)
    allowed = 0 if refiner is None else refiner.most_in_memory if exact_rows is None else exact_rows
    most_in_memory = min(allowed, _MOST_STEPS // max(1, len(sides)))
    rounding = _SHARES + (int(base.rows.sum()) if base.weighted else 0)
    bracketings = tuple(Bracketing(side._replace(rounding=rounding, position=binned.position_error)) for side in sides)
    ends = scale.positions(np.array([base.low[0], base.high[-1]]))
    goal = _Goal(tuple(metrics), binned.precision, float(np.ptp(ends)))
    bins, urgent = _urgent_bins(base, bracketings, scale, goal)
    for _ in range(_MOST_PASSES):
        if len(bins) == 0 or refiner is None:
            break
        # The most urgent bins, up to a total number of rows.
        order = np.argsort(-urgent, kind="stable")
        few = np.isin(np.arange(len(bins)), order[np.cumsum(bins.rows[order]) <= most_in_memory])
        if few.all() or (few.any() and len(bins) > refiner.max_bins):
            _add_to_bounds(refiner.steps(bins[few]), bracketings, scale, goal)
            bins = bins[~few]
        else:
            worst = np.isin(np.arange(len(bins)), order[: max(1, refiner.max_bins // 4)])
            bins = join_bins(bins[~worst], refiner.recount(bins[worst], refiner.max_bins))
        bins, urgent = _urgent_bins(bins, bracketings, scale, goal)
    _add_to_bounds(bins, bracketings, scale, goal)
    return Brackets(scale, bracketings, len(bins) == 0)


def _urgent_bins(bins: Bins, bracketings: Sequence[Bracketing], scale: Scale, goal: _Goal) -> tuple[Bins, Floats]:
    """The bins that must be refined, and their urgency; add the others to the bounds."""
    urgent = np.zeros(len(bins))
    if len(bins) == 0:
        return bins, urgent
    for bracketing in bracketings:
        bin_bounds = bounds(bins, bracketing.sides, scale, goal.sums)
        bracketing.update_gap(bin_bounds)
        lowest = {name: bracketing.low[name] + float(low.sum()) for name, low in bin_bounds.low.items()}
        np.maximum(urgent, bracketing.urgency(bin_bounds, goal.widths(lowest)), out=urgent)
    _add_to_bounds(bins[urgent == 0], bracketings, scale, goal)
    return bins[urgent > 0], urgent[urgent > 0]


def _add_to_bounds(rows: Bins | Steps, bracketings: Sequence[Bracketing], scale: Scale, goal: _Goal) -> None:
    """Add bins, or rows in memory, to the bounds of every comparison."""
    for bracketing in bracketings if len(rows) else ():
        if isinstance(rows, Steps):
            bin_bounds = exact(rows, bracketing.sides, scale, goal.sums)
        else:
            bin_bounds = bounds(rows, bracketing.sides, scale, goal.sums)
        bracketing.update_gap(bin_bounds)
        bracketing.add_bins(bin_bounds)


class _Goal(NamedTuple):
    """The maximum width of the brackets."""

    metrics: tuple[str, ...]
    precision: float
    length: float  # of the range of the scores, on the scale

    @property
    def sums(self) -> tuple[Sum, ...]:
        """The sums that the metrics are functions of."""
        brackets = [facts(metric).bracket for metric in self.metrics]
        sums: list[Sum] = [bracket.convex for bracket in brackets if isinstance(bracket, Integral)]
        return tuple(dict.fromkeys([*sums, "atoms"] if "atoms" in brackets else sums))

    def widths(self, lowest: Mapping[Sum, float]) -> dict[Sum, float]:
        """By integral, how wide its bounds may be; ``lowest`` are lower bounds of the integrals.

        With f the factor and x a lower bound, (f (x + w))^power exceeds (f x)^power by at most t, the precision of the
        metric, where w is t^(1/power) / f, and also, the power being concave, where w is t / (slope at x).
        """
        widest: dict[Sum, float] = {}
        for metric in self.metrics:
            bracket = facts(metric).bracket
            if isinstance(bracket, Integral):
                precision = self.precision * self.length**bracket.power
                steepest = (bracket.factor * lowest[bracket.convex]) ** (1 - bracket.power) / bracket.power
                width = max(precision ** (1 / bracket.power), precision * steepest) / bracket.factor
                widest[bracket.convex] = min(widest.get(bracket.convex, inf), width)
        return widest
