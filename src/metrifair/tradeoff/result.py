"""The record of a trade-off: outcomes with their points, Pareto front and area, the choice, and the rows in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf, log, pi, sqrt
from typing import Any, Literal

import numpy as np

from metrifair.errors import DataError
from metrifair.figures.certificates import check_confidence, dkw_radius
from metrifair.figures.intervals import Interval
from metrifair.figures.utility import UTILITIES, Predictions, Utility, UtilityLike, as_utility
from metrifair.problem.proxies import group_columns
from metrifair.problem.tables import Backend, Column
from metrifair.support.arrays import Integers
from metrifair.support.checks import check_known, check_switches, is_number
from metrifair.support.provenance import Provenance
from metrifair.support.special import normal_cdf, normal_quantile
from metrifair.tradeoff.evaluate import Evaluator, HeldOutPredictions, resampled_interval, utility_figures
from metrifair.tradeoff.points import Change, FrontierNote, Job, Outcome, Point, area, mean_quality, pareto
from metrifair.tradeoff.split import HeldOut, Rows
from metrifair.tradeoff.sweep import Family, RowsToTrain, fit_at


@dataclass(frozen=True, eq=False)
class NestedFold:
    """One test fold: models that were trained and validated without it, and their predictions for its rows."""

    evaluator: Evaluator
    rows: Rows  # of the fold, by number from 0
    outcomes: Sequence[Outcome]  # with ``HeldOutPredictions`` as models


@dataclass(frozen=True, eq=False)
class SweepContext:
    """The rows of a frontier and the families that were trained on some of them, while they are in memory."""

    evaluator: Evaluator
    test: Rows  # of the table, by number from 0
    families: tuple[Family, ...] = ()  # none for models that were passed fitted
    table: RowsToTrain | None = None  # with all its rows
    folds: tuple[NestedFold, ...] = ()  # the test folds, where there are such
    parameter: str = "strength"  # in which models that were passed fitted differ

    def test_part(self, rows: Rows) -> Integers:
        """The test fold of each of all rows; -1: no test row."""
        fold = self.evaluator.test_fold
        return np.isin(rows, self.test) - 1 if fold is None else fold

    def with_utility(self, outcome: Outcome, utility: Utility) -> Outcome:
        """The outcome with one more utility."""
        if outcome.model is None or outcome.validation.failed:
            return outcome
        evaluator = self.evaluator
        job, model = outcome.job, outcome.model
        if isinstance(model, HeldOutPredictions):
            validation = self.extend(outcome.validation, model.validation, evaluator.validation, utility)
            return replace(outcome, validation=validation)
        on_validation, on_test = evaluator.validation_predictions(model, job), evaluator.test_predictions(model, job)
        return replace(
            outcome,
            validation=self.extend(outcome.validation, on_validation, evaluator.validation, utility),
            test=self.extend(outcome.test, on_test, evaluator.test, utility),
        )

    def extend(self, point: Point, predictions: Predictions | None, part: HeldOut, utility: Utility) -> Point:
        """The point of these predictions with one more utility."""
        if predictions is None:
            return point
        figures = utility_figures(predictions, part, self.evaluator.rivals_with(utility)[-1:])
        return replace(
            point,
            more={**point.more, **figures.values},
            intervals={**point.intervals, **figures.intervals},
            errors={**point.errors, **figures.errors},
            marks={**point.marks, **figures.marks},
        )

    def refit(self, job: Job) -> Any:
        """The job's estimator at its value and seed, trained on all rows."""
        if not self.families or self.table is None:
            raise DataError("the models were passed fitted, so they cannot be trained again")
        family = next(member for member in self.families if member.name == job.family)
        return fit_at(family.estimator, family.parameter, job, self.table)


def in_row_order(parts: Sequence[Predictions], rows: Sequence[Rows]) -> Predictions:
    """The predictions for several parts of the rows, in the order of the rows' numbers."""
    joined, order = Predictions.joined(parts), np.argsort(np.concatenate(rows))
    return Predictions(joined.score[order], joined.decision[order], joined.kind)


