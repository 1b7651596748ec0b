"""The scores of a fitted model, of any library that follows scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError
from metrifair.support.checks import groups_if_accepted


def estimator_scores(
    estimator: Any, X: Any, sensitive_features: Any, *, pos_label: object = None, low: bool = False
) -> NDArray[Any]:
    """Probabilities, or else outputs, or else predictions; of two classes the score of one.

    This class is the positive one, or the other one where low scores are favorable.
    """
    names = ("predict_proba", "decision_function", "predict")
    method = next((getattr(estimator, name) for name in names if hasattr(estimator, name)), None)
    if method is None:
        raise DataError(
            "must be a fitted model with predict, predict_proba or decision_function",
            argument="estimator",
            received=estimator,
        )
    scores = np.asarray(method(X, **groups_if_accepted(method, sensitive_features)))
    classes = list(getattr(estimator, "classes_", ()))
    if method.__name__ == "predict" or len(classes) != 2:
        return scores
    scored = 1
    if pos_label is not None:
        place = next((place for place, name in enumerate(classes) if name == pos_label), None)
        if place is None:
            raise DataError(
                f"must be one of the classes {classes}", argument="pos_label", received=pos_label
            )
        scored = 1 - place if low else place
    if scores.ndim == 2:
        return scores[:, scored]
    return scores if scored == 1 else -scores
