"""The Sinkhorn divergence between weighted clouds of points: entropic optimal transport, in the log
domain.

Leading axes are models: clouds are (..., n, d), their weights (..., n), positive and of sum 1.
Inside a transport problem the unit of cost is epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from math import inf
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from metrifair.support.arrays import Floats
from metrifair.support.checks import check_integer, check_number

_COPIES = 4  # of a matrix, or a block, in memory at once: costs, plan, and two intermediate results
_LOOK_EVERY = 5  # sweeps between checks of the error, which wait for the device
# errors of the marginals that rounding leaves
_RESOLUTION = {torch.float64: 0.0, torch.float32: 1e-5}
# logarithms of scalings without loss of precision
_MODERATE = {torch.float64: 100.0, torch.float32: 30.0}
_REMEMBERED = 6  # past steps in Anderson's acceleration
_RIDGE = {torch.float64: 1e-12, torch.float32: 1e-6}

Block = TypeVar("Block")
Plans: TypeAlias = Callable[[], Iterator[tuple[slice, Tensor, Tensor]]]
"""Rows, costs and plan of one block of rows after the other."""
Potentials: TypeAlias = tuple[Tensor, Tensor]


class Points(NamedTuple):
    """Rows and the weight of each."""

    rows: Floats  # (n, columns)
    weight: Floats  # (n,), positive, of sum 1


def distinct_points(rows: Floats) -> Points:
    """The uniform measure on some rows, as a weighted one on those that differ, in order of
    appearance.

    >>> distinct_points(np.array([[2.0], [1.0], [2.0], [2.0]])).weight
    array([0.75, 0.25])
    """
    _, first, count = np.unique(rows, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    return Points(rows[first[order]], count[order] / len(rows))


class Divergence(NamedTuple):
    """A divergence (with a gradient), its sharp value, and the next starting point."""

    value: Tensor
    sharp: Tensor
    potentials: tuple[Potentials, ...]
    converged: Tensor  # of each model


@dataclass(frozen=True)
class Sinkhorn:
    """Settings of the divergence, with ``block`` rows of a matrix in memory at once; None keeps
    all (faster).
    """

    epsilon: float = 0.1
    tol: float = 1e-9  # of the marginals, summed
    max_iterations: int = 1000
    block: int | None = None

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, low=0, low_open=True)
        check_number("tol", self.tol, low=0, low_open=True)
        check_integer("max_iterations", self.max_iterations, least=1)
        if self.block is not None:
            check_integer("block", self.block, least=1)

    def memory(self, n: int, m: int, itemsize: int) -> int:
        """Memory in bytes for the divergence of clouds of n and m points."""
        larger = max(n, m)
        return (
            _COPIES
            * itemsize
            * larger
            * (larger if self.block is None else min(self.block, larger))
        )

    def divergence(
        self,
        u: Tensor,
        v: Tensor,
        weights: tuple[Tensor, Tensor],
        start: tuple[Potentials, ...] | None = None,
        *,
        sharp: bool = False,
    ) -> Divergence:
        """The divergence; its gradient is that of the plans as they are, by the envelope theorem
        the exact one.

        The sharp value, the plain cost of the same plans, is computed where it is requested, else
        0.
        """
        with torch.no_grad():
            a, b = weights
            center = torch.cat([u, v], -2).mean(-2, keepdim=True)
            # the unit of cost is now epsilon
            x = (u - center) / self.epsilon
            y = (v - center) / self.epsilon
            pairs = (x, x, a, a), (y, y, b, b), (x, y, a, b)
            # each problem is made when it is its turn: its matrices are large
            three = among_u, among_v, both = tuple(
                solve(TransportProblem(*pair, self.block), begin, self, sharp=sharp)
                for pair, begin in zip(pairs, start or (None, None, None), strict=True)
            )
            entropic = both.entropic - (among_u.entropic + among_v.entropic) / 2
            plain = both.sharp - (among_u.sharp + among_v.sharp) / 2
            slopes = both.at_left - among_u.at_left, both.at_right - among_v.at_left
        value = self.epsilon * entropic
        for cloud, slope in zip((u, v), slopes, strict=True):
            value = value + ((cloud - cloud.detach()) * slope).sum((-2, -1))
        converged = among_u.converged & among_v.converged & both.converged
        return Divergence(
            value, self.epsilon * plain, tuple(solution.potentials for solution in three), converged
        )


class TransportProblem:
    """Entropic transport between two clouds with epsilon 1; ``symmetric`` where they are one
    and the same.
    """

    def __init__(self, x: Tensor, y: Tensor, a: Tensor, b: Tensor, block: int | None) -> None:
        self.x = x
        self.y = y
        self.a = a
        self.b = b
        self.symmetric = x is y
        self.log_a = a.log()
        self.log_b = b.log()
        self.n = x.shape[-2]
        self.size = min(block or self.n, self.n)
        self.costs = self._keep_blocks(lambda: map(self._cost, range(0, self.n, self.size)))

    def _keep_blocks(self, blocks: Callable[[], Iterator[Block]]) -> Callable[[], Iterator[Block]]:
        """Blocks computed at each request; a single one is kept."""
        if self.size < self.n:
            return blocks
        everything = list(blocks())
        return lambda: iter(everything)

    def _cost(self, first: int) -> tuple[slice, Tensor]:
        rows = slice(first, min(first + self.size, self.n))
        return rows, distances(self.x[..., rows, :], self.y)

    def plans(self, f: Tensor, g: Tensor) -> Plans:
        """The plan of these potentials, which need not meet the marginals."""
        f = f + self.log_a
        g = g + self.log_b

        def blocks() -> Iterator[tuple[slice, Tensor, Tensor]]:
            for rows, cost in self.costs():
                yield rows, cost, (f[..., rows].unsqueeze(-1) - cost).add_(g.unsqueeze(-2)).exp_()

        return self._keep_blocks(blocks)

    def start(self) -> Potentials:
        """Potentials whose plan has no empty row or column, however far apart the points are."""
        return self.exact_sweep(
            self.x.new_zeros(self.x.shape[:-1]), self.y.new_zeros(self.y.shape[:-1])
        )

    def exact_sweep(self, f: Tensor, g: Tensor) -> Potentials:
        """Both potentials improved in the log domain, where nothing underflows."""
        g = g + self.log_b
        rowwise = torch.empty_like(f)
        below = torch.full_like(g, -inf)
        for rows, cost in self.costs():
            rowwise[..., rows] = -torch.logsumexp(g.unsqueeze(-2) - cost, -1)
            if not self.symmetric:
                left = rowwise[..., rows] + self.log_a[..., rows]
                below = torch.logaddexp(below, torch.logsumexp(left.unsqueeze(-1) - cost, -2))
        if self.symmetric:
            half = (f + rowwise) / 2
            return half, half
        return rowwise, -below

    def sweeps(self, plans: Plans, like: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Ever better scalings of a plan's rows and columns, with the sums of its columns once its
        rows are scaled.

        If both clouds are one, half a step at a time converges fast; else steps alternate,
        accelerated.
        """
        if self.symmetric:
            right = torch.ones_like(like)
            while True:
                sums = torch.cat([_times(plan, right) for _, _, plan in plans()], -1)
                yield right, right, sums
                right = (right * self.b / sums).sqrt()
        step = torch.zeros_like(like)
        acceleration = Anderson(self.b)
        while True:
            right = step.exp()
            lefts = []
            parts = []
            for rows, _, plan in plans():
                lefts.append(self.a[..., rows] / _times(plan, right))
                parts.append(_times(plan.mT, lefts[-1]))
            columns = reduce(torch.add, parts)
            yield torch.cat(lefts, -1), right, columns
            step = acceleration.next(step, self.log_b - columns.log())


