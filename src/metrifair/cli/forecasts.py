"""A saved model and a file -> a table of predictions next to what tells the rows apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from numpy.typing import NDArray

from metrifair.cli.reading import read
from metrifair.encoding.encoder import Levels
from metrifair.encoding.table_model import TableModel
from metrifair.errors import DataError
from metrifair.loading import load


def table_model(path: Path) -> TableModel:
    """The model in the file, which must be one for raw tables."""
    found = load(path)
    if not isinstance(found, TableModel):
        raise DataError(
            f"{str(path)!r} holds a {type(found).__name__}, which takes numbers, not raw columns; make a model with "
            "metrifair train or metrifair frontier"
        )
    return found


def forecast(model: TableModel, file: str, ids: tuple[str, ...], **reading: str | None) -> pl.DataFrame:
    """Ids, predictions and probabilities of the rows of a file, read with these options."""
    texts = [
        name for name, coder in model.encoder.coders_.items() if isinstance(coder, Levels) and coder.kind == "text"
    ]
    only_ids = [name for name in (*ids, *model.ids) if name not in model.encoder.coders_]  # kept as they are written
    frame = read(file, texts=[*texts, *only_ids], roles={"id": ids, "feature": tuple(model.encoder.coders_)}, **reading)
    kept = ids or tuple(name for name in model.ids if name in frame.columns)
    shown = frame.select(kept) if kept else pl.DataFrame({"row": range(1, len(frame) + 1)})
    shown = shown.with_columns(_free("prediction", shown, model.predict(frame)))
    if model.classes is None:
        return shown
    probability = model.predict_proba(frame)
    if len(model.classes) == 2:
        return shown.with_columns(_free("probability", shown, probability[:, 1]))
    for place, label in enumerate(model.classes):
        shown = shown.with_columns(_free(f"probability of {label}", shown, probability[:, place]))
    return shown


def _free(name: str, frame: pl.DataFrame, values: NDArray[Any]) -> pl.Series:
    """A column whose name no other has."""
    while name in frame.columns:
        name += "'"
    return pl.Series(name, values)
