"""Exact tests of groups, their bounds and their step-down, against SciPy and loops of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from tests.seams.figures import (
    ComparedSums,
    TwoByTwoTables,
    attainable_tails,
    level_shares,
    log_tail_of_difference,
    log_tails,
    lower_gaps,
    lower_log_odds,
    lower_mean,
    spent_by_tables,
    step_down,
    upper_gaps,
    upper_mean,
)


def drawn_tables(seed: int, count: int) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    all_rows = rng.integers(60, 3_000, count)
    rows = 1 + (all_rows * rng.uniform(0.01, 0.9, count)).astype(int)
    all_hits = 1 + (all_rows * rng.uniform(0.002, 0.98, count)).astype(int)
    hits = stats.hypergeom.rvs(all_rows, all_hits, rows, random_state=seed)
    return hits, rows, all_hits, all_rows


def test_tails_are_those_of_the_hypergeometric_distribution() -> None:
    hits, rows, all_hits, all_rows = drawn_tables(0, 200)
    tails = log_tails(TwoByTwoTables.of(hits, rows, all_hits, all_rows))
    np.testing.assert_allclose(
        tails, stats.hypergeom.logsf(hits - 1, all_rows, all_hits, rows), atol=1e-8
    )


def test_far_tails_keep_their_digits() -> None:
    tails = log_tails(TwoByTwoTables.of([300], [400], 3_000, 10_000))
    assert tails[0] == pytest.approx(stats.hypergeom.logsf(299, 10_000, 3_000, 400), rel=1e-9)
    assert tails[0] < -150


def test_bounds_of_odds_ratios_are_scipys() -> None:
    for cells in ([[8, 2], [2, 28]], [[20, 80], [100, 900]], [[3, 27], [5, 400]]):
        (hits, misses), (other_hits, other_misses) = cells
        table = TwoByTwoTables.of(
            [hits], [hits + misses], hits + other_hits, hits + misses + other_hits + other_misses
        )
        bound = np.exp(lower_log_odds(table, np.array([1e-3])))[0]
        interval = stats.contingency.odds_ratio(cells, kind="conditional").confidence_interval(
            0.999, "greater"
        )
        assert bound == pytest.approx(interval.low, rel=1e-5)


def test_a_group_without_more_hits_than_possible_has_no_lower_bound() -> None:
    assert lower_log_odds(TwoByTwoTables.of([0], [30], 10, 100), np.array([0.05]))[0] == -np.inf


def test_attainable_tails_are_all_tails_of_a_size() -> None:
    tails = np.exp(attainable_tails(np.array([30]), 40, 200))[0]
    every = stats.hypergeom.sf(np.arange(-1, 31), 200, 40, 30)
    for tail in tails[(tails > 1e-12) & (tails < 1)]:
        assert np.abs(every / tail - 1).min() < 1e-6
    assert len(tails[(tails > 1e-12) & (tails < 1 - 1e-9)]) > 15


def test_what_tests_spend_is_the_largest_possible_p_value() -> None:
    spent = spent_by_tables(np.array([30, 50, 30]), 40, 200)(np.array([0.01, 0.001, 1e-9]))
    for size, level, got in zip((30, 50, 30), (0.01, 0.001, 1e-9), spent, strict=True):
        every = stats.hypergeom.sf(np.arange(-1, size + 1), 200, 40, size)
        assert got == pytest.approx(every[every <= level].max(), rel=1e-6)


def test_bounds_of_means_cover_and_exclude() -> None:
    """Solved by SciPy's root finder."""

    def divergence(mean: float, other: float) -> float:
        return float(stats.entropy([mean, 1 - mean], [other, 1 - other]))

    for mean, size, level in ((0.2, 100.0, 0.05), (0.9, 30.0, 1e-4), (0.01, 1_000.0, 0.01)):
        target = -np.log(level) / size
        low = brentq(lambda at: divergence(mean, at) - target, 1e-12, mean)  # noqa: B023
        high = brentq(lambda at: divergence(mean, at) - target, mean, 1 - 1e-12)  # noqa: B023
        arguments = (np.array([mean]), np.array([size]), np.log([level]))
        assert lower_mean(*arguments)[0] == pytest.approx(low, abs=1e-9)
        assert upper_mean(*arguments)[0] == pytest.approx(high, abs=1e-9)


