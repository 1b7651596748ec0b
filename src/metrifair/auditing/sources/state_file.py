"""Audit states as files: counts and the names of cells, checked when they are read because a file
may be damaged or forged; and as input of an audit.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from metrifair.auditing.sources.state_counts import (
    FINE,
    MOST_ATOMS,
    MOST_ROWS_OF_STATES,
    STATE_BINS,
    StateCounts,
    StateGrid,
)
from metrifair.auditing.sources.state_parts import (
    MOST_STATE_CELLS,
    MOST_STATE_NAMES,
    Name,
    ProxyShape,
    Shape,
    StateParts,
    StateScalar,
    StateValue,
)
from metrifair.errors import DataError, ModelFileError
from metrifair.problem.criteria import criterion_named
from metrifair.problem.tables import LONGEST_NAME
from metrifair.saving.modelfile import Content
from metrifair.saving.records import Arrays, Count, Record, in_one_line, read_record
from metrifair.support.arrays import Booleans, Floats

STATE = "audit state"
_INTEGERS = ("cell", "bin", "rows", "within")
_FLOATS = ("low", "high")
_WEIGHTS = ("weight", "moment")
_SUM_ROUNDING = 1 + 1e-9  # of sums
_TINY = 1e-150  # squares of smaller weights are rounded to nothing


class StateRecord(Record):
    """The description of a state; its name, such as a day or a site, distinguishes several
    states.
    """

    score_range: tuple[float, float]
    threshold: float | None = None  # None: "auto"
    criteria: list[Name] | None = None
    names: Annotated[list[Name], Meta(max_length=MOST_STATE_NAMES)] = msgspec.field(
        default_factory=list
    )
    left_out: Count = 0
    withheld: Count = 0
    shape: Shape | None = None
    cells: Annotated[list[list[StateScalar]], Meta(max_length=MOST_STATE_CELLS)] = msgspec.field(
        default_factory=list
    )
    exact: bool = True


def state_content(parts: StateParts) -> Content:
    """The file of a state."""
    shape = parts.shape
    counts = parts.counts
    texts = [
        *parts.names,
        *(value for cell in parts.cells for value in cell if isinstance(value, str)),
    ]
    if shape is not None and shape.proxy is not None:
        texts += [
            shape.proxy.attribute,
            shape.proxy.source or "",
            *shape.proxy.groups,
        ]
    for text in texts:
        if len(text) > LONGEST_NAME:
            raise DataError(
                f"names and values of a state have at most {LONGEST_NAME:,} characters, got "
                f"{len(text):,}"
            )
    criteria = None
    if parts.criteria is not None:
        criteria = list(parts.criteria)
    record = StateRecord(
        score_range=parts.score_range,
        threshold=None if parts.threshold == "auto" else parts.threshold,
        criteria=criteria,
        names=list(parts.names),
        left_out=parts.left_out,
        withheld=parts.withheld,
        shape=shape,
        cells=[list(cell) for cell in parts.cells],
        exact=counts is None or counts.exact,
    )
    arrays: dict[str, Any] = {}
    if counts is not None and shape is not None:
        used = (*_INTEGERS, *_FLOATS, *_sum_shapes(shape))
        arrays = {name: getattr(counts, name) for name in used} | {"selected": parts.selected}
    return Content(STATE, record.as_json(), arrays)


def _sum_shapes(shape: Shape) -> dict[str, tuple[int, ...]]:
    """The arrays of sums by cell and bin, and the length of each sum."""
    proxy = shape.proxy
    sums: dict[str, tuple[int, ...]] = {}
    if shape.weighted or proxy is not None:
        sums = dict.fromkeys(_WEIGHTS, ())
    if proxy is None:
        return sums
    by_group = (len(proxy.groups),)
    sums |= {"share": (), "products": by_group}
    if shape.weighted:
        return sums | {"overlaps": by_group}
    return sums


def read_parts(content: Content) -> StateParts:
    """The content of a file; a ModelFileError if its counts are impossible."""
    if content.kind != STATE:
        raise ModelFileError(
            f"it contains a {reprlib.repr(content.kind)}, not the counts of an audit; load it with "
            "load()"
        )
    record = read_record(StateRecord, content.meta, "the counts of an audit")
    low, high = record.score_range
    if not (low / 2 < high / 2 and math.isfinite(high - low)):
        raise ModelFileError(
            f"score_range must be two numbers, the lower one first, got {low} and {high}"
        )
    names = tuple(record.names)
    if list(names) != sorted(set(names)):
        raise ModelFileError("the names of the parts must be in ascending order, each of them once")
    parts = StateParts(
        _criterion_names(record.criteria),
        (low, high),
        "auto" if record.threshold is None else record.threshold,
        names,
        record.left_out,
        record.withheld,
        record.shape,
    )
    if record.withheld > record.left_out:
        raise ModelFileError("the file counts more withheld rows than rows left out")
    if record.shape is None:
        if content.arrays or record.cells:
            raise ModelFileError("the file contains counts without the names of their columns")
        return parts
    parts.cells = _cells(record, record.shape)
    parts.counts, parts.selected = _counts(
        Arrays(content.arrays), record, record.shape, (low, high)
    )
    return parts


def _criterion_names(criteria: Sequence[str] | None) -> tuple[str, ...] | None:
    """The criteria of a state, checked; None: all that the counts allow."""
    if criteria is None:
        return None
    try:
        return tuple(criterion_named(name).name for name in criteria)
    except DataError as error:
        raise ModelFileError(in_one_line(error)) from error


def _cells(record: StateRecord, shape: Shape) -> list[tuple[StateValue, ...]]:
    """The cells, each of them one combination of the values of the columns."""
    if len(set(shape.roles.keys)) < len(shape.roles.keys):
        raise ModelFileError("a column occurs twice among groups, controls and label")
    cells = [tuple(cell) for cell in record.cells]
    if any(len(cell) != len(shape.roles.keys) for cell in cells) or len(set(cells)) < len(cells):
        raise ModelFileError("cells must be different combinations of one value for each column")
    if any(
        isinstance(value, float) and not math.isfinite(value) for cell in cells for value in cell
    ):
        raise ModelFileError("a value of a cell is not finite")
    proxy = shape.proxy
    if proxy is not None and (
        shape.groups != (proxy.column,)
        or len(set(proxy.groups)) < len(proxy.groups)
        or not {cell[0] for cell in cells} <= {None, *proxy.groups}
    ):
        raise ModelFileError(
            "cells must be of different groups that have probabilities, or of a missing group"
        )
    return cells


def _counts(
    arrays: Arrays, record: StateRecord, shape: Shape, ends: tuple[float, float]
) -> tuple[StateCounts, Floats]:
    """The arrays, if they can be counts of rows."""
    arrays_by_name: dict[str, Any] = {"cell": arrays.take("cell", (None,), "int64")}
    length = len(arrays_by_name["cell"])
    for name, further in (
        dict.fromkeys((*_INTEGERS[1:], *_FLOATS), ()) | _sum_shapes(shape)
    ).items():
        kind = "float64"
        if name in _INTEGERS:
            kind = "int64"
        arrays_by_name[name] = arrays.take(name, (length, *further), kind)
    selected: Floats = arrays.take("selected", (len(record.cells),))
    arrays.check_all_taken()
    none = np.zeros(0)
    counts = StateCounts(**{"weight": none, "moment": none, **arrays_by_name}, exact=record.exact)
    grid = StateGrid.between(*ends)
    rows = counts.rows
    inside = (counts.low >= ends[0]) & (counts.low <= counts.high) & (counts.high <= ends[1])
    fits = [
        (counts.cell >= 0) & (counts.cell < len(record.cells)),
        (counts.bin >= 0) & (counts.bin <= STATE_BINS),
        (rows >= 1) & (rows <= MOST_ROWS_OF_STATES),
        (counts.within >= 0) & (counts.within <= rows << FINE),
        inside,
        (counts.low == counts.high) | (not record.exact),
    ]
    if not all(fit.all() for fit in fits):
        raise ModelFileError("counts of rows, or the ends of bins, are impossible")
    if any((grid.places(end)[0] != counts.bin).any() for end in (counts.low, counts.high)):
        raise ModelFileError("scores do not lie in the bins that they are counted in")
    if record.exact and len(np.unique(counts.low)) > MOST_ATOMS:
        raise ModelFileError(f"there are more than {MOST_ATOMS} distinct scores")
    order = np.lexsort([counts.low, counts.bin, counts.cell])
    same = (
        (np.diff(counts.cell) == 0)
        & (np.diff(counts.bin) == 0)
        & ((np.diff(counts.low) == 0) | (not counts.exact))
    )
    if (order != np.arange(len(order))).any() or same.any():
        raise ModelFileError(
            "counts must be in ascending order of cells and bins, each of them once"
        )
    _check_cells(counts, selected, len(record.cells))
    if shape.proxy is not None and length:
        _check_probabilities(
            counts,
            [cell[0] for cell in record.cells],
            shape.proxy,
            weighted=shape.weighted,
        )
    return counts, selected


def _check_cells(counts: StateCounts, selected: Floats, cells: int) -> None:
    rows = counts.rows
    weighted = len(counts.weight) > 0
    if len(np.unique(counts.cell)) < cells or float(rows.sum(dtype=np.float64)) > 2.0**53:
        raise ModelFileError("a cell contains no rows, or all of them together too many")
    weight = counts.weight if weighted else rows
    amount = np.bincount(counts.cell, weight, cells) if len(rows) else np.zeros(0)
    if weighted and not (
        (weight > 0).all()
        and float(weight.sum()) < 1e300
        and (counts.moment >= 0).all()
        and (counts.moment <= weight * _SUM_ROUNDING).all()
    ):
        raise ModelFileError("sums of weights are impossible")
    if not ((selected >= 0).all() and (selected <= amount * _SUM_ROUNDING).all()):
        raise ModelFileError("a cell selects more rows than it contains")


def _check_probabilities(
    counts: StateCounts,
    groups: Sequence[StateValue],
    proxy: ProxyShape,
    *,
    weighted: bool,
) -> None:
    """Raise a ModelFileError unless sums of probabilities and of products of weights can be
    those of rows.
    """
    in_group = np.array([[group == name for name in proxy.groups] for group in groups])[counts.cell]
    root = np.sqrt(np.where(in_group, np.maximum(counts.products, 0.0), 0.0).sum(1))
    by_pair = in_group.T @ counts.products
    norm = np.sqrt(np.maximum(by_pair.diagonal(), 0.0)) + _TINY
    fits = [
        (counts.share > 0) & (counts.share <= counts.rows * _SUM_ROUNDING),
        (counts.share == counts.weight) | weighted,
        np.where(
            in_group.any(1),
            counts.weight <= root * np.sqrt(counts.rows) * _SUM_ROUNDING + _TINY,
            counts.share == counts.rows,
        ),
        root <= counts.weight * _SUM_ROUNDING + _TINY,
        counts.products >= 0,
        by_pair <= np.outer(norm, norm) * _SUM_ROUNDING,
        np.isclose(by_pair, by_pair.T, rtol=1e-9, atol=_TINY**2),
    ]
    if weighted:
        fits += _overlap_checks(counts, in_group)
    if not all(fit.all() for fit in fits):
        raise ModelFileError("sums of probabilities, or of products of weights, are impossible")


def _overlap_checks(counts: StateCounts, in_group: Booleans) -> list[Booleans]:
    """Whether each row counts in every group by its probability, so that the sums over groups
    are those of weights.
    """
    by_pair = in_group.T @ counts.overlaps
    weight = np.where(in_group.any(1), counts.weight, 0.0)
    return [
        counts.overlaps >= 0,
        np.isclose(counts.overlaps.sum(1), weight, rtol=1e-9, atol=_TINY),
        np.isclose(by_pair, by_pair.T, rtol=1e-9, atol=_TINY),
    ]
