"""Runs that are never done twice: each is noted in a ledger when it is finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import metrifair
from experiments.data import Source, Splits
from experiments.results import ModelResult, from_record
from experiments.settings import Case, Effort
from metrifair.support.parallel import run_parallel
from metrifair.tradeoff.ledger import Entry, Ledger, fingerprint

Records = list[dict[str, Any]]

# of the library: they compute no figures
_SHOWN = ("__main__.py", "cli", "mlflow.py", "model_card.py", "report")


class Run(NamedTuple):
    """Work under a name that changes with everything that its results depend on."""

    name: str
    work: Callable[[], list[ModelResult]]
    size: int = 0  # of the data: of several runs at once, the largest begin
    # protocol and input, where results serve another case as well
    shown: Mapping[str, str] = MappingProxyType({})


class FinishedRun(NamedTuple):
    """A finished run: its place among all, its results, and how long it took when it was done."""

    place: int
    name: str
    results: list[ModelResult]
    seconds: float


def run_of(
    case: Case,
    method: str,
    work: Callable[[Splits], list[ModelResult]],
    source: Source,
    effort: Effort,
    *,
    code: str,
) -> Run:
    """Work on one case, named after all that it depends on; ``code`` is the text of what sets
    the method up.
    """
    splits = source(case.name, case.input)
    key = fingerprint([splits.fingerprint(effort.seeds), repr(case), repr(effort), code])
    name = f"{case.experiment} {case.protocol.name} {case.input} {case.name} {method} {key[:16]}"
    return Run(name, partial(work, splits), size=len(splits.y))


def finished(runs: Iterable[Run], ledger: Path, *, n_jobs: int = 1) -> Iterator[FinishedRun]:
    """Every run's results, one by one as they become available: those done before, then the others.

    ``n_jobs`` processes work at once, each on one thread, unless another backend of joblib is
    active (Dask, Ray); what they bring is noted here, by one process.
    """
    waiting: dict[str, list[tuple[int, Run]]] = {}  # by name: the results of one may serve several
    for place, run in enumerate(runs):
        if (record := _known(ledger, run.name)) is not None:
            yield _finished(place, run, record)
        else:
            waiting.setdefault(run.name, []).append((place, run))
    largest_first = sorted((same[0][1] for same in waiting.values()), key=lambda run: -run.size)

    def work(place: int) -> tuple[str, dict[str, Any]]:
        return _timed(largest_first[place].name, largest_first[place].work)

    # Begun in order. All runs travel at once: many share their data.
    places = range(len(largest_first))
    for name, record in run_parallel(
        work, places, n_jobs, in_order=False, threads=1, pre_dispatch="n_jobs"
    ):
        kept = _note(ledger, name, record)
        yield from (_finished(place, run, kept) for place, run in waiting[name])


def all_results(done: Iterable[FinishedRun]) -> list[ModelResult]:
    """The results of finished runs in the order of the runs: whichever was finished first, the
    table is the same.
    """
    return [result for one in sorted(done, key=lambda one: one.place) for result in one.results]


def remembered(
    ledger: Path, name: str, work: Callable[[], Records], *, code: str
) -> dict[str, Any]:
    """The ``records`` of some work and the ``seconds`` it took, from the ledger where it was done
    before.

    ``code`` is the text of what does the work: changed, it is other work.
    """
    name = f"{name} {fingerprint([code])[:16]}"
    return _known(ledger, name) or _note(ledger, *_timed(name, work))


def _timed(name: str, work: Callable[[], Sequence[Any]]) -> tuple[str, dict[str, Any]]:
    start = time.perf_counter()
    records = [asdict(one) if isinstance(one, ModelResult) else one for one in work()]
    return name, {"records": records, "seconds": time.perf_counter() - start}


def _finished(place: int, run: Run, record: dict[str, Any]) -> FinishedRun:
    results = [from_record({**one, **run.shown}) for one in record["records"]]
    return FinishedRun(place, run.name, results, record["seconds"])


def _known(ledger: Path, name: str) -> dict[str, Any] | None:
    found = _notes(ledger, name).finished()
    return found[name].record if name in found else None


def _note(ledger: Path, name: str, record: dict[str, Any]) -> dict[str, Any]:
    """The record as it will be read: with the rounding of text, so that a resumed run gives the
    same table.
    """
    notes = _notes(ledger, name)
    notes.add({name: Entry(record)})
    return notes.finished()[name].record


def _notes(ledger: Path, name: str) -> Ledger:
    """What these sources of the library have finished: others may have other figures."""
    return Ledger(ledger, run=f"{name} (sources {sources()[:16]})")


@cache
def sources() -> str:
    """A name for the text of the library, as it was when this process first asked; its version
    is in there.
    """
    folder = Path(metrifair.__file__).parent
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")}
    return fingerprint(
        part
        for name, path in sorted(paths.items())
        if name.split("/")[0] not in _SHOWN
        for part in (name, path.read_text(encoding="utf-8"))
    )
