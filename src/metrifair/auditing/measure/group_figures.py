"""Figures of each group besides distances: base rate, AUC, accuracy, log loss, calibration, ROC
curve.

All figures are computed from one table: the number of positive and negative samples at each score,
ascending. It is exact for rows in memory. For binned counts only the ends of each bin are known, so
figures have brackets. Intervals are Wilson's for shares; the AUC has DeLong's errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.measure.parts import members_in, sets_for
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.measure.selection import Selection
from metrifair.auditing.records import (
    FIGURES_OF_GROUPS,
    ByGroup,
    GroupFigures,
    Measure,
    ReliabilityBin,
)
from metrifair.auditing.request import Request
from metrifair.figures.clusters import (
    by_cluster,
    effective_clusters,
    mean_variance,
    share_size,
)
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import headline_groups, wilson_interval
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.problem.values import canonical_values
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.support.special import normal_cdf, normal_quantile

CALIBRATION_BINS = 10
"""Number of bins of the reliability curve, of equal width as in scikit-learn's
calibration_curve.
"""

_MAX_GROUPS = 30
_MOST_POINTS = 100  # of a ROC curve
SMALLEST = float(np.finfo(np.float64).eps)
"""The value that replaces a probability of 0, as in scikit-learn's log_loss."""


class LabeledScores(NamedTuple):
    """Weight of positive and negative samples at ascending scores, or in bins between two
    scores.
    """

    low: Floats  # (k,)
    high: Floats
    positive: Floats
    negative: Floats
    squares: tuple[Floats, Floats]  # sums of squared weights, of positive and negative samples
    sampled: bool = True  # False: sums of squares are not known, so there are no intervals
    exponent: int = 0  # weights times 2 to this power are those that the user passed
    clusters: LabeledRows | None = None  # None: rows are independent


class LabeledRows(NamedTuple):
    """Rows in clusters: which score, the label, the weight and the cluster of each."""

    place: Integers  # (n,)
    positive: Booleans
    weight: Floats
    cluster: Integers


def figures_by_group(
    sample: AuditSample, selection: Selection | None, request: Request
) -> list[ByGroup]:
    """The figures of every attribute's groups within each stratum; none without two labels and one
    score.

    ``selection`` is None without decisions. Decisions have no log loss and no calibration.
    Gaps compare groups with enough rows, if there are two.
    """
    confidence = request.confidence
    positive = sample.positive
    labels = sample.problem.is_positive
    if (
        positive is None
        or labels is None
        or len(sample.problem.scheme.classes) > 2
        or None not in sample.scores.by_class
    ):
        return []
    probabilities = sample.probabilities and not sample.scores.by_class[None].are_decisions
    tables = []
    for within, conditions, inside in sets_for(STATISTICAL_PARITY, sample.problem):
        for place, attribute in enumerate(sample.problem.scheme.attributes):
            units, codes, present = members_in(sample.problem, inside, place)
            if not 2 <= len(present) <= _MAX_GROUPS:
                continue
            groups = []
            values = canonical_values(attribute.values)
            for code in present:
                members = units[codes == code]
                scores = _labeled_scores(sample, members, positive, code)
                accuracy: _Accuracy | None = None
                if selection is not None:
                    accuracy = _accuracy(sample, selection, members, labels[members])
                name = str(attribute.groups[code])
                size = sample.units.size(members)
                figures = _figures(scores, accuracy, confidence, probabilities=probabilities)
                clusters = None
                if sample.problem.clusters is not None:
                    clusters = sample.independent(members)
                groups.append(
                    GroupFigures(
                        name,
                        size,
                        **figures,
                        group_value=values[code],
                        clusters=clusters,
                    )
                )
            unknown = sample.unknown_names[attribute.name][present].tolist()
            known = [
                group for group, is_unknown in zip(groups, unknown, strict=True) if not is_unknown
            ]
            small = [group.independent_size < request.min_group_size for group in known]
            gaps = dict(_gaps(headline_groups(known, small), confidence))
            tables.append(ByGroup(attribute.name, within, groups, gaps, conditions))
    return tables


class _Accuracy(NamedTuple):
    """The share of right decisions, and the number of independent rows whose share is as exact."""

    value: float
    size: float | None  # None: that of all shares


def _accuracy(
    sample: AuditSample,
    selection: Selection,
    units: Integers,
    labels: NDArray[Any],
) -> _Accuracy:
    selected = selection.amount[units]
    total = sample.units.amount[units]
    right = np.where(labels, selected, total - selected)
    value = float(right.sum() / total.sum())
    clusters = sample.problem.clusters
    return _Accuracy(
        value,
        None if clusters is None else share_size(right > 0, total, clusters[units]),
    )


