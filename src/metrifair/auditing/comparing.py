"""Who is compared with whom: groups against each other or against the rest, as atoms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.atoms import Atoms, Floats, Integers, atoms_at
from metrifair.auditing.inputs import Part
from metrifair.auditing.intervals import Rows
from metrifair.problem.cells import Attribute, Contrast
from metrifair.report.auditwords import REST

MOST_PAIRED = 30
"""Up to so many groups of an attribute are compared in pairs, more of them each with the rest."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Two groups within one set, and the atoms of their scores."""

    attribute: str
    criterion: str
    within: str
    groups: tuple[str, str]
    sizes: tuple[int, int]
    atoms: Atoms
    rows: tuple[Rows, ...] = ()  # of either side, where samples have weights


def contrast_of(groups: int, contrast: Contrast) -> Contrast:
    """How so many groups are compared."""
    return "rest" if groups > MOST_PAIRED else contrast


def opponents(present: Sequence[int], contrast: Contrast) -> list[tuple[int, int | None]]:
    """Codes of the groups on either side; None stands for the rest.

    >>> opponents([0, 2, 3], "pairs"), opponents([0, 2, 3], "rest")
    ([(0, 2), (0, 3), (2, 3)], [(0, None), (2, None), (3, None)])
    """
    if contrast == "pairs" or len(present) <= 2:
        return list(combinations(present, 2))
    return [(group, None) for group in present]


def distribution_functions(present: int, contrast: Contrast) -> int:
    """How many different ones the comparisons of so many groups look at."""
    return present if contrast == "pairs" or present <= 2 else 2 * present


def comparisons(
    part: Part, attribute: Attribute, codes: Integers, weights: Floats | None, contrast: Contrast
) -> Iterator[Compared]:
    """All comparisons of an attribute's groups within a part; ``codes`` and ``weights`` are those of its rows."""
    present = present_groups(codes, weights, len(attribute.groups))
    for left, right in opponents(present.tolist(), contrast_of(len(attribute.groups), contrast)):
        chosen = np.flatnonzero((codes >= 0) if right is None else (codes == left) | (codes == right))
        on_left = codes[chosen] == left
        own = None if weights is None else weights[chosen]
        found, place = atoms_at(part.distinct, part.place[chosen], on_left, own)
        names = str(attribute.groups[left]), REST if right is None else str(attribute.groups[right])
        sizes = int(on_left.sum()), int((~on_left).sum())
        rows = () if own is None else tuple(_rows(place, own, side) for side in (on_left, ~on_left))
        yield Compared(attribute.name, part.criterion, part.within, names, sizes, found, rows)


def present_groups(codes: Integers, weights: Floats | None, groups: int) -> Integers:
    """Codes of the groups that have samples that count."""
    known = codes >= 0
    mass = np.bincount(codes[known], None if weights is None else weights[known], groups)
    return np.flatnonzero(mass > 0)


def _rows(place: Integers, weights: Floats, side: NDArray[np.bool_]) -> Rows:
    counts = side & (weights > 0)
    return Rows(place[counts], weights[counts])
