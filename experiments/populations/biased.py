"""Biased targets (the paper's theorem "SP improves accuracy"): trained on a biased proxy, judged by
the truth; also under other losses and with a Tikhonov term.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Literal

import numpy as np

from experiments.populations.closed_forms import Distances, Normal, atomic_distances
from experiments.populations.synthetic import (
    Sample,
    Seed,
    check_probability,
    generator,
    last_column_as_group,
)
from metrifair.errors import DataError
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_integer, check_known, check_number


@dataclass(frozen=True)
class BiasedClassification:
    """Labels of which a share delta of the positives of group 1 goes unrecorded (the paper's health
    care example).

    X1 uniform on 0..m-1, A ~ Bernoulli(p1) independent, features (X1, A). P[Y0=1|X] = 0.1 + 0.8
    X1/(m-1); the recorded label is (1 - A) Y0 with probability delta, else Y0. Cross entropy.
    ``true`` risks are those with respect to Y0.

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
        """n rows (X, y, a) with the recorded labels; the columns of X are X1 and the group."""
        rng = generator(seed)
        X = table_features(rng, n, self.m, self.p1)
        uniform = rng.random((n, 2))
        group = X[:, 1].astype(np.int64)
        positive = uniform[:, 0] < table_values(self.truth().optimal_table, X)
        unrecorded = (uniform[:, 1] < self.delta) & (group == 1)
        return Sample(X, (positive & ~unrecorded).astype(np.int64), group)

    def truth(self) -> "BiasedClassification":
        """The same population without bias; for one seed it has the same rows, with the true
        labels.
        """
        return replace(self, delta=0.0)

    @property
    def optimal_table(self) -> Floats:
        """Probability of a recorded positive: row = group, column = X1."""
        probability = 0.1 + 0.8 * np.arange(self.m) / (self.m - 1)
        return np.array([probability, probability * (1 - self.delta)])

    @property
    def fair_table(self) -> Floats:
        """The best prediction with statistical parity: row = group, column = X1.

        Both groups have the order of X1.
        """
        return np.array([np.array([1 - self.p1, self.p1]) @ self.optimal_table] * 2)

    def optimal_prediction(self, X: Floats) -> Floats:
        """The probability of a recorded positive for each row."""
        return table_values(self.optimal_table, X)

    def fair_prediction(self, X: Floats) -> Floats:
        """The best prediction with statistical parity for each row."""
        return table_values(self.fair_table, X)

    @property
    def optimal_risk(self) -> float:
        """Cross entropy of the optimal prediction with respect to the recorded labels."""
        return self._cross_entropy(self.optimal_table, self.optimal_table)

    @property
    def fair_risk(self) -> float:
        """Cross entropy of the best prediction with parity with respect to the recorded labels."""
        return self._cross_entropy(self.optimal_table, self.fair_table)

    @property
    def optimal_true_risk(self) -> float:
        """Cross entropy of the optimal prediction with respect to the true labels; infinite at
        delta = 1.
        """
        return self._cross_entropy(self.truth().optimal_table, self.optimal_table)

    @property
    def fair_true_risk(self) -> float:
        """Cross entropy of the best prediction with parity with respect to the true labels."""
        return self._cross_entropy(self.truth().optimal_table, self.fair_table)

    def _cross_entropy(self, probability: Floats, prediction: Floats) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            positive = np.where(probability > 0, -probability * np.log(prediction), 0.0)
        entropy = positive - (1 - probability) * np.log1p(-prediction)
        return float(np.array([1 - self.p1, self.p1]) @ entropy.mean(axis=1))


def table_features(rng: np.random.Generator, n: int, m: int, p1: float) -> Floats:
    """n rows (x1, a): x1 uniform on 0..m-1 and the group, independent."""
    check_integer("n", n, least=1)
    group = rng.random(n) < p1
    return np.column_stack([rng.integers(m, size=n), group]).astype(np.float64)


def table_values(table: Floats, X: Floats) -> Floats:
    """The entries of a hypothesis on rows (x1, a) of integers, given as a table: row = group,
    column = x1.

    Examples
    --------
    >>> table_values(np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([0.2, 0.3])
    """
    group, m = last_column_as_group(X, width=2), table.shape[1]
    if not np.isin(X[:, 0], np.arange(m)).all():
        found = np.unique(X[:, 0])
        raise DataError(
            f"the first column of X must contain 0 to {m - 1}, got {found}; pass rows as sample() "
            "returns"
        )
    return np.asarray(table[group, X[:, 0].astype(np.int64)], dtype=np.float64)


