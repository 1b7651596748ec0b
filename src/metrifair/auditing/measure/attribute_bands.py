"""The units of a part of an audit in bands of a number, and the cuts between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.measure.band_tables import BandRows, BandTable
from metrifair.auditing.measure.counted_scores import CountedScores
from metrifair.auditing.measure.parts import Part
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.measure.two_samples import TwoSamples, bin_means, bins
from metrifair.figures.clusters import count_clusters, numbered_by_content
from metrifair.problem.bands import candidate_cuts
from metrifair.problem.cells import rows_by_cell
from metrifair.problem.values import number_name
from metrifair.support.arrays import Booleans, Floats, Integers, distinct_codes
from metrifair.support.checks import rows_or_none

MOST_BAND_SCORES = 1024  # distinct scores in the table


_TAIL = np.array([0.0005, 0.001, 0.002, 0.005, 0.01, 0.02])
# of the rows, at whose ends resampling cuts
_SHARES = np.concatenate([_TAIL, np.arange(1, 20) / 20, 1 - _TAIL[::-1]])


class Bands(NamedTuple):
    """The units of a part whose attribute is known, their values, and the bands of these values."""

    part: Part
    units: Integers
    values: Floats
    band: Integers
    cuts: Floats  # each is the largest value in its band; the last band has none
    attribute: str
    amounts: Floats | None  # rows or weight of each unit; None: one row
    clusters: Integers | None  # of the units; None: rows are independent

    @classmethod
    def of(cls, sample: AuditSample, part: Part, place: int, min_group_size: int) -> Bands:
        """The bands of the attribute at this place; without any cut if all values are equal.

        Cuts need ``min_group_size`` rows on both sides, unless none has enough.
        """
        problem = sample.problem
        attribute = sample.problem.scheme.attributes[place]
        units = part.units[problem.groups[part.units, place] >= 0]
        rows = rows_or_none(sample.units.rows, units)
        amounts = rows
        if sample.units.weight is not None:
            amounts = sample.units.weight[units]
        amounts = None if amounts is None else amounts.astype(np.float64)
        clusters = rows_or_none(problem.clusters, units)
        if problem.numbers is None:
            raise ValueError("the problem has no numbers")
        values = problem.numbers[units, place]
        cuts = np.zeros(0)
        if len(units):
            cuts = candidate_cuts(values, amounts)
        band = np.searchsorted(cuts, values)
        upto = np.cumsum(np.bincount(band, rows, len(cuts) + 1))
        sides_of_cuts = upto[:-1], upto[-1] - upto[:-1]
        if clusters is not None:
            sides_of_cuts = _clusters_by_cut(band, clusters, len(cuts) + 1)
        cuts = cuts[_large_sides(*sides_of_cuts, min_group_size)]
        return cls(
            part,
            units,
            values,
            np.searchsorted(cuts, values),
            cuts,
            attribute.name,
            amounts,
            clusters,
        )

    @property
    def size(self) -> int:
        """Number of bands."""
        return int(self.band.max()) + 1

    def levels(self) -> tuple[Floats, Floats]:
        """The rows, or weight, of each band, and the mean of the attribute in it."""
        rows = np.bincount(self.band, self.amounts, self.size).astype(np.float64)
        values = self.values
        if self.amounts is not None:
            values = self.values * self.amounts
        return rows, np.bincount(self.band, values, self.size) / rows

    def with_tails(self) -> Bands:
        """Bands of the number that are narrower at both ends: a few rows determine the spread
        of a heavy tail.
        """
        distinct, place = np.unique(self.values, return_inverse=True)
        upto = np.cumsum(np.bincount(place, self.amounts))
        at = np.unique(np.searchsorted(upto, _SHARES * upto[-1] * (1 - 1e-12)))
        cuts = distinct[at[at < len(distinct) - 1]]
        if not len(cuts):
            return self
        return self._replace(band=np.searchsorted(cuts, self.values), cuts=cuts)

    def by_value(self) -> tuple[Bands, Floats]:
        """A band for each value, and the values."""
        distinct, place = np.unique(self.values, return_inverse=True)
        return self._replace(band=place, cuts=distinct[:-1]), distinct

    def rows(self) -> list[Integers]:
        """The places of the units in each band."""
        return rows_by_cell(self.band, self.size)

    def counts(self, scores: CountedScores) -> Iterator[NDArray[Any]]:
        """The rows, or weight, of each band at each score."""
        for rows in self.rows():
            yield scores.at(self.units[rows])

    def below(self, cut: int) -> Booleans:
        """Mask of the units up to a cut."""
        return np.asarray(self.band <= cut)

    def sides(self, cut: int) -> tuple[str, str]:
        """The names of both sides of a cut."""
        name = number_name(self.cuts[cut])
        return f"≤{name}", f">{name}"

    def sizes(self, sample: AuditSample, cut: int) -> tuple[int, int]:
        """Rows on both sides of a cut."""
        below = self.below(cut)
        return sample.units.size(self.units[below]), sample.units.size(self.units[~below])

    def cluster_sizes(self, cut: int) -> tuple[int, int] | None:
        """Clusters on both sides of a cut; None: rows are independent."""
        if self.clusters is None:
            return None
        below = self.below(cut)
        return count_clusters(self.clusters[below]), count_clusters(self.clusters[~below])

    def rows_in_clusters(self) -> BandRows | None:
        """The rows with their clusters, in the table of ``band_table``; None if rows are
        independent.
        """
        if self.clusters is None or count_clusters(self.clusters) == len(self.units):
            return None
        score = table_scores(self).place[self.units]
        amount = np.ones(len(self.units))
        if self.amounts is not None:
            amount = self.amounts
        return BandRows(
            self.band,
            score,
            amount,
            numbered_by_content(self.clusters, score, self.band),
        )


def _large_sides(sizes: NDArray[Any], others: NDArray[Any], min_group_size: int) -> Integers:
    """The sides that have enough rows, or clusters, and leave enough on the other side; all
    sides if none does.
    """
    cuts = np.flatnonzero(np.minimum(sizes, others) >= min_group_size)
    if len(cuts):
        return cuts
    return np.arange(len(sizes))


def _clusters_by_cut(band: Integers, clusters: Integers, bands: int) -> tuple[Integers, Integers]:
    """The clusters with rows up to each cut, and above it."""
    cluster = distinct_codes(clusters)
    lowest = np.full(int(cluster.max(initial=-1)) + 1, bands)
    highest = np.full(int(cluster.max(initial=-1)) + 1, -1)
    np.minimum.at(lowest, cluster, band)
    np.maximum.at(highest, cluster, band)
    begun = np.cumsum(np.bincount(lowest, minlength=bands))[:-1]
    ended = np.cumsum(np.bincount(highest, minlength=bands))[:-1]
    return begun, len(lowest) - ended


def table_scores(bands: Bands) -> CountedScores:
    """The scores of a part, merged into fewer."""
    part_scores = bands.part.scores
    total = part_scores.at(bands.units).astype(np.float64)
    used = total > 0
    pooled = TwoSamples(part_scores.values[used], total[used], total[used])
    bin_index = np.zeros(len(used), np.int64)
    bin_index[used] = bins(pooled, MOST_BAND_SCORES)
    means = bin_means(pooled, bin_index[used])
    return replace(part_scores, values=means, place=bin_index[part_scores.place])


def band_table(bands: Bands, levels: Floats) -> BandTable:
    """The table of fewer scores."""
    binned = table_scores(bands)
    counts = np.stack([*bands.counts(binned)]).astype(np.float64)
    return BandTable(counts, binned.values, levels)
