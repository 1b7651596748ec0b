"""Columns -> the conditions that groups can have: levels of a category, and bands of a number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from metrifair.auditing.search_records import Condition
from metrifair.errors import DataError, Remedy
from metrifair.problem.attributes import cuts_by_column, numbers_among
from metrifair.problem.bands import quantile_cuts
from metrifair.problem.tables import UNKNOWN, CodedColumn, coded_columns
from metrifair.problem.values import band_names
from metrifair.support.arrays import Booleans, Integers

_BANDS = 4
_MOST_LEVELS = 100


class SearchedColumn(NamedTuple):
    """A column as codes of its levels, and its conditions."""

    name: str
    codes: Integers  # by row, from 0; the last code is that of rows that meet no condition
    conditions: tuple[Condition, ...]
    members: Booleans  # (conditions, levels): which levels meet each condition
    wider: Integers  # (conditions, 2): the next wider conditions on either side, -1 for none


def searched_columns(
    tables: Mapping[str, Any],
    rows: Integers | Booleans,
    *,
    protected: set[str],
    cuts: object,
    min_rows: int,
) -> list[SearchedColumn]:
    """The columns, at these rows, that have a condition with enough rows on both sides."""
    features = {
        name: column.take(rows) for name, column in coded_columns("X_audit", tables).items()
    }
    numbers = numbers_among(features, "auto")
    edges = _edges(features, numbers, cuts, min_rows)
    columns = []
    for name, column in features.items():
        if name in edges:
            searched = _bands(column, edges[name], is_protected=name in protected)
        else:
            searched = _levels(column, min_rows, is_protected=name in protected)
        if searched.conditions:
            columns.append(searched)
    if not columns:
        raise DataError(
            f"no column has a value with at least {min_rows:,} rows, and as many without it",
            remedy=Remedy("min_rows", detail=", a smaller number, or pass other columns"),
        )
    return columns


def _edges(
    features: Mapping[str, CodedColumn], numbers: list[str], cuts: object, min_rows: int
) -> dict[str, tuple[float, ...]]:
    """The cuts of each numeric column: the user's, or quartiles."""
    by_column: dict[str, tuple[float, ...]] = {}
    if isinstance(cuts, Mapping):
        by_column = cuts_by_column(cuts, list(features))
    elif cuts != "quantiles":
        raise DataError(
            "must be 'quantiles', or a dict with the cuts of columns",
            argument="cuts",
            received=cuts,
            remedy="pass such as {'age': [25, 40, 60]}",
        )
    for name in numbers:
        if name not in by_column:
            values = features[name].present.astype(np.float64)
            edges = quantile_cuts(values, None, _BANDS, least=min_rows)
            by_column[name] = tuple(edges.tolist())
    return by_column


def _levels(column: CodedColumn, min_rows: int, *, is_protected: bool) -> SearchedColumn:
    """One condition for each value with enough rows on both sides."""
    levels = column.levels()
    places = column.places(levels)
    counts = np.bincount(places[places != UNKNOWN], minlength=len(levels))
    kept = np.flatnonzero((counts >= min_rows) & (len(places) - counts >= min_rows))
    if len(kept) > _MOST_LEVELS:
        raise DataError(
            f"{column.name} has {len(kept):,} values with at least {min_rows:,} rows, and a search "
            f"allows {_MOST_LEVELS}",
            remedy=["merge values", Remedy("min_rows", detail=", a larger number")],
        )
    code_of_level = np.full(len(levels) + 1, len(kept))  # the last place is that of UNKNOWN
    code_of_level[kept] = np.arange(len(kept))
    conditions = tuple(
        Condition(column.name, str(levels[level]), is_protected) for level in kept.tolist()
    )
    none = np.full((len(kept), 2), UNKNOWN)
    return SearchedColumn(
        column.name, code_of_level[places], conditions, np.eye(len(kept), dtype=bool), none
    )


def _bands(column: CodedColumn, edges: tuple[float, ...], *, is_protected: bool) -> SearchedColumn:
    """One condition for each band between cuts, and for neighbors merged, up to half of all bands."""
    numbers = np.zeros(len(column.column))
    numbers[~column.missing] = column.present.astype(np.float64)
    bands = len(edges) + 1
    codes = np.where(column.missing, bands, np.searchsorted(edges, numbers))
    most = max(1, bands // 2)
    spans = [
        (first, last)
        for first in range(bands)
        for last in range(first, min(first + most, bands))
        if bands > 1
    ]
    number = {span: place for place, span in enumerate(spans)}
    conditions = tuple(
        Condition(column.name, _band_name(edges, *span), is_protected) for span in spans
    )
    level = np.arange(bands)
    members = [(level >= first) & (level <= last) for first, last in spans]
    wider = [
        [number.get((first - 1, last), UNKNOWN), number.get((first, last + 1), UNKNOWN)]
        for first, last in spans
    ]
    return SearchedColumn(
        column.name,
        codes,
        conditions,
        np.array(members, dtype=bool).reshape(len(spans), bands),
        np.array(wider, dtype=np.int64).reshape(len(spans), 2),
    )


def _band_name(edges: tuple[float, ...], first: int, last: int) -> str:
    """The name of the bands from the first to the last one.

    >>> _band_name((25.0, 40.0, 60.0), 1, 2), _band_name((25.0, 40.0), 0, 0)
    ('(25,60]', '≤25')
    """
    ends = [edges[first - 1]] if first else []
    ends += [edges[last]] if last < len(edges) else []
    names = band_names(ends)
    return names[1 if first else 0]
