"""The Sinkhorn divergence between point clouds, in the log domain and, where asked, in blocks of rows.

All points of a cloud weigh the same. Leading axes are models: every function takes (..., n, d).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, log
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from metrifair.errors import DataError
from metrifair.methods.inputs import check_number
from metrifair.methods.mixing import Mixing

_COPIES = 4  # of a matrix, or a block of one, that live at once: costs, plan, and two that are made of them
_LOOK_EVERY = 5  # sweeps between looks at the error, for which a device has to be waited for
_RESOLUTION = {torch.float64: 0.0, torch.float32: 1e-5}  # errors of the marginals that rounding leaves
_MODERATE = {torch.float64: 100.0, torch.float32: 30.0}  # logarithms of scalings that lose nothing that counts

Block = TypeVar("Block")
Plans: TypeAlias = Callable[[], Iterator[tuple[slice, Tensor, Tensor]]]
"""Rows, costs and plan of one block of rows after the other."""
Potentials: TypeAlias = tuple[Tensor, Tensor]


class Divergence(NamedTuple):
    """A divergence (with a gradient), its sharp value, and where to start from next time."""

    value: Tensor
    sharp: Tensor
    potentials: tuple[Potentials, ...]
    converged: bool


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
        check_number("max_iterations", self.max_iterations, low=1)
        if self.block is not None:
            check_number("block", self.block, low=1)

    def memory(self, n: int, m: int, itemsize: int) -> int:
        """Bytes that the divergence of clouds of n and m points takes."""
        larger = max(n, m)
        return _COPIES * itemsize * larger * (larger if self.block is None else min(self.block, larger))

    def divergence(
        self, u: Tensor, v: Tensor, start: tuple[Potentials, ...] | None = None, *, sharp: bool = False
    ) -> Divergence:
        """The divergence; its gradient is that of the plans as they are, by the envelope theorem the exact one.

        The sharp value is computed where it is asked for, else 0.
        """
        with torch.no_grad():
            centre = torch.cat([u, v], -2).mean(-2, keepdim=True)
            x, y = (u - centre) / self.epsilon, (v - centre) / self.epsilon  # the unit of cost is now epsilon
            among_u, among_v, both = (  # each problem is made when it is its turn: its matrices are large
                _solved(_Problem(*pair, self.block), begin, self.tolerance, self.max_iterations, sharp=sharp)
                for pair, begin in zip(((x, x), (y, y), (x, y)), start or (None, None, None), strict=True)
            )
            entropic = both.entropic - (among_u.entropic + among_v.entropic) / 2
            plain = both.sharp - (among_u.sharp + among_v.sharp) / 2
            slopes = both.at_left - among_u.at_left, both.at_right - among_v.at_left
        value = self.epsilon * entropic
        for cloud, slope in zip((u, v), slopes, strict=True):
            value = value + ((cloud - cloud.detach()) * slope).sum((-2, -1))
        solved = among_u, among_v, both
        potentials = tuple(one.potentials for one in solved)
        return Divergence(value, self.epsilon * plain, potentials, all(one.converged for one in solved))


class _Problem:
    """Entropic transport between two clouds with epsilon 1; ``symmetric`` where they are one and the same."""

    def __init__(self, x: Tensor, y: Tensor, block: int | None) -> None:
        self.x, self.y, self.symmetric = x, y, x is y
        self.n, self.m = x.shape[-2], y.shape[-2]
        self.size = min(block or self.n, self.n)
        self.costs = self._kept(lambda: map(self._cost, range(0, self.n, self.size)))

    def _kept(self, blocks: Callable[[], Iterator[Block]]) -> Callable[[], Iterator[Block]]:
        """Blocks made anew each time they are asked for; where there is but one, it is kept."""
        if self.size < self.n:
            return blocks
        everything = list(blocks())
        return lambda: iter(everything)

    def _cost(self, first: int) -> tuple[slice, Tensor]:
        rows = slice(first, min(first + self.size, self.n))
        # By matrix products a point would lie at a distance from itself.
        return rows, torch.cdist(self.x[..., rows, :], self.y, compute_mode="donot_use_mm_for_euclid_dist")

    def plans(self, f: Tensor, g: Tensor) -> Plans:
        """The plan of these potentials, which need not meet the marginals."""
        f = f - log(self.n) - log(self.m)

        def blocks() -> Iterator[tuple[slice, Tensor, Tensor]]:
            for rows, cost in self.costs():
                yield rows, cost, (f[..., rows].unsqueeze(-1) - cost).add_(g.unsqueeze(-2)).exp_()

        return self._kept(blocks)

    def start(self) -> Potentials:
        """Potentials whose plan has no empty row or column, however far apart the points are."""
        return self.exact_sweep(self.x.new_zeros(self.x.shape[:-1]), self.y.new_zeros(self.y.shape[:-1]))

    def exact_sweep(self, f: Tensor, g: Tensor) -> Potentials:
        """Both potentials improved in the log domain, where nothing underflows."""
        rowwise, below = torch.empty_like(f), torch.full_like(g, -inf)
        for rows, cost in self.costs():
            rowwise[..., rows] = log(self.m) - torch.logsumexp(g.unsqueeze(-2) - cost, -1)
            if not self.symmetric:
                part = torch.logsumexp(rowwise[..., rows].unsqueeze(-1) - cost, -2)
                below = torch.logaddexp(below, part)
        if self.symmetric:
            half = (f + rowwise) / 2
            return half, half
        return rowwise, log(self.n) - below

    def sweeps(self, plans: Plans, like: Potentials) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Ever better scalings of the rows and columns of a plan, with the error of its marginals."""
        left, right = (torch.ones_like(part) for part in like)
        mixing = Mixing()
        while True:
            columns = torch.zeros_like(right)
            for rows, _, plan in plans():
                sums = self.n * _times(plan, right)
                if self.symmetric:
                    columns[..., rows] = sums
                else:
                    left[..., rows] = 1 / sums
                    columns += self.m * _times(plan.mT, left[..., rows])
            error = (right * columns - 1).abs().mean(-1)
            if self.symmetric:  # half a step at a time converges fast
                yield right, right, error
                right = (right / columns).sqrt()
            else:
                yield left, right, error
                right = mixing.next(right.log(), -columns.log(), error).exp()


