"""The loop: all strengths and seeds of a model trained at once on stratified batches.

Shapes never change from step to step and no step asks the device for an answer, so that on an accelerator a step
is recorded once and replayed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.batches import layout, odds_of, rows_by_cell, stratified_pass
from metrifair.descent import Adam
from metrifair.errors import DataError
from metrifair.models import Model, member, stacked
from metrifair.objective import Objective
from metrifair.progress import Progress
from metrifair.samples import Batch, Samples, Sides, sides_of

_ROWS_AT_ONCE = 65_536


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
    standardize: bool = True,
    device: torch.device | str = "cpu",
    verbose: bool = False,
) -> Trained:
    """Models of every seed (initialisation and batches) and every strength.

    ``rows`` gives each seed its own training rows of the shared data; else all seeds use all rows.
    """
    device = torch.device(device)
    if device.type != "cpu":  # projections of vector scores are drawn where they are used
        drawn = torch.Generator(device).manual_seed(objective.generator.initial_seed())
        objective = replace(objective, generator=drawn)
    own = list(rows) if rows is not None else [torch.arange(len(data))] * len(seeds)
    deal = _dealer(data, objective, own, schedule.batch_size)
    dtype = torch.float64 if deal.whole else torch.float32
    x, y = data.x.to(device, dtype), data.y.to(device)
    y = y.to(dtype) if y.is_floating_point() else y
    scaling = Scaling(*(part.to(device, dtype) for part in _scaling(data, own, standardize=standardize)))
    start = stacked([model.initial(seed) for seed in seeds], len(strengths))
    adam = Adam(
        {name: value.to(device, dtype) for name, value in start.items()},
        learning_rate=schedule.learning_rate,
        weight_decay=schedule.weight_decay,
    )
    strength = torch.tensor(strengths, dtype=dtype, device=device)
    weight = deal.weight.to(device, dtype).unsqueeze(1)
    sides = tuple(_on(device, side) for side in deal.sides) if any(strengths) else ()

    def step(chosen: Tensor) -> None:
        """One step of all models on the rows (seeds, size)."""
        features = scaling.apply(x[chosen])
        batch = Batch(Samples(features, y[chosen].unsqueeze(1), chosen, weight), sides)
        terms = objective(model(adam.parameters, features, training=True), batch)
        (terms.risk + strength * terms.unfairness).sum().backward()
        adam.step()

    run: Callable[[Tensor], None] = step
    if device.type == "cuda":
        run = _recorded(step, adam, torch.zeros(len(seeds), deal.size, dtype=torch.long, device=device), objective)
    failed = torch.zeros(len(seeds), len(strengths), dtype=torch.bool, device=device)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    with Progress("training", schedule.epochs, shown=verbose) as progress:
        upcoming = deal.batches(generators)
        for epoch in range(1, schedule.epochs + 1):
            for chosen in upcoming.to(device).unbind(1):
                run(chosen)
            adam.learning_rate.mul_(schedule.learning_rate_decay)
            if epoch < schedule.epochs:
                upcoming = deal.batches(generators)  # before the device is waited for: it is still at work
            failed |= _give_up(adam)
            progress.show(epoch)
    for value in adam.parameters.values():
        value.detach()[failed] = 0.0
    return Trained(model, {name: value.detach() for name, value in adam.parameters.items()}, scaling, failed)


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


class _Dealer(NamedTuple):
    """Where batches come from: the same layout for all seeds, each with its own rows and weights."""

    size: int
    weight: Tensor  # (seeds, size): loss weights
    sides: tuple[Sides, ...]
    batches: Callable[[Sequence[torch.Generator]], Tensor]  # one epoch: rows (seeds, steps, size)
    whole: bool  # every batch is the whole data set


def _dealer(data: Samples, objective: Objective, rows: Sequence[Tensor], batch_size: int) -> _Dealer:
    shared = all(torch.equal(own, rows[0]) for own in rows[1:])
    if shared and len(rows[0]) <= batch_size:
        return _whole_dealer(data.take(rows[0]), rows, objective)
    cells = 1 + max(int(data.cell.max()), *(c for one in objective.comparisons for c in one.left + one.right), 0)
    own = [[part[inside] for inside in rows_by_cell(data.cell[part], cells)] for part in rows]
    sizes = torch.tensor([[len(cell) for cell in seed] for seed in own])
    if bool(((sizes == 0).any(0) & (sizes > 0).any(0)).any()):
        raise DataError("some seeds' training rows lack a cell that others have; choose splits that hold every group")
    least = 2 if objective.unbiased else 1
    plan = layout(sizes.amin(0).tolist(), objective.comparisons, size=batch_size, least=least)
    if plan.size > batch_size:
        warnings.warn(
            f"batches hold {plan.size} samples instead of {batch_size}, so that each has {least} of every group "
            "that is compared",
            stacklevel=2,
        )
    weight = data.weight.double()
    total = torch.tensor([[float(weight[cell].sum()) for cell in seed] for seed in own])
    shares = (total / total.sum(1, keepdim=True)).unsqueeze(1)  # (seeds, 1, cells)
    even = bool((weight == weight[0]).all())
    odds = [None if even else [odds_of(weight[cell]) for cell in seed] for seed in own]
    steps = max(1, min(len(part) for part in rows) // plan.size)
    return _Dealer(
        plan.size,
        plan.weights(shares.squeeze(1)),
        tuple(plan.sides(one, shares) for one in objective.comparisons),
        lambda generators: torch.stack(
            [
                stratified_pass(seed, plan, steps, generator, odds=odd)
                for seed, generator, odd in zip(own, generators, odds, strict=True)
            ]
        ),
        whole=False,
    )


def _whole_dealer(samples: Samples, rows: Sequence[Tensor], objective: Objective) -> _Dealer:
    """All rows in every batch: weights then act as weights, not as odds of being drawn."""
    weight = samples.weight.double()
    even = bool((weight == weight[0]).all())
    order = samples.cell.argsort(stable=True)
    sides = sides_of(objective.comparisons, samples.cell[order], None if even else weight[order])
    chosen = torch.stack([own[order] for own in rows]).unsqueeze(1)
    return _Dealer(
        len(order),
        (weight / weight.mean())[order].expand(len(rows), -1),
        sides,
        lambda _: chosen,
        whole=True,
    )


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


def _recorded(
    step: Callable[[Tensor], None], adam: Adam, rows: Tensor, objective: Objective
) -> Callable[[Tensor], None]:
    """The step as a CUDA graph: recorded once, then replayed on new rows without the host's help."""
    saved = adam.snapshot()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):  # libraries set themselves up during the first calls, which may not be recorded
            step(rows)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(objective.generator)
    with torch.cuda.graph(graph):
        step(rows)
    adam.restore(saved)

    def replay(chosen: Tensor) -> None:
        rows.copy_(chosen)
        graph.replay()

    return replay
