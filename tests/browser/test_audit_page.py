"""The page of an audit in a real browser: drawings, choosers, search, sort, keyboard, hostile
names; no request.
"""

import io
import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from audits import bare_finding, demo_record, many_findings
from frontiers import HOSTILE, demo_view
from realaudits import AUDITS, audited

from metrifair import AuditOptions, audit
from metrifair.report import audit_html, write_html
from tests.seams.auditing import Note, shown_findings, sort_findings
from tests.seams.figures import Interval
from tests.seams.report import page as audit_page
from tests.seams.report import witness_step
from tests.seams.support import Provenance, SourceFile
from tests.seams.wording import (
    FINDING_DETAILS,
    Column,
    ColumnTable,
    audit_summary,
    describe,
    finding_table,
    interval_text,
    note_text,
    number_text,
    percent_text,
    tables,
    text_column,
)

PHONE = {"width": 390, "height": 844}
WIDE_SCREEN = {"width": 1280, "height": 900}
SHOTS = os.environ.get("METRIFAIR_SHOTS")  # a folder: keep screenshots there, for people to look at
BOLD = "<b>bold</b><img src=x onerror=alert(2)>"


def shoot(page, name, **options):
    if SHOTS:
        page.screenshot(path=Path(SHOTS, f"audit-{name}.png"), full_page=True, **options)


def texts(page, column):
    return page.locator(f"#findings tbody tr[data-row] > :nth-child({column})").all_inner_texts()


def headings(page):
    return [text.strip() for text in page.locator("#findings thead th").all_inner_texts()]


def paths(page, drawn):
    return [path.get_attribute("d") for path in page.locator(drawn).all()]


def shown(page):
    """Everything that depends on the finding that is chosen."""
    return {
        "sentence": page.locator("#showing").inner_text(),
        "gap": page.locator("#scored-gap").inner_text(),
        "shares": paths(page, "#scored-cumulative path.group"),
        "densities": paths(page, "#scored-density path.group"),
        "said": page.locator("#certain-said").inner_text(),
        "bars": page.locator("#certain").inner_text(),
        "witness": page.locator("#witness path.front").get_attribute("d"),
        "averages": page.locator("#witness-text").inner_text(),
    }


def on_axis(page, plot, x):
    """The score that stands at a place of a plot, by the ticks of its axis."""
    ticks = page.locator(f"{plot} .tick").evaluate_all(
        "all => all.filter(t => t.getAttribute('text-anchor') === 'middle')"
        ".map(t => [+t.textContent, +t.getAttribute('x')])"
    )
    (a, left), (b, right) = ticks[0], ticks[-1]
    return a + (x - left) * (b - a) / (right - left)


def test_all_sections_are_there(opened):
    record = demo_record()
    page = opened(audit_html(record, title="Loans of 2026"))
    assert page.title() == "Loans of 2026 – metrifair"
    assert page.locator("#audit-summary").inner_text() == audit_summary(record)[0]
    assert page.locator(".remark").count() == 3
    assert page.locator("#audit-highlights .highlight").count() == 2
    assert (
        page.locator("#scored-cumulative path.group").count()
        == page.locator("#scored-density path.group").count()
        == 2
    )
    assert page.locator("#scored-cumulative .gap-label").text_content() == "0.373"
    assert page.locator("#witness path").count() == 3
    assert page.locator("#certain li").count() == 1
    assert page.locator("#ratios table").count() == len(record.decisions)
    assert "men" in page.locator("#ratios table").first.inner_text()
    assert page.locator("#findings tbody tr").count() == 24
    assert page.locator("#words dt").count() > 10
    shoot(page, "wide-light")


@pytest.mark.parametrize("size", [WIDE_SCREEN, PHONE], ids=["wide", "phone"])
def test_decisions_come_first_and_the_rest_is_folded(opened, size):
    page = opened(audit_html(demo_record()), folded=True, viewport=size)
    tops = [page.locator(f"#{name}").bounding_box()["y"] for name in ("ratios", "scored")]
    assert tops == sorted(tops)
    for name in ("sure", "told", "findings"):
        assert not page.locator(f"#{name}").is_visible()
    page.locator("#statisticians > summary").click()
    assert page.locator("#certain li").first.is_visible()
    assert page.locator("#findings tbody tr").first.is_visible()
    assert page.locator("#witness path").count() == 3
    shoot(page, f"unfolded-{size['width']}")


