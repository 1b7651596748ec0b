"""A fitted model on held-out data: its point, the groups' score distributions, and unfairness
expected by chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.figures.certificates import dkw_radius
from metrifair.figures.curves import Curves, row_curves
from metrifair.figures.fold_gaps import gap_without_chance
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import RatioRule, impact_ratios
from metrifair.figures.utility import (
    CONFIDENCE,
    UTILITIES,
    Mark,
    Predictions,
    Rival,
    Utility,
    constant_mark,
    rivals,
)
from metrifair.metrics.pair import between
from metrifair.metrics.registry import plug_in_metric
from metrifair.problem.predictions import class_scores, criterion_scores
from metrifair.problem.tables import codes
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import groups_if_accepted
from metrifair.support.special import normal_quantile
from metrifair.tradeoff.points import FrontierNote, Job, Point
from metrifair.tradeoff.split import HeldOut
from metrifair.training.objective import BINARY, MULTICLASS, scores

_FEWEST_DRAWS, _MOST_DRAWS = 20, 200
_WORK = 5_000_000  # approximate number of scores to sort
_PERMUTATIONS, _LEVEL = 200, 0.01
_MORE_BIAS = 3.0  # bias of a maximum over the bias that its resamples show; by experiment
_WIDTH = normal_quantile((1 + CONFIDENCE) / 2)


def predict(model: Any, part: HeldOut) -> Predictions:
    """Scores and decisions of a model; models that need groups receive them."""

    def call(method: Any) -> NDArray[Any]:
        return np.asarray(method(part.X, **groups_if_accepted(method, part.sensitive_features)))

    if part.regression:
        values = call(model.predict).astype(np.float64)
        return Predictions(values, values, "number")
    scheme, classes = part.problem.scheme, getattr(model, "classes_", None)
    decision = codes("the model's prediction", call(model.predict), scheme.classes)
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
    figures, problem = UtilityFigures({}, {}, {}, {}), part.problem
    for utility, constant in against:
        estimate = utility.of(predictions, problem, part.X)
        if estimate is None:
            continue
        figures.values[utility.key] = estimate.value
        if (error := estimate.error(problem.weight)) is not None:
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
    certified: bool = True,
) -> Point:
    """Utilities and unfairness of a model's predictions, with intervals.

    Weighted rows have no intervals, and unfairness has none if groups have probabilities, or if
    they are not ``certified``, such as predictions of several models.
    ``against`` are the utilities with the best constant predictors, which the point is compared
    with. None: the usual utilities, with the best constants for these rows.
    """
    if not np.isfinite(predictions.score).all():
        return Point(strength, seed, 0.0, 1.0, failed=True)
    against = rivals(part.problem) if against is None else against
    values, intervals, errors, marks = utility_figures(predictions, part, against)
    accuracy, decided = values.pop("accuracy"), None
    gaps = distances(scores_to_compare(predictions, part), part)
    has_certificates = certified and part.has_certificates
    if has_certificates:
        intervals["unfairness"] = _certified_interval(gaps, part)
    if not part.regression:
        if (ratio := _four_fifths(predictions, part)) is not None:
            values["four_fifths"] = ratio
        decision_gaps = distances(decisions_to_compare(predictions, part), part)
        decided = float(decision_gaps.max())
        if has_certificates:
            intervals["decision_unfairness"] = _certified_interval(decision_gaps, part)
    if (
        known_gap := _unfairness_of_known_groups(predictions, part, certified=certified)
    ) is not None:
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


def _unfairness_of_known_groups(
    predictions: Predictions, part: HeldOut, *, certified: bool
) -> float | None:
    """The unfairness of scores on the rows with known groups beside probabilities; None if they
    are too few. Unless figures are ``certified``, it is without the part that chance explains.
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
    if certified:
        compared = tuple(known.all_comparisons[comparison] for comparison in part.comparisons)
        plug_in = between(plug_in_metric("kolmogorov"), values, compared, reduce="max")
        return float(plug_in.max())
    sides = known.fold_sides(np.zeros(len(known.problem), dtype=np.int64))
    return gap_without_chance(np.atleast_2d(values.numpy().astype(np.float64)), sides)


