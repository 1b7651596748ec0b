"""Certified lower bounds on the risk of all linear models whose outputs differ little between two
groups.

The outputs of a linear model are ``x @ w``, the intercept included. The Wasserstein distance
between the outputs of two groups is at least the difference of their means, ``|d @ w|`` with the
difference ``d`` of the groups' mean features. Under that bound the least risk is a convex problem.
Any point of its dual gives a bound that holds for *all* coefficients:

    risk(w) >= level - price * |d @ w|

The logistic loss of margin m is max over a in [0, 1] of entropy(a) - a m; the squared error of a
residual r is max over u of 2 u r - u^2. Numbers a or u whose weighted sum with the features is a
multiple of d give the bound. They come from the solution of the problem, corrected so that the sum
is exact. What rounding leaves of it is subtracted, for coefficients up to a million in units of
the features' standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from metrifair.support.arrays import Floats

BoundedLoss: TypeAlias = Literal["log_loss", "squared_error"]

_STEPS = 200  # of Newton's method; a few suffice unless classes are separable
_RIDGE = 1e-9  # of the mean curvature
_LEAST_RIDGE = 1e-300
_CORRECTIONS = 3  # each one of the rounding error of the last
_LARGEST = 1e6  # coefficients, in standard units, that bounds cover
_HALVINGS = 20  # of the range of gaps
_SHORTEST = 2.0**-40  # of a step
_TOLERANCE = 1e-12


class Certificate(NamedTuple):
    """A bound for all linear models: the risk is at least ``level - price * gap``."""

    level: float
    price: float

    def least_risk(self, gap: float) -> float:
        """The risk that every model with at most this gap has at least.

        >>> Certificate(0.5, 2.0).least_risk(0.1)
        0.3
        """
        return self.level - self.price * gap

    def least_gap(self, risk: float) -> float:
        """The gap that every model with at most this risk has at least.

        >>> Certificate(0.5, 2.0).least_gap(0.3), Certificate(0.5, 0.0).least_gap(0.3)
        (0.1, inf)
        """
        if self.price > 0:
            return max(0.0, (self.level - risk) / self.price)
        if self.level > risk:
            return float("inf")
        return 0.0


@dataclass(frozen=True)
class LinearRefutation:
    """What is known of linear models with a low risk and a small gap."""

    refuted: bool
    refuted_in_population: bool
    max_risk: float
    max_gap: float
    loss: BoundedLoss
    least_risk: float
    least_risk_in_population: float
    least_gap: float
    risk_without_limit: float
    comparison: str
    features: int
    rows: int
    confidence: float


class LinearProblem(NamedTuple):
    """Rows in standard units with a column of ones, outcomes, and weights that add up to 1."""

    x: Floats  # (n, p + 1)
    y: Floats  # (n,): -1 and 1 for the log loss, numbers for the squared error
    weight: Floats  # (n,)
    loss: BoundedLoss


def standardized(x: Floats, y: Floats, weight: Floats, loss: BoundedLoss) -> LinearProblem:
    """The same linear models on features in standard units; constant features are left out."""
    weight = weight / weight.sum()
    centered = x - weight @ x
    deviation = np.sqrt(weight @ centered**2)
    largest = np.abs(x).max(axis=0, initial=0.0)
    varies = deviation > _TOLERANCE * (1 + largest)
    columns = centered[:, varies] / deviation[varies]
    ones = np.ones(len(x))
    return LinearProblem(np.column_stack([ones, columns]), y, weight, loss)


class LinearContrast(NamedTuple):
    """Two groups: the shares of their rows, and the difference of their mean features."""

    left: Floats  # (n,), adding up to 1
    right: Floats  # (n,)
    difference: Floats  # (p + 1,)


def contrast(problem: LinearProblem, left: Floats, right: Floats) -> LinearContrast:
    """The contrast of two groups, from the weights of their rows."""
    left = left / left.sum()
    right = right / right.sum()
    shares = left - right
    difference = shares @ problem.x
    difference[0] = 0.0  # of the ones, but for rounding
    return LinearContrast(left, right, difference)


def free_solution(problem: LinearProblem) -> Floats:
    """The coefficients of the least risk without a limit."""
    return _solution(problem, np.zeros(problem.x.shape[1]), None)


def limited_solution(
    problem: LinearProblem, groups: LinearContrast, gap: float, free: Floats
) -> Floats:
    """The coefficients of the least risk with a difference of mean outputs of at most ``gap``.

    ``free`` are those without a limit.
    """
    excess = float(groups.difference @ free)
    if abs(excess) <= gap:
        return free
    nearest = np.copysign(gap, excess)
    squared = float(groups.difference @ groups.difference)
    size = (excess - nearest) / squared
    start = free - size * groups.difference
    return _solution(problem, start, groups.difference)


def linear_certificate(
    problem: LinearProblem, groups: LinearContrast, gap: float, free: Floats
) -> Certificate:
    """The bound that is best for models with a difference of mean outputs of ``gap``.

    >>> x, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0.0, 0.0, 1.0, 1.0])
    >>> problem = standardized(x, y, np.ones(4), "squared_error")
    >>> groups = contrast(problem, np.array([0, 0, 1, 1.0]), np.array([1, 1, 0, 0.0]))
    >>> bound = linear_certificate(problem, groups, 0.5, free_solution(problem)).least_risk(0.5)
    >>> round(bound, 6)  # half of the true slope leaves a quarter of the variance
    0.0625
    """
    if abs(float(groups.difference @ free)) <= gap:
        return _certificate(problem, np.zeros_like(groups.difference), free)
    solution = limited_solution(problem, groups, gap, free)
    return _certificate(problem, groups.difference, solution)


def sampling_error(
    problem: LinearProblem, groups: LinearContrast, gap: float, free: Floats
) -> float:
    """The standard error of the least risk under a limit, as a statistic of a sample.

    To first order, the solution does not change with the sample: the risk is a mean over rows, and
    the limit moves with the difference of the mean outputs, at its price.
    """
    solution = limited_solution(problem, groups, gap, free)
    outputs = problem.x @ solution
    losses = _losses(problem, outputs)
    mean = float(problem.weight @ losses)
    parts = problem.weight * (losses - mean)
    excess = float(groups.difference @ free)
    if abs(excess) > gap:
        price = _certificate(problem, groups.difference, solution).price
        left = _deviations(groups.left, outputs)
        right = _deviations(groups.right, outputs)
        shift = left - right
        parts += price * np.sign(excess) * shift
    return float(np.sqrt(parts @ parts))


def _deviations(share: Floats, outputs: Floats) -> Floats:
    """What each row adds to the error of a group's mean output."""
    mean = float(share @ outputs)
    return share * (outputs - mean)


