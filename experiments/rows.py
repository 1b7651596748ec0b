"""Raw results: one trained model is one row, kept as csv."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import nan
from pathlib import Path
from typing import Any

from metrifair.files import replace_file


@dataclass(frozen=True)
class Row:
    """What one model reached on the test rows of one seed.

    A gap is the difference of the groups' rates of positive labels (equal opportunity: among those with label 1).
    What a method does not have is nan: labels in regression, scores of a method that returns labels only.
    """

    experiment: str
    protocol: str
    input: str
    data: str
    method: str
    strength: float
    seed: int
    accuracy: float  # share of right labels, or R2
    label_gap: float
    kolmogorov: float  # of the scores
    parity_gap: float = nan  # of the labels, among everyone: differs from label_gap under equal opportunity only
    seconds: float = nan  # of one fit; in a stack, its share
    failed: bool = False  # training diverged: the figures mean nothing
    unconverged: float = nan  # 1 where a solver stopped short, in this fit or in its stack; nan: not noted

    def gap(self, on: str) -> float:
        """The figure named by ``on``: labels, scores or parity; the scores' where there are no labels."""
        value = {"labels": self.label_gap, "scores": self.kolmogorov, "parity": self.parity_gap}[on]
        return value if value == value else self.kolmogorov  # noqa: PLR0124  (nan differs from itself)


_KINDS: dict[str, Callable[[str], Any]] = {"str": str, "float": float, "int": int, "bool": lambda text: text == "True"}
_COLUMNS = {field.name: _KINDS[str(field.type)] for field in fields(Row)}


def csv_of(rows: Iterable[Row]) -> str:
    """All rows with a heading, numbers in full precision.

    >>> row = Row("regression", "published", "raw", "drug", "mfl-nn", 0.1, 0, 0.9, 0.25, 0.5)
    >>> rows_of(csv_of([row]))[0].accuracy
    0.9
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(_COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def rows_of(text: str) -> list[Row]:
    """The rows that ``csv_of`` wrote."""
    return [from_record(record) for record in csv.DictReader(io.StringIO(text))]


def from_record(record: Mapping[str, object]) -> Row:
    """A row from its fields as texts or values; those that older files lack keep their defaults."""
    return Row(**{name: kind(str(record[name])) for name, kind in _COLUMNS.items() if name in record})


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows in one step."""
    replace_file(path, csv_of(rows).encode())


def pack_rows(path: Path, rows: Iterable[Row], digits: int = 6) -> None:
    """Write the rows packed, with so many digits, for keeping."""
    names = ("accuracy", "label_gap", "kolmogorov", "parity_gap", "seconds")
    short = [from_record(asdict(row) | {name: f"{getattr(row, name):.{digits}g}" for name in names}) for row in rows]
    replace_file(path, gzip.compress(csv_of(short).encode(), mtime=0))


def read_rows(paths: Sequence[Path]) -> list[Row]:
    """The rows of several files, packed ones among them; of a model that is in several, the last."""
    found: dict[tuple[object, ...], Row] = {}
    for path in paths:
        content = path.read_bytes()
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        found |= {
            (row.experiment, row.protocol, row.input, row.data, row.method, row.strength, row.seed): row
            for row in rows_of(text)
        }
    return list(found.values())


def write_records(path: Path, records: Sequence[Mapping[str, object]]) -> None:
    """Write records that all have the same fields as csv, in one step."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    replace_file(path, text.getvalue().encode())
