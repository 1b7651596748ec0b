"""Two samples of scores in the form that every metric accepts, their order with the weight below
each score, and a metric over comparisons.

Order and counts record no gradients: they are constants of a sample, only scores move.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import frexp, isfinite, isnan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from metrifair.errors import DataError, TooFewSamples
from metrifair.metrics.namespaces import Array, is_tensor, namespace_for, no_warnings
from metrifair.problem.cells import Sides
from metrifair.problem.tables import as_array, check_exact
from metrifair.support.arrays import Booleans, Floats, Integers

if TYPE_CHECKING:
    from torch import Tensor

TOO_FAR = "the distance exceeds the largest floating-point number; divide all scores by a constant"

Values: TypeAlias = "Tensor | ArrayLike"
"""Scores in any form: a tensor, an array, a list, a column of any data frame."""


class Pair(NamedTuple):
    """Two samples of scores, one after the other, and how they were drawn."""

    values: Array  # (..., n), or (..., n, d) for vector scores: the left sample, then the right one
    # sizes of consecutive blocks, drawn with fixed counts, of the left sample
    left: tuple[int, ...]
    right: tuple[int, ...]
    weights: Array | None = None  # (..., n)
    # (..., blocks): the drawn share of a block's rows; None: fresh ones, see Sides
    fraction: Array | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of all blocks."""
        return self.left + self.right

    @property
    def samples(self) -> tuple[int, int]:
        """Sizes of the two samples."""
        return sum(self.left), sum(self.right)


Metric: TypeAlias = Callable[[Pair], Array]
"""A distance between two samples of scores: an array of the leading (model) axes."""

Reduction: TypeAlias = Literal["sum", "max", "all"]


WitnessFunction: TypeAlias = Callable[[Floats], Floats]
"""The utility of a score: a function of an array of scores."""

Bound: TypeAlias = "Callable[[float, float, float | None], float | None]"
"""An upper bound of a distance from three numbers: its value, the total error of both distribution
functions, and the length of the interval that contains all scores (None: unknown). None: no bound.
"""


def to_pair(
    u: Values,
    v: Values,
    u_weights: Values | None,
    v_weights: Values | None,
    *,
    vector: bool = False,
) -> Pair:
    """Both samples, checked, in one dtype and on one device."""
    axis = -2 if vector else -1
    dimensions = 2 if vector else 1
    samples = [sample_array("u", u, dimensions), sample_array("v", v, dimensions)]
    for name, sample in zip("uv", samples, strict=True):
        if sample.shape[axis] == 0:
            raise DataError(f"{name} contains no scores; pass at least one")
    samples = [namespace_for(*samples, u_weights, v_weights).asarray(sample) for sample in samples]
    xp, other_xp = map(namespace_for, samples)
    if xp.device != other_xp.device:
        raise DataError(
            f"u and v must be on one device, got {xp.device} and {other_xp.device}; move one"
        )
    if vector and samples[0].shape[-1] != samples[1].shape[-1]:
        raise DataError(
            f"u and v must contain vectors of one length, got {samples[0].shape[-1]} and "
            f"{samples[1].shape[-1]}"
        )
    n, m = (sample.shape[axis] for sample in samples)
    weights = None
    if u_weights is not None or v_weights is not None:
        sides = sample_weights("u", u_weights, n), sample_weights("v", v_weights, m)
        weights = concatenate(*(xp.to_device(weight) for weight in sides))
    dtype = xp.promote_types(samples[0].dtype, samples[1].dtype)
    values = concatenate(*(xp.astype(sample, dtype) for sample in samples), axis=axis)
    if weights is not None:
        lead = xp.broadcast_shapes(values.shape[:axis], weights.shape[:-1])
        values = xp.broadcast_to(values, (*lead, *values.shape[axis:]))
    return Pair(
        values,
        (n,),
        (m,),
        weights,
    )


