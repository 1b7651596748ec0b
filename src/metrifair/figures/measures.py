"""How each utility is measured: predictions and outcomes to a value, with each row's influence on it."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from metrifair.errors import DataError
from metrifair.problem.problem import Problem
from metrifair.problem.tables import Table

Floats: TypeAlias = NDArray[np.float64]


class Predictions(NamedTuple):
    """What a model says about some rows."""

    score: Floats  # (n,): of the positive of two classes, or a number; (n, classes): of each of several
    decision: NDArray[Any]  # codes of the classes; of a regressor, the score
    kind: str  # "number", "probability", "output" (a margin) or "decision"

    @classmethod
    def joined(cls, parts: Sequence[Predictions]) -> Predictions:
        """Those of several parts of the rows, one after the other."""
        score, decision, kinds = zip(*parts, strict=True)
        return cls(np.concatenate(score), np.concatenate(decision), kinds[0])


class Measured(NamedTuple):
    """A utility on some rows, with what each of them contributes to its error."""

    value: float
    influence: Floats | None = None  # (n,), of mean 0: the value is the truth plus their mean; None: not known
    chance: float = 0.0  # standard error for a model that knows nothing, where that is not the influences'

    def error(self, weight: Floats | None = None) -> float | None:
        """Standard error of the value; None where it is not known."""
        return None if self.influence is None else error_of(self.influence, weight)


def error_of(influence: Floats, weight: Floats | None) -> float:
    """Standard error of a mean of such influences."""
    if weight is None:
        return float(np.sqrt((influence**2).sum()) / len(influence))
    return float(np.sqrt(((weight * influence) ** 2).sum()) / weight.sum())


def mean(each: Floats, problem: Problem) -> Measured:
    """The mean of what each row contributes."""
    value = float(np.average(each, weights=problem.weight))
    return Measured(value, each - value)


def accuracy(found: Predictions, problem: Problem, _: Any) -> Measured:
    """Share of right decisions."""
    return mean((found.decision == problem.labels).astype(np.float64), problem)


def balanced_accuracy(found: Predictions, problem: Problem, _: Any) -> Measured:
    """Mean over the classes of the share of their rows that are decided rightly."""
    labels, weight = _labels(problem), _weights(problem)
    right = (found.decision == labels).astype(np.float64)
    rows = np.bincount(labels, weight, minlength=len(problem.scheme.classes))
    there = rows > 0
    rates = np.divide(
        np.bincount(labels, weight * right, minlength=len(rows)), rows, where=there, out=np.zeros_like(rows)
    )
    share = there.sum() * rows[labels] / weight.sum()
    return Measured(float(rates[there].mean()), (right - rates[labels]) / share)


def _columns(found: Predictions, problem: Problem) -> tuple[Floats, NDArray[np.bool_]]:
    """One column of scores for each class that has one, and who is in it."""
    score = found.score if found.score.ndim == 2 else found.score[:, None]
    classes = np.arange(score.shape[1]) if found.score.ndim == 2 else np.array([problem.scheme.positive])
    return score, _labels(problem)[:, None] == classes


def auc(found: Predictions, problem: Problem, _: Any) -> Measured | None:
    """Share of pairs (in the class, not in it) that the score puts in order, ties half; mean over the classes.

    With the influences of DeLong, DeLong and Clarke-Pearson (1988), and Mann and Whitney's error under chance.
    """
    score, own = _columns(found, problem)
    if not own.any(0).all() or own.all(0).any() or (found.kind == "decision" and score.shape[1] > 1):
        return None
    weight, parts = _weights(problem), []
    for column, positive in zip(score.T, own.T, strict=True):
        place = np.unique(column, return_inverse=True)[1]
        high, low = (np.bincount(place, weight * side) for side in (positive, ~positive))
        above = (np.cumsum(low) - low / 2) / low.sum()  # share of the others that each place beats
        below = (high.sum() - np.cumsum(high) + high / 2) / high.sum()
        value = float(high @ above / high.sum())
        shares = np.where(positive, high.sum(), low.sum()) / weight.sum()
        influence = (np.where(positive, above[place], below[place]) - value) / shares
        first, second = (weight[side].sum() ** 2 / (weight[side] ** 2).sum() for side in (positive, ~positive))
        parts.append(Measured(value, influence, sqrt((first + second + 1) / (12 * first * second))))
    values, influences, chances = zip(*parts, strict=True)
    return Measured(float(np.mean(values)), np.mean(influences, axis=0), max(chances))


def log_loss(found: Predictions, problem: Problem, _: Any) -> Measured | None:
    """Mean of minus the logarithm of the probability of what happened.

    By hand, as all of these: of 500 rows, scikit-learn's checks would take 5 ms a model, a fifth of a frontier.
    """
    if found.kind != "probability":
        return None
    score, own = _columns(found, problem)
    likelihood = score[own] if score.shape[1] > 1 else np.where(own, score, 1 - score)[:, 0]
    return mean(-np.log(likelihood.clip(min=np.finfo(np.float64).eps)), problem)


def brier(found: Predictions, problem: Problem, _: Any) -> Measured | None:
    """Mean squared distance of the probabilities from what happened; of two classes, of the positive one's."""
    if found.kind != "probability":
        return None
    score, own = _columns(found, problem)
    return mean(((score - own) ** 2).sum(1), problem)