def held_out_columns(predictions: Predictions, part: HeldOut) -> dict[str, Column]:
    """Groups, labels and predictions of held-out rows by name, as ``audit`` takes them."""
    classes, (score, decision, kind) = part.problem.scheme.classes, predictions
    columns: list[tuple[str, Column]] = [*group_columns(part.sensitive_features).items()]
    columns.append(("label", np.asarray(part.problem.values)))
    columns.append(("prediction", np.asarray(classes)[decision] if classes else score))
    if kind == "probability" and score.ndim == 2:
        columns += [(f"probability of {label}", score[:, place]) for place, label in enumerate(classes)]
    elif kind in ("probability", "output"):
        columns.append(("probability" if kind == "probability" else "score", score))
    unique: dict[str, Column] = {}
    for name, column in columns:
        while name in unique:  # an attribute may have this name
            name += "'"  # noqa: PLW2901
        unique[name] = column
    return unique


@dataclass(eq=False, repr=False)
class TradeOff:
    """Values of a sweep: figures of all models on held-out rows, and the choice; ``metrifair.Frontier`` shows them."""

    outcomes: Sequence[Outcome]
    unfairness_of: Literal["scores", "decisions"]
    accuracy_name: str
    groups: tuple[str, ...]
    sizes: dict[str, int]
    notes: tuple[FrontierNote, ...] = ()
    comparisons: int = 1
    parameter: str = "strength"
    floor: float | None = None  # mean unfairness of fair models on rows such as the test rows
    validation_floor: float | None = None  # and on rows such as the validation rows
    all_small: bool = False
    utility: Utility = UTILITIES["accuracy"]
    constant: Point | None = None
    constant_value: Any = None
    tried: int | None = None
    source: SweepContext | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    library: Backend | None = None  # of the data frames that were given
    provenance: Provenance = field(default_factory=Provenance)
    test_folds: int = 0  # 0: one split
    chosen: Point | None = field(default=None, init=False)
    limit: float | None = field(default=None, init=False)
    chosen_by: Utility | None = field(default=None, init=False)
    certified: bool = field(default=False, init=False)
    change: Change | None = field(default=None, init=False)  # against the model without the penalty
    fold_choices: tuple[tuple[str, float], ...] = field(default=(), init=False)  # family and strength, by test fold
    chosen_predictions: Predictions | None = field(default=None, init=False)  # of the chosen model for the test rows

    @property
    def _is_clustered(self) -> bool:
        """Whether rows belong to clusters: by the rows of a frontier in memory, by the notes of a saved one."""
        in_memory = self.source is not None and self.source.evaluator.test.problem.clusters is not None
        return in_memory or any(note.kind == "clusters" for note in self.notes)

    @property
    def by_probabilities(self) -> bool:
        """Whether groups have probabilities."""
        return any(note.kind == "probabilities" for note in self.notes)

    @property
    def points(self) -> tuple[Point, ...]:
        """Figures of each model on test rows."""
        return tuple(outcome.test for outcome in self.outcomes)

    @property
    def validation_points(self) -> tuple[Point, ...]:
        """Figures of each model on validation rows."""
        return tuple(outcome.validation for outcome in self.outcomes)

    @property
    def training_points(self) -> tuple[Point | None, ...]:
        """Figures of each model on its training rows; None for a model that was passed fitted."""
        return tuple(outcome.training for outcome in self.outcomes)

    @property
    def models(self) -> tuple[Any, ...]:
        """The fitted models; None if training failed."""
        return tuple(outcome.model for outcome in self.outcomes)

    @property
    def pareto(self) -> tuple[Point, ...]:
        """The test points that no other beats."""
        return pareto(self.points, unfairness_of=self.unfairness_of, quality=self._share)

    @property
    def area(self) -> float:
        """Area below the Pareto front, which the paper calls AUC: the share of the unit box that test points dominate.

        Of a loss, what it saves of the constant predictor's.
        """
        return area(self.points, unfairness_of=self.unfairness_of, quality=self._share)

    @property
    def area_with_constant(self) -> float:
        """The same, with the constant predictor as one of the points."""
        constant = () if self.constant is None else (self.constant,)
        return area((*self.points, *constant), unfairness_of=self.unfairness_of, quality=self._share)

    @property
    def limit_confidence(self) -> float | None:
        """Approximate confidence that the chosen model keeps the limit in the population, by the test rows."""
        if self.chosen is None or self.limit is None or self.limit >= 1 or not self.floor or self.by_probabilities:
            return None  # no unfairness is above 1; the rule for chance counts the rows of groups
        value, error = without_chance(self.chosen.gap(self.unfairness_of), self.floor)
        return float(normal_cdf((self.limit - value) / error))

    def _share(self, point: Point) -> float:
        utility, constant = self.utility, self.constant
        return utility.share(point.figure(utility.name), None if constant is None else constant.figure(utility.name))

    def choose(self, goal: Goal, utility: UtilityLike | None, needs_group: bool | None) -> Outcome:
        """Choose the outcome that meets the goal best on validation rows; its test point becomes ``chosen``.

        Parameters
        ----------
        goal : Goal
            The limit, or the rule, of the choice.
        utility : str, table of costs or scorer
            Measure of quality. None: the utility of the frontier.
        needs_group : bool
            Whether prediction needs the group. None: either.

        Returns
        -------
        Outcome
            The chosen model with its figures.
        """
        self.chosen, self.limit, self.chosen_by, self.certified = None, goal.max_unfairness, None, False
        self.change, self.chosen_predictions, self.fold_choices = None, None, ()
        chosen_by = self.utility if utility is None else self._with_figures(utility)
        if goal.certified and self._is_clustered:
            problem = "needs independent rows, and rows of one cluster are not"
            raise DataError(problem, argument="certified", remedy="use confidence instead")
        if goal.certified and self.test_folds:
            problem = "needs one split, as figures of several models have no certificate"
            raise DataError(problem, argument="certified", remedy="make the frontier with test=0.25")
        best = self._best(self.outcomes, goal, chosen_by, needs_group)
        if best.model is None:
            parameter = self.parameters.get(best.job.family, self.parameter)
            fit = f"fit {best.job.family or 'it'} with {parameter}={best.job.value:g} and random_state={best.job.seed}"
            raise DataError("the ledger kept this model's figures but not the model", remedy=fit)
        self.chosen, self.chosen_by, self.certified = best.test, chosen_by, goal.certified
        if self.source is not None:
            self.chosen_predictions = self.source.evaluator.test_predictions(best.model, best.job)
        if self.source is not None and self.source.folds:
            bests = self._choose_by_fold(goal, chosen_by, needs_group)
            self.fold_choices = tuple((outcome.job.family, outcome.job.value) for outcome in bests)
            folds, evaluator = self.source.folds, self.source.evaluator
            predictions = in_row_order([outcome.model.test for outcome in bests], [fold.rows for fold in folds])
            chosen = evaluator.point(predictions, evaluator.test, best.job, needs_group=best.test.needs_group)
            chosen = evaluator.with_resampled_intervals(chosen, predictions)
            if chosen.figure(chosen_by.name) is None:
                chosen = self.source.extend(chosen, predictions, evaluator.test, chosen_by)
            self.chosen, self.chosen_predictions = chosen, predictions
        self.change = self._change(best.job, chosen_by)
        return best

    def _best(
        self, outcomes: Sequence[Outcome], goal: Goal, utility: Utility, needs_group: bool | None, *, near: bool = False
    ) -> Outcome:
        """The best outcome that meets the goal; if none does, a DataError or, with ``near``, the nearest one."""
        candidates = [outcome for outcome in outcomes if not outcome.validation.failed]
        if not candidates:
            raise DataError("no model to select from: training failed at every strength; lower the learning rate")
        if needs_group is not None:
            check_switches(needs_group=needs_group)
            candidates = [outcome for outcome in candidates if outcome.test.needs_group == needs_group]
            if not candidates:
                problem = f"no model of this frontier {'needs' if needs_group else 'predicts without'} the group"
                raise DataError(problem, remedy="leave needs_group out, or train other families")
        try:
            suitable = suitable_outcomes(self, candidates, goal, utility)
        except DataError:
            if not near:
                raise
            suitable = [nearest_outcome(self, candidates, goal)]
        equal = equal_outcomes(self, suitable, goal, utility)
        family = best_family(candidates, {outcome.job.family for outcome in equal}, self.unfairness_of, utility)
        return best_outcome([outcome for outcome in equal if outcome.job.family == family], self.unfairness_of, utility)

    def _choose_by_fold(self, goal: Goal, utility: Utility, needs_group: bool | None) -> list[Outcome]:
        """The outcomes that are chosen in each test fold, without its rows."""
        bests = []
        for fold in () if self.source is None else self.source.folds:
            outcomes = fold.outcomes
            if any(outcome.validation.figure(utility.name) is None for outcome in outcomes):
                context = SweepContext(fold.evaluator, fold.rows)
                outcomes = [context.with_utility(outcome, utility) for outcome in outcomes]
            bests.append(self._best(outcomes, goal, utility, needs_group, near=True))
        return bests

    def _change(self, job: Job, utility: Utility) -> Change | None:
        """The chosen point less that of the same family and seed without the penalty; None if there is none."""
        value = {"strength": 0.0, "tolerance": 1.0}.get(self.parameters.get(job.family, self.parameter))
        same = [outcome for outcome in self.outcomes if value is not None and outcome.job == job._replace(value=value)]
        reference = next(iter(same), None)
        if self.chosen is None or reference is None or reference.test.failed:
            return None
        before, after = reference.test.figure(utility.name), self.chosen.figure(utility.name)
        if before is None or after is None:
            return None
        gaps = [point.gap(self.unfairness_of) for point in (reference.test, self.chosen)]
        intervals: dict[str, Interval] = {}
        evaluator = None if self.source is None else self.source.evaluator
        if evaluator is not None and self.chosen_predictions is not None and evaluator.test.problem.weight is None:
            old, new = evaluator.test_predictions(reference.model, reference.job), self.chosen_predictions
            if old is not None and (change := utility.change(old, new, evaluator.test.problem)):
                intervals["utility"] = change
            if old is not None and evaluator.test.has_certificates:
                of_decisions = self.unfairness_of == "decisions"
                draws = [evaluator.resampled(predictions, of_decisions=of_decisions) for predictions in (old, new)]
                intervals["unfairness"] = resampled_interval(draws[1] - draws[0], gaps[1] - gaps[0], lowest=-1.0)
        return Change(reference.test, after - before, gaps[1] - gaps[0], intervals)

    def _with_figures(self, utility: UtilityLike) -> Utility:
        """The utility, with its figure in every point; a missing one is computed while the rows are in memory."""
        names = {name for outcome in self.outcomes for name in outcome.validation.more}
        if self.source is None:
            if isinstance(utility, str) and utility in names | {"accuracy", "r2"} & {self.utility.name}:
                return UTILITIES.get(utility) or self.utility
            available = ", ".join(map(repr, sorted(names & set(UTILITIES))))
            problem = f"this frontier's points have no utility {utility!r}, but {available}"
            raise DataError(problem, remedy="make it anew to add one")
        chosen_by = as_utility(utility, classes=self.source.evaluator.test.problem.scheme.classes)
        if chosen_by.key != "accuracy" and (chosen_by.name not in names or chosen_by.name not in UTILITIES):
            self.outcomes = [self.source.with_utility(outcome, chosen_by) for outcome in self.outcomes]
        return chosen_by

    def choice(self) -> tuple[Job, SweepContext]:
        """The chosen model's job, and the rows; a DataError where no model is chosen, or no rows are in memory.

        Returns
        -------
        tuple of Job and SweepContext
            The job that trains the model again, and the context with rows and estimators.
        """
        if self.chosen is None:
            raise DataError("no model is chosen; call select first")
        if self.source is None:
            raise DataError("a frontier from a file keeps no rows; make it anew with metrifair.frontier")
        return self.chosen.job, self.source


