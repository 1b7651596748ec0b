"""
Differences that are allowed
============================

Two departments hire at different rates, and women apply more often to the one that hires fewer
people. ``control_features`` compares women and men within each department. Differences explained by
the choice of department are not penalized.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import FairClassifier, unfairness

generator = np.random.default_rng(0)
woman = generator.integers(2, size=5000)
department = (generator.random(5000) < 0.25 + 0.5 * (1 - woman)).astype(int)
skill = generator.normal(0, 1, 5000)
break_years = woman + generator.normal(0, 0.5, 5000)
X = np.column_stack([skill - 0.6 * woman, department, break_years])
y = (skill + 1.5 * department - 0.6 * woman + generator.normal(0, 1, 5000) > 0.6).astype(int)

rows = []
for name, strength, control in (
    ("no penalty", 0, None),
    ("parity", 30, None),
    ("parity within departments", 30, department),
):
    model = FairClassifier(strength).fit(X, y, sensitive_features=woman, control_features=control)
    score = model.predict_proba(X)[:, 1]
    overall = unfairness(y, score, sensitive_features=woman)
    within = unfairness(y, score, sensitive_features=woman, control_features=department)
    rows.append((name, overall, within, model.score(X, y)))

figure, axes = plt.subplots(figsize=(7.2, 3.8))
places = np.arange(3)
for offset, column, label in ((-0.2, 1, "gap overall"), (0.2, 2, "worst gap within a department")):
    bars = axes.bar(places + offset, [row[column] for row in rows], width=0.38, label=label)
    axes.bar_label(bars, fmt="%.2f")
axes.set_xticks(places, [f"{row[0]}\naccuracy {row[3]:.2f}" for row in rows])
axes.set(title="Kolmogorov distance", yticks=[], ylim=(0, 0.75))
axes.grid(visible=False)
axes.legend()
