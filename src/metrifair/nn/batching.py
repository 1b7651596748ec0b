"""Batches that hold every group: of a data set, and of an endless stream."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from metrifair.batches import Coverage, cut, layout, stratified_pass
from metrifair.nn.given import check_below, check_lengths, class_count, codes_of, integer_cells, label_codes, numbers
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.problem.samples import Samples, joined, rows_by_cell


class StratifiedBatchSampler(torch.utils.data.Sampler[list[int]]):
    """Row numbers of batches that hold a fixed number of every group (in every set of the criterion).

    For ``DataLoader(batch_sampler=...)`` (not ``sampler=``, which would take a batch for one row) or a plain loop.
    ``weights`` is the loss weight of each row of the data set: ``mean(weights[rows] * loss)`` over a batch is an
    unbiased estimate of the mean loss, whatever rounding did to the group counts. Each iteration is another epoch,
    reproducible from the seed. A batch is larger than ``batch_size``, with a warning, where that is too small for two
    rows (one, if not ``unbiased``) of every group.

    >>> sampler = StratifiedBatchSampler([0, 0, 0, 0, 0, 0, 1, 1, 1], batch_size=4)
    >>> [len(rows) for rows in sampler], sampler.weights[[0, 8]]
    ([4, 4], tensor([1.3333, 0.6667]))
    """

    def __init__(
        self,
        groups: Tensor | ArrayLike,
        targets: Tensor | ArrayLike | None = None,
        *,
        batch_size: int,
        criterion: str | Criterion = "statistical_parity",
        unbiased: bool = True,
        seed: int = 0,
    ) -> None:
        codes, labels = codes_of(groups), label_codes(targets)
        check_lengths("groups and targets", groups=codes, targets=labels)
        kind = criterion_named(criterion)
        cells = integer_cells(kind, (codes.max(0, initial=-1) + 1).tolist(), class_count(kind, labels))
        self.rows = rows_by_cell(torch.as_tensor(cells.of(codes, labels=labels)), cells.count)
        sizes = torch.tensor([len(own) for own in self.rows])
        self.layout = layout(sizes.tolist(), cells.comparisons, size=batch_size, least=2 if unbiased else 1)
        if self.layout.size > batch_size:
            warnings.warn(
                f"batch_size={batch_size} is too small to hold enough of every group: batches have "
                f"{self.layout.size} rows",
                UserWarning,
                stacklevel=2,
            )
        self.seed, self.epoch = seed, 0
        per_cell = sizes / sizes.sum() * self.layout.size / torch.tensor(self.layout.counts).clamp_min(1)
        self.weights = torch.empty(len(codes))
        for own, weight in zip(self.rows, per_cell, strict=True):
            self.weights[own] = weight

    def __len__(self) -> int:
        return len(self.weights) // self.layout.size

    def __iter__(self) -> Iterator[list[int]]:
        seed = int(np.random.SeedSequence([self.seed, self.epoch]).generate_state(1)[0])
        generator = torch.Generator().manual_seed(seed)
        self.epoch += 1
        yield from stratified_pass(self.rows, self.layout, len(self), generator).tolist()


class CoveringBatch(NamedTuple):
    """A batch of a stream in which every group is seen often enough; ``mean(weight * loss)`` estimates the risk."""

    x: Tensor
    y: Tensor
    group: Tensor
    weight: Tensor


def covering(
    stream: Iterable[tuple[Tensor, Tensor | float, int]],
    *,
    size: int,
    criterion: str | Criterion = "statistical_parity",
    groups: int = 2,
    classes: int = 2,
    least: int = 2,
) -> Iterator[CoveringBatch]:
    """Batches of an endless stream of (x, y, group): at least ``size`` samples, and ``least`` of every group.

    (In every set of the criterion.) The loss weights undo the bias that waiting for the last sample brings. Group -1
    is unknown: it counts for the risk only.

    >>> stream = ((torch.zeros(2), 1.0, group) for group in (0, 0, 0, 0, 1, 1, 0, 1, 0, 1))
    >>> [batch.group.tolist() for batch in covering(stream, size=4)]
    [[0, 0, 0, 0, 1, 1], [0, 1, 0, 1]]
    """
    cells = integer_cells(criterion_named(criterion), [groups], classes)
    rule = Coverage(cells.comparisons, size=size, least=least)
    pending: list[tuple[Tensor, Tensor, Tensor]] = []
    waiting: Samples | None = None
    for x, y, group in stream:
        pending.append((torch.as_tensor(x), numbers("y", y), numbers("group", group)))
        target = pending[-1][1].reshape(1)
        codes = codes_of(pending[-1][2].reshape(1, 1))
        check_below("group", [groups], (codes[0] + 1).tolist())
        cell = cells.of(codes, labels=target.numpy())
        one = Samples(torch.empty(1, 0), target, torch.as_tensor(cell), torch.ones(1))
        waiting = one if waiting is None else joined([waiting, one])
        if (found := cut(waiting, rule)) is not None:
            batch, waiting = found
            count = len(batch.samples)
            features, targets, own = (torch.stack(part) for part in zip(*pending[:count], strict=True))
            pending = pending[count:]
            yield CoveringBatch(features, targets, own, batch.samples.weight)
