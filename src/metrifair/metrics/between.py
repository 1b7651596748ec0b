"""A metric over a list of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from metrifair.errors import DataError, TooFewSamples
from metrifair.metrics.scores import Metric, Scores
from metrifair.samples import Side, Sides

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

    >>> from metrifair.metrics.catalog import METRICS
    >>> rows = (Side(slice(0, 2)), Side(slice(2, 4)))
    >>> between(METRICS["energy"].plug_in, torch.tensor([0.0, 1.0, 1.0, 3.0]), [rows])
    tensor(1.5000)
    """
    values = []
    for place, (left, right) in enumerate(sides):
        try:
            values.append(metric(_scores(scores, left, vector), _scores(scores, right, vector)))
        except TooFewSamples as error:
            error.add_note(f"comparing {names[place] if names else f'the sides of comparison {place}'}")
            raise
    if not values:
        raise DataError("there is nothing to compare: the list of comparisons is empty")
    found = torch.stack(values, -1)
    return {"sum": lambda: found.sum(-1), "max": lambda: found.amax(-1), "all": lambda: found}[reduce]()


def _scores(scores: Tensor, side: Side, vector: bool) -> Scores:
    values = scores[..., side.rows, :] if vector else scores[..., side.rows]
    if values.shape[-2 if vector else -1] == 0:
        raise TooFewSamples("one side of a comparison has no sample in this batch; use a larger or a stratified batch")
    return Scores(values, side.weights, side.strata)
