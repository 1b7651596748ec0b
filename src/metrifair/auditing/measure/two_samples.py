"""Two samples of scores side by side: their distinct scores, and the weight of each side at them.

Resampling changes the weights, and not the order. Many scores are merged into bins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from metrifair.auditing.measure.permutations import SharedPermutations
from metrifair.support.arrays import Floats, Integers

RESOLUTION = 2048  # distinct scores in resampling


class TwoSamples(NamedTuple):
    """Distinct scores, and the counts, or sums of weights, of each side at them."""

    values: Floats  # (k,), ascending
    left: Floats  # (k,)
    right: Floats  # (k,)


def bins(pair: TwoSamples, max_bins: int) -> Integers:
    """A bin for each score: at most ``max_bins`` bins, in ascending order.

    Half of the cuts share out the even mixture of both sides, the other half the length: the few
    scores of a long tail have hardly any weight, and most of the distance.

    >>> bins(TwoSamples(np.arange(4.0), np.array([3.0, 1, 0, 0]), np.array([0.0, 0, 2, 2])), 2)
    array([0, 0, 1, 1])
    """
    if len(pair.values) <= max_bins:
        return np.arange(len(pair.values))
    mixture = pair.left / pair.left.sum() + pair.right / pair.right.sum()
    middle = (np.cumsum(mixture) - mixture / 2) / 2
    along = pair.values / 2 - pair.values[0] / 2
    axes = (
        (middle, max_bins // 2 + 1),
        (along / along[-1], (max_bins - 1) // 2 + 1),
    )
    numbers = [np.minimum((share * count).astype(np.int64), count - 1) for share, count in axes]
    cut = np.logical_or.reduce([np.diff(number, prepend=number[0]) > 0 for number in numbers])
    return np.cumsum(cut).astype(np.int64)


def merge_bins(pair: TwoSamples, bin_index: Integers) -> TwoSamples:
    """Merge the scores of each bin at the largest: distribution functions are still exact there.

    >>> pair = TwoSamples(np.arange(3.0), np.array([1.0, 1, 0]), np.array([0.0, 1, 1]))
    >>> merge_bins(pair, np.array([0, 0, 1]))
    TwoSamples(values=array([1., 2.]), left=array([2., 0.]), right=array([1., 1.]))
    """
    last = np.append(np.flatnonzero(np.diff(bin_index)), len(bin_index) - 1)
    left, right = (np.bincount(bin_index, side).astype(np.float64) for side in pair[1:])
    return TwoSamples(pair.values[last], left, right)


def bin_means(pair: TwoSamples, bin_index: Integers) -> Floats:
    """The mean score of each bin, in the even mixture of both sides: its location for distances
    that are integrals.

    >>> pair = TwoSamples(np.arange(3.0), np.array([1.0, 1, 0]), np.array([0.0, 1, 1]))
    >>> bin_means(pair, np.array([0, 0, 1]))
    array([0.66666667, 2.        ])
    """
    mixture = pair.left / pair.left.sum() + pair.right / pair.right.sum()
    share = mixture / np.bincount(bin_index, mixture)[bin_index]
    first = np.flatnonzero(np.diff(bin_index, prepend=-1))
    last = np.append(first[1:], len(bin_index)) - 1
    # Sums of shares may round beyond the ends.
    return np.clip(
        np.bincount(bin_index, share * pair.values),
        pair.values[first],
        pair.values[last],
    )


class PooledBins(NamedTuple):
    """Bins of scores that do not depend on the groups."""

    bin_index: Integers  # of each score
    values: Floats  # the mean score of each
    counts: Floats  # of both sides

    def split(self, place: Integers, count: Integers) -> TwoSamples:
        """Split the samples: ``count`` of them at some of the scores, and all others."""
        left: Floats = np.bincount(self.bin_index[place], count, len(self.values)).astype(
            np.float64
        )
        return TwoSamples(self.values, left, self.counts - left)


def pooled_bins(values: Floats, counts: Floats, max_bins: int) -> PooledBins:
    """At most ``max_bins`` bins of scores; ``counts`` are those of both sides together.

    >>> pooled_bins(np.arange(4.0), np.array([3.0, 1, 2, 2]), 2)
    PooledBins(bin_index=array([0, 0, 1, 1]), values=array([0.25, 2.5 ]), counts=array([4., 4.]))
    """
    pair = TwoSamples(values, counts, counts)
    bin_index = bins(pair, max_bins)
    return PooledBins(
        bin_index,
        bin_means(pair, bin_index),
        np.bincount(bin_index, counts).astype(np.float64),
    )


class Permutable(NamedTuple):
    """Two samples in bins that do not depend on the groups, and the permutations that pairs in
    these bins share.
    """

    pair: TwoSamples
    shared: SharedPermutations | None = None


InBins: TypeAlias = Callable[[int], Permutable]
"""Two samples in at most so many bins."""


def in_pooled_bins(pair: TwoSamples, max_bins: int) -> Permutable:
    """Two samples in at most ``max_bins`` bins that do not depend on the groups, for
    permutations.
    """
    pooled = pooled_bins(pair.values, pair.left + pair.right, max_bins)
    return Permutable(merge_bins(pair, pooled.bin_index)._replace(values=pooled.values))
