"""Stratified batches of one data set, from the parts that training and the sampler use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from tests.seams.batches import (
    Batch,
    Samples,
    StratifiedPasses,
    layout,
    rows_by_cell,
    sampling_odds,
)
from tests.seams.problem import Comparison


def stratified(
    samples: Samples,
    comparisons: Sequence[Comparison],
    *,
    size: int,
    generator: torch.Generator,
    least: int = 2,
    replacement: bool = False,
) -> Iterator[Batch]:
    """One pass, laid out by cell; with ``replacement`` rows are drawn in proportion to their
    weights.
    """
    named = [cell for one in comparisons for cell in (*one.left, *one.right)]
    rows = rows_by_cell(samples.cell, max([int(samples.cell.max()), *named]) + 1)
    plan = layout([len(own) for own in rows], comparisons, size=size, least=least)
    weight = samples.weight.double()
    shares = torch.stack([weight[own].sum() for own in rows]) / weight.sum()
    loss_weight = plan.weights(shares).to(samples.weight.dtype) * weight.mean().to(
        samples.weight.dtype
    )
    sizes = None if replacement else torch.tensor([len(own) for own in rows])
    sides = tuple(plan.sides(one, shares, sizes) for one in comparisons)
    odds = [sampling_odds(weight[own]) for own in rows] if replacement else None
    passes = StratifiedPasses(
        [rows], plan, len(samples) // plan.size, odds=None if odds is None else [odds]
    )
    for chosen in passes([generator])[0]:
        yield Batch(samples.take(chosen).with_weight(loss_weight), sides)
