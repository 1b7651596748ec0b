"""Families of models, values of their parameter x seeds -> trained models with their figures.

With a ledger, finished jobs are not repeated.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from metrifair.errors import DataError, Diverged
from metrifair.estimators import FairEstimator, fit_stack
from metrifair.estimators.settings import check_devices, is_solved
from metrifair.metrics.registry import MetricLike
from metrifair.postprocessing.calibration import ScorePostprocessor
from metrifair.problem.attributes import Continuous
from metrifair.problem.cells import CONTRASTS, Contrast
from metrifair.problem.memberships import GroupProbabilities, group_columns
from metrifair.problem.tables import Table, columns, renumbered, take_rows
from metrifair.support.arrays import Integers
from metrifair.support.checks import (
    check_known,
    check_switches,
    groups_if_accepted,
    is_integer,
    is_number,
    last_step,
)
from metrifair.support.parallel import is_elsewhere, run_parallel
from metrifair.tradeoff.ledger import fingerprint
from metrifair.tradeoff.points import Job

DEFAULT_STRENGTHS = (0.0, *np.geomspace(0.03, 1_000, 21).round(3).tolist(), 1e4, 1e5, 1e6)
"""Where trade-offs move on all our data sets; at the last ones models become constant
(docs/results/defaults.md).
"""
_LOW_TOLERANCES = (
    0.0,
    0.01,
    0.02,
    0.03,
    0.04,
    0.05,
    0.06,
    0.08,
    0.1,
    0.125,
    0.15,
    0.175,
    0.2,
    0.25,
)
# dense where limits are usual
DEFAULT_TOLERANCES = (*_LOW_TOLERANCES, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0)


class Family(NamedTuple):
    """An estimator to train at many values of one parameter; the only family of a frontier has no
    name.

    Of a pipeline the parameter is that of its last step.
    """

    name: str
    estimator: Any
    parameter: str

    def values(self, strengths: Any) -> Sequence[float]:
        """The values to train at, each once: those that were passed, or the defaults of this
        parameter.
        """
        if strengths is None or (isinstance(strengths, str) and strengths == "auto"):
            if self.parameter == "tolerance":
                return DEFAULT_TOLERANCES
            return DEFAULT_STRENGTHS
        least = 0.0
        if self.parameter != "strength":
            least = -inf
        return distinct_numbers("strengths", strengths, least=least, otherwise="None, 'auto', or ")

    def with_parameter(self, name: str, value: object) -> Family:
        """The family with this parameter set, in the estimator and in those that it wraps,
        wherever one has it.
        """
        keys = [
            key for key in self.estimator.get_params() if key == name or key.endswith(f"__{name}")
        ]
        return self._replace(
            estimator=clone(self.estimator).set_params(**dict.fromkeys(keys, value))
        )


def needs_group(model: Any) -> bool:
    """Whether a model, fitted or not, needs the group to predict.

    >>> from metrifair import BarycenterPostprocessor, FairClassifier
    >>> needs_group(FairClassifier()), needs_group(BarycenterPostprocessor())
    (False, True)
    >>> needs_group(BarycenterPostprocessor(needs_group=False))
    False
    """
    model = last_step(model)
    stated = getattr(model, "needs_group", None)
    if isinstance(stated, bool):
        return stated
    return hasattr(model, "predict") and bool(groups_if_accepted(model.predict, None))


def _members(estimator: Any) -> Iterable[Any]:
    """The estimators of a list or dict; any other is the only one."""
    if isinstance(estimator, Mapping):
        return estimator.values()
    if isinstance(estimator, list | tuple):
        return estimator
    return [estimator]


def make_families(estimator: Any, parameter: str | None) -> tuple[Family, ...] | None:
    """The families to train; None if fitted models were passed, which are only evaluated.

    >>> from metrifair import BarycenterPostprocessor, FairClassifier
    >>> for family in make_families([FairClassifier(model="linear"), BarycenterPostprocessor()], None):
    ...     print(family.name, family.parameter)
    FairClassifier (linear) strength
    BarycenterPostprocessor tolerance
    """
    several = isinstance(estimator, list | tuple | Mapping)
    for member in _members(estimator):
        if isinstance(member, type) or not hasattr(member, "predict"):
            raise DataError(
                "must be 'auto', an estimator, a list or dict of them, or a list of fitted models",
                argument="estimator",
                received=member,
                remedy="pass an object with fit and predict, such as FairClassifier()",
            )
    if not several:
        return (Family("", estimator, _parameter_name(estimator, parameter)),)
    by_name: dict[str, Any] | None
    if isinstance(estimator, Mapping):
        by_name = dict(estimator)
    else:
        by_name = _families_by_name(estimator, parameter)
    if by_name is None:
        return None
    if not by_name or not all(isinstance(name, str) and name for name in by_name):
        raise DataError(
            f"families are estimators by their names, which are text, got {list(by_name)}"
        )
    if len(set(map(is_regressor, by_name.values()))) > 1:
        raise DataError(
            "some of these families classify and some predict numbers; a frontier has one task"
        )
    return tuple(
        Family(name, member, _parameter_name(member, parameter)) for name, member in by_name.items()
    )


def _families_by_name(estimators: Sequence[Any], parameter: str | None) -> dict[str, Any] | None:
    """Estimators by name; None if all of them are only to be evaluated."""
    if not estimators:
        raise DataError("the list of models is empty; pass at least one, fitted or to be trained")
    fixed = [estimator for estimator in estimators if not _can_sweep(estimator, parameter)]
    if len(fixed) == len(estimators):
        return None
    if fixed:
        raise DataError(
            f"some of these estimators are to be trained, but {fixed[0]!r} is fitted already, or "
            "has no parameter "
            f"{parameter or 'strength or tolerance'} that trades accuracy for fairness; pass "
            "fitted models in "
            "a list of their own, and wrap plain ones, as in BarycenterPostprocessor(model)"
        )
    by_name: dict[str, Any] = {}
    for estimator in estimators:
        name = _family_name(estimator)
        same = sum(taken == name or taken.startswith(f"{name} #") for taken in by_name)
        by_name[f"{name} #{same + 1}" if same else name] = estimator
    return by_name


def _can_sweep(model: Any, parameter: str | None) -> bool:
    if not hasattr(model, "fit") or not hasattr(model, "get_params"):
        return False
    if _parameter_name(model, parameter) not in last_step(model).get_params():
        return False
    try:
        check_is_fitted(model)
    except NotFittedError:
        return True
    return False


def fitted_values(models: Sequence[Any], parameter: str | None) -> tuple[str, list[float]]:
    """The parameter in which fitted models of one kind differ, and its values; for others, their
    numbers in the list.

    >>> from metrifair import FairClassifier
    >>> fitted_values([FairClassifier(10), FairClassifier(0)], None)
    ('strength', [10.0, 0.0])
    >>> fitted_values([FairClassifier(10), FairClassifier(10)], None)
    ('model', [1.0, 2.0])
    """
    members = [last_step(model) for model in models]
    if (
        all(hasattr(member, "get_params") for member in members)
        and len(set(map(_family_name, members))) == 1
    ):
        name = _parameter_name(models[0], parameter)
        values = [member.get_params(deep=False).get(name) for member in members]
        if all(map(is_number, values)) and len(set(values)) == len(values):
            return name, [float(value) for value in values]
    return "model", [float(number) for number in range(1, len(models) + 1)]


def _parameter_name(estimator: Any, parameter: str | None) -> str:
    """The parameter that trades accuracy for fairness: the one that was named, or that of our
    estimators.
    """
    if parameter is not None and not isinstance(parameter, str):
        raise DataError(
            "parameter must be the name of one parameter, which all families have, got "
            f"{parameter!r}"
        )
    while isinstance(estimator, Pipeline):
        step, estimator = estimator.steps[-1]
        parameter = parameter and parameter.removeprefix(f"{step}__")
    parameters = {}
    if hasattr(estimator, "get_params"):
        parameters = estimator.get_params()
    return parameter or (
        "tolerance" if "tolerance" in parameters and "strength" not in parameters else "strength"
    )


def _family_name(estimator: Any) -> str:
    estimator = last_step(estimator)
    name = type(estimator).__name__
    parameters = estimator.get_params(deep=False)
    if isinstance(parameters.get("model"), str):
        return f"{name} ({parameters['model']})"
    wrapped = parameters.get("estimator")
    inner = ""
    if hasattr(wrapped, "get_params"):
        inner = f" of {_family_name(wrapped)}"
    return f"{name}{inner}" + (", without groups" if parameters.get("needs_group") is False else "")


class Finished(Protocol):
    """The result of a job: its predictions, or its model."""

    @property
    def job(self) -> Job:
        """The job."""
        ...


Result = TypeVar("Result", bound=Finished)
EvaluateModel: TypeAlias = Callable[[Any, Job], Result]
"""Makes the result of a job from its model, which is None if training failed."""


class Store(Protocol[Result]):
    """Where results wait for an interrupted sweep to go on: a ledger."""

    def results(self, jobs: Sequence[Job]) -> dict[Job, Result]:
        """The results of these jobs that are stored."""
        ...

    def add(self, results: Sequence[Result]) -> None:
        """Store results, all of them or none."""
        ...


@dataclass(frozen=True, eq=False)
class RowsToTrain:
    """The data of a sweep: a table, its outcomes and groups, and the rows that may be used."""

    X: Table
    y: Table
    sensitive_features: Table | GroupProbabilities
    control_features: Table | None
    sample_weight: Table | None
    rows: Integers
    clusters: Table | None = None

    def arguments(self) -> dict[str, Any]:
        """The arguments of ``fit``."""
        names = ("X", "y", "sensitive_features", "control_features", "sample_weight", "clusters")
        tables = {name: getattr(self, name) for name in names}
        return {
            name: renumbered(take_rows(table, self.rows))
            for name, table in tables.items()
            if table is not None
        }

    def fingerprint(self, *more: str) -> str:
        """A name for everything that the results depend on."""
        groups = self.sensitive_features
        if isinstance(groups, GroupProbabilities):
            groups = group_columns(groups)
        tables = [self.X, self.y, groups, self.control_features, self.sample_weight]
        tables += [] if self.clusters is None else [self.clusters]
        parts: list[NDArray[Any] | str] = [self.rows, *more]
        for table in tables:
            by_name = {}
            if table is not None:
                by_name = columns("column", table)
            parts += [item for name, column in by_name.items() for item in (name, column)]
            parts.append("next")
        return fingerprint(parts)


def sweep(
    estimator: Any,
    data: RowsToTrain,
    jobs: Sequence[Job],
    evaluate: EvaluateModel[Result],
    *,
    parameter: str = "strength",
    ledger: Store[Result] | None = None,
    n_jobs: int | None = None,
    devices: Sequence[str] | None = None,
) -> list[Result]:
    """Every job's result, in the order of the jobs.

    Our own estimators train as one stack (with a ledger, one stack per seed, each stored when it is
    finished, unless seeds make no difference), or as stacks on several ``devices``, or on the
    workers of a cluster where joblib is set up for one; others one by one, spread by joblib, with
    ``parameter`` and, where they have it, ``random_state`` set. The earlier steps of a pipeline,
    which no value changes, are fitted once.
    """
    while isinstance(estimator, Pipeline):
        data, complete = _last_step_input(estimator, data)
        evaluate = partial(_evaluate_complete, evaluate, complete)
        estimator = estimator.steps[-1][1]
    results = {}
    if ledger is not None:
        results = ledger.results(jobs)
    missing = [job for job in jobs if job not in results]
    ours = isinstance(estimator, FairEstimator) and type(estimator).__module__.startswith(
        "metrifair."
    )
    if parameter == "strength" and ours:
        batches = _stacks(
            estimator, data, missing, evaluate, split=ledger is not None, devices=devices
        )
    elif devices is not None:
        problem = f"devices share the strengths of FairClassifier and FairRegressor, got a {type(estimator).__name__}"
        raise DataError(problem, remedy="leave devices out")
    elif parameter == "tolerance" and isinstance(estimator, ScorePostprocessor):
        batches = _paths(estimator, data, missing, evaluate)
    else:
        batches = _one_by_one(
            estimator, data, missing, evaluate, parameter=parameter, n_jobs=n_jobs
        )
    for batch in batches:
        if ledger is not None:
            ledger.add(batch)
        results |= {result.job: result for result in batch}
    return [results[job] for job in jobs]


def _evaluate_complete(
    evaluate: EvaluateModel[Result], complete: Callable[[Any], Pipeline], model: Any, job: Job
) -> Result:
    """The result of the pipeline that ends in this model."""
    return evaluate(None if model is None else complete(model), job)


def _last_step_input(
    pipeline: Pipeline, data: RowsToTrain
) -> tuple[RowsToTrain, Callable[[Any], Pipeline]]:
    """The training input of a pipeline's last step, and a function that puts a model in its
    place.
    """
    fitted = clone(pipeline)
    arguments = data.arguments()
    if len(fitted.steps) > 1:
        arguments["X"] = fitted[:-1].fit_transform(arguments["X"], arguments["y"])

    def complete(model: Any) -> Pipeline:
        result = clone(pipeline)
        result.steps = [*fitted.steps[:-1], (fitted.steps[-1][0], model)]
        return result

    return replace(data, **arguments, rows=np.arange(len(data.rows))), complete


def estimator_at(estimator: Any, parameter: str, job: Job) -> Any:
    """An estimator like this one, not fitted, at this value and seed."""
    current = estimator.get_params()[parameter]
    is_whole = (
        isinstance(current, int) and not isinstance(current, bool) and job.value == int(job.value)
    )
    model = clone(estimator).set_params(**{parameter: int(job.value) if is_whole else job.value})
    if "random_state" in model.get_params():
        model.set_params(random_state=job.seed)
    return model


def _stacks(
    estimator: Any,
    data: RowsToTrain,
    jobs: Sequence[Job],
    evaluate: EvaluateModel[Result],
    *,
    split: bool,
    devices: Sequence[str] | None,
) -> Iterator[list[Result]]:
    """Results of jobs, in stacks of all strengths x all seeds with these strengths."""
    by_seed: dict[int, list[float]] = {}
    for job in jobs:
        by_seed.setdefault(job.seed, []).append(job.value)
    groups: dict[tuple[float, ...], list[int]] = {}
    for seed, values in by_seed.items():
        groups.setdefault(tuple(values), []).append(seed)
    arguments = data.arguments()
    # which is fast
    solved = is_solved(estimator, len(data.rows), len(columns("X", arguments["X"])))
    elsewhere = is_elsewhere() and not solved
    stacks = [
        (values, together)
        for values, seeds in groups.items()
        for together in (
            [[seed] for seed in seeds] if (split or elsewhere) and not solved else [seeds]
        )
    ]

    def results(stack: tuple[tuple[float, ...], list[int]]) -> list[Result]:
        values, seeds = stack
        models = _fit_on_devices(estimator, arguments, values, seeds, None if solved else devices)
        stack_jobs = (Job(value, seed) for seed in seeds for value in values)
        return [evaluate(models[job], job._replace(family=jobs[0].family)) for job in stack_jobs]

    if not elsewhere:
        yield from map(results, stacks)
        return
    parts = -(-joblib.effective_n_jobs() // max(1, len(stacks)))  # so that every worker has a part
    split_up = [
        (values[k::parts], seeds)
        for values, seeds in stacks
        for k in range(min(parts, len(values)))
    ]
    yield from run_parallel(results, split_up, None)


def _fit_on_devices(
    estimator: Any,
    arguments: dict[str, Any],
    values: Sequence[float],
    seeds: Sequence[int],
    devices: Sequence[str] | None,
) -> dict[Job, Any]:
    """Models of one stack, or of one on each device with every n-th strength, which are
    independent.
    """
    if devices is None:
        targets: list[str | None] = [None]
    else:
        targets = list(devices)
    parts = [values[k :: len(targets)] for k in range(len(targets))]

    def fit(device: str | None, strengths: Sequence[float]) -> list[tuple[Job, Any]]:
        if device is None:
            template = estimator
        else:
            template = clone(estimator).set_params(device=device)
        models = fit_stack(template, strengths=strengths, seeds=seeds, **arguments)
        for model in models:
            if model is not None and device is not None:
                model.set_params(device=estimator.device)
        return list(
            zip([Job(value, seed) for seed in seeds for value in strengths], models, strict=True)
        )

    tasks = [
        (device, strengths) for device, strengths in zip(targets, parts, strict=True) if strengths
    ]
    if len(tasks) == 1:
        return dict(fit(*tasks[0]))
    with ThreadPoolExecutor(len(tasks)) as pool:
        return dict(pair for pairs in pool.map(fit, *zip(*tasks, strict=True)) for pair in pairs)


def _paths(
    estimator: Any, data: RowsToTrain, jobs: Sequence[Job], evaluate: EvaluateModel[Result]
) -> Iterator[list[Result]]:
    """All tolerances of one seed at a time: they share the model that is wrapped."""
    arguments = _fit_arguments(estimator, data)
    for seed in dict.fromkeys(job.seed for job in jobs):
        seed_jobs = [job for job in jobs if job.seed == seed]
        path = clone(estimator).set_params(random_state=seed)
        try:
            models = path.fit_path(**arguments, tolerances=[job.value for job in seed_jobs])
        except Diverged:
            models = [None] * len(seed_jobs)
        yield [evaluate(model, job) for model, job in zip(models, seed_jobs, strict=True)]


def _fit_arguments(estimator: Any, data: RowsToTrain) -> dict[str, Any]:
    """The arguments of ``fit``, which it must accept; it needs clusters only if it splits rows
    itself.
    """
    arguments = data.arguments()
    accepted = inspect.signature(estimator.fit).parameters
    if "clusters" not in accepted:
        arguments.pop("clusters", None)
    takes_any = any(
        parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in accepted.values()
    )
    for name in arguments:
        if name not in accepted and not takes_any:
            raise DataError(
                f"{type(estimator).__name__}.fit takes no {name}; leave it out, or use another "
                "method"
            )
    return arguments


def _one_by_one(
    estimator: Any,
    data: RowsToTrain,
    jobs: Sequence[Job],
    evaluate: EvaluateModel[Result],
    *,
    parameter: str,
    n_jobs: int | None,
) -> Iterator[list[Result]]:
    if parameter not in estimator.get_params():
        name = type(estimator).__name__
        fair = "FairClassifier()"
        if is_regressor(estimator):
            fair = "FairRegressor()"
        raise DataError(
            f"{name} has no parameter {parameter!r} that trades accuracy for fairness",
            remedy=[
                f"pass {fair}",
                f"wrap it, as in BarycenterPostprocessor({name}())",
                "name another parameter with parameter=...",
            ],
        )
    arguments = _fit_arguments(estimator, data)

    def fit(job: Job) -> Result:
        model = estimator_at(estimator, parameter, job)
        try:
            model.fit(**arguments)
        except Diverged:
            return evaluate(None, job)
        return evaluate(model, job)

    for result in run_parallel(fit, jobs, n_jobs):
        yield [result]


@dataclass(frozen=True)
class SearchOptions:
    """How :func:`metrifair.frontier` searches: how many models it trains, how it validates them,
    and where it runs.

    Parameters
    ----------
    seeds : int or list of int, default=1
        Number of models for each strength, or their seeds. Seeds change initial weights and
        batches, not the split.
    budget : float, default=None
        Seconds after which no further family is started. The first two families are always trained,
        and a family that has been started is finished. The result then depends on the speed of the
        machine. None sets no limit on time: "auto" tries the families whose work, by the number of
        rows and columns, is within a fixed amount, so that two machines choose the same model.
    families : list of str, default=None
        Names of the families that "auto" tries, in this order. To repeat an earlier frontier, pass
        its ``list(front.parameters)`` and the same ``random_state``. None tries all families that
        suit the data.
    needs_group : bool, default=False
        Whether prediction needs the group. True allows "auto" to try families that need it.
    tolerances : list of float, default=None
        Values of ``tolerance``, for the families that have this parameter. None uses 21 values from
        0 to 1.
    metric : str or callable, default="energy"
        Distance between distributions that the models of "auto" penalize.
    contrast : {"pairs", "rest"}, default="pairs"
        Which groups are compared, for estimators without a parameter ``contrast``.
    continuous : "auto", bool or list of str, default=None
        Numeric attributes, such as age. Training lowers the dependence of the scores on them, and
        figures compare up to five bands of their values. None uses the estimator's setting, or
        "auto".
    n_jobs : int, default=None
        Number of processes that fit estimators of other libraries. None uses the settings of
        joblib. With a joblib backend for clusters (``with joblib.parallel_config("dask"):``), its
        workers train our estimators too.
    devices : list of str, default=None
        Devices that share the strengths of FairClassifier and FairRegressor, such as ["cuda:0",
        "cuda:1"]. The models do not depend on it. None uses the estimator's device.
    ledger : str or Path, default=None
        File that stores finished models, so that an interrupted run resumes. It needs a
        ``random_state``.

    Raises
    ------
    DataError
        If a value is not one of these.

    See Also
    --------
    frontier : Takes it as ``search``.

    Examples
    --------
    >>> from metrifair import SearchOptions
    >>> SearchOptions(seeds=3).seed_values
    [0, 1, 2]
    >>> SearchOptions(budget=0)
    Traceback (most recent call last):
    metrifair.errors.DataError: budget must be a positive number of seconds, got 0
    """

    seeds: int | Sequence[int] = 1
    budget: float | None = None
    families: Sequence[str] | None = None
    needs_group: bool = False
    tolerances: Sequence[float] | None = None
    metric: MetricLike = "energy"
    contrast: Contrast = "pairs"
    continuous: Continuous | None = None
    n_jobs: int | None = None
    devices: Sequence[str] | None = None
    ledger: str | Path | None = None

    def __post_init__(self) -> None:
        if not self.seed_values:
            problem = "must be a number from 1 upwards, or a list of seeds from 0 upwards"
            raise DataError(problem, argument="seeds", received=self.seeds)
        self._check_portfolio()
        if self.tolerances is not None:
            distinct_numbers("tolerances", self.tolerances, least=0.0)
        check_known("contrast", self.contrast, CONTRASTS)
        if self.n_jobs is not None and (
            not is_integer(self.n_jobs, least=-(2**31)) or self.n_jobs == 0
        ):
            raise DataError(
                "must be None or an integer other than 0", argument="n_jobs", received=self.n_jobs
            )
        check_devices(self.devices)
        if not isinstance(self.ledger, str | os.PathLike | None):
            raise DataError(
                "must be None or the path of a file", argument="ledger", received=self.ledger
            )

    def _check_portfolio(self) -> None:
        """Raise a DataError unless the options of "auto" can be used."""
        check_switches(needs_group=self.needs_group)
        if self.budget is not None and (not is_number(self.budget) or self.budget <= 0):
            raise DataError(
                "must be a positive number of seconds", argument="budget", received=self.budget
            )
        names: Any = self.families
        if names is None:
            return
        if (
            not isinstance(names, list | tuple)
            or not names
            or not all(isinstance(name, str) for name in names)
        ):
            raise DataError("must be None or a list of names", argument="families", received=names)

    @property
    def seed_values(self) -> list[int]:
        """The seeds of the models, each once; none where ``seeds`` cannot be used."""
        seeds: Any = self.seeds
        if is_integer(seeds):
            return list(range(int(seeds)))
        values: list[Any] = []
        if isinstance(seeds, Iterable):
            values = list(seeds)
        if all(is_integer(seed, least=0) for seed in values):
            return list(dict.fromkeys(map(int, values)))
        return []


def search_options(passed: object) -> SearchOptions:
    """The options of a search that were passed; None: the defaults."""
    if passed is None:
        return SearchOptions()
    if isinstance(passed, SearchOptions):
        return passed
    raise DataError("must be None or SearchOptions(...)", argument="search", received=passed)


def distinct_numbers(
    argument: str, received: Any, *, least: float = -inf, otherwise: str = ""
) -> list[float]:
    """The finite numbers of a list, each once, in order of first appearance.

    A DataError otherwise; ``otherwise`` describes other values that the argument accepts.

    >>> distinct_numbers("strengths", [1, 0, 1])
    [1, 0]
    """
    values: list[Any] = []
    if isinstance(received, Iterable) and not isinstance(received, str):
        values = list(received)
    if not values or not all(
        isinstance(value, Real) and least <= float(value) < inf for value in values
    ):
        lowest = ""
        if least > -inf:
            lowest = f" from {least:g} upwards"
        raise DataError(
            f"must be {otherwise}a list of finite numbers{lowest}",
            argument=argument,
            received=received,
        )
    return list(dict.fromkeys(values))
