"""Figures in the records of whole audits, by formulas written out here and by enumeration."""

from __future__ import annotations

from itertools import combinations
from math import exp, log, sqrt

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta, ks_2samp, norm, wasserstein_distance

from metrifair import AuditOptions, audit, audit_file, compare

Z = float(norm.isf(0.025))
BARE = AuditOptions(resamples=0, permutations=0)


def mean_distance(first: np.ndarray, second: np.ndarray) -> float:
    """The mean absolute difference of two independent rows."""
    return float(np.abs(first[:, None] - second[None, :]).mean())


def within_distance(scores: np.ndarray) -> float:
    """The mean absolute difference of two different rows."""
    rows = len(scores)
    return mean_distance(scores, scores) * rows / (rows - 1)


@pytest.mark.oracle("Finding.unbiased")
def test_the_unbiased_energy_distance_leaves_pairs_of_a_row_with_itself_out() -> None:
    generator = np.random.default_rng(0)
    first, second = generator.random(40), generator.random(60) ** 2
    groups = np.repeat(["a", "b"], [40, 60])
    found = audit(
        None,
        np.concatenate([first, second]),
        sensitive_features=groups,
        metrics=["energy"],
        options=BARE,
    )
    (one,) = found.findings
    expected = 2 * mean_distance(first, second) - within_distance(first) - within_distance(second)
    assert one.unbiased == pytest.approx(expected, abs=1e-12)


@pytest.mark.oracle("Finding.p_value")
def test_a_p_value_is_the_share_of_all_ways_to_divide_the_rows() -> None:
    scores = np.array([0.1, 0.15, 0.3, 0.42, 0.5, 0.35, 0.61, 0.7, 0.8, 0.95])
    groups = np.repeat(["a", "b"], 5)
    options = AuditOptions(permutations=19_999, resamples=0, min_group_size=5)
    found = audit(
        None,
        scores,
        sensitive_features=groups,
        metrics=["wasserstein"],
        options=options,
        random_state=0,
    )
    observed = wasserstein_distance(scores[:5], scores[5:])
    reached = []
    for chosen in combinations(range(10), 5):
        rest = [row for row in range(10) if row not in chosen]
        distance = wasserstein_distance(scores[list(chosen)], scores[rest])
        reached.append(distance >= observed - 1e-12)
    assert 0.001 < np.mean(reached) < 0.2
    # the standard error of so many permutations is at most 0.003
    assert found.findings[0].p_value == pytest.approx(np.mean(reached), abs=0.015)


@pytest.mark.oracle("Finding.interval", "Finding.joint_interval", "Finding.significant")
def test_intervals_of_shifted_normal_scores_contain_the_shift() -> None:
    """Wasserstein's distance of two normal distributions of one width is the distance of their
    means.
    """
    contained, contained_jointly = [], []
    for seed in range(60):
        generator = np.random.default_rng(seed)
        groups = np.repeat(["a", "b"], 150)
        scores = generator.normal(0.5, 0.1, 300) + 0.1 * (groups == "b")
        found = audit(
            None,
            scores,
            sensitive_features=groups,
            metrics=["kolmogorov", "wasserstein"],
            options=AuditOptions(resamples=100, permutations=99),
            random_state=seed,
        )
        (one,) = [finding for finding in found.findings if finding.metric == "wasserstein"]
        assert one.interval is not None
        assert one.joint_interval is not None
        assert one.significant
        contained.append(one.interval.low <= 0.1 <= one.interval.high)
        contained_jointly.append(one.joint_interval.low <= 0.1 <= one.joint_interval.high)
    assert sum(contained) >= 52  # of 57 expected
    assert sum(contained_jointly) >= sum(contained)
    same = audit(None, np.tile(scores[:150], 2), sensitive_features=groups, random_state=0)
    assert [finding.significant for finding in same.findings] == [False] * len(same.findings)


