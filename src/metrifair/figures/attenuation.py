"""The second end of figures by group probabilities: divided by R2, the share of the gap that the
probabilities keep.

If score and probabilities are independent given the group (mostly: surnames), a weighted
distribution is a mixture of the groups' own. ``overlaps`` contain, for every two groups, the sum
over rows of the weight times the probabilities of both groups. They are the weights of this
mixture: among rows weighted by the first group's probability, so much belongs to members of the
second, if probabilities are calibrated.
"""

from __future__ import annotations

import numpy as np

from metrifair.figures.intervals import Interval
from metrifair.metrics.registry import METRICS, Integral
from metrifair.support.arrays import Floats

SMALLEST_R2 = 0.02
"""With a smaller R2, probabilities say too little about the group to divide by it."""

UNSTABLE_R2 = 0.05
"""With a smaller R2, its own sampling error matters."""


def overlaps_of_rows(probabilities: Floats, weight: Floats | None) -> Floats:
    """The overlaps of rows, (groups, groups), from their probabilities (rows, groups); rows without
    any are left out.

    >>> overlaps_of_rows(np.array([[0.5, 0.5], [np.nan, np.nan]]), np.array([2.0, 1.0]))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    known = ~np.isnan(probabilities[:, 0])
    inside = probabilities[known]
    weighted = inside
    if weight is not None:
        weighted = inside * weight[known, None]
    return np.asarray(weighted.T @ inside)


def r_squared(overlaps: Floats) -> Floats:
    """R2 = Var(p) / (q (1 - q)) of each group's probability p, whose mean is q; 0 for a group
    without rows.

    This is 1 - E[p (1 - p)] / (q (1 - q)), which is exactly 1 for probabilities of 0 and 1.

    >>> probabilities = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> r_squared(probabilities.T @ probabilities).round(12)
    array([0.36, 0.36])
    """
    shared = _without_diagonal(overlaps).sum(1)
    inside = overlaps.sum(1)
    outside = np.array([np.delete(inside, place).sum() for place in range(len(inside))])
    known = (inside > 0) & (outside > 0)
    spread = (
        np.divide(
            inside,
            overlaps.sum(),
            out=np.zeros_like(inside),
            where=known,
        )
        * outside
    )
    lost = np.divide(
        shared,
        spread,
        out=np.ones_like(inside),
        where=spread > 0,
    )
    return np.asarray(np.clip(1 - lost, 0.0, 1.0), dtype=np.float64)


def is_certain(overlaps: Floats) -> bool:
    """True if every row has one group: all probabilities are 0 or 1.

    >>> is_certain(np.diag([3.0, 4.0])), is_certain(np.array([[3.0, 0.1], [0.1, 4.0]]))
    (True, False)
    """
    return not _without_diagonal(overlaps).any()


def unmix(overlaps: Floats, left: int, right: int) -> Floats | None:
    """The sum of weighted distributions that is the difference of two groups; None if no such sum
    is determined.

    Its positive and negative coefficients have the same sum. With two groups, this sum is 1 / R2.

    >>> probabilities = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> (1 / unmix(probabilities.T @ probabilities, 0, 1)).round(12)
    array([ 0.36, -0.36])
    """
    contrast = np.zeros(len(overlaps))
    contrast[left] = 1.0
    contrast[right] = -1.0
    return _solve(_mixing(overlaps).T, contrast)


def unmixed_rates(rates: Floats, overlaps: Floats) -> Floats | None:
    """The rates of the groups, between 0 and 1, whose mixtures are the weighted rates; None if not
    determined.

    >>> probabilities = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> unmixed_rates(np.array([0.41, 0.59]), probabilities.T @ probabilities).round(12)
    array([0.25, 0.75])
    """
    solved = _solve(_mixing(overlaps), rates)
    if solved is None:
        return None
    return np.clip(solved, 0.0, 1.0)


def divide_rate(rate: float, mean: float, r2: float) -> float:
    """The rate of one of two groups, whose weighted rate differs from the mean of all rows by R2
    times as much.

    >>> divide_rate(0.375, 0.5, 0.25), divide_rate(0.1, 0.5, 0.25)
    (0.0, 0.0)
    """
    return float(np.clip(mean + (rate - mean) / r2, 0.0, 1.0))


def divide_distance(
    value: float,
    metric: str,
    r2: float,
    span: float,
) -> float:
    """A distance divided by R2, or by its square for squared distances; at most the largest
    distance of such scores.

    ``span`` is the largest less the smallest score.

    >>> divide_distance(0.06, "kolmogorov", 0.15, 1.0), divide_distance(0.06, "energy", 0.5, 1.0)
    (0.4, 0.24)
    >>> divide_distance(0.3, "kolmogorov", 0.15, 1.0)
    1.0
    """
    power = 1
    if METRICS[metric].squared:
        power = 2
    return max(value, min(value / r2**power, largest_distance(metric, span)))


def divide_interval(
    interval: Interval | None,
    metric: str,
    r2: float,
    span: float,
) -> Interval | None:
    """Both ends of an interval, divided as the distance."""
    if interval is None:
        return None
    low = divide_distance(
        interval.low,
        metric,
        r2,
        span,
    )
    return Interval(
        low,
        divide_distance(
            interval.high,
            metric,
            r2,
            span,
        ),
    )


def largest_distance(metric: str, span: float) -> float:
    """The largest distance between scores of this span.

    >>> [largest_distance(metric, 4.0) for metric in ("kolmogorov", "wasserstein", "energy", "lp",
    ...     "mmd")]
    [1.0, 4.0, 8.0, 2.0, 2.0]
    """
    facts = METRICS[metric]
    if not isinstance(facts.bracket, Integral):
        return facts.maximum
    integral = facts.bracket
    return float((integral.factor * integral.convex(np.ones(1))[0] * span) ** integral.power)


def _without_diagonal(overlaps: Floats) -> Floats:
    return np.where(np.eye(len(overlaps), dtype=np.bool_), 0.0, overlaps)


def _mixing(overlaps: Floats) -> Floats:
    """The share of each group among rows weighted by the probability of each group."""
    return np.asarray(overlaps / overlaps.sum(1, keepdims=True))


def _solve(matrix: Floats, vector: Floats) -> Floats | None:
    try:
        solution = np.linalg.solve(matrix, vector).astype(np.float64)
    except np.linalg.LinAlgError:
        return None
    if np.isfinite(solution).all():
        return solution
    return None
