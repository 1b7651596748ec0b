"""Findings: who is compared in which sense, numbers that equal SciPy's and ``unfairness``, and
what is left out.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import special, stats

from metrifair import Audit, audit, unfairness
from metrifair.criteria import CRITERIA, EQUALIZED_ODDS, Criterion
from metrifair.metrics import witness
from tests.flat_options import flat
from tests.seams.auditing import Finding
from tests.seams.metrics import METRICS
from tests.seams.wording import finding_sentence

RANDOM = np.random.default_rng(11)
N = 300
GROUP = RANDOM.integers(0, 4, N)
LABEL = RANDOM.integers(0, 2, N)
SCORE = np.round(special.expit(RANDOM.normal(size=N) + 0.4 * GROUP + LABEL), 2)
WEIGHT = RANDOM.uniform(0.2, 2.0, N)
REGION = RANDOM.choice(["north", "south"], N)
QUICK: dict[str, Any] = {"resamples": 0, "permutations": 0, "random_state": 0}


def by_key(found: Audit) -> dict[tuple[str, str, tuple[str, str], str], Finding]:
    return {(one.criterion, one.within, one.groups, one.metric): one for one in found.findings}


SCIPY = {
    "kolmogorov": lambda u, v, a, b: stats.ks_2samp(u, v).statistic,
    "wasserstein": stats.wasserstein_distance,
    "energy": lambda *pair: stats.energy_distance(*pair) ** 2,
    "cramer": lambda *pair: stats.energy_distance(*pair) ** 2 / 2,
    "lp": lambda *pair: stats.energy_distance(*pair) / np.sqrt(2),
}


@pytest.mark.oracle("Finding.value")
@pytest.mark.parametrize("weighted", [False, True])
def test_every_comparison_has_scipys_numbers(weighted: bool) -> None:
    metrics = [name for name in SCIPY if not (weighted and name == "kolmogorov")]
    weight = WEIGHT if weighted else np.ones(N)
    options = {"sample_weight": WEIGHT} if weighted else {}
    found = by_key(
        audit(LABEL, SCORE, sensitive_features=GROUP, metrics=metrics, **flat(**options, **QUICK))
    )
    sets = {
        ("statistical_parity", "everyone"): np.ones(N, dtype=bool),
        ("equal_opportunity", "label=1"): LABEL == 1,
        ("predictive_equality", "label=0"): LABEL == 0,
    }
    assert len(found) == len(sets) * 6 * len(metrics)
    for (criterion, within), inside in sets.items():
        for g, h in combinations(range(4), 2):
            left, right = inside & (g == GROUP), inside & (h == GROUP)
            for metric in metrics:
                finding = found[criterion, within, (str(g), str(h)), metric]
                expected = SCIPY[metric](SCORE[left], SCORE[right], weight[left], weight[right])
                assert finding.value == pytest.approx(expected, abs=1e-12)
                assert finding.sizes == (left.sum(), right.sum())


CASES: list[dict[str, Any]] = [
    {"criterion": "statistical_parity"},
    {"criterion": "equalized_odds"},
    {"criterion": "equal_opportunity", "pos_label": 0},
    {"criterion": "statistical_parity", "contrast": "rest"},
    {"criterion": "conditional_statistical_parity", "control_features": REGION},
    {
        "criterion": "predictive_equality",
        "control_features": pl.DataFrame({"a": REGION, "b": np.arange(N) % 2}),
    },
    {"criterion": "risk_parity", "loss": "log_loss"},
    {
        "criterion": Criterion(
            "own", sets=lambda y: np.stack([y < 2, y > 0], 1), set_names=("low", "high")
        )
    },
]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["criterion"])[:20])
def test_the_worst_finding_is_the_unfairness(case: dict[str, Any], metric: str) -> None:
    options = dict(case)
    criterion = options.pop("criterion")
    expected = unfairness(
        LABEL, SCORE, sensitive_features=GROUP, metric=metric, criterion=criterion, **options
    )
    found = audit(
        LABEL,
        SCORE,
        sensitive_features=GROUP,
        criteria=criterion,
        metrics=metric,
        **flat(**options, **QUICK),
    )
    assert found.worst().value == pytest.approx(expected, abs=1e-12)


def test_class_probabilities_are_audited_class_by_class() -> None:
    rng = np.random.default_rng(99)
    shares = special.softmax(rng.normal(size=(N, 3)) + 0.3 * GROUP[:, None] * [0, 1, -1], -1)
    found = audit(
        GROUP % 3, shares, sensitive_features=GROUP, criteria="statistical_parity", **flat(**QUICK)
    )
    assert {one.within for one in found.findings} == {f"p({k})" for k in range(3)}
    assert not found.decisions
    for metric in ("kolmogorov", "wasserstein"):
        expected = unfairness(None, shares, sensitive_features=GROUP, metric=metric)
        assert found.worst(metric).value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("y_true", "control", "expected"),
    [
        (None, None, ["statistical_parity"]),
        (LABEL, None, ["statistical_parity", "equal_opportunity", "predictive_equality"]),
        (np.arange(N) % 3, None, ["statistical_parity", "equalized_odds"]),
        (SCORE * 7.3, None, ["statistical_parity"]),
        (np.arange(N), None, ["statistical_parity"]),
        (np.zeros(N), None, ["statistical_parity"]),
        (None, REGION, ["conditional_statistical_parity"]),
        (
            LABEL > 0,
            REGION,
            ["conditional_statistical_parity", "equal_opportunity", "predictive_equality"],
        ),
    ],
)
def test_default_criteria_are_those_the_data_allow_and_nothing_is_listed_twice(
    y_true: Any, control: Any, expected: list[str]
) -> None:
    options = {**QUICK, "metrics": "kolmogorov", "control_features": control}
    found = audit(y_true, SCORE, sensitive_features=GROUP > 1, **flat(**options))
    assert list(dict.fromkeys(one.criterion for one in found.findings)) == expected
    assert len({(one.within, one.groups) for one in found.findings}) == len(found.findings)


def test_regression_targets_can_be_cut_into_bins() -> None:
    rng = np.random.default_rng(99)
    kind = Criterion(EQUALIZED_ODDS.name, labels="every", bins=(0.0,))
    target = rng.normal(size=N)
    found = audit(
        target, SCORE * 9 - 4, sensitive_features=GROUP > 1, criteria=kind, **flat(**QUICK)
    )
    assert {one.within for one in found.findings} == {"label<0", "label≥0"}


def test_many_groups_are_compared_with_the_rest_and_far_too_many_refused() -> None:
    many = np.arange(N) % 31
    asked = {"metrics": "kolmogorov", "continuous": False, **QUICK}
    found = audit(None, SCORE, sensitive_features=many, **flat(**asked))
    assert [one.groups for one in found.findings] == [(str(g), "rest") for g in range(31)]
    first = found.findings[0]
    assert first.value == pytest.approx(
        stats.ks_2samp(SCORE[many == 0], SCORE[many != 0]).statistic
    )
    assert first.sizes == ((many == 0).sum(), (many != 0).sum())
    assert (
        len(audit(None, SCORE, sensitive_features=np.arange(N) % 30, **flat(**asked)).findings)
        == 435
    )


def test_several_attributes_crossed_or_not_and_any_table() -> None:
    table = {"sex": np.where(GROUP > 1, "f", "m"), "old": LABEL == 1}
    frames = [pd.DataFrame(table), pl.DataFrame(table), table]
    found = [
        audit(None, SCORE, sensitive_features=frame, metrics="kolmogorov", **flat(**QUICK))
        for frame in frames
    ]
    assert [[one.value for one in audited.findings] for audited in found] == [
        [one.value for one in found[0].findings]
    ] * 3
    assert [one.attribute for one in found[0].findings] == ["sex", "old"]
    crossed = audit(
        None,
        SCORE,
        sensitive_features=table,
        intersectional=True,
        metrics="kolmogorov",
        **flat(**QUICK),
    )
    assert {one.attribute for one in crossed.findings} == {"sex x old"}
    assert len(crossed.findings) == 6


def test_unknown_groups_are_left_out_of_their_attribute_only_and_counted() -> None:
    sex = ["a", "a", "b", "b", None, None]
    age = ["x", "y", "x", "y", "x", None]
    found = audit(
        None,
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        sensitive_features={"sex": sex, "age": age},
        metrics="kolmogorov",
        **flat(**QUICK),
    )
    assert [one.sizes for one in found.findings] == [(2, 2), (3, 2)]
    assert (found.record.rows, found.record.left_out) == (5, 1)
    assert found.note_texts()[:3] == [
        "sex is missing in 2 of 6 rows; its findings exclude them.",
        "age is missing in 1 of 6 rows; its findings exclude them.",
        "All findings exclude 1 row without any group.",
    ]


def test_a_group_without_samples_in_a_set_is_named_and_not_compared() -> None:
    found = audit(
        [0, 1, 0, 1, 0],
        [0.1, 0.2, 0.3, 0.4, 0.5],
        sensitive_features=list("aabbc"),
        metrics="kolmogorov",
        **flat(**QUICK),
    )
    assert [one.groups for one in found.findings if one.within == "label=1"] == [("a", "b")]
    assert "“c” of sensitive_features in label=1" in found.note_texts()[0]


def test_a_sample_of_weight_zero_is_as_if_it_were_not_there() -> None:
    score, group, weight = [0.1, 0.5, 0.7, 0.9], list("abab"), [1.0, 2.0, 3.0, 1.0]
    options: dict[str, Any] = {"random_state": 0, "resamples": 50}
    with_it = audit(
        None,
        [*score, 0.3],
        sensitive_features=[*group, "a"],
        sample_weight=[*weight, 0.0],
        **flat(**options),
    )
    without = audit(None, score, sensitive_features=group, sample_weight=weight, **flat(**options))
    for one, other in zip(with_it.findings, without.findings, strict=True):
        assert (one.value, one.interval) == (other.value, other.interval)


def test_all_scores_equal_gives_zeros_everywhere() -> None:
    options: dict[str, Any] = {"metrics": list(METRICS), "random_state": 0, "min_group_size": 5}
    found = audit(None, [0.4] * 10, sensitive_features=list("ababababab"), **flat(**options))
    for one in found.findings:
        assert (one.value, one.p_value) == (0.0, 1.0)
        if one.metric == "kolmogorov":  # samples that do not vary are no proof that none does
            assert (one.interval.low, one.interval.high) == (
                0.0,
                pytest.approx(min(1.0, one.certified)),
            )
        else:
            assert one.interval is None
        assert "have the same distribution" in finding_sentence(one)


@pytest.mark.oracle("Finding.witness", "WitnessCurve.grid", "WitnessCurve.expected")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("metric", METRICS)
def test_the_witness_shows_the_gap(metric: str, weighted: bool) -> None:
    options = {"sample_weight": WEIGHT} if weighted else {}
    finding = audit(
        None, SCORE, sensitive_features=GROUP > 1, metrics=metric, **flat(**options, **QUICK)
    ).findings[0]
    curve = finding.witness
    assert curve is not None
    assert len(curve.grid) == len(curve.utility) <= 101
    gap = abs(curve.expected[0] - curve.expected[1])
    assert (gap**2 if METRICS[metric].squared else gap) == pytest.approx(finding.value, abs=1e-9)
    weights = {"u_weights": WEIGHT[GROUP <= 1], "v_weights": WEIGHT[GROUP > 1]} if weighted else {}
    direct = witness(SCORE[GROUP <= 1], SCORE[GROUP > 1], metric=metric, **weights)
    np.testing.assert_allclose(curve.utility, direct(curve.grid), atol=1e-9)


def test_huge_and_tiny_scores_give_numbers() -> None:
    for scale in (1e-300, 1e300):
        found = audit(
            None, SCORE * scale, sensitive_features=GROUP > 1, random_state=0, threshold=None
        )
        usual = audit(None, SCORE, sensitive_features=GROUP > 1, random_state=0, threshold=None)
        for one, other in zip(found.findings, usual.findings, strict=True):
            assert one.value == pytest.approx(
                other.value * (1 if one.metric == "kolmogorov" else scale), rel=1e-9
            )
        found.to_json()


def test_same_seed_same_audit_and_the_seed_matters() -> None:
    one, same, other = (
        audit(None, SCORE, sensitive_features=GROUP > 1, random_state=seed) for seed in (3, 3, 4)
    )
    assert one.record == same.record
    assert one.record != other.record


def test_all_named_criteria_can_be_asked_for() -> None:
    found = audit(
        LABEL,
        SCORE,
        sensitive_features=GROUP > 1,
        control_features=REGION,
        criteria=list(CRITERIA),
        metrics="energy",
        **flat(loss="log_loss", **QUICK),
    )
    assert {one.criterion for one in found.findings} == set(CRITERIA)
    for one in found.findings:
        # losses have no known range
        assert (one.certified is None) == (one.criterion == "risk_parity")


def test_distributions_are_those_of_the_groups() -> None:
    found = audit(LABEL, SCORE, sensitive_features=GROUP > 1, metrics="kolmogorov", **flat(**QUICK))
    assert [one.within for one in found.record.distributions] == ["everyone", "label=1", "label=0"]
    curves = found.record.distributions[1].curves
    own = SCORE[(GROUP > 1) & (LABEL == 1)]
    below = [(own <= score + 1e-9).mean() for score in curves.grid]
    np.testing.assert_allclose(curves.cumulative["True"], below, atol=1e-5)
    assert np.trapezoid(curves.density["True"], curves.grid) == pytest.approx(1.0, abs=0.2)
