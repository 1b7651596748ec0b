"""`metrifair predict`, `export` and `card`: predictions, an ONNX graph and a model card of a
saved model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metrifair.cli.help_sections import SectionedCommand
from metrifair.cli.options import READING_OPTIONS, STANDARD_OUTPUT, check_paths, command_options
from metrifair.errors import DataError

if TYPE_CHECKING:
    from metrifair.auditing.sources.file_formats import ReadOptions
    from metrifair.cli.tables import PredictionTable
    from metrifair.saving.scoring import TableScorer
    from metrifair.support.provenance import ScoredRows, SourceFile


@click.command(cls=SectionedCommand, short_help="Apply a model to a file.")
@click.argument("model", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("file")
@command_options("predict")
@READING_OPTIONS
def predict_command(
    *,
    model: Path,
    file: str,
    output: Path,
    ids: tuple[str, ...],
    keep: tuple[str, ...],
    reading: ReadOptions,
) -> None:
    """Predict the rows of FILE with MODEL, a file written by train, by frontier or from Python.

    FILE must have the columns that the model was trained on, in any order. The output has one row
    for each row of FILE: ids, the columns of --keep, the prediction and, for classes, the
    probability. With two classes it is the probability of the positive label. A threshold that
    train chose is part of the model and applies here too.

    Do not audit predictions of the training rows: they look better than those of new rows. Audit
    the output of train --held-out, or new rows. A second file, OUTPUT.origin.json, records the
    model and the rows; audit and card read it.

    \b
    Example:
      metrifair predict model.metrifair people.csv --id number --keep sex,outcome \\
        --output predictions.csv
      metrifair audit predictions.csv --score probability --group sex --label outcome
    """
    check_paths([model, file], [output])
    from metrifair.cli.console import console, say
    from metrifair.figures.utility import CONSTANT
    from metrifair.saving.modelfile import fingerprint, read
    from metrifair.saving.scoring import TableScorer
    from metrifair.wording.frontier import mark_text

    scorer = _scorer(model)
    if isinstance(scorer, TableScorer) and scorer.needs_group and not scorer.sensitive:
        raise DataError(
            f"{str(model)!r} contains a pipeline that needs groups but does not name their "
            "columns; make a "
            "model with metrifair train, or predict in Python"
        )
    if not isinstance(scorer, TableScorer):
        raise DataError(
            f"{str(model)!r} contains a {type(scorer).__name__}, which takes numbers, not raw "
            "columns; train a model "
            "with metrifair train or metrifair frontier"
        )
    names = [name for listed in keep for name in listed.split(",")]
    predicted_table, files = predictions(scorer, file, ids, names, reading)
    rows = _scored_rows(scorer, files)
    predicted_table.write(output, model=fingerprint(read(model)), rows=rows, sources=files)
    probability = ""
    if scorer.classes is not None and len(scorer.classes) == 2 and scorer.has_probabilities:
        place = scorer.positive
        label = scorer.classes[place]
        probability = f", with the probability of {label}" + (
            "" if place else f" (audit them with --positive {label})"
        )
        if scorer.threshold is not None:
            probability += f", which is the prediction from {scorer.threshold:.4g} on (audit: --threshold {scorer.threshold!r})"  # noqa: E501
    where = "standard output" if output == STANDARD_OUTPUT else output
    out = console(stderr=True)
    say(
        out,
        f"{len(predicted_table.table):,} predictions of {scorer.target!r}{probability}: {where}",
    )
    if rows == "training_file":
        say(
            out,
            f"Warning: {file} holds the training rows. Do not audit these predictions as those of "
            "new rows.",
        )
    predicted = predicted_table.table.get_column(predicted_table.columns[0])
    if len(predicted) > 1 and predicted.n_unique() == 1:
        alike = f"all {len(predicted):,} predictions are {predicted[0]}"
        say(out, f"Warning: the model {mark_text(CONSTANT)} in this file: {alike}.")


def predictions(
    model: TableScorer, file: str, ids: tuple[str, ...], keep: Sequence[str], reading: ReadOptions
) -> tuple[PredictionTable, list[SourceFile]]:
    """Ids, kept columns, predictions and probabilities of the rows of a file, and the files
    that were read.
    """
    import polars as pl

    from metrifair.cli.tables import free_name, read, strip_texts, with_predictions
    from metrifair.encoding.coders import Levels

    coders = model.encoder.coders_
    texts = [
        name for name, coder in coders.items() if isinstance(coder, Levels) and coder.kind == "text"
    ]
    as_written = [name for name in (*ids, *model.ids, *keep) if name not in coders]
    groups = model.sensitive if model.needs_group else ()
    roles = {"id": ids, "keep": keep, "feature": tuple(coders), "group": groups}
    frame, files = read(file, reading, texts=[*texts, *as_written, *groups], roles=roles)
    names = ids or tuple(name for name in model.ids if name in frame.columns)
    copied = frame.select(list(dict.fromkeys([*names, *keep])))
    if not names:
        copied = copied.select(
            pl.Series(free_name("row", copied.columns), range(1, len(frame) + 1)), pl.all()
        )
    return with_predictions(copied, model, strip_texts(frame, model.sensitive)), files


def _scored_rows(model: TableScorer, files: Sequence[SourceFile]) -> ScoredRows:
    """Whether the files are those with the training rows, as far as the model records them."""
    if not model.training_files:
        return "file"
    if {file.sha256 for file in files} & set(model.training_files):
        return "training_file"
    return "other_file"


def _scorer(model: Path) -> Any:
    """The model in a file; where NumPy or a booster's library can predict with it, PyTorch is
    not imported.
    """
    from metrifair.errors import ModelFileError
    from metrifair.saving.modelfile import read
    from metrifair.saving.scoring import table_scorer

    content = read(model)
    try:
        scorer = table_scorer(content)
    except ModelFileError as error:
        raise ModelFileError(f"cannot read {str(model)!r}: {error}") from error
    return _loaded(model) if scorer is None else scorer


def _loaded(model: Path) -> Any:
    """The model in a file; a pipeline that begins with our encoder as the table model that it
    is.
    """
    from metrifair.api.loading import load

    loaded = load(model)
    from sklearn.pipeline import Pipeline

    from metrifair.encoding.encoder import TableEncoder
    from metrifair.estimators.table_model import TableModel

    if isinstance(loaded, Pipeline) and len(loaded) == 2 and isinstance(loaded[0], TableEncoder):
        return TableModel(loaded[0], loaded[1])
    return loaded


@click.command(short_help="Export a model to ONNX.")
@click.argument("model", type=click.Path(dir_okay=False, path_type=Path))
@command_options("export")
def export_command(*, model: Path, output: Path) -> None:
    """Export MODEL, a file written by train, by frontier or from Python, as an ONNX graph.

    The graph has one input for each feature column. The input has the column's name and the shape
    (n, 1) for n rows. Numbers are doubles, and NaN if missing. Booleans are doubles, 1 or 0. Text
    is a string, and empty if missing. A model that was fitted on an array has one input X with the
    shape (n, number of features).

    The outputs are label and probabilities, or prediction for a numeric label. The graph includes a
    threshold that train chose. Models with date columns and post-processors cannot be exported.

    \b
    Example:
      metrifair export model.metrifair --output model.onnx
    """
    check_paths([model], [output])
    from metrifair.cli.console import printable
    from metrifair.estimators.table_model import TableModel
    from metrifair.saving.saved import Saved

    fitted = _loaded(model)
    if not isinstance(fitted, Saved):
        raise DataError(
            f"{str(model)!r} contains a {type(fitted).__name__}, which cannot be exported; pass a "
            "model, such as "
            "metrifair train writes"
        )
    fitted.to_onnx(output)
    kinds = {"number": "double", "boolean": "double (1 or 0)", "text": "string"}
    coders = fitted.encoder.coders_ if isinstance(fitted, TableModel) else {}
    inputs = [f"{name!r} {kinds[coder.kind]}" for name, coder in coders.items()]
    shape = "Inputs, each of shape (n, 1)" if inputs else "Input"
    listed = ", ".join(inputs) or "'X' double, of shape (n, number of features)"
    click.echo(printable(f"ONNX graph: {output}. {shape}: {listed}"))


@click.command(short_help="Write a model card in Markdown.")
@click.argument("model", type=click.Path(dir_okay=False, path_type=Path))
@command_options("card")
def card_command(
    *, model: Path, audited: str | None, swept: str | None, output: Path, **stated: Any
) -> None:
    """Write the model card of MODEL in Markdown, with the header that model hubs read.

    The card reads the settings from MODEL, the figures by group from the audit, and the cost of
    fairness from the frontier. It reports an audit as the model's only if the audit records that
    this model computed the scores. It then states which rows were scored. Any other audit is shown
    under "An audit of other scores".

    \b
    Example: train, audit the held-out rows, and write the card
      metrifair train loans.csv --label paid --group sex --output loans.metrifair --held-out held.csv
      metrifair audit held.csv --score probability --group sex --label paid --json audit.json
      metrifair card loans.metrifair --audit audit.json --license mit --output README.md
    """
    check_paths([model, *filter(None, (audited, swept))], [output])
    from metrifair.api.compare import read_audit
    from metrifair.api.frontier import Frontier
    from metrifair.api.loading import load
    from metrifair.api.model_card import is_audit_of, to_card
    from metrifair.cli.console import printable

    fitted = load(model)
    front = None if swept is None else load(swept)
    if front is not None and not isinstance(front, Frontier):
        raise DataError(
            f"{swept!r} contains a {type(front).__name__}, not a frontier; pass a file of "
            "Frontier.save"
        )
    audit = None if audited is None else read_audit(audited)
    card = to_card(fitted, audit, front, None if output == STANDARD_OUTPUT else output, **stated)
    if audit is not None and not is_audit_of(fitted, audit):
        click.echo(
            f"Warning: {audited} does not record that this model computed its scores.", err=True
        )
    text = "\n".join(map(printable, card.split("\n")))
    click.echo(
        text if output == STANDARD_OUTPUT else f"Model card: {output}", nl=output != STANDARD_OUTPUT
    )
