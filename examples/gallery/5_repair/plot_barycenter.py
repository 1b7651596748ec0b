"""
Post-processing scores with the barycenter
==========================================

``BarycenterPostprocessor`` moves the scores of a fitted model toward a common distribution and
keeps the order within each group. ``tolerance=0`` gives parity, and ``tolerance=1`` leaves the
scores unchanged. It needs each person's group to predict.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from metrifair import BarycenterPostprocessor, unfairness

generator = np.random.default_rng(0)
a = generator.integers(2, size=4000)
X = generator.normal(size=(4000, 3)) + np.outer(a, [1.0, 0.5, 0.0])
y = (X.sum(1) + generator.normal(size=4000) > 0.8).astype(int)

plain = LogisticRegression().fit(X, y).predict_proba(X)[:, 1]
figure, panels = plt.subplots(1, 3, sharey=True, figsize=(8.8, 3.4))
for panel, tolerance in zip(panels, (1.0, 0.5, 0.0), strict=True):
    model = BarycenterPostprocessor(LogisticRegression(), tolerance=tolerance).fit(
        X, y, sensitive_features=a
    )
    score = model.predict_proba(X, sensitive_features=a)[:, 1]
    for group in (0, 1):
        panel.scatter(plain[a == group], score[a == group], s=3, label=f"group {group}")
    gap = unfairness(y, score, sensitive_features=a)
    panel.set(
        title=f"tolerance {tolerance:g}: {gap:.2f}", xlabel="score of the model", aspect="equal"
    )
panels[0].set_ylabel("score after")
panels[0].legend(markerscale=4)
