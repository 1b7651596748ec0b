"""Tables of rates from counts: every figure by hand, by SciPy, statsmodels' formula or
exhaustion.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, fisher_exact

from tests.seams.figures import (
    GroupRates,
    Interval,
    RatioRule,
    compare_rates,
    effective_counts,
    fisher_p,
    impact_ratios,
    is_below,
    ratio_intervals,
    wilson_interval,
)


def table(selected: list[int], rows: list[int], *, unknown: int = 0, **rule: object) -> Any:
    counts = np.array([[n - yes, yes] for yes, n in zip(selected, rows, strict=True)], dtype=float)
    names = [str(place) for place in range(len(rows))]
    rates = [
        GroupRates(name, n, yes / n) for name, yes, n in zip(names, selected, rows, strict=True)
    ]
    return compare_rates(rates, counts, all_rows=sum(rows) + unknown, rule=RatioRule(**rule))  # type: ignore[arg-type]


def smallest(counts: np.ndarray) -> Interval | None:
    rates = counts[:, 1] / counts.sum(1)
    if rates.max() == 0:
        return None
    return ratio_intervals(counts, (rates / rates.max()).tolist(), confidence=0.95)[1]


@pytest.mark.oracle("GroupRates.selected", "GroupRates.share", "GroupRates.few")
def test_a_table_by_hand() -> None:
    """40 of 100, 30 of 50, 1 of 2 and 10 unknown: of 162 rows, 2 are 1.2 %."""
    found = table([40, 30, 1], [100, 50, 2], unknown=10)
    first, second, third = found.rates
    assert (found.reference, found.ratio) == ("1", 2 / 3)
    assert (first.selected, first.ratio, first.left_out, first.few) == (
        40,
        float(Fraction(2, 3)),
        "",
        False,
    )
    assert first.share == 100 / 162
    assert first.shortfall == 20  # 60 of 100 are 60 %
    assert first.p_value == pytest.approx(fisher_exact([[40, 60], [30, 20]]).pvalue, rel=1e-9)
    assert (second.ratio, second.p_value, second.shortfall) == (1.0, None, None)
    assert (third.ratio, third.p_value, third.shortfall, third.left_out) == (
        None,
        None,
        None,
        "small_share",
    )
    assert (third.selection_rate, third.few) == (0.5, True)


def test_a_named_reference_may_be_exceeded() -> None:
    found = table([40, 30], [100, 50], reference="0")
    assert [rate.ratio for rate in found.rates] == [1.0, 1.5]
    assert (found.reference, found.ratio, found.rates[1].shortfall) == ("0", 1.0, 0)
    interval = found.rates[1].ratio_interval
    assert interval is not None
    assert interval.low < 1.5 < interval.high
    assert found.rates[0].ratio_interval is None


def test_a_reference_that_is_left_out_leaves_no_ratio() -> None:
    found = table([1, 30, 20], [2, 100, 98], reference="0", min_group_share=0.02)
    assert (found.reference, found.ratio, found.interval) == (None, None, None)
    assert [rate.left_out for rate in found.rates] == [
        "small_share",
        "reference_small_share",
        "reference_small_share",
    ]
    # exactly 1 % is not under it
    kept = table([1, 30, 20], [2, 100, 98], reference="0", min_group_share=0.01)
    assert (kept.reference, kept.rates[1].ratio) == ("0", 0.6)


def test_the_highest_rate_is_that_of_a_category_that_is_not_left_out() -> None:
    found = table([2, 50, 25], [2, 100, 100])  # everyone of two
    assert (found.reference, found.ratio) == ("1", 0.5)


def test_nobody_selected_leaves_no_ratio_and_rates_of_zero_are_ratios_of_zero() -> None:
    nobody = table([0, 0], [50, 60])
    assert (nobody.reference, nobody.ratio) == (None, None)
    assert [(rate.ratio, rate.left_out) for rate in nobody.rates] == [(None, ""), (None, "")]
    assert nobody.rates[0].interval == wilson_interval(0.0, 50, 0.95)
    none = table([0, 30], [50, 60])
    assert (none.rates[0].ratio, none.rates[0].shortfall) == (0.0, 25)
    reference = table([0, 30], [50, 60], reference="0")
    assert (reference.reference, [rate.ratio for rate in reference.rates]) == (None, [None, None])


@pytest.mark.oracle(
    "GroupRates.size",
    "GroupRates.interval",
    "GroupRates.ratio",
    "GroupRates.p_value",
    "GroupRates.shortfall",
    "GroupRates.left_out",
)
@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(
        st.integers(1, 80).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
        min_size=2,
        max_size=6,
    ),
    unknown=st.integers(0, 50),
    min_group_share=st.sampled_from([0.0, 0.02, 0.1, 0.3]),
)
def test_every_figure_is_that_of_its_definition(
    counts: list[tuple[int, int]], unknown: int, min_group_share: float
) -> None:
    selected, rows = map(list, zip(*counts, strict=True))
    found = table(selected, rows, unknown=unknown, min_group_share=min_group_share)
    everyone = sum(rows) + unknown
    inside = [
        at for at, n in enumerate(rows) if Fraction(n, everyone) >= Fraction(str(min_group_share))
    ]
    rates = [Fraction(*own) for own in counts]
    base = max((rates[at] for at in inside), default=Fraction(0))
    assert [not rate.left_out for rate in found.rates] == [at in inside for at in range(len(rows))]
    for at, rate in enumerate(found.rates):
        expected = float(rates[at] / base) if base and at in inside else None
        assert rate.ratio == expected
        assert rate.ratio is None or rate.ratio <= 1
        assert (rate.interval.low, rate.interval.high) == pytest.approx(  # type: ignore[union-attr]
            tuple(binomtest(*counts[at]).proportion_ci(method="wilson")), abs=1e-9
        )
        if expected is not None and rate.group != found.reference:
            reference = counts[int(found.reference or 0)]
            assert rate.shortfall == ceil(base * rows[at] - selected[at])
            cells = [[yes, n - yes] for yes, n in (counts[at], reference)]
            if min(rows[at], reference[1]) < 30:
                assert rate.p_value is None  # of so few rows there is no test
            else:
                assert rate.p_value == pytest.approx(fisher_exact(cells).pvalue, rel=1e-7)
    headline = [at for at in inside if rows[at] >= 30]
    if int(found.reference or -1) not in headline or len(headline) < 2:
        headline = inside
    assert found.ratio == (
        min(float(rates[at] / base) for at in headline) if base and inside else None
    )


@pytest.mark.parametrize(
    "cells",
    [
        (3, 10, 40, 140),
        (3_000, 13_000, 4_000, 14_000),
        (5, 2_000_000, 9, 1_000_000),
        (0, 7, 0, 9),
        (7, 7, 9, 9),
    ],
)
def test_fishers_p_is_scipys(cells: tuple[int, int, int, int]) -> None:
    yes, n, other, m = cells
    assert fisher_p(*cells) == pytest.approx(
        fisher_exact([[yes, n - yes], [other, m - other]]).pvalue, rel=1e-6
    )


def test_fishers_p_of_very_many_rows_ends_at_zero() -> None:
    assert fisher_p(30_000_000, 130_000_000, 40_000_000, 170_000_000) < 1e-300
    assert fisher_p(30_000_000, 100_000_000, 30_000_100, 100_000_000) == pytest.approx(
        0.9877, abs=1e-3
    )


@pytest.mark.oracle("ReliabilityBin.interval")
@pytest.mark.parametrize(
    ("share", "count", "confidence"), [(0.0, 10, 0.95), (0.3, 40, 0.9), (1.0, 7, 0.99)]
)
def test_wilsons_interval_solves_its_equation(share: float, count: int, confidence: float) -> None:
    """|p - share| = z sqrt(p (1 - p) / n) at both ends."""
    interval = wilson_interval(share, count, confidence)
    expected = binomtest(round(share * count), count).proportion_ci(confidence, method="wilson")
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_weighted_rows_are_not_counted_and_have_no_p_value() -> None:
    counts = np.array([[3.0, 1.5], [2.0, 4.0]])
    rates = [GroupRates("a", 9, 1 / 3), GroupRates("b", 8, 2 / 3)]
    found = compare_rates(
        rates, counts, all_rows=17, rule=RatioRule(), squares=np.array([4.0, 5.0]), weighted=True
    )
    assert [(rate.selected, rate.p_value, rate.shortfall) for rate in found.rates] == [
        (None, None, None)
    ] * 2
    assert [rate.ratio for rate in found.rates] == [0.5, 1.0]
    assert found.rates[0].interval == wilson_interval(1 / 3, 4.5**2 / 4, 0.95)
    blind = compare_rates(rates, counts, all_rows=17, rule=RatioRule(), weighted=True)
    assert (blind.interval, blind.rates[0].interval, blind.rates[0].ratio_interval) == (
        None,
        None,
        None,
    )


def test_the_smallest_ratio_and_its_interval_are_those_of_categories_with_enough_rows() -> None:
    """One person of 41 makes no headline: nor does a ratio of 0 widen the interval of the
    others.
    """
    with_one, without = (
        table([20, 30, 0], [40, 45, 1], min_group_share=0.0),
        table([20, 30], [40, 45]),
    )
    assert (with_one.rates[2].ratio, with_one.rates[2].few, with_one.rates[2].p_value) == (
        0.0,
        True,
        None,
    )
    assert (
        (with_one.ratio, with_one.interval)
        == (without.ratio, without.interval)
        == (0.75, without.interval)
    )
    # everyone of one: the reference is small itself
    few = table([1, 30, 20], [1, 45, 40], min_group_share=0.0)
    assert (few.reference, few.ratio, [rate.p_value for rate in few.rates]) == (
        "0",
        0.5,
        [None] * 3,
    )


def test_as_many_rows_as_the_minimum_are_enough_and_one_large_group_makes_no_headline_alone() -> (
    None
):
    found = table([4, 9, 5], [30, 29, 30], min_group_share=0.0, min_group_size=30)
    assert [rate.few for rate in found.rates] == [False, True, False]
    assert found.ratio == pytest.approx((4 / 30) / (9 / 29))
    alone = table([4, 9, 5], [30, 29, 29], min_group_share=0.0, min_group_size=30)
    assert [rate.few for rate in alone.rates] == [False, True, True]
    # of all groups, as two large ones are missing
    assert alone.ratio == pytest.approx((4 / 30) / (9 / 29))
    # the large group itself
    reference = table([9, 4, 5], [30, 29, 29], min_group_share=0.0, min_group_size=30)
    assert (reference.reference, reference.ratio) == ("0", pytest.approx((4 / 29) / (9 / 30)))


def test_two_of_a_hundred_rows_are_enough_for_a_ratio_by_default() -> None:
    found = table([1, 60], [2, 98])
    assert [rate.left_out for rate in found.rates] == ["", ""]
    assert [rate.left_out for rate in table([1, 60], [2, 99]).rates] == ["small_share", ""]


def test_the_smallest_ratio_is_that_of_categories_that_have_one() -> None:
    counts = np.array([[5.0, 5.0], [2.0, 8.0], [1.0, 0.0]])
    assert impact_ratios(counts, [10, 10, 1], 100, RatioRule()).smallest == 0.625
    nobody = np.array([[10.0, 0.0], [20.0, 0.0]])
    assert impact_ratios(nobody, [10, 20], 30, RatioRule()).smallest is None


def test_a_ratio_of_four_fifths_is_not_below_for_its_last_digits() -> None:
    assert impact_ratios(np.array([[4.0, 6.0], [5.0, 15.0]]), [10, 20], 30, RatioRule()).values == [
        0.8,
        1.0,
    ]
    assert [is_below(ratio) for ratio in (0.79, 0.8, 0.6 / 0.75)] == [True, False, False]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_interval_of_the_ratio_covers_the_truth(weighted: bool) -> None:
    generator = np.random.default_rng(5)
    shares, sizes, truth, repeats = (0.3, 0.5), (300, 400), 0.6, 400
    covered = 0
    for _ in range(repeats):
        counts, squares = np.zeros((2, 2)), np.zeros(2)
        for group, (share, size) in enumerate(zip(shares, sizes, strict=True)):
            selected = generator.random(size) < share
            weights = generator.uniform(0.5, 1.5, size) if weighted else np.ones(size)
            counts[group] = np.bincount(selected, weights, 2)
            squares[group] = (weights**2).sum()
        found = smallest(effective_counts(counts, squares))
        covered += found is not None and found.low <= truth <= found.high
    assert 0.92 <= covered / repeats <= 0.98


@pytest.mark.parametrize(
    ("shares", "size"),
    [
        ((0.5,) * 10, 100),
        ((*(0.5,) * 9, 0.25), 100),
        (tuple(np.linspace(0.3, 0.6, 10)), 100),
        ((0.05, 0.6), 10),
        ((0.3, 0.6), 10),
    ],
)
def test_the_interval_of_the_ratio_covers_with_many_groups_and_with_few_samples(
    shares: tuple[float, ...], size: int
) -> None:
    """And it holds the ratio of the sample.

    Of many groups the extreme ones are extreme by chance, too.
    """
    generator, truth, repeats = np.random.default_rng(6), min(shares) / max(shares), 250
    covered = drawn = 0
    while drawn < repeats:
        selected = generator.binomial(size, shares).astype(float)
        if selected.max() == 0:
            continue
        found = smallest(np.stack([size - selected, selected], axis=1))
        assert found is not None
        assert 0 <= found.low <= selected.min() / selected.max() + 1e-12
        assert selected.min() / selected.max() - 1e-12 <= found.high <= 1
        covered += found.low <= truth <= found.high
        drawn += 1
    assert covered / repeats >= 0.92


def test_no_interval_where_nobody_is_selected_or_a_group_is_one_sample() -> None:
    assert table([0, 0], [9, 10]).interval is None
    assert table([1, 5], [1, 15]).interval is None
    few = table([1, 0], [10, 10]).interval
    assert few is not None
    assert few.low == 0
    assert few.high > 0.5


@pytest.mark.parametrize("reference", ["highest", "2"])
def test_the_interval_of_each_ratio_covers_the_truth(reference: str) -> None:
    """Of each group by itself; the highest rate is mostly that of group 2, and picked because
    it is.
    """
    generator, shares, sizes = (
        np.random.default_rng(7),
        np.array([0.2, 0.35, 0.5]),
        np.array([80, 200, 300]),
    )
    covered = np.zeros(2)
    for _ in range(400):
        found = table(
            generator.binomial(sizes, shares).tolist(), sizes.tolist(), reference=reference
        )
        for place in range(2):
            interval = found.rates[place].ratio_interval
            assert interval is not None
            assert interval.low <= (found.rates[place].ratio or 0) <= interval.high
            covered[place] += interval.low <= shares[place] / 0.5 <= interval.high
    # Bounds that hold for two pairs at once, of which one hardly ever matters, hold more often.
    assert ((covered / 400 >= 0.92) & (covered / 400 <= (0.98 if reference == "2" else 1.0))).all()
