"""A metric over a list of comparisons."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from metrifair.errors import DataError, TooFewSamples
from metrifair.metrics.scores import Metric, Pair
from metrifair.problem.samples import Sides

Reduction = Literal["sum", "max", "all"]


def between(
    metric: Metric,
    scores: Tensor,
    sides: Sequence[Sides],
    *,
    names: Sequence[object] = (),
    reduce: Reduction = "sum",
    vector: bool = False,
) -> Tensor:
    """The metric for each comparison (..., comparisons), or their sum or maximum.

    ``scores`` are (..., n), or (..., n, d) with ``vector``; ``names`` say in errors which comparison failed.

    >>> from metrifair.metrics.registry import METRICS
    >>> sides = Sides(slice(0, 4), (2,), (2,))
    >>> between(METRICS["energy"].plug_in, torch.tensor([0.0, 1.0, 1.0, 3.0]), [sides])
    tensor(1.5000)
    """
    found: list[Tensor] = []
    for place, side in enumerate(sides):
        try:
            found.append(metric(_pair(scores, side, vector)))
        except TooFewSamples as error:
            error.add_note(f"comparing {names[place] if names else f'the sides of comparison {place}'}")
            raise
    if not found:
        raise DataError("there is nothing to compare: the list of comparisons is empty")
    if reduce == "sum":
        return functools.reduce(operator.add, found)
    values = torch.stack(found, -1)
    return values if reduce == "all" else values.amax(-1)


def _pair(scores: Tensor, sides: Sides, vector: bool) -> Pair:
    if min(sides.counts) == 0:
        raise TooFewSamples(
            f"a comparison has {sides.counts[0]} and {sides.counts[1]} samples on its sides; "
            "use a larger batch size, or batches that hold every group"
        )
    # Asked for its kind first: comparing a tensor with a slice takes longer than the whole distance.
    everything = isinstance(sides.rows, slice) and sides.rows == slice(0, scores.shape[-2 if vector else -1])
    values = scores if everything else scores[..., sides.rows, :] if vector else scores[..., sides.rows]
    return Pair(values, sides.left, sides.right, sides.weights)
