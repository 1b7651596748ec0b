"""
Parity that hurts
=================

Grades show the skill of young people; nothing that was recorded shows the skill of experienced
people. Skill has the same distribution in both groups, but the best predictions do not. Parity
makes the predictions for experienced people random and increases the error. A small distance is not
a goal in itself.
"""

import matplotlib.pyplot as plt
import numpy as np

generator = np.random.default_rng(0)
young = generator.integers(2, size=100_000)
grade, experience = generator.random((2, len(young)))
skill = np.where(young == 1, grade, experience)  # experience was not recorded
accurate = np.where(young == 1, grade, 0.5)
fair = 0.5 + (grade - 0.5) / 2  # of all predictions with parity, the most accurate

figure, panels = plt.subplots(1, 2, sharex=True, sharey=True, figsize=(8.4, 3.8))
for panel, predicted, name in (
    (panels[0], accurate, "Most accurate"),
    (panels[1], fair, "With parity"),
):
    for group, label in ((1, "young"), (0, "experienced")):
        rows = np.flatnonzero(young == group)[:300]
        panel.scatter(skill[rows], predicted[rows], s=10, alpha=0.6, label=label)
    error = np.mean((predicted - skill) ** 2)
    panel.set(title=f"{name}: error {error:.3f}", xlabel="true skill")
panels[0].set_ylabel("prediction")
panels[0].legend()
