"""Counts that can be released: on a public grid of scores, without small cells, which no total
reveals.

A cell is a combination that the audit compares: a group, a stratum and a label. All rows of a group
with a small cell are withheld from every table, and their number is rounded up: no total reveals
them. Each score is first replaced by its cell of a public grid, which depends neither on the other
rows nor on the threshold. Therefore, no series of releases reveals more of a score than its grid
cell. Neighboring grid cells are then merged, as halves of the same interval, until each count has
the minimum number of rows. The counts of a larger minimum are sums of those of a smaller one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.measure.selection import number_or_default
from metrifair.auditing.records import GridError
from metrifair.auditing.sources.state_counts import StateCounts, StateGrid
from metrifair.auditing.sources.state_parts import (
    Shape,
    StateParts,
    StateValue,
    sort_key,
)
from metrifair.errors import DataError
from metrifair.support.arrays import Booleans, Floats, Integers, sums_upto

CellKey: TypeAlias = tuple[StateValue, ...]
Ends: TypeAlias = tuple[float, float]
"""The interval of scores that are counted together: with its lower end, without its upper end."""

_LEVELS = 8  # the range of the scores has at most 2^8 grid cells
_SMALLEST = -1000  # width of a grid cell as a power of two
_FEWEST_GROUPS = 2  # of an attribute: fewer cannot be compared
_HIDING = 4  # times the minimum: so many rows of small groups hide each other
_STEPS = 50  # of the estimate of a distribution
_DIGITS = 9
_UNRESOLVED = 0.5  # share of a group's rows whose decision the grid does not determine


class PublicGrid(NamedTuple):
    """Intervals of equal width, a power of two, that begin at multiples of the width.

    Grids of other ranges have the same ends, or every second, fourth, ... of them.
    """

    width: float
    first: int  # the number of the first interval of the tree
    low: int  # the numbers of the first and the last interval of the range
    high: int
    ends: Ends  # of the range

    @classmethod
    def between(cls, low: float, high: float) -> PublicGrid:
        """The grid of a range.

        >>> PublicGrid.between(0.0, 1.0).width * 256, PublicGrid.between(300.0, 850.0).width
        (1.0, 4.0)
        """
        width = math.ldexp(1.0, max(_SMALLEST, math.ceil(math.log2(high - low)) - _LEVELS))
        numbers = math.floor(low / width), math.ceil(high / width) - 1
        block = 2**_LEVELS
        return cls(width, numbers[0] // block * block, *numbers, (low, high))

    @property
    def leaves(self) -> int:
        """The number of intervals of the tree, a power of two; those beyond the range are empty."""
        return 1 << (_LEVELS + 1)

    def leaf(self, scores: Floats) -> Integers:
        """The place of each score's interval in the tree; the end of the range is in the last one.

        >>> PublicGrid.between(0.0, 1.0).leaf(np.array([0.0, 0.5, 1.0]))
        array([  0, 128, 255])
        """
        number = np.clip(np.floor(scores / self.width), self.low, self.high)
        return np.asarray(number.astype(np.int64) - self.first)

    def point(self, leaf: Integers) -> Floats:
        """The score that represents an interval: its middle; for the first and the last one,
        the end of the range.
        """
        number = leaf + self.first
        with np.errstate(over="ignore"):  # of intervals beyond the range
            middle = (number + 0.5) * self.width
        point = np.where(
            number <= self.low,
            self.ends[0],
            np.where(number >= self.high, self.ends[1], middle),
        )
        return np.asarray(point, np.float64)

    def interval(self, start: int, stop: int) -> Ends:
        """The scores in the intervals from ``start`` up to, but not including, ``stop``."""
        return (start + self.first) * self.width, (stop + self.first) * self.width


@dataclass(frozen=True)
class Release:
    """What is released: a table of counts for all attributes jointly, or one for each attribute."""

    tables: Sequence[StateParts]
    grid: Sequence[Sequence[Ends]]  # the interval of each entry, by table; none without a minimum
    # groups by column, with their strata
    suppressed: dict[str, list[StateValue]] = field(default_factory=dict)


def released_counts(
    parts: StateParts, min_cell: int, score_digits: int | None, *, joint: bool
) -> Release:
    """The counts that are released; ``joint`` ones are cells of all attributes together, the
    others of each alone.
    """
    if min_cell == 1 or parts.shape is None or parts.counts is None:
        return Release(
            [parts if score_digits is None else with_rounded_scores(parts, score_digits)],
            [],
        )
    rows = _GridRows.of(parts, parts.shape, parts.counts)
    places = _table_places(parts.shape, joint=joint)
    everything = np.ones(len(rows.cells), bool)
    kept = _kept_cells(rows, places, min_cell, everything)
    return _release(parts, rows, places, kept, (min_cell, score_digits))


def _table_places(shape: Shape, *, joint: bool) -> list[tuple[int, ...]]:
    """The attributes of each table: all of them, or one each."""
    groups = len(shape.groups)
    if joint:
        return [tuple(range(groups))]
    return [(place,) for place in range(groups)]


def released_together(
    scorings: Sequence[StateParts], min_cell: int, *, joint: bool
) -> list[Release]:
    """The counts that are released of several scorings of the same rows, all on the public grid.

    The first control of the rows is their fold. Groups that one scoring would have to withhold in
    one fold are withheld from all scorings and folds. Otherwise, their number of rows would be the
    difference of two totals, as all folds have about as many rows.
    """
    shape = scorings[0].shape
    assert shape is not None
    places = _table_places(shape, joint=joint)
    counted = [
        _GridRows.of(parts, shape, parts.counts) for parts in scorings if parts.counts is not None
    ]
    is_kept = np.ones(len(counted[0].cells), bool)
    while True:
        kept = [_kept_cells(rows, places, min_cell, is_kept) for rows in counted]
        by_all = np.logical_and.reduce([cells for cells, _ in kept])
        by_all &= ~_in_other_folds(counted[0], places, ~by_all)
        if (by_all == is_kept).all():
            break
        is_kept = by_all
    return [
        _release(parts, rows, places, found, (min_cell, None))
        for parts, rows, found in zip(scorings, counted, kept, strict=True)
    ]


def _in_other_folds(
    rows: _GridRows, places: Sequence[tuple[int, ...]], withheld: Booleans
) -> Booleans:
    """The cells of groups and strata that are withheld as a whole in some fold."""
    found = np.zeros(len(rows.cells), bool)
    for table_places in places:
        fold = len(table_places)
        units = rows.units(table_places)
        kept = {unit for unit, lost in zip(units, withheld.tolist(), strict=True) if not lost}
        lost_anywhere = {(*unit[:fold], *unit[fold + 1 :]) for unit in units if unit not in kept}
        found |= np.array([(*unit[:fold], *unit[fold + 1 :]) in lost_anywhere for unit in units])
    return found


def _release(
    parts: StateParts,
    rows: _GridRows,
    places: Sequence[tuple[int, ...]],
    kept: tuple[Booleans, Sequence[_Nodes]],
    options: tuple[int, int | None],
) -> Release:
    """The tables of the cells that are kept, in their intervals.

    ``options`` are the minimum of a cell, and the digits of the scores.
    """
    is_kept, nodes = kept
    min_cell, score_digits = options
    released = [
        _table(parts, rows, is_kept, table_places, table_nodes)
        for table_places, table_nodes in zip(places, nodes, strict=True)
    ]
    suppressed = _suppressed_values(rows, places, is_kept)
    withheld = round_up(int(rows.size[~is_kept].sum()), min_cell)
    tables = []
    grid = []
    for table, ends in released:
        table.left_out = parts.left_out + withheld
        table.withheld = parts.withheld + withheld
        changed = table
        if score_digits is not None:
            changed = with_rounded_scores(table, score_digits)
        tables.append(changed)
        grid.append(_merged_ends(table, changed, ends))
    return Release(tables, grid, suppressed)


def round_up(rows: int, minimum: int) -> int:
    """The next power of two from ``rows`` and the minimum on; 0 stays 0.

    >>> round_up(0, 10), round_up(6, 10), round_up(70, 10)
    (0, 16, 128)
    """
    if rows == 0:
        return 0
    return 1 << (max(rows, minimum) - 1).bit_length()


class _GridRows(NamedTuple):
    """The counts of a state by cell and grid interval."""

    grid: PublicGrid
    shape: Shape
    cells: Sequence[CellKey]
    rows: Integers  # (cells, leaves)
    weight: Floats | None  # (cells, leaves)

    @classmethod
    def of(cls, parts: StateParts, shape: Shape, counts: StateCounts) -> _GridRows:
        """The counts on the public grid of the state's range."""
        grid = PublicGrid.between(*parts.score_range)
        # A bin of many scores is in the interval of its lower end, which does not depend on its
        # rows.
        bins = StateGrid.between(*parts.score_range)
        scores = counts.low if counts.exact else bins.lower_ends(counts.bin)
        place = counts.cell * grid.leaves + grid.leaf(scores)
        size = len(parts.cells), grid.leaves
        rows = np.bincount(place, counts.rows, size[0] * size[1]).astype(np.int64).reshape(size)
        weight: Floats | None = None
        if len(counts.weight):
            sums = np.bincount(place, counts.weight, size[0] * size[1])
            weight = sums.astype(np.float64).reshape(size)
        return cls(grid, shape, parts.cells, rows, weight)

    @property
    def size(self) -> Integers:
        """The number of rows of each cell."""
        return np.asarray(self.rows.sum(1))

    def keys(self, places: Sequence[int]) -> list[CellKey]:
        """The values of each cell in the attributes at these places, in the strata and in the
        label.
        """
        groups = len(self.shape.groups)
        return [(*(cell[place] for place in places), *cell[groups:]) for cell in self.cells]

    def units(self, places: Sequence[int]) -> list[CellKey]:
        """The groups and the stratum of each cell: what is released or withheld as a whole."""
        last = len(places) + len(self.shape.controls)
        return [key[:last] for key in self.keys(places)]

    def in_units(self, units: Sequence[CellKey], places: Sequence[int]) -> Booleans:
        """Which cells are in some groups and strata of the attributes at these places."""
        chosen = set(units)
        return np.array([unit in chosen for unit in self.units(places)], bool)


