"""Samples as tensors: where training begins, the rows that each comparison uses of them, and batches by cell."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import accumulate, chain, compress, islice
from math import inf
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from metrifair.errors import DataError, TooFewSamples
from metrifair.problem import cells
from metrifair.problem.cells import Comparison, Dependence, Sides


@dataclass(frozen=True, eq=False)
class Samples:
    """Observations: a data set, a split, a batch or a single one alike.

    >>> some = Samples(torch.zeros(3, 2), torch.ones(3), torch.tensor([0, 1, 1]), torch.ones(3))
    >>> len(some), some.take(torch.tensor([2, 0])).cell
    (3, tensor([1, 0]))
    """

    x: Tensor  # (n, features)
    y: Tensor  # (n,): label codes or regression targets
    cell: Tensor  # (n,) integers: samples of one cell are told apart by no comparison
    weight: Tensor  # (n,): what the sample's loss counts in the mean
    value: Tensor | None = None  # (n, attributes): numbers, or codes of names; None: only groups are compared

    def __len__(self) -> int:
        return self.cell.shape[0]  # torch's own len takes ten times as long

    def take(self, rows: Tensor | slice) -> Samples:
        """The samples in these rows, in this order."""
        value = None if self.value is None else self.value[rows]
        return Samples(self.x[rows], self.y[rows], self.cell[rows], self.weight[rows], value)

    def with_weight(self, weight: Tensor) -> Samples:
        """The same samples with other loss weights."""
        return Samples(self.x, self.y, self.cell, weight, self.value)


def joined(parts: Sequence[Samples]) -> Samples:
    """All samples of the parts, one part after the other."""
    fields = ["x", "y", "cell", "weight"] + (["value"] if parts[0].value is not None else [])
    return Samples(*(torch.cat([getattr(part, field) for part in parts]) for field in fields))


@dataclass(frozen=True, eq=False)
class Batch:
    """Samples for one step, and for each comparison the rows that it may use."""

    samples: Samples
    sides: tuple[Sides, ...]  # one for each comparison


def tensor_sides(
    comparisons: Sequence[Comparison],
    cell: Tensor,
    weight: Tensor | None = None,
    *,
    drawn_from: Tensor | None = None,
) -> tuple[Sides, ...]:
    """The rows of each comparison among samples in these cells, as ``problem.cells.sides_of`` finds them."""
    source = None if drawn_from is None else drawn_from.cpu().numpy()
    found = []
    for side in cells.sides_of(comparisons, cell.cpu().numpy(), drawn_from=source):
        rows = torch.from_numpy(side.rows).to(cell.device)
        fraction = None if side.fraction is None else torch.from_numpy(side.fraction).to(cell.device)
        found.append(replace(side, rows=rows, weights=None if weight is None else weight[rows], fraction=fraction))
    return tuple(found)


def sides_at(left: Tensor, right: Tensor, weight: Tensor | None = None) -> Sides:
    """The sides whose rows are these; ``weight`` is one number per sample."""
    both = torch.cat([left, right])
    return Sides(both, (len(left),), (len(right),), None if weight is None else weight[both])


def dependence_at(dependence: Dependence, rows: Tensor, weight: Tensor | None = None) -> Sides:
    """The rows among which scores should not depend on the attribute."""
    return Sides(rows, (len(rows),), (), None if weight is None else weight[rows], dependence=dependence)


def rows_by_cell(cell: Tensor, count: int) -> list[Tensor]:
    """For each cell the rows of its samples."""
    return [torch.from_numpy(rows).to(cell.device) for rows in cells.rows_by_cell(cell.cpu().numpy(), count)]


ByCell: TypeAlias = Sequence[Sequence[Tensor]]  # of each seed, something of the rows of each cell
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


class StratifiedPasses:
    """Passes of stratified batches over the rows of several seeds: each cell has its own shuffled deck of rows.

    A cell's rows are dealt out without replacement; when fewer are left than a batch takes, they are dropped and the
    cell is shuffled anew. With ``odds`` (one weight per row of each seed's cells) rows are drawn independently of each
    other, in proportion to them. Only the shuffling is done here; what it means is looked up on the device.

    >>> rows = [torch.tensor([0, 1, 2, 3]), torch.tensor([4, 5])]
    >>> StratifiedPasses([rows], Layout((2, 1)), steps=2)([torch.Generator().manual_seed(0)])  # (seeds, steps, size)
    tensor([[[0, 1, 4],
             [3, 2, 5]]])
    """

    def __init__(
        self, rows: ByCell, plan: Layout, steps: int, *, odds: ByCell | None = None, device: torch.device | str = "cpu"
    ) -> None:
        self.device, counts = torch.device(device), [count for count in plan.counts if count]
        self._odds = None if odds is None else [[*compress(seed, plan.counts)] for seed in odds]
        own = {id(seed): [*compress(seed, plan.counts)] for seed in rows}  # often the same of all seeds
        starts = accumulate(map(len, chain(*own.values())), initial=0)
        first = {seed: list(islice(starts, len(counts))) for seed in own}
        decks = [list(map(len, own[id(seed)])) if odds is None else [steps * n for n in counts] for seed in rows]
        self._lengths, dealt = zip(*[_shuffles(deck, counts, steps) for deck in decks], strict=True)
        begins = torch.tensor([*accumulate(map(sum, self._lengths), initial=0)])
        places = torch.stack(dealt) + begins[:-1].view(-1, 1, 1)
        of_cards = torch.tensor([first[id(seed)] for seed in rows]).repeat_interleave(torch.tensor(counts), 1)
        self._table = torch.cat([*chain(*own.values())]).to(self.device)
        kind = torch.int32 if max(int(begins[-1]), len(self._table)) < 2**31 else torch.int64
        self._places = places.to(self.device, kind)  # (seeds, steps, size): of a batch's cards in all shuffles
        self._first = of_cards.unsqueeze(1).to(self.device, kind)  # (seeds, 1, size): of their cell's rows in the table
        many = self.device.type == "cuda" and int(begins[-1]) >= _WORTH_THREADS
        self._threads = ThreadPoolExecutor(min(len(rows), os.cpu_count() or 1, _THREADS)) if many else None

    def __call__(self, generators: Sequence[torch.Generator]) -> Tensor:
        """The rows of the next pass of every seed: (seeds, steps, size)."""
        lengths = [*chain(*self._lengths)]
        cards = torch.empty(sum(lengths), dtype=torch.int32, pin_memory=self.device.type == "cuda")
        shuffles = iter(cards.split(lengths))  # all at once: a slice for each would take as long as its shuffling
        own = [list(islice(shuffles, len(of_seed))) for of_seed in self._lengths]
        each = map if self._threads is None else self._threads.map
        list(each(self._shuffle, zip(range(len(own)), own, generators, strict=True)))
        cards = cards.to(self.device, non_blocking=True).index_select(0, self._places.view(-1))
        chosen = cards.view(self._places.shape) + self._first
        return self._table.index_select(0, chosen.view(-1)).view(chosen.shape)

    def _shuffle(self, of_seed: tuple[int, list[Tensor], torch.Generator]) -> None:
        seed, shuffles, generator = of_seed
        for place, (length, cards) in enumerate(zip(self._lengths[seed], shuffles, strict=True)):
            if self._odds is None:
                torch.randperm(length, generator=generator, out=cards)
            else:
                cards.copy_(torch.multinomial(self._odds[seed][place], length, replacement=True, generator=generator))


def _shuffles(decks: Sequence[int], counts: Sequence[int], steps: int) -> tuple[list[int], Tensor]:
    """How many cards each shuffle has, one after the other; and where among them those of each batch (steps, size) are.

    >>> _shuffles([5, 2], [2, 1], 3)  # 5 cards, 2 a batch, and again from the third batch on; 2 cards, one a batch
    ([5, 5, 2, 2], tensor([[ 0,  1, 10],
            [ 2,  3, 11],
            [ 5,  6, 12]]))
    """
    lengths: list[int] = []
    places, batch = [], torch.arange(steps)
    for deck, count in zip(decks, counts, strict=True):
        first = sum(lengths) + batch // (deck // count) * deck + batch % (deck // count) * count
        places.append(first.unsqueeze(1) + torch.arange(count))
        lengths += [deck] * -(-steps // (deck // count))
    return lengths, torch.cat(places, 1)


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
    return Batch(samples, tensor_sides(comparisons, samples.cell, drawn_from=samples.cell))
