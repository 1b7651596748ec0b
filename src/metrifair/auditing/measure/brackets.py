"""Lower and upper bounds of the distance of two distributions, from counts in bins.

Let D = F0 - F1, and consider one bin whose rows lie in [a, b]. The counts give D just below a, and
at b; in between

    u = D(below a) + share of side 0 in the bin,    l = D(below a) - share of side 1 in the bin

bound D, since at most all rows of one side come before those of the other. Integration by parts
gives its mean over [a, b], mu, from the sums of the scores: the integral of F - F(below a) is (b x
rows - sum of scores) / all rows.

- Kolmogorov: |D| at the ends is attained; nothing in the bin exceeds max(u, -l). Rows of one side
  only, or of one distinct score, leave nothing in between: the ends are all there is.
- Integral of phi(D) over [a, b], phi convex (Wasserstein: |D|; Cramer: D^2): at least (b - a)
  phi(mu), by Jensen; at most (b - a) times the chord of phi from l to u, taken at mu, since phi
  lies below its chord. The two agree for |D| unless D may change its sign in the bin, and differ by
  at most (b - a)(u - l)^2 / 4 for D^2.
- Total variation: at least |share 0 - share 1| / 2, for merging scores brings distributions closer;
  at most their sum / 2, and the former again for one distinct score.

Between bins D is constant, so its integrals there are exact.

All of this is computed in floats. Every sum comes with a bound of its rounding error, and brackets
are widened by it. Relative to the unit roundoff, shares of counts are off by at most 4; shares of
weights, and sums of positions within a bin, by as many more as rows were added up; a state's
positions were rounded to 28 bits of a bin before. A sum over bins is as far off as its terms, by
the Lipschitz constant of phi, and by the rounding of adding them up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from metrifair.auditing.measure.bins import BinnedScores, Bins
from metrifair.auditing.measure.plug_in import LargestGap
from metrifair.figures.intervals import Interval
from metrifair.metrics.registry import METRICS, Convex, Integral, facts
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_known

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


class Bracketing(NamedTuple):
    """The bounds of one comparison."""

    sides: CellSides
    inverse: float  # of the unit of the scale on which sums are
    gap: LargestGap  # at the end of a bin
    reachable: float  # the largest |D| that any bin can contain
    sums: Mapping[Sum, Interval]
    errors: Mapping[Sum, float]  # of both bounds, by rounding

    def value(self, metric: str) -> float:
        """The middle of the bounds, as computed."""
        low, high = self._bounds(metric, rounded=0)
        return min(low / 2 + high / 2, facts(metric).maximum)

    def bracket(self, metric: str) -> Interval:
        """Bounds between which the distance of the two empirical distributions lies, rounded
        outwards.
        """
        low, high = self._bounds(metric, rounded=1)
        # Factors, powers and the additions above are rounded, too.
        return Interval(
            max(0.0, low * (1 - 8 * _UNIT)),
            min(facts(metric).maximum, high * (1 + 8 * _UNIT)),
        )

    def _bounds(self, metric: str, *, rounded: int) -> tuple[float, float]:
        """Bounds as computed (``rounded=0``), or moved outwards by their errors (1)."""
        bracket = facts(metric).bracket
        if not isinstance(bracket, Integral) and bracket != "atoms":
            attained = abs(self.gap.shares[0] - self.gap.shares[1])
            error = rounded * _UNIT * self.sides.rounding
            return max(0.0, attained - error), max(attained, self.reachable) + error
        name: Sum = bracket.convex if isinstance(bracket, Integral) else bracket
        error = rounded * self.errors[name]
        low = max(0.0, self.sums[name].low - error)
        high = self.sums[name].high + error
        if isinstance(bracket, Integral):
            low, high = (
                (bracket.factor * (bound / self.inverse)) ** bracket.power for bound in (low, high)
            )
        return low, high


class _Course(NamedTuple):
    """The difference of the distribution functions within each bin."""

    low: Floats
    high: Floats
    mean: Floats
    length: Floats


def _bracketing(bins: Bins, sides: CellSides, sums: Collection[Sum]) -> Bracketing:
    """The bounds of one comparison, added up over all bins."""
    scale = bins.scale
    share, upto, course = _course(bins, sides)
    after = upto[0] - upto[1]
    plain = bins.single | (share[0] == 0) | (share[1] == 0)
    reachable = np.where(plain, np.abs(after), np.maximum(course.high, -course.low))
    mass = share[0] + share[1]
    loose = ~bins.single
    far = float(scale.positions(bins.high[-1:])[0])
    area = float(
        (mass[loose] * (far * (bins.rows[loose] + _SHARES) + sides.position / _UNIT)).sum()
    )
    # In a bin of several scores, three more shares matter: both bounds of the difference, and its
    # mean.
    length = float((4 * course.length + bins.gap).sum())
    rounding = _Rounding(sides.rounding, length, float(mass.sum()), area, far)
    at = int(np.abs(after).argmax())
    return Bracketing(
        sides,
        scale.inverse,
        LargestGap(float(bins.high[at]), (float(upto[0][at]), float(upto[1][at]))),
        float(reachable.max()),
        {name: _sum_bounds(name, bins, share, after, course) for name in sums},
        {name: rounding.of_sum(name) for name in sums},
    )


def _sum_bounds(
    name: Sum,
    bins: Bins,
    share: Sequence[Floats],
    after: Floats,
    course: _Course,
) -> Interval:
    """Both bounds of a sum over all bins; ``after`` is the difference at the end of each."""
    if name == "atoms":
        low = np.abs(share[0] - share[1]) / 2
        high = np.where(bins.single, low, (share[0] + share[1]) / 2)
    else:
        between = name(after) * bins.gap
        low = course.length * name(course.mean) + between
        high = np.maximum(course.length * _chord(name, course) + between, low)
    return Interval(float(low.sum()), float(high.sum()))


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
        # The rounding of positions matters where the difference of the shares changes, which it
        # does by at most 2.
        return (
            _UNIT
            * slope
            * ((self.share + _TERMS) * self.length + 4 * self.area + 8 * self.mass * self.far)
        )


def _course(bins: Bins, sides: CellSides) -> tuple[list[Floats], tuple[Floats, Floats], _Course]:
    """The shares of both sides in each bin and up to its end, and the course of the difference
    through it.
    """
    end = bins.scale.positions(bins.high)
    length = end - bins.scale.positions(bins.low)
    share = []
    below = []
    upto = []
    area = []
    for cells, total in zip(sides[:2], sides.totals, strict=True):
        counts = bins.total("counts", cells)
        before = bins.total("before", cells)
        share.append(counts / total)
        below.append(before / total)
        upto.append((before + counts) / total)
        area.append((end * counts - bins.total("moments", cells)) / total)
    before = below[0] - below[1]
    low = before - share[1]
    high = before + share[0]
    mean = before + (area[0] - area[1]) / np.where(length > 0, length, 1.0)
    return (
        share,
        (upto[0], upto[1]),
        _Course(low, high, np.clip(mean, low, high), length),
    )


def _chord(convex: Convex, course: _Course) -> Floats:
    """The line through phi at both bounds of D, at its mean."""
    spread = course.high - course.low
    weight = np.divide(
        course.mean - course.low,
        spread,
        out=np.zeros_like(spread),
        where=spread > 0,
    )
    return (1 - weight) * convex(course.low) + weight * convex(course.high)


def check_brackets(argument: str, metrics: Sequence[str]) -> None:
    """Raise a DataError for a metric that binned counts cannot bound, such as MMD, which needs
    all pairs of scores.
    """
    names = [name for name, row in METRICS.items() if row.bracket is not None]
    for metric in metrics:
        check_known(argument, metric, names, otherwise="a smaller file")


def bracket_distances(
    binned: BinnedScores, sides: Sequence[CellSides], metrics: Sequence[str]
) -> Iterator[Bracketing]:
    """Bracket every metric for every comparison."""
    bins = binned.bins
    check_brackets("metric", metrics)
    rounding = _SHARES + (int(bins.rows.sum()) if bins.weighted else 0)
    sums = _sums_for(metrics)
    for side in sides:
        yield _bracketing(
            bins,
            side._replace(rounding=rounding, position=binned.position_error),
            sums,
        )


def _sums_for(metrics: Sequence[str]) -> list[Sum]:
    """The sums that the metrics are functions of."""
    sums: dict[Sum, None] = {}
    for metric in metrics:
        bracket = facts(metric).bracket
        if isinstance(bracket, Integral):
            sums[bracket.convex] = None
        elif bracket == "atoms":
            sums["atoms"] = None
    return list(sums)
