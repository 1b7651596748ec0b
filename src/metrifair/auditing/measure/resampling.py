"""Intervals of a distance between two samples, by a multiplier bootstrap.

Scores are sorted once; a resample is another set of weights on the same scores. Above
``resolution`` scores, neighbors are merged into bins: the noise within a bin is a share
1/sqrt(resolution) of the total.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from metrifair.auditing.measure.cluster_errors import (
    ClusterErrors,
    ClusterRows,
)
from metrifair.auditing.measure.plug_in import (
    distances_between,
    shares,
    witness_utility,
)
from metrifair.auditing.measure.two_samples import (
    TwoSamples,
    bin_means,
    bins,
    merge_bins,
)
from metrifair.errors import DataError
from metrifair.figures.certificates import certified_distance, dkw_radius
from metrifair.figures.intervals import FEWEST, Interval
from metrifair.metrics.registry import facts
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.support.special import normal_quantile, student_quantiles

BLOCK = 2**20  # numbers of one resampled side in memory at once
_ADDED = 4.0  # samples of the even mixture of both sides added to each for its spread: "plus four"
_NORMAL = 1e15  # degrees of freedom of which Student's distribution is the normal one, to rounding
_STEEP = 2.0  # factor that magnifies noise, to show the bias of a maximum; found by experiment


class Rows(NamedTuple):
    """Weighted samples: sums of their shares of both sides, of the squares and of the products.

    An entry is one sample, or all samples in a bin. A sample with a known group has a share of one
    side only.
    """

    place: Integers  # (n,): which score
    left: Floats  # (n,)
    right: Floats  # (n,)
    left_squares: Floats  # (n,)
    right_squares: Floats  # (n,)
    products: Floats  # (n,): of the shares of both sides

    @classmethod
    def single(cls, place: Integers, left: Floats, right: Floats) -> Rows:
        """Samples one by one, from their weights."""
        left = shares(left)
        right = shares(right)
        return cls(place, left, right, left**2, right**2, left * right)

    @property
    def shared(self) -> bool:
        """Whether some samples have a share of both sides, so that the errors of the sides are
        correlated.
        """
        return bool(self.products.any())

    def mean_shares(self, at: int) -> Floats:
        """The mean share of the samples of each entry, on the first or the second side,
        weighted by the shares.
        """
        sums = self[1 + at]
        squares = self[3 + at]
        return np.divide(squares, sums, out=np.zeros_like(sums), where=sums > 0)


SampleRows: TypeAlias = Rows | ClusterRows | None
"""The rows of two samples: independent with weights, or in clusters; None: counts of
independent rows.
"""


def merge_scores(
    pair: TwoSamples, rows: SampleRows, max_scores: int
) -> tuple[TwoSamples, SampleRows]:
    """Merge neighboring scores until there are at most ``max_scores``, and renumber the rows."""
    bin_index = bins(pair, max_scores)
    few = merge_bins(pair, bin_index)._replace(values=bin_means(pair, bin_index))
    return few, None if rows is None else rows._replace(place=bin_index[rows.place])


class _Side(NamedTuple):
    """The sampling error of one side's shares."""

    share: Floats  # (k,): of the sample
    size: float  # effective number of samples of equal weight (Kish)
    variance: Floats  # (k,): of the noise at each score
    third: Floats  # (k,): its third moment, as far as the samples' weights make it


class _Common(NamedTuple):
    """The correlation of the sides through rows with weight on both: sums of products of their
    shares at each score.
    """

    covariance: Floats  # (k,): of the noise of both sides
    left_twice: Floats  # (k,): left share squared times right share
    right_twice: Floats  # (k,)


class Intervals(NamedTuple):
    """Intervals by metric: of one comparison alone, and simultaneous over all comparisons of an
    audit.

    There are p-values only for rows with weight on both sides, whose groups cannot be permuted, and
    for clusters.
    """

    alone: dict[str, Interval]
    jointly: dict[str, Interval]
    p_values: Mapping[str, float] = {}


