"""What the script of an audit's page gets: numbers as they are shown, curves, and the worst
where not all fit.
"""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from audits import GRID, bare_finding, demo_record, many_findings
from hypothesis import given
from hypothesis import strategies as st

from metrifair.criteria import CRITERIA
from metrifair.errors import DataError
from tests.seams.auditing import Distribution, Finding, WitnessCurve, sort_findings
from tests.seams.figures import Curves, Interval
from tests.seams.report import (
    OTHER_SCORES,
    audit_content,
    axis,
    byte_size,
    corners,
    distribution_json,
    grid_json,
    is_about,
    pair_gap,
    short,
    witness_json,
    witness_step,
)
from tests.seams.wording import describe, finding_columns, number_text, shown_number

ANY = st.floats(-1e308, 1e308)


@given(
    ANY
    | st.floats(0, 1)
    | st.sampled_from(
        [9.9996, 0.00099996, 0.000099996, 0.00094996, 99999.6, 999.96, -0.0, 0.0625, 1e5]
    )
)
def test_the_number_that_is_shown_shows_the_same_text(value):
    text = number_text(value)
    assert number_text(shown_number(value)) == text
    assert shown_number(value) == pytest.approx(value, rel=0.006, abs=0.0006)
    assert len(text) <= 10


def test_what_is_no_number_is_a_dash():
    assert [number_text(value) for value in (None, math.nan, math.inf)] == ["–"] * 3
    assert shown_number(math.nan) is None
    assert (number_text(1.797e308), shown_number(1.797e308), short(1.7976e308, digits=4)) == (
        "–",
        None,
        None,
    )


@pytest.mark.extended
@given(
    st.lists(st.integers(-1000, 1000), min_size=2, max_size=20, unique=True),
    st.sampled_from([1e-300, 1e-9, 1, 1e9, 1e300]),
)
def test_axes_of_any_scale_hold_their_values_and_have_ticks_that_differ(whole, scale):
    values = [scale * number for number in whole]
    found = axis(values, least_span=0.0)
    assert found.low <= min(values) < max(values) <= found.high
    texts = [text for _, text in found.ticks]
    assert 2 <= len(texts) == len(set(texts)) <= 14
    assert all(math.isfinite(at) for at, _ in found.ticks)


@given(
    st.lists(st.integers(0, 1000), min_size=2, max_size=30, unique=True),
    st.sampled_from([0.0, 1e9, -1e12]),
)
def test_scores_of_a_grid_stay_apart(steps, offset):
    grid = [offset + step / 7 for step in sorted(steps)]
    kept = grid_json(grid)
    assert kept == sorted(set(kept))


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-3, 3)), min_size=1, max_size=12))
def test_corners_are_enough_to_draw_the_curve(pieces):
    values = [0.0]
    for length, slope in pieces:
        values += [values[-1] + slope * step for step in range(1, length + 1)]
    grid = list(range(len(values)))
    kept = corners(grid, values)
    assert np.interp(grid, kept, [values[at] for at in kept]).tolist() == pytest.approx(values)
    assert len(kept) <= len(pieces) + 1


def test_curves_without_lines_are_thinned():
    grid = [step / 5000 for step in range(5001)]
    kept = corners(grid, [math.sin(30 * score) for score in grid])
    assert (kept[0], kept[-1]) == (0, 5000)
    assert len(kept) <= 162


def test_a_row_holds_the_numbers_of_its_finding():
    finding = Finding(
        "sex", "equalized_odds", "label=1", ("f", "m"), (10, 20), "energy", 0.123456, Interval(0.1, 0.2), 0.11,
        Interval(0.05, 0.3), 0.4, 0.5, 0.04, at=0.5, shares=(0.25, 0.75),
    )  # fmt: skip
    content = audit_content(demo_record(findings=[finding], distributions=[], decisions=[]))
    (row,) = content["rows"]
    assert dict(zip(content["fields"], row, strict=True)) == {
        "place": 0, "left": 0, "right": 1, "leftSize": 10, "rightSize": 20, "metric": 0,
        "value": 0.123, "interval_low": 0.05, "interval_high": 0.3,
        "joint_low": None, "joint_high": None, "certified": 0.4,
        "certified_jointly": 0.5, "p_value": 0.04, "unbiased": 0.11,
        "bracket_low": 0.1, "bracket_high": 0.2,
        "divided": None, "r2": None,
        "significance": 0, "tested_by": 0,
    }  # fmt: skip
    assert content["texts"] == [list(describe(finding))]
    assert content["places"][0] == {
        "attribute": 0,
        "criterion": "Equalized odds",
        "within": "label=1",
        "distribution": None,
    }


def test_columns_that_no_finding_fills_are_left_out():
    record = demo_record()
    assert [column.key for column in finding_columns(record, [bare_finding(0)])] == [
        "groups",
        "attribute",
        "within",
        "metric",
        "value",
        "sizes",
    ]
    assert "interval" in [column.key for column in finding_columns(record, record.findings)]


def test_names_of_one_attribute_do_not_mix_with_those_of_another():
    same = demo_record({"a": ("x", "y"), "b": ("y", "x")})
    content = audit_content(same)
    assert content["attributes"] == [
        {"name": "a", "groups": ["x", "y"]},
        {"name": "b", "groups": ["y", "x"]},
    ]


