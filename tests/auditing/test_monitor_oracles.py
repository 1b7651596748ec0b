"""A series of audits against levels, intervals and minimum sizes that are computed by hand from
made-up findings.
"""

from __future__ import annotations

from itertools import combinations

import pytest
from scipy.stats import norm

from tests.seams.auditing import AuditRecord, Finding, SeriesRecord, series_record
from tests.seams.figures import Interval

ALPHA = 0.05
METRICS = ("wasserstein", "energy")


def record(sizes: dict[str, int], value: float = 0.2) -> AuditRecord:
    """An audit of so many rows of each group: two distances of every pair, each with one
    interval.
    """
    findings = [
        Finding(
            "race",
            "statistical_parity",
            "everyone",
            pair,
            (sizes[pair[0]], sizes[pair[1]]),
            metric,
            value,
            interval=Interval(value - 0.06, value + 0.1),
            group_values=pair,
        )
        for pair in combinations(sizes, 2)
        for metric in METRICS
    ]
    return AuditRecord(sum(sizes.values()), 0, (0.0, 1.0), 1 - ALPHA, findings)


def watched(*looks: dict[str, int], values: tuple[float, ...] = ()) -> SeriesRecord:
    audits = {
        f"look {k}": record(sizes, value)
        for k, (sizes, value) in enumerate(zip(looks, values, strict=True))
    }
    return series_record(audits, confidence=1 - ALPHA, min_group_size=30)


THREE = {"a": 100, "b": 100, "c": 100}


@pytest.mark.oracle("Look.level")
def test_levels_are_shared_by_looks_and_distances_and_add_up_to_less_than_alpha() -> None:
    found = watched(*[THREE] * 9, values=(0.2,) * 9)
    distances = 3 * len(METRICS)
    for look in found.series:
        number = int(look.look.split()[1])
        assert look.level == (
            None if number == 0 else pytest.approx(ALPHA / (number * (number + 1)) / distances)
        )
    total = sum(look.level for look in found.series if look.level is not None)
    assert total == pytest.approx(ALPHA * (1 - 1 / 9))


@pytest.mark.oracle("Look.value", "Look.interval")
def test_intervals_hold_for_all_looks_and_distances_together() -> None:
    """An interval of 95 % is widened, on either side, to the quantile of its share of alpha."""
    found = watched(*[THREE] * 5, values=(0.2, 0.3, 0.1, 0.2, 0.25))
    distances, spent = 3 * len(METRICS), 0.0
    assert len(found.series) == 5 * distances
    for look in found.series:
        number = int(look.look.split()[1])
        share = ALPHA / ((number + 1) * (number + 2)) / distances
        spent += share
        wider = norm.isf(share / 2) / norm.isf(ALPHA / 2)
        assert look.interval is not None
        assert look.interval.low == pytest.approx(max(0.0, look.value - wider * 0.06))
        assert look.interval.high == pytest.approx(look.value + wider * 0.1)
    assert spent <= ALPHA


@pytest.mark.oracle("Look.difference", "Look.p_value", "Look.alarm")
def test_an_alarm_is_a_p_value_up_to_the_level_of_its_look() -> None:
    """The p-value is that of two normal estimates with the errors of both intervals, below and
    above.
    """
    values = (0.3, 0.3, 0.3 + 0.35, 0.3 + 0.4)
    found = watched(*[{"a": 100, "b": 100}] * 4, values=values)
    z = norm.isf(0.025)
    for look in found.series:
        if look.metric != "wasserstein" or look.level is None:
            continue
        rise = look.value - 0.3
        # Centers of both intervals are 0.02 above the values; half widths are 0.08 each.
        p_value = 2 * norm.sf(z * abs(rise) / (0.08 * 2**0.5)) if rise else 1.0
        assert look.difference == pytest.approx(rise)
        assert look.p_value == pytest.approx(p_value)
        assert look.alarm == ("worse" if p_value <= look.level else "not_distinguishable")


@pytest.mark.oracle("Baseline.untested")
@pytest.mark.parametrize("small", [29, 30])
def test_the_smaller_group_decides_whether_a_look_is_tested(small: int) -> None:
    """A look is tested from the minimum size on, whichever group is the smaller one."""
    for sizes in ({"a": 500, "b": small}, {"a": small, "b": 500}):
        later = watched({"a": 60, "b": 60}, sizes, {"a": 60, "b": 60}, values=(0.2, 0.2, 0.2))
        tested = {look.look for look in later.series if look.level is not None}
        assert tested == ({"look 1", "look 2"} if small == 30 else {"look 2"})
        assert [list(one.untested) for one in later.baselines] == [
            [] if small == 30 else ["look 1"]
        ] * len(METRICS)
        first = watched(sizes, {"a": 60, "b": 60}, {"a": 60, "b": 60}, values=(0.2, 0.2, 0.2))
        assert {tuple(one.looks) for one in first.baselines} == {
            ("look 0" if small == 30 else "look 1",)
        }


@pytest.mark.oracle("Look.sizes", "Baseline.sizes")
@pytest.mark.parametrize("small", [29, 30])
def test_the_smaller_group_decides_how_many_looks_a_baseline_pools(small: int) -> None:
    looks = [{"a": 500, "b": small - 20}, {"a": 500, "b": 20}, {"a": 500, "b": 50}]
    audits = {f"look {k}": record(sizes) for k, sizes in enumerate(looks)}
    pooled: list[tuple[int, int]] = []

    def pool(first: int, last: int) -> AuditRecord:
        pooled.append((first, last))
        return record({name: sum(look[name] for look in looks[first : last + 1]) for name in "ab"})

    found = series_record(audits, confidence=1 - ALPHA, min_group_size=30, pool=pool)
    last = 1 if small == 30 else 2
    assert pooled == [(0, last)]
    assert next(one.sizes for one in found.series if one.metric == "energy") == (
        500 * (last + 1),
        sum(look["b"] for look in looks[: last + 1]),
    )
    assert {one.sizes for one in found.baselines} == {(500 * (last + 1), 30 if small == 30 else 79)}
