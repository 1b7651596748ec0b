"""Risk + strength x unfairness, for one batch and any number of models at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from metrifair.metrics.pair import between
from metrifair.metrics.registry import MetricLike, trained, trained_on_vectors
from metrifair.problem.cells import Batch, Comparison, Sides
from metrifair.problem.criteria import STATISTICAL_PARITY, Compare, Criterion, Task, scores


class Terms(NamedTuple):
    """The two parts of the objective, over the leading (model) axes."""

    risk: Tensor
    unfairness: Tensor


@dataclass(frozen=True, eq=False)
class Objective:
    """What training lowers: the mean loss, and the metric summed over all comparisons.

    The gradient is unbiased for energy and mmd with ``unbiased`` and without ``rho``; anything else is biased on
    batches.

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
    unbiased : bool, default=True
        Use the unbiased estimate, where the metric has one.
    compare : {"prediction", "output"}, default="prediction"
        Compare predictions or outputs.
    rho : callable, default=None
        A non-decreasing function of each comparison's metric; the identity unless given.
    slices : int, default=16
        Projections of vector scores.
    generator : torch.Generator
        Where projections are drawn from.

    Examples
    --------
    >>> from metrifair.batches import whole
    >>> from metrifair.problem.cells import Samples
    >>> from metrifair.problem.criteria import regression
    >>> data = Samples(torch.zeros(4, 0), torch.zeros(4), torch.tensor([0, 0, 1, 1]), torch.ones(4))
    >>> groups = (Comparison((0,), (1,)),)
    >>> objective = Objective(regression(), groups, unbiased=False)
    >>> objective(torch.tensor([0.0, 1.0, 1.0, 3.0]), whole(data, groups))
    Terms(risk=tensor(2.7500), unfairness=tensor(1.5000))
    """

    task: Task
    comparisons: tuple[Comparison, ...]
    criterion: Criterion = STATISTICAL_PARITY
    metric: MetricLike = "energy"
    unbiased: bool = True
    compare: Compare = "prediction"
    rho: Callable[[Tensor], Tensor] | None = None
    slices: int = 16  # projections of vector scores, drawn anew at each call from ``generator``
    generator: torch.Generator = field(default_factory=torch.Generator)

    def __call__(self, output: Tensor, batch: Batch) -> Terms:
        """Both terms, for outputs (..., n), or (..., n, classes), of the batch."""
        samples = batch.samples
        risk = (samples.weight * self.task.loss(output, samples.y)).mean(-1)
        return Terms(risk, self.unfairness(output, batch))

    def unfairness(self, output: Tensor, batch: Batch) -> Tensor:
        """Sum of the metric over the comparisons; 0 where there are none.

        Parameters
        ----------
        output : Tensor of shape (..., n) or (..., n, classes)
            What models return for the batch.
        batch : Batch
            Samples, and the rows of each comparison.

        Returns
        -------
        Tensor
            Of the leading axes.
        """
        if not batch.sides:
            return output.new_zeros(())
        score = scores(self.criterion, self.task, output, batch.samples.y, compare=self.compare)
        return penalty(
            score,
            batch.sides,
            metric=self.metric,
            unbiased=self.unbiased,
            vector=self.task.vector and score.ndim == output.ndim,
            slices=self.slices,
            generator=self.generator,
            names=self.comparisons,
            rho=self.rho,
        )


def penalty(
    score: Tensor,
    sides: Sequence[Sides],
    *,
    metric: MetricLike,
    unbiased: bool,
    vector: bool,
    slices: int,
    generator: torch.Generator,
    names: Sequence[object] = (),
    rho: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """The metric summed over comparisons; and over coordinates where scores are vectors and it takes numbers only."""
    together = None
    if vector:
        together = trained_on_vectors(metric, unbiased=unbiased, slices=slices, generator=generator)
    one_by_one = vector and together is None
    found = between(
        together or trained(metric, unbiased=unbiased),
        score.transpose(-2, -1) if one_by_one else score,  # coordinates, as if they were so many more models
        sides,
        names=names,
        reduce="sum" if rho is None else "all",
        vector=together is not None,
    )
    if rho is not None:
        found = rho(found).sum(-1)
    return found.sum(-1) if one_by_one else found
