"""Any data frame, array or list -> columns, and codes of their values."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from itertools import combinations, compress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metrifair.errors import DataError
from metrifair.problem.values import band_start, is_missing_value, place_among
from metrifair.support.arrays import Booleans, Integers
from metrifair.support.checks import check_known, require

if TYPE_CHECKING:
    import narwhals.stable.v2 as nw
    from narwhals.stable.v2.typing import IntoDataFrame, IntoSeries

Columns: TypeAlias = "ArrayLike | IntoDataFrame | IntoSeries"
Table: TypeAlias = "Columns | Mapping[str, Columns]"
"""Data of users: a data frame or series of any library, an array, lists, or a dictionary of
columns.
"""
ColumnArray: TypeAlias = NDArray[Any]
Row = TypeVar("Row")
Backend: TypeAlias = Literal["polars", "pandas", "pyarrow", "modin", "cudf"]

_DURATIONS = "durations", "turn them into numbers, such as of days"
_BYTES = "bytes", "decode them to text"
_REFUSED_TYPES = {"Duration": _DURATIONS, "Binary": _BYTES}
_REFUSED_KINDS: tuple[tuple[tuple[type, ...], str, str], ...] = (
    ((dt.timedelta, np.timedelta64), *_DURATIONS),
    ((bytes, bytearray, memoryview, np.void), *_BYTES),
)
UNKNOWN = -1
MOST_CLASSES = 20  # integers with more values than this are measurements, not classes or groups
EXACT = 2**53  # up to here every integer is a float
_LONGEST = 1023  # bits of integers below the largest float
_LISTED = 5
LONGEST_NAME = 10_000  # characters of the name of a group, a stratum or a label


def columns(name: str, table: Table) -> dict[str, ColumnArray]:
    """The columns of a table by name; a single column is named after itself, or else ``name``.

    >>> columns("group", np.array([[1, 7], [2, 8]]))
    {'group 0': array([1, 2]), 'group 1': array([7, 8])}
    """
    return {key: _usable(key, part) for key, part in _columns(name, table).items()}


def _usable(name: str, column: ColumnArray) -> ColumnArray:
    """A column as all rooms read it; a DataError for durations and bytes, which are neither
    names nor numbers.
    """
    if column.dtype.kind == "M":
        # Times in nanoseconds have no counterpart in Python: NumPy would list them as integers.
        return column.astype("datetime64[us]")
    kinds = _kinds_in(column)
    check_kinds(name, kinds, column)
    if column.dtype.kind != "O" or np.bool_ not in kinds:
        return column
    plain = column.copy()
    plain[:] = [bool(value) if isinstance(value, np.bool_) else value for value in column.tolist()]
    return plain


def _kinds_in(array: ColumnArray) -> set[type]:
    """The types of an array's values."""
    if array.dtype.kind != "O":
        return {array.dtype.type}
    return set(map(type, array.ravel().tolist()))


def check_kinds(name: str, kinds: Collection[type], values: Iterable[object]) -> None:
    """Raise a DataError if values of these kinds are durations or bytes.

    >>> check_kinds("sex", {bytes}, [b"f", b"m"])
    Traceback (most recent call last):
    metrifair.errors.DataError: sex must be numbers, text, booleans or dates, got bytes such as
    b'f'; decode them to text
    """
    for refused, word, remedy in _REFUSED_KINDS:
        if any(issubclass(kind, refused) for kind in kinds):
            example = next((value for value in values if isinstance(value, refused)), None)
            raise _refused_kind(name, word, remedy, example)


def check_type(name: str, dtype: object) -> None:
    """Raise a DataError if a column's type, of polars or narwhals, is one of durations or bytes."""
    kind = str(dtype).split("(")[0]
    if kind in _REFUSED_TYPES:
        raise _refused_kind(name, *_REFUSED_TYPES[kind])


def _refused_kind(name: str, word: str, remedy: str, example: object = None) -> DataError:
    """The error for a column of durations or bytes."""
    such_as = ""
    if example is not None:
        such_as = f" such as {_shown(example)}"
    return DataError(
        f"{name} must be numbers, text, booleans or dates, got {word}{such_as}", remedy=remedy
    )


def _shown(value: object) -> str:
    """A value as Python writes it: that of a NumPy scalar without its type."""
    if isinstance(value, np.timedelta64):
        return str(value)
    return repr(bytes(value) if isinstance(value, bytes) else value)


