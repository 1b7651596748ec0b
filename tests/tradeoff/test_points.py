"""Pareto part and area: against brute force, by hand, and on curves that are known exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise, permutations
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.populations import Example1
from experiments.populations.synthetic import OffsetRegression
from tests.seams.tradeoff import Point, area, pareto

On = Literal["scores", "decisions"]


def at(unfairness: float, accuracy: float, **more: object) -> Point:
    return Point(0.0, 0, accuracy, unfairness, **more)


# Eighths make ties and equal points common; the others make odd steps.
shares = st.sampled_from([k / 8 for k in range(9)]) | st.floats(0, 1)
points = st.builds(
    Point,
    strength=st.just(0.0),
    seed=st.integers(0, 5),
    accuracy=shares | st.floats(-2, 0),
    unfairness=shares,
    decision_unfairness=st.none() | shares,
    failed=st.booleans(),
)


def beats(one: Point, other: Point, on: On) -> bool:
    better = one.gap(on) < other.gap(on) or one.accuracy > other.accuracy
    return one.gap(on) <= other.gap(on) and one.accuracy >= other.accuracy and better


def brute_area(some: Sequence[Point], on: On) -> float:
    """max{accuracy : unfairness <= t} is constant between distinct unfairness values."""
    usable = [point for point in some if not point.failed]
    edges = sorted({0.0, 1.0, *(point.gap(on) for point in usable)})
    return math.fsum(
        (high - low) * max([0.0, *(point.accuracy for point in usable if point.gap(on) <= low)])
        for low, high in pairwise(edges)
    )


@settings(max_examples=120, deadline=None)
@given(st.lists(points, max_size=12), st.sampled_from(["scores", "decisions"]))
def test_pareto_keeps_exactly_the_points_that_none_beats(some: list[Point], on: On) -> None:
    usable = [point for point in some if not point.failed]
    unbeaten = {
        (p.gap(on), p.accuracy) for p in usable if not any(beats(other, p, on) for other in usable)
    }
    found = pareto(some, unfairness_of=on)
    assert [(point.gap(on), point.accuracy) for point in found] == sorted(unbeaten)
    assert all(any(point is given for given in usable) for point in found)


@settings(max_examples=120, deadline=None)
@given(st.lists(points, max_size=12), st.sampled_from(["scores", "decisions"]))
def test_the_area_is_the_integral_of_the_best_accuracy_within_reach(
    some: list[Point], on: On
) -> None:
    assert area(some, unfairness_of=on) == pytest.approx(brute_area(some, on), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(points, max_size=8), points)
def test_one_more_point_never_lowers_the_area(some: list[Point], more: Point) -> None:
    assert -1e-12 <= area(some) - 1e-12 <= area([*some, more]) <= 1 + 1e-12


@pytest.mark.parametrize(
    ("some", "expected"),
    [
        ([], 0.0),
        ([at(0.0, 1.0)], 1.0),
        ([at(1.0, 1.0)], 0.0),
        ([at(0.25, 0.8)], 0.6),
        ([at(0.5, 0.9), at(0.0, 0.5)], 0.7),
        ([at(0.2, 0.6), at(0.2, 0.8)], 0.64),
        ([at(0.2, 0.8), at(0.4, 0.8)], 0.64),
        ([at(0.2, 0.8), at(0.2, 0.8)], 0.64),
        # 0.4 x 0.5 + 0.5 x 1, the middle one is beaten
        ([at(0.1, 0.5), at(0.3, 0.4), at(0.5, 1.0)], 0.7),
        ([at(0.1, -3.0)], 0.0),
        ([at(0.1, -3.0), at(0.5, 0.6)], 0.3),
        ([at(0.0, 1.0, failed=True), at(0.5, 0.6)], 0.3),
        ([at(0.0, 1.0, failed=True)], 0.0),
    ],
)
def test_the_area_by_hand_in_any_order(some: list[Point], expected: float) -> None:
    for order in permutations(some):
        assert area(order) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("some", "kept"),
    [
        ([], []),
        ([at(0.3, 0.5)], [0]),
        ([at(0.3, 0.5), at(0.3, 0.5)], [0]),
        ([at(0.3, 0.5), at(0.3, 0.6)], [1]),
        ([at(0.3, 0.5), at(0.2, 0.5)], [1]),
        ([at(0.9, 0.9), at(0.1, 0.1), at(0.5, 0.5)], [1, 2, 0]),
        ([at(0.9, -1.0), at(0.1, -2.0)], [1, 0]),
        ([at(0.1, 0.9, failed=True), at(0.5, 0.5)], [1]),
    ],
)
def test_pareto_by_hand(some: list[Point], kept: list[int]) -> None:
    assert [id(point) for point in pareto(some)] == [id(some[k]) for k in kept]


def test_scores_and_decisions_are_judged_apart() -> None:
    low, high = at(0.1, 0.6, decision_unfairness=0.8), at(0.5, 0.7, decision_unfairness=0.2)
    assert pareto([low, high]) == (low, high)
    assert pareto([low, high], unfairness_of="decisions") == (high,)
    assert area([low, high]) == pytest.approx(0.4 * 0.6 + 0.5 * 0.7)
    assert area([low, high], unfairness_of="decisions") == pytest.approx(0.8 * 0.7)
    better = at(0.05, 0.8, decision_unfairness=0.9)  # beats both, but for decisions
    assert area([low, high, better]) == pytest.approx(0.95 * 0.8)
    assert area([low, high, better], unfairness_of="decisions") == pytest.approx(
        0.7 * 0.7 + 0.1 * 0.8
    )


def test_a_regressors_decisions_are_its_scores() -> None:
    assert at(0.3, 0.5).gap("decisions") == 0.3


# --- curves that are known exactly
# ------------------------------------------------------------------------------

STRENGTHS = (0.0, *np.geomspace(1e-4, 1e4, 1500), math.inf)


def _curve(
    tradeoff: Callable[[float], object],
    accuracy: Callable[[float], float],
    strengths: Sequence[float],
) -> list[Point]:
    exact = [tradeoff(float(strength)) for strength in strengths]
    return [at(point.kolmogorov, accuracy(point.risk)) for point in exact]


@pytest.mark.parametrize("p1", [0.2, 0.5, 0.8])
def test_the_area_of_hidden_experience_is_that_of_its_curve(p1: float) -> None:
    """Slopes (s0, s1) = q (w, 1) have Kolmogorov distance (1 - w) / 2: the whole curve without a
    root search.

    On the exact curve the derivative along q vanishes: q p1 + q p0 w^2 + strength (1 - w)^2 = p1,
    and the one along w: strength = p0 q w / (2 (1 - w)); together q = p1 / (p1 + p0 (w + w^2) / 2).
    """
    population, p0 = Example1(p1), 1 - p1
    w = np.linspace(0, 1, 100_001)
    q = p1 / (p1 + p0 * (w + w * w) / 2)
    r2 = 1 - (p1 * (1 - q) ** 2 + p0 * (1 + (q * w) ** 2))  # the variance of Y is 1/12
    unfairness = (1 - w) / 2
    exact = np.trapezoid(r2[::-1], unfairness[::-1]) + r2[0] * 0.5
    found = area(_curve(population.tradeoff, lambda risk: 1 - 12 * risk, STRENGTHS))
    assert found == pytest.approx(exact, abs=1e-3)
    assert found < exact  # steps lie below the curve


@pytest.mark.parametrize(("delta", "p1"), [(1.0, 0.5), (3.0, 0.3)])
def test_the_area_of_offset_regression_is_that_of_its_curve(delta: float, p1: float) -> None:
    """For s0 = 1 and t = c / s the first-order conditions (spec 7.5) fix c and s without a
    search.
    """
    population, p0 = OffsetRegression(delta=delta, p1=p1), 1 - p1
    t = np.linspace(1e-9, delta, 100_001)
    shrink = 2 / math.sqrt(math.pi) * -np.expm1(-t * t / 4)  # s = 1 + strength x shrink
    # p0 p1 (delta - c) = strength x erf(t / 2)
    erf = np.array([math.erf(value / 2) for value in t])
    strength = (delta - t) / (t * shrink + erf / (p0 * p1))
    s = 1 + strength * shrink
    variance = 1 + p0 * p1 * delta**2
    r2 = 1 - (p0 * p1 * (delta - t * s) ** 2 + (s - 1) ** 2) / variance
    unfairness = np.array([math.erf(value / 2 / math.sqrt(2)) for value in t])
    exact = np.trapezoid(r2, unfairness) + 1 - unfairness[-1]
    found = area(_curve(population.tradeoff, lambda risk: 1 - risk / variance, STRENGTHS))
    assert found == pytest.approx(exact, abs=1e-3)
    assert found < exact


def test_the_area_approaches_the_curve_as_strengths_are_added() -> None:
    areas = [
        area(
            _curve(Example1().tradeoff, lambda risk: 1 - 12 * risk, np.geomspace(1e-3, 1e3, count))
        )
        for count in (3, 9, 33, 129)
    ]
    assert areas == sorted(areas)
    errors = np.diff(areas)
    assert errors[-1] < errors[0] / 4
