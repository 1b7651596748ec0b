"""`metrifair predict`: what a saved model says about the rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from metrifair.cli.options import STANDARD_OUTPUT, TABLES, Output, check_paths, file_options
from metrifair.errors import DataError

if TYPE_CHECKING:
    import polars as pl

    from metrifair.auditing.out_of_core.formats import FileOptions
    from metrifair.table_model import TableModel


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
def command(*, model: Path, file: str, output: Path, ids: tuple[str, ...], reading: FileOptions) -> None:
    """Write what MODEL, made by train or frontier, predicts for the rows of FILE.

    FILE must have the columns that the model was trained on, with values of the same kind, in any order. The output
    has one row for each row of FILE: its ids, the prediction and, for classes, the probability; of two classes, that of
    the one that counts as a yes. A threshold that train chose is part of the model, and decides here too.

    Rows that the model was trained on look better than new ones will: audit what train --held-out writes, or new rows.

    \b
    Example:
      metrifair predict model.metrifair people.csv --id number --output predictions.csv
    """
    check_paths([model, file], [output])
    from metrifair.cli.console import console, printable
    from metrifair.cli.tables import write_table
    from metrifair.loading import load
    from metrifair.table_model import TableModel
    from metrifair.utility import ALIKE

    known = load(model)
    if not isinstance(known, TableModel):
        raise DataError(
            f"{str(model)!r} holds a {type(known).__name__}, which takes numbers, not raw columns; make a model with "
            "metrifair train or metrifair frontier"
        )
    found = predictions(known, file, ids, reading)
    write_table(found, output)
    said = ""
    if known.classes is not None and len(known.classes) == 2 and known.has_probabilities:
        place = known.positive
        label = known.classes[place]
        said = f", with the probability of {label}" + ("" if place else f" (audit them with --positive {label})")
        if known.threshold is not None:
            said += f", which is the prediction from {known.threshold:.4g} on (audit: --threshold {known.threshold!r})"
    where = "standard output" if output == STANDARD_OUTPUT else output
    out = console(stderr=True)
    out.print(
        f"{len(found):,} predictions of {printable(repr(known.target))}{printable(said)}: {printable(where)}",
        soft_wrap=True,
    )
    probabilities = (
        0
        if known.classes is None or not known.has_probabilities
        else 1
        if len(known.classes) == 2
        else len(known.classes)
    )
    alike = found.get_column(found.columns[-1 - probabilities])
    if len(alike) > 1 and alike.n_unique() == 1:
        out.print(
            f"Warning: the model {ALIKE} in this file: all {len(alike):,} predictions are {printable(alike[0])}.",
            soft_wrap=True,
        )


def predictions(model: TableModel, file: str, ids: tuple[str, ...], reading: FileOptions) -> pl.DataFrame:
    """Ids, predictions and probabilities of the rows of a file, read with these options."""
    import polars as pl

    from metrifair.cli.tables import read, with_predictions
    from metrifair.encoding.encoder import Levels

    texts = [
        name for name, coder in model.encoder.coders_.items() if isinstance(coder, Levels) and coder.kind == "text"
    ]
    only_ids = [name for name in (*ids, *model.ids) if name not in model.encoder.coders_]  # kept as they are written
    groups = model.sensitive if model.needs_group else ()
    roles = {"id": ids, "feature": tuple(model.encoder.coders_), "group": groups}
    frame, _ = read(file, reading, texts=[*texts, *only_ids, *groups], roles=roles)
    kept = ids or tuple(name for name in model.ids if name in frame.columns)
    shown = frame.select(kept) if kept else pl.DataFrame({"row": range(1, len(frame) + 1)})
    return with_predictions(shown, model, frame)
