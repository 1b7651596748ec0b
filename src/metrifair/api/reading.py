"""`read_file`: the columns of a file with their types, as the commands read them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from metrifair.auditing.sources.file_formats import ReadOptions
from metrifair.auditing.sources.typed_tables import typed_table
from metrifair.problem.tables import EXACT

if TYPE_CHECKING:
    import polars as pl


def read_file(
    path: str | os.PathLike[str], *, text: Sequence[str] = (), reading: ReadOptions | None = None
) -> pl.DataFrame:
    """Read a file as ``metrifair train`` and ``metrifair frontier`` read it.

    Files of text have no types. A column in which every value is a number becomes numbers, a column
    of true and false booleans, and a column of ISO dates (2026-01-31) dates. Any other column is
    text, as it is written. Numbers with a leading zero, such as 02139, are codes and stay text.
    Numbers without a fraction are integers. Words such as "NA" are missing values in columns of
    numbers and dates. In text they stay. In labels, the commands omit rows with such a word, and
    ignore spaces around the other words.

    Parameters
    ----------
    path : str or path-like
        The file: csv, tsv, Parquet, Arrow, ndjson or Excel; or a pattern such as ``loans-*.csv``.
    text : sequence of str, default=()
        Columns to read as text, such as identifiers and groups whose names are numbers.
    reading : ReadOptions, default=None
        How the file is read. None uses the defaults.

    Returns
    -------
    polars.DataFrame
        All rows and columns.

    Raises
    ------
    DataError
        If the file cannot be read, or has no rows or no such column.

    See Also
    --------
    audit_file : Audits a file without reading it as a whole.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from metrifair import ReadOptions, read_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "loans.csv")
    ...     _ = path.write_text("income;sex\\n31,5;1\\n40;2\\n")
    ...     table = read_file(path, text=["sex"], reading=ReadOptions(decimal=","))
    >>> table.rows()
    [(31.5, '1'), (40.0, '2')]
    """
    table, _ = typed_table(path, reading or ReadOptions(), texts=text, roles={"text": text})
    return table.cast(
        {column.name: int for column in table if column.dtype.is_float() and _is_whole(column)}
    )


def _is_whole(numbers: pl.Series) -> bool:
    """Whether all numbers are integers, which a float stores exactly."""
    return bool(((numbers == numbers.round()) & (numbers.abs() <= EXACT)).all())
