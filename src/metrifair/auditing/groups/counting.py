"""All groups with enough rows, and the sums of each: rows are counted once for each set of columns,
never once for each group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from metrifair.auditing.groups.conditions import SearchedColumn
from metrifair.errors import DataError, Remedy
from metrifair.support.arrays import Booleans, Floats, Integers, distinct_codes

NONE = -1
MOST_GROUPS = 200_000
_MOST_CODES = 2**62


class CountedCells(NamedTuple):
    """Rows with the same codes in all columns, counted."""

    codes: Integers  # (cells, columns)
    sums: Floats  # (cells, quantities): the first one is the number of rows
    largest: Floats  # (cells,): the largest weight of a row or cluster


class CountedGroups(NamedTuple):
    """Groups, with their sums and their parents."""

    conditions: Integers  # (groups, most conditions): numbers of conditions, -1 at the end
    sums: Floats  # (groups, quantities)
    largest: Floats  # (groups,)
    # (groups, several): groups without one condition, or with a wider band of it; -1 for none
    parents: Integers

    def __len__(self) -> int:
        return len(self.sums)


def count_cells(
    columns: Sequence[SearchedColumn],
    quantities: Floats,
    largest: Floats,
) -> CountedCells:
    """Rows with the same codes, and their sums."""
    key = np.zeros(len(quantities), dtype=np.int64)
    distinct = 1
    for column in columns:
        levels = column.members.shape[1] + 1
        if distinct * levels > _MOST_CODES:
            key = distinct_codes(key)
            distinct = int(key.max(initial=0)) + 1
        key = key * levels + column.codes
        distinct = distinct * levels
    _, first, cell = np.unique(key, return_index=True, return_inverse=True)
    cell = cell.reshape(-1)
    sums = _sums(cell, quantities, len(first))
    codes = np.column_stack([column.codes[first] for column in columns])
    return CountedCells(codes, sums, _maxima(cell, largest, len(first)))


def count_groups(
    columns: Sequence[SearchedColumn], cells: CountedCells, *, max_conditions: int, min_rows: int
) -> CountedGroups:
    """All groups of up to so many conditions that have enough rows, with as many other rows.

    Groups with fewer conditions come first.
    """
    starts = np.cumsum([0, *(len(column.conditions) for column in columns)])
    index_of: dict[tuple[int, ...], Integers] = {}
    parts: list[CountedGroups] = []
    count = 0
    all_rows = cells.sums[:, 0].sum()
    for used in _sets_of_columns(len(columns), max_conditions):
        sums, largest = _table(
            columns,
            cells,
            used,
        )
        rows = sums[..., 0]
        enough = (rows >= min_rows) & (all_rows - rows >= min_rows)
        places = np.nonzero(enough)
        index = np.full(rows.shape, NONE)
        index[places] = count + np.arange(len(places[0]))
        index_of[used] = index
        conditions = np.full((len(places[0]), max_conditions), NONE)
        parents = np.full((len(places[0]), 3 * max_conditions), NONE)
        for axis, column in enumerate(used):
            conditions[:, axis] = starts[column] + places[axis]
            without = used[:axis] + used[axis + 1 :]
            before = places[:axis]
            after = places[axis + 1 :]
            if without:
                parents[:, 3 * axis] = index_of[without][before + after]
            for side, wider in enumerate(columns[column].wider[places[axis]].T):
                wider_index = index[(*before, wider, *after)]
                parents[:, 3 * axis + 1 + side] = np.where(wider == NONE, NONE, wider_index)
        parts.append(CountedGroups(conditions, sums[places], largest[places], parents))
        count += len(places[0])
        _check_count(count)
    return CountedGroups(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _sets_of_columns(
    columns: int,
    most: int,
) -> Iterator[tuple[int, ...]]:
    for size in range(1, min(columns, most) + 1):
        yield from combinations(range(columns), size)


def _table(
    columns: Sequence[SearchedColumn], cells: CountedCells, used: tuple[int, ...]
) -> tuple[Floats, Floats]:
    """The sums of all groups with one condition on each of these columns, and their largest
    weights.
    """
    shape = [columns[place].members.shape[1] + 1 for place in used]
    key = np.ravel_multi_index([cells.codes[:, place] for place in used], shape)
    size = int(np.prod(shape))
    sums = _sums(key, cells.sums, size).reshape(*shape, -1)
    largest = _maxima(key, cells.largest, size).reshape(shape)
    for axis, place in enumerate(used):
        members = columns[place].members
        levels = sums.take(range(members.shape[1]), axis=axis)
        sums = np.moveaxis(np.tensordot(members.astype(np.float64), levels, (1, axis)), 0, axis)
        largest = _largest_of_members(
            largest,
            members,
            axis,
        )
    return sums, largest


def _largest_of_members(
    largest: Floats,
    members: Booleans,
    axis: int,
) -> Floats:
    """The maxima over the levels of each condition."""
    parts = [largest.take(np.flatnonzero(row), axis=axis).max(axis) for row in members]
    return np.stack(parts, axis)


def _sums(
    key: Integers,
    quantities: Floats,
    size: int,
) -> Floats:
    parts = [np.bincount(key, column, minlength=size) for column in quantities.T]
    return np.column_stack(parts)


def _maxima(
    key: Integers,
    values: Floats,
    size: int,
) -> Floats:
    result = np.zeros(size)
    np.maximum.at(result, key, values)
    return result


def _check_count(count: int) -> None:
    if count > MOST_GROUPS:
        raise DataError(
            f"there are more than {MOST_GROUPS:,} groups to search",
            remedy=[
                Remedy("max_conditions", detail=", a smaller number"),
                Remedy("min_rows", detail=", a larger number"),
                "pass fewer columns",
            ],
        )
