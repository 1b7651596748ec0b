"""Batches whose shares of label and group move from epoch to epoch: the sampler of FairBatch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from metrifair.batches.dealing import Deal, Outputs
from metrifair.methods.inputs import Floats, Integers, Rows
from metrifair.problem.tasks import BINARY


def start_shares(sizes: Floats) -> Floats:
    """The share of group 1 within each label, (..., 2), for cells of these sizes (..., label, group)."""
    shares: Floats = sizes[..., 1] / np.maximum(sizes.sum(-1), 1)
    return shares


def moved_shares(shares: Floats, losses: Floats, criterion: str, step: float) -> Floats:
    """Shares after an epoch, for losses (..., label, group) of the model's cells.

    One label moves: the one whose groups differ more, or the positive one under equal opportunity. There the share of
    the group with the larger loss grows; under statistical parity, among the negative, it shrinks.

    >>> moved_shares(np.array([0.6, 0.25]), np.array([[0.0, 0.0], [0.2, 0.9]]), "equal_opportunity", 0.1)
    array([0.6 , 0.35])
    """
    towards = np.where(losses[..., 1] > losses[..., 0], step, -step)
    if criterion == "statistical_parity":
        towards = towards * np.array([-1.0, 1.0])
    gap = np.abs(losses[..., 1] - losses[..., 0])
    positive = np.ones(gap.shape[:-1], dtype=bool) if criterion == "equal_opportunity" else gap[..., 1] > gap[..., 0]
    moves = np.stack([~positive, positive], -1)
    return np.clip(shares + np.where(moves, towards, 0.0), 0.0, 1.0)


def batch_counts(shares: Floats, sizes: Floats, batch_size: int, *, half_to_even: bool = False) -> Integers:
    """Rows of each cell (..., label, group) in a batch; rounded, so that they may not add up to its size.

    >>> sizes = np.array([[20.0, 40.0], [30.0, 10.0]])
    >>> batch_counts(start_shares(sizes), sizes, 50)
    array([[10, 20],
           [15,  5]])
    """
    of_label = batch_size * sizes.sum(-1) / sizes.sum((-2, -1), keepdims=True)[..., 0]
    exact = of_label[..., None] * np.stack([1 - shares, shares], -1)
    rounded = np.rint(exact) if half_to_even else np.floor(exact + 0.5)
    counts: Integers = rounded.astype(np.int64)
    return counts


def cell_losses(output: Tensor, member: Tensor, y: Tensor, criterion: str) -> Tensor:
    """Losses (seeds, label, group) of all rows' outputs (seeds, n), for membership (seeds, label, group, n).

    The mean cross-entropy of each cell; under statistical parity that of the label 1 for everyone, divided by the size
    of the group.
    """
    parity = criterion == "statistical_parity"
    loss = functional.softplus(-output) if parity else BINARY.loss(output, y)
    counts = member.sum(-1)
    counts = counts.sum(1, keepdim=True) if parity else counts
    return torch.einsum("sn,sygn->syg", loss, member) / counts.clamp_min(1)


def cyclic(own: Tensor, count: int, steps: int, generator: torch.Generator, *, repeating: bool = False) -> Tensor:
    """Rows of ``steps`` batches (steps, count): one shuffled pass after the other.

    ``repeating`` goes on, after the end of the only pass, from as many rows as were left there: a slip of the authors.
    """
    if not repeating:
        passes = -(-steps * count // len(own))
        order = torch.cat([torch.randperm(len(own), generator=generator) for _ in range(max(1, passes))])
        return own[order[: steps * count]].view(steps, count)
    order, begin, places = torch.randperm(len(own), generator=generator), 0, []
    for _ in range(steps):
        places.append((begin + torch.arange(count)) % len(own))
        begin = begin + count if begin + count <= len(own) else (len(own) - begin) % len(own)
    return own[order[torch.stack(places)]]


class Sampler:
    """The batches of several seeds, whose shares move after each epoch."""

    def __init__(
        self, rows: Rows, own: Sequence[Integers], *, batch_size: int, criterion: str, step: float, reference: bool
    ) -> None:
        self.criterion, self.step, self.reference = criterion, step, reference
        inside = [
            [[part[(rows.y[part] == y) & (rows.group[part] == a)] for a in (0, 1)] for y in (0, 1)] for part in own
        ]
        self.cells = [[[torch.as_tensor(cell) for cell in label] for label in seed] for seed in inside]
        self.sizes = np.array([[[float(len(cell)) for cell in label] for label in seed] for seed in inside])
        self.shares = start_shares(self.sizes)  # (seeds, label)
        fewest = min(map(len, own))
        self.batch_size = min(batch_size, fewest)
        self.steps = fewest // self.batch_size
        self.size = self.batch_size + 2  # four counts are rounded up by a half at most
        self.y = torch.as_tensor(rows.y)
        self.member = torch.zeros(*self.sizes.shape, len(rows))
        for seed, labels in enumerate(self.cells):
            for y, groups in enumerate(labels):
                for a, cell in enumerate(groups):
                    self.member[seed, y, a, cell] = 1.0
        self.begun = False

    def deal(self, generators: Sequence[torch.Generator], outputs: Outputs) -> Deal:
        """The batches of an epoch; from the second one on the shares move first."""
        if self.begun:
            output = outputs()[:, 0]
            self.member, self.y = self.member.to(output), self.y.to(output)
            losses = cell_losses(output, self.member, self.y, self.criterion).double().cpu().numpy()
            self.shares = moved_shares(self.shares, losses, self.criterion, self.step)
        self.begun = True
        counts = batch_counts(self.shares, self.sizes, self.batch_size, half_to_even=self.reference)
        dealt = [self._dealt(*each) for each in zip(self.cells, counts, generators, strict=True)]
        rows, weight = (torch.stack(parts) for parts in zip(*dealt, strict=True))
        return Deal(rows, weight)

    def _dealt(
        self, cells: Sequence[Sequence[Tensor]], counts: Integers, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Rows (steps, size) and weights (1, size) of one seed; all seeds' batches are filled up to one size."""
        parts = [
            cyclic(cells[y][a], int(counts[y, a]), self.steps, generator, repeating=self.reference)
            for y in (0, 1)
            for a in (0, 1)
            if counts[y, a]
        ]
        rows = torch.cat(parts, 1)
        filling = rows[:, :1].expand(-1, self.size - rows.shape[1])  # of weight 0
        weight = torch.zeros(1, self.size)
        weight[:, : rows.shape[1]] = self.size / rows.shape[1]
        return torch.cat([rows, filling], 1), weight
