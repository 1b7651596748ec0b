"""The fair regressor, as scikit-learn knows regressors."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from metrifair.errors import DataError
from metrifair.estimators.estimator import FairEstimator, Floats, linear_parts, output_of
from metrifair.problem.criteria import Task, regression
from metrifair.problem.problem import Problem
from metrifair.problem.tables import Table
from metrifair.training import weighted_moments


@dataclass(eq=False, repr=False)
class FairRegressor(RegressorMixin, FairEstimator):
    """A regressor whose predictions are distributed alike in all groups.

    With ``standardize`` the target too is centred and scaled inside, so that a strength means the same on every scale.

    Parameters
    ----------
    strength : float, default=1.0
        Weight of the unfairness; 0 is an ordinary regressor, which needs no groups.
    criterion : str or Criterion, default="statistical_parity"
        What is compared: ``statistical_parity``, ``equal_opportunity``, ``predictive_equality``, ``equalized_odds``,
        ``risk_parity``, ``conditional_statistical_parity``, or a ``Criterion`` of your own.
    metric : str or callable, default="energy"
        How distributions are compared: ``energy``, ``mmd``, ``wasserstein``, ``cramer``, ``lp``, ``kolmogorov``,
        ``total_variation``, or a function of two tensors.
    estimate : {"rows", "population", "batch"}, default="rows"
        What the batches estimate, for energy and mmd: the distance between the groups' training rows, which is never
        negative; or that of the population behind them, as in the paper, which on few rows rewards spread at large
        strengths; both without bias. Or the distance within each batch, biased upwards, as all other metrics do.
    combine : {"mean", "sum"}, default="mean"
        The penalty is the mean over pairs of groups and control strata, and the sum over sets of labels and attributes;
        or, as in the paper, the sum over everything. Equal for two groups.
    compare : {"prediction", "output"}, default="prediction"
        Compare predictions or outputs, which are the same here up to scale.
    contrast : {"pairs", "rest", "independence"}, default="pairs"
        Compare all pairs of groups, or each group with the rest; or ask how much scores depend on the group, where
        small groups count little and no batch has to hold them all.
    intersectional : bool, default=False
        Cross several attributes into one, instead of one penalty for each.
    continuous : "auto", bool or list of str, default="auto"
        Which sensitive features are numbers, such as ages: those columns, all or none of them. How much scores depend
        on a number is the penalty then (``energy_dependence``), and no groups are made. ``"auto"`` takes columns of
        numbers with more than 20 different values, and says so in a warning.
    on_small : {"leave_out", "error"}, default="leave_out"
        What becomes of a group with fewer than two training rows (in a set of the criterion): it is left out of the
        penalty with a warning, or refused.
    model : {"mlp", "linear"} or torch.nn.Module, default="mlp"
        A network, a linear model, or a module of your own from features to one output per sample. Layers that
        keep running statistics, as BatchNorm does, are refused.
    solver : {"auto", "lbfgs", "sgd"}, default="auto"
        Linear models are fitted by L-BFGS to all rows at once: on the CPU, the same for every seed; networks by
        stochastic steps. ``"auto"`` takes steps for a linear model too where ``epochs``, ``batch_size`` or
        ``learning_rate`` is given, for metrics without a useful gradient (kolmogorov, total_variation, functions of
        your own), for ``estimate="population"``, for mmd beyond 2,000 rows and for more than 100 million numbers in X.
    hidden : sequence of int, default=(16,)
        Units of the hidden layers of ``"mlp"``; without any it is ``"linear"``.
    batch_size : int or "auto", default="auto"
        Rows of a batch; by default data sets of up to 1,000 rows are used whole in every step (docs/defaults.md).
    epochs : int or "auto", default="auto"
        Passes over the data; by default so many that 150 to 1,000 steps are made.
    learning_rate : float or "auto", default="auto"
        Step size of Adam, 0.005 unless given.
    learning_rate_decay : float or "auto", default="auto"
        Factor of the step size after each epoch. By default the strength grows to its own over the first four fifths
        of the steps, and the step size falls to 0 over the last half; with a number both are as they are from the
        start.
    weight_decay : float, default=0.0
        Weight of half the squared parameters, those of standardised features.
    early_stopping : bool or float, default=False
        Keep this share of the rows aside (True: a tenth; of each group, and class, alike), and the weights with the
        lowest risk + strength x unfairness on them; once the strength has grown to its own, stop after ten epochs
        without a lower one. Every model of a frontier keeps its own best weights. Linear models then take steps.
    standardize : bool, default=True
        Centre and scale the features and the target inside.
    device : str, default="auto"
        ``"auto"`` takes a CUDA device where there is one.
    random_state : int, generator or None, default=None
        Seed of initial weights and batches.
    verbose : bool, default=False
        Show a progress bar.
    loss : {"squared_error", "absolute_error", "huber"}, default="squared_error"
        The loss.

    Attributes
    ----------
    target_scaling_ : tuple of float
        Centre and spread of the target.
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
        centre, spread = self.target_scaling_
        return output * spread + centre

    @property
    def coef_(self) -> Floats:
        """Weights of a linear model's features, (n_features,), in the units of X and y."""
        found: Floats = linear_parts(self, "coef_")[0][0] * self.target_scaling_[1]
        return found

    @property
    def intercept_(self) -> float:
        """What a linear model adds to them."""
        centre, spread = self.target_scaling_
        return float(linear_parts(self, "intercept_")[1][0] * spread + centre)

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
        centre, spread = self.target_scaling_
        return regression(self.loss), (y - centre) / spread
