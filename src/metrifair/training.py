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
    own = list(rows) if rows is not None else [torch.arange(len(data))] * len(seeds)
    dealer = dealer or stratified_dealer(
        data, own, objective.comparisons, batch_size=schedule.batch_size, least=2 if objective.unbiased else 1
    )
    rounds = [[value] for value in strengths] if path else [list(strengths)]
    scaling = Scaling(*_scaling(data, own, standardize=standardize))
    if not any(strengths):
        dealer = dealer._replace(sides=())
    stack = _stack(
        data,
        model,
        objective,
        scaling=scaling,
        dealer=dealer,
        schedule=schedule,
        strengths=rounds[0],
        seeds=seeds,
        device=device,
    )
    step = stack.step if stack.device.type == "cpu" else _recorded(stack, dealer.size)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    ends: list[tuple[dict[str, Tensor], Tensor]] = []
    total = schedule.epochs * len(rounds)
    with Progress("training", total, shown=verbose) as progress:
        upcoming = dealer.deal(generators, stack.outputs)
        for epoch in range(1, total + 1):
            for chosen, weight in upcoming.steps(stack.device, stack.dtype):
                step(chosen, weight)
            stack.adam.learning_rate.mul_(schedule.learning_rate_decay)
            if epoch < total:  # before the device is waited for: it is still at work
                upcoming = dealer.deal(generators, stack.outputs)
            stack.give_up()
            if epoch % schedule.epochs == 0:
                ends.append(stack.end())
                stack.strength.copy_(torch.tensor(rounds[min(len(ends), len(rounds) - 1)]))
                stack.adam.learning_rate.fill_(schedule.learning_rate)
            progress.show(epoch)
    parameters = {name: torch.cat([end[name] for end, _ in ends], 1) for name in stack.adam.parameters}
    return Trained(model, parameters, stack.scaling, torch.cat([lost for _, lost in ends], 1))


@dataclass(eq=False)
class _Stack:
    """Models of all seeds and strengths in training, with all that a step needs, on one device."""

    x: Tensor  # features of all rows
    y: Tensor
    model: Model
    objective: Objective
    scaling: Scaling
    sides: tuple[Sides, ...]
    adam: Adam
    strength: Tensor  # (strengths,)
    failed: Tensor  # (seeds, strengths)

    @property
    def device(self) -> torch.device:
        """Where it is trained."""
        return self.x.device

    @property
    def dtype(self) -> torch.dtype:
        """In which precision."""
        return self.x.dtype

    def step(self, chosen: Tensor, weight: Tensor) -> None:
        """One step of all models on the rows (seeds, size), which count so much."""
        features = self.scaling.apply(self.x[chosen])
        batch = Batch(Samples(features, self.y[chosen].unsqueeze(1), chosen, weight.unsqueeze(1)), self.sides)
        terms = self.objective(self.model(self.adam.parameters, features, training=True), batch)
        (terms.risk + self.strength * terms.unfairness).sum().backward()
        self.adam.step()

    @torch.no_grad()
    def outputs(self) -> Tensor:
        """What the models, as they are now, return for all rows of the data."""
        return self.model(self.adam.parameters, self.scaling.apply(self.x.expand(len(self.failed), *self.x.shape)))

    @torch.no_grad()
    def give_up(self) -> None:
        """Set models with a parameter that is not finite to zero."""
        values = list(self.adam.parameters.values())
        moments = self.adam.moments.split([value.numel() for value in values], 1)  # infinite ones stop it unnoticed
        fine = [v.isfinite() & m.view(2, *v.shape).isfinite().all(0) for v, m in zip(values, moments, strict=True)]
        lost = torch.stack([~one.reshape(*one.shape[:2], -1).all(-1) for one in fine]).any(0)
        if bool(lost.any()):
            for value in values:
                value[lost] = 0.0
            self.adam.forget_non_finite()
        self.failed |= lost

    def end(self) -> tuple[dict[str, Tensor], Tensor]:
        """Copies of the parameters, all 0 where training failed, and where that was."""
        parameters = {name: value.detach().clone() for name, value in self.adam.parameters.items()}
        for value in parameters.values():
            value[self.failed] = 0.0
        return parameters, self.failed.clone()


def _stack(
    data: Samples,
    model: Model,
    objective: Objective,
    *,
    scaling: Scaling,
    dealer: Dealer,
    schedule: Schedule,
    strengths: Sequence[float],
    seeds: Sequence[int],
    device: torch.device | str,
) -> _Stack:
    """Models at their start, moved to the device; in double precision where every batch is the whole data set."""
    device, dtype = torch.device(device), torch.float64 if dealer.whole else torch.float32
    start = stacked([model.initial(seed) for seed in seeds], len(strengths))
    return _Stack(
        data.x.to(device, dtype),
        data.y.to(device, dtype if data.y.is_floating_point() else None),
        model,
        _drawing_on(device, objective),
        Scaling(*(part.to(device, dtype) for part in scaling)),
        tuple(_on(device, side) for side in dealer.sides),
        Adam(
            {name: value.to(device, dtype) for name, value in start.items()},
            learning_rate=schedule.learning_rate,
            weight_decay=schedule.weight_decay,
        ),
        torch.tensor(strengths, dtype=dtype, device=device),
        torch.zeros(len(seeds), len(strengths), dtype=torch.bool, device=device),
    )


def _drawing_on(device: torch.device, objective: Objective) -> Objective:
    """The objective with projections of vector scores drawn where they are used."""
    if device.type == "cpu":
        return objective
    return replace(objective, generator=torch.Generator(device).manual_seed(objective.generator.initial_seed()))


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


def _recorded(stack: _Stack, size: int) -> Step:
    """The step as a CUDA graph: recorded once, then replayed on new rows without the host's help."""
    rows = torch.zeros(len(stack.failed), size, dtype=torch.long, device=stack.device)
    weight = torch.ones_like(rows, dtype=stack.dtype)
    saved = stack.adam.snapshot()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):  # libraries set themselves up during the first calls, which may not be recorded
            stack.step(rows, weight)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(stack.objective.generator)
    with torch.cuda.graph(graph):
        stack.step(rows, weight)
    stack.adam.restore(saved)

    def replay(chosen: Tensor, counts: Tensor) -> None:
        rows.copy_(chosen)
        weight.copy_(counts)
        graph.replay()

    return replay
