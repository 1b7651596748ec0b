"""Searches for groups against enumeration by masks, root finding and SciPy's distributions."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from metrifair import find_groups

ROWS = 8_000
LEAST = 200
CUTS = [30.0, 45.0, 60.0]
LEVEL = 0.05

Masks = dict[frozenset[tuple[str, int, int]], Any]
"""Rows by conditions: a column, with the first and the last of its levels."""


@cache
def people() -> tuple[dict[str, Any], Any]:
    """Rows of three columns; farm workers above 45 are much worse, and the others alike."""
    rng = np.random.default_rng(11)
    X = {
        "job": rng.choice(["farm", "sales", "tech"], ROWS),
        "sex": rng.choice(["f", "m"], ROWS),
        "age": rng.integers(18, 76, ROWS),
    }
    worse = (X["job"] == "farm") & (X["age"] > 45)
    return X, (rng.random(ROWS) < np.where(worse, 0.6, 0.2)).astype(float)


@cache
def searched() -> Any:
    X, bad = people()
    return find_groups(None, None, X, outcome=bad, min_rows=LEAST, cuts={"age": CUTS})


def levels() -> dict[str, tuple[Any, list[tuple[int, int]]]]:
    """The level of each row, and the conditions: one level, or neighboring bands of ages."""
    X, _ = people()
    jobs = np.searchsorted(["farm", "sales", "tech"], X["job"])
    sexes = np.searchsorted(["f", "m"], X["sex"])
    bands = np.searchsorted(CUTS, X["age"])
    single = [(level, level) for level in range(4)]
    return {
        "job": (jobs, single[:3]),
        "sex": (sexes, single[:2]),
        "age": (bands, [*single, (0, 1), (1, 2), (2, 3)]),
    }


def enumerated() -> Masks:
    """All groups with enough rows on both sides, by their masks."""
    groups = {}
    columns = levels()
    for size in (1, 2, 3):
        for names in itertools.combinations(columns, size):
            for spans in itertools.product(*(columns[name][1] for name in names)):
                rows = np.ones(ROWS, dtype=bool)
                for name, (first, last) in zip(names, spans, strict=True):
                    codes = columns[name][0]
                    rows &= (codes >= first) & (codes <= last)
                if LEAST <= rows.sum() <= ROWS - LEAST:
                    key = frozenset((name, *span) for name, span in zip(names, spans, strict=True))
                    groups[key] = rows
    return groups


def parents_of(key: frozenset[tuple[str, int, int]], groups: Masks) -> Masks:
    """Groups without one condition, or with one more band on either side."""
    found = {}
    for name, first, last in key:
        rest = key - {(name, first, last)}
        wider = [rest, rest | {(name, first - 1, last)}, rest | {(name, first, last + 1)}]
        found |= {parent: groups[parent] for parent in wider if parent in groups}
    return found


def key_of(conditions: Any) -> frozenset[tuple[str, int, int]]:
    """A group by its words."""
    names = {"≤30": (0, 0), "(30,45]": (1, 1), "(45,60]": (2, 2), ">60": (3, 3)}
    names |= {"≤45": (0, 1), "(30,60]": (1, 2), ">45": (2, 3)}
    for place, name in enumerate(["farm", "sales", "tech"]):
        names[name] = (place, place)
    names |= {"f": (0, 0), "m": (1, 1)}
    return frozenset((part.column, *names[part.value]) for part in conditions)


@pytest.mark.oracle(
    "SearchRecord.figure",
    "SearchRecord.rows",
    "SearchRecord.searched",
    "SearchRecord.repeated",
    "GapLimit.rows",
    "GapLimit.groups",
)
def test_the_groups_that_are_searched_are_those_of_an_enumeration() -> None:
    _, bad = people()
    groups = enumerated()
    record = searched().record
    repeated = sum(
        any(rows.sum() > 0.95 * parent.sum() for parent in parents_of(key, groups).values())
        for key, rows in groups.items()
    )
    assert record.repeated == repeated
    assert record.searched == len(groups) - repeated > 50
    assert record.rows == ROWS
    assert record.figure == pytest.approx(bad.mean())
    sizes = [int(rows.sum()) for rows in groups.values()]
    limits = [(part.rows, part.groups) for part in record.largest_gaps]
    edges = [LEAST, 500, 1_000, 2_000, 5_000]
    expected = [(edge, sum(size >= edge for size in sizes)) for edge in edges]
    assert repeated == 0
    assert limits == [(edge, count) for edge, count in expected if count]


@pytest.mark.oracle(
    "SearchRecord.worse",
    "WorseGroup.rows",
    "WorseGroup.figure",
    "WorseGroup.others",
    "WorseGroup.gap",
    "WorseGroup.parents",
    "ParentGroup.rows",
    "ParentGroup.figure",
)
def test_figures_and_parents_of_groups_are_those_of_their_masks() -> None:
    _, bad = people()
    groups = enumerated()
    worse = searched().record.worse
    assert len(worse) > 5
    for group in worse:
        key = key_of(group.conditions)
        rows = groups[key]
        assert group.rows == rows.sum()
        assert group.figure == pytest.approx(bad[rows].mean())
        assert group.others == pytest.approx(bad[~rows].mean())
        assert group.gap == pytest.approx(bad[rows].mean() - bad[~rows].mean())
        found = {key_of(parent.conditions): parent for parent in group.parents}
        expected = parents_of(key, groups)
        assert found.keys() == expected.keys()
        for name, parent in found.items():
            assert parent.rows == expected[name].sum()
            assert parent.figure == pytest.approx(bad[expected[name]].mean())


@pytest.mark.oracle("WorseGroup.is_worse_than_parents", "WorseGroup.is_listed")
def test_only_the_planted_group_is_worse_than_its_parents() -> None:
    """The gap is so large that every test shows it, and no other test can."""
    planted = frozenset({("job", 0, 0), ("age", 2, 3)})
    worse = {key_of(group.conditions): group for group in searched().record.worse}
    within = [key for key in worse if key > planted]
    assert len(within) == 2  # of either sex
    assert worse[planted].is_worse_than_parents
    assert worse[planted].is_listed
    for key in within:
        assert not worse[key].is_worse_than_parents
        assert not worse[key].is_listed
    assert [key_of(group.conditions) for group in searched().groups] == [planted]


def halves(weights: bool) -> tuple[Any, Any, Any]:
    """Two groups of equal size and weight, one of which is worse."""
    rng = np.random.default_rng(3)
    half = 1_500
    bad = rng.random(2 * half) < np.repeat([0.5, 0.3], half)
    weight = np.tile(rng.uniform(0.5, 2.0, half), 2) if weights else np.ones(2 * half)
    return {"half": np.repeat(["a", "b"], half)}, bad.astype(float), weight


def divergence(mean: float, other: float) -> float:
    return float(stats.entropy([mean, 1 - mean], [other, 1 - other]))


def chernoff(mean: float, size: float, level: float, *, lower: bool) -> float:
    """The mean at which exp(-n KL) is the level, by Brent's method."""
    ends = (1e-12, mean) if lower else (mean, 1 - 1e-12)
    return float(
        optimize.brentq(lambda other: size * divergence(mean, other) + np.log(level), *ends)
    )


