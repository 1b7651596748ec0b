"""Learning from streams, several replications at once.

Batches of a stream differ in length from replication to replication: they are padded, and padding
weighs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.batches.samples import Samples
from metrifair.problem.criteria import Penalize
from metrifair.training.models import Network, stack_parameters
from metrifair.training.objective import Task
from metrifair.training.stack import Adam

Integers = NDArray[np.int64]


def fixed_ends(length: int, size: int) -> Integers:
    """Where batches of so many samples end in a stream of this length."""
    return np.arange(size, length + 1, size)


def covering_ends(group: Integers, size: int, least: int = 2) -> Integers:
    """Where covering batches end: at least ``size`` samples, and ``least`` of each of two groups.

    >>> covering_ends(np.array([0, 0, 0, 0, 1, 1, 0, 1, 0, 1]), size=4).tolist()
    [6, 10]
    """
    places = [np.flatnonzero(group == code).tolist() for code in (0, 1)]
    before = [np.concatenate([[0], np.cumsum(group == code)]).tolist() for code in (0, 1)]
    ends, start = [], 0
    while True:
        needed = [before[code][start] + least - 1 for code in (0, 1)]
        if any(last >= len(places[code]) for code, last in enumerate(needed)):
            break
        end = max(start + size, *(places[code][last] + 1 for code, last in enumerate(needed)))
        if end > len(group):
            break
        ends.append(end)
        start = end
    return np.array(ends, dtype=np.int64)


class PaddedBatch(NamedTuple):
    """One batch of every replication, padded: (replications, width)."""

    place: Tensor  # in each replication's stream
    counted: Tensor  # False where it is padding
    sizes: Tensor  # (replications,)


def batches(ends: list[Integers]) -> Iterator[PaddedBatch]:
    """The batches of all replications, as many as the longest has; those of others are empty in
    the end.
    """
    steps = max(map(len, ends))
    stops = np.stack([np.pad(own, (0, steps - len(own)), mode="edge") for own in ends], 1)
    starts = np.vstack([np.zeros((1, len(ends)), dtype=np.int64), stops[:-1]])
    widths = (stops - starts).max(1)
    for start, stop, width in zip(
        torch.as_tensor(starts), torch.as_tensor(stops), widths.tolist(), strict=True
    ):
        place = start[:, None] + torch.arange(width)
        counted = place < stop[:, None]
        yield PaddedBatch(torch.where(counted, place, 0), counted, stop - start)


def covering_weights(
    group: Tensor, batch: PaddedBatch, size: int, *, always: bool = False
) -> Tensor:
    """Loss weights of covering batches, (replications, width); see ``batches.overshoot_weights``.

    ``always``: the published code also weighs batches that did not overshoot.
    """
    n = batch.sizes[:, None].double()
    scarce = [((group == code) & batch.counted).sum(1, keepdim=True) == 2 for code in (0, 1)]
    critical = ((group == 0) & scarce[0] | (group == 1) & scarce[1]) & batch.counted
    share = 1 - critical.double() / critical.sum(1, keepdim=True).clamp_min(1)
    weight = torch.where((n > size) | torch.tensor(always), share * n / (n - 1), 1.0)
    return torch.where(batch.counted, weight, 0.0)


def energy(score: Tensor, group: Tensor, counted: Tensor, *, unbiased: bool) -> Tensor:
    """Energy distance between the groups of each replication's batch, (replications, models); 0
    where one is missing.

    ``score`` is (replications, models, width), the others (replications, width). In ascending order
    of the scores it is linear in them, with coefficients that need no gradient: one sort, no pairs.
    """
    with torch.no_grad():
        order = score.argsort(-1)
        # of shape: 2, replications, width
        member = torch.stack([(group == code) & counted for code in (0, 1)]).to(score.dtype)
        sizes = member.sum(-1, keepdim=True)
        scale = (
            torch.where(sizes > 1, sizes / (sizes - 1).clamp_min(1), 0.0)
            if unbiased
            else torch.ones_like(sizes)
        )
        share = (member / sizes.clamp_min(1)).unsqueeze(2).expand(2, *score.shape)
        share = share.gather(-1, order.expand_as(share))
        below = 2 * share.cumsum(-1) - share - 1  # weight below less weight above
        within = (scale.unsqueeze(2) * share * below).sum(0)
        across = (share * below.flip(0)).sum(0)
        both = (sizes > 0).all(0).unsqueeze(-1)
        coefficient = torch.where(both, 2 * (across - within), 0.0)
    return (coefficient * score.gather(-1, order)).sum(-1)


class Learners:
    """Networks that learn from a stream, one for each replication and strength, all in one step."""

    def __init__(
        self,
        network: Network,
        task: Task,
        *,
        seeds: Sequence[int],
        strengths: Sequence[float],
        learning_rate: float,
        weight_decay: float = 0.0,
        penalize: Penalize = "prediction",
    ) -> None:
        self.network, self.task, self.penalize = network, task, penalize
        start = stack_parameters([network.initial(seed) for seed in seeds], len(strengths))
        parameters = {name: value.float() for name, value in start.items()}
        self.adam = Adam(parameters, learning_rate=learning_rate, weight_decay=weight_decay)
        self.strength = torch.tensor(strengths)

    def step(self, samples: Samples, counted: Tensor, *, unbiased: bool) -> None:
        """Down the gradient of the loss, weighted, plus strength x energy; samples are
        (replications, width, ...).

        ``cell`` is the group; the weights are divided by the number of samples that count.
        """
        output = self.network(self.adam.parameters, samples.x)
        sizes = counted.sum(1, keepdim=True).clamp_min(1)
        loss = self.task.loss(output, samples.y.unsqueeze(1))
        risk = ((samples.weight / sizes).unsqueeze(1) * loss).sum(-1)
        score = output if self.penalize == "output" else self.task.prediction(output)
        penalty = energy(score, samples.cell, counted, unbiased=unbiased)
        (risk + self.strength * penalty).sum().backward()
        # their streams are over, but momentum would carry them on
        ended = (~counted.any(1)).nonzero()[:, 0]
        kept = {name: value.detach()[ended].clone() for name, value in self.adam.parameters.items()}
        self.adam.step()
        with torch.no_grad():
            for name, value in kept.items():
                self.adam.parameters[name][ended] = value

    def follow(
        self,
        samples: Samples,
        order: Tensor,
        *,
        size: int,
        unbiased: bool,
        covering: bool,
        weighting: Literal["plain", "exact", "always"],
    ) -> Iterator[PaddedBatch]:
        """Learn from the samples in each replication's order, (replications, length), and yield
        each batch afterwards.

        ``unbiased``: the U-statistic, else the plug-in value; ``covering``: batches wait for two of
        each group. ``weighting`` of the loss of covering batches: none, exact, or also where a
        batch did not overshoot.
        """
        groups = samples.cell[order]
        ends = [
            covering_ends(own.numpy(), size) if covering else fixed_ends(len(own), size)
            for own in groups
        ]
        for batch in batches(ends):
            chosen = order.gather(1, batch.place)
            group, weight = samples.cell[chosen], batch.counted.double()
            if covering and weighting != "plain":
                weight = covering_weights(group, batch, size, always=weighting == "always")
            learned = Samples(samples.x[chosen], samples.y[chosen], group, weight.float())
            self.step(learned, batch.counted, unbiased=unbiased)
            yield batch

    @torch.no_grad()
    def predictions(self, x: Tensor) -> Tensor:
        """What all networks predict for the same rows, (replications, strengths, n)."""
        replications = len(self.adam.parameters["bias0"])
        return self.task.prediction(
            self.network(self.adam.parameters, x.expand(replications, *x.shape))
        )
