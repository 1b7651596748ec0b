"""What a finding says beside its distance, against loops over the rows: three groups, ties, weights, a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from metrifair import AuditOptions, audit


def rows(weighted: bool) -> dict[str, Any]:
    generator = np.random.default_rng(5)
    group = np.repeat(["a", "b", "c"], [60, 80, 40])
    score = (generator.random(180) * np.repeat([0.7, 1.0, 0.9], [60, 80, 40])).round(1)
    label = (generator.random(180) < score).astype(int)
    weight = generator.integers(1, 4, 180).astype(float) if weighted else np.ones(180)
    return {"group": group, "score": score, "label": label, "weight": weight}


def audited(data: dict[str, Any], weighted: bool) -> Any:
    return audit(
        data["label"],
        data["score"],
        sensitive_features=data["group"],
        sample_weight=data["weight"] if weighted else None,
        metrics="kolmogorov",
        criteria="statistical_parity",
        options=AuditOptions(resamples=0, permutations=0, min_group_size=50),
    ).record


@pytest.mark.parametrize("weighted", [False, True])
def test_findings_describe_the_two_groups(weighted: bool) -> None:
    data = rows(weighted)
    findings = audited(data, weighted).findings
    assert [one.groups for one in findings] == [("a", "b"), ("a", "c"), ("b", "c")]
    for one in findings:
        own = [data["group"] == name for name in one.groups]
        scores, weights = ([data[name][side] for side in own] for name in ("score", "weight"))

        def upto(at: float, scores: Any = scores, weights: Any = weights) -> tuple[float, ...]:
            return tuple(float(w[s <= at].sum() / w.sum()) for s, w in zip(scores, weights, strict=True))

        gaps = {at: abs(np.subtract(*upto(at))) for at in np.unique(np.concatenate(scores))}
        assert one.value == pytest.approx(max(gaps.values()))
        assert one.at is not None
        assert gaps[one.at] == pytest.approx(one.value)
        assert one.shares == pytest.approx(upto(one.at))
        assert one.means == pytest.approx([np.average(s, weights=w) for s, w in zip(scores, weights, strict=True)])
        assert one.span == pytest.approx(np.ptp(np.concatenate(scores)))
        assert one.sizes == tuple(len(s) for s in scores)
        assert one.enough == (min(one.sizes) >= 50)


@pytest.mark.parametrize("weighted", [False, True])
def test_decisions_differ_by_the_largest_less_the_smallest_rate(weighted: bool) -> None:
    """Scores of 0.5 are selected. The third group is below the minimum group size, and in no difference."""
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
