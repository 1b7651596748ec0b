"""How one column of a table becomes numbers, as a value that a file holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, TypeAlias

import msgspec
import numpy as np

from metrifair.encoding.column_types import LARGEST, as_kind
from metrifair.errors import DataError
from metrifair.problem.tables import Column
from metrifair.support.arrays import Floats


class Numbers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of numbers, or of dates as days since 1970: the median where one is missing, in standard units.

    >>> Numbers("number", 2.0, 2.0, 1.0, flagged=True).encoded(np.array([3.0, np.nan]))
    array([[1., 0.],
           [0., 1.]])
    """

    kind: Literal["number", "date"]
    median: float
    center: float
    spread: Annotated[float, msgspec.Meta(ge=0)]  # 0: every known value is the median, which tells nothing
    flagged: bool  # whether a column says where values are missing

    def names(self, column: str) -> list[str]:
        """Names of the columns that it becomes."""
        return [column] * (self.spread > 0) + [f"{column} is missing"] * self.flagged

    def encoded(self, values: Column) -> Floats:
        """The columns, (n, their number)."""
        missing = np.isnan(values)
        known = (np.where(missing, self.median, values) - self.center) / (self.spread or 1.0)
        return np.stack([known] * (self.spread > 0) + [missing.astype(np.float64)] * self.flagged, axis=1)


class Levels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of names: one column for each, one for all others where some were rare, one for missing values.

    >>> Levels("text", ("blue", "red"), pooled=True, flagged=False).encoded(np.array(["red", "gray"], dtype=object))
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """

    kind: Literal["text", "boolean"]
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


def column_names(coders: Iterable[tuple[str, Coder]]) -> list[str]:
    """The names of all columns that a table becomes."""
    names: dict[str, None] = {}
    for column, coder in coders:
        for name in coder.names(column):
            unique = name
            while unique in names:  # a column may have the name of another one's flag
                unique += "'"
            names[unique] = None
    return list(names)


def encoded(coders: Mapping[str, Coder], found: Mapping[str, Column]) -> Floats:
    """The columns of a table as numbers, (n, columns)."""
    lacking = [name for name in coders if name not in found]
    if lacking:
        several, more = len(lacking) > 1, " ..." if len(lacking) > 10 else ""
        word, rest = (
            ("columns", "which were there at fit; add them")
            if several
            else ("column", "which was there at fit; add it")
        )
        raise DataError(f"the table lacks the {word} {', '.join(map(repr, lacking[:10]))}{more}, {rest}")
    return np.concatenate([_encoded(name, found[name], coder) for name, coder in coders.items()], axis=1)


def _encoded(name: str, column: Column, coder: Coder) -> Floats:
    """The columns that one becomes; a value far beyond those seen at ``fit`` is an error."""
    values = as_kind(name, column, coder.kind)
    with np.errstate(over="ignore"):
        found = coder.encoded(values)
    strange = values[np.abs(found).max(1, initial=0.0) > LARGEST]
    if len(strange):
        raise DataError(
            f"column {name!r} holds {strange[0]:g}, which is too far from the values at fit; leave the row out"
        )
    return found