def fair_by_sorting(optimum: Floats, p1: float) -> Floats:
    """The best SP-fair hypothesis when all atoms weigh the same: the k-th smallest of both groups
    get their mean.

    It is optimal for squared loss and for cross entropy. Ties keep the order of the columns, so
    that a group without any order of its own follows the first column to the last.

    Parameters
    ----------
    optimum
        Unpenalized optimum, shape (2, m): row = group, column = atom.
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
    # Rounded, because computed values that are equal on paper may differ in the last bit and would
    # be torn apart.
    order = np.argsort(np.round(optimum, 12), axis=1, kind="stable")
    ranked = np.take_along_axis(optimum, order, axis=1)
    fair = np.empty_like(optimum)
    np.put_along_axis(
        fair, order, np.broadcast_to((1 - p1) * ranked[0] + p1 * ranked[1], optimum.shape), axis=1
    )
    return fair


def table_distances(table: Floats) -> Distances:
    """Distances between the groups under a hypothesis on equally frequent atoms: row = group,
    column = atom.

    >>> table_distances(np.array([[0.0, 1.0], [1.0, 2.0]])).wasserstein
    1.0
    """
    masses = [1 / table.shape[1]] * table.shape[1]
    return atomic_distances(table[0].tolist(), masses, table[1].tolist(), masses)


@dataclass(frozen=True)
class BiasedRegression:
    """Regression on Y_delta = Y0 + delta b(X1, A) where the truth Y0 does not depend on the group,
    with exact answers.

    X1 uniform on 0..m-1, A ~ Bernoulli(p1) independent, features (X1, A), f = X1/(m-1), Y0 = f +
    sigma noise. "shift": b = -beta A; parity helps for every delta. "shrink": b = beta A (1 - 2f);
    parity helps for delta < 1/(2 beta) and hurts right after, where the order of group 1 is
    reversed. Squared loss. ``true`` risks are those with respect to Y0.

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
        rng = generator(seed)
        X = table_features(rng, n, self.m, self.p1)
        y = self.optimal_prediction(X) + self.sigma * rng.standard_normal(n)
        return Sample(X, y, X[:, 1].astype(np.int64))

    def truth(self) -> "BiasedRegression":
        """The same population without bias; for one seed it has the same rows, with y = Y0."""
        return replace(self, delta=0.0)

    @property
    def optimal_table(self) -> Floats:
        """The unpenalized optimum f + delta b: row = group, column = X1."""
        f = np.arange(self.m) / (self.m - 1)
        bias = np.full(self.m, -self.beta) if self.kind == "shift" else self.beta * (1 - 2 * f)
        return np.array([f, f + self.delta * bias])

    @property
    def fair_table(self) -> Floats:
        """The best SP-fair hypothesis for Y_delta: row = group, column = X1."""
        return fair_by_sorting(self.optimal_table, self.p1)

    def optimal_prediction(self, X: Floats) -> Floats:
        """The unpenalized optimum for each row."""
        return table_values(self.optimal_table, X)

    def fair_prediction(self, X: Floats) -> Floats:
        """The best SP-fair hypothesis for each row."""
        return table_values(self.fair_table, X)

    @property
    def optimal_risk(self) -> float:
        """Risk of the unpenalized optimum with respect to the biased target, sigma^2."""
        return self.sigma**2

    @property
    def fair_risk(self) -> float:
        """Risk of the best SP-fair hypothesis with respect to the biased target."""
        return self._squared(self.fair_table - self.optimal_table)

    @property
    def optimal_true_risk(self) -> float:
        """Risk of the unpenalized optimum with respect to the truth Y0."""
        return self._squared(self.optimal_table - self.truth().optimal_table)

    @property
    def fair_true_risk(self) -> float:
        """Risk of the best SP-fair hypothesis with respect to the truth Y0."""
        return self._squared(self.fair_table - self.truth().optimal_table)

    def _squared(self, error: Floats) -> float:
        return self.sigma**2 + float(np.array([1 - self.p1, self.p1]) @ (error**2).mean(axis=1))


_HALVINGS = 70  # beyond the 53 bits of a float


