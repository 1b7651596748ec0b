"""Tables of ratios on pages follow from the record, and recording keeps what was printed."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

from benchmarks import record, timing


@pytest.mark.page("benchmarks.md")
@pytest.mark.parametrize("page", record.PAGES, ids=lambda page: page.name)
def test_tables_on_pages_are_made_from_the_record(page: Path) -> None:
    text = page.read_text()
    assert record.in_text(text, record.table(rows=record.PAGES[page])) == text
    assert text.count(record.BEGIN) == text.count(record.END) == 1


def test_one_page_shows_all_rows() -> None:
    assert [page.name for page, rows in record.PAGES.items() if len(rows) == len(record.ROWS)] == [
        "benchmarks.md"
    ]


def test_every_figure_of_the_table_has_been_recorded() -> None:
    claims = [json.loads(line)["claim"] for line in record.KEPT.read_text().splitlines()]
    for _, figures, beginnings in record.ROWS:
        assert figures.count("{}") == len(beginnings)
        for beginning in beginnings:
            assert len({claim for claim in claims if claim.startswith(beginning)}) == 1, beginning


def test_a_table_tells_ranges_and_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        record, "ROWS", (("sums", "{} faster, {} smaller", ("sums: time", "sums: size")),)
    )
    seen = [
        ("x86_64", "sums: time", 3.14),
        ("aarch64", "sums: time", 12.0),
        ("x86_64", "sums: size", 2.0),
    ]
    lines = [
        json.dumps({"machine": m, "day": "2026-01-02", "claim": c, "ratio": r}) for m, c, r in seen
    ]
    (tmp_path / "kept").write_text("\n".join(lines))
    assert (
        record.table(tmp_path / "kept").splitlines()[-1]
        == "| sums | 3.1 - 12x faster, 2x smaller | ARM, x86-64 |"
    )
    assert "(2026-01-02, one thread" in record.table(tmp_path / "kept")


def test_recording_keeps_ratios_by_names_that_do_not_change_with_the_time_taken(
    tmp_path: Path,
) -> None:
    before = list(timing.printed)
    timing.printed[:] = [
        timing.Claim("step, our loop (837 us)", "1.69x", "<= 2x", met=True),
        timing.Claim("peak memory", "40 MB", "< 300 MB", met=True),
        timing.Claim("rates: against theirs (11.5 s)", "8,350x (51 s)", "", met=True),
    ]
    record.add(tmp_path / "kept")
    assert timing.printed == []
    timing.printed[:] = before
    found = [json.loads(line) for line in (tmp_path / "kept").read_text().splitlines()]
    assert {one.pop("machine") for one in found} == {platform.machine()}
    assert [(one["claim"], one["ratio"]) for one in found] == [
        ("step, our loop", 1.69),
        ("rates: against theirs", 8350.0),
    ]
