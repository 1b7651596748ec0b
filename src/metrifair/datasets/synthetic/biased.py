"""Biased targets (the paper's theorem "SP improves accuracy"): trained on a biased proxy, judged by the truth."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from metrifair.datasets.synthetic.closed_forms import Distances, atomic_distances
from metrifair.datasets.synthetic.population import (
    Floats,
    Integers,
    Sample,
    Seed,
    check_probability,
    generator,
    table_values,
)
from metrifair.support.checks import check_integer, check_known, check_number


def fair_by_sorting(optimum: Floats, p1: float) -> Floats:
    """The best SP-fair hypothesis when all atoms weigh the same: the k-th smallest of both groups get their mean.

    It is optimal for squared loss and for cross entropy. Ties keep the order of the columns, so that a group without
    any order of its own follows the first column to the last.

    Parameters
    ----------
    optimum
        Unpenalised optimum, shape (2, m): row = group, column = atom.
    p1
        Share of group 1.

    Returns
    -------
    ndarray of shape (2, m)
        The fair hypothesis: row = group, column = atom.

    Examples
    --------
    >>> fair_by_sorting(np.array([[0.0, 1.0], [0.8, 0.2]]), p1=0.5)
    array([[0.1, 0.9],
           [0.9, 0.1]])
    """
    # Rounded, because computed values that are equal on paper may differ in the last bit and would be torn apart.
    order = np.argsort(np.round(optimum, 12), axis=1, kind="stable")
    ranked = np.take_along_axis(optimum, order, axis=1)
    fair = np.empty_like(optimum)
    np.put_along_axis(fair, order, np.broadcast_to((1 - p1) * ranked[0] + p1 * ranked[1], optimum.shape), axis=1)
    return fair


class _BiasedPopulation:
    """What both populations have: hypotheses as tables of the values of X1 by group."""

    m: int
    p1: float

    @property
    def optimal_table(self) -> Floats:
        """The unpenalised optimum for Y_delta: row = group, column = X1."""
        raise NotImplementedError

    @property
    def fair_table(self) -> Floats:
        """The best SP-fair hypothesis for Y_delta: row = group, column = X1."""
        return fair_by_sorting(self.optimal_table, self.p1)

    def optimal_prediction(self, X: Floats) -> Floats:
        """The unpenalised optimum for each row."""
        return table_values(self.optimal_table, X)

    def fair_prediction(self, X: Floats) -> Floats:
        """The best SP-fair hypothesis for each row."""
        return table_values(self.fair_table, X)

    @property
    def optimal_distances(self) -> Distances:
        """Distances between the groups under the unpenalised optimum."""
        masses = [1 / self.m] * self.m
        return atomic_distances(self.optimal_table[0].tolist(), masses, self.optimal_table[1].tolist(), masses)

    def _features(self, rng: np.random.Generator, n: int) -> tuple[Floats, Integers]:
        group = (rng.random(n) < self.p1).astype(np.int64)
        return np.column_stack([rng.integers(self.m, size=n), group]).astype(np.float64), group


@dataclass(frozen=True)
class BiasedRegression(_BiasedPopulation):
    """Regression on Y_delta = Y0 + delta b(X1, A) where the truth Y0 does not depend on the group, with exact answers.

    X1 uniform on 0..m-1, A ~ Bernoulli(p1) independent, features (X1, A), f = X1/(m-1), Y0 = f + sigma noise.
    "shift": b = -beta A; parity helps for every delta. "shrink": b = beta A (1 - 2f); parity helps for
    delta < 1/(2 beta) and hurts right after, where the order of group 1 is reversed. Squared loss. ``true`` risks are
    those with respect to Y0.

    Parameters
    ----------
    kind
        "shift" or "shrink".
    delta
        Size of the bias, 0 or more; 0 is the truth.
    beta
        Direction and scale of the bias.
    m
        Number of values of X1, at least 2.
    p1
        Share of group 1.
    sigma
        Standard deviation of the noise.

    Examples
    --------
    >>> for delta in (0.4, 0.6):
    ...     population = BiasedRegression("shrink", delta=delta, sigma=0.0)
    ...     print(round(population.optimal_true_risk, 6), round(population.fair_true_risk, 6))
    0.04 0.02
    0.09 0.17
    """

    kind: Literal["shift", "shrink"] = "shift"
    delta: float = 0.1
    beta: float = 1.0
    m: int = 5
    p1: float = 0.5
    sigma: float = 0.1

    def __post_init__(self) -> None:
        check_known("kind", self.kind, ("shift", "shrink"))
        check_number("delta", self.delta, low=0, high=1e6)
        check_number("beta", self.beta)
        check_integer("m", self.m, least=2)
        check_probability("p1", self.p1)
        check_number("sigma", self.sigma, low=0, high=1e6)

    def sample(self, n: int, seed: Seed = 0) -> Sample:
        """n rows (X, y, a) with y = Y_delta; the columns of X are X1 and the group."""
        check_integer("n", n, least=1)
        rng = generator(seed)
        X, group = self._features(rng, n)
        return Sample(X, self.optimal_prediction(X) + self.sigma * rng.standard_normal(n), group)

    def truth(self) -> "BiasedRegression":
        """The same population without bias; for one seed it has the same rows, with y = Y0."""
        return replace(self, delta=0.0)

    @property
    def optimal_table(self) -> Floats:
        """The unpenalised optimum f + delta b: row = group, column = X1."""
        f = np.arange(self.m) / (self.m - 1)
        bias = np.full(self.m, -self.beta) if self.kind == "shift" else self.beta * (1 - 2 * f)
        return np.array([f, f + self.delta * bias])

    @property
    def optimal_risk(self) -> float:
        """Risk of the unpenalised optimum with respect to the biased target, sigma^2."""
        return self.sigma**2

    @property
    def fair_risk(self) -> float:
        """Risk of the best SP-fair hypothesis with respect to the biased target."""
        return self._squared(self.fair_table - self.optimal_table)

    @property
    def optimal_true_risk(self) -> float:
        """Risk of the unpenalised optimum with respect to the truth Y0."""
        return self._squared(self.optimal_table - self.truth().optimal_table)

    @property
    def fair_true_risk(self) -> float:
        """Risk of the best SP-fair hypothesis with respect to the truth Y0."""
        return self._squared(self.fair_table - self.truth().optimal_table)

    def _squared(self, error: Floats) -> float:
        return self.sigma**2 + float(np.array([1 - self.p1, self.p1]) @ (error**2).mean(axis=1))


@dataclass(frozen=True)
class BiasedClassification(_BiasedPopulation):
    """Classification where a share delta of the positives of group 1 goes unrecorded, with exact answers.

    X1, A and f as in ``BiasedRegression``; P[Y0=1|X] = 0.1 + 0.8 f, Y1 = (1 - A) Y0, and Y_delta is Y1 with probability
    delta, else Y0 (the paper's health care example). Cross entropy. ``true`` risks are those with respect to Y0.

    Parameters
    ----------
    delta
        Share of the positives of group 1 that goes unrecorded, from 0 to 1.
    m
        Number of values of X1, at least 2.
    p1
        Share of group 1.

    Examples
    --------
    >>> population = BiasedClassification(delta=0.3)
    >>> round(population.optimal_true_risk, 6), round(population.fair_true_risk, 6)
    (0.548639, 0.533499)
    """

    delta: float = 0.1
    m: int = 5
    p1: float = 0.5

    def __post_init__(self) -> None:
        check_number("delta", self.delta, low=0, high=1)
        check_integer("m", self.m, least=2)
        check_probability("p1", self.p1)

    def sample(self, n: int, seed: Seed = 0) -> Sample:
        """n rows (X, y, a) with y = Y_delta; the columns of X are X1 and the group."""
        check_integer("n", n, least=1)
        rng = generator(seed)
        X, group = self._features(rng, n)
        uniform = rng.random((n, 2))
        positive = uniform[:, 0] < table_values(self.truth().optimal_table, X)
        unrecorded = (uniform[:, 1] < self.delta) & (group == 1)
        return Sample(X, (positive & ~unrecorded).astype(np.int64), group)

    def truth(self) -> "BiasedClassification":
        """The same population without bias; for one seed it has the same rows, with y = Y0."""
        return replace(self, delta=0.0)

    @property
    def optimal_table(self) -> Floats:
        """The unpenalised optimum P[Y_delta=1|X]: row = group, column = X1."""
        eta = 0.1 + 0.8 * np.arange(self.m) / (self.m - 1)
        return np.array([eta, eta * (1 - self.delta)])

    @property
    def optimal_risk(self) -> float:
        """Cross entropy of the unpenalised optimum with respect to the biased labels."""
        return self._cross_entropy(self.optimal_table, self.optimal_table)

    @property
    def fair_risk(self) -> float:
        """Cross entropy of the best SP-fair hypothesis with respect to the biased labels."""
        return self._cross_entropy(self.optimal_table, self.fair_table)

    @property
    def optimal_true_risk(self) -> float:
        """Cross entropy of the unpenalised optimum with respect to the true labels; infinite at delta = 1."""
        return self._cross_entropy(self.truth().optimal_table, self.optimal_table)

    @property
    def fair_true_risk(self) -> float:
        """Cross entropy of the best SP-fair hypothesis with respect to the true labels."""
        return self._cross_entropy(self.truth().optimal_table, self.fair_table)

    def _cross_entropy(self, probability: Floats, prediction: Floats) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            positive = np.where(probability > 0, -probability * np.log(prediction), 0.0)
        entropy = positive - (1 - probability) * np.log1p(-prediction)
        return float(np.array([1 - self.p1, self.p1]) @ entropy.mean(axis=1))
