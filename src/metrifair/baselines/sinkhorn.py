"""Sinkhorn penalty (Oneto et al., 2020): groups' hidden representations brought together by
optimal transport.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from metrifair.baselines.baseline import CONDITIONED_ON, DIVERGED, Fitted, TrainingData
from metrifair.baselines.network import NetworkClassifier, make_samples
from metrifair.baselines.transport import Divergence, Points, Sinkhorn, distinct_points
from metrifair.errors import DataError, Diverged
from metrifair.estimators.settings import as_device
from metrifair.problem.criteria import usual_name
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_known, check_number
from metrifair.support.user_warnings import warn_user
from metrifair.training import Predictor
from metrifair.training.models import (
    Network,
    Parameters,
    Scaling,
    compute_scaling,
    stack_parameters,
)
from metrifair.training.objective import BINARY

_DTYPES = {"double": torch.float64, "single": torch.float32}


@dataclass(kw_only=True, eq=False, repr=False)
class SinkhornClassifier(NetworkClassifier):
    """A network with similar distributions of its hidden representation in two groups.

    ``fit`` minimizes cross-entropy + strength x the Sinkhorn divergence between the groups, by
    gradient descent on all rows at once. Prediction needs no groups; the original uses the group as
    a feature.

    Parameters
    ----------
    strength : float, default=1.0
        Penalty strength: the weight of the divergence. 0 is plain gradient descent.
    criterion : {"statistical_parity", "equal_opportunity"}, default="statistical_parity"
        Fairness criterion: compare all rows, or only positive rows.
    level : {"hidden", "output"}, default="hidden"
        Penalize the last hidden layer, or the output (the probability).
    epsilon : float, default=0.1
        Entropic smoothing of the transport, whose cost is the distance, not squared.
    tol : float, default=1e-9
        Tolerance of each transport problem, which every step solves again from the last solution.
    max_iterations : int, default=1000
        Maximum number of iterations of each transport problem.
    model : {"mlp", "linear"}, default="mlp"
        Model to train: a network, or a linear model, which has no hidden level.
    hidden : sequence of int, default=(16,)
        Units of the hidden layers.
    epochs : int, default=500
        Passes over the data. Each is one step on all rows.
    learning_rate : float, default=0.1
        Learning rate of gradient descent.
    learning_rate_decay : float, default=1.0
        Factor of the learning rate after each epoch, which is one step.
    block : int, default=None
        Number of rows of a cost matrix in memory at once. None keeps all rows, which is much
        faster.
    memory_limit : float, default=4 * 2**30
        Maximum number of bytes for the transport. If it needs more, ``fit`` raises a MemoryError
        before it allocates anything. Equal rows of a group count as one point.
    precision : {"double", "single"}, default="double"
        Floating-point precision. In single precision ``tol`` is at least 1e-5.
    variant : {"method", "reference"}, default="method"
        Variant of the method. The reference reports the plain cost of the plans in ``divergence_``,
        as the published code did, instead of the entropic value. Training is the same.
    standardize : bool, default=True
        Center and scale the features. The paper does not.
    device : str, default="auto"
        Device to train on. ``"auto"`` selects a CUDA device if there is one.
    random_state : int, NumPy generator or None, default=None
        Seed of the initial weights.

    Attributes
    ----------
    divergence_ : float
        The divergence at the last step.
    predictor_ : Predictor
        The network.
    classes_, groups_ : ndarray, tuple
        The classes and the groups that ``fit`` saw.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=100)
    >>> X = generator.normal(size=(100, 2)) + a[:, None]
    >>> y = (X.sum(1) > 1).astype(int)
    >>> for strength in (0.0, 3.0):
    ...     model = SinkhornClassifier(strength, epochs=100, random_state=0).fit(X, y, sensitive_features=a)
    ...     score = model.predict_proba(X)[:, 1]
    ...     print(round(score[a == 1].mean() - score[a == 0].mean(), 1))
    0.5
    0.0
    """

    _two_groups = True

    strength: float = field(default=1.0, kw_only=False)
    criterion: str = "statistical_parity"
    level: Literal["hidden", "output"] = "hidden"
    epsilon: float = 0.1
    tol: float = 1e-9
    max_iterations: int = 1000
    model: Literal["mlp", "linear"] = "mlp"
    hidden: Sequence[int] = (16,)
    epochs: int = 500
    learning_rate: float = 0.1
    learning_rate_decay: float = 1.0
    block: int | None = None
    memory_limit: float = 4 * 2**30
    precision: Literal["double", "single"] = "double"
    variant: Literal["method", "reference"] = "method"
    standardize: bool = True
    device: str = "auto"
    random_state: Any = None

    def _fit_data(self, data: TrainingData, seed: int) -> Fitted:
        return _descend(self, self._check(), self._measures(data), seed)

    def _check(self) -> Sinkhorn:
        self._network()
        check_known(
            "criterion", usual_name(self.criterion), ("statistical_parity", "equal_opportunity")
        )
        check_known("level", self.level, ("hidden", "output"))
        check_known("precision", self.precision, _DTYPES)
        check_known("model", self.model, ("mlp", "linear"))
        check_number("memory_limit", self.memory_limit, low=0)
        check_number("epochs", self.epochs, low=1)
        check_number("strength", self.strength, low=0)
        if self.level == "hidden" and (self.model == "linear" or not len(self.hidden)):
            raise DataError(
                "level='hidden' needs a hidden layer; use model='mlp', or level='output' for a "
                "linear model"
            )
        return Sinkhorn(self.epsilon, self.tol, self.max_iterations, self.block)

    def _measures(self, data: TrainingData) -> Measures:
        labels = CONDITIONED_ON[usual_name(self.criterion)]
        data.check_cells(labels)
        scaling = Scaling.none(data.features)
        if self.standardize:
            scaling = compute_scaling(make_samples(data), None)
        compared = data
        if labels:
            rows = np.flatnonzero(np.isin(data.y, labels))
            compared = data.take(rows)
        sides: tuple[Points, ...] = ()
        if self.strength:
            first = distinct_points(compared.x[compared.group == 0])
            second = distinct_points(compared.x[compared.group == 1])
            sides = first, second
            self._check_memory(len(first.rows), len(second.rows))
        content = np.column_stack([data.x, data.y])
        return Measures(scaling, distinct_points(content), sides)

    def _check_memory(self, n: int, m: int) -> None:
        itemsize = _DTYPES[self.precision].itemsize
        needed = Sinkhorn(block=self.block).memory(n, m, itemsize)
        if needed > self.memory_limit:
            raise MemoryError(
                f"transport between {n} and {m} distinct points would take {needed / 2**30:.1f} "
                "GiB, memory_limit "
                f"allows {self.memory_limit / 2**30:.1f}; pass block=1024 to keep so many rows in "
                "memory at once, "
                "raise memory_limit, use precision='single', or train on fewer rows"
            )


class Measures(NamedTuple):
    """The training data of a network, as measures on the distinct rows."""

    scaling: Scaling
    points: Points  # the features, and the label in the last column
    sides: tuple[Points, ...]  # the features of each compared group; empty without a penalty


@dataclass(frozen=True, eq=False)
class AlignmentObjective:
    """Cross-entropy and penalty of a network; ``x`` contains all points, then those of each
    side.
    """

    network: Network
    solver: Sinkhorn
    level: str
    x: Tensor  # (1, n, features)
    y: Tensor  # (1, 1, points)
    weights: tuple[Tensor, ...]  # (1, 1, points), and of each side where it is compared
    strength: float

    def __call__(
        self, parameters: Parameters, before: Divergence | None, *, sharp: bool
    ) -> tuple[Tensor, Divergence | None]:
        """The objective and the divergence, computed from the start ``before``."""
        weight, *sides = self.weights
        sizes = [weight.shape[-1] for weight in self.weights]
        hidden, output = forward(self.network, parameters, self.x)
        points = sizes[0]
        losses = BINARY.loss(output[..., :points], self.y)
        loss = (weight * losses).sum(-1)
        if not sides:
            return loss, None
        compared = hidden
        if self.level == "output":
            compared = BINARY.prediction(output).unsqueeze(-1)
        _, u, v = compared.split(sizes, -2)
        weight_u, weight_v = sides
        start = before and before.potentials
        divergence = self.solver.divergence(u, v, (weight_u, weight_v), start, sharp=sharp)
        return loss + self.strength * divergence.value, divergence


def _objective(
    estimator: SinkhornClassifier, solver: Sinkhorn, measures: Measures
) -> AlignmentObjective:
    """The objective of a network on these measures, on its device."""
    hidden: tuple[int, ...] = ()
    if estimator.model == "mlp":
        hidden = tuple(estimator.hidden)
    network = Network(measures.scaling.mean.shape[1], hidden)
    device = as_device(estimator.device)
    dtype = _DTYPES[estimator.precision]
    table = measures.points.rows
    tables = [table[:, :-1]]
    tables += [side.rows for side in measures.sides]
    features = torch.as_tensor(np.concatenate(tables))
    x = measures.scaling.apply(features.unsqueeze(0))

    def row(values: Floats) -> Tensor:
        tensor = torch.as_tensor(values).view(1, 1, -1)
        return tensor.to(device, dtype)

    all_points = (measures.points, *measures.sides)
    return AlignmentObjective(
        network=network,
        solver=solver,
        level=estimator.level,
        x=x.to(device, dtype),
        y=row(table[:, -1]),
        weights=tuple(row(points.weight) for points in all_points),
        strength=estimator.strength,
    )


def forward(network: Network, parameters: Parameters, x: Tensor) -> tuple[Tensor, Tensor]:
    """The last hidden layer (seeds, strengths, n, units), which is x if there is none, and the
    outputs.
    """
    last = len(network.hidden)
    hidden = x.unsqueeze(1)
    if last:
        *earlier, units = network.hidden
        before = Network(network.features, tuple(earlier), units)
        hidden = before(parameters, x).relu()
        if units == 1:
            hidden = hidden.unsqueeze(-1)
    weight = parameters[f"weight{last}"]
    bias = parameters[f"bias{last}"]
    output = hidden @ weight.mT + bias.mT
    return hidden, output.squeeze(-1)


def _descend(
    estimator: SinkhornClassifier, solver: Sinkhorn, measures: Measures, seed: int
) -> Fitted:
    """Gradient descent of the network; Diverged if a parameter is not finite."""
    objective = _objective(estimator, solver, measures)
    network = objective.network
    start = stack_parameters([network.initial(seed)], 1)
    parameters = {name: value.to(objective.x).requires_grad_() for name, value in start.items()}
    rate = estimator.learning_rate
    divergence: Divergence | None = None
    short = False  # whether one of the transport problems was not solved
    for step in range(estimator.epochs):
        is_last = step == estimator.epochs - 1
        loss, divergence = objective(parameters, divergence, sharp=is_last)
        if divergence is not None:
            short |= not bool(divergence.converged)
        slopes = torch.autograd.grad(loss.sum(), list(parameters.values()))
        with torch.no_grad():
            for value, slope in zip(parameters.values(), slopes, strict=True):
                value.sub_(rate * slope)
        if not all(bool(value.isfinite().all()) for value in parameters.values()):
            raise Diverged(DIVERGED.format(estimator.learning_rate))
        rate *= estimator.learning_rate_decay
    if short:
        warn_user(
            f"Sinkhorn stopped after {estimator.max_iterations} iterations; raise max_iterations, "
            "tol or epsilon",
            ConvergenceWarning,
        )
    reported = 0.0
    if divergence is not None:
        is_plain = estimator.variant == "reference"
        reported = float(divergence.sharp if is_plain else divergence.value.detach())
    final = {name: value.detach().double().cpu() for name, value in parameters.items()}
    predictor = Predictor(network, final, measures.scaling)
    return {"predictor_": predictor, "divergence_": reported}
