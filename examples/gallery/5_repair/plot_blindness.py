"""
Removing the attribute is not enough
====================================

A model without the group column infers the group from related features. Removing the column leaves
a gap. A penalty reduces it, and the model still does not use the group to predict.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import FairClassifier, unfairness

generator = np.random.default_rng(0)
a = generator.integers(2, size=4000)
skill = generator.normal(size=4000)
district = a + generator.normal(0, 0.25, 4000)  # reveals the group almost completely
X = np.column_stack([skill + generator.normal(0, 0.5, 4000), district])
y = (skill + 0.8 * a + generator.normal(0, 0.7, 4000) > 0.4).astype(int)

models = {
    "group as a feature": (FairClassifier(0), np.column_stack([X, a])),
    "group left out": (FairClassifier(0), X),
    "group left out, penalty": (FairClassifier(), X),
}
figure, axes = plt.subplots(figsize=(7.2, 2.8))
gaps, labels = [], []
for name, (model, features) in models.items():
    model.fit(features, y, sensitive_features=a)
    gaps.append(unfairness(y, model.predict_proba(features)[:, 1], sensitive_features=a))
    labels.append(f"{name}\naccuracy {model.score(features, y):.2f}")
axes.barh(labels, gaps, color=["#0072b2", "#0072b2", "#4b3fbf"])
axes.bar_label(axes.containers[0], fmt="%.2f", padding=3)
axes.invert_yaxis()
axes.set(title="Gap of the scores", xlim=(0, 1.15 * max(gaps)))
axes.grid(visible=False)
