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
        weight = send(self.weight, device)
        return Epoch(send(self.rows, device), weight.to(dtype))

    def part(self, steps: slice) -> Epoch:
        """The batches of these steps."""
        weight = self.weight
        if weight.shape[1] > 1:
            weight = weight[:, steps]
        return Epoch(self.rows[:, steps], weight)


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """A copy on a device, without waiting for it."""
    if tensor.device.type == device.type:
        return tensor
    pinned = tensor.contiguous().pin_memory()
    return pinned.to(device, non_blocking=True)


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
    weight = data.weight.double()
    cell_count = _count_cells(data, comparisons)
    seed_cells = rows_by_seed(data.cell, rows, cell_count)
    sizes = torch.tensor([list(map(len, cells)) for cells in seed_cells])
    _check_same_cells(sizes)
    row_counts = list(map(len, rows))
    if max(row_counts) <= batch_size:
        largest = sizes.amax(0).tolist()
        plan = Layout(tuple(largest))
        return _full_epochs(weight, seed_cells, plan, comparisons)
    plan = _batch_layout(sizes, objective, batch_size)
    if steps is None:
        full_batches = min(row_counts) // plan.size
        steps = max(1, full_batches)
    odds = None
    counts = sizes.double()
    if not _is_even(weight):
        odds = [[sampling_odds(weight[cell]) for cell in cells] for cells in seed_cells]
        # with replacement, as from infinitely many rows; but a single row remains one
        counts = counts.masked_fill(sizes > 1, inf)
    shares = _cell_shares(weight, seed_cells)
    loss_weight = plan.weights(shares).to(device, torch.float32)
    passes = make_passes(seed_cells, plan, steps, odds=odds, device=device)

    def draw(generators: Sequence[torch.Generator], _: Outputs) -> Epoch:
        return Epoch(passes(generators), loss_weight)

    drawn_from = counts.unsqueeze(1)  # (seeds, 1, cells)
    if _is_even(counts):
        drawn_from = counts[0]
    sides = [plan.sides(comparison, shares, drawn_from) for comparison in comparisons]
    return EpochSource(plan.size, tuple(sides), draw)


def _is_even(values: Tensor) -> bool:
    """Whether all entries are equal, along the first axis."""
    equal = values == values[0]
    return bool(equal.all())


def _count_cells(data: Samples, comparisons: Sequence[Comparison]) -> int:
    """One more than the largest cell of the data and the comparisons."""
    last = int(data.cell.max())
    for comparison in comparisons:
        last = max(last, *comparison.left, *comparison.right)
    return last + 1


def _check_same_cells(sizes: Tensor) -> None:
    """Raise a DataError unless all seeds have rows of the same cells; sizes are (seeds, cells)."""
    lacking = (sizes == 0).any(0)
    present = (sizes > 0).any(0)
    differing = lacking & present
    if differing.any():
        raise DataError(
            "some seeds' training rows lack a cell that others have; choose splits that hold every "
            "group"
        )


def _batch_layout(sizes: Tensor, objective: Objective, batch_size: int) -> Layout:
    """The layout of batches for all seeds; warns if they hold more rows than requested."""
    plan = layout(
        sizes.amin(0).tolist(),
        objective.comparisons,
        size=batch_size,
        least=objective.least,
        fewest=objective.fewest,
    )
    if plan.size > batch_size:
        warn_user(
            f"batches hold {plan.size} samples instead of {batch_size}, so that each has "
            f"{objective.least} of every group that is compared",
            UserWarning,
        )
    return plan


def _cell_shares(weight: Tensor, seed_cells: ByCell) -> Tensor:
    """The share of each cell in the weight of a seed's rows: (seeds, 1, cells)."""
    by_seed = []
    for cells in seed_cells:
        totals = [weight[cell].sum() for cell in cells]
        by_cell = torch.stack(totals)
        by_seed.append(by_cell / by_cell.sum())
    return torch.stack(by_seed).unsqueeze(1)


def rows_by_seed(cell: Tensor, rows: Sequence[Tensor], cells: int) -> list[list[Tensor]]:
    """Each seed's rows by cell; seeds that share their rows share these lists."""
    by_rows = {}
    for part in rows:
        places = rows_by_cell(cell[part], cells)
        by_rows[id(part)] = [part[inside] for inside in places]
    return [by_rows[id(part)] for part in rows]


def _full_epochs(
    weight: Tensor, seed_cells: ByCell, plan: Layout, comparisons: Sequence[Comparison]
) -> EpochSource:
    """All rows in every batch: weights then act as weights, not as odds of being drawn.

    Each cell has the places of the seed with most rows in it. Other seeds repeat a row there, with
    weight 0.
    """
    padded = [_pad_cells(cells, plan.counts) for cells in seed_cells]
    by_seed, padding_by_seed = zip(*padded, strict=True)
    rows = torch.stack(by_seed)
    is_padding = torch.stack(padding_by_seed)
    weights = weight[rows].masked_fill(is_padding, 0.0)
    counts = torch.tensor(plan.counts)
    cells = torch.arange(len(counts))
    cell = cells.repeat_interleave(counts)
    sides = tensor_sides(comparisons, cell, drawn_from=cell)
    if not _is_even(weights.flatten()):
        sides = tuple(replace(side, weights=weights[:, None, side.rows]) for side in sides)
    loss_weight = weights / weights.mean(1, keepdim=True)
    all_rows = Epoch(rows.unsqueeze(1), loss_weight.unsqueeze(1))
    return EpochSource(plan.size, sides, lambda *_: all_rows, full_batch=True)


