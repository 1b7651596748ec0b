"""FairBatch (Roh et al., 2021): shares of label and group in a batch, moved by the errors of
the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from metrifair.baselines.baseline import CONDITIONED_ON, Fitted, TrainingData
from metrifair.baselines.network import BatchedNetworkClassifier, make_samples, train_network
from metrifair.errors import DataError
from metrifair.estimators.fair import FairClassifier
from metrifair.estimators.settings import model_for, schedule_for
from metrifair.problem.criteria import usual_name
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_known, check_number
from metrifair.support.signatures import as_in
from metrifair.training.models import Model, Parameters
from metrifair.training.objective import BINARY, Objective
from metrifair.training.stack import Epoch, EpochSource, Outputs

_MOVED = CONDITIONED_ON | {"statistical_parity": (0, 1)}  # which moves shares within both labels
_SMALLEST_BATCH = 4


@as_in(FairClassifier)
@dataclass(kw_only=True, eq=False, repr=False)
class FairBatchClassifier(BatchedNetworkClassifier):
    """A network trained on batches with adaptive shares of label and group.

    After each epoch the shares move to reduce the difference between the groups' losses. No
    parameter trades fairness for accuracy. The method takes two groups. Prediction needs no groups.

    Parameters
    ----------
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
        Fairness criterion: which losses are to be equal.
    variant : {"method", "reference"}, default="method"
        Variant of the method. The reference follows the authors' code. The score is the logistic
        function of twice the output, and halves are rounded to even. Shares move before the first
        epoch too, by the errors of the untrained network. After the end of a cell's rows some of
        them repeat.
    step : float, default=0.005
        Step size of a share after each epoch; 0 is stratified sampling. Shares need many epochs to
        move far.

    Attributes
    ----------
    shares_ : ndarray of shape (2,)
        The last share of the later group within each label.
    predictor_ : Predictor
        The network.
    classes_, groups_ : ndarray, tuple
        The classes and the groups that ``fit`` saw.

    Examples
    --------
    >>> import numpy as np
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

    _two_groups = True

    criterion: str = "statistical_parity"
    variant: Literal["method", "reference"] = "method"
    step: float = 0.005

    def _fit_data(self, data: TrainingData, seed: int) -> Fitted:
        criterion = usual_name(self.criterion)
        check_known("criterion", criterion, _MOVED)
        check_number("step", self.step, low=0, high=1)
        network = self._network()
        data.check_cells(_MOVED[criterion])
        schedule = schedule_for(network, len(data))
        batch_size = schedule.batch_size
        if batch_size < _SMALLEST_BATCH:
            raise DataError(
                f"batch_size must be at least {_SMALLEST_BATCH} to contain two labels of two "
                f"groups, got {batch_size}"
            )
        reference = self.variant == "reference"
        sampler = Sampler(
            data, batch_size=batch_size, criterion=criterion, step=self.step, reference=reference
        )
        model: Model = model_for(network, data.features, 1)
        if reference:
            model = Doubled(model)
        samples = make_samples(data)
        objective = Objective(BINARY, ())
        source = EpochSource(sampler.size, (), sampler.draw)
        predictor = train_network(
            network,
            samples,
            objective,
            seed=seed,
            source=source,
            model=model,
        )
        return {
            "predictor_": predictor,
            "shares_": sampler.shares,
        }


@dataclass(frozen=True, eq=False)
class Doubled:
    """A model with doubled outputs."""

    model: Model

    def initial(self, seed: int) -> Parameters:
        """The initial parameters of the model."""
        return self.model.initial(seed)

    def __call__(self, parameters: Parameters, x: Tensor, *, training: bool = False) -> Tensor:
        """Twice the outputs of the model."""
        output = self.model(parameters, x, training=training)
        return 2 * output


def update_shares(shares: Floats, losses: Floats, criterion: str, step: float) -> Floats:
    """Shares of group 1 within each label after an epoch, for losses (..., label, group) of the
    model's cells.

    One label moves: the one whose groups differ more, or the positive one under equal opportunity.
    There the share of the group with the larger loss grows; under statistical parity, among the
    negative, it shrinks.

    >>> update_shares(np.array([0.6, 0.25]), np.array([[0.0, 0.0], [0.2, 0.9]]), "equal_opportunity", 0.1)
    array([0.6 , 0.35])
    """
    earlier = losses[..., 0]
    later = losses[..., 1]
    is_larger = later > earlier
    towards = np.where(is_larger, step, -step)
    if criterion == "statistical_parity":
        label_signs = np.array([-1.0, 1.0])
        towards = towards * label_signs
    gap = np.abs(later - earlier)
    negative_gap = gap[..., 0]
    positive_gap = gap[..., 1]
    positive = positive_gap > negative_gap
    if criterion == "equal_opportunity":
        positive = np.ones_like(positive)
    negative = ~positive
    moves = np.stack([negative, positive], -1)
    change = np.where(moves, towards, 0.0)
    moved = shares + change
    return moved.clip(0.0, 1.0)


