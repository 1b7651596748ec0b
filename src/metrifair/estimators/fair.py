"""The fair classifier and the fair regressor, scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from metrifair.errors import DataError
from metrifair.estimators.estimator import FairEstimator, linear_parts, model_output
from metrifair.estimators.settings import ClassWeight, class_weights
from metrifair.metrics.penalty_options import penalty_options
from metrifair.problem.problem import Problem
from metrifair.problem.tables import Table
from metrifair.support.arrays import Floats
from metrifair.support.signatures import as_in
from metrifair.training import weighted_moments
from metrifair.training.objective import BINARY, MULTICLASS, Task, regression


@dataclass(eq=False, repr=False)
class FairClassifier(ClassifierMixin, FairEstimator):
    """A classifier with similar score distributions in all groups.

    ``fit`` minimizes the loss plus the strength times the distance between the groups' score
    distributions, by a solver or by stochastic gradient steps. Prediction needs no groups.

    The parameters are grouped by subject:

    - Penalty: ``strength``, ``criterion``, ``metric``, ``intersectional``, ``continuous``,
      ``penalty``.
    - Model: ``model``, ``hidden``.
    - Training: ``batch_size``, ``epochs``, ``learning_rate``, ``weight_decay``, ``early_stopping``.
    - Computation: ``device``, ``random_state``, ``verbose``.
    - Classes: ``pos_label``, ``class_weight``.

    Parameters
    ----------
    strength : float, default=1.0
        Penalty strength: the weight of the unfairness. At 1, a gap of 0.1 at every score costs as
        much as 0.02 of log loss, and a gap of 0.2 four times as much. 0 trains an ordinary classifier, which
        needs no groups. For ``energy`` and two groups it is the paper's lambda: the paper penalizes
        2 lambda z^2, z being the L2 distance between the distribution functions, and 2 z^2 is the
        energy distance. For ``cramer``, which is z^2, it is twice lambda.
    criterion : str or Criterion, default="statistical_parity"
        Fairness criterion: ``statistical_parity``, ``equal_opportunity``, ``predictive_equality``,
        ``equalized_odds``, ``risk_parity``, ``conditional_statistical_parity``, or a ``Criterion``
        of your own.
    metric : str or callable, default="energy"
        Distance between distributions: a name such as ``energy`` or ``mmd``, of those in the
        documentation on distances, or a function of two tensors. The penalty ``total_variation``
        compares shares in 10 bins with gradients of a smoothed version, and not the shares of every
        value, as ``unfairness`` does.
    intersectional : bool, default=False
        Compare the intersections of several attributes instead of each attribute. By default each
        attribute has its own penalty.
    continuous : "auto", bool or list of str, default="auto"
        Numeric attributes, such as age: the named columns, all, or none. The penalty of a numeric
        attribute is ``energy_dependence``, and no groups are formed. ``"auto"`` selects numeric
        columns with more than 20 different values and warns.
    penalty : PenaltyOptions or None, default=None
        Options that few users set: ``PenaltyOptions(...)``, such as which groups are compared and
        the training algorithm. None is ``PenaltyOptions()``.
    model : {"linear", "mlp"} or torch.nn.Module, default="linear"
        Model to train: a linear model, a network, or a module of your own. A module maps the
        features to the log-odds of the last class, or, if there are more than two classes, to one
        output per class, the inputs of ``softmax``. It must not end in Sigmoid or Softmax. Layers
        that keep running statistics, such as BatchNorm, raise an error.
    hidden : sequence of int, default=None
        Units of the hidden layers of ``"mlp"``; by default one layer of 16 units. An empty sequence
        is a linear model.
    batch_size : int or "auto", default="auto"
        Rows per batch. By default, every step uses all rows of data sets of up to 1,000 rows
        (docs/defaults.md).
    epochs : int or "auto", default="auto"
        Passes over the data. By default as many as 150 to 1,000 steps need.
    learning_rate : float or "auto", default="auto"
        Learning rate of Adam; 0.005 by default.
    weight_decay : float, default=0.0
        Weight of half the squared parameters of the standardized features.
    early_stopping : bool or float, default=False
        Share of the rows held out for validation (True: a tenth of each group and class). Training
        keeps the weights with the lowest risk + strength x unfairness on them. Once the strength
        has reached its final value, training stops after ten epochs without improvement. Every
        model of a frontier keeps its own best weights. Linear models are then trained by stochastic
        gradient steps.
    device : str, default="auto"
        Device to train on. ``"auto"`` selects a CUDA device if there is one.
    random_state : int, generator or None, default=None
        Seed of the initial weights and the batches.
    verbose : bool, default=False
        Show a progress bar.
    pos_label : object, default=None
        The positive label, for equal opportunity and predictive equality. By default the last
        class.
    class_weight : "balanced", dict or None, default=None
        Weights of the classes in the loss: ``"balanced"`` gives all classes the same total weight,
        a dict gives one number for each. Weights are scaled to a mean of 1 over all rows, so that
        ``strength`` keeps its meaning. The unfairness ignores them. ``partial_fit`` uses the
        numbers of a dict unscaled.

    Attributes
    ----------
    classes_ : ndarray
        The classes, in ascending order.
    left_out_ : tuple of str
        Groups that were too small to train on, with their numbers of rows.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had them.
    n_iter_ : int
        Epochs of ``fit``, or iterations of the solver.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features, in their own units; linear models only.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercept; linear models only.
    n_updates_ : int
        Steps of ``partial_fit``.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=400)
    >>> X = generator.normal(size=(400, 3)) + a[:, None]
    >>> y = (X.sum(1) + generator.normal(size=400) > 1.5).astype(int)
    >>> from metrifair import unfairness
    >>> for strength in (0.0, 10.0):
    ...     model = FairClassifier(strength, random_state=0).fit(X, y, sensitive_features=a)
    ...     print(round(unfairness(y, model.predict_proba(X)[:, 1], sensitive_features=a), 1))
    0.7
    0.1
    """

    _: KW_ONLY
    pos_label: object = None
    class_weight: ClassWeight = None

    def decision_function(
        self,
        X: Table,
        *,
        sensitive_features: Table | None = None,  # noqa: ARG002
    ) -> Floats:
        """Outputs before the link: log-odds of the last of two classes, or one number per class.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.
        sensitive_features : array-like or table, default=None
            The group of each sample. Not used, as this model predicts without groups.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The outputs.
        """
        return model_output(self, X)

    def predict_proba(
        self,
        X: Table,
        *,
        sensitive_features: Table | None = None,  # noqa: ARG002
    ) -> Floats:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.
        sensitive_features : array-like or table, default=None
            The group of each sample. Not used, as this model predicts without groups.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        output = torch.as_tensor(model_output(self, X))
        if output.ndim == 2:
            return MULTICLASS.prediction(output).numpy()
        probability = BINARY.prediction(output).numpy()
        return np.stack([1 - probability, probability], axis=1)

    def predict(
        self,
        X: Table,
        *,
        sensitive_features: Table | None = None,  # noqa: ARG002
    ) -> NDArray[Any]:
        """The most probable class of each sample; of two that are equally probable, the positive
        one.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.
        sensitive_features : array-like or table, default=None
            The group of each sample. Not used, as this model predicts without groups.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        output = model_output(self, X)
        if output.ndim == 2:
            chosen = output.argmax(1)
        else:
            chosen = (output >= 0 if self.scheme_.positive == 1 else output > 0).astype(int)
        predicted: NDArray[Any] = self.classes_[chosen]
        return predicted

    @property
    def coef_(self) -> Floats:
        """Weights of a linear model's features, in their own units: (1, n_features), or a row
        for each class.
        """
        return linear_parts(self, "coef_")[0]

    @property
    def intercept_(self) -> Floats:
        """The intercept of a linear model: (1,), or one number for each class."""
        return linear_parts(self, "intercept_")[1]

    def _task_and_targets(self, problem: Problem, *, stream: bool) -> tuple[Task, NDArray[Any]]:
        classes = list(problem.scheme.classes)
        labels = problem.labels
        if len(classes) < 2 and stream:
            raise DataError(
                f"the stream begins with the class {classes} only; pass classes=, a list of all "
                "classes, to the first "
                "partial_fit"
            )
        if len(classes) < 2 or labels is None:
            raise DataError(
                f"y must contain at least two classes, got {len(classes)} class: {classes}"
            )
        return (BINARY, labels.astype(np.float64)) if len(classes) == 2 else (MULTICLASS, labels)

    def _class_weight(self, problem: Problem, *, stream: bool) -> tuple[float, ...]:
        classes = self.classes_.tolist()
        class_weight = self.class_weight
        counts = np.ones(len(classes))
        if not stream:
            counts = np.bincount(
                np.asarray(problem.labels), problem.weight, minlength=len(classes)
            ).astype(np.float64)
        elif isinstance(class_weight, str):
            problem_text = "needs the shares of the classes, which a stream does not provide"
            raise DataError(
                problem_text, argument="class_weight", received=class_weight, remedy="pass a dict"
            )
        weights = class_weights(class_weight, classes, counts)
        if stream and isinstance(class_weight, Mapping):
            return tuple(float(class_weight.get(value, 1.0)) for value in classes)
        return weights


