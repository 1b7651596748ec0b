"""Gaps in out-of-fold scores: distances against SciPy on repeated rows, chance against
simulation.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from tests.seams.figures import (
    FEWEST_IN_FOLD,
    DrawnShares,
    FoldSides,
    corrected_squares,
    squared_distances,
)


def two_groups(
    group: np.ndarray, fold: np.ndarray, clusters: np.ndarray | None = None
) -> FoldSides:
    return FoldSides(
        (group[None] == 0).astype(float), (group[None] == 1).astype(float), fold, clusters
    )


def squared_ks(scores: np.ndarray, group: np.ndarray, times: np.ndarray) -> float:
    """SciPy's statistic, squared, of rows that are there several times."""
    left, right = (np.repeat(scores[group == side], times[group == side]) for side in (0, 1))
    return float(ks_2samp(left, right, method="asymp").statistic ** 2)


@given(seed=st.integers(0, 10_000), values=st.sampled_from([2, 5, 1_000]))
def test_distances_are_those_of_repeated_rows(seed: int, values: int) -> None:
    """With ties and without, pooled and within three folds, for weights that are counts."""
    draw = np.random.default_rng(seed)
    group = np.repeat([0, 1], [20, 16])
    fold = np.concatenate([np.arange(20) % 3, np.arange(16) % 3])
    scores = draw.integers(0, values, 36) / values
    times = draw.integers(0, 4, (2, 36))
    times[:, [0, 1, 2, 20, 21, 22]] = 1  # both sides have rows in every fold
    found = squared_distances(scores, two_groups(group, fold), times.astype(float))
    for place, counts in enumerate(times):
        assert found.pooled[0, place] == pytest.approx(squared_ks(scores, group, counts), abs=1e-12)
        for part in range(3):
            inside = fold == part
            expected = squared_ks(scores[inside], group[inside], counts[inside])
            assert found.within[0, place, part] == pytest.approx(expected, abs=1e-12)


def test_a_fold_without_weight_on_one_side_has_no_distance_and_others_keep_theirs() -> None:
    group, fold = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    weights = np.array([[1.0, 0.0, 1.0, 1.0]])
    found = squared_distances(np.array([0.1, 0.2, 0.3, 0.4]), two_groups(group, fold), weights)
    assert np.isnan(found.within[0, 0, 0])
    assert found.within[0, 0, 1] == 1.0


@pytest.mark.parametrize("per_cluster", [1, 4])
def test_chance_is_the_mean_squared_distance_of_equal_distributions(per_cluster: int) -> None:
    """Rows of one cluster have one score: their square is that of one row with their weights."""
    draw = np.random.default_rng(5)
    units = np.arange(600) // per_cluster
    group = (units % 3 == 0).astype(int)
    sides = two_groups(group, np.zeros(600, dtype=np.int64), units)
    simulated = [
        squared_distances(draw.random(units.max() + 1)[units], sides, np.ones((1, 600))).pooled[
            0, 0
        ]
        for _ in range(2_000)
    ]
    # the relative standard error is about 0.02
    scores = draw.random(units.max() + 1)[units]
    assert sides.chance(scores).pooled[0, 0] == pytest.approx(np.mean(simulated), rel=0.1)


@pytest.mark.parametrize(("left", "right"), [(10, 10), (40, 40), (8, 60), (20, 200)])
def test_chance_is_right_for_few_rows(left: int, right: int) -> None:
    """A bridge without an allowance for few rows would be 7 to 23 % too much."""
    draw = np.random.default_rng(7)
    group = np.repeat([0, 1], [left, right])
    signs = np.where(group == 0, 1 / left, -1 / right)
    shuffled = draw.permuted(np.tile(signs, (8_000, 1)), axis=1)
    simulated = np.square(np.abs(shuffled.cumsum(axis=1)).max(axis=1)).mean()
    sides = two_groups(group, np.zeros(left + right, dtype=np.int64))
    chance = sides.chance(draw.random(left + right)).pooled[0, 0]
    assert chance == pytest.approx(simulated, rel=0.05)