def _pad_cells(cells: Sequence[Tensor], counts: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The rows of a seed's cells, filled up to these counts, and which of them are padding."""
    rows = []
    is_padding = []
    for cell, count in zip(cells, counts, strict=True):
        size = len(cell)
        repeated = cell[:1].expand(count - size)
        rows += [cell, repeated]
        is_padding.append(torch.arange(count) >= size)
    return torch.cat(rows), torch.cat(is_padding)


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
        precise = torch.tensor(times, dtype=torch.float64)
        passed = (precise / self.growth).to(strength)
        passed = passed.unsqueeze(-1)
        growing = (1 + strength) ** passed - 1
        return torch.where(passed < 1, growing, strength)

    def rate_at(self, time: float) -> float:
        """The share of the learning rate at a time from 0 to 1."""
        if not self.cooldown:
            return 1.0
        remaining = 1 - time
        return min(1.0, remaining / self.cooldown)


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
        value = None
        if self.value is not None:
            value = self.value[chosen].unsqueeze(1)
        samples = Samples(
            x=features,
            y=self.y[chosen].unsqueeze(1),
            cell=chosen,
            weight=weight.unsqueeze(1),
            value=value,
        )
        parameters = self.adam.parameters
        output = self.model(parameters, features, training=True)
        terms = self.objective(output, Batch(samples, self.sides))
        total = terms.risk + self.strength * terms.unfairness
        if self.weight_decay:
            squares = [value.square().flatten(2) for value in parameters.values()]
            sums = torch.stack([square.sum(-1) for square in squares])
            total = total + self.weight_decay / 2 * sums.sum(0)
        if self.scaled:
            total = total / (1 + self.strength)
        total.sum().backward()
        self.adam.step()

    def steps(self, batches: Epoch, strengths: Tensor, rates: Tensor) -> None:
        """Steps on the batches, each with its strengths (steps, strengths) and learning rate
        (steps,).

        Models that diverged are set to zero at the end.
        """
        rows = batches.rows
        weights = batches.weight.expand(rows.shape)
        for place in range(rows.shape[1]):
            self.strength = strengths[place]
            self.adam.learning_rate = rates[place]
            chosen = rows[:, place]
            self.step(chosen, weights[:, place])
        self.give_up()

    @torch.no_grad()
    def begin_near(self, constants: Tensor) -> None:
        """Start networks of ours near these outputs, (seeds, 1, outputs).

        Not linear models: with centered features the intercept would be optimal from the start, and
        Adam would make steps of rounding errors of its gradient.
        """
        if not isinstance(self.model, Network) or not self.model.hidden:
            return
        parameters = self.adam.parameters
        close = self.model.near(parameters, constants)
        for name, value in parameters.items():
            value.copy_(close[name])

    def seed_outputs(self, parameters: Parameters) -> SeedOutputs:
        """A function that computes the outputs of models with these parameters for the rows of
        a seed.
        """

        def outputs(seed: int, strengths: slice, rows: Tensor) -> Tensor:
            seed_parameters = {}
            for name, value in parameters.items():
                some = value[seed : seed + 1, strengths]
                seed_parameters[name] = some.to(self.x)
            scaling = self.scaling.at(seed)
            x = self.x[rows].unsqueeze(0)
            output = self.model(seed_parameters, scaling.apply(x))
            return output[0]

        return outputs

    @torch.no_grad()
    def outputs(self) -> Tensor:
        """The outputs of the current models for all rows of the data."""
        seeds = len(self.failed)
        by_seed = self.x.expand(seeds, -1, -1)
        features = self.scaling.apply(by_seed)
        return self.model(self.adam.parameters, features)

    @torch.no_grad()
    def give_up(self) -> None:
        """Set models with a parameter that is not finite to zero."""
        adam = self.adam
        values = adam.parameters.values()
        sizes = [value.numel() for value in values]
        moments_finite = adam.moments.isfinite()  # infinite ones stop it unnoticed
        finite = adam.vector.isfinite() & moments_finite.all(0)
        diverged = torch.zeros_like(self.failed)
        for part in finite.split(sizes):
            by_model = part.view(*diverged.shape, -1)
            diverged |= ~by_model.all(-1)
        for value in values:  # without waiting for the device: this too is recorded
            axes = [1] * (value.ndim - 2)
            is_lost = diverged.view(*diverged.shape, *axes)
            value.masked_fill_(is_lost, 0.0)
        adam.forget_non_finite()
        self.failed |= diverged

    def end(self, parameters: Parameters) -> tuple[Parameters, Tensor]:
        """Copies of the parameters in double precision, all 0 where training failed, and where
        that was.
        """
        copies = {}
        for name, value in parameters.items():
            trained = value.detach().to(torch.float64, copy=True)
            trained[self.failed] = 0.0
            copies[name] = trained
        return copies, self.failed.clone()


def _side_on(side: Sides, device: torch.device) -> Sides:
    """The side with its tensors on the device."""
    moved: dict[str, Any] = {}
    for name in ("rows", "weights", "fraction"):
        part = getattr(side, name)
        if isinstance(part, Tensor):
            moved[name] = part.to(device)
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
        seed = objective.generator.initial_seed()
        generator = torch.Generator(device).manual_seed(seed)
        objective = replace(objective, generator=generator)
    starts = [model.initial(seed) for seed in seeds]
    start = stack_parameters(starts, len(strengths))
    for name, value in start.items():
        start[name] = value.to(device, dtype)
    labels = data.y.to(device)
    if labels.is_floating_point():
        labels = labels.to(dtype)
    values = None
    if data.value is not None:
        values = data.value.to(device)
    scaled_decay = schedule.weight_decay if scaled else 0.0
    adam = Adam(
        start,
        learning_rate=schedule.learning_rate,
        weight_decay=schedule.weight_decay - scaled_decay,
    )
    features, seed_scaling = scaling.in_shared_units(data.x, device, dtype)
    strength = torch.tensor(strengths, dtype=dtype, device=device)
    failed = strength.new_zeros(len(seeds), len(strengths), dtype=torch.bool)
    return Stack(
        x=features,
        y=labels,
        model=model,
        objective=objective,
        scaling=seed_scaling,
        sides=tuple(_side_on(side, device) for side in source.sides),
        adam=adam,
        strength=strength,
        failed=failed,
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
        flat = [value.detach().reshape(-1) for value in start.values()]
        vector = torch.cat(flat)
        self.vector = vector
        self.gradient = torch.zeros_like(vector)
        self.moments = vector.new_zeros(2, len(vector))
        self.betas = vector.new_tensor(BETAS, dtype=torch.float64)
        self.powers = torch.ones_like(self.betas)  # beta^t
        self.learning_rate = vector.new_tensor(learning_rate, dtype=torch.float64)
        self.weight_decay = weight_decay
        self._shapes = {name: value.shape for name, value in start.items()}
        self._bind()

    def _bind(self) -> None:
        """Parameters and their gradients as views of the two vectors."""
        sizes = [shape.numel() for shape in self._shapes.values()]
        values = self.vector.split(sizes)
        slopes = self.gradient.split(sizes)
        self.parameters: Parameters = {}
        for name, value, slope in zip(self._shapes, values, slopes, strict=True):
            shape = self._shapes[name]
            leaf = value.view(shape).detach()
            leaf.requires_grad_()
            leaf.grad = slope.view(shape)
            self.parameters[name] = leaf

    @torch.no_grad()
    def step(self) -> None:
        """One step down the gradient gathered since the last one, which is then cleared."""
        if self.weight_decay:
            self.gradient.add_(self.vector, alpha=self.weight_decay)
        gradient = self.gradient
        dtype = gradient.dtype
        first, second = self.moments
        keep_first, keep_second = BETAS
        first.lerp_(gradient, 1 - keep_first)
        second.mul_(keep_second)
        second.addcmul_(gradient, gradient, value=1 - keep_second)
        self.powers.mul_(self.betas)
        of_first, of_second = 1 - self.powers
        rate = self.learning_rate / of_first
        spread = second / of_second.to(dtype)
        spread.sqrt_().add_(EPSILON)
        step = first.mul(rate.to(dtype))
        self.vector.sub_(step.div_(spread))
        gradient.zero_()

    def step_if_finite(self) -> bool:
        """The same step on the CPU; False, and no change, if a number would not be finite.

        With NumPy, whose operations take a fraction of torch's time for few parameters.
        """
        vector, gradient, moments, powers, learning_rate = self._as_arrays
        keep_first, keep_second = BETAS
        slope = gradient
        if self.weight_decay:
            slope = gradient + self.weight_decay * vector
        first, second = moments
        change = slope - first
        first = first + (1 - keep_first) * change
        square = (1 - keep_second) * slope * slope
        second = keep_second * second + square
        new_powers = powers * BETAS
        of_first, of_second = (1 - new_powers).tolist()
        spread = np.sqrt(second / of_second)
        spread += EPSILON
        rate = learning_rate.item() / of_first
        new_vector = vector - first * rate / spread
        gradient.fill(0.0)
        # a sum with a number that is not finite is not finite
        total = new_vector.sum() + second.sum()
        if not math.isfinite(total):
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
        arrays = {}
        for name, leaf in self.parameters.items():
            gradient = leaf.grad.numpy()  # type: ignore[union-attr]
            arrays[name] = leaf.detach().numpy(), gradient
        return arrays

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
        views = ("parameters", "arrays", "_as_arrays")
        return {name: value for name, value in vars(self).items() if name not in views}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._bind()
