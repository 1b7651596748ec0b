"""Two rates in standard deviations and odds, against SciPy, published figures and formulas."""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency, hypergeom, norm
from scipy.stats.contingency import odds_ratio as scipy_odds_ratio

from tests.seams.figures import (
    RatePair,
    common_odds,
    odds_ratio,
    odds_ratio_interval,
    standard_deviations,
)

# R's UCBAdmissions: women and men by department, admitted and applied
BERKELEY = [
    RatePair(89, 108, 512, 825),
    RatePair(17, 25, 353, 560),
    RatePair(202, 593, 120, 325),
    RatePair(131, 375, 138, 417),
    RatePair(94, 393, 53, 191),
    RatePair(24, 341, 22, 373),
]


def drawn(seed: int) -> RatePair:
    rng = np.random.default_rng(seed)
    rows, others = rng.integers(5, 200, 2)
    return RatePair(
        int(rng.integers(1, rows)), int(rows), int(rng.integers(1, others)), int(others)
    )


def cells(pair: RatePair) -> list[list[int]]:
    return [
        [pair.selected, pair.rows - pair.selected],
        [pair.other_selected, pair.other_rows - pair.other_selected],
    ]


@pytest.mark.parametrize("seed", range(20))
def test_the_square_of_the_deviations_is_pearsons_chi_squared(seed: int) -> None:
    pair = drawn(seed)
    found = standard_deviations(pair)
    assert found is not None
    assert found**2 == pytest.approx(chi2_contingency(cells(pair), correction=False).statistic)
    assert (found < 0) == (pair.selected / pair.rows < pair.other_selected / pair.other_rows)


@pytest.mark.parametrize("seed", range(20))
def test_odds_ratios_are_scipys(seed: int) -> None:
    pair = drawn(seed)
    expected = scipy_odds_ratio(cells(pair), kind="sample")
    assert odds_ratio(pair) == pytest.approx(expected.statistic)
    interval = odds_ratio_interval(pair, 0.9)
    assert interval is not None
    ends = expected.confidence_interval(0.9)
    assert (interval.low, interval.high) == (pytest.approx(ends.low), pytest.approx(ends.high))


def test_counts_of_zero() -> None:
    assert standard_deviations(RatePair(0, 5, 0, 7)) is None
    assert odds_ratio(RatePair(0, 5, 3, 7)) == 0
    assert odds_ratio(RatePair(5, 5, 3, 7)) == inf
    assert odds_ratio(RatePair(0, 5, 0, 7)) is None
    assert odds_ratio_interval(RatePair(0, 5, 3, 7), 0.95) is None
    assert common_odds([RatePair(0, 5, 0, 7)], 0.95) == (None, None, None, None)
    complete = common_odds([RatePair(5, 5, 3, 7), RatePair(4, 4, 0, 6)], 0.95)
    assert (complete.odds_ratio, complete.interval) == (inf, None)
    assert complete.p_value is not None


def test_berkeley_admissions_are_those_of_r() -> None:
    """mantelhaen.test(UCBAdmissions) is of men to women: 0.9046968 (0.7719074 to 1.0603298)."""
    found = common_odds([RatePair(*pair[2:], *pair[:2]) for pair in BERKELEY], 0.95)
    assert found.odds_ratio == pytest.approx(0.9046968, abs=1e-7)
    assert found.interval is not None
    assert found.interval.low == pytest.approx(0.7719074, abs=1e-6)
    assert found.interval.high == pytest.approx(1.0603298, abs=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_the_test_over_strata_is_by_the_moments_of_hypergeometric_counts(seed: int) -> None:
    strata = [drawn(10 * seed + part) for part in range(3)]
    found = common_odds(strata, 0.95)
    counts = [
        hypergeom(pair.rows + pair.other_rows, pair.selected + pair.other_selected, pair.rows)
        for pair in strata
    ]
    difference = sum(
        pair.selected - count.mean() for pair, count in zip(strata, counts, strict=True)
    )
    statistic = difference**2 / sum(count.var() for count in counts)
    assert found.statistic == pytest.approx(statistic)
    assert found.p_value == pytest.approx(chi2.sf(statistic, 1))
    assert found.p_value == pytest.approx(2 * norm.sf(sqrt(statistic)))


def test_one_stratum_has_the_odds_ratio_and_interval_of_its_table() -> None:
    pair = drawn(3)
    found = common_odds([pair], 0.95)
    assert found.odds_ratio == pytest.approx(odds_ratio(pair))
    interval = odds_ratio_interval(pair, 0.95)
    assert interval is not None
    assert found.interval is not None
    assert found.interval.low == pytest.approx(interval.low)
