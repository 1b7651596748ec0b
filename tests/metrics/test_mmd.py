"""Squared MMD against pairs, for every kernel: values, gradients, weights, strata, bandwidths,
blocks.
"""

from __future__ import annotations

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import (
    KERNELS,
    SLOPES,
    Case,
    Floats,
    cases,
    coefficients_of,
    eighths,
    in_torch,
    pair_of,
    proven,
)
from torch import Tensor

from metrifair.errors import DataError, TooFewSamples
from metrifair.metrics import energy_distance, median_distance, mmd_squared
from tests.seams.metrics import mmd_between, quadratic

each_kernel = pytest.mark.parametrize("kernel", list(KERNELS))
each_estimate = pytest.mark.parametrize("unbiased", [False, True], ids=["plug-in", "unbiased"])
moderate = cases(least=2, scales=(1.0,)) | cases(least=2, weighted=True, scales=(1.0,))
lengths = st.sampled_from([1.0, 0.3, 20.0, [0.5, 2.0], (1, 1, 3)])
closely = settings(proven, max_examples=30)


def several(shape: dict, kernel: str, bandwidth: float | list[float]) -> object:
    """A kernel, or its slope, summed over the bandwidths."""
    each = [1.0] if kernel == "distance" else np.atleast_1d(bandwidth)
    return lambda far: sum(shape[kernel](far, length) for length in each)


@each_kernel
@each_estimate
@closely
@given(case=moderate, bandwidth=lengths)
def test_mmd_is_the_sum_over_pairs(
    kernel: str, unbiased: bool, case: Case, bandwidth: float
) -> None:
    found = mmd_squared(
        case.u, case.v, kernel=kernel, bandwidth=bandwidth, unbiased=unbiased, **case.weights
    )
    expected = oracles.quadratic(
        *case[:2], several(KERNELS, kernel, bandwidth), case.a, case.b, unbiased=unbiased
    )
    assert found == pytest.approx(expected, rel=0, abs=1e-10)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "inverse_multiquadric"])
@pytest.mark.parametrize("scale", [1e-150, 1e6, 1e12, 1e150])
@each_estimate
def test_mmd_is_the_sum_over_pairs_at_any_scale(kernel: str, scale: float, unbiased: bool) -> None:
    u, v = scale * np.array([0.0, 1.0, 1.0, 2.5]), scale * np.array([0.5, 1.0, 3.0])
    found = mmd_squared(u, v, kernel=kernel, unbiased=unbiased)
    expected = oracles.quadratic(u, v, several(KERNELS, kernel, 1.0), unbiased=unbiased)
    assert found == pytest.approx(expected, rel=0, abs=1e-10)


@each_kernel
@each_estimate
@closely
@given(case=moderate, bandwidth=lengths)
def test_the_gradient_under_ties_is_that_of_the_pairs(
    kernel: str, unbiased: bool, case: Case, bandwidth: float
) -> None:
    pair, moving = case.pair, in_torch(case.pair)
    z = moving.values.requires_grad_()
    value = mmd_between(moving, kernel=kernel, bandwidth=bandwidth, unbiased=unbiased)
    far = pair.values[:, None] - pair.values
    slope = several(SLOPES, kernel, bandwidth)(far)
    expected = 2 * (coefficients_of(pair, unbiased=unbiased) * slope).sum(-1)
    np.testing.assert_allclose(torch.autograd.grad(value, z)[0], expected, rtol=0, atol=1e-11)


@each_kernel
@each_estimate
def test_the_gradient_is_zero_when_all_scores_tie(kernel: str, unbiased: bool) -> None:
    u, v = torch.full((4,), 0.3, requires_grad=True), torch.full((3,), 0.3, requires_grad=True)
    # running sums, where the others have sign(0) = 0
    rounding = 1e-15 if kernel == "laplace" else 0.0
    for side in torch.autograd.grad(mmd_squared(u, v, kernel=kernel, unbiased=unbiased), (u, v)):
        assert side.abs().max() <= rounding


