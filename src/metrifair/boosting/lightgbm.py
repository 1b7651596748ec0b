"""LightGBM with the penalty: its own scikit-learn classes, with another objective."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import compute_sample_weight

from metrifair.boosting.booster import (
    GROUP_BIN_ROWS,
    GROUP_BINS,
    GROUP_LEAVES,
    GROUP_RATE,
    GROUP_ROUNDS,
    OWN_PARAMETERS,
    FairBooster,
    FitPlan,
)
from metrifair.boosting.objective import METRIC_NAME
from metrifair.boosting.problem import BoostingProblem
from metrifair.errors import DataError
from metrifair.problem.tables import Table, as_features
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_names, require
from metrifair.support.signatures import as_in

lightgbm: Any = require(
    "lightgbm", extra="boosting", purpose="FairLGBMClassifier or FairLGBMRegressor"
)

_UNUSABLE: dict[str, tuple[tuple[object, ...], str]] = {  # allowed values, and the reason
    "boosting": (
        ("gbdt", "goss"),
        "rf does not descend, and dart differs from run to run with an objective from outside",
    ),
    "linear_tree": ((False,), "linear leaves keep no constant to start from"),
    "is_unbalance": ((False,), "use class_weight='balanced'"),
    "scale_pos_weight": ((1,), "use class_weight"),
    "metrics": ((), "use eval_metric in fit"),
    "metric_types": ((), "use eval_metric in fit"),
}
_BY_RANKS = ("auc", "average_precision")
_OF_CLASSES = (None, "multiclass", "softmax")
# threads wait for each other longer than they compute, most of all on a busy machine
_FEW_ROWS = 10_000


class _FairLGBM(FairBooster):
    """LightGBM with our objective."""

    _eval_weights = "eval_sample_weight"
    _plain: ClassVar[type]  # LightGBM's own class
    _objective: Any
    _objectives: ClassVar[tuple[str | None, ...]]  # whose risk the penalized risk contains
    _in_model_text: ClassVar[str]  # what LightGBM itself writes for the first of them

    @staticmethod
    def _class_curvature(classes: int) -> float:
        return classes / (classes - 1)  # as in LightGBM

    def _check_names(self) -> None:
        """Raise an error for unknown parameters, which LightGBM itself ignores silently."""
        _aliases("objective")  # has LightGBM read them all
        aliases = {
            name for names in lightgbm.basic._ConfigAliases.aliases.values() for name in names
        }
        check_names(
            self.get_params(), {*aliases, *self._plain().get_params(), *OWN_PARAMETERS}, "LightGBM"
        )

    def _process_params(self, stage: str) -> dict[str, Any]:
        """The parameters of a training, as LightGBM derives them from those of an estimator."""
        # Uses a copy of the plain booster, because LightGBM does not accept our parameters and has
        # its own metric.
        plain: Any = copy.copy(self)
        plain.__class__ = self._plain
        plain._other_params = {
            name: value for name, value in plain._other_params.items() if name not in OWN_PARAMETERS
        }
        params: dict[str, Any] = plain._process_params(stage)
        self._objective = plain._objective
        if self._plan is not None:
            descent = self._plan.descent
            params |= {
                "objective": lambda output, _: descent.step(output),
                "metric": "None",
                "first_metric_only": True,
            }
            if self._takes_one_thread(len(self._plan.problem.training.weight)):
                params["num_threads"] = 1
        return params

    def _takes_one_thread(self, rows: int) -> bool:
        """Whether one thread is enough for so many rows; False if the number of threads is
        given.
        """
        params = self.get_params()
        return rows < _FEW_ROWS and all(
            params.get(name) is None for name in _aliases("num_threads")
        )

    def predict(
        self,
        X: Table,
        *,
        sensitive_features: Table | None = None,  # noqa: ARG002
        **named: Any,
    ) -> Any:
        """Predict with LightGBM's own ``predict``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
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
        return super().predict(as_features(X), **named)  # type: ignore[misc]

    def _group_model(self, rows: int) -> Any:
        return lightgbm.LGBMClassifier(
            n_estimators=GROUP_ROUNDS,
            learning_rate=GROUP_RATE,
            num_leaves=GROUP_LEAVES,
            max_bin=GROUP_BINS,
            subsample_for_bin=GROUP_BIN_ROWS,
            n_jobs=1 if self._takes_one_thread(rows) else self.n_jobs,
            verbose=-1,
        )

    def _column_arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        names = ("feature_name", "categorical_feature")
        return {name: arguments[name] for name in names if name in arguments}

    def _risk_weight(self, problem: BoostingProblem) -> Floats | None:
        if self.class_weight is None:
            return None
        labels = np.asarray(problem.scheme.classes)[problem.training.targets.astype(int)]
        return np.asarray(compute_sample_weight(self.class_weight, labels))

    def _pace(self) -> tuple[int, float]:
        params = self.get_params()
        # Any other name of the rounds wins over n_estimators; no other name of the learning rate
        # over learning_rate.
        rounds = [
            params[name]
            for name in _aliases("num_iterations")
            if name in params and name != "n_estimators"
        ]
        return int([*rounds, self.n_estimators][0]), float(self.learning_rate)

    def _fit_booster(self, fit: Callable[..., Any], plan: FitPlan) -> None:
        several = plan.problem.task.vector
        _check_usable(self.get_params(), _OF_CLASSES if several else self._objectives)
        arguments = dict(plan.arguments)
        if arguments.get("eval_X") is not None:
            raise DataError(
                "eval_X cannot be used where strength > 0: pass eval_set, a list of (X, y)"
            )
        start: float | Floats = 0.0
        if arguments.get("init_score") is None and arguments.get("init_model") is None:
            start = plan.problem.start
            arguments["init_score"] = _repeated(start, len(plan.problem.training.weight))
        if plan.evaluations:
            names: Sequence[str] | None = None
            if hasattr(self, "predict_proba"):
                names = () if several else _BY_RANKS
            arguments |= _evaluation(plan, arguments, start, names)
        try:
            fit(**arguments)
        except lightgbm.basic.LightGBMError as error:
            if "num_features" not in str(error):
                raise
            rows = len(plan.problem.training.weight)
            least = self.min_child_samples
            raise DataError(
                f"LightGBM finds no feature in X to split: all are constant, or {rows} rows are "
                "too few for two "
                f"leaves of min_child_samples={least} each; pass more rows or features, or lower "
                "min_child_samples"
            ) from error
        classes = f"multiclass num_class:{len(plan.problem.scheme.classes)}"
        _complete(self.booster_, start, classes if several else self._in_model_text)