class _Node(NamedTuple):
    """An interval of the grid whose rows of one cell are counted together."""

    start: int
    stop: int

    @property
    def halves(self) -> tuple[_Node, _Node]:
        """The lower and the upper half."""
        middle = (self.start + self.stop) // 2
        return _Node(self.start, middle), _Node(middle, self.stop)


_Nodes: TypeAlias = dict[CellKey, list[_Node]]
"""The intervals of each cell of a table."""


def _kept_cells(
    rows: _GridRows, places: Sequence[tuple[int, ...]], min_cell: int, is_kept: Booleans
) -> tuple[Booleans, list[_Nodes]]:
    """Which of some cells are released, and the intervals of each cell of each table.

    Withholding a group takes rows from the cells of other attributes, so this repeats until no cell
    is small.
    """
    is_kept = is_kept.copy()
    smallest: _SmallCell | None = None
    while True:
        withheld = np.zeros(len(rows.cells), bool)
        nodes = []
        small = _small_cells(rows, places, is_kept, min_cell)
        for cell in small:
            withheld |= rows.in_units([cell.unit(rows.shape)], cell.places)
        if not small:
            for table_places in places:
                table_nodes, units = _table_nodes(
                    rows,
                    table_places,
                    is_kept,
                    min_cell,
                    linked=len(places) > 1,
                )
                nodes.append(table_nodes)
                withheld |= rows.in_units(units, table_places)
        if not withheld.any():
            return is_kept, nodes
        if smallest is None and small:
            smallest = min(
                small,
                key=lambda cell: (
                    cell.rows,
                    [sort_key(value) for value in cell.key],
                ),
            )
        is_kept &= ~withheld
        _check_groups(rows, is_kept, min_cell, smallest)


