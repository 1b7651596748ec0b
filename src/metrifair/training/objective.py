"""Risk + strength x unfairness, for one batch and any number of models at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from metrifair.batches.samples import Batch, Samples
from metrifair.errors import DataError
from metrifair.metrics.dependence import dependence_slopes, dependence_value, sliced_dependence
from metrifair.metrics.namespaces import Array, host_values, namespace_for
from metrifair.metrics.pair import Metric, between
from metrifair.metrics.quadratic import energy_coefficients
from metrifair.metrics.registry import (
    Estimate,
    MetricLike,
    least_samples,
    training_metric,
    vector_metric,
)
from metrifair.metrics.torch_namespace import random_directions
from metrifair.problem.cells import Combine, Comparison, Sides, check_dependences, penalty_weights
from metrifair.problem.criteria import SCORES, STATISTICAL_PARITY, Criterion, Penalize
from metrifair.problem.losses import REGRESSION_LOSSES, SMALLEST_PROBABILITY
from metrifair.support.arrays import AnyFloats, Floats
from metrifair.support.checks import check_known


class Terms(NamedTuple):
    """The two parts of the objective, over the leading (model) axes."""

    risk: Tensor
    unfairness: Tensor


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective of training: the mean loss, and the metric combined over all comparisons.

    For energy, cramer and mmd without ``rho``, and unless the estimate is ``"batch"``, the gradient
    is that of the estimated distance in the mean over batches; anything else is biased on batches.

    Parameters
    ----------
    task : Task
        Loss and link.
    comparisons : tuple of Comparison
        Which cells are compared.
    criterion : Criterion, default=STATISTICAL_PARITY
        What score is compared.
    metric : str or callable, default="energy"
        How distributions are compared.
    estimate : {"rows", "population", "batch"}, default="rows"
        The estimand of a batch: the distance of the training rows, or that of the population, both
        without bias, where the metric has such an estimate; or its own.
    combine : {"mean", "sum"}, default="mean"
        Average over pairs of groups and control strata, and sum over sets of labels and attributes;
        or sum everything.
    penalize : {"prediction", "output"}, default="prediction"
        Penalize predictions or outputs.
    rho : callable, default=None
        A non-decreasing function of each comparison's metric; the identity by default.
    slices : int, default=16
        Projections of vector scores.
    generator : torch.Generator
        Where projections are drawn from.
    class_weight : tuple of float, default=()
        Weight of each class in the loss; it does not affect the unfairness. Empty: equal weights.

    Examples
    --------
    >>> from metrifair.batches import whole
    >>> from metrifair.batches.samples import Samples
    >>> from metrifair.training.objective import regression
    >>> data = Samples(torch.zeros(4, 0), torch.zeros(4), torch.tensor([0, 0, 1, 1]), torch.ones(4))
    >>> groups = (Comparison((0,), (1,)),)
    >>> objective = Objective(regression(), groups)
    >>> objective(torch.tensor([0.0, 1.0, 1.0, 3.0]), whole(data, groups))
    Terms(risk=tensor(2.7500), unfairness=tensor(1.5000))
    """

    task: Task
    comparisons: tuple[Comparison, ...]
    criterion: Criterion = STATISTICAL_PARITY
    metric: MetricLike = "energy"
    estimate: Estimate = "rows"
    combine: Combine = "mean"
    penalize: Penalize = "prediction"
    rho: Callable[[Tensor], Tensor] | None = None
    slices: int = 16  # projections of vector scores, drawn anew at each call from ``generator``
    generator: torch.Generator = field(default_factory=torch.Generator)
    class_weight: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_dependences(self.comparisons, self.metric)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """The weight of each comparison."""
        return penalty_weights(self.comparisons, self.combine)

    @cached_property
    def least(self) -> int:
        """Samples of each kind that a batch needs."""
        return least_samples(self.metric, self.estimate)

    @property
    def fewest(self) -> int:
        """Rows of each kind that the data must have: one, unless the population is estimated."""
        return self.least if self.estimate == "population" else 1

    def __call__(self, output: Tensor, batch: Batch) -> Terms:
        """Both terms, for outputs (..., n), or (..., n, classes), of the batch."""
        samples = batch.samples
        losses = self.task.loss(output, samples.y)
        weighted = self.loss_weight(samples) * losses
        return Terms(
            risk=weighted.mean(-1),
            unfairness=self.unfairness(output, batch),
        )

    def loss_weight(self, samples: Samples) -> Tensor:
        """The weight of each sample in the loss: its own weight, times that of its class.

        Parameters
        ----------
        samples : Samples
            Samples with their weights.

        Returns
        -------
        Tensor
            One number for each.
        """
        weight = samples.weight
        if not self.class_weight:
            return weight
        by_class = _numbers(self.class_weight, weight.dtype, weight.device)
        return weight * by_class[samples.y.long()]

    def is_counted(self, sides: Sequence[Sides]) -> bool:
        """Whether slopes can be counted: energy distances of predictions or outputs without
        weights.

        Parameters
        ----------
        sides : sequence of Sides
            The sides of each comparison.

        Returns
        -------
        bool
            Also False for losses other than the logistic and the squared one.
        """
        if self.criterion.score != "prediction" or not self._is_linear(sides):
            return False
        is_squared = self.task.loss is REGRESSION_LOSSES["squared_error"]
        return is_squared or self.task.name == BINARY.name

    def _is_linear(self, sides: Sequence[Sides]) -> bool:
        """Whether the metric is a sum over scores with coefficients that can be counted."""
        if self.metric != "energy" or self.rho is not None:
            return False
        return all(side.dependence is not None or self._is_even(side) for side in sides)

    def _is_even(self, side: Sides) -> bool:
        """Whether a side has one cell on either side, enough rows, and no weights."""
        if side.weights is not None:
            return False
        return len(side.left + side.right) == 2 and min(side.counts) >= self.least

    def slopes(self, output: Floats, batch: Batch, strength: float) -> Floats | None:
        """The derivative of risk + strength x unfairness by each output (n,), by counting and
        without autograd.

        Parameters
        ----------
        output : ndarray of shape (n,)
            The model's outputs for the samples of the batch.
        batch : Batch
            The samples, and the sides of each comparison.
        strength : float
            Weight of the unfairness.

        Returns
        -------
        ndarray of shape (n,) or None
            None unless ``is_counted``.
        """
        if not self.is_counted(batch.sides):
            return None
        samples = batch.samples
        weight = self.loss_weight(samples).numpy()
        weight = weight / len(output)
        y = samples.y.numpy()
        score = output
        link = np.ones(1)
        if self.task.name == BINARY.name:  # a task that came from another process is another object
            probability = 1 / (1 + np.exp(-output))
            loss_slope = weight * (probability - y)
            if self.penalize == "prediction":
                score = probability
                link = score * (1 - score)
        else:
            loss_slope = 2 * weight * (output - y)
        slope = np.zeros(len(score))
        for rows, slopes, _ in self._counted_parts(score, batch.sides, samples.value):
            slope[rows] += slopes
        total: Floats = loss_slope + strength * slope * link
        return total

    def _counted_parts(
        self, score: AnyFloats, sides: Sequence[Sides], values: Tensor | None
    ) -> Iterator[tuple[Any, AnyFloats, float]]:
        """For each comparison its rows, the derivative of its part by their scores, and a
        center to subtract.
        """
        for side, factor in zip(sides, self.weights, strict=True):
            rows: Any = side.rows
            if not isinstance(rows, slice):
                rows = host_values(rows)
            center = 0.0
            if side.dependence is not None:
                tensor = torch.from_numpy(score)
                slopes = dependence_slopes(tensor, side, values=values, estimate=self.estimate)
                slopes = slopes.numpy()
            else:
                left, _ = side.counts
                fractions = self._fractions(side)
                slopes, center = energy_coefficients(score[rows], left, fractions=fractions)
            if factor != 1:
                slopes = factor * slopes
            yield rows, slopes, center

    def _fractions(self, side: Sides) -> list[float]:
        """The fraction of the rows of either side that a batch represents."""
        if self.estimate == "batch":
            return [1.0, 1.0]
        if self.estimate == "population" or side.fraction is None:
            return [0.0, 0.0]
        fractions: list[float] = side.fraction.tolist()
        return fractions

    def _counted_unfairness(
        self, score: Tensor, array: AnyFloats, sides: Sequence[Sides]
    ) -> Tensor:
        """The sum over comparisons, each with its own center: far from 0, products with scores
        would round.
        """
        parts = list(self._counted_parts(array, sides, None))
        rows, slopes, center = parts[0]
        if len(parts) == 1:
            compared = score
            if not isinstance(rows, slice) or len(slopes) < len(array):
                compared = score[sides[0].rows]
            if center:
                compared = compared - center
            return torch.dot(torch.from_numpy(slopes), compared)
        slope = np.zeros(len(array), array.dtype)
        value = 0.0
        for rows, slopes, center in parts:
            slope[rows] += slopes
            value += float(slopes @ (array[rows] - center))
        change = score - score.detach()  # 0, with the slopes
        return torch.dot(torch.from_numpy(slope), change) + value

    def unfairness(self, output: Tensor, batch: Batch) -> Tensor:
        """The metric combined over the comparisons; 0 if there are none.

        Parameters
        ----------
        output : Tensor of shape (..., n) or (..., n, classes)
            Outputs of the models for the batch.
        batch : Batch
            Samples, and the rows of each comparison.

        Returns
        -------
        Tensor
            One number for each model.
        """
        if not batch.sides:
            return output.new_zeros(())
        samples = batch.samples
        score = scores(self.criterion, self.task, output, samples.y, penalize=self.penalize)
        vector = self.task.vector and score.ndim == output.ndim
        return self.unfairness_of_scores(score, batch.sides, samples.value, vector=vector)

    def unfairness_of_scores(
        self, score: Tensor, sides: Sequence[Sides], values: Tensor | None, *, vector: bool
    ) -> Tensor:
        """The same for the scores that the criterion compares.

        If scores are vectors and the metric takes numbers only, the sum is over coordinates too.

        Parameters
        ----------
        score : Tensor of shape (..., n) or (..., n, classes)
            Numbers, or vectors.
        sides : sequence of Sides
            The rows of each comparison.
        values : Tensor of shape (..., n, attributes) or None
            Numeric attributes.
        vector : bool
            Whether the scores are vectors.

        Returns
        -------
        Tensor
            One number for each model.
        """
        estimate = self.estimate
        if score.ndim == 1 and values is None and estimate != "batch" and self._is_linear(sides):
            array = namespace_for(score).host_array(score)
            if array is not None and sides:
                return self._counted_unfairness(score, array, sides)
        if not vector:
            return self._compared(score, sides, values)
        sliced = vector_metric(
            self.metric, estimate=estimate, slices=self.slices, generator=self.generator
        )
        if sliced is not None:
            return self._compared(score, sides, values, sliced)
        # each coordinate is computed as another model
        coordinates = score.transpose(-2, -1)
        sides = [side.for_coordinates() for side in sides]
        if values is not None:
            values = values.unsqueeze(-3)
        by_coordinate = self._compared(coordinates, sides, values)
        return by_coordinate.sum(-1)

    def _compared(
        self,
        score: Tensor,
        sides: Sequence[Sides],
        values: Tensor | None,
        sliced: Metric | None = None,
    ) -> Tensor:
        """The metric combined over the comparisons; ``sliced`` is that of vectors."""
        estimate = self.estimate

        def dependence(score: Tensor, side: Sides) -> Array:
            if sliced is None:
                return dependence_value(score, side, values=values, estimate=estimate)
            directions = random_directions(
                self.slices, score.shape[-1], self.generator, dtype=score.dtype
            )
            return sliced_dependence(
                score, side, values=values, estimate=estimate, directions=directions
            )

        combined: dict[str, Any] = {"weights": self.weights, "reduce": "sum"}
        if self.rho is not None:
            combined = {"reduce": "all"}
        penalty: Tensor = between(
            sliced or training_metric(self.metric, estimate=estimate),
            score,
            sides,
            names=self.comparisons,
            **combined,
            vector=sliced is not None,
            dependent=dependence,
        )
        if self.rho is None:
            return penalty
        weights = _numbers(self.weights, penalty.dtype, penalty.device)
        weighted = self.rho(penalty) * weights
        return weighted.sum(-1)


