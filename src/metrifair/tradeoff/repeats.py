"""Rows, and ids of rows, that are on both sides of a split although no cluster keeps them
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.problem.clusters import cluster_codes, is_id_name, repeats
from metrifair.problem.tables import ColumnArray, distinct
from metrifair.support.arrays import Integers, distinct_codes
from metrifair.tradeoff.points import FrontierNote
from metrifair.tradeoff.split import DataSet

_LEAST = 0.01  # smallest share of repeated test rows for a note
_COINCIDENCE = 5  # times as many pairs of equal rows as coincidence explains
_SAMPLE = 10_000  # rows that determine the most varied column

# SplitMix64 mixes bits so
_STEP = 0x9E3779B97F4A7C15
_MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))

Hashes = NDArray[np.uint64]
"""A hash of each row's value, or of its values in several columns."""


def repeat_notes(
    data: DataSet, part: Integers, ids: Mapping[str, ColumnArray] | None = None
) -> Iterator[FrontierNote]:
    """Notes on test rows that equal other rows, or share an id with them; none where clusters keep
    rows together.

    ``part`` is the fold of each row, or -1 if no figure is of it. ``ids`` are columns that
    identify rows, beside those among the features whose names say so.
    """
    if data.problem.clusters is not None:
        return
    features = data.feature_columns()
    id_columns = {name: column for name, column in features.items() if is_id_name(name)}
    id_columns |= ids or {}
    for name, column in id_columns.items():
        code = cluster_codes(column)
        distinct_ids = len(np.unique(code))
        if repeats(len(code), distinct_ids):
            yield from _note("repeated_ids", code, part, column=name)
    if not features:
        return
    table = [*features.values()]
    if data.problem.labels is not None:
        table.append(data.problem.labels)
    table += [*data.problem.groups.T]
    rows = np.zeros(len(part), dtype=np.uint64)
    for place, column in enumerate(table):
        rows += _hashes(column, place)
    if _equal_pairs(rows) and not _is_coincidence(table, rows):
        yield from _note("repeated_rows", rows, part)


def _note(kind: str, value: NDArray[Any], part: Integers, **facts: Any) -> Iterator[FrontierNote]:
    """The note, if enough test rows have a value that rows of another part have too."""
    code = distinct_codes(value)
    pairs = np.unique(np.stack([code, part]), axis=1)
    number_of_parts = np.bincount(pairs[0])
    parts_of_tested = number_of_parts[code[part >= 0]]
    repeated = int((parts_of_tested > 1).sum())
    rows = len(parts_of_tested)
    if repeated >= _LEAST * rows:
        facts |= {"repeated": repeated, "rows": rows}
        yield FrontierNote(kind, facts)


def _hashes(column: ColumnArray, salt: int) -> Hashes:
    """One hash for each value; hashes of several columns can be added."""
    numbers = column
    if column.dtype.kind not in "biuf":
        numbers = distinct(column)[1]
    bits = numbers.astype(np.float64).view(np.uint64)
    start = _STEP * (salt + 1) % 2**64
    bits = bits + np.uint64(start)
    for shift, factor in _MIXING:
        mixed = bits ^ (bits >> np.uint64(shift))
        bits = mixed * np.uint64(factor)
    return bits


def _is_coincidence(table: list[ColumnArray], rows: Hashes) -> bool:
    """Whether rows of different persons would be equal as often, as in a table of few values such
    as ages in years.

    Rows that agree in all other columns agree in the most varied one about as often as rows do that
    differ in others, unless they are copies, which always agree.
    """
    step = -(-len(rows) // _SAMPLE)

    def equal_pairs_of_sample(place: int) -> float:
        sample = table[place][::step]
        return _equal_pairs(_hashes(sample, place))

    varied = min(range(len(table)), key=equal_pairs_of_sample)
    hashes = _hashes(table[varied], varied)
    equal = _equal_pairs(rows)
    others = _equal_pairs(rows - hashes)
    pairs = len(rows) * (len(rows) - 1) / 2
    different_elsewhere = pairs - others
    agree = (_equal_pairs(hashes) - equal) / max(different_elsewhere, 1.0)
    expected = others * agree
    return equal <= _COINCIDENCE * max(expected, 1.0)


def _equal_pairs(hashes: Hashes) -> float:
    """The number of pairs of rows with equal hashes."""
    _, rows = np.unique(hashes, return_counts=True)
    counts = rows.astype(np.float64)
    pairs = counts * (counts - 1) / 2
    return float(pairs.sum())
