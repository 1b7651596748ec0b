"""Example 2 of the paper: a target that is independent of the group does not make the optimum fair."""

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from metrifair.checks import check_integer, check_known
from metrifair.datasets.synthetic.closed_forms import Distances, atomic_distances
from metrifair.datasets.synthetic.finite_space import FiniteSpace
from metrifair.datasets.synthetic.population import (
    Floats,
    Sample,
    Seed,
    check_probability,
    generator,
    table_values,
)

_MASS = np.array([0.8, 0.2])  # P[X1 = 0], P[X1 = 1], the same in both groups
_ETA = np.array([[0.55, 0.3], [0.4, 0.9]])  # P[Y = 1 | X1 = column, A = row]


@dataclass(frozen=True)
class IndependentLabels:
    """Labels independent of the group whose best predictor is not: the population of the paper's Example 2.

    X1 ~ Bernoulli(0.2) and A ~ Bernoulli(p1) independent; P[Y=1] at (x1, a) is 0.4 at (0, 1), 0.9 at (1, 1), 0.55 at
    (0, 0) and 0.3 at (1, 0), so P[Y=1|A=a] = 1/2 in both groups. Features (X1, A). The paper prints 0.2 for
    P[P[Y=1|X] = 0.4 | A=1]; it is 0.8.

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
        """The unpenalised optimum: row = group, column = x1."""
        return (_ETA > 0.5).astype(np.float64) if self.loss == "zero_one" else _ETA.copy()

    @property
    def fair_table(self) -> Floats:
        """The best SP-fair hypothesis: row = group, column = x1 (for zero-one loss at p1 = 1/3 one of many)."""
        if self.loss == "zero_one":
            return min(self.fair_classifiers(), key=self.risk)
        # Only equal values of x1 have equal mass in both groups, so parity means to average over the groups.
        mean = (1 - self.p1) * _ETA[0] + self.p1 * _ETA[1]
        return np.array([mean, mean])

    def fair_classifiers(self) -> list[Floats]:
        """Those of the 16 classifiers on the four feature values that are SP-fair: four.

        >>> len(IndependentLabels().fair_classifiers())
        4
        """
        tables = (np.array(values, dtype=np.float64).reshape(2, 2) for values in product((0, 1), repeat=4))
        return [table for table in tables if self.distances(table).kolmogorov < 1e-9]

    def optimal_prediction(self, X: Floats) -> Floats:
        """The unpenalised optimum for each row."""
        return table_values(self.optimal_table, X)

    def fair_prediction(self, X: Floats) -> Floats:
        """The best SP-fair hypothesis for each row."""
        return table_values(self.fair_table, X)

    @property
    def optimal_risk(self) -> float:
        """Risk of the unpenalised optimum; 0.34 p1 + 0.42 p0 for zero-one loss."""
        return self.risk(self.optimal_table)

    @property
    def fair_risk(self) -> float:
        """Risk of the best SP-fair hypothesis; for zero-one loss min(0.34 p1 + 0.58 p0, 0.66 p1 + 0.42 p0)."""
        return self.risk(self.fair_table)

    @property
    def optimal_distances(self) -> Distances:
        """Distances between the groups under the unpenalised optimum."""
        return self.distances(self.optimal_table)

    def risk(self, table: Floats) -> float:
        """Expected loss of the hypothesis with this table; for predictions 0 and 1 both losses agree."""
        loss = _ETA * (1 - table) ** 2 + (1 - _ETA) * table**2
        return float(np.array([1 - self.p1, self.p1]) @ loss @ _MASS)

    def distances(self, table: Floats) -> Distances:
        """Distances between the groups under the hypothesis with this table."""
        masses = _MASS.tolist()
        return atomic_distances(table[0].tolist(), masses, table[1].tolist(), masses)

    def space(self) -> FiniteSpace:
        """The four feature values (group 0 first) with masses and P[Y=1|X], to enumerate its SP-fair hypotheses."""
        masses = _MASS.tolist()
        joint = [((1 - self.p1) * mass, 0.0) for mass in masses] + [(0.0, self.p1 * mass) for mass in masses]
        return FiniteSpace(joint, _ETA.ravel().tolist())
