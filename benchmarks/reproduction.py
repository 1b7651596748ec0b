"""One cell of the paper's tables, 10 seeds x 25 strengths, against 250 runs of the plain loop
with all pairs.
"""

from __future__ import annotations

import platform
import time

import torch

from benchmarks.stack import GROUPS, data
from benchmarks.timing import Claim, print_table, shrunk
from metrifair.batches.samples import Samples, StratifiedPasses, layout, rows_by_cell
from metrifair.training import Schedule, train
from metrifair.training.models import Network
from metrifair.training.objective import BINARY, Objective

STRENGTHS = [10 ** (-5 + 7 * k / 24) for k in range(25)]
SEEDS = range(10)


def unbiased_energy(u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """As one writes it down: three matrices of distances."""
    n, m = len(u), len(v)
    across = (u[:, None] - v).abs().sum() / (n * m)
    within = (u[:, None] - u).abs().sum() / (n * (n - 1)) + (v[:, None] - v).abs().sum() / (
        m * (m - 1)
    )
    return 2 * across - within


def plain_seconds(samples: Samples, *, batch: int, steps: int) -> float:
    """Time of one step of one model in an eager loop."""
    torch.manual_seed(0)
    features = samples.x.shape[1]
    network = torch.nn.Sequential(
        torch.nn.Linear(features, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-4)
    loss = torch.nn.BCEWithLogitsLoss()
    rows = rows_by_cell(samples.cell, 2)
    plan = layout([len(part) for part in rows], GROUPS, size=batch)
    generator, passes = (
        torch.Generator().manual_seed(0),
        StratifiedPasses([rows], plan, len(samples) // batch),
    )

    def run(count: int) -> float:
        start = time.perf_counter()
        done = 0
        while done < count:
            for rows_of_batch in passes([generator])[0]:
                output = network(samples.x[rows_of_batch]).squeeze(1)
                objective = loss(output, samples.y[rows_of_batch])
                objective = objective + unbiased_energy(
                    output[: plan.counts[0]], output[plan.counts[0] :]
                )
                optimizer.zero_grad()
                objective.backward()
                optimizer.step()
                done += 1
        return (time.perf_counter() - start) / done

    run(20)
    return run(steps)


def stack_seconds(samples: Samples, *, batch: int, epochs: int) -> float:
    """Time of one step of one model in the stack of 250, set-up included."""
    start = time.perf_counter()
    schedule = Schedule(batch, epochs, 5e-4)
    objective = Objective(BINARY, GROUPS, estimate="population", combine="sum", penalize="output")
    network = Network(samples.x.shape[1], (16,))
    train(
        samples,
        network,
        objective,
        strengths=STRENGTHS,
        seeds=SEEDS,
        schedule=schedule,
        standardize=False,
    )
    steps = epochs * (len(samples) // batch)
    return (time.perf_counter() - start) / (steps * len(STRENGTHS) * len(SEEDS))


def rows() -> list[Claim]:
    claims = []
    for name, shape, batch, steps, epochs, target in (
        ("Drug", (1_413, 12), 128, 600, 30, 50.0),
        ("Adult", (32_561, 12), 2_048, 45, 2, 20.0),
    ):
        samples = data(shrunk(shape[0]), shape[1])
        size = min(batch, len(samples) // 2)
        plain = plain_seconds(samples, batch=size, steps=shrunk(steps, 2))
        ours = stack_seconds(samples, batch=size, epochs=shrunk(epochs, 1))
        total = 500 * (shape[0] // batch) * 250
        claim = f"{name}: 250 runs of 500 epochs, plain loop with all pairs against one stack"
        measured = f"{plain / ours:.0f}x ({plain * total / 60:.0f} -> {ours * total / 60:.1f} min)"
        claims.append(Claim(claim, measured, f">= {target:g}x", plain / ours >= target))
    return claims


def main() -> None:
    torch.set_num_threads(1)
    print_table(
        f"The paper's cells (one thread, {platform.machine()}; both scaled from a few steps)",
        rows(),
    )


if __name__ == "__main__":
    main()
