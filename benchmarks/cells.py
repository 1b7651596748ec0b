"""All cells of our method in the paper's tables, 10 seeds x all strengths, by two processes:
minutes for each variant.

Needs the raw data (METRIFAIR_DATA) and, for all of it, an hour; ``python -m benchmarks cells``.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.timing import Claim, print_table
from experiments.data import source
from experiments.mfl import mfl_runs
from experiments.runs import all_results, finished
from experiments.settings import PROTOCOLS, Effort, Input, Protocol

TABLES = ("regression", "classification", "equal-opportunity")
PROCESSES, MINUTES = 2, 45


def variant(protocol: Protocol, inputs: Input, effort: Effort) -> Claim:
    """Every table under one protocol with one kind of input."""
    arrays, setting = source(effort), replace(protocol, inputs=(inputs,))
    runs = [
        run for table in TABLES for run in mfl_runs(table, setting, arrays, effort, device="cpu")
    ]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        models = len(all_results(finished(runs, Path(folder) / "ledger.db", n_jobs=PROCESSES)))
    minutes = (time.perf_counter() - start) / 60
    claim = f"{protocol.name}, {inputs} inputs: {len(runs)} cells, {models:,} models"
    return Claim(claim, f"{minutes:.1f} min", f"<= {MINUTES} min", minutes <= MINUTES)


def main() -> None:
    for protocol in PROTOCOLS.values():
        for inputs in protocol.inputs:
            print_table(
                f"All cells of our method, {PROCESSES} processes",
                [variant(protocol, inputs, Effort.of(10))],
            )


if __name__ == "__main__":
    main()
