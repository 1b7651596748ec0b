"""`python -m benchmarks.versions OLD`: this code against an earlier one, whose sources are in the
folder OLD.

One process of either version does each piece of work in turns, so that a busy moment hits both.
Processor time, the least of all rounds: other processes only add to it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.startup import COLUMNS, prepare
from benchmarks.timing import Claim, print_table

HERE = Path(__file__).parents[1] / "src"
SLOWER = 1.05  # ratios up to this are noise of a shared machine
WORKER = """
import inspect, sys, time
import numpy as np
import torch
import metrifair

torch.set_num_threads(1)
generator = np.random.default_rng(0)
many = [generator.normal(shift, size=1_000_000) for shift in (0.0, 0.1)]
few = [torch.as_tensor(side[:4_096]).requires_grad_() for side in many]
sex, y, p = generator.choice(["f", "m"], 20_000), generator.integers(2, size=20_000), generator.random(20_000)
resampled = {"resamples": 50}
if "options" in inspect.signature(metrifair.audit).parameters:
    resampled = {"options": metrifair.AuditOptions(**resampled)}


def gradient():
    for _ in range(20):
        metrifair.metrics.energy_distance(*few, unbiased=True).backward()


X = generator.normal(size=(45_000, 20))
group = np.where(X[:, 0] + generator.normal(size=45_000) > 0, "f", "m")
label = (X[:, :3].sum(1) + generator.normal(size=45_000) > 0).astype(int)
plain = metrifair.FairClassifier(0.0, model="linear").fit(X, label, sensitive_features=group)


def fit(model, rows):
    model.fit(X[:rows], label[:rows], sensitive_features=group[:rows])


WORK = {
    "linear fit, 45,000 rows x 20": lambda: fit(metrifair.FairClassifier(model="linear"), 45_000),
    "network fit, 5,000 rows x 20, 20 epochs": lambda: fit(
        metrifair.FairClassifier(model="mlp", epochs=20), 5_000
    ),
    "thresholds of a fitted model, 45,000 rows": lambda: fit(
        metrifair.ThresholdPostprocessor(plain, prefit=True), 45_000
    ),
    "thresholds of equalized odds, 45,000 rows": lambda: fit(
        metrifair.ThresholdPostprocessor(plain, prefit=True, criterion="equalized_odds"), 45_000
    ),
    "barycenter of a fitted model, 45,000 rows": lambda: fit(
        metrifair.BarycenterPostprocessor(plain, prefit=True), 45_000
    ),
    "XGBoost with the penalty, 30,000 rows x 20, 30 rounds": lambda: fit(
        metrifair.FairXGBClassifier(n_estimators=30, n_jobs=1), 30_000
    ),
    "distances of 2,000,000 scores": lambda: metrifair.metrics.distances(*many),
    "energy with gradient, 8,192 scores, 20 times": gradient,
    "audit of 20,000 rows, 50 resamples": lambda: metrifair.audit(
        y_true=y, y_pred=p, sensitive_features=sex, random_state=0, **resampled
    ),
    f"audit of a file, {int(sys.argv[2]):,} rows": lambda: metrifair.audit_file(
        sys.argv[1], score="p", group="sex", label="y", random_state=0
    ),
}
print(*WORK, sep="\\t", flush=True)
for name in sys.stdin:
    start = time.process_time()
    WORK[name.rstrip("\\n")]()
    print(time.process_time() - start, flush=True)
"""


def write_rows(path: Path, size: int) -> None:
    """A file of scores with groups and labels."""
    import polars as pl  # noqa: PLC0415

    generator = np.random.default_rng(0)
    sex, p = generator.choice(["f", "m"], size), generator.random(size)
    pl.DataFrame({"p": p, "sex": sex, "y": (generator.random(size) < p).astype(int)}).write_parquet(
        path
    )


def environment(source: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}


def worker(source: Path, rows: Path, size: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", WORKER, str(rows), str(size)],
        env=environment(source),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ready(process: subprocess.Popen[str]) -> list[str]:
    """The names of the pieces of work, once the process has its data."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n").split("\t")


def ask(process: subprocess.Popen[str], name: str) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def command_seconds(source: Path, arguments: tuple[str, ...], folder: Path) -> float:
    """Processor time of one fresh process."""
    command = [sys.executable, "-m", "metrifair", *arguments]
    process = subprocess.Popen(
        command, env=environment(source), cwd=folder, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    assert status == 0, arguments
    return used.ru_utime + used.ru_stime


def make_claim(name: str, times: list[list[float]]) -> Claim:
    """From the times (old, new) of each round."""
    before, after = map(min, zip(*times, strict=True))
    measured = f"{before:.2f} s before, {after:.2f} s now: {before / after:.2f}x"
    print(name, measured, flush=True)
    return Claim(name, measured, ">= 1x", after <= before * SLOWER)


def main(old: Path, rounds: int, size: int) -> None:
    claims = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_rows(folder / "rows.parquet", size)
        prepare(folder)
        workers = [worker(source, folder / "rows.parquet", size) for source in (old, HERE)]
        _, names = (ready(process) for process in workers)
        for name in names:
            times = [[ask(process, name) for process in workers] for _ in range(rounds)]
            claims.append(make_claim(name, times))
        for process in workers:
            process.communicate()
        for arguments in (
            ("audit", "scores.csv", *COLUMNS),
            ("count", "scores.csv", *COLUMNS, "--output", "c.state"),
        ):
            times = [
                [command_seconds(source, arguments, folder) for source in (old, HERE)]
                for _ in range(rounds)
            ]
            claims.append(make_claim(f"metrifair {arguments[0]}, 1,000 rows", times))
    print_table("This code against an earlier one, processor time", claims)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.versions", description=__doc__)
    parser.add_argument(
        "old", type=Path, help="folder that holds the earlier package, such as base/src"
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=7,
        help="how often each piece of work is done by either version",
    )
    parser.add_argument("--rows", type=float, default=1e7, help="rows of the audited file")
    given = parser.parse_args()
    if not (given.old / "metrifair").is_dir():
        parser.error(f"{given.old} holds no folder metrifair")
    main(given.old.resolve(), given.rounds, int(given.rows))