class TransportSolution(NamedTuple):
    """One problem's value, the plain cost of its plan, and the slopes at both clouds."""

    entropic: Tensor
    sharp: Tensor
    at_left: Tensor  # (..., n, d)
    at_right: Tensor
    potentials: Potentials
    converged: Tensor


def solve(
    problem: TransportProblem, start: Potentials | None, solver: Sinkhorn, *, sharp: bool
) -> TransportSolution:
    """Sweeps that scale the plan of the potentials so far, which take the scalings in where
    these grow too far.
    """
    f, g = start or problem.start()
    tol = max(solver.tol, _RESOLUTION[f.dtype])
    max_iterations = solver.max_iterations
    used = 0
    done = False
    while True:
        plans = problem.plans(f, g)
        for left, right, columns in problem.sweeps(plans, g):
            used += 1
            if used % _LOOK_EVERY == 0 or used >= max_iterations:
                near = (right * columns - problem.b).abs().sum(-1) <= tol
                moderate = torch.cat([left, right], -1).log().abs() <= _MODERATE[f.dtype]
                # one synchronization with the device
                done, fine = torch.stack([near.all(), moderate.all()]).tolist()
                if done or not fine or used >= max_iterations:
                    break
        f = _moved(f, left)
        g = _moved(g, right)
        if done or used >= max_iterations:
            break
        f, g = problem.exact_sweep(f, g)
    if not done:  # the scalings may have overflowed
        plans = problem.plans(f, g)
        left = torch.ones_like(f)
        right = torch.ones_like(g)
    slopes = _slopes(problem, plans, left, right, sharp=sharp)
    return TransportSolution(
        (f * problem.a).sum(-1) + (g * problem.b).sum(-1), *slopes, (f, g), near
    )