@pytest.mark.oracle("WorseGroup.at_least", "SearchRecord.largest_gaps", "GapLimit.gap")
def test_bounds_of_weighted_means_are_roots_of_chernoffs_bound() -> None:
    """Two groups: one is worse, without parents, so that its claims leave 2/3 to each group."""
    X, bad, weight = halves(weights=True)
    search = find_groups(None, None, X, outcome=bad, sample_weight=weight)
    (group,) = search.record.worse
    first = X["half"] == "a"
    means = [np.average(bad[rows], weights=weight[rows]) for rows in (first, ~first)]
    size = weight[first].sum() / weight.max()
    side = LEVEL * 2 / 3 / 2 / 2  # half of it for the bound, and half of that for either mean
    low = chernoff(means[0], size, side, lower=True)
    high = chernoff(means[1], size, side, lower=False)
    assert group.at_least == pytest.approx(low - high, abs=1e-6)
    each = LEVEL / 2 / 2  # of two groups, for either mean
    high = chernoff(means[0], size, each, lower=False)
    low = chernoff(means[1], size, each, lower=True)
    assert search.record.largest_gaps[0].gap == pytest.approx(high - low, abs=1e-6)


def odds_limit(bad: Any, first: Any, level: float, *, lower: bool) -> float:
    """The odds ratio at which the tail of the counts has this probability, by SciPy."""
    table = len(bad), int(bad.sum()), int(first.sum())
    hits = int(bad[first].sum())

    def excess(log_odds: float) -> float:
        counts = stats.nchypergeom_fisher(*table, np.exp(log_odds))
        tail = counts.sf(hits - 1) if lower else counts.cdf(hits)
        return float(tail) - level

    return float(np.exp(optimize.brentq(excess, -3, 3, xtol=1e-9)))


def rate_limits(bad: Any, level: float) -> tuple[float, float]:
    """Clopper and Pearson's limits of a rate."""
    hits = bad.sum()
    misses = len(bad) - hits
    low = stats.beta.ppf(level, hits, misses + 1)
    return float(low), float(stats.beta.ppf(1 - level, hits + 1, misses))


def extreme_gap(odds: float, bad: Any, first: Any, level: float, *, smallest: bool) -> float:
    """The smallest or largest difference of this odds ratio, over likely rates of both groups."""
    low, high = rate_limits(bad[~first], level)
    others = np.linspace(low, high, 1_001)
    rates = odds * others / (1 - others + odds * others)
    least, most = rate_limits(bad[first], level)
    if smallest:
        return float((np.maximum(rates, least) - others).min())
    return float((np.minimum(rates, most) - others).max())


@pytest.mark.oracle("WorseGroup.at_least", "GapLimit.gap")
def test_exact_bounds_invert_the_noncentral_hypergeometric_distribution() -> None:
    """Ranges of rates differ a little: Chernoff's here, those of the beta distribution there."""
    X, bad, _ = halves(weights=False)
    search = find_groups(None, None, X, outcome=bad)
    (group,) = search.record.worse
    first = X["half"] == "a"
    ranges = LEVEL / 50
    odds = odds_limit(bad, first, (LEVEL - ranges) / 3, lower=True)
    low = extreme_gap(odds, bad, first, ranges / 2 / 3, smallest=True)
    assert group.at_least == pytest.approx(low, abs=0.003)
    odds = odds_limit(bad, first, (LEVEL - ranges) / 2, lower=False)
    high = extreme_gap(odds, bad, first, ranges / 2 / 3, smallest=False)
    assert search.record.largest_gaps[0].gap == pytest.approx(high, abs=0.003)