@as_in(FairClassifier)
@dataclass(eq=False, repr=False)
class FairRegressor(RegressorMixin, FairEstimator):
    """A regressor with similar distributions of predictions in all groups.

    By default the target too is centered and scaled, so that a strength means the same on
    every scale.

    The parameters are grouped by subject:

    - Penalty: ``strength``, ``criterion``, ``metric``, ``intersectional``, ``continuous``,
      ``penalty``.
    - Model: ``model``, ``hidden``.
    - Training: ``batch_size``, ``epochs``, ``learning_rate``, ``weight_decay``, ``early_stopping``.
    - Computation: ``device``, ``random_state``, ``verbose``.
    - Target: ``loss``.

    Parameters
    ----------
    strength : float, default=1.0
        Penalty strength: the weight of the unfairness. 0 trains an ordinary regressor, which needs
        no groups.
    criterion, metric, intersectional, continuous, penalty : as in FairClassifier
    model : {"linear", "mlp"} or torch.nn.Module, default="linear"
        Model to train: a network, a linear model, or a module of your own from features to one
        output per sample. Layers that keep running statistics, such as BatchNorm, raise an error.
    hidden, batch_size, epochs, learning_rate : as in FairClassifier
    weight_decay, early_stopping : as in FairClassifier
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
        Names of the features, if X had them.
    n_iter_ : int
        Epochs of ``fit``, or iterations of the solver.
    coef_ : ndarray of shape (n_features,)
        Weights of the features, in the units of X and y; linear models only.
    intercept_ : float
        Intercept; linear models only.
    n_updates_ : int
        Steps of ``partial_fit``.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=500)
    >>> X = np.c_[generator.normal(size=500), a]
    >>> y = X[:, 0] + (a == 0)
    >>> model = FairRegressor(5.0, model="linear", random_state=0).fit(X, y, sensitive_features=a)
    >>> [round(float(values[a == 0].mean() - values[a == 1].mean()), 1) for values in (y, model.predict(X))]
    [1.2, 0.1]
    """

    _: KW_ONLY
    loss: str = "squared_error"

    def predict(
        self,
        X: Table,
        *,
        sensitive_features: Table | None = None,  # noqa: ARG002
    ) -> Floats:
        """The predictions, on the scale of y.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.
        sensitive_features : array-like or table, default=None
            The group of each sample. Not used, as this model predicts without groups.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        output = model_output(self, X)
        center, spread = self.target_scaling_
        return output * spread + center

    @property
    def coef_(self) -> Floats:
        """Weights of a linear model's features, (n_features,), in the units of X and y."""
        coefficients: Floats = linear_parts(self, "coef_")[0][0] * self.target_scaling_[1]
        return coefficients

    @property
    def intercept_(self) -> float:
        """The intercept of a linear model."""
        center, spread = self.target_scaling_
        return float(linear_parts(self, "intercept_")[1][0] * spread + center)

    def _task_and_targets(self, problem: Problem, *, stream: bool) -> tuple[Task, NDArray[Any]]:
        y = np.asarray(problem.labels)
        if not hasattr(self, "scheme_"):
            self.target_scaling_ = (0.0, 1.0)
            if penalty_options(self).standardize and not stream:
                # so that a weight of two is exactly two rows
                distinct, place = np.unique(y, return_inverse=True)
                weight = np.bincount(place, problem.weight)
                mean, deviation = weighted_moments(
                    torch.as_tensor(distinct).unsqueeze(1), torch.as_tensor(weight)
                )
                if bool(deviation.isinf()):
                    raise DataError("y spreads so far that its square is infinite; rescale it")
                self.target_scaling_ = (mean.item(), deviation.item())
        center, spread = self.target_scaling_
        return regression(self.loss), (y - center) / spread
