"""Tables that the terminal cuts: what is missing is counted, the worst come first, what the
summary names is shown.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from metrifair import Audit, AuditOptions, Frontier, audit, compare, monitor
from tests.seams.auditing import summarized_finding, worst_ratio
from tests.seams.cli import show_alarms, show_audit, show_differences, show_frontier
from tests.seams.tradeoff import Outcome, Point, TradeOff
from tests.seams.wording import criterion_name

OPTIONS = AuditOptions(resamples=30, permutations=0, min_group_size=10)


def terminal() -> Console:
    return Console(file=io.StringIO(), width=160)


def printed(out: Console) -> str:
    return out.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def strata_audit(worst: int, *, count: int = 20, rows: int = 200) -> Audit:
    """An audit within strata, one of which has a large gap in its rates."""
    generator = np.random.default_rng(0)
    stratum = np.repeat(np.arange(count), rows)
    group = np.tile(np.array(["f", "m"]), count * rows // 2)
    base = np.where(stratum == worst, 0.25, 0.5)
    score = np.where(group == "f", base, 0.55) + generator.uniform(-0.3, 0.3, len(stratum))
    label = (generator.random(len(score)) < score).astype(int)
    names = np.array([f"office {number:02d}" for number in range(count)])[stratum]
    return audit(
        label,
        score.clip(0, 1),
        sensitive_features={"sex": group},
        control_features={"office": names},
        random_state=0,
        options=OPTIONS,
    )


@pytest.mark.parametrize("worst", [0, 7, 19])
def test_the_worst_stratum_is_shown_wherever_it_is(worst: int) -> None:
    result = strata_audit(worst)
    out = terminal()
    show_audit(out, result.record)
    text = printed(out)
    rates = text[text.index("True positive rate") :]
    named = worst_ratio(result.record.decisions)
    assert named is not None
    assert named.table.within == f"office=office {worst:02d}"
    assert any(
        f"(within {named.table.within})" in sentence for sentence in result.summary.splitlines()
    )
    shown = re.findall(r"sex +(\w+) +office=office (\d\d)", rates[: rates.index("Base rate")])
    assert shown[0][1] == f"{worst:02d}"
    assert len({office for _, office in shown}) == 12
    assert "... and 16 more groups: --rates or --html" in text
    by_group = rates[rates.index("Base rate") :]
    assert "... and 16 more groups: --json or --html" in by_group


def test_tables_that_are_not_cut_keep_their_order() -> None:
    result = strata_audit(3, count=5)
    out = terminal()
    show_audit(out, result.record)
    text = printed(out)
    rates = text[text.index("True positive rate") :]
    offices = re.findall(r"sex +f +office=office (\d\d)", rates[: rates.index("Base rate")])
    assert offices == ["00", "01", "02", "03", "04"]
    assert "more groups" not in text


def test_every_comparison_that_a_summary_names_is_in_the_table() -> None:
    for worst in (0, 11, 19):
        result = strata_audit(worst, rows=40)
        out = terminal()
        show_audit(out, result.record)
        text = printed(out)
        named = summarized_finding(result.record.findings)
        assert named is not None
        table = text[
            text.index("Joint interval") : text.index("more comparisons: --json or --html")
        ]
        assert f"{named.within} ({criterion_name(named.criterion)})" in table
        hidden = len([one for one in result.record.findings if one.metric == named.metric]) - 12
        assert f"... and {hidden} more comparisons: --json or --html" in text


def test_differences_and_alarms_count_what_they_do_not_show() -> None:
    before, after = strata_audit(2), strata_audit(9)
    difference = compare(before, after)
    out = terminal()
    show_differences(out, difference)
    assert (
        f"... and {len(difference.differences) - 20:,} more differences: --json or --html"
        in printed(out)
    )
    series = monitor({"may": many_gaps(0.0), "june": many_gaps(0.4)}, options=OPTIONS)
    assert len(series.alarms) > 20
    out = terminal()
    show_alarms(out, series)
    assert f"... and {len(series.alarms) - 20:,} more alarms: --json or --html" in printed(out)


def many_gaps(gap: float) -> Audit:
    generator = np.random.default_rng(4)
    stratum = np.repeat(np.arange(14), 400)
    group = np.tile(np.array(["f", "m"]), len(stratum) // 2)
    score = generator.random(len(stratum)) * 0.5 + gap * (group == "m")
    return audit(
        None,
        score,
        sensitive_features={"sex": group},
        control_features={"office": stratum.astype(str)},
        random_state=0,
        options=OPTIONS,
    )


def test_the_model_that_a_headline_names_is_in_the_table() -> None:
    """The most accurate one is at a strength that the short table would leave out."""
    for best in range(25):
        points = [
            Point(float(place), 0, 0.9 if place == best else 0.8, 0.3 + place / 100)
            for place in range(25)
        ]
        outcomes = [Outcome(point.job, point) for point in points]
        out = terminal()
        show_frontier(out, Frontier(TradeOff(outcomes)))
        text = printed(out)
        assert re.search(rf"(?m)^ *{best} +0\.900", text), best


def test_groups_of_few_tables_are_cut_after_the_worst(tmp_path: Path, call: Any) -> None:
    """3 tables of 25 groups: the smallest ratio and its reference are shown, although they come
    last by name.
    """
    group = np.tile(np.repeat(np.arange(25), 40), 3)
    office = np.repeat(["north", "south", "west"], 25 * 40)
    passed = np.tile(np.arange(40) % 2, 75)
    low = (office == "west") & (group == 23)
    high = (office == "west") & (group == 24)
    passed[low] = np.arange(40) < 4
    passed[high] = np.arange(40) < 36
    table = pl.DataFrame(
        {"g": [f"group {number:02d}" for number in group], "office": office, "p": passed}
    )
    table.write_csv(tmp_path / "t.csv")
    done = call(
        "audit",
        tmp_path / "t.csv",
        "--score",
        "p",
        "--group",
        "g",
        "--control",
        "office",
        "--seed",
        0,
    )
    assert done.exit_code == 0, done.output
    rates = done.stdout[done.stdout.index("Selected") :]
    first, second = re.findall(r"g +group (\d\d) +office=(\w+)", rates)[:2]
    assert {first, second} == {("23", "west"), ("24", "west")}
    assert "... and 15 more groups: --rates or --html" in done.stdout