def bootstrap(
    pair: TwoSamples,
    metrics: Sequence[str],
    *,
    confidence: float,
    resamples: int,
    generator: np.random.Generator,
    rows: SampleRows = None,
    comparisons: int = 1,
    normals: Floats | None = None,
) -> Intervals:
    """Intervals of each distance; none for a metric without a witness, or if a side has fewer than
    5 samples.

    Simultaneous intervals over so many ``comparisons`` have a higher confidence (Bonferroni).
    Comparisons may share the standard ``normals`` of all resamples: see ``shared_normals``.

    Every sample's share is multiplied by independent normal noise of mean 1. To first order, the
    distance is the gap in the mean of its witness utility. Half of the width is the standard error
    of that gap times Student's quantile (degrees of freedom by Welch and Satterthwaite). Where the
    utility is skew, the end on the long side moves out by the first term of Edgeworth's expansion.
    Distances of samples overstate those of the populations: the mean increase by noise is the bias,
    and is subtracted. For a maximum (Kolmogorov, total variation) noise shows too little of the
    bias, and is magnified for the lower end. Squares are handled as their roots. The interval
    always contains the plug-in value. Near a distance of 0 this theory fails: if noise alone, with
    one distribution on both sides, reaches the distance of the sample, the interval begins at 0. It
    then ends at the sum of the distance and such noise.

    Weights reduce the effective sample size to (sum w)^2 / sum w^2. Scores that are equal in a
    sample may vary in the population: the spread of each side is estimated with four more samples,
    of the even mixture of both sides. If the gap is one of shares, the spread is at least that with
    two more samples of each kind (Agresti and Coull). If all scores of both sides are equal, only
    the Kolmogorov distance has an interval, by the inequality of Dvoretzky, Kiefer and Wolfowitz.

    A row with weight on both sides has one multiplier for both. Its score may depend on these
    weights, so that the two sides are never one sample. Noise alone is then the distance between a
    resample and the sample, and the p-value is the share of resamples for which that is at least
    the distance of the sample.

    Rows of one cluster have one multiplier too (``ClusterErrors``). Their clusters are the samples:
    the effective sample size is that of the weights of the clusters, and noise alone is that of
    both sides, each by its own clusters.
    """
    levels = confidence, 1 - (1 - confidence) / comparisons
    if min(effective_sizes(pair, rows)) < FEWEST:
        return Intervals({}, {})
    if len(pair.values) == 1:
        alone, jointly = (
            _equal_score_intervals(pair, metrics, level) if rows is None else {} for level in levels
        )
        return Intervals(alone, jointly)
    errors = _errors(pair, rows)
    utilities: dict[str, Floats] = {}
    for metric in metrics:
        if facts(metric).of_merged or facts(metric).of_shares:
            utility = witness_utility(metric, pair)
            if utility is not None:
                utilities[metric] = utility(pair.values)
    if not utilities:
        return Intervals({}, {})
    width = len(pair.values)
    draws: Iterable[Floats] = (
        generator.standard_normal((2, count, width)) for count in blocks_of(resamples, width)
    )
    if normals is not None:
        draws = [normals[..., :width]]
    blocks = [_replicates(pair.values, errors, list(utilities), block) for block in draws]
    values = distances_between(
        pair.values,
        errors.side_shares[0] - errors.side_shares[1],
        list(utilities),
    )
    replicates = {
        metric: np.concatenate([block[metric] for block in blocks]) for metric in utilities
    }
    # Resamples cannot estimate a quantile beyond all of them; one with fewer than five beyond it is
    # inexact.
    resolved = max(confidence, 1 - 5 / (resamples + 1))
    noise = {
        metric: _effect(
            metric,
            float(values[metric]),
            replicates[metric],
            _spread(utility, errors),
        )
        for metric, utility in utilities.items()
    }
    resolved_levels = np.minimum(levels, resolved)
    # One side of the noise's distribution for the upper end, which has no other end to share the
    # error with. Of n draws, the k-th is the quantile k / (n + 1): noise no different from the
    # sample is beyond it that often.
    both_sides = np.stack([resolved_levels, np.maximum(0.0, 2 * resolved_levels - 1)], 1)
    null_distances = np.stack([effect.null_distances for effect in noise.values()])
    quantiles = np.quantile(null_distances, both_sides, axis=1, method="weibull")
    alone, jointly = map(partial(_intervals, noise), levels, resolved_levels.tolist(), quantiles)
    beyond = {
        metric: int((replicates[metric][:, 0] >= values[metric]).sum()) for metric in utilities
    }
    p_values = {metric: (1 + times) / (1 + resamples) for metric, times in beyond.items()}
    return Intervals(alone, jointly, {} if errors.may_be_one_sample else p_values)


def shared_normals(
    resamples: int, max_scores: int, generator: np.random.Generator
) -> Floats | None:
    """Standard normal numbers for both sides, (2, resamples, max_scores), that comparisons
    share; None if too many.
    """
    if resamples * max_scores <= BLOCK:
        return generator.standard_normal((2, resamples, max_scores))
    return None


