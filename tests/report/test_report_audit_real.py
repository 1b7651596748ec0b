"""Pages of real audits: what `audit` finds is what the page shows."""

import pytest
from pages import embedded, strings, without_figures
from realaudits import AUDITS, audited

from metrifair.report.audit.page import audit_html
from metrifair.wording.numbers import number_text


@pytest.mark.parametrize("name", AUDITS)
def test_the_gaps_that_are_marked_are_the_findings(name):
    data = embedded(audit_html(audited(name).record), "audit-data")
    rows = [dict(zip(data["fields"], row, strict=True)) for row in data["rows"]]
    assert len(rows) == len(audited(name).findings)
    marked = set()
    for row in rows:
        place = data["places"][row["place"]]
        if data["metrics"][row["metric"]]["short"] != "Kolmogorov" or place["distribution"] is None:
            continue
        gap = data["distributions"][place["distribution"]]["gaps"][f"{row['left']},{row['right']}"]
        assert gap["size"] == number_text(row["value"])
        marked.add(place["criterion"])
    assert marked == {place["criterion"] for place in data["places"]} - {"Risk parity"}


@pytest.mark.parametrize("name", AUDITS)
def test_the_page_of_a_real_audit_is_whole_and_small(name):
    text = audit_html(audited(name).record)
    assert len(text.encode()) < 250_000
    assert text.count("<script") == 2
    assert "<img" not in text
    assert without_figures(strings(embedded(text, "audit-data"))) == []