def _labeled_scores(
    sample: AuditSample, units: Integers, positive: NDArray[Any], group: int
) -> LabeledScores:
    scores = sample.scores.by_class[None]
    sides = [units[positive[units]], units[~positive[units]]]
    weights = [scores.at(side).astype(np.float64) for side in sides]
    squares = weights
    if sample.units.weighted and sample.has_squares:
        squares = [sample.squares_at(side, group) for side in sides]
    used = (weights[0] > 0) | (weights[1] > 0)
    low = scores.values if sample.scores.binned is None else sample.scores.binned.bins.low
    clusters = None
    if sample.problem.clusters is not None:
        place = (np.cumsum(used) - 1)[scores.place[units]]
        rows = (
            np.asarray(positive[units]),
            sample.units.amount[units],
            sample.problem.clusters[units],
        )
        clusters = LabeledRows(place, *rows)
    return LabeledScores(
        low[used],
        scores.values[used],
        weights[0][used],
        weights[1][used],
        (squares[0][used], squares[1][used]),
        sampled=sample.has_squares,
        exponent=sample.units.exponent,
        clusters=clusters,
    )


def _figures(
    scores: LabeledScores,
    correct: _Accuracy | None,
    confidence: float,
    *,
    probabilities: bool,
) -> dict[str, Any]:
    total = float(scores.positive.sum() + scores.negative.sum())
    # effective sample size (Kish)
    size = total**2 / float(scores.squares[0].sum() + scores.squares[1].sum())

    def share(value: float, size: float) -> Measure:
        interval = None
        if scores.sampled:
            interval = wilson_interval(value, size, confidence)
        return Measure(value, interval)

    rows = scores.clusters
    base_size = size
    if rows is not None:
        base_size = share_size(rows.positive, rows.weight, rows.cluster)
    figures: dict[str, Any] = {
        "base_rate": share(float(scores.positive.sum()) / total, base_size),
        "auc": _auc(scores, confidence),
        "roc": _roc(scores),
    }
    if correct is not None:
        figures["accuracy"] = share(min(1.0, correct.value), correct.size or size)
    if probabilities:
        figures["log_loss"] = _log_loss(scores, confidence)
        figures["calibration_error"] = _calibration_error(scores, confidence)
        figures["reliability"] = reliability(scores, confidence)
    return figures


def _auc(scores: LabeledScores, confidence: float) -> Measure | None:
    """The share of pairs of a positive and a negative sample in the right order, ties one half."""
    positive = float(scores.positive.sum())
    negative = float(scores.negative.sum())
    if positive == 0 or negative == 0:
        return None
    before = (np.cumsum(scores.negative) - scores.negative) / negative  # negatives below each score
    tied = scores.negative / negative
    value = float(scores.positive @ (before + tied / 2)) / positive
    within = np.where(scores.low < scores.high, tied, 0.0)  # in an unknown order
    bracket = None
    if within.any():
        unknown = float(scores.positive @ within) / positive / 2
        bracket = Interval(max(0.0, value - unknown), min(1.0, value + unknown))
    if not scores.sampled:
        return Measure(value, None, bracket)
    after = 1 - np.cumsum(scores.positive) / positive  # positives above each score
    placements = before + tied / 2, after + scores.positive / positive / 2
    if scores.clusters is not None:
        size = _clustered_auc_size(scores.clusters, placements, value)
        return Measure(value, wilson_interval(value, size, confidence), bracket)
    variance = 0.0
    sizes = list[float]()
    for placement, total, squares in zip(
        placements, (positive, negative), scores.squares, strict=True
    ):
        size = total**2 / float(squares.sum())  # effective sample size (Kish)
        variance += (
            float(squares @ (placement - value) ** 2) / total**2 * (size / max(1.0, size - 1))
        )
        sizes.append(size)
    size = value * (1 - value) / variance if variance > 0 and 0 < value < 1 else min(sizes)
    return Measure(value, wilson_interval(value, size, confidence), bracket)


