"""Scores of groups moved to their common barycentre: ranks within one group, and the values that hold them in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metrifair.methods.training_data import Floats

# A model may predict a row differently in the last digits when others are predicted along with it: relative to the
# value, and, where terms cancel to almost 0, to a usual one. Not to the largest one, which may be an outlier.
_ROUNDING, _CANCELLED = 1e-9, 1e-14


def rounding_of(values: Floats, usual: float | None = None) -> Floats:
    """How far from each value another one counts as equal to it."""
    usual = float(np.median(np.abs(values))) if usual is None else usual
    found: Floats = _ROUNDING * np.abs(values) + _CANCELLED * usual
    return found


@dataclass(frozen=True, eq=False)
class Distribution:
    """Scores of one group in ascending order, and how much weight lies up to each of them."""

    values: Floats
    upto: Floats

    @classmethod
    def of(cls, values: Floats, weight: Floats | None = None) -> Distribution:
        """The distribution of scores, each of weight 1 unless told.

        >>> Distribution.of(np.array([3.0, 1.0]), np.array([2.0, 5.0])).upto
        array([5., 7.])
        """
        order = np.argsort(values, kind="stable")
        return cls(values[order], np.cumsum(np.ones(len(values)) if weight is None else weight[order]))

    @property
    def total(self) -> float:
        """The weight of all scores."""
        return float(self.upto[-1])

    def ranks(self, values: Floats) -> tuple[Floats, Floats]:
        """The shares of the weight below each value, and up to it; between two scores they are equal.

        >>> Distribution.of(np.array([1.0, 2.0, 2.0, 4.0])).ranks(np.array([2.0, 3.0]))
        (array([0.25, 0.75]), array([0.75, 0.75]))
        """
        rounding = rounding_of(values, float(np.median(np.abs(self.values))))
        upper = np.searchsorted(self.values, values + rounding, side="right")
        lower = np.searchsorted(self.values, values - rounding, side="left")
        # Below all, a value holds the rank of the least one.
        return np.append(0.0, self.upto)[lower] / self.total, self.upto[upper.clip(min=1) - 1] / self.total

    def quantile(self, rank: Floats) -> Floats:
        """The least value up to which so large a share of the weight lies."""
        # In floating point 7 / 25 x 25 is more than 7: a rank that ends with a value's weight is that value's.
        at = np.searchsorted(self.upto, rank * self.total - 1e-12 * self.total)
        found: Floats = self.values[at.clip(max=len(self.values) - 1)]
        return found

    def mean(self, below: Floats, upto: Floats) -> Floats:
        """The mean of the values that hold the ranks from one to another, or that of the one rank.

        >>> Distribution.of(np.array([1.0, 2.0, 4.0, 6.0])).mean(np.array([0.25, 0.5]), np.array([0.75, 0.5]))
        array([3., 2.])
        """
        ends, weight = np.append(0.0, self.upto / self.total), np.diff(self.upto, prepend=0.0) / self.total
        reached = np.append(0.0, np.cumsum(self.values * weight))
        wide = upto > below
        mean = np.interp(upto, ends, reached) - np.interp(below, ends, reached)
        mean = np.divide(mean, upto - below, out=np.zeros(len(mean)), where=wide)
        # Within one value it is that value to the last digit: order is kept.
        first = np.searchsorted(self.upto, (below + 1e-12) * self.total).clip(max=len(self.values) - 1)
        last = self.quantile(upto)
        found: Floats = np.where(wide, mean.clip(np.minimum(self.values[first], last), last), last)
        return found


def barycentre(below: Floats, upto: Floats, groups: Sequence[Distribution], shares: Floats) -> Floats:
    """The mean, over groups by their shares, of the values that hold these ranks: the barycentre's quantiles.

    A value that holds several ranks is moved to the mean of the barycentre over all of them, the nearest to it in
    squared distance that treats equal values alike.

    >>> groups = [Distribution.of(np.arange(1.0, 5)), Distribution.of(np.array([10.0, 20.0]))]
    >>> barycentre(*groups[0].ranks(np.array([2.5])), groups, np.array([2 / 3, 1 / 3]))
    array([4.66666667])
    """
    found: Floats = sum(share * group.mean(below, upto) for share, group in zip(shares, groups, strict=True))
    return found
