"""The rows of a file, read in passes and counted into bins in bounded memory: scores, cells, counts by cell.

A first pass surveys the scores, which gives a grid: the score axis cut into bins, on a scale on which sums are safe. A
pass gives blocks of rows.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.bins import BinnedScores, Bins, Counter, Scale, Steps, bins_for, make_steps
from metrifair.auditing.columns import ColumnLevels, Roles, UsedRows, levels_for, numbers, used_rows
from metrifair.auditing.decisions import at_or_above
from metrifair.auditing.files import FileTable
from metrifair.auditing.request import MOST_LEVELS
from metrifair.auditing.source import CellTable, ColumnCells
from metrifair.support.arrays import Booleans, Floats, Integers

Keys: TypeAlias = NDArray[np.uint64]

_SLICE = 2**16  # rows worked on at once: they stay in the processor's cache
PIECES = 2**18  # of the score axis: the lookup table that finds a score's bin
_SIGN = np.int64(-(2**63))


def ordered_keys(scores: Floats) -> Keys:
    """Integers in the order of the scores: neighboring floats have neighboring keys, at any scale.

    >>> keys = ordered_keys(np.array([-1e-300, 0.0, 5e-324, 1.0, 1e300]))
    >>> keys[1:] > keys[:-1]
    array([ True,  True,  True,  True])
    """
    bits = (scores + 0.0).view(np.int64)  # + 0.0: one zero only
    return (bits ^ ((bits >> 63) | _SIGN)).view(np.uint64)


def keys_to_scores(keys: Keys) -> Floats:
    """The inverse of ``ordered_keys``.

    >>> keys_to_scores(ordered_keys(np.array([-2.5, 0.0, 1e300])))
    array([-2.5e+000,  0.0e+000,  1.0e+300])
    """
    bits = keys.view(np.int64)
    return (bits ^ (~(bits >> 63) | _SIGN)).view(np.float64)


@dataclass(frozen=True, eq=False)
class Grid:
    """Bins of about equal weight: the score axis in equal pieces, each a part of a bin.

    The pieces are equal on the scale of the scores or on that of their keys (about logarithmic), whichever
    separates more of the sample. Both maps never decrease, so bins are intervals.
    """

    scale: Scale
    lowest: np.uint64
    shift: np.uint64 | None  # None: equal pieces of the scale; else of the keys
    bin_index: Integers
    max_bins: int

    def pieces(self, scores: Floats, positions: Floats) -> Integers:
        """The piece that contains each score."""
        if self.shift is None:
            return (positions * (PIECES - 1)).astype(np.int64)
        return ((ordered_keys(scores) - self.lowest) >> self.shift).view(np.int64)


def fit_grid(sample: Floats, low: float, high: float, max_bins: int) -> Grid:
    """A grid of at most ``max_bins`` bins for scores between low and high, from a sample of them."""
    scale = Scale.between(low, high)
    first, last = ordered_keys(np.array([low, high]))
    shift = np.uint64(max(0, int(last - first).bit_length() - (PIECES.bit_length() - 1)))
    grids = [Grid(scale, first, kind, np.zeros(0, np.int64), max_bins) for kind in (None, shift)]
    distinct, counts = np.unique(sample, return_counts=True)
    places = [grid.pieces(distinct, scale.positions(distinct)) for grid in grids]
    best = int(len(np.unique(places[1])) > 1.5 * len(np.unique(places[0])))
    # A tenth of the bins is spread evenly: the sample may have missed something.
    mass = 0.9 * np.bincount(places[best], counts, PIECES) / counts.sum() + 0.1 / PIECES
    number = np.minimum(((np.cumsum(mass) - mass / 2) * max_bins).astype(np.int64), max_bins - 1)
    return Grid(scale, first, grids[best].shift, np.cumsum(np.diff(number, prepend=number[0]) > 0), max_bins)


@dataclass
class Survey:
    """The result of the first pass: the range of the scores, and a sample of them spread over the whole file."""

    low: float = inf
    high: float = -inf
    rows: int = 0
    max_scores: int = 2**17
    _step: int = 1
    _skip: int = 0
    _parts: list[Floats] = field(default_factory=list)

    def add(self, scores: Floats) -> None:
        """Add the scores of some rows."""
        if len(scores) == 0:
            return
        self.low, self.high = min(self.low, float(scores.min())), max(self.high, float(scores.max()))
        self.rows += len(scores)
        self._parts.append(scores[self._skip :: self._step].copy())
        self._skip = (self._skip - len(scores)) % self._step
        while sum(map(len, self._parts)) > self.max_scores:  # keep every second score, and add half as many from now on
            together = np.concatenate(self._parts)
            self._parts = [together[::2]]
            self._skip += self._step * (len(together) % 2)
            self._step *= 2

    @property
    def sample(self) -> Floats:
        """Scores at equal steps through the file."""
        return np.concatenate(self._parts)


class Block(NamedTuple):
    """Some rows of a file: finite scores, the cell of each, and weights if the file has them."""

    scores: Floats
    cell: Integers
    weight: Floats | None = None

    def at(self, rows: slice | Booleans) -> Block:
        """Some of the rows."""
        return Block(self.scores[rows], self.cell[rows], None if self.weight is None else self.weight[rows])


Pass: TypeAlias = Callable[[], Iterator[Block]]
"""Reads all rows once; every call starts from the first row."""


def slices(block: Block) -> Iterator[Block]:
    """A block in pieces that fit the processor's cache."""
    for start in range(0, len(block.scores), _SLICE):
        yield block.at(slice(start, start + _SLICE))


