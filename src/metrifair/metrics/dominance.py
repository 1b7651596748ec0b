"""Sums over pairs of rows that need no pairs: signs of score differences times distances of an
attribute.

For scores z and an attribute with distances d, with sgn = 0 for equal scores:

    sum_j x_j sgn(z_k - z_j) d(a_k, a_j)        for each row k, and columns x of weights.

Numbers: with the rows in the order of their scores, sum over earlier j of x_j |a_k - a_j| is twice
the part where a_j < a_k (a *dominance sum*: earlier and smaller), less a_k X + Y with running sums
X of x and Y of x a. Dominance sums take log2(n) passes over the bits of the attribute's rank.
Nothing here records gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.metrics.kernels import euclidean
from metrifair.metrics.namespaces import Array, namespace_for
from metrifair.metrics.pair import ascending, rows_at, running_sums, weight_below_less_above
from metrifair.support.arrays import Floats, Integers

AttributeKind: TypeAlias = Literal["numbers", "names", "vectors"]

PAIRED = 512  # rows up to which all pairs are as fast
_BLOCK = 2**22  # pairs in memory at once


@dataclass(frozen=True, eq=False)
class AttributeValues:
    """A protected attribute, row by row, and the kind of its distances.

    Numbers: the absolute difference. Names: 1 where they differ. Vectors: the Euclidean distance.
    """

    values: Array  # (..., n) numbers, or codes of names; (..., n, d) vectors
    kind: AttributeKind = "numbers"

    @property
    def lead(self) -> tuple[int, ...]:
        """The leading (model) axes."""
        return tuple(self.values.shape)[: -2 if self.kind == "vectors" else -1]

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.values.shape[-2 if self.kind == "vectors" else -1])

    @property
    def by_pairs(self) -> bool:
        """True if all pairs are computed."""
        return self.kind == "vectors" or self.count <= PAIRED

    def distances(self, rows: slice) -> Array:
        """From these rows to all, (..., rows, n)."""
        if self.kind == "vectors":
            return euclidean(self.values[..., rows, None, :], self.values[..., None, :, :])
        some = self.values[..., rows, None]
        every = self.values[..., None, :]
        return namespace_for(some).double(
            abs(some - every) if self.kind == "numbers" else some != every
        )


def distance_sums(attribute: AttributeValues, columns: Array) -> Array:
    """For each row k and column x of (..., columns, n), the sum over j of x_j d(a_k, a_j).

    >>> distance_sums(AttributeValues(np.array([0.0, 1.0, 3.0])), np.ones((1, 3)))
    array([[4., 3., 5.]])
    """
    xp = namespace_for(columns)
    if attribute.by_pairs:
        parts = [
            attribute.distances(rows) @ columns.swapaxes(-2, -1) for rows in _row_blocks(attribute)
        ]
        return xp.concat(parts, -2).swapaxes(-2, -1)
    if attribute.kind == "names":
        return columns.sum(-1, keepdims=True) - _by_name(attribute, columns)
    a = xp.double(attribute.values)
    a = a - a.mean(-1, keepdims=True)
    order = xp.argsort(a)
    ranked = rows_at(a[..., None, :], order)
    weights = rows_at(columns, order)
    below = running_sums(weights)
    moments = running_sums(weights * ranked)
    sums = ranked * (2 * below - below[..., -1:]) - (2 * moments - moments[..., -1:])
    return xp.scattered(sums, order[..., None, :])


def _by_name(attribute: AttributeValues, columns: Array) -> Array:
    """For each row the sum of the columns over the rows with the same name."""
    xp = namespace_for(columns)
    code = xp.integers(attribute.values)[..., None, :]
    shape = xp.broadcast_shapes(columns.shape, code.shape)
    code = xp.broadcast_to(code, shape)
    columns = xp.broadcast_to(columns, shape)
    return xp.gather(xp.sums_by_code(columns, code, int(code.max()) + 1), code)


def _row_blocks(attribute: AttributeValues, models: int = 0) -> list[slice]:
    rows = max(1, _BLOCK // max(1, prod(attribute.values.shape), models))
    return [
        slice(start, min(start + rows, attribute.count))
        for start in range(0, attribute.count, rows)
    ]


class SignedSums(NamedTuple):
    """Sums over j of sgn(z_k - z_j) for each row k: of x_j d(a_k, a_j), and of y_j alone."""

    of_distances: Array  # (..., columns, n)
    plain: Array  # (..., other columns, n)


def signed_sums(
    z: Array,
    attribute: AttributeValues,
    columns: Array,
    signed_columns: Array,
    sums: Array,
) -> SignedSums:
    """The signed sums of scores (..., n): x in ``columns`` (..., columns, n), y in
    ``signed_columns``.

    ``sums`` are the ``distance_sums`` of the columns.

    >>> one, a = np.ones((1, 3)), AttributeValues(np.array([0.0, 1.0, 3.0]))
    >>> signed_sums(np.array([0.2, 0.9, 0.5]), a, one, one, distance_sums(a, one))
    SignedSums(of_distances=array([[-4.,  3.,  1.]]), plain=array([[-2.,  2.,  0.]]))
    """
    if attribute.by_pairs:
        return _by_pairs(
            z,
            attribute,
            columns,
            signed_columns,
        )
    xp = namespace_for(z)
    lead = xp.broadcast_shapes(z.shape[:-1], attribute.lead, columns.shape[:-2])

    def widened(part: Array, axes: int) -> Array:
        return xp.broadcast_to(part, (*lead, *part.shape[-axes:]))

    z = widened(z, 1)
    a = widened(attribute.values, 1)
    columns = widened(columns, 2)
    signed_columns = widened(signed_columns, 2)
    if attribute.kind == "names":
        ranked = _ranked_sums(z, xp.concat([columns, signed_columns], -2))
        count = columns.shape[-2]
        return SignedSums(
            ranked[..., :count, :] - _within_names(z, a, columns), ranked[..., count:, :]
        )
    return _of_numbers(
        z,
        xp.double(a),
        columns,
        signed_columns,
        widened(sums, 2),
    )


def _by_pairs(
    z: Array,
    attribute: AttributeValues,
    columns: Array,
    signed_columns: Array,
) -> SignedSums:
    xp = namespace_for(z)
    parts: list[tuple[Array, Array]] = []
    for rows in _row_blocks(attribute, prod(z.shape)):
        sign = xp.double(xp.sign(z[..., rows, None] - z[..., None, :]))
        far = sign * attribute.distances(rows)
        parts.append((far @ columns.swapaxes(-2, -1), sign @ signed_columns.swapaxes(-2, -1)))
    return SignedSums(*(xp.concat(part, -2).swapaxes(-2, -1) for part in zip(*parts, strict=True)))


def _ranked_sums(z: Array, columns: Array) -> Array:
    """The sum over j of sgn(z_k - z_j) y_j, from one sort."""
    _, order, ties = ascending(z)
    sums = weight_below_less_above(rows_at(columns, order), ties)
    return namespace_for(z).scattered(sums, order[..., None, :])


def _within_names(z: Array, code: Array, columns: Array) -> Array:
    """The same over rows j with the same name: sums over all rows, sorted by name and score."""
    xp = namespace_for(z)
    by_score = xp.argsort(z, stable=True)
    order = xp.gather(by_score, xp.argsort(xp.gather(code, by_score), stable=True))
    points = xp.gather(z, order)
    names = xp.gather(code, order)
    changes = names[..., 1:] != names[..., :-1]
    name = _ends(changes)
    run = _ends(changes | (points[..., 1:] != points[..., :-1]))
    weights = rows_at(columns, order)
    through = xp.pad(running_sums(weights), 1, 0)
    below = rows_at(through, run[0])
    upto = rows_at(through, run[1] + 1)
    first = rows_at(through, name[0])
    last = rows_at(through, name[1] + 1)
    return xp.scattered((below - first) - (last - upto), order[..., None, :])


def _ends(changes: Array) -> tuple[Array, Array]:
    """The first and last place of the run of each place, from where neighbors differ, (..., n -
    1).
    """
    xp = namespace_for(changes)
    count = changes.shape[-1] + 1
    place = xp.broadcast_to(xp.arange(count), (*changes.shape[:-1], count))
    opens = xp.pad(
        changes,
        1,
        0,
        True,
    )
    closes = xp.pad(
        changes,
        0,
        1,
        True,
    )
    first = xp.cummax(xp.where(opens, place, 0))
    last = xp.flip(xp.cummin(xp.flip(xp.where(closes, place, count - 1))))
    return first, last


def _of_numbers(
    z: Array,
    a: Array,
    columns: Array,
    signed_columns: Array,
    sums: Array,
) -> SignedSums:
    xp = namespace_for(z)
    a = a - a.mean(-1, keepdims=True)  # sums of small numbers are more exact
    by_rank = xp.argsort(a)  # the row of each rank
    points, rank, ties = ascending(xp.gather(z, by_rank))
    if ties is not None:  # equal scores in the order of the attribute
        rank = xp.argsort(xp.gather(z, by_rank), stable=True)
    order = xp.gather(by_rank, rank)
    numbers, weights, plain = (
        rows_at(part, order) for part in (a[..., None, :], columns, signed_columns)
    )
    smaller = rows_at(_dominance(rank, numbers, weights), rank)
    through = running_sums(weights)
    moments = running_sums(weights * numbers)
    before = through - weights
    moment_before = moments - weights * numbers
    far = 4 * smaller - 2 * (numbers * before - moment_before) - rows_at(sums, order)
    # those before count as much too little as they counted too much, and those after
    if ties is not None:
        first, last = _ends(points[..., 1:] != points[..., :-1])
        far -= numbers * (before - rows_at(before, first)) - (
            moment_before - rows_at(moment_before, first)
        )
        far += rows_at(moments, last) - moments - numbers * (rows_at(through, last) - through)
    signs = weight_below_less_above(plain, ties)
    return SignedSums(*(xp.scattered(part, order[..., None, :]) for part in (far, signs)))


def _dominance(rank: Array, a: Array, weights: Array) -> Array:
    """For each rank k the sum of x_j (a_k - a_j) over rows j before it with a smaller rank: (...,
    columns, n).

    ``rank`` (..., n) is the rows' own, ``a`` (..., 1, n) their numbers, ``weights`` (..., columns,
    n). Rows are kept in blocks of equal leading bits of the rank, each in its original order. A row
    whose next bit is set gains from earlier rows of its block whose bit is not set. Then each block
    is split by that bit, which leaves both halves in order. All models and columns are blocks from
    the start: one long line of rows.
    """
    xp = namespace_for(weights)
    count = weights.shape[-1]
    size = 1 << max(1, (count - 1).bit_length())
    lead = weights.shape[:-1]
    # Rows that fill up have the highest ranks, and so give nothing to any other.
    filled = (
        xp.broadcast_to(rank[..., None, :], weights.shape),
        xp.broadcast_to(xp.arange(count, size), (*lead, size - count)),
    )
    ranks = xp.concat(filled, -1).reshape(-1)
    numbers, amounts = (
        xp.pad(xp.broadcast_to(part, weights.shape), 0, size - count).reshape(-1)
        for part in (a, weights)
    )
    arrays = [xp.host_array(part) for part in (ranks, numbers, amounts)]
    if arrays[0] is None:
        gained = _passes_on_device(
            ranks,
            numbers,
            amounts,
            size // 2,
        )
    else:
        even = bool((weights == 1).all())
        gained = xp.from_host(
            _passes(
                arrays[0],
                arrays[1],
                None if even else arrays[2],
                half=size // 2,
            )
        )
    return gained.reshape(*lead, size)[..., :count]


def _passes(
    rank: Integers,
    a: Floats,
    weights: Floats | None,
    *,
    half: int,
) -> Floats:
    """The passes with NumPy.

    ``weights`` None: every row has weight 1, and counts are sufficient.
    """
    parts: list[NDArray[Any]] = [
        rank.astype(np.int32),
        a,
        np.zeros_like(a),
        *([] if weights is None else [weights]),
    ]
    place = np.arange(len(rank) // 2)
    while half:
        above = (parts[0] & half) != 0
        high = np.flatnonzero(above)
        low = np.flatnonzero(~above)
        # among the rows that have the bit clear, over all blocks
        before = high - place
        start = place & -half
        lower = [part[low] for part in parts]
        higher = [part[high] for part in parts]
        running = np.zeros(len(low) + 1)
        np.cumsum(lower[1] if weights is None else lower[3] * lower[1], out=running[1:])
        moments = running[before] - running[start]
        if weights is None:
            higher[2] += higher[1] * (before - start) - moments
        else:
            np.cumsum(lower[3], out=running[1:])
            higher[2] += higher[1] * (running[before] - running[start]) - moments
        for number, (low_part, high_part) in enumerate(zip(lower, higher, strict=True)):
            split = np.empty((len(low) // half, 2, half), low_part.dtype)
            split[:, 0] = low_part.reshape(-1, half)
            split[:, 1] = high_part.reshape(-1, half)
            parts[number] = split.reshape(-1)
        half //= 2
    return parts[2]


def _passes_on_device(
    rank: Array,
    a: Array,
    weights: Array,
    half: int,
) -> Array:
    """The same in steps of fixed shapes, which a device records and replays."""
    xp = namespace_for(rank)
    place = xp.arange(len(rank))
    gain = xp.zeros_like(a)
    while half:
        low = (rank & half) == 0
        start = place & -(2 * half)
        before = xp.integers(low).cumsum(0) - xp.integers(low)
        target = xp.where(low, before + start // 2, place - before + start // 2 + half)
        for values, factor in ((weights, a), (weights * a, -1.0)):
            inside = xp.where(low, values, 0.0)
            running = inside.cumsum(0) - inside
            gain = gain + xp.where(low, 0.0, factor * (running - running[start]))
        rank, a, weights, gain = (xp.scattered(part, target) for part in (rank, a, weights, gain))
        half //= 2
    return gain
