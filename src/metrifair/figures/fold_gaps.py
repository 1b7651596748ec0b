"""Gaps between groups in out-of-fold scores, with the part that chance explains taken out.

Models of K folds score the rows left out. The distance between two groups is then known in two
ways: *pooled*, over all rows, which is precise but averages the errors of K models; and *within*
folds, where each distance belongs to a single model, but few rows determine it. Two samples of one
distribution also differ, by a mean squared distance that is known; it is subtracted from the
squares of both (``chance``).
"""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass
from functools import cached_property
from math import pi, sqrt
from typing import NamedTuple

import numpy as np

from metrifair.support.arrays import AnyFloats, Booleans, Floats, Integers, distinct_codes
from metrifair.support.checks import rows_or_none

FEWEST_IN_FOLD = 5
"""Rows that each side of a comparison needs in every fold, or distances within folds are left
out.
"""
BRIDGE = pi**2 / 12  # mean square of the largest value of a Brownian bridge
_AT_ROWS_ONLY = 0.22
"""The largest difference of few rows is smaller by this share of the root of 1 / m + 1 / n; by
simulation, 0.26 for samples of equal sizes m and n, 0.19 where one has ten times the rows.
"""
_BLOCKS = 64  # of rows, which are summed side by side
_LEAST_GAP = 1e-12


@dataclass(frozen=True, eq=False)
class FoldSides:
    """The weight of every row on both sides of each comparison, and the fold in which it is scored.

    ``left`` and ``right`` have the shape (comparisons, n): a row's sample weight, times its
    probability of the group where groups have probabilities, and 0 elsewhere. Rows of one cluster
    are not independent. Folds have equal shares of the ``labels``; None: they need not.
    """

    left: Floats
    right: Floats
    fold: Integers
    clusters: Integers | None = None
    labels: Integers | None = None

    @property
    def folds(self) -> int:
        """The number of folds."""
        return int(self.fold.max()) + 1

    def take(self, rows: Integers) -> FoldSides:
        """Some of the rows, as one fold."""
        one_fold = np.zeros_like(rows)
        clusters = rows_or_none(self.clusters, rows)
        return FoldSides(self.left[:, rows], self.right[:, rows], one_fold, clusters)

    @cached_property
    def rows_in_folds(self) -> Floats:
        """The number of rows of each fold."""
        return np.bincount(self.fold).astype(np.float64)

    @cached_property
    def compared(self) -> Booleans:
        """Of each comparison, whether each row is on one of its sides."""
        either: Booleans = (self.left > 0) | (self.right > 0)
        return either

    @cached_property
    def has_within(self) -> Booleans:
        """Of each comparison, whether both sides have enough rows in every fold."""
        smallest = []
        for left, right in zip(self.left, self.right, strict=True):
            rows_on_left = np.bincount(self.fold, left > 0, self.folds)
            rows_on_right = np.bincount(self.fold, right > 0, self.folds)
            fewer = np.minimum(rows_on_left, rows_on_right)
            smallest.append(fewer.min())
        return np.array(smallest) >= FEWEST_IN_FOLD

    @cached_property
    def units(self) -> Integers:
        """The independent unit of each row, from 0: its cluster, or the row itself."""
        if self.clusters is None:
            return np.arange(len(self.fold))
        return distinct_codes(self.clusters)

    def chance(self, scores: Floats) -> Chance:
        """The mean squared distance of equal distributions of scores (n,): of all rows, and in
        folds.

        Folds with equal shares of the labels differ less than folds that are drawn.
        """
        factors = self.bridge_factors(scores)
        chance = self.mean_squares(self.shares_squared(), factors)
        explained = self.explained_by_labels(scores)[:, None, None]
        return chance.less_within(explained * chance.beyond_all_rows())

    def shares_squared(self, weights: Floats | None = None) -> Chance:
        """The sums of the squared shares that units have of their side: 1 / n for n equal rows.

        ``weights`` (draws, n) multiply those of the rows; those of one cluster are equal.
        """
        _, first_rows = np.unique(self.units, return_index=True)
        units = len(first_rows)
        drawn = np.ones((1, units))
        if weights is not None:
            drawn = weights[:, first_rows]
        in_fold = self.fold[first_rows, None] == np.arange(self.folds)
        comparisons = len(self.left)
        pooled = np.zeros((comparisons, len(drawn)))
        within = np.zeros((comparisons, len(drawn), self.folds))
        for sides in (self.left, self.right):
            for comparison, side in enumerate(sides):
                amounts = np.bincount(self.units, side, units)[:, None]
                totals = drawn @ (amounts * in_fold)
                squares = np.square(drawn) @ (np.square(amounts) * in_fold)
                all_squares = squares.sum(1)
                total = totals.sum(1)
                # a side without weight has no distance
                with np.errstate(invalid="ignore", divide="ignore"):
                    pooled[comparison] += all_squares / np.square(total)
                    within[comparison] += squares / np.square(totals)
        return Chance(pooled, within)

    def mean_squares(self, shares: Chance, factors: Floats) -> Chance:
        """Mean squared distances of equal distributions, from ``shares_squared`` and
        ``bridge_factors``.

        Rows of clusters are more places than their units.
        """

        def of(amounts: Floats) -> Floats:
            further_axes = [1] * (amounts.ndim - 1)
            factor = factors.reshape(-1, *further_axes)
            if self.clusters is not None:
                clustered: Floats = factor * amounts
                return clustered
            return mean_square(factor, amounts)

        return Chance(of(shares.pooled), of(shares.within))

    def bridge_factors(self, scores: Floats) -> Floats:
        """What the squared shares are multiplied by, for scores (n,) in each comparison.

        The mean square of the largest value of a Brownian bridge; for two values, such as
        decisions, the variance of one of them, p (1 - p).
        """
        values = np.unique(scores)
        comparisons = len(self.left)
        if len(values) < 2:
            return np.zeros(comparisons)
        if are_many(values):
            return np.full(comparisons, BRIDGE)
        both = self.left + self.right
        is_upper = scores == values[1]
        upper = both @ is_upper / both.sum(axis=1)
        factors: Floats = upper * (1 - upper)
        return factors

    def explained_by_labels(self, scores: Floats) -> Floats:
        """The share of the variance of scores (n,) that lies between the labels, in each
        comparison: of their distribution functions, the mean of both sides.
        """
        if self.labels is None or self.folds == 1:
            return np.zeros(len(self.left))
        order = np.argsort(scores, kind="stable")
        ascending = scores[order]
        last = np.searchsorted(ascending, ascending, side="right") - 1
        labels = self.labels[order]
        distinct = np.unique(labels)
        is_label = labels == distinct[:, None]
        shares = []
        for sides in (self.left, self.right):
            of_sides = [_share_between(is_label * side[order], last) for side in sides]
            shares.append(of_sides)
        explained: Floats = np.mean(shares, axis=0)
        return explained


