"""Raw columns of files, with types where the file has none: numbers, booleans, dates and text."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from metrifair.auditing.sources.file_formats import (
    AS_USUAL,
    ReadOptions,
    as_numbers,
    polars,
    present_text,
)
from metrifair.auditing.sources.file_tables import open_files
from metrifair.errors import DataError
from metrifair.problem.values import decimal_comma_in
from metrifair.support.provenance import SourceFile, source_files

if TYPE_CHECKING:
    import polars as pl

_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?)?$"


def typed_table(
    path: str | os.PathLike[str],
    options: ReadOptions = AS_USUAL,
    *,
    texts: Collection[str],
    roles: Mapping[str, Sequence[str]],
) -> tuple[pl.DataFrame, list[SourceFile]]:
    """The table with the columns of ``roles``, and its files; the columns ``texts`` are always
    text.

    In csv, tsv, ndjson and Excel files, a column is numeric if every value is a number, boolean if
    every value is true or false, a date if every value is an ISO date (2026-01-31, also with a
    time), and otherwise text.
    """
    with open_files(path, options) as source:
        source.check(roles)
        if source.repeated:
            raise source.ambiguous(min(source.repeated))
        frame = source.table()
        files = source_files(source.paths, source.name if source.is_copy else None)
    if not len(frame):
        raise DataError(f"{source.name} has no rows below its header")
    if not source.is_text:
        return frame, files
    with ThreadPoolExecutor() as pool:  # polars computes without Python's lock
        columns = pool.map(
            lambda column: typed_text(column, as_text=column.name in texts),
            frame,
        )
        return polars().DataFrame(list(columns)), files


def comma_number(column: pl.Series) -> str | None:
    """The first number with a decimal comma in a column of such numbers, which is text; else
    None.
    """
    if column.dtype != polars().String or not column.str.contains(",", literal=True).any():
        return None
    return decimal_comma_in(column)


def typed_text(column: pl.Series, *, as_text: bool = False) -> pl.Series:
    """A text column with the type of its values, or ``as_text``; other columns do not change.

    >>> import polars as pl
    >>> typed_text(pl.Series(["1", " 2.5", "NA"])).to_list()
    [1.0, 2.5, None]
    >>> typed_text(pl.Series(["01", "02 ", " "])).to_list()
    ['01', '02 ', None]
    >>> typed_text(pl.Series(["2026-01-31", "NA"])).to_list()
    [datetime.date(2026, 1, 31), None]
    """
    pl = polars()
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return column
    text = column.cast(pl.String)
    if not as_text:
        numbers = as_numbers(text)
        if numbers is not None:
            return numbers
    stripped = text.str.strip_chars()
    stripped = stripped.set(stripped == "", None)
    original = text.set(stripped.is_null(), None)
    return original if as_text else _typed_words(stripped, original)


def _typed_words(text: pl.Series, original: pl.Series) -> pl.Series:
    """Text without spaces at its ends, or missing, as booleans or dates; else the ``original``."""
    values = text.unique()  # text has few different values, as a rule
    if values.str.to_lowercase().is_in(["true", "false"]).all():
        return (text.str.to_lowercase() == "true").alias(original.name)
    if not present_text(values).str.contains(_DATE).all():
        return original
    dates = _dates(present_text(text))
    return original if dates is None else dates


def _dates(text: pl.Series) -> pl.Series | None:
    """Text in the form of ISO dates as dates, with times in UTC; None if a value is not a date."""
    try:
        moments = [None if value is None else dt.datetime.fromisoformat(value) for value in text]
        naive = [
            value
            if value is None or value.tzinfo is None
            else value.astimezone(dt.UTC).replace(tzinfo=None)
            for value in moments
        ]
    except (
        ValueError,
        OverflowError,
    ):  # such as 2026-02-30, or a moment after the year 9999
        return None
    library = polars()
    column: pl.Series = library.Series(text.name, naive, dtype=library.Datetime("us"))
    is_day = (text.drop_nulls().str.len_chars() == len("2026-01-31")).all()
    if is_day:
        return column.cast(library.Date)
    return column
