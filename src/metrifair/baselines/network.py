"""Methods that train networks or any other classifier: parameters, predictions, and batches
with weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

from metrifair.baselines.baseline import (
    DIVERGED,
    LogOddsMixin,
    PublishedEstimator,
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
from metrifair.support.arrays import Floats
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


class NetworkClassifier(LogOddsMixin, PublishedEstimator):
    """A network that ``fit`` stores in ``predictor_``; its output is the log-odds of the
    positive class.
    """

    def _log_odds(self, X: Table) -> Floats:
        return model_output(self, X)

    def _network(self) -> FairClassifier:
        """The plain network that the parameters describe, checked."""
        chosen = {name: getattr(self, name) for name in _NETWORK if hasattr(self, name)}
        if chosen.setdefault("model", "mlp") == "linear":
            chosen.pop("hidden", None)
        network = FairClassifier(0.0, **chosen)
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


def train_network(
    network: FairClassifier,
    data: Samples,
    objective: Objective,
    *,
    strength: float = 0.0,
    seed: int,
    source: EpochSource | None = None,
    model: Model | None = None,
) -> Predictor:
    """The trained network; Diverged if training failed.

    ``model`` replaces the model with one output that ``network`` describes.
    """
    schedule = replace(
        schedule_for(network, len(data)), growth=0.0, cooldown=0.0, from_constant=False
    )
    stack = train(
        data,
        model or model_for(network, data.x.shape[1], 1),
        objective,
        strengths=[strength],
        seeds=[seed],
        schedule=schedule,
        source=source,
        standardize=penalty_options(network).standardize,
        device=as_device(network.device),
        verbose=network.verbose,
    )
    if bool(stack.failed.any()):
        raise Diverged(DIVERGED.format(network.learning_rate))
    return stack.predictor(0, 0)


def make_samples(
    data: TrainingData, cell: Tensor | None = None, *, vector: bool = False
) -> Samples:
    """The rows as samples; ``vector`` for models with an output for each class."""
    y = torch.as_tensor(data.y)
    if not vector:
        y = y.double()
    if cell is None:
        cell = torch.zeros(len(data), dtype=torch.long)
    return Samples(
        x=torch.as_tensor(data.x),
        y=y,
        cell=cell,
        weight=torch.as_tensor(data.weight),
    )


@dataclass(frozen=True, eq=False)
class Continued:
    """A model whose training begins at the parameters of a trained one."""

    model: Model
    trained: Mapping[str, Tensor]  # leading axes: a stack of one

    def initial(self, seed: int) -> Parameters:  # noqa: ARG002
        """The parameters of the trained model."""
        return {name: value[0, 0] for name, value in self.trained.items()}

    def __call__(self, parameters: Parameters, x: Tensor, *, training: bool = False) -> Tensor:
        """The outputs of the model."""
        return self.model(parameters, x, training=training)


def fit_weighted(
    network: FairClassifier,
    data: TrainingData,
    seed: int,
    weights: Floats,
    earlier: FairClassifier | None = None,
) -> FairClassifier:
    """A plain network with weights of the rows in its loss.

    The loss of a batch is the weighted mean with the batch size as denominator, for weights with
    mean 1. ``earlier`` is a network to start from.
    """
    classes = int(data.y.max()) + 1
    task, outputs = (BINARY, 1) if classes == 2 else (MULTICLASS, classes)
    check_settings(network)
    schedule = schedule_for(network, len(data))
    model = model_for(network, data.features, outputs)
    samples = make_samples(data, vector=task.vector)
    predictor = train_network(
        network,
        samples,
        Objective(task, ()),
        seed=seed,
        source=weighted_epochs(weights, schedule.batch_size),
        model=model if earlier is None else Continued(model, earlier.predictor_.parameters),
    )
    fitted: FairClassifier = clone(network).set_params(random_state=seed)
    fitted.classes_ = np.arange(classes)
    fitted.n_features_in_ = data.features
    fitted.predictor_ = replace(predictor, model=model)
    fitted.scheme_ = Scheme(STATISTICAL_PARITY, tuple(range(classes)), classes - 1)
    fitted.n_iter_ = schedule.epochs
    fitted.moments_ = Moments.from_samples(samples)
    return fitted


def weighted_epochs(weights: Floats, batch_size: int) -> EpochSource:
    """Shuffled batches of all rows, with weights (mean 1) in the loss; incomplete batches are left
    out.

    If all rows fit into one batch, each batch contains them all.
    """
    weight = torch.as_tensor(weights / weights.mean())
    n = len(weight)
    if n <= batch_size:
        rows = torch.arange(n).view(1, 1, n)
        all_rows = Epoch(rows, weight.view(1, 1, n))
        return EpochSource(n, (), lambda *_: all_rows, full_batch=True)
    used = n // batch_size * batch_size  # rows of a pass

    def draw(generators: Sequence[torch.Generator], _: Outputs) -> Epoch:
        order = torch.randperm(n, generator=generators[0])
        rows = order[:used].view(1, -1, batch_size)
        return Epoch(rows, weight[rows])

    return EpochSource(batch_size, (), draw)


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
        codes = self.estimator_.predict(x)
        return self.classes_[np.asarray(codes, dtype=np.int64)]

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


def fit_learner(
    estimator: Any,
    data: TrainingData,
    seed: int,
    weights: Floats,
    *,
    earlier: Any = None,
    name: str = "estimator",
) -> Any:
    """The base learner fitted with weights of the rows; None is a network.

    A learner whose ``random_state`` is None gets the seed. Without a parameter for weights, it is
    fitted to rows drawn in proportion to them. If it takes groups, they are passed. ``earlier`` is
    a fitted learner to continue from, which is copied. ``name`` is the argument in messages.
    """
    base = _checked_base(estimator, name)
    random_state = getattr(base, "random_state", None)
    if random_state is not None:
        seed = make_seed(random_state)
    if _is_plain_network(base):
        return fit_weighted(base, data, seed, weights, earlier)
    if earlier is not None:
        learner = deepcopy(earlier).set_params(warm_start=True)
    else:
        learner = clone(base)
        if "random_state" in learner.get_params():
            learner.set_params(random_state=seed)
    sample = data
    options = {}
    if has_fit_parameter(learner, "sample_weight"):
        options["sample_weight"] = weights
    elif np.ptp(weights) > 0:
        odds = weights / weights.sum()
        n = len(data)
        generator = np.random.default_rng(seed)
        drawn = generator.choice(n, n, p=odds)
        sample = data.take(drawn)
    options |= groups_if_accepted(learner.fit, sample.group)
    return learner.fit(sample.x, sample.y, **options)


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
        return FairClassifier(0.0, model="mlp")
    check_learner(estimator, "classifier", name=name)
    return estimator


def _is_plain_network(base: Any) -> bool:
    return isinstance(base, FairClassifier) and base.strength == 0
