"""The rows of a file, pass by pass: scores and cells, and what each cell holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.distribution import Booleans, Floats
from metrifair.auditing.out_of_core.bins import bins_for
from metrifair.auditing.out_of_core.columns import (
    ColumnLevels,
    ManyNumbers,
    Roles,
    UsedRows,
    levels_for,
    numbers,
    used_rows,
)
from metrifair.auditing.out_of_core.counting import Block, Passes, Survey, grid_of
from metrifair.auditing.out_of_core.files import Source
from metrifair.auditing.out_of_core.rows import MOST_CELLS, Cells, Counted, Tally, cells_of, too_many_cells
from metrifair.auditing.request import MOST_LEVELS

_TABLE = 2**16  # combinations of levels that a table holds; more are looked up among those there are
_MOST_COMBINATIONS = 2**63 - 1


def _sums(place: NDArray[Any], selected: Booleans, weight: Floats | None) -> Floats:
    """Rows, weight and selected weight at each place: (3, places)."""
    split, places = place.astype(np.int64) * 2 + selected, 2 * int(place.max()) + 2
    rows = np.bincount(split, minlength=places).reshape(-1, 2)
    weights = rows if weight is None else np.bincount(split, weight, places).reshape(-1, 2)
    return np.stack([rows.sum(1), weights.sum(1), weights[:, 1]]).astype(np.float64)


@dataclass
class FileRows:
    """The rows of a file that can be used, as scores and cells."""

    source: Source
    roles: Roles
    most_groups: int = MOST_LEVELS
    levels: list[ColumnLevels] = field(default_factory=list)
    cells: list[tuple[int, ...]] = field(default_factory=list)  # codes of the key columns
    survey: Survey = field(default_factory=Survey)

    def __post_init__(self) -> None:
        self.levels = levels_for(self.roles, most_groups=self.most_groups)

    @property
    def weighted(self) -> bool:
        """True where rows have weights."""
        return self.roles.weight is not None

    def surveyed(self, threshold: float) -> Cells:
        """Read all rows once: the cells there are, what they hold, and a sample of the scores.

        A number with very many values shows itself on the way: a sample of it then says where to cut it into levels.
        """
        while True:
            try:
                return self._survey(threshold)
            except ManyNumbers as many:
                level, self.survey, seen = many.level, Survey(), Survey()
                for batch in self.source.batches((level.name,)):
                    values = numbers("group", level.name, batch[level.name])
                    seen.add(values[np.isfinite(values)])
                level.cut_into_levels(seen.sample, None, rows=seen.rows, ends=(seen.low, seen.high))

    def _survey(self, threshold: float) -> Cells:
        tally, left_out = dict[tuple[int, ...], Floats](), Counter[str]()
        for scores, codes, weight, not_used in self._batches():
            left_out += not_used
            if len(scores) == 0:
                continue
            self.survey.add(scores)
            sizes = self._sizes()
            number = _radix(codes, sizes)
            if prod(sizes) <= _TABLE:
                numbers_met, place = np.arange(prod(sizes)), number
            else:
                numbers_met, place = np.unique(number, return_inverse=True)
            sums = _sums(place, scores >= threshold, weight)
            met = np.flatnonzero(sums[0])
            keys = zip(*(code.tolist() for code in np.unravel_index(numbers_met[met], sizes)), strict=True)
            for key, new in zip(keys, sums[:, met].T, strict=True):
                tally[key] = tally.get(key, 0.0) + new
            if len(tally) > MOST_CELLS:
                raise too_many_cells(self.roles)
        self.cells = sorted(tally)
        found = np.array([tally[key] for key in self.cells]).reshape(-1, 3).T
        return cells_of(
            self.source.name,
            self.roles,
            self.levels,
            self.cells,
            Tally(found[0].astype(np.int64), *found[1:]),
            ends=(self.survey.low, self.survey.high),
            left_out=left_out,
            is_text=self.source.is_text,
        )

    def counted(self) -> Counted:
        """Read all rows once more, and count them in the bins of a grid that the survey suggests."""
        survey = self.survey
        grid = grid_of(survey.sample, survey.low, survey.high, bins_for(len(self.cells)))
        passes = Passes(self.read, grid)
        return Counted(passes.counted(len(self.cells), weighted=self.weighted), grid.scale, passes)

    def _sizes(self) -> list[int]:
        sizes = [len(level.values) + 1 for level in self.levels]
        if prod(sizes) > _MOST_COMBINATIONS:
            raise too_many_cells(self.roles)
        return sizes

    def read(self) -> Iterator[Block]:
        """Read all rows once more, as blocks of scores and cells."""
        sizes = self._sizes()
        known = np.ravel_multi_index(tuple(np.array(self.cells).T), sizes)  # ascending, as the cells are
        combinations = prod(sizes)
        cell_at = np.searchsorted(known, np.arange(combinations)) if combinations <= _TABLE else None
        for scores, codes, weight, _ in self._batches():
            number = _radix(codes, sizes)
            yield Block(scores, np.searchsorted(known, number) if cell_at is None else cell_at.take(number), weight)

    def _batches(self) -> Iterator[UsedRows]:
        """The rows that can be used and count."""
        for batch in self.source.batches(self.roles.columns):
            used = used_rows(self.roles, self.levels, batch)
            if used.weight is not None and not used.weight.all():
                used = used.only(used.weight != 0)
            yield used


def _radix(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> NDArray[Any]:
    """One number for each combination of codes."""
    place = codes[0]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        place = place.astype(np.int64, copy=False) * size + code
    return place
