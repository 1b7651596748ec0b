"""Finished work on disk: a run that was killed goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from metrifair import __version__
from metrifair.errors import DataError
from metrifair.results import Curves, Point

_SCHEMA = """
CREATE TABLE IF NOT EXISTS finished (
    run TEXT NOT NULL,
    job TEXT NOT NULL,
    record TEXT NOT NULL,
    content BLOB,
    PRIMARY KEY (run, job)
) WITHOUT ROWID
"""


class Entry(NamedTuple):
    """One finished job: its record, and a model file's bytes where there is one."""

    record: dict[str, Any]
    content: bytes | None = None


class Figures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one model reaches: a sweep's record in a ledger, and part of a frontier's file.

    >>> point = Point(0.5, 0, 0.9, 0.4)
    >>> Figures.of(Figures(point, point).as_json()).test == point
    True
    >>> Figures.of({"validation": {"strength": "much"}})
    Traceback (most recent call last):
    metrifair.errors.DataError: the ledger holds a record that is not one of a sweep (Expected `float`, got `str` - at \
`$.validation.strength`); name a new ledger
    """

    validation: Point
    test: Point
    curves: Curves | None = None

    def as_json(self) -> dict[str, Any]:
        """The figures as JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self, enc_hook=np.generic.item)  # NumPy's numbers are not floats
        return found

    @classmethod
    def of(cls, record: object) -> Figures:
        """The figures that ``as_json`` wrote; anything else in a ledger is a DataError."""
        try:
            return msgspec.convert(record, cls)
        except msgspec.ValidationError as error:
            raise DataError(
                f"the ledger holds a record that is not one of a sweep ({error}); name a new ledger"
            ) from error


class Ledger:
    """Finished jobs of one run, in an SQLite file that several runs and processes may share.

    A run is named after the content of everything it depends on: other data or parameters make another run, and so
    does another version of this library, which may compute other figures.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder) / "runs.db", run="abc")
    ...     ledger.add({"seed 0": Entry({"accuracy": 0.9})})
    ...     Ledger(Path(folder) / "runs.db", run="abc").finished()
    {'seed 0': Entry(record={'accuracy': 0.9}, content=None)}
    """

    def __init__(self, path: str | Path, run: str) -> None:
        self.path, self.run = Path(path), f"{run} by metrifair {__version__}"
        with self._usable(), closing(self._connect()) as database, database:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute(_SCHEMA)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError, RecursionError) as error:
            raise DataError(
                f"{self.path} cannot be used as a ledger ({error}); name a new or an older ledger"
            ) from error

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=60.0)

    def finished(self) -> dict[str, Entry]:
        """All jobs of this run that are done, by name."""
        with self._usable(), closing(self._connect()) as database:
            rows = database.execute("SELECT job, record, content FROM finished WHERE run = ?", (self.run,)).fetchall()
            kept = msgspec.convert(rows, list[tuple[str, str, bytes | None]], builtin_types=(bytes,))
            return {
                job: Entry(msgspec.convert(json.loads(record), dict[str, Any]), content)
                for job, record, content in kept
            }

    def add(self, entries: Mapping[str, Entry]) -> None:
        """Note jobs as done, all of them or, if the process dies meanwhile, none."""
        rows = [(self.run, job, json.dumps(entry.record), entry.content) for job, entry in entries.items()]
        with self._usable(), closing(self._connect()) as database, database:
            database.executemany("INSERT OR REPLACE INTO finished VALUES (?, ?, ?, ?)", rows)


def fingerprint(parts: Iterable[NDArray[Any] | str]) -> str:
    """A name for the content of arrays and texts: the same content, the same name.

    >>> fingerprint([np.zeros(2), "a"]) == fingerprint([np.zeros(2), "a"]) != fingerprint([np.zeros(3), "a"])
    True
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            digest.update(f"text {len(part)}:".encode() + part.encode())
            continue
        array = np.ascontiguousarray(part)
        content = repr(array.tolist()).encode() if array.dtype.kind == "O" else array.tobytes()
        digest.update(f"{array.dtype} {array.shape} {len(content)}:".encode() + content)
    return digest.hexdigest()
