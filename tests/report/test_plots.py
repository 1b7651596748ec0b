"""Charts of comparisons and series: what they draw of the values."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure

from metrifair import (
    AuditDifference,
    AuditOptions,
    AuditSeries,
    AuditState,
    audit,
    compare,
    monitor,
)
from metrifair.errors import DataError, MissingExtra
from metrifair.report import ChartDisplay
from tests.expected_errors import Refusals

RNG = np.random.default_rng(7)
ROWS = 600
GROUP = np.array(["a", "b", "c"])[np.arange(ROWS) % 3]
SCORE = RNG.random(ROWS)
QUICK = AuditOptions(resamples=30, permutations=0)


def audited(shift: float) -> Any:
    """An audit in which the scores of "c" are higher by ``shift``."""
    score = np.clip(SCORE + shift * (GROUP == "c"), 0, 1)
    return audit(None, score, sensitive_features={"x": GROUP}, random_state=0, options=QUICK)


@pytest.fixture(scope="module")
def difference() -> AuditDifference:
    return compare(audited(0.1), audited(0.3))


@pytest.fixture(scope="module")
def series() -> AuditSeries:
    """Six looks, of which the last three have higher scores of "c"."""
    states = {}
    for look in range(6):
        shift = 0.4 if look >= 3 else 0.0
        score = np.clip(np.random.default_rng(look).random(ROWS) + shift * (GROUP == "c"), 0, 1)
        states[f"week {look}"] = AuditState().add(None, score, sensitive_features={"x": GROUP})
    return monitor(states, random_state=0)


def dots_of(display: ChartDisplay) -> list[float]:
    _, dots = display.ax_.lines
    return [float(value) for value in np.asarray(dots.get_xdata())]


def test_differences_are_drawn_with_joint_intervals(difference: AuditDifference) -> None:
    display = difference.plot(ax=Figure().subplots())
    figures = [one for one in difference.differences if one.metric == "kolmogorov"]
    assert sorted(dots_of(display)) == sorted(one.difference for one in figures)
    (spans,) = display.ax_.collections
    assert isinstance(spans, LineCollection)
    ends = sorted((float(low[0]), float(high[0])) for low, high in spans.get_segments())
    known = [one.joint_interval for one in figures if one.joint_interval is not None]
    assert len(known) == 3
    assert ends == sorted((interval.low, interval.high) for interval in known)


def test_the_most_significant_difference_is_on_top(difference: AuditDifference) -> None:
    axes = difference.plot(ax=Figure().subplots()).ax_
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert set(names[:2]) == {"a vs c of x, everyone", "b vs c of x, everyone"}
    assert names[2] == "a vs b of x, everyone"
    bottom, top = axes.get_ylim()
    assert bottom > top


def test_differences_of_three_audits_are_named_by_the_audit() -> None:
    score = np.random.default_rng(1).random(ROWS)
    found = audit(
        None,
        {"old": SCORE, "new": score, "other": score[::-1]},
        sensitive_features={"x": GROUP},
        random_state=0,
        options=QUICK,
    )
    assert isinstance(found, AuditDifference)
    axes = found.plot(ax=Figure().subplots()).ax_
    names = {text.get_text().partition(":")[0] for text in axes.get_yticklabels()}
    assert names == {"new", "other"}
    assert axes.get_title() == "Differences from old"


def test_a_series_is_drawn_look_by_look_with_its_alarms(series: AuditSeries) -> None:
    axes = series.plot(ax=Figure().subplots()).ax_
    rows = [one for one in series.record.series if one.metric == "kolmogorov"]
    drawn = sorted(value for line in axes.lines for value in np.asarray(line.get_ydata()).tolist())
    assert drawn == sorted(one.value for one in rows)
    assert [text.get_text() for text in axes.get_xticklabels()] == list(series.record.looks)
    alarms = [one.value for one in rows if one.alarm in ("better", "worse")]
    assert len(alarms) >= 4
    (marks,) = (part for part in axes.collections if isinstance(part, PathCollection))
    assert sorted(np.asarray(marks.get_offsets())[:, 1].tolist()) == sorted(alarms)
    legend = axes.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert set(names[:2]) == {"a vs c of x, everyone", "b vs c of x, everyone"}
    assert names[2:] == ["a vs b of x, everyone", "alarm"]


def test_gaps_of_losses_are_not_marked_among_scores() -> None:
    """Risk parity compares losses: the marked gap is one between the drawn curves."""
    label = ((SCORE > 0.5) ^ (GROUP == "c")).astype(int)  # losses of "c" are large
    found = audit(
        label,
        SCORE,
        sensitive_features={"x": GROUP},
        criteria=["risk_parity", "statistical_parity"],
        random_state=0,
        options=AuditOptions(resamples=0, permutations=0, loss="log_loss"),
    )
    gaps = {"risk_parity": set[str](), "statistical_parity": set[str]()}
    for finding in found.findings:
        if finding.metric == "kolmogorov":
            gaps[finding.criterion].add(f"gap {finding.value:.3f}")
    assert not gaps["risk_parity"] & gaps["statistical_parity"]
    axes = found.plot(ax=Figure().subplots()).ax_
    assert axes.texts[0].get_text() in gaps["statistical_parity"]


def test_every_plot_names_the_extra_without_matplotlib(
    difference: AuditDifference, series: AuditSeries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for result in (audited(0.0), difference, series):
        with pytest.raises(MissingExtra, match=r'pip install "metrifair\[report\]"'):
            result.plot()


def test_an_array_of_axes_is_refused(
    difference: AuditDifference, series: AuditSeries, refused: Refusals
) -> None:
    for result in (audited(0.0), difference, series):
        with refused(DataError):
            result.plot(ax=Figure().subplots(1, 2))
