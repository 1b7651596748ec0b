"""The stream of the paper's section on online regression: the reference's slopes, and estimates
for each regime.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from experiments.populations.synthetic import (
    Sample,
    Seed,
    TradeOffPoint,
    check_probability,
    generator,
    last_column_as_group,
)
from experiments.populations.tradeoff import unrestricted_tradeoff
from metrifair.errors import DataError
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_integer

_ESTIMATE = 1  # purpose of a seed besides the stream itself


_TEST, _SLOPES = 1, 2  # purposes of a seed besides the sample itself


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
class OnlineRegression:
    """A stream with Y = max_j <s_j, X>, whose slopes s_j are drawn anew after every ``period``
    samples.

    X uniform on [0, 1]^(d-1) x {0, 1}, the last component being the group; s_1, ..., s_n_pieces
    uniform on [-2, 2]^d; no noise. Defaults are those of the paper. One population fixes the slopes
    of all regimes; replications with other slopes are populations with other ``slopes_seed``.

    Parameters
    ----------
    d
        Number of features, the group included.
    n_pieces
        Number of linear pieces.
    period
        Samples per regime; 2000 switches at the rows 2000, 4000, ... (counted from 0). The
        reference's code switches one sample late, which for 4,000 samples is period 2001.
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
        if (
            slopes.ndim != 3
            or slopes.shape[1:] != (self.d, self.n_pieces)
            or not np.isfinite(slopes).all()
        ):
            raise DataError(
                f"slopes must be finite, of shape (regimes, {self.d}, {self.n_pieces}), got shape "
                f"{slopes.shape}; "
                "give one matrix for each regime, or change d and n_pieces"
            )
        # Tuples make the population a value: printable, comparable, hashable.
        object.__setattr__(
            self, "slopes", tuple(tuple(tuple(row) for row in matrix) for matrix in slopes.tolist())
        )

    def regime_slopes(self, regime: int) -> Floats:
        """Slopes of a regime, shape (d, n_pieces): row = feature, column = piece."""
        check_integer("regime", regime, least=0)
        if self.slopes is None:
            rng = np.random.default_rng(
                np.random.SeedSequence(self.slopes_seed, spawn_key=(_SLOPES, regime))
            )
            return rng.uniform(-2.0, 2.0, (self.d, self.n_pieces))
        if regime >= len(self.slopes):
            raise DataError(
                f"slopes were given for {len(self.slopes)} regimes, got regime {regime} (counted "
                "from 0); "
                "give more slopes, a longer period, or slopes=None"
            )
        return np.array(self.slopes[regime], dtype=np.float64)

    def stream(self, n: int = 4000, seed: Seed = 0, *, size: int = 1) -> Iterator[Chunk]:
        """n rows in chunks of the given size, shorter before a change of regime; the rows do
        not depend on the size.
        """
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
        """n rows of one regime, independent of the stream of the same seed; all regimes share
        features and groups.

        >>> population = OnlineRegression()
        >>> bool((population.test_set(5, regime=0).X == population.test_set(5, regime=1).X).all())
        True
        """
        check_integer("n", n, least=1)
        return Sample(*self._draw(n, generator(seed, purpose=_TEST), regime))

    def _draw(
        self, n: int, rng: np.random.Generator, regime: int
    ) -> tuple[Floats, Floats, Integers]:
        # One call for features and group, row by row: the numbers do not depend on how the rows are
        # cut into chunks.
        X = rng.random((n, self.d))
        X[:, -1] = X[:, -1] < self.p1
        return X, self.optimal_prediction(X, regime), X[:, -1].astype(np.int64)

    def optimal_prediction(self, X: Floats, regime: int = 0) -> Floats:
        """The optimal prediction, Y itself: the largest of the linear pieces."""
        last_column_as_group(X, width=self.d)
        # einsum, not BLAS: a matrix product may round a row differently according to how many rows
        # come with it.
        return np.asarray(
            np.einsum("nd,dp->np", X, self.regime_slopes(regime)).max(axis=1), dtype=np.float64
        )


