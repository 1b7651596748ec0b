"""What every synthetic population gives back, checks of common parameters, and the trade-off over all hypotheses."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError
from metrifair.support.checks import check_integer

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Seed: TypeAlias = int | np.random.Generator


class Sample(NamedTuple):
    """Rows drawn from a population: features, targets and groups, as NumPy arrays.

    Parameters
    ----------
    X
        Features of shape (n, d), 64-bit floats; the group, where it is a feature, is the last column.
    y
        Targets of shape (n,): floats for regression, integers 0 and 1 for classification.
    a
        Groups of shape (n,), integers 0 and 1.

    Examples
    --------
    >>> Sample(np.zeros((2, 1)), np.ones(2), np.array([0, 1])).a
    array([0, 1])
    """

    X: Floats
    y: NDArray[np.float64 | np.int64]
    a: Integers


@dataclass(frozen=True)
class TradeOffPoint:
    """The best hypothesis of a class at one strength: its parameters, its risk, and how far apart the groups are.

    Parameters
    ----------
    strength
        Weight of the energy distance in the objective (the paper's lambda).
    parameters
        What singles the hypothesis out in its class, by name; empty for the class of all hypotheses.
    risk
        Expected loss.
    energy
        Energy distance of the groups' predictions, twice the squared L2 distance of their CDFs.
    kolmogorov
        Kolmogorov distance of the groups' predictions.

    Examples
    --------
    >>> TradeOffPoint(2.0, {}, risk=0.25, energy=0.5, kolmogorov=0.1).objective
    1.25
    """

    strength: float
    parameters: dict[str, float]
    risk: float
    energy: float
    kolmogorov: float

    @property
    def objective(self) -> float:
        """Risk plus strength times energy distance: what the hypothesis minimises."""
        # At infinite strength the energy is zero and the product would be a silent NaN.
        return self.risk if self.energy == 0 else self.risk + self.strength * self.energy


def generator(seed: Seed, purpose: int = 0) -> np.random.Generator:
    """The generator itself, or a new one for this seed; other purposes of one seed give independent numbers.

    Examples
    --------
    >>> generator(0).random() == np.random.default_rng(0).random()
    True
    >>> generator(0).random() == generator(0, purpose=1).random()
    False
    """
    if isinstance(seed, np.random.Generator):
        return seed
    check_integer("seed", seed, least=0)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose,) if purpose else ()))


def last_column_as_group(X: Floats, width: int) -> Integers:
    """The groups in the last column of the features, which must have the given number of columns."""
    if X.ndim != 2 or X.shape[1] != width:
        raise DataError(
            f"X must have {width} columns, the group last, got shape {X.shape}; pass rows as sample() returns"
        )
    if not np.isin(X[:, -1], (0.0, 1.0)).all():
        found = np.unique(X[:, -1])
        raise DataError(f"the last column of X must be the group, 0 or 1, got {found}; pass rows as sample() returns")
    return X[:, -1].astype(np.int64)


def table_values(table: Floats, X: Floats) -> Floats:
    """The entries of a hypothesis on rows (x1, a) of integers, given as a table: row = group, column = x1.

    Examples
    --------
    >>> table_values(np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([0.2, 0.3])
    """
    group, m = last_column_as_group(X, width=2), table.shape[1]
    if not np.isin(X[:, 0], np.arange(m)).all():
        found = np.unique(X[:, 0])
        raise DataError(f"the first column of X must hold 0 to {m - 1}, got {found}; pass rows as sample() returns")
    return np.asarray(table[group, X[:, 0].astype(np.int64)], dtype=np.float64)


def check_probability(name: str, value: float) -> None:
    """Refuse a share that is not strictly between 0 and 1."""
    if not 0 < value < 1:
        raise DataError(f"{name} must lie strictly between 0 and 1, got {value!r}; choose a share such as 0.5")


def check_strength(value: float) -> None:
    """Refuse a negative strength; infinity asks for the best SP-fair hypothesis."""
    if not value >= 0:
        raise DataError(
            f"strength must be 0 or more, got {value!r}; choose 0 for no penalty, infinity for exact parity"
        )


_HALVINGS = 100  # beyond the 53 bits of a float, whatever the width of the bracket


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """The point between low and high where an increasing function changes sign, by bisection.

    Examples
    --------
    >>> root(lambda x: x * x - 2, 0, 2).__round__(12)
    1.414213562373
    """
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return (low + high) / 2


def unrestricted_tradeoff(
    cdf0: Callable[[Floats], Floats],
    cdf1: Callable[[Floats], Floats],
    *,
    p1: float,
    strength: float,
    support: tuple[float, float],
    points: int = 4001,
) -> TradeOffPoint:
    """Smallest excess risk + strength x energy distance over **all** hypotheses, for squared loss and the group in X.

    Only the distribution of the unpenalised optimum E[Y|X] in each group matters. Let F0, F1 be the CDFs of the
    predictions. Risk and energy are both integrals over thresholds z of a convex function of (F0(z), F1(z)), so the
    problem falls apart into one equation for each z: with v = 2 strength (F0(z) - F1(z)), whoever has the optimum
    z - v/p0 in group 0 or z + v/p1 in group 1 receives z, that is cdf0(z - v/p0) - cdf1(z + v/p1) = v / (2 strength).

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
    # On an atom the bracket straddles a jump of a CDF: the level lies inside the jump, where the gap puts it.
    level0 = np.clip(gap + cdf1(z + low / p1), cdf0(z - high / p0), cdf0(z - low / p0))
    level1 = level0 - gap
    between = (shift[1:] ** 2 + shift[:-1] ** 2) / 2
    risk = float((between * (np.diff(level0) / p0 + np.diff(level1) / p1)).sum())
    energy = float((gap[1:] ** 2 + gap[:-1] ** 2).sum()) * (support[1] - support[0]) / (points - 1)
    return TradeOffPoint(strength, {}, risk, energy, float(np.abs(gap).max()))


def _bracket(
    cdf0: Callable[[Floats], Floats], cdf1: Callable[[Floats], Floats], z: Floats, p1: float, strength: float
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
