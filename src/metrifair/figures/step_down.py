"""Holm's step-down over many groups, each with two claims in a fixed order.

The first claim of a group is that it is worse than the rest; the second, that it is worse than each
of its parents. The level of a group is spent on its first claim. Once that is shown, half of the
level goes to the second claim and half to a bound of the gap; once the second is shown too, its half
goes to the other groups. This is a sequentially rejective graph of tests, so that all claims and
bounds hold jointly, however the groups overlap.

Two facts raise the levels, and neither depends on which rows are hits: the levels of groups may
differ by their sizes, and a test with few possible p-values spends only the largest one that does not
exceed its level.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from metrifair.figures.two_by_two import attainable_tails
from metrifair.support.arrays import Booleans, Floats, Integers
from metrifair.support.special import normal_cdf

_PLANNED_GAP = 0.2  # in standard deviations of the outcome: 10 points at a rate of 0.3
_HALVINGS = 40
_MOST_VARIANCE = 1600.0  # of hits: beyond, possible p-values are dense

Spent = Callable[[Floats], Floats]
"""The largest possible p-value of each group that does not exceed its level."""


class StepDown(NamedTuple):
    """Which claims are shown, and the level of the bound of each group's gap."""

    is_worse: Booleans
    is_worse_than_parents: Booleans
    bound_levels: Floats


def step_down(
    log_p: Floats, parent_log_p: Floats, shares: Floats, level: float, spent: Spent
) -> StepDown:
    """All claims that hold jointly at this level.

    >>> p = np.log([0.001, 0.02, 0.6])
    >>> step_down(p, p, np.full(3, 1 / 3), 0.05, lambda levels: levels).is_worse
    array([ True, False, False])
    """
    done = np.zeros(len(log_p), dtype=bool)
    while True:
        kept = np.where(
            done,
            0.5,
            1.0,
        )
        levels = _common_levels(
            shares,
            kept,
            level,
            spent,
        )
        attained = spent(levels)
        with np.errstate(divide="ignore"):
            is_worse = log_p <= np.log(levels)
            both = is_worse & (parent_log_p <= np.log(attained / 2))
        if not (both & ~done).any():
            return StepDown(is_worse, both | done, attained / 2)
        done |= both


def _common_levels(
    shares: Floats,
    kept: Floats,
    level: float,
    spent: Spent,
) -> Floats:
    """The largest levels in proportion to the shares, of which no more than ``level`` is spent."""

    def levels_at(log_factor: float) -> Floats:
        return np.asarray(np.minimum(shares * level * np.exp(log_factor), level))

    low = 0.0
    high = -float(np.log(shares.min()))
    if kept @ spent(levels_at(high)) <= level:
        return levels_at(high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if kept @ spent(levels_at(middle)) <= level:
            low = middle
        else:
            high = middle
    return levels_at(low)


def level_shares(
    sizes: Floats,
    total: float,
    level: float,
) -> Floats:
    """How groups share the level, by their sizes among this total.

    Half is the same for all. The other half detects the most groups with a gap of 0.2 standard
    deviations: less goes to groups that are too small for that, or so large that they need less.

    >>> level_shares(np.array([30.0, 300.0, 3000.0]), 10_000.0, 0.05).round(2)
    array([0.5 , 0.34, 0.17])
    """
    distinct, place, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    signal = _PLANNED_GAP * np.sqrt(distinct * np.maximum(1 - distinct / total, 1 / total))

    def planned(cost: float) -> Floats:
        return 1 - normal_cdf(signal / 2 + cost / signal)

    low = -50.0
    high = 50.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if counts @ planned(middle) > level:
            low = middle
        else:
            high = middle
    by_size = planned(high)
    return 0.5 / len(sizes) + 0.5 * (by_size / (counts @ by_size))[place]


def spent_by_tables(
    rows: Integers,
    all_hits: int,
    all_rows: int,
) -> Spent:
    """What exact tests of groups of these sizes spend.

    >>> spent_by_tables(np.array([3]), 4, 8)(np.array([0.05, 0.1])[1:]).round(4)
    array([0.0714])
    """
    distinct, place = np.unique(rows, return_inverse=True)
    rate = all_hits / all_rows
    is_small = distinct * rate * (1 - rate) <= _MOST_VARIANCE
    tails = attainable_tails(
        distinct[is_small],
        all_hits,
        all_rows,
    )
    tails = np.column_stack([tails, np.full(len(tails), -np.inf)])
    row_of_size = np.cumsum(is_small) - 1
    has_tails = is_small[place]
    row = row_of_size[place][has_tails]

    def spent(levels: Floats) -> Floats:
        result = levels.copy()
        with np.errstate(divide="ignore"):
            targets = np.log(levels[has_tails])
        result[has_tails] = np.exp(tails[row, _first_below(tails, row, targets)])
        return result

    return spent


def _first_below(
    tails: Floats,
    row: Integers,
    targets: Floats,
) -> Integers:
    """The first place in each row whose value does not exceed its target, by bisection."""
    low = np.zeros(len(row), dtype=np.int64)
    high = np.full(len(row), tails.shape[1] - 1)
    while (low < high).any():
        middle = (low + high) // 2
        above = tails[row, middle] > targets
        low = np.where(above & (low < high), middle + 1, low)
        high = np.where(
            above,
            high,
            middle,
        )
    return low
