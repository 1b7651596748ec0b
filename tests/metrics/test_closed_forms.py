"""Distributions whose distances are known in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import centered_uniforms, quantile_grid, shifted_normals
from scipy.stats import norm

from metrifair.metrics import (
    cramer_distance,
    distances,
    energy_distance,
    mmd_squared,
    total_variation,
)

N = 1000


def test_the_closed_forms_are_those_of_the_specification() -> None:
    expected = {"energy": 0.541807, "kolmogorov": 0.382925, "wasserstein": 1.0, "mmd": 0.177268}
    assert shifted_normals(1.0) == pytest.approx(expected, abs=3e-6)  # printed to six digits


@pytest.mark.oracle("metrics")
@pytest.mark.parametrize(("c", "s"), [(1.0, 1.0), (0.5, 2.0), (3.0, 1.0)])
def test_shifted_normals(c: float, s: float) -> None:
    z = quantile_grid(norm.ppf, N)
    exact = shifted_normals(c, s)
    found = distances(s * z + c, s * z)
    assert found["wasserstein"] == pytest.approx(c, abs=1e-12)
    assert found["kolmogorov"] == pytest.approx(exact["kolmogorov"], abs=4 / N)
    assert found["energy"] == pytest.approx(exact["energy"], abs=2 / N)
    # The median of the mixture lies where the densities cross: two bins lose nothing.
    assert total_variation(s * z + c, s * z, bins=2) == pytest.approx(
        exact["kolmogorov"], abs=4 / N
    )


@pytest.mark.parametrize(("c", "length"), [(1.0, 1.0), (0.5, 2.0), (2.0, 0.3)])
def test_the_mmd_of_shifted_normals(c: float, length: float) -> None:
    z = quantile_grid(norm.ppf, N)
    exact = shifted_normals(c, length=length)["mmd"]
    assert mmd_squared(z + c, z, bandwidth=length) == pytest.approx(exact, abs=2 / N)


@pytest.mark.parametrize(("narrow", "wide"), [(0.5, 1.0), (0.3, 0.9), (0.0, 2.0), (1.0, 1.0)])
def test_centered_uniforms(narrow: float, wide: float) -> None:
    grid = quantile_grid(lambda q: q - 0.5, N)
    found = distances(narrow * grid, wide * grid, ["energy", "kolmogorov"])
    assert found == pytest.approx(centered_uniforms(narrow, wide), abs=4 / N)


def test_a_uniform_distribution_against_a_point_mass() -> None:
    """Example 1: energy 1/6, squared L2 1/12, Kolmogorov 1/2, W1 1/4, total variation 1."""
    uniform, point = quantile_grid(lambda q: q, N), np.full(7, 0.5)
    found = distances(
        uniform, point, ["energy", "cramer", "kolmogorov", "wasserstein", "total_variation"]
    )
    assert found == pytest.approx(
        {
            "energy": 1 / 6,
            "cramer": 1 / 12,
            "kolmogorov": 1 / 2,
            "wasserstein": 1 / 4,
            "total_variation": 1,
        },
        abs=1e-6,
    )


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.5), (0.75, 0.1)])
def test_decisions(p: float, q: float) -> None:
    """Of Bernoulli variables every distance is a function of the difference of the rates."""
    u, v = np.arange(20) < 20 * p, np.arange(40) < 40 * q
    gap = abs(p - q)
    names = ["kolmogorov", "wasserstein", "total_variation", "lp", "cramer", "energy", "mmd"]
    expected = [gap, gap, gap, gap, gap**2, 2 * gap**2, 2 * gap**2 * (1 - np.exp(-0.5))]
    assert distances(u, v, names) == pytest.approx(
        dict(zip(names, expected, strict=True)), abs=1e-12
    )


@pytest.mark.parametrize("c", [0.1, 2.0])
def test_point_masses(c: float) -> None:
    assert energy_distance([0.0], [c]) == pytest.approx(2 * c)
    assert cramer_distance([0.0], [c]) == pytest.approx(c)
    assert mmd_squared([0.0], [c]) == pytest.approx(2 - 2 * np.exp(-(c**2) / 2))
    assert mmd_squared([0.0], [c], kernel="laplace") == pytest.approx(2 - 2 * np.exp(-c))
    assert mmd_squared([0.0], [c], kernel="inverse_multiquadric") == pytest.approx(
        2 - 2 / np.hypot(1, c)
    )
