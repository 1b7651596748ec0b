"""Radii around empirical distribution functions and the bounds they prove, as the formulas say,
and as they hold.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from metrifair.errors import DataError
from tests.seams.figures import certified_distance, dkw_radius


@pytest.mark.parametrize("samples", [1, 30, 1000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("cdfs", [1, 2, 50])
def test_the_radius_is_massarts_for_so_many_functions(
    samples: int, confidence: float, cdfs: int
) -> None:
    expected = math.sqrt(math.log(2 * cdfs / (1 - confidence)) / (2 * samples))
    assert dkw_radius(samples, confidence=confidence, cdfs=cdfs) == pytest.approx(
        expected, rel=1e-15
    )


def test_two_groups_of_one_comparison_are_the_default() -> None:
    assert dkw_radius(400) == pytest.approx(math.sqrt(math.log(4 / 0.05) / 800))


def test_choosing_among_k_models_is_the_same_as_a_kth_of_the_error() -> None:
    assert dkw_radius(100, cdfs=2 * 7) == pytest.approx(
        dkw_radius(100, confidence=1 - 0.05 / 7, cdfs=2)
    )


def test_the_radius_grows_with_functions_and_confidence_and_shrinks_with_samples() -> None:
    assert dkw_radius(100, cdfs=3) > dkw_radius(100, cdfs=2)
    assert dkw_radius(100, confidence=0.99) > dkw_radius(100)
    assert dkw_radius(400) == pytest.approx(dkw_radius(100) / 2)


@pytest.mark.parametrize("cdfs", [1, 4])
def test_all_functions_lie_within_their_radius_as_often_as_said_and_not_much_more(
    cdfs: int,
) -> None:
    """DKW is nearly tight for one function; several are independent here, so the union bound is
    nearly tight too.
    """
    n, repeats = 200, 5000
    uniform = np.sort(np.random.default_rng(0).random((repeats, cdfs, n)))
    steps = np.arange(1, n + 1) / n
    distance = np.maximum(steps - uniform, uniform - steps + 1 / n).max(axis=(1, 2))
    # 0.19 and 0.17; with radii of 0.75 they would be 0.24 and 0.22, of 0.85, 0.14 and 0.13
    assert (
        0.15
        < np.mean(distance > dkw_radius(n, confidence=0.8, cdfs=cdfs))
        < 0.2 + 4 * math.sqrt(0.16 / repeats)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"samples": 0}, "samples and cdfs must be at least 1, got 0 and 2"),
        ({"samples": 5, "cdfs": 0}, "samples and cdfs must be at least 1, got 5 and 0"),
        ({"samples": 5, "confidence": 1.0}, "confidence must lie between 0 and 1, got 1.0"),
        ({"samples": 5, "confidence": 0.0}, "confidence must lie between 0 and 1, got 0.0"),
        ({"samples": 5, "confidence": math.nan}, "confidence must lie between 0 and 1, got nan"),
    ],
)
def test_what_has_no_radius_is_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(DataError) as refusal:
        dkw_radius(**arguments)
    assert str(refusal.value) == message


METRIC_BOUNDS = {
    "kolmogorov": lambda gap, width: gap,
    "wasserstein": lambda gap, width: gap * width,
    "lp": lambda gap, width: gap * math.sqrt(width),
    "cramer": lambda gap, width: gap**2 * width,
    "energy": lambda gap, width: 2 * gap**2 * width,
}


@pytest.mark.parametrize("width", [0.5, 1.0, 20.0])
@pytest.mark.parametrize("metric", METRIC_BOUNDS)
def test_bounds_are_attained_by_functions_that_differ_evenly_everywhere(
    metric: str, width: float
) -> None:
    """Distribution functions 0.3 apart on the whole interval, each known to within 0.1: at most
    0.5 apart.
    """
    value, worst = (METRIC_BOUNDS[metric](gap, width) for gap in (0.3, 0.5))
    assert certified_distance(metric, value, 0.2, width=width) == pytest.approx(worst)
    assert certified_distance(metric, value, 5.0, width=width) == pytest.approx(
        METRIC_BOUNDS[metric](1.0, width)
    )


def test_without_a_range_only_kolmogorov_is_bounded_and_some_metrics_never() -> None:
    for metric in METRIC_BOUNDS:
        assert (certified_distance(metric, 0.1, 0.1) is None) == (metric != "kolmogorov")
    assert certified_distance("mmd", 0.1, 0.1, width=1.0) is None
    assert certified_distance("total_variation", 0.1, 0.1, width=1.0) is None
