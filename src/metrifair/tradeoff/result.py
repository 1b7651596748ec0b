"""The record of a trade-off: configurations with their figures, the choice among them, and the
rows in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, floor
from typing import Any, NamedTuple

import numpy as np

from metrifair.errors import DataError, Remedy, TooFewSamples
from metrifair.figures.fold_gaps import FoldSides
from metrifair.figures.intervals import Interval
from metrifair.figures.utility import (
    UTILITIES,
    Predictions,
    Rival,
    Utility,
    UtilityLike,
    as_utility,
    rivals,
)
from metrifair.problem.memberships import group_columns
from metrifair.problem.missing_groups import no_warnings_of_groups
from metrifair.problem.tables import Backend, ColumnArray
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.tradeoff.choice import (
    NOTHING,
    AcceptedChoice,
    Choice,
    Chooser,
    Expected,
    Rule,
)
from metrifair.tradeoff.configurations import (
    Kind,
    compared_scores,
    family_place,
    penalty_of,
    simplicity,
    tiers,
    utility_by_rows,
)
from metrifair.tradeoff.evaluate import make_point, predict, utility_figures
from metrifair.tradeoff.goal import Goal
from metrifair.tradeoff.out_of_fold import TrainingFit, resembles, training_fit
from metrifair.tradeoff.points import Change, FrontierNote, Job, Outcome, Point, area, pareto
from metrifair.tradeoff.record import FrontierRecord
from metrifair.tradeoff.resamples import (
    ResampledGaps,
    ResampledUtilities,
    draw_rows,
    gaps_without_chance,
    noise_of,
    number_of_resamples,
    resampled_gaps,
    resampled_utilities,
    roots,
)
from metrifair.tradeoff.split import HeldOut, RowNumbers
from metrifair.tradeoff.sweep import Family, RowsToTrain, sweep
from metrifair.tradeoff.thresholds import decided_at

_UNLIKE_FOLDS = "unlike_folds"  # the note of a configuration that the choice passed over


class Trained(NamedTuple):
    """A job with its model of all rows; None if training failed."""

    job: Job
    model: Any


@dataclass(frozen=True, eq=False)
class SweepContext:
    """The rows of a frontier and the families that were trained on them, while in memory."""

    part: HeldOut  # all rows but the test rows
    rows: RowNumbers  # of this part, by number in the table
    fold: Integers  # of each of them; all 0 for models that were passed fitted
    predictions: Mapping[Job, Predictions]  # for these rows, out of fold; failed jobs have none
    fits: Mapping[Job, Sequence[TrainingFit]]  # of the fold models, to their own training rows
    utility: Utility
    unfairness_of: str
    seed: int
    resamples: Integers  # how often each of them has each row
    families: tuple[Family, ...] = ()  # none for models that were passed fitted
    table: RowsToTrain | None = None  # the rows that models are trained on
    tested: HeldOut | None = None
    test_rows: RowNumbers | None = None
    parameter: str = "strength"  # in which models that were passed fitted differ
    n_jobs: int | None = None
    devices: Sequence[str] | None = None
    group_aware: frozenset[Job] = frozenset()
    fitted: Mapping[Job, Any] = field(default_factory=dict)  # models that were passed fitted
    thresholds: Mapping[Job, float] = field(default_factory=dict)  # none: the models decide
    _gaps: dict[str, ResampledGaps] = field(default_factory=dict)
    _utilities: dict[Any, ResampledUtilities] = field(default_factory=dict)

    @cached_property
    def sides(self) -> FoldSides:
        """The rows on both sides of each comparison."""
        return self.part.fold_sides(self.fold)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The configurations to choose among, in their order."""
        return tuple(self.predictions)

    def of_family(self, name: str) -> SweepContext:
        """The same rows with the configurations of one family."""
        predictions = {job: found for job, found in self.predictions.items() if job.family == name}
        return replace(self, predictions=predictions, _gaps={}, _utilities={})

    def parameter_of(self, job: Job) -> str:
        """The parameter that a job varies."""
        by_name = {family.name: family.parameter for family in self.families}
        return by_name.get(job.family, self.parameter)

    def rivals(self, *more: Utility) -> tuple[Rival, ...]:
        """The utilities with their best constants; ``more`` come last."""
        utilities = (self.utility, *more)
        return rivals(self.part.problem, *utilities, X=self.part.X)

    def constant(self, utility: Utility) -> tuple[Point, Any]:
        """The best constant predictor by a utility: its point, and its prediction."""
        against = self.rivals(utility)
        rival = next(rival for rival in against if rival.utility.key == utility.key)
        predictions = rival.constant.predictions(len(self.part.problem))
        point = make_point(predictions, self.part, strength=0.0, seed=0, against=against)
        return point, rival.constant.value

    def chooser(self, utility: Utility) -> Chooser:
        """The choices by this utility."""
        jobs = self.jobs
        names = [family.name for family in self.families]
        kinds = {
            job: Kind(
                self.parameter_of(job),
                job in self.group_aware,
                family_place(job.family, names) if names else 0,
            )
            for job in jobs
        }
        return Chooser(
            jobs=jobs,
            rows=len(self.part.problem),
            gaps=self.gaps(self.unfairness_of),
            utility=self._resampled_utility(utility),
            accuracy=self._resampled_utility(
                UTILITIES["r2" if self.part.regression else "accuracy"]
            ),
            simplicity=simplicity(jobs, kinds),
            tier=tiers(
                list(self.predictions.values()),
                self.part,
                self.fold,
                utility=utility,
                unfairness_of=self.unfairness_of,
            ),
        )

    def gaps(self, unfairness_of: str) -> ResampledGaps:
        """The gaps of all configurations, of scores or decisions."""
        if unfairness_of not in self._gaps:
            scores = self._scores(unfairness_of)
            self._gaps[unfairness_of] = resampled_gaps(scores, self.sides, self._drawn)
        return self._gaps[unfairness_of]

    def gaps_of_all_rows(self, unfairness_of: str) -> Floats:
        """The same without resamples."""
        return gaps_without_chance(self._scores(unfairness_of), self.sides)

    def _scores(self, unfairness_of: str) -> Floats:
        return compared_scores(list(self.predictions.values()), self.part, unfairness_of)

    @cached_property
    def _drawn(self) -> Integers:
        """How often each resample has each row."""
        return self.resamples[: number_of_resamples(self._scores(self.unfairness_of), self.sides)]

    def _resampled_utility(self, utility: Utility) -> ResampledUtilities:
        key = (utility.name, utility.measure)
        if key not in self._utilities:
            predictions = list(self.predictions.values())
            values, influence = utility_by_rows(utility, predictions, self.part, self.fold)
            weight = self.part.problem.weight
            if weight is None:
                weight = np.ones(len(self.part.problem))
            self._utilities[key] = resampled_utilities(values, influence, weight, self._drawn)
        return self._utilities[key]

    def train(self, jobs: Sequence[Job]) -> dict[Job, Any]:
        """Models of these jobs, trained on all rows but the test rows."""
        if not self.families or self.table is None:
            raise DataError("the models were passed fitted, so they cannot be trained again")
        models: dict[Job, Any] = {}
        with no_warnings_of_groups():
            for family in self.families:
                of_family = [job for job in jobs if job.family == family.name]
                if of_family:
                    trained: list[Trained] = sweep(
                        family.estimator,
                        self.table,
                        of_family,
                        lambda model, job: Trained(job, model),
                        parameter=family.parameter,
                        n_jobs=self.n_jobs,
                        devices=self.devices,
                    )
                    models |= dict(trained)
        return models

    def predictions_of(self, job: Job, model: Any, part: HeldOut) -> Predictions:
        """The predictions of a model of all rows, with decisions at its threshold."""
        predictions = predict(model, part)
        if job not in self.thresholds:
            return predictions
        return decided_at(self.thresholds[job], predictions, part.problem)

    def resembles_folds(self, job: Job, model: Any) -> bool:
        """Whether a model of all rows is like the models of the folds; those that were passed
        fitted have none.
        """
        if model is None:
            return False
        if not self.fits.get(job):
            return True
        error = self.gaps(self.unfairness_of).sampling_errors[self.jobs.index(job)]
        whole = replace(self.sides, fold=np.zeros_like(self.fold))
        fit = training_fit(predict(model, self.part), self.part, whole, self.unfairness_of)
        return resembles(fit, self.fits[job], float(error))

    def point_on_test_rows(self, model: Any, point: Point, utility: Utility) -> Point | None:
        """The figures of a model on the test rows, which nothing has seen; None if there are
        none.
        """
        tested = self.tested
        if tested is None:
            return None
        predictions = self.predictions_of(point.job, model, tested)
        figures = make_point(
            predictions,
            tested,
            strength=point.strength,
            seed=point.seed,
            against=self.rivals(utility),
        )
        figures = replace(figures, family=point.family, needs_group=point.needs_group)
        sides = tested.fold_sides(np.zeros(len(tested.problem), dtype=np.int64))
        scores = compared_scores([predictions], tested, self.unfairness_of)
        gap = float(gaps_without_chance(scores, sides)[0])
        noise = noise_of(scores, sides)
        interval = None
        # too few rows on a side have no interval
        with suppress(TooFewSamples):
            drawn = draw_rows(sides, self.seed, number_of_resamples(scores, sides))
            interval = resampled_gaps(scores, sides, drawn).interval(0)
        return with_gap(figures, gap, interval, self.unfairness_of, noise)


