"""Tables of rows by bands of an attribute and by score, from which gaps and dependence follow.

With the joint distribution function C and its margins F (of scores) and G (of the attribute), the
gap between rows up to a cut and above it is (C - F G) / (G (1 - G)), and the squared distance
covariance 4 x the integral of (C - F G)^2 over both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from metrifair.auditing.measure.two_samples import TwoSamples, bin_means, bins
from metrifair.figures.clusters import effective_clusters
from metrifair.figures.intervals import Interval
from metrifair.support.arrays import Floats, Integers
from metrifair.support.special import student_quantile

BAND_METRICS = (
    "kolmogorov",
    "wasserstein",
    "energy",
)  # those that the table determines
_MORE_SCORES = 128  # distinct scores if the attribute is permuted
_SHUFFLED = 2**16  # rows up to which the attribute itself is permuted
# of the smaller table that more rows, and the bootstrap, are drawn in
_FEW_CUTS = 20
_FEW_SCORES = 64
_FEWEST_SCORES = 24  # if one row after the other is left out
_MOST_LEFT_OUT = 512  # clusters that are left out one by one
_BLOCK = 2**20  # numbers in the tables that are in memory at once


class Gaps(NamedTuple):
    """The distances at each cut (..., cuts) and the dependence (...) of tables (..., bands,
    scores).
    """

    kolmogorov: Floats
    wasserstein: Floats
    energy: Floats  # the dependence

    def worst(self, metric: str) -> Floats:
        """The value of a finding: the largest over all cuts, or the dependence."""
        gaps: Floats = getattr(self, metric)
        if metric == "energy":
            return gaps
        return np.asarray(gaps.max(-1))


@dataclass(frozen=True, eq=False)
class BandTable:
    """Rows, or weights, by bands of the attribute (ascending) and by score."""

    counts: Floats  # (bands, scores)
    scores: Floats  # (scores,)
    levels: Floats  # (bands,): the mean of the attribute in each

    def scales(self, rows: Floats) -> Floats:
        """The factor from distance covariances to energy distances, for rows (..., bands) in
        the bands.
        """
        share = rows / rows.sum(-1, keepdims=True)
        far = np.abs(self.levels[:, None] - self.levels)
        sums = share @ far
        mean = (share * sums).sum(-1)
        squared = (share * (share @ far**2)).sum(-1)
        variance = squared - 2 * (share * sums**2).sum(-1) + mean**2
        usable = (variance > 0) & (mean > 0)
        product = np.where(usable, variance * mean, 1.0)
        return np.asarray(np.where(usable, 2 * squared / product, 0.0))

    def gaps(self, counts: Floats | None = None) -> Gaps:
        """The gaps of this table, or of others (..., bands, scores) with the same scores and
        levels.
        """
        if counts is None:
            counts = self.counts
        total = counts.sum((-2, -1), keepdims=True)
        below = np.cumsum(counts.sum(-2, keepdims=True), -1) / total
        joint = np.cumsum(np.cumsum(counts, -2)[..., :-1, :], -1)
        joint /= total
        share = joint[..., -1:].copy()
        joint -= below * share
        return self._gaps_by(joint, share, self.scales(counts.sum(-1)))

    def gaps_of_noise(self, tables: Floats) -> Gaps:
        """The gaps of noise alone, if scores and attribute are independent, from signed tables
        (..., bands, scores).

        Noise of the margins is removed from each table, as C - F G has both margins of the sample.
        """
        total = self.counts.sum()
        of_scores = self.counts.sum(0) / total
        of_bands = self.counts.sum(1) / total
        by_band = tables.sum(-1)
        by_score = tables.sum(-2)
        noise = (
            tables - by_band[..., :, None] * of_scores - of_bands[:, None] * by_score[..., None, :]
        )
        noise += tables.sum((-2, -1))[..., None, None] * np.outer(of_bands, of_scores)
        sides = np.cumsum(noise, -2)[..., :-1, :]
        return self._gaps_by(
            np.cumsum(sides, -1) / total,
            np.cumsum(of_bands)[:-1, None],
            self.scales(self.counts.sum(-1)),
        )

    def _gaps_by(self, joint: Floats, share: Floats, scales: Floats) -> Gaps:
        """The gaps from C - F G (..., cuts, scores) and G (..., cuts, 1); ``joint`` is
        overwritten.
        """
        differences = np.abs(joint, out=joint)
        steps = np.append(np.diff(self.scores), 0.0)
        inside = (share * (1 - share))[..., 0]
        inside[inside <= 1e-12] = np.inf
        largest = differences.max(-1) / inside
        areas = differences @ steps / inside
        differences *= differences
        weights = 4 * np.diff(self.levels)
        return Gaps(largest, areas, scales * ((differences @ steps) @ weights))

    def coarser_places(self, cuts: int, scores: int) -> tuple[Integers, Integers]:
        """The band of each band, and the bin of each score, in a table with at most so many
        cuts and scores.
        """
        bands = len(self.counts)
        band_index = np.arange(bands)
        if bands > cuts + 1:
            band_index = band_index * (cuts + 1) // bands
        pooled = TwoSamples(self.scores, self.counts.sum(0), self.counts.sum(0))
        return band_index, bins(pooled, scores)

    def coarser(self, cuts: int, scores: int) -> BandTable:
        """The table with at most so many cuts and scores."""
        band_index, bin_index = self.coarser_places(cuts, scores)
        pooled = TwoSamples(self.scores, self.counts.sum(0), self.counts.sum(0))
        counts = np.zeros((band_index[-1] + 1, bin_index[-1] + 1))
        np.add.at(counts, (band_index[:, None], bin_index[None, :]), self.counts)
        rows = self.counts.sum(1)
        levels = np.bincount(band_index, rows * self.levels) / np.bincount(band_index, rows)
        return BandTable(counts, bin_means(pooled, bin_index), levels)

    def resampled(self, rows: float, resamples: int, generator: np.random.Generator) -> Resampled:
        """The root of the dependence in a table of fewer scores, in resamples of it, and with
        one row left out.
        """
        small = self.coarser(len(self.counts), _FEW_SCORES)
        rows = max(2, round(rows))
        draws = generator.multinomial(
            rows,
            (small.counts / small.counts.sum()).reshape(-1),
            size=resamples,
        )
        roots = small.roots(draws.astype(np.float64).reshape(-1, *small.counts.shape))
        few = self.coarser(len(self.counts), _FEWEST_SCORES)
        share = few.counts / few.counts.sum()
        used = np.argwhere(share > 0)
        without = np.zeros(0)
        at_once = max(1, _BLOCK // share.size)
        for start in range(0, len(used), at_once):
            some = used[start : start + at_once]
            remaining = np.repeat(share[None], len(some), axis=0)
            remaining[np.arange(len(some)), some[:, 0], some[:, 1]] -= 1 / rows
            without = np.append(without, few.roots(remaining))
        weight = share[used[:, 0], used[:, 1]]
        error = np.sqrt((rows - 1) * (weight @ (without - weight @ without) ** 2))
        return Resampled(float(small.roots(small.counts)), roots, float(error), rows)

    def roots(self, counts: Floats) -> Floats:
        """The roots of the dependence in tables (..., bands, scores)."""
        return np.asarray(np.sqrt(np.maximum(self.gaps(counts).energy, 0.0)))


class BandRows(NamedTuple):
    """Rows in clusters: band, score (its place) and amount of each, and the cluster, numbered
    from 0.
    """

    band: Integers
    score: Integers
    amount: Floats
    cluster: Integers

    @property
    def clusters(self) -> int:
        """The number of clusters."""
        return int(self.cluster.max()) + 1

    @property
    def effective(self) -> float:
        """The effective number of clusters of equal weight."""
        return effective_clusters(self.amount, self.cluster)

    def coarser(self, table: BandTable, cuts: int, scores: int) -> BandRows:
        """The rows in the places of the coarser table."""
        band_index, bin_index = table.coarser_places(cuts, scores)
        return self._replace(band=band_index[self.band], score=bin_index[self.score])

    def _at_once(self, table: BandTable) -> int:
        """The number of tables and of multipliers of all clusters that are in memory at once."""
        return max(1, _BLOCK // max(table.counts.size, self.clusters))

    def tables(self, table: BandTable, multipliers: Sequence[Floats]) -> Floats:
        """Tables (some, bands, scores) of the rows, times one multiplier for each cluster."""
        shape = table.counts.shape
        cell = self.band * shape[1] + self.score
        sums = (
            np.bincount(cell, self.amount * by[self.cluster], shape[0] * shape[1])
            for by in multipliers
        )
        return np.stack([one.reshape(shape) for one in sums])

    def resampled(
        self, table: BandTable, resamples: int, generator: np.random.Generator
    ) -> Resampled:
        """As ``BandTable.resampled``, where clusters are drawn and left out; of many, a group
        of them at a time.
        """
        small = table.coarser(len(table.counts), _FEW_SCORES)
        rows = self.coarser(table, len(table.counts), _FEW_SCORES)
        at_once = self._at_once(small)
        roots = np.zeros(0)
        without = np.zeros(0)
        for start in range(0, resamples, at_once):
            some = min(at_once, resamples - start)
            drawn = generator.integers(self.clusters, size=(some, self.clusters))
            times = [np.bincount(one, minlength=self.clusters).astype(np.float64) for one in drawn]
            roots = np.append(roots, small.roots(rows.tables(small, times)))
        groups = min(self.clusters, _MOST_LEFT_OUT)
        group = np.arange(self.clusters) % groups
        for start in range(0, groups, at_once):
            kept = [
                (group != number).astype(np.float64)
                for number in range(start, min(start + at_once, groups))
            ]
            without = np.append(without, small.roots(rows.tables(small, kept)))
        error = np.sqrt((groups - 1) / groups * ((without - without.mean()) ** 2).sum())
        return Resampled(
            float(small.roots(small.counts)),
            roots,
            float(error),
            max(2, round(self.effective)),
        )

    def p_values(
        self, table: BandTable, draws: int, generator: np.random.Generator
    ) -> dict[str, float]:
        """The p-value of "scores do not depend on the attribute", by random signs of whole
        clusters.

        To first order C - F G is a sum over the rows, which has mean 0 then. Rows of a cluster have
        one random sign (the wild bootstrap of clusters), so that they may depend on each other, and
        their values of the attribute may differ. The worst cut is searched every time.
        """
        used = table.coarser(len(table.counts), _MORE_SCORES)
        rows = self.coarser(table, len(table.counts), _MORE_SCORES)
        observed = {metric: float(used.gaps().worst(metric)) for metric in BAND_METRICS}
        beyond = dict.fromkeys(BAND_METRICS, 1)
        at_once = self._at_once(used)
        for start in range(0, draws, at_once):
            signs = (
                generator.integers(2, size=(min(at_once, draws - start), self.clusters)) * 2.0 - 1
            )
            gaps = used.gaps_of_noise(rows.tables(used, list(signs)))
            for metric in BAND_METRICS:
                beyond[metric] += int((gaps.worst(metric) >= observed[metric] * (1 - 1e-9)).sum())
        return {metric: times / (1 + draws) for metric, times in beyond.items()}


class Resampled(NamedTuple):
    """Roots of a dependence."""

    observed: float  # of the rows
    resamples: Floats
    error: float  # by leaving one row, or one cluster, out at a time (the jackknife)
    rows: int  # or clusters

    def interval(self, value: float, *, confidence: float, is_noise: bool) -> Interval:
        """An interval of the dependence, on the scale of its root; it begins at 0 if the dependence
        may be noise.

        Resamples depend more on the attribute than the sample does, and the sample more than the
        population: this bias is subtracted from the lower end. The larger one of two standard
        errors is used: that of the bootstrap is too small if rows are few or the dependence is
        weak.
        """
        root = np.sqrt(max(value, 0.0))
        bias = max(0.0, float(self.resamples.mean()) - self.observed)
        error = max(self.error, float(self.resamples.std(ddof=1)))
        margin = student_quantile(self.rows - 1, (1 + confidence) / 2) * error
        low = max(0.0, root - bias - margin)
        high = root + margin
        if is_noise:
            low = 0.0
            high = max(high, float(np.quantile(self.resamples, confidence)))
        return Interval(float(min(value, low**2)), float(max(value, high**2)))


def p_values(
    table: BandTable,
    rows: int,
    permutations: int,
    generator: np.random.Generator,
) -> dict[str, float]:
    """The p-value of permuted attributes with the same scores; the worst cut is searched every
    time.
    """
    used = table.coarser(
        *(len(table.counts), _MORE_SCORES) if rows <= _SHUFFLED else (_FEW_CUTS, _FEW_SCORES)
    )
    observed = {metric: float(used.gaps().worst(metric)) for metric in BAND_METRICS}
    # including the observed attribute
    beyond = dict.fromkeys(BAND_METRICS, 1)
    done = 1
    for tables in _permuted(used.counts, permutations, generator, shuffled=rows <= _SHUFFLED):
        gaps = used.gaps(tables)
        done += len(tables)
        for metric in BAND_METRICS:
            beyond[metric] += int((gaps.worst(metric) >= observed[metric] * (1 - 1e-9)).sum())
    return {metric: times / done for metric, times in beyond.items()}


def _permuted(
    counts: Floats,
    draws: int,
    generator: np.random.Generator,
    *,
    shuffled: bool,
) -> Iterator[Floats]:
    """Tables with the same margins, several at a time: (some, bands, scores)."""
    bands, scores = counts.shape
    rows = np.rint(counts).astype(np.int64)
    band, score = (
        np.repeat(place, rows.reshape(-1)) for place in np.indices(counts.shape).reshape(2, -1)
    )
    at_once = max(1, _BLOCK // counts.size)
    for start in range(0, draws, at_once):
        tables = []
        for _ in range(min(at_once, draws - start)):
            if shuffled:
                cell = generator.permutation(band) * scores + score
                tables.append(np.bincount(cell, minlength=counts.size).reshape(bands, scores))
                continue
            remaining = rows.sum(0)
            table = np.zeros_like(rows)
            for place, size in enumerate(rows.sum(1)[:-1]):
                table[place] = generator.multivariate_hypergeometric(
                    remaining, size, method="marginals"
                )
                remaining = remaining - table[place]
            table[-1] = remaining
            tables.append(table)
        yield np.stack(tables).astype(np.float64)
