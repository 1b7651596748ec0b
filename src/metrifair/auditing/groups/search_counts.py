"""Rows -> the counts of a search for groups: everything that its claims are computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from metrifair.auditing.groups.conditions import SearchedColumn, searched_columns
from metrifair.auditing.groups.counting import CountedGroups, count_cells, count_groups
from metrifair.auditing.groups.outcomes import OutcomeRows
from metrifair.auditing.search_records import Condition, SearchedOutcome, SearchSettings
from metrifair.support.arrays import Booleans, Floats, distinct_codes

# The quantities that are summed: rows, weight and badness, of tested and of search rows.
ROWS_SUM = 0
TESTED_SUMS = slice(1, 3)
SEARCH_SUMS = slice(3, 5)


class ConditionColumn(NamedTuple):
    """The conditions of a column, without its rows."""

    name: str
    conditions: Sequence[Condition]
    members: Booleans  # (conditions, levels): which levels meet each condition


@dataclass(frozen=True, eq=False)
class SearchCounts:
    """The groups of a search with their sums, and how they were counted."""

    outcome: SearchedOutcome
    higher_is_worse: bool
    settings: SearchSettings
    columns: Sequence[ConditionColumn]
    groups: CountedGroups
    whole: Floats  # (quantities,): the sums of all rows
    largest: float  # weight of a row or a cluster, among all rows
    is_exact: bool
    weighted: bool
    clusters: int | None  # None: rows are independent
    search_rows: int | None  # None: all rows select groups, and test them


def search_counts(
    rows: OutcomeRows,
    tables: Mapping[str, Any],
    *,
    protected: set[str],
    cuts: object,
    search_rows: Booleans | None,
    settings: SearchSettings,
) -> SearchCounts:
    """Count the rows of all groups of these columns."""
    columns = searched_columns(
        tables, rows.places, protected=protected, cuts=cuts, min_rows=settings.min_rows
    )
    quantities = _quantities(rows, search_rows)
    unit_weight = _unit_weight(rows)
    groups = count_groups(
        columns,
        count_cells(columns, quantities, unit_weight),
        max_conditions=settings.max_conditions,
        min_rows=settings.min_rows,
    )
    clusters = None
    if rows.clusters is not None:
        clusters = len(np.unique(rows.clusters))
    return SearchCounts(
        rows.outcome,
        rows.higher_is_worse,
        settings,
        [_without_rows(column) for column in columns],
        groups,
        quantities.sum(0),
        float(unit_weight.max()),
        rows.weight is None and rows.clusters is None and rows.is_binary,
        rows.weight is not None,
        clusters,
        None if search_rows is None else int(search_rows.sum()),
    )


def _without_rows(column: SearchedColumn) -> ConditionColumn:
    return ConditionColumn(column.name, column.conditions, column.members)


def _weight(rows: OutcomeRows) -> Floats:
    return np.ones(len(rows.bad)) if rows.weight is None else rows.weight


def _unit_weight(rows: OutcomeRows) -> Floats:
    """The weight of each row, or of its cluster."""
    weight = _weight(rows)
    if rows.clusters is None:
        return weight
    codes = distinct_codes(rows.clusters)
    return np.asarray(np.bincount(codes, weight)[codes], np.float64)


def _quantities(rows: OutcomeRows, search_rows: Booleans | None) -> Floats:
    """The values of each row that are summed by group."""
    weight = _weight(rows)
    tested = np.ones(len(weight), dtype=bool)
    if search_rows is not None:
        tested = ~search_rows
    parts = [tested]
    for used in (tested, ~tested):
        parts += [weight * used, weight * rows.bad * used]
    return np.column_stack(parts).astype(np.float64)
