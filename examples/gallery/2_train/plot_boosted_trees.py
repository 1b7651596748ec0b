"""
Boosted trees
=============

``FairLGBMClassifier`` is LightGBM with a fair objective. It accepts every parameter of LightGBM.
``strength`` has the same meaning as in all other models.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from metrifair import FairLGBMClassifier, unfairness

generator = np.random.default_rng(0)
a = generator.integers(2, size=6000)
X = generator.normal(size=(6000, 5)) + np.outer(a, [1.0, 0.5, 0, 0, 0])
y = (
    np.sin(2 * X[:, 0]) + X[:, 1] + X[:, 2] * X[:, 3] + generator.normal(0, 0.7, 6000) > 0.6
).astype(int)
train, test = np.arange(6000) < 4000, np.arange(6000) >= 4000

strengths = [0, 0.3, 1, 3, 10]
gaps, quality = [], []
for strength in strengths:
    model = FairLGBMClassifier(strength, n_estimators=80, n_jobs=1, verbose=-1, random_state=0)
    model.fit(X[train], y[train], sensitive_features=a[train])
    score = model.predict_proba(X[test])[:, 1]
    gaps.append(unfairness(y[test], score, sensitive_features=a[test]))
    quality.append(roc_auc_score(y[test], score))

figure, axes = plt.subplots()
axes.plot(gaps, quality, marker="o", color="#4b3fbf")
for strength, gap, value in zip(strengths, gaps, quality, strict=True):
    axes.annotate(f"{strength:g}", (gap, value), textcoords="offset points", xytext=(8, -10))
axes.set(
    xlabel="Kolmogorov distance, held-out rows",
    ylabel="AUC, held-out rows",
    title="Fair LightGBM, by strength",
)
axes.set_xlim(0, None)
