"""A search in memory as facts and counts: the out-of-fold scores of every configuration by fold,
group and label.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from metrifair.api.search_figures import SCORE_RANGE
from metrifair.auditing.measure.selection import DEFAULT_THRESHOLD
from metrifair.auditing.sources.state_counts import StateCounts, StateGrid
from metrifair.auditing.sources.state_parts import (
    Shape,
    StateParts,
    StateValue,
    sort_key,
    state_value,
)
from metrifair.errors import DataError
from metrifair.figures.count_bounds import COUNTED_UTILITIES, CountedUtility, score_kind
from metrifair.figures.utility import Predictions, Utility
from metrifair.problem.cells import Comparison
from metrifair.problem.problem import Problem
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.tradeoff.choice import NOTHING, Choice, Chooser, Rule
from metrifair.tradeoff.goal import Goal
from metrifair.tradeoff.points import Job
from metrifair.tradeoff.result import SweepContext, TradeOff
from metrifair.tradeoff.search_facts import (
    MOST_CONFIGURATIONS,
    ComparisonFacts,
    ConfigurationFacts,
    ExpectedFacts,
    GoalFacts,
    JsonScalar,
    ModelFacts,
    SearchFacts,
)

_DIGITS = 4  # of standard errors and of expected figures


@dataclass(frozen=True, eq=False)
class SearchRows:
    """The rows of a search: their groups, folds, strata and labels, and what is counted of them."""

    context: SweepContext
    utility: Utility
    names: tuple[str, ...] = ()  # of the columns of the counts, if they are known

    def check(self) -> None:
        """Raise a DataError for rows or scores whose figures counts cannot show."""
        part = self.context.part
        check_countable(
            part.problem,
            part.comparisons,
            clustered=part.problem.clusters is not None,
            tested=self.context.tested is not None,
        )
        check_utility(self.utility.name, self.context.unfairness_of)
        if len(self.context.jobs) > MOST_CONFIGURATIONS:
            raise DataError(
                f"the search has {len(self.context.jobs):,} configurations; evidence has at most "
                f"{MOST_CONFIGURATIONS:,}"
            )

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(attribute.name for attribute in self.context.part.problem.scheme.attributes)

    @cached_property
    def joint(self) -> bool:
        """Whether intersections of attributes are compared, so that all are counted together."""
        names = {comparison.attribute for comparison in self.context.part.comparisons}
        return len(self.attributes) == 1 or not names <= set(self.attributes)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of the counts: attributes, fold, stratum and label, each with its own name."""
        if self.names:
            return self.names
        problem = self.context.part.problem
        wanted = [*self.attributes, "fold"]
        if problem.strata is not None:
            wanted.append("stratum")
        wanted.append(problem.scheme.outcome)
        names: list[str] = []
        for name in wanted:
            unique = name
            while unique in names:
                unique += "'"
            names.append(unique)
        return tuple(names)

    @cached_property
    def values(self) -> list[list[StateValue]]:
        """The values of every column of the counts, by column."""
        problem = self.context.part.problem
        columns: list[list[StateValue]] = []
        for attribute, codes in zip(problem.scheme.attributes, problem.groups.T, strict=True):
            groups = [*map(state_value, attribute.groups), None]
            columns.append([groups[code] for code in codes])
        columns.append([int(fold) for fold in self.context.fold])
        if problem.strata is not None:
            assert problem.scheme.strata is not None
            names = [*problem.scheme.strata.names, None]
            columns.append([names[code] for code in problem.strata])
        labels = list(map(state_value, problem.scheme.classes))
        columns.append([labels[code] for code in self.context.part.labels])
        return columns

    @cached_property
    def _cells(self) -> tuple[list[tuple[StateValue, ...]], Integers]:
        """The cells in ascending order, and that of each row."""
        keys = list(zip(*self.values, strict=True))
        cells = sorted(set(keys), key=lambda cell: [sort_key(value) for value in cell])
        place = {cell: number for number, cell in enumerate(cells)}
        return cells, np.array([place[key] for key in keys], np.int64)

    def score(self, predictions: Predictions, name: str) -> Floats:
        """The scores that are counted: probabilities, or decisions as 0 and 1."""
        problem = self.context.part.problem
        if self.context.unfairness_of == "decisions":
            is_positive = np.asarray(predictions.decision == problem.scheme.positive)
            return is_positive.astype(np.float64)
        if predictions.kind == "output":
            raise DataError(
                f"the scores of {name} are not probabilities, so they have no public grid",
                remedy="use models with predict_proba",
            )
        return predictions.score

    def check_decisions(self, predictions: Predictions, name: str) -> None:
        """Raise a DataError unless the decisions are those at a probability of 0.5."""
        positive = predictions.decision == self.context.part.problem.scheme.positive
        if (
            self.context.unfairness_of == "scores"
            and (positive != (predictions.score >= DEFAULT_THRESHOLD)).any()
        ):
            raise DataError(
                f"the decisions of {name} are not those at a probability of 0.5, so counts of "
                "scores do not show its accuracy",
                remedy="choose by a utility of scores such as 'auc'",
            )

    def parts(self, scores: Floats) -> StateParts:
        """The counts of these scores."""
        cells, cell = self._cells
        groups = len(self.attributes)
        shape = Shape(
            groups=self.columns[:groups], controls=self.columns[groups:-1], label=self.columns[-1]
        )
        selected = np.bincount(cell, scores >= DEFAULT_THRESHOLD, len(cells))
        return StateParts(
            None,
            SCORE_RANGE,
            DEFAULT_THRESHOLD,
            shape=shape,
            cells=cells,
            selected=selected.astype(np.float64),
            counts=StateCounts.of_rows(StateGrid.between(*SCORE_RANGE), scores, cell, None),
        )

    def comparisons(self) -> list[ComparisonFacts]:
        """The comparisons, by the values of their rows."""
        part = self.context.part
        sides = part.fold_sides(self.context.fold)
        found = []
        for comparison, left, right in zip(part.comparisons, sides.left, sides.right, strict=True):
            table = 0
            if not self.joint:
                table = self.attributes.index(comparison.attribute)
            found.append(self._comparison(comparison, table, (left > 0, right > 0)))
        return found

    def _comparison(
        self, comparison: Comparison, table: int, sides: tuple[Booleans, Booleans]
    ) -> ComparisonFacts:
        groups = len(self.attributes)
        fold = groups
        places = [*range(groups)] if self.joint else [table]
        places += [place for place in range(groups, len(self.columns)) if place != fold]
        columns = [self.values[place] for place in places]
        left, right = (_distinct(columns, side) for side in sides)
        return ComparisonFacts(
            table=table,
            attribute=comparison.attribute,
            within=comparison.within,
            groups=comparison.groups,
            left=left,
            right=right,
        )


