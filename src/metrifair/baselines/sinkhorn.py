"""Sinkhorn penalty (Oneto et al., 2020): groups' hidden representations brought together by
optimal transport.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from metrifair.baselines.network import NetworkClassifier, make_samples
from metrifair.baselines.stacked import CONDITIONED_ON, FitGrid, Fitted, TrainingData
from metrifair.baselines.transport import (
    Divergence,
    Points,
    Sinkhorn,
    distinct_points,
    stacked_points,
)
from metrifair.errors import DataError
from metrifair.estimators.settings import as_device
from metrifair.problem.criteria import usual_name
from metrifair.support.checks import check_known, check_number
from metrifair.training import Predictor
from metrifair.training.models import Network, Scaling, compute_scaling, member, stack_parameters
from metrifair.training.objective import BINARY

_DTYPES = {"double": torch.float64, "single": torch.float32}
# a CPU is slower: plans exceed its cache, and all wait for the last one to converge
_STACKS_SEEDS = ("cuda",)


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

    def _fits(self, data: TrainingData, grid: FitGrid) -> list[list[Fitted]]:
        """As many are trained at once as fit into ``memory_limit``: all strengths of some seeds, or
        some of one seed.

        On the CPU, those of one seed at a time.
        """
        seeds, rows, strengths = grid
        solver = self._check(strengths)
        penalized = any(strengths)
        parts = [
            self._part(data.take(part), seed, penalized=penalized)
            for seed, part in zip(seeds, rows, strict=True)
        ]
        together = (
            self._models_at_once(solver, parts)
            if penalized and parts
            else len(seeds) * len(strengths)
        )
        few = max(1, min(together, len(strengths)))
        many = max(1, together // few) if as_device(self.device).type in _STACKS_SEEDS else 1
        fits: list[list[Fitted]] = []
        for first in range(0, len(parts), many):
            some = parts[first : first + many]
            stacks = [
                _descend(self, solver, some, strengths[k : k + few])
                for k in range(0, len(strengths), few)
            ]
            fits += [
                [fitted for stack in stacks for fitted in stack[at]] for at in range(len(some))
            ]
        return fits

    def _check(self, strengths: Sequence[float]) -> Sinkhorn:
        self._network()
        check_known(
            "criterion", usual_name(self.criterion), ("statistical_parity", "equal_opportunity")
        )
        check_known("level", self.level, ("hidden", "output"))
        check_known("precision", self.precision, _DTYPES)
        check_known("model", self.model, ("mlp", "linear"))
        check_number("memory_limit", self.memory_limit, low=0)
        check_number("epochs", self.epochs, low=1)
        for strength in strengths:
            check_number("strength", strength, low=0)
        if self.level == "hidden" and (self.model == "linear" or not len(self.hidden)):
            raise DataError(
                "level='hidden' needs a hidden layer; use model='mlp', or level='output' for a "
                "linear model"
            )
        return Sinkhorn(self.epsilon, self.tol, self.max_iterations, self.block)

    def _part(self, data: TrainingData, seed: int, *, penalized: bool) -> SeedPart:
        labels = CONDITIONED_ON[usual_name(self.criterion)]
        data.check_cells(labels)
        scaling = (
            compute_scaling(make_samples(data), None)
            if self.standardize
            else Scaling.none(data.x.shape[1])
        )
        among = np.isin(data.y, labels) if labels else np.ones(len(data), dtype=bool)
        sides = tuple(
            distinct_points(data.x[among & (data.group == code)]) for code in (0, 1) if penalized
        )
        return SeedPart(seed, scaling, distinct_points(np.column_stack([data.x, data.y])), sides)

    def _models_at_once(self, solver: Sinkhorn, parts: Sequence[SeedPart]) -> int:
        n, m = (max(len(part.sides[code].rows) for part in parts) for code in (0, 1))
        needed = solver.memory(n, m, _DTYPES[self.precision].itemsize)
        if needed > self.memory_limit:
            raise MemoryError(
                f"transport between {n} and {m} distinct points would take {needed / 2**30:.1f} "
                "GiB, memory_limit "
                f"allows {self.memory_limit / 2**30:.1f}; pass block=1024 to keep so many rows in "
                "memory at once, "
                "raise memory_limit, use precision='single', or train on fewer rows"
            )
        return int(self.memory_limit // needed)


class SeedPart(NamedTuple):
    """The training data of the networks of one seed: measures, on the distinct rows."""

    seed: int
    scaling: Scaling
    points: Points  # the features, and the label in the last column
    sides: tuple[Points, ...]  # the features of each compared group; empty without a penalty


@dataclass(frozen=True, eq=False)
class AlignmentObjective:
    """Cross-entropy and penalty of a stack of networks; ``x`` contains all points, then those
    of each side.
    """

    network: Network
    solver: Sinkhorn
    level: str
    x: Tensor  # (seeds, n, features)
    y: Tensor  # (seeds, 1, points)
    weights: tuple[Tensor, ...]  # (seeds, 1, points), and of each side where it is compared
    strength: Tensor  # (strengths,)

    def __call__(
        self, parameters: dict[str, Tensor], before: Divergence | None, *, sharp: bool
    ) -> tuple[Tensor, Divergence | None]:
        """The objective of each network, and its divergence, computed from the start ``before``."""
        weight, *sides = self.weights
        sizes = [weight.shape[-1] for weight in self.weights]
        hidden, output = forward(self.network, parameters, self.x)
        loss = (weight * BINARY.loss(output[..., : sizes[0]], self.y)).sum(-1)
        if not sides:
            return loss, None
        compared = hidden if self.level == "hidden" else BINARY.prediction(output).unsqueeze(-1)
        _, u, v = compared.split(sizes, -2)
        divergence = self.solver.divergence(
            u, v, (sides[0], sides[1]), before and before.potentials, sharp=sharp
        )
        return loss + self.strength * divergence.value, divergence


def _objective(
    estimator: SinkhornClassifier,
    solver: Sinkhorn,
    parts: Sequence[SeedPart],
    strengths: Sequence[float],
) -> AlignmentObjective:
    """The networks of all seeds and strengths in one stack; the measures of the seeds are
    padded to one size.
    """
    network = Network(
        parts[0].scaling.mean.shape[1], tuple(estimator.hidden) if estimator.model == "mlp" else ()
    )
    compared = zip(*(part.sides for part in parts), strict=True) if any(strengths) else ()
    (table, weight), *sides = map(stacked_points, ([part.points for part in parts], *compared))
    scaling = Scaling(*map(torch.cat, zip(*(part.scaling for part in parts), strict=True)))
    x = scaling.apply(torch.cat([table[..., :-1], *(points for points, _ in sides)], 1))
    y = table[..., -1].unsqueeze(1)
    weights = [part.unsqueeze(1) for part in (weight, *(weight for _, weight in sides))]
    arrays = (x, y, torch.tensor(strengths, dtype=torch.float64), *weights)
    x, y, strength, *weights = (
        array.to(as_device(estimator.device), _DTYPES[estimator.precision]) for array in arrays
    )
    return AlignmentObjective(network, solver, estimator.level, x, y, tuple(weights), strength)


def forward(network: Network, parameters: dict[str, Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """The last hidden layer (seeds, strengths, n, units), which is x if there is none, and the
    outputs.
    """
    last = len(network.hidden)
    hidden = x.unsqueeze(1)
    if last:
        before = Network(network.features, network.hidden[:-1], network.hidden[-1])
        hidden = before(parameters, x).relu()
        hidden = hidden.unsqueeze(-1) if network.hidden[-1] == 1 else hidden
    return hidden, (hidden @ parameters[f"weight{last}"].mT + parameters[f"bias{last}"].mT).squeeze(
        -1
    )


def _descend(
    estimator: SinkhornClassifier,
    solver: Sinkhorn,
    parts: Sequence[SeedPart],
    strengths: Sequence[float],
) -> list[list[Fitted]]:
    """Gradient descent of some seeds' networks, one for each strength, all at once."""
    objective = _objective(estimator, solver, parts, strengths)
    network = objective.network
    start = stack_parameters([network.initial(part.seed) for part in parts], len(strengths))
    parameters = {name: value.to(objective.x).requires_grad_() for name, value in start.items()}
    rate = estimator.learning_rate
    divergence: Divergence | None = None
    before: Divergence | None = None
    lost = torch.zeros(len(parts), len(strengths), dtype=torch.bool, device=objective.x.device)
    short = lost.clone()  # networks one of whose transport problems was not solved
    for step in range(estimator.epochs):
        loss, divergence = objective(parameters, before, sharp=step == estimator.epochs - 1)
        if divergence is not None:
            short |= ~divergence.converged
        slopes = torch.autograd.grad(loss.sum(), list(parameters.values()))
        with torch.no_grad():
            for value, slope in zip(parameters.values(), slopes, strict=True):
                value.sub_(rate * slope)
        diverged = _diverged(parameters)
        lost |= diverged
        before = None if bool(diverged.any()) else divergence  # the potentials may be lost, too
        rate *= estimator.learning_rate_decay
    if bool((short & ~lost).any()):
        warnings.warn(
            f"Sinkhorn stopped after {estimator.max_iterations} iterations; raise max_iterations, "
            "tol or epsilon",
            ConvergenceWarning,
            stacklevel=5,
        )
    values = torch.zeros(lost.shape)
    if divergence is not None:
        values = divergence.sharp if estimator.variant == "reference" else divergence.value.detach()
    final = {name: value.detach().double().cpu() for name, value in parameters.items()}
    fits: list[list[Fitted]] = [[None] * len(strengths) for _ in parts]
    for s, k in (~lost).nonzero().tolist():
        predictor = Predictor(network, member(final, s, k), parts[s].scaling)
        fits[s][k] = {"predictor_": predictor, "divergence_": float(values[s, k])}
    return fits


@torch.no_grad()
def _diverged(parameters: dict[str, Tensor]) -> Tensor:
    """Which networks have a parameter that is not finite, (seeds, strengths); all of theirs are
    set to 0.
    """
    lost = torch.stack([~value.isfinite().flatten(2).all(-1) for value in parameters.values()]).any(
        0
    )
    for value in parameters.values():
        value.masked_fill_(lost[..., None, None], 0.0)
    return lost
