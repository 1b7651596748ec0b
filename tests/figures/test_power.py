"""Planned rows against simulated tests of SciPy, which share nothing with the closed forms."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import stats
from scipy.integrate import quad

from metrifair import AuditOptions, audit
from metrifair.errors import DataError
from metrifair.evidence import detectable_gap, rows_needed
from tests.seams.figures import _Plan
from tests.seams.wording import describe

RATES = [
    # gap, mean rate, ratio, comparisons
    (0.1, 0.5, 1.0, 1),
    (0.2, 0.5, 1.0, 1),
    (0.1, 0.2, 1.0, 1),
    (0.15, 0.4, 2.0, 1),
    (0.1, 0.3, 1.0, 6),
    (0.3, 0.5, 2.0, 3),
]
SCORES = [
    # gap, ratio, comparisons
    (0.1, 1.0, 1),
    (0.2, 1.0, 1),
    (0.3, 1.0, 1),
    (0.15, 3.0, 1),
    (0.2, 1.0, 6),
    (0.1, 2.0, 3),
]


def fisher_power(
    draws: int, rows: tuple[int, int], rates: tuple[float, float], level: float, rng: Generator
) -> float:
    """The share of samples whose rates differ significantly by Fisher's exact test."""
    chosen, times = np.unique(
        np.stack([rng.binomial(n, p, draws) for n, p in zip(rows, rates, strict=True)], 1),
        axis=0,
        return_counts=True,
    )
    tables = ([[a, rows[0] - a], [b, rows[1] - b]] for a, b in chosen.tolist())
    significant = np.array([stats.fisher_exact(table)[1] <= level for table in tables])
    return float(times[significant].sum() / draws)


def peaked(rows: int, gap: float, rng: Generator) -> NDArray[np.float64]:
    """Scores whose distribution function is off the diagonal by half the gap at 1/2, and by
    less on both sides.
    """
    height, share = 0.5 + gap / 2, rng.random(rows)
    return np.where(share < height, share / (2 * height), 1 - (1 - share) / (2 * (1 - height)))


def kolmogorov_power(
    draws: int, rows: tuple[int, int], gap: float, level: float, rng: Generator
) -> float:
    """The share of samples whose distance is beyond the critical value of the Kolmogorov test."""
    critical = stats.kstwo.isf(level, round(rows[0] * rows[1] / sum(rows)))
    samples = ((peaked(rows[0], gap, rng), peaked(rows[1], -gap, rng)) for _ in range(draws))
    return float(np.mean([largest_gap(*pair) >= critical for pair in samples]))


