"""The section of rates and ratios: what its tables show, in which words, and what it never says."""

import html
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from pages import outside_references

from metrifair import audit
from metrifair.cli import main
from metrifair.report import audit_html
from tests.flat_options import flat_audit
from tests.seams.auditing import AuditSettings, Decisions
from tests.seams.figures import GroupRates, Interval
from tests.seams.report import rates_section, rates_table
from tests.seams.tradeoff import Point
from tests.seams.wording import STANDARD_WORDS, FrontierView, ratio_hint

QUICK = {"metrics": "kolmogorov", "resamples": 0, "permutations": 0, "random_state": 0}


def record(standard, about=None, **changes):
    """200 of a, 100 of b, 2 of c (under 2 %), 20 of d (few), 8 unknown."""
    group = ["a"] * 200 + ["b"] * 100 + ["c"] * 2 + ["d"] * 20 + [None] * 8
    score = (
        [0.9] * 120
        + [0.2] * 80
        + [0.9] * 30
        + [0.2] * 70
        + [0.9] * 2
        + [0.9] * 6
        + [0.2] * 14
        + [0.9] * 8
    )
    options = {**QUICK, **changes}
    found = flat_audit(
        score, sensitive_features={"team": group}, standard=standard, **options
    ).record
    return replace(found, provenance=found.provenance.described(None, about))


def text_of(markup):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", markup)).strip()


