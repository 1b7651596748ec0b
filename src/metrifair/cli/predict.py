"""`metrifair predict`: what a saved model says about the rows of a file."""

from __future__ import annotations

from pathlib import Path

import click

from metrifair.cli.learning import file_options
from metrifair.cli.parameters import STANDARD_OUTPUT, TABLES, Output, refuse_clashes


@click.command(short_help="Apply a model to a file.")
@click.argument("model", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("file")
@click.option(
    "--output",
    required=True,
    type=Output(*TABLES, stdout=True),
    help="File for the predictions (csv, tsv, parquet, arrow or ndjson); - is standard output, as csv.",
)
@click.option(
    "--id",
    "ids",
    multiple=True,
    metavar="COLUMN",
    help="Column of FILE to copy next to the predictions. Repeatable.  [default: those of train, or row numbers]",
)
@file_options
def command(*, model: Path, file: str, output: Path, ids: tuple[str, ...], **reading: str | None) -> None:
    """Write what MODEL, made by train or frontier, predicts for the rows of FILE.

    FILE must have the columns that the model was trained on, with values of the same kind, in any order. The output
    has one row for each row of FILE: its ids, the prediction and, for classes, the probability.

    \b
    Example:
      metrifair predict model.metrifair people.csv --id number --output predictions.csv
    """
    from metrifair.cli.forecasts import forecast, table_model
    from metrifair.cli.tables import write_table
    from metrifair.cli.terminal import console, printable

    refuse_clashes([model, file], [output])
    known = table_model(model)
    found = forecast(known, file, ids, **reading)
    write_table(found, output)
    out = console(stderr=True)
    said = "" if known.classes is None or len(known.classes) > 2 else f", with the probability of {known.classes[1]}"
    where = "standard output" if output == STANDARD_OUTPUT else output
    out.print(f"{len(found):,} predictions of {printable(repr(known.target))}{printable(said)}: {printable(where)}")
