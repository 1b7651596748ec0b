"""Intervals of figures by group: DeLong's errors by enumeration, calibration by a folded
normal, and simulation.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import foldnorm, norm

from tests.seams.auditing import (
    GroupFigures,
    LabeledScores,
    Measure,
    _auc,
    _calibration_error,
    _gaps,
    _log_loss,
)
from tests.seams.figures import Interval

Z = float(norm.isf(0.025))


def labeled(
    score: np.ndarray, label: np.ndarray, weight: np.ndarray | None = None
) -> LabeledScores:
    """Rows counted at their distinct scores."""
    weight = np.ones(len(score)) if weight is None else weight
    values, place = np.unique(score, return_inverse=True)
    sums = [
        np.bincount(place, power * (label == side), len(values))
        for side in (1, 0)
        for power in (weight, weight**2)
    ]
    return LabeledScores(values, values, sums[0], sums[2], (sums[1], sums[3]))


def wilson(share: float, worth: float) -> tuple[float, float]:
    """The two shares p at which |p - share| is 1.96 standard errors: roots of a quadratic
    equation.
    """
    roots = np.roots([1 + Z**2 / worth, -2 * share - Z**2 / worth, share**2])
    return float(max(0.0, roots.min().real)), float(min(1.0, roots.max().real))


@pytest.mark.oracle("Measure.interval")
@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 6), st.booleans(), st.integers(1, 3)), min_size=5, max_size=14
    ),
    weighted=st.booleans(),
)
def test_the_interval_of_an_auc_has_delongs_error(
    rows: list[tuple[int, bool, int]], weighted: bool
) -> None:
    """Few rows and many ties, so that n - 1 differs from n; placements of every row, pair by
    pair.
    """
    score, label, weight = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
    weight = weight if weighted else np.ones(len(score))
    sides = [label == 1, label == 0]
    assume(min(own.sum() for own in sides) >= 2)
    right = (score[sides[0]][:, None] > score[sides[1]]) + 0.5 * (
        score[sides[0]][:, None] == score[sides[1]]
    )
    shares = [weight[own] / weight[own].sum() for own in sides]
    assume(min(1 / (share**2).sum() for share in shares) >= 2)
    value = float(shares[0] @ right @ shares[1])
    placements, variance = (right @ shares[1], shares[0] @ right), 0.0
    for place, share in zip(placements, shares, strict=True):
        worth = 1 / (share**2).sum()  # rows of equal weight; n without weights
        variance += float(share**2 @ (place - value) ** 2) * worth / (worth - 1)
    if not weighted:  # as it is usually written
        own = [np.var(place, ddof=1) / len(place) for place in placements]
        assert variance == pytest.approx(sum(own))
    found = _auc(labeled(score, label, weight), 0.95)
    assert found is not None
    assert found.interval is not None
    assert found.value == pytest.approx(value)
    if variance > 1e-12 and 0 < value < 1:
        expected = wilson(value, value * (1 - value) / variance)
        assert (found.interval.low, found.interval.high) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_noise_is_taken_off_the_lower_end_of_a_calibration_error(weighted: bool) -> None:
    generator = np.random.default_rng(0)
    score = generator.random(400).round(2)
    label = (generator.random(400) < score**1.3).astype(int)
    weight = generator.uniform(0.5, 2.0, 400) if weighted else np.ones(400)
    value = bias = variance = 0.0
    for edge in range(10):
        inside = (score > edge / 10 + 1e-9) & (score <= (edge + 1) / 10 + 1e-9) | (
            (edge == 0) & (score == 0)
        )
        own = weight[inside]
        rate, mean = np.average(label[inside], weights=own), np.average(score[inside], weights=own)
        worth = own.sum() ** 2 / (own**2).sum()
        spread = sqrt(max(rate * (1 - rate), 1 / (4 * worth)) / worth)
        share, gap = own.sum() / weight.sum(), abs(mean - rate)
        value += share * gap
        least = max(0.0, gap - Z * spread)  # the gap may be as small as that
        bias += share * (foldnorm.mean(least / spread, scale=spread) - least)
        variance += share**2 * spread**2
    found = _calibration_error(labeled(score, label, weight), 0.95)
    assert found.interval is not None
    assert found.value == pytest.approx(value)
    assert bias > 0.1 * value
    assert found.interval.low == pytest.approx(max(0.0, value - bias - Z * sqrt(variance)))
    assert found.interval.high == pytest.approx(value + Z * sqrt(variance))


def test_calibrated_scores_are_seldom_said_to_be_miscalibrated() -> None:
    """Noise alone makes the error of 300 calibrated rows about 0.07, which the interval must
    not exclude from 0.
    """
    generator, excluded = np.random.default_rng(1), 0
    for _ in range(300):
        score = generator.random(300)
        found = _calibration_error(
            labeled(score, (generator.random(300) < score).astype(int)), 0.95
        )
        assert found.interval is not None
        assert found.value > 0.02
        excluded += found.interval.low > 0
    assert excluded <= 0.03 * 300


def test_the_interval_of_a_log_loss_is_that_of_a_weighted_mean() -> None:
    generator = np.random.default_rng(3)
    score, weight = (
        generator.random(50).round(1).clip(0.1, 0.9),
        generator.integers(1, 5, 50).astype(float),
    )
    label = (generator.random(50) < score).astype(int)
    losses = -np.log(np.where(label == 1, score, 1 - score))
    share = weight / weight.sum()
    error = sqrt(float(share**2 @ (losses - share @ losses) ** 2))
    found = _log_loss(labeled(score, label, weight), 0.95)
    assert found.interval is not None
    assert found.value == pytest.approx(float(share @ losses))
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (found.value - Z * error, found.value + Z * error)
    )


def test_the_interval_of_a_gap_holds_for_all_groups_together() -> None:
    """Three groups: the bounds of each hold at 1 - 0.05 / 3, and the gap is between the
    farthest of them.
    """
    figures = {"a": (0.5, 0.45, 0.56), "b": (0.7, 0.6, 0.75), "c": (0.66, 0.6, 0.7)}
    groups = [
        GroupFigures(name, 50, Measure(value, Interval(low, high)))
        for name, (value, low, high) in figures.items()
    ]
    ((name, gap),) = _gaps(groups, 0.95)
    wider = norm.isf(0.05 / 6) / Z
    assert name == "base_rate"
    assert gap.value == pytest.approx(0.2)
    assert gap.interval is not None
    assert gap.interval.low == pytest.approx((0.66 - wider * 0.06) - (0.5 + wider * 0.06))
    assert gap.interval.high == pytest.approx((0.7 + wider * 0.05) - (0.5 - wider * 0.05))