def test_a_difference_of_means_is_significant_where_bounds_are_apart() -> None:
    """At the level of the p-value itself, both bounds meet."""
    means, sizes, others, other_sizes = np.array([[0.6], [80.0], [0.3], [500.0]])
    log_p = log_tail_of_difference(means, sizes, others, other_sizes)
    half = log_p - np.log(2)
    assert lower_mean(means, sizes, half)[0] == pytest.approx(
        upper_mean(others, other_sizes, half)[0], abs=1e-6
    )


def one_group(hits: int, rows: int, other_hits: int, other_rows: int) -> ComparedSums:
    return ComparedSums(
        *np.array([[rows], [hits], [1], [other_rows], [other_hits], [1]], dtype=np.float64)
    )


@pytest.mark.parametrize("rates", [(0.3, 0.3), (0.5, 0.3), (0.03, 0.01), (0.95, 0.9), (0.2, 0.6)])
@pytest.mark.parametrize("exact", [True, False])
def test_bounds_of_gaps_hold_as_often_as_stated(rates: tuple[float, float], exact: bool) -> None:
    """With two binomial samples: of 1,500 pairs, at most 5% of either bound are wrong."""
    rng = np.random.default_rng(5)
    rows = 40
    other_rows = 300
    hits = rng.binomial(rows, rates[0], 1_500)
    other_hits = rng.binomial(other_rows, rates[1], 1_500)
    ones = np.ones(1_500)
    sides = ComparedSums(rows * ones, hits * 1.0, ones, other_rows * ones, other_hits * 1.0, ones)
    levels = np.full(1_500, 0.049)
    truth = rates[0] - rates[1]
    low = lower_gaps(sides, levels, range_levels=0.001, exact=exact)
    high = upper_gaps(sides, levels, range_levels=0.001, exact=exact)
    assert (low > truth).mean() <= 0.05
    assert (high < truth).mean() <= 0.05
    assert (low <= high).all()
    gaps = hits / rows - other_hits / other_rows
    assert (low <= gaps + 1e-9).all()
    assert (gaps <= high + 1e-9).all()


def test_a_bound_is_positive_where_the_test_is_clearly_significant() -> None:
    sides = one_group(100, 100, 0, 300)
    low = lower_gaps(sides, np.array([1e-3]), range_levels=1e-5, exact=True)[0]
    assert 0.8 < low < 1


def plain_step_down(p: Any, parents: Any, shares: Any, level: float) -> tuple[set[int], set[int]]:
    """By loops: levels in proportion to the shares, of which a finished group keeps half."""
    finished: set[int] = set()
    while True:
        kept = sum(share * (0.5 if at in finished else 1) for at, share in enumerate(shares))
        levels = [min(level, level * share / kept) for share in shares]
        worse = {at for at in range(len(p)) if p[at] <= levels[at]}
        both = {at for at in worse if parents[at] <= levels[at] / 2}
        if both <= finished:
            return worse, both | finished
        finished |= both


def test_the_step_down_is_that_of_loops() -> None:
    rng = np.random.default_rng(2)
    gained = 0
    for _ in range(200):
        p = rng.uniform(size=8) ** 6
        parents = rng.uniform(size=8) ** 6
        shares = rng.dirichlet(np.ones(8))
        shown = step_down(np.log(p), np.log(parents), shares, 0.05, lambda levels: levels)
        worse, finished = plain_step_down(p, parents, shares, 0.05)
        assert set(np.flatnonzero(shown.is_worse)) == worse
        assert set(np.flatnonzero(shown.is_worse_than_parents)) == finished
        gained += len(worse) > int((p <= 0.05 * shares).sum())
    assert gained > 5  # sets in which a group gained from the level of another


def test_shares_of_a_level_sum_to_one_and_leave_half_to_all() -> None:
    sizes = np.array([30.0, 31.0, 200.0, 200.0, 400.0, 2_000.0] * 20)
    shares = level_shares(sizes, 5_000.0, 0.05)
    assert shares.sum() == pytest.approx(1)
    assert shares.min() >= 0.5 / len(sizes)
    assert shares[2] > shares[0]
