"""Plain shuffled batches: what one does without unbiased estimates in mind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from metrifair.problem.samples import Batch, Comparison, Samples, sides_of


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
