"""Distances between two distributions on the line, all read off one sort of the pooled scores.

With F0, F1 the (weighted) empirical distribution functions just after each pooled score and d the
gaps between consecutive scores, every distance here is a sum or a maximum over the gaps.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from metrifair.errors import DataError
from metrifair.metrics.pair import (
    Bound,
    Pair,
    Ties,
    Utility,
    ascending,
    block_weights,
    block_weights_in_order,
    closes_tie,
    running_sums,
)
from metrifair.support.arrays import Floats

Curve: TypeAlias = Callable[[Tensor], Tensor]


class Merged(NamedTuple):
    """Both samples in ascending order, and their distribution functions just after each score."""

    points: Tensor  # (..., n), differentiable
    left: Tensor  # (..., n)
    right: Tensor  # (..., n)
    ties: Ties | None = None  # None where it is known that no two scores are equal

    @property
    def gaps(self) -> Tensor:
        """Lengths of the intervals between consecutive scores."""
        return self.points[..., 1:] - self.points[..., :-1]

    @property
    def difference(self) -> Tensor:
        """F0 - F1 just after each score."""
        return self.left - self.right


def merged(pair: Pair) -> Merged:
    """One sort of both samples: all that a distance on the line needs."""
    z = pair.values
    with torch.no_grad():
        _, order, ties = ascending(z)
        cumulative = running_sums(block_weights_in_order(pair, pair.samples, order))
        left, right = (cumulative / cumulative[..., -1:]).to(z.dtype).unbind(-2)
    return Merged(z.gather(-1, order), left, right, ties)


def kolmogorov(both: Merged) -> Tensor:
    """Largest difference of the distribution functions."""
    return (both.difference.abs() * closes_tie(both.points)).amax(-1)


def cramer(both: Merged) -> Tensor:
    """Integral of the squared difference of the distribution functions."""
    return _integral(both, both.difference, torch.square, lambda gap: 2 * gap)


def wasserstein(both: Merged) -> Tensor:
    """Integral of the absolute difference of the distribution functions."""
    return _integral(both, both.difference, torch.abs, torch.sign)


def lp(both: Merged, p: float = 2.0) -> Tensor:
    """L^p norm of the difference of the distribution functions."""
    difference = both.difference
    most = (difference.abs() * closes_tie(both.points)).amax(-1, keepdim=True)
    # Relative to the largest difference: small ones to a high power would vanish. Within ties there may be larger ones.
    share = difference / torch.where(most > 0, most, 1.0)
    height = lambda gap: gap.abs().clamp_max(1.0).pow(p)  # noqa: E731
    power = _integral(both, share, height, lambda gap: p * gap.abs().pow(p - 1) * gap.sign())
    # The root has no derivative at 0; where the distance is 0 so is its gradient.
    apart = power != 0
    return torch.where(apart, power, 1.0).pow(1.0 / p) * apart * most.squeeze(-1)


def _integral(both: Merged, gap: Tensor, function: Curve, slope: Curve) -> Tensor:
    """Integral of a function of the ``gap`` of both distribution functions; ``slope`` is its derivative.

    What stands between equal scores does not count in the value, but shares the derivative out to them. There the
    function is replaced by its chord across all of the equal scores: what a score gets then depends on its own weight,
    not on the order in which equal ones were sorted.
    """
    height = function(gap)
    if both.ties is not None and both.points.requires_grad:
        ties = both.ties
        own = torch.arange(gap.shape[-1], device=gap.device) if ties.tied is None else ties.tied
        first, last, own = (place.expand(*gap.shape[:-1], -1) for place in (ties.first, ties.last, own))
        # Before the lowest score of all the gap is 0, and so is the function.
        before, bottom = (torch.nn.functional.pad(rows, (1, 0)).gather(-1, first) for rows in (gap, height))
        after, top = gap.gather(-1, last), height.gather(-1, last)
        level = (after - before).abs() <= _rounding(gap)
        flat = slope(torch.where(after.abs() <= _rounding(gap), 0.0, after))
        chord = torch.where(level, flat, (top - bottom) / torch.where(level, 1.0, after - before))
        height = height.scatter(-1, own, bottom + chord * (gap.gather(-1, own) - before))
    return (height[..., :-1] * both.gaps).sum(-1)


def _rounding(shares: Tensor) -> float:
    """How far sums of shares may be off, being added up in another order."""
    return 1e-12 if shares.dtype == torch.float64 else 1e-6


def check_exponent(p: float) -> None:
    """Raise a DataError unless L^p is a norm that is an integral."""
    if not 1 <= p < float("inf"):
        raise DataError(f"p must be a number from 1 upwards, got {p!r}; for p = infinity use kolmogorov_distance")


def atoms_variation(both: Merged) -> Tensor:
    """Half the sum of the absolute differences of the probabilities of the distinct scores."""
    difference, closes = both.difference, closes_tie(both.points)
    place = torch.arange(1, difference.shape[-1] + 1, device=difference.device)
    # Where the previous distinct score closed: 0 stands for "before all scores".
    previous = torch.nn.functional.pad((place * closes).cummax(-1).values, (1, 0))[..., :-1]
    # One row of points may serve many rows of differences.
    before = torch.nn.functional.pad(difference, (1, 0)).gather(-1, previous.expand(difference.shape))
    return ((difference - before).abs() * closes).sum(-1) / 2


def binned_variation(both: Merged, bins: int) -> Tensor:
    """Total variation after cutting the scores at the quantiles of the even mixture of both samples."""
    place = torch.nn.functional.pad(_bin_edges(both, bins), (0, 1), value=both.points.shape[-1] - 1)
    at_edges = both.difference.gather(-1, place)
    return (at_edges.diff(dim=-1, prepend=torch.zeros_like(at_edges[..., :1]))).abs().sum(-1) / 2


def _bin_edges(both: Merged, bins: int) -> Tensor:
    """Positions among the points, (..., bins - 1), of the last score of each bin but the last."""
    mixture = ((both.left + both.right) / 2).contiguous()
    levels = torch.arange(1, bins, device=mixture.device, dtype=mixture.dtype) / bins
    place = torch.searchsorted(mixture, levels.expand(*mixture.shape[:-1], -1).contiguous() - 1e-6)
    points = both.points.detach().contiguous()
    return torch.searchsorted(points, points.gather(-1, place), right=True) - 1


def _is_differentiated(pair: Pair) -> bool:
    return torch.is_grad_enabled() and pair.values.requires_grad


def smoothed(value: Tensor, pair: Pair, thresholds: Tensor, signs: Tensor) -> Tensor:
    """``value`` with the gradient of ``sum of signs x (F0 - F1)(thresholds)`` after smoothing both functions.

    A step function of the scores has derivative 0 wherever it has one; so that it can be trained on, each
    indicator 1{score <= t} is given the slope of a logistic curve of the width of a kernel density estimate.
    """
    z = pair.values
    with torch.no_grad():
        width = _kernel_width(pair).unsqueeze(-2)
        weights = block_weights(pair, pair.samples)
        share = (weights / weights.sum(-1, keepdim=True)).to(z.dtype)
        signed = share[..., :1, :] - share[..., 1:, :]
    below = torch.sigmoid((thresholds.unsqueeze(-1) - z.unsqueeze(-2)) / width)  # (..., thresholds, n)
    surrogate = (signs.unsqueeze(-1) * signed * below).sum((-2, -1))
    return value + surrogate - surrogate.detach()


def _kernel_width(pair: Pair) -> Tensor:
    """Width of a kernel density estimate of the pooled scores, (..., 1); those without weight do not count."""
    z = pair.values
    if pair.weights is None:
        width = z.std(-1, keepdim=True, correction=0) * z.shape[-1] ** -0.2
    else:
        counts = (pair.weights > 0).to(z.dtype)
        count = counts.sum(-1, keepdim=True)
        centered = z - (counts * z).sum(-1, keepdim=True) / count
        width = ((counts * centered.square()).sum(-1, keepdim=True) / count).sqrt() * count**-0.2
    return torch.where(width > 0, width, 1.0)


def kolmogorov_between(pair: Pair) -> Tensor:
    """Kolmogorov distance that can be trained on."""
    both = merged(pair)
    if not _is_differentiated(pair):
        return kolmogorov(both)
    gap = both.difference * closes_tie(both.points)
    value = gap.abs().amax(-1)
    # The lowest of equally large gaps, whatever the rounding.
    place = (gap.abs() >= value.unsqueeze(-1) - _rounding(gap)).byte().argmax(-1, keepdim=True)
    return smoothed(value, pair, both.points.detach().gather(-1, place), gap.gather(-1, place).sign())


def total_variation_between(pair: Pair, bins: int | None = None) -> Tensor:
    """Total variation distance; with ``bins`` it can be trained on."""
    both = merged(pair)
    if bins is None:
        return atoms_variation(both)
    if not _is_differentiated(pair):
        return binned_variation(both, bins)
    place = _bin_edges(both, bins)
    at_edges = both.difference.gather(-1, place)
    jumps = torch.nn.functional.pad(at_edges, (1, 1)).diff(dim=-1).sign()  # one per bin
    signs = (jumps[..., :-1] - jumps[..., 1:]) / 2
    return smoothed(binned_variation(both, bins), pair, both.points.detach().gather(-1, place), signs)


def step_utility(both: Merged) -> Utility:
    """1 up to the score at which the distribution functions differ most, 0 above it."""
    points, difference = _distinct(both)
    threshold = points[np.abs(difference).argmax()]
    return lambda score: (score <= threshold).astype(np.float64)


def atoms_utility(both: Merged) -> Utility:
    """1/2 at scores that the left sample has more of, -1/2 at those of the right one, 0 at all others."""
    points, difference = _distinct(both)
    heights = np.sign(np.diff(difference, prepend=0.0)) / 2

    def utility(score: Floats) -> Floats:
        place = np.minimum(np.searchsorted(points, score), len(points) - 1)
        return np.where(points[place] == score, heights[place], 0.0)

    return utility


def slope_utility(both: Merged, p: float = 2.0, scale: float = 1.0) -> Utility:
    """Linear between scores, its slope of norm ``scale`` in L^q, 1/p + 1/q = 1.

    It falls where F0 > F1: then the left sample, which lies lower, expects more of it.
    """
    points, difference = _distinct(both)
    if len(points) == 1:
        return np.zeros_like
    norm, slopes = float(lp(both, p)), np.zeros(len(points) - 1)
    if norm > 0:
        slopes = -scale * np.sign(difference[:-1]) * (np.abs(difference[:-1]) / norm) ** (p - 1)
    heights = np.append(0.0, np.cumsum(slopes * np.diff(points)))
    return lambda score: np.interp(score, points, heights)


def _distinct(both: Merged) -> tuple[Floats, Floats]:
    """The distinct scores and F0 - F1 at each."""
    last = closes_tie(both.points).numpy()
    return both.points.numpy()[last], both.difference.numpy()[last]


def norm_bound(p: float, *, factor: float = 1.0, power: int = 1) -> Bound:
    """How ``factor`` times the L^p norm of F0 - F1, to the ``power``, is bounded above.

    The norm exceeds the one found by at most that of the constant radius on the interval that holds all scores; of the
    largest difference (p = infinity) that is the radius itself, whatever the interval.
    """

    def bound(value: float, radius: float, width: float | None) -> float | None:
        if width is None and p < inf:
            return None
        most = factor if width is None or p == inf else factor * float(width) ** (power / p)
        return min(most, float((max(0.0, value) ** (1 / power) + radius * most ** (1 / power)) ** power))

    return bound
