"""What methods around a network share: its settings, stacks of seeds and strengths, predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from torch import Tensor

from metrifair.batches.dealing import Deal, Dealer, Outputs
from metrifair.errors import DataError, Diverged
from metrifair.estimators import FairClassifier
from metrifair.estimators.estimator import output_of
from metrifair.estimators.settings import check_settings, device_of, model_for, schedule_for
from metrifair.methods.inputs import Floats, Integers, Rows, TwoClasses
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.problem.problem import Scheme
from metrifair.problem.samples import Samples
from metrifair.problem.tables import Table
from metrifair.problem.tasks import BINARY, MULTICLASS
from metrifair.training import Predictor, train
from metrifair.training.models import Model, Parameters
from metrifair.training.objective import Objective
from metrifair.training.online import Moments

_NETWORK = (
    "model",
    "hidden",
    "batch_size",
    "epochs",
    "learning_rate",
    "learning_rate_decay",
    "standardize",
    "device",
)


class NetworkClassifier(TwoClasses, BaseEstimator):
    """Predictions of the network that ``fit`` kept in ``predictor_``; its output is the log-odds of class 1."""

    def decision_function(self, X: Table) -> Floats:
        """Log-odds of the positive class."""
        return output_of(self, X)

    def predict_proba(self, X: Table) -> Floats:
        """Probabilities of the two classes, (n, 2)."""
        probability = BINARY.prediction(torch.as_tensor(self.decision_function(X))).numpy()
        return np.stack([1 - probability, probability], axis=1)

    def predict(self, X: Table) -> NDArray[Any]:
        """The class of each sample: the positive one from probability one half upwards."""
        output = self.decision_function(X)
        predicted: NDArray[Any] = self.classes_[(output >= 0).astype(int)]
        return predicted


def network_of(estimator: BaseEstimator) -> FairClassifier:
    """The plain network that a method's parameters describe, checked; others than these keep their defaults."""
    parameters = estimator.get_params(deep=False)
    network = FairClassifier(0.0, **{name: parameters[name] for name in _NETWORK if name in parameters})
    check_settings(network)
    return network


def own_rows(n: int, seeds: Sequence[int], rows: Sequence[Any] | None) -> list[Integers]:
    """The training rows of each seed; all of them where none are given."""
    if rows is None:
        return [np.arange(n)] * len(seeds)
    if len(rows) != len(seeds):
        raise DataError(f"rows must hold the training rows of each of the {len(seeds)} seeds, got {len(rows)}")
    return [np.array(own, dtype=np.int64) for own in rows]  # copies: torch takes no reversed views


def subset(rows: Rows, own: Integers) -> Rows:
    """Some of the rows; groups keep their codes."""
    return replace(rows, x=rows.x[own], y=rows.y[own], group=rows.group[own], weight=rows.weight[own])


def fitted_copy(template: Any, parameters: Mapping[str, Any], fitted: Mapping[str, Any]) -> Any:
    """A copy of an estimator with other parameters, what it noted of its input, and what it has learned."""
    noted = {name: value for name, value in vars(template).items() if name.endswith("_")}
    copy = clone(template).set_params(**parameters)
    copy.__dict__.update({**noted, **fitted})
    return copy


def train_networks(
    network: FairClassifier,
    data: Samples,
    objective: Objective,
    *,
    strengths: Sequence[float],
    seeds: Sequence[int],
    rows: Sequence[Integers],
    dealer: Dealer | None = None,
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
        schedule=schedule_for(network, max(map(len, rows))),
        rows=[torch.as_tensor(own) for own in rows],
        dealer=dealer,
        path=path,
        standardize=network.standardize,
        device=device_of(network.device),
        verbose=network.verbose,
    )
    failed = trained.failed.cpu().numpy()
    return [
        [None if failed[s, k] else trained.predictor(s, k) for k in range(len(strengths))] for s in range(len(seeds))
    ]


def check_diverged(predictor: Predictor | None, learning_rate: float) -> Predictor:
    """The trained network, or Diverged where there is none."""
    if predictor is None:
        raise Diverged(f"training diverged; lower learning_rate (now {learning_rate}), or check the scale of X")
    return predictor


