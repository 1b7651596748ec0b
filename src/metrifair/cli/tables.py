"""Tables in files: columns read by commands; columns that copy the label (the same column, a
renaming, the same number in another unit); results, and predictions beside columns, written by the
ending of their name.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import lgamma, log
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np
import polars as pl

from metrifair.auditing.sources.file_formats import AS_USUAL, ReadOptions
from metrifair.auditing.sources.typed_tables import comma_number, typed_table
from metrifair.cli.options import STANDARD_OUTPUT
from metrifair.errors import DataError, Remedy
from metrifair.problem.spelling import MISSING_WORDS
from metrifair.support.files import FORMULA, write_file
from metrifair.support.provenance import SourceFile, write_score_origin
from metrifair.tradeoff.points import FrontierNote

if TYPE_CHECKING:
    from metrifair.figures.utility import Predictions
    from metrifair.saving.scoring import TableScorer


def read(
    path: str,
    options: ReadOptions = AS_USUAL,
    *,
    texts: Collection[str],
    roles: Mapping[str, Sequence[str]],
    allow_commas: bool = False,
) -> tuple[pl.DataFrame, list[SourceFile]]:
    """The whole table, and its files; with the columns of ``roles``; ``texts`` are text, whatever
    they look like.

    Numbers with a decimal comma raise a DataError unless ``allow_commas``, because they would be
    taken for names.
    """
    progress: AbstractContextManager[None] = nullcontext()
    # only then are there notes; a wrong column name is refused before rich is imported
    if options.replace:
        from metrifair.cli.console import console, working_with_notes

        progress = working_with_notes(console(stderr=True), f"Reading {path}")
    with progress:
        table, files = typed_table(path, options, texts=texts, roles=roles)
    if allow_commas:
        return table, files
    for column in table.drop(texts, roles.get("ignore", ()), strict=False):
        if (number := comma_number(column)) is not None:
            raise DataError(
                f"the column {column.name!r} of {path} holds numbers with a comma, such as "
                f"{number!r}",
                remedy=[Remedy("decimal", ","), "leave the column out"],
            )
    return table, files


def with_plain_words(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """The table with nulls for words such as "NA" in a column of text, and without spaces around
    the other words.

    >>> with_plain_words(pl.DataFrame({"y": ["yes ", "NA", None]}), "y")["y"].to_list()
    ['yes', None, None]
    """
    if frame.schema[name] != pl.String:
        return frame
    words = pl.col(name).str.strip_chars()
    return frame.with_columns(pl.when(~words.str.to_lowercase().is_in(MISSING_WORDS)).then(words))


def strip_texts(frame: pl.DataFrame, groups: Collection[str]) -> pl.DataFrame:
    """The table without spaces around text, which would make other levels of a feature; groups stay
    as in audits.

    >>> strip_texts(pl.DataFrame({"job": [" a", "a"], "sex": ["m ", "m"]}), ["sex"]).rows()
    [('a', 'm '), ('a', 'm')]
    """
    kept = pl.selectors.by_name(*groups, require_all=False)
    return frame.with_columns((pl.selectors.string() - kept).str.strip_chars())


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write the table in one step; to standard output as csv."""
    content = io.BytesIO()
    ending = path.suffix.lower()
    if path == STANDARD_OUTPUT or ending in (".csv", ".tsv"):
        without_formulas(frame).write_csv(content, separator="\t" if ending == ".tsv" else ",")
    else:
        getattr(
            frame,
            {".parquet": "write_parquet", ".arrow": "write_ipc", ".ndjson": "write_ndjson"}[ending],
        )(content)
    if path == STANDARD_OUTPUT:
        click.echo(content.getvalue(), nl=False)
    else:
        write_file(path, content.getvalue())


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with an apostrophe before every text that a spreadsheet would run as a formula; a
    note counts them.

    Numbers stay as they are. Column names are text too.
    """
    texts = frame.select(pl.selectors.string()).columns
    risky = [pl.col(name).str.contains(FORMULA) for name in texts]
    count = sum(frame.select(column.sum()).item() or 0 for column in risky) if risky else 0
    names = _harmless(frame.columns)
    if total := count + len(names):
        what, it = (f"{total:,} texts begin", "them") if total > 1 else ("1 text begins", "it")
        sys.stderr.write(
            f"Note: {what} like a formula and got an apostrophe in front, so that no spreadsheet "
            f"runs {it}; "
            ".parquet and .ndjson keep every text.\n"
        )
    quoted = [
        pl.when(column).then(pl.lit("'") + pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name, column in zip(texts, risky, strict=True)
    ]
    return frame.with_columns(quoted).rename(names)


def _harmless(names: Sequence[str]) -> dict[str, str]:
    """New names for columns whose name begins like a formula, unlike all others."""
    taken = set(names)
    renamed = {}
    for name in names:
        if re.match(FORMULA, name):
            new = f"'{name}"
            while new in taken:
                new = f"'{new}"
            taken.add(new)
            renamed[name] = new
    return renamed


class PredictionTable(NamedTuple):
    """A table with predictions, and the names of the columns that contain them."""

    table: pl.DataFrame
    columns: tuple[str, ...]

    def write(self, path: Path, **origin: Any) -> None:
        """Write the table and, next to a file, its model; ``origin`` has further fields of
        ``ScoreOrigin``.
        """
        write_table(self.table, path)
        if path != STANDARD_OUTPUT:
            write_score_origin(path, columns=self.columns, **origin)


def with_predictions(
    shown: pl.DataFrame,
    model: TableScorer,
    frame: pl.DataFrame,
    predictions: Predictions | None = None,
) -> PredictionTable:
    """These columns with the predictions for the rows of ``frame`` and, of classes, probabilities.

    Of two classes the probability is that of the positive one. A name that is taken gets a prime.
    ``predictions`` replace the model's.
    """
    first = shown.width
    if predictions is None:
        columns: dict[str, Any] = {"prediction": model.predict(frame)}
    else:
        decision = predictions.decision
        if model.classes is not None:
            decision = model.classes[decision]
        columns = {"prediction": decision}
    if model.classes is not None and model.has_probabilities:
        probability = model.predict_proba(frame) if predictions is None else predictions.score
        if len(model.classes) == 2:
            columns["probability"] = (
                probability[:, model.positive] if probability.ndim == 2 else probability
            )
        else:
            columns |= {
                f"probability of {label}": probability[:, at]
                for at, label in enumerate(model.classes)
            }
    for name, values in columns.items():
        shown = shown.with_columns(pl.Series(free_name(name, shown.columns), values))
    return PredictionTable(shown, tuple(shown.columns[first:]))


def free_name(name: str, taken: list[str]) -> str:
    """The name, with as many primes as make it different from those that are taken.

    >>> free_name("row", ["row", "x"])
    "row'"
    """
    while name in taken:
        name += "'"
    return name


_FIRST_ROWS = 1_000
_CHANCE = 1e-4  # largest probability of such a column by chance that counts as leakage


def check_leakage(
    features: pl.DataFrame, label: pl.Series, *, keep: Collection[str] = (), number: bool
) -> list[FrontierNote]:
    """Raise a DataError where a column copies the label; notes on columns that determine
    it in every row.

    A column is a renaming of the label where either determines the other; of numbers, where one is
    a strictly monotone function of the other. In a file of few rows that may be chance: it counts
    only where the label's values, shuffled over the rows, would do so with a probability below 1 in
    10,000, all columns considered. ``keep`` are columns that the user wants all the same.

    >>> file = pl.DataFrame({"approved": ["y", "n"] * 20, "age": range(40)})
    >>> check_leakage(file, pl.Series("label", [1, 0] * 20), number=False)
    Traceback (most recent call last):
    metrifair.errors.DataError: column 'approved' copies the label 'label' (one-to-one in all 40 rows): \
