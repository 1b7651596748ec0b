"""Distances between two distributions on the line, all read off one sort of the pooled scores.

With F0, F1 the (weighted) empirical distribution functions just after each pooled score and d the
gaps between consecutive scores, every distance here is a sum or a maximum over the gaps.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from metrifair.errors import DataError
from metrifair.metrics.order import ascending, block_weights, block_weights_in_order, closes_tie, running_sums
from metrifair.metrics.scores import Bound, Floats, Pair, Utility, Values, paired, result


class Merged(NamedTuple):
    """Both samples in ascending order, and their distribution functions just after each score."""

    points: Tensor  # (..., n), differentiable
    left: Tensor  # (..., n)
    right: Tensor  # (..., n)

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
        order = ascending(z).order
        cumulative = running_sums(block_weights_in_order(pair, pair.samples, order))
        left, right = (cumulative / cumulative[..., -1:]).to(z.dtype).unbind(-2)
    return Merged(z.gather(-1, order), left, right)


def kolmogorov(both: Merged) -> Tensor:
    """Largest difference of the distribution functions."""
    return (both.difference.abs() * closes_tie(both.points)).amax(-1)


def cramer(both: Merged) -> Tensor:
    """Integral of the squared difference of the distribution functions."""
    return (both.difference[..., :-1].square() * both.gaps).sum(-1)


def wasserstein(both: Merged) -> Tensor:
    """Integral of the absolute difference of the distribution functions."""
    return (both.difference[..., :-1].abs() * both.gaps).sum(-1)


def lp(both: Merged, p: float = 2.0) -> Tensor:
    """L^p norm of the difference of the distribution functions."""
    height = both.difference[..., :-1].abs() * (both.gaps > 0)
    most = height.amax(-1, keepdim=True)
    # Relative to the largest difference: small ones to a high power would vanish.
    power = ((height / torch.where(most > 0, most, 1.0)).pow(p) * both.gaps).sum(-1)
    # The root has no derivative at 0; where the distance is 0 so is its gradient.
    positive = power > 0
    return torch.where(positive, power, 1.0).pow(1.0 / p) * positive * most.squeeze(-1)


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


def smoothed(value: Tensor, pair: Pair, thresholds: Tensor, signs: Tensor) -> Tensor:
    """``value`` with the gradient of ``sum of signs x (F0 - F1)(thresholds)`` after smoothing both functions.

    A step function of the scores has derivative 0 wherever it has one; so that it can be trained on, each
    indicator 1{score <= t} is given the slope of a logistic curve of the width of a kernel density estimate.
    """
    z = pair.values
    if not (torch.is_grad_enabled() and z.requires_grad):
        return value
    with torch.no_grad():
        width = z.std(-1, keepdim=True, correction=0) * z.shape[-1] ** -0.2
        width = torch.where(width > 0, width, 1.0).unsqueeze(-2)
        weights = block_weights(pair, pair.samples)
        share = (weights / weights.sum(-1, keepdim=True)).to(z.dtype)
        signed = share[..., :1, :] - share[..., 1:, :]
    below = torch.sigmoid((thresholds.unsqueeze(-1) - z.unsqueeze(-2)) / width)  # (..., thresholds, n)
    surrogate = (signs.unsqueeze(-1) * signed * below).sum((-2, -1))
    return value + surrogate - surrogate.detach()


def kolmogorov_between(pair: Pair) -> Tensor:
    """Kolmogorov distance that can be trained on."""
    both = merged(pair)
    height = both.difference.abs() * closes_tie(both.points)
    place = height.argmax(-1, keepdim=True)
    top = both.points.detach().gather(-1, place)
    return smoothed(height.amax(-1), pair, top, both.difference.gather(-1, place).sign())


def total_variation_between(pair: Pair, bins: int | None = None) -> Tensor:
    """Total variation distance; with ``bins`` it can be trained on."""
    both = merged(pair)
    if bins is None:
        return atoms_variation(both)
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


def kolmogorov_distance(
    u: Values, v: Values, *, u_weights: Values | None = None, v_weights: Values | None = None
) -> Any:
    """Largest gap between the two distribution functions, max |F0 - F1|; between 0 and 1.

    Torch tensors give a tensor. As a function of the scores it is piecewise constant: its gradient is that
    of a smoothed version, and a poor guide. Train on the energy distance instead.

    >>> kolmogorov_distance([0.0, 1.0], [1.0, 3.0])      # half of u, none of v below 1
    0.5
    """
    return result(kolmogorov_between(paired(u, v, u_weights, v_weights)), u, v)


def wasserstein_distance(
    u: Values, v: Values, *, u_weights: Values | None = None, v_weights: Values | None = None
) -> Any:
    """Area between the two distribution functions, the least mean way to move one sample onto the other.

    >>> wasserstein_distance([0.0, 1.0], [1.0, 3.0])     # 0 -> 1 and 1 -> 3
    1.5
    """
    return result(wasserstein(merged(paired(u, v, u_weights, v_weights))), u, v)


def lp_distance(
    u: Values, v: Values, *, p: float = 2.0, u_weights: Values | None = None, v_weights: Values | None = None
) -> Any:
    """L^p norm of the difference of the two distribution functions, for 1 <= p < infinity.

    >>> lp_distance([0.0, 1.0], [1.0, 3.0], p=1.0)
    1.5
    >>> lp_distance([0.0, 0.0], [4.0, 4.0], p=2.0)       # (1 x 4) ** (1 / 2)
    2.0
    """
    check_exponent(p)
    return result(lp(merged(paired(u, v, u_weights, v_weights)), p), u, v)


def cramer_distance(u: Values, v: Values, *, u_weights: Values | None = None, v_weights: Values | None = None) -> Any:
    """Squared L^2 distance of the two distribution functions; half the energy distance.

    >>> cramer_distance([0.0, 1.0], [1.0, 3.0])          # 1/4 on [0, 1], 1/4 on [1, 3]
    0.75
    """
    return result(cramer(merged(paired(u, v, u_weights, v_weights))), u, v)


def total_variation(
    u: Values,
    v: Values,
    *,
    bins: int | None = None,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
) -> Any:
    """Half the sum of |p0 - p1| over the values that occur; between 0 and 1.

    It means something for decisions and other scores with few distinct values. Between samples of
    continuous scores it is 1 whatever they are: pass ``bins`` to compare the shares that fall between
    that many quantiles of the even mixture of both samples. The gradient is that of a smoothed version,
    and exists with ``bins`` only.

    >>> total_variation([0, 0, 1, 1], [0, 1, 1, 1])
    0.25
    >>> total_variation([0.1, 0.2, 0.3, 0.4], [0.15, 0.25, 0.35, 0.45], bins=2)
    0.0
    """
    if bins is not None and not (isinstance(bins, int) and bins >= 2):
        raise DataError(f"bins must be a whole number from 2 upwards or None, got {bins!r}")
    return result(total_variation_between(paired(u, v, u_weights, v_weights), bins), u, v)
