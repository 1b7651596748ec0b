"""Groups whose name says that the group of their rows is not known, such as "Decline to state".

They are groups: their rows count, and their rates are shown. An audit never takes one as its
reference group or as its headline, unless the user states that the name is that of a real group
(``known_names``).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from metrifair.errors import MetrifairWarning
from metrifair.problem.spelling import UNKNOWN_NAMES
from metrifair.support.arrays import Booleans
from metrifair.support.user_warnings import warn_user

if TYPE_CHECKING:
    from metrifair.problem.cells import Attribute
    from metrifair.problem.problem import Problem

_DASHES = frozenset("-‐‑‒–—―−")


_SAYS_SO = "which says that the group is not known"
MARK_AS_MISSING = "If it is none, mark the group of these rows as missing."
"""The remedy where groups are compared in training."""


class UnknownName(NamedTuple):
    """A group whose name says that it is not known: the rows of this name, of all rows."""

    attribute: str
    group: str
    rows: int
    of: int


def means_unknown(name: object) -> bool:
    """Whether a name says that the group is not known; of a tuple, the values of an intersection,
    any of them.

    >>> [means_unknown(name) for name in ("Decline to State", "prefer-not-to-say", "N/A", "??",
    ...     " ")]
    [True, True, True, True, True]
    >>> [means_unknown(name) for name in ("female", "Unknown to us", "+", 0, None, ("female",
    ...     "unknown"))]
    [False, False, False, False, False, True]
    """
    if isinstance(name, tuple):
        return any(map(means_unknown, name))
    if not isinstance(name, str):
        return False
    return not _without_punctuation(name) or _letters(name) in _UNKNOWN


def are_unknown(names: Sequence[object], known_names: Collection[str] = ()) -> Booleans:
    """Which groups of an attribute have a name that says that they are not known.

    ``known_names`` are names of real groups. A dash beside a plus is a minus, and so a real group.

    >>> are_unknown(["female", "male", "Unknown"]).tolist(), are_unknown(["-", "+"]).tolist()
    ([False, False, True], [False, False])
    >>> are_unknown([("f", "NA"), ("f", "EU")], known_names=["na"]).tolist()
    [False, False]
    """
    known = {_key(name) for name in known_names}
    parts = [name if isinstance(name, tuple) else (name,) for name in names]
    signed = {place for values in parts for place, value in enumerate(values) if value == "+"}

    def is_unknown(place: int, value: object) -> bool:
        is_minus = place in signed and _is_dash(value)
        return means_unknown(value) and not is_minus and _key(str(value)) not in known

    unknown = [
        any(is_unknown(place, value) for place, value in enumerate(values)) for values in parts
    ]
    return np.array(unknown, dtype=np.bool_)


def unknown_name_counts(
    problem: Problem, rows: NDArray[Any] | None = None, known_names: Collection[str] = ()
) -> Iterator[UnknownName]:
    """Each group of an attribute whose name says that it is not known, with its number of rows.

    ``rows`` is the number of rows behind each row of the problem; None: one.
    """
    for attribute, codes in zip(problem.scheme.attributes, problem.groups.T, strict=True):
        if not are_unknown(attribute.values, known_names).any():
            continue
        # the first is that of missing groups
        counts = np.bincount(codes + 1, rows, len(attribute.groups) + 1)
        by_name: dict[tuple[str, str], float] = {}
        for column, groups in _columns(attribute):
            unknown = are_unknown(groups, known_names).tolist()
            for group, count, is_unknown in zip(groups, counts[1:], unknown, strict=True):
                if is_unknown:
                    by_name[column, str(group)] = by_name.get((column, str(group)), 0.0) + float(
                        count
                    )
        total = round(float(counts.sum()))
        for (column, group), count in by_name.items():
            yield UnknownName(column, group, round(count), total)


def _columns(attribute: Attribute) -> Iterator[tuple[str, Sequence[object]]]:
    """The column of an attribute with the value of each group; of an intersection, every column."""
    if not attribute.columns:
        yield attribute.name, attribute.groups
        return
    for place, column in enumerate(attribute.columns):
        yield column, [parts[place] for parts in attribute.parts]


def unknown_name_text(attribute: str, group: str, rows: int, of: int) -> str:
    """The fact behind every note and warning about such a group.

    >>> unknown_name_text("sex", "Decline to state", 64, 2344)
    "sex: 64 of 2,344 rows are named 'Decline to state', which says that the group is not known."
    """
    verb = "are"
    if rows == 1:
        verb = "is"
    named = f"{rows:,} of {of:,} rows {verb} named {group!r}"
    return f"{attribute}: {named}, {_SAYS_SO}."


def warn_of_unknown_names(problem: Problem) -> None:
    """Warn of groups that are compared although their names say that they are not known."""
    for text in unknown_name_warnings(problem):
        warn_user(text)


def unknown_name_warnings(problem: Problem, rows: NDArray[Any] | None = None) -> Iterator[str]:
    """The text for each group that is compared although its name says that it is not known."""
    if problem.probabilities is not None or problem.members is not None:  # which no row states
        return
    for name in unknown_name_counts(problem, rows):
        remedy = MARK_AS_MISSING.removesuffix(".")
        yield f"{unknown_name_text(*name)} It is compared as a group. {remedy}"


@contextmanager
def no_warnings_of_unknown_names() -> Iterator[None]:
    """Within this block, training does not warn of them: the caller has warned for all rows."""
    with warnings.catch_warnings():
        message = f".*{re.escape(_SAYS_SO)}"
        warnings.filterwarnings("ignore", message, MetrifairWarning)
        yield


def _key(name: str) -> str:
    """What distinguishes a name from others: its letters and digits; a name without any is a
    dash or a mark.
    """
    letters = _letters(name)
    if letters:
        return letters
    if set("".join(name.split())) <= _DASHES:
        return "-"
    return "?"


def _without_punctuation(name: str) -> str:
    kept = (character for character in name if not category(character).startswith("P"))
    return "".join(kept).strip()


def _letters(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _is_dash(value: object) -> bool:
    return isinstance(value, str) and len(value.strip()) == 1 and value.strip() in _DASHES


_UNKNOWN = frozenset(filter(None, map(_letters, UNKNOWN_NAMES)))
