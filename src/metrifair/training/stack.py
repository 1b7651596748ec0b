"""Models in training: all strengths and seeds as one, with their data and batches, on one device.

Shapes never change from step to step and no step waits for the device, so that on an accelerator a
step is recorded once and replayed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.batches.samples import (
    Batch,
    ByCell,
    Layout,
    Samples,
    layout,
    make_passes,
    rows_by_cell,
    sampling_odds,
    tensor_sides,
)
from metrifair.errors import DataError
from metrifair.problem.cells import Comparison, Sides
from metrifair.support.user_warnings import warn_user
from metrifair.training.models import Model, Network, Parameters, Scaling, stack_parameters
from metrifair.training.objective import Objective


class Epoch(NamedTuple):
    """The batches of one epoch."""

    rows: Tensor  # (seeds, steps, size)
    weight: Tensor  # (seeds, steps, size), or (seeds, 1, size): loss weights

    def on(self, device: torch.device, dtype: torch.dtype) -> Epoch:
        """A copy on a device, without waiting for it."""
        return Epoch(send(self.rows, device), send(self.weight, device).to(dtype))

    def part(self, steps: slice) -> Epoch:
        """The batches of these steps."""
        return Epoch(
            self.rows[:, steps], self.weight[:, steps] if self.weight.shape[1] > 1 else self.weight
        )


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """A copy on a device, without waiting for it."""
    if tensor.device.type == device.type:
        return tensor
    return tensor.contiguous().pin_memory().to(device, non_blocking=True)


Outputs: TypeAlias = Callable[[], Tensor]
"""The outputs of the current models for all rows of the data: (seeds, strengths, n)."""


class EpochSource(NamedTuple):
    """Source of batches: one layout for all seeds, with the rows and weights of each."""

    size: int
    sides: tuple[Sides, ...]
    draw: Callable[[Sequence[torch.Generator], Outputs], Epoch]  # one epoch; it may use the models
    full_batch: bool = False  # every batch is the whole data set: computed in double precision


def stratified_epochs(
    data: Samples,
    rows: Sequence[Tensor],
    objective: Objective,
    *,
    batch_size: int,
    steps: int | None = None,
    device: torch.device | str,
) -> EpochSource:
    """Stratified batches of each seed's rows; full batches if all rows fit into one."""
    comparisons = objective.comparisons
    least = objective.least
    cells = 1 + max(
        int(data.cell.max()), *(cell for pair in comparisons for cell in pair.left + pair.right), 0
    )
    seed_cells = rows_by_seed(data.cell, rows, cells)
    sizes = torch.tensor([[len(cell) for cell in seed] for seed in seed_cells])
    if bool(((sizes == 0).any(0) & (sizes > 0).any(0)).any()):
        raise DataError(
            "some seeds' training rows lack a cell that others have; choose splits that hold every "
            "group"
        )
    if max(map(len, rows)) <= batch_size:
        return _full_epochs(
            data.weight.double(), seed_cells, Layout(tuple(sizes.amax(0).tolist())), comparisons
        )
    plan = layout(
        sizes.amin(0).tolist(), comparisons, size=batch_size, least=least, fewest=objective.fewest
    )
    if plan.size > batch_size:
        warn_user(
            f"batches hold {plan.size} samples instead of {batch_size}, so that each has {least} "
            "of every group "
            "that is compared",
            UserWarning,
        )
    weight = data.weight.double()
    total = torch.stack([torch.stack([weight[cell].sum() for cell in seed]) for seed in seed_cells])
    shares = (total / total.sum(1, keepdim=True)).unsqueeze(1)  # (seeds, 1, cells)
    unweighted = bool((weight == weight[0]).all())
    odds = (
        None
        if unweighted
        else [[sampling_odds(weight[cell]) for cell in seed] for seed in seed_cells]
    )
    if steps is None:
        steps = max(1, min(len(part) for part in rows) // plan.size)
    loss_weight = plan.weights(shares).to(device, torch.float32)
    passes = make_passes(seed_cells, plan, steps, odds=odds, device=device)

    def draw(generators: Sequence[torch.Generator], _: Outputs) -> Epoch:
        return Epoch(passes(generators), loss_weight)

    # With weights, rows are drawn with replacement, as from infinitely many; but a single row
    # remains one.
    counts = sizes.double() if unweighted else sizes.double().masked_fill(sizes > 1, inf)
    # of shape: seeds, 1, cells
    drawn_from = counts[0] if bool((counts == counts[0]).all()) else counts.unsqueeze(1)
    return EpochSource(
        plan.size, tuple(plan.sides(pair, shares, drawn_from) for pair in comparisons), draw
    )


def rows_by_seed(cell: Tensor, rows: Sequence[Tensor], cells: int) -> list[list[Tensor]]:
    """Each seed's rows by cell; seeds that share their rows share these lists."""
    by_rows = {
        id(part): [part[inside] for inside in rows_by_cell(cell[part], cells)] for part in rows
    }
    return [by_rows[id(part)] for part in rows]


def _full_epochs(
    weight: Tensor, seed_cells: ByCell, plan: Layout, comparisons: Sequence[Comparison]
) -> EpochSource:
    """All rows in every batch: weights then act as weights, not as odds of being drawn.

    Each cell has the places of the seed with most rows in it. Other seeds repeat a row there, with
    weight 0.
    """
    seeds = [list(zip(seed, plan.counts, strict=True)) for seed in seed_cells]
    padded = [
        [torch.cat([cell, cell[:1].expand(n - len(cell))]) for cell, n in seed] for seed in seeds
    ]
    rows = torch.stack([torch.cat(seed) for seed in padded])
    padding = torch.stack(
        [torch.cat([torch.arange(n) >= len(cell) for cell, n in seed]) for seed in seeds]
    )
    weights = weight[rows].masked_fill(padding, 0.0)
    cell = torch.arange(len(plan.counts)).repeat_interleave(torch.tensor(plan.counts))
    sides = tensor_sides(comparisons, cell, drawn_from=cell)
    if not bool((weights == weights[0, 0]).all()):
        sides = tuple(replace(side, weights=weights[:, None, side.rows]) for side in sides)
    all_rows = Epoch(rows.unsqueeze(1), (weights / weights.mean(1, keepdim=True)).unsqueeze(1))
    return EpochSource(plan.size, sides, lambda *_: all_rows, full_batch=True)


SeedOutputs: TypeAlias = Callable[[int, slice, Tensor], Tensor]
"""Outputs of a seed's models at some strengths for some rows: (strengths, n) or (strengths, n,
outputs).
"""

Step: TypeAlias = Callable[[Tensor, Tensor], None]
"""One step of all models, on rows (seeds, size) with loss weights of that shape."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train; see docs/results/defaults.md for the choice of start and
    end.
    """

    batch_size: int
    epochs: int
    learning_rate: float
    learning_rate_decay: float = 1.0  # factor after each epoch
    weight_decay: float = 0.0
    # fraction of the steps, the first ones, in which the strength grows from 0 to its value
    growth: float = 0.0
    # fraction of the steps, the last ones, in which the learning rate falls to 0
    cooldown: float = 0.0
    # networks start near the best constant, and are replaced by it if it is better
    from_constant: bool = False
    # epochs without gain on validation rows, if there are any, until training stops
    patience: int = 10
    steps: int | None = None  # of an epoch; None: as many batches as the samples fill

    def strengths_at(self, times: Sequence[float], strength: Tensor) -> Tensor:
        """Strengths at each time, from 0 at the beginning to 1 at the end: 1 + strength grows
        by one factor a step.
        """
        if not self.growth:
            return strength.expand(len(times), -1)
        passed = (
            torch.tensor(times, dtype=torch.float64).div_(self.growth).to(strength).unsqueeze(-1)
        )
        return torch.where(passed < 1, (1 + strength) ** passed - 1, strength)

    def rate_at(self, time: float) -> float:
        """The share of the learning rate at a time from 0 to 1."""
        return min(1.0, (1 - time) / self.cooldown) if self.cooldown else 1.0


@dataclass(eq=False)
class Stack:
    """Models in training, with all that a step needs, on one device."""

    x: Tensor  # features of all rows, in units that all seeds share
    y: Tensor
    model: Model
    objective: Objective
    scaling: Scaling  # from those units to each seed's own
    sides: tuple[Sides, ...]
    adam: Adam
    strength: Tensor  # (strengths,)
    failed: Tensor  # (seeds, strengths)
    weight_decay: float = 0.0  # if Adam has none
    # minimize the objective / (1 + strength), so that gradients keep their size
    scaled: bool = False
    value: Tensor | None = None  # numeric attributes of all rows

    def step(self, chosen: Tensor, weight: Tensor) -> None:
        """One step of all models on the rows (seeds, size) with these loss weights."""
        features = self.scaling.apply(self.x[chosen])
        value = None if self.value is None else self.value[chosen].unsqueeze(1)
        samples = Samples(features, self.y[chosen].unsqueeze(1), chosen, weight.unsqueeze(1), value)
        batch = Batch(samples, self.sides)
        terms = self.objective(self.model(self.adam.parameters, features, training=True), batch)
        total = terms.risk + self.strength * terms.unfairness
        if self.weight_decay:
            squares = [value.square().flatten(2).sum(-1) for value in self.adam.parameters.values()]
            total = total + self.weight_decay / 2 * torch.stack(squares).sum(0)
        if self.scaled:
            total = total / (1 + self.strength)
        total.sum().backward()
        self.adam.step()

    def steps(self, batches: Epoch, strengths: Tensor, rates: Tensor) -> None:
        """Steps on the batches, each with its strengths (steps, strengths) and learning rate
        (steps,).

        Models that diverged are set to zero at the end.
        """
        weights = batches.weight.expand(batches.rows.shape)
        for place in range(batches.rows.shape[1]):
            self.strength = strengths[place]
            self.adam.learning_rate = rates[place]
            self.step(batches.rows[:, place], weights[:, place])
        self.give_up()

    @torch.no_grad()
    def begin_near(self, constants: Tensor) -> None:
        """Start networks of ours near these outputs, (seeds, 1, outputs).

        Not linear models: with centered features the intercept would be optimal from the start, and
        Adam would make steps of rounding errors of its gradient.
        """
        if isinstance(self.model, Network) and self.model.hidden:
            for name, value in self.model.near(self.adam.parameters, constants).items():
                self.adam.parameters[name].copy_(value)

    def seed_outputs(self, parameters: Parameters) -> SeedOutputs:
        """A function that computes the outputs of models with these parameters for the rows of
        a seed.
        """

        def outputs(seed: int, strengths: slice, rows: Tensor) -> Tensor:
            seed_parameters = {
                name: value[seed : seed + 1, strengths].to(self.x)
                for name, value in parameters.items()
            }
            scaling = Scaling(
                *(part[min(seed, len(part) - 1)].unsqueeze(0) for part in self.scaling)
            )
            return self.model(seed_parameters, scaling.apply(self.x[rows].unsqueeze(0)))[0]

        return outputs

    @torch.no_grad()
    def outputs(self) -> Tensor:
        """The outputs of the current models for all rows of the data."""
        return self.model(
            self.adam.parameters, self.scaling.apply(self.x.expand(len(self.failed), *self.x.shape))
        )

    @torch.no_grad()
    def give_up(self) -> None:
        """Set models with a parameter that is not finite to zero."""
        values = self.adam.parameters.values()
        # infinite moments stop it unnoticed
        finite = self.adam.vector.isfinite() & self.adam.moments.isfinite().all(0)
        parts = zip(finite.split([value.numel() for value in values]), values, strict=True)
        diverged = ~torch.stack(
            [part.view(*value.shape[:2], -1).all(-1) for part, value in parts]
        ).all(0)
        for value in values:  # without waiting for the device: this too is recorded
            value.masked_fill_(diverged.view(*diverged.shape, *[1] * (value.ndim - 2)), 0.0)
        self.adam.forget_non_finite()
        self.failed |= diverged

    def end(self, parameters: Parameters) -> tuple[dict[str, Tensor], Tensor]:
        """Copies of the parameters in double precision, all 0 where training failed, and where
        that was.
        """
        copies = {
            name: value.detach().to(torch.float64, copy=True) for name, value in parameters.items()
        }
        for value in copies.values():
            value[self.failed] = 0.0
        return copies, self.failed.clone()


def _side_on(side: Sides, device: torch.device) -> Sides:
    """The side with its tensors on the device."""
    tensors = {name: getattr(side, name) for name in ("rows", "weights", "fraction")}
    moved: dict[str, Any] = {
        name: tensor.to(device) for name, tensor in tensors.items() if isinstance(tensor, Tensor)
    }
    return replace(side, **moved)


def make_stack(
    data: Samples,
    model: Model,
    objective: Objective,
    scaling: Scaling,
    source: EpochSource,
    *,
    schedule: Schedule,
    strengths: Sequence[float],
    seeds: Sequence[int],
    device: torch.device,
) -> Stack:
    """Models of every seed and strength before the first step, with their data, on the device."""
    dtype = torch.float64 if source.full_batch else torch.float32
    scaled = schedule.growth > 0
    if device.type != "cpu":  # projections of vector scores are drawn where they are used
        generator = torch.Generator(device).manual_seed(objective.generator.initial_seed())
        objective = replace(objective, generator=generator)
    sides = [_side_on(side, device) for side in source.sides]
    start = stack_parameters([model.initial(seed) for seed in seeds], len(strengths))
    start = {name: value.to(device, dtype) for name, value in start.items()}
    labels = data.y.to(device, dtype if data.y.is_floating_point() else None)
    values = None
    if data.value is not None:
        values = data.value.to(device)
    scaled_decay = schedule.weight_decay if scaled else 0.0
    features, seed_scaling = scaling.in_shared_units(data.x, device, dtype)
    return Stack(
        features,
        labels,
        model,
        objective,
        seed_scaling,
        tuple(sides),
        Adam(
            start,
            learning_rate=schedule.learning_rate,
            weight_decay=schedule.weight_decay - scaled_decay,
        ),
        torch.tensor(strengths, dtype=dtype, device=device),
        torch.zeros(len(seeds), len(strengths), dtype=torch.bool, device=device),
        weight_decay=scaled_decay,
        scaled=scaled,
        value=values,
    )


BETAS = (0.9, 0.999)  # decay of the moments
EPSILON = 1e-8


class Adam:
    """Adam for parameters that share one vector.

    Everything is a tensor on the device, so that a step can be recorded and replayed.

    >>> adam = Adam({"w": torch.tensor([1.0, -2.0])}, learning_rate=0.1)
    >>> adam.parameters["w"].square().sum().backward()
    >>> adam.step()
    >>> adam.parameters["w"].detach()
    tensor([ 0.9000, -1.9000])
    """

    def __init__(
        self, start: Mapping[str, Tensor], *, learning_rate: float, weight_decay: float = 0.0
    ) -> None:
        self.vector = torch.cat([value.detach().reshape(-1) for value in start.values()])
        self.gradient = torch.zeros_like(self.vector)
        self.moments = torch.zeros(
            2, len(self.vector), dtype=self.vector.dtype, device=self.vector.device
        )
        self.betas = torch.tensor(BETAS, dtype=torch.float64, device=self.vector.device)
        self.powers = torch.ones_like(self.betas)  # beta^t
        self.learning_rate = torch.tensor(
            learning_rate, dtype=torch.float64, device=self.vector.device
        )
        self.weight_decay = weight_decay
        self._shapes = {name: value.shape for name, value in start.items()}
        self._bind()

    def _bind(self) -> None:
        """Parameters and their gradients as views of the two vectors."""
        sizes = [shape.numel() for shape in self._shapes.values()]
        values = self.vector.split(sizes)
        slopes = self.gradient.split(sizes)
        self.parameters: dict[str, Tensor] = {}
        for (name, shape), value, slope in zip(self._shapes.items(), values, slopes, strict=True):
            leaf = value.view(shape).detach().requires_grad_()
            leaf.grad = slope.view(shape)
            self.parameters[name] = leaf

    @torch.no_grad()
    def step(self) -> None:
        """One step down the gradient gathered since the last one, which is then cleared."""
        if self.weight_decay:
            self.gradient.add_(self.vector, alpha=self.weight_decay)
        first, second = self.moments
        first.lerp_(self.gradient, 1 - BETAS[0])
        second.mul_(BETAS[1]).addcmul_(self.gradient, self.gradient, value=1 - BETAS[1])
        self.powers.mul_(self.betas)
        corrections = 1 - self.powers
        rate = (self.learning_rate / corrections[0]).to(self.vector.dtype)
        spread = (second / corrections[1].to(self.vector.dtype)).sqrt_().add_(EPSILON)
        self.vector.sub_(first.mul(rate).div_(spread))
        self.gradient.zero_()

    def step_if_finite(self) -> bool:
        """The same step on the CPU; False, and no change, if a number would not be finite.

        With NumPy, whose operations take a fraction of torch's time for few parameters.
        """
        vector, gradient, moments, powers, rate = self._as_arrays
        slope = gradient + self.weight_decay * vector if self.weight_decay else gradient
        first = moments[0] + (1 - BETAS[0]) * (slope - moments[0])
        second = BETAS[1] * moments[1] + (1 - BETAS[1]) * slope * slope
        new_powers = powers * BETAS
        corrections = (1 - new_powers).tolist()
        spread = np.sqrt(second / corrections[1])
        spread += EPSILON
        new_vector = vector - first * (rate.item() / corrections[0]) / spread
        gradient.fill(0.0)
        # a sum with a number that is not finite is not finite
        if not math.isfinite(new_vector.sum() + second.sum()):
            return False
        vector[:] = new_vector
        moments[0] = first
        moments[1] = second
        powers[:] = new_powers
        return True

    @cached_property
    def _as_arrays(self) -> tuple[NDArray[Any], ...]:
        return tuple(part.numpy() for part in self._changing)

    @cached_property
    def arrays(self) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
        """Parameters and their gradients as NumPy arrays that share memory, on the CPU."""
        return {
            name: (leaf.detach().numpy(), leaf.grad.numpy())  # type: ignore[union-attr]
            for name, leaf in self.parameters.items()
        }

    def snapshot(self) -> tuple[Tensor, ...]:
        """Copies of all that a step changes."""
        return tuple(part.clone() for part in self._changing)

    def restore(self, saved: tuple[Tensor, ...]) -> None:
        """Go back to a snapshot, in place."""
        for part, value in zip(self._changing, saved, strict=True):
            part.copy_(value)

    def forget_non_finite(self) -> None:
        """Clear moments and gradients that overflowed."""
        for part in (self.gradient, self.moments):
            part.nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)

    @property
    def _changing(self) -> tuple[Tensor, ...]:
        return self.vector, self.gradient, self.moments, self.powers, self.learning_rate

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in vars(self).items()
            if name not in ("parameters", "arrays", "_as_arrays")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._bind()