def held_out_columns(predictions: Predictions, part: HeldOut) -> dict[str, ColumnArray]:
    """Groups, labels and predictions of held-out rows by name, as ``audit`` takes them."""
    classes = part.problem.scheme.classes
    score, decision, kind = predictions
    columns: list[tuple[str, ColumnArray]] = [*group_columns(part.sensitive_features).items()]
    columns.append(("label", np.asarray(part.problem.values)))
    columns.append(("prediction", np.asarray(classes)[decision] if classes else score))
    if kind == "probability" and score.ndim == 2:
        for place, label in enumerate(classes):
            columns.append((f"probability of {label}", score[:, place]))
    elif kind in ("probability", "output"):
        columns.append(("probability" if kind == "probability" else "score", score))
    unique: dict[str, ColumnArray] = {}
    for wanted, column in columns:
        name = wanted
        while name in unique:  # an attribute may have this name
            name += "'"
        unique[name] = column
    return unique


@dataclass(eq=False)
class TradeOff:
    """A sweep: figures of all configurations, their models once they are trained, and the choice.

    ``metrifair.Frontier`` shows it.
    """

    outcomes: Sequence[Outcome]
    record: FrontierRecord = field(default_factory=FrontierRecord)
    utility: Utility = UTILITIES["accuracy"]
    source: SweepContext | None = None  # rows and estimators in memory; files do not contain them
    library: Backend | None = None  # of the data frames that were given
    saved_chooser: Chooser | None = None  # of a frontier from a file
    chosen_by: Utility | None = None
    chosen_predictions: Predictions | None = field(default=None, init=False)  # for held-out rows

    @property
    def points(self) -> tuple[Point, ...]:
        """Figures of each configuration, as they are compared."""
        return tuple(outcome.point for outcome in self.outcomes)

    def train_missing(self, jobs: Sequence[Job] | None = None) -> None:
        """Train the models of these jobs that have not been trained, on all rows but the test
        rows.

        Parameters
        ----------
        jobs : sequence of Job, default=None
            The jobs. None: all.
        """
        source = self.source
        if source is None or not source.families:
            return
        missing = [
            outcome.job
            for outcome in self.outcomes
            if outcome.model is None
            and not outcome.point.failed
            and (jobs is None or outcome.job in jobs)
        ]
        models = source.train(missing)
        self.outcomes = [
            with_model(outcome, models[outcome.job], source) if outcome.job in models else outcome
            for outcome in self.outcomes
        ]

    @property
    def pareto(self) -> tuple[Point, ...]:
        """The points that no other beats."""
        return pareto(self.points, unfairness_of=self.record.unfairness_of, quality=self._share)

    @property
    def area(self) -> float:
        """Area below the Pareto front, which the paper calls AUC: the share of the unit box that
        points dominate.

        Of a loss, what it saves of the constant predictor's.
        """
        return area(self.points, unfairness_of=self.record.unfairness_of, quality=self._share)

    @property
    def area_with_constant(self) -> float:
        """The same, with the constant predictor as one of the points."""
        constant = (self.record.constant,) if self.record.constant is not None else ()
        return area(
            (*self.points, *constant), unfairness_of=self.record.unfairness_of, quality=self._share
        )

    def _share(self, point: Point) -> float:
        utility = self.utility
        constant = None
        if self.record.constant is not None:
            constant = self.record.constant.figure(utility.name)
        return utility.share(point.figure(utility.name), constant)

    def choose(self, goal: Goal, utility: UtilityLike | None) -> Outcome:
        """Choose the configuration that meets the goal best, and train it on all rows.

        If none meets the goal, the goal becomes ``unmet``, and the earlier choice remains.

        Parameters
        ----------
        goal : Goal
            The limit of the choice.
        utility : str, table of costs or scorer
            Measure of quality. None: the utility of the frontier.

        Returns
        -------
        Outcome
            The configuration with its figures and its model.
        """
        if utility is None:
            chosen_by = self.utility
        else:
            chosen_by = self._with_figures(utility)
        chooser = self._chooser(chosen_by)
        allowed = self._allowed(goal, chooser)
        rule = Rule.of(goal)
        if not goal.best_effort:
            self._check_verifiable(goal, chooser)
        accepted = chooser.first_accepted(
            rule, allowed, self._resembles_folds, best_effort=goal.best_effort
        )
        if accepted.choice.configuration == NOTHING:
            self._set_unmet(goal)
            raise self._unmet_error(goal, accepted, chooser)
        outcome = self._outcome(chooser.jobs[accepted.choice.configuration])
        self._set_choice(outcome, accepted.choice, chooser, chosen_by)
        limit = goal.max_unfairness
        is_verified = limit is None or limit >= chooser.gaps.noise
        self.record = replace(
            self.record,
            goal=goal,
            unmet=None,
            is_best_effort=accepted.rule is not rule or not is_verified,
            choice_notes=tuple(map(self._unlike_folds, accepted.refused)),
        )
        return outcome

    def _resembles_folds(self, job: Job) -> bool:
        """Whether the model of all rows, which is trained now, is like those of its folds."""
        outcome = self._trained(job)
        return outcome.model is not None and outcome.resembles_folds

    def _unlike_folds(self, job: Job) -> FrontierNote:
        facts = {**job._asdict(), "parameter": self._parameter_of(job)}
        return FrontierNote(_UNLIKE_FOLDS, facts)

    def choose_only(self) -> Outcome:
        """Choose the only configuration, without a limit, and train it on all rows."""
        chooser = self._chooser(self.utility)
        (job,) = chooser.jobs
        outcome = self._trained(job)
        if outcome.model is None:
            raise DataError("training on all rows failed, although the folds did not")
        self._set_choice(outcome, chooser.choose(Rule()), chooser, self.utility)
        if not outcome.resembles_folds:
            notes = (FrontierNote("only_unlike_folds"),)
            self.record = replace(self.record, choice_notes=notes)
        return outcome

    @property
    def threshold(self) -> float | None:
        """The threshold of the chosen model's decisions; None: the model decides."""
        if self.record.chosen is None or self.source is None:
            return None
        return self.source.thresholds.get(self.record.chosen.job)

    @property
    def own_chooser(self) -> Chooser | None:
        """The choices by the utility of the frontier; None if all models failed."""
        source = self.source
        if source is None or not source.jobs:
            return self.saved_chooser
        return source.chooser(self.utility)

    def _chooser(self, utility: Utility) -> Chooser:
        """The choices by this utility."""
        chooser = self.own_chooser
        if chooser is None:
            raise DataError("this frontier has no figures to choose a model by")
        if self.source is not None and utility is not self.utility:
            return self.source.chooser(utility)
        return chooser

    @property
    def gaps_with_allowance(self) -> dict[Job, float]:
        """The gap of each configuration that the choice compared with its limit; empty if no limit
        restricted it.
        """
        goal = self.record.goal
        chooser = self.own_chooser
        within_limit = self.record.chosen is not None and not self.record.is_best_effort
        if goal is None or chooser is None or not within_limit:
            return {}
        if goal.max_unfairness is None or goal.max_unfairness >= 1:  # which every model keeps
            return {}
        if self.chosen_by is not None:
            chooser = self._chooser(self.chosen_by)
        return chooser.gaps_with_allowance(Rule.of(goal), self.candidates(chooser))

    def candidates(self, chooser: Chooser) -> Booleans:
        """The configurations that the choice was among: those that its goal allows, without those
        that it passed over.
        """
        passed_over = self.passed_over
        accepted = np.array([job not in passed_over for job in chooser.jobs], dtype=bool)
        if self.record.goal is None:
            return accepted
        return accepted & self._allowed(self.record.goal, chooser)

    @property
    def passed_over(self) -> frozenset[Job]:
        """The configurations whose models of all rows were unlike those of their folds, as the
        notes on the choice name them.
        """
        return frozenset(
            Job(note.facts["value"], note.facts["seed"], note.facts["family"])
            for note in self.record.choice_notes
            if note.kind == _UNLIKE_FOLDS
        )

    def _set_unmet(self, goal: Goal) -> None:
        self.record = replace(self.record, unmet=goal)

    def _parameter_of(self, job: Job) -> str:
        """The parameter that a job varies."""
        return self.record.parameters.get(job.family, self.record.parameter)

    def _outcome(self, job: Job) -> Outcome:
        return next(outcome for outcome in self.outcomes if outcome.job == job)

    def _trained(self, job: Job) -> Outcome:
        """The configuration with its model of all rows."""
        self.train_missing([job])
        return self._outcome(job)

    def _allowed(self, goal: Goal, chooser: Chooser) -> Booleans:
        """The configurations that the goal allows, whatever their figures."""
        if goal.needs_group is None:
            return np.ones(len(chooser.jobs), dtype=bool)
        aware = np.array([self._outcome(job).point.needs_group for job in chooser.jobs], dtype=bool)
        allowed: Booleans = aware == goal.needs_group
        if not allowed.any():
            self._set_unmet(goal)
            raise DataError(
                "no model of this frontier "
                f"{'needs' if goal.needs_group else 'predicts without'} the group",
                remedy="leave needs_group out, or train other families",
            )
        return allowed

    def _check_verifiable(self, goal: Goal, chooser: Chooser) -> None:
        """Raise a DataError for a limit below what these rows can distinguish from 0."""
        limit = goal.max_unfairness
        noise = chooser.gaps.noise
        if limit is None or limit >= noise:
            return
        self._set_unmet(goal)
        raise unverifiable_error(limit, noise, chooser.rows)

    def _unmet_error(self, goal: Goal, accepted: AcceptedChoice, chooser: Chooser) -> DataError:
        """The error if no configuration meets the goal: which limit can be met, and how."""
        which = {
            None: "",
            True: " that needs the group",
            False: " that predicts without the group",
        }[goal.needs_group]
        if not accepted.allowed.any():
            return DataError(
                f"no model{which} that meets the goal resembles the models of its folds, of "
                f"{len(accepted.refused)} that were trained on all rows",
                remedy=["use fewer folds", "merge small groups, or mark them as missing"],
            )
        if goal.min_accuracy is not None:
            best = floor(accepted.choice.needed * 10_000) / 10_000
            return DataError(
                f"no model{which} has {self.record.accuracy_name} at least {goal.min_accuracy:g}; "
                f"the largest is {best:.4f}",
                remedy="lower min_accuracy",
            )
        sure = ""
        if goal.confidence is not None:
            sure = f" with confidence {goal.confidence:g}"
        rule = Rule(goal.max_unfairness, goal.confidence)
        least = chooser.least_limit(rule, accepted.allowed)
        more = self._rows_that_would_do(rule, chooser, accepted.allowed)
        return DataError(
            f"no model{which} has unfairness at most {goal.max_unfairness:g}{sure}; "
            f"the least limit that can be met is {least:.3f}{more}",
            remedy=["raise the limit", "train with larger strengths", Remedy("best_effort", True)],
        )

    def _rows_that_would_do(self, rule: Rule, chooser: Chooser, allowed: Booleans) -> str:
        """How many rows would show that a configuration is within the limit; or empty.

        What a confidence adds to the square of a gap falls at least with the root of the number of
        rows.
        """
        if rule.confidence is None or rule.limit is None:
            return ""
        room = rule.limit**2 - np.maximum(chooser.gaps.squares, 0.0)
        reachable = allowed & (room > 0)
        if not reachable.any():
            return ""
        optimism = chooser.optimism(rule, allowed)
        allowance = rule.quantile * chooser.gaps.errors_of_squares + optimism
        times = float(((allowance[reachable] / room[reachable]) ** 2).min())
        rows = ceil(chooser.rows * max(times, 1.0))
        return f", and about {rows:,} rows like these would reach the limit"

    def _set_choice(
        self, outcome: Outcome, choice: Choice, chooser: Chooser, utility: Utility
    ) -> None:
        """Keep the choice with the figures that are expected of it on new rows."""
        assert choice.expected is not None
        chosen = outcome.tested
        source = self.source
        if chosen is None:
            chosen = with_expected(
                outcome.point, choice.expected, utility, self.record.unfairness_of
            )
        elif source is not None and utility is not self.utility:
            chosen = source.point_on_test_rows(outcome.model, outcome.point, utility)
        self.chosen_predictions = None
        if source is not None:
            self.chosen_predictions = source.predictions[outcome.job]
            if source.tested is not None:
                self.chosen_predictions = source.predictions_of(
                    outcome.job, outcome.model, source.tested
                )
        self.chosen_by = utility
        assert chosen is not None
        change = self._change(chosen, choice.configuration, chooser, utility)
        self.record = replace(self.record, chosen=chosen, change=change)

    def _change(
        self, chosen: Point, configuration: int, chooser: Chooser, utility: Utility
    ) -> Change | None:
        """The chosen point less that of its family without a penalty; None if there is none."""
        place = self._unpenalized(chooser.jobs[configuration], chooser)
        if place is None:
            return None
        is_tested = self._outcome(chooser.jobs[configuration]).tested is not None
        reference = self._outcome(chooser.jobs[place]).point
        if is_tested:
            reference = self._on_test_rows(chooser.jobs[place], utility)
        before = reference.figure(utility.name)
        after = chosen.figure(utility.name)
        if before is None or after is None:
            return None
        gain = after - before
        drop = chosen.gap(self.record.unfairness_of) - reference.gap(self.record.unfairness_of)
        if is_tested:
            # the resamples are not of the test rows
            return Change(reference, gain, drop)
        drawn = utility.sign * chooser.utility.drawn
        gaps = roots(chooser.gaps.drawn)
        intervals = {
            "utility": _interval_around(gain, drawn[:, configuration] - drawn[:, place]),
            "unfairness": _interval_around(drop, gaps[:, configuration] - gaps[:, place]),
        }
        return Change(reference, gain, drop, intervals)

    def _on_test_rows(self, job: Job, utility: Utility) -> Point:
        """The figures of the model of a configuration on the test rows."""
        outcome = self._trained(job)
        found = outcome.tested
        if self.source is not None and utility is not self.utility:
            found = self.source.point_on_test_rows(outcome.model, outcome.point, utility)
        return found or outcome.point

    def _unpenalized(self, job: Job, chooser: Chooser) -> int | None:
        """The place of the configuration of the same family without a penalty; None: there is
        none.
        """
        same = (job.family, job.seed)
        for place, other in enumerate(chooser.jobs):
            penalty = penalty_of(other, self._parameter_of(other))
            if (other.family, other.seed) == same and penalty == 0:
                return place
        return None

    def _with_figures(self, utility: UtilityLike) -> Utility:
        """The utility, with its figure in every point."""
        if isinstance(utility, str) and utility == self.utility.name:
            return self.utility
        source = self.source
        if source is None:
            raise DataError(
                f"a frontier from a file keeps the figures of its utility, {self.utility.name}, "
                "and no rows to compute another one",
                argument="utility",
                remedy=Remedy("utility", leave_out=True),
            )
        chosen_by = as_utility(utility, classes=source.part.problem.scheme.classes)
        is_usual = UTILITIES.get(chosen_by.name) is chosen_by
        usable = [point for point in self.points if not point.failed]
        known = is_usual and all(point.figure(chosen_by.name) is not None for point in usable)
        if not known:
            (rival,) = source.rivals(chosen_by)[-1:]
            self.outcomes = [
                replace(outcome, point=_extended(outcome, source, rival))
                for outcome in self.outcomes
            ]
        return chosen_by

    def constant_by(self, utility: Utility) -> tuple[Point | None, Any]:
        """The best constant predictor by a utility, and its prediction."""
        if self.source is not None and utility is not self.utility:
            return self.source.constant(utility)
        return self.record.constant, self.record.constant_value

    def held_out(self) -> dict[str, ColumnArray]:
        """Groups, labels and predictions of the rows that the chosen model's figures are of."""
        if self.chosen_predictions is None:
            raise DataError("no model is chosen; call select first")
        source = self.source
        if source is None:
            raise DataError(
                "a frontier from a file keeps no rows; make it anew with metrifair.frontier"
            )
        if source.tested is None:
            part = source.part
        else:
            part = source.tested
        if source.test_rows is None:
            rows = source.rows
        else:
            rows = source.test_rows
        return {"row": rows, **held_out_columns(self.chosen_predictions, part)}