@dataclass(frozen=True)
class Goal:
    """The goal of a choice: exactly one of ``max_unfairness``, ``min_accuracy`` and ``rule``."""

    max_unfairness: float | None
    min_accuracy: float | None
    rule: str | None
    certified: bool
    confidence: float | None = None

    def __post_init__(self) -> None:
        limits = {"max_unfairness": self.max_unfairness, "min_accuracy": self.min_accuracy}
        if sum(value is not None for value in (*limits.values(), self.rule)) != 1:
            raise DataError("select needs exactly one of max_unfairness, min_accuracy and rule")
        for name, limit in limits.items():
            if not (limit is None or is_number(limit)):
                raise DataError(f"{name} must be a finite number, got {limit!r}")
        if self.max_unfairness is not None and self.max_unfairness > 1:
            raise DataError(
                f"max_unfairness must be at most 1, as it is a distance between shares, got {self.max_unfairness!r}"
            )
        if self.rule is not None:
            check_known("rule", self.rule, ("donini",))
        check_switches(certified=self.certified)
        if self.certified and self.max_unfairness is None:
            raise DataError("certified requires max_unfairness: it certifies the unfairness")
        if self.certified and self.max_unfairness == 1:
            problem = "certified with max_unfairness=1 has no effect, as no unfairness is larger"
            raise DataError(problem, remedy="use a smaller limit")
        self._check_confidence()

    def _check_confidence(self) -> None:
        if self.confidence is None:
            return
        check_confidence(self.confidence)
        if self.max_unfairness is None or self.certified:
            raise DataError("needs max_unfairness, without certified", argument="confidence")


