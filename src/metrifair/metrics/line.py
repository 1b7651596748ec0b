"""Distances between two distributions on the line, all computed from one sort of the pooled scores.

With F0, F1 the (weighted) empirical distribution functions just after each pooled score and d the
gaps between consecutive scores, every distance here is a sum or a maximum over the gaps.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from metrifair.errors import DataError
from metrifair.metrics.namespaces import Array, is_tensor, namespace_for
from metrifair.metrics.pair import (
    Bound,
    Pair,
    Ties,
    WitnessFunction,
    ascending_samples,
    block_weights,
    block_weights_in_order,
    closes_tie,
    running_sums,
)
from metrifair.support.arrays import Floats, sums_upto

ArrayFunction: TypeAlias = Callable[[Array], Array]


class Merged(NamedTuple):
    """Both samples in ascending order, and their distribution functions just after each score."""

    points: Array  # (..., n), differentiable
    left: Array  # (..., n)
    right: Array  # (..., n); or a single 0, if ``left`` is the difference of both
    ties: Ties | None = None  # None if it is known that no two scores are equal

    @property
    def gaps(self) -> Array:
        """Lengths of the intervals between consecutive scores."""
        return self.points[..., 1:] - self.points[..., :-1]

    @property
    def difference(self) -> Array:
        """F0 - F1 just after each score."""
        if self.right.ndim:
            return self.left - self.right
        return self.left


def merged(pair: Pair) -> Merged:
    """One sort of both samples: all that a distance on the line needs."""
    z = pair.values
    xp = namespace_for(pair.values)
    with xp.no_grad():
        points, order, ties = ascending_samples(pair)
        cumulative = running_sums(block_weights_in_order(pair, pair.samples, order))
        below = xp.astype(cumulative / cumulative[..., -1:], z.dtype)
    if is_tensor(z):  # sorted scores are constants
        points = xp.gather(z, order)
    return Merged(
        points,
        below[..., 0, :],
        below[..., 1, :],
        ties,
    )


def kolmogorov(pooled: Merged) -> Array:
    """Largest difference of the distribution functions."""
    height = abs(pooled.difference)
    return namespace_for(pooled.points).amax(
        height if pooled.ties is None else height * closes_tie(pooled.points), -1
    )


def cramer(pooled: Merged) -> Array:
    """Integral of the squared difference of the distribution functions."""
    return _integral(
        pooled,
        pooled.difference,
        lambda gap: gap**2,
        lambda gap: 2 * gap,
    )


def wasserstein(pooled: Merged) -> Array:
    """Integral of the absolute difference of the distribution functions."""
    return _integral(
        pooled,
        pooled.difference,
        abs,
        namespace_for(pooled.points).sign,
    )


def lp(pooled: Merged, p: float = 2.0) -> Array:
    """L^p norm of the difference of the distribution functions."""
    difference = pooled.difference
    xp = namespace_for(pooled.points)
    largest = xp.amax(abs(difference) * closes_tie(pooled.points), -1, keepdims=True)
    # Relative to the largest difference: small ones to a high power would vanish. Within ties there
    # may be larger ones.
    share = difference / xp.where(largest > 0, largest, 1.0)
    height = lambda gap: xp.at_most(abs(gap), 1.0) ** p  # noqa: E731
    power = _integral(
        pooled,
        share,
        height,
        lambda gap: p * abs(gap) ** (p - 1) * xp.sign(gap),
    )
    # The root has no derivative at 0; the gradient of a distance of 0 is 0.
    positive = power != 0
    return xp.where(positive, power, 1.0) ** (1.0 / p) * positive * largest[..., 0]


def _integral(
    pooled: Merged,
    gap: Array,
    function: ArrayFunction,
    slope: ArrayFunction,
) -> Array:
    """Integral of a function of the ``gap`` of both distribution functions; ``slope`` is its
    derivative.

    Terms between equal scores do not affect the value, but distribute the derivative among them.
    There the function is replaced by its chord across all of the equal scores: the part of each
    then depends on its own weight, not on the order in which equal ones were sorted.
    """
    height = function(gap)
    xp = namespace_for(pooled.points)
    if pooled.ties is not None and xp.is_differentiated(pooled.points):
        ties = pooled.ties
        place = xp.arange(gap.shape[-1]) if ties.tied is None else ties.tied
        first, last, place = (
            part.expand(*gap.shape[:-1], -1) for part in (ties.first, ties.last, place)
        )
        # Before the lowest score of all the gap is 0, and so is the function.
        before, bottom = (xp.gather(xp.pad(rows, 1, 0), first) for rows in (gap, height))
        after = xp.gather(gap, last)
        top = xp.gather(height, last)
        level = abs(after - before) <= _rounding(gap)
        flat = slope(xp.where(abs(after) <= _rounding(gap), 0.0, after))
        chord = xp.where(level, flat, (top - bottom) / xp.where(level, 1.0, after - before))
        height = height.scatter(-1, place, bottom + chord * (xp.gather(gap, place) - before))
    return (height[..., :-1] * pooled.gaps).sum(-1)


def _rounding(shares: Array) -> float:
    """Largest rounding error of sums of shares, which may be added up in any order."""
    if shares.dtype.itemsize == 8:
        return 1e-12
    return 1e-6


def check_exponent(p: float) -> None:
    """Raise a DataError unless L^p is a norm that is an integral."""
    if not 1 <= p < float("inf"):
        raise DataError(
            f"p must be a number from 1 upwards, got {p!r}; for p = infinity use "
            "kolmogorov_distance"
        )


def atoms_variation(pooled: Merged) -> Array:
    """Half the sum of the absolute differences of the probabilities of the distinct scores."""
    closes = closes_tie(pooled.points)
    xp = namespace_for(pooled.points)
    place = xp.arange(1, closes.shape[-1] + 1)
    # Where the previous distinct score closed: 0 means "before all scores".
    previous = xp.pad(xp.cummax(place * closes), 1, 0)[..., :-1]

    def probabilities(below: Array) -> Array:
        # One row of points may serve many rows of distribution functions.
        return (
            below - xp.gather(xp.pad(below, 1, 0), xp.broadcast_to(previous, below.shape))
        ) * closes

    if pooled.right.ndim == 0:
        return abs(probabilities(pooled.left)).sum(-1) / 2
    return share_variation(probabilities(pooled.left), probabilities(pooled.right))


def binned_variation(pooled: Merged, bins: int) -> Array:
    """Total variation after cutting the scores at the quantiles of the even mixture of both
    samples.
    """
    xp = namespace_for(pooled.points)
    place = xp.pad(
        _bin_edges(pooled, bins),
        0,
        1,
        pooled.points.shape[-1] - 1,
    )
    left, right = (
        _steps(xp.pad(xp.gather(below, place), 1, 0)) for below in (pooled.left, pooled.right)
    )
    return share_variation(left, right)


def share_variation(left: Array, right: Array) -> Array:
    """Half the sum of the absolute differences of shares, (..., k).

    The shares add up to 2 except for rounding. Relative to their own sum, disjoint samples differ
    by exactly 1.
    """
    return abs(left - right).sum(-1) / (left + right).sum(-1)


def _steps(rows: Array) -> Array:
    """From each entry to the next."""
    return rows[..., 1:] - rows[..., :-1]


def _bin_edges(pooled: Merged, bins: int) -> Array:
    """Positions among the points, (..., bins - 1), of the last score of each bin but the last."""
    mixture = (pooled.left + pooled.right) / 2
    xp = namespace_for(pooled.points)
    levels = xp.astype(xp.arange(1, bins), mixture.dtype) / bins
    place = xp.searchsorted(
        mixture, xp.broadcast_to(levels, (*mixture.shape[:-1], bins - 1)) - 1e-6
    )
    points = xp.detach(pooled.points)
    return xp.searchsorted(points, xp.gather(points, place), right=True) - 1


def _smoothed(
    value: Array,
    pair: Pair,
    thresholds: Array,
    signs: Array,
) -> Array:
    """``value`` with the gradient of ``sum of signs x (F0 - F1)(thresholds)`` after smoothing both
    functions.

    A step function of the scores has derivative 0 almost everywhere. For training, each indicator
    1{score <= t} has the slope of a logistic curve with the width of a kernel density estimate. For
    tensors only: arrays have no gradient.
    """
    z = pair.values
    xp = namespace_for(pair.values)
    with xp.no_grad():
        width = _kernel_width(pair)[..., None, :]
        weights = block_weights(pair, pair.samples)
        share = xp.astype(weights / weights.sum(-1, keepdims=True), z.dtype)
        signed = share[..., :1, :] - share[..., 1:, :]
    below = ((thresholds[..., None] - z[..., None, :]) / width).sigmoid()  # (..., thresholds, n)
    surrogate = (signs[..., None] * signed * below).sum((-2, -1))
    return value + (surrogate - surrogate.detach())  # in this order, the value is exact


def _kernel_width(pair: Pair) -> Array:
    """Width of a kernel density estimate of the pooled scores, (..., 1); those without weight
    do not count.
    """
    z = pair.values
    xp = namespace_for(pair.values)
    if pair.weights is None:
        width = z.std(-1, keepdim=True, correction=0) * z.shape[-1] ** -0.2
    else:
        counts = xp.astype(pair.weights > 0, z.dtype)
        count = counts.sum(-1, keepdims=True)
        centered = z - (counts * z).sum(-1, keepdims=True) / count
        width = xp.sqrt((counts * centered**2).sum(-1, keepdims=True) / count) * count**-0.2
    return xp.where(width > 0, width, 1.0)


def kolmogorov_between(pair: Pair) -> Array:
    """Kolmogorov distance that can be trained on."""
    pooled = merged(pair)
    xp = namespace_for(pair.values)
    if not xp.is_differentiated(pair.values):
        return kolmogorov(pooled)
    gap = pooled.difference * closes_tie(pooled.points)
    value = xp.amax(abs(gap), -1)
    # The lowest of equally large gaps, up to rounding.
    place = (abs(gap) >= value[..., None] - _rounding(gap)).byte().argmax(-1, keepdim=True)
    return _smoothed(
        value, pair, xp.gather(pooled.points.detach(), place), xp.sign(xp.gather(gap, place))
    )


def total_variation_between(pair: Pair, bins: int | None = None) -> Array:
    """Total variation distance; with ``bins`` it can be trained on."""
    pooled = merged(pair)
    xp = namespace_for(pair.values)
    if bins is None:
        return atoms_variation(pooled)
    if not xp.is_differentiated(pair.values):
        return binned_variation(pooled, bins)
    place = _bin_edges(pooled, bins)
    jumps = xp.sign(_steps(xp.pad(xp.gather(pooled.difference, place), 1, 1)))  # one per bin
    signs = (jumps[..., :-1] - jumps[..., 1:]) / 2
    return _smoothed(
        binned_variation(pooled, bins), pair, xp.gather(pooled.points.detach(), place), signs
    )


def step_utility(pooled: Merged) -> WitnessFunction:
    """1 up to the score at which the distribution functions differ most, 0 above it."""
    points, difference = _distinct(pooled)
    height = np.abs(difference)
    # The lowest of equally large ones, up to rounding.
    threshold = points[(height >= height.max() - _rounding(height)).argmax()]
    return lambda score: (score <= threshold).astype(np.float64)


def atoms_utility(pooled: Merged) -> WitnessFunction:
    """1/2 at scores that the left sample has more of, -1/2 at those of the right one, 0 at all
    others.
    """
    points, difference = _distinct(pooled)
    heights = np.sign(np.diff(difference, prepend=0.0)) / 2

    def utility(score: Floats) -> Floats:
        place = np.minimum(np.searchsorted(points, score), len(points) - 1)
        return np.where(points[place] == score, heights[place], 0.0)

    return utility


def slope_utility(pooled: Merged, p: float = 2.0, scale: float = 1.0) -> WitnessFunction:
    """Linear between scores, its slope of norm ``scale`` in L^q, 1/p + 1/q = 1.

    It falls where F0 > F1: the left sample has lower scores there, and so a higher mean utility.
    """
    points, difference = _distinct(pooled)
    if len(points) == 1:
        return np.zeros_like
    norm = float(lp(pooled, p))
    slopes = np.zeros(len(points) - 1)
    if norm > 0:
        slopes = -scale * np.sign(difference[:-1]) * (np.abs(difference[:-1]) / norm) ** (p - 1)
    heights = sums_upto(slopes * np.diff(points))
    return lambda score: np.interp(score, points, heights)


def _distinct(pooled: Merged) -> tuple[Floats, Floats]:
    """The distinct scores and F0 - F1 at each."""
    last = closes_tie(pooled.points)
    return pooled.points[last], pooled.difference[last]


def norm_bound(p: float, *, factor: float = 1.0, power: int = 1) -> Bound:
    """The upper bound of ``factor`` times the L^p norm of F0 - F1, to the ``power``.

    The true norm exceeds the observed one by at most that of the constant radius on the interval of
    all scores. For the largest difference (p = infinity), that is the radius itself, for any
    interval.
    """

    def bound(value: float, radius: float, width: float | None) -> float | None:
        if width is None and p < inf:
            return None
        maximum = factor
        if not (width is None or p == inf):
            maximum = factor * float(width) ** (power / p)
        return min(
            maximum,
            float((max(0.0, value) ** (1 / power) + radius * maximum ** (1 / power)) ** power),
        )

    return bound
