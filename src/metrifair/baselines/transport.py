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
_REMEMBERED = 6  # past steps in Anderson's acceleration


class Precision(NamedTuple):
    """Limits that follow from the rounding of a number type."""

    marginal_error: float  # that rounding leaves
    log_scaling: float  # the largest without loss of precision
    ridge: float  # of nearly singular normal equations


_PRECISION = {
    torch.float64: Precision(
        marginal_error=0.0,
        log_scaling=100.0,
        ridge=1e-12,
    ),
    torch.float32: Precision(
        marginal_error=1e-5,
        log_scaling=30.0,
        ridge=1e-6,
    ),
}


class PlanBlock(NamedTuple):
    """Costs and plan of some rows."""

    rows: slice
    cost: Tensor
    plan: Tensor


class Scalings(NamedTuple):
    """Factors of a plan's rows and columns, and the sums of its columns once its rows are scaled."""

    left: Tensor
    right: Tensor
    columns: Tensor


Block = TypeVar("Block")
Plans: TypeAlias = Callable[[], Iterator[PlanBlock]]
"""One block of rows after the other."""
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
    distinct = rows[first[order]]
    weight = count[order] / len(rows)
    return Points(distinct, weight)


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
        rows = larger
        if self.block is not None:
            rows = min(self.block, larger)
        return _COPIES * itemsize * larger * rows

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
            points = torch.cat([u, v], -2)
            center = points.mean(-2, keepdim=True)
            # the unit of cost is now epsilon
            x = (u - center) / self.epsilon
            y = (v - center) / self.epsilon
            start_u, start_v, start_both = start or (None, None, None)
            # each problem is made when it is its turn: its matrices are large
            among_u = solve(TransportProblem(x, x, a, a, self.block), start_u, self, sharp=sharp)
            among_v = solve(TransportProblem(y, y, b, b, self.block), start_v, self, sharp=sharp)
            both = solve(TransportProblem(x, y, a, b, self.block), start_both, self, sharp=sharp)
            entropic_within = among_u.entropic + among_v.entropic
            entropic = both.entropic - entropic_within / 2
            sharp_within = among_u.sharp + among_v.sharp
            plain = both.sharp - sharp_within / 2
            slope_u = both.at_left - among_u.at_left
            slope_v = both.at_right - among_v.at_left
        value = self.epsilon * entropic
        for cloud, slope in ((u, slope_u), (v, slope_v)):
            change = cloud - cloud.detach()  # 0, with a gradient
            product = change * slope
            value = value + product.sum((-2, -1))
        solutions = (among_u, among_v, both)
        all_converged = [solution.converged for solution in solutions]
        return Divergence(
            value=value,
            sharp=self.epsilon * plain,
            potentials=tuple(solution.potentials for solution in solutions),
            converged=reduce(torch.logical_and, all_converged),
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
        starts = range(0, self.n, self.size)
        self.costs = self._keep_blocks(lambda: map(self._cost, starts))

    def _keep_blocks(self, blocks: Callable[[], Iterator[Block]]) -> Callable[[], Iterator[Block]]:
        """Blocks computed at each request; a single one is kept."""
        if self.size < self.n:
            return blocks
        everything = list(blocks())
        return lambda: iter(everything)

    def _cost(self, first: int) -> tuple[slice, Tensor]:
        end = min(first + self.size, self.n)
        rows = slice(first, end)
        points = self.x[..., rows, :]
        return rows, distances(points, self.y)

    def plans(self, f: Tensor, g: Tensor) -> Plans:
        """The plan of these potentials, which need not meet the marginals."""
        f = f + self.log_a
        g = g + self.log_b
        by_column = g.unsqueeze(-2)

        def blocks() -> Iterator[PlanBlock]:
            for rows, cost in self.costs():
                by_row = f[..., rows].unsqueeze(-1)
                exponent = by_row - cost
                exponent.add_(by_column)
                plan = exponent.exp_()
                yield PlanBlock(rows, cost, plan)

        return self._keep_blocks(blocks)

    def start(self) -> Potentials:
        """Potentials whose plan has no empty row or column, however far apart the points are."""
        f = torch.zeros_like(self.x[..., 0])
        g = torch.zeros_like(self.y[..., 0])
        return self.exact_sweep(f, g)

    def exact_sweep(self, f: Tensor, g: Tensor) -> Potentials:
        """Both potentials improved in the log domain, where nothing underflows."""
        g = g + self.log_b
        by_column = g.unsqueeze(-2)
        rowwise = torch.empty_like(f)
        below = torch.full_like(g, -inf)
        for rows, cost in self.costs():
            log_sums = torch.logsumexp(by_column - cost, -1)
            improved = -log_sums
            rowwise[..., rows] = improved
            if not self.symmetric:
                left = improved + self.log_a[..., rows]
                by_row = left.unsqueeze(-1)
                sums = torch.logsumexp(by_row - cost, -2)
                below = torch.logaddexp(below, sums)
        if self.symmetric:
            half = (f + rowwise) / 2
            return half, half
        return rowwise, -below

    def sweeps(self, plans: Plans, like: Tensor) -> Iterator[Scalings]:
        """Ever better scalings of a plan's rows and columns.

        If both clouds are one, half a step at a time converges fast; else steps alternate,
        accelerated.
        """
        if self.symmetric:
            right = torch.ones_like(like)
            while True:
                blocks = [_times(block.plan, right) for block in plans()]
                sums = torch.cat(blocks, -1)
                yield Scalings(right, right, sums)
                improved = right * self.b / sums
                right = improved.sqrt()
        step = torch.zeros_like(like)
        acceleration = Anderson(self.b)
        while True:
            right = step.exp()
            lefts = []
            parts = []
            for rows, _, plan in plans():
                row_sums = _times(plan, right)
                left = self.a[..., rows] / row_sums
                lefts.append(left)
                column_sums = _times(plan.mT, left)
                parts.append(column_sums)
            all_left = torch.cat(lefts, -1)
            columns = reduce(torch.add, parts)
            yield Scalings(all_left, right, columns)
            reached = self.log_b - columns.log()
            step = acceleration.next(step, reached)


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
    precision = _PRECISION[f.dtype]
    tol = max(solver.tol, precision.marginal_error)
    max_iterations = solver.max_iterations
    used = 0
    done = False
    while True:
        plans = problem.plans(f, g)
        for left, right, columns in problem.sweeps(plans, g):
            used += 1
            is_last = used >= max_iterations
            if is_last or used % _LOOK_EVERY == 0:
                errors = right * columns - problem.b
                total_error = errors.abs().sum(-1)
                near = total_error <= tol
                scalings = torch.cat([left, right], -1)
                log_scalings = scalings.log()
                moderate = log_scalings.abs() <= precision.log_scaling
                both = torch.stack([near.all(), moderate.all()])
                done, fine = both.tolist()  # one synchronization with the device
                if done or is_last or not fine:
                    break
        f = _moved(f, left)
        g = _moved(g, right)
        if done or is_last:
            break
        f, g = problem.exact_sweep(f, g)
    if not done:  # the scalings may have overflowed
        plans = problem.plans(f, g)
        left = torch.ones_like(f)
        right = torch.ones_like(g)
    slopes = _slopes(problem, plans, left, right, sharp=sharp)
    weighted_f = f * problem.a
    weighted_g = g * problem.b
    return TransportSolution(
        entropic=weighted_f.sum(-1) + weighted_g.sum(-1),
        sharp=slopes.cost,
        at_left=slopes.at_left,
        at_right=slopes.at_right,
        potentials=(f, g),
        converged=near,
    )


def _moved(potential: Tensor, scaling: Tensor) -> Tensor:
    """The potential with the scaling taken in; a model's is as it was where that overflowed."""
    step = scaling.log()
    moved = potential + step
    is_finite = step.isfinite().all(-1, keepdim=True)
    return torch.where(is_finite, moved, potential)


class Slopes(NamedTuple):
    """The plain cost of a plan, 0 if it was not requested, and the slopes at both clouds."""

    cost: Tensor
    at_left: Tensor
    at_right: Tensor


def _slopes(
    problem: TransportProblem, plans: Plans, left: Tensor, right: Tensor, *, sharp: bool
) -> Slopes:
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
            row_costs = _times(plan * cost, right)
            scaled_costs = scaling * row_costs
            total += scaled_costs.sum(-1)
        pull = plan.div_(cost)
        pull.nan_to_num_(nan=0.0, posinf=0.0)  # the slope of a distance of 0 is 0
        at_left[..., rows, :] = _total_pull(pull, here, y, scaling, right)
        if not problem.symmetric:
            at_right += _total_pull(pull.mT, y, here, right, scaling)
    return Slopes(total, at_left, at_right)


def _total_pull(
    pull: Tensor, here: Tensor, there: Tensor, scaling: Tensor, other: Tensor
) -> Tensor:
    """The sum over all points there of their scaled pull times the difference from each point
    here.
    """
    other = other.unsqueeze(-1)
    scaled_points = there * other
    scaled = torch.cat([scaled_points, other], -1)
    sums = pull @ scaled
    points = sums[..., :-1]
    weight = sums[..., -1:]
    differences = here * weight - points
    row_scaling = scaling.unsqueeze(-1)
    return row_scaling * differences


def _times(matrix: Tensor, vector: Tensor) -> Tensor:
    product = matrix @ vector.unsqueeze(-1)
    return product.squeeze(-1)


def distances(x: Tensor, y: Tensor) -> Tensor:
    """Distances between the points of x and y, (..., n, m); exactly 0 if they are equal."""
    if x.device.type == "cpu":
        # With matrix products, the distance of a point from itself would not be 0.
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    # on CUDA, cdist takes 256 threads for every pair, whose coordinates are few
    return by_coordinate(x, y)


def by_coordinate(x: Tensor, y: Tensor) -> Tensor:
    """The same distances, by one pass over all pairs for each coordinate."""
    *_, points, _ = y.shape
    total = x.new_zeros(*x.shape[:-1], points)
    coordinates = zip(x.unbind(-1), y.unbind(-1), strict=True)
    for here, there in coordinates:
        rows = here.unsqueeze(-1)
        columns = there.unsqueeze(-2)
        difference = rows - columns
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
        residual = led - x
        now = torch.stack([residual, led])
        *models, size = now.shape
        if self.past is None:
            remembered = _REMEMBERED + 1
            self.past = now.new_zeros(*models, remembered, size)
        else:
            last = self.past[..., -1, :]
            place = self.taken % _REMEMBERED
            oldest = self.past[..., place, :]
            torch.sub(now, last, out=oldest)
            self.taken += 1
        self.past[..., -1, :] = now
        missed, to = self.past
        weighted = missed * self.weight
        products = weighted @ missed.mT
        square = products[..., -1, -1]
        least = torch.full_like(square, inf)
        if self.best is not None:
            least = self.best
        self.best = torch.fmin(square, least)
        shrinking = square <= 4 * least
        grown = ~shrinking[..., None, None]  # or the residual is not a number
        past_changes = self.past[..., :-1, :]
        past_changes.masked_fill_(grown, 0.0)
        # Nearly singular normal equations, with a ridge; their solution is 0 along steps that were
        # not taken.
        among_past = products[..., :-1, :-1]
        gram = among_past.clone()
        diagonal = gram.diagonal(dim1=-2, dim2=-1)
        trace = diagonal.sum(-1, keepdim=True)
        precision = _PRECISION[gram.dtype]
        ridge = trace * precision.ridge
        least_ridge = torch.finfo(gram.dtype).tiny
        diagonal.add_(ridge + least_ridge)
        missed_by_step = products[..., :-1, -1:]
        solved, _ = torch.linalg.solve_ex(gram, missed_by_step)
        shares: Tensor = solved.masked_fill_(grown, 0.0)
        steps = to[..., :-1, :]
        change: Tensor = shares.mT @ steps
        return led - change.squeeze(-2)
