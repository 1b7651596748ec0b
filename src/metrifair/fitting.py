"""From a table, labels and groups to what training takes: the part that all estimators share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from metrifair.cells import Attribute, Cells, Contrast, Strata, compiled
from metrifair.choices import check_known, check_switches
from metrifair.criteria import Compare, Criterion, criterion_named
from metrifair.errors import DataError
from metrifair.metrics.catalog import MetricLike
from metrifair.models import Model, Network, StackedModule
from metrifair.objective import Objective
from metrifair.samples import Comparison, Samples
from metrifair.tables import Table, columns, group_codes, same_length, stratum_codes
from metrifair.tasks import Task
from metrifair.training import Schedule

_PROJECTIONS_SEED = 0  # of vector scores; the same for all members of a stack, so that each equals a fit of its own

Declared: TypeAlias = Mapping[str, Sequence[object]] | Sequence[object]
"""Groups by attribute, or the groups of the only one."""


class Aim(Protocol):
    """The parameters that say what is to be fair, and how much: those of every fair estimator."""

    strength: float
    criterion: str | Criterion
    metric: MetricLike
    unbiased: bool
    compare: Compare
    contrast: Contrast
    intersectional: bool


class Settings(Aim, Protocol):
    """All parameters of an estimator that fitting reads."""

    model: str | torch.nn.Module
    hidden: Sequence[int]
    batch_size: int | Literal["auto"]
    epochs: int | Literal["auto"]
    learning_rate: float
    learning_rate_decay: float
    weight_decay: float
    standardize: bool
    device: str
    random_state: Any
    verbose: bool


@dataclass(frozen=True, eq=False)
class Problem:
    """Checked arrays, and what the targets mean."""

    x: NDArray[np.float64]
    labels: NDArray[Any]  # codes of classes, or regression targets as the user gave them
    targets: NDArray[Any]  # what the loss is computed with
    weight: NDArray[np.float64]
    task: Task
    sensitive_features: Table | None = None
    control_features: Table | None = None
    classes: tuple[object, ...] = ()
    positive: int = 1

    @property
    def outputs(self) -> int:
        """Numbers a model returns for each sample."""
        return len(self.classes) if self.task.vector else 1

    def counted(self) -> Problem:
        """The rows that have weight; the others are as if they had never been there, and so are their groups."""
        kept = self.weight > 0
        if kept.all():
            return self
        if not kept.any():
            raise DataError("sample_weight is zero for every sample; at least one must count")
        changed: dict[str, Any] = {name: getattr(self, name)[kept] for name in ("x", "labels", "targets", "weight")}
        for name in ("sensitive_features", "control_features"):
            table = getattr(self, name)
            if table is not None:
                parts = columns(name, table)
                same_length(X=self.x, **{name: next(iter(parts.values()))})
                changed[name] = {key: column[kept] for key, column in parts.items()}
        return replace(self, **changed)


@dataclass(frozen=True, eq=False)
class Scheme:
    """What groups and strata stand for: fixed at the first fit and kept for all later samples."""

    criterion: Criterion
    attributes: tuple[Attribute, ...] = ()
    intersectional: bool = False
    strata: Strata | None = None
    cells: Cells | None = None  # None: nothing is compared

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """What is compared."""
        return self.cells.comparisons if self.cells else ()

    def samples(self, problem: Problem) -> Samples:
        """Samples with their cells."""
        arrays = problem.x, problem.targets, self._cell(problem), problem.weight
        return Samples(*(torch.as_tensor(np.require(array, requirements=["C", "W"])) for array in arrays))

    def _cell(self, problem: Problem) -> NDArray[np.int64]:
        if self.cells is None:
            return np.zeros(len(problem.x), dtype=np.int64)
        if problem.sensitive_features is None:
            raise DataError("sensitive_features is missing, although the first fit had it; pass one value per sample")
        groups = group_codes(problem.sensitive_features, intersectional=self.intersectional, attributes=self.attributes)
        strata = None
        if self.strata is not None:
            strata = stratum_codes(problem.control_features, self.strata)[0]
        same_length(X=problem.x, sensitive_features=groups.codes, control_features=strata)
        return self.cells.of(groups.codes, labels=problem.labels, strata=strata)


def scheme_for(settings: Aim, problem: Problem, *, penalised: bool, groups: Declared | None = None) -> Scheme:
    """The scheme of a first fit; ``groups`` declares groups that its samples may not all show."""
    criterion = criterion_named(settings.criterion)
    if not penalised and problem.sensitive_features is None:
        return Scheme(criterion)
    if problem.sensitive_features is None:
        raise DataError(
            f"strength={settings.strength} asks for fairness between groups; pass sensitive_features, one value per "
            "sample, or set strength=0"
        )
    attributes = group_codes(problem.sensitive_features, intersectional=settings.intersectional).attributes
    if groups is not None:
        attributes = _declared(groups, attributes)
    strata = None if problem.control_features is None else stratum_codes(problem.control_features)[1]
    cells = compiled(
        criterion,
        attributes,
        classes=problem.classes,
        positive=problem.positive,
        strata=strata,
        contrast=settings.contrast,
    )
    return Scheme(criterion, attributes, settings.intersectional, strata, cells)


def _declared(groups: Declared, found: Sequence[Attribute]) -> tuple[Attribute, ...]:
    names = [attribute.name for attribute in found]
    if not isinstance(groups, Mapping):
        if len(names) > 1:
            raise DataError(f"groups must map each of {names} to its groups, got a single list")
        groups = {names[0]: groups}
    if set(groups) != set(names):
        raise DataError(f"groups must name the attributes {names}, got {list(groups)}")
    return tuple(Attribute(name, tuple(groups[name])) for name in names)


def is_number(value: object) -> bool:
    """True for a finite number of any kind; a truth value is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        return isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def is_whole(value: object, *, least: int = 1) -> bool:
    """True for a whole number from there upwards."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= least


def _several_whole(value: object) -> bool:
    return isinstance(value, (list, tuple, np.ndarray)) and all(is_whole(units) for units in value)


_RANGES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "strength": ("a finite number from 0 upwards", lambda value: is_number(value) and value >= 0),
    "learning_rate": ("a positive number", lambda value: is_number(value) and value > 0),
    "learning_rate_decay": ("a number above 0, at most 1", lambda value: is_number(value) and 0 < value <= 1),
    "weight_decay": ("a number from 0 upwards", lambda value: is_number(value) and value >= 0),
    "epochs": ("'auto' or a whole number from 1 upwards", lambda value: value == "auto" or is_whole(value)),
    "batch_size": ("'auto' or a whole number from 1 upwards", lambda value: value == "auto" or is_whole(value)),
    "hidden": ("a list of whole numbers from 1 upwards", _several_whole),
    "verbose": ("True or False", lambda value: isinstance(value, (bool, int, np.integer))),  # scikit-learn has numbers
}


def check_settings(settings: Settings) -> None:
    """Raise a DataError that names the first parameter out of its range."""
    for name in _RANGES:
        check_range(name, getattr(settings, name))
    check_switches(**{name: getattr(settings, name) for name in ("unbiased", "intersectional", "standardize")})
    check_known("compare", settings.compare, ("prediction", "output"))


def check_range(name: str, value: object) -> None:
    """Raise a DataError where the value of a parameter is out of its range."""
    wanted, allows = _RANGES[name]
    if not allows(value):
        raise DataError(f"{name} must be {wanted}, got {value!r}")


def objective_for(settings: Settings, scheme: Scheme, task: Task) -> Objective:
    """The objective."""
    return Objective(
        task,
        scheme.comparisons,
        scheme.criterion,
        settings.metric,
        unbiased=settings.unbiased,
        compare=settings.compare,
        generator=torch.Generator().manual_seed(_PROJECTIONS_SEED),
    )


def model_for(settings: Settings, features: int, outputs: int) -> Model:
    """The network that ``model`` and ``hidden`` describe."""
    if isinstance(settings.model, torch.nn.Module):
        return StackedModule(settings.model, outputs)
    check_known("model", settings.model, ("linear", "mlp"), otherwise="a torch.nn.Module")
    return Network(features, tuple(settings.hidden) if settings.model == "mlp" else (), outputs)


def schedule_for(settings: Settings, samples: int) -> Schedule:
    """Batch size and epochs for so many samples, where they are left to us; docs/defaults.md says why these.

    Up to 1,000 samples every step takes them all; beyond, batches of 256 to 2,048. A linear model makes about 1,000
    steps; a network, which may overfit, 60 passes, but not fewer than 100 steps nor many more than 1,000.
    """
    size = settings.batch_size
    if size == "auto":
        size = samples if samples <= 1_000 else int(np.clip(samples // 8, 256, 2_048))
    per_epoch = max(1, samples // size)
    steps = 1_000 if settings.model == "linear" else int(np.clip(60 * per_epoch, 100, 1_000))
    epochs = max(3, -(-steps // per_epoch)) if settings.epochs == "auto" else settings.epochs
    return Schedule(size, epochs, settings.learning_rate, settings.learning_rate_decay, settings.weight_decay)


def seed_of(random_state: Any) -> int:
    """The seed that an integer is, or one drawn from a generator or from nowhere."""
    if random_state is None:
        return int(np.random.default_rng().integers(2**31 - 1))
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        draw = random_state.integers if isinstance(random_state, np.random.Generator) else random_state.randint
        return int(draw(2**31 - 1))
    raise DataError(f"random_state must be None, an integer or a NumPy generator, got {random_state!r}")


def device_of(device: str) -> torch.device:
    """The device of that name; ``"auto"`` is a CUDA device where there is one."""
    there = torch.cuda.is_available()
    if device == "auto":
        return torch.device("cuda" if there else "cpu")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise DataError(f"device must be 'auto', 'cpu' or 'cuda', got {device!r}") from error
    if found.type == "cuda" and not there:
        raise DataError(f"device={device!r} asks for CUDA, which this machine or this torch does not have; use 'auto'")
    return found
