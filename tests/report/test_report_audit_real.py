"""Pages of real audits: what `audit` finds is what the page shows."""

import numpy as np
import pytest
from pages import embedded, strings, without_figures
from realaudits import AUDITS, audited

from metrifair import audit
from metrifair.report import audit_html
from tests.seams.report import audit_content
from tests.seams.wording import number_text


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


def test_distributions_with_several_largest_gaps_are_drawn():
    groups = np.arange(240) % 2
    scores = np.random.default_rng(0).normal(groups)
    below = [
        np.searchsorted(np.sort(scores[groups == side]), np.sort(scores), side="right")
        for side in (0, 1)
    ]
    gaps = below[0] - below[1]
    assert (gaps == gaps.max()).sum() > 1
    content = audit_content(audit(None, scores, sensitive_features=groups, random_state=0).record)
    assert [place["distribution"] for place in content["places"]] == [0]


@pytest.mark.parametrize("name", AUDITS)
def test_the_page_of_a_real_audit_is_whole_and_small(name):
    text = audit_html(audited(name).record)
    assert len(text.encode()) < 250_000
    assert text.count("<script") == 3
    assert "<img" not in text
    assert without_figures(strings(embedded(text, "audit-data"))) == []
