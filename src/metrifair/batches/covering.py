"""Batches of a stream, as long as it takes to see every side of every comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from metrifair.batches.samples import Batch, Samples, dependence_at, joined, sides_at
from metrifair.errors import DataError, TooFewSamples
from metrifair.problem.cells import Comparison, Dependence
from metrifair.support.arrays import Booleans, Floats, Integers

PATIENCE = 100  # a batch of a stream may grow to this many times the size asked for


@dataclass(frozen=True)
class Coverage:
    """When a batch is complete: ``size`` samples, and ``least`` on each side of each comparison.

    Parameters
    ----------
    comparisons : tuple of Comparison
        What is compared.
    size : int
        Minimum number of samples of a batch.
    least : int, default=2
        Minimum number of samples of either side of every comparison: 2 for unbiased distances, 1 for others. A
        comparison of independence has one side, and needs 4 samples for unbiased values.

    Raises
    ------
    DataError
        If size or least is below 1.

    Examples
    --------
    >>> Coverage((Comparison((0,), (1,)),), size=32).patience        # a batch that grows longer is an error
    3200
    """

    comparisons: tuple[Comparison, ...]
    size: int
    least: int = 2

    def __post_init__(self) -> None:
        if self.size < 1 or self.least < 1:
            raise DataError(f"size and least must be at least 1, got size={self.size} and least={self.least}")

    @cached_property
    def _sides(self) -> Booleans:
        """Whether each cell is on the left and on the right of each comparison, (cells, 2, comparisons)."""
        cells = 2 + max((max(one.left + one.right) for one in self.comparisons), default=-1)
        found = np.zeros((cells, 2, len(self.comparisons)), dtype=np.bool_)
        for j, one in enumerate(self.comparisons):
            found[list(one.left), 0, j] = found[list(one.sides[-1]), 1, j] = True
        return found

    @cached_property
    def needs(self) -> Integers:
        """The fewest samples of either side, for each comparison."""
        return np.array([one.needs(self.least) for one in self.comparisons], dtype=np.int64)

    @cached_property
    def at_once(self) -> Integers:
        """The length of each comparison's covered prefix, where the first ``size`` samples hold enough."""
        return np.full(len(self.needs), self.size)

    def member(self, cell: Integers) -> Booleans:
        """Whether samples lie on the left (0) or right (1) of a comparison.

        Parameters
        ----------
        cell : ndarray of shape (n,)
            The cell of each sample.

        Returns
        -------
        ndarray of shape (n, 2, comparisons)
            True where it does.
        """
        found: Booleans = self._sides[np.minimum(cell, len(self._sides) - 1)]  # the last one is in none
        return found

    @property
    def patience(self) -> int:
        """Samples that a batch may grow to."""
        return PATIENCE * self.size


def cut(waiting: Samples, rule: Coverage, start: int = 0) -> Batch | None:
    """The batch at the front of the waiting samples; None where none is complete.

    What comes back depends on the samples alone, not on the pieces in which they arrived.

    Parameters
    ----------
    waiting : Samples
        The samples of a stream that are in no batch yet, in their order.
    rule : Coverage
        Rule that says when a batch is complete.
    start : int, default=0
        How many of them are in batches by now.

    Returns
    -------
    Batch or None
        The batch, whose loss weights make up for its length.

    Raises
    ------
    TooFewSamples
        If ``rule.patience`` samples do not hold enough of some side.

    Examples
    --------
    >>> rule = Coverage((Comparison((0,), (1,)),), size=2, least=1)
    >>> waiting = Samples(torch.zeros(4, 1), torch.zeros(4), torch.tensor([0, 0, 1, 0]), torch.ones(4))
    >>> cut(waiting, rule).samples.cell                      # the third sample is the first of cell 1
    tensor([0, 0, 1])
    >>> cut(waiting, rule, start=3) is None
    True
    """
    cell = waiting.cell.numpy()[start:]
    if len(cell) < rule.size:
        return None
    window = rule.size  # the front first: most batches end there, and a chunk may be long
    while (covered := _covered(member := rule.member(cell[:window]), rule)) is None:
        if window >= len(cell):
            return None
        window *= 4
    length = int(covered.max(initial=rule.size))
    batch = waiting.take(slice(start, start + length))
    given = batch.weight.numpy()
    uneven = None if (given == given[0]).all() else batch.weight
    sides = []
    for j, (one, end) in enumerate(zip(rule.comparisons, covered.tolist(), strict=True)):
        left, right = (torch.from_numpy(member[:end, side, j].nonzero()[0]) for side in (0, 1))
        sides.append(dependence_at(one, left, uneven) if isinstance(one, Dependence) else sides_at(left, right, uneven))
    if length > rule.size:
        weight = torch.from_numpy(overshoot_weights(member[:length].reshape(length, -1), rule))
        batch = batch.with_weight(batch.weight * weight.to(batch.weight.dtype))
    return Batch(batch, tuple(sides))


