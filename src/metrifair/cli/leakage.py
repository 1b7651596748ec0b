"""Columns that are the label in other words: a copy, a renaming, the same number in another unit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import lgamma, log
from shlex import quote

import numpy as np
import polars as pl

from metrifair.errors import DataError

_CHANCE = 1e-4  # that any column of a file is so by chance, below which it is called leakage


def check_leakage(features: pl.DataFrame, label: pl.Series, *, keep: Collection[str] = (), number: bool) -> list[str]:
    """Raise a DataError where a column is the label in other words; notes on columns that tell it in every row.

    A column is a renaming of the label where either tells the other; of numbers, where one is a strictly monotone
    function of the other. In a file of few rows that may be chance: it counts only where the label's values, shuffled
    over the rows, would do so with a probability below 1 in 10,000, all columns considered. ``keep`` are columns that
    the user wants all the same.

    >>> file = pl.DataFrame({"approved": ["y", "n"] * 20, "age": range(40)})
    >>> check_leakage(file, pl.Series("label", [1, 0] * 20), number=False)
    Traceback (most recent call last):
    metrifair.errors.DataError: column 'approved' is the label 'label' in other words (one-to-one in all 40 rows), \
which no later file will know: leave it out with --ignore approved, or take it all the same with --keep approved
    >>> check_leakage(file[:6], pl.Series("label", [1, 0] * 3), number=False)
    []
    """
    notes: list[str] = []
    limit = log(_CHANCE / max(1, len(features.columns)))
    ways = _log_arrangements(label)
    values = label.n_unique()
    for name in features.columns:
        column = features.get_column(name)
        if name in keep or column.dtype.is_nested():  # the encoder has its own words for lists
            continue
        levels, pure = column.n_unique(), _tells(column, label)
        if pure and levels == values and lgamma(values + 1) - ways < limit:
            raise _leakage(name, label, "one-to-one")
        if number and log(2) - ways < limit and _is_monotone(column, label):
            raise _leakage(name, label, "the same order")
        if pure and not number and levels * log(values) - ways < limit:
            notes.append(
                f"Column {name!r} alone tells the label {label.name!r} in all {len(label):,} rows; where it is written "
                f"down only after the outcome, leave it out with --ignore {quote(name)}."
            )
    return notes


def label_as_group(groups: Mapping[str, pl.Series], label: pl.Series) -> list[str]:
    """Notes on groups that are the label in other words, which leaves nothing to compare but the outcome itself.

    >>> label = pl.Series("repaid", ["y", "n"] * 20)
    >>> label_as_group({"status": pl.Series([1, 0] * 20), "sex": pl.Series(["f", "f", "m", "m"] * 10)}, label)
    ["The groups of 'status' are the label 'repaid' in other words: models that are right are then unfair by design. \
Name another column with --group."]
    """
    return [
        f"The groups of {name!r} are the label {label.name!r} in other words: models that are right are then unfair by "
        "design. Name another column with --group."
        for name, column in groups.items()
        if column.n_unique() == label.n_unique()
        and _tells(column, label)
        and lgamma(label.n_unique() + 1) - _log_arrangements(label) < log(_CHANCE)
    ]


def _tells(column: pl.Series, label: pl.Series) -> bool:
    """Whether rows with one value of the column have one label."""
    return pl.DataFrame([column.alias("column"), label.alias("label")]).n_unique() == column.n_unique()


def _leakage(name: str, label: pl.Series, how: str) -> DataError:
    return DataError(
        f"column {name!r} is the label {label.name!r} in other words ({how} in all {len(label):,} rows), which no "
        f"later file will know: leave it out with --ignore {quote(name)}, or take it all the same with --keep "
        f"{quote(name)}"
    )


def _log_arrangements(label: pl.Series) -> float:
    """Logarithm of the number of different ways to shuffle these values over the rows."""
    counts = label.alias("label").value_counts(name="rows")["rows"].to_list()
    return lgamma(len(label) + 1) - sum(lgamma(count + 1) for count in counts)


def _is_monotone(column: pl.Series, label: pl.Series) -> bool:
    """Whether two columns of numbers rise together, or one falls where the other rises, ties with ties."""
    if not column.dtype.is_numeric() or column.null_count() or not label.dtype.is_numeric():
        return False
    first, second = (one.rank("dense").to_numpy().astype(np.int64) for one in (column, label))
    return bool((first == second).all() or (first == second.max() + 1 - second).all())
