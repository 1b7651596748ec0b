"""`metrifair export`: a saved model as an ONNX graph, which runs without Python."""

from __future__ import annotations

from pathlib import Path

import click

from metrifair.cli.options import Output, check_paths
from metrifair.errors import DataError


@click.command(short_help="Write a model for use without Python (ONNX).")
@click.argument("model", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--output", required=True, type=Output(".onnx"), help="File for the graph (.onnx).")
def command(*, model: Path, output: Path) -> None:
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
    from sklearn.pipeline import Pipeline

    from metrifair.cli.console import printable
    from metrifair.encoding.encoder import TableEncoder
    from metrifair.loading import load
    from metrifair.saving.saved import Saved
    from metrifair.table_model import TableModel

    known = load(model)
    if isinstance(known, Pipeline) and len(known) == 2 and isinstance(known[0], TableEncoder):
        known = TableModel(known[0], known[1])
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
