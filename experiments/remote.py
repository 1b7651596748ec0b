"""Computing elsewhere: arrays go there in one file, raw points come back as csv, tables are made of
them here.

``python -m experiments.remote prepare FILE.npz`` writes the arrays of all data sets; it needs the
raw data. ``python -m experiments.remote run [--quick] FILE.npz FOLDER [NAME ...]`` trains from
them; it needs neither raw data nor any extra. Both protocols are run, unless --protocols says
which; finished work found in FOLDER is not done again by the same sources of the library. ``python
-m experiments.remote report [--pack FILE.csv.gz] FOLDER POINTS.csv[.gz] ...`` writes, for every
experiment and protocol that the files hold, ``NAME-PROTOCOL.md`` and its figures into FOLDER;
``--pack`` keeps all points in one file. Times files beside the points (``times*.json``) say where
they were computed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from experiments.comparisons import EXPERIMENTS, comparison_page, completed, runs
from experiments.data import source, write_arrays
from experiments.online import kept_page
from experiments.page import Page, machine, write_page
from experiments.results import read_csv, write_csv
from experiments.runs import FinishedRun, all_results, finished
from experiments.settings import PROTOCOLS, Effort
from metrifair.support.files import replace_file


def run(
    arrays: Path,
    folder: Path,
    names: Sequence[str],
    effort: Effort,
    *,
    protocols: Sequence[str] = tuple(PROTOCOLS),
    methods: Sequence[str] = ("mfl",),
    n_jobs: int = 1,
) -> None:
    """Run the experiments' methods whose names begin so; points and times are written after
    every run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known, start = source(effort, arrays), time.perf_counter()
    wanted = (
        one
        for name in names
        for protocol in protocols
        for one in runs(name, PROTOCOLS[protocol], known, effort)
        if one.name.split()[4].startswith(tuple(methods))
    )
    done: list[FinishedRun] = []
    for one in finished(wanted, folder / "ledger.db", n_jobs=n_jobs):
        done.append(one)
        sys.stderr.write(f"{one.seconds:8.1f} s  {one.name}\n")
        write_csv(folder / "points.csv", all_results(done))
        took = {run.name: run.seconds for run in done}
        times = {"where": machine(n_jobs), "total": time.perf_counter() - start, "jobs": took}
        replace_file(folder / "times.json", json.dumps(times, indent=1).encode())


def pages(points: Sequence[Path]) -> Iterator[tuple[str, Page]]:
    """The pages, by name, of all experiments and protocols that the files of points hold.

    Those of a folder "online" hold the records of one online experiment each, and are named after
    it.
    """
    yield from (kept_page(path) for path in points if path.parent.name == "online")
    points = [path for path in points if path.parent.name != "online"]
    results = completed(read_csv(points))
    times = sorted({path for file in points for path in file.parent.glob("times*.json")})
    machines = dict.fromkeys(str(json.loads(path.read_text())["where"]) for path in times)
    notes = [f"Computed on: {'; '.join(machines)}."] if machines else []
    known = {(one.experiment, one.protocol) for one in results}
    for experiment in EXPERIMENTS:
        for protocol in PROTOCOLS:
            if (experiment, protocol) in known:
                yield (
                    f"{experiment}-{protocol}",
                    comparison_page(experiment, protocol, results, notes=notes),
                )


def main(arguments: Sequence[str]) -> None:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m experiments.remote")
    commands = parser.add_subparsers(dest="command", required=True)
    prepare, train, report = (commands.add_parser(name) for name in ("prepare", "run", "report"))
    for command in (prepare, train):
        command.add_argument("file", type=Path)
        command.add_argument("--seeds", type=int, default=10)
    for command in (train, report):
        command.add_argument("folder", type=Path)
    train.add_argument("names", nargs="*", default=EXPERIMENTS)
    train.add_argument("--quick", action="store_true")
    train.add_argument(
        "--methods", default="mfl", help="beginnings of names, with commas between; empty: all"
    )
    train.add_argument("--protocols", default=",".join(PROTOCOLS), help="with commas between")
    train.add_argument("--jobs", type=int, default=1, help="processes that work at once")
    report.add_argument("points", type=Path, nargs="+")
    report.add_argument("--pack", type=Path)
    given = parser.parse_args(arguments)
    if given.command == "prepare":
        write_arrays(given.file, seeds=given.seeds)
    elif given.command == "run":
        effort = Effort.of(given.seeds, quick=given.quick)
        wanted = {"protocols": given.protocols.split(","), "methods": given.methods.split(",")}
        run(given.file, given.folder, given.names, effort, n_jobs=given.jobs, **wanted)
    else:
        if given.pack is not None:
            write_csv(given.pack, read_csv(given.points))
        for name, page in pages(given.points):
            write_page(page, given.folder, name, html=False)


if __name__ == "__main__":
    main(sys.argv[1:])
