"""`python -m experiments NAME`: an experiment of the paper, or all of them, our figures beside
the printed ones.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path

from experiments import ALONE, NAMES, reproduce
from metrifair.errors import DataError, MissingExtra


def main(arguments: Sequence[str]) -> None:
    """Run what the arguments ask for, and print which pages there are to open."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="Run the paper's experiments."
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        choices=[*NAMES, *ALONE, "all"],
        help=f"{', '.join((*NAMES, *ALONE))} or all",
    )
    parser.add_argument(
        "--protocol",
        choices=["published", "corrected"],
        default="corrected",
        help="what the authors' code did, or (default) what the paper's text means",
    )
    parser.add_argument("--seeds", type=int, default=10, help="repetitions (default: 10)")
    parser.add_argument(
        "--quick", action="store_true", help="two seeds, few strengths, few epochs: a sketch"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes that work at once (default: 1)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("results"),
        help="folder for points, tables, figures and pages (default: results); finished work in it "
        "is not done again, "
        "unless the library's sources have changed",
    )
    duel = parser.add_argument_group(
        "duel", "parts of the duel, which goes on where it was stopped"
    )
    duel.add_argument("--sets", default="", help="data sets, such as drug,compas (default: all)")
    duel.add_argument("--splits", default="", help="splits, such as 0-4 or 0,3 (default: all)")
    duel.add_argument(
        "--minutes", type=float, default=inf, help="begin no task after so many minutes"
    )
    duel.add_argument("--wheels", type=Path, help="folder with the wheels of the other libraries")
    duel.add_argument("--only-ours", action="store_true", help="train our models alone")
    duel.add_argument(
        "--recorded", type=Path, help="earlier entries.json: other methods' entries come from there"
    )
    asked = parser.parse_args(arguments)
    begun = time.time()
    try:
        reproduce(
            asked.name,
            protocol=asked.protocol,
            seeds=asked.seeds,
            quick=asked.quick,
            n_jobs=asked.jobs,
            out=asked.out,
            parts={
                name: getattr(asked, name)
                for name in ("sets", "splits", "only_ours", "minutes", "wheels", "recorded")
            },
        )
    except (DataError, MissingExtra) as error:
        parser.error(" ".join([str(error), *getattr(error, "__notes__", [])]))
    print(f"Results: {asked.out.resolve()}")
    for name in NAMES if asked.name == "all" else (asked.name,):
        for page in sorted(asked.out.glob(f"{name}*.html")):
            if page.stat().st_mtime >= begun - 1:  # the clock of a file system is coarse
                print(f"Open in a browser: {page.resolve()}")


if __name__ == "__main__":
    main(sys.argv[1:])
