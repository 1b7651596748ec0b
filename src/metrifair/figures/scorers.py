"""Wrap predictions as fitted models, for scorers of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from metrifair.problem.problem import Problem
from metrifair.problem.tables import Table
from metrifair.support.arrays import Floats


class _Predicted(BaseEstimator):  # type: ignore[misc]
    """A fitted model, for scorers, that returns fixed predictions.

    ``coded``: of two classes the positive one is called 1 and the other 0.
    """

    def __init__(
        self,
        scores: Floats,
        decision: NDArray[Any],
        kind: str,
        problem: Problem,
        *,
        coded: bool = False,
    ) -> None:
        self.scores = scores
        self.decision = decision
        self.kind = kind
        self.problem = problem
        self.coded = coded
        if coded:
            self.classes_ = np.array([0, 1])
            self.positive = 1
        else:
            self.classes_ = np.asarray(problem.scheme.classes)
            self.positive = problem.scheme.positive

    def __sklearn_is_fitted__(self) -> bool:
        return True


class PredictedNumbers(RegressorMixin, _Predicted):  # type: ignore[misc]
    """A regressor."""

    def predict(self, X: Table) -> NDArray[Any]:  # noqa: ARG002  # a scorer passes the rows of the predictions
        """The fixed numbers."""
        return self.scores


class PredictedClasses(ClassifierMixin, _Predicted):  # type: ignore[misc]
    """A classifier; it has only the methods that the predictions come from."""

    def predict(self, X: Table) -> NDArray[Any]:  # noqa: ARG002
        """The fixed decisions."""
        codes = self.decision
        return np.asarray(
            self.classes_[(codes == self.problem.scheme.positive) * 1 if self.coded else codes]
        )

    @available_if(lambda self: self.kind == "probability")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table) -> Floats:  # noqa: ARG002
        """Probabilities (n, classes)."""
        score = self.scores
        if score.ndim == 2:
            return score
        return np.stack([1 - score, score] if self.positive else [score, 1 - score], axis=1)

    @available_if(lambda self: self.kind == "output")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Table) -> Floats:  # noqa: ARG002
        """Margins, of two classes those of the second."""
        score = self.scores
        if score.ndim == 1 and self.positive == 0:
            return -score
        return score
