"""Offset regression with the distributions of its groups; and the same with groups that differ
in spread.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from experiments.populations.closed_forms import Distances, Normal, normal_distances
from experiments.populations.synthetic import (
    OffsetRegression,
    Seed,
    TradeOffPoint,
    check_strength,
    generator,
    last_column_as_group,
    root,
)
from metrifair.errors import DataError
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_integer


class ExactOffset(OffsetRegression):
    """``OffsetRegression`` (the reference's Synthetic1) with the distributions of its groups.

    Examples
    --------
    >>> ExactOffset(theta=(0.6, 0.8), delta=1.0).groups
    (Normal(mean=1.0, deviation=1.0), Normal(mean=0.0, deviation=1.0))
    """

    @classmethod
    def drawn(cls, k: int, seed: Seed = 0, *, delta: float = 0.5, p1: float = 0.5) -> Self:
        """A population with k coefficients drawn from N(2, 1), as in the reference.

        >>> len(ExactOffset.drawn(3).theta)
        3
        """
        check_integer("k", k, least=1)
        return cls(generator(seed, purpose=1).normal(2.0, 1.0, size=k).tolist(), delta, p1)

    @property
    def groups(self) -> tuple[Normal, Normal]:
        """Distribution of the target, which is also the optimal prediction, in group 0 and
        group 1.
        """
        deviation = float(np.linalg.norm(self.theta))
        return Normal(self.delta, deviation), Normal(0.0, deviation)

    @property
    def optimal_distances(self) -> Distances:
        """Distances between the groups under the optimal prediction."""
        return normal_distances(*self.groups)


@dataclass(frozen=True)
class SlopeRegression(ExactOffset):
    """Groups that differ in spread only: Y = <theta + delta (1 - A) 1, X> (the reference's
    Synthetic2).

    Parameters as in ``OffsetRegression``; delta is added to each coefficient in group 0.

    Examples
    --------
    >>> SlopeRegression(theta=(3.0,), delta=1.0).groups
    (Normal(mean=0.0, deviation=4.0), Normal(mean=0.0, deviation=3.0))
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.linalg.norm(self._coefficients[0]) > 0:
            raise DataError(
                f"theta must be finite and not zero in either group, got {self.theta} with delta "
                f"{self.delta!r}; "
                "choose coefficients such as (1.0,)"
            )

    @property
    def _coefficients(self) -> Floats:
        theta = np.asarray(self.theta, dtype=np.float64)
        return np.array([theta + self.delta, theta])

    @property
    def groups(self) -> tuple[Normal, Normal]:
        """Distribution of the target in group 0 and group 1."""
        deviation0, deviation1 = np.linalg.norm(self._coefficients, axis=1)
        return Normal(0.0, float(deviation0)), Normal(0.0, float(deviation1))

    @property
    def fair_risk(self) -> float:
        """Risk of the best SP-fair hypothesis: p0 p1 times the squared difference of the
        deviations.
        """
        first, second = self.groups
        return (1 - self.p1) * self.p1 * (first.deviation - second.deviation) ** 2

    def tradeoff(self, strength: float) -> TradeOffPoint:
        """The best linear model for risk + strength x energy, with deviations s0 and s1 of the
        predictions.
        """
        s0, s1 = self._best_deviations(strength)
        first, second = self.groups
        risk = (1 - self.p1) * (s0 - first.deviation) ** 2 + self.p1 * (s1 - second.deviation) ** 2
        distances = normal_distances(Normal(0.0, s0), Normal(0.0, s1))
        return TradeOffPoint(
            strength, {"s0": s0, "s1": s1}, risk, distances.energy, distances.kolmogorov
        )

    def tradeoff_prediction(self, X: Floats, strength: float) -> Floats:
        """Predictions of the model that ``tradeoff`` finds at this strength."""
        group = last_column_as_group(X, width=len(self.theta) + 1)
        scale = np.array(self._best_deviations(strength)) / np.linalg.norm(
            self._coefficients, axis=1
        )
        return np.asarray((X[:, :-1] * (scale[:, None] * self._coefficients)[group]).sum(axis=1))

    def _best_deviations(self, strength: float) -> tuple[float, float]:
        """Deviations where the derivatives of the (convex) objective vanish: one equation for
        their angle.
        """
        check_strength(strength)
        p0, p1 = 1 - self.p1, self.p1
        y0, y1 = (group.deviation for group in self.groups)
        if math.isinf(strength) or y0 == y1:
            return (p0 * y0 + p1 * y1,) * 2

        def deviations(turn: float) -> tuple[float, float]:
            # sqrt(2) cos(pi/4 + turn) - 1 and sqrt(2) sin(pi/4 + turn) - 1, without the
            # cancellation at small turns
            sine, versine = math.sin(turn), 2 * math.sin(turn / 2) ** 2
            pull = strength / math.sqrt(math.pi)
            return y0 + pull / p0 * (versine + sine), y1 + pull / p1 * (versine - sine)

        def mismatch(turn: float) -> float:
            s0, s1 = deviations(turn)
            return s0 * math.sin(math.pi / 4 + turn) - s1 * math.cos(math.pi / 4 + turn)

        ends = sorted((0.0, math.atan2(y1 - y0, y1 + y0)))
        return deviations(root(mismatch, *ends))
