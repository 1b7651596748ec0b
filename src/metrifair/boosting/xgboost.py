"""XGBoost with the penalty: its own scikit-learn classes, with another objective."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from metrifair.boosting.booster import (
    GROUP_BINS,
    GROUP_LEAVES,
    GROUP_RATE,
    GROUP_ROUNDS,
    OWN_PARAMETERS,
    FairBooster,
    FitPlan,
)
from metrifair.boosting.dask import fit_on_cluster, map_rows
from metrifair.boosting.objective import METRIC_NAME
from metrifair.boosting.problem import BoostingProblem
from metrifair.errors import DataError
from metrifair.estimators.settings import check_floats_as_labels
from metrifair.problem.tables import CodedColumn, Table, one_column
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_names, require
from metrifair.support.signatures import as_in

xgboost: Any = require("xgboost", extra="boosting", purpose="FairXGBClassifier or FairXGBRegressor")

_LEARNING_RATE = 0.3  # XGBoost's own, if none is given
_FROM_3_1 = tuple(map(int, xgboost.__version__.split(".")[:2])) >= (3, 1)
"""Takes a constant to start from for each class, and names of metrics beside a function."""
# Parameters for reading rows and for the device.
_OF_DATA = (
    "n_jobs",
    "device",
    "tree_method",
    "missing",
    "enable_categorical",
    "feature_types",
    "max_cat_to_onehot",
)
_OF_CLASSES = "multi:softprob"  # XGBoost's default for more than two classes


class _FairXGB(FairBooster):
    """XGBoost with our objective."""

    _eval_weights = "sample_weight_eval_set"
    _objective: ClassVar[str]  # whose risk the penalized risk contains
    objective: Any
    eval_metric: Any
    base_score: Any

    def _check_names(self) -> None:
        """XGBoost itself warns of other names that it does not use: which these are depends on
        its settings.
        """
        check_names(
            self.get_params(),
            {*xgboost.XGBModel().get_params(), *OWN_PARAMETERS},
            "XGBoost",
            all_known=False,
        )

    def _wrapper_params(self) -> set[str]:
        """Parameters that are not XGBoost's."""
        return {*super()._wrapper_params(), *OWN_PARAMETERS}  # type: ignore[misc]

    def predict(
        self,
        X: Table,
        *,
        sensitive_features: Table | None = None,  # noqa: ARG002
        **named: Any,
    ) -> Any:
        """Predict with XGBoost's own ``predict``; returns a Dask array for a Dask collection.

        Parameters
        ----------
        X : array-like, data frame or Dask collection of shape (n_samples, n_features)
            Features.
        sensitive_features : array-like or table, default=None
            The group of each sample. Not used, as this model predicts without groups.
        **named
            Further arguments of the booster's own.

        Returns
        -------
        array of shape (n_samples,)
            Labels, or numbers.
        """
        labels = hasattr(self, "predict_proba") and not named.get("output_margin")
        like = np.zeros(0, dtype=int if labels else np.float32)
        return map_rows(super().predict, X, like=like, **named)  # type: ignore[misc]

    def _fit_on_cluster(self, *inputs: Any) -> None:
        self._check_objective()
        fit_on_cluster(self, *inputs)

    def _check_objective(self, *, several: bool = False) -> None:
        if self.objective != self._objective and not (several and self.objective == _OF_CLASSES):
            required = repr(_OF_CLASSES if several else self._objective)
            raise DataError(
                f"objective must be {required} where strength > 0, got {self.objective!r}"
            )

    def _group_model(self, rows: int) -> Any:  # noqa: ARG002
        of_data = {name: value for name, value in self.get_params().items() if name in _OF_DATA}
        return xgboost.XGBClassifier(
            n_estimators=GROUP_ROUNDS,
            learning_rate=GROUP_RATE,
            grow_policy="lossguide",
            max_leaves=GROUP_LEAVES,
            max_bin=GROUP_BINS,
            **of_data,
        )

    def _pace(self) -> tuple[int, float]:
        params = self.get_params()
        rates = [params.get(name) for name in ("learning_rate", "eta")]
        rate = next((rate for rate in rates if rate is not None), _LEARNING_RATE)
        return int(self.get_num_boosting_rounds()), float(rate)

    def _risk_weight(self, problem: BoostingProblem) -> Floats | None:
        # ignored if there are several classes
        of_positives = getattr(self, "scale_pos_weight", None)
        if of_positives is None or problem.task.vector:
            return None
        return np.where(problem.training.targets == 1, float(of_positives), 1.0)

    def _fit_booster(self, fit: Callable[..., Any], plan: FitPlan) -> None:
        several = plan.problem.task.vector
        classes = plan.problem.scheme.classes
        self._check_objective(several=several)
        saved = {name: getattr(self, name) for name in ("objective", "eval_metric", "base_score")}

        def objective(_: Any, output: Any, sample_weight: Any = None) -> Any:  # noqa: ARG001  (in the objective already)
            return plan.descent.step(output)

        self.objective = objective
        if plan.evaluations:
            self.eval_metric = _metrics(self.eval_metric, plan)
        if self.base_score is None and plan.arguments.get("xgb_model") is None:
            start = plan.problem.start
            if several and _FROM_3_1:
                self.base_score = (start - np.mean(start)).tolist()
            elif not several:  # XGBoost expects the prediction instead of the margin
                if classes:
                    self.base_score = 1 / (1 + np.exp(-start))
                else:
                    self.base_score = start
        try:
            fit(**plan.arguments)
        finally:
            for name, value in saved.items():
                setattr(self, name, value)