def unverifiable_error(limit: float, noise: float, rows: int) -> DataError:
    """The error for a limit below the gap that chance explains: which limit so many rows can
    verify, and how many rows this one takes.

    >>> print(unverifiable_error(0.05, 0.1, 400))
    max_unfairness must be at least 0.100 to be verified with these 400 rows, got 0.05; raise the \
    limit, or use about 1,600 rows, or pass best_effort=True
    """
    remedies: list[Remedy | str] = ["raise the limit"]
    if limit > 0:
        remedies.append(f"use about {ceil(rows * (noise / limit) ** 2):,} rows")
    return DataError(
        f"must be at least {ceil(1000 * noise) / 1000:.3f} to be verified with these {rows:,} rows",
        argument="max_unfairness",
        received=limit,
        remedy=[*remedies, Remedy("best_effort", True)],
    )


def with_model(outcome: Outcome, model: Any, source: SweepContext) -> Outcome:
    """The configuration with its model of all rows, and what is known of it."""
    if model is None:
        return outcome
    return replace(
        outcome,
        model=model,
        resembles_folds=source.resembles_folds(outcome.job, model),
        tested=source.point_on_test_rows(model, outcome.point, source.utility),
    )


def _interval_around(value: float, draws: Any) -> Interval:
    """95 % of the draws around a value, whatever their mean."""
    low, high = np.quantile(draws - draws.mean(), (0.025, 0.975)).tolist()
    return Interval(value + low, value + high)


