"""Offset regression and the distances of normal distributions have the values of datasets.md,
section 7.5.
"""

import math
from itertools import product

import numpy as np
import pytest
from montecarlo import check_distances, z_score
from numpy.testing import assert_allclose
from scipy import integrate, optimize, stats

from experiments.populations import (
    Distances,
    ExactOffset,
    Normal,
    SlopeRegression,
    atomic_distances,
    normal_distances,
    normal_mmd_squared,
    unrestricted_tradeoff,
)


def test_the_distances_of_two_unit_normals_are_the_printed_ones() -> None:
    first, second = Normal(1.0, 1.0), Normal(0.0, 1.0)
    assert normal_distances(first, second).energy == pytest.approx(0.541807, abs=5e-7)
    assert normal_distances(first, second).kolmogorov == pytest.approx(0.382925, abs=5e-7)
    assert normal_distances(first, second).total_variation == pytest.approx(0.382925, abs=5e-7)
    assert normal_distances(first, second).wasserstein == pytest.approx(1)
    assert normal_mmd_squared(first, second, bandwidth=1.0) == pytest.approx(0.177268, abs=5e-7)


@pytest.mark.parametrize(("c", "s"), [(0.3, 1.0), (1.0, 0.4), (2.0, 3.0)])
def test_distances_of_shifted_normals_follow_the_formulas(c: float, s: float) -> None:
    t, phi = c / s, stats.norm.cdf
    g = 2 * (2 / math.sqrt(math.pi) * math.exp(-(t**2) / 4) + t * (2 * phi(t / math.sqrt(2)) - 1))
    distances = normal_distances(Normal(c, s), Normal(0.0, s))
    assert distances.energy == pytest.approx(s * (g - 4 / math.sqrt(math.pi)))
    assert distances.kolmogorov == pytest.approx(2 * phi(c / (2 * s)) - 1)
    assert distances.total_variation == pytest.approx(2 * phi(c / (2 * s)) - 1)
    assert distances.wasserstein == pytest.approx(c)


@pytest.mark.parametrize("bandwidth", [0.5, 1.0, 2.0])
def test_the_mmd_of_unit_normals_follows_the_formula(bandwidth: float) -> None:
    total = bandwidth**2 + 2
    expected = 2 * bandwidth / math.sqrt(total) * (1 - math.exp(-(0.7**2) / (2 * total)))
    assert normal_mmd_squared(Normal(0.7, 1.0), Normal(0.0, 1.0), bandwidth) == pytest.approx(
        expected
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [((0, 1), (0, 2.5)), ((1, 0.5), (-0.5, 2)), ((3, 1), (0, 1.001)), ((0, 2), (0.2, 0.3))],
)
def test_distances_of_any_two_normals_agree_with_integrals(
    first: tuple[float, float], second: tuple[float, float]
) -> None:
    p, q = stats.norm(*first), stats.norm(*second)
    z = np.linspace(-25, 25, 1_000_001)
    gap = p.cdf(z) - q.cdf(z)
    distances = normal_distances(Normal(*first), Normal(*second))
    assert distances.energy == pytest.approx(2 * integrate.trapezoid(gap**2, z), abs=1e-8)
    assert distances.wasserstein == pytest.approx(integrate.trapezoid(np.abs(gap), z), abs=1e-8)
    assert distances.kolmogorov == pytest.approx(np.abs(gap).max(), abs=1e-8)
    assert distances.total_variation == pytest.approx(
        0.5 * integrate.trapezoid(np.abs(p.pdf(z) - q.pdf(z)), z), abs=1e-8
    )
    swapped = normal_distances(Normal(*second), Normal(*first))
    assert list(vars(swapped).values()) == pytest.approx(list(vars(distances).values()))


def test_the_mmd_of_normals_is_that_of_a_sample() -> None:
    rng = np.random.default_rng(0)
    u, v = rng.normal(0.5, 2.0, (2, 200_000)), rng.normal(0.0, 0.7, (2, 200_000))

    def kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.exp(-((x - y) ** 2) / (2 * 1.5**2))

    values = kernel(*u) + kernel(*v) - kernel(u[0], v[0]) - kernel(u[1], v[1])
    assert abs(z_score(values, normal_mmd_squared(Normal(0.5, 2.0), Normal(0.0, 0.7), 1.5))) < 4


