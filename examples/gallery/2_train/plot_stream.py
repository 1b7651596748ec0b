"""
A stream that changes
=====================

``partial_fit`` trains on a stream in constant memory. Here the distribution changes every 2,000 samples. The model
adapts and keeps its predictions similar across groups.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import FairRegressor, energy_distance
from metrifair.datasets.synthetic import OnlineRegression

stream = OnlineRegression(period=2000, slopes_seed=3)
figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.6), sharex=True)
for strength in (0, 1.0):
    model = FairRegressor(strength, batch_size=32, random_state=0)
    seen, errors, gaps = [], [], []
    for chunk in stream.stream(8000, seed=0, size=100):
        group = chunk.X[:, -1].astype(int)
        if seen:
            predicted = model.predict(chunk.X)  # before the model learns from these rows
            errors.append(np.mean((predicted - chunk.y) ** 2))
            gaps.append(energy_distance(predicted[group == 0], predicted[group == 1]))
        model.partial_fit(chunk.X, chunk.y, sensitive_features=group, groups=[0, 1])
        seen.append(100 * len(seen))
    for panel, values in zip(panels, (errors, gaps), strict=True):
        smooth = np.convolve(values, np.ones(5) / 5, mode="valid")
        panel.plot(seen[5:], smooth, label=f"strength {strength:g}")
panels[0].set(title="Squared error", xlabel="samples seen", ylim=(0, None))
panels[1].set(title="Energy distance of the groups", xlabel="samples seen", ylim=(0, None))
panels[1].legend()
