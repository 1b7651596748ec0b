"""`metrifair train`: a fair model from a file of raw columns."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from metrifair.cli.learning import Request, learning_options
from metrifair.cli.parameters import STANDARD_OUTPUT, Number, Output, refuse_clashes


@click.command(short_help="Train a fair model on a file.")
@learning_options
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
def command(strength: float, test: float, output: Path | None, json_to: Path | None, **options: Any) -> None:
    """Train a fair model on FILE (csv, tsv, parquet, arrow or ndjson), and measure it on rows kept apart.

    Text, dates and missing values are taken as they are. The sensitive columns are used to train, not to predict.

    \b
    Example:
      metrifair train people.csv --target income --sensitive sex --output model.metrifair
    """
    from metrifair.cli.figures import show_point
    from metrifair.cli.lessons import lesson_of
    from metrifair.cli.tables import write_json
    from metrifair.cli.terminal import console, printable
    from metrifair.tradeoff.chance import small_groups
    from metrifair.tradeoff.evaluation import point_of

    request = Request(**options)
    refuse_clashes([request.file], [output, json_to])
    out = console(stderr=json_to == STANDARD_OUTPUT)
    lesson = lesson_of(request, strength=strength)
    _, train, held_out = lesson.data.split(1 - test, test, request.seed, train=False)
    encoder = lesson.encoder(train)
    model = lesson.fitted(encoder, train)
    part = lesson.data.held_out(held_out)
    point = point_of(model, part, strength=strength, seed=request.seed)
    notes = [note for note in (*lesson.notes, small_groups(part, "the rows kept apart")) if note]
    if output is not None:
        model.save(output)
    lesson.introduce(out, encoder)
    for note in notes:
        out.print(f"Note: {printable(note)}", soft_wrap=True)
    out.print(f"Trained on {len(train):,} rows with strength {strength:g}, measured on {len(held_out):,} others.")
    show_point(out, point, lesson.accuracy_name)
    out.print("The model is not kept: name a file with --output." if output is None else f"Model: {printable(output)}")
    if json_to is not None:
        write_json(asdict(point) | {"rows": {"train": len(train), "test": len(held_out)}, "notes": notes}, json_to)
