"""Anderson's acceleration of fixed points, for many models at once."""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor

_STEPS = 6  # that the next one looks back to
_RIDGE = {torch.float64: 1e-12, torch.float32: 1e-6}


class Mixing:
    """Anderson's acceleration of a fixed point: recent steps, combined so that what they miss is least.

    ``weight`` (..., n) says how much each coordinate counts; splitting one into equal parts then changes nothing.
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight.unsqueeze(-2)
        self.taken = 0
        self.past: Tensor | None = None  # what steps missed and where they led: recent changes, then the last of both
        self.best: Tensor | None = None  # the least square of what a step missed

    def next(self, x: Tensor, led: Tensor) -> Tensor:
        """Where to go on from, after a step from ``x`` led there; the past is forgotten where more is missed again."""
        now = torch.stack([led - x, led])
        if self.past is None:
            self.past = now.new_zeros(*now.shape[:-1], _STEPS + 1, now.shape[-1])
        else:
            torch.sub(now, self.past[..., -1, :], out=self.past[..., self.taken % _STEPS, :])
            self.taken += 1
        self.past[..., -1, :] = now
        missed, to = self.past
        products = (missed * self.weight) @ missed.mT
        grown = self._grown(products[..., -1, -1])
        self.past[..., :-1, :].masked_fill_(grown[..., None, None], 0.0)
        shares = _least(products[..., :-1, :-1], products[..., :-1, -1:]).masked_fill_(grown[..., None, None], 0.0)
        mixed: Tensor = led - (shares.mT @ to[..., :-1, :]).squeeze(-2)
        return mixed

    def _grown(self, square: Tensor) -> Tensor:
        """Where more than twice the least so far is missed, or what is missed is not a number."""
        least = torch.full_like(square, inf) if self.best is None else self.best
        self.best = torch.fmin(square, least)
        return ~(square <= 4 * least)


def _least(gram: Tensor, right: Tensor) -> Tensor:
    """The solution of nearly singular normal equations; 0 along steps that were not taken."""
    ridge = gram.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True) * _RIDGE[gram.dtype] + torch.finfo(gram.dtype).tiny
    raised = gram.clone()
    raised.diagonal(dim1=-2, dim2=-1).add_(ridge)
    solution: Tensor = torch.linalg.solve_ex(raised, right)[0]
    return solution
