"""Predictions and groups in, one number out: how unfair, in the shape of a scikit-learn metric."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.errors import DataError, TooFewSamples
from metrifair.problem.cells import Cells
from metrifair.problem.criteria import Criterion, scores
from metrifair.problem.samples import Sides, sides_of
from metrifair.problem.tables import (
    Table,
    array_of,
    codes,
    columns,
    levels,
)
from metrifair.problem.tasks import BINARY, MULTICLASS, Task, regression, tied


def scores_of(
    criterion: Criterion,
    prediction: Tensor,
    labels: NDArray[Any] | None,
    *,
    classes: tuple[object, ...],
    positive: int,
    loss: str | None,
) -> Tensor:
    """What the criterion compares: (n,), or (n, classes)."""
    task = _task(criterion, prediction, loss)
    y = torch.zeros(len(prediction)) if labels is None else torch.as_tensor(labels)
    if loss == "log_loss" and classes:
        y = _log_loss_labels(y, classes, positive, prediction)
    found = scores(criterion, task, task.output(prediction), y)
    if criterion.score != "loss":
        return found
    return tied(found, loss or "", max(1.0, float(prediction.abs().max()), float(y.abs().max())))


def predictions_of(y_pred: Table) -> Tensor:
    """Predictions (n,), or class probabilities (n, classes); finite, at least one."""
    table = columns("y_pred", y_pred)
    parts = [array_of("y_pred", column) for column in table.values()]
    prediction = torch.as_tensor(np.stack(parts, -1), dtype=torch.float64)
    if len(prediction) == 0:
        raise DataError("y_pred holds no predictions; pass at least one per group")
    if not np.isfinite(prediction.numpy()).all():  # several times as fast as torch's
        raise DataError("y_pred holds NaN or infinite values; remove or replace them")
    return prediction[:, 0] if prediction.shape[1] == 1 else prediction


def labels_of(
    y_true: Table | None, criterion: Criterion, loss: str | None
) -> tuple[NDArray[Any] | None, tuple[object, ...]]:
    """Label codes and their classes; for a regression target, the target and no classes."""
    if y_true is None:
        if criterion.needs_labels or criterion.score == "loss" or callable(criterion.score):
            raise DataError(f"{criterion.name} looks at the true labels; pass y_true, got None")
        return None, ()
    (name, column), *others = columns("y_true", y_true).items()
    if others:
        raise DataError(f"y_true must be one column, got {len(others) + 1}")
    free_score = callable(criterion.score) and not criterion.needs_labels
    cut = criterion.bins is not None or criterion.sets is not None
    if not (criterion.needs_labels or criterion.score == "loss" or free_score):
        return np.zeros(len(column)), ()
    if free_score or cut or loss not in (None, "log_loss"):
        target = array_of(name, column).astype(np.float64)
        _check_no_missing(name, np.isnan(target))
        if np.isinf(target).any():
            raise DataError(f"{name} holds infinite values; leave those samples out")
        return target, ()
    classes = levels(name, column)
    found = codes(name, column, classes)
    _check_no_missing(name, found < 0)
    return found, classes


def _check_no_missing(name: str, missing: NDArray[np.bool_]) -> None:
    if missing.any():
        raise DataError(f"{name} misses {int(missing.sum())} of {len(missing)} values; leave those samples out")


def _log_loss_labels(y: Tensor, classes: tuple[object, ...], positive: int, prediction: Tensor) -> Tensor:
    """Labels as the loss takes them: columns of class probabilities, or 1 where the label is the positive one."""
    given = 2 if prediction.ndim == 1 else prediction.shape[1]
    if len(classes) != given:
        raise DataError(f"log_loss needs one probability for each label, got {given} for the labels {list(classes)}")
    return y if prediction.ndim == 2 else (y == positive).to(y.dtype)


def positive_of(classes: tuple[object, ...], pos_label: object) -> int:
    """The code of the positive label: the last class unless told."""
    if pos_label is None or not classes:
        return len(classes) - 1 if classes else 1
    if pos_label not in classes:
        raise DataError(f"pos_label must be one of the labels {list(classes)}, got {pos_label!r}")
    return classes.index(pos_label)


def _task(criterion: Criterion, prediction: Tensor, loss: str | None) -> Task:
    if loss is None and criterion.score == "loss":
        raise DataError(
            f"{criterion.name} compares losses; say which: loss='log_loss' for probabilities, or 'squared_error', "
            "'absolute_error', 'huber'"
        )
    if loss == "log_loss":
        return MULTICLASS if prediction.ndim == 2 else BINARY
    return regression(loss or "squared_error")


def weights_of(sample_weight: Table | None) -> Tensor | None:
    """Weights (n,), finite and not negative."""
    if sample_weight is None:
        return None
    weight = torch.as_tensor(np.array(array_of("sample_weight", sample_weight), dtype=np.float64))
    if not bool((weight >= 0).all()) or not bool(torch.isfinite(weight).all()):
        raise DataError("sample_weight must be finite and not negative")
    return weight


def _sides(cells: Cells, cell: Tensor, weight: Tensor | None) -> tuple[Sides, ...]:
    """The rows of every comparison; a side without samples is an error."""
    found = sides_of(cells.comparisons, cell, weight)
    for comparison, sides in zip(cells.comparisons, found, strict=True):
        weights = torch.ones(sum(sides.counts)) if sides.weights is None else sides.weights
        for group, part in zip(comparison.groups, weights.split(sides.counts), strict=True):
            if not bool(part.sum() > 0):
                raise TooFewSamples(f"comparing {comparison}: group {group!r} has no sample there; leave it out")
    return found
