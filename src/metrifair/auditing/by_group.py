"""Figures of each group besides distances: base rate, AUC, accuracy, log loss, calibration, ROC curve.

Everything is read off one table: how many positive and negative samples lie at each score, ascending. For rows in
memory that is exact. Of rows that were counted only the ends of each bin are known, between which their scores lie:
then figures come with brackets. Intervals are Wilson's for shares, by DeLong's errors for the AUC.
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
from metrifair.auditing.sample import AuditSample, members_of, sets_of
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import headline_groups, wilson_interval
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.problem.values import canonical_values
from metrifair.support.arrays import Floats, Integers
from metrifair.support.special import normal_cdf, normal_quantile

BINS = 10
"""Of the reliability curve: of equal width, as in scikit-learn's calibration_curve."""

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


def by_group_of(sample: AuditSample, selection: Selection | None, request: Request) -> list[ByGroup]:
    """The figures of every attribute's groups within each stratum; none without two labels and one score.

    ``selection`` is None where nothing is decided. Scores that are decisions are no probabilities: they have no log
    loss and no calibration. Gaps are those of groups with enough rows, if there are two.
    """
    confidence = request.confidence
    positive, labels = sample.scored.is_positive, sample.problem.is_positive
    if positive is None or labels is None or len(sample.problem.scheme.classes) > 2 or None not in sample.predicted:
        return []
    probabilities = sample.probabilities and not sample.predicted[None].are_decisions
    found = []
    for within, conditions, inside in sets_of(STATISTICAL_PARITY, sample.problem):
        for place, attribute in enumerate(sample.problem.scheme.attributes):
            units, codes, present = members_of(sample.problem, inside, place)
            if not 2 <= len(present) <= _MAX_GROUPS:
                continue
            groups, values = [], canonical_values(attribute.values)
            for one in present:
                own = units[codes == one]
                scores = _labeled(sample, own, positive)
                right = None
                if selection is not None:
                    chosen, total = selection.amount[own], sample.amount[own]
                    right = float(np.where(labels[own], chosen, total - chosen).sum() / total.sum())
                name, size = str(attribute.groups[one]), sample.size(own)
                found_of = _figures(scores, right, confidence, probabilities=probabilities)
                groups.append(GroupFigures(name, size, **found_of, group_value=values[one]))
            small = [group.size < request.min_group_size for group in groups]
            gaps = dict(_gaps(headline_groups(groups, small), confidence))
            found.append(ByGroup(attribute.name, within, groups, gaps, conditions))
    return found


def _labeled(sample: AuditSample, units: Integers, positive: NDArray[Any]) -> LabeledScores:
    counted = sample.predicted[None]
    sides = [units[positive[units]], units[~positive[units]]]
    weights = [counted.at(own).astype(np.float64) for own in sides]
    squares = weights
    if sample.weighted and counted.starts is None and counted.amount is not None:
        amount, size = counted.amount, len(counted.values)
        squares = [np.bincount(counted.place[own], amount[own] ** 2, size).astype(np.float64) for own in sides]
    used = (weights[0] > 0) | (weights[1] > 0)
    first = counted.values if sample.binned is None else sample.binned.bins.low
    return LabeledScores(
        first[used],
        counted.values[used],
        weights[0][used],
        weights[1][used],
        (squares[0][used], squares[1][used]),
        sampled=not sample.weighted or counted.starts is None,
    )


