"""Audit states as files: counts and the names of cells, checked when they are read because a file may be damaged or
forged; and as input of an audit."""

from __future__ import annotations

import math
import reprlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from metrifair.auditing.bins import BINS, FINE, MOST_ATOMS, MOST_ROWS, BinnedScores, StateCounts, StateGrid
from metrifair.auditing.columns import Roles, decode_columns, levels_for
from metrifair.auditing.request import LONGEST_NAME, MOST_LEVELS, Request
from metrifair.auditing.sample import UNUSABLE, WITHHELD
from metrifair.auditing.source import BinnedSource, CellTable
from metrifair.errors import DataError, MetrifairWarning, ModelFileError, Remedy
from metrifair.figures.intervals import FEW
from metrifair.problem.criteria import criterion_named
from metrifair.problem.proxies import GroupProbabilities, Labels, probability_columns, probability_name
from metrifair.problem.values import canonical, place_among
from metrifair.saving.modelfile import Content
from metrifair.saving.records import Arrays, Count, Record, read_record
from metrifair.support.arrays import Floats

STATE = "audit state"
MOST_CELLS = 2**14
Value = bool | int | float | str | None
Threshold: TypeAlias = float | Literal["auto"] | None

_MOST_NAMES = 10_000
_INTEGERS = ("cell", "bin", "rows", "within")
_FLOATS = ("low", "high")
_WEIGHTS = ("weight", "moment")
_ROUNDING = 1 + 1e-9  # of sums
_TINY = 1e-150  # squares of smaller weights are rounded to nothing


Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
Scalar = bool | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | float | Name | None


class ProxyShape(Record):
    """Groups with probabilities, and the assumption behind them."""

    attribute: Name
    groups: Annotated[tuple[Name, ...], Meta(min_length=2, max_length=MOST_LEVELS)]
    source: Name | None = None
    with_labels: Labels | None = None

    @classmethod
    def of(cls, proxy: GroupProbabilities, groups: Sequence[str]) -> ProxyShape:
        """From group probabilities; a DataError for options that need rows in memory."""
        for name in ("known_groups", "cells", "confusion"):
            if getattr(proxy, name) is not None:
                raise DataError(
                    "needs rows in memory, and a state stores none",
                    argument=name,
                    remedy=[Remedy(name, leave_out=True), "audit all rows at once, with audit or audit_file"],
                )
        source = None if proxy.source is None else str(proxy.source)
        return cls(attribute=proxy.attribute, groups=tuple(groups), source=source, with_labels=proxy.with_labels)

    @property
    def column(self) -> str:
        """The name of the groups in an audit."""
        return probability_name(self.attribute)

    def of_cells(self, groups: Sequence[Value]) -> GroupProbabilities:
        """The probabilities of cells, each of which is in one group or in none (None)."""
        is_missing = np.array([group is None for group in groups])
        table = {
            name: np.where(is_missing, np.nan, np.array([group == name for group in groups])) for name in self.groups
        }
        return GroupProbabilities(
            table, **{name: getattr(self, name) for name in ("attribute", "source", "with_labels")}
        )


class Shape(Record):
    """The columns of a state, which two states must have in common to be added up; and how they were read."""

    groups: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=100)]
    controls: Annotated[tuple[Name, ...], Meta(max_length=100)] = ()
    label: Name | None = None
    weighted: bool = False
    is_text: bool = False  # some values were read as text: the audit distinguishes numbers from names
    of_last: bool = False  # some scores were one of two columns of probabilities: that of the last label
    proxy: ProxyShape | None = None  # None: groups are known

    @classmethod
    def of(cls, roles: Roles, *, is_text: bool = False) -> Shape:
        """The shape of columns with these roles."""
        proxy = None if roles.proxy is None else ProxyShape.of(roles.proxy, list(probability_columns(roles.proxy)))
        return cls(
            groups=roles.groups if proxy is None else (proxy.column,),
            controls=roles.controls,
            label=roles.label,
            weighted=roles.weight is not None,
            is_text=is_text,
            proxy=proxy,
        )

    @property
    def roles(self) -> Roles:
        """The columns by role."""
        return Roles("score", self.groups, self.label, self.controls, "weight" if self.weighted else None)

    def merged(self, other: Shape) -> Shape:
        """The shape of the rows of both; a DataError if their columns differ."""
        if (self.roles, self.proxy) != (other.roles, other.proxy):
            raise DataError(
                f"counts of different columns do not add up: {other}; and {self}; count the same ones in both"
            )
        either = {name: getattr(self, name) or getattr(other, name) for name in ("is_text", "of_last")}
        return msgspec.structs.replace(self, **either)

    def __str__(self) -> str:
        label = [] if self.label is None else [f"label {self.label!r}"]
        groups = [f"groups {list(self.groups)}"]
        if self.proxy is not None:
            groups = [f"{name} {value!r}" for name, value in self.proxy.as_json().items()]
        parts = [*groups, *([f"controls {list(self.controls)}"] if self.controls else []), *label]
        return ", ".join([*parts, *(["weights"] if self.weighted else [])])


