"""The scikit-learn transformer for raw tables."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from metrifair.encoding.coders import Coder, Levels, Omitted, levels_coder, numbers_coder
from metrifair.encoding.kinds import (
    LARGEST,
    Floats,
    as_kind,
    categories,
    named_columns,
    strays_in,
    typed,
    unnamed_columns,
)
from metrifair.errors import DataError
from metrifair.problem.tables import Column, Table


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Numbers from a table of numbers, names, truth values and dates, for any estimator; nothing of it is missing.

    - Numbers are centred and scaled. Where values were missing at ``fit``, they become the median, and a column says
      so; where none were, later ones become the median only.
    - Text, categories and truth values become one column for each level. Levels of fewer than ``min_frequency`` rows,
      and those beyond the ``max_levels`` most frequent, share one column, where levels that were not seen at ``fit``
      go too. If there is none, such a level is 0 in all columns.
      Text of which at least 95 %, but not all, are numbers is taken for text all the same, with a warning.
    - Dates become days since 1970, and are then numbers. Spans of time, lists and records are refused.
    - Left out, with the reason in ``dropped_``: columns that do not vary, whole numbers that count the rows, and text
      of which no value occurs ``min_frequency`` times.

    ``transform`` finds columns by name, in any order, and ignores those it does not know. A table that lacks a column,
    or holds values of another kind in it, is a DataError that names it.

    Parameters
    ----------
    min_frequency : rows that a level needs for a column of its own.
    max_levels : levels of a column that get one at most.

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
        """Learn medians, scales and levels."""
        for name in ("min_frequency", "max_levels"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
                raise DataError(f"{name} must be a whole number from 1 upwards, got {value!r}")
        found = self._columns(X, reset=True)
        rows = len(next(iter(found.values()), ()))
        if rows < 2:
            raise DataError(f"X must have at least 2 rows to learn from, got n_samples={rows}")
        self.coders_: dict[str, Coder] = {}
        self.dropped_: dict[str, str] = {}
        meant = categories(X)
        for name, column in found.items():
            coder = self._coder(name, column)
            if isinstance(coder, Levels) and name not in meant:
                _warn_of_strays(name, column)
            if isinstance(coder, Omitted):
                self.dropped_[name] = str(coder)
            else:
                self.coders_[name] = coder
        if not self.coders_:
            reasons = "; ".join(f"{name!r} {reason}" for name, reason in self.dropped_.items())
            raise DataError(f"no column of X can be learned from: {reasons[:300]}")
        return self

    def transform(self, X: Table) -> Floats:
        """The table as numbers, (n, columns), all of them finite."""
        check_is_fitted(self, "coders_")
        found = self._columns(X, reset=False)
        lacking = [name for name in self.coders_ if name not in found]
        if lacking:
            raise DataError(f"the table lacks {_listed(lacking)}, which was there at fit; add it")
        return np.concatenate([_encoded(name, found[name], coder) for name, coder in self.coders_.items()], axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that ``transform`` returns."""
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

    def _coder(self, name: str, column: Column) -> Coder | Omitted:
        kind, values = typed(name, column)
        if kind is None:
            return Omitted("holds missing values only")
        if kind in ("number", "date"):
            return numbers_coder(kind, values)
        return levels_coder(kind, values, min_frequency=self.min_frequency, max_levels=self.max_levels)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _warn_of_strays(name: str, column: Column) -> None:
    found = strays_in(column.tolist())
    if found is not None:
        warnings.warn(f"{found.note(name)}, or make it a category to have names.", UserWarning, stacklevel=4)


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


def _listed(names: list[str]) -> str:
    word = "column" if len(names) == 1 else "columns"
    return f"the {word} {', '.join(map(repr, names[:10]))}{' ...' if len(names) > 10 else ''}"
