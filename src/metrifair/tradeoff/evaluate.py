"""A fitted model on held-out data: its point, the groups' score distributions, and unfairness
expected by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.figures.curves import Curves, row_curves
from metrifair.figures.fold_gaps import gap_without_chance
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import RatioRule, impact_ratios
from metrifair.figures.utility import (
    Mark,
    Predictions,
    Rival,
    constant_mark,
    rivals,
)
from metrifair.metrics.pair import between
from metrifair.metrics.registry import plug_in_metric
from metrifair.problem.missing_groups import missing_groups_noted
from metrifair.problem.predictions import class_scores, criterion_scores
from metrifair.problem.tables import CodedColumn
from metrifair.support.arrays import Floats
from metrifair.support.checks import groups_if_accepted
from metrifair.tradeoff.points import FrontierNote, Point
from metrifair.tradeoff.split import HeldOut
from metrifair.training.objective import BINARY, MULTICLASS, scores


def predict(model: Any, part: HeldOut) -> Predictions:
    """Scores and decisions of a model; models that need groups receive them."""

    def call(method: Any) -> NDArray[Any]:
        groups = groups_if_accepted(method, part.sensitive_features)
        with missing_groups_noted():  # by the frontier
            return np.asarray(method(part.X, **groups))

    if part.regression:
        values = call(model.predict).astype(np.float64)
        return Predictions(values, values, "number")
    scheme = part.problem.scheme
    classes = getattr(model, "classes_", None)
    predicted = CodedColumn("the model's prediction", call(model.predict))
    decision = predicted.places(scheme.classes)
    if hasattr(model, "predict_proba"):
        return Predictions(
            class_scores(call(model.predict_proba), scheme, classes=classes),
            decision,
            "probability",
        )
    if hasattr(model, "decision_function"):
        return Predictions(
            class_scores(call(model.decision_function), scheme, classes=classes), decision, "output"
        )
    return Predictions(_indicators(decision, part), decision, "decision")


def _indicators(decision: NDArray[Any], part: HeldOut) -> Floats:
    """Decisions as scores: 1 for the positive of two classes (n,), or for the class that was
    chosen (n, classes).
    """
    scheme = part.problem.scheme
    if len(scheme.classes) <= 2:
        return np.asarray(decision == scheme.positive, dtype=np.float64)
    return np.asarray(decision[:, None] == np.arange(len(scheme.classes)), dtype=np.float64)


class UtilityFigures(NamedTuple):
    """Utilities of a model, each by the name of the figure."""

    values: dict[str, float]
    intervals: dict[str, Interval]
    errors: dict[str, float]
    marks: dict[str, Mark]


def utility_figures(
    predictions: Predictions, part: HeldOut, against: Iterable[Rival]
) -> UtilityFigures:
    """Each utility with its interval and error, and the mark of a model that does not beat the
    constant predictor.
    """
    figures = UtilityFigures({}, {}, {}, {})
    problem = part.problem
    for utility, constant in against:
        estimate = utility.of(predictions, problem, part.X)
        if estimate is None:
            continue
        figures.values[utility.key] = estimate.value
        if (error := estimate.error(problem)) is not None:
            figures.errors[utility.key] = error
        # Neither Wilson's interval nor certificates are valid for weighted samples.
        if problem.weight is None and (interval := utility.interval(estimate, problem)) is not None:
            figures.intervals[utility.key] = interval
        if mark := constant_mark(
            predictions, problem, utility=utility, constant=constant, X=part.X
        ):
            figures.marks[utility.key] = mark
    return figures


def make_point(
    predictions: Predictions,
    part: HeldOut,
    *,
    strength: float,
    seed: int,
    against: Sequence[Rival] | None = None,
) -> Point:
    """Utilities, with intervals unless rows are weighted, and unfairness of a model's predictions.

    ``against`` are the utilities with the best constant predictors, which the point is compared
    with. None: the usual utilities, with the best constants for these rows.
    """
    if not np.isfinite(predictions.score).all():
        return Point(strength, seed, 0.0, 1.0, failed=True)
    if against is None:
        against = rivals(part.problem)
    values, intervals, errors, marks = utility_figures(predictions, part, against)
    accuracy = values.pop("accuracy")
    decided = None
    gaps = distances(scores_to_compare(predictions, part), part)
    if not part.regression:
        if (ratio := _four_fifths(predictions, part)) is not None:
            values["four_fifths"] = ratio
        decision_gaps = distances(decisions_to_compare(predictions, part), part)
        decided = float(decision_gaps.max())
    if (known_gap := _unfairness_of_known_groups(predictions, part)) is not None:
        values["known_unfairness"] = known_gap
    return Point(
        strength,
        seed,
        accuracy,
        float(gaps.max()),
        decided,
        values,
        intervals,
        errors=errors,
        marks=marks,
    )


def _unfairness_of_known_groups(predictions: Predictions, part: HeldOut) -> float | None:
    """The unfairness of scores on the rows with known groups beside probabilities, without the part
    that chance explains; None if they are too few.
    """
    known = part.with_known_groups()
    if known is None or not all(
        min(known.side_sizes(comparison)) >= part.min_rows for comparison in part.comparisons
    ):
        return None
    probabilities = part.problem.probabilities
    assert probabilities is not None
    assert probabilities.known is not None
    values = scores_to_compare(predictions, part)[..., torch.as_tensor(probabilities.known >= 0)]
    sides = known.fold_sides(np.zeros(len(known.problem), dtype=np.int64))
    return gap_without_chance(np.atleast_2d(values.numpy().astype(np.float64)), sides)


def scores_to_compare(predictions: Predictions, part: HeldOut) -> Tensor:
    """The scores that the criterion compares: (n,), or (classes, n)."""
    criterion = part.problem.scheme.criterion
    values = torch.as_tensor(predictions.score)
    if criterion.score != "prediction" and predictions.kind == "output":
        if values.ndim == 1:
            task = BINARY
        else:
            task = MULTICLASS
        values = scores(criterion, task, values, torch.as_tensor(part.problem.targets()))
    elif criterion.score != "prediction":
        loss = None
        if criterion.score == "loss":
            loss = "log_loss"
            if part.regression:
                loss = "squared_error"
        values = torch.as_tensor(
            criterion_scores(criterion, predictions.score, part.problem, loss=loss)
        )
    return values.movedim(-1, 0)


def decisions_to_compare(predictions: Predictions, part: HeldOut) -> Tensor:
    """The decisions that the criterion compares: (n,), or (classes, n)."""
    wrong = predictions.decision != part.labels
    if part.problem.scheme.criterion.score == "loss":
        compared = wrong
    else:
        compared = _indicators(predictions.decision, part).T
    return torch.as_tensor(compared).double()


def distances(values: Tensor, part: HeldOut) -> Tensor:
    """Kolmogorov distances of scores (..., n), of each comparison: (..., comparisons)."""
    metric = plug_in_metric("kolmogorov")
    names = tuple(part.comparisons)
    gaps: Tensor = between(metric, values, part.sides, names=names, reduce="all")
    return gaps


def _four_fifths(predictions: Predictions, part: HeldOut) -> float | None:
    """The smallest share of positive decisions of a group over the largest; None if there is no
    positive class.

    It uses all rows of a group, for every criterion.
    """
    scheme = part.problem.scheme
    weight = part.problem.weight
    if len(scheme.classes) != 2:
        return None
    selected = (predictions.decision == scheme.positive).astype(np.int64)
    ratios = []
    for attribute, groups in part.members.items():
        large = [
            rows for group, rows in groups.items() if (attribute, group) not in part.small_groups
        ]
        if len(large) > 1:
            members = large
        else:
            members = [rows for rows in groups.values() if rows.any()]
        amounts = [
            np.bincount(selected, group if weight is None else weight * group, 2)
            for group in members
        ]
        counts = np.array(amounts, dtype=np.float64).reshape(-1, 2)
        sizes = [round(group.sum()) for group in members]
        ratios.append(impact_ratios(counts, sizes, len(selected), RatioRule()).smallest)
    return min((ratio for ratio in ratios if ratio is not None), default=None)


def score_curves(predictions: Predictions, part: HeldOut) -> Curves:
    """Distribution functions and densities of the scores of each group, of the attribute with the
    largest gap.

    For several classes, of the positive class's probability.
    """
    attribute = next(iter(part.members))
    if len(part.members) > 1:
        gaps = distances(scores_to_compare(predictions, part), part)
        largest = gaps.reshape(-1, len(part.sides)).amax(0)
        worst = int(largest.argmax())
        attribute = tuple(part.comparisons)[worst].attribute
    if predictions.score.ndim == 1:
        line = predictions.score
    else:
        line = predictions.score[:, part.problem.scheme.positive]
    low = float(line.min())
    high = float(line.max())
    if not part.regression and low >= 0 and high <= 1:
        low = 0.0
        high = 1.0
    return row_curves(line, part.members[attribute], (low, high), part.problem.weight)


def small_groups_note(parts: Mapping[str, HeldOut]) -> FrontierNote | None:
    """Groups with few rows in one of these parts ("training", "validation", "test"); None if there
    are none.

    The parts have common comparisons (``with_common_comparisons``).
    """
    small: dict[tuple[str, str, str], dict[str, Any]] = {}
    for rows, part in parts.items():
        for comparison in part.all_comparisons:
            attribute = comparison.attribute
            within = comparison.within
            sizes = part.side_sizes(comparison)
            # a dependence has one side, with all rows
            for group, size in zip(comparison.groups, sizes, strict=False):
                if size < part.min_rows:
                    count = round(float(size))
                    facts = {
                        "group": group,
                        "attribute": attribute,
                        "part": rows,
                        "within": within,
                        "rows": count,
                    }
                    small.setdefault((attribute, within, group), facts)
    if not small:
        return None
    return FrontierNote(
        "small_groups",
        {"groups": list(small.values()), "left_out": not any(map(all_small, parts.values()))},
    )


def all_small(part: HeldOut) -> bool:
    """Whether no comparison has enough rows, so that unfairness is that of small groups."""
    return all(
        key in part.small_elsewhere or min(part.side_sizes(key)) < part.min_rows
        for key in part.comparisons
    )
