"""Risk + strength x unfairness of rows that are spread over processes, which add up counts of scores on one grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from metrifair.boosting.objective import PLACES, Expansion, loss_terms
from metrifair.errors import DataError
from metrifair.metrics.pair import Pair
from metrifair.metrics.registry import trained
from metrifair.problem.cells import Dependence
from metrifair.support.arrays import Floats
from metrifair.training.losses import BINARY, scores
from metrifair.training.objective import Objective


class Together(NamedTuple):
    """How processes put their numbers together; each gets the same."""

    sum: Callable[[Floats], Floats]
    maximum: Callable[[Floats], Floats]


def xgboost_together() -> Together:
    """By the all-reduce of the XGBoost training that is under way in this process."""
    from xgboost import collective  # noqa: PLC0415

    return Together(
        lambda own: collective.allreduce(own, collective.Op.SUM).reshape(own.shape),
        lambda own: collective.allreduce(own, collective.Op.MAX).reshape(own.shape),
    )


class LocalRows(NamedTuple):
    """The rows of one process."""

    targets: Floats  # (n,): 1 at the later of two classes, or numbers
    cell: NDArray[np.int64]  # (n,)
    weight: Floats  # (n,): what each counts in the comparisons
    in_risk: Floats  # (n,): and in the risk


@dataclass(frozen=True, eq=False)
class SummedRisk:
    """Risk and unfairness of all rows, and the slopes of those that are here; stands in for a ``PenalizedRisk``.

    Each process counts its scores into a grid (cells x places), one sum over processes makes these the distributions of
    all rows, and each reads the slopes of its own rows off them. Scores are moved to the nearest of the grid's places,
    as those of many rows are on one machine; the result is the exact one of the moved scores.

    >>> from metrifair.problem.cells import Comparison
    >>> alone = Together(lambda own: own, lambda own: own)
    >>> rows = LocalRows(np.array([0.0, 1, 0, 1]), np.array([0, 0, 1, 1]), np.ones(4), np.ones(4))
    >>> risk = SummedRisk(Objective(BINARY, (Comparison((0,), (1,)),)), rows, alone, total_weight=4.0)
    >>> found = risk.at(np.array([-1.0, 0, 0, 1]))
    >>> print(f"{found.risk:.3f} {found.unfairness:.3f}", found.unfairness_slope.round(2))
    0.503 0.231 [-0.39 -1.    1.    0.39]
    """

    objective: Objective
    rows: LocalRows
    together: Together
    total_weight: float  # of all rows everywhere
    center: float = 0.0
    spread: float = 1.0

    @cached_property
    def _targets(self) -> Tensor:
        return torch.as_tensor((self.rows.targets - self.center) / self.spread)

    @cached_property
    def _sides(self) -> list[list[NDArray[np.int64]]]:
        """The rows here on either side of each comparison."""
        return [
            [np.flatnonzero(np.isin(self.rows.cell, cells)) for cells in (one.left, one.right)]
            for one in self.objective.comparisons
        ]

    @cached_property
    def _cells(self) -> int:
        return 1 + max(max(one.left + one.right) for one in self.objective.comparisons)

    def at(self, output: ArrayLike) -> Expansion:
        """Both terms of all rows, and their slopes by the outputs (n,) of the rows here."""
        moving = self._standard(output).requires_grad_()
        score = self._score(moving)
        standard, in_risk = moving.detach(), self.rows.in_risk
        risk, unfairness, slope = self._terms(standard, score.detach().numpy())
        (by_output,) = torch.autograd.grad(score, moving, torch.as_tensor(slope))
        loss = loss_terms(self.objective.task, standard, self._targets, self.spread)
        return Expansion(
            risk,
            unfairness,
            loss.slope.numpy() * in_risk,
            loss.curvature.numpy() * in_risk,
            by_output.numpy() * (self.total_weight * loss.unit),
        )

    def value(self, output: ArrayLike, strength: float) -> float:
        """Risk + strength x unfairness of all rows."""
        standard = self._standard(output)
        risk, unfairness, _ = self._terms(standard, self._score(standard).numpy())
        return risk + strength * unfairness

    def _standard(self, output: ArrayLike) -> Tensor:
        return (torch.as_tensor(np.asarray(output, dtype=np.float64).reshape(-1)) - self.center) / self.spread

    def _score(self, standard: Tensor) -> Tensor:
        objective = self.objective
        return scores(objective.criterion, objective.task, standard, self._targets, penalize=objective.penalize)

    def _terms(self, standard: Tensor, score: Floats) -> tuple[float, float, Floats]:
        """The risk, the unfairness, and its slope by the score of each row here."""
        own_risk = float(self.rows.in_risk @ self.objective.task.loss(standard, self._targets).numpy())
        # Probabilities fill their range. Other scores may have one far out, which would leave few places to most.
        bent = self.objective.task.name != BINARY.name or self.objective.penalize != "prediction"
        bent = bent or self.objective.criterion.score != "prediction"
        line = score / (1 + np.abs(score)) if bent else score
        ends = [-line.min(), line.max()] if len(line) else [-np.inf, -np.inf]
        low, high = self.together.maximum(np.array(ends)) * [-1, 1]
        width = (high - low) / (PLACES - 1) or 1.0
        place = np.minimum(((line - low) / width + 0.5).astype(np.int64), PLACES - 1)
        points = low + width * np.arange(PLACES)
        points = points / (1 - np.abs(points)) if bent else points
        cells = self._cells
        # Rows without weight, and of groups that nobody is compared with, lie beyond.
        on_grid = np.minimum(self.rows.cell, cells) * PLACES + place
        flat = np.bincount(on_grid, self.rows.weight, (cells + 1) * PLACES)[: cells * PLACES]
        summed = self.together.sum(np.append(flat, own_risk))
        grid, risk = summed[:-1].reshape(cells, PLACES), float(summed[-1]) / self.total_weight
        value, slope = 0.0, np.zeros(len(score))
        for one, own, counts in zip(self.objective.comparisons, self._sides, self.objective.weights, strict=True):
            sides = grid[list(one.left)].sum(0), grid[list(one.right)].sum(0)
            distance, *tables = self._distance(points, *sides)
            value += counts * distance
            for mine, table in zip(own, tables, strict=True):
                slope[mine] += (counts * table)[place[mine]] * self.rows.weight[mine]
        return risk, value, slope

    def _distance(self, points: Floats, left: Floats, right: Floats) -> tuple[float, Floats, Floats]:
        """The distance between two distributions on the grid, and its slope by one unit of either at each place."""
        if self.objective.metric == "energy":
            n, m = left.sum(), right.sum()
            fresh = self.objective.estimate == "population"
            a, b = (2 * np.cumsum(side) - side - total for side, total in ((left, n), (right, m)))
            across, within = 2 / (n * m), [2 / (total * (total - fresh)) for total in (n, m)]
            tables = across * b - within[0] * a, across * a - within[1] * b
            return float((left * tables[0] + right * tables[1]) @ points), *tables
        mass = np.concatenate([left, right])
        there = np.flatnonzero(mass)
        moving = torch.as_tensor(np.concatenate([points, points])[there]).requires_grad_()
        sizes = int((there < PLACES).sum()), int((there >= PLACES).sum())
        pair = Pair(moving, (sizes[0],), (sizes[1],), torch.as_tensor(mass[there]))
        found = trained(self.objective.metric, estimate="batch")(pair)
        table = np.zeros(2 * PLACES)
        table[there] = torch.autograd.grad(found, moving)[0].numpy() / mass[there]
        return found.item(), table[:PLACES], table[PLACES:]


def check_summable(objective: Objective, *, weighted: bool) -> None:
    """Raise a DataError where counts that are added up do not tell what was asked for."""
    dependent = next((one.attribute for one in objective.comparisons if isinstance(one, Dependence)), None)
    if dependent is not None:
        raise DataError(
            f"how much scores depend on {dependent} is not counted on a cluster; cut numbers into groups and use "
            "contrast='pairs' or 'rest', or pass arrays instead of Dask collections"
        )
    if callable(objective.metric):
        raise DataError("metric must be one of the names on a cluster, where distributions are counted on a grid")
    if objective.estimate == "population" and (weighted or objective.metric != "energy"):
        raise DataError(
            "estimate='population' on a cluster is for metric='energy' without sample_weight; leave estimate='rows'"
        )
