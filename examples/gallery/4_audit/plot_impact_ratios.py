"""
Impact ratios with their uncertainty
====================================

Rules on hiring and lending divide the selection rate of each category by the highest rate.
``rates("four-fifths")`` computes the table: rates with Wilson intervals, impact ratios, Fisher's
exact p-values and shortfalls. The shortfall is the number of additional selections that would close
the gap. A small category has a wide interval, and a category with less than 2 % of the rows has no
ratio.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import audit

generator = np.random.default_rng(0)
race = generator.choice(["A", "B", "C", "D", "E"], 2500, p=[0.5, 0.25, 0.2, 0.04, 0.01])
score = np.clip(generator.beta(4, 4, 2500) - 0.06 * (race == "B") - 0.09 * (race == "D"), 0, 1)
table = (
    audit(None, score, sensitive_features=race, threshold=0.5, random_state=0)
    .rates("four-fifths")
    .tables[0]
)

figure, axes = plt.subplots(figsize=(7.2, 3.2))
for row, rate in enumerate(table.rates):
    if rate.ratio is None:
        axes.annotate(f"{rate.size} people: no ratio", (0.43, row), va="center", color="#5a5a63")
        continue
    low, high = (
        (rate.ratio_interval.low, rate.ratio_interval.high)
        if rate.ratio_interval
        else (rate.ratio, rate.ratio)
    )
    axes.hlines(row, low, high, color="#0072b2", linewidth=5, alpha=0.4)
    axes.scatter(rate.ratio, row, s=60, color="#0072b2", zorder=3)
    missing = f", {rate.shortfall} more to close it" if rate.shortfall else ""
    axes.annotate(
        f"{rate.selected} of {rate.size}{missing}",
        (1.28, row),
        va="center",
        color="#5a5a63",
        fontsize=10,
    )
axes.axvline(0.8, color="#d55e00", linestyle="--")
axes.annotate("4/5", (0.81, -0.5), color="#d55e00")
axes.set_yticks(range(len(table.rates)), [rate.group for rate in table.rates])
axes.set(
    xlim=(0.4, 1.85),
    ylim=(len(table.rates) - 0.5, -0.9),
    xlabel="rate / highest rate",
    title="Impact ratios",
)