exclude it with --ignore approved, or keep it with --keep approved
    >>> check_leakage(file[:6], pl.Series("label", [1, 0] * 3), number=False)
    []
    """
    notes: list[FrontierNote] = []
    limit = log(_CHANCE / max(1, len(features.columns)))
    ways = _log_arrangements(label)
    values = label.n_unique()
    for name in features.columns:
        column = features.get_column(name)
        if name in keep or column.dtype.is_nested():  # the encoder has its own words for lists
            continue
        levels = column.n_unique()
        if levels == values and lgamma(values + 1) - ways < limit and _determines(column, label):
            raise _leakage(name, label, "one-to-one")
        if number and log(2) - ways < limit and _is_monotone(column, label):
            raise _leakage(name, label, "the same order")
        if not number and levels * log(values) - ways < limit and _determines(column, label):
            facts = {"column": name, "label": label.name, "rows": len(label)}
            notes.append(FrontierNote("determined_label", facts))
    return notes


def _determines(column: pl.Series, label: pl.Series) -> bool:
    """Whether rows with one value of the column have one label; most often, the first rows show
    that they have not.
    """
    rows = pl.DataFrame([column.alias("column"), label.alias("label")])
    return all(
        part.n_unique() == part.get_column("column").n_unique()
        for part in (rows.head(_FIRST_ROWS), rows)
    )


def _leakage(name: str, label: pl.Series, how: str) -> DataError:
    return DataError(
        f"column {name!r} copies the label {label.name!r} ({how} in all {len(label):,} rows): "
        f"exclude it with --ignore {quote(name)}, or keep it with --keep "
        f"{quote(name)}"
    )


def _log_arrangements(label: pl.Series) -> float:
    """Logarithm of the number of different ways to shuffle these values over the rows."""
    counts = label.alias("label").value_counts(name="rows")["rows"].to_list()
    return lgamma(len(label) + 1) - sum(lgamma(count + 1) for count in counts)


def _is_monotone(column: pl.Series, label: pl.Series) -> bool:
    """Whether two columns of numbers rise together, or one falls where the other rises, ties
    with ties.
    """
    if not column.dtype.is_numeric() or column.null_count() or not label.dtype.is_numeric():
        return False
    first, second = (values.rank("dense").to_numpy().astype(np.int64) for values in (column, label))
    return bool((first == second).all() or (first == second.max() + 1 - second).all())