def concatenate(u: Array, v: Array, *, axis: int = -1) -> Array:
    """Concatenate along an axis counted from the end; the axes before it are broadcast."""
    xp = namespace_for(u)
    if u.shape[:axis] == v.shape[:axis]:  # nothing to broadcast, and nothing for autograd to undo
        return xp.concat([u, v], axis)
    lead = xp.broadcast_shapes(u.shape[:axis], v.shape[:axis])
    return xp.concat([xp.broadcast_to(part, (*lead, *part.shape[axis:])) for part in (u, v)], axis)


def evaluate(
    metric: Metric,
    pair: Pair,
    degree: float,
    *inputs: Values,
    value: Array | None = None,
) -> Any:
    """Evaluate a metric: a tensor if an input is a tensor, else a float; never infinite or NaN.

    If sums of large floats overflow, the scores are scaled down, and the distance is scaled up by
    its ``degree`` (nan: not possible). ``value`` is the distance, if it has been computed.
    """
    xp = namespace_for(pair.values)
    with no_warnings(), xp.full_precision():
        distance = metric(pair) if value is None else value
        # On an accelerator this check would make every training step wait for the device.
        if xp.is_host and not is_finite(distance):
            scale = 2.0 ** (frexp(abs(xp.detach(pair.values)).max().item())[1] - 1)
            smaller = pair._replace(values=pair.values / scale)
            if not isnan(degree):
                distance = metric(smaller) * scale**degree
            if not is_finite(distance):
                raise DataError(TOO_FAR)
    if any(map(is_tensor, inputs)):
        return distance
    return distance.item()


def distance_between(
    metric: Metric,
    u: Values,
    v: Values,
    u_weights: Values | None,
    v_weights: Values | None,
    *,
    degree: float = 1.0,
    vector: bool = False,
) -> Any:
    """A metric of two samples as users pass them; ``degree`` as in ``evaluate``."""
    pair = to_pair(u, v, u_weights, v_weights, vector=vector)
    return evaluate(metric, pair, degree, u, v)


def sample_weights(
    of: str,
    weights: Values | None,
    count: int,
    *,
    name: str = "",
) -> Array:
    """Weights that sum to 1: each sample counts once, however large its weights are."""
    if weights is None:
        return np.full(count, 1 / count)
    name = name or f"{of}_weights"
    weight = sample_array(name, weights, least_dimensions=1)
    xp = namespace_for(weight)
    weight = xp.double(weight)
    if weight.shape[-1] != count:
        raise DataError(
            f"{of} contains {count} scores and {name} {weight.shape[-1]} weights; pass one per "
            "score"
        )
    with no_warnings():
        if xp.is_host and (bool((weight < 0).any()) or not bool((weight.sum(-1) > 0).all())):
            raise DataError(f"{name} must not be negative and must have a positive sum")
        if xp.is_host and not is_finite(weight.sum(-1)):
            weight = weight / xp.amax(weight, -1, keepdims=True)
        return weight / weight.sum(-1, keepdims=True)


def sample_array(name: str, values: Values, least_dimensions: int) -> Array:
    """Scores, checked: a tensor of single or double precision, or an array of double precision."""
    array: Array = values
    if not is_tensor(array):
        array = as_array(name, values)
        if array.ndim > least_dimensions:
            raise DataError(
                f"{name} must have {least_dimensions} dimension(s), got an array of shape "
                f"{array.shape}; "
                "vectors: vector=True, where the metric has it; many models at once: torch tensors"
            )
        array = np.require(array, np.float64, ["C"])
    elif not array.is_floating_point():
        if array.is_complex():
            raise DataError(
                f"{name} must contain real numbers, got {array.dtype}; compare the real part, or "
                "the modulus"
            )
        check_exact(name, array.cpu().numpy())
        array = array.double()
    else:
        array = at_least_single(array)
    if array.ndim < least_dimensions:
        raise DataError(
            f"{name} must have at least {least_dimensions} dimension(s), got shape "
            f"{tuple(array.shape)}"
        )
    # On an accelerator this check would make every training step wait for the device.
    if namespace_for(array).is_host and not is_finite(array):
        raise DataError(f"{name} contains NaN or infinite values; remove or replace them")
    return array


