"""Our method: every strength of every seed as one stack, judged on each seed's test rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from experiments.judging import judged
from experiments.material import Material
from experiments.rows import Row
from experiments.settings import Data, Input, Protocol
from metrifair.batches import Layout, stratified_pass
from metrifair.batches.dealing import Deal, Dealer, Outputs
from metrifair.estimators import FairClassifier, FairRegressor
from metrifair.estimators.settings import device_of, schedule_for
from metrifair.problem.cells import Attribute, Cells, compiled
from metrifair.problem.criteria import STATISTICAL_PARITY, Criterion
from metrifair.problem.samples import Comparison, Samples, rows_by_cell
from metrifair.problem.tasks import BINARY, regression
from metrifair.training import Schedule, Trained, train
from metrifair.training.models import Network
from metrifair.training.objective import Objective


class Variant(NamedTuple):
    """Which model is trained, and how fast its learning rate falls."""

    method: str
    network: bool
    decay: float = 1.0


LINEAR, NETWORK = Variant("mfl-linear", network=False), Variant("mfl-nn", network=True)


def decayed(variant: Variant) -> Variant:
    """The learning rate falls by one percent per epoch: so the text; the code never did it."""
    return variant._replace(method=f"{variant.method}-decay", decay=0.99)


@dataclass(frozen=True)
class Cell:
    """One entry of a table of the paper: a data set, a protocol, an input and a criterion."""

    experiment: str
    protocol: Protocol
    input: Input
    name: str
    data: Data
    criterion: Criterion = STATISTICAL_PARITY

    @property
    def classify(self) -> bool:
        """Whether labels are predicted."""
        return self.data.task == "classification"

    @property
    def among_positives(self) -> bool:
        """Whether unfairness is measured among those with label 1."""
        return self.criterion.labels == "positive"

    @property
    def standardize(self) -> bool:
        """Whether features are centred and scaled."""
        return self.input == "standard"

    def rows(
        self,
        method: str,
        seed: int,
        strengths: Sequence[float],
        score: Tensor,
        material: Material,
        *,
        seconds: float = nan,
        failed: Sequence[bool] | None = None,
    ) -> list[Row]:
        """The rows of scores (strengths, n) of a seed's test rows."""
        test = material.test[seed]
        figures = judged(
            score,
            material.y[test],
            material.a[test],
            classify=self.classify,
            among_positives=self.among_positives,
        )
        return [
            Row(
                experiment=self.experiment,
                protocol=self.protocol.name,
                input=self.input,
                data=self.name,
                method=method,
                strength=strength,
                seed=seed,
                **{name: float(values[at]) for name, values in figures._asdict().items()},
                seconds=seconds,
                failed=bool(failed is not None and failed[at]),
            )
            for at, strength in enumerate(strengths)
        ]


def sweep(
    cell: Cell,
    material: Material,
    variant: Variant,
    *,
    strengths: Sequence[float],
    seeds: Sequence[int],
    device: str = "auto",
) -> list[Row]:
    """Rows of all seeds and strengths."""
    cells = _cells(cell)
    centre, unit = 0.0, 1.0
    if cell.standardize and not cell.classify:  # of all rows, so that seeds share them; R2 and distances do not see it
        centre, unit = float(material.y.mean()), float(material.y.std())
    samples = Samples(
        torch.as_tensor(material.x),
        torch.as_tensor((material.y - centre) / unit),
        torch.as_tensor(cells.of(material.a[:, None], labels=material.y.astype(np.int64))),
        torch.ones(len(material.y)),
    )
    network = Network(material.x.shape[1], (cell.data.hidden,) if variant.network else ())
    task = BINARY if cell.classify else regression()
    compare = cell.protocol.compare if cell.classify else "prediction"
    objective = Objective(task, cells.comparisons, cell.criterion, compare=compare)
    rows: list[Row] = []
    for plan, together in _stacks(cell, material, samples, seeds):
        own = [torch.as_tensor(material.train[seed]) for seed in together]
        start = time.perf_counter()
        trained = train(
            samples,
            network,
            objective,
            strengths=strengths,
            seeds=together,
            schedule=schedule(cell, variant, material.train.shape[1]),
            rows=own,
            dealer=plan and floored_dealer(samples, own, plan, cells.comparisons),
            standardize=cell.standardize,
            device=device_of(device),
        )
        failed = trained.failed.cpu().numpy()  # waits for the device
        seconds = (time.perf_counter() - start) / (len(together) * len(strengths))
        for at, seed in enumerate(together):
            output = outputs(trained, samples.x[torch.as_tensor(material.test[seed])], at)
            score = centre + unit * task.prediction(output)
            rows += cell.rows(variant.method, seed, strengths, score, material, seconds=seconds, failed=failed[at])
    return rows


@torch.no_grad()
def outputs(trained: Trained, x: Tensor, seed: int) -> Tensor:
    """Outputs (strengths, n) of all models of one seed, in double precision on the CPU."""
    own = {name: value[seed : seed + 1] for name, value in trained.parameters.items()}
    scaling = type(trained.scaling)(*(part[seed : seed + 1] for part in trained.scaling))
    some = trained.scaling.mean
    features = scaling.apply(x.to(some.device, some.dtype).unsqueeze(0))
    return trained.model(own, features)[0].double().cpu()


def schedule(cell: Cell, variant: Variant, rows: int) -> Schedule:
    """The paper's; standardised inputs are trained as our estimators train by default, and no longer than that."""
    data = cell.data
    if not cell.standardize:
        return Schedule(data.batch_size, data.epochs, data.learning_rate, variant.decay)
    kind = FairClassifier if cell.classify else FairRegressor
    ours = schedule_for(kind(model="mlp" if variant.network else "linear"), rows)
    return replace(ours, epochs=min(ours.epochs, data.epochs))


def _cells(cell: Cell) -> Cells:
    return compiled(cell.criterion, [Attribute("group", (0, 1))], classes=(0, 1) if cell.classify else ())


def floored_dealer(samples: Samples, rows: Sequence[Tensor], plan: Layout, comparisons: Sequence[Comparison]) -> Dealer:
    """The published batches: fixed counts of each group, whose samples all weigh the same; leftovers are dropped."""
    own = [[part[inside] for inside in rows_by_cell(samples.cell[part], len(plan.counts))] for part in rows]
    steps = max(1, min(len(part) for part in rows) // plan.size)
    shares = torch.tensor(plan.counts) / plan.size

    def deal(generators: Sequence[torch.Generator], _: Outputs) -> Deal:
        passes = [stratified_pass(seed, plan, steps, one) for seed, one in zip(own, generators, strict=True)]
        return Deal(torch.stack(passes), torch.ones(len(own), 1, plan.size))

    return Dealer(plan.size, tuple(plan.sides(one, shares) for one in comparisons), deal)


def _stacks(
    cell: Cell, material: Material, samples: Samples, seeds: Sequence[int]
) -> list[tuple[Layout | None, list[int]]]:
    """Seeds that may share a stack: all of them, or those whose batches are floored to the same counts."""
    if not cell.protocol.floored:
        return [(None, list(seeds))]
    groups: dict[Layout, list[int]] = {}
    count = int(samples.cell.max()) + 1
    for seed in seeds:
        sizes = torch.bincount(samples.cell[torch.as_tensor(material.train[seed])], minlength=count)
        counts = sizes * min(cell.data.batch_size, len(material.train[seed])) // sizes.sum()
        groups.setdefault(Layout(tuple(counts.tolist())), []).append(seed)
    return list(groups.items())
