"""Sets of samples within which groups are compared: by label, and those that the user gives."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import DataError
from metrifair.problem.criteria import Criterion

Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]

_MOST_OVERLAPPING_SETS = 12


class Strata(NamedTuple):
    """Sets given by the user: which ones each stratum belongs to. Stratum -1 belongs to none."""

    member: Booleans  # (strata, sets)
    names: tuple[str, ...]
    values: tuple[object, ...] | None = None  # what a sample of each stratum shows; None: its membership of the sets


def separate_strata(names: Sequence[str], values: Sequence[object] | None = None) -> Strata:
    """Strata that are themselves the sets."""
    return Strata(np.eye(len(names), dtype=np.bool_), tuple(names), None if values is None else tuple(values))


def overlapping_strata(names: Sequence[str]) -> Strata:
    """Every combination of sets that may overlap; stratum numbers are ``stratum_of`` their membership."""
    if len(names) > _MOST_OVERLAPPING_SETS:
        raise DataError(f"at most {_MOST_OVERLAPPING_SETS} overlapping sets can be told apart, got {len(names)}")
    patterns = np.arange(2 ** len(names))[:, None] >> np.arange(len(names))
    return Strata((patterns & 1).astype(np.bool_), tuple(names))


def stratum_of(membership: Booleans) -> Integers:
    """The number of the combination of overlapping sets that each row (n, sets) belongs to."""
    code: Integers = membership.astype(np.int64) @ (2 ** np.arange(membership.shape[1]))
    return code


EVERYONE = separate_strata(["everyone"])


def sets_of(criterion: Criterion, classes: Sequence[object], positive: int) -> Strata:
    """The sets within which a criterion compares, by label."""
    if criterion.sets is not None:
        return overlapping_strata(criterion.set_names)
    if criterion.labels is None:
        return EVERYONE
    if criterion.bins is not None:
        cuts = criterion.bins
        middle = [f"{low} <= y < {high}" for low, high in pairwise(cuts)]
        every = separate_strata([f"y < {cuts[0]}", *middle, f"y >= {cuts[-1]}"])
    else:
        every = separate_strata([f"y = {label}" for label in classes])
    if criterion.labels == "every":
        return every
    if criterion.bins is not None:
        positive = len(criterion.bins)  # the highest values
    chosen = np.arange(len(every.names)) == positive
    if criterion.labels == "positive":
        return Strata(chosen[:, None], (every.names[positive],))
    name = every.names[1 - positive] if len(every.names) == 2 else f"not {every.names[positive]}"
    return Strata(~chosen[:, None], (name,))
