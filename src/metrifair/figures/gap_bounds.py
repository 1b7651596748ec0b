"""Tests and bounds of how much worse a group is than other rows: of rates from counts, and of means
of values between 0 and 1 from sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrifair.figures.bounded_means import log_tail_of_difference, lower_mean, upper_mean
from metrifair.figures.two_by_two import TwoByTwoTables, log_tails, lower_log_odds
from metrifair.support.arrays import Booleans, Floats, Integers

_RANGE_SHARE = 0.02  # of each level, for the ranges of rates
_BELOW_ONE = 1 - 1e-12


@dataclass(frozen=True)
class ComparedSums:
    """Groups and the other rows of each: sums of weights, and of weighted values from 0 to 1.

    ``largest`` is the largest weight of a row, or of a cluster, on either side.
    """

    total: Floats
    bad: Floats
    largest: Floats
    other_total: Floats
    other_bad: Floats
    other_largest: Floats

    @property
    def means(self) -> Floats:
        """The mean value of each group."""
        return _shares(self.bad, self.total)

    @property
    def other_means(self) -> Floats:
        """The mean value of the other rows."""
        return _shares(self.other_bad, self.other_total)

    @property
    def sizes(self) -> Floats:
        """Rows without weights that would be worth as much as each group."""
        return _shares(self.total, self.largest)

    @property
    def other_sizes(self) -> Floats:
        """Rows without weights that would be worth as much as the other rows."""
        return _shares(self.other_total, self.other_largest)

    def at(
        self,
        places: Integers | Booleans,
    ) -> ComparedSums:
        """Some of the groups."""
        return ComparedSums(*(getattr(self, name)[places] for name in self.__dataclass_fields__))

    def reversed(self) -> ComparedSums:
        """The same rows with one minus each value."""
        return ComparedSums(
            self.total,
            self.total - self.bad,
            self.largest,
            self.other_total,
            self.other_total - self.other_bad,
            self.other_largest,
        )

    def tables(self) -> TwoByTwoTables:
        """The counts, if every value is 0 or 1 and every weight 1."""
        return TwoByTwoTables.of(
            np.rint(self.bad),
            np.rint(self.total),
            np.rint(self.bad + self.other_bad),
            np.rint(self.total + self.other_total),
        )


def _shares(
    parts: Floats,
    totals: Floats,
) -> Floats:
    return np.divide(parts, totals, out=np.zeros_like(parts), where=totals > 0)


def log_p_values(
    sides: ComparedSums,
    *,
    exact: bool,
) -> Floats:
    """The logarithms of p-values of the hypotheses that groups are not worse than the other rows.

    >>> sides = ComparedSums(*np.array([[20.0], [12.0], [1.0], [80.0], [16.0], [1.0]]))
    >>> [float(np.exp(log_p_values(sides, exact=exact))[0].round(4)) for exact in (True, False)]
    [0.0008, 0.0859]
    """
    if exact:
        return log_tails(sides.tables())
    return log_tail_of_difference(
        sides.means,
        sides.sizes,
        sides.other_means,
        sides.other_sizes,
    )


def lower_gaps(
    sides: ComparedSums, levels: Floats, *, range_levels: Floats | float, exact: bool
) -> Floats:
    """Lower bounds of the differences between means, each at its own level.

    Exact bounds invert the tests of odds ratios. They become differences at the least favorable
    rates of both sides, whose ranges have their own level.

    >>> sides = ComparedSums(*np.array([[20.0], [12.0], [1.0], [80.0], [16.0], [1.0]]))
    >>> levels = np.array([0.05])
    >>> [lower_gaps(sides, levels, range_levels=0.001, exact=exact).round(3) for exact in (True, False)]
    [array([0.094]), array([-0.032])]
    """
    if not exact:
        log_levels = np.log(levels / 2)
        low = lower_mean(
            sides.means,
            sides.sizes,
            log_levels,
        )
        return low - upper_mean(sides.other_means, sides.other_sizes, log_levels)
    log_odds = lower_log_odds(sides.tables(), levels)
    ends = np.log(np.broadcast_to(range_levels, levels.shape) / 3)
    least = lower_mean(
        sides.means,
        sides.total,
        ends,
    )
    low = lower_mean(
        sides.other_means,
        sides.other_total,
        ends,
    )
    high = np.minimum(upper_mean(sides.other_means, sides.other_total, ends), _BELOW_ONE)
    # The difference by the odds ratio is concave or convex in the rate, and least has its own kink.
    steepest = _rate_at(-log_odds / 2, np.full_like(least, 0.5))
    kink = _rate_at(-log_odds, least)
    rates = [low, high, np.clip(steepest, low, high), np.clip(kink, low, high)]
    gaps = [np.maximum(least, _rate_at(log_odds, rate)) - rate for rate in rates]
    return np.asarray(np.minimum.reduce(gaps))


def upper_gaps(
    sides: ComparedSums, levels: Floats, *, range_levels: Floats | float, exact: bool
) -> Floats:
    """Upper bounds of the same differences, each at its own level.

    >>> sides = ComparedSums(*np.array([[20.0], [12.0], [1.0], [80.0], [16.0], [1.0]]))
    >>> upper_gaps(sides, np.array([0.05]), range_levels=0.001, exact=True).round(3)
    array([0.604])
    """
    return -lower_gaps(sides.reversed(), levels, range_levels=range_levels, exact=exact)


def range_level(level: float) -> float:
    """The part of a level that is spent on the ranges of rates."""
    return _RANGE_SHARE * level


def _rate_at(
    log_odds: Floats,
    rate: Floats,
) -> Floats:
    """The rate whose odds are those of another one, times this odds ratio."""
    odds = np.exp(np.clip(log_odds, -700, 700))
    return odds * rate / (1 - rate + odds * rate)
