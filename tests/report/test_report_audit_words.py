"""An audit in words: order, facts, remarks, highlights, glossary."""

from dataclasses import replace

import pytest
from audits import bare_finding, demo_record
from hypothesis import given
from hypothesis import strategies as st

from tests.seams.auditing import Decisions, Note, headline_finding, sort_findings
from tests.seams.figures import GroupRates, Interval
from tests.seams.wording import (
    audit_glossary,
    finding_sentence,
    highlights,
    notes_by_topic,
    overview,
    table_selected_text,
)


def kind_of(finding):
    """0: certain, 1: not certain, 2: too few rows."""
    return (
        2
        if not finding.enough
        else 0
        if finding.joint_interval and finding.joint_interval.low > 0
        else 1
    )


FOUND = st.builds(
    lambda metric, value, rows, share, bounded: replace(
        bare_finding(0, metric=metric),
        value=value,
        sizes=(rows, 900),
        enough=rows >= 30,
        joint_interval=Interval(max(0.0, value * share), 1.0) if bounded else None,
    ),
    st.sampled_from(["kolmogorov", "energy", "own"]),
    st.floats(0, 9),
    st.integers(1, 90),
    st.floats(-1, 1),
    st.booleans(),
)


@given(st.lists(FOUND, max_size=30))
def test_findings_are_ranked_by_what_is_certain_and_none_is_lost(findings):
    ordered = sort_findings(findings)
    assert sorted(map(id, ordered)) == sorted(map(id, findings))
    kinds = [kind_of(finding) for finding in ordered]
    assert kinds == sorted(kinds)
    for kind in range(3):
        own = [finding for finding in ordered if kind_of(finding) == kind]
        metrics = {finding.metric for finding in own}
        assert {finding.metric for finding in own[: len(metrics)]} == metrics
        for metric in metrics:
            alike = [finding for finding in own if finding.metric == metric]
            ranks = [one.joint_interval.low if kind == 0 else min(one.sizes) for one in alike]
            assert ranks == sorted(ranks, reverse=True)


@given(st.lists(FOUND, min_size=1, max_size=30), st.floats(0.01, 0.2), st.floats(0.3, 1))
def test_ten_rows_with_a_large_gap_never_head_a_report_with_a_certain_smaller_one(others, low, gap):
    planted = replace(
        bare_finding(1),
        value=gap,
        sizes=(10, 900),
        enough=False,
        joint_interval=Interval(gap / 2, 1.0),
    )
    certain = replace(
        bare_finding(2), value=low + 0.05, sizes=(800, 900), joint_interval=Interval(low, low + 0.1)
    )
    for findings in ([planted, certain, *others], [*others, certain, planted]):
        head = headline_finding(findings)
        assert head is not None
        assert head.metric == "kolmogorov"
        assert min(head.sizes) >= 30
        assert head.joint_interval.low >= low
    assert headline_finding([planted]) is None


def test_facts_are_counts_of_the_record():
    assert dict(
        overview(demo_record(rows=1234567, score_range=(-3.5, 250000.0), confidence=0.999))
    ) == {
        "Rows": "1,234,567",
        "Excluded": "12",
        "Scores": "−3.500 to 2.50e5",
        "Findings": "24",
        "Confidence": "99.9%",
    }


def test_highlights_are_the_extremes_of_the_record():
    record = demo_record()
    decided, largest = highlights(record)
    gaps = [finding for finding in record.findings if finding.metric == "kolmogorov"]
    assert largest.about.joint_interval.low == max(finding.joint_interval.low for finding in gaps)
    assert largest.heading == "Largest significant gap"
    assert largest.sentence == finding_sentence(largest.about)
    assert decided.about is min(record.decisions, key=lambda found: found.selection_ratio)
    assert decided.heading == "Decisions below four fifths"


def test_the_largest_gap_is_kolmogorovs_even_where_another_metric_has_larger_numbers():
    findings = [replace(bare_finding(1, metric="wasserstein"), value=250000.0), bare_finding(0)]
    (largest,) = highlights(demo_record(findings=findings, decisions=[]))
    assert largest.about.metric == "kolmogorov"
    (only,) = highlights(demo_record(findings=findings[:1], decisions=[]))
    assert only.about.metric == "wasserstein"


