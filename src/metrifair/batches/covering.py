"""Batches of a stream, as long as it takes to see every side of every comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from metrifair.errors import DataError, TooFewSamples
from metrifair.problem.samples import Batch, Comparison, Samples, joined, membership, sides_where

PATIENCE = 100  # a batch of a stream may grow to this many times the size asked for


@dataclass(frozen=True)
class Coverage:
    """When a batch is complete: ``size`` samples, and ``least`` on each side of each comparison."""

    comparisons: tuple[Comparison, ...]
    size: int
    least: int = 2

    def __post_init__(self) -> None:
        if self.size < 1 or self.least < 1:
            raise DataError(f"size and least must be at least 1, got size={self.size} and least={self.least}")

    @property
    def patience(self) -> int:
        """Samples that a batch may grow to."""
        return PATIENCE * self.size


def cut(waiting: Samples, rule: Coverage) -> tuple[Batch, Samples] | None:
    """The batch at the front of the waiting samples, and those that go on waiting; None where none is complete.

    What comes back depends on the samples alone, not on the pieces in which they arrived.
    """
    batch = _first_batch(waiting, rule)
    return None if batch is None else (batch, waiting.take(slice(len(batch.samples), None)))


def _first_batch(waiting: Samples, rule: Coverage) -> Batch | None:
    """Looks at the front first: most batches end soon, and a chunk may be long."""
    window = 2 * rule.size
    while (found := _covered(waiting.take(slice(0, window)), rule)) is None and window < len(waiting):
        window *= 4
    return found


def _covered(waiting: Samples, rule: Coverage) -> Batch | None:
    if len(waiting) < rule.size:
        return None
    member = membership(rule.comparisons, waiting.cell)
    enough = (member.cumsum(-1) >= rule.least).all(0)  # (comparisons, n), from some sample on
    enough[:, : rule.size - 1] = False
    if not bool(enough.any(-1).all()):
        _check_patience(len(waiting), member, rule)
        return None
    covered = (enough.int().argmax(-1) + 1).tolist()  # each comparison's own covered prefix
    length = max([rule.size, *covered])
    _check_patience(length, member[..., :length], rule)
    batch = waiting.take(slice(0, length))
    uneven = None if bool((batch.weight == batch.weight[0]).all()) else batch.weight
    sides = (sides_where(member[0, j, :end], member[1, j, :end], uneven) for j, end in enumerate(covered))
    weight = overshoot_weights(member[..., :length].flatten(0, 1), rule).to(batch.weight.dtype)
    return Batch(batch.with_weight(batch.weight * weight), tuple(sides))


def _check_patience(length: int, member: Tensor, rule: Coverage) -> None:
    if length <= rule.patience:
        return
    short = [
        f"{one.attribute} {one.groups[side]!r}, {one.within} ({count} seen)"
        for j, one in enumerate(rule.comparisons)
        for side in (0, 1)
        if (count := int(member[side, j, : rule.patience].sum())) < rule.least
    ]
    missing = "; ".join(dict.fromkeys(short))
    raise TooFewSamples(
        f"{rule.patience} samples of the stream hold fewer than {rule.least} of: {missing}; "
        "use a larger batch size, or leave out the rare group"
    )


def overshoot_weights(member: Tensor, rule: Coverage) -> Tensor:
    """Loss weights that make the mean over a covering batch an unbiased estimate of the risk, (n,).

    ``member`` is (sides, n). A batch that went on beyond ``size`` ended with a sample that was waited for. The
    mean of all samples but the last is unbiased; these weights average it over the K samples that could
    have been last: those in a side that holds exactly ``least``.

    >>> rule = Coverage((Comparison((0,), (1,)),), size=4, least=2)
    >>> overshoot_weights(torch.tensor([[1, 1, 1, 0, 0], [0, 0, 0, 1, 1]]).bool(), rule)
    tensor([1.2500, 1.2500, 1.2500, 0.6250, 0.6250], dtype=torch.float64)
    """
    n = member.shape[-1]
    weight = torch.ones(n, dtype=torch.float64)
    if n == rule.size:
        return weight
    scarce = member.sum(-1) == rule.least
    critical = member[scarce].any(0)
    weight[critical] = 1 - 1 / float(critical.sum())
    return weight * n / (n - 1)


def covering(stream: Iterable[Samples], rule: Coverage) -> Iterator[Batch]:
    """Covering batches of a stream of samples or chunks; samples left at its end make no batch."""
    waiting: Samples | None = None
    for chunk in stream:
        waiting = chunk if waiting is None else joined([waiting, chunk])
        while (found := cut(waiting, rule)) is not None:
            batch, waiting = found
            yield batch


def resampled(samples: Samples, generator: torch.Generator, *, chunk: int = 1024) -> Iterator[Samples]:
    """An endless stream of rows drawn with replacement, in proportion to their weights.

    This is how to take covering batches of a finite data set: cut from shuffled passes they would be biased
    from the second batch on.
    """
    cumulative = samples.weight.double().cumsum(0)
    even = samples.with_weight(torch.full_like(samples.weight, float(samples.weight.mean())))
    while True:
        at = torch.rand(chunk, generator=generator, dtype=torch.float64) * cumulative[-1]
        yield even.take(torch.searchsorted(cumulative, at, right=True).clamp_max(len(samples) - 1))
