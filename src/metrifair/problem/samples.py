"""What flows through metrifair: samples with their cells, and the comparisons between cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


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

    def __len__(self) -> int:
        return len(self.cell)

    def take(self, rows: Tensor | slice) -> Samples:
        """The samples in these rows, in this order."""
        return Samples(self.x[rows], self.y[rows], self.cell[rows], self.weight[rows])

    def with_weight(self, weight: Tensor) -> Samples:
        """The same samples with other loss weights."""
        return Samples(self.x, self.y, self.cell, weight)


def joined(parts: Sequence[Samples]) -> Samples:
    """All samples of the parts, one part after the other."""
    fields = ("x", "y", "cell", "weight")
    return Samples(*(torch.cat([getattr(part, field) for part in parts]) for field in fields))


@dataclass(frozen=True)
class Comparison:
    """Two disjoint collections of cells whose score distributions should agree.

    The other fields say, for messages and reports, what the cells stand for.

    >>> str(Comparison((0,), (1,), attribute="sex", within="y = 1", groups=("f", "m")))
    "sex 'f' against 'm', y = 1"
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    attribute: str = "group"
    within: str = "everyone"
    groups: tuple[str, str] = ("left", "right")

    def __str__(self) -> str:
        return f"{self.attribute} {self.groups[0]!r} against {self.groups[1]!r}, {self.within}"


def membership(comparisons: Sequence[Comparison], cell: Tensor) -> Tensor:
    """True where a sample lies on the left (index 0) or right (1) of a comparison: (2, comparisons, n)."""

    if not comparisons:
        return torch.zeros(2, 0, len(cell), dtype=torch.bool, device=cell.device)

    def on(side: str) -> Tensor:
        return torch.stack([torch.isin(cell, cell.new_tensor(getattr(one, side))) for one in comparisons])

    return torch.stack([on("left"), on("right")])


@dataclass(frozen=True, eq=False)
class Sides:
    """The rows of a batch that a comparison uses: those of its left side, then those of its right side.

    ``left`` and ``right`` are the sizes of consecutive blocks of rows that were drawn with fixed counts (one block:
    ordinary independent samples); ``weights`` give the blocks their true shares.
    """

    rows: Tensor | slice
    left: tuple[int, ...]
    right: tuple[int, ...]
    weights: Tensor | None = None  # (..., n)

    @property
    def counts(self) -> tuple[int, int]:
        """Samples on the left and on the right."""
        return sum(self.left), sum(self.right)


def sides_of(comparisons: Sequence[Comparison], cell: Tensor, weight: Tensor | None = None) -> tuple[Sides, ...]:
    """The rows of each comparison among samples in these cells; ``weight`` is one number per sample."""
    known = 1 + max((max(one.left + one.right) for one in comparisons), default=-1)
    own = rows_by_cell(cell, known)  # sorted once, however many comparisons there are

    def rows(side: tuple[int, ...]) -> Tensor:
        return own[side[0]] if len(side) == 1 else torch.cat([own[one] for one in side]).sort().values

    return tuple(_sides(rows(one.left), rows(one.right), weight) for one in comparisons)


def sides_where(left: Tensor, right: Tensor, weight: Tensor | None = None) -> Sides:
    """The rows where two masks hold."""
    return _sides(left.nonzero()[:, 0], right.nonzero()[:, 0], weight)


def _sides(left: Tensor, right: Tensor, weight: Tensor | None) -> Sides:
    both = torch.cat([left, right])
    return Sides(both, (len(left),), (len(right),), None if weight is None else weight[both])


def rows_by_cell(cell: Tensor, cells: int) -> list[Tensor]:
    """For each cell the rows of its samples."""
    order = cell.argsort(stable=True)
    return list(order.split(torch.bincount(cell, minlength=cells).tolist()))


@dataclass(frozen=True, eq=False)
class Batch:
    """Samples for one step, and for each comparison the rows that it may use."""

    samples: Samples
    sides: tuple[Sides, ...]  # one for each comparison