def _figures(scores: LabeledScores, right: float | None, confidence: float, *, probabilities: bool) -> dict[str, Any]:
    total = float(scores.positive.sum() + scores.negative.sum())
    worth = total**2 / float(scores.squares[0].sum() + scores.squares[1].sum())  # samples of equal weight (Kish)

    def share(value: float) -> Measure:
        return Measure(value, wilson_interval(value, worth, confidence) if scores.sampled else None)

    return {
        "base_rate": share(float(scores.positive.sum()) / total),
        "auc": _auc(scores, confidence),
        "accuracy": None if right is None else share(min(1.0, right)),
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
    here = scores.negative / negative
    value = float(scores.positive @ (before + here / 2)) / positive
    within = np.where(scores.low < scores.high, here, 0.0)  # in an unknown order
    bracket = None
    if within.any():
        unknown = float(scores.positive @ within) / positive / 2
        bracket = Interval(max(0.0, value - unknown), min(1.0, value + unknown))
    if not scores.sampled:
        return Measure(value, None, bracket)
    after = 1 - np.cumsum(scores.positive) / positive  # positives above each score
    placements = before + here / 2, after + scores.positive / positive / 2
    variance = 0.0
    for place, total, squares in zip(placements, (positive, negative), scores.squares, strict=True):
        worth = total**2 / float(squares.sum())
        variance += float(squares @ (place - value) ** 2) / total**2 * (worth / max(1.0, worth - 1))
    fewest = min(total**2 / float(own.sum()) for total, own in zip((positive, negative), scores.squares, strict=True))
    worth = value * (1 - value) / variance if variance > 0 and 0 < value < 1 else fewest
    return Measure(value, wilson_interval(value, worth, confidence), bracket)


def _log_loss(scores: LabeledScores, confidence: float) -> Measure:
    total = float(scores.positive.sum() + scores.negative.sum())

    def losses(at: Floats) -> tuple[Floats, Floats]:
        inside = np.clip(at, SMALLEST, 1 - SMALLEST)
        return -np.log(inside), -np.log1p(-inside)

    least, most = losses(scores.high)[0], losses(scores.low)[0]
    lowest, highest = losses(scores.low)[1], losses(scores.high)[1]
    ends = [
        float(scores.positive @ one + scores.negative @ other) / total
        for one, other in ((least, lowest), (most, highest))
    ]
    value = ends[0] / 2 + ends[1] / 2
    interval = None
    if scores.sampled:
        apart = [(one + other) / 2 - value for one, other in ((least, most), (lowest, highest))]
        spread = sum(float(own @ gap**2) for own, gap in zip(scores.squares, apart, strict=True)) / total**2
        half = normal_quantile((1 + confidence) / 2) * sqrt(spread)
        interval = Interval(max(0.0, value - half), value + half)
    return Measure(value, interval, Interval(*ends) if ends[0] < ends[1] else None)


def reliability_bin(scores: Floats) -> Integers:
    """Which bin of the reliability curve scores are in; a score at an edge is in the one below, as in scikit-learn.

    >>> reliability_bin(np.array([0.0, 0.1, 0.11, 1.0]))
    array([0, 0, 1, 9])
    """
    return np.searchsorted(np.linspace(0.0, 1.0, BINS + 1)[1:-1], scores)


class _Binned(NamedTuple):
    """The bins of the reliability curve: weight, mean score, rate of positives, and how many samples they are worth."""

    weight: Floats
    score: Floats
    rate: Floats
    worth: Floats


def _binned(scores: LabeledScores) -> _Binned:
    """Empty bins are left out."""
    middle = scores.low / 2 + scores.high / 2
    place = reliability_bin(middle)
    both = scores.positive + scores.negative
    weight = np.bincount(place, both, BINS).astype(np.float64)
    used = weight > 0
    score = np.bincount(place, both * middle, BINS)[used] / weight[used]
    rate = np.bincount(place, scores.positive, BINS)[used] / weight[used]
    squares = np.bincount(place, scores.squares[0] + scores.squares[1], BINS)[used]
    return _Binned(weight[used], score, rate, weight[used] ** 2 / squares)


def reliability(scores: LabeledScores, confidence: float) -> list[ReliabilityBin]:
    """The reliability curve."""
    binned = _binned(scores)
    return [
        ReliabilityBin(
            float(score),
            float(rate),
            wilson_interval(float(rate), float(worth), confidence) if scores.sampled else None,
            float(weight),
        )
        for weight, score, rate, worth in zip(*binned, strict=True)
    ]


def _calibration_error(scores: LabeledScores, confidence: float) -> Measure:
    """The mean over all samples of how far the mean score of their bin is from its rate of positives.

    Noise makes it larger. The lower end of the interval subtracts the mean of that noise, computed at the smallest gap
    that each bin allows at this confidence: at the observed gaps, 3 in 10 calibrated models would seem miscalibrated.
    """
    binned = _binned(scores)
    total = float(binned.weight.sum())
    share, gap = binned.weight / total, binned.score - binned.rate
    value = float(share @ np.abs(gap))
    both, width = scores.positive + scores.negative, scores.high - scores.low
    astride = reliability_bin(scores.low) != reliability_bin(scores.high)
    unknown = float(both @ width + 2 * both[astride].sum()) / total
    bracket = Interval(max(0.0, value - unknown), min(1.0, value + unknown)) if unknown > 0 else None
    if not scores.sampled:
        return Measure(value, None, bracket)
    spread = np.sqrt(np.maximum(binned.rate * (1 - binned.rate), 1 / (4 * binned.worth)) / binned.worth)
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
        chosen = np.arange(len(rates[0]))
    else:  # evenly along the curve, not along the thresholds
        along = (rates[0] + rates[1]) / 2
        chosen = np.unique(np.searchsorted(along, np.linspace(0.0, along[-1], _MOST_POINTS)).clip(0, len(along) - 1))
        chosen = np.union1d(chosen, [0, len(along) - 1])
    return [
        (min(1.0, float(one)), min(1.0, float(other)))
        for one, other in zip(*(side[chosen] for side in rates), strict=True)
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