def _columns(name: str, table: Table) -> dict[str, ColumnArray]:
    table = _in_memory(table)
    native = _native_columns(name, table)
    if native is not None:
        return {key: _values(column) for key, column in native.items()}
    if isinstance(table, Mapping):
        return {str(key): one_column(str(key), values) for key, values in table.items()}
    if isinstance(table, str):
        problem = "must contain the values of each row, not the name of a column"
        raise DataError(
            problem,
            argument=name,
            received=table,
            remedy=f"pass the column, such as table[{table!r}]",
        )
    # or NumPy would turn the list [1, None, "a"] into strings
    kind = object if isinstance(table, Sequence) else None
    array = table if isinstance(table, np.ndarray) else np.asarray(table, dtype=kind)
    if array.ndim == 1:
        return {name: array}
    if array.ndim == 2 and array.shape[1] > 0:
        several = array.shape[1] > 1
        return {f"{name} {k}" if several else name: array[:, k] for k in range(array.shape[1])}
    raise DataError(
        f"{name} must be a column or a table of columns, got an array of shape {array.shape}"
    )


def _in_memory(values: Any) -> Any:
    """A tensor in main memory without its gradient, as NumPy accepts it; anything else without
    a mask.
    """
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return values.detach().cpu()
    return unmasked(values)


def unmasked(values: Any, *, as_numbers: bool = False) -> Any:
    """A masked array of NumPy as an array, whose masked values are missing; anything else as it is.

    Integers become objects, of which a group keeps its name, or floats where they are used
    ``as_numbers``.

    >>> (unmasked(np.ma.array([1.5, 2.5], mask=[False, True])),
    ...  unmasked(np.ma.array([3, 4], mask=[True, False])))
    (array([1.5, nan]), array([None, 4], dtype=object))
    >>> unmasked(np.ma.array([3, 4], mask=[True, False]), as_numbers=True)
    array([nan,  4.])
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    mask = np.ma.getmaskarray(values)
    plain = np.array(values.data)
    if not mask.any():
        return plain
    if plain.dtype.kind in "biu" and as_numbers:
        plain = plain.astype(np.float64)
    if plain.dtype.kind != "f":
        plain = plain.astype(object)
    plain[mask] = np.nan if plain.dtype.kind == "f" else None
    return plain


def as_labels(values: Any) -> Any:
    """Labels in a form that scikit-learn accepts: booleans as such, if they are objects; a mask as
    missing values.

    Durations and bytes are a DataError.

    >>> as_labels(np.array([True, False], dtype=object)), as_labels(["no", "yes"])
    (array([ True, False]), ['no', 'yes'])
    """
    values = unmasked(values)
    array = np.asarray(values)
    check_kinds("y", _kinds_in(array), array.flat)
    found = without_boolean_objects(array)
    return values if found is array else found


def without_boolean_objects(array: NDArray[Any]) -> NDArray[Any]:
    """An array of booleans, if all values of a column are booleans that are stored as objects.

    >>> without_boolean_objects(np.array([True, False], dtype=object))
    array([ True, False])
    """
    if array.dtype.kind != "O" or array.ndim != 1 or not len(array):
        return array
    are_booleans = all(isinstance(value, bool | np.bool_) for value in array.tolist())
    return array.astype(np.bool_) if are_booleans else array


def as_features(X: Any) -> Any:
    """Features in a form that scikit-learn and boosters accept: a mask as missing values.

    Durations, dates and bytes are a DataError: read as numbers, their meaning would depend on
    their unit.

    >>> as_features(np.ma.array([[3, 4]], mask=[[True, False]]))
    array([[nan,  4.]])
    """
    native = _native("X", X)
    if native is not None:
        if hasattr(native, "schema"):
            _check_types_of_features(native)
        return X
    features = unmasked(X, as_numbers=True)
    if not isinstance(features, np.ndarray):
        return features
    if features.dtype.kind == "M":
        raise DataError(
            f"X must contain numbers, got dates such as {features.flat[0]}",
            remedy="encode them first with TableEncoder",
        )
    check_kinds("X", _kinds_in(features), features.flat)
    return features


def _check_types_of_features(frame: Any) -> None:
    """Raise a DataError if a data frame has a column of durations, dates or bytes."""
    for name, dtype in frame.schema.items():
        check_type(str(name), dtype)
        if str(dtype) == "Object":
            values = frame.get_column(name).to_list()
            check_kinds(str(name), set(map(type, values)), values)
        if str(dtype).split("(")[0] in ("Date", "Datetime"):
            problem = f"X must contain numbers, got dates in {str(name)!r}"
            raise DataError(problem, remedy="encode them first with TableEncoder")


def categories(name: str, table: Table | None) -> list[str]:
    """The columns that a data frame itself calls categories: names, even if they are numbers."""
    native = _native_columns(name, table) or {}
    return [
        key
        for key, column in native.items()
        if type(column.dtype).__name__ in ("Categorical", "Enum")
    ]


def frame_names(name: str, table: Table) -> list[object] | None:
    """The names of the columns of a data frame; None for a series and for anything else."""
    if hasattr(native := _wrap(name, table), "columns"):
        return list(native.columns)
    return None


def _native_columns(name: str, table: Any) -> dict[str, nw.Series[Any]] | None:
    """The columns of a data frame or series by name; None for anything else."""
    native = _wrap(name, table)
    if native is None:
        return None
    if hasattr(native, "columns"):
        return {str(column): native.get_column(column) for column in native.columns}
    return {str(native.name) if native.name not in (None, "") else name: native}


def _wrap(name: str, table: Any) -> Any:
    """A data frame or series of any library, as one of narwhals; None for anything else, unless
    it is sparse.
    """
    if _is_sparse(table):
        raise DataError(
            f"{name} is a sparse matrix, which is not taken here; pass {name}.toarray()"
        )
    native = _native(name, table)
    if hasattr(native, "collect"):
        raise DataError(f"{name} is a lazy table; pass {name}.collect()")
    return native


def _native(name: str, table: Any) -> Any:
    """A data frame, also a lazy one, or a series of any library, as one of narwhals; None for
    anything else.
    """
    if table is None or isinstance(table, np.ndarray | Sequence | Mapping):
        return None
    import narwhals.stable.v2 as nw  # noqa: PLC0415 (only data frames need it)

    try:
        native = nw.from_native(table, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = [str(column) for column in table.columns]
        twice = next(column for place, column in enumerate(names) if column in names[:place])
        raise DataError(f"{name} has several columns of the name {twice!r}; rename them") from None
    if isinstance(native, nw.DataFrame | nw.LazyFrame | nw.Series):
        return native
    return None


def _is_sparse(table: Table) -> bool:
    """True for a matrix of scipy.sparse, which is then already imported."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(table))


