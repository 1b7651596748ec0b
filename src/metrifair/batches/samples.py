"""Samples as tensors: where training begins, and the rows that each comparison uses of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from metrifair.problem import cells
from metrifair.problem.cells import Comparison, Dependence, Sides


@dataclass(frozen=True, eq=False)
class Samples:
    """Observations: a data set, a split, a batch or a single one alike.

    >>> some = Samples(torch.zeros(3, 2), torch.ones(3), torch.tensor([0, 1, 1]), torch.ones(3))
    >>> len(some), some.take(torch.tensor([2, 0])).cell
    (3, tensor([1, 0]))
    """

    x: Tensor  # (n, features)
    y: Tensor  # (n,): label codes or regression targets
    cell: Tensor  # (n,) integers: samples of one cell are told apart by no comparison
    weight: Tensor  # (n,): what the sample's loss counts in the mean
    value: Tensor | None = None  # (n, attributes): numbers, or codes of names; None: only groups are compared

    def __len__(self) -> int:
        return self.cell.shape[0]  # torch's own len takes ten times as long

    def take(self, rows: Tensor | slice) -> Samples:
        """The samples in these rows, in this order."""
        value = None if self.value is None else self.value[rows]
        return Samples(self.x[rows], self.y[rows], self.cell[rows], self.weight[rows], value)

    def with_weight(self, weight: Tensor) -> Samples:
        """The same samples with other loss weights."""
        return Samples(self.x, self.y, self.cell, weight, self.value)


def joined(parts: Sequence[Samples]) -> Samples:
    """All samples of the parts, one part after the other."""
    fields = ["x", "y", "cell", "weight"] + (["value"] if parts[0].value is not None else [])
    return Samples(*(torch.cat([getattr(part, field) for part in parts]) for field in fields))


@dataclass(frozen=True, eq=False)
class Batch:
    """Samples for one step, and for each comparison the rows that it may use."""

    samples: Samples
    sides: tuple[Sides, ...]  # one for each comparison


def tensor_sides(
    comparisons: Sequence[Comparison],
    cell: Tensor,
    weight: Tensor | None = None,
    *,
    drawn_from: Tensor | None = None,
) -> tuple[Sides, ...]:
    """The rows of each comparison among samples in these cells, as ``problem.cells.sides_of`` finds them."""
    source = None if drawn_from is None else drawn_from.cpu().numpy()
    found = []
    for side in cells.sides_of(comparisons, cell.cpu().numpy(), drawn_from=source):
        rows = torch.from_numpy(side.rows).to(cell.device)
        fraction = None if side.fraction is None else torch.from_numpy(side.fraction).to(cell.device)
        found.append(replace(side, rows=rows, weights=None if weight is None else weight[rows], fraction=fraction))
    return tuple(found)


def sides_at(left: Tensor, right: Tensor, weight: Tensor | None = None) -> Sides:
    """The sides whose rows are these; ``weight`` is one number per sample."""
    both = torch.cat([left, right])
    return Sides(both, (len(left),), (len(right),), None if weight is None else weight[both])


def dependence_at(dependence: Dependence, rows: Tensor, weight: Tensor | None = None) -> Sides:
    """The rows among which scores should not depend on the attribute."""
    return Sides(rows, (len(rows),), (), None if weight is None else weight[rows], dependence=dependence)


def rows_by_cell(cell: Tensor, count: int) -> list[Tensor]:
    """For each cell the rows of its samples."""
    return [torch.from_numpy(rows).to(cell.device) for rows in cells.rows_by_cell(cell.cpu().numpy(), count)]
