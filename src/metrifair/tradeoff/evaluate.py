"""A fitted model on held-out data: its point, the groups' score distributions, and unfairness expected by chance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.errors import DataError
from metrifair.figures.certificates import dkw_radius
from metrifair.figures.curves import Curves, curves_of_rows
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import RatioRule, ratios_of
from metrifair.figures.utility import CONFIDENCE, UTILITIES, Mark, Predictions, Rival, Utility, constant_mark, rivals
from metrifair.metrics.pair import between
from metrifair.metrics.registry import measured
from metrifair.problem.predictions import class_scores, scores_of
from metrifair.problem.tables import codes
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import groups_if_asked
from metrifair.support.special import normal_quantile
from metrifair.tradeoff.points import FrontierNote, Job, Outcome, Point
from metrifair.tradeoff.split import HeldOut
from metrifair.tradeoff.sweep import needs_group
from metrifair.training.objective import BINARY, MULTICLASS, scores

_FEWEST_DRAWS, _MOST_DRAWS = 20, 200
_WORK = 5_000_000  # scores that are sorted, about
_EXCHANGES, _CHANCE = 200, 0.01
_MORE_BIAS = 3.0  # bias of a maximum over the bias that its resamples show; by experiment
_WIDTH = normal_quantile((1 + CONFIDENCE) / 2)


def predictions(model: Any, part: HeldOut) -> Predictions:
    """Scores and decisions of a model; models that need groups receive them."""

    def call(method: Any) -> NDArray[Any]:
        return np.asarray(method(part.X, **groups_if_asked(method, part.sensitive_features)))

    if part.regression:
        values = call(model.predict).astype(np.float64)
        return Predictions(values, values, "number")
    scheme, classes = part.problem.scheme, getattr(model, "classes_", None)
    decision = codes("the model's prediction", call(model.predict), scheme.classes)
    if hasattr(model, "predict_proba"):
        return Predictions(class_scores(call(model.predict_proba), scheme, classes=classes), decision, "probability")
    if hasattr(model, "decision_function"):
        return Predictions(class_scores(call(model.decision_function), scheme, classes=classes), decision, "output")
    return Predictions(_indicators(decision, part), decision, "decision")


def _indicators(decision: NDArray[Any], part: HeldOut) -> Floats:
    """Decisions as scores: 1 for the positive of two classes (n,), or for the class that was chosen (n, classes)."""
    scheme = part.problem.scheme
    if len(scheme.classes) <= 2:
        return np.asarray(decision == scheme.positive, dtype=np.float64)
    return np.asarray(decision[:, None] == np.arange(len(scheme.classes)), dtype=np.float64)


class Worth(NamedTuple):
    """Utilities of a model, each by the name of the figure."""

    values: dict[str, float]
    intervals: dict[str, Interval]
    errors: dict[str, float]
    marks: dict[str, Mark]


def worth_of(found: Predictions, part: HeldOut, against: Iterable[Rival]) -> Worth:
    """Each utility with its interval and error, and the mark of a model that does not beat the constant predictor."""
    worth, problem = Worth({}, {}, {}, {}), part.problem
    for utility, constant in against:
        measured = utility.of(found, problem, part.X)
        if measured is None:
            continue
        worth.values[utility.key] = measured.value
        if (error := measured.error(problem.weight)) is not None:
            worth.errors[utility.key] = error
        # Neither Wilson's interval nor certificates are valid for weighted samples.
        if problem.weight is None and (interval := utility.interval(measured, problem)) is not None:
            worth.intervals[utility.key] = interval
        if mark := constant_mark(found, problem, utility=utility, constant=constant, X=part.X):
            worth.marks[utility.key] = mark
    return worth


def point_of(
    found: Predictions, part: HeldOut, *, strength: float, seed: int, against: Sequence[Rival] | None = None
) -> Point:
    """Utilities and unfairness of a model's predictions, with intervals.

    Weighted rows have no intervals, and unfairness has none if groups have probabilities.
    ``against`` are the utilities with the constants to beat, by which the point is marked; None: the usual ones, with
    the constants of these very rows.
    """
    problem = part.problem
    if not np.isfinite(found.score).all():
        return Point(strength, seed, 0.0, 1.0, failed=True)
    values, intervals, errors, marks = worth_of(found, part, rivals(problem) if against is None else against)
    accuracy, gap, decided = values.pop("accuracy"), distances_of(_compared(found, part), part), None
    proven = {"unfairness": _certified(gap, part)} if part.has_certificates else {}
    if not part.regression:
        if (ratio := _four_fifths(found, part)) is not None:
            values["four_fifths"] = ratio
        decisions = distances_of(_decided(found, part), part)
        decided = float(decisions.max())
        if part.has_certificates:
            proven["decision_unfairness"] = _certified(decisions, part)
    if (gap_of_known := _unfairness_of_known_groups(found, part)) is not None:
        values["known_unfairness"] = gap_of_known
    known = {**intervals, **proven}
    return Point(strength, seed, accuracy, float(gap.max()), decided, values, known, errors=errors, marks=marks)


def _unfairness_of_known_groups(found: Predictions, part: HeldOut) -> float | None:
    """The unfairness of scores of the rows whose true groups are known beside probabilities; None: of too few rows."""
    known = part.with_known_groups()
    if known is None or not all(min(known.sizes_of(one)) >= part.least for one in part.compared):
        return None
    probabilities = part.problem.probabilities
    assert probabilities is not None
    assert probabilities.known is not None
    values = _compared(found, part)[..., torch.as_tensor(probabilities.known >= 0)]
    sides = tuple(known.everyone[one] for one in part.compared)
    return float(between(measured("kolmogorov"), values, sides, reduce="max").max())


def _compared(found: Predictions, part: HeldOut) -> Tensor:
    """The scores that the criterion compares: (n,), or (classes, n)."""
    criterion, values = part.problem.scheme.criterion, torch.as_tensor(found.score)
    if criterion.score != "prediction" and found.kind == "output":
        task = BINARY if values.ndim == 1 else MULTICLASS
        values = scores(criterion, task, values, torch.as_tensor(part.problem.targets()))
    elif criterion.score != "prediction":
        loss = ("squared_error" if part.regression else "log_loss") if criterion.score == "loss" else None
        values = torch.as_tensor(scores_of(criterion, found.score, part.problem, loss=loss))
    return values.movedim(-1, 0)


def _decided(found: Predictions, part: HeldOut) -> Tensor:
    """The decisions that the criterion compares: (n,), or (classes, n)."""
    wrong = found.decision != part.labels
    compared = wrong if part.problem.scheme.criterion.score == "loss" else _indicators(found.decision, part).T
    return torch.as_tensor(compared).double()


def distances_of(values: Tensor, part: HeldOut) -> Tensor:
    """Kolmogorov distances of scores (..., n), of each comparison: (..., comparisons)."""
    found: Tensor = between(measured("kolmogorov"), values, part.sides, names=tuple(part.compared), reduce="all")
    return found


def _certified(distances: Tensor, part: HeldOut) -> Interval:
    """Within which the largest of these distances is proven to lie, by the radii of all distribution functions."""
    cdfs, gap = 2 * distances.numel(), float(distances.max())
    radius = max(
        sum(dkw_radius(count, confidence=CONFIDENCE, cdfs=cdfs) for count in side.counts) for side in part.sides
    )
    return Interval(max(0.0, gap - radius), min(1.0, gap + radius))


def _four_fifths(found: Predictions, part: HeldOut) -> float | None:
    """The smallest share of positive decisions of a group over the largest; None if there is no positive class.

    It uses all rows of a group, for every criterion.
    """
    scheme, weight = part.problem.scheme, part.problem.weight
    if len(scheme.classes) != 2:
        return None
    chosen, ratios = (found.decision == scheme.positive).astype(np.int64), []
    for attribute, groups in part.members.items():
        large = [own for group, own in groups.items() if (attribute, group) not in part.small]
        own = large if len(large) > 1 else [own for own in groups.values() if own.any()]
        amounts = [np.bincount(chosen, group if weight is None else weight * group, 2) for group in own]
        counts = np.array(amounts, dtype=np.float64).reshape(-1, 2)
        ratios.append(ratios_of(counts, [round(group.sum()) for group in own], len(chosen), RatioRule()).smallest)
    return min((ratio for ratio in ratios if ratio is not None), default=None)


def curves_of(found: Predictions, part: HeldOut) -> Curves:
    """Distribution functions and densities of the scores of each group, of the attribute with the largest gap.

    For several classes, of the positive class's probability.
    """
    attribute = next(iter(part.members))
    if len(part.members) > 1:
        gaps = distances_of(_compared(found, part), part).reshape(-1, len(part.sides))
        attribute = tuple(part.compared)[int(gaps.amax(0).argmax())].attribute
    line = found.score if found.score.ndim == 1 else found.score[:, part.problem.scheme.positive]
    low, high = (0.0, 1.0) if not part.regression and line.min() >= 0 and line.max() <= 1 else (line.min(), line.max())
    return curves_of_rows(line, part.members[attribute], (float(low), float(high)), part.problem.weight)


def unfairness_by_chance(part: HeldOut, unfairness_of: str = "scores") -> float:
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
    if unfairness_of == "decisions" and not part.regression:
        scores = (scores >= 0.5 if classes == 1 else scores == scores.amax(1, keepdim=True)).float()
    return float(distances_of(scores, part).amax((1, 2)).mean())


def resampled_unfairness(values: Tensor, part: HeldOut, fold: Integers | None = None) -> Floats:
    """The largest distance of scores (..., n) on rows that are drawn with replacement, with a fixed seed: (draws,).

    Rows are drawn within their cell and test ``fold``: the models of the folds are given, and their rows are not.
    """
    stratum = part.problem.cell if fold is None else part.problem.cell * (int(fold.max()) + 1) + fold
    order, generator = np.argsort(stratum, kind="stable"), np.random.default_rng(0)
    _, first, size = np.unique(stratum[order], return_index=True, return_counts=True)
    start, count = np.repeat(first, size), np.repeat(size, size)
    draws, found = max(_FEWEST_DRAWS, min(_MOST_DRAWS, 4 * _WORK // len(order))), []
    at_once = max(1, min(draws, _WORK // len(order)))
    for begun in range(0, draws, at_once):
        drawn = np.empty((min(at_once, draws - begun), len(order)), dtype=np.int64)
        drawn[:, order] = order[start + (generator.random(drawn.shape) * count).astype(np.int64)]
        distances = distances_of(values[..., torch.as_tensor(drawn)], part)
        found.append(distances.movedim(-2, 0).flatten(1).amax(1).numpy())
    return np.concatenate(found).astype(np.float64)


def resampled_interval(drawn: Floats, value: float, *, least: float = 0.0) -> Interval:
    """The 95 % interval of a value: 1.96 standard deviations of its resamples on either side, and their bias.

    The largest difference of two samples overstates that of their populations. Resamples show about a third of this.
    """
    margin, bias = _WIDTH * float(drawn.std(ddof=1)), _MORE_BIAS * (float(drawn.mean()) - value)
    return Interval(max(least, value - margin - max(bias, 0.0)), min(1.0, value + margin + max(-bias, 0.0)))


def is_overfit(trained: Predictions, training: HeldOut, found: Predictions, part: HeldOut, *, least: float) -> bool:
    """Whether scores lie closer together on the rows that a model was trained on, by more than chance.

    Rows of either part change places at random within each cell, 200 times with a fixed seed: where the model treats
    both parts alike, that changes nothing but by chance. True if the unfairness here exceeds that on training rows
    by more than ``least`` (the unfairness that chance alone would show) and by more than in 99 % of the exchanges.
    Where groups have probabilities, no cells hold rows that could change places: False.
    """
    if part.problem.probabilities is not None:
        return False
    own, other = _compared(trained, training), _compared(found, part)
    gap = float(distances_of(other, part).max() - distances_of(own, training).max())
    if gap <= least:
        return False
    pooled = torch.cat([own, other], -1)
    cell = np.concatenate([training.problem.cell, part.problem.cell])
    place, generator, count = np.argsort(cell, kind="stable"), np.random.default_rng(0), len(training.problem)
    at_once = max(1, min(_EXCHANGES // 8, _WORK // (2 * len(cell))))
    larger, done = 0, 0
    while done < _EXCHANGES:
        order = np.empty((at_once, len(cell)), dtype=np.int64)
        for one in order:
            one[place] = np.lexsort((generator.random(len(cell)), cell))
        mixed = pooled[..., torch.as_tensor(order)]
        first, second = distances_of(mixed[..., :count], training), distances_of(mixed[..., count:], part)
        apart = second.movedim(-2, 0).flatten(1).amax(1) - first.movedim(-2, 0).flatten(1).amax(1)
        larger, done = larger + int((apart >= gap).sum()), done + at_once
        if (1 + larger) / (1 + _EXCHANGES) > _CHANCE:
            return False
    return True


def small_groups(parts: Mapping[str, HeldOut]) -> FrontierNote | None:
    """Groups with few rows in one of these parts ("training", "validation", "test"); None if there are none.

    The parts have common comparisons (``with_common_comparisons``).
    """
    small: dict[tuple[str, str, str], dict[str, Any]] = {}
    for rows, part in parts.items():
        for comparison in part.everyone:
            attribute, within = comparison.attribute, comparison.within
            sizes = part.sizes_of(comparison)
            for group, size in zip(comparison.groups, sizes, strict=False):  # a dependence has one side: anyone
                if size < part.least:
                    count = round(float(size))
                    facts = {"group": group, "attribute": attribute, "part": rows, "within": within, "rows": count}
                    small.setdefault((attribute, within, group), facts)
    if not small:
        return None
    return FrontierNote(
        "small_groups", {"groups": list(small.values()), "left_out": not any(map(all_small, parts.values()))}
    )


def all_small(part: HeldOut) -> bool:
    """Whether no comparison has enough rows, so that unfairness is that of small groups."""
    return all(one in part.apart or min(part.sizes_of(one)) < part.least for one in part.compared)


@dataclass(frozen=True)
class GroupPerformance:
    """Figures of a model within one group."""

    attribute: str
    group: str
    rows: int
    figures: Mapping[str, float | None]  # by name; None if so few rows do not determine it


@dataclass(frozen=True)
class Evaluation:
    """A model on held-out rows, beside its training rows."""

    point: Point
    training: Point
    chance: float  # unfairness of the scores that groups of equal distributions would show on so few rows
    with_small: Mapping[str, float] | None  # unfairness and chance with small groups; None: none was left out
    comparisons: int  # behind the unfairness
    constant: Point  # the best constant predictor, on the held-out rows
    constant_value: Any  # its prediction
    groups: tuple[GroupPerformance, ...]


def performance_by_group(found: Predictions, part: HeldOut) -> tuple[GroupPerformance, ...]:
    """The figures of every group of every attribute, in the order of its names.

    Of two classes: base rate (share of the positive label), mean score, decision rate (share of positive decisions),
    accuracy and AUC; of more, accuracy and AUC; of numbers, mean outcome, mean prediction and R2.
    """
    return tuple(
        GroupPerformance(attribute, group, round(float(members.sum())), _group_figures(found, part, members))
        for attribute, groups in part.members.items()
        for group, members in groups.items()
    )


def _group_figures(found: Predictions, part: HeldOut, members: NDArray[Any]) -> dict[str, float | None]:
    names = ("r2",) if part.regression else ("accuracy", "auc")
    if not members.any():
        return dict.fromkeys(names)
    rows = np.flatnonzero(members)
    problem = part.problem.take(rows)
    if part.problem.probabilities is not None:
        problem = replace(problem, weight=members[rows] * (1.0 if problem.weight is None else problem.weight))
    inside = Predictions(found.score[rows], found.decision[rows], found.kind)
    values: dict[str, Any] = {}
    if part.regression:
        values = {"mean_outcome": problem.labels, "mean_prediction": inside.score}
    elif len(problem.scheme.classes) == 2:
        decided = inside.decision == problem.scheme.positive
        values = {"base_rate": problem.is_positive, "mean_score": inside.score, "decision_rate": decided}
    figures: dict[str, float | None] = {
        name: float(np.average(column, weights=problem.weight)) for name, column in values.items()
    }
    if problem.probabilities is not None and problem.probabilities.labels is None:
        return figures | dict.fromkeys((*names, *({"base_rate", "mean_outcome"} & set(values))))  # they use labels
    for name in names:
        estimate = UTILITIES[name].of(inside, problem)
        figures[name] = None if estimate is None else estimate.value
    return figures


class HeldOutPredictions(NamedTuple):
    """Predictions of one model for its validation and its test rows, in place of the model."""

    validation: Predictions
    test: Predictions


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Evaluates models on validation and test rows, and on their training rows."""

    training: HeldOut | None  # None for models that came fitted
    validation: HeldOut
    test: HeldOut
    held_out: HeldOut  # the validation rows, then the test rows; with test folds, all rows
    shown_seed: int = 0  # the seed whose score distributions are kept
    utility: Utility | None = None  # one more figure
    # With folds: predictions for the validation rows by models of the other folds; None if training failed.
    cross_predictions: dict[Job, Predictions | None] | None = None
    test_fold: Integers | None = None  # of each row: then the same predictions serve as those for the test rows
    nested: bool = False  # one test fold: outcomes have validation figures, and predictions in place of the model

    @cached_property
    def rivals(self) -> tuple[Rival, ...]:
        """The utilities, each with its best constant on the rows that models learn from."""
        return self.rivals_with(*(() if self.utility is None else (self.utility,)))

    @cached_property
    def chance(self) -> float:
        """The unfairness of scores expected by chance alone on the held-out rows."""
        return unfairness_by_chance(self.held_out)

    def rivals_with(self, *more: Utility) -> tuple[Rival, ...]:
        """The utilities and further ones, each with its best constant; the further ones come last."""
        base = self.training or self.validation
        return rivals(base.problem, *more, X=base.X)

    def validation_predictions(self, model: Any, job: Job) -> Predictions | None:
        """Predictions for the validation rows, by the model or, with folds, by models of the other folds."""
        if self.cross_predictions is None:
            return predictions(model, self.validation)
        if job not in self.cross_predictions:
            raise DataError("a ledger keeps figures of folds, and no scores; make the frontier with this utility")
        return self.cross_predictions[job]

    def test_predictions(self, model: Any, job: Job) -> Predictions | None:
        """Predictions for the test rows, by the model or, with test folds, by models of the other folds."""
        return predictions(model, self.test) if self.test_fold is None else self.validation_predictions(model, job)

    def point(self, found: Predictions, part: HeldOut, job: Job, *, needs_group: bool) -> Point:
        """The figures of a job's predictions for the rows of a part."""
        figures = point_of(found, part, strength=job.value, seed=job.seed, against=self.rivals)
        return replace(figures, family=job.family, needs_group=needs_group)

    def with_resampled_intervals(self, figures: Point, found: Predictions) -> Point:
        """Figures on the test rows; with test folds, unfairness has intervals by resampling."""
        if self.test_fold is None or figures.failed or not self.test.has_certificates:
            return figures
        drawn = {"unfairness": resampled_interval(self.resampled(found), figures.unfairness)}
        if figures.decision_unfairness is not None:
            decided = self.resampled(found, of_decisions=True)
            drawn["decision_unfairness"] = resampled_interval(decided, figures.decision_unfairness)
        return replace(figures, intervals={**figures.intervals, **drawn})

    def resampled(self, found: Predictions, *, of_decisions: bool = False) -> Floats:
        """Unfairness of the predictions for resampled test rows, the same ones at every call: (draws,)."""
        values = _decided(found, self.test) if of_decisions else _compared(found, self.test)
        return resampled_unfairness(values, self.test, self.test_fold)

    def __call__(self, model: Any, job: Job) -> Outcome:
        """The figures of this model on each part; None is a model whose training failed."""
        seen = None if model is None else self.validation_predictions(model, job)
        unseen = None if model is None else self.test_predictions(model, job)
        if seen is None or unseen is None:
            failed = Point(job.value, job.seed, 0.0, 1.0, failed=True, family=job.family)
            return Outcome(job, failed, failed)
        asks = needs_group(model)
        validation = self.point(seen, self.validation, job, needs_group=asks)
        if self.nested:
            return Outcome(job, validation, validation, model=HeldOutPredictions(seen, unseen))
        # With test folds, the same predictions for the same rows serve twice.
        same = unseen is seen and self.test is self.validation
        test = validation if same else self.point(unseen, self.test, job, needs_group=asks)
        test = self.with_resampled_intervals(test, unseen)
        if self.cross_predictions is not None:
            validation = replace(validation, intervals={})  # of other models than this one: nothing is certified
        if validation.failed or test.failed:
            return Outcome(job, validation, test, model=model)
        training = None
        if self.training is not None:
            inside = predictions(model, self.training)
            training = self.point(inside, self.training, job, needs_group=asks)
            outside = Predictions.joined([seen, unseen]) if self.test_fold is None else unseen
            if not training.failed and is_overfit(inside, self.training, outside, self.held_out, least=self.chance):
                test = replace(test, overfit=True)
        curves = curves_of(unseen, self.test) if job.seed == self.shown_seed else None
        return Outcome(job, validation, test, curves, model, training)

    def constant(self, utility: Utility) -> tuple[Point, Any]:
        """The best constant predictor by this utility: its point on the test rows, and its prediction."""
        known = next((rival for rival in self.rivals if rival.utility is utility), None)
        rival = known or self.rivals_with(utility)[-1]
        against = self.rivals if known else (*self.rivals, rival)
        found = rival.constant.predictions(len(self.test.problem))
        return point_of(found, self.test, strength=0.0, seed=0, against=against), rival.constant.value


