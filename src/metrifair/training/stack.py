"""Models in training: all strengths and seeds as one, with their data and batches, on one device.

Shapes never change from step to step and no step waits for the device, so that on an accelerator a step
is recorded once and replayed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import cycle
from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.batches.memberships import Drawing
from metrifair.batches.samples import (
    Batch,
    ByCell,
    Layout,
    Samples,
    StratifiedPasses,
    layout,
    rows_by_cell,
    sampling_odds,
    side_weights,
    tensor_sides,
)
from metrifair.errors import DataError
from metrifair.metrics.registry import has_estimates
from metrifair.problem.cells import Comparison, Sides
from metrifair.training.models import Model, Network, Parameters, Scaling, stacked
from metrifair.training.objective import Objective


class Epoch(NamedTuple):
    """The batches of one epoch."""

    rows: Tensor  # (seeds, steps, size)
    weight: Tensor  # (seeds, steps, size), or (seeds, 1, size): loss weights

    def on(self, device: torch.device, dtype: torch.dtype) -> Epoch:
        """The same on another device, which need not be waited for."""
        return Epoch(sent(self.rows, device), sent(self.weight, device).to(dtype))

    def part(self, some: slice) -> Epoch:
        """Some of the batches."""
        return Epoch(self.rows[:, some], self.weight[:, some] if self.weight.shape[1] > 1 else self.weight)


def sent(tensor: Tensor, device: torch.device) -> Tensor:
    """The same on a device, which need not be waited for."""
    if tensor.device.type == device.type:
        return tensor
    return tensor.contiguous().pin_memory().to(device, non_blocking=True)


Outputs: TypeAlias = Callable[[], Tensor]
"""The outputs of the current models for all rows of the data: (seeds, strengths, n)."""


class EpochSource(NamedTuple):
    """Where batches come from: the same layout for all seeds, each with its own rows and weights."""

    size: int
    sides: tuple[Sides, ...]
    draw: Callable[[Sequence[torch.Generator], Outputs], Epoch]  # one epoch; it may look at the models
    whole: bool = False  # every batch is the whole data set: computed in double precision
    by_row: bool = False  # weights of sides are those of all rows, (seeds, parts, n): a batch looks its own up


def stratified_epochs(
    data: Samples, rows: Sequence[Tensor], objective: Objective, *, batch_size: int, device: torch.device | str
) -> EpochSource:
    """Stratified batches of each seed's rows, or, where one batch holds them all, those rows every time."""
    comparisons, least = objective.comparisons, objective.least
    cells = 1 + max(int(data.cell.max()), *(c for one in comparisons for c in one.left + one.right), 0)
    own = cells_of_seeds(data.cell, rows, cells)
    sizes = torch.tensor([[len(cell) for cell in seed] for seed in own])
    if bool(((sizes == 0).any(0) & (sizes > 0).any(0)).any()):
        raise DataError("some seeds' training rows lack a cell that others have; choose splits that hold every group")
    if max(map(len, rows)) <= batch_size:
        return _whole_epochs(data.weight.double(), own, Layout(tuple(sizes.amax(0).tolist())), comparisons)
    plan = layout(sizes.amin(0).tolist(), comparisons, size=batch_size, least=least, fewest=objective.fewest)
    if plan.size > batch_size:
        warnings.warn(
            f"batches hold {plan.size} samples instead of {batch_size}, so that each has {least} of every group "
            "that is compared",
            stacklevel=3,
        )
    weight = data.weight.double()
    total = torch.tensor([[float(weight[cell].sum()) for cell in seed] for seed in own])
    shares = (total / total.sum(1, keepdim=True)).unsqueeze(1)  # (seeds, 1, cells)
    even = bool((weight == weight[0]).all())
    odds = None if even else [[sampling_odds(weight[cell]) for cell in seed] for seed in own]
    steps = max(1, min(len(part) for part in rows) // plan.size)
    loss_weight = plan.weights(shares).to(device, torch.float32)
    passes = StratifiedPasses(own, plan, steps, odds=odds, device=device)

    def draw(generators: Sequence[torch.Generator], _: Outputs) -> Epoch:
        return Epoch(passes(generators), loss_weight)

    # Where weights are odds, rows are drawn with replacement, as if there were no end of them; but one row is itself.
    endless = sizes.double() if even else sizes.double().masked_fill(sizes > 1, inf)
    drawn_from = endless[0] if bool((endless == endless[0]).all()) else endless.unsqueeze(1)  # (seeds, 1, cells)
    return EpochSource(plan.size, tuple(plan.sides(one, shares, drawn_from) for one in comparisons), draw)


def cells_of_seeds(cell: Tensor, rows: Sequence[Tensor], cells: int) -> list[list[Tensor]]:
    """Each seed's rows by cell; seeds that share their rows share these lists."""
    by_rows = {id(part): [part[inside] for inside in rows_by_cell(cell[part], cells)] for part in rows}
    return [by_rows[id(part)] for part in rows]


def _whole_epochs(weight: Tensor, own: ByCell, plan: Layout, comparisons: Sequence[Comparison]) -> EpochSource:
    """All rows in every batch: weights then act as weights, not as odds of being drawn.

    Seeds have as many places for each cell as the one with most rows in it; a place that is left over holds a row
    once more, without weight.
    """
    seeds = [list(zip(seed, plan.counts, strict=True)) for seed in own]
    filled = [[torch.cat([cell, cell[:1].expand(n - len(cell))]) for cell, n in seed] for seed in seeds]
    rows = torch.stack([torch.cat(seed) for seed in filled])
    left_over = torch.stack([torch.cat([torch.arange(n) >= len(cell) for cell, n in seed]) for seed in seeds])
    counted = weight[rows].masked_fill(left_over, 0.0)
    cell = torch.arange(len(plan.counts)).repeat_interleave(torch.tensor(plan.counts))
    sides = tensor_sides(comparisons, cell, drawn_from=cell)
    if not bool((counted == counted[0, 0]).all()):
        sides = tuple(replace(side, weights=counted[:, None, side.rows]) for side in sides)
    everything = Epoch(rows.unsqueeze(1), (counted / counted.mean(1, keepdim=True)).unsqueeze(1))
    return EpochSource(plan.size, sides, lambda *_: everything, whole=True)


def membership_epochs(data: Samples, rows: Sequence[Tensor], objective: Objective, *, batch_size: int) -> EpochSource:
    """Batches of rows whose groups have probabilities; where one holds all rows of every seed, those every time.

    The metric is one of signed weights, which batches estimate without bias; or, where it has no such estimate, that of
    the rows of the batch, with what they weigh on either side.
    """
    sizes = set(map(len, rows))
    size, whole = min(batch_size, *sizes), len(sizes) == 1 and max(sizes) <= batch_size
    parts = rows[:1] if len(set(map(id, rows))) == 1 else rows  # often the same of all seeds
    bare, comparisons = replace(data, x=data.x[:, :0]), objective.comparisons
    ways = [_drawing(bare.take(part), comparisons, size, whole=whole) for part in parts]
    is_signed = objective.estimate != "batch" and has_estimates(objective.metric)
    weights = torch.zeros(len(parts), len(comparisons), 1 if is_signed else 2, len(data), dtype=torch.float64)
    loss_weight = torch.zeros(len(parts), len(data), dtype=torch.float64)
    for place, (part, way) in enumerate(zip(parts, ways, strict=True)):
        weights[place, ..., part] = way.signed.unsqueeze(1) if is_signed else way.sides
        loss_weight[place, part] = way.loss_weight
    steps = max(1, min(sizes) // size)

    def draw(generators: Sequence[torch.Generator], _: Outputs) -> Epoch:
        own = zip(rows, cycle(ways), generators, strict=False)
        chosen = torch.stack([part[way.rows(steps, size, generator)] for part, way, generator in own])
        return Epoch(chosen, _looked_up(loss_weight, chosen.flatten(1)).view(chosen.shape))

    everyone = Sides(slice(0, size), (size,), (), signed=ways[0].draws)
    on_both = Sides(torch.arange(size).repeat(2), (size,), (size,))
    sides = [replace(everyone if is_signed else on_both, weights=one) for one in weights.unbind(1)]
    return EpochSource(size, tuple(sides), draw, whole=whole, by_row=True)


def _drawing(samples: Samples, comparisons: Sequence[Comparison], size: int, *, whole: bool) -> Drawing:
    """How batches of these samples are drawn."""
    if samples.shares is None:
        raise DataError("the samples have no shares in cells; pass them")
    sides = side_weights(comparisons, samples.shares.double())
    return (Drawing.uniform if whole else Drawing.weighted)(samples.weight.double(), sides, size=size)


def _looked_up(table: Tensor, chosen: Tensor) -> Tensor:
    """Values (seeds or 1, n) of all rows at the rows (seeds, size) that were chosen."""
    return table[0][chosen] if len(table) == 1 else table.gather(1, chosen)


def side_of_batch(side: Sides, chosen: Tensor) -> Sides:
    """The side of an ``EpochSource`` by row, with the weights of the rows (seeds, size) that were chosen."""
    parts = [_looked_up(part, chosen) for part in side.weights.unbind(1)]
    return replace(side, weights=torch.cat(parts, 1).unsqueeze(1))


SeedOutputs: TypeAlias = Callable[[int, slice, Tensor], Tensor]
"""What some models of a seed return for some rows: (strengths, n) or (strengths, n, outputs)."""

Step: TypeAlias = Callable[[Tensor, Tensor], None]
"""One step of all models, on rows (seeds, size) with loss weights of that shape."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train; see docs/results/defaults.md for the choice of start and end."""

    batch_size: int
    epochs: int
    learning_rate: float
    learning_rate_decay: float = 1.0  # factor after each epoch
    weight_decay: float = 0.0
    growth: float = 0.0  # share of the steps, the first ones, in which the strength grows from 0 to its own
    cooldown: float = 0.0  # share of the steps, the last ones, in which the learning rate falls to 0
    from_constant: bool = False  # networks start near the best constant, and end at it where it is lower
    patience: int = 10  # epochs without gain on validation rows, where there are any, after which training stops

    def strengths_at(self, times: Sequence[float], strength: Tensor) -> Tensor:
        """Strengths at each time, from 0 at the beginning to 1 at the end: 1 + strength grows by one factor a step."""
        if not self.growth:
            return strength.expand(len(times), -1)
        passed = torch.tensor(times, dtype=torch.float64).div_(self.growth).to(strength).unsqueeze(-1)
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
    weight_decay: float = 0.0  # where Adam knows of none
    scaled: bool = False  # what is lowered is the objective over 1 + strength: its gradients keep their size
    value: Tensor | None = None  # of the attributes that scores should not depend on, in all rows
    by_row: bool = False  # weights of sides are those of all rows, as in EpochSource

    def step(self, chosen: Tensor, weight: Tensor) -> None:
        """One step of all models on the rows (seeds, size), which count so much."""
        features = self.scaling.apply(self.x[chosen])
        value = None if self.value is None else self.value[chosen].unsqueeze(1)
        sides = tuple(side_of_batch(side, chosen) for side in self.sides) if self.by_row else self.sides
        batch = Batch(Samples(features, self.y[chosen].unsqueeze(1), chosen, weight.unsqueeze(1), value), sides)
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
        """A step on each of the batches, at strengths (steps, strengths) and learning rates (steps,) of its own.

        Models that diverged are then given up.
        """
        weights = batches.weight.expand(batches.rows.shape)
        for place in range(batches.rows.shape[1]):
            self.strength, self.adam.learning_rate = strengths[place], rates[place]
            self.step(batches.rows[:, place], weights[:, place])
        self.give_up()

    @torch.no_grad()
    def begin_near(self, constants: Tensor) -> None:
        """Start networks of ours near these outputs, (seeds, 1, outputs).

        Not linear models: the intercept, which with centered features is then where it belongs, would have no gradient
        but rounding errors, which Adam makes steps of.
        """
        if isinstance(self.model, Network) and self.model.hidden:
            for name, value in self.model.near(self.adam.parameters, constants).items():
                self.adam.parameters[name].copy_(value)

    def outputs_of(self, parameters: Parameters) -> SeedOutputs:
        """What models with these parameters return for the rows of a seed."""

        def outputs(seed: int, some: slice, rows: Tensor) -> Tensor:
            own = {name: value[seed : seed + 1, some].to(self.x) for name, value in parameters.items()}
            units = Scaling(*(part[min(seed, len(part) - 1)].unsqueeze(0) for part in self.scaling))
            return self.model(own, units.apply(self.x[rows].unsqueeze(0)))[0]

        return outputs

    @torch.no_grad()
    def outputs(self) -> Tensor:
        """The outputs of the current models for all rows of the data."""
        return self.model(self.adam.parameters, self.scaling.apply(self.x.expand(len(self.failed), *self.x.shape)))

    @torch.no_grad()
    def give_up(self) -> None:
        """Set models with a parameter that is not finite to zero."""
        values = self.adam.parameters.values()
        fine = self.adam.vector.isfinite() & self.adam.moments.isfinite().all(0)  # infinite moments stop it unnoticed
        parts = zip(fine.split([value.numel() for value in values]), values, strict=True)
        lost = ~torch.stack([part.view(*value.shape[:2], -1).all(-1) for part, value in parts]).all(0)
        for value in values:  # nothing is asked of the device: this too is recorded
            value.masked_fill_(lost.view(*lost.shape, *[1] * (value.ndim - 2)), 0.0)
        self.adam.forget_non_finite()
        self.failed |= lost

    def end(self, parameters: Parameters) -> tuple[dict[str, Tensor], Tensor]:
        """Copies of the parameters in double precision, all 0 where training failed, and where that was."""
        copies = {name: value.detach().to(torch.float64, copy=True) for name, value in parameters.items()}
        for value in copies.values():
            value[self.failed] = 0.0
        return copies, self.failed.clone()


def stack_at_start(
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
    dtype, scaled = torch.float64 if source.whole else torch.float32, schedule.growth > 0
    if device.type != "cpu":  # projections of vector scores are drawn where they are used
        generator = torch.Generator(device).manual_seed(objective.generator.initial_seed())
        objective = replace(objective, generator=generator)
    sides = [
        replace(
            side,
            rows=side.rows if isinstance(side.rows, slice) else side.rows.to(device),
            weights=None if side.weights is None else side.weights.to(device),
            fraction=None if side.fraction is None else side.fraction.to(device),
        )
        for side in source.sides
    ]
    start = stacked([model.initial(seed) for seed in seeds], len(strengths))
    start = {name: value.to(device, dtype) for name, value in start.items()}
    features, left_to_do = scaling.in_shared_units(data.x, device, dtype)
    return Stack(
        features,
        data.y.to(device, dtype if data.y.is_floating_point() else None),
        model,
        objective,
        left_to_do,
        tuple(sides),
        Adam(start, learning_rate=schedule.learning_rate, weight_decay=0.0 if scaled else schedule.weight_decay),
        torch.tensor(strengths, dtype=dtype, device=device),
        torch.zeros(len(seeds), len(strengths), dtype=torch.bool, device=device),
        weight_decay=schedule.weight_decay if scaled else 0.0,
        scaled=scaled,
        value=None if data.value is None else data.value.to(device),
        by_row=source.by_row,
    )


KEPT = (0.9, 0.999)  # of the moments, from step to step
EPSILON = 1e-8


class Adam:
    """Parameters that share one vector, and the moments that move it.

    Everything is a tensor on the device, so that a step can be recorded and replayed.

    >>> adam = Adam({"w": torch.tensor([1.0, -2.0])}, learning_rate=0.1)
    >>> adam.parameters["w"].square().sum().backward()
    >>> adam.step()
    >>> adam.parameters["w"].detach()
    tensor([ 0.9000, -1.9000])
    """

    def __init__(self, start: Mapping[str, Tensor], *, learning_rate: float, weight_decay: float = 0.0) -> None:
        self.vector = torch.cat([value.detach().reshape(-1) for value in start.values()])
        self.gradient = torch.zeros_like(self.vector)
        self.moments = torch.zeros(2, len(self.vector), dtype=self.vector.dtype, device=self.vector.device)
        self.betas = torch.tensor(KEPT, dtype=torch.float64, device=self.vector.device)
        self.powers = torch.ones_like(self.betas)  # beta^t
        self.learning_rate = torch.tensor(learning_rate, dtype=torch.float64, device=self.vector.device)
        self.weight_decay = weight_decay
        self._shapes = {name: value.shape for name, value in start.items()}
        self._bind()

    def _bind(self) -> None:
        """Parameters and their gradients as views of the two vectors."""
        sizes = [shape.numel() for shape in self._shapes.values()]
        values, slopes = self.vector.split(sizes), self.gradient.split(sizes)
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
        first.lerp_(self.gradient, 1 - KEPT[0])
        second.mul_(KEPT[1]).addcmul_(self.gradient, self.gradient, value=1 - KEPT[1])
        self.powers.mul_(self.betas)
        corrections = 1 - self.powers
        rate = (self.learning_rate / corrections[0]).to(self.vector.dtype)
        spread = (second / corrections[1].to(self.vector.dtype)).sqrt_().add_(EPSILON)
        self.vector.sub_(first.mul(rate).div_(spread))
        self.gradient.zero_()

    def step_if_finite(self) -> bool:
        """The same step on the CPU; where it would leave numbers that are not finite nothing moves, and it says False.

        By NumPy, whose operations cost a fraction of torch's where parameters are few.
        """
        vector, gradient, moments, powers, rate = self._as_arrays
        slope = gradient + self.weight_decay * vector if self.weight_decay else gradient
        first = moments[0] + (1 - KEPT[0]) * (slope - moments[0])
        second = KEPT[1] * moments[1] + (1 - KEPT[1]) * slope * slope
        left = powers * KEPT
        corrections = (1 - left).tolist()
        spread = np.sqrt(second / corrections[1])
        spread += EPSILON
        moved = vector - first * (rate.item() / corrections[0]) / spread
        gradient.fill(0.0)
        if not math.isfinite(moved.sum() + second.sum()):  # one number that is not shows in the sum
            return False
        vector[:], moments[0], moments[1], powers[:] = moved, first, second, left
        return True

    @cached_property
    def _as_arrays(self) -> tuple[NDArray[Any], ...]:
        return tuple(part.numpy() for part in self._changing)

    @cached_property
    def arrays(self) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
        """Parameters and their gradients as NumPy sees them, in the same memory, on the CPU."""
        return {name: (leaf.detach().numpy(), leaf.grad.numpy()) for name, leaf in self.parameters.items()}  # type: ignore[union-attr]

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
        return {name: value for name, value in vars(self).items() if name not in ("parameters", "arrays", "_as_arrays")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._bind()
