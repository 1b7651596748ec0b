"""The scikit-learn transformer for raw tables: how each column becomes numbers is learned once, as a value."""

from __future__ import annotations

import datetime as dt
import re
import reprlib
import warnings
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from math import isnan
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias

import msgspec
import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_array, check_is_fitted

from metrifair.errors import DataError
from metrifair.problem.tables import Column, Table, categories, columns, is_missing, wrapped
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_integer

_ROWS_OF_AN_ID = 20  # fewer rows are numbered 0, 1, 2 by chance


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


def numbers_coder(kind: Literal["number", "date"], values: Floats) -> Numbers | str:
    """The coder of a column of numbers, NaN where one is missing; or the reason why the column is left out."""
    if kind == "number" and _numbers_rows(values):
        return "numbers the rows"
    missing = np.isnan(values)
    median = float(np.median(values[~missing]))
    filled = np.where(missing, median, values)
    varies = bool((filled != median).any())
    if not varies and not missing.any():
        return "holds one value only"
    size = np.abs(filled).max() or 1.0  # squares of tiny numbers would vanish
    center, spread = (float(part * size) for part in ((filled / size).mean(), (filled / size).std()))
    return Numbers(kind, median, center, spread if varies else 0.0, bool(missing.any()))


def levels_coder(
    kind: Literal["text", "boolean"], values: Column, *, min_frequency: int, max_levels: int
) -> Levels | str:
    """The coder of a column of names; or the reason why the column is left out.

    >>> values = np.array(["a"] * 3 + ["b"] * 2 + ["c", None], dtype=object)
    >>> levels_coder("text", values, min_frequency=2, max_levels=10)
    Levels(kind='text', levels=('a', 'b'), pooled=True, flagged=True)
    """
    counts = Counter(value for value in values if value is not None)
    known = sum(counts.values())
    kept = [level for level, count in counts.most_common(max_levels) if count >= min_frequency]
    if not kept and len(counts) > 1:
        many = "a value of its own in every row" if len(counts) == known else f"{len(counts):,} different values"
        return f"holds {many}, none of them {min_frequency} times"
    coder = Levels(kind, tuple(sorted(kept)), pooled=len(kept) < len(counts), flagged=known < len(values))
    return coder if len(coder.names("")) > 1 else "holds one value only"


