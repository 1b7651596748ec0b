"""Base class of all post-processors: the wrapped model, its scores, and the quality of the
final predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.utils import check_consistent_length, column_or_1d, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter, validate_data

from metrifair.errors import DataError, TooFewSamples
from metrifair.estimators import FairClassifier, FairRegressor
from metrifair.estimators.scoring import ScoredWithGroups
from metrifair.problem.clusters import cluster_folds
from metrifair.problem.missing_groups import no_warnings_of_groups
from metrifair.problem.tables import Table, as_labels, take_rows, unmasked
from metrifair.support.arrays import Floats, Integers, distinct_codes
from metrifair.support.checks import (
    argument_if_accepted,
    check_integer,
    check_switches,
    groups_if_accepted,
)
from metrifair.support.reuse import reused


def check_learner(
    estimator: object, kind: Literal["classifier", "regressor"], *, name: str = "estimator"
) -> None:
    """Raise a DataError unless it is a scikit-learn estimator of that kind, or one that states no
    kind.

    >>> from sklearn.linear_model import LinearRegression
    >>> check_learner(LinearRegression(), "classifier")
    Traceback (most recent call last):
    metrifair.errors.DataError: estimator must be a scikit-learn classifier, got LinearRegression(), a regressor
    """
    if isinstance(estimator, type):
        raise DataError(
            f"{name} must be an instance, got the class {estimator.__name__}; call it first"
        )
    actual_kind = None
    if all(hasattr(estimator, method) for method in ("get_params", "fit", "__sklearn_tags__")):
        # first: some have predict only once they are fitted
        actual_kind = get_tags(estimator).estimator_type
        if actual_kind is None and (
            hasattr(estimator, "predict") or hasattr(estimator, "predict_proba")
        ):
            actual_kind = kind
    if actual_kind != kind:
        but = ""
        if actual_kind:
            but = f", a {actual_kind}"
        raise DataError(f"{name} must be a scikit-learn {kind}, got {estimator!r}{but}")


def check_class_count(classes: list[object], *, two: bool, remedy: str = "") -> None:
    """Raise a DataError for a single class, and for more than two where the method takes
    ``two``.
    """
    if len(classes) < 2:
        raise DataError(f"y must contain at least two classes, got one class: {classes}")
    if two and len(classes) > 2:
        raise DataError(
            f"Only binary classification is supported. y contains {len(classes)} classes: "
            f"{classes[:5]}{remedy}"
        )


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows on which a model is fitted."""

    X: Table
    y: NDArray[Any] | None
    groups: Table | None
    weight: Floats | None = None
    clusters: Integers | None = None

    def fit(self, template: Any, rows: Integers) -> Any:
        """A copy of the estimator, fitted on some rows, with groups, weights and clusters if
        ``fit`` accepts them.
        """
        with no_warnings_of_groups():
            return self._fitted(template, rows)

    def _fitted(self, template: Any, rows: Integers) -> Any:
        model = clone(template)
        options = {}
        if self.groups is not None:
            groups = take_rows(self.groups, rows)
            options = groups_if_accepted(model.fit, groups)
        if self.weight is not None:
            if not has_fit_parameter(model, "sample_weight"):
                raise DataError(f"{type(model).__name__}.fit takes no sample_weight; leave it out")
            options["sample_weight"] = self.weight[rows]
        if self.clusters is not None:
            clusters = self.clusters[rows]
            options |= argument_if_accepted(model.fit, "clusters", clusters)
        if self.y is None:
            raise DataError("y is missing")
        X = take_rows(self.X, rows)
        y = self.y[rows]
        if _draws_anew(template):
            return model.fit(X, y, **options)
        return reused(lambda: model.fit(X, y, **options), TrainingRows, template, X, y, options)


def _draws_anew(template: Any) -> bool:
    """Whether equal copies of an estimator may differ after ``fit``, because each draws a seed.

    A seed of the estimator applies to its parts.
    """
    parameters = template.get_params()
    if "random_state" in parameters:
        return parameters["random_state"] is None
    return any(
        name.endswith("__random_state") and value is None for name, value in parameters.items()
    )


