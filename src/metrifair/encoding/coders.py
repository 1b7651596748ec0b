"""How one column becomes numbers, as values: learned from one table, applied to others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from metrifair.encoding.kinds import Floats, Kind
from metrifair.problem.tables import Column

_ROWS_OF_AN_ID = 20  # fewer rows are numbered 0, 1, 2 by chance


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, or of dates as days since 1970: the median where one is missing, in standard units.

    >>> Numbers("number", 2.0, 2.0, 1.0, flagged=True).encoded(np.array([3.0, np.nan]))
    array([[1., 0.],
           [0., 1.]])
    """

    kind: Kind
    median: float
    centre: float
    spread: float  # 0: every known value is the median, which tells nothing
    flagged: bool  # whether a column says where values are missing

    def names(self, column: str) -> list[str]:
        """Names of the columns that it becomes."""
        return [column] * (self.spread > 0) + [f"{column} is missing"] * self.flagged

    def encoded(self, values: Column) -> Floats:
        """The columns, (n, their number)."""
        missing = np.isnan(values)
        known = (np.where(missing, self.median, values) - self.centre) / (self.spread or 1.0)
        return np.stack([known] * (self.spread > 0) + [missing.astype(np.float64)] * self.flagged, axis=1)


@dataclass(frozen=True)
class Levels:
    """A column of names: one column for each, one for all others where some were rare, one for missing values.

    >>> Levels("text", ("blue", "red"), pooled=True, flagged=False).encoded(np.array(["red", "grey"], dtype=object))
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """

    kind: Kind
    levels: tuple[str, ...]
    pooled: bool
    flagged: bool

    def names(self, column: str) -> list[str]:
        """Names of the columns that it becomes."""
        known = [f"{column} = {level}" for level in self.levels]
        return known + [f"{column} is other"] * self.pooled + [f"{column} is missing"] * self.flagged

    def encoded(self, values: Column) -> Floats:
        """The columns, (n, their number); a value that has no column is 0 in all."""
        place = {level: code for code, level in enumerate(self.levels)}
        other = len(place) if self.pooled else -1
        missing = len(place) + self.pooled if self.flagged else other
        at = np.array([missing if value is None else place.get(value, other) for value in values], dtype=np.int64)
        found = np.zeros((len(values), len(place) + self.pooled + self.flagged))
        found[np.flatnonzero(at >= 0), at[at >= 0]] = 1.0
        return found


Coder: TypeAlias = Numbers | Levels


class Omitted(str):
    """Why a column is left out."""

    __slots__ = ()


def numbers_coder(kind: Kind, values: Floats) -> Numbers | Omitted:
    """The coder of a column of numbers, NaN where one is missing."""
    if kind == "number" and _numbers_rows(values):
        return Omitted("numbers the rows")
    missing = np.isnan(values)
    median = float(np.median(values[~missing]))
    filled = np.where(missing, median, values)
    varies = bool((filled != median).any())
    if not varies and not missing.any():
        return Omitted("holds one value only")
    size = np.abs(filled).max() or 1.0  # squares of tiny numbers would vanish
    centre, spread = (float(part * size) for part in ((filled / size).mean(), (filled / size).std()))
    return Numbers(kind, median, centre, spread if varies else 0.0, bool(missing.any()))


def levels_coder(kind: Kind, values: Column, *, min_frequency: int, max_levels: int) -> Levels | Omitted:
    """The coder of a column of names.

    >>> values = np.array(["a"] * 3 + ["b"] * 2 + ["c", None], dtype=object)
    >>> levels_coder("text", values, min_frequency=2, max_levels=10)
    Levels(kind='text', levels=('a', 'b'), pooled=True, flagged=True)
    """
    counts = Counter(value for value in values if value is not None)
    known = sum(counts.values())
    kept = [level for level, count in counts.most_common(max_levels) if count >= min_frequency]
    if not kept and len(counts) > 1:
        many = "a value of its own in every row" if len(counts) == known else f"{len(counts):,} different values"
        return Omitted(f"holds {many}, none of them {min_frequency} times")
    coder = Levels(kind, tuple(sorted(kept)), pooled=len(kept) < len(counts), flagged=known < len(values))
    return coder if len(coder.names("")) > 1 else Omitted("holds one value only")


def _numbers_rows(values: Floats) -> bool:
    """True where the values are different whole numbers that fill at least half of their range.

    So look the numbers of rows of which some were kept apart for a test; a measured whole number repeats itself.
    """
    if len(values) < _ROWS_OF_AN_ID or np.isnan(values).any() or (values % 1 != 0).any():
        return False
    ordered = np.sort(values)
    return bool((np.diff(ordered) > 0).all() and ordered[-1] - ordered[0] < 2 * len(values))