def check_countable(
    problem: Problem, comparisons: Iterable[Comparison], *, clustered: bool, tested: bool
) -> None:
    """Raise a DataError for rows whose figures counts cannot show; ``tested``: some rows are test
    rows.
    """
    reasons = {
        "weights": problem.weight is not None,
        "clusters": clustered,
        "group probabilities": problem.probabilities is not None,
        "a target that is a number": not problem.scheme.classes,
        "more than two classes": len(problem.scheme.classes) > 2,
        "numeric attributes": any(not comparison.right for comparison in comparisons),
        "a criterion of losses": problem.scheme.criterion.score != "prediction",
        "test rows": tested,
    }
    found = [name for name, applies in reasons.items() if applies]
    if found:
        raise DataError(
            f"evidence of a search contains counts of scores, which cannot show the figures "
            f"of {found[0]}",
            remedy="write the frontier with to_json or to_html",
        )


def check_utility(name: str, unfairness_of: str) -> None:
    """Raise a DataError for a utility that the counts do not determine."""
    known: Sequence[CountedUtility] = COUNTED_UTILITIES
    if unfairness_of == "decisions":
        known = ("accuracy", "balanced_accuracy")
    if name not in known:
        raise DataError(
            f"counts of {unfairness_of} do not determine the utility {name!r}",
            remedy=f"choose by one of {', '.join(map(repr, known))}",
        )


def _distinct(columns: Sequence[Sequence[StateValue]], rows: Booleans) -> list[list[JsonScalar]]:
    """The distinct combinations of values of some rows, in ascending order."""
    places = np.flatnonzero(rows).tolist()
    keys = {tuple(column[place] for column in columns) for place in places}
    return [list(key) for key in sorted(keys, key=lambda key: [sort_key(part) for part in key])]


@dataclass(frozen=True, eq=False)
class MadeChoice:
    """The choice of a frontier, made again: its rule, and what was passed over."""

    chooser: Chooser
    goal: Goal | None
    choice: Choice
    allowance: float
    met: bool
    passed_over: frozenset[Job]


def made_choice(trade_off: TradeOff) -> MadeChoice:
    """The choice of a frontier with its rows in memory, made again among the same configurations."""
    record = trade_off.record
    context = trade_off.source
    assert context is not None
    assert record.chosen is not None
    chooser = context.chooser(trade_off.chosen_by or trade_off.utility)
    candidates = trade_off.candidates(chooser)
    rule = Rule.of(record.goal)
    choice, applied = chooser.choose_or_least_unfair(rule, candidates)
    place = choice.configuration
    if place == NOTHING or chooser.jobs[place] != record.chosen.job:
        raise DataError("the chosen model is not a choice of this search; call select again")
    return MadeChoice(
        chooser,
        record.goal,
        choice,
        allowance=chooser.optimism(applied, candidates),
        met=applied is rule,
        passed_over=trade_off.passed_over,
    )


