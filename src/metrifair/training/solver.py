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
from metrifair.support.arrays import Floats, Integers
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
    multiplications = data.x.numel() * model.outputs
    with computing_on(torch.device("cpu"), multiplications):
        problem = _problem(
            data, model, objective, weight_decay=weight_decay, standardize=standardize
        )
        return _solve(problem, strengths)


def _solve(problem: _Problem, strengths: Sequence[float]) -> Solution:
    constant = _best_constant(problem)
    risk = problem.objective_at(0.0)
    unpenalized = minimize(risk, constant.at, problem.along, tolerance=_TIGHT)
    search = _Search(problem, unpenalized, constant)
    stages = search.stages(max(strengths))
    ends = [search.end_at(strength, stages) for strength in strengths]
    weakest = int(np.argmin(strengths))
    certain = search.certain(ends[weakest].at)
    return Solution(_stack(problem, ends), ends, certain)


def _best_constant(problem: _Problem) -> _Constant:
    model = replace(problem.model, features=0)
    without_x = replace(problem, x=problem.x[:, :0], model=model)
    risk = without_x.objective_at(0.0)
    zeros = np.zeros(model.outputs)
    intercepts = minimize(risk, zeros, lambda slope: slope, tolerance=_TIGHT)
    weights, _ = problem.sizes
    at = np.append(np.zeros(weights), intercepts.at)
    objective = problem.objective_at(1.0)
    total, _ = objective(at)
    return _Constant(
        at=at,
        risk=intercepts.value,
        unfairness=total - intercepts.value,
    )


def _stack(problem: _Problem, ends: Sequence[Minimum]) -> TrainedStack:
    """The models at the ends of searches."""
    model = problem.model
    leading = 1, len(ends), model.outputs
    vectors = np.stack([end.at for end in ends])
    tensor = torch.from_numpy(vectors)
    weight, bias = tensor.split(problem.sizes, -1)
    failed = [not isfinite(end.value) for end in ends]
    iterations = [max(1, end.iterations) for end in ends]
    return TrainedStack(
        model=model,
        parameters={
            "weight0": weight.reshape(*leading, model.features),
            "bias0": bias.reshape(*leading, 1),
        },
        scaling=problem.scaling,
        failed=torch.tensor([failed]),
        epochs=torch.tensor([iterations]),
    )


