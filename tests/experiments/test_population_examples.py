"""Examples 1 and 2 of the paper have the values of datasets.md, sections 7.2 and 7.3, and their
samples agree.
"""

import math
from itertools import product

import numpy as np
import pytest
from montecarlo import check_distances, space_of, z_score
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize

from experiments.populations import Distances, Example1, IndependentLabels, uniform_distances

SHARES = (0.2, 0.5, 0.8)


# Example 1


def test_the_optimum_of_example_1_is_a_point_against_a_uniform() -> None:
    assert Example1(0.3).optimal_distances == Distances(pytest.approx(1 / 6), 0.5, 0.25, 1.0)
    assert Example1(0.3).optimal_distances.cramer == pytest.approx(1 / 12)


@pytest.mark.parametrize("p1", SHARES)
def test_the_risks_of_example_1_are_those_of_a_sample(p1: float) -> None:
    population = Example1(p1)
    X, y, a = population.sample(400_000, seed=1)
    assert abs(z_score(a, p1)) < 4
    assert population.optimal_risk == pytest.approx((1 - p1) / 12)
    assert abs(z_score((population.optimal_prediction(X) - y) ** 2, population.optimal_risk)) < 4
    assert abs(z_score((population.fair_prediction(X) - y) ** 2, population.fair_risk)) < 4
    check_distances(population.optimal_prediction(X), a, population.optimal_distances)
    check_distances(population.fair_prediction(X), a, Distances(0, 0, 0, 0))


@pytest.mark.parametrize("p1", [0.05, *SHARES, 0.95])
def test_no_hypothesis_on_quantiles_beats_the_fair_risk_of_example_1(p1: float) -> None:
    """min over q of p1 (q - u)^2 + p0 (q - 1/2)^2, level by level, plus the noise of group 0."""
    levels = (np.arange(20_000) + 0.5) / 20_000
    quantiles = p1 * levels + (1 - p1) / 2
    least = (p1 * (quantiles - levels) ** 2 + (1 - p1) * (quantiles - 0.5) ** 2).mean() + (
        1 - p1
    ) / 12
    assert Example1(p1).fair_risk == pytest.approx(least, abs=1e-9)
    assert Example1(p1).fair_risk == pytest.approx((1 - p1**2) / 12)


@pytest.mark.parametrize(
    ("p1", "right", "printed"), [(0.2, 0.08, 0.9013), (0.5, 0.0625, 0.3646), (0.8, 0.03, 0.1128)]
)
def test_the_risk_printed_in_the_paper_is_wrong(p1: float, right: float, printed: float) -> None:
    population = Example1(p1)
    assert population.printed_fair_risk == pytest.approx(printed, abs=5e-5)
    assert population.fair_risk == pytest.approx(right)
    X, y, _ = population.sample(100_000, seed=2)
    losses = (population.fair_prediction(X) - y) ** 2
    assert abs(z_score(losses, right)) < 4
    assert abs(z_score(losses, population.printed_fair_risk)) > 100
    # even the constant 1/2, which is SP-fair, would do better than the printed value
    assert population.printed_fair_risk > 1 / 12


def test_the_rearrangement_of_the_fair_hypothesis_in_group_0_is_as_good() -> None:
    population = Example1(0.3)
    assert (
        population.linear_risk(-0.3, 0.3)
        == population.linear_risk(0.3, 0.3)
        == pytest.approx(population.fair_risk)
    )
    assert population.linear_distances(-0.3, 0.3) == Distances(0, 0, 0, 0)


@pytest.mark.parametrize("p1", SHARES)
@pytest.mark.parametrize("t", [0.0, 0.3, 0.7, 1.0])
def test_between_the_optimum_and_the_fair_hypothesis_risk_and_distances_follow_the_formulas(
    p1: float, t: float
) -> None:
    population, p0 = Example1(p1), 1 - p1
    slopes = population.mixture(t)
    X, _, _ = population.sample(50)
    mixed = (1 - t) * population.optimal_prediction(X) + t * population.fair_prediction(X)
    assert_allclose(population.linear_prediction(X, **slopes), mixed, atol=1e-15)
    assert population.linear_risk(**slopes) == pytest.approx(p0 / 12 + t**2 * p0 * p1 / 12)
    distances = population.linear_distances(**slopes)
    assert distances.energy == pytest.approx((1 - t) ** 2 / (6 * (1 - t * p0)), abs=1e-15)
    assert distances.kolmogorov == pytest.approx((1 - t * p1 / (1 - t * p0)) / 2, abs=1e-15)


