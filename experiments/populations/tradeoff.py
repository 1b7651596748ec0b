"""The trade-off between risk and energy distance over all hypotheses."""

import math
from collections.abc import Callable

import numpy as np

from experiments.populations.synthetic import TradeOffPoint, check_probability, check_strength
from metrifair.support.arrays import Floats

_HALVINGS = 100  # beyond the 53 bits of a float, whatever the width of the bracket


def unrestricted_tradeoff(
    cdf0: Callable[[Floats], Floats],
    cdf1: Callable[[Floats], Floats],
    *,
    p1: float,
    strength: float,
    support: tuple[float, float],
    points: int = 4001,
) -> TradeOffPoint:
    """Smallest excess risk + strength x energy distance over **all** hypotheses, for squared loss
    and the group in X.

    Only the distribution of the unpenalized optimum E[Y|X] in each group matters. Let F0, F1 be the
    CDFs of the predictions. Risk and energy are both integrals over thresholds z of a convex
    function of (F0(z), F1(z)), so the problem falls apart into one equation for each z: with v = 2
    strength (F0(z) - F1(z)), whoever has the optimum z - v/p0 in group 0 or z + v/p1 in group 1
    receives z, that is cdf0(z - v/p0) - cdf1(z + v/p1) = v / (2 strength).

    Parameters
    ----------
    cdf0, cdf1
        CDFs of E[Y|X] in the two groups, on arrays.
    p1
        Share of group 1.
    strength
        Weight of the energy distance; infinity gives the best SP-fair hypothesis.
    support
        Smallest and largest value of E[Y|X] (all but a negligible part of it).
    points
        Number of thresholds; the error is of order 1 / points^2 for smooth CDFs.

    Returns
    -------
    TradeOffPoint
        Its risk is the excess over the risk of E[Y|X].

    Examples
    --------
    Group 0 is always 0, group 1 always 1, equally many: parity costs 1/4.

    >>> step0, step1 = (lambda z: (z >= 0) * 1.0), (lambda z: (z >= 1) * 1.0)
    >>> unrestricted_tradeoff(step0, step1, p1=0.5, strength=np.inf, support=(-0.1, 1.1)).risk.__round__(3)
    0.25
    """
    check_probability("p1", p1)
    check_strength(strength)
    p0 = 1 - p1
    z = np.linspace(*support, points)
    low, high = _bracket(cdf0, cdf1, z, p1, strength)
    shift = (low + high) / 2
    gap = cdf0(z) - cdf1(z) if strength == 0 else shift / (2 * strength)
    # On an atom the bracket straddles a jump of a CDF: the level lies inside the jump, where the
    # gap puts it.
    level0 = np.clip(gap + cdf1(z + low / p1), cdf0(z - high / p0), cdf0(z - low / p0))
    level1 = level0 - gap
    between = (shift[1:] ** 2 + shift[:-1] ** 2) / 2
    risk = float((between * (np.diff(level0) / p0 + np.diff(level1) / p1)).sum())
    energy = float((gap[1:] ** 2 + gap[:-1] ** 2).sum()) * (support[1] - support[0]) / (points - 1)
    return TradeOffPoint(strength, {}, risk, energy, float(np.abs(gap).max()))


def _bracket(
    cdf0: Callable[[Floats], Floats],
    cdf1: Callable[[Floats], Floats],
    z: Floats,
    p1: float,
    strength: float,
) -> tuple[Floats, Floats]:
    """Lower and upper bounds of v at each threshold, equal to the last bit."""
    if strength == 0:
        return np.zeros_like(z), np.zeros_like(z)
    p0, width = 1 - p1, float(z[-1] - z[0])
    low, high = np.full_like(z, -p1 * width), np.full_like(z, p0 * width)
    slope = 0.0 if math.isinf(strength) else 1 / (2 * strength)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        too_large = cdf0(z - middle / p0) - cdf1(z + middle / p1) < slope * middle
        low, high = np.where(too_large, low, middle), np.where(too_large, middle, high)
    return low, high