class _SmallCell(NamedTuple):
    """A cell with fewer rows than the minimum."""

    key: CellKey
    rows: int
    places: Sequence[int]  # of the attributes whose values are in the key

    def unit(self, shape: Shape) -> CellKey:
        """The groups and the stratum."""
        return self.key[: len(self.places) + len(shape.controls)]


def _small_cells(
    rows: _GridRows,
    places: Sequence[tuple[int, ...]],
    is_kept: Booleans,
    min_cell: int,
) -> list[_SmallCell]:
    """The cells with fewer rows than the minimum."""
    small = []
    for table_places in places:
        sizes: dict[CellKey, int] = defaultdict(int)
        for key, size, kept in zip(
            rows.keys(table_places),
            rows.size.tolist(),
            is_kept.tolist(),
            strict=True,
        ):
            sizes[key] += size if kept else 0
        small += [
            _SmallCell(key, size, table_places)
            for key, size in sizes.items()
            if 0 < size < min_cell
        ]
    return small


def _check_groups(
    rows: _GridRows,
    is_kept: Booleans,
    min_cell: int,
    smallest: _SmallCell | None,
) -> None:
    """Raise a DataError if an attribute has too few groups left."""
    for place, name in enumerate(rows.shape.groups):
        remaining = {
            cell[place] for cell, kept in zip(rows.cells, is_kept, strict=True) if kept
        } - {None}
        if len(remaining) >= _FEWEST_GROUPS:
            continue
        which = ""
        if smallest is not None:
            cell = _cell_text(smallest.key, rows.shape, smallest.places)
            which = f". The smallest is ({cell}), number of rows: {smallest.rows:,}"
        raise DataError(
            f"{min_cell} leaves too few groups of {name!r}: the others have smaller cells{which}",
            argument="min_cell",
            remedy="use fewer columns, merge small groups, or use a smaller minimum",
        )


