"""What a stack of models reaches on given rows: by that a constant is preferred, and training stopped early."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from metrifair.metrics.registry import Estimate, facts, least_samples
from metrifair.problem.cells import Batch, Samples, sides_of
from metrifair.training.adam import Adam
from metrifair.training.models import Parameters
from metrifair.training.objective import Objective

_MOST_SCORES = 65_536  # that the comparisons of one evaluation look at, about
_MOST_PAIRED = 2_000  # where a metric looks at all pairs of them
_NUMBERS_AT_ONCE = 2**20

Outputs: TypeAlias = Callable[[int, slice, Tensor], Tensor]
"""What some models of a seed return for some rows: (strengths, n) or (strengths, n, outputs)."""


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
        estimate: Estimate = "population" if objective.estimate == "population" else "batch"
        least = least_samples(objective.metric, estimate)
        cells = [data.cell[part] for part in rows]
        enough = [
            all(min(side.counts) >= one.needs(least) for side in of_one)
            for one, *of_one in zip(
                objective.comparisons, *(sides_of(objective.comparisons, cell) for cell in cells), strict=True
            )
        ]
        kept = tuple(one for one, fine in zip(objective.comparisons, enough, strict=True) if fine)
        objective = replace(objective, comparisons=kept, estimate=estimate)
        by_pairs = callable(objective.metric) or facts(objective.metric).by_pairs
        most = _MOST_PAIRED if by_pairs else _MOST_SCORES
        own, batches = [], []
        for part in rows:
            work = sum(sum(side.counts) for side in sides_of(objective.comparisons, data.cell[part]))
            chosen = part[some_rows(data.cell[part], max(work, len(part)), most)]
            weight = data.weight[chosen].double()
            even = bool((weight == weight[0]).all())
            y = data.y[chosen].to(like.device, like.dtype if data.y.is_floating_point() else None)
            cell = data.cell[chosen].to(like.device)
            value = None if data.value is None else data.value[chosen].to(like.device)
            samples = Samples(like.new_empty(len(chosen), 0), y, cell, (weight / weight.mean()).to(like), value)
            sides = sides_of(objective.comparisons, cell, None if even else weight.to(like))
            own.append(chosen.to(like.device))
            batches.append(Batch(samples, sides))
        generator = torch.Generator(like.device).manual_seed(0)
        return cls(replace(objective, generator=generator), tuple(own), tuple(batches))

    @torch.no_grad()
    def __call__(self, outputs: Outputs, strengths: Tensor) -> Tensor:
        """The objective (seeds, strengths) of models with these outputs."""
        return torch.stack([self._of_seed(seed, outputs, strengths) for seed in range(len(self.rows))])

    def _of_seed(self, seed: int, outputs: Outputs, strengths: Tensor) -> Tensor:
        rows, batch = self.rows[seed], self.batches[seed]
        at_once, found = max(1, _NUMBERS_AT_ONCE // len(rows)), []
        for begin in range(0, len(strengths), at_once):
            some = slice(begin, begin + at_once)
            self.objective.generator.manual_seed(0)  # of projections: the same for all models
            terms = self.objective(outputs(seed, some, rows), batch)
            found.append(terms.risk + strengths[some] * terms.unfairness)
        return torch.cat(found)


def some_rows(cell: Tensor, work: int, most: int) -> Tensor:
    """Every row; where that is too much work every second of each cell, or third ..., and two of each in any case.

    >>> some_rows(torch.tensor([0, 0, 0, 0, 0, 1]), work=12, most=4)
    tensor([0, 1, 3, 5])
    """
    step = max(1, -(-work // most))
    order = cell.argsort(stable=True)
    place = torch.cat([torch.arange(int(count)) for count in torch.bincount(cell)])
    return order[(place % step == 0) | (place < 2)].sort().values


class Models(Protocol):
    """Models in training."""

    @property
    def adam(self) -> Adam:
        """Their parameters."""
        ...

    def outputs_of(self, parameters: Parameters) -> Outputs:
        """What models with these parameters return for the rows of a seed."""
        ...


class BestWeights:
    """The weights of each model where it was best on rows kept aside, until it has not become better for long."""

    def __init__(self, parameters: Parameters, judges: RowsObjective, patience: int) -> None:
        some = next(iter(parameters.values()))
        self.judges, self.patience = judges, patience
        self.parameters = {name: value.detach().clone() for name, value in parameters.items()}
        self.value = torch.full(some.shape[:2], torch.inf, dtype=some.dtype, device=some.device)
        self.epoch = torch.zeros(some.shape[:2], dtype=torch.long, device=some.device)
        self.stopped = torch.zeros_like(self.epoch, dtype=torch.bool)

    @torch.no_grad()
    def compare(self, models: Models, strengths: Tensor, epoch: int, *, grown: float) -> bool:
        """Keep the weights of models that are better now than before; whether all have been stopped.

        Patience is not lost before the epoch in which strengths have grown to what they are to be. A model that was
        stopped is left alone, so that it is the same whatever others it is trained beside.
        """
        now = models.adam.parameters
        value = self.judges(models.outputs_of(now), strengths)
        better = (value < self.value) & ~self.stopped
        self.value[better], self.epoch[better] = value[better], epoch
        for name, kept in self.parameters.items():
            kept[better] = now[name][better]
        since = torch.where(strengths > 0, self.epoch.clamp_min(math.ceil(grown)), self.epoch)
        self.stopped |= epoch - since >= self.patience
        return bool(self.stopped.all())
