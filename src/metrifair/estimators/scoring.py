"""What ``score`` of an estimator returns: the accuracy of its predictions, or R²."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import is_regressor
from sklearn.metrics import accuracy_score, r2_score

from metrifair.problem.tables import Table


def quality(
    model: Any, y: Table, predicted: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """The accuracy of a classifier's predictions, or R² of a regressor's.

    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> quality(LogisticRegression(), [0, 1, 1, 1], [0, 1, 1, 0])
    0.75
    >>> quality(LinearRegression(), [1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    1.0
    """
    measure = r2_score if is_regressor(model) else accuracy_score
    return float(measure(y, predicted, sample_weight=sample_weight))
