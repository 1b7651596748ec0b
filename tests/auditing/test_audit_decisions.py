"""Rates of decisions equal fairlearn's, with 2-5 groups and weights; the four-fifths ratio
equals exact fractions.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import fairlearn.metrics as fl
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from tests.flat_options import flat_audit
from tests.seams.auditing import Decisions

QUICK: dict[str, Any] = {
    "metrics": "kolmogorov",
    "resamples": 0,
    "permutations": 0,
    "random_state": 0,
    "min_group_share": 0,
    "min_group_size": 1,
}


@st.composite
def tables(draw: st.DrawFn) -> dict[str, np.ndarray]:
    groups, n = draw(st.integers(2, 5)), draw(st.integers(20, 60))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return {
        "group": np.concatenate([np.arange(groups), generator.integers(0, groups, n - groups)]),
        "label": generator.integers(0, 2, n),
        "score": generator.integers(0, 11, n) / 10,
        "weight": generator.uniform(0.1, 3.0, n),
    }


def frame(table: dict[str, np.ndarray], *, weighted: bool) -> fl.MetricFrame:
    metrics = {
        "selection_rate": fl.selection_rate,
        "accuracy": accuracy_score,
        "true_positive_rate": fl.true_positive_rate,
        "false_positive_rate": fl.false_positive_rate,
    }
    weights = {name: {"sample_weight": table["weight"]} for name in metrics} if weighted else None
    return fl.MetricFrame(
        metrics=metrics,
        y_true=table["label"],
        y_pred=(table["score"] >= 0.5).astype(int),
        sensitive_features=table["group"],
        sample_params=weights,
    )


def decisions(table: dict[str, np.ndarray], **options: Any) -> Decisions:
    found = flat_audit(
        table["score"],
        sensitive_features=table["group"],
        y_true=table["label"],
        **{**QUICK, **options},
    )
    return found.decisions[0]


@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.extended), True])
@settings(max_examples=10, deadline=None)  # each makes eight frames of fairlearn's, which are slow
@given(table=tables())
def test_every_number_is_fairlearns(weighted: bool, table: dict[str, np.ndarray]) -> None:
    pairs = {(a, b) for a, b in zip(table["group"].tolist(), table["label"].tolist(), strict=True)}
    assume(len(pairs) == 2 * (table["group"].max() + 1))  # fairlearn calls the rate of nobody 0
    weights = {"sample_weight": table["weight"]} if weighted else {}
    ours, theirs = decisions(table, **weights), frame(table, weighted=weighted)
    for rate in ours.rates:
        row = theirs.by_group.loc[int(rate.group)]
        assert {name: getattr(rate, name) for name in row.index} == pytest.approx(
            row.to_dict(), abs=1e-12
        )
        assert rate.size == (table["group"] == int(rate.group)).sum()
    shared = {
        "y_true": table["label"],
        "y_pred": (table["score"] >= 0.5).astype(int),
        "sensitive_features": table["group"],
        **weights,
    }
    assert ours.selection_difference == pytest.approx(
        fl.demographic_parity_difference(**shared), abs=1e-12
    )
    if ours.selection_ratio is not None:
        assert ours.selection_ratio == pytest.approx(
            fl.demographic_parity_ratio(**shared), abs=1e-12
        )
    assert ours.true_positive_difference is not None
    assert ours.false_positive_difference is not None
    odds = max(ours.true_positive_difference, ours.false_positive_difference)
    assert odds == pytest.approx(fl.equalized_odds_difference(**shared), abs=1e-12)
    assert ours.true_positive_difference == pytest.approx(
        fl.equal_opportunity_difference(**shared), abs=1e-12
    )
    assert ours.accuracy_difference == pytest.approx(theirs.difference()["accuracy"], abs=1e-12)


@pytest.mark.oracle("Decisions.selection_ratio")
@settings(max_examples=40, deadline=None)
@given(counts=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=2, max_size=5))
def test_the_four_fifths_ratio_is_the_exact_fraction(counts: list[tuple[int, int]]) -> None:
    """Each group's (selected, not selected)."""
    group = [g for g, (yes, no) in enumerate(counts) for _ in range(yes + no)]
    score = [float(k < yes) for yes, no in counts for k in range(yes + no)]
    found = flat_audit(score, sensitive_features=group, **QUICK).decisions[0]
    rates = [Fraction(yes, yes + no) for yes, no in counts]
    if max(rates) == 0:
        assert found.selection_ratio is None
    else:
        assert found.selection_ratio == pytest.approx(float(min(rates) / max(rates)), rel=1e-13)
    assert found.selection_difference == pytest.approx(float(max(rates) - min(rates)), abs=1e-13)


