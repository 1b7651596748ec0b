"""What counts of scores in intervals say of the figures of the original scores: certain bounds.

A score that is counted in an interval may be anywhere in it. Rows that were withheld may have any
score. The bounds hold for every such set of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf, log, sqrt
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from metrifair.figures.fold_gaps import BRIDGE, FEWEST_IN_FOLD, mean_square
from metrifair.figures.intervals import Interval
from metrifair.support.arrays import Booleans, Floats, Integers, distinct_codes, sums_upto

_LARGEST_VARIANCE = 0.25  # of scores with two values
_LEAST_LIKELIHOOD = float(np.finfo(np.float64).eps)
DECIDED_FROM = 0.5
"""Scores from here on are positive decisions."""

ScoreKind: TypeAlias = Literal["constant", "decisions", "two_values", "many"]
"""How many distinct scores there are: one, 0 and 1, two others, or more."""

CountedUtility: TypeAlias = Literal["accuracy", "balanced_accuracy", "auc", "log_loss", "brier"]
COUNTED_UTILITIES: tuple[CountedUtility, ...] = (
    "accuracy",
    "balanced_accuracy",
    "auc",
    "log_loss",
    "brier",
)
"""The utilities that counts of scores bound."""


@dataclass(frozen=True, eq=False)
class IntervalCounts:
    """Rows by fold, label and interval of scores: one entry for each count."""

    low: Floats
    high: Floats  # not part of the interval, except for the largest possible score
    rows: Integers
    fold: Integers
    positive: Booleans  # whether the label is the positive one
    withheld: int = 0  # at most so many further rows, of any score, fold and label

    def inside(self, chosen: Booleans) -> IntervalCounts:
        """Some of the entries."""
        return IntervalCounts(
            low=self.low[chosen],
            high=self.high[chosen],
            rows=self.rows[chosen],
            fold=self.fold[chosen],
            positive=self.positive[chosen],
            withheld=self.withheld,
        )

    @cached_property
    def total(self) -> int:
        """The number of rows that are counted."""
        return int(self.rows.sum())

    @cached_property
    def folds(self) -> int:
        """The number of folds."""
        return int(self.fold.max(initial=0)) + 1


class CountedSides(NamedTuple):
    """Whether each entry is on the left or on the right side of a comparison."""

    left: Booleans
    right: Booleans


def score_kind(scores: Floats) -> ScoreKind:
    """How many distinct scores there are.

    >>> score_kind(np.array([0.0, 1.0, 1.0])), score_kind(np.array([0.2, 0.3, 0.4]))
    ('decisions', 'many')
    """
    values = np.unique(scores)
    if len(values) == 1:
        return "constant"
    if len(values) > 2:
        return "many"
    if values.tolist() == [0.0, 1.0]:
        return "decisions"
    return "two_values"


def distance_bounds(
    left: IntervalCounts, right: IntervalCounts, kind: ScoreKind = "many"
) -> Interval:
    """Bounds of the Kolmogorov distance of two samples.

    >>> entries = [np.array(part) for part in ([0.0, 0.5], [0.5, 1.0], [2, 6], [0, 0], [True, True])]
    >>> left = IntervalCounts(*entries)
    >>> distance_bounds(left, left)
    Interval(low=0.0, high=0.75)
    >>> distance_bounds(left, left, "decisions")
    Interval(low=0.0, high=0.0)
    """
    if not left.total or not right.total:
        return Interval(0.0, 1.0)
    ends = np.unique(
        np.concatenate([left.low, left.high, right.low, right.high]),
    )
    if kind == "decisions":
        ends = np.array([DECIDED_FROM])
    shares = [_shares_below(side, ends) for side in (left, right)]
    (least, before, until), (other_least, other_before, other_until) = shares
    if kind == "decisions":
        until = before
        other_until = other_before
    high = max(
        (until - other_least).max(),
        (other_until - least).max(),
    )
    low = max(
        (least - other_before).max(),
        (other_least - before).max(),
    )
    moved = sum(side.withheld / (side.total + side.withheld) for side in (left, right))
    return Interval(
        max(0.0, float(low) - moved),
        min(1.0, float(high) + moved),
    )


def _shares_below(side: IntervalCounts, ends: Floats) -> tuple[Floats, Floats, Floats]:
    """The shares of rows that are below each end: at least, and at most; and at most just above
    the end.
    """
    least = _shares(ends, side.high, side.rows, "right")
    until = _shares(ends, side.low, side.rows, "right")
    before = _shares(ends, side.low, side.rows, "left")
    return least, before, until


def _shares(ends: Floats, places: Floats, rows: Integers, side: Literal["left", "right"]) -> Floats:
    """The shares of rows whose places are up to each end; with "left", before it."""
    shares: Floats = _rows_below(ends, places, rows, side) / rows.sum()
    return shares


def _rows_below(
    ends: Floats, places: Floats, rows: Integers, side: Literal["left", "right"]
) -> Integers:
    """The number of rows whose places are below each end; up to it, with ``side="right"``."""
    order = np.argsort(places, kind="stable")
    upto = sums_upto(rows[order])
    found = np.searchsorted(places[order], ends, side=side)
    return upto[found]


def square_bounds(counts: IntervalCounts, sides: CountedSides, kind: ScoreKind) -> Interval:
    """Bounds of the squared gap without chance of one comparison, which may be negative."""
    left = counts.inside(sides.left)
    right = counts.inside(sides.right)
    if not left.total or not right.total:
        return Interval(-1.0, 1.0)
    pooled = _squared(distance_bounds(left, right, kind))
    factors = _factors(counts, sides, kind)
    shares = _shares_squared(left, right)
    chance = _chance(factors, shares)
    of_all = Interval(
        low=pooled.low - chance.high,
        high=pooled.high - chance.low,
    )
    within = []
    weights = []
    for fold in range(counts.folds):
        in_fold = counts.fold == fold
        weights.append(int(counts.rows[in_fold].sum()))
        found = _square_in_fold(
            left.inside(left.fold == fold),
            right.inside(right.fold == fold),
            chance,
            (factors, kind),
        )
        within.append(found)
    smallest = [_rows_in_smallest_fold(side, counts.folds) for side in (left, right)]
    known = [found for found in within if found is not None]
    if len(known) < counts.folds or min(smallest) < FEWEST_IN_FOLD:
        if counts.withheld:
            return Interval(min(of_all.low, -1.0), max(of_all.high, 1.0))
        return of_all
    # withheld rows add to the weight of any fold
    weights.append(counts.withheld)
    lows = [found.low for found in known]
    highs = [found.high for found in known]
    low = float(np.average([*lows, min(lows)], weights=weights))
    high = float(np.average([*highs, max(highs)], weights=weights))
    mean_low = (of_all.low + low) / 2
    mean_high = (of_all.high + high) / 2
    return Interval(mean_low, mean_high)


def chance_square(counts: IntervalCounts, sides: CountedSides, kind: ScoreKind) -> float:
    """The largest squared gap that chance explains on average between two sides of the counted
    rows; 0 without rows on a side.

    >>> entries = [np.array(part) for part in ([0.0, 0.5], [0.5, 1.0], [8, 2], [0, 0], [True, True])]
    >>> sides = CountedSides(np.array([True, False]), np.array([False, True]))
    >>> round(chance_square(IntervalCounts(*entries), sides, "decisions"), 3)
    0.1
    """
    left = counts.inside(sides.left)
    right = counts.inside(sides.right)
    if not left.total or not right.total:
        return 0.0
    return _chance(_factors(counts, sides, kind), _shares_squared(left, right)).high


def _rows_in_smallest_fold(side: IntervalCounts, folds: int) -> int:
    return int(np.bincount(side.fold, side.rows, folds).min())


def _square_in_fold(
    left: IntervalCounts,
    right: IntervalCounts,
    of_all: Interval,
    scores: tuple[Interval, ScoreKind],
) -> Interval | None:
    """Bounds of the squared distance in a fold without chance; None without rows on a side.

    What chance explains in a fold lies between that of all rows and that of drawn rows: the
    labels explain a part of the variance, from none to all. ``of_all`` is chance in all rows;
    ``scores`` are the factors of chance, and the kind of the scores.
    """
    if not left.total or not right.total:
        return None
    factors, kind = scores
    distance = _squared(distance_bounds(left, right, kind))
    shares = _shares_squared(left, right)
    chance = _chance(factors, shares)
    most = max(chance.high, of_all.high)
    least = min(chance.low, of_all.low)
    return Interval(
        low=distance.low - most,
        high=distance.high - least,
    )


def _chance(factors: Interval, shares: Interval) -> Interval:
    """Bounds of the mean squared distance that chance explains."""
    squares = mean_square(
        np.array([factors.low, factors.high]),
        np.array([shares.low, shares.high]),
    )
    low, high = squares.tolist()
    return Interval(low, high)


def _squared(distance: Interval) -> Interval:
    return Interval(distance.low**2, distance.high**2)


def _shares_squared(left: IntervalCounts, right: IntervalCounts) -> Interval:
    """Bounds of the sum of the squared shares of all rows of both sides."""
    high = sum(1 / side.total for side in (left, right))
    low = sum(1 / (side.total + side.withheld) for side in (left, right))
    return Interval(low, high)


def _factors(counts: IntervalCounts, sides: CountedSides, kind: ScoreKind) -> Interval:
    """Bounds of the factor of chance, as ``FoldSides.bridge_factors`` has it."""
    if kind == "many":
        return Interval(BRIDGE, BRIDGE)
    if kind == "constant":
        return Interval(0.0, 0.0)
    if kind == "two_values":
        return Interval(0.0, _LARGEST_VARIANCE)
    either = sides.left | sides.right
    total = counts.rows[either].sum()
    # of both sides, each row once
    is_upper = counts.low >= DECIDED_FROM
    is_lower = counts.high <= DECIDED_FROM
    if counts.withheld or not (is_upper | is_lower)[either].all():
        return Interval(0.0, _LARGEST_VARIANCE)
    share = float(counts.rows[either & is_upper].sum() / total)
    variance = share * (1 - share)
    return Interval(variance, variance)


def gap_bounds(squares: list[Interval]) -> Interval:
    """Bounds of the gap of the worst comparison, from those of the squares.

    >>> gap_bounds([Interval(-0.1, 0.04), Interval(0.01, 0.02)])
    Interval(low=0.1, high=0.2)
    """
    square = worst_square(squares)
    return Interval(sqrt(max(0.0, square.low)), sqrt(min(1.0, max(0.0, square.high))))


def worst_square(squares: list[Interval]) -> Interval:
    """Bounds of the square of the worst comparison, which may be negative.

    >>> worst_square([Interval(-0.1, -0.04), Interval(-0.2, -0.02)])
    Interval(low=-0.1, high=-0.02)
    """
    return Interval(
        max(square.low for square in squares),
        max(square.high for square in squares),
    )


def utility_bounds(name: CountedUtility, counts: IntervalCounts) -> Interval:
    """Bounds of a utility of the original scores; of a loss, less is better.

    >>> entries = [np.array(part) for part in ([0.0, 0.5], [0.5, 1.0], [2, 6], [0, 0], [False, True])]
    >>> utility_bounds("auc", IntervalCounts(*entries))
    Interval(low=1.0, high=1.0)
    >>> utility_bounds("brier", IntervalCounts(*entries))
    Interval(low=0.0, high=0.25)
    """
    if name == "auc":
        return _auc_bounds(counts)
    if name == "balanced_accuracy":
        certain, possible = _correct(counts)
        labels = [label for label in (counts.positive, ~counts.positive) if label.any()]
        rates = [
            _mean_bounds(
                counts.inside(label),
                certain[label],
                possible[label],
            )
            for label in labels
        ]
        if counts.withheld and len(rates) < 2:
            return Interval(0.0, 1.0)
        low = np.mean([rate.low for rate in rates])
        high = np.mean([rate.high for rate in rates])
        return Interval(float(low), float(high))
    if name == "accuracy":
        return _mean_bounds(counts, *_correct(counts))
    distance = [
        np.where(counts.positive, 1 - end, end) for end in (counts.low, np.minimum(counts.high, 1))
    ]
    least = np.clip(np.minimum(*distance), 0.0, 1.0)
    most = np.clip(np.maximum(*distance), 0.0, 1.0)
    if name == "brier":
        return _mean_bounds(counts, least**2, most**2)
    return _mean_bounds(counts, _log_loss(least), _log_loss(most), largest=-log(_LEAST_LIKELIHOOD))


def _log_loss(distance: Floats) -> Floats:
    """The loss of probabilities this far from the label."""
    likelihood = np.maximum(1 - distance, _LEAST_LIKELIHOOD)
    return -np.log(likelihood)


def _correct(counts: IntervalCounts) -> tuple[Floats, Floats]:
    """Whether the decisions of each entry are certainly correct, and whether they may be."""
    certain = np.where(
        counts.positive, counts.low >= DECIDED_FROM, counts.high <= DECIDED_FROM
    ).astype(np.float64)
    possible = np.where(
        counts.positive, counts.high > DECIDED_FROM, counts.low < DECIDED_FROM
    ).astype(np.float64)
    return certain, possible


def _mean_bounds(
    counts: IntervalCounts, least: Floats, most: Floats, largest: float = 1.0
) -> Interval:
    """Bounds of a mean over rows whose values lie between those of their entries, and 0 and
    ``largest`` for withheld ones.
    """
    total = counts.total + counts.withheld
    low = float(counts.rows @ least)
    high = float(counts.rows @ most)
    if not counts.withheld:
        return Interval(low / total, high / total)
    high_with_withheld = high + largest * counts.withheld
    return Interval(low / total, max(high_with_withheld / total, high / counts.total))


def _auc_bounds(counts: IntervalCounts) -> Interval:
    """Bounds of the share of pairs of rows of one fold with different labels that are in order."""
    least = 0.0
    most = 0.0
    pairs = 0.0
    for fold in range(counts.folds):
        inside = counts.inside(counts.fold == fold)
        certain, possible = _ordered_pairs(inside)
        least += certain
        most += possible
        positive = inside.rows[inside.positive].sum()
        negative = inside.rows[~inside.positive].sum()
        pairs += float(positive * negative)
    if not pairs:
        return Interval(0.0, 1.0)
    further = _further_pairs(counts)
    all_pairs = pairs + further
    high = (most + further) / all_pairs
    return Interval(least / all_pairs, min(1.0, high))


def _ordered_pairs(counts: IntervalCounts) -> tuple[float, float]:
    """The pairs whose positive row has the larger score: certainly, and possibly."""
    positive = counts.inside(counts.positive)
    negative = counts.inside(~counts.positive)
    certain = _rows_below(positive.low, negative.high, negative.rows, "right")
    # scores of one value lie in one interval, and count half
    possible = _rows_below(positive.high, negative.low, negative.rows, "left")
    return float(positive.rows @ certain), float(positive.rows @ possible)


def _further_pairs(counts: IntervalCounts) -> float:
    """At most so many pairs have a withheld row."""
    if not counts.withheld:
        return 0.0
    largest = float(np.bincount(counts.fold, counts.rows).max(initial=0.0))
    return counts.withheld * (largest + counts.withheld)


def exact_utility(
    name: CountedUtility, scores: Floats, rows: Integers, fold: Integers, positive: Booleans
) -> float:
    """A utility of counted scores; rankings are compared within folds.

    >>> exact_utility("auc", np.array([0.2, 0.7, 0.7]), np.array([2, 1, 1]), np.zeros(3, int),
    ...     np.array([False, False, True]))
    0.833...
    """
    correct = ((scores >= DECIDED_FROM) == positive).astype(np.float64)
    if name == "accuracy":
        return float(np.average(correct, weights=rows))
    if name == "balanced_accuracy":
        labels = [label for label in (positive, ~positive) if label.any()]
        return float(np.mean([np.average(correct[of], weights=rows[of]) for of in labels]))
    distance = np.where(positive, 1 - scores, scores)
    if name == "brier":
        return float(np.average(distance**2, weights=rows))
    if name == "log_loss":
        return float(np.average(_log_loss(distance), weights=rows))
    ordered = 0.0
    pairs = 0.0
    for number in range(int(fold.max(initial=0)) + 1):
        inside = fold == number
        place = distinct_codes(scores[inside])
        size = int(place.max(initial=0)) + 1
        rows_inside = rows[inside]
        is_positive = positive[inside]
        up = np.bincount(place, rows_inside * is_positive, size)
        down = np.bincount(place, rows_inside * ~is_positive, size)
        ordered += float(up @ (np.cumsum(down) - down / 2))
        pairs += float(up.sum() * down.sum())
    if not pairs:
        return -inf
    return ordered / pairs
