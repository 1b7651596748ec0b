"""Any data frame, array or list -> columns, and codes of their values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

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
"""Data of users: a data frame or series of any library, an array, lists, or a dictionary of columns."""
Column: TypeAlias = NDArray[Any]
Row = TypeVar("Row")
Backend: TypeAlias = Literal["polars", "pandas", "pyarrow", "modin", "cudf"]

UNKNOWN = -1
MOST_CLASSES = 20  # integers with more values than this are measurements, not classes or groups
EXACT = 2**53  # up to here every integer is a float
_LONGEST = 1023  # bits of integers below the largest float
_LISTED = 5


def columns(name: str, table: Table) -> dict[str, Column]:
    """The columns of a table by name; a single column is named after itself, or else ``name``.

    >>> columns("group", np.array([[1, 7], [2, 8]]))
    {'group 0': array([1, 2]), 'group 1': array([7, 8])}
    """
    parts = _columns(name, table)
    # Times in nanoseconds have no counterpart in Python: NumPy would list them as integers.
    return {key: part.astype("datetime64[us]") if part.dtype.kind == "M" else part for key, part in parts.items()}


def _columns(name: str, table: Table) -> dict[str, Column]:
    table = _in_memory(table)
    native = _native_columns(name, table)
    if native is not None:
        return {key: _values(column) for key, column in native.items()}
    if isinstance(table, Mapping):
        return {str(key): one_column(str(key), values) for key, values in table.items()}
    if isinstance(table, str):
        problem = "must contain the values of each row, not the name of a column"
        raise DataError(problem, argument=name, received=table, remedy=f"pass the column, such as table[{table!r}]")
    kind = object if isinstance(table, Sequence) else None  # or NumPy would turn the list [1, None, "a"] into strings
    array = table if isinstance(table, np.ndarray) else np.asarray(table, dtype=kind)
    if array.ndim == 1:
        return {name: array}
    if array.ndim == 2 and array.shape[1] > 0:
        several = array.shape[1] > 1
        return {f"{name} {k}" if several else name: array[:, k] for k in range(array.shape[1])}
    raise DataError(f"{name} must be a column or a table of columns, got an array of shape {array.shape}")


def _in_memory(values: Any) -> Any:
    """A tensor in main memory without its gradient, as NumPy accepts it; anything else as it is."""
    return values.detach().cpu() if hasattr(values, "detach") and hasattr(values, "cpu") else values


def categories(name: str, table: Table | None) -> list[str]:
    """The columns that a data frame itself calls categories: names, even if they are numbers."""
    native = _native_columns(name, table) or {}
    return [key for key, column in native.items() if type(column.dtype).__name__ in ("Categorical", "Enum")]


def frame_names(name: str, table: Table) -> list[object] | None:
    """The names of the columns of a data frame; None for a series and for anything else."""
    return list(native.columns) if hasattr(native := _wrap(name, table), "columns") else None


def _native_columns(name: str, table: Any) -> dict[str, nw.Series[Any]] | None:
    """The columns of a data frame or series by name; None for anything else."""
    native = _wrap(name, table)
    if native is None:
        return None
    if hasattr(native, "columns"):
        return {str(column): native.get_column(column) for column in native.columns}
    return {str(native.name) if native.name not in (None, "") else name: native}


def _wrap(name: str, table: Any) -> Any:
    """A data frame or series of any library, as one of narwhals; None for anything else, unless it is sparse."""
    if _is_sparse(table):
        raise DataError(f"{name} is a sparse matrix, which is not taken here; pass {name}.toarray()")
    native = _native(name, table)
    if hasattr(native, "collect"):
        raise DataError(f"{name} is a lazy table; pass {name}.collect()")
    return native


def _native(name: str, table: Any) -> Any:
    """A data frame, also a lazy one, or a series of any library, as one of narwhals; None for anything else."""
    if table is None or isinstance(table, np.ndarray | Sequence | Mapping):
        return None
    import narwhals.stable.v2 as nw  # noqa: PLC0415 (only data frames need it)

    try:
        native = nw.from_native(table, allow_series=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = [str(column) for column in table.columns]
        twice = next(column for place, column in enumerate(names) if column in names[:place])
        raise DataError(f"{name} has several columns of the name {twice!r}; rename them") from None
    return native if isinstance(native, nw.DataFrame | nw.LazyFrame | nw.Series) else None


def _is_sparse(table: Table) -> bool:
    """True for a matrix of scipy.sparse, which is then already imported."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(table))


def one_column(name: str, table: Table) -> Column:
    """The only column of a table."""
    values = list(columns(name, table).values())
    if len(values) != 1:
        raise DataError(f"{name} must be one column, got {len(values)}")
    return values[0]


