"""What an audit asks of rows that are too many to hold, whether they are in files, in tables or were counted before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from metrifair.auditing.out_of_core.bins import Bins, Refiner, Scale
from metrifair.auditing.out_of_core.columns import ColumnLevels, ManyNumbers, Roles, check_favorable, decoded
from metrifair.errors import DataError
from metrifair.support.arrays import Floats, Integers

MOST_CELLS = 2**18
UNUSABLE = "unusable"
"""Why rows are left out, where nobody told one reason from another."""
WITHHELD = "withheld"
"""Why rows are left out whose cells whoever counted them found too small to show."""


class Tally(NamedTuple):
    """What each cell holds: rows, their weight, and the weight of those that are selected."""

    rows: Integers
    weight: Floats
    selected: Floats


class CellTable(NamedTuple):
    """What a first look at all rows told: the cells there are, what they hold, and where the scores lie."""

    columns: dict[str, Any]  # groups, strata and labels of each cell, as arguments of an audit
    tally: Tally
    ends: tuple[float, float]
    left_out: Mapping[str, int] = MappingProxyType({})  # rows, by why
    levels: Mapping[str, int] = {}  # into how many numbers were cut, by column


@dataclass(frozen=True, eq=False)
class BinnedScores:
    """All rows in bins, and who can refine some of them; None: nobody can."""

    bins: Bins
    scale: Scale
    refiner: Refiner | None = None
    position_error: float = 0.0  # by which positions were rounded before they were added up
    precision: float = 1e-5  # width of brackets, as a share of the range of the scores


class BinnedRows(Protocol):
    """Rows that are counted where they are, by cell and bin."""

    @property
    def weighted(self) -> bool:
        """True where rows have weights."""

    def survey(self, threshold: float) -> CellTable:
        """Look at all rows once; scores from the threshold on are selected."""

    def count(self) -> BinnedScores:
        """Look at all rows once more, and count them in bins."""


class CellRows(ABC):
    """The rows of a file or table that can be used, by cell."""

    roles: Roles
    levels: list[ColumnLevels]
    cells: list[tuple[int, ...]]  # codes of the key columns

    @property
    def weighted(self) -> bool:
        """True where rows have weights."""
        return self.roles.weight is not None

    def survey(self, threshold: float) -> CellTable:
        """Look at all rows once: the cells there are, what they hold, and where the scores lie.

        A number with very many values shows itself on the way: it is then cut into levels.
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
        """Look at a number in all rows, and cut it into levels."""

    def cell_table(
        self,
        name: str,
        sums: Sequence[Floats],
        ends: tuple[float, float],
        left_out: Mapping[str, int],
        *,
        is_text: bool = False,
    ) -> CellTable:
        """The cells, with the sums of a tally, of the file or table of this name; none at all are an error."""
        roles, levels = self.roles, self.levels
        check_some(name, roles, len(self.cells))
        check_favorable(roles, float(sums[2].sum()))
        if not isfinite(ends[1] - ends[0]):
            raise DataError(
                f"the column {roles.score!r} spans more than floating-point numbers can; scale the scores down"
            )
        columns = decoded(roles, levels, list(np.array(self.cells).T), is_text=is_text)
        cut = {one.name: len(one.values) for one in levels if one.cuts is not None and one.name not in roles.cuts}
        return CellTable(columns, Tally(sums[0].astype(np.int64), *sums[1:]), ends, left_out, cut)


def check_some(name: str, roles: Roles, rows: int) -> None:
    """Raise a DataError unless there are rows that can be used."""
    if rows == 0:
        raise DataError(f"no row of {name} has a score in {roles.score!r} and a value in every other column asked for")


def too_many_cells(roles: Roles) -> DataError:
    """What is wrong with columns of very many combinations."""
    listed = ", ".join(map(repr, roles.keys))
    return DataError(
        f"the columns {listed} have more than {MOST_CELLS:,} combinations of values, too many to count in a file "
        "or table too large to hold; audit fewer of these columns at a time, or make their values coarser"
    )
