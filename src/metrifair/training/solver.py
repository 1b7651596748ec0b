"""Linear models by a solver instead of stochastic steps: all rows at once, in double precision,
without a seed.

Risk + strength x the distance of all rows is piecewise smooth in the weights and cheap to evaluate
exactly: one product with the features, one sort, one product back. L-BFGS from the unpenalized
optimum ends lower than a thousand stochastic steps, sooner, and at the same minimum every time
(docs/results/defaults.md). The energy distance is a sum of squares of the gaps between two
distribution functions: where these gaps are small, the Gauss-Newton matrix is its curvature.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf, isfinite, sqrt
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
from metrifair.support.checks import rows_or_none
from metrifair.training.loop import TrainedStack, computing_on
from metrifair.training.models import Network, Scaling, compute_scaling, in_pieces
from metrifair.training.objective import Objective, scores

# gain of ten iterations: at strength 0, at a strength, at a stage
_TIGHT = 1e-13
_ENOUGH = 1e-8
_ROUGH = 1e-5
# fraction of the sampling noise of the distance that many rows are fitted to
_OF_NOISE = 1e-3
_MANY_ROWS = 10_000
_SLICES = 16  # projections of vector scores, the same at every evaluation
_MOST_FEATURES = 500  # for which all correlations are used
_NO_SPREAD = 1e-12  # a smaller variance, relative to the largest, is rounding
_ROWS_HASHED = 256
# second derivative of the metric by the gap of the distribution functions
_SQUARES = {"energy": 4.0, "cramer": 2.0}
# rows of a bin, and bins, in which that gap is estimated
_BIN = 10
_MOST_BINS = 1_000
_RIDGE = 1e-6
# log-odds of an almost certain row; curvature, of at most 1/4, of a flat direction
_CERTAIN = 12.0
_FLAT = 1e-6


class Solution(NamedTuple):
    """Linear models of every strength, as a stack of one seed."""

    stack: TrainedStack
    ends: list[Minimum]
    certain: list[int]  # features that separate labels, so that their weights grow without bound


def solve_linear(
    data: Samples,
    model: Network,
    objective: Objective,
    *,
    strengths: Sequence[float],
    weight_decay: float = 0.0,
    standardize: bool = True,
) -> Solution:
    """Linear models of every strength, each independent of the others.

    They minimize the mean loss + strength x the plug-in metric of all rows + weight_decay / 2 x the
    squared parameters in units of the scaled features.
    """
    with computing_on(torch.device("cpu"), data.x.numel() * model.outputs):
        problem = _problem(
            data, model, objective, weight_decay=weight_decay, standardize=standardize
        )
        return _solve(problem, strengths)


def _solve(problem: _Problem, strengths: Sequence[float]) -> Solution:
    model = problem.model
    without_x = replace(problem, x=problem.x[:, :0], model=replace(model, features=0))
    intercepts = minimize(
        without_x.objective_at(0.0), np.zeros(model.outputs), lambda slope: slope, tolerance=_TIGHT
    )
    at = np.append(np.zeros(problem.sizes[0]), intercepts.at)
    constant = _Constant(at, intercepts.value, problem.objective_at(1.0)(at)[0] - intercepts.value)
    search = _Search(
        problem, minimize(problem.objective_at(0.0), at, problem.along, tolerance=_TIGHT), constant
    )
    stages = search.stages(max(strengths))
    ends = []
    for strength in strengths:
        below = [(stage, end) for stage, end in stages if stage < strength or not stage]
        stage, nearest = below[-1]
        if not strength:
            ends.append(search.start)
        # then also at all larger strengths
        elif constant.objective_at(stage) <= nearest.value and stage:
            ends.append(
                Minimum(
                    constant.at,
                    constant.objective_at(strength),
                    nearest.iterations,
                    nearest.converged,
                )
            )
        else:
            ends.append(search.minimum_at(strength, [end for _, end in below]))
    weight, bias = torch.from_numpy(np.stack([end.at for end in ends])).split(problem.sizes, -1)
    parameters = {
        "weight0": weight.reshape(1, len(ends), model.outputs, model.features),
        "bias0": bias.reshape(1, len(ends), model.outputs, 1),
    }
    failed = torch.tensor([[not isfinite(end.value) for end in ends]])
    iterations = torch.tensor([[max(1, end.iterations) for end in ends]])
    certain = search.certain(ends[int(np.argmin(strengths))].at)
    return Solution(
        TrainedStack(model, parameters, problem.scaling, failed, iterations), ends, certain
    )


class _Constant(NamedTuple):
    """The best constant model."""

    at: Floats
    risk: float
    unfairness: float

    def objective_at(self, strength: float) -> float:
        """Its objective at a strength."""
        return self.risk + strength * self.unfairness


@dataclass(frozen=True, eq=False)
class _Search:
    """The search from the unpenalized optimum to the minimum at a strength."""

    problem: _Problem
    start: Minimum
    constant: _Constant
    # a strength may be a stage too
    minima: dict[tuple[float, float, bytes], Minimum] = field(default_factory=dict)
    curvatures: dict[bytes, Floats] = field(default_factory=dict)  # of the penalty, at starts

    def stages(self, largest: float) -> list[tuple[float, Minimum]]:
        """Strengths and rough minima to start from: 0, 1, 10, 100 and so on below the largest, one
        after the other.

        A search from the unpenalized optimum directly to a large strength ends at kinks more often.
        Stages do not depend on the other strengths of a frontier, so that its models equal single
        fits. The last stage is where a constant is as good, because the objective of any other
        model grows with the strength.
        """
        stages = [(0.0, self.start)]
        stage = 1.0
        while stage < largest and (
            len(stages) == 1 or stages[-1][1].value < self.constant.objective_at(stages[-1][0])
        ):
            last = stages[-1][1]
            end = self.lowest(stage, last.at, tolerance=_ROUGH)
            stages.append(
                (
                    stage,
                    end._replace(
                        iterations=last.iterations + end.iterations, converged=last.converged
                    ),
                )
            )
            stage *= 10
        return stages

    def minimum_at(self, strength: float, below: Sequence[Minimum]) -> Minimum:
        """The minimum at a strength, no higher than the constant model, where no search can start:
        all scores tie.

        Few rows have many local minima, and take little time: the search then starts from the last
        two stages.
        """
        starts = (
            below[-1:] if self.risk is None or len(self.problem.place) > _MANY_ROWS else below[-2:]
        )
        minima = [self.lowest(strength, start.at, tolerance=_ENOUGH) for start in starts]
        best = min(minima, key=lambda end: end.value)
        flat = self.constant.objective_at(strength)
        return Minimum(
            self.constant.at if flat <= best.value else best.at,
            min(flat, best.value),
            below[-1].iterations + sum(end.iterations for end in minima),
            below[-1].converged and best.converged,
        )

    def lowest(self, strength: float, start: Floats, *, tolerance: float) -> Minimum:
        """The minimum near ``start``; the tolerance grows with the strength, so that noise of
        rows is not fitted.
        """
        share = _OF_NOISE * min(1.0, sqrt(len(self.problem.place) / _MANY_ROWS))
        tolerance = max(tolerance, share * strength * self.noise)
        key = (strength, tolerance, start.tobytes())
        if key not in self.minima:
            self.minima[key] = self._search(strength, start, tolerance)
        return self.minima[key]

    def _search(self, strength: float, start: Floats, tolerance: float) -> Minimum:
        value = self.problem.objective_at(strength)
        risk = self.risk
        problem = self.problem
        if risk is None:
            return minimize(value, start, problem.along, tolerance=tolerance)

        def along(at: Floats) -> Preconditioner:
            is_start = at is start  # shared by searches of several strengths
            curvature = self.curvatures.get(at.tobytes()) if is_start else None
            if curvature is None:
                curvature = problem.penalty_curvature(at)
            if is_start:
                self.curvatures[at.tobytes()] = curvature
            inverse = problem.axes @ np.linalg.solve(risk + strength * curvature, problem.axes.T)
            return lambda gradient: inverse @ gradient

        return minimize(value, start, along(start), tolerance=tolerance, renew=along)

    @cached_property
    def noise(self) -> float:
        """The penalty to expect if all scores of the start had one distribution, about."""
        with torch.no_grad():
            spread = (
                self.problem.score(self.problem.output(self.start.at))
                .std(0, correction=0)
                .mean()
                .item()
            )
        weights = self.problem.objective.weights
        return spread * sum(
            weight * sum(float(part @ part) for part in _shares(side))
            for side, weight in zip(self.problem.rows.sides, weights, strict=True)
        )

    @cached_property
    def risk(self) -> Floats | None:
        """The curvature of the risk at the start along the axes; None if curvature is not used."""
        problem = self.problem
        objective = self.problem.objective
        squares = (
            isinstance(objective.metric, str)
            and objective.metric in _SQUARES
            and objective.rho is None
        )
        dependent = any(side.dependence is not None for side in problem.rows.sides)
        if not squares or dependent or problem.model.outputs > 1 or problem.axes.ndim == 1:
            return None
        curvature = problem.risk_curvature(self.start.at)
        curvature += _RIDGE * np.trace(curvature) / len(curvature) * np.eye(len(curvature))
        return curvature

    def certain(self, at: Floats) -> list[int]:
        """Features along which the risk is flat although they vary: they separate the labels of
        some rows.

        Empty unless labels are predicted without weight decay and some are almost certain.
        """
        problem = self.problem
        if (
            problem.objective.task.name != "binary"
            or problem.weight_decay
            or problem.axes.ndim == 1
        ):
            return []
        output = problem.output(at)
        # An intercept alone, of a rare or light label, separates no rows; nor does a model that is
        # certain of none.
        if output.max() - output.min() < _CERTAIN or output.abs().max() < _CERTAIN:
            return []
        curvature, axes = np.linalg.eigh(problem.risk_curvature(at))
        if (curvature < _FLAT).all():
            return list(range(problem.model.features))
        flat = problem.axes @ axes[:, curvature < _FLAT]
        return sorted({int(np.abs(direction[:-1]).argmax()) for direction in flat.T})


@dataclass(frozen=True, eq=False)
class _Problem:
    """The objective as a function of one vector: the weights of every output, then the
    intercepts.
    """

    x: Tensor  # (m, features): distinct features, scaled
    count: Tensor  # (m,): the weight of the rows that have them
    place: Tensor  # (n,): which of them a row has
    rows: Batch  # n distinct rows; their features are in ``x``
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
            output = torch.mv(self.x, weight).add_(bias)
        else:
            output = torch.addmm(bias, self.x, weight.view(self.model.outputs, -1).T)
        return output if len(self.x) == len(self.place) else output[self.place]

    def score(self, output: Tensor) -> Tensor:
        """The scores that are compared."""
        objective = self.objective
        return scores(
            objective.criterion,
            objective.task,
            output,
            self.rows.samples.y,
            penalize=objective.penalize,
        )

    def objective_at(self, strength: float) -> Evaluate:
        """Value and gradient of the objective at a strength."""
        rows = self.rows if strength else replace(self.rows, sides=())

        def value(vector: Floats) -> tuple[float, Floats]:
            output = self.output(vector).requires_grad_()
            with torch.enable_grad():
                self.objective.generator.manual_seed(0)  # the same projections at every call
                terms = self.objective(output, rows)
                total = terms.risk + strength * terms.unfairness
                (slope,) = torch.autograd.grad(total, output)
            slope = slope.view(-1, self.model.outputs)
            if len(self.x) < len(self.place):
                slope = slope.new_zeros(len(self.x), self.model.outputs).index_add_(
                    0, self.place, slope
                )
            gradient = torch.cat([(slope.T @ self.x).reshape(-1), slope.sum(0)]).numpy()
            decay = self.weight_decay
            return total.item() + decay / 2 * float(vector @ vector), gradient + decay * vector

        return value

    def moments(self, weight: Tensor) -> Floats:
        """Second moments of the features and the intercept; of many features, only the diagonal."""
        width = self.model.features + 1
        many = self.model.features > _MOST_FEATURES
        moments = np.zeros(width if many else (width, width))
        # Products of pieces with fewer rows than columns would be slow.
        for x, root in in_pieces(
            self.x, weight.sqrt()[:, None], least_rows=1 if many else 2 * width
        ):
            part = torch.cat([x * root, root], 1).numpy()
            with np.errstate(over="ignore", invalid="ignore"):
                moments += (part * part).sum(0) if many else part.T @ part
        return moments

    @cached_property
    def axes(self) -> Floats:
        """Directions along which features have a second moment of 1, as columns; of many features,
        one scale each.

        Directions without variance are left out: of all optima the one with the smallest weights is
        found.
        """
        moments = self.moments(self.count / self.count.sum())
        if not np.isfinite(moments).all():
            raise DataError(
                "X contains numbers so large that their squares are infinite; rescale it"
            )
        if moments.ndim == 1:
            spread = moments > _NO_SPREAD * moments.max()
            return np.where(spread, 1 / np.sqrt(np.where(spread, moments, 1.0)), 0.0)
        variance, axes = np.linalg.eigh(moments)
        spread = variance > _NO_SPREAD * variance.max()
        scaled_axes: Floats = axes[:, spread] / np.sqrt(variance[spread])
        return scaled_axes

    def along(self, gradient: Floats) -> Floats:
        """The inverse of the features' second moments times a vector, for every output."""
        outputs = self.model.outputs
        features = self.model.features
        weight = gradient[: outputs * features].reshape(outputs, features)
        bias = gradient[outputs * features :]
        joined = np.concatenate([weight, bias[:, None]], 1)
        joined = joined * self.axes**2 if self.axes.ndim == 1 else joined @ self.axes @ self.axes.T
        return np.concatenate([joined[:, :-1].ravel(), joined[:, -1]])

    def risk_curvature(self, vector: Floats) -> Floats:
        """The second derivative of the risk along the axes, of one output."""
        output = self.output(vector).requires_grad_()
        samples = self.rows.samples
        with torch.enable_grad():
            loss = (
                self.objective.loss_weight(samples) * self.objective.task.loss(output, samples.y)
            ).mean()
            (slope,) = torch.autograd.grad(loss, output, create_graph=True)
            (curvature,) = torch.autograd.grad(slope.sum(), output)
        row_curvature = torch.zeros(len(self.x), dtype=torch.float64).index_add_(
            0, self.place, curvature.clamp_min(0)
        )
        return (
            self.axes.T @ self.moments(row_curvature) @ self.axes
            + self.weight_decay * self.axes.T @ self.axes
        )

    def penalty_curvature(self, vector: Floats) -> Floats:
        """The Gauss-Newton curvature of the penalty along the axes, as of a small sum of squares.

        If scores move, the mass that passes a point is their density there. Bins estimate it for
        both sides.
        """
        output = self.output(vector).requires_grad_()
        with torch.enable_grad():
            score = self.score(output)
            (slope,) = torch.autograd.grad(score.sum(), output)
        curvature = np.zeros((self.axes.shape[1],) * 2)
        for side, weight in zip(self.rows.sides, self.objective.weights, strict=True):
            side_score = score.detach()[side.rows].numpy()
            side_slope = slope[side.rows].numpy()
            bins = max(2, min(_MOST_BINS, len(side_score) // _BIN))
            edges = np.unique(np.quantile(side_score, np.linspace(0, 1, bins + 1)))
            if len(edges) == 1:
                continue  # all scores tie
            width = np.diff(edges)
            place = np.clip(np.searchsorted(edges, side_score, side="right") - 1, 0, len(width) - 1)
            left, right = _shares(side)
            passing = np.concatenate([left, -right]) * side_slope / np.sqrt(width)[place]
            past = csr_array(
                (passing, (place, self.place[side.rows].numpy())), shape=(len(width), len(self.x))
            )
            gaps = np.column_stack([past @ self.x.numpy(), past.sum(1)]) @ self.axes
            curvature += weight * _SQUARES[str(self.objective.metric)] * gaps.T @ gaps
        return curvature


def _shares(side: Sides) -> list[Floats]:
    """The weights of the rows of the left side and of the right side, each with sum 1; of a
    dependence, of all rows.
    """
    counts = side.counts
    weight = np.ones(sum(counts)) if side.weights is None else side.weights.double().numpy()
    return [part / part.sum() for part in np.split(weight, np.cumsum(counts)[:-1])]


def _problem(
    data: Samples, model: Network, objective: Objective, *, weight_decay: float, standardize: bool
) -> _Problem:
    """Each distinct row once, ordered by content, with the sum of its weights.

    So a row of weight two is exactly two rows, the order of rows has no effect, repeated rows cost
    nothing, and rows with the same features have the same score to the last digit.
    """
    x = data.x.double().numpy()
    y = data.y.double().numpy()
    first, place = _distinct(x)
    content = [place, y] + ([] if data.value is None else list(data.value.numpy().T))
    content.append(data.cell.numpy())
    chosen, number = _distinct(np.stack(content, 1).astype(np.float64))
    weight = _sums(data.weight, number, len(chosen))
    taken = torch.from_numpy(chosen)
    features = torch.from_numpy(place[chosen])
    if len(first) == len(chosen):
        first = chosen
        features = torch.arange(len(chosen))
    count = _sums(weight, features.numpy(), len(first))
    kinds = torch.from_numpy(x[first])
    zero = torch.zeros(len(first))
    scaling = (
        compute_scaling(Samples(kinds, zero, zero, count), None)
        if standardize
        else Scaling.none(model.features)
    )
    values = rows_or_none(data.value, taken)
    samples = Samples(torch.empty(len(chosen), 0), data.y[taken], data.cell[taken], weight, values)
    return _Problem(
        # in place: a second copy would take as long as ten evaluations
        kinds.sub_(scaling.mean).div_(scaling.scale),
        count,
        features,
        Batch(
            samples.with_weight(weight / weight.mean()),
            plug_in_sides(objective.comparisons, samples),
        ),
        scaling,
        model,
        replace(objective, estimate="batch", slices=_SLICES, generator=torch.Generator()),
        weight_decay,
    )


def _sums(values: Tensor, number: NDArray[np.int64], count: int) -> Tensor:
    """The sum of the values of each number from 0 to ``count`` - 1."""
    sums = torch.zeros(count, *values.shape[1:], dtype=torch.float64)
    return sums.index_add_(0, torch.from_numpy(number), values.double())


def _distinct(rows: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first of each distinct row, ordered by content, and the number of each row's kind."""
    factors = np.random.default_rng(0).integers(2**62, size=rows.shape[1], dtype=np.int64) * 2 + 1
    hashed = np.empty(len(rows), dtype=np.int64)
    for begin in range(0, len(rows), _ROWS_HASHED):
        # -0.0 is 0.0
        bits: NDArray[Any] = (rows[begin : begin + _ROWS_HASHED] + 0.0).view(np.int64)
        bits ^= bits >> 29
        hashed[begin : begin + _ROWS_HASHED] = np.einsum("ij,j->i", bits, factors)  # modulo 2^64
    order = np.argsort(hashed, kind="stable")
    new = np.ones(len(rows), dtype=np.bool_)
    new[1:] = hashed[order[1:]] != hashed[order[:-1]]
    alike = np.flatnonzero(~new)
    new[alike] = (rows[order[alike]] != rows[order[alike - 1]]).any(1)
    number = np.empty(len(rows), dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return order[new], number


Evaluate: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""A function of a vector: its value and its gradient."""
Preconditioner: TypeAlias = Callable[[Floats], Floats]
"""A symmetric, positive semidefinite matrix times a vector: an approximate inverse of the
second derivative.
"""

MOST_ITERATIONS = 2_000
_MEMORY = 30  # steps remembered
# iterations whose joint gain is compared with the tolerance, and after which curvature is renewed
_WINDOW = 10
# Wolfe conditions of the line search: sufficient decrease, remaining slope
_DECREASE = 1e-4
_CURVATURE = 0.9
# of the line search: when to stop doubling, and halving
_LONGEST = 1e12
_NARROW = 1e-3
_MOST_SIDES = 20  # gradients at a kink
_HEAVY = 1e3


class Minimum(NamedTuple):
    """The end of a search."""

    at: Floats
    value: float
    iterations: int
    converged: bool


def minimize(
    evaluate: Evaluate,
    start: Floats,
    preconditioner: Preconditioner,
    *,
    tolerance: float,
    renew: Callable[[Floats], Preconditioner] | None = None,
) -> Minimum:
    """A local minimum near ``start``, no higher than there, from which ten iterations gain less
    than ``tolerance``.

    The line search finds the weak Wolfe conditions by doubling and halving, which also ends at the
    kinks of a piecewise smooth function; L-BFGS stores the shape of a kink in its memory (Lewis and
    Overton 2013). ``renew`` computes the preconditioner at the current point, every ten iterations.

    >>> end = minimize(lambda x: (float(abs(x).sum()), np.sign(x)), np.array([3.0, -1.0]), lambda g: g, tolerance=1e-9)
    >>> end.converged, bool(end.value < 1e-8)
    (True, True)
    """
    at = start
    memory = _Memory(preconditioner)
    now, gradient = evaluate(at)
    values = [now]
    for iteration in range(MOST_ITERATIONS):
        enough = tolerance / _WINDOW * max(1.0, abs(now))
        if renew is not None and iteration and iteration % _WINDOW == 0:
            memory.preconditioner = renew(at)
        direction = memory.direction(gradient)
        slope = float(gradient @ direction)
        if not -slope / 2 > enough:  # the gain that a parabola predicts
            return Minimum(at, now, iteration, converged=True)
        step = _line_search(evaluate, at, direction, now=now, slope=slope, enough=enough)
        if not step.length:
            direction, step = _off_the_kink(
                evaluate,
                at,
                [gradient, step.gradient],
                memory.preconditioner,
                now=now,
                enough=enough,
            )
        if not step.length:  # no descent, except for rounding
            return Minimum(at, now, iteration, converged=True)
        memory.add(step.length * direction, step.gradient - gradient)
        at = at + step.length * direction
        now = step.value
        gradient = step.gradient
        values.append(now)
        if len(values) > _WINDOW and values[-1 - _WINDOW] - now <= tolerance * max(1.0, abs(now)):
            return Minimum(at, now, iteration + 1, converged=True)
    return Minimum(at, now, MOST_ITERATIONS, converged=False)


class _Step(NamedTuple):
    """The step length and the function there; length 0: no step, and the gradient is one from
    close by.
    """

    length: float
    value: float
    gradient: Floats


def _line_search(
    evaluate: Evaluate, at: Floats, direction: Floats, *, now: float, slope: float, enough: float
) -> _Step:
    """Double and halve the step, until no more than ``enough`` can be gained."""
    length = 1.0
    low = 0.0
    high = inf
    best = nearest = _Step(0.0, now, direction)
    while high * -slope > enough and length < _LONGEST:
        there, gradient = evaluate(at + length * direction)
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
    evaluate: Evaluate,
    at: Floats,
    sides: list[Floats],
    preconditioner: Preconditioner,
    *,
    now: float,
    enough: float,
) -> tuple[Floats, _Step]:
    """A descent step at a kink, where gradients differ from side to side: against the shortest of
    their mixtures.

    Each direction that fails adds the gradient of one more side. If the shortest mixture is 0,
    there is no descent.
    """
    direction = sides[0]
    step = _Step(0.0, now, sides[0])
    for _ in range(_MOST_SIDES):
        mixture = _shortest_mixture(np.stack(sides), preconditioner)
        direction = -preconditioner(mixture)
        slope = float(mixture @ direction)
        if not -slope / 2 > enough:
            break
        step = _line_search(evaluate, at, direction, now=now, slope=slope, enough=enough)
        if step.length:
            break
        sides = [*sides, step.gradient]
    return direction, step


def _shortest_mixture(sides: Floats, preconditioner: Preconditioner) -> Floats:
    """The weighted mean of these vectors that is closest to 0, in the preconditioner's metric."""
    products = sides @ np.stack([preconditioner(side) for side in sides]).T
    size = float(np.trace(products)) / len(products)
    sizes, axes = np.linalg.eigh(products / size)
    root = (axes * np.sqrt(np.clip(sizes, 0.0, None))).T
    # Nonnegative shares; the last equation has a large weight, so that they sum to 1.
    shares, _ = nnls(
        np.vstack([root, np.full(len(sides), _HEAVY)]), np.append(np.zeros(len(sides)), _HEAVY)
    )
    mixture: Floats = shares @ sides / shares.sum()
    return mixture


class _Memory:
    """The last steps and the changes of the gradient along them."""

    def __init__(self, preconditioner: Preconditioner) -> None:
        self.preconditioner = preconditioner
        self.steps: list[tuple[Floats, Floats]] = []

    def add(self, step: Floats, change: Floats) -> None:
        """Store a step, unless the function is concave along it."""
        if float(step @ change) > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self.steps = [*self.steps, (step, change)][-_MEMORY:]

    def direction(self, gradient: Floats) -> Floats:
        """Down the gradient, in the metric that the steps suggest (the two-loop recursion)."""
        rest = gradient.copy()
        shares = []
        for step, change in reversed(self.steps):
            share = float(step @ rest) / float(step @ change)
            shares.append(share)
            rest -= share * change
        direction = self.preconditioner(rest)
        if self.steps:
            step, change = self.steps[-1]
            direction *= float(step @ change) / float(change @ self.preconditioner(change))
        for (step, change), share in zip(self.steps, reversed(shares), strict=True):
            direction += (share - float(change @ direction) / float(step @ change)) * step
        return -direction
