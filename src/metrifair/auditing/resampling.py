"""How sure one can be of a distance: bootstrap intervals and permutation p-values, of two samples.

Scores are sorted once; a resample is another set of weights on the same scores. Above ``resolution`` scores, neighbours
are taken together: what moves within such a bin is a share 1/sqrt(resolution) of what moves at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.distribution import (
    Floats,
    Integers,
    TwoSamples,
    bin_means,
    bins,
    coarsened,
    distances_between,
    distances_of,
    shares,
    utility_of,
)
from metrifair.certificates import certified_distance, dkw_radius
from metrifair.errors import DataError
from metrifair.metrics.registry import facts
from metrifair.results import Interval

RESOLUTION = 2048
_BLOCK = 2**20  # numbers of one resampled side held in memory at once
_MOST_PERMUTED = 10**9  # NumPy's limit for drawing without replacement
_MOST_SHUFFLED = 2**22  # samples, of which each is a number in memory then
_MANY_ROWS = 2**15
_MANY_COUNTS = 2**12
_NORMAL = 30  # rows whose sum, each drawn a random number of times, is as good as normal
_FEWEST = 2  # samples of either side
_STEEP = 2.0  # by how much perturbations are magnified to see the bias of a maximum; by experiment


class Rows(NamedTuple):
    """Samples of one side that count differently, and so are resampled one by one."""

    place: Integers  # (n,): which score
    weights: Floats  # (n,)


def thinned(found: TwoSamples, rows: Sequence[Rows], most: int) -> tuple[TwoSamples, tuple[Rows, ...]]:
    """At most ``most`` scores, and the rows with them."""
    bin_of = bins(found, most)
    few = coarsened(found, bin_of)._replace(values=bin_means(found, bin_of))
    return few, tuple(Rows(bin_of[side.place], side.weights) for side in rows)


def bootstrap(
    found: TwoSamples,
    metrics: Sequence[str],
    *,
    confidence: float,
    resamples: int,
    generator: np.random.Generator,
    rows: Sequence[Rows] = (),
) -> dict[str, Interval]:
    """An interval of each distance, by resampling either side on its own.

    Distances of samples overstate those of the populations, and percentiles of the bootstrap do so twice. Instead: the
    distance is, to first order, the gap in the mean of its witness utility, whose spread over the resamples gives the
    width; what the resamples exceed the sample by is the bias, and is taken off. For a maximum (Kolmogorov, total
    variation) resamples show too little of it: they are magnified before the maximum is taken. Squares are handled as
    their roots. The interval always holds the plug-in value. Near a distance of 0 this theory fails: where resamples,
    centred, are as far from 0 as the sample, the interval begins at 0 and no bias is taken off; it is then too wide.

    What does not vary in a sample does not vary in its resamples either, and yet may in the population: samples that
    are all equal, or all on one side of the largest gap. The Kolmogorov distance is then given what the inequality of
    Dvoretzky, Kiefer and Wolfowitz allows for, and other distances no interval; nor is any of a single sample, nor a
    metric that has no witness.
    """
    observed = shares(found.left) - shares(found.right)
    told: dict[str, Floats] = {}
    for metric in metrics:
        if facts(metric).of_merged or facts(metric).of_shares:
            utility = utility_of(metric, found)
            told |= {} if utility is None else {metric: utility(found.values)}
    margins = _margins(found, rows, told, confidence)
    if not margins:
        return {}
    metrics = list(margins)
    utilities = np.stack([told[metric] for metric in metrics])
    gaps, replicates = [], []
    for count in _blocks(resamples, len(found.values)):
        if rows:
            sides = [resampled_rows(side, len(found.values), count, generator) for side in rows]
        else:
            sides = [resampled_counts(side, count, generator) for side in found[1:]]
        drawn = shares(sides[0]) - shares(sides[1])
        gaps.append(drawn @ utilities.T)
        replicates.append(_replicates(found.values, observed, drawn, metrics))
    values = distances_between(found.values, observed, metrics)
    quantile = NormalDist().inv_cdf((1 + confidence) / 2)
    return {
        metric: _interval(
            metric,
            float(values[metric]),
            np.concatenate([block[metric] for block in replicates]),
            confidence,
            quantile * spread_of(np.concatenate([block[:, place] for block in gaps])) + margins[metric],
        )
        for place, metric in enumerate(metrics)
    }


def _margins(
    found: TwoSamples, rows: Sequence[Rows], utilities: Mapping[str, Floats], confidence: float
) -> dict[str, float]:
    """How much further off a distance may be than resamples show, by metric; only those of which that is known."""
    sizes = [len(side.place) for side in rows] if rows else [int(side.sum()) for side in found[1:]]
    margins: dict[str, float] = {}
    for metric, utility in utilities.items() if min(sizes) >= _FEWEST else ():
        same = []
        for size, side in zip(sizes, found[1:], strict=True):  # one score only, or a single value of a telling utility
            if (side > 0).sum() == 1 or float(np.ptp(utility[side > 0])) == 0 < float(np.ptp(utility)):
                same.append(size)
        radius = sum(dkw_radius(size, confidence=confidence) for size in same)
        margin = None if same and rows else certified_distance(metric, 0.0, radius)
        if margin is not None or not same:
            margins[metric] = margin or 0.0
    return margins


def _replicates(values: Floats, observed: Floats, drawn: Floats, metrics: Sequence[str]) -> dict[str, Floats]:
    """Distances (resamples, 2) by metric: of the resamples, those of maxima magnified; and of what they differ by."""
    moved = drawn - observed
    plain, magnified = ([name for name in metrics if facts(name).is_maximum == chosen] for chosen in (False, True))
    found = distances_between(values, drawn, plain)
    if magnified:
        found |= distances_between(values, observed + _STEEP * moved, magnified)
    centred = distances_between(values, moved, metrics)
    return {metric: np.stack([found[metric], centred[metric]], 1) for metric in metrics}


def _interval(metric: str, value: float, replicates: Floats, confidence: float, half: float) -> Interval:
    if not np.isfinite(replicates).all():
        raise DataError(f"resampling the {metric} distance leaves the range of numbers; scale scores and weights down")
    row = facts(metric)
    root, most = row.squared, row.most
    if root:
        value, replicates = np.sqrt(max(value, 0.0)), np.sqrt(np.maximum(replicates, 0.0))
    unit = max(value, float(replicates.max())) or 1.0  # sums of huge distances would overflow
    bias = unit * float((replicates[:, 0] / unit - value / unit).mean()) / (_STEEP if row.is_maximum else 1.0)
    low, high = value - bias - half, value - bias + half
    by_chance = float(np.quantile(replicates[:, 1], confidence))
    if value <= by_chance:
        low, high = 0.0, max(value + half, by_chance)
    low, high = max(0.0, min(value, low)), max(value, high)
    return Interval(float(low**2), float(min(most, high**2))) if root else Interval(float(low), float(min(most, high)))


def spread_of(values: Floats) -> float:
    """Standard deviation, of numbers of any scale.

    >>> spread_of(np.array([1e300, -1e300]))
    1e+300
    """
    largest = float(np.abs(values).max())
    return largest * float((values / largest).std()) if largest > 0 else 0.0


def _blocks(count: int, width: int) -> Iterator[int]:
    size = max(1, _BLOCK // width)
    for start in range(0, count, size):
        yield min(size, count - start)


def resampled_counts(counts: NDArray[Any], resamples: int, generator: np.random.Generator) -> NDArray[Any]:
    """Counts (k,) of as many samples drawn with replacement: (resamples, k); of many samples their number varies."""
    total, scores = int(counts.sum()), len(counts)
    if total > max(_MANY_COUNTS, 16 * scores):
        drawn = _normal_sums(counts, counts, resamples, generator)
        few = counts < _NORMAL
        drawn[:, few] = generator.poisson(counts[few], size=(resamples, int(few.sum())))
        return drawn
    if total > 4 * scores:
        return generator.multinomial(total, counts / total, size=resamples)
    # Few samples are faster drawn one by one.
    place = np.repeat(np.arange(scores), counts.astype(np.int64))[generator.integers(total, size=(resamples, total))]
    place += scores * np.arange(resamples)[:, None]
    return np.bincount(place.ravel(), minlength=resamples * scores).reshape(resamples, scores).astype(np.int64)


def resampled_rows(rows: Rows, scores: int, resamples: int, generator: np.random.Generator) -> Floats:
    """Sums of weights at each score, of as many rows drawn with replacement: (resamples, scores).

    Of many rows at each score the sums are drawn, not the rows: each row counts a Poisson number of times, and their
    sum is as good as normal.
    """
    if len(rows.place) > max(_MANY_ROWS, 16 * scores):
        return _resampled_sums(rows, scores, resamples, generator)
    drawn = np.empty((resamples, scores))
    for resample in drawn:
        chosen = generator.integers(len(rows.place), size=len(rows.place))
        resample[:] = np.bincount(rows.place[chosen], rows.weights[chosen], scores)
    return drawn


def _resampled_sums(rows: Rows, scores: int, resamples: int, generator: np.random.Generator) -> Floats:
    """The sum at each score where rows count Poisson numbers of times: normal, unless few rows make up a score."""
    weights = rows.weights / rows.weights.max()
    mean, variance = (np.bincount(rows.place, part, scores) for part in (weights, weights**2))
    drawn = _normal_sums(mean, variance, resamples, generator)
    few = mean**2 < _NORMAL * variance  # the effective number of rows
    own = few[rows.place]
    place, weights = rows.place[own], weights[own]
    for resample in drawn if own.any() else ():
        times = generator.poisson(1.0, len(place))
        resample[few] = np.bincount(place, weights * times, scores)[few]
    return drawn


def _normal_sums(mean: NDArray[Any], variance: NDArray[Any], resamples: int, generator: np.random.Generator) -> Floats:
    """Normal numbers (resamples, k) with these means and variances (k,), none of them below 0."""
    drawn = generator.standard_normal((resamples, len(mean)))
    drawn *= np.sqrt(variance)
    drawn += mean
    return np.maximum(drawn, 0.0, out=drawn)


def permutation_p_values(
    found: TwoSamples, metrics: Sequence[str], *, permutations: int, generator: np.random.Generator
) -> dict[str, float | None]:
    """How often groups dealt anew to the same scores are at least as far apart: (1 + times) / (1 + permutations).

    Uniform where both sides have one distribution. For counts, not for weights.
    """
    pooled = (found.left + found.right).astype(np.int64)
    if pooled.sum() >= _MOST_PERMUTED:
        return dict.fromkeys(metrics)
    observed = distances_of(found.values, found.left, found.right, metrics)
    at_least = dict.fromkeys(metrics, 0)
    total, dealt = int(pooled.sum()), int(found.left.sum())
    # Shuffling is the faster way to deal few samples to one side; many share scores, which are dealt as a whole.
    few = total <= _MOST_SHUFFLED and min(dealt, total - dealt) <= 16 * len(pooled)
    method: Literal["count", "marginals"] = "count" if few else "marginals"
    for count in _blocks(permutations, len(pooled)):
        left = generator.multivariate_hypergeometric(pooled, dealt, size=count, method=method)
        drawn = distances_of(found.values, left, pooled - left, metrics)
        for metric in metrics:
            # Equal values may differ in their last digits, being sums in another order.
            at_least[metric] += int((drawn[metric] >= observed[metric] * (1 - 1e-12)).sum())
    return {metric: (1 + times) / (1 + permutations) for metric, times in at_least.items()}
