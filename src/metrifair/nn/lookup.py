"""The cells of a batch and the rows of its comparisons: looked up where groups and labels are small integers, and in
blocks where a sampler drew the batch from strata."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from metrifair.errors import TooFewSamples
from metrifair.nn.samplers import BatchValues, StratifiedBatchSampler
from metrifair.problem.cells import Comparison, Dependence, Sides
from metrifair.problem.problem import Problem, Scheme
from metrifair.support.arrays import Integers

_HIGHEST = 100  # group or label that is looked up
_LARGEST = 100_000  # entries of the table


class CellLookup:
    """From groups (and labels) that the scheme knows to cells, without compiling or checking anything again.

    >>> from metrifair.nn.samplers import scheme_of
    >>> from metrifair.problem.criteria import STATISTICAL_PARITY
    >>> scheme = scheme_of(STATISTICAL_PARITY, [{0, 1}], (), contrast="pairs", pos_label=None)
    >>> CellLookup(scheme).cells(torch.tensor([1, 0, -1]), None)             # -1: not known
    array([1, 0, 2])
    >>> CellLookup(scheme).cells(torch.tensor([1, 0, 2]), None) is None      # 2 was not met before
    True
    """

    def __init__(self, scheme: Scheme) -> None:
        self.table: Integers | None = None  # by label and group of each attribute, from -2 upwards; -1: not met before
        self.by_label = scheme.criterion.needs_labels
        labels = list(scheme.classes) if self.by_label else [0]
        groups = [list(attribute.groups) for attribute in scheme.attributes]
        small = all(-1 <= value <= _HIGHEST for own in (labels, *groups) for value in own)  # type: ignore[operator]
        by_value = scheme.criterion.bins is not None or scheme.criterion.sets is not None
        if scheme.cells is None or scheme.strata is not None or by_value or not labels or not small:
            return
        if any(isinstance(one, Dependence) for one in scheme.comparisons):  # whose values are needed too
            return
        shape = [4 + max(own) for own in (labels, *groups)]  # type: ignore[type-var, operator]
        if np.prod(shape) > _LARGEST:
            return
        places = [[2 + label for label in labels], *([2 + group for group in own] + [1] for own in groups)]  # type: ignore[operator]
        codes = [range(len(labels)), *([*range(len(own)), len(own)] for own in groups)]  # the last one is "unknown"
        self.table = np.full(shape, -1, dtype=np.int64)
        self.table[np.ix_(*places)] = scheme.cells.table[:, 0][np.ix_(*codes)]

    def cells(self, groups: Any, targets: Any) -> Integers | None:
        """The cell of each sample; None where something has to be looked at more closely."""
        if self.table is None or not isinstance(groups, Tensor) or groups.ndim not in (1, 2):
            return None
        columns = [groups] if groups.ndim == 1 else list(groups.unbind(1))
        if self.by_label and not isinstance(targets, Tensor):
            return None
        columns = [targets, *columns] if self.by_label else columns
        table = self.table if self.by_label else self.table[2]  # of the one label that stands for all
        if len(columns) != table.ndim or (self.by_label and targets.shape != groups.shape[:1]):
            return None
        places = []
        for column, length in zip(columns, table.shape, strict=True):
            values: NDArray[Any] = column.detach().cpu().numpy()
            if values.dtype.kind == "f":
                with np.errstate(invalid="ignore"):  # of what is not a number
                    whole = values.astype(np.int64)
                if not (whole == values).all():
                    return None
                values = whole
            places.append(values + 2 if table.ndim == 1 else np.minimum(np.maximum(values + 2, 0), length - 1))
        # Both ends of the table were not met before.
        found: Integers = table.take(places[0], mode="clip") if table.ndim == 1 else table[tuple(places)]
        return None if not len(found) or found.min() < 0 else found


class BatchRows:
    """The rows of a batch by cell (or by any other number): in one piece where the batch is laid out that way."""

    def __init__(self, cell: Integers, cells: int) -> None:
        self.counts = np.bincount(cell, minlength=cells)
        self.starts = np.cumsum(self.counts) - self.counts
        self.order = None if (cell[1:] >= cell[:-1]).all() else np.argsort(cell, kind="stable")

    def of(self, cells: Sequence[int], device: torch.device) -> Tensor | slice:
        """The rows of these cells, one after the other."""
        ends = [(int(self.starts[cell]), int(self.starts[cell] + self.counts[cell])) for cell in cells]
        if self.order is None:
            if all(end == start for (_, end), (start, _) in pairwise(ends)):
                return slice(ends[0][0], ends[-1][1])
            return torch.from_numpy(np.concatenate([np.arange(*piece) for piece in ends])).to(device)
        return torch.from_numpy(np.concatenate([self.order[slice(*piece)] for piece in ends])).to(device)


def plain_sides(
    comparisons: Sequence[Comparison], rows: BatchRows, weights: Tensor | None, device: torch.device
) -> tuple[Sides, ...]:
    """The sides of every comparison, each an ordinary sample; ``weights`` is one number per sample."""
    found = []
    for one in comparisons:
        both = rows.of(one.left + one.right, device)
        own = None if weights is None else weights[both]
        sizes = [(int(rows.counts[list(side)].sum()),) for side in (one.left, one.right)]
        if isinstance(one, Dependence):
            found.append(Sides(both, sizes[0], (), own, dependence=one))
        else:
            found.append(Sides(both, sizes[0], sizes[1], own))
    return tuple(found)


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