def least_gap(
    problem: LinearProblem, groups: LinearContrast, highest: float, free: Floats
) -> float:
    """The gap that every linear model with at most the ``highest`` risk has at least: the best of
    the bounds at several gaps.
    """
    low = 0.0
    high = abs(float(groups.difference @ free))
    best = max(
        linear_certificate(problem, groups, gap, free).least_gap(highest) for gap in (low, high)
    )
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        certificate = linear_certificate(problem, groups, middle, free)
        best = max(best, certificate.least_gap(highest))
        if certificate.least_risk(middle) > highest:
            low = middle
        else:
            high = middle
    return best


def _solution(problem: LinearProblem, start: Floats, direction: Floats | None) -> Floats:
    """The coefficients of the least risk, by Newton's method; they keep ``direction @ w`` of the
    start.
    """
    w = start
    value = risk(problem, w)
    for _ in range(_STEPS):
        slope, curvature = _derivatives(problem, w)
        step = _newton_step(slope, curvature, direction)
        size = 1.0
        while size > _SHORTEST and risk(problem, w + size * step) > value:
            size /= 2
        proposed = w + size * step
        new_value = risk(problem, proposed)
        gain = value - new_value
        if not gain > _TOLERANCE * abs(value):
            break
        if np.abs(proposed).max() > _LARGEST:
            break
        w = proposed
        value = new_value
    return w


