"""The threshold of the decisions: the best by accuracy or by costs, or the fairest among those that decide as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.checks import check_known
from metrifair.errors import DataError
from metrifair.measures import Floats, Measured, Predictions
from metrifair.problem.problem import Problem
from metrifair.utility import UTILITIES, Utility, expected_cost

ThresholdRule: TypeAlias = Literal["accuracy", "cost", "parity"]
Costs: TypeAlias = Sequence[Sequence[float]]

RULES: tuple[ThresholdRule, ...] = ("accuracy", "cost", "parity")
USUAL = 0.5  # where nobody chose
_NOISE = 1.96  # standard errors of a difference that chance explains
_MOST, _FEWEST, _WORK = 1_000, 50, 20_000_000  # thresholds that are tried; decisions in all, about


class ChosenThreshold(NamedTuple):
    """A threshold, and what its decisions reach on the rows it was chosen on."""

    threshold: float
    utility: Utility  # by which it was chosen
    value: float
    gap: float | None  # largest difference of decision rates that the criterion compares; None: not looked at


def choose_threshold(
    score: Floats, problem: Problem, *, rule: ThresholdRule = "accuracy", costs: Costs | None = None
) -> ChosenThreshold:
    """From which probability of the positive class on to decide for it, told by rows whose outcomes are known.

    "accuracy": most right decisions. "cost": least mean cost, with ``costs[label][decision]`` by the classes in
    ascending order. "parity": the least gap between the decision rates that the criterion compares, among the
    thresholds whose balanced accuracy is within noise of the best one's (the 95 % interval of the difference, whose
    rows are paired, holds 0). Plain accuracy would not do for parity: where nearly everyone is a yes, saying yes to
    all is as accurate as anything, and has no gap. Of equals the threshold nearest to 0.5 is taken.

    >>> from metrifair.problem.problem import Given, problem_of
    >>> rows = problem_of(Given(["no", "no", "yes", "yes"], sensitive_features=["f", "m", "f", "m"]))
    >>> score = np.array([0.1, 0.2, 0.3, 0.9])
    >>> choose_threshold(score, rows).threshold
    0.25
    >>> choose_threshold(score, rows, rule="cost", costs=[[0, 9], [1, 0]]).threshold        # a wrong yes costs most
    0.25
    """
    classes, positive = problem.scheme.classes, problem.scheme.positive
    check_known("the rule of a threshold", rule, RULES)
    if len(classes) != 2:
        kind = f"{len(classes)} classes" if classes else "a number"
        raise DataError(f"a threshold decides between two classes, and {kind} is predicted here; leave it out")
    if (costs is None) == (rule == "cost"):
        raise DataError(f"costs are for the rule 'cost', which needs them; got the rule {rule!r} and costs {costs!r}")
    utility = expected_cost(costs, classes) if costs is not None else UTILITIES[_UTILITY[rule]]
    tried = _candidates(score)
    decided = score >= tried[:, None]
    reached = [_measured(utility, score, np.where(row, positive, 1 - positive), problem) for row in decided]
    worth = np.array([utility.worth(found.value) for found in reached])
    best = int(worth.argmax())
    gaps = np.zeros(len(tried))
    equal = worth >= worth[best] - 1e-12
    if rule == "parity":
        gaps = decision_gaps(decided, problem)
        equal = np.array([_within_noise(found, reached[best], problem) for found in reached])
    places = np.flatnonzero(equal)
    order = np.lexsort((np.abs(tried - USUAL)[places], -worth[places], gaps[places]))
    place = int(places[order[0]])
    gap = float(gaps[place]) if rule == "parity" else None
    return ChosenThreshold(float(tried[place]), utility, reached[place].value, gap)


_UTILITY = {"accuracy": "accuracy", "parity": "balanced_accuracy"}


def _candidates(score: Floats) -> Floats:
    """Thresholds in ascending order: between scores, evenly over the rows where these are many; none, all and 0.5."""
    most = int(np.clip(_WORK // max(1, len(score)), _FEWEST, _MOST))
    distinct = np.unique(score)
    if len(distinct) > most:
        distinct = np.unique(np.quantile(score, np.linspace(0, 1, most), method="nearest"))
    return np.unique([0.0, USUAL, 1.0, *(distinct[:-1] / 2 + distinct[1:] / 2)])


def _measured(utility: Utility, score: Floats, decision: NDArray[Any], problem: Problem) -> Measured:
    found = utility.of(Predictions(score, decision, "probability"), problem)
    if found is None:
        raise DataError(f"{utility.label} is not known of these rows, by which the threshold is chosen")
    return found


def _within_noise(found: Measured, best: Measured, problem: Problem) -> bool:
    """Whether the difference of two utilities of the same rows may be chance."""
    difference = abs(found.value - best.value)
    if found.influence is None or best.influence is None:
        return difference <= 1e-12
    error = Measured(difference, found.influence - best.influence).error(problem.weight) or 0.0
    return difference <= _NOISE * error + 1e-12


def decision_gaps(decided: NDArray[np.bool_], problem: Problem) -> Floats:
    """Of each row of decisions (k, n) the largest difference of rates between the sides of a comparison: (k,).

    The rates are those of decisions for the positive class; under risk parity, of wrong decisions.
    """
    if problem.scheme.criterion.score == "loss":
        decided = decided != problem.is_positive
    weight = np.ones(len(problem)) if problem.weight is None else problem.weight
    cell, largest = problem.cell, np.zeros(len(decided))
    size = int(cell.max()) + 1
    rows = np.bincount(cell, weight, minlength=size)
    chosen = np.stack([np.bincount(cell, weight * row, minlength=size) for row in decided])
    for one in problem.comparisons:
        left, right = ([at for at in side if at < size] for side in (one.left, one.right))
        if rows[left].sum() > 0 and rows[right].sum() > 0:
            rates = (chosen[:, side].sum(1) / rows[side].sum() for side in (left, right))
            largest = np.maximum(largest, np.abs(next(rates) - next(rates)))
    return largest