def are_many(values: Sized) -> bool:
    """Whether chance in scores of these distinct values does not depend on the share of each: more
    than two.

    >>> are_many([0, 1]), are_many(np.array([0.1, 0.2, 0.3]))
    (False, True)
    """
    return len(values) > 2


def _share_between(amounts: Floats, last: Integers) -> float:
    """The share of the variance of distribution functions between labels.

    ``amounts`` (labels, n) are the weights of the rows in the order of their scores, ``last`` the
    places of the last of equal scores.
    """
    totals = amounts.sum(axis=1, keepdims=True)
    known = np.maximum(totals, np.finfo(float).tiny)
    below = np.cumsum(amounts, axis=1)
    shares = below[:, last] / known
    of_labels = totals[:, 0] / totals.sum()
    of_all = of_labels @ shares
    weight = amounts.sum(axis=0)
    variances = of_labels @ (shares * (1 - shares))
    within = float(weight @ variances)
    variance = float(weight @ (of_all * (1 - of_all)))
    if variance <= 0:
        return 0.0
    return max(0.0, 1 - within / variance)


def mean_square(factor: Floats, share: Floats) -> Floats:
    """The mean squared distance of equal distributions of independent rows; it rises with both.

    The distance of samples is the largest difference at their scores, that of a bridge at any
    place: for few rows, it is smaller. ``factor`` is that of ``FoldSides.bridge_factors``,
    ``share`` the sum of the squared shares of the rows.

    >>> mean_square(np.array([0.25, BRIDGE]), np.array([0.04, 0.04])).round(4)
    array([0.01  , 0.0302])
    """
    fewer = np.where(factor == BRIDGE, _AT_ROWS_ONLY, 0.0)
    at_rows = 1 + fewer * np.sqrt(share)
    squares: Floats = factor * share / np.square(at_rows)
    return squares


