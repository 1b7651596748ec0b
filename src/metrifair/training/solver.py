"""Linear models by a solver instead of steps: all rows at once, in double precision, without a seed.

Risk + strength x the rows' own distance is piecewise smooth in the weights and cheap to evaluate exactly: one product
with the features, one sort, one product back. L-BFGS from the unpenalized optimum ends lower than a thousand stochastic
steps, sooner, and at the same place every time (docs/results/defaults.md). The energy distance is a sum of squares, of
the gaps between two distribution functions: where little is left of them, its curvature is that of Gauss and Newton.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.sparse import csr_array
from torch import Tensor

from metrifair.batches.samples import Batch, Samples, plug_in_sides
from metrifair.errors import DataError
from metrifair.problem.cells import Sides
from metrifair.support.arrays import Floats
from metrifair.training.loop import Trained
from metrifair.training.models import Network, Scaling, scaling_of
from metrifair.training.objective import Objective, scores

_TIGHT, _ENOUGH, _ROUGH = 1e-13, 1e-8, 1e-5  # gained by ten iterations: at the start, at a strength, on the way there
_OF_NOISE, _MANY_ROWS = 1e-3, 10_000  # of what two samples of one distribution are apart: fitted no closer, if slow
_SLICES = 16  # projections of vector scores, the same at every evaluation
_MOST_FEATURES = 500  # of which all correlations are looked at
_NO_SPREAD = 1e-12  # a share of the largest variance that is none
_ROWS_AT_ONCE = 8_192
_ROWS_HASHED = 256
_SQUARES = {"energy": 4.0, "cramer": 2.0}  # second derivative of the metric by the gap of the distribution functions
_BIN, _MOST_BINS = 10, 1_000  # rows in which that gap is looked at together
_RIDGE = 1e-6
_CERTAIN, _STRAIGHT = 12.0, 1e-6  # log-odds of who is as good as certain; curvature, of at most 1/4, that is none


class Solution(NamedTuple):
    """Linear models of every strength, as a stack of one seed."""

    trained: Trained
    ends: list[Minimum]
    certain: list[int]  # features that part labels for good, so that their weights grow for ever


def solved(
    data: Samples,
    model: Network,
    objective: Objective,
    *,
    strengths: Sequence[float],
    weight_decay: float = 0.0,
    standardize: bool = True,
) -> Solution:
    """Linear models of every strength, each independent of the others.

    What is lowered is the mean loss + strength x the metric of all rows (its plug-in value, whatever the objective
    estimates on batches) + weight_decay / 2 x the squared parameters in units of the scaled features.
    """
    problem = _problem(data, model, objective, weight_decay=weight_decay, standardize=standardize)
    alone = replace(problem, x=problem.x[:, :0], model=replace(model, features=0))
    intercepts = minimum(alone.of_strength(0.0), np.zeros(model.outputs), lambda gradient: gradient, tolerance=_TIGHT)
    at = np.append(np.zeros(problem.sizes[0]), intercepts.at)
    constant = _Constant(at, intercepts.value, problem.of_strength(1.0)(at)[0] - intercepts.value)
    search = _Search(problem, minimum(problem.of_strength(0.0), at, problem.along, tolerance=_TIGHT), constant)
    stages = search.stages(max(strengths))
    ends = []
    for strength in strengths:
        below = [(stage, found) for stage, found in stages if stage < strength or not stage]
        stage, nearest = below[-1]
        if not strength:
            ends.append(search.start)
        elif constant.of_strength(stage) <= nearest.value and stage:  # so it is at all strengths above
            ends.append(Minimum(constant.at, constant.of_strength(strength), nearest.iterations, nearest.converged))
        else:
            ends.append(search.minimum_at(strength, [found for _, found in below]))
    weight, bias = torch.from_numpy(np.stack([end.at for end in ends])).split(problem.sizes, -1)
    parameters = {
        "weight0": weight.reshape(1, len(ends), model.outputs, model.features),
        "bias0": bias.reshape(1, len(ends), model.outputs, 1),
    }
    failed = torch.tensor([[not isfinite(end.value) for end in ends]])
    iterations = torch.tensor([[max(1, end.iterations) for end in ends]])
    certain = search.certain(ends[int(np.argmin(strengths))].at)
    return Solution(Trained(model, parameters, problem.scaling, failed, iterations), ends, certain)


class _Constant(NamedTuple):
    """The best model that is the same for everyone."""

    at: Floats
    risk: float
    unfairness: float

    def of_strength(self, strength: float) -> float:
        """Its objective."""
        return self.risk + strength * self.unfairness


@dataclass(frozen=True, eq=False)
class _Search:
    """The way from the unpenalized optimum to the minimum at a strength."""

    problem: _Problem
    start: Minimum
    constant: _Constant
    searched: dict[tuple[float, float, bytes], Minimum] = field(default_factory=dict)  # a stage may be asked for too
    curved: dict[bytes, Floats] = field(default_factory=dict)

    def stages(self, largest: float) -> list[tuple[float, Minimum]]:
        """Strengths and rough minima to start from: 0, 1, 10, 100 and so on below the largest, one after the other.

        From the unpenalized optimum straight to a large strength the search gets caught at kinks more often. They are
        the same whatever strengths are asked for, so that models of a frontier equal single fits. The last one is where
        a constant is as good: what is not constant only rises with the strength.
        """
        found, stage = [(0.0, self.start)], 1.0
        while stage < largest and (len(found) == 1 or found[-1][1].value < self.constant.of_strength(found[-1][0])):
            last = found[-1][1]
            here = self.lowest(stage, last.at, tolerance=_ROUGH)
            found.append((stage, here._replace(iterations=last.iterations + here.iterations, converged=last.converged)))
            stage *= 10
        return found

    def minimum_at(self, strength: float, below: Sequence[Minimum]) -> Minimum:
        """The minimum at a strength, no higher than the constant model, at which no search can begin: all scores tie.

        Few rows have many local minima, and take little time: the search begins at two of the stages below then.
        """
        starts = below[-1:] if self.risk is None or len(self.problem.place) > _MANY_ROWS else below[-2:]
        found = [self.lowest(strength, start.at, tolerance=_ENOUGH) for start in starts]
        best = min(found, key=lambda end: end.value)
        flat = self.constant.of_strength(strength)
        return Minimum(
            self.constant.at if flat <= best.value else best.at,
            min(flat, best.value),
            below[-1].iterations + sum(end.iterations for end in found),
            below[-1].converged and best.converged,
        )

    def lowest(self, strength: float, start: Floats, *, tolerance: float) -> Minimum:
        """Where the search ends that begins there; how single rows lie is not fitted, however large the strength."""
        share = _OF_NOISE * min(1.0, len(self.problem.place) / _MANY_ROWS)
        tolerance = max(tolerance, share * strength * self.noise)
        key = (strength, tolerance, start.tobytes())
        if key not in self.searched:
            self.searched[key] = self._lowest(strength, start, tolerance)
        return self.searched[key]

    def _lowest(self, strength: float, start: Floats, tolerance: float) -> Minimum:
        value, risk, problem = self.problem.of_strength(strength), self.risk, self.problem
        if risk is None:
            return minimum(value, start, problem.along, tolerance=tolerance)

        def along(at: Floats) -> Preconditioner:
            begins = at is start  # where searches of several strengths do
            bends = self.curved.get(at.tobytes()) if begins else None
            if bends is None:
                bends = problem.penalty_curvature(at)
            if begins:
                self.curved[at.tobytes()] = bends
            inverse = problem.axes @ np.linalg.solve(risk + strength * bends, problem.axes.T)
            return lambda gradient: inverse @ gradient

        return minimum(value, start, along(start), tolerance=tolerance, renewed=along)

    @cached_property
    def noise(self) -> float:
        """About what the penalty would be, were the scores of the start all drawn from one distribution."""
        with torch.no_grad():
            spread = self.problem.score(self.problem.output(self.start.at)).std(0, correction=0).mean().item()
        weights = self.problem.objective.weights
        return spread * sum(
            weight * sum(float(part @ part) for part in _shares(side))
            for side, weight in zip(self.problem.rows.sides, weights, strict=True)
        )

    @cached_property
    def risk(self) -> Floats | None:
        """The curvature of the risk at the start along the axes; None where curvature is not made use of."""
        problem, objective = self.problem, self.problem.objective
        squares = isinstance(objective.metric, str) and objective.metric in _SQUARES and objective.rho is None
        dependent = any(side.dependence is not None for side in problem.rows.sides)
        if not squares or dependent or problem.model.outputs > 1 or problem.axes.ndim == 1:
            return None
        found = problem.risk_curvature(self.start.at)
        found += _RIDGE * np.trace(found) / len(found) * np.eye(len(found))
        return found

    def certain(self, at: Floats) -> list[int]:
        """Features along which the risk has no curvature left though they spread: they part the labels of some rows.

        Only looked for where labels are predicted without weight decay, and some are as good as certain.
        """
        problem = self.problem
        if problem.objective.task.name != "binary" or problem.weight_decay or problem.axes.ndim == 1:
            return []
        output = problem.output(at)
        # An intercept alone, of one rare or light label, parts nobody; nor does a model that is certain of no row.
        if output.max() - output.min() < _CERTAIN or output.abs().max() < _CERTAIN:
            return []
        bends, axes = np.linalg.eigh(problem.risk_curvature(at))
        if (bends < _STRAIGHT).all():
            return list(range(problem.model.features))
        ways = problem.axes @ axes[:, bends < _STRAIGHT]
        return sorted({int(np.abs(way[:-1]).argmax()) for way in ways.T})


@dataclass(frozen=True, eq=False)
class _Problem:
    """The objective as a function of one vector: the weights of every output, then the intercepts."""

    x: Tensor  # (m, features): distinct features, scaled
    count: Tensor  # (m,): the weight of the rows that have them
    place: Tensor  # (n,): which of them a row has
    rows: Batch  # n distinct rows; their features stand in ``x``
    scaling: Scaling
    model: Network
    objective: Objective
    weight_decay: float

    @property
    def sizes(self) -> list[int]:
        """How many weights there are, and how many intercepts."""
        return [self.model.outputs * self.model.features, self.model.outputs]

    def output(self, vector: Floats) -> Tensor:
        """The model's output for every row."""
        weight, bias = torch.from_numpy(vector).split(self.sizes)
        if self.model.outputs == 1:
            found = torch.mv(self.x, weight).add_(bias)
        else:
            found = torch.addmm(bias, self.x, weight.view(self.model.outputs, -1).T)
        return found if len(self.x) == len(self.place) else found[self.place]

    def score(self, output: Tensor) -> Tensor:
        """The comparisons."""
        objective = self.objective
        return scores(objective.criterion, objective.task, output, self.rows.samples.y, penalize=objective.penalize)

    def of_strength(self, strength: float) -> Value:
        """Value and gradient of the objective."""
        rows = self.rows if strength else replace(self.rows, sides=())

        def value(vector: Floats) -> tuple[float, Floats]:
            output = self.output(vector).requires_grad_()
            with torch.enable_grad():
                self.objective.generator.manual_seed(0)  # one function: projections are not drawn anew
                terms = self.objective(output, rows)
                total = terms.risk + strength * terms.unfairness
                (slope,) = torch.autograd.grad(total, output)
            slope = slope.view(-1, self.model.outputs)
            if len(self.x) < len(self.place):
                slope = slope.new_zeros(len(self.x), self.model.outputs).index_add_(0, self.place, slope)
            gradient = torch.cat([(slope.T @ self.x).reshape(-1), slope.sum(0)]).numpy()
            decay = self.weight_decay
            return total.item() + decay / 2 * float(vector @ vector), gradient + decay * vector

        return value

    def moments(self, weight: Tensor) -> Floats:
        """Second moments of the features and a one; of many features, of each alone."""
        many, parts = self.model.features > _MOST_FEATURES, []
        for x, own in zip(self.x.split(_ROWS_AT_ONCE), weight.sqrt()[:, None].split(_ROWS_AT_ONCE), strict=True):
            part = torch.cat([x * own, own], 1).numpy()
            with np.errstate(over="ignore", invalid="ignore"):
                parts.append((part * part).sum(0) if many else part.T @ part)
        found: Floats = sum(parts[1:], parts[0])
        return found

    @cached_property
    def axes(self) -> Floats:
        """Directions along which features have a second moment of 1, as columns; of many features, of each alone.

        Directions in which they do not spread are left out: of all optima the one with the smallest weights is found.
        """
        moments = self.moments(self.count / self.count.sum())
        if not np.isfinite(moments).all():
            raise DataError("X contains numbers so large that their squares are infinite; rescale it")
        if moments.ndim == 1:
            spread = moments > _NO_SPREAD * moments.max()
            return np.where(spread, 1 / np.sqrt(np.where(spread, moments, 1.0)), 0.0)
        variance, axes = np.linalg.eigh(moments)
        spread = variance > _NO_SPREAD * variance.max()
        found: Floats = axes[:, spread] / np.sqrt(variance[spread])
        return found

    def along(self, gradient: Floats) -> Floats:
        """The inverse of the features' second moments times a vector, for every output."""
        outputs, features = self.model.outputs, self.model.features
        weight, bias = gradient[: outputs * features].reshape(outputs, features), gradient[outputs * features :]
        found = np.concatenate([weight, bias[:, None]], 1)
        found = found * self.axes**2 if self.axes.ndim == 1 else found @ self.axes @ self.axes.T
        return np.concatenate([found[:, :-1].ravel(), found[:, -1]])

    def risk_curvature(self, vector: Floats) -> Floats:
        """The second derivative of the risk along the axes, of one output."""
        output, samples = self.output(vector).requires_grad_(), self.rows.samples
        with torch.enable_grad():
            loss = (self.objective.loss_weight(samples) * self.objective.task.loss(output, samples.y)).mean()
            (slope,) = torch.autograd.grad(loss, output, create_graph=True)
            (bend,) = torch.autograd.grad(slope.sum(), output)
        bends = torch.zeros(len(self.x), dtype=torch.float64).index_add_(0, self.place, bend.clamp_min(0))
        return self.axes.T @ self.moments(bends) @ self.axes + self.weight_decay * self.axes.T @ self.axes

    def penalty_curvature(self, vector: Floats) -> Floats:
        """The second derivative of the penalty along the axes, as if there were hardly any: that of a sum of squares.

        Where scores move, what moves past a point is their density there, in each side. Bins estimate both.
        """
        output = self.output(vector).requires_grad_()
        with torch.enable_grad():
            score = self.score(output)
            (slope,) = torch.autograd.grad(score.sum(), output)
        found = np.zeros((self.axes.shape[1],) * 2)
        for side, weight in zip(self.rows.sides, self.objective.weights, strict=True):
            own, ahead = score.detach()[side.rows].numpy(), slope[side.rows].numpy()
            bins = max(2, min(_MOST_BINS, len(own) // _BIN))
            edges = np.unique(np.quantile(own, np.linspace(0, 1, bins + 1)))
            if len(edges) == 1:
                continue  # all scores tie
            width = np.diff(edges)
            place = np.clip(np.searchsorted(edges, own, side="right") - 1, 0, len(width) - 1)
            left, right = _shares(side)
            passing = np.concatenate([left, -right]) * ahead / np.sqrt(width)[place]
            past = csr_array((passing, (place, self.place[side.rows].numpy())), shape=(len(width), len(self.x)))
            gaps = np.column_stack([past @ self.x.numpy(), past.sum(1)]) @ self.axes
            found += weight * _SQUARES[str(self.objective.metric)] * gaps.T @ gaps
        return found


def _shares(side: Sides) -> list[Floats]:
    """The weight of each row in its side, those of the left and those of the right; of a dependence, of all."""
    counts = side.counts
    weight = np.ones(sum(counts)) if side.weights is None else side.weights.double().numpy()
    return [part / part.sum() for part in np.split(weight, np.cumsum(counts)[:-1])]


def _problem(
    data: Samples, model: Network, objective: Objective, *, weight_decay: float, standardize: bool
) -> _Problem:
    """Each distinct row once, in an order that its content gives, with the sum of its weights.

    So a row of weight two is exactly two rows, the order of rows is of no account, rows that repeat cost nothing, and
    people with the same features have the same score to the last digit.
    """
    x, y = data.x.double().numpy(), data.y.double().numpy()
    first, place = _distinct(x)
    content = [place, y] + ([] if data.value is None else list(data.value.numpy().T))
    content += [data.cell.numpy()] if data.shares is None else []  # shares are summed
    chosen, number = _distinct(np.stack(content, 1).astype(np.float64))
    weight = _sums(data.weight, number, len(chosen))
    shares = None if data.shares is None else _sums(data.shares, number, len(chosen))
    taken, features = torch.from_numpy(chosen), torch.from_numpy(place[chosen])
    if len(first) == len(chosen):
        first, features = chosen, torch.arange(len(chosen))
    count = _sums(weight, features.numpy(), len(first))
    own, nothing = torch.from_numpy(x[first]), torch.zeros(len(first))
    scaling = scaling_of(Samples(own, nothing, nothing, count), None) if standardize else Scaling.none(model.features)
    values = None if data.value is None else data.value[taken]
    samples = Samples(torch.empty(len(chosen), 0), data.y[taken], data.cell[taken], weight, values, shares)
    return _Problem(
        scaling.in_shared_units(own, torch.device("cpu"), torch.float64)[0],
        count,
        features,
        Batch(samples.with_weight(weight / weight.mean()), plug_in_sides(objective.comparisons, samples)),
        scaling,
        model,
        replace(objective, estimate="batch", slices=_SLICES, generator=torch.Generator()),
        weight_decay,
    )


def _sums(values: Tensor, number: NDArray[np.int64], count: int) -> Tensor:
    """The sums of values of equal numbers, of which there are ``count``."""
    found = torch.zeros(count, *values.shape[1:], dtype=torch.float64)
    return found.index_add_(0, torch.from_numpy(number), values.double())


def _distinct(rows: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One row of each kind, in an order that their content gives, and for every row the number of its kind."""
    factors = np.random.default_rng(0).integers(2**62, size=rows.shape[1], dtype=np.int64) * 2 + 1
    hashed = np.empty(len(rows), dtype=np.int64)
    for begin in range(0, len(rows), _ROWS_HASHED):
        bits: NDArray[Any] = (rows[begin : begin + _ROWS_HASHED] + 0.0).view(np.int64)  # -0.0 is 0.0
        bits ^= bits >> 29
        hashed[begin : begin + _ROWS_HASHED] = np.einsum("ij,j->i", bits, factors)  # it wraps around
    order = np.argsort(hashed, kind="stable")
    new = np.ones(len(rows), dtype=np.bool_)
    new[1:] = hashed[order[1:]] != hashed[order[:-1]]
    alike = np.flatnonzero(~new)
    new[alike] = (rows[order[alike]] != rows[order[alike - 1]]).any(1)
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return order[new], number


Value: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""A function of a vector: its value and its gradient."""
Preconditioner: TypeAlias = Callable[[Floats], Floats]
"""A symmetric, positive semidefinite matrix times a vector: about the inverse of the second derivative."""

MOST_ITERATIONS = 2_000
_MEMORY = 30  # steps remembered
_WINDOW = 10  # iterations that must have gained something together, and after which curvature is looked at anew
_DECREASE, _CURVATURE = 1e-4, 0.9  # of the line search: sufficient decrease, and slope left over
_LONGEST, _NARROW = 1e12, 1e-3  # of the line search: when to give up doubling, and halving
_MOST_SIDES = 20  # of a kink, that are looked at
_HEAVY = 1e3


class Minimum(NamedTuple):
    """Where the search ended."""

    at: Floats
    value: float
    iterations: int
    converged: bool


def minimum(
    value: Value,
    start: Floats,
    preconditioner: Preconditioner,
    *,
    tolerance: float,
    renewed: Callable[[Floats], Preconditioner] | None = None,
) -> Minimum:
    """A local minimum near ``start``, no higher than there; found when ten iterations gain less than ``tolerance``.

    The line search finds the weak Wolfe conditions by doubling and halving, which ends at the kinks of a piecewise
    smooth function too, and where L-BFGS keeps what a kink looks like in its memory (Lewis and Overton 2013).
    ``renewed`` gives the preconditioner of where the search stands, and is asked for it every ten iterations.

    >>> found = minimum(lambda x: (float(abs(x).sum()), np.sign(x)), np.array([3.0, -1.0]), lambda g: g, tolerance=1e-9)
    >>> found.converged, bool(found.value < 1e-8)
    (True, True)
    """
    at, memory = start, _Memory(preconditioner)
    now, gradient = value(at)
    values = [now]
    for iteration in range(MOST_ITERATIONS):
        enough = tolerance / _WINDOW * max(1.0, abs(now))
        if renewed is not None and iteration and iteration % _WINDOW == 0:
            memory.preconditioner = renewed(at)
        direction = memory.direction(gradient)
        slope = float(gradient @ direction)
        if not -slope / 2 > enough:  # what a parabola still promises
            return Minimum(at, now, iteration, converged=True)
        step = _line_search(value, at, direction, now=now, slope=slope, enough=enough)
        if not step.length:
            direction, step = _off_the_kink(
                value, at, [gradient, step.gradient], memory.preconditioner, now=now, enough=enough
            )
        if not step.length:  # no way down, but for rounding
            return Minimum(at, now, iteration, converged=True)
        memory.add(step.length * direction, step.gradient - gradient)
        at, now, gradient = at + step.length * direction, step.value, step.gradient
        values.append(now)
        if len(values) > _WINDOW and values[-1 - _WINDOW] - now <= tolerance * max(1.0, abs(now)):
            return Minimum(at, now, iteration + 1, converged=True)
    return Minimum(at, now, MOST_ITERATIONS, converged=False)


class _Step(NamedTuple):
    """The step length and the function there; length 0: no step, and the gradient is one from close by."""

    length: float
    value: float
    gradient: Floats


def _line_search(value: Value, at: Floats, direction: Floats, *, now: float, slope: float, enough: float) -> _Step:
    """Doubling and halving, until nothing worth it can be gained."""
    length, low, high = 1.0, 0.0, inf
    best = nearest = _Step(0.0, now, direction)
    while high * -slope > enough and length < _LONGEST:
        there, gradient = value(at + length * direction)
        if not isfinite(there) or there > now + _DECREASE * length * slope:
            high = length
            nearest = _Step(0.0, now, gradient) if isfinite(there) else nearest
        else:
            if there < best.value:
                best = _Step(length, there, gradient)
            if float(gradient @ direction) >= _CURVATURE * slope:
                break
            low = length
        length = 2 * low if high == inf else (low + high) / 2
        if low and high - low < _NARROW * high:
            break
    return best if best.length else nearest


def _off_the_kink(
    value: Value, at: Floats, sides: list[Floats], preconditioner: Preconditioner, *, now: float, enough: float
) -> tuple[Floats, _Step]:
    """A way down from where gradients differ from side to side: against the shortest of their mixtures.

    Each direction that fails shows the gradient of one more side; when the shortest mixture is 0, there is no way down.
    """
    direction, step = sides[0], _Step(0.0, now, sides[0])
    for _ in range(_MOST_SIDES):
        mixture = _shortest_mixture(np.stack(sides), preconditioner)
        direction = -preconditioner(mixture)
        slope = float(mixture @ direction)
        if not -slope / 2 > enough:
            break
        step = _line_search(value, at, direction, now=now, slope=slope, enough=enough)
        if step.length:
            break
        sides = [*sides, step.gradient]
    return direction, step


def _shortest_mixture(sides: Floats, preconditioner: Preconditioner) -> Floats:
    """Of all weighted means of these vectors the one closest to 0, in the preconditioner's metric."""
    products = sides @ np.stack([preconditioner(side) for side in sides]).T
    size = float(np.trace(products)) / len(products)
    sizes, axes = np.linalg.eigh(products / size)
    root = (axes * np.sqrt(np.clip(sizes, 0.0, None))).T
    # Shares from 0 upwards that the last equation, a heavy one, makes sum to 1.
    shares, _ = nnls(np.vstack([root, np.full(len(sides), _HEAVY)]), np.append(np.zeros(len(sides)), _HEAVY))
    mixture: Floats = shares @ sides / shares.sum()
    return mixture


class _Memory:
    """The last steps and the changes of the gradient along them."""

    def __init__(self, preconditioner: Preconditioner) -> None:
        self.preconditioner = preconditioner
        self.steps: list[tuple[Floats, Floats]] = []

    def add(self, step: Floats, change: Floats) -> None:
        """Remember a step, unless the function bends the wrong way along it."""
        if float(step @ change) > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self.steps = [*self.steps, (step, change)][-_MEMORY:]

    def direction(self, gradient: Floats) -> Floats:
        """Down the gradient, in the metric that the steps suggest (the two-loop recursion)."""
        rest, shares = gradient.copy(), []
        for step, change in reversed(self.steps):
            share = float(step @ rest) / float(step @ change)
            shares.append(share)
            rest -= share * change
        found = self.preconditioner(rest)
        if self.steps:
            step, change = self.steps[-1]
            found *= float(step @ change) / float(change @ self.preconditioner(change))
        for (step, change), share in zip(self.steps, reversed(shares), strict=True):
            found += (share - float(change @ found) / float(step @ change)) * step
        return -found
