"""The energy distance by ranks against pairs: values, gradients under ties, weights, strata,
precision, memory.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import oracles
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import SLOPES, Case, Floats, cases, coefficients_of, eighths, in_torch, pair_of, proven
from scipy import stats
from torch import Tensor

from metrifair.metrics import cramer_distance, energy_distance
from tests.seams.metrics import Pair, energy_between, energy_coefficients, pair, quadratic

closely = settings(proven, max_examples=60)
any_case = cases(least=2) | cases(least=2, weighted=True)


@closely
@given(cases() | cases(weighted=True))
def test_energy_is_scipys_squared(case: Case) -> None:
    found = energy_distance(case.u, case.v, **case.weights)
    assert found == pytest.approx(stats.energy_distance(*case) ** 2, rel=0, abs=1e-10 * case.extent)


@closely
@given(cases() | cases(weighted=True))
def test_energy_is_the_sum_over_pairs(case: Case) -> None:
    found = energy_distance(case.u, case.v, **case.weights)
    assert found == pytest.approx(oracles.energy(*case), rel=0, abs=1e-10 * case.extent)
    assert found >= 0


@closely
@given(any_case)
def test_unbiased_energy_is_the_sum_over_pairs_of_different_scores(case: Case) -> None:
    found = energy_distance(case.u, case.v, unbiased=True, **case.weights)
    assert found == pytest.approx(
        oracles.energy(*case, unbiased=True), rel=0, abs=1e-10 * case.extent
    )


def test_unbiased_energy_written_out() -> None:
    u, v, a = np.array([0.0, 2.0, 5.0]), np.array([1.0, 7.0]), np.array([1.0, 2.0, 3.0])
    # sum_{i != j} w_i w_j |.| / (W^2 - sum w^2)
    within = 2 * (1 * 2 * 2 + 1 * 3 * 5 + 2 * 3 * 3) / (6**2 - 14)
    across = (1 * (1 + 7) + 2 * (1 + 5) + 3 * (4 + 2)) / (6 * 2)
    assert energy_distance(u, v, unbiased=True, u_weights=a) == pytest.approx(
        2 * across - within - 6, abs=1e-14
    )


@closely
@given(cases() | cases(weighted=True))
def test_energy_is_twice_cramer(case: Case) -> None:
    twice = 2 * cramer_distance(case.u, case.v, **case.weights)
    assert energy_distance(case.u, case.v, **case.weights) == pytest.approx(
        twice, rel=0, abs=1e-10 * case.extent
    )


@pytest.mark.parametrize("unbiased", [False, True])
def test_two_scores_against_many_keep_their_digits_on_either_side(unbiased: bool) -> None:
    """The coefficients of many scores are small beside those of two: neither may be computed
    from the others.
    """
    generator = np.random.default_rng(0)
    many, two = generator.random(100_000), generator.random(2)
    sorted_many, place = np.sort(many), np.arange(1, len(many) + 1)
    among_many = (
        2 * ((2 * place - len(many) - 1) * sorted_many).sum() / (len(many) * (len(many) - unbiased))
    )
    among_two = 2 * abs(two[0] - two[1]) / (2 * (2 - unbiased))
    expected = 2 * np.abs(many[:, None] - two).mean() - among_many - among_two
    for pair_of_samples in ((many, two), (two, many)):
        assert energy_distance(*pair_of_samples, unbiased=unbiased) == pytest.approx(
            expected, abs=1e-9
        )


def test_unbiased_energy_can_be_negative() -> None:
    # 1 - 1 - 1
    assert energy_distance([0.0, 1.0], [0.0, 1.0], unbiased=True) == pytest.approx(-1.0)


# --- gradients
# --------------------------------------------------------------------------------------------------


def gradient_by_pairs(pair: Pair, *, unbiased: bool) -> Floats:
    """Derivative of -sum_ij C_ij |z_i - z_j| with sign(0) = 0."""
    z = np.asarray(pair.values)
    return 4 * (
        coefficients_of(pair, unbiased=unbiased) * SLOPES["distance"](z[:, None] - z, 1.0)
    ).sum(-1)


def gradient(pair: Pair, *, unbiased: bool) -> Floats:
    moving = in_torch(pair)
    z = moving.values.requires_grad_()
    return torch.autograd.grad(energy_between(moving, unbiased=unbiased), z)[0].numpy()


@pytest.mark.parametrize("unbiased", [False, True], ids=["plug-in", "unbiased"])
@closely
@given(case=any_case)
def test_the_gradient_under_ties_is_that_of_the_pairs(case: Case, unbiased: bool) -> None:
    expected = gradient_by_pairs(case.pair, unbiased=unbiased)
    np.testing.assert_allclose(gradient(case.pair, unbiased=unbiased), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("unbiased", [False, True], ids=["plug-in", "unbiased"])
def test_the_gradient_is_exactly_zero_when_all_scores_tie(unbiased: bool) -> None:
    assert not gradient(pair_of(np.full(5, 0.3), np.full(4, 0.3)), unbiased=unbiased).any()


def test_a_gradient_survives_a_distance_lost_in_rounding() -> None:
    # not exact: the plug-in may round to below 0
    base = torch.arange(1, 8, dtype=torch.float64) / 7
    for far in (1e-17, 1e-12, 1e-9):
        u, v = base.clone(), base.clone()
        v[3] += far
        expected = gradient_by_pairs(pair_of(u, v), unbiased=False)
        np.testing.assert_allclose(
            gradient(pair_of(u, v), unbiased=False), expected, rtol=0, atol=1e-12
        )


# --- sides of several strata
# ------------------------------------------------------------------------------------


@pytest.mark.parametrize("unbiased", [False, True], ids=["plug-in", "unbiased"])
@closely
@given(st.data())
def test_strata_are_the_sum_over_pairs(unbiased: bool, data: st.DataObject) -> None:
    def side() -> tuple[Floats, Floats, tuple[int, ...]]:
        sizes = tuple(data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)))
        shares = data.draw(st.lists(st.integers(1, 5), min_size=len(sizes), max_size=len(sizes)))
        weights = np.concatenate([np.full(n, p / n) for n, p in zip(sizes, shares, strict=True)])
        return data.draw(eighths(sum(sizes), sum(sizes))), weights, sizes

    (u, a, left), (v, b, right) = side(), side()
    pair = pair_of(u, v, a, b, left=left, right=right)
    z = np.asarray(pair.values)
    expected = -(coefficients_of(pair, unbiased=unbiased) * np.abs(z[:, None] - z)).sum()
    assert energy_between(pair, unbiased=unbiased).item() == pytest.approx(expected, abs=1e-12)
    by_pairs = gradient_by_pairs(pair, unbiased=unbiased)
    np.testing.assert_allclose(gradient(pair, unbiased=unbiased), by_pairs, rtol=0, atol=1e-12)


def test_the_energy_of_strata_is_the_plug_in_less_what_each_stratum_adds() -> None:
    """Weighted plug-in - sum over strata of p^2 V / (n - 1), with V the stratum's mean |z - z'|."""
    cells, shares = [np.array([0.0, 2.0, 3.0]), np.array([1.0, 1.5])], [0.3, 0.7]
    v = np.array([0.5, 4.0])
    weights = np.concatenate(
        [np.full(len(c), p / len(c)) for c, p in zip(cells, shares, strict=True)]
    )
    u = np.concatenate(cells)
    spread = [np.abs(c[:, None] - c).mean() for c in (*cells, v)]
    corrections = [
        p**2 * s / (n - 1) for p, s, n in zip((*shares, 1), spread, (3, 2, 2), strict=True)
    ]
    expected = oracles.energy(u, v, weights) - sum(corrections)
    found = energy_between(pair_of(u, v, weights, left=(3, 2)), unbiased=True)
    assert found.item() == pytest.approx(expected, abs=1e-14)


# --- precision and size
# -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("unbiased", [False, True], ids=["plug-in", "unbiased"])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_single_precision_keeps_its_digits_far_from_zero(unbiased: bool, offset: float) -> None:
    draws = np.random.default_rng(0)
    u, v = (
        (offset + draws.normal(c, size=n)).astype(np.float32) for c, n in ((0, 300), (0.5, 200))
    )
    found = energy_distance(torch.tensor(u), torch.tensor(v), unbiased=unbiased)
    expected = energy_distance(u.astype(np.float64), v.astype(np.float64), unbiased=unbiased)
    assert found.item() == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("lead", [(), (3,)], ids=["one", "many"])
def test_every_way_of_sorting_gives_the_same(
    monkeypatch: pytest.MonkeyPatch, lead: tuple[int, ...]
) -> None:
    generator = torch.Generator().manual_seed(0)
    z = torch.randint(-9, 10, (*lead, 40), generator=generator).float() / 4
    z[..., :4] = torch.tensor([0.0, -0.0, 1e30, -1e-30])
    expected = energy_distance(z[..., :25], z[..., 25:])
    monkeypatch.setattr(pair, "_LARGE", 1)
    monkeypatch.setattr(pair, "_PACKED", 1)
    assert torch.equal(pair.ascending(z).points, z.sort(-1).values)
    torch.testing.assert_close(
        energy_distance(z[..., :25], z[..., 25:]), expected, rtol=1e-6, atol=0
    )


_SINGLE = np.finfo(np.float32)
_ZEROS, _ENDS = (
    [0.0, -0.0, 1.0, -1.0],
    [_SINGLE.tiny, _SINGLE.smallest_subnormal, _SINGLE.max, 1 + _SINGLE.eps],
)


@pytest.mark.parametrize(
    ("scores", "flushed"),
    [
        (_ZEROS, True),
        ([*_ZEROS, *_ENDS, *np.negative(_ENDS)], False),
        ([*_ZEROS, np.inf, -np.inf, np.nan], False),
    ],
    ids=["denormal numbers flushed to 0", "from end to end", "not finite"],
)
@pytest.mark.parametrize("shape", [(3_000,), (6, 500)], ids=["one", "many"])
def test_scores_sorted_with_their_places_have_each_place_once(
    scores: list[float], flushed: bool, shape: tuple[int, ...]
) -> None:
    z = np.random.default_rng(0).choice(np.array(scores, np.float32), shape)
    torch.set_flush_denormal(flushed)
    try:
        with np.errstate(invalid="ignore"):  # as around every metric
            points, places = pair.sorted_places(z)
    finally:
        torch.set_flush_denormal(False)
    assert points.dtype == np.float32
    np.testing.assert_array_equal(points, np.sort(z, -1))
    np.testing.assert_array_equal(np.take_along_axis(z, places, -1), points)
    assert (np.sort(places, -1) == np.arange(shape[-1])).all()


@pytest.mark.parametrize("holder", [np.asarray, torch.tensor])
def test_large_samples_have_the_weights_of_small_ones(
    monkeypatch: pytest.MonkeyPatch, holder: Callable
) -> None:
    samples = Pair(holder([3.0, 1.0, 2.0, 1.0, 0.0, 5.0, 4.0]), (2, 2), (3,))
    order = holder([4, 1, 3, 2, 0, 6, 5])
    small = pair.block_weights_in_order(samples, samples.sizes, order)
    monkeypatch.setattr(pair, "_LARGE", 1)
    large = pair.block_weights_in_order(samples, samples.sizes, order)
    assert (
        large.tolist()
        == small.tolist()
        == [[0, 1, 0, 0, 1, 0, 0], [0, 0, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1, 1]]
    )


def test_a_score_that_is_no_number_has_a_place_on_a_device() -> None:
    for places in pair._ties_on_device(torch.tensor([0.0, 1.0, 1.0, float("nan")]))[:2]:
        assert 0 <= places.min() <= places.max() <= 3


@pytest.mark.parametrize("ties", [False, True], ids=["distinct", "tied"])
@pytest.mark.parametrize("unbiased", [False, True], ids=["plug-in", "unbiased"])
@pytest.mark.parametrize("lead", [(), (2, 3)], ids=["one", "many"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("small", [0, 64], ids=["anew", "remembered"])
def test_counting_in_order_gives_the_coefficients_of_the_weighted_form(
    monkeypatch: pytest.MonkeyPatch,
    ties: bool,
    unbiased: bool,
    lead: tuple[int, ...],
    dtype: type,
    small: int,
) -> None:
    monkeypatch.setattr(quadratic, "_SMALL", small)
    monkeypatch.setattr(pair, "_LARGE", 1)
    monkeypatch.setattr(pair, "_PACKED", 1)
    draws = np.random.default_rng(1)
    z = (
        draws.integers(-9, 10, (*lead, 50)) / 4 if ties else draws.normal(size=(*lead, 50))
    ).astype(dtype)
    found, center = energy_coefficients(z, 18, fractions=(0, 0) if unbiased else (1, 1))
    values = torch.from_numpy(z).requires_grad_()
    weighted = Pair(values, (18,), (32,), torch.ones(50).double())
    (expected,) = torch.autograd.grad(energy_between(weighted, unbiased=unbiased).sum(), values)
    np.testing.assert_allclose(found, expected, atol=1e-6 if dtype is np.float32 else 1e-14)
    assert ((center == np.sort(z, -1)[..., 25]) | (center == 0)).all()


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_transformed_function_gives_the_same() -> None:
    u, v = (
        torch.randn(4, 5, generator=torch.Generator().manual_seed(0)).double(),
        torch.zeros(3).double(),
    )

    def metric(z: Tensor) -> Tensor:
        return energy_between(Pair(torch.cat([z, v]), (5,), (3,)), unbiased=True)

    expected = np.stack([gradient(pair_of(row, v), unbiased=True)[:5] for row in u])
    np.testing.assert_allclose(torch.func.vmap(torch.func.grad(metric))(u), expected, atol=1e-14)


def test_a_step_on_a_million_scores_takes_less_than_300_megabytes() -> None:
    """Counted is what NumPy is asked for, not what the process holds: that depends on the C
    library.
    """
    u, v = (torch.randn(500_000, requires_grad=True) for _ in range(2))
    energy_distance(u[:9], v[:9], unbiased=True).backward()
    tracemalloc.start()
    energy_distance(u, v, unbiased=True).backward()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # the scores are sorted in NumPy: a count that missed them would be less
    assert 8e6 < peak < 300e6
    assert all(side.grad is not None and side.grad.isfinite().all() for side in (u, v))
