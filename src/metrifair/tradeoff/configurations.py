"""Out-of-fold predictions of all models -> the configurations that a choice compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.figures.utility import Predictions, Utility, UtilityEstimate
from metrifair.problem.tables import take_rows
from metrifair.support.arrays import Floats, Integers
from metrifair.tradeoff.evaluate import decisions_to_compare, scores_to_compare
from metrifair.tradeoff.points import Job
from metrifair.tradeoff.split import HeldOut

_BLOCKS = 20  # of rows, to approximate the influence of each on a utility of the user
_SIMPLEST = ("linear", "barycenter", "blind_barycenter", "small_trees", "large_trees", "network")
"""Families of "auto", the simplest first; stacks and thresholds follow."""
_TWO_VALUES = 1
_SAME_FOR_EVERYONE = 2


class Kind(NamedTuple):
    """What makes one configuration simpler than another: see ``simplicity``."""

    parameter: str
    needs_group: bool
    family: int  # its place among the families


def penalty_of(job: Job, parameter: str) -> float:
    """How much a configuration gives up for fairness; 0: nothing.

    >>> penalty_of(Job(0.25, 0), "tolerance"), penalty_of(Job(2.0, 0), "strength")
    (0.75, 2.0)
    """
    if parameter == "tolerance":
        return 1 - job.value
    return job.value


def simplicity(jobs: Sequence[Job], kinds: Mapping[Job, Kind]) -> Integers:
    """The rank of each configuration, 0 for the simplest.

    No penalty before a penalty, models that need no group before others, then families in their
    order, then a smaller penalty.

    >>> jobs = [Job(1.0, 0), Job(0.0, 0), Job(0.5, 0)]
    >>> simplicity(jobs, dict.fromkeys(jobs, Kind("strength", False, 0))).tolist()
    [2, 0, 1]
    """

    def key(place: int) -> tuple[bool, bool, int, float, int]:
        job = jobs[place]
        kind = kinds[job]
        penalty = penalty_of(job, kind.parameter)
        return penalty > 0, kind.needs_group, kind.family, penalty, job.seed

    count = len(jobs)
    order = sorted(range(count), key=key)
    ranks = np.empty(count, dtype=np.int64)
    ranks[order] = np.arange(count)
    return ranks


def family_place(name: str, names: Sequence[str]) -> int:
    """The place of a family, the simplest first; families of the user have their own order."""
    if name in _SIMPLEST:
        return _SIMPLEST.index(name)
    return len(_SIMPLEST) + list(names).index(name)


def compared_scores(
    predictions: Sequence[Predictions], part: HeldOut, unfairness_of: str
) -> Floats:
    """The scores of all configurations that are compared: (configurations, lines, n)."""
    return np.array([lines(found, part, unfairness_of) for found in predictions])


def utility_by_rows(
    utility: Utility, predictions: Sequence[Predictions], part: HeldOut, fold: Integers
) -> tuple[Floats, Floats]:
    """The utility of each configuration, larger for better ones, and what each row adds to it:
    (configurations,) and (configurations, n).
    """
    estimates = [fold_utility(utility, found, part, fold) for found in predictions]
    values = np.array([estimate.value for estimate in estimates])
    influences = np.array([estimate.influence for estimate in estimates])
    return utility.sign * values, utility.sign * influences


def tiers(
    predictions: Sequence[Predictions],
    part: HeldOut,
    fold: Integers,
    *,
    utility: Utility,
    unfairness_of: str,
) -> Integers:
    """0 where nothing speaks against a configuration, 1 for models that only decide although scores
    are compared, 2 for those that predict the same for everyone.
    """
    decides = utility.needs == "decisions" or unfairness_of == "decisions"
    is_of_scores = unfairness_of == "scores" and not part.regression
    found = np.zeros(len(predictions), dtype=np.int64)
    for place, of_one in enumerate(predictions):
        if is_of_scores and _has_two_values(of_one, part, fold):
            found[place] = _TWO_VALUES
        if decides and decides_the_same(of_one, fold):
            found[place] = _SAME_FOR_EVERYONE
        if is_constant(of_one, fold):
            found[place] = _SAME_FOR_EVERYONE
    return found


def lines(predictions: Predictions, part: HeldOut, unfairness_of: str) -> Floats:
    """The scores that are compared, (lines, n): one line, or one for each of several classes."""
    if unfairness_of == "decisions" and not part.regression:
        compared = decisions_to_compare(predictions, part)
    else:
        compared = scores_to_compare(predictions, part)
    return np.atleast_2d(compared.numpy().astype(np.float64))


def is_constant(predictions: Predictions, fold: Integers) -> bool:
    """Whether the scores of every fold are the same for everyone."""
    return _is_same(predictions.score, fold)


def decides_the_same(predictions: Predictions, fold: Integers) -> bool:
    """Whether the decisions of every fold are the same for everyone."""
    return _is_same(predictions.decision, fold)


def _is_same(values: NDArray[Any], fold: Integers) -> bool:
    for number in range(int(fold.max()) + 1):
        inside = values[fold == number]
        if (inside != inside[:1]).any():
            return False
    return True


def _has_two_values(predictions: Predictions, part: HeldOut, fold: Integers) -> bool:
    """Whether scores of one fold and group have at most two values, as decisions have.

    A group's probability of a decision that is drawn at random is a third one.
    """
    if predictions.kind == "decision":
        return True
    if predictions.score.ndim > 1:
        return False
    folds = int(fold.max()) + 1
    cells = part.problem.cell * folds + fold
    counts = []
    for cell in np.unique(cells):
        distinct = np.unique(predictions.score[cells == cell])
        counts.append(len(distinct))
    return max(counts) <= 3


def fold_utility(
    utility: Utility, predictions: Predictions, part: HeldOut, fold: Integers
) -> UtilityEstimate:
    """The utility of out-of-fold predictions, with the influence of each row.

    Rankings are compared within folds, as scores of different models are not ranked, and
    averaged by the number of pairs. A utility without a value has minus infinity.
    """
    if utility.name == "auc" and fold.max() > 0:
        return _auc_within_folds(utility, predictions, part, fold)
    estimate = utility.of(predictions, part.problem, part.X)
    if estimate is None:
        worst = -utility.sign * np.inf
        return UtilityEstimate(worst, np.zeros(len(part.problem)))
    if estimate.influence is not None:
        return estimate
    influence = _influence_by_blocks(utility, predictions, part, estimate)
    return estimate._replace(influence=influence)


def _auc_within_folds(
    utility: Utility, predictions: Predictions, part: HeldOut, fold: Integers
) -> UtilityEstimate:
    values: list[float] = []
    pairs: list[float] = []
    influences: list[tuple[Integers, Floats]] = []
    for number in range(int(fold.max()) + 1):
        rows = np.flatnonzero(fold == number)
        problem = part.problem.take(rows)
        estimate = utility.of(_of_rows(predictions, rows), problem)
        if estimate is None or estimate.influence is None:
            continue
        values.append(estimate.value)
        pairs.append(_pairs(problem.labels, problem.weight))
        influences.append((rows, estimate.influence))
    if not values:
        return UtilityEstimate(-np.inf, np.zeros(len(part.problem)))
    shares = np.array(pairs) / sum(pairs)
    weight = part.problem.row_weights
    influence = np.zeros(len(fold))
    for share, (rows, of_fold) in zip(shares, influences, strict=True):
        influence[rows] = share * of_fold * weight.sum() / weight[rows].sum()
    return UtilityEstimate(float(shares @ values), influence)


def _pairs(labels: Integers | None, weight: Floats | None) -> float:
    """The weight of the pairs of rows with different labels."""
    assert labels is not None
    amounts = np.bincount(labels, weight)
    return float(amounts.sum() ** 2 - (amounts**2).sum()) / 2


def _influence_by_blocks(
    utility: Utility, predictions: Predictions, part: HeldOut, whole: UtilityEstimate
) -> Floats:
    """The influence of each row, the same for all rows of a block: the change without the block."""
    count = len(part.problem)
    block = np.arange(count) % min(_BLOCKS, count)
    influence = np.zeros(count)
    for number in range(int(block.max()) + 1):
        rows = np.flatnonzero(block != number)
        problem = part.problem.take(rows)
        X = take_rows(part.X, rows)
        without = utility.of(_of_rows(predictions, rows), problem, X)
        left_out = count - len(rows)
        if without is not None:
            loss = whole.value - without.value
            influence[block == number] = loss * len(rows) / left_out
    centered: Floats = influence - influence.mean()
    return centered


def _of_rows(predictions: Predictions, rows: Integers) -> Predictions:
    return Predictions(predictions.score[rows], predictions.decision[rows], predictions.kind)
