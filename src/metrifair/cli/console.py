"""Sentences and tables for people; what comes from data is text, never markup and never a terminal's command."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from metrifair.auditing.out_of_core.connections import is_address
from metrifair.cli.options import as_options, cuts_text
from metrifair.cli.rules import limits_of
from metrifair.cli.training_options import Costs, Families, Strengths
from metrifair.errors import MetrifairWarning
from metrifair.report.frontier.view import figure_texts
from metrifair.report.frontier.words import (
    choice_sentences,
    constant_sentence,
    families_sentence,
    row_note,
    shown_note,
)

if TYPE_CHECKING:
    from metrifair.tradeoff.frontier import Frontier

_WIDTH = 120  # where no terminal says how wide it is
_NARROW = 100
_SHOWN = 8  # strengths in a table, about
_SHORT = {"decision_unfairness": "of decisions", "four_fifths": "four-fifths"}  # beside "Unfairness"


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
    table, shown = Table(box=SIMPLE_HEAD), [[printable(cell) for cell in row] for row in rows]
    for place, heading in enumerate(headings):
        words = place < left
        # Where it is narrow, headings fold between words; numbers never do.
        least = None if words else max((len(row[place]) for row in shown), default=None)
        table.add_column(
            Text(printable(heading)), justify="left" if words else "right", min_width=least, overflow="fold"
        )
    for row in shown:
        table.add_row(*map(Text, row))
    out.print(table)


def working(text: str) -> AbstractContextManager[Any]:
    """Shows that something is under way, on a terminal."""
    return console(stderr=True).status(printable(text))


@contextmanager
def warnings_told(out: Console) -> Iterator[None]:
    """What the library warns of, as notes in the words of a command; warnings of others go their way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MetrifairWarning)
        yield
    for one in caught:
        if issubclass(one.category, MetrifairWarning):
            out.print(f"Note: {printable(as_options(str(one.message)).rstrip('.'))}.", soft_wrap=True)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def selected(front: Frontier, **wish: Any) -> Any:
    """The model that suits best; what is to be known of it ``show_frontier`` says, so that no warning need."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MetrifairWarning)
        return front.select(**wish)


def show_frontier(out: Console, front: Frontier) -> None:
    """A few strengths, mean over seeds, with the chosen one among them; then the choice in words."""
    view = front.view()
    for note in view.notes:
        out.print(printable(note), soft_wrap=True)
    out.print(str(front), soft_wrap=True)
    chosen = None if view.chosen is None else view.chosen.place
    step = max(1, len(view.rows) // _SHOWN)
    shown = [
        row
        for place, row in enumerate(view.rows)
        if row.place == chosen or (row.on_front if view.knobs else place % step == 0)
    ]
    worth = [key for key in dict.fromkeys((view.key, "accuracy", "auc")) if key in view.keys]
    gaps = {key: name for key, name in _SHORT.items() if key in view.keys}
    parts = [name for name in ("training", "validation") if name in view.rows[0].parts]
    if out.width < _NARROW:  # room for the most important ones only
        gaps, parts = {}, parts[:1]
    rows = [
        [
            f"{row.text}{' (chosen)' if row.place == chosen else ''}{' *' if row_note(row) else ''}",
            *(["needed" if row.needs_group else ""] if view.knobs else []),
            *(row.figures[key].text for key in (*worth, "unfairness")),
            *(row.parts[name].text for name in parts),
            *(row.figures[key].text for key in gaps),
        ]
        for row in shown
    ]
    if view.baseline is not None:
        texts = figure_texts(view, replace(view.baseline, intervals={}))
        own = [*(texts[key] for key in (*worth, "unfairness")), *("" for _ in parts), *(texts[key] for key in gaps)]
        rows.append(["constant", *([""] if view.knobs else []), *own])
    headings = [*(view.label(key) for key in (*worth, "unfairness")), *(f"({name})" for name in parts), *gaps.values()]
    first = ["on the Pareto line", "group"] if view.knobs else [front.parameter]
    show_table(out, [*first, *headings], rows, left=len(first))
    for note in dict.fromkeys(row_note(row) for row in shown if row_note(row)):
        own = [row.text for row in shown if row_note(row) == note]
        named = "; ".join(own) if view.knobs else f"{front.parameter} {', '.join(own)}"
        out.print(printable(f"* {named}: {note}."), soft_wrap=True)
    if told := families_sentence(view):
        out.print(printable(told), soft_wrap=True)
    if view.baseline is not None:
        out.print(printable(constant_sentence(view)), soft_wrap=True)
    for sentence in (shown_note(view, len(shown)), *choice_sentences(view)):
        out.print(printable(sentence), soft_wrap=True)


def command_text(ctx: click.Context) -> str:
    """The command as it was typed, with the names of files but not their folders, and no address of a database."""
    words = ["metrifair", str(ctx.info_name)]
    for param in ctx.command.params:
        name, is_option = str(param.name), isinstance(param, click.Option)
        if name not in ctx.params or ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = ctx.params[name]
        for one in value if param.multiple or param.nargs == -1 else (value,):
            words += (param.secondary_opts if one is False and param.secondary_opts else param.opts)[:is_option]
            if not getattr(param, "is_flag", False):
                parts = one if param.nargs > 1 else (one,)
                listed = isinstance(param.type, Strengths | Families | Costs)
                words += [_listed(one)] if listed else [_shown(part, is_file=not is_option) for part in parts]
    words += [part for limit in limits_of(ctx) for part in (limit.option, f"{limit.metric}={limit.value:g}")]
    return shlex.join(words)


def _listed(value: Any) -> str:
    """Names or numbers as they are typed: between commas, rows of them between semicolons."""
    rows = value if isinstance(value, list) and value and isinstance(value[0], list) else [value]
    written = ([one if isinstance(one, str) else f"{one:g}" for one in row] for row in rows)
    return value if isinstance(value, str) else ";".join(map(",".join, written))


def _shown(value: object, *, is_file: bool) -> str:
    """One value of an option, or the name of a file; of a database its kind."""
    if isinstance(value, tuple):
        name, told = value
        return cuts_text(name, told) if isinstance(told, list) else f"{name}={told}"
    kind, _, rest = str(value).partition(":")
    if is_file and is_address(str(value)):
        return f"{kind}:{Path(rest).name}" if kind == "duckdb" else f"{kind}:..."
    return Path(str(value)).name if is_file or isinstance(value, Path) else str(value)
