"""Faults that were found in use, each with the audit that showed it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from metrifair import DataError, audit, unfairness
from tests.expected_errors import Refusals
from tests.flat_options import flat, flat_audit
from tests.one_split import frontier
from tests.seams.wording import describe, finding_meaning

QUICK: dict[str, Any] = {"resamples": 0, "permutations": 0, "random_state": 0}


def kolmogorov(u: np.ndarray, v: np.ndarray) -> float:
    return max(abs(float((u <= at).mean() - (v <= at).mean())) for at in np.union1d(u, v))


def test_names_of_groups_may_hold_braces() -> None:
    names = ["{x}", "{0}", "}{", "%s"]
    metrics = ["kolmogorov", "wasserstein", "energy", "cramer", "lp", "mmd", "total_variation"]
    found = audit(
        None,
        np.arange(40) % 7 / 7,
        sensitive_features=np.array(names)[np.arange(40) % 4],
        metrics=metrics,
        **flat(**QUICK),
    )
    for one in found.findings:
        assert f"“{one.groups[0]}” and “{one.groups[1]}”" in finding_meaning(one)


@pytest.mark.parametrize("loss", ["log_loss", "squared_error", "absolute_error", "huber"])
def test_equal_losses_are_ties_whatever_their_last_digits(loss: str) -> None:
    """Two-decimal scores: 0.3 with the label 1 is as wrong as 0.7 with the label 0."""
    for seed in range(35, 60):
        generator = np.random.default_rng(seed)
        p, label, group = generator.integers(1, 100, 150), *generator.integers(0, 2, (2, 150))
        wrong = np.where(label == 1, 100 - p, p)
        exact = kolmogorov(wrong[group == 0], wrong[group == 1])
        options: dict[str, Any] = {"sensitive_features": group, "loss": loss}
        found = audit(
            label, p / 100, criteria="risk_parity", metrics="kolmogorov", **flat(**options, **QUICK)
        )
        assert found.worst().value == pytest.approx(exact, abs=1e-12)
        assert unfairness(label, p / 100, criterion="risk_parity", **options) == pytest.approx(
            exact, abs=1e-12
        )


def test_losses_that_differ_are_no_ties() -> None:
    options: dict[str, Any] = {"sensitive_features": list("aabb"), "loss": "log_loss"}
    score = [0.5, 0.5 + 1e-12, 1 - 1e-6, 1 - 2e-6]
    for left, right in ((0, 1), (2, 3)):
        pair = [score[left]] * 2 + [score[right]] * 2
        assert unfairness([0, 1, 0, 1], pair, criterion="risk_parity", **options) == 0.5


def test_a_page_takes_a_frontier_as_it_comes(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    X, group = generator.normal(size=(120, 2)), np.arange(120) % 2
    label = (X[:, 0] + 0.5 * group + generator.normal(size=120) > 0).astype(int)
    models = [LogisticRegression(C=strength).fit(X, label) for strength in (0.1, 1.0)]
    front = frontier(models, X, label, sensitive_features=group, random_state=0)
    found = audit(None, generator.random(120), sensitive_features=group, **flat(**QUICK))
    found.to_html(tmp_path / "front.html", frontier=front)
    found.to_html(tmp_path / "view.html", frontier=front.view())
    page = (tmp_path / "front.html").read_text(encoding="utf-8")
    assert page == (tmp_path / "view.html").read_text(encoding="utf-8")
    assert "Accuracy and fairness" in page


def test_a_folder_that_exists_is_not_said_to_be_missing() -> None:
    found = audit(None, [0.1, 0.4, 0.6, 0.9], sensitive_features=list("aabb"), **flat(**QUICK))
    with pytest.raises(DataError) as caught:
        found.to_json("/proc/audit.json")
    assert "does not exist" not in str(caught.value)
    assert str(caught.value).startswith("cannot write /proc/audit.json: ")


@pytest.mark.parametrize("weights", [1.0, 1e300, 1e-300])
def test_weighted_audits_do_not_depend_on_the_order_of_rows(weights: float) -> None:
    generator = np.random.default_rng(2)
    score, group, label = generator.integers(0, 50, 400) / 50, *generator.integers(0, 3, (2, 400))
    weight = weights * generator.choice([0.1, 0.3, 0.7, 1.9], 400)
    records = []
    for order in (np.arange(400), generator.permutation(400)):
        options = {
            "sensitive_features": group[order],
            "y_true": label[order] > 0,
            "sample_weight": weight[order],
        }
        criteria = ["statistical_parity", "equal_opportunity", "risk_parity"]
        more: dict[str, Any] = {
            "criteria": criteria,
            "loss": "log_loss",
            "resamples": 40,
            "random_state": 0,
        }
        records.append(flat_audit(score[order], **options, **more).record)
    assert records[0] == records[1]
    assert all(one.interval is not None for one in records[0].findings)


@pytest.mark.parametrize("largest", [np.finfo(float).max, np.finfo(float).max / 3, 1e300])
@pytest.mark.parametrize("lowest", [0.0, -0.4])
def test_scores_near_the_largest_numbers_give_finite_figures(
    largest: float, lowest: float, tmp_path: Path
) -> None:
    generator = np.random.default_rng(3)
    share, group, label = generator.uniform(lowest, 0.55, 80), *generator.integers(0, 2, (2, 80))
    metrics = ["kolmogorov", "wasserstein", "energy", "cramer", "lp", "total_variation"]
    options: dict[str, Any] = {
        "sensitive_features": group,
        "y_true": label,
        "metrics": metrics,
        "random_state": 0,
    }
    plain = flat_audit(share, threshold=0.1, resamples=40, permutations=19, **options)
    found = flat_audit(
        share * largest, threshold=0.1 * largest, resamples=40, permutations=19, **options
    )
    assert found.decisions[0].rates == plain.decisions[0].rates
    degree = {"kolmogorov": 0, "total_variation": 0, "lp": 0.5}
    for one, other in zip(found.findings, plain.findings, strict=True):
        unit = largest ** degree.get(one.metric, 1)
        assert one.value == pytest.approx(other.value * unit, rel=1e-9)
        assert one.p_value == other.p_value
        if other.interval is not None:
            assert one.interval.high == pytest.approx(other.interval.high * unit, rel=1e-6)
        assert "inf" not in "".join(describe(one))
        assert "nan" not in "".join(describe(one))
    found.to_json(tmp_path / "large.json")
    found.to_html(tmp_path / "large.html")


def test_two_models_scores_are_not_taken_for_the_probabilities_of_two_classes(
    refused: Refusals,
) -> None:
    generator = np.random.default_rng(4)
    group, both = np.arange(60) % 2, generator.random((60, 2))
    with refused(DataError):
        audit(None, both, sensitive_features=group, **flat(**QUICK))
    share = both[:, 0]
    two = audit(None, np.stack([1 - share, share], 1), sensitive_features=group, **flat(**QUICK))
    assert two.findings == audit(None, share, sensitive_features=group, **flat(**QUICK)).findings
