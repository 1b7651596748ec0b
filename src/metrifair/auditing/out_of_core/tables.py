"""Columns of a file as numbers and codes, and its rows pass by pass: scores, and cells.

Levels are learned as they are met, so that one pass tells all of them. A cell is a combination of groups, strata and
label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.distribution import Booleans, Floats, Integers
from metrifair.auditing.out_of_core.counting import Block, Survey
from metrifair.auditing.out_of_core.files import MISSING, Source, polars
from metrifair.auditing.request import MOST_LEVELS, too_many_groups
from metrifair.errors import DataError

if TYPE_CHECKING:
    import polars as pl

_TABLE = 2**16  # combinations of levels that a table holds; more are looked up among those there are
_MOST_CELLS = 2**18
_MOST_COMBINATIONS = 2**63 - 1
_FEW = 8  # levels told apart one by one: faster than looking them up
# A first zero makes a code of it, such as 02139; so does "_", which Python would read over.
_NUMBER = re.compile(r"-?(?!0\d)(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


class Roles(NamedTuple):
    """Which columns of a file play which part."""

    score: str
    groups: tuple[str, ...]
    label: str | None = None
    controls: tuple[str, ...] = ()
    weight: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns whose combinations are cells: groups, then controls, then the label."""
        return *self.groups, *self.controls, *([] if self.label is None else [self.label])

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        return *self.keys, self.score, *([] if self.weight is None else [self.weight])


def numbers(role: str, name: str, column: pl.Series) -> Floats:
    """A column as numbers, NaN where a value is missing; anything else is an error that shows it."""
    pl = polars()
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        column = text.cast(pl.Float64, strict=False)
        strange = text.filter(column.is_null() & text.is_not_null() & ~text.str.to_lowercase().is_in(MISSING))
        if len(strange):
            decimal = " with a point, not a comma" if re.fullmatch(r"[+-]?\d+,\d+", strange[0], re.ASCII) else ""
            raise DataError(f"the {role} column {name!r} holds {strange[0]!r}; it must hold numbers{decimal}")
    column = column.cast(pl.Float64)
    values: Floats = column.fill_null(float("nan")).to_numpy() if column.null_count() else column.to_numpy()
    return values


def named(values: Sequence[object]) -> list[Any]:
    """Names read as text, which they stay; numbers only where that changes no name, so that 9 comes before 10.

    >>> named(["10", "9"]), named(["02139", "10001"]), named(["18_25", "26_40"]), named(["1.50", "true"])
    ([10, 9], ['02139', '10001'], ['18_25', '26_40'], ['1.50', 'true'])
    """
    text = [str(value) for value in values]
    for kind in (int, float):
        try:
            found = [kind(value) for value in text]
        except ValueError:
            continue
        if [str(value) for value in found] == text and {"nan", "inf", "-inf"}.isdisjoint(text):
            return found
    return text


def meant(values: Sequence[object]) -> list[Any]:
    """Labels read as text, as what they look like: all integers, all numbers, all true or false; else text.

    >>> meant(["1", "0"]), meant(["1.50", "2"]), meant(["a", "1"]), meant(["007", "8"]), meant(["True", "false"])
    ([1, 0], [1.5, 2.0], ['a', '1'], ['007', '8'], [True, False])
    """
    text = [str(value).strip() for value in values]
    if {value.lower() for value in text} <= {"true", "false"}:
        return [value.lower() == "true" for value in text]
    found = named(text)
    if all(map(_NUMBER.fullmatch, text)) and isinstance(found[0], str):
        return [float(value) for value in text]
    return found


