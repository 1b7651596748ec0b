"""Bounds from counts of scores in intervals, against every figure of scores inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp
from sklearn.metrics import (
    balanced_accuracy_score,
    brier_score_loss,
    log_loss,
    roc_auc_score,
)

from tests.seams.figures import (
    COUNTED_UTILITIES,
    CountedSides,
    FoldSides,
    IntervalCounts,
    corrected_squares,
    distance_bounds,
    exact_utility,
    gap_bounds,
    gap_without_chance,
    score_kind,
    square_bounds,
    squared_distances,
    utility_bounds,
)


def counted(
    scores: np.ndarray, fold: np.ndarray, positive: np.ndarray, parts: int, withheld: int = 0
) -> IntervalCounts:
    """One entry for each row, in one of so many intervals."""
    place = np.minimum(np.floor(scores * parts), parts - 1)
    ones = np.ones(len(scores), np.int64)
    return IntervalCounts(place / parts, (place + 1) / parts, ones, fold, positive, withheld)


def rows(seed: int, count: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    positive = rng.random(count) < 0.5
    positive[:4] = [True, False, True, False]
    fold = np.arange(count) % 2
    scores = np.clip(rng.beta(2, 2, count) + 0.2 * positive, 0, 1)
    if seed % 3 == 0:
        scores = scores.round(1)
    return scores, fold, positive, rng.random(count) < 0.5


@pytest.mark.parametrize("parts", [2, 5, 16, 256])
@pytest.mark.parametrize("seed", range(20))
def test_distances_and_gaps_of_the_scores_lie_within_the_bounds(seed: int, parts: int) -> None:
    scores, fold, positive, left = rows(seed)
    counts = counted(scores, fold, positive, parts)
    bounds = distance_bounds(counts.inside(left), counts.inside(~left))
    distance = ks_2samp(scores[left], scores[~left]).statistic
    assert bounds.low - 1e-12 <= distance <= bounds.high + 1e-12
    sides = FoldSides(
        left[None].astype(float), ~left[None] + 0.0, fold, labels=positive.astype(np.int64)
    )
    gap = gap_without_chance(scores[None], sides)
    kind = score_kind(scores)
    found = gap_bounds([square_bounds(counts, CountedSides(left, ~left), kind)])
    assert found.low - 1e-9 <= gap <= found.high + 1e-9
    assert bounds.high - bounds.low < 4 / parts + 0.5


@pytest.mark.parametrize("parts", [2, 5, 256])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", COUNTED_UTILITIES)
def test_utilities_of_the_scores_lie_within_the_bounds(name: Any, seed: int, parts: int) -> None:
    scores, fold, positive, _ = rows(seed)
    decided = scores >= 0.5
    aucs = [roc_auc_score(positive[fold == part], scores[fold == part]) for part in (0, 1)]
    pairs = [positive[fold == part].sum() * (~positive[fold == part]).sum() for part in (0, 1)]
    expected = {
        "accuracy": (decided == positive).mean(),
        "balanced_accuracy": balanced_accuracy_score(positive, decided),
        "auc": np.average(aucs, weights=pairs),
        "log_loss": log_loss(positive, np.clip(scores, 2.3e-16, 1 - 1e-16)),
        "brier": brier_score_loss(positive, scores),
    }[name]
    exact = exact_utility(name, scores, np.ones(len(scores), np.int64), fold, positive)
    if name != "log_loss" or 0 < scores.min() <= scores.max() < 1:
        assert exact == pytest.approx(expected, abs=1e-9)
    found = utility_bounds(name, counted(scores, fold, positive, parts))
    assert found.low - 1e-9 <= exact <= found.high + 1e-9


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", COUNTED_UTILITIES)
def test_bounds_allow_for_rows_that_were_withheld(name: Any, seed: int) -> None:
    scores, fold, positive, left = rows(seed)
    rng = np.random.default_rng(seed)
    kept = rng.random(len(scores)) < 0.8
    kept[:4] = True
    missing = int((~kept).sum())
    counts = counted(scores[kept], fold[kept], positive[kept], 32, missing + int(rng.integers(3)))
    ones = np.ones(len(scores), np.int64)
    exact = exact_utility(name, scores, ones, fold, positive)
    found = utility_bounds(name, counts)
    assert found.low - 1e-9 <= exact <= found.high + 1e-9
    sides = FoldSides(
        left[None].astype(float), ~left[None] + 0.0, fold, labels=positive.astype(np.int64)
    )
    square = square_bounds(counts, CountedSides(left[kept], ~left[kept]), "many")
    gap = gap_without_chance(scores[None], sides)
    bounds = gap_bounds([square])
    assert bounds.low - 1e-9 <= gap <= bounds.high + 1e-9


def test_decisions_are_known_exactly() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 2, 80).astype(float)
    left = rng.random(80) < 0.4
    fold = np.arange(80) % 4
    counts = counted(scores, fold, rng.random(80) < 0.5, 256)
    found = distance_bounds(counts.inside(left), counts.inside(~left), "decisions")
    exact = abs(scores[left].mean() - scores[~left].mean())
    assert (found.low, found.high) == (pytest.approx(exact), pytest.approx(exact))
    assert score_kind(scores) == "decisions"
    assert score_kind(scores[:1]) == "constant"
    assert score_kind(scores / 2) == "two_values"


def test_squares_without_chance_of_random_rows_lie_within_fine_bounds() -> None:
    """Signed squares, of small and of unbalanced groups: chance is the same as that of scores."""
    rng = np.random.default_rng(0)
    for draw in range(400):
        count = int(rng.integers(60, 400))
        left = rng.random(count) < rng.uniform(0.1, 0.5)
        fold = np.arange(count) % int(rng.integers(1, 6))
        positive = rng.random(count) < 0.5
        scores = np.clip(rng.random(count) + 0.3 * left * (draw % 2), 0, 1)
        sides = FoldSides(
            left[None].astype(float), ~left[None] + 0.0, fold, labels=positive.astype(np.int64)
        )
        distances = squared_distances(scores, sides, np.ones((1, count)))
        square = corrected_squares(distances, sides.chance(scores), sides)[0]
        counts = counted(scores, fold, positive, 256)
        bounds = square_bounds(counts, CountedSides(left, ~left), "many")
        assert bounds.low - 1e-12 <= square <= bounds.high + 1e-12