def test_the_gap_stands_where_the_witness_drops(opened):
    record = demo_record()
    page = opened(audit_html(record))
    worst = max(
        (found for found in record.findings if found.metric == "kolmogorov"),
        key=lambda found: found.value,
    )
    path = page.locator("#scored-cumulative .gap").get_attribute("d")
    middle = float(re.search(r"M([\d.]+) [\d.]+V", path).group(1))
    assert on_axis(page, "#scored-cumulative", middle) == pytest.approx(
        witness_step(worst.witness), abs=1e-3
    )


def test_bars_stand_where_their_numbers_say(opened):
    record = demo_record()
    page = opened(audit_html(record))
    share = lambda text: float(text.rstrip("%")) / 100  # noqa: E731
    worst = max(
        (found for found in record.findings if found.metric == "kolmogorov"),
        key=lambda found: found.value,
    )
    dot, bound, jointly = (
        share(page.locator(f"#certain li {mark}").first.get_attribute(at))
        for mark, at in ((".measured", "cx"), (".bound:not(.jointly)", "x1"), (".jointly", "x1"))
    )
    assert bound / dot == pytest.approx(worst.certified / worst.value, rel=0.01)
    assert jointly / dot == pytest.approx(worst.certified_jointly / worst.value, rel=0.01)
    assert "at most, with 95% confidence" in page.locator("#certain-key").inner_text()


@pytest.mark.parametrize(
    ("chooser", "option", "changed"),
    [
        (
            "attribute",
            "age",
            {"sentence", "gap", "shares", "densities", "said", "bars", "witness", "averages"},
        ),
        (
            "place",
            "everyone (statistical parity)",
            {"sentence", "gap", "shares", "densities", "said", "witness"},
        ),
        ("metric", "Wasserstein distance", {"sentence", "said", "bars", "witness", "averages"}),
    ],
)
def test_choosers_change_what_depends_on_them(opened, chooser, option, changed):
    page = opened(audit_html(demo_record()))
    before = shown(page)
    page.locator(f"#choose-{chooser}").select_option(label=option)
    after = shown(page)
    assert changed <= {part for part in before if before[part] != after[part]}
    assert page.locator("#findings tr[aria-current]").count() == 1


def test_choosers_keep_what_was_not_changed(opened):
    page = opened(audit_html(demo_record()))
    page.locator("#choose-metric").select_option(label="Energy distance")
    page.locator("#choose-attribute").select_option(label="age")
    assert page.locator("#choose-metric option:checked").inner_text() == "Energy distance"
    assert (
        page.locator("#choose-place option:checked").inner_text() == "label=1 (equal opportunity)"
    )
    assert page.locator("#choose-pair option").count() == 3
    assert (
        page.locator("#choose-pair option:checked").inner_text() == "under 30 vs over 60"
    )  # groups of its own: the worst
    assert "no curve for this finding" in page.locator("#witness-hint").inner_text()
    assert not page.locator("#witness").is_visible()


def test_highlights_lead_to_what_they_are_about(opened):
    page = opened(audit_html(demo_record()))
    page.locator(".highlight").first.click()
    label = page.evaluate("document.activeElement.getAttribute('aria-labelledby')")
    assert page.locator(f"#{label}").inner_text() == "By sex"
    page.locator(".highlight").nth(1).click()
    assert (
        page.locator("#showing").inner_text().startswith("“women” and “men” by sex, among label=1")
    )
    assert page.evaluate("document.activeElement.id") == "choosers"


def test_choosers_of_one_option_are_not_shown(opened):
    page = opened(
        audit_html(
            demo_record({"sex": ("women", "men")}, sets=[("statistical_parity", "everyone", 0.0)])
        )
    )
    assert [
        page.locator(f"#{key}-choice").is_visible()
        for key in ("attribute", "place", "pair", "metric")
    ] == [
        False,
        False,
        False,
        True,
    ]


