"""
What each criterion compares
============================

Criteria differ in the people they compare: everyone (statistical parity), people with a good
outcome (equal opportunity), people with a bad outcome (predictive equality), or both within each
outcome (equalized odds). Each row is a model, and each column is a criterion that evaluates it. A
model trained for one criterion can be unfair by another.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import FairClassifier, unfairness

generator = np.random.default_rng(0)
a = generator.integers(2, size=4000)
y = (generator.random(4000) < 0.3 + 0.3 * a).astype(int)  # the groups' base rates differ
X = np.column_stack([1.5 * y, y + a, 0.7 * a * y, a]) + generator.normal(0, 1, (4000, 4))

criteria = ["statistical_parity", "equal_opportunity", "predictive_equality", "equalized_odds"]
gaps = []
for trained in [None, *criteria]:
    model = FairClassifier(10 if trained else 0, criterion=trained or "statistical_parity")
    score = model.fit(X, y, sensitive_features=a).predict_proba(X)[:, 1]
    gaps.append([unfairness(y, score, sensitive_features=a, criterion=name) for name in criteria])

names = [name.replace("_", "\n") for name in criteria]
figure, axes = plt.subplots(figsize=(7.2, 4.4))
axes.imshow(gaps, aspect="auto", cmap="Purples", vmin=0, vmax=0.8)
for row, values in enumerate(gaps):
    for column, gap in enumerate(values):
        axes.text(
            column,
            row,
            f"{gap:.2f}",
            ha="center",
            va="center",
            color="white" if gap > 0.45 else "#1b1b1f",
        )
axes.set_xticks(range(4), names)
axes.set_yticks(range(5), ["no penalty", *names])
axes.set(title="Kolmogorov distance", xlabel="evaluated by", ylabel="trained for")
axes.grid(visible=False)
