"""The chance of each group given a row's features, for slopes of the penalty that trees cannot learn by heart.

The slope of a row is a function of its score times the group that it is in. What the features do not tell of the group
is noise, and trees fit it as they fit the noise of labels: training rows are drawn together by leaves of their own,
test rows are not. The mean of the slope given the features is without that noise. It needs the chance of each group,
from a model that has not seen the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from metrifair.boosting.objective import Floats, Integers, Shares
from metrifair.problem.cells import Comparison
from metrifair.problem.problem import Problem

FOLDS = 3

Chances = Callable[[Integers, Floats], Floats]
"""From kinds (n,), numbered from 0, and weights (n,): the chances (n, kinds) that a model fitted to them gives rows."""


def expected_shares(
    problem: Problem, comparisons: Sequence[Comparison], chances: Chances, random: np.random.RandomState
) -> tuple[Shares, ...] | None:
    """For each comparison how much of every row is to be expected on the left and on the right.

    Only the row's group is uncertain, among those that it may be in: its label and its stratum are its own. Of rows of
    unknown group nothing is expected. None where features tell the group of every row, as where it is one of them.
    """
    found: dict[int, Shares] = {}
    told = True
    for column, attribute in enumerate(problem.scheme.attributes):
        cells = []
        for code in range(len(attribute.groups)):
            groups = problem.groups.copy()
            groups[:, column] = code
            cells.append(replace(problem, groups=groups).cell)
        in_group = np.stack(cells, 1)  # the cell of each row if it were in each group
        sides = {
            place: (np.isin(in_group, one.left), np.isin(in_group, one.right))
            for place, one in enumerate(comparisons)
            if one.attribute == attribute.name
        }
        if not sides:
            continue
        context = np.stack([(left | right).any(1) for left, right in sides.values()], 1).astype(np.float64)
        counts = context.any(1) & (problem.groups[:, column] >= 0)
        if problem.scheme.criterion.score != "prediction":  # scores look at labels, of which the group tells more
            context = np.column_stack([context, np.asarray(problem.labels, dtype=np.float64)])
        _, context_code = np.unique(context, axis=0, return_inverse=True)
        weight = np.where(counts, 1.0 if problem.weight is None else problem.weight, 0.0)
        chance = _chances_of_groups(
            problem.groups[:, column],
            context_code.reshape(-1),
            groups=len(attribute.groups),
            weight=weight * (counts.sum() / weight.sum()),  # boosters feel the scale of weights
            chances=chances,
            random=random,
        )
        told = told and bool((chance.argmax(1) == problem.groups[:, column])[counts].all())
        found |= {place: ((chance * left).sum(1), (chance * right).sum(1)) for place, (left, right) in sides.items()}
    return None if told else tuple(found[place] for place in range(len(comparisons)))


def _chances_of_groups(
    group: Integers,
    context: Integers,
    *,
    groups: int,
    weight: Floats,
    chances: Chances,
    random: np.random.RandomState,
) -> Floats:
    """The chance (n, groups) of each group among rows of the same context, by models that have not seen the row."""
    counts = weight > 0
    kinds, kind = np.unique((context * groups + group)[counts], return_inverse=True)
    if len(kinds) == 1:
        return np.eye(groups)[group] * counts[:, None]
    target = np.zeros(len(group), dtype=np.int64)
    target[counts] = kind
    fold = np.full(len(group), -1)
    fold[np.lexsort((random.random(len(group)), target, ~counts))] = np.arange(len(group)) % FOLDS
    chance = np.zeros((len(group), groups))
    for held_out in range(FOLDS):
        given = chances(target, np.where(fold == held_out, 0.0, weight))
        for number, place in enumerate(kinds):
            rows = (fold == held_out) & (context == place // groups)
            chance[rows, place % groups] = given[rows, number]
    total = chance.sum(1, keepdims=True)
    chance = np.where(total > 0, chance / np.where(total > 0, total, 1.0), np.eye(groups)[group])
    return chance * counts[:, None]
