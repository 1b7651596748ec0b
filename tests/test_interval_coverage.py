"""The table of how often intervals hold the truth: truths are right, work is not done twice,
misses are marked.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks import intervals
from tests.seams.figures import Interval

DOCS = Path(__file__).parent.parent / "docs"


def test_the_truths_of_populations_are_those_of_closed_forms() -> None:
    closed = {
        "null": (0.0, 0.0, 0.0),
        "shift 2": (0.6826894921, 2.0, None),  # P(|Z| < 1), the shift
        # the difference of the distribution functions is 6 x^2 (1 - x)^2
        "beta": (0.375, 0.2, 4 / 35),
        "lognormal": (0.1974126514, 1.0695646494, None),  # P(|Z| < 1/4), the difference of means
        "spike": (0.2, 0.1, 2 * 0.04 / 3),
        "binary": (0.2, 0.2, 0.08),
        "rare": (0.25, 0.25, 0.125),
    }
    for name, told in closed.items():
        found = intervals.true_distances(intervals.POPULATIONS[name], intervals.USUAL)
        for value, exact in zip(found.values(), told, strict=True):
            assert exact is None or value == pytest.approx(exact, rel=1e-5, abs=1e-9), name


def test_a_tally_counts_intervals_above_and_below_the_truth() -> None:
    ends = [Interval(0.0, 1.0), Interval(0.6, 0.8), None, Interval(0.5, 0.5), Interval(0.1, 0.4)]
    found = intervals.tally(ends, 0.5)
    assert found == (5, 4, 1, 1, pytest.approx(2.0 + 0.4 + 0.6))
    assert found.covered == 0.5
    assert intervals.added([found, found]) == (10, 8, 2, 2, pytest.approx(6.0))


def test_finished_work_is_not_done_again_and_misses_are_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intervals, "PIECE", 2)
    monkeypatch.setattr(intervals, "SIZES", ((6, 5),))
    monkeypatch.setattr(intervals, "SIZES_OF_OTHERS", ((6, 4),))
    store = tmp_path / "kept" / "done.jsonl"
    result = intervals.work(store, 2, 2, 1)
    lines = store.read_text().splitlines()
    assert len(lines) == 2 * 3 * len(intervals.POPULATIONS)
    # a process that was killed while it wrote
    store.write_text("\n".join(lines) + "\n" + lines[0][:40])
    monkeypatch.setattr(intervals, "piece_of_work", None)  # would fail if asked
    assert str(intervals.work(store, 2, 2, 1)) == str(result)
    assert store.read_text().splitlines() == lines

    key, found = json.loads(lines[0])
    found["energy"] = [2, 2, 1, 0, 3.0]
    store.write_text("\n".join([json.dumps([key, found]), *lines[1:]]) + "\n")
    text = intervals.page(intervals.work(store, 2, 2, 1))
    assert "**50.0 %**, 1.50 |" in next(
        line for line in text.splitlines() if line.startswith("| 6/5 | none | null |")
    )
    assert "| 6/4 | none | beta | no interval | no interval | no interval | - |" in text


@pytest.mark.page("intervals.md")
def test_the_committed_table_has_no_cell_below_the_promise() -> None:
    text = (DOCS / "results" / "intervals.md").read_text(encoding="utf-8")
    assert text.count("2,000 data sets each") == 2
    usual, others = (
        len(kind) * 3 * len(intervals.POPULATIONS)
        for kind in (intervals.SIZES, intervals.SIZES_OF_OTHERS)
    )
    shares = [float(share) for share in re.findall(r"([\d.]+) %\**, \d", text)]
    without = usual * len(intervals.USUAL) + others * len(intervals.OTHERS) - text.count(" - |")
    assert len(shares) == without
    assert min(shares) >= 100 * intervals.AT_LEAST
    assert "**" not in text


def test_the_short_table_is_that_of_the_long_one() -> None:
    """Least and mean share by sizes of the groups, without weights."""
    usual = (DOCS / "results" / "intervals.md").read_text(encoding="utf-8").split("\n## ")[1]
    shares: dict[str, list[list[float]]] = defaultdict(list)
    for line in usual.splitlines():
        cells = line.strip("| ").split(" | ")
        if len(cells) == 6 and cells[1] == "none":
            sizes = " and ".join(f"{int(size):,}" for size in cells[0].split("/"))
            shares[sizes].append([float(cell.split(" %")[0]) for cell in cells[3:]])
    short = (DOCS / "intervals.md").read_text(encoding="utf-8")
    for sizes, rows in shares.items():
        columns = list(zip(*rows, strict=True))
        cells = [f"{min(column):.1f} %, {np.mean(column):.1f} %" for column in columns]
        assert f"| {sizes} | {' | '.join(cells)} |" in short
    assert short.count(" %, ") >= 3 * len(shares) > 10
