"""Each of many groups against the rest, in time linear in rows and groups.

Common counts are made once. With c the distribution function of all rows and F that of a group of
n of the N rows, that of the rest is (N c - n F) / (N - n), so that D = F - rest =
(F - c) N / (N - n). Between two scores of the group F is constant and c rises: D falls there. So
the largest gap is next to a score of the group; and the integrals of |D| and D^2 over such a
stretch follow from running integrals of 1, c and c^2, which are the same for all groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from metrifair.auditing.measure.counted_scores import CountedScores
from metrifair.auditing.measure.permutations import SharedPermutations
from metrifair.auditing.measure.plug_in import (
    LargestGap,
    largest_gap,
    plug_in_distances,
    shares,
)
from metrifair.auditing.measure.two_samples import (
    InBins,
    Permutable,
    PooledBins,
    TwoSamples,
    bins,
    merge_bins,
    pooled_bins,
)
from metrifair.errors import DataError
from metrifair.metrics.pair import TOO_FAR
from metrifair.metrics.registry import Convex, Integral, facts
from metrifair.support.arrays import Floats, Integers, sums_upto

# groups with more than 1 / 16 of the distinct scores are compared score by score: there are few of
# these
_LARGE = 16


class Stretch(NamedTuple):
    """Scores between two of the group's own, and the increments of the running integrals there."""

    share: Floats  # of the group at or below
    length: Floats
    mean: Floats  # integral of c
    square: Floats  # integral of c^2


class GroupAndRest(NamedTuple):
    """One group and the rest: their scores, merged where there are too many, and the exact
    values.
    """

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

    def __init__(
        self,
        scores: CountedScores,
        units: Integers,
        codes: Integers,
        max_scores: int,
    ) -> None:
        count: Integers = scores.at(units).astype(np.int64)
        used = count > 0
        self.values = scores.values[used]
        self._count = count[used]
        self._place = (np.cumsum(used) - 1)[scores.place[units]]
        self._order = np.argsort(codes, kind="stable")
        self._starts = np.searchsorted(codes[self._order], np.arange(codes.max() + 2))
        self._upto = np.cumsum(self._count)
        self._share = self._upto / len(units)
        gaps = np.append(np.diff(self.values), 0.0)
        # Their small differences matter, so they are added up in extended precision where a
        # processor has it.
        sums = (np.cumsum(gaps * self._share**power, dtype=np.longdouble) for power in range(3))
        self._running = [np.append(0.0, part.astype(np.float64)) for part in sums]
        pooled = TwoSamples(self.values, *[self._count.astype(np.float64)] * 2)
        bin_index = bins(pooled, max_scores)
        few = merge_bins(pooled, bin_index)
        self._few = PooledBins(bin_index, few.values, few.right)
        # The mean score of all rows is the sum of these parts; the rest of a group has those before
        # and after it.
        parts = np.bincount(codes, self.values[self._place] / len(units))
        self._before = sums_upto(parts)
        self._after = np.append(np.cumsum(parts[::-1])[::-1], 0.0)
        # by their largest number
        self._fewer: dict[int, tuple[PooledBins, SharedPermutations]] = {}

    def _in_fewer_bins(self, max_bins: int) -> tuple[PooledBins, SharedPermutations]:
        if max_bins not in self._fewer:
            fewer = pooled_bins(self._few.values, self._few.counts, max_bins)
            bin_index = fewer.bin_index[self._few.bin_index]
            self._fewer[max_bins] = (
                fewer._replace(bin_index=bin_index),
                SharedPermutations(fewer.counts),
            )
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
        mean = float(shares(count) @ self.values[place])
        share = len(rows) / len(self._order)
        means = (
            mean,
            float(self._before[group] + self._after[group + 1]) / (1 - share),
        )
        if _LARGE * len(place) > len(self.values):
            counts: Floats = np.zeros(len(self.values))
            counts[place] = count
            exact = TwoSamples(self.values, counts, self._count.astype(np.float64) - counts)
            values = {
                name: float(value) for name, value in plug_in_distances(*exact, metrics).items()
            }
            return GroupAndRest(pair, permuted, group_scores, means, largest_gap(exact), values)
        return GroupAndRest(
            pair,
            permuted,
            group_scores,
            means,
            *self._gap_and_distances(place, count, metrics),
        )

    def _gap_and_distances(
        self, place: Integers, count: Integers, metrics: Sequence[str]
    ) -> tuple[LargestGap, dict[str, float]]:
        size = int(count.sum())
        rest = len(self._order) - int(count.sum())
        # Stretches begin at the lowest score of all and at each of the group's own; the last ends
        # beyond all scores.
        first = place[0] == 0
        below = np.cumsum(count) if first else np.append(0, np.cumsum(count))
        start = place
        if not first:
            start = np.append(0, place)
        end = np.append(start[1:], len(self.values))
        share = below / size

        at = np.stack([start, end - 1], 1).ravel()
        under = np.repeat(below, 2)
        left = under / size
        right = (self._upto[at] - under) / rest
        height = np.abs(left - right)
        lowest = int((height >= height.max() - 1e-12).argmax())
        gap = LargestGap(
            float(self.values[at[lowest]]),
            (float(left[lowest]), float(right[lowest])),
        )

        def stretch(start: Integers, end: Integers) -> Stretch:
            return Stretch(
                share,
                *(running[end] - running[start] for running in self._running),
            )

        # D is positive before, negative after
        middle = np.clip(np.searchsorted(self._share, share), start, end)
        up = stretch(start, middle)
        down = stretch(middle, end)
        scale = (size + rest) / rest
        values = {}
        for metric in metrics:
            bracket = facts(metric).bracket
            maximum = facts(metric).maximum
            if isinstance(bracket, Integral):
                integral = _INTEGRALS[bracket.convex]
                value = bracket.factor * max(0.0, integral(up, down, scale))
                values[metric] = float(min(maximum, value**bracket.power))
            elif bracket == "atoms":
                rest_counts = self._count[place] - count
                difference = (
                    np.abs(count / size - rest_counts / rest).sum()
                    + (rest - rest_counts.sum()) / rest
                )
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
    squares = (
        part.share**2 * part.length - 2 * part.share * part.mean + part.square
        for part in (up, down)
    )
    return float(scale**2 * sum(square.sum() for square in squares))


_INTEGRALS: dict[Convex, _Integral] = {
    np.abs: _absolute_integral,
    np.square: _square_integral,
}


def has_running_integrals(metric: str) -> bool:
    """Whether a metric follows from running integrals."""
    bracket = facts(metric).bracket
    return bracket is not None and (
        not isinstance(bracket, Integral) or bracket.convex in _INTEGRALS
    )
