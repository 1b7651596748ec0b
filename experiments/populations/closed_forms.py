"""Exact distances between two known distributions on the line: uniform, normal, and finitely
many atoms.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metrifair.errors import DataError


@dataclass(frozen=True)
class Distances:
    """How far apart two distributions are, in each metric that has a closed form here.

    Energy is twice the squared L2 distance of the CDFs.

    Parameters
    ----------
    energy
        Energy distance: twice the squared L2 distance of the CDFs.
    kolmogorov
        Largest gap between the CDFs.
    wasserstein
        Wasserstein-1 distance.
    total_variation
        Total variation distance, from 0 to 1.

    Examples
    --------
    >>> Distances(energy=0.5, kolmogorov=0.5, wasserstein=1.0, total_variation=1.0).cramer
    0.25
    """

    energy: float
    kolmogorov: float
    wasserstein: float
    total_variation: float

    @property
    def cramer(self) -> float:
        """Squared L2 distance of the CDFs: half the energy distance."""
        return self.energy / 2


NO_DISTANCE = Distances(0.0, 0.0, 0.0, 0.0)


def uniform_distances(width0: float, width1: float) -> Distances:
    """Distances between two uniform distributions with the same center; width 0 is a point mass.

    Parameters
    ----------
    width0
        Width of the first distribution, 0 or more.
    width1
        Width of the second.

    Returns
    -------
    Distances
        How far apart they are.

    Examples
    --------
    >>> uniform_distances(0, 1)                       # a point against [0, 1]
    Distances(energy=0.16666666666666666, kolmogorov=0.5, wasserstein=0.25, total_variation=1.0)
    """
    narrow, wide = sorted((abs(width0), abs(width1)))
    if wide == narrow:
        return NO_DISTANCE
    share = narrow / wide
    gap = wide - narrow
    return Distances(gap * gap / (6 * wide), (1 - share) / 2, gap / 4, 1 - share)


@dataclass(frozen=True)
class Normal:
    """A normal distribution with this mean and positive standard deviation.

    Parameters
    ----------
    mean
        Any finite number.
    deviation
        Standard deviation, positive.

    Examples
    --------
    >>> Normal(mean=0.0, deviation=2.0).cdf(0.0)
    0.5
    """

    mean: float
    deviation: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and 0 < self.deviation < math.inf):
            raise DataError(
                f"Normal needs a finite mean and a positive deviation, got {self.mean!r} and "
                f"{self.deviation!r}; "
                "describe a point mass by atomic_distances"
            )

    def cdf(self, x: float) -> float:
        """Probability of a value up to x."""
        return 0.5 * math.erfc((self.mean - x) / (self.deviation * math.sqrt(2)))


def mean_absolute(mean: float, deviation: float) -> float:
    """E|Z| of a normal variable with this mean and deviation.

    Examples
    --------
    >>> mean_absolute(-3.0, 0.0)
    3.0
    """
    if deviation == 0:
        return abs(mean)
    ratio = mean / (deviation * math.sqrt(2))
    return deviation * math.sqrt(2 / math.pi) * math.exp(-ratio * ratio) + mean * math.erf(ratio)


def normal_distances(first: Normal, second: Normal) -> Distances:
    """Distances between any two normal distributions, without numerical integration.

    Wasserstein couples quantiles, so that it is the mean of a folded normal. Where the densities
    cross (one point or two) the CDFs are furthest apart, and the difference of the densities
    changes its sign.

    Parameters
    ----------
    first
        One distribution.
    second
        The other.

    Returns
    -------
    Distances
        How far apart they are.

    Examples
    --------
    >>> d = normal_distances(Normal(1.0, 1.0), Normal(0.0, 1.0))
    >>> round(d.energy, 6), round(d.kolmogorov, 6), d.wasserstein
    (0.541807, 0.382925, 1.0)
    """
    if first == second:
        return NO_DISTANCE
    shift = first.mean - second.mean
    spread = math.hypot(first.deviation, second.deviation)
    energy = 2 * mean_absolute(shift, spread) - 2 / math.sqrt(math.pi) * (
        first.deviation + second.deviation
    )
    gaps = [first.cdf(x) - second.cdf(x) for x in _density_crossings(first, second)]
    return Distances(
        energy=max(energy, 0.0),  # rounding may leave -1e-16 for near neighbors
        kolmogorov=max(abs(gap) for gap in gaps),
        wasserstein=mean_absolute(shift, abs(first.deviation - second.deviation)),
        total_variation=0.5 * float(np.abs(np.diff([0.0, *gaps, 0.0])).sum()),
    )


def _density_crossings(first: Normal, second: Normal) -> list[float]:
    """Points where the two densities agree, in increasing order."""
    if first.deviation == second.deviation:
        return [(first.mean + second.mean) / 2]
    # log density ratio, doubled, as a polynomial in x - first.mean
    inverse0, inverse1 = first.deviation**-2, second.deviation**-2
    shift = second.mean - first.mean
    constant = shift * shift * inverse1 + 2 * math.log(second.deviation / first.deviation)
    roots = np.roots([inverse1 - inverse0, -2 * shift * inverse1, constant])
    return sorted(first.mean + float(root) for root in roots.real)


def normal_mmd_squared(first: Normal, second: Normal, bandwidth: float = 1.0) -> float:
    """Squared MMD of two normals for the kernel exp(-(z - z')^2 / (2 bandwidth^2)).

    Parameters
    ----------
    first
        One distribution.
    second
        The other.
    bandwidth
        Width of the kernel, positive.

    Returns
    -------
    float
        The squared MMD, not its root.

    Examples
    --------
    >>> round(normal_mmd_squared(Normal(1.0, 1.0), Normal(0.0, 1.0)), 6)
    0.177268
    """
    if not bandwidth > 0:
        raise DataError(
            f"bandwidth must be positive, got {bandwidth!r}; choose a width such as 1.0"
        )

    def mean_kernel(shift: float, variance: float) -> float:
        total = bandwidth**2 + variance
        return bandwidth / math.sqrt(total) * math.exp(-(shift**2) / (2 * total))

    variance0, variance1 = first.deviation**2, second.deviation**2
    across = mean_kernel(first.mean - second.mean, variance0 + variance1)
    return mean_kernel(0, 2 * variance0) + mean_kernel(0, 2 * variance1) - 2 * across


def atomic_distances(
    values0: Sequence[float],
    masses0: Sequence[float],
    values1: Sequence[float],
    masses1: Sequence[float],
) -> Distances:
    """Distances between two distributions on finitely many atoms.

    Parameters
    ----------
    values0, masses0
        Where the atoms of the first distribution lie, and the probability of each; these sum to 1.
    values1, masses1
        The same of the second.

    Returns
    -------
    Distances
        How far apart they are.

    Examples
    --------
    >>> atomic_distances([0, 1], [0.8, 0.2], [0, 1], [0.2, 0.8]).kolmogorov.__round__(6)
    0.6
    """
    # Values computed along two routes may differ in the last bit and still be one atom.
    values = np.round(np.concatenate([values0, values1]), 12)
    atoms, index = np.unique(values, return_inverse=True)
    difference = np.bincount(index, np.concatenate([masses0, np.negative(masses1)]), len(atoms))
    gap, width = np.cumsum(difference)[:-1], np.diff(atoms)
    return Distances(
        energy=2 * float((gap**2 * width).sum()),
        kolmogorov=float(np.abs(gap).max(initial=0.0)),
        wasserstein=float((np.abs(gap) * width).sum()),
        total_variation=0.5 * float(np.abs(difference).sum()),
    )
