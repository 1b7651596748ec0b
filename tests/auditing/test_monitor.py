"""Distances over time: alarms that hold for repeated looks, planted changes found, states and
JSON files alike.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from metrifair import AuditOptions, AuditSeries, AuditState, DataError, monitor
from tests.expected_errors import Refusals
from tests.seams.api import _names


def days(shifts: Sequence[float], rows: int = 150, seed: int = 0) -> dict[str, AuditState]:
    """One state for each day; the scores of one group are shifted by so much."""
    generator, group, found = np.random.default_rng(seed), np.repeat(["f", "m"], rows), {}
    for number, shift in enumerate(shifts):
        scores = 1 / (1 + np.exp(-generator.normal(size=2 * rows) - shift * (group == "m")))
        found[f"day {number}"] = AuditState(name=f"day {number}").add(
            None, np.round(scores, 3), sensitive_features=group
        )
    return found


def series(shifts: Sequence[float], seed: int = 0, **options: object) -> AuditSeries:
    return monitor(
        days(shifts, seed=seed, **options),
        metrics=["wasserstein"],
        random_state=seed,
        options=AuditOptions(resamples=60),
    )  # type: ignore[arg-type]


def test_no_change_gives_no_alarm_over_fifty_looks_and_levels_never_add_up_to_more_than_alpha() -> (
    None
):
    found = series([0.5] * 51, seed=1)
    assert found.alarms == []
    assert "No distance has changed" in found.summary.splitlines()[0]
    levels = [one.level for one in found.record.series if one.level is not None]
    assert levels == pytest.approx([0.05 / (look * (look + 1)) for look in range(1, 51)])
    assert sum(levels) == pytest.approx(0.05 * (1 - 1 / 51))


def test_a_planted_change_is_found_at_the_looks_that_have_it() -> None:
    found = series([0.3] * 6 + [1.6] * 4)
    assert {(one.look, one.alarm) for one in found.alarms} == {
        (f"day {number}", "worse") for number in range(6, 10)
    }
    back = series([1.6] * 3 + [0.3] * 3)
    assert {one.alarm for one in back.alarms} == {"better"}


@pytest.mark.slow(rotate=False)
def test_false_alarms_over_fifty_looks_are_rare() -> None:
    alarmed = sum(bool(series([0.5] * 51, seed=seed).alarms) for seed in range(60))
    # 3 expected at the most: eight or more of 60 happen in 1 of 1,000 such counts
    assert alarmed <= 8


def test_intervals_hold_for_all_looks_and_grow_with_their_number() -> None:
    found = series([0.5] * 12)
    widths = []
    for one in found.record.series:
        assert one.interval is not None
        assert one.interval.low <= one.value <= one.interval.high
        widths.append(one.interval.high - one.interval.low)
    # 3.4 standard errors to 2.2, and rows of its own each
    assert np.mean(widths[-3:]) > 1.15 * widths[0]


def test_a_series_is_written_as_table_json_and_page(tmp_path: Path) -> None:
    states = days([0.3, 0.3, 1.8])
    found = monitor(states, random_state=0, options=AuditOptions(resamples=60))
    found.to_html(tmp_path / "series.html")
    page = (tmp_path / "series.html").read_text()
    assert "day 2" in page
    assert page.count("<polyline") >= len({one.metric for one in found.record.series})
    assert json.loads(found.to_json())["looks"] == ["day 0", "day 1", "day 2"]
    assert isinstance(found.to_frame(), pl.DataFrame)
    files = []
    for name, state in states.items():
        files.append(tmp_path / f"{name}.json")
        state.audit(random_state=0, options=AuditOptions(resamples=60, permutations=0)).to_json(
            files[-1]
        )
    again = monitor(files)
    assert {one.alarm for one in again.alarms} == {one.alarm for one in found.alarms} == {"worse"}


def test_what_cannot_be_monitored_is_refused(refused: Refusals) -> None:
    states = days([0.3, 0.3])
    with refused(DataError):
        monitor([states["day 0"]])
    with pytest.raises(DataError, match=r"made with confidence=0\.9"):
        monitor(
            {
                name: one.audit(options=AuditOptions(resamples=20, permutations=0))
                for name, one in states.items()
            },
            confidence=0.9,
        )
    other = AuditState().add(
        None, [0.1, 0.9] * 20, sensitive_features={"age": ["old", "young"] * 20}
    )
    with pytest.raises(DataError, match="no distance in common"):
        monitor(
            [
                other.audit(metrics="energy", options=AuditOptions(resamples=20)),
                other.audit(metrics="wasserstein", options=AuditOptions(resamples=20)),
            ]
        )


def groups(sizes: dict[str, int], seed: int, shift: float = 0.0) -> AuditState:
    """A look with groups of these sizes; the scores of "m" are shifted."""
    generator, group = np.random.default_rng(seed), np.repeat(list(sizes), list(sizes.values()))
    scores = 1 / (1 + np.exp(-generator.normal(size=len(group)) - shift * (group == "m")))
    return AuditState().add(None, np.round(scores, 3), sensitive_features={"sex": group})


def test_a_baseline_pools_looks_until_both_groups_reach_the_minimum_size() -> None:
    looks = {
        f"day {k}": groups({"f": 200, "m": size}, k) for k, size in enumerate((5, 10, 20, 200))
    }
    looks["day 4"] = groups({"f": 200, "m": 200}, 4, shift=2.0)
    found = monitor(looks, metrics="kolmogorov", random_state=0, options=AuditOptions(resamples=60))
    (baseline,) = found.record.baselines
    assert (baseline.looks, baseline.sizes, baseline.enough) == (
        ["day 0", "day 1", "day 2"],
        (600, 35),
        True,
    )
    assert [(one.look, one.alarm) for one in found.record.series] == [
        ("day 2", "not_tested"),
        ("day 3", "not_distinguishable"),
        ("day 4", "worse"),
    ]
    pooled = (
        looks["day 0"]
        .merge(looks["day 1"], looks["day 2"])
        .audit(metrics="kolmogorov", options=AuditOptions(resamples=0))
    )
    assert found.record.series[0].value == pooled.findings[0].value
    assert found.record.series[0].sizes == (600, 35)
    assert any(
        "pools several looks" in text and "30 rows" in text for text in found.summary.splitlines()
    )


def test_audits_without_rows_begin_at_the_first_look_that_is_large_enough() -> None:
    looks = {
        f"day {k}": groups({"f": 200, "m": size}, k) for k, size in enumerate((5, 200, 10, 200))
    }
    audits = {
        name: one.audit(random_state=0, options=AuditOptions(resamples=60, permutations=0))
        for name, one in looks.items()
    }
    found = monitor(audits)
    assert {(tuple(one.looks), tuple(one.untested)) for one in found.record.baselines} == {
        (("day 1",), ("day 2",))
    }
    assert {one.look for one in found.record.series} == {"day 1", "day 3"}
    assert any("are not tested at “day 2”" in text for text in found.summary.splitlines())


@pytest.mark.oracle("Baseline.enough")
def test_a_series_that_never_reaches_the_minimum_size_is_not_called_unchanged() -> None:
    looks = {f"day {k}": groups({"f": 5, "m": 5}, k, shift=5.0 * (k > 0)) for k in range(4)}
    found = monitor(looks, metrics="kolmogorov", random_state=0, options=AuditOptions(resamples=60))
    (baseline,) = found.record.baselines
    assert (found.record.series, baseline.enough, baseline.sizes) == ([], False, (20, 20))
    assert "No distance was tested" in found.summary.splitlines()[0]
    assert not any("No distance has changed" in text for text in found.summary.splitlines())


def test_a_group_that_appears_later_begins_a_series_with_its_own_baseline() -> None:
    both, three = {"f": 200, "m": 200}, {"f": 200, "m": 200, "x": 200}
    looks = {
        "May": groups(both, 0),
        "June": groups(three, 1),
        "July": groups(three, 2),
        "August": groups(both, 3),
    }
    found = monitor(looks, metrics="kolmogorov", random_state=0, options=AuditOptions(resamples=60))
    baselines = {tuple(one.groups): one for one in found.record.baselines}
    assert {key: list(one.looks) for key, one in baselines.items()} == {
        ("f", "m"): ["May"],
        ("f", "x"): ["June"],
        ("m", "x"): ["June"],
    }
    assert list(baselines["f", "x"].untested) == ["August"]
    levels = {(one.look, tuple(one.groups)): one.level for one in found.record.series}
    assert levels["July", ("f", "x")] == levels["July", ("f", "m")] == pytest.approx(0.05 / 6 / 3)
    assert levels["June", ("f", "m")] == pytest.approx(0.05 / 2 / 3)
    assert levels["June", ("f", "x")] is None
    total = sum(level for level in levels.values() if level is not None)
    assert total <= 0.05
    assert any(
        "begins after the first look" in text and "“x”" in text and "“June”" in text
        for text in found.summary.splitlines()
    )


def test_looks_match_groups_by_value() -> None:
    generator = np.random.default_rng(0)
    member, score = generator.random(300) < 0.5, generator.random(300).round(2)
    looks = [
        AuditState().add(None, score, sensitive_features={"member": one})
        for one in (member, np.where(member, "true", "false"))
    ]
    found = monitor(looks, metrics="kolmogorov", random_state=0, options=AuditOptions(resamples=60))
    assert [one.difference for one in found.record.series] == [0.0, 0.0]
    assert len(found.record.baselines) == 1


def named_look(name: str, rows: int, shift: float) -> AuditState:
    group = np.repeat(["f", "m"], rows)
    scores = np.tile(np.linspace(0.1, 0.6, rows), 2) + shift * (group == "m")
    return AuditState(name=name).add(None, scores.round(3), sensitive_features=group)


NAMES = ["", "look 1", "look 2", "look 3", "look 2 2"]


@pytest.mark.parametrize(
    "names",
    [("", "look 1", ""), ("look 2", "", ""), ("look 3", "look 2", ""), ("a", "a", "a look 2")],
)
def test_no_name_of_a_state_takes_the_place_of_another_look(names: tuple[str, ...]) -> None:
    """The baseline has a gap of 0, all later looks one of 0.3."""
    states = [named_look(name, 200 + place, 0.3 * bool(place)) for place, name in enumerate(names)]
    result = monitor(states, metrics=["kolmogorov"], random_state=0)
    assert result.record.rows == [400, 402, 404]
    assert len(set(result.record.looks)) == 3
    assert {one.alarm for one in result.alarms} == {"worse"}
    (baseline,) = result.record.baselines
    assert baseline.looks == [result.record.looks[0]]


def test_all_looks_have_distinct_names_and_states_keep_theirs(tmp_path: Path) -> None:
    for names in product(NAMES, repeat=3):
        states: list[AuditState | str] = [AuditState(name=name) for name in names]
        found = _names([*states, str(tmp_path / "look 2.json"), str(tmp_path / "look 4.json")])
        assert len({*found}) == 5
        for place, name in enumerate(names):
            if name and name not in names[:place]:
                assert found[place] == name
