"""Sentences and tables on the terminal; text from data is never markup nor a terminal command."""

from __future__ import annotations

import json
import shlex
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from metrifair.auditing.sources.connections import is_address
from metrifair.cli.closed_pipe import discard_output
from metrifair.cli.option_names import OPTION_NAMES
from metrifair.cli.options import STANDARD_OUTPUT, cuts_text, probabilities_text
from metrifair.cli.rules import typed_limits
from metrifair.errors import MetrifairWarning
from metrifair.support.files import write_file
from metrifair.wording.numbers import NO_NUMBER

if TYPE_CHECKING:
    from metrifair.wording.tables import Column

_WIDTH = 120  # without a terminal
_LONGEST_CELL = 200  # characters
_LONGEST_WORD = 16  # that is kept whole
_PLACES = ("groups", "compared", "within", "group")


class _Console(Console):
    """Lets a command write its files where a pipe is closed; rich would exit with 1, which
    reads as "unfair".
    """

    def on_broken_pipe(self) -> None:
        discard_output(click.get_current_context())


def console(*, stderr: bool = False) -> Console:
    """Where to print; errors, notes and all that is not the result itself go to standard error."""
    plain = _Console(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not plain.is_terminal:
        plain.width = _WIDTH
    return plain


def printable(text: object) -> str:
    r"""The text without characters that move the cursor or change colors.

    >>> printable("a\x1b[31mb\nc")
    'a�[31mb�c'
    """
    return "".join(
        sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in str(text)
    )


def shorten(text: str, most: int = _LONGEST_CELL) -> str:
    """The text, cut with an ellipsis if it is longer than a table can show.

    >>> shorten("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


T = TypeVar("T")


def rows_to_show(rows: Sequence[T], most: int, rank: Callable[[T], Any]) -> list[T]:
    """All rows in their order; of more than ``most``, those with the lowest ranks, in the order of
    the ranks.

    >>> rows_to_show([3, 1, 2], 3, rank=abs), rows_to_show([3, 1, 2], 2, rank=abs)
    ([3, 1, 2], [1, 2])
    """
    return list(rows) if len(rows) <= most else sorted(rows, key=rank)[:most]


def say_hidden(out: Console, hidden: int, what: str, options: str = "--json or --html") -> None:
    """Print how many rows a table does not show, and the options that show all; nothing if it
    shows all.
    """
    if hidden > 0:
        out.print(f"... and {hidden:,} more {what}: {options}", soft_wrap=True)


def show_columns(out: Console, columns: Sequence[Column], rows: Iterable[Any]) -> None:
    """Print the columns of some rows as a table."""
    headings = [column.heading for column in columns]
    texts = [place for place, column in enumerate(columns) if column.is_text]
    lines = [[_cell_text(column, row) for column in columns] for row in rows]
    show_table(out, headings, lines, left=texts)


def _cell_text(column: Column, row: Any) -> str:
    """What a table shows of a row: of the place of a figure, the small print too."""
    cell = column.cell(row)
    if column.key in _PLACES:
        return cell.line
    return cell.small if cell.text == NO_NUMBER and cell.small else cell.text


def show_table(
    out: Console,
    headings: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    left: int | Collection[int] = 1,
) -> None:
    """Print a table, whose first ``left`` columns, or those at these places, contain text and whose
    others contain numbers.
    """
    table = Table(box=SIMPLE_HEAD)
    cells = [[shorten(printable(cell)) for cell in row] for row in rows]
    texts = range(left) if isinstance(left, int) else left
    heads = [printable(heading) for heading in headings]
    longest = [
        max((cell_len(row[place]) for row in cells), default=1) for place in range(len(heads))
    ]
    natural = [max(cell_len(head), length) for head, length in zip(heads, longest, strict=True)]
    room = out.width - 3 * len(heads) - 1  # blanks between columns
    # Where it is narrow, headings of numbers fold between words first, then texts fold; numbers
    # never do.
    if sum(natural) > room:
        words = [max(map(cell_len, head.split()), default=1) for head in heads]
        folded = map(max, words, longest)
        natural = [
            width if place in texts else narrow
            for place, (width, narrow) in enumerate(zip(natural, folded, strict=True))
        ]
    least = [
        _longest_word(head, *(row[place] for row in cells)) if place in texts else longest[place]
        for place, head in enumerate(heads)
    ]
    if sum(least) > room:  # names at the left may break anywhere
        names = next((place for place in range(len(heads)) if place not in texts), 0)
        least[:names] = [1] * names
    widths = column_widths(natural, least, room)
    for place, (head, width) in enumerate(zip(heads, widths, strict=True)):
        table.add_column(
            Text(head), justify="left" if place in texts else "right", width=width, overflow="fold"
        )
    for row in cells:
        table.add_row(*map(Text, row))
    out.print(table)


def _longest_word(*texts: str) -> int:
    """The width of the longest word; of very long ones, a part."""
    words = (word for text in texts for word in text.split())
    return min(_LONGEST_WORD, max(map(cell_len, words), default=1))


def column_widths(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths of columns that fit into the room: the widest shrink first, none below its
    ``least``.

    >>> column_widths([30, 14, 16, 7], [1, 1, 16, 5], 50), column_widths([30, 16], [1, 16], 10)
    ([13, 14, 16, 7], [1, 16])
    """
    widths = list(natural)
    while sum(widths) > room:
        shrinkable = [place for place, width in enumerate(widths) if width > least[place]]
        if not shrinkable:
            break
        widths[max(shrinkable, key=widths.__getitem__)] -= 1
    return widths


def say(out: Console, *lines: object) -> None:
    """Print each line as plain text, unbroken."""
    for line in lines:
        out.print(printable(line), soft_wrap=True)


def working(text: str) -> AbstractContextManager[Any]:
    """Shows that something is under way, on a terminal."""
    out = console(stderr=True)
    return out.status(printable(text)) if out.is_terminal else nullcontext()


@contextmanager
def collected_warnings(*kinds: type[Warning]) -> Iterator[dict[str, Warning]]:
    """Collect the warnings of these kinds by their texts, which name options; emit others again
    at the end.
    """
    by_text: dict[str, Warning] = {}
    with warnings.catch_warnings(record=True) as caught:
        for kind in kinds:
            warnings.simplefilter("always", kind)
        yield by_text
    for record in caught:
        message = record.message
        if not isinstance(message, kinds):
            warnings.warn_explicit(message, record.category, record.filename, record.lineno)
        elif isinstance(message, Warning):
            if isinstance(message, MetrifairWarning):
                text = message.text(OPTION_NAMES)
            else:
                text = str(message)
            by_text[f"{text.rstrip('.')}."] = message


@contextmanager
def working_with_notes(out: Console, text: str) -> Iterator[None]:
    """``working``; each warning of the library is then printed once, as a note."""
    with collected_warnings(MetrifairWarning) as notes, working(text):
        yield
    say(out, *(f"Note: {note}" for note in notes))


def command_text(ctx: click.Context) -> str:
    """The command as it was typed, with the names of files but not their folders, and no
    address of a database.
    """
    words = ["metrifair", str(ctx.info_name)]
    for param in ctx.command.params:
        name = str(param.name)
        is_option = isinstance(param, click.Option)
        if (
            name not in ctx.params
            or ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE
        ):
            continue
        items = ctx.params[name]
        if not param.multiple and param.nargs != -1:
            items = (items,)
        for item in items:
            words += (
                param.secondary_opts if item is False and param.secondary_opts else param.opts
            )[:is_option]
            if not getattr(param, "is_flag", False):
                words += [
                    _shown(part, is_file=not is_option)
                    for part in (item if param.nargs > 1 else (item,))
                ]
    words += [
        part
        for limit in typed_limits(ctx)
        for part in (limit.option, f"{limit.name}={limit.value:g}")
    ]
    return shlex.join(words)


def _shown(value: object, *, is_file: bool) -> str:
    """One value of an option, or the name of a file; of a database its kind."""
    # names or numbers between commas, rows of numbers between semicolons
    if isinstance(value, list):
        rows = value if isinstance(value[0], list) else [value]
        return ";".join(
            ",".join(row) if isinstance(row[0], str) else cuts_text("", row) for row in rows
        )
    if isinstance(value, tuple):
        name, values = value
        if isinstance(values, dict):
            return probabilities_text(name, values)
        return cuts_text(name, values) if isinstance(values, list) else f"{name}={values}"
    kind, _, rest = str(value).partition(":")
    if is_file and is_address(str(value)):
        return f"{kind}:{Path(rest).name}" if kind == "duckdb" else f"{kind}:..."
    return Path(str(value)).name if is_file or isinstance(value, Path) else str(value)


def write_pages(
    out: Console, to_html: Callable[[Path], None], html: Path | None, pdf: Path | None
) -> None:
    """Write a report, as a page and as a PDF file, and print where each is."""
    if html is not None:
        to_html(html)
        say(out, f"Report: {html}")
    if pdf is not None:
        from metrifair.report.pdf import print_pdf

        print_pdf(to_html, pdf)
        say(out, f"Report: {pdf}")


def write_json(content: Any, path: Path) -> None:
    """Write JSON that every parser accepts; to standard output if the path is -."""
    write_text(json.dumps(content, indent=2, allow_nan=False), path)


def write_text(text: str, path: Path) -> None:
    """Write the text in one step, or to standard output if the path is -."""
    if path == STANDARD_OUTPUT:
        click.echo(text)
        return
    write_file(path, f"{text}\n".encode())