def one_column(name: str, table: Table) -> ColumnArray:
    """The only column of a table."""
    return only_column(name, columns(name, table))


def only_column(name: str, by_name: Mapping[str, ColumnArray]) -> ColumnArray:
    """The column of a table that may have one only."""
    values = list(by_name.values())
    if len(values) != 1:
        raise DataError(f"{name} must be one column, got {len(values)}")
    return values[0]


def _values(series: nw.Series[Any]) -> ColumnArray:
    if series.dtype.is_numeric():
        return series.to_numpy()
    return np.array(series.to_list(), dtype=object)


def as_array(name: str, values: Any) -> ColumnArray:
    """A NumPy array of the input: a list, an array, or a column of any data frame."""
    values = _in_memory(values)
    native = _native(name, values)
    try:
        if native is None or hasattr(native, "columns"):
            array = np.asarray(values)
        else:
            array = native.to_numpy()
    except ValueError:
        raise DataError(
            f"{name} must contain numbers, or rows of one length, got {values!r}"
        ) from None
    check_exact(name, array)
    if array.dtype.kind in "biuf":
        return array
    return _as_numbers(name, array)


def _as_numbers(name: str, array: ColumnArray) -> ColumnArray:
    """Numbers of a column of objects or text; a DataError names the first value that is none,
    and its row.
    """
    if array.dtype.kind == "M":  # NumPy would list dates as integers
        raise DataError(f"{name} must contain numbers, got dates such as {array.flat[0]}")
    check_kinds(name, _kinds_in(array), array.flat)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        row, value = next(
            (row, value) for row, value in enumerate(array.flat) if not can_be_number(value)
        )
        kind = _kind_of_value(value) or f"{array.dtype} values"
        shown = str(value) if isinstance(value, np.str_) else value
        # the first row may represent all
        where = ""
        if row and array.ndim == 1:
            where = f" in row {row}"
        raise DataError(
            f"{name} must contain numbers, got {kind} such as {shown!r}{where}"
        ) from None


