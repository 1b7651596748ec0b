"""Energy distance and squared MMD: differences of mean kernel values, plug-in or unbiased.

Both are one quadratic form. Samples fall into strata (a side is one stratum, or several that were
drawn with fixed counts); W contains the weights by stratum, each side summing to 1, and with h_k(z)
= sum_j W_kj K(z, z_j)

    value = sum_i sum_kl W_ki B_kl h_l(z_i),      B_kl = s_k s_l + r_k [k = l],      s = +1 left, -1
    right.

The plug-in has r = 0. The unbiased value leaves out i = j within each stratum and rescales the
rest: with q_k = sum W_k^2 / (sum W_k)^2, r_k = q_k / (1 - q_k), and sum_k (1 + r_k) sum_i W_ki^2
K(z_i, z_i) is subtracted. Where a fraction f_k of a stratum's rows was drawn without replacement,
the mean over such draws is the plug-in of all those rows with r_k = (1 - f_k) q_k / (1 - q_k) and 1
+ r_k - f_k in place of 1 + r_k: f = 0 is the unbiased value of fresh samples, f = 1 the plug-in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from metrifair.errors import TooFewSamples
from metrifair.metrics.kernels import (
    Bandwidth,
    KernelFunction,
    KernelName,
    bandwidths,
    euclidean,
    kernel_function,
)
from metrifair.metrics.line import Merged
from metrifair.metrics.namespaces import Array, is_tensor, namespace_for
from metrifair.metrics.numpy_namespace import gather, scattered
from metrifair.metrics.pair import (
    Pair,
    WitnessFunction,
    ascending,
    block_weights,
    block_weights_in_order,
    running_sums,
    sorted_places,
    tied_runs,
    weight_below_less_above,
    weight_below_twice,
)
from metrifair.support.arrays import AnyFloats, Floats

_BLOCK = 2**22  # pairs in memory at once
_LEAST_MASS = 1e-13  # of a share of all rows
_SMALL = 2**14  # up to this number of scores, counts are cached


class Form(NamedTuple):
    """The quadratic form that compares two samples, apart from their scores."""

    scale: Array  # (..., strata, 1): 1 / sum of the weights of the stratum's side
    matrix: Array  # (..., strata, strata): B
    # (..., strata, 1): 1 + r - f, the factor of the subtracted diagonal; 0 for the plug-in
    diagonal: Array


def make_form(pair: Pair, *, unbiased: bool) -> Form:
    """The form for samples of these sizes, strata, weights and fractions."""
    if unbiased:
        _check_enough(pair)
    if pair.weights is None and (pair.fraction is None or not unbiased):
        return _even_form(
            pair.left,
            pair.right,
            unbiased,
            namespace_for(pair.values),
        )
    if pair.weights is None:
        total = squares = _counts(pair.left + pair.right, namespace_for(pair.values))
    else:
        weights = block_weights(pair, pair.sizes)
        total = weights.sum(-1)
        squares = (weights**2).sum(-1)
    return _form(
        total,
        squares,
        len(pair.left),
        unbiased=unbiased,
        fraction=pair.fraction,
    )


def _check_enough(pair: Pair) -> None:
    """Raise TooFewSamples if a stratum has one score, drawn from more rows."""
    few = [stratum for stratum, size in enumerate(pair.sizes) if size < 2]
    if few and (pair.fraction is None or bool((pair.fraction[..., few] < 1).any())):
        left, right = (" + ".join(map(str, strata)) for strata in (pair.left, pair.right))
        raise TooFewSamples(
            "an unbiased distance needs 2 scores of each kind on each side, "
            f"got {left} and {right}; use a larger batch size, or the biased distance "
            "(estimate='batch' of a penalty, "
            "unbiased=False of a function)"
        )
    if pair.weights is None or not namespace_for(pair.weights).is_host:
        return
    alone = (block_weights(pair, pair.sizes) > 0).sum(-1) < 2
    if pair.fraction is not None:
        alone = alone & (pair.fraction < 1)
    if bool(alone.any()):
        raise TooFewSamples(
            "an unbiased distance needs 2 scores of positive weight of each kind on each side"
        )


@lru_cache(maxsize=256)  # training meets the same counts at every step
def _even_form(
    left: tuple[int, ...],
    right: tuple[int, ...],
    unbiased: bool,
    xp: Any,
) -> Form:
    count = _counts(left + right, xp)
    return _form(
        count,
        count,
        len(left),
        unbiased=unbiased,
    )


@lru_cache(maxsize=256)  # within a step that CUDA records, nothing may be copied to the device
def _counts(sizes: tuple[int, ...], xp: Any) -> Array:
    return xp.array(sizes)


def _form(
    total: Array,
    squares: Array,
    left_strata: int,
    *,
    unbiased: bool,
    fraction: Array | None = None,
) -> Form:
    """From the sums of the weights and of their squares in each stratum, and the fractions,
    (..., strata).
    """
    xp = namespace_for(total)
    stratum = xp.arange(total.shape[-1])
    left = stratum < left_strata
    of_side = xp.where(
        left, (total * left).sum(-1, keepdims=True), (total * ~left).sum(-1, keepdims=True)
    )
    sign = xp.double(left) * 2 - 1
    matrix = sign[:, None] * sign
    scale = 1 / of_side[..., None]
    if not unbiased:
        return Form(scale, matrix, xp.zeros_like(scale))
    q = squares / total**2
    r = q / (1 - q)
    if fraction is not None:
        # one score that is all there is has q = 1
        r = xp.where(fraction < 1, (1 - fraction) * r, 0.0)
    diagonal = xp.where(stratum[:, None] == stratum, r[..., None], 0.0)
    return Form(
        scale, matrix + diagonal, (1 + r if fraction is None else 1 + r - fraction)[..., None]
    )


def energy_between(pair: Pair, *, unbiased: bool = False) -> Array:
    """Energy distance from ranks: one sort, no matrix of pairs.

    It is linear in the scores with coefficients that depend on ranks only, and these are its
    gradient.
    """
    z = pair.values
    xp = namespace_for(pair.values)
    array = xp.host_array(z)
    if array is not None and pair.weights is None and len(pair.sizes) == 2:  # counts are sufficient
        fractions: Sequence[Any] = (1.0, 1.0)
        if unbiased:
            _check_enough(pair)
            fractions = _two_fractions(pair.fraction)
        coefficients, center = energy_coefficients(array, *pair.left, fractions=fractions)
    elif (on_host := _on_host(pair, array)) is not None:
        coefficients, center = _coefficients(on_host, make_form(on_host, unbiased=unbiased))
    else:
        with xp.no_grad():
            coefficients, center = _coefficients(pair, make_form(pair, unbiased=unbiased))
    if is_tensor(z) and not is_tensor(coefficients):
        coefficients = xp.from_host(coefficients)
        center = xp.from_host(center) if z.ndim > 1 else float(center)
    # They sum to 0: any center gives the same value, one among the scores the smallest rounding
    # error.
    if not isinstance(center, float) or center != 0:
        z = z - (center if z.ndim == 1 else center[..., None])
    value = xp.vecdot(coefficients, z)
    if unbiased:
        return value
    return xp.at_least(value, 0.0)


def _on_host(pair: Pair, values: AnyFloats | None) -> Pair | None:
    """The scores (n,) and their weights as arrays, for which NumPy takes half as long; None if
    one is no array.
    """
    if values is None or values.ndim > 1:
        return None
    xp = namespace_for(pair.values)
    given = {
        name: part for name in ("weights", "fraction") if (part := getattr(pair, name)) is not None
    }
    # there is no bfloat16 array
    arrays = {name: xp.host_array(xp.double(part)) for name, part in given.items()}
    if any(part is None for part in arrays.values()):
        return None
    return pair._replace(values=values, **arrays)


def _two_fractions(fraction: Array | None) -> Sequence[Any]:
    """The fractions of two blocks: numbers, or arrays that broadcast against the scores."""
    if fraction is None:
        return 0.0, 0.0
    array = namespace_for(fraction).host_array(fraction)
    return array.tolist() if array.ndim == 1 else (array[..., :1], array[..., 1:])


def _coefficients(pair: Pair, form: Form) -> tuple[Array, Array]:
    """The derivative by each score, and a score from the middle."""
    xp = namespace_for(pair.values)
    points, order, ties = ascending(pair.values)
    weights = block_weights_in_order(pair, pair.sizes, order)
    weights *= form.scale
    # derivatives of sum_j W_kj |z - z_j| at the sorted scores
    slope = weight_below_less_above(weights, ties)
    coefficients = _combined(weights, form.matrix, slope)
    coefficients *= -2.0
    coefficients = xp.scattered(xp.astype(coefficients, pair.values.dtype), order)
    return coefficients, points[..., points.shape[-1] // 2]


def _combined(weights: Array, matrix: Array, slope: Array) -> Array:
    """sum_kl W_k B_kl slope_l: (..., n) from weights and slopes (..., strata, n)."""
    xp = namespace_for(slope)
    if slope.ndim == 2:  # row by row: less memory at a time, which counts for millions of scores
        total = xp.zeros_like(slope[0])
        for row, weight in zip(matrix, weights, strict=True):
            xp.add_product(total, row @ slope, weight)
        return total
    product = matrix @ slope
    product *= weights
    return product.sum(-2)


def energy_coefficients(
    z: AnyFloats, left: int, *, fractions: Sequence[Any]
) -> tuple[AnyFloats, Array]:
    """The coefficient of each score of (..., n), of which the first ``left`` are one sample, and a
    center to subtract.

    For samples without weights or strata, on the CPU. With A = 2 (left scores below) - n and B = 2
    (right scores below)
    - m, where equal scores count half, itself among them, the derivative of the distance by a left
      score is 2 (B / nm - A / n(n-1)), by a right one 2 (A / nm - B / m(m-1)); the plug-in has n^2
      for n(n-1), and ``fractions``, the shares of the left and of the right rows in the batch, lead
      from the former at 0 to the latter at 1. Counts are integers, and NumPy's steps cost a
      fraction of torch's on small batches.

    >>> coefficients, _ = energy_coefficients(np.array([0.0, 1.0, 1.0, 3.0]), 2, fractions=(1, 1))
    >>> coefficients                       # -1 x 1 + 1 x 1 + 0.5 x 3 = 1.5
    array([-0.5, -1. ,  1. ,  0.5])
    """
    right = z.shape[-1] - left
    points, places = sorted_places(z)
    # 1 or 0: sums are faster than choices
    is_left = (places < left).astype(np.float64)
    runs = tied_runs(points)
    through = np.add.accumulate(is_left, -1)  # left scores below each, itself among them
    if runs is None or z.ndim == 1:
        lines = _small_lines if z.ndim == 1 and len(z) <= _SMALL else _lines
        left_start, left_step, right_start, right_step = lines(left, right, *fractions)
        values = left_step * through
        of_right = right_step * through
        values += left_start
        values *= is_left
        of_right += right_start
        of_right *= 1 - is_left
        values += of_right
    if runs is not None:
        first, last, tied = runs
        a = gather(through, first) + gather(through, last) - gather(is_left, first) - float(left)
        slopes = energy_slopes(
            a, first + last + 1.0 - z.shape[-1] - a, left, right, fractions=fractions
        )
        if z.ndim == 1:
            values[tied] = np.where(is_left[tied], *slopes)
        else:
            values = np.where(is_left, *slopes)
    coefficients = scattered(values.astype(z.dtype, copy=False), places)
    middle = z.shape[-1] // 2
    if z.ndim > 1:
        return coefficients, points[..., middle]
    center = points.item(middle)
    spread = points.item(-1) - points.item(0)
    # 0 is equally exact then, and takes no step
    return coefficients, center if abs(center) > spread else 0.0


def _lines(left: int, right: int, *fractions: Any) -> tuple[Array, Array, Array, Array]:
    """Coefficients in ascending order without ties: start and step of left ones, of right ones.

    At place i, A + B is 2 i + 1 - n - m: the coefficients are linear in the number of left scores
    below.
    """
    b = np.arange(1.0, 2 * (left + right), 2) - right
    left_start, _ = energy_slopes(
        -1.0 - left,
        b + 1,
        left,
        right,
        fractions=fractions,
    )
    _, right_start = energy_slopes(
        -float(left),
        b,
        left,
        right,
        fractions=fractions,
    )
    left_step, right_step = energy_slopes(
        2.0,
        -2.0,
        left,
        right,
        fractions=fractions,
    )
    return left_start, left_step, right_start, right_step


_small_lines = lru_cache(maxsize=64)(_lines)  # training meets the same counts at every step


def energy_slopes(
    a: Array,
    b: Array,
    left: int,
    right: int,
    *,
    fractions: Sequence[Any],
) -> tuple[Array, Array]:
    """The derivative by a left score and by a right one, from the counts A and B below each."""
    across = 2 / (left * right)
    # One score alone has A = 0: any denominator will do.
    within = [
        2 * (count - fraction) / (count * count * max(1, count - 1))
        for count, fraction in zip((left, right), fractions, strict=True)
    ]
    return across * b - within[0] * a, across * a - within[1] * b


def mmd_between(
    pair: Pair,
    *,
    kernel: KernelName | KernelFunction = "gaussian",
    bandwidth: Bandwidth = 1.0,
    unbiased: bool = False,
    vector: bool = False,
) -> Array:
    """Squared maximum mean discrepancy."""
    if kernel == "distance":
        between = vector_energy_between if vector else energy_between
        return between(pair, unbiased=unbiased) / 2
    if kernel == "laplace" and not vector:
        lengths = bandwidths(bandwidth, pair.values, unbiased=unbiased)
        parts = [_laplace_between(pair, length, unbiased=unbiased) for length in lengths]
        return namespace_for(pair.values).stack(parts).sum(0)
    function = kernel_function(
        kernel,
        bandwidth,
        pair.values,
        unbiased=unbiased,
        vector=vector,
    )
    return _pairwise_between(
        pair,
        function,
        unbiased=unbiased,
        vector=vector,
    )


def vector_energy_between(pair: Pair, *, unbiased: bool = False) -> Array:
    """Energy distance of vector scores, by pairs in blocks."""
    return _pairwise_between(
        pair,
        lambda a, b: -euclidean(a, b),
        unbiased=unbiased,
        vector=True,
    )


def sliced_energy_between(pair: Pair, directions: Array, *, unbiased: bool = False) -> Array:
    """Mean energy distance of the projections on ``directions`` (slices, d), on the scale of the
    one in R^d.

    For directions uniform on the sphere the mean projected distance is c_d = G(d/2) / (sqrt(pi)
    G((d+1)/2)) times the distance in R^d: dividing by c_d makes any number of slices, drawn
    independently of the scores, an unbiased estimate of it.
    """
    on_the_line, shrinkage = projected_pair(pair, directions)
    return energy_between(on_the_line, unbiased=unbiased).mean(-1) / shrinkage


def projected_pair(pair: Pair, directions: Array) -> tuple[Pair, float]:
    """``projected`` of both samples: pairs on the line, (..., slices, n)."""
    projections, shrinkage = projected(pair.values, directions)
    weights, fraction = (
        part if part is None or part.ndim == 1 else part[..., None, :]
        for part in (pair.weights, pair.fraction)
    )
    return pair._replace(
        values=projections,
        weights=weights,
        fraction=fraction,
    ), shrinkage


def projected(values: Array, directions: Array) -> tuple[Array, float]:
    """Vectors (..., n, d) along directions, (..., slices, n), and the mean factor by which that
    shortens distances.
    """
    d = values.shape[-1]
    shrinkage = math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
    return directions @ values.swapaxes(-2, -1), shrinkage


def _laplace_between(pair: Pair, length: float, *, unbiased: bool) -> Array:
    """Squared MMD of exp(-|z - z'| / length) by decayed running sums over the sorted scores."""
    z = pair.values
    xp = namespace_for(pair.values)
    with xp.no_grad():
        form = make_form(pair, unbiased=unbiased)
        points, order, ties = ascending(z)
        weights = block_weights_in_order(pair, pair.sizes, order) * form.scale
        # Across 50 lengths the kernel vanishes (e^-50 = 2e-22); uncapped, far positions would hide
        # the logs of weights.
        gaps = xp.at_most(xp.double(points[..., 1:] - points[..., :-1]) / length, 50.0)
        scaled = xp.pad(gaps.cumsum(-1), 1, 0)[..., None, :]
        logs = xp.log(weights)
        below = xp.exp(xp.logcumsumexp(logs + scaled) - scaled)  # each includes the sample itself
        above = xp.exp(xp.flip(xp.logcumsumexp(xp.flip(logs - scaled))) + scaled)
        potential = form.matrix @ (below + above - weights)
        value = (weights * potential).sum((-2, -1)) - (form.diagonal * weights**2).sum((-2, -1))
        if not is_tensor(z):
            return value
        # Equal scores have no gradient between them: subtract the contribution of ties to one side.
        cumulative = running_sums(weights)
        one_sided = 2 * cumulative - weights - weight_below_twice(weights, cumulative, ties)
        slope = (above - below + one_sided) / length
        gradient = xp.scattered(
            xp.astype((2 * weights * (form.matrix @ slope)).sum(-2), z.dtype), order
        )
    return with_gradient(xp.astype(value, z.dtype), gradient, z)


def _pairwise_between(
    pair: Pair,
    kernel: KernelFunction,
    *,
    unbiased: bool,
    vector: bool,
) -> Array:
    """The quadratic form for any kernel, in blocks of rows: n^2 time, memory for one block."""
    z = pair.values
    axis = -2 if vector else -1
    xp = namespace_for(pair.values)
    form = make_form(pair, unbiased=unbiased)
    weights = block_weights(pair, pair.sizes) * form.scale
    # (..., strata, n): by which a stratum's samples multiply the kernel
    factors = form.matrix @ weights
    fixed = xp.detach(z)
    moves = xp.is_differentiated(z)
    rows = max(1, _BLOCK // math.prod(z.shape))
    values = []
    gradients = []
    for start in range(0, z.shape[axis], rows):
        block = slice(start, start + rows)

        def part(some: Array, block: slice = block) -> Array:
            # of shape: ..., rows, n
            pairs = kernel(xp.expand_dims(some, axis), xp.expand_dims(fixed, axis - 1))
            share = weights[..., block].swapaxes(-2, -1) @ factors  # (..., rows, n)
            return (xp.astype(share, pairs.dtype) * pairs).sum((-2, -1))

        some = fixed[..., block, :] if vector else fixed[..., block]
        if moves:
            # The kernel is symmetric: the derivative by both arguments is twice that by the first.
            value, slope = xp.value_and_slope(part, some)
            gradients.append(2 * slope)
        else:
            with xp.no_grad():
                value = part(some)
        values.append(value)
    diagonal = (xp.astype((form.diagonal * weights**2).sum(-2), z.dtype) * kernel(z, z)).sum(-1)
    value = xp.stack(values).sum(0)
    if moves:
        value = with_gradient(
            value,
            xp.concat(gradients, axis),
            z,
            vector=vector,
        )
    return value - diagonal


def with_gradient(
    value: Array,
    gradient: Array,
    z: Array,
    *,
    vector: bool = False,
) -> Array:
    """``value``, known as a constant, with ``gradient`` as its derivative by ``z``."""
    if is_tensor(z):
        return value + (gradient * (z - z.detach())).sum((-2, -1) if vector else -1)
    return value


def mean_kernel(points: Array, signed: Array) -> Array:
    """Sum of s_i s_j K(z_i, z_j) over points (k,) with masses (..., k), in blocks; K is the
    default of mmd_squared.
    """
    kernel = kernel_function("gaussian", 1.0, points)
    width = max(1, _BLOCK // len(points))
    blocks = (slice(start, start + width) for start in range(0, len(points), width))
    parts = [
        ((signed @ kernel(points[:, None], points[block])) * signed[..., block]).sum(-1)
        for block in blocks
    ]
    return namespace_for(points).stack(parts).sum(0)


def kernel_spread(points: Floats, shares: Floats) -> float:
    """1 less the mean kernel of two independent scores of one sample with these ``shares`` at
    ``points``.
    """
    return 1.0 - float(mean_kernel(points, shares))


def energy_spread(points: Floats, shares: Floats) -> float:
    """Mean distance between two independent scores of one sample."""
    below = np.cumsum(shares)[:-1]
    return float(2 * (below * (1 - below) * np.diff(points)).sum())


def kernel_utility(
    pooled: Merged, kernel: KernelName | KernelFunction = "gaussian", bandwidth: Bandwidth = 1.0
) -> WitnessFunction:
    """Difference of the mean kernels of two samples, over its norm."""
    points, place = np.unique(pooled.points, return_inverse=True)
    masses = np.bincount(place, np.diff(pooled.difference, prepend=0.0))
    # the norm of equal samples must be 0
    signed = np.where(np.abs(masses) < _LEAST_MASS, 0.0, masses)
    return mean_kernel_difference(points, signed, kernel_function(kernel, bandwidth, pooled.points))


def mean_kernel_difference(
    points: Floats,
    signed: Floats,
    kernel: KernelFunction,
    *,
    vector: bool = False,
) -> WitnessFunction:
    """The same for points (k,), or vectors (k, d), with the left sample's masses less the right
    one's (k,).
    """
    rows = max(1, _BLOCK // len(points))
    axis = -2 if vector else -1

    def difference(score: Floats) -> Floats:
        blocks = (score[start : start + rows] for start in range(0, len(score), rows))
        against = np.expand_dims(points, axis - 1)
        parts = [kernel(np.expand_dims(block, axis), against) @ signed for block in blocks]
        return np.concatenate([np.zeros(0), *parts])

    norm = np.sqrt(max(float(difference(points) @ signed), 0.0))
    return lambda score: difference(score) / norm if norm > 0 else np.zeros(len(score))
