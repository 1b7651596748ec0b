"""Groups that are numbers, as a command names them: which they are, and where they are cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import click

from metrifair.errors import DataError


class Cuts(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.2
    """COLUMN=NUMBERS, or the numbers alone where there is one column of groups."""

    name = "column=numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The column, "" where it is not named, and its cuts; or a usage error."""
        if not isinstance(value, str):
            return value
        column, _, listed = value.rpartition("=")
        try:
            numbers = [float(part) for part in listed.split(",")]
        except ValueError:
            numbers = [math.nan]
        if not all(map(math.isfinite, numbers)):
            self.fail(f"{value!r} is not a list of numbers, such as 25,40,60 or age=25,40,60", param, ctx)
        return column, numbers


def cuts_text(column: str, cuts: Sequence[float]) -> str:
    """Cuts as one types them.

    >>> cuts_text("age", [25.0, 40.5]), cuts_text("", [0.1])
    ('age=25,40.5', '0.1')
    """
    listed = ",".join(repr(float(cut)).removesuffix(".0") for cut in cuts)
    return f"{column}={listed}" if column else listed


def cuts_asked(cuts: Sequence[tuple[str, list[float]]], group: Sequence[str]) -> dict[str, list[float]] | None:
    """The cuts of each column; None: nothing is cut.

    >>> cuts_asked([("", [25.0, 60.0])], ["age"]), cuts_asked([], ["age"])
    ({'age': [25.0, 60.0]}, None)
    """
    for column, numbers in cuts:
        if not column and len(group) > 1:
            listed = ",".join(f"{number:g}" for number in numbers)
            raise DataError(f"--cuts {listed} must name one of the {len(group)} columns: --cuts {group[0]}={listed}")
        if column and column not in group:
            raise DataError(f"--cuts names {column!r}, which --group does not; the groups are {', '.join(group)}")
    return {column or group[0]: numbers for column, numbers in cuts} or None


def continuous_asked(columns: Sequence[str], group: Sequence[str]) -> Any:
    """Which groups are numbers, as functions take it: columns, False for none of them, or "auto"."""
    if not columns:
        return "auto"
    if columns == ("none",) and "none" not in group:
        return False
    for column in columns:
        if column not in group:
            raise DataError(f"--continuous names {column!r}, which --group does not; the groups are {', '.join(group)}")
    return list(columns)


CONTINUOUS = click.option(
    "--continuous",
    multiple=True,
    metavar="COLUMN",
    help="Groups that are a number, such as an age; none: each value is a group. Repeatable.  [default: columns of "
    "more than 20 different numbers]",
)
CUTS = click.option(
    "--cuts",
    type=Cuts(),
    multiple=True,
    help="Make groups of a number: age=25,60 are up to 25, above 25 up to 60, above 60. Repeatable.",
)
NUMBER_OPTIONS = (CONTINUOUS, CUTS)
"""Which groups are numbers, and which numbers are cut into groups."""