def _moved(potential: Tensor, scaling: Tensor) -> Tensor:
    """The potential with the scaling taken in; a model's is as it was where that overflowed."""
    step = scaling.log()
    return torch.where(step.isfinite().all(-1, keepdim=True), potential + step, potential)


def _slopes(
    problem: TransportProblem, plans: Plans, left: Tensor, right: Tensor, *, sharp: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The plain cost of the plan so scaled, where it is wanted, and the slopes of the costs at
    both clouds.
    """
    x = problem.x
    y = problem.y
    total = x.new_zeros(x.shape[:-2])
    at_left = torch.empty_like(x)
    at_right = torch.zeros_like(y)
    for rows, cost, plan in plans():
        here = x[..., rows, :]
        scaling = left[..., rows]
        if sharp:
            total += (scaling * _times(plan * cost, right)).sum(-1)
        pull = plan.div_(cost).nan_to_num_(nan=0.0, posinf=0.0)  # the slope of a distance of 0 is 0
        at_left[..., rows, :] = _total_pull(pull, here, y, scaling, right)
        if not problem.symmetric:
            at_right += _total_pull(pull.mT, y, here, right, scaling)
    return total, at_left, at_right


def _total_pull(
    pull: Tensor, here: Tensor, there: Tensor, scaling: Tensor, other: Tensor
) -> Tensor:
    """The sum over all points there of their scaled pull times the difference from each point
    here.
    """
    other = other.unsqueeze(-1)
    sums = pull @ torch.cat([there * other, other], -1)
    return scaling.unsqueeze(-1) * (here * sums[..., -1:] - sums[..., :-1])


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def distances(x: Tensor, y: Tensor) -> Tensor:
    """Distances between the points of x and y, (..., n, m); exactly 0 if they are equal."""
    if x.device.type == "cpu":
        # With matrix products, the distance of a point from itself would not be 0.
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    # on CUDA, cdist takes 256 threads for every pair, whose coordinates are few
    return by_coordinate(x, y)


def by_coordinate(x: Tensor, y: Tensor) -> Tensor:
    """The same distances, by one pass over all pairs for each coordinate."""
    total = x.new_zeros(*x.shape[:-1], y.shape[-2])
    for here, there in zip(x.unbind(-1), y.unbind(-1), strict=True):
        difference = here.unsqueeze(-1) - there.unsqueeze(-2)
        total.addcmul_(difference, difference)
    return total.sqrt_()


class Anderson:
    """Anderson's acceleration of a fixed point: recent steps, combined so that their residual is
    smallest.

    ``weight`` (..., n) is the weight of each coordinate; splitting one into equal parts then
    changes nothing.
    """

    def __init__(self, weight: Tensor) -> None:
        self.weight = weight.unsqueeze(-2)
        self.taken = 0
        # residuals and results of steps: recent changes, then the last of both
        self.past: Tensor | None = None
        self.best: Tensor | None = None  # the smallest squared residual of a step

    def next(self, x: Tensor, led: Tensor) -> Tensor:
        """The next point after a step from ``x``; the past is discarded where the residual
        grows again.
        """
        now = torch.stack([led - x, led])
        if self.past is None:
            self.past = now.new_zeros(*now.shape[:-1], _REMEMBERED + 1, now.shape[-1])
        else:
            torch.sub(now, self.past[..., -1, :], out=self.past[..., self.taken % _REMEMBERED, :])
            self.taken += 1
        self.past[..., -1, :] = now
        missed, to = self.past
        products = (missed * self.weight) @ missed.mT
        square = products[..., -1, -1]
        least = torch.full_like(square, inf) if self.best is None else self.best
        self.best = torch.fmin(square, least)
        grown = ~(square <= 4 * least)[..., None, None]  # or the residual is not a number
        self.past[..., :-1, :].masked_fill_(grown, 0.0)
        # Nearly singular normal equations, with a ridge; their solution is 0 along steps that were
        # not taken.
        gram = products[..., :-1, :-1].clone()
        trace = gram.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True)
        gram.diagonal(dim1=-2, dim2=-1).add_(
            trace * _RIDGE[gram.dtype] + torch.finfo(gram.dtype).tiny
        )
        shares: Tensor = torch.linalg.solve_ex(gram, products[..., :-1, -1:])[0].masked_fill_(
            grown, 0.0
        )
        change: Tensor = (shares.mT @ to[..., :-1, :]).squeeze(-2)
        return led - change
