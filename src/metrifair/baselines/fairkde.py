"""Fair KDE (Cho, Hwang and Suh, 2020): rates of acceptance, smoothed by a kernel, made equal
while training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from metrifair.baselines.baseline import CONDITIONED_ON, Fitted, TrainingData
from metrifair.baselines.network import BatchedNetworkClassifier, make_samples, train_network
from metrifair.batches.samples import Batch
from metrifair.errors import DataError
from metrifair.estimators.fair import FairClassifier
from metrifair.estimators.settings import as_device, model_for, schedule_for
from metrifair.problem.cells import Attribute, Cells, compile_cells
from metrifair.problem.criteria import criterion_named, usual_name
from metrifair.problem.tables import Table
from metrifair.support.arrays import Booleans
from metrifair.support.checks import check_known, check_number
from metrifair.support.signatures import as_in
from metrifair.support.user_warnings import warn_user
from metrifair.training.models import Model
from metrifair.training.objective import BINARY, Objective, Terms
from metrifair.training.stack import Epoch, EpochSource, Outputs

_MOST_PASSES = 1_000  # over the data, for the batches of one epoch


@as_in(FairClassifier)
@dataclass(kw_only=True, eq=False, repr=False)
class FairKDEClassifier(BatchedNetworkClassifier):
    """A network with similar selection rates in all groups, smoothed by a Gaussian kernel.

    ``fit`` minimizes (1 - strength) x cross-entropy + strength x the Huber loss of each group's
    rate minus the overall rate. Prediction needs no groups; the original uses the group as a
    feature. The paper trains without standardization: 500 epochs with batches of 2,048 rows and a
    learning rate of 2e-4 (Drug, CC) or 5e-4 (COMPAS), and 200 epochs with batches of 512 rows and a
    learning rate of 0.1 that decays by 0.98 (Adult).

    Parameters
    ----------
    strength : float, default=0.5
        Penalty strength, from 0 (a plain network) to 1 (the penalty alone).
    model, hidden, batch_size, epochs : as in FairClassifier
    learning_rate : float, default=5e-3
        Learning rate of Adam.
    learning_rate_decay : float, default=1.0
        Factor of the learning rate after each epoch.
    standardize : bool, default=True
        Center and scale the features.
    device : as in FairClassifier
    random_state : int, NumPy generator or None, default=None
        Seed of the initial weights and the batches.
    criterion : {"statistical_parity", "equal_opportunity", "equalized_odds"}, default="statistical_parity"
        Fairness criterion: compare the selection rates of all rows, of positive rows, or of
        positive and of negative rows.
    bandwidth : float, default=0.1
        Bandwidth of the kernel.
    threshold : float, default=0.5
        Scores at or above the threshold count as positive decisions.
    delta : float, default=1.0
        Disparity above which the penalty is linear. At 1 it is nowhere linear.
    groups : {"all", "first"}, default=None
        Groups to penalize: all, or only the first. None follows the variant.
    tail : {"exact", "approx"}, default=None
        Tail of the kernel: exact, or by the authors' formula. None follows the variant.
    variant : {"method", "reference"}, default="method"
        Variant of the method. The reference follows the published experiments: the first group and
        the formula; under equal opportunity the rate of *all* rows as reference; plain shuffled
        batches (a batch that lacks a group is drawn again, where theirs was skipped). Strengths
        above 1 raise the cross-entropy, with a warning.

    Attributes
    ----------
    predictor_ : Predictor
        The network.
    classes_, groups_ : ndarray, tuple
        The classes and the groups that ``fit`` saw.

    Examples
    --------
    >>> import numpy as np
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

    strength: float = field(default=0.5, kw_only=False)
    criterion: str = "statistical_parity"
    bandwidth: float = 0.1
    threshold: float = 0.5
    delta: float = 1.0
    groups: Literal["all", "first"] | None = None
    tail: Literal["exact", "approx"] | None = None
    variant: Literal["method", "reference"] = "method"

    def _accepted(self, X: Table) -> Booleans:
        probabilities = self.predict_proba(X)
        return probabilities[:, 1] >= self.threshold

    def _fit_data(self, data: TrainingData, seed: int) -> Fitted:
        self._check()
        network = self._network()
        device = as_device(self.device)
        criterion = usual_name(self.criterion)
        data.check_cells(CONDITIONED_ON[criterion])
        cells = compared_cells(self.criterion, data.groups)
        codes = cells.of(data.group[:, None], labels=data.y)
        cell = torch.as_tensor(codes)
        reference = self.variant == "reference"
        all_rows = reference and criterion == "equal_opportunity"
        groups = self.groups or "all"
        tail = self.tail or "exact"
        if reference:
            groups = self.groups or "first"
            tail = self.tail or "approx"
        member = members(cells, len(data.groups), groups=groups, all_rows=all_rows)
        source = None
        if reference:
            schedule = schedule_for(network, len(data))
            source = _shuffled_epochs(cell, member, schedule.batch_size)
        objective = SmoothedRates(
            BINARY,
            cells.comparisons,
            estimate="batch",
            bandwidth=self.bandwidth,
            threshold=self.threshold,
            delta=self.delta,
            tail=tail,
            cell=cell.to(device),
            member=member.to(device),
        )
        samples = make_samples(data, cell)
        predictor = train_network(
            network,
            samples,
            objective,
            strength=self.strength,
            seed=seed,
            source=source,
            model=self._model(network, data.features),
        )
        return {"predictor_": predictor}

    def _model(self, network: FairClassifier, features: int) -> Model:
        """The model to train, from its initial parameters."""
        return model_for(network, features, 1)

    def _check(self) -> None:
        check_known("criterion", usual_name(self.criterion), CONDITIONED_ON)
        if self.groups is not None:
            check_known("groups", self.groups, ("all", "first"))
        if self.tail is not None:
            check_known("tail", self.tail, ("exact", "approx"))
        check_number("bandwidth", self.bandwidth, low=0, low_open=True)
        check_number("delta", self.delta, low=0, low_open=True)
        check_number("threshold", self.threshold, low=0, high=1, low_open=True)
        if self.threshold == 1:
            raise DataError("threshold must lie between 0 and 1, got 1")
        highest = inf if self.variant == "reference" else 1.0
        check_number("strength", self.strength, low=0, high=highest)
        if self.strength > 1:
            warn_user(
                f"strength {self.strength:g} is above 1: the cross-entropy is then raised, not "
                "lowered",
                UserWarning,
            )