@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_folds_with_equal_shares_of_labels_differ_less_by_chance(spread: float) -> None:
    """Scores are the label and normal noise; groups are independent of both. Each fold has the
    same labels in both groups, all rows do not.
    """
    draw = np.random.default_rng(12)
    once = np.ones((1, 800))
    within, pooled, expected = [], [], []
    for _ in range(150):
        group, label = np.arange(800) % 2, draw.integers(0, 2, 800)
        fold = np.empty(800, dtype=np.int64)
        for cell in range(4):
            rows = np.flatnonzero(2 * group + label == cell)
            fold[draw.permutation(rows)] = (np.arange(len(rows)) + cell) % 5
        scores = label + spread * draw.normal(size=800)
        sides = replace(two_groups(group, fold), labels=label)
        found = squared_distances(scores, sides, once)
        pooled.append(found.pooled[0, 0])
        within.append(found.within[0, 0].mean())
        expected.append(sides.chance(scores).within[0, 0].mean())
    drawn = two_groups(group, fold).chance(scores)
    assert np.mean(expected) == pytest.approx(np.mean(within), rel=0.2)
    assert np.mean(pooled) == pytest.approx(drawn.pooled[0, 0], rel=0.25)
    share = np.mean(expected) / drawn.within[0, 0].mean()
    assert share < 0.7 if spread < 1 else share > 0.9


def test_chance_of_weights_is_that_of_shares() -> None:
    """Two rows of weight 3 and 1 have shares of 3/4 and 1/4."""
    sides = FoldSides(
        np.array([[3.0, 1.0, 0.0]]), np.array([[0.0, 0.0, 2.0]]), np.zeros(3, dtype=np.int64)
    )
    assert sides.shares_squared().pooled[0, 0] == pytest.approx(9 / 16 + 1 / 16 + 1)
    doubled = sides.shares_squared(np.array([[1.0, 3.0, 1.0]]))
    assert doubled.pooled[0, 0] == pytest.approx(1 / 4 + 1 / 4 + 1)


def test_corrected_squares_of_equal_groups_are_zero_on_average_and_of_unequal_ones_are_not() -> (
    None
):
    draw = np.random.default_rng(1)
    group, fold = np.arange(800) % 2, np.arange(800) // 2 % 5
    sides, once = two_groups(group, fold), np.ones((1, 800))

    def square(shift: float) -> float:
        scores = draw.normal(size=800) + shift * group
        return float(
            corrected_squares(squared_distances(scores, sides, once), sides.chance(scores), sides)[
                0
            ]
        )

    equal = np.array([square(0.0) for _ in range(400)])
    chance = float(sides.chance(draw.random(800)).pooled[0, 0])
    assert abs(equal.mean()) < 0.25 * chance
    # 2 Phi(1/2) - 1; a real gap stays overstated a little.
    assert np.mean([square(1.0) for _ in range(50)]) == pytest.approx(0.383**2, abs=0.02)


def test_distances_within_folds_need_enough_rows_on_each_side() -> None:
    fold = np.arange(40) % 4
    enough, few = (np.repeat([0, 1], counts) for counts in ([20, 20], [20, 20]))
    few[20 + np.flatnonzero(fold[20:] == 0)[: 5 - FEWEST_IN_FOLD + 1]] = 2
    assert two_groups(enough, fold).has_within.tolist() == [True]
    assert two_groups(few, fold).has_within.tolist() == [False]


def test_the_worst_comparison_counts() -> None:
    draw = np.random.default_rng(2)
    group, fold = np.arange(600) % 3, np.arange(600) // 3 % 5
    scores = draw.random(600) + 0.4 * (group == 2)
    alone = two_groups(np.where(group == 2, 1, np.where(group == 0, 0, 2)), fold)
    masks = [(group == place).astype(float) for place in range(3)]
    several = FoldSides(np.stack([masks[0], masks[0]]), np.stack([masks[1], masks[2]]), fold)
    once = np.ones((1, 600))
    found = [
        corrected_squares(squared_distances(scores, sides, once), sides.chance(scores), sides)[0]
        for sides in (alone, several)
    ]
    assert found[1] == pytest.approx(found[0], rel=1e-12)