def _cell_text(cell: CellKey, shape: Shape, places: Sequence[int]) -> str:
    """The values of a cell by column.

    >>> _cell_text(("f", None, 1), Shape(groups=("sex", "race"), label="y"), [0, 1])
    'sex=f, race missing, y=1'
    """
    label = []
    if shape.label is not None:
        label = [shape.label]
    names = [
        *(shape.groups[place] for place in places),
        *shape.controls,
        *label,
    ]
    pairs = zip(names, cell, strict=False)
    return ", ".join(
        f"{name} missing" if value is None else f"{name}={value}" for name, value in pairs
    )


def _table_nodes(
    rows: _GridRows,
    places: Sequence[int],
    is_kept: Booleans,
    min_cell: int,
    *,
    linked: bool,
) -> tuple[_Nodes, list[CellKey]]:
    """The intervals of each cell of a table; and the groups to withhold, which would make a larger
    group coarse.

    Tables are ``linked`` if other tables count the same rows: totals of all groups are then known.
    """
    counts: dict[CellKey, Integers] = {}
    for key, row, kept in zip(rows.keys(places), rows.rows, is_kept, strict=True):
        if kept:
            counts[key] = counts[key] + row if key in counts else row
    if not linked:
        return {key: _own_nodes(row, min_cell) for key, row in counts.items()}, []
    units = len(places) + len(rows.shape.controls)
    sets: dict[CellKey, list[CellKey]] = defaultdict(list)
    for key in counts:
        sets[key[len(places) :]].append(key)
    nodes: _Nodes = {}
    withheld: list[CellKey] = []
    for cells in sets.values():
        ordered = sorted(
            cells,
            key=lambda key: (
                int(counts[key].sum()),
                [sort_key(value) for value in key],
            ),
        )
        tree = _LinkedTree(np.array([counts[key] for key in ordered]), min_cell)
        found = tree.split(_Node(0, rows.grid.leaves), 0)
        withheld += [key[:units] for key in ordered[: tree.exposed]]
        nodes |= {ordered[at]: group_nodes for at, group_nodes in found.items()}
    return nodes, withheld