def evaluation_of(
    outside: Predictions,
    inside: Predictions,
    held_out: HeldOut,
    training: HeldOut,
    *,
    job: Job,
    utility: Utility | None = None,
    test_fold: Integers | None = None,
) -> Evaluation:
    """The figures of a model's predictions for held-out rows, beside those for its training rows.

    Both parts have common comparisons. ``utility``, if it is not accuracy, is one more figure, and the constant
    predictor is the best by it. ``test_fold`` is that of each row, where models of other folds predicted it.
    """
    evaluator = Evaluator(training, held_out, held_out, held_out, job.seed, utility, test_fold=test_fold)
    against = evaluator.rivals
    point = evaluator.point(outside, held_out, job, needs_group=False)
    point = evaluator.with_resampled_intervals(point, outside)
    if not point.failed and is_overfit(inside, training, outside, held_out, least=evaluator.chance):
        point = replace(point, overfit=True)
    constant = next((one.constant for one in against if one.utility == utility), against[0].constant)
    whole, with_small = replace(held_out, least=1, apart=frozenset()), None
    if len(whole.compared) > len(held_out.compared) and not point.failed:
        gap = float(distances_of(_compared(outside, whole), whole).max())
        with_small = {"unfairness": gap, "chance": unfairness_by_chance(whole)}
    return Evaluation(
        point=point,
        training=evaluator.point(inside, training, job, needs_group=False),
        chance=evaluator.chance,
        with_small=with_small,
        comparisons=len(held_out.compared),
        constant=evaluator.point(constant.predictions(len(held_out.problem)), held_out, job, needs_group=False),
        constant_value=constant.value,
        groups=performance_by_group(outside, held_out),
    )
