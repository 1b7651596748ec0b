"""The fair classifier of scores, as scikit-learn knows classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from metrifair.errors import DataError
from metrifair.estimators.base import FairEstimator, Floats
from metrifair.estimators.estimator import learn, output_of, validated
from metrifair.estimators.fitting import Declared, Problem
from metrifair.metrics.registry import MetricLike
from metrifair.problem.cells import Contrast
from metrifair.problem.criteria import Compare, Criterion
from metrifair.problem.tables import Table
from metrifair.problem.tasks import BINARY, MULTICLASS


class FairClassifier(ClassifierMixin, FairEstimator):
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

        Where 100 times the batch size goes by without the samples that a batch waits for, a TooFewSamples error says
        which: these samples are then left out, and further calls go on. Batch size and groups are those of the first
        call; to change them, begin a new model.
        """
        first = not hasattr(self, "scheme_")
        x, y, weight = validated(
            self,
            X,
            y,
            sensitive_features=sensitive_features,
            control_features=control_features,
            sample_weight=sample_weight,
            reset=first,
        )
        if first:
            if classes is None:
                check_classification_targets(y)
            self.classes_ = np.unique(y if classes is None else np.asarray(classes))
            if classes is None and len(self.classes_) < 2:
                raise DataError(
                    f"the stream begins with the class {self.classes_.tolist()} only; pass classes=, a list of all "
                    "classes, to the first partial_fit"
                )
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
        x, y, weight = validated(
            self,
            X,
            y,
            sensitive_features=sensitive_features,
            control_features=control_features,
            sample_weight=sample_weight,
        )
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        return self._problem(x, labels, weight, sensitive_features, control_features)

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
