"""
Is the new model fairer?
========================

Two models score the same people. ``audit`` compares them pairwise, so variation that both share
cancels. This detects differences that two separate intervals would hide. The verdicts "better" and
"worse" hold for all differences at once.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import AuditOptions, audit

generator = np.random.default_rng(0)
group = generator.choice(["a", "b"], 1500)
skill = generator.normal(size=1500)
y = (skill + generator.normal(0, 0.7, 1500) > 0).astype(int)
in_use = 1 / (1 + np.exp(-(1.5 * skill + 0.5 * (group == "b"))))
proposed = 1 / (1 + np.exp(-(1.5 * skill + 0.3 * (group == "b") + generator.normal(0, 0.2, 1500))))

both = audit(
    y,
    {"in use": in_use, "proposed": proposed},
    sensitive_features=group,
    metrics=["kolmogorov", "wasserstein"],
    random_state=0,
    options=AuditOptions(permutations=0),
)
print(both.summary)

# %%
# Points to the left of 0 are improvements.
shown = [
    one for one in both.differences if one.metric in ("kolmogorov", "wasserstein") and one.interval
]
colors = {"better": "#009e73", "worse": "#d55e00"}
figure, axes = plt.subplots(figsize=(7.2, 3.6))
for row, one in enumerate(shown):
    color = colors.get(one.verdict, "#5a5a63")
    axes.hlines(row, one.interval.low, one.interval.high, color=color, linewidth=4, alpha=0.5)
    axes.scatter(one.difference, row, color=color, s=60, zorder=3)
axes.axvline(0, color="#1b1b1f", linewidth=1)
axes.set_yticks(
    range(len(shown)), [f"{one.criterion.replace('_', ' ')}: {one.metric}" for one in shown]
)
axes.set(
    xlabel="difference of the distance, proposed less in use", title="Better where it is left of 0"
)
axes.set_ylim(len(shown) - 0.5, -0.5)