class Postprocessor(ScoredWithGroups, BaseEstimator):
    """A fitted base, stored in ``base_``, whose predictions are changed."""

    classes_: NDArray[Any]

    def _check_wrapped(self, X: Table, y: Table | None, *, needs_labels: bool = False) -> None:
        """Raise a DataError unless the ``estimator`` can be wrapped, with these rows."""
        base = self.estimator
        if base is not None:
            check_learner(base, "regressor" if is_regressor(self) else "classifier")
        check_switches(prefit=self.prefit)
        check_integer("folds", self.folds, least=1)
        validate_data(self, X, skip_check_array=True)
        rows = _num_samples(X)
        if rows < 2:
            problem = f"X must contain rows of at least two groups, got {rows} sample(s)"
            raise DataError(problem)
        if self.prefit:
            if base is None:
                raise DataError("prefit=True needs a fitted estimator, got None")
            check_is_fitted(base)
        if y is None and (needs_labels or not self.prefit):
            only = ""
            if not needs_labels:
                only = "; only a prefit estimator needs none"
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None{only}"
            )

    @staticmethod
    def _target_column(X: Table, y: Table | None) -> NDArray[Any]:
        """Labels or targets as one column; an error unless there is one for each row of X."""
        target: NDArray[Any] = column_or_1d(as_labels(y), warn=True)
        check_consistent_length(X, target)
        return target

    def _template(self) -> Any:
        """The estimator to fit; None is our linear model."""
        if self.estimator is not None:
            return self.estimator
        if is_regressor(self):
            return FairRegressor(0.0, random_state=self.random_state)
        return FairClassifier(0.0, random_state=self.random_state)

    def _scores(self, base: Any, X: Table, sensitive_features: Table | None) -> Floats:
        """Predictions of a regressor, or probabilities (n, classes) of a classifier."""
        if not is_regressor(self):
            return probabilities(base, X, sensitive_features)
        values = _call(base.predict, X, sensitive_features)
        if values.ndim != 1 or not np.isfinite(values).all():
            raise DataError("the estimator must predict one finite number for each row")
        return values

    def _out_of_fold_scores(self, training: TrainingRows, folds: Integers) -> Floats:
        """Scores of each row by a copy of the estimator that was trained without it."""
        return out_of_fold(
            lambda rows: training.fit(self._template(), rows),
            lambda model, rows: self._scores(
                model, take_rows(training.X, rows), take_rows(training.groups, rows)
            ),
            folds,
        )

    def __sklearn_tags__(self) -> Any:
        """Tags of a wrapper whose base validates the features; the default model takes no
        sparse ones.
        """
        tags = super().__sklearn_tags__()
        base = self.estimator
        # others are refused by ``fit``, unless they are estimators in another way
        if isinstance(base, BaseEstimator):
            accepted = get_tags(base).input_tags
            tags.input_tags.sparse = accepted.sparse
            tags.input_tags.allow_nan = accepted.allow_nan
        return tags


def _call(method: Callable[..., Any], X: Table, sensitive_features: Table | None) -> Floats:
    """Numbers that a method of the base returns; it gets the groups if it takes them."""
    groups = groups_if_accepted(method, sensitive_features)
    X = unmasked(X, as_numbers=True)
    model = getattr(method, "__self__", method)
    name = getattr(method, "__name__", "")
    predicted = reused(lambda: method(X, **groups), model, name, X, groups)
    return np.asarray(predicted).astype(np.float64)


def probabilities(base: Any, X: Table, sensitive_features: Table | None) -> Floats:
    """Class probabilities (n, classes) of a classifier; a single column is that of the later
    class.
    """
    if not hasattr(base, "predict_proba"):  # some have it only once they are fitted
        raise DataError(
            f"estimator must have predict_proba, which {base!r} lacks; pass another one, or None"
        )
    scores = _call(base.predict_proba, X, sensitive_features)
    if scores.ndim == 1:
        scores = np.stack([1 - scores, scores], axis=1)
    is_finite = np.isfinite(scores).all()
    if not is_finite or scores.min() < 0 or scores.max() > 1:
        raise DataError("the estimator's predict_proba must give probabilities from 0 to 1")
    sums = scores.sum(1)
    off = np.abs(sums - 1)
    if off.max() > 1e-6:
        raise DataError("the rows of the estimator's predict_proba must sum to one")
    return np.ascontiguousarray(scores)


# A model may predict a row differently in the last digits when others are predicted along with it:
# relative to the value and, where terms cancel to almost 0, to the median. Not to the largest
# value, which may be an outlier.
_RELATIVE_ROUNDING = 1e-9
_CANCELLED = 1e-14
_OVERFIT = 0.1  # share of the target's variation: beyond it, scores of training rows are not used

Fit = Callable[[Integers], Any]
"""Positions of rows -> a model fitted on these rows."""
Predict = Callable[[Any, Integers], Floats]
"""A fitted model and positions of rows -> its predictions for these rows."""


