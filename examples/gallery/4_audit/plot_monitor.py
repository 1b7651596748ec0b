"""
Monitoring a model over months
==============================

The scores of every month are counted. ``monitor`` reports each month's distance with a confidence
interval, and raises an alarm if the distance has changed since the first month. You can look as
often as you like: the probability of any false alarm is at most 5 %.
"""

import matplotlib.pyplot as plt
import numpy as np

from metrifair import AuditOptions, AuditState, monitor

generator = np.random.default_rng(2)
months = {}
for number, name in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug"]):
    sex = generator.choice(["f", "m"], 3000)
    gap = 0.03 if number < 4 else 0.03 + 0.02 * (number - 3)  # the gap grows from May
    score = np.clip(generator.normal(0.5 + gap * (sex == "m"), 0.15), 0, 1)
    months[name] = AuditState(name=name).add(None, score, sensitive_features={"sex": sex})
series = monitor(months, metrics="kolmogorov", random_state=0, options=AuditOptions(resamples=200))

figure, axes = plt.subplots()
for one in series.record.series:
    color = "#d55e00" if one.alarm == "worse" else "#0072b2"
    if one.interval:
        axes.vlines(
            one.look, one.interval.low, one.interval.high, color=color, linewidth=5, alpha=0.35
        )
    axes.scatter(one.look, one.value, color=color, s=60, zorder=3)
axes.scatter([], [], color="#d55e00", label="alarm: larger than in January")
axes.set(ylabel="Kolmogorov distance", title="Women and men, month by month", ylim=(0, None))
axes.grid(visible=False, axis="x")
axes.legend(loc="upper left")
