"""Published methods that change the predictions of a fitted model by the group of each row."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.base import is_regressor
from sklearn.utils import indexable
from sklearn.utils.validation import _num_samples, check_is_fitted

from metrifair.baselines.stacked import groups_at_fit, groups_at_predict
from metrifair.postprocessing.postprocessor import GivenRows, Postprocessor, assign_folds
from metrifair.problem.tables import Table
from metrifair.support.arrays import Integers
from metrifair.support.checks import seed_of


class PublishedPostprocessor(Postprocessor):
    """A fitted base, stored in ``base_``; new rows need the group of each row, in one column.

    A method defines ``_check_parameters()`` and ``_learn(X, scores, group)``, which learns the map of the scores.
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
            base, scores = self.estimator, self._scores(self.estimator, X, sensitive_features)
        else:
            (X,), y = indexable(X), self._target_column(X, y)
            given = GivenRows(X, y, sensitive_features)
            base = given.fit(self._template(), np.arange(_num_samples(X)))
            labels = np.zeros_like(group) if is_regressor(self) else np.unique(y, return_inverse=True)[1]
            folds = assign_folds(self.folds, labels, group, seed_of(self.random_state))
            seen = folds.max() == 0
            scores = self._scores(base, X, sensitive_features) if seen else self._out_of_fold_scores(given, folds)
        self.generator_ = np.random.RandomState(seed_of(self.random_state))
        self._learn(X, scores, group)
        self.base_ = base  # last: a fit that fails leaves the model as it was
        if not is_regressor(self):
            self.classes_ = base.classes_
        return self

    def _groups(self, X: Table, sensitive_features: Table) -> Integers:
        """Codes of the groups of new rows; the base checks the features."""
        check_is_fitted(self, "base_")
        return groups_at_predict(self, X, sensitive_features)
