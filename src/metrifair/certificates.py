"""What a finite sample proves about distributions."""

from __future__ import annotations

from math import log, sqrt

from metrifair.errors import DataError


def dkw_radius(samples: int, *, confidence: float = 0.95, cdfs: int = 2) -> float:
    """How far the empirical distribution function of so many samples may be from the truth.

    By Massart's form of the Dvoretzky-Kiefer-Wolfowitz inequality all of ``cdfs`` functions are within their radius,
    jointly, with this confidence: sqrt(log(2 cdfs / (1 - confidence)) / (2 n)). For samples that were used neither
    for training nor for choosing; choosing among k models asks for k times as many functions.

    >>> round(dkw_radius(1000), 4)
    0.0468
    """
    if samples < 1 or cdfs < 1:
        raise DataError(f"samples and cdfs must be at least 1, got {samples} and {cdfs}")
    if not 0 < confidence < 1:
        raise DataError(f"confidence must lie between 0 and 1, got {confidence}")
    return sqrt(log(2 * cdfs / (1 - confidence)) / (2 * samples))