def test_distances_of_atoms_agree_with_scipy() -> None:
    rng = np.random.default_rng(1)
    values0, values1 = rng.integers(5, size=4) / 4, rng.integers(5, size=6) / 4
    masses0, masses1 = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(6))
    distances = atomic_distances(values0, masses0, values1, masses1)
    assert distances.wasserstein == pytest.approx(
        stats.wasserstein_distance(values0, values1, masses0, masses1)
    )
    assert distances.energy == pytest.approx(
        stats.energy_distance(values0, values1, masses0, masses1) ** 2
    )


def test_atoms_have_the_distances_that_one_finds_on_paper() -> None:
    distances = atomic_distances([0, 1], [0.5, 0.5], [1, 3], [0.25, 0.75])
    # gaps of the CDFs: 1/2 on [0, 1], 3/4 on [1, 3]
    assert distances == Distances(2 * (1 / 4 + 2 * 9 / 16), 3 / 4, 1 / 2 + 3 / 2, 3 / 4)
    assert atomic_distances([1.0], [1.0], [0.1 + 0.9], [1.0]) == Distances(0, 0, 0, 0)


POPULATIONS = [
    ExactOffset((0.6, 0.8), delta=1.0, p1=0.5),
    ExactOffset((1.0, -2.0, 0.5), delta=-0.7, p1=0.3),
    SlopeRegression((1.0, 2.0), delta=0.5, p1=0.3),
    SlopeRegression((1.0, 2.0), delta=-0.8, p1=0.6),
]


@pytest.mark.parametrize("population", POPULATIONS)
def test_the_exact_values_of_offset_regression_are_those_of_a_sample(
    population: ExactOffset,
) -> None:
    X, y, a = population.sample(200_000, seed=1)
    theta, added = np.array(population.theta), population.delta * (1 - a)
    truth = X[:, :-1] @ theta + (
        added if not isinstance(population, SlopeRegression) else added * X[:, :-1].sum(axis=1)
    )
    assert_allclose(y, truth, atol=1e-12)
    assert_allclose(population.optimal_prediction(X), y)
    assert abs(z_score(a, population.p1)) < 4
    for group, exact in enumerate(population.groups):
        assert abs(z_score(y[a == group], exact.mean)) < 4
        assert abs(z_score((y[a == group] - exact.mean) ** 2, exact.deviation**2)) < 4
    check_distances(y, a, population.optimal_distances)
    fair = population.fair_prediction(X)
    check_distances(fair, a, Distances(0, 0, 0, 0))
    losses = (fair - y) ** 2
    # an offset is mended by the same constant for everybody in a group: the mean loss varies with
    # the group sizes only
    assert (
        abs(z_score(losses, population.fair_risk)) < 4
        if losses.std() > 1e-9
        else population.fair_risk == losses[0]
    )
    point, prediction = population.tradeoff(0.8), population.tradeoff_prediction(X, 0.8)
    assert abs(z_score((prediction - y) ** 2, point.risk)) < 4
    check_distances(prediction, a, _distances_at(population, point.parameters))


def _distances_at(population: ExactOffset, parameters: dict[str, float]) -> Distances:
    if not isinstance(population, SlopeRegression):
        return normal_distances(
            Normal(parameters["c"], parameters["s"]), Normal(0.0, parameters["s"])
        )
    return normal_distances(Normal(0.0, parameters["s0"]), Normal(0.0, parameters["s1"]))


def test_the_best_fair_hypotheses_are_the_stated_ones() -> None:
    offset = ExactOffset((0.6, 0.8), delta=1.0, p1=0.3)
    X, _, _ = offset.sample(20)
    assert_allclose(offset.fair_prediction(X), X[:, :2] @ [0.6, 0.8] + 0.7)
    assert offset.fair_risk == pytest.approx(0.7 * 0.3)
    slope = SlopeRegression((3.0, 0.0), delta=4.0, p1=0.3)
    assert slope.fair_risk == pytest.approx(0.7 * 0.3 * (math.hypot(7, 4) - 3) ** 2)
    assert slope.optimal_distances.wasserstein == pytest.approx(
        (math.hypot(7, 4) - 3) * math.sqrt(2 / math.pi)
    )


