"""A nursery of sweeps that are killed: imports everything once, then forks a process for each run
it is asked for.

Each line of standard input is a task in JSON; the answer is one line: for each process, True if it
was killed. A run appends what happens to a log: ``trained JOB`` after a training, ``noted JOB``
after the ledger's transaction.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from metrifair import FairClassifier, SearchOptions, frontier
from metrifair.estimators import fit_stack
from tests.seams.tradeoff import Entry, Job, Ledger, Outcome, out_of_fold, sweep
from tests.seams.tradeoff import frontier as tradeoff

SEEDS, STRENGTHS = 5, (0.0, 0.5, 4.0)
FOLDS = 2
JOBS = {Job(strength, seed).name for seed in range(SEEDS) for strength in STRENGTHS}


def table_of(outcomes: Iterable[Outcome]) -> str:
    """The figures of all configurations as JSON lines, in full precision."""
    return "\n".join(json.dumps(asdict(outcome.point), sort_keys=True) for outcome in outcomes)


def key(run: str, job: str) -> str:
    """The name of a job in one fold, whose run in the ledger has a name of its own."""
    return f"{run[:12]} {job}"


class Noting(Ledger):
    """Sound, and tells the log."""

    log = -1

    def add(self, entries: Mapping[str, Entry]) -> None:
        self.write(entries)
        append(self.log, "noted", [key(self.run, job) for job in entries])

    def write(self, entries: Mapping[str, Entry]) -> None:
        super().add(entries)


class Forgetful(Noting):
    """Leaves one entry out."""

    def write(self, entries: Mapping[str, Entry]) -> None:
        super().write(dict(list(entries.items())[1:]))


class Early(Noting):
    """Commits before the figures are complete."""

    def write(self, entries: Mapping[str, Entry]) -> None:
        super().write({job: Entry({"failed": True}) for job in entries})
        time.sleep(0.1)
        super().write(entries)


class Late(Noting):
    """Keeps what is finished in memory for a while."""

    def write(self, entries: Mapping[str, Entry]) -> None:
        self.waiting = {**getattr(self, "waiting", {}), **entries}
        if len(self.waiting) > 8:
            super().write(self.waiting)
            self.waiting = {}


LEDGERS = {kind.__name__: kind for kind in (Noting, Forgetful, Early, Late)}


class OneByOne(FairClassifier):
    """Not one of ours to the sweep, which fits it value by value."""

    log = -1
    run = ""

    def fit(self, *given: Any, **named: Any) -> OneByOne:
        super().fit(*given, **named)
        append(self.log, "trained", [key(self.run, Job(self.strength, self.random_state).name)])
        return self


def append(log: int, event: str, jobs: list[str]) -> None:
    os.write(log, "".join(f"{event} {job}\n" for job in jobs).encode())


def sweep_once(task: dict[str, Any]) -> None:
    """The run; a table of all test figures when it is done."""
    log = os.open(task["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def counted(*given: Any, **named: Any) -> Any:
        models = fit_stack(*given, **named)
        append(
            log,
            "trained",
            [
                key(OneByOne.run, Job(value, seed).name)
                for seed in named["seeds"]
                for value in named["strengths"]
            ],
        )
        return models

    Noting.log = OneByOne.log = log
    sweep.fit_stack = counted
    out_of_fold.Ledger = LEDGERS[task["kind"]]
    stored = tradeoff.FoldLedger

    def of_fold(path: str, run: str, **shape: int) -> Any:
        OneByOne.run = run
        return stored(path, run, **shape)

    tradeoff.FoldLedger = of_fold
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=120)
    X = rng.normal(size=(120, 2)) + group[:, None]
    y = (X.sum(1) + rng.normal(size=120) > 1).astype(int)
    estimator = (
        FairClassifier(epochs=2, model="mlp") if task["way"] == "stacks" else OneByOne(epochs=2)
    )
    front = frontier(
        estimator,
        X,
        y,
        sensitive_features=group,
        strengths=STRENGTHS,
        folds=FOLDS,
        random_state=0,
        search=SearchOptions(seeds=SEEDS, ledger=task["ledger"]),
    )
    part = Path(f"{task['table']}.{os.getpid()}")
    part.write_text(table_of(front._trade_off.outcomes))
    part.replace(task["table"])


def forked(task: dict[str, Any]) -> int:
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        sweep_once(task)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def main() -> None:
    """Serve tasks until there are no more."""
    for line in sys.stdin:
        task = json.loads(line)
        processes = [forked(task) for _ in range(task["copies"])]
        if task["delay"] is not None:
            time.sleep(task["delay"])
            for process in processes:
                os.kill(process, signal.SIGKILL)
        codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
        print(json.dumps(codes), flush=True)


if __name__ == "__main__":
    main()
