"""Score distributions: the one container of an audit, and two of its samples side by side.

Scores are counted at ascending values, unit by unit. A unit is a row in memory, or a cell of a file that
is larger than memory: all rows with the same groups, strata and label. Which units are compared, and all figures that
follow, are computed in the same way for both. A comparison of two samples needs only the distinct scores and the
weight of each side. Resampling changes the weights, and not the order.

Comparing each of many groups with the rest takes time linear in rows and groups: common counts are made once. With
c the distribution function of all rows and F that of a group of n of the N rows, that of the rest is
(N c - n F) / (N - n), so that D = F - rest = (F - c) N / (N - n). Between two scores of the group F is constant and c
rises: D falls there. So the largest gap is next to a score of the group; and the integrals of |D| and D^2
over such a stretch follow from running integrals of 1, c and c^2, which are the same for all groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.permutations import SharedPermutations
from metrifair.errors import DataError
from metrifair.metrics.line import Merged
from metrifair.metrics.namespaces import no_warnings
from metrifair.metrics.pair import TOO_FAR, Pair
from metrifair.metrics.registry import Convex, Integral, facts
from metrifair.metrics.witness import Witness
from metrifair.support.arrays import Floats, Integers

RESOLUTION = 2048  # distinct scores in resampling
_FEW_UNITS = 64  # up to this number, entries are looked up one by one


def total_over(
    units: Integers, count: int, summed: Callable[[Integers], NDArray[Any]], all_units: Callable[[], NDArray[Any]]
) -> NDArray[Any]:
    """The sum over some of ``count`` units. For the majority, it is the sum over all units less that over the others.

    Many comparisons are with the rest, so the sum over all units is computed once.
    """
    if 2 * len(units) <= count:
        return np.asarray(summed(units))
    outside = np.ones(count, np.bool_)
    outside[units] = False
    return np.asarray(all_units() - summed(np.flatnonzero(outside)))


@dataclass(frozen=True, eq=False)
class CountedScores:
    """The number of rows, or the weight, of each unit at each of some ascending values.

    Entries are sorted by unit. For rows there is one entry each, and the values are their distinct scores; for cells
    the values are the largest scores of bins: distribution functions are exact there.
    """

    values: Floats  # (k,)
    place: Integers  # (entries,): at which of the values
    amount: NDArray[Any] | None = None  # (entries,): rows or weight; None: one row each
    starts: Integers | None = None  # (units + 1,): where the entries of each unit begin; None: one entry each

    @property
    def units(self) -> int:
        """Number of units."""
        return len(self.place) if self.starts is None else len(self.starts) - 1

    @cached_property
    def are_decisions(self) -> bool:
        """True if all scores are 0 or 1."""
        return bool(np.isin(self.values, (0, 1)).all())

    @property
    def weighted(self) -> bool:
        """True if amounts are weights, whose sums are rounded."""
        return self.amount is not None and self.amount.dtype == np.float64

    def at(self, units: Integers) -> NDArray[Any]:
        """The rows, or weight, of some units at each value: (k,)."""
        if self.weighted:  # differences of rounded sums may be less than nothing
            return self._sum(units)
        return total_over(units, self.units, self._sum, lambda: self._all_units)

    def _sum(self, units: Integers) -> NDArray[Any]:
        entries: NDArray[Any] = units
        if self.starts is not None and len(units) <= _FEW_UNITS:
            parts = [np.arange(self.starts[unit], self.starts[unit + 1]) for unit in units]
            entries = np.concatenate([np.zeros(0, np.int64), *parts])
        elif self.starts is not None:
            mask = np.zeros(self.units, np.bool_)
            mask[units] = True
            entries = np.repeat(mask, np.diff(self.starts))
        # bincount adds floats; sums of counts are exact in them, too.
        amount = None if self.amount is None else self.amount[entries]
        return np.bincount(self.place[entries], amount, len(self.values))

    @cached_property
    def _all_units(self) -> NDArray[Any]:
        return np.bincount(self.place, self.amount, len(self.values))


def count_rows(score: Floats, weight: Floats | None = None) -> CountedScores:
    """Count rows in memory by their scores.

    >>> count_rows(np.array([0.5, 0.1, 0.5])).at(np.array([0, 2]))
    array([0, 2])
    """
    values, place = np.unique(score, return_inverse=True)
    return CountedScores(values, place, weight)


def count_cells(values: Floats, counts: NDArray[Any]) -> CountedScores:
    """The scores of cells with counts, or sums of weights, (k, cells) at values (k,).

    >>> count_cells(np.array([0.1, 0.5]), np.array([[1, 0], [2, 3]])).at(np.array([0, 1]))
    array([1., 5.])
    """
    cell, place = np.nonzero(counts.T)
    starts = np.searchsorted(cell, np.arange(counts.shape[1] + 1))
    return CountedScores(values, place, counts[place, cell], starts)


def representative_rows(scores: CountedScores, max_rows: int) -> tuple[Floats, Integers]:
    """Scores and units of at most about ``max_rows`` rows, in proportion to all of them."""
    if scores.starts is None or scores.amount is None:
        return scores.values[scores.place], np.arange(scores.units)
    total = float(scores.amount.sum())
    share = max_rows / total if scores.weighted else min(1.0, max_rows / total)
    lengths = np.diff(scores.starts)
    below = np.append(0.0, np.cumsum(scores.amount))
    upto = np.floor((below[1:] - np.repeat(below[scores.starts[:-1]], lengths)) * share)
    first = scores.starts[:-1][lengths > 0]
    row_counts = np.diff(upto, prepend=0.0)
    row_counts[first] = upto[first]
    times = row_counts.astype(np.int64)
    unit = np.repeat(np.arange(scores.units), lengths)
    return np.repeat(scores.values[scores.place], times), np.repeat(unit, times)


class TwoSamples(NamedTuple):
    """Distinct scores, and the counts, or sums of weights, of each side at them."""

    values: Floats  # (k,), ascending
    left: Floats  # (k,)
    right: Floats  # (k,)


def bins(pair: TwoSamples, max_bins: int) -> Integers:
    """A bin for each score: at most ``max_bins`` bins, in ascending order.

    Half of the cuts share out the even mixture of both sides, the other half the length: the few scores of a long tail
    have hardly any weight, and most of the distance.

    >>> bins(TwoSamples(np.arange(4.0), np.array([3.0, 1, 0, 0]), np.array([0.0, 0, 2, 2])), 2)
    array([0, 0, 1, 1])
    """
    if len(pair.values) <= max_bins:
        return np.arange(len(pair.values))
    mixture = pair.left / pair.left.sum() + pair.right / pair.right.sum()
    middle = (np.cumsum(mixture) - mixture / 2) / 2
    along = pair.values / 2 - pair.values[0] / 2
    axes = (middle, max_bins // 2 + 1), (along / along[-1], (max_bins - 1) // 2 + 1)
    numbers = [np.minimum((share * count).astype(np.int64), count - 1) for share, count in axes]
    cut = np.logical_or.reduce([np.diff(number, prepend=number[0]) > 0 for number in numbers])
    return np.cumsum(cut).astype(np.int64)


def merge_bins(pair: TwoSamples, bin_index: Integers) -> TwoSamples:
    """Merge the scores of each bin at the largest: distribution functions are still exact there.

    >>> merge_bins(TwoSamples(np.arange(3.0), np.array([1.0, 1, 0]), np.array([0.0, 1, 1])), np.array([0, 0, 1]))
    TwoSamples(values=array([1., 2.]), left=array([2., 0.]), right=array([1., 1.]))
    """
    last = np.append(np.flatnonzero(np.diff(bin_index)), len(bin_index) - 1)
    left, right = (np.bincount(bin_index, side).astype(np.float64) for side in pair[1:])
    return TwoSamples(pair.values[last], left, right)


def bin_means(pair: TwoSamples, bin_index: Integers) -> Floats:
    """The mean score of each bin, in the even mixture of both sides: its location for distances that are integrals.

    >>> bin_means(TwoSamples(np.arange(3.0), np.array([1.0, 1, 0]), np.array([0.0, 1, 1])), np.array([0, 0, 1]))
    array([0.66666667, 2.        ])
    """
    mixture = pair.left / pair.left.sum() + pair.right / pair.right.sum()
    share = mixture / np.bincount(bin_index, mixture)[bin_index]
    first = np.flatnonzero(np.diff(bin_index, prepend=-1))
    last = np.append(first[1:], len(bin_index)) - 1
    # Sums of shares may round beyond the ends.
    return np.clip(np.bincount(bin_index, share * pair.values), pair.values[first], pair.values[last])


class PooledBins(NamedTuple):
    """Bins of scores that do not depend on the groups."""

    bin_index: Integers  # of each score
    values: Floats  # the mean score of each
    counts: Floats  # of both sides

    def split(self, place: Integers, count: Integers) -> TwoSamples:
        """Split the samples: ``count`` of them at some of the scores, and all others."""
        left: Floats = np.bincount(self.bin_index[place], count, len(self.values)).astype(np.float64)
        return TwoSamples(self.values, left, self.counts - left)


def pooled_bins(values: Floats, counts: Floats, max_bins: int) -> PooledBins:
    """At most ``max_bins`` bins of scores; ``counts`` are those of both sides together.

    >>> pooled_bins(np.arange(4.0), np.array([3.0, 1, 2, 2]), 2)
    PooledBins(bin_index=array([0, 0, 1, 1]), values=array([0.25, 2.5 ]), counts=array([4., 4.]))
    """
    pair = TwoSamples(values, counts, counts)
    bin_index = bins(pair, max_bins)
    return PooledBins(bin_index, bin_means(pair, bin_index), np.bincount(bin_index, counts).astype(np.float64))


class Permutable(NamedTuple):
    """Two samples in bins that do not depend on the groups, and the permutations that pairs in these bins share."""

    pair: TwoSamples
    shared: SharedPermutations | None = None


InBins: TypeAlias = Callable[[int], Permutable]
"""Two samples in at most so many bins."""


def in_pooled_bins(pair: TwoSamples, max_bins: int) -> Permutable:
    """Two samples in at most ``max_bins`` bins that do not depend on the groups, for permutations."""
    pooled = pooled_bins(pair.values, pair.left + pair.right, max_bins)
    return Permutable(merge_bins(pair, pooled.bin_index)._replace(values=pooled.values))


def plug_in_distances(
    values: Floats, left: NDArray[Any], right: NDArray[Any], metrics: Sequence[str]
) -> dict[str, Floats]:
    """Plug-in distances, by metric, between sides of weights (..., k) at ``values`` (k,): one for each leading index.

    >>> plug_in_distances(np.array([0.0, 1, 3]), np.array([1, 1, 0]), np.array([[0, 1, 1], [1, 1, 0]]), ["wasserstein"])
    {'wasserstein': array([1.5, 0. ])}
    """
    # Sums of counts are exact, those of shares are not.
    below = [np.cumsum(side, axis=-1) / side.sum(-1, keepdims=True) for side in (left, right)]
    easy = [metric for metric in metrics if facts(metric).of_merged or facts(metric).of_shares]
    distances = _distances(lambda: shares(left) - shares(right), Merged(values, *below), easy)
    for metric in set(metrics) - set(easy):  # the scores twice, weighted as on the left and as on the right
        weights = np.concatenate(np.broadcast_arrays(shares(left), shares(right)), -1)
        twice = np.broadcast_to(np.tile(values, 2), weights.shape)
        with no_warnings():
            distances[metric] = facts(metric).plug_in(Pair(twice, (len(values),), (len(values),), weights))
    if not all(np.isfinite(value).all() for value in distances.values()):
        raise DataError(TOO_FAR)
    return {metric: np.minimum(distances[metric], facts(metric).maximum) for metric in metrics}


def distances_between(values: Floats, signed: Floats, metrics: Sequence[str]) -> dict[str, Floats]:
    """The same from ``signed`` shares, (..., k), such as the shares of the left side less those of the right side."""
    return _distances(lambda: signed, Merged(values, np.cumsum(signed, axis=-1), np.zeros(())), metrics)


def _distances(signed: Callable[[], Floats], merged: Merged, metrics: Sequence[str]) -> dict[str, Floats]:
    """Distances from signed shares, or from distribution functions; one row of points serves all rows of these."""
    if len(merged.points) == 1:  # all scores are equal
        return {metric: np.zeros(merged.difference.shape[:-1]) for metric in metrics}
    distances = {}
    for metric in metrics:
        row = facts(metric)
        with no_warnings():
            if row.of_merged is not None:
                distances[metric] = row.of_merged(merged)
            elif row.of_shares is not None:
                distances[metric] = row.of_shares(merged.points, signed())
            else:
                raise DataError(
                    f"the metric {metric!r} is not known as a function of the difference of two distributions"
                )
    return distances


def shares(weights: NDArray[Any]) -> Floats:
    """Weights (..., k) as shares of their sum."""
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def unbiased_distance(metric: str, sides: Sequence[tuple[Floats, Floats]], value: float) -> float | None:
    """The U-statistic of unweighted samples, from its plug-in value; None if the metric has none.

    A side is its scores and the count of each.

    >>> unbiased_distance("energy", [(np.array([0.0, 1]), np.ones(2)), (np.array([1.0, 3]), np.ones(2))], 1.5)
    0.0
    """
    spread = facts(metric).spread
    if spread is None or min(counts.sum() for _, counts in sides) < 2:
        return None
    return float(value - sum(spread(points, shares(counts)) / (counts.sum() - 1) for points, counts in sides))


def witness_utility(metric: str, pair: TwoSamples) -> Witness | None:
    """The utility that separates the two sides best; None for a metric without a witness.

    >>> pair = TwoSamples(np.array([0.0, 1, 3]), np.array([1.0, 0, 0]), np.array([0.0, 1, 1]))
    >>> witness_utility("wasserstein", pair).gap
    2.0
    """
    witness = facts(metric).witness
    if witness is None:
        return None
    # Scores are in order: an audit of many groups would sort them many thousand times.
    below = [np.cumsum(side) / side.sum() for side in pair[1:]]
    utility = witness(Merged(pair.values, below[0], below[1]))
    heights = utility(pair.values)
    left, right = (float(shares(side) @ heights) for side in pair[1:])
    return Witness(metric, (left, right), utility)


class LargestGap(NamedTuple):
    """The score with the largest gap between two distribution functions, and the share of each side at or below it."""

    score: float
    shares: tuple[float, float]


def largest_gap(pair: TwoSamples) -> LargestGap:
    """The score at which the shares at or below it differ most.

    >>> largest_gap(TwoSamples(np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, 1, 0, 1]), np.array([0.0, 0, 1, 0])))
    LargestGap(score=0.2, shares=(0.6666666666666666, 0.0))
    """
    below = [np.cumsum(side) / side.sum() for side in pair[1:]]
    height = np.abs(below[0] - below[1])
    at = int((height >= height.max() - 1e-12).argmax())  # the lowest of equal ones, up to rounding
    return LargestGap(float(pair.values[at]), (float(below[0][at]), float(below[1][at])))


_LARGE = 16  # groups with more than 1 / 16 of the distinct scores are compared score by score: there are few of these


class Stretch(NamedTuple):
    """Scores between two of the group's own, and the increments of the running integrals there."""

    share: Floats  # of the group at or below
    length: Floats
    mean: Floats  # integral of c
    square: Floats  # integral of c^2


