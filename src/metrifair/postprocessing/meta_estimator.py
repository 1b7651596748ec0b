"""Methods around another estimator: before training, which change labels or weights and train a learner on them; and
after training, which change its predictions, by the group of each row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_consistent_length, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter, validate_data

from metrifair.errors import DataError
from metrifair.estimators import FairClassifier, FairRegressor
from metrifair.postprocessing.network import StackedEstimator, fit_weighted
from metrifair.postprocessing.training_data import (
    Floats,
    Integers,
    TrainingData,
    dealt_folds,
    features_at_predict,
    groups_at_fit,
    groups_at_predict,
    out_of_fold,
)
from metrifair.problem.tables import Table, rows_of
from metrifair.support.checks import check_integer, check_switches, groups_if_asked, seed_of


def check_learner(estimator: object, kind: Literal["classifier", "regressor"], *, name: str = "estimator") -> None:
    """Raise a DataError unless it is a scikit-learn estimator of that kind, or of none that it tells.

    >>> from sklearn.linear_model import LinearRegression
    >>> check_learner(LinearRegression(), "classifier")
    Traceback (most recent call last):
    metrifair.errors.DataError: estimator must be a scikit-learn classifier, got LinearRegression(), a regressor
    """
    if isinstance(estimator, type):
        raise DataError(f"{name} must be an instance, got the class {estimator.__name__}; call it first")
    told = None
    if all(hasattr(estimator, method) for method in ("get_params", "fit", "__sklearn_tags__")):
        told = get_tags(estimator).estimator_type  # asked first: some have predict only once they are fitted
        if told is None and (hasattr(estimator, "predict") or hasattr(estimator, "predict_proba")):
            told = kind
    if told != kind:
        but = f", a {told}" if told else ""
        raise DataError(f"{name} must be a scikit-learn {kind}, got {estimator!r}{but}")


def _fitted_has(name: str) -> Callable[[Any], bool]:
    """Whether the base learner, fitted or yet to be, has that method; a network does."""
    return lambda self: hasattr(getattr(self, "estimator_", None) or self.estimator or FairClassifier, name)


class Preprocessor(ClassifierMixin, StackedEstimator):
    """Predictions of the base learner that ``fit`` kept in ``estimator_``, which knows classes by their codes."""

    def fit(self, X: Table, y: Table, *, sensitive_features: Table, sample_weight: ArrayLike | None = None) -> Self:
        """Train on these samples, from scratch.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as numbers.
        y : array-like of shape (n_samples,)
            Labels; a method for two classes takes 0 and 1, -1 and 1, or booleans. They stay as they are.
        sensitive_features : array-like of shape (n_samples,)
            The group of each sample, in one column without missing values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights that the rows had before; those of the method multiply them.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sensitive_features, sample_weight)

    def predict(self, X: Table) -> NDArray[Any]:
        """The class of each sample.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        x = features_at_predict(self, X, "estimator_")
        predicted: NDArray[Any] = self.classes_[np.asarray(self.estimator_.predict(x), dtype=np.int64)]
        return predicted

    @available_if(_fitted_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table) -> Floats:
        """Probabilities of the classes; only where the base learner has them.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        x = features_at_predict(self, X, "estimator_")
        probability: Floats = self.estimator_.predict_proba(x)
        return probability

    @available_if(_fitted_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Table) -> Floats:
        """What the base learner's decision is made of; only where it tells.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The base learner's decision function.
        """
        x = features_at_predict(self, X, "estimator_")
        decision: Floats = self.estimator_.decision_function(x)
        return decision


