"""scikit-learn estimators that are fair on scores: settings (parameters), estimator (what all do), and two classes."""

from metrifair.estimators.classifier import FairClassifier
from metrifair.estimators.estimator import FairEstimator
from metrifair.estimators.regressor import FairRegressor
from metrifair.estimators.stack import fit_stack

__all__ = ["BY_NAME", "FairClassifier", "FairEstimator", "FairRegressor", "fit_stack"]

BY_NAME: dict[str, type[FairEstimator]] = {"FairClassifier": FairClassifier, "FairRegressor": FairRegressor}
