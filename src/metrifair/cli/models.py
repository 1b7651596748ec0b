"""`metrifair predict`, `export` and `card`: what a saved model says of a file, as a graph for elsewhere, in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metrifair.cli.help_sections import SectionedCommand
from metrifair.cli.options import STANDARD_OUTPUT, TABLES, Output, check_paths, file_options
from metrifair.errors import DataError

if TYPE_CHECKING:
    import polars as pl

    from metrifair.auditing.out_of_core.formats import ReadOptions
    from metrifair.estimators.table_model import TableModel


@click.command(cls=SectionedCommand, short_help="Apply a model to a file.")
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
    help="Column of FILE to copy next to the predictions. Repeatable.  [default: the --id columns of train, or row "
    "numbers]",
)
@file_options
def predict_command(*, model: Path, file: str, output: Path, ids: tuple[str, ...], reading: ReadOptions) -> None:
    """Predict the rows of FILE with MODEL, a file written by train, by frontier or from Python.

    FILE must have the columns that the model was trained on, in any order. The output has one row for each row of FILE:
    ids, the prediction and, for classes, the probability. With two classes it is the probability of the positive label.
    A threshold that train chose is part of the model and applies here too.

    Do not audit predictions of the training rows: they look better than those of new rows. Audit the output of train
    --held-out, or new rows.

    \b
    Example:
      metrifair predict model.metrifair people.csv --id number --output predictions.csv
    """
    check_paths([model, file], [output])
    from metrifair.cli.console import console, say
    from metrifair.cli.tables import write_table
    from metrifair.estimators.table_model import TableModel
    from metrifair.figures.utility import CONSTANT
    from metrifair.wording.frontier import mark_text

    known = _loaded(model)
    if isinstance(known, TableModel) and known.needs_group and not known.sensitive:
        raise DataError(
            f"{str(model)!r} holds a pipeline that asks for groups, and does not say in which columns they are; make a "
            "model with metrifair train, or predict in Python"
        )
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
    say(out, f"{len(found):,} predictions of {known.target!r}{said}: {where}")
    predicted = found.get_column([name for name in found.columns if name.rstrip("'") == "prediction"][-1])
    if len(predicted) > 1 and predicted.n_unique() == 1:
        alike = f"all {len(predicted):,} predictions are {predicted[0]}"
        say(out, f"Warning: the model {mark_text(CONSTANT)} in this file: {alike}.")


def predictions(model: TableModel, file: str, ids: tuple[str, ...], reading: ReadOptions) -> pl.DataFrame:
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


def _loaded(model: Path) -> Any:
    """The model in a file; a pipeline that begins with our encoder as the table model that it is."""
    from sklearn.pipeline import Pipeline

    from metrifair.api.loading import load
    from metrifair.encoding.encoder import TableEncoder
    from metrifair.estimators.table_model import TableModel

    known = load(model)
    if isinstance(known, Pipeline) and len(known) == 2 and isinstance(known[0], TableEncoder):
        return TableModel(known[0], known[1])
    return known


@click.command(short_help="Write a model for use without Python (ONNX).")
@click.argument("model", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--output", required=True, type=Output(".onnx"), help="File for the graph (.onnx).")
def export_command(*, model: Path, output: Path) -> None:
    """Write MODEL, made by train or frontier or saved from Python, as an ONNX graph.

    Each column of the table is an input of its name with one value for each row: numbers and booleans (1, 0) as
    doubles, NaN where one is missing; text as strings, empty where it is missing. A model that was fitted to numbers
    takes them as one input X. The outputs are label and probabilities, or prediction; a threshold that train chose
    decides here too. What the encoder leaves out is no input. Dates and post-processors cannot be exported.

    \b
    Example:
      metrifair export model.metrifair --output model.onnx
    """
    check_paths([model], [output])
    from metrifair.cli.console import printable
    from metrifair.estimators.table_model import TableModel
    from metrifair.saving.saved import Saved

    known = _loaded(model)
    if not isinstance(known, Saved):
        raise DataError(
            f"{str(model)!r} holds a {type(known).__name__}, which cannot be exported; pass a model, such as "
            "metrifair train writes"
        )
    known.to_onnx(output)
    kinds = {"number": "double", "boolean": "double (1 or 0)", "text": "string"}
    coders = known.encoder.coders_ if isinstance(known, TableModel) else {}
    inputs = [f"{name!r} {kinds[coder.kind]}" for name, coder in coders.items()] or ["'X' double, a column a feature"]
    click.echo(printable(f"ONNX graph: {output}. Inputs: {', '.join(inputs)}"))


@click.command(short_help="Describe a model for those who use it.")
@click.argument("model", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--audit", "audited", metavar="FILE", help="What metrifair audit --json wrote of the model's scores.")
@click.option("--frontier", "swept", metavar="FILE", help="The frontier it was chosen from, written by Frontier.save.")
@click.option(
    "--output",
    default=str(STANDARD_OUTPUT),
    type=Output(".md", stdout=True),
    help="File for the card (.md); - is standard output.",
)
@click.option("--title", help="Name of the model.")
@click.option("--license", metavar="NAME", help="Identifier, such as mit.")
@click.option("--language", metavar="CODE", help="Of texts among the features, such as en.")
@click.option("--dataset", "datasets", multiple=True, metavar="NAME", help="What it was trained on. Repeatable.")
@click.option("--intended-use", metavar="TEXT", help="Who should use it for what, and who should not.")
def card_command(*, model: Path, audited: str | None, swept: str | None, output: Path, **stated: Any) -> None:
    """Write the model card of MODEL, in Markdown with a head that model hubs read.

    What it was trained with is read off the model's file, figures by group come from an audit, and what fairness cost
    from a frontier. What nobody has stated, such as what the model is for, the card says so.

    \b
    Example:
      metrifair card loans.metrifair --audit audit.json --license mit --output README.md
    """
    check_paths([model, *filter(None, (audited, swept))], [output])
    from metrifair.api.compare import read_audit
    from metrifair.api.frontier import Frontier
    from metrifair.api.loading import load
    from metrifair.api.model_card import to_card
    from metrifair.cli.console import printable

    known, front = load(model), None if swept is None else load(swept)
    if front is not None and not isinstance(front, Frontier):
        raise DataError(f"{swept!r} holds a {type(front).__name__}, not a frontier; pass what Frontier.save wrote")
    card = to_card(
        known,
        None if audited is None else read_audit(audited),
        front,
        None if output == STANDARD_OUTPUT else output,
        **stated,
    )
    shown = "\n".join(map(printable, card.split("\n")))
    click.echo(shown if output == STANDARD_OUTPUT else f"Model card: {output}", nl=output != STANDARD_OUTPUT)
