"""The core: what one sort buys."""

from __future__ import annotations

import time
from collections import deque
from statistics import median

import numpy as np
import torch
from scipy import stats
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.timing import Claim, alternating, peak_memory_above, print_table, seconds, shrunk
from metrifair import FairClassifier
from metrifair.batches.samples import Samples
from metrifair.metrics import distances, energy_distance
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty, covering
from metrifair.problem.cells import Comparison
from metrifair.training import Schedule, train
from metrifair.training.models import Network
from metrifair.training.objective import BINARY, Objective


def pairwise_energy(u: Tensor, v: Tensor) -> Tensor:
    """The U-statistic as the paper writes it, with all pairs in memory."""
    n, m = len(u), len(v)
    within = (u[:, None] - u).abs().sum() / (n * (n - 1)) + (v[:, None] - v).abs().sum() / (
        m * (m - 1)
    )
    return 2 * (u[:, None] - v).abs().mean() - within


def scores(n: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    u, v = (torch.randn(n // 2, generator=generator).requires_grad_() for _ in range(2))
    return u, v


def sorted_step(u: Tensor, v: Tensor) -> None:
    energy_distance(u, v, unbiased=True).backward()


def against_pairs() -> list[Claim]:
    rows = []
    for n, target in ((2_048, 25), (8_192, 300)):
        u, v = scores(shrunk(n))
        slow = seconds(lambda u=u, v=v: pairwise_energy(u, v).backward(), repeat=5)
        fast = seconds(lambda u=u, v=v: sorted_step(u, v))
        claim = f"energy, value and gradient, {n:,} scores: sorted against pairwise"
        rows.append(Claim(claim, f"{slow / fast:.0f}x", f">= {target}x", slow / fast >= target))
    return rows


def memory() -> list[Claim]:
    many = shrunk(1_000_000)
    used = peak_memory_above(lambda: scores(many), lambda: sorted_step(*scores(many))) / 1e6
    return [
        Claim(
            "energy, 1,000,000 scores, value and gradient: peak memory",
            f"{used:.0f} MB",
            "< 300 MB",
            used < 300,
        )
    ]


def against_scipy() -> list[Claim]:
    generator = np.random.default_rng(0)
    u, v = (generator.normal(shift, size=shrunk(1_000_000)) for shift in (0.0, 0.1))

    def three_calls() -> None:
        stats.ks_2samp(u, v, method="asymp")
        stats.wasserstein_distance(u, v)
        stats.energy_distance(u, v)

    theirs, ours = seconds(three_calls, repeat=3), seconds(lambda: distances(u, v), repeat=3)
    claim = "Kolmogorov, W1 and energy of 2,000,000 scores: one call against scipy's three"
    return [Claim(claim, f"{theirs / ours:.1f}x", ">= 5x", theirs / ours >= 5)]


def training_step() -> list[Claim]:
    """A linear model at batch 512 on 100 features, Adam, with and without the penalty."""
    generator = torch.Generator().manual_seed(0)
    x, y = (
        torch.randn(512, 100, generator=generator),
        (torch.rand(512, generator=generator) < 0.5).float(),
    )
    groups = (torch.rand(512, generator=generator) < 0.6).long()
    model = torch.nn.Linear(100, 1)
    sampler = StratifiedBatchSampler(groups, batch_size=512, random_state=0)
    (rows,) = sampler
    x, y, groups, penalty = x[rows], y[rows], groups[rows], UnfairnessPenalty(sampler=sampler)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(*, penalized: bool) -> None:
        optimizer.zero_grad()
        output = model(x).squeeze(-1)
        loss = binary_cross_entropy_with_logits(output, y)
        if penalized:
            loss = loss + penalty(output.sigmoid(), groups)
        loss.backward()
        optimizer.step()

    plain, fair = alternating(lambda: step(penalized=False), lambda: step(penalized=True))
    claim = "training step, linear model, batch 512: with the penalty against without"
    ours = [seconds_per_own_step(strength=strength) for strength in (0.0, 1.0)]
    return [
        Claim(
            f"{claim}, our loop ({ours[0] * 1e6:.0f} us)",
            f"{ours[1] / ours[0]:.2f}x",
            "<= 2x",
            ours[1] / ours[0] <= 2,
        ),
        Claim(
            f"{claim}, UnfairnessPenalty in a bare loop ({plain * 1e6:.0f} us)",
            f"{fair / plain:.2f}x",
            "<= 1.4x",
            fair / plain <= 1.4,
        ),
    ]


def streams() -> list[Claim]:
    """Samples a second of covering batches, and of learning from chunks of 2,000."""
    count, generator = shrunk(20_000), np.random.default_rng(0)
    a = generator.integers(2, size=count)
    x = generator.normal(size=(count, 10)) + a[:, None]
    y = (x.sum(1) + generator.normal(size=count) > 5).astype(int)
    single = list(zip(torch.as_tensor(x).unbind(0), y.tolist(), a.tolist(), strict=True))

    def learn() -> None:
        model = FairClassifier(1.0, random_state=0, model="mlp")
        for rows in np.array_split(np.arange(count), 10):
            model.partial_fit(x[rows], y[rows], sensitive_features=a[rows])

    work = {
        "nn.covering, batch 32": lambda: deque(covering(single, batch_size=32), maxlen=0),
        "partial_fit, batch 32, 10 features, 16 units": learn,
    }
    # The shortest of several: no ratio here that a busy moment would hit on both sides.
    took = {
        claim: min(seconds(call, repeat=1, at_least=0) for _ in range(5))
        for claim, call in work.items()
    }
    speeds = {claim: count / time_taken for claim, time_taken in took.items()}
    return [
        Claim(f"{claim}: samples a second", f"{speed:,.0f}", ">= 50,000", speed >= 50_000)
        for claim, speed in speeds.items()
    ]


def seconds_per_own_step(*, strength: float) -> float:
    """A step of ``train``: rows gathered, standardized, weighted; the median of differences of
    long and short runs.
    """
    generator = torch.Generator().manual_seed(0)
    rows = shrunk(8_192, 1_024)
    x, group = (
        torch.randn(rows, 100, generator=generator),
        (torch.rand(rows, generator=generator) < 0.4).long(),
    )
    samples = Samples(x, (x[:, 0] > 0).float(), group, torch.ones(rows))
    objective = Objective(BINARY, (Comparison((0,), (1,)),) if strength else ())

    def run(epochs: int) -> float:
        start = time.perf_counter()
        train(
            samples,
            Network(100),
            objective,
            strengths=[strength],
            seeds=[0],
            schedule=Schedule(512, epochs, 1e-3),
        )
        return time.perf_counter() - start

    run(2)
    return median((run(25) - run(5)) / (20 * rows // 512) for _ in range(5))


def growth() -> list[Claim]:
    rows = []
    for small, large in ((100_000, 400_000), (400_000, 1_600_000), (1_000_000, 4_000_000)):
        few, many = scores(shrunk(small)), scores(shrunk(large))
        before, after = alternating(
            lambda few=few: sorted_step(*few), lambda many=many: sorted_step(*many), rounds=3
        )
        claim = f"energy, {small:,} -> {large:,} scores: time"
        rows.append(Claim(claim, f"{after / before:.1f}x", "<= 5x", after / before <= 5))
    return rows


def main() -> None:
    torch.set_num_threads(1)
    rows = [*memory(), *against_pairs(), *against_scipy(), *training_step(), *streams(), *growth()]
    print_table("Core (one thread)", rows)


if __name__ == "__main__":
    main()