class _Solved(NamedTuple):
    """One problem's value, the plain cost of its plan, and the slopes at both clouds."""

    entropic: Tensor
    sharp: Tensor
    at_left: Tensor  # (..., n, d)
    at_right: Tensor
    potentials: Potentials
    converged: bool


def _solved(
    problem: _Problem, start: Potentials | None, tolerance: float, max_iterations: int, *, sharp: bool
) -> _Solved:
    """Sweeps that scale the plan of the potentials so far, which take the scalings in where these grow too far."""
    f, g = start or problem.start()
    tolerance = max(tolerance, _RESOLUTION[f.dtype])
    used, near = 0, False
    while True:
        plans = problem.plans(f, g)
        for left, right, error in problem.sweeps(plans, (f, g)):
            used += 1
            if used % _LOOK_EVERY == 0 or used >= max_iterations:
                near, far = _look(error <= tolerance, left, right)
                if near or far or used >= max_iterations:
                    break
        f, g = _moved(f, left), _moved(g, right)
        if near or used >= max_iterations:
            break
        f, g = problem.exact_sweep(f, g)
    if not near:  # the scalings may have overflowed
        plans = problem.plans(f, g)
        left, right = torch.ones_like(f), torch.ones_like(g)
    slopes = _slopes(problem, plans, left, right, sharp=sharp)
    return _Solved(f.mean(-1) + g.mean(-1), *slopes, (f, g), near)


def _look(near: Tensor, left: Tensor, right: Tensor) -> tuple[bool, bool]:
    """Whether every model is near enough, and whether a scaling has grown too far to go on with its plan."""
    moderate = torch.cat([left, right], -1).log().abs() <= _MODERATE[left.dtype]
    found: list[bool] = torch.stack([near.all(), moderate.all()]).tolist()
    return found[0], not found[1]


def _moved(potential: Tensor, scaling: Tensor) -> Tensor:
    """The potential with the scaling taken in; a model's is as it was where that overflowed."""
    step = scaling.log()
    return torch.where(step.isfinite().all(-1, keepdim=True), potential + step, potential)


def _slopes(
    problem: _Problem, plans: Plans, left: Tensor, right: Tensor, *, sharp: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The plain cost of the plan so scaled, where it is wanted, and the slopes of the costs at both clouds."""
    x, y = problem.x, problem.y
    total = x.new_zeros(x.shape[:-2])
    at_left, at_right = torch.empty_like(x), torch.zeros_like(y)
    for rows, cost, plan in plans():
        pull = plan.mul_(left[..., rows].unsqueeze(-1)).mul_(right.unsqueeze(-2))
        if sharp:
            total += (pull * cost).sum((-2, -1))
        pull.div_(cost).nan_to_num_(nan=0.0, posinf=0.0)  # the slope of a distance of 0 is 0
        here = x[..., rows, :]
        at_left[..., rows, :] = here * pull.sum(-1, keepdim=True) - pull @ y
        if not problem.symmetric:
            at_right += y * pull.sum(-2).unsqueeze(-1) - pull.mT @ here
    return total, at_left, at_right


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def sinkhorn_divergence(
    u: Tensor | ArrayLike,
    v: Tensor | ArrayLike,
    *,
    epsilon: float = 0.1,
    tolerance: float = 1e-9,
    max_iterations: int = 1000,
    block: int | None = None,
    sharp: bool = False,
) -> Tensor:
    """How far two clouds of points (n, d) or numbers (n,) are apart: entropic transport at distance cost, debiased.

    It has a gradient where the points have one. ``sharp`` gives the plain cost of the same plans instead, without a
    gradient.

    >>> sinkhorn_divergence([0.0, 1.0], [0.0, 2.0])
    tensor(0.5000, dtype=torch.float64)
    """
    solver = Sinkhorn(epsilon, tolerance, max_iterations, block)
    first, second = _cloud("u", u), _cloud("v", v)
    if first.shape[-1] != second.shape[-1]:
        raise DataError(f"u and v must have points of one dimension, got {first.shape[-1]} and {second.shape[-1]}")
    found = solver.divergence(first, second, sharp=sharp)
    if not found.converged:
        warn_not_converged(max_iterations)
    return found.sharp if sharp else found.value


def warn_not_converged(max_iterations: int) -> None:
    """Say that plans are not as exact as asked for."""
    warnings.warn(
        f"Sinkhorn stopped after {max_iterations} iterations; raise max_iterations, tolerance or epsilon",
        ConvergenceWarning,
        stacklevel=3,
    )


def _cloud(name: str, values: Tensor | ArrayLike) -> Tensor:
    cloud = values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values, dtype=np.float64))
    cloud = cloud.unsqueeze(-1) if cloud.ndim == 1 else cloud
    if cloud.ndim < 2 or cloud.shape[-2] == 0 or not bool(cloud.isfinite().all()):
        raise DataError(f"{name} must hold at least one point, all finite, got shape {tuple(cloud.shape)}")
    return cloud
