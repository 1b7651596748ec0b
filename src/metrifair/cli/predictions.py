"""Predictions beside the columns of a table: what `predict`, and `train --held-out`, write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from metrifair.table_model import TableModel


def with_predictions(shown: pl.DataFrame, model: TableModel, frame: pl.DataFrame) -> pl.DataFrame:
    """These columns with what the model says of the rows of ``frame``: the prediction and, of classes, probabilities.

    Of two classes the probability is that of the one that counts as a yes. A name that is taken gets a prime.
    """
    columns: dict[str, Any] = {"prediction": model.predict(frame)}
    if model.classes is not None and model.has_probabilities:
        probability = model.predict_proba(frame)
        if len(model.classes) == 2:
            columns["probability"] = probability[:, model.positive]
        else:
            columns |= {f"probability of {label}": probability[:, at] for at, label in enumerate(model.classes)}
    for name, values in columns.items():
        shown = shown.with_columns(pl.Series(free_name(name, shown.columns), values))
    return shown


def free_name(name: str, taken: list[str]) -> str:
    """The name, with as many primes as tell it from those that are taken.

    >>> free_name("row", ["row", "x"])
    "row'"
    """
    while name in taken:
        name += "'"
    return name
