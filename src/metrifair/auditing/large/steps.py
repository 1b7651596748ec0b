"""Rows that are held in memory after all: what lies up to each of their distinct scores, exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.large.grids import Floats, Integers


def total_over(
    cells: Integers, of: int, summed: Callable[[Integers], NDArray[Any]], everyone: Callable[[], NDArray[Any]]
) -> NDArray[Any]:
    """The sum over some of ``of`` cells; where they are most, everyone's less that of the others.

    Many comparisons are with all the rest: the sum over everyone is taken once.
    """
    if 2 * len(cells) <= of:
        return np.asarray(summed(cells))
    other = np.ones(of, np.bool_)
    other[cells] = False
    return np.asarray(everyone() - summed(np.flatnonzero(other)))


@dataclass(frozen=True, eq=False)
class Steps:
    """Rows held in memory, by cell, and their distinct scores in ascending order: what lies up to these is exact.

    ``bin`` tells the bin that a score was in, ``outside`` what lies below a bin but in none of the bins held before it.
    """

    score: Floats  # (k,)
    gap: Floats  # (k,) the empty stretch up to the next score, on the grid's scale
    bin: Integers  # (k,)
    outside: NDArray[Any]  # (bins, cells)
    place: Integers  # (rows,) the score of each row, cell after cell
    weight: Floats | None
    starts: Integers  # (cells + 1,) where the rows of each cell begin

    def __len__(self) -> int:
        return len(self.score)

    def counts(self, cells: Integers) -> NDArray[Any]:
        """Rows (or weight) of some cells at each score."""
        return total_over(cells, len(self.starts) - 1, self._counts, lambda: self._everyone[0])

    def upto(self, cells: Integers, counts: NDArray[Any]) -> NDArray[Any]:
        """Rows (or weight) of some cells at each score or below it, whether held or not; ``counts`` are theirs."""
        below = total_over(
            cells, len(self.starts) - 1, lambda some: self.outside[:, some].sum(1), lambda: self._everyone[1]
        )
        return np.asarray(np.cumsum(counts) + below[self.bin])

    def _counts(self, cells: Integers) -> NDArray[Any]:
        parts = [slice(self.starts[cell], self.starts[cell + 1]) for cell in cells]
        place = np.concatenate([self.place[part] for part in parts])
        weight = None if self.weight is None else np.concatenate([self.weight[part] for part in parts])
        return np.bincount(place, weight, len(self.score))

    @cached_property
    def _everyone(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return np.bincount(self.place, self.weight, len(self.score)), self.outside.sum(1)
