"""The radius around empirical distribution functions, as the formula says, and as it holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metrifair.certificates import dkw_radius
from metrifair.errors import DataError


@pytest.mark.parametrize("samples", [1, 30, 1000])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("cdfs", [1, 2, 50])
def test_the_radius_is_massarts_for_so_many_functions(samples: int, confidence: float, cdfs: int) -> None:
    expected = math.sqrt(math.log(2 * cdfs / (1 - confidence)) / (2 * samples))
    assert dkw_radius(samples, confidence=confidence, cdfs=cdfs) == pytest.approx(expected, rel=1e-15)


def test_two_groups_of_one_comparison_are_the_default() -> None:
    assert dkw_radius(400) == pytest.approx(math.sqrt(math.log(4 / 0.05) / 800))


def test_choosing_among_k_models_is_the_same_as_a_kth_of_the_error() -> None:
    assert dkw_radius(100, cdfs=2 * 7) == pytest.approx(dkw_radius(100, confidence=1 - 0.05 / 7, cdfs=2))


def test_the_radius_grows_with_functions_and_confidence_and_shrinks_with_samples() -> None:
    assert dkw_radius(100, cdfs=3) > dkw_radius(100, cdfs=2)
    assert dkw_radius(100, confidence=0.99) > dkw_radius(100)
    assert dkw_radius(400) == pytest.approx(dkw_radius(100) / 2)


@pytest.mark.parametrize("cdfs", [1, 4])
def test_all_functions_lie_within_their_radius_as_often_as_said_and_not_much_more(cdfs: int) -> None:
    """DKW is nearly tight for one function; several are independent here, so the union bound is nearly tight too."""
    n, repeats = 200, 2000
    uniform = np.sort(np.random.default_rng(0).random((repeats, cdfs, n)))
    steps = np.arange(1, n + 1) / n
    distance = np.maximum(steps - uniform, uniform - steps + 1 / n).max(axis=(1, 2))
    assert 0.13 < np.mean(distance > dkw_radius(n, confidence=0.8, cdfs=cdfs)) < 0.2 + 2 * math.sqrt(0.16 / repeats)


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
