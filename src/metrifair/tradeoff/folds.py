"""Choosing by folds: models of the other folds judge each fold, so that all rows but the test's serve both ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from metrifair.errors import DataError, Remedy, TooFewSamples
from metrifair.figures.utility import Predictions
from metrifair.postprocessing.cross_fitting import assign_folds
from metrifair.support.checks import is_number
from metrifair.tradeoff.evaluate import Evaluator, predictions
from metrifair.tradeoff.ledger import Ledger
from metrifair.tradeoff.points import Job, Outcome, Point
from metrifair.tradeoff.split import DataSet, HeldOut, Rows, Split, data_set, divided  # noqa: F401  # data_set: for the example
from metrifair.tradeoff.sweep import RowsToTrain, sweep


def split_rows(
    data: DataSet, validation: float, test: float, seed: int, *, folds: int | None, train: bool = True
) -> tuple[Split, tuple[Rows, ...]]:
    """Training, validation and test rows, and the folds where cross-validation is asked for."""
    if folds is None:
        return data.split(validation, test, seed, train=train), ()
    return in_folds(data, folds, test, seed, fitted=not train)


def in_folds(
    data: DataSet, count: int, test: float, seed: int, *, fitted: bool = False
) -> tuple[Split, tuple[Rows, ...]]:
    """Rows to train and to choose on, in folds with the same mix of cells and labels, and rows to judge on.

    >>> given = np.arange(40.0)[:, None], np.arange(40) % 2, np.arange(40) // 2 % 2
    >>> data = data_set(*given, None, regression=False, criterion="statistical_parity", contrast="pairs")
    >>> split, folds = in_folds(data, 3, 0.25, 0)
    >>> len(split.train), len(split.validation), len(split.test), [len(fold) for fold in folds]
    (30, 30, 10, [10, 10, 10])
    """
    if fitted:
        remedy = Remedy("folds", leave_out=True)
        raise DataError("needs models to train, and these are fitted", argument="folds", remedy=remedy)
    if not is_number(test) or not 0 < test < 1:
        raise DataError(f"test must be a share above 0 that leaves rows for training, got {test!r}")
    problem = data.problem
    rest, judged = divided(np.arange(len(problem)), data.kinds, test, seed)
    labels = np.zeros_like(rest) if problem.labels is None or not problem.scheme.classes else problem.labels[rest]
    dealt = assign_folds(count, labels, data.kinds[rest], seed)
    if (found := len(np.unique(dealt))) < count:
        problem = f"must be at most {found}, as every fold needs rows of every label"
        raise TooFewSamples(problem, argument="folds", received=count, remedy="use fewer, or leave rare labels out")
    folds = tuple(data.rows[rest[dealt == fold]] for fold in range(count))
    return Split(data.rows[rest], np.concatenate(folds), data.rows[judged]), folds


def cross_sweep(
    estimator: Any,
    data: RowsToTrain,
    jobs: Sequence[Job],
    evaluate: Evaluator,
    *,
    parts: Sequence[tuple[Rows, HeldOut]],
    ledger: Ledger | None = None,
    **more: Any,
) -> list[Outcome]:
    """Every job's outcome, as of ``sweep``; models of the other folds predict each fold for the evaluator.

    ``parts`` are the folds. A ledger notes one seed after the other, with its folds.
    """
    known = {} if ledger is None else ledger.finished()
    outcomes: list[Outcome] = []
    for seed in dict.fromkeys(job.seed for job in jobs):
        of_seed = [job for job in jobs if job.seed == seed]
        new = [job for job in of_seed if job.name not in known]
        by_fold: dict[Job, list[Predictions | None]] = {job: [] for job in new}
        for fold, part in parts:
            others = replace(data, rows=np.setdiff1d(data.rows, fold))
            for outcome in sweep(estimator, others, new, partial(_predicted, part), **more):
                by_fold[outcome.job].append(outcome.model)
        for job, folds in by_fold.items():
            complete = [one for one in folds if one is not None]
            if evaluate.cross_predictions is not None:
                joined = Predictions.joined(complete) if len(complete) == len(folds) else None
                evaluate.cross_predictions[job] = joined
        outcomes += sweep(estimator, data, of_seed, evaluate, ledger=ledger, **more)
    return outcomes


def _predicted(part: HeldOut, model: Any, job: Job) -> Outcome:
    """Predictions for the rows of a fold in the place of the outcome's model; None where training failed."""
    nothing = Point(job.value, job.seed, 0.0, 1.0, failed=True)
    return Outcome(job, nothing, nothing, model=None if model is None else predictions(model, part))