@dataclass(frozen=True)
class RegimeEstimate:
    """What n samples say about one regime: a Monte Carlo estimate, since this population has no
    closed form.

    The target Y is also the unpenalized optimum (risk 0: the group is a feature), so that distances
    of Y are those of the optimum. ``fair_risk`` is the least risk of an SP-fair hypothesis, p0 p1
    W2^2.

    Parameters
    ----------
    means
        Mean target of group 0 and of group 1.
    variance
        Variance of the target.
    energy
        Energy distance of the groups' targets.
    kolmogorov
        Kolmogorov distance of the groups' targets.
    wasserstein
        Wasserstein distance of the groups' targets.
    fair_risk
        Least risk of an SP-fair hypothesis.

    Examples
    --------
    >>> regime_estimate(OnlineRegression(d=1, n_pieces=1, slopes=[[[1.0]]]), n=100).means   # Y = A
    (0.0, 1.0)
    """

    means: tuple[float, float]
    variance: float
    energy: float
    kolmogorov: float
    wasserstein: float
    fair_risk: float


def regime_estimate(
    population: OnlineRegression, regime: int = 0, n: int = 100_000, seed: Seed = 0
) -> RegimeEstimate:
    """Means, variance, distances and fair risk of a regime from n samples, half of them in each
    group.
    """
    y0, y1 = _sorted_targets(population, regime, n, seed)
    p0, p1 = 1 - population.p1, population.p1
    pooled = np.sort(np.concatenate([y0, y1]))
    gap = (np.searchsorted(y0, pooled, "right") - np.searchsorted(y1, pooled, "right"))[:-1] / len(
        y0
    )
    width = np.diff(pooled)
    mean0, mean1 = float(y0.mean()), float(y1.mean())
    return RegimeEstimate(
        means=(mean0, mean1),
        variance=float(p0 * y0.var() + p1 * y1.var()) + p0 * p1 * (mean0 - mean1) ** 2,
        energy=2 * float((gap**2 * width).sum()),
        kolmogorov=float(np.abs(gap).max(initial=0.0)),
        wasserstein=float((np.abs(gap) * width).sum()),
        fair_risk=p0 * p1 * float(((y0 - y1) ** 2).mean()),
    )


def regime_tradeoff(
    population: OnlineRegression, strength: float, regime: int = 0, n: int = 100_000, seed: Seed = 0
) -> TradeOffPoint:
    """The best of all hypotheses for risk + strength x energy, from n samples: a floor for
    every learning curve.
    """
    y0, y1 = _sorted_targets(population, regime, n, seed)
    support = (float(min(y0[0], y1[0])) - 0.01, float(max(y0[-1], y1[-1])) + 0.01)
    cdf0, cdf1 = partial(_cdf, y0), partial(_cdf, y1)
    return unrestricted_tradeoff(cdf0, cdf1, p1=population.p1, strength=strength, support=support)


def _sorted_targets(
    population: OnlineRegression, regime: int, n: int, seed: Seed
) -> tuple[Floats, Floats]:
    check_integer("n", n, least=4)
    X = generator(seed, purpose=_ESTIMATE).random((n // 2, population.d))
    # The same other features in both groups: they are independent of the group, and differences
    # lose their noise.
    X[:, -1] = 0.0
    y0 = population.optimal_prediction(X, regime)
    X[:, -1] = 1.0
    return np.sort(y0), np.sort(population.optimal_prediction(X, regime))


def _cdf(ordered: Floats, z: Floats) -> Floats:
    return np.searchsorted(ordered, z, "right") / len(ordered)


def reference_slopes() -> Floats:
    """The two slope matrices of the reference's code, shape (2, 10, 5); needs torch, whose
    generator drew them.

    They are ``4 * rand(10, 5) - 2`` twice after ``torch.manual_seed(0)``; the global generator
    stays untouched.

    Returns
    -------
    ndarray of shape (2, 10, 5)
        Slopes of the two regimes: row = feature, column = piece.

    Examples
    --------
    >>> reference_slopes()[0, 0].round(4).tolist()
    [-0.015, 1.0729, -1.6461, -1.4719, -0.7703]
    >>> population = OnlineRegression(slopes=reference_slopes())
    """
    import torch  # noqa: PLC0415  (slow to import)

    rng = torch.Generator().manual_seed(0)
    return np.stack(
        [(4 * torch.rand(10, 5, generator=rng) - 2).numpy().astype(np.float64) for _ in range(2)]
    )
