"""Dealing: the batches of an epoch for all seeds of a stack at once, each with its own rows and weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from metrifair.batches.stratified import layout, odds_of, rows_by_cell, stratified_pass
from metrifair.errors import DataError
from metrifair.samples import Comparison, Samples, Sides, sides_of


class Deal(NamedTuple):
    """The batches of one epoch."""

    rows: Tensor  # (seeds, steps, size)
    weight: Tensor  # (seeds, steps, size), or (seeds, 1, size): loss weights

    def steps(self, device: torch.device, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows and weights of one batch after the other."""
        rows, weight = self.rows.to(device), self.weight.to(device, dtype)
        return zip(rows.unbind(1), weight.expand(rows.shape).unbind(1), strict=True)


Outputs: TypeAlias = Callable[[], Tensor]
"""What the models, as they are now, return for all rows of the data: (seeds, strengths, n)."""


class Dealer(NamedTuple):
    """Where batches come from: the same layout for all seeds, each with its own rows and weights."""

    size: int
    sides: tuple[Sides, ...]
    deal: Callable[[Sequence[torch.Generator], Outputs], Deal]  # one epoch; it may look at the models
    whole: bool = False  # every batch is the whole data set: computed in double precision


def stratified_dealer(
    data: Samples, rows: Sequence[Tensor], comparisons: Sequence[Comparison], *, batch_size: int, least: int
) -> Dealer:
    """Stratified batches of each seed's rows, or, where one batch holds them all, those rows every time."""
    shared = all(torch.equal(own, rows[0]) for own in rows[1:])
    if shared and len(rows[0]) <= batch_size:
        return _whole_dealer(data.take(rows[0]), rows, comparisons)
    cells = 1 + max(int(data.cell.max()), *(c for one in comparisons for c in one.left + one.right), 0)
    own = [[part[inside] for inside in rows_by_cell(data.cell[part], cells)] for part in rows]
    sizes = torch.tensor([[len(cell) for cell in seed] for seed in own])
    if bool(((sizes == 0).any(0) & (sizes > 0).any(0)).any()):
        raise DataError("some seeds' training rows lack a cell that others have; choose splits that hold every group")
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

    def deal(generators: Sequence[torch.Generator], _: Outputs) -> Deal:
        seeds = zip(own, generators, odds, strict=True)
        passes = [stratified_pass(seed, plan, steps, generator, odds=odd) for seed, generator, odd in seeds]
        return Deal(torch.stack(passes), loss_weight)

    return Dealer(plan.size, tuple(plan.sides(one, shares) for one in comparisons), deal)


def _whole_dealer(samples: Samples, rows: Sequence[Tensor], comparisons: Sequence[Comparison]) -> Dealer:
    """All rows in every batch: weights then act as weights, not as odds of being drawn."""
    weight = samples.weight.double()
    even = bool((weight == weight[0]).all())
    order = samples.cell.argsort(stable=True)
    sides = sides_of(comparisons, samples.cell[order], None if even else weight[order])
    chosen = torch.stack([own[order] for own in rows]).unsqueeze(1)
    everything = Deal(chosen, (weight / weight.mean())[order].expand(len(rows), 1, -1))
    return Dealer(len(order), sides, lambda *_: everything, whole=True)