# datasets.md prints 0.068051 and 0.210700 for the risks at 0.5 and 5: one unit less than its own c
# and s give.
TABLE_7_5 = [
    (0, 1, 1, 0, 0.541807, 0.382925),
    (0.1, 0.826277, 1.017161, 0.007839, 0.368614, 0.315381),
    (0.5, 0.481732, 1.030023, 0.068052, 0.125967, 0.184895),
    (1, 0.314250, 1.026148, 0.118247, 0.054084, 0.121697),
    (2, 0.184512, 1.018443, 0.166595, 0.018834, 0.072178),
    (5, 0.082147, 1.009335, 0.210701, 0.003771, 0.032460),
]


@pytest.mark.parametrize(("strength", "c", "s", "risk", "energy", "kolmogorov"), TABLE_7_5)
def test_the_trade_off_of_offset_regression_has_the_printed_values(
    strength: float, c: float, s: float, risk: float, energy: float, kolmogorov: float
) -> None:
    point = ExactOffset((0.6, 0.8), delta=1.0, p1=0.5).tradeoff(strength)
    assert point.parameters == pytest.approx({"c": c, "s": s}, abs=5.01e-7)
    assert (point.risk, point.energy, point.kolmogorov) == pytest.approx(
        (risk, energy, kolmogorov), abs=5e-7
    )


@pytest.mark.parametrize(("population", "strength"), list(product(POPULATIONS, (0.01, 0.5, 20.0))))
def test_no_linear_model_beats_the_trade_off(population: ExactOffset, strength: float) -> None:
    p0, p1 = 1 - population.p1, population.p1
    first, second = population.groups

    def objective(parameters: np.ndarray) -> float:
        if (parameters[-1] <= 0) or (
            isinstance(population, SlopeRegression) and parameters[0] <= 0
        ):
            return math.inf
        names = ("c", "s") if not isinstance(population, SlopeRegression) else ("s0", "s1")
        energy = _distances_at(
            population, dict(zip(names, map(float, parameters), strict=True))
        ).energy
        if not isinstance(population, SlopeRegression):
            c, s = parameters
            return (
                p0 * p1 * (population.delta - c) ** 2
                + (s - second.deviation) ** 2
                + strength * energy
            )
        s0, s1 = parameters
        return (
            p0 * (s0 - first.deviation) ** 2 + p1 * (s1 - second.deviation) ** 2 + strength * energy
        )

    start = (
        [0.1 * population.delta, second.deviation]
        if not isinstance(population, SlopeRegression)
        else [2.0, 2.0]
    )
    options = {"xatol": 1e-9, "fatol": 1e-14, "maxiter": 2000}
    found = optimize.minimize(objective, start, method="Nelder-Mead", options=options)
    point = population.tradeoff(strength)
    assert point.objective == pytest.approx(found.fun, abs=1e-10)
    assert list(point.parameters.values()) == pytest.approx(found.x, abs=1e-5)


@pytest.mark.parametrize("population", POPULATIONS)
def test_the_trade_off_runs_from_the_optimum_to_the_best_fair_hypothesis(
    population: ExactOffset,
) -> None:
    assert population.tradeoff(0).risk == pytest.approx(0, abs=1e-25)
    assert population.tradeoff(0).energy == pytest.approx(population.optimal_distances.energy)
    assert population.tradeoff(math.inf).risk == pytest.approx(population.fair_risk)
    assert population.tradeoff(1e9).risk == pytest.approx(population.fair_risk, abs=1e-7)
    risks = [population.tradeoff(strength).risk for strength in (0, 0.1, 1, 10, 100, math.inf)]
    energies = [population.tradeoff(strength).energy for strength in (0, 0.1, 1, 10, 100, math.inf)]
    assert risks == sorted(risks)
    assert energies == sorted(energies, reverse=True)


def test_all_hypotheses_together_do_at_least_as_well_as_linear_ones() -> None:
    population = ExactOffset(delta=1.0)
    for strength in (0.1, 1.0, 5.0, math.inf):
        best = unrestricted_tradeoff(
            stats.norm(1, 1).cdf, stats.norm(0, 1).cdf, p1=0.5, strength=strength, support=(-7, 8)
        )
        linear = population.tradeoff(strength).objective
        assert 0.9 * linear < best.objective < linear + 1e-6


def test_the_reference_draws_its_coefficients_around_two() -> None:
    population = ExactOffset.drawn(4000, seed=1)
    assert abs(z_score(population.theta, 2.0)) < 4
    assert np.std(population.theta) == pytest.approx(1, abs=0.05)
    assert population == ExactOffset.drawn(4000, seed=1) != ExactOffset.drawn(4000, seed=2)
