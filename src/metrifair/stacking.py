"""Fair models on the predictions of other models: stacking, with the penalty on the final model.

In theory, the best group-blind scores depend on the features only through a few numbers: the
probability of each label (or the mean of a numeric target) and, among the rows that a criterion
compares, the probability of each group. Other models predict these numbers out of fold. The final
model has few inputs, so that it overfits little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import is_regressor

from metrifair.errors import DataError, ModelFileError
from metrifair.estimators.estimator import FitData, train_models
from metrifair.estimators.fair import FairClassifier, FairRegressor
from metrifair.postprocessing.group_model import Correction
from metrifair.postprocessing.postprocessor import (
    TrainingRows,
    assign_folds,
    check_learner,
    out_of_fold,
)
from metrifair.problem.cells import Dependence
from metrifair.problem.problem import Problem
from metrifair.saving.models import class_named
from metrifair.saving.records import Arrays
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import check_integer, check_switches, rows_or_none
from metrifair.support.reuse import reused
from metrifair.support.signatures import as_in
from metrifair.training.models import Predictor

__all__ = ["FairStackingClassifier", "FairStackingRegressor"]

# of the trees
_ROUNDS = 60
_LEAVES = 8
_RATE = 0.1
_FEW_ROWS = 10_000  # below which threads wait longer than they compute


def __dir__() -> list[str]:
    return __all__


class Blend(NamedTuple):
    """Fitted models whose predictions are averaged; of classes, the averages are calibrated."""

    models: tuple[Any, ...]
    correction: Correction | None  # None: a number is predicted

    @property
    def width(self) -> int:
        """How many numbers are predicted for each row."""
        return 1 if self.correction is None else len(self.correction.bias) - 1

    def __call__(self, x: Floats) -> Floats:
        """A number (n, 1), or the log-odds of each class but the first against the first: (n,
        classes - 1).
        """
        classes = 0 if self.correction is None else len(self.correction.bias)
        predicted = reused(lambda: mean_prediction(self.models, x, classes), self.models, x)
        return predicted if self.correction is None else log_odds(self.correction(predicted))


def mean_prediction(models: Sequence[Any], x: Floats, classes: int) -> Floats:
    """The mean of the models' predictions: numbers (n, 1), or probabilities (n, classes) of
    classes from 0 upwards.
    """
    if not classes:
        numbers: Floats = np.mean([model.predict(x) for model in models], axis=0)
        return numbers[:, None]
    total = np.zeros((len(x), classes))
    for model in models:  # one that was fitted without a fold may lack a class
        total[:, np.asarray(model.classes_).astype(int)] += model.predict_proba(x)
    return total / len(models)


def log_odds(probabilities: Floats) -> Floats:
    """Logarithms of probabilities (n, classes), less that of the first class."""
    logs = np.log(probabilities)
    return np.asarray(logs[:, 1:] - logs[:, :1])


@dataclass(frozen=True, eq=False)
class StackedPredictor:
    """The last model, and the models whose predictions are its features."""

    last: Predictor
    outcome: Blend
    group: Blend | None  # None: trained without a penalty, which needs no groups
    passthrough: bool

    def output(self, x: Floats) -> Floats:
        """Outputs of features (n, features) in their own units."""
        blends = [blend(x) for blend in (self.outcome, self.group) if blend is not None]
        return self.last.output(np.column_stack([*blends, x] if self.passthrough else blends))

    @property
    def is_constant(self) -> bool:
        """Whether all features lead to the same output."""
        return self.last.is_constant

    def linear_parts(self) -> None:
        """A stack has no weights of its features."""

    def as_module(self, *_: float) -> None:
        """Raise a DataError: trees are no layers of torch."""
        raise DataError(
            "a stack contains models that are no torch modules; use to_onnx, or predict"
        )


@dataclass(eq=False, repr=False)
class _Stacking:
    """Base of the stacking classifier and regressor; the other base class trains the last model."""

    _: KW_ONLY
    model: str | torch.nn.Module = "mlp"  # of few inputs, which a network does not overfit
    outcome_models: Sequence[Any] | None = None
    group_models: Sequence[Any] | None = None
    passthrough: bool = False
    folds: int = 5

    @property
    def partial_fit(self) -> Any:
        """Not available: out-of-fold predictions need all rows at once."""
        raise AttributeError(f"{type(self).__name__} has no partial_fit: it needs all rows at once")

    def _restore_predictor(
        self, last: Any, models: Mapping[str, Sequence[Any]], arrays: Arrays, features: int
    ) -> StackedPredictor:
        """The predictor of models from a file: the last one, and those whose predictions are
        its features.
        """
        blends: dict[str, Blend] = {}
        for name, members in models.items():
            numeric = name == "outcome" and is_regressor(self)
            correction = None
            if not numeric:
                bias = arrays.take(f"{name}_bias", (None,))
                slope = arrays.number(f"{name}_slope")
                correction = Correction(slope, bias)
                classes = {
                    label for model in members for label in np.asarray(model.classes_).tolist()
                }
                if len(bias) < 2 or not classes <= set(range(len(bias))):
                    raise ModelFileError(
                        f"the file does not describe a model: its {name} models have other classes"
                    )
            blends[name] = Blend(tuple(members), correction)
        width = sum(blend.width for blend in blends.values()) + self.passthrough * features
        if width != last.n_features_in_:
            raise ModelFileError(
                f"the stack predicts {width} numbers, and its last model takes "
                f"{last.n_features_in_}"
            )
        return StackedPredictor(
            last.predictor_, blends["outcome"], blends.get("group"), self.passthrough
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        check_switches(passthrough=self.passthrough)
        check_integer("folds", self.folds, least=2)
        kinds = {
            "outcome_models": "regressor" if is_regressor(self) else "classifier",
            "group_models": "classifier",
        }
        for name, kind in kinds.items():
            models = getattr(self, name)
            if models is not None and (not isinstance(models, list | tuple) or not models):
                raise DataError(
                    "must be None or a list of estimators", argument=name, received=models
                )
            for model in models or ():
                check_learner(model, kind, name=name)  # type: ignore[arg-type]

    def _fits(
        self, data: FitData, *, strengths: Sequence[float], seeds: Sequence[int]
    ) -> list[dict[str, Any] | None]:
        """Fitted attributes, as of any fair estimator, on out-of-fold predictions of other
        models for each seed.
        """
        self._check_parameters()
        fair = list(filter(None, strengths))
        plain = [strength for strength in strengths if not strength]
        results: list[dict[str, Any] | None] = []
        for seed in seeds:
            blends = [self._outcome_blend(data, seed)]
            if plain:
                fits = dict(zip(plain, self._train_on(blends, data, plain, seed), strict=True))
            else:
                fits = {}
            if fair:
                _check_theory(data.problem)
                blends.append(self._group_blend(data, seed))
                fits |= dict(zip(fair, self._train_on(blends, data, fair, seed), strict=True))
            results += [fits[strength] for strength in strengths]
        return results

    def _train_on(
        self,
        blends: Sequence[tuple[Floats, Blend]],
        data: FitData,
        strengths: Sequence[float],
        seed: int,
    ) -> list[dict[str, Any] | None]:
        """Fitted attributes of the last models, whose features are the out-of-fold predictions
        of blends.
        """
        parts = [predicted for predicted, _ in blends]
        names = [f"prediction {place}" for place in range(sum(part.shape[1] for part in parts))]
        if self.passthrough:
            parts = [*parts, data.x]
            names = [*names, *data.names]
        numbers = replace(data, x=np.column_stack(parts), names=tuple(names))
        estimator: Any = self
        fits = train_models(estimator, numbers, strengths=strengths, seeds=[seed])
        outcome = blends[0][1]
        group = blends[1][1] if len(blends) > 1 else None
        for fitted in filter(None, fits):
            fitted["predictor_"] = StackedPredictor(
                fitted["predictor_"], outcome, group, self.passthrough
            )
        return fits

    def _outcome_blend(self, data: FitData, seed: int) -> tuple[Floats, Blend]:
        """The probabilities of labels, or the mean of a number."""
        templates = self.outcome_models
        classes = len(data.problem.scheme.classes)
        if templates is None:
            templates = default_models(len(data.x), regression=not classes)
        values = np.asarray(data.problem.labels if classes else data.targets)
        target = _Target(np.arange(len(data.x)), values, classes)
        return _cross_fit(templates, data, target, folds=self.folds, seed=seed)

    def _group_blend(self, data: FitData, seed: int) -> tuple[Floats, Blend]:
        """The probabilities of the cells that are compared, by rows of these cells."""
        sides = [
            side
            for comparison in data.problem.comparisons
            for side in (comparison.left, comparison.right)
        ]
        cells = np.unique([cell for side in sides for cell in side])
        compared = np.flatnonzero(np.isin(data.problem.cell, cells))
        _, code, sizes = np.unique(
            data.problem.cell[compared], return_inverse=True, return_counts=True
        )
        # The largest cell comes first: log-odds against a small one would all be as uncertain as
        # its own probability.
        place = np.argsort(np.argsort(-sizes, kind="stable"))
        target = _Target(compared, place[code], len(sizes))
        if self.group_models is not None:
            return _cross_fit(self.group_models, data, target, folds=self.folds, seed=seed)
        models = default_models(len(data.x))
        return _cross_fit(models, data, target, folds=self.folds, seed=seed, parsimonious=True)


class _Target(NamedTuple):
    """The target of models: a number, or classes from 0 upwards, of some of the rows."""

    rows: Integers
    values: NDArray[Any]
    classes: int  # 0: a number


def _cross_fit(
    templates: Sequence[Any],
    data: FitData,
    target: _Target,
    *,
    folds: int,
    seed: int,
    parsimonious: bool = False,
) -> tuple[Floats, Blend]:
    """Predictions for all rows by models that have not seen them, and the models of all rows with a
    target.

    ``parsimonious``: the first model alone is used unless the mean of all models is significantly
    better.
    """
    rows, values, classes = target
    weight = rows_or_none(data.problem.weight, rows)
    clusters = rows_or_none(data.problem.clusters, rows)
    training = TrainingRows(data.x[rows], values, None, weight, clusters)
    # Folds have the same mix of classes. No class is so small that it would leave one fold only.
    kind = np.zeros(len(data.x), dtype=np.int64)
    kind[rows] = 1 + values if classes else 1
    fold = assign_folds(folds, 0 * kind, kind, seed, data.problem.clusters)

    def fit(training_rows: Integers) -> list[Any]:
        positions = np.flatnonzero(np.isin(rows, training_rows))
        return [training.fit(template, positions) for template in templates]

    def predict(models: Sequence[Any], part: Integers) -> Floats:
        return np.stack(
            [mean_prediction([model], data.x[part], classes) for model in models], axis=1
        )

    by_model = out_of_fold(fit, predict, fold)  # (n, models, numbers)
    weight = np.ones(len(rows)) if weight is None else weight
    if parsimonious and not _is_better(by_model[rows].mean(1), by_model[rows, 0], values, weight):
        templates = templates[:1]
        by_model = by_model[:, :1]
    predicted = by_model.mean(1)
    models = tuple(training.fit(template, np.arange(len(rows))) for template in templates)
    if not classes:
        return predicted, Blend(models, None)
    correction = Correction.fit(predicted[rows], values, weight)
    return log_odds(correction(predicted)), Blend(models, correction)


def _is_better(chances: Floats, rival: Floats, code: Integers, weight: Floats) -> bool:
    """Whether calibrated probabilities have a lower log loss than others, by more than a standard
    error.

    Trees that are not better have memorized the groups of their training rows.
    """
    rows = np.arange(len(code))
    losses = [
        -np.log(Correction.fit(score, code, weight)(score)[rows, code])
        for score in (chances, rival)
    ]
    gain = losses[1] - losses[0]
    share = weight / weight.sum()
    mean = share @ gain
    return bool(mean > np.sqrt(share**2 @ (gain - mean) ** 2))


def default_models(rows: int, *, regression: bool = False) -> list[Any]:
    """A linear model and small trees: LightGBM's, or scikit-learn's where that is not installed."""
    linear = FairRegressor if regression else FairClassifier
    # As much regularization as scikit-learn's logistic regression has by default.
    first = linear(0.0, model="linear", weight_decay=1 / rows, random_state=0)
    return [first, _small_trees(rows, regression=regression)]


def has_lightgbm() -> bool:
    """Whether trees support the penalty, and a model file can store them."""
    return find_spec("lightgbm") is not None


def _small_trees(rows: int, *, regression: bool) -> Any:
    if not has_lightgbm():
        from sklearn import ensemble  # noqa: PLC0415  (takes long to import, and is seldom needed)

        if regression:
            kind = ensemble.HistGradientBoostingRegressor
        else:
            kind = ensemble.HistGradientBoostingClassifier
        settings = {"max_iter": _ROUNDS, "max_leaf_nodes": _LEAVES, "early_stopping": False}
        return kind(learning_rate=_RATE, random_state=0, **settings)
    kind = class_named("FairLGBMRegressor" if regression else "FairLGBMClassifier")
    size = {"n_estimators": _ROUNDS, "learning_rate": _RATE, "num_leaves": _LEAVES}
    return kind(0.0, n_jobs=1 if rows < _FEW_ROWS else None, verbose=-1, random_state=0, **size)


def _check_theory(problem: Problem) -> None:
    """Raise a DataError where the best scores depend on more than these numbers."""
    if problem.probabilities is not None:
        raise DataError(
            f"learn to predict the group of each row, and {problem.probabilities.name} has "
            "probabilities",
            argument="group_models",
            remedy="use FairClassifier or FairRegressor",
        )
    criterion = problem.scheme.criterion
    if criterion.score != "prediction":
        raise DataError(
            "cannot be used with a stack: its scores depend on the label of each row, not only on "
            "its probability",
            argument="criterion",
            received=criterion.name,
            remedy="use FairClassifier or FairRegressor",
        )
    dependence = next(
        (comparison for comparison in problem.comparisons if isinstance(comparison, Dependence)),
        None,
    )
    if dependence is not None:
        raise DataError(
            f"cannot be used with a stack: {dependence.attribute!r} has no groups whose "
            "probabilities can be predicted",
            argument="sensitive_features",
            remedy="cut numbers into groups and use contrast='pairs' or 'rest', or use "
            "FairClassifier",
        )


@as_in(FairClassifier)
@dataclass(eq=False, repr=False)
class FairStackingClassifier(_Stacking, FairClassifier):
    """A fair classifier on the predictions of other classifiers.

    ``outcome_models`` predict the label and ``group_models`` the group, out of fold. The features
    of the final model, a network or linear model with the penalty of FairClassifier, are these
    probabilities as calibrated log-odds. In theory, the best group-blind scores depend on nothing
    else. The final model has few inputs, which limits overfitting on few rows.

    The group models are trained on the rows that the criterion compares. For equal opportunity,
    these are the rows with the positive label. Several attributes and strata are predicted jointly.
    Prediction needs no groups.

    Parameters
    ----------
    strength : float, default=1.0
        Penalty strength: the weight of the unfairness. 0 trains a stack without a penalty, which
        needs no groups.
    criterion : str or Criterion, default="statistical_parity"
        Fairness criterion, as in FairClassifier. ``risk_parity`` raises an error: it compares
        losses, which depend on the label of a row.
    metric, intersectional : as in FairClassifier
    continuous : "auto", bool or list of str, default="auto"
        Numeric attributes, such as age. They raise an error, because a number has no groups to
        predict.
    penalty : as in FairClassifier
    model : {"mlp", "linear"} or torch.nn.Module, default="mlp"
        Model to train, with the predictions as its features.
    hidden, batch_size, epochs, learning_rate : as in FairClassifier
    weight_decay, early_stopping : as in FairClassifier
    device, random_state, verbose : as in FairClassifier
    pos_label, class_weight : as in FairClassifier
    outcome_models : list of classifiers, default=None
        Models that predict the outcome: classifiers, whose probabilities are averaged. None uses a
        logistic regression and boosted trees with 8 leaves, from LightGBM, or from scikit-learn if
        LightGBM is not installed. A model file can contain only models of metrifair, such as
        FairClassifier(0) and FairLGBMClassifier(0).
    group_models : list of classifiers, default=None
        Classifiers that predict the group, averaged in the same way. None uses a logistic
        regression, averaged with the same trees if that lowers the out-of-fold log loss by more
        than its standard error. Otherwise, the trees would only memorize a small group.
    passthrough : bool, default=False
        Whether the last model takes the features too.
    folds : int, default=5
        Number of cross-validation folds for the out-of-fold predictions. The models for new rows
        are fitted on all rows.

    Attributes
    ----------
    predictor_ : StackedPredictor
        The models: ``outcome``, ``group``, and the parameters of the last one.
    classes_, left_out_, n_features_in_, feature_names_in_, n_iter_ : as in FairClassifier

    See Also
    --------
    FairClassifier : The penalty on a model of the features.

    Examples
    --------
    >>> from metrifair import unfairness
    >>> from metrifair.stacking import FairStackingClassifier
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=400)
    >>> X = generator.normal(size=(400, 3)) + np.c_[a, a, 0 * a]
    >>> y = (X.sum(1) + generator.normal(size=400) > 1).astype(int)
    >>> for strength in (0.0, 4.0):
    ...     model = FairStackingClassifier(strength, random_state=0).fit(X, y, sensitive_features=a)
    ...     print(round(unfairness(y, model.predict_proba(X)[:, 1], sensitive_features=a), 1))
    0.4
    0.2
    """


@as_in(FairRegressor, FairStackingClassifier)
@dataclass(eq=False, repr=False)
class FairStackingRegressor(_Stacking, FairRegressor):
    """A fair regressor on the predictions of other models.

    ``outcome_models`` predict the target and ``group_models`` the group, out of fold. These
    predictions are the features of the final model, a network or linear model with the penalty of
    FairRegressor. Prediction needs no groups.

    Parameters
    ----------
    strength : float, default=1.0
        Penalty strength: the weight of the unfairness. 0 trains a stack without a penalty, which
        needs no groups.
    criterion, metric, intersectional, continuous, penalty : as in FairStackingClassifier
    model, hidden, batch_size, epochs, learning_rate : as in FairStackingClassifier
    weight_decay, early_stopping : as in FairStackingClassifier
    device, random_state, verbose : as in FairRegressor
    loss : {"squared_error"}, default="squared_error"
        Loss of the risk. Other losses raise an error, because their best predictions depend on more
        than the mean.
    outcome_models : list of regressors, default=None
        Models that predict the outcome: regressors, whose predictions are averaged. None uses a
        linear model and boosted trees with 8 leaves, from LightGBM, or from scikit-learn if
        LightGBM is not installed.
    group_models, passthrough, folds : as in FairStackingClassifier

    Attributes
    ----------
    predictor_ : as in FairStackingClassifier
    target_scaling_, left_out_, n_features_in_, feature_names_in_, n_iter_ : as in FairRegressor

    See Also
    --------
    FairRegressor : The penalty on a model of the features.

    Examples
    --------
    >>> from metrifair.stacking import FairStackingRegressor
    >>> generator = np.random.default_rng(0)
    >>> a = generator.integers(2, size=500)
    >>> X = np.c_[generator.normal(size=500), a]
    >>> y = X[:, 0] + (a == 0)
    >>> model = FairStackingRegressor(5.0, random_state=0).fit(X, y, sensitive_features=a)
    >>> [round(float(values[a == 0].mean() - values[a == 1].mean()), 1) for values in (y, model.predict(X))]
    [1.2, 0.1]
    """

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.loss != "squared_error":
            problem = "must be 'squared_error': the best predictions by other losses depend on more than a mean"
            raise DataError(problem, argument="loss", received=self.loss)
