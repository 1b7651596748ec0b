"""Two samples put in one order, with the weight that lies below each score.

Nothing here records gradients: order and counts are constants of a sample, only scores move.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.metrics.pair import Pair

_PIECE = 2**15
_LARGE = 2**15  # scores from here on do not fit into the processor's nearest cache


class Ties(NamedTuple):
    """The places of the first and the last score equal to each sorted score."""

    first: Tensor  # (..., n), or (tied,)
    last: Tensor
    tied: Tensor | None = None  # the scores meant, where not all are: those that equal another one


class Sorted(NamedTuple):
    """Scores in ascending order."""

    points: Tensor  # (..., n)
    order: Tensor  # (..., n): their positions before
    ties: Ties | None  # None where it is known that no two scores are equal


def ascending(z: Tensor) -> Sorted:
    """The scores sorted along the last axis; equal ones come in any order."""
    try:
        array = z.detach().numpy()
    except (RuntimeError, TypeError):  # on an accelerator, or inside a torch.func transform
        points, order = z.detach().sort(-1)
        return Sorted(points, order, _ties_on_device(points))
    values, places = sorted_places(array)
    return Sorted(torch.from_numpy(values), torch.from_numpy(places), _ties(values))


def sorted_places(z: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Scores in ascending order along the last axis, and their positions before."""
    # NumPy sorts with vector instructions, three to four times faster than torch on one thread.
    if z.dtype == np.float32 and z.shape[-1] >= _LARGE:
        return _packed_sort(z)
    places = np.argsort(z, axis=-1)
    return (z[places] if z.ndim == 1 else np.take_along_axis(z, places, -1)), places


def _ties(points: NDArray[Any]) -> Ties | None:
    runs = tied_runs(points)
    if runs is None:
        return None
    first, last, tied = runs
    return Ties(torch.from_numpy(first), torch.from_numpy(last), None if tied is None else torch.from_numpy(tied))


def tied_runs(
    points: NDArray[Any],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None] | None:
    """``Ties`` of ascending scores as arrays; None where no two are equal."""
    equal = points[..., 1:] == points[..., :-1]
    if not equal.any():
        return None
    if points.ndim == 1:
        return _few_ties(equal)
    place = np.arange(points.shape[-1])
    first, last = np.broadcast_to(place, points.shape).copy(), np.broadcast_to(place, points.shape).copy()
    first[..., 1:][equal] = 0
    last[..., :-1][equal] = place[-1]
    np.maximum.accumulate(first, axis=-1, out=first)
    backwards = last[..., ::-1]
    np.minimum.accumulate(backwards, axis=-1, out=backwards)
    return first, last, None