@pytest.mark.oracle("Finding.bracket")
def test_figures_of_all_rows_lie_in_the_brackets_of_a_file_read_in_parts(tmp_path) -> None:
    generator = np.random.default_rng(1)
    groups = np.repeat(["a", "b"], 5000)
    scores = np.clip(generator.normal(0.5, 0.15, 10_000) - 0.1 * (groups == "b"), 0, 1)
    pl.DataFrame({"score": scores, "group": groups}).write_parquet(tmp_path / "s.parquet")
    options = AuditOptions(resamples=0, permutations=0, in_memory_rows=10)
    found = audit_file(tmp_path / "s.parquet", score="score", group="group", options=options)
    first, second = scores[:5000], scores[5000:]
    exact = {
        "kolmogorov": ks_2samp(first, second).statistic,
        "wasserstein": wasserstein_distance(first, second),
    }
    for finding in found.findings:
        if finding.metric in exact:
            bracket = finding.bracket
            assert bracket is not None
            assert bracket.high - bracket.low < 0.001
            assert bracket.low - 1e-12 <= exact[finding.metric] <= bracket.high + 1e-12


def log_rate(no: int, yes: int) -> tuple[float, float, float]:
    """The logarithm of a rate, and its errors below and above, by Jeffreys' posterior."""
    low, high = (log(beta.ppf(share, yes + 0.5, no + 0.5)) for share in (0.025, 0.975))
    center = log((yes + 0.5) / (yes + no + 1))
    return center, center - low, high - center


@pytest.mark.oracle(
    "Decisions.reference", "Decisions.selection_ratio_interval", "GroupRates.ratio_interval"
)
def test_the_interval_of_a_ratio_combines_those_of_two_rates() -> None:
    """Two groups: one ratio, whose bounds are those of one pair among two."""
    decisions = np.repeat([0, 1, 0, 1], [60, 40, 30, 70])
    groups = np.repeat(["a", "b"], 100)
    found = audit(None, decisions, sensitive_features=groups, options=BARE)
    (table,) = found.decisions
    rate, below, above = log_rate(60, 40)
    base, base_below, base_above = log_rate(30, 70)
    assert table.reference == "b"
    of_group = {one.group: one.ratio_interval for one in table.rates}
    low = exp(rate - base - sqrt(below**2 + base_above**2))
    high = min(1.0, exp(rate - base + sqrt(above**2 + base_below**2)))
    assert of_group["a"] is not None
    assert (of_group["a"].low, of_group["a"].high) == pytest.approx((low, high), rel=1e-9)
    smallest = table.selection_ratio_interval
    assert smallest is not None
    assert (smallest.low, smallest.high) == pytest.approx((low, high), rel=1e-9)


@pytest.mark.oracle(
    "Difference.before",
    "Difference.after",
    "Difference.difference",
    "Difference.interval",
    "Difference.p_value",
)
def test_the_difference_of_independent_audits_has_the_errors_of_both() -> None:
    """Of two Wasserstein distances away from 0, whose intervals need not be even."""
    generator = np.random.default_rng(2)
    groups = np.repeat(["a", "b"], 300)
    audits = []
    for shift in (0.1, 0.3):
        scores = generator.normal(0.5, 0.1, 600) + shift * (groups == "b")
        audits.append(
            audit(
                None,
                scores,
                sensitive_features=groups,
                metrics=["wasserstein"],
                options=AuditOptions(resamples=100, permutations=0),
                random_state=0,
            )
        )
    old, new = (one.findings[0] for one in audits)
    assert old.interval is not None
    assert new.interval is not None
    (difference,) = [one for one in compare(*audits).differences if one.metric == "wasserstein"]
    assert difference.before == pytest.approx(old.value)
    assert difference.after == pytest.approx(new.value)
    assert difference.difference == pytest.approx(new.value - old.value)
    centers = [(one.interval.low + one.interval.high) / 2 for one in (old, new)]
    halves = [(one.interval.high - one.interval.low) / 2 for one in (old, new)]
    half = sqrt(halves[0] ** 2 + halves[1] ** 2)
    center = centers[1] - centers[0]
    assert difference.interval is not None
    ends = difference.interval.low, difference.interval.high
    assert ends == pytest.approx((center - half, center + half))
    assert difference.p_value == pytest.approx(2 * norm.sf(Z * center / half), abs=1e-12)
