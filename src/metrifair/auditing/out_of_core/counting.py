"""Scores of any number, counted into bins in bounded memory: exact at both ends of every bin.

A first pass surveys the scores, which gives a grid: the score axis cut into bins, on a scale on which sums are safe. A
pass gives blocks of rows. Every bin keeps its smallest and largest score, so that ties show as bins without width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import inf
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.distribution import Booleans, CountedScores, Floats, Integers, total_over

Keys: TypeAlias = NDArray[np.uint64]

_MOST_COUNTS = 2**21  # bins x cells
_MOST_BINS, _FEWEST_BINS = 2**16, 64
_SLICE = 2**16  # rows worked on at once: they stay in the processor's cache
PIECES = 2**18  # of the score axis: the lookup table that finds a score's bin
_SIGN = np.int64(-(2**63))
_SMALLEST_UNIT = -1000  # as a power of two: its inverse is still a number


def ordered_keys(scores: Floats) -> Keys:
    """Integers in the order of the scores: neighbouring floats have neighbouring keys, whatever their scale.

    >>> keys = ordered_keys(np.array([-1e-300, 0.0, 5e-324, 1.0, 1e300]))
    >>> keys[1:] > keys[:-1]
    array([ True,  True,  True,  True])
    """
    bits = (scores + 0.0).view(np.int64)  # + 0.0: one zero only
    return (bits ^ ((bits >> 63) | _SIGN)).view(np.uint64)


def scores_of_keys(keys: Keys) -> Floats:
    """The inverse of ``ordered_keys``.

    >>> scores_of_keys(ordered_keys(np.array([-2.5, 0.0, 1e300])))
    array([-2.5e+000,  0.0e+000,  1.0e+300])
    """
    bits = keys.view(np.int64)
    return (bits ^ (~(bits >> 63) | _SIGN)).view(np.float64)


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
class Grid:
    """Bins of about equal weight: the score axis in equal pieces, each a part of a bin.

    The pieces are equal on the scale of the scores or on that of their keys (about logarithmic), whichever tells more
    of the sample apart. Both maps never decrease, so bins are intervals.
    """

    scale: Scale
    lowest: np.uint64
    shift: np.uint64 | None  # None: equal pieces of the scale; else of the keys
    bin_of: Integers
    most: int  # bins that it may have

    def pieces(self, scores: Floats, positions: Floats) -> Integers:
        """The piece that holds each score."""
        if self.shift is None:
            return (positions * (PIECES - 1)).astype(np.int64)
        return ((ordered_keys(scores) - self.lowest) >> self.shift).view(np.int64)


def bins_for(cells: int) -> int:
    """How many bins there may be for so many cells."""
    return max(_FEWEST_BINS, min(_MOST_BINS, _MOST_COUNTS // cells))


def grid_of(sample: Floats, low: float, high: float, most: int) -> Grid:
    """A grid of at most ``most`` bins for scores between low and high, from a sample of them."""
    scale = Scale.between(low, high)
    first, last = ordered_keys(np.array([low, high]))
    shift = np.uint64(max(0, int(last - first).bit_length() - (PIECES.bit_length() - 1)))
    grids = [Grid(scale, first, kind, np.zeros(0, np.int64), most) for kind in (None, shift)]
    distinct, counts = np.unique(sample, return_counts=True)
    places = [grid.pieces(distinct, scale.positions(distinct)) for grid in grids]
    best = int(len(np.unique(places[1])) > 1.5 * len(np.unique(places[0])))
    # A tenth of the bins is spread evenly: the sample may have missed something.
    mass = 0.9 * np.bincount(places[best], counts, PIECES) / counts.sum() + 0.1 / PIECES
    number = np.minimum(((np.cumsum(mass) - mass / 2) * most).astype(np.int64), most - 1)
    return Grid(scale, first, grids[best].shift, np.cumsum(np.diff(number, prepend=number[0]) > 0), most)


@dataclass
class Survey:
    """What the first pass learned: the range of the scores, and a sample of them spread over the whole file."""

    low: float = inf
    high: float = -inf
    rows: int = 0
    most: int = 2**17
    _step: int = 1
    _skip: int = 0
    _parts: list[Floats] = field(default_factory=list)

    def add(self, scores: Floats) -> None:
        """Take in the scores of some rows."""
        if len(scores) == 0:
            return
        self.low, self.high = min(self.low, float(scores.min())), max(self.high, float(scores.max()))
        self.rows += len(scores)
        self._parts.append(scores[self._skip :: self._step].copy())
        self._skip = (self._skip - len(scores)) % self._step
        while sum(map(len, self._parts)) > self.most:  # keep every second, and take half as many from now on
            together = np.concatenate(self._parts)
            self._parts = [together[::2]]
            self._skip += self._step * (len(together) % 2)
            self._step *= 2

    @property
    def sample(self) -> Floats:
        """Scores at equal steps through the file."""
        return np.concatenate(self._parts)


class Block(NamedTuple):
    """Some rows of a file: finite scores, the cell of each, and weights where the file has them."""

    scores: Floats
    cell: Integers
    weight: Floats | None = None


Pass: TypeAlias = Callable[[], Iterator[Block]]
"""Reads all rows once; every call begins anew."""


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


class Counter:
    """Counts blocks of rows into numbered bins."""

    def __init__(self, bins: int, cells: int, *, weighted: bool) -> None:
        self.cells = cells
        self.low, self.high = np.full(bins, np.inf), np.full(bins, -np.inf)
        self.rows = np.zeros(bins, np.int64)
        self.counts = np.zeros(bins * cells, np.float64 if weighted else np.int64)
        self.moments = np.zeros(bins * cells)

    def add(self, number: Integers, positions: Floats, block: Block) -> None:
        """Count rows, given the bin and position of each."""
        place = number * self.cells + block.cell
        np.minimum.at(self.low, number, block.scores)
        np.maximum.at(self.high, number, block.scores)
        if block.weight is None:
            np.add.at(self.counts, place, 1)
            np.add.at(self.moments, place, positions)
        else:
            np.add.at(self.rows, number, 1)
            np.add.at(self.counts, place, block.weight)
            np.add.at(self.moments, place, block.weight * positions)

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


def slices(block: Block) -> Iterator[Block]:
    """A block in pieces that fit the processor's cache."""
    for start in range(0, len(block.scores), _SLICE):
        part = slice(start, start + _SLICE)
        yield Block(block.scores[part], block.cell[part], None if block.weight is None else block.weight[part])


