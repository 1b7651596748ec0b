"""The pairs of groups that an audit compares, and the scores and rows of both sides."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from metrifair.auditing.measure.bins import Products
from metrifair.auditing.measure.cluster_errors import ClusterRows
from metrifair.auditing.measure.parts import Part, codes_in, members_in
from metrifair.auditing.measure.plug_in import shares
from metrifair.auditing.measure.resampling import Rows, SampleRows
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.measure.two_samples import TwoSamples
from metrifair.auditing.records import REST_NAME
from metrifair.auditing.request import MOST_PAIRED
from metrifair.figures.clusters import count_clusters
from metrifair.problem.cells import Attribute, Contrast
from metrifair.problem.problem import Problem
from metrifair.problem.values import Value, canonical_values
from metrifair.support.arrays import Booleans, Integers, distinct_codes
from metrifair.support.checks import rows_or_none


@dataclass(frozen=True, eq=False)
class GroupPair:
    """Two groups, or one and the rest, within a part.

    Units are computed on demand: there may be many.
    """

    problem: Problem
    part: Part
    place: int  # of the attribute
    left: int
    right: int | None  # None: the rest
    sizes: tuple[int, int]  # rows of both sides
    group_values: tuple[Value, Value]  # canonical; None: the rest
    # whether a side has only groups whose name says that they are not known
    unknown_name: bool = False
    clusters: tuple[int, int] | None = None  # of both sides; None: rows are independent

    @property
    def attribute(self) -> Attribute:
        """The attribute whose groups are compared."""
        return self.problem.scheme.attributes[self.place]

    @property
    def groups(self) -> tuple[str, str]:
        """The names of both sides."""
        names = self.attribute.groups
        return str(names[self.left]), REST_NAME if self.right is None else str(names[self.right])

    @property
    def sides(self) -> tuple[Integers, Integers]:
        """The units of both sides."""
        units = self.part.units
        codes = codes_in(self.problem, self.part.units, self.place)
        right = (codes >= 0) & (codes != self.left) if self.right is None else codes == self.right
        return units[codes == self.left], units[right]

    def two_samples(
        self, sides: tuple[Integers, Integers], products: Products | None = None
    ) -> tuple[TwoSamples, SampleRows]:
        """The scores of both sides; and their rows, if they have clusters, weights in memory,
        or ``products``.
        """
        scores = self.part.scores
        left, right = (scores.at(units) for units in sides)
        used = (left > 0) | (right > 0)
        samples = TwoSamples(
            *(part[used].astype(np.float64) for part in (scores.values, left, right))
        )
        if products is not None:
            return samples, self._rows_in_bins(samples, used, sides, products)
        if self.problem.clusters is not None:
            in_clusters = self._rows_in_clusters(self.problem.clusters, used, sides)
            if in_clusters is not None:
                return samples, in_clusters
        if scores.amount is None or scores.starts is not None:
            return samples, None
        units = np.concatenate(sides)
        place = np.cumsum(used) - 1
        members = self.problem.members
        on_left = np.arange(len(units)) < len(sides[0])
        amount = scores.amount[units]
        at = place[scores.place[units]]
        left = amount * on_left
        right = amount * ~on_left
        if members is not None:  # a row may be on both sides
            row = members.row[units]
            count = len(members.rows.values)
            left, right = (
                np.bincount(row, side, count).astype(np.float64) for side in (left, right)
            )
            compared = np.flatnonzero(left + right)
            at_row = np.zeros(count, np.int64)
            at_row[row] = at
            at = at_row[compared]
            left = left[compared]
            right = right[compared]
        return samples, Rows.single(at, left, right)

    def _rows_in_clusters(
        self,
        clusters: Integers,
        used: Booleans,
        sides: tuple[Integers, Integers],
    ) -> ClusterRows | None:
        """The rows of both sides with their clusters; None if each is a cluster of its own here."""
        units = np.concatenate(sides)
        scores = self.part.scores
        if count_clusters(clusters[units]) == len(units):
            return None
        place = (np.cumsum(used) - 1)[scores.place[units]]
        on_left = np.arange(len(units)) < len(sides[0])
        amount = np.ones(len(units))
        if scores.amount is not None:
            amount = scores.amount[units]
        return ClusterRows.of(place, clusters[units], amount * on_left, amount * ~on_left)

    def _rows_in_bins(
        self,
        samples: TwoSamples,
        used: Booleans,
        sides: tuple[Integers, Integers],
        products: Products,
    ) -> Rows:
        """One entry for each of the ``used`` bins."""
        rest = {*range(len(self.attribute.groups))} - {self.left}
        groups = {self.left}, rest if self.right is None else {self.right}
        totals = [side.sum() for side in samples[1:]]
        sums = (
            products.at(sides[first], groups[second], len(used))[used]
            / totals[first]
            / totals[second]
            for first, second in ((0, 0), (1, 1), (0, 1))
        )
        return Rows(np.arange(len(samples.values)), *map(shares, samples[1:]), *sums)


def group_pairs(sample: AuditSample, part: Part, contrast: Contrast) -> list[GroupPair]:
    """All comparisons of all attributes' groups within a part."""
    comparisons = []
    for place, attribute in enumerate(sample.problem.scheme.attributes):
        if attribute.cuts:  # its worst cut is searched
            continue
        units, codes, present = members_in(sample.problem, part.units, place)
        size = np.rint(
            np.bincount(
                codes,
                rows_or_none(sample.units.rows, units),
            )
        ).astype(np.int64)
        paired = len(present) <= 2 or (contrast == "pairs" and len(attribute.groups) <= MOST_PAIRED)
        pairs = combinations(present, 2) if paired else product(present, [None])
        values = canonical_values(attribute.values)
        unknown = sample.unknown_names[attribute.name]
        clusters = ClustersOfGroups.of(sample.problem.clusters, units, codes)
        for left, right in pairs:
            others = [code for code in present if code != left]
            value = None
            if right is not None:
                others = [right]
                value = values[right]
            comparisons.append(
                GroupPair(
                    sample.problem,
                    part,
                    place,
                    left,
                    right,
                    (int(size[left]), int(size[others].sum())),
                    (values[left], value),
                    unknown_name=bool(unknown[left] or unknown[others].all()),
                    clusters=None if clusters is None else clusters.sizes(left, right),
                )
            )
    return comparisons


class ClustersOfGroups(NamedTuple):
    """The number of clusters with rows of each group, and with rows of no other group."""

    total: int
    members: Integers  # (groups,)
    only: Integers  # (groups,)

    @classmethod
    def of(
        cls, clusters: Integers | None, units: Integers, codes: Integers
    ) -> ClustersOfGroups | None:
        """The clusters of units with these groups; None without clusters."""
        if clusters is None or not len(units):
            return None
        distinct = np.unique(np.stack([codes, clusters[units]]), axis=1)
        cluster = distinct_codes(distinct[1])
        alone = np.bincount(cluster)[cluster] == 1
        groups = int(codes.max()) + 1
        members = np.bincount(distinct[0], minlength=groups)
        only = np.bincount(distinct[0][alone], minlength=groups)
        return cls(int(cluster.max()) + 1, members, only)

    def sizes(self, left: int, right: int | None) -> tuple[int, int]:
        """The clusters with rows of a group, and of another one, or of any other one (None)."""
        others = self.total - self.only[left] if right is None else self.members[right]
        return int(self.members[left]), int(others)
