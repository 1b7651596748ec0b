"""The stream of the paper's section on online regression: the reference's slopes, and estimates for each regime."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from experiments.populations.tradeoff import unrestricted_tradeoff
from metrifair.datasets.synthetic import OnlineRegression, Seed, TradeOffPoint, generator
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_integer

_ESTIMATE = 1  # purpose of a seed besides the stream itself


@dataclass(frozen=True)
class RegimeEstimate:
    """What n samples say about one regime: a Monte Carlo estimate, since this population has no closed form.

    The target Y is also the unpenalized optimum (risk 0: the group is a feature), so that distances of Y are those of
    the optimum. ``fair_risk`` is the least risk of an SP-fair hypothesis, p0 p1 W2^2.

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


def regime_estimate(population: OnlineRegression, regime: int = 0, n: int = 100_000, seed: Seed = 0) -> RegimeEstimate:
    """Means, variance, distances and fair risk of a regime from n samples, half of them in each group."""
    y0, y1 = _sorted_targets(population, regime, n, seed)
    p0, p1 = 1 - population.p1, population.p1
    pooled = np.sort(np.concatenate([y0, y1]))
    gap = (np.searchsorted(y0, pooled, "right") - np.searchsorted(y1, pooled, "right"))[:-1] / len(y0)
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
    """The best of all hypotheses for risk + strength x energy, from n samples: a floor for every learning curve."""
    y0, y1 = _sorted_targets(population, regime, n, seed)
    support = (float(min(y0[0], y1[0])) - 0.01, float(max(y0[-1], y1[-1])) + 0.01)
    cdf0, cdf1 = partial(_cdf, y0), partial(_cdf, y1)
    return unrestricted_tradeoff(cdf0, cdf1, p1=population.p1, strength=strength, support=support)


def _sorted_targets(population: OnlineRegression, regime: int, n: int, seed: Seed) -> tuple[Floats, Floats]:
    check_integer("n", n, least=4)
    X = generator(seed, purpose=_ESTIMATE).random((n // 2, population.d))
    # The same other features in both groups: they are independent of the group, and differences lose their noise.
    X[:, -1] = 0.0
    y0 = population.optimal_prediction(X, regime)
    X[:, -1] = 1.0
    return np.sort(y0), np.sort(population.optimal_prediction(X, regime))


def _cdf(ordered: Floats, z: Floats) -> Floats:
    return np.searchsorted(ordered, z, "right") / len(ordered)


def reference_slopes() -> Floats:
    """The two slope matrices of the reference's code, shape (2, 10, 5); needs torch, whose generator drew them.

    They are ``4 * rand(10, 5) - 2`` twice after ``torch.manual_seed(0)``; the global generator stays untouched.

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
    return np.stack([(4 * torch.rand(10, 5, generator=rng) - 2).numpy().astype(np.float64) for _ in range(2)])
