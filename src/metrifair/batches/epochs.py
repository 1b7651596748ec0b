"""Passes over a data set: plain shuffled batches, and epochs for all seeds of a stack at once."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from metrifair.batches.stratified import Layout, layout, odds_of, stratified_pass
from metrifair.errors import DataError
from metrifair.problem.samples import Batch, Comparison, Samples, Sides, rows_by_cell, sides_of


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
            yield whole(samples.take(chosen), comparisons)


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
    return Batch(samples, sides_of(comparisons, samples.cell))


class Epoch(NamedTuple):
    """The batches of one epoch."""

    rows: Tensor  # (seeds, steps, size)
    weight: Tensor  # (seeds, steps, size), or (seeds, 1, size): loss weights

    def steps(self, device: torch.device, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows and weights of one batch after the other."""
        rows, weight = self.rows.to(device), self.weight.to(device, dtype)
        return zip(rows.unbind(1), weight.expand(rows.shape).unbind(1), strict=True)


Outputs: TypeAlias = Callable[[], Tensor]
"""What the models, as they are now, return for all rows of the data: (seeds, strengths, n)."""


class EpochSource(NamedTuple):
    """Where batches come from: the same layout for all seeds, each with its own rows and weights."""

    size: int
    sides: tuple[Sides, ...]
    draw: Callable[[Sequence[torch.Generator], Outputs], Epoch]  # one epoch; it may look at the models
    whole: bool = False  # every batch is the whole data set: computed in double precision


def stratified_epochs(
    data: Samples, rows: Sequence[Tensor], comparisons: Sequence[Comparison], *, batch_size: int, least: int
) -> EpochSource:
    """Stratified batches of each seed's rows, or, where one batch holds them all, those rows every time."""
    cells = 1 + max(int(data.cell.max()), *(c for one in comparisons for c in one.left + one.right), 0)
    own = [[part[inside] for inside in rows_by_cell(data.cell[part], cells)] for part in rows]
    sizes = torch.tensor([[len(cell) for cell in seed] for seed in own])
    if bool(((sizes == 0).any(0) & (sizes > 0).any(0)).any()):
        raise DataError("some seeds' training rows lack a cell that others have; choose splits that hold every group")
    if max(map(len, rows)) <= batch_size:
        return _whole_epochs(data.weight.double(), own, Layout(tuple(sizes.amax(0).tolist())), comparisons)
    plan = layout(sizes.amin(0).tolist(), comparisons, size=batch_size, least=least)
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
    odds = [None if even else [odds_of(weight[cell]) for cell in seed] for seed in own]
    steps = max(1, min(len(part) for part in rows) // plan.size)
    loss_weight = plan.weights(shares)

    def draw(generators: Sequence[torch.Generator], _: Outputs) -> Epoch:
        seeds = zip(own, generators, odds, strict=True)
        passes = [stratified_pass(seed, plan, steps, generator, odds=odd) for seed, generator, odd in seeds]
        return Epoch(torch.stack(passes), loss_weight)

    return EpochSource(plan.size, tuple(plan.sides(one, shares) for one in comparisons), draw)


def _whole_epochs(
    weight: Tensor, own: Sequence[Sequence[Tensor]], plan: Layout, comparisons: Sequence[Comparison]
) -> EpochSource:
    """All rows in every batch: weights then act as weights, not as odds of being drawn.

    Seeds have as many places for each cell as the one with most rows in it; a place that is left over holds a row
    once more, without weight.
    """
    seeds = [list(zip(seed, plan.counts, strict=True)) for seed in own]
    rows = torch.stack([torch.cat([_filled(cell, places) for cell, places in seed]) for seed in seeds])
    left_over = torch.stack([torch.cat([torch.arange(n) >= len(cell) for cell, n in seed]) for seed in seeds])
    counted = weight[rows].masked_fill(left_over, 0.0)
    cell = torch.arange(len(plan.counts)).repeat_interleave(torch.tensor(plan.counts))
    sides = sides_of(comparisons, cell)
    if not bool((counted == counted[0, 0]).all()):
        sides = tuple(replace(side, weights=counted[:, None, side.rows]) for side in sides)
    everything = Epoch(rows.unsqueeze(1), (counted / counted.mean(1, keepdim=True)).unsqueeze(1))
    return EpochSource(plan.size, sides, lambda *_: everything, whole=True)


def _filled(rows: Tensor, places: int) -> Tensor:
    return torch.cat([rows, rows[:1].expand(places - len(rows))])
