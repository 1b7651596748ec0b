"""What a sweep reaches, and keeps: in a ledger, from which a killed run goes on, and in the file of a frontier."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from metrifair import __version__
from metrifair.errors import DataError, ModelFileError
from metrifair.figures.curves import Curves
from metrifair.figures.utility import UTILITIES, Utility
from metrifair.saving.estimators import KIND
from metrifair.saving.modelfile import Content, PathLike, from_bytes, prefixed, to_bytes, under, write
from metrifair.saving.models import content_of, model_of
from metrifair.saving.records import Count, Positive, Record, record_of
from metrifair.support.checks import last_step
from metrifair.support.provenance import Provenance
from metrifair.tradeoff.points import Point

if TYPE_CHECKING:
    from metrifair.tradeoff.result import Frontier

FRONTIER = "frontier"  # the kind of the file
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


class Job(NamedTuple):
    """One model to train."""

    value: float
    seed: int
    family: str = ""

    @property
    def name(self) -> str:
        """What a ledger calls it; each family is a run of its own there."""
        return f"{self.value!r} seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Outcome:
    """One model trained and judged; ``model`` is None where training failed or a ledger kept the figures only."""

    job: Job
    validation: Point
    test: Point
    curves: Curves | None = None
    model: Any = None
    training: Point | None = None  # None where a fitted model was handed over


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
    training: Point | None = None

    def __post_init__(self) -> None:
        """All curves stand on the whole grid; small groups have no density."""
        if self.curves is None:
            return
        density, cumulative = self.curves.density, self.curves.cumulative
        lengths = {len(one) for by_group in (density, cumulative) for one in by_group.values()}
        if not density.keys() <= cumulative.keys() or not lengths <= {len(self.curves.grid)}:
            raise ValueError("its curves do not stand on their grid")

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
        with self._usable(), closing(self._connect()) as database:
            begun, ready = time.monotonic(), False
            while not ready:
                try:
                    database.execute("PRAGMA journal_mode=WAL")
                    database.execute(_SCHEMA)
                    ready = True
                except sqlite3.OperationalError as error:
                    # SQLite itself does not wait here: two that change a new file at once would wait for each other.
                    if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > begun + _PATIENCE:
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
            rows = database.execute("SELECT job, record, content FROM finished WHERE run = ?", (self.run,)).fetchall()
            kept = msgspec.convert(rows, list[tuple[str, str, bytes | None]], builtin_types=(bytes,))
            found = {
                job: Entry(msgspec.convert(json.loads(record), dict[str, Any]), content)
                for job, record, content in kept
            }
            if any(r"\ud" in record.lower() for _, record, _ in kept):
                json.dumps(found, ensure_ascii=False, default=repr).encode()  # half of a character: UnicodeEncodeError
            return found

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


def entry_of(outcome: Outcome) -> Entry:
    """What a ledger keeps of an outcome: its figures, and its model where that can be written."""
    content = None
    if type(last_step(outcome.model)).__module__.startswith("metrifair."):
        with suppress(DataError):  # a model with functions of the user's in it: its figures are kept all the same
            content = to_bytes(content_of(outcome.model))
    figures = Figures(outcome.validation, outcome.test, outcome.curves, outcome.training)
    return Entry(figures.as_json(), content)


def outcome_of(entry: Entry, job: Job, estimator: Any) -> Outcome:
    """The outcome that ``entry_of`` kept."""
    figures, model = Figures.of(entry.record), None
    if entry.content is not None:
        module = getattr(estimator, "model", None)
        try:
            model = model_of(from_bytes(entry.content), module if isinstance(module, torch.nn.Module) else None)
        except ModelFileError as error:
            raise DataError(f"the ledger holds a model that cannot be read ({error}); name a new ledger") from error
    return Outcome(job, figures.validation, figures.test, figures.curves, model, figures.training)


class OutcomeRecord(Figures, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model and what it reaches; ``model`` is what its own file would hold."""

    value: float
    seed: Count
    model: dict[str, Any] | None
    kind: str = KIND  # of that file; absent in files of earlier versions


class UtilityRecord(Record):
    """What a frontier's file says of a utility: how it is measured is the business of the code."""

    name: str
    label: str
    larger_is_better: bool

    def utility(self) -> Utility:
        """The utility of that name, else one that is known by its figures only."""
        return UTILITIES.get(self.name) or Utility(self.name, self.label, self.larger_is_better)


class FrontierRecord(Record):
    """All that a file holds of a frontier, but for its models' arrays."""

    on: Literal["scores", "decisions"]
    accuracy_name: Literal["accuracy", "R2"]
    groups: tuple[str, ...]
    sizes: dict[str, Count]
    notes: tuple[str, ...]
    comparisons: Positive
    parameter: str
    floor: float | None
    small: str
    outcomes: list[OutcomeRecord]
    chosen: Point | None
    limit: float | None
    # Absent in files of earlier versions.
    utility: UtilityRecord | None = None
    constant: Point | None = None
    constant_text: str = ""
    tried: Positive | None = None
    chosen_by: UtilityRecord | None = None
    certified: bool = False
    knobs: dict[str, str] = msgspec.field(default_factory=dict)
    provenance: Provenance = msgspec.field(default_factory=Provenance)


_LATER = ("outcomes", "chosen", "limit", "utility", "chosen_by", "certified")  # not handed over as they are
_OWN = [name for name in FrontierRecord.__struct_fields__ if name not in _LATER]


def write_frontier(path: PathLike, front: Frontier) -> None:
    """Write figures and models to one file."""
    arrays: dict[str, NDArray[Any]] = {}
    outcomes = []
    for place, outcome in enumerate(front.outcomes):
        kind, kept = KIND, None
        if outcome.model is not None:
            kind, kept, own = content_of(outcome.model)
            arrays |= prefixed(f"{place}/", own)
        figures = outcome.validation, outcome.test, outcome.curves, outcome.training
        value, seed = outcome.job.value, outcome.job.seed
        outcomes.append(OutcomeRecord(*figures, value=value, seed=seed, model=kept, kind=kind))
    own_fields = {name: getattr(front, name) for name in _OWN}
    utility, chosen_by = (
        None if own is None else UtilityRecord(own.name, own.label, own.larger_is_better)
        for own in (front.utility, front.chosen_by)
    )
    record = FrontierRecord(
        outcomes=outcomes,
        chosen=front.chosen,
        limit=front.limit,
        utility=utility,
        chosen_by=chosen_by,
        certified=front.certified,
        **own_fields,
    )
    write(path, Content(FRONTIER, record.as_json(), arrays))


def frontier_from(content: Content, made: Callable[..., Frontier], model_in: Callable[[Content], Any]) -> Frontier:
    """The frontier that ``write_frontier`` wrote, by its class; ``model_in`` makes each model of its own content."""
    record = record_of(FrontierRecord, content.meta, "a frontier")
    outcomes = []
    for place, one in enumerate(record.outcomes):
        arrays = under(f"{place}/", content.arrays)
        model = None if one.model is None else model_in(Content(one.kind, one.model, arrays))
        job = Job(one.value, one.seed, one.test.family)
        outcomes.append(Outcome(job, one.validation, one.test, one.curves, model, one.training))
    front = made(outcomes, **{name: getattr(record, name) for name in _OWN})
    front.chosen, front.limit, front.certified = record.chosen, record.limit, record.certified
    if record.utility is not None:
        front.utility = record.utility.utility()
    front.chosen_by = None if record.chosen_by is None else record.chosen_by.utility()
    return front
