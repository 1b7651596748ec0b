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
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_array, hstack, vstack

from metrifair.postprocessing.postprocessor import rounding_error
from metrifair.support.arrays import Booleans, Floats, Integers, sums_upto


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
        if weight is None:
            weight = np.ones(len(values))
        order = np.argsort(values, kind="stable")
        upto = np.cumsum(weight[order])
        return cls(values[order], upto)

    @property
    def total(self) -> float:
        """The weight of all scores."""
        return float(self.upto[-1])

    @property
    def shares_upto(self) -> Floats:
        """The share of the weight below the first value, which is 0, and up to each value."""
        shares = self.upto / self.total
        return np.append(0.0, shares)

    def ranks(self, values: Floats) -> tuple[Floats, Floats]:
        """The shares of the weight below each value, and up to it; between two scores they are
        equal.

        >>> EmpiricalDistribution.of(np.array([1.0, 2.0, 2.0, 4.0])).ranks(np.array([2.0, 3.0]))
        (array([0.25, 0.75]), array([0.75, 0.75]))
        """
        sizes = np.abs(self.values)
        typical = float(np.median(sizes))
        rounding = rounding_error(values, typical)
        least = values - rounding
        most = values + rounding
        lower = np.searchsorted(self.values, least, side="left")
        upper = np.searchsorted(self.values, most, side="right")
        # A value below all others has the rank of the smallest one.
        upper = upper.clip(min=1)
        shares = self.shares_upto
        return shares[lower], shares[upper]

    def quantile(self, rank: Floats) -> Floats:
        """The smallest value with at least this share of the weight at or below it."""
        # In floating point 7 / 25 x 25 is more than 7: a rank that ends with a value's weight is
        # that value's.
        slack = _RANK_ROUNDING * self.total
        return self._value_at(rank * self.total - slack)

    def _value_at(self, weight: Floats) -> Floats:
        """The smallest value with at least this weight at or below it."""
        place = np.searchsorted(self.upto, weight)
        last = len(self.values) - 1
        place = place.clip(max=last)
        values: Floats = self.values[place]
        return values

    def mean(self, below: Floats, upto: Floats) -> Floats:
        """The mean of the values with ranks from ``below`` to ``upto``, or the value of the one
        rank.

        >>> EmpiricalDistribution.of(np.array([1.0, 2.0, 4.0, 6.0])).mean(np.array([0.25, 0.5]), np.array([0.75, 0.5]))
        array([3., 2.])
        """
        shares = self.shares_upto
        weight = np.diff(self.upto, prepend=0.0) / self.total
        sums = sums_upto(self.values * weight)
        sum_upto = np.interp(upto, shares, sums)
        sum_below = np.interp(below, shares, sums)
        mean = sum_upto - sum_below
        width = upto - below
        wide = width > 0
        np.divide(mean, width, out=mean, where=wide)
        # Within one value it is that value to the last digit: order is kept.
        last = self.quantile(upto)
        first_rank = below + _RANK_ROUNDING
        first = self._value_at(first_rank * self.total)
        first = np.minimum(first, last)
        within = mean.clip(first, last)
        return np.where(wide, within, last)


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
    mean = np.zeros(len(below))
    for share, group in zip(shares, groups, strict=True):
        mean += share * group.mean(below, upto)
    return mean


_RANK_ROUNDING = 1e-12  # of ranks
_EXACT = 1e-10  # feasibility of linear programs
_NONE = 1e-9  # smaller probabilities in the solution of a linear program count as 0
_MOST_BOXES = 4_000_000  # points times windows, if two rates must agree without randomization


class Curve(NamedTuple):
    """Rates and losses of the thresholds of one group, from accepting no row to accepting all."""

    threshold: Floats  # (points,), descending: scores at or above it are accepted
    rate: Floats  # (points, sets)
    loss: Floats  # (points,): this group's part of the mean loss, less that of accepting no row

    def take(self, places: Integers) -> Curve:
        """These of the points."""
        threshold = self.threshold[places]
        rate = self.rate[places]
        return Curve(threshold, rate, self.loss[places])


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
    ascending, place = np.unique(-score, return_inverse=True)
    values = -ascending
    halves = values / 2
    between = halves[:-1] + halves[1:]
    thresholds = np.concatenate([[np.inf], between, [-np.inf]])
    rates = []
    for weight in member.T:
        weights = np.bincount(place, weight)
        accepted = sums_upto(weights)
        # Divided by the last sum itself: the last rates are exactly 1.
        rates.append(accepted / accepted[-1])
    losses = np.bincount(place, price)
    return Curve(thresholds, np.stack(rates, axis=1), sums_upto(losses))


