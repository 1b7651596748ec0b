"""Models of K folds: what each predicts for the rows left out, and how it fits its own rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from metrifair.errors import DataError, ModelFileError
from metrifair.figures.fold_gaps import FoldSides, gap_without_chance
from metrifair.figures.utility import Predictions
from metrifair.saving.modelfile import Content, from_bytes, to_bytes
from metrifair.saving.records import in_one_line
from metrifair.support.arrays import Floats, Integers
from metrifair.tradeoff.configurations import lines
from metrifair.tradeoff.evaluate import predict
from metrifair.tradeoff.ledger import Entry, Ledger
from metrifair.tradeoff.points import Job
from metrifair.tradeoff.split import HeldOut
from metrifair.tradeoff.sweep import needs_group

_CLASS_KINDS = ("probability", "output", "decision")
_KIND = "predictions"  # of a ledger's bytes


class TrainingFit(NamedTuple):
    """How a model fits its own training rows."""

    gap: float  # without chance
    risk: float  # share of wrong decisions, or mean squared error of probabilities or numbers
    spread: float  # standard deviation of the scores
    # standard errors of risk and spread
    risk_error: float
    spread_error: float


class FoldResult(NamedTuple):
    """One configuration in one fold; without predictions, training failed."""

    job: Job
    predictions: Predictions | None
    fit: TrainingFit | None
    needs_group: bool = False


@dataclass(frozen=True, eq=False)
class FoldEvaluator:
    """Evaluates models that were trained on some rows, on these rows and on those left out."""

    left_out: HeldOut
    training: HeldOut
    sides: FoldSides  # of the training rows
    unfairness_of: str

    def __call__(self, model: Any, job: Job) -> FoldResult:
        """The predictions of a model; None is one whose training failed."""
        if model is None:
            return FoldResult(job, None, None)
        predictions = predict(model, self.left_out)
        if not np.isfinite(predictions.score).all():
            return FoldResult(job, None, None)
        inside = predict(model, self.training)
        fit = training_fit(inside, self.training, self.sides, self.unfairness_of)
        return FoldResult(job, predictions, fit, needs_group(model))


def training_fit(
    predictions: Predictions, part: HeldOut, sides: FoldSides, unfairness_of: str
) -> TrainingFit:
    """The fit of a model to its training rows, by its predictions for them."""
    losses = _losses(predictions, part)
    weight = part.problem.weight
    rows = len(losses)
    score = predictions.score.reshape(rows, -1)
    off = score - np.average(score, axis=0, weights=weight)
    variances = np.average(off**2, axis=0, weights=weight)
    spread = sqrt(float(variances.mean()))
    spread_error = 0.0
    if spread > 0:
        # The standard error of a standard deviation, from the fourth moment.
        fourth = np.average(off**4, axis=0, weights=weight)
        variance_of_squares = float((fourth - variances**2).mean())
        noise = sqrt(max(0.0, variance_of_squares) / rows)
        spread_error = noise / (2 * spread)
    compared = lines(predictions, part, unfairness_of)
    risk = np.average(losses, weights=weight)
    return TrainingFit(
        gap=gap_without_chance(compared, sides),
        risk=float(risk),
        spread=spread,
        risk_error=float(losses.std()) / sqrt(rows),
        spread_error=spread_error,
    )


def _losses(predictions: Predictions, part: HeldOut) -> Floats:
    """The loss of each row."""
    if part.regression:
        squared: Floats = (part.labels - predictions.score) ** 2
        return squared
    if predictions.kind != "probability":
        return np.asarray(predictions.decision != part.labels, dtype=np.float64)
    scheme = part.problem.scheme
    if predictions.score.ndim == 1:
        brier: Floats = (predictions.score - (part.labels == scheme.positive)) ** 2
        return brier
    labels = part.labels[:, None] == np.arange(predictions.score.shape[1])
    return np.asarray(((predictions.score - labels) ** 2).sum(axis=1), dtype=np.float64)


class FoldLedger:
    """Stores the predictions of fold models, so that an interrupted search goes on.

    ``run`` names everything that they depend on, except for the values and seeds of the jobs.
    ``rows`` and ``classes`` (0: numbers are predicted) say what predictions of a fold look like.
    """

    def __init__(self, path: str | Path, run: str, *, rows: int, classes: int) -> None:
        self._ledger = Ledger(path, run)
        self._rows = rows
        self._classes = classes

    def results(self, jobs: Sequence[Job]) -> dict[Job, FoldResult]:
        """The results of these jobs that are stored."""
        finished = self._ledger.finished()
        results = {}
        for job in jobs:
            if job.name in finished:
                result = _read(finished[job.name], job)
                results[job] = self._checked(result)
        return results

    def _checked(self, result: FoldResult) -> FoldResult:
        """The result, if its predictions can be those of this fold."""
        if result.predictions is None:
            return result
        score, decision, kind = result.predictions
        shape: tuple[int, ...] = (self._rows,)
        is_whole = decision.shape == shape
        if self._classes > 2:
            shape = (self._rows, self._classes)
        is_whole &= score.shape == shape
        is_known = kind == "number"
        if self._classes:
            is_known = kind in _CLASS_KINDS
            is_known &= bool((decision >= 0).all())
            is_known &= bool((decision < self._classes).all())
        if not (is_whole and is_known and np.isfinite(score).all()):
            raise DataError(
                "the ledger has predictions that are not of this fold; name a new ledger"
            )
        return result

    def add(self, results: Sequence[FoldResult]) -> None:
        """Store results, all of them or none."""
        self._ledger.add({result.job.name: _entry(result) for result in results})


def _entry(result: FoldResult) -> Entry:
    predictions = result.predictions
    if predictions is None or result.fit is None:
        return Entry({"failed": True})
    record = {
        "failed": False,
        "kind": predictions.kind,
        "fit": list(result.fit),
        "needs_group": result.needs_group,
    }
    arrays = {
        "score": np.ascontiguousarray(predictions.score, dtype=np.float64),
        "decision": np.ascontiguousarray(predictions.decision, dtype=np.float64),
    }
    content = to_bytes(Content(_KIND, {}, arrays))
    return Entry(record, content)


def _read(entry: Entry, job: Job) -> FoldResult:
    """The result of an entry that was stored; anything else in a ledger is a DataError."""
    try:
        if entry.record["failed"]:
            return FoldResult(job, None, None)
        content = from_bytes(entry.content or b"")
        kind = str(entry.record["kind"])
        score = content.arrays["score"]
        decision = content.arrays["decision"]
        if kind != "number":
            decision = decision.astype(np.int64)
        fit = TrainingFit(*map(float, entry.record["fit"]))
        group = bool(entry.record["needs_group"])
        predictions = Predictions(score, decision, kind)
        return FoldResult(job, predictions, fit, group)
    except (KeyError, TypeError, ValueError, OverflowError, ModelFileError) as error:
        raise DataError(
            f"the ledger has a record that is not from a sweep ({in_one_line(error)}); name a new ledger"
        ) from error


def pooled(parts: Sequence[Predictions], rows: Sequence[Integers]) -> Predictions:
    """The predictions for several parts of the rows, in the order of the rows' numbers."""
    joined = Predictions.joined(parts)
    order = np.argsort(np.concatenate(rows))
    return Predictions(joined.score[order], joined.decision[order], joined.kind)


_SPREADS = 4.0
_ERRORS = 2.0


def resembles(model: TrainingFit, folds: Sequence[TrainingFit], gap_error: float) -> bool:
    """Whether a model of all rows is like its fold models, on their own training rows each.

    Gap, risk and spread of scores lie within four standard deviations of the folds from their
    mean, or within two standard errors. Constant fold models, for instance, say nothing of a model
    that is not constant.

    >>> folds = [TrainingFit(0.0, 0.25, 0.0, 0.01, 0.0)] * 5
    >>> resembles(TrainingFit(0.35, 0.16, 0.2, 0.01, 0.01), folds, gap_error=0.0)
    False
    >>> resembles(TrainingFit(0.0, 0.26, 0.0, 0.01, 0.0), folds, gap_error=0.0)
    True
    """
    errors = (gap_error, folds[0].risk_error, folds[0].spread_error)
    for place, error in enumerate(errors):
        values = [fold[place] for fold in folds]
        among_folds = float(np.std(values, ddof=1))
        tolerance = max(_SPREADS * among_folds, _ERRORS * error)
        difference = model[place] - float(np.mean(values))
        if abs(difference) > tolerance + 1e-9:
            return False
    return True
