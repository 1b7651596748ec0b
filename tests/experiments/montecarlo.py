"""How far a sample may be from an exact value: z-scores for means, the DKW bound for Kolmogorov
distances.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from experiments.populations import Distances, FiniteSpace


def z_score(values: ArrayLike, expected: float) -> float:
    """Distance of the mean of independent values from what it should be, in standard errors."""
    values = np.asarray(values, dtype=np.float64)
    return float((values.mean() - expected) / (values.std(ddof=1) / math.sqrt(len(values))))


def unbiased_energy(u: ArrayLike, v: ArrayLike) -> float:
    """Energy distance of two samples without the diagonal terms: right on average."""
    u, v = np.sort(u), np.sort(v)

    def spread(w: np.ndarray) -> float:
        n = len(w)
        return float(2 * ((2 * np.arange(n) - n + 1) * w).sum() / (n * (n - 1)))

    return float(stats.energy_distance(u, v) ** 2 - spread(u) / len(u) - spread(v) / len(v))


def check_distances(prediction: np.ndarray, group: np.ndarray, exact: Distances) -> None:
    """Compare the groups' predictions in a sample with the exact distances."""
    u, v = prediction[group == 0], prediction[group == 1]
    batches = [
        unbiased_energy(x, y)
        for x, y in zip(np.array_split(u, 50), np.array_split(v, 50), strict=True)
    ]
    assert abs(z_score(batches, exact.energy)) < 4
    # Dvoretzky-Kiefer-Wolfowitz: each empirical CDF is this near to its own with probability 1 -
    # 2e-6
    dkw = math.sqrt(math.log(1e6) / 2) * (len(u) ** -0.5 + len(v) ** -0.5)
    # atoms computed along two routes must be one atom, as in the exact value
    u, v = np.round(u, 12), np.round(v, 12)
    assert abs(stats.ks_2samp(u, v, method="asymp").statistic - exact.kolmogorov) < dkw
    slack = 5 * (u.std() / math.sqrt(len(u)) + v.std() / math.sqrt(len(v)))
    assert abs(stats.wasserstein_distance(u, v) - exact.wasserstein) < max(slack, 1e-9)


def space_of(population: Any, mass: Sequence[float] = ()) -> FiniteSpace:
    """The values of the feature in group 0, then those in group 1, with their masses (alike
    unless given).
    """
    table, p1 = population.optimal_table, population.p1
    own = list(mass) or [1 / table.shape[1]] * table.shape[1]
    return FiniteSpace(
        [((1 - p1) * one, 0.0) for one in own] + [(0.0, p1 * one) for one in own],
        table.ravel().tolist(),
    )
