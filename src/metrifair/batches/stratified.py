"""Batches of a data set: a fixed number of samples of each cell, or shuffled; and epochs for all seeds of a stack."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate
from math import inf
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from metrifair.errors import DataError, TooFewSamples
from metrifair.problem.cells import Batch, Comparison, Dependence, Samples, Sides, rows_by_cell, sides_of

_THREADS, _WORTH_THREADS = 4, 2**18  # that shuffle while a device is at work, and rows from which they are faster


class Layout(NamedTuple):
    """A batch laid out by cell: how many samples of each, one cell after the other."""

    counts: tuple[int, ...]

    @property
    def size(self) -> int:
        """Samples in a batch."""
        return sum(self.counts)

    def weights(self, shares: Tensor) -> Tensor:
        """Loss weights (..., size) that undo the rounding of the counts, for cells of these shares (..., cells)."""
        counts = torch.tensor(self.counts, device=shares.device)
        per_cell = shares * self.size / counts.clamp_min(1)
        return per_cell.repeat_interleave(counts, -1)

    def sides(self, comparison: Comparison, shares: Tensor, drawn_from: Tensor | None = None) -> Sides:
        """The rows of a comparison, with weights where a side mixes several cells of these shares.

        ``drawn_from`` is how many rows of each cell (..., cells) the batch's are drawn from, without replacement.
        """
        starts = [sum(self.counts[:cell]) for cell in range(len(self.counts))]
        left, right = ([cell for cell in side if self.counts[cell]] for side in (comparison.left, comparison.right))
        cells = left + right
        blocks = [tuple(self.counts[cell] for cell in side) for side in (left, right)]
        dependence = comparison if isinstance(comparison, Dependence) else None
        rows = torch.cat([torch.arange(starts[cell], starts[cell] + self.counts[cell]) for cell in cells])
        weights, counts = None, torch.tensor([self.counts[cell] for cell in cells], device=shares.device)
        if len(cells) > (2 if dependence is None else 1):
            weights = (shares[..., cells] / counts).repeat_interleave(counts, -1)
        first, last = int(rows[0]), int(rows[-1])
        adjacent = last - first + 1 == len(rows) and bool((rows.diff() == 1).all())
        fraction = None if drawn_from is None else counts / drawn_from[..., cells].double()
        chosen = slice(first, last + 1) if adjacent else rows.to(shares.device)
        return Sides(chosen, blocks[0], blocks[1], weights, fraction, dependence)


def layout(
    sizes: Sequence[int], comparisons: Sequence[Comparison], *, size: int, least: int = 2, fewest: int | None = None
) -> Layout:
    """Cell counts of a batch: as close to proportional as integers allow, never too few to compare.

    Every cell that has samples gets at least one, every compared one ``least``, or all it has: the batch grows beyond
    ``size`` where that asks for it. A compared cell with fewer than ``fewest`` (``least`` unless given) is an error.

    >>> layout((90, 6, 4), (Comparison((1,), (2,)),), size=20).counts
    (16, 2, 2)
    """
    if size < 1:
        raise DataError(f"the batch size must be at least 1, got {size}")
    for one in comparisons:
        _check_sides(one, sizes, one.needs(least if fewest is None else fewest))
    total = sum(sizes)
    size = min(size, total)
    needed = dict.fromkeys(range(len(sizes)), 1)
    for one in comparisons:
        needed |= {cell: max(needed[cell], one.needs(least)) for cell in (*one.left, *one.right)}
    floors = [min(n, needed[cell]) for cell, n in enumerate(sizes)]
    counts = [max(floor, size * n // total) for n, floor in zip(sizes, floors, strict=True)]
    ahead = [count - size * n / total for n, count in zip(sizes, counts, strict=True)]
    while sum(counts) < size:
        cell = ahead.index(min(ahead))
        counts[cell], ahead[cell] = counts[cell] + 1, ahead[cell] + 1
    while sum(counts) > max(size, sum(floors)):
        spare = [excess if count > floor else -inf for excess, count, floor in zip(ahead, counts, floors, strict=True)]
        cell = spare.index(max(spare))
        counts[cell], ahead[cell] = counts[cell] - 1, ahead[cell] - 1
    return Layout(tuple(counts))


def _check_sides(comparison: Comparison, sizes: Sequence[int], least: int) -> None:
    for side, group in zip(comparison.sides, comparison.groups, strict=False):
        present = [sizes[cell] for cell in side if sizes[cell]]
        if not present or min(present) < least:
            count = " + ".join(map(str, present)) or "no"
            raise TooFewSamples(
                f"comparing {comparison}: group {group!r} has {count} sample(s) there, and {least} of each kind are "
                "needed; merge small groups, mark them as missing, or use estimate='rows' or 'batch'"
            )


def odds_of(weight: Tensor) -> Tensor:
    """Odds of being drawn: the weights, or even where all are zero (such samples then have loss weight zero)."""
    return weight if bool((weight > 0).any()) else torch.ones_like(weight)


class Passes:
    """Passes of stratified batches over the rows of several seeds: every cell is dealt from a shuffled deck of its own.

    A cell's rows are dealt out without replacement; when fewer are left than a batch takes, they are dropped and the
    cell is shuffled anew. With ``odds`` (one weight per row of each seed's cells) rows are drawn independently of each
    other, in proportion to them. Only the shuffling is done here; what it means is looked up on the device.

    >>> rows = [torch.tensor([0, 1, 2, 3]), torch.tensor([4, 5])]
    >>> Passes([rows], Layout((2, 1)), steps=2)([torch.Generator().manual_seed(0)])       # (seeds, steps, size)
    tensor([[[0, 1, 4],
             [3, 2, 5]]])
    """

    def __init__(
        self,
        rows: Sequence[Sequence[Tensor]],
        plan: Layout,
        steps: int,
        *,
        odds: Sequence[Sequence[Tensor]] | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        self.rows, self.steps, self.odds, self.device = rows, steps, odds, torch.device(device)
        shared = list({id(seed): seed for seed in rows}.values())  # often all seeds have the same
        place = {id(seed): number for number, seed in enumerate(shared)}
        self._cells, self._width = [], 0
        for cell, count in enumerate(plan.counts):
            if not count:
                continue
            table = torch.cat([seed[cell] for seed in shared])
            starts = [0, *accumulate(len(seed[cell]) for seed in shared)]
            kind = torch.int32 if len(table) < 2**31 else torch.int64
            first = torch.tensor([[starts[place[id(seed)]]] for seed in rows], dtype=kind, device=self.device)
            self._cells.append((cell, count, self._width, table.to(self.device), first))
            self._width += steps * count + max(len(seed[cell]) for seed in rows)
        many = self.device.type == "cuda" and len(rows) * self._width >= _WORTH_THREADS
        self._threads = ThreadPoolExecutor(min(len(rows), os.cpu_count() or 1, _THREADS)) if many else None

    def __call__(self, generators: Sequence[torch.Generator]) -> Tensor:
        """The rows of the next pass of every seed: (seeds, steps, size)."""
        seeds = len(self.rows)
        decks = torch.empty(seeds, self._width, dtype=torch.int32, pin_memory=self.device.type == "cuda")
        each = map if self._threads is None else self._threads.map
        list(each(self._shuffle, zip(range(seeds), decks, generators, strict=True)))
        decks, parts = decks.to(self.device, non_blocking=True), []
        for _, count, start, table, first in self._cells:
            chosen = decks[:, start : start + self.steps * count] + first
            parts.append(table.index_select(0, chosen.view(-1)).view(seeds, self.steps, count))
        return torch.cat(parts, 2)

    def _shuffle(self, drawn: tuple[int, Tensor, torch.Generator]) -> None:
        seed, deck, generator = drawn
        for cell, count, start, *_ in self._cells:
            needed, own = self.steps * count, len(self.rows[seed][cell])
            if self.odds is not None:
                odds = self.odds[seed][cell]
                deck[start : start + needed] = torch.multinomial(odds, needed, replacement=True, generator=generator)
                continue
            for done in range(0, needed, own // count * count):  # what is left of a shuffle the next one covers
                torch.randperm(own, generator=generator, dtype=torch.int32, out=deck[start + done : start + done + own])


def stratified(
    samples: Samples,
    comparisons: Sequence[Comparison],
    *,
    size: int,
    generator: torch.Generator,
    least: int = 2,
    replacement: bool = False,
) -> Iterator[Batch]:
    """One pass of stratified batches over a data set, with exact loss weights, laid out by cell.

    The mean penalty is the plug-in value of the data set, if that is what is estimated. As an estimate of the
    population it has that mean with replacement, without it the U-statistic. Sample weights ask for replacement, and
    rows are then drawn in proportion to them.

    Parameters
    ----------
    samples : Samples
        The data set.
    comparisons : sequence of Comparison
        What is compared.
    size : int
        Samples of a batch; it grows where every compared cell could not have ``least`` of them otherwise.
    generator : torch.Generator
        Shuffles the rows of every cell.
    least : int, default=2
        The fewest samples of every compared cell: 2 for unbiased distances, 1 for others.
    replacement : bool, default=False
        Draw rows independently of each other, in proportion to their weights.

    Yields
    ------
    Batch
        Samples laid out by cell, with loss weights that undo the rounding of their counts.

    Raises
    ------
    TooFewSamples
        If a compared cell has fewer than ``least`` rows.
    DataError
        If size is below 1, or rows have unequal weights and ``replacement`` is not set.

    Examples
    --------
    >>> data = Samples(torch.zeros(6, 1), torch.zeros(6), torch.tensor([0, 0, 0, 0, 1, 1]), torch.ones(6))
    >>> batch, = stratified(data, [Comparison((0,), (1,))], size=4, generator=torch.Generator())
    >>> batch.samples.cell, batch.samples.weight            # cell 0 is 4/6 of the data and 2/4 of the batch
    (tensor([0, 0, 1, 1]), tensor([1.3333, 1.3333, 0.6667, 0.6667]))
    """
    uneven = bool((samples.weight != samples.weight[0]).any())
    if uneven and not replacement:
        raise DataError("samples with unequal weights are drawn with replacement; pass replacement=True")
    named = [cell for one in comparisons for cell in (*one.left, *one.right)]
    rows = rows_by_cell(samples.cell, max([int(samples.cell.max()), *named]) + 1)
    plan = layout([len(own) for own in rows], comparisons, size=size, least=least)
    weight = samples.weight.double()
    shares = torch.stack([weight[own].sum() for own in rows]) / weight.sum()
    loss_weight = plan.weights(shares).to(samples.weight.dtype) * weight.mean().to(samples.weight.dtype)
    sizes = None if replacement else torch.tensor([len(own) for own in rows])
    sides = tuple(plan.sides(one, shares, sizes) for one in comparisons)
    odds = [odds_of(weight[own]) for own in rows] if replacement else None
    passes = Passes([rows], plan, len(samples) // plan.size, odds=None if odds is None else [odds])
    for chosen in passes([generator])[0]:
        yield Batch(samples.take(chosen).with_weight(loss_weight), sides)


def shuffled(
    samples: Samples, comparisons: Sequence[Comparison], *, size: int, generator: torch.Generator
) -> Iterator[Batch]:
    """One shuffled pass in batches of a fixed size; a group may be missing in some, and estimates are biased.

    Parameters
    ----------
    samples : Samples
        The data set.
    comparisons : sequence of Comparison
        What is compared.
    size : int
        Samples of a batch; those left over at the end of the pass make no batch.
    generator : torch.Generator
        Shuffles the rows.

    Yields
    ------
    Batch
        The samples of a batch, and their rows on the sides of every comparison.

    Examples
    --------
    >>> data = Samples(torch.zeros(5, 1), torch.zeros(5), torch.tensor([0, 0, 0, 1, 1]), torch.ones(5))
    >>> [len(batch.samples) for batch in shuffled(data, [], size=2, generator=torch.Generator())]
    [2, 2]
    """
    order = torch.randperm(len(samples), generator=generator)
    for chosen in order.split(size):
        if len(chosen) == size:
            taken = samples.take(chosen)
            yield Batch(taken, sides_of(comparisons, taken.cell, drawn_from=samples.cell))


def whole(samples: Samples, comparisons: Sequence[Comparison]) -> Batch:
    """All samples as one batch.

    Parameters
    ----------
    samples : Samples
        The data set.
    comparisons : sequence of Comparison
        What is compared.

    Returns
    -------
    Batch
        The samples, and their rows on the sides of every comparison.

    Examples
    --------
    >>> data = Samples(torch.zeros(3, 1), torch.zeros(3), torch.tensor([0, 1, 0]), torch.ones(3))
    >>> whole(data, [Comparison((0,), (1,))]).sides[0].rows          # those of cell 0, then those of cell 1
    tensor([0, 2, 1])
    """
    return Batch(samples, sides_of(comparisons, samples.cell, drawn_from=samples.cell))


class Epoch(NamedTuple):
    """The batches of one epoch."""

    rows: Tensor  # (seeds, steps, size)
    weight: Tensor  # (seeds, steps, size), or (seeds, 1, size): loss weights

    def on(self, device: torch.device, dtype: torch.dtype) -> Epoch:
        """The same on another device, which need not be waited for."""
        return Epoch(sent(self.rows, device), sent(self.weight, device).to(dtype))

    def part(self, some: slice) -> Epoch:
        """Some of the batches."""
        return Epoch(self.rows[:, some], self.weight[:, some] if self.weight.shape[1] > 1 else self.weight)


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """The same on a device, which need not be waited for."""
    if tensor.device.type == device.type:
        return tensor
    return tensor.contiguous().pin_memory().to(device, non_blocking=True)


Outputs: TypeAlias = Callable[[], Tensor]
"""What the models, as they are now, return for all rows of the data: (seeds, strengths, n)."""


class EpochSource(NamedTuple):
    """Where batches come from: the same layout for all seeds, each with its own rows and weights."""

    size: int
    sides: tuple[Sides, ...]
    draw: Callable[[Sequence[torch.Generator], Outputs], Epoch]  # one epoch; it may look at the models
    whole: bool = False  # every batch is the whole data set: computed in double precision


def stratified_epochs(
    data: Samples,
    rows: Sequence[Tensor],
    comparisons: Sequence[Comparison],
    *,
    batch_size: int,
    least: int,
    fewest: int | None = None,
    device: torch.device | str = "cpu",
) -> EpochSource:
    """Stratified batches of each seed's rows, or, where one batch holds them all, those rows every time.

    ``least`` and ``fewest`` are those of ``layout``.
    """
    cells = 1 + max(int(data.cell.max()), *(c for one in comparisons for c in one.left + one.right), 0)
    own = cells_of_seeds(data.cell, rows, cells)
    sizes = torch.tensor([[len(cell) for cell in seed] for seed in own])
    if bool(((sizes == 0).any(0) & (sizes > 0).any(0)).any()):
        raise DataError("some seeds' training rows lack a cell that others have; choose splits that hold every group")
    if max(map(len, rows)) <= batch_size:
        return _whole_epochs(data.weight.double(), own, Layout(tuple(sizes.amax(0).tolist())), comparisons)
    plan = layout(sizes.amin(0).tolist(), comparisons, size=batch_size, least=least, fewest=fewest)
    if plan.size > batch_size:
        warnings.warn(
            f"batches hold {plan.size} samples instead of {batch_size}, so that each has {least} of every group "
            "that is compared",
            stacklevel=3,
        )
    weight = data.weight.double()
    total = torch.tensor([[float(weight[cell].sum()) for cell in seed] for seed in own])
    shares = (total / total.sum(1, keepdim=True)).unsqueeze(1)  # (seeds, 1, cells)
    even = bool((weight == weight[0]).all())
    odds = None if even else [[odds_of(weight[cell]) for cell in seed] for seed in own]
    steps = max(1, min(len(part) for part in rows) // plan.size)
    loss_weight = plan.weights(shares).to(device, torch.float32)
    passes = Passes(own, plan, steps, odds=odds, device=device)

    def draw(generators: Sequence[torch.Generator], _: Outputs) -> Epoch:
        return Epoch(passes(generators), loss_weight)

    # Where weights are odds, rows are drawn with replacement, as if there were no end of them; but one row is itself.
    endless = sizes.double() if even else sizes.double().masked_fill(sizes > 1, inf)
    drawn_from = endless[0] if bool((endless == endless[0]).all()) else endless.unsqueeze(1)  # (seeds, 1, cells)
    return EpochSource(plan.size, tuple(plan.sides(one, shares, drawn_from) for one in comparisons), draw)


def cells_of_seeds(cell: Tensor, rows: Sequence[Tensor], cells: int) -> list[list[Tensor]]:
    """Each seed's rows by cell; seeds that share their rows share these lists."""
    by_rows = {id(part): [part[inside] for inside in rows_by_cell(cell[part], cells)] for part in rows}
    return [by_rows[id(part)] for part in rows]


def _whole_epochs(
    weight: Tensor, own: Sequence[Sequence[Tensor]], plan: Layout, comparisons: Sequence[Comparison]
) -> EpochSource:
    """All rows in every batch: weights then act as weights, not as odds of being drawn.

    Seeds have as many places for each cell as the one with most rows in it; a place that is left over holds a row
    once more, without weight.
    """
    seeds = [list(zip(seed, plan.counts, strict=True)) for seed in own]
    filled = [[torch.cat([cell, cell[:1].expand(n - len(cell))]) for cell, n in seed] for seed in seeds]
    rows = torch.stack([torch.cat(seed) for seed in filled])
    left_over = torch.stack([torch.cat([torch.arange(n) >= len(cell) for cell, n in seed]) for seed in seeds])
    counted = weight[rows].masked_fill(left_over, 0.0)
    cell = torch.arange(len(plan.counts)).repeat_interleave(torch.tensor(plan.counts))
    sides = sides_of(comparisons, cell, drawn_from=cell)
    if not bool((counted == counted[0, 0]).all()):
        sides = tuple(replace(side, weights=counted[:, None, side.rows]) for side in sides)
    everything = Epoch(rows.unsqueeze(1), (counted / counted.mean(1, keepdim=True)).unsqueeze(1))
    return EpochSource(plan.size, sides, lambda *_: everything, whole=True)