def _own_nodes(rows: Integers, minimum: int) -> list[_Node]:
    """The intervals of a cell: halves of halves, as long as each of them has no row or at least
    ``minimum`` rows.

    A half with fewer rows is merged into the interval beside it. Whether the other half is split
    does not depend on that, so that the ends of the intervals of a larger minimum are among those
    of a smaller one.

    >>> _own_nodes(np.array([10, 0, 3, 7]), 10)
    [_Node(start=0, stop=1), _Node(start=2, stop=4)]
    >>> _own_nodes(np.array([10, 11, 0, 7]), 10)
    [_Node(start=0, stop=1), _Node(start=1, stop=4)]
    """
    upto = sums_upto(rows)

    def split(node: _Node) -> list[_Node]:
        left, right = node.halves
        sizes = [int(upto[half.stop] - upto[half.start]) for half in (left, right)]
        if sizes[0] + sizes[1] == 0:
            return []
        if node.stop - node.start == 1 or 0 < max(sizes) < minimum:
            return [node]
        if all(_may_be_shown(size, minimum) for size in sizes):
            return [*split(left), *split(right)]
        larger, smaller = (left, right) if sizes[0] >= sizes[1] else (right, left)
        return _extended(split(larger), smaller)

    return split(_Node(0, len(rows)))


def _extended(nodes: Sequence[_Node], half: _Node) -> list[_Node]:
    """Neighboring intervals, the first or the last of which also contains the half beside them."""
    if half.start >= nodes[-1].stop:
        return [*nodes[:-1], _Node(nodes[-1].start, half.stop)]
    return [_Node(half.start, nodes[0].stop), *nodes[1:]]


def _may_be_shown(rows: int, minimum: int) -> bool:
    """Whether a count is none, or large enough."""
    return rows == 0 or rows >= minimum


class _LinkedTree:
    """The intervals of the groups of one attribute, whose total is known from another attribute.

    Groups are in ascending order of their rows. At each interval, the first of them are not cut in
    its middle: as many as are needed for the rest of the total to be none or at least the minimum
    in both halves. They count the half with fewer rows together with the interval beside it.
    """

    def __init__(self, rows: Integers, minimum: int) -> None:
        self.upto = np.concatenate(
            [np.zeros((len(rows), 1), np.int64), np.cumsum(rows, axis=1)],
            axis=1,
        )
        self.minimum = minimum
        self.exposed = 0  # so many groups at the beginning are too small to hide each other

    def split(self, node: _Node, uncut: int) -> dict[int, list[_Node]]:
        """The intervals of all groups but the first ``uncut`` ones, by the place of the group."""
        groups = range(uncut, len(self.upto))
        left, right = (self._rows(half) for half in node.halves)
        if node.stop - node.start == 1:
            return {at: [node] for at in groups if left[at] + right[at]}
        if not (left + right)[uncut:].any():
            return {}
        first = self._first_cut((left, right), uncut)
        if first > uncut:
            return self._split_with_uncut(node, uncut, first)
        of_left, of_right = (self.split(half, uncut) for half in node.halves)
        return {
            at: [*of_left.get(at, []), *of_right.get(at, [])]
            for at in groups
            if at in of_left or at in of_right
        }

    def _split_with_uncut(self, node: _Node, uncut: int, first: int) -> dict[int, list[_Node]]:
        """The intervals where the groups from ``uncut`` up to ``first`` are not cut in the
        middle of ``node``.
        """
        left, right = (self._rows(half) for half in node.halves)
        sparse, dense = node.halves if left.sum() < right.sum() else node.halves[::-1]
        in_dense = self._rows(dense)
        in_node = left + right
        stuck = [at for at in range(uncut, first) if 0 < in_dense[at] < self.minimum]
        whole = uncut
        if stuck:
            whole = stuck[-1] + 1
        is_exposed = in_node[:whole].sum() < _HIDING * self.minimum
        if is_exposed and node.stop - node.start >= 2**_LEVELS and whole < len(self.upto):
            self.exposed = max(self.exposed, whole)
        of_dense = self.split(dense, whole)
        of_sparse = self.split(sparse, first)
        nodes = {at: [node] for at in range(uncut, whole) if in_node[at]}
        for at in range(whole, first):
            if in_node[at]:
                nodes[at] = _extended(of_dense[at], sparse) if in_dense[at] else [sparse]
        for at in range(first, len(self.upto)):
            if in_node[at]:
                nodes[at] = sorted([*of_dense.get(at, []), *of_sparse.get(at, [])])
        return nodes

    def _rows(self, node: _Node) -> Integers:
        return np.asarray(self.upto[:, node.stop] - self.upto[:, node.start])

    def _first_cut(self, halves: Sequence[Integers], uncut: int) -> int:
        """The first group that is cut in the middle."""
        few = np.logical_or.reduce([(half > 0) & (half < self.minimum) for half in halves])
        few[:uncut] = False
        first = max(uncut, int(np.flatnonzero(few)[-1]) + 1 if few.any() else 0)
        while first < len(few) and not all(
            _may_be_shown(int(half[:first].sum()), self.minimum) for half in halves
        ):
            first += 1
        return first


