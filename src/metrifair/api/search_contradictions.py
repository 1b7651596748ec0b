"""What the facts of a search must have in common with each other and with the counts, whatever
the scores are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from metrifair.api.search_figures import DELIVERED, Scoring
from metrifair.auditing.release.suppression import Ends
from metrifair.figures.count_bounds import ScoreKind
from metrifair.figures.utility import UTILITIES
from metrifair.support.special import normal_quantile
from metrifair.tradeoff.possible_choices import FIGURE_ROUNDING, ROUNDED
from metrifair.tradeoff.search_facts import ConfigurationFacts, SearchFacts, SearchFigures

_EVEN = 0.5  # a confidence


def contradictions(
    facts: SearchFacts,
    figures: SearchFigures,
    scorings: Mapping[str, Scoring],
    *,
    withheld: bool,
) -> list[str]:
    """The places of facts that contradict other facts or the counts; ``figures`` are those of the
    counts. Folds can be missing where rows are ``withheld``.
    """
    return [
        *_of_the_whole(facts, figures),
        *_of_folds(facts, scorings, withheld=withheld),
        *_of_configurations(facts, scorings),
    ]


def _of_the_whole(facts: SearchFacts, figures: SearchFigures) -> Iterator[str]:
    if facts.larger_is_better != UTILITIES[facts.utility].larger_is_better:
        yield "larger_is_better"
    if facts.met != _may_be_met(facts, figures):
        yield "met"
    limited = facts.goal is not None and facts.goal.max_unfairness is not None
    if facts.allowance and not (facts.met and limited):
        yield "allowance"
    errors = np.array(facts.errors_of_differences)
    close = np.isclose(errors, errors.T, rtol=2 * ROUNDED, atol=FIGURE_ROUNDING)
    if not close.all() or np.diag(errors).any():
        yield "errors_of_differences"


def _may_be_met(facts: SearchFacts, figures: SearchFigures) -> bool:
    """Whether the goal is met, as far as the counts show; otherwise what is stated."""
    goal = facts.goal
    if goal is None:
        return True
    if goal.confidence is not None and goal.confidence < _EVEN:
        return facts.met  # standard errors are subtracted
    allowed = {item.number for item in facts.usable if not item.excluded}
    chosen = [item for item in figures.configurations if item.number in allowed]
    if goal.max_unfairness is not None:
        if any(item.unfairness.low <= goal.max_unfairness + FIGURE_ROUNDING for item in chosen):
            certain = any(item.unfairness.high < goal.max_unfairness for item in chosen)
            # an allowance, which is unknown where the goal is not met, can exceed the limit
            return facts.met or (certain and goal.confidence is None)
        return False
    assert goal.min_accuracy is not None
    errors = {item.number: item.square_error for item in facts.usable}
    quantile = 0.0 if goal.confidence is None else normal_quantile(goal.confidence)
    known = [
        (item.accuracy, quantile * errors[item.number])
        for item in chosen
        if item.accuracy is not None
    ]
    if any(figure.low - more > goal.min_accuracy + FIGURE_ROUNDING for figure, more in known):
        return True
    possible = any(
        figure.high - more >= goal.min_accuracy - FIGURE_ROUNDING for figure, more in known
    )
    return facts.met and possible


def _of_folds(
    facts: SearchFacts, scorings: Mapping[str, Scoring], *, withheld: bool
) -> Iterator[str]:
    expected = set(range(max(facts.folds, 1)))
    table, _ = scorings[DELIVERED][0]
    assert table.shape is not None
    found = {cell[len(table.shape.groups)] for cell in table.cells}
    if found - expected or (found != expected and not withheld):
        yield "folds"


def _of_configurations(facts: SearchFacts, scorings: Mapping[str, Scoring]) -> Iterator[str]:
    if not _can_be(facts.delivered_scores, scorings[DELIVERED]):
        yield "delivered_scores"
    for place, item in enumerate(facts.configurations):
        if item.excluded == "failed":
            continue
        if (item.excluded == "needs_group") != _is_of_other_need(facts, item):
            yield f"configurations[{place}].excluded"
        # scores that are not decisions determine every utility
        if item.excluded == "no_utility" and item.scores not in ("decisions", "constant"):
            yield f"configurations[{place}].excluded"
        if not _can_be(item.scores, scorings[str(item.number)]):
            yield f"configurations[{place}].scores"


def _is_of_other_need(facts: SearchFacts, item: ConfigurationFacts) -> bool:
    """Whether a configuration was not asked for, as it needs the group or does not."""
    goal = facts.goal
    return goal is not None and goal.needs_group not in (None, item.needs_group)


def _can_be(kind: ScoreKind, scoring: Scoring) -> bool:
    """Whether scores of a kind can lie in the intervals of the counts."""
    intervals: list[Ends] = [pair for _, ends in scoring for pair in ends]
    low, high = np.array(intervals).reshape(-1, 2).T
    if kind == "decisions":
        return bool(((low <= 0) | (high >= 1)).all())
    if kind == "constant":
        return bool(low.max(initial=0.0) <= high.min(initial=1.0))
    return True


def passed_over(configurations: Sequence[ConfigurationFacts]) -> int:
    """How many configurations were passed over for their models of all rows, which no file
    contains.
    """
    return sum(item.excluded == "unlike_folds" for item in configurations)
