"""
Where the gap is
================

A distance measures how much the scores of two groups differ. Its *witness* shows where: it is the
function of the score whose mean differs most between the groups. For the Kolmogorov distance it is
the threshold at which selection rates differ most. For the energy distance it is a smooth curve.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair.metrics import witness

generator = np.random.default_rng(1)
first = generator.beta(5, 3, 2000)
# Some scores are much lower.
second = np.where(
    generator.random(2000) < 0.3, generator.beta(2, 8, 2000), generator.beta(5, 3, 2000)
)

grid = np.linspace(0, 1, 400)
figure, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(7.2, 4.8))
top.hist(
    [first, second],
    bins=40,
    histtype="stepfilled",
    alpha=0.55,
    label=["first group", "second group"],
)
top.set(title="Scores", yticks=[])
top.legend()
for metric, color in (("kolmogorov", "#4b3fbf"), ("energy", "#009e73")):
    seen = witness(first, second, metric=metric)
    # High where the first group is.
    utility = seen(grid) * np.sign(seen.expected[0] - seen.expected[1])
    bottom.plot(
        grid,
        (utility - utility.min()) / np.ptp(utility),
        color=color,
        label=f"{metric}: gap {seen.gap:.2f}",
    )
bottom.set(title="The utility that separates the groups best", xlabel="score", yticks=[])
bottom.legend()