@dataclass(eq=False, repr=False)
class StateParts:
    """The content of a state."""

    criteria: tuple[str, ...] | None
    score_range: tuple[float, float]
    threshold: Threshold
    names: tuple[str, ...] = ()
    left_out: int = 0  # rows, withheld ones too
    withheld: int = 0  # rows of small cells
    shape: Shape | None = None  # None: nothing was counted
    cells: list[tuple[Value, ...]] = field(default_factory=list)  # values of groups, controls and label, ascending
    selected: Floats = field(default_factory=lambda: np.zeros(0))  # rows, or weight, of each cell from the threshold on
    counts: StateCounts | None = None

    @property
    def rows(self) -> int:
        """The number of counted rows."""
        return 0 if self.counts is None else round(float(self.counts.size.sum()))


def warn_of_equal_states(states: Sequence[StateParts]) -> None:
    """Warn if two states have the same counts, and enough of them to exclude chance."""
    names_by_counts: dict[tuple[object, ...], str] = {}
    for state in states:
        if state.counts is None or (rows := state.rows) < FEW:
            continue
        parts = (getattr(state.counts, name).tobytes() for name in ("cell", "low", "rows", "weight", "share"))
        counts = (*state.cells, *parts)
        if counts in names_by_counts:
            names = " and ".join(filter(None, (names_by_counts[counts], ", ".join(state.names))))
            warnings.warn(
                f"two of the states have the same counts of {rows:,} rows{f' ({names})' if names else ''}. If they are "
                "the same rows, they are counted twice",
                MetrifairWarning,
                stacklevel=3,
            )
        names_by_counts[counts] = ", ".join(state.names)


def warn_of_different_labels(states: Sequence[StateParts]) -> None:
    """Warn if a state has no label in common with the others: 0 and 1 in one, and "no" and "yes" in the others."""
    labels = [
        {canonical(cell[-1]): cell[-1] for cell in state.cells if cell[-1] is not None}
        for state in states
        if state.shape is not None and state.shape.label is not None
    ]
    for place, one_state in enumerate(labels):
        others = dict(chain.from_iterable(other.items() for other in labels[:place] + labels[place + 1 :]))
        if one_state and others and len(one_state) + len(others) > 2 and not one_state.keys() & others.keys():
            both = " and ".join(reprlib.repr(sorted(part.values(), key=sort_key)) for part in (one_state, others))
            warnings.warn(
                f"states have no label in common: {both}. If they mean the same, write them alike and count again",
                MetrifairWarning,
                stacklevel=3,
            )
            return


class StateRecord(Record):
    """The description of a state; its name, such as a day or a site, distinguishes several states."""

    score_range: tuple[float, float]
    threshold: float | None = None  # None: "auto"
    criteria: list[Name] | None = None
    names: Annotated[list[Name], Meta(max_length=_MOST_NAMES)] = msgspec.field(default_factory=list)
    left_out: Count = 0
    withheld: Count = 0
    shape: Shape | None = None
    cells: Annotated[list[list[Scalar]], Meta(max_length=MOST_CELLS)] = msgspec.field(default_factory=list)
    exact: bool = True


