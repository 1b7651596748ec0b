"""Sums over pairs of rows that need no pairs: signs of score differences times distances of an attribute.

For scores z and an attribute with distances d, with sgn = 0 for equal scores:

    sum_j x_j sgn(z_k - z_j) d(a_k, a_j)        for each row k, and columns x of weights.

Numbers: with the rows in the order of their scores, sum over earlier j of x_j |a_k - a_j| is twice the part where
a_j < a_k (a *dominance sum*: earlier and smaller), less a_k X + Y with running sums X of x and Y of x a.
Dominance sums take log2(n) passes over the bits of the attribute's rank. Nothing here records gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrifair.metrics.kernels import euclidean
from metrifair.metrics.pair import ascending, rows_at, running_sums, weight_below_less_above
from metrifair.support.arrays import Floats

Kind: TypeAlias = Literal["numbers", "names", "vectors"]

PAIRED = 512  # rows up to which all pairs are as fast
_BLOCK = 2**22  # pairs held in memory at once


@dataclass(frozen=True, eq=False)
class AttributeValues:
    """A protected attribute, row by row, and what distance its values have.

    Numbers: the absolute difference. Names: 1 where they differ. Vectors: the Euclidean distance.
    """

    values: Tensor  # (..., n) numbers, or codes of names; (..., n, d) vectors
    kind: Kind = "numbers"
    levels: int | None = None  # how many names there are, where that is known

    @property
    def lead(self) -> torch.Size:
        """The leading (model) axes."""
        return self.values.shape[: -2 if self.kind == "vectors" else -1]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.values.shape[-2 if self.kind == "vectors" else -1]

    @property
    def by_pairs(self) -> bool:
        """True where all pairs are looked at."""
        return self.kind == "vectors" or self.count <= PAIRED

    def distances(self, rows: slice) -> Tensor:
        """From these rows to all, (..., rows, n)."""
        if self.kind == "vectors":
            return euclidean(self.values[..., rows, None, :], self.values[..., None, :, :])
        own, others = self.values[..., rows, None], self.values[..., None, :]
        return (own - others).abs().double() if self.kind == "numbers" else (own != others).double()


def distance_sums(attribute: AttributeValues, columns: Tensor) -> Tensor:
    """For each row k and column x of (..., columns, n), the sum over j of x_j d(a_k, a_j).

    >>> distance_sums(AttributeValues(torch.tensor([0.0, 1.0, 3.0])), torch.ones(1, 3, dtype=torch.float64))
    tensor([[4., 3., 5.]], dtype=torch.float64)
    """
    if attribute.by_pairs:
        parts = [attribute.distances(rows) @ columns.transpose(-2, -1) for rows in _row_blocks(attribute)]
        return torch.cat(parts, -2).transpose(-2, -1)
    if attribute.kind == "names":
        return columns.sum(-1, keepdim=True) - _by_name(attribute, columns)
    a = attribute.values.double()
    a = a - a.mean(-1, keepdim=True)
    order = a.argsort(-1)
    ranked, weights = rows_at(a.unsqueeze(-2), order), rows_at(columns, order)
    below, moments = running_sums(weights), running_sums(weights * ranked)
    sums = ranked * (2 * below - below[..., -1:]) - (2 * moments - moments[..., -1:])
    return torch.empty_like(sums).scatter_(-1, order.unsqueeze(-2).expand_as(sums), sums)


def _by_name(attribute: AttributeValues, columns: Tensor) -> Tensor:
    """For each row the sum of the columns over the rows of its own name."""
    code = attribute.values.long().unsqueeze(-2)
    shape = torch.broadcast_shapes(columns.shape, code.shape)
    code, columns = code.expand(shape), columns.expand(shape)
    levels = int(code.max()) + 1 if attribute.levels is None else attribute.levels
    total = columns.new_zeros(*shape[:-1], levels).scatter_add_(-1, code, columns)
    return total.gather(-1, code)


def _row_blocks(attribute: AttributeValues, models: int = 0) -> list[slice]:
    rows = max(1, _BLOCK // max(1, attribute.values.numel(), models))
    return [slice(start, min(start + rows, attribute.count)) for start in range(0, attribute.count, rows)]


class SignedSums(NamedTuple):
    """Sums over j of sgn(z_k - z_j) for each row k: of x_j d(a_k, a_j), and of y_j alone."""

    of_distances: Tensor  # (..., columns, n)
    plain: Tensor  # (..., other columns, n)


def signed_sums(z: Tensor, attribute: AttributeValues, columns: Tensor, others: Tensor, sums: Tensor) -> SignedSums:
    """Those of scores (..., n): x in ``columns`` (..., columns, n), y in ``others``; ``sums`` are ``distance_sums``.

    >>> one = torch.ones(1, 3, dtype=torch.float64)
    >>> a = AttributeValues(torch.tensor([0.0, 1.0, 3.0]))
    >>> signed_sums(torch.tensor([0.2, 0.9, 0.5]), a, one, one, distance_sums(a, one))
    SignedSums(of_distances=tensor([[-4.,  3.,  1.]], dtype=torch.float64), plain=tensor([[-2.,  2.,  0.]], \
dtype=torch.float64))
    """
    if attribute.by_pairs:
        return _by_pairs(z, attribute, columns, others)
    lead = torch.broadcast_shapes(z.shape[:-1], attribute.lead, columns.shape[:-2])
    z, a = z.expand(*lead, -1), attribute.values.expand(*lead, -1)
    columns, others = (part.expand(*lead, -1, -1) for part in (columns, others))
    if attribute.kind == "names":
        ranked = _ranked_sums(z, torch.cat([columns, others], -2))
        of_columns, of_others = ranked.split([columns.shape[-2], others.shape[-2]], -2)
        return SignedSums(of_columns - _within_names(z, a, columns), of_others)
    return _of_numbers(z, a.double(), columns, others, sums.expand(*lead, -1, -1))


def _by_pairs(z: Tensor, attribute: AttributeValues, columns: Tensor, others: Tensor) -> SignedSums:
    found: list[tuple[Tensor, Tensor]] = []
    for rows in _row_blocks(attribute, z.numel()):
        sign = torch.sign(z[..., rows, None] - z[..., None, :]).double()
        far = sign * attribute.distances(rows)
        found.append((far @ columns.transpose(-2, -1), sign @ others.transpose(-2, -1)))
    return SignedSums(*(torch.cat(parts, -2).transpose(-2, -1) for parts in zip(*found, strict=True)))


def _ranked_sums(z: Tensor, columns: Tensor) -> Tensor:
    """The sum over j of sgn(z_k - z_j) y_j, from one sort."""
    _, order, ties = ascending(z)
    found = weight_below_less_above(rows_at(columns, order), ties)
    return torch.empty_like(found).scatter_(-1, order.unsqueeze(-2).expand_as(found), found)


def _within_names(z: Tensor, code: Tensor, columns: Tensor) -> Tensor:
    """The same over j of the row's own name: sums over all rows, with names one after the other and each in order."""
    by_score = z.argsort(dim=-1, stable=True)
    order = by_score.gather(-1, code.gather(-1, by_score).argsort(dim=-1, stable=True))
    points, names = z.gather(-1, order), code.gather(-1, order)
    changes = names[..., 1:] != names[..., :-1]
    name, run = _ends(changes), _ends(changes | (points[..., 1:] != points[..., :-1]))
    weights = rows_at(columns, order)
    through = torch.nn.functional.pad(running_sums(weights), (1, 0))
    below, upto = rows_at(through, run[0]), rows_at(through, run[1] + 1)
    first, last = rows_at(through, name[0]), rows_at(through, name[1] + 1)
    found = (below - first) - (last - upto)
    return torch.empty_like(found).scatter_(-1, order.unsqueeze(-2).expand_as(found), found)


