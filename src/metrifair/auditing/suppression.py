"""Counts that can be released: without small cells, which no total reveals, and with rounded scores.

A cell is a combination of groups, strata and label. All rows of a suppressed group move to the cells of rows with a
missing group; all rows of a suppressed stratum are withheld. What is released are sums of cells. Every sum with a
suppressed cell has at least two cells and the minimum number of rows: no equation has a single unknown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from copy import copy
from typing import TypeAlias, TypeVar

import numpy as np

from metrifair.auditing.bins import StateCounts, StateGrid
from metrifair.auditing.state_file import Shape, StateParts, Value, rank_of
from metrifair.errors import DataError

Cell: TypeAlias = tuple[Value, ...]
State = TypeVar("State", bound=StateParts)

_WITHHELD: Cell = ()  # where the rows of a suppressed stratum go
_FEWEST_GROUPS = 2  # of an attribute: fewer cannot be compared


def without_small_cells(parts: State, min_cell: int) -> tuple[State, dict[str, list[Value]]]:
    """The counts without cells of fewer than ``min_cell`` rows; and the suppressed groups and strata, by column."""
    shape, counts = parts.shape, parts.counts
    if shape is None or counts is None:
        return parts, {}
    rows = np.bincount(counts.cell, counts.rows, len(parts.cells)).astype(np.int64)
    suppressed = suppressed_values(dict(zip(parts.cells, rows.tolist(), strict=True)), shape, min_cell)
    released = [released_cell(cell, shape, suppressed) for cell in parts.cells]
    cells = sorted(set(released) - {_WITHHELD}, key=lambda cell: [rank_of(value) for value in cell])
    place = {cell: number for number, cell in enumerate(cells)}
    number = np.array([place.get(cell, -1) for cell in released], np.int64)
    kept, found = number >= 0, copy(parts)
    withheld = int(rows[~kept].sum())
    found.left_out, found.withheld = parts.left_out + withheld, parts.withheld + withheld
    found.selected = np.bincount(number[kept], parts.selected[kept], len(cells)).astype(np.float64)
    found.cells, found.counts = cells, counts.renumbered(number)
    return found, {column: sorted(values, key=rank_of) for column, values in suppressed.items() if values}


def with_rounded_scores(parts: State, digits: int) -> State:
    """The same counts with scores of so many digits after the decimal point; decisions stay those of the scores."""
    if parts.counts is None:
        return parts
    counts, grid, found = parts.counts, StateGrid.between(*parts.score_range), copy(parts)
    scores = np.clip(np.round(counts.low / 2 + counts.high / 2, digits) + 0.0, *parts.score_range)
    bins, within = grid.places(scores)
    moment = counts.weight * grid.scale.positions(scores) if len(counts.weight) else counts.moment
    rounded = StateCounts(
        counts.cell, bins, scores, scores, counts.rows, within * counts.rows, counts.weight, moment, exact=True
    )
    found.counts = rounded.grouped()
    return found


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
    while (exposed := _exposed_cell(sizes, shape, suppressed, min_cell)) is not None:
        own = set(enumerate(exposed))
        mixed = {at for at in range(groups) if (at, None) in own} if exposed else set(range(groups, len(columns)))
        candidates = [
            (at, value)
            for at, value in totals
            if ((at, value) in own or at in mixed) and value not in suppressed[columns[at]]
        ]
        at, value = min(candidates, key=lambda key: (totals[key], rank_of(key[1])), default=(0, None))
        suppressed[columns[at]].add(value)
        left = sum(key[0] == at for key in totals) - len(suppressed[columns[at]])
        if not candidates or left < (_FEWEST_GROUPS if at < groups else 1):
            raise DataError(
                f"{min_cell} leaves too few groups or strata of {columns[at]!r}: the others have smaller cells",
                argument="min_cell",
                remedy="use fewer columns, merge small groups, or use a smaller minimum",
            )
    return suppressed


def _exposed_cell(
    sizes: Mapping[Cell, int], shape: Shape, suppressed: Mapping[str, Collection[Value]], min_cell: int
) -> Cell | None:
    """The smallest released cell that is below the minimum, or holds a single suppressed cell; None: there is none."""
    sums: dict[Cell, list[Cell]] = defaultdict(list)
    for cell in sizes:
        sums[released_cell(cell, shape, suppressed)].append(cell)
    rows = {released: sum(sizes[cell] for cell in cells) for released, cells in sums.items()}
    exposed = [
        released
        for released, cells in sums.items()
        if rows[released] < min_cell or (len(cells) == 1 and cells[0] != released)
    ]
    return min(exposed, key=lambda cell: (rows[cell], [rank_of(value) for value in cell]), default=None)


def released_cell(cell: Cell, shape: Shape, suppressed: Mapping[str, Collection[Value]]) -> Cell:
    """The cell in which the rows of a cell are released; empty where they are withheld.

    >>> released_cell(("x", 1), Shape(groups=("sex",), label="y"), {"sex": ["x"]})
    (None, 1)
    """
    groups = len(shape.groups)
    if any(value in suppressed.get(name, ()) for name, value in zip(shape.controls, cell[groups:], strict=False)):
        return _WITHHELD
    named = zip(shape.groups, cell, strict=False)
    return *(None if value in suppressed.get(name, ()) else value for name, value in named), *cell[groups:]
