"""Base classes of the baselines: training data, two classes by log-odds, post-processing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.utils import indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from metrifair.errors import DataError
from metrifair.postprocessing.postprocessor import (
    Postprocessor,
    TrainingRows,
    assign_folds,
    check_class_count,
)
from metrifair.problem.cells import Attribute
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.problem.missing_groups import warn_of_groups
from metrifair.problem.problem import (
    Inputs,
    Problem,
    Scheme,
    make_problem,
    problem_with_scheme,
    warn_of_labels,
)
from metrifair.problem.tables import UNKNOWN, Table, as_features, as_labels, unmasked
from metrifair.support.arrays import Booleans, Floats, Integers, distinct_codes
from metrifair.support.checks import check_known, make_seed
from metrifair.training.objective import BINARY

Fitted = dict[str, Any]
"""The attributes of a fitted estimator."""

DIVERGED = "training diverged; lower learning_rate (now {}), or check the scale of X"


class PublishedEstimator(BaseEstimator):
    """An estimator that is fitted on features, labels and one group for each row."""

    _two_groups = False
    _two_classes = True
    classes_: NDArray[Any]

    def fit(self, X: Table, y: Table, *, sensitive_features: Table) -> Self:
        """Fit on these samples, from scratch.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as numbers.
        y : array-like of shape (n_samples,)
            Labels, or a regression target. A method for two classes takes 0 and 1, -1 and 1, or
            booleans.
        sensitive_features : array-like of shape (n_samples,)
            The group of each sample, in one column without missing values.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sensitive_features)

    @abstractmethod
    def _fit_data(self, data: TrainingData, seed: int) -> Fitted:
        """The fitted attributes."""

    def _data(
        self, X: Table, y: Table, groups: Table, weight: ArrayLike | None = None
    ) -> TrainingData:
        if hasattr(self, "variant"):
            check_known("variant", self.variant, ("method", "reference"))
        return training_data(
            self,
            X,
            y,
            groups,
            sample_weight=weight,
            two_groups=self._two_groups,
            two_classes=self._two_classes,
        )

    def _fit(self, X: Table, y: Table, groups: Table, weight: ArrayLike | None = None) -> Self:
        # a fit that fails leaves no model of other data behind
        for name in ("predictor_", "estimator_", "coef_"):
            self.__dict__.pop(name, None)
        data = self._data(X, y, groups, weight)
        seed = make_seed(getattr(self, "random_state", 0))
        self.__dict__.update(self._fit_data(data, seed))
        return self