def suitable_outcomes(front: TradeOff, candidates: Sequence[Outcome], goal: Goal, utility: Utility) -> list[Outcome]:
    """The candidates that meet the goal on validation data; if there are none, an error lists possible values."""
    points, hint, low, high = [outcome.validation for outcome in candidates], "", -inf, inf
    if goal.max_unfairness is not None:
        high = goal.max_unfairness
        figures = [point.gap(front.unfairness_of) for point in points]
        if goal.confidence is not None:
            if front.by_probabilities:
                raise DataError("requires known groups, not probabilities", argument="confidence")
            figures = [approximate_bound(figure, front.validation_floor, goal.confidence) for figure in figures]
        if goal.certified:
            models = max(front.tried or 0, len(front.outcomes))
            figures = [
                certified_bound(point, unfairness_of=front.unfairness_of, cdfs=2 * front.comparisons, models=models)
                for point in points
            ]
        limit = f"{'certified ' if goal.certified else ''}unfairness at most {high:g}"
        limit += "" if goal.confidence is None else f" with confidence {goal.confidence:g}"
        hint = " (1 certifies nothing: no unfairness is larger)" if goal.certified and max(figures) >= 1 else ""
        larger = "merge small groups, mark them as missing" if front.all_small else "train with larger strengths"
        hint += f": raise the limit, {larger}, or hold more data out"
    elif goal.min_accuracy is not None:
        low = goal.min_accuracy
        figures, limit = [point.accuracy for point in points], f"{front.accuracy_name} at least {low:g}"
    else:  # Donini et al.: 97 % of the best; a loss may be 1 / 97 % of the least; a negative R2 has no 97 %
        figures = [_quality(point, utility) for point in points]
        best, limit = max(figures), f"97 % of the best {utility.name}"
        low = 0.97 * best if best > 0 else best if utility.larger_is_better else best / 0.97
    suitable = [outcome for outcome, figure in zip(candidates, figures, strict=True) if low <= figure <= high]
    if not suitable:
        raise DataError(
            f"no model has {limit} on validation data; it ranges from {min(figures):.4f} to {max(figures):.4f}{hint}"
        )
    return suitable