def _table(
    parts: StateParts,
    rows: _GridRows,
    is_kept: Booleans,
    places: Sequence[int],
    nodes: _Nodes,
) -> tuple[StateParts, list[Ends]]:
    """The counts of a table, with the score of each interval; and the interval of each entry."""
    cells = sorted(nodes, key=lambda key: [sort_key(value) for value in key])
    number = {cell: at for at, cell in enumerate(cells)}
    of_row = np.array([number.get(key, -1) for key in rows.keys(places)])[is_kept]
    counts = _sums(rows.rows[is_kept], of_row, len(cells))
    spans = [(number[cell], node) for cell in cells for node in nodes[cell]]
    spans.sort()
    cell = np.array([at for at, _ in spans], np.int64)
    size = np.array(
        [counts[at, node.start : node.stop].sum() for at, node in spans],
        np.int64,
    )
    points = rows.grid.point(np.arange(rows.grid.leaves))
    leaves = [_mean_leaf(rows.grid, counts[at], points, node) for at, node in spans]
    weight = np.zeros(0)
    if rows.weight is not None:
        weights = _sums(rows.weight[is_kept], of_row, len(cells))
        weight = np.array([weights[at, node.start : node.stop].sum() for at, node in spans])
    scores = rows.grid.point(np.array(leaves, np.int64))
    result = copy(parts)
    result.shape = msgspec.structs.replace(
        rows.shape, groups=tuple(rows.shape.groups[place] for place in places)
    )
    result.cells = cells
    threshold = number_or_default(parts.threshold)
    amount = size if rows.weight is None else weight
    result.selected = np.bincount(cell, amount * (scores >= threshold), len(cells)).astype(
        np.float64
    )
    result.counts = _counts_at(parts, cell, scores, size, weight)
    return result, [rows.grid.interval(*node) for _, node in spans]


def _sums(amount: NDArray[Any], place: Integers, cells: int) -> NDArray[Any]:
    """Sums of the rows of an array by place."""
    sums = np.zeros((cells, amount.shape[1]), amount.dtype)
    np.add.at(sums, place, amount)
    return sums


def _mean_leaf(grid: PublicGrid, rows: Integers, points: Floats, node: _Node) -> int:
    """The grid interval that contains the mean of the rows, each at the score of its interval."""
    inside = slice(node.start, node.stop)
    mean = np.array([points[inside] @ rows[inside] / rows[inside].sum()])
    return int(np.clip(grid.leaf(mean)[0], node.start, node.stop - 1))


def _counts_at(
    parts: StateParts,
    cell: Integers,
    scores: Floats,
    rows: Integers,
    weight: Floats,
) -> StateCounts:
    """Entries of these cells at these scores."""
    grid = StateGrid.between(*parts.score_range)
    bins, within = grid.places(scores)
    moment = weight
    if len(weight):
        moment = weight * grid.scale.positions(scores)
    return StateCounts(
        cell,
        bins,
        scores,
        scores,
        rows,
        within * rows,
        weight,
        moment,
        exact=True,
    ).grouped()


def with_rounded_scores(parts: StateParts, digits: int) -> StateParts:
    """The same counts with scores rounded to ``digits`` after the decimal point; decisions do
    not change.
    """
    counts = parts.counts
    result = copy(parts)
    if counts is None:
        return parts
    scores = np.round(counts.low / 2 + counts.high / 2, digits) + 0.0
    result.counts = _counts_at(
        parts,
        counts.cell,
        np.clip(scores, *parts.score_range),
        counts.rows,
        counts.weight,
    )
    return result


