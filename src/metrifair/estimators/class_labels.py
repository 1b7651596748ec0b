"""Whether y can be labels of classes: a continuous target belongs to a regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from metrifair.errors import DataError


def check_class_labels(model: object, y: NDArray[Any]) -> None:
    """Raise a DataError for a continuous target, which names the regressor beside the classifier.

    >>> from metrifair import FairClassifier
    >>> check_class_labels(FairClassifier(), np.array([0.25, 1.5, 7.0]))
    Traceback (most recent call last):
    metrifair.errors.DataError: Unknown label type: continuous. FairClassifier predicts classes, and \
y contains numbers such as 0.25; use FairRegressor, or pass y as text if its numbers are classes
    """
    try:
        check_classification_targets(y)
    except ValueError as error:
        values = np.asarray(y)
        if "type: continuous." not in str(error) or values.dtype.kind != "f":
            raise
        classifier = _class_name(model)
        regressor = classifier.replace("Classifier", "Regressor")
        fractional = values[values != np.round(values)]
        raise DataError(
            f"Unknown label type: continuous. {classifier} predicts classes, and y contains "
            f"numbers such as {fractional[0]:.4g}",
            remedy=f"use {regressor}, or pass y as text if its numbers are classes",
        ) from error


def _class_name(model: object) -> str:
    """The name of a model's class in metrifair, from which the user's own may be derived."""
    classes = type(model).__mro__
    return next(kind.__name__ for kind in classes if kind.__module__.startswith("metrifair."))
