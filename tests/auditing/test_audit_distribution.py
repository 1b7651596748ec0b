"""Two samples against the metrics, for every metric; bins keep distribution functions;
resamples keep counts.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twosamples import two_samples

from metrifair.metrics import distances, energy_distance, mmd_squared, witness
from tests.seams.auditing import (
    Rows,
    TwoSamples,
    bin_means,
    count_cells,
    count_rows,
    largest_gap,
    merge_bins,
    merge_scores,
    plug_in_distances,
    representative_rows,
    unbiased_distance,
    witness_utility,
)
from tests.seams.auditing import two_sample_bins as bins
from tests.seams.metrics import METRICS

SCORES = st.lists(st.integers(-3, 8).map(lambda k: k / 4), min_size=1, max_size=12)
WEIGHTED = st.lists(st.tuples(st.integers(0, 6), st.floats(0.1, 3.0)), min_size=1, max_size=12)


def both(u: list[float], v: list[float], weights: list[float] | None = None) -> TwoSamples:
    on_left = np.arange(len(u) + len(v)) < len(u)
    return two_samples(
        np.array([*u, *v], dtype=float), on_left, None if weights is None else np.array(weights)
    )


@settings(max_examples=60, deadline=None)
@given(u=SCORES, v=SCORES)
def test_every_metric_of_two_samples_is_that_of_the_samples(u: list[float], v: list[float]) -> None:
    found = plug_in_distances(*both(u, v), list(METRICS))
    assert {name: float(value) for name, value in found.items()} == pytest.approx(
        distances(u, v, list(METRICS)), abs=1e-12
    )


@settings(max_examples=40, deadline=None)
@given(u=WEIGHTED, v=WEIGHTED)
def test_weights_count_as_in_the_metrics(
    u: list[tuple[int, float]], v: list[tuple[int, float]]
) -> None:
    (x, a), (y, b) = (tuple(zip(*side, strict=True)) for side in (u, v))
    found = plug_in_distances(*both(list(x), list(y), [*a, *b]), list(METRICS))
    expected = distances(x, y, list(METRICS), u_weights=a, v_weights=b)
    assert {name: float(value) for name, value in found.items()} == pytest.approx(
        expected, abs=1e-12
    )


@settings(max_examples=40, deadline=None)
@given(u=WEIGHTED, v=WEIGHTED)
def test_the_utility_of_two_samples_is_the_witness_of_the_samples(
    u: list[tuple[int, float]], v: list[tuple[int, float]]
) -> None:
    (x, a), (y, b) = (tuple(zip(*side, strict=True)) for side in (u, v))
    found = both(list(x), list(y), [*a, *b])
    for metric in METRICS:
        ours, theirs = (
            witness_utility(metric, found),
            witness(x, y, metric=metric, u_weights=a, v_weights=b),
        )
        means = [np.average(ours(side), weights=weights) for side, weights in ((x, a), (y, b))]
        assert ours.expected == pytest.approx(means, abs=1e-9)
        # Rounding may decide between utilities that are as good; who gains, only between two equal
        # gaps of Kolmogorov.
        gain = abs if metric == "kolmogorov" else float
        assert gain(np.subtract(*ours.expected)) == pytest.approx(
            gain(np.subtract(*theirs.expected)), abs=1e-7
        )


@settings(max_examples=40, deadline=None)
@given(u=SCORES, v=SCORES)
def test_unbiased_values_are_the_u_statistics(u: list[float], v: list[float]) -> None:
    found = both(u, v)
    sides = [(found.values, found.left), (found.values, found.right)]
    for metric, direct in (("energy", energy_distance), ("mmd", mmd_squared)):
        value = float(plug_in_distances(*found, [metric])[metric])
        if min(len(u), len(v)) < 2:
            assert unbiased_distance(metric, sides, value) is None
        else:
            expected = direct(u, v, unbiased=True)
            assert unbiased_distance(metric, sides, value) == pytest.approx(expected, abs=1e-12)
    assert unbiased_distance("kolmogorov", sides, 0.3) is None


def test_many_resamples_at_once_are_each_what_they_are_alone() -> None:
    generator = np.random.default_rng(0)
    values, left, right = np.sort(generator.normal(size=9)), *generator.integers(1, 5, (2, 4, 9))
    together = plug_in_distances(values, left, right, list(METRICS))
    for place in range(4):
        alone = plug_in_distances(values, left[place], right[place], list(METRICS))
        for name, value in together.items():
            assert value[place] == pytest.approx(float(alone[name]), abs=1e-14)


@pytest.mark.parametrize("most", [2, 7, 50])
def test_bins_keep_the_distribution_functions_at_their_ends(most: int) -> None:
    generator = np.random.default_rng(1)
    found = both(
        generator.normal(size=80).round(1).tolist(),
        generator.normal(0.5, size=40).round(1).tolist(),
    )
    few = merge_bins(found, bins(found, most))
    assert len(few.values) <= most
    at = np.searchsorted(found.values, few.values)
    for side in ("left", "right"):
        exact = np.cumsum(getattr(found, side))[at]
        np.testing.assert_array_equal(np.cumsum(getattr(few, side)), exact)
    share = few.left / few.left.sum() + few.right / few.right.sum()
    largest = (found.left / found.left.sum() + found.right / found.right.sum()).max()
    assert share.max() <= 2 / (most // 2 + 1) + 2 * largest


def test_few_scores_stay_as_they_are_and_rows_go_with_their_bins() -> None:
    found = both([1.0, 2.0, 3.0], [2.0, 4.0], [1.0, 2.0, 3.0, 4.0, 5.0])
    rows = Rows.single(
        np.array([0, 1, 2, 3]), np.array([1.0, 2.0, 3.0, 0.0]), np.array([0.0, 4.0, 0.0, 5.0])
    )
    same, same_rows = merge_scores(found, rows, 4)
    assert all(np.array_equal(a, b) for a, b in zip(same, found, strict=True))
    assert same_rows is not None
    assert np.array_equal(same_rows.place, rows.place)
    few, few_rows = merge_scores(found, rows, 2)
    assert few_rows is not None
    for side, share in zip((few.left, few.right), few_rows[1:3], strict=True):
        np.testing.assert_allclose(
            np.bincount(few_rows.place, share, len(few.values)), side / side.sum()
        )


def test_the_largest_gap_is_the_kolmogorov_distance() -> None:
    generator = np.random.default_rng(2)
    u, v = generator.normal(size=50).round(1), generator.normal(0.3, size=70).round(1)
    gap = largest_gap(both(u.tolist(), v.tolist()))
    assert gap.shares == ((u <= gap.score).mean(), (v <= gap.score).mean())
    assert abs(gap.shares[0] - gap.shares[1]) == pytest.approx(
        distances(u, v, ["kolmogorov"])["kolmogorov"]
    )


def test_bins_hold_the_mean_scores_and_share_out_a_long_tail() -> None:
    """Distances that are integrals are dominated by a few scores: they need bins of their own,
    at their means.
    """
    generator = np.random.default_rng(5)
    scores = np.exp(4 * generator.standard_normal(20_000)) * np.repeat([1.0, 1.2], 10_000)
    found = two_samples(scores, np.arange(20_000) < 10_000)
    bin_index = bins(found, 500)
    means, few = bin_means(found, bin_index), merge_bins(found, bin_index)
    assert (np.diff(means) > 0).all()
    for fine, coarse in zip(found[1:], few[1:], strict=True):
        assert coarse @ means / coarse.sum() == pytest.approx(
            fine @ found.values / fine.sum(), rel=0.02
        )
    exact = plug_in_distances(*found, ["wasserstein", "energy"])
    binned = plug_in_distances(means, few.left, few.right, ["wasserstein", "energy"])
    for metric, value in exact.items():
        assert float(binned[metric]) == pytest.approx(float(value), rel=0.05), metric


def test_no_distance_is_beyond_its_largest_value() -> None:
    """Shares that are added up exceed 1 in their last digits; counts do not."""
    for size in range(3, 200):
        found = TwoSamples(
            np.arange(2.0 * size), np.repeat([1.0, 0.0], size), np.repeat([0.0, 1.0], size)
        )
        assert plug_in_distances(*found, ["kolmogorov"])["kolmogorov"] == 1.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "chosen", [[0], [1, 4], [0, 1, 2, 3, 4, 5], list(range(90)), list(range(200))]
)
def test_rows_in_memory_and_cells_of_a_file_are_one_container(
    chosen: list[int], weighted: bool
) -> None:
    """The same rows, held one by one or counted by cell: some cells, most of them, and all."""
    generator = np.random.default_rng(7)
    score, cell = generator.integers(0, 9, 3000) / 8, generator.integers(0, 200, 3000)
    weight = generator.integers(1, 9, 3000) / 8 if weighted else None
    rows, values = count_rows(score, weight), np.arange(9) / 8
    table = np.zeros((9, 200), dtype=float if weighted else int)
    np.add.at(table, ((8 * score).astype(int), cell), 1 if weight is None else weight)
    cells = count_cells(values, table)
    assert (rows.weighted, cells.weighted) == (weighted, weighted)
    own = np.flatnonzero(np.isin(cell, chosen))
    np.testing.assert_array_equal(rows.at(own), cells.at(np.array(chosen)))
    np.testing.assert_array_equal(rows.at(own), table[:, chosen].sum(1))


def test_stand_ins_are_in_proportion() -> None:
    table = np.random.default_rng(8).integers(0, 5000, (40, 6))
    table[:, 2] = 0
    score, cell = representative_rows(count_cells(np.arange(40.0), table), 20_000)
    assert len(score) == pytest.approx(20_000, rel=0.02)
    share = np.zeros(table.shape)
    np.add.at(share, (score.astype(int), cell), 1)
    assert np.abs(share - table * 20_000 / table.sum()).max() <= 1
    few, _ = representative_rows(count_cells(np.arange(2.0), np.array([[1, 2], [0, 3]])), 100)
    assert few.tolist() == [0, 0, 0, 1, 1, 1]