def fit_learners(
    estimator: Any,
    data: TrainingData,
    *,
    seeds: Sequence[int],
    rows: Sequence[Integers],
    weights: Sequence[Floats],
    earlier: Sequence[Any] = (),
    name: str = "estimator",
) -> list[Any]:
    """The base learner fitted for each seed on its own rows of the data, with weights.

    None is a network; networks without a penalty are trained all at once. A learner whose ``random_state`` is None
    gets the seed; one that takes no weights gets rows drawn in proportion to them; one that takes groups gets these,
    too. ``earlier`` are fitted learners to go on from, for those that can; they stay as they are. ``name`` is the
    learner's in messages.
    """
    base = _checked_base(estimator, name)
    own = getattr(base, "random_state", None)
    seeds = list(seeds) if own is None else [seed_of(own)] * len(seeds)
    if _is_plain_network(base):
        return fit_weighted(base, data, seeds=seeds, rows=rows, weights=weights, earlier=earlier)
    fitted = []
    for place, (seed, part, weight) in enumerate(zip(seeds, rows, weights, strict=True)):
        learner = deepcopy(earlier[place]).set_params(warm_start=True) if earlier else clone(base)
        if "random_state" in learner.get_params() and not earlier:
            learner.set_params(random_state=seed)
        weighs = has_fit_parameter(learner, "sample_weight")
        drawn = part
        if not weighs and np.ptp(weight) > 0:
            drawn = np.random.default_rng(seed).choice(part, len(part), p=weight / weight.sum())
        named = {"sample_weight": weight} if weighs else {}
        named |= groups_if_asked(learner.fit, data.group[drawn])
        fitted.append(learner.fit(data.x[drawn], data.y[drawn], **named))
    return fitted


def check_continues(estimator: Any) -> None:
    """Raise a DataError unless a fit of the base learner can go on from an earlier one."""
    base = _checked_base(estimator, "estimator")
    if not _is_plain_network(base) and "warm_start" not in base.get_params():
        raise DataError(
            f"warm_start=True goes on from the round before, which {base!r} cannot; set warm_start=False, or take a "
            "network or a learner that has warm_start"
        )


def _checked_base(estimator: Any, name: str) -> Any:
    if estimator is None:
        return FairClassifier(0.0)
    check_learner(estimator, "classifier", name=name)
    return estimator


def _is_plain_network(base: Any) -> bool:
    return isinstance(base, FairClassifier) and base.strength == 0


