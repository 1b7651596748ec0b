"""
An audit in one picture
=======================

``audit`` takes the scores of any model. For every criterion and pair of groups it reports the
distance, a confidence interval, a certified upper bound and a p-value. ``to_html`` writes the full
report. This picture shows the findings.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metrifair import audit, datasets

data = datasets.load("mortgage")
train, test = data.split(0)
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(
    data.X.iloc[train], data.y.iloc[train]
)
found = audit(
    data.y.iloc[test],
    model.predict_proba(data.X.iloc[test]),
    sensitive_features=data.sensitive_features.iloc[test],
    metrics=["kolmogorov"],
    random_state=0,
)
print(found.summary)

# %%
# Points are measured distances, thick lines 95% confidence intervals, and thin lines end at the
# certified bounds.
figure, axes = plt.subplots(figsize=(7.2, 2.8))
for row, finding in enumerate(found.findings):
    axes.hlines(row, finding.value, finding.certified, color="#0072b2", linewidth=1.5)
    axes.hlines(
        row, finding.interval.low, finding.interval.high, color="#0072b2", linewidth=5, alpha=0.5
    )
    axes.scatter(finding.value, row, color="#0072b2", s=60, zorder=3)
    text = f"p = {finding.p_value:.3f}" if finding.enough else "too few rows"
    axes.annotate(text, (1.0, row), va="center", ha="right", color="#5a5a63")
axes.set_yticks(
    range(len(found.findings)), [one.criterion.replace("_", " ") for one in found.findings]
)
axes.set(
    xlim=(0, 1), xlabel="Kolmogorov distance", title="White and not white applicants, held-out rows"
)
axes.set_ylim(len(found.findings) - 0.5, -0.5)
