"""
Scores that do not depend on age
================================

The protected attribute can be numeric. The penalty then reduces the dependence of scores on age,
without a cut into young and old. The line is the median score by age, and the band covers the
middle half of the scores.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import FairClassifier
from metrifair.metrics import energy_dependence

generator = np.random.default_rng(0)
age = generator.uniform(20, 70, 4000)
X = np.column_stack([(age - 45) / 15 + generator.normal(0, 1, 4000), generator.normal(0, 1, 4000)])
y = (0.8 * X[:, 0] + X[:, 1] + generator.normal(0, 1, 4000) > 0).astype(int)

figure, panels = plt.subplots(1, 2, sharey=True, figsize=(8.4, 3.6))
bands = np.digitize(age, np.arange(25, 70, 5))
for panel, strength in zip(panels, (0, 30), strict=True):
    model = FairClassifier(strength, continuous=True).fit(X, y, sensitive_features=age)
    score = model.predict_proba(X)[:, 1]
    quartiles = np.array(
        [np.quantile(score[bands == band], (0.25, 0.5, 0.75)) for band in range(10)]
    )
    middles = np.arange(22.5, 70, 5)
    panel.fill_between(middles, quartiles[:, 0], quartiles[:, 2], alpha=0.25)
    panel.plot(middles, quartiles[:, 1])
    panel.set(
        title=f"strength {strength}: dependence {energy_dependence(score, age):.3f}",
        xlabel="age",
        ylim=(0, 1),
    )
panels[0].set_ylabel("score")
