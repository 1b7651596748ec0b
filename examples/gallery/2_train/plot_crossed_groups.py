"""
Intersections of attributes
===========================

Women and men can have equal scores, young and old people can have equal scores, and young women can
still differ. ``intersectional=True`` compares the intersections of the attributes.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from metrifair import FairClassifier

generator = np.random.default_rng(0)
people = pd.DataFrame(
    {"sex": generator.choice(["f", "m"], 6000), "age": generator.choice(["old", "young"], 6000)}
)
odd = (people["sex"] == "f") == (people["age"] == "young")  # young women and old men
X = np.column_stack([generator.normal(0, 1, 6000) - 1.2 * odd, generator.normal(0, 1, 6000), odd])
y = (X[:, 0] + X[:, 1] + generator.normal(0, 0.8, 6000) > -0.6).astype(int)
intersection = people["age"] + " " + people["sex"]

settings = {
    "no penalty": FairClassifier(0),
    "each attribute": FairClassifier(),
    "intersections": FairClassifier(intersectional=True),
}
figure, axes = plt.subplots(figsize=(7.2, 3.8))
places = np.arange(4)
for offset, (name, model) in zip((-0.27, 0, 0.27), settings.items(), strict=True):
    score = model.fit(X, y, sensitive_features=people).predict_proba(X)[:, 1]
    means = pd.Series(score).groupby(intersection).mean()
    axes.bar(places + offset, means, width=0.25, label=name)
axes.set_xticks(places, means.index)
axes.set(ylabel="mean score", title="Mean score of each intersection", ylim=(0, 0.85))
axes.grid(visible=False, axis="x")
axes.legend(ncols=3)