def _clustered_auc_size(
    rows: LabeledRows, placements: tuple[Floats, Floats], value: float
) -> float:
    """The size of a sample whose share is as exact as this AUC.

    The error is DeLong's, of clusters instead of rows (Obuchowski): positive and negative samples
    of a cluster are counted together.
    """
    placement = np.where(rows.positive, placements[0][rows.place], placements[1][rows.place])
    totals = [float(rows.weight[rows.positive == side].sum()) for side in (False, True)]
    shares = rows.weight / np.where(rows.positive, totals[1], totals[0])
    variance = float((by_cluster(shares * (placement - value), rows.cluster) ** 2).sum())
    clusters = effective_clusters(rows.weight, rows.cluster)
    variance *= clusters / max(1.0, clusters - 1)
    if variance > 0 and 0 < value < 1:
        return value * (1 - value) / variance
    sides = (rows.positive, ~rows.positive)
    return min(effective_clusters(rows.weight[side], rows.cluster[side]) for side in sides)


def _log_loss(scores: LabeledScores, confidence: float) -> Measure:
    total = float(scores.positive.sum() + scores.negative.sum())

    def losses(at: Floats) -> tuple[Floats, Floats]:
        inside = np.clip(at, SMALLEST, 1 - SMALLEST)
        return -np.log(inside), -np.log1p(-inside)

    at_low = losses(scores.low)
    at_high = losses(scores.high)
    # of the losses of positive and of negative samples
    bounds = (at_high[0], at_low[0]), (at_low[1], at_high[1])
    ends = [
        float(scores.positive @ positive_loss + scores.negative @ negative_loss) / total
        for positive_loss, negative_loss in zip(*bounds, strict=True)
    ]
    value = ends[0] / 2 + ends[1] / 2
    interval = None
    if scores.sampled:
        pairs = zip(scores.squares, bounds, strict=True)
        spread = (
            sum(float(squares @ ((low + high) / 2 - value) ** 2) for squares, (low, high) in pairs)
            / total**2
        )
        rows = scores.clusters
        if rows is not None:
            row_losses = np.where(rows.positive, at_low[0][rows.place], at_low[1][rows.place])
            spread = mean_variance(row_losses, rows.weight, rows.cluster)
        half = normal_quantile((1 + confidence) / 2) * sqrt(spread)
        interval = Interval(max(0.0, value - half), value + half)
    return Measure(value, interval, Interval(*ends) if ends[0] < ends[1] else None)


def reliability_bin(scores: Floats) -> Integers:
    """The bin of each score in the reliability curve; a score at an edge is in the lower bin, as in
    scikit-learn.

    >>> reliability_bin(np.array([0.0, 0.1, 0.11, 1.0]))
    array([0, 0, 1, 9])
    """
    return np.searchsorted(np.linspace(0.0, 1.0, CALIBRATION_BINS + 1)[1:-1], scores)


class _CalibrationBins(NamedTuple):
    """The bins of the reliability curve: weight, mean score, rate of positives and effective
    sample size.
    """

    weight: Floats
    score: Floats
    rate: Floats
    size: Floats


def _calibration_bins(scores: LabeledScores) -> _CalibrationBins:
    """The bins that contain samples."""
    middle = scores.low / 2 + scores.high / 2
    bins = reliability_bin(middle)
    amount = scores.positive + scores.negative
    weight = np.bincount(bins, amount, CALIBRATION_BINS).astype(np.float64)
    used = weight > 0
    score = np.bincount(bins, amount * middle, CALIBRATION_BINS)[used] / weight[used]
    rate = np.bincount(bins, scores.positive, CALIBRATION_BINS)[used] / weight[used]
    squares = np.bincount(bins, scores.squares[0] + scores.squares[1], CALIBRATION_BINS)[used]
    sizes = weight[used] ** 2 / squares
    if scores.clusters is not None:
        sizes = _clustered_bin_sizes(scores.clusters, bins)
    return _CalibrationBins(weight[used], score, rate, sizes)


def _clustered_bin_sizes(rows: LabeledRows, bins: Integers) -> Floats:
    """How many independent rows the rate of positives of each used bin is worth."""
    row_bin = bins[rows.place]
    inside = [row_bin == number for number in np.unique(row_bin)]
    return np.array(
        [share_size(rows.positive[some], rows.weight[some], rows.cluster[some]) for some in inside]
    )


def reliability(scores: LabeledScores, confidence: float) -> list[ReliabilityBin]:
    """The reliability curve, with sizes in the unit of the user's weights."""
    binned = _calibration_bins(scores)
    return [
        ReliabilityBin(
            float(score),
            float(rate),
            wilson_interval(float(rate), float(size), confidence) if scores.sampled else None,
            float(np.ldexp(weight, scores.exponent)),
        )
        for weight, score, rate, size in zip(*binned, strict=True)
    ]


