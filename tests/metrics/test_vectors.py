"""Scores in R^d: energy distance and MMD by pairs, and the energy distance by slices."""

from __future__ import annotations

import math
from functools import partial
from itertools import product

import numpy as np
import oracles
import ot
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import KERNELS, Floats, eighths, proven
from torch import Tensor

from metrifair.errors import DataError
from metrifair.metrics import (
    energy_distance,
    mmd_squared,
    sliced_energy_distance,
    sliced_wasserstein_distance,
    wasserstein_distance,
    witness,
)
from tests.seams.metrics import Pair, random_directions, sliced_energy_between

each_estimate = pytest.mark.parametrize("unbiased", [False, True], ids=["plug-in", "unbiased"])
KERNELS_IN_SPACE = ["gaussian", "laplace", "inverse_multiquadric", "distance"]


@st.composite
def clouds(draw, least: int = 2) -> tuple[Floats, Floats, Floats]:
    """Two samples of vectors with ties, and weights for the first."""
    d, n, m = draw(st.integers(1, 3)), draw(st.integers(least, 5)), draw(st.integers(least, 5))
    points = draw(eighths((n + m) * d, (n + m) * d)).reshape(n + m, d)
    return (
        points[:n],
        points[n:],
        np.array(draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), float),
    )


@each_estimate
@proven
@given(clouds())
def test_energy_of_vectors_is_the_sum_over_pairs(
    unbiased: bool, cloud: tuple[Floats, Floats, Floats]
) -> None:
    u, v, a = cloud
    for weights in (None, a):
        found = energy_distance(u, v, unbiased=unbiased, u_weights=weights, vector=True)
        expected = oracles.quadratic(u, v, lambda far: -far, weights, unbiased=unbiased)
        assert found == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("kernel", KERNELS_IN_SPACE)
@each_estimate
@proven
@given(clouds())
def test_mmd_of_vectors_is_the_sum_over_pairs(
    kernel: str, unbiased: bool, cloud: tuple[Floats, Floats, Floats]
) -> None:
    u, v, a = cloud
    for weights in (None, a):
        found = mmd_squared(
            u, v, kernel=kernel, bandwidth=0.7, unbiased=unbiased, u_weights=weights, vector=True
        )
        expected = oracles.quadratic(
            u, v, lambda far: KERNELS[kernel](far, 0.7), weights, unbiased=unbiased
        )
        assert found == pytest.approx(expected, abs=1e-10)


@each_estimate
@pytest.mark.parametrize("kernel", KERNELS_IN_SPACE)
def test_the_gradient_is_finite_where_vectors_coincide_and_right_elsewhere(
    kernel: str, unbiased: bool
) -> None:
    u = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    v = torch.tensor([[0.0, 0.0], [3.0, 1.0]], dtype=torch.float64, requires_grad=True)
    tied = torch.autograd.grad(
        mmd_squared(u, v, kernel=kernel, unbiased=unbiased, vector=True), (u, v)
    )
    assert all(torch.isfinite(side).all() for side in tied)
    apart = torch.tensor([[0.1, 0.7], [-0.5, 0.2]], dtype=torch.float64, requires_grad=True)

    def metric(u: Tensor, v: Tensor) -> Tensor:
        return mmd_squared(u, v, kernel=kernel, unbiased=unbiased, vector=True)

    assert torch.autograd.gradcheck(metric, (u[1:].detach().requires_grad_(), apart))


def test_the_gradient_of_coinciding_vectors_is_zero() -> None:
    u, v = torch.ones(3, 2, requires_grad=True), torch.ones(4, 2, requires_grad=True)
    for side in torch.autograd.grad(energy_distance(u, v, vector=True), (u, v)):
        assert not side.any()


def test_energy_of_vectors_is_unbiased_over_all_batches() -> None:
    """As in test_unbiased, for vectors, by pairs and by slices alike."""
    P, Q = (
        torch.tensor([[0.0, 0.0], [1.0, 0.5], [1.0, 0.5], [-1.0, 2.0]]),
        torch.tensor([[0.0, 1.0], [2.0, 2.0]]),
    )
    P, Q, n = P.double(), Q.double(), 2
    batches = list(product(product(range(4), repeat=n), product(range(2), repeat=n)))
    u, v = (
        torch.stack([side[list(batch[k])] for batch in batches]) for k, side in enumerate((P, Q))
    )
    found = energy_distance(u, v, unbiased=True, vector=True).mean()
    assert found.item() == pytest.approx(energy_distance(P, Q, vector=True).item(), abs=1e-12)
    found, exact = (
        sliced_energy_distance(*sides, unbiased=unbiased, slices=3, random_state=0)
        for sides, unbiased in (((u, v), True), ((P, Q), False))
    )
    assert found.mean().item() == pytest.approx(exact.item(), abs=1e-12)


