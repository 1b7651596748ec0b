"""
Training with missing groups
============================

Rows with a missing group still contribute to the risk. A few hundred known groups are often enough.
Here the model knows the group of some rows only, and the gap is measured on all rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import FairClassifier, unfairness

generator = np.random.default_rng(0)
a = generator.integers(2, size=5000)
X = generator.normal(size=(5000, 4)) + a[:, None] * [1.0, 0.5, 0, 0]
y = (X.sum(1) + generator.normal(0, 1, 5000) > 0.8).astype(int)

known = [20, 50, 100, 300, 1000, 5000]
gaps = []
for number in known:
    observed = np.where(np.arange(5000) < number, a, np.nan)  # NaN: missing group
    model = FairClassifier().fit(X, y, sensitive_features=observed)
    gaps.append(unfairness(y, model.predict_proba(X)[:, 1], sensitive_features=a))
plain = FairClassifier(0).fit(X, y)

figure, axes = plt.subplots()
axes.axhline(
    unfairness(y, plain.predict_proba(X)[:, 1], sensitive_features=a),
    color="#5a5a63",
    linestyle=":",
    label="no penalty",
)
axes.plot(known, gaps, marker="o", label="trained with the known groups")
axes.set_xscale("log")
axes.set_xticks(known, known)
axes.set(
    xlabel="rows with a known group, of 5,000",
    ylabel="gap",
    title="Missing groups",
    ylim=(0, None),
)
axes.legend()