class Stage(NamedTuple):
    """A strength on the way to others, and a rough minimum there."""

    strength: float
    end: Minimum


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

    def stages(self, largest: float) -> list[Stage]:
        """Strengths and rough minima to start from: 0, 1, 10, 100 and so on below the largest, one
        after the other.

        A search from the unpenalized optimum directly to a large strength ends at kinks more often.
        Stages do not depend on the other strengths of a frontier, so that its models equal single
        fits. The last stage is where a constant is as good, because the objective of any other
        model grows with the strength.
        """
        last = self.start
        stages = [Stage(0.0, last)]
        strength = 1.0
        while strength < largest:
            end = self.lowest(strength, last.at, tolerance=_ROUGH)
            last = Minimum(
                at=end.at,
                value=end.value,
                iterations=last.iterations + end.iterations,
                converged=last.converged,
            )
            stages.append(Stage(strength, last))
            flat = self.constant.objective_at(strength)
            if not last.value < flat:
                break
            strength *= 10
        return stages

    def end_at(self, strength: float, stages: Sequence[Stage]) -> Minimum:
        """The minimum at a strength, by way of the stages below it."""
        if not strength:
            return self.start
        below = [stage for stage in stages if stage.strength < strength]
        last, nearest = below[-1]
        flat = self.constant.objective_at(last)
        if last and flat <= nearest.value:  # then also at all larger strengths
            value = self.constant.objective_at(strength)
            return nearest._replace(at=self.constant.at, value=value)
        return self.minimum_at(strength, [stage.end for stage in below])

    def minimum_at(self, strength: float, below: Sequence[Minimum]) -> Minimum:
        """The minimum at a strength, no higher than the constant model, where no search can start:
        all scores tie.

        Few rows have many local minima, and take little time: the search then starts from the last
        two stages.
        """
        last = below[-1]
        starts = below[-2:]
        has_many_rows = len(self.problem.place) > _MANY_ROWS
        if self.risk is None or has_many_rows:
            starts = [last]
        minima = [self.lowest(strength, start.at, tolerance=_ENOUGH) for start in starts]
        iterations = [end.iterations for end in minima]
        best = min(minima, key=lambda end: end.value)
        at = best.at
        value = best.value
        flat = self.constant.objective_at(strength)
        if flat <= value:
            at = self.constant.at
            value = flat
        return Minimum(
            at=at,
            value=value,
            iterations=last.iterations + sum(iterations),
            converged=last.converged and best.converged,
        )

    def lowest(self, strength: float, start: Floats, *, tolerance: float) -> Minimum:
        """The minimum near ``start``; the tolerance grows with the strength, so that noise of
        rows is not fitted.
        """
        rows = len(self.problem.place)
        growing = sqrt(rows / _MANY_ROWS)
        share = _OF_NOISE * min(1.0, growing)
        of_noise = share * strength * self.noise
        tolerance = max(tolerance, of_noise)
        key = strength, tolerance, start.tobytes()
        if key not in self.minima:
            self.minima[key] = self._search(strength, start, tolerance)
        return self.minima[key]

    def _search(self, strength: float, start: Floats, tolerance: float) -> Minimum:
        problem = self.problem
        value = problem.objective_at(strength)
        risk = self.risk
        if risk is None:
            return minimize(value, start, problem.along, tolerance=tolerance)

        def along(curvature: Floats) -> Preconditioner:
            total = risk + strength * curvature
            solved = np.linalg.solve(total, problem.axes.T)
            inverse = problem.axes @ solved
            return lambda gradient: inverse @ gradient

        return minimize(
            value,
            start,
            along(self._curvature_at(start)),
            tolerance=tolerance,
            renew=lambda at: along(problem.penalty_curvature(at)),
        )

    def _curvature_at(self, start: Floats) -> Floats:
        """The curvature of the penalty at a start, which searches of several strengths share."""
        key = start.tobytes()
        if key not in self.curvatures:
            self.curvatures[key] = self.problem.penalty_curvature(start)
        return self.curvatures[key]

    @cached_property
    def noise(self) -> float:
        """The penalty to expect if all scores of the start had one distribution, about."""
        problem = self.problem
        with torch.no_grad():
            output = problem.output(self.start.at)
            score = problem.score(output)
            spread = score.std(0, correction=0)
        total = 0.0
        for side, weight in zip(problem.rows.sides, problem.objective.weights, strict=True):
            squares = [float(shares @ shares) for shares in _shares(side)]
            total += weight * sum(squares)
        return spread.mean().item() * total

    @cached_property
    def risk(self) -> Floats | None:
        """The curvature of the risk at the start along the axes; None if curvature is not used."""
        problem = self.problem
        metric = problem.objective.metric
        if not isinstance(metric, str) or metric not in _SQUARES:
            return None
        if problem.objective.rho is not None or problem.model.outputs > 1:
            return None
        if any(side.dependence is not None for side in problem.rows.sides):
            return None
        if problem.axes.ndim == 1:
            return None
        curvature = problem.risk_curvature(self.start.at)
        size = len(curvature)
        mean = _RIDGE * np.trace(curvature) / size
        curvature += mean * np.eye(size)
        return curvature

    def certain(self, at: Floats) -> list[int]:
        """Features along which the risk is flat although they vary: they separate the labels of
        some rows.

        Empty unless labels are predicted without weight decay and some are almost certain.
        """
        problem = self.problem
        if problem.objective.task.name != "binary":
            return []
        if problem.weight_decay or problem.axes.ndim == 1:
            return []
        output = problem.output(at)
        # An intercept alone, of a rare or light label, separates no rows; nor does a model that is
        # certain of none.
        spread = output.max() - output.min()
        farthest = output.abs().max()
        if min(spread, farthest) < _CERTAIN:
            return []
        curvature, axes = np.linalg.eigh(problem.risk_curvature(at))
        is_flat = curvature < _FLAT
        if is_flat.all():
            return list(range(problem.model.features))
        directions = problem.axes @ axes[:, is_flat]
        sizes = np.abs(directions[:-1])
        largest = sizes.argmax(0).tolist()
        return sorted(set(largest))


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
        outputs = self.model.outputs
        return [outputs * self.model.features, outputs]

    @property
    def _has_repeated_features(self) -> bool:
        return len(self.x) < len(self.place)

    def output(self, vector: Floats) -> Tensor:
        """The model's output for every row."""
        tensor = torch.from_numpy(vector)
        weight, bias = tensor.split(self.sizes)
        outputs = self.model.outputs
        if outputs == 1:
            output = torch.mv(self.x, weight).add_(bias)
        else:
            by_output = weight.view(outputs, -1)
            output = torch.addmm(bias, self.x, by_output.T)
        if self._has_repeated_features:
            return output[self.place]
        return output

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

    def objective_at(self, strength: float) -> EvaluateWeights:
        """Value and gradient of the objective at a strength."""
        rows = self.rows
        if not strength:
            rows = replace(rows, sides=())

        def value(vector: Floats) -> tuple[float, Floats]:
            output = self.output(vector).requires_grad_()
            with torch.enable_grad():
                self.objective.generator.manual_seed(0)  # the same projections at every call
                terms = self.objective(output, rows)
                total = terms.risk + strength * terms.unfairness
                (slope,) = torch.autograd.grad(total, output)
            by_output = slope.view(-1, self.model.outputs)
            slope = self._by_features(by_output)
            weight = slope.T @ self.x
            gradient = torch.cat([weight.reshape(-1), slope.sum(0)])
            decay = self.weight_decay
            penalty = decay / 2 * float(vector @ vector)
            penalized = total.item() + penalty
            return penalized, gradient.numpy() + decay * vector

        return value

    def _by_features(self, values: Tensor) -> Tensor:
        """The sums of the rows' values over rows with the same features."""
        if not self._has_repeated_features:
            return values
        _, *columns = values.shape
        sums = values.new_zeros(len(self.x), *columns)
        return sums.index_add_(0, self.place, values)

    def moments(self, weight: Tensor) -> Floats:
        """Second moments of the features and the intercept; of many features, only the diagonal."""
        width = self.model.features + 1
        is_wide = self.model.features > _MOST_FEATURES
        moments: Floats = np.zeros((width, width))
        least_rows = 2 * width  # products of pieces with fewer rows than columns would be slow
        if is_wide:
            moments = np.zeros(width)
            least_rows = 1
        roots = weight.sqrt().unsqueeze(1)
        for x, root in in_pieces(self.x, roots, least_rows=least_rows):
            scaled = torch.cat([x * root, root], 1)
            part = scaled.numpy()
            with np.errstate(over="ignore", invalid="ignore"):
                if is_wide:
                    moments += (part * part).sum(0)
                else:
                    moments += part.T @ part
        return moments

    @cached_property
    def axes(self) -> Floats:
        """Directions along which features have a second moment of 1, as columns; of many features,
        one scale each.

        Directions without variance are left out: of all optima the one with the smallest weights is
        found.
        """
        shares = self.count / self.count.sum()
        moments = self.moments(shares)
        if not np.isfinite(moments).all():
            raise DataError(
                "X contains numbers so large that their squares are infinite; rescale it"
            )
        if moments.ndim == 1:
            has_spread = moments > _NO_SPREAD * moments.max()
            variance = np.where(has_spread, moments, 1.0)
            scales = 1 / np.sqrt(variance)
            return np.where(has_spread, scales, 0.0)
        variances, axes = np.linalg.eigh(moments)
        is_kept = variances > _NO_SPREAD * variances.max()
        deviation = np.sqrt(variances[is_kept])
        scaled_axes: Floats = axes[:, is_kept] / deviation
        return scaled_axes

    def along(self, gradient: Floats) -> Floats:
        """The inverse of the features' second moments times a vector, for every output."""
        outputs = self.model.outputs
        weights, _ = self.sizes
        weight = gradient[:weights].reshape(outputs, -1)
        bias = gradient[weights:].reshape(outputs, 1)
        joined = np.concatenate([weight, bias], 1)
        if self.axes.ndim == 1:
            product = joined * self.axes**2
        else:
            product = joined @ self.axes @ self.axes.T
        weight = product[:, :-1]
        bias = product[:, -1]
        return np.concatenate([weight.ravel(), bias])

    def risk_curvature(self, vector: Floats) -> Floats:
        """The second derivative of the risk along the axes, of one output."""
        output = self.output(vector).requires_grad_()
        samples = self.rows.samples
        task = self.objective.task
        weight = self.objective.loss_weight(samples)
        with torch.enable_grad():
            losses = task.loss(output, samples.y)
            risk = (weight * losses).mean()
            (slope,) = torch.autograd.grad(risk, output, create_graph=True)
            (curvature,) = torch.autograd.grad(slope.sum(), output)
        by_features = torch.zeros_like(self.count)
        by_features.index_add_(0, self.place, curvature.clamp_min(0))
        axes = self.axes
        moments = self.moments(by_features)
        decay = self.weight_decay * axes.T @ axes
        return axes.T @ moments @ axes + decay

    def penalty_curvature(self, vector: Floats) -> Floats:
        """The Gauss-Newton curvature of the penalty along the axes, as of a small sum of squares.

        If scores move, the mass that passes a point is their density there. Bins estimate it for
        both sides.
        """
        output = self.output(vector).requires_grad_()
        with torch.enable_grad():
            scores = self.score(output)
            (slopes,) = torch.autograd.grad(scores.sum(), output)
        score = scores.detach().numpy()
        slope = slopes.numpy()
        size = self.axes.shape[1]
        curvature = np.zeros((size, size))
        factor = _SQUARES[str(self.objective.metric)]
        for side, weight in zip(self.rows.sides, self.objective.weights, strict=True):
            gaps = self._gap_slopes(side, score, slope)
            curvature += weight * factor * gaps.T @ gaps
        return curvature

    def _gap_slopes(self, side: Sides, score: Floats, slope: Floats) -> Floats:
        """The derivative of the gap of the sides' distribution functions in each bin of scores,
        along the axes.
        """
        score = score[side.rows]
        slope = slope[side.rows]
        most = min(_MOST_BINS, len(score) // _BIN)
        bins = max(2, most)
        levels = np.linspace(0, 1, bins + 1)
        edges = np.unique(np.quantile(score, levels))
        if len(edges) == 1:  # all scores tie
            return np.zeros((1, self.axes.shape[1]))
        width = np.diff(edges)
        after = np.searchsorted(edges, score, side="right")
        place = np.clip(after - 1, 0, len(width) - 1)
        left, right = _shares(side)
        signed = np.concatenate([left, -right])
        passing = signed * slope / np.sqrt(width)[place]
        columns = self.place[side.rows].numpy()
        shape = len(width), len(self.x)
        past = csr_array((passing, (place, columns)), shape=shape)
        by_feature = past @ self.x.numpy()
        gaps = np.column_stack([by_feature, past.sum(1)])
        return gaps @ self.axes


def _shares(side: Sides) -> list[Floats]:
    """The weights of the rows of the left side and of the right side, each with sum 1; of a
    dependence, of all rows.
    """
    counts = side.counts
    weight = np.ones(sum(counts))
    if side.weights is not None:
        weight = side.weights.double().numpy()
    *starts, _ = np.cumsum(counts)
    parts = np.split(weight, starts)
    return [part / part.sum() for part in parts]


def _problem(
    data: Samples, model: Network, objective: Objective, *, weight_decay: float, standardize: bool
) -> _Problem:
    """Each distinct row once, ordered by content, with the sum of its weights.

    So a row of weight two is exactly two rows, the order of rows has no effect, repeated rows cost
    nothing, and rows with the same features have the same score to the last digit.
    """
    first, place = _distinct(data.x.double().numpy())
    chosen, number = _distinct(_content(data, place))
    weight = _sums(data.weight, number, len(chosen))
    features = torch.from_numpy(place[chosen])
    if len(first) == len(chosen):
        first = chosen
        features = torch.arange(len(chosen))
    count = _sums(weight, features.numpy(), len(first))
    x = data.x[torch.from_numpy(first)].double()
    scaling = Scaling.none(model.features)
    if standardize:
        zero = torch.zeros(len(first))
        kinds = Samples(x, zero, zero, count)
        scaling = compute_scaling(kinds, None)
    without_x = replace(data, x=data.x[:, :0])
    samples = without_x.take(torch.from_numpy(chosen)).with_weight(weight)
    even = samples.with_weight(weight / weight.mean())
    x.sub_(scaling.mean)  # in place: a second copy would take as long as ten evaluations
    x.div_(scaling.scale)
    return _Problem(
        x=x,
        count=count,
        place=features,
        rows=Batch(even, plug_in_sides(objective.comparisons, samples)),
        scaling=scaling,
        model=model,
        objective=replace(objective, estimate="batch", slices=_SLICES, generator=torch.Generator()),
        weight_decay=weight_decay,
    )


def _content(data: Samples, place: Integers) -> Floats:
    """All that distinguishes rows, as columns; ``place`` is the number of their features."""
    columns = [place, data.y.double().numpy()]
    if data.value is not None:
        columns += list(data.value.numpy().T)
    columns.append(data.cell.numpy())
    return np.stack(columns, 1).astype(np.float64)


def _sums(values: Tensor, number: Integers, count: int) -> Tensor:
    """The sum of the values of each number from 0 to ``count`` - 1."""
    precise = values.double()
    sums = precise.new_zeros(count)
    return sums.index_add_(0, torch.from_numpy(number), precise)


def _distinct(rows: Floats) -> tuple[Integers, Integers]:
    """The first of each distinct row, ordered by content, and the number of each row's kind."""
    hashed = _hash_rows(rows)
    order = np.argsort(hashed, kind="stable")
    is_new = np.ones(len(rows), dtype=np.bool_)
    is_new[1:] = np.diff(hashed[order]) != 0
    alike = np.flatnonzero(~is_new)
    row = rows[order[alike]]
    row_before = rows[order[alike - 1]]
    is_new[alike] = (row != row_before).any(1)
    number = np.empty_like(order)
    number[order] = np.cumsum(is_new) - 1
    return order[is_new], number


def _hash_rows(rows: Floats) -> Integers:
    """A number for each row, the same for equal rows."""
    generator = np.random.default_rng(0)
    count, width = rows.shape
    halves = generator.integers(2**62, size=width, dtype=np.int64)
    factors = 2 * halves + 1
    hashed = np.empty(count, dtype=np.int64)
    for begin in range(0, count, _ROWS_HASHED):
        some = slice(begin, begin + _ROWS_HASHED)
        without_sign = rows[some] + 0.0  # -0.0 is 0.0
        bits: NDArray[Any] = without_sign.view(np.int64)
        bits ^= bits >> 29
        hashed[some] = np.einsum("ij,j->i", bits, factors)  # modulo 2^64
    return hashed


EvaluateWeights: TypeAlias = Callable[[Floats], tuple[float, Floats]]
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
    evaluate: EvaluateWeights,
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
        scale = max(1.0, abs(now))
        enough = tolerance / _WINDOW * scale
        if renew is not None and iteration and iteration % _WINDOW == 0:
            memory.preconditioner = renew(at)
        direction = memory.direction(gradient)
        slope = float(gradient @ direction)
        if not -slope / 2 > enough:  # the gain that a parabola predicts
            return Minimum(at, now, iteration, converged=True)
        step = _line_search(evaluate, at, direction, now=now, slope=slope, enough=enough)
        if not step.length:
            sides = [gradient, step.gradient]
            direction, step = _off_the_kink(
                evaluate, at, sides, memory.preconditioner, now=now, enough=enough
            )
        if not step.length:  # no descent, except for rounding
            return Minimum(at, now, iteration, converged=True)
        move = step.length * direction
        memory.add(move, step.gradient - gradient)
        at = at + move
        now = step.value
        gradient = step.gradient
        values.append(now)
        if len(values) > _WINDOW:
            gain = values[-1 - _WINDOW] - now
            least = tolerance * max(1.0, abs(now))
            if gain <= least:
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
    evaluate: EvaluateWeights,
    at: Floats,
    direction: Floats,
    *,
    now: float,
    slope: float,
    enough: float,
) -> _Step:
    """Double and halve the step, until no more than ``enough`` can be gained."""
    length = 1.0
    low = 0.0
    high = inf
    best = nearest = _Step(0.0, now, direction)
    while high * -slope > enough and length < _LONGEST:
        there, gradient = evaluate(at + length * direction)
        most = now + _DECREASE * length * slope
        if not isfinite(there):
            high = length
        elif there > most:
            high = length
            nearest = _Step(0.0, now, gradient)
        else:
            if there < best.value:
                best = _Step(length, there, gradient)
            if float(gradient @ direction) >= _CURVATURE * slope:
                break
            low = length
        length = (low + high) / 2
        if high == inf:
            length = 2 * low
        if low and high - low < _NARROW * high:
            break
    return best if best.length else nearest


