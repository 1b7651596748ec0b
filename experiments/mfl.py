"""Our method: every strength of every seed as one stack, measured on each seed's test rows."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from experiments.data import Source, Splits
from experiments.results import ModelResult, results_of
from experiments.runs import Run, run_of
from experiments.settings import Case, Effort, Protocol, cases
from metrifair.batches.samples import Layout, Samples, make_passes
from metrifair.estimators import FairClassifier, FairRegressor
from metrifair.estimators.settings import as_device, schedule_for
from metrifair.problem.cells import Attribute, Comparison, compile_cells
from metrifair.tradeoff.sweep import DEFAULT_STRENGTHS
from metrifair.training import Schedule, TrainedStack, train
from metrifair.training.models import Network
from metrifair.training.objective import BINARY, Objective, regression
from metrifair.training.solver import solve_linear
from metrifair.training.stack import Epoch, EpochSource, Outputs, rows_by_seed

SHOWN_IN = {"preprocessing": "classification", "postprocessing": "classification"}
"""Experiments whose figure shows our network as another experiment trains it."""


class Variant(NamedTuple):
    """Which model is trained, and how fast its learning rate falls."""

    method: str
    network: bool
    decay: float = 1.0


LINEAR, NETWORK = Variant("mfl-linear", network=False), Variant("mfl-nn", network=True)
# The learning rate falls by one percent per epoch: so the text; the code never did it.
DECAYING = (
    Variant("mfl-linear-decay", network=False, decay=0.99),
    Variant("mfl-nn-decay", network=True, decay=0.99),
)


def mfl_runs(
    experiment: str, protocol: Protocol, source: Source, effort: Effort, *, device: str = "auto"
) -> list[Run]:
    """Our method on all cases of a table: all seeds and strengths of a case and a variant are
    one run.
    """
    code, jobs = inspect.getsource(sys.modules[__name__]), []
    for case in cases(SHOWN_IN.get(experiment, experiment), protocol, effort):
        strengths = (
            effort.strengths(*case.data.strengths)
            if case.published
            else effort.some(DEFAULT_STRENGTHS)
        )
        for variant in (NETWORK,) if experiment in SHOWN_IN else variants(case):
            work = partial(
                sweep, case, variant=variant, strengths=strengths, seeds=effort.seeds, device=device
            )
            jobs.append(run_of(case, variant.method, work, source, effort, code=code))
    return jobs


def variants(case: Case) -> Sequence[Variant]:
    """What is trained of our method: both models; once also with the learning rate decaying as
    the text has it.
    """
    decaying = DECAYING if case.experiment == "classification" and case.published else ()
    return (LINEAR, NETWORK, *decaying)


def sweep(
    case: Case,
    splits: Splits,
    *,
    variant: Variant,
    strengths: Sequence[float],
    seeds: Sequence[int],
    device: str = "auto",
) -> list[ModelResult]:
    """Results of all seeds and strengths."""
    cells = compile_cells(
        case.criterion, [Attribute("group", (0, 1))], classes=(0, 1) if case.classify else ()
    )
    center, unit = 0.0, 1.0
    # of all rows, so that seeds share them; R2 and distances do not see it
    if case.standardize and not case.classify:
        center, unit = float(splits.y.mean()), float(splits.y.std())
    samples = Samples(
        torch.as_tensor(splits.x),
        torch.as_tensor((splits.y - center) / unit),
        torch.as_tensor(cells.of(splits.a[:, None], labels=splits.y.astype(np.int64))),
        torch.ones(len(splits.y)),
    )
    network = Network(splits.x.shape[1], (case.data.hidden,) if variant.network else ())
    task = BINARY if case.classify else regression()
    penalize = case.protocol.penalize if case.classify else "prediction"
    objective = Objective(
        task,
        cells.comparisons,
        case.criterion,
        estimate="population" if case.published else "rows",
        combine="sum" if case.published else "mean",
        penalize=penalize,
    )
    results: list[ModelResult] = []
    for plan, stack_seeds in _stacks(case, splits, samples, seeds):
        rows = [torch.as_tensor(splits.train[seed]) for seed in stack_seeds]
        start = time.perf_counter()
        if not variant.network and not case.published and case.standardize:
            stacks = _solve(
                samples, network, objective, strengths=strengths, rows=rows, same=splits.prescribed
            )
        else:
            trained_stack = train(
                samples,
                network,
                objective,
                strengths=strengths,
                seeds=stack_seeds,
                schedule=schedule(
                    case, splits.train.shape[1], network=variant.network, decay=variant.decay
                ),
                rows=rows,
                source=plan
                and floored_epochs(samples, rows, plan, cells.comparisons, as_device(device)),
                standardize=case.standardize,
                device=as_device(device),
            )
            stacks = [(trained_stack, place) for place in range(len(stack_seeds))]
        # waits for the device
        failed = [stack.failed[place].cpu().numpy() for stack, place in stacks]
        seconds = (time.perf_counter() - start) / (len(stack_seeds) * len(strengths))
        for (stack, place), seed, lost in zip(stacks, stack_seeds, failed, strict=True):
            output = outputs(stack, samples.x[torch.as_tensor(splits.test[seed])], place)
            predicted = (center + unit * task.prediction(output)).numpy()
            scores = [None if bad else score for bad, score in zip(lost, predicted, strict=True)]
            results += results_of(
                case,
                splits,
                variant.method,
                seed,
                strengths=strengths,
                scores=scores,
                seconds=seconds,
            )
    return results


def _solve(
    samples: Samples,
    model: Network,
    objective: Objective,
    *,
    strengths: Sequence[float],
    rows: Sequence[Tensor],
    same: bool,
) -> list[tuple[TrainedStack, int]]:
    """Linear models by the solver for the rows of every seed; once for all where all have the
    same rows.
    """
    solutions = [
        solve_linear(samples.take(part), model, objective, strengths=strengths).stack
        for part in rows[: 1 if same else None]
    ]
    return [(solutions[0 if same else place], 0) for place in range(len(rows))]


@torch.no_grad()
def outputs(stack: TrainedStack, x: Tensor, seed: int) -> Tensor:
    """Outputs (strengths, n) of all models of one seed, in double precision on the CPU."""
    parameters = {name: value[seed : seed + 1] for name, value in stack.parameters.items()}
    scaling = type(stack.scaling)(*(part[seed : seed + 1] for part in stack.scaling))
    mean = stack.scaling.mean
    features = scaling.apply(x.to(mean.device, mean.dtype).unsqueeze(0))
    return stack.model(parameters, features)[0].double().cpu()


def schedule(case: Case, rows: int, *, network: bool = True, decay: float = 1.0) -> Schedule:
    """The paper's; corrected, with the start and the end of our estimators, and standardized
    inputs with all of it.
    """
    paper = Schedule(case.data.batch_size, case.data.epochs, case.data.learning_rate, decay)
    if case.published:
        return paper
    kind = FairClassifier if case.classify else FairRegressor
    ours = schedule_for(kind(model="mlp" if network else "linear"), rows)
    if not case.standardize:
        return replace(
            paper, growth=ours.growth, cooldown=ours.cooldown, from_constant=ours.from_constant
        )
    return replace(ours, epochs=min(ours.epochs, case.data.epochs))


def floored_epochs(
    samples: Samples,
    rows: Sequence[Tensor],
    plan: Layout,
    comparisons: Sequence[Comparison],
    device: torch.device | str = "cpu",
) -> EpochSource:
    """The published batches: fixed counts of each group, whose samples all weigh the same;
    leftovers are dropped.
    """
    seed_cells = rows_by_seed(samples.cell, rows, len(plan.counts))
    steps = max(1, min(len(part) for part in rows) // plan.size)
    shares, passes = (
        torch.tensor(plan.counts) / plan.size,
        make_passes(seed_cells, plan, steps, device=device),
    )
    weight = torch.ones(len(seed_cells), 1, plan.size, device=device)

    def draw(generators: Sequence[torch.Generator], _: Outputs) -> Epoch:
        return Epoch(passes(generators), weight)

    return EpochSource(plan.size, tuple(plan.sides(pair, shares) for pair in comparisons), draw)


def _stacks(
    case: Case, splits: Splits, samples: Samples, seeds: Sequence[int]
) -> list[tuple[Layout | None, list[int]]]:
    """Seeds that may share a stack: all of them, or those whose batches are floored to the same
    counts.
    """
    if not case.protocol.floored:
        return [(None, list(seeds))]
    groups: dict[Layout, list[int]] = {}
    count = int(samples.cell.max()) + 1
    for seed in seeds:
        sizes = torch.bincount(samples.cell[torch.as_tensor(splits.train[seed])], minlength=count)
        counts = sizes * min(case.data.batch_size, len(splits.train[seed])) // sizes.sum()
        groups.setdefault(Layout(tuple(counts.tolist())), []).append(seed)
    return list(groups.items())
