"""Bounds of the mean of values between 0 and 1, for rows with weights or in clusters too.

By Chernoff's bound and the concavity of the logarithm, the weighted mean of independent values is
at least x with a probability of at most exp(-n KL(x, mean)), where n is the sum of the weights
divided by the largest one, and KL the divergence of two coins. Values of a cluster count as one,
with their total weight.
"""

from __future__ import annotations

import numpy as np

from metrifair.support.arrays import Floats

_HALVINGS = 60


def coin_divergence(
    mean: Floats,
    other: Floats,
) -> Floats:
    """The Kullback-Leibler divergence of a coin with one mean from a coin with another.

    >>> coin_divergence(np.array([0.5, 0.0]), np.array([0.25, 0.5])).round(4)
    array([0.1438, 0.6931])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(mean / other)
        other_ratio = np.log((1 - mean) / (1 - other))
        hits = np.where(mean > 0, mean * ratio, 0.0)
        misses = np.where(mean < 1, (1 - mean) * other_ratio, 0.0)
    return np.asarray(hits + misses)


def lower_mean(
    means: Floats,
    sizes: Floats,
    log_levels: Floats,
) -> Floats:
    """Lower bounds of means, each at its own level.

    >>> lower_mean(np.array([0.5]), np.array([100.0]), np.log([0.05])).round(4)
    array([0.3794])
    """
    low = np.zeros_like(means)
    high = means.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        excluded = sizes * coin_divergence(means, middle) > -log_levels
        low = np.where(
            excluded,
            middle,
            low,
        )
        high = np.where(
            excluded,
            high,
            middle,
        )
    return low


def upper_mean(
    means: Floats,
    sizes: Floats,
    log_levels: Floats,
) -> Floats:
    """Upper bounds of means, each at its own level.

    >>> upper_mean(np.array([0.5]), np.array([100.0]), np.log([0.05])).round(4)
    array([0.6206])
    """
    return 1 - lower_mean(1 - means, sizes, log_levels)


def log_tail_of_difference(
    means: Floats, sizes: Floats, other_means: Floats, other_sizes: Floats
) -> Floats:
    """The logarithm of a p-value of the hypothesis that the first mean is not above the second.

    Each mean must be on the other side of a common value, and half of the level is spent on either.

    >>> np.exp(log_tail_of_difference(*np.array([[0.5], [100.0], [0.3], [400.0]]))).round(4)
    array([0.0459])
    """
    low = np.minimum(other_means, means)
    high = means.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        first = sizes * coin_divergence(means, middle)
        second = other_sizes * coin_divergence(other_means, middle)
        low = np.where(first > second, middle, low)
        high = np.where(first > second, high, middle)
    exponents = sizes * coin_divergence(means, high)
    return np.where(means > other_means, np.minimum(0.0, np.log(2) - exponents), 0.0)