def _numbers_rows(values: Floats) -> bool:
    """True where the values are different integers, in steps of one size, that fill at least half of their range.

    So look the numbers of rows of which some were kept apart for a test; a measured integer repeats itself.
    """
    if len(values) < _ROWS_OF_AN_ID or np.isnan(values).any() or (values % 1 != 0).any():
        return False
    steps = np.diff(np.sort(values))
    if (steps == 0).any() or steps.max() >= 2**53:
        return False
    return bool(steps.sum() < 2 * len(values) * np.gcd.reduce(steps.astype(np.int64)))


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Numbers from a table of numbers, names, booleans and dates, for any estimator; nothing of it is missing.

    - Numbers are centered and scaled. Where values were missing at ``fit``, they become the median, and a column says
      so; where none were, later ones become the median only.
    - Text, categories and booleans become one column for each level. Levels of fewer than ``min_frequency`` rows,
      and those beyond the ``max_levels`` most frequent, share one column, where levels that were not seen at ``fit``
      go too. If there is none, such a level is 0 in all columns.
      Text of which at least 95 %, but not all, are numbers is taken for text all the same, with a warning; so
      are numbers with a sign, such as 95% or $1,200.
    - Dates become days since 1970, and are then numbers. Spans of time, lists and records are refused.
    - Left out, with the reason in ``dropped_``: columns that do not vary, integers that count the rows, and text
      of which no value occurs ``min_frequency`` times.

    ``transform`` finds columns by name, in any order, and ignores those it does not know.

    Parameters
    ----------
    min_frequency : int, default=10
        Rows that a level needs for a column of its own.
    max_levels : int, default=50
        Levels of a column that get one at most: the most frequent.

    Attributes
    ----------
    coders_ : dict of str to Numbers or Levels
        How each column becomes numbers.
    dropped_ : dict of str to str
        Columns that are left out, each with the reason.
    n_features_in_ : int
        Columns of the table that was fitted.
    feature_names_in_ : ndarray of str
        Their names, where the table had names.

    Raises
    ------
    DataError
        By ``fit`` where a column mixes types, or none can be learned from; by ``transform`` where the table lacks a
        column, or holds values of another kind in it. The message names the column.

    Examples
    --------
    >>> encoder = TableEncoder(min_frequency=1)
    >>> encoder.fit_transform({"age": [20, 40, None], "sex": ["f", "m", "f"]}).round(2)
    array([[-1.22,  0.  ,  1.  ,  0.  ],
           [ 1.22,  0.  ,  0.  ,  1.  ],
           [ 0.  ,  1.  ,  1.  ,  0.  ]])
    >>> list(encoder.get_feature_names_out())
    ['age', 'age is missing', 'sex = f', 'sex = m']
    >>> encoder.transform({"age": ["old"], "sex": ["f"]})
    Traceback (most recent call last):
    metrifair.errors.DataError: column 'age' held numbers at fit, and holds text now: 'old'; ...
    """

    def __init__(self, *, min_frequency: int = 10, max_levels: int = 50) -> None:
        self.min_frequency = min_frequency
        self.max_levels = max_levels

    def fit(self, X: Table, y: object = None) -> Self:  # noqa: ARG002
        """Learn medians, scales and levels.

        Parameters
        ----------
        X : data frame, dict of columns, array or list of rows
            Features: a table of at least 2 rows.
        y : object
            Labels, or a regression target; ignored. Pipelines of scikit-learn pass it.

        Returns
        -------
        TableEncoder
            Itself.
        """
        for name in ("min_frequency", "max_levels"):
            check_integer(name, getattr(self, name), least=1)
        found = self._columns(X, reset=True)
        rows = len(next(iter(found.values()), ()))
        if rows < 2:
            raise DataError(f"X must have at least 2 rows to learn from, got n_samples={rows}")
        self.coders_: dict[str, Coder] = {}
        self.dropped_: dict[str, str] = {}
        meant = categories("X", X)
        for name, column in found.items():
            coder = self._coder(name, column)
            if isinstance(coder, Levels) and name not in meant and (strays := strays_in(column.tolist())) is not None:
                warnings.warn(f"{strays.note(name)}, or make it a category to have names.", UserWarning, stacklevel=3)
            if isinstance(coder, str):
                self.dropped_[name] = coder
            else:
                self.coders_[name] = coder
        if not self.coders_:
            reasons = "; ".join(f"{name!r} {reason}" for name, reason in self.dropped_.items())
            raise DataError(f"no column of X can be learned from: {reasons[:300]}")
        return self

    def transform(self, X: Table) -> Floats:
        """The table as numbers.

        Parameters
        ----------
        X : data frame, dict of columns, array or list of rows
            Features: a table with the columns of the fitted one.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            Numbers, all of them finite.
        """
        check_is_fitted(self, "coders_")
        found = self._columns(X, reset=False)
        lacking = [name for name in self.coders_ if name not in found]
        if lacking:
            several, more = len(lacking) > 1, " ..." if len(lacking) > 10 else ""
            word, rest = (
                ("columns", "which were there at fit; add them")
                if several
                else ("column", "which was there at fit; add it")
            )
            raise DataError(f"the table lacks the {word} {', '.join(map(repr, lacking[:10]))}{more}, {rest}")
        return np.concatenate([_encoded(name, found[name], coder) for name, coder in self.coders_.items()], axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that ``transform`` returns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of the table's columns, where it had none at ``fit``.

        Returns
        -------
        ndarray of str
            One name for each column.
        """
        check_is_fitted(self, "coders_")
        given = _check_feature_names_in(self, input_features)
        called = dict(zip(self._names_in(), map(str, given), strict=True))
        names: dict[str, None] = {}
        for column, coder in self.coders_.items():
            for name in coder.names(called[column]):
                unique = name
                while unique in names:  # a column may have the name of another one's flag
                    unique += "'"
                names[unique] = None
        return np.array(list(names), dtype=object)

    def _names_in(self) -> list[str]:
        return list(getattr(self, "feature_names_in_", [f"x{place}" for place in range(self.n_features_in_)]))

    def _columns(self, X: Table, *, reset: bool) -> dict[str, Column]:
        """Columns by name; where names were given now or at ``fit``, but not both times, by their place."""
        named = named_columns(X)
        found = unnamed_columns(X) if named is None else named
        if reset:
            self.n_features_in_ = len(found)
            self.__dict__.pop("feature_names_in_", None)
            if named is not None:
                self.feature_names_in_ = np.array(list(named), dtype=object)
        elif named is None or not hasattr(self, "feature_names_in_"):
            if len(found) != self.n_features_in_:
                wanted = f"is expecting {self.n_features_in_} features as input"
                raise DataError(f"X has {len(found)} features, but TableEncoder {wanted}")
            return dict(zip(self._names_in(), found.values(), strict=True))
        return found

    def _coder(self, name: str, column: Column) -> Coder | str:
        kind, values = typed(name, column)
        if kind is None:
            return "holds missing values only"
        if kind == "number" or kind == "date":  # noqa: PLR1714  (so that mypy knows the rest)
            return numbers_coder(kind, values)
        return levels_coder(kind, values, min_frequency=self.min_frequency, max_levels=self.max_levels)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


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


