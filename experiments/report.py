"""Tables, figures and pages made anew from raw points.

``python -m experiments.report [--pack FILE.csv.gz] FOLDER POINTS.csv[.gz] ...`` writes, for every experiment
and protocol that the files hold, ``NAME-PROTOCOL.md`` and its figures into FOLDER; ``--pack`` keeps all points in one
file.
Times files beside the points (``times*.json``) say where they were computed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments.comparisons import EXPERIMENTS, completed, report
from experiments.rows import pack_rows, read_rows
from experiments.settings import PROTOCOLS


def main(arguments: Sequence[str]) -> None:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m experiments.report")
    parser.add_argument("--pack", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("points", type=Path, nargs="+")
    given = parser.parse_args(arguments)
    measured = read_rows(given.points)
    if given.pack is not None:
        pack_rows(given.pack, measured)
    rows, notes = completed(measured), computed_where(given.points)
    known = {(row.experiment, row.protocol) for row in rows}
    for experiment in EXPERIMENTS:
        for protocol in PROTOCOLS:
            if (experiment, protocol) in known:
                report(experiment, protocol, rows, given.folder, notes=notes, page=False)


def computed_where(files: Sequence[Path]) -> list[str]:
    """One sentence on each machine that the times files beside the points name."""
    times = sorted({path for file in files for path in file.parent.glob("times*.json")})
    machines = dict.fromkeys(str(json.loads(path.read_text())["where"]) for path in times)
    return [f"Computed on: {'; '.join(machines)}."] if machines else []


if __name__ == "__main__":
    main(sys.argv[1:])
