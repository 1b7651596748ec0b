"""The scikit-learn transformer for raw tables: how each column becomes numbers is learned once,
as a value.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from metrifair.encoding.coders import (
    Coder,
    Levels,
    Numbers,
    column_names,
    encoded,
    named_columns,
    strays_in,
    typed,
    unnamed_columns,
)
from metrifair.errors import DataError, Remedy
from metrifair.problem.tables import ColumnArray, Table, categories
from metrifair.problem.values import decimal_comma_in
from metrifair.support.arrays import Floats
from metrifair.support.checks import check_integer
from metrifair.support.user_warnings import warn_user

_ROWS_OF_AN_ID = 20  # fewer rows are numbered 0, 1, 2 by chance


def numbers_coder(kind: Literal["number", "date"], values: Floats) -> Numbers | str:
    """The coder of a column of numbers, NaN where one is missing; or the reason why the column
    is left out.
    """
    if kind == "number" and _numbers_rows(values):
        return "numbers the rows"
    missing = np.isnan(values)
    median = float(np.median(values[~missing]))
    filled = np.where(missing, median, values)
    varies = bool((filled != median).any())
    if not varies and not missing.any():
        return "contains one value only"
    size = np.abs(filled).max() or 1.0  # squares of tiny numbers would vanish
    center, spread = (
        float(part * size) for part in ((filled / size).mean(), (filled / size).std())
    )
    return Numbers(
        kind,
        median,
        center,
        spread if varies else 0.0,
        bool(missing.any()),
    )


def levels_coder(
    kind: Literal["text", "boolean"],
    values: ColumnArray,
    *,
    min_frequency: int,
    max_levels: int,
) -> Levels | str:
    """The coder of a column of names; or the reason why the column is left out.

    >>> values = np.array(["a"] * 3 + ["b"] * 2 + ["c", None], dtype=object)
    >>> levels_coder("text", values, min_frequency=2, max_levels=10)
    Levels(kind='text', levels=('a', 'b'), pooled=True, flagged=True)
    """
    counts = Counter(value for value in values if value is not None)
    total = sum(counts.values())
    frequent = [level for level, count in counts.most_common(max_levels) if count >= min_frequency]
    if not frequent and len(counts) > 1:
        many = "a different value in every row"
        if len(counts) != total:
            many = f"{len(counts):,} different values"
        return f"contains {many}, none of them {min_frequency} times"
    coder = Levels(
        kind,
        tuple(sorted(frequent)),
        pooled=len(frequent) < len(counts),
        flagged=total < len(values),
    )
    if len(coder.names("")) > 1:
        return coder
    return "contains one value only"


def _numbers_rows(values: Floats) -> bool:
    """True if the values are different integers, in steps of one size, that fill at least half of
    their range.

    Such are row numbers of which some are in a test set; a measured integer repeats itself.
    """
    if len(values) < _ROWS_OF_AN_ID or np.isnan(values).any() or (values % 1 != 0).any():
        return False
    steps = np.diff(np.sort(values))
    if (steps == 0).any() or steps.max() >= 2**53:
        return False
    return bool(steps.sum() < 2 * len(values) * np.gcd.reduce(steps.astype(np.int64)))


def _check_commas(name: str, column: ColumnArray) -> None:
    """Raise a DataError where text is numbers with a decimal comma."""
    if (number := decimal_comma_in(column.tolist())) is not None:
        raise DataError(
            f"column {name!r} contains numbers with a decimal comma, such as {number!r}: they "
            "would become names",
            remedy=[
                Remedy("decimal", ",", " where you read the file"),
                "make it a category to have names",
            ],
        )


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Numbers from a table of numbers, names, booleans and dates, for any estimator; nothing of it
    is missing.

    - Numbers are centered and scaled. Where values were missing at ``fit``, they become the median,
      and a column says so; where none were, later ones become the median only.
    - Text, categories and booleans become one column for each level. Levels of fewer than
      ``min_frequency`` rows, and those beyond the ``max_levels`` most frequent, share one column,
      where levels that were not seen at ``fit`` go too. If there is none, such a level is 0 in all
      columns. Text of which at least 95 %, but not all, are numbers is still text, with a warning;
      so are numbers with a sign, such as 95% or $1,200. Numbers with a decimal comma are refused.
    - Dates become days since 1970, and are then numbers. Spans of time, lists and records are
      refused.
    - Left out, with the reason in ``dropped_``: columns that do not vary, integers that count the
      rows, and text of which no value occurs ``min_frequency`` times.

    ``transform`` finds columns by name, in any order, and ignores unknown ones.

    Parameters
    ----------
    min_frequency : int, default=10
        Rows that a level needs for its own column.
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
        Their names, if the table had names.

    Raises
    ------
    DataError
        By ``fit`` where a column mixes types, or none can be learned from; by ``transform`` where
        the table lacks a column, or contains values of another kind in it. The message names the
        column.

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
    metrifair.errors.DataError: column 'age' contained numbers at fit, and contains text now:
    'old'; ...
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
        columns = self._columns(X, reset=True)
        rows = len(next(iter(columns.values()), ()))
        if rows < 2:
            raise DataError(f"X must have at least 2 rows to learn from, got n_samples={rows}")
        self.coders_: dict[str, Coder] = {}
        self.dropped_: dict[str, str] = {}
        categorical = categories("X", X)
        for name, column in columns.items():
            coder = self._coder(name, column)
            if name not in categorical and not isinstance(coder, Numbers):
                _check_commas(name, column)
            is_text = isinstance(coder, Levels) and name not in categorical
            if is_text and (strays := strays_in(column.tolist())) is not None:
                warn_user(f"{strays.note(name)}, or make it a category to have names.", UserWarning)
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
        return encoded(self.coders_, self._columns(X, reset=False))

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
        names = _check_feature_names_in(self, input_features)
        new_names = dict(zip(self._names_in(), map(str, names), strict=True))
        return np.array(
            column_names((new_names[name], coder) for name, coder in self.coders_.items()),
            dtype=object,
        )

    def _names_in(self) -> list[str]:
        return list(
            getattr(
                self, "feature_names_in_", [f"x{place}" for place in range(self.n_features_in_)]
            )
        )

    def _columns(self, X: Table, *, reset: bool) -> dict[str, ColumnArray]:
        """Columns by name; where names were given now or at ``fit``, but not both times, by
        their place.
        """
        named = named_columns(X)
        columns = unnamed_columns(X) if named is None else named
        if reset:
            self.n_features_in_ = len(columns)
            self.__dict__.pop("feature_names_in_", None)
            if named is not None:
                self.feature_names_in_ = np.array(list(named), dtype=object)
        elif named is None or not hasattr(self, "feature_names_in_"):
            if len(columns) != self.n_features_in_:
                expected = f"is expecting {self.n_features_in_} features as input"
                raise DataError(f"X has {len(columns)} features, but TableEncoder {expected}")
            return dict(zip(self._names_in(), columns.values(), strict=True))
        return columns

    def _coder(self, name: str, column: ColumnArray) -> Coder | str:
        kind, values = typed(name, column)
        if kind is None:
            return "contains missing values only"
        if kind == "number" or kind == "date":  # noqa: PLR1714  (so that mypy knows the rest)
            return numbers_coder(kind, values)
        return levels_coder(
            kind, values, min_frequency=self.min_frequency, max_levels=self.max_levels
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags
