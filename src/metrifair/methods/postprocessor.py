"""Methods after training: an estimator's predictions are changed, by the group of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import _safe_indexing, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from metrifair.checks import check_number, check_switches, seed_of
from metrifair.errors import DataError
from metrifair.estimators import FairClassifier, FairRegressor
from metrifair.methods.meta_estimator import check_learner, groups_if_asked
from metrifair.methods.training_data import Floats, Integers, groups_at_fit, groups_at_predict
from metrifair.problem.tables import Table


class Postprocessor(BaseEstimator):
    """A fitted base, kept in ``base_``, whose predictions are changed; new rows need their groups."""

    needs_group = True  # at prediction

    def _calibration(self, X: Table, y: Table, sensitive_features: Table) -> tuple[Any, Table, Table, Integers]:
        """The ``estimator``, a network where it is None, fitted unless ``prefit``; and what it is calibrated on.

        That are the rows, groups and their codes that it learns from, or those of the share ``holdout`` of each group
        and class, which it then does not see.
        """
        base, classifies = self.estimator, not is_regressor(self)
        if base is not None:
            check_learner(base, "classifier" if classifies else "regressor")
        check_switches(prefit=self.prefit)
        check_number("holdout", self.holdout, low=0, high=0.9)
        validate_data(self, X, skip_check_array=True)
        if _num_samples(X) < 2:
            raise DataError(f"X must hold rows of at least two groups, got {_num_samples(X)} sample(s)")
        group = groups_at_fit(self, X, y, sensitive_features)
        if self.prefit:
            if base is None:
                raise DataError("prefit=True needs a fitted estimator, got None")
            check_is_fitted(base)
        else:
            if y is None:
                raise DataError(
                    f"{type(self).__name__} requires y to be passed, but the target y is None; only a prefit estimator "
                    "needs none"
                )
            y = column_or_1d(y, warn=True)
            check_consistent_length(X, y)
            network = FairClassifier if classifies else FairRegressor
            base = network(0.0, random_state=self.random_state) if base is None else clone(base)
            learnt = (X, y, sensitive_features)
            if self.holdout:
                held = self._held_out(group, y)
                learnt = tuple(_safe_indexing(table, np.flatnonzero(~held)) for table in learnt)
                X, sensitive_features = (
                    _safe_indexing(table, np.flatnonzero(held)) for table in (X, sensitive_features)
                )
                group = group[held]
            base.fit(*learnt[:2], **groups_if_asked(base.fit, learnt[2]))
        if classifies and not hasattr(base, "predict_proba"):  # some have it only once they are fitted
            raise DataError(f"estimator must have predict_proba, which {base!r} lacks; pass another one, or None")
        return base, X, sensitive_features, group

    def _held_out(self, group: Integers, y: NDArray[Any]) -> NDArray[np.bool_]:
        """A share of each group, for classifiers of each class within it, drawn at random."""
        held = np.zeros(len(group), dtype=np.bool_)
        generator = np.random.RandomState(seed_of(self.random_state))
        labels = 0 if is_regressor(self) else np.unique(y, return_inverse=True)[1]
        cell = group + len(self.groups_) * labels
        for code in np.unique(cell):
            own = generator.permutation(np.flatnonzero(cell == code))
            held[own[: int(self.holdout * len(own))]] = True
        if len(set(group[held])) < len(self.groups_):
            raise DataError(f"holdout={self.holdout} leaves a group without rows to calibrate on; raise it, or take 0")
        return held

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


def probabilities(found: NDArray[Any]) -> Floats:
    """Class probabilities (n, classes) from what ``predict_proba`` gave; one column is that of the later class."""
    scores = np.asarray(found, dtype=np.float64)
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
