"""The fair regressor, as scikit-learn knows regressors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import torch
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from metrifair.errors import DataError
from metrifair.estimators.base import FairEstimator, Floats
from metrifair.estimators.estimator import learn, output_of, validated
from metrifair.estimators.fitting import Declared, Problem
from metrifair.metrics.registry import MetricLike
from metrifair.problem.cells import Contrast
from metrifair.problem.criteria import Compare, Criterion
from metrifair.problem.tables import Table
from metrifair.problem.tasks import regression
from metrifair.training import weighted_moments


class FairRegressor(RegressorMixin, FairEstimator):
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
        x, y, weight = validated(
            self,
            X,
            y,
            sensitive_features=sensitive_features,
            control_features=control_features,
            sample_weight=sample_weight,
        )
        self.target_scaling_ = (0.0, 1.0)
        if self.standardize:
            centre, spread = weighted_moments(torch.as_tensor(y).unsqueeze(1), torch.as_tensor(weight))
            if bool(spread.isinf()):
                raise DataError("y spreads so far that its square is infinite; rescale it")
            self.target_scaling_ = (centre.item(), spread.item())
        return self._problem(x, y, weight, sensitive_features, control_features)

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