def test_the_risk_and_distances_of_any_linear_model_are_those_of_a_sample() -> None:
    population = Example1(0.4)
    X, y, a = population.sample(400_000, seed=3)
    prediction = population.linear_prediction(X, 0.3, 0.7)
    assert abs(z_score((prediction - y) ** 2, population.linear_risk(0.3, 0.7))) < 4
    check_distances(prediction, a, population.linear_distances(0.3, 0.7))


@pytest.mark.parametrize(("w0", "w1"), [(0.0, 2.0), (0.5, 2.0), (2.0, 0.5), (1.0, 1.0)])
def test_distances_of_centered_uniforms_agree_with_integrals(w0: float, w1: float) -> None:
    z = np.linspace(-1.5, 1.5, 300_001)
    cdf0 = np.clip(z / w0 + 0.5, 0, 1) if w0 else (z >= 0) * 1.0
    gap = cdf0 - np.clip(z / w1 + 0.5, 0, 1)
    distances, step = uniform_distances(w0, w1), z[1] - z[0]
    assert distances.energy == pytest.approx(2 * (gap**2).sum() * step, abs=1e-4)
    assert distances.wasserstein == pytest.approx(np.abs(gap).sum() * step, abs=1e-4)
    assert distances.kolmogorov == pytest.approx(np.abs(gap).max(), abs=1e-4)
    # densities cross at both narrow ends
    assert distances.total_variation == pytest.approx(2 * distances.kolmogorov)


TABLE_7_2 = [
    (0, 0, 1, 0.041667, 0.166667, 0.5),
    (0.05, 0.163745, 0.903286, 0.043174, 0.100913, 0.409362),
    (0.1, 0.269008, 0.821449, 0.046010, 0.061921, 0.336260),
    (0.25, 0.403928, 0.677651, 0.052794, 0.018427, 0.201964),
    (1, 0.481540, 0.547445, 0.059862, 0.001322, 0.060193),
    (math.inf, 0.5, 0.5, 0.0625, 0, 0),
]


@pytest.mark.parametrize(("strength", "s0", "s1", "risk", "energy", "kolmogorov"), TABLE_7_2)
def test_the_trade_off_of_example_1_has_the_printed_values(
    strength: float, s0: float, s1: float, risk: float, energy: float, kolmogorov: float
) -> None:
    point = Example1(0.5).tradeoff(strength)
    assert point.parameters == pytest.approx({"s0": s0, "s1": s1}, abs=5e-7)
    assert (point.risk, point.energy, point.kolmogorov) == pytest.approx(
        (risk, energy, kolmogorov), abs=5e-7
    )


@pytest.mark.parametrize(("p1", "strength"), list(product((0.1, 0.5, 0.9), (1e-3, 0.1, 1.0, 30.0))))
def test_no_linear_model_beats_the_trade_off_of_example_1(p1: float, strength: float) -> None:
    population = Example1(p1)

    def objective(slopes: np.ndarray) -> float:
        return (
            population.linear_risk(*slopes) + strength * population.linear_distances(*slopes).energy
        )

    found = optimize.minimize(
        objective, [0.3, 0.6], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-15}
    )
    point = population.tradeoff(strength)
    assert point.objective == pytest.approx(found.fun, abs=1e-12)
    assert list(point.parameters.values()) == pytest.approx(np.abs(found.x), abs=1e-5)


def test_the_trade_off_of_example_1_tends_to_the_best_fair_hypothesis() -> None:
    population = Example1(0.3)
    assert population.tradeoff(1e10).risk == pytest.approx(population.fair_risk, abs=1e-9)
    assert population.tradeoff(1e10).parameters == pytest.approx({"s0": 0.3, "s1": 0.3}, abs=1e-9)
    assert population.tradeoff(math.inf).objective == pytest.approx(population.fair_risk)


@pytest.mark.parametrize(
    ("strength", "best", "linear"), [(0.25, 0.05556, 0.05740), (1, 0.06019, 0.06118)]
)
def test_all_hypotheses_together_do_slightly_better_than_linear_ones(
    strength: float, best: float, linear: float
) -> None:
    assert Example1(0.5).unrestricted_tradeoff(strength).objective == pytest.approx(best, abs=5e-6)
    assert Example1(0.5).tradeoff(strength).objective == pytest.approx(linear, abs=5e-6)


@pytest.mark.parametrize("p1", SHARES)
def test_the_unrestricted_trade_off_begins_at_the_optimum_and_ends_at_the_best_fair_hypothesis(
    p1: float,
) -> None:
    population = Example1(p1)
    start, end = population.unrestricted_tradeoff(0), population.unrestricted_tradeoff(math.inf)
    assert (start.risk, end.risk) == pytest.approx(
        (population.optimal_risk, population.fair_risk), abs=1e-6
    )
    assert (start.energy, end.energy) == pytest.approx((1 / 6, 0), abs=1e-6)


