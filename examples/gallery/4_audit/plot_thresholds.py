"""
Rates at every threshold
========================

A model can look fair at one threshold and unfair at others. The left picture shows the selection
rates at every threshold; their largest gap is the Kolmogorov distance. The right picture shows
their ratio.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import unfairness

generator = np.random.default_rng(0)
group = generator.integers(2, size=6000)
score = np.where(group == 1, generator.beta(5, 3, 6000), generator.beta(3.6, 3, 6000))

thresholds = np.linspace(0.05, 0.9, 171)
rates = np.array([[(score[group == g] >= t).mean() for t in thresholds] for g in (0, 1)])
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6))
left.plot(thresholds, rates[0], label="group A")
left.plot(thresholds, rates[1], label="group B")
worst = np.argmax(np.abs(rates[0] - rates[1]))
left.vlines(thresholds[worst], *rates[:, worst], color="#4b3fbf", linewidth=3)
left.set(
    title=f"Selection rates; tallest gap {unfairness(None, score, sensitive_features=group):.2f}",
    xlabel="threshold",
)
left.legend()
right.plot(thresholds, rates.min(0) / rates.max(0), color="#4b3fbf")
right.axhline(0.8, color="#5a5a63", linestyle=":")
right.annotate("four fifths", (0.06, 0.81), color="#5a5a63")
right.set(title="Lower rate / higher rate", xlabel="threshold", ylim=(0, 1.02))
