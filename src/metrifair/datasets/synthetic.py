"""Synthetic populations with exact answers, for examples and tests.

Every population is a value (a frozen dataclass) with ``sample(n, seed)``, which returns ``(X, y, a)``, and
``optimal_prediction(X)``, the best prediction without any fairness requirement.

========================  =============================================================================================
HiddenExperience          enforcing statistical parity reduces accuracy and fairness (the paper's Example 1)
BiasedClassification      statistical parity improves accuracy where labels are biased
OffsetRegression          normal scores, with the exact trade-off curve
OnlineRegression          a stream that changes (the paper's section on online regression)
========================  =============================================================================================
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_integer, check_number

__all__ = [
    "BiasedClassification",
    "Chunk",
    "HiddenExperience",
    "OffsetRegression",
    "OnlineRegression",
    "Sample",
    "TradeOffPoint",
]


def __dir__() -> list[str]:
    return __all__


Seed: TypeAlias = int | np.random.Generator

_TEST, _SLOPES = 1, 2  # purposes of a seed besides the sample itself
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


class Chunk(NamedTuple):
    """Consecutive rows of a stream, all of one regime.

    Parameters
    ----------
    X
        Features of shape (n, d); the group is the last column.
    y
        Targets of shape (n,).
    a
        Groups of shape (n,), integers 0 and 1.
    regime
        Number of the regime, from 0.

    Examples
    --------
    >>> next(OnlineRegression().stream(4000)).regime
    0
    """

    X: Floats
    y: Floats
    a: Integers
    regime: int


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
class HiddenExperience:
    """Skill that shows in the grades of the young only (the paper's Example 1).

    A ~ Bernoulli(p1); grade X1 and experience S uniform on [0, 1]; all independent. Skill Y = A X1 + (1 - A) S;
    features (X1, A), squared loss. Y is independent of A, and still the optimum is unfair. Parity makes the
    predictions for group 0 a lottery.

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


@dataclass(frozen=True)
class BiasedClassification:
    """Labels of which a share delta of the positives of group 1 goes unrecorded (the paper's health care example).

    X1 uniform on 0..m-1, A ~ Bernoulli(p1) independent, features (X1, A). P[Y0=1|X] = 0.1 + 0.8 X1/(m-1); the recorded
    label is (1 - A) Y0 with probability delta, else Y0. Cross entropy. ``true`` risks are those with respect to Y0.

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
        """The same population without bias; for one seed it has the same rows, with the true labels."""
        return replace(self, delta=0.0)

    @property
    def optimal_table(self) -> Floats:
        """Probability of a recorded positive: row = group, column = X1."""
        probability = 0.1 + 0.8 * np.arange(self.m) / (self.m - 1)
        return np.array([probability, probability * (1 - self.delta)])

    @property
    def fair_table(self) -> Floats:
        """The best prediction with statistical parity: row = group, column = X1. Both groups have the order of X1."""
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
        """Cross entropy of the optimal prediction with respect to the true labels; infinite at delta = 1."""
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


@dataclass(frozen=True)
class OffsetRegression:
    """Noise-free linear targets with another intercept in group 0, with the exact trade-off curve.

    X ~ N(0, I), A ~ Bernoulli(p1) independent, features (X, A), Y = <theta, X> + delta (1 - A), squared loss.

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
            raise DataError(f"theta must be finite and not zero, got {self.theta}; choose coefficients such as (1.0,)")

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

        Its parameters are the gap c between the groups' means and the common deviation s of the predictions.

        >>> point = OffsetRegression(delta=1.0).tradeoff(1.0)
        >>> round(point.parameters["c"], 6), round(point.parameters["s"], 6), round(point.risk, 6)
        (0.31425, 1.026148, 0.118247)
        """
        c, s = self._best_gap(strength)
        risk = (1 - self.p1) * self.p1 * (self.delta - c) ** 2 + (s - float(np.linalg.norm(self.theta))) ** 2
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
        """Gap c and deviation s where the derivatives of the (convex) objective vanish: one equation for t = c / s."""
        check_strength(strength)
        s0, gap = float(np.linalg.norm(self.theta)), abs(self.delta)
        if strength == 0 or math.isinf(strength):
            return (0.0 if strength else self.delta), s0

        def deviation(t: float) -> float:
            return s0 - strength * 2 / math.sqrt(math.pi) * math.expm1(-t * t / 4)

        pull = strength / ((1 - self.p1) * self.p1)
        t = root(lambda t: t * deviation(t) + pull * math.erf(t / 2) - gap, 0.0, gap / s0)
        return math.copysign(t * deviation(t), self.delta), deviation(t)


@dataclass(frozen=True)
class OnlineRegression:
    """A stream with Y = max_j <s_j, X>, whose slopes s_j are drawn anew after every ``period`` samples.

    X uniform on [0, 1]^(d-1) x {0, 1}, the last component being the group; s_1, ..., s_n_pieces uniform on [-2, 2]^d;
    no noise. Defaults are those of the paper. One population fixes the slopes of all regimes; replications with other
    slopes are populations with other ``slopes_seed``.

    Parameters
    ----------
    d
        Number of features, the group included.
    n_pieces
        Number of linear pieces.
    period
        Samples per regime; 2000 switches at the rows 2000, 4000, ... (counted from 0). The reference's code
        switches one sample late, which for 4,000 samples is period 2001.
    p1
        Share of group 1.
    slopes
        One matrix of shape (d, n_pieces) for each regime; None draws as many as needed.
    slopes_seed
        Seed of the drawn slopes; ignored where slopes are given.

    Examples
    --------
    >>> population = OnlineRegression(period=3)
    >>> [(len(chunk.y), chunk.regime) for chunk in population.stream(8, seed=0, size=2)]
    [(2, 0), (1, 0), (2, 1), (1, 1), (2, 2)]
    """

    d: int = 10
    n_pieces: int = 5
    period: int = 2000
    p1: float = 0.5
    slopes: Floats | Sequence[Sequence[Sequence[float]]] | None = None
    slopes_seed: int = 0

    def __post_init__(self) -> None:
        check_integer("d", self.d, least=1)
        check_integer("n_pieces", self.n_pieces, least=1)
        check_integer("period", self.period, least=1)
        check_integer("slopes_seed", self.slopes_seed, least=0)
        check_probability("p1", self.p1)
        if self.slopes is None:
            return
        slopes = np.asarray(self.slopes, dtype=np.float64)
        if slopes.ndim != 3 or slopes.shape[1:] != (self.d, self.n_pieces) or not np.isfinite(slopes).all():
            raise DataError(
                f"slopes must be finite, of shape (regimes, {self.d}, {self.n_pieces}), got shape {slopes.shape}; "
                "give one matrix for each regime, or change d and n_pieces"
            )
        # Tuples make the population a value: printable, comparable, hashable.
        object.__setattr__(self, "slopes", tuple(tuple(tuple(row) for row in matrix) for matrix in slopes.tolist()))

    def regime_slopes(self, regime: int) -> Floats:
        """Slopes of a regime, shape (d, n_pieces): row = feature, column = piece."""
        check_integer("regime", regime, least=0)
        if self.slopes is None:
            rng = np.random.default_rng(np.random.SeedSequence(self.slopes_seed, spawn_key=(_SLOPES, regime)))
            return rng.uniform(-2.0, 2.0, (self.d, self.n_pieces))
        if regime >= len(self.slopes):
            raise DataError(
                f"slopes were given for {len(self.slopes)} regimes, got regime {regime} (counted from 0); "
                "give more slopes, a longer period, or slopes=None"
            )
        return np.array(self.slopes[regime], dtype=np.float64)

    def stream(self, n: int = 4000, seed: Seed = 0, *, size: int = 1) -> Iterator[Chunk]:
        """n rows in chunks of the given size, shorter before a change of regime; the rows do not depend on the size."""
        check_integer("n", n, least=1)
        check_integer("size", size, least=1)
        return self._chunks(n, generator(seed), size)

    def _chunks(self, n: int, rng: np.random.Generator, size: int) -> Iterator[Chunk]:
        start = 0
        while start < n:
            regime = start // self.period
            stop = min(start + size, n, (regime + 1) * self.period)
            yield Chunk(*self._draw(stop - start, rng, regime), regime)
            start = stop

    def sample(self, n: int = 4000, seed: Seed = 0) -> Sample:
        """The first n rows of the stream in one piece, changes of regime included."""
        chunks = list(self.stream(n, seed, size=n))
        return Sample(*(np.concatenate([chunk[part] for chunk in chunks]) for part in range(3)))

    def test_set(self, n: int = 1000, regime: int = 0, seed: Seed = 0) -> Sample:
        """n rows of one regime, independent of the stream of the same seed; all regimes share features and groups.

        >>> population = OnlineRegression()
        >>> bool((population.test_set(5, regime=0).X == population.test_set(5, regime=1).X).all())
        True
        """
        check_integer("n", n, least=1)
        return Sample(*self._draw(n, generator(seed, purpose=_TEST), regime))

    def _draw(self, n: int, rng: np.random.Generator, regime: int) -> tuple[Floats, Floats, Integers]:
        # One call for features and group, row by row: the numbers do not depend on how the rows are cut into chunks.
        X = rng.random((n, self.d))
        X[:, -1] = X[:, -1] < self.p1
        return X, self.optimal_prediction(X, regime), X[:, -1].astype(np.int64)

    def optimal_prediction(self, X: Floats, regime: int = 0) -> Floats:
        """The optimal prediction, Y itself: the largest of the linear pieces."""
        last_column_as_group(X, width=self.d)
        # einsum, not BLAS: a matrix product may round a row differently according to how many rows come with it.
        return np.asarray(np.einsum("nd,dp->np", X, self.regime_slopes(regime)).max(axis=1), dtype=np.float64)


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


def table_features(rng: np.random.Generator, n: int, m: int, p1: float) -> Floats:
    """n rows (x1, a): x1 uniform on 0..m-1 and the group, independent."""
    check_integer("n", n, least=1)
    group = rng.random(n) < p1
    return np.column_stack([rng.integers(m, size=n), group]).astype(np.float64)


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