def test_a_rate_that_no_sample_shows_is_none_and_no_part_of_the_difference() -> None:
    found = flat_audit(
        [1, 0, 1, 0, 1],
        sensitive_features=list("aabbb"),
        y_true=[0, 0, 1, 1, 0],
        criteria="statistical_parity",
        **QUICK,
    ).decisions[0]
    assert [(rate.true_positive_rate, rate.false_positive_rate) for rate in found.rates] == [
        (None, 0.5),
        (0.5, 1.0),
    ]
    assert (found.true_positive_difference, found.false_positive_difference) == (0.0, 0.5)


def test_strata_and_unknown_groups() -> None:
    found = flat_audit(
        [0.9, 0.1, 0.9, 0.9, 0.2, 0.9, 0.9],
        sensitive_features=["a", "a", "b", "a", "b", "b", None],
        control_features=["n", "n", "n", "s", "s", "s", "s"],
        **QUICK,
    )
    told = [(one.within, [rate.selection_rate for rate in one.rates]) for one in found.decisions]
    assert told == [("control_features=n", [0.5, 1.0]), ("control_features=s", [1.0, 0.5])]
    assert (found.record.rows, found.record.left_out) == (6, 1)
    assert found.notes[0].kind == "missing_groups"


def test_the_positive_label_is_what_it_is_said_to_be() -> None:
    data = {"sensitive_features": list("aabb"), "y_true": ["no", "yes", "no", "yes"], **QUICK}
    usual = flat_audit([0.1, 0.9, 0.8, 0.9], **data).decisions[0].rates[0]
    other = flat_audit([0.1, 0.9, 0.8, 0.9], pos_label="no", **data).decisions[0].rates[0]
    assert (usual.accuracy, usual.true_positive_rate, usual.false_positive_rate) == (1.0, 1.0, 0.0)
    assert (other.accuracy, other.true_positive_rate, other.false_positive_rate) == (0.0, 0.0, 1.0)
    two = flat_audit(np.array([[0.9, 0.1], [0.1, 0.9], [0.2, 0.8], [0.1, 0.9]]), **data)
    assert two.decisions[0].rates[0] == usual


def test_rates_of_continuous_scores_are_left_out() -> None:
    margins, groups = [-3.0, 0.2, 5.0, 8.0], list("aabb")
    silent = flat_audit(margins, sensitive_features=groups, **QUICK)
    assert not silent.decisions
    assert "threshold=..." in silent.note_texts()[0]
    assert (
        flat_audit(margins, sensitive_features=groups, threshold=1.0, **QUICK)
        .decisions[0]
        .selection_ratio
        == 0.0
    )
    given = flat_audit(margins, sensitive_features=groups, threshold=0.5, **QUICK)
    assert given.decisions[0].threshold == 0.5
    assert not any("threshold" in text for text in given.note_texts())
    assert (
        flat_audit([0.1, 0.9, 0.2, 0.3], sensitive_features=groups, **QUICK).decisions[0].threshold
        == 0.5
    )
    assert not flat_audit(
        [0.1, 0.9, 0.2, 0.3], sensitive_features=groups, threshold=None, **QUICK
    ).decisions
    for asked in ("auto", 0.3, 1.0):  # decisions themselves
        given = flat_audit(
            [0, 1, 1, 1], sensitive_features=groups, threshold=asked, **QUICK
        ).decisions[0]
        assert (given.selection_ratio, given.selected_by) == (0.5, "decisions")
    unasked = flat_audit(
        [0, 1, 1, 1], sensitive_features=groups, y_true=[0, 1, 0, 1], threshold=None, **QUICK
    )
    assert not unasked.decisions
    assert unasked.record.by_group[0].groups[0].log_loss is None  # no probabilities all the same
    nobody = flat_audit([0, 1, 1, 1], sensitive_features=groups, threshold=2, **QUICK).decisions[0]
    assert [one.selection_rate for one in nobody.rates] == [0, 0]


def test_four_fifths_exactly_is_not_below_four_fifths() -> None:
    """6 of 10 against 15 of 20: floats say 0.6 / 0.75 = 0.7999999999999999."""
    score = [0.9] * 6 + [0.1] * 4 + [0.9] * 15 + [0.1] * 5
    found = flat_audit(score, sensitive_features=["a"] * 10 + ["b"] * 20, **QUICK)
    assert found.decisions[0].selection_ratio == 0.8
    said = "impact ratio 0.80; the true ratio may be above or below 0.80."
    assert any(text.endswith(said) for text in found.summary.splitlines())


def test_two_columns_are_the_same_probabilities_whatever_labels_occur() -> None:
    share = np.random.default_rng(1).random(50)
    options: dict[str, Any] = {"sensitive_features": np.arange(50) % 2, **QUICK}
    expected = [rate.selection_rate for rate in flat_audit(share, **options).decisions[0].rates]
    for label in (0, 1):
        both = np.stack([1 - share, share], axis=1)
        found = flat_audit(
            both, y_true=np.full(50, label), criteria="statistical_parity", **options
        ).decisions[0]
        assert [rate.selection_rate for rate in found.rates] == expected
