"""Intervals and p-values of numbers, held against populations that are known; the long version
is a benchmark.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import number_audits
from benchmarks.number_audits import (
    POPULATIONS,
    Tally,
    normal_dependence,
    table,
    tally,
    true_dependence,
)
from metrifair.metrics import energy_dependence
from tests.seams.auditing import band_tables as numbers

PAGE = Path(__file__).parents[1] / "docs" / "results" / "numeric-audits.md"


@pytest.mark.parametrize("r", [0.2, 0.9])
def test_the_truth_of_normal_variables_is_that_of_many_of_them(r: float) -> None:
    score, number = POPULATIONS[f"normal, correlation {r}"](20_000, np.random.default_rng(0))
    assert energy_dependence(score, number) == pytest.approx(normal_dependence(r), rel=0.1)


def test_intervals_hold_the_truth_and_p_values_find_what_is_there() -> None:
    assert true_dependence("ages, no fall") == 0.0
    found = tally("normal, correlation 0.5", 100, 0, sets=12)
    assert found.intervals == found.dependence == 12
    assert found.held >= 10
    assert found.cut >= 10
    assert tally("normal, correlation 0.5", 50, 0, sets=1).intervals == 0


@pytest.mark.slow
def test_intervals_that_are_too_narrow_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with a fault: half of the reach."""
    assert tally("normal, correlation 0.5", 100, 0, sets=24).held >= 21
    right = numbers.student_quantile
    monkeypatch.setattr(numbers, "student_quantile", lambda *of: 0.5 * right(*of))
    assert tally("normal, correlation 0.5", 100, 0, sets=24).held < 19


@pytest.mark.slow
def test_where_there_is_nothing_p_values_are_seldom_small() -> None:
    found = tally("ages, no fall", 120, 0, sets=40)
    assert found.held >= 34
    assert max(found.cut, found.dependence) <= 7  # 2 expected; beyond, once in a thousand


def test_work_that_is_finished_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        number_audits, "POPULATIONS", {name: POPULATIONS[name] for name in list(POPULATIONS)[:1]}
    )
    monkeypatch.setattr(number_audits, "SIZES", (50, 100))
    monkeypatch.setattr(number_audits, "PIECES", 2)
    done = []
    monkeypatch.setattr(
        number_audits, "tally", lambda *key: done.append(key) or Tally(100 - key[1], 48, 2, 3)
    )
    record = tmp_path / "record.jsonl"
    monkeypatch.setattr("sys.argv", ["number_audits", str(record)])
    for _ in range(2):
        number_audits.main()
    assert len(done) == 4
    first, second = list(table(record))[2:]
    assert first == "| normal, correlation 0 | 50 | 100 | 96.0 % | 4.0 % | 6.0 % |"
    assert second == "| normal, correlation 0 | 100 | 100 | no interval | 4.0 % | 6.0 % |"


@pytest.mark.page("numeric-audits.md")
def test_the_committed_tables_keep_the_promise() -> None:
    """Intervals hold in 95 % and p-values of nothing are at most 0.05 in 5 %, but for what
    chance does.
    """
    page = PAGE.read_text()
    lines = [
        line.strip("| ").split(" | ")
        for line in page.splitlines()
        if re.match(r".* \| [\d.]+ % of \d+ \|", line)
    ]
    assert [line[0] for line in lines] == [*POPULATIONS, "all of them"]
    for share, sets in (one.split(" % of ") for line in lines for one in line[1:]):
        assert float(share) >= 95 - 400 * (0.05 * 0.95 / int(sets)) ** 0.5
    assert all(float(one.split()[0]) >= 93 for one in lines[-1][1:])
    pattern = r"^\| ([^|]+) \| [\d,]+ \| ([\d,]+) \| ([\d.]+) % \| ([\d.]+) % \|$"
    rows = re.findall(pattern, page, re.MULTILINE)
    assert len(rows) == len(POPULATIONS) * 4
    of_nothing = [
        name for name in POPULATIONS if not next(iter(POPULATIONS[name].keywords.values()))
    ]
    assert len(of_nothing) == 3
    for name, sets, cut, dependence in rows:
        if name in of_nothing:
            error = 100 * (0.05 * 0.95 / int(sets.replace(",", ""))) ** 0.5
            assert max(float(cut), float(dependence)) <= 5 + 4 * error
