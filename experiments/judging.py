"""Scores in, figures out; and the areas under many of them, as published and exact."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.rows import Row
from metrifair.metrics.distances import kolmogorov_distance
from metrifair.results import Point, area

Floats = NDArray[np.float64]


class Figures(NamedTuple):
    """Of each of several models, (models,)."""

    accuracy: Floats
    label_gap: Floats
    kolmogorov: Floats
    parity_gap: Floats


def judged(
    score: Tensor, y: NDArray[np.float64], a: NDArray[np.int64], *, classify: bool, among_positives: bool = False
) -> Figures:
    """Figures of scores (models, n); a score of at least 0.5 is a positive label.

    >>> score = torch.tensor([[0.2, 0.8, 0.6, 0.9]], dtype=torch.float64)
    >>> judged(score, np.array([0.0, 1, 1, 1]), np.array([0, 0, 1, 1]), classify=True)
    Figures(accuracy=array([1.]), label_gap=array([0.5]), kolmogorov=array([0.5]), parity_gap=array([0.5]))
    """
    target, group = torch.as_tensor(y), torch.as_tensor(a)
    kept = (target == 1) if among_positives else torch.ones(len(target), dtype=torch.bool)
    left, right = (score[:, kept & (group == code)] for code in (0, 1))
    kolmogorov = kolmogorov_distance(left, right).numpy()
    if not classify:
        error = (score - target).square().mean(1) / target.var(correction=0)
        missing = np.full(len(score), np.nan)
        return Figures((1 - error).numpy(), missing, kolmogorov, missing)
    label = score >= 0.5
    return Figures(
        (label == (target == 1)).double().mean(1).numpy(),
        _gap(label[:, kept], group[kept]),
        kolmogorov,
        _gap(label, group),
    )


def _gap(label: Tensor, group: Tensor) -> Floats:
    rates = [label[:, group == code].double().mean(1) for code in (0, 1)]
    return (rates[0] - rates[1]).abs().numpy()


def trapezoid(unfairness: Sequence[float], accuracy: Sequence[float], *, anchor_last: bool = False) -> float:
    """The published area: through all points in order of unfairness, from (lowest, 0) to (1, highest accuracy).

    A dominated point lowers it. Negative R2 counts as 0. The published regression sorted the anchor among the points
    by an unstable sort; ``anchor_last`` puts it behind all that tie with it, the worst that can happen.

    >>> trapezoid([0.5, 0.0], [0.9, 0.5])      # 0.5 x 0.7 + 0.5 x 0.9
    0.8
    """
    u, r = np.asarray(unfairness, dtype=np.float64), np.maximum(accuracy, 0.0)
    order = np.argsort(u, kind="stable")
    u, r = u[order], r[order]
    place = int((u == u[0]).sum()) if anchor_last else 0
    u, r = np.insert(u, place, u[0]), np.insert(r, place, 0.0)
    return float(np.trapezoid([*r, r.max()], [*u, 1.0]))


def exact(rows: Iterable[Row], *, on: str, constant: float = 0.0) -> float:
    """The share of the unit box that the rows dominate, beside a constant model of this accuracy."""
    points = [Point(row.strength, row.seed, row.accuracy, row.gap(on), failed=row.failed) for row in rows]
    return area([*points, Point(inf, 0, constant, 0.0)])


def sampling_floor(left: int, right: int) -> float:
    """Mean Kolmogorov distance of two samples of one distribution, by the limit law of Kolmogorov and Smirnov.

    Below it a test set cannot tell groups apart, whatever the model.

    >>> round(sampling_floor(41, 431), 3)
    0.142
    """
    mean = np.sqrt(np.pi / 2) * np.log(2)  # of the limit of sqrt(nm / (n + m)) x distance
    return float(mean * np.sqrt((left + right) / (left * right)))