def without_chance(gap: float, chance: float) -> tuple[float, float]:
    """An estimate of the unfairness in the population from that of a sample, and its standard error.

    ``chance`` is the mean unfairness of a fair model on such a sample. It adds to a true unfairness in quadrature. For
    two samples it is sqrt(pi / 2) log(2) sqrt(1 / n + 1 / m); half of the last root is the largest standard error of
    a difference of two shares.

    >>> value, error = without_chance(0.13, 0.05)
    >>> round(value, 3), round(error, 3)
    (0.12, 0.029)
    """
    return sqrt(max(gap**2 - chance**2, 0.0)), chance / (sqrt(2 * pi) * log(2))


def approximate_bound(gap: float, chance: float | None, confidence: float) -> float:
    """An approximate upper bound of the unfairness in the population, with this confidence."""
    if chance is None:
        raise DataError("needs a frontier that metrifair.frontier made", argument="confidence")
    value, error = without_chance(gap, chance)
    return value + normal_quantile(confidence) * error


def nearest_outcome(front: TradeOff, candidates: Sequence[Outcome], goal: Goal) -> Outcome:
    """The candidate that misses a limit by least on validation data."""
    if goal.min_accuracy is not None:
        return max(candidates, key=lambda outcome: outcome.validation.accuracy)
    return min(candidates, key=lambda outcome: outcome.validation.gap(front.unfairness_of))


