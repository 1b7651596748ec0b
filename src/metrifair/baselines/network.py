"""The shell of all methods that train networks: many seeds and strengths as one stack, and predictions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from torch import Tensor

from metrifair.baselines.training_data import Floats, Integers, LogOddsMixin, TrainingData, training_data
from metrifair.errors import DataError, Diverged
from metrifair.estimators import FairClassifier
from metrifair.estimators.estimator import output_of
from metrifair.estimators.settings import check_settings, device_of, model_for, schedule_for
from metrifair.problem.cells import Samples
from metrifair.problem.criteria import BINARY, MULTICLASS, STATISTICAL_PARITY
from metrifair.problem.problem import Scheme
from metrifair.problem.tables import Table
from metrifair.support.checks import seed_of
from metrifair.training import Predictor, train
from metrifair.training.models import Model, Moments, Parameters
from metrifair.training.objective import Objective
from metrifair.training.stack import Epoch, EpochSource, Outputs

Fitted = dict[str, Any] | None
"""The attributes of a fitted estimator; None where training diverged."""

_NETWORK = ("model", "hidden", "batch_size", "epochs", "learning_rate", "learning_rate_decay", "standardize", "device")
_DIVERGED = "training diverged; lower learning_rate (now {}), or check the scale of X"


class FitGrid(NamedTuple):
    """The fits of a stack: every strength of every seed, on the seed's own rows of the data."""

    seeds: Sequence[int]
    rows: Sequence[Integers]
    strengths: Sequence[float]


