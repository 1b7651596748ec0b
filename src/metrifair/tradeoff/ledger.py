"""Finished jobs on disk: the ledger, from which an interrupted run resumes."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from metrifair import __version__
from metrifair.errors import DataError

_PATIENCE = 60.0  # seconds that a process waits for others at the same ledger
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
    """One finished job: its record, and the bytes of its arrays if there are any."""

    record: dict[str, Any]
    content: bytes | None = None


class Ledger:
    """Finished jobs of one run, in an SQLite file that several runs and processes may share.

    A run is named after the content of everything it depends on: other data or parameters make
    another run, and so does another version of this library, which may compute other figures.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder) / "runs.db", run="abc")
    ...     ledger.add({"seed 0": Entry({"accuracy": 0.9})})
    ...     Ledger(Path(folder) / "runs.db", run="abc").finished()
    {'seed 0': Entry(record={'accuracy': 0.9}, content=None)}
    """

    def __init__(self, path: str | Path, run: str) -> None:
        self.path = Path(path)
        self.run = f"{run} by metrifair {__version__}"
        with self._usable(), closing(self._connect()) as database:
            start = time.monotonic()
            ready = False
            while not ready:
                try:
                    database.execute("PRAGMA journal_mode=WAL")
                    database.execute(_SCHEMA)
                    ready = True
                except sqlite3.OperationalError as error:
                    # SQLite itself does not wait here: two processes that change a new file would
                    # block each other.
                    if (
                        error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY
                        or time.monotonic() > start + _PATIENCE
                    ):
                        raise
                    time.sleep(0.01)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError, RecursionError) as error:
            raise DataError(
                f"{self.path} cannot be used as a ledger ({error}); name a new or an older ledger"
            ) from error

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=_PATIENCE)

    def finished(self) -> dict[str, Entry]:
        """All jobs of this run that are done, by name."""
        with self._usable(), closing(self._connect()) as database:
            rows = database.execute(
                "SELECT job, record, content FROM finished WHERE run = ?", (self.run,)
            ).fetchall()
            records = msgspec.convert(
                rows, list[tuple[str, str, bytes | None]], builtin_types=(bytes,)
            )
            entries = {
                job: Entry(msgspec.convert(json.loads(record), dict[str, Any]), content)
                for job, record, content in records
            }
            if any(r"\ud" in record.lower() for _, record, _ in records):
                # Half of a character is a UnicodeEncodeError.
                json.dumps(entries, ensure_ascii=False, default=repr).encode()
            return entries

    def add(self, entries: Mapping[str, Entry]) -> None:
        """Store finished jobs, all of them or, if the process stops meanwhile, none."""
        rows = [
            (self.run, job, json.dumps(entry.record), entry.content)
            for job, entry in entries.items()
        ]
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
        if array.dtype.kind == "O":
            content = repr(array.tolist()).encode()
        else:
            content = array.tobytes()
        digest.update(f"{array.dtype} {array.shape} {len(content)}:".encode() + content)
    return digest.hexdigest()


def content_text(value: Any) -> str:
    """A text that two values share only if they are equal in content; a DataError for what cannot
    be identified.

    An object is its class and its attributes. A function is its importable name together with its
    code: the name alone would not show an edit. Lambdas and inner functions are refused. They have
    no name to import, and equal code does not make them equal, as it may read variables of the
    enclosing function or of a notebook that have changed.

    >>> content_text({"costs": [1, 2.0]})
    "dict(tuple('costs', list(1, 2.0)))"
    >>> content_text(lambda x: x)
    Traceback (most recent call last):
    metrifair.errors.DataError: a ledger cannot identify '<lambda>', so that two different ones might share results; \
define it at the top of a module, or leave ledger out
    """
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return repr(value)
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        return _importable(value)
    if isinstance(value, np.ndarray):
        return f"array {fingerprint([value])}"
    if isinstance(value, torch.nn.Module):
        parts: Iterable[Any] = [
            repr(value),
            *(tensor.detach().cpu().numpy() for tensor in value.state_dict().values()),
        ]
    elif isinstance(value, set | frozenset):
        parts = sorted(map(content_text, value))
    elif type(value) in (dict, list, tuple):
        if isinstance(value, dict):
            parts = value.items()
        else:
            parts = value
    else:
        parts = _state(value)
    return f"{type(value).__qualname__}({', '.join(map(content_text, parts))})"


def _state(value: Any) -> list[Any]:
    """Class and state of an object, as ``copy`` takes them."""
    try:
        reduced = value.__reduce_ex__(2)
    except Exception as error:  # an object may refuse in any way
        raise DataError(
            f"a ledger cannot identify {value!r} ({error}); leave ledger out"
        ) from error
    if isinstance(reduced, str):
        parts = [reduced]
    else:
        parts = list(reduced)
    return [type(value), *(list(part) if isinstance(part, Iterator) else part for part in parts)]


def _importable(value: Any) -> str:
    """Name and code of a function or a class that a module defines."""
    name = f"{value.__module__}.{value.__qualname__}"
    imported: Any = sys.modules.get(value.__module__)
    for part in value.__qualname__.split("."):
        imported = getattr(imported, part, None)
    if imported is not value:
        problem = f"a ledger cannot identify {value.__qualname__!r}, so that two different ones might share results"
        raise DataError(problem, remedy="define it at the top of a module, or leave ledger out")
    if not isinstance(value, FunctionType):
        return name
    return f"{name} {_code_text(value.__code__)} {content_text([value.__defaults__, value.__kwdefaults__])}"


def _code_text(code: CodeType) -> str:
    constants = (
        _code_text(part) if isinstance(part, CodeType) else content_text(part)
        for part in code.co_consts
    )
    return fingerprint([code.co_code.hex(), *code.co_names, "constants", *constants])