@dataclass
class ColumnLevels:
    """The values of one column, in the order in which they were met."""

    role: str
    name: str
    most: int = MOST_LEVELS
    values: list[Any] = field(default_factory=list)

    def codes(self, column: pl.Series) -> NDArray[Any]:
        """1 + the place of each value, 0 where it is missing."""
        if column.dtype.is_float():
            column = column.fill_nan(None)
            column = column.set((column == 0).fill_null(value=False), 0.0)  # -0.0 is 0.0, but not as text
        found = self._known(column)
        if int(np.count_nonzero(found)) < len(column) - column.null_count() and self._learn(column, found):
            found = self._known(column)
        return found

    def _learn(self, column: pl.Series, found: NDArray[Any]) -> bool:
        """Take in the values that are not known yet; whether there are any."""
        distinct = column.filter(polars().Series(found == 0)).drop_nulls().unique()
        if len(self.values) + len(distinct) > self.most + len(MISSING) and self.role == "group":
            self._refuse(len(self.values) + len(distinct))  # before a million of them are named and sorted
        other = distinct.sort().to_list()
        # Text without a value is missing; so is, in labels, what stands for it.
        missing = MISSING if self.role == "label" else ("",)
        new = [value for value in other if str(value).strip().lower() not in missing]
        self.values += new
        if len(self.values) > self.most and self.role == "group":
            self._refuse(len(self.values))
        if len(self.values) > self.most:
            raise DataError(
                f"the {self.role} column {self.name!r} has {len(self.values):,} or more different values, of which at "
                f"most {self.most:,} can be told apart; make them coarser"
            )
        return bool(new)

    def _refuse(self, groups: int) -> NoReturn:
        raise too_many_groups(self.name, f"{groups:,} or more different values", max(groups, MOST_LEVELS))

    def _known(self, column: pl.Series) -> NDArray[Any]:
        pl = polars()
        if len(self.values) <= _FEW:
            codes = np.zeros(len(column), np.uint8)
            for place, value in enumerate(self.values, 1):
                equal = column == value
                equal = equal.fill_null(value=False) if column.null_count() else equal
                codes += equal.to_numpy().view(np.uint8) * np.uint8(place)
            return codes
        names = pl.Series(self.values, dtype=column.dtype).cast(pl.String)
        places = column.cast(pl.String).cast(pl.Enum(names), strict=False).to_physical()
        return (places.cast(pl.Int64) + 1).fill_null(0).to_numpy()


def levels_for(roles: Roles, *, most: int = MOST_LEVELS, most_groups: int | None = None) -> list[ColumnLevels]:
    """Levels of the key columns, none of them met yet; there may be ``most_groups`` of groups."""
    groups, controls = len(roles.groups), len(roles.controls)
    kinds = ["group"] * groups + ["control"] * controls + ["label"] * (roles.label is not None)
    return [
        ColumnLevels(kind, name, most_groups if kind == "group" and most_groups is not None else most)
        for kind, name in zip(kinds, roles.keys, strict=True)
    ]


def decoded(
    roles: Roles, levels: Sequence[ColumnLevels], codes: Sequence[NDArray[Any]], *, is_text: bool
) -> dict[str, Any]:
    """Groups, strata and labels as arguments of an audit, from codes of the key columns; None where one is missing."""
    found: dict[str, dict[str, NDArray[Any]]] = {"group": {}, "control": {}, "label": {}}
    for level, code in zip(levels, codes, strict=True):
        # Booleans of a control are a set of rows, which has the name of its column.
        is_set = level.role == "control" and {str(value).lower() for value in level.values} <= {"true", "false"}
        values = (meant if level.role == "label" or is_set else named)(level.values) if is_text else level.values
        place = np.asarray(code, dtype=np.int64)
        array = np.array([None, *values], dtype=object)[place] if (place == 0).any() else np.array(values)[place - 1]
        found[level.role][level.name] = array
    return {
        "sensitive_features": found["group"],
        "control_features": found["control"] or None,
        "y_true": found["label"][roles.label] if roles.label is not None else None,
    }


class UsedRows(NamedTuple):
    """Rows that can be used: scores, codes of the key columns, weights; and how many others there were."""

    scores: Floats
    codes: list[NDArray[Any]]
    weight: Floats | None
    left_out: int = 0

    def only(self, which: Booleans) -> UsedRows:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[which]
        return UsedRows(self.scores[which], [code[which] for code in self.codes], weight, self.left_out)


def used_rows(roles: Roles, levels: Sequence[ColumnLevels], table: pl.DataFrame) -> UsedRows:
    """The rows of a table with a score, a label and a weight, where asked for, and a known group."""
    scores = numbers("score", roles.score, table[roles.score])
    weight = None if roles.weight is None else numbers("weight", roles.weight, table[roles.weight])
    codes = [level.codes(table[level.name]) for level in levels]
    rows = UsedRows(scores, codes, weight)
    if len(scores) == 0:
        return rows
    whole = all(int(code.min()) > 0 for code in codes) and not np.isnan(scores.min())
    if not whole or (weight is not None and np.isnan(weight.min())):
        used = ~np.isnan(scores)
        if weight is not None:
            used &= ~np.isnan(weight)
        if roles.label is not None:
            used &= codes[-1] > 0
        used &= np.any([code > 0 for code in codes[: len(roles.groups)]], axis=0)
        rows = rows.only(used)._replace(left_out=len(used) - int(used.sum()))
    if len(rows.scores) and not np.isfinite([rows.scores.min(), rows.scores.max()]).all():
        raise DataError(f"the score column {roles.score!r} holds an infinite value; replace it or leave the row out")
    weight = rows.weight
    if weight is not None and len(weight) and not (weight.min() >= 0 and weight.max() < np.inf):
        raise DataError(f"the weight column {roles.weight!r} must hold finite numbers that are not negative")
    return rows