def rows_of(markup):
    return [
        [text_of(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", markup)
    ]


CASES = {
    "ll144": {},
    "four-fifths": {},
    "credit": {"reference": "a"},
    None: {},
}


def test_four_fifths_by_hand():
    markup = rates_section(record("four-fifths"))
    head, a, b, few, c, d, unknown = rows_of(markup)
    assert head[:6] == ["Group", "Rows", "Share", "Selected", "Selection rate", "Impact ratio"]
    assert head[6:8] == ["Below 4/5", "Fisher’s p"]
    assert head[8:] == ["Standard deviations", "Odds ratio", "Shortfall"]
    assert a[:4] == ["a", "200", "60.6%", "120"]
    assert a[5] == "1.000 reference"
    assert b[0] == "b"
    assert b[4].startswith("30.0% ")
    assert b[5].startswith("0.500 ")
    assert (b[6], b[7]) == ("below", "&lt; 0.0001")
    # -0.3 / sqrt(0.25 (1/200 + 1/100)), and (30 x 80) / (120 x 70)
    assert b[8:] == ["−4.90", "0.29", "30"]
    assert c[5:] == ["– excluded", "–", "–", "–", "–", "–"]
    assert few == ["Too few rows"]
    assert d[0] == "d"
    assert unknown[:4] == ["unknown", "8", "2.4%", "8"]
    said = text_of(markup)
    excluded = "Excluded from impact ratios by team, under 2% of the rows: “c” (2 rows, 0.6%)"
    assert f"{excluded}; its category is missing: “unknown”" in said
    assert "The smallest impact ratio is below four fifths" in said


def test_ll144_has_scoring_rates_no_threshold_and_the_fields_that_the_user_fills():
    filled = record("ll144", about={"Period": "2026-01", "data": "payroll"})
    markup = rates_section(filled)
    said = text_of(markup)
    assert "Scoring rate" in said
    assert "above the median score" in said
    assert not re.search(r"four.fifths|4/5|0\.8\b|80", said, re.IGNORECASE)
    assert "Period 2026-01" in said
    assert "Data payroll" in said
    assert "Distribution date of the tool not given" in said
    body = audit_html(filled).partition("<body>")[2].partition("<script")[0]
    assert "four fifths" not in text_of(body).lower()


def test_credit_draws_the_ratio_at_every_decile_and_lists_alternatives():
    best = Point(0, 0, 0.9, 0.4, intervals={"accuracy": Interval(0.86, 0.93)})
    constant = Point(9, 0, 0.89, 0.0, marks={"accuracy": "constant"})
    view = FrontierView([best, Point(1, 0, 0.88, 0.2), Point(2, 0, 0.8, 0.1), constant])
    markup = rates_section(record("credit", reference="a"), frontier=view)
    assert markup.count("<polyline") == 2
    said = text_of(markup)
    assert "1 of 4 models is less unfair than the model with the best accuracy" in said
    table = markup.partition("Less discriminatory")[2]
    assert [row[0] for row in rows_of(table)][1:] == ["0 compared with", "1"]
    assert "Mean difference" in said
    assert "Less discriminatory" not in rates_section(record("credit", reference="a"))


@pytest.mark.parametrize("standard", CASES)
def test_no_page_says_that_a_law_is_kept_or_broken(standard):
    found = record(standard, **CASES[standard])
    page = audit_html(found)
    said = text_of(page.partition("<body>")[2].partition("<script")[0]).lower()
    assert not re.search(
        r"\b(compliant|compliance|complies|passes|passed|fails|failed|violat\w*|illegal|legal)\b",
        said,
    )
    assert "these figures do not decide whether a law or a rule is met." in said
    assert not outside_references(page)


def test_weighted_rows_have_no_counts_and_no_p_values():
    markup = rates_section(record("four-fifths", sample_weight=np.linspace(0.5, 2, 330)))
    assert rows_of(markup)[0] == [
        "Group",
        "Rows",
        "Share",
        "Selection rate",
        "Impact ratio",
        "Below 4/5",
    ]


def test_tables_of_very_many_groups_are_cut_and_say_so():
    found = record("four-fifths")
    table = found.decisions[0]
    many = replace(
        found,
        decisions=[
            replace(table, rates=[replace(table.rates[0], group=str(n)) for n in range(2000)])
        ],
    )
    markup = rates_section(many)
    assert markup.count("<tr>") < 1_600
    assert "The csv and JSON files have 500 more groups." in text_of(markup)


def test_without_decisions_there_is_no_section():
    assert (
        rates_section(
            flat_audit([1.0, 3.0, 2.0, 5.0], sensitive_features=list("aabb"), **QUICK).record
        )
        == ""
    )


def decisions(ratio, interval, own=None):
    """Two groups; ``own`` is the interval of the smaller ratio, unadjusted."""
    rates = [
        GroupRates("a", 1200, 0.25, 0.9, None, 0.1, ratio=ratio, ratio_interval=own),
        GroupRates("b", 30, 0.5, ratio=None if ratio is None else 1.0),
    ]
    return Decisions(
        "sex",
        "everyone",
        0.5,
        rates,
        0.25,
        ratio,
        interval,
        reference="b",
        true_positive_difference=0.1,
    )


def test_decisions_are_one_table_with_their_differences():
    table = decisions(0.5, Interval(0.3, 0.7), Interval(0.31, 0.69))
    head, a, b, differences = rows_of(rates_table(table, table.rates, AuditSettings()))
    assert head == [
        "Group",
        "Rows",
        "Share",
        "Selection rate",
        "Impact ratio",
        "False positive rate",
    ]
    assert a == ["a", "1,200", "–", "25.0%", "0.500 0.310 to 0.690", "10.0%"]
    assert b == ["b", "30", "–", "50.0%", "1.000 reference", "–"]
    assert differences == ["Largest difference", "", "", "25.0 points", "", ""]


@pytest.mark.parametrize(
    ("ratio", "interval", "said"),
    [
        (
            0.75,
            Interval(0.6, 0.9),
            "is below four fifths; the true ratio may be above or below 0.80.",
        ),
        (0.85, Interval(0.7, 0.9), "The smallest true impact ratio may be above or below 0.80."),
        (0.85, Interval(0.8, 0.9), "not below four fifths."),
        (0.75, None, "The smallest impact ratio is below four fifths."),
        (None, None, "Nobody of the reference group is selected, so there is no impact ratio."),
    ],
)
def test_the_ratio_says_what_the_sample_allows(ratio, interval, said):
    table = decisions(ratio, interval, interval)
    hint = ratio_hint(table, AuditSettings())
    assert hint.endswith(said)
    assert str(ratio) not in hint  # the row has it


def test_an_adjusted_interval_of_the_ratio_is_below_the_table():
    table = decisions(0.75, Interval(0.5, 0.79), Interval(0.6, 0.78))
    assert "adjusted for its choice, is 0.500 to 0.790." in ratio_hint(table, AuditSettings())


@pytest.mark.parametrize("standard", ["ll144", "four-fifths", "credit"])
def test_the_page_of_a_standard_names_its_document_and_what_was_not_read(standard):
    source = STANDARD_WORDS[standard].source
    found = record(standard, **CASES[standard])
    section = " ".join(html.unescape(str(rates_section(found))).split())
    assert [sentence for sentence in source.sentences if sentence not in section] == []
    assert "read" in source.limits


@pytest.mark.parametrize("given", [["sex"], ["sex", "race"]])
def test_the_title_names_the_attributes_of_the_tables_and_their_rates(given, tmp_path):
    """Of the page and of the command; no attribute that the audit does not have."""
    people = pl.DataFrame({"sex": ["f", "m"] * 40, "race": ["a", "a", "b", "b"] * 20})
    people = people.with_columns(p=pl.int_range(80) / 80)
    people.write_csv(tmp_path / "people.csv")
    groups = [part for name in given for part in ("--group", name)]
    asked = ["audit", str(tmp_path / "people.csv"), "--score", "p", *groups, "--standard", "ll144"]
    shown = CliRunner().invoke(main, [*asked, "--html", str(tmp_path / "page.html")])
    assert shown.exit_code == 0, shown.output
    names = {1: "sex", 2: "sex, race, sex x race"}[len(given)]
    title = f"Scoring rates and impact ratios by {names} (New York City Local Law 144)"
    assert title in shown.output
    page = (tmp_path / "page.html").read_text()
    assert title in page
    assert ("race" in text_of(page)) == ("race" in given)
    table = audit(None, people["p"], sensitive_features=people.select(given), random_state=0).rates(
        "ll144"
    )
    assert "scoring rate" in table.summary
    assert "selection rate" not in table.summary