def r2(found: Predictions, problem: Problem, _: Any) -> Measured:
    """R2, with the influence of each row on it; 0 where the outcomes are all equal."""
    labels, weight = _labels(problem), _weights(problem)
    if np.ptp(labels) == 0:
        return Measured(0.0, np.zeros(len(labels)))
    errors, spread = (labels - found.score) ** 2, (labels - np.average(labels, weights=weight)) ** 2
    share = float(np.average(errors, weights=weight) / np.average(spread, weights=weight))
    return Measured(1 - share, (share * spread - errors) / np.average(spread, weights=weight))


def absolute_error(found: Predictions, problem: Problem, _: Any) -> Measured:
    """Mean distance of the predictions from what happened."""
    return mean(np.abs(_labels(problem) - found.score), problem)


def squared_error(found: Predictions, problem: Problem, _: Any) -> Measured:
    """Mean squared distance of the predictions from what happened."""
    return mean((_labels(problem) - found.score) ** 2, problem)


def _labels(problem: Problem) -> NDArray[Any]:
    if problem.labels is None:
        raise DataError("models are judged by their outcomes; pass y")
    return problem.labels


def _weights(problem: Problem) -> Floats:
    return np.ones(len(problem)) if problem.weight is None else problem.weight


class Predicted(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted model that has predicted already, for scorers."""

    def __init__(self, found: Predictions, problem: Problem) -> None:
        self.found, self.problem = found, problem

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Table) -> NDArray[Any]:  # noqa: ARG002  # a scorer hands over what was predicted for
        """What was predicted."""
        return self.found.score


class Decided(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The same of a classifier; it has only those methods that the model's answers come from.

    ``coded``: of two classes the positive one is called 1 and the other 0.
    """

    def __init__(self, found: Predictions, problem: Problem, *, coded: bool = False) -> None:
        self.found, self.problem, self.coded = found, problem, coded
        self.classes_ = np.array([0, 1]) if coded else np.asarray(problem.scheme.classes)
        self.positive = 1 if coded else problem.scheme.positive

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Table) -> NDArray[Any]:  # noqa: ARG002
        """What was decided."""
        codes = self.found.decision
        found: NDArray[Any] = self.classes_[(codes == self.problem.scheme.positive) * 1 if self.coded else codes]
        return found

    @available_if(lambda self: self.found.kind == "probability")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Table) -> Floats:  # noqa: ARG002
        """Probabilities (n, classes)."""
        score = self.found.score
        if score.ndim == 2:
            return score
        columns = [1 - score, score] if self.positive else [score, 1 - score]
        return np.stack(columns, axis=1)

    @available_if(lambda self: self.found.kind == "output")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Table) -> Floats:  # noqa: ARG002
        """Margins, of two classes those of the second."""
        score = self.found.score
        return -score if score.ndim == 1 and self.positive == 0 else score
