"""The parts of an audit state: its columns, its cells and their counts, and how two are merged."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta

from metrifair.auditing.request import MOST_LEVELS, Request
from metrifair.auditing.sources.column_roles import Roles
from metrifair.auditing.sources.state_counts import (
    MOST_ROWS_OF_STATES,
    StateCounts,
)
from metrifair.errors import DataError, Remedy
from metrifair.figures.intervals import FEW
from metrifair.problem.memberships import (
    GroupProbabilities,
    Labels,
    probability_columns,
    probability_name,
)
from metrifair.problem.tables import LONGEST_NAME
from metrifair.problem.values import canonical, place_among
from metrifair.saving.records import Record
from metrifair.support.arrays import Floats, Integers
from metrifair.support.user_warnings import warn_user

MOST_STATE_CELLS = 2**14
TOO_LONG = 2**63  # the first integer that takes more than 64 bits
StateValue = bool | int | float | str | None
StateThreshold: TypeAlias = float | Literal["auto"] | None

MOST_STATE_NAMES = 10_000


Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
StateScalar = bool | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | float | Name | None


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
                    remedy=[
                        Remedy(name, leave_out=True),
                        "audit all rows at once, with audit or audit_file",
                    ],
                )
        source = None
        if proxy.source is not None:
            source = str(proxy.source)
        return cls(
            attribute=proxy.attribute,
            groups=tuple(groups),
            source=source,
            with_labels=proxy.with_labels,
        )

    @property
    def column(self) -> str:
        """The name of the groups in an audit."""
        return probability_name(self.attribute)

    def of_cells(self, groups: Sequence[StateValue]) -> GroupProbabilities:
        """The probabilities of cells, each of which is in one group or in none (None)."""
        is_missing = np.array([group is None for group in groups])
        table = {
            name: np.where(
                is_missing,
                np.nan,
                np.array([group == name for group in groups]),
            )
            for name in self.groups
        }
        return GroupProbabilities(
            table,
            **{name: getattr(self, name) for name in ("attribute", "source", "with_labels")},
        )


class Shape(Record):
    """The columns of a state, which two states must have in common to be added up; and how they
    were read.
    """

    groups: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=100)]
    controls: Annotated[tuple[Name, ...], Meta(max_length=100)] = ()
    label: Name | None = None
    weighted: bool = False
    # some values were read as text: the audit distinguishes numbers from names
    is_text: bool = False
    # some scores were one of two columns of probabilities: that of the last label
    of_last: bool = False
    proxy: ProxyShape | None = None  # None: groups are known

    @classmethod
    def of(cls, roles: Roles, *, is_text: bool = False) -> Shape:
        """The shape of columns with these roles."""
        proxy = None
        if roles.proxy is not None:
            proxy = ProxyShape.of(roles.proxy, list(probability_columns(roles.proxy)))
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
        return Roles(
            "score",
            self.groups,
            self.label,
            self.controls,
            "weight" if self.weighted else None,
        )

    def merged(self, other: Shape) -> Shape:
        """The shape of the rows of both; a DataError if their columns differ."""
        if (self.roles, self.proxy) != (other.roles, other.proxy):
            raise DataError(
                f"counts of different columns do not add up: {other}; and {self}; count the same "
                "ones in both"
            )
        either = {
            name: getattr(self, name) or getattr(other, name) for name in ("is_text", "of_last")
        }
        return msgspec.structs.replace(self, **either)

    def __str__(self) -> str:
        parts = [f"groups {list(self.groups)}"]
        if self.proxy is not None:
            parts = [f"{name} {value!r}" for name, value in self.proxy.as_json().items()]
        if self.controls:
            parts.append(f"controls {list(self.controls)}")
        if self.label is not None:
            parts.append(f"label {self.label!r}")
        if self.weighted:
            parts.append("weights")
        return ", ".join(parts)


@dataclass(eq=False, repr=False)
class StateParts:
    """The content of a state."""

    criteria: tuple[str, ...] | None
    score_range: tuple[float, float]
    threshold: StateThreshold
    names: tuple[str, ...] = ()
    left_out: int = 0  # rows, withheld ones too
    withheld: int = 0  # rows of small cells
    shape: Shape | None = None  # None: nothing was counted
    # values of groups, controls and label, ascending
    cells: list[tuple[StateValue, ...]] = field(default_factory=list)
    # rows, or weight, of each cell from the threshold on
    selected: Floats = field(default_factory=lambda: np.zeros(0))
    counts: StateCounts | None = None
    # of each cell, if each attribute has its own cells of all rows; not in files
    table: Integers | None = None

    @property
    def rows(self) -> int:
        """The number of counted rows."""
        if self.counts is None:
            return 0
        return round(float(self.counts.size.sum()))


def warn_of_equal_states(states: Sequence[StateParts]) -> None:
    """Warn if two states have the same counts, and enough of them to exclude chance."""
    names_by_counts: dict[tuple[object, ...], str] = {}
    for state in states:
        if state.counts is None or (rows := state.rows) < FEW:
            continue
        parts = (
            getattr(state.counts, name).tobytes()
            for name in ("cell", "low", "rows", "weight", "share")
        )
        counts = (*state.cells, *parts)
        if counts in names_by_counts:
            names = " and ".join(filter(None, (names_by_counts[counts], ", ".join(state.names))))
            warn_user(
                f"two of the states have the same counts of {rows:,} "
                f"rows{f' ({names})' if names else ''}. If they are "
                "the same rows, they are counted twice"
            )
        names_by_counts[counts] = ", ".join(state.names)


def warn_of_different_labels(states: Sequence[StateParts]) -> None:
    """Warn if a state has no label in common with the others: 0 and 1 in one, and "no" and
    "yes" in the others.
    """
    labels = [
        {canonical(cell[-1]): cell[-1] for cell in state.cells if cell[-1] is not None}
        for state in states
        if state.shape is not None and state.shape.label is not None
    ]
    for place, one_state in enumerate(labels):
        others = dict(
            chain.from_iterable(other.items() for other in labels[:place] + labels[place + 1 :])
        )
        if (
            one_state
            and others
            and len(one_state) + len(others) > 2
            and not one_state.keys() & others.keys()
        ):
            both = " and ".join(
                reprlib.repr(sorted(part.values(), key=sort_key)) for part in (one_state, others)
            )
            warn_user(
                f"states have no label in common: {both}. If they mean the same, write them alike "
                "and count again"
            )
            return


def sort_key(value: StateValue) -> tuple[int, Any]:
    """Sort values: missing ones, numbers, text."""
    if value is None:
        return (0, 0)
    if isinstance(value, str):
        return (2, value)
    return (1, value)


def state_value(value: object) -> StateValue:
    """A value as in files; integers of all types are equal. Those beyond 64 bits are names: files
    do not store them.

    >>> state_value(np.float32(2)), state_value(0.5), state_value(2**70)
    (2, 0.5, '1180591620717411303424')
    """
    item = value
    if isinstance(value, np.generic):
        item = value.item()
    if isinstance(item, float) and item.is_integer():
        item = int(item)
    if isinstance(item, bool | str | float):
        return item
    if isinstance(item, int) and -TOO_LONG <= item < TOO_LONG:
        return item
    return str(item)


def check_within(scores: Floats, ends: tuple[float, float]) -> None:
    """Raise a DataError unless the scores lie in the range of a state."""
    low, high = ends
    if len(scores) and not (scores.min() >= low and scores.max() <= high):
        beyond = float(scores.min() if scores.min() < low else scores.max())
        raise DataError(
            f"the score {beyond:g} lies beyond the range from {low:g} to {high:g}",
            remedy=Remedy(
                "score_range",
                detail=" that contains all scores, the same for all states to be merged",
            ),
        )


def check_few(cells: int) -> None:
    """Raise a DataError if there are more cells than a state can store."""
    if cells > MOST_STATE_CELLS:
        raise DataError(
            f"there are {cells:,} combinations of groups, controls and labels, and a state stores "
            f"{MOST_STATE_CELLS:,}: name "
            "fewer columns, or make their values coarser"
        )


def merge_counts(
    parts: Sequence[tuple[Sequence[tuple[StateValue, ...]], Floats, StateCounts]],
) -> tuple[list[tuple[StateValue, ...]], Floats, StateCounts]:
    """Merge one or two counts: the cells in ascending order, the selected amount of each, and the
    sum of the counts.

    A column that is text in one and numbers in the other is text, as if both files were read at
    once.
    """
    columns = zip(*(cell for cells, *_ in parts for cell in cells), strict=True)
    text = [any(isinstance(value, str) for value in column) for column in columns]
    parts = [
        ([_as_text(cell, text) for cell in cells], some, counts) for cells, some, counts in parts
    ]
    all_cells = sorted(
        {cell for cells, *_ in parts for cell in cells},
        key=lambda cell: list(map(sort_key, cell)),
    )
    check_few(len(all_cells))
    place = {cell: number for number, cell in enumerate(all_cells)}
    total = np.zeros(len(all_cells))
    renumbered = []
    for cells, selected, counts in parts:
        number = np.array([place[cell] for cell in cells], np.int64)
        np.add.at(total, number, selected)
        renumbered.append(counts.renumbered(number))
    merged = renumbered[0] if len(renumbered) == 1 else renumbered[0].merged(renumbered[1])
    if int(merged.rows.max(initial=0)) > MOST_ROWS_OF_STATES:
        raise DataError(
            f"a bin would contain more than {MOST_ROWS_OF_STATES:,} rows; audit the states by parts"
        )
    return all_cells, total, merged


def _as_text(cell: tuple[StateValue, ...], text: Sequence[bool]) -> tuple[StateValue, ...]:
    return tuple(
        str(part) if is_text and part is not None else part
        for part, is_text in zip(cell, text, strict=True)
    )


def check_positive_label(parts: StateParts, request: Request) -> None:
    """Raise a DataError if the positive label of high scores is not the last one, for which
    they were counted.
    """
    if (
        parts.shape is None
        or not parts.shape.of_last
        or parts.shape.label is None
        or request.pos_label is None
    ):
        return
    labels = sorted({cell[-1] for cell in parts.cells if cell[-1] is not None}, key=sort_key)
    is_last = place_among(request.pos_label, labels) == len(labels) - 1
    if len(labels) > 1 and is_last != (request.favorable == "high"):
        raise DataError(
            f"the scores that were counted are the probabilities of the label {labels[-1]!r}, the "
            "last of two columns",
            remedy="count the scores of the positive label as a single column",
        )
