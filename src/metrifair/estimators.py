"""scikit-learn estimators that are fair on scores: thin shells around fitting, training and online learning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.multiclass import check_classification_targets

from metrifair.cells import Contrast
from metrifair.criteria import Compare, Criterion
from metrifair.errors import DataError
from metrifair.fitting import Declared, Problem
from metrifair.lifecycle import fit, learn, output_of, trained_stack, validated
from metrifair.metrics.catalog import MetricLike
from metrifair.saving.keeping import save
from metrifair.saving.modelfile import PathLike
from metrifair.tables import Table
from metrifair.tasks import BINARY, MULTICLASS, regression
from metrifair.training import weighted_moments

Floats = NDArray[np.float64]


class FairClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose scores are distributed alike in all groups.

    Trains risk + strength x unfairness by stochastic gradient descent, the unfairness being a distance between
    the groups' score distributions. Predicting needs no groups.

    Parameters
    ----------
    strength : weight of the unfairness; 0 is an ordinary classifier, which needs no groups.
    criterion : what is compared, a name (``statistical_parity``, ``equal_opportunity``, ``predictive_equality``,
        ``equalized_odds``, ``risk_parity``, ``conditional_statistical_parity``) or a ``Criterion``.
    metric : how distributions are compared: ``energy`` (default), ``mmd``, ``wasserstein``, ``cramer``, ``lp``,
        ``kolmogorov``, ``total_variation``, or a function of two tensors.
    unbiased : use the unbiased estimate on each batch, where the metric has one (energy, mmd).
    compare : compare predictions (probabilities) or outputs (log-odds).
    contrast : compare all ``"pairs"`` of groups, or each group with the ``"rest"``.
    intersectional : cross several attributes into one, instead of one penalty for each.
    pos_label : the class that equal opportunity and predictive equality speak of; by default the last one.
    model : ``"mlp"``, ``"linear"``, or a ``torch.nn.Module`` from features to one output per sample (to one per
        class, if there are more than two).
    hidden : units of the hidden layers of ``"mlp"``.
    batch_size, epochs, learning_rate, learning_rate_decay, weight_decay : the descent (Adam). By default small data
        sets are used whole in every step, and 100 to 1,000 steps are made (docs/defaults.md).
    standardize : centre and scale the features inside.
    device : ``"auto"`` takes a CUDA device where there is one.
    random_state : seed of initial weights and batches.
    verbose : show a progress bar.

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
    0.6
    0.1
    """

    def __init__(
        self,
        strength: float = 1.0,
        *,
        criterion: str | Criterion = "statistical_parity",
        metric: MetricLike = "energy",
        unbiased: bool = True,
        compare: Compare = "prediction",
        contrast: Contrast = "pairs",
        intersectional: bool = False,
        pos_label: object = None,
        model: str | torch.nn.Module = "mlp",
        hidden: Sequence[int] = (16,),
        batch_size: int | Literal["auto"] = "auto",
        epochs: int | Literal["auto"] = "auto",
        learning_rate: float = 5e-3,
        learning_rate_decay: float = 1.0,
        weight_decay: float = 0.0,
        standardize: bool = True,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.strength = strength
        self.criterion = criterion
        self.metric = metric
        self.unbiased = unbiased
        self.compare = compare
        self.contrast = contrast
        self.intersectional = intersectional
        self.pos_label = pos_label
        self.model = model
        self.hidden = hidden
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.learning_rate_decay = learning_rate_decay
        self.weight_decay = weight_decay
        self.standardize = standardize
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Table,
        y: Table,
        *,
        sensitive_features: Table | None = None,
        control_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train from scratch.

        ``sensitive_features`` is a column, or a table of several attributes; missing values in it mean that the group
        is not known: such samples count for the risk only. ``control_features`` are strata within which the
        criterion is asked for.
        """
        fit(self, self._prepared(X, y, sensitive_features, control_features, sample_weight))
        return self

    def partial_fit(
        self,
        X: Table,
        y: Table,
        *,
        sensitive_features: Table | None = None,
        control_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        groups: Declared | None = None,
    ) -> Self:
        """Learn from the next samples of a stream.

        Samples wait until their batch is covered: ``batch_size`` samples (``"auto"``: 32), and two of every group that
        is compared. How the stream is cut into chunks does not matter. ``classes`` and ``groups`` declare, at the
        first call, what that call's samples may not all show.
        """
        first = not hasattr(self, "scheme_")
        x, y, weight = validated(self, X, y, sample_weight, reset=first)
        if first:
            self.classes_ = np.unique(y if classes is None else np.asarray(classes))
        labels = np.searchsorted(self.classes_, y).clip(max=len(self.classes_) - 1)
        strange = self.classes_[labels] != y
        if strange.any():
            raise DataError(f"y holds {y[strange][0]!r}, which is none of the classes {self.classes_.tolist()}")
        learn(self, self._problem(x, labels, weight, sensitive_features, control_features), groups)
        return self

    def decision_function(self, X: Table) -> Floats:
        """Outputs before the link: log-odds of the last of two classes, or one number per class."""
        return output_of(self, X)

    def predict_proba(self, X: Table) -> Floats:
        """Probabilities of the classes, (n, classes)."""
        output = torch.as_tensor(output_of(self, X))
        if output.ndim == 2:
            return MULTICLASS.prediction(output).numpy()
        probability = BINARY.prediction(output).numpy()
        return np.stack([1 - probability, probability], axis=1)

    def predict(self, X: Table) -> NDArray[Any]:
        """The most probable class of each sample."""
        output = output_of(self, X)
        chosen = output.argmax(1) if output.ndim == 2 else (output > 0).astype(int)
        predicted: NDArray[Any] = self.classes_[chosen]
        return predicted

    def _prepared(
        self,
        X: Table,
        y: Table,
        sensitive_features: Table | None,
        control_features: Table | None,
        sample_weight: ArrayLike | None,
    ) -> Problem:
        """The problem that ``fit`` solves."""
        x, y, weight = validated(self, X, y, sample_weight)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        return self._problem(x, labels, weight, sensitive_features, control_features)

    def save(self, path: PathLike) -> None:
        """Write the fitted model to one file, which ``metrifair.load`` reads without running any code.

        The file holds parameters, weights, names of classes, groups and features, and the state of ``partial_fit``. It
        cannot hold functions (a metric, score or sets of your own: a DataError), and of a ``torch.nn.Module`` holds the
        weights only. A ``random_state`` that is a generator is saved as None. A crash leaves the old file.
        """
        save(self, path)

    def _problem(
        self,
        x: Floats,
        labels: NDArray[Any],
        weight: Floats,
        sensitive_features: Table | None,
        control_features: Table | None,
    ) -> Problem:
        classes = self.classes_.tolist()
        if len(classes) < 2:
            raise DataError(f"y must hold at least two classes, got {len(classes)} class: {classes}")
        if self.pos_label is not None and self.pos_label not in classes:
            raise DataError(f"pos_label must be one of the classes {classes}, got {self.pos_label!r}")
        task = BINARY if len(classes) == 2 else MULTICLASS
        return Problem(
            x,
            labels,
            labels if task.vector else labels.astype(np.float64),
            weight,
            task,
            sensitive_features,
            control_features,
            classes=tuple(classes),
            positive=len(classes) - 1 if self.pos_label is None else classes.index(self.pos_label),
        )


class FairRegressor(RegressorMixin, BaseEstimator):
    """A regressor whose predictions are distributed alike in all groups.

    Parameters are those of FairClassifier, with ``loss`` (``squared_error``, ``absolute_error`` or ``huber``) instead
    of ``pos_label``. With ``standardize`` the target too is centred and scaled inside, so that a strength means the
    same on every scale.

    Examples
    --------
    >>> from metrifair.datasets.synthetic import OffsetRegression
    >>> X, y, a = OffsetRegression(delta=1.0).sample(500, seed=0)
    >>> model = FairRegressor(5.0, model="linear", random_state=0).fit(X, y, sensitive_features=a)
    >>> [round(float(values[a == 0].mean() - values[a == 1].mean()), 1) for values in (y, model.predict(X))]
    [1.0, 0.1]
    """

    def __init__(
        self,
        strength: float = 1.0,
        *,
        criterion: str | Criterion = "statistical_parity",
        metric: MetricLike = "energy",
        unbiased: bool = True,
        compare: Compare = "prediction",
        contrast: Contrast = "pairs",
        intersectional: bool = False,
        loss: str = "squared_error",
        model: str | torch.nn.Module = "mlp",
        hidden: Sequence[int] = (16,),
        batch_size: int | Literal["auto"] = "auto",
        epochs: int | Literal["auto"] = "auto",
        learning_rate: float = 5e-3,
        learning_rate_decay: float = 1.0,
        weight_decay: float = 0.0,
        standardize: bool = True,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.strength = strength
        self.criterion = criterion
        self.metric = metric
        self.unbiased = unbiased
        self.compare = compare
        self.contrast = contrast
        self.intersectional = intersectional
        self.loss = loss
        self.model = model
        self.hidden = hidden
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.learning_rate_decay = learning_rate_decay
        self.weight_decay = weight_decay
        self.standardize = standardize
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Table,
        y: Table,
        *,
        sensitive_features: Table | None = None,
        control_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train from scratch; see FairClassifier.fit for the groups."""
        fit(self, self._prepared(X, y, sensitive_features, control_features, sample_weight))
        return self

    def partial_fit(
        self,
        X: Table,
        y: Table,
        *,
        sensitive_features: Table | None = None,
        control_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
        groups: Declared | None = None,
    ) -> Self:
        """Learn from the next samples of a stream; see FairClassifier.partial_fit.

        The target is taken as it is: its scale is not known when the stream begins.
        """
        first = not hasattr(self, "scheme_")
        x, y, weight = validated(self, X, y, sample_weight, reset=first)
        if first:
            self.target_scaling_ = (0.0, 1.0)
        learn(self, self._problem(x, y, weight, sensitive_features, control_features), groups)
        return self

    def predict(self, X: Table) -> Floats:
        """The predictions, on the scale of y."""
        output = output_of(self, X)
        centre, spread = self.target_scaling_
        return output * spread + centre

    def _prepared(
        self,
        X: Table,
        y: Table,
        sensitive_features: Table | None,
        control_features: Table | None,
        sample_weight: ArrayLike | None,
    ) -> Problem:
        """The problem that ``fit`` solves."""
        x, y, weight = validated(self, X, y, sample_weight)
        self.target_scaling_ = (0.0, 1.0)
        if self.standardize:
            centre, spread = weighted_moments(torch.as_tensor(y).unsqueeze(1), torch.as_tensor(weight))
            self.target_scaling_ = (centre.item(), spread.item())
        return self._problem(x, y, weight, sensitive_features, control_features)

    def save(self, path: PathLike) -> None:
        """Write the fitted model to one file; see FairClassifier.save."""
        save(self, path)

    def _problem(
        self,
        x: Floats,
        y: Floats,
        weight: Floats,
        sensitive_features: Table | None,
        control_features: Table | None,
    ) -> Problem:
        centre, spread = self.target_scaling_
        targets = (y - centre) / spread
        return Problem(x, y, targets, weight, regression(self.loss), sensitive_features, control_features)


Estimator = FairClassifier | FairRegressor
BY_NAME: dict[str, type[Estimator]] = {"FairClassifier": FairClassifier, "FairRegressor": FairRegressor}


def fit_stack(
    estimator: Estimator,
    X: Table,
    y: Table,
    *,
    strengths: Sequence[float],
    seeds: Sequence[int],
    sensitive_features: Table | None = None,
    control_features: Table | None = None,
    sample_weight: ArrayLike | None = None,
) -> list[Estimator | None]:
    """Fitted copies of the estimator for every seed and, within it, every strength; None where training diverged.

    They equal ``fit`` with that strength and ``random_state``, but are trained all at once.
    """
    template = clone(estimator)
    problem = template._prepared(X, y, sensitive_features, control_features, sample_weight)
    fits = iter(trained_stack(template, problem, strengths=strengths, seeds=seeds))
    models: list[Estimator | None] = []
    for seed in seeds:
        for strength in strengths:
            fitted = next(fits)
            if fitted is None:
                models.append(None)
                continue
            model = clone(template).set_params(strength=strength, random_state=seed)
            model.__dict__.update({name: value for name, value in vars(template).items() if name.endswith("_")})
            model.__dict__.update(fitted)
            models.append(model)
    return models
