"""What a command takes in a fresh process: processor time, of which most is spent on imports,
and modules imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.timing import Claim, print_table

REPEAT = 5
COLUMNS = ("--score", "p", "--group", "sex", "--label", "y")
CALLS: tuple[tuple[tuple[str, ...], float], ...] = (  # and the most seconds
    (("--help",), 0.2),
    (("audit", "scores.csv", *COLUMNS), 1.2),
    (("compare", "one.json", "two.json"), 0.8),
    (("count", "scores.csv", *COLUMNS, "--output", "three.state"), 0.8),
    (("merge", "one.state", "two.state"), 0.8),
)
COUNTED = """
import sys
from metrifair.__main__ import main
sys.argv = ["metrifair", *sys.argv[1:]]
try:
    main()
finally:
    sys.stderr.write(f"{len(sys.modules):,} modules")
"""


def processor_seconds(arguments: tuple[str, ...], folder: Path) -> float:
    """The least processor time of several runs: other processes only add to it."""
    seconds = []
    for _ in range(REPEAT):
        process = subprocess.Popen(
            [sys.executable, "-m", "metrifair", *arguments], stdout=subprocess.DEVNULL, cwd=folder
        )
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0, arguments
        seconds.append(used.ru_utime + used.ru_stime)
    return min(seconds)


def modules(arguments: tuple[str, ...], folder: Path) -> str:
    """How many modules a run imports."""
    command = [sys.executable, "-c", COUNTED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    return done.stderr.splitlines()[-1]


def prepare(folder: Path) -> None:
    """A file of 1,000 scores, and two audits and two counts of it."""
    generator = np.random.default_rng(0)
    sex, p = generator.choice(["f", "m"], 1_000), generator.random(1_000)
    rows = [f"{score:.6f},{group},{int(score > 0.4)}" for score, group in zip(p, sex, strict=True)]
    (folder / "scores.csv").write_text("\n".join(["p,sex,y", *rows]) + "\n")
    for name in ("one", "two"):
        for made in (("audit", "--json", f"{name}.json"), ("count", "--output", f"{name}.state")):
            command = [
                sys.executable,
                "-m",
                "metrifair",
                made[0],
                "scores.csv",
                *COLUMNS,
                *made[1:],
            ]
            subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)


def main() -> None:
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        prepare(folder)
        for arguments, most in CALLS:
            seconds = processor_seconds(arguments, folder)
            measured = f"{seconds:.2f} s, {modules(arguments, folder)}"
            rows.append(
                Claim(f"metrifair {arguments[0]}", measured, f"<= {most} s", seconds <= most)
            )
    print_table("Commands on 1,000 rows, processor time of a fresh process", rows)


if __name__ == "__main__":
    main()
