"""
Methods from the literature
===========================

``metrifair.baselines`` has ten methods from the literature as estimators. Here four of them are
compared with ``FairClassifier`` on the same data. Each point is one method at one setting. The
distance between the whole score distributions is not what most of these methods minimize.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from metrifair import FairClassifier, unfairness
from metrifair.baselines import (
    FairKDEClassifier,
    LabelBiasClassifier,
    MassagingClassifier,
    ReweighingClassifier,
)

generator = np.random.default_rng(0)
a = generator.integers(2, size=1500)
X = generator.normal(size=(1500, 4)) + np.outer(a, [1.0, 0.5, 0, 0])
y = (X.sum(1) + generator.normal(size=1500) > 0.8).astype(int)
train, test = np.arange(1500) < 900, np.arange(1500) >= 900

methods = {
    "no penalty": FairClassifier(0),
    "metrifair, 1": FairClassifier(),
    "metrifair, 10": FairClassifier(10),
    "reweighing": ReweighingClassifier(random_state=0),
    "massaging": MassagingClassifier(random_state=0),
    "label bias": LabelBiasClassifier(random_state=0),
    "Fair KDE": FairKDEClassifier(random_state=0),
}
figure, axes = plt.subplots()
for marker, (name, model) in zip("XosD^vP", methods.items(), strict=True):
    score = model.fit(X[train], y[train], sensitive_features=a[train]).predict_proba(X[test])[:, 1]
    place = unfairness(y[test], score, sensitive_features=a[test]), roc_auc_score(y[test], score)
    ours = name.startswith("metrifair")
    axes.scatter(
        *place, s=80, marker=marker, alpha=0.8, color="#4b3fbf" if ours else "#d55e00", label=name
    )
axes.set(
    xlabel="Kolmogorov distance, held-out rows",
    ylabel="AUC, held-out rows",
    title="Methods compared",
)
axes.legend(fontsize=10)