def _values(series: nw.Series[Any]) -> Column:
    return series.to_numpy() if series.dtype.is_numeric() else np.array(series.to_list(), dtype=object)


def as_array(name: str, values: Any) -> Column:
    """A NumPy array of the input: a list, an array, or a column of any data frame."""
    values = _in_memory(values)
    native = _native(name, values)
    try:
        array = np.asarray(values) if native is None or hasattr(native, "columns") else native.to_numpy()
    except ValueError:
        raise DataError(f"{name} must contain numbers, or rows of one length, got {values!r}") from None
    check_exact(name, array)
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            kind = "text" if isinstance(array.flat[0], str) else f"{array.dtype} values"
            raise DataError(f"{name} must contain numbers, got {kind} such as {_first(array)}") from None
    return array


def check_exact(name: str, array: Column) -> None:
    """Raise a DataError for numbers that floats cannot represent: complex ones, and long integers."""
    kinds = set(map(type, array.flat)) if array.dtype.kind == "O" else {array.dtype.type}
    if any(issubclass(kind, complex | np.complexfloating) for kind in kinds):
        raise DataError(f"{name} must contain real numbers, got {_first(array)}; compare the real part, or the modulus")
    if array.dtype.kind in "iu" and array.size and max(int(array.max()), -int(array.min())) > EXACT:
        long = array[np.abs(array.astype(np.float64)) >= EXACT].tolist()
    elif any(issubclass(kind, int | np.integer) for kind in kinds) and array.dtype.kind == "O":
        integers = [int(number) for number in array.flat if isinstance(number, int | np.integer)]
        long = [number for number in integers if abs(number) > EXACT]
    else:
        return
    rounded = next((number for number in long if number.bit_length() > _LONGEST or number != float(number)), None)
    if rounded is not None:
        raise DataError(
            f"{name} contains integers that floating-point numbers do not distinguish, such as {rounded}; subtract a "
            "constant from all of them, or round them yourself"
        )


def _first(array: Column) -> str:
    return repr(array.flat[:1].tolist()[0]) if array.size else "nothing"


def is_missing(column: Column) -> Booleans:
    """True at None, NaN, NaT and pandas' NA."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=np.bool_)
    return np.array([is_missing_value(value) for value in column.tolist()], dtype=np.bool_)


def not_numbers(X: Table) -> str:
    """The columns of a data frame that contain anything but numbers; "" if there are none."""
    faults = []
    for name, values in columns("X", X).items():
        missing = is_missing(values)
        present = values[~missing] if missing.any() else values
        try:
            present.astype(np.float64)
        except (TypeError, ValueError):
            faults.append(f"{present[0]!r} in {name!r}")
        else:
            faults += [f"missing values (NaN) in {name!r}"] if missing.any() else []
    return ", ".join(faults[:_LISTED]) + (f" and {len(faults) - _LISTED} more columns" if len(faults) > _LISTED else "")


def levels(name: str, column: Column) -> tuple[object, ...]:
    """Distinct values that are not missing, in ascending order; those that name bands of a number, in its order.

    >>> levels("age", np.array([">60", "≤8.5", None, "(8.5,60]"], dtype=object))
    ('≤8.5', '(8.5,60]', '>60')
    """
    if column.dtype.kind in "iu":  # of which none is missing, and all can be ordered
        return tuple(distinct(column)[0])
    present = column[~is_missing(column)].tolist()
    try:
        ordered = sorted(set(present))
    except TypeError:
        kinds = sorted({type(value).__name__ for value in present})
        raise DataError(
            f"{name} mixes values that cannot be ordered ({', '.join(kinds)}); make them one type"
        ) from None
    starts = [band_start(value) for value in ordered]
    if None not in starts:
        ordered = [value for _, value in sorted(zip(starts, ordered, strict=True))]
    return tuple(ordered)


def codes(name: str, column: Column, known: Sequence[object]) -> Integers:
    """The place of each value among the known ones, -1 where it is missing; another value is an error."""
    place = {value: code for code, value in enumerate(known)}
    missing = is_missing(column)
    some = bool(missing.any())
    values, inverse = distinct(column[~missing] if some else column)
    strange = [value for value in values if value not in place]
    if strange:
        raise DataError(f"{name} contains {strange[0]!r}, which is none of {list(known)}")
    present = np.array([place[value] for value in values], dtype=np.int64)[inverse]
    if not some:  # a million values are not copied for nothing
        return present
    places = np.full(len(column), UNKNOWN, dtype=np.int64)
    places[~missing] = present
    return places


def spelled_as(known: Sequence[object], column: Column) -> list[object]:
    """The values of a column in the spelling of the known ones; None if one is missing, and others as they are.

    >>> spelled_as(("0", "1"), np.array([1.0, np.nan, 2.0]))
    ['1', None, 2.0]
    """
    values, inverse = distinct(column)
    places = [None if is_missing_value(value) else place_among(value, known) for value in values]
    spelled = [value if place is None else known[place] for value, place in zip(values, places, strict=True)]
    return [None if is_missing_value(spelled[place]) else spelled[place] for place in inverse.tolist()]


def distinct(column: Column) -> tuple[list[object], Integers]:
    """The distinct values, and the place of each row's value among them."""
    if column.dtype.kind == "O":
        place: dict[object, int] = {}
        inverse = np.array([place.setdefault(value, len(place)) for value in column.tolist()], dtype=np.int64)
        return list(place), inverse
    if column.dtype.kind in "iu" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < len(column) and high < 2**63:  # counting beats sorting
            shifted = column.astype(np.int64) - low
            present = np.bincount(shifted) > 0
            return [*(np.flatnonzero(present) + low).tolist()], (np.cumsum(present, dtype=np.int64) - 1)[shifted]
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
        raise DataError(f"arguments must have one length, got {listed}")
    return next(iter(lengths.values()))


