"""Pages of comparisons and series, and the section By group, in a real browser: light, dark,
telephone, print.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metrifair import AuditDifference, AuditOptions, AuditState, audit, monitor
from metrifair.report import audit_html
from tests.seams.support import Provenance
from tests.seams.wording import VERDICTS, number_text

PHONE = {"width": 390, "height": 844}
SHOTS = os.environ.get("METRIFAIR_SHOTS")  # a folder: keep screenshots there, for people to look at
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def found() -> AuditDifference:
    generator = np.random.default_rng(0)
    group = np.repeat(["f", "m", HOSTILE], [300, 260, 120])
    latent = generator.normal(size=len(group))
    scores = {
        name: 1
        / (1 + np.exp(-latent - shift * (group == "m") + 0.3 * generator.normal(size=len(group))))
        for name, shift in (("old", 1.2), (HOSTILE, 0.2))
    }
    label = (generator.random(len(group)) < scores["old"]).astype(int)
    compared = audit(
        label,
        scores,
        sensitive_features={"sex": group},
        random_state=0,
        options=AuditOptions(resamples=60, permutations=0),
    )
    assert isinstance(compared, AuditDifference)
    return compared


def no_wider_than_the_window(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def shown(opened: Any, text: str, name: str) -> Any:
    """The page, wide; looked at in all its forms on the way."""
    page, dark = opened(text), opened(text, color_scheme="dark")
    for form, other in {"dark": dark, "print": dark, "phone": opened(text, viewport=PHONE)}.items():
        if form == "print":
            other.emulate_media(media="print")
        assert no_wider_than_the_window(other), form
        if SHOTS:
            other.screenshot(path=Path(SHOTS, f"{name}-{form}.png"), full_page=True, timeout=60_000)
    if SHOTS:
        page.screenshot(path=Path(SHOTS, f"{name}-light.png"), full_page=True, timeout=60_000)
    return page


def printed(page: Any, origin: Provenance) -> str:
    """The text of all pages on paper, each of which names the title; with where it comes from."""
    pypdf = pytest.importorskip("pypdf", reason="pypdf is in the extra dev")
    pages = [
        sheet.extract_text()
        for sheet in pypdf.PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages
    ]
    title = page.locator("h1").inner_text()
    assert all(
        title in sheet and f"{at} / {len(pages)}" in sheet for at, sheet in enumerate(pages, 1)
    )
    text = " ".join(" ".join(pages).replace("\ufb01", "fi").split())
    for said in (origin.call or "", origin.time, *origin.versions.values()):
        assert "".join(said.split()) in text.replace(" ", ""), said
    return text


def test_a_comparison_lists_every_difference_and_draws_both(
    opened: Any, found: AuditDifference, tmp_path: Path
) -> None:
    found.to_html(tmp_path / "page.html")
    page = shown(opened, (tmp_path / "page.html").read_text(), "difference")
    rows = page.locator("table.differences tbody tr")
    assert rows.count() == len(found.differences)
    verdicts = page.locator("table.differences tbody tr td:last-child").all_inner_texts()
    assert sorted(verdicts) == sorted(VERDICTS[one.verdict] for one in found.differences)
    assert page.locator(".cards section").count() == 2
    assert page.locator(".cards polyline.group").count() == 2 * 3 * 3  # audits, sets, groups
    assert page.locator("h2", has_text=HOSTILE).count() >= 1  # as text
    bar = page.locator(".change-bar .measured.better").first
    assert "rgb(0, 105, 77)" in bar.evaluate("one => getComputedStyle(one).fill")
    text, seen = printed(page, found.record.origin), Counter[str]()
    seen.update(
        number_text(value) for one in found.differences for value in (one.before, one.after)
    )
    assert all(text.count(value) >= times for value, times in seen.items())
    unchanged = sum(one.verdict == "not_distinguishable" for one in found.differences)
    assert text.count("not distinguishable") >= unchanged


def test_figures_by_group_are_listed_with_their_curves(
    opened: Any, found: AuditDifference, tmp_path: Path
) -> None:
    one = found.audits["old"]
    one.to_html(tmp_path / "page.html")
    page = shown(opened, (tmp_path / "page.html").read_text(), "by-group")
    section = page.locator("#by-group")
    assert section.locator("tbody tr").count() == 4  # three groups, and the largest difference
    table = one.record.by_group[0]
    assert table.groups[0].auc is not None
    assert f"{table.groups[0].auc.value:.3f}" in section.inner_text()
    assert section.locator("svg[role=img]").count() == 2
    assert section.locator("polyline.group").count() == 2 * 3
    assert section.locator("polygon.area").count() == 3


def test_a_series_has_a_chart_for_each_distance(opened: Any, tmp_path: Path) -> None:
    generator, group = np.random.default_rng(1), np.repeat(["f", "m"], 150)
    states = {}
    for day in range(9):
        shift = 0.3 if day < 6 else 1.8
        scores = 1 / (1 + np.exp(-generator.normal(size=300) - shift * (group == "m")))
        states[f"day {day}"] = AuditState().add(
            None, np.round(scores, 2), sensitive_features={"sex": group}
        )
    series = monitor(states, random_state=0, options=AuditOptions(resamples=60))
    series.to_html(tmp_path / "page.html")
    page = shown(opened, (tmp_path / "page.html").read_text(), "series")
    assert page.locator(".charts .plot").count() == 3
    assert page.locator("table.differences tbody tr").count() == len(series.record.series)
    assert page.locator(".change.worse").count() == len(series.alarms)
    text, seen = (
        printed(page, series.record.origin),
        Counter(number_text(one.value) for one in series.record.series),
    )
    assert all(text.count(value) >= times for value, times in seen.items())


def test_a_printed_table_of_credit_holds_all_its_figures(opened: Any) -> None:
    generator, group = np.random.default_rng(2), np.repeat(["f", "m", "x"], [300, 400, 80])
    scores = generator.random(780) ** np.where(group == "f", 1.5, 1.0)
    found = (
        audit(
            None,
            scores,
            sensitive_features=group,
            random_state=0,
            options=AuditOptions(resamples=60, permutations=0),
        )
        .rates("credit", reference="m")
        .audit
    )
    page = opened(audit_html(found.record, title="Credit"))
    text = printed(page, found.provenance)
    (table,) = found.decisions
    for rate in table.rates:
        assert f"{rate.size:,}" in text
        assert rate.ratio is not None
        assert f"{rate.ratio:.3f}" in text
        assert all(f"{ratio:.2f}" in text for ratio in rate.decile_ratios if ratio is not None)
    assert page.locator("#ratios svg polyline.group").count() == 3
    assert "These figures do not decide whether a law or a rule is met" in text


def test_a_notebook_and_what_it_shows_do_not_reach_each_other(
    opened: Any, found: AuditDifference
) -> None:
    shown = found.audits["old"]._repr_html_() + found._repr_html_()
    style = "<style>h1 { font-size: 7px } p { color: rgb(1, 2, 3) }</style>"
    page = opened(f"<!doctype html>{style}<h1 id=title>Notebook</h1><p id=host>text</p>{shown}")
    assert page.locator("#title").evaluate("one => getComputedStyle(one).fontSize") == "7px"
    # pages set none
    assert page.locator("#host").evaluate("one => getComputedStyle(one).marginTop") == "16px"
    first, second = (page.frame_locator("iframe").nth(at) for at in range(2))
    assert first.locator("h1").inner_text() == "Fairness audit"
    first.locator("#scored-cumulative path.group").first.wait_for()  # its script has drawn
    assert first.locator("h1").evaluate("one => getComputedStyle(one).fontSize") != "7px"
    assert second.locator("table.differences tbody tr").count() == len(found.differences)
