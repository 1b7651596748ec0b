"""Sentences and tables for people; what comes from data is text, never markup and never a terminal's command."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from metrifair.report.frontier.words import choice_sentences, shown_note

if TYPE_CHECKING:
    from metrifair.tradeoff.frontier import Frontier

_WIDTH = 120  # where no terminal says how wide it is
_SHOWN = 8  # strengths in a table, about


class _Console(Console):
    """Leaves a closed pipe to `cli.app`, where rich would exit with 1, which reads as "unfair"."""

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


def show_frontier(out: Console, front: Frontier) -> None:
    """A few strengths, mean over seeds, with the chosen one among them; then the choice in words."""
    view = front.view()
    for note in view.notes:
        out.print(printable(note), soft_wrap=True)
    out.print(str(front), soft_wrap=True)
    chosen = None if view.chosen is None else view.chosen.strength
    step = max(1, len(view.rows) // _SHOWN)
    shown = [row for place, row in enumerate(view.rows) if place % step == 0 or row.strength == chosen]
    keys = [key for key in ("accuracy", "unfairness", "decision_unfairness", "four_fifths") if key in view.keys]
    show_table(
        out,
        [front.parameter, *(view.label(key) for key in keys)],
        [
            [f"{row.text} (chosen)" if row.strength == chosen else row.text, *(row.figures[key].text for key in keys)]
            for row in shown
        ],
    )
    for sentence in (shown_note(view, len(shown)), *choice_sentences(view)):
        out.print(printable(sentence), soft_wrap=True)
