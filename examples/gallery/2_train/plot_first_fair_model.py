"""
A first fair model
==================

The data are 1,989 mortgage applications in Boston. Without a penalty, applicants who are not white
receive lower scores. With the default penalty (strength 1) the gap is about half as large. The model
needs groups for training, not for prediction.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import FairClassifier, datasets, unfairness

data = datasets.load("mortgage")
X, y, race = data.X, data.y, data.sensitive_features

figure, panels = plt.subplots(1, 2, sharex=True, sharey=True, figsize=(8.4, 3.6))
for panel, strength in zip(panels, (0, 1), strict=True):
    model = FairClassifier(strength, weight_decay=1e-5).fit(X, y, sensitive_features=race)
    score = model.predict_proba(X)[:, 1]
    gap = unfairness(y, score, sensitive_features=race)
    for name in ("white", "not white"):
        own = np.sort(score[np.ravel(race) == name])
        panel.step(own, np.arange(1, len(own) + 1) / len(own), label=name)
    panel.set(title=f"strength {strength}: gap {gap:.2f}", xlabel="score of approval")
panels[0].set_ylabel("share with this score or less")
panels[0].legend()
