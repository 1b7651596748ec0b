"""
A stream that changes
=====================

``partial_fit`` trains on a stream in constant memory. Here the distribution changes every 2,000
samples. The model adapts and keeps its predictions similar across groups.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import FairRegressor
from metrifair.metrics import energy_distance


def chunks():
    """80 chunks of 100 samples.

    The outcome is the largest of five linear functions, which change.
    """
    generator = np.random.default_rng(3)
    for start in range(0, 8000, 100):
        if start % 2000 == 0:
            slopes = generator.uniform(-2, 2, (10, 5))
        X = generator.random((100, 10))
        X[:, -1] = X[:, -1] < 0.5  # the group
        yield X, (X @ slopes).max(axis=1)


figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.6), sharex=True)
for strength in (0, 1.0):
    model = FairRegressor(strength, model="mlp", batch_size=32, random_state=0)
    seen, errors, gaps = [], [], []
    for X, y in chunks():
        group = X[:, -1].astype(int)
        if seen:
            predicted = model.predict(X)  # before the model learns from these rows
            errors.append(np.mean((predicted - y) ** 2))
            gaps.append(energy_distance(predicted[group == 0], predicted[group == 1]))
        model.partial_fit(X, y, sensitive_features=group, groups=[0, 1])
        seen.append(100 * len(seen))
    for panel, values in zip(panels, (errors, gaps), strict=True):
        smooth = np.convolve(values, np.ones(5) / 5, mode="valid")
        panel.plot(seen[5:], smooth, label=f"strength {strength:g}")
panels[0].set(title="Squared error", xlabel="samples seen", ylim=(0, None))
panels[1].set(title="Energy distance of the groups", xlabel="samples seen", ylim=(0, None))
panels[1].legend()
