"""Scores of any number, counted into bins: exact at both ends of every bin, whoever counted them.

Every bin keeps its smallest and largest score, so that ties show as bins without width. Rows of files are counted here
(counting), rows of tables where they are (tables): both fill a ``Counter``, and can look closer at some bins.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.distribution import Booleans, CountedScores, Floats, Integers, total_over

_MOST_COUNTS = 2**21  # bins x cells
_MOST_BINS, _FEWEST_BINS = 2**16, 64
_SMALLEST_UNIT = -1000  # as a power of two: its inverse is still a number


def bins_for(cells: int) -> int:
    """How many bins there may be for so many cells."""
    return max(_FEWEST_BINS, min(_MOST_BINS, _MOST_COUNTS // cells))


class Scale(NamedTuple):
    """Scores as positions from 0 to about 1: sums of them neither overflow nor lose what is small beside an offset."""

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
        """Where scores lie on the scale; ascending."""
        return scores * self.inverse - self.low * self.inverse


@dataclass(frozen=True, eq=False)
class Bins:
    """Counts (or sums of weights) of every cell in disjoint bins, in ascending order.

    ``gap`` is the empty stretch up to the next bin; ``before`` what lies below a bin; ``moments`` are sums of
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
        return total_over(cells, values.shape[1], lambda some: values[:, some].sum(1), lambda: self._everyone[field])

    @cached_property
    def _everyone(self) -> dict[str, Floats]:
        return {field: getattr(self, field).sum(1) for field in ("before", "counts", "moments")}

    def __getitem__(self, chosen: Any) -> Bins:
        return Bins(*(getattr(self, field.name)[chosen] for field in fields(self)))

    @property
    def weighted(self) -> bool:
        """True where counts are sums of weights."""
        return bool(self.counts.dtype == np.float64)

    @property
    def single(self) -> Booleans:
        """True where a bin holds one distinct score."""
        return np.equal(self.low, self.high)


@dataclass(frozen=True, eq=False)
class Steps:
    """Rows that are held in memory after all: what lies up to each of their distinct scores is exact.

    ``bin`` tells the bin that a score was in, ``outside`` what lies below a bin but in none of the bins held before it.
    """

    scores: CountedScores  # of the rows, by cell
    gap: Floats  # (k,) the empty stretch up to the next score, on the grid's scale
    bin: Integers  # (k,)
    outside: NDArray[Any]  # (bins, cells)

    def __len__(self) -> int:
        return len(self.gap)

    def upto(self, cells: Integers, counts: NDArray[Any]) -> NDArray[Any]:
        """Rows (or weight) of some cells at each score or below it, whether held or not; ``counts`` are theirs."""
        below = total_over(
            cells, self.outside.shape[1], lambda some: self.outside[:, some].sum(1), lambda: self._everyone
        )
        return np.asarray(np.cumsum(counts) + below[self.bin])

    @cached_property
    def _everyone(self) -> NDArray[Any]:
        found: NDArray[Any] = self.outside.sum(1)
        return found


def joined(first: Bins, second: Bins) -> Bins:
    """The bins of both, in ascending order."""
    together = [np.concatenate([getattr(first, field.name), getattr(second, field.name)]) for field in fields(Bins)]
    return Bins(*together)[np.argsort(together[0], kind="stable")]


class Entries(NamedTuple):
    """Rows that were counted elsewhere, by cell and bin: one entry for each of them that holds rows."""

    rows: Integers
    low: Floats
    high: Floats
    moment: Floats  # the sum of (weight x position)
    weight: Floats | None = None


class Counter:
    """Counts rows, one by one or counted before, into numbered bins."""

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

    def add_counted(self, number: Integers, cell: Integers, found: Entries) -> None:
        """Add rows that were counted before, by bin and cell."""
        place = number * self.cells + cell
        np.minimum.at(self.low, number, found.low)
        np.maximum.at(self.high, number, found.high)
        np.add.at(self.rows, number, found.rows)
        np.add.at(self.counts, place, found.rows if found.weight is None else found.weight)
        np.add.at(self.moments, place, found.moment)

    def bins(self, scale: Scale, parents: Bins | None = None, parent: Integers | None = None) -> Bins:
        """The bins that hold rows; ``parents`` are the same rows in fewer bins, ``parent`` tells which."""
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
    """What lies below each bin but in none of the bins before it."""
    outside: NDArray[Any] = parents.before - (np.cumsum(parents.counts, axis=0) - parents.counts)
    return outside


def steps_of(scores: Floats, cell: Integers, amount: NDArray[Any] | None, parents: Bins, scale: Scale) -> Steps:
    """Scores that lie in some bins, with the cell and the amount of each; None: one row each."""
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


class Finer(Protocol):
    """Whoever counted rows in bins, and can look closer at some of them, one pass over the rows each time."""

    @property
    def most(self) -> int:
        """How many bins there may be."""

    @property
    def most_held(self) -> int:
        """How many rows may be held in memory at the end."""

    def recounted(self, parents: Bins, most: int) -> Bins:
        """The rows of some bins in about ``most`` finer ones."""

    def held(self, parents: Bins) -> Steps:
        """The rows of some bins, each at its own score."""