def counted(read: Pass, grid: Grid, cells: int, *, weighted: bool) -> Bins:
    """All rows in the bins of a grid: one pass."""
    counter = Counter(int(grid.bin_of[-1]) + 1, cells, weighted=weighted)
    for block in read():
        for part in slices(block):
            positions = grid.scale.positions(part.scores)
            number = grid.bin_of.take(grid.pieces(part.scores, positions), mode="clip")
            counter.add(number, positions, part)
    return counter.bins(grid.scale)


def _chosen(block: Block, which: Booleans) -> Block:
    return Block(block.scores[which], block.cell[which], None if block.weight is None else block.weight[which])


def _near(read: Pass, grid: Grid, tops: Floats, bottoms: Floats) -> Iterator[Block]:
    """The rows in the same pieces of the grid as some stretches: found faster than those in the stretches."""
    opened = np.zeros(PIECES + 1, np.int64)
    for ends, sign, after in ((bottoms, 1, 0), (tops, -1, 1)):
        np.add.at(opened, grid.pieces(ends, grid.scale.positions(ends)) + after, sign)
    inside = np.cumsum(opened) > 0
    for block in read():
        for part in slices(block):
            place = grid.pieces(part.scores, grid.scale.positions(part.scores))
            near = inside.take(place, mode="clip")
            if near.any():
                yield _chosen(part, near)


def recounted(read: Pass, grid: Grid, parents: Bins, most: int) -> Bins:
    """The rows of some bins in about ``most`` finer ones: one pass.

    Heavier bins are cut into more parts, equal on the scale of the keys: cutting bit patterns comes to single scores
    after few passes, whatever their scale.
    """
    tops, parent = _cuts(parents, most)
    counter = Counter(len(tops), parents.counts.shape[1], weighted=parents.weighted)
    for block, number in _rows_under(read, grid, tops, parents.low[parent]):
        counter.add(number, grid.scale.positions(block.scores), block)
    return counter.bins(grid.scale, parents, parent)


def held(read: Pass, grid: Grid, parents: Bins) -> Steps:
    """The rows of some bins, held in memory: one pass."""
    kept = [block for block, _ in _rows_under(read, grid, parents.high, parents.low)]
    scores, cell = np.concatenate([part.scores for part in kept]), np.concatenate([part.cell for part in kept])
    weights = [part.weight for part in kept if part.weight is not None]
    weight = np.concatenate(weights) if weights else None
    kept.clear()
    distinct, place = np.unique(scores, return_inverse=True)
    by_cell = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[by_cell], np.arange(parents.counts.shape[1] + 1))
    parent = np.searchsorted(parents.high, distinct)
    return Steps(
        CountedScores(distinct, place[by_cell], None if weight is None else weight[by_cell], starts),
        _gaps(distinct, distinct, grid.scale, parents, parent),
        parent,
        np.asfortranarray(_outside(parents)),
    )


def _rows_under(read: Pass, grid: Grid, tops: Floats, bottoms: Floats) -> Iterator[tuple[Block, Integers]]:
    """The rows that lie between a bottom and its top, with the number of that pair: disjoint, in ascending order."""
    for block in _near(read, grid, tops, bottoms):
        number = np.searchsorted(tops, block.scores)
        inside = (number < len(tops)) & (block.scores >= bottoms.take(number, mode="clip"))
        yield _chosen(block, inside), number[inside]


def _cuts(parents: Bins, most: int) -> tuple[Floats, Integers]:
    """The largest score that each part of each bin may hold, ascending, and the bin that it is a part of."""
    first, last = ordered_keys(parents.low), ordered_keys(parents.high)
    width = (last - first).astype(np.float64)
    share = parents.rows / parents.rows.sum()
    parts = np.minimum(np.maximum(2, share * most), width + 1).astype(np.uint64)
    parent = np.repeat(np.arange(len(parents)), parts.astype(np.int64))
    place = (np.arange(len(parent)) - np.repeat(np.cumsum(parts) - parts, parts.astype(np.int64))).astype(np.uint64)
    # Rounded down, so that the steps never pass the end; the last part takes what is left.
    one = np.uint64(1)
    step = np.maximum((last - first) // parts, one)
    tops = scores_of_keys(first[parent] + step[parent] * (place + one) - one)
    ends = np.append(parent[1:] != parent[:-1], True)
    tops[ends] = parents.high[parent[ends]]
    return tops, parent
