"""
Parity that hurts
=================

Grades show the skill of young people; nothing that was recorded shows the skill of experienced people. Skill has the
same distribution in both groups, but the best predictions do not. Parity makes the predictions for experienced people
random and increases the error. A small distance is not a goal in itself.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair.datasets.synthetic import HiddenExperience

population = HiddenExperience(p1=0.5)
X, y, young = population.sample(600, seed=0)

figure, panels = plt.subplots(1, 2, sharex=True, sharey=True, figsize=(8.4, 3.8))
for panel, predict, name, risk in (
    (panels[0], population.optimal_prediction, "Most accurate", population.optimal_risk),
    (panels[1], population.fair_prediction, "With parity", population.fair_risk),
):
    predicted = np.asarray(predict(X))
    for group, label in ((1, "young"), (0, "experienced")):
        panel.scatter(y[young == group], predicted[young == group], s=10, alpha=0.6, label=label)
    panel.set(title=f"{name}: error {risk:.3f}", xlabel="true skill")
panels[0].set_ylabel("prediction")
panels[0].legend()
