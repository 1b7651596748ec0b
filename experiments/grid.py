"""The cells of the paper's tables, and the jobs that fill them with our method."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

from experiments import mfl
from experiments.jobs import Job
from experiments.material import Material, load
from experiments.mfl import LINEAR, NETWORK, Cell, Variant, decayed, sweep
from experiments.rows import Row
from experiments.settings import CLASSIFICATION, DATA, REGRESSION, Effort, Input, Protocol
from metrifair.problem.criteria import EQUAL_OPPORTUNITY, STATISTICAL_PARITY
from metrifair.tradeoff.ledger import fingerprint

Store = Callable[[str, Input], Material]
"""Where the arrays of a data set come from."""

COMPARED = {"preprocessing": "classification", "postprocessing": "classification"}
"""Experiments whose figure shows our network as another experiment trains it."""

_QUICK_ROWS = 600
_SMALL_BATCH = 128
_EQUAL_OPPORTUNITY_BATCH = 512  # instead of the small one, so that enough samples have label 1


def loaded(seeds: int) -> Store:
    """Data sets from their raw files, each read once."""
    return cache(partial(load, seeds=seeds))


def shortened(store: Store) -> Store:
    """The first rows of each split only, for a sketch."""
    return cache(lambda name, inputs: store(name, inputs).first(_QUICK_ROWS))


def cells(experiment: str, protocol: Protocol, effort: Effort) -> list[Cell]:
    """All cells of one table: data sets x inputs."""
    names: tuple[str, ...] = REGRESSION if experiment == "regression" else CLASSIFICATION
    if experiment == "classification" and protocol.heroin:
        names = (*names, "drug-heroin")
    criterion = EQUAL_OPPORTUNITY if experiment == "equal-opportunity" else STATISTICAL_PARITY
    found = []
    for inputs in protocol.inputs:
        for name in names:
            data = effort.shortened(DATA[name])
            if criterion is EQUAL_OPPORTUNITY and data.batch_size == _SMALL_BATCH:
                data = replace(data, batch_size=_EQUAL_OPPORTUNITY_BATCH)
            found.append(Cell(experiment, protocol, inputs, name, data, criterion))
    return found


def job(
    cell: Cell, method: str, work: Callable[[Material], list[Row]], store: Store, effort: Effort, *, code: str
) -> Job:
    """Work on one cell, named after all that it depends on; ``code`` is the text of what sets the method up."""
    material = store(cell.name, cell.input)
    key = fingerprint([material.fingerprint(effort.seeds), repr(cell), repr(effort), code])
    name = f"{cell.experiment} {cell.protocol.name} {cell.input} {cell.name} {method} {key[:16]}"
    return Job(name, partial(work, material), size=len(material.y))


def variants(cell: Cell) -> Sequence[Variant]:
    """What is trained of our method: both models; once also with the learning rate decaying as the text has it."""
    if cell.experiment == "classification" and cell.protocol.name == "published":
        return (LINEAR, NETWORK, decayed(LINEAR), decayed(NETWORK))
    return (LINEAR, NETWORK)


def mfl_job(cell: Cell, variant: Variant, store: Store, effort: Effort, *, device: str = "auto") -> Job:
    """Our method on one cell: all seeds and strengths."""

    def work(material: Material) -> list[Row]:
        strengths = effort.strengths(*cell.data.strengths)
        return sweep(cell, material, variant, strengths=strengths, seeds=effort.seeds, device=device)

    return job(cell, variant.method, work, store, effort, code=inspect.getsource(mfl))


def mfl_jobs(experiment: str, protocol: Protocol, store: Store, effort: Effort, *, device: str = "auto") -> list[Job]:
    """Our method on all cells of a table."""
    own = (NETWORK,) if experiment in COMPARED else None
    return [
        mfl_job(cell, variant, store, effort, device=device)
        for cell in cells(COMPARED.get(experiment, experiment), protocol, effort)
        for variant in own or variants(cell)
    ]
