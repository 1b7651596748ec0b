"""What a penalty knows of batches that a sampler drew: from which strata, in which shares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from metrifair.errors import TooFewSamples
from metrifair.nn.lookup import BatchRows, CellLookup
from metrifair.nn.samplers import BatchValues, StratifiedBatchSampler
from metrifair.problem.cells import Comparison, Dependence, Sides
from metrifair.problem.criteria import Integers
from metrifair.problem.problem import Problem

_MOST_LAYOUTS = 100  # of batches that are remembered


class BatchStrata:
    """The strata that a sampler's batches are drawn from, and how much of each comparison's sides each makes up."""

    def __init__(self, sampler: StratifiedBatchSampler, problem: Problem) -> None:
        self.drawn, self.continuous = sampler.problem.scheme, list(sampler.values.numbers)
        self.lookup = CellLookup(self.drawn)
        self._still: dict[tuple[int, ...], list[Sides]] = {}  # what does not change while batches have the same counts
        compared, strata = problem.scheme.cells, self.drawn.cells
        self.cells = compared.count if compared else 1
        # Most samplers draw by the very cells that are compared; who is in which need not be asked twice then.
        self.alike = bool(compared and strata and np.array_equal(compared.table, strata.table))
        weight = np.ones(len(problem)) if sampler.sample_weight is None else sampler.sample_weight
        block = sampler.problem.cell * self.cells + problem.cell
        self.mass = np.bincount(block, weight)  # of each stratum of the batches within each cell that is compared
        # How many rows the batches' are drawn from; where weights are odds, with replacement, as if without end.
        counts = np.bincount(block, weight > 0).astype(np.float64)
        self.drawn_from = counts if sampler.sample_weight is None else np.where(counts == 1, 1.0, np.inf)
        self.present = np.flatnonzero(self.mass).tolist()
        self._of_side: dict[tuple[int, ...], list[int]] = {}

    def sides(
        self,
        cell: Integers,
        groups: Tensor | ArrayLike,
        targets: Tensor | ArrayLike | None,
        comparisons: Sequence[Comparison],
        device: torch.device,
    ) -> tuple[Sides, ...]:
        """The rows of each comparison, block by block, with weights where a side mixes several."""
        stratum = cell if self.alike else self.lookup.cells(groups, targets)
        if stratum is None:
            stratum = BatchValues(self.drawn.criterion, groups, targets, self.continuous).problem(self.drawn).cell
        rows = BatchRows(stratum * self.cells + cell, len(self.mass))
        key = tuple(rows.counts.tolist())
        if key not in self._still:
            if len(self._still) > _MOST_LAYOUTS:
                self._still.clear()
            self._still[key] = [self._still_of(one, rows.counts, device) for one in comparisons]
        blocks = [self._blocks(one.left) + self._blocks(one.right) for one in comparisons]
        return tuple(
            Sides(rows.of(own, device), still.left, still.right, still.weights, still.fraction, still.dependence)
            for still, own in zip(self._still[key], blocks, strict=True)
        )

    def _blocks(self, cells: tuple[int, ...]) -> list[int]:
        """The blocks that make up a side."""
        if cells not in self._of_side:
            self._of_side[cells] = [int(block) for block in self.present if block % self.cells in cells]
        return self._of_side[cells]

    def _still_of(self, comparison: Comparison, counts: Integers, device: torch.device) -> Sides:
        """The sides without their rows."""
        sides = [self._blocks(cells) for cells in (comparison.left, comparison.right)]
        for own in sides:
            if len(own) > 1 and not counts[own].all():
                raise TooFewSamples(
                    f"comparing {comparison}: the batch lacks one of the {len(own)} kinds of rows that make up a side; "
                    "pass batches of the sampler"
                )
        blocks, sizes = sides[0] + sides[1], [tuple(counts[own].tolist()) for own in sides]
        weights = None
        if max(map(len, sides)) > 1:
            share = self.mass[blocks] / np.maximum(1, counts[blocks])
            weights = torch.as_tensor(np.repeat(share, counts[blocks])).to(device)
        fraction = torch.as_tensor(counts[blocks] / self.drawn_from[blocks]).to(device)
        dependence = comparison if isinstance(comparison, Dependence) else None
        return Sides(slice(0), sizes[0], sizes[1], weights, fraction, dependence)
