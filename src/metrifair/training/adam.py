"""Adam on all parameters at once, kept in one vector so that a step is a handful of operations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

KEPT = (0.9, 0.999)  # of the moments, from step to step
EPSILON = 1e-8


class Adam:
    """Parameters that share one vector, and the moments that move it.

    Everything is a tensor on the device, so that a step can be recorded and replayed.

    >>> adam = Adam({"w": torch.tensor([1.0, -2.0])}, learning_rate=0.1)
    >>> adam.parameters["w"].square().sum().backward()
    >>> adam.step()
    >>> adam.parameters["w"].detach()
    tensor([ 0.9000, -1.9000])
    """

    def __init__(self, start: Mapping[str, Tensor], *, learning_rate: float, weight_decay: float = 0.0) -> None:
        self.vector = torch.cat([value.detach().reshape(-1) for value in start.values()])
        self.gradient = torch.zeros_like(self.vector)
        self.moments = torch.zeros(2, len(self.vector), dtype=self.vector.dtype, device=self.vector.device)
        self.betas = torch.tensor(KEPT, dtype=torch.float64, device=self.vector.device)
        self.powers = torch.ones_like(self.betas)  # beta^t
        self.learning_rate = torch.tensor(learning_rate, dtype=torch.float64, device=self.vector.device)
        self.weight_decay = weight_decay
        self._shapes = {name: value.shape for name, value in start.items()}
        self._bind()

    def _bind(self) -> None:
        """Parameters and their gradients as views of the two vectors."""
        sizes = [shape.numel() for shape in self._shapes.values()]
        values, slopes = self.vector.split(sizes), self.gradient.split(sizes)
        self.parameters: dict[str, Tensor] = {}
        for (name, shape), value, slope in zip(self._shapes.items(), values, slopes, strict=True):
            leaf = value.view(shape).detach().requires_grad_()
            leaf.grad = slope.view(shape)
            self.parameters[name] = leaf

    @torch.no_grad()
    def step(self) -> None:
        """One step down the gradient gathered since the last one, which is then cleared."""
        if self.weight_decay:
            self.gradient.add_(self.vector, alpha=self.weight_decay)
        first, second = self.moments
        first.lerp_(self.gradient, 1 - KEPT[0])
        second.mul_(KEPT[1]).addcmul_(self.gradient, self.gradient, value=1 - KEPT[1])
        self.powers.mul_(self.betas)
        corrections = 1 - self.powers
        rate = (self.learning_rate / corrections[0]).to(self.vector.dtype)
        spread = (second / corrections[1].to(self.vector.dtype)).sqrt_().add_(EPSILON)
        self.vector.sub_(first.mul(rate).div_(spread))
        self.gradient.zero_()

    def step_if_finite(self) -> bool:
        """The same step on the CPU; where it would leave numbers that are not finite nothing moves, and it says False.

        By NumPy, whose operations cost a fraction of torch's where parameters are few.
        """
        vector, gradient, moments, powers, rate = self._as_arrays
        slope = gradient + self.weight_decay * vector if self.weight_decay else gradient
        first = moments[0] + (1 - KEPT[0]) * (slope - moments[0])
        second = KEPT[1] * moments[1] + (1 - KEPT[1]) * slope * slope
        left = powers * KEPT
        corrections = (1 - left).tolist()
        spread = np.sqrt(second / corrections[1])
        spread += EPSILON
        moved = vector - first * (rate.item() / corrections[0]) / spread
        gradient.fill(0.0)
        if not math.isfinite(moved.sum() + second.sum()):  # one number that is not shows in the sum
            return False
        vector[:], moments[0], moments[1], powers[:] = moved, first, second, left
        return True

    @cached_property
    def _as_arrays(self) -> tuple[NDArray[Any], ...]:
        return tuple(part.numpy() for part in self._changing)

    @cached_property
    def arrays(self) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
        """Parameters and their gradients as NumPy sees them, in the same memory, on the CPU."""
        return {name: (leaf.detach().numpy(), leaf.grad.numpy()) for name, leaf in self.parameters.items()}  # type: ignore[union-attr]

    def snapshot(self) -> tuple[Tensor, ...]:
        """Copies of all that a step changes."""
        return tuple(part.clone() for part in self._changing)

    def restore(self, saved: tuple[Tensor, ...]) -> None:
        """Go back to a snapshot, in place."""
        for part, value in zip(self._changing, saved, strict=True):
            part.copy_(value)

    def forget_non_finite(self) -> None:
        """Clear moments and gradients that overflowed."""
        for part in (self.gradient, self.moments):
            part.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)

    @property
    def _changing(self) -> tuple[Tensor, ...]:
        return self.vector, self.gradient, self.moments, self.powers, self.learning_rate

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("parameters", "arrays", "_as_arrays")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._bind()
