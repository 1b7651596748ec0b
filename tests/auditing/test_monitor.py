"""Distances over time: alarms that hold for repeated looks, planted changes found, states and JSON files alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from metrifair import AuditSeries, AuditState, DataError, monitor


def days(shifts: Sequence[float], rows: int = 150, seed: int = 0) -> dict[str, AuditState]:
    """One state for each day; the scores of one group are shifted by so much."""
    generator, group, found = np.random.default_rng(seed), np.repeat(["f", "m"], rows), {}
    for number, shift in enumerate(shifts):
        scores = 1 / (1 + np.exp(-generator.normal(size=2 * rows) - shift * (group == "m")))
        found[f"day {number}"] = AuditState(name=f"day {number}").add(np.round(scores, 3), group)
    return found


def series(shifts: Sequence[float], seed: int = 0, **options: object) -> AuditSeries:
    return monitor(days(shifts, seed=seed, **options), metrics=["wasserstein"], resamples=60, random_state=seed)  # type: ignore[arg-type]


def test_no_change_gives_no_alarm_over_fifty_looks_and_levels_never_add_up_to_more_than_alpha() -> None:
    found = series([0.5] * 51, seed=1)
    assert found.alarms == []
    assert "No distance has changed" in found.summary[0]
    levels = [one.level for one in found.record.series if one.level is not None]
    assert levels == pytest.approx([0.05 / (look * (look + 1)) for look in range(1, 51)])
    assert sum(levels) == pytest.approx(0.05 * (1 - 1 / 51))


def test_a_planted_change_is_found_at_the_looks_that_have_it() -> None:
    found = series([0.3] * 6 + [1.6] * 4)
    assert {(one.look, one.alarm) for one in found.alarms} == {(f"day {number}", "worse") for number in range(6, 10)}
    back = series([1.6] * 3 + [0.3] * 3)
    assert {one.alarm for one in back.alarms} == {"better"}


@pytest.mark.slow
def test_false_alarms_over_fifty_looks_are_rare() -> None:
    alarmed = sum(bool(series([0.5] * 51, seed=seed).alarms) for seed in range(60))
    assert alarmed <= 8  # 3 expected at the most: eight or more of 60 happen in 1 of 1,000 such counts


def test_intervals_hold_for_all_looks_and_grow_with_their_number() -> None:
    found = series([0.5] * 12)
    widths = []
    for one in found.record.series:
        assert one.interval is not None
        assert one.interval.low <= one.value <= one.interval.high
        widths.append(one.interval.high - one.interval.low)
    assert np.mean(widths[-3:]) > 1.15 * widths[0]  # 3.4 standard errors to 2.2, and rows of its own each


def test_a_series_is_written_as_table_json_and_page(tmp_path: Path) -> None:
    states = days([0.3, 0.3, 1.8])
    found = monitor(states, resamples=60, random_state=0)
    found.to_html(tmp_path / "series.html")
    page = (tmp_path / "series.html").read_text()
    assert "day 2" in page
    assert page.count("<polyline") >= len({one.metric for one in found.record.series})
    assert json.loads(found.to_json())["looks"] == ["day 0", "day 1", "day 2"]
    assert isinstance(found.to_frame(), pl.DataFrame)
    files = []
    for name, state in states.items():
        files.append(tmp_path / f"{name}.json")
        state.audit(resamples=60, permutations=0, random_state=0).to_json(files[-1])
    again = monitor(files)
    assert {one.alarm for one in again.alarms} == {one.alarm for one in found.alarms} == {"worse"}


def test_what_cannot_be_monitored_is_refused() -> None:
    states = days([0.3, 0.3])
    with pytest.raises(DataError, match="at least two looks, got 1"):
        monitor([states["day 0"]])
    with pytest.raises(DataError, match=r"made with confidence=0\.9"):
        monitor({name: one.audit(resamples=20, permutations=0) for name, one in states.items()}, confidence=0.9)
    other = AuditState().add([0.1, 0.9] * 20, {"age": ["old", "young"] * 20})
    with pytest.raises(DataError, match="no distance in common"):
        monitor([other.audit(metrics="energy", resamples=20), other.audit(metrics="wasserstein", resamples=20)])
