"""
A first fair model
==================

x
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import FairClassifier, unfairness

generator = np.random.default_rng(0)
group = generator.integers(2, size=2000)
X = generator.normal(size=(2000, 3)) + group[:, None]
y = (X.sum(1) + generator.normal(size=2000) > 1.5).astype(int)

figure, panels = plt.subplots(1, 2, sharey=True)
for panel, strength in zip(panels, (0, 30), strict=True):
    score = FairClassifier(strength, model="linear").fit(X, y, sensitive_features=group).predict_proba(X)[:, 1]
    panel.hist([score[group == 0], score[group == 1]], bins=20, histtype="stepfilled", alpha=0.6)
    panel.set_title(f"{unfairness(y, score, sensitive_features=group):.2f}")
