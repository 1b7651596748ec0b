"""Estimates by probabilities of groups, against sums over pairs, derivatives, resamples and
enumeration.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy import stats

from tests.seams.figures import (
    energy_estimate,
    merged_cells,
    overlaps_of_rows,
    rate_bounds,
    rate_estimate,
)

RANDOM = np.random.default_rng(8)
ROWS = 60
SCORES = np.round(RANDOM.uniform(size=ROWS), 1)  # with ties
SELECTED = (SCORES >= 0.5).astype(float)
LEFT = RANDOM.uniform(0.0, 1.0, ROWS)
RIGHT = 1 - LEFT


def energy(scores: np.ndarray, left: np.ndarray, right: np.ndarray) -> float:
    """By all pairs."""
    c = left / left.sum() - right / right.sum()
    return -sum(
        c[i] * c[j] * abs(scores[i] - scores[j]) for i in range(len(c)) for j in range(len(c))
    )


@pytest.mark.parametrize("right", [RIGHT, RIGHT - 0.2], ids=["probabilities", "amounts below 0"])
def test_the_energy_distance_is_the_sum_over_all_pairs(right: np.ndarray) -> None:
    assert energy_estimate(SCORES, LEFT, right).value == pytest.approx(
        energy(SCORES, LEFT, right), abs=1e-12
    )


FIGURES: dict[str, Callable[[np.ndarray], float]] = {
    "rate": lambda times: float(times * LEFT @ SELECTED / (times @ LEFT)),
    "ratio": lambda times: float(
        (times * LEFT @ SELECTED) / (times @ LEFT) / (times * RIGHT @ SELECTED) * (times @ RIGHT)
    ),
    "energy": lambda times: energy(SCORES, times * LEFT, times * RIGHT),
}
ESTIMATES = {
    "rate": rate_estimate(SELECTED, LEFT),
    "ratio": rate_estimate(SELECTED, LEFT).over(rate_estimate(SELECTED, RIGHT)),
    "energy": energy_estimate(SCORES, LEFT, RIGHT),
}


@pytest.mark.parametrize("figure", FIGURES)
def test_influences_are_derivatives_by_how_often_a_row_counts(figure: str) -> None:
    assert ESTIMATES[figure].value == pytest.approx(FIGURES[figure](np.ones(ROWS)), abs=1e-12)
    step = 1e-5
    for row in range(0, ROWS, 7):
        ends = [FIGURES[figure](1 + sign * step * (np.arange(ROWS) == row)) for sign in (1, -1)]
        assert ESTIMATES[figure].influence[row] == pytest.approx(
            (ends[0] - ends[1]) / (2 * step), abs=1e-7
        )


def test_the_bias_of_an_energy_distance_is_the_energy_of_single_influences() -> None:
    """That is to second order: the mean over rows that count once more or once less, whose
    first order cancels.
    """
    total = 0.0
    for row in range(ROWS):
        moved = np.zeros(ROWS)
        for side, sign in ((LEFT, 1), (RIGHT, -1)):
            share = side / side.sum()
            moved += sign * share[row] * ((np.arange(ROWS) == row) - share)
        total -= float(moved @ np.abs(SCORES[:, None] - SCORES) @ moved)
    assert ESTIMATES["energy"].bias == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("rows", [4, 10, 200])
def test_of_people_of_one_group_the_interval_of_half_is_that_of_student(rows: int) -> None:
    selected = np.tile([1.0, 0.0], rows // 2)
    found = rate_estimate(selected, np.ones(rows)).interval(0.9)
    expected = stats.t.interval(0.9, rows - 1, selected.mean(), stats.sem(selected))
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)


def test_overlaps_by_weights_are_those_of_repeated_rows() -> None:
    times = RANDOM.integers(1, 4, ROWS)
    probabilities = np.stack([LEFT, RIGHT], 1)
    probabilities[::9] = np.nan
    by_weights = overlaps_of_rows(probabilities, times.astype(float))
    repeated = overlaps_of_rows(np.repeat(probabilities, times, axis=0), None)
    np.testing.assert_allclose(by_weights, repeated, rtol=1e-12)


def extremes(members: int, selected: int, rows: int) -> tuple[int, int]:
    """The fewest and the most members that may be among the selected: by trying every number."""
    others = rows - members
    possible = [
        both
        for both in range(rows + 1)
        if both <= min(members, selected) and selected - both <= others
    ]
    return min(possible), max(possible)


def test_bounds_are_the_extremes_of_all_people_that_agree_with_cells() -> None:
    """Enumeration: in each cell every number of selected members that is possible, over all
    cells.
    """
    for seed in range(20):
        generator = np.random.default_rng(seed)
        cells = [(int(generator.integers(0, 61)), int(generator.integers(0, 61))) for _ in range(3)]
        if sum(members for members, _ in cells) == 0:
            continue
        ends = [extremes(members, selected, 60) for members, selected in cells]
        possible = [sum(both) for both in product(*(range(low, high + 1) for low, high in ends))]
        people = sum(members for members, _ in cells)
        probability = np.repeat([members / 60 for members, _ in cells], 60)
        chosen = np.concatenate([np.arange(60) < selected for _, selected in cells]).astype(float)
        found = rate_bounds(chosen, probability, np.ones(180), np.repeat(np.arange(3), 60))
        assert found.lowest.value == pytest.approx(min(possible) / people, abs=1e-12)
        assert found.highest.value == pytest.approx(max(possible) / people, abs=1e-12)
        assert found.cells == 3


def test_intervals_of_bounds_have_the_error_of_resamples() -> None:
    generator = np.random.default_rng(3)
    cells = generator.integers(0, 6, 1200)
    probability = 0.2 + 0.1 * cells + generator.uniform(-0.05, 0.05, 1200)
    selected = (generator.uniform(size=1200) < 0.35 + 0.05 * cells).astype(float)
    weight = generator.uniform(0.5, 2.0, 1200)
    found = rate_bounds(selected, probability, weight, cells)
    resampled = []
    for _ in range(400):
        rows = generator.integers(0, 1200, 1200)
        again = rate_bounds(selected[rows], probability[rows], weight[rows], cells[rows])
        resampled.append([again.lowest.value, again.highest.value])
    for estimate, spread in zip(found[:2], np.std(resampled, axis=0), strict=True):
        assert np.sqrt((estimate.influence**2).sum()) == pytest.approx(spread, rel=0.15)
    interval, spread = found.interval(0.95), 1.96 * np.std(resampled, axis=0)
    assert interval.low == pytest.approx(max(0, found.lowest.unbiased.value - spread[0]), abs=0.01)
    assert interval.high == pytest.approx(
        min(1, found.highest.unbiased.value + spread[1]), abs=0.01
    )


@pytest.mark.parametrize(("cells", "rate"), [(100, 0.5), (20, 0.5), (100, 0.3), (100, 0.02)])
def test_intervals_of_bounds_hold_where_noise_in_cells_brings_the_bounds_together(
    cells: int, rate: float
) -> None:
    """The selected are the group itself, or all others: in each cell the true rate is at its
    bound, 1 or 0.
    """
    generator = np.random.default_rng(5)
    cell, missed = np.repeat(np.arange(cells), 50), np.zeros(2)
    weight = generator.uniform(0.5, 2.0, len(cell))
    for _ in range(100):
        member = (generator.uniform(size=len(cell)) < rate).astype(float)
        for at, selected in enumerate((member, 1 - member)):
            found = rate_bounds(selected, np.full(len(cell), rate), weight, cell)
            interval = found.interval(0.95)
            missed[at] += interval.high < 1 if at == 0 else interval.low > 0
    assert missed.max() <= 7  # 2.5 are expected; the bounds themselves miss nearly always


def test_cells_of_few_rows_are_merged_with_neighbors_by_probability() -> None:
    generator = np.random.default_rng(1)
    for rows, kinds in ((1000, 1000), (1000, 37), (49, 3), (120, 2)):
        cells = generator.integers(0, kinds, rows)
        probability = generator.uniform(size=kinds)[cells]
        merged = merged_cells(cells, probability)
        sizes = np.bincount(merged)
        assert sizes.min() >= min(50, rows)
        assert len(sizes) == 1 or sizes.max() < 150 or kinds < 20
        for one in range(len(sizes) - 1):  # ascending, and no cell is cut
            assert probability[merged == one].max() <= probability[merged == one + 1].min()
        assert all(len(np.unique(merged[cells == kind])) <= 1 for kind in range(kinds))


def test_cells_of_single_rows_would_bound_nothing() -> None:
    """The fault that merging prevents: within single rows both bounds are the estimate itself."""
    generator = np.random.default_rng(2)
    member = generator.uniform(size=4000) < 0.5
    selected = np.where(
        member, generator.uniform(size=4000) < 0.6, generator.uniform(size=4000) < 0.2
    ).astype(float)
    found = rate_bounds(selected, np.full(4000, 0.5), np.ones(4000), np.arange(4000))
    assert found.lowest.value < 0.2 < 0.6 < found.highest.value
    both = np.maximum(0, selected + 0.5 - 1), np.minimum(selected, 0.5)
    assert both[0].sum() == both[1].sum()  # the point that is not a bound