def _kind_of_value(value: object) -> str | None:
    """The word for values that are no numbers; None if there is no better one than their type."""
    if isinstance(value, str):
        return "text"
    return "dates" if isinstance(value, dt.date) else None


def can_be_number(value: object) -> bool:
    """Whether a value is a number, missing, or text that writes a number.

    >>> can_be_number("0.5"), can_be_number(None), can_be_number("?")
    (True, True, False)
    """
    if value is None:
        return True
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return is_missing_value(value)
    return True


def check_exact(name: str, array: ColumnArray) -> None:
    """Raise a DataError for numbers that floats cannot represent: complex ones, and long
    integers.
    """
    kinds = _kinds_in(array)
    if any(issubclass(kind, complex | np.complexfloating) for kind in kinds):
        raise DataError(
            f"{name} must contain real numbers, got {_first(array)}; compare the real part, or the "
            "modulus"
        )
    if array.dtype.kind in "iu" and array.size and max(int(array.max()), -int(array.min())) > EXACT:
        long = array[np.abs(array.astype(np.float64)) >= EXACT].tolist()
    elif any(issubclass(kind, int | np.integer) for kind in kinds) and array.dtype.kind == "O":
        integers = [int(number) for number in array.flat if isinstance(number, int | np.integer)]
        long = [number for number in integers if abs(number) > EXACT]
    else:
        return
    rounded = next(
        (number for number in long if number.bit_length() > _LONGEST or number != float(number)),
        None,
    )
    if rounded is not None:
        raise DataError(
            f"{name} contains integers that floating-point numbers do not distinguish, such as "
            f"{rounded}; subtract a "
            "constant from all of them, or round them yourself"
        )


def _first(array: ColumnArray) -> str:
    if array.size:
        return repr(array.flat[:1].tolist()[0])
    return "nothing"


