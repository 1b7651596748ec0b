"""The counts of an audit state: entries by cell and bin of a fixed grid, which can be added in any
order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.measure.bins import (
    BinCounter,
    BinnedScores,
    Entries,
    Products,
    Scale,
    bins_for,
)
from metrifair.support.arrays import Floats, Integers, distinct_codes

_ALL_BINS = 2**23  # cells x bins, of which all bins of the grid are kept
STATE_BINS = 2**16  # at most, and one more for the end of the range
MOST_ATOMS = 2**12  # maximum number of distinct scores that are entries one by one
FINE = 28  # bits of a position within its bin: sums of integers are the same in any order
MOST_ROWS_OF_STATES = 2**34  # maximum: the sum of their positions must fit into an integer
_PARTS = (
    "cell",
    "bin",
    "low",
    "high",
    "rows",
    "within",
    "weight",
    "moment",
    "share",
    "products",
    "overlaps",
)
_NONE = partial(np.zeros, 0)


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
        return cls(scale, int(np.floor(np.log2(STATE_BINS / end))))

    def places(self, scores: Floats) -> tuple[Integers, Integers]:
        """The bin of each score, and its place within the bin, in units of 2^-28 bins."""
        scaled = np.ldexp(self.scale.positions(scores), self.power)
        number = np.floor(scaled)
        # in operations that every engine supports
        within = np.floor(np.ldexp(scaled - number, FINE) + 0.5)
        return number.astype(np.int64), within.astype(np.int64)

    def lower_ends(self, bins: Integers) -> Floats:
        """The smallest score that each bin can contain."""
        return np.asarray(
            self.scale.low + np.ldexp(bins.astype(np.float64), -self.power) / self.scale.inverse
        )

    def moments(self, bins: Integers, rows: Integers, within: Integers) -> Floats:
        """Sums of positions, from bins and the sums of places within them."""
        return np.asarray(
            np.ldexp(
                bins * rows.astype(np.float64) + np.ldexp(within.astype(np.float64), -FINE),
                -self.power,
            )
        )


@dataclass(frozen=True, eq=False)
class StateCounts:
    """The counts: entries in ascending order of cell, bin and score.

    Up to ``MOST_ATOMS`` distinct scores, each score is an entry (``exact``); otherwise, each bin is
    one. This depends on all scores together, not on their order.
    """

    cell: Integers
    bin: Integers
    low: Floats
    high: Floats
    rows: Integers
    within: Integers  # the sum of places within the bin
    weight: Floats  # sums of weights, and of (weight x position); empty if rows have none
    moment: Floats
    exact: bool = True
    # sums of the group's probability; empty if groups are known
    share: Floats = field(default_factory=_NONE)
    # (entries, groups): sums of (weight x weight in another group)
    products: Floats = field(default_factory=_NONE)
    # (entries, groups): sums of (weight x probability of another group); empty without weights,
    # where they are ``products``
    overlaps: Floats = field(default_factory=_NONE)

    @classmethod
    def of_rows(
        cls,
        grid: StateGrid,
        scores: Floats,
        cell: Integers,
        weight: Floats | None,
        **by_probability: Any,
    ) -> StateCounts:
        """The counts of rows; with probabilities, further sums of each row in the group of its
        cell.
        """
        bins, within = grid.places(scores)
        if weight is None:
            weight = np.zeros(0)
        moment = weight
        if len(weight):
            moment = weight * grid.scale.positions(scores)
        ones = np.ones(len(scores), np.int64)
        return cls(
            cell,
            bins,
            scores,
            scores,
            ones,
            within,
            weight,
            moment,
            **by_probability,
        ).grouped()

    @property
    def size(self) -> NDArray[Any]:
        """The number of rows of each entry; the expected number if groups have probabilities."""
        if len(self.share):
            return self.share
        return self.rows

    def grouped(self) -> StateCounts:
        """Entries of the same cell and score, or of the same cell and bin, as one."""
        if not len(self.cell):
            return self
        exact = self.exact and len(np.unique(self.low)) <= MOST_ATOMS
        keys: list[NDArray[Any]] = [self.bin, self.cell]
        if exact:
            keys.insert(0, self.low)
        order = np.lexsort([self.low, *keys])
        changes = np.logical_or.reduce([np.diff(key[order]) != 0 for key in keys])
        starts = np.flatnonzero(np.append(True, changes))

        def summed(part: np.ndarray) -> np.ndarray:
            if len(part):
                return np.add.reduceat(part[order], starts)
            return part

        return StateCounts(
            self.cell[order][starts],
            self.bin[order][starts],
            np.minimum.reduceat(self.low[order], starts),
            np.maximum.reduceat(self.high[order], starts),
            summed(self.rows),
            summed(self.within),
            summed(self.weight),
            summed(self.moment),
            exact,
            summed(self.share),
            summed(self.products),
            summed(self.overlaps),
        )

    def merged(self, other: StateCounts) -> StateCounts:
        """The counts of both, whose cells have the same numbers."""
        parts = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _PARTS
        }
        return StateCounts(**parts, exact=self.exact and other.exact).grouped()

    def renumbered(self, cell: Integers) -> StateCounts:
        """The same counts with renumbered cells, without those whose new number is -1."""
        keep = cell[self.cell] >= 0
        parts = {name: getattr(self, name) for name in _PARTS} | {"cell": cell[self.cell]}
        some = {name: part[keep] if len(part) else part for name, part in parts.items()}
        return StateCounts(**some, exact=self.exact).grouped()

    def binned(self, grid: StateGrid, cells: int) -> BinnedScores:
        """All rows in bins; very many cells have fewer bins."""
        max_bins = bins_for(cells)
        weighted = len(self.weight) > 0
        place: np.ndarray = self.bin
        if self.exact:
            place = distinct_codes(self.low)
        if self.exact and int(place.max()) >= max_bins:
            place = self.bin
        if cells * STATE_BINS <= _ALL_BINS:
            max_bins = max(max_bins, STATE_BINS + 1)
        while len(np.unique(place)) > max_bins:
            place = place >> 1
        distinct, number = np.unique(place, return_inverse=True)
        counter = BinCounter(len(distinct), cells, weighted=weighted)
        moment = self.moment
        if not weighted:
            moment = grid.moments(self.bin, self.rows, self.within)
        entries = Entries(
            self.rows,
            self.low,
            self.high,
            moment,
            self.weight if weighted else None,
        )
        counter.add(number.ravel(), self.cell, entries)
        products = None
        if len(self.products):
            products = Products(self.cell, number.ravel(), self.products)
        rounding = 2.0 ** -(FINE + 1 + grid.power)
        return BinnedScores(
            counter.bins(grid.scale),
            position_error=rounding,
            products=products,
            overlaps=self._overlaps_by_cell(cells),
        )

    def _overlaps_by_cell(self, cells: int) -> Floats | None:
        """Sums of weight x probability in the cell's group x probability in every group; None
        if groups are known.
        """
        by_entry = self.products
        if len(self.overlaps):
            by_entry = self.overlaps
        if not len(by_entry):
            return None
        sums = np.zeros((cells, by_entry.shape[1]))
        np.add.at(sums, self.cell, by_entry)
        return sums