def rounding_error(values: Floats, typical: float | None = None) -> Floats:
    """The distance from each value within which another value counts as equal to it."""
    if typical is None:
        sizes = np.abs(values)
        typical = float(np.median(sizes))
    return _RELATIVE_ROUNDING * np.abs(values) + _CANCELLED * typical


def assign_folds(
    most: int, labels: Integers, group: Integers, seed: int, clusters: Integers | None = None
) -> Integers:
    """The fold of each row; all folds have the same mix of labels and groups, up to one row of
    each.

    There are at most ``most`` folds, and at most as many as rows of the rarest label (or its
    clusters, kept whole).
    """
    if clusters is not None:
        return _assign_clusters(most, labels, group, seed, clusters)
    rows = np.unique(labels, return_counts=True)[1]
    count = min(most, int(rows.min()))
    size = len(labels)
    at_random = np.random.RandomState(seed).random(size)
    order = np.lexsort((at_random, group, labels))
    folds = np.empty(size, dtype=np.int64)
    folds[order] = np.arange(size) % max(count, 1)
    return folds


def _assign_clusters(
    most: int, labels: Integers, group: Integers, seed: int, clusters: Integers
) -> Integers:
    """The fold of each row, the same for all rows of a cluster."""
    count = most
    for label in np.unique(labels):
        clusters_of_label = np.unique(clusters[labels == label])
        count = min(count, len(clusters_of_label))
    if count < 2 <= most:  # a model would predict its training rows
        raise TooFewSamples(
            "contain all rows, or all of one label, in one cluster, so that no folds keep "
            "clusters whole",
            argument="clusters",
            remedy="use smaller clusters, or leave clusters out",
        )
    pairs = np.stack([labels, group])
    kinds = distinct_codes(pairs, axis=1)
    return cluster_folds(count, clusters, kinds, seed)


def out_of_fold(fit: Fit, predict: Predict, folds: Integers) -> Floats:
    """Predictions for each row by a model that was trained without it; with one fold, by a model of
    all rows.

    >>> out_of_fold(lambda rows: rows.sum(), lambda model, rows: model + 0.1 * rows, np.array([0, 1, 0]))
    array([1. , 2.1, 1.2])
    """
    count = int(folds.max()) + 1
    parts = []
    predicted = []
    for fold in range(count):
        part = np.flatnonzero(folds == fold)
        training = part
        if count > 1:
            training = np.flatnonzero(folds != fold)
        model = fit(training)
        parts.append(part)
        predicted.append(predict(model, part))
    order = np.argsort(np.concatenate(parts))
    return np.concatenate(predicted)[order]


def overfits(in_sample: Floats, held_out: Floats, truth: Floats, weight: Floats) -> bool:
    """Whether a model predicts its training rows much better than others; then only ``held_out``
    represents new rows.

    ``in_sample`` are the predictions of the final model, ``held_out`` those of models trained
    without the rows. The share of the truth's variation by which ``in_sample`` is closer is about
    the number of parameters over the number of rows. Scores of groups whose labels differ by d
    differ by that share of d too much.
    """
    mean = np.average(truth, axis=0, weights=weight)
    off = truth - mean

    def along_truth(values: Floats) -> float:
        products = values * off
        products = products.reshape(len(off), -1)
        return float((weight @ products).sum())

    closer = along_truth(in_sample - held_out)
    variation = along_truth(off)
    return closer > _OVERFIT * variation


def with_ties(in_sample: Floats, held_out: Floats) -> Floats:
    """The scores ``held_out``, but the final model's ``in_sample`` scores for rows with tied
    scores.

    Equal rows get different scores from the folds' models, but one score at prediction. Thresholds
    and ranks must use the scores of prediction.

    >>> with_ties(np.array([0.5, 0.2, 0.5, 0.7]), np.array([0.4, 0.3, 0.6, 0.8]))
    array([0.5, 0.3, 0.5, 0.8])
    """
    order = np.argsort(in_sample, kind="stable")
    ascending = in_sample[order]
    rounding = rounding_error(ascending)[1:]
    differs = np.diff(ascending) > rounding
    first = np.append(True, differs)
    run = np.cumsum(first) - 1
    tied = np.bincount(run)[run] > 1
    first_of_run = ascending[first][run]
    scores = np.empty(len(in_sample))
    scores[order] = np.where(tied, first_of_run, held_out[order])
    return scores