@dataclass(frozen=True)
class ShiftedTarget:
    """Training on a target that is too low by ``bias`` in group 1, under any of three losses, with
    exact answers.

    X1 uniform on 0..m-1, A ~ Bernoulli(p1) independent, features (X1, A), f = X1/(m-1); the truth
    is Y0 = f + sigma noise (normal), the target Y0 - bias A. ``BiasedRegression("shift")`` is the
    case of the squared error. Each group's optimum has the order of f, so the best SP-fair
    hypothesis gives both groups one value at each f. Risks are those with respect to the truth
    (with the Tikhonov term), less the least one.

    The squared error is strongly convex, as the theorem asks: parity helps at every bias. The
    absolute error of a target without noise is not: there the fair hypothesis follows the larger
    group, and is right, or as wrong as that.

    Parameters
    ----------
    loss
        "squared_error", "absolute_error" or "huber".
    bias
        By how much the target of group 1 is too low, 0 or more.
    p1
        Share of group 1.
    sigma
        Standard deviation of the noise.
    tikhonov
        Weight of the mean squared prediction, added to the risk.
    threshold
        Of Huber's loss: quadratic up to here, linear beyond.
    m
        Number of values of X1, at least 2.

    Examples
    --------
    >>> squared = ShiftedTarget("squared_error", bias=0.2, p1=0.6)
    >>> round(squared.optimal_true_risk, 6), round(squared.fair_true_risk, 6)     # p1 bias^2, (p1 bias)^2
    (0.024, 0.0144)
    >>> absolute = ShiftedTarget("absolute_error", bias=0.2, p1=0.6)
    >>> round(absolute.optimal_true_risk, 6), round(absolute.fair_true_risk, 6)   # p1 bias, bias: parity hurts
    (0.12, 0.2)
    """

    loss: Literal["squared_error", "absolute_error", "huber"] = "squared_error"
    bias: float = 0.1
    p1: float = 0.5
    sigma: float = 0.0
    tikhonov: float = 0.0
    threshold: float = 0.25
    m: int = 5

    def __post_init__(self) -> None:
        check_known("loss", self.loss, ("squared_error", "absolute_error", "huber"))
        check_number("bias", self.bias, low=0, high=1e6)
        check_probability("p1", self.p1)
        check_number("sigma", self.sigma, low=0, high=1e6)
        check_number("tikhonov", self.tikhonov, low=0, high=1e6)
        check_number("threshold", self.threshold, low=0, high=1e6, low_open=True)
        check_integer("m", self.m, least=2)

    @property
    def optimal_table(self) -> Floats:
        """The unpenalized optimum for the biased target: row = group, column = X1."""
        return np.array([self._best((1.0, 0.0)), self._best((0.0, 1.0))])

    @property
    def fair_table(self) -> Floats:
        """The best SP-fair hypothesis for the biased target: row = group, column = X1."""
        return np.array([self._best((1 - self.p1, self.p1))] * 2)

    @property
    def optimal_true_risk(self) -> float:
        """Excess risk of the unpenalized optimum with respect to the truth."""
        return self._excess(self.optimal_table)

    @property
    def fair_true_risk(self) -> float:
        """Excess risk of the best SP-fair hypothesis with respect to the truth."""
        return self._excess(self.fair_table)

    def _best(self, shares: tuple[float, float]) -> Floats:
        """The best value at each f for people of whom these shares belong to the two groups, by
        bisection.
        """
        f = np.linspace(0, 1, self.m)
        low: Floats = np.full(self.m, -self.bias - 1)
        high: Floats = np.full(self.m, 2.0)
        for _ in range(_HALVINGS):
            value = (low + high) / 2
            slope = shares[0] * self._slope(value - f) + shares[1] * self._slope(
                value - f + self.bias
            )
            falls = slope + 2 * self.tikhonov * value <= 0
            low, high = np.where(falls, value, low), np.where(falls, high, value)
        return np.asarray((low + high) / 2)

    def _excess(self, table: Floats) -> float:
        f = np.linspace(0, 1, self.m)
        truth = np.array([self._best((1.0, 0.0))] * 2)  # without bias both groups are as group 0

        def risk(values: Floats) -> Floats:
            return self._risk(values - f) + self.tikhonov * values**2

        return float(np.array([1 - self.p1, self.p1]) @ (risk(table) - risk(truth)).mean(1))

    def _slope(self, error: Floats) -> Floats:
        """Derivative of the expected loss where the prediction exceeds f by ``error``; the
        noise is normal.
        """
        if self.loss == "squared_error":
            return 2 * error
        reach = inf if self.loss == "absolute_error" else self.threshold
        if self.sigma == 0:
            return np.sign(error) if reach == inf else np.clip(error, -reach, reach)
        if reach == inf:
            return np.asarray(2 * _below(error / self.sigma) - 1)
        low, high = (-reach - error) / self.sigma, (reach - error) / self.sigma
        inside = error * (_below(high) - _below(low)) + self.sigma * (
            _density(low) - _density(high)
        )
        return np.asarray(inside + reach * (_below(-high) - _below(low)))

    def _risk(self, error: Floats) -> Floats:
        """Expected loss there, but for a constant."""
        if self.loss == "squared_error":
            return error**2
        k, s, far = self.threshold, self.sigma, np.abs(error)
        if self.loss == "absolute_error":
            return (
                far
                if s == 0
                else np.asarray(error * (2 * _below(error / s) - 1) + 2 * s * _density(error / s))
            )
        if s == 0:
            return np.where(far <= k, error**2 / 2, k * (far - k / 2))
        low, high = (-k - error) / s, (k - error) / s
        beyond = _below(low) + _below(-high)
        square = (error**2 + s**2) * (1 - beyond) + s * (
            (error - k) * _density(low) - (error + k) * _density(high)
        )
        distance = error * (_below(-high) - _below(low)) + s * (_density(low) + _density(high))
        return np.asarray(square / 2 + k * distance - k**2 / 2 * beyond)


# without SciPy, whose import would take longer
_below = np.vectorize(Normal(0.0, 1.0).cdf, otypes=[np.float64])


def _density(z: Floats) -> Floats:
    return np.asarray(np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))
