"""Many models trained at once: time per model and step, against one model alone; absolute
figures on a GPU.
"""

from __future__ import annotations

import platform
import time
from dataclasses import replace
from datetime import UTC, datetime
from statistics import median

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.timing import Claim, print_table, shrunk
from metrifair.batches.samples import Samples
from metrifair.problem.cells import Comparison
from metrifair.training import Schedule, train
from metrifair.training.models import Network
from metrifair.training.objective import BINARY, Objective

GROUPS = (Comparison((0,), (1,)),)


def data(rows: int, features: int) -> Samples:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, features, generator=generator)
    group = (torch.rand(rows, generator=generator) < 0.7).long()
    x[:, 0] += group
    y = (torch.rand(rows, generator=generator) < torch.sigmoid(x[:, 0] + x[:, 1])).float()
    return Samples(x, y, group, torch.ones(rows))


def seconds_per_step(
    samples: Samples, *, batch: int, seeds: int, strengths: int, steps: int, device: str = "cpu"
) -> float:
    """Time of one step of the whole stack; set-up is measured apart and taken off."""
    per_epoch = len(samples) // batch
    epochs = max(1, steps // per_epoch)

    def run(epochs: int) -> float:
        start = time.perf_counter()
        train(
            samples,
            Network(samples.x.shape[1], (16,)),
            Objective(BINARY, GROUPS),
            strengths=[0.0, *np.geomspace(1e-3, 10, strengths - 1)] if strengths > 1 else [1.0],
            seeds=range(seeds),
            schedule=Schedule(batch, epochs, 1e-3),
            device=device,
        )
        if device != "cpu":
            torch.cuda.synchronize()
        return time.perf_counter() - start

    run(1)
    short, long = run(1), run(1 + epochs)
    return (long - short) / (epochs * per_epoch)


def against_one_by_one() -> list[Claim]:
    rows = []
    for name, shape, batch, steps, target in (
        ("Drug", (1_413, 12), 128, 60, 15.0),
        ("Adult", (32_561, 12), 2_048, 15, 1.5),
    ):
        samples = data(shrunk(shape[0]), shape[1])
        settings = {"batch": min(batch, len(samples) // 2)}
        alone = seconds_per_step(
            samples, **settings, seeds=1, strengths=1, steps=shrunk(20 * steps, 2)
        )
        together = (
            seconds_per_step(samples, **settings, seeds=10, strengths=25, steps=shrunk(steps, 2))
            / 250
        )
        claim = f"250 models at once, {name} shape: time per model and step against one alone"
        measured = f"{alone / together:.1f}x ({alone * 1e6:.0f} -> {together * 1e6:.1f} us)"
        rows.append(Claim(claim, measured, f">= {target:g}x", alone / together >= target))
    return rows


def by_probabilities() -> list[Claim]:
    """A step with probabilities of two groups against a step with the groups."""
    rows = []
    for strengths in (1, 25):
        hard = data(shrunk(32_561), 12)
        share = torch.sigmoid(2 * hard.x[:, 0] - 1).double()
        row = torch.arange(len(hard)).repeat_interleave(2)  # an entry for each group
        by_group = torch.stack([1 - share, share], 1).flatten()
        soft = replace(hard.take(row), cell=torch.arange(len(row)) % 2, weight=by_group)
        settings = {"batch": min(2_048, len(hard) // 2), "seeds": 1, "strengths": strengths}
        # Other work on the machine changes from second to second: steps of both kinds take turns.
        times = [
            [seconds_per_step(part, **settings, steps=shrunk(75, 2)) for part in (hard, soft)]
            for _ in range(5)
        ]
        ratio = median(of_soft / of_hard for of_hard, of_soft in times)
        claim = f"a training step with group probabilities, {strengths} strength(s): against known groups"
        rows.append(Claim(claim, f"{ratio:.2f}x", "<= 1.3x", ratio <= 1.3))
    return rows


def train_plainly(samples: Samples, *, batch: int, epochs: int, hidden: int) -> None:
    """The usual PyTorch loop of one network, without a penalty."""
    net = torch.nn.Sequential(
        torch.nn.Linear(samples.x.shape[1], hidden),
        torch.nn.ReLU(),
        torch.nn.Linear(hidden, 1),
        torch.nn.Flatten(0),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(samples)).split(batch):
            optimizer.zero_grad()
            binary_cross_entropy_with_logits(net(samples.x[rows]), samples.y[rows]).backward()
            optimizer.step()


def against_a_plain_loop() -> list[Claim]:
    """Networks of a frontier of one seed against a plain loop of the same size; processor time."""
    rows, strengths, epochs = [], [0.0, *np.geomspace(1e-2, 10, 10)], shrunk(8, 1)
    for size, features, batch, hidden in ((5_000, 12, 128, 16), (20_000, 100, 2_048, 64)):
        samples = data(shrunk(size), features)
        settings = {"schedule": Schedule(min(batch, len(samples) // 2), epochs, 1e-3), "seeds": [0]}
        model, objective = Network(features, (hidden,)), Objective(BINARY, GROUPS)
        ratios = []
        for _ in range(3):
            start = time.process_time()
            train_plainly(samples, batch=batch, epochs=epochs, hidden=hidden)
            middle = time.process_time()
            train(samples, model, objective, strengths=strengths, **settings)
            ratios.append((time.process_time() - middle) / len(strengths) / (middle - start))
        ratio = median(ratios)
        claim = f"a network of a frontier, batch {batch:,} x {features}, per model: against a plain PyTorch loop"
        rows.append(Claim(claim, f"{ratio:.2f}x", "<= 1.2x", ratio <= 1.2))
    return rows


def on_gpu() -> list[Claim]:
    rows = []
    for batch, features, limit in ((2_048, 100, 0.30), (512, 100, 0.15), (128, 12, 0.06)):
        samples = data(16 * batch, features)
        step = (
            seconds_per_step(
                samples, batch=batch, seeds=10, strengths=25, steps=2_000, device="cuda"
            )
            * 1e3
        )
        claim = f"250 models, batch {batch:,} x {features} features, one step"
        rows.append(Claim(claim, f"{step:.3f} ms", f"<= {limit} ms", step <= limit))
    return rows


def main() -> None:
    torch.set_num_threads(1)
    if torch.cuda.is_available():
        where = f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {datetime.now(UTC):%Y-%m-%d}"
        print_table(f"Stacks of models ({where})", on_gpu())
    else:
        print_table(
            f"Stacks of models (one thread, {platform.machine()})",
            [*against_one_by_one(), *against_a_plain_loop(), *by_probabilities()],
        )


if __name__ == "__main__":
    main()