@each_kernel
@each_estimate
@proven
@given(data=st.data())
def test_strata_are_the_sum_over_pairs(kernel: str, unbiased: bool, data: st.DataObject) -> None:
    left, right = ((2, 3), (2, 2, 2)) if data.draw(st.booleans()) else ((4,), (3, 2))
    shares = [data.draw(st.integers(1, 5)) for _ in left + right]
    weights = np.repeat([p / n for p, n in zip(shares, left + right, strict=True)], left + right)
    n, m = sum(left), sum(right)
    u, v = data.draw(eighths(n, n)), data.draw(eighths(m, m))
    pair = pair_of(u, v, weights[:n], weights[n:], left=left, right=right)
    far = pair.values[:, None] - pair.values
    expected = (coefficients_of(pair, unbiased=unbiased) * KERNELS[kernel](far, 0.7)).sum()
    found = mmd_between(pair, kernel=kernel, bandwidth=0.7, unbiased=unbiased)
    assert found.item() == pytest.approx(expected, abs=1e-12)


# --- what the kernels have to do with each other
# ----------------------------------------------------------------


def anchored(anchor: float) -> object:
    """The kernel that the distance induces: (|z - anchor| + |z' - anchor| - |z - z'|) / 2."""
    return lambda a, b: (abs(a - anchor) + abs(b - anchor) - abs(a - b)) / 2


@each_estimate
@pytest.mark.parametrize("anchor", [0.0, -2.5])
@proven
@given(case=cases(least=2, scales=(1.0,)))
def test_the_energy_distance_is_twice_the_mmd_of_the_kernel_that_distance_induces(
    unbiased: bool, anchor: float, case: Case
) -> None:
    energy = energy_distance(case.u, case.v, unbiased=unbiased)
    for kernel in ("distance", anchored(anchor)):
        assert 2 * mmd_squared(case.u, case.v, kernel=kernel, unbiased=unbiased) == pytest.approx(
            energy, abs=1e-9
        )


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "inverse_multiquadric"])
@each_estimate
@proven
@given(u=eighths(least=2), v=eighths(least=2), factor=st.sampled_from([0.25, 3.0, 1e100]))
def test_scaling_scores_and_bandwidth_alike_changes_nothing(
    kernel: str, unbiased: bool, u: Floats, v: Floats, factor: float
) -> None:
    one, other = (
        mmd_squared(a * u, a * v, kernel=kernel, bandwidth=a, unbiased=unbiased)
        for a in (1.0, factor)
    )
    assert other == pytest.approx(one, abs=1e-10)


CALLABLES = {
    "gaussian": lambda a, b: np.exp(-((a - b) ** 2) / 2),
    "laplace": lambda a, b: np.exp(-abs(a - b)),
    "inverse_multiquadric": lambda a, b: (1 + (a - b) ** 2) ** -0.5,
}


@pytest.mark.parametrize("kernel", list(CALLABLES))
@each_estimate
@proven
@given(case=moderate)
def test_a_kernel_may_be_a_function(kernel: str, unbiased: bool, case: Case) -> None:
    found, named = (
        mmd_squared(case.u, case.v, kernel=kind, unbiased=unbiased, **case.weights)
        for kind in (CALLABLES[kernel], kernel)
    )
    assert found == pytest.approx(named, abs=1e-10)


def test_a_kernel_whose_diagonal_moves_has_the_right_gradient() -> None:
    """The diagonal that the unbiased estimate leaves out depends on the scores here."""

    def kernel(a: Tensor, b: Tensor) -> Tensor:
        return a * b + (a * b) ** 2

    u = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    v = torch.tensor([1.5, 0.2], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda u, v: mmd_squared(u, v, kernel=kernel, unbiased=True), (u, v)
    )


def test_a_kernel_may_be_constant_in_the_scores_almost_everywhere() -> None:
    # sum of (p0 - p1)^2
    same = mmd_squared([0, 0, 1], [0, 1, 1], kernel=lambda a, b: 1.0 * (a == b))
    assert same == pytest.approx(2 / 9)


# --- bandwidths
# -------------------------------------------------------------------------------------------------


