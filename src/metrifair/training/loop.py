"""The training of a whole stack of models at once: all strengths and seeds, one step after the other.

The models' objective on given rows decides where a constant is preferred, and when to stop early.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from itertools import compress
from typing import NamedTuple

import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from metrifair.batches.samples import Batch, Samples, plug_in_sides
from metrifair.metrics.registry import Estimate, facts_for, least_samples
from metrifair.support.progress import Progress
from metrifair.training.models import Model, Network, Parameters, Predictor, Scaling, member, scaling_of
from metrifair.training.objective import Objective, constant_output
from metrifair.training.stack import (
    Epoch,
    EpochSource,
    Schedule,
    SeedOutputs,
    Stack,
    membership_epochs,
    sent,
    stack_at_start,
    stratified_epochs,
)

_MOST_SCORES = 65_536  # that the comparisons of one evaluation look at, about
_MOST_PAIRED = 2_000  # where a metric looks at all pairs of them
_NUMBERS_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class RowsObjective:
    """Risk + strength x unfairness of fixed rows of each seed, evaluated exactly; of very many rows of some of them."""

    objective: Objective
    rows: tuple[Tensor, ...]  # of each seed
    batches: tuple[Batch, ...]

    @classmethod
    def of(cls, data: Samples, rows: Sequence[Tensor], objective: Objective, *, like: Tensor) -> RowsObjective:
        """That of these rows of the data; numbers are of the kind, and on the device, of ``like``.

        The distance is the rows' own, whatever the objective estimates, unless that is the population's. Comparisons
        that some seed has too few rows for are left out.
        """
        data = replace(data, x=data.x[:, :0], weight=data.weight.double())
        fresh = objective.estimate == "population" and data.shares is None
        estimate: Estimate = "population" if fresh else "batch"
        least = least_samples(objective.metric, estimate)
        by_seed = [plug_in_sides(objective.comparisons, data.take(part)) for part in rows]
        enough = [
            all(min(side.counts) >= comparison.needs(least) for side in sides)
            for comparison, *sides in zip(objective.comparisons, *by_seed, strict=True)
        ]
        objective = replace(objective, comparisons=tuple(compress(objective.comparisons, enough)), estimate=estimate)
        most = _MOST_PAIRED if facts_for(objective.metric).by_pairs else _MOST_SCORES
        own, batches = [], []
        for part, all_sides in zip(rows, by_seed, strict=True):
            work = sum(sum(side.counts) for side in compress(all_sides, enough))
            chosen = part[some_rows(data.cell[part], max(work, len(part)), most)]
            samples = data.take(chosen)
            sides = plug_in_sides(objective.comparisons, samples.to(like))
            own.append(chosen.to(like.device))
            batches.append(Batch(samples.with_weight(samples.weight / samples.weight.mean()).to(like), sides))
        generator = torch.Generator(like.device).manual_seed(0)
        return cls(replace(objective, generator=generator), tuple(own), tuple(batches))

    @torch.no_grad()
    def __call__(self, outputs: SeedOutputs, strengths: Tensor) -> Tensor:
        """The objective (seeds, strengths) of models with these outputs."""
        by_seed = []
        for seed, (rows, batch) in enumerate(zip(self.rows, self.batches, strict=True)):
            at_once, found = max(1, _NUMBERS_AT_ONCE // len(rows)), []
            for begin in range(0, len(strengths), at_once):
                some = slice(begin, begin + at_once)
                self.objective.generator.manual_seed(0)  # of projections: the same for all models
                terms = self.objective(outputs(seed, some, rows), batch)
                found.append(terms.risk + strengths[some] * terms.unfairness)
            by_seed.append(torch.cat(found))
        return torch.stack(by_seed)


def some_rows(cell: Tensor, work: int, most: int) -> Tensor:
    """Every row; where that is too much work every second of each cell, or third ..., and two of each in any case.

    >>> some_rows(torch.tensor([0, 0, 0, 0, 0, 1]), work=12, most=4)
    tensor([0, 1, 3, 5])
    """
    step = max(1, -(-work // most))
    order = cell.argsort(stable=True)
    place = torch.cat([torch.arange(int(count)) for count in torch.bincount(cell)])
    return order[(place % step == 0) | (place < 2)].sort().values


class BestWeights:
    """The weights of each model where it was best on rows kept aside, until it has not become better for long."""

    def __init__(self, parameters: Parameters, validator: RowsObjective, patience: int) -> None:
        some = next(iter(parameters.values()))
        self.validator, self.patience = validator, patience
        self.parameters = {name: value.detach().clone() for name, value in parameters.items()}
        self.value = torch.full(some.shape[:2], torch.inf, dtype=some.dtype, device=some.device)
        self.epoch = torch.zeros(some.shape[:2], dtype=torch.long, device=some.device)
        self.stopped = torch.zeros_like(self.epoch, dtype=torch.bool)

    @torch.no_grad()
    def compare(self, models: Stack, strengths: Tensor, epoch: int, *, grown: float) -> bool:
        """Keep the weights of models that are better now than before; whether all have been stopped.

        Patience is not lost before the epoch in which strengths have grown to what they are to be. A model that was
        stopped is left alone, so that it is the same whatever others it is trained beside.
        """
        now = models.adam.parameters
        value = self.validator(models.outputs_of(now), strengths)
        better = (value < self.value) & ~self.stopped
        self.value[better], self.epoch[better] = value[better], epoch
        for name, kept in self.parameters.items():
            kept[better] = now[name][better]
        since = torch.where(strengths > 0, self.epoch.clamp_min(math.ceil(grown)), self.epoch)
        self.stopped |= epoch - since >= self.patience
        return bool(self.stopped.all())


_COURSE = 1024  # steps whose strengths and learning rates go to the device together
_UNSEEN = 1e-9  # samples of a class that no row of a seed has
_MOST_ON_ONE_THREAD = 2**26
"""Multiplications of a step forward, about: rows x parameters. Beside busy processes on two cores a second thread makes
2^25 take 2.2 times as long, and 2^30 as long as one thread does."""


class Trained(NamedTuple):
    """A stack of trained models, in double precision on the device they were trained on."""

    model: Model
    parameters: dict[str, Tensor]  # leading axes (seeds, strengths)
    scaling: Scaling  # (seeds, features)
    failed: Tensor  # (seeds, strengths): True where training diverged; such parameters are all 0
    epochs: Tensor  # (seeds, strengths): after how many the parameters were these

    def predictor(self, seed: int, strength: int) -> Predictor:
        """The model at these places of the stack, on the CPU."""
        one = member(self.parameters, seed, strength)
        scaling = Scaling(*(part[seed : seed + 1].cpu() for part in self.scaling))
        return Predictor(self.model, {name: value.cpu() for name, value in one.items()}, scaling)


def train(
    data: Samples,
    model: Model,
    objective: Objective,
    *,
    strengths: Sequence[float],
    seeds: Sequence[int],
    schedule: Schedule,
    rows: Sequence[Tensor] | None = None,
    validation: Sequence[Tensor] | None = None,
    source: EpochSource | None = None,
    path: bool = False,
    standardize: bool = True,
    device: torch.device | str = "cpu",
    verbose: bool = False,
) -> Trained:
    """Models of every seed (initialization and batches) and every strength.

    ``rows`` gives each seed its own training rows of the shared data; else all seeds use all rows. With ``validation``
    rows of each seed a model keeps the weights whose objective was lowest there. ``source`` gives other batches than
    stratified ones. With ``path`` the strengths are trained one after the other, each from where the one before ended.
    Where every batch is the whole data set, models are trained in double precision, else in single.
    """
    own = [torch.arange(len(data))] * len(seeds) if rows is None else list(rows)
    if source is None and data.shares is not None:
        source = membership_epochs(data, own, objective, batch_size=schedule.batch_size)
    source = source or stratified_epochs(data, own, objective, batch_size=schedule.batch_size, device=device)
    if not any(strengths):
        source = source._replace(sides=())
    scaling = scaling_of(data, rows) if standardize else Scaling.none(data.x.shape[1])
    rounds = [[value] for value in strengths] if path else [list(strengths)]
    where = torch.device(device)
    stack = stack_at_start(
        data,
        model,
        objective,
        scaling,
        source,
        schedule=schedule,
        strengths=rounds[0],
        seeds=seeds,
        device=where,
    )
    torch.get_num_threads()  # one_thread wants torch's settings read
    small = where.type == "cpu" and source.size * len(stack.adam.vector) <= _MOST_ON_ONE_THREAD
    validator = None
    if validation is not None:  # fresh rows of the population
        validator = RowsObjective.of(data, validation, replace(objective, estimate="population"), like=stack.x)
    on_its_device = torch.cuda.device(where) if where.type == "cuda" else nullcontext()  # for streams and graphs
    with one_thread() if small else on_its_device:
        constants = None
        if schedule.from_constant and isinstance(model, Network):
            constants = torch.stack([_constant(data, part, objective, model.outputs) for part in own])
            stack.begin_near(constants)
        parameters, failed, epochs = _trained(
            stack, source, schedule, rounds, seeds=seeds, validator=validator, verbose=verbose
        )
        if constants is not None and any(strengths) and isinstance(model, Network):
            flat = model.near(parameters, constants, spread=0.0)
            every_row = RowsObjective.of(data, own, objective, like=stack.x)
            parameters = _or_constants(stack, parameters, flat, every_row, strengths)
    of_each = (part.to(where).expand(len(seeds), -1) for part in scaling)
    return Trained(model, parameters, Scaling(*of_each), failed, epochs)


def _trained(
    stack: Stack,
    source: EpochSource,
    schedule: Schedule,
    rounds: Sequence[Sequence[float]],
    *,
    seeds: Sequence[int],
    validator: RowsObjective | None,
    verbose: bool,
) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """The parameters at the end of every round of strengths, where training failed, and after how many epochs."""
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    ends: list[tuple[dict[str, Tensor], Tensor, Tensor]] = []
    total = schedule.epochs * len(rounds)
    best = None if validator is None else BestWeights(stack.adam.parameters, validator, schedule.patience)

    def drawn() -> Epoch:
        return source.draw(generators, stack.outputs).on(stack.x.device, stack.x.dtype)

    with Progress("training", total) if verbose else nullcontext() as progress:
        upcoming = drawn()
        run = _runner(stack, upcoming)
        for epoch in range(1, total + 1):
            within = (epoch - 1) % schedule.epochs + 1
            if within == 1:
                strength = rounds[len(ends)]
                courses = _courses(stack, schedule, upcoming.rows.shape[1], strength)
            run(upcoming, *next(courses))
            if epoch < total:  # before the device is waited for: it is still at work
                upcoming = drawn()
            grown = schedule.growth * schedule.epochs
            stopped = best is not None and best.compare(stack, stack.x.new_tensor(strength), within, grown=grown)
            if within == schedule.epochs or stopped:
                reached = torch.full_like(stack.failed, within, dtype=torch.long) if best is None else best.epoch
                ends.append((*stack.end(stack.adam.parameters if best is None else best.parameters), reached))
            if progress is not None:
                progress.show(epoch)
            if stopped:
                break
    parameters = {name: torch.cat([end[0][name] for end in ends], 1) for name in stack.adam.parameters}
    return parameters, torch.cat([end[1] for end in ends], 1), torch.cat([end[2] for end in ends], 1)


def _runner(stack: Stack, like: Epoch) -> Callable[[Epoch, Tensor, Tensor], None]:
    """A function that takes the steps of epochs with the shape of this one."""
    if stack.x.device.type == "cpu":
        return stack.steps
    from metrifair.training.graphs import recorded_steps  # noqa: PLC0415 (Triton takes a while to import)

    return recorded_steps(stack, like)


def _courses(stack: Stack, schedule: Schedule, steps: int, strengths: Sequence[float]) -> Iterator[tuple[Tensor, ...]]:
    """Strengths (steps, strengths) and learning rates (steps,) of the steps of each epoch; many are sent at once."""
    strength, total = torch.tensor(strengths, dtype=stack.x.dtype), steps * schedule.epochs
    at_once = steps * max(1, _COURSE // steps)
    for first in range(0, total, at_once):
        places = range(first, min(total, first + at_once))
        decayed = [schedule.learning_rate * schedule.learning_rate_decay ** (place // steps) for place in places]
        rates = [rate * schedule.rate_at(place / total) for rate, place in zip(decayed, places, strict=True)]
        parts = (
            schedule.strengths_at([(place + 1) / total for place in places], strength),
            torch.tensor(rates, dtype=torch.float64),
        )
        yield from zip(*(sent(part, stack.x.device).split(steps) for part in parts), strict=True)


def _constant(data: Samples, rows: Tensor, objective: Objective, outputs: int) -> Tensor:
    """The output (1, outputs) that fits these rows best, were it the same for everyone."""
    own = Samples(data.x[:0], data.y[rows], data.cell[rows], data.weight[rows].double())
    found = constant_output(objective.task, own.y, objective.loss_weight(own), outputs, added=_UNSEEN)
    return found.unsqueeze(0)


def _or_constants(
    stack: Stack, found: dict[str, Tensor], flat: dict[str, Tensor], rows: RowsObjective, strengths: Sequence[float]
) -> dict[str, Tensor]:
    """The models found, or constant ones where these have a lower objective on the rows that all were trained on."""
    strength = torch.tensor(strengths).to(stack.x)
    lower = (strength > 0) & (rows(stack.outputs_of(flat), strength) < rows(stack.outputs_of(found), strength))
    return {name: torch.where(lower[..., None, None], flat[name], value) for name, value in found.items()}


@contextmanager
def one_thread() -> Iterator[None]:
    """Within this, torch runs the calling thread's operations on that thread alone; other threads are not affected.

    Threads that wait for each other many times a second wait much longer on a busy machine. torch.set_num_threads would
    also reach threads that are started meanwhile; OpenMP's own setting belongs to the thread that sets it. torch must
    be loaded, and have read its settings in this thread (torch.get_num_threads does that): it would undo this later.

    >>> import torch
    >>> before = torch.get_num_threads()
    >>> with one_thread():
    ...     print(torch.get_num_threads())
    1
    >>> torch.get_num_threads() == before
    True
    """
    with _openmp().limit(limits=1):
        yield


@cache  # looking for libraries takes some 50 ms
def _openmp() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")
