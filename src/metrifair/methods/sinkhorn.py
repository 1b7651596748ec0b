"""Sinkhorn penalty (Oneto et al., 2020): groups' hidden representations brought together by optimal transport."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import clone
from torch import Tensor

from metrifair.checks import check_known, seed_of
from metrifair.errors import DataError
from metrifair.estimators.settings import device_of
from metrifair.methods.alignment import SeedPart, objective_of, part_of
from metrifair.methods.inputs import Integers, Rows, check_cells, check_number, classification_rows
from metrifair.methods.networks import NetworkClassifier, check_diverged, fitted_copy, network_of, own_rows, subset
from metrifair.methods.transport import Divergence, Sinkhorn, warn_not_converged
from metrifair.problem.tables import Table
from metrifair.training import Predictor
from metrifair.training.models import Network, member, stacked

_LABELS: dict[str, tuple[int, ...]] = {"statistical_parity": (), "equal_opportunity": (1,)}
_DTYPES = {"double": torch.float64, "single": torch.float32}
_STACKS_SEEDS = ("cuda",)  # a CPU is slower so: plans leave its cache, and all wait for the last one to converge


class SinkhornClassifier(NetworkClassifier):
    """A network whose hidden representation is distributed alike in two groups.

    Lowers cross-entropy + strength x Sinkhorn divergence between the groups by gradient descent on all rows at once.
    Predicting needs no groups; the original takes the group as one of the features.

    Parameters
    ----------
    strength : weight of the divergence; 0 is plain gradient descent.
    criterion : ``statistical_parity``, or ``equal_opportunity`` (among the positive).
    level : penalise the last ``"hidden"`` layer, or the ``"output"`` (the probability).
    epsilon : entropic smoothing of the transport, whose cost is the distance, not squared.
    tolerance, max_iterations : of each transport problem, solved anew at every step from the last solution.
    model, hidden : ``"mlp"`` with these layers, or ``"linear"``, which has no hidden level.
    epochs : steps, each on all rows.
    learning_rate, learning_rate_decay : of the descent; the decay acts after each step.
    block : rows of a cost matrix that are in memory at once; None keeps all, which is much faster.
    memory_limit : bytes that the transport may take; more is a MemoryError before anything is allocated. Equal rows of
        a group count as one point.
    precision : ``"double"``, or ``"single"``, where the tolerance is at least 1e-5.
    variant : ``"reference"`` reports in ``divergence_`` the plain cost of the plans, as the published code did, instead
        of the entropic value; training is the same.
    standardize, device, random_state : as in FairClassifier. The paper does not standardise.

    Examples
    --------
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

    def __init__(
        self,
        strength: float = 1.0,
        *,
        criterion: str = "statistical_parity",
        level: Literal["hidden", "output"] = "hidden",
        epsilon: float = 0.1,
        tolerance: float = 1e-9,
        max_iterations: int = 1000,
        model: Literal["mlp", "linear"] = "mlp",
        hidden: Sequence[int] = (16,),
        epochs: int = 500,
        learning_rate: float = 0.1,
        learning_rate_decay: float = 1.0,
        block: int | None = None,
        memory_limit: float = 4 * 2**30,
        precision: Literal["double", "single"] = "double",
        variant: Literal["method", "reference"] = "method",
        standardize: bool = True,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.strength = strength
        self.criterion = criterion
        self.level = level
        self.epsilon = epsilon
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.model = model
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.learning_rate_decay = learning_rate_decay
        self.block = block
        self.memory_limit = memory_limit
        self.precision = precision
        self.variant = variant
        self.standardize = standardize
        self.device = device
        self.random_state = random_state

    def fit(self, X: Table, y: Table, *, sensitive_features: Table) -> Self:
        """Train from scratch; ``sensitive_features`` is one column of two groups, without missing values."""
        self.__dict__.pop("predictor_", None)
        rows = classification_rows(self, X, y, sensitive_features)
        ((fitted,),) = _fitted(self, rows, [self.strength], [seed_of(self.random_state)], [np.arange(len(rows))])
        self.predictor_, self.divergence_ = check_diverged(fitted.predictor, self.learning_rate), fitted.divergence
        return self


def fit_stack(
    estimator: SinkhornClassifier,
    X: Table,
    y: Table,
    sensitive_features: Table,
    *,
    strengths: Sequence[float],
    seeds: Sequence[int],
    rows: Sequence[ArrayLike] | None = None,
) -> list[SinkhornClassifier | None]:
    """Fitted copies for every seed and, within it, every strength; None where training diverged.

    As many are trained at once as ``memory_limit`` holds: all strengths of some seeds, or some strengths of one; on the
    CPU, of one seed at a time. They equal ``fit`` with that strength and ``random_state`` up to the tolerance. ``rows``
    are the training rows of each seed.
    """
    template = clone(estimator)
    table = classification_rows(template, X, y, sensitive_features)
    trained = _fitted(template, table, strengths, seeds, own_rows(len(table), seeds, rows))
    return [
        None
        if fitted.predictor is None
        else fitted_copy(
            template,
            {"strength": strength, "random_state": seed},
            {"predictor_": fitted.predictor, "divergence_": fitted.divergence},
        )
        for seed, own in zip(seeds, trained, strict=True)
        for strength, fitted in zip(strengths, own, strict=True)
    ]


class Fitted(NamedTuple):
    """A trained network, None where training diverged, and its last divergence."""

    predictor: Predictor | None
    divergence: float


def _fitted(
    estimator: SinkhornClassifier,
    rows: Rows,
    strengths: Sequence[float],
    seeds: Sequence[int],
    own: Sequence[Integers],
) -> list[list[Fitted]]:
    solver = _checked(estimator, strengths)
    penalised = any(strengths)
    labels = _LABELS[estimator.criterion]
    parts = []
    for seed, mine in zip(seeds, own, strict=True):
        compared = subset(rows, mine)
        check_cells(compared, labels)
        parts.append(part_of(compared, seed, labels, standardize=estimator.standardize, penalised=penalised))
    together = _models_at_once(estimator, solver, parts) if penalised and parts else len(seeds) * len(strengths)
    few = max(1, min(together, len(strengths)))
    many = max(1, together // few) if device_of(estimator.device).type in _STACKS_SEEDS else 1
    found = []
    for first in range(0, len(parts), many):
        some = parts[first : first + many]
        stacks = [_descend(estimator, solver, some, strengths[k : k + few]) for k in range(0, len(strengths), few)]
        found += [[one for stack in stacks for one in stack[at]] for at in range(len(some))]
    return found


def _checked(estimator: SinkhornClassifier, strengths: Sequence[float]) -> Sinkhorn:
    network_of(estimator)
    check_known("variant", estimator.variant, ("method", "reference"))
    check_known("criterion", estimator.criterion, _LABELS)
    check_known("level", estimator.level, ("hidden", "output"))
    check_known("precision", estimator.precision, _DTYPES)
    check_known("model", estimator.model, ("mlp", "linear"))
    check_number("memory_limit", estimator.memory_limit, low=0)
    check_number("epochs", estimator.epochs, low=1)
    for strength in strengths:
        check_number("strength", strength, low=0)
    if estimator.level == "hidden" and (estimator.model == "linear" or not len(estimator.hidden)):
        raise DataError("level='hidden' needs a hidden layer; use model='mlp', or level='output' for a linear model")
    return Sinkhorn(estimator.epsilon, estimator.tolerance, estimator.max_iterations, estimator.block)


def _models_at_once(estimator: SinkhornClassifier, solver: Sinkhorn, parts: Sequence[SeedPart]) -> int:
    n, m = (max(map(len, clouds)) for clouds in zip(*(part.sides for part in parts), strict=True))
    needed = solver.memory(n, m, _DTYPES[estimator.precision].itemsize)
    if needed > estimator.memory_limit:
        raise MemoryError(
            f"transport between {n} and {m} distinct points would take {needed / 2**30:.1f} GiB, memory_limit allows "
            f"{estimator.memory_limit / 2**30:.1f}; pass block=1024 to keep so many rows in memory at once, raise "
            "memory_limit, use precision='single', or train on fewer rows"
        )
    return int(estimator.memory_limit // needed)


def _descend(
    estimator: SinkhornClassifier, solver: Sinkhorn, parts: Sequence[SeedPart], strengths: Sequence[float]
) -> list[list[Fitted]]:
    """Gradient descent of some seeds' networks, one for each strength, all at once."""
    device, dtype = device_of(estimator.device), _DTYPES[estimator.precision]
    network = Network(parts[0].scaling.mean.shape[1], tuple(estimator.hidden) if estimator.model == "mlp" else ())
    objective = objective_of(parts, strengths, network, solver, level=estimator.level).to(device, dtype)
    start = stacked([network.initial(part.seed) for part in parts], len(strengths))
    parameters = {name: value.to(device, dtype).requires_grad_() for name, value in start.items()}
    rate = estimator.learning_rate
    found: Divergence | None = None
    before: Divergence | None = None
    lost = torch.zeros(len(parts), len(strengths), dtype=torch.bool, device=device)
    short = lost.clone()  # networks one of whose transport problems was not solved
    for step in range(estimator.epochs):
        loss, found = objective(parameters, before, sharp=step == estimator.epochs - 1)
        before = found
        if found is not None:
            short |= ~found.converged
        slopes = torch.autograd.grad(loss.sum(), list(parameters.values()))
        with torch.no_grad():
            for value, slope in zip(parameters.values(), slopes, strict=True):
                value.sub_(rate * slope)
        if bool((diverged := _diverged(parameters)).any()):
            lost |= diverged
            before = None  # the potentials may be lost, too
        rate *= estimator.learning_rate_decay
    if bool((short & ~lost).any()):
        warn_not_converged(estimator.max_iterations)
    values = torch.zeros(lost.shape)
    if found is not None:
        values = found.sharp if estimator.variant == "reference" else found.value.detach()
    divergences = values.tolist()
    final = {name: value.detach().double().cpu() for name, value in parameters.items()}
    return [
        [
            Fitted(None if gone else Predictor(network, member(final, s, k), part.scaling), divergences[s][k])
            for k, gone in enumerate(lost[s].tolist())
        ]
        for s, part in enumerate(parts)
    ]


@torch.no_grad()
def _diverged(parameters: dict[str, Tensor]) -> Tensor:
    """Which networks have a parameter that is not finite, (seeds, strengths); all of theirs are set to 0."""
    lost = torch.stack([~value.isfinite().flatten(2).all(-1) for value in parameters.values()]).any(0)
    for value in parameters.values():
        value.masked_fill_(lost[..., None, None], 0.0)
    return lost
