"""A state as a source of an audit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrifair.auditing.measure.bins import BinnedScores
from metrifair.auditing.measure.sample import UNUSABLE, WITHHELD
from metrifair.auditing.sources.cells import BinnedSource, CellTable
from metrifair.auditing.sources.column_levels import decode_columns, levels_for
from metrifair.auditing.sources.state_counts import (
    StateCounts,
    StateGrid,
)
from metrifair.auditing.sources.state_parts import Shape, StateParts, sort_key


@dataclass(frozen=True, eq=False)
class StateRows(BinnedSource):
    """The counts of a state, as the source of an audit."""

    parts: StateParts
    shape: Shape
    entries: StateCounts

    @property
    def weighted(self) -> bool:
        """True if rows have weights, or a share of their weight in each group."""
        return self.shape.weighted or self.shape.proxy is not None

    def survey(self, threshold: float) -> CellTable:  # noqa: ARG002
        """The counts of the cells."""
        counts = self.entries
        cells = len(self.parts.cells)
        rows = np.bincount(counts.cell, counts.size, cells).astype(counts.size.dtype)
        weight = (np.bincount(counts.cell, counts.weight, cells) if self.weighted else rows).astype(
            np.float64
        )
        table = np.array(self.parts.cells, dtype=object)
        levels = levels_for(self.shape.roles)
        place = []
        for level, column in zip(levels, table.T, strict=True):
            level.values = sorted({value for value in column if value is not None}, key=sort_key)
            number = {value: code for code, value in enumerate(level.values, 1)}
            place.append(np.array([number.get(value, 0) for value in column]))
        arguments = decode_columns(self.shape.roles, levels, place, is_text=self.shape.is_text)
        if self.shape.proxy is not None:
            arguments["sensitive_features"] = self.shape.proxy.of_cells(
                [cell[0] for cell in self.parts.cells]
            )
        ends = float(counts.low.min()), float(counts.high.max())
        left_out = {
            UNUSABLE: self.parts.left_out - self.parts.withheld,
            WITHHELD: self.parts.withheld,
        }
        return CellTable(
            arguments,
            rows,
            weight,
            self.parts.selected,
            ends,
            left_out,
            table=self.parts.table,
        )

    def count(self) -> BinnedScores:
        """The bins of the state."""
        return self.entries.binned(
            StateGrid.between(*self.parts.score_range), len(self.parts.cells)
        )
