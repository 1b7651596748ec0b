"""Plug-in distances between two samples of counted scores, and where they differ most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.measure.two_samples import TwoSamples
from metrifair.errors import DataError
from metrifair.metrics.line import Merged
from metrifair.metrics.namespaces import no_warnings
from metrifair.metrics.pair import TOO_FAR, Pair
from metrifair.metrics.registry import facts
from metrifair.metrics.witnesses import Witness
from metrifair.support.arrays import Floats


def plug_in_distances(
    values: Floats,
    left: NDArray[Any],
    right: NDArray[Any],
    metrics: Sequence[str],
) -> dict[str, Floats]:
    """Plug-in distances, by metric, between sides of weights (..., k) at ``values`` (k,): one for
    each leading index.

    >>> sides = np.array([1, 1, 0]), np.array([[0, 1, 1], [1, 1, 0]])
    >>> plug_in_distances(np.array([0.0, 1, 3]), *sides, ["wasserstein"])
    {'wasserstein': array([1.5, 0. ])}
    """
    # Sums of counts are exact, those of shares are not.
    below = [np.cumsum(side, axis=-1) / side.sum(-1, keepdims=True) for side in (left, right)]
    easy = [metric for metric in metrics if facts(metric).of_merged or facts(metric).of_shares]
    distances = _distances(lambda: shares(left) - shares(right), Merged(values, *below), easy)
    # the scores twice, weighted as on the left and as on the right
    for metric in set(metrics) - set(easy):
        weights = np.concatenate(np.broadcast_arrays(shares(left), shares(right)), -1)
        twice = np.broadcast_to(np.tile(values, 2), weights.shape)
        with no_warnings():
            distances[metric] = facts(metric).plug_in(
                Pair(twice, (len(values),), (len(values),), weights)
            )
    if not all(np.isfinite(value).all() for value in distances.values()):
        raise DataError(TOO_FAR)
    return {metric: np.minimum(distances[metric], facts(metric).maximum) for metric in metrics}


def distances_between(values: Floats, signed: Floats, metrics: Sequence[str]) -> dict[str, Floats]:
    """The same from ``signed`` shares, (..., k), such as the shares of the left side less those
    of the right side.
    """
    return _distances(
        lambda: signed,
        Merged(values, np.cumsum(signed, axis=-1), np.zeros(())),
        metrics,
    )


def _distances(
    signed: Callable[[], Floats], merged: Merged, metrics: Sequence[str]
) -> dict[str, Floats]:
    """Distances from signed shares, or from distribution functions; one row of points serves
    all rows of these.
    """
    if len(merged.points) == 1:  # all scores are equal
        return {metric: np.zeros(merged.difference.shape[:-1]) for metric in metrics}
    distances = {}
    for metric in metrics:
        row = facts(metric)
        with no_warnings():
            if row.of_merged is not None:
                distances[metric] = row.of_merged(merged)
            elif row.of_shares is not None:
                distances[metric] = row.of_shares(merged.points, signed())
            else:
                raise DataError(
                    f"the metric {metric!r} is not known as a function of the difference of two "
                    "distributions"
                )
    return distances


def shares(weights: NDArray[Any]) -> Floats:
    """Weights (..., k) as shares of their sum."""
    return np.asarray(weights / weights.sum(-1, keepdims=True))


def unbiased_distance(
    metric: str, sides: Sequence[tuple[Floats, Floats]], value: float
) -> float | None:
    """The U-statistic of unweighted samples, from its plug-in value; None if the metric has none.

    A side is its scores and the count of each.

    >>> sides = [(np.array(scores), np.ones(2)) for scores in ([0.0, 1.0], [1.0, 3.0])]
    >>> unbiased_distance("energy", sides, 1.5)
    0.0
    """
    spread = facts(metric).spread
    if spread is None or min(counts.sum() for _, counts in sides) < 2:
        return None
    return float(
        value - sum(spread(points, shares(counts)) / (counts.sum() - 1) for points, counts in sides)
    )


def witness_utility(metric: str, pair: TwoSamples) -> Witness | None:
    """The utility that separates the two sides best; None for a metric without a witness.

    >>> pair = TwoSamples(np.array([0.0, 1, 3]), np.array([1.0, 0, 0]), np.array([0.0, 1, 1]))
    >>> witness_utility("wasserstein", pair).gap
    2.0
    """
    witness = facts(metric).witness
    if witness is None:
        return None
    # Scores are in order: an audit of many groups would sort them many thousand times.
    below = [np.cumsum(side) / side.sum() for side in pair[1:]]
    utility = witness(Merged(pair.values, below[0], below[1]))
    heights = utility(pair.values)
    left, right = (float(shares(side) @ heights) for side in pair[1:])
    return Witness(metric, (left, right), utility)


class LargestGap(NamedTuple):
    """The score with the largest gap between two distribution functions, and the share of each
    side at or below it.
    """

    score: float
    shares: tuple[float, float]


def largest_gap(pair: TwoSamples) -> LargestGap:
    """The score at which the shares at or below it differ most.

    >>> scores = np.array([0.1, 0.2, 0.3, 0.4])
    >>> largest_gap(TwoSamples(scores, np.array([1.0, 1, 0, 1]), np.array([0.0, 0, 1, 0])))
    LargestGap(score=0.2, shares=(0.6666666666666666, 0.0))
    """
    below = [np.cumsum(side) / side.sum() for side in pair[1:]]
    height = np.abs(below[0] - below[1])
    at = int((height >= height.max() - 1e-12).argmax())  # the lowest of equal ones, up to rounding
    return LargestGap(float(pair.values[at]), (float(below[0][at]), float(below[1][at])))