class GroupAndRest(NamedTuple):
    """One group and the rest: their scores, merged where there are too many, and the exact values."""

    pair: TwoSamples
    permuted: InBins  # the samples in bins that do not depend on the groups, for permutations
    group_scores: tuple[Floats, Floats]  # all distinct scores of the group, and its rows at each
    means: tuple[float, float]
    gap: LargestGap
    values: dict[str, float]


class AllGroups:
    """The rows of all groups of an attribute within a part, unweighted.

    Resampling and curves use at most ``max_scores`` distinct scores.
    """

    def __init__(self, scores: CountedScores, units: Integers, codes: Integers, max_scores: int) -> None:
        count: Integers = scores.at(units).astype(np.int64)
        used = count > 0
        self.values, self._count = scores.values[used], count[used]
        self._place = (np.cumsum(used) - 1)[scores.place[units]]
        self._order = np.argsort(codes, kind="stable")
        self._starts = np.searchsorted(codes[self._order], np.arange(codes.max() + 2))
        self._upto = np.cumsum(self._count)
        self._share = self._upto / len(units)
        gaps = np.append(np.diff(self.values), 0.0)
        # Their small differences matter, so they are added up in extended precision where a processor has it.
        sums = (np.cumsum(gaps * self._share**power, dtype=np.longdouble) for power in range(3))
        self._running = [np.append(0.0, part.astype(np.float64)) for part in sums]
        pooled = TwoSamples(self.values, *[self._count.astype(np.float64)] * 2)
        bin_index = bins(pooled, max_scores)
        few = merge_bins(pooled, bin_index)
        self._few = PooledBins(bin_index, few.values, few.right)
        # The mean score of all rows is the sum of these parts; the rest of a group has those before and after it.
        parts = np.bincount(codes, self.values[self._place] / len(units))
        self._before, self._after = np.append(0.0, np.cumsum(parts)), np.append(np.cumsum(parts[::-1])[::-1], 0.0)
        self._fewer: dict[int, tuple[PooledBins, SharedPermutations]] = {}  # by their largest number

    def _in_fewer_bins(self, max_bins: int) -> tuple[PooledBins, SharedPermutations]:
        if max_bins not in self._fewer:
            fewer = pooled_bins(self._few.values, self._few.counts, max_bins)
            bin_index = fewer.bin_index[self._few.bin_index]
            self._fewer[max_bins] = fewer._replace(bin_index=bin_index), SharedPermutations(fewer.counts)
        return self._fewer[max_bins]

    def against_rest(self, group: int, metrics: Sequence[str]) -> GroupAndRest:
        """One group and all others."""
        rows = self._order[self._starts[group] : self._starts[group + 1]]
        place, count = np.unique(self._place[rows], return_counts=True)
        pair = self._few.split(place, count)

        def permuted(max_bins: int) -> Permutable:
            fewer, shared = self._in_fewer_bins(max_bins)
            return Permutable(fewer.split(place, count), shared)

        group_scores = self.values[place], count.astype(np.float64)
        mean, share = float(shares(count) @ self.values[place]), len(rows) / len(self._order)
        means = mean, float(self._before[group] + self._after[group + 1]) / (1 - share)
        if _LARGE * len(place) > len(self.values):
            counts: Floats = np.zeros(len(self.values))
            counts[place] = count
            exact = TwoSamples(self.values, counts, self._count.astype(np.float64) - counts)
            values = {name: float(value) for name, value in plug_in_distances(*exact, metrics).items()}
            return GroupAndRest(pair, permuted, group_scores, means, largest_gap(exact), values)
        return GroupAndRest(pair, permuted, group_scores, means, *self._gap_and_distances(place, count, metrics))

    def _gap_and_distances(
        self, place: Integers, count: Integers, metrics: Sequence[str]
    ) -> tuple[LargestGap, dict[str, float]]:
        size, rest = int(count.sum()), len(self._order) - int(count.sum())
        # Stretches begin at the lowest score of all and at each of the group's own; the last ends beyond all scores.
        first = place[0] == 0
        below = np.cumsum(count) if first else np.append(0, np.cumsum(count))
        start = place if first else np.append(0, place)
        end = np.append(start[1:], len(self.values))
        share = below / size

        at, under = np.stack([start, end - 1], 1).ravel(), np.repeat(below, 2)
        left, right = under / size, (self._upto[at] - under) / rest
        height = np.abs(left - right)
        lowest = int((height >= height.max() - 1e-12).argmax())
        gap = LargestGap(float(self.values[at[lowest]]), (float(left[lowest]), float(right[lowest])))

        def stretch(start: Integers, end: Integers) -> Stretch:
            return Stretch(share, *(running[end] - running[start] for running in self._running))

        middle = np.clip(np.searchsorted(self._share, share), start, end)  # D is positive before, negative after
        up, down, scale = stretch(start, middle), stretch(middle, end), (size + rest) / rest
        values = {}
        for metric in metrics:
            bracket, maximum = facts(metric).bracket, facts(metric).maximum
            if isinstance(bracket, Integral):
                integral = _INTEGRALS[bracket.convex]
                value = bracket.factor * max(0.0, integral(up, down, scale))
                values[metric] = float(min(maximum, value**bracket.power))
            elif bracket == "atoms":
                rest_counts = self._count[place] - count
                difference = np.abs(count / size - rest_counts / rest).sum() + (rest - rest_counts.sum()) / rest
                values[metric] = float(min(maximum, difference / 2))
            else:
                values[metric] = float(height.max())
        if not np.isfinite(list(values.values())).all():
            raise DataError(TOO_FAR)
        return gap, values


_Integral: TypeAlias = Callable[[Stretch, Stretch, float], float]


def _absolute_integral(up: Stretch, down: Stretch, scale: float) -> float:
    positive, negative = ((part.share * part.length - part.mean).sum() for part in (up, down))
    return float(scale * (positive - negative))


def _square_integral(up: Stretch, down: Stretch, scale: float) -> float:
    squares = (part.share**2 * part.length - 2 * part.share * part.mean + part.square for part in (up, down))
    return float(scale**2 * sum(square.sum() for square in squares))


_INTEGRALS: dict[Convex, _Integral] = {np.abs: _absolute_integral, np.square: _square_integral}


def has_running_integrals(metric: str) -> bool:
    """Whether a metric follows from running integrals."""
    bracket = facts(metric).bracket
    return bracket is not None and (not isinstance(bracket, Integral) or bracket.convex in _INTEGRALS)
