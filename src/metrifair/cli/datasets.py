"""`metrifair datasets`: what the data sets are, and their tables as files."""

from __future__ import annotations

from pathlib import Path

import click

from metrifair.cli.parameters import TABLES, Output

# Rows by name; `metrifair datasets` lists them without reading, or downloading, any data.
ROWS = {
    "adult": 48_842,
    "communities": 1_994,
    "compas": 5_278,
    "drug": 1_885,
    "mortgage": 1_989,
    "student-math": 395,
    "student-portuguese": 649,
}


@click.command(short_help="List the data sets, or write one to a file.")
@click.argument("name", required=False)
@click.option(
    "--output",
    type=Output(*TABLES),
    help="File for the table (csv, tsv, parquet, arrow or ndjson).",
)
def command(name: str | None, output: Path | None) -> None:
    """List the data sets; with NAME, tell about one; with --output, write its table to a file.

    The file has the features as numbers, the column target, and the groups by name.

    \b
    Example:
      metrifair datasets mortgage --output mortgage.csv
    """
    from metrifair.cli.exports import describe, export, overview
    from metrifair.cli.terminal import console

    if output is not None and name is None:
        raise click.UsageError("--output needs the NAME of a data set")
    out = console()
    if name is None:
        overview(out, ROWS)
    elif output is None:
        describe(out, name)
    else:
        export(out, name, output)
