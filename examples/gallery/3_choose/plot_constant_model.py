"""
The constant predictor
======================

Nine of ten people repay. A model that approves everyone is right in nine of ten cases and perfectly
fair, so accuracy cannot distinguish it from a good model. AUC can. Every frontier includes the
constant predictor and marks models that are not significantly better.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import FairClassifier, frontier

generator = np.random.default_rng(0)
north, skill = generator.integers(2, size=3000), generator.normal(size=3000)
chance = 1 / (1 + np.exp(-(2.6 + 0.9 * skill + 0.8 * (2 * north - 1))))
X = np.column_stack([skill + north, north]) + generator.normal(0, 0.2, (3000, 2))
y = (generator.random(3000) < chance).astype(int)
front = frontier(FairClassifier(), X, y, sensitive_features=north, random_state=0)

figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.8))
for panel, utility in zip(panels, ("accuracy", "auc"), strict=True):
    for point in front.points:
        marked = utility in point.marks
        panel.scatter(
            point.unfairness, point.figure(utility), s=40, color="#9b9aa3" if marked else "#0072b2"
        )
    panel.scatter(0, front.constant.figure(utility), marker="x", s=90, color="#d55e00")
    panel.set(title=f"By {'AUC' if utility == 'auc' else utility}", xlabel="Kolmogorov distance")
panels[0].set_ylim(0.8, 1)
for color, marker, label in (
    ("#0072b2", "o", "better"),
    ("#9b9aa3", "o", "not better than a constant"),
    ("#d55e00", "x", "constant"),
):
    panels[1].scatter([], [], color=color, marker=marker, label=label)
panels[1].legend(loc="center right")
