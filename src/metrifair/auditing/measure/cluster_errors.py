"""The sampling error of two distributions whose rows belong to clusters, such as several rows of
one person.

Clusters are independent, their rows depend on each other in any way. The multiplier of a resample
is one for all rows of a cluster. So the noise at two scores is correlated as far as clusters have
rows at both: resamples are normal numbers with the covariance of the clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from metrifair.auditing.measure.plug_in import plug_in_distances, shares
from metrifair.auditing.measure.two_samples import TwoSamples
from metrifair.figures.clusters import by_cluster, numbered_by_content
from metrifair.support.arrays import Booleans, Floats, Integers, distinct_codes

_MOST_PAIRS = 2**22  # pairs of entries in memory at once
_MOST_NUMBERS = 2**22  # of clusters by scores in memory at once
# of the whole variance: the noise of all shares adds up to 0, so that its covariance is singular
_JITTER = 1e-11


class ClusterRows(NamedTuple):
    """Rows of two sides that belong to clusters."""

    place: Integers  # (n,): which score
    cluster: Integers  # (n,): from 0, without gaps
    left: Floats  # (n,): share of the first side
    right: Floats  # (n,)

    @classmethod
    def of(cls, place: Integers, clusters: Integers, left: Floats, right: Floats) -> ClusterRows:
        """Rows with their weights on both sides."""
        number = distinct_codes(clusters)
        return cls(place, number, shares(left), shares(right))

    @property
    def sizes(self) -> tuple[float, float]:
        """The effective number of clusters of equal weight on each side (Kish)."""
        left, right = (
            float((by_cluster(side, self.cluster) ** 2).sum()) for side in (self.left, self.right)
        )
        return 1 / left, 1 / right

    @property
    def mixed(self) -> bool:
        """Whether some cluster has rows on both sides."""
        left, right = (np.bincount(self.cluster, side) > 0 for side in (self.left, self.right))
        return bool((left & right).any())


class ClusterErrors:
    """The sampling error of both sides.

    ``added`` independent samples, of the even mixture, are part of the spread.
    """

    def __init__(self, pair: TwoSamples, rows: ClusterRows, added: float) -> None:
        self.sizes = rows.sizes
        self.side_shares = shares(pair.left), shares(pair.right)
        self._rows = rows
        self._pooled = (self.side_shares[0] + self.side_shares[1]) / 2
        self._added = added
        self._sides = tuple(self._scaled(at) for at in range(2))

    def _scaled(self, at: int) -> Floats:
        """The shares of one side.

        Division by 1 - share of the cluster makes the variance of a mean unbiased.
        """
        share = (self._rows.left, self._rows.right)[at]
        size = self.sizes[at]
        cluster_share = np.bincount(self._rows.cluster, share)
        factor = np.sqrt(size / (size + self._added) / (1 - cluster_share))
        return np.asarray(share * factor[self._rows.cluster])

    def _variance_added(self, at: int) -> Floats:
        """The variance at each score of the samples that are added to one side."""
        size = self.sizes[at]
        return np.asarray(self._added * self._pooled / size / (size + self._added))

    def noise(self, normals: Floats) -> Floats:
        """The noise of the left shares less that of the right shares, from standard normal
        numbers (count, k).
        """
        return np.asarray(normals @ self._root.T)

    @cached_property
    def _root(self) -> Floats:
        """The lower triangular root of the covariance."""
        covariance = self._covariance()
        covariance[np.diag_indices_from(covariance)] += _JITTER * np.trace(covariance)
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

    def _covariance(self) -> Floats:
        """The covariance of that noise. Shares add up to 1 after the multiplication, too."""
        rows = self._rows
        width = len(self._pooled)
        left, right = self._sides
        signed = left - right
        covariance = sum_of_products(rows.place, rows.cluster, signed, width)
        # Each side loses the sum of its noise, spread over its shares: a matrix of rank 2 on either
        # side.
        ends = np.stack([self.side_shares[0], -self.side_shares[1]], 1)
        totals = np.stack([np.bincount(rows.cluster, side) for side in (left, right)]).astype(
            np.float64
        )
        between = totals @ totals.T
        crossed = np.zeros((width, 2))
        for at, total in enumerate(totals):
            crossed[:, at] = np.bincount(rows.place, signed * total[rows.cluster], width)
        for at, sign in enumerate((1, -1)):
            added = self._variance_added(at)
            crossed[:, at] += sign * added
            between[at, at] += added.sum()
            covariance[np.diag_indices(width)] += added
        covariance += (ends @ between - crossed) @ ends.T
        covariance -= ends @ crossed.T
        return np.asarray(covariance)

    def gap_moments(self, deviations: tuple[Floats, Floats]) -> tuple[list[float], float, float]:
        """Of the gap in the mean of a utility: the variance of each side, of the gap, and its third
        moment.

        ``deviations`` are those of the utility at each score from its mean on either side.
        """
        rows = self._rows
        influences = [
            np.bincount(rows.cluster, side * deviation[rows.place])
            for side, deviation in zip(self._sides, deviations, strict=True)
        ]
        variances = [
            float((influence**2).sum() + self._variance_added(at) @ deviations[at] ** 2)
            for at, influence in enumerate(influences)
        ]
        common = 2 * float(influences[0] @ influences[1])
        third = float(((influences[0] - influences[1]) ** 3).sum())
        return variances, max(0.0, sum(variances) - common), third

    def share_variance(self, at: int, is_high: Booleans) -> float:
        """The variance of a share on one side, with two clusters of each kind added (Agresti
        and Coull).
        """
        rows = self._rows
        size = self.sizes[at]
        side = (rows.left, rows.right)[at]
        high = float(self.side_shares[at][is_high].sum())
        influence = np.bincount(rows.cluster, side * (is_high[rows.place] - high))
        spread = high * (1 - high)
        # The design effect: the variance of the share, in units of that of as many independent
        # clusters.
        effect = 1.0
        if not (spread <= 0):
            effect = min(1.0, float((influence**2).sum()) * size / spread)
        added = (size * high + self._added / 2) / (size + self._added)
        return (
            (size * effect + self._added)
            / (size + self._added)
            * added
            * (1 - added)
            / (size + self._added)
        )


def sum_of_products(place: Integers, cluster: Integers, values: Floats, width: int) -> Floats:
    """The sum over clusters of v v', (width, width), where v are the sums of a cluster's values at
    each place.

    >>> sum_of_products(np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([1.0, 2.0, 3.0]), 2)
    array([[ 1.,  2.],
           [ 2., 13.]])
    """
    keys, entry = np.unique(cluster * width + place, return_inverse=True)
    sums = np.bincount(entry.reshape(-1), values)
    cluster = keys // width
    place = keys % width
    length = np.bincount(cluster)
    many = length > max(1, width // 8)
    total = np.zeros((width, width))
    numbers = np.cumsum(many) - 1
    inside = many[cluster]
    at_once = max(1, _MOST_NUMBERS // width)
    for start in range(0, int(many.sum()), at_once):
        some = inside & (numbers[cluster] >= start) & (numbers[cluster] < start + at_once)
        table = np.zeros((at_once, width))
        table[numbers[cluster[some]] - start, place[some]] = sums[some]
        total += table.T @ table
    for first, second in _pairs(cluster[~inside]):
        cell = place[~inside][first] * width + place[~inside][second]
        products = sums[~inside][first] * sums[~inside][second]
        total += np.bincount(cell, products, width * width).reshape(width, width)
    return total


def _pairs(cluster: Integers) -> Iterator[tuple[Integers, Integers]]:
    """All pairs of entries of one cluster, in blocks; entries are sorted by cluster."""
    if not len(cluster):
        return
    starts = np.flatnonzero(np.diff(cluster, prepend=-1))
    lengths = np.diff(starts, append=len(cluster))
    start = np.repeat(starts, lengths)
    length = np.repeat(lengths, lengths)
    block = np.cumsum(length) // _MOST_PAIRS
    for number in range(int(block[-1]) + 1):
        entries = np.flatnonzero(block == number)
        first = np.repeat(entries, length[entries])
        before = np.cumsum(length[entries]) - length[entries]
        second = start[first] + np.arange(len(first)) - np.repeat(before, length[entries])
        yield first, second


def cluster_permutations(
    pair: TwoSamples,
    rows: ClusterRows,
    metrics: list[str],
    permutations: int,
    generator: np.random.Generator,
) -> Iterator[dict[str, Floats]]:
    """Distances by metric after random permutations of the groups of whole clusters, several at
    a time.
    """
    rows = rows._replace(cluster=numbered_by_content(rows.cluster, rows.place))
    width = len(pair.values)
    pooled = pair.left + pair.right
    count = int(rows.cluster.max()) + 1
    on_left = int((np.bincount(rows.cluster, rows.left) > 0).sum())
    at_once = max(1, _MOST_NUMBERS // (8 * width))
    for start in range(0, permutations, at_once):
        left = np.zeros((min(at_once, permutations - start), width))
        for number in range(len(left)):
            is_left = np.zeros(count, np.bool_)
            is_left[generator.choice(count, on_left, replace=False)] = True
            left[number] = np.bincount(rows.place[is_left[rows.cluster]], minlength=width)
        yield plug_in_distances(pair.values, left, pooled - left, metrics)
