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

import torch
from torch import Tensor

from metrifair.errors import TooFewSamples
from metrifair.metrics.kernel import Bandwidth, KernelFunction, KernelName, bandwidths, euclidean, kernel_function
from metrifair.metrics.order import ascending, block_weights, in_order, inside_blocks, pooled, weight_below_twice
from metrifair.metrics.scores import Scores, Values, result, two_samples

_BLOCK = 2**22  # pairs held in memory at once


class Pairing(NamedTuple):
    """Weights by stratum and the matrix of the quadratic form."""

    weights: Tensor  # (..., strata, n)
    matrix: Tensor  # (..., strata, strata)
    kept: Tensor  # (..., strata, 1): 1 + r, by which the diagonal is subtracted; 0 for the plug-in


def pairing(u: Scores, v: Scores, *, unbiased: bool) -> Pairing:
    """The quadratic form that compares the two samples."""
    count = u.values.shape[-1], v.values.shape[-1]
    strata = u.strata or count[:1], v.strata or count[1:]
    sizes = (*strata[0], *strata[1])
    if unbiased and min(sizes) < 2:
        raise TooFewSamples(
            "an unbiased distance needs 2 scores of each kind on each side, "
            f"got {_counts(strata[0])} and {_counts(strata[1])}; use a larger batch size, or unbiased=False"
        )
    if u.weights is None and v.weights is None:
        return _even_pairing(strata[0], strata[1], unbiased, u.values.device)
    return _weighted_pairing(block_weights(u, v, sizes), len(strata[0]), unbiased)


@lru_cache(maxsize=256)  # training meets the same counts at every step
def _even_pairing(left: tuple[int, ...], right: tuple[int, ...], unbiased: bool, device: torch.device) -> Pairing:
    return _weighted_pairing(inside_blocks((*left, *right), device), len(left), unbiased)


def _weighted_pairing(weights: Tensor, left_strata: int, unbiased: bool) -> Pairing:
    side = torch.ones(weights.shape[-2], dtype=weights.dtype, device=weights.device)
    side[left_strata:] = -1.0
    left = side > 0
    by_stratum = weights.sum(-1)
    total = torch.where(left, (by_stratum * left).sum(-1, keepdim=True), (by_stratum * ~left).sum(-1, keepdim=True))
    weights = weights / total.unsqueeze(-1)
    matrix = torch.outer(side, side)
    if not unbiased:
        return Pairing(weights, matrix, torch.zeros_like(side).unsqueeze(-1))
    q = weights.square().sum(-1) / (by_stratum / total).square()
    r = q / (1 - q)
    return Pairing(weights, matrix + torch.diag_embed(r), (1 + r).unsqueeze(-1))


def _counts(strata: tuple[int, ...]) -> str:
    return " + ".join(map(str, strata))


