"""Squared distance covariance between scores and an attribute: plug-in, unbiased, or of the rows behind a sample.

With a_ij = |s_i - s_j| and b_ij = d(A_i, A_j), every estimate is one form that is linear in a. Rows carry features x_p
(a weight, or for each block of a stratified sample a 1 inside it), B_p(i) = sum_j x_pj b_ij, B_pq = sum_i x_pi B_q(i):

    value = sum_ij a_ij sum_pq x_pi x_qj [ H_pq b_ij + sum_s P_pqs B_s(i) + sum_rs Q_pqrs B_rs ].

It has degree 1 in the scores and is linear between ties: value = sum_k s_k g_k, g being its gradient, which ranks and
the attribute give without pairs (dominance). Where rows were drawn from blocks of N_k rows without replacement, n_k of
each with the share pi_k of everything, the mean over draws is the plug-in of all those rows if products of weights over
*distinct* rows are divided by the odds that all of them are drawn together; N = infinity is the population.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from metrifair.errors import TooFewSamples
from metrifair.metrics import dominance
from metrifair.metrics.dominance import AttributeValues, distance_sums, signed_sums

LEAST = 4  # rows of a kind that an unbiased estimate needs


class CovarianceForm(NamedTuple):
    """What an estimate counts, apart from scores and attribute."""

    features: Tensor  # (..., features, n)
    pairs: Tensor  # (..., features, features): H
    triples: Tensor  # (..., features, features, features): P
    quadruples: Tensor  # (..., features, features, features, features): Q


def plug_in_form(count: int, weights: Tensor | None, device: torch.device) -> CovarianceForm:
    """The form of the empirical distribution; weights (..., n) of any positive sum."""
    if weights is None:
        return _even_form((count,), (float(count),), (1.0,), device)
    share = weights.double() / weights.double().sum(-1, keepdim=True)
    one = torch.ones(1, dtype=torch.float64, device=device)
    return CovarianceForm(share.unsqueeze(-2), one.view(1, 1), -2 * one.view(1, 1, 1), one.view(1, 1, 1, 1))


def weighted_form(weights: Tensor) -> CovarianceForm:
    """The unbiased form of one sample with weights (..., n): means over pairs, triples and so on of distinct rows."""
    w = weights.double() / weights.double().mean(-1, keepdim=True)
    if w.device.type == "cpu" and bool(((w > 0).sum(-1) < LEAST).any()):
        raise TooFewSamples(f"an unbiased dependence needs {LEAST} rows of positive weight; use more rows")
    m1, m2, m3, m4 = (w.pow(power).sum(-1) for power in (1, 2, 3, 4))
    c2 = 1 / (m1**2 - m2)
    c3 = -2 / (m1**3 - 3 * m1 * m2 + 2 * m3)
    c4 = 1 / (m1**4 - 6 * m1**2 * m2 + 3 * m2**2 + 8 * m1 * m3 - 6 * m4)
    lead = w.shape[:-1]
    pairs, triples, quadruples = (w.new_zeros(*lead, *[2] * order) for order in (2, 3, 4))
    pairs[..., 0, 0], pairs[..., 0, 1], pairs[..., 1, 0], pairs[..., 1, 1] = c2, -c3 / 2, -c3 / 2, 2 * c4
    triples[..., 0, 0, 0], triples[..., 1, 0, 0] = c3, -4 * c4
    quadruples[..., 0, 0, 0, 0] = c4
    return CovarianceForm(torch.stack([w, w.square()], -2), pairs, triples, quadruples)


def drawn_form(
    counts: tuple[int, ...], totals: Tensor | None, shares: Tensor | None, device: torch.device
) -> CovarianceForm:
    """The unbiased form of rows in consecutive blocks of these counts, drawn without replacement.

    ``totals`` (..., blocks) are the rows that each block was drawn from, infinite where they are fresh (None: all are);
    ``shares`` (..., blocks) what each block makes up of everything (None: there is one).
    """
    if device.type == "cpu" and (totals is None or totals.ndim == 1) and (shares is None or shares.ndim == 1):
        every = (inf,) * len(counts) if totals is None else tuple(totals.tolist())
        own = (1.0,) if shares is None else tuple((shares / shares.sum()).tolist())
        return _even_form(counts, every, own, device)
    # Nothing may be brought to a device while a step is being recorded there: what is made is made on it.
    one = torch.ones((), dtype=torch.float64, device=device)
    some = (one * inf).expand(len(counts)) if totals is None else totals.double()
    part = one.view(1) if shares is None else shares.double() / shares.double().sum(-1, keepdim=True)
    return _form(counts, some, part)


@lru_cache(maxsize=256)  # training meets the same counts at every step
def _even_form(
    counts: tuple[int, ...], totals: tuple[float, ...], shares: tuple[float, ...], device: torch.device
) -> CovarianceForm:
    numbers = (torch.tensor(part, dtype=torch.float64, device=device) for part in (totals, shares))
    return _form(counts, *numbers)


@lru_cache(maxsize=256)
def block_sizes(counts: tuple[int, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    """How many rows each of consecutive blocks has, and which they are (blocks, n): kept, once they are on a device."""
    block = torch.repeat_interleave(torch.tensor(counts))
    rows = (block == torch.arange(len(counts)).unsqueeze(-1)).double()
    return torch.tensor(counts, dtype=torch.float64, device=device), rows.to(device)


def _form(counts: tuple[int, ...], totals: Tensor, shares: Tensor) -> CovarianceForm:
    count, features = block_sizes(counts, totals.device)
    few = (count < LEAST) & (count < totals)
    if totals.device.type == "cpu" and bool(few.any()):
        listed = " + ".join(map(str, counts))
        raise TooFewSamples(f"an unbiased dependence needs {LEAST} rows of each kind, got {listed}; use a larger batch")
    inverse = torch.where(totals.isinf(), 0.0, 1 / totals)
    # The factor by which one more row of a block enters a product that holds ``earlier`` of its rows already.
    steps = []
    for earlier in range(LEAST):
        left, there = count - earlier, 1 - earlier * inverse
        steps.append(torch.where(left > 0, shares * there / left.clamp_min(1.0), 0.0))
    factor = torch.stack(torch.broadcast_tensors(*steps), -1)  # (..., blocks, earlier)
    blocks = len(counts)
    same = torch.eye(blocks, dtype=torch.long, device=totals.device)

    def product(order: int) -> Tensor:
        """Of the weights of so many distinct rows, by their blocks: (..., blocks, ..., blocks)."""
        place = torch.meshgrid(*[torch.arange(blocks, device=totals.device)] * order, indexing="ij")
        total = factor.new_ones(())
        for axis in range(order):
            seen = sum((same[place[axis], place[other]] for other in range(axis)), torch.zeros_like(place[0]))
            total = total * factor[..., place[axis], seen]
        return total

    own = torch.where(totals.isinf(), 0.0, shares * inverse)  # the weight of one row
    two, three, four = product(2), product(3), product(4)
    first, second = own.unsqueeze(-1), own.unsqueeze(-2)
    triples = three * (4 * first.unsqueeze(-1) - 2)
    alike = torch.diagonal(triples, dim1=-2, dim2=-1)  # (..., p, q): of the triple p; q, q
    repeated = torch.diagonal(torch.diagonal(four, dim1=-4, dim2=-2), dim1=-3, dim2=-2)  # (..., p, q): of p, q, p, q
    pairs = two * (1 - first - second + 2 * first * second) - (alike + alike.transpose(-2, -1)) / 2 + 2 * repeated
    shared = torch.diagonal(four, dim1=-4, dim2=-2).movedim(-1, -3)  # (..., p, q, s): of p, q, p, s
    return CovarianceForm(features, pairs, triples - 4 * shared, four)


def covariance_slopes(z: Tensor, attribute: AttributeValues, form: CovarianceForm) -> Tensor:
    """The derivative of the estimate by each score of (..., n)."""
    x = form.features
    if attribute.count <= dominance.PAIRED:
        return _slopes_by_pairs(z, attribute.distances(slice(None)), form)
    sums = distance_sums(attribute, x)  # (..., features, n): B_p(i)
    totals = x @ sums.transpose(-2, -1)
    constant = torch.einsum("...pqrs,...rs->...pq", form.quadruples, totals)
    of_row = torch.einsum("...pqs,...sn->...pqn", form.triples, sums)
    others = (x.unsqueeze(-2) * of_row).sum(-3)  # (..., p, n): sum_q x_qj P_qp(j)
    far, signs = signed_sums(z, attribute, x, torch.cat(torch.broadcast_tensors(x, others), -2), sums)
    plain, moved = signs.split(x.shape[-2], -2)
    inside = form.pairs @ far + ((of_row * plain.unsqueeze(-3)).sum(-2) + moved) / 2 + constant @ plain
    slopes: Tensor = 2 * (x * inside).sum(-2)
    return slopes


def _slopes_by_pairs(z: Tensor, far: Tensor, form: CovarianceForm) -> Tensor:
    """The same for few rows, from all distances (..., n, n) of the attribute."""
    x = form.features
    sums = (far @ x.transpose(-2, -1)).transpose(-2, -1)
    constant = torch.einsum("...pqrs,...rs->...pq", form.quadruples, x @ sums.transpose(-2, -1))
    of_row = torch.einsum("...pn,...pqs,...sn->...qn", x, form.triples, sums)
    one_sided = of_row.transpose(-2, -1) @ x
    matrix = x.transpose(-2, -1) @ form.pairs @ x * far + (one_sided + one_sided.transpose(-2, -1)) / 2
    matrix = (matrix + x.transpose(-2, -1) @ constant @ x).to(z.dtype)
    return 2 * (torch.sign(z.unsqueeze(-1) - z.unsqueeze(-2)) * matrix).sum(-1)


def covariance_of(z: Tensor, attribute: AttributeValues, form: CovarianceForm) -> Tensor:
    """The estimate for scores (..., n), differentiable by them."""
    with torch.no_grad():
        slopes = covariance_slopes(z.detach(), attribute, form).to(z.dtype)
    # They sum to 0: any center gives the same value, one among the scores a small rounding error.
    center = z.detach().mean(-1, keepdim=True)
    value: Tensor = torch.linalg.vecdot(slopes, z - center)
    return value


def spread_of(attribute: AttributeValues, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The attribute's own plug-in distance variance, and E d^2 / E d, both over the leading axes.

    >>> tuple(map(float, spread_of(AttributeValues(torch.tensor([3.0, 13.0])))))      # two values, 10 apart
    (25.0, 10.0)
    """
    share = (
        torch.full((attribute.count,), 1 / attribute.count, dtype=torch.float64, device=attribute.values.device)
        if weights is None
        else weights.double()
    )
    share = (share / share.sum(-1, keepdim=True)).to(attribute.values.device)
    sums = distance_sums(attribute, share.unsqueeze(-2)).squeeze(-2)
    mean = (share * sums).sum(-1)
    if attribute.kind == "names":
        squared = mean
    else:
        values = attribute.values.double() if attribute.kind == "vectors" else attribute.values.double().unsqueeze(-1)
        own = share.unsqueeze(-1)
        squared = 2 * (own * (values - (own * values).sum(-2, keepdim=True)).square()).sum((-2, -1))
    variance = squared - 2 * (share * sums.square()).sum(-1) + mean.square()
    return variance.clamp_min(0.0), torch.where(mean > 0, squared / mean, 0.0)
