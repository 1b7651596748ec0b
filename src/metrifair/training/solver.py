"""Linear models by a solver instead of steps: all rows at once, in double precision, without a seed.

Risk + strength x the rows' own distance is piecewise smooth in the weights and cheap to evaluate exactly: one product
with the features, one sort, one product back. L-BFGS from the unpenalised optimum ends lower than a thousand
stochastic steps, sooner, and at the same place every time (docs/defaults.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.errors import DataError
from metrifair.problem.cells import Batch, Samples, sides_of
from metrifair.training.lbfgs import Floats, Minimum, Preconditioner, Value, minimum
from metrifair.training.loop import Trained
from metrifair.training.models import Network, Scaling, scaling_of
from metrifair.training.objective import Objective

_TIGHT, _ENOUGH, _ROUGH = 1e-13, 1e-8, 1e-5  # gained by ten iterations: at the start, at a strength, on the way there
_SLICES = 16  # projections of vector scores, the same at every evaluation
_MOST_FEATURES = 500  # of which all correlations are looked at
_NO_SPREAD = 1e-12  # a share of the largest variance that is none
_ROWS_AT_ONCE = 8_192
_ROWS_HASHED = 256


class Solution(NamedTuple):
    """Linear models of every strength, as a stack of one seed."""

    trained: Trained
    ends: list[Minimum]


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
    along, risk = problem.preconditioner(), problem.of_strength(0.0)
    alone = replace(problem, x=problem.x[:, :0], model=replace(model, features=0))
    intercepts = minimum(alone.of_strength(0.0), np.zeros(model.outputs), lambda gradient: gradient, tolerance=_TIGHT)
    at = np.append(np.zeros(problem.sizes[0]), intercepts.at)
    constant = _Constant(at, intercepts.value, problem.of_strength(1.0)(at)[0] - intercepts.value)
    start = minimum(risk, at, along, tolerance=_TIGHT)
    stages = _stages(problem, start, along, max(strengths), constant)
    ends = []
    for strength in strengths:
        stage, nearest = [(stage, found) for stage, found in stages if stage < strength or not stage][-1]
        if not strength:
            ends.append(start)
        elif constant.of_strength(stage) <= nearest.value and stage:  # so it is at all strengths above
            ends.append(Minimum(constant.at, constant.of_strength(strength), nearest.iterations, nearest.converged))
        else:
            ends.append(_minimum_at(strength, problem, nearest, constant, along))
    weight, bias = torch.from_numpy(np.stack([end.at for end in ends])).split(problem.sizes, -1)
    parameters = {
        "weight0": weight.reshape(1, len(ends), model.outputs, model.features),
        "bias0": bias.reshape(1, len(ends), model.outputs, 1),
    }
    failed = torch.tensor([[not isfinite(end.value) for end in ends]])
    iterations = torch.tensor([[max(1, end.iterations) for end in ends]])
    return Solution(Trained(model, parameters, problem.scaling, failed, iterations), ends)


class _Constant(NamedTuple):
    """The best model that is the same for everyone."""

    at: Floats
    risk: float
    unfairness: float

    def of_strength(self, strength: float) -> float:
        """Its objective."""
        return self.risk + strength * self.unfairness


def _stages(
    problem: _Problem, start: Minimum, along: Preconditioner, largest: float, constant: _Constant
) -> list[tuple[float, Minimum]]:
    """Strengths and rough minima to start from: 0, 1, 10, 100 and so on below the largest, one after the other.

    From the unpenalised optimum straight to a large strength the search gets caught at kinks more often. They are the
    same whatever strengths are asked for, so that models of a frontier equal single fits. The last one is where a
    constant is as good: what is not constant only rises with the strength.
    """
    found, stage = [(0.0, start)], 1.0
    while stage < largest and (len(found) == 1 or found[-1][1].value < constant.of_strength(found[-1][0])):
        last = found[-1][1]
        here = minimum(problem.of_strength(stage), last.at, along, tolerance=_ROUGH)
        found.append((stage, here._replace(iterations=last.iterations + here.iterations, converged=last.converged)))
        stage *= 10
    return found


def _minimum_at(
    strength: float, problem: _Problem, start: Minimum, constant: _Constant, along: Preconditioner
) -> Minimum:
    """The minimum at a strength, no higher than the constant model, at which no search can begin: all scores tie."""
    # Far out, where hardly any unfairness is left, the last digits are those of single rows: not worth minutes.
    tolerance = min(_ROUGH, _ENOUGH * max(1.0, strength / 10))
    found = minimum(problem.of_strength(strength), start.at, along, tolerance=tolerance)
    flat = constant.of_strength(strength)
    return Minimum(
        constant.at if flat <= found.value else found.at,
        min(flat, found.value),
        start.iterations + found.iterations,
        start.converged and found.converged,
    )


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

    def of_strength(self, strength: float) -> Value:
        """Value and gradient of the objective."""
        rows = self.rows if strength else replace(self.rows, sides=())
        every_row = len(self.x) == len(self.place)

        def value(vector: Floats) -> tuple[float, Floats]:
            weight, bias = torch.from_numpy(vector).split(self.sizes)
            if self.model.outputs == 1:
                output = torch.mv(self.x, weight).add_(bias)
            else:
                output = torch.addmm(bias, self.x, weight.view(self.model.outputs, -1).T)
            output.requires_grad_()
            with torch.enable_grad():
                self.objective.generator.manual_seed(0)  # one function: projections are not drawn anew
                terms = self.objective(output if every_row else output[self.place], rows)
                total = terms.risk + strength * terms.unfairness
                (slope,) = torch.autograd.grad(total, output)
            slope = slope.view(-1, self.model.outputs)
            gradient = torch.cat([(slope.T @ self.x).reshape(-1), slope.sum(0)]).numpy()
            decay = self.weight_decay
            return total.item() + decay / 2 * float(vector @ vector), gradient + decay * vector

        return value

    def preconditioner(self) -> Preconditioner:
        """The inverse of the features' second moments, for every output; of many features, of each alone.

        Directions in which features do not spread are left alone: of all optima the one with the smallest weights.
        """
        outputs, features = self.model.outputs, self.model.features
        many, root = features > _MOST_FEATURES, (self.count / self.count.sum()).sqrt().unsqueeze(-1)
        parts = []
        for x, own in zip(self.x.split(_ROWS_AT_ONCE), root.split(_ROWS_AT_ONCE), strict=True):
            part = torch.cat([x * own, own], 1).numpy()
            with np.errstate(over="ignore", invalid="ignore"):
                parts.append((part * part).sum(0) if many else part.T @ part)
        moments = sum(parts[1:], parts[0])
        if not np.isfinite(moments).all():
            raise DataError("X holds numbers so large that their squares are infinite; rescale it")
        variance, axes = (moments, None) if many else np.linalg.eigh(moments)
        spread = variance > _NO_SPREAD * variance.max()
        inverse = np.where(spread, 1 / np.where(spread, variance, 1.0), 0.0)
        matrix = None if axes is None else (axes * inverse) @ axes.T

        def along(gradient: Floats) -> Floats:
            weight, bias = gradient[: outputs * features].reshape(outputs, features), gradient[outputs * features :]
            found = np.concatenate([weight, bias[:, None]], 1)
            found = found * inverse if matrix is None else found @ matrix
            return np.concatenate([found[:, :-1].ravel(), found[:, -1]])

        return along


def _problem(
    data: Samples, model: Network, objective: Objective, *, weight_decay: float, standardize: bool
) -> _Problem:
    """Each distinct row once, in an order that its content gives, with the sum of its weights.

    So a row of weight two is exactly two rows, the order of rows is of no account, rows that repeat cost nothing, and
    people with the same features have the same score to the last digit.
    """
    x, y = data.x.double().numpy(), data.y.double().numpy()
    first, place = _distinct(x)
    told = [place, y, data.cell.numpy()] + ([] if data.value is None else list(data.value.numpy().T))
    chosen, number = _distinct(np.stack(told, 1).astype(np.float64))
    weight = torch.zeros(len(chosen), dtype=torch.float64)
    weight.index_add_(0, torch.from_numpy(number), data.weight.double())
    taken, features = torch.from_numpy(chosen), torch.from_numpy(place[chosen])
    if len(first) == len(chosen):
        first, features = chosen, torch.arange(len(chosen))
    count = torch.zeros(len(first), dtype=torch.float64).index_add_(0, features, weight)
    own, nothing = torch.from_numpy(x[first]), torch.zeros(len(first))
    scaling = scaling_of(Samples(own, nothing, nothing, count), None) if standardize else Scaling.none(model.features)
    even = bool((weight == weight[0]).all())
    values = None if data.value is None else data.value[taken]
    samples = Samples(torch.empty(len(chosen), 0), data.y[taken], data.cell[taken], weight / weight.mean(), values)
    return _Problem(
        scaling.in_shared_units(own, torch.device("cpu"), torch.float64)[0],
        count,
        features,
        Batch(samples, sides_of(objective.comparisons, samples.cell, None if even else weight)),
        scaling,
        model,
        replace(objective, estimate="batch", slices=_SLICES, generator=torch.Generator()),
        weight_decay,
    )


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