# --- slices
# -----------------------------------------------------------------------------------------------------


def joined(u: Tensor, v: Tensor, weights: Tensor | None = None) -> Pair:
    return Pair(torch.cat([u, v], -2), (u.shape[-2],), (v.shape[-2],), weights)


@each_estimate
@proven
@given(eighths(least=2), eighths(least=2), st.integers(1, 5))
def test_slices_of_numbers_are_the_energy_distance(
    unbiased: bool, u: Floats, v: Floats, slices: int
) -> None:
    found = sliced_energy_distance(
        u[:, None], v[:, None], slices=slices, unbiased=unbiased, random_state=0
    )
    assert found == pytest.approx(energy_distance(u, v, unbiased=unbiased), abs=1e-12)


@each_estimate
def test_slices_all_around_the_circle_give_the_energy_distance_in_the_plane(unbiased: bool) -> None:
    draws = torch.Generator().manual_seed(0)
    u, v = (
        torch.randn(n, 2, generator=draws, dtype=torch.float64) + c for n, c in ((6, 0.0), (5, 1.0))
    )
    angles = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000 * math.pi
    around = torch.stack([angles.cos(), angles.sin()], -1)
    exact = energy_distance(u, v, unbiased=unbiased, vector=True).item()
    found = sliced_energy_between(joined(u, v), around, unbiased=unbiased).item()
    assert found == pytest.approx(exact, abs=1e-6)
    weights = torch.rand(11, generator=draws, dtype=torch.float64)
    weighted = energy_distance(
        u, v, u_weights=weights[:6], v_weights=weights[6:], unbiased=unbiased, vector=True
    )
    found = sliced_energy_between(joined(u, v, weights), around, unbiased=unbiased).item()
    assert found == pytest.approx(weighted.item(), abs=1e-6)


@each_estimate
@pytest.mark.parametrize("d", [2, 3, 7])
def test_random_slices_have_the_energy_distance_as_their_mean(unbiased: bool, d: int) -> None:
    draws = torch.Generator().manual_seed(1)
    u, v = (
        torch.randn(n, d, generator=draws, dtype=torch.float64) + c for n, c in ((6, 0.0), (5, 1.0))
    )
    each = random_directions(20_000, d, draws).unsqueeze(-2)  # 20,000 estimates, of one slice each
    estimates = sliced_energy_between(joined(u, v), each, unbiased=unbiased)
    exact, error = (
        energy_distance(u, v, unbiased=unbiased, vector=True),
        estimates.std() / len(estimates) ** 0.5,
    )
    assert error < 0.02 * exact
    assert abs(estimates.mean() - exact) < 4 * error


@pytest.mark.parametrize("d", [1, 2, 5])
def test_random_directions_are_uniform_on_the_sphere(d: int) -> None:
    n = 20_000
    directions = random_directions(n, d, torch.Generator().manual_seed(0))
    torch.testing.assert_close(directions.norm(dim=-1), torch.ones(n, dtype=torch.float64))
    assert directions.mean(0).abs().max() < 4.5 / math.sqrt(n)
    torch.testing.assert_close(
        directions.T @ directions / n, torch.eye(d).double() / d, rtol=0, atol=4.5 / n**0.5
    )


def test_the_same_random_state_gives_the_same_slices() -> None:
    u, v = np.eye(3), np.ones((2, 3))
    first, again, other = (
        sliced_energy_distance(u, v, slices=2, random_state=seed) for seed in (3, 3, 4)
    )
    assert first == again != other


def test_slices_keep_dtype_and_leading_axes() -> None:
    u, v = torch.rand(4, 1, 5, 2), torch.rand(3, 6, 2)
    found = sliced_energy_distance(
        u, v, slices=8, u_weights=torch.rand(4, 1, 5) + 0.1, random_state=0
    )
    assert (found.shape, found.dtype) == ((4, 3), torch.float32)


@pytest.mark.parametrize("slices", [0, -1, 2.5])
def test_slices_must_be_a_whole_number(slices: float) -> None:
    with pytest.raises(DataError) as caught:
        sliced_energy_distance([[0.0]], [[1.0]], slices=slices, random_state=0)
    assert str(caught.value) == f"slices must be an integer from 1 upwards, got {slices!r}"


