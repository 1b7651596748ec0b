"""Choosing by folds: models of the other folds judge each fold, so that all rows but the test's serve both ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from metrifair.figures.utility import Predictions
from metrifair.tradeoff.evaluate import Evaluator, predictions
from metrifair.tradeoff.ledger import Ledger
from metrifair.tradeoff.points import Job, Outcome, Point
from metrifair.tradeoff.split import HeldOut, Rows
from metrifair.tradeoff.sweep import RowsToTrain, sweep


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