def test_the_keyboard_reaches_choosers_bars_and_rows(opened):
    page = opened(audit_html(demo_record()))
    page.locator("#choose-attribute").focus()
    page.keyboard.press("ArrowDown")
    assert "by age" in page.locator("#showing").inner_text()
    page.locator("#certain button").nth(2).focus()
    page.keyboard.press("Enter")
    assert page.locator("#certain li[aria-current] button").inner_text() == page.evaluate(
        "document.activeElement.textContent"
    )
    assert page.locator("#showing").inner_text().startswith("“30 to 60” and “over 60”")
    opener = page.locator("#findings .opener").nth(1)
    opener.focus()
    page.keyboard.press("Enter")
    assert opener.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the button within: show in the drawings
    assert page.evaluate("document.activeElement.id") == "choosers"
    assert "by sex" in page.locator("#showing").inner_text()


def test_of_many_pairs_a_few_bars_stand_and_the_rest_on_request(opened):
    page = opened(
        audit_html(demo_record({"region": tuple(f"region {number}" for number in range(12))}))
    )
    assert page.locator("#certain li").count() == 8
    page.locator("#certain-more").click()
    assert page.locator("#certain li").count() == 66
    assert page.locator("#certain-more").get_attribute("aria-expanded") == "true"
    page.locator("#certain-more").click()
    page.locator("#choose-pair").select_option(label="region 5 vs region 6")
    assert page.locator("#certain li").count() == 9  # the chosen one is always among them
    assert page.locator("#scored-cumulative path.faded").count() == 10
    styles = page.locator("#scored-cumulative path.group").evaluate_all(
        "all => all.map(e => getComputedStyle(e).stroke + getComputedStyle(e).strokeDasharray)"
    )
    assert len(set(styles)) == 12
    shoot(page, "twelve-groups")


def test_every_column_sorts_both_ways_and_what_is_missing_comes_last(opened):
    """By mouse first, then by keyboard; every second column the other way round."""
    page = opened(audit_html(demo_record()))
    for column, name in enumerate(headings(page), start=1):
        head = page.locator("#findings thead button").nth(column - 1)
        ways = []
        for turn, way in enumerate(("ascending", "descending")):
            head.click() if (column + turn) % 2 else head.press("Enter")
            assert page.locator("#findings th[aria-sort]").all_inner_texts() == [
                page.locator("#findings thead th").nth(column - 1).inner_text()
            ]
            assert page.locator("#findings th[aria-sort]").get_attribute("aria-sort") == way
            found = texts(page, column)
            known = [text for text in found if text != "–"]
            assert found == known + ["–"] * (len(found) - len(known)), name
            ways.append([key(text) for text in known])
        assert ways[0] == sorted(ways[0]), name
        assert ways[1] == sorted(ways[1], reverse=True), name
        assert len(set(map(str, ways[0]))) > 1 or name in ("Rows", "Significance")


def key(text):
    """A cell as people would sort it: numbers in it by their size, before words."""
    parts = re.findall(r"[\d.]+|[^\d.]+", text.split("\n")[0])
    return [(0, float(part), "") if part[0].isdigit() else (1, 0.0, part) for part in parts]


def test_search_finds_every_word_anywhere(opened):
    page = opened(audit_html(demo_record()))
    search = page.get_by_role("searchbox", name="Search")
    search.fill("OVER wasserstein opportunity")
    assert page.locator("#findings-hint").inner_text().startswith("2 findings.")
    assert set(texts(page, 4)) == {"Wasserstein"}
    assert all("over 60" in text for text in texts(page, 1))
    search.fill("nothing like it")
    assert page.locator("#findings-hint").inner_text() == "No finding matches."
    assert page.locator("#findings tbody tr").count() == 0
    search.fill("")
    assert page.locator("#findings tbody tr").count() == 24


def test_a_row_opens_to_what_it_means(opened):
    record = demo_record()
    page = opened(audit_html(record))
    page.locator("#findings .opener").first.click()
    said = page.locator("#findings tr.details").inner_text()
    worst = max(
        (found for found in record.findings if found.metric == "kolmogorov"),
        key=lambda found: found.value,
    )
    for part in (
        *describe(worst),
        "Joint certified bound",
        number_text(worst.certified_jointly),
        "720",
    ):
        assert part in said
    assert "Proven bracket" not in said
    shoot(page, "open-row")
    page.locator("#findings .opener").first.click()
    assert page.locator("#findings tr.details").count() == 0


