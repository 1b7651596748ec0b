"""Tables of results as files: csv, tsv, parquet, arrow or ndjson, by the ending of their name."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import polars as pl

from metrifair.cli.parameters import STANDARD_OUTPUT
from metrifair.files import write_file

_FORMULA = r"^[=+\-@\t\r]"  # how a cell begins that a spreadsheet would run


def _separated(separator: str) -> Callable[[pl.DataFrame], bytes]:
    def made(frame: pl.DataFrame) -> bytes:
        return without_formulas(frame).write_csv(separator=separator).encode()

    return made


def _binary(method: str) -> Callable[[pl.DataFrame], bytes]:
    def made(frame: pl.DataFrame) -> bytes:
        target = io.BytesIO()
        getattr(frame, method)(target)
        return target.getvalue()

    return made


WRITERS: dict[str, Callable[[pl.DataFrame], bytes]] = {
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
    ".parquet": _binary("write_parquet"),
    ".arrow": _binary("write_ipc"),
    ".ndjson": _binary("write_ndjson"),
}


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write the table in one step; to standard output as csv."""
    if path == STANDARD_OUTPUT:
        click.echo(WRITERS[".csv"](frame), nl=False)
        return
    write_file(path, WRITERS[path.suffix.lower()](frame))


def write_json(content: Any, path: Path) -> None:
    """Write JSON that every reader takes; to standard output where the path says so."""
    write_text(json.dumps(content, indent=2, allow_nan=False), path)


def write_text(text: str, path: Path) -> None:
    """Write the text in one step, or to standard output where the path says so."""
    if path == STANDARD_OUTPUT:
        click.echo(text)
        return
    write_file(path, f"{text}\n".encode())


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """The table with an apostrophe before every text that a spreadsheet would run as a formula; says how many.

    Numbers stay as they are. Column names are text too.
    """
    texts = frame.select(pl.selectors.string()).columns
    risky = [pl.col(name).str.contains(_FORMULA) for name in texts]
    count = sum(frame.select(column.sum()).item() or 0 for column in risky) if risky else 0
    names = _harmless(frame.columns)
    if count or names:
        sys.stderr.write(_note(count + len(names)))
    quoted = [
        pl.when(column).then(pl.lit("'") + pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name, column in zip(texts, risky, strict=True)
    ]
    return frame.with_columns(quoted).rename(names)


def _harmless(names: Sequence[str]) -> dict[str, str]:
    """New names for columns whose name begins like a formula, unlike all others."""
    taken, found = set(names), {}
    for name in names:
        if re.match(_FORMULA, name):
            new = f"'{name}"
            while new in taken:
                new = f"'{new}"
            taken.add(new)
            found[name] = new
    return found


def _note(count: int) -> str:
    what = "1 text begins like a formula" if count == 1 else f"{count:,} texts begin like a formula"
    kept = "no spreadsheet runs it" if count == 1 else "no spreadsheet runs them"
    return f"Note: {what} and got an apostrophe in front, so that {kept}; .parquet and .ndjson keep every text.\n"
