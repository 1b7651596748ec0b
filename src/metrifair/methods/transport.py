"""The Sinkhorn divergence between weighted clouds of points.

Leading axes are models: clouds are (..., n, d), their weights (..., n), positive and of sum 1.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import torch
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from metrifair.errors import DataError
from metrifair.methods.clouds import checked_cloud, checked_weight, uniform
from metrifair.methods.entropic import Potentials, TransportProblem, solved
from metrifair.methods.inputs import check_number, check_whole

_COPIES = 4  # of a matrix, or a block of one, that live at once: costs, plan, and two that are made of them


class Divergence(NamedTuple):
    """A divergence (with a gradient), its sharp value, and where to start from next time."""

    value: Tensor
    sharp: Tensor
    potentials: tuple[Potentials, ...]
    converged: Tensor  # of each model


@dataclass(frozen=True)
class Sinkhorn:
    """How the divergence is computed, with ``block`` rows of a matrix in memory at once; None keeps all: faster."""

    epsilon: float = 0.1
    tolerance: float = 1e-9  # of the marginals, summed
    max_iterations: int = 1000
    block: int | None = None

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, low=0, low_open=True)
        check_number("tolerance", self.tolerance, low=0, low_open=True)
        check_whole("max_iterations", self.max_iterations, least=1)
        if self.block is not None:
            check_whole("block", self.block, least=1)

    def memory(self, n: int, m: int, itemsize: int) -> int:
        """Bytes that the divergence of clouds of n and m points takes."""
        larger = max(n, m)
        return _COPIES * itemsize * larger * (larger if self.block is None else min(self.block, larger))

    def divergence(
        self,
        u: Tensor,
        v: Tensor,
        start: tuple[Potentials, ...] | None = None,
        *,
        weights: tuple[Tensor, Tensor] | None = None,
        sharp: bool = False,
    ) -> Divergence:
        """The divergence; its gradient is that of the plans as they are, by the envelope theorem the exact one.

        Points weigh the same unless ``weights`` are given. The sharp value is computed where it is asked for, else 0.
        """
        with torch.no_grad():
            a, b = weights or (uniform(u), uniform(v))
            centre = torch.cat([u, v], -2).mean(-2, keepdim=True)
            x, y = (u - centre) / self.epsilon, (v - centre) / self.epsilon  # the unit of cost is now epsilon
            three = among_u, among_v, both = tuple(  # each problem is made when it is its turn: its matrices are large
                solved(TransportProblem(*pair, self.block), begin, self.tolerance, self.max_iterations, sharp=sharp)
                for pair, begin in zip(
                    ((x, x, a, a), (y, y, b, b), (x, y, a, b)), start or (None, None, None), strict=True
                )
            )
            entropic = both.entropic - (among_u.entropic + among_v.entropic) / 2
            plain = both.sharp - (among_u.sharp + among_v.sharp) / 2
            slopes = both.at_left - among_u.at_left, both.at_right - among_v.at_left
        value = self.epsilon * entropic
        for cloud, slope in zip((u, v), slopes, strict=True):
            value = value + ((cloud - cloud.detach()) * slope).sum((-2, -1))
        converged = among_u.converged & among_v.converged & both.converged
        return Divergence(value, self.epsilon * plain, tuple(one.potentials for one in three), converged)


def sinkhorn_divergence(
    u: Tensor | ArrayLike,
    v: Tensor | ArrayLike,
    *,
    u_weights: Tensor | ArrayLike | None = None,
    v_weights: Tensor | ArrayLike | None = None,
    epsilon: float = 0.1,
    tolerance: float = 1e-9,
    max_iterations: int = 1000,
    block: int | None = None,
    sharp: bool = False,
) -> Tensor:
    """How far two clouds of points (n, d) or numbers (n,) are apart: entropic transport at distance cost, debiased.

    Weights are positive; a cloud counts once, however large they are. It has a gradient where the points have one.
    ``sharp`` gives the plain cost of the same plans instead, without a gradient.

    >>> sinkhorn_divergence([0.0, 1.0], [0.0, 2.0])
    tensor(0.5000, dtype=torch.float64)
    >>> sinkhorn_divergence([0.0, 1.0], [0.0, 2.0], u_weights=[1, 3], v_weights=[1, 3])
    tensor(0.7500, dtype=torch.float64)
    """
    solver = Sinkhorn(epsilon, tolerance, max_iterations, block)
    first, second = checked_cloud("u", u), checked_cloud("v", v)
    if first.shape[-1] != second.shape[-1]:
        raise DataError(f"u and v must have points of one dimension, got {first.shape[-1]} and {second.shape[-1]}")
    if first.shape[:-2] != second.shape[:-2]:
        raise DataError(f"u and v must have the same leading axes, got shapes {(*first.shape,)} and {(*second.shape,)}")
    weights = checked_weight("u_weights", u_weights, first), checked_weight("v_weights", v_weights, second)
    found = solver.divergence(first, second, weights=weights, sharp=sharp)
    if not bool(found.value.isfinite().all()):
        raise DataError(f"u and v lie so far apart that the square of a distance, in units of {epsilon=}, is infinite")
    if not bool(found.converged.all()):
        warn_not_converged(max_iterations)
    return found.sharp if sharp else found.value


def warn_not_converged(max_iterations: int) -> None:
    """Say that plans are not as exact as asked for."""
    warnings.warn(
        f"Sinkhorn stopped after {max_iterations} iterations; raise max_iterations, tolerance or epsilon",
        ConvergenceWarning,
        stacklevel=3,
    )