def batch_counts(
    shares: Floats, sizes: Floats, batch_size: int, *, half_to_even: bool = False
) -> Integers:
    """Rows of each cell (..., label, group) in a batch; rounded, so that they may not add up to its
    size.

    >>> batch_counts(np.array([2 / 3, 0.25]), np.array([[20.0, 40.0], [30.0, 10.0]]), 50)
    array([[10, 20],
           [15,  5]])
    """
    label_sizes = sizes.sum(-1)
    total = label_sizes.sum(-1, keepdims=True)
    of_label = batch_size * label_sizes / total
    earlier_shares = 1 - shares
    within_label = np.stack([earlier_shares, shares], -1)
    exact = of_label[..., None] * within_label
    rounded = np.floor(exact + 0.5)
    if half_to_even:
        rounded = np.rint(exact)
    counts: Integers = rounded.astype(np.int64)
    return counts


def cell_losses(output: Tensor, member: Tensor, y: Tensor, criterion: str) -> Tensor:
    """Losses (label, group) of all rows' outputs (n,), for membership (label, group, n).

    The mean cross-entropy of each cell; under statistical parity that of the label 1 for all rows,
    divided by the size of the group.
    """
    loss = BINARY.loss(output, y)
    counts = member.sum(-1)
    if criterion == "statistical_parity":
        loss = functional.softplus(-output)
        counts = counts.sum(0, keepdim=True)
    totals = torch.einsum("n,ygn->yg", loss, member)
    divisors = counts.clamp_min(1)
    return totals / divisors


def cyclic(
    rows: Tensor, count: int, steps: int, generator: torch.Generator, *, repeating: bool = False
) -> Tensor:
    """Rows of ``steps`` batches (steps, count): one shuffled pass after the other.

    ``repeating`` continues after the end of the only pass with as many rows as were left, as the
    authors' code does.
    """
    n = len(rows)
    order = torch.randperm(n, generator=generator)
    if not repeating:
        needed = steps * count
        while len(order) < needed:
            more = torch.randperm(n, generator=generator)
            order = torch.cat([order, more])
        taken = order[:needed]
        chosen = rows[taken]
        return chosen.view(steps, count)
    begin = 0
    batches = []
    from_first = torch.arange(count)
    for _ in range(steps):
        place = begin + from_first
        batches.append(place % n)
        if begin + count <= n:
            begin += count
        else:
            left = n - begin
            begin = left % n
    places = torch.stack(batches)
    drawn = order[places]
    return rows[drawn]


class Sampler:
    """Batches whose shares move after each epoch."""

    def __init__(
        self, data: TrainingData, *, batch_size: int, criterion: str, step: float, reference: bool
    ) -> None:
        self.criterion = criterion
        self.step = step
        self.reference = reference
        self.y = torch.as_tensor(data.y)
        cells = []
        for label in (0, 1):
            for code in (0, 1):
                cell = data.in_cell(label, code)
                cells.append(cell)
        rows = map(np.flatnonzero, cells)
        self.cells = list(map(torch.as_tensor, rows))  # by label, then by group
        inside = np.reshape(cells, (2, 2, -1))
        self.member = torch.as_tensor(inside, dtype=torch.float32)  # (label, group, n)
        counts = inside.sum(-1)
        self.sizes = counts.astype(np.float64)  # (label, group)
        label_sizes = self.sizes.sum(-1)
        divisors = np.maximum(label_sizes, 1)
        # of group 1, (label,)
        self.shares = self.sizes[:, 1] / divisors
        self.batch_size = min(batch_size, len(data))
        self.steps = len(data) // self.batch_size
        self.size = self.batch_size + 2  # four counts are rounded up by a half at most
        self.begun = False

    def draw(self, generators: Sequence[torch.Generator], outputs: Outputs) -> Epoch:
        """The batches of an epoch; before the second and later ones, the shares move (in the
        reference, before all).

        Batches are filled up to one size with rows of weight 0.
        """
        if self.begun or self.reference:
            output = outputs()
            self._move_shares(output[0, 0])
        self.begun = True
        counts = batch_counts(self.shares, self.sizes, self.batch_size, half_to_even=self.reference)
        sizes = counts.ravel().tolist()
        total = sum(sizes)
        generator = generators[0]
        parts = []
        for cell, size in zip(self.cells, sizes, strict=True):
            if size:
                part = cyclic(cell, size, self.steps, generator, repeating=self.reference)
                parts.append(part)
        first = parts[0][:, :1]
        missing = self.size - total
        filling = first.expand(-1, missing)
        parts.append(filling)
        rows = torch.cat(parts, 1)
        weight = torch.zeros(1, 1, self.size)
        weight[..., :total] = self.size / total
        return Epoch(rows.unsqueeze(0), weight)

    def _move_shares(self, output: Tensor) -> None:
        """Move the shares by the losses of the model with these outputs for all rows."""
        self.member = self.member.to(output)
        self.y = self.y.to(output)
        by_cell = cell_losses(output, self.member, self.y, self.criterion)
        exact = by_cell.double()
        losses = exact.cpu().numpy()
        self.shares = update_shares(self.shares, losses, self.criterion, self.step)
