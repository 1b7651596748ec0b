"""What ``score`` of an estimator whose prediction may need groups returns."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import is_regressor
from sklearn.metrics import accuracy_score, r2_score

from metrifair.problem.tables import Table


class ScoredWithGroups:
    """``score`` with groups; scikit-learn's mixins, which pass none, come after it."""

    predict: Any

    def score(
        self,
        X: Table,
        y: Table,
        *,
        sensitive_features: Table | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Accuracy of the predictions, or R² for a regressor.

        A search by cross-validation passes the groups where metadata routing is enabled and
        ``set_score_request(sensitive_features=True)`` requests them.

        Parameters
        ----------
        X, y, sensitive_features : array-like or table
            As in ``fit``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each sample.

        Returns
        -------
        float
            The accuracy, or R².
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        measure = r2_score if is_regressor(self) else accuracy_score
        return float(measure(y, predicted, sample_weight=sample_weight))
