"""
Trained models on an exact trade-off curve
==========================================

The outcome is normal, and higher by 1 in group 0. All that a linear model can choose is the gap
between the groups' means and the spread of the predictions, so that the trade-off curve is known
exactly. Models trained at ten strengths and evaluated on held-out rows lie on the curve.
"""

from math import erf, expm1, pi, sqrt

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

from metrifair import FairRegressor
from metrifair.metrics import energy_distance


def sample(rows, seed):
    """Features, outcomes and groups."""
    generator = np.random.default_rng(seed)
    group = generator.integers(2, size=rows)
    x = generator.normal(size=rows)
    return np.c_[x, group], x + (group == 0), group


def risk(gap, spread):
    """Expected squared error of the best model with this gap and this spread."""
    return (1 - gap) ** 2 / 4 + (spread - 1) ** 2


def energy(gap, spread):
    """Energy distance between two normal distributions that differ in their means by the gap."""
    t = gap / (2 * spread)
    return 2 * gap * erf(t) + 4 * spread / sqrt(pi) * expm1(-t * t)


X, y, a = sample(6000, seed=0)
fresh, outcome, group = sample(100_000, seed=1)

figure, axes = plt.subplots()
exact = [
    minimize(lambda at, strength=strength: risk(*at) + strength * energy(*at), (0.5, 1.0)).x
    for strength in np.geomspace(0.01, 100, 200)
]
axes.plot(
    [energy(*point) for point in exact],
    [risk(*point) for point in exact],
    color="#5a5a63",
    label="exact",
)
for strength in np.geomspace(0.03, 10, 10):
    model = FairRegressor(strength, random_state=0).fit(X, y, sensitive_features=a)
    predicted = model.predict(fresh)
    axes.scatter(
        energy_distance(predicted[group == 0], predicted[group == 1]),
        np.mean((predicted - outcome) ** 2),
        color="#d55e00",
        zorder=3,
    )
axes.scatter([], [], color="#d55e00", label="trained on 6,000 rows, evaluated on others")
axes.set(
    xlabel="energy distance of the predictions",
    ylabel="mean squared error",
    title="Trained models on the exact curve",
)
axes.legend()
