"""What a model says of rows that it has not seen, by fits on parts of them, and what it will say when it predicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metrifair.methods.quantiles import rounding_of
from metrifair.methods.training_data import Floats, Integers

_BY_HEART = 0.1  # share of the variation of what was learned, from which a model's word on its own rows is not taken

Fitted = Callable[[Integers], Any]
"""Numbers of rows -> a model that has learned from these."""
Told = Callable[[Any, Integers], Floats]
"""A fitted model and numbers of rows -> what it says of these."""


def out_of_fold(fitted: Fitted, told: Told, folds: Integers) -> Floats:
    """What models say of rows that they have not seen; with one fold, of those that they have.

    >>> out_of_fold(lambda rows: rows.sum(), lambda model, rows: model + 0.1 * rows, np.array([0, 1, 0]))
    array([1. , 2.1, 1.2])
    """
    parts = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
    rest = [np.flatnonzero(folds != fold) if len(parts) > 1 else parts[0] for fold in range(len(parts))]
    said = [told(fitted(others), own) for others, own in zip(rest, parts, strict=True)]
    found: Floats = np.concatenate(said)[np.argsort(np.concatenate(parts))]
    return found


def learned_by_heart(own: Floats, apart: Floats, truth: Floats, weight: Floats) -> bool:
    """Whether a model knows rows that it learned from much better than others: then only ``apart`` tells of new rows.

    The share of the variation of the truth by which ``own``, what it says of its own rows, is nearer to it: about the
    number of parameters over that of rows. Groups whose labels differ by d have scores that differ by that share of d
    too much.
    """
    off = truth - np.average(truth, axis=0, weights=weight)
    nearer, all_of_it = (weight @ (one * off).reshape(len(off), -1) for one in (own - apart, off))
    return bool(nearer.sum() > _BY_HEART * all_of_it.sum())


def with_ties(own: Floats, apart: Floats) -> Floats:
    """The scores by models that have not seen the rows, ``apart``; of rows that the final model ties, its ``own`` ones.

    Equal rows have another score by each fold's model, but one score when they are predicted: what is cut or ranked
    must be what will be predicted.

    >>> with_ties(np.array([0.5, 0.2, 0.5, 0.7]), np.array([0.4, 0.3, 0.6, 0.8]))
    array([0.5, 0.3, 0.5, 0.8])
    """
    order = np.argsort(own, kind="stable")
    ascending = own[order]
    first = np.append(True, np.diff(ascending) > rounding_of(ascending)[1:])
    run = np.cumsum(first) - 1
    found = np.empty(len(own))
    found[order] = np.where(np.bincount(run)[run] > 1, ascending[first][run], apart[order])
    return found
