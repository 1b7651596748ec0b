"""The levels of columns of groups, strata and labels: collected as they occur, in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.request import MOST_LEVELS, too_many_groups
from metrifair.auditing.sources.column_roles import Roles
from metrifair.auditing.sources.column_values import numbers
from metrifair.auditing.sources.file_formats import are_numbers, polars
from metrifair.errors import DataError
from metrifair.problem.attributes import in_groups
from metrifair.problem.bands import quantile_cuts
from metrifair.problem.spelling import MISSING_WORDS
from metrifair.problem.tables import EXACT, MOST_CLASSES
from metrifair.problem.values import canonical, is_number_text
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import rows_or_none

if TYPE_CHECKING:
    import polars as pl
BANDS_OUT_OF_CORE = 256  # of a numeric column out of core
_LONG = 64  # characters of a text that a fixed width is not reserved for
_FEW = 8  # levels compared one by one: faster than a lookup


def name_values(values: Sequence[object]) -> list[Any]:
    """Names that were read as text; as numbers only if that changes no name, so that 9 sorts before
    10. Texts that write the same number or boolean are one name.

    >>> texts = ["10", "9"], ["02139", "10001"], ["18_25", "26_40"], ["1.50", "true"]
    >>> [name_values(text) for text in texts]
    [[10, 9], ['02139', '10001'], ['18_25', '26_40'], ['1.50', 'true']]
    >>> name_values(["0.0", "1.0", "0", "1"]), name_values(["TRUE", "true", "unknown"])
    ([0, 1, 0, 1], ['True', 'True', 'unknown'])
    """
    text = _without_spellings([str(value) for value in values])
    for kind in (int, float):
        try:
            names = [kind(value) for value in text]
        except ValueError:
            continue
        if [str(value) for value in names] == text and {
            "nan",
            "inf",
            "-inf",
        }.isdisjoint(text):
            return names
    return text


def _without_spellings(texts: Sequence[str]) -> list[str]:
    """The texts; of several that write the same number or boolean, its usual text.

    One file of a table may write 0.0 where the next one writes 0. "true" is no 1 beside it.

    >>> _without_spellings(["1.0", "1", "true", "2.50"])
    ['1', '1', 'true', '2.50']
    """
    values = [canonical(text) for text in texts]
    keys = [(type(value), value) if isinstance(value, bool) else value for value in values]
    times = Counter(keys)
    return [
        str(value) if times[key] > 1 and not isinstance(value, str) else text
        for key, value, text in zip(keys, values, texts, strict=True)
    ]


def label_values(values: Sequence[object]) -> list[Any]:
    """Labels read as text, converted if all are integers, numbers, or true or false; else text.

    >>> texts = ["1", "0"], ["1.50", "2"], ["a", "1"], ["007", "8"], ["True", "false"]
    >>> [label_values(text) for text in texts]
    [[1, 0], [1.5, 2.0], ['a', '1'], ['007', '8'], [True, False]]
    """
    text = [str(value).strip() for value in values]
    if {value.lower() for value in text} <= {"true", "false"}:
        return [value.lower() == "true" for value in text]
    labels = name_values(text)
    if all(map(is_number_text, text)) and isinstance(labels[0], str):
        return [float(value) for value in text]
    return labels


class ManyNumbers(DataError):
    """A column of numbers with more values than are distinguished one by one; it has to be cut
    into levels.
    """

    level: ColumnLevels


@dataclass
class ColumnLevels:
    """The values of one column in order of occurrence; of numbers that are cut, one for each
    band.
    """

    role: str
    name: str
    max_values: int = MOST_LEVELS
    values: list[Any] = field(default_factory=list)
    is_number: bool | None = False  # None: its values decide
    cuts: Floats | None = None

    def cut_at(self, cuts: Sequence[float] | Floats, largest: float) -> None:
        """Replace numbers by the largest of their band: up to the first cut, up to the next,
        above the last.
        """
        self.cuts = np.asarray(cuts, dtype=np.float64)
        self.values = [*self.cuts.tolist(), largest]

    def cut_into_levels(
        self,
        values: Floats,
        amounts: Floats | None,
        *,
        rows: int,
        ends: tuple[float, float],
    ) -> Floats:
        """Cut a numeric column out of core, from ``values`` of some or all of its rows, which
        lie between ``ends``.
        """
        is_numbering = bool((values % 1 == 0).all()) and len(np.unique(values)) == len(values)
        # numbers of rows, each once
        if self.is_number is None and is_numbering and ends[1] - ends[0] + 1 == rows:
            self._raise_too_many(rows)
        cuts = quantile_cuts(values, amounts, BANDS_OUT_OF_CORE)
        beyond = values > cuts[-1]
        self.cut_at(
            cuts,
            float(
                np.average(
                    values[beyond],
                    weights=rows_or_none(amounts, beyond),
                )
            ),
        )
        return cuts

    def codes(self, column: pl.Series) -> NDArray[Any]:
        """1 + the index of each value, 0 if it is missing."""
        if self.cuts is not None:
            values = numbers(self.role, self.name, column)
            return np.where(np.isnan(values), 0, np.searchsorted(self.cuts, values) + 1)
        if column.dtype.is_float():
            column = column.fill_nan(None)
            # -0.0 is 0.0, but not as text
            column = column.set((column == 0).fill_null(value=False), 0.0)
        codes = self._value_codes(column)
        if int(np.count_nonzero(codes)) < len(column) - column.null_count() and self._add_values(
            column, codes
        ):
            codes = self._value_codes(column)
        return codes

    def _add_values(self, column: pl.Series, codes: NDArray[Any]) -> bool:
        """Add new values; return whether there are any."""
        distinct = column.filter(polars().Series(codes == 0)).drop_nulls().unique()
        if (
            len(self.values) + len(distinct) > self.max_values + len(MISSING_WORDS)
            and self.role == "group"
        ):
            # before a million are named and sorted
            self._raise_too_many(len(self.values) + len(distinct), distinct)
        ordered = distinct.sort().to_list()
        # Empty text is missing; in labels, so are words for missing values.
        missing = MISSING_WORDS if self.role == "label" else ("",)
        new = [value for value in ordered if str(value).strip().lower() not in missing]
        self.values += new
        if len(self.values) > self.max_values and self.role == "group":
            self._raise_too_many(len(self.values), distinct)
        if len(self.values) > self.max_values:
            raise DataError(
                f"the {self.role} column {self.name!r} has {len(self.values):,} or more different "
                "values, of which at "
                f"most {self.max_values:,} can be distinguished; make them coarser"
            )
        return bool(new)

    def _raise_too_many(self, groups: int, distinct: pl.Series | None = None) -> NoReturn:
        error = too_many_groups(
            self.name,
            f"{groups:,} or more different values",
            max(groups, MOST_LEVELS),
        )
        if distinct is not None and self.is_number is not False and are_numbers(distinct):
            many = ManyNumbers(*error.args)
            many.level = self
            raise many
        raise error

    def _value_codes(self, column: pl.Series) -> NDArray[Any]:
        pl = polars()
        if len(self.values) <= _FEW:
            codes = np.zeros(len(column), np.uint8)
            for code, value in enumerate(self.values, 1):
                equal = column == value
                if column.null_count():
                    equal = equal.fill_null(value=False)
                codes += equal.to_numpy().view(np.uint8) * np.uint8(code)
            return codes
        names = pl.Series(self.values, dtype=column.dtype).cast(pl.String)
        indices = column.cast(pl.String).cast(pl.Enum(names), strict=False).to_physical()
        return (indices.cast(pl.Int64) + 1).fill_null(0).to_numpy()


def levels_for(
    roles: Roles,
    *,
    max_values: int = MOST_LEVELS,
    max_groups: int | None = None,
) -> list[ColumnLevels]:
    """Levels of the key columns, without values yet; group columns may have ``max_groups``."""
    groups = len(roles.groups)
    controls = len(roles.controls)
    kinds = ["group"] * groups + ["control"] * controls + ["label"] * (roles.label is not None)
    levels = [
        ColumnLevels(kind, name, max_values) for kind, name in zip(kinds, roles.keys, strict=True)
    ]
    for level in levels[:groups]:
        level.max_values = max_values if max_groups is None else max_groups
        level.is_number = roles.is_number(level.name)
        if level.name in roles.cuts:
            level.cut_at(roles.cuts[level.name], np.inf)
    return levels


def decode_columns(
    roles: Roles,
    levels: Sequence[ColumnLevels],
    codes: Sequence[NDArray[Any]],
    *,
    is_text: bool,
) -> dict[str, Any]:
    """Groups, strata and labels as arguments of an audit, from codes of the key columns; None
    if one is missing.
    """
    arguments: dict[str, dict[str, NDArray[Any]]] = {
        "group": {},
        "control": {},
        "label": {},
    }
    for level, code in zip(levels, codes, strict=True):
        values: Sequence[Any] = level.values
        if is_text and level.cuts is None:
            numeric = level.is_number or (level.is_number is None and len(values) > MOST_CLASSES)
            values = (label_values if level.role == "label" or numeric else name_values)(values)
        index = np.asarray(code, dtype=np.int64)
        arguments[level.role][level.name] = _decoded(values, index)
    groups = None
    if arguments["group"]:
        groups = in_groups(arguments["group"], roles.cuts)
    return {
        "sensitive_features": groups,
        "control_features": arguments["control"] or None,
        "y_true": arguments["label"] or None,
    }


def _decoded(values: Sequence[Any], index: Integers) -> NDArray[Any]:
    """The value of each row, from its place, counted from 1; 0: missing.

    A NumPy array of text reserves the length of the longest text in every row, so long texts are
    objects.
    """
    if (index == 0).any() or not _fit_one_type(values):
        return np.array([None, *values], dtype=object)[index]
    is_long = any(isinstance(value, str) and len(value) > _LONG for value in values)
    return np.array(values, dtype=object if is_long else None)[index - 1]


def _fit_one_type(values: Sequence[Any]) -> bool:
    """False for integers that NumPy would make floating-point numbers or objects of.

    >>> _fit_one_type([1, 2.5]), _fit_one_type([1, 2**63])
    (True, False)
    """
    return not any(isinstance(value, int) and abs(value) >= EXACT for value in values)