def _off_the_kink(
    evaluate: EvaluateWeights,
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
    count = len(sides)
    preconditioned = np.stack([preconditioner(side) for side in sides])
    products = sides @ preconditioned.T
    size = float(np.trace(products)) / count
    sizes, axes = np.linalg.eigh(products / size)
    positive = np.clip(sizes, 0.0, None)
    root = (axes * np.sqrt(positive)).T
    # Nonnegative shares; the last equation has a large weight, so that they sum to 1.
    equations = np.vstack([root, np.full(count, _HEAVY)])
    results = np.append(np.zeros(count), _HEAVY)
    shares, _ = nnls(equations, results)
    mixture: Floats = shares @ sides / shares.sum()
    return mixture


class _Memory:
    """The last steps and the changes of the gradient along them."""

    def __init__(self, preconditioner: Preconditioner) -> None:
        self.preconditioner = preconditioner
        self.steps: list[tuple[Floats, Floats]] = []

    def add(self, step: Floats, change: Floats) -> None:
        """Store a step, unless the function is concave along it."""
        curvature = float(step @ change)
        lengths = np.linalg.norm(step) * np.linalg.norm(change)
        if curvature > 1e-12 * float(lengths):
            self.steps.append((step, change))
            self.steps = self.steps[-_MEMORY:]

    def direction(self, gradient: Floats) -> Floats:
        """Down the gradient, in the metric that the steps suggest (the two-loop recursion)."""
        rest = gradient.copy()
        shares = []
        for step, change in reversed(self.steps):
            curvature = float(step @ change)
            share = float(step @ rest) / curvature
            shares.append(share)
            rest -= share * change
        direction = self.preconditioner(rest)
        if self.steps:
            step, change = self.steps[-1]
            size = float(change @ self.preconditioner(change))
            direction *= float(step @ change) / size
        for (step, change), share in zip(self.steps, reversed(shares), strict=True):
            curvature = float(step @ change)
            reached = float(change @ direction) / curvature
            direction += (share - reached) * step
        return -direction
