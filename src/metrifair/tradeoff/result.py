"""The record of a trade-off: outcomes with their points, Pareto front and area, the choice, and the rows in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from math import inf, log, pi, sqrt
from typing import Any, Literal

import numpy as np

from metrifair.errors import DataError
from metrifair.figures.certificates import check_confidence, dkw_radius
from metrifair.figures.intervals import Interval
from metrifair.figures.utility import UTILITIES, Predictions, Utility, UtilityLike, utility_of
from metrifair.problem.proxies import group_columns
from metrifair.problem.tables import Backend, Column
from metrifair.support.arrays import Integers
from metrifair.support.checks import check_known, check_switches, is_number
from metrifair.support.provenance import Provenance
from metrifair.support.special import normal_cdf, normal_quantile
from metrifair.tradeoff.evaluate import Evaluator, HeldOutPredictions, resampled_interval, worth_of
from metrifair.tradeoff.points import Change, FrontierNote, Job, Outcome, Point, area, mean_worth, pareto
from metrifair.tradeoff.split import HeldOut, Rows
from metrifair.tradeoff.sweep import Family, RowsToTrain, fitted_at


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
    families: tuple[Family, ...] = ()  # none for models that came fitted
    table: RowsToTrain | None = None  # with all its rows
    folds: tuple[NestedFold, ...] = ()  # the test folds, where there are such

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
            validation = self.extended(outcome.validation, model.validation, evaluator.validation, utility)
            return replace(outcome, validation=validation)
        seen, unseen = evaluator.validation_predictions(model, job), evaluator.test_predictions(model, job)
        return replace(
            outcome,
            validation=self.extended(outcome.validation, seen, evaluator.validation, utility),
            test=self.extended(outcome.test, unseen, evaluator.test, utility),
        )

    def extended(self, point: Point, found: Predictions | None, part: HeldOut, utility: Utility) -> Point:
        """The point of these predictions with one more utility."""
        if found is None:
            return point
        worth = worth_of(found, part, self.evaluator.rivals_with(utility)[-1:])
        return replace(
            point,
            more={**point.more, **worth.values},
            intervals={**point.intervals, **worth.intervals},
            errors={**point.errors, **worth.errors},
            marks={**point.marks, **worth.marks},
        )

    def refitted(self, job: Job) -> Any:
        """The job's estimator at its value and seed, trained on all rows."""
        if not self.families or self.table is None:
            raise DataError("the models were passed fitted, so they cannot be trained again")
        family = next(one for one in self.families if one.name == job.family)
        return fitted_at(family.estimator, family.parameter, job, self.table)


def in_row_order(parts: Sequence[Predictions], rows: Sequence[Rows]) -> Predictions:
    """The predictions for several parts of the rows, in the order of the rows' numbers."""
    joined, order = Predictions.joined(parts), np.argsort(np.concatenate(rows))
    return Predictions(joined.score[order], joined.decision[order], joined.kind)