def energy_between(u: Scores, v: Scores, *, unbiased: bool = False) -> Tensor:
    """Energy distance from ranks: one sort, no matrix of pairs.

    It is linear in the scores with coefficients that depend on ranks only, and these are its gradient.
    """
    z = pooled(u, v)
    with torch.no_grad():
        pair = pairing(u, v, unbiased=unbiased)
        order = ascending(z)
        points = z.gather(-1, order)
        weights = in_order(pair.weights, order)
        cumulative = weights.cumsum(-1)
        slope = weight_below_twice(points, weights, cumulative) - cumulative[..., -1:]  # of |z - z_j|, summed
        coefficients = (weights * (pair.matrix @ slope)).sum(-2).mul_(-2.0).to(z.dtype)
        coefficients = torch.empty_like(coefficients).scatter_(-1, order, coefficients)
        # They sum to 0: any centre gives the same value, one among the scores the smallest rounding error.
        centre = points[..., points.shape[-1] // 2 :][..., :1]
    value: Tensor = torch.linalg.vecdot(coefficients, z - centre)
    return value if unbiased else value.clamp_min(0.0)


def mmd_between(
    u: Scores,
    v: Scores,
    *,
    kernel: KernelName | KernelFunction = "gaussian",
    bandwidth: Bandwidth = 1.0,
    unbiased: bool = False,
    vector: bool = False,
) -> Tensor:
    """Squared maximum mean discrepancy."""
    if kernel == "distance":
        value = vector_energy_between(u, v, unbiased=unbiased) if vector else energy_between(u, v, unbiased=unbiased)
        return value / 2
    both = torch.cat([u.values.detach(), v.values.detach()], -2 if vector else -1)
    if kernel == "laplace" and not vector:
        lengths = bandwidths(bandwidth, both, unbiased=unbiased)
        return torch.stack([_laplace_form(u, v, length, unbiased=unbiased) for length in lengths]).sum(0)
    function = kernel_function(kernel, bandwidth, both, unbiased=unbiased, vector=vector)
    return _pairwise_form(u, v, function, unbiased=unbiased, vector=vector)


def vector_energy_between(u: Scores, v: Scores, *, unbiased: bool = False) -> Tensor:
    """Energy distance of vector scores, by pairs in blocks."""
    return _pairwise_form(u, v, lambda a, b: -euclidean(a, b), unbiased=unbiased, vector=True)


def _laplace_form(u: Scores, v: Scores, length: float, *, unbiased: bool) -> Tensor:
    """Squared MMD of exp(-|z - z'| / length) by decayed running sums over the sorted scores."""
    z = pooled(u, v)
    with torch.no_grad():
        pair = pairing(u, v, unbiased=unbiased)
        order = ascending(z)
        points = z.gather(-1, order)
        weights = in_order(pair.weights, order)
        scaled = ((points - points[..., :1]).double() / length).unsqueeze(-2)
        logs = weights.log()
        below = (torch.logcumsumexp(logs + scaled, -1) - scaled).exp()  # each includes the sample itself
        above = (torch.logcumsumexp((logs - scaled).flip(-1), -1).flip(-1) + scaled).exp()
        potential = pair.matrix @ (below + above - weights)
        value = (weights * potential).sum((-2, -1)) - (pair.kept * weights.square()).sum((-2, -1))
        # Equal scores pull neither way: take out of the difference what ties put on one side.
        cumulative = weights.cumsum(-1)
        tied = 2 * cumulative - weights - weight_below_twice(points, weights, cumulative)
        slope = (above - below + tied) / length
        gradient = (2 * weights * (pair.matrix @ slope)).sum(-2).to(z.dtype)
        gradient = torch.empty_like(gradient).scatter_(-1, order, gradient)
    return _with_gradient(value.to(z.dtype), gradient, z)


def _pairwise_form(u: Scores, v: Scores, kernel: KernelFunction, *, unbiased: bool, vector: bool) -> Tensor:
    """The quadratic form for any kernel, in blocks of rows: n^2 time, memory for one block."""
    axis = -2 if vector else -1
    lead = torch.broadcast_shapes(u.values.shape[:axis], v.values.shape[:axis])
    z = torch.cat([side.values.expand(*lead, *side.values.shape[axis:]) for side in (u, v)], axis)
    flat = [Scores(s.values[..., 0] if vector else s.values, s.weights, s.strata) for s in (u, v)]
    pair = pairing(*flat, unbiased=unbiased)
    factors = pair.matrix @ pair.weights  # (..., strata, n): what a stratum's samples multiply the kernel by
    fixed = z.detach()
    rows = max(1, _BLOCK // max(1, z.numel()))
    values, gradients = [], []
    for start in range(0, z.shape[axis], rows):
        chosen = slice(start, start + rows)
        with torch.enable_grad():
            moving = (fixed[..., chosen, :] if vector else fixed[..., chosen]).clone().requires_grad_()
            pairs = kernel(moving.unsqueeze(axis), fixed.unsqueeze(axis - 1))  # (..., rows, n)
            share = pair.weights[..., chosen].transpose(-2, -1) @ factors  # (..., rows, n)
            part = (share.to(pairs.dtype) * pairs).sum((-2, -1))
            # The kernel is symmetric: the derivative by both arguments is twice that by the first.
            gradients.append(2 * torch.autograd.grad(part.sum(), moving)[0])
        values.append(part.detach())
    diagonal = ((pair.kept * pair.weights.square()).sum(-2).to(z.dtype) * kernel(z, z)).sum(-1)
    form = _with_gradient(torch.stack(values).sum(0), torch.cat(gradients, axis), z, vector=vector)
    return form - diagonal


def _with_gradient(value: Tensor, gradient: Tensor, z: Tensor, *, vector: bool = False) -> Tensor:
    """``value``, known as a constant, with ``gradient`` as its derivative by ``z``."""
    return value + (gradient * (z - z.detach())).sum((-2, -1) if vector else -1)


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
    left, right = two_samples(u, v, u_weights, v_weights, vector=vector)
    between = vector_energy_between if vector else energy_between
    return result(between(left, right, unbiased=unbiased), u, v)


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
    left, right = two_samples(u, v, u_weights, v_weights, vector=vector)
    value = mmd_between(left, right, kernel=kernel, bandwidth=bandwidth, unbiased=unbiased, vector=vector)
    return result(value, u, v)
