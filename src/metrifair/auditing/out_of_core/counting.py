"""Rows that are read in passes, counted into bins in bounded memory.

A first pass surveys the scores, which gives a grid: the score axis cut into bins, on a scale on which sums are safe. A
pass gives blocks of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.distribution import Booleans, Floats, Integers
from metrifair.auditing.out_of_core.bins import Bins, Counter, Scale, Steps, steps_of

Keys: TypeAlias = NDArray[np.uint64]

_SLICE = 2**16  # rows worked on at once: they stay in the processor's cache
PIECES = 2**18  # of the score axis: the lookup table that finds a score's bin
_SIGN = np.int64(-(2**63))


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


def slices(block: Block) -> Iterator[Block]:
    """A block in pieces that fit the processor's cache."""
    for start in range(0, len(block.scores), _SLICE):
        part = slice(start, start + _SLICE)
        yield Block(block.scores[part], block.cell[part], None if block.weight is None else block.weight[part])


@dataclass(frozen=True, eq=False)
class Passes:
    """Rows counted in the bins of a grid, one pass each time that they are looked at."""

    read: Pass
    grid: Grid
    most_held: ClassVar[int] = 2**20

    @property
    def scale(self) -> Scale:
        """On which positions are."""
        return self.grid.scale

    @property
    def most(self) -> int:
        """How many bins there may be."""
        return self.grid.most

    def counted(self, cells: int, *, weighted: bool) -> Bins:
        """All rows in the bins of the grid."""
        grid = self.grid
        counter = Counter(int(grid.bin_of[-1]) + 1, cells, weighted=weighted)
        for block in self.read():
            for part in slices(block):
                positions = grid.scale.positions(part.scores)
                number = grid.bin_of.take(grid.pieces(part.scores, positions), mode="clip")
                counter.add(number, positions, *part)
        return counter.bins(grid.scale)

    def recounted(self, parents: Bins, most: int) -> Bins:
        """The rows of some bins in about ``most`` finer ones.

        Heavier bins are cut into more parts, equal on the scale of the keys: cutting bit patterns comes to single
        scores after few passes, whatever their scale.
        """
        tops, parent = _cuts(parents, most)
        counter = Counter(len(tops), parents.counts.shape[1], weighted=parents.weighted)
        for block, number in self._rows_under(tops, parents.low[parent]):
            counter.add(number, self.scale.positions(block.scores), *block)
        return counter.bins(self.scale, parents, parent)

    def held(self, parents: Bins) -> Steps:
        """The rows of some bins, held in memory."""
        kept = [block for block, _ in self._rows_under(parents.high, parents.low)]
        scores, cell = np.concatenate([part.scores for part in kept]), np.concatenate([part.cell for part in kept])
        weights = [part.weight for part in kept if part.weight is not None]
        weight = np.concatenate(weights) if weights else None
        kept.clear()
        return steps_of(scores, cell, weight, parents, self.scale)

    def _rows_under(self, tops: Floats, bottoms: Floats) -> Iterator[tuple[Block, Integers]]:
        """The rows between a bottom and its top, with the number of that pair: disjoint, in ascending order."""
        for block in self._near(tops, bottoms):
            number = np.searchsorted(tops, block.scores)
            inside = (number < len(tops)) & (block.scores >= bottoms.take(number, mode="clip"))
            yield _chosen(block, inside), number[inside]

    def _near(self, tops: Floats, bottoms: Floats) -> Iterator[Block]:
        """The rows in the same pieces of the grid as some stretches: found faster than those in the stretches."""
        opened, grid = np.zeros(PIECES + 1, np.int64), self.grid
        for ends, sign, after in ((bottoms, 1, 0), (tops, -1, 1)):
            np.add.at(opened, grid.pieces(ends, grid.scale.positions(ends)) + after, sign)
        inside = np.cumsum(opened) > 0
        for block in self.read():
            for part in slices(block):
                place = grid.pieces(part.scores, grid.scale.positions(part.scores))
                near = inside.take(place, mode="clip")
                if near.any():
                    yield _chosen(part, near)


def _chosen(block: Block, which: Booleans) -> Block:
    return Block(block.scores[which], block.cell[which], None if block.weight is None else block.weight[which])


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