def _newton_step(slope: Floats, curvature: Floats, direction: Floats | None) -> Floats:
    system = _with_ridge(curvature)
    free = np.asarray(-np.linalg.solve(system, slope), dtype=np.float64)
    if direction is None:
        return free
    along = np.linalg.solve(system, direction)
    excess = float(direction @ free)
    per_size = float(direction @ along)
    size = excess / per_size
    return np.asarray(free - size * along)


def risk(problem: LinearProblem, w: Floats) -> float:
    """The mean loss of the outputs at some coefficients."""
    return float(problem.weight @ _losses(problem, problem.x @ w))


def _losses(problem: LinearProblem, outputs: Floats) -> Floats:
    if problem.loss == "log_loss":
        return np.logaddexp(0.0, -problem.y * outputs)
    return np.asarray((problem.y - outputs) ** 2)


def _derivatives(problem: LinearProblem, w: Floats) -> tuple[Floats, Floats]:
    dual, curvature = _dual(problem, w)
    slope = -_dual_sum(problem, dual)
    return slope, problem.x.T @ (curvature[:, None] * problem.x)


def _signs(problem: LinearProblem) -> Floats:
    """What a dual number of a row multiplies: the label, or 2."""
    if problem.loss == "log_loss":
        return problem.y
    return np.full(len(problem.y), 2.0)


def _dual(problem: LinearProblem, w: Floats) -> tuple[Floats, Floats]:
    """The dual number of each row at some coefficients, and the weighted second derivative of its
    loss.
    """
    outputs = problem.x @ w
    if problem.loss == "log_loss":
        margin = problem.y * outputs
        wrong = 0.5 * (1 - np.tanh(0.5 * margin))
        second = wrong * (1 - wrong)
        return wrong, problem.weight * second
    return problem.y - outputs, 2 * problem.weight


def _certificate(problem: LinearProblem, difference: Floats, w: Floats) -> Certificate:
    """The bound of the dual point at some coefficients."""
    dual, curvature = _dual(problem, w)
    system = _with_ridge(problem.x.T @ (curvature[:, None] * problem.x))
    price = 0.0
    squared = float(difference @ difference)
    if squared > 0:
        price = float(difference @ _dual_sum(problem, dual)) / squared
    for _ in range(_CORRECTIONS):
        rest = _dual_sum(problem, dual) - price * difference
        correction = problem.x @ np.linalg.solve(system, rest)
        dual = _corrected(problem, dual, correction)
    rest = _dual_sum(problem, dual) - price * difference
    slack = _LARGEST * float(np.abs(rest).sum())
    level = float(problem.weight @ _dual_terms(problem, dual))
    return Certificate(level - slack, abs(price))


def _dual_sum(problem: LinearProblem, dual: Floats) -> Floats:
    """The sum over rows that multiplies the coefficients in the bound."""
    return problem.x.T @ (problem.weight * dual * _signs(problem))


def _corrected(problem: LinearProblem, dual: Floats, correction: Floats) -> Floats:
    if problem.loss == "squared_error":
        return dual - correction
    moved = dual - dual * (1 - dual) * problem.y * correction
    return np.asarray(np.clip(moved, 0.0, 1.0))


def _dual_terms(problem: LinearProblem, dual: Floats) -> Floats:
    """What each row adds to the bound."""
    if problem.loss == "squared_error":
        return 2 * dual * problem.y - dual**2
    return _entropy(dual)


def _with_ridge(curvature: Floats) -> Floats:
    """A curvature that can be inverted, also if columns depend on each other."""
    count = len(curvature)
    ridge = _RIDGE * float(np.trace(curvature)) / count + _LEAST_RIDGE
    return curvature + ridge * np.eye(count)


def _entropy(share: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = share * np.log(share) + (1 - share) * np.log1p(-share)
    return np.where((share > 0) & (share < 1), -parts, 0.0)