def at_least_single(x: Array) -> Array:
    """The tensor; in single precision where it had half: sums of many numbers need more than
    three digits.
    """
    if x.dtype.itemsize < 4:
        return x.float()
    return x


def is_finite(x: Array) -> bool:
    """True if all numbers are finite."""
    if x.ndim == 0:
        return isfinite(x.item())
    xp = namespace_for(x)
    # The sum of squares is the fastest to compute, but may be infinite for finite numbers.
    return isfinite(xp.sum_of_squares(x)) or all(map(isfinite, xp.extent(x)))


def between(
    metric: Metric,
    scores: Array,
    sides: Sequence[Sides],
    *,
    names: Sequence[object] = (),
    weights: Sequence[float] | None = None,
    reduce: Reduction = "sum",
    vector: bool = False,
    dependent: Callable[[Array, Sides], Array] | None = None,
) -> Array:
    """The metric for each comparison (..., comparisons), or their sum or maximum.

    ``scores`` are (..., n), or (..., n, d) with ``vector``; ``names`` identify comparisons in
    errors, and ``weights`` multiply their values; ``dependent`` is the dependence of scores on an
    attribute, if that is compared.

    >>> from metrifair.metrics.registry import METRICS
    >>> sides = Sides(slice(0, 4), (2,), (2,))
    >>> float(between(METRICS["energy"].plug_in, np.array([0.0, 1.0, 1.0, 3.0]), [sides]))
    1.5
    """
    distances: list[Array] = []
    for place, side in enumerate(sides):
        try:
            with no_warnings():
                if side.dependence is None or dependent is None:
                    distances.append(metric(_pair(scores, side, vector)))
                else:
                    distances.append(dependent(scores, side))
        except TooFewSamples as error:
            compared = names[place] if names else f"the sides of comparison {place}"
            error.add_note(f"comparing {compared}")
            raise
    if weights is not None:
        distances = [
            part if weight == 1 else weight * part
            for weight, part in zip(weights, distances, strict=True)
        ]
    if not distances:
        raise DataError("there is nothing to compare: the list of comparisons is empty")
    if reduce == "sum":
        return functools.reduce(operator.add, distances)
    xp = namespace_for(scores)
    values = xp.stack(distances, -1)
    if reduce == "all":
        return values
    return xp.amax(values, -1)


def _pair(scores: Array, sides: Sides, vector: bool) -> Pair:
    if min(sides.counts) == 0:
        raise TooFewSamples(
            f"a comparison has {sides.counts[0]} and {sides.counts[1]} samples on its sides; "
            "use a larger batch size, or batches that contain every group"
        )
    # The type is checked first: comparing a tensor with a slice takes longer than the whole
    # distance.
    all_rows = isinstance(sides.rows, slice) and sides.rows == slice(
        0, scores.shape[-2 if vector else -1]
    )
    values = scores
    if not all_rows:
        values = scores[..., sides.rows, :] if vector else scores[..., sides.rows]
    return Pair(values, sides.left, sides.right, sides.weights, sides.fraction)


_LARGE = 2**15  # at least so many scores do not fit into the processor's nearest cache
# so many float32 scores are sorted as numbers that contain their places
_PACKED = 2**10
_MOST_PACKED = 2**28
# changes a score of 0 only, whose place would be a denormal number, which may be flushed to 0
_ABOVE_ZERO = 2.0**-300


class Ties(NamedTuple):
    """The places of the first and the last score equal to each sorted score."""

    first: Array  # (..., n), or (tied,)
    last: Array
    tied: Array | None = None  # the scores that equal another one; None: ties of all scores


class Sorted(NamedTuple):
    """Scores in ascending order."""

    points: Array  # (..., n)
    order: Array  # (..., n): their positions before
    ties: Ties | None  # None if it is known that no two scores are equal


