"""Scores of any number, counted into bins: exact at both ends of every bin, for every source.

Every bin keeps its smallest and largest score, so that ties show as bins without width. Rows of files are counted here
(counting), rows of tables where they are (tables): both fill a ``Counter``, and can refine some bins. The
counts of an audit state are entries by cell and bin of a fixed grid, which can be added in any order.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.distribution import CountedScores, total_over
from metrifair.support.arrays import Booleans, Floats, Integers

_MOST_COUNTS = 2**21  # bins x cells
_MOST_BINS, _FEWEST_BINS = 2**16, 64
_SMALLEST_UNIT = -1000  # as a power of two: its inverse is still a number


def bins_for(cells: int) -> int:
    """The maximum number of bins for so many cells."""
    return max(_FEWEST_BINS, min(_MOST_BINS, _MOST_COUNTS // cells))


class Scale(NamedTuple):
    """Scores as positions from 0 to about 1, whose sums neither overflow nor lose precision beside an offset."""

    low: float
    inverse: float  # of a power of two, the unit

    @classmethod
    def between(cls, low: float, high: float) -> Self:
        """The scale of scores from ``low`` to ``high``.

        >>> Scale.between(10.0, 13.0).positions(np.array([10.0, 13.0]))
        array([0.  , 0.75])
        """
        exponent = int(np.frexp(high / 2 - low / 2)[1]) + 1
        return cls(low, float(np.ldexp(1.0, -max(exponent, _SMALLEST_UNIT))))

    def positions(self, scores: Floats) -> Floats:
        """The positions of scores on the scale, in the same order."""
        return scores * self.inverse - self.low * self.inverse


@dataclass(frozen=True, eq=False)
class Bins:
    """Counts (or sums of weights) of every cell in disjoint bins, in ascending order.

    ``gap`` is the empty stretch up to the next bin, ``before`` the counts below a bin, and ``moments`` the sums of
    (weight x position). Positions, and so ``gap`` and ``moments``, are on the grid's scale.
    """

    low: Floats  # (k,) the smallest and largest score in each bin
    high: Floats
    gap: Floats
    rows: Integers
    before: NDArray[Any]  # (k, cells)
    counts: NDArray[Any]
    moments: Floats

    def __post_init__(self) -> None:
        for name in ("before", "counts", "moments"):  # column by column: that is how they are summed
            object.__setattr__(self, name, np.asfortranarray(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.low)

    def total(self, field: str, cells: Integers) -> Floats:
        """The sum of ``before``, ``counts`` or ``moments`` over some cells, by bin."""
        values: Floats = getattr(self, field)
        return total_over(cells, values.shape[1], lambda some: values[:, some].sum(1), lambda: self._all_cells[field])

    @cached_property
    def _all_cells(self) -> dict[str, Floats]:
        return {field: getattr(self, field).sum(1) for field in ("before", "counts", "moments")}

    def __getitem__(self, selected: Any) -> Bins:
        return Bins(*(getattr(self, field.name)[selected] for field in fields(self)))

    @property
    def weighted(self) -> bool:
        """True if counts are sums of weights."""
        return bool(self.counts.dtype == np.float64)

    @property
    def single(self) -> Booleans:
        """True if a bin contains one distinct score."""
        return np.equal(self.low, self.high)


@dataclass(frozen=True, eq=False)
class Steps:
    """Rows in memory, with exact counts up to each of their distinct scores.

    ``bin`` is the bin of a score, ``outside`` the count below a bin that is in none of the earlier bins in memory.
    """

    scores: CountedScores  # of the rows, by cell
    gap: Floats  # (k,) the empty stretch up to the next score, on the grid's scale
    bin: Integers  # (k,)
    outside: NDArray[Any]  # (bins, cells)

    def __len__(self) -> int:
        return len(self.gap)

    def upto(self, cells: Integers, counts: NDArray[Any]) -> NDArray[Any]:
        """Rows (or weight) of some cells up to each score; ``counts`` are those of the rows in memory at each score."""
        below = total_over(
            cells, self.outside.shape[1], lambda some: self.outside[:, some].sum(1), lambda: self._all_cells
        )
        return np.asarray(np.cumsum(counts) + below[self.bin])

    @cached_property
    def _all_cells(self) -> NDArray[Any]:
        return np.asarray(self.outside.sum(1))


def join_bins(first: Bins, second: Bins) -> Bins:
    """The bins of both, in ascending order."""
    together = [np.concatenate([getattr(first, field.name), getattr(second, field.name)]) for field in fields(Bins)]
    return Bins(*together)[np.argsort(together[0], kind="stable")]


class Entries(NamedTuple):
    """Counts made elsewhere: one entry for each combination of cell and bin that has rows."""

    rows: Integers
    low: Floats
    high: Floats
    moment: Floats  # the sum of (weight x position)
    weight: Floats | None = None


class Counter:
    """Counts rows into numbered bins, one by one or from entries."""

    def __init__(self, bins: int, cells: int, *, weighted: bool) -> None:
        self.cells = cells
        self.low, self.high = np.full(bins, np.inf), np.full(bins, -np.inf)
        self.rows = np.zeros(bins, np.int64)
        self.counts = np.zeros(bins * cells, np.float64 if weighted else np.int64)
        self.moments = np.zeros(bins * cells)

    def add(
        self, number: Integers, positions: Floats, scores: Floats, cell: Integers, weight: Floats | None = None
    ) -> None:
        """Count rows, given the bin and position of each."""
        place = number * self.cells + cell
        np.minimum.at(self.low, number, scores)
        np.maximum.at(self.high, number, scores)
        if weight is None:
            np.add.at(self.counts, place, 1)
            np.add.at(self.moments, place, positions)
        else:
            np.add.at(self.rows, number, 1)
            np.add.at(self.counts, place, weight)
            np.add.at(self.moments, place, weight * positions)

    def add_entries(self, number: Integers, cell: Integers, entries: Entries) -> None:
        """Add rows that were counted before, by bin and cell."""
        place = number * self.cells + cell
        np.minimum.at(self.low, number, entries.low)
        np.maximum.at(self.high, number, entries.high)
        np.add.at(self.rows, number, entries.rows)
        np.add.at(self.counts, place, entries.rows if entries.weight is None else entries.weight)
        np.add.at(self.moments, place, entries.moment)

    def bins(self, scale: Scale, parents: Bins | None = None, parent: Integers | None = None) -> Bins:
        """The bins that contain rows; ``parents`` are the same rows in fewer bins, ``parent`` maps bins to them."""
        counts = self.counts.reshape(-1, self.cells)
        rows = self.rows if self.counts.dtype == np.float64 else counts.sum(1)
        used = np.flatnonzero(rows)
        low, high, counts = self.low[used], self.high[used], counts[used]
        before = np.cumsum(counts, axis=0) - counts
        if parents is None or parent is None:
            gap = _gaps(low, high, scale)
        else:
            gap = _gaps(low, high, scale, parents, parent[used])
            before += _outside(parents)[parent[used]]
        return Bins(low, high, gap, rows[used], before, counts, self.moments.reshape(-1, self.cells)[used])


def _gaps(
    low: Floats, high: Floats, scale: Scale, parents: Bins | None = None, parent: Integers | None = None
) -> Floats:
    """The stretch after each bin: after the last one in a parent, that of the parent."""
    gap = np.append(scale.positions(low[1:]) - scale.positions(high[:-1]), 0.0)
    if parents is not None and parent is not None:
        last = np.append(parent[1:] != parent[:-1], True)
        gap[last] = parents.gap[parent[last]]
    return gap


def _outside(parents: Bins) -> NDArray[Any]:
    """The counts below each bin that are in none of the bins before it."""
    return np.asarray(parents.before - (np.cumsum(parents.counts, axis=0) - parents.counts))


def make_steps(scores: Floats, cell: Integers, amount: NDArray[Any] | None, parents: Bins, scale: Scale) -> Steps:
    """The scores in some bins, with the cell and the amount of each; None: one row each."""
    distinct, place = np.unique(scores, return_inverse=True)
    by_cell = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[by_cell], np.arange(parents.counts.shape[1] + 1))
    parent = np.searchsorted(parents.high, distinct)
    return Steps(
        CountedScores(distinct, place[by_cell], None if amount is None else amount[by_cell], starts),
        _gaps(distinct, distinct, scale, parents, parent),
        parent,
        np.asfortranarray(_outside(parents)),
    )


class Refiner(Protocol):
    """A source that counts rows in bins, and can refine some bins, with one pass over the rows each time."""

    @property
    def max_bins(self) -> int:
        """The maximum number of bins."""

    @property
    def most_in_memory(self) -> int:
        """The maximum number of rows in memory at the end."""

    def recount(self, parents: Bins, max_bins: int) -> Bins:
        """The rows of some bins in at most about ``max_bins`` finer ones."""

    def steps(self, parents: Bins) -> Steps:
        """The rows of some bins, each at its own score."""


class Products(NamedTuple):
    """Sums over rows of the product of their weights in two groups, one of which is the group of a cell.

    Entries are combinations of cell and bin. If groups have probabilities, errors are computed from these sums.
    """

    cell: Integers
    bin: Integers
    values: Floats  # (entries, groups)

    def at(self, cells: Integers, groups: Collection[int], bins: int) -> Floats:
        """The sums by bin over some cells and some groups."""
        inside = np.isin(self.cell, cells)
        sums = self.values[inside][:, list(groups)].sum(1)
        return np.bincount(self.bin[inside], sums, bins).astype(np.float64)


@dataclass(frozen=True, eq=False)
class BinnedScores:
    """All rows in bins, and the counter that can refine them; None if they cannot be refined."""

    bins: Bins
    scale: Scale
    refiner: Refiner | None = None
    position_error: float = 0.0  # by which positions were rounded before they were added up
    precision: float = 1e-5  # width of brackets, as a share of the range of the scores
    products: Products | None = None  # None: groups are known


BINS = 2**16  # at most, and one more for the end of the range
MOST_ATOMS = 2**12  # maximum number of distinct scores that are entries one by one
FINE = 28  # bits of a position within its bin: sums of integers are the same in any order
MOST_ROWS = 2**34  # maximum: the sum of their positions must fit into an integer
_PARTS = ("cell", "bin", "low", "high", "rows", "within", "weight", "moment", "share", "products")  # of a state
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
        return cls(scale, int(np.floor(np.log2(BINS / end))))

    def places(self, scores: Floats) -> tuple[Integers, Integers]:
        """The bin of each score, and its place within the bin, in units of 2^-28 bins."""
        scaled = np.ldexp(self.scale.positions(scores), self.power)
        number = np.floor(scaled)
        within = np.floor(np.ldexp(scaled - number, FINE) + 0.5)  # in operations that every engine supports
        return number.astype(np.int64), within.astype(np.int64)

    def moments(self, bins: Integers, rows: Integers, within: Integers) -> Floats:
        """Sums of positions, from bins and the sums of places within them."""
        return np.asarray(
            np.ldexp(bins * rows.astype(np.float64) + np.ldexp(within.astype(np.float64), -FINE), -self.power)
        )


@dataclass(frozen=True, eq=False)
class StateCounts:
    """The counts: entries in ascending order of cell, bin and score.

    Up to ``MOST_ATOMS`` distinct scores, each score is an entry (``exact``); otherwise, each bin is one. This depends
    on all scores together, not on their order.
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
    share: Floats = field(default_factory=_NONE)  # sums of the group's probability; empty if groups are known
    products: Floats = field(default_factory=_NONE)  # (entries, groups): sums of (weight x weight in another group)

    @classmethod
    def of_rows(
        cls, grid: StateGrid, scores: Floats, cell: Integers, weight: Floats | None, **by_probability: Any
    ) -> StateCounts:
        """The counts of rows; with probabilities, ``share`` and ``products`` of each row in the group of its cell."""
        bins, within = grid.places(scores)
        weight = np.zeros(0) if weight is None else weight
        moment = weight * grid.scale.positions(scores) if len(weight) else weight
        ones = np.ones(len(scores), np.int64)
        return cls(cell, bins, scores, scores, ones, within, weight, moment, **by_probability).grouped()

    @property
    def size(self) -> NDArray[Any]:
        """The number of rows of each entry; the expected number if groups have probabilities."""
        return self.share if len(self.share) else self.rows

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
            summed(self.share),
            summed(self.products),
        )

    def merged(self, other: StateCounts) -> StateCounts:
        """The counts of both, whose cells have the same numbers."""
        parts = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _PARTS}
        return StateCounts(**parts, exact=self.exact and other.exact).grouped()

    def renumbered(self, cell: Integers) -> StateCounts:
        """The same counts with renumbered cells, without those whose new number is -1."""
        keep = cell[self.cell] >= 0
        parts = {name: getattr(self, name) for name in _PARTS} | {"cell": cell[self.cell]}
        some = {name: part[keep] if len(part) else part for name, part in parts.items()}
        return StateCounts(**some, exact=self.exact).grouped()

    def binned(self, grid: StateGrid, cells: int) -> BinnedScores:
        """All rows in bins, which cannot be refined; very many cells have fewer bins."""
        max_bins, weighted = bins_for(cells), len(self.weight) > 0
        place: np.ndarray = np.unique(self.low, return_inverse=True)[1] if self.exact else self.bin
        if self.exact and int(place.max()) >= max_bins:
            place = self.bin
        while len(np.unique(place)) > max(max_bins, BINS + 1 if cells * BINS <= 2**23 else 0):
            place = place >> 1
        distinct, number = np.unique(place, return_inverse=True)
        counter = Counter(len(distinct), cells, weighted=weighted)
        moment = self.moment if weighted else grid.moments(self.bin, self.rows, self.within)
        entries = Entries(self.rows, self.low, self.high, moment, self.weight if weighted else None)
        counter.add_entries(number.ravel(), self.cell, entries)
        products = Products(self.cell, number.ravel(), self.products) if len(self.products) else None
        rounding = 2.0 ** -(FINE + 1 + grid.power)
        return BinnedScores(counter.bins(grid.scale), grid.scale, position_error=rounding, products=products)
