"""Plain shuffled batches: what one does without unbiased estimates in mind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from metrifair.samples import Batch, Comparison, Samples, Side, Sides, membership


def shuffled(
    samples: Samples, comparisons: Sequence[Comparison], *, size: int, generator: torch.Generator
) -> Iterator[Batch]:
    """One shuffled pass in batches of a fixed size; a group may be missing in some, and estimates are biased."""
    order = torch.randperm(len(samples), generator=generator)
    for chosen in order.split(size):
        if len(chosen) == size:
            yield whole(samples.take(chosen), comparisons)


def whole(samples: Samples, comparisons: Sequence[Comparison]) -> Batch:
    """All samples as one batch."""
    return Batch(samples, sides_of(comparisons, samples.cell))


def sides_of(comparisons: Sequence[Comparison], cell: Tensor) -> tuple[Sides, ...]:
    """The rows of both sides of each comparison, for samples in these cells."""
    if not comparisons:
        return ()
    left, right = membership(comparisons, cell)
    return tuple((Side(a.nonzero()[:, 0]), Side(b.nonzero()[:, 0])) for a, b in zip(left, right, strict=True))
