"""Fair KDE (Cho, Hwang and Suh, 2020): rates of acceptance, smoothed by a kernel, made equal while training."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import inf
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from torch import Tensor

from metrifair.batches.dealing import Deal, Dealer, Outputs
from metrifair.checks import check_known, check_switches, seed_of
from metrifair.errors import DataError
from metrifair.estimators.settings import device_of, schedule_for
from metrifair.methods.inputs import Integers, Rows, check_cells, check_number, classification_rows
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
from metrifair.methods.smoothed import CRITERIA, Kernel, SmoothedRates, cells_for, members
from metrifair.problem.tables import Table
from metrifair.problem.tasks import BINARY
from metrifair.training import Predictor

_MOST_PASSES = 1_000  # over the data, for the batches of one epoch


class FairKDEClassifier(NetworkClassifier):
    """A network whose rate of acceptance, smoothed by a Gaussian kernel, is the same in all groups.

    Lowers (1 - strength) x cross-entropy + strength x Huber cost of each group's rate less the rate of all. Predicting
    needs no groups; the original takes the group as one of the features.

    Parameters
    ----------
    strength : from 0, a plain network, to 1, nothing but equal rates.
    criterion : ``statistical_parity``, ``equal_opportunity`` (rates among the positive) or ``equalized_odds``.
    bandwidth, threshold : of the kernel, and the probability from which on a row is accepted.
    delta : disparities beyond it cost linearly; at 1 none is.
    groups : penalise ``"all"`` groups or the ``"first"`` only; by default as the variant does.
    tail : the kernel's tail ``"exact"``, or its value by the authors' ``"approx"`` formula; by default as the variant.
    warm_start_path : in ``fit_stack``, train the strengths one after the other, each from where the last one ended.
    variant : ``"method"``, or ``"reference"`` for what the published experiments did: the first group and the formula;
        under equal opportunity the rate of *all* rows as reference; plain shuffled batches (one that lacks a group is
        dealt anew, where theirs was skipped); strengths above 1, which raise the cross-entropy, with a warning.
    model, hidden, batch_size, epochs, learning_rate, learning_rate_decay, standardize, device, random_state : as in
        FairClassifier. The paper's are 500 epochs of 2,048 rows at 2e-4 (Drug, CC) or 5e-4 (COMPAS), and 200 epochs of
        512 rows at 0.1, decaying by 0.98 (Adult); not standardised.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=400)
    >>> X = generator.normal(size=(400, 3)) + a[:, None]
    >>> y = (X.sum(1) + generator.normal(size=400) > 1.5).astype(int)
    >>> for strength in (0.0, 0.9):
    ...     accepted = FairKDEClassifier(strength, random_state=0).fit(X, y, sensitive_features=a).predict(X)
    ...     print(round(accepted[a == 1].mean() - accepted[a == 0].mean(), 1))
    0.6
    0.0
    """

    def __init__(
        self,
        strength: float = 0.5,
        *,
        criterion: str = "statistical_parity",
        bandwidth: float = 0.1,
        threshold: float = 0.5,
        delta: float = 1.0,
        groups: Literal["all", "first"] | None = None,
        tail: Literal["exact", "approx"] | None = None,
        warm_start_path: bool = False,
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
        self.strength = strength
        self.criterion = criterion
        self.bandwidth = bandwidth
        self.threshold = threshold
        self.delta = delta
        self.groups = groups
        self.tail = tail
        self.warm_start_path = warm_start_path
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
        """Train from scratch; ``sensitive_features`` is one column without missing values."""
        self.__dict__.pop("predictor_", None)
        rows = classification_rows(self, X, y, sensitive_features, two_groups=False)
        seed = seed_of(self.random_state)
        ((predictor,),) = _trained(self, rows, [self.strength], [seed], [np.arange(len(rows))])
        self.predictor_ = check_diverged(predictor, self.learning_rate)
        return self

    def predict(self, X: Table) -> NDArray[Any]:
        """The class of each sample: the positive one from probability ``threshold`` upwards."""
        accepted = self.predict_proba(X)[:, 1] >= self.threshold
        predicted: NDArray[Any] = self.classes_[accepted.astype(int)]
        return predicted


def fit_stack(
    estimator: FairKDEClassifier,
    X: Table,
    y: Table,
    sensitive_features: Table,
    *,
    strengths: Sequence[float],
    seeds: Sequence[int],
    rows: Sequence[ArrayLike] | None = None,
) -> list[FairKDEClassifier | None]:
    """Fitted copies for every seed and, within it, every strength, trained at once; None where training diverged.

    They equal ``fit`` with that strength and ``random_state``. ``rows`` are the training rows of each seed.
    """
    template = clone(estimator)
    table = classification_rows(template, X, y, sensitive_features, two_groups=False)
    trained = _trained(template, table, strengths, seeds, own_rows(len(table), seeds, rows))
    return [
        None
        if predictor is None
        else fitted_copy(template, {"strength": strength, "random_state": seed}, {"predictor_": predictor})
        for seed, predictors in zip(seeds, trained, strict=True)
        for strength, predictor in zip(strengths, predictors, strict=True)
    ]


def _trained(
    estimator: FairKDEClassifier,
    rows: Rows,
    strengths: Sequence[float],
    seeds: Sequence[int],
    own: Sequence[Integers],
) -> list[list[Predictor | None]]:
    reference = _checked(estimator, strengths)
    network = network_of(estimator)
    cells = cells_for(estimator.criterion, rows.groups)
    for part in own:
        check_cells(subset(rows, part), CRITERIA[estimator.criterion])
    cell = torch.as_tensor(cells.of(rows.group[:, None], labels=rows.y))
    device = device_of(estimator.device)
    groups, tail = ("first", "approx") if reference else ("all", "exact")
    everyone = reference and estimator.criterion == "equal_opportunity"
    member = members(cells, len(rows.groups), groups=estimator.groups or groups, everyone=everyone)
    dealer = None
    if reference:
        dealer = _shuffled_dealer(cell, own, member, schedule_for(network, min(map(len, own))).batch_size)
    objective = SmoothedRates(
        BINARY,
        cells.comparisons,
        unbiased=False,
        kernel=Kernel(estimator.bandwidth, estimator.threshold, estimator.delta, estimator.tail or tail),
        cell=cell.to(device),
        member=member.to(device),
    )
    return train_networks(
        network,
        samples_of(rows, cell),
        objective,
        strengths=strengths,
        seeds=seeds,
        rows=own,
        dealer=dealer,
        path=estimator.warm_start_path,
    )


def _checked(estimator: FairKDEClassifier, strengths: Sequence[float]) -> bool:
    """Whether the reference is asked for, after a check of what networks do not have."""
    check_known("variant", estimator.variant, ("method", "reference"))
    check_switches(warm_start_path=estimator.warm_start_path)
    reference = estimator.variant == "reference"
    for strength in strengths:
        check_number("strength", strength, low=0, high=inf if reference else 1.0)
    if max(strengths) > 1:
        warnings.warn(
            f"strength {max(strengths):g} is above 1: the cross-entropy is then raised, not lowered", stacklevel=4
        )
    return reference


def _shuffled_dealer(cell: Tensor, rows: Sequence[Integers], member: Tensor, batch_size: int) -> Dealer:
    """Plain shuffled batches; one in which a compared set is empty is dealt anew."""
    own = [torch.as_tensor(part) for part in rows]
    fewest = min(map(len, own))
    size = min(batch_size, fewest)
    compared = member[:, 0].bool()  # (terms, cells); what sets are compared with is larger

    def one_pass(part: Tensor, generator: torch.Generator) -> Tensor:
        kept: list[Tensor] = []
        for _ in range(_MOST_PASSES):
            batches = part[torch.randperm(len(part), generator=generator)[: len(part) // size * size]].view(-1, size)
            present = compared[:, cell[batches]].any(-1).all(0)
            kept += batches[present].unbind(0)
            if len(kept) >= fewest // size:
                return torch.stack(kept[: fewest // size])
        raise DataError(f"batches of {size} rows hardly ever hold every group; use a larger batch_size")

    def deal(generators: Sequence[torch.Generator], _: Outputs) -> Deal:
        passes = [one_pass(part, generator) for part, generator in zip(own, generators, strict=True)]
        return Deal(torch.stack(passes), torch.ones(len(own), 1, size))

    return Dealer(size, (), deal)
