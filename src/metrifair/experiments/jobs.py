"""Pieces of work that are never done twice: each is noted in a ledger when it is finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from metrifair.experiments.rows import Row, from_record
from metrifair.tradeoff.ledger import Entry, Ledger


class Job(NamedTuple):
    """Work under a name that changes with everything that the result depends on."""

    name: str
    work: Callable[[], list[Row]]
    shown: Mapping[str, str] = MappingProxyType(
        {}
    )  # protocol and input of the rows, where another cell's serve as well


class Done(NamedTuple):
    """A finished job: its rows, and how long it took when it was done."""

    name: str
    rows: list[Row]
    seconds: float


def finished(jobs: Iterable[Job], ledger: Path) -> Iterator[Done]:
    """Every job's rows, in order, one by one as they become available."""
    for job in jobs:
        record = noted(ledger, job.name, partial(_records, job.work))
        rows = [from_record({**one, **job.shown}) for one in record["records"]]
        yield Done(job.name, rows, record["seconds"])


def _records(work: Callable[[], list[Row]]) -> list[dict[str, Any]]:
    return [asdict(row) for row in work()]


def noted(ledger: Path, name: str, work: Callable[[], list[dict[str, Any]]]) -> dict[str, Any]:
    """The records of some work and the seconds it took, from the ledger where it was done before."""
    notes = Ledger(ledger, run=name)
    known = notes.finished()
    if name not in known:
        start = time.perf_counter()
        records = work()
        notes.add({name: Entry({"records": records, "seconds": time.perf_counter() - start})})
        known = notes.finished()
    return known[name].record


def all_rows(done: Sequence[Done]) -> list[Row]:
    """The rows of all finished jobs."""
    return [row for one in done for row in one.rows]
