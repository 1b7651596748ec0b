"""
Why small batches mislead
=========================

The distance measured within a small batch is too large on average, because small samples never look
exactly alike. A model trained with it is pushed toward a constant. The unbiased estimate is correct
on average at every batch size, so ordinary stochastic gradient descent can train a fair model.
"""

import matplotlib.pyplot as plt
import torch

from metrifair.metrics import energy_distance

generator = torch.Generator().manual_seed(0)
sizes = [2, 4, 8, 16, 32, 64, 128]
u, v = torch.randn(2, 2_000, 128, generator=generator, dtype=torch.float64)
v = v + 0.5
truth = energy_distance(u.flatten(), v.flatten()).item()

figure, axes = plt.subplots()
for unbiased, label in ((False, "within the batch (biased)"), (True, "unbiased")):
    middle, spread = [], []
    for size in sizes:
        # Of 2,000 batches at once.
        values = energy_distance(u[:, :size], v[:, :size], unbiased=unbiased)
        middle.append(values.mean())
        spread.append(1.96 * values.std() / len(values) ** 0.5)
    axes.errorbar(sizes, middle, spread, marker="o", capsize=3, label=label)
axes.axhline(truth, color="#1b1b1f", linestyle=":", label="true distance")
axes.set_xscale("log", base=2)
axes.set(
    xlabel="scores of each group in a batch",
    ylabel="mean estimate",
    title="Energy distance of two normals",
)
axes.set_xticks(sizes, sizes)
axes.legend()
