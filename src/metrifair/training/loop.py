"""The training of a whole stack of models at once: all strengths and seeds, one step after the other.

Shapes never change from step to step and no step asks the device for an answer, so that on an accelerator a step
is recorded once and replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple, TypeAlias

import torch
from threadpoolctl import ThreadpoolController
from torch import Tensor

from metrifair.batches.stratified import EpochSource, stratified_epochs
from metrifair.problem.cells import Batch, Samples, Sides
from metrifair.progress import Progress
from metrifair.training.adam import Adam
from metrifair.training.models import Model, Predictor, Scaling, member, scaling_of, stacked
from metrifair.training.objective import Objective

_MOST_ON_ONE_THREAD = 2**26
"""Multiplications of a step. Beside busy processes on two cores a second thread makes 2^25 take 2.2 times as long, and
2^30 as long as one thread does."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train."""

    batch_size: int
    epochs: int
    learning_rate: float
    learning_rate_decay: float = 1.0  # factor after each epoch
    weight_decay: float = 0.0


class Trained(NamedTuple):
    """A stack of trained models, in double precision on the device they were trained on."""

    model: Model
    parameters: dict[str, Tensor]  # leading axes (seeds, strengths)
    scaling: Scaling  # (seeds, features)
    failed: Tensor  # (seeds, strengths): True where training diverged; such parameters are all 0

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
    source: EpochSource | None = None,
    path: bool = False,
    standardize: bool = True,
    device: torch.device | str = "cpu",
    verbose: bool = False,
) -> Trained:
    """Models of every seed (initialisation and batches) and every strength.

    ``rows`` gives each seed its own training rows of the shared data; else all seeds use all rows. ``source`` gives
    other batches than stratified ones. With ``path`` the strengths are trained one after the other, each from where the
    one before ended. Where every batch is the whole data set, models are trained in double precision, else in single.
    """
    own = [torch.arange(len(data))] * len(seeds) if rows is None else list(rows)
    source = source or stratified_epochs(
        data, own, objective.comparisons, batch_size=schedule.batch_size, least=objective.least, fewest=objective.fewest
    )
    if not any(strengths):
        source = source._replace(sides=())
    scaling = scaling_of(data, rows) if standardize else Scaling.none(data.x.shape[1])
    rounds = [[value] for value in strengths] if path else [list(strengths)]
    where = torch.device(device)
    stack = _stack_at_start(
        data, model, objective, scaling, source, schedule=schedule, strengths=rounds[0], seeds=seeds, device=where
    )
    torch.get_num_threads()  # one_thread wants torch's settings read
    small = where.type == "cpu" and stack.work(source.size) <= _MOST_ON_ONE_THREAD
    on_its_device = torch.cuda.device(where) if where.type == "cuda" else nullcontext()  # for streams and graphs
    with one_thread() if small else on_its_device:
        parameters, failed = _trained(stack, source, schedule, rounds, seeds, verbose=verbose)
    of_each = (part.to(where).expand(len(seeds), -1) for part in scaling)
    return Trained(model, parameters, Scaling(*of_each), failed)


def _trained(
    stack: Stack,
    source: EpochSource,
    schedule: Schedule,
    rounds: Sequence[Sequence[float]],
    seeds: Sequence[int],
    *,
    verbose: bool,
) -> tuple[dict[str, Tensor], Tensor]:
    """The parameters at the end of every round of strengths, and where training failed."""
    device, dtype = stack.x.device, stack.x.dtype
    step = stack.step if device.type == "cpu" else recorded(stack, source.size)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    ends: list[tuple[dict[str, Tensor], Tensor]] = []
    total = schedule.epochs * len(rounds)
    with Progress("training", total) if verbose else nullcontext() as progress:
        upcoming = source.draw(generators, stack.outputs)
        for epoch in range(1, total + 1):
            for chosen, weight in upcoming.steps(device, dtype):
                step(chosen, weight)
            stack.adam.learning_rate.mul_(schedule.learning_rate_decay)
            if epoch < total:  # before the device is waited for: it is still at work
                upcoming = source.draw(generators, stack.outputs)
            stack.give_up()
            if epoch % schedule.epochs == 0:
                ends.append(stack.end())
                stack.strength.copy_(torch.tensor(rounds[min(len(ends), len(rounds) - 1)]))
                stack.adam.learning_rate.fill_(schedule.learning_rate)
            if progress is not None:
                progress.show(epoch)
    parameters = {name: torch.cat([end[name] for end, _ in ends], 1) for name in stack.adam.parameters}
    return parameters, torch.cat([lost for _, lost in ends], 1)


Step: TypeAlias = Callable[[Tensor, Tensor], None]
"""One step of all models, on rows (seeds, size) with loss weights of that shape."""


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
    value: Tensor | None = None  # of the attributes that scores should not depend on, in all rows

    def work(self, rows: int) -> int:
        """About how many multiplications a step on so many rows takes forward."""
        return rows * sum(value.numel() for value in self.adam.parameters.values())

    def step(self, chosen: Tensor, weight: Tensor) -> None:
        """One step of all models on the rows (seeds, size), which count so much."""
        features = self.scaling.apply(self.x[chosen])
        value = None if self.value is None else self.value[chosen].unsqueeze(1)
        batch = Batch(Samples(features, self.y[chosen].unsqueeze(1), chosen, weight.unsqueeze(1), value), self.sides)
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
        """Copies of the parameters in double precision, all 0 where training failed, and where that was."""
        parameters = {name: value.detach().to(torch.float64, copy=True) for name, value in self.adam.parameters.items()}
        for value in parameters.values():
            value[self.failed] = 0.0
        return parameters, self.failed.clone()


def _stack_at_start(
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
    dtype = torch.float64 if source.whole else torch.float32
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
        Adam(start, learning_rate=schedule.learning_rate, weight_decay=schedule.weight_decay),
        torch.tensor(strengths, dtype=dtype, device=device),
        torch.zeros(len(seeds), len(strengths), dtype=torch.bool, device=device),
        None if data.value is None else data.value.to(device),
    )


def recorded(stack: Stack, size: int) -> Step:
    """The step as a CUDA graph: recorded once, then replayed on new rows without the host's help."""
    rows = torch.zeros(len(stack.failed), size, dtype=torch.long, device=stack.x.device)
    weight = torch.ones_like(rows, dtype=stack.x.dtype)
    saved = stack.adam.snapshot()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):  # libraries set themselves up during the first calls, which may not be recorded
            stack.step(rows, weight)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(stack.objective.generator)
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads may train on other devices
        stack.step(rows, weight)
    stack.adam.restore(saved)

    def replay(chosen: Tensor, counts: Tensor) -> None:
        rows.copy_(chosen)
        weight.copy_(counts)
        graph.replay()

    return replay


@contextmanager
def one_thread() -> Iterator[None]:
    """Within this, what the calling thread asks of torch runs on that thread alone; other threads are not touched.

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