def _ends(changes: Tensor) -> tuple[Tensor, Tensor]:
    """The first and last place of the run of each place, from where neighbors differ, (..., n - 1)."""
    count = changes.shape[-1] + 1
    place = torch.arange(count, device=changes.device).expand(*changes.shape[:-1], count)
    opens = torch.nn.functional.pad(changes, (1, 0), value=True)
    closes = torch.nn.functional.pad(changes, (0, 1), value=True)
    first = torch.where(opens, place, 0).cummax(-1).values
    last = torch.where(closes, place, count - 1).flip(-1).cummin(-1).values.flip(-1)
    return first, last


def _of_numbers(z: Tensor, a: Tensor, columns: Tensor, others: Tensor, sums: Tensor) -> SignedSums:
    a = a - a.mean(-1, keepdim=True)  # sums of small numbers are more exact
    by_rank = a.argsort(-1)  # the row of each rank
    points, rank, ties = ascending(z.gather(-1, by_rank))
    if ties is not None:  # equal scores in the order of the attribute
        rank = z.gather(-1, by_rank).argsort(dim=-1, stable=True)
    order = by_rank.gather(-1, rank)
    own, weights, plain = (rows_at(part, order) for part in (a.unsqueeze(-2), columns, others))
    smaller = rows_at(_dominance(rank, own, weights), rank)
    through, moments = running_sums(weights), running_sums(weights * own)
    before, moment_before = through - weights, moments - weights * own
    found = 4 * smaller - 2 * (own * before - moment_before) - rows_at(sums, order)
    if ties is not None:  # those before count as much too little as they counted too much, and those after
        first, last = _ends(points[..., 1:] != points[..., :-1])
        found -= own * (before - rows_at(before, first)) - (moment_before - rows_at(moment_before, first))
        found += rows_at(moments, last) - moments - own * (rows_at(through, last) - through)
    signs = weight_below_less_above(plain, ties)
    return SignedSums(
        *(torch.empty_like(part).scatter_(-1, order.unsqueeze(-2).expand_as(part), part) for part in (found, signs))
    )


