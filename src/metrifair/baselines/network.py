"""Methods that train networks: parameters, predictions, and batches with weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from metrifair.baselines.stacked import DIVERGED, FitGrid, LogOddsMixin, StackedEstimator, TrainingData
from metrifair.batches.samples import Samples
from metrifair.errors import Diverged
from metrifair.estimators import FairClassifier
from metrifair.estimators.estimator import output_of
from metrifair.estimators.settings import check_settings, device_of, model_for, schedule_for
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.problem.problem import Scheme
from metrifair.problem.tables import Table
from metrifair.support.arrays import Floats, Integers
from metrifair.training import Predictor, train
from metrifair.training.models import Model, Moments, Parameters
from metrifair.training.objective import BINARY, MULTICLASS, Objective
from metrifair.training.stack import Epoch, EpochSource, Outputs

_NETWORK = ("model", "hidden", "batch_size", "epochs", "learning_rate", "learning_rate_decay", "standardize", "device")


class NetworkClassifier(LogOddsMixin, StackedEstimator):
    """A network that ``fit`` stores in ``predictor_``; its output is the log-odds of the positive class."""

    def _log_odds(self, X: Table) -> Floats:
        return output_of(self, X)

    def _network(self) -> FairClassifier:
        """The plain network that the parameters describe, checked."""
        network = FairClassifier(0.0, **{name: getattr(self, name) for name in _NETWORK if hasattr(self, name)})
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
    """Trained networks of each seed and, within it, each strength; None where training diverged.

    ``model`` is another than the one with a single output that ``network`` describes.
    """
    schedule = replace(schedule_for(network, max(map(len, grid.rows))), growth=0.0, cooldown=0.0, from_constant=False)
    trained = train(
        data,
        model or model_for(network, data.x.shape[1], 1),
        objective,
        strengths=grid.strengths,
        seeds=grid.seeds,
        schedule=schedule,
        rows=[torch.as_tensor(own) for own in grid.rows],
        source=source,
        path=path,
        standardize=network.standardize,
        device=device_of(network.device),
        verbose=network.verbose,
    )
    failed = trained.failed.cpu().numpy()
    return [
        [None if failed[s, k] else trained.predictor(s, k) for k in range(len(grid.strengths))]
        for s in range(len(grid.seeds))
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
    grid: FitGrid,
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
    schedule = schedule_for(network, min(map(len, grid.rows)))
    model = model_for(network, data.x.shape[1], outputs)
    samples = samples_of(data, vector=task.vector)
    starts = ({name: value[0, 0] for name, value in old.predictor_.parameters.items()} for old in earlier)
    started: Model = _Continued(model, starts) if earlier else model
    source = weighted_epochs(grid.rows, weights, schedule.batch_size)
    trained = train_networks(network, samples, Objective(task, ()), grid, source=source, model=started)
    fitted = []
    for seed, (predictor,), own in zip(grid.seeds, trained, grid.rows, strict=True):
        if predictor is None:
            raise Diverged(DIVERGED.format(network.learning_rate))
        copy = clone(network).set_params(random_state=seed)
        copy.classes_, copy.n_features_in_ = np.arange(classes), data.x.shape[1]
        copy.predictor_ = replace(predictor, model=model)
        copy.scheme_ = Scheme(STATISTICAL_PARITY, tuple(range(classes)), classes - 1)
        copy.n_iter_, copy.moments_ = schedule.epochs, Moments.of_samples(samples.take(torch.as_tensor(own)))
        fitted.append(copy)
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

        def batches(values: Sequence[Tensor]) -> Tensor:
            return torch.stack([part[order].view(-1, size) for part, order in zip(values, orders, strict=True)])

        return Epoch(batches(own), batches(weight))

    return EpochSource(size, (), draw)
