"""Scores counted at ascending values, unit by unit: the one container of an audit.

A unit is a row in memory, or a cell of a file
that is larger than memory: all rows with the same groups, strata and label. Which units are
compared, and all figures that follow, are computed in the same way for both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.support.arrays import Floats, Integers, sums_upto
from metrifair.support.checks import rows_or_none

_FEW_UNITS = 64  # up to this number, entries are looked up one by one


def total_over(
    units: Integers,
    count: int,
    summed: Callable[[Integers], NDArray[Any]],
    all_units: Callable[[], NDArray[Any]],
) -> NDArray[Any]:
    """The sum over some of ``count`` units. For the majority, it is the sum over all units less
    that over the others.

    Many comparisons are with the rest, so the sum over all units is computed once.
    """
    if 2 * len(units) <= count:
        return np.asarray(summed(units))
    outside = np.ones(count, np.bool_)
    outside[units] = False
    return np.asarray(all_units() - summed(np.flatnonzero(outside)))


@dataclass(frozen=True, eq=False)
class CountedScores:
    """The number of rows, or the weight, of each unit at each of some ascending values.

    Entries are sorted by unit. For rows there is one entry each, and the values are their distinct
    scores; for cells the values are the largest scores of bins: distribution functions are exact
    there.
    """

    values: Floats  # (k,)
    place: Integers  # (entries,): at which of the values
    amount: NDArray[Any] | None = None  # (entries,): rows or weight; None: one row each
    # (units + 1,): where the entries of each unit begin; None: one entry each
    starts: Integers | None = None

    @property
    def units(self) -> int:
        """Number of units."""
        if self.starts is None:
            return len(self.place)
        return len(self.starts) - 1

    @cached_property
    def are_decisions(self) -> bool:
        """True if all scores are 0 or 1."""
        return bool(np.isin(self.values, (0, 1)).all())

    @property
    def weighted(self) -> bool:
        """True if amounts are weights, whose sums are rounded."""
        return self.amount is not None and self.amount.dtype == np.float64

    def at(self, units: Integers) -> NDArray[Any]:
        """The rows, or weight, of some units at each value: (k,)."""
        if self.weighted:  # differences of rounded sums may be less than nothing
            return self._sum(units)
        return total_over(units, self.units, self._sum, lambda: self._all_units)

    def _sum(self, units: Integers) -> NDArray[Any]:
        entries: NDArray[Any] = units
        if self.starts is not None and len(units) <= _FEW_UNITS:
            parts = [np.arange(self.starts[unit], self.starts[unit + 1]) for unit in units]
            entries = np.concatenate([np.zeros(0, np.int64), *parts])
        elif self.starts is not None:
            mask = np.zeros(self.units, np.bool_)
            mask[units] = True
            entries = np.repeat(mask, np.diff(self.starts))
        # bincount adds floats; sums of counts are exact in them, too.
        amount = rows_or_none(self.amount, entries)
        return np.bincount(self.place[entries], amount, len(self.values))

    @cached_property
    def _all_units(self) -> NDArray[Any]:
        return np.bincount(self.place, self.amount, len(self.values))


def count_rows(score: Floats, weight: Floats | None = None) -> CountedScores:
    """Count rows in memory by their scores.

    >>> count_rows(np.array([0.5, 0.1, 0.5])).at(np.array([0, 2]))
    array([0, 2])
    """
    values, place = np.unique(score, return_inverse=True)
    return CountedScores(values, place, weight)


def count_cells(values: Floats, counts: NDArray[Any]) -> CountedScores:
    """The scores of cells with counts, or sums of weights, (k, cells) at values (k,).

    >>> count_cells(np.array([0.1, 0.5]), np.array([[1, 0], [2, 3]])).at(np.array([0, 1]))
    array([1., 5.])
    """
    cell, place = np.nonzero(counts.T)
    starts = np.searchsorted(cell, np.arange(counts.shape[1] + 1))
    return CountedScores(values, place, counts[place, cell], starts)


def representative_rows(scores: CountedScores, max_rows: int) -> tuple[Floats, Integers]:
    """Scores and units of at most about ``max_rows`` rows, in proportion to all of them."""
    if scores.starts is None or scores.amount is None:
        return scores.values[scores.place], np.arange(scores.units)
    total = float(scores.amount.sum())
    share = max_rows / total if scores.weighted else min(1.0, max_rows / total)
    lengths = np.diff(scores.starts)
    below = sums_upto(scores.amount)
    upto = np.floor((below[1:] - np.repeat(below[scores.starts[:-1]], lengths)) * share)
    first = scores.starts[:-1][lengths > 0]
    row_counts = np.diff(upto, prepend=0.0)
    row_counts[first] = upto[first]
    times = row_counts.astype(np.int64)
    unit = np.repeat(np.arange(scores.units), lengths)
    return np.repeat(scores.values[scores.place], times), np.repeat(unit, times)
