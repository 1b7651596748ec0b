"""Train a stack of models at once: all strengths and seeds, step by step.

The objective on fixed rows decides whether a constant is better, and when to stop early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from itertools import compress
from math import ceil, inf
from typing import NamedTuple

import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from metrifair.batches.samples import Batch, Samples, plug_in_sides
from metrifair.metrics.registry import Estimate, facts_for, least_samples
from metrifair.support.progress import Progress
from metrifair.training.models import (
    Model,
    Network,
    Parameters,
    Predictor,
    Scaling,
    compute_scaling,
    copy_parameters,
    member,
)
from metrifair.training.objective import Objective, constant_output
from metrifair.training.stack import (
    Epoch,
    EpochSource,
    Schedule,
    SeedOutputs,
    Stack,
    make_stack,
    send,
    stratified_epochs,
)

_MOST_SCORES = 65_536  # in the comparisons of one evaluation, about
_MOST_PAIRED = 2_000  # the same for metrics of all pairs of scores
_NUMBERS_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class RowsObjective:
    """Risk + strength x unfairness of fixed rows of each seed, evaluated exactly; very many
    rows are thinned.
    """

    objective: Objective
    rows: tuple[Tensor, ...]  # of each seed
    batches: tuple[Batch, ...]

    @classmethod
    def from_rows(
        cls, data: Samples, rows: Sequence[Tensor], objective: Objective, *, like: Tensor
    ) -> RowsObjective:
        """The objective on these rows of each seed, with the dtype and the device of ``like``.

        The distance is that of the rows, unless the objective estimates that of the population.
        Comparisons with too few rows in some seed are left out.
        """
        data = _without_features(data)
        estimate: Estimate = "batch"
        if objective.estimate == "population":
            estimate = "population"
        least = least_samples(objective.metric, estimate)
        by_seed = [plug_in_sides(objective.comparisons, data.take(part)) for part in rows]
        enough = []
        for comparison, *all_sides in zip(objective.comparisons, *by_seed, strict=True):
            fewest = min(min(side.counts) for side in all_sides)
            enough.append(fewest >= comparison.needs(least))
        comparisons = tuple(compress(objective.comparisons, enough))
        most = _MOST_SCORES
        if facts_for(objective.metric).by_pairs:
            most = _MOST_PAIRED
        thinned = []
        batches = []
        for part, part_sides in zip(rows, by_seed, strict=True):
            compared = compress(part_sides, enough)
            scores = sum(sum(side.counts) for side in compared)
            work = max(scores, len(part))
            kept = thin_rows(data.cell[part], work, most)
            chosen = part[kept]
            samples = data.take(chosen)
            weight = samples.weight
            even = samples.with_weight(weight / weight.mean())
            sides = plug_in_sides(comparisons, samples.to(like))
            thinned.append(chosen.to(like.device))
            batches.append(Batch(even.to(like), sides))
        exact = replace(
            objective,
            comparisons=comparisons,
            estimate=estimate,
            generator=torch.Generator(like.device).manual_seed(0),
        )
        return cls(exact, tuple(thinned), tuple(batches))

    @torch.no_grad()
    def __call__(self, outputs: SeedOutputs, strengths: Tensor) -> Tensor:
        """The objective (seeds, strengths) of models with these outputs."""
        by_seed = []
        for seed, (rows, batch) in enumerate(zip(self.rows, self.batches, strict=True)):
            fitting = _NUMBERS_AT_ONCE // len(rows)
            at_once = max(1, fitting)
            values = []
            for begin in range(0, len(strengths), at_once):
                part = slice(begin, begin + at_once)
                self.objective.generator.manual_seed(0)  # the same projections for all models
                output = outputs(seed, part, rows)
                terms = self.objective(output, batch)
                penalty = strengths[part] * terms.unfairness
                values.append(terms.risk + penalty)
            by_seed.append(torch.cat(values))
        return torch.stack(by_seed)


def _without_features(data: Samples) -> Samples:
    """The samples without features, which take most of the memory; weights are precise."""
    return replace(data, x=data.x[:, :0], weight=data.weight.double())


def thin_rows(cell: Tensor, work: int, most: int) -> Tensor:
    """Every row, or every second, third ... of each cell if there is too much work; at least two of
    each cell.

    >>> thin_rows(torch.tensor([0, 0, 0, 0, 0, 1]), work=12, most=4)
    tensor([0, 1, 3, 5])
    """
    step = max(1, ceil(work / most))
    order = cell.argsort(stable=True)
    counts = torch.bincount(cell).tolist()
    place = torch.cat(list(map(torch.arange, counts)))  # in its cell
    is_kept = (place % step == 0) | (place < 2)
    return order[is_kept].sort().values


class BestWeights:
    """The weights of each model with the lowest objective on validation rows, until it has not
    improved for long.
    """

    def __init__(self, parameters: Parameters, validator: RowsObjective, patience: int) -> None:
        first = next(iter(parameters.values()))
        models = first.shape[:2]
        self.validator = validator
        self.patience = patience
        self.parameters = copy_parameters(parameters)
        self.value = first.new_full(models, inf)
        self.epoch = first.new_zeros(models, dtype=torch.long)
        self.stopped = first.new_zeros(models, dtype=torch.bool)

    @torch.no_grad()
    def update(self, stack: Stack, strengths: Tensor, epoch: int, *, growth: float) -> bool:
        """Keep the weights of models that improved; return whether all models have stopped.

        Patience counts after the epochs in which strengths grow, ``growth``. A stopped model is not
        updated, so that it does not depend on the other models of the stack.
        """
        current = stack.adam.parameters
        value = self.validator(stack.seed_outputs(current), strengths)
        better = (value < self.value) & ~self.stopped
        self.value[better] = value[better]
        self.epoch[better] = epoch
        for name, best in self.parameters.items():
            best[better] = current[name][better]
        after_growth = self.epoch.clamp_min(ceil(growth))
        since = torch.where(strengths > 0, after_growth, self.epoch)
        self.stopped |= epoch - since >= self.patience
        return bool(self.stopped.all())


_STEPS_SENT = 1024  # strengths and learning rates of so many steps are sent to the device together
_UNSEEN = 1e-9  # samples of a class that no row of a seed has
_MOST_ON_ONE_THREAD = 2**26
"""Multiplications of a forward step, about: rows x parameters. If other processes use both cores,
two threads take 2.2 times as long as one for 2^25 multiplications, and as long as one for 2^30.
"""


class TrainedStack(NamedTuple):
    """A stack of trained models, in double precision on the device they were trained on."""

    model: Model
    parameters: Parameters  # leading axes (seeds, strengths)
    scaling: Scaling  # (seeds, features)
    failed: Tensor  # (seeds, strengths): True where training diverged; such parameters are all 0
    epochs: Tensor  # (seeds, strengths): epochs until these parameters

    def predictor(self, seed: int, strength: int) -> Predictor:
        """The model at these places of the stack, on the CPU."""
        parameters = member(self.parameters, seed, strength)
        scaling = self.scaling.at(seed)
        return Predictor(self.model, parameters, scaling.to("cpu"))


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
    validated: Estimate = "population",
    source: EpochSource | None = None,
    standardize: bool = True,
    device: torch.device | str = "cpu",
    verbose: bool = False,
) -> TrainedStack:
    """Train models of every seed (initialization and batches) and every strength.

    ``rows`` gives each seed its training rows; by default all seeds use all rows. With
    ``validation`` rows of each seed a model keeps the weights with the lowest objective there;
    ``validated`` is what their distance estimates (by default, they are fresh rows of the
    population).
    ``source`` replaces stratified batches. Models are trained in double precision if every batch is
    the whole data set, else in single precision.
    """
    seed_rows = [torch.arange(len(data))] * len(seeds)
    if rows is not None:
        seed_rows = list(rows)
    source = source or stratified_epochs(
        data,
        seed_rows,
        objective,
        batch_size=schedule.batch_size,
        steps=schedule.steps,
        device=device,
    )
    if not any(strengths):
        source = source._replace(sides=())
    scaling = Scaling.none(data.x.shape[1])
    if standardize:
        scaling = compute_scaling(data, rows)
    target = torch.device(device)
    stack = make_stack(
        data,
        model,
        objective,
        scaling,
        source,
        schedule=schedule,
        strengths=strengths,
        seeds=seeds,
        device=target,
    )
    validator = None
    if validation is not None:
        exact = replace(objective, estimate=validated)
        validator = RowsObjective.from_rows(data, validation, exact, like=stack.x)
    multiplications = source.size * len(stack.adam.vector)
    with computing_on(target, multiplications):
        constants = None
        if schedule.from_constant and isinstance(model, Network):
            fits = [_constant(data, part, objective, model.outputs) for part in seed_rows]
            constants = torch.stack(fits)
            stack.begin_near(constants)
        parameters, failed, epochs = _run_epochs(
            stack, source, schedule, strengths, seeds=seeds, validator=validator, verbose=verbose
        )
        if constants is not None and any(strengths) and isinstance(model, Network):
            flat = model.near(parameters, constants, spread=0.0)
            every_row = RowsObjective.from_rows(data, seed_rows, objective, like=stack.x)
            parameters = _or_constants(stack, parameters, flat, every_row, strengths)
    mean, scale = scaling.to(target)
    return TrainedStack(
        model=model,
        parameters=parameters,
        scaling=Scaling(
            mean=mean.expand(len(seeds), -1),
            scale=scale.expand(len(seeds), -1),
        ),
        failed=failed,
        epochs=epochs,
    )


def computing_on(device: torch.device, multiplications: int) -> AbstractContextManager[None]:
    """A context for the steps of a stack: on its CUDA device, or on one thread of the CPU if
    steps are small.
    """
    if device.type == "cuda":
        return torch.cuda.device(device)  # for streams and graphs
    torch.get_num_threads()  # one_thread needs torch's settings read
    if device.type == "cpu" and multiplications <= _MOST_ON_ONE_THREAD:
        return one_thread()
    return nullcontext()


def _run_epochs(
    stack: Stack,
    source: EpochSource,
    schedule: Schedule,
    strengths: Sequence[float],
    *,
    seeds: Sequence[int],
    validator: RowsObjective | None,
    verbose: bool,
) -> tuple[Parameters, Tensor, Tensor]:
    """The parameters at the end, where training failed, and the number of epochs."""
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    total = schedule.epochs
    growth = schedule.growth * total
    strength = stack.x.new_tensor(strengths)
    best = None
    if validator is not None:
        best = BestWeights(stack.adam.parameters, validator, schedule.patience)

    def draw() -> Epoch:
        batches = source.draw(generators, stack.outputs)
        return batches.on(stack.x.device, stack.x.dtype)

    shown = Progress("training", total) if verbose else nullcontext()
    with shown as progress:
        batches = draw()
        run = _runner(stack, batches)
        _, steps, _ = batches.rows.shape
        plan = _plan(stack, schedule, steps, strengths)
        for epoch in range(1, total + 1):
            run(batches, *next(plan))
            if epoch < total:  # while the device still computes
                batches = draw()
            stopped = best is not None and best.update(stack, strength, epoch, growth=growth)
            if progress is not None:
                progress.show(epoch)
            if stopped:
                break
    parameters: Parameters = stack.adam.parameters
    epochs = torch.full_like(stack.failed, total, dtype=torch.long)
    if best is not None:
        parameters = best.parameters
        epochs = best.epoch
    return (*stack.end(parameters), epochs)


def _runner(stack: Stack, like: Epoch) -> Callable[[Epoch, Tensor, Tensor], None]:
    """A function that runs the steps of epochs with the shape of this one."""
    if stack.x.device.type == "cpu":
        return stack.steps
    from metrifair.training.graphs import record_steps  # noqa: PLC0415 (Triton takes a while to import)

    return record_steps(stack, like)


def _plan(
    stack: Stack, schedule: Schedule, steps: int, strengths: Sequence[float]
) -> Iterator[tuple[Tensor, ...]]:
    """Strengths (steps, strengths) and learning rates (steps,) of the steps of each epoch."""
    strength = torch.tensor(strengths, dtype=stack.x.dtype)
    total = steps * schedule.epochs
    at_once = steps * max(1, _STEPS_SENT // steps)
    for first in range(0, total, at_once):
        places = range(first, min(total, first + at_once))
        ends = [(place + 1) / total for place in places]
        rates = []
        for place in places:
            epoch = place // steps
            decayed = schedule.learning_rate * schedule.learning_rate_decay**epoch
            rates.append(decayed * schedule.rate_at(place / total))
        planned_strengths = schedule.strengths_at(ends, strength)
        planned_rates = torch.tensor(rates, dtype=torch.float64)
        sent = [send(part, stack.x.device) for part in (planned_strengths, planned_rates)]
        yield from zip(*(part.split(steps) for part in sent), strict=True)


def _constant(data: Samples, rows: Tensor, objective: Objective, outputs: int) -> Tensor:
    """The constant output (1, outputs) that fits these rows best."""
    samples = _without_features(data).take(rows)
    weight = objective.loss_weight(samples)
    constant = constant_output(objective.task, samples.y, weight, outputs, added=_UNSEEN)
    return constant.unsqueeze(0)


def _or_constants(
    stack: Stack,
    parameters: Parameters,
    flat: Parameters,
    rows: RowsObjective,
    strengths: Sequence[float],
) -> Parameters:
    """The networks, or constant ones where these have a lower objective on the training rows."""
    strength = torch.tensor(strengths).to(stack.x)
    constant = rows(stack.seed_outputs(flat), strength)
    trained = rows(stack.seed_outputs(parameters), strength)
    is_lower = (constant < trained) & (strength > 0)
    is_replaced = is_lower[..., None, None]
    replaced = {}
    for name, value in parameters.items():
        replaced[name] = torch.where(is_replaced, flat[name], value)
    return replaced


@contextmanager
def one_thread() -> Iterator[None]:
    """Within this, torch runs the calling thread's operations on that thread alone; other threads
    are not affected.

    Threads that wait for each other many times a second wait much longer on a busy machine.
    torch.set_num_threads would also reach threads that are started meanwhile; OpenMP's own setting
    belongs to the thread that sets it. torch must be loaded, and have read its settings in this
    thread (torch.get_num_threads does that): it would undo this later.

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
    libraries = ThreadpoolController()
    return libraries.select(user_api="openmp")