NEW_COLUMNS = (
    Column("doubled", value=lambda finding: 2 * finding.value, title="Doubled"),
    Column("share", value="value", show=percent_text, title="As a share"),
    Column("around", "Ends", "interval", interval_text, title="Around"),
    text_column("about", "criterion", title="About"),
)


def test_a_new_column_needs_no_change_of_the_script(opened, monkeypatch):
    """The terminal's and the page's descriptions of columns are all that it takes."""

    def with_new_columns(record):
        return ColumnTable(*finding_table(record).values(), *NEW_COLUMNS)

    keys = tuple(column.key for column in NEW_COLUMNS)
    monkeypatch.setattr(tables, "FINDING_KEYS", (*tables.FINDING_KEYS, *keys))
    for module in (tables, audit_page):
        monkeypatch.setattr(module, "finding_table", with_new_columns)
    monkeypatch.setattr(audit_page, "FINDING_KEYS", tables.FINDING_KEYS)
    monkeypatch.setattr(audit_page, "FINDING_DETAILS", (*FINDING_DETAILS, "doubled"))
    record = demo_record()
    page = opened(audit_html(record))
    assert headings(page)[-4:] == ["Doubled", "As a share", "Around", "About"]
    first = sort_findings(shown_findings(record.findings))[0]
    cells = page.locator("#findings tbody tr[data-row]").first.locator("td").all_inner_texts()
    assert cells[-4:] == [column.cell(first).text for column in NEW_COLUMNS]
    page.locator("#findings .opener").first.click()
    names = page.locator("#findings tr.details dt").all_inner_texts()
    figures = page.locator("#findings tr.details dd").all_inner_texts()
    assert dict(zip(names, figures, strict=True))["Doubled"] == cells[-4]


def test_brackets_are_drawn_and_told(opened):
    finding = replace(bare_finding(0), bracket=Interval(0.83, 0.85))
    page = opened(audit_html(demo_record(findings=[finding], distributions=[])))
    assert page.locator("#certain .proven").count() == 2
    page.locator("#findings .opener").click()
    assert "0.830 to 0.850" in page.locator("#findings tr.details").inner_text()


def test_five_thousand_findings_come_by_pages(opened):
    page = opened(audit_html(demo_record(findings=list(many_findings(5000)))))
    assert page.locator("#findings tbody tr").count() == 25
    assert page.locator("#findings-hint").inner_text().startswith("1 to 25 of 5,000 findings.")
    assert page.locator("#previous").is_disabled()
    page.locator("#next").click()
    assert page.locator("#page").inner_text() == "Page 2 of 200"
    first = texts(page, 5)
    page.get_by_role("button", name="Value", exact=True).click()
    assert page.locator("#page").inner_text() == "Page 1 of 200"
    assert texts(page, 5) != first
    page.locator("#findings .opener").first.click()
    assert (
        "has the sentences of the largest findings only"
        in page.locator("#findings tr.details").inner_text()
    )
    page.locator("#findings .link").first.click()
    assert re.match(
        r"This file holds no curve for this finding, but those of the \d+ largest",
        page.locator("#witness-hint").inner_text(),
    )
    page.locator("#search").fill("district number 3 county=41")
    assert 0 < page.locator("#findings tbody tr[data-row]").count() < 25
    assert not page.locator("#pager").is_visible()


def test_what_does_not_fit_is_told(opened):
    page = opened(audit_html(demo_record(findings=list(many_findings(9_000)))))
    said = re.search(
        r"The file lists the first ([\d,]+) of 9,000", page.locator("#findings-hint").inner_text()
    )
    assert 3000 < int(said.group(1).replace(",", "")) < 9_000


