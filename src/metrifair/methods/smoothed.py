"""Rates of acceptance smoothed by a Gaussian kernel, and what it costs where they differ between groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from metrifair.checks import check_known
from metrifair.errors import DataError
from metrifair.methods.inputs import check_number
from metrifair.problem.cells import Attribute, Cells, compiled
from metrifair.problem.criteria import criterion_named
from metrifair.problem.samples import Batch
from metrifair.problem.tables import Table, codes, columns, levels, same_length
from metrifair.training.objective import Objective, Terms

CRITERIA = {"statistical_parity": (), "equal_opportunity": (1,), "equalized_odds": (0, 1)}
"""Criteria that this method serves, and the labels on which they condition."""


@dataclass(frozen=True)
class Kernel:
    """How scores are smoothed to rates of acceptance, and how much a rate that is off costs."""

    bandwidth: float = 0.1
    threshold: float = 0.5
    delta: float = 1.0  # disparities beyond it cost linearly
    tail: str = "exact"  # "approx": the value, not the slope, by the original authors' formula

    def __post_init__(self) -> None:
        check_number("bandwidth", self.bandwidth, low=0, low_open=True)
        check_number("delta", self.delta, low=0, low_open=True)
        check_number("threshold", self.threshold, low=0, high=1, low_open=True)
        if self.threshold == 1:
            raise DataError("threshold must lie between 0 and 1, got 1")
        check_known("tail", self.tail, ("exact", "approx"))

    def accepted(self, score: Tensor) -> Tensor:
        """How much of each score, blurred by the kernel, lies above the threshold."""
        z = (self.threshold - score) / self.bandwidth
        exact: Tensor = torch.special.ndtr(-z)
        if self.tail == "exact":
            return exact
        far = torch.exp(-0.4920 * z.square() - 0.2887 * z.abs() - 1.1893)
        value = torch.where(z > 0, far, torch.where(z < 0, 1 - far, 0.5))
        return exact + (value - exact).detach()

    def cost(self, disparity: Tensor) -> Tensor:
        """Quadratic up to ``delta``, linear beyond."""
        size = disparity.abs()
        return torch.where(size < self.delta, size.square() / 2, self.delta * (size - self.delta / 2))


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothedRates(Objective):
    """(1 - strength) x mean loss + strength x the cost of unequal smoothed rates of acceptance.

    The unfairness term holds both ends of that line, so that risk + strength x unfairness is it.
    """

    kernel: Kernel
    cell: Tensor  # (n,): of each row of the data
    member: Tensor  # (terms, 2, cells): the set and what it is compared with

    def __call__(self, output: Tensor, batch: Batch) -> Terms:
        """Both terms; the batch's samples name rows of the data."""
        samples = batch.samples
        risk = (samples.weight * self.task.loss(output, samples.y)).mean(-1)
        inside = self.member.to(output.dtype)[:, :, self.cell[samples.cell]].movedim(-2, 0)  # (seeds, terms, 2, n)
        shares = disparity_weights(inside * samples.weight.unsqueeze(1))
        disparity = self.kernel.accepted(self.task.prediction(output)) @ shares.transpose(-2, -1)
        return Terms(risk, self.kernel.cost(disparity).sum(-1) - risk)


def disparity_weights(counts: Tensor) -> Tensor:
    """What each row adds to the rate of a set less that of a larger one: (..., 2, n) counts -> (..., n)."""
    first, second = (counts / counts.sum(-1, keepdim=True)).unbind(-2)
    return first - second


def kde_penalty(
    scores: Tensor | ArrayLike,
    sensitive_features: Table,
    *,
    y: ArrayLike | None = None,
    criterion: str = "statistical_parity",
    bandwidth: float = 0.1,
    threshold: float = 0.5,
    delta: float = 1.0,
    tail: Literal["exact", "approx"] = "exact",
    groups: Literal["all", "first"] = "all",
) -> Tensor:
    """The penalty of scores in [0, 1], with a gradient where the scores have one.

    >>> kde_penalty([0.2, 0.4, 0.6, 0.9], [0, 0, 1, 1], groups="first")
    tensor(0.0883, dtype=torch.float64)
    """
    score = scores if isinstance(scores, Tensor) else torch.as_tensor(np.asarray(scores, dtype=np.float64))
    if not bool(((score >= 0) & (score <= 1)).all()):
        raise DataError("scores must lie in [0, 1]; pass probabilities, not log-odds")
    kernel = Kernel(bandwidth, threshold, delta, tail)
    (name, column), *others = columns("sensitive_features", sensitive_features).items()
    if others:
        raise DataError(f"sensitive_features must be one column, got {1 + len(others)}")
    found = levels(name, column)
    label = None if y is None else np.asarray(y, dtype=np.int64)
    same_length(scores=score, sensitive_features=column, y=label)
    cells = cells_for(criterion, found)
    cell = cells.of(codes(name, column, found)[:, None], labels=label)
    member = members(cells, len(found), groups=groups).to(score)
    counts = member[..., torch.as_tensor(cell)]
    if bool((counts.sum(-1) == 0).any()):
        raise DataError(f"a group of sensitive_features is empty where {criterion} compares")
    return kernel.cost(kernel.accepted(score) @ disparity_weights(counts).T).sum(-1)


def cells_for(criterion: str, groups: Sequence[object]) -> Cells:
    """Cells, and each group compared with the rest, or the only two with each other."""
    check_known("criterion", criterion, CRITERIA)
    attribute = Attribute("sensitive_features", tuple(groups))
    return compiled(criterion_named(criterion), [attribute], classes=(0, 1), contrast="rest")


def members(cells: Cells, count: int, *, groups: str, everyone: bool = False) -> Tensor:
    """Which cells each disparity compares with which: (terms, 2, cells).

    ``everyone``: each group with all rows, whatever the criterion conditions on.
    """
    check_known("groups", groups, ("all", "first"))
    size = int(cells.table.max()) + 1
    terms = [(one.left, one.left + one.right) for one in cells.comparisons]
    if count == 2:  # both groups in one comparison
        terms = [(side, one.left + one.right) for one in cells.comparisons for side in (one.left, one.right)]
    if groups == "first":
        terms = terms[::count]
    if everyone:
        terms = [(side, tuple(range(size))) for side, _ in terms]
    member = torch.zeros(len(terms), 2, size)
    for term, sets in enumerate(terms):
        for side, inside in enumerate(sets):
            member[term, side, list(inside)] = 1.0
    return member