def is_missing(column: ColumnArray) -> Booleans:
    """True at None, NaN, NaT and pandas' NA."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=np.bool_)
    values = column.tolist()
    try:
        absent = {value for value in set(values) if is_missing_value(value)}
    except TypeError:  # lists and other values without a hash
        return np.array([is_missing_value(value) for value in values], dtype=np.bool_)
    if not absent:
        return np.zeros(len(column), dtype=np.bool_)
    return np.fromiter(map(absent.__contains__, values), np.bool_, len(values))


def not_numbers(X: Table) -> str:
    """The columns of a data frame that contain anything but numbers; "" if there are none."""
    faults = []
    for name, values in columns("X", X).items():
        missing = is_missing(values)
        present = values
        if missing.any():
            present = values[~missing]
        try:
            present.astype(np.float64)
        except (TypeError, ValueError):
            faults.append(f"{present[0]!r} in {name!r}")
        else:
            faults += [f"missing values (NaN) in {name!r}"] if missing.any() else []
    return ", ".join(faults[:_LISTED]) + (
        f" and more, in {len(faults)} columns" if len(faults) > _LISTED else ""
    )


class CodedColumn:
    """A column and the codes of its values, which are computed once.

    ``coding`` passes values and codes that are known.

    >>> sex = CodedColumn("sex", np.array(["m", None, "f"], dtype=object))
    >>> sex.values, sex.codes, sex.levels()
    (['m', 'f'], array([ 0, -1,  1]), ('f', 'm'))
    """

    def __init__(
        self, name: str, column: ColumnArray, coding: tuple[list[Any], Integers] | None = None
    ) -> None:
        self.name = name
        self.column = column
        if coding is not None:
            self._coding = coding

    @cached_property
    def _coding(self) -> tuple[list[Any], Integers]:
        if self.column.dtype.kind == "U" and self.column.dtype.itemsize > 4 * LONGEST_NAME:
            # before any text is copied
            _check_length(self.name, int(np.char.str_len(self.column).max(initial=0)))
        try:
            values, codes = distinct(self.column)
        except TypeError:  # lists and other values without a hash
            raise self._mixed() from None
        present = [not is_missing_value(value) for value in values]
        if all(present):
            return values, codes
        places = np.where(present, np.cumsum(present) - 1, UNKNOWN)
        return list(compress(values, present)), places[codes]

    @property
    def values(self) -> list[Any]:
        """The distinct values that are not missing."""
        return self._coding[0]

    @property
    def codes(self) -> Integers:
        """The place of each row's value among the values; -1 where it is missing."""
        return self._coding[1]

    @cached_property
    def missing(self) -> Booleans:
        """True where a row has no value."""
        if self.column.dtype.kind == "O":
            return np.asarray(self.codes == UNKNOWN)
        return is_missing(self.column)

    @property
    def present(self) -> ColumnArray:
        """The values of rows that have one."""
        return self.column[~self.missing]

    def take(self, rows: NDArray[Any]) -> CodedColumn:
        """The same column of some rows, by number or by a mask."""
        return CodedColumn(self.name, self.column[rows])

    def levels(self) -> tuple[object, ...]:
        """Distinct values that are not missing, in ascending order; those that name bands of a
        number, in its order.

        >>> CodedColumn("age", np.array([">60", "≤8.5", None, "(8.5,60]"], dtype=object)).levels()
        ('≤8.5', '(8.5,60]', '>60')
        """
        if self.column.dtype.kind in "iu":  # in order, and without a name
            return tuple(self.values)
        check_lengths(self.name, self.values)
        try:
            ordered = sorted(self.values)
        except TypeError:
            raise self._mixed() from None
        starts = [band_start(value) for value in ordered]
        if None not in starts:
            ordered = [value for _, value in sorted(zip(starts, ordered, strict=True))]
        return tuple(ordered)

    def places(self, known: Sequence[object], *, name: str | None = None) -> Integers:
        """The place of each value among the known ones, -1 where it is missing; another value is
        an error, which names the column or this ``name``.
        """
        place = {value: code for code, value in enumerate(known)}
        strange = next((value for value in self.values if value not in place), None)
        if strange is not None:
            problem = f"contains {strange!r}, which is none of {list(known)}"
            raise DataError(f"{name or self.name} {problem}")
        # the last place is that of code -1
        return np.array([*(place[value] for value in self.values), UNKNOWN])[self.codes]

    def _mixed(self) -> DataError:
        values = self.column[~is_missing(self.column)].tolist()
        kinds = sorted({type(value).__name__ for value in values})
        return DataError(
            f"{self.name} mixes values that cannot be ordered ({', '.join(kinds)}); make them "
            "one type"
        )


CodedColumns: TypeAlias = Mapping[str, CodedColumn]


def coded_columns(name: str, table: Table | CodedColumns) -> dict[str, CodedColumn]:
    """The columns of a table by name, each coded once; those that are coded stay as they are."""
    if isinstance(table, Mapping) and all(isinstance(part, CodedColumn) for part in table.values()):
        return dict(cast("CodedColumns", table))
    kept = _in_memory(cast("Table", table))
    native = _native_columns(name, kept)
    if native is None:
        by_name = columns(name, kept)
        return {key: CodedColumn(key, column) for key, column in by_name.items()}
    return {key: _coded_series(key, series) for key, series in native.items()}


def _coded_series(name: str, series: nw.Series[Any]) -> CodedColumn:
    """A column of a data frame; text is coded by its own library, which needs a tenth of the
    time.
    """
    coding = _text_coding(series)
    if coding is None:
        return CodedColumn(name, _usable(name, _values(series)))
    values, codes = coding
    text = np.array([*values, None], dtype=object)  # the last place is that of code -1
    return CodedColumn(name, text[codes], (values, codes))


def _text_coding(series: nw.Series[Any]) -> tuple[list[Any], Integers] | None:
    """The distinct values in the order of their first rows, and the place of each row's, -1 where
    it is missing; None for anything but text.
    """
    if type(series.dtype).__name__ != "String":
        return None
    text = series.to_native()
    if series.implementation.is_pandas():
        try:
            codes, found = text.factorize()
        except TypeError:  # lists among the texts: the general way has an error for them
            return None
        values = found.tolist()
    elif series.implementation.is_polars():
        import polars as pl  # noqa: PLC0415 (the column is one of polars)

        found = text.drop_nulls().unique(maintain_order=True)
        places = text.cast(pl.Enum(found)).to_physical().cast(pl.Int64)
        codes = places.fill_null(UNKNOWN).to_numpy()
        values = found.to_list()
    else:
        return None
    if all(type(value) is str for value in values):
        return values, codes
    return None