def _covered(member: Booleans, rule: Coverage) -> Integers | None:
    """The length of each comparison's own covered prefix; None where these samples (n, 2, comparisons) are too few."""
    if (member.sum(0) >= rule.needs).all() and len(member) == rule.size:
        return rule.at_once
    enough = np.cumsum(member, 0) >= rule.needs  # from some sample on
    if not enough[-1].all():
        check_patience(len(member), member, rule)
        return None
    covered: Integers = np.maximum(enough.argmax(0).max(0) + 1, rule.size)
    length = int(covered.max(initial=rule.size))
    check_patience(length, member[:length], rule)
    return covered


def check_patience(length: int, member: Booleans, rule: Coverage) -> None:
    """Raise TooFewSamples, naming what is missing, where a batch (n, 2, comparisons) has grown too long."""
    if length <= rule.patience:
        return
    seen = member[: rule.patience].sum(0)
    short = [
        f"{one.attribute} {one.groups[side]!r}, {one.within} ({count} seen)"
        for j, one in enumerate(rule.comparisons)
        for side in range(len(one.sides))
        if (count := int(seen[side, j])) < rule.needs[j]
    ]
    missing = "; ".join(dict.fromkeys(short))
    raise TooFewSamples(
        f"{rule.patience} samples of the stream hold fewer than {rule.least} of: {missing}; "
        "use a larger batch size, or leave out the rare group"
    )


def overshoot_weights(member: Booleans, rule: Coverage) -> Floats:
    """Loss weights that make the mean over a covering batch an unbiased estimate of the risk, (n,).

    ``member`` is (n, sides). A batch that went on beyond ``size`` ended with a sample that was waited for. The
    mean of all samples but the last is unbiased; these weights average it over the K samples that could
    have been last: those in a side that holds exactly ``least``.

    >>> rule = Coverage((Comparison((0,), (1,)),), size=4, least=2)
    >>> overshoot_weights(np.array([[1, 1, 1, 0, 0], [0, 0, 0, 1, 1]], dtype=bool).T, rule)
    array([1.25 , 1.25 , 1.25 , 0.625, 0.625])
    """
    n = len(member)
    weight = np.ones(n)
    if n == rule.size:
        return weight
    critical = member[:, member.sum(0) == np.tile(rule.needs, 2)].any(1)
    weight[critical] = 1 - 1 / critical.sum()
    return weight * (n / (n - 1))


def covering(stream: Iterable[Samples], rule: Coverage) -> Iterator[Batch]:
    """Covering batches of a stream of samples or chunks; samples left at its end make no batch.

    Parameters
    ----------
    stream : iterable of Samples
        Stream of samples: single samples, or chunks of any length.
    rule : Coverage
        Rule that says when a batch is complete.

    Yields
    ------
    Batch
        As many samples as it takes, with loss weights that keep the mean loss unbiased.

    Raises
    ------
    TooFewSamples
        If ``rule.patience`` samples do not hold enough of some side.

    Examples
    --------
    >>> rule = Coverage((Comparison((0,), (1,)),), size=2, least=1)
    >>> chunk = Samples(torch.zeros(5, 1), torch.zeros(5), torch.tensor([0, 1, 0, 0, 1]), torch.ones(5))
    >>> [len(batch.samples) for batch in covering([chunk], rule)]
    [2, 3]
    """
    waiting: Samples | None = None
    for chunk in stream:
        waiting, start = chunk if waiting is None else joined([waiting, chunk]), 0
        while (batch := cut(waiting, rule, start)) is not None:
            start += len(batch.samples)
            yield batch
        waiting = waiting.take(slice(start, None))
