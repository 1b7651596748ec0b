"""Offset regression: normal scores whose groups differ in mean or in spread, with the whole trade-off curve."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from metrifair.datasets.synthetic.closed_forms import Distances, Normal, normal_distances
from metrifair.datasets.synthetic.population import (
    Floats,
    Sample,
    Seed,
    TradeOffPoint,
    check_probability,
    check_strength,
    generator,
    last_column_as_group,
    root,
)
from metrifair.errors import DataError
from metrifair.support.checks import check_integer, check_known, check_number


@dataclass(frozen=True)
class OffsetRegression:
    """Noise-free linear targets with another intercept or other slopes in group 0, with exact answers.

    X ~ N(0, I), A ~ Bernoulli(p1) independent, features (X, A), squared loss.
    "offset" (the reference's Synthetic1): Y = <theta, X> + delta (1 - A); the groups differ in mean.
    "slope" (its Synthetic2): Y = <theta + delta (1 - A) 1, X>; the groups differ in spread only.

    Parameters
    ----------
    theta
        Coefficients, at least one, not all zero.
    delta
        What is added in group 0, to the target or to each coefficient.
    p1
        Share of group 1.
    kind
        "offset" or "slope".

    Examples
    --------
    >>> population = OffsetRegression(theta=(0.6, 0.8), delta=1.0)
    >>> population.groups
    (Normal(mean=1.0, deviation=1.0), Normal(mean=0.0, deviation=1.0))
    >>> population.fair_risk, round(population.optimal_distances.energy, 6)
    (0.25, 0.541807)
    """

    theta: Sequence[float] = (1.0,)
    delta: float = 0.5
    p1: float = 0.5
    kind: Literal["offset", "slope"] = "offset"

    def __post_init__(self) -> None:
        check_known("kind", self.kind, ("offset", "slope"))
        check_probability("p1", self.p1)
        check_number("delta", self.delta)
        # A tuple makes the population a value: printable, comparable, hashable.
        object.__setattr__(self, "theta", tuple(float(coefficient) for coefficient in self.theta))
        sizes = np.linalg.norm(self._coefficients, axis=1)
        if not (np.isfinite(sizes).all() and (sizes > 0).all()):
            raise DataError(
                f"theta must be finite and not zero in either group, got {self.theta} with delta {self.delta!r}; "
                "choose coefficients such as (1.0,)"
            )

    @classmethod
    def drawn(
        cls, k: int, seed: Seed = 0, *, delta: float = 0.5, p1: float = 0.5, kind: Literal["offset", "slope"] = "offset"
    ) -> "OffsetRegression":
        """A population with k coefficients drawn from N(2, 1), as in the reference.

        >>> len(OffsetRegression.drawn(3).theta)
        3
        """
        check_integer("k", k, least=1)
        return cls(generator(seed, purpose=1).normal(2.0, 1.0, size=k).tolist(), delta, p1, kind)

    def sample(self, n: int, seed: Seed = 0) -> Sample:
        """n rows (X, y, a); the last column of X is the group."""
        check_integer("n", n, least=1)
        rng = generator(seed)
        group = (rng.random(n) < self.p1).astype(np.int64)
        X = np.column_stack([rng.standard_normal((n, len(self.theta))), group])
        return Sample(X, self.optimal_prediction(X), group)

    @property
    def _coefficients(self) -> Floats:
        theta = np.asarray(self.theta, dtype=np.float64)
        return np.array([theta + self.delta if self.kind == "slope" else theta, theta])

    @property
    def groups(self) -> tuple[Normal, Normal]:
        """Distribution of the target, which is also the unpenalised optimum, in group 0 and group 1."""
        deviation0, deviation1 = np.linalg.norm(self._coefficients, axis=1)
        mean0 = self.delta if self.kind == "offset" else 0.0
        return Normal(mean0, float(deviation0)), Normal(0.0, float(deviation1))

    def optimal_prediction(self, X: Floats) -> Floats:
        """The unpenalised optimum, Y itself."""
        return self._prediction(X, self.groups)

    def fair_prediction(self, X: Floats) -> Floats:
        """The best SP-fair prediction: both groups moved or rescaled to the mean of their distributions."""
        return self.tradeoff_prediction(X, math.inf)

    @property
    def optimal_risk(self) -> float:
        """Risk of the unpenalised optimum: 0, there is no noise."""
        return 0.0

    @property
    def fair_risk(self) -> float:
        """Risk of the best SP-fair hypothesis: p0 p1 times the squared difference of the means or of the deviations."""
        first, second = self.groups
        difference = first.mean - second.mean if self.kind == "offset" else first.deviation - second.deviation
        return (1 - self.p1) * self.p1 * difference**2

    @property
    def optimal_distances(self) -> Distances:
        """Distances between the groups under the unpenalised optimum."""
        return normal_distances(*self.groups)

    def tradeoff(self, strength: float) -> TradeOffPoint:
        """The best linear model for risk + strength x energy.

        Parameters of the point: for "offset" the gap c of the means and the common deviation s; for "slope" the
        deviations s0 and s1 of the predictions in the two groups (linear in X and A X).

        >>> point = OffsetRegression(delta=1.0).tradeoff(1.0)
        >>> round(point.parameters["c"], 6), round(point.parameters["s"], 6), round(point.risk, 6)
        (0.31425, 1.026148, 0.118247)
        """
        check_strength(strength)
        parameters, predicted = self._best(strength)
        shares = (1 - self.p1, self.p1)
        risk = sum(
            share * ((p.mean - y.mean) ** 2 + (p.deviation - y.deviation) ** 2)
            for share, p, y in zip(shares, predicted, self.groups, strict=True)
        )
        distances = normal_distances(*predicted)
        return TradeOffPoint(strength, parameters, risk, distances.energy, distances.kolmogorov)

    def tradeoff_prediction(self, X: Floats, strength: float) -> Floats:
        """Predictions of the model that ``tradeoff`` finds at this strength."""
        check_strength(strength)
        return self._prediction(X, self._best(strength)[1])

    def _best(self, strength: float) -> tuple[dict[str, float], tuple[Normal, Normal]]:
        """Parameters of the best linear model, and the distributions of its predictions in the two groups."""
        if self.kind == "offset":
            c, s = self._best_gap(strength)
            middle = (1 - self.p1) * (self.delta - c)
            return {"c": c, "s": s}, (Normal(c + middle, s), Normal(middle, s))
        s0, s1 = self._best_deviations(strength)
        return {"s0": s0, "s1": s1}, (Normal(0.0, s0), Normal(0.0, s1))

    def _best_gap(self, strength: float) -> tuple[float, float]:
        """Gap c and deviation s where the derivatives of the (convex) objective vanish: one equation for t = c / s."""
        s0, gap = self.groups[1].deviation, abs(self.delta)
        if math.isinf(strength):
            return 0.0, s0

        def deviation(t: float) -> float:
            return s0 - strength * 2 / math.sqrt(math.pi) * math.expm1(-t * t / 4)

        pull = strength / ((1 - self.p1) * self.p1)
        t = root(lambda t: t * deviation(t) + pull * math.erf(t / 2) - gap, 0.0, gap / s0)
        return math.copysign(t * deviation(t), self.delta), deviation(t)

    def _best_deviations(self, strength: float) -> tuple[float, float]:
        """Deviations where the derivatives of the (convex) objective vanish: one equation for their angle."""
        p0, p1 = 1 - self.p1, self.p1
        y0, y1 = (group.deviation for group in self.groups)
        if math.isinf(strength) or y0 == y1:
            return (p0 * y0 + p1 * y1,) * 2

        def deviations(turn: float) -> tuple[float, float]:
            # sqrt(2) cos(pi/4 + turn) - 1 and sqrt(2) sin(pi/4 + turn) - 1, without the cancellation at small turns
            sine, versine = math.sin(turn), 2 * math.sin(turn / 2) ** 2
            pull = strength / math.sqrt(math.pi)
            return y0 + pull / p0 * (versine + sine), y1 + pull / p1 * (versine - sine)

        def mismatch(turn: float) -> float:
            s0, s1 = deviations(turn)
            return s0 * math.sin(math.pi / 4 + turn) - s1 * math.cos(math.pi / 4 + turn)

        ends = sorted((0.0, math.atan2(y1 - y0, y1 + y0)))
        return deviations(root(mismatch, *ends))

    def _prediction(self, X: Floats, predicted: tuple[Normal, Normal]) -> Floats:
        """Linear predictions that are distributed as said in the two groups."""
        group = last_column_as_group(X, width=len(self.theta) + 1)
        coefficients = self._coefficients
        scale = np.array([p.deviation for p in predicted]) / np.linalg.norm(coefficients, axis=1)
        mean = np.array([p.mean for p in predicted])
        linear = (X[:, :-1] * (scale[:, None] * coefficients)[group]).sum(axis=1)
        return np.asarray(mean[group] + linear, dtype=np.float64)
