"""Decisions at a threshold: rates by group, their differences, and the four-fifths ratio; by counting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.atoms import Floats, Integers
from metrifair.auditing.intervals import Rows, resampled_counts, resampled_rows
from metrifair.errors import DataError
from metrifair.findings import Decisions, GroupRates
from metrifair.points import Interval


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
    return Decisions(
        attribute,
        within,
        threshold,
        rates,
        selection_difference=max(selection) - min(selection),
        selection_ratio=min(selection) / max(selection) if max(selection) > 0 else None,
        selection_ratio_interval=ratio_interval if max(selection) > 0 else None,
        true_positive_difference=_range([rate.true_positive_rate for rate in rates]),
        false_positive_difference=_range([rate.false_positive_rate for rate in rates]),
        accuracy_difference=_range([rate.accuracy for rate in rates]),
    )


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
    """Percentiles of the four-fifths ratio over resamples of each group; None where nobody may be selected.

    A group is its two counts (not selected, selected), or its rows with their decision as place, where they count
    differently. The ratio of the sample itself lies within the interval.
    """
    if not resamples:
        return None
    rates = []
    for group in groups:
        drawn = (
            resampled_rows(group, 2, resamples, generator)
            if isinstance(group, Rows)
            else resampled_counts(group, resamples, generator)
        )
        rates.append(drawn[:, 1] / drawn.sum(1))
    most, least = np.max(rates, axis=0), np.min(rates, axis=0)
    ratios = least[most > 0] / most[most > 0]
    if len(ratios) < resamples:
        return None
    low, high = np.quantile(ratios, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(float(low), float(high))
