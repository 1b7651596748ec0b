"""Batches of rows whose groups have probabilities: every row has a share in each side of a comparison.

The distance of all rows is a quadratic form of signed weights: a row's share of the left side less its share of the
right side. Batches keep the weights of all rows, so that their mean over all draws is that distance exactly.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from metrifair.problem.cells import SignedDraws

_BY_WEIGHT = 0.7  # share of draws by signed weights; the others are by loss weights


class Drawing(NamedTuple):
    """How batches of rows are drawn, and the weights of their rows.

    >>> from metrifair.batches.samples import side_weights
    >>> from metrifair.problem.cells import Comparison
    >>> shares = torch.tensor([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]]).double()
    >>> way = Drawing.uniform(shares.sum(1), side_weights([Comparison((0,), (1,))], shares), size=2)
    >>> way.signed[0], way.draws
    (tensor([-0.4571,  0.5714, -0.1143], dtype=torch.float64), SignedDraws(pairs=3.0, diagonal=1.5))
    """

    odds: Tensor | None  # (n,): probabilities of rows, drawn with replacement; None: uniform, without replacement
    loss_weight: Tensor  # (n,): weights of the loss, in a mean over the batch
    sides: Tensor  # (comparisons, 2, n): weights of rows on each side
    signed: Tensor  # (comparisons, n): signed weights
    draws: SignedDraws

    @classmethod
    def uniform(cls, weight: Tensor, sides: Tensor, *, size: int) -> Drawing:
        """Draw uniformly and without replacement; a batch of all rows gives the distance itself."""
        n = len(weight)
        draws = SignedDraws(n * (n - 1) / (size * max(1, size - 1)), n / size)
        return cls(None, weight / weight.mean(), sides, _signed(sides), draws)

    @classmethod
    def weighted(cls, weight: Tensor, sides: Tensor, *, size: int) -> Drawing:
        """Draw with replacement, rows with large signed weights more often, so that estimates vary less.

        Every row has some probability, so that the risk is that of all rows.
        """
        signed, risk = _signed(sides), weight / weight.sum()
        large = signed.abs().sum(0)
        odds = (1 - _BY_WEIGHT) * risk + _BY_WEIGHT * large / large.sum() if bool(large.any()) else risk
        draws = SignedDraws(1 / (size * max(1, size - 1)), 0.0)
        return cls(odds, risk / odds, sides / odds, signed / odds, draws)

    def rows(self, batches: int, size: int, generator: torch.Generator) -> Tensor:
        """The rows of the next batches, (batches, size); without replacement, batches have no rows in common."""
        if self.odds is None:
            return torch.randperm(len(self.loss_weight), generator=generator)[: batches * size].view(batches, size)
        chosen = torch.rand(batches, size, dtype=torch.float64, generator=generator)
        return torch.searchsorted(self.odds.cumsum(0), chosen, right=True).clamp_max(len(self.odds) - 1)


def _signed(sides: Tensor) -> Tensor:
    """Shares of the left side less those of the right side."""
    left, right = (sides / sides.sum(-1, keepdim=True)).unbind(1)
    return left - right