def _merged_ends(table: StateParts, rounded: StateParts, ends: Sequence[Ends]) -> list[Ends]:
    """The intervals of the entries; rounding to few digits merges some."""
    if table.counts is None or rounded.counts is None or len(rounded.counts.cell) == len(ends):
        return list(ends)
    merged = list[Ends]()
    at = 0
    for rows, cell in zip(rounded.counts.rows.tolist(), rounded.counts.cell.tolist(), strict=True):
        first = at
        total = 0
        while total < rows and table.counts.cell[at] == cell:
            total += int(table.counts.rows[at])
            at += 1
        merged.append((ends[first][0], ends[at - 1][1]))
    return merged


def _suppressed_values(
    rows: _GridRows, places: Sequence[tuple[int, ...]], is_kept: Booleans
) -> dict[str, list[StateValue]]:
    """The groups whose rows are withheld because of their own cells, by attribute; with their
    strata.
    """
    suppressed: dict[str, list[StateValue]] = {}
    for table_places in places:
        units = rows.units(table_places)
        kept = {unit for unit, keep in zip(units, is_kept, strict=True) if keep}
        lost = sorted(
            set(units) - kept,
            key=lambda unit: [sort_key(value) for value in unit],
        )
        if lost:
            name = _unit_name(rows.shape, table_places)
            suppressed[name] = [_unit_value(unit) for unit in lost]
    return suppressed


def _unit_name(shape: Shape, places: Sequence[int]) -> str:
    """The columns of the groups and strata of a table, as text."""
    return ", ".join([*(shape.groups[place] for place in places), *shape.controls])


def _unit_value(unit: CellKey) -> StateValue:
    """The value of one column, or the values of several as text.

    >>> _unit_value((3,)), _unit_value(("f", None))
    (3, 'f, missing')
    """
    texts = ["missing" if value is None else str(value) for value in unit]
    if len(unit) == 1 and unit[0] is not None:
        return unit[0]
    return ", ".join(texts)


def joined(tables: Sequence[StateParts]) -> StateParts:
    """The tables of several attributes as one state for an audit: each row is in a cell of each
    table.
    """
    if len(tables) == 1:
        return tables[0]
    shapes = [table.shape for table in tables if table.shape is not None]
    result = copy(tables[0])
    groups = [name for shape in shapes for name in shape.groups]
    result.shape = msgspec.structs.replace(shapes[0], groups=tuple(groups))
    result.cells = []
    counted = []
    for place, table in enumerate(tables):
        blank: list[StateValue] = [None] * len(tables)
        first = len(result.cells)
        for cell in table.cells:
            groups_of_cell = [*blank]
            groups_of_cell[place] = cell[0]
            result.cells.append((*groups_of_cell, *cell[1:]))
        if table.counts is not None:
            counted.append(replace(table.counts, cell=table.counts.cell + first))
    result.table = np.repeat(np.arange(len(tables)), [len(table.cells) for table in tables])
    result.selected = np.concatenate([table.selected for table in tables])
    result.counts = reduce(StateCounts.merged, counted)
    return result


def grid_error(
    tables: Sequence[StateParts],
    grid: Sequence[Sequence[Ends]],
    threshold: float | None,
) -> GridError:
    """The largest differences between figures of the released scores and of the original ones."""
    error = GridError({}, {}, {})
    for table, ends in zip(tables, grid, strict=True):
        if table.counts is None or table.shape is None or not len(table.counts.rows):
            continue
        counts = table.counts
        name = ", ".join(table.shape.groups)
        amount = counts.weight if len(counts.weight) else counts.rows
        of_cell = np.bincount(counts.cell, amount, len(table.cells))
        largest = np.zeros(len(table.cells))
        np.maximum.at(largest, counts.cell, amount / of_cell[counts.cell])
        low, high = np.array(ends).T
        is_split = np.zeros(len(low), bool)
        if threshold is not None:
            is_split = (low < threshold) & (threshold < high)
        of_split = np.bincount(counts.cell, amount * is_split, len(table.cells))
        for group, inside in _cells_by_group(table, table.shape):
            share = float(of_split[inside].sum() / of_cell[inside].sum())
            error.distances.setdefault(name, {})[str(group)] = float(largest[inside].max())
            if share > 0:
                error.rates.setdefault(name, {})[str(group)] = share
            if share >= _UNRESOLVED:
                error.unresolved.setdefault(name, []).append(group)
    return error


