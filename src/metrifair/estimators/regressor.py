"""The fair regressor, a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from metrifair.errors import DataError
from metrifair.estimators.classifier import FairClassifier
from metrifair.estimators.estimator import FairEstimator, linear_parts, output_of
from metrifair.problem.problem import Problem
from metrifair.problem.tables import Table
from metrifair.support.arrays import Floats
from metrifair.support.signatures import as_in
from metrifair.training import weighted_moments
from metrifair.training.losses import Task, regression


@as_in(FairClassifier)
@dataclass(eq=False, repr=False)
class FairRegressor(RegressorMixin, FairEstimator):
    """A regressor with similar distributions of predictions in all groups.

    With ``standardize`` the target too is centered and scaled, so that a strength means the same on every scale.

    The parameters are grouped by subject:

    - Penalty: ``strength``, ``criterion``, ``metric``, ``estimate``, ``combine``, ``penalize``, ``contrast``,
      ``intersectional``, ``continuous``, ``small_groups``.
    - Model: ``model``, ``solver``, ``hidden``.
    - Training: ``batch_size``, ``epochs``, ``learning_rate``, ``learning_rate_decay``, ``weight_decay``,
      ``early_stopping``, ``standardize``.
    - Computation: ``device``, ``random_state``, ``verbose``.
    - Target: ``loss``.

    Parameters
    ----------
    strength : float, default=1.0
        Penalty strength: the weight of the unfairness. 0 trains an ordinary regressor, which needs no groups.
    criterion, metric, estimate, combine : as in FairClassifier
    penalize : {"prediction", "output"}, default="prediction"
        Penalize predictions or outputs. Both are the same here up to scale.
    contrast, intersectional, continuous, small_groups : as in FairClassifier
    model : {"mlp", "linear"} or torch.nn.Module, default="mlp"
        Model to train: a network, a linear model, or a module of your own from features to one output per sample.
        Layers that keep running statistics, such as BatchNorm, raise an error.
    solver, hidden, batch_size, epochs, learning_rate : as in FairClassifier
    learning_rate_decay, weight_decay, early_stopping : as in FairClassifier
    standardize : bool, default=True
        Center and scale the features, and the target.
    device, random_state, verbose : as in FairClassifier
    loss : {"squared_error", "absolute_error", "huber"}, default="squared_error"
        Loss of the risk.

    Attributes
    ----------
    target_scaling_ : tuple of float
        Center and spread of the target.
    left_out_ : tuple of str
        Groups that were too small to train on, with their numbers of rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, where X had them.
    n_iter_ : int
        Epochs of ``fit``, or iterations of the solver.
    coef_ : ndarray of shape (n_features,)
        Weights of the features, in the units of X and y; linear models only.
    intercept_ : float
        What is added to them; linear models only.
    n_updates_ : int
        Steps of ``partial_fit``.

    Examples
    --------
    >>> from metrifair.datasets.synthetic import OffsetRegression
    >>> X, y, a = OffsetRegression(delta=1.0).sample(500, seed=0)
    >>> model = FairRegressor(5.0, model="linear", random_state=0).fit(X, y, sensitive_features=a)
    >>> [round(float(values[a == 0].mean() - values[a == 1].mean()), 1) for values in (y, model.predict(X))]
    [1.0, 0.1]
    """

    _: KW_ONLY
    loss: str = "squared_error"

    def predict(self, X: Table) -> Floats:
        """The predictions, on the scale of y.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        output = output_of(self, X)
        center, spread = self.target_scaling_
        return output * spread + center

    @property
    def coef_(self) -> Floats:
        """Weights of a linear model's features, (n_features,), in the units of X and y."""
        coefficients: Floats = linear_parts(self, "coef_")[0][0] * self.target_scaling_[1]
        return coefficients

    @property
    def intercept_(self) -> float:
        """What a linear model adds to them."""
        center, spread = self.target_scaling_
        return float(linear_parts(self, "intercept_")[1][0] * spread + center)

    def _task_and_targets(self, problem: Problem, *, stream: bool) -> tuple[Task, NDArray[Any]]:
        y = np.asarray(problem.labels)
        if not hasattr(self, "scheme_"):
            self.target_scaling_ = (0.0, 1.0)
            if self.standardize and not stream:
                distinct, place = np.unique(y, return_inverse=True)  # so that a weight of two is exactly two rows
                weight = np.bincount(place, problem.weight)
                mean, deviation = weighted_moments(torch.as_tensor(distinct).unsqueeze(1), torch.as_tensor(weight))
                if bool(deviation.isinf()):
                    raise DataError("y spreads so far that its square is infinite; rescale it")
                self.target_scaling_ = (mean.item(), deviation.item())
        center, spread = self.target_scaling_
        return regression(self.loss), (y - center) / spread
