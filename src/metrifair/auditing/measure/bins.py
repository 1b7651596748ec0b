"""Scores of any number, counted into bins: exact at both ends of every bin, for every source.

Every bin keeps its smallest and largest score, so that ties show as bins without width. The rows of
tables and files are counted where they are, and fill a counter of bins.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.measure.counted_scores import total_over
from metrifair.support.arrays import Booleans, Floats, Integers

_MOST_COUNTS = 2**21  # bins x cells
_MOST_BINS = 2**16
_FEWEST_BINS = 64
_SMALLEST_UNIT = -1000  # as a power of two: its inverse is still a number


def bins_for(cells: int) -> int:
    """The maximum number of bins for so many cells."""
    return max(_FEWEST_BINS, min(_MOST_BINS, _MOST_COUNTS // cells))


class Scale(NamedTuple):
    """Scores as positions from 0 to about 1, whose sums neither overflow nor lose precision
    beside an offset.
    """

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
    """Counts (or sums of weights) of every cell in disjoint bins, in ascending order. All rows are
    in one of them.

    ``moments`` are the sums of (weight x position). Positions, and so ``moments`` and ``gap``, are
    on the scale.
    """

    scale: Scale
    low: Floats  # (k,) the smallest and largest score in each bin
    high: Floats
    rows: Integers
    counts: NDArray[Any]  # (k, cells)
    moments: Floats

    def __post_init__(self) -> None:
        for name in (
            "counts",
            "moments",
        ):  # column by column: that is how they are summed
            object.__setattr__(self, name, np.asfortranarray(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def before(self) -> NDArray[Any]:
        """The counts below each bin: (k, cells)."""
        return np.asfortranarray(np.cumsum(self.counts, axis=0) - self.counts)

    @cached_property
    def gap(self) -> Floats:
        """The empty stretch up to the next bin."""
        return np.append(
            self.scale.positions(self.low[1:]) - self.scale.positions(self.high[:-1]),
            0.0,
        )

    def total(self, field: str, cells: Integers) -> Floats:
        """The sum of ``before``, ``counts`` or ``moments`` over some cells, by bin."""
        values: Floats = getattr(self, field)
        return total_over(
            cells,
            values.shape[1],
            lambda some: values[:, some].sum(1),
            lambda: self._all_cells[field],
        )

    @cached_property
    def _all_cells(self) -> dict[str, Floats]:
        return {field: getattr(self, field).sum(1) for field in ("before", "counts", "moments")}

    @property
    def weighted(self) -> bool:
        """True if counts are sums of weights."""
        return bool(self.counts.dtype == np.float64)

    @property
    def single(self) -> Booleans:
        """True if a bin contains one distinct score."""
        return np.equal(self.low, self.high)

    def replaced(self, places: Integers, parts: Sequence[Bins]) -> Bins:
        """These bins, some of them replaced by others that contain the same rows."""
        together = {}
        for name in ("low", "high", "rows", "counts", "moments"):
            kept = np.delete(getattr(self, name), places, axis=0)
            together[name] = np.concatenate([kept, *(getattr(part, name) for part in parts)])
        order = np.argsort(together["low"], kind="stable")
        return Bins(
            self.scale,
            **{name: values[order] for name, values in together.items()},
        )


class Entries(NamedTuple):
    """Counts made elsewhere: one entry for each combination of cell and bin that has rows."""

    rows: Integers
    low: Floats
    high: Floats
    moment: Floats  # the sum of (weight x position)
    weight: Floats | None = None


class BinCounter:
    """Adds up counts by bin and cell."""

    def __init__(self, bins: int, cells: int, *, weighted: bool) -> None:
        self.cells = cells
        self.low = np.full(bins, np.inf)
        self.high = np.full(bins, -np.inf)
        self.rows = np.zeros(bins, np.int64)
        self.counts = np.zeros(bins * cells, np.float64 if weighted else np.int64)
        self.moments = np.zeros(bins * cells)

    def add(self, number: Integers, cell: Integers, entries: Entries) -> None:
        """Add entries, given the bin and cell of each."""
        place = number * self.cells + cell
        np.minimum.at(self.low, number, entries.low)
        np.maximum.at(self.high, number, entries.high)
        np.add.at(self.rows, number, entries.rows)
        np.add.at(
            self.counts,
            place,
            entries.rows if entries.weight is None else entries.weight,
        )
        np.add.at(self.moments, place, entries.moment)

    def bins(self, scale: Scale) -> Bins:
        """The bins that contain rows."""
        used = np.flatnonzero(self.rows)
        counts = self.counts.reshape(-1, self.cells)[used]
        moments = self.moments.reshape(-1, self.cells)[used]
        return Bins(
            scale,
            self.low[used],
            self.high[used],
            self.rows[used],
            counts,
            moments,
        )


class Products(NamedTuple):
    """Sums over rows of the product of their weights in two groups, one of which is the group of a
    cell.

    Entries are combinations of cell and bin. If groups have probabilities, errors are computed from
    these sums.
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
    """All rows in bins."""

    bins: Bins
    position_error: float = 0.0  # by which positions were rounded before they were added up
    products: Products | None = None  # None: groups are known
    # (cells, groups): sums of weight x probability x probability of another group
    overlaps: Floats | None = None
