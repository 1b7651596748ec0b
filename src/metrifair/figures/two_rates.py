"""Two selection rates as they are compared in the practice of the United States: the number of
standard deviations, odds ratios, and both over strata.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import erfc, exp, inf, log, sqrt
from typing import NamedTuple

import numpy as np

from metrifair.figures.intervals import Interval
from metrifair.support.special import normal_quantile


class RatePair(NamedTuple):
    """Rows and selected rows of a group, and of the reference that it is compared with."""

    selected: int
    rows: int
    other_selected: int
    other_rows: int


def standard_deviations(pair: RatePair) -> float | None:
    """The difference of two rates in standard deviations of equal rates: the two-sample z.

    Negative if the group is selected less often. None if all or no rows are selected.

    >>> round(standard_deviations(RatePair(40, 100, 60, 100)), 4)
    -2.8284
    """
    rate = (pair.selected + pair.other_selected) / (pair.rows + pair.other_rows)
    variance = rate * (1 - rate) * (1 / pair.rows + 1 / pair.other_rows)
    if variance <= 0:
        return None
    difference = pair.selected / pair.rows - pair.other_selected / pair.other_rows
    return difference / sqrt(variance)


def odds_ratio(pair: RatePair) -> float | None:
    """The odds of selection in the group divided by those in the reference; infinite without a
    row to divide by, None if both parts are 0.

    >>> odds_ratio(RatePair(1, 3, 1, 2))
    0.5
    """
    above = pair.selected * (pair.other_rows - pair.other_selected)
    below = pair.other_selected * (pair.rows - pair.selected)
    if below:
        return above / below
    if above:
        return inf
    return None


def odds_ratio_interval(pair: RatePair, confidence: float) -> Interval | None:
    """The interval of an odds ratio by the normal approximation of its logarithm (Woolf); None if
    one of the four counts is 0.

    >>> odds_ratio_interval(RatePair(40, 100, 60, 100), 0.95)
    Interval(low=0.252..., high=0.782...)
    """
    cells = (
        pair.selected,
        pair.rows - pair.selected,
        pair.other_selected,
        pair.other_rows - pair.other_selected,
    )
    ratio = odds_ratio(pair)
    if min(cells) == 0 or ratio is None:
        return None
    error = sqrt(sum(1 / cell for cell in cells))
    width = normal_quantile((1 + confidence) / 2) * error
    return Interval(exp(log(ratio) - width), exp(log(ratio) + width))


class CommonOdds(NamedTuple):
    """The common odds ratio of several strata, and the test that it is 1."""

    odds_ratio: float | None  # None: no stratum determines it
    interval: Interval | None
    statistic: float | None  # of a chi-squared distribution with one degree of freedom
    p_value: float | None


def common_odds(pairs: Sequence[RatePair], confidence: float) -> CommonOdds:
    """The common odds ratio of Mantel and Haenszel, with the interval of Robins, Breslow and
    Greenland (1986), and the test of Cochran, Mantel and Haenszel without continuity correction.
    The ratio is infinite where no row is left to divide by.

    >>> strata = [RatePair(40, 100, 60, 100), RatePair(10, 50, 30, 90)]
    >>> round(common_odds(strata, 0.95).odds_ratio, 4)
    0.4624
    """
    table = np.array(pairs, dtype=np.float64).reshape(-1, 4)
    selected, rows, other_selected, other_rows = table.T
    missed = rows - selected
    other_missed = other_rows - other_selected
    total = rows + other_rows
    above = selected * other_missed / total
    below = missed * other_selected / total
    ratio = None
    interval = None
    if below.sum() > 0:
        ratio = float(above.sum() / below.sum())
    elif above.sum() > 0:
        ratio = inf
    if above.sum() > 0 and below.sum() > 0:
        like = (selected + other_missed) / total
        unlike = (missed + other_selected) / total
        variance = (
            (like * above).sum() / (2 * above.sum() ** 2)
            + (like * below + unlike * above).sum() / (2 * above.sum() * below.sum())
            + (unlike * below).sum() / (2 * below.sum() ** 2)
        )
        width = normal_quantile((1 + confidence) / 2) * sqrt(variance)
        center = log(above.sum() / below.sum())
        interval = Interval(exp(center - width), exp(center + width))
    all_selected = selected + other_selected
    expected = rows * all_selected / total
    spread = expected * other_rows * (total - all_selected) / (total * np.maximum(total - 1, 1))
    if spread.sum() <= 0:
        return CommonOdds(ratio, interval, None, None)
    statistic = float((selected - expected).sum() ** 2 / spread.sum())
    return CommonOdds(ratio, interval, statistic, erfc(sqrt(statistic / 2)))