def check_lengths(name: str, values: Iterable[object]) -> None:
    """Raise a DataError if a text is too long for a name: it is repeated in every comparison, table
    and page.

    >>> check_lengths("sex", ["f", 2])
    >>> check_lengths("sex", ["f" * 20_000])
    Traceback (most recent call last):
    metrifair.errors.DataError: sex contains a name of 20,000 characters, and names have at most
    10,000; name another column, or shorten the names
    """
    _check_length(name, max((len(value) for value in values if isinstance(value, str)), default=0))


def _check_length(name: str, longest: int) -> None:
    if longest > LONGEST_NAME:
        raise DataError(
            f"{name} contains a name of {longest:,} characters, and names have at most "
            f"{LONGEST_NAME:,}",
            remedy="name another column, or shorten the names",
        )


def spelled_as(known: Sequence[object], column: ColumnArray) -> list[object]:
    """The values of a column in the spelling of the known ones; None if one is missing, and others
    as they are.

    >>> spelled_as(("0", "1"), np.array([1.0, np.nan, 2.0]))
    ['1', None, 2.0]
    """
    values, inverse = distinct(column)
    places = [None if is_missing_value(value) else place_among(value, known) for value in values]
    spelled = [
        value if place is None else known[place]
        for value, place in zip(values, places, strict=True)
    ]
    return [
        None if is_missing_value(spelled[place]) else spelled[place] for place in inverse.tolist()
    ]


def distinct(column: ColumnArray) -> tuple[list[Any], Integers]:
    """The distinct values, and the place of each row's value among them.

    Objects are in the order of their first rows, other values are in ascending order.
    """
    if column.dtype.kind in "OU":  # a dictionary beats sorting
        rows = column.tolist()
        once = list(dict.fromkeys(rows))
        if column.dtype.kind == "U":
            once.sort()
        place = {value: code for code, value in enumerate(once)}
        return once, np.fromiter(map(place.__getitem__, rows), np.int64, len(rows))
    if column.dtype.kind in "iu" and len(column):
        low = int(column.min())
        high = int(column.max())
        if high - low < len(column) and high < 2**63:  # counting beats sorting
            shifted = column.astype(np.int64) - low
            present = np.bincount(shifted) > 0
            codes = np.cumsum(present, dtype=np.int64) - 1
            return (np.flatnonzero(present) + low).tolist(), codes[shifted]
    values, inverse = np.unique(column, return_inverse=True)
    return values.tolist(), inverse


def same_length(**arguments: Any) -> int:
    """The one length of all arguments that are not None.

    >>> same_length(y=[1, 2], weight=None)
    2
    """
    lengths = {name: len(values) for name, values in arguments.items() if values is not None}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"arguments must have the same length, got {listed}")
    return next(iter(lengths.values()))


def same_rows(**arguments: Table | None) -> int:
    """The number of rows of all tables that are not None; a DataError unless all have one length.

    If rows are labeled, by a pandas index, labels must agree too. Rows numbered from 0 upwards are
    taken by position, like those of an array, unless the other table has the same numbers in
    another order.

    >>> import pandas as pd
    >>> same_rows(X=pd.DataFrame({"age": [30, 40]}, index=["a", "b"]), y=pd.Series([0, 1]))
    2
    >>> same_rows(X=pd.DataFrame({"age": [30, 40]}), y=pd.Series([0, 1], index=[1, 0]))
    Traceback (most recent call last):
    metrifair.errors.DataError: X and y have the same row labels in another order; pass
    y.reindex(X.index), or y.to_numpy() if their rows belong together in this order
    """
    tables = {name: table for name, table in arguments.items() if table is not None}
    rows = {
        name: range(count) for name, table in tables.items() if (count := _rows(table)) is not None
    }
    for name, table in tables.items():
        if (
            isinstance(table, list | tuple)
            and table
            and len(table) < max(map(len, rows.values())) == _rows(table[0])
        ):
            raise DataError(
                f"{name} is a list of {len(table)} columns; pass a table, or a dict of columns by "
                "name"
            )
    count = same_length(**rows) if rows else 0
    labeled = [(name, index) for name, table in tables.items() for index in _indexes(table)]
    for (first, index), (second, its_index) in combinations(labeled, 2):
        _check_labels(first, index, second, its_index)
    return count


