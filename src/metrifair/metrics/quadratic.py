"""Energy distance and squared MMD: differences of mean kernel values, plug-in or unbiased.

Both are one quadratic form. Samples fall into strata (a side is one stratum, or several that were drawn with
fixed counts); W holds the weights by stratum, each side summing to 1, and with h_k(z) = sum_j W_kj K(z, z_j)

    value = sum_i sum_kl W_ki B_kl h_l(z_i),      B_kl = s_k s_l + r_k [k = l],      s = +1 left, -1 right.

The plug-in has r = 0. The unbiased value leaves out i = j within each stratum and rescales the rest: with
q_k = sum W_k^2 / (sum W_k)^2, r_k = q_k / (1 - q_k), and sum_k (1 + r_k) sum_i W_ki^2 K(z_i, z_i) is subtracted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.errors import TooFewSamples
from metrifair.metrics.cdf import Merged
from metrifair.metrics.counting import energy_coefficients
from metrifair.metrics.kernel import Bandwidth, KernelFunction, KernelName, bandwidths, euclidean, kernel_function
from metrifair.metrics.order import ascending, block_weights, block_weights_in_order, running_sums, weight_below_twice
from metrifair.metrics.scores import Floats, Pair, Utility, Values, paired, result

_BLOCK = 2**22  # pairs held in memory at once


class Form(NamedTuple):
    """The quadratic form that compares two samples, apart from their scores."""

    scale: Tensor  # (..., strata, 1): 1 / sum of the weights of the stratum's side
    matrix: Tensor  # (..., strata, strata): B
    kept: Tensor  # (..., strata, 1): 1 + r, by which the diagonal is subtracted; 0 for the plug-in


def form_of(pair: Pair, *, unbiased: bool) -> Form:
    """The form for samples of these sizes, strata and weights."""
    if unbiased and min(pair.sizes) < 2:
        left, right = (" + ".join(map(str, strata)) for strata in (pair.left, pair.right))
        raise TooFewSamples(
            "an unbiased distance needs 2 scores of each kind on each side, "
            f"got {left} and {right}; use a larger batch size, or unbiased=False"
        )
    if pair.weights is None:
        return _even_form(pair.left, pair.right, unbiased, pair.values.device)
    weights = block_weights(pair, pair.sizes)
    if unbiased and weights.device.type == "cpu" and bool(((weights > 0).sum(-1) < 2).any()):
        raise TooFewSamples("an unbiased distance needs 2 scores of positive weight of each kind on each side")
    return _form(weights.sum(-1), weights.square().sum(-1), len(pair.left), unbiased=unbiased)


@lru_cache(maxsize=256)  # training meets the same counts at every step
def _even_form(left: tuple[int, ...], right: tuple[int, ...], unbiased: bool, device: torch.device) -> Form:
    count = torch.tensor(left + right, dtype=torch.float64, device=device)
    return _form(count, count, len(left), unbiased=unbiased)


def _form(total: Tensor, squares: Tensor, left_strata: int, *, unbiased: bool) -> Form:
    """From the sums of the weights and of their squares in each stratum, (..., strata)."""
    left = torch.arange(total.shape[-1], device=total.device) < left_strata
    of_side = torch.where(left, (total * left).sum(-1, keepdim=True), (total * ~left).sum(-1, keepdim=True))
    sign = left.double() * 2 - 1
    matrix, scale = torch.outer(sign, sign), 1 / of_side.unsqueeze(-1)
    if not unbiased:
        return Form(scale, matrix, torch.zeros_like(scale))
    q = squares / total.square()
    r = q / (1 - q)
    return Form(scale, matrix + torch.diag_embed(r), (1 + r).unsqueeze(-1))


def energy_between(pair: Pair, *, unbiased: bool = False) -> Tensor:
    """Energy distance from ranks: one sort, no matrix of pairs.

    It is linear in the scores with coefficients that depend on ranks only, and these are its gradient.
    """
    z = pair.values
    with torch.no_grad():
        form = form_of(pair, unbiased=unbiased)
        array = _plain_array(pair)
        if array is None:
            coefficients, centre = _coefficients(pair, form)
        else:
            counted = energy_coefficients(array, *pair.left, unbiased=unbiased)
            coefficients, centre = (torch.from_numpy(np.asarray(part)) for part in counted)
    # They sum to 0: any centre gives the same value, one among the scores the smallest rounding error.
    value: Tensor = torch.linalg.vecdot(coefficients, z - centre.unsqueeze(-1))
    return value if unbiased else value.clamp_min(0.0)


def _plain_array(pair: Pair) -> NDArray[Any] | None:
    """The scores, where counting is all there is to do; None on an accelerator or inside a torch.func transform."""
    if pair.weights is not None or len(pair.sizes) != 2:
        return None
    try:
        return pair.values.detach().numpy()
    except (RuntimeError, TypeError):
        return None


def _coefficients(pair: Pair, form: Form) -> tuple[Tensor, Tensor]:
    """The derivative by each score, and a score from the middle."""
    points, order, ties = ascending(pair.values)
    weights = block_weights_in_order(pair, pair.sizes, order).mul_(form.scale)
    cumulative = running_sums(weights)
    # Derivatives of sum_j W_kj |z - z_j| at the sorted scores.
    total = cumulative[..., -1:].clone()
    slope = weight_below_twice(weights, cumulative, ties).sub_(total)
    coefficients = _combined(weights, form.matrix, slope).mul_(-2.0)
    coefficients = torch.empty_like(pair.values).scatter_(-1, order, coefficients.to(pair.values.dtype))
    return coefficients, points.select(-1, points.shape[-1] // 2)


def _combined(weights: Tensor, matrix: Tensor, slope: Tensor) -> Tensor:
    """sum_kl W_k B_kl slope_l: (..., n) from weights and slopes (..., strata, n)."""
    if slope.ndim == 2:  # row by row: less memory at a time, which counts for millions of scores
        total = torch.zeros_like(slope[0])
        for row, own in zip(matrix, weights, strict=True):
            total.addcmul_(row @ slope, own)
        return total
    return (matrix @ slope).mul_(weights).sum(-2)


def mmd_between(
    pair: Pair,
    *,
    kernel: KernelName | KernelFunction = "gaussian",
    bandwidth: Bandwidth = 1.0,
    unbiased: bool = False,
    vector: bool = False,
) -> Tensor:
    """Squared maximum mean discrepancy."""
    if kernel == "distance":
        between = vector_energy_between if vector else energy_between
        return between(pair, unbiased=unbiased) / 2
    if kernel == "laplace" and not vector:
        lengths = bandwidths(bandwidth, pair.values, unbiased=unbiased)
        return torch.stack([_laplace_between(pair, length, unbiased=unbiased) for length in lengths]).sum(0)
    function = kernel_function(kernel, bandwidth, pair.values, unbiased=unbiased, vector=vector)
    return _pairwise_between(pair, function, unbiased=unbiased, vector=vector)


def vector_energy_between(pair: Pair, *, unbiased: bool = False) -> Tensor:
    """Energy distance of vector scores, by pairs in blocks."""
    return _pairwise_between(pair, lambda a, b: -euclidean(a, b), unbiased=unbiased, vector=True)


def _laplace_between(pair: Pair, length: float, *, unbiased: bool) -> Tensor:
    """Squared MMD of exp(-|z - z'| / length) by decayed running sums over the sorted scores."""
    z = pair.values
    with torch.no_grad():
        form = form_of(pair, unbiased=unbiased)
        points, order, ties = ascending(z)
        weights = block_weights_in_order(pair, pair.sizes, order) * form.scale
        # Across 50 lengths nothing is felt (e^-50 = 2e-22); uncapped, the logarithms of weights drown in far positions.
        gaps = (points[..., 1:] - points[..., :-1]).double().div_(length).clamp_max_(50.0)
        scaled = torch.nn.functional.pad(gaps.cumsum(-1), (1, 0)).unsqueeze(-2)
        logs = weights.log()
        below = (torch.logcumsumexp(logs + scaled, -1) - scaled).exp()  # each includes the sample itself
        above = (torch.logcumsumexp((logs - scaled).flip(-1), -1).flip(-1) + scaled).exp()
        potential = form.matrix @ (below + above - weights)
        value = (weights * potential).sum((-2, -1)) - (form.kept * weights.square()).sum((-2, -1))
        # Equal scores pull neither way: take out of the difference what ties put on one side.
        cumulative = running_sums(weights)
        one_sided = 2 * cumulative - weights - weight_below_twice(weights, cumulative, ties)
        slope = (above - below + one_sided) / length
        gradient = (2 * weights * (form.matrix @ slope)).sum(-2).to(z.dtype)
        gradient = torch.empty_like(gradient).scatter_(-1, order, gradient)
    return _with_gradient(value.to(z.dtype), gradient, z)


def _pairwise_between(pair: Pair, kernel: KernelFunction, *, unbiased: bool, vector: bool) -> Tensor:
    """The quadratic form for any kernel, in blocks of rows: n^2 time, memory for one block."""
    z, axis = pair.values, -2 if vector else -1
    form = form_of(pair, unbiased=unbiased)
    weights = block_weights(pair, pair.sizes) * form.scale
    factors = form.matrix @ weights  # (..., strata, n): what a stratum's samples multiply the kernel by
    fixed = z.detach()
    rows = max(1, _BLOCK // z.numel())
    values, gradients = [], []
    for start in range(0, z.shape[axis], rows):
        chosen = slice(start, start + rows)
        with torch.enable_grad():
            moving = (fixed[..., chosen, :] if vector else fixed[..., chosen]).clone().requires_grad_()
            pairs = kernel(moving.unsqueeze(axis), fixed.unsqueeze(axis - 1))  # (..., rows, n)
            share = weights[..., chosen].transpose(-2, -1) @ factors  # (..., rows, n)
            part = (share.to(pairs.dtype) * pairs).sum((-2, -1))
            # The kernel is symmetric: the derivative by both arguments is twice that by the first.
            slope = torch.autograd.grad(part.sum(), moving)[0] if part.requires_grad else torch.zeros_like(moving)
            gradients.append(2 * slope)
        values.append(part.detach())
    diagonal = ((form.kept * weights.square()).sum(-2).to(z.dtype) * kernel(z, z)).sum(-1)
    value = _with_gradient(torch.stack(values).sum(0), torch.cat(gradients, axis), z, vector=vector)
    return value - diagonal


def _with_gradient(value: Tensor, gradient: Tensor, z: Tensor, *, vector: bool = False) -> Tensor:
    """``value``, known as a constant, with ``gradient`` as its derivative by ``z``."""
    return value + (gradient * (z - z.detach())).sum((-2, -1) if vector else -1)


def mean_kernel(points: Tensor, signed: Tensor) -> Tensor:
    """Sum of s_i s_j K(z_i, z_j) over points (k,) with masses (..., k), in blocks; K is the default of mmd_squared."""
    kernel = kernel_function("gaussian", 1.0, points)
    width = max(1, _BLOCK // len(points))
    blocks = (slice(start, start + width) for start in range(0, len(points), width))
    parts = [((signed @ kernel(points.unsqueeze(-1), points[own])) * signed[..., own]).sum(-1) for own in blocks]
    return torch.stack(parts).sum(0)


def kernel_spread(points: Floats, shares: Floats) -> float:
    """1 less the mean kernel of two independent scores of one sample, of which ``shares`` lie at ``points``."""
    return 1.0 - float(mean_kernel(torch.from_numpy(points), torch.from_numpy(shares)))


def energy_spread(points: Floats, shares: Floats) -> float:
    """Mean distance between two independent scores of one sample."""
    below = np.cumsum(shares)[:-1]
    return float(2 * (below * (1 - below) * np.diff(points)).sum())


def kernel_utility(
    both: Merged, kernel: KernelName | KernelFunction = "gaussian", bandwidth: Bandwidth = 1.0
) -> Utility:
    """Difference of the mean kernels of two samples, over its norm."""
    function = kernel_function(kernel, bandwidth, both.points)
    signed = both.difference.diff(prepend=both.difference.new_zeros(1))
    rows = max(1, _BLOCK // len(both.points))

    def difference(score: Floats) -> Floats:
        blocks: tuple[Tensor, ...] = torch.as_tensor(score).split(rows)
        return np.concatenate([(function(block.unsqueeze(-1), both.points) @ signed).numpy() for block in blocks])

    norm = np.sqrt(max(float(difference(both.points.numpy()) @ signed.numpy()), 0.0))
    return lambda score: difference(score) / norm if norm > 0 else np.zeros_like(score)


def energy_distance(
    u: Values,
    v: Values,
    *,
    unbiased: bool = False,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
    vector: bool = False,
) -> Any:
    """Energy distance, 2 E|U - V| - E|U - U'| - E|V - V'|: twice the squared L^2 distance of the CDFs.

    With ``unbiased`` the means within a sample leave out i = j; the value can then be negative, and its mean
    over random samples is the distance of the populations. (Scale: scipy returns the square root of this,
    dcor this, geomloss half of it.) One sort, also for the gradient. ``vector=True`` takes points of R^d
    along the last axis, with Euclidean distances, by pairs; sliced_energy_distance is the fast way.

    >>> energy_distance([0.0, 1.0], [1.0, 3.0])                   # 3 - 1/2 - 1
    1.5
    >>> energy_distance([0.0, 1.0], [1.0, 3.0], unbiased=True)    # 3 - 1 - 2
    0.0
    """
    between = vector_energy_between if vector else energy_between
    return result(between(paired(u, v, u_weights, v_weights, vector=vector), unbiased=unbiased), u, v)


def mmd_squared(
    u: Values,
    v: Values,
    *,
    kernel: KernelName | KernelFunction = "gaussian",
    bandwidth: Bandwidth = 1.0,
    unbiased: bool = False,
    u_weights: Values | None = None,
    v_weights: Values | None = None,
    vector: bool = False,
) -> Any:
    """Squared maximum mean discrepancy, E k(U, U') + E k(V, V') - 2 E k(U, V).

    Kernels: ``gaussian`` exp(-(z - z')^2 / (2 l^2)), ``laplace`` exp(-|z - z'| / l) (by one sort),
    ``inverse_multiquadric`` (1 + (z - z')^2 / l^2)^(-1/2), ``distance`` (half the energy distance), or any
    symmetric function of two broadcasting tensors. Several bandwidths l add up; ``"median"`` is for plug-in
    values only. With ``unbiased`` the means within a sample leave out i = j.

    >>> mmd_squared([0.0], [1.0], kernel="laplace")      # 2 - 2 / e
    1.2642411176571153
    >>> mmd_squared([0.0, 1.0], [1.0, 3.0], kernel="distance")
    0.75
    """
    pair = paired(u, v, u_weights, v_weights, vector=vector)
    return result(mmd_between(pair, kernel=kernel, bandwidth=bandwidth, unbiased=unbiased, vector=vector), u, v)
