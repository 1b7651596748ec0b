"""The search for a minimum: smooth functions to the last digit, kinks without getting lost,
never upwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.seams.training import minimize, solver

Floats = NDArray[np.float64]


def same(vector: Floats) -> Floats:
    return vector


def rosenbrock(x: Floats) -> tuple[float, Floats]:
    rest, way = 1 - x[:-1], x[1:] - x[:-1] ** 2
    slope = np.zeros_like(x)
    slope[:-1] = -2 * rest - 400 * x[:-1] * way
    slope[1:] += 200 * way
    return float((rest**2 + 100 * way**2).sum()), slope


def largest(x: Floats) -> tuple[float, Floats]:
    """The largest of |x_k| k, with a kink wherever two of them are equal."""
    sizes = np.abs(x) * np.arange(1, len(x) + 1)
    at = int(sizes.argmax())
    slope = np.zeros_like(x)
    slope[at] = np.sign(x[at]) * (at + 1)
    return float(sizes[at]), slope


@pytest.mark.parametrize("size", [2, 7, 20])
def test_a_bent_valley_is_followed_to_its_end(size: int) -> None:
    found = minimize(rosenbrock, np.full(size, -0.5), same, tolerance=1e-14)
    assert found.converged
    np.testing.assert_allclose(found.at, 1, atol=1e-5)


def test_a_parabola_needs_one_step_where_its_curvature_is_known() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    matrix, goal = root @ root.T + np.eye(6), rng.normal(size=6)

    def parabola(x: Floats) -> tuple[float, Floats]:
        return float((x - goal) @ matrix @ (x - goal)) / 2, matrix @ (x - goal)

    found = minimize(parabola, np.zeros(6), lambda g: np.linalg.solve(matrix, g), tolerance=1e-14)
    assert found.iterations <= 2
    np.testing.assert_allclose(found.at, goal, rtol=1e-9)


@pytest.mark.parametrize("size", [2, 5, 10])
def test_kinks_do_not_stop_the_search(size: int) -> None:
    found = minimize(largest, np.linspace(1, 2, size), same, tolerance=1e-10)
    assert found.converged
    assert found.value < 1e-4


def test_no_step_goes_upwards_or_where_nothing_is_finite() -> None:
    seen: list[float] = []

    def barrier(x: Floats) -> tuple[float, Floats]:
        with np.errstate(invalid="ignore", divide="ignore"):
            value = float((x - np.log(x)).sum())
        seen.append(value)
        return value, 1 - 1 / x

    found = minimize(barrier, np.array([30.0, 0.01]), lambda g: 100 * g, tolerance=1e-14)
    assert any(not np.isfinite(value) for value in seen)
    np.testing.assert_allclose(found.at, 1, atol=1e-6)
    assert found.value <= seen[0]


def test_a_start_that_is_the_minimum_is_returned() -> None:
    found = minimize(rosenbrock, np.ones(3), same, tolerance=1e-12)
    assert found.iterations == 0
    assert found.converged
    assert found.at.tolist() == [1, 1, 1]


def test_running_out_of_iterations_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "MOST_ITERATIONS", 3)
    found = minimize(rosenbrock, np.full(5, -0.5), same, tolerance=1e-14)
    assert (found.iterations, found.converged) == (3, False)
    assert found.value < rosenbrock(np.full(5, -0.5))[0]


def test_what_the_preconditioner_leaves_alone_does_not_move() -> None:
    found = minimize(
        rosenbrock, np.array([0.5, 3.0]), lambda g: np.array([0.0, g[1]]), tolerance=1e-14
    )
    assert found.at[0] == 0.5
    assert found.at[1] == pytest.approx(0.25, abs=1e-7)


def test_a_preconditioner_is_renewed_where_the_search_stands_every_ten_iterations() -> None:
    asked: list[Floats] = []

    def here(x: Floats) -> Callable[..., Any]:
        asked.append(x)
        return lambda gradient: gradient / (1 + 100 * x**2)

    found = minimize(rosenbrock, np.full(7, -0.5), same, tolerance=1e-14, renew=here)
    np.testing.assert_allclose(found.at, 1, atol=1e-5)
    assert len(asked) == (found.iterations - 1) // 10 > 1
    heights = [rosenbrock(at)[0] for at in asked]
    assert heights == sorted(heights, reverse=True)
