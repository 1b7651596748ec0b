"""The loop: all strengths and seeds of a model trained at once on stratified batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from metrifair.batches.epochs import EpochSource, stratified_epochs
from metrifair.problem.samples import Samples
from metrifair.progress import Progress
from metrifair.training.models import Model, stacked
from metrifair.training.objective import Objective
from metrifair.training.predictor import Trained
from metrifair.training.scaling import Scaling, scaling_of
from metrifair.training.stack import Stack, recorded, stack_at_start


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train."""

    batch_size: int
    epochs: int
    learning_rate: float
    learning_rate_decay: float = 1.0  # factor after each epoch
    weight_decay: float = 0.0


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
        data, own, objective.comparisons, batch_size=schedule.batch_size, least=2 if objective.unbiased else 1
    )
    if not any(strengths):
        source = source._replace(sides=())
    scaling = scaling_of(data, rows) if standardize else Scaling.none(data.x.shape[1])
    rounds = [[value] for value in strengths] if path else [list(strengths)]
    stack = stack_at_start(
        data,
        model,
        objective,
        stacked([model.initial(seed) for seed in seeds], len(rounds[0])),
        scaling=scaling,
        sides=source.sides,
        strengths=rounds[0],
        learning_rate=schedule.learning_rate,
        weight_decay=schedule.weight_decay,
        device=torch.device(device),
        dtype=torch.float64 if source.whole else torch.float32,
    )
    parameters, failed = _trained(stack, source, schedule, rounds, seeds, verbose=verbose)
    of_each = (part.to(stack.device).expand(len(seeds), -1) for part in scaling)
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
    step = stack.step if stack.device.type == "cpu" else recorded(stack, source.size)
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    ends: list[tuple[dict[str, Tensor], Tensor]] = []
    total = schedule.epochs * len(rounds)
    with Progress("training", total, shown=verbose) as progress:
        upcoming = source.draw(generators, stack.outputs)
        for epoch in range(1, total + 1):
            for chosen, weight in upcoming.steps(stack.device, stack.dtype):
                step(chosen, weight)
            stack.adam.learning_rate.mul_(schedule.learning_rate_decay)
            if epoch < total:  # before the device is waited for: it is still at work
                upcoming = source.draw(generators, stack.outputs)
            stack.give_up()
            if epoch % schedule.epochs == 0:
                ends.append(stack.end())
                stack.strength.copy_(torch.tensor(rounds[min(len(ends), len(rounds) - 1)]))
                stack.adam.learning_rate.fill_(schedule.learning_rate)
            progress.show(epoch)
    parameters = {name: torch.cat([end[name] for end, _ in ends], 1) for name in stack.adam.parameters}
    return parameters, torch.cat([lost for _, lost in ends], 1)
