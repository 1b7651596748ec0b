"""`python -m benchmarks [NAME ...]`: all benchmarks, or those named; `--help` lists them."""

import argparse
import importlib
from pathlib import Path

from benchmarks import record

NAMES = (
    "core",
    "stack",
    "tradeoff",
    "peers",
    "thresholds",
    "defaults",
    "auditing",
    "files",
    "startup",
    "studio",
    "reproduction",
    "boosting",
    "distributed",
    "cells",
    "numbers",
    "groups",
    "cuda_penalty",
)

if __name__ == "__main__":  # processes that a benchmark starts import this file too
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Ratios against peers, measured in one run.",
        epilog="How often intervals hold is simulated apart, in an hour and more, with options of "
        "their own: "
        "python -m benchmarks.differences, .groups, .intervals, .monitoring, .number_audits.",
    )
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help=f"{', '.join(NAMES)}; all of them where none is named",
    )
    parser.add_argument(
        "--record",
        type=Path,
        help=f"add the ratios to this file ({record.KEPT} is the source of the tables in README "
        "and docs)",
    )
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; choose from {', '.join(NAMES)}")
    for name in given.names or NAMES:
        importlib.import_module(f"benchmarks.{name}").main()
        if given.record:
            record.add(given.record)
