"""`metrifair train`: a fair model from a file of raw columns."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from metrifair.cli.options import STANDARD_OUTPUT, TABLES, Number, Output, check_paths
from metrifair.cli.training_options import Costs, TrainingOptions, training_options


@click.command(short_help="Train a fair model on a file.")
@training_options
@click.option("--strength", type=Number(0), default=1.0, show_default=True, help="Weight of the unfairness.")
@click.option(
    "--test",
    type=Number(0, 1, below=True),
    default=0.25,
    show_default=True,
    help="Share of the rows that is kept apart, to measure what the model reaches; 0: none, and no figures.",
)
@click.option(
    "--held-out",
    type=Output(*TABLES),
    help="File for what the model says of the rows kept apart (csv, tsv, parquet, arrow or ndjson), to be audited.",
)
@click.option("--refit", is_flag=True, help="Train the model that is kept again, on all rows.")
@click.option("--threshold", type=Number(0, 1), help="Decide for --positive from this probability on.  [default: 0.5]")
@click.option(
    "--choose-threshold",
    type=click.Choice(["accuracy", "cost", "parity"]),
    help="Choose it: most right decisions, least cost, or the least gap between groups at no less balanced accuracy.",
)
@click.option(
    "--cost",
    type=Costs(),
    help="For --choose-threshold cost: what each decision costs at each label, '0,1;5,0' where a missed yes costs 5.",
)
@click.option(
    "--validation",
    type=Number(0, 1, between=True),
    default=0.25,
    show_default=True,
    help="Share of the rows on which --choose-threshold chooses; they are kept apart from the others.",
)
@click.option("--output", type=Output(), help="File for the model, such as model.metrifair.")
@click.option("--json", "json_to", type=Output(stdout=True), help="File for the figures; - is standard output.")
@click.pass_context
def train_command(
    ctx: click.Context,
    /,
    *,
    strength: float,
    test: float,
    held_out: Path | None,
    refit: bool,
    threshold: float | None,
    choose_threshold: Any,
    cost: Any,
    validation: float,
    output: Path | None,
    json_to: Path | None,
    **given: Any,
) -> None:
    """Train a fair model on FILE (csv, tsv, parquet, arrow or ndjson), and measure it on rows kept apart.

    Text, dates and missing values are taken as they are. The columns with the groups are used to train, not to predict.
    Rows are kept apart with the same mix of groups and labels.

    \b
    Example: train, and audit rows that the model never saw
      metrifair train people.csv --label income --group sex --output model.metrifair --held-out held-out.csv
      metrifair audit held-out.csv --score probability --group sex --label income --html report.html
    """
    if held_out is not None and not test:
        raise click.UsageError("--held-out needs rows kept apart; leave --test 0 out")
    if refit and output is None:
        raise click.UsageError("--refit trains the model that is kept: name a file with --output")
    if threshold is not None and choose_threshold is not None:
        raise click.UsageError("--threshold and --choose-threshold exclude each other; leave one of them out")
    if (cost is None) == (choose_threshold == "cost"):
        raise click.UsageError("--cost and --choose-threshold cost belong together; give both or neither")
    options = TrainingOptions(**given)
    check_paths([options.file], [held_out, output, json_to])
    table, files = options.table()
    from metrifair.cli.console import command_text, console, printable
    from metrifair.cli.tables import write_json, write_table
    from metrifair.cli.training import Training, figures, provenance_of, show_trained, trained
    from metrifair.cli.training_file import training_file

    out = console(stderr=json_to == STANDARD_OUTPUT)
    source = training_file(options, table, strength=strength)
    found = trained(source, Training(test, validation, threshold, choose_threshold, cost, refit))
    if output is not None:
        found.model.save(output)
    if held_out is not None:
        write_table(source.predictions(found.measured, found.parts.test), held_out)
    show_trained(out, source, found, held_out)
    out.print("The model is not kept: name a file with --output." if output is None else f"Model: {printable(output)}")
    if json_to is not None:
        told = figures(source, found) | {"provenance": asdict(provenance_of(source, files, command_text(ctx)))}
        write_json(told, json_to)