def test_the_page_without_its_script_shows_summary_and_table(browser, opened, tmp_path):
    record = demo_record(
        findings=[*demo_record().findings, *(bare_finding(number) for number in range(40))]
    )
    text = audit_html(record)
    page = browser.new_page(java_script_enabled=False)
    page.goto(write_html(tmp_path / "static.html", text).as_uri())
    assert page.locator("#audit-summary").is_visible()
    assert "lists all findings" in page.locator(".alarm").inner_text()
    assert not page.locator("#drawings").is_visible()
    assert not page.locator("#search").is_visible()
    cells = "all => all.map(row => [...row.cells].map(cell => cell.textContent))"
    static = page.locator("#listed tr").evaluate_all(cells)
    page.locator("#statisticians > summary").click()
    assert page.locator("#listed").is_visible()
    assert not page.locator("#findings").is_visible()  # it waits for the script
    page.close()
    assert len(static) == 1 + 64
    scripted = opened(text).locator("#findings tr").evaluate_all(cells)
    assert len(scripted) == 1 + 25
    assert scripted == static[: 1 + 25]  # the texts made in Python and by the script are the same


def test_names_from_the_data_are_text(opened):
    record = demo_record({HOSTILE: (HOSTILE, BOLD)}, sets=[(BOLD, HOSTILE, 0.0)])
    note = Note("groups_are_labels", {"attribute": BOLD})
    page = opened(audit_html(replace(record, notes=[note]), title=HOSTILE))
    assert page.locator("h1").inner_text() == HOSTILE
    assert HOSTILE in page.locator("#audit-summary").inner_text()
    assert page.locator(".remark li").inner_text() == note_text(note)
    assert page.locator("#scored-groups").inner_text().split("\n") == [HOSTILE, BOLD]
    assert page.locator("#findings tbody th").first.inner_text() == f"{HOSTILE} vs {BOLD}"
    page.locator("#scored-density svg").hover()
    assert BOLD in page.locator("#scored-density .tooltip").inner_text()
    page.locator("#findings .opener").first.click()
    assert BOLD in page.locator("#findings tr.details").inner_text()
    page.locator("#search").fill(BOLD)
    assert page.locator("#findings tbody tr[data-row]").count() == 3
    assert page.locator("img, body b:not(.highlight b)").count() == 0
    assert page.locator("script").count() == 3
    shoot(page, "hostile")


def test_negative_numbers_have_one_minus_sign_everywhere(opened):
    group = np.arange(240) % 3 // 2
    scores = np.random.default_rng(0).normal(group - 5)
    options = AuditOptions(resamples=20, permutations=0)
    record = audit(
        None, scores, sensitive_features=group, threshold=-4, random_state=0, options=options
    ).record
    page = opened(audit_html(record))
    for plot in ("#scored-density", "#witness"):
        page.locator(f"{plot} svg").hover()
        assert page.locator(f"{plot} .tooltip").inner_text().startswith("score −")
        text = page.locator("body").inner_text()
        assert "−4" in text
        assert re.findall(r".*(?<![\w=])-\d.*", text) == []


def test_the_policy_stops_scripts_that_are_not_the_pages_own(browser, tmp_path):
    text = audit_html(demo_record()).replace(
        "</body>", "<script>window.hurt = 1</script><img src=http://127.0.0.1:9/x></body>"
    )
    page = browser.new_page()
    sent = []
    page.on("requestfinished", lambda request: sent.append(request.url))
    page.goto(write_html(tmp_path / "hurt.html", text).as_uri())
    assert page.evaluate("window.hurt") is None
    assert not [url for url in sent if url.startswith("http")]
    page.close()


RECORDS = {
    "one-finding": demo_record(
        findings=[bare_finding(0)], decisions=[], distributions=[], notes=[]
    ),
    "nothing": demo_record(findings=[], decisions=[], distributions=[], notes=[]),
    "only-decisions": demo_record(findings=[], distributions=[]),
    "regression": demo_record(scale=250_000.0),
    "tiny": demo_record(scale=1e-300),
    "giant": demo_record(scale=1e300),
}


@pytest.mark.parametrize("name", RECORDS)
def test_unusual_audits_open_too(opened, name):
    page = opened(audit_html(RECORDS[name]))
    said = page.locator("body").inner_text()
    assert not re.search(r"\b(NaN|undefined|null|Infinity)\b", said)
    assert (
        page.locator("[d*='NaN'], [cx*='NaN'], [x*='NaN'], [x1*='NaN'], [width*='NaN']").count()
        == 0
    )
    assert page.locator("#choosers").is_visible() == bool(RECORDS[name].findings)
    assert page.locator("#ratios").count() == bool(RECORDS[name].decisions)
    assert page.locator("#scored").is_visible() == bool(RECORDS[name].distributions)
    for curve in page.locator("#scored-density path.group").all():
        assert curve.evaluate("e => e.getBBox().height") > 50  # the axis fits the densities
    shoot(page, name)