def _rows(table: Any) -> int | None:
    """Number of rows; None if it is not known yet."""
    if isinstance(table, Mapping):
        return next((_rows(column) for column in table.values()), None)
    if hasattr(table, "shape"):  # sparse matrices have no length
        if table.shape:
            return int(table.shape[0])
        return None
    if hasattr(table, "__len__") and not isinstance(table, str):
        return len(table)
    if hasattr(table, "__array__"):
        return len(np.asarray(table))
    return None


def _indexes(table: Any) -> Iterator[Any]:
    """The pandas index of a table, or those of its columns."""
    parts: Iterable[Any] = [table]
    if isinstance(table, Mapping):
        parts = table.values()
    for part in parts:
        native = _native("the table", part)
        if native is not None and native.implementation.is_pandas_like():
            yield part.index


def _check_labels(name: str, index: Any, other: str, its_index: Any) -> None:
    if index.equals(its_index):
        return
    same = index.nlevels == its_index.nlevels and bool(
        index.isin(its_index).all() and its_index.isin(index).all()
    )
    if not same and any(
        np.array_equal(labels, np.arange(len(labels))) for labels in (index, its_index)
    ):
        return
    problem = "different row labels; take the same rows of both"
    if same:
        problem = f"the same row labels in another order; pass {other}.reindex({name}.index)"
    raise DataError(
        f"{name} and {other} have {problem}, or {other}.to_numpy() if their rows belong together "
        "in this order"
    )


def take_rows(table: Any, rows: NDArray[Any]) -> Any:
    """These rows of a table, an array, a dictionary of columns, or of probabilities of groups."""
    if hasattr(table, "at_rows"):
        return table.at_rows(rows)
    from sklearn.utils import _safe_indexing  # noqa: PLC0415  (slow to import, and nn has no use for it)

    if isinstance(table, Mapping):
        return {name: _safe_indexing(column, rows) for name, column in table.items()}
    return _safe_indexing(table, rows)


def renumbered(table: Any) -> Any:
    """A pandas table, or columns of that kind, with rows numbered from 0 upwards; any other as
    it is.
    """
    if isinstance(table, Mapping):
        return {name: renumbered(column) for name, column in table.items()}
    if list(_indexes(table)):
        return table.reset_index(drop=True)
    return table


def frame(
    data: Mapping[str, Sequence[Any]], schema: Mapping[str, str] | None, backend: Backend | None
) -> Any:
    """A data frame of these columns, of these types (names of narwhals) or those of their values.

    Without a backend polars where it is installed, else pandas.

    >>> frame({"x": [1, None]}, {"x": "Float64"}, "pandas")["x"].tolist()
    [1.0, nan]
    """
    library: Backend = backend or ("polars" if find_spec("polars") else "pandas")
    check_known("backend", library, get_args(Backend))
    if library in (extras := {"polars": "cli", "pandas": "datasets"}):
        require(library, extra=extras[library], purpose="to_frame")
    import narwhals.stable.v2 as nw  # noqa: PLC0415 (as above)

    kinds = None
    if schema is not None:
        kinds = {name: getattr(nw, kind) for name, kind in schema.items()}
    return nw.from_dict(dict(data), schema=kinds, backend=library).to_native()


def make_frame(
    rows: Sequence[Row],
    columns: Mapping[str, tuple[str, Callable[[Row], object]]],
    backend: Backend | None,
) -> Any:
    """A data frame with one row for each; columns have a type, and a function that computes the
    value of a row.

    >>> make_frame([2, 3], {"square": ("Int64", lambda row: row * row)},
    ...     "pandas")["square"].tolist()
    [4, 9]
    """
    data = {name: [value(row) for row in rows] for name, (_, value) in columns.items()}
    return frame(data, {name: kind for name, (kind, _) in columns.items()}, backend)


def table_library(*tables: Table | None) -> Backend | None:
    """The library of the first data frame or series, if tables can be made with it; else None.

    >>> import pandas as pd
    >>> table_library([1, 2], pd.Series([1, 2])), table_library([1, 2])
    ('pandas', None)
    """
    for table in tables:
        parts = table.values() if isinstance(table, Mapping) else [table]
        for part in parts:
            native = _native("the table", part)
            if native is not None and not hasattr(native, "collect"):
                name = native.implementation.value
                return next((library for library in get_args(Backend) if library == name), None)
    return None
