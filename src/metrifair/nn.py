"""The penalty and the batches for anyone's own PyTorch loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.batches import Coverage, cut, layout, stratified_pass
from metrifair.cells import Attribute, Cells, Contrast, Integers, compiled
from metrifair.criteria import Criterion, criterion_named
from metrifair.errors import DataError
from metrifair.metrics.catalog import MetricLike
from metrifair.objective import penalty
from metrifair.samples import Samples, joined, rows_by_cell, sides_of


class UnfairnessPenalty(torch.nn.Module):
    """Distance between the groups' scores in a batch, summed over all comparisons; differentiable.

    ``scores`` are what is to be distributed alike: probabilities, outputs, predictions, or, for risk parity, losses;
    (n,), or (n, d) for vector scores. ``groups`` are integers (n,), or (n, attributes), -1 where the group is not
    known. ``targets`` are label codes, needed by the criteria that look at them (the last label is the positive one).

    Which groups and labels there are is learnt from the batches unless ``n_groups`` (one number, or one for each
    attribute) and ``n_classes`` say so; a batch that lacks one of them raises an error.

    Examples
    --------
    >>> torch.manual_seed(0)                                                     # doctest: +ELLIPSIS
    <torch...>
    >>> x, groups = torch.randn(200, 3), torch.arange(200) % 2
    >>> x[:, 0] += groups
    >>> y = (x.sum(1) > 0.5).float()
    >>> model, penalty = torch.nn.Linear(3, 1), UnfairnessPenalty("equal_opportunity")
    >>> optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    >>> sampler = StratifiedBatchSampler(groups, y, batch_size=50, criterion="equal_opportunity")
    >>> for rows in [rows for epoch in range(30) for rows in sampler]:
    ...     output = model(x[rows]).squeeze(1)
    ...     bce = torch.nn.functional.binary_cross_entropy_with_logits(output, y[rows], sampler.weights[rows])
    ...     loss = bce + 2.0 * penalty(output.sigmoid(), groups[rows], y[rows])
    ...     optimizer.zero_grad()
    ...     loss.backward()
    ...     optimizer.step()
    >>> penalty(model(x).squeeze(1).sigmoid(), groups, y).item() < 0.02
    True
    """

    def __init__(
        self,
        criterion: str | Criterion = "statistical_parity",
        metric: MetricLike = "energy",
        unbiased: bool = True,
        contrast: Contrast = "pairs",
        *,
        n_groups: int | Sequence[int] | None = None,
        n_classes: int | None = None,
        slices: int = 16,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.criterion = criterion_named(criterion)
        self.metric, self.unbiased, self.contrast, self.slices = metric, unbiased, contrast, slices
        self.n_groups = None if n_groups is None else [n_groups] if isinstance(n_groups, int) else list(n_groups)
        self.n_classes = n_classes
        self.generator = torch.Generator().manual_seed(seed)
        self._declared = n_groups is not None, n_classes is not None
        self._compiled: tuple[list[int], Cells] | None = None  # for so many groups and classes

    def forward(
        self, scores: Tensor, groups: Tensor, targets: Tensor | None = None, weights: Tensor | None = None
    ) -> Tensor:
        """The penalty of a batch, a scalar."""
        lengths = {"scores": len(scores), "groups": len(groups)}
        lengths |= {name: len(part) for name, part in (("targets", targets), ("weights", weights)) if part is not None}
        if len(set(lengths.values())) > 1:
            raise DataError(f"a batch must have one length, got {lengths}")
        codes, labels = _codes(groups), None if targets is None else targets.detach().cpu().numpy()
        cells = self._cells(codes, labels)
        cell = torch.as_tensor(cells.of(codes, labels=labels))
        sides = sides_of(cells.comparisons, cell.to(scores.device), weights)
        if self.generator.device != scores.device:
            self.generator = torch.Generator(scores.device).manual_seed(self.generator.initial_seed())
        return penalty(
            scores,
            sides,
            metric=self.metric,
            unbiased=self.unbiased,
            vector=scores.ndim == 2,
            slices=self.slices,
            generator=self.generator,
            names=cells.comparisons,
        )

    def _cells(self, codes: Integers, labels: NDArray[Any] | None) -> Cells:
        """Cells for all groups and labels known so far."""
        seen = (codes.max(0, initial=-1) + 1).tolist()
        if self._declared[0]:
            _check_below(self.n_groups or [], seen)
        else:
            known = self.n_groups or [2] * len(seen)
            self.n_groups = [max(pair) for pair in zip(known, seen, strict=True)]
        if self.criterion.needs_labels and labels is not None and not self._declared[1]:
            self.n_classes = max(2, self.n_classes or 0, int(labels.max()) + 1)
        groups, classes = self.n_groups or [], self.n_classes or 2
        if self._compiled is None or self._compiled[0] != [*groups, classes]:
            self._compiled = [*groups, classes], _integer_cells(self.criterion, groups, classes, self.contrast)
        return self._compiled[1]


def _integer_cells(criterion: Criterion, groups: Sequence[int], classes: int, contrast: Contrast = "pairs") -> Cells:
    names = ["group"] if len(groups) == 1 else [f"group {k}" for k in range(len(groups))]
    attributes = [Attribute(name, tuple(range(count))) for name, count in zip(names, groups, strict=True)]
    return compiled(criterion, attributes, classes=range(classes), positive=classes - 1, contrast=contrast)


def _codes(groups: Tensor) -> Integers:
    """Group numbers (n, attributes)."""
    codes: Integers = groups.detach().cpu().long().numpy()
    return codes[:, None] if codes.ndim == 1 else codes


def _check_below(limits: Sequence[int], seen: Sequence[int]) -> None:
    if any(count > limit for count, limit in zip(seen, limits, strict=True)):
        raise DataError(f"group numbers must be below {list(limits)}, got {[count - 1 for count in seen]}")


class StratifiedBatchSampler(torch.utils.data.Sampler[list[int]]):
    """Row numbers of batches that hold a fixed number of every group (in every set of the criterion).

    For ``DataLoader(batch_sampler=...)`` or a plain loop. ``weights`` is the loss weight of each row of the data set:
    ``mean(weights[rows] * loss)`` over a batch is an unbiased estimate of the mean loss, whatever rounding did to the
    group counts. Each iteration is another epoch, reproducible from the seed.

    >>> sampler = StratifiedBatchSampler([0, 0, 0, 0, 0, 0, 1, 1, 1], batch_size=4)
    >>> [len(rows) for rows in sampler], sampler.weights[[0, 8]]
    ([4, 4], tensor([1.3333, 0.6667]))
    """

    def __init__(
        self,
        groups: Tensor | Sequence[int],
        targets: Tensor | Sequence[int] | None = None,
        *,
        batch_size: int,
        criterion: str | Criterion = "statistical_parity",
        unbiased: bool = True,
        seed: int = 0,
    ) -> None:
        codes = _codes(torch.as_tensor(groups))
        labels = None if targets is None else torch.as_tensor(targets).numpy()
        kind = criterion_named(criterion)
        classes = max(2, int(labels.max()) + 1) if labels is not None and kind.needs_labels else 2
        cells = _integer_cells(kind, (codes.max(0) + 1).tolist(), classes)
        self.rows = rows_by_cell(torch.as_tensor(cells.of(codes, labels=labels)), cells.count)
        sizes = torch.tensor([len(own) for own in self.rows])
        self.layout = layout(sizes.tolist(), cells.comparisons, size=batch_size, least=2 if unbiased else 1)
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
    cells = _integer_cells(criterion_named(criterion), [groups], classes)
    rule = Coverage(cells.comparisons, size=size, least=least)
    pending: list[tuple[Tensor, Tensor, Tensor]] = []
    waiting: Samples | None = None
    for x, y, group in stream:
        pending.append((torch.as_tensor(x), torch.as_tensor(y), torch.as_tensor(group)))
        target = pending[-1][1].reshape(1)
        codes = _codes(pending[-1][2].reshape(1, 1))
        _check_below([groups], (codes[0] + 1).tolist())
        cell = cells.of(codes, labels=target.numpy())
        one = Samples(torch.empty(1, 0), target, torch.as_tensor(cell), torch.ones(1))
        waiting = one if waiting is None else joined([waiting, one])
        if (found := cut(waiting, rule)) is not None:
            batch, waiting = found
            count = len(batch.samples)
            features, targets, own = (torch.stack(part) for part in zip(*pending[:count], strict=True))
            pending = pending[count:]
            yield CoveringBatch(features, targets, own, batch.samples.weight)
