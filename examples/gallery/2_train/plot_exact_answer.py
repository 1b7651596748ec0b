"""
Trained models on an exact trade-off curve
==========================================

The trade-off curve of the population ``OffsetRegression`` is known exactly. Models trained at ten strengths and
evaluated on held-out rows lie on the curve.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import FairRegressor, energy_distance
from metrifair.datasets.synthetic import OffsetRegression

population = OffsetRegression(theta=(1.0,), delta=1.0)
X, y, a = population.sample(6000, seed=0)
fresh, outcome, group = population.sample(100_000, seed=1)

figure, axes = plt.subplots()
exact = [population.tradeoff(strength) for strength in np.geomspace(0.01, 100, 200)]
axes.plot(
    [point.energy for point in exact],
    [point.risk for point in exact],
    color="#5a5a63",
    label="exact",
)
for strength in np.geomspace(0.03, 10, 10):
    model = FairRegressor(strength, model="linear", random_state=0).fit(X, y, sensitive_features=a)
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
