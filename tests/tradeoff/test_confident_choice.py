"""A choice with confidence: the limit is kept in the population, whose unfairness is known here."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from metrifair.api.frontier import Frontier
from metrifair.errors import DataError
from metrifair.figures.intervals import Interval
from metrifair.tradeoff.points import Job, Outcome, Point
from metrifair.wording.frontier import headline

SHIFTS = np.linspace(0.0, 1.5, 16)  # of one group's scores, which are normal: the utility grows with the shift
TRUTH = [2 * NormalDist().cdf(shift / 2) - 1 for shift in SHIFTS]


def kolmogorov(left: np.ndarray, right: np.ndarray) -> float:
    at = np.concatenate([left, right])
    shares = [np.searchsorted(np.sort(own), at, side="right") / len(own) for own in (left, right)]
    return float(np.abs(shares[0] - shares[1]).max())


def sampled(generator: np.random.Generator, small: int, large: int) -> Frontier:
    """A frontier of 16 models, whose scores on rows of two groups have 0.81 of their variance in common."""
    common = [generator.normal(size=count) for count in (small, large)]
    outcomes = []
    for place, shift in enumerate(SHIFTS):
        own = [0.9 * one + np.sqrt(0.19) * generator.normal(size=len(one)) for one in common]
        point = Point(float(place), 0, 0.6 + 0.02 * place, kolmogorov(own[0] + shift, own[1]))
        outcomes.append(Outcome(Job(float(place), 0), point, point, model=place))
    floor = float(np.mean([kolmogorov(generator.normal(size=small), generator.normal(size=large)) for _ in range(100)]))
    sizes = {"a": small, "b": large}
    return Frontier(outcomes, "scores", "accuracy", ("a", "b"), sizes, floor=floor, validation_floor=floor)


@pytest.mark.extended
@pytest.mark.parametrize(("small", "large"), [(80, 800), (300, 300)])
def test_the_limit_is_kept_in_the_population_as_often_as_asked(small: int, large: int) -> None:
    """At the limit the models' unfairness is dense, so that a choice by the sample alone misses it often."""
    generator = np.random.default_rng(0)
    kept: dict[float | None, list[bool]] = {None: [], 0.9: []}
    for _ in range(120):
        front = sampled(generator, small, large)
        for confidence, found in kept.items():
            chosen = front.select(max_unfairness=0.3, confidence=confidence)
            found.append(TRUTH[chosen] <= 0.3)
    assert np.mean(kept[0.9]) > 0.92
    assert np.mean(kept[None]) < 0.92


def test_the_choice_is_the_best_within_the_bound() -> None:
    """The bound by hand: 0.13 and 0.05 of chance leave 0.12, with a standard error of 0.0288."""
    points = [Point(0.0, 0, 0.9, 0.25), Point(1.0, 0, 0.8, 0.13), Point(2.0, 0, 0.7, 0.05)]
    outcomes = [Outcome(Job(point.strength, 0), point, point, model=point.strength) for point in points]
    front = Frontier(outcomes, "scores", "accuracy", ("a", "b"), {}, floor=0.05, validation_floor=0.05)
    for limit, confidence, model in [(0.25, None, 0.0), (0.25, 0.9, 1.0), (0.16, 0.9, 1.0), (0.155, 0.9, 2.0)]:
        assert front.select(max_unfairness=limit, confidence=confidence) == model
    front.select(max_unfairness=0.155, confidence=0.5)
    assert front.limit_confidence == pytest.approx(NormalDist().cdf((0.155 - 0.12) / 0.028777), abs=1e-4)
    assert headline(front.view())[1] == (
        "It keeps the unfairness limit of 0.155 on test rows (about 89% confidence that the population is within it)."
    )
    proven = replace(points[1], intervals={"unfairness": Interval(0.0, 0.3)})
    outcomes[1] = replace(outcomes[1], test=proven)
    front.select(max_unfairness=0.155, confidence=0.5)
    assert headline(front.view())[1].endswith(
        "within it). The interval is wider: it is proven for any distributions, and the confidence is approximate."
    )
    with pytest.raises(DataError, match=r"no model has unfairness at most 0.03 with confidence 0.9 on validation"):
        front.select(max_unfairness=0.03, confidence=0.9)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"max_unfairness": 0.1, "confidence": 1}, "confidence must lie between 0 and 1"),
        ({"max_unfairness": 0.1, "confidence": 90}, "confidence must lie between 0 and 1"),
        ({"max_unfairness": 0.1, "confidence": "high"}, "confidence must lie between 0 and 1"),
        ({"min_accuracy": 0.5, "confidence": 0.9}, "confidence needs max_unfairness"),
        ({"max_unfairness": 0.1, "certified": True, "confidence": 0.9}, "confidence needs max_unfairness"),
    ],
)
def test_a_confidence_without_a_limit_or_out_of_range_is_refused(asked: dict[str, object], said: str) -> None:
    with pytest.raises(DataError, match=said):
        sampled(np.random.default_rng(0), 30, 30).select(**asked)  # type: ignore[arg-type]


def test_without_noise_known_there_is_no_confidence() -> None:
    point = Point(0.0, 0, 0.9, 0.1)
    front = Frontier([Outcome(Job(0.0, 0), point, point, model=0)], "scores", "accuracy", ("a", "b"), {})
    with pytest.raises(DataError, match="confidence needs a frontier that"):
        front.select(max_unfairness=0.2, confidence=0.9)
    front.select(max_unfairness=0.2)
    assert front.limit_confidence is None
