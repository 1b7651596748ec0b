"""What a finding says beside its distance, against loops over the rows: three groups, ties,
weights, a threshold.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
import pytest

from metrifair import AuditOptions, audit
from tests.seams.auditing import LargestGap, TwoSamples, _split_at


def rows(weighted: bool) -> dict[str, Any]:
    generator = np.random.default_rng(5)
    group = np.repeat(["a", "b", "c"], [60, 80, 40])
    score = (generator.random(180) * np.repeat([0.7, 1.0, 0.9], [60, 80, 40])).round(1)
    label = (generator.random(180) < score).astype(int)
    weight = generator.integers(1, 4, 180).astype(float) if weighted else np.ones(180)
    return {"group": group, "score": score, "label": label, "weight": weight}


def audited(data: dict[str, Any], weighted: bool, **options: Any) -> Any:
    return audit(
        data["label"],
        data["score"],
        sensitive_features=data["group"],
        sample_weight=data["weight"] if weighted else None,
        metrics="kolmogorov",
        criteria="statistical_parity",
        random_state=0,
        options=AuditOptions(**{"resamples": 0, "permutations": 0, "min_group_size": 50} | options),
    ).record


@pytest.mark.oracle(
    "Finding.sizes",
    "Finding.enough",
    "Finding.at",
    "Finding.shares",
    "Finding.means",
    "Finding.span",
)
@pytest.mark.parametrize("contrast", ["pairs", "rest"])
@pytest.mark.parametrize("weighted", [False, True])
def test_findings_describe_the_two_groups(weighted: bool, contrast: str) -> None:
    data = rows(weighted)
    findings = audited(data, weighted, contrast=contrast).findings
    assert [one.groups[0] for one in findings] == {
        "pairs": ["a", "a", "b"],
        "rest": ["a", "b", "c"],
    }[contrast]
    for one in findings:
        left = data["group"] == one.groups[0]
        own = [left, ~left if contrast == "rest" else data["group"] == one.groups[1]]
        scores, weights = ([data[name][side] for side in own] for name in ("score", "weight"))

        def upto(at: float, scores: Any = scores, weights: Any = weights) -> tuple[float, ...]:
            return tuple(
                float(w[s <= at].sum() / w.sum()) for s, w in zip(scores, weights, strict=True)
            )

        gaps = {at: abs(np.subtract(*upto(at))) for at in np.unique(np.concatenate(scores))}
        assert one.value == pytest.approx(max(gaps.values()))
        assert one.at is not None
        assert gaps[one.at] == pytest.approx(one.value)
        assert one.shares == pytest.approx(upto(one.at))
        assert one.means == pytest.approx(
            [np.average(s, weights=w) for s, w in zip(scores, weights, strict=True)]
        )
        assert one.span == pytest.approx(np.ptp(np.concatenate(scores)))
        assert one.sizes == tuple(len(s) for s in scores)
        assert one.enough == (min(one.sizes) >= 50)


def test_of_places_with_the_same_gap_the_lowest_is_named() -> None:
    scores = np.repeat([0.1, 0.4, 0.2, 0.6], 50)  # shares differ by a half at 0.1 and at 0.4
    groups = np.repeat(["a", "b"], 100)
    found = audit(None, scores, sensitive_features=groups, random_state=0)
    (one,) = [finding for finding in found.findings if finding.metric == "kolmogorov"]
    assert (one.value, one.at, one.shares) == (0.5, 0.1, (0.5, 0.0))


@pytest.mark.oracle(
    "Decisions.selection_difference",
    "Decisions.true_positive_difference",
    "Decisions.false_positive_difference",
    "Decisions.accuracy_difference",
    "GroupRates.selection_rate",
    "GroupRates.accuracy",
    "GroupRates.true_positive_rate",
    "GroupRates.false_positive_rate",
)
@pytest.mark.parametrize("weighted", [False, True])
def test_decisions_differ_by_the_largest_less_the_smallest_rate(weighted: bool) -> None:
    """Scores of 0.5 are selected.

    The third group is below the minimum group size, and in no difference.
    """
    data = rows(weighted)
    (table,) = audited(data, weighted).decisions
    selected = np.round(10 * data["score"]) >= 5

    def rate(name: str, inside: np.ndarray, hit: np.ndarray) -> float:
        own = (data["group"] == name) & inside
        return float(np.average(hit[own], weights=data["weight"][own]))

    everyone, truth = np.ones(180, dtype=bool), data["label"] == 1
    expected = {
        "selection_rate": [rate(name, everyone, selected) for name in "abc"],
        "true_positive_rate": [rate(name, truth, selected) for name in "abc"],
        "false_positive_rate": [rate(name, ~truth, selected) for name in "abc"],
        "accuracy": [rate(name, everyone, selected == truth) for name in "abc"],
    }
    for name, values in expected.items():
        assert [getattr(one, name) for one in table.rates] == pytest.approx(values)
        difference = getattr(table, name.replace("_rate", "") + "_difference")
        assert difference == pytest.approx(np.ptp(values[:2]))


def test_equal_weights_are_no_weights_in_any_interval() -> None:
    data = rows(weighted=False)
    plain, weighted = (
        audited(data | {"weight": np.full(180, 3.0)}, weighted, resamples=50, min_group_size=20)
        for weighted in (False, True)
    )
    for one, other in zip(plain.findings, weighted.findings, strict=True):
        assert astuple(other.interval) == pytest.approx(astuple(one.interval))
    ratios = [
        table.selection_ratio_interval for record in (plain, weighted) for table in record.decisions
    ]
    assert astuple(ratios[0]) == pytest.approx(astuple(ratios[1]))
    assert ratios[0].low < ratios[0].high


def test_three_labels_have_selection_rates_and_none_by_label() -> None:
    data = rows(weighted=False)
    (table,) = audited(
        data | {"label": np.arange(180) % 3}, weighted=False, min_group_size=20
    ).decisions
    for rate in table.rates:
        own = data["score"][data["group"] == rate.group]
        assert rate.selection_rate == pytest.approx(np.mean(np.round(10 * own) >= 5))
        assert (rate.true_positive_rate, rate.false_positive_rate, rate.accuracy) == (
            None,
            None,
            None,
        )


@pytest.mark.parametrize("whole", [False, True])
def test_a_bin_is_cut_where_the_gap_lies_and_no_empty_part_is_left(whole: bool) -> None:
    bins = TwoSamples(
        np.array([1.0, 2.0, 3.0]), np.array([4.0, 3.0, 3.0]), np.array([1.0, 5.0, 4.0])
    )
    found = _split_at(bins, LargestGap(1.75, (0.56, 0.36)), counts=whole)
    first = np.array([[4.0, 2.0, 1.0, 3.0], [1.0, 3.0, 2.0, 4.0]])
    if not whole:
        first += [[0.0, -0.4, 0.4, 0.0], [0.0, -0.4, 0.4, 0.0]]
    assert found.values.tolist() == [1.0, 1.75, 2.0, 3.0]
    np.testing.assert_allclose([found.left, found.right], first)
    # no row of the bin lies below the gap
    before = _split_at(bins, LargestGap(1.75, (0.4, 0.1)), counts=whole)
    assert [part.tolist() for part in before] == [part.tolist() for part in bins]
