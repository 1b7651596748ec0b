"""Pieces of work that are never done twice: each is noted in a ledger when it is finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import joblib

from experiments.rows import Row, from_record
from metrifair.parallel import spread
from metrifair.tradeoff.ledger import Entry, Ledger

Records = list[dict[str, Any]]


class Job(NamedTuple):
    """Work under a name that changes with everything that the result depends on."""

    name: str
    work: Callable[[], list[Row]]
    size: int = 0  # of the data: of several jobs at once, the largest begin
    shown: Mapping[str, str] = MappingProxyType({})  # protocol and input, where another cell's rows serve as well


class Done(NamedTuple):
    """A finished job: its place among the jobs, its rows, and how long it took when it was done."""

    place: int
    name: str
    rows: list[Row]
    seconds: float


def finished(jobs: Iterable[Job], ledger: Path, *, n_jobs: int = 1) -> Iterator[Done]:
    """Every job's rows, one by one as they become available: those done before, then the others.

    ``n_jobs`` processes work at once, each on one thread; what they bring is noted here, by one process.
    """
    waiting: dict[str, list[tuple[int, Job]]] = {}  # by name: the rows of one may serve several
    for place, job in enumerate(jobs):
        if (record := _known(ledger, job.name)) is not None:
            yield _done(place, job, record)
        else:
            waiting.setdefault(job.name, []).append((place, job))
    largest_first = sorted((same[0][1] for same in waiting.values()), key=lambda job: -job.size)
    for name, record in _worked(largest_first, n_jobs):
        kept = _note(ledger, name, record)
        yield from (_done(place, job, kept) for place, job in waiting[name])


def _worked(jobs: Sequence[Job], n_jobs: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and records of jobs as they are finished."""
    named = (partial(_named, job.name, partial(_records, job.work)) for job in jobs)
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        # Begun in order; arrays are sent whole, since torch wants them writable.
        return spread(named, n_jobs, in_order=False, pre_dispatch="n_jobs", max_nbytes=None)


def _named(name: str, work: Callable[[], Records]) -> tuple[str, dict[str, Any]]:
    return name, _timed(work)


def _records(work: Callable[[], list[Row]]) -> Records:
    return [asdict(row) for row in work()]


def _timed(work: Callable[[], Records]) -> dict[str, Any]:
    start = time.perf_counter()
    records = work()
    return {"records": records, "seconds": time.perf_counter() - start}


def _done(place: int, job: Job, record: dict[str, Any]) -> Done:
    return Done(place, job.name, [from_record({**one, **job.shown}) for one in record["records"]], record["seconds"])


def noted(ledger: Path, name: str, work: Callable[[], Records]) -> dict[str, Any]:
    """The records of some work and the seconds it took, from the ledger where it was done before."""
    record = _known(ledger, name)
    return _note(ledger, name, _timed(work)) if record is None else record


def _known(ledger: Path, name: str) -> dict[str, Any] | None:
    found = Ledger(ledger, run=name).finished()
    return found[name].record if name in found else None


def _note(ledger: Path, name: str, record: dict[str, Any]) -> dict[str, Any]:
    """The record as it will be read: with the rounding of text, so that a resumed run gives the same table."""
    notes = Ledger(ledger, run=name)
    notes.add({name: Entry(record)})
    return notes.finished()[name].record


def all_rows(done: Iterable[Done]) -> list[Row]:
    """The rows of finished jobs in the order of the jobs: whichever was finished first, the table is the same."""
    return [row for one in sorted(done, key=lambda one: one.place) for row in one.rows]