def held_out_columns(found: Predictions, part: HeldOut) -> dict[str, Column]:
    """Groups, labels and predictions of held-out rows by name, as ``audit`` takes them."""
    scheme = part.problem.scheme
    named: list[tuple[str, Column]] = [*group_columns(part.sensitive_features).items()]
    named.append(("label", np.asarray(part.problem.values)))
    named.append(("prediction", np.asarray(scheme.classes)[found.decision] if scheme.classes else found.score))
    if found.kind == "probability" and found.score.ndim == 2:
        named += [(f"probability of {label}", found.score[:, place]) for place, label in enumerate(scheme.classes)]
    elif found.kind in ("probability", "output"):
        named.append(("probability" if found.kind == "probability" else "score", found.score))
    unique: dict[str, Column] = {}
    for name, column in named:
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
    unseen: Predictions | None = field(default=None, init=False)  # of the chosen model for the test rows

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
        """Figures of each model on its training rows; None for a model that came fitted."""
        return tuple(outcome.training for outcome in self.outcomes)

    @property
    def models(self) -> tuple[Any, ...]:
        """The fitted models; None if training failed."""
        return tuple(outcome.model for outcome in self.outcomes)

    @property
    def pareto(self) -> tuple[Point, ...]:
        """The test points that no other beats."""
        return pareto(self.points, unfairness_of=self.unfairness_of, worth=self._share)

    @property
    def area(self) -> float:
        """Share of the unit box that the test points dominate; of a loss, what it saves of the constant predictor's."""
        return area(self.points, unfairness_of=self.unfairness_of, worth=self._share)

    @property
    def area_with_constant(self) -> float:
        """The same, with the constant predictor as one of the points."""
        constant = () if self.constant is None else (self.constant,)
        return area((*self.points, *constant), unfairness_of=self.unfairness_of, worth=self._share)

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

    def choose(self, wish: Wish, utility: UtilityLike | None, needs_group: bool | None) -> Outcome:
        """The outcome that suits best on validation rows; its test point becomes ``chosen``.

        Parameters
        ----------
        wish : Wish
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
        self.chosen, self.limit, self.chosen_by, self.certified = None, wish.max_unfairness, None, False
        self.change, self.unseen, self.fold_choices = None, None, ()
        judged_by = self.utility if utility is None else self._with_figures(utility)
        if wish.certified and self._is_clustered:
            problem = "needs independent rows, and rows of one cluster are not"
            raise DataError(problem, argument="certified", remedy="use confidence instead")
        if wish.certified and self.test_folds:
            problem = "needs one split, as nothing is proven of figures from several models"
            raise DataError(problem, argument="certified", remedy="make the frontier with test=0.25")
        best = self._best(self.outcomes, wish, judged_by, needs_group)
        if best.model is None:
            parameter = self.parameters.get(best.job.family, self.parameter)
            raise DataError(
                f"the ledger kept this model's figures but not the model; fit {best.job.family or 'it'} with "
                f"{parameter}={best.job.value:g} and random_state={best.job.seed}"
            )
        self.chosen, self.chosen_by, self.certified = best.test, judged_by, wish.certified
        if self.source is not None:
            self.unseen = self.source.evaluator.test_predictions(best.model, best.job)
        if self.source is not None and self.source.folds:
            bests = self._chosen_by_fold(wish, judged_by, needs_group)
            self.fold_choices = tuple((one.job.family, one.job.value) for one in bests)
            self.unseen = in_row_order([one.model.test for one in bests], [fold.rows for fold in self.source.folds])
            evaluator = self.source.evaluator
            chosen = evaluator.point(self.unseen, evaluator.test, best.job, needs_group=best.test.needs_group)
            chosen = evaluator.with_resampled_intervals(chosen, self.unseen)
            if chosen.figure(judged_by.name) is None:
                chosen = self.source.extended(chosen, self.unseen, evaluator.test, judged_by)
            self.chosen = chosen
        self.change = self._change(best.job, judged_by)
        return best

    def _best(
        self, outcomes: Sequence[Outcome], wish: Wish, utility: Utility, needs_group: bool | None, *, near: bool = False
    ) -> Outcome:
        """The outcome that suits best; where none does, a DataError or, with ``near``, the nearest one."""
        candidates = [outcome for outcome in outcomes if not outcome.validation.failed]
        if not candidates:
            raise DataError("no model to select from: training failed at every strength; lower the learning rate")
        if needs_group is not None:
            check_switches(needs_group=needs_group)
            candidates = [outcome for outcome in candidates if outcome.test.needs_group == needs_group]
            if not candidates:
                asked = "asks for the group" if needs_group else "predicts without the group"
                raise DataError(f"no model of this frontier {asked}; leave needs_group out, or train other families")
        try:
            found = suitable(self, candidates, wish, utility)
        except DataError:
            if not near:
                raise
            found = [nearest(self, candidates, wish)]
        family = best_family(candidates, {one.job.family for one in found}, self.unfairness_of, utility)
        return best_of(self, [one for one in found if one.job.family == family], wish, utility)

    def _chosen_by_fold(self, wish: Wish, utility: Utility, needs_group: bool | None) -> list[Outcome]:
        """The outcomes that are chosen in each test fold, without its rows."""
        bests = []
        for fold in () if self.source is None else self.source.folds:
            outcomes = fold.outcomes
            if any(outcome.validation.figure(utility.name) is None for outcome in outcomes):
                context = SweepContext(fold.evaluator, fold.rows)
                outcomes = [context.with_utility(outcome, utility) for outcome in outcomes]
            bests.append(self._best(outcomes, wish, utility, needs_group, near=True))
        return bests

    def _change(self, job: Job, utility: Utility) -> Change | None:
        """The chosen point less that of the same family and seed without the penalty; None if there is none."""
        none = {"strength": 0.0, "tolerance": 1.0}.get(self.parameters.get(job.family, self.parameter))
        same = [] if none is None else [one for one in self.outcomes if one.job == job._replace(value=none)]
        reference = next(iter(same), None)
        if self.chosen is None or reference is None or reference.test.failed:
            return None
        before, after = reference.test.figure(utility.name), self.chosen.figure(utility.name)
        if before is None or after is None:
            return None
        gaps = [point.gap(self.unfairness_of) for point in (reference.test, self.chosen)]
        intervals: dict[str, Interval] = {}
        evaluator = None if self.source is None else self.source.evaluator
        if evaluator is not None and self.unseen is not None and evaluator.test.problem.weight is None:
            other = evaluator.test_predictions(reference.model, reference.job)
            if other is not None and (between := utility.change(other, self.unseen, evaluator.test.problem)):
                intervals["utility"] = between
            if other is not None and evaluator.test.has_certificates:
                drawn = [
                    evaluator.resampled(one, of_decisions=self.unfairness_of == "decisions")
                    for one in (other, self.unseen)
                ]
                intervals["unfairness"] = resampled_interval(drawn[1] - drawn[0], gaps[1] - gaps[0], least=-1.0)
        return Change(reference.test, after - before, gaps[1] - gaps[0], intervals)

    def _with_figures(self, utility: UtilityLike) -> Utility:
        """The utility, with its figure in every point; a missing one is measured while the rows are in memory."""
        names = {name for outcome in self.outcomes for name in outcome.validation.more}
        if self.source is None:
            if isinstance(utility, str) and utility in names | {"accuracy", "r2"} & {self.utility.name}:
                return UTILITIES.get(utility) or self.utility
            known = ", ".join(map(repr, sorted(names & set(UTILITIES))))
            raise DataError(f"this frontier's points have no utility {utility!r}, but {known}; make it anew to add one")
        asked = utility_of(utility, classes=self.source.evaluator.test.problem.scheme.classes)
        if asked.key != "accuracy" and (asked.name not in names or asked.name not in UTILITIES):
            self.outcomes = [self.source.with_utility(outcome, asked) for outcome in self.outcomes]
        return asked

    def choice(self) -> tuple[Job, SweepContext]:
        """The chosen model's job, and the rows; a DataError where no model is chosen, or no rows are in memory.

        Returns
        -------
        tuple of Job and SweepContext
            What trains the model again, and the rows and estimators.
        """
        if self.chosen is None:
            raise DataError("no model is chosen; call select first")
        if self.source is None:
            raise DataError("a frontier from a file keeps no rows; make it anew with metrifair.frontier")
        return Job(self.chosen.strength, self.chosen.seed, self.chosen.family), self.source


@dataclass(frozen=True)
class Wish:
    """The requirement on a model: exactly one of ``max_unfairness``, ``min_accuracy`` and ``rule``."""

    max_unfairness: float | None
    min_accuracy: float | None
    rule: str | None
    certified: bool
    confidence: float | None = None

    def __post_init__(self) -> None:
        limits = {"max_unfairness": self.max_unfairness, "min_accuracy": self.min_accuracy}
        if sum(given is not None for given in (*limits.values(), self.rule)) != 1:
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
            raise DataError("certified goes with max_unfairness: it is the unfairness that is certified")
        if self.certified and self.max_unfairness == 1:
            raise DataError("certified with max_unfairness=1 proves nothing, as no unfairness is larger; ask for less")
        self._check_confidence()

    def _check_confidence(self) -> None:
        if self.confidence is None:
            return
        check_confidence(self.confidence)
        if self.max_unfairness is None or self.certified:
            raise DataError("needs max_unfairness, without certified", argument="confidence")


def suitable(front: TradeOff, candidates: Sequence[Outcome], wish: Wish, utility: Utility) -> list[Outcome]:
    """The candidates that satisfy the wish on validation data; if there are none, an error lists possible values."""
    points, hint, low, high = [one.validation for one in candidates], "", -inf, inf
    if wish.max_unfairness is not None:
        high = wish.max_unfairness
        figures = [one.gap(front.unfairness_of) for one in points]
        if wish.confidence is not None:
            if front.by_probabilities:
                raise DataError("requires known groups, not probabilities", argument="confidence")
            figures = [likely_bound(figure, front.validation_floor, wish.confidence) for figure in figures]
        if wish.certified:
            models = max(front.tried or 0, len(front.outcomes))
            figures = [
                bound(one, unfairness_of=front.unfairness_of, cdfs=2 * front.comparisons, models=models)
                for one in points
            ]
        wanted = f"{'certified ' if wish.certified else ''}unfairness at most {high:g}"
        wanted += "" if wish.confidence is None else f" with confidence {wish.confidence:g}"
        hint = " (1 proves nothing: no unfairness is larger)" if wish.certified and max(figures) >= 1 else ""
        larger = "merge small groups, mark them as missing" if front.all_small else "train with larger strengths"
        hint += f": ask for more, {larger}, or hold more data out"
    elif wish.min_accuracy is not None:
        low = wish.min_accuracy
        figures, wanted = [one.accuracy for one in points], f"{front.accuracy_name} at least {low:g}"
    else:  # Donini et al.: 97 % of the best; a loss may be 1 / 97 % of the least; a negative R2 has no 97 %
        figures = [_worth(one, utility) for one in candidates]
        best, wanted = max(figures), f"97 % of the best {utility.name}"
        low = 0.97 * best if best > 0 else best if utility.larger_is_better else best / 0.97
    found = [one for one, figure in zip(candidates, figures, strict=True) if low <= figure <= high]
    if not found:
        raise DataError(
            f"no model has {wanted} on validation data; it ranges from {min(figures):.4f} to {max(figures):.4f}{hint}"
        )
    return found


def without_chance(gap: float, chance: float) -> tuple[float, float]:
    """The unfairness in the population, as that of a sample suggests, and its standard error.

    ``chance`` is the mean unfairness of a fair model on such a sample. To a true unfairness it adds in quadrature. Of
    two samples it is sqrt(pi / 2) log(2) sqrt(1 / n + 1 / m); half of the last root is the largest standard error of
    a difference of two shares.

    >>> value, error = without_chance(0.13, 0.05)
    >>> round(value, 3), round(error, 3)
    (0.12, 0.029)
    """
    return sqrt(max(gap**2 - chance**2, 0.0)), chance / (sqrt(2 * pi) * log(2))


def likely_bound(gap: float, chance: float | None, confidence: float) -> float:
    """An approximate upper bound of the unfairness in the population, with this confidence."""
    if chance is None:
        raise DataError("needs a frontier that metrifair.frontier made", argument="confidence")
    value, error = without_chance(gap, chance)
    return value + normal_quantile(confidence) * error


def nearest(front: TradeOff, candidates: Sequence[Outcome], wish: Wish) -> Outcome:
    """The candidate that misses a limit by least on validation data."""
    if wish.min_accuracy is not None:
        return max(candidates, key=lambda one: one.validation.accuracy)
    return min(candidates, key=lambda one: one.validation.gap(front.unfairness_of))


def best_family(candidates: Sequence[Outcome], families: Collection[str], unfairness_of: str, utility: Utility) -> str:
    """The one of these families that is best on validation data on average over all limits.

    A pool of all models would be led by whichever of them is best by chance near one limit. Within a limit that no
    model of a family keeps, the fairest of the best models of all families counts, a constant for instance: no family
    gains by reaching less. Models without a figure of this utility say nothing for their family.
    """
    known = [one for one in candidates if one.validation.figure(utility.name) is not None]
    named = dict.fromkeys(one.job.family for one in known if one.job.family in families)
    if not named:  # a utility that no model has decides nothing
        return next(one.job.family for one in candidates if one.job.family in families)
    top = max(one.validation.gap(unfairness_of) for one in candidates) or 1.0

    def worth(point: Point) -> float:
        value = point.figure(utility.name)
        return -inf if value is None else utility.worth(value)

    fairest = worth(pareto((one.validation for one in known), unfairness_of=unfairness_of, worth=worth)[0])

    def mean(family: str) -> float:
        own = [one.validation for one in known if one.job.family == family]
        return mean_worth(own, unfairness_of=unfairness_of, worth=worth, top=top, otherwise=fairest)

    return max(named, key=mean)  # the first of equals


def best_of(front: TradeOff, found: Sequence[Outcome], wish: Wish, utility: Utility) -> Outcome:
    """The best of those that suit, on validation data.

    Models that are no better than a constant come last. By a limit of unfairness, models equal the best in utility
    where they are within its standard error; by a limit of accuracy, they equal the least unfair where both are below
    what chance alone would show. Among equals the better ranking decides, then the utility, then the unfairness.
    """
    better = [one for one in found if not one.validation.marks.get(utility.key)] or list(found)
    if wish.max_unfairness is not None:
        top = max(better, key=lambda one: _worth(one, utility))
        noise = top.validation.errors.get(utility.key, 0.0)
        equal = [one for one in better if _worth(one, utility) >= _worth(top, utility) - noise]  # or all lack it
    else:
        level = max(min(one.validation.gap(front.unfairness_of) for one in better), front.floor or 0.0)
        equal = [one for one in better if one.validation.gap(front.unfairness_of) <= level]
    ranking = [utility] if utility.needs == "scores" or utility.name == "r2" else [UTILITIES[name] for name in _RANKING]
    known = next((own for own in ranking if all(one.validation.figure(own.name) is not None for one in equal)), utility)
    return max(
        equal, key=lambda one: (_worth(one, known), _worth(one, utility), -one.validation.gap(front.unfairness_of))
    )


_RANKING = ("auc", "log_loss", "mean_squared_error")


def _worth(outcome: Outcome, utility: Utility) -> float:
    value = outcome.validation.figure(utility.name)
    return -inf if value is None else utility.worth(value)


def bound(point: Point, *, unfairness_of: str, cdfs: int, models: int) -> float:
    """Upper bound of the unfairness, valid for so many models at once, so also for the chosen one."""
    name = "unfairness" if unfairness_of == "scores" or point.decision_unfairness is None else "decision_unfairness"
    if name not in point.intervals:
        raise DataError(
            "needs one split, unweighted rows and known groups: no bound is valid otherwise",
            argument="certified",
            remedy="leave it out, or make the frontier without folds, weights and group probabilities",
        )
    gap, interval = point.gap(unfairness_of), point.intervals[name]
    if interval.high >= 1:  # cut off there: the sample proves nothing
        return 1.0
    # Radii grow with the number of functions as sqrt(log(2 m / delta)).
    wider = dkw_radius(1, cdfs=cdfs * models) / dkw_radius(1, cdfs=cdfs)
    return min(1.0, gap + (interval.high - gap) * wider)
