"""How many rows lie in each band of an attribute and at each score: gaps, the dependence, and how sure one is of it.

With the joint distribution function C and its margins F (of scores) and G (of the attribute), the gap between people up
to a cut and above it is (C - F G) / (G (1 - G)), and the squared distance covariance 4 x the integral of (C - F G)^2
over both; of names the same with C and G of each group by itself, and twice the sum over groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from metrifair.auditing.distribution import TwoSamples, bin_means, bins
from metrifair.figures.intervals import Interval
from metrifair.support.arrays import Floats, Integers
from metrifair.support.special import student_quantile

METRICS = ("kolmogorov", "wasserstein", "energy")  # those that are read off the table
SCORES = 1024  # told apart in the table
_DEALT = 128  # scores told apart where the attribute is dealt anew
_SHUFFLED = 2**16  # rows up to which the attribute itself is dealt anew
_FEW_CUTS, _FEW_SCORES = 20, 64  # of the smaller table that more rows, and the bootstrap, are drawn in
_FEWEST_SCORES = 24  # where one row after the other is left out
_BLOCK = 2**20  # numbers in the tables that are held at once


class Gaps(NamedTuple):
    """Of tables (..., bands, scores): the distances at each cut (..., cuts), and the dependence (...)."""

    kolmogorov: Floats
    wasserstein: Floats
    energy: Floats  # the dependence

    def worst(self, metric: str) -> Floats:
        """What a finding says: the largest over all cuts, or the dependence."""
        found: Floats = getattr(self, metric)
        return found if metric == "energy" else found.max(-1)


@dataclass(frozen=True, eq=False)
class BandTable:
    """Rows, or weights, by bands of the attribute (ascending) and by score."""

    counts: Floats  # (bands, scores)
    scores: Floats  # (scores,)
    levels: Floats  # (bands,): the mean of the attribute in each
    named: bool = False  # bands are groups, in no order
    compared: Integers | None = None  # the groups whose gaps are looked for; None: all

    def scales(self, rows: Floats) -> Floats:
        """What makes energy distances of distance covariances, where rows (..., bands) lie in the bands."""
        share = rows / rows.sum(-1, keepdims=True)
        far = 1 - np.eye(len(self.levels)) if self.named else np.abs(self.levels[:, None] - self.levels)
        sums = share @ far
        mean, squared = (share * sums).sum(-1), (share * (share @ far**2)).sum(-1)
        variance = squared - 2 * (share * sums**2).sum(-1) + mean**2
        usable = (variance > 0) & (mean > 0)
        product = np.where(usable, variance * mean, 1.0)
        found: Floats = np.where(usable, 2 * squared / product, 0.0)
        return found

    def gaps(self, counts: Floats | None = None) -> Gaps:
        """Those of this table, or of others (..., bands, scores) with the same scores and levels."""
        counts = self.counts if counts is None else counts
        total = counts.sum((-2, -1), keepdims=True)
        below = np.cumsum(counts.sum(-2, keepdims=True), -1) / total
        sides = counts if self.named else np.cumsum(counts, -2)[..., :-1, :]
        joint = np.cumsum(sides, -1)
        joint /= total
        share = joint[..., -1:].copy()
        joint -= below * share
        apart, steps = np.abs(joint, out=joint), np.append(np.diff(self.scores), 0.0)
        inside = (share * (1 - share))[..., 0]
        inside[inside <= 1e-12] = np.inf
        gaps = [apart.max(-1) / inside, apart @ steps / inside]
        if self.compared is not None:
            gaps = [gap[..., self.compared] for gap in gaps]
        apart *= apart
        covariance = (apart @ steps) @ (np.full(len(self.levels), 2.0) if self.named else 4 * np.diff(self.levels))
        return Gaps(gaps[0], gaps[1], self.scales(counts.sum(-1)) * covariance)

    def coarser(self, cuts: int, scores: int) -> BandTable:
        """At most so many cuts and scores; groups stay as they are."""
        bands = len(self.counts)
        few = self.named or bands <= cuts + 1
        band_of = np.arange(bands) if few else np.arange(bands) * (cuts + 1) // bands
        both = TwoSamples(self.scores, self.counts.sum(0), self.counts.sum(0))
        bin_of = bins(both, scores)
        counts = np.zeros((band_of[-1] + 1, bin_of[-1] + 1))
        np.add.at(counts, (band_of[:, None], bin_of[None, :]), self.counts)
        rows = self.counts.sum(1)
        levels = np.bincount(band_of, rows * self.levels) / np.bincount(band_of, rows)
        return BandTable(counts, bin_means(both, bin_of), levels, self.named, self.compared)

    def resampled(self, rows: float, resamples: int, generator: np.random.Generator) -> Resampled:
        """The root of the dependence in a table of fewer scores, in resamples of it, and with one row left out."""
        small = self.coarser(len(self.counts), _FEW_SCORES)
        rows = max(2, round(rows))
        drawn = generator.multinomial(rows, (small.counts / small.counts.sum()).reshape(-1), size=resamples)
        roots = small.roots(drawn.astype(np.float64).reshape(-1, *small.counts.shape))
        few = self.coarser(len(self.counts), _FEWEST_SCORES)
        share = few.counts / few.counts.sum()
        used, without = np.argwhere(share > 0), np.zeros(0)
        at_once = max(1, _BLOCK // share.size)
        for start in range(0, len(used), at_once):
            some = used[start : start + at_once]
            left = np.repeat(share[None], len(some), axis=0)
            left[np.arange(len(some)), some[:, 0], some[:, 1]] -= 1 / rows
            without = np.append(without, few.roots(left))
        weight = share[used[:, 0], used[:, 1]]
        error = np.sqrt((rows - 1) * (weight @ (without - weight @ without) ** 2))
        return Resampled(float(small.roots(small.counts)), roots, float(error), rows)

    def roots(self, counts: Floats) -> Floats:
        """Those of the dependence in tables (..., bands, scores)."""
        found: Floats = np.sqrt(np.maximum(self.gaps(counts).energy, 0.0))
        return found


class Resampled(NamedTuple):
    """Roots of a dependence."""

    here: float  # of the rows that there are
    drawn: Floats  # of resamples
    error: float  # by leaving one row out at a time (the jackknife)
    rows: int

    def interval(self, value: float, *, confidence: float, by_chance: bool) -> Interval:
        """An interval of the dependence, on the scale of its root; from 0 on where chance shows as much.

        Resamples depend more on the attribute than the sample does, as this does than the population: so much is taken
        off its lower end. Of the two standard errors the larger one counts: that of the bootstrap is too small where
        rows are few or the dependence is weak.
        """
        root = np.sqrt(max(value, 0.0))
        bias = max(0.0, float(self.drawn.mean()) - self.here)
        error = max(self.error, float(self.drawn.std(ddof=1)))
        reach = student_quantile(self.rows - 1, (1 + confidence) / 2) * error
        low, high = max(0.0, root - bias - reach), root + reach
        if by_chance:
            low, high = 0.0, max(high, float(np.quantile(self.drawn, confidence)))
        return Interval(float(min(value, low**2)), float(max(value, high**2)))


def p_values(table: BandTable, rows: int, permutations: int, generator: np.random.Generator) -> dict[str, float]:
    """How often an attribute dealt anew to the same scores shows as much: the worst cut is looked for every time."""
    used = table.coarser(len(table.counts), _DEALT) if rows <= _SHUFFLED else table.coarser(_FEW_CUTS, _FEW_SCORES)
    seen = {metric: float(used.gaps().worst(metric)) for metric in METRICS}
    beyond, done = dict.fromkeys(METRICS, 1), 1  # the attribute as it is among them
    for drawn in _dealt(used.counts, permutations, generator, shuffled=rows <= _SHUFFLED):
        gaps = used.gaps(drawn)
        done += len(drawn)
        for metric in METRICS:
            beyond[metric] += int((gaps.worst(metric) >= seen[metric] * (1 - 1e-9)).sum())
    return {metric: times / done for metric, times in beyond.items()}


def _dealt(counts: Floats, draws: int, generator: np.random.Generator, *, shuffled: bool) -> Iterator[Floats]:
    """Tables with the same margins, several at a time: (some, bands, scores)."""
    bands, scores = counts.shape
    whole = np.rint(counts).astype(np.int64)
    band, score = (np.repeat(place, whole.reshape(-1)) for place in np.indices(counts.shape).reshape(2, -1))
    at_once = max(1, _BLOCK // counts.size)
    for start in range(0, draws, at_once):
        found = []
        for _ in range(min(at_once, draws - start)):
            if shuffled:
                cell = generator.permutation(band) * scores + score
                found.append(np.bincount(cell, minlength=counts.size).reshape(bands, scores))
                continue
            left, table = whole.sum(0), np.zeros_like(whole)
            for place, size in enumerate(whole.sum(1)[:-1]):
                table[place] = generator.multivariate_hypergeometric(left, size, method="marginals")
                left = left - table[place]
            table[-1] = left
            found.append(table)
        yield np.stack(found).astype(np.float64)
