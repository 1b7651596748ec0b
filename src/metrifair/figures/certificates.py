"""Certified bounds on distributions from a finite sample."""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from metrifair.errors import DataError
from metrifair.metrics.pair import Pair
from metrifair.metrics.registry import facts
from metrifair.support.checks import check_number, is_number, share_hint


def dkw_radius(samples: int, *, confidence: float = 0.95, cdfs: int = 2) -> float:
    """How far the empirical distribution function of so many samples may be from the truth.

    By Massart's form of the Dvoretzky-Kiefer-Wolfowitz inequality all of ``cdfs`` functions are within their radius,
    jointly, with this confidence: sqrt(log(2 cdfs / (1 - confidence)) / (2 n)). For samples that were used neither
    for training nor for choosing; choosing among k models needs k times as many functions.

    >>> round(dkw_radius(1000), 4)
    0.0468
    """
    if samples < 1 or cdfs < 1:
        raise DataError(f"samples and cdfs must be at least 1, got {samples} and {cdfs}")
    check_confidence(confidence)
    return sqrt(log(2 * cdfs / (1 - confidence)) / (2 * samples))


def vc_radius(samples: int, *, confidence: float = 0.95, dimension: int = 1) -> float | None:
    """The same by the paper's bound for decisions of this VC dimension; far wider. None if n <= dimension.

    sqrt(E(V, n, delta / 3)) / 2 with E(V, n, delta) = (4 / n) (V (log(2 n / V) + 1) - log(delta / 4)); the third of
    delta is for the accuracy, whose bound in the paper is simultaneous. Thresholds on a score have V = 1.

    >>> round(vc_radius(1000), 4)
    0.1187
    """
    if samples < 1 or dimension < 1:
        raise DataError(f"samples and dimension must be at least 1, got {samples} and {dimension}")
    check_confidence(confidence)
    if samples <= dimension:
        return None
    third = (1 - confidence) / 3
    return sqrt(4 / samples * (dimension * (log(2 * samples / dimension) + 1) - log(third / 4))) / 2


class GeneralizationBounds(NamedTuple):
    """Bounds for the population, simultaneous for every model of the class.

    Parameters
    ----------
    accuracy : float
        The share of right decisions is at least this.
    unfairness : float
        The distance between the two groups' decisions is at most this.

    Examples
    --------
    >>> GeneralizationBounds(accuracy=0.7, unfairness=0.3).accuracy
    0.7
    """

    accuracy: float
    unfairness: float


def generalization_bounds(
    accuracy: float,
    unfairness: float,
    *,
    samples: tuple[int, int],
    dimension: int,
    metric: str = "kolmogorov",
    confidence: float = 0.95,
) -> GeneralizationBounds | None:
    """Bounds for the population from decisions on the training rows themselves: the paper's theorem.

    It is valid for all models of a class at once, so also for the model that was trained on these rows.
    For rows that trained nothing, ``dkw_radius`` gives far narrower bounds.

    Parameters
    ----------
    accuracy, unfairness : float
        Values on these rows: the share of right decisions, and the distance between the groups' decisions (0 and 1).
    samples : tuple of int
        Number of rows of each group.
    dimension : int
        The VC dimension of the class: d + 1 for linear models of d features with an intercept.
    metric : str, default="kolmogorov"
        The distance that ``unfairness`` is.
    confidence : float, default=0.95
        The probability, over training sets, that both bounds are valid for all models of the class.

    Returns
    -------
    GeneralizationBounds or None
        None if a group has no more rows than the dimension: then there is no bound.

    Raises
    ------
    DataError
        If a number is out of its range, or the metric is not known.

    Examples
    --------
    >>> generalization_bounds(0.8, 0.1, samples=(50_000, 60_000), dimension=8)
    GeneralizationBounds(accuracy=0.77..., unfairness=0.18...)
    """
    for name, value in (("accuracy", accuracy), ("unfairness", unfairness)):
        check_number(name, value)
    row = facts(metric)
    total_radius = vc_radius(sum(samples), confidence=confidence, dimension=dimension)
    radii = [vc_radius(count, confidence=confidence, dimension=dimension) for count in samples]
    if total_radius is None or None in radii:
        return None
    power = 2 if row.squared else 1
    # The paper's alpha, by how much a utility may differ between the decisions: their distance, and no two samples of
    # decisions are further apart.
    furthest = float(row.plug_in(Pair(np.array([0.0, 1.0]), (1,), (1,)))) ** (1 / power)
    root = max(0.0, unfairness) ** (1 / power) + furthest * sum(radius for radius in radii if radius is not None)
    return GeneralizationBounds(max(0.0, accuracy - total_radius), min(root, furthest) ** power)


def check_confidence(confidence: float, argument: str = "confidence") -> None:
    """Raise a DataError unless this is a probability strictly between 0 and 1."""
    if not (is_number(confidence) and 0 < confidence < 1):
        raise DataError(
            "must lie between 0 and 1", argument=argument, received=confidence, remedy=share_hint(confidence)
        )


def certified_distance(metric: str, value: float, radius: float, *, width: float | None = None) -> float | None:
    """Upper bound of a distance whose two distribution functions have a total error of at most ``radius``.

    ``width`` is the length of the interval that contains all scores, observed or not; without it only the Kolmogorov
    distance is bounded. None for metrics without a certificate.

    >>> certified_distance("kolmogorov", 0.1, 0.05), certified_distance("wasserstein", 0.1, 0.05)
    (0.15000000000000002, None)
    >>> round(certified_distance("energy", 0.04, 0.05, width=2.0), 4)          # (0.2 + sqrt(2) x 0.05 x sqrt(2)) ** 2
    0.09
    """
    bound = facts(metric).certificate
    return None if bound is None else bound(value, radius, width)