@pytest.mark.parametrize("name", AUDITS)
def test_real_audits_open(opened, name):
    record = audited(name).record
    page = opened(audit_html(record, title=f"Real: {name}"))
    assert page.locator("#audit-summary").inner_text() == audit_summary(record)[0]
    assert (
        page.locator("#findings-hint").inner_text().count(f"{len(record.findings)} findings") == 1
    )
    for number in range(page.locator("#choose-place option").count()):
        if page.locator("#choose-place").is_visible():
            page.locator("#choose-place").select_option(index=number)
        drawn = "not in this file" not in page.locator("#scored-gap").inner_text()
        assert drawn == (
            "risk parity" not in page.locator("#choose-place option:checked").text_content()
        )
        if drawn:
            value = re.search(
                r"Kolmogorov distance ([\d.]+)\.$", page.locator("#showing").inner_text()
            ).group(1)
            assert page.locator("#scored-cumulative .gap-label").text_content() == value
    shoot(page, f"real-{name}")


def test_a_frontier_below_works_on_its_own(opened):
    page = opened(audit_html(demo_record(), frontier=demo_view()))
    before = shown(page)
    page.locator("#slider").fill("0")
    assert (
        page.locator("#strength").inner_text()
        == page.locator("#table tr[aria-current] th").inner_text()
        == "0"
    )
    assert shown(page) == before
    page.locator("#choose-attribute").select_option(label="age")
    assert page.locator("#strength").inner_text() == "0"
    assert page.locator("script").count() == 4
    shoot(page, "frontier")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(opened, contrast, scheme):
    page = opened(audit_html(demo_record()), color_scheme=scheme)
    page.locator("#findings .opener").first.click()
    colors = page.evaluate(
        "() => ['h1', '.lead', '.facts dt', '.remark h2', '.hint', '#showing', '.numbers', "
        "'.said', 'td', 'td small',"
        " '.details p + p', '.opener', '.link', 'label', 'select', '.where', '#words dd'].map(s => "
        "{"
        "  let e = document.querySelector(s); const color = getComputedStyle(e).color;"
        "  while (getComputedStyle(e).backgroundColor === 'rgba(0, 0, 0, 0)') e = e.parentElement;"
        "  return [s, color, getComputedStyle(e).backgroundColor]; })"
    )
    for what, text, ground in colors:
        assert contrast(text, ground) >= 4.5, (what, text, ground)
    paper = page.locator("body").evaluate("e => getComputedStyle(e).backgroundColor")
    assert (contrast(paper, "rgb(255, 255, 255)") > 10) == (scheme == "dark")
    shoot(page, f"wide-{scheme}-open")


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_a_phone_needs_no_sideways_scrolling(opened, scheme):
    page = opened(
        audit_html(demo_record({"sex": ("women", "men"), HOSTILE * 3: (HOSTILE * 3, BOLD * 3)})),
        viewport=PHONE,
        color_scheme=scheme,
        has_touch=True,
        is_mobile=True,
    )
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    page.locator("#findings .opener").first.tap()
    assert page.locator("#findings .narrow").first.inner_text() == "sex, label=1"
    inside = page.locator("#findings tr.details div").first
    assert inside.evaluate("e => e.getBoundingClientRect().right") <= PHONE["width"]
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    shoot(page, f"phone-{scheme}")


def test_every_control_has_a_name(opened):
    page = opened(audit_html(demo_record(), frontier=demo_view()))
    nameless = page.evaluate(
        "() => [...document.querySelectorAll('button, input, select, [role=button], "
        "[role=region]')].filter(e => !("
        "e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.labels?.length ||"
        " (e.tagName !== 'SELECT' && e.textContent.trim()) || e.hidden)).map(e => e.id)"
    )
    assert nameless == []


def test_the_plots_follow_the_width_of_the_window(opened):
    page = opened(audit_html(demo_record()))
    page.set_viewport_size(PHONE)
    for plot in ("scored-density", "scored-cumulative", "witness"):
        page.wait_for_function(f"document.querySelector('#{plot} svg').viewBox.baseVal.width < 400")
        assert page.locator(f"#{plot} svg").count() == 1


