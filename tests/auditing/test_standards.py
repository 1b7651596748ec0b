"""The tables that rules ask for, by hand; one question of direction; the same table at every
entry point.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrifair import Audit, AuditState, DataError, audit, audit_file, audit_table
from tests.expected_errors import Refusals
from tests.flat_options import flat, flat_audit
from tests.seams.api import RateTable
from tests.seams.figures import STANDARDS

QUICK: dict[str, Any] = {
    "metrics": "kolmogorov",
    "resamples": 0,
    "permutations": 0,
    "random_state": 0,
}
ALL: dict[str, Any] = {**QUICK, "min_group_share": 0, "min_group_size": 1}
# Ten scores with ties: 1 2 2 2 2 | 4 5 5 6 7, of which the last two have no known sex; the median
# is 3.
SCORES = [1, 2, 2, 5, 2, 4, 5, 6, 2, 7]
SEX = ["f"] * 4 + ["m"] * 4 + [None] * 2
RACE = ["a", "a", "b", "b", "a", "a", "b", "b", "a", "b"]


def told(found: Audit) -> dict[str, Any]:
    """Category by category: rows, selected and ratio; the reference; and the unknown."""
    return {
        table.attribute: (
            [(rate.group, rate.size, rate.selected, rate.ratio) for rate in table.rates],
            table.reference,
            None if table.unknown is None else (table.unknown.size, table.unknown.selected),
        )
        for table in found.decisions
        if table.within == "everyone"
    }


@pytest.mark.parametrize("intersectional", [False, True])
def test_ll144_by_hand(intersectional: bool) -> None:
    found = flat_audit(
        SCORES,
        sensitive_features={"sex": SEX, "race": RACE},
        standard="ll144",
        intersectional=intersectional,
        **ALL,
    )
    assert told(found) == {
        "sex": ([("f", 4, 1, 1 / 3), ("m", 4, 3, 1.0)], "m", (2, 1)),
        "race": ([("a", 5, 1, 0.25), ("b", 5, 4, 1.0)], "b", None),
        "sex x race": (
            [
                ("f x a", 2, 0, 0.0),
                ("f x b", 2, 1, 0.5),
                ("m x a", 2, 1, 0.5),
                ("m x b", 2, 2, 1.0),
            ],
            "m x b",
            (2, 1),
        ),
    }
    assert {(one.threshold, one.selected_by, one.standard) for one in found.decisions} == {
        (3.0, "median", "ll144")
    }
    assert len({one.attribute for one in found.findings}) == (1 if intersectional else 2)
    assert not any("four fifths" in text for text in found.summary.splitlines())
    table = RateTable(found).summary
    assert "scoring rate 25.0%" in table
    assert "selection rate" not in table


@pytest.mark.parametrize("intersectional", [False, True])
@pytest.mark.parametrize("standard", STANDARDS)
def test_a_standard_has_the_tables_that_its_rule_asks_for(
    standard: str, intersectional: bool
) -> None:
    """Local Law 144 asks for every attribute and their intersection; other tables are those of
    the audit's groups.
    """
    named = {"reference": "m x b" if intersectional else "m"} if standard == "credit" else {}
    rule = {"standard": standard, **named} if standard else {}
    features = (
        {"sex": SEX, "race": RACE} if standard != "credit" or intersectional else {"sex": SEX}
    )
    found = flat_audit(
        SCORES,
        sensitive_features=features,
        intersectional=intersectional,
        threshold=3,
        **rule,
        **ALL,
    )
    plain = ["sex x race"] if intersectional else list(features)
    every = ["sex", "race", "sex x race"] if standard == "ll144" else plain
    assert sorted(one.attribute for one in found.decisions) == sorted(every)


def test_scores_at_the_median_are_not_above_it_and_not_below() -> None:
    scores = [1, 2, 2, 2, 2, 9, 2, 3, 1, 2]
    high = flat_audit(
        scores, sensitive_features=list("aaaaabbbbb"), threshold="median", **ALL
    ).decisions[0]
    low = flat_audit(
        scores, sensitive_features=list("aaaaabbbbb"), threshold="median", favorable="low", **ALL
    ).decisions[0]
    assert high.threshold == low.threshold == 2
    assert [rate.selected for rate in high.rates] == [0, 2]
    assert [rate.selected for rate in low.rates] == [1, 1]


def test_ll144_takes_decisions_and_a_threshold_where_they_are_given() -> None:
    decided = flat_audit(
        [0, 1, 1, 1], sensitive_features=list("aabb"), standard="ll144", **ALL
    ).decisions[0]
    assert (decided.selected_by, decided.selection_ratio) == ("decisions", 0.5)
    cut = flat_audit(
        SCORES, sensitive_features=SEX, standard="ll144", threshold=5, **ALL
    ).decisions[0]
    assert (cut.selected_by, [rate.selected for rate in cut.rates]) == ("threshold", [1, 2])


def test_weights_move_the_median() -> None:
    found = flat_audit(
        [1.0, 2.0, 3.0, 4.0],
        sensitive_features=list("abab"),
        sample_weight=[5.0, 1.0, 1.0, 1.0],
        threshold="median",
        **ALL,
    ).decisions[0]
    assert found.threshold == 1
    assert [rate.selection_rate for rate in found.rates] == pytest.approx([1 / 6, 1.0])
    assert [rate.selected for rate in found.rates] == [None, None]


def test_each_standard_has_the_facts_of_its_rule() -> None:
    """Bias audits of LL 144 take no imputed groups and name no four fifths; credit alone
    compares scores.
    """
    with_scores = set()
    for name in STANDARDS:
        asked = (
            {"standard": name, "reference": "m"} if name == "credit" else {"standard": name or None}
        )
        found = flat_audit(SCORES, sensitive_features=SEX, threshold=3, **asked, **ALL).decisions[0]
        with_scores |= {
            name for rate in found.rates if rate.mean_difference is not None or rate.decile_ratios
        }
    assert (
        with_scores
        == {name for name, standard in STANDARDS.items() if standard.scores}
        == {"credit"}
    )
    assert {name for name, standard in STANDARDS.items() if not standard.imputed} == {"ll144"}
    assert {name for name, standard in STANDARDS.items() if standard.four_fifths} == {
        "",
        "four-fifths",
    }


def test_small_categories_and_unknown_ones_are_in_no_ratio() -> None:
    """Of 200 rows 3 are 1.5 %, all of them selected; 7 are unknown."""
    group = ["few"] * 3 + ["a"] * 100 + ["b"] * 90 + [None] * 7
    score = [1] * 3 + [1] * 40 + [0] * 60 + [1] * 45 + [0] * 45 + [1] * 7
    found = flat_audit(score, sensitive_features=group, standard="four-fifths", **QUICK).decisions[
        0
    ]
    rates = {rate.group: rate for rate in found.rates}
    assert (found.reference, found.selection_ratio) == ("b", 0.8)
    assert (rates["few"].selection_rate, rates["few"].ratio, rates["few"].few) == (1.0, None, True)
    assert rates["few"].left_out == "small_share"
    assert found.unknown is not None
    assert (found.unknown.size, found.unknown.selection_rate, found.unknown.ratio) == (7, 1.0, None)
    assert not found.unknown.few  # no test leaves them out: they are in none
    assert rates["a"].shortfall == 10
    both = flat_audit(score, sensitive_features=group, min_group_share=0, **QUICK).decisions[0]
    assert (both.reference, both.selection_ratio) == ("few", 0.4)


@pytest.mark.oracle("GroupRates.mean_difference", "GroupRates.decile_ratios")
def test_credit_by_hand() -> None:
    """Pooled and sorted: 1 1 1 2 2 2 3 3 3 4 4 4 5 5 5 6 7 8 9 10; the k-th decile is at 2k."""
    scores = np.array([*range(1, 11), 1, 1, 2, 2, 3, 3, 4, 4, 5, 5], dtype=float)
    group = ["ref"] * 10 + ["other"] * 10
    options: dict[str, Any] = {"standard": "credit", "reference": "ref", "threshold": 5, **ALL}
    other, reference = flat_audit(scores, sensitive_features=group, **options).decisions[0].rates
    assert (other.selected, reference.selected, other.ratio) == (2, 6, 1 / 3)
    assert other.mean_difference == pytest.approx((3 - 5.5) / scores.std())
    assert other.decile_ratios == pytest.approx([8 / 9, 6 / 8, 6 / 8, 4 / 7, 2 / 6, 2 / 6, 0, 0, 0])
    assert reference.decile_ratios == pytest.approx([1.0] * 9)
    assert reference.mean_difference == 0
    low, _ = (
        flat_audit(scores, sensitive_features=group, **options, favorable="low").decisions[0].rates
    )
    assert low.selected == 8
    assert low.decile_ratios[0] is None  # nobody of the reference is below 1
    assert low.decile_ratios[1:] == pytest.approx([2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 10 / 6, 10 / 8])


def test_the_fifth_decile_is_the_median() -> None:
    generator = np.random.default_rng(3)
    scores, group = generator.integers(0, 20, 301), generator.integers(0, 3, 301).astype(str)
    for favorable in ("high", "low"):
        found = flat_audit(
            scores,
            sensitive_features=group,
            standard="credit",
            reference="1",
            threshold="median",
            favorable=favorable,
            **ALL,
        ).decisions[0]
        for rate in found.rates:
            assert rate.decile_ratios[4] == pytest.approx(rate.ratio)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), threshold=st.sampled_from([0.305, 0.505, "median"]))
def test_low_scores_that_are_favorable_are_high_ones_turned_round(
    seed: int, threshold: Any
) -> None:
    """Every figure follows: decisions, rates by label, sentences, findings among the favorable
    label.
    """
    generator = np.random.default_rng(seed)
    score, group = generator.integers(0, 101, 80) / 100, generator.choice(["a", "b", "c"], 80)
    label = (generator.random(80) < score).astype(int)
    given: dict[str, Any] = {"sensitive_features": group, "y_true": label, **ALL}
    cut = threshold if threshold == "median" else 1 - threshold
    low = flat_audit(score, favorable="low", threshold=threshold, **given)
    high = flat_audit((100 - np.rint(100 * score)) / 100, pos_label=0, threshold=cut, **given)
    assert [one.rates for one in low.decisions] == [one.rates for one in high.decisions]
    assert low.decisions[0].selection_ratio == high.decisions[0].selection_ratio
    assert [one.within for one in low.findings] == [one.within for one in high.findings]
    assert [one.value for one in low.findings] == pytest.approx(
        [one.value for one in high.findings]
    )
    # of two columns, the score is that of the other label
    both = np.stack([1 - score, score], axis=1)
    assert (
        flat_audit(both, favorable="low", threshold=threshold, **given).decisions == low.decisions
    )


def test_it_is_said_which_label_low_scores_are_of() -> None:
    """And losses are those of the score, which is of the other label."""
    generator = np.random.default_rng(0)
    score, group = generator.random(400), generator.integers(0, 2, 400)
    label = (generator.random(400) < score).astype(int)
    options: dict[str, Any] = {"sensitive_features": group, "y_true": label, **ALL}
    low = flat_audit(score, favorable="low", **options)
    assert (
        "0 counts as positive (by default the first of 0, 1). Pass pos_label=... to change it."
        in low.note_texts()
    )
    assert not any("(AUC" in text for text in low.note_texts())
    wrong = flat_audit(score, favorable="low", pos_label=1, **options)
    assert any("ranks the positive label higher" in text for text in wrong.note_texts())
    risks = [
        flat_audit(score, favorable=one, criteria="risk_parity", loss="log_loss", **options)
        .worst()
        .value
        for one in ("high", "low")
    ]
    assert risks[0] == risks[1]
    below = flat_audit(score, favorable="low", **QUICK, sensitive_features=group)
    assert "Below threshold 0.5, " in below.summary


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    generator = np.random.default_rng(1)
    size = 9_000
    sex = generator.choice(["f", "m", None], size, p=[0.45, 0.5, 0.05])
    race = generator.choice(["a", "b", "c"], size, p=[0.6, 0.39, 0.01])
    score = generator.beta(2, 3, size) - 0.05 * (sex == "f") + 0.06
    return pl.DataFrame({"p": score, "sex": sex.tolist(), "race": race.tolist()})


ENTRIES: dict[str, Callable[[pl.DataFrame, Path, dict[str, Any]], Audit]] = {
    "a file": lambda rows, path, asked: flat_audit(path, audit_file, **asked),
    "a file that is counted": lambda rows, path, asked: flat_audit(
        path, audit_file, in_memory_rows=10, **asked
    ),
    "a table": lambda rows, path, asked: flat_audit(rows, audit_table, **asked),
    "a table that is counted": lambda rows, path, asked: flat_audit(
        rows, audit_table, in_memory_rows=0, **asked
    ),
}


@pytest.mark.parametrize("favorable", ["high", "low"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_point_makes_the_same_tables(
    rows: pl.DataFrame, tmp_path: Path, entry: str, favorable: str
) -> None:
    rows.write_parquet(tmp_path / "rows.parquet")
    asked: dict[str, Any] = {"standard": "ll144", "favorable": favorable, **QUICK}
    features = {name: rows[name].to_numpy() for name in ("sex", "race")}
    expected = flat_audit(rows["p"].to_numpy(), sensitive_features=features, **asked)
    found = ENTRIES[entry](
        rows, tmp_path / "rows.parquet", {"score": "p", "group": ["sex", "race"], **asked}
    )
    assert told(found) == told(expected)
    assert found.decisions[0].threshold == expected.decisions[0].threshold
    assert (found.record.rows, found.record.left_out) == (
        expected.record.rows,
        expected.record.left_out,
    )
    assert list(told(found)) == ["sex", "race", "sex x race"]
    assert found.decisions[0].unknown is not None


def test_a_state_knows_the_median_up_to_a_bin(rows: pl.DataFrame) -> None:
    score = rows["p"].to_numpy()
    state = AuditState(score_range=(0, 2)).add(
        None, score, sensitive_features=rows["sex"].to_numpy()
    )
    found = state.audit(**flat(**QUICK)).rates("ll144").audit
    assert not state.exact
    table = found.decisions[0]
    assert table.threshold == pytest.approx(np.median(score), abs=2 * 2 / 2**16)
    expected = flat_audit(
        score, sensitive_features=rows["sex"].to_numpy(), standard="ll144", **QUICK
    ).decisions[0]
    for ours, theirs in zip(table.rates, expected.rates, strict=True):
        assert ours.selection_rate == pytest.approx(theirs.selection_rate, abs=2e-3)
    few = flat_audit(
        AuditState().add(None, [0.1, 0.2, 0.3, 0.4], sensitive_features=list("abab")),
        AuditState.audit,
        standard="ll144",
        **ALL,
    )
    assert (few.decisions[0].threshold, [rate.selected for rate in few.decisions[0].rates]) == (
        0.25,
        [1, 1],
    )
    assert not any("median" in text for text in few.note_texts())


def test_a_standard_is_about_everyone_also_where_there_are_strata(tmp_path: Path) -> None:
    found = flat_audit(
        SCORES,
        sensitive_features=RACE,
        control_features=list("xxxxxyyyyy"),
        standard="ll144",
        threshold=3,
        **ALL,
    )
    assert [(one.within, one.standard) for one in found.decisions] == [
        ("everyone", "ll144"),
        ("control_features=x", "ll144"),
        ("control_features=y", "ll144"),
    ]
    apart = flat_audit(  # the smallest ratio is within a stratum
        [0.9, 0.8, 0.1, 0.7, 0.9, 0.2, 0.8, 0.9] * 10,
        sensitive_features=list("aabbaabb") * 10,
        control_features=list("xxxxyyyy") * 10,
        standard="ll144",
        threshold=0.5,
        **ALL,
    )
    assert any(
        "(within control_features=x)" in line and "impact ratio 0.50." in line
        for line in apart.summary.splitlines()
    )
    apart.to_html(tmp_path / "r.html")
    page = re.sub("(?s)<script.*?</script>", "", (tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "four fifths" not in apart.summary + page
    assert page.count(">By sensitive_features<") == 1
    absent = flat_audit(
        [1, 0, 1, 0],
        sensitive_features=list("abcb"),
        control_features=list("xxyy"),
        reference="a",
        **ALL,
    ).decisions
    assert [rate.left_out for rate in absent[1].rates] == ["reference_absent"] * 2


def test_the_table_of_rates_and_json_hold_everything() -> None:
    found = flat_audit(
        [0.2, 0.8, 0.4, 0.9, 0.6, 0.1],
        sensitive_features=["a", "a", "b", "b", "b", None],
        standard="credit",
        reference="b",
        **ALL,
    )
    frame = RateTable(found).to_frame("polars")
    assert frame["group"].to_list() == ["a", "b", "unknown"]
    assert frame["ratio"].to_list() == [0.75, 1.0, None]
    assert frame["rows"].to_list() == [2, 3, 1]
    assert frame["left_out"].to_list() == [None, None, "unknown_group"]
    assert frame["fisher_p"].to_list() == [1.0, None, None]
    assert [name for name in frame.columns if name.startswith("ratio_at_")] == [
        f"ratio_at_{10 * k}" for k in range(1, 10)
    ]
    content = json.loads(found.to_json())["decisions"][0]
    assert (content["standard"], content["reference"], content["unknown"]["size"]) == (
        "credit",
        "b",
        1,
    )
    assert content["rates"][0]["interval"].keys() == {"low", "high"}
    assert len(content["rates"][0]["decile_ratios"]) == 9


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"standard": "gdpr"},
            "standard must be one of 'll144', 'four-fifths', 'credit', got 'gdpr'",
        ),
        ({"standard": ""}, "standard must be one of 'll144', 'four-fifths', 'credit', got ''"),
        (
            {"standard": "credit", "threshold": 3},
            (
                "standard compares with a reference group, got 'credit'; pass reference=..., one "
                "of "
                "the groups"
            ),
        ),
        (
            {"standard": "ll144", "reference": "m"},
            (
                "reference does not go with the standard 'll144', which divides by the highest "
                "rate, "
                "got 'm'; leave"
            ),
        ),
        (
            {"standard": "four-fifths"},
            (
                "these scores are not probabilities, got 'four-fifths'; pass threshold=..., the "
                "lowest "
                "score"
            ),
        ),
        (
            {"standard": "ll144", "threshold": None},
            "there is no threshold, got 'll144'; pass threshold=..., the lowest score",
        ),
        (
            {"reference": "x", "threshold": 3},
            "reference must be 'highest' or one of the groups of sex: 'f', 'm'",
        ),
        (
            {"reference": {"age": "x"}, "threshold": 3},
            "reference names 'age', which is none of ['sex']",
        ),
        ({"favorable": "up"}, "favorable must be one of 'high', 'low', got 'up'"),
        ({"min_group_share": 2}, "min_group_share must be"),
        (
            {"threshold": "mean"},
            "threshold must be a finite number, 'auto', 'median' or None, got 'mean'",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError) as raised:
        flat_audit(SCORES, sensitive_features={"sex": SEX}, **{**ALL, **asked})
    assert words in str(raised.value)


def test_a_standard_needs_one_score(refused: Refusals) -> None:
    with refused(DataError):
        flat_audit(np.full((4, 3), 1 / 3), sensitive_features=list("aabb"), standard="ll144", **ALL)


def test_tests_of_rates_and_over_strata_are_of_the_counts(refused: Refusals) -> None:
    rng = np.random.default_rng(4)
    sex = rng.choice(["f", "m"], 400)
    site = rng.choice(["a", "b", "c"], 400)
    hired = rng.integers(0, 2, 400)
    found = audit(None, hired, sensitive_features=sex, control_features=site, random_state=0).rates(
        "credit", reference="m"
    )
    tests = {test.within: test for test in found.tests()}
    assert len(tests) == 4
    frame = found.to_frame("pandas")
    for within, test in tests.items():
        (row,) = frame[(frame["within"] == within) & (frame["group"] == "f")].to_dict("records")
        assert row["fisher_p"] == test.p_value
        assert row["standard_deviations"] == test.standard_deviations
        assert row["odds_ratio"] == test.odds_ratio
        inside = np.full(400, True) if within == "everyone" else site == within[-1]
        rates = [hired[inside & (sex == group)].mean() for group in ("f", "m")]
        assert test.difference == pytest.approx(rates[0] - rates[1])
    (over,) = found.over_strata("m")
    assert (over.group, over.reference, over.strata) == ("f", "m", 3)
    tables = [
        [hired[rows].sum() for rows in ((site == at) & (sex == "f"), (site == at) & (sex == "m"))]
        for at in "abc"
    ]
    sizes = [[((site == at) & (sex == group)).sum() for group in "fm"] for at in "abc"]
    above = sum(f * (n - m) / (k + n) for (f, m), (k, n) in zip(tables, sizes, strict=True))
    below = sum(m * (k - f) / (k + n) for (f, m), (k, n) in zip(tables, sizes, strict=True))
    assert over.odds_ratio == pytest.approx(above / below)
    with refused(DataError):
        found.over_strata("x")
    weighted = audit(None, hired, sensitive_features=sex, sample_weight=rng.random(400)).rates()
    assert list(weighted.tests()) == []
    with pytest.raises(DataError, match="without weights and clusters"):
        weighted.over_strata("m")
