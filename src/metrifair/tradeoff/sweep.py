"""Values of a parameter x seeds -> judged models; with a ledger, what is finished is never done again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from metrifair.errors import DataError, Diverged
from metrifair.estimators import BY_NAME, fit_stack
from metrifair.estimators.settings import is_solved
from metrifair.methods.calibration import ScorePostprocessor
from metrifair.parallel import is_elsewhere, spread
from metrifair.problem.tables import Table, columns, renumbered, rows_of
from metrifair.tradeoff.ledger import Job, Ledger, Outcome, entry_of, fingerprint, outcome_of

Judge: TypeAlias = Callable[[Any, Job], Outcome]
"""What a model reaches; the model is None where training failed."""


@dataclass(frozen=True, eq=False)
class RowsToTrain:
    """What a sweep trains on: a table, its outcomes and groups, and the rows that may be used."""

    X: Table
    y: Table
    sensitive_features: Table
    control_features: Table | None
    sample_weight: Table | None
    rows: NDArray[np.int64]

    def arguments(self) -> dict[str, Any]:
        """What ``fit`` is called with."""
        names = ("X", "y", "sensitive_features", "control_features", "sample_weight")
        given = {name: getattr(self, name) for name in names}
        return {name: renumbered(rows_of(value, self.rows)) for name, value in given.items() if value is not None}

    def fingerprint(self, *more: str) -> str:
        """A name for all that the results depend on."""
        tables = (self.X, self.y, self.sensitive_features, self.control_features, self.sample_weight)
        parts: list[NDArray[Any] | str] = [self.rows, *more]
        for table in tables:
            named = {} if table is None else columns("column", table)
            parts += [item for name, column in named.items() for item in (name, column)]
            parts.append("next")
        return fingerprint(parts)


def sweep(
    estimator: Any,
    data: RowsToTrain,
    jobs: Sequence[Job],
    judge: Judge,
    *,
    parameter: str = "strength",
    ledger: Ledger | None = None,
    n_jobs: int | None = None,
    devices: Sequence[str] | None = None,
) -> list[Outcome]:
    """Every job's outcome, in the order of the jobs.

    Our own estimators train as one stack (with a ledger, one stack per seed, each noted when it is finished, unless
    seeds make no difference), or as stacks on several ``devices``, or on the workers of a cluster where joblib is set
    up for one; others one by one, spread by joblib, with ``parameter`` and, where they have it, ``random_state`` set.
    """
    known = {} if ledger is None else ledger.finished()
    outcomes = {job: outcome_of(known[job.name], job, estimator) for job in jobs if job.name in known}
    missing = [job for job in jobs if job not in outcomes]
    if parameter == "strength" and type(estimator) in BY_NAME.values():
        batches = _stacks(estimator, data, missing, judge, split=ledger is not None, devices=devices)
    elif devices is not None:
        raise DataError(
            f"devices share the strengths of FairClassifier and FairRegressor, got a {type(estimator).__name__}; "
            "leave devices out"
        )
    elif parameter == "tolerance" and isinstance(estimator, ScorePostprocessor):
        batches = _paths(estimator, data, missing, judge)
    else:
        batches = _one_by_one(estimator, data, missing, judge, parameter=parameter, n_jobs=n_jobs)
    for batch in batches:
        if ledger is not None:
            ledger.add({outcome.job.name: entry_of(outcome) for outcome in batch})
        outcomes |= {outcome.job: outcome for outcome in batch}
    return [outcomes[job] for job in jobs]


def estimator_at(estimator: Any, parameter: str, job: Job) -> Any:
    """An estimator like this one, not fitted, at this value and seed."""
    current = estimator.get_params()[parameter]
    whole = isinstance(current, int) and not isinstance(current, bool) and job.value == int(job.value)
    model = clone(estimator).set_params(**{parameter: int(job.value) if whole else job.value})
    if "random_state" in model.get_params():
        model.set_params(random_state=job.seed)
    return model


def _stacks(
    estimator: Any,
    data: RowsToTrain,
    jobs: Sequence[Job],
    judge: Judge,
    *,
    split: bool,
    devices: Sequence[str] | None,
) -> Iterator[list[Outcome]]:
    """Jobs grouped so that a group is all strengths x all its seeds."""
    by_seed: dict[int, list[float]] = {}
    for job in jobs:
        by_seed.setdefault(job.seed, []).append(job.value)
    groups: dict[tuple[float, ...], list[int]] = {}
    for seed, own in by_seed.items():
        groups.setdefault(tuple(own), []).append(seed)
    arguments = data.arguments()
    solved = is_solved(estimator, len(data.rows), len(columns("X", arguments["X"])))  # which takes little time
    elsewhere = is_elsewhere() and not solved
    stacks = [
        (values, together)
        for values, seeds in groups.items()
        for together in ([[seed] for seed in seeds] if (split or elsewhere) and not solved else [seeds])
    ]

    def outcomes(stack: tuple[tuple[float, ...], list[int]]) -> list[Outcome]:
        values, seeds = stack
        models = _fitted(estimator, arguments, values, seeds, None if solved else devices)
        found = (Job(value, seed) for seed in seeds for value in values)
        return [judge(models[job], job._replace(family=jobs[0].family)) for job in found]

    if not elsewhere:
        yield from map(outcomes, stacks)
        return
    parts = -(-joblib.effective_n_jobs() // max(1, len(stacks)))  # so that every worker has something to do
    split_up = [(values[k::parts], seeds) for values, seeds in stacks for k in range(min(parts, len(values)))]
    yield from spread(outcomes, split_up, None)


def _fitted(
    estimator: Any,
    arguments: dict[str, Any],
    values: Sequence[float],
    seeds: Sequence[int],
    devices: Sequence[str] | None,
) -> dict[Job, Any]:
    """One stack, or one on each device with every so many-th strength: they have nothing to say to each other."""
    chosen: list[str | None] = [None] if devices is None else list(devices)
    parts = [values[k :: len(chosen)] for k in range(len(chosen))]

    def fitted(device: str | None, own: Sequence[float]) -> list[tuple[Job, Any]]:
        template = estimator if device is None else clone(estimator).set_params(device=device)
        models = fit_stack(template, strengths=own, seeds=seeds, **arguments)
        for model in models if device is not None else ():
            if model is not None:
                model.set_params(device=estimator.device)
        return list(zip([Job(value, seed) for seed in seeds for value in own], models, strict=True))

    tasks = [(device, own) for device, own in zip(chosen, parts, strict=True) if own]
    if len(tasks) == 1:
        return dict(fitted(*tasks[0]))
    with ThreadPoolExecutor(len(tasks)) as pool:
        return dict(pair for pairs in pool.map(fitted, *zip(*tasks, strict=True)) for pair in pairs)


def _paths(estimator: Any, data: RowsToTrain, jobs: Sequence[Job], judge: Judge) -> Iterator[list[Outcome]]:
    """All tolerances of one seed at a time: they share the model that is wrapped."""
    arguments = _arguments(estimator, data)
    for seed in dict.fromkeys(job.seed for job in jobs):
        own = [job for job in jobs if job.seed == seed]
        path = clone(estimator).set_params(random_state=seed)
        try:
            models = path.fit_path(**arguments, tolerances=[job.value for job in own])
        except Diverged:
            models = [None] * len(own)
        yield [judge(model, job) for model, job in zip(models, own, strict=True)]


def _arguments(estimator: Any, data: RowsToTrain) -> dict[str, Any]:
    """What ``fit`` is called with, which it must take."""
    arguments, taken = data.arguments(), inspect.signature(estimator.fit).parameters
    anything = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
    for name in () if anything else arguments:
        if name not in taken:
            raise DataError(f"{type(estimator).__name__}.fit takes no {name}; leave it out, or take another method")
    return arguments


def _one_by_one(
    estimator: Any,
    data: RowsToTrain,
    jobs: Sequence[Job],
    judge: Judge,
    *,
    parameter: str,
    n_jobs: int | None,
) -> Iterator[list[Outcome]]:
    if parameter not in estimator.get_params():
        raise DataError(
            f"{type(estimator).__name__} has no parameter {parameter!r}; name the one that trades accuracy for "
            "fairness with parameter=..."
        )
    arguments = _arguments(estimator, data)

    def fit(job: Job) -> Outcome:
        model = estimator_at(estimator, parameter, job)
        try:
            model.fit(**arguments)
        except Diverged:
            return judge(None, job)
        return judge(model, job)

    for outcome in spread(fit, jobs, n_jobs):
        yield [outcome]
