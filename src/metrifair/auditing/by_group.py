"""Figures of each group besides distances: base rate, AUC, accuracy, log loss, calibration, ROC curve.

All figures are computed from one table: the number of positive and negative samples at each score, ascending. It is
exact for rows in memory. For binned counts only the ends of each bin are known, so figures have brackets. Intervals
are Wilson's for shares; the AUC has DeLong's errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.decisions import Selection
from metrifair.auditing.records import ByGroup, GroupFigures, Measure, ReliabilityBin
from metrifair.auditing.request import Request
from metrifair.auditing.sample import AuditSample, members_in, sets_for
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import headline_groups, wilson_interval
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.problem.values import canonical_values
from metrifair.support.arrays import Floats, Integers
from metrifair.support.special import normal_cdf, normal_quantile

BINS = 10
"""Number of bins of the reliability curve, of equal width as in scikit-learn's calibration_curve."""

_MAX_GROUPS = 30
_MOST_POINTS = 100  # of a ROC curve
SMALLEST = float(np.finfo(np.float64).eps)
"""The value that replaces a probability of 0, as in scikit-learn's log_loss."""


class LabeledScores(NamedTuple):
    """Weight of positive and negative samples at ascending scores, or in bins between two scores."""

    low: Floats  # (k,)
    high: Floats
    positive: Floats
    negative: Floats
    squares: tuple[Floats, Floats]  # sums of squared weights, of positive and negative samples
    sampled: bool = True  # False: sums of squares are not known, so there are no intervals


def figures_by_group(sample: AuditSample, selection: Selection | None, request: Request) -> list[ByGroup]:
    """The figures of every attribute's groups within each stratum; none without two labels and one score.

    ``selection`` is None without decisions. Decisions have no log loss and no calibration.
    Gaps compare groups with enough rows, if there are two.
    """
    confidence = request.confidence
    positive, labels = sample.scored.is_positive, sample.problem.is_positive
    if positive is None or labels is None or len(sample.problem.scheme.classes) > 2 or None not in sample.predicted:
        return []
    probabilities = sample.probabilities and not sample.predicted[None].are_decisions
    tables = []
    for within, conditions, inside in sets_for(STATISTICAL_PARITY, sample.problem):
        for place, attribute in enumerate(sample.problem.scheme.attributes):
            units, codes, present = members_in(sample.problem, inside, place)
            if not 2 <= len(present) <= _MAX_GROUPS:
                continue
            groups, values = [], canonical_values(attribute.values)
            for code in present:
                members = units[codes == code]
                scores = _labeled_scores(sample, members, positive, code)
                accuracy = None
                if selection is not None:
                    selected, total = selection.amount[members], sample.amount[members]
                    accuracy = float(np.where(labels[members], selected, total - selected).sum() / total.sum())
                name, size = str(attribute.groups[code]), sample.size(members)
                figures = _figures(scores, accuracy, confidence, probabilities=probabilities)
                groups.append(GroupFigures(name, size, **figures, group_value=values[code]))
            small = [group.size < request.min_group_size for group in groups]
            gaps = dict(_gaps(headline_groups(groups, small), confidence))
            tables.append(ByGroup(attribute.name, within, groups, gaps, conditions))
    return tables


def _labeled_scores(sample: AuditSample, units: Integers, positive: NDArray[Any], group: int) -> LabeledScores:
    scores = sample.predicted[None]
    sides = [units[positive[units]], units[~positive[units]]]
    weights = [scores.at(side).astype(np.float64) for side in sides]
    squares = weights
    if sample.weighted and sample.has_squares:
        squares = [sample.squares_at(side, group) for side in sides]
    used = (weights[0] > 0) | (weights[1] > 0)
    low = scores.values if sample.binned is None else sample.binned.bins.low
    return LabeledScores(
        low[used],
        scores.values[used],
        weights[0][used],
        weights[1][used],
        (squares[0][used], squares[1][used]),
        sampled=sample.has_squares,
    )