def scores_to_compare(predictions: Predictions, part: HeldOut) -> Tensor:
    """The scores that the criterion compares: (n,), or (classes, n)."""
    criterion, values = part.problem.scheme.criterion, torch.as_tensor(predictions.score)
    if criterion.score != "prediction" and predictions.kind == "output":
        task = BINARY if values.ndim == 1 else MULTICLASS
        values = scores(criterion, task, values, torch.as_tensor(part.problem.targets()))
    elif criterion.score != "prediction":
        loss = (
            ("squared_error" if part.regression else "log_loss")
            if criterion.score == "loss"
            else None
        )
        values = torch.as_tensor(
            criterion_scores(criterion, predictions.score, part.problem, loss=loss)
        )
    return values.movedim(-1, 0)


def decisions_to_compare(predictions: Predictions, part: HeldOut) -> Tensor:
    """The decisions that the criterion compares: (n,), or (classes, n)."""
    wrong = predictions.decision != part.labels
    compared = (
        wrong
        if part.problem.scheme.criterion.score == "loss"
        else _indicators(predictions.decision, part).T
    )
    return torch.as_tensor(compared).double()


def distances(values: Tensor, part: HeldOut) -> Tensor:
    """Kolmogorov distances of scores (..., n), of each comparison: (..., comparisons)."""
    metric, names = plug_in_metric("kolmogorov"), tuple(part.comparisons)
    gaps: Tensor = between(metric, values, part.sides, names=names, reduce="all")
    return gaps


def _certified_interval(gaps: Tensor, part: HeldOut) -> Interval:
    """The certified interval of the largest of these distances, by the radii of all
    distribution functions.
    """
    cdfs, gap = 2 * gaps.numel(), float(gaps.max())
    radius = max(
        sum(dkw_radius(count, confidence=CONFIDENCE, cdfs=cdfs) for count in side.counts)
        for side in part.sides
    )
    return Interval(max(0.0, gap - radius), min(1.0, gap + radius))


def _four_fifths(predictions: Predictions, part: HeldOut) -> float | None:
    """The smallest share of positive decisions of a group over the largest; None if there is no
    positive class.

    It uses all rows of a group, for every criterion.
    """
    scheme, weight = part.problem.scheme, part.problem.weight
    if len(scheme.classes) != 2:
        return None
    selected, ratios = (predictions.decision == scheme.positive).astype(np.int64), []
    for attribute, groups in part.members.items():
        large = [
            rows for group, rows in groups.items() if (attribute, group) not in part.small_groups
        ]
        members = large if len(large) > 1 else [rows for rows in groups.values() if rows.any()]
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
        gaps = distances(scores_to_compare(predictions, part), part).reshape(-1, len(part.sides))
        attribute = tuple(part.comparisons)[int(gaps.amax(0).argmax())].attribute
    line = (
        predictions.score
        if predictions.score.ndim == 1
        else predictions.score[:, part.problem.scheme.positive]
    )
    low, high = (
        (0.0, 1.0)
        if not part.regression and line.min() >= 0 and line.max() <= 1
        else (line.min(), line.max())
    )
    return row_curves(line, part.members[attribute], (float(low), float(high)), part.problem.weight)


def unfairness_by_chance(part: HeldOut, unfairness_of: str = "scores") -> float:
    """Mean unfairness on these rows of models whose scores, or decisions, are independent of the
    groups.

    It is the largest distance over all comparisons and classes, of which many share rows; so it is
    simulated, with a fixed seed. Scores have no ties and decisions have equal shares: in other
    cases the mean is smaller.
    """
    scheme = part.problem.scheme
    classes = (
        len(scheme.classes) if len(scheme.classes) > 2 and scheme.criterion.score != "loss" else 1
    )
    work = classes * sum(sum(side.counts) for side in part.sides)
    draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _WORK // work))
    scores = torch.rand(
        draws, classes, len(part.problem), generator=torch.Generator().manual_seed(0)
    )
    if classes > 1:  # uniform among all probabilities of several classes
        waiting = -(1 - scores).log()
        scores = waiting / waiting.sum(1, keepdim=True)
    if unfairness_of == "decisions" and not part.regression:
        scores = (scores >= 0.5 if classes == 1 else scores == scores.amax(1, keepdim=True)).float()
    return float(distances(scores, part).amax((1, 2)).mean())


