"""
The trade-off curve
===================

``frontier`` trains 25 strengths together and compares them by their scores of rows that did not
train them. ``select`` trains the best one within an unfairness limit on all rows. The circle shows
its expected figures on new rows. In the shaded region, distances are not distinguishable from
sampling noise; do not compare models by them.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import FairClassifier, frontier

generator = np.random.default_rng(1)
group = generator.integers(2, size=6000)
X = generator.normal(size=(6000, 4)) + np.outer(group, [0.9, 0.5, 0.0, 0.0])
y = (X @ [0.8, 0.4, 1.2, 0.8] + generator.normal(size=6000) > 0.6).astype(int)

front = frontier(FairClassifier(), X, y, sensitive_features=group, random_state=0)
front.select(max_unfairness=0.1)
chosen = front.chosen

figure, axes = plt.subplots(figsize=(7.2, 4.4))
# The largest strengths end at a constant.
shown = [point for point in front.points if point.more["auc"] > 0.6]
axes.axvspan(0, front.record.noise, color="#5a5a63", alpha=0.08, linewidth=0)
axes.annotate("noise", (front.record.noise / 2, 0.92), ha="center", color="#5a5a63", fontsize=10)
axes.plot(
    [p.unfairness for p in shown],
    [p.more["auc"] for p in shown],
    color="#4b3fbf",
    alpha=0.35,
    zorder=1,
)
axes.scatter([p.unfairness for p in shown], [p.more["auc"] for p in shown], color="#4b3fbf", s=48)
axes.scatter(
    chosen.unfairness,
    chosen.more["auc"],
    s=230,
    facecolors="none",
    edgecolors="#d55e00",
    linewidths=2.5,
)
axes.annotate(
    f"chosen: distance {chosen.unfairness:.2f}, AUC {chosen.more['auc']:.2f}",
    (chosen.unfairness, chosen.more["auc"]),
    textcoords="offset points",
    xytext=(18, -16),
    color="#d55e00",
)
axes.set(
    xlabel="unfairness: distance of the groups' scores",
    ylabel="AUC",
    title="25 models, from no penalty to a large one",
)
axes.set_xlim(0, None)
