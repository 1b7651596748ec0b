"""Certified bounds on distributions from a finite sample."""

from __future__ import annotations

from math import log, sqrt

from metrifair.errors import DataError
from metrifair.metrics.registry import facts
from metrifair.support.checks import is_number, share_hint


def dkw_radius(samples: int, *, confidence: float = 0.95, cdfs: int = 2) -> float:
    """How far the empirical distribution function of so many samples may be from the truth.

    By Massart's form of the Dvoretzky-Kiefer-Wolfowitz inequality all of ``cdfs`` functions are
    within their radius, jointly, with this confidence: sqrt(log(2 cdfs / (1 - confidence)) / (2
    n)). For samples that were used neither for training nor for choosing; choosing among k models
    needs k times as many functions.

    >>> round(dkw_radius(1000), 4)
    0.0468
    """
    if samples < 1 or cdfs < 1:
        raise DataError(f"samples and cdfs must be at least 1, got {samples} and {cdfs}")
    check_confidence(confidence)
    return sqrt(log(2 * cdfs / (1 - confidence)) / (2 * samples))


def check_confidence(confidence: float, argument: str = "confidence") -> None:
    """Raise a DataError unless this is a probability strictly between 0 and 1."""
    if not (is_number(confidence) and 0 < confidence < 1):
        raise DataError(
            "must lie between 0 and 1",
            argument=argument,
            received=confidence,
            remedy=share_hint(confidence),
        )


def certified_distance(
    metric: str,
    value: float,
    radius: float,
    *,
    width: float | None = None,
) -> float | None:
    """Upper bound of a distance whose two distribution functions have a total error of at most
    ``radius``.

    ``width`` is the length of the interval that contains all scores, observed or not; without it
    only the Kolmogorov distance is bounded. None for metrics without a certificate.

    >>> certified_distance("kolmogorov", 0.1, 0.05), certified_distance("wasserstein", 0.1, 0.05)
    (0.15000000000000002, None)
    >>> # (0.2 + sqrt(2) x 0.05 x sqrt(2)) ** 2
    >>> round(certified_distance("energy", 0.04, 0.05, width=2.0), 4)
    0.09
    """
    bound = facts(metric).certificate
    if bound is None:
        return None
    return bound(value, radius, width)
