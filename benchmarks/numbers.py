"""Attributes that are numbers: what dominance sums buy."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from benchmarks.timing import Claim, peak_memory_above, print_table, seconds, shrunk
from metrifair.metrics import distance_covariance, energy_dependence


def pairwise(z: Tensor, a: Tensor) -> Tensor:
    """The unbiased squared distance covariance, with all pairs in memory, by autograd."""
    n = len(z)
    distances, attribute_distances = (z[:, None] - z).abs(), (a[:, None] - a).abs()
    rows, attribute_sums = distances.sum(1), attribute_distances.sum(1)
    first = (distances * attribute_distances).sum() / (n * (n - 3))
    second = (rows * attribute_sums).sum() / (n * (n - 2) * (n - 3))
    return (
        first - 2 * second + rows.sum() * attribute_sums.sum() / (n * (n - 1) * (n - 2) * (n - 3))
    )


def sample(n: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(n, generator=generator).double()
    return (torch.randn(n, generator=generator).double() + a / 2).requires_grad_(), a


def step(n: int) -> None:
    z, a = sample(n)
    energy_dependence(z, a, unbiased=True).backward()


def main() -> None:
    import dcor  # noqa: PLC0415 - half a minute: it compiles at import

    torch.set_num_threads(1)
    z, a = sample(shrunk(8_192))
    slow = seconds(lambda: pairwise(z, a).backward(), repeat=3)
    fast = seconds(lambda: distance_covariance(z, a, unbiased=True).backward())
    step(shrunk(1_000_000))
    start = time.process_time()  # that of one thread, as long on a busy machine
    step(shrunk(1_000_000))
    many = time.process_time() - start
    values = [part.detach().numpy() for part in sample(shrunk(65_536))]
    ours, theirs = (
        seconds(lambda: distance_covariance(*values), repeat=3),
        seconds(lambda: dcor.distance_covariance_sqr(*values), repeat=3),
    )
    used = (
        peak_memory_above(lambda: sample(shrunk(1_000_000)), lambda: step(shrunk(1_000_000))) / 1e6
    )
    claim = "distance covariance of scores and a number"
    print_table(
        "Attributes that are numbers",
        [
            Claim(
                f"{claim}, value and gradient, 8,192 rows: against pairs",
                f"{slow / fast:.0f}x",
                ">= 50x",
                slow / fast >= 50,
            ),
            Claim(
                f"{claim}, value and gradient, 1,000,000 rows",
                f"{many:.1f} s of processor time",
                "<= 5 s",
                many <= 5,
            ),
            Claim(
                f"{claim}, 65,536 rows: against dcor",
                f"{theirs / ours:.1f}x",
                ">= 1x",
                theirs / ours >= 1,
            ),
            Claim(
                f"{claim}, 1,000,000 rows: peak memory", f"{used:.0f} MB", "< 1,000 MB", used < 1000
            ),
        ],
    )
