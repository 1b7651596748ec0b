"""Whether training has converged, estimated from the trained model and its rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from metrifair.batches.samples import Batch, tensor_sides, uneven
from metrifair.errors import MetrifairWarning
from metrifair.estimators.settings import objective_for, trainable
from metrifair.problem.cells import Comparison
from metrifair.problem.tables import Table
from metrifair.support.arrays import Floats
from metrifair.training.loop import thin_rows

_WORK = 200_000  # approximate number of scores in one evaluation
_STEPS = 30
# shares of the constant model's objective
_MUCH = 0.05
_WORSE = 0.01


@dataclass(frozen=True)
class Slack:
    """The objective on training rows: as trained, after rescaling all outputs alike, and of the
    best constant.

    A linear model and a network can multiply all their outputs by one number and add another: their
    last layer is affine. The gain of rescaling alone shows how far training is from its minimum.
    Networks are stopped before they overfit, and leave a small gain.
    """

    objective: float
    attainable: float
    constant: float

    @property
    def unfinished(self) -> bool:
        """True if the gain is large, or a constant has a lower objective on the training rows."""
        if not all(map(isfinite, (self.objective, self.attainable, self.constant))):
            return False
        gain = self.objective - self.attainable
        worse = self.objective - self.constant
        return gain > _MUCH * abs(self.constant) or worse > _WORSE * abs(self.constant)


def training_slack(estimator: Any, X: Table, y: Table, **columns: Table | None) -> Slack:
    """How far a fitted estimator is from the minimum of its objective, on its training rows or a
    sample of them.

    ``columns`` are groups, strata and weights, as in ``fit``.

    >>> from metrifair import FairRegressor
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0]
    >>> training_slack(FairRegressor(0.0, epochs=2, random_state=0).fit(X, y), X, y).unfinished
    True
    """
    data = estimator._training_data(X, y, **columns)
    samples = data.samples()
    compared: tuple[Comparison, ...] = ()
    if estimator.strength:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MetrifairWarning)  # already emitted at fit
            compared = trainable(estimator, data.problem).comparisons
    objective = objective_for(
        estimator, data.problem.scheme, data.task, compared, class_weight=data.class_weight
    )
    work = sum(sum(side.counts) for side in tensor_sides(compared, samples.cell))
    samples = samples.take(thin_rows(samples.cell, max(work, len(samples)), _WORK))
    weight = uneven(samples.weight)
    sides = tensor_sides(compared, samples.cell, weight, drawn_from=samples.cell)
    batch = Batch(samples.with_weight(samples.weight / samples.weight.mean()), sides)
    output = torch.as_tensor(
        estimator.predictor_.output(np.require(samples.x.numpy(), requirements=["C", "W"]))
    )

    def value(outputs: Tensor) -> Tensor:
        objective.generator.manual_seed(0)  # of projections: the same at each evaluation
        terms = objective(outputs, batch)
        return terms.risk + float(estimator.strength) * terms.unfairness

    # one for each class, if there are more than two
    shift = torch.zeros(output[0].numel(), dtype=torch.float64)
    attainable = _lowest(
        lambda at: value(at[0] * output + at[1:].reshape(output.shape[1:])),
        torch.cat([torch.ones(1).double(), shift]),
    )
    constant = _lowest(
        lambda at: value(torch.zeros_like(output) + at.reshape(output.shape[1:])), shift
    )
    return Slack(float(value(output)), min(attainable, constant), constant)


def _lowest(value: Callable[[Tensor], Tensor], start: Tensor) -> float:
    """The smallest value after a few steps of L-BFGS from this start.

    SciPy's: the first use of ``torch.optim`` imports PyTorch's compiler, which takes seconds.
    """

    def with_gradient(at: Floats) -> tuple[float, Floats]:
        point = torch.tensor(at, requires_grad=True)
        result = value(point)
        (gradient,) = torch.autograd.grad(result, point)
        return float(result.detach()), gradient.numpy()

    minimum = minimize(
        with_gradient, start.numpy(), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}
    )
    return float(minimum.fun)
