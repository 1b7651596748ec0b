"""A fitted model on held-out data: its point, the groups' score distributions, and what such data cannot tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.errors import DataError
from metrifair.figures.certificates import dkw_radius
from metrifair.figures.curves import Curves, curves_of_rows
from metrifair.figures.intervals import Interval
from metrifair.figures.measures import Floats, Predictions
from metrifair.figures.selection_rates import RatioRule, ratios_of
from metrifair.figures.utility import CONFIDENCE, UTILITIES, Rival, Utility, decides_alike, rivals
from metrifair.metrics.pair import between
from metrifair.metrics.registry import measured
from metrifair.problem.criteria import BINARY, MULTICLASS, scores
from metrifair.problem.predictions import scores_of
from metrifair.problem.tables import codes
from metrifair.report.frontier.notes import small_groups_note
from metrifair.support.checks import groups_if_asked
from metrifair.tradeoff.ledger import Job, Outcome
from metrifair.tradeoff.points import Point
from metrifair.tradeoff.split import HeldOut
from metrifair.tradeoff.sweep import needs_group

_FEWEST_DRAWS, _MOST_DRAWS = 20, 200
_WORK = 5_000_000  # scores that are sorted, about
_EXCHANGES, _CHANCE = 200, 0.01


def predictions(model: Any, part: HeldOut) -> Predictions:
    """Scores and decisions of a model; groups are handed to models that ask for them."""

    def said(method: Any) -> NDArray[Any]:
        return np.asarray(method(part.X, **groups_if_asked(method, part.sensitive_features)))

    if part.regression:
        values = said(model.predict).astype(np.float64)
        return Predictions(values, values, "number")
    classes, positive = part.problem.scheme.classes, part.problem.scheme.positive
    decision = codes("what the model predicts", said(model.predict), classes)
    if hasattr(model, "predict_proba"):
        probability = said(model.predict_proba).astype(np.float64)
        if probability.shape[1] != max(2, len(classes)):
            raise DataError(
                f"the model knows {probability.shape[1]} classes, and y holds the {len(classes)} classes "
                f"{list(classes)}; judge it on rows of all its classes"
            )
        score = probability[:, positive if len(classes) == 2 else 1] if probability.shape[1] == 2 else probability
        return Predictions(score, decision, "probability")
    if hasattr(model, "decision_function"):
        output = said(model.decision_function).astype(np.float64)
        return Predictions(-output if output.ndim == 1 and positive == 0 else output, decision, "output")
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
    marks: dict[str, str]


def worth_of(found: Predictions, part: HeldOut, against: Iterable[Rival]) -> Worth:
    """Each utility, how sure it is, and the mark of a model that is no better by it than the constant to beat."""
    worth, problem = Worth({}, {}, {}, {}), part.problem
    for utility, constant in against:
        measured = utility.of(found, problem, part.X)
        if measured is None:
            continue
        worth.values[utility.key] = measured.value
        if (error := measured.error(problem.weight)) is not None:
            worth.errors[utility.key] = error
        # Neither Wilson's nor what is proven holds for weighted samples.
        if problem.weight is None and (interval := utility.interval(measured, problem)) is not None:
            worth.intervals[utility.key] = interval
        if mark := decides_alike(found, problem, utility=utility, constant=constant, X=part.X):
            worth.marks[utility.key] = mark
    return worth


def point_of(
    found: Predictions, part: HeldOut, *, strength: float, seed: int, against: Sequence[Rival] | None = None
) -> Point:
    """Utilities and unfairness of a model's predictions; with intervals, unless rows are weighted.

    ``against`` are the utilities with the constants to beat, by which the point is marked; None: the usual ones, with
    the constants of these very rows.
    """
    problem = part.problem
    if not np.isfinite(found.score).all():
        return Point(strength, seed, 0.0, 1.0, failed=True)
    values, intervals, errors, marks = worth_of(found, part, rivals(problem) if against is None else against)
    accuracy, gap, decided = values.pop("accuracy"), distances_of(_compared(found, part), part), None
    proven = {"unfairness": _certified(gap, part)}
    if not part.regression:
        if (ratio := _four_fifths(found, part)) is not None:
            values["four_fifths"] = ratio
        right = found.decision == part.labels
        compared = ~right if problem.scheme.criterion.score == "loss" else _indicators(found.decision, part).T
        decisions = distances_of(torch.as_tensor(compared).double(), part)
        decided, proven["decision_unfairness"] = float(decisions.max()), _certified(decisions, part)
    known = {**intervals, **proven} if problem.weight is None else {}
    return Point(strength, seed, accuracy, float(gap.max()), decided, values, known, errors=errors, marks=marks)


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
    return between(measured("kolmogorov"), values, part.sides, names=tuple(part.compared), reduce="all")


def _certified(distances: Tensor, part: HeldOut) -> Interval:
    """Within which the largest of these distances is proven to lie, by the radii of all distribution functions."""
    cdfs, gap = 2 * distances.numel(), float(distances.max())
    radius = max(
        sum(dkw_radius(count, confidence=CONFIDENCE, cdfs=cdfs) for count in side.counts) for side in part.sides
    )
    return Interval(max(0.0, gap - radius), min(1.0, gap + radius))


def _four_fifths(found: Predictions, part: HeldOut) -> float | None:
    """The smallest share of positive decisions of a group over the largest; None where there is no positive class.

    It is about all rows of a group, whatever the criterion compares.
    """
    scheme, weight = part.problem.scheme, part.problem.weight
    if len(scheme.classes) != 2:
        return None
    chosen, ratios = (found.decision == scheme.positive).astype(np.int64), []
    for attribute, groups in part.members.items():
        large = [own for group, own in groups.items() if (attribute, group) not in part.small]
        own = large if len(large) > 1 else [own for own in groups.values() if own.any()]
        amounts = [np.bincount(chosen[group], None if weight is None else weight[group], 2) for group in own]
        counts = np.array(amounts, dtype=np.float64).reshape(-1, 2)
        ratios.append(ratios_of(counts, [int(group.sum()) for group in own], len(chosen), RatioRule()).smallest)
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


def is_overfit(trained: Predictions, training: HeldOut, found: Predictions, part: HeldOut, *, least: float) -> bool:
    """Whether scores lie closer together on the rows that a model was trained on, by more than chance.

    Rows of either part change places at random within each cell, 200 times with a fixed seed: where the model treats
    both parts alike, that changes nothing but by chance. True where the unfairness here exceeds that on training rows
    by more than ``least`` (the unfairness that chance alone would show) and by more than in 99 % of the exchanges.
    """
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


def small_groups(parts: Mapping[str, HeldOut]) -> str:
    """Groups with so few rows in one of these parts that any figure of theirs may be chance; empty if none.

    What it means for figures, and what to do. The parts, by what their rows are called, are judged alike.
    """
    found: dict[tuple[str, str, str], tuple[str, str, str, int]] = {}
    for rows, part in parts.items():
        for one, side in part.everyone.items():
            among = rows if one.within == "everyone" else f"{rows}, {one.within}"
            for group, size in zip(one.groups, side.counts, strict=False):  # a dependence has one side: anyone
                if size < part.least:
                    found.setdefault((one.attribute, one.within, group), (group, one.attribute, among, size))
    return small_groups_note(found.values(), left_out=not any(map(all_small, parts.values())))


def all_small(part: HeldOut) -> bool:
    """Whether no comparison has enough rows, so that models are judged by whatever there is."""
    return all(one in part.apart or min(side.counts) < part.least for one, side in part.compared.items())


@dataclass(frozen=True)
class GroupFigures:
    """What a model reaches within one group."""

    attribute: str
    group: str
    rows: int
    figures: Mapping[str, float | None]  # by name; None where so few rows do not tell it


@dataclass(frozen=True)
class Judgement:
    """A model on rows that it was not trained on, beside those that it was."""

    point: Point
    training: Point
    chance: float  # unfairness of the scores that groups of equal distributions would show on so few rows
    with_small: Mapping[str, float] | None  # unfairness and chance, had no group been left out; None: none was
    comparisons: int  # behind the unfairness
    constant: Point  # the best model that says the same of everyone, on the rows kept apart
    constant_text: str  # what it says
    groups: tuple[GroupFigures, ...]


def judged(
    model: Any, held_out: HeldOut, training: HeldOut, *, strength: float, seed: int, utility: Utility | None = None
) -> Judgement:
    """The figures of a model on rows kept apart; ``training`` are those it was trained on, judged alike.

    ``utility`` is what it has to be good at, if not accuracy: one more figure, and by it the constant is the best.
    """
    more = () if utility is None else (utility,)
    against, chance = rivals(training.problem, *more), unfairness_by_chance(held_out)

    def point(found: Predictions, part: HeldOut) -> Point:
        return point_of(found, part, strength=strength, seed=seed, against=against)

    found, taught = (predictions(model, part) for part in (held_out, training))
    reached = point(found, held_out)
    if not reached.failed and is_overfit(taught, training, found, held_out, least=chance):
        reached = replace(reached, overfit=True)
    constant = next((one.constant for one in against if one.utility == utility), against[0].constant)
    whole, with_small = replace(held_out, least=1, apart=frozenset()), None
    if len(whole.compared) > len(held_out.compared) and not reached.failed:
        gap = float(distances_of(_compared(found, whole), whole).max())
        with_small = {"unfairness": gap, "chance": unfairness_by_chance(whole)}
    return Judgement(
        point=reached,
        training=point(taught, training),
        chance=chance,
        with_small=with_small,
        comparisons=len(held_out.compared),
        constant=point(constant.predictions(len(held_out.problem)), held_out),
        constant_text=constant.text,
        groups=group_figures(found, held_out),
    )


def group_figures(found: Predictions, part: HeldOut) -> tuple[GroupFigures, ...]:
    """The figures of every group of every attribute, in the order of its names.

    Of two classes: base rate (share of the positive label), mean score, decision rate (share of decisions for it),
    accuracy and AUC; of more, accuracy and AUC; of numbers, mean outcome, mean prediction and R2.
    """
    return tuple(
        GroupFigures(attribute, group, int(own.sum()), _figures(found, part, own))
        for attribute, groups in part.members.items()
        for group, own in groups.items()
    )


def _figures(found: Predictions, part: HeldOut, own: Any) -> dict[str, float | None]:
    names = ("r2",) if part.regression else ("accuracy", "auc")
    if not own.any():
        return dict.fromkeys(names)
    problem = part.problem.take(np.flatnonzero(own))
    inside = Predictions(found.score[own], found.decision[own], found.kind)
    values: dict[str, Any] = {}
    if part.regression:
        values = {"mean_outcome": problem.labels, "mean_prediction": inside.score}
    elif len(problem.scheme.classes) == 2:
        decided = inside.decision == problem.scheme.positive
        values = {"base_rate": problem.is_positive, "mean_score": inside.score, "decision_rate": decided}
    figures: dict[str, float | None] = {
        name: float(np.average(column, weights=problem.weight)) for name, column in values.items()
    }
    for name in names:
        measured = UTILITIES[name].of(inside, problem)
        figures[name] = None if measured is None else measured.value
    return figures


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges models on the rows to choose on and on those to judge the choice on, beside those of their training."""

    training: HeldOut | None  # None where fitted models were handed over
    choosing: HeldOut
    judging: HeldOut
    shown: int  # the seed whose distributions are looked at: one is enough
    against: tuple[Rival, ...]
    others: HeldOut  # the rows to choose on, then those to judge on: all that models are not trained on
    floor: float  # the unfairness of scores that chance alone would show on these
    # With folds: what models of the others say of each fold of the rows to choose on; None where training failed.
    crossed: dict[Job, Predictions | None] | None = None

    def seen(self, model: Any, job: Job) -> Predictions | None:
        """What is said of the rows to choose on, by the model or, with folds, by models that have not seen them."""
        if self.crossed is None:
            return predictions(model, self.choosing)
        if job not in self.crossed:
            raise DataError("a ledger keeps figures of folds, and no scores; make the frontier with this utility")
        return self.crossed[job]

    def __call__(self, model: Any, job: Job) -> Outcome:
        """What this model reaches on each part; None is a model whose training failed."""
        seen = None if model is None else self.seen(model, job)
        if seen is None:
            lost = Point(job.value, job.seed, 0.0, 1.0, failed=True, family=job.family)
            return Outcome(job, lost, lost)
        found, asks = predictions(model, self.judging), needs_group(model)
        validation, test = self._point(seen, self.choosing, job, asks), self._point(found, self.judging, job, asks)
        if self.crossed is not None:
            validation = replace(validation, intervals={})  # of other models than this one: nothing is proven of it
        training = None
        if validation.failed or test.failed:
            return Outcome(job, validation, test, model=model)
        if self.training is not None:
            own = predictions(model, self.training)
            training = self._point(own, self.training, job, asks)
            apart = Predictions.joined([seen, found])
            if not training.failed and is_overfit(own, self.training, apart, self.others, least=self.floor):
                test = replace(test, overfit=True)
        curves = curves_of(found, self.judging) if job.seed == self.shown else None
        return Outcome(job, validation, test, curves, model, training)

    def _point(self, found: Predictions, part: HeldOut, job: Job, asks: bool) -> Point:
        reached = point_of(found, part, strength=job.value, seed=job.seed, against=self.against)
        return replace(reached, family=job.family, needs_group=asks)

    def constant(self, utility: Utility) -> tuple[Point, str]:
        """What the constant model that is best by this utility reaches on the rows to judge on, and what it says."""
        base = self.training or self.choosing
        own = next((rival for rival in self.against if rival.utility is utility), None)
        rival = own or rivals(base.problem, utility, X=base.X)[-1]
        found = rival.constant.predictions(len(self.judging.problem))
        against = self.against if own else (*self.against, rival)
        return point_of(found, self.judging, strength=0.0, seed=0, against=against), rival.constant.text
