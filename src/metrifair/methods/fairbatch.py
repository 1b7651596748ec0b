"""FairBatch (Roh et al., 2021): shares of label and group in a batch, moved by what the model gets wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import clone
from torch import Tensor

from metrifair.batches.dealing import Dealer
from metrifair.checks import check_known, seed_of
from metrifair.errors import DataError
from metrifair.estimators.settings import model_for, schedule_for
from metrifair.methods.inputs import Floats, Integers, Rows, check_cells, check_number, classification_rows
from metrifair.methods.networks import (
    NetworkClassifier,
    check_diverged,
    fitted_copy,
    network_of,
    own_rows,
    samples_of,
    subset,
    train_networks,
)
from metrifair.methods.sampling import Sampler
from metrifair.problem.tables import Table
from metrifair.problem.tasks import BINARY
from metrifair.training import Predictor
from metrifair.training.models import Model, Parameters
from metrifair.training.objective import Objective

_LABELS: dict[str, tuple[int, ...]] = {
    "statistical_parity": (0, 1),  # it moves shares within both labels
    "equal_opportunity": (1,),
    "equalized_odds": (0, 1),
}
_SMALLEST_BATCH = 4


@dataclass(frozen=True, eq=False)
class Doubled:
    """A model whose output counts twice."""

    model: Model

    def initial(self, seed: int) -> dict[str, Tensor]:
        """The model's own start."""
        return self.model.initial(seed)

    def __call__(self, parameters: Parameters, x: Tensor, *, training: bool = False) -> Tensor:
        """Twice the outputs of the model."""
        return 2 * self.model(parameters, x, training=training)


class FairBatchClassifier(NetworkClassifier):
    """A network trained on batches whose shares of label and group move towards what it gets wrong.

    There is no knob between fairness and accuracy. Two groups. Predicting needs no groups.

    Parameters
    ----------
    criterion : ``statistical_parity``, ``equal_opportunity`` or ``equalized_odds``.
    step : by which a share moves after each epoch; 0 is stratified sampling. Shares need many epochs to get far.
    variant : ``"reference"`` does as the authors' code: the score is the logistic function of twice the output, halves
        are rounded to even, and after the end of a cell's rows some of them repeat.
    model, hidden, batch_size, epochs, learning_rate, learning_rate_decay, standardize, device, random_state : as in
        FairClassifier.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=600)
    >>> X = np.c_[generator.normal(size=(600, 2)) + 0.8 * a[:, None], a]
    >>> y = (X[:, :2].sum(1) + 2 * generator.normal(size=600) > 1).astype(int)
    >>> for step in (0.0, 0.01):
    ...     model = FairBatchClassifier(step=step, model="linear", batch_size=100, epochs=80, random_state=0)
    ...     accepted = model.fit(X, y, sensitive_features=a).predict(X)
    ...     print(round(accepted[a == 1].mean() - accepted[a == 0].mean(), 1))
    0.4
    0.0
    """

    def __init__(
        self,
        *,
        criterion: str = "statistical_parity",
        step: float = 0.005,
        variant: Literal["method", "reference"] = "method",
        model: str | torch.nn.Module = "mlp",
        hidden: Sequence[int] = (16,),
        batch_size: int | Literal["auto"] = "auto",
        epochs: int | Literal["auto"] = "auto",
        learning_rate: float = 5e-3,
        learning_rate_decay: float = 1.0,
        standardize: bool = True,
        device: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.criterion = criterion
        self.step = step
        self.variant = variant
        self.model = model
        self.hidden = hidden
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.learning_rate_decay = learning_rate_decay
        self.standardize = standardize
        self.device = device
        self.random_state = random_state

    def fit(self, X: Table, y: Table, *, sensitive_features: Table) -> Self:
        """Train from scratch; ``sensitive_features`` is one column of two groups, without missing values."""
        self.__dict__.pop("predictor_", None)
        rows = classification_rows(self, X, y, sensitive_features)
        ((predictor, self.shares_),) = _trained(self, rows, [seed_of(self.random_state)], [np.arange(len(rows))])
        self.predictor_ = check_diverged(predictor, self.learning_rate)
        return self


def fit_stack(
    estimator: FairBatchClassifier,
    X: Table,
    y: Table,
    sensitive_features: Table,
    *,
    seeds: Sequence[int],
    rows: Sequence[ArrayLike] | None = None,
) -> list[FairBatchClassifier | None]:
    """Fitted copies for every seed, trained at once; None where training diverged. ``rows``: each seed's own rows."""
    template = clone(estimator)
    table = classification_rows(template, X, y, sensitive_features)
    trained = _trained(template, table, seeds, own_rows(len(table), seeds, rows))
    return [
        None
        if predictor is None
        else fitted_copy(template, {"random_state": seed}, {"predictor_": predictor, "shares_": shares})
        for seed, (predictor, shares) in zip(seeds, trained, strict=True)
    ]


def _trained(
    estimator: FairBatchClassifier, rows: Rows, seeds: Sequence[int], own: Sequence[Integers]
) -> list[tuple[Predictor | None, Floats]]:
    """Networks and final shares of each seed."""
    check_known("criterion", estimator.criterion, _LABELS)
    check_known("variant", estimator.variant, ("method", "reference"))
    check_number("step", estimator.step, low=0, high=1)
    network = network_of(estimator)
    for part in own:
        check_cells(subset(rows, part), _LABELS[estimator.criterion])
    batch_size = schedule_for(network, min(map(len, own))).batch_size
    if batch_size < _SMALLEST_BATCH:
        raise DataError(
            f"batch_size must be at least {_SMALLEST_BATCH} to hold two labels of two groups, got {batch_size}"
        )
    reference = estimator.variant == "reference"
    sampler = Sampler(
        rows, own, batch_size=batch_size, criterion=estimator.criterion, step=estimator.step, reference=reference
    )
    model = model_for(network, rows.x.shape[1], 1)
    trained = train_networks(
        network,
        samples_of(rows, torch.zeros(len(rows), dtype=torch.long)),
        Objective(BINARY, ()),
        strengths=[0.0],
        seeds=seeds,
        rows=own,
        dealer=Dealer(sampler.size, (), sampler.deal),
        model=Doubled(model) if reference else model,
    )
    return [(predictor, shares) for (predictor,), shares in zip(trained, sampler.shares, strict=True)]