@lru_cache(maxsize=64)  # no numbers can be sent to a device while a step is recorded
def _numbers(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=dtype, device=device)


@dataclass(frozen=True)
class Task:
    """Loss and link; both act along the sample axis and keep leading (model) axes."""

    name: str
    # (output, y) -> loss per sample (..., n), never averaged
    loss: Callable[[Tensor, Tensor], Tensor]
    prediction: Callable[[Tensor], Tensor]  # output -> prediction
    log_prediction: Callable[[Tensor], Tensor]
    output: Callable[[Tensor], Tensor]  # prediction -> output
    vector: bool = False  # outputs and predictions are (..., n, classes)


def _log_loss(output: Tensor, y: Tensor) -> Tensor:
    # softplus(-output) if y = 1, softplus(output) if y = 0: one stable function for both.
    return functional.softplus(output) - y * output


def _softmax_loss(output: Tensor, y: Tensor) -> Tensor:
    chosen = y.long().expand(output.shape[:-1])
    logs = functional.log_softmax(output, -1)
    of_chosen = logs.gather(-1, chosen.unsqueeze(-1))
    return -of_chosen.squeeze(-1)


def _logit(prediction: Tensor) -> Tensor:
    rounding = torch.finfo(prediction.dtype).eps
    return torch.logit(prediction, eps=max(SMALLEST_PROBABILITY, rounding))


