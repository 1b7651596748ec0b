"""Decisions at a threshold: rates by group, their differences, and the four-fifths ratio; by counting."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.atoms import Floats, Integers
from metrifair.auditing.intervals import Rows
from metrifair.errors import DataError
from metrifair.results import Decisions, GroupRates, Interval, Note

DEFAULT_THRESHOLD = 0.5  # of probabilities
Threshold: TypeAlias = float | Literal["auto"] | None
"""Scores from here on are decisions for; "auto": 0.5 for probabilities, none for other scores; None: no decisions."""

_FEWEST = 2  # samples of a group


def deciding(threshold: Threshold, *, decisions: bool, probabilities: bool) -> tuple[float | None, list[Note]]:
    """The threshold at which decisions are made; None where there are none, with a note where that may surprise.

    ``decisions`` says that the scores are 0 and 1, decisions themselves.

    >>> deciding("auto", decisions=False, probabilities=True), deciding(0.5, decisions=False, probabilities=False)
    ((0.5, []), (0.5, []))
    """
    if decisions:
        return DEFAULT_THRESHOLD, []
    if threshold != "auto":
        return threshold, []
    if probabilities:
        return DEFAULT_THRESHOLD, []
    text = (
        f"No decisions were looked at: the scores are no probabilities, so {DEFAULT_THRESHOLD} is no natural "
        "threshold for them. Pass threshold=... to see selection rates."
    )
    return None, [Note("exactness", text)]


def decided(score: Floats, threshold: float | None) -> NDArray[np.bool_]:
    """True where a sample is selected: a score at or above the threshold. Scores 0 and 1 are decisions already.

    Rates are those of decisions. Of continuous scores there are none: "the share of people with score 1" would be a
    number without meaning, so without a threshold such scores are refused.

    >>> decided(np.array([0.2, 0.5, 0.9]), 0.5)
    array([False,  True,  True])
    >>> decided(np.array([0.2, 0.5, 0.9]), None)
    Traceback (most recent call last):
    metrifair.errors.DataError: rates are those of decisions, and the scores are continuous (such as 0.2); ...
    """
    if are_decisions(score):
        return np.asarray(score == 1)
    if threshold is None:
        other = score[(score != 0) & (score != 1)][0]
        raise DataError(
            f"rates are those of decisions, and the scores are continuous (such as {float(other)!r}); pass a threshold"
        )
    return np.asarray(score >= threshold)


def are_decisions(score: Floats) -> bool:
    """True where there are no other scores than 0 and 1."""
    return bool(((score == 0) | (score == 1)).all())


def counted(
    groups: int,
    codes: Integers,
    selected: NDArray[np.bool_],
    positive: NDArray[np.bool_] | None,
    weights: Floats | None,
) -> Floats:
    """How many samples (or how much weight) of each group, label and decision: (groups, labels, 2).

    Without labels there is one; samples of unknown groups (-1) are left out.
    """
    labels = 1 if positive is None else 2
    cell = codes * (2 * labels) + selected
    if positive is not None:
        cell += 2 * positive
    known = codes >= 0
    if not known.all():
        cell, weights = cell[known], None if weights is None else weights[known]
    return np.bincount(cell, weights, groups * labels * 2).astype(np.float64).reshape(groups, labels, 2)


def decisions_of(
    counts: Floats,
    names: Sequence[str],
    sizes: Sequence[int],
    *,
    attribute: str,
    within: str,
    threshold: float,
    ratio_interval: Interval | None = None,
) -> Decisions:
    """Rates and their differences from ``counted`` samples; groups without samples are left out."""
    rates = [
        _rates(name, int(size), table)
        for name, size, table in zip(names, sizes, counts, strict=True)
        if table.sum() > 0
    ]
    selection = [rate.selection_rate for rate in rates]
    ratio = _ratio(counts.sum(1))
    return Decisions(
        attribute,
        within,
        threshold,
        rates,
        selection_difference=max(selection) - min(selection),
        selection_ratio=ratio,
        selection_ratio_interval=None if ratio is None else ratio_interval,
        true_positive_difference=_range([rate.true_positive_rate for rate in rates]),
        false_positive_difference=_range([rate.false_positive_rate for rate in rates]),
        accuracy_difference=_range([rate.accuracy for rate in rates]),
    )


def _ratio(tables: Floats) -> float | None:
    """The lowest selection rate over the highest, of (groups, 2) counts; by fractions, so that 4/5 comes out as 0.8."""
    rates = [Fraction(table[1]) / (Fraction(table[0]) + Fraction(table[1])) for table in tables if table.sum() > 0]
    return float(min(rates) / max(rates)) if max(rates) > 0 else None


def _rates(name: str, size: int, table: Floats) -> GroupRates:
    """From the weight by label and decision, (labels, 2)."""
    selected = float(table[:, 1].sum() / table.sum())
    if len(table) == 1:
        return GroupRates(name, size, selected)
    accuracy = float((table[0, 0] + table[1, 1]) / table.sum())
    false_positive, true_positive = (float(row[1] / row.sum()) if row.sum() > 0 else None for row in table)
    return GroupRates(name, size, selected, accuracy, true_positive, false_positive)


def _range(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return max(known) - min(known) if known else None


def ratio_interval(
    groups: Sequence[Rows | Floats], *, confidence: float, resamples: int, generator: np.random.Generator
) -> Interval | None:
    """Bounds of the four-fifths ratio; None where nobody is selected, or a group has a single sample.

    A group is its two counts (not selected, selected), or its rows with their decision as place, where they count
    differently. The ratio is the smallest over all pairs of groups, and picked because it is small: so every pair is
    given bounds, all of which hold at once, and the smallest lower and the smallest upper ones are taken. Rates are
    drawn from the beta distribution of Jeffreys: unlike resamples, it knows that nobody of few is not nobody at all.
    Logarithms of two rates are taken together as independent errors are, those to one side and to the other apart.
    The ratio of the sample itself lies within the interval.
    """
    counts = np.stack([_effective(group) for group in groups])
    sample = _ratio(counts)
    if not resamples or sample is None or counts.sum(1).min() < _FEWEST:
        return None
    rates = np.log(generator.beta(counts[:, 1] + 0.5, counts[:, 0] + 0.5, size=(resamples, len(counts))))
    centre = np.log((counts[:, 1] + 0.5) / (counts.sum(1) + 1))
    ends = np.quantile(rates, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    below, above = _stretch(len(counts), confidence) * np.maximum([centre - ends[0], ends[1] - centre], 0.0)
    lows, highs = [], []
    for at in range(len(counts)):
        least, most = (np.delete(of, at) for of in (below, above))
        apart = np.delete(centre, at) - centre[at]
        lows.append((apart - np.hypot(least, above[at])).min())
        highs.append((apart + np.hypot(most, below[at])).min())
    return Interval(min(float(np.exp(min(lows))), sample), max(float(np.exp(min(*highs, 0.0))), sample))


def _stretch(groups: int, confidence: float) -> float:
    """How much wider bounds are that hold for all pairs of groups, than for one."""
    pairs = groups * (groups - 1) / 2
    one, all_pairs = (NormalDist().inv_cdf(1 - (1 - confidence) / (2 * number)) for number in (1, pairs))
    return all_pairs / one


def _effective(group: Rows | Floats) -> Floats:
    """Counts (not selected, selected) of equal samples that tell as much as weighted ones."""
    if not isinstance(group, Rows):
        return group
    weights = group.weights / group.weights.max()
    total = np.bincount(group.place, weights, 2)
    return np.asarray(total * (weights.sum() / (weights**2).sum()))