@as_in(FairBooster)
class FairLGBMClassifier(_FairLGBM, lightgbm.LGBMClassifier):  # type: ignore[misc]
    """A LightGBM classifier with similar score distributions in all groups.

    Boosts the loss plus the strength times the distance between the groups' score distributions,
    with the same strength as in FairClassifier. Predicting needs no groups. Any
    number of classes; docs/boosting.md explains how large strengths are kept stable.

    Parameters
    ----------
    strength : float, default=1.0
        Penalty strength: the weight of the unfairness, as in FairClassifier. At 1, a gap of 0.1 at
        every score costs as much as 0.02 of log loss. 0 is exactly the plain LGBMClassifier and
        needs no groups.
    criterion, metric, intersectional, continuous, penalty : as in FairBooster
    pos_label : object, default=None
        The positive label; by default the last class.
    expected_groups : as in FairBooster
    **booster
        Further arguments of the booster: every parameter of ``lightgbm.LGBMClassifier`` except
        ``metric``. Pass ``eval_metric`` to ``fit`` instead.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=2_000)
    >>> X = generator.normal(size=(2_000, 3)) + a[:, None]
    >>> y = (X.sum(1) + generator.normal(size=2_000) > 1.5).astype(int)
    >>> from metrifair import unfairness
    >>> for strength in (0.0, 30.0):
    ...     model = FairLGBMClassifier(strength, n_jobs=1, verbose=-1).fit(X, y, sensitive_features=a)
    ...     print(round(unfairness(y, model.predict_proba(X)[:, 1], sensitive_features=a), 1))
    0.6
    0.0
    """

    _plain = lightgbm.LGBMClassifier
    _objectives = (None, "binary")
    _in_model_text = "binary sigmoid:1"

    def predict_proba(
        self,
        X: Table,
        *,
        sensitive_features: Table | None = None,  # noqa: ARG002
        **named: Any,
    ) -> Any:
        """Predict with LightGBM's own ``predict_proba``.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
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
        return super().predict_proba(as_features(X), **named)


@as_in(FairBooster)
class FairLGBMRegressor(_FairLGBM, lightgbm.LGBMRegressor):  # type: ignore[misc]
    """A LightGBM regressor with similar distributions of predictions in all groups.

    The loss is the squared error; inside, the target is standardized, so that a strength means the
    same on every scale and in FairRegressor.

    Parameters
    ----------
    strength : float, default=1.0
        Penalty strength: the weight of the unfairness. 0 is exactly the plain LGBMRegressor and
        needs no groups.
    criterion, metric, intersectional, continuous, penalty : as in FairBooster
    pos_label : object, default=None
        The positive label, for classifiers only.
    expected_groups : as in FairBooster
    **booster
        Further arguments of the booster: every parameter of ``lightgbm.LGBMRegressor`` except
        ``metric``. Pass ``eval_metric`` to ``fit`` instead.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=2_000)
    >>> X = np.c_[generator.normal(size=2_000), a]
    >>> y = X[:, 0] + (a == 0)
    >>> model = FairLGBMRegressor(10.0, n_jobs=1, verbose=-1).fit(X, y, sensitive_features=a)
    >>> [round(float(values[a == 0].mean() - values[a == 1].mean()), 1) for values in (y, model.predict(X))]
    [1.0, 0.0]
    """

    _plain = lightgbm.LGBMRegressor
    _objectives = (None, "regression", "regression_l2", "l2", "mean_squared_error", "mse")
    _in_model_text = "regression"


def _aliases(name: str) -> Sequence[str]:
    """All names of a LightGBM parameter, in its order of preference."""
    return list(lightgbm.basic._ConfigAliases.get_sorted(name))


def _check_usable(params: dict[str, Any], objectives: Sequence[str | None]) -> None:
    for alias in _aliases("objective"):
        if params.get(alias) not in objectives:
            allowed = ", ".join(repr(name) for name in objectives)
            raise DataError(
                f"{alias} must be one of {allowed} where strength > 0, got {params[alias]!r}"
            )
    for name, (usable, reason) in _UNUSABLE.items():
        for alias in _aliases(name):
            if alias in params and params[alias] not in usable:
                raise DataError(
                    f"{alias}={params[alias]!r} cannot be used where strength > 0: {reason}"
                )


def _repeated(start: float | Floats, rows: int) -> Floats:
    """The same output, or outputs, for this number of rows."""
    return np.full((rows, *np.shape(start)), start)


def _evaluation(
    plan: FitPlan, arguments: dict[str, Any], start: float | Floats, names: Sequence[str] | None
) -> dict[str, Any]:
    """Arguments of ``fit`` that evaluate the sets by the penalized risk, besides named metrics."""
    metric = arguments.get("eval_metric")
    metrics: list[Any] = []
    if isinstance(metric, (list, tuple)):
        metrics = list(metric)
    elif metric is not None:
        metrics = [metric]
    odd = [name for name in metrics if names is not None and name not in names]
    if odd:
        allowed = "be left out for more than two classes"
        if names:
            allowed = f"be among {', '.join(names)}"
        raise DataError(
            f"eval_metric must {allowed} where strength > 0, since LightGBM sees log-odds "
            f"there, got {odd[0]!r}; {METRIC_NAME} is always evaluated"
        )
    penalized = plan.metric()

    def evaluate(_: Any, output: Any) -> tuple[str, float, bool]:
        return METRIC_NAME, penalized(output), False

    # Labels are copied: LightGBM would treat a set that is the training set itself differently.
    changed: dict[str, Any] = {
        "eval_set": [(X, np.array(y)) for X, y in arguments["eval_set"]],
        "eval_metric": [evaluate, *metrics],
        "callbacks": [_penalized_first, *map(_by_first_metric, arguments.get("callbacks") or ())],
    }
    if np.any(start) and arguments.get("eval_init_score") is None:
        changed["eval_init_score"] = [
            _repeated(start, len(evaluation.batch.samples)) for evaluation in plan.evaluations
        ]
    return changed


def _penalized_first(env: Any) -> None:
    """A callback that puts our metric first for early stopping; LightGBM lists its own metrics
    before functions.
    """
    env.evaluation_result_list.sort(key=lambda result: result[1] != METRIC_NAME)


def _by_first_metric(callback: Any) -> Any:
    """The callback itself, or early stopping by the first metric instead of any."""
    if not hasattr(callback, "first_metric_only"):
        return callback
    callback = copy.copy(callback)
    callback.first_metric_only = True
    return callback


def _complete(booster: Any, start: float | Floats, objective: str) -> None:
    """Add the starting scores to the first trees, and set the link, as LightGBM does for its
    own objectives.
    """
    first = booster.model_to_string(num_iteration=1)
    # of one tree, or of one for each class
    leaves = re.findall(r"^num_leaves=(\d+)$", first, re.MULTILINE)
    for tree, (count, offset) in enumerate(zip(leaves, np.atleast_1d(start), strict=False)):
        for leaf in range(int(count)):
            booster.set_leaf_output(tree, leaf, booster.get_leaf_output(tree, leaf) + offset)
    text = booster.model_to_string(num_iteration=-1)
    booster.model_from_string(
        text.replace("\nfeature_names=", f"\nobjective={objective}\nfeature_names=", 1)
    )