def test_pooled_and_within_are_averaged_as_by_hand() -> None:
    """Eight rows of each group in two folds, whose distances are read from a drawing.

    Pooled: left scores 0 to 7, right scores 4 to 11, so D = 4 / 8 and v = pi^2 / 12 x (1/8 + 1/8).
    Fold 0 has left 0, 2, 4, 6 and right 4, 6, 8, 10, so D = 2 / 4; fold 1 the same, shifted by 1.
    """
    scores = np.array([*range(8), *range(4, 12)], dtype=float)
    group = np.repeat([0, 1], 8)
    fold = np.array([0, 1] * 8)
    sides = two_groups(group, fold)
    once = np.ones((1, 16))
    distances = squared_distances(scores, sides, once)
    assert distances.pooled[0, 0] == pytest.approx(1 / 4)
    assert distances.within[0, 0].tolist() == pytest.approx([1 / 4, 1 / 4])

    def mean_square(rows: int) -> float:
        """By chance, with so many rows on each side."""
        share = 2 / rows
        return np.pi**2 / 12 * share / (1 + 0.22 * np.sqrt(share)) ** 2

    pooled = 1 / 4 - mean_square(8)
    # four rows on a side are too few for distances within folds
    found = corrected_squares(distances, sides.chance(scores), sides)
    assert found[0] == pytest.approx(pooled)
    repeated = two_groups(np.tile(group, 2), np.tile(fold, 2))
    distances = squared_distances(np.tile(scores, 2), repeated, np.ones((1, 32)))
    found = corrected_squares(distances, repeated.chance(scores), repeated)
    assert found[0] == pytest.approx(1 / 4 - (mean_square(16) + mean_square(8)) / 2)
    resample = corrected_squares(distances, repeated.chance(scores).doubled(), repeated)
    assert resample[0] == pytest.approx(1 / 4 - (mean_square(16) + mean_square(8)))


def test_distances_within_folds_are_weighted_by_rows() -> None:
    """Fold 0 has 30 rows and a distance of 1, fold 1 has 10 and none."""
    group = np.tile([0, 1], 20)
    fold = np.repeat([0, 1], [30, 10])
    scores = np.where(fold == 0, group.astype(float), np.repeat(np.arange(20.0), 2))
    sides = two_groups(group, fold)
    zero = sides.mean_squares(sides.shares_squared(), np.zeros(1))
    found = squared_distances(scores, sides, np.ones((1, 40)))
    pooled = found.pooled[0, 0]
    assert found.within[0, 0].tolist() == pytest.approx([1.0, 0.0])
    squares = corrected_squares(found, zero, sides)
    assert squares[0] == pytest.approx((pooled + 0.75) / 2)


def test_chance_of_decisions_is_that_of_shares_of_two_values() -> None:
    """The mean squared difference of two shares is p (1 - p) (1 / n0 + 1 / n1)."""
    draw = np.random.default_rng(6)
    group = np.repeat([0, 1], [60, 40])
    sides = two_groups(group, np.zeros(100, dtype=np.int64))
    decisions = draw.permutation(np.repeat([0.0, 1.0], [70, 30]))
    expected = sides.chance(decisions).pooled[0, 0]
    assert expected == pytest.approx(0.3 * 0.7 * (1 / 60 + 1 / 40))
    simulated = [
        squared_distances(draw.permutation(decisions), sides, np.ones((1, 100))).pooled[0, 0]
        for _ in range(2_000)
    ]
    assert np.mean(simulated) == pytest.approx(expected, rel=0.12)
    assert sides.bridge_factors(np.zeros(100))[0] == 0.0


@given(seed=st.integers(0, 10_000), values=st.sampled_from([2, 9, 1_000]))
def test_many_draws_in_single_precision_are_those_of_one_at_a_time(seed: int, values: int) -> None:
    """Rows of three groups in folds of unequal size, weighted, some of no weight."""
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(40, 300))
    group = draw.integers(0, 3, rows)
    fold = draw.integers(0, 4, rows)
    fold[:4] = range(4)
    scores = draw.integers(0, values, rows) / values
    own = draw.random(rows)
    sides = FoldSides(own * (group[None] == 0), own * (group[None] == 1), fold)
    weights = draw.integers(0, 3, (7, rows)).astype(np.float64)
    found = DrawnShares(sides, 0, weights.astype(np.float32)).squared_distances(scores)
    for place, one in enumerate(weights):
        alone = squared_distances(scores, sides, one[None])
        assert found.pooled[0, place] == pytest.approx(alone.pooled[0, 0], abs=1e-5, nan_ok=True)
        np.testing.assert_allclose(found.within[0, place], alone.within[0, 0], atol=1e-5)