def test_the_gap_stands_where_the_witness_drops_and_is_the_finding():
    record = demo_record()
    content = audit_content(record)
    for finding in record.findings:
        if finding.metric != "kolmogorov":
            continue
        place = next(
            place
            for place in content["places"]
            if place["within"] == finding.within
            and content["attributes"][place["attribute"]]["name"] == finding.attribute
        )
        groups = content["attributes"][place["attribute"]]["groups"]
        gap = content["distributions"][place["distribution"]]["gaps"][
            ",".join(str(groups.index(g)) for g in finding.groups)
        ]
        assert gap["x"] == pytest.approx(witness_step(finding.witness))
        assert gap["high"] - gap["low"] == pytest.approx(finding.value, abs=1e-5)
        assert gap["size"] == number_text(finding.value)


CURVES = Curves(
    [0, 1, 2, 3],
    {},
    {"a": [0.1, 0.2, 0.9, 1.0], "b": [0.1, 0.8, 0.8, 1.0], "c": [0.0, 0.0, 0.0, 1.0]},
)


def test_a_gap_is_that_of_its_two_groups():
    finding = replace(bare_finding(0), groups=("a", "b"))
    assert pair_gap(CURVES, finding).score == 1
    assert pair_gap(CURVES, replace(finding, groups=("a", "c"))).score == 2
    assert pair_gap(CURVES, replace(finding, groups=("a", "rest"))) is None
    flat = WitnessCurve([0, 3], [0.0, 0.0], (0.0, 0.0))
    assert pair_gap(CURVES, replace(finding, witness=flat)).score == 1


def test_a_gap_is_exact_where_the_curves_are_coarse():
    step = WitnessCurve([1.0, 1.5, 2.0], [1.0, 1.0, 0.0], (0.25, 0.8))
    finding = replace(bare_finding(0), groups=("a", "b"), witness=step)
    gap = pair_gap(CURVES, finding)
    assert (gap.score, gap.low, gap.high) == (1.5, 0.25, 0.8)
    assert is_about(finding, CURVES)


def test_curves_are_shown_for_findings_about_the_same_scores_only():
    elsewhere = WitnessCurve([1.0, 1.5, 2.0], [1.0, 1.0, 0.0], (0.95, 0.1))
    finding = replace(bare_finding(0), groups=("a", "b"), criterion="of my own")
    assert is_about(finding, CURVES)
    assert not is_about(replace(finding, witness=elsewhere), CURVES)
    assert {
        name for name, criterion in CRITERIA.items() if criterion.score != "prediction"
    } == OTHER_SCORES
    record = demo_record({"sex": ("women", "men")}, sets=[("statistical_parity", "everyone", 0.0)])
    losses = [replace(found, criterion="risk_parity") for found in record.findings]
    content = audit_content(replace(record, findings=[*record.findings, *losses]))
    assert {place["criterion"]: place["distribution"] for place in content["places"]} == {
        "Statistical parity": 0,
        "Risk parity": None,
    }


def test_of_many_groups_those_of_the_worst_findings_are_drawn():
    names = [f"g{number}" for number in range(40)]
    curves = Curves([0, 1], {}, {name: [0.0, 1.0] for name in names})
    worst = [replace(bare_finding(0), groups=("g39", "g20"))]
    found = distribution_json(
        Distribution("region", "everyone", curves), worst, lambda _, name: names.index(name)
    )
    assert found["members"] == [*range(10), 20, 39]
    assert found["left_out"] == 28


def test_curves_that_do_not_fit_their_grid_are_refused(refused):
    crooked = Distribution("sex", "everyone", Curves([0, 1], {}, {"a": [1.0]}))
    with refused(DataError):
        audit_content(demo_record(distributions=[crooked]))
    short = replace(bare_finding(0), witness=WitnessCurve([0, 1, 2], [1.0], (0.0, 1.0)))
    with refused(DataError):
        witness_json(short)


@pytest.mark.parametrize(
    ("low", "high"), [(-1.7e308, 1.7e308), (0.0, 1.797e308), (1.7e308, 1.7e308 * (1 + 1e-6))]
)
def test_scores_too_far_apart_to_draw_are_left_out(low, high):
    wide = Curves([low, high], {}, {"women": [0.0, 1.0], "men": [0.5, 1.0]})
    content = audit_content(demo_record(distributions=[Distribution("sex", "everyone", wide)]))
    assert content["distributions"] == []
    assert {place["distribution"] for place in content["places"]} == {None}


def test_the_witness_says_what_either_group_gets():
    record = demo_record()
    step, slope = record.findings[:2]
    assert (
        witness_json(step)["text"]
        == "Its mean is 0.702 for “women” and 0.330 for “men”: a difference of 0.373."
    )
    assert "square" in witness_json(replace(slope, metric="energy"))["text"]
    assert witness_json(replace(step, witness=None)) is None


def test_where_not_all_fit_the_worst_are_kept_and_told():
    findings = list(many_findings(400))
    record = demo_record(findings=findings)
    content = audit_content(record, room=60_000)
    assert byte_size(content) < 75_000
    assert len(content["texts"]) < len(content["rows"]) < content["total"] == 400
    assert 0 < len(content["witnesses"]) < len(content["rows"])
    kept = sort_findings(findings)[: len(content["rows"])]
    assert [row[6] for row in content["rows"]] == [shown_number(finding.value) for finding in kept]
    assert content["texts"][5] == list(describe(kept[5]))
    assert list(content["witnesses"]) == [
        str(number) for number in range(len(content["witnesses"]))
    ]


def test_numpy_numbers_become_plain_ones():
    values = np.array([0.25, 0.5])
    finding = replace(
        bare_finding(0),
        value=values[0],
        witness=WitnessCurve(values, values, (values[0], values[1])),
    )
    curves = Curves(np.array(GRID), {}, {"g0": np.linspace(0, 1, len(GRID))})
    content = audit_content(
        demo_record(findings=[finding], distributions=[Distribution("region", "everyone", curves)])
    )
    assert json.loads(json.dumps(content))["rows"][0][6] == 0.25
