"""The encoding of one column of a table as numbers, as a value that a file can store."""

from __future__ import annotations

import datetime as dt
import re
import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from metrifair.errors import DataError
from metrifair.problem.spelling import CODE
from metrifair.problem.tables import (
    ColumnArray,
    Table,
    categories,
    columns,
    frame_names,
    is_missing,
    unmasked,
)
from metrifair.problem.values import is_number_text
from metrifair.support.arrays import Floats

ColumnKind: TypeAlias = Literal["number", "date", "text", "boolean"]

LARGEST_NUMBER = 1e150  # squares of larger numbers are beyond all floats
_NAMES: dict[ColumnKind, str] = {
    "number": "numbers",
    "date": "dates",
    "text": "text",
    "boolean": "booleans",
}
FEW_STRAYS = 0.05  # of the values: with more of them, the column is text
# 95%, $1,200
_WITH_SIGN = re.compile(r"[$€£]\s?-?\d[\d,]*\.?\d*|-?\d[\d,]*\.?\d*\s?[%$€£]", re.ASCII)
_CODE = re.compile(CODE, re.ASCII)
_EPOCH = dt.datetime(1970, 1, 1)


class Numbers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of numbers, or of dates as days since 1970, standardized; the median replaces
    missing values.

    >>> Numbers("number", 2.0, 2.0, 1.0, flagged=True).encoded(np.array([3.0, np.nan]))
    array([[1., 0.],
           [0., 1.]])
    """

    kind: Literal["number", "date"]
    median: float
    center: float
    spread: Annotated[float, msgspec.Meta(ge=0)]  # 0: all values are equal
    flagged: bool  # whether an extra column marks missing values

    def names(self, column: str) -> list[str]:
        """Names of the columns that it becomes."""
        return [column] * (self.spread > 0) + [f"{column} is missing"] * self.flagged

    def encoded(self, values: ColumnArray) -> Floats:
        """The columns, (n, their number)."""
        missing = np.isnan(values)
        filled = (np.where(missing, self.median, values) - self.center) / (self.spread or 1.0)
        return np.stack(
            [filled] * (self.spread > 0) + [missing.astype(np.float64)] * self.flagged, axis=1
        )


class Levels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of names: one column for each, one for all others if some were rare, one for missing
    values.

    >>> Levels("text", ("blue", "red"), pooled=True, flagged=False).encoded(np.array(["red",
    ...     "gray"], dtype=object))
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """

    kind: Literal["text", "boolean"]
    levels: tuple[str, ...]
    pooled: bool
    flagged: bool

    def names(self, column: str) -> list[str]:
        """Names of the columns that it becomes."""
        names = [f"{column} = {level}" for level in self.levels]
        return (
            names + [f"{column} is other"] * self.pooled + [f"{column} is missing"] * self.flagged
        )

    def encoded(self, values: ColumnArray) -> Floats:
        """The columns, (n, their number); a value that has no column is 0 in all."""
        place = {level: code for code, level in enumerate(self.levels)}
        rest = len(place) if self.pooled else -1
        missing = rest
        if self.flagged:
            missing = len(place) + self.pooled
        at = np.array(
            [missing if value is None else place.get(value, rest) for value in values],
            dtype=np.int64,
        )
        result = np.zeros((len(values), len(place) + self.pooled + self.flagged))
        result[np.flatnonzero(at >= 0), at[at >= 0]] = 1.0
        return result


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


def encoded(coders: Mapping[str, Coder], table: Mapping[str, ColumnArray]) -> Floats:
    """The columns of a table as numbers, (n, columns)."""
    lacking = [name for name in coders if name not in table]
    if lacking:
        several = len(lacking) > 1
        more = ""
        if len(lacking) > 10:
            more = " ..."
        if several:
            word = "columns"
            rest = "which were there at fit; add them"
        else:
            word = "column"
            rest = "which was there at fit; add it"
        raise DataError(
            f"the table lacks the {word} {', '.join(map(repr, lacking[:10]))}{more}, {rest}"
        )
    return np.concatenate(
        [_encode_column(name, table[name], coder) for name, coder in coders.items()], axis=1
    )


def _encode_column(name: str, column: ColumnArray, coder: Coder) -> Floats:
    """The encoding of one column; a value far beyond those at ``fit`` is an error."""
    values = as_kind(name, column, coder.kind)
    with np.errstate(over="ignore"):
        result = coder.encoded(values)
    strange = values[np.abs(result).max(1, initial=0.0) > LARGEST_NUMBER]
    if len(strange):
        raise DataError(
            f"column {name!r} contains {strange[0]:g}, which is too far from the values at fit; "
            "leave the row out"
        )
    return result


def named_columns(table: Table) -> dict[str, ColumnArray] | None:
    """Columns of a coder with named levels."""
    # a sparse matrix can be a dictionary
    if isinstance(table, dict) and not hasattr(table, "shape"):
        return columns("X", table)
    if frame_names("X", table) is None:
        return None
    by_name = columns("X", table)
    # A category is a name, even where the name is a number.
    for name in categories("X", table):
        column = by_name[name]
        levels = np.full(len(column), None, dtype=object)
        levels[~is_missing(column)] = [
            level_name(value) for value in column[~is_missing(column)].tolist()
        ]
        by_name[name] = levels
    return by_name


def unnamed_columns(table: Table) -> dict[str, ColumnArray]:
    """Columns of an array or of a list of rows, named x0, x1 and so on."""
    from sklearn.utils.validation import check_array  # noqa: PLC0415 (tables with names need no scikit-learn)

    # or numbers beside text become text
    rows = np.array(table, dtype=object) if isinstance(table, list) else table
    rows = unmasked(rows, as_numbers=True)
    array = check_array(rows, dtype=None, ensure_all_finite=False, estimator="TableEncoder")
    return {f"x{place}": array[:, place] for place in range(array.shape[1])}


