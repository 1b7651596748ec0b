"""
Equal means, unequal scores
===========================

Two groups can have the same mean score and the same share above 0.5, and still have different
scores. Here one group rarely receives a very high or a very low score. A comparison of means misses
this. A distance between distributions shows it.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair.metrics import distances

generator = np.random.default_rng(0)
wide, narrow = generator.beta(1.5, 1.5, 4000), generator.beta(12, 12, 4000)
found = distances(wide, narrow)

gaps = {
    "difference of means": abs(wide.mean() - narrow.mean()),
    "difference of rates at 0.5": abs((wide >= 0.5).mean() - (narrow >= 0.5).mean()),
    "difference of rates at 0.7": abs((wide >= 0.7).mean() - (narrow >= 0.7).mean()),
    "Wasserstein distance": found["wasserstein"],
    "Kolmogorov distance": found["kolmogorov"],
}
figure, (left, right) = plt.subplots(1, 2, width_ratios=(1, 1), figsize=(8.4, 3.6))
left.hist([wide, narrow], bins=40, histtype="stepfilled", alpha=0.55, label=["group A", "group B"])
left.set(title="Scores", xlabel="score", yticks=[])
left.legend()
right.barh(list(gaps), list(gaps.values()), color="#4b3fbf")
right.bar_label(right.containers[0], fmt="%.2f", padding=3)
right.set(title="What each figure sees", xlim=(0, 0.36))
right.invert_yaxis()
right.grid(visible=False)