def search_facts(
    trade_off: TradeOff,
    rows: SearchRows,
    delivered: Floats,
    *,
    reason: str,
    model: ModelFacts | None,
) -> SearchFacts:
    """What is stated of a search besides its counts; ``delivered`` are the scores of the model of
    all rows.
    """
    made = made_choice(trade_off)
    context = rows.context
    scheme = context.part.problem.scheme
    places = {job: place for place, job in enumerate(made.chooser.jobs)}
    configurations = [
        _configuration(number, outcome.job, places.get(outcome.job), rows, made)
        for number, outcome in enumerate(trade_off.outcomes, 1)
    ]
    numbers = {outcome.job: number for number, outcome in enumerate(trade_off.outcomes, 1)}
    order = [places[outcome.job] for outcome in trade_off.outcomes if outcome.job in places]
    chooser = made.chooser
    goal = made.goal
    errors = chooser.utility.errors_of_differences
    if goal is not None and goal.min_accuracy is not None and made.met:
        errors = chooser.gaps.errors_of_differences
    name: Any = rows.utility.name
    compared: Any = context.unfairness_of
    asked = None
    if goal is not None:
        asked = GoalFacts(**vars(goal))
    return SearchFacts(
        kind="metrifair search",
        version=1,
        reason=reason,
        goal=asked,
        met=made.met,
        utility=name,
        larger_is_better=rows.utility.larger_is_better,
        unfairness_of=compared,
        criterion=scheme.criterion.name,
        contrast=scheme.contrast,
        positive=state_value(scheme.classes[scheme.positive]),
        columns=list(rows.columns),
        attributes=len(rows.attributes),
        joint=rows.joint,
        folds=trade_off.record.folds,
        seed=context.seed,
        configurations=configurations,
        comparisons=rows.comparisons(),
        allowance=rounded(made.allowance),
        errors_of_differences=[[rounded(errors[left, right]) for right in order] for left in order],
        chosen=numbers[chooser.jobs[made.choice.configuration]],
        expected=expected_facts(made.choice, larger_is_better=rows.utility.larger_is_better),
        delivered_scores=score_kind(delivered),
        model=model,
    )


def _configuration(
    number: int, job: Job, place: int | None, rows: SearchRows, made: MadeChoice
) -> ConfigurationFacts:
    """The facts of a configuration; without a place, it failed."""
    context = rows.context
    facts: dict[str, Any] = {
        "number": number,
        "family": job.family,
        "parameter": context.parameter_of(job),
        "value": job.value,
        "seed": job.seed,
        "needs_group": job in context.group_aware,
    }
    if place is None:
        return ConfigurationFacts(**facts, excluded="failed")
    excluded: Any = ""
    if made.goal is not None and made.goal.needs_group not in (None, facts["needs_group"]):
        excluded = "needs_group"
    if job in made.passed_over:
        excluded = "unlike_folds"
    chooser = made.chooser
    if not excluded and not has_utility(chooser, place):
        excluded = "no_utility"
    scores = rows.score(context.predictions[job], job.name)
    return ConfigurationFacts(
        **facts,
        excluded=excluded,
        simplicity=int(chooser.simplicity[place]),
        **facts_of_scores(chooser, place, scores),
    )


def has_utility(chooser: Chooser, place: int) -> bool:
    """Whether the utility of a configuration is defined."""
    return bool(np.isfinite(chooser.utility.values[place]))


def facts_of_scores(chooser: Chooser, place: int, scores: Floats) -> dict[str, Any]:
    """The facts of a configuration that its scores determine: tier, kind and standard errors."""
    utility_error = 0.0
    if has_utility(chooser, place):
        utility_error = float(chooser.utility.drawn[:, place].std(ddof=1))
    return {
        "tier": int(chooser.tier[place]),
        "scores": score_kind(scores),
        "unfairness_error": rounded(chooser.gaps.errors[place]),
        "square_error": rounded(chooser.gaps.errors_of_squares[place]),
        "utility_error": rounded(utility_error),
    }


def expected_facts(choice: Choice, *, larger_is_better: bool) -> ExpectedFacts:
    """The figures that are expected of a choice, rounded."""
    expected = choice.expected
    assert expected is not None
    sign = 1.0 if larger_is_better else -1.0
    low, high = sorted(
        (sign * expected.utility_interval.low, sign * expected.utility_interval.high)
    )
    return ExpectedFacts(
        unfairness=rounded(expected.gap),
        unfairness_low=rounded(expected.gap_interval.low),
        unfairness_high=rounded(expected.gap_interval.high),
        utility=rounded(sign * expected.utility),
        utility_low=rounded(low),
        utility_high=rounded(high),
    )


def rounded(value: float) -> float:
    """A number with four significant digits: no more can be known of a standard error.

    >>> rounded(0.0123456), rounded(1e-17)
    (0.01235, 1e-17)
    """
    return float(f"{float(value):.{_DIGITS}g}")
