"""Anderson's acceleration of fixed points, for many models at once."""

from __future__ import annotations

from math import inf

import torch
from torch import Tensor

_STEPS = 6  # that the next one looks back to
_RIDGE = {torch.float64: 1e-12, torch.float32: 1e-6}


class Mixing:
    """Anderson's acceleration of a fixed point: recent steps, combined so that what they miss is least."""

    def __init__(self) -> None:
        self.last: tuple[Tensor, Tensor] | None = None  # what the step missed, where it led
        self.changes: list[tuple[Tensor, Tensor]] = []  # of both, from step to step
        self.best: Tensor | float = inf

    def next(self, x: Tensor, led: Tensor, error: Tensor) -> Tensor:
        """Where to go on from, after a step from ``x`` led there; the past is forgotten where the error grew."""
        fine = (error <= 2 * self.best).unsqueeze(-1)
        self.best = torch.fmin(error, torch.as_tensor(self.best).to(error))
        missed = led - x
        if self.last is not None:
            self.changes = [*self.changes, (missed - self.last[0], led - self.last[1])][-_STEPS:]
            self.changes = [(a.where(fine, 0.0), b.where(fine, 0.0)) for a, b in self.changes]
        self.last = missed, led
        if not self.changes:
            return led
        by, to = (torch.stack(parts, -1) for parts in zip(*self.changes, strict=True))
        gram = by.mT @ by
        ridge = gram.diagonal(dim1=-2, dim2=-1).sum(-1) * _RIDGE[x.dtype] + torch.finfo(x.dtype).tiny
        eye = torch.eye(gram.shape[-1], dtype=x.dtype, device=x.device)
        shares = torch.linalg.solve_ex(gram + ridge[..., None, None] * eye, (by.mT @ missed.unsqueeze(-1)))[0]
        mixed: Tensor = led - (to @ shares).squeeze(-1)
        return mixed
