"""The counts of an audit state: entries by cell and bin of a fixed grid, which add up in any order to the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from metrifair.auditing.distribution import Floats, Integers
from metrifair.auditing.out_of_core.bins import Bins, Counter, Entries, Scale, bins_for

BINS = 2**16  # at most, and one more for the end of the range
MOST_ATOMS = 2**12  # distinct scores up to which each is an entry of its own
FINE = 28  # bits of a position within its bin: sums of integers are the same in any order
MOST_ROWS = 2**34  # whose sum of positions an integer holds


class StateGrid(NamedTuple):
    """Bins of equal width, by a power of two, from one end of a range to the other."""

    scale: Scale
    power: int

    @classmethod
    def between(cls, low: float, high: float) -> StateGrid:
        """The finest grid of at most 2^16 bins, and one for the end.

        >>> StateGrid.between(0.0, 1.0).places(np.array([0.0, 0.5, 1.0]))[0]
        array([    0, 32768, 65536])
        """
        scale = Scale.between(low, high)
        end = float(scale.positions(np.array([high]))[0])
        return cls(scale, int(np.floor(np.log2(BINS / end))))

    def places(self, scores: Floats) -> tuple[Integers, Integers]:
        """The bin of each score, and where in it the score lies, in units of 2^-28 bins."""
        scaled = np.ldexp(self.scale.positions(scores), self.power)
        number = np.floor(scaled)
        within = np.floor(np.ldexp(scaled - number, FINE) + 0.5)  # as every engine can say it
        return number.astype(np.int64), within.astype(np.int64)

    def moments(self, bins: Integers, rows: Integers, within: Integers) -> Floats:
        """Sums of positions, from bins and the sums of places within them."""
        return np.asarray(
            np.ldexp(bins * rows.astype(np.float64) + np.ldexp(within.astype(np.float64), -FINE), -self.power)
        )


@dataclass(frozen=True, eq=False)
class StateCounts:
    """What was counted: entries in ascending order of cell, bin and score.

    While there are few distinct scores, each of them is an entry (``exact``); then each bin is one. Which of the two
    depends on all scores together, not on the order in which they came.
    """

    cell: Integers
    bin: Integers
    low: Floats
    high: Floats
    rows: Integers
    within: Integers  # the sum of places within the bin
    weight: Floats  # sums of weights, and of (weight x position); empty where rows have none
    moment: Floats
    exact: bool = True

    @classmethod
    def of_rows(cls, grid: StateGrid, scores: Floats, cell: Integers, weight: Floats | None) -> StateCounts:
        """The counts of rows."""
        bins, within = grid.places(scores)
        none = np.zeros(0)
        moment = none if weight is None else weight * grid.scale.positions(scores)
        ones = np.ones(len(scores), np.int64)
        found = cls(cell, bins, scores, scores, ones, within, none if weight is None else weight, moment)
        return found.grouped()

    def grouped(self) -> StateCounts:
        """Entries of the same cell and score, or of the same cell and bin, as one."""
        exact = self.exact and len(np.unique(self.low)) <= MOST_ATOMS
        keys = [self.low, self.bin, self.cell] if exact else [self.bin, self.cell]
        order = np.lexsort([self.low, *keys])
        first = np.append(True, np.logical_or.reduce([np.diff(key[order]) != 0 for key in keys]))[: len(order)]
        starts = np.flatnonzero(first)

        def summed(part: np.ndarray) -> np.ndarray:
            return np.add.reduceat(part[order], starts) if len(part) and len(starts) else part

        return StateCounts(
            self.cell[order][starts],
            self.bin[order][starts],
            np.minimum.reduceat(self.low[order], starts) if len(starts) else self.low,
            np.maximum.reduceat(self.high[order], starts) if len(starts) else self.high,
            summed(self.rows),
            summed(self.within),
            summed(self.weight),
            summed(self.moment),
            exact,
        )

    def joined(self, other: StateCounts) -> StateCounts:
        """The counts of both, whose cells have the same numbers."""
        parts = [
            np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("cell", "bin", "low", "high", "rows", "within", "weight", "moment")
        ]
        cell, bins, low, high, rows, within, weight, moment = parts
        both = self.exact and other.exact
        return StateCounts(cell, bins, low, high, rows, within, weight, moment, both).grouped()

    def renumbered(self, cell: Integers) -> StateCounts:
        """The same with other numbers of the cells, and without those whose number is -1."""
        kept = cell[self.cell] >= 0
        weight, moment = (part[kept] if len(part) else part for part in (self.weight, self.moment))
        return StateCounts(
            cell[self.cell][kept],
            self.bin[kept],
            self.low[kept],
            self.high[kept],
            self.rows[kept],
            self.within[kept],
            weight,
            moment,
            self.exact,
        ).grouped()

    def bins(self, grid: StateGrid, cells: int, *, weighted: bool) -> Bins:
        """All rows in bins; fewer of them where there are very many cells."""
        most = bins_for(cells)
        place: np.ndarray = np.unique(self.low, return_inverse=True)[1] if self.exact else self.bin
        if self.exact and int(place.max()) >= most:
            place = self.bin
        while len(np.unique(place)) > max(most, BINS + 1 if cells * BINS <= 2**23 else 0):
            place = place >> 1
        distinct, number = np.unique(place, return_inverse=True)
        counter = Counter(len(distinct), cells, weighted=weighted)
        moment = self.moment if weighted else grid.moments(self.bin, self.rows, self.within)
        entries = Entries(self.rows, self.low, self.high, moment, self.weight if weighted else None)
        counter.add_counted(number.ravel(), self.cell, entries)
        return counter.bins(grid.scale)
