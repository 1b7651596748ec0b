"""
How much depends on the seed
============================

Networks depend on their initial weights. Ten seeds of every strength, trained together, show which
differences between strengths are larger than the variation between seeds. Lines are means, and
bands show the range of all seeds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from metrifair import FairClassifier, SearchOptions, frontier

cancer = load_breast_cancer()
X, y = cancer.data, cancer.target
# A stand-in for a group: tumors with a radius above the median.
large = X[:, 0] > np.median(X[:, 0])
strengths = [0, 0.1, 0.3, 1, 3, 10, 30]
front = frontier(
    FairClassifier(model="mlp"),
    X,
    y,
    sensitive_features=large,
    strengths=strengths,
    random_state=0,
    search=SearchOptions(seeds=10),
)

figure, axes = plt.subplots()
for name, label in (("unfairness", "Kolmogorov distance"), ("auc", "AUC")):
    values = np.array(
        [[p.figure(name) for p in front.points if p.strength == strength] for strength in strengths]
    )
    axes.fill_between(range(len(strengths)), values.min(1), values.max(1), alpha=0.2)
    axes.plot(range(len(strengths)), values.mean(1), marker="o", label=label)
axes.set_xticks(range(len(strengths)), strengths)
axes.set(xlabel="strength", title="Ten seeds of every strength", ylim=(0, 1.02))
axes.legend()