def effective_sizes(pair: TwoSamples, rows: SampleRows) -> tuple[float, float]:
    """The effective number of samples, or of clusters, of equal weight on each side (Kish).

    >>> pair = TwoSamples(np.arange(2.0), np.array([2.0, 0.0]), np.array([3.0, 1.0]))
    >>> rows = Rows.single(np.arange(2), pair.left, pair.right)
    >>> effective_sizes(pair, None), effective_sizes(pair, rows)
    ((2.0, 4.0), (1.0, 1.6))
    """
    if rows is None:
        return float(pair.left.sum()), float(pair.right.sum())
    if isinstance(rows, ClusterRows):
        return rows.sizes
    sizes = []
    for squares in (rows.left_squares, rows.right_squares):
        total = float(squares.sum())
        sizes.append(1 / total if total > 0 else 0.0)  # squares of tiny weights are 0
    return sizes[0], sizes[1]


def _equal_score_intervals(
    pair: TwoSamples, metrics: Sequence[str], confidence: float
) -> dict[str, Interval]:
    radius = sum(dkw_radius(int(side.sum()), confidence=confidence) for side in pair[1:])
    bounds = {metric: certified_distance(metric, 0.0, radius) for metric in metrics}
    return {metric: Interval(0.0, bound) for metric, bound in bounds.items() if bound is not None}


def _side(weights: Floats, pooled: Floats, rows: Rows | None, at: int) -> _Side:
    """The noise of one side, the first or the second.

    Residuals are divided by 1 - share: that makes the variance of a mean unbiased. Counts are
    numbers of samples with equal shares at each score; rows have separate shares. The third moment
    assumes that all samples of an entry have equal shares.
    """
    if rows is None:
        share = np.full(len(weights), 1 / weights.sum())
        place = np.arange(len(weights))
        squares = weights * share**2
    else:
        place = rows.place
        squares = rows[3 + at]
        share = rows.mean_shares(at)
    second = squares / (1 - share)
    variance, third = (
        np.bincount(place, moment, len(weights)).astype(np.float64)
        for moment in (second, second * _scale(share))
    )
    size = 1 / float(squares.sum())
    return _Side(
        shares(weights),
        size,
        (size * variance + _ADDED * pooled / size) / (size + _ADDED),
        third,
    )


def _scale(share: Floats) -> Floats:
    return np.asarray(share / np.sqrt(1 - share))


def _common(sides: Sequence[_Side], rows: Rows) -> _Common:
    """The covariances of both sides; the added samples are independent, so ``factor`` reduces
    them.
    """
    left, right = (rows.mean_shares(at) for at in range(2))
    factor = np.sqrt(np.prod([side.size / (side.size + _ADDED) for side in sides]))
    product = rows.products / np.sqrt((1 - left) * (1 - right))
    products = factor * product, product * _scale(left), product * _scale(right)
    return _Common(
        *(
            np.bincount(rows.place, product, len(sides[0].share)).astype(np.float64)
            for product in products
        )
    )


class _RowErrors(NamedTuple):
    """The sampling error of both sides of independent rows."""

    sides: tuple[_Side, _Side]
    common: _Common | None  # None: no row has a share of both sides

    @property
    def side_shares(self) -> tuple[Floats, Floats]:
        """The shares of both sides at each score."""
        return self.sides[0].share, self.sides[1].share

    @property
    def may_be_one_sample(self) -> bool:
        """Whether both sides are parts of one sample if they have one distribution."""
        return self.common is None

    def noise(self, draws: Floats) -> tuple[Floats, Floats]:
        """The noise if both sides were one, and with the sample, from standard normal numbers
        (2, count, k).
        """
        sides = self.sides
        (left, right) = draws
        variances = [side.variance for side in sides]
        if self.common is not None:
            spread = np.sqrt(variances[0] * variances[1])
            covariance = self.common.covariance
            correlation = np.divide(
                covariance, spread, out=np.zeros_like(spread), where=spread > 0
            ).clip(-1, 1)
            right = correlation * left + np.sqrt(1 - correlation**2) * right
        noise = _noise((left, right), variances, self.side_shares)
        if self.common is not None:
            return noise, noise
        pooled = shares(sides[0].size * sides[0].share + sides[1].size * sides[1].share)
        return _noise(
            (left, right),
            [pooled / side.size for side in sides],
            [pooled, pooled],
        ), noise

    def spread(self, utility: Floats) -> _Spread:
        """The sampling distribution of the gap in the mean of a utility of at most 1."""
        variances = []
        third = 0.0
        centered = [utility - side.share @ utility for side in self.sides]
        for sign, side, deviation in zip((1, -1), self.sides, centered, strict=True):
            variance = float(side.variance @ deviation**2)
            kinds = _two_kinds(deviation)
            if kinds is not None:
                share = (side.size * float(side.share[kinds.is_high].sum()) + _ADDED / 2) / (
                    side.size + _ADDED
                )
                variance = max(
                    variance,
                    kinds.width**2 * share * (1 - share) / (side.size + _ADDED),
                )
            variances.append(variance)
            third += sign * float(side.third @ deviation**3)
        total = sum(variances)
        if self.common is not None:
            left, right = centered
            total = max(0.0, total - 2 * float(self.common.covariance @ (left * right)))
            third -= 3 * float(
                self.common.left_twice @ (left**2 * right)
                - self.common.right_twice @ (left * right**2)
            )
        return _Spread.of(variances, [side.size for side in self.sides], total, third)