@pytest.mark.parametrize(
    ("ratio", "headings"),
    [
        (0.8, ["Decisions within four fifths"]),
        (0.6 / 0.75, ["Decisions within four fifths"]),  # 0.7999999999999999
        (0.79, ["Decisions below four fifths"]),
        (None, []),
    ],
)
def test_decisions_are_highlighted_by_their_ratio(ratio, headings):
    rates = [GroupRates("a", 10, 0.4, ratio=ratio), GroupRates("b", 10, 0.5, ratio=1.0)]
    decisions = [Decisions("sex", "everyone", 0.5, rates, 0.1, ratio, reference="b")]
    found = highlights(demo_record(findings=[], decisions=decisions))
    assert [highlight.heading for highlight in found] == headings


def test_a_ratio_of_few_rows_is_no_highlight():
    rates = [
        GroupRates("a", 9, 0.1, ratio=0.2, few=True),
        GroupRates("b", 900, 0.5, ratio=1.0),
        GroupRates("c", 900, 0.35, ratio=0.7),
    ]
    (found,) = highlights(
        demo_record(
            findings=[], decisions=[Decisions("sex", "all", 0.5, rates, 0.4, 0.2, reference="b")]
        )
    )
    assert found.figures[0] == ("Four-fifths ratio", "0.700")
    few = replace(rates[1], few=True)
    none = Decisions("sex", "all", 0.5, [rates[0], few], 0.4, 0.2, reference="b")
    assert highlights(demo_record(findings=[], decisions=[none])) == ()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "At threshold 0.5"),
        ({"favorable": "low"}, "Below threshold 0.5"),
        ({"selected_by": "median"}, "Above the median score 0.5"),
        ({"selected_by": "median", "favorable": "low"}, "Below the median score 0.5"),
        ({"selected_by": "decisions"}, "With the decision “1”"),
        ({"selected_by": "decisions", "favorable": "low"}, "With the decision “0”"),
        (
            {"selected_by": "decisions", "favorable_decision": "Advanced"},
            "With the decision “Advanced”",
        ),
    ],
)
def test_it_is_said_who_is_selected(changes, said):
    table = Decisions("sex", "everyone", 0.5, [], 0.0, None, **changes)
    assert table_selected_text(table) == said


def test_the_largest_of_several_gaps_is_given_bounds_that_hold_for_all():
    one = replace(
        bare_finding(0),
        sizes=(400, 400),
        interval=Interval(0.4, 0.6),
        joint_interval=Interval(0.2, 0.9),
    )
    several = [replace(one, value=0.5, groups=("a", name)) for name in "bcd"]
    (largest,) = highlights(demo_record(findings=several, decisions=[]))
    assert largest.figures[0][0].endswith("95% joint interval 0.200 to 0.900")
    (alone,) = highlights(demo_record(findings=several[:1], decisions=[]))
    assert alone.figures[0][0].endswith("95% interval 0.200 to 0.900")
    uncertain = [
        replace(one, sizes=(rows, 400), joint_interval=Interval(0.0, 0.9)) for rows in (50, 90, 60)
    ]
    (picked,) = highlights(demo_record(findings=uncertain, decisions=[]))
    assert picked.heading == "No significant gap"
    assert picked.about.sizes == (90, 400)


def test_remarks_are_grouped_and_the_ones_to_heed_come_first():
    absent = [Note("absent_groups", {"groups": [[name, "sex", "everyone"]]}) for name in "ab"]
    notes = [
        Note("weighted_rows", {"in_memory": True}),
        absent[0],
        Note("undecided"),
        Note("groups_are_labels", {"attribute": "sex"}),
        absent[1],
    ]
    found = notes_by_topic(notes)
    assert [(topic, len(texts)) for topic, _, texts in found] == [
        ("parity", 1),
        ("small", 2),
        ("exactness", 1),
        ("weights", 1),
    ]
    assert ["“a”" in text for text in found[1][2]] == [True, False]


def test_the_glossary_explains_what_occurs_and_only_that():
    words = dict(audit_glossary(demo_record()))
    assert {
        "Kolmogorov distance",
        "Equal opportunity",
        "Certified upper bound",
        "p-value",
        "Selection rate",
    } <= set(words)
    assert "Proven bracket" not in words
    assert "Total variation distance" not in words
    assert "95% confidence" in words["Certified upper bound"]
    assert words["Interval"].startswith(
        "A bootstrap 95% confidence interval of the distance in the population."
    )
    bare = dict(audit_glossary(demo_record(findings=[bare_finding(0, metric="own")], decisions=[])))
    assert set(bare) == {"Score", "Group", "Share below", "Density", "Statistical parity"}
