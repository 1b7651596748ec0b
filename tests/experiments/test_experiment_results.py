"""Figures against the library's own measures, areas against hand-made and brute-force ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.comparisons import sampling_floor
from experiments.data import Splits
from experiments.page import markdown_table
from experiments.printed import Printed
from experiments.results import (
    ModelResult,
    dominated_area,
    measured,
    read_csv,
    results_of,
    trapezoid,
    write_csv,
)
from experiments.settings import DATA, PUBLISHED, Case
from experiments.tables import Mean, close, corrected_table, curves, published_table
from metrifair import unfairness
from metrifair.metrics import kolmogorov_distance

POINTS = st.lists(st.tuples(st.integers(0, 10), st.floats(-0.5, 1.0)), min_size=1, max_size=12)


def result(strength: float, accuracy: float, gap: float, **others: object) -> ModelResult:
    named = {
        "experiment": "classification",
        "protocol": "published",
        "input": "raw",
        "data": "drug",
        "method": "mfl-nn",
    }
    return ModelResult(
        **named
        | {
            "strength": strength,
            "seed": 0,
            "accuracy": accuracy,
            "label_gap": gap,
            "kolmogorov": gap,
            "seconds": 1.0,
        }
        | others
    )


@pytest.mark.parametrize("among_positives", [False, True])
def test_figures_are_the_library_s(among_positives: bool) -> None:
    rng = np.random.default_rng(0)
    y, a = rng.integers(2, size=80) * 1.0, rng.integers(2, size=80)
    score = rng.random((3, 80)) * 0.7 + 0.3 * a * rng.random(80)
    found = measured(score, y, a, classify=True, among_positives=among_positives)
    criterion = "equal_opportunity" if among_positives else "statistical_parity"
    for at, own in enumerate(score):
        label = (own >= 0.5).astype(float)
        assert found["accuracy"][at] == pytest.approx((label == y).mean())
        assert found["kolmogorov"][at] == pytest.approx(
            unfairness(y, own, sensitive_features=a, criterion=criterion)
        )
        assert found["label_gap"][at] == pytest.approx(
            unfairness(y, label, sensitive_features=a, criterion=criterion)
        )
        assert found["parity_gap"][at] == pytest.approx(unfairness(y, label, sensitive_features=a))


def test_regression_is_measured_by_the_share_of_variance() -> None:
    y, a = np.array([0.0, 1.0, 2.0, 5.0]), np.array([0, 0, 1, 1])
    found = measured(np.stack([y, np.full(4, y.mean())]), y, a, classify=False)
    assert found["accuracy"] == pytest.approx([1.0, 0.0])
    assert found["kolmogorov"] == pytest.approx([1.0, 0.0])
    assert np.isnan(found["label_gap"]).all()


def test_the_published_area_by_hand() -> None:
    # (0.2, 0) -> (0.2, 0.5) -> (0.6, 0.7) -> (1, 0.7)
    assert trapezoid([0.6, 0.2], [0.7, 0.5]) == pytest.approx(0.4 * 0.6 + 0.4 * 0.7)
    # a dominated point lowers it
    assert trapezoid([0.6, 0.2, 0.4], [0.7, 0.5, 0.1]) == pytest.approx(
        0.2 * 0.3 + 0.2 * 0.4 + 0.4 * 0.7
    )
    # two points tie at the lowest unfairness: the anchor behind them takes the triangle away
    assert trapezoid([0.2, 0.2, 0.6], [0.5, 0.6, 0.7]) == pytest.approx(0.4 * 0.65 + 0.4 * 0.7)
    assert trapezoid([0.2, 0.2, 0.6], [0.5, 0.6, 0.7], anchor_last=True) == pytest.approx(
        0.4 * 0.35 + 0.4 * 0.7
    )
    assert trapezoid([0.3], [-2.0]) == 0.0


@settings(max_examples=60)
@given(POINTS)
def test_the_exact_area_is_the_integral_of_the_best_accuracy_so_far(
    points: list[tuple[int, float]],
) -> None:
    rows = [result(at, accuracy, gap / 10) for at, (gap, accuracy) in enumerate(points)]
    grid = (np.arange(10_000) + 0.5) / 10_000
    best = [
        max((max(r.accuracy, 0) for r in rows if r.label_gap <= t), default=0.0)
        for t in grid[::100]
    ]
    assert dominated_area(rows, on="labels") == pytest.approx(np.mean(best), abs=1e-9)


@settings(max_examples=60)
@given(POINTS)
def test_the_anchor_s_place_matters_only_for_ties(points: list[tuple[int, float]]) -> None:
    gaps, accuracies = [gap / 10 for gap, _ in points], [accuracy for _, accuracy in points]
    first, last = trapezoid(gaps, accuracies), trapezoid(gaps, accuracies, anchor_last=True)
    assert last <= first + 1e-12
    if len(set(gaps)) == len(gaps):
        # alone at the lowest unfairness: behind it the anchor still cuts its triangle off
        order = np.argsort(gaps)
        after = (*np.array(gaps)[order][1:], 1.0)[0]
        lost = (after - min(gaps)) * max(accuracies[order[0]], 0.0) / 2
        assert first - last == pytest.approx(lost, abs=1e-9)


def test_the_sampling_floor_is_the_mean_distance_of_like_samples() -> None:
    rng = np.random.default_rng(0)
    left, right = torch.as_tensor(rng.random((2000, 300))), torch.as_tensor(rng.random((2000, 500)))
    assert float(kolmogorov_distance(left, right).mean()) == pytest.approx(
        sampling_floor(300, 500), rel=0.06
    )


def test_results_survive_a_file(tmp_path: Path) -> None:
    results = [result(0.1 + 0.2, 1 / 3, 0.25), result(2.0, 0.5, float("nan"), failed=True)]
    write_csv(tmp_path / "points.csv", results)
    assert str(read_csv([tmp_path / "points.csv"])) == str(results)  # nan differs from itself
    write_csv(tmp_path / "packed.csv.gz", results)
    write_csv(tmp_path / "more.csv", [result(2.0, 0.75, 0.5)])
    found = read_csv([tmp_path / "packed.csv.gz", tmp_path / "more.csv"])
    # packed with six digits; of two, the last
    assert [one.accuracy for one in found] == [0.333333, 0.75]
    assert not found[1].failed


def test_a_model_that_diverged_has_no_figures_and_moves_nobody_else_s() -> None:
    case = Case("classification", PUBLISHED, "raw", "drug", DATA["drug"])
    rows = np.arange(4)[None]
    splits = Splits(np.zeros((4, 1)), np.array([0.0, 1, 1, 1]), np.array([0, 0, 1, 1]), rows, rows)
    good = np.array([0.2, 0.8, 0.6, 0.9])
    found = results_of(
        case, splits, "mfl-nn", 0, strengths=[1, 2, 3], scores=[None, good, 1 - good], seconds=2.0
    )
    assert [one.failed for one in found] == [True, False, False]
    assert np.isnan(found[0].accuracy)
    assert [(one.strength, one.accuracy, one.label_gap) for one in found[1:]] == [
        (2, 1.0, 0.5),
        (3, 0.0, 0.5),
    ]
    assert all(np.isnan(one.accuracy) for one in results_of(
        case, splits, "mfl-nn", 0, strengths=[1], scores=[None], seconds=2.0
    ))  # fmt: skip


def test_areas_are_means_over_seeds_and_failed_models_do_not_count() -> None:
    rows = [
        result(1.0, 0.8, 0.5),
        result(2.0, 1.0, 0.0, failed=True),
        result(1.0, 0.6, 0.5, seed=1),
    ]
    (curve,) = curves(rows)
    assert curve.exact("labels") == Mean(pytest.approx(0.35), pytest.approx(0.05), 2)
    table = published_table([curve])
    assert table[1][:4] == ["Drug", "MFL NN", "0.823 ± 0.005", "0.350 ± 0.050 (2 seeds)"]
    assert table[1][5] == "no"
    assert "**0.350 ± 0.050 (2 seeds)**" in markdown_table(corrected_table([curve]))
    assert "**" not in markdown_table(corrected_table([curve], marked=False))
    heading, line = corrected_table([curve])
    assert line[heading.index("printed (published protocol)")] == "0.823 ± 0.005"
    # from a gap of 0.5 on the better of constant and model: once the model, 0.8, once the constant
    majority = DATA["drug"].majority
    assert 0.6 < majority < 0.8
    assert curve.exact("labels", constant=True).value == pytest.approx((0.8 + 3 * majority) / 4)


def test_columns_that_hold_nothing_are_left_out() -> None:
    """The paper prints no areas of pre-processing, and regression has no labels."""
    (unprinted,) = curves([replace(result(1.0, 0.8, 0.5), experiment="preprocessing")])
    assert published_table([unprinted])[0] == ["data", "method", "ours", "s per fit, ours"]
    (amounts,) = curves(
        [replace(result(1.0, 0.8, 0.5), experiment="regression", data="student-math")]
    )
    heading = [
        "data",
        "input",
        "method",
        "area, scores",
        "printed (published protocol)",
        "s per fit",
    ]
    assert corrected_table([amounts])[0] == heading


def test_close_means_two_printed_errors_or_a_hundredth() -> None:
    sharp, blurred = Printed(0.5, 0.001, 1), Printed(0.5, 0.03, 1)
    assert [close(value, sharp) for value in (0.491, 0.509, 0.511)] == [True, True, False]
    assert [close(value, blurred) for value in (0.441, 0.559, 0.561)] == [True, True, False]
