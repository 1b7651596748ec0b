"""scikit-learn estimators that are fair on scores: thin shells around fitting, training and online learning."""

from metrifair.estimators.classifier import FairClassifier
from metrifair.estimators.regressor import FairRegressor
from metrifair.estimators.stack import BY_NAME, Estimator, fit_stack

__all__ = ["BY_NAME", "Estimator", "FairClassifier", "FairRegressor", "fit_stack"]
