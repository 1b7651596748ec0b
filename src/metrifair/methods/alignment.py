"""What networks learn from whose representations of two groups are brought together: measures, and the objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from metrifair.methods.clouds import Points, distinct, stacked_points
from metrifair.methods.inputs import Rows
from metrifair.methods.networks import samples_of
from metrifair.methods.transport import Divergence, Sinkhorn
from metrifair.problem.tasks import BINARY
from metrifair.training.models import Network
from metrifair.training.scaling import Scaling, scaling_of


class SeedPart(NamedTuple):
    """What the networks of one seed learn from: measures, on the rows that differ."""

    seed: int
    scaling: Scaling
    everyone: Points  # the features, and the label in the last column
    sides: tuple[Points, ...]  # the features of either group that are compared


def part_of(rows: Rows, seed: int, labels: tuple[int, ...], *, standardize: bool, penalised: bool) -> SeedPart:
    """The rows of one seed; those with one of the labels, or all where none is named, are compared if penalised."""
    scaling = Scaling.none(rows.x.shape[1])
    if standardize:
        scaling = scaling_of(samples_of(rows, torch.zeros(len(rows), dtype=torch.long)), None)
    among = np.isin(rows.y, labels) if labels else np.ones(len(rows), dtype=bool)
    return SeedPart(
        seed,
        scaling,
        distinct(np.column_stack([rows.x, rows.y])),
        tuple(distinct(rows.x[among & (rows.group == code)]) for code in (0, 1) if penalised),
    )


@dataclass(frozen=True, eq=False)
class AlignmentObjective:
    """Cross-entropy and penalty of a stack of networks; ``x`` holds everyone's points, then those of each side."""

    network: Network
    solver: Sinkhorn
    level: str
    x: Tensor  # (seeds, n, features)
    y: Tensor  # (seeds, 1, of everyone)
    weights: tuple[Tensor, ...]  # (seeds, 1, of everyone), and of each side where it is compared
    strength: Tensor  # (strengths,)

    def to(self, device: torch.device, dtype: torch.dtype) -> AlignmentObjective:
        """The same elsewhere, in another precision."""
        x, y, strength, *weights = (part.to(device, dtype) for part in (self.x, self.y, self.strength, *self.weights))
        return replace(self, x=x, y=y, strength=strength, weights=tuple(weights))

    def __call__(
        self, parameters: dict[str, Tensor], before: Divergence | None, *, sharp: bool
    ) -> tuple[Tensor, Divergence | None]:
        """What each network lowers, and the divergence in it, found from where the one ``before`` was."""
        everyone, *sides = self.weights
        sizes = [weight.shape[-1] for weight in self.weights]
        hidden, output = forward(self.network, parameters, self.x)
        loss = (everyone * BINARY.loss(output[..., : sizes[0]], self.y)).sum(-1)
        if not sides:
            return loss, None
        compared = hidden if self.level == "hidden" else BINARY.prediction(output).unsqueeze(-1)
        _, u, v = compared.split(sizes, -2)
        found = self.solver.divergence(u, v, before and before.potentials, weights=(sides[0], sides[1]), sharp=sharp)
        return loss + self.strength * found.value, found


def objective_of(
    parts: Sequence[SeedPart], strengths: Sequence[float], network: Network, solver: Sinkhorn, *, level: str
) -> AlignmentObjective:
    """All seeds' and strengths' networks in one stack: the measures of the seeds are brought to one size."""
    compared = zip(*(part.sides for part in parts), strict=True) if any(strengths) else ()
    (table, weight), *sides = map(stacked_points, ([part.everyone for part in parts], *compared))
    scaling = Scaling(*map(torch.cat, zip(*(part.scaling for part in parts), strict=True)))
    x = scaling.apply(torch.cat([table[..., :-1], *(points for points, _ in sides)], 1))
    weights = tuple(part.unsqueeze(1) for part in (weight, *(weight for _, weight in sides)))
    strength = torch.tensor(strengths, dtype=torch.float64)
    return AlignmentObjective(network, solver, level, x, table[..., -1].unsqueeze(1), weights, strength)


def forward(network: Network, parameters: dict[str, Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """The last hidden layer (seeds, strengths, n, units), which is x where there is none, and the outputs."""
    last = len(network.hidden)
    hidden = x.unsqueeze(1)
    if last:
        before = Network(network.features, network.hidden[:-1], network.hidden[-1])
        hidden = before(parameters, x).relu()
        hidden = hidden.unsqueeze(-1) if network.hidden[-1] == 1 else hidden
    return hidden, (hidden @ parameters[f"weight{last}"].mT + parameters[f"bias{last}"].mT).squeeze(-1)