def largest_gap(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Between the shares at or below each score; SciPy's statistic, without the time of its
    p-value.
    """
    scores = np.concatenate([one, other])
    shares = [
        np.searchsorted(np.sort(side), scores, side="right") / len(side) for side in (one, other)
    ]
    return float(np.abs(shares[0] - shares[1]).max())


def simulated(setting: tuple[float, ...], draws: int) -> float:
    """The power with the planned rows, which should be 0.8."""
    gap, *rate, ratio, comparisons = setting
    level, rng = 0.05 / comparisons, np.random.default_rng(0)
    if rate:
        rows = rows_needed(gap, rate=rate[0], ratio=ratio, comparisons=int(comparisons))
        return fisher_power(draws, rows, (rate[0] - gap / 2, rate[0] + gap / 2), level, rng)
    rows = rows_needed(gap, metric="kolmogorov", ratio=ratio, comparisons=int(comparisons))
    return kolmogorov_power(draws, rows, gap, level, rng)


@cache
def recorded() -> dict[tuple[float, ...], float]:
    """The power of each setting on the page of results."""
    text = (Path(__file__).parents[2] / "docs" / "results" / "power.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith(("| rates", "| scores"))]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {
        tuple(float(cell) for cell in row[1:5] if cell): float(row[6].rstrip("%")) / 100
        for row in rows
    }


@pytest.mark.page("power.md")
def test_the_page_has_every_setting_within_3_points() -> None:
    assert list(recorded()) == [*RATES, *SCORES]
    assert all(power == pytest.approx(0.8, abs=0.03) for power in recorded().values())


FAST = (RATES[1], RATES[5], SCORES[1], SCORES[2])  # of few rows
EVERY = [
    pytest.param(one, marks=[] if one in FAST else pytest.mark.slow) for one in (*RATES, *SCORES)
]


@pytest.mark.parametrize("setting", EVERY)
def test_planned_rows_have_the_power_asked_for(setting: tuple[float, ...]) -> None:
    power = simulated(setting, 4_000)
    assert power == pytest.approx(0.8, abs=0.03)
    assert power == pytest.approx(recorded()[setting], abs=0.005)


@pytest.mark.parametrize("power", [0.6, 0.8, 0.95])
@pytest.mark.parametrize("ratio", [1.0, 2.0, 5.0])
@pytest.mark.parametrize(("gap", "rate"), [(0.5, 0.5), (0.3, 0.2), (0.1, 0.4)])
def test_planned_rows_are_those_of_fleiss_tytun_and_ury(
    gap: float, rate: float, ratio: float, power: float
) -> None:
    """Biometrics 36 (1980): sample sizes with a continuity correction, solved for the rows."""
    low, high = rate - gap / 2, rate + gap / 2
    pooled = (low + ratio * high) / (1 + ratio)
    spread = stats.norm.isf(0.025) * np.sqrt((ratio + 1) * pooled * (1 - pooled))
    spread += stats.norm.ppf(power) * np.sqrt(ratio * low * (1 - low) + high * (1 - high))
    uncorrected = spread**2 / (ratio * gap**2)
    corrected = (1 + np.sqrt(1 + 2 * (ratio + 1) / (uncorrected * ratio * gap))) ** 2 / 4
    planned = rows_needed(gap, rate=rate, ratio=ratio, power=power)
    assert planned[0] == np.ceil(uncorrected * corrected)
    assert planned[1] == np.ceil(ratio * planned[0])


def test_plans_are_for_two_equal_groups_at_the_widest_rate_unless_asked_otherwise() -> None:
    named = {"rate": 0.5, "ratio": 1.0, "power": 0.8, "confidence": 0.95, "comparisons": 1}
    assert rows_needed(0.1) == rows_needed(0.1, metric="rate", **named)  # type: ignore[arg-type]
    del named["ratio"]
    assert detectable_gap(90, 90) == detectable_gap(90, 90, metric="rate", **named)  # type: ignore[arg-type]


@pytest.mark.parametrize("metric", ["rate", "kolmogorov"])
def test_the_detectable_gap_is_the_one_the_rows_were_planned_for(
    metric: Literal["rate", "kolmogorov"],
) -> None:
    for gap in (0.03, 0.1, 0.4):
        rows, others = rows_needed(gap, metric=metric, power=0.9, comparisons=4)
        found = detectable_gap(rows, others, metric=metric, power=0.9, comparisons=4)
        fewer = detectable_gap(rows - 1, others - 1, metric=metric, power=0.9, comparisons=4)
        assert found is not None
        assert fewer is not None
        assert found <= gap < fewer


@pytest.mark.parametrize("metric", ["rate", "kolmogorov"])
def test_without_a_gap_power_is_the_level(metric: Literal["rate", "kolmogorov"]) -> None:
    one_sided = _Plan(metric, 0.5, 0.05).power_at(0.0, 10**8, 10**8)
    assert one_sided == pytest.approx(0.025, abs=1e-4)


@pytest.mark.parametrize("metric", ["rate", "kolmogorov"])
def test_any_number_of_rows_can_be_planned_with(metric: Literal["rate", "kolmogorov"]) -> None:
    gaps = [
        detectable_gap(rows, 10 * rows, metric=metric) for rows in (1, 2, 10, 1_000, 10**6, 10**9)
    ]
    assert gaps[0] is None
    known = [gap for gap in gaps if gap is not None]
    assert len(known) >= 4
    assert known == sorted(known, reverse=True)
    assert known[-1] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"gap": 0.5, "rate": 0.1}, "gap must be at most 0.2 at rate 0.1"),
        ({"gap": 0.0}, "gap is too small"),
        ({"gap": 0.1, "power": 80}, "80 percent is 0.8"),
        ({"gap": 0.1, "metric": "energy"}, "metric must be one of 'rate', 'kolmogorov'"),
        ({"gap": 0.1, "ratio": 0.5}, "ratio must be a finite number, at least 1"),
        ({"gap": 0.1, "comparisons": 0}, "comparisons must be"),
    ],
)
def test_arguments_that_plan_nothing_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        rows_needed(**arguments)


def bridge_power(gap: float, rows: tuple[int, int], level: float) -> float:
    """By an integral over the height of the bridge in the middle, on either side of which it
    crosses or not.
    """
    drift = gap * np.sqrt(rows[0] * rows[1] / sum(rows))
    critical = np.sqrt(-np.log(level / 2) / 2)

    def stays(height: float) -> float:
        crosses = np.exp(-2 * critical * (critical - drift - height) / 0.5)
        return float(stats.norm.pdf(height, scale=0.5) * (1 - crosses) ** 2)

    return 1 - float(quad(stays, -6, critical - drift)[0])


@pytest.mark.oracle("Finding.detectable")
@pytest.mark.extended
def test_an_audit_that_finds_nothing_says_what_it_could_have_found() -> None:
    rng = np.random.default_rng(5)
    groups = rng.choice(["a", "b", "c"], 600)
    decisions, seldom = rng.integers(0, 2, 600), (rng.random(600) < 0.1).astype(int)
    for scores, power in ((rng.random(600), bridge_power), (decisions, None), (seldom, None)):
        options = AuditOptions(resamples=50, permutations=0)
        findings = audit(
            None, scores, sensitive_features=groups, options=options, random_state=0
        ).findings
        shown = [finding for finding in findings if finding.metric == "kolmogorov"]
        assert [finding.significant for finding in shown] == [False] * 3
        for finding in shown:
            assert finding.detectable is not None
            if power is not None:
                assert power(finding.detectable, finding.sizes, 0.05 / 3) == pytest.approx(
                    0.8, abs=1e-6
                )
            else:
                assert finding.shares is not None
                rate = 1 - sum(finding.shares) / 2
                rates = (rate - finding.detectable / 2, rate + finding.detectable / 2)
                assert fisher_power(1_000, finding.sizes, rates, 0.05 / 3, rng) == pytest.approx(
                    0.8, abs=0.05
                )
            assert "reliably detect only gaps of " in describe(finding).meaning
    assert all(finding.detectable is None for finding in findings if finding.metric != "kolmogorov")


def test_where_a_gap_is_found_nothing_else_could_have_been() -> None:
    scores = np.linspace(0, 1, 200)
    findings = audit(None, scores, sensitive_features=scores > 0.5, random_state=0).findings
    assert [finding.significant for finding in findings] == [True] * 3
    assert [finding.detectable for finding in findings] == [None] * 3