def lower_hull(x: Floats, y: Floats) -> Integers:
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
            width_to_b = x[b] - x[a]
            width_to_point = x[at] - x[a]
            # The slopes of a to b and of a to the point, both times the two distances.
            slope_to_b = (y[b] - y[a]) * width_to_point
            slope_to_point = (y[at] - y[a]) * width_to_b
            if slope_to_b < slope_to_point:
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
    corners = np.concatenate(rates)
    highest = 1 - tolerance
    before_corners = corners - tolerance
    starts = np.concatenate([corners, before_corners])
    inside = (starts > 0) & (starts < highest)
    starts = np.append(starts[inside], [0.0, highest])
    starts = np.unique(starts)
    total = np.zeros(len(starts))
    ends = starts + tolerance
    for share, best, rate, loss in zip(shares, favored, rates, losses, strict=True):
        nearest = np.clip(best, starts, ends)
        total += share * np.interp(nearest, rate, loss)
    start = starts[total.argmin()]
    return np.clip(favored, start, start + tolerance)


def best_mixtures(curves: Sequence[Curve], tolerance: float) -> list[Mixture]:
    """Randomized thresholds of each group, with the least loss among those whose rates differ
    by at most this.
    """
    if curves[0].rate.shape[1] > 1:
        return _program(curves, tolerance)
    thresholds = []
    corners = []
    losses = []
    favored = []
    for curve in curves:
        rate = curve.rate[:, 0]
        hull = lower_hull(rate, curve.loss)
        rate = rate[hull]
        loss = curve.loss[hull]
        thresholds.append(curve.threshold[hull])
        corners.append(rate)
        losses.append(loss)
        favored.append(rate[loss.argmin()])
    equal_shares = np.ones(len(curves))
    favored_rates = np.array(favored)
    rates = cheapest_rates(corners, losses, equal_shares, favored_rates, tolerance)
    return [
        _mixture_at(rate, corner_rates, threshold)
        for rate, corner_rates, threshold in zip(rates, corners, thresholds, strict=True)
    ]


def _mixture_at(rate: float, corner_rates: Floats, threshold: Floats) -> Mixture:
    """The two thresholds that have this rate together."""
    last = len(corner_rates) - 1
    place = np.searchsorted(corner_rates, rate)
    after = int(place.clip(1, last))
    before = after - 1
    low = corner_rates[before]
    high = corner_rates[after]
    share = (rate - low) / (high - low)
    chances = np.array([1 - share, share])
    both = [before, after]
    return _mixture(threshold[both], chances)


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
    sums_of_variables = None
    ones = None
    if sums is not None:
        rows = sums.shape[0]
        no_starts = csr_array((rows, starts))
        sums_of_variables = hstack([sums, no_starts])
        ones = np.ones(rows)
    at_most = hstack([rates, -window])
    at_least = hstack([-rates, window])
    count = rates.shape[0]
    no_loss = np.zeros(starts)
    solution = linprog(
        np.append(loss, no_loss),
        A_ub=vstack([at_most, at_least]),
        b_ub=np.repeat([tolerance, 0.0], count),
        A_eq=sums_of_variables,
        b_eq=ones,
        bounds=(0, 1),
        options={"primal_feasibility_tolerance": _EXACT, "dual_feasibility_tolerance": _EXACT},
    )
    if solution.status != 0:
        raise RuntimeError(f"the linear program ended with: {solution.message}")
    return solution


def _mixture(threshold: Floats, chances: Floats) -> Mixture:
    """The thresholds whose probability in a solution is not 0."""
    used = chances > _NONE
    threshold = threshold[used]
    chances = chances[used]
    return Mixture(threshold, chances / chances.sum())


def _program(curves: Sequence[Curve], tolerance: float) -> list[Mixture]:
    """The same for two sets, by a linear program over the corners of the groups' hulls in the
    plane of both rates.
    """
    hulls = []
    for curve in curves:
        x, y = curve.rate.T
        below = lower_hull(x, y)
        above = lower_hull(x, -y)
        corners = np.union1d(below, above)
        hulls.append(curve.take(corners))
    sets = curves[0].rate.shape[1]
    # One variable for each corner, then the start of each set's window.
    rates = []
    for number in range(sets):
        rates_of_groups = []
        for hull in hulls:
            rate = hull.rate[:, number]
            rates_of_groups.append(csr_array(rate[None]))
        rates.append(block_diag(rates_of_groups))
    of_each_group = np.ones((len(hulls), 1))
    of_each_set = np.eye(sets)
    window = np.kron(of_each_set, of_each_group)
    losses = [hull.loss for hull in hulls]
    sizes = [len(loss) for loss in losses]
    sums = block_diag([csr_array(np.ones((1, size))) for size in sizes])
    loss = np.concatenate(losses)
    rows: Any = vstack(rates)
    solution = parity_program(loss, rows, csr_array(window), tolerance, sums=sums)
    ends = np.cumsum(sizes)
    corners = solution.x[: ends[-1]]
    probabilities = np.split(corners, ends[:-1])
    return [
        _mixture(hull.threshold, chances)
        for hull, chances in zip(hulls, probabilities, strict=True)
    ]