def _cells_by_group(table: StateParts, shape: Shape) -> Iterator[tuple[StateValue, list[int]]]:
    """The groups of a table in ascending order, each with its cells; missing ones aside."""
    count = len(shape.groups)
    cells = defaultdict[CellKey, list[int]](list)
    for at, cell in enumerate(table.cells):
        if any(value is not None for value in cell[:count]):
            cells[cell[:count]].append(at)
    for unit in sorted(cells, key=lambda unit: [sort_key(value) for value in unit]):
        yield _unit_value(unit), cells[unit]


def spread(table: StateParts, ends: Sequence[Ends]) -> StateParts:
    """The counts for an audit: rows of an interval are spread over it as the rows of all groups
    are.

    Without this, a group that is counted in longer intervals than another one would seem to have
    other scores. Within an interval, this assumes no difference between groups. Strata and labels
    are spread by themselves.
    """
    counts = table.counts
    shape = table.shape
    if counts is None or shape is None:
        return table
    grid = PublicGrid.between(*table.score_range)
    groups = len(shape.groups)
    leaves = np.arange(grid.low, grid.high + 1) - grid.first
    low, high = (
        np.rint(np.array(side) / grid.width).astype(np.int64) - grid.first
        for side in zip(*ends, strict=True)
    )
    inside = (low[:, None] <= leaves) & (leaves < high[:, None])
    if not inside.any(1).all():
        raise DataError("the manifest lists intervals of scores beyond the range")
    spreads = np.zeros(inside.shape, np.int64)
    sets: dict[CellKey, list[int]] = defaultdict(list)
    for entry, cell in enumerate(counts.cell.tolist()):
        sets[table.cells[cell][groups:]].append(entry)
    for entries in sets.values():
        rows = counts.rows[entries]
        density = _pooled_density(rows, inside[entries])
        for entry in entries:
            spreads[entry] = _in_proportion(int(counts.rows[entry]), density * inside[entry])
    used, at = np.nonzero(spreads)
    rows = spreads[used, at]
    cell = counts.cell[used]
    result = copy(table)
    weight = counts.weight[used] * rows / counts.rows[used] if len(counts.weight) else counts.weight
    scores = grid.point(leaves[at])
    result.counts = _counts_at(table, cell, scores, rows, weight)
    amount = weight if len(weight) else rows
    is_selected = scores >= number_or_default(table.threshold)
    result.selected = np.bincount(cell, amount * is_selected, len(table.cells)).astype(np.float64)
    return result


def _pooled_density(rows: Integers, inside: Booleans) -> Floats:
    """The most likely distribution of all rows over the grid, given their number in intervals
    that may overlap.
    """
    density = inside.any(0) / inside.shape[1]
    for _ in range(_STEPS):
        expected = inside * density
        density = (rows / expected.sum(1)) @ expected / rows.sum()
    # the same on all processors, and never 0
    return np.asarray(np.round(density, _DIGITS) + 10.0**-_DIGITS)


def _in_proportion(rows: int, shares: Floats) -> Integers:
    """Whole numbers that add up to ``rows``, in these proportions.

    >>> _in_proportion(10, np.array([1.0, 0.0, 2.0]))
    array([3, 0, 7])
    """
    upto = np.cumsum(shares)
    return np.asarray(
        np.diff(
            np.floor(np.round(upto * (rows / upto[-1]), _DIGITS) + 0.5).astype(np.int64),
            prepend=0,
        )
    )


def without_groups(
    tables: Sequence[StateParts], groups: Mapping[str, Sequence[StateValue]]
) -> list[StateParts]:
    """The tables with some groups, by attribute, as missing ones: they are released, and not
    compared.
    """
    changed = []
    for table in tables:
        if table.shape is None:
            continue
        count = len(table.shape.groups)
        result = copy(table)
        hidden = groups.get(", ".join(table.shape.groups), ())
        blank: CellKey = (None,) * count
        result.cells = [
            (*blank, *cell[count:]) if _unit_value(cell[:count]) in hidden else cell
            for cell in table.cells
        ]
        changed.append(result)
    return changed