@dataclass(frozen=True, eq=False)
class Continued:
    """A model whose copies in a stack start, one after the other, from given parameters; seeds may be equal."""

    model: Model
    starts: Iterator[dict[str, Tensor]]

    def initial(self, seed: int) -> dict[str, Tensor]:  # noqa: ARG002
        """Where an earlier training of the next copy ended."""
        return next(self.starts)

    def __call__(self, parameters: Parameters, x: Tensor, *, training: bool = False) -> Tensor:
        """Outputs of the model."""
        return self.model(parameters, x, training=training)


def fit_weighted(
    network: FairClassifier,
    table: Rows,
    *,
    seeds: Sequence[int],
    rows: Sequence[Integers],
    weights: Sequence[Floats],
    earlier: Sequence[FairClassifier] = (),
) -> list[FairClassifier]:
    """Plain networks, one for each seed, on its own rows of the table with their own weights in the loss.

    The loss of a batch is the weighted mean with the batch size as denominator, for weights with mean 1. ``earlier``
    are networks to start from, in the same order.
    """
    classes = int(table.y.max()) + 1
    task, outputs = (BINARY, 1) if classes == 2 else (MULTICLASS, classes)
    data = samples_of(table, torch.zeros(len(table), dtype=torch.long), vector=task.vector)
    check_settings(network)
    schedule = schedule_for(network, min(map(len, rows)))
    model = model_for(network, table.x.shape[1], outputs)
    starts = ({name: value[0, 0] for name, value in old.predictor_.parameters.items()} for old in earlier)
    trained = train_networks(
        network,
        data,
        Objective(task, ()),
        strengths=[0.0],
        seeds=seeds,
        rows=rows,
        dealer=weighted_dealer(rows, weights, schedule.batch_size),
        model=Continued(model, starts) if earlier else model,
    )
    fitted = []
    for seed, (predictor,), own in zip(seeds, trained, rows, strict=True):
        found = check_diverged(predictor, network.learning_rate)
        one = clone(network).set_params(random_state=seed)
        one.classes_, one.n_features_in_ = np.arange(classes), table.x.shape[1]
        one.predictor_, one.scheme_ = replace(found, model=model), Scheme(STATISTICAL_PARITY)
        one.n_iter_, one.moments_ = schedule.epochs, Moments.of_samples(data.take(torch.as_tensor(own)))
        fitted.append(one)
    return fitted


def samples_of(table: Rows, cell: Tensor, *, vector: bool = False) -> Samples:
    """The rows as training takes them; ``vector`` for models with an output for each class."""
    y = table.y if vector else table.y.astype(np.float64)
    return Samples(torch.as_tensor(table.x), torch.as_tensor(y), cell, torch.as_tensor(table.weight))


def weighted_dealer(rows: Sequence[Integers], weights: Sequence[Floats], batch_size: int) -> Dealer:
    """Shuffled batches of each seed's own rows, whose weights (mean 1) count in the loss; the rest of a pass is left.

    Where all rows of every seed fit into one batch, each batch holds them all.
    """
    own = [torch.as_tensor(part) for part in rows]
    weight = [torch.as_tensor(part / part.mean()) for part in weights]
    fewest = min(map(len, own))
    size = min(batch_size, fewest)
    if size == fewest == max(map(len, own)):
        everything = Deal(torch.stack(own).unsqueeze(1), torch.stack(weight).unsqueeze(1))
        return Dealer(size, (), lambda *_: everything, whole=True)
    steps = fewest // size

    def deal(generators: Sequence[torch.Generator], _: Outputs) -> Deal:
        orders = [
            torch.randperm(len(part), generator=g)[: steps * size] for part, g in zip(own, generators, strict=True)
        ]
        return Deal(_batches(own, orders, size), _batches(weight, orders, size))

    return Dealer(size, (), deal)


def _batches(values: Sequence[Tensor], orders: Sequence[Tensor], size: int) -> Tensor:
    return torch.stack([part[order].view(-1, size) for part, order in zip(values, orders, strict=True)])
