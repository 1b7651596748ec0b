"""Decisions at a threshold: rates by group, their differences, and the four-fifths ratio; by counting."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from metrifair.auditing.distribution import Floats
from metrifair.auditing.request import Threshold
from metrifair.auditing.sample import AuditSample, members_of, sets_of
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.results import Decisions, GroupRates, Interval

DEFAULT_THRESHOLD = 0.5  # of probabilities
_FEWEST = 2  # samples of a group


def threshold_for(threshold: Threshold, *, decisions: bool, probabilities: bool) -> float | None:
    """The threshold at which decisions are made; None where there are none.

    ``decisions`` says that the scores are 0 and 1, decisions themselves.

    >>> threshold_for("auto", decisions=False, probabilities=True), threshold_for(2, decisions=True, probabilities=True)
    (0.5, 0.5)
    """
    if decisions:
        return DEFAULT_THRESHOLD
    if threshold == "auto":
        return DEFAULT_THRESHOLD if probabilities else None
    return threshold


def are_decisions(score: Floats) -> bool:
    """True where there are no other scores than 0 and 1."""
    return bool(((score == 0) | (score == 1)).all())


def decisions_of(
    sample: AuditSample,
    selected: NDArray[Any],
    *,
    threshold: float,
    confidence: float,
    resamples: int,
    generator: np.random.Generator,
) -> list[Decisions]:
    """Decisions by attribute within each stratum; ``selected`` is how much of each unit is selected."""
    problem, found = sample.problem, []
    positive = problem.is_positive if len(problem.scheme.classes) <= 2 else None
    labels = 1 if positive is None else 2
    for within, inside in sets_of(STATISTICAL_PARITY, problem):
        for place, attribute in enumerate(problem.scheme.attributes):
            units, code, present = members_of(problem, inside, place)
            if len(present) < 2:
                continue
            own = slice(None) if len(units) == len(problem) else units  # everyone need not be copied
            cell = code if positive is None else code * 2 + positive[own]
            rows, weight = (None if part is None else part[own] for part in (sample.rows, sample.weight))
            shape = len(attribute.groups), labels
            total = np.bincount(cell, rows if weight is None else weight, shape[0] * labels).reshape(shape)
            chosen = np.bincount(cell, selected[own], shape[0] * labels).reshape(shape)
            counts = np.stack([total - chosen, chosen], -1).astype(np.float64)[present]
            sizes = np.bincount(code, rows, shape[0])[present]
            pooled = counts.sum(1)
            if weight is not None:
                pooled = effective_counts(pooled, np.bincount(code, weight**2, shape[0])[present])
            names = [str(attribute.groups[group]) for group in present]
            found.append(
                _decisions(
                    [_rates(*group) for group in zip(names, sizes.tolist(), counts, strict=True)],
                    attribute=attribute.name,
                    within=within,
                    threshold=threshold,
                    ratio=_ratio(counts.sum(1)),
                    interval=ratio_interval(pooled, confidence=confidence, resamples=resamples, generator=generator),
                )
            )
    return found


def _decisions(
    rates: list[GroupRates],
    *,
    attribute: str,
    within: str,
    threshold: float,
    ratio: float | None,
    interval: Interval | None,
) -> Decisions:
    selection = [rate.selection_rate for rate in rates]
    return Decisions(
        attribute,
        within,
        threshold,
        rates,
        selection_difference=max(selection) - min(selection),
        selection_ratio=ratio,
        selection_ratio_interval=None if ratio is None else interval,
        true_positive_difference=_range([rate.true_positive_rate for rate in rates]),
        false_positive_difference=_range([rate.false_positive_rate for rate in rates]),
        accuracy_difference=_range([rate.accuracy for rate in rates]),
    )


def _rates(name: str, size: float, table: Floats) -> GroupRates:
    """From the weight by label and decision, (labels, 2)."""
    selected = float(table[:, 1].sum() / table.sum())
    if len(table) == 1:
        return GroupRates(name, int(size), selected)
    accuracy = float((table[0, 0] + table[1, 1]) / table.sum())
    false_positive, true_positive = (float(row[1] / row.sum()) if row.sum() > 0 else None for row in table)
    return GroupRates(name, int(size), selected, accuracy, true_positive, false_positive)


def _range(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return max(known) - min(known) if known else None


def _ratio(tables: Floats) -> float | None:
    """The lowest selection rate over the highest, of (groups, 2) counts; by fractions, so that 4/5 comes out as 0.8."""
    rates = [Fraction(table[1]) / (Fraction(table[0]) + Fraction(table[1])) for table in tables]
    return float(min(rates) / max(rates)) if max(rates) > 0 else None


def effective_counts(weights: Floats, squares: NDArray[Any]) -> Floats:
    """Counts (groups, 2) of equal samples that tell as much as those of these sums of weights, and of squares."""
    found: Floats = weights * (weights.sum(1) / squares)[:, None]
    return found


def ratio_interval(
    counts: Floats, *, confidence: float, resamples: int, generator: np.random.Generator
) -> Interval | None:
    """Bounds of the four-fifths ratio; None where nobody is selected, or a group has a single sample.

    ``counts`` are (groups, 2): not selected, selected. The ratio is the smallest over all pairs of groups, and picked
    because it is small: so every pair is given bounds, all of which hold at once, and the smallest lower and the
    smallest upper ones are taken. Rates are drawn from the beta distribution of Jeffreys: unlike resamples, it knows
    that nobody of few is not nobody at all. Logarithms of two rates are taken together as independent errors are,
    those to one side and to the other apart. The ratio of the sample itself lies within the interval.
    """
    sample = _ratio(counts)
    if not resamples or sample is None or counts.sum(1).min() < _FEWEST:
        return None
    rates = np.log(generator.beta(counts[:, 1] + 0.5, counts[:, 0] + 0.5, size=(resamples, len(counts))))
    centre = np.log((counts[:, 1] + 0.5) / (counts.sum(1) + 1))
    ends = np.quantile(rates, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    # How much wider bounds are that hold for all pairs of groups, than for one.
    pairs = len(counts) * (len(counts) - 1) / 2
    one, all_pairs = (ndtri(1 - (1 - confidence) / (2 * number)) for number in (1, pairs))
    below, above = all_pairs / one * np.maximum([centre - ends[0], ends[1] - centre], 0.0)
    lows, highs = [], []
    for at in range(len(counts)):
        least, most = (np.delete(of, at) for of in (below, above))
        apart = np.delete(centre, at) - centre[at]
        lows.append((apart - np.hypot(least, above[at])).min())
        highs.append((apart + np.hypot(most, below[at])).min())
    return Interval(min(float(np.exp(min(lows))), sample), max(float(np.exp(min(*highs, 0.0))), sample))
