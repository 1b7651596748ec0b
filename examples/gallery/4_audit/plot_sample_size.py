"""
How many rows an audit needs
============================

The measured gap is soon close to the true gap, but the *certified* upper bound needs more rows. The
bound holds for the population with 95 % confidence, for any score distribution. Its distance to the
true gap shrinks with the square root of the number of rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import AuditOptions, audit

generator = np.random.default_rng(0)
sizes = [100, 300, 1000, 3000, 10_000, 30_000, 100_000]
group = generator.integers(2, size=max(sizes))
score = generator.beta(4 + 0.6 * group, 4)

found = [
    audit(
        None,
        score[:n],
        sensitive_features=group[:n],
        metrics="kolmogorov",
        options=AuditOptions(resamples=0, permutations=0),
    ).worst()
    for n in sizes
]
figure, axes = plt.subplots()
axes.plot(sizes, [one.certified for one in found], marker="o", label="certified upper bound")
axes.plot(sizes, [one.value for one in found], marker="o", label="measured")
axes.axhline(found[-1].value, color="#1b1b1f", linestyle=":", label="true gap (approximate)")
axes.set_xscale("log")
axes.set(
    xlabel="rows",
    ylabel="Kolmogorov distance",
    title="Measured gap and certified bound",
    ylim=(0, None),
)
axes.legend()