def resampled_unfairness(values: Tensor, part: HeldOut, fold: Integers | None = None) -> Floats:
    """The largest distance of scores (..., n) on rows that are drawn with replacement, with a fixed
    seed: (draws,).

    Rows are drawn within their cell and test ``fold``: the models of the folds are fixed, and their
    rows are not.
    """
    stratum = (
        part.problem.cell if fold is None else part.problem.cell * (int(fold.max()) + 1) + fold
    )
    order, generator = np.argsort(stratum, kind="stable"), np.random.default_rng(0)
    _, first, size = np.unique(stratum[order], return_index=True, return_counts=True)
    start, count = np.repeat(first, size), np.repeat(size, size)
    draws, largest = max(_FEWEST_DRAWS, min(_MOST_DRAWS, 4 * _WORK // len(order))), []
    at_once = max(1, min(draws, _WORK // len(order)))
    for start_draw in range(0, draws, at_once):
        rows = np.empty((min(at_once, draws - start_draw), len(order)), dtype=np.int64)
        rows[:, order] = order[start + (generator.random(rows.shape) * count).astype(np.int64)]
        gaps = distances(values[..., torch.as_tensor(rows)], part)
        largest.append(gaps.movedim(-2, 0).flatten(1).amax(1).numpy())
    return np.concatenate(largest).astype(np.float64)


def resampled_interval(draws: Floats, value: float, *, lowest: float = 0.0) -> Interval:
    """The 95 % interval of a value: 1.96 standard deviations of its resamples on either side, and
    their bias.

    The largest difference of two samples overstates that of their populations. Resamples show about
    a third of this.
    """
    margin, bias = _WIDTH * float(draws.std(ddof=1)), _MORE_BIAS * (float(draws.mean()) - value)
    return Interval(
        max(lowest, value - margin - max(bias, 0.0)), min(1.0, value + margin + max(-bias, 0.0))
    )


def is_overfit(
    inside: Predictions, training: HeldOut, outside: Predictions, part: HeldOut, *, chance: float
) -> bool:
    """Whether unfairness is significantly smaller on the training rows (``inside``) than on a part
    (``outside``).

    A permutation test: rows of both parts change places at random within each cell, 200 times with
    a fixed seed. True if the unfairness of the part exceeds that of the training rows by more than
    ``chance`` (the unfairness expected of a fair model) and by more than in 99 % of the
    permutations. False where groups have probabilities, because cells then contain no rows that
    could change places.
    """
    if part.problem.probabilities is not None:
        return False
    seen, unseen = scores_to_compare(inside, training), scores_to_compare(outside, part)
    gap = float(distances(unseen, part).max() - distances(seen, training).max())
    if gap <= chance:
        return False
    pooled = torch.cat([seen, unseen], -1)
    cell = np.concatenate([training.problem.cell, part.problem.cell])
    place, generator, count = (
        np.argsort(cell, kind="stable"),
        np.random.default_rng(0),
        len(training.problem),
    )
    at_once = max(1, min(_PERMUTATIONS // 8, _WORK // (2 * len(cell))))
    larger, done = 0, 0
    while done < _PERMUTATIONS:
        order = np.empty((at_once, len(cell)), dtype=np.int64)
        for permutation in order:
            permutation[place] = np.lexsort((generator.random(len(cell)), cell))
        mixed = pooled[..., torch.as_tensor(order)]
        first, second = distances(mixed[..., :count], training), distances(mixed[..., count:], part)
        difference = second.movedim(-2, 0).flatten(1).amax(1) - first.movedim(-2, 0).flatten(
            1
        ).amax(1)
        larger, done = larger + int((difference >= gap).sum()), done + at_once
        if (1 + larger) / (1 + _PERMUTATIONS) > _LEVEL:
            return False
    return True


def small_groups_note(parts: Mapping[str, HeldOut]) -> FrontierNote | None:
    """Groups with few rows in one of these parts ("training", "validation", "test"); None if there
    are none.

    The parts have common comparisons (``with_common_comparisons``).
    """
    small: dict[tuple[str, str, str], dict[str, Any]] = {}
    for rows, part in parts.items():
        for comparison in part.all_comparisons:
            attribute, within = comparison.attribute, comparison.within
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


@dataclass(frozen=True)
class GroupPerformance:
    """Figures of a model within one group."""

    attribute: str
    group: str
    rows: int
    figures: Mapping[str, float | None]  # by name; None if the rows are too few to determine it


@dataclass(frozen=True)
class Evaluation:
    """A model on held-out rows, beside its training rows."""

    point: Point
    training: Point
    chance: float  # mean unfairness of the scores on so few rows if groups have equal distributions
    # unfairness and chance with small groups; None: none was left out
    with_small: Mapping[str, float] | None
    comparisons: int  # behind the unfairness
    constant: Point  # the best constant predictor, on the held-out rows
    constant_value: Any  # its prediction
    groups: tuple[GroupPerformance, ...]


def performance_by_group(predictions: Predictions, part: HeldOut) -> tuple[GroupPerformance, ...]:
    """The figures of every group of every attribute, in the order of its names.

    Of two classes: base rate (share of the positive label), mean score, decision rate (share of
    positive decisions), accuracy and AUC; of more, accuracy and AUC; of numbers, mean outcome, mean
    prediction and R2.
    """
    return tuple(
        GroupPerformance(
            attribute,
            group,
            round(float(members.sum())),
            _group_figures(predictions, part, members),
        )
        for attribute, groups in part.members.items()
        for group, members in groups.items()
    )


def _group_figures(
    predictions: Predictions, part: HeldOut, members: NDArray[Any]
) -> dict[str, float | None]:
    names = ("r2",) if part.regression else ("accuracy", "auc")
    if not members.any():
        return dict.fromkeys(names)
    rows = np.flatnonzero(members)
    problem = part.problem.take(rows)
    if part.problem.probabilities is not None:
        problem = replace(
            problem, weight=members[rows] * (1.0 if problem.weight is None else problem.weight)
        )
    inside = Predictions(predictions.score[rows], predictions.decision[rows], predictions.kind)
    values: dict[str, Any] = {}
    if part.regression:
        values = {"mean_outcome": problem.labels, "mean_prediction": inside.score}
    elif len(problem.scheme.classes) == 2:
        selected = inside.decision == problem.scheme.positive
        values = {
            "base_rate": problem.is_positive,
            "mean_score": inside.score,
            "decision_rate": selected,
        }
    figures: dict[str, float | None] = {
        name: float(np.average(column, weights=problem.weight)) for name, column in values.items()
    }
    if problem.probabilities is not None and problem.probabilities.labels is None:
        # they use labels
        return figures | dict.fromkeys((*names, *({"base_rate", "mean_outcome"} & set(values))))
    for name in names:
        estimate = UTILITIES[name].of(inside, problem)
        figures[name] = None if estimate is None else estimate.value
    return figures


def evaluate_predictions(
    outside: Predictions,
    inside: Predictions,
    held_out: HeldOut,
    training: HeldOut,
    *,
    job: Job,
    utility: Utility | None = None,
    fold: Integers | None = None,
) -> Evaluation:
    """The figures of a model's predictions for held-out rows, beside those for its training rows.

    Both parts have common comparisons. ``utility``, if it is not accuracy, is one more figure, and
    the constant predictor is the best by it. ``fold`` is that of each row, where models of
    other folds predicted it.
    """
    more = () if utility is None else (utility,)
    against = rivals(training.problem, *more, X=training.X)
    chance = unfairness_by_chance(held_out)

    def point(predictions: Predictions, part: HeldOut) -> Point:
        return make_point(predictions, part, strength=job.value, seed=job.seed, against=against)

    figures = point(outside, held_out)
    if fold is not None and not figures.failed:
        figures = _with_resampled_intervals(figures, outside, held_out, fold)
    if not figures.failed and is_overfit(inside, training, outside, held_out, chance=chance):
        figures = replace(figures, overfit=True)
    constant = next(
        (rival.constant for rival in against if rival.utility == utility), against[0].constant
    )
    all_groups = replace(held_out, min_rows=1, small_elsewhere=frozenset())
    with_small = None
    if len(all_groups.comparisons) > len(held_out.comparisons) and not figures.failed:
        gap = float(distances(scores_to_compare(outside, all_groups), all_groups).max())
        with_small = {"unfairness": gap, "chance": unfairness_by_chance(all_groups)}
    return Evaluation(
        point=figures,
        training=point(inside, training),
        chance=chance,
        with_small=with_small,
        comparisons=len(held_out.comparisons),
        constant=point(constant.predictions(len(held_out.problem)), held_out),
        constant_value=constant.value,
        groups=performance_by_group(outside, held_out),
    )


def _with_resampled_intervals(
    figures: Point, predictions: Predictions, part: HeldOut, fold: Integers
) -> Point:
    """The figures with intervals of unfairness by resampling, where models of folds predicted."""
    if not part.has_certificates:
        return figures
    compared = {"unfairness": scores_to_compare}
    if figures.decision_unfairness is not None:
        compared["decision_unfairness"] = decisions_to_compare
    intervals = {}
    for name, values in compared.items():
        draws = resampled_unfairness(values(predictions, part), part, fold)
        value = figures.figure(name)
        assert value is not None
        intervals[name] = resampled_interval(draws, value)
    return replace(figures, intervals={**figures.intervals, **intervals})