def state_content(parts: StateParts) -> Content:
    """The file of a state."""
    shape, counts = parts.shape, parts.counts
    texts = [*parts.names, *(value for cell in parts.cells for value in cell if isinstance(value, str))]
    if shape is not None and shape.proxy is not None:
        texts += [shape.proxy.attribute, shape.proxy.source or "", *shape.proxy.groups]
    for text in texts:
        if len(text) > LONGEST_NAME:
            raise DataError(f"names and values of a state have at most {LONGEST_NAME:,} characters, got {len(text):,}")
    record = StateRecord(
        score_range=parts.score_range,
        threshold=None if parts.threshold == "auto" else parts.threshold,
        criteria=None if parts.criteria is None else list(parts.criteria),
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
    sums: dict[str, tuple[int, ...]] = dict.fromkeys(_WEIGHTS, ()) if shape.weighted or proxy is not None else {}
    return sums if proxy is None else sums | {"share": (), "products": (len(proxy.groups),)}


def read_parts(content: Content) -> StateParts:
    """The content of a file; a ModelFileError if its counts are impossible."""
    if content.kind != STATE:
        raise ModelFileError(
            f"it contains a {reprlib.repr(content.kind)}, not the counts of an audit; load it with load()"
        )
    record = read_record(StateRecord, content.meta, "the counts of an audit")
    low, high = record.score_range
    if not (low / 2 < high / 2 and math.isfinite(high - low)):
        raise ModelFileError(f"score_range must be two numbers, the lower one first, got {low} and {high}")
    criteria = record.criteria
    try:
        criterion_names = None if criteria is None else tuple(criterion_named(name).name for name in criteria)
    except DataError as error:
        raise ModelFileError(str(error)[:300]) from error
    threshold: Threshold = "auto" if record.threshold is None else record.threshold
    names = tuple(record.names)
    if list(names) != sorted(set(names)):
        raise ModelFileError("the names of the parts must be in ascending order, each of them once")
    parts = StateParts(criterion_names, (low, high), threshold, names, record.left_out, record.withheld, record.shape)
    if record.withheld > record.left_out:
        raise ModelFileError("the file counts more withheld rows than rows left out")
    if record.shape is None:
        if content.arrays or record.cells:
            raise ModelFileError("the file contains counts without the names of their columns")
        return parts
    parts.cells = _cells(record, record.shape)
    parts.counts, parts.selected = _counts(Arrays(content.arrays), record, record.shape, (low, high))
    return parts


def _cells(record: StateRecord, shape: Shape) -> list[tuple[Value, ...]]:
    """The cells, each of them one combination of the values of the columns."""
    if len(set(shape.roles.keys)) < len(shape.roles.keys):
        raise ModelFileError("a column occurs twice among groups, controls and label")
    cells = [tuple(cell) for cell in record.cells]
    if any(len(cell) != len(shape.roles.keys) for cell in cells) or len(set(cells)) < len(cells):
        raise ModelFileError("cells must be different combinations of one value for each column")
    if any(isinstance(value, float) and not math.isfinite(value) for cell in cells for value in cell):
        raise ModelFileError("a value of a cell is not finite")
    proxy = shape.proxy
    if proxy is not None and (
        shape.groups != (proxy.column,)
        or len(set(proxy.groups)) < len(proxy.groups)
        or not {cell[0] for cell in cells} <= {None, *proxy.groups}
    ):
        raise ModelFileError("cells must be of different groups that have probabilities, or of a missing group")
    return cells


def _counts(arrays: Arrays, record: StateRecord, shape: Shape, ends: tuple[float, float]) -> tuple[StateCounts, Floats]:
    """The arrays, if they can be counts of rows."""
    arrays_by_name: dict[str, Any] = {"cell": arrays.take("cell", (None,), "int64")}
    length = len(arrays_by_name["cell"])
    for name, further in (dict.fromkeys((*_INTEGERS[1:], *_FLOATS), ()) | _sum_shapes(shape)).items():
        kind = "int64" if name in _INTEGERS else "float64"
        arrays_by_name[name] = arrays.take(name, (length, *further), kind)
    selected: Floats = arrays.take("selected", (len(record.cells),))
    arrays.check_all_taken()
    none = np.zeros(0)
    counts = StateCounts(**{"weight": none, "moment": none, **arrays_by_name}, exact=record.exact)
    grid, rows = StateGrid.between(*ends), counts.rows
    inside = (counts.low >= ends[0]) & (counts.low <= counts.high) & (counts.high <= ends[1])
    fits = [
        (counts.cell >= 0) & (counts.cell < len(record.cells)),
        (counts.bin >= 0) & (counts.bin <= BINS),
        (rows >= 1) & (rows <= MOST_ROWS),
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
    same = (np.diff(counts.cell) == 0) & (np.diff(counts.bin) == 0) & ((np.diff(counts.low) == 0) | (not counts.exact))
    if (order != np.arange(len(order))).any() or same.any():
        raise ModelFileError("counts must be in ascending order of cells and bins, each of them once")
    _check_cells(counts, selected, len(record.cells))
    if shape.proxy is not None and length:
        _check_probabilities(counts, [cell[0] for cell in record.cells], shape.proxy, weighted=shape.weighted)
    return counts, selected


def _check_cells(counts: StateCounts, selected: Floats, cells: int) -> None:
    rows, weighted = counts.rows, len(counts.weight) > 0
    if len(np.unique(counts.cell)) < cells or float(rows.sum(dtype=np.float64)) > 2.0**53:
        raise ModelFileError("a cell contains no rows, or all of them together too many")
    weight = counts.weight if weighted else rows
    amount = np.bincount(counts.cell, weight, cells) if len(rows) else np.zeros(0)
    if weighted and not (
        (weight > 0).all()
        and float(weight.sum()) < 1e300
        and (counts.moment >= 0).all()
        and (counts.moment <= weight * _ROUNDING).all()
    ):
        raise ModelFileError("sums of weights are impossible")
    if not ((selected >= 0).all() and (selected <= amount * _ROUNDING).all()):
        raise ModelFileError("a cell selects more rows than it contains")


def _check_probabilities(counts: StateCounts, groups: Sequence[Value], proxy: ProxyShape, *, weighted: bool) -> None:
    """Raise a ModelFileError unless sums of probabilities and of products of weights can be those of rows."""
    in_group = np.array([[group == name for name in proxy.groups] for group in groups])[counts.cell]
    root = np.sqrt(np.where(in_group, np.maximum(counts.products, 0.0), 0.0).sum(1))
    by_pair = in_group.T @ counts.products
    norm = np.sqrt(np.maximum(by_pair.diagonal(), 0.0)) + _TINY
    fits = [
        (counts.share > 0) & (counts.share <= counts.rows * _ROUNDING),
        (counts.share == counts.weight) | weighted,
        np.where(
            in_group.any(1),
            counts.weight <= root * np.sqrt(counts.rows) * _ROUNDING + _TINY,
            counts.share == counts.rows,
        ),
        root <= counts.weight * _ROUNDING + _TINY,
        counts.products >= 0,
        by_pair <= np.outer(norm, norm) * _ROUNDING,
        np.isclose(by_pair, by_pair.T, rtol=1e-9, atol=_TINY**2),
    ]
    if not all(fit.all() for fit in fits):
        raise ModelFileError("sums of probabilities, or of products of weights, are impossible")


def sort_key(value: Value) -> tuple[int, Any]:
    """Sort values: missing ones, numbers, text."""
    return (0, 0) if value is None else (2, value) if isinstance(value, str) else (1, value)


def plain(value: object) -> Value:
    """A value as in files; integers of all types are equal."""
    item = value.item() if isinstance(value, np.generic) else value
    if isinstance(item, bool | str):
        return item
    if isinstance(item, int | float):
        return int(item) if float(item).is_integer() else float(item)
    return str(item)


def check_within(scores: Floats, ends: tuple[float, float]) -> None:
    """Raise a DataError unless the scores lie in the range of a state."""
    low, high = ends
    if len(scores) and not (scores.min() >= low and scores.max() <= high):
        beyond = float(scores.min() if scores.min() < low else scores.max())
        raise DataError(
            f"the score {beyond:g} lies beyond the range from {low:g} to {high:g}",
            remedy=Remedy("score_range", detail=" that contains all scores, the same for all states to be merged"),
        )


def check_few(cells: int) -> None:
    """Raise a DataError if there are more cells than a state can store."""
    if cells > MOST_CELLS:
        raise DataError(
            f"there are {cells:,} combinations of groups, controls and labels, and a state stores {MOST_CELLS:,}: name "
            "fewer columns, or make their values coarser"
        )


def merge_counts(
    parts: Sequence[tuple[Sequence[tuple[Value, ...]], Floats, StateCounts]],
) -> tuple[list[tuple[Value, ...]], Floats, StateCounts]:
    """Merge one or two counts: the cells in ascending order, the selected amount of each, and the sum of the counts.

    A column that is text in one and numbers in the other is text, as if both files were read at once.
    """
    columns = zip(*(cell for cells, *_ in parts for cell in cells), strict=True)
    text = [any(isinstance(value, str) for value in column) for column in columns]
    parts = [([_as_text(cell, text) for cell in cells], some, counts) for cells, some, counts in parts]
    all_cells = sorted({cell for cells, *_ in parts for cell in cells}, key=lambda cell: list(map(sort_key, cell)))
    check_few(len(all_cells))
    place = {cell: number for number, cell in enumerate(all_cells)}
    total, renumbered = np.zeros(len(all_cells)), []
    for cells, selected, counts in parts:
        number = np.array([place[cell] for cell in cells], np.int64)
        np.add.at(total, number, selected)
        renumbered.append(counts.renumbered(number))
    merged = renumbered[0] if len(renumbered) == 1 else renumbered[0].merged(renumbered[1])
    if int(merged.rows.max(initial=0)) > MOST_ROWS:
        raise DataError(f"a bin would contain more than {MOST_ROWS:,} rows; audit the states by parts")
    return all_cells, total, merged


def _as_text(cell: tuple[Value, ...], text: Sequence[bool]) -> tuple[Value, ...]:
    return tuple(str(part) if is_text and part is not None else part for part, is_text in zip(cell, text, strict=True))


def check_positive_label(parts: StateParts, request: Request) -> None:
    """Raise a DataError if the positive label of high scores is not the last one, for which they were counted."""
    if parts.shape is None or not parts.shape.of_last or parts.shape.label is None or request.pos_label is None:
        return
    labels = sorted({cell[-1] for cell in parts.cells if cell[-1] is not None}, key=sort_key)
    is_last = place_among(request.pos_label, labels) == len(labels) - 1
    if len(labels) > 1 and is_last != (request.favorable == "high"):
        raise DataError(
            f"the scores that were counted are the probabilities of the label {labels[-1]!r}, the last of two columns",
            remedy="count the scores of the positive label as a single column",
        )


@dataclass(frozen=True, eq=False)
class StateRows(BinnedSource):
    """The counts of a state, as the source of an audit."""

    parts: StateParts
    shape: Shape
    entries: StateCounts

    @property
    def weighted(self) -> bool:
        """True if rows have weights, or a share of their weight in each group."""
        return self.shape.weighted or self.shape.proxy is not None

    def survey(self, threshold: float) -> CellTable:  # noqa: ARG002
        """The counts of the cells."""
        counts, cells = self.entries, len(self.parts.cells)
        rows = np.bincount(counts.cell, counts.size, cells).astype(counts.size.dtype)
        weight = (np.bincount(counts.cell, counts.weight, cells) if self.weighted else rows).astype(np.float64)
        table = np.array(self.parts.cells, dtype=object)
        levels, place = levels_for(self.shape.roles), []
        for level, column in zip(levels, table.T, strict=True):
            level.values = sorted({value for value in column if value is not None}, key=sort_key)
            number = {value: code for code, value in enumerate(level.values, 1)}
            place.append(np.array([number.get(value, 0) for value in column]))
        arguments = decode_columns(self.shape.roles, levels, place, is_text=self.shape.is_text)
        if self.shape.proxy is not None:
            arguments["sensitive_features"] = self.shape.proxy.of_cells([cell[0] for cell in self.parts.cells])
        ends = float(counts.low.min()), float(counts.high.max())
        left_out = {UNUSABLE: self.parts.left_out - self.parts.withheld, WITHHELD: self.parts.withheld}
        return CellTable(arguments, rows, weight, self.parts.selected, ends, left_out)

    def count(self) -> BinnedScores:
        """The bins, which cannot be refined."""
        return self.entries.binned(StateGrid.between(*self.parts.score_range), len(self.parts.cells))
