"""`metrifair train`: a fair model from a file of raw columns."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from metrifair.cli.options import STANDARD_OUTPUT, Number, Output, TrainingOptions, check_paths, training_options


@click.command(short_help="Train a fair model on a file.")
@training_options
@click.option("--strength", type=Number(0), default=1.0, show_default=True, help="Weight of the unfairness.")
@click.option(
    "--test",
    type=Number(0, 1, between=True),
    default=0.25,
    show_default=True,
    help="Share of the rows that is kept apart, to measure what the model reaches.",
)
@click.option("--output", type=Output(), help="File for the model, such as model.metrifair.")
@click.option("--json", "json_to", type=Output(stdout=True), help="File for the figures; - is standard output.")
def command(strength: float, test: float, output: Path | None, json_to: Path | None, **given: Any) -> None:
    """Train a fair model on FILE (csv, tsv, parquet, arrow or ndjson), and measure it on rows kept apart.

    Text, dates and missing values are taken as they are. The columns with the groups are used to train, not to predict.

    \b
    Example:
      metrifair train people.csv --label income --group sex --output model.metrifair
    """
    options = TrainingOptions(**given)
    check_paths([options.file], [output, json_to])
    table = options.table()
    from metrifair.cli.console import console, printable, show_point
    from metrifair.cli.tables import write_json
    from metrifair.cli.training_file import training_file

    out = console(stderr=json_to == STANDARD_OUTPUT)
    source = training_file(options, table, strength=strength)
    trained = source.trained(test)
    if output is not None:
        trained.model.save(output)
    for line in source.description(trained.model.encoder):
        out.print(printable(line))
    for note in trained.notes:
        out.print(f"Note: {printable(note)}", soft_wrap=True)
    rows = trained.rows
    out.print(f"Trained on {rows['train']:,} rows with strength {strength:g}, measured on {rows['test']:,} others.")
    show_point(out, trained.point, source.accuracy_name)
    out.print("The model is not kept: name a file with --output." if output is None else f"Model: {printable(output)}")
    if json_to is not None:
        write_json(asdict(trained.point) | {"rows": rows, "notes": list(trained.notes)}, json_to)
