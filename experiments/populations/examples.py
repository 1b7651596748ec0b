"""The paper's examples 1 and 2: statistical parity can reduce accuracy and fairness; and
independent labels do not make the optimum fair.
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from experiments.populations.biased import table_values
from experiments.populations.closed_forms import Distances, atomic_distances, uniform_distances
from experiments.populations.synthetic import (
    Sample,
    Seed,
    TradeOffPoint,
    check_probability,
    check_strength,
    generator,
    last_column_as_group,
    root,
)
from experiments.populations.tradeoff import unrestricted_tradeoff
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_integer, check_known, check_number


@dataclass(frozen=True)
class HiddenExperience:
    """Skill that shows in the grades of the young only (the paper's Example 1).

    A ~ Bernoulli(p1); grade X1 and experience S uniform on [0, 1]; all independent. Skill Y = A X1
    + (1 - A) S; features (X1, A), squared loss. Y is independent of A, and still the optimum is
    unfair. Parity makes the predictions for group 0 a lottery.

    Parameters
    ----------
    p1
        Share of group 1, strictly between 0 and 1.

    Examples
    --------
    >>> population = HiddenExperience(p1=0.5)
    >>> X, y, a = population.sample(1000, seed=0)
    >>> bool((y[a == 1] == X[a == 1, 0]).all())
    True
    >>> population.optimal_risk.__round__(4), population.fair_risk
    (0.0417, 0.0625)
    """

    p1: float = 0.5

    def __post_init__(self) -> None:
        check_probability("p1", self.p1)

    def sample(self, n: int, seed: Seed = 0) -> Sample:
        """n rows (X, y, a); the columns of X are the grade and the group."""
        check_integer("n", n, least=1)
        uniform = generator(seed).random((n, 3))
        group = (uniform[:, 0] < self.p1).astype(np.int64)
        skill = np.where(group == 1, uniform[:, 1], uniform[:, 2])
        return Sample(np.column_stack([uniform[:, 1], group]), skill, group)

    def optimal_prediction(self, X: Floats) -> Floats:
        """E[Y|X]: the grade in group 1, one half in group 0."""
        return self.linear_prediction(X, s0=0.0, s1=1.0)

    def fair_prediction(self, X: Floats) -> Floats:
        """The best prediction with statistical parity, 1/2 + p1 (x1 - 1/2) in both groups."""
        return self.linear_prediction(X, s0=self.p1, s1=self.p1)

    def linear_prediction(self, X: Floats, s0: float, s1: float) -> Floats:
        """1/2 + s_a (x1 - 1/2), a linear model of the features (x1, a, a x1)."""
        return 0.5 + np.array([s0, s1])[last_column_as_group(X, width=2)] * (X[:, 0] - 0.5)

    @property
    def optimal_risk(self) -> float:
        """Risk of the optimal prediction, p0 / 12."""
        return (1 - self.p1) / 12

    @property
    def fair_risk(self) -> float:
        """Risk of the best prediction with statistical parity, (1 - p1^2) / 12."""
        return (1 - self.p1) * (1 + self.p1) / 12


class Example1(HiddenExperience):
    """``HiddenExperience`` with its distances, its linear models and its trade-off.

    The formula for ``fair_risk`` that the paper prints is wrong (see ``printed_fair_risk``).

    Examples
    --------
    >>> Example1(p1=0.5).fair_risk, Example1(p1=0.5).printed_fair_risk.__round__(4)
    (0.0625, 0.3646)
    """

    @property
    def printed_fair_risk(self) -> float:
        """The paper's wrong formula for ``fair_risk``: at p1 = 1/2 more than the 1/12 of the
        constant 1/2.
        """
        p0, p1 = 1 - self.p1, self.p1
        return p0 / (12 * p1) * (1 + 10 * p1 - 9 * p1**2 + 4 * p1**3) + p0**2 * p1 / 12

    @property
    def optimal_distances(self) -> Distances:
        """Distances between the groups under the unpenalized optimum: a point mass at 1/2
        against uniform on [0, 1].
        """
        return self.linear_distances(s0=0.0, s1=1.0)

    def linear_risk(self, s0: float, s1: float) -> float:
        """Risk of the linear model with these slopes, p1 (1 - s1)^2 / 12 + p0 (1 + s0^2) / 12."""
        return (self.p1 * (1 - s1) ** 2 + (1 - self.p1) * (1 + s0**2)) / 12

    def linear_distances(self, s0: float, s1: float) -> Distances:
        """Distances between the groups under the linear model with these slopes: two centered
        uniforms.
        """
        return uniform_distances(s0, s1)

    def mixture(self, t: float) -> dict[str, float]:
        """Slopes of (1 - t) optimum + t best SP-fair hypothesis.

        >>> Example1(p1=0.25).mixture(1.0)
        {'s0': 0.25, 's1': 0.25}
        """
        check_number("t", t, low=0, high=1)
        return {"s0": t * self.p1, "s1": (1 - t) + t * self.p1}

    def tradeoff(self, strength: float) -> TradeOffPoint:
        """The best linear model for risk + strength x energy, with slopes s0 (up to its sign) and
        s1.

        >>> point = Example1(p1=0.5).tradeoff(0.25)
        >>> round(point.parameters["s0"], 6), round(point.risk, 6), round(point.energy, 6)
        (0.403928, 0.052794, 0.018427)
        """
        check_strength(strength)
        slopes = self._best_slopes(strength)
        distances = self.linear_distances(**slopes)
        return TradeOffPoint(
            strength, slopes, self.linear_risk(**slopes), distances.energy, distances.kolmogorov
        )

    def _best_slopes(self, strength: float) -> dict[str, float]:
        """Slopes at which the derivatives of the (convex) objective vanish; one equation for
        the ratio r = s0 / s1.
        """
        if strength == 0 or math.isinf(strength):
            return self.mixture(0.0 if strength == 0 else 1.0)
        p0, p1 = 1 - self.p1, self.p1
        # In units that stay moderate for large strengths: weight = strength / (1 + strength).
        weight = strength / (1 + strength)
        rest = 1 / (1 + strength)
        # The gap q = 1 - r rather than r itself: it becomes tiny, and strength multiplies its
        # error.
        q = root(
            lambda q: 2 * weight * p1 * q - (1 - q) * p0 * (p1 * rest - weight * q * (2 - q)),
            0.0,
            1.0,
        )
        s1 = 1 - strength * q * (2 - q) / p1
        return {"s0": (1 - q) * s1, "s1": s1}

    def unrestricted_tradeoff(self, strength: float) -> TradeOffPoint:
        """The best of all hypotheses for risk + strength x energy: slightly better than the best
        linear model.

        >>> Example1(p1=0.5).unrestricted_tradeoff(0.25).objective.__round__(5)
        0.05556
        """
        point = unrestricted_tradeoff(
            lambda z: (z >= 0.5).astype(np.float64),
            lambda z: np.clip(z, 0.0, 1.0),
            p1=self.p1,
            strength=strength,
            support=(0.0, 1.0),
        )
        return TradeOffPoint(
            strength, {}, self.optimal_risk + point.risk, point.energy, point.kolmogorov
        )


_MASS = np.array([0.8, 0.2])  # P[X1 = 0], P[X1 = 1], the same in both groups
_ETA = np.array([[0.55, 0.3], [0.4, 0.9]])  # P[Y = 1 | X1 = column, A = row]


@dataclass(frozen=True)
class IndependentLabels:
    """Labels independent of the group whose best predictor is not: the population of the paper's
    Example 2.

    X1 ~ Bernoulli(0.2) and A ~ Bernoulli(p1) independent; P[Y=1] at (x1, a) is 0.4 at (0, 1), 0.9
    at (1, 1), 0.55 at (0, 0) and 0.3 at (1, 0), so P[Y=1|A=a] = 1/2 in both groups. Features (X1,
    A). The paper prints 0.2 for P[P[Y=1|X] = 0.4 | A=1]; it is 0.8.

    Hypotheses are tables of shape (2, 2): row = group, column = x1.

    Parameters
    ----------
    p1
        Share of group 1.
    loss
        "zero_one" for decisions 0 and 1, as in the paper, or "squared" for predictions of P[Y=1|X].

    Examples
    --------
    >>> population = IndependentLabels(p1=0.5)
    >>> population.optimal_table
    array([[1., 0.],
           [0., 1.]])
    >>> round(population.optimal_risk, 6), round(population.fair_risk, 6)
    (0.38, 0.46)
    """

    p1: float = 0.5
    loss: Literal["zero_one", "squared"] = "zero_one"

    def __post_init__(self) -> None:
        check_probability("p1", self.p1)
        check_known("loss", self.loss, ("zero_one", "squared"))

    def sample(self, n: int, seed: Seed = 0) -> Sample:
        """n rows (X, y, a); the columns of X are X1 and the group."""
        check_integer("n", n, least=1)
        uniform = generator(seed).random((n, 3))
        group = (uniform[:, 0] < self.p1).astype(np.int64)
        x1 = (uniform[:, 1] < _MASS[1]).astype(np.int64)
        label = (uniform[:, 2] < _ETA[group, x1]).astype(np.int64)
        return Sample(np.column_stack([x1, group]).astype(np.float64), label, group)

    @property
    def probability_table(self) -> Floats:
        """P[Y=1|X]: row = group, column = x1."""
        return _ETA.copy()

    @property
    def optimal_table(self) -> Floats:
        """The unpenalized optimum: row = group, column = x1."""
        return (_ETA > 0.5).astype(np.float64) if self.loss == "zero_one" else _ETA.copy()

    @property
    def fair_table(self) -> Floats:
        """The best SP-fair hypothesis: row = group, column = x1 (for zero-one loss at p1 = 1/3
        one of many).
        """
        if self.loss == "zero_one":
            return min(self.fair_classifiers(), key=self.risk)
        # Only equal values of x1 have equal mass in both groups, so parity means to average over
        # the groups.
        mean = (1 - self.p1) * _ETA[0] + self.p1 * _ETA[1]
        return np.array([mean, mean])

    def fair_classifiers(self) -> list[Floats]:
        """Those of the 16 classifiers on the four feature values that are SP-fair: four.

        >>> len(IndependentLabels().fair_classifiers())
        4
        """
        tables = (
            np.array(values, dtype=np.float64).reshape(2, 2) for values in product((0, 1), repeat=4)
        )
        return [table for table in tables if self.distances(table).kolmogorov < 1e-9]

    def optimal_prediction(self, X: Floats) -> Floats:
        """The unpenalized optimum for each row."""
        return table_values(self.optimal_table, X)

    def fair_prediction(self, X: Floats) -> Floats:
        """The best SP-fair hypothesis for each row."""
        return table_values(self.fair_table, X)

    @property
    def optimal_risk(self) -> float:
        """Risk of the unpenalized optimum; 0.34 p1 + 0.42 p0 for zero-one loss."""
        return self.risk(self.optimal_table)

    @property
    def fair_risk(self) -> float:
        """Risk of the best SP-fair hypothesis; for zero-one loss min(0.34 p1 + 0.58 p0, 0.66 p1
        + 0.42 p0).
        """
        return self.risk(self.fair_table)

    @property
    def optimal_distances(self) -> Distances:
        """Distances between the groups under the unpenalized optimum."""
        return self.distances(self.optimal_table)

    def risk(self, table: Floats) -> float:
        """Expected loss of the hypothesis with this table; for predictions 0 and 1 both losses
        agree.
        """
        loss = _ETA * (1 - table) ** 2 + (1 - _ETA) * table**2
        return float(np.array([1 - self.p1, self.p1]) @ loss @ _MASS)

    def distances(self, table: Floats) -> Distances:
        """Distances between the groups under the hypothesis with this table."""
        masses = _MASS.tolist()
        return atomic_distances(table[0].tolist(), masses, table[1].tolist(), masses)