BAD_VECTORS = [
    ([0.0, 1.0], [[1.0]], "u must have at least 2 dimension(s), got shape (2,)"),
    ([[0.0, 1.0]], [[1.0]], "u and v must contain vectors of one length, got 2 and 1"),
    (
        [[0.0]],
        np.zeros((2, 2, 1)),
        (
            "v must have 2 dimension(s), got an array of shape (2, 2, 1); vectors: vector=True, "
            "where the metric "
            "has it; many models at once: torch tensors"
        ),
    ),
    (np.zeros((0, 2)), [[0.0, 0.0]], "u contains no scores; pass at least one"),
]


@pytest.mark.parametrize(
    ("u", "v", "message"), BAD_VECTORS, ids=["numbers", "lengths", "axes", "empty"]
)
def test_bad_vectors_are_refused(u: object, v: object, message: str) -> None:
    for function in (sliced_energy_distance, lambda u, v: energy_distance(u, v, vector=True)):
        with pytest.raises(DataError) as caught:
            function(u, v)
        assert str(caught.value) == message


def test_vectors_of_one_number_are_numbers() -> None:
    rng = np.random.default_rng(3)
    u, v, a = rng.normal(size=9), rng.normal(size=12), rng.random(9)
    sliced = sliced_wasserstein_distance(
        u[:, None], v[:, None], slices=3, u_weights=a, random_state=0
    )
    assert sliced == pytest.approx(wasserstein_distance(u, v, u_weights=a), abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_models_of_vectors_at_once(weighted: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    u, v = torch.randn(2, 3, 5, 2, generator=generator), torch.randn(4, 2, generator=generator)
    weights = 1 + torch.rand(2, 3, 5, generator=generator) if weighted else None
    each = [None] * 6 if weights is None else weights.reshape(6, 5)
    for function in (
        partial(sliced_wasserstein_distance, slices=4, random_state=0),
        partial(sliced_energy_distance, slices=4, random_state=0),
    ):
        together = function(u, v, u_weights=weights)
        assert together.shape == (2, 3)
        one_by_one = [
            function(one, v, u_weights=own)
            for one, own in zip(u.reshape(6, 5, 2), each, strict=True)
        ]
        torch.testing.assert_close(together.reshape(6), torch.stack(one_by_one))


def test_slices_are_another_metric_and_never_above_the_exact_one() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        u, v = rng.normal(size=(6, 3)), rng.normal(size=(5, 3)) + rng.normal(size=3)
        exact = ot.emd2(
            np.full(6, 1 / 6), np.full(5, 1 / 5), np.linalg.norm(u[:, None] - v, axis=-1)
        )
        assert sliced_wasserstein_distance(u, v, slices=1, random_state=0) <= exact + 1e-12
    moved = sliced_wasserstein_distance(
        u, u + np.array([2.0, 0.0, 0.0]), slices=20_000, random_state=0
    )
    # the mean of |cos| on the sphere in R^3 is 1/2
    assert moved == pytest.approx(2 * 0.5, rel=0.02)


@pytest.mark.parametrize("metric", ["energy", "mmd"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_witness_of_vectors_attains_the_metric(metric: str, weighted: bool) -> None:
    rng = np.random.default_rng(1)
    u, v = rng.integers(0, 3, size=(7, 2)) * 1.0, rng.integers(0, 3, size=(5, 2)) + 0.0
    a = rng.random(7) if weighted else None
    distance = {"energy": energy_distance, "mmd": mmd_squared}[metric](
        u, v, u_weights=a, vector=True
    )
    utility = witness(u, v, metric=metric, u_weights=a, vector=True)
    assert utility.gap == pytest.approx(math.sqrt(distance), abs=1e-9)
    assert utility.expected[0] >= utility.expected[1] - 1e-12
    left, right = np.average(utility(u), weights=a), np.average(utility(v))
    assert (left, right) == pytest.approx(utility.expected, abs=1e-12)
    assert isinstance(utility(u[0]), float)


@pytest.mark.parametrize("metric", ["kolmogorov", "wasserstein", "total_variation"])
def test_what_vectors_do_not_have_is_said(metric: str) -> None:
    with pytest.raises(DataError, match="no witness of vectors"):
        witness([[0.0, 1.0]], [[1.0, 1.0]], metric=metric, vector=True)