def _dominance(rank: Tensor, a: Tensor, weights: Tensor) -> Tensor:
    """For each rank k the sum of x_j (a_k - a_j) over rows j before it with a smaller rank: (..., columns, n).

    ``rank`` (..., n) is that of the rows as they stand, ``a`` (..., 1, n) their numbers, ``weights`` (..., columns, n).
    Rows are kept in blocks of equal leading bits of the rank, each in the order given. A row that has the next bit set
    gains from those before it in its block that have not; then each block is split by that bit, which leaves either
    half in order. All models and columns are blocks from the start: one long line of rows.
    """
    *lead, columns, count = weights.shape
    size = 1 << max(1, (count - 1).bit_length())
    shape = *lead, columns, size

    def padded(part: Tensor, value: Tensor | float) -> Tensor:
        whole = part.new_empty(shape)
        whole[..., :count], whole[..., count:] = part, value
        return whole.reshape(-1)

    # Rows that fill up have the highest ranks, and so give nothing to any other.
    ranks = padded(rank.unsqueeze(-2), torch.arange(count, size, device=rank.device))
    numbers, amounts = padded(a, 0.0), padded(weights, 0.0)
    try:
        by_rank, values, own = (part.numpy() for part in (ranks, numbers, amounts))
    except (RuntimeError, TypeError):  # on an accelerator, or inside a torch.func transform
        gained = _passes_on_device(ranks, numbers, amounts, size // 2)
    else:
        even = bool((weights == 1).all())
        gained = torch.from_numpy(_passes(by_rank, values, None if even else own, half=size // 2))
    return gained.view(shape)[..., :count]


def _passes(rank: NDArray[np.int64], a: Floats, weights: Floats | None, *, half: int) -> Floats:
    """``weights`` None: every row counts 1, and counting is all there is to do."""
    parts: list[NDArray[Any]] = [rank.astype(np.int32), a, np.zeros_like(a), *([] if weights is None else [weights])]
    place = np.arange(len(rank) // 2)
    while half:
        above = (parts[0] & half) != 0
        high, low = np.flatnonzero(above), np.flatnonzero(~above)
        before, start = high - place, place & -half  # among the rows that have the bit clear, over all blocks
        lower, higher = [part[low] for part in parts], [part[high] for part in parts]
        running = np.zeros(len(low) + 1)
        np.cumsum(lower[1] if weights is None else lower[3] * lower[1], out=running[1:])
        moments = running[before] - running[start]
        if weights is None:
            higher[2] += higher[1] * (before - start) - moments
        else:
            np.cumsum(lower[3], out=running[1:])
            higher[2] += higher[1] * (running[before] - running[start]) - moments
        for number, (one, other) in enumerate(zip(lower, higher, strict=True)):
            split = np.empty((len(low) // half, 2, half), one.dtype)
            split[:, 0], split[:, 1] = one.reshape(-1, half), other.reshape(-1, half)
            parts[number] = split.reshape(-1)
        half //= 2
    return parts[2]


def _passes_on_device(rank: Tensor, a: Tensor, weights: Tensor, half: int) -> Tensor:
    """The same in steps of fixed shapes, which a device records and replays."""
    place = torch.arange(len(rank), device=rank.device)
    gain = torch.zeros_like(a)
    while half:
        low = (rank & half) == 0
        start = place & -(2 * half)
        before = low.long().cumsum(0) - low.long()
        target = torch.where(low, before + start // 2, place - before + start // 2 + half)
        for values, factor in ((weights, a), (weights * a, -torch.ones_like(a))):
            inside = torch.where(low, values, 0.0)
            running = inside.cumsum(0) - inside
            gain = gain + torch.where(low, 0.0, factor * (running - running[start]))
        rank, a, weights, gain = (torch.empty_like(part).scatter_(0, target, part) for part in (rank, a, weights, gain))
        half //= 2
    return gain
