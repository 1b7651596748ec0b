"""Bounds of impact ratios against an oracle written from the definition, and against simulated
tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, norm

from tests.seams.figures import (
    GroupRates,
    Interval,
    RatioRule,
    compare_rates,
    effective_counts,
    ratio_intervals,
)

CONFIDENCE = 0.95


def log_rate(no: float, yes: float) -> tuple[float, float, float]:
    """The logarithm of a rate, and its errors below and above, by quantiles of Jeffreys'
    posterior.
    """
    center = log((yes + 0.5) / (yes + no + 1))
    low, high = (log(beta.ppf(share, yes + 0.5, no + 0.5)) for share in (0.025, 0.975))
    return center, max(0.0, center - low), max(0.0, high - center)


def pair_bounds(
    group: Sequence[float], other: Sequence[float], pairs: float
) -> tuple[float, float]:
    """Bounds of one ratio, one of ``pairs`` whose bounds hold together."""
    (rate, below, above), (base, base_below, base_above) = log_rate(*group), log_rate(*other)
    wider = norm.isf(0.025 / pairs) / norm.isf(0.025)
    # A ratio is too low where its numerator is, or its denominator is too high.
    low = rate - base - wider * sqrt(below**2 + base_above**2)
    return exp(low), exp(rate - base + wider * sqrt(above**2 + base_below**2))


def expected(
    counts: np.ndarray, reference: int | None
) -> tuple[list[tuple[float, float] | None], tuple[float, float]]:
    """Bounds of every ratio and of the smallest, pair by pair."""
    size = len(counts)
    rates = counts[:, 1] / counts.sum(1)
    base = rates.max() if reference is None else rates[reference]

    def bounds(at: int, pairs: float) -> tuple[float, float]:
        others = [other for other in range(size) if other != at and reference in (None, other)]
        ends = [pair_bounds(counts[at], counts[other], pairs) for other in others]
        low, high = min(end[0] for end in ends), min(end[1] for end in ends)
        high = min(1.0, high) if reference is None else high
        return min(low, rates[at] / base), max(high, rates[at] / base)

    alone = [
        None if at == reference else bounds(at, size - 1 if reference is None else 1)
        for at in range(size)
    ]
    pairs = size * (size - 1) / 2 if reference is None else size - 1
    jointly = [bounds(at, pairs) for at in range(size) if at != reference]
    smallest = rates.min() / base
    low, high = min(end[0] for end in jointly), min(1.0, *(end[1] for end in jointly))
    return alone, (min(low, smallest), max(high, smallest))


def ends(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    rows=st.lists(st.tuples(st.integers(0, 90), st.integers(1, 90)), min_size=2, max_size=5),
    spread=st.sampled_from([0.0, 0.7]),
    named=st.booleans(),
)
def test_every_bound_is_that_of_the_definition(
    rows: list[tuple[int, int]], spread: float, named: bool
) -> None:
    """Two to five groups, ties among them, with weights and without, a named reference and the
    highest rate.
    """
    counts = np.array(rows, dtype=float) + 1
    if spread:
        generator = np.random.default_rng(len(rows))
        weights = [generator.lognormal(0, spread, int(sum(row)) + 2) for row in rows]
        counts = np.array(
            [
                [own[int(yes) + 1 :].sum(), own[: int(yes) + 1].sum()]
                for own, (_, yes) in zip(weights, rows, strict=True)
            ]
        )
        counts = effective_counts(counts, np.array([(own**2).sum() for own in weights]))
    reference = 0 if named else None
    rates = counts[:, 1] / counts.sum(1)
    ratios = (rates / (rates[0] if named else rates.max())).tolist()
    alone, smallest = ratio_intervals(counts, ratios, confidence=CONFIDENCE, reference=reference)
    each, jointly = expected(counts, reference)
    for one, other in zip(alone, each, strict=True):
        assert (one is None) == (other is None)
        assert other is None or ends(one) == pytest.approx(other, rel=1e-9)
    assert ends(smallest) == pytest.approx(jointly, rel=1e-9)


def interval_of(selected: np.ndarray, sizes: np.ndarray, group: int, reference: str) -> Interval:
    counts = np.stack([sizes - selected, selected], axis=1).astype(float)
    rows = zip(counts, sizes.tolist(), strict=True)
    rates = [GroupRates(str(at), n, yes / n) for at, ((_, yes), n) in enumerate(rows)]
    found = (
        compare_rates(
            rates, counts, all_rows=int(sizes.sum()), rule=RatioRule(reference, min_group_share=0.0)
        )
        .rates[group]
        .ratio_interval
    )
    assert found is not None
    return found


def test_the_interval_of_a_ratio_allows_for_the_choice_of_the_highest_rate() -> None:
    """Ten equal rates: the highest one of a sample is high by chance, and the interval still
    includes 1.
    """
    generator, sizes, repeats = np.random.default_rng(0), np.full(10, 200), 400
    covered = sum(
        interval_of(generator.binomial(sizes, 0.3), sizes, 0, "highest").high >= 1 - 1e-12
        for _ in range(repeats)
    )
    # 0.75 with an interval for a reference that was named beforehand
    assert covered / repeats >= 0.93


@pytest.mark.extended
@pytest.mark.parametrize(
    ("shares", "sizes"), [((0.05, 0.5), (60, 2000)), ((0.5, 0.05), (2000, 60))]
)
def test_each_end_misses_the_truth_as_often_as_the_other(
    shares: tuple[float, float], sizes: tuple[int, int]
) -> None:
    """The rate of a small group is skewed: each end takes the error on its own side."""
    generator, truth, repeats = np.random.default_rng(1), shares[0] / shares[1], 1500
    missed = np.zeros(2)
    for _ in range(repeats):
        selected = generator.binomial(sizes, shares)
        if selected.min() == 0:
            continue
        found = interval_of(selected, np.array(sizes), 0, "1")
        missed += [truth < found.low, truth > found.high]
    assert (missed / repeats <= 0.04).all(), missed / repeats


def test_two_rows_are_the_fewest_of_an_interval() -> None:
    """Jeffreys' posterior of two rows is wide and still one; of a single row no interval is
    given.
    """
    found = [
        ratio_intervals(np.array([[n - 1.0, 1.0], [5.0, 10.0]]), [0.75, 1.0], confidence=0.95)[1]
        for n in (1, 2)
    ]
    assert found[0] is None
    assert ends(found[1]) == pytest.approx(expected(np.array([[1.0, 1.0], [5.0, 10.0]]), None)[1])
