"""Files of raw columns -> tables in memory, with types where the file has none."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence

import polars as pl

from metrifair.auditing.reading import MISSING, opened
from metrifair.auditing.textfiles import reading
from metrifair.errors import DataError

_CODE = r"^[+-]?0\d"  # such as 01234: a code, whose first zero matters
_DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?)?$"


def read(
    path: str,
    *,
    texts: Collection[str],
    roles: Mapping[str, Sequence[str]],
    separator: str | None = None,
    format: str | None = None,  # noqa: A002
) -> pl.DataFrame:
    """The whole table; ``roles`` are columns that it must have, ``texts`` those that are text, whatever they look like.

    In csv, tsv and ndjson, a column of which every value is a number holds numbers, one of true and false truth values,
    one of ISO dates (2026-01-31, also with a time) dates, and any other one text.
    """
    with opened(path, separator=separator, format=format) as source:
        for role, names in roles.items():
            for name in names:
                source.check(**{role: name})
        if source.twice:
            raise source.ambiguous(min(source.twice))
        with reading(source.name):
            frame = pl.concat([part.collect() for part in source.frames], how="diagonal_relaxed")
    if not len(frame):
        raise DataError(f"{source.name} has no rows below its header")
    if not source.is_text:
        return frame
    return pl.DataFrame([_typed(column, as_text=column.name in texts) for column in frame])


def _typed(column: pl.Series, *, as_text: bool) -> pl.Series:
    """A column of text as what it means.

    >>> _typed(pl.Series(["1", " 2.5", "NA"]), as_text=False).to_list()
    [1.0, 2.5, None]
    >>> _typed(pl.Series(["01", "02"]), as_text=False).to_list()
    ['01', '02']
    >>> _typed(pl.Series(["2026-01-31", "NA"]), as_text=False).to_list()
    [datetime.date(2026, 1, 31), None]
    """
    text = column.cast(pl.String).str.strip_chars()
    text = text.set(text == "", None)
    if as_text:
        return text
    lowered = text.str.to_lowercase()
    if lowered.is_in(["true", "false"]).all() and lowered.null_count() < len(lowered):
        return (lowered == "true").alias(column.name)
    known = text.set(lowered.is_in(MISSING), None)
    numbers = known.cast(pl.Float64, strict=False)
    if numbers.null_count() > known.null_count() or known.str.contains(_CODE).any():
        return text if (dates := _dates(known)) is None else dates
    return numbers


def _dates(text: pl.Series) -> pl.Series | None:
    """ISO dates as dates, with the time in Greenwich where one is written; None where any value is something else."""
    if not text.str.contains(_DATE).all():
        return None
    try:
        found = [None if value is None else dt.datetime.fromisoformat(value) for value in text]
    except ValueError:  # such as 2026-02-30
        return None
    naive = [
        value if value is None or value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        for value in found
    ]
    moments = pl.Series(text.name, naive, dtype=pl.Datetime("us"))
    return moments.cast(pl.Date) if (text.drop_nulls().str.len_chars() == len("2026-01-31")).all() else moments


def without_missing_words(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """The table with nothing where a column of text says that a value is missing.

    >>> without_missing_words(pl.DataFrame({"y": ["yes", "NA", None]}), "y")["y"].to_list()
    ['yes', None, None]
    """
    if frame.schema[name] != pl.String:
        return frame
    is_missing = pl.col(name).str.strip_chars().str.to_lowercase().is_in(MISSING)
    return frame.with_columns(pl.when(~is_missing).then(pl.col(name)))
