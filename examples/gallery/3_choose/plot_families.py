"""
Several families of models on one frontier
==========================================

A linear model, boosted trees and a post-processor are compared by the same folds, each over a range
of its own parameter. The post-processor needs each person's group to predict, which may be
forbidden or unknown. ``select(needs_group=False)`` excludes it.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import (
    BarycenterPostprocessor,
    FairClassifier,
    FairLGBMClassifier,
    SearchOptions,
    frontier,
)

generator = np.random.default_rng(0)
a = generator.integers(2, size=3000)
X = generator.normal(size=(3000, 3)) + np.outer(a, [1.2, 0.4, 0.0])
y = (X[:, 0] + X[:, 1] ** 2 + X[:, 2] + generator.normal(size=3000) > 1.5).astype(int)

front = frontier(
    {
        "linear": FairClassifier(),
        "LightGBM": FairLGBMClassifier(n_estimators=40, n_jobs=1, verbose=-1, random_state=0),
        "barycenter, needs the group": BarycenterPostprocessor(
            FairClassifier(0, model="mlp", random_state=0)
        ),
    },
    X,
    y,
    sensitive_features=a,
    strengths=[0, 0.3, 1, 3, 10, 30],
    random_state=0,
    search=SearchOptions(tolerances=[0, 0.2, 0.4, 0.6, 0.8, 1]),
)
figure, axes = plt.subplots()
for family in dict.fromkeys(point.family for point in front.points):
    own = sorted((p for p in front.points if p.family == family), key=lambda p: p.unfairness)
    axes.plot([p.unfairness for p in own], [p.more["auc"] for p in own], marker="o", label=family)
axes.set(xlabel="Kolmogorov distance", ylabel="AUC", title="Three families, the same rows")
axes.legend()
