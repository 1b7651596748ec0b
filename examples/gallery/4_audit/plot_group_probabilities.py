"""
Groups that are not in the data
===============================

Often the data do not contain race, but its probability given the place. Here, weighting every row
by its probabilities shows the gap between the true groups. Assigning each row to its most probable
group does not: it shows the same gap for a weak, a medium and a strong proxy.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import GroupProbabilities, unfairness

generator = np.random.default_rng(0)
place = generator.normal(size=20_000)
score = 1 / (1 + np.exp(-place - 1.4 * generator.normal(size=20_000)))

found = {"true groups": [], "weighted by probabilities": [], "most probable group": []}
for strength in (0.8, 1.7, 3.5):
    probability = 1 / (1 + np.exp(-strength * place))
    group = generator.uniform(size=20_000) < probability
    race = GroupProbabilities({"a": 1 - probability, "b": probability}, attribute="race")
    for name, groups in zip(found, (group, race, probability > 0.5), strict=True):
        found[name].append(unfairness(None, score, sensitive_features=groups))

figure, axes = plt.subplots(figsize=(7.2, 3.8))
for shift, (name, values) in zip((-0.27, 0, 0.27), found.items(), strict=True):
    bars = axes.bar(np.arange(3) + shift, values, width=0.25, label=name)
    axes.bar_label(bars, fmt="%.2f", padding=2)
axes.set_xticks(range(3), ["weak proxy", "medium", "strong proxy"])
axes.set(ylabel="Kolmogorov distance", ylim=(0, 0.5), title="The gap between two groups")
axes.legend(ncols=3, loc="upper center", fontsize="small")
