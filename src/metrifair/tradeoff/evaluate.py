"""A fitted model on held-out data: its point, the groups' score distributions, and what such data cannot tell."""

from __future__ import annotations

import inspect
from math import sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import mean_absolute_error, r2_score
from torch import Tensor

from metrifair.certificates import dkw_radius
from metrifair.curves import curves_of_rows
from metrifair.errors import DataError
from metrifair.metrics.pair import between
from metrifair.metrics.registry import measured
from metrifair.problem.criteria import BINARY, MULTICLASS, scores
from metrifair.problem.predictions import scores_of
from metrifair.problem.tables import codes
from metrifair.report.frontier.words import small_groups_note
from metrifair.results import Curves, Interval, Point
from metrifair.tradeoff.split import HeldOut

Floats = NDArray[np.float64]
CONFIDENCE = 0.95
_FEWEST_DRAWS, _MOST_DRAWS = 20, 200
_WORK = 5_000_000  # scores that are sorted, about


class Predictions(NamedTuple):
    """What a model says about held-out rows."""

    score: Floats  # (n,): of the positive of two classes, or a number; (n, classes): of each of several
    decision: NDArray[Any]  # codes of the classes; of a regressor, the score
    kind: str  # "number", "probability", "output" (a margin) or "decision"


def predictions(model: Any, part: HeldOut) -> Predictions:
    """Scores and decisions of a model; groups are handed to models that ask for them."""

    def asked(method: Any) -> Any:
        if "sensitive_features" in inspect.signature(method).parameters:
            return method(part.X, sensitive_features=part.sensitive_features)
        return method(part.X)

    if part.regression:
        values = np.asarray(asked(model.predict), dtype=np.float64)
        return Predictions(values, values, "number")
    classes, positive = part.problem.scheme.classes, part.problem.scheme.positive
    decision = codes("what the model predicts", np.asarray(asked(model.predict)), classes)
    if hasattr(model, "predict_proba"):
        probability = np.asarray(asked(model.predict_proba), dtype=np.float64)
        if probability.shape[1] != max(2, len(classes)):
            raise DataError(
                f"the model knows {probability.shape[1]} classes, and y holds the {len(classes)} classes "
                f"{list(classes)}; judge it on rows of all its classes"
            )
        score = probability[:, positive if len(classes) == 2 else 1] if probability.shape[1] == 2 else probability
        return Predictions(score, decision, "probability")
    if hasattr(model, "decision_function"):
        output = np.asarray(asked(model.decision_function), dtype=np.float64)
        return Predictions(-output if output.ndim == 1 and positive == 0 else output, decision, "output")
    return Predictions(_indicators(decision, part), decision, "decision")


def _indicators(decision: NDArray[Any], part: HeldOut) -> Floats:
    """Decisions as scores: 1 for the positive of two classes (n,), or for the class that was chosen (n, classes)."""
    scheme = part.problem.scheme
    if len(scheme.classes) <= 2:
        return np.asarray(decision == scheme.positive, dtype=np.float64)
    return np.asarray(decision[:, None] == np.arange(len(scheme.classes)), dtype=np.float64)


def point_of(model: Any, part: HeldOut, *, strength: float, seed: int) -> Point:
    """Accuracy and unfairness of a model; with intervals, unless rows are weighted."""
    found, problem = predictions(model, part), part.problem
    if not np.isfinite(found.score).all():
        return Point(strength, seed, 0.0, 1.0, failed=True)
    gap = distances_of(_compared(found, part), part)
    intervals = {"unfairness": _certified(gap, part)}
    if part.regression:
        accuracy, intervals["accuracy"] = _r2(part.labels, found.score, problem.weight)
        more = {
            "mean_absolute_error": float(mean_absolute_error(part.labels, found.score, sample_weight=problem.weight))
        }
        decided = None
    else:
        right = found.decision == part.labels
        accuracy, more = float(np.average(right, weights=problem.weight)), _classification_figures(found, part)
        wilson = binomtest(int(right.sum()), len(right)).proportion_ci(CONFIDENCE, method="wilson")
        intervals["accuracy"] = Interval(float(wilson.low), float(wilson.high))
        errors = problem.scheme.criterion.score == "loss"
        compared = right == 0 if errors else _indicators(found.decision, part).T
        decisions = distances_of(torch.as_tensor(compared).double(), part)
        decided, intervals["decision_unfairness"] = float(decisions.max()), _certified(decisions, part)
    if problem.weight is not None:  # neither Wilson's nor what is proven holds for weighted samples
        intervals = {}
    return Point(strength, seed, accuracy, float(gap.max()), decided, more, intervals)


def _compared(found: Predictions, part: HeldOut) -> Tensor:
    """What the criterion compares of a model's scores: (n,), or (classes, n)."""
    criterion, values = part.problem.scheme.criterion, torch.as_tensor(found.score)
    if criterion.score != "prediction" and found.kind == "output":
        task = BINARY if values.ndim == 1 else MULTICLASS
        values = scores(criterion, task, values, part.problem.targets())
    elif criterion.score != "prediction":
        loss = ("squared_error" if part.regression else "log_loss") if criterion.score == "loss" else None
        values = scores_of(criterion, found.score, part.problem, loss=loss)
    return values.movedim(-1, 0)


def distances_of(values: Tensor, part: HeldOut) -> Tensor:
    """Kolmogorov distances of scores (..., n), of each comparison: (..., comparisons)."""
    return between(measured("kolmogorov"), values, part.sides, names=part.problem.comparisons, reduce="all")


