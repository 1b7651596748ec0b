"""Losses of predictions, one for each row: what risk parity compares.

The errors of regression take NumPy arrays or tensors, so that training and audits share one
formula.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.support.arrays import Floats

SMALLEST_PROBABILITY = 1e-12  # so that a prediction of 0 or 1 has a finite loss
_ROUNDINGS = 16.0  # of the last digit, that a loss may be off


def _squared_error(prediction: Any, y: Any) -> Any:
    return (prediction - y) ** 2


def _absolute_error(prediction: Any, y: Any) -> Any:
    return abs(prediction - y)


def _huber(prediction: Any, y: Any) -> Any:
    """Quadratic within 1 of the target (which estimators standardize), linear beyond."""
    error = abs(prediction - y)
    near = error.clip(None, 1)
    return near * (error - near / 2)


REGRESSION_LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "squared_error": _squared_error,
    "absolute_error": _absolute_error,
    "huber": _huber,
}


def log_clipped(probability: Floats) -> Floats:
    """The logarithm, finite at 0 too.

    >>> log_clipped(np.array([0.0, 1.0])).round(1)
    array([-27.6,   0. ])
    """
    return np.asarray(np.log(probability.clip(SMALLEST_PROBABILITY)))


def log_losses(probability: Floats, y: NDArray[Any]) -> Floats:
    """Minus the logarithm of the probability of each outcome.

    ``probability`` is (n,), that of the outcome 1; or (n, classes), whose rows are divided by their
    sums.

    >>> log_losses(np.array([0.5, 0.25]), np.array([1.0, 0.0])).round(3)
    array([0.693, 0.288])
    """
    if probability.ndim == 1:
        return -log_clipped(np.where(y == 1, probability, 1 - probability))
    shares = probability.clip(SMALLEST_PROBABILITY)
    return -log_clipped(shares[np.arange(len(y)), y.astype(np.int64)] / shares.sum(1))


def logits(probability: Floats) -> Floats:
    """The output that a model has for a probability: of the positive of two classes (n,), or of
    each class.

    >>> logits(np.array([0.5, 0.75])).round(3)
    array([0.   , 1.099])
    """
    return log_clipped(probability) - (
        log_clipped(1 - probability) if probability.ndim == 1 else 0.0
    )


def tied(losses: Floats, loss: str, size: float) -> Floats:
    """Losses (n,), where those that differ only by rounding are equal; ``size`` is that of the
    largest number given.

    A prediction of 0.3 for the label 1 is as wrong as one of 0.7 for the label 0, but 1 - 0.7 is
    not 0.3 to the last digit, and its logarithm magnifies the difference. Comparing distributions
    depends on which losses are equal.

    >>> tied(np.array([0.5, 2.0, 0.5 + 1e-16]), "absolute_error", 2.0)
    array([0.5, 2. , 0.5])
    """
    distinct, place = np.unique(losses, return_inverse=True)
    slope = {"log_loss": np.exp(distinct), "squared_error": 2 * np.sqrt(distinct)}.get(
        loss, np.ones_like(distinct)
    )
    off = slope * size + (-log(SMALLEST_PROBABILITY) if loss == "log_loss" else distinct)
    differs = np.diff(distinct) > _ROUNDINGS * np.finfo(losses.dtype).eps * off[1:]
    first = np.append(True, differs)
    merged: Floats = distinct[first][np.cumsum(first) - 1]
    return merged[place]
