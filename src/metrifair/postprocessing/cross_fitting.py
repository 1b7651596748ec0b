"""Scores of rows by models that have not seen them, and which scores represent those of new rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metrifair.support.arrays import Floats, Integers

# A model may predict a row differently in the last digits when others are predicted along with it: relative to the
# value and, where terms cancel to almost 0, to the median. Not to the largest value, which may be an outlier.
_ROUNDING, _CANCELLED = 1e-9, 1e-14
_OVERFIT = 0.1  # share of the target's variation from which a model's scores of its training rows are not used

Fit = Callable[[Integers], Any]
"""Positions of rows -> a model fitted on these rows."""
Predict = Callable[[Any, Integers], Floats]
"""A fitted model and positions of rows -> its predictions for these rows."""


def rounding_error(values: Floats, typical: float | None = None) -> Floats:
    """The distance from each value within which another value counts as equal to it."""
    typical = float(np.median(np.abs(values))) if typical is None else typical
    return _ROUNDING * np.abs(values) + _CANCELLED * typical


def assign_folds(most: int, labels: Integers, group: Integers, seed: int) -> Integers:
    """The fold of each row; all folds have the same mix of labels and groups, up to one row of each.

    There are at most ``most`` folds, and at most as many as rows of the rarest label.
    """
    count = min(most, int(np.bincount(labels)[np.unique(labels)].min()))
    order = np.lexsort((np.random.RandomState(seed).random(len(labels)), group, labels))
    folds = np.empty(len(labels), dtype=np.int64)
    folds[order] = np.arange(len(labels)) % max(count, 1)
    return folds


def out_of_fold(fit: Fit, predict: Predict, folds: Integers) -> Floats:
    """Predictions for each row by a model that has not seen it; with one fold, by a model that has.

    >>> out_of_fold(lambda rows: rows.sum(), lambda model, rows: model + 0.1 * rows, np.array([0, 1, 0]))
    array([1. , 2.1, 1.2])
    """
    parts = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
    rest = [np.flatnonzero(folds != fold) if len(parts) > 1 else parts[0] for fold in range(len(parts))]
    predicted = [predict(fit(others), part) for others, part in zip(rest, parts, strict=True)]
    return np.concatenate(predicted)[np.argsort(np.concatenate(parts))]


def overfits(own: Floats, unseen: Floats, truth: Floats, weight: Floats) -> bool:
    """Whether a model predicts its training rows much better than others; then only ``unseen`` represents new rows.

    ``own`` are the predictions of the final model, ``unseen`` those of models that have not seen the rows. The share of
    the truth's variation by which ``own`` is closer is about the number of parameters over the number of rows. Scores
    of groups whose labels differ by d differ by that share of d too much.
    """
    off = truth - np.average(truth, axis=0, weights=weight)
    closer, total = (weight @ (values * off).reshape(len(off), -1) for values in (own - unseen, off))
    return bool(closer.sum() > _OVERFIT * total.sum())


def with_ties(own: Floats, unseen: Floats) -> Floats:
    """The scores ``unseen``, but the final model's ``own`` scores for rows that it ties.

    Equal rows get another score from each fold's model, but one score when they are predicted. Thresholds and ranks
    must use what will be predicted.

    >>> with_ties(np.array([0.5, 0.2, 0.5, 0.7]), np.array([0.4, 0.3, 0.6, 0.8]))
    array([0.5, 0.3, 0.5, 0.8])
    """
    order = np.argsort(own, kind="stable")
    ascending = own[order]
    first = np.append(True, np.diff(ascending) > rounding_error(ascending)[1:])
    run = np.cumsum(first) - 1
    scores = np.empty(len(own))
    scores[order] = np.where(np.bincount(run)[run] > 1, ascending[first][run], unseen[order])
    return scores
