"""Running the networks elsewhere: arrays go there in one file, raw points come back as csv.

``python -m experiments.device prepare FILE.npz`` writes the arrays of all data sets; it needs the raw data.
``python -m experiments.device run [--quick] FILE.npz FOLDER [NAME ...]`` trains from them; it needs neither
raw data nor any extra. Both protocols are run; finished work found in FOLDER is not done again.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from experiments import material
from experiments.comparisons import EXPERIMENTS, jobs
from experiments.grid import Store, loaded, shortened
from experiments.jobs import Done, Job, all_rows, finished
from experiments.rows import write_rows
from experiments.settings import DATA, PROTOCOLS, Effort, Input
from metrifair.estimators.settings import device_of
from metrifair.files import replace_file

_INPUTS: tuple[Input, ...] = ("raw", "standard")


def prepare(path: Path, seeds: int = 10) -> None:
    """Write the arrays of all data sets and inputs to one file."""
    store = loaded(seeds)
    material.write(path, {(name, inputs): store(name, inputs) for name in DATA for inputs in _INPUTS})


def run(
    path: Path,
    folder: Path,
    names: Sequence[str],
    effort: Effort,
    *,
    methods: Sequence[str] = ("mfl",),
    n_jobs: int = 1,
) -> None:
    """Run the experiments' methods whose names begin so; points and times are written after every job."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = material.read(path)
    done: list[Done] = []
    start = time.perf_counter()
    wanted = (job for job in _jobs(names, _store(arrays, effort), effort) if _method(job).startswith(tuple(methods)))
    for one in finished(wanted, folder / "ledger.db", n_jobs=n_jobs):
        done.append(one)
        sys.stderr.write(f"{one.seconds:8.1f} s  {one.name}\n")
        write_rows(folder / "points.csv", all_rows(done))
        times = {
            "where": where(n_jobs),
            "total": time.perf_counter() - start,
            "jobs": {job.name: job.seconds for job in done},
        }
        replace_file(folder / "times.json", json.dumps(times, indent=1).encode())


def _jobs(names: Sequence[str], store: Store, effort: Effort) -> Iterator[Job]:
    for name in names:
        for protocol in PROTOCOLS.values():
            yield from jobs(name, protocol, store, effort)


def _store(arrays: dict[tuple[str, Input], material.Material], effort: Effort) -> Store:
    def store(name: str, inputs: Input) -> material.Material:
        return arrays[name, inputs]

    return shortened(store) if effort.quick else store


def _method(job: Job) -> str:
    return job.name.split()[4]


def where(processes: int = 1) -> str:
    """The machine and the versions that matter."""
    if device_of("auto").type == "cuda":
        processor = torch.cuda.get_device_name()
    else:
        threads = f"threads: {torch.get_num_threads()}" if processes == 1 else f"{processes} processes of one thread"
        processor = f"{platform.machine()}, {threads}"
    return f"{processor}, torch {torch.__version__}, Python {platform.python_version()}"


def main(arguments: Sequence[str]) -> None:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m experiments.device")
    commands = parser.add_subparsers(dest="command", required=True)
    to_prepare = commands.add_parser("prepare")
    to_run = commands.add_parser("run")
    for command in (to_prepare, to_run):
        command.add_argument("file", type=Path)
        command.add_argument("--seeds", type=int, default=10)
    to_run.add_argument("folder", type=Path)
    to_run.add_argument("names", nargs="*", default=EXPERIMENTS)
    to_run.add_argument("--quick", action="store_true")
    to_run.add_argument("--methods", default="mfl", help="beginnings of names, with commas between; empty: all")
    to_run.add_argument("--jobs", type=int, default=1, help="processes that work at once")
    given = parser.parse_args(arguments)
    if given.command == "prepare":
        prepare(given.file, given.seeds)
    else:
        effort = Effort.of(given.seeds, quick=given.quick)
        run(given.file, given.folder, given.names, effort, methods=given.methods.split(","), n_jobs=given.jobs)


if __name__ == "__main__":
    main(sys.argv[1:])