Kind: TypeAlias = Literal["number", "date", "text", "boolean"]

LARGEST = 1e150  # squares of larger numbers are beyond all floats
_NAMES: dict[Kind, str] = {"number": "numbers", "date": "dates", "text": "text", "boolean": "booleans"}
_FEW_STRAYS = 0.05  # of the values: more of them are what the column is about
_WITH_SIGN = re.compile(r"[$€£]\s?-?\d[\d,]*\.?\d*|-?\d[\d,]*\.?\d*\s?[%$€£]", re.ASCII)  # 95%, $1,200
_CODE = re.compile(r"[+-]?0\d", re.ASCII)  # such as 02139, whose first zero matters
_NUMBER = re.compile(r"[+-]?(?!0\d)(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_EPOCH = dt.datetime(1970, 1, 1)


def named_columns(table: Table) -> dict[str, Column] | None:
    """Columns of what has names for them."""
    if isinstance(table, dict) and not hasattr(table, "shape"):  # a sparse matrix can be a dictionary
        return columns("X", table)
    if not isinstance(wrapped("X", table), nw.DataFrame):
        return None
    found = columns("X", table)
    # A category is a name, even where the name is a number.
    for name in categories("X", table):
        column = found[name]
        levels = np.full(len(column), None, dtype=object)
        levels[~is_missing(column)] = [level_name(value) for value in column[~is_missing(column)].tolist()]
        found[name] = levels
    return found


def unnamed_columns(table: Table) -> dict[str, Column]:
    """Columns of an array or of a list of rows, named x0, x1 and so on."""
    whole = np.array(table, dtype=object) if isinstance(table, list) else table  # or numbers beside text become text
    array = check_array(whole, dtype=None, ensure_all_finite=False, estimator="TableEncoder")
    return {f"x{place}": array[:, place] for place in range(array.shape[1])}


def level_name(value: object) -> str:
    """A category's name; pandas makes floats of integers where values are missing."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


class Strays(NamedTuple):
    """The few cells without a number in a column of numbers, which make text of all of it."""

    cells: int
    known: int  # cells that hold anything
    example: str

    def note(self, name: str) -> str:
        """What happens to the column, and what to do.

        >>> print(Strays(1, 40, "1,234").note("pay"))
        column 'pay' is taken for text, not for numbers, because of 1 of its 40 values, such as '1,234': it becomes a \
column for each frequent value. Correct or empty such cells to have numbers
        """
        return (
            f"column {name!r} is taken for text, not for numbers, because of {self.cells:,} of its {self.known:,} "
            f"values, such as {reprlib.repr(self.example)}: it becomes a column for each frequent value. Correct or "
            "empty such cells to have numbers"
        )


def strays_in(values: Iterable[object]) -> Strays | None:
    """The cells without a number, where at least 95 % of the text in a column are numbers, also with signs; else None.

    Codes, which begin with a zero, are not numbers.

    >>> strays_in(["7"] * 39 + [None, "1,234"])
    Strays(cells=1, known=40, example='1,234')
    >>> strays_in(["02139"] * 39 + ["n/a"]), strays_in(["7", "many"]), strays_in(["7", "8"])
    (None, None, None)
    >>> strays_in(["95%", "97.5 %", "100%"]), strays_in(["$1,200", "€ 7"])
    (Strays(cells=3, known=3, example='95%'), Strays(cells=2, known=2, example='$1,200'))
    """
    counts = Counter(value.strip() for value in values if isinstance(value, str))
    other = {value: count for value, count in counts.items() if not _NUMBER.fullmatch(value)}
    cells, known = sum(other.values()), counts.total()
    signed = sum(count for value, count in other.items() if _WITH_SIGN.fullmatch(value))
    if not other or cells - signed > _FEW_STRAYS * known or any(map(_CODE.match, other)):
        return None
    return Strays(cells, known, next(iter(other)))


def as_kind(name: str, column: Column, kind: Kind) -> Column:
    """The values of a column, which must be of this kind."""
    found, values = typed(name, column)
    if found is None:
        return np.full(len(column), np.nan) if kind in ("number", "date") else values
    if found != kind:
        present = column[~is_missing(column)].tolist()
        example = next((value for value in present if kind != "number" or not _reads_as_number(value)), present[0])
        raise DataError(
            f"column {name!r} held {_NAMES[kind]} at fit, and holds {_NAMES[found]} now: "
            f"{reprlib.repr(example)}; pass {_NAMES[kind]}"
        )
    return values


def _reads_as_number(value: object) -> bool:
    try:
        return isinstance(value, str) and not isnan(float(value))
    except ValueError:
        return False


_OF_DTYPE: dict[str, Kind] = {"i": "number", "u": "number", "f": "number", "b": "boolean", "U": "text", "M": "date"}
_OF_TYPE: tuple[tuple[type | tuple[type, ...], Kind], ...] = (  # in this order: a bool is an int too
    ((bool, np.bool_), "boolean"),
    ((int, float, Decimal, np.integer, np.floating), "number"),
    (str, "text"),
    (dt.date, "date"),
)


def typed(name: str, column: Column) -> tuple[Kind | None, Column]:
    """What a column holds, with NaN or None where a value is missing; no kind where all are."""
    missing = is_missing(column)
    if missing.all():
        return None, np.full(len(column), None, dtype=object)
    kind = _OF_DTYPE.get(column.dtype.kind) or _kind_of_objects(name, column[~missing])
    if kind in ("number", "date"):
        values = np.full(len(column), np.nan)
        values[~missing] = _days(column[~missing]) if kind == "date" else column[~missing].astype(np.float64)
        strange = values[np.abs(values) > LARGEST]
        if len(strange):
            raise DataError(f"column {name!r} holds {strange[0]:g}, which is too large; leave the row out, or scale it")
        return kind, values
    levels = np.full(len(column), None, dtype=object)
    levels[~missing] = [str(value) for value in column[~missing].tolist()]
    return kind, levels


def _kind_of_objects(name: str, present: Column) -> Kind:
    types = {type(value) for value in present.tolist()}
    kinds = {next((kind for known, kind in _OF_TYPE if issubclass(own, known)), None) for own in types}
    called = ", ".join(sorted(own.__name__ for own in types))
    if None in kinds:
        raise DataError(f"column {name!r} holds values of type {called}; use numbers, text, booleans or dates")
    if len(kinds) > 1:
        raise DataError(f"column {name!r} mixes values of several types ({called}); make them one type")
    (kind,) = kinds
    return kind  # type: ignore[return-value]


def _days(column: Column) -> Floats:
    """Days since 1970, in UTC where a time zone is known."""
    if column.dtype.kind == "M":
        return (column - np.datetime64(0, "s")) / np.timedelta64(1, "D")
    return np.array([_days_of(value) for value in column.tolist()], dtype=np.float64)


def _days_of(value: dt.date) -> float:
    if not isinstance(value, dt.datetime):
        return float((value - _EPOCH.date()).days)
    naive = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
    return float((naive - _EPOCH) / dt.timedelta(days=1))