def _figures(scores: LabeledScores, correct: float | None, confidence: float, *, probabilities: bool) -> dict[str, Any]:
    total = float(scores.positive.sum() + scores.negative.sum())
    size = total**2 / float(scores.squares[0].sum() + scores.squares[1].sum())  # effective sample size (Kish)

    def share(value: float) -> Measure:
        return Measure(value, wilson_interval(value, size, confidence) if scores.sampled else None)

    return {
        "base_rate": share(float(scores.positive.sum()) / total),
        "auc": _auc(scores, confidence),
        "accuracy": None if correct is None else share(min(1.0, correct)),
        "log_loss": _log_loss(scores, confidence) if probabilities else None,
        "calibration_error": _calibration_error(scores, confidence) if probabilities else None,
        "roc": _roc(scores),
        "reliability": reliability(scores, confidence) if probabilities else (),
    }


def _auc(scores: LabeledScores, confidence: float) -> Measure | None:
    """The share of pairs of a positive and a negative sample in the right order, ties one half."""
    positive, negative = float(scores.positive.sum()), float(scores.negative.sum())
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
    variance, sizes = 0.0, list[float]()
    for placement, total, squares in zip(placements, (positive, negative), scores.squares, strict=True):
        size = total**2 / float(squares.sum())  # effective sample size (Kish)
        variance += float(squares @ (placement - value) ** 2) / total**2 * (size / max(1.0, size - 1))
        sizes.append(size)
    size = value * (1 - value) / variance if variance > 0 and 0 < value < 1 else min(sizes)
    return Measure(value, wilson_interval(value, size, confidence), bracket)


def _log_loss(scores: LabeledScores, confidence: float) -> Measure:
    total = float(scores.positive.sum() + scores.negative.sum())

    def losses(at: Floats) -> tuple[Floats, Floats]:
        inside = np.clip(at, SMALLEST, 1 - SMALLEST)
        return -np.log(inside), -np.log1p(-inside)

    at_low, at_high = losses(scores.low), losses(scores.high)
    bounds = (at_high[0], at_low[0]), (at_low[1], at_high[1])  # of the losses of positive and of negative samples
    ends = [
        float(scores.positive @ positive_loss + scores.negative @ negative_loss) / total
        for positive_loss, negative_loss in zip(*bounds, strict=True)
    ]
    value = ends[0] / 2 + ends[1] / 2
    interval = None
    if scores.sampled:
        pairs = zip(scores.squares, bounds, strict=True)
        spread = sum(float(squares @ ((low + high) / 2 - value) ** 2) for squares, (low, high) in pairs) / total**2
        half = normal_quantile((1 + confidence) / 2) * sqrt(spread)
        interval = Interval(max(0.0, value - half), value + half)
    return Measure(value, interval, Interval(*ends) if ends[0] < ends[1] else None)


def reliability_bin(scores: Floats) -> Integers:
    """The bin of each score in the reliability curve; a score at an edge is in the lower bin, as in scikit-learn.

    >>> reliability_bin(np.array([0.0, 0.1, 0.11, 1.0]))
    array([0, 0, 1, 9])
    """
    return np.searchsorted(np.linspace(0.0, 1.0, BINS + 1)[1:-1], scores)


class _CalibrationBins(NamedTuple):
    """The bins of the reliability curve: weight, mean score, rate of positives and effective sample size."""

    weight: Floats
    score: Floats
    rate: Floats
    size: Floats


def _calibration_bins(scores: LabeledScores) -> _CalibrationBins:
    """The bins that contain samples."""
    middle = scores.low / 2 + scores.high / 2
    bins = reliability_bin(middle)
    amount = scores.positive + scores.negative
    weight = np.bincount(bins, amount, BINS).astype(np.float64)
    used = weight > 0
    score = np.bincount(bins, amount * middle, BINS)[used] / weight[used]
    rate = np.bincount(bins, scores.positive, BINS)[used] / weight[used]
    squares = np.bincount(bins, scores.squares[0] + scores.squares[1], BINS)[used]
    return _CalibrationBins(weight[used], score, rate, weight[used] ** 2 / squares)


