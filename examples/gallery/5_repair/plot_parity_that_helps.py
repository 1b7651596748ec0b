"""
Parity that helps
=================

Illness is recorded less often for group 1, because some of its cases never reach a doctor. A model
of the records learns this bias. Parity lowers the error *with respect to the truth*, up to a point.
The values are exact for this population, not estimates.
"""

import matplotlib.pyplot as plt
import numpy as np

illness = np.linspace(
    0.1, 0.9, 5
)  # probability of illness, for five equally frequent kinds of people


def cross_entropy(predicted):
    """Expected loss with respect to the truth, which is the same in both groups."""
    return -np.mean(illness * np.log(predicted) + (1 - illness) * np.log1p(-predicted))


shares = np.linspace(0, 0.8, 33)
records = [np.stack([illness, illness * (1 - share)]) for share in shares]  # by group
with_parity = [np.mean(record, axis=0) for record in records]
figure, axes = plt.subplots()
axes.plot(shares, [cross_entropy(record) for record in records], label="fits the records")
axes.plot(
    shares,
    [cross_entropy(record) for record in with_parity],
    label="fits the records, with parity",
)
axes.set(
    xlabel="share of group 1's cases that goes unrecorded",
    ylabel="cross entropy with respect to the truth",
    title="Biased labels",
)
axes.legend()
