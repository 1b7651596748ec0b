"""Ranks of scores within their group, and acceptance rates of groups: on curves, hulls and
thresholds.

Scores move to the groups' common barycenter by their ranks. Rates may differ by a tolerance, at the
least loss. A group's curve has one point for each threshold: the share of each set (all rows, or
the rows of one label) that is accepted, and the loss of these decisions. Randomization between two
thresholds attains all points between theirs: with randomization the optimum is a linear program on
the hulls of the curves, without it a search over their points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_array, hstack, vstack

from metrifair.postprocessing.postprocessor import rounding_error
from metrifair.support.arrays import Floats


@dataclass(frozen=True, eq=False)
class EmpiricalDistribution:
    """Scores of one group in ascending order, and the cumulative weight up to each of them."""

    values: Floats
    upto: Floats

    @classmethod
    def of(cls, values: Floats, weight: Floats | None = None) -> EmpiricalDistribution:
        """The distribution of scores, each of weight 1 by default.

        >>> EmpiricalDistribution.of(np.array([3.0, 1.0]), np.array([2.0, 5.0])).upto
        array([5., 7.])
        """
        order = np.argsort(values, kind="stable")
        return cls(
            values[order], np.cumsum(np.ones(len(values)) if weight is None else weight[order])
        )

    @property
    def total(self) -> float:
        """The weight of all scores."""
        return float(self.upto[-1])

    def ranks(self, values: Floats) -> tuple[Floats, Floats]:
        """The shares of the weight below each value, and up to it; between two scores they are
        equal.

        >>> EmpiricalDistribution.of(np.array([1.0, 2.0, 2.0, 4.0])).ranks(np.array([2.0, 3.0]))
        (array([0.25, 0.75]), array([0.75, 0.75]))
        """
        rounding = rounding_error(values, float(np.median(np.abs(self.values))))
        upper = np.searchsorted(self.values, values + rounding, side="right")
        lower = np.searchsorted(self.values, values - rounding, side="left")
        # A value below all others has the rank of the smallest one.
        return np.append(0.0, self.upto)[lower] / self.total, self.upto[
            upper.clip(min=1) - 1
        ] / self.total

    def quantile(self, rank: Floats) -> Floats:
        """The smallest value with at least this share of the weight at or below it."""
        # In floating point 7 / 25 x 25 is more than 7: a rank that ends with a value's weight is
        # that value's.
        at = np.searchsorted(self.upto, rank * self.total - 1e-12 * self.total)
        values: Floats = self.values[at.clip(max=len(self.values) - 1)]
        return values

    def mean(self, below: Floats, upto: Floats) -> Floats:
        """The mean of the values with ranks from ``below`` to ``upto``, or the value of the one
        rank.

        >>> EmpiricalDistribution.of(np.array([1.0, 2.0, 4.0, 6.0])).mean(np.array([0.25, 0.5]), np.array([0.75, 0.5]))
        array([3., 2.])
        """
        ends = np.append(0.0, self.upto / self.total)
        weight = np.diff(self.upto, prepend=0.0) / self.total
        reached = np.append(0.0, np.cumsum(self.values * weight))
        wide = upto > below
        mean = np.interp(upto, ends, reached) - np.interp(below, ends, reached)
        mean = np.divide(mean, upto - below, out=np.zeros(len(mean)), where=wide)
        # Within one value it is that value to the last digit: order is kept.
        first = np.searchsorted(self.upto, (below + 1e-12) * self.total).clip(
            max=len(self.values) - 1
        )
        last = self.quantile(upto)
        return np.where(wide, mean.clip(np.minimum(self.values[first], last), last), last)


def barycenter(
    below: Floats, upto: Floats, groups: Sequence[EmpiricalDistribution], shares: Floats
) -> Floats:
    """The mean, over groups by their shares, of the values with these ranks: the barycenter's
    quantiles.

    A value with several ranks is moved to the mean of the barycenter over all of them, the nearest
    to it in squared distance that moves equal values to one place.

    >>> groups = [EmpiricalDistribution.of(np.arange(1.0, 5)), EmpiricalDistribution.of(np.array([10.0, 20.0]))]
    >>> barycenter(*groups[0].ranks(np.array([2.5])), groups, np.array([2 / 3, 1 / 3]))
    array([4.66666667])
    """
    means: Floats = sum(
        share * group.mean(below, upto) for share, group in zip(shares, groups, strict=True)
    )
    return means


_EXACT = 1e-10  # feasibility of linear programs
_NONE = 1e-9  # smaller probabilities in the solution of a linear program count as 0
_MOST_BOXES = 4_000_000  # points times windows, if two rates must agree without randomization


class Curve(NamedTuple):
    """Rates and losses of the thresholds of one group, from accepting no row to accepting all."""

    threshold: Floats  # (points,), descending: scores at or above it are accepted
    rate: Floats  # (points, sets)
    loss: Floats  # (points,): this group's part of the mean loss, less that of accepting no row

    def take(self, places: NDArray[np.int64]) -> Curve:
        """These of the points."""
        return Curve(self.threshold[places], self.rate[places], self.loss[places])


class Mixture(NamedTuple):
    """A threshold, or several with the probability of each."""

    threshold: Floats
    probability: Floats


def rate_curve(score: Floats, member: Floats, price: Floats) -> Curve:
    """The curve of rows with these scores. ``member`` (n, sets) is their weight in each set,
    ``price`` the loss of accepting each.

    >>> rate_curve(np.array([0.9, 0.2, 0.2]), np.ones((3, 1)), np.array([-1.0, 1.0, -1.0])).rate.ravel()
    array([0.        , 0.33333333, 1.        ])
    """
    values, place = np.unique(-score, return_inverse=True)
    values = -values
    cut = np.concatenate([[np.inf], values[:-1] / 2 + values[1:] / 2, [-np.inf]])
    sums = np.stack([np.bincount(place, column) for column in (*member.T, price)], axis=1)
    reached = np.vstack([np.zeros((1, sums.shape[1])), np.cumsum(sums, axis=0)])
    # Divided by the last sum itself: the last rates are exactly 1.
    return Curve(cut, reached[:, :-1] / reached[-1, :-1], reached[:, -1])


def lower_hull(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Places of the corners of the lower convex hull of points, by ascending x.

    >>> lower_hull(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, -1.0, 1.0, -1.0]))
    array([0, 1, 3])
    """
    hull: list[int] = []
    for at in np.lexsort((y, x)).tolist():
        if hull and x[at] == x[hull[-1]]:
            continue  # of two points with the same x, the lower one came first
        while len(hull) > 1:
            a, b = hull[-2:]
            if (y[b] - y[a]) * (x[at] - x[a]) < (y[at] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(at)
    return np.array(hull, dtype=np.int64)


def cheapest_rates(
    rates: Sequence[Floats],
    losses: Sequence[Floats],
    shares: Floats,
    favored: Floats,
    tolerance: float,
) -> Floats:
    """One rate for each group, at most ``tolerance`` apart, of the least total loss; exact, in O(n
    log n).

    ``rates`` and ``losses`` are the corners of each group's convex, piecewise linear loss, which
    counts by its share; ``favored`` are the rates where it is least. The best ones are these, moved
    into a window, and the best window begins or ends at a corner.
    """
    if np.ptp(favored) <= tolerance:
        return favored
    starts = np.concatenate(
        [shifted for group_rates in rates for shifted in (group_rates, group_rates - tolerance)]
    )
    starts = np.unique(
        np.append(starts[(starts > 0) & (starts < 1 - tolerance)], [0.0, 1 - tolerance])
    )
    total = sum(
        share * np.interp(np.clip(best, starts, starts + tolerance), rate, loss)
        for share, best, rate, loss in zip(shares, favored, rates, losses, strict=True)
    )
    start = starts[np.argmin(total)]
    return np.clip(favored, start, start + tolerance)


def best_mixtures(curves: Sequence[Curve], tolerance: float) -> list[Mixture]:
    """Randomized thresholds of each group, with the least loss among those whose rates differ
    by at most this.
    """
    if curves[0].rate.shape[1] > 1:
        return _program(curves, tolerance)
    hulls = [curve.take(lower_hull(curve.rate[:, 0], curve.loss)) for curve in curves]
    favored = np.array([hull.rate[hull.loss.argmin(), 0] for hull in hulls])
    corners = [hull.rate[:, 0] for hull in hulls]
    losses = [hull.loss for hull in hulls]
    rates = cheapest_rates(corners, losses, np.ones(len(hulls)), favored, tolerance)
    mixtures = []
    for hull, corner_rates, rate in zip(hulls, corners, rates, strict=True):
        after = int(np.searchsorted(corner_rates, rate).clip(1, len(corner_rates) - 1))
        share = (rate - corner_rates[after - 1]) / (corner_rates[after] - corner_rates[after - 1])
        chances = np.array([1 - share, share])
        chances = np.where(chances > _NONE, chances, 0.0)
        mixtures.append(_mixture(hull.threshold[after - 1 : after + 1], chances))
    return mixtures


def parity_program(
    loss: Floats, rates: Any, window: Any, tolerance: float, *, sums: Any = None
) -> Any:
    """The solution of the linear program: the least loss of probabilities whose rates differ by at
    most the tolerance.

    ``rates`` (rates, variables) are compared within sets, to which ``window`` (rates, sets) assigns
    them: all rates of a set lie between the set's start, a variable beside the others, and that
    plus the tolerance. Each row of ``sums`` adds up variables to 1.
    """
    starts = window.shape[1]
    equalities = {}
    if sums is not None:
        equalities["A_eq"] = hstack([sums, csr_array((sums.shape[0], starts))])
        equalities["b_eq"] = np.ones(sums.shape[0])
    solution = linprog(
        np.append(loss, np.zeros(starts)),
        A_ub=vstack([hstack([rates, -window]), hstack([-rates, window])]),
        b_ub=np.repeat([tolerance, 0.0], rates.shape[0]),
        **equalities,
        bounds=(0, 1),
        options={"primal_feasibility_tolerance": _EXACT, "dual_feasibility_tolerance": _EXACT},
    )
    if solution.status != 0:
        raise RuntimeError(f"the linear program ended with: {solution.message}")
    return solution


def _mixture(threshold: Floats, chances: Floats) -> Mixture:
    used = chances > 0
    return Mixture(threshold[used], chances[used] / chances[used].sum())


def _program(curves: Sequence[Curve], tolerance: float) -> list[Mixture]:
    """The same for two sets, by a linear program over the corners of the groups' hulls in the
    plane of both rates.
    """
    hulls = []
    for curve in curves:
        x, y = curve.rate.T
        corners = np.union1d(lower_hull(x, y), lower_hull(x, -y))
        hulls.append(curve.take(corners))
    sizes = [len(hull.threshold) for hull in hulls]
    sets = curves[0].rate.shape[1]
    # One variable for each corner, then the start of each set's window.
    rates: Any = vstack(
        [block_diag([csr_array(hull.rate[:, [k]].T) for hull in hulls]) for k in range(sets)]
    )
    window = csr_array(np.kron(np.eye(sets), np.ones((len(hulls), 1))))
    loss = np.concatenate([hull.loss for hull in hulls])
    mixtures = block_diag([csr_array(np.ones((1, size))) for size in sizes])
    solution = parity_program(loss, rates, window, tolerance, sums=mixtures)
    parts = np.split(solution.x[: sum(sizes)], np.cumsum(sizes)[:-1])
    return [
        _mixture(hull.threshold, np.where(part > _NONE, part, 0.0))
        for hull, part in zip(hulls, parts, strict=True)
    ]


def best_thresholds(curves: Sequence[Curve], tolerance: float) -> Floats:
    """One threshold for each group, with the least loss among those whose rates differ by at most
    this.

    Accepting no row, or all rows, is always possible. The lowest rate of each set is some group's
    rate at a threshold: all windows that begin there are tried, each with the best threshold of
    every group. Where two rates must agree, fewer thresholds are used, to limit the number of
    windows and points to some millions.
    """
    sets = curves[0].rate.shape[1]
    groups = len(curves)
    if sets > 1:
        size = max(8, int(_MOST_BOXES ** (1 / 3) / groups))
        # points are spaced evenly along each, with both ends
        ways = [curve.rate.sum(1) for curve in curves]
        picks = [
            np.searchsorted(way, np.linspace(way[0], way[-1], size)).clip(max=len(way) - 1)
            for way in ways
        ]
        curves = [
            curve.take(np.unique(places)) for curve, places in zip(curves, picks, strict=True)
        ]
    starts = [
        np.unique(np.concatenate([curve.rate[:, k] for curve in curves])) for k in range(sets)
    ]
    if sets == 1:
        reached = [
            _least_within(curve.rate[:, 0], curve.loss, starts[0], tolerance) for curve in curves
        ]
        total = sum(loss for loss, _ in reached)
        best = int(np.argmin(total))
        return np.array(
            [curve.threshold[at[best]] for curve, (_, at) in zip(curves, reached, strict=True)]
        )
    lowest = np.inf
    result = np.zeros(groups)
    # Of the second set all windows at once: (windows, points) of each group.
    first, second = (
        [_inside(curve.rate[:, k], starts[k], tolerance) for curve in curves] for k in range(2)
    )
    for at in range(len(starts[0])):
        losses = [
            np.where(in_first[at] & in_second, curve.loss, np.inf)
            for in_first, in_second, curve in zip(first, second, curves, strict=True)
        ]
        total = np.sum([loss.min(1) for loss in losses], axis=0)
        best = int(total.argmin())
        if total[best] < lowest:
            lowest = total[best]
            places = [loss[best].argmin() for loss in losses]
            result = np.array(
                [curve.threshold[place] for curve, place in zip(curves, places, strict=True)]
            )
    return result


def _inside(rate: Floats, starts: Floats, tolerance: float) -> NDArray[np.bool_]:
    """Which points (columns) lie in which windows (rows)."""
    return (rate >= starts[:, None] - _NONE) & (rate <= starts[:, None] + tolerance + _NONE)


def _least_within(
    rate: Floats, loss: Floats, starts: Floats, tolerance: float
) -> tuple[Floats, NDArray[np.int64]]:
    """The least loss, and its place, of points whose rate lies within each window; infinite where
    none does.

    Rates ascend. A table of the least of 1, 2, 4 ... neighbors answers each window from two of its
    entries.
    """
    first = np.searchsorted(rate, starts - _NONE)
    after = np.searchsorted(rate, starts + tolerance + _NONE, side="right")
    tables = [np.arange(len(rate))]
    while 2 ** len(tables) <= len(rate):
        half = 2 ** (len(tables) - 1)
        left = tables[-1][:-half]
        right = tables[-1][half:]
        tables.append(np.where(loss[left] <= loss[right], left, right))
    least = np.full(len(starts), np.inf)
    places = np.zeros(len(starts), dtype=np.int64)
    level = np.where(after > first, np.log2(np.maximum(after - first, 1)).astype(int), -1)
    for depth, table in enumerate(tables):
        at_depth = level == depth
        left = table[first[at_depth]]
        right = table[after[at_depth] - 2**depth]
        places[at_depth] = np.where(loss[left] <= loss[right], left, right)
        least[at_depth] = loss[places[at_depth]]
    return least, places
