"""The page of an audit as a file: self-contained, escaped, small, readable without its script."""

import base64
import hashlib
import html
import json
import math
import re
from dataclasses import replace

import pytest
from audits import bare_finding, demo_record, many_findings
from frontiers import curves_of, demo_view
from pages import HOSTILE_NAMES, Parsed, embedded, outside_references, strings, without_figures

from metrifair.report import audit_html, write_html
from tests.seams.auditing import Distribution, Note
from tests.seams.wording import audit_summary, note_text

TWELVE = {"region": tuple(f"region {number}" for number in range(12))}
RECORDS = {
    "demo": demo_record(),
    "one finding, nothing known": demo_record(
        findings=[bare_finding(0)], decisions=[], distributions=[], notes=[]
    ),
    "nothing": demo_record(findings=[], decisions=[], distributions=[], notes=[]),
    "twelve groups": demo_record(TWELVE),
    "regression": demo_record(scale=250_000.0),
    "tiny": demo_record(scale=1e-300),
    "giant": demo_record(scale=1e300),
    "not numbers": demo_record(
        findings=[
            replace(bare_finding(0), certified=math.inf, p_value=math.nan, unbiased=-math.inf)
        ]
    ),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_the_page_refers_to_nothing_outside_itself(record):
    assert outside_references(audit_html(record)) == []


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_no_text_of_the_page_is_nan(record):
    text = audit_html(record)
    shown = [data for tag, data in Parsed(text).texts if tag not in ("script", "style")]
    assert without_figures(strings(embedded(text, "audit-data"))) == []
    assert without_figures(shown) == []


def test_the_policy_allows_exactly_the_inline_script_and_style():
    text = audit_html(demo_record(), frontier=demo_view())
    (policy,) = [
        a["content"]
        for _, a in Parsed(text).elements
        if a.get("http-equiv") == "Content-Security-Policy"
    ]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    for part, content in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{part} 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    for _, attributes in Parsed(text).elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(|fetch|XMLHttp",
        script,
    )


def named(name):
    """A record in which every text of the data is this name."""
    record = demo_record({name: (name, f"{name} too")}, sets=[(name, name, 0.0)])
    findings = [replace(finding, metric=name) for finding in record.findings]
    alike = Note("names_alike", {"attribute": name, "groups": [name, name]})
    return replace(record, findings=findings, notes=[alike])


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_from_the_data_arrive_unchanged_and_as_text(name):
    text = audit_html(named(name), title=name)
    plain = audit_html(named("plain"), title="plain")
    # The style, and so its hash, holds the title, which printed pages repeat, in letters, digits
    # and numbers alone.
    one, other = (Parsed(re.sub(r"style-src '[^']*'", "", page)).elements for page in (text, plain))
    assert one == other
    assert re.search(r'@top-left \{ content: "[A-Za-z0-9\\]*";', text)
    data = embedded(text, "audit-data")
    assert data["attributes"] == [{"name": name, "groups": [name, f"{name} too"]}]
    assert f"“{name}”" in data["texts"][0][0]
    body = text.partition("<body>")[2].partition('<script type="application/json"')[0]
    assert html.escape(name) in body
    assert name == html.escape(name) or name not in body


def test_the_head_says_what_was_found_without_any_script():
    text = audit_html(demo_record())
    body = text.partition("<body>")[2].partition("<script")[0]
    for sentence in (
        *audit_summary(demo_record()),
        *map(note_text, demo_record().notes),
        "1,989",
        "95%",
    ):
        assert html.escape(sentence) in body
    assert body.partition('id="findings"')[2].count("<tr>") == 1 + len(demo_record().findings)


def test_many_notes_are_folded():
    notes = [
        Note("missing_groups", {"attribute": f"a{number}", "rows": 1, "of": 9})
        for number in range(500)
    ]
    text = audit_html(demo_record(notes=notes))
    assert text.count("its findings exclude them.</li>") == 60
    assert "<summary>497 more</summary>" in text
    assert "440 more of this kind are not listed here." in text


def test_a_frontier_is_a_part_of_the_page_with_a_heading_of_its_own():
    text = audit_html(demo_record(), frontier=demo_view())
    assert "<h2>Mortgage approvals in Boston</h2>" in text
    assert embedded(text)["title"] == "Mortgage approvals in Boston"
    assert "Pareto front" in text
    assert "Pareto front" not in re.sub(
        r"<script.*?</script>", "", audit_html(demo_record()), flags=re.DOTALL
    )
    ids = [attributes["id"] for _, attributes in Parsed(text).elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    terms = re.findall(r"<dt>(.*?)</dt>", text.partition('id="words"')[2])
    assert len(terms) == len(set(terms))


def test_a_usual_page_is_small():
    assert len(audit_html(demo_record()).encode()) < 150_000


@pytest.mark.extended
def test_five_thousand_findings_stay_below_the_bound_and_all_are_listed():
    text = audit_html(demo_record(findings=list(many_findings(5000))))
    assert len(text.encode()) < 1_500_000
    data = embedded(text, "audit-data")
    assert len(data["rows"]) == data["total"] == 5000


@pytest.mark.extended
def test_the_largest_page_stays_below_its_bound():
    """More of everything than fits, with signs that take six bytes each."""
    odd = "<&>" * 8
    strata = [
        ("conditional_statistical_parity", f"{odd} county {number}", 0.001 * number)
        for number in range(10)
    ]
    record = demo_record(
        {f"region {odd}": tuple(f"{odd}{number}" for number in range(12))}, sets=strata
    )
    findings = [
        replace(finding, within=f"{odd} {number}")
        for number, finding in enumerate(many_findings(6_000))
    ]
    view = demo_view(
        count=200, seeds=3, groups=tuple(f"group number {n}" for n in range(6)), curves={}
    )
    shapes = curves_of(0.37, view.groups, size=2000)
    view = replace(view, curves={row.strength: shapes for row in view.rows})
    notes = [Note("groups_are_labels", {"attribute": odd * 10})] * 900
    notes += [Note("missing_groups", {"attribute": odd * 10, "rows": 1, "of": 9})] * 900
    notes += [
        Note(
            "small_groups", {"groups": [[odd * 2, odd, odd, 9]], "min_group_size": 30, "fewest": 2}
        )
    ] * 900
    text = audit_html(replace(record, findings=findings, notes=notes), frontier=view)
    assert len(text.encode()) < 1_500_000
    data = embedded(text, "audit-data")
    assert 100 < len(data["rows"]) < data["total"] == 6_000
    assert len(data["distributions"]) > 0 < len(data["witnesses"])


def test_distributions_of_the_worst_findings_come_first():
    record = demo_record()
    late = Distribution("other", "everyone", record.distributions[0].curves)
    data = embedded(
        audit_html(replace(record, distributions=[late, *record.distributions])), "audit-data"
    )
    assert [place["distribution"] for place in data["places"]] == [0, 1, 2, 3]


def test_half_a_sign_in_a_name_does_not_stop_the_writing(tmp_path):
    text = audit_html(demo_record({"sex": ("caf\udce9", "b")}))
    assert "caf?" in write_html(tmp_path / "report.html", text).read_text(encoding="utf-8")
    assert json.dumps(embedded(text, "audit-data"))