class Chance(NamedTuple):
    """Mean squared distances of equal distributions."""

    pooled: Floats  # (comparisons, draws)
    within: Floats  # (comparisons, draws, folds)

    def doubled(self) -> Chance:
        """That of resamples, which have the noise of the sample and of the resample."""
        return Chance(2 * self.pooled, 2 * self.within)

    def repeated(self, draws: int) -> Chance:
        """That of the only draw, for each of so many draws."""
        pooled = self.pooled.repeat(draws, axis=1)
        within = self.within.repeat(draws, axis=1)
        return Chance(pooled, within)

    def followed_by(self, others: Chance) -> Chance:
        """That of these draws and then of other ones."""
        pooled = np.concatenate([self.pooled, others.pooled], axis=1)
        within = np.concatenate([self.within, others.within], axis=1)
        return Chance(pooled, within)

    def beyond_all_rows(self) -> Floats:
        """How much larger they are within folds than of all rows: (comparisons, draws, folds)."""
        return self.within - self.pooled[..., None]

    def less_within(self, amounts: Floats) -> Chance:
        """The same with smaller distances within folds."""
        return Chance(self.pooled, self.within - amounts)


class SquaredDistances(NamedTuple):
    """Squared distances of one model for each draw of weights; NaN where a side has no weight."""

    pooled: Floats  # (comparisons, draws)
    within: Floats  # (comparisons, draws, folds)


def squared_distances(scores: Floats, sides: FoldSides, weights: Floats) -> SquaredDistances:
    """The squared Kolmogorov distances of scores (n,) for weights (draws, n), over all rows and
    within folds.

    >>> sides = FoldSides(np.array([[1.0, 1, 0, 0]]), np.array([[0, 0, 1.0, 1]]), np.array([0, 1,
    ...     0, 1]))
    >>> squared_distances(np.array([0.1, 0.4, 0.2, 0.3]), sides, np.ones((1, 4))).pooled
    array([[0.25]])
    """
    found = [
        DrawnShares(sides, comparison, weights).squared_distances(scores)
        for comparison in range(len(sides.left))
    ]
    return SquaredDistances(*map(np.concatenate, zip(*found, strict=True)))


class DrawnShares:
    """The shares of all rows on the sides of one comparison, for many draws of weights.

    They serve the scores of any number of models. Distances are computed in the precision of the
    weights (draws, n).
    """

    def __init__(self, sides: FoldSides, comparison: int, weights: AnyFloats) -> None:
        rows = np.flatnonzero(sides.compared[comparison])
        left = sides.left[comparison, rows].astype(weights.dtype)
        right = sides.right[comparison, rows].astype(weights.dtype)
        drawn = np.ascontiguousarray(weights[:, rows].T)
        fold = sides.fold[rows]
        self._rows = rows
        self._within = _Parts(fold, sides.folds, left, right, drawn)
        self._pooled = self._within
        if sides.folds > 1:
            one_fold = np.zeros_like(fold)
            self._pooled = _Parts(one_fold, 1, left, right, drawn)

    def squared_distances(self, scores: Floats) -> SquaredDistances:
        """The squared distances of scores (n,), of one comparison."""
        compared = scores[self._rows]
        order = np.argsort(compared, kind="stable")
        pooled = self._pooled.largest_differences(compared, order)
        within = pooled
        if self._within is not self._pooled:
            within = self._within.largest_differences(compared, order)
        pooled = pooled[None, :, 0]
        return SquaredDistances(np.square(pooled), np.square(within[None]))


