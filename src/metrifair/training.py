"""The loop: all strengths and seeds of a model trained at once on stratified batches.

Shapes never change from step to step and no step asks the device for an answer, so that on an accelerator a step
is recorded once and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.batches.dealing import Dealer, stratified_dealer
from metrifair.descent import Adam
from metrifair.models import Model, member, stacked
from metrifair.objective import Objective
from metrifair.progress import Progress
from metrifair.samples import Batch, Samples, Sides

_ROWS_AT_ONCE = 65_536

Step: TypeAlias = Callable[[Tensor, Tensor], None]
"""One step of all models, on rows (seeds, size) with loss weights of that shape."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train."""

    batch_size: int
    epochs: int
    learning_rate: float
    learning_rate_decay: float = 1.0  # factor after each epoch
    weight_decay: float = 0.0


class Scaling(NamedTuple):
    """Centre and spread of each feature, (seeds, features); a constant feature has spread 1."""

    mean: Tensor
    scale: Tensor

    def apply(self, x: Tensor) -> Tensor:
        """Features (seeds, n, features) in standard units."""
        return (x - self.mean.unsqueeze(1)) / self.scale.unsqueeze(1)


@dataclass(frozen=True, eq=False)
class Predictor:
    """One trained model: features in, outputs out."""

    model: Model
    parameters: dict[str, Tensor]  # leading axes (1, 1)
    scaling: Scaling  # (1, features)

    @torch.no_grad()
    def output(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Outputs (n,), or (n, outputs), in pieces so that memory stays bounded."""
        pieces = torch.as_tensor(x).split(_ROWS_AT_ONCE)
        outputs = [self.model(self.parameters, self.scaling.apply(piece.unsqueeze(0)))[0, 0] for piece in pieces]
        return torch.cat(outputs).numpy()


class Trained(NamedTuple):
    """A stack of trained models."""

    model: Model
    parameters: dict[str, Tensor]  # leading axes (seeds, strengths)
    scaling: Scaling
    failed: Tensor  # (seeds, strengths): True where training diverged; such parameters are all 0

    def predictor(self, seed: int, strength: int) -> Predictor:
        """The model at these places of the stack, in double precision on the CPU."""
        one = member(self.parameters, seed, strength)
        scaling = Scaling(*(part[seed : seed + 1].cpu().double() for part in self.scaling))
        return Predictor(self.model, {name: value.cpu().double() for name, value in one.items()}, scaling)


def train(
    data: Samples,
    model: Model,
    objective: Objective,
    *,
    strengths: Sequence[float],
    seeds: Sequence[int],
    schedule: Schedule,
    rows: Sequence[Tensor] | None = None,
    dealer: Dealer | None = None,
    path: bool = False,
    standardize: bool = True,
    device: torch.device | str = "cpu",
    verbose: bool = False,
) -> Trained:
    """Models of every seed (initialisation and batches) and every strength.

    ``rows`` gives each seed its own training rows of the shared data; else all seeds use all rows. ``dealer`` gives
    other batches than stratified ones. With ``path`` the strengths are trained one after the other, each from where the
    one before ended.
    """
    device = torch.device(device)
    objective = _drawing_on(device, objective)
    own = list(rows) if rows is not None else [torch.arange(len(data))] * len(seeds)
    dealer = dealer or stratified_dealer(
        data, own, objective.comparisons, batch_size=schedule.batch_size, least=2 if objective.unbiased else 1
    )
    dtype = torch.float64 if dealer.whole else torch.float32
    x, y = data.x.to(device, dtype), data.y.to(device)
    y = y.to(dtype) if y.is_floating_point() else y
    scaling = Scaling(*(part.to(device, dtype) for part in _scaling(data, own, standardize=standardize)))
    rounds = [[value] for value in strengths] if path else [list(strengths)]
    start = stacked([model.initial(seed) for seed in seeds], len(rounds[0]))
    adam = Adam(
        {name: value.to(device, dtype) for name, value in start.items()},
        learning_rate=schedule.learning_rate,
        weight_decay=schedule.weight_decay,
    )
    strength = torch.tensor(rounds[0], dtype=dtype, device=device)
    sides = tuple(_on(device, side) for side in dealer.sides) if any(strengths) else ()

    def step(chosen: Tensor, weight: Tensor) -> None:
        """One step of all models on the rows (seeds, size), which count so much."""
        features = scaling.apply(x[chosen])
        batch = Batch(Samples(features, y[chosen].unsqueeze(1), chosen, weight.unsqueeze(1)), sides)
        terms = objective(model(adam.parameters, features, training=True), batch)
        (terms.risk + strength * terms.unfairness).sum().backward()
        adam.step()

    @torch.no_grad()
    def outputs() -> Tensor:
        """What the models, as they are now, return for all rows of the data."""
        return model(adam.parameters, scaling.apply(x.expand(len(seeds), *x.shape)))

    run: Step = step
    if device.type == "cuda":
        chosen = torch.zeros(len(seeds), dealer.size, dtype=torch.long, device=device)
        run = _recorded(step, adam, chosen, torch.ones_like(chosen, dtype=dtype), objective)
    failed = torch.zeros(len(seeds), len(rounds[0]), dtype=torch.bool, device=device)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    ends: list[tuple[dict[str, Tensor], Tensor]] = []
    total = schedule.epochs * len(rounds)
    with Progress("training", total, shown=verbose) as progress:
        upcoming = dealer.deal(generators, outputs)
        for epoch in range(1, total + 1):
            for chosen, weight in upcoming.steps(device, dtype):
                run(chosen, weight)
            adam.learning_rate.mul_(schedule.learning_rate_decay)
            if epoch < total:
                upcoming = dealer.deal(generators, outputs)  # before the device is waited for: it is still at work
            failed |= _give_up(adam)
            if epoch % schedule.epochs == 0:
                ends.append(_end(adam, failed))
                strength.copy_(torch.tensor(rounds[min(len(ends), len(rounds) - 1)], dtype=dtype))
                adam.learning_rate.fill_(schedule.learning_rate)
            progress.show(epoch)
    parameters = {name: torch.cat([end[name] for end, _ in ends], 1) for name in start}
    return Trained(model, parameters, scaling, torch.cat([lost for _, lost in ends], 1))


def _drawing_on(device: torch.device, objective: Objective) -> Objective:
    """The objective with projections of vector scores drawn where they are used."""
    if device.type == "cpu":
        return objective
    return replace(objective, generator=torch.Generator(device).manual_seed(objective.generator.initial_seed()))


def _end(adam: Adam, failed: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """Copies of the parameters, all 0 where training failed, and where that was."""
    parameters = {name: value.detach().clone() for name, value in adam.parameters.items()}
    for value in parameters.values():
        value[failed] = 0.0
    return parameters, failed.clone()


@torch.no_grad()
def _give_up(adam: Adam) -> Tensor:
    """Set models with a parameter that is not finite to zero; which ones those are, (seeds, strengths)."""
    values = list(adam.parameters.values())
    moments = adam.moments.split([value.numel() for value in values], 1)  # infinite ones stop a model unnoticed
    fine = [v.isfinite() & m.view(2, *v.shape).isfinite().all(0) for v, m in zip(values, moments, strict=True)]
    lost = torch.stack([~one.reshape(*one.shape[:2], -1).all(-1) for one in fine]).any(0)
    if bool(lost.any()):
        for value in adam.parameters.values():
            value[lost] = 0.0
        adam.forget_non_finite()
    return lost


def _scaling(data: Samples, rows: Sequence[Tensor], *, standardize: bool) -> tuple[Tensor, Tensor]:
    features = data.x.shape[1]
    if not standardize:
        return torch.zeros(len(rows), features), torch.ones(len(rows), features)
    moments = [weighted_moments(data.x[own].double(), data.weight[own].double()) for own in rows]
    mean, scale = (torch.stack(parts) for parts in zip(*moments, strict=True))
    return mean, scale


def weighted_moments(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column; 1 instead of a deviation that is 0 but for rounding."""
    share = (weight / weight.sum()).unsqueeze(-1)
    mean = (share * x).sum(0)
    deviation = (share * (x - mean).square()).sum(0).sqrt()
    constant = deviation <= 1e-12 * mean.abs().clamp_min(1.0)
    return mean, torch.where(constant, 1.0, deviation)


def _on(device: torch.device | str, sides: Sides) -> Sides:
    rows = sides.rows if isinstance(sides.rows, slice) else sides.rows.to(device)
    return Sides(rows, sides.left, sides.right, None if sides.weights is None else sides.weights.to(device))


def _recorded(step: Step, adam: Adam, rows: Tensor, weight: Tensor, objective: Objective) -> Step:
    """The step as a CUDA graph: recorded once, then replayed on new rows without the host's help."""
    saved = adam.snapshot()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):  # libraries set themselves up during the first calls, which may not be recorded
            step(rows, weight)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(objective.generator)
    with torch.cuda.graph(graph):
        step(rows, weight)
    adam.restore(saved)

    def replay(chosen: Tensor, counts: Tensor) -> None:
        rows.copy_(chosen)
        weight.copy_(counts)
        graph.replay()

    return replay