def ascending_samples(pair: Pair) -> Sorted:
    """The scores of both samples sorted; positions of scores without weights distinguish the
    samples only.
    """
    z = pair.values
    if is_tensor(z) or z.ndim > 1 or pair.weights is not None:
        return ascending(z)
    # Sorting without positions uses vector instructions on every processor, and a stable sort
    # merges sorted parts.
    z = np.concatenate([np.sort(sample) for sample in np.split(z, [sum(pair.left)])])
    places = np.argsort(z, kind="stable")
    points = z[places]
    runs = tied_runs(points)
    return Sorted(points, places, None if runs is None else Ties(*runs))


def ascending(z: Array) -> Sorted:
    """The scores sorted along the last axis; equal ones come in any order."""
    xp = namespace_for(z)
    array = xp.host_array(z)
    if array is None:
        points, order = xp.sort(z)
        return Sorted(points, order, _ties_on_device(points))
    values, places = sorted_places(array)
    runs = tied_runs(values)
    ties = None
    if runs is not None:
        ties = Ties(*(None if part is None else xp.from_host(part) for part in runs))
    return Sorted(xp.from_host(values), xp.from_host(places), ties)


def sorted_places(z: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
    """Scores in ascending order along the last axis, and their positions before."""
    # NumPy sorts with vector instructions, three to four times faster than torch on one thread.
    if z.dtype == np.float32 and _PACKED <= z.size <= _MOST_PACKED:
        points, places = _packed_sort(z)
        if is_finite(points[..., -1]):
            return points, places
    places = z.argsort(-1)
    return (z[places] if z.ndim == 1 else np.take_along_axis(z, places, -1)), places


def tied_runs(
    points: NDArray[Any],
) -> tuple[Integers, Integers, Integers | None] | None:
    """``Ties`` of ascending scores as arrays; None where no two are equal."""
    equal = points[..., 1:] == points[..., :-1]
    if not np.count_nonzero(equal):  # which takes fewer steps than any()
        return None
    if points.ndim == 1:
        return _few_ties(equal)
    place = np.arange(points.shape[-1])
    first = np.broadcast_to(place, points.shape).copy()
    last = np.broadcast_to(place, points.shape).copy()
    first[..., 1:][equal] = 0
    last[..., :-1][equal] = place[-1]
    np.maximum.accumulate(first, axis=-1, out=first)
    backwards = last[..., ::-1]
    np.minimum.accumulate(backwards, axis=-1, out=backwards)
    return first, last, None


def _few_ties(
    equal: Booleans,
) -> tuple[Integers, Integers, Integers]:
    """The ties of a single sample; they are usually few, so that most of a large sample is not
    copied.
    """
    edges = np.diff(np.concatenate([[False], equal, [False]]).view(np.int8))
    starts = np.flatnonzero(edges == 1)
    ends = np.flatnonzero(edges == -1)
    lengths = ends - starts + 1
    first = np.repeat(starts, lengths)
    last = np.repeat(ends, lengths)
    within = np.arange(len(first)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return first, last, first + within


def _ties_on_device(points: Tensor) -> Ties:
    """The same without testing for ties, which would wait for the device."""
    xp = namespace_for(points)
    first = xp.searchsorted(points, points)
    last = xp.searchsorted(points, points, right=True) - 1
    # A score that is not a number (its model has diverged) is found nowhere: keep its place within
    # bounds.
    return Ties(first.clamp_(0, points.shape[-1] - 1), last.clamp_(0, points.shape[-1] - 1))


def _packed_sort(z: NDArray[np.float32]) -> tuple[NDArray[np.float32], Integers]:
    """Sorted scores and their positions, from numbers that contain both: memory is read in order.

    The last 29 bits of a score in double precision are 0. A position of at most 28 bits there
    preserves the order, and rounding to single precision removes it. Positions of infinite scores
    are lost; their last point is NaN.
    """
    words = z.astype(np.float64)
    words += _ABOVE_ZERO
    places = words.view(np.int64)
    places |= np.arange(z.shape[-1])
    words.sort(axis=-1)
    points = words.astype(np.float32)
    places &= 2**29 - 1
    return points, places


def block_weights(pair: Pair, sizes: tuple[int, ...]) -> Array:
    """Weights of the samples, (..., blocks, n): row k is zero outside its block of ``sizes[k]``
    samples.

    Without weights each sample counts 1, so that sums of them are exact.
    """
    inside = (_small_block_rows if sum(sizes) < _LARGE else block_rows)(
        sizes, namespace_for(pair.values)
    )
    if pair.weights is None:
        return inside
    return inside * pair.weights[..., None, :]


def block_rows(sizes: tuple[int, ...], xp: Any) -> Array:
    """1 for the rows of each of consecutive blocks, 0 elsewhere: (blocks, n)."""
    block = np.repeat(np.arange(len(sizes)), sizes)
    return xp.to_device((block == np.arange(len(sizes))[:, None]).astype(np.float64))


_small_block_rows = lru_cache(maxsize=64)(block_rows)  # training meets the same sizes at every step


def block_weights_in_order(pair: Pair, sizes: tuple[int, ...], order: Array) -> Array:
    """The same for samples rearranged by ``order``, (..., n)."""
    if pair.weights is None and order.shape[-1] >= _LARGE:
        # Comparing positions reads memory in order; looking weights up would jump about in it.
        weights = namespace_for(order).empty((*order.shape[:-1], len(sizes), order.shape[-1]))
        for block, (start, end) in enumerate(pairwise(np.cumsum((0, *sizes)).tolist())):
            weights[..., block, :] = (order >= start) & (order < end)
        return weights
    return rows_at(block_weights(pair, sizes), order)


def rows_at(rows: Array, places: Array) -> Array:
    """``rows`` (..., blocks, n) read at ``places`` (..., m) in each block."""
    xp = namespace_for(rows)
    if places.ndim == 1:
        return xp.take(rows, places)
    shape = (
        *xp.broadcast_shapes(rows.shape[:-2], places.shape[:-1]),
        rows.shape[-2],
        places.shape[-1],
    )
    wide = xp.broadcast_to(rows, (*shape[:-1], rows.shape[-1]))
    return xp.gather(wide, xp.broadcast_to(places[..., None, :], shape))


def running_sums(rows: Array) -> Array:
    """Cumulative sums along the last axis."""
    xp = namespace_for(rows)
    if not xp.is_host and rows.ndim == 2 and rows.shape[-1] >= _LARGE:
        # A device scans a single row with all its processors, but each of several rows with one.
        return xp.stack([row.cumsum(0) for row in rows])
    return rows.cumsum(-1)


def closes_tie(points: Array) -> Array:
    """True at the last of equal scores in ascending ``points``, where distribution functions
    have their value.
    """
    return namespace_for(points).pad(
        points[..., 1:] != points[..., :-1],
        0,
        1,
        True,
    )


def weight_below_twice(weights: Array, cumulative: Array, ties: Ties | None) -> Array:
    """Twice the weight below each score in ascending order, equal ones counting half.

    It is the weight strictly below the score plus that below or at it: without ties, the cumulative
    weight before and after it. ``weights`` and ``cumulative`` are (..., blocks, n); ``cumulative``
    is overwritten.
    """
    if ties is not None and ties.tied is None:
        through = rows_at(cumulative, ties.last)
        through += rows_at(cumulative - weights, ties.first)
        return through
    if ties is not None:
        before = rows_at(cumulative, ties.first) - rows_at(weights, ties.first)
        at_ties = rows_at(cumulative, ties.last) + before
    cumulative *= 2
    cumulative -= weights
    if ties is None:
        return cumulative
    return namespace_for(weights).put(cumulative, ties.tied, at_ties)


def weight_below_less_above(weights: Array, ties: Ties | None) -> Array:
    """The weight below each score in ascending order less that above it, (..., blocks, n)."""
    cumulative = running_sums(weights)
    total = cumulative[..., -1:] + 0  # a copy: the cumulative weights are overwritten
    below = weight_below_twice(weights, cumulative, ties)
    below -= total
    return below