@as_in(FairBooster)
class FairXGBClassifier(_FairXGB, xgboost.XGBClassifier):  # type: ignore[misc]
    """An XGBoost classifier with similar score distributions in all groups.

    Boosts the loss plus the strength times the distance between the groups' score distributions,
    with the same strength as in FairClassifier. Predicting needs no groups. Any
    number of classes, labeled from 0 on, as XGBoost requires; docs/boosting.md explains how large
    strengths are kept stable.

    Parameters
    ----------
    strength : float, default=1.0
        Penalty strength: the weight of the unfairness, as in FairClassifier. At 1, a gap of 0.1 at
        every score costs as much as 0.02 of log loss. 0 is exactly the plain XGBClassifier and
        needs no groups.
    criterion, metric, intersectional, continuous, penalty : as in FairBooster
    pos_label : object, default=None
        The positive label; by default the last class.
    expected_groups : as in FairBooster
    **booster
        Further arguments of the booster: every parameter of ``xgboost.XGBClassifier``.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=2_000)
    >>> X = generator.normal(size=(2_000, 3)) + a[:, None]
    >>> y = (X.sum(1) + generator.normal(size=2_000) > 1.5).astype(int)
    >>> from metrifair import unfairness
    >>> for strength in (0.0, 30.0):
    ...     model = FairXGBClassifier(strength, n_jobs=1, learning_rate=0.1).fit(X, y, sensitive_features=a)
    ...     print(round(unfairness(y, model.predict_proba(X)[:, 1], sensitive_features=a), 1))
    0.6
    0.0
    """

    _objective = "binary:logistic"

    def _check_labels(self, y: Any) -> None:
        """Raise a DataError unless labels are numbered from 0, as XGBoost needs."""
        classes = CodedColumn("y", one_column("y", y)).levels() if np.ndim(y) == 1 else ()
        if len(classes) < 2 or list(classes) == list(range(len(classes))):
            return
        check_floats_as_labels(self, y)
        required = "0 and 1"
        codes = "(y == positive).astype(int)"
        others = ""
        if len(classes) > 2:
            required = f"0 to {len(classes) - 1}"
            codes = "np.unique(y, return_inverse=True)[1]"
            others = " and others"
        raise DataError(
            f"y must contain the labels {required}, as XGBoost requires, got {classes[0]!r} and "
            f"{classes[1]!r}{others}"
            f"; pass {codes}, or use FairLGBMClassifier, which takes any labels"
        )

    def predict_proba(
        self,
        X: Table,
        *,
        sensitive_features: Table | None = None,  # noqa: ARG002
        **named: Any,
    ) -> Any:
        """Predict with XGBoost's own ``predict_proba``; returns a Dask array for a Dask collection.

        Parameters
        ----------
        X : array-like, data frame or Dask collection of shape (n_samples, n_features)
            Features.
        sensitive_features : array-like or table, default=None
            The group of each sample. Not used, as this model predicts without groups.
        **named
            Further arguments of the booster's own.

        Returns
        -------
        array of shape (n_samples, 2)
            The probability of each class.
        """
        return map_rows(super().predict_proba, X, like=np.zeros((0, 2), dtype=np.float32), **named)


@as_in(FairBooster)
class FairXGBRegressor(_FairXGB, xgboost.XGBRegressor):  # type: ignore[misc]
    """An XGBoost regressor with similar distributions of predictions in all groups.

    The loss is the squared error; inside, the target is standardized, so that a strength means the
    same on every scale and in FairRegressor.

    Parameters
    ----------
    strength : float, default=1.0
        Penalty strength: the weight of the unfairness. 0 is exactly the plain XGBRegressor and
        needs no groups.
    criterion, metric, intersectional, continuous, penalty : as in FairBooster
    pos_label : object, default=None
        The positive label, for classifiers only.
    expected_groups : as in FairBooster
    **booster
        Further arguments of the booster: every parameter of ``xgboost.XGBRegressor``.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=2_000)
    >>> X = np.c_[generator.normal(size=2_000), a]
    >>> y = X[:, 0] + (a == 0)
    >>> model = FairXGBRegressor(10.0, n_jobs=1, learning_rate=0.1).fit(X, y, sensitive_features=a)
    >>> [round(float(values[a == 0].mean() - values[a == 1].mean()), 1) for values in (y, model.predict(X))]
    [1.0, 0.1]
    """

    _objective = "reg:squarederror"


def _metrics(eval_metric: Any, plan: FitPlan) -> Any:
    """The requested metrics, and the penalized risk last, because the last one decides early
    stopping.
    """
    metrics: list[Any] = []
    if isinstance(eval_metric, (list, tuple)):
        metrics = list(eval_metric)
    elif eval_metric is not None:
        metrics = [eval_metric]
    for metric in metrics:
        if not isinstance(metric, str):
            raise DataError(
                "eval_metric must be names where strength > 0, since XGBoost accepts one function "
                "only, which is "
                f"{METRIC_NAME}, got {metric!r}"
            )
    if metrics and not _FROM_3_1:
        raise DataError(
            f"eval_metric={eval_metric!r} besides {METRIC_NAME}, where strength > 0, needs XGBoost "
            "3.1 or later, and "
            f"this is {xgboost.__version__}: leave it out, or install a later one"
        )
    penalized = plan.metric()

    def penalized_risk(_: Any, output: Any, sample_weight: Any = None) -> float:  # noqa: ARG001
        return penalized(output)

    if metrics:
        return [*metrics, penalized_risk]
    return penalized_risk