class Postprocessor(BaseEstimator):
    """A fitted base, kept in ``base_``, whose predictions are changed; new rows need their groups."""

    needs_group = True  # at prediction

    def fit(self, X: Table, y: Table | None = None, *, sensitive_features: Table) -> Self:
        """Fit the estimator, unless it is fitted already, and then what its scores need.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as the estimator takes them.
        y : array-like of shape (n_samples,), default=None
            Labels or targets; a prefit estimator needs none.
        sensitive_features : array-like of shape (n_samples,)
            The group of each sample, in one column without missing values.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        said = predicted if is_regressor(self) else probabilities
        base, scores, group = self._fitted_scores(X, y, sensitive_features, said)
        self.generator_ = np.random.RandomState(seed_of(self.random_state))
        self._learn(scores, group)
        self.base_ = base  # last: where something is wrong with the rows the model stays as it was
        if not is_regressor(self):
            self.classes_ = base.classes_
        return self

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _learn(self, scores: Floats, group: Integers) -> None:
        raise NotImplementedError

    def _check_wrapped(self, X: Table, y: Table, *, needs_labels: bool = False) -> None:
        """Raise a DataError unless the ``estimator`` can be wrapped, with these rows."""
        base = self.estimator
        if base is not None:
            check_learner(base, "regressor" if is_regressor(self) else "classifier")
        check_switches(prefit=self.prefit)
        check_integer("folds", self.folds, least=1)
        validate_data(self, X, skip_check_array=True)
        if _num_samples(X) < 2:
            raise DataError(f"X must hold rows of at least two groups, got {_num_samples(X)} sample(s)")
        if self.prefit:
            if base is None:
                raise DataError("prefit=True needs a fitted estimator, got None")
            check_is_fitted(base)
        if y is None and (needs_labels or not self.prefit):
            only = "" if needs_labels else "; only a prefit estimator needs none"
            raise DataError(f"{type(self).__name__} requires y to be passed, but the target y is None{only}")

    def _fitted_scores(
        self, X: Table, y: Table, sensitive_features: Table, said: Callable[[Any, Table, Table], Floats]
    ) -> tuple[Any, Floats, Integers]:
        """The ``estimator``, a network where it is None, fitted unless ``prefit``; what it has ``said`` of the rows;
        and the codes of their groups.

        With several ``folds`` each row is told of by a copy that has not seen it.
        """
        self._check_wrapped(X, y)
        group = groups_at_fit(self, X, y, sensitive_features)
        if self.prefit:
            return self.estimator, said(self.estimator, X, sensitive_features), group
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        network = FairRegressor if is_regressor(self) else FairClassifier
        base = network(0.0, random_state=self.random_state) if self.estimator is None else self.estimator

        def fitted(*table: Table) -> Any:
            model = clone(base)
            return model.fit(*table[:2], **groups_if_asked(model.fit, table[2]))

        def taken(rows: Integers) -> list[Table]:
            return [rows_of(table, rows) for table in (X, y, sensitive_features)]

        whole = fitted(X, y, sensitive_features)
        if self.folds == 1:
            return whole, said(whole, X, sensitive_features), group
        labels = np.zeros_like(group) if is_regressor(self) else np.unique(y, return_inverse=True)[1]
        folds = dealt_folds(self.folds, labels, group, seed_of(self.random_state))
        apart = out_of_fold(
            lambda rows: fitted(*taken(rows)), lambda model, rows: said(model, *taken(rows)[::2]), folds
        )
        return whole, apart, group

    def _groups(self, X: Table, sensitive_features: Table) -> Integers:
        """Codes of the groups of new rows; the base checks the features."""
        check_is_fitted(self, "base_")
        return groups_at_predict(self, X, sensitive_features)

    def score(
        self, X: Table, y: Table, *, sensitive_features: Table = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Accuracy, or R² of a regressor, of the predictions, for which the groups are needed.

        A search by cross-validation hands them on where metadata routing is enabled and
        ``set_score_request(sensitive_features=True)`` has asked for them.

        Parameters
        ----------
        X, y, sensitive_features : array-like or table
            Samples with their labels or targets and their groups, as in ``fit``.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each sample counts.

        Returns
        -------
        float
            The accuracy, or R².
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        metric = r2_score if is_regressor(self) else accuracy_score
        return float(metric(y, predicted, sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Those of a wrapper that leaves the features to its base; the default network takes no sparse ones."""
        tags, base = super().__sklearn_tags__(), self.estimator
        if isinstance(base, BaseEstimator):  # else ``fit`` refuses it, if it is not one in another way
            own = get_tags(base).input_tags
            tags.input_tags.sparse, tags.input_tags.allow_nan = own.sparse, own.allow_nan
        return tags


def asked(method: Callable[..., Any], X: Table, sensitive_features: Table) -> NDArray[Any]:
    """What a method of the base returns; groups are handed to those that ask for them."""
    return np.asarray(method(X, **groups_if_asked(method, sensitive_features)))


def probabilities(base: Any, X: Table, sensitive_features: Table) -> Floats:
    """Class probabilities (n, classes) of a classifier; one column is that of the later class."""
    if not hasattr(base, "predict_proba"):  # some have it only once they are fitted
        raise DataError(f"estimator must have predict_proba, which {base!r} lacks; pass another one, or None")
    scores = asked(base.predict_proba, X, sensitive_features).astype(np.float64)
    if scores.ndim == 1:
        scores = np.stack([1 - scores, scores], axis=1)
    if not np.isfinite(scores).all() or scores.min() < 0 or scores.max() > 1:
        raise DataError("the estimator's predict_proba must give probabilities from 0 to 1")
    if np.abs(scores.sum(1) - 1).max() > 1e-6:
        raise DataError("the rows of the estimator's predict_proba must sum to one")
    return np.ascontiguousarray(scores)


def predicted(base: Any, X: Table, sensitive_features: Table) -> Floats:
    """One finite number for each row, from a regressor."""
    values = asked(base.predict, X, sensitive_features).astype(np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise DataError("the estimator must predict one finite number for each row")
    return values
