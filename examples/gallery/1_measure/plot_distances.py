"""
One gap, five distances
=======================

Each distance between two groups measures something different. The Kolmogorov distance is the
largest gap between the two distribution functions. The Wasserstein distance is the area between
them. The energy distance is twice the integral of the squared gap. ``distances`` computes several
of them with one sort.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair.metrics import distances

generator = np.random.default_rng(0)
north = generator.beta(4, 3, 400)
south = generator.beta(3, 4, 300)
found = distances(north, south, ["kolmogorov", "wasserstein", "energy", "cramer", "lp"])

grid = np.linspace(0, 1, 501)
cdf = [
    np.searchsorted(np.sort(scores), grid, side="right") / len(scores) for scores in (north, south)
]
tallest = np.argmax(cdf[1] - cdf[0])

figure, (left, right) = plt.subplots(1, 2, width_ratios=(3, 2))
left.plot(grid, cdf[0], label="north")
left.plot(grid, cdf[1], label="south")
left.fill_between(grid, *cdf, color="#4b3fbf", alpha=0.15, label="area: Wasserstein")
left.vlines(
    grid[tallest],
    cdf[0][tallest],
    cdf[1][tallest],
    color="#4b3fbf",
    label="tallest gap: Kolmogorov",
)
left.set(xlabel="score", ylabel="share with this score or less", title="Two distribution functions")
left.legend(fontsize=9)
right.barh(list(found), list(found.values()), color="#4b3fbf")
right.bar_label(right.containers[0], fmt="%.3f", padding=3)
right.set(title="Five distances", xlim=(0, 1.3 * max(found.values())))
right.invert_yaxis()
right.grid(visible=False)
