"""Offset regression, whose trade-off curve is known exactly; and what all populations share."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_integer, check_number

Seed: TypeAlias = int | np.random.Generator

_HALVINGS = 100  # beyond the 53 bits of a float, whatever the width of the bracket


class Sample(NamedTuple):
    """Rows drawn from a population: features, targets and groups, as NumPy arrays.

    Parameters
    ----------
    X
        Features of shape (n, d), 64-bit floats; the last column is the group.
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
    """The best hypothesis of a class at one penalty strength.

    Parameters
    ----------
    strength
        Weight of the energy distance in the objective (the paper's lambda).
    parameters
        Parameters of the hypothesis, by name; empty for the class of all hypotheses.
    risk
        Expected loss.
    energy
        Energy distance between the groups' predictions.
    kolmogorov
        Kolmogorov distance between the groups' predictions.

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
        """Risk plus strength times energy distance, which the hypothesis minimizes."""
        # At infinite strength the energy is zero and the product would be a silent NaN.
        return self.risk if self.energy == 0 else self.risk + self.strength * self.energy


@dataclass(frozen=True)
class OffsetRegression:
    """Noise-free linear targets with another intercept in group 0, with the exact trade-off curve.

    X ~ N(0, I), A ~ Bernoulli(p1) independent, features (X, A), Y = <theta, X> + delta (1 - A),
    squared loss.

    Parameters
    ----------
    theta
        Coefficients, at least one, not all zero.
    delta
        Added to the target in group 0.
    p1
        Share of group 1.

    Examples
    --------
    >>> population = OffsetRegression(theta=(0.6, 0.8), delta=1.0)
    >>> population.fair_risk, round(population.tradeoff(0).energy, 6)
    (0.25, 0.541807)
    """

    theta: Sequence[float] = (1.0,)
    delta: float = 0.5
    p1: float = 0.5

    def __post_init__(self) -> None:
        check_probability("p1", self.p1)
        check_number("delta", self.delta)
        # A tuple makes the population a value: printable, comparable, hashable.
        object.__setattr__(self, "theta", tuple(float(coefficient) for coefficient in self.theta))
        if not 0 < np.linalg.norm(self.theta) < math.inf:
            raise DataError(
                f"theta must be finite and not zero, got {self.theta}; choose coefficients such as "
                "(1.0,)"
            )

    def sample(self, n: int, seed: Seed = 0) -> Sample:
        """n rows (X, y, a); the last column of X is the group."""
        check_integer("n", n, least=1)
        rng = generator(seed)
        group = (rng.random(n) < self.p1).astype(np.int64)
        X = np.column_stack([rng.standard_normal((n, len(self.theta))), group])
        return Sample(X, self.optimal_prediction(X), group)

    def optimal_prediction(self, X: Floats) -> Floats:
        """The optimal prediction, Y itself."""
        return self.tradeoff_prediction(X, 0.0)

    def fair_prediction(self, X: Floats) -> Floats:
        """The best prediction with statistical parity."""
        return self.tradeoff_prediction(X, math.inf)

    @property
    def fair_risk(self) -> float:
        """Risk of the best prediction with statistical parity, p0 p1 delta^2."""
        return (1 - self.p1) * self.p1 * self.delta**2

    def tradeoff(self, strength: float) -> TradeOffPoint:
        """The linear model with the least risk + strength x energy.

        Its parameters are the gap c between the groups' means and the common deviation s of the
        predictions.

        >>> point = OffsetRegression(delta=1.0).tradeoff(1.0)
        >>> round(point.parameters["c"], 6), round(point.parameters["s"], 6), round(point.risk, 6)
        (0.31425, 1.026148, 0.118247)
        """
        c, s = self._best_gap(strength)
        risk = (1 - self.p1) * self.p1 * (self.delta - c) ** 2 + (
            s - float(np.linalg.norm(self.theta))
        ) ** 2
        t = c / (2 * s)
        energy = 2 * c * math.erf(t) + 4 * s / math.sqrt(math.pi) * math.expm1(-t * t)
        kolmogorov = math.erf(abs(t) / math.sqrt(2))
        return TradeOffPoint(strength, {"c": c, "s": s}, risk, max(energy, 0.0), kolmogorov)

    def tradeoff_prediction(self, X: Floats, strength: float) -> Floats:
        """Predictions of the model that ``tradeoff`` finds at this strength."""
        c, s = self._best_gap(strength)
        group = last_column_as_group(X, width=len(self.theta) + 1)
        linear = (X[:, :-1] * (s / np.linalg.norm(self.theta) * np.asarray(self.theta))).sum(axis=1)
        middle = (1 - self.p1) * (self.delta - c)
        return np.asarray(np.array([middle + c, middle])[group] + linear)

    def _best_gap(self, strength: float) -> tuple[float, float]:
        """Gap c and deviation s where the derivatives of the (convex) objective vanish: one
        equation for t = c / s.
        """
        check_strength(strength)
        s0, gap = float(np.linalg.norm(self.theta)), abs(self.delta)
        if strength == 0 or math.isinf(strength):
            return (0.0 if strength else self.delta), s0

        def deviation(t: float) -> float:
            return s0 - strength * 2 / math.sqrt(math.pi) * math.expm1(-t * t / 4)

        pull = strength / ((1 - self.p1) * self.p1)
        t = root(lambda t: t * deviation(t) + pull * math.erf(t / 2) - gap, 0.0, gap / s0)
        return math.copysign(t * deviation(t), self.delta), deviation(t)


def generator(seed: Seed, purpose: int = 0) -> np.random.Generator:
    """The generator itself, or a new one for this seed; other purposes of one seed give independent
    numbers.

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
    return np.random.default_rng(
        np.random.SeedSequence(seed, spawn_key=(purpose,) if purpose else ())
    )


def last_column_as_group(X: Floats, width: int) -> Integers:
    """The groups in the last column of the features, which must have the given number of
    columns.
    """
    if X.ndim != 2 or X.shape[1] != width:
        raise DataError(
            f"X must have {width} columns, the group last, got shape {X.shape}; pass rows as "
            "sample() returns"
        )
    if not np.isin(X[:, -1], (0.0, 1.0)).all():
        found = np.unique(X[:, -1])
        raise DataError(
            f"the last column of X must be the group, 0 or 1, got {found}; pass rows as sample() "
            "returns"
        )
    return X[:, -1].astype(np.int64)


def check_probability(name: str, value: float) -> None:
    """Refuse a share that is not strictly between 0 and 1."""
    if not 0 < value < 1:
        raise DataError(
            f"{name} must lie strictly between 0 and 1, got {value!r}; choose a share such as 0.5"
        )


def check_strength(value: float) -> None:
    """Refuse a negative strength; infinity asks for the best SP-fair hypothesis."""
    if not value >= 0:
        raise DataError(
            f"strength must be 0 or more, got {value!r}; choose 0 for no penalty, infinity for "
            "exact parity"
        )


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
