"""Distances on the line against SciPy and against distribution functions counted score by score."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import Case, Floats, cases, eighths, proven
from scipy import stats

from metrifair import AuditOptions, audit, unfairness
from metrifair.metrics import (
    cramer_distance,
    kolmogorov_distance,
    lp_distance,
    total_variation,
    wasserstein_distance,
)

closely = settings(proven, max_examples=60)
plain_or_weighted = cases() | cases(weighted=True)


def to_rounding(expected: float, scale: float) -> object:
    """Equal up to 1e-10 of the scale."""
    return pytest.approx(expected, rel=0, abs=1e-10 * scale)


@closely
@given(cases())
def test_kolmogorov_is_scipys_statistic(case: Case) -> None:
    with warnings.catch_warnings():
        # SciPy's p-value divides by zero for tiny samples
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = stats.ks_2samp(case.u, case.v, method="asymp").statistic
    assert kolmogorov_distance(case.u, case.v) == to_rounding(expected, 1)


@closely
@given(plain_or_weighted)
def test_kolmogorov_is_the_largest_difference_counted_by_hand(case: Case) -> None:
    found = kolmogorov_distance(case.u, case.v, **case.weights)
    assert found == to_rounding(oracles.kolmogorov(*case), 1)


@pytest.mark.parametrize(
    ("u", "v", "expected"),
    [
        pytest.param([1, 1, 1], [1, 1], 0.0, id="one value"),
        pytest.param([0, 0, 1, 1], [0, 1, 1, 1], 0.25, id="decisions"),
        pytest.param([0, 1], [1, 2], 0.5, id="one shared value"),
        pytest.param([5], [5], 0.0, id="one score each"),
        pytest.param([5], [6], 1.0, id="two points"),
    ],
)
def test_only_the_last_of_equal_scores_counts_for_kolmogorov(
    u: list[int], v: list[int], expected: float
) -> None:
    assert kolmogorov_distance(u, v) == kolmogorov_distance(v, u) == expected


@closely
@given(plain_or_weighted)
def test_wasserstein_is_scipys(case: Case) -> None:
    found = wasserstein_distance(case.u, case.v, **case.weights)
    assert found == to_rounding(stats.wasserstein_distance(*case), case.extent)


@closely
@given(plain_or_weighted)
def test_cramer_is_the_area_of_the_squared_difference(case: Case) -> None:
    found = cramer_distance(case.u, case.v, **case.weights)
    assert found == to_rounding(oracles.integral(*case, p=2), case.extent)
    assert found == to_rounding(stats.energy_distance(*case) ** 2 / 2, case.extent)


@closely
@given(plain_or_weighted, st.sampled_from([1.0, 1.5, 2.0, 3.0, 7]))
def test_lp_is_the_norm_of_the_difference(case: Case, p: float) -> None:
    found = lp_distance(case.u, case.v, p=p, **case.weights)
    assert found == to_rounding(oracles.lp(*case, p=p), case.extent ** (1 / p))


@closely
@given(plain_or_weighted)
def test_lp_of_one_is_wasserstein_and_of_two_the_root_of_cramer(case: Case) -> None:
    found = [lp_distance(case.u, case.v, p=p, **case.weights) for p in (1, 2)]
    assert found[0] == to_rounding(
        wasserstein_distance(case.u, case.v, **case.weights), case.extent
    )
    assert found[1] == to_rounding(
        cramer_distance(case.u, case.v, **case.weights) ** 0.5, case.extent**0.5
    )


@pytest.mark.parametrize(("dtype", "p"), [(torch.float64, 200.0), (torch.float32, 25.0)], ids=str)
def test_lp_of_a_small_difference_does_not_vanish_for_large_p(dtype: torch.dtype, p: float) -> None:
    u, v = torch.zeros(100, dtype=dtype), torch.zeros(100, dtype=dtype)
    u[0] = 1.0  # |F0 - F1| = 0.01 on [0, 1]: that is the norm, for every p
    assert lp_distance(u, v, p=p).item() == pytest.approx(0.01, rel=1e-4)


# --- total variation
# --------------------------------------------------------------------------------------------


@closely
@given(plain_or_weighted)
def test_total_variation_is_counted_atom_by_atom(case: Case) -> None:
    found = total_variation(case.u, case.v, **case.weights)
    assert found == to_rounding(oracles.total_variation(*case), 1)


def test_total_variation_of_continuous_scores_is_one_whatever_they_are() -> None:
    u = np.linspace(0, 1, 100)
    assert total_variation(u, u + 1e-9) == pytest.approx(1.0)


def test_disjoint_samples_differ_by_exactly_one_and_equal_ones_by_zero() -> None:
    generator = np.random.default_rng(0)
    options = {"metrics": ["total_variation"], "options": AuditOptions(resamples=0, permutations=0)}
    for n, m in (
        (1, 1),
        (3, 10),
        (6, 7),
        (10, 49),
        (29, 30),
        (45, 45),
        *((size, 7) for size in range(11, 20)),
    ):
        u, v = generator.permutation(n) * 1.0, generator.permutation(m) + 0.5
        scores, groups = np.concatenate([u, v]), np.repeat(["a", "b"], (n, m))
        weights = {"u_weights": generator.random(n) + 0.1, "v_weights": generator.random(m) + 0.1}
        left, right = torch.tensor(u, requires_grad=True), torch.tensor(v)
        assert {
            total_variation(u, v),
            total_variation(u, v, **weights),
            total_variation(left, right).item(),
            total_variation(left.float(), right.float()).item(),
            total_variation(left, right + 1000, bins=2).item(),
            unfairness(None, scores, sensitive_features=groups, metric="total_variation"),
            *(
                finding.value
                for finding in audit(None, scores, sensitive_features=groups, **options).findings
            ),
        } == {1.0}
        assert total_variation(v, v[::-1]) == 0


@closely
@given(eighths(most=9), eighths(most=9), st.integers(2, 7))
def test_binned_variation_is_counted_bin_by_bin(u: Floats, v: Floats, bins: int) -> None:
    expected = oracles.binned_variation(u.tolist(), v.tolist(), bins)
    assert total_variation(u, v, bins=bins) == to_rounding(float(expected), 1)


@closely
@given(cases(weighted=True, scales=(1.0,)), st.integers(2, 5))
def test_weights_are_repetition_in_bins(case: Case, bins: int) -> None:
    u, v = np.repeat(case.u, case.a.astype(int)), np.repeat(case.v, case.b.astype(int))
    found = total_variation(case.u, case.v, bins=bins, **case.weights)
    assert found == to_rounding(float(oracles.binned_variation(u.tolist(), v.tolist(), bins)), 1)


@closely
@given(eighths(most=9), eighths(most=9), st.integers(2, 7))
def test_merging_atoms_into_bins_never_adds_variation(u: Floats, v: Floats, bins: int) -> None:
    assert total_variation(u, v, bins=bins) <= total_variation(u, v) + 1e-12


def test_as_many_bins_as_equally_likely_atoms_lose_nothing() -> None:
    u, v = [0, 0, 0, 1, 2, 3], [0, 1, 2, 3, 3, 3]
    assert oracles.binned_variation(u, v, 6) == Fraction(1, 3)
    assert (
        total_variation(u, v, bins=6)
        == pytest.approx(total_variation(u, v))
        == pytest.approx(1 / 3)
    )


# --- single precision
# -------------------------------------------------------------------------------------------

IN_SINGLE = [
    (kolmogorov_distance, oracles.kolmogorov, 1e-6),
    (wasserstein_distance, oracles.integral, 1e-6),
    (cramer_distance, lambda u, v: oracles.integral(u, v, p=2), 1e-6),
    (lp_distance, oracles.lp, 1e-6),
    (total_variation, oracles.total_variation, 1e-6),
]


@pytest.mark.parametrize(
    ("function", "oracle", "tolerance"), IN_SINGLE, ids=lambda x: getattr(x, "__name__", "")
)
@pytest.mark.parametrize("seed", range(3))
def test_single_precision_at_an_offset_of_a_thousand_keeps_its_digits(
    function, oracle, tolerance, seed: int
) -> None:
    draws = np.random.default_rng(seed)
    u, v = (
        (1000 + draws.normal(size=200)).astype(np.float32),
        (1000.2 + draws.normal(size=150)).astype(np.float32),
    )
    found = function(torch.tensor(u), torch.tensor(v))
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(
        oracle(u.astype(np.float64), v.astype(np.float64)), abs=tolerance
    )