def test_print_shows_what_is_chosen_on_white_paper(opened):
    page = opened(
        audit_html(demo_record()), color_scheme="dark", viewport={"width": 740, "height": 1000}
    )
    page.locator("#choose-attribute").select_option(label="age")
    page.emulate_media(media="print")
    for control in (".choices", "#search"):
        assert not page.locator(control).is_visible()
    assert "by age" in page.locator("#showing").inner_text()
    assert page.locator("h1").evaluate("e => getComputedStyle(e).color") == "rgb(27, 27, 31)"
    assert (
        page.locator("body").evaluate("e => getComputedStyle(e).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    right = "e => e.getBoundingClientRect().right"
    for table, place in (("#findings", ".card:has(#findings)"), ("#ratios table", "#ratios")):
        card = page.locator(place).first.evaluate(right)
        assert page.locator(table).first.evaluate(right) <= card
    shoot(page, "print")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bands_stand_along_a_number(opened, contrast, scheme):
    """Quantiles, selection rates and the worst cut lie where their numbers say; on a phone and
    in print too.
    """
    generator = np.random.default_rng(0)
    age = generator.integers(18, 90, 800).astype(float)
    score = np.clip(generator.normal(0.5, 0.15, 800) - 0.2 * (age > 60), 0, 1).round(3)
    found = audit(
        None,
        score,
        sensitive_features={BOLD: age},
        continuous=True,
        random_state=0,
        options=AuditOptions(resamples=0, permutations=99),
    )
    (along,) = found.record.along
    page = opened(audit_html(found.record), color_scheme=scheme)
    section = page.locator("#along")
    (worst,) = [one for one in found.findings if one.metric == "kolmogorov"]
    assert describe(worst).sentence in section.inner_text()
    scores, selected = section.locator("svg").all()
    assert BOLD in scores.get_attribute("aria-label")
    ticks = {
        float(one.text_content()): float(one.get_attribute("x"))
        for one in scores.locator(".tick[text-anchor=middle]").all()
    }
    (low, left), (high, right) = min(ticks.items()), max(ticks.items())
    cut = float(scores.locator(".worst-cut").get_attribute("x1"))
    assert low + (cut - left) / (right - left) * (high - low) == pytest.approx(along.cut, abs=0.5)
    assert scores.locator("polygon.area").count() == 2
    assert len(scores.locator("polyline").get_attribute("points").split()) == len(along.at)
    heights = [float(one.get_attribute("cy")) for one in selected.locator("circle").all()]
    assert np.corrcoef(heights, along.selection_rates)[0, 1] < -0.999
    section.locator("summary").click()
    assert section.locator("tbody tr").count() == len(along.bands)
    ink = page.evaluate("getComputedStyle(document.querySelector('#along .tick')).fill")
    card = page.evaluate("getComputedStyle(document.querySelector('#along')).backgroundColor")
    assert contrast(ink, card) >= 4.5
    shoot(page, f"along-{scheme}")
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert scores.bounding_box()["width"] > 250
    page.emulate_media(media="print")
    assert scores.is_visible()


def test_an_audit_of_groups_has_nothing_along_a_number(opened):
    assert opened(audit_html(demo_record())).locator("#along").count() == 0


@pytest.mark.parametrize("scripted", [True, False])
def test_the_printed_page_holds_every_finding_and_where_it_comes_from(opened, scripted):
    """On paper there is no pager, with and without the script; every page names the title and
    the file's hash.
    """
    pypdf = pytest.importorskip("pypdf", reason="pypdf is in the extra dev")
    few = [replace(bare_finding(number), sizes=(5, 900), enough=False) for number in range(40)]
    record = demo_record(
        findings=[*many_findings(90), *few],
        provenance=Provenance(
            about={"source": "payroll"},
            files=[SourceFile("scores.csv", 1200, "ab12cd34" * 8)],
            rows_read=2001,
            left_out={"without a score": 12},
            call="metrifair audit scores.csv",
            seed=3,
            versions={"metrifair": "1.0"},
            time="2026-11-16 08:00:00 UTC",
        ),
    )
    page = opened(audit_html(record, title="Hiring, autumn"), java_script_enabled=scripted)
    pages = [
        sheet.extract_text()
        for sheet in pypdf.PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages
    ]
    text = " ".join(" ".join(pages).replace("\ufb01", "fi").split())
    for one in record.findings:
        assert f"{one.groups[0]} vs {one.groups[1]}" in text
    values = Counter(number_text(one.value) for one in record.findings)
    assert all(text.count(value) >= times for value, times in values.items())
    # sentences have nouns or "statistically"
    in_a_row = re.compile(r"(?<!statistically )significant(?! gap)")
    assert len(in_a_row.findall(text)) == 90
    assert text.count("Bonferroni") == 1  # in the glossary
    assert text.count("too few rows") == 40
    assert text.count("Too few rows: fewer than 30 in a group") == 1
    for said in (
        "payroll",
        "1,200 bytes",
        "2,001 read",
        "12 excluded",
        "metrifair audit scores.csv",
        "08:00:00 UTC",
    ):
        assert said in text
    assert "ab12cd34" * 8 in text.replace(" ", "")
    assert len(pages) > 3
    for number, sheet in enumerate(pages, 1):
        assert "Hiring, autumn" in sheet
        assert "scores.csv sha256 ab12cd34ab12cd34" in sheet
        assert f"{number} / {len(pages)}" in sheet
        assert number == len(pages) or len(sheet) > 400, "a page is all but empty"
        assert not in_a_row.search(sheet) or "p-value" in sheet, "the table has no heading"


@pytest.mark.pairwise
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_tables_of_rates_fit_the_page_and_are_printed(opened, width, scheme):
    """They need no script, stay inside the page, can be scrolled by keyboard, and no line
    covers another.
    """
    generator = np.random.default_rng(0)
    people = {
        "sex": generator.choice(["women", "men"], 900),
        "race": generator.choice(list("abcd"), 900),
    }
    found = (
        audit(
            None,
            generator.random(900),
            sensitive_features=people,
            random_state=0,
            options=AuditOptions(resamples=0, permutations=0),
        )
        .rates("ll144")
        .audit
    )
    page = opened(
        audit_html(found.record), viewport={"width": width, "height": 900}, color_scheme=scheme
    )
    section = page.locator("#ratios")
    assert section.locator("table").count() == 3
    assert section.locator("tbody tr").count() == 2 + 4 + 8
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for region in section.locator(".scroll").all():
        box, following = (
            region.bounding_box(),
            region.locator("xpath=following-sibling::*[1]").bounding_box(),
        )
        assert following["y"] >= box["y"] + box["height"]
    page.emulate_media(media="print")
    assert section.is_visible()
    tables = [table.bounding_box() for table in section.locator("table").all()]
    assert max(box["x"] + box["width"] for box in tables) <= max(width, 640)


@pytest.mark.parametrize("of", ["scores", "decisions", "a number"])
def test_the_glossary_has_only_words_of_the_page(opened, of):
    """Those of a finding's details are shown when it is unfolded, from the values of the page."""
    generator = np.random.default_rng(0)
    rows = 600
    sex = generator.choice(["women", "men"], rows)
    score = generator.random(rows) / (1 + (sex == "women"))
    label = (generator.random(rows) < score).astype(int)
    groups = {"sex": sex}
    if of == "decisions":
        score = (score > 0.5).astype(int)
    if of == "a number":
        groups = {"debt": generator.normal(size=rows)}
        label = None
    numbers = ["debt"] if of == "a number" else False
    found = audit(label, score, sensitive_features=groups, continuous=numbers, random_state=0)
    page = opened(audit_html(found.record))
    words = page.locator("#words dt").all_inner_texts()
    values = page.text_content("#audit-data")
    page.evaluate("for (const part of document.querySelectorAll('#words, script')) part.remove()")
    shown = f"{page.text_content('body')} {values}".lower()
    assert "Score" in words
    assert [word for word in words if word.lower() not in shown] == []


def test_notes_follow_the_charts(opened):
    page = opened(audit_html(demo_record(notes=[Note("undecided")])))
    tops = [
        page.locator(part).first.bounding_box()["y"]
        for part in ("#audit-summary", "#scored", ".remarks", "#findings-title")
    ]
    assert tops == sorted(tops)
