"""A step of a user's own network with the penalty against without, on a GPU (about two minutes);
without one, small batches on the CPU, which have no goals.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from torch import Tensor

from benchmarks.timing import Claim, print_table, shrunk
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty

Work = Callable[[], Any]

FEATURES = 100
WIDTH = 512


def milliseconds(work: Work, *, calls: int) -> float:
    """Time of one call, when the device has finished all of them."""
    _finish()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    _finish()
    return (time.perf_counter() - start) / calls * 1e3


def _finish() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def in_turns(*works: Work, calls: int, rounds: int = 7) -> list[float]:
    """Median times, measured in turns, so that a busy moment hits all."""
    for work in works:
        for _ in range(max(3, calls // 10)):
            work()
    times = [[milliseconds(work, calls=calls) for work in works] for _ in range(rounds)]
    return [median(by_work) for by_work in zip(*times, strict=True)]


class Training:
    """A network of three hidden layers, and a batch of a sampler, on a device."""

    def __init__(self, batch: int, device: str) -> None:
        generator = torch.Generator().manual_seed(0)
        rows = 2 * batch
        groups = (torch.rand(rows, generator=generator) < 0.4).long()
        x = torch.randn(rows, FEATURES, generator=generator)
        x[:, 0] += groups
        y = (torch.rand(rows, generator=generator) < x[:, 0].sigmoid()).float()
        sampler = StratifiedBatchSampler(groups, batch_size=batch, random_state=0)
        chosen = next(iter(sampler))
        self.x = x[chosen].to(device)
        self.y = y[chosen].to(device)
        self.groups = groups[chosen].to(device)
        self.penalty = UnfairnessPenalty(sampler=sampler)
        torch.manual_seed(0)
        layers: list[torch.nn.Module] = []
        for inputs in (FEATURES, WIDTH, WIDTH):
            layers += [torch.nn.Linear(inputs, WIDTH), torch.nn.ReLU()]
        layers += [torch.nn.Linear(WIDTH, 1), torch.nn.Flatten(0)]
        self.network = torch.nn.Sequential(*layers).to(device)
        capturable = device != "cpu"
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=1e-3, capturable=capturable)

    def plain_loss(self) -> Tensor:
        """The risk of the batch."""
        return torch.nn.functional.binary_cross_entropy_with_logits(self.network(self.x), self.y)

    def fair_loss(self) -> Tensor:
        """The risk and the penalty of the batch."""
        output = self.network(self.x)
        risk = torch.nn.functional.binary_cross_entropy_with_logits(output, self.y)
        return risk + self.penalty(output.sigmoid(), self.groups)

    def step(self, loss: Callable[[], Tensor]) -> Work:
        """A step of the optimizer on this loss."""

        def work() -> None:
            self.optimizer.zero_grad()
            loss().backward()
            self.optimizer.step()

        return work


def as_graph(training: Training, loss: Callable[[], Tensor]) -> Work:
    """The step as a CUDA graph."""
    work = training.step(loss)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def on_cpu() -> list[Claim]:
    """A step of a batch of 512 rows."""
    batch = shrunk(512)
    training = Training(batch, "cpu")
    works = [training.step(loss) for loss in (training.plain_loss, training.fair_loss)]
    plain, fair = in_turns(*works, calls=shrunk(20, 2))
    name = f"step of a network on the CPU, {batch:,} rows, {WIDTH} x 3"
    return [compared(name, plain, fair)]


def own_networks(device: str) -> list[Claim]:
    """Steps of batches of 4,096 and 65,536 rows."""
    claims = []
    for batch, more in ((shrunk(4_096), 0.35), (shrunk(65_536), 1.5)):
        training = Training(batch, device)
        calls = shrunk(max(20, 400_000 // batch), 2)
        plain, fair = in_turns(
            training.step(training.plain_loss), training.step(training.fair_loss), calls=calls
        )
        name = f"step of a network, {batch:,} rows, {WIDTH} x 3"
        claims.append(compared(f"{name}, eager", plain, fair, more))
        if batch > 5_000:
            continue
        compiled = Training(batch, device)
        compiled.fair_loss()  # sends the constants of the penalty to the device
        losses = [
            torch.compile(loss, fullgraph=True)
            for loss in (compiled.plain_loss, compiled.fair_loss)
        ]
        works = [compiled.step(loss) for loss in losses]
        plain, fair = in_turns(*works, calls=calls)
        claims.append(compared(f"{name}, compiled", plain, fair, 0.2))
        recorded = Training(batch, device)
        graphs = [as_graph(recorded, loss) for loss in (recorded.plain_loss, recorded.fair_loss)]
        plain, fair = in_turns(*graphs, calls=calls)
        claims.append(compared(f"{name}, CUDA graph", plain, fair, 0.2))
        recorded.penalty.check_batches()
    return claims


def compared(name: str, plain: float, fair: float, more: float | None = None) -> Claim:
    """The times without and with the penalty, and how much more it may take, if there is a goal."""
    measured = f"{fair / plain:.2f}x ({plain:.2f} -> {fair:.2f} ms)"
    if more is None:
        return Claim(name, measured, "", met=True)
    return Claim(name, measured, f"<= + {more:g} ms", fair - plain <= more)


def alone(device: str) -> list[Claim]:
    """The penalty and its gradient, without a network."""
    rows = shrunk(65_536)
    claims = []
    for groups, contrast, most in ((2, "pairs", 3.0), (10, "rest", 3.0), (10, "pairs", 3.0)):
        codes = torch.arange(rows, device=device) % groups
        scores = torch.rand(rows, device=device).requires_grad_()
        penalty = UnfairnessPenalty(n_groups=groups, contrast=contrast)  # type: ignore[arg-type]

        def work(
            penalty: UnfairnessPenalty = penalty, scores: Tensor = scores, codes: Tensor = codes
        ) -> None:
            torch.autograd.grad(penalty(scores, codes), scores)

        (time_taken,) = in_turns(work, calls=shrunk(50, 2))
        name = f"penalty and gradient alone, {rows:,} rows, {groups} groups, {contrast}"
        measured = f"{time_taken:.2f} ms"
        claims.append(Claim(name, measured, f"<= {most:g} ms", time_taken <= most))
        penalty.check_batches()
    return claims


def main() -> None:
    """Print all rows."""
    torch.set_num_threads(1)
    if torch.cuda.is_available():
        where = f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
        claims = [*own_networks("cuda"), *alone("cuda")]
    else:
        where = f"one thread, {platform.machine()}"
        claims = on_cpu()
    print_table(f"A step of a user's own network ({where})", claims)


if __name__ == "__main__":
    main()
