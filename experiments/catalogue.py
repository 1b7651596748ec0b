"""The experiments by name: what each runs, and where its results go."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from experiments import NAMES
from experiments.settings import Effort, Protocol, protocol_named
from metrifair.checks import check_known
from metrifair.errors import DataError

Run = Callable[[Protocol, Effort, Path], None]


def run(name: str, *, protocol: str, seeds: int, quick: bool, out: Path, n_jobs: int) -> None:
    """Run one experiment, or all of them."""
    check_known("name", name, ["all", *NAMES])
    for what, value in (("seeds", seeds), ("n_jobs", n_jobs)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise DataError(f"{what} must be a whole number from 1 upwards, got {value!r}")
    kind, effort = protocol_named(protocol), Effort.of(seeds, quick=quick)
    out.mkdir(parents=True, exist_ok=True)
    for one in NAMES if name == "all" else (name,):
        _runner(one, n_jobs)(kind, effort, out)


def _runner(name: str, n_jobs: int) -> Run:
    modules = {
        "online-regression": "onlineregression",
        "online-classification": "onlineclassification",
        "convergence": "convergence",
        "theory": "theory",
    }
    if name == "boosting":
        return partial(import_module("experiments.boosting").run, n_jobs=n_jobs)
    if name in modules:
        found: Run = import_module(f"experiments.{modules[name]}").run
        return found
    return partial(_compare, name, n_jobs)


def _compare(name: str, n_jobs: int, protocol: Protocol, effort: Effort, out: Path) -> None:
    from experiments.comparisons import jobs, report  # noqa: PLC0415
    from experiments.grid import loaded, shortened  # noqa: PLC0415
    from experiments.jobs import all_rows, finished  # noqa: PLC0415
    from experiments.pagenotes import circumstances  # noqa: PLC0415
    from experiments.rows import write_rows  # noqa: PLC0415

    store = loaded(len(effort.seeds))
    todo = jobs(name, protocol, shortened(store) if effort.quick else store, effort)
    rows = all_rows(finished(todo, out / "ledger.db", n_jobs=n_jobs))
    write_rows(out / f"{name}-{protocol.name}.csv", rows)
    report(name, protocol.name, rows, out, notes=circumstances(effort, processes=n_jobs))
