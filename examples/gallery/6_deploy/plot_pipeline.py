"""
A grid search over the penalty strength
=======================================

The estimators work with scikit-learn's pipelines and searches. Here ``GridSearchCV`` fits a
pipeline at several strengths. Metadata routing passes the groups to the last step.
"""

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metrifair import FairClassifier

sklearn.set_config(enable_metadata_routing=True)
generator = np.random.default_rng(0)
group = generator.integers(2, size=2000)
X = generator.normal(size=(2000, 3)) + np.outer(group, [1.0, 0.5, 0.0])
y = (X @ [0.8, 0.4, 1.2] + generator.normal(size=2000) > 0.6).astype(int)

strengths = [0, 0.3, 1, 3, 10, 30]
model = FairClassifier().set_fit_request(sensitive_features=True)
search = GridSearchCV(
    make_pipeline(StandardScaler(), model),
    {"fairclassifier__strength": strengths},
    scoring="roc_auc",
    cv=4,
)
search.fit(X, y, sensitive_features=group)
sklearn.set_config(enable_metadata_routing=False)

figure, axes = plt.subplots(figsize=(7.2, 3.8))
axes.errorbar(
    range(len(strengths)),
    search.cv_results_["mean_test_score"],
    search.cv_results_["std_test_score"],
    marker="o",
    capsize=4,
)
axes.set_xticks(range(len(strengths)), [f"{strength:g}" for strength in strengths])
axes.set(xlabel="strength", ylabel="AUC", title="Four folds: mean and standard deviation")
plt.show()