def reliability(scores: LabeledScores, confidence: float) -> list[ReliabilityBin]:
    """The reliability curve."""
    binned = _calibration_bins(scores)
    return [
        ReliabilityBin(
            float(score),
            float(rate),
            wilson_interval(float(rate), float(size), confidence) if scores.sampled else None,
            float(weight),
        )
        for weight, score, rate, size in zip(*binned, strict=True)
    ]


def _calibration_error(scores: LabeledScores, confidence: float) -> Measure:
    """The mean over all samples of the distance between the mean score of their bin and its rate of positives.

    Noise makes it larger. The lower end of the interval subtracts the mean of that noise, computed at the smallest gap
    that each bin allows at this confidence: at the observed gaps, 3 in 10 calibrated models would seem miscalibrated.
    """
    binned = _calibration_bins(scores)
    total = float(binned.weight.sum())
    share, gap = binned.weight / total, binned.score - binned.rate
    value = float(share @ np.abs(gap))
    amount, width = scores.positive + scores.negative, scores.high - scores.low
    astride = reliability_bin(scores.low) != reliability_bin(scores.high)
    unknown = float(amount @ width + 2 * amount[astride].sum()) / total
    bracket = Interval(max(0.0, value - unknown), min(1.0, value + unknown)) if unknown > 0 else None
    if not scores.sampled:
        return Measure(value, None, bracket)
    spread = np.sqrt(np.maximum(binned.rate * (1 - binned.rate), 1 / (4 * binned.size)) / binned.size)
    z = normal_quantile((1 + confidence) / 2)
    # The mean of |N(gap, spread)| less the gap, in units of the spread.
    ratio = np.maximum(0.0, np.abs(gap) / spread - z)
    noise = np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + ratio * (2 * normal_cdf(ratio) - 1) - ratio
    bias = float(share @ (spread * noise))
    half = z * float(np.sqrt((share**2) @ spread**2))
    return Measure(value, Interval(max(0.0, value - bias - half), min(1.0, value + half)), bracket)


def _roc(scores: LabeledScores) -> list[tuple[float, float]]:
    """False and true positive rates from the highest threshold to the lowest, at no more than 100 of them."""
    positive, negative = float(scores.positive.sum()), float(scores.negative.sum())
    if positive == 0 or negative == 0:
        return []
    rates = [
        np.append(0.0, np.cumsum(side[::-1]) / total)
        for side, total in ((scores.negative, negative), (scores.positive, positive))
    ]
    if len(rates[0]) <= _MOST_POINTS:
        points = np.arange(len(rates[0]))
    else:  # evenly along the curve, not along the thresholds
        along = (rates[0] + rates[1]) / 2
        points = np.unique(np.searchsorted(along, np.linspace(0.0, along[-1], _MOST_POINTS)).clip(0, len(along) - 1))
        points = np.union1d(points, [0, len(along) - 1])
    return [
        (min(1.0, float(false_rate)), min(1.0, float(true_rate)))
        for false_rate, true_rate in zip(*(side[points] for side in rates), strict=True)
    ]


def _gaps(groups: Sequence[GroupFigures], confidence: float) -> Iterator[tuple[str, Measure]]:
    """The largest less the smallest of each figure, by bounds that are valid for all groups at once."""
    wider = normal_quantile(1 - (1 - confidence) / (2 * len(groups))) / normal_quantile((1 + confidence) / 2)
    for name in ("base_rate", "auc", "accuracy", "log_loss", "calibration_error"):
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
            interval = Interval(max(0.0, max(lows) - min(highs)), max(value, max(highs) - min(lows)))
        yield name, Measure(value, interval)
