"""Two score distributions: distinct scores in ascending order, with the weight of either side.

That is all a distance on the line needs; resampling changes the weights and leaves the order alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.auditing.counted import Floats, Integers
from metrifair.errors import DataError
from metrifair.metrics.line import Merged
from metrifair.metrics.pair import TOO_FAR, Pair
from metrifair.metrics.registry import facts
from metrifair.metrics.witness import Witness


class TwoSamples(NamedTuple):
    """Distinct scores, and how much each side has at them: counts, or sums of weights."""

    values: Floats  # (k,), ascending
    left: Floats  # (k,)
    right: Floats  # (k,)


def two_samples(values: NDArray[Any], on_left: NDArray[np.bool_], weights: Floats | None = None) -> TwoSamples:
    """Scores of two samples, those of the left one marked.

    >>> two_samples(np.array([0.5, 0.1, 0.5]), np.array([True, False, False]))
    TwoSamples(values=array([0.1, 0.5]), left=array([0., 1.]), right=array([1., 1.]))
    """
    distinct, place = np.unique(values, return_inverse=True)
    left, right = (
        np.bincount(place[side], None if weights is None else weights[side], len(distinct)).astype(np.float64)
        for side in (on_left, ~on_left)
    )
    return TwoSamples(distinct, left, right)


def bins(found: TwoSamples, most: int) -> Integers:
    """A bin for each score: at most ``most`` bins, in ascending order.

    Half of the cuts share out the even mixture of both sides, the other half the length: the few scores of a long tail
    hold hardly any weight, and most of the distance.

    >>> bins(TwoSamples(np.arange(4.0), np.array([3.0, 1, 0, 0]), np.array([0.0, 0, 2, 2])), 2)
    array([0, 0, 1, 1])
    """
    if len(found.values) <= most:
        return np.arange(len(found.values))
    mixture = found.left / found.left.sum() + found.right / found.right.sum()
    middle = (np.cumsum(mixture) - mixture / 2) / 2
    along = found.values / 2 - found.values[0] / 2
    shares_of = (middle, most // 2 + 1), (along / along[-1], (most - 1) // 2 + 1)
    numbers = [np.minimum((share * count).astype(np.int64), count - 1) for share, count in shares_of]
    cut = np.logical_or.reduce([np.diff(number, prepend=number[0]) > 0 for number in numbers])
    return np.cumsum(cut).astype(np.int64)


def coarsened(found: TwoSamples, bin_of: Integers) -> TwoSamples:
    """The scores of each bin taken together, at the largest: distribution functions are still exact there.

    >>> coarsened(TwoSamples(np.arange(3.0), np.array([1.0, 1, 0]), np.array([0.0, 1, 1])), np.array([0, 0, 1]))
    TwoSamples(values=array([1., 2.]), left=array([2., 0.]), right=array([1., 1.]))
    """
    last = np.append(np.flatnonzero(np.diff(bin_of)), len(bin_of) - 1)
    left, right = (np.bincount(bin_of, side).astype(np.float64) for side in found[1:])
    return TwoSamples(found.values[last], left, right)


def bin_means(found: TwoSamples, bin_of: Integers) -> Floats:
    """The mean score of each bin, in the even mixture of both sides: where a bin is for distances that are integrals.

    >>> bin_means(TwoSamples(np.arange(3.0), np.array([1.0, 1, 0]), np.array([0.0, 1, 1])), np.array([0, 0, 1]))
    array([0.66666667, 2.        ])
    """
    mixture = found.left / found.left.sum() + found.right / found.right.sum()
    share = mixture / np.bincount(bin_of, mixture)[bin_of]
    first = np.flatnonzero(np.diff(bin_of, prepend=-1))
    last = np.append(first[1:], len(bin_of)) - 1
    # Sums of shares may round beyond the ends.
    return np.clip(np.bincount(bin_of, share * found.values), found.values[first], found.values[last])


def distances_of(values: Floats, left: NDArray[Any], right: NDArray[Any], metrics: Sequence[str]) -> dict[str, Floats]:
    """Plug-in distances, by metric, between sides of weights (..., k) at ``values`` (k,): one for each leading index.

    >>> distances_of(np.array([0.0, 1, 3]), np.array([1, 1, 0]), np.array([[0, 1, 1], [1, 1, 0]]), ["wasserstein"])
    {'wasserstein': array([1.5, 0. ])}
    """
    # Sums of counts are exact, those of shares are not.
    below = [np.cumsum(side, axis=-1) / side.sum(-1, keepdims=True) for side in (left, right)]
    easy = [metric for metric in metrics if facts(metric).of_merged or facts(metric).of_shares]
    found = _distances(values, lambda: shares(left) - shares(right), below[0] - below[1], easy)
    for metric in set(metrics) - set(easy):  # the scores twice, weighted as on the left and as on the right
        weights = torch.from_numpy(np.concatenate(np.broadcast_arrays(shares(left), shares(right)), -1))
        twice = torch.from_numpy(np.tile(values, 2)).expand(weights.shape)
        found[metric] = facts(metric).plug_in(Pair(twice, (len(values),), (len(values),), weights)).numpy()
    if not all(np.isfinite(value).all() for value in found.values()):
        raise DataError(TOO_FAR)
    return {metric: np.minimum(found[metric], facts(metric).most) for metric in metrics}


def distances_between(values: Floats, signed: Floats, metrics: Sequence[str]) -> dict[str, Floats]:
    """The same from the left side's shares less the right side's, (..., k), which need be no such difference."""
    return _distances(values, lambda: signed, np.cumsum(signed, axis=-1), metrics)


def _distances(
    values: Floats, signed: Callable[[], Floats], below: Floats, metrics: Sequence[str]
) -> dict[str, Floats]:
    if len(values) == 1:  # all scores are equal
        return {metric: np.zeros(below.shape[:-1]) for metric in metrics}
    points, differences = torch.from_numpy(values), torch.from_numpy(below)
    none = torch.zeros((), dtype=differences.dtype)
    return {metric: _distance(metric, points, differences, none, signed).numpy() for metric in metrics}


def shares(weights: NDArray[Any]) -> Floats:
    """Weights (..., k) as shares of their sum."""
    found: Floats = weights / weights.sum(-1, keepdims=True)
    return found


def _distance(metric: str, points: Tensor, below: Tensor, none: Tensor, signed: Callable[[], Floats]) -> Tensor:
    row = facts(metric)
    if row.of_merged is not None:  # one row of points serves all rows of differences
        return row.of_merged(Merged(points, below, none))
    if row.of_shares is not None:
        return row.of_shares(points, torch.from_numpy(signed()))
    raise DataError(f"the metric {metric!r} is not known as a function of the difference of two distributions")


def unbiased_distance(metric: str, found: TwoSamples, value: float) -> float | None:
    """The U-statistic of unweighted samples, from its plug-in value; None where there is none.

    >>> unbiased_distance("energy", two_samples(np.array([0.0, 1, 1, 3]), np.arange(4) < 2), 1.5)
    0.0
    """
    spread, sizes = facts(metric).spread, (found.left.sum(), found.right.sum())
    if spread is None or min(sizes) < 2:
        return None
    sides = zip(found[1:], sizes, strict=True)
    return float(value - sum(spread(found.values, side / size) / (size - 1) for side, size in sides))


def utility_of(metric: str, found: TwoSamples) -> Witness | None:
    """The utility that tells the two sides apart best; None for a metric of which none is known.

    >>> utility_of("wasserstein", two_samples(np.array([0.0, 1, 3]), np.array([True, False, False]))).gap
    2.0
    """
    told = facts(metric).witness
    if told is None:
        return None
    # Scores are in order: an audit of many groups would sort them many thousand times.
    below = [torch.from_numpy(np.cumsum(side) / side.sum()) for side in found[1:]]
    utility = told(Merged(torch.from_numpy(found.values), below[0], below[1]))
    left, right = (float(shares(side) @ utility(found.values)) for side in found[1:])
    return Witness(metric, (left, right), utility)


class Gap(NamedTuple):
    """Where two distribution functions are furthest apart, and the share of either side at or below it."""

    score: float
    shares: tuple[float, float]


def largest_gap(found: TwoSamples) -> Gap:
    """The score at which the shares at or below it differ most.

    >>> largest_gap(two_samples(np.array([0.1, 0.2, 0.3, 0.4]), np.array([True, True, False, True])))
    Gap(score=0.2, shares=(0.6666666666666666, 0.0))
    """
    below = [np.cumsum(side) / side.sum() for side in found[1:]]
    height = np.abs(below[0] - below[1])
    at = int((height >= height.max() - 1e-12).argmax())  # the lowest of equal ones, whatever the rounding
    return Gap(float(found.values[at]), (float(below[0][at]), float(below[1][at])))


def mean_scores(found: TwoSamples) -> tuple[float, float]:
    """The mean score of either side, however large the scores are."""
    return float(shares(found.left) @ found.values), float(shares(found.right) @ found.values)
