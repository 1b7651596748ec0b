"""Permutations and normal numbers that many groups share: each group has the same test as alone."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
from scipy import stats

from metrifair import AuditOptions, audit
from tests.seams.auditing import (
    MOST_PAIRED,
    AllGroups,
    SharedPermutations,
    TwoSamples,
    bootstrap,
    count_rows,
    permutation_p_values,
    shared_normals,
)
from tests.seams.auditing import permutations as module

METRICS = ["kolmogorov", "wasserstein", "energy"]


def drawn_counts(counts: np.ndarray, sizes: list[int], permutations: int) -> Iterator[np.ndarray]:
    shared, generator = SharedPermutations(counts), np.random.default_rng(1)
    for size in sizes:
        yield shared.left_counts(size, slice(0, permutations), permutations, generator)


def test_rows_are_drawn_without_replacement_and_groups_take_them_from_one_order() -> None:
    """Hypergeometric counts, and a larger group has the rows of a smaller one."""
    counts = np.array([3.0, 0.0, 40.0, 7.0])
    small, large, everyone = drawn_counts(counts, [6, 20, 50], 4_000)
    assert (small.sum(1) == 6).all()
    assert (large.sum(1) == 20).all()
    assert (large >= small).all()
    assert (everyone == counts).all()
    for drawn, size in ((small, 6), (large, 20)):
        for place in (0, 2, 3):
            expected = (
                stats.hypergeom(50, int(counts[place]), size).pmf(np.arange(size + 1)) * 4_000
            )
            observed = np.bincount(drawn[:, place], minlength=size + 1)
            likely = expected >= 5
            pooled = [np.append(some[likely], some[~likely].sum()) for some in (observed, expected)]
            pooled = [some if pooled[1][-1] > 1 else some[:-1] for some in pooled]
            squares = ((pooled[0] - pooled[1]) ** 2 / pooled[1]).sum()
            assert stats.chi2(len(pooled[0]) - 1).sf(squares) > 1e-4, (size, place)


def test_blocks_of_permutations_are_parts_of_all() -> None:
    shared, generator = SharedPermutations(np.array([30.0, 30.0])), np.random.default_rng(2)
    blocks = [
        shared.left_counts(9, slice(start, start + 40), 120, generator) for start in (0, 40, 80)
    ]
    again = shared.left_counts(9, slice(0, 120), 120, generator)
    assert np.array_equal(np.concatenate(blocks), again)


@pytest.mark.parametrize("most", [0, 2**22])
def test_groups_of_one_size_have_the_p_values_that_each_has_alone(most: int) -> None:
    """A group whose test ends early comes first, so that a later one draws on; ``most`` 0 draws
    groups one by one.
    """
    rng = np.random.default_rng(3)
    scores, codes = rng.random(6_000), np.repeat(np.arange(40), 150)
    scores[codes == 5] += 0.2
    scores[codes == 7] += 0.05
    everyone = AllGroups(count_rows(scores), np.arange(6_000), codes, 6_000)
    permuted = [everyone.against_rest(group, METRICS).permuted(64) for group in (3, 5, 7, 3)]
    with patch.object(module, "_MOST_ORDERED", most):
        generator = np.random.default_rng(4)
        together = [
            permutation_p_values(
                pair, METRICS, permutations=499, generator=generator, shared=shared
            )
            for pair, shared in permuted
        ]
        alone = [
            permutation_p_values(
                pair,
                METRICS,
                permutations=499,
                generator=np.random.default_rng(4),
                shared=SharedPermutations(pair.left + pair.right),
            )
            for pair, _ in permuted
        ]
    assert together == alone
    assert together[1] == dict.fromkeys(METRICS, 1 / 500)
    assert together[0]["energy"] > 0.1


def test_a_p_value_counts_every_permutation_once() -> None:
    """All distances are computed again, one by one, with SciPy."""
    rng = np.random.default_rng(11)
    scores = np.append(rng.random(60) + 0.13, rng.random(900)).round(1)
    values, place = np.unique(scores, return_inverse=True)
    pooled, left = (np.bincount(rows, minlength=len(values)) for rows in (place, place[:60]))
    shared, generator = SharedPermutations(pooled), np.random.default_rng(12)
    found = permutation_p_values(
        TwoSamples(values, left * 1.0, (pooled - left) * 1.0),
        ["wasserstein"],
        permutations=299,
        generator=generator,
        shared=shared,
    )
    counts = shared.left_counts(60, slice(0, 299), 299, generator)
    observed, *permuted = (
        stats.wasserstein_distance(values, values, some, pooled - some) for some in (left, *counts)
    )
    times = np.count_nonzero(np.array(permuted) >= observed * (1 - 1e-9))
    assert 3 <= times < 15  # too few to end early
    assert found == {"wasserstein": (1 + times) / 300}


def test_comparisons_with_shared_normals_have_the_intervals_of_these_normals() -> None:
    """The same numbers drawn by the generator give the same intervals; too many numbers are not
    kept.
    """
    rng = np.random.default_rng(7)
    options = {"confidence": 0.9, "resamples": 80}
    pair = TwoSamples(
        np.sort(rng.random(50)), rng.integers(1, 9, 50) * 1.0, rng.integers(1, 9, 50) * 1.0
    )
    normals = shared_normals(80, 50, np.random.default_rng(8))
    shared = bootstrap(
        pair, METRICS, generator=np.random.default_rng(9), normals=normals, **options
    )
    assert shared == bootstrap(pair, METRICS, generator=np.random.default_rng(8), **options)
    wider = np.concatenate([normals, rng.normal(size=(2, 80, 30))], -1)
    assert shared == bootstrap(
        pair, METRICS, generator=np.random.default_rng(9), normals=wider, **options
    )
    assert shared_normals(2**12, 2**9, rng) is None


def test_two_groups_with_the_same_rows_have_the_same_findings() -> None:
    """Groups that are copies of each other share every random number, if there are many groups."""
    rng = np.random.default_rng(10)
    groups = MOST_PAIRED + 2
    scores = rng.random((groups, 60))
    scores[1] = scores[0]
    found = audit(
        None,
        scores.ravel(),
        sensitive_features=np.repeat(np.arange(groups), 60).astype(str),
        options=AuditOptions(resamples=50, permutations=99),
        random_state=0,
    )
    by_group = {
        name: [one for one in found.findings if one.groups[0] == name] for name in ("0", "1")
    }
    for first, second in zip(*by_group.values(), strict=True):
        assert (first.interval, first.joint_interval, first.p_value) == (
            second.interval,
            second.joint_interval,
            second.p_value,
        )


def test_a_size_that_occurs_once_keeps_its_distances_only() -> None:
    """Groups of 100 different sizes: each keeps 3 x 999 distances (24 KB), not the permuted
    counts.
    """
    sizes = np.arange(50, 150)
    codes, generator = np.repeat(np.arange(len(sizes)), sizes), np.random.default_rng(0)
    scores = generator.random(len(codes))
    everyone = AllGroups(count_rows(scores), np.arange(len(codes)), codes, 1024)
    # shared orders
    everyone.against_rest(0, METRICS).permuted(64).shared.left_counts(
        1, slice(0, 1), 999, generator
    )
    tracemalloc.start()
    for group in range(len(sizes)):
        pair, shared = everyone.against_rest(group, METRICS).permuted(64)
        permutation_p_values(pair, METRICS, permutations=999, generator=generator, shared=shared)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept / len(sizes) < 35_000
