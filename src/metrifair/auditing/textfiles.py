"""What may be wrong with a file before and while it is read, said in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from metrifair.checks import require
from metrifair.errors import DataError

_UTF16 = (b"\xff\xfe", b"\xfe\xff")  # how such files begin


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Say in one sentence what polars found wrong with a file."""
    errors = polars().exceptions
    try:
        yield
    except (errors.PolarsError, OSError, UnicodeDecodeError) as error:
        said = str(error)
        if "utf-8" in said.lower():
            raise DataError(f"{name} is not UTF-8 text; save it as UTF-8, or as parquet") from None
        if "empty CSV" in said:
            raise DataError(f"{name} is empty") from None
        if "more fields than" in said:
            raise DataError(f"{name} has a row with more fields than its header; check quotes and separator") from None
        first = said.strip().split("\n")[0][:200]
        raise DataError(f"{name} cannot be read: {first or type(error).__name__}") from None


def polars() -> Any:
    """The library that reads files."""
    return require("polars", extra="cli", purpose="auditing files")


def separator_of(kind: str, given: str | None) -> str:
    """What stands between columns; a tab may be written as a shell writes it."""
    separator = {None: "\t" if kind == "tsv" else ",", "\\t": "\t"}.get(given, given)
    if separator is None or len(separator.encode()) != 1 or separator in '"\r\n':
        raise DataError(f"separator must be one sign, such as ';' or '|', got {given!r}")
    return separator


def named_twice(file: str, kind: str, separator: str | None) -> list[str]:
    """Names that several columns of a csv or tsv file have; polars would rename all but the first."""
    if kind not in ("csv", "tsv"):
        return []
    with reading(file):
        first = polars().read_csv(
            file, has_header=False, n_rows=1, infer_schema=False, separator=separator_of(kind, separator), glob=False
        )
    return [name for name, count in Counter(first.row(0) if len(first) else ()).items() if count > 1 and name]


def check_readable(file: str, name: str, *, is_text: bool) -> None:
    """Raise a DataError unless the file can be opened and is not empty, and text where that is asked for."""
    try:
        with Path(file).open("rb") as stream:
            start = stream.read(4096)
    except PermissionError:
        raise DataError(f"{name} cannot be read: no permission") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error.strerror}") from None
    if not start:
        raise DataError(f"{name} is empty")
    if start.startswith(_UTF16) and is_text:
        raise DataError(f"{name} is UTF-16 text; save it as UTF-8")
    compressed = file.endswith((".gz", ".zst"))
    if is_text and not compressed and b"\0" in start:
        raise DataError(f"{name} is no text; if it is a table of another kind, pass format")