class StackedEstimator(BaseEstimator):
    """A classifier that fits several seeds, and strengths where it has one, as one stack of models."""

    _two_groups: ClassVar[bool] = False
    _two_classes: ClassVar[bool] = True

    def fit(self, X: Table, y: Table, *, sensitive_features: Table) -> Self:
        """Train on these samples, from scratch.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as numbers.
        y : array-like of shape (n_samples,)
            Labels; a method for two classes takes 0 and 1, -1 and 1, or booleans. They stay as they are.
        sensitive_features : array-like of shape (n_samples,)
            The group of each sample, in one column without missing values.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sensitive_features)

    @abstractmethod
    def _fits(self, data: TrainingData, grid: FitGrid) -> list[list[Fitted]]:
        """What each seed and, within it, each strength leads to."""

    def _data(self, X: Table, y: Table, groups: Table, weight: ArrayLike | None = None) -> TrainingData:
        options = {"two_groups": self._two_groups, "two_classes": self._two_classes}
        return training_data(self, X, y, groups, sample_weight=weight, **options)

    def _fit(self, X: Table, y: Table, groups: Table, weight: ArrayLike | None = None) -> Self:
        for name in ("predictor_", "estimator_"):  # a fit that fails leaves no model of other data behind
            self.__dict__.pop(name, None)
        data = self._data(X, y, groups, weight)
        strength, seed = getattr(self, "strength", 0.0), seed_of(self.random_state)
        ((fitted,),) = self._fits(data, FitGrid([seed], [np.arange(len(data))], [strength]))
        if fitted is None:
            raise Diverged(_DIVERGED.format(self.learning_rate))
        self.__dict__.update(fitted)
        return self


def fit_stack(
    estimator: StackedEstimator,
    X: Table,
    y: Table,
    sensitive_features: Table,
    *,
    seeds: Sequence[int],
    strengths: Sequence[float] | None = None,
    rows: Sequence[ArrayLike] | None = None,
) -> list[Any]:
    """Fitted copies for every seed and, within it, every strength, trained at once; None where training diverged.

    They equal ``fit`` with that strength and ``random_state``. ``rows`` are the training rows of each seed; without
    ``strengths`` the estimator's own one is taken, if it has one.
    """
    template = clone(estimator)
    data = template._data(X, y, sensitive_features)
    if rows is not None and len(rows) != len(seeds):
        raise DataError(f"rows must hold the training rows of each of the {len(seeds)} seeds, got {len(rows)}")
    # copies: torch takes no reversed views
    own = [np.arange(len(data))] * len(seeds) if rows is None else [np.array(part, dtype=np.int64) for part in rows]
    values = [getattr(template, "strength", 0.0)] if strengths is None else strengths
    noted = {name: value for name, value in vars(template).items() if name.endswith("_")}
    models: list[Any] = []
    for seed, fits in zip(seeds, template._fits(data, FitGrid(seeds, own, values)), strict=True):
        for strength, fitted in zip(values, fits, strict=True):
            knob = {} if strengths is None else {"strength": strength}
            model = clone(template).set_params(random_state=seed, **knob)
            model.__dict__.update(noted | (fitted or {}))
            models.append(None if fitted is None else model)
    return models


class NetworkClassifier(LogOddsMixin, StackedEstimator):
    """A network that ``fit`` keeps in ``predictor_``; its output is the log-odds of the positive class."""

    def _log_odds(self, X: Table) -> Floats:
        return output_of(self, X)

    def _network(self) -> FairClassifier:
        """The plain network that the parameters describe, checked."""
        network = FairClassifier(0.0, **{name: getattr(self, name) for name in _NETWORK if hasattr(self, name)})
        check_settings(network)
        return network


def train_networks(
    network: FairClassifier,
    data: Samples,
    objective: Objective,
    *,
    strengths: Sequence[float],
    seeds: Sequence[int],
    rows: Sequence[Integers],
    source: EpochSource | None = None,
    path: bool = False,
    model: Model | None = None,
) -> list[list[Predictor | None]]:
    """Trained networks of each seed and, within it, each strength; None where training diverged.

    ``model`` is another than the one with a single output that ``network`` describes.
    """
    trained = train(
        data,
        model or model_for(network, data.x.shape[1], 1),
        objective,
        strengths=strengths,
        seeds=seeds,
        schedule=replace(schedule_for(network, max(map(len, rows))), growth=0.0, cooldown=0.0, from_constant=False),
        rows=[torch.as_tensor(own) for own in rows],
        source=source,
        path=path,
        standardize=network.standardize,
        device=device_of(network.device),
        verbose=network.verbose,
    )
    failed = trained.failed.cpu().numpy()
    return [
        [None if failed[s, k] else trained.predictor(s, k) for k in range(len(strengths))] for s in range(len(seeds))
    ]


def samples_of(data: TrainingData, cell: Tensor | None = None, *, vector: bool = False) -> Samples:
    """The rows as training takes them; ``vector`` for models with an output for each class."""
    y = data.y if vector else data.y.astype(np.float64)
    cell = torch.zeros(len(data), dtype=torch.long) if cell is None else cell
    return Samples(torch.as_tensor(data.x), torch.as_tensor(y), cell, torch.as_tensor(data.weight))


@dataclass(frozen=True, eq=False)
class _Continued:
    """A model whose copies in a stack start, one after the other, from given parameters; seeds may be equal."""

    model: Model
    starts: Iterator[dict[str, Tensor]]

    def initial(self, seed: int) -> dict[str, Tensor]:  # noqa: ARG002
        return next(self.starts)

    def __call__(self, parameters: Parameters, x: Tensor, *, training: bool = False) -> Tensor:
        return self.model(parameters, x, training=training)


def fit_weighted(
    network: FairClassifier,
    data: TrainingData,
    *,
    seeds: Sequence[int],
    rows: Sequence[Integers],
    weights: Sequence[Floats],
    earlier: Sequence[FairClassifier] = (),
) -> list[FairClassifier]:
    """Plain networks, one for each seed, on its own rows of the data with their own weights in the loss.

    The loss of a batch is the weighted mean with the batch size as denominator, for weights with mean 1. ``earlier``
    are networks to start from, in the same order.
    """
    classes = int(data.y.max()) + 1
    task, outputs = (BINARY, 1) if classes == 2 else (MULTICLASS, classes)
    check_settings(network)
    schedule = schedule_for(network, min(map(len, rows)))
    model = model_for(network, data.x.shape[1], outputs)
    samples = samples_of(data, vector=task.vector)
    starts = ({name: value[0, 0] for name, value in old.predictor_.parameters.items()} for old in earlier)
    trained = train_networks(
        network,
        samples,
        Objective(task, ()),
        strengths=[0.0],
        seeds=seeds,
        rows=rows,
        source=weighted_epochs(rows, weights, schedule.batch_size),
        model=_Continued(model, starts) if earlier else model,
    )
    fitted = []
    for seed, (predictor,), own in zip(seeds, trained, rows, strict=True):
        if predictor is None:
            raise Diverged(_DIVERGED.format(network.learning_rate))
        one = clone(network).set_params(random_state=seed)
        one.classes_, one.n_features_in_ = np.arange(classes), data.x.shape[1]
        one.predictor_, one.scheme_ = (
            replace(predictor, model=model),
            Scheme(STATISTICAL_PARITY, tuple(range(classes)), classes - 1),
        )
        one.n_iter_, one.moments_ = schedule.epochs, Moments.of_samples(samples.take(torch.as_tensor(own)))
        fitted.append(one)
    return fitted


def weighted_epochs(rows: Sequence[Integers], weights: Sequence[Floats], batch_size: int) -> EpochSource:
    """Shuffled batches of each seed's own rows, whose weights (mean 1) count in the loss; the rest of a pass is left.

    Where all rows of every seed fit into one batch, each batch holds them all.
    """
    own = [torch.as_tensor(part) for part in rows]
    weight = [torch.as_tensor(part / part.mean()) for part in weights]
    fewest = min(map(len, own))
    size = min(batch_size, fewest)
    if size == fewest == max(map(len, own)):
        everything = Epoch(torch.stack(own).unsqueeze(1), torch.stack(weight).unsqueeze(1))
        return EpochSource(size, (), lambda *_: everything, whole=True)
    dealt = fewest // size * size  # rows of a pass

    def draw(generators: Sequence[torch.Generator], _: Outputs) -> Epoch:
        orders = [torch.randperm(len(part), generator=g)[:dealt] for part, g in zip(own, generators, strict=True)]
        return Epoch(
            *(
                torch.stack([part[order].view(-1, size) for part, order in zip(values, orders, strict=True)])
                for values in (own, weight)
            )
        )

    return EpochSource(size, (), draw)
