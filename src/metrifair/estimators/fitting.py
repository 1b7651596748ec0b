"""From a table, labels and groups to what training takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from metrifair.errors import DataError
from metrifair.problem.cells import Attribute, Cells, Strata, compiled
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.problem.samples import Comparison, Samples
from metrifair.problem.tables import Table, columns, group_codes, same_length, stratum_codes
from metrifair.problem.tasks import Task

Declared: TypeAlias = Mapping[str, Sequence[object]] | Sequence[object]
"""Groups by attribute, or the groups of the only one."""


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


def scheme_for(settings: Any, problem: Problem, *, penalised: bool, groups: Declared | None = None) -> Scheme:
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
