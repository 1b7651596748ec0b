"""Batches of a data set that hold a fixed number of samples of each cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from metrifair.errors import DataError, TooFewSamples
from metrifair.problem.samples import Batch, Comparison, Samples, Sides, rows_by_cell


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

    def sides(self, comparison: Comparison, shares: Tensor) -> Sides:
        """The rows of a comparison, with weights where a side mixes several cells of these shares."""
        starts = [sum(self.counts[:cell]) for cell in range(len(self.counts))]
        left, right = ([cell for cell in side if self.counts[cell]] for side in (comparison.left, comparison.right))
        cells = left + right
        strata = {"left": tuple(self.counts[c] for c in left), "right": tuple(self.counts[c] for c in right)}
        rows = torch.cat([torch.arange(starts[cell], starts[cell] + self.counts[cell]) for cell in cells])
        weights = None
        if len(cells) > 2:
            counts = torch.tensor([self.counts[cell] for cell in cells], device=shares.device)
            weights = (shares[..., cells] / counts).repeat_interleave(counts, -1)
        first, last = int(rows[0]), int(rows[-1])
        adjacent = last - first + 1 == len(rows) and bool((rows.diff() == 1).all())
        return Sides(slice(first, last + 1) if adjacent else rows.to(shares.device), weights=weights, **strata)


def layout(sizes: Sequence[int], comparisons: Sequence[Comparison], *, size: int, least: int = 2) -> Layout:
    """Cell counts of a batch: as close to proportional as integers allow, never too few to compare.

    Every cell that has samples gets at least one, every compared one ``least``: the batch grows beyond
    ``size`` where that asks for it.

    >>> layout((90, 6, 4), (Comparison((1,), (2,)),), size=20).counts
    (16, 2, 2)
    """
    if size < 1:
        raise DataError(f"the batch size must be at least 1, got {size}")
    for one in comparisons:
        _check_sides(one, sizes, least)
    total = sum(sizes)
    size = min(size, total)
    compared = {cell for one in comparisons for cell in (*one.left, *one.right)}
    floors = [0 if not n else least if cell in compared else 1 for cell, n in enumerate(sizes)]
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
    for side, group in zip((comparison.left, comparison.right), comparison.groups, strict=True):
        present = [sizes[cell] for cell in side if sizes[cell]]
        if not present or min(present) < least:
            count = " + ".join(map(str, present)) or "no"
            raise TooFewSamples(
                f"comparing {comparison}: group {group!r} has {count} sample(s) there, and {least} of each kind are "
                f"needed; merge small groups, mark them as missing, or use unbiased=False"
            )


@contextmanager
def small_groups_named(comparisons: Sequence[Comparison], cells: Callable[[], Tensor]) -> Iterator[None]:
    """Where a metric of all samples has too few of them, the error names the group; ``cells`` says whose they are."""
    try:
        yield
    except TooFewSamples:
        most = max(max(one.left + one.right) for one in comparisons)
        sizes = torch.bincount(cells(), minlength=1 + most).tolist()
        for one in comparisons:
            _check_sides(one, sizes, least=2)
        raise


def odds_of(weight: Tensor) -> Tensor:
    """Odds of being drawn: the weights, or even where all are zero (such samples then have loss weight zero)."""
    return weight if bool((weight > 0).any()) else torch.ones_like(weight)


def stratified_pass(
    rows: Sequence[Tensor],
    plan: Layout,
    steps: int,
    generator: torch.Generator,
    *,
    odds: Sequence[Tensor] | None = None,
) -> Tensor:
    """Rows of ``steps`` batches, (steps, size), each cell drawn from its own shuffled stream.

    Without ``odds`` a cell's rows are dealt out without replacement; when fewer are left than a batch takes,
    they are dropped and the cell is shuffled anew. With ``odds`` (one weight per row of each cell) rows are
    drawn independently, in proportion to them.
    """
    parts = []
    for cell, (own, count) in enumerate(zip(rows, plan.counts, strict=True)):
        if not count:
            continue
        if odds is not None:
            drawn = torch.multinomial(odds[cell], steps * count, replacement=True, generator=generator)
            parts.append(own[drawn].view(steps, count))
            continue
        per_shuffle = len(own) // count
        shuffles = -(-steps // per_shuffle)
        dealt = [own[torch.randperm(len(own), generator=generator)[: per_shuffle * count]] for _ in range(shuffles)]
        parts.append(torch.cat(dealt)[: steps * count].view(steps, count))
    return torch.cat(parts, 1)


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

    Drawn without replacement the mean penalty is the U-statistic of the data set, with replacement its plug-in
    value; sample weights ask for replacement, and rows are then drawn in proportion to them.

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
    rows = rows_by_cell(samples.cell, _cells(samples, comparisons))
    plan = layout([len(own) for own in rows], comparisons, size=size, least=least)
    weight = samples.weight.double()
    shares = torch.stack([weight[own].sum() for own in rows]) / weight.sum()
    loss_weight = plan.weights(shares).to(samples.weight.dtype) * weight.mean().to(samples.weight.dtype)
    sides = tuple(plan.sides(one, shares) for one in comparisons)
    odds = [odds_of(weight[own]) for own in rows] if replacement else None
    for chosen in stratified_pass(rows, plan, len(samples) // plan.size, generator, odds=odds):
        yield Batch(samples.take(chosen).with_weight(loss_weight), sides)


def _cells(samples: Samples, comparisons: Sequence[Comparison]) -> int:
    named = [cell for one in comparisons for cell in (*one.left, *one.right)]
    return max([int(samples.cell.max()), *named]) + 1
