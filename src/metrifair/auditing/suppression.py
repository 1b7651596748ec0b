"""Counts that can be released: without small cells, which no total reveals, and without scores of few rows.

A cell is a combination of groups, strata and label. Its selected rows and its other rows are counted separately. All
rows of a suppressed group move to the cells of rows with a missing group; all rows of a suppressed stratum are
withheld. Only sums of cells are released. Every sum with a suppressed cell has at least two cells and the minimum
number of rows: no equation has a single unknown. Within a cell, neighboring scores are merged up to the same minimum.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from copy import copy
from typing import TypeAlias, TypeVar

import numpy as np

from metrifair.auditing.bins import StateCounts, StateGrid
from metrifair.auditing.state_file import Shape, StateParts, Value, sort_key
from metrifair.errors import DataError
from metrifair.support.arrays import Booleans, Floats, Integers

Cell: TypeAlias = tuple[Value, ...]
State = TypeVar("State", bound=StateParts)

_WITHHELD: Cell = ()  # where the rows of a suppressed stratum go
_FEWEST_GROUPS = 2  # of an attribute: fewer cannot be compared
_ROUNDING = 1 + 1e-9  # of sums of weights


def without_small_cells(parts: State, min_cell: int) -> tuple[State, dict[str, list[Value]]]:
    """The counts without cells of fewer than ``min_cell`` rows; and the suppressed groups and strata, by column.

    A cell is also small if fewer of its rows, but some, are selected or are not selected.
    """
    shape, counts = parts.shape, parts.counts
    if shape is None or counts is None:
        return parts, {}
    rows = np.bincount(counts.cell, counts.rows, len(parts.cells)).astype(np.int64)
    sides = zip(parts.cells, _selected_rows(parts, counts).tolist(), rows.tolist(), strict=True)
    sizes = {
        (*cell, side): size
        for cell, selected, total in sides
        for side, size in ((True, selected), (False, total - selected))
        if size
    }
    suppressed = suppressed_values(sizes, shape, min_cell)
    released = [released_cell(cell, shape, suppressed) for cell in parts.cells]
    cells = sorted(set(released) - {_WITHHELD}, key=lambda cell: [sort_key(value) for value in cell])
    numbers = {cell: number for number, cell in enumerate(cells)}
    number = np.array([numbers.get(cell, -1) for cell in released], np.int64)
    is_released, result = number >= 0, copy(parts)
    withheld = int(rows[~is_released].sum())
    result.left_out, result.withheld = parts.left_out + withheld, parts.withheld + withheld
    result.selected = np.bincount(number[is_released], parts.selected[is_released], len(cells)).astype(np.float64)
    result.cells, result.counts = cells, counts.renumbered(number)
    return result, {column: sorted(values, key=sort_key) for column, values in suppressed.items() if values}


def _selected_rows(parts: StateParts, counts: StateCounts) -> Integers:
    """Number of selected rows of each cell; 1, which counts as few, where the threshold splits a bin."""
    if not len(counts.weight):
        return parts.selected.astype(np.int64)
    entries = _selected_entries(parts, counts)
    rows, weight = (
        np.bincount(counts.cell, amount * entries, len(parts.cells)) for amount in (counts.rows, counts.weight)
    )
    return np.where(parts.selected > weight * _ROUNDING, 1, rows).astype(np.int64)


def _selected_entries(parts: StateParts, counts: StateCounts) -> Booleans:
    """Mask of the entries of selected rows: the highest scores of each cell, as many as the cell selects."""
    amount = counts.weight if len(counts.weight) else counts.rows
    first = np.searchsorted(counts.cell, np.arange(1, len(parts.cells)))  # entries are in ascending order of cells
    # Each cell is summed alone: beside large weights of another cell, small ones would lose their digits.
    sums_above = [np.cumsum(of_cell[::-1])[::-1] for of_cell in np.split(amount, first)]
    return np.asarray(np.concatenate(sums_above) <= parts.selected[counts.cell] * _ROUNDING)


def with_merged_scores(parts: State, min_cell: int) -> State:
    """The same counts with neighboring scores of a cell merged into their mean, until it has ``min_cell`` rows.

    Scores of selected rows are merged only with one another, so that decisions do not change.
    """
    counts = parts.counts
    if counts is None or min_cell == 1:
        return parts
    part = 2 * counts.cell + _selected_entries(parts, counts)
    run = _runs(counts.rows, part, min_cell)
    # Rows count alike, even if they have weights: sums of whole numbers do not depend on the order of the rows.
    middle = counts.low / 2 + counts.high / 2
    mean = np.bincount(run, counts.rows * middle) / np.bincount(run, counts.rows)
    first = np.searchsorted(run, np.arange(len(mean)))
    ends = np.minimum.reduceat(middle, first), np.maximum.reduceat(middle, first)
    return _with_scores(parts, counts, np.clip(mean, *ends)[run])


def _runs(rows: Integers, part: Integers, minimum: int) -> Integers:
    """The run of each entry: neighbors of one part with at least ``minimum`` rows.

    A shorter run at the end of a part is merged into the run before it.

    >>> _runs(np.array([3, 9, 20, 4, 5]), np.array([0, 0, 0, 0, 1]), 10)
    array([0, 0, 1, 1, 2])
    """
    run, starts, size = np.zeros(len(rows), np.int64), list[int](), 0
    for at, count in enumerate(rows.tolist()):
        if at == 0 or size >= minimum or part[at] != part[at - 1]:
            starts.append(at)
            size = 0
        run[at] = len(starts) - 1
        size += count
    parts = part[starts]
    short = (np.bincount(run, rows) < minimum) & np.append(False, parts[1:] == parts[:-1])
    merged = np.cumsum(~short) - 1
    return np.asarray(merged[run])


def with_rounded_scores(parts: State, digits: int) -> State:
    """The same counts with scores rounded to ``digits`` after the decimal point; decisions do not change."""
    counts = parts.counts
    if counts is None:
        return parts
    return _with_scores(parts, counts, np.round(counts.low / 2 + counts.high / 2, digits) + 0.0)


def _with_scores(parts: State, counts: StateCounts, scores: Floats) -> State:
    """The same counts with other scores."""
    grid, result = StateGrid.between(*parts.score_range), copy(parts)
    scores = np.clip(scores, *parts.score_range)
    bins, within = grid.places(scores)
    moment = counts.weight * grid.scale.positions(scores) if len(counts.weight) else counts.moment
    changed = StateCounts(
        counts.cell, bins, scores, scores, counts.rows, within * counts.rows, counts.weight, moment, exact=True
    )
    result.counts = changed.grouped()
    return result


def suppressed_values(sizes: Mapping[Cell, int], shape: Shape, min_cell: int) -> dict[str, set[Value]]:
    """The groups and strata to suppress: the smallest of each small cell, and then others to hide it among.

    >>> sizes = {("f", 0): 90, ("m", 0): 80, ("x", 0): 40, ("d", 0): 30, ("f", 1): 50, ("m", 1): 60, ("x", 1): 3}
    >>> sorted(suppressed_values({**sizes, ("d", 1): 12}, Shape(groups=("sex",), label="y"), 10)["sex"])
    ['d', 'x']
    """
    columns, groups = (*shape.groups, *shape.controls), len(shape.groups)
    totals: Counter[tuple[int, Value]] = Counter()
    for cell, rows in sizes.items():
        totals.update({(at, cell[at]): rows for at in range(len(columns)) if cell[at] is not None})
    suppressed: dict[str, set[Value]] = {name: set() for name in columns}
    smallest: Cell | None = None  # of those that need suppression
    while (exposed := _exposed_cell(sizes, shape, suppressed, min_cell)) is not None:
        smallest = exposed if smallest is None else smallest
        pairs = set(enumerate(exposed))
        mixed = {at for at in range(groups) if (at, None) in pairs} if exposed else set(range(groups, len(columns)))
        candidates = [
            (at, value)
            for at, value in totals
            if ((at, value) in pairs or at in mixed) and value not in suppressed[columns[at]]
        ]
        at, value = min(candidates, key=lambda key: (totals[key], sort_key(key[1])), default=(0, None))
        suppressed[columns[at]].add(value)
        remaining = sum(key[0] == at for key in totals) - len(suppressed[columns[at]])
        if not candidates or remaining < (_FEWEST_GROUPS if at < groups else 1):
            raise DataError(
                f"{min_cell} leaves too few groups or strata of {columns[at]!r}: the others have smaller cells. The "
                f"smallest is ({_cell_text(smallest, shape)}), number of rows: {sizes[smallest]:,}",
                argument="min_cell",
                remedy="use fewer columns, merge small groups, or use a smaller minimum",
            )
    return suppressed


def _cell_text(cell: Cell, shape: Shape) -> str:
    """The values of a cell by column; the last may be whether its rows are selected.

    >>> _cell_text(("f", None, 1, False), Shape(groups=("sex", "race"), label="y"))
    'sex=f, race missing, y=1, not selected'
    """
    names = [*shape.groups, *shape.controls, *([] if shape.label is None else [shape.label])]
    parts = [
        f"{name} missing" if value is None else f"{name}={value}" for name, value in zip(names, cell, strict=False)
    ]
    return ", ".join([*parts, *("selected" if side else "not selected" for side in cell[len(names) :])])


def _exposed_cell(
    sizes: Mapping[Cell, int], shape: Shape, suppressed: Mapping[str, Collection[Value]], min_cell: int
) -> Cell | None:
    """The smallest released cell that is below the minimum or is a single suppressed cell; None: there is none."""
    sums: dict[Cell, list[Cell]] = defaultdict(list)
    for cell in sizes:
        sums[released_cell(cell, shape, suppressed)].append(cell)
    rows = {released: sum(sizes[cell] for cell in cells) for released, cells in sums.items()}
    exposed = [
        released
        for released, cells in sums.items()
        if rows[released] < min_cell or (len(cells) == 1 and cells[0] != released)
    ]
    return min(exposed, key=lambda cell: (rows[cell], [sort_key(value) for value in cell]), default=None)


def released_cell(cell: Cell, shape: Shape, suppressed: Mapping[str, Collection[Value]]) -> Cell:
    """The cell in which the rows of a cell are released; empty if they are withheld.

    >>> released_cell(("x", 1), Shape(groups=("sex",), label="y"), {"sex": ["x"]})
    (None, 1)
    """
    groups = len(shape.groups)
    if any(value in suppressed.get(name, ()) for name, value in zip(shape.controls, cell[groups:], strict=False)):
        return _WITHHELD
    pairs = zip(shape.groups, cell, strict=False)
    return *(None if value in suppressed.get(name, ()) else value for name, value in pairs), *cell[groups:]
