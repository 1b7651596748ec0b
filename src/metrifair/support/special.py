"""Quantiles of the normal, Student's and the beta distribution, as intervals need them, without
SciPy.

The beta distribution is taken as that of a log-odds: its density there is analytic and log-concave,
so that a substitution with doubly exponential decay integrates either tail to rounding with a few
dozen nodes, and Newton's method on the logarithm of the tail converges from any start. It needs no
gamma function, and works for large counts.
"""

from __future__ import annotations

from math import copysign, erfc, inf, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from metrifair.support.arrays import Floats

_STEP = 1 / 32
_PLACES = np.arange(-3.8, 5.0, _STEP)
_NODES = np.exp(_PLACES - np.exp(-_PLACES))  # of integrals from 0 upwards
_NODE_WEIGHTS = _NODES * (1 + np.exp(-_PLACES)) * _STEP
_MOST_STEPS = 100
_FARTHEST = 700.0  # from the mode, where densities are 0 beside those at the end


def normal_probability(x: float) -> float:
    """The probability that a standard normal variable is at most x; ``normal_cdf`` is the same for
    arrays.

    >>> round(normal_probability(-1.0), 4)
    0.1587
    """
    return erfc(-x / sqrt(2)) / 2


_normal_probabilities = np.frompyfunc(normal_probability, 1, 1)


def normal_cdf(x: ArrayLike) -> Floats:
    """The distribution function of the standard normal distribution.

    >>> normal_cdf([0.0, -1.0]).round(4)
    array([0.5   , 0.1587])
    """
    return np.asarray(_normal_probabilities(np.asarray(x, np.float64)), np.float64)


def normal_quantile(p: float) -> float:
    """The quantile of the standard normal distribution.

    >>> round(normal_quantile(0.975), 4), normal_quantile(0.0)
    (1.96, -inf)
    """
    if 0 < p < 1:
        return NormalDist().inv_cdf(p)
    return copysign(inf, p - 0.5)


def student_quantile(freedom: float, p: float) -> float:
    """The quantile of Student's distribution; ``student_quantiles`` is the same for arrays.

    >>> round(student_quantile(3.0, 0.975), 4)
    3.1824
    """
    return float(student_quantiles([freedom], p)[0])


def student_quantiles(freedom: ArrayLike, p: float) -> Floats:
    """The quantiles of Student's distributions: their squares are odds of beta distributions, times
    the freedom.

    >>> student_quantiles([3.0, 30.0], 0.975).round(4)
    array([3.1824, 2.0423])
    """
    rest = np.asarray(freedom, np.float64) / 2
    if p in (0.0, 0.5, 1.0):
        return np.full_like(rest, 0.0 if p == 0.5 else copysign(inf, p - 0.5))
    half = np.full_like(rest, 0.5)
    outside = 2 * min(p, 1 - p)
    normal = abs(normal_quantile(p))
    near = normal + (normal**3 + normal) / (8 * rest)  # Cornish and Fisher
    if outside > 0.5:
        log_square = _log_odds(half, rest, 1 - outside)
    else:
        log_square = -_log_odds(rest, half, outside, start=-2 * np.log(near))
    return np.copysign(np.exp(log_square / 2), p - 0.5)


def beta_quantile(a: ArrayLike, b: ArrayLike, p: float) -> Floats:
    """The quantiles of beta distributions, whose parameters are at least 0.5, at a share of at
    least 1e-100.

    >>> beta_quantile([0.5, 10.5], [2.5, 90.5], 0.975).round(4)
    array([0.6668, 0.1701])
    """
    first, second = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    quantiles: Floats = first / (first + second * np.exp(-_log_odds(first, second, p)))
    return quantiles


def _log_odds(a: Floats, b: Floats, p: float, start: Floats | None = None) -> Floats:
    """The quantile of the log-odds, less the log-odds of the mean a / (a + b), which is the mode of
    their density.

    Newton's method begins at ``start``, by default at the quantile of a normal distribution.
    """
    if p > 0.5:
        return -_log_odds(b, a, 1 - p)
    deviation = 1 / np.sqrt(a / (a + b) * b)
    mode = np.zeros_like(deviation)
    total = np.log(_tail(a, b, mode)[1] + _tail(b, a, mode)[1])
    if start is None:
        start = normal_quantile(p) * deviation
    quantile = start
    for _ in range(_MOST_STEPS):
        height, area = _tail(a, b, quantile)
        step = (height + np.log(area) - total - np.log(p)) * area
        quantile = quantile - step
        if (np.abs(step) <= 1e-8 * deviation).all():  # the next one would be its square
            break
    return quantile


def _tail(a: Floats, b: Floats, end: Floats) -> tuple[Floats, Floats]:
    """The logarithm of the density at ``end``, where it is 0 at the mode, and the area left of
    it over that density.
    """
    mean = a / (a + b)
    complement = b / (a + b)

    def log_density(place: Floats) -> Floats:
        # Written about the mode: logarithms of large counts would cancel.
        return -a[..., None] * np.log1p(complement[..., None] * np.expm1(-place)) - b[
            ..., None
        ] * np.log1p(mean[..., None] * np.expm1(place))

    slope = a * complement * -np.expm1(end) / (1 + mean * np.expm1(end))
    scale = 1 / (np.maximum(slope, 0.0) + np.sqrt(a * complement))
    height = log_density(end[..., None])
    inner = log_density(np.maximum(end[..., None] - scale[..., None] * _NODES, -_FARTHEST))
    return height[..., 0], scale * (np.exp(inner - height) @ _NODE_WEIGHTS)