def _log_clipped(prediction: Tensor) -> Tensor:
    return prediction.clamp_min(SMALLEST_PROBABILITY).log()


def _same(values: Tensor) -> Tensor:
    return values


BINARY = Task("binary", _log_loss, torch.sigmoid, functional.logsigmoid, _logit)
MULTICLASS = Task(
    "multiclass",
    _softmax_loss,
    partial(functional.softmax, dim=-1),
    partial(functional.log_softmax, dim=-1),
    _log_clipped,
    vector=True,
)


def regression(loss: str = "squared_error") -> Task:
    """A regression task with one of the three losses.

    >>> regression("huber").loss(torch.tensor([0.5, 3.0]), torch.zeros(2))
    tensor([0.1250, 2.5000])
    """
    check_known("loss", loss, REGRESSION_LOSSES)
    return Task("regression", REGRESSION_LOSSES[loss], _same, _log_clipped, _same)


def constant_output(
    task: Task, y: Tensor, weight: Tensor, outputs: int, *, added: float = 0.5
) -> Tensor:
    """The best constant output for these samples, (outputs,): base rates, or the mean.

    ``added`` samples of every class are added, so that no class has probability 0 or 1.

    >>> constant_output(BINARY, torch.tensor([1.0, 1.0, 1.0, 0.0]), torch.ones(4), 1).sigmoid()     # 3.5 of 5
    tensor([0.7000])
    """
    share = weight / weight.mean()
    if task.name == "regression":
        mean = (share * y).mean()
        return mean.unsqueeze(0)
    counts = share.new_zeros(max(2, outputs))
    counts = counts.index_add_(0, y.long(), share) + added
    rates = counts / counts.sum()
    logs = rates.log()
    if outputs > 1:
        return logs - logs.mean()
    return logs[1:] - logs[:1]


def scores(
    criterion: Criterion,
    task: Task,
    output: Tensor,
    y: Tensor,
    *,
    penalize: Penalize = "prediction",
) -> Tensor:
    """The scores that the criterion compares, from the model's outputs: (..., n), or (..., n,
    classes).
    """
    check_known("penalize", penalize, ("prediction", "output"))
    if not callable(criterion.score):
        check_known("score", criterion.score, SCORES)
    if criterion.score != "prediction" and penalize != "prediction":
        compared = criterion.score if isinstance(criterion.score, str) else "a custom score"
        raise DataError(
            f"penalize={penalize!r} applies where the score is the prediction; {criterion.name} "
            f"compares {compared}: leave penalize as it is"
        )
    if callable(criterion.score):
        score: Tensor = criterion.score(task.prediction(output), y)
        return score
    if criterion.score == "loss":
        return task.loss(output, y)
    if criterion.score == "log_prediction":
        return task.log_prediction(output)
    if "output" in (criterion.score, penalize):
        return output
    return task.prediction(output)
