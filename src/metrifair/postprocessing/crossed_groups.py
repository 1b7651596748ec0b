"""Combinations of several attributes' groups, each a group of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import TooFewSamples
from metrifair.postprocessing.cross_fitting import Integers
from metrifair.problem.problem import Problem, Scheme
from metrifair.problem.tables import UNKNOWN


class CrossedGroups(NamedTuple):
    """The combinations of all attributes' groups that were seen: each is a group of its own.

    Parity of all crossed groups is parity of every attribute, whichever is looked at first; one attribute after the
    other would be exact for the last one only.
    """

    scheme: Scheme
    seen: Integers  # (groups, attributes): codes, in ascending order

    @classmethod
    def of_rows(cls, problem: Problem, sets: Mapping[str, NDArray[np.bool_]]) -> CrossedGroups:
        """Those with rows in each of the sets; a combination without is as one that was not seen, a group an error."""
        known = (problem.groups != UNKNOWN).all(1)
        seen = np.unique(problem.groups[known], axis=0)
        for name, member in sets.items():
            inside = {tuple(codes) for codes in problem.groups[known & member].tolist()}
            there = np.array([tuple(codes) in inside for codes in seen.tolist()])
            if not there.all() and len(problem.scheme.attributes) == 1:
                group = problem.scheme.attributes[0].groups[int(seen[~there][0, 0])]
                raise TooFewSamples(f"group {group!r} has no row with {name}, on which the criterion conditions")
            seen = seen[there]
        if len(seen) < 2:
            raise TooFewSamples(f"sensitive_features: rows of {len(seen)} group(s) can be compared; two are needed")
        return cls(problem.scheme, seen)

    def codes(self, groups: Integers) -> Integers:
        """The crossed group of rows of these groups; unknown where an attribute is, or the combination was not seen.

        >>> from metrifair.problem.problem import Given, problem_of
        >>> problem = problem_of(Given(sensitive_features={"sex": ["f", "m", "f"], "old": [0, 0, 1]}))
        >>> CrossedGroups.of_rows(problem, {}).codes(np.array([[1, 0], [0, 1], [1, 1], [0, -1]]))
        array([ 2,  1, -1, -1])
        """
        radix = [len(attribute.groups) + 1 for attribute in self.scheme.attributes]
        known, own = (np.ravel_multi_index(tuple((table % radix).T), radix) for table in (self.seen, groups))
        place = np.searchsorted(known, own).clip(max=len(known) - 1)
        return np.where(known[place] == own, place, UNKNOWN)

    @property
    def names(self) -> tuple[object, ...]:
        """What the groups are called: of several attributes, by one value of each."""
        parts = [
            tuple(attribute.groups[code] for attribute, code in zip(self.scheme.attributes, codes, strict=True))
            for codes in self.seen.tolist()
        ]
        return tuple(part[0] for part in parts) if len(self.scheme.attributes) == 1 else tuple(parts)