class Tally(NamedTuple):
    """What each cell holds: rows, their weight, and the weight of those that are selected."""

    rows: Integers
    weight: Floats
    selected: Floats


def _sums(place: NDArray[Any], selected: Booleans, weight: Floats | None) -> Floats:
    """Rows, weight and selected weight at each place: (3, places)."""
    split, places = place.astype(np.int64) * 2 + selected, 2 * int(place.max()) + 2
    rows = np.bincount(split, minlength=places).reshape(-1, 2)
    weights = rows if weight is None else np.bincount(split, weight, places).reshape(-1, 2)
    return np.stack([rows.sum(1), weights.sum(1), weights[:, 1]]).astype(np.float64)


@dataclass
class FileRows:
    """The rows of a file that can be used, as scores and cells."""

    source: Source
    roles: Roles
    most_groups: int = MOST_LEVELS
    levels: list[ColumnLevels] = field(default_factory=list)
    cells: list[tuple[int, ...]] = field(default_factory=list)  # codes of the key columns
    left_out: int = 0

    def __post_init__(self) -> None:
        self.levels = levels_for(self.roles, most_groups=self.most_groups)

    def surveyed(self, threshold: float) -> tuple[Survey, Tally]:
        """Read all rows once: the cells there are, what they hold, and a sample of the scores."""
        survey, tally = Survey(), dict[tuple[int, ...], Floats]()
        self.left_out = 0
        for scores, codes, weight, left_out in self._batches():
            self.left_out += left_out
            if len(scores) == 0:
                continue
            survey.add(scores)
            sizes = self._sizes()
            number = _radix(codes, sizes)
            if prod(sizes) <= _TABLE:
                numbers_met, place = np.arange(prod(sizes)), number
            else:
                numbers_met, place = np.unique(number, return_inverse=True)
            sums = _sums(place, scores >= threshold, weight)
            met = np.flatnonzero(sums[0])
            keys = zip(*(code.tolist() for code in np.unravel_index(numbers_met[met], sizes)), strict=True)
            for key, new in zip(keys, sums[:, met].T, strict=True):
                tally[key] = tally.get(key, 0.0) + new
            if len(tally) > _MOST_CELLS:
                raise self._too_many()
        self.cells = sorted(tally)
        found = np.array([tally[key] for key in self.cells]).reshape(-1, 3).T
        return survey, Tally(found[0].astype(np.int64), *found[1:])

    def _sizes(self) -> list[int]:
        sizes = [len(level.values) + 1 for level in self.levels]
        if prod(sizes) > _MOST_COMBINATIONS:
            raise self._too_many()
        return sizes

    def _too_many(self) -> DataError:
        listed = ", ".join(map(repr, self.roles.keys))
        return DataError(
            f"the columns {listed} have more than {_MOST_CELLS:,} combinations of values, too many to count in a file "
            "too large to hold; audit fewer of these columns at a time, or make their values coarser"
        )

    def read(self) -> Iterator[Block]:
        """Read all rows once more, as blocks of scores and cells."""
        sizes = self._sizes()
        known = np.ravel_multi_index(tuple(np.array(self.cells).T), sizes)  # ascending, as the cells are
        combinations = prod(sizes)
        cell_at = np.searchsorted(known, np.arange(combinations)) if combinations <= _TABLE else None
        for scores, codes, weight, _ in self._batches():
            number = _radix(codes, sizes)
            yield Block(scores, np.searchsorted(known, number) if cell_at is None else cell_at.take(number), weight)

    def _batches(self) -> Iterator[UsedRows]:
        """The rows that can be used and count."""
        for batch in self.source.batches(self.roles.columns):
            used = used_rows(self.roles, self.levels, batch)
            if used.weight is not None and not used.weight.all():
                used = used.only(used.weight != 0)
            yield used


def _radix(codes: Sequence[NDArray[Any]], sizes: Sequence[int]) -> NDArray[Any]:
    """One number for each combination of codes."""
    place = codes[0]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        place = place.astype(np.int64, copy=False) * size + code
    return place
