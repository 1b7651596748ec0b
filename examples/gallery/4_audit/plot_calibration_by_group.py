"""
Does 0.7 mean the same for everyone?
====================================

Scores are often read as probabilities. Of people with a score of 0.7 in group a, about 70 of 100
have the outcome. In group b it is fewer: the model is overconfident there. An audit with outcomes
reports the reliability curve, AUC and calibration error of each group, with confidence intervals.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import AuditOptions, audit

generator = np.random.default_rng(0)
group = generator.choice(["a", "b"], 6000)
score = generator.beta(2, 2, 6000)
truth = np.where(group == "a", score, 0.25 + 0.45 * score)  # overconfident for group b
y = (generator.random(6000) < truth).astype(int)
found = audit(
    y,
    score,
    sensitive_features=group,
    random_state=0,
    options=AuditOptions(resamples=100, permutations=0),
)

figure, axes = plt.subplots(figsize=(5.6, 4.8))
for color, figures in zip(("#0072b2", "#d55e00"), found.record.by_group[0].groups, strict=True):
    bins = figures.reliability
    axes.fill_between(
        [b.score for b in bins],
        [b.interval.low for b in bins],
        [b.interval.high for b in bins],
        color=color,
        alpha=0.2,
    )
    label = f"group {figures.group}: calibration error {figures.calibration_error.value:.2f}"
    axes.plot([b.score for b in bins], [b.rate for b in bins], marker="o", color=color, label=label)
axes.plot([0, 1], [0, 1], color="#5a5a63", linestyle=":", label="perfect calibration")
axes.set(
    xlabel="score", ylabel="share with the outcome", title="Reliability by group", aspect="equal"
)
axes.legend(fontsize=9)