class _DependentErrors(NamedTuple):
    """The sampling error of both sides of rows in clusters."""

    clusters: ClusterErrors
    may_be_one_sample: bool = False  # each side has clusters of its own sizes and correlation

    @property
    def side_shares(self) -> tuple[Floats, Floats]:
        """The shares of both sides at each score."""
        return self.clusters.side_shares

    def noise(self, draws: Floats) -> tuple[Floats, Floats]:
        """The noise, twice, from standard normal numbers (2, count, k)."""
        noise = self.clusters.noise(draws[0])
        return noise, noise

    def spread(self, utility: Floats) -> _Spread:
        """The sampling distribution of the gap in the mean of a utility of at most 1."""
        left, right = (utility - share @ utility for share in self.side_shares)
        variances, total, third = self.clusters.gap_moments((left, right))
        of_shares = list(variances)
        for at, deviation in enumerate((left, right)):
            kinds = _two_kinds(deviation)
            if kinds is not None:
                smallest = kinds.width**2 * self.clusters.share_variance(at, kinds.is_high)
                of_shares[at] = max(variances[at], smallest)
        total += sum(of_shares) - sum(variances)
        return _Spread.of(of_shares, self.clusters.sizes, total, third)


class _TwoKinds(NamedTuple):
    """A utility of two values: its mean is a share."""

    is_high: Booleans
    width: float


def _two_kinds(deviation: Floats) -> _TwoKinds | None:
    """The higher values and their distance from the lower ones; None if there are more than two
    values.
    """
    lowest = float(deviation.min())
    highest = float(deviation.max())
    is_high = deviation == highest
    if ((deviation == lowest) | is_high).all():
        return _TwoKinds(is_high, highest - lowest)
    return None


def _errors(pair: TwoSamples, rows: SampleRows) -> _RowErrors | _DependentErrors:
    if isinstance(rows, ClusterRows):
        return _DependentErrors(ClusterErrors(pair, rows, _ADDED))
    pooled = (shares(pair.left) + shares(pair.right)) / 2
    sides = (
        _side(pair.left, pooled, rows, 0),
        _side(pair.right, pooled, rows, 1),
    )
    return _RowErrors(
        sides,
        _common(sides, rows) if rows is not None and rows.shared else None,
    )


def _replicates(
    values: Floats,
    errors: _RowErrors | _DependentErrors,
    metrics: Sequence[str],
    draws: Floats,
) -> dict[str, Floats]:
    """Distances (count, 3) by metric: of noise if both sides were one, with the sample, and
    magnified if a maximum.

    ``draws`` are standard normal numbers, (2, count, k).
    """
    observed = errors.side_shares[0] - errors.side_shares[1]
    null_noise, noise = errors.noise(draws)
    maxima = [metric for metric in metrics if facts(metric).is_maximum]
    null = distances_between(values, null_noise, metrics)
    plain = distances_between(values, observed + noise, metrics)
    magnified = plain | (
        distances_between(values, observed + _STEEP * noise, maxima) if maxima else {}
    )
    return {
        metric: np.stack([null[metric], plain[metric], magnified[metric]], 1) for metric in metrics
    }


def _noise(
    draws: Sequence[Floats],
    variances: Sequence[Floats],
    side_shares: Sequence[Floats],
) -> Floats:
    """The noise of the left shares less that of the right shares.

    Shares add up to 1 after the multiplication, too.
    """
    left = np.sqrt(variances[0])
    right = -np.sqrt(variances[1])
    noise = draws[0] * left
    noise += draws[1] * right
    noise -= np.stack([draws[0] @ left, draws[1] @ right], 1) @ np.stack(side_shares)
    return noise


