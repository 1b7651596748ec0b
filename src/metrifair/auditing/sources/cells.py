"""Rows out of core, which a file, a table or a state counts by cell and bin."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from metrifair.auditing.measure.bins import BinnedScores
from metrifair.auditing.measure.brackets import check_brackets
from metrifair.auditing.measure.counted_scores import CountedScores, count_cells
from metrifair.auditing.measure.sample import (
    AuditSample,
    ReadingFacts,
    SampleScores,
    Units,
)
from metrifair.auditing.measure.selection import number_or_default
from metrifair.auditing.request import Request
from metrifair.auditing.sources.column_levels import (
    ColumnLevels,
    ManyNumbers,
    decode_columns,
)
from metrifair.auditing.sources.column_roles import Roles
from metrifair.auditing.sources.column_values import check_favorable
from metrifair.auditing.sources.problems import audited_problems
from metrifair.auditing.sources.used_rows import check_some
from metrifair.errors import DataError
from metrifair.problem.problem import Inputs
from metrifair.support.arrays import Floats, Integers

MOST_CELLS = 2**18


class CellTable(NamedTuple):
    """The result of the first pass: the cells, their counts, and the range of the scores."""

    columns: dict[str, Any]  # groups, strata and labels of each cell, as arguments of an audit
    rows: Integers  # in each cell
    weight: Floats  # of each cell
    selected: Floats  # weight at or above the threshold
    ends: tuple[float, float]
    left_out: Mapping[str, int]  # rows, by reason
    levels: Mapping[str, int] = {}  # number of levels of numeric columns that were cut
    # the attribute by which each cell was counted; None: by all attributes
    table: Integers | None = None


class BinnedSource(ABC):
    """Rows out of core, which a file, a table or a state counts by cell and bin."""

    @property
    @abstractmethod
    def weighted(self) -> bool:
        """True if rows have weights."""

    @abstractmethod
    def survey(self, threshold: float) -> CellTable:
        """Read all rows once; scores at or above the threshold are selected."""

    @abstractmethod
    def count(self) -> BinnedScores:
        """Read all rows again, and count them in bins."""

    def counts(self, request: Request) -> AuditSample:
        """Each cell (group, stratum and label) is a unit, and its scores are counted in bins."""
        check_brackets("metrics", request.named_metrics())
        cells = self.survey(number_or_default(request.threshold))
        columns = cells.columns
        inputs = Inputs(
            columns["y_true"],
            columns["sensitive_features"],
            columns["control_features"],
            label="y_true",
        )
        problem, crossed = audited_problems(inputs, request, rows=cells.rows, weight=cells.weight)
        binned = self.count()
        by_class: dict[object, CountedScores] = {
            None: count_cells(binned.bins.high, binned.bins.counts)
        }
        return AuditSample(
            problem,
            SampleScores(by_class, cells.ends, cells.selected, binned, request.favorable),
            Units(
                len(problem),
                cells.rows,
                cells.weight if self.weighted else None,
                table=cells.table,
            ),
            ReadingFacts(cells.left_out, cells.levels),
            crossed,
            request.known_names,
        )


class ColumnCells(BinnedSource):
    """The rows of a file or table that can be used, by cell."""

    roles: Roles
    levels: list[ColumnLevels]
    cells: list[tuple[int, ...]]  # codes of the key columns

    @property
    def weighted(self) -> bool:
        """True if rows have weights."""
        return self.roles.weight is not None

    def survey(self, threshold: float) -> CellTable:
        """Read all rows once: the cells, their counts, and the range of the scores.

        A numeric column with very many values raises ManyNumbers, and is then cut into levels.
        """
        while True:
            try:
                return self.survey_once(threshold)
            except ManyNumbers as many:
                self.cut_number(many.level)

    @abstractmethod
    def survey_once(self, threshold: float) -> CellTable:
        """The survey, or ManyNumbers."""

    @abstractmethod
    def cut_number(self, level: ColumnLevels) -> None:
        """Read a numeric column of all rows, and cut it into levels."""

    def cell_table(
        self,
        name: str,
        sums: Sequence[Floats],
        ends: tuple[float, float],
        left_out: Mapping[str, int],
        *,
        is_text: bool = False,
    ) -> CellTable:
        """The cells of the file or table of this name, with sums of rows, weight and selected
        weight.
        """
        roles = self.roles
        levels = self.levels
        check_some(name, roles, len(self.cells))
        check_favorable(roles, float(sums[2].sum()))
        if not isfinite(ends[1] - ends[0]):
            raise DataError(
                f"the column {roles.score!r} spans more than floating-point numbers can; scale the "
                "scores down"
            )
        columns = decode_columns(roles, levels, list(np.array(self.cells).T), is_text=is_text)
        cut = {
            level.name: len(level.values)
            for level in levels
            if level.cuts is not None and level.name not in roles.cuts
        }
        return CellTable(
            columns,
            sums[0].astype(np.int64),
            sums[1],
            sums[2],
            ends,
            left_out,
            cut,
        )

    def check_few(self, cells: int) -> None:
        """Raise a DataError for columns of very many combinations."""
        if cells > MOST_CELLS:
            names = ", ".join(map(repr, self.roles.keys))
            raise DataError(
                f"the columns {names} have more than {MOST_CELLS:,} combinations of values, too "
                "many to count in a "
                "file or table larger than memory; audit fewer of these columns at a time, or make "
                "their values coarser"
            )