def _few_ties(equal: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The tied ones of a single sample: rarely many, so that most of a large sample is left in peace."""
    edges = np.diff(np.concatenate([[False], equal, [False]]).view(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    lengths = ends - starts + 1
    first, last = np.repeat(starts, lengths), np.repeat(ends, lengths)
    within = np.arange(len(first)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return first, last, first + within


def _ties_on_device(points: Tensor) -> Ties:
    """The same without asking whether there are any, for which the device would have to be waited for."""
    points = points.contiguous()
    first, last = torch.searchsorted(points, points), torch.searchsorted(points, points, right=True) - 1
    # A score that is not a number (its model has diverged) is found nowhere: keep its place within bounds.
    return Ties(first.clamp_(0, points.shape[-1] - 1), last.clamp_(0, points.shape[-1] - 1))


def _packed_sort(z: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Sorted scores and their positions, from 64-bit words that hold both: no jumping about in memory."""
    words = np.empty(z.shape, np.int64)
    for piece in pieces(z.shape[-1]):
        words[..., piece] = _ordered(z[..., piece].view(np.int32))
        words[..., piece] <<= 32
        words[..., piece] |= np.arange(piece.start, piece.stop)
    words.sort(axis=-1)
    values = np.empty(z.shape, np.float32)
    for piece in pieces(z.shape[-1]):
        values[..., piece] = _ordered((words[..., piece] >> 32).astype(np.int32)).view(np.float32)
        words[..., piece] &= 0xFFFFFFFF
    return values, words


def pieces(n: int) -> Iterator[slice]:
    """Consecutive parts of n scores, each small enough to stay in the processor's cache."""
    return (slice(start, min(start + _PIECE, n)) for start in range(0, n, _PIECE))


def _ordered(bits: NDArray[np.int32]) -> NDArray[np.int32]:
    """Bits of floats as integers in the same order; doing it twice undoes it."""
    return bits ^ ((bits >> 31) & np.int32(0x7FFFFFFF))


def block_weights(pair: Pair, sizes: tuple[int, ...]) -> Tensor:
    """Weights of the samples, (..., blocks, n): row k is zero outside its block of ``sizes[k]`` samples.

    Without weights each sample counts 1, so that sums of them are exact.
    """
    inside = (_inside_small if sum(sizes) < _LARGE else _inside)(sizes, pair.values.device)
    return inside if pair.weights is None else inside * pair.weights.unsqueeze(-2)


def _inside(sizes: tuple[int, ...], device: torch.device) -> Tensor:
    block = torch.repeat_interleave(torch.tensor(sizes, device=device))
    return (block == torch.arange(len(sizes), device=device).unsqueeze(-1)).double()


_inside_small = lru_cache(maxsize=64)(_inside)  # training meets the same sizes at every step


def block_weights_in_order(pair: Pair, sizes: tuple[int, ...], order: Tensor) -> Tensor:
    """The same for samples rearranged by ``order``, (..., n)."""
    if pair.weights is None and order.shape[-1] >= _LARGE:
        # Comparing positions reads memory in order; looking weights up would jump about in it.
        weights = torch.empty(*order.shape[:-1], len(sizes), order.shape[-1], dtype=torch.float64, device=order.device)
        for block, (start, end) in enumerate(pairwise(np.cumsum((0, *sizes)).tolist())):
            weights[..., block, :] = (order >= start) & (order < end)
        return weights
    return _at(block_weights(pair, sizes), order)


def _at(rows: Tensor, places: Tensor) -> Tensor:
    """``rows`` (..., blocks, n) read at ``places`` (..., n) in each block."""
    if places.ndim == 1:
        return rows.index_select(-1, places)
    shape = *places.shape[:-1], *rows.shape[-2:]
    return rows.expand(shape).gather(-1, places.unsqueeze(-2).expand(shape))


def running_sums(rows: Tensor) -> Tensor:
    """Cumulative sums along the last axis."""
    if rows.device.type != "cpu" and rows.ndim == 2 and rows.shape[-1] >= _LARGE:
        # A device scans a single row with all its processors, but each of several rows with one.
        return torch.stack([row.cumsum(0) for row in rows])
    return rows.cumsum(-1)


def closes_tie(points: Tensor) -> Tensor:
    """True at the last of equal scores in ascending ``points``: there distribution functions take their value."""
    return torch.nn.functional.pad(points[..., 1:] != points[..., :-1], (0, 1), value=True)


def weight_below_twice(weights: Tensor, cumulative: Tensor, ties: Ties | None) -> Tensor:
    """Twice the weight below each score in ascending order, equal ones counting half.

    It is what lies strictly below plus what lies below or at the score: with no ties, the cumulative
    weight before and after it. ``weights`` and ``cumulative`` are (..., blocks, n); ``cumulative`` is overwritten.
    """
    if ties is None:
        return cumulative.mul_(2).sub_(weights)
    if ties.tied is None:
        return _at(cumulative, ties.last).add_(_at(cumulative - weights, ties.first))
    through, before = _at(cumulative, ties.last), _at(cumulative, ties.first) - _at(weights, ties.first)
    return cumulative.mul_(2).sub_(weights).index_copy_(-1, ties.tied, through + before)