def _extended(outcome: Outcome, source: SweepContext, rival: Rival) -> Point:
    """The point with one more utility."""
    point = outcome.point
    predictions = source.predictions.get(outcome.job)
    if predictions is None:
        return point
    figures = utility_figures(predictions, source.part, [rival])
    return replace(
        point,
        more={**point.more, **figures.values},
        intervals={**point.intervals, **figures.intervals},
        errors={**point.errors, **figures.errors},
        marks={**point.marks, **figures.marks},
    )


def with_gap(
    point: Point, gap: float, interval: Interval | None, unfairness_of: str, noise: float
) -> Point:
    """The point with this gap, of scores or decisions."""
    name = gap_name(point, unfairness_of)
    intervals = {**point.intervals}
    if interval is not None:
        intervals[name] = interval
    figures: dict[str, Any] = {name: gap, "intervals": intervals, "is_noise": gap < noise}
    return replace(point, **figures)


def gap_name(point: Point, unfairness_of: str) -> str:
    """The name of the unfairness that is compared."""
    decides = unfairness_of == "decisions" and point.decision_unfairness is not None
    if decides:
        return "decision_unfairness"
    return "unfairness"


def with_expected(point: Point, expected: Expected, utility: Utility, unfairness_of: str) -> Point:
    """The point with the figures that are expected of it on new rows."""
    point = with_gap(point, expected.gap, expected.gap_interval, unfairness_of, expected.noise)
    around = expected.utility_interval
    ends = sorted((utility.sign * around.low, utility.sign * around.high))
    return with_utility(point, utility.sign * expected.utility, Interval(*ends), utility)


def with_utility(point: Point, value: float, interval: Interval | None, utility: Utility) -> Point:
    """The point with this utility."""
    intervals = {**point.intervals}
    if interval is not None:
        intervals[utility.key] = interval
    if utility.key == "accuracy":
        return replace(point, accuracy=value, intervals=intervals)
    return replace(point, more={**point.more, utility.key: value}, intervals=intervals)