@proven
@given(eighths(least=2, most=9))
def test_the_median_distance_is_the_lower_median_over_pairs(z: Floats) -> None:
    far = np.sort(np.abs(z[:, None] - z)[np.triu_indices(len(z), 1)])
    median = far[(len(far) - 1) // 2]
    assert median_distance(z) == pytest.approx(median if median > 0 else 1.0)


def test_the_median_distance_of_many_scores_is_near_that_of_all() -> None:
    z = np.random.default_rng(0).normal(size=4000)
    assert median_distance(z) == pytest.approx(median_distance(z, most=4000), rel=0.01)
    # sqrt 2 times the upper quartile of N(0, 1)
    assert median_distance(z) == pytest.approx(0.954, rel=0.03)


def test_the_median_distance_of_vectors_is_euclidean() -> None:
    assert median_distance([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]], vector=True) == 5.0


def test_the_median_distance_needs_two_scores() -> None:
    with pytest.raises(TooFewSamples) as caught:
        median_distance([1.0])
    assert str(caught.value) == "the median distance needs 2 scores, got 1"


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "inverse_multiquadric"])
@pytest.mark.parametrize("vector", [False, True], ids=["numbers", "vectors"])
def test_the_median_bandwidth_is_that_of_all_scores(kernel: str, vector: bool) -> None:
    u, v = np.array([[0.0], [1.0], [1.0]]), np.array([[4.0], [7.5]])
    u, v = (u, v) if vector else (u[:, 0], v[:, 0])
    length = median_distance(np.concatenate([u, v]), vector=vector)
    assert length == 3.0
    found, expected = (
        mmd_squared(u, v, kernel=kernel, bandwidth=bandwidth, vector=vector)
        for bandwidth in ("median", length)
    )
    assert found == expected


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "inverse_multiquadric"])
def test_a_median_bandwidth_is_refused_where_it_would_bias(kernel: str) -> None:
    with pytest.raises(DataError) as caught:
        mmd_squared([0.0, 1.0], [1.0, 2.0], kernel=kernel, bandwidth="median", unbiased=True)
    assert str(caught.value) == (
        "bandwidth='median' would change with every batch, and the estimate would be biased; "
        "compute it once, median_distance(scores), and pass the number"
    )


@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    "bandwidth", [0, -1.0, np.inf, np.nan, [], [1.0, 0.0], "mean", "12", None], ids=repr
)
def test_a_bandwidth_that_is_none_is_refused(kernel: str, bandwidth: object) -> None:
    with pytest.raises(DataError) as caught:
        mmd_squared([0.0], [1.0], kernel=kernel, bandwidth=bandwidth)
    expected = (
        f"bandwidth must be a positive number, several of them, or 'median', got {bandwidth!r}"
    )
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "bandwidth", [np.array([0.5, 2.0]), torch.tensor([0.5, 2.0])], ids=["numpy", "torch"]
)
def test_bandwidths_may_come_in_an_array(bandwidth: object) -> None:
    found, expected = (
        mmd_squared([0.0], [1.0], bandwidth=lengths) for lengths in (bandwidth, [0.5, 2.0])
    )
    assert found == expected


def test_an_unknown_kernel_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        mmd_squared([0.0], [1.0], kernel="gauss")
    assert str(caught.value) == (
        "kernel must be one of 'gaussian', 'inverse_multiquadric', 'laplace', 'distance' or a "
        "function of two arrays, "
        "got 'gauss'; did you mean 'gaussian'?"
    )


# --- blocks
# -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 40, 200], ids=lambda pairs: f"{pairs} pairs")
@pytest.mark.parametrize("vector", [False, True], ids=["numbers", "vectors"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "inverse_multiquadric", "distance"])
def test_blocks_of_any_size_give_the_same(
    monkeypatch: pytest.MonkeyPatch, block: int, vector: bool, kernel: str
) -> None:
    generator = torch.Generator().manual_seed(0)
    u, v = (torch.randn(2, n, 3, generator=generator, dtype=torch.float64) for n in (7, 6))
    u, v = ((z if vector else z[..., 0]).requires_grad_() for z in (u, v))
    weights = torch.tensor([1.0, 2, 0, 1, 1, 3, 1])

    def value_and_gradient() -> list[Tensor]:
        value = mmd_squared(u, v, kernel=kernel, unbiased=True, u_weights=weights, vector=vector)
        return [value.detach(), *torch.autograd.grad(value.sum(), (u, v))]

    whole = value_and_gradient()
    monkeypatch.setattr(quadratic, "_BLOCK", block)
    torch.testing.assert_close(value_and_gradient(), whole, rtol=1e-12, atol=1e-14)