def best_thresholds(curves: Sequence[Curve], tolerance: float) -> Floats:
    """One threshold for each group, with the least loss among those whose rates differ by at most
    this.

    Accepting no row, or all rows, is always possible. The lowest rate of each set is some group's
    rate at a threshold: all windows that begin there are tried, each with the best threshold of
    every group. Where two rates must agree, fewer thresholds are used, to limit the number of
    windows and points to some millions.
    """
    if curves[0].rate.shape[1] == 1:
        return _thresholds_of_one_rate(curves, tolerance)
    edge = _MOST_BOXES ** (1 / 3)
    size = int(edge / len(curves))
    size = max(8, size)
    curves = [_spaced_points(curve, size) for curve in curves]
    return _thresholds_of_two_rates(curves, tolerance)


def _spaced_points(curve: Curve, size: int) -> Curve:
    """At most this many points, spaced evenly along the curve, with both ends."""
    way = curve.rate.sum(1)
    last = len(way) - 1
    spaced = np.linspace(way[0], way[last], size)
    places = np.searchsorted(way, spaced)
    places = places.clip(max=last)
    return curve.take(np.unique(places))


def _window_starts(curves: Sequence[Curve], number: int) -> Floats:
    """The rates of a set at all thresholds of all groups."""
    rates = [curve.rate[:, number] for curve in curves]
    return np.unique(np.concatenate(rates))


def _thresholds_of_one_rate(curves: Sequence[Curve], tolerance: float) -> Floats:
    """The best thresholds, whose rates of one set lie within one window."""
    starts = _window_starts(curves, 0)
    total = np.zeros(len(starts))
    thresholds = []
    for curve in curves:
        rate = curve.rate[:, 0]
        loss, places = _least_within(rate, curve.loss, starts, tolerance)
        total += loss
        thresholds.append(curve.threshold[places])
    best = int(total.argmin())
    return np.array([thresholds_of_group[best] for thresholds_of_group in thresholds])


def _thresholds_of_two_rates(curves: Sequence[Curve], tolerance: float) -> Floats:
    """The best thresholds, whose rates lie within one window of each of the two sets."""
    starts = _window_starts(curves, 0)
    second_starts = _window_starts(curves, 1)
    windows = []
    for curve in curves:
        first, second = curve.rate.T
        in_first = _inside(first, starts, tolerance)
        in_second = _inside(second, second_starts, tolerance)
        windows.append((in_first, in_second))
    lowest = np.inf
    best_thresholds = np.zeros(len(curves))
    for at in range(len(starts)):
        # All windows of the second set at once: (windows, points) of each group.
        losses = [
            np.where(in_first[at] & in_second, curve.loss, np.inf)
            for curve, (in_first, in_second) in zip(curves, windows, strict=True)
        ]
        least_losses = [loss.min(1) for loss in losses]
        total = np.sum(least_losses, axis=0)
        best = int(total.argmin())
        if total[best] < lowest:
            lowest = total[best]
            for group, loss in enumerate(losses):
                place = loss[best].argmin()
                thresholds = curves[group].threshold
                best_thresholds[group] = thresholds[place]
    return best_thresholds


def _inside(rate: Floats, starts: Floats, tolerance: float) -> Booleans:
    """Which points (columns) lie in which windows (rows)."""
    starts = starts[:, None]
    low = starts - _NONE
    high = starts + tolerance + _NONE
    return (rate >= low) & (rate <= high)


def _least_within(
    rate: Floats, loss: Floats, starts: Floats, tolerance: float
) -> tuple[Floats, Integers]:
    """The least loss, and its place, of points whose rate lies within each window; infinite where
    none does.

    Rates ascend. A table of the least of 1, 2, 4 ... neighbors answers each window from two of its
    entries.
    """

    def better(left: Integers, right: Integers) -> Integers:
        is_left = loss[left] <= loss[right]
        return np.where(is_left, left, right)

    tables = [np.arange(len(rate))]
    while 2 ** len(tables) <= len(rate):
        half = 2 ** (len(tables) - 1)
        table = tables[-1]
        left = table[:-half]
        right = table[half:]
        tables.append(better(left, right))
    first = np.searchsorted(rate, starts - _NONE)
    ends = starts + tolerance + _NONE
    after = np.searchsorted(rate, ends, side="right")
    size = after - first
    at_least_one = np.maximum(size, 1)
    doublings = np.log2(at_least_one)
    level = doublings.astype(int)
    level[size <= 0] = -1
    count = len(starts)
    least = np.full(count, np.inf)
    places = np.zeros(count, dtype=np.int64)
    for depth, table in enumerate(tables):
        at_depth = level == depth
        left = table[first[at_depth]]
        right = table[after[at_depth] - 2**depth]
        best = better(left, right)
        places[at_depth] = best
        least[at_depth] = loss[best]
    return least, places