def best_family(candidates: Sequence[Outcome], families: Collection[str], unfairness_of: str, utility: Utility) -> str:
    """The one of these families that is best on validation data on average over all limits.

    The best of equal models near one limit is best by chance. Within a limit that no model of a family keeps, the
    fairest of the best models of all families counts, a constant for instance: no family gains by models of less
    range. Models without a figure of this utility are ignored.
    """
    comparable = [outcome for outcome in candidates if outcome.validation.figure(utility.name) is not None]
    names = dict.fromkeys(outcome.job.family for outcome in comparable if outcome.job.family in families)
    if not names:  # a utility that no model has decides nothing
        return next(outcome.job.family for outcome in candidates if outcome.job.family in families)
    settings: Any = {"unfairness_of": unfairness_of, "quality": partial(_quality, utility=utility)}
    fairest = _quality(pareto((outcome.validation for outcome in comparable), **settings)[0], utility)
    top = max(outcome.validation.gap(unfairness_of) for outcome in candidates) or 1.0

    def mean(family: str) -> float:
        points = [outcome.validation for outcome in comparable if outcome.job.family == family]
        return mean_quality(points, **settings, top=top, otherwise=fairest)

    return max(names, key=mean)  # the first of equals


def equal_outcomes(front: TradeOff, suitable: Sequence[Outcome], goal: Goal, utility: Utility) -> list[Outcome]:
    """The best of these outcomes on validation data, and those that differ from it by noise only.

    Models that are not significantly better than a constant come last. With a limit of unfairness, models whose utility
    is within one standard error of the best are equal to it. With a limit of accuracy, models are equal to the least
    unfair if both are below the unfairness expected by chance.
    """

    def quality(outcome: Outcome) -> float:
        return _quality(outcome.validation, utility)

    def gap(outcome: Outcome) -> float:
        return outcome.validation.gap(front.unfairness_of)

    better = [outcome for outcome in suitable if not outcome.validation.marks.get(utility.key)] or suitable
    if goal.max_unfairness is not None:
        top = max(better, key=quality)
        least = quality(top) - top.validation.errors.get(utility.key, 0.0)  # -inf where no model has the utility
        return [outcome for outcome in better if quality(outcome) >= least]
    level = max(min(map(gap, better)), front.floor or 0.0)
    return [outcome for outcome in better if gap(outcome) <= level]


def best_outcome(equal: Sequence[Outcome], unfairness_of: str, utility: Utility) -> Outcome:
    """The one of these equal outcomes that ranks best; then the utility decides, then the unfairness."""
    is_ranking = utility.needs == "scores" or utility.name == "r2"
    common = (name for name in _RANKING if all(outcome.validation.figure(name) is not None for outcome in equal))
    ranking = utility if is_ranking else UTILITIES.get(next(common, ""), utility)

    def merits(outcome: Outcome) -> tuple[float, float, float]:
        point = outcome.validation
        return _quality(point, ranking), _quality(point, utility), -point.gap(unfairness_of)

    return max(equal, key=merits)


_RANKING = ("auc", "log_loss", "mean_squared_error")


def _quality(point: Point, utility: Utility) -> float:
    """The utility of a point, larger for better ones; -inf without a figure."""
    value = point.figure(utility.name)
    return -inf if value is None else utility.quality(value)


def certified_bound(point: Point, *, unfairness_of: str, cdfs: int, models: int) -> float:
    """Upper bound of the unfairness, valid for this number of models at once, so also for the chosen one."""
    name = "unfairness" if unfairness_of == "scores" or point.decision_unfairness is None else "decision_unfairness"
    if name not in point.intervals:
        raise DataError(
            "needs one split, unweighted rows and known groups: no bound is valid otherwise",
            argument="certified",
            remedy="leave it out, or make the frontier without folds, weights and group probabilities",
        )
    gap, interval = point.gap(unfairness_of), point.intervals[name]
    if interval.high >= 1:  # the largest value: the sample certifies nothing
        return 1.0
    # Radii grow with the number of functions as sqrt(log(2 m / delta)).
    wider = dkw_radius(1, cdfs=cdfs * models) / dkw_radius(1, cdfs=cdfs)
    return min(1.0, gap + (interval.high - gap) * wider)
