"""
More than two classes
=====================

A model of three classes gives each person a point in a triangle. A comparison of one class at a
time ignores how the probabilities vary together. The sliced energy distance compares the points
along many directions.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair.metrics import energy_distance, sliced_energy_distance

generator = np.random.default_rng(0)
first = generator.dirichlet((3, 3, 3), 700)
second = np.vstack([generator.dirichlet((7, 2, 4), 350), generator.dirichlet((2, 7, 4), 350)])

figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.8))
corners = np.array([[0, 0], [1, 0], [0.5, 0.866]])
for points, label in ((first, "group A"), (second, "group B")):
    left.scatter(*(points @ corners).T, s=8, alpha=0.4, label=label)
left.plot(*corners[[0, 1, 2, 0]].T, color="#5a5a63", linewidth=1)
for corner, name in zip(corners, ("refuse", "accept", "ask back"), strict=True):
    left.annotate(
        name, corner, textcoords="offset points", xytext=(0, 6 if corner[1] else -14), ha="center"
    )
left.set(
    aspect="equal", title="Probabilities of three classes", xlim=(-0.15, 1.15), ylim=(-0.12, 1)
)
left.axis("off")
left.legend(loc="upper left", fontsize=9)
found = {
    name: energy_distance(first[:, k], second[:, k])
    for k, name in enumerate(("refuse", "accept", "ask back"))
}
found["sliced, all classes"] = sliced_energy_distance(first, second, random_state=0)
right.barh(list(found), list(found.values()), color="#4b3fbf")
right.bar_label(right.containers[0], fmt="%.4f", padding=3)
right.set(title="Energy distances", xlim=(0, 1.35 * max(found.values())))
right.invert_yaxis()
right.grid(visible=False)