class _Spread(NamedTuple):
    """The sampling distribution of the gap in the mean of a utility: standard error, degrees of
    freedom, skewness.
    """

    error: float
    freedom: float
    skewness: float

    @classmethod
    def of(
        cls,
        variances: Sequence[float],
        sizes: Sequence[float],
        total: float,
        third: float,
    ) -> _Spread:
        """From the variance of each side and its sample size, the variance of the gap and its
        third moment.
        """
        if total == 0:
            return cls(0.0, _NORMAL, 0.0)
        independent = sum(variances)
        freedom = independent**2 / sum(
            part**2 / (size - 1) for part, size in zip(variances, sizes, strict=True)
        )
        return cls(total**0.5, freedom, third / total**1.5)


def _spread(utility: Floats, errors: _RowErrors | _DependentErrors) -> _Spread:
    largest = float(np.abs(utility).max()) or 1.0  # cubes of huge utilities would overflow
    spread = errors.spread(utility / largest)
    return spread._replace(error=largest * spread.error)


class _Effect(NamedTuple):
    """The effect of noise on a distance, or on its root if the distance is a square."""

    value: float  # of the sample
    bias: float  # the mean increase by noise
    lower_bias: float  # the same for the lower end
    null_distances: Floats  # (resamples,): distances of noise alone
    spread: _Spread  # to first order


def _effect(metric: str, value: float, replicates: Floats, spread: _Spread) -> _Effect:
    if not np.isfinite(replicates).all():
        raise DataError(
            f"resampling the {metric} distance leaves the range of numbers; scale scores and "
            "weights down"
        )
    row = facts(metric)
    if row.squared:
        value = np.sqrt(max(value, 0.0))
        replicates = np.sqrt(np.maximum(replicates, 0.0))
    unit = max(value, float(replicates.max())) or 1.0  # sums of huge distances would overflow
    plain, steep = (unit * float((replicates[:, at] / unit - value / unit).mean()) for at in (1, 2))
    return _Effect(
        value,
        plain,
        steep / _STEEP if row.is_maximum else plain,
        replicates[:, 0],
        spread,
    )


def _intervals(
    noise: Mapping[str, _Effect],
    confidence: float,
    resolved: float,
    quantiles: Floats,
) -> dict[str, Interval]:
    """Intervals of a confidence. The ``quantiles`` of noise, (2, metrics), are those of the
    ``resolved`` level.

    They are scaled as a normal's.
    """
    normal = normal_quantile((1 + confidence) / 2)
    students = student_quantiles(
        [effect.spread.freedom for effect in noise.values()],
        (1 + confidence) / 2,
    ).tolist()
    if confidence > resolved:
        normals = (
            normal / normal_quantile((1 + resolved) / 2),
            normal_quantile(confidence) / normal_quantile(resolved),
        )
        quantiles = quantiles * np.array(normals)[:, None]
    intervals = {}
    for (metric, effect), student, ends in zip(noise.items(), students, quantiles.T, strict=True):
        shift = effect.spread.skewness * (2 * normal**2 + 1) / 6 * student / normal
        below, above = (
            effect.spread.error * (student + max(0.0, side)) for side in (-shift, shift)
        )
        low = effect.value - effect.lower_bias - below
        high = effect.value - min(effect.bias, effect.lower_bias) + above
        two_sided, one_sided = student / normal * ends
        if effect.value <= two_sided:
            low = 0.0
            high = max(effect.value + above, effect.value + one_sided, two_sided)
        low = max(0.0, min(effect.value, low))
        high = max(effect.value, high)
        row = facts(metric)
        power = 1
        if facts(metric).squared:
            power = 2
        intervals[metric] = Interval(float(low**power), float(min(row.maximum, high**power)))
    return intervals


def standard_deviation(values: Floats) -> float:
    """Standard deviation, of numbers of any scale.

    >>> standard_deviation(np.array([1e300, -1e300]))
    1e+300
    """
    largest = float(np.abs(values).max())
    if largest > 0:
        return largest * float((values / largest).std())
    return 0.0


def blocks_of(count: int, width: int) -> Iterator[int]:
    """The sizes of blocks, of ``count`` rows of this width together."""
    size = max(1, BLOCK // width)
    for start in range(0, count, size):
        yield min(size, count - start)
