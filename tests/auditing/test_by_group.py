"""AUC, log loss, calibration and ROC curves by group: as scikit-learn and fairlearn say,
bracketed where counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from fairlearn.metrics import MetricFrame
from sklearn.calibration import calibration_curve
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score, roc_curve

from metrifair import AuditState, audit, audit_file
from tests.flat_options import flat
from tests.seams.auditing import ByGroup, Measure

QUICK: dict[str, Any] = {"resamples": 0, "permutations": 0}


def rows(
    count: int = 600, seed: int = 0, *, ties: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    group = generator.choice(["f", "m", "x"], count, p=[0.5, 0.4, 0.1])
    score = 1 / (1 + np.exp(-1.5 * generator.normal(size=count) - 0.7 * (group == "m")))
    label = (generator.random(count) < score ** (1 + 0.4 * (group == "f"))).astype(int)
    return group, np.round(score, 1).clip(0.05, 0.95) if ties else score, label


def table(group: np.ndarray, score: np.ndarray, label: np.ndarray, **options: Any) -> ByGroup:
    (found,) = audit(
        label, score, sensitive_features=group, **flat(**QUICK, **options)
    ).record.by_group
    return found


@pytest.mark.oracle(
    "Measure.value",
    "ReliabilityBin.score",
    "ReliabilityBin.rate",
    "ReliabilityBin.size",
    "GroupFigures.size",
    "GroupFigures.base_rate",
    "GroupFigures.auc",
    "GroupFigures.accuracy",
    "GroupFigures.log_loss",
    "GroupFigures.calibration_error",
    "GroupFigures.reliability",
)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_figures_are_those_of_scikit_learn(ties: bool, weighted: bool) -> None:
    group, score, label = rows(ties=ties)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(group)) if weighted else None
    for one in table(group, score, label, sample_weight=weight).groups:
        own = group == one.group
        y, p, w = label[own], score[own], None if weight is None else weight[own]
        assert one.size == own.sum()
        assert one.base_rate.value == pytest.approx(np.average(y, weights=w))
        assert one.auc is not None
        assert one.auc.value == pytest.approx(roc_auc_score(y, p, sample_weight=w))
        assert one.accuracy is not None
        assert one.accuracy.value == pytest.approx(accuracy_score(y, p >= 0.5, sample_weight=w))
        assert one.log_loss is not None
        assert one.log_loss.value == pytest.approx(log_loss(y, p, sample_weight=w))
        if not weighted:
            rate, mean = calibration_curve(y, p, n_bins=10)
            assert [each.rate for each in one.reliability] == pytest.approx(rate)
            assert [each.score for each in one.reliability] == pytest.approx(mean)
            share = np.array([each.size for each in one.reliability]) / len(y)
            assert one.calibration_error is not None
            assert one.calibration_error.value == pytest.approx(share @ np.abs(rate - mean))
            if ties:
                false, true, _ = roc_curve(y, p, drop_intermediate=False)
                assert np.array(one.roc) == pytest.approx(np.stack([false, true], 1))


@pytest.mark.oracle("ByGroup.gaps")
def test_gaps_are_those_of_fairlearn() -> None:
    group, score, label = rows()
    found = table(group, score, label)
    for name, metric in {"auc": roc_auc_score, "log_loss": log_loss}.items():
        frame = MetricFrame(metrics=metric, y_true=label, y_pred=score, sensitive_features=group)
        assert found.gaps[name].value == pytest.approx(frame.difference())
    right = MetricFrame(
        metrics=accuracy_score, y_true=label, y_pred=score >= 0.5, sensitive_features=group
    )
    assert found.gaps["accuracy"].value == pytest.approx(right.difference())


@pytest.mark.oracle("GroupFigures.roc")
def test_a_thinned_roc_curve_stays_on_the_whole_one() -> None:
    group, score, label = rows(5_000)
    for one in table(group, score, label).groups:
        false, true, _ = roc_curve(
            label[group == one.group], score[group == one.group], drop_intermediate=False
        )
        points = np.array(one.roc)
        assert len(points) <= 102
        assert {tuple(point) for point in np.round(points, 9)} <= {
            tuple(point) for point in np.round(np.stack([false, true], 1), 9)
        }
        assert np.trapezoid(points[:, 1], points[:, 0]) == pytest.approx(
            np.trapezoid(true, false), abs=0.01
        )


@pytest.mark.oracle("Measure.bracket")
@pytest.mark.parametrize("few", [True, False])
def test_counted_rows_give_brackets_that_hold_the_exact_figures(few: bool) -> None:
    group, score, label = rows(6_000 if not few else 900)
    exact = table(group, score, label)
    state = AuditState().add(label, score, sensitive_features=group)
    assert state.exact == few
    (counted,) = state.audit(**flat(**QUICK)).record.by_group
    for one, other in zip(exact.groups, counted.groups, strict=True):
        for name in ("base_rate", "auc", "accuracy", "log_loss", "calibration_error"):
            mine, theirs = getattr(one, name), getattr(other, name)
            if few or name in ("base_rate", "accuracy"):
                assert theirs.value == pytest.approx(mine.value)
            else:
                assert theirs.bracket.low - 1e-12 <= mine.value <= theirs.bracket.high + 1e-12
                assert theirs.bracket.high - theirs.bracket.low < 5e-3


def test_the_interval_of_an_auc_is_as_wide_as_resampled_rows_say() -> None:
    group, score, label = rows(800)
    generator = np.random.default_rng(2)
    for one in table(group, score, label).groups[:2]:
        y, p = label[group == one.group], score[group == one.group]
        drawn = []
        for _ in range(300):
            again = generator.integers(len(y), size=len(y))
            rank = np.argsort(np.argsort(p[again]))  # ties are of one row, of one label
            positives = y[again] == 1
            drawn.append((rank[positives].mean() - (positives.sum() - 1) / 2) / (~positives).sum())
        assert one.auc is not None
        assert one.auc.interval is not None
        assert (one.auc.interval.high - one.auc.interval.low) / (
            3.92 * np.std(drawn)
        ) == pytest.approx(1.0, abs=0.16)


@pytest.mark.slow
def test_intervals_hold_the_figures_of_the_population_about_as_often_as_they_say() -> None:
    group, score, label = rows(200_000, seed=9)
    names = ("base_rate", "auc", "accuracy", "log_loss")
    truth = {
        one.group: {name: getattr(one, name).value for name in names}
        for one in table(group, score, label).groups
    }
    held: dict[str, list[bool]] = {name: [] for name in names}
    for seed in range(150):
        group, score, label = rows(500, seed=seed)
        for one in table(group, score, label, threshold=0.5).groups[:2]:
            for name in names:
                interval = getattr(one, name).interval
                held[name].append(interval.low <= truth[one.group][name] <= interval.high)
    # 300 each: 95 %, and four standard errors.
    assert all(0.9 < np.mean(found) < 0.997 for found in held.values()), {
        k: np.mean(v) for k, v in held.items()
    }


def test_perfect_and_constant_scores_and_missing_labels_have_figures_or_none() -> None:
    group, label = np.repeat(["f", "m"], 40), np.tile([0, 1], 40)
    perfect = table(group, label.astype(float), label).groups[0]
    assert perfect.auc == Measure(1.0, perfect.auc.interval if perfect.auc else None)
    assert perfect.auc is not None
    assert perfect.auc.interval is not None
    assert 0.7 < perfect.auc.interval.low < 1.0  # of 20 positives and 20 negatives
    constant = table(group, np.full(80, 0.3), label).groups[0]
    assert constant.auc is not None
    assert constant.auc.value == 0.5
    one_label = table(group, np.linspace(0, 1, 80), np.where(group == "f", 1, label)).groups[0]
    assert (one_label.auc, one_label.roc) == (None, [])
    assert not audit(
        None, np.linspace(0, 1, 80), sensitive_features=group, **flat(**QUICK)
    ).record.by_group
    other_scale = table(group, np.linspace(0, 9, 80), label).groups[0]
    assert (other_scale.log_loss, other_scale.calibration_error, other_scale.accuracy) == (
        None,
        None,
        None,
    )
    assert other_scale.auc is not None


def test_where_low_scores_are_favorable_high_ones_are_of_the_other_label() -> None:
    group, score, label = rows()
    risk = table(group, score, label, favorable="low", pos_label=0)
    plain = table(group, score, label)
    for one, other in zip(risk.groups, plain.groups, strict=True):
        assert one.auc is not None
        assert other.auc is not None
        assert one.auc.value == pytest.approx(other.auc.value)
        assert one.accuracy == other.accuracy
        assert one.base_rate == other.base_rate


def test_decisions_have_no_log_loss_and_no_calibration(tmp_path: Path) -> None:
    group, score, label = rows()
    decided = (score > 0.5).astype(float)
    pl.DataFrame({"g": group, "d": decided, "y": label}).write_parquet(tmp_path / "d.parquet")
    counted = audit_file(
        tmp_path / "d.parquet", score="d", group="g", label="y", **flat(in_memory_rows=10, **QUICK)
    )
    for found in (table(group, decided, label), counted.record.by_group[0]):
        assert not {"log_loss", "calibration_error"} & set(found.gaps)
        for one in found.groups:
            assert (one.log_loss, one.calibration_error, list(one.reliability)) == (None, None, [])
            assert one.auc is not None
            assert one.accuracy is not None