class WeightedEstimator(PublishedEstimator):
    """The same with weights of the samples."""

    def fit(
        self,
        X: Table,
        y: Table,
        *,
        sensitive_features: Table,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit on these samples, from scratch.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as numbers.
        y : array-like of shape (n_samples,)
            Labels, or a regression target. A method for two classes takes 0 and 1, -1 and 1, or
            booleans.
        sensitive_features : array-like of shape (n_samples,)
            The group of each sample, in one column without missing values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each sample. A sample of weight two counts as two samples. Weights of the
            method itself multiply it.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._fit(X, y, sensitive_features, sample_weight)


CONDITIONED_ON: dict[str, tuple[int, ...]] = {
    "statistical_parity": (),
    "equal_opportunity": (1,),
    "equalized_odds": (0, 1),
}
"""The labels on which a criterion conditions; none: on no label."""

_LABELS = ({0, 1}, {-1, 1})  # booleans equal 0 and 1


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The training data of a method. Rows of weight zero are left out of every array."""

    x: Floats  # (n, features)
    y: NDArray[Any]  # class codes (the later of two classes is 1), or targets
    group: Integers  # codes into ``groups``
    groups: tuple[object, ...]
    weight: Floats  # ones if there are no weights

    def __len__(self) -> int:
        return len(self.x)

    @property
    def features(self) -> int:
        """The number of columns of x."""
        _, count = self.x.shape
        return int(count)

    def in_cell(self, label: int, code: int) -> Booleans:
        """Whether each row has this label and this group (codes)."""
        has_label = self.y == label
        in_group = self.group == code
        result: Booleans = has_label & in_group
        return result

    def take(self, rows: Integers) -> TrainingData:
        """Some of the rows; groups keep their codes."""
        return replace(
            self, x=self.x[rows], y=self.y[rows], group=self.group[rows], weight=self.weight[rows]
        )

    def check_cells(self, labels: Iterable[int]) -> None:
        """Raise a DataError unless every group has a row with each of these labels (codes)."""
        for label in labels:
            for code, name in enumerate(self.groups):
                if not self.in_cell(label, code).any():
                    problem = f"group {name!r} has no row with label {label}, on which the criterion conditions"
                    raise DataError(problem, remedy="leave the group out or use another criterion")


class TwoClassMixin(ClassifierMixin):
    """A classifier whose scikit-learn tags allow two classes only."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class LogOddsMixin(TwoClassMixin):
    """Two classes by the log-odds of the positive one, ``_log_odds``; its threshold is a
    probability of one half.
    """

    classes_: NDArray[Any]

    @abstractmethod
    def _log_odds(self, X: Table) -> Floats:
        """The log-odds of the positive class."""

    def decision_function(self, X: Table) -> Floats:
        """The score: log-odds of the positive class.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-odds.
        """
        return self._log_odds(X)

    def predict_proba(self, X: Table) -> Floats:
        """Probabilities of the two classes.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Probabilities, in the order of ``classes_``.
        """
        probability = BINARY.prediction(torch.as_tensor(self._log_odds(X))).numpy()
        return np.stack([1 - probability, probability], axis=1)

    def predict(self, X: Table) -> NDArray[Any]:
        """The class of each sample: the positive one if its probability is at least the threshold
        of the method.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        accepted = self._accepted(X)  # first: it raises an error before ``fit``
        return self.classes_[accepted.astype(np.int64)]

    def _accepted(self, X: Table) -> Booleans:
        return self._log_odds(X) >= 0


def training_data(
    estimator: Any,
    X: Table,
    y: Table,
    sensitive_features: Table,
    *,
    sample_weight: ArrayLike | None = None,
    two_groups: bool,
    two_classes: bool = True,
) -> TrainingData:
    """Checked rows; stores the features, ``classes_`` of a classifier and ``groups_`` in the
    estimator.

    ``two_classes`` accepts the labels 0 and 1, -1 and 1, False and True only: with two other
    values, the positive one would be a guess.
    """
    numeric = is_regressor(estimator)
    features = as_features(X)
    x, target = validate_data(
        estimator, features, as_labels(y), dtype=np.float64, y_numeric=numeric, ensure_min_samples=2
    )
    if not numeric:
        check_classification_targets(target)
    inputs = Inputs(y, sensitive_features, sample_weight=sample_weight, rows={"X": X})
    problem = make_problem(inputs, target="numbers" if numeric else "labels")
    warn_of_labels(problem)
    warn_of_groups(problem)
    if not numeric:
        classes = list(problem.scheme.classes)
        check_class_count(classes, two=two_classes)
        if two_classes and set(classes) not in _LABELS:
            raise DataError(
                "this method accepts the labels 0 and 1, -1 and 1, or False and True in y, got "
                f"the classes {classes}; "
                "convert them so that the positive class is 1"
            )
        estimator.classes_ = np.asarray(classes)
    group, groups = _known_groups(problem)
    if two_groups and len(groups) > 2:
        raise DataError(
            f"this method compares two groups, sensitive_features contains {len(groups)}: "
            f"{list(groups)}"
        )
    estimator.groups_ = groups
    weight = np.ones(len(problem)) if problem.weight is None else problem.weight
    x = np.require(problem.kept_rows(x), requirements="W")  # torch warns of read-only memory
    return TrainingData(x, np.asarray(problem.labels), group, groups, weight)


def groups_at_fit(estimator: Any, X: Table, y: Table | None, sensitive_features: Table) -> Integers:
    """Codes of two or more groups; stores ``groups_`` in the estimator.

    For methods that pass X to another model.
    """
    problem = make_problem(Inputs(sensitive_features=sensitive_features, rows={"X": X, "y": y}))
    codes, estimator.groups_ = _known_groups(problem)
    return codes


def groups_at_predict(estimator: Any, X: Table, sensitive_features: Table) -> Integers:
    """Codes of the groups of the training rows; another group is an error."""
    scheme = Scheme(
        STATISTICAL_PARITY, attributes=(Attribute("sensitive_features", tuple(estimator.groups_)),)
    )
    return _known_groups(
        problem_with_scheme(Inputs(sensitive_features=sensitive_features, rows={"X": X}), scheme)
    )[0]


def features_at_predict(estimator: Any, X: Table, fitted: str) -> Floats:
    """The features of new rows, checked against those of ``fit``, which set the attribute
    ``fitted``.
    """
    check_is_fitted(estimator, fitted)
    x: Floats = validate_data(estimator, as_features(X), dtype=np.float64, reset=False)
    return x


def linear_scores(estimator: Any, X: Table) -> Floats:
    """The scores of new rows by a fitted linear model."""
    scores: Floats = (
        features_at_predict(estimator, X, "coef_") @ estimator.coef_ + estimator.intercept_
    )
    return scores


def _known_groups(problem: Problem) -> tuple[Integers, tuple[object, ...]]:
    """Codes and groups of the only attribute; a DataError if a row's is missing."""
    if len(problem.scheme.attributes) != 1:
        count = len(problem.scheme.attributes)
        raise DataError(f"sensitive_features must be one column, got {count}; join them into one")
    codes = problem.groups[:, 0]
    unknown = np.flatnonzero(codes == UNKNOWN)
    if len(unknown):
        row = int(unknown[0] if problem.kept is None else np.flatnonzero(problem.kept)[unknown[0]])
        raise DataError(
            f"sensitive_features is missing in row {row}; this method needs the group of each row"
        )
    return codes, problem.scheme.attributes[0].groups


class PublishedPostprocessor(Postprocessor):
    """A fitted base, stored in ``base_``; new rows need the group of each row, in one column.

    A method defines ``_check_parameters()`` and ``_learn(X, scores, group)``, which learns the map
    of the scores.
    """

    needs_group = True  # at prediction

    def fit(self, X: Table, y: Table | None = None, *, sensitive_features: Table) -> Self:
        """Fit the estimator unless it is prefit, then the map of its scores.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Features, as the estimator takes them.
        y : array-like of shape (n_samples,), default=None
            Labels, or a regression target. A prefit estimator needs none.
        sensitive_features : array-like of shape (n_samples,)
            The group of each sample, in one column without missing values.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_parameters()
        self._check_wrapped(X, y)
        group = groups_at_fit(self, X, y, sensitive_features)
        if self.prefit:
            base = self.estimator
            scores = self._scores(self.estimator, X, sensitive_features)
        else:
            y = self._target_column(X, y)
            (X,) = indexable(unmasked(X, as_numbers=True))
            training = TrainingRows(X, y, sensitive_features)
            base = training.fit(self._template(), np.arange(_num_samples(X)))
            labels = np.zeros_like(group) if is_regressor(self) else distinct_codes(y)
            folds = assign_folds(self.folds, labels, group, make_seed(self.random_state))
            single = folds.max() == 0
            if single:
                scores = self._scores(base, X, sensitive_features)
            else:
                scores = self._out_of_fold_scores(training, folds)
        self.generator_ = np.random.RandomState(make_seed(self.random_state))
        self._learn(X, scores, group)
        self.base_ = base  # last: a fit that fails leaves the model as it was
        if not is_regressor(self):
            self.classes_ = base.classes_
        return self

    def _groups(self, X: Table, sensitive_features: Table) -> Integers:
        """Codes of the groups of new rows; the base checks the features."""
        check_is_fitted(self, "base_")
        return groups_at_predict(self, X, sensitive_features)
