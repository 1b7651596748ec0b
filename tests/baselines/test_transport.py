"""The Sinkhorn divergence against worked numbers, POT and differences, and the memory it takes."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import ot
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.seams.baselines import (
    Points,
    Sinkhorn,
    TransportProblem,
    by_coordinate,
    distinct_points,
)


def clouds(n: int, m: int, d: int, *, scale: float = 1.0, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return np.maximum(scale * rng.normal(size=(n, d)), 0), np.maximum(
        scale * rng.normal(size=(m, d)) + 0.3, 0
    )


def solved(solver: Sinkhorn, u: Any, v: Any, a: Any = None, b: Any = None, **options: Any) -> Any:
    """The divergence of clouds (..., n, d); equal weights where none are given."""
    weights = [
        cloud.new_ones(cloud.shape[-2]) if weight is None else torch.tensor(weight).to(cloud)
        for cloud, weight in ((u, a), (v, b))
    ]
    return solver.divergence(
        u, v, (weights[0] / weights[0].sum(), weights[1] / weights[1].sum()), **options
    )


def sinkhorn_divergence(
    u: Any,
    v: Any,
    *,
    u_weights: Any = None,
    v_weights: Any = None,
    sharp: bool = False,
    **options: Any,
) -> Any:
    """Its value, or the sharp one, of arrays, lists of numbers or tensors."""
    first, second = (
        one if isinstance(one, torch.Tensor) else torch.tensor(np.array(one, dtype=float))
        for one in (u, v)
    )
    first, second = (one.unsqueeze(-1) if one.ndim == 1 else one for one in (first, second))
    found = solved(Sinkhorn(**options), first, second, u_weights, v_weights, sharp=sharp)
    return found.sharp if sharp else found.value


@pytest.mark.parametrize(
    ("u", "v", "entropic", "sharp"),
    [
        ([0.0], [1.0], 1.0, 1.0),
        ([0.0, 1.0], [0.0, 2.0], 0.4999977, 0.5000227),
        ([0.0, 0.1], [0.05, 0.2], 0.0533260, 0.0667480),
        ([0.0, 0.1, 0.2], [0.05, 0.2], 0.0170844, 0.0241664),
    ],
)
def test_worked_numbers(u: list[float], v: list[float], entropic: float, sharp: float) -> None:
    assert float(sinkhorn_divergence(u, v)) == pytest.approx(entropic, abs=1e-7)
    assert float(sinkhorn_divergence(u, v, sharp=True)) == pytest.approx(sharp, abs=1e-7)
    assert float(sinkhorn_divergence(v, u)) == pytest.approx(entropic, abs=1e-7)


def test_worked_gradient() -> None:
    u = torch.tensor([0.0, 0.1, 0.2], dtype=torch.float64, requires_grad=True)
    sinkhorn_divergence(u, torch.tensor([0.05, 0.2], dtype=torch.float64)).backward()
    assert u.grad is not None
    assert u.grad.numpy() == pytest.approx((-0.227462, 0.045202, -0.05555), abs=1e-5)


@pytest.mark.parametrize("block", [None, 2])
def test_gradients_are_those_of_the_entropic_value(block: int | None) -> None:
    u, v = (torch.as_tensor(cloud).requires_grad_() for cloud in clouds(5, 6, 2))

    def value(*both: Any) -> Any:
        return sinkhorn_divergence(*both, tol=1e-12, block=block)

    assert torch.autograd.gradcheck(value, (u, v), eps=1e-6, atol=1e-6)


def by_pot(x: Any, y: Any, a: Any, b: Any, epsilon: float) -> tuple[float, float]:
    """Entropic value (relative to the product measure) and cost of the plan."""
    cost = ot.dist(x, y, metric="euclidean")
    plan = ot.sinkhorn(a, b, cost, epsilon, method="sinkhorn_log", stopThr=1e-11, numItermax=10_000)
    relative = np.sum(plan * np.log(np.maximum(plan, 1e-300) / np.outer(a, b)))
    return float((plan * cost).sum() + epsilon * relative), float((plan * cost).sum())


@pytest.mark.pairwise
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n", "m", "d", "epsilon"), [(5, 8, 1, 0.2), (12, 30, 4, 0.4), (25, 10, 16, 1.0)]
)
def test_agrees_with_pot(n: int, m: int, d: int, epsilon: float, weighted: bool) -> None:
    u, v = clouds(n, m, d)
    rng = np.random.default_rng(1)
    weights = [rng.uniform(0.1, 1, size) if weighted else np.ones(size) for size in (n, m)]
    a, b = (weight / weight.sum() for weight in weights)
    parts = [by_pot(*problem, epsilon) for problem in ((u, v, a, b), (u, u, a, a), (v, v, b, b))]
    expected = [both - (first + second) / 2 for both, first, second in zip(*parts, strict=True)]
    given = {"u_weights": weights[0], "v_weights": weights[1]} if weighted else {}
    for block in (None, 3):
        value, sharp = (
            sinkhorn_divergence(u, v, **given, epsilon=epsilon, sharp=kind, block=block)
            for kind in (False, True)
        )
        assert float(value) == pytest.approx(expected[0], abs=1e-8)
        assert float(sharp) == pytest.approx(expected[1], abs=1e-7)


def measured(u: Any, v: Any, a: Any = None, b: Any = None, **options: Any) -> tuple[Any, ...]:
    """Value, sharp value and the gradients at both clouds."""
    first, second = (
        torch.tensor(cloud, dtype=torch.float64, requires_grad=True) for cloud in (u, v)
    )
    options = {"u_weights": a, "v_weights": b, "epsilon": 0.5, "tol": 1e-11, **options}
    value = sinkhorn_divergence(first, second, **options)
    slopes = torch.autograd.grad(value, (first, second))
    sharp = sinkhorn_divergence(u, v, sharp=True, **options)
    return float(value.detach()), float(sharp), *(slope.numpy() for slope in slopes)


def assert_same(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)


COUNTS = st.lists(st.integers(1, 4), min_size=1, max_size=6)


@settings(max_examples=15, deadline=None)
@given(COUNTS, COUNTS, st.sampled_from([None, 2]))
def test_whole_weights_are_repeated_points(a: list[int], b: list[int], block: int | None) -> None:
    """The slope of a weighted point is the sum over its copies."""
    u, v = clouds(len(a), len(b), 2)
    value, sharp, *slopes = measured(np.repeat(u, a, 0), np.repeat(v, b, 0), block=block)
    firsts = [np.cumsum([0, *counts[:-1]]) for counts in (a, b)]
    summed = [np.add.reduceat(slope, first) for slope, first in zip(slopes, firsts, strict=True)]
    assert_same(measured(u, v, a, b, block=block), (value, sharp, *summed))


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.9, 0.09, 0.01)])
def test_splitting_a_point_changes_nothing(shares: tuple[float, ...]) -> None:
    u, v = clouds(5, 7, 3)
    a, b = np.arange(1.0, 6), np.arange(2.0, 9)
    value, sharp, at_u, at_v = measured(u, v, a, b)
    split = np.repeat(u, [len(shares), 1, 1, 1, 1], 0)
    found = measured(split, v, [*(share * a[0] for share in shares), *a[1:]], b)
    assert_same(found, (value, sharp, np.concatenate([np.outer(shares, at_u[0]), at_u[1:]]), at_v))


def test_weighted_gradients_are_those_of_the_entropic_value() -> None:
    u, v = (torch.as_tensor(cloud).requires_grad_() for cloud in clouds(5, 6, 2))

    def value(*both: Any) -> Any:
        return sinkhorn_divergence(*both, u_weights=range(1, 6), v_weights=range(1, 7), tol=1e-12)

    assert torch.autograd.gradcheck(value, (u, v), eps=1e-6, atol=1e-6)


def padded(points: Points, size: int) -> Points:
    """The same measure on this number of points: copies of the last one share its weight."""
    copies = np.ones(len(points.rows), dtype=np.int64)
    copies[-1] += size - len(points.rows)
    return Points(np.repeat(points.rows, copies, 0), np.repeat(points.weight / copies, copies))


@pytest.mark.parametrize("sweeps", [7, 20])
def test_a_padded_cloud_takes_the_same_sweeps(sweeps: int) -> None:
    """Copies that share a weight: also before they have converged, Anderson's steps are those
    of the cloud itself.
    """
    u, v = (
        Points(cloud, np.arange(1, 1 + len(cloud)) / sum(range(1 + len(cloud))))
        for cloud in clouds(9, 12, 3, scale=3)
    )
    solver = Sinkhorn(max_iterations=sweeps, tol=1e-300)
    found = [
        solver.divergence(
            *(torch.as_tensor(one.rows) for one in pair),
            (torch.as_tensor(pair[0].weight), torch.as_tensor(pair[1].weight)),
        )
        for pair in ((u, v), (padded(u, 20), padded(v, 13)))
    ]
    assert [one.potentials[2][0].shape[-1] for one in found] == [9, 20]
    assert not found[0].converged
    assert float(found[1].value) == pytest.approx(float(found[0].value), abs=1e-10)
    assert (
        abs(
            float(
                sinkhorn_divergence(u.rows, v.rows, u_weights=u.weight, v_weights=v.weight)
                - found[0].value
            )
        )
        > 1e-7
    )


def test_distinct_rows_keep_the_measure_and_their_order() -> None:
    rows = np.array([[3.0, 1.0], [1.0, 2.0], [3.0, 1.0], [1.0, 0.0]])
    found = distinct_points(rows)
    np.testing.assert_array_equal(found.rows, rows[[0, 1, 3]])
    np.testing.assert_array_equal(found.weight, [0.5, 0.25, 0.25])


def test_distances_by_coordinate_are_distances() -> None:
    """They are taken on CUDA; points that coincide are at a distance of exactly 0."""
    u, v = (torch.as_tensor(np.stack([cloud, 100 * cloud])) for cloud in clouds(6, 8, 3))
    torch.testing.assert_close(by_coordinate(u, v), torch.cdist(u, v))
    assert (by_coordinate(u, u).diagonal(dim1=-2, dim2=-1) == 0).all()


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=6),
    st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=6),
    st.floats(-50, 50),
)
def test_laws(u: list[float], v: list[float], shift: float) -> None:
    """Symmetric, not negative, zero between a cloud and itself, and the same wherever the
    clouds lie.
    """
    first, second = np.array(u), np.array(v)
    value = float(sinkhorn_divergence(first, second))
    assert value >= -1e-8
    assert float(sinkhorn_divergence(second, first)) == pytest.approx(value, abs=1e-7)
    assert float(sinkhorn_divergence(first + shift, second + shift)) == pytest.approx(
        value, abs=1e-7
    )
    assert float(sinkhorn_divergence(first, first[::-1].copy())) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("block", [None, 1])
def test_points_far_apart_do_not_underflow(block: int | None) -> None:
    """Distances of 10,000 epsilons: exp(-cost / epsilon) is 0 everywhere."""
    u, v = (
        torch.tensor([[0.0], [1.0]], dtype=torch.float64),
        torch.tensor([[1000.0], [1003.0]], dtype=torch.float64),
    )
    assert float(sinkhorn_divergence(u, v, block=block)) == pytest.approx(1001, abs=0.1)
    value = solved(Sinkhorn(block=block), u.requires_grad_(), v)
    value.value.backward()
    assert u.grad is not None
    assert u.grad.flatten().tolist() == pytest.approx([-0.5, -0.5], abs=1e-3)


def test_identical_rows_have_finite_gradients() -> None:
    u = torch.zeros(4, 2, dtype=torch.float64, requires_grad=True)
    sinkhorn_divergence(u, torch.zeros(3, 2, dtype=torch.float64)).backward()
    assert u.grad is not None
    assert u.grad.abs().max() == 0


def test_leading_axes_are_models() -> None:
    u, v = (np.stack([cloud, 2 * cloud]) for cloud in clouds(6, 8, 3))
    both = sinkhorn_divergence(u, v)
    alone = [float(sinkhorn_divergence(u[k], v[k])) for k in (0, 1)]
    assert both.tolist() == pytest.approx(alone, abs=1e-8)


def test_single_precision_is_near_double() -> None:
    u, v = clouds(30, 40, 5)
    single = sinkhorn_divergence(
        torch.tensor(u, dtype=torch.float32), torch.tensor(v, dtype=torch.float32)
    )
    assert float(single) == pytest.approx(float(sinkhorn_divergence(u, v)), abs=1e-4)


def test_blocks_give_the_same_sweeps() -> None:
    u, v = (torch.as_tensor(cloud) for cloud in clouds(7, 9, 3, scale=5))
    whole, parts = (
        TransportProblem(u, v, u.new_full((7,), 1 / 7), v.new_full((9,), 1 / 9), block)
        for block in (None, 2)
    )
    for one, other in zip(whole.start(), parts.start(), strict=True):
        torch.testing.assert_close(one, other)
    plans = [
        torch.cat([plan for _, _, plan in problem.plans(*whole.start())()])
        for problem in (whole, parts)
    ]
    torch.testing.assert_close(plans[0], plans[1])
    # the columns are exact after a sweep
    assert plans[0].sum(0).tolist() == pytest.approx([1 / 9] * 9)


def test_a_start_near_the_solution_saves_sweeps() -> None:
    u, v = (torch.as_tensor(cloud) for cloud in clouds(40, 60, 8, scale=3))
    solver = Sinkhorn(max_iterations=10)
    assert not solved(solver, u, v).converged
    found = solved(Sinkhorn(), u, v)
    assert found.converged
    again = solved(solver, u, v, start=found.potentials)
    assert again.converged
    assert float(again.value) == pytest.approx(float(found.value), abs=1e-9)


def test_a_start_whose_plan_is_empty_does_no_harm() -> None:
    u, v = (torch.as_tensor(30 * cloud) for cloud in clouds(6, 8, 2))
    potentials = tuple(
        (torch.full((n,), -1e4, dtype=torch.float64), torch.full((m,), -1e4, dtype=torch.float64))
        for n, m in ((6, 6), (8, 8), (6, 8))
    )
    solver = Sinkhorn(epsilon=3.0)
    found = solved(solver, u, v, start=potentials)
    assert found.converged
    assert float(found.value) == pytest.approx(float(solved(solver, u, v).value), abs=1e-6)


# torch 2.11 says so, whatever is asked for
@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
@pytest.mark.parametrize(
    ("n", "m", "block", "sweeps"),
    [(1500, 1500, 250, 10), (1000, 1000, None, 10), (1100, 1100, None, 60), (900, 1250, None, 60)],
)
def test_no_more_memory_is_taken_than_is_said(
    n: int, m: int, block: int | None, sweeps: int
) -> None:
    """In blocks and whole; after many sweeps, where one in the log domain is made while a plan is
    held, too.

    Counted is what torch asks its allocator for, not what the process holds: that depends on the C
    library.
    """
    generator = torch.Generator().manual_seed(0)
    u, v = (30 * torch.randn(size, 2, dtype=torch.float64, generator=generator) for size in (n, m))
    solver = Sinkhorn(max_iterations=sweeps, block=block)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        solved(solver, u, v, sharp=True)
    taken = [
        event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"
    ]
    peak = max(
        accumulate(event.nbytes() for event in sorted(taken, key=lambda event: event.start_ns()))
    )
    said = solver.memory(n, m, 8)
    # some vectors come on top: up to 28 where this was written
    assert 0.3 * said < peak < said + 64 * 8 * (n + m)
