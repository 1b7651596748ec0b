"""Batches of a stream, as long as it takes to see every side of every comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import log, log1p
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import gammaln

from metrifair.checks import check_integer, check_number
from metrifair.errors import DataError, TooFewSamples
from metrifair.problem.cells import Batch, Comparison, Dependence, Samples, Sides, dependence_at, joined
from metrifair.problem.criteria import Booleans, Integers

Floats: TypeAlias = NDArray[np.float64]

PATIENCE = 100  # a batch of a stream may grow to this many times the size asked for


@dataclass(frozen=True)
class Coverage:
    """When a batch is complete: ``size`` samples, and ``least`` on each side of each comparison.

    Parameters
    ----------
    comparisons : tuple of Comparison
        What is compared.
    size : int
        The fewest samples of a batch.
    least : int, default=2
        The fewest samples of either side of every comparison: 2 for unbiased distances, 1 for others. Where scores
        should not depend on an attribute there is one side, of 4 samples for unbiased values.

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
        When a batch is complete.
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
        left, right = (member[:end, side, j].nonzero()[0] for side in (0, 1))
        if isinstance(one, Dependence):
            sides.append(dependence_at(one, torch.from_numpy(left), uneven))
            continue
        rows = torch.from_numpy(np.concatenate([left, right]))
        sides.append(Sides(rows, (len(left),), (len(right),), None if uneven is None else uneven[rows]))
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


def covering_law(share: float, size: int, *, tail: float = 1e-12) -> tuple[Floats, Floats, Floats]:
    """The law of a covering batch of two groups: its length N, how many of one group it holds, and how likely that is.

    A batch that is complete at ``size`` samples is a binomial draw. A longer one ended with the second sample of the
    group that was waited for: all others but one are of the other group.

    Parameters
    ----------
    share : float
        The group's share of the stream, strictly between 0 and 1; the other group has the rest.
    size : int
        The fewest samples of a batch. Two of each group are waited for, so that 4 is the least that makes a difference.
    tail : float, default=1e-12
        Lengths are listed until all longer ones together are less likely than this.

    Returns
    -------
    tuple of three ndarrays
        N, n and their probability, in the order of N.

    Raises
    ------
    DataError
        If share is not strictly between 0 and 1, or size is not a positive integer.

    Examples
    --------
    >>> length, count, probability = covering_law(0.5, 4)
    >>> int(length[0]), int(count[0]), float(probability[0])           # two and two at once: 6 of the 16 ways
    (4, 2, 0.375)
    """
    share, size = _checked_share(share), _least_length(size)
    rest = 1 - share
    count = np.arange(2, size - 1)
    ways = gammaln(size + 1) - gammaln(count + 1) - gammaln(size - count + 1)
    at_once = np.exp(ways + count * log(share) + (size - count) * log1p(-share))
    longest = size + 1
    while sum(one**longest + longest * (1 - one) * one ** (longest - 1) for one in (share, rest)) > tail:
        longest *= 2  # so long, and still fewer than two of one group: too likely to be left out
    late = np.arange(size + 1, longest + 1)
    waited = [(late - 1.0) * one**2 * (1 - one) ** (late - 2.0) for one in (share, rest)]
    length = np.concatenate([np.full(len(count), size), late, late]).astype(np.float64)
    order = np.argsort(length, kind="stable")
    counts = np.concatenate([count, np.full(len(late), 2), late - 2]).astype(np.float64)
    return length[order], counts[order], np.concatenate([at_once, *waited])[order]


def covering_bias(share: float, size: int) -> float:
    """How much too large a group's share of a covering batch is on average: E[n / N] = share x (1 + bias).

    This is what the plain mean over a batch, without the weights of ``overshoot_weights``, gets wrong: whoever is rare
    is waited for, and so is seen too often. 0 where both groups are equally common. The paper's lemma, for two groups
    and two samples of each.

    Parameters
    ----------
    share : float
        The group's share of the stream, strictly between 0 and 1.
    size : int
        The fewest samples of a batch; below 4 the same as 4.

    Returns
    -------
    float
        The relative bias; negative for the commoner group.

    Raises
    ------
    DataError
        If share is not strictly between 0 and 1, or size is not a positive integer.

    Examples
    --------
    >>> round(covering_bias(0.2, 4), 4), round(covering_bias(0.2, 16), 4)
    (0.3571, 0.0317)
    """
    p, size = _checked_share(share), _least_length(size)
    q = 1 - p

    def log_tail(x: float) -> float:
        """Sum of x^N / N over all N beyond size; -log(1 - x) less the rest would cancel where x is small."""
        if x < 0.5:
            beyond = np.arange(size + 1, size + 61)
            return float((x**beyond / beyond).sum())
        upto = np.arange(1, size + 1)
        return max(0.0, -log1p(-x) - float((x**upto / upto).sum()))

    return q ** (size - 1) - q * p ** (size - 2) - 2 * p / q**2 * log_tail(q) + 2 * q**2 / p**3 * log_tail(p)


def _checked_share(share: float) -> float:
    check_number("share", share)
    if not 0 < share < 1:
        raise DataError(f"share must lie strictly between 0 and 1, got {share!r}; it is a group's share of the stream")
    return float(share)


def _least_length(size: int) -> int:
    check_integer("size", size, least=1)
    return max(int(size), 4)


def covering(stream: Iterable[Samples], rule: Coverage) -> Iterator[Batch]:
    """Covering batches of a stream of samples or chunks; samples left at its end make no batch.

    Parameters
    ----------
    stream : iterable of Samples
        Single samples, or chunks of any length.
    rule : Coverage
        When a batch is complete.

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


def resampled(samples: Samples, generator: torch.Generator, *, chunk: int = 1024) -> Iterator[Samples]:
    """An endless stream of rows drawn with replacement, in proportion to their weights.

    This is how to take covering batches of a finite data set: cut from shuffled passes they would be biased
    from the second batch on.

    Parameters
    ----------
    samples : Samples
        The data set.
    generator : torch.Generator
        Draws the rows.
    chunk : int, default=1024
        How many rows are drawn at once.

    Yields
    ------
    Samples
        Chunks of rows that all weigh the same, without end.

    Examples
    --------
    >>> data = Samples(torch.zeros(2, 1), torch.zeros(2), torch.tensor([0, 1]), torch.tensor([1.0, 0.0]))
    >>> next(resampled(data, torch.Generator(), chunk=3)).cell       # row 1 has no weight
    tensor([0, 0, 0])
    """
    cumulative = samples.weight.double().cumsum(0)
    even = samples.with_weight(torch.full_like(samples.weight, float(samples.weight.mean())))
    while True:
        at = torch.rand(chunk, generator=generator, dtype=torch.float64) * cumulative[-1]
        yield even.take(torch.searchsorted(cumulative, at, right=True).clamp_max(len(samples) - 1))
