"""The counts of a state, as an audit asks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metrifair.auditing.distribution import Floats
from metrifair.auditing.out_of_core.columns import ColumnLevels, decoded, levels_for
from metrifair.auditing.out_of_core.rows import UNUSABLE, WITHHELD, Cells, Counted, Tally
from metrifair.auditing.request import Request
from metrifair.auditing.state_counts import StateCounts, StateGrid
from metrifair.auditing.state_file import MOST_CELLS, Shape, StateParts, Value
from metrifair.errors import DataError


def rank_of(value: Value) -> tuple[int, Any]:
    """Values in an order of their own: missing ones, numbers, text."""
    return (0, 0) if value is None else (2, value) if isinstance(value, str) else (1, value)


def plain(value: object) -> Value:
    """A value as files hold it; an integer is one whatever its type."""
    item = value.item() if isinstance(value, np.generic) else value
    if isinstance(item, bool | str):
        return item
    if isinstance(item, int | float):
        return int(item) if float(item).is_integer() else float(item)
    return str(item)


def ends_of(given: tuple[float, float]) -> tuple[float, float]:
    """The range that a user named."""
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        raise DataError(f"range must be two numbers, lowest and highest, got {given!r}") from None
    if not (low < high and np.isfinite(high - low)):
        raise DataError(f"range must be two finite numbers, the lower one first, got {given!r}")
    return low, high


def check_within(scores: Floats, ends: tuple[float, float]) -> None:
    """Raise a DataError unless the scores lie in the range of a state."""
    low, high = ends
    if len(scores) and not (scores.min() >= low and scores.max() <= high):
        beyond = float(scores.min() if scores.min() < low else scores.max())
        raise DataError(
            f"the score {beyond:g} lies beyond the range from {low:g} to {high:g}; count with a range that holds all "
            "scores, and the same one in all states that will be merged"
        )


def check_few(cells: int) -> None:
    """Raise a DataError where there are more cells than a state holds."""
    if cells > MOST_CELLS:
        raise DataError(
            f"there are {cells:,} combinations of groups, controls and labels, and a state holds {MOST_CELLS:,}: name "
            "fewer columns, or make their values coarser"
        )


def check_last(parts: StateParts, request: Request) -> None:
    """Raise a DataError where high scores are said to be of another label than the last, of which they were counted."""
    if parts.shape is None or not parts.shape.of_last or parts.shape.label is None or request.pos_label is None:
        return
    labels = sorted({cell[-1] for cell in parts.cells if cell[-1] is not None}, key=rank_of)
    is_last = str(request.pos_label) == str(labels[-1])
    if len(labels) > 1 and is_last != (request.favourable == "high"):
        raise DataError(
            f"the scores that were counted are the probabilities of the label {labels[-1]!r}, the last of two columns; "
            f"leave pos_label={request.pos_label!r} out, or count the column of that label alone"
        )


@dataclass(frozen=True, eq=False)
class StateRows:
    """The counts of a state, as an audit asks for them."""

    parts: StateParts
    shape: Shape
    counts: StateCounts

    @property
    def weighted(self) -> bool:
        """True where rows have weights."""
        return self.shape.weighted

    def surveyed(self, threshold: float) -> Cells:  # noqa: ARG002
        """What the cells hold."""
        counts, cells = self.counts, len(self.parts.cells)
        rows = np.bincount(counts.cell, counts.rows, cells).astype(np.int64)
        weight = (np.bincount(counts.cell, counts.weight, cells) if self.weighted else rows).astype(np.float64)
        table = np.array(self.parts.cells, dtype=object)
        found, place = [], []
        for level, column in zip(levels_for(self.shape.roles), table.T, strict=True):
            values = sorted({value for value in column if value is not None}, key=rank_of)
            number: dict[Any, int] = {value: code for code, value in enumerate(values, 1)}
            found.append(ColumnLevels(level.role, level.name, level.most, list(values)))
            place.append(np.array([number.get(value, 0) if value is not None else 0 for value in column]))
        arguments = decoded(self.shape.roles, found, place, is_text=self.shape.is_text)
        ends = float(counts.low.min()), float(counts.high.max())
        left_out = {UNUSABLE: self.parts.left_out - self.parts.withheld, WITHHELD: self.parts.withheld}
        tally = Tally(rows, weight, self.parts.selected)
        return Cells(arguments, tally, ends, left_out, withheld=self.parts.withheld)

    def counted(self) -> Counted:
        """The bins; nobody can look into them any more."""
        grid = StateGrid.between(*self.parts.range)
        return Counted(self.counts.bins(grid, len(self.parts.cells), weighted=self.weighted), grid.scale)