# Example 2


@pytest.mark.parametrize("p1", SHARES)
def test_the_label_of_example_2_is_independent_of_the_group_and_the_optimum_is_not(
    p1: float,
) -> None:
    population = IndependentLabels(p1)
    assert_allclose(population.probability_table @ [0.8, 0.2], [0.5, 0.5])
    X, y, a = population.sample(200_000, seed=4)
    assert all(abs(z_score(y[a == group], 0.5)) < 4 for group in (0, 1))
    assert abs(z_score(X[:, 0], 0.2)) < 4
    assert abs(z_score(a, p1)) < 4
    decision = population.optimal_prediction(X)
    assert abs(z_score(decision[a == 1], 0.2)) < 4
    assert abs(z_score(decision[a == 0], 0.8)) < 4
    assert population.optimal_distances.kolmogorov == pytest.approx(0.6)
    check_distances(decision, a, population.optimal_distances)
    for x1, group in product((0, 1), repeat=2):
        rows = (X[:, 0] == x1) & (a == group)
        assert abs(z_score(y[rows], population.probability_table[group, x1])) < 4


def test_the_paper_misprints_a_probability_in_example_2() -> None:
    """P[P[Y=1|X] = 0.4 | A = 1] is 0.8, since 0.4 belongs to X1 = 0."""
    population = IndependentLabels(loss="squared")
    X, _, a = population.sample(100_000, seed=5)
    assert abs(z_score(population.optimal_prediction(X)[a == 1] == 0.4, 0.8)) < 4


@pytest.mark.parametrize("p1", [0.1, *SHARES])
def test_the_risks_of_example_2_follow_the_formulas_and_the_samples(p1: float) -> None:
    population, p0 = IndependentLabels(p1), 1 - p1
    assert_array_equal(population.optimal_table, [[1, 0], [0, 1]])
    assert population.optimal_risk == pytest.approx(0.34 * p1 + 0.42 * p0)
    keep, swap = 0.34 * p1 + 0.58 * p0, 0.66 * p1 + 0.42 * p0
    assert population.fair_risk == pytest.approx(keep if p1 > 1 / 3 else swap)
    assert_array_equal(population.fair_table, [[0, 1]] * 2 if p1 > 1 / 3 else [[1, 0]] * 2)
    X, y, _ = population.sample(200_000, seed=6)
    assert abs(z_score(population.optimal_prediction(X) != y, population.optimal_risk)) < 4
    assert abs(z_score(population.fair_prediction(X) != y, population.fair_risk)) < 4


def test_parity_costs_eight_points_in_example_2() -> None:
    assert IndependentLabels(0.5).optimal_risk == pytest.approx(0.38)
    assert IndependentLabels(0.5).fair_risk == pytest.approx(0.46)


def test_at_one_third_all_fair_classifiers_of_example_2_have_risk_one_half() -> None:
    population = IndependentLabels(1 / 3)
    assert [population.risk(table) for table in population.fair_classifiers()] == pytest.approx(
        [0.5] * 4
    )


@pytest.mark.parametrize("p1", SHARES)
def test_the_squared_risks_of_example_2_follow_the_formulas_and_the_enumeration(p1: float) -> None:
    population, p0 = IndependentLabels(p1, loss="squared"), 1 - p1
    assert_array_equal(population.optimal_table, [[0.55, 0.3], [0.4, 0.9]])
    excess = p0 * p1 * (0.8 * 0.15**2 + 0.2 * 0.6**2)
    assert population.fair_risk - population.optimal_risk == pytest.approx(excess)
    fit = space_of(population, (0.8, 0.2)).best_fair()
    assert fit.excess_risk == pytest.approx(excess)
    assert fit.prediction == pytest.approx(population.fair_table.ravel())
    assert fit.partition == ((0, 2), (1, 3))
    X, y, _ = population.sample(200_000, seed=7)
    assert abs(z_score((population.optimal_prediction(X) - y) ** 2, population.optimal_risk)) < 4
    assert abs(z_score((population.fair_prediction(X) - y) ** 2, population.fair_risk)) < 4


def test_the_squared_risks_of_example_2_are_the_printed_ones() -> None:
    population = IndependentLabels(0.5, loss="squared")
    assert population.optimal_risk == pytest.approx(0.225)
    assert population.fair_risk - population.optimal_risk == pytest.approx(0.0225)
    assert_allclose(population.fair_table, [[0.475, 0.6]] * 2)
