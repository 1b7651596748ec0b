"""Counts of a search -> its claims, and the few groups that explain the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from metrifair.auditing.groups.counting import NONE, CountedGroups
from metrifair.auditing.groups.search_counts import ROWS_SUM, SEARCH_SUMS, TESTED_SUMS, SearchCounts
from metrifair.auditing.search_records import (
    Condition,
    GapLimit,
    ParentGroup,
    SearchRecord,
    SearchSettings,
    WorseGroup,
)
from metrifair.errors import DataError, Remedy
from metrifair.figures.gap_bounds import (
    ComparedSums,
    log_p_values,
    lower_gaps,
    range_level,
    upper_gaps,
)
from metrifair.figures.step_down import Spent, StepDown, level_shares, spent_by_tables, step_down
from metrifair.support.arrays import Booleans, Floats, Integers

MOST_LISTED = 12
_NEARLY_ALL = 0.95  # of a parent's rows: the condition hardly restricts it
_CANDIDATE_LEVEL = 0.05  # of search rows, for each group alone
_MOST_CANDIDATES = 100
_SIZES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)


@dataclass(frozen=True)
class GroupSums:
    """All groups of a search with the sums of one set of rows: those to test, or search rows."""

    groups: CountedGroups
    sums: Floats  # (groups, 2): weight and badness
    whole: Floats  # (2,): the same of all rows
    largest: float  # weight of a row or a cluster, among all rows
    is_exact: bool

    def against_others(self, places: Integers) -> ComparedSums:
        """Groups and all other rows."""
        return self._compared(places, self.whole, np.full(len(places), self.largest))

    def against_parents(self, places: Integers, parents: Integers) -> ComparedSums:
        """Groups and the other rows of one parent of each."""
        return self._compared(places, self.sums[parents], self.groups.largest[parents])

    def _compared(self, places: Integers, whole: Floats, largest: Floats) -> ComparedSums:
        """Groups and the other rows of a whole, with the largest weight of each."""
        sums = self.sums[places]
        others = whole - sums
        return ComparedSums(
            sums[:, 0],
            sums[:, 1],
            self.groups.largest[places],
            others[:, 0],
            others[:, 1],
            largest,
        )

    def log_p(self, places: Integers) -> Floats:
        """Of the hypotheses that groups are not worse than other rows."""
        return log_p_values(self.against_others(places), exact=self.is_exact)

    def parent_log_p(self, places: Integers) -> Floats:
        """Of the hypotheses that groups are not worse than one of their parents: the largest."""
        largest = np.full(len(places), -np.inf)
        for parents in self.groups.parents[places].T:
            with_parent = np.flatnonzero(parents != NONE)
            sides = self.against_parents(places[with_parent], parents[with_parent])
            log_p = log_p_values(sides, exact=self.is_exact)
            largest[with_parent] = np.maximum(largest[with_parent], log_p)
        return largest

    def spent(self, places: Integers) -> Spent:
        """What the tests of these groups spend of their levels."""
        if not self.is_exact:
            return lambda levels: levels
        rows, hits = np.rint(self.whole).astype(np.int64).tolist()
        return spent_by_tables(np.rint(self.sums[places, 0]).astype(np.int64), hits, rows)


class Claims(NamedTuple):
    """Groups that were tested, and what is shown of each."""

    places: Integers
    shown: StepDown
    at_least: Floats  # lower bounds of the gaps of those that are worse, else 0


@dataclass(frozen=True)
class GroupFinder:
    """The claims of one search, from its counts."""

    counts: SearchCounts

    @property
    def _groups(self) -> CountedGroups:
        return self.counts.groups

    @property
    def _settings(self) -> SearchSettings:
        return self.counts.settings

    def _sums(self, columns: slice) -> GroupSums:
        counts = self.counts
        return GroupSums(
            counts.groups,
            counts.groups.sums[:, columns],
            counts.whole[columns],
            counts.largest,
            counts.is_exact,
        )

    def record(self) -> SearchRecord:
        """Search, and describe what is shown."""
        groups = self._groups
        counts = self.counts
        if not len(groups):
            raise DataError(
                f"no group has {self._settings.min_rows:,} rows, and as many other rows",
                remedy=Remedy("min_rows", detail=", a smaller number, or pass other columns"),
            )
        tested = self._sums(TESTED_SUMS)
        searched = np.flatnonzero(~_repeats(groups))
        claims = self._claims(tested, self._candidates(searched))
        return SearchRecord(
            counts.outcome,
            counts.higher_is_worse,
            self._figure(tested.whole[1] / tested.whole[0]),
            int(counts.whole[ROWS_SUM]),
            len(searched),
            self._worse_groups(tested, claims),
            self._largest_gaps(tested, searched),
            [column.name for column in counts.columns],
            [column.name for column in counts.columns if column.conditions[0].is_protected],
            counts.settings,
            counts.is_exact,
            counts.weighted,
            counts.clusters,
            counts.search_rows,
            len(groups) - len(searched),
        )

    def _candidates(self, searched: Integers) -> Integers:
        """The groups to test: all, or the most striking ones of the search rows."""
        if self.counts.search_rows is None:
            return searched
        sums = self._sums(SEARCH_SUMS)
        present = searched[sums.sums[searched, 0] > 0]
        log_p = sums.log_p(present)
        order = np.argsort(log_p, kind="stable")[:_MOST_CANDIDATES]
        return np.sort(present[order[log_p[order] <= np.log(_CANDIDATE_LEVEL)]])

    def _claims(self, tested: GroupSums, places: Integers) -> Claims:
        if not len(places):
            none = np.zeros(0, dtype=bool)
            return Claims(places, StepDown(none, none, np.zeros(0)), np.zeros(0))
        whole_level = 1 - self._settings.confidence
        ranges = range_level(whole_level) if self.counts.is_exact else 0.0
        level = whole_level - ranges
        sides = tested.against_others(places)
        log_p = tested.log_p(places)
        total = tested.whole[0] / tested.largest
        shares = level_shares(np.maximum(sides.sizes, 1.0), max(total, 2.0), level)
        parent_log_p = np.zeros(len(places))
        promising = np.flatnonzero(log_p <= np.log(level))
        parent_log_p[promising] = tested.parent_log_p(places[promising])
        shown = step_down(log_p, parent_log_p, shares, level, tested.spent(places))
        at_least = np.zeros(len(places))
        worse = np.flatnonzero(shown.is_worse)
        bounds = lower_gaps(
            sides.at(worse),
            shown.bound_levels[worse],
            range_levels=ranges / len(places),
            exact=self.counts.is_exact,
        )
        at_least[worse] = np.maximum(bounds, 0.0)
        return Claims(places, shown, at_least)

    def _largest_gaps(self, tested: GroupSums, searched: Integers) -> list[GapLimit]:
        """Upper bounds of all gaps, by sizes of groups."""
        level = (1 - self._settings.confidence) / len(searched)
        ranges = range_level(level) if self.counts.is_exact else 0.0
        upper = upper_gaps(
            tested.against_others(searched),
            np.full(len(searched), level - ranges),
            range_levels=ranges,
            exact=self.counts.is_exact,
        )
        rows = tested.groups.sums[searched, ROWS_SUM]
        least = self._settings.min_rows
        return [
            GapLimit(size, float(upper[rows >= size].max()), int((rows >= size).sum()))
            for size in (least, *(size for size in _SIZES if size > least))
            if (rows >= size).any()
        ]

    def _figure(self, bad: float) -> float:
        """A mean badness as people read it: of selected rows, not of rejected ones."""
        return float(bad if self.counts.higher_is_worse else 1 - bad)

    @cached_property
    def _conditions(self) -> list[Condition]:
        return [condition for column in self.counts.columns for condition in column.conditions]

    def _worse_groups(self, tested: GroupSums, claims: Claims) -> list[WorseGroup]:
        """All groups that are worse, the largest lower bound first."""
        worse = np.flatnonzero(claims.shown.is_worse)
        sides = tested.against_others(claims.places)
        gaps = sides.means - sides.other_means
        order = worse[np.lexsort((-gaps[worse], -claims.at_least[worse]))]
        listed = self._listed(claims, order)
        groups = []
        for place in order.tolist():
            group = int(claims.places[place])
            groups.append(
                WorseGroup(
                    self._names(group),
                    int(tested.groups.sums[group, ROWS_SUM]),
                    self._figure(sides.means[place]),
                    self._figure(sides.other_means[place]),
                    float(gaps[place]),
                    float(claims.at_least[place]),
                    self._parents(tested, group),
                    bool(claims.shown.is_worse_than_parents[place]),
                    place in listed,
                )
            )
        return groups

    def _names(self, group: int) -> list[Condition]:
        numbers = self._groups.conditions[group]
        return [self._conditions[number] for number in numbers[numbers != NONE].tolist()]

    def _parents(self, tested: GroupSums, group: int) -> list[ParentGroup]:
        parents = self._groups.parents[group]
        result = []
        for parent in parents[parents != NONE].tolist():
            weight, bad = tested.sums[parent].tolist()
            rows = int(tested.groups.sums[parent, ROWS_SUM])
            result.append(ParentGroup(self._names(parent), rows, self._figure(bad / weight)))
        return result

    def _listed(self, claims: Claims, order: Integers) -> set[int]:
        """The few groups that explain the others.

        Those that are worse than each of their parents are listed, or all if there is none. A group
        that contains a listed one, or is within one, is not listed.
        """
        explains = claims.shown.is_worse_than_parents[order]
        ranked = (order[explains] if explains.any() else order).tolist()
        listed: dict[int, Mapping[int, frozenset[int]]] = {}
        for place in ranked:
            if len(listed) == MOST_LISTED:
                break
            levels = self._levels(int(claims.places[place]))
            nested = any(
                _is_within(levels, other) or _is_within(other, levels) for other in listed.values()
            )
            if not nested:
                listed[place] = levels
        return set(listed)

    @cached_property
    def _level_sets(self) -> list[tuple[int, frozenset[int]]]:
        """The column of each condition, and the levels that meet it."""
        return [
            (place, frozenset(np.flatnonzero(members).tolist()))
            for place, column in enumerate(self.counts.columns)
            for members in column.members
        ]

    def _levels(self, group: int) -> Mapping[int, frozenset[int]]:
        numbers = self._groups.conditions[group]
        return dict(self._level_sets[number] for number in numbers[numbers != NONE].tolist())


def _is_within(group: Mapping[int, frozenset[int]], other: Mapping[int, frozenset[int]]) -> bool:
    """Whether all rows of a group are rows of the other, by their conditions.

    >>> _is_within({0: frozenset({1}), 2: frozenset({0})}, {0: frozenset({1, 2})})
    True
    """
    return all(column in group and group[column] <= levels for column, levels in other.items())


def _repeats(groups: CountedGroups) -> Booleans:
    """Groups that have nearly all rows of a parent: testing both would test one claim twice."""
    rows = groups.sums[:, ROWS_SUM]
    repeats = np.zeros(len(rows), dtype=bool)
    for parents in groups.parents.T:
        with_parent = parents != NONE
        repeats[with_parent] |= rows[with_parent] > _NEARLY_ALL * rows[parents[with_parent]]
    return repeats
