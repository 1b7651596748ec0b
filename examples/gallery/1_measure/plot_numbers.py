"""
A numeric attribute
===================

Cutting age into two groups can hide a dependence. Here young and old people score low, people in
between score high, and the two halves look alike. The energy dependence uses all ages without a
cut. For an attribute with two values it equals the energy distance between the two groups.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair.metrics import energy_dependence, energy_distance

generator = np.random.default_rng(0)
age = generator.uniform(20, 70, 1500)
score = np.clip(0.6 - ((age - 45) / 45) ** 2 + generator.normal(0, 0.12, 1500), 0, 1)

old = age > 45
found = {
    "energy distance of two halves": energy_distance(score[old], score[~old]),
    "energy dependence on age": energy_dependence(score, age),
    "the same, ages shuffled": energy_dependence(score, generator.permutation(age)),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6))
left.scatter(age, score, s=8, alpha=0.4)
left.axvline(45, color="#d55e00", linestyle="--")
left.set(xlabel="age", ylabel="score", title="Scores, and a cut at 45")
right.barh(list(found), list(found.values()), color="#4b3fbf")
right.bar_label(right.containers[0], fmt="%.3f", padding=3)
right.set(title="What is measured", xlim=(0, 1.35 * max(found.values())))
right.invert_yaxis()
right.grid(visible=False)
