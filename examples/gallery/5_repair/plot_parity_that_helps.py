"""
Parity that helps
=================

Illness is recorded less often for group 1, because some of its cases never reach a doctor. A model of the records
learns this bias. Parity lowers the error *with respect to the truth*, up to a point. The values are exact for this
population, not estimates.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair.datasets.synthetic import BiasedClassification

shares = np.linspace(0, 0.8, 33)
populations = [BiasedClassification(delta=share) for share in shares]
figure, axes = plt.subplots()
axes.plot(shares, [one.optimal_true_risk for one in populations], label="fits the records")
axes.plot(
    shares, [one.fair_true_risk for one in populations], label="fits the records, with parity"
)
axes.set(
    xlabel="share of group 1's cases that goes unrecorded",
    ylabel="cross entropy with respect to the truth",
    title="Biased labels",
)
axes.legend()
