"""
How large is sampling noise?
============================

Two samples from the same distribution never look exactly equal. With a few hundred rows per group,
a Kolmogorov distance near 0.1 is within sampling noise. The band shows the distances of 90 % of
such samples. An audit reports whether a gap is larger than that.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch

from metrifair.metrics import kolmogorov_distance

generator = torch.Generator().manual_seed(0)
sizes = [25, 50, 100, 200, 400, 800, 1600, 3200]
# 500 draws at once.
values = [kolmogorov_distance(*torch.rand(2, 500, size, generator=generator)) for size in sizes]

figure, axes = plt.subplots()
axes.fill_between(
    sizes,
    *np.quantile(values, (0.05, 0.95), axis=1),
    color="#0072b2",
    alpha=0.2,
    label="90 % of draws",
)
axes.plot(sizes, np.median(values, axis=1), marker="o", label="median")
axes.set_xscale("log", base=2)
axes.set_xticks(sizes, sizes)
axes.set(
    xlabel="rows of each group",
    ylabel="Kolmogorov distance",
    title="Two groups that do not differ",
    ylim=(0, None),
)
axes.legend()