def _calibration_error(scores: LabeledScores, confidence: float) -> Measure:
    """The mean over all samples of the distance between the mean score of their bin and its rate of
    positives.

    Noise makes it larger. The lower end of the interval subtracts the mean of that noise, computed
    at the smallest gap that each bin allows at this confidence: at the observed gaps, 3 in 10
    calibrated models would seem miscalibrated.
    """
    binned = _calibration_bins(scores)
    total = float(binned.weight.sum())
    share = binned.weight / total
    gap = binned.score - binned.rate
    value = float(share @ np.abs(gap))
    amount = scores.positive + scores.negative
    width = scores.high - scores.low
    astride = reliability_bin(scores.low) != reliability_bin(scores.high)
    unknown = float(amount @ width + 2 * amount[astride].sum()) / total
    bracket = None
    if unknown > 0:
        bracket = Interval(max(0.0, value - unknown), min(1.0, value + unknown))
    if not scores.sampled:
        return Measure(value, None, bracket)
    spread = np.sqrt(
        np.maximum(binned.rate * (1 - binned.rate), 1 / (4 * binned.size)) / binned.size
    )
    z = normal_quantile((1 + confidence) / 2)
    # The mean of |N(gap, spread)| less the gap, in units of the spread.
    ratio = np.maximum(0.0, np.abs(gap) / spread - z)
    noise = (
        np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + ratio * (2 * normal_cdf(ratio) - 1) - ratio
    )
    bias = float(share @ (spread * noise))
    variance = float((share**2) @ spread**2)
    if scores.clusters is not None:
        variance = max(
            variance,
            _clustered_gap_variance(scores, scores.clusters, np.sign(gap)),
        )
    half = z * float(np.sqrt(variance))
    return Measure(
        value,
        Interval(max(0.0, value - bias - half), min(1.0, value + half)),
        bracket,
    )


def _clustered_gap_variance(scores: LabeledScores, rows: LabeledRows, signs: Floats) -> float:
    """The variance of the calibration error with these signs of the gaps: bins are correlated
    through clusters.
    """
    used_bins, row_bin = np.unique(reliability_bin(scores.high)[rows.place], return_inverse=True)
    sign = signs[row_bin.reshape(-1)] if len(used_bins) == len(signs) else 1.0
    errors = sign * (scores.high[rows.place] - rows.positive)
    return mean_variance(np.asarray(errors), rows.weight, rows.cluster)


def _roc(scores: LabeledScores) -> list[tuple[float, float]]:
    """False and true positive rates from the highest threshold to the lowest, at no more than
    100 of them.
    """
    positive = float(scores.positive.sum())
    negative = float(scores.negative.sum())
    if positive == 0 or negative == 0:
        return []
    rates = [
        np.append(0.0, np.cumsum(side[::-1]) / total)
        for side, total in (
            (scores.negative, negative),
            (scores.positive, positive),
        )
    ]
    if len(rates[0]) <= _MOST_POINTS:
        points = np.arange(len(rates[0]))
    else:  # evenly along the curve, not along the thresholds
        along = (rates[0] + rates[1]) / 2
        points = np.unique(
            np.searchsorted(along, np.linspace(0.0, along[-1], _MOST_POINTS)).clip(
                0, len(along) - 1
            )
        )
        points = np.union1d(points, [0, len(along) - 1])
    return [
        (min(1.0, float(false_rate)), min(1.0, float(true_rate)))
        for false_rate, true_rate in zip(*(side[points] for side in rates), strict=True)
    ]


def _gaps(groups: Sequence[GroupFigures], confidence: float) -> Iterator[tuple[str, Measure]]:
    """The largest less the smallest of each figure, by bounds that are valid for all groups at
    once.
    """
    if len(groups) < 2:
        return
    wider = normal_quantile(1 - (1 - confidence) / (2 * len(groups))) / normal_quantile(
        (1 + confidence) / 2
    )
    for name in FIGURES_OF_GROUPS:
        measures = [figure for group in groups if (figure := getattr(group, name)) is not None]
        if len(measures) < 2:
            continue
        values = [figure.value for figure in measures]
        ends = [
            (
                figure.value - wider * (figure.value - figure.interval.low),
                figure.value + wider * (figure.interval.high - figure.value),
            )
            for figure in measures
            if figure.interval is not None
        ]
        value = max(values) - min(values)
        interval = None
        if len(ends) == len(measures):
            lows, highs = zip(*ends, strict=True)
            interval = Interval(
                max(0.0, max(lows) - min(highs)),
                max(value, max(highs) - min(lows)),
            )
        yield name, Measure(value, interval)
