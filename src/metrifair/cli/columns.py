"""`metrifair columns`: the columns of a file, and the role that each column could have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from metrifair.cli.options import READING_OPTIONS, STANDARD_OUTPUT, check_paths, command_options
from metrifair.figures.intervals import FEW

if TYPE_CHECKING:
    import polars as pl

    from metrifair.auditing.sources.file_formats import ReadOptions

_SHOWN_ROWS = 8
_SHOWN_VALUES = 20
_LONGEST = 120  # characters of a value
# Words in names of columns. The first role that fits both the name and the values is suggested.
_NAMES = {
    "weight": {"weight", "weights", "wt"},
    "group": {
        "sex",
        "gender",
        "race",
        "ethnicity",
        "age",
        "religion",
        "disability",
        "nationality",
        "marital",
        "group",
    },
    "score": {
        "score",
        "scores",
        "probability",
        "prob",
        "proba",
        "p",
        "risk",
        "pd",
        "prediction",
        "pred",
        "yhat",
    },
    "decision": {"decision", "decisions", "prediction", "predicted", "selected", "advanced"},
    "label": {
        "label",
        "outcome",
        "target",
        "y",
        "repaid",
        "paid",
        "default",
        "defaulted",
        "actual",
        "truth",
    },
}
# Words for groups. Together with a word for a score, they name the probability of a group
# (--group-probabilities).
_GROUPS = {
    "white",
    "black",
    "hispanic",
    "latino",
    "asian",
    "api",
    "pacific",
    "native",
    "aian",
    "multiracial",
    "other",
}
_GROUPS |= {"whi", "bla", "his", "asi", "oth"}  # as the R package wru writes them
_GROUPS |= {"female", "male", "woman", "women", "man", "men", "nonbinary"}


@dataclass(frozen=True)
class ColumnFacts:
    """Facts about one column; ``role`` is a suggestion, and ``word`` the part of the name that
    led to it.
    """

    name: str
    kind: str  # number, boolean, date, text or list
    missing: int
    distinct: int
    values: list[tuple[str, int]]  # the most frequent ones, with their numbers of rows
    low: float | None
    high: float | None
    role: str | None
    word: str | None
    # what a model would predict if this column were the label: classes or number
    target: str | None
    positive: str | None  # the positive one of two labels, as far as the values show it

    @property
    def reason(self) -> str:
        """Why the role is suggested."""
        if self.role == "id":
            return "every value is different"
        return f"the name contains “{self.word}”" if self.role else ""


@dataclass(frozen=True)
class Spelling:
    """Values that may mark a missing value, or be one value in several spellings; and the
    reading option for it.
    """

    text: str
    offer: str
    option: str
    values: list[str]

    @property
    def note(self) -> str:
        """The text with the option."""
        return f"{self.text} If so, use {' '.join(f'--{self.option} {quote(value)}' for value in self.values)}."


@click.command(short_help="List the columns of a file and suggest roles for them.")
@click.argument("file")
@command_options("columns")
@READING_OPTIONS
def columns_command(*, file: str, json_to: Path | None, reading: ReadOptions) -> None:
    """List the columns of FILE with their types, missing values and number of distinct values, and
    suggest roles.

    FILE is csv, tsv, parquet, arrow, ndjson or Excel. The suggestions use only names and values,
    and can be wrong. No other command uses them: name the columns with --score, --label, --group,
    --id and --weight.

    \b
    Example:
      metrifair columns loans.csv
    """
    check_paths([file], [json_to])
    from metrifair.cli.console import console, say, show_table, write_json
    from metrifair.cli.tables import read
    from metrifair.wording.numbers import count_text

    table, _ = read(file, reading, texts=(), roles={}, allow_commas=True)
    with ThreadPoolExecutor() as pool:
        facts = list(pool.map(_facts, table))
    notes = list(_notes(table, facts))
    spellings = list(_spellings(facts))
    if json_to is not None:
        head = table.head(_SHOWN_ROWS).rows()
        content = {
            "rows": len(table),
            "columns": [asdict(fact) | {"reason": fact.reason} for fact in facts],
            "head": [[None if value is None else _text(value) for value in row] for row in head],
            "notes": notes,
            "spellings": [asdict(spelling) for spelling in spellings],
        }
        write_json(content, json_to)
    out = console(stderr=json_to == STANDARD_OUTPUT)
    say(out, f"{count_text(len(table), 'row')}, {count_text(len(facts), 'column')}.")
    headings = ["column", "type", "missing", "distinct", "suggested role", "because"]
    rows = [
        [it.name, it.kind, f"{it.missing:,}", f"{it.distinct:,}", it.role or "", it.reason]
        for it in facts
    ]
    show_table(out, headings, rows, left=2)
    say(out, *(f"Note: {note}" for note in (*(spelling.note for spelling in spellings), *notes)))


def _facts(column: pl.Series) -> ColumnFacts:
    """Facts about a column, and a suggested role."""
    present = column.drop_nulls()
    kind = _kind(column.dtype)
    if kind == "list":
        return ColumnFacts(column.name, kind, column.null_count(), 0, [], *[None] * 6)
    # faster than value_counts where most values differ
    counts = present.sort().rle().struct.unnest()
    frequent = counts.top_k(_SHOWN_VALUES, by=["len", "value"], reverse=[False, True])
    ordered = frequent.sort("len", "value", descending=[True, False]).rows()
    values = [(_text(value), int(count)) for count, value in ordered]
    is_number = kind == "number" and len(present) > 0
    low, high = (_finite(present.min()), _finite(present.max())) if is_number else (None, None)
    role, word = _role(column, kind, len(counts))
    target = "number" if kind == "number" and not _is_classes(present, len(counts)) else "classes"
    facts = column.name, kind, column.null_count(), len(counts), values, low, high, role, word
    return ColumnFacts(
        *facts, None if kind == "date" else target, _positive(counts.get_column("value"))
    )


def _positive(values: pl.Series) -> str | None:
    """The positive one of two labels, as far as they show it, such as 1 of 0 and 1."""
    from metrifair.problem.problem import positive_by_name

    place = positive_by_name(values.to_list()) if len(values) == 2 else None
    return None if place is None else _text(values[place])


def _is_classes(numbers: pl.Series, distinct: int) -> bool:
    """Whether numbers are labels of classes, as ``frontier`` and ``train`` decide."""
    from metrifair.problem.tables import MOST_CLASSES

    return distinct <= MOST_CLASSES and bool((numbers == numbers.round()).all())


def _kind(dtype: pl.DataType) -> str:
    if dtype.is_nested():
        return "list"
    if dtype.is_numeric():
        return "number"
    if dtype.is_temporal():
        return "date"
    return "boolean" if str(dtype) == "Boolean" else "text"


def _finite(value: Any) -> float | None:
    number = float(value)
    return number if abs(number) < float("inf") else None


def _text(value: object) -> str:
    """A value as text; whole numbers without a point."""
    from metrifair.cli.console import printable, shorten

    is_whole = isinstance(value, float) and value.is_integer()
    return shorten(printable(f"{value:.0f}" if is_whole else value), _LONGEST)


def _role(column: pl.Series, kind: str, distinct: int) -> tuple[str | None, str | None]:
    """The role that the name and the values suggest, and the word of the name."""
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column.name).lower())
    few = 2 <= distinct <= _SHOWN_VALUES
    fits = {
        "weight": kind == "number",
        "group": few or (kind == "number" and distinct > 1),
        "score": kind == "number" and distinct > 1 and _GROUPS.isdisjoint(words),
        "decision": few,
        "label": distinct > 1,
    }
    for role, names in _NAMES.items():
        word = next((word for word in words if word in names), None)
        if word is not None and fits[role]:
            return role, word
    is_whole = kind == "text" or (kind == "number" and bool((column == column.round()).all()))
    return ("id", None) if is_whole and distinct == len(column) > 1 else (None, None)


def prediction_columns(table: pl.DataFrame) -> list[str]:
    """Columns that look like the scores or decisions of a model, by their names and values."""
    names = []
    for column in table:
        kind = _kind(column.dtype)
        if kind == "list":
            continue
        role, _ = _role(column, kind, column.drop_nulls().n_unique())
        if role in ("score", "decision"):
            names.append(column.name)
    return names


def _text_notes(table: pl.DataFrame) -> Iterator[str]:
    """Columns of numbers that are read as text, because of decimal commas or a few other cells."""
    import polars as pl

    from metrifair.auditing.sources.typed_tables import comma_number
    from metrifair.cli.tables import with_plain_words
    from metrifair.encoding.coders import FEW_STRAYS
    from metrifair.problem.spelling import CODE

    for name in table.select(pl.selectors.string()).columns:
        words = with_plain_words(table, name)[name].drop_nulls()
        if (number := comma_number(words)) is not None:
            yield (
                f"Column {name!r} contains numbers with a decimal comma, such as {number!r}, and "
                "is read as text. Use "
                "--decimal , to read numbers."
            )
            continue
        strays = words.filter(words.cast(pl.Float64, strict=False).is_null())
        if 0 < len(strays) <= FEW_STRAYS * len(words) and not words.str.contains(CODE).any():
            yield (
                f"Column {name!r} is read as text because of {len(strays):,} of its {len(words):,} "
                "values, such as "
                f"{_text(strays[0])!r}. Correct them, or use --missing if they mark missing values."
            )


def _notes(table: pl.DataFrame, facts: Sequence[ColumnFacts]) -> Iterator[str]:
    """Caveats about duplicate rows, small groups, numbers read as text, and columns that encode
    the suggested label.
    """
    flat = table.select(fact.name for fact in facts if fact.kind != "list")
    distinct = any(fact.distinct == len(table) for fact in facts)  # and so are all rows
    duplicates = len(flat) - flat.n_unique() if flat.columns and not distinct else 0
    if duplicates:
        repeat = "repeats" if duplicates == 1 else "repeat"
        yield f"{duplicates:,} of {len(table):,} rows {repeat} an earlier row in every column."
    for fact in facts:
        if fact.role == "group" and fact.distinct <= _SHOWN_VALUES:
            small = [f"{value} ({count:,})" for value, count in fact.values if count < FEW]
            if small:
                yield f"Column {fact.name!r} has groups with fewer than {FEW} rows: {', '.join(small)}."
    yield from _text_notes(flat)
    label = next(
        (fact for fact in facts if fact.role == "label" and fact.distinct <= _SHOWN_VALUES), None
    )
    if label is not None:
        yield from _leakage_notes(flat, label.name)


def _spellings(facts: Sequence[ColumnFacts]) -> Iterator[Spelling]:
    """Names of missing values, and values that differ only in spelling, in columns with few
    values.
    """
    from metrifair.auditing.notes import naming_notes
    from metrifair.problem.unknown_names import are_unknown
    from metrifair.wording.numbers import quoted

    for fact in facts:
        if fact.kind != "text" or fact.distinct > _SHOWN_VALUES:
            continue
        # which joins the two values of an option
        names = [value for value, _ in fact.values if "=" not in value]
        for name, is_unknown in zip(names, are_unknown(names).tolist(), strict=True):
            if is_unknown:
                text = f"Column {fact.name!r}: {quoted(name)} may mark missing values."
                yield Spelling(text, f"Read {quoted(name)} as missing", "missing", [name])
        for note in naming_notes(fact.name, names):
            name, *others = note.facts["groups"]  # the most frequent is the first
            values = [f"{other}={name}" for other in others]
            quotes = " and ".join(map(quoted, others))
            text = f"Column {fact.name!r}: {quotes} may mean the same as {quoted(name)}."
            yield Spelling(text, f"Read {quotes} as {quoted(name)}", "replace", values)


def _leakage_notes(table: pl.DataFrame, label: str) -> Iterator[str]:
    from metrifair.cli.tables import check_leakage
    from metrifair.errors import DataError
    from metrifair.wording.frontier import note_text

    labeled = table.drop_nulls(label)
    try:
        notes = check_leakage(labeled.drop(label), labeled.get_column(label), number=False)
        yield from map(note_text, notes)
    except DataError as error:
        text = str(error)
        yield f"{text[0].upper()}{text[1:]}."