@dataclass(frozen=True, eq=False)
class FilePasses:
    """Rows counted in the bins of a grid, one pass over the rows for each count."""

    read: Pass
    grid: Grid
    most_in_memory: ClassVar[int] = 2**20

    @property
    def max_bins(self) -> int:
        """The maximum number of bins."""
        return self.grid.max_bins

    def count_bins(self, cells: int, *, weighted: bool) -> Bins:
        """All rows in the bins of the grid."""
        grid = self.grid
        counter = Counter(int(grid.bin_index[-1]) + 1, cells, weighted=weighted)
        for block in self.read():
            for part in slices(block):
                positions = grid.scale.positions(part.scores)
                number = grid.bin_index.take(grid.pieces(part.scores, positions), mode="clip")
                counter.add(number, positions, *part)
        return counter.bins(grid.scale)

    def recount(self, parents: Bins, max_bins: int) -> Bins:
        """The rows of some bins in at most about ``max_bins`` finer ones.

        Heavier bins are cut into more parts, equal on the scale of the keys: cutting bit patterns reaches single
        scores after few passes, at any scale.
        """
        tops, parent = _cuts(parents, max_bins)
        counter = Counter(len(tops), parents.counts.shape[1], weighted=parents.weighted)
        for block, number in self._rows_within(tops, parents.low[parent]):
            counter.add(number, self.grid.scale.positions(block.scores), *block)
        return counter.bins(self.grid.scale, parents, parent)

    def steps(self, parents: Bins) -> Steps:
        """The rows of some bins, in memory."""
        blocks = [block for block, _ in self._rows_within(parents.high, parents.low)]
        scores, cell = np.concatenate([part.scores for part in blocks]), np.concatenate([part.cell for part in blocks])
        weights = [part.weight for part in blocks if part.weight is not None]
        weight = np.concatenate(weights) if weights else None
        blocks.clear()
        return make_steps(scores, cell, weight, parents, self.grid.scale)

    def _rows_within(self, tops: Floats, bottoms: Floats) -> Iterator[tuple[Block, Integers]]:
        """The rows between a bottom and its top, with the number of that pair: disjoint, in ascending order."""
        for block in self._near(tops, bottoms):
            number = np.searchsorted(tops, block.scores)
            inside = (number < len(tops)) & (block.scores >= bottoms.take(number, mode="clip"))
            yield block.at(inside), number[inside]

    def _near(self, tops: Floats, bottoms: Floats) -> Iterator[Block]:
        """The rows in the same pieces of the grid as some stretches: a fast superset of the rows in the stretches."""
        starts, grid = np.zeros(PIECES + 1, np.int64), self.grid
        for ends, sign, after in ((bottoms, 1, 0), (tops, -1, 1)):
            np.add.at(starts, grid.pieces(ends, grid.scale.positions(ends)) + after, sign)
        inside = np.cumsum(starts) > 0
        for block in self.read():
            for part in slices(block):
                place = grid.pieces(part.scores, grid.scale.positions(part.scores))
                near = inside.take(place, mode="clip")
                if near.any():
                    yield part.at(near)


