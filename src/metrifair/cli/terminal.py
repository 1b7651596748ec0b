"""Sentences and tables for people; what comes from data is text, never markup and never a terminal's command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDTH = 120  # where no terminal says how wide it is


class _Console(Console):
    """Leaves a closed pipe to `cli.group`, where rich would exit with 1, which reads as "unfair"."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Where to print; errors, notes and all that is not the result itself go to standard error."""
    plain = _Console(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not plain.is_terminal:
        plain.width = _WIDTH
    return plain


def printable(text: object) -> str:
    r"""The text without characters that move the cursor or change colours.

    >>> printable("a\x1b[31mb\nc")
    'a�[31mb�c'
    """
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in str(text))


def show_table(out: Console, headings: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1) -> None:
    """Print a table, whose first ``left`` columns hold text and whose others hold numbers."""
    table = Table(box=SIMPLE_HEAD)
    for place, heading in enumerate(headings):
        words = place < left
        table.add_column(
            Text(printable(heading)), justify="left" if words else "right", no_wrap=not words, overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    out.print(table)


def working(text: str) -> AbstractContextManager[Any]:
    """Shows that something is under way, on a terminal."""
    return console(stderr=True).status(printable(text))


def decimals(value: float | None, digits: int = 3) -> str:
    """A figure, or a dash where it is not known.

    >>> decimals(0.12345), decimals(None)
    ('0.123', '-')
    """
    return "-" if value is None else f"{value:.{digits}f}"
