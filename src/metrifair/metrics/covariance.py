"""Squared distance covariance between scores and an attribute: plug-in, unbiased, or of the rows
behind a sample.

With a_ij = |s_i - s_j| and b_ij = d(A_i, A_j), every estimate is one form that is linear in a. Rows
carry features x_p (a weight, or for each block of a stratified sample a 1 inside it), B_p(i) =
sum_j x_pj b_ij, B_pq = sum_i x_pi B_q(i):

    value = sum_ij a_ij sum_pq x_pi x_qj [ H_pq b_ij + sum_s P_pqs B_s(i) + sum_rs Q_pqrs B_rs ].

It has degree 1 in the scores and is linear between ties: value = sum_k s_k g_k, g being its
gradient, which ranks and the attribute give without pairs (dominance). Where rows were drawn from
blocks of N_k rows without replacement, n_k of each with the share pi_k of everything, the mean over
draws is the plug-in of all those rows if products of weights over *distinct* rows are divided by
the odds that all of them are drawn together; N = infinity is the population.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

from metrifair.errors import TooFewSamples
from metrifair.metrics import dominance
from metrifair.metrics.dominance import AttributeValues, distance_sums, signed_sums
from metrifair.metrics.namespaces import Array, namespace_for
from metrifair.metrics.pair import block_rows

LEAST = 4  # rows of a kind that an unbiased estimate needs


class CovarianceForm(NamedTuple):
    """The coefficients of an estimate, apart from scores and attribute."""

    features: Array  # (..., features, n)
    pairs: Array  # (..., features, features): H
    triples: Array  # (..., features, features, features): P
    quadruples: Array  # (..., features, features, features, features): Q


def plug_in_form(count: int, weights: Array | None, xp: Any) -> CovarianceForm:
    """The form of the empirical distribution; weights (..., n) of any positive sum."""
    if weights is None:
        return _even_form(
            (count,),
            (float(count),),
            (1.0,),
            xp,
        )
    share = xp.double(weights) / xp.double(weights).sum(-1, keepdims=True)
    unit = xp.ones((1,))
    return CovarianceForm(
        share[..., None, :],
        unit.reshape(1, 1),
        -2 * unit.reshape(1, 1, 1),
        unit.reshape(
            1,
            1,
            1,
            1,
        ),
    )


def weighted_form(weights: Array) -> CovarianceForm:
    """The unbiased form of one sample with weights (..., n): means over pairs, triples and so
    on of distinct rows.
    """
    xp = namespace_for(weights)
    w = xp.double(weights) / xp.double(weights).mean(-1, keepdims=True)
    if xp.is_host and bool(((w > 0).sum(-1) < LEAST).any()):
        raise TooFewSamples(
            f"an unbiased dependence needs {LEAST} rows of positive weight; use more rows"
        )
    m1, m2, m3, m4 = ((w**power).sum(-1) for power in (1, 2, 3, 4))
    c2 = 1 / (m1**2 - m2)
    c3 = -2 / (m1**3 - 3 * m1 * m2 + 2 * m3)
    c4 = 1 / (m1**4 - 6 * m1**2 * m2 + 3 * m2**2 + 8 * m1 * m3 - 6 * m4)
    lead = w.shape[:-1]
    pairs, triples, quadruples = (xp.zeros((*lead, *[2] * order)) for order in (2, 3, 4))
    pairs[..., 0, 0] = c2
    pairs[..., 0, 1] = -c3 / 2
    pairs[..., 1, 0] = -c3 / 2
    pairs[..., 1, 1] = 2 * c4
    triples[..., 0, 0, 0] = c3
    triples[..., 1, 0, 0] = -4 * c4
    quadruples[..., 0, 0, 0, 0] = c4
    return CovarianceForm(
        xp.stack([w, w**2], -2),
        pairs,
        triples,
        quadruples,
    )


def drawn_form(
    counts: tuple[int, ...],
    totals: Array | None,
    shares: Array | None,
    xp: Any,
) -> CovarianceForm:
    """The unbiased form of rows in consecutive blocks of these counts, drawn without replacement.

    ``totals`` (..., blocks) are the rows that each block was drawn from, infinite where they are
    fresh (None: all are); ``shares`` (..., blocks) the share of each block (None: there is one
    block).
    """
    if xp.is_host and (totals is None or totals.ndim == 1) and (shares is None or shares.ndim == 1):
        every = (inf,) * len(counts) if totals is None else tuple(totals.tolist())
        part_shares = (1.0,) if shares is None else tuple((shares / shares.sum()).tolist())
        return _even_form(
            counts,
            every,
            part_shares,
            xp,
        )
    # No data may be copied to a device while a step is recorded there: new tensors are created on
    # it.
    some = xp.full((len(counts),), inf) if totals is None else xp.double(totals)
    if shares is None:
        part = xp.ones((1,))
    else:
        part = xp.double(shares) / xp.double(shares).sum(-1, keepdims=True)
    return _form(counts, some, part)


@lru_cache(maxsize=256)  # training meets the same counts at every step
def _even_form(
    counts: tuple[int, ...],
    totals: tuple[float, ...],
    shares: tuple[float, ...],
    xp: Any,
) -> CovarianceForm:
    return _form(counts, xp.array(totals), xp.array(shares))


@lru_cache(maxsize=256)
def block_sizes(counts: tuple[int, ...], xp: Any) -> tuple[Array, Array]:
    """The sizes and the rows (blocks, n) of consecutive blocks; cached, because they may be on
    a device.
    """
    return xp.array(counts), block_rows(counts, xp)


def _form(counts: tuple[int, ...], totals: Array, shares: Array) -> CovarianceForm:
    xp = namespace_for(totals)
    count, features = block_sizes(counts, xp)
    if xp.is_host and bool(((count < LEAST) & (count < totals)).any()):
        sizes = " + ".join(map(str, counts))
        raise TooFewSamples(
            f"an unbiased dependence needs {LEAST} rows of each kind, got {sizes}; use a larger "
            "batch"
        )
    inverse = xp.where(xp.isinf(totals), 0.0, 1 / totals)
    # The factor by which one more row of a block enters a product that already contains ``earlier``
    # of its rows.
    steps = []
    for earlier in range(LEAST):
        remaining_rows = count - earlier
        fraction = 1 - earlier * inverse
        steps.append(
            xp.where(remaining_rows > 0, shares * fraction / xp.at_least(remaining_rows, 1.0), 0.0)
        )
    factor = xp.stack(steps, -1)  # (..., blocks, earlier)
    blocks = len(counts)
    same = xp.eye(blocks, dtype=int)

    def product(order: int) -> Array:
        """Products of the weights of ``order`` distinct rows, by their blocks: (..., blocks,
        ..., blocks).
        """
        place = xp.meshgrid(*[xp.arange(blocks)] * order, indexing="ij")
        total = xp.ones(())
        for axis in range(order):
            earlier = sum(
                (same[place[axis], place[before]] for before in range(axis)),
                xp.zeros_like(place[0]),
            )
            total = total * factor[..., place[axis], earlier]
        return total

    row_weight = xp.where(xp.isinf(totals), 0.0, shares * inverse)  # the weight of one row
    two = product(2)
    three = product(3)
    four = product(4)
    first = row_weight[..., None]
    second = row_weight[..., None, :]
    triples = three * (4 * first[..., None] - 2)
    twice = triples.diagonal(0, -2, -1)  # (..., p, q): of the triple p; q, q
    repeated = four.diagonal(0, -4, -2).diagonal(0, -3, -2)  # (..., p, q): of p, q, p, q
    pairs = (
        two * (1 - first - second + 2 * first * second)
        - (twice + twice.swapaxes(-2, -1)) / 2
        + 2 * repeated
    )
    shared = xp.moveaxis(four.diagonal(0, -4, -2), -1, -3)  # (..., p, q, s): of p, q, p, s
    return CovarianceForm(
        features,
        pairs,
        triples - 4 * shared,
        four,
    )


def covariance_slopes(z: Array, attribute: AttributeValues, form: CovarianceForm) -> Array:
    """The derivative of the estimate by each score of (..., n)."""
    x = form.features
    xp = namespace_for(z)
    if attribute.count <= dominance.PAIRED:
        return _slopes_by_pairs(z, attribute.distances(slice(None)), form)
    sums = distance_sums(attribute, x)  # (..., features, n): B_p(i)
    totals = x @ sums.swapaxes(-2, -1)
    constant = xp.einsum("...pqrs,...rs->...pq", form.quadruples, totals)
    of_row = xp.einsum("...pqs,...sn->...pqn", form.triples, sums)
    of_others = (x[..., None, :] * of_row).sum(-3)  # (..., p, n): sum_q x_qj P_qp(j)
    shape = xp.broadcast_shapes(x.shape, of_others.shape)
    stacked = xp.concat([xp.broadcast_to(part, shape) for part in (x, of_others)], -2)
    far, signs = signed_sums(
        z,
        attribute,
        x,
        stacked,
        sums,
    )
    plain = signs[..., : x.shape[-2], :]
    moved = signs[..., x.shape[-2] :, :]
    inside = (
        form.pairs @ far
        + ((of_row * plain[..., None, :, :]).sum(-2) + moved) / 2
        + constant @ plain
    )
    return 2 * (x * inside).sum(-2)


def _slopes_by_pairs(z: Array, far: Array, form: CovarianceForm) -> Array:
    """The same for few rows, from all distances (..., n, n) of the attribute."""
    x = form.features
    xp = namespace_for(z)
    sums = (far @ x.swapaxes(-2, -1)).swapaxes(-2, -1)
    constant = xp.einsum("...pqrs,...rs->...pq", form.quadruples, x @ sums.swapaxes(-2, -1))
    of_row = xp.einsum(
        "...pn,...pqs,...sn->...qn",
        x,
        form.triples,
        sums,
    )
    one_sided = of_row.swapaxes(-2, -1) @ x
    matrix = (
        x.swapaxes(-2, -1) @ form.pairs @ x * far + (one_sided + one_sided.swapaxes(-2, -1)) / 2
    )
    matrix = xp.astype(matrix + x.swapaxes(-2, -1) @ constant @ x, z.dtype)
    return 2 * (xp.sign(z[..., :, None] - z[..., None, :]) * matrix).sum(-1)


def covariance_value(z: Array, attribute: AttributeValues, form: CovarianceForm) -> Array:
    """The estimate for scores (..., n), differentiable by them."""
    xp = namespace_for(z)
    with xp.no_grad():
        slopes = xp.astype(covariance_slopes(xp.detach(z), attribute, form), z.dtype)
    # They sum to 0: any center gives the same value, one among the scores a small rounding error.
    return xp.vecdot(slopes, z - xp.detach(z).mean(-1, keepdims=True))


def distance_variance(
    attribute: AttributeValues, weights: Array | None = None
) -> tuple[Array, Array]:
    """The attribute's own plug-in distance variance, and E d^2 / E d, both over the leading axes.

    >>> import numpy as np
    >>> # two values, 10 apart
    >>> tuple(map(float, distance_variance(AttributeValues(np.array([3.0, 13.0])))))
    (25.0, 10.0)
    """
    xp = namespace_for(attribute.values)
    if weights is None:
        share = xp.full((attribute.count,), 1 / attribute.count)
    else:
        share = xp.double(xp.to_device(weights))
    share = share / share.sum(-1, keepdims=True)
    sums = distance_sums(attribute, share[..., None, :])[..., 0, :]
    mean = (share * sums).sum(-1)
    if attribute.kind == "names":
        squared = mean
    else:
        values = xp.double(
            attribute.values if attribute.kind == "vectors" else attribute.values[..., None]
        )
        column = share[..., None]
        squared = 2 * (column * (values - (column * values).sum(-2, keepdims=True)) ** 2).sum(
            (-2, -1)
        )
    variance = squared - 2 * (share * sums**2).sum(-1) + mean**2
    return xp.at_least(variance, 0.0), xp.where(mean > 0, squared / mean, 0.0)