def same_rows(**arguments: Table | None) -> int:
    """The number of rows of all tables that are not None; a DataError unless all have one length.

    If rows are labeled, by a pandas index, labels must agree too. Rows numbered from 0 upwards are taken by
    position, like those of an array, unless the other table has the same numbers in another order.

    >>> import pandas as pd
    >>> same_rows(X=pd.DataFrame({"age": [30, 40]}, index=["a", "b"]), y=pd.Series([0, 1]))
    2
    >>> same_rows(X=pd.DataFrame({"age": [30, 40]}), y=pd.Series([0, 1], index=[1, 0]))
    Traceback (most recent call last):
    metrifair.errors.DataError: X and y have the same row labels in another order; pass y.reindex(X.index), or \
y.to_numpy() if their rows belong together in this order
    """
    tables = {name: table for name, table in arguments.items() if table is not None}
    rows = {name: range(count) for name, table in tables.items() if (count := _rows(table)) is not None}
    for name, table in tables.items():
        if isinstance(table, list | tuple) and table and len(table) < max(map(len, rows.values())) == _rows(table[0]):
            raise DataError(f"{name} is a list of {len(table)} columns; pass a table, or a dict of columns by name")
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
        return int(table.shape[0]) if table.shape else None
    if hasattr(table, "__len__") and not isinstance(table, str):
        return len(table)
    return len(np.asarray(table)) if hasattr(table, "__array__") else None


def _indexes(table: Any) -> Iterator[Any]:
    """The pandas index of a table, or those of its columns."""
    for part in table.values() if isinstance(table, Mapping) else [table]:
        native = _native("the table", part)
        if native is not None and native.implementation.is_pandas_like():
            yield part.index


def _check_labels(name: str, index: Any, other: str, its_index: Any) -> None:
    if index.equals(its_index):
        return
    same = index.nlevels == its_index.nlevels and bool(index.isin(its_index).all() and its_index.isin(index).all())
    if not same and any(np.array_equal(labels, np.arange(len(labels))) for labels in (index, its_index)):
        return
    problem = (
        f"the same row labels in another order; pass {other}.reindex({name}.index)"
        if same
        else "different row labels; take the same rows of both"
    )
    raise DataError(
        f"{name} and {other} have {problem}, or {other}.to_numpy() if their rows belong together in this order"
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
    """A pandas table, or columns of that kind, with rows numbered from 0 upwards; any other as it is."""
    if isinstance(table, Mapping):
        return {name: renumbered(column) for name, column in table.items()}
    return table.reset_index(drop=True) if list(_indexes(table)) else table


def frame(data: Mapping[str, Sequence[Any]], schema: Mapping[str, str] | None, backend: Backend | None) -> Any:
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

    kinds = None if schema is None else {name: getattr(nw, kind) for name, kind in schema.items()}
    return nw.from_dict(dict(data), schema=kinds, backend=library).to_native()


def make_frame(
    rows: Sequence[Row], columns: Mapping[str, tuple[str, Callable[[Row], object]]], backend: Backend | None
) -> Any:
    """A data frame with one row for each; columns have a type, and a function that computes the value of a row.

    >>> make_frame([2, 3], {"square": ("Int64", lambda row: row * row)}, "pandas")["square"].tolist()
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
