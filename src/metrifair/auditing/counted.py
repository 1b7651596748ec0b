"""The one container of an audit: scores counted at ascending values, unit by unit.

A unit is a row that is held in memory, or a cell of a file that is too large to hold: all rows with the same groups,
strata and label. Which units are compared, and all figures that follow, are the same business for both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]

_FEW_UNITS = 64  # whose entries are found one by one


def total_over(
    units: Integers, of: int, summed: Callable[[Integers], NDArray[Any]], everyone: Callable[[], NDArray[Any]]
) -> NDArray[Any]:
    """The sum over some of ``of`` units; where they are most, everyone's less that of the others.

    Many comparisons are with all the rest: the sum over everyone is taken once.
    """
    if 2 * len(units) <= of:
        return np.asarray(summed(units))
    other = np.ones(of, np.bool_)
    other[units] = False
    return np.asarray(everyone() - summed(np.flatnonzero(other)))


@dataclass(frozen=True, eq=False)
class CountedScores:
    """How many rows of each unit, or how much weight, lie at each of some ascending values.

    Entries are sorted by unit. For rows there is one entry each, and the values are their distinct scores; for cells
    the values are the largest scores of bins: distribution functions are exact there.
    """

    values: Floats  # (k,)
    place: Integers  # (entries,): at which of the values
    amount: NDArray[Any] | None = None  # (entries,): rows or weight; None: one row each
    starts: Integers | None = None  # (units + 1,): where the entries of each unit begin; None: one entry each

    @property
    def units(self) -> int:
        """How many units there are."""
        return len(self.place) if self.starts is None else len(self.starts) - 1

    @property
    def weighted(self) -> bool:
        """True where amounts are weights, whose sums are rounded."""
        return self.amount is not None and self.amount.dtype == np.float64

    def at(self, units: Integers) -> NDArray[Any]:
        """What some units have at each value: (k,)."""
        if self.weighted:  # differences of rounded sums may be less than nothing
            return self._sum(units)
        return total_over(units, self.units, self._sum, lambda: self._everyone)

    def entries(self, units: Integers) -> NDArray[Any]:
        """The entries of some units, as an index."""
        if self.starts is None:
            return units
        if len(units) <= _FEW_UNITS:
            parts = [np.arange(self.starts[unit], self.starts[unit + 1]) for unit in units]
            return np.concatenate(parts) if parts else np.zeros(0, np.int64)
        chosen = np.zeros(self.units, np.bool_)
        chosen[units] = True
        return np.repeat(chosen, np.diff(self.starts))

    def _sum(self, units: Integers) -> NDArray[Any]:
        entries = self.entries(units)
        # bincount adds floats; sums of counts are exact in them, too.
        amount = None if self.amount is None else self.amount[entries]
        return np.bincount(self.place[entries], amount, len(self.values))

    @cached_property
    def _everyone(self) -> NDArray[Any]:
        return np.bincount(self.place, self.amount, len(self.values))


def counted_rows(score: Floats, weight: Floats | None = None) -> CountedScores:
    """Rows in memory.

    >>> counted_rows(np.array([0.5, 0.1, 0.5])).at(np.array([0, 2]))
    array([0, 2])
    """
    values, place = np.unique(score, return_inverse=True)
    return CountedScores(values, place, weight)


def counted_cells(values: Floats, counts: NDArray[Any]) -> CountedScores:
    """Cells with counts, or sums of weights, (k, cells) at values (k,).

    >>> counted_cells(np.array([0.1, 0.5]), np.array([[1, 0], [2, 3]])).at(np.array([0, 1]))
    array([1., 5.])
    """
    cell, place = np.nonzero(counts.T)
    starts = np.searchsorted(cell, np.arange(counts.shape[1] + 1))
    return CountedScores(values, place, counts[place, cell], starts)


def stand_ins(counted: CountedScores, most: int) -> tuple[Floats, Integers]:
    """Scores and units of at most about ``most`` rows, in proportion to all of them."""
    if counted.starts is None or counted.amount is None:
        return counted.values[counted.place], np.arange(counted.units)
    total = float(counted.amount.sum())
    share = most / total if counted.weighted else min(1.0, most / total)
    lengths = np.diff(counted.starts)
    below = np.append(0.0, np.cumsum(counted.amount))
    upto = np.floor((below[1:] - np.repeat(below[counted.starts[:-1]], lengths)) * share)
    first = counted.starts[:-1][lengths > 0]
    taken = np.diff(upto, prepend=0.0)
    taken[first] = upto[first]
    times = taken.astype(np.int64)
    unit = np.repeat(np.arange(counted.units), lengths)
    return np.repeat(counted.values[counted.place], times), np.repeat(unit, times)
