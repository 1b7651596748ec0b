"""scikit-learn estimators that are fair on scores: settings (parameters), estimator (what all
do), and two classes.
"""

from metrifair.estimators.estimator import FairEstimator, fit_stack
from metrifair.estimators.fair import FairClassifier, FairRegressor

__all__ = ["FairClassifier", "FairEstimator", "FairRegressor", "fit_stack"]
