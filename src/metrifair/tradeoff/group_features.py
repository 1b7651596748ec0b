"""Features that show the group, so that a model can use it although prediction does not ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from math import lgamma, log

import numpy as np

from metrifair.problem.tables import ColumnArray, distinct, is_missing
from metrifair.support.arrays import Integers
from metrifair.tradeoff.points import FrontierNote
from metrifair.tradeoff.split import DataSet

_FIRST_ROWS = 1_000  # most often, they show that a feature does not determine the group
_CHANCE = 1e-4  # largest probability by chance, of all features, that counts


def group_feature_notes(data: DataSet) -> Iterator[FrontierNote]:
    """Notes on features each value of which belongs to one group of an attribute, in rows where
    both are known.

    In few rows that may be chance: it counts only if groups that are shuffled over the rows would
    do so with a probability below 1 in 10,000, all features considered.
    """
    problem = data.problem
    if problem.probabilities is not None:
        return
    features = data.feature_columns()
    limit = log(_CHANCE / max(1, len(features)))
    for attribute, group in zip(problem.scheme.attributes, problem.groups.T, strict=True):
        if attribute.is_number or len(attribute.groups) < 2:
            continue
        for name, column in features.items():
            known = (group >= 0) & ~is_missing(column)
            is_renaming = _is_renaming(column[known], group[known], limit)
            if is_renaming is None:
                continue
            facts = {
                "column": name,
                "attribute": attribute.name,
                "equal": is_renaming,
                "rows": int(known.sum()),
            }
            yield FrontierNote("group_feature", facts)


def _is_renaming(column: ColumnArray, group: Integers, limit: float) -> bool | None:
    """Whether each group has one value, too, if each value of the column has one group; None if
    some value has several, or chance explains it. ``limit`` is the log of its least probability.
    """
    if not _determines(distinct(column[:_FIRST_ROWS])[1], group[:_FIRST_ROWS]):
        return None
    code = distinct(column)[1]
    values = len(np.unique(code))
    groups = np.bincount(group)
    groups = groups[groups > 0]
    if values * log(len(groups)) - _log_arrangements(groups) >= limit:
        return None
    if not _determines(code, group):
        return None
    return values == len(groups)


def _determines(code: Integers, group: Integers) -> bool:
    """Whether the rows with one code are of one group."""
    if not len(code):
        return False
    of_code = np.empty(int(code.max()) + 1, dtype=group.dtype)
    of_code[code] = group
    return bool((of_code[code] == group).all())


def _log_arrangements(counts: Integers) -> float:
    """The logarithm of the number of ways to shuffle groups of these sizes over the rows."""
    return lgamma(counts.sum() + 1) - sum(lgamma(count + 1) for count in counts.tolist())
