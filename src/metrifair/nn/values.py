"""Groups and labels of a batch, as numbers of any kind in tensors or arrays, become codes and cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from metrifair.errors import DataError
from metrifair.problem.cells import Attribute, Contrast, Integers
from metrifair.problem.criteria import Criterion
from metrifair.problem.problem import Problem, Scheme, positive_of
from metrifair.problem.tables import UNKNOWN, codes, same_length


def numbers(name: str, given: Tensor | ArrayLike) -> Tensor:
    """Numbers as a tensor, whatever holds them."""
    if isinstance(given, Tensor):
        return given
    values = np.array(given)
    if values.dtype.kind not in "biuf":
        raise DataError(
            f"{name} must be numbers, got {values.ravel()[:1].tolist()} and the like; "
            "numpy.unique(..., return_inverse=True) numbers other values from 0 upwards"
        )
    return torch.as_tensor(values)


class BatchValues:
    """The groups and targets of samples, checked; -1 or NaN is a group that is not known."""

    def __init__(
        self, criterion: Criterion, groups: Tensor | ArrayLike, targets: Tensor | ArrayLike | None, **others: Any
    ) -> None:
        given = numbers("groups", groups).detach().cpu().numpy()
        if given.ndim not in (1, 2):
            raise DataError(f"groups must be (n,) or (n, attributes), got the shape {tuple(given.shape)}")
        known = given[~np.isnan(given)] if given.dtype.kind == "f" else given
        _check_integers("groups", known)
        whole = np.nan_to_num(given, nan=UNKNOWN) if given.dtype.kind == "f" else given
        self.groups: Integers = whole.astype(np.int64)[:, None] if given.ndim == 1 else whole.astype(np.int64)
        if self.groups.min(initial=0) < UNKNOWN:
            raise DataError(
                f"groups must be integers from 0 upwards, or {UNKNOWN} where not known, got {self.groups.min()}"
            )
        self.targets: NDArray[Any] | None = None
        if targets is not None:
            self.targets = numbers("targets", targets).detach().cpu().numpy()
        self.of_labels = criterion.labels is not None and criterion.bins is None
        if self.targets is not None and self.of_labels:
            _check_integers("targets", self.targets)
            self.targets = self.targets.astype(np.int64)
        if criterion.needs_labels and self.targets is None:
            raise DataError(f"{criterion.name} compares groups within labels; pass the true labels")
        self.length = same_length(**others, groups=self.groups, targets=self.targets)

    def seen(self) -> tuple[list[set[int]], set[int]]:
        """The groups of each attribute, and the labels, that occur here."""
        groups = [set(np.unique(column).tolist()) - {UNKNOWN} for column in self.groups.T]
        labels = set(np.unique(self.targets).tolist()) if self.of_labels and self.targets is not None else set()
        return groups, labels

    def problem(self, scheme: Scheme, weight: NDArray[np.float64] | None = None) -> Problem:
        """The record of the samples, by the codes of the scheme."""
        columns = []
        for attribute, column in zip(scheme.attributes, self.groups.T, strict=True):
            found, known = np.full(len(column), UNKNOWN, dtype=np.int64), column != UNKNOWN
            found[known] = codes(attribute.name, column[known], attribute.groups)
            columns.append(found)
        labels = self.targets
        if labels is not None and self.of_labels:
            labels = codes("targets", labels, scheme.classes)
        return Problem(scheme, labels, np.stack(columns, axis=1), weight=weight)


def scheme_of(
    criterion: Criterion,
    groups: Sequence[Iterable[int]],
    labels: Iterable[int],
    *,
    contrast: Contrast,
    pos_label: object,
) -> Scheme:
    """What these groups of each attribute, and these labels, stand for."""
    several = len(groups) > 1
    attributes = [
        Attribute(f"group {place}" if several else "group", at_least_two(values)) for place, values in enumerate(groups)
    ]
    by_label = criterion.labels is not None and criterion.bins is None
    classes = at_least_two(labels) if by_label else ()
    positive = positive_of(classes, pos_label if classes else None)
    return Scheme(criterion, classes, positive, tuple(attributes), contrast=contrast)


def at_least_two(values: Iterable[int]) -> tuple[int, ...]:
    """The values in order, with what usually goes with one alone.

    >>> at_least_two({2, 1}), at_least_two({0}), at_least_two({-1})
    ((1, 2), (0, 1), (-1, 1))
    """
    found = set(values)
    for usual in ((0, 1), (-1, 1)):
        if found <= set(usual):
            return usual
    return tuple(sorted(found))


def _check_integers(name: str, given: NDArray[Any]) -> None:
    if given.dtype.kind == "f":
        wrong = given[~(np.isfinite(given) & (np.rint(given) == given))]
        if len(wrong):
            raise DataError(f"{name} must be integers, got {wrong.flat[0]}")