class _Parts:
    """Signed shares of rows (rows, draws) within parts of the rows: those of the left side less
    those of the right one.
    """

    def __init__(
        self,
        part: Integers,
        parts: int,
        left: AnyFloats,
        right: AnyFloats,
        drawn: AnyFloats,
    ) -> None:
        self._part = part
        self._parts = parts
        inside = part == np.arange(parts)[:, None]
        weights = drawn.astype(np.float64)
        left_total = (inside * left.astype(np.float64)) @ weights
        right_total = (inside * right.astype(np.float64)) @ weights
        self._missing = (left_total == 0) | (right_total == 0)
        # Without one of its sides, a part adds nothing to the sums of later parts.
        left_total[self._missing] = np.inf
        right_total[self._missing] = np.inf
        # one more row, of no share, fills up the last block of a part
        rows, draws = drawn.shape
        self._shares = np.zeros((rows + 1, draws), dtype=drawn.dtype)
        for side, total in ((left, left_total), (-right, right_total)):
            share = side[:, None] / total[part]
            self._shares[:-1] += drawn * share.astype(drawn.dtype)

    def largest_differences(self, scores: Floats, order: Integers) -> Floats:
        """The largest difference of the sides' distribution functions in each part:
        (draws, parts). ``order`` sorts the scores.

        The sorted rows are divided into blocks of equal length, which are summed side by side: row
        i of all blocks at a time, so that the sums stay in the processor's cache.
        """
        length = -(-len(order) // _BLOCKS)
        by_part = np.argsort(self._part[order], kind="stable")
        order = order[by_part]
        size = np.bincount(self._part, minlength=self._parts)
        end = np.cumsum(size)
        blocks = -(-size // length)
        end_block = np.cumsum(blocks)
        rows = np.full((end_block[-1], length), len(order))
        is_last = np.zeros(rows.shape, dtype=bool)
        parts = np.flatnonzero(size)
        blocks_of_parts = [slice(end_block[part] - blocks[part], end_block[part]) for part in parts]
        for part, of_part in zip(parts, blocks_of_parts, strict=True):
            count = size[part]
            inside = order[end[part] - count : end[part]]
            rows[of_part].reshape(-1)[:count] = inside
            # A distribution function is read after the last of equal scores.
            changes = np.diff(scores[inside]) != 0
            is_last[of_part].reshape(-1)[:count] = np.append(changes, values=True)
        high, low = self._extremes(rows, is_last)
        largest = np.full((self._parts, high.shape[1]), np.nan)
        for part, of_part in zip(parts, blocks_of_parts, strict=True):
            above = high[of_part].max(0)
            below = -low[of_part].min(0)
            largest[part] = np.maximum(above, below)
        largest[largest < _LEAST_GAP] = 0.0
        largest[self._missing] = np.nan
        return largest.T

    def _extremes(self, rows: Integers, is_last: Booleans) -> tuple[AnyFloats, AnyFloats]:
        """The largest and the smallest difference of each block: (blocks, draws)."""
        sums = np.zeros((len(rows), self._shares.shape[1]), dtype=self._shares.dtype)
        high = np.full_like(sums, -np.inf)
        low = np.full_like(sums, np.inf)
        all_last: Booleans = np.all(is_last, axis=0)
        for place, row in enumerate(rows.T):
            sums += self._shares[row]
            if bool(all_last[place]):
                np.maximum(high, sums, out=high)
                np.minimum(low, sums, out=low)
                continue
            last = np.flatnonzero(is_last[:, place])
            high[last] = np.maximum(high[last], sums[last])
            low[last] = np.minimum(low[last], sums[last])
        # The shares of both sides of a part cancel: one sum over all blocks serves all parts.
        before = np.cumsum(sums, axis=0) - sums
        high += before
        low += before
        return high, low


def corrected_squares(distances: SquaredDistances, chance: Chance, sides: FoldSides) -> Floats:
    """Squared gaps without chance, the mean of pooled and within, of the worst comparison:
    (draws,).

    They can be negative.
    """
    pooled = distances.pooled - chance.pooled
    per_fold = distances.within - chance.within
    known = np.isfinite(per_fold)
    rows = known * sides.rows_in_folds
    total = rows.sum(-1)
    sums = (np.where(known, per_fold, 0.0) * rows).sum(-1)
    within = sums / np.maximum(total, 1.0)
    mean = (pooled + within) / 2
    has_both = sides.has_within[:, None] & (total > 0)
    squares = np.where(has_both, mean, pooled)
    worst: Floats = np.nanmax(squares, axis=0)
    return worst


def gap_without_chance(lines: Floats, sides: FoldSides) -> float:
    """The gap of one model's scores (lines, n), of its worst line and comparison, without the part
    that chance explains.
    """
    once = np.ones((1, len(sides.fold)))
    squares = []
    for line in lines:
        distances = squared_distances(line, sides, once)
        corrected = corrected_squares(distances, sides.chance(line), sides)
        squares.append(float(corrected[0]))
    return sqrt(max(0.0, *squares))