def _certified(distances: Tensor, part: HeldOut) -> Interval:
    """Within which the largest of these distances is proven to lie, by the radii of all distribution functions."""
    cdfs, gap = 2 * distances.numel(), float(distances.max())
    radius = max(
        sum(dkw_radius(count, confidence=CONFIDENCE, cdfs=cdfs) for count in side.counts) for side in part.sides
    )
    return Interval(max(0.0, gap - radius), min(1.0, gap + radius))


def _classification_figures(found: Predictions, part: HeldOut) -> dict[str, float]:
    """The area under the curve, the log loss and the four-fifths ratio, as far as there are any.

    The first two by hand: of 500 rows, scikit-learn's checks would take 5 ms a model, a fifth of the whole frontier.
    """
    figures: dict[str, float] = {}
    classes, positive = part.problem.scheme.classes, part.problem.scheme.positive
    weight = np.ones(len(part.labels)) if part.problem.weight is None else part.problem.weight
    # One column of scores for each class that has one, and who is in it.
    score = found.score if found.score.ndim == 2 else found.score[:, None]
    own = part.labels[:, None] == (np.arange(len(classes)) if found.score.ndim == 2 else np.array([positive]))
    several_decided = found.kind == "decision" and len(classes) > 2  # which class was chosen ranks nothing
    if own.any(0).all() and not own.all(0).any() and not several_decided:
        figures["auc"] = float(np.mean([_auc(*column, weight) for column in zip(score.T, own.T, strict=True)]))
    if found.kind == "probability":
        likelihood = score[own] if score.shape[1] > 1 else np.where(own, score, 1 - score)[:, 0]
        loss = -np.log(likelihood.clip(min=np.finfo(np.float64).eps))
        figures["log_loss"] = float(np.average(loss, weights=weight))
    if len(classes) == 2:
        chosen = found.decision == positive
        rates = [
            [float(np.average(chosen[group], weights=weight[group])) for group in groups.values() if group.any()]
            for groups in part.members.values()
        ]
        ratios = [min(own) / max(own) for own in rates if max(own, default=0.0) > 0]
        if ratios:
            figures["four_fifths"] = min(ratios)
    return figures


def _auc(score: Floats, positive: NDArray[np.bool_], weight: Floats) -> float:
    """Share of pairs (positive, negative) that the score puts in order, ties half."""
    place = np.unique(score, return_inverse=True)[1]
    high, low = (np.bincount(place, weight * own) for own in (positive, ~positive))
    return float(high @ (np.cumsum(low) - low / 2) / (high.sum() * low.sum()))


def _r2(y: Floats, prediction: Floats, weight: Floats | None) -> tuple[float, Interval]:
    """R2 and its interval, from the spread of each sample's influence on it; no library has one."""
    if np.ptp(y) == 0:
        return 0.0, Interval(0.0, 0.0)
    value = float(r2_score(y, prediction, sample_weight=weight))
    errors, spread = (y - prediction) ** 2, (y - y.mean()) ** 2
    influence = (errors - (1 - value) * spread) / spread.mean()
    margin = float(NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * influence.std() / sqrt(len(y)))
    return value, Interval(value - margin, value + margin)


def curves_of(model: Any, part: HeldOut) -> Curves:
    """Distribution functions and densities of the scores of each group, of the attribute with the largest gap.

    For several classes, of the positive class's probability.
    """
    found, attribute = predictions(model, part), next(iter(part.members))
    if len(part.members) > 1:
        gaps = distances_of(_compared(found, part), part).reshape(-1, len(part.sides))
        attribute = part.problem.comparisons[int(gaps.amax(0).argmax())].attribute
    line = found.score if found.score.ndim == 1 else found.score[:, part.problem.scheme.positive]
    low, high = (0.0, 1.0) if not part.regression and line.min() >= 0 and line.max() <= 1 else (line.min(), line.max())
    return curves_of_rows(line, part.members[attribute], (float(low), float(high)), part.problem.weight)


def unfairness_by_chance(part: HeldOut, on: str = "scores") -> float:
    """Mean unfairness on these rows of models whose scores, or decisions, have nothing to do with the groups.

    Like the figure itself it is the largest over all comparisons and classes, of which many share rows: so it is drawn,
    with a fixed seed. Scores have no ties and decisions equal shares; with others chance shows less, not more.
    """
    scheme = part.problem.scheme
    classes = len(scheme.classes) if len(scheme.classes) > 2 and scheme.criterion.score != "loss" else 1
    work = classes * sum(sum(side.counts) for side in part.sides)
    draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _WORK // work))
    scores = torch.rand(draws, classes, len(part.problem), generator=torch.Generator().manual_seed(0))
    if classes > 1:  # uniform among all probabilities of several classes
        waiting = -(1 - scores).log()
        scores = waiting / waiting.sum(1, keepdim=True)
    if on == "decisions" and not part.regression:
        scores = (scores >= 0.5 if classes == 1 else scores == scores.amax(1, keepdim=True)).float()
    return float(distances_of(scores, part).amax((1, 2)).mean())


def small_groups(part: HeldOut, rows: str) -> str:
    """Groups with so few of these rows that any figure of theirs may be chance, and what to do; empty if none."""
    return small_groups_note(
        (group, comparison.attribute, rows if comparison.within == "everyone" else f"{rows}, {comparison.within}", size)
        for comparison, side in zip(part.problem.comparisons, part.sides, strict=True)
        for group, size in zip(comparison.groups, side.counts, strict=True)
    )
