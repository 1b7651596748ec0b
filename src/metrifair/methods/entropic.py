"""One problem of entropic transport between weighted clouds, in the log domain and, where asked, in blocks of rows.

The unit of cost is epsilon. Leading axes are models: clouds are (..., n, d), their weights (..., n), positive and of
sum 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from math import inf
from typing import NamedTuple, TypeAlias, TypeVar

import torch
from torch import Tensor

from metrifair.methods.clouds import distances
from metrifair.methods.mixing import Mixing

_LOOK_EVERY = 5  # sweeps between looks at the error, for which a device has to be waited for
_RESOLUTION = {torch.float64: 0.0, torch.float32: 1e-5}  # errors of the marginals that rounding leaves
_MODERATE = {torch.float64: 100.0, torch.float32: 30.0}  # logarithms of scalings that lose nothing that counts

Block = TypeVar("Block")
Plans: TypeAlias = Callable[[], Iterator[tuple[slice, Tensor, Tensor]]]
"""Rows, costs and plan of one block of rows after the other."""
Potentials: TypeAlias = tuple[Tensor, Tensor]


class TransportProblem:
    """Entropic transport between two clouds with epsilon 1; ``symmetric`` where they are one and the same."""

    def __init__(self, x: Tensor, y: Tensor, a: Tensor, b: Tensor, block: int | None) -> None:
        self.x, self.y, self.a, self.b, self.symmetric = x, y, a, b, x is y
        self.log_a, self.log_b = a.log(), b.log()
        self.n = x.shape[-2]
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
        return rows, distances(self.x[..., rows, :], self.y)

    def plans(self, f: Tensor, g: Tensor) -> Plans:
        """The plan of these potentials, which need not meet the marginals."""
        f, g = f + self.log_a, g + self.log_b

        def blocks() -> Iterator[tuple[slice, Tensor, Tensor]]:
            for rows, cost in self.costs():
                yield rows, cost, (f[..., rows].unsqueeze(-1) - cost).add_(g.unsqueeze(-2)).exp_()

        return self._kept(blocks)

    def start(self) -> Potentials:
        """Potentials whose plan has no empty row or column, however far apart the points are."""
        return self.exact_sweep(self.x.new_zeros(self.x.shape[:-1]), self.y.new_zeros(self.y.shape[:-1]))

    def exact_sweep(self, f: Tensor, g: Tensor) -> Potentials:
        """Both potentials improved in the log domain, where nothing underflows."""
        g = g + self.log_b
        rowwise, below = torch.empty_like(f), torch.full_like(g, -inf)
        for rows, cost in self.costs():
            rowwise[..., rows] = -torch.logsumexp(g.unsqueeze(-2) - cost, -1)
            if not self.symmetric:
                left = rowwise[..., rows] + self.log_a[..., rows]
                below = torch.logaddexp(below, torch.logsumexp(left.unsqueeze(-1) - cost, -2))
        if self.symmetric:
            half = (f + rowwise) / 2
            return half, half
        return rowwise, -below

    def sweeps(self, plans: Plans, like: Potentials) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Ever better scalings of a plan's rows and columns, with the sums of its columns once its rows are scaled."""
        return self._symmetric_sweeps(plans, like[1]) if self.symmetric else self._alternating_sweeps(plans, like[1])

    def _symmetric_sweeps(self, plans: Plans, like: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Half a step at a time, which converges fast."""
        right = torch.ones_like(like)
        while True:
            sums = torch.cat([_times(plan, right) for _, _, plan in plans()], -1)
            yield right, right, sums
            right = (right * self.b / sums).sqrt()

    def _alternating_sweeps(self, plans: Plans, like: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        step = torch.zeros_like(like)
        mixing = Mixing(self.b)
        while True:
            right, lefts, sums = step.exp(), [], []
            for rows, _, plan in plans():
                lefts.append(self.a[..., rows] / _times(plan, right))
                sums.append(_times(plan.mT, lefts[-1]))
            columns = reduce(torch.add, sums)
            yield torch.cat(lefts, -1), right, columns
            step = mixing.next(step, self.log_b - columns.log())


class Solved(NamedTuple):
    """One problem's value, the plain cost of its plan, and the slopes at both clouds."""

    entropic: Tensor
    sharp: Tensor
    at_left: Tensor  # (..., n, d)
    at_right: Tensor
    potentials: Potentials
    converged: Tensor


def solved(
    problem: TransportProblem, start: Potentials | None, tolerance: float, max_iterations: int, *, sharp: bool
) -> Solved:
    """Sweeps that scale the plan of the potentials so far, which take the scalings in where these grow too far."""
    f, g = start or problem.start()
    tolerance = max(tolerance, _RESOLUTION[f.dtype])
    used, done = 0, False
    while True:
        plans = problem.plans(f, g)
        for left, right, columns in problem.sweeps(plans, (f, g)):
            used += 1
            if used % _LOOK_EVERY == 0 or used >= max_iterations:
                near = (right * columns - problem.b).abs().sum(-1) <= tolerance
                done, far = _look(near, left, right)
                if done or far or used >= max_iterations:
                    break
        f, g = _moved(f, left), _moved(g, right)
        if done or used >= max_iterations:
            break
        f, g = problem.exact_sweep(f, g)
    if not done:  # the scalings may have overflowed
        plans = problem.plans(f, g)
        left, right = torch.ones_like(f), torch.ones_like(g)
    slopes = _slopes(problem, plans, left, right, sharp=sharp)
    return Solved((f * problem.a).sum(-1) + (g * problem.b).sum(-1), *slopes, (f, g), near)


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
    problem: TransportProblem, plans: Plans, left: Tensor, right: Tensor, *, sharp: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The plain cost of the plan so scaled, where it is wanted, and the slopes of the costs at both clouds."""
    x, y = problem.x, problem.y
    total = x.new_zeros(x.shape[:-2])
    at_left, at_right = torch.empty_like(x), torch.zeros_like(y)
    for rows, cost, plan in plans():
        here, scaling = x[..., rows, :], left[..., rows]
        if sharp:
            total += (scaling * _times(plan * cost, right)).sum(-1)
        pull = plan.div_(cost).nan_to_num_(nan=0.0, posinf=0.0)  # the slope of a distance of 0 is 0
        at_left[..., rows, :] = _pulled(pull, here, y, scaling, right)
        if not problem.symmetric:
            at_right += _pulled(pull.mT, y, here, right, scaling)
    return total, at_left, at_right


def _pulled(pull: Tensor, here: Tensor, there: Tensor, scaling: Tensor, other: Tensor) -> Tensor:
    """The sum over all points there of their pull, once it is scaled, times the way from them to each point here."""
    other = other.unsqueeze(-1)
    sums = pull @ torch.cat([there * other, other], -1)
    return scaling.unsqueeze(-1) * (here * sums[..., -1:] - sums[..., :-1])


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)
