"""Every benchmark of `make bench` runs, on tiny data: what it measures there means nothing."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from benchmarks import choice_rule, monitoring, timing
from benchmarks.__main__ import NAMES
from benchmarks.choice import Rows

# tiny data are separable, cut short, the same for everyone
pytestmark = [pytest.mark.extended, pytest.mark.filterwarnings("ignore")]

CHANGES: dict[str, dict[str, Any]] = {
    "boosting": {"ROWS": 400, "FEATURES": 4, "SHORT": 1, "LONG": 2, "WHOLE_FITS": ((400, 4),)},
    "defaults": {"SETS": (("mortgage", {}),), "STRENGTHS": (0.0, 1.0)},
    "distributed": {
        "PROCESSES": 2,
        "BATCH": 64,
        "FEATURES": 4,
        "WIDTH": 4,
        "STEPS": 2,
        "ROWS": 400,
        "LONG": 11,
    },
    "files": {"ROWS": 5_000},
}
"""Sizes that are constants of their module."""

SLOW = (
    "cells",
    "defaults",
    "distributed",
    "files",
    "numbers",
    "peers",
    "startup",
    "tradeoff",
)  # processes of their own, real data, dcor's compiler


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
        for name in NAMES
        if name != "cells"
    ],
)
def test_a_benchmark_runs(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(timing.QUICK, "1")
    monkeypatch.setattr(timing, "printed", [])
    if name == "numbers":
        pytest.importorskip("dcor")
    module = importlib.import_module(f"benchmarks.{name}")
    for constant, value in CHANGES.get(name, {}).items():
        monkeypatch.setattr(module, constant, value)
    module.main()
    assert timing.printed or name == "defaults"
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) >= 3
    assert "Error" not in shown.err


def test_a_quick_run_is_asked_for() -> None:
    assert timing.shrunk(1_000_000) == 1_000_000


def test_alarms_of_streams_are_counted() -> None:
    assert monitoring.delays(monitoring.Setting(200, 0.6), 0) == {"exact": 0, "approximate": 0}
    assert monitoring.delays(monitoring.Setting(200), 0) == {"exact": None, "approximate": None}


def test_the_rule_of_choice_is_compared_with_the_truth() -> None:
    """With as many rows as there are people, a limit is kept, and what is reported is true."""
    draw = np.random.default_rng(0)
    group = draw.integers(0, 2, 24_000)
    X = draw.normal(size=(24_000, 3)) + 0.5 * group[:, None]
    rows = Rows(X, (X.sum(axis=1) + draw.normal(size=24_000) > 1).astype(int), group)
    for truth in choice_rule.truths(rows, 4_000, 0).values():
        assert truth.chooser.gaps.gaps[0] == pytest.approx(truth.gaps[0], abs=0.05)
        assert truth.chooser.utility.values == pytest.approx(truth.utilities, abs=0.03)
        result = choice_rule.delivered(truth, 5 * truth.chooser.gaps.noise, 0.9, 0)
        assert result.is_named
        assert result.is_kept
        assert abs(result.utility_error) < 0.03
    assert "1.00" in choice_rule.line("kept", [result, result])