def smoothed_acceptance(
    score: Tensor, *, bandwidth: float = 0.1, threshold: float = 0.5, tail: str
) -> Tensor:
    """The share of each score, smoothed by a Gaussian kernel, above the threshold.

    The ``"approx"`` tail is, in value but not in slope, that of the original authors' formula.
    """
    z = (threshold - score) / bandwidth
    exact: Tensor = torch.special.ndtr(-z)
    if tail == "exact":
        return exact
    quadratic = -0.4920 * z.square()
    linear = 0.2887 * z.abs()
    exponent = quadratic - linear - 1.1893
    far = exponent.exp()
    near_or_below = torch.where(z < 0, 1 - far, 0.5)
    value = torch.where(z > 0, far, near_or_below)
    correction = value - exact
    return exact + correction.detach()


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothedRates(Objective):
    """(1 - strength) x mean loss + strength x the cost of unequal smoothed rates of acceptance.

    The unfairness term holds both ends of that line, so that risk + strength x unfairness is it.
    """

    bandwidth: float
    threshold: float
    delta: float
    tail: str
    cell: Tensor  # (n,): of each row of the data
    member: Tensor  # (terms, 2, cells): the set and its counterpart

    def __call__(self, output: Tensor, batch: Batch) -> Terms:
        """Both terms; the batch's samples name rows of the data."""
        samples = batch.samples
        losses = self.task.loss(output, samples.y)
        weighted = samples.weight * losses
        risk = weighted.mean(-1)
        score = self.task.prediction(output)
        cost = self.cost(score, samples.cell, samples.weight)
        return Terms(risk, cost - risk)

    def cost(self, score: Tensor, rows: Tensor, weight: Tensor) -> Tensor:
        """The cost of unequal rates of scores (seeds, strengths, n): quadratic up to ``delta``,
        linear beyond.

        Of each seed's rows (seeds, n) of the data, with weights (seeds, 1, n).
        """
        member = self.member.to(score.dtype)
        cell = self.cell[rows]
        by_row = member[:, :, cell]
        inside = by_row.movedim(-2, 0)  # (seeds, terms, 2, n)
        counts = inside * weight.unsqueeze(1)
        totals = counts.sum(-1, keepdim=True)
        shares = counts / totals
        first, second = shares.unbind(-2)
        accepted = smoothed_acceptance(
            score, bandwidth=self.bandwidth, threshold=self.threshold, tail=self.tail
        )
        differences = first - second
        disparity = accepted @ differences.mT
        zero = torch.zeros_like(disparity)
        costs = functional.huber_loss(disparity, zero, delta=self.delta, reduction="none")
        return costs.sum(-1)


def compared_cells(criterion: str, groups: Sequence[object]) -> Cells:
    """Cells, and each group compared with the rest, or the only two with each other."""
    names = tuple(groups)
    attribute = Attribute("sensitive_features", names)
    compared = criterion_named(criterion)
    return compile_cells(compared, [attribute], classes=(0, 1), contrast="rest")


def members(cells: Cells, count: int, *, groups: str, all_rows: bool = False) -> Tensor:
    """The cells of both sides of each disparity: (terms, 2, cells).

    ``all_rows`` compares each group with all rows, for every criterion.
    """
    size = int(cells.table.max()) + 1
    terms = []
    for comparison in cells.comparisons:
        both = comparison.left + comparison.right
        terms.append((comparison.left, both))
        if count == 2:  # both groups in one comparison
            terms.append((comparison.right, both))
    if groups == "first":
        terms = terms[::count]
    if all_rows:
        every_cell = tuple(range(size))
        terms = [(side, every_cell) for side, _ in terms]
    member = torch.zeros(len(terms), 2, size)
    for term, sets in enumerate(terms):
        for side, inside in enumerate(sets):
            member[term, side, list(inside)] = 1.0
    return member


def _shuffled_epochs(cell: Tensor, member: Tensor, batch_size: int) -> EpochSource:
    """Plain shuffled batches; one in which a compared set is empty is drawn again."""
    n = len(cell)
    size = min(batch_size, n)
    steps = n // size
    compared = member[:, 0].bool()  # (terms, cells); the other side is larger

    def draw(generators: Sequence[torch.Generator], outputs: Outputs) -> Epoch:  # noqa: ARG001
        complete: list[Tensor] = []
        for _ in range(_MOST_PASSES):
            order = torch.randperm(n, generator=generators[0])
            taken = order[: steps * size]
            batches = taken.view(-1, size)
            batch_cells = cell[batches]
            is_member = compared[:, batch_cells]
            members_present = is_member.any(-1)
            is_complete = members_present.all(0)
            complete += batches[is_complete].unbind(0)
            if len(complete) >= steps:
                rows = torch.stack(complete[:steps])
                weight = torch.ones(1, 1, size)
                return Epoch(rows.unsqueeze(0), weight)
        raise DataError(
            f"batches of {size} rows hardly ever contain every group; use a larger batch_size"
        )

    return EpochSource(size, (), draw)
