"""Batches of an endless stream that hold every group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from metrifair.batches import Coverage
from metrifair.batches.covering import check_patience, overshoot_weights
from metrifair.nn.samplers import BatchValues, numbers, scheme_of
from metrifair.problem.criteria import Criterion, criterion_named
from metrifair.problem.problem import Scheme
from metrifair.support.checks import check_switches

_MOST_KNOWN = 10_000  # groups and labels of a stream that are remembered


class CoveringBatch(NamedTuple):
    """A batch of a stream with enough samples of every group; ``mean(weight * loss)`` estimates the risk.

    Parameters
    ----------
    x, y, group : Tensor of shape (n, ...)
        Features, labels and groups of the samples.
    weight : Tensor of shape (n,)
        Loss weights.

    Examples
    --------
    >>> CoveringBatch(torch.zeros(1, 2), torch.ones(1), torch.zeros(1), torch.ones(1)).weight
    tensor([1.])
    """

    x: Tensor
    y: Tensor
    group: Tensor
    weight: Tensor


def covering(
    stream: Iterable[tuple[Tensor, Tensor | float, Tensor | float]],
    *,
    batch_size: int,
    criterion: str | Criterion = "statistical_parity",
    groups: int = 2,
    classes: int = 2,
    least: int = 2,
    continuous: bool = False,
) -> Iterator[CoveringBatch]:
    """Batches of an endless stream of (x, y, group), with enough samples of every group.

    A batch contains at least ``batch_size`` samples, and at least ``least`` of every group in every set of the
    criterion. The loss weights remove the bias of waiting for the last sample.

    Parameters
    ----------
    stream : iterable of (x, y, group)
        Stream of samples. Samples with group -1 (missing) are used for the risk only.
    batch_size : int
        Rows per batch, at least.
    criterion : str or Criterion, default="statistical_parity"
        Fairness criterion. Every batch contains its sets.
    groups : int, default=2
        All groups, as their number: groups are coded from 0 upwards.
    classes : int, default=2
        All classes, as their number: labels are coded from 0 upwards.
    least : int, default=2
        Minimum number of samples of every group in every set of the criterion.
    continuous : bool, default=False
        Numeric attributes, such as age: the group is a number, and NaN is a missing value. Batches then wait for no
        groups. Unbiased estimates of the dependence need four samples in every set.

    Yields
    ------
    CoveringBatch
        The next batch, with ``x``, ``y``, ``group`` and ``weight``.

    Examples
    --------
    >>> stream = ((torch.zeros(2), 1.0, group) for group in (0, 0, 0, 0, 1, 1, 0, 1, 0, 1))
    >>> [batch.group.tolist() for batch in covering(stream, batch_size=4)]
    [[0, 0, 0, 0, 1, 1], [0, 1, 0, 1]]
    """
    kind = criterion_named(criterion)
    check_switches(continuous=continuous)
    numbers_at = (0,) if continuous else ()
    scheme = scheme_of(kind, [range(groups)], range(classes), contrast="pairs", pos_label=None, numbers=numbers_at)
    rule = Coverage(scheme.comparisons, size=batch_size, least=least)
    cell_of = _CellOf(kind, scheme, rule, continuous=continuous)
    pending: list[tuple[Tensor, Any, Any]] = []
    cells: list[int] = []
    needed = np.tile(rule.needs, 2).tolist()  # of every side
    missing, left = list(needed), sum(needed)
    for x, y, group in stream:
        pending.append((torch.as_tensor(x), y, group))
        cell, sides = cell_of(y, group)
        cells.append(cell)
        for side in sides:
            if missing[side] > 0:
                missing[side] -= 1
                left -= 1
        if len(cells) < rule.size or (left and len(cells) <= rule.patience):
            continue
        member = rule.member(np.array(cells))
        check_patience(len(cells), member, rule)
        features, targets, own = zip(*pending, strict=True)
        weight = torch.from_numpy(overshoot_weights(member.reshape(len(cells), -1), rule)).float()
        yield CoveringBatch(torch.stack(features), together("y", targets), together("group", own), weight)
        pending, cells, missing, left = [], [], list(needed), sum(needed)


class _CellOf:
    """The cell of a sample and the sides that it is on, looked up where its group and label were met before."""

    def __init__(self, criterion: Criterion, scheme: Scheme, rule: Coverage, *, continuous: bool = False) -> None:
        self.criterion, self.scheme, self.rule, self.continuous = criterion, scheme, rule, continuous
        self.known: dict[object, tuple[int, tuple[int, ...]]] = {}

    def __call__(self, y: Tensor | float, group: Tensor | float) -> tuple[int, tuple[int, ...]]:
        """Both, checked the first time."""
        label = (y.item() if isinstance(y, Tensor) else y) if self.criterion.needs_labels else None
        value = group.item() if isinstance(group, Tensor) else group
        if self.continuous and isinstance(value, int | float):  # all that are known lie in the same cells
            group = value = 0.0 if abs(value) < inf else value
        key = label, str(value) if self.continuous else value
        found = self.known.get(key)
        if found is None:
            given = numbers("y", y).reshape(1), numbers("group", group).reshape(1, 1)
            cell = BatchValues(self.criterion, given[1], given[0], self.continuous).problem(self.scheme).cell
            found = int(cell[0]), tuple(np.flatnonzero(self.rule.member(cell)[0]).tolist())
            if len(self.known) < _MOST_KNOWN:  # a number that is cut into bins is another one in every sample
                self.known[key] = found
        return found


def together(name: str, values: Sequence[Any]) -> Tensor:
    """Numbers, or tensors of one, as one tensor (n,)."""
    if isinstance(values[0], Tensor):
        return torch.stack([value if isinstance(value, Tensor) else numbers(name, value) for value in values])
    return numbers(name, values)
