"""Methods that train networks or any other classifier: parameters, predictions, and batches
with weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter
from torch import Tensor

from metrifair.baselines.stacked import (
    DIVERGED,
    FitGrid,
    LogOddsMixin,
    StackedEstimator,
    TrainingData,
    WeightedEstimator,
    features_at_predict,
)
from metrifair.batches.samples import Samples
from metrifair.errors import DataError, Diverged
from metrifair.estimators import FairClassifier
from metrifair.estimators.estimator import model_output
from metrifair.estimators.settings import as_device, check_settings, model_for, schedule_for
from metrifair.metrics.penalty_options import PenaltyOptions, penalty_options
from metrifair.postprocessing.postprocessor import check_learner
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.problem.problem import Scheme
from metrifair.problem.tables import Table
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import groups_if_accepted, make_seed
from metrifair.training import Predictor, train
from metrifair.training.models import Model, Moments, Parameters
from metrifair.training.objective import BINARY, MULTICLASS, Objective
from metrifair.training.stack import Epoch, EpochSource, Outputs

_NETWORK = (
    "model",
    "hidden",
    "batch_size",
    "epochs",
    "learning_rate",
    "device",
)
_OPTIONS = ("learning_rate_decay", "standardize")  # of PenaltyOptions


class NetworkClassifier(LogOddsMixin, StackedEstimator):
    """A network that ``fit`` stores in ``predictor_``; its output is the log-odds of the
    positive class.
    """

    def _log_odds(self, X: Table) -> Floats:
        return model_output(self, X)

    def _network(self) -> FairClassifier:
        """The plain network that the parameters describe, checked."""
        network = FairClassifier(
            0.0, **{name: getattr(self, name) for name in _NETWORK if hasattr(self, name)}
        )
        options = {name: getattr(self, name) for name in _OPTIONS if hasattr(self, name)}
        network.penalty = PenaltyOptions(**options)
        check_settings(network)
        return network


@dataclass(kw_only=True, eq=False, repr=False)
class BatchedNetworkClassifier(NetworkClassifier):
    """A network that is trained on batches, with the parameters of FairClassifier for that."""

    model: str | torch.nn.Module = "mlp"
    hidden: Sequence[int] = (16,)
    batch_size: int | Literal["auto"] = "auto"
    epochs: int | Literal["auto"] = "auto"
    learning_rate: float = 5e-3
    learning_rate_decay: float = 1.0
    standardize: bool = True
    device: str = "auto"
    random_state: Any = None


def train_networks(
    network: FairClassifier,
    data: Samples,
    objective: Objective,
    grid: FitGrid,
    *,
    source: EpochSource | None = None,
    path: bool = False,
    model: Model | None = None,
) -> list[list[Predictor | None]]:
    """Trained networks of each seed and, within it, each strength; None if training diverged.

    ``model`` replaces the model with one output that ``network`` describes.
    """
    schedule = replace(
        schedule_for(network, max(map(len, grid.rows))),
        growth=0.0,
        cooldown=0.0,
        from_constant=False,
    )
    stack = train(
        data,
        model or model_for(network, data.x.shape[1], 1),
        objective,
        strengths=grid.strengths,
        seeds=grid.seeds,
        schedule=schedule,
        rows=[torch.as_tensor(rows) for rows in grid.rows],
        source=source,
        path=path,
        standardize=penalty_options(network).standardize,
        device=as_device(network.device),
        verbose=network.verbose,
    )
    failed = stack.failed.cpu().numpy()
    return [
        [None if failed[s, k] else stack.predictor(s, k) for k in range(len(grid.strengths))]
        for s in range(len(grid.seeds))
    ]


def make_samples(
    data: TrainingData, cell: Tensor | None = None, *, vector: bool = False
) -> Samples:
    """The rows as samples; ``vector`` for models with an output for each class."""
    y = data.y if vector else data.y.astype(np.float64)
    cell = torch.zeros(len(data), dtype=torch.long) if cell is None else cell
    return Samples(torch.as_tensor(data.x), torch.as_tensor(y), cell, torch.as_tensor(data.weight))


@dataclass(frozen=True, eq=False)
class _Continued:
    """A model whose copies in a stack start from these parameters, one after the other; seeds
    may be equal.
    """

    model: Model
    starts: Iterator[dict[str, Tensor]]

    def initial(self, seed: int) -> dict[str, Tensor]:  # noqa: ARG002
        return next(self.starts)

    def __call__(self, parameters: Parameters, x: Tensor, *, training: bool = False) -> Tensor:
        return self.model(parameters, x, training=training)


def fit_weighted(
    network: FairClassifier,
    data: TrainingData,
    grid: FitGrid,
    weights: Sequence[Floats],
    earlier: Sequence[FairClassifier] = (),
) -> list[FairClassifier]:
    """Plain networks, one for each seed, on its rows with their weights in the loss.

    The loss of a batch is the weighted mean with the batch size as denominator, for weights with
    mean 1. ``earlier`` are networks to start from, in the same order.
    """
    classes = int(data.y.max()) + 1
    task, outputs = (BINARY, 1) if classes == 2 else (MULTICLASS, classes)
    check_settings(network)
    schedule = schedule_for(network, min(map(len, grid.rows)))
    model = model_for(network, data.x.shape[1], outputs)
    samples = make_samples(data, vector=task.vector)
    starts = (
        {name: value[0, 0] for name, value in old.predictor_.parameters.items()} for old in earlier
    )
    started: Model = _Continued(model, starts) if earlier else model
    source = weighted_epochs(grid.rows, weights, schedule.batch_size)
    networks = train_networks(
        network, samples, Objective(task, ()), grid, source=source, model=started
    )
    fitted = []
    for seed, (predictor,), rows in zip(grid.seeds, networks, grid.rows, strict=True):
        if predictor is None:
            raise Diverged(DIVERGED.format(network.learning_rate))
        copy = clone(network).set_params(random_state=seed)
        copy.classes_ = np.arange(classes)
        copy.n_features_in_ = data.x.shape[1]
        copy.predictor_ = replace(predictor, model=model)
        copy.scheme_ = Scheme(STATISTICAL_PARITY, tuple(range(classes)), classes - 1)
        copy.n_iter_ = schedule.epochs
        copy.moments_ = Moments.from_samples(samples.take(torch.as_tensor(rows)))
        fitted.append(copy)
    return fitted


def weighted_epochs(
    rows: Sequence[Integers], weights: Sequence[Floats], batch_size: int
) -> EpochSource:
    """Shuffled batches of each seed's rows, with weights (mean 1) in the loss; incomplete batches
    are left out.

    If all rows of every seed fit into one batch, each batch contains them all.
    """
    parts = [torch.as_tensor(part) for part in rows]
    weight = [torch.as_tensor(part / part.mean()) for part in weights]
    fewest = min(map(len, parts))
    size = min(batch_size, fewest)
    if size == fewest == max(map(len, parts)):
        all_rows = Epoch(torch.stack(parts).unsqueeze(1), torch.stack(weight).unsqueeze(1))
        return EpochSource(size, (), lambda *_: all_rows, full_batch=True)
    used = fewest // size * size  # rows of a pass

    def draw(generators: Sequence[torch.Generator], _: Outputs) -> Epoch:
        orders = [
            torch.randperm(len(part), generator=g)[:used]
            for part, g in zip(parts, generators, strict=True)
        ]

        def batches(values: Sequence[Tensor]) -> Tensor:
            return torch.stack(
                [part[order].view(-1, size) for part, order in zip(values, orders, strict=True)]
            )

        return Epoch(batches(parts), batches(weight))

    return EpochSource(size, (), draw)


def _fitted_has(name: str) -> Callable[[Any], bool]:
    """Whether the base learner, fitted or not, has that method; a network does."""
    return lambda self: hasattr(
        getattr(self, "estimator_", None) or self.estimator or FairClassifier, name
    )


class Preprocessor(ClassifierMixin, WeightedEstimator):
    """Predictions of the base learner that ``fit`` stores in ``estimator_``; its classes are
    codes.
    """

    def predict(self, X: Table) -> NDArray[Any]:
        """The class of each sample.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        x = features_at_predict(self, X, "estimator_")
        return self.classes_[np.asarray(self.estimator_.predict(x), dtype=np.int64)]

    @available_if(_fitted_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table) -> Floats:
        """Probabilities of the classes; only if the base learner has them.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        x = features_at_predict(self, X, "estimator_")
        return class_probabilities(self.estimator_, x)

    @available_if(_fitted_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Table) -> Floats:
        """The decision function of the base learner; only if it has one.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The base learner's decision function.
        """
        x = features_at_predict(self, X, "estimator_")
        return np.asarray(self.estimator_.decision_function(x))


def class_probabilities(learner: Any, x: Floats) -> Floats:
    """Probabilities (n, classes) in ascending order of the classes, independent of the
    learner's order.
    """
    probability = np.asarray(learner.predict_proba(x))
    return probability[:, np.argsort(getattr(learner, "classes_", range(probability.shape[1])))]


def fit_learners(
    estimator: Any,
    data: TrainingData,
    grid: FitGrid,
    weights: Sequence[Floats],
    *,
    earlier: Sequence[Any] = (),
    name: str = "estimator",
) -> list[Any]:
    """The base learner fitted for each seed on its rows, with weights.

    None is a network; networks without a penalty are trained all at once. A learner whose
    ``random_state`` is None gets the seed. Without a parameter for weights, it is fitted to rows
    drawn in proportion to them. If it takes groups, they are passed. ``earlier`` are fitted
    learners to continue from, which are copied. ``name`` is the argument in messages.
    """
    base = _checked_base(estimator, name)
    random_state = getattr(base, "random_state", None)
    seeds = grid.seeds if random_state is None else [make_seed(random_state)] * len(grid.seeds)
    if _is_plain_network(base):
        return fit_weighted(base, data, FitGrid(seeds, grid.rows, [0.0]), weights, earlier)
    fitted = []
    for place, (seed, part, weight) in enumerate(zip(seeds, grid.rows, weights, strict=True)):
        learner = deepcopy(earlier[place]).set_params(warm_start=True) if earlier else clone(base)
        if "random_state" in learner.get_params() and not earlier:
            learner.set_params(random_state=seed)
        takes_weights = has_fit_parameter(learner, "sample_weight")
        sample = part
        if not takes_weights and np.ptp(weight) > 0:
            sample = np.random.default_rng(seed).choice(part, len(part), p=weight / weight.sum())
        options = {"sample_weight": weight} if takes_weights else {}
        options |= groups_if_accepted(learner.fit, data.group[sample])
        fitted.append(learner.fit(data.x[sample], data.y[sample], **options))
    return fitted


def check_continues(estimator: Any) -> None:
    """Raise a DataError unless a fit of the base learner can continue from an earlier one."""
    base = _checked_base(estimator, "estimator")
    if not _is_plain_network(base) and "warm_start" not in base.get_params():
        problem = f"warm_start=True continues from the previous round, which {base!r} cannot"
        raise DataError(
            problem,
            remedy="set warm_start=False, or use a network or a learner that has warm_start",
        )


def _checked_base(estimator: Any, name: str) -> Any:
    if estimator is None:
        return FairClassifier(0.0)
    check_learner(estimator, "classifier", name=name)
    return estimator


def _is_plain_network(base: Any) -> bool:
    return isinstance(base, FairClassifier) and base.strength == 0