def _cuts(parents: Bins, max_bins: int) -> tuple[Floats, Integers]:
    """The largest possible score of each part of each bin, ascending, and the bin of each part."""
    first, last = ordered_keys(parents.low), ordered_keys(parents.high)
    width = (last - first).astype(np.float64)
    share = parents.rows / parents.rows.sum()
    parts = np.minimum(np.maximum(2, share * max_bins), width + 1).astype(np.uint64)
    parent = np.repeat(np.arange(len(parents)), parts.astype(np.int64))
    place = (np.arange(len(parent)) - np.repeat(np.cumsum(parts) - parts, parts.astype(np.int64))).astype(np.uint64)
    # Rounded down, so that the steps never pass the end; the last part takes the rest.
    one = np.uint64(1)
    step = np.maximum((last - first) // parts, one)
    tops = keys_to_scores(first[parent] + step[parent] * (place + one) - one)
    ends = np.append(parent[1:] != parent[:-1], True)
    tops[ends] = parents.high[parent[ends]]
    return tops, parent


_TABLE = 2**16  # largest lookup table of combinations of levels; of more, the existing ones are searched
_MOST_COMBINATIONS = 2**63 - 1


def _sums(place: NDArray[Any], selected: Booleans, weight: Floats | None) -> Floats:
    """Rows, weight and selected weight at each place: (3, places)."""
    split, places = place.astype(np.int64) * 2 + selected, 2 * int(place.max()) + 2
    rows = np.bincount(split, minlength=places).reshape(-1, 2)
    weights = rows if weight is None else np.bincount(split, weight, places).reshape(-1, 2)
    return np.stack([rows.sum(1), weights.sum(1), weights[:, 1]]).astype(np.float64)


@dataclass
class FileRows(ColumnCells):
    """The rows of a file that can be used, as scores and cells."""

    source: FileTable
    roles: Roles
    max_groups: int = MOST_LEVELS
    levels: list[ColumnLevels] = field(default_factory=list)
    cells: list[tuple[int, ...]] = field(default_factory=list)  # codes of the key columns
    surveyed: Survey = field(default_factory=Survey)  # scores

    def __post_init__(self) -> None:
        self.levels = levels_for(self.roles, max_groups=self.max_groups)

    def cut_number(self, level: ColumnLevels) -> None:
        """Cut a number at quantiles of a sample of it."""
        self.surveyed, survey = Survey(), Survey()
        for batch in self.source.batches((level.name,)):
            values = numbers("group", level.name, batch[level.name])
            survey.add(values[np.isfinite(values)])
        level.cut_into_levels(survey.sample, None, rows=survey.rows, ends=(survey.low, survey.high))

    def survey_once(self, threshold: float) -> CellTable:
        """Read all rows once, and keep a sample of the scores."""
        tally, left_out = dict[tuple[int, ...], Floats](), collections.Counter[str]()
        precision = self.source.precision(self.roles.score)
        for scores, codes, weight, not_used, _ in self.batches():
            left_out += not_used
            if len(scores) == 0:
                continue
            self.surveyed.add(scores)
            sizes = self._sizes()
            number = _radix(codes, sizes)
            if prod(sizes) <= _TABLE:
                present_numbers, place = np.arange(prod(sizes)), number
            else:
                present_numbers, place = np.unique(number, return_inverse=True)
            sums = _sums(place, at_or_above(scores, threshold, precision), weight)
            present = np.flatnonzero(sums[0])
            keys = zip(*(code.tolist() for code in np.unravel_index(present_numbers[present], sizes)), strict=True)
            for key, new in zip(keys, sums[:, present].T, strict=True):
                tally[key] = tally.get(key, 0.0) + new
            self.check_few(len(tally))
        self.cells = sorted(tally)
        sums = np.array([tally[key] for key in self.cells]).reshape(-1, 3).T
        ends = self.surveyed.low, self.surveyed.high
        return self.cell_table(self.source.name, list(sums), ends, left_out, is_text=self.source.is_text)

    def count(self) -> BinnedScores:
        """Read all rows once more, and count them in the bins of a grid that is fitted to the survey."""
        survey = self.surveyed
        grid = fit_grid(survey.sample, survey.low, survey.high, bins_for(len(self.cells)))
        passes = FilePasses(self.read, grid)
        return BinnedScores(passes.count_bins(len(self.cells), weighted=self.weighted), grid.scale, passes)

    def _sizes(self) -> list[int]:
        sizes = [len(level.values) + 1 for level in self.levels]
        if prod(sizes) > _MOST_COMBINATIONS:
            self.check_few(prod(sizes))
        return sizes

    def read(self) -> Iterator[Block]:
        """Read all rows once more, as blocks of scores and cells."""
        sizes = self._sizes()
        existing = np.ravel_multi_index(tuple(np.array(self.cells).T), sizes)  # ascending, as the cells are
        combinations = prod(sizes)
        cell_at = np.searchsorted(existing, np.arange(combinations)) if combinations <= _TABLE else None
        for scores, codes, weight, *_ in self.batches():
            number = _radix(codes, sizes)
            yield Block(scores, np.searchsorted(existing, number) if cell_at is None else cell_at.take(number), weight)

    def batches(self) -> Iterator[UsedRows]:
        """The usable rows with a positive weight."""
        for batch in self.source.batches(self.roles.columns):
            used = used_rows(self.roles, self.levels, batch)
            if used.weight is not None and not used.weight.all():
                used = used.only(used.weight != 0)
            yield used


def _radix(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> NDArray[Any]:
    """One number for each combination of codes."""
    place = codes[0]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        place = place.astype(np.int64, copy=False) * size + code
    return place