def level_name(value: object) -> str:
    """A category's name; pandas makes floats of integers where values are missing."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


class Strays(NamedTuple):
    """The few cells without a number in a column of numbers, which make text of all of it."""

    cells: int
    known: int  # cells that are not missing
    example: str

    def note(self, name: str) -> str:
        """What happens to the column, and what to do.

        >>> print(Strays(1, 40, "1,234").note("pay"))
        column 'pay' is taken for text, not for numbers, because of 1 of its 40 values, such as
        '1,234': it becomes a column for each frequent value. Correct or empty such cells to have
        numbers
        """
        return (
            f"column {name!r} is taken for text, not for numbers, because of {self.cells:,} of its "
            f"{self.known:,} "
            f"values, such as {reprlib.repr(self.example)}: it becomes a column for each frequent "
            "value. Correct or "
            "empty such cells to have numbers"
        )


def strays_in(values: Iterable[object]) -> Strays | None:
    """The cells without a number, where at least 95 % of the text in a column are numbers, also
    with signs; else None.

    Codes, which begin with a zero, are not numbers.

    >>> strays_in(["7"] * 39 + [None, "1,234"])
    Strays(cells=1, known=40, example='1,234')
    >>> strays_in(["02139"] * 39 + ["n/a"]), strays_in(["7", "many"]), strays_in(["7", "8"])
    (None, None, None)
    >>> strays_in(["95%", "97.5 %", "100%"]), strays_in(["$1,200", "€ 7"])
    (Strays(cells=3, known=3, example='95%'), Strays(cells=2, known=2, example='$1,200'))
    """
    counts = Counter(value.strip() for value in values if isinstance(value, str))
    texts = {
        value: count
        for value, count in counts.items()
        if not is_number_text(value.removeprefix("+"))
    }
    cells = sum(texts.values())
    total = counts.total()
    signed = sum(count for value, count in texts.items() if _WITH_SIGN.fullmatch(value))
    if not texts or cells - signed > FEW_STRAYS * total or any(map(_CODE.match, texts)):
        return None
    return Strays(cells, total, next(iter(texts)))


def as_kind(name: str, column: ColumnArray, kind: ColumnKind) -> ColumnArray:
    """The values of a column, which must be of this kind."""
    actual, values = typed(name, column)
    if actual is None:
        if kind in ("number", "date"):
            return np.full(len(column), np.nan)
        return values
    if actual != kind:
        present = column[~is_missing(column)].tolist()
        example = next(
            (value for value in present if kind != "number" or not is_number_text(str(value))),
            present[0],
        )
        raise DataError(
            f"column {name!r} contained {_NAMES[kind]} at fit, and contains {_NAMES[actual]} now: "
            f"{reprlib.repr(example)}; pass {_NAMES[kind]}"
        )
    return values


_OF_DTYPE: dict[str, ColumnKind] = {
    "i": "number",
    "u": "number",
    "f": "number",
    "b": "boolean",
    "U": "text",
    "M": "date",
}
# in this order: a bool is an int too
_OF_TYPE: tuple[tuple[type | tuple[type, ...], ColumnKind], ...] = (
    ((bool, np.bool_), "boolean"),
    ((int, float, Decimal, np.integer, np.floating), "number"),
    (str, "text"),
    (dt.date, "date"),
)


def typed(name: str, column: ColumnArray) -> tuple[ColumnKind | None, ColumnArray]:
    """The values and the kind of a column, with NaN or None if a value is missing; no kind if
    all are.
    """
    missing = is_missing(column)
    if missing.all():
        return None, np.full(len(column), None, dtype=object)
    kind = _OF_DTYPE.get(column.dtype.kind) or _kind_of_objects(name, column[~missing])
    if kind in ("number", "date"):
        values = np.full(len(column), np.nan)
        values[~missing] = (
            _days(column[~missing]) if kind == "date" else column[~missing].astype(np.float64)
        )
        strange = values[np.abs(values) > LARGEST_NUMBER]
        if len(strange):
            raise DataError(
                f"column {name!r} contains {strange[0]:g}, which is too large; leave the row out, "
                "or scale it"
            )
        return kind, values
    levels = np.full(len(column), None, dtype=object)
    levels[~missing] = [str(value) for value in column[~missing].tolist()]
    return kind, levels


def _kind_of_objects(name: str, present: ColumnArray) -> ColumnKind:
    types = {type(value) for value in present.tolist()}
    kinds = {
        next((kind for base, kind in _OF_TYPE if issubclass(value_type, base)), None)
        for value_type in types
    }
    type_names = ", ".join(sorted(value_type.__name__ for value_type in types))
    if None in kinds:
        raise DataError(
            f"column {name!r} contains values of type {type_names}; use numbers, text, booleans or "
            "dates"
        )
    if len(kinds) > 1:
        raise DataError(
            f"column {name!r} mixes values of several types ({type_names}); make them one type"
        )
    (kind,) = kinds
    return kind  # type: ignore[return-value]


def _days(column: ColumnArray) -> Floats:
    """Days since 1970, in UTC if a time zone is known."""
    if column.dtype.kind == "M":
        return (column - np.datetime64(0, "s")) / np.timedelta64(1, "D")
    return np.array([_to_days(value) for value in column.tolist()], dtype=np.float64)


def _to_days(value: dt.date) -> float:
    if not isinstance(value, dt.datetime):
        return float((value - _EPOCH.date()).days)
    naive = value
    if value.tzinfo is not None:
        naive = value.astimezone(dt.UTC).replace(tzinfo=None)
    return float((naive - _EPOCH) / dt.timedelta(days=1))
