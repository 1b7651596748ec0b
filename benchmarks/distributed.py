"""Beyond one process: a step of DDP with the penalty against without, and a round of XGBoost on
two Dask workers.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import distributed
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.nn.parallel import DistributedDataParallel

from benchmarks.timing import Claim, print_table
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty, global_mean

PROCESSES, BATCH, FEATURES, WIDTH, STEPS = 4, 4_096, 100, 512, 40
ROWS, SHORT, LONG = 200_000, 10, 40


def step_seconds(rank: int, world_size: int, folder: str) -> None:
    """Write down the median time of a step without and with the penalty, taken in turns, on the
    first rank.
    """
    torch.set_num_threads(1)
    if world_size > 1:
        distributed.init_process_group(
            "gloo", f"file://{folder}/meeting", rank=rank, world_size=world_size
        )
    torch.manual_seed(0)
    groups = torch.arange(10 * BATCH) % 2
    X = torch.randn(10 * BATCH, FEATURES) + 0.1 * groups[:, None]
    y = (X.sum(1) > 0).float()
    network = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1)
    )
    model = DistributedDataParallel(network) if world_size > 1 else network
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    sampler = StratifiedBatchSampler(
        groups, batch_size=BATCH, rank=rank, world_size=world_size, random_state=0
    )
    penalty, times = UnfairnessPenalty(sampler=sampler), ([], [])
    batches = [rows for _ in range(-(-STEPS // len(sampler))) for rows in sampler][:STEPS]
    for rows in batches:
        for strength, seconds in zip((0.0, 1.0), times, strict=True):
            start = time.perf_counter()
            output = model(X[rows]).squeeze(1)
            loss = global_mean(binary_cross_entropy_with_logits(output, y[rows], reduction="none"))
            if strength:
                loss = loss + strength * penalty(output.sigmoid(), groups[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seconds.append(time.perf_counter() - start)
    if rank == 0:
        Path(folder, "times").write_text(json.dumps([median(seconds) for seconds in times]))
    if world_size > 1:
        distributed.destroy_process_group()


def ddp_steps(processes: int) -> tuple[float, float]:
    """Seconds of a step of so many processes, without and with the penalty."""
    with tempfile.TemporaryDirectory() as folder:
        # an error there is one here
        torch.multiprocessing.spawn(step_seconds, (processes, folder), processes)
        plain, fair = json.loads(Path(folder, "times").read_text())
    return plain, fair


def dask_rounds() -> tuple[float, float]:
    """Seconds of a round on two Dask workers, without and with the penalty: a long training
    less a short one.
    """
    import dask.array as da  # noqa: PLC0415
    from dask.distributed import Client, LocalCluster  # noqa: PLC0415

    from metrifair import FairXGBClassifier  # noqa: PLC0415

    generator = np.random.default_rng(0)
    X = generator.normal(size=(ROWS, 20))
    a = (generator.random(ROWS) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    y = (X[:, :3].sum(1) + generator.normal(size=ROWS) > 0).astype(int)
    seconds: dict[float, list[float]] = {0.0: [], 3.0: []}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        tables = [
            da.from_array(array, chunks=(ROWS // 4, -1)[: array.ndim]).persist()
            for array in (X, y, a)
        ]
        for _ in range(4):  # in turns; the first warms up, the quickest of the others counts
            for strength, per_round in seconds.items():
                times = []
                for rounds in (SHORT, LONG):
                    start = time.perf_counter()
                    model = FairXGBClassifier(
                        strength, expected_groups=False, n_estimators=rounds, n_jobs=1
                    )
                    model.fit(tables[0], tables[1], sensitive_features=tables[2])
                    times.append(time.perf_counter() - start)
                per_round.append((times[1] - times[0]) / (LONG - SHORT))
    return min(seconds[0.0][1:]), min(seconds[3.0][1:])


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for processes in (1, PROCESSES):
        plain, fair = ddp_steps(processes)
        shape = f"batch {BATCH:,}, {FEATURES} x {WIDTH} network"
        claim = f"DDP step of {processes} process(es), {shape}: with the penalty"
        measured = f"{1e3 * fair:.1f} ms against {1e3 * plain:.1f} ms without: {fair / plain:.2f}x"
        rows.append(Claim(claim, measured, "at most 2x", fair / plain <= 2))
    plain, fair = dask_rounds()
    measured = f"{1e3 * fair:.1f} ms against {1e3 * plain:.1f} ms plain: {fair / plain:.2f}x"
    claim = f"XGBoost on 2 Dask workers, {ROWS:,} rows x 20: a round with the penalty"
    rows.append(Claim(claim, measured, "", met=True))
    print_table("Beyond one process (one thread each)", rows)


if __name__ == "__main__":
    main()
