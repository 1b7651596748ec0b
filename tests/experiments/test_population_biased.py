"""Biased targets have the values of datasets.md, section 7.4; finite spaces are searched
through.
"""

from itertools import permutations, product

import numpy as np
import pytest
from montecarlo import check_distances, space_of, z_score
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri

from experiments.populations import (
    BiasedClassification,
    BiasedRegression,
    FiniteSpace,
    ShiftedTarget,
    fair_by_sorting,
    table_distances,
)

SHARES = (0.2, 0.5, 0.8)
DELTAS = (0.1, 0.25, 0.4, 0.6, 0.9, 1.5)


@pytest.mark.parametrize(
    ("delta", "unfair", "fair"),
    [
        (0.1, 0.0025, 0.00125),
        (0.25, 0.015625, 0.0078125),
        (0.4, 0.04, 0.02),
        (0.6, 0.09, 0.17),
        (0.9, 0.2025, 0.22625),
    ],
)
def test_the_risks_of_the_shrunken_target_are_the_printed_ones(
    delta: float, unfair: float, fair: float
) -> None:
    population = BiasedRegression("shrink", delta=delta, beta=1.0, m=5, p1=0.5, sigma=0.3)
    assert population.optimal_true_risk - 0.09 == pytest.approx(unfair)
    assert population.fair_true_risk - 0.09 == pytest.approx(fair)


@pytest.mark.parametrize(("p1", "delta", "m"), list(product(SHARES, DELTAS, (2, 5, 8))))
def test_the_risks_of_the_shrunken_target_follow_the_formulas_on_both_sides_of_the_jump(
    p1: float, delta: float, m: int
) -> None:
    population = BiasedRegression("shrink", delta=delta, beta=0.9, m=m, p1=p1, sigma=0.0)
    p0, s, variance = 1 - p1, 1 - 2 * delta * 0.9, (m + 1) / (12 * (m - 1))
    assert population.optimal_true_risk == pytest.approx(p1 * (1 - s) ** 2 * variance)
    kept = p1**2 * (1 - s) ** 2 * variance
    reversed_ = (p0 * p1**2 * (1 - abs(s)) ** 2 + p1 * (1 + p0 + p1 * abs(s)) ** 2) * variance
    assert population.fair_true_risk == pytest.approx(kept if s > 0 else reversed_)


@pytest.mark.parametrize(("p1", "delta"), list(product(SHARES, DELTAS)))
def test_parity_mends_a_shifted_target_at_every_delta(p1: float, delta: float) -> None:
    population = BiasedRegression("shift", delta=delta, beta=0.7, p1=p1, sigma=0.0)
    assert population.optimal_true_risk == pytest.approx(p1 * (delta * 0.7) ** 2)
    assert population.fair_true_risk == pytest.approx((p1 * delta * 0.7) ** 2)
    assert population.fair_true_risk < population.optimal_true_risk


@pytest.mark.parametrize(("p1", "beta"), list(product(SHARES, (0.5, 1.0, 2.0))))
def test_the_theorem_holds_until_the_bias_reverses_the_order_and_fails_right_after(
    p1: float, beta: float
) -> None:
    threshold = 1 / (2 * beta)
    for delta in (1e-3, 0.5 * threshold, 0.99 * threshold):
        small = BiasedRegression("shrink", delta=delta, beta=beta, p1=p1, sigma=0.0)
        assert small.fair_true_risk < small.optimal_true_risk
    large = BiasedRegression("shrink", delta=1.01 * threshold, beta=beta, p1=p1, sigma=0.0)
    assert large.fair_true_risk > large.optimal_true_risk


@pytest.mark.parametrize("kind", ["shift", "shrink"])
def test_without_bias_the_group_is_irrelevant_and_the_optimum_is_fair(kind: str) -> None:
    """The proposition: if P(Y|X) is independent of A, the unpenalized optimum satisfies parity."""
    population = BiasedRegression(kind, delta=0.4).truth()
    assert table_distances(population.optimal_table).kolmogorov == 0
    assert_array_equal(population.fair_table, population.optimal_table)
    assert space_of(population).is_fair(population.optimal_table.ravel())
    assert space_of(population).best_fair().excess_risk == pytest.approx(0, abs=1e-15)
    assert table_distances(BiasedClassification(delta=0.4).truth().optimal_table).kolmogorov == 0


def test_with_bias_the_optimum_is_unfair_and_the_proposition_does_not_apply() -> None:
    population = BiasedRegression("shift", delta=0.4)
    assert table_distances(population.optimal_table).kolmogorov > 0
    assert not space_of(population).is_fair(population.optimal_table.ravel())


def test_at_the_threshold_a_group_without_order_keeps_that_of_the_feature() -> None:
    """Rounding must not order what is equal on paper: for some m and beta the values differ in
    the last bit.
    """
    for m, beta in product(range(2, 12), (0.7, 0.9, 1.0, 1.1)):
        population = BiasedRegression("shrink", delta=1 / (2 * beta), beta=beta, m=m)
        assert (np.diff(population.fair_table) > 0).all()


@pytest.mark.parametrize(("kind", "delta"), list(product(("shift", "shrink"), (0.3, 0.8))))
def test_the_risks_of_biased_regression_are_those_of_a_sample(kind: str, delta: float) -> None:
    population = BiasedRegression(kind, delta=delta, m=4, p1=0.3, sigma=0.2)
    X, y, a = population.sample(200_000, seed=1)
    X0, y0, a0 = population.truth().sample(200_000, seed=1)
    assert_array_equal(X0, X)
    assert_array_equal(a0, a)
    assert abs(z_score(a, 0.3)) < 4
    assert abs(z_score(X[:, 0], 1.5)) < 4
    optimal, fair = population.optimal_prediction(X), population.fair_prediction(X)
    assert abs(z_score((optimal - y) ** 2, population.optimal_risk)) < 4
    assert abs(z_score((fair - y) ** 2, population.fair_risk)) < 4
    assert abs(z_score((optimal - y0) ** 2, population.optimal_true_risk)) < 4
    assert abs(z_score((fair - y0) ** 2, population.fair_true_risk)) < 4
    check_distances(optimal, a, table_distances(population.optimal_table))


@pytest.mark.parametrize(
    ("delta", "unfair", "fair"),
    [
        (0.0, 0.513008, 0.513008),
        (0.1, 0.517941, 0.515758),
        (0.3, 0.548639, 0.533499),
        (0.6, 0.651926, 0.584270),
    ],
)
def test_the_risks_of_unrecorded_positives_are_the_printed_ones(
    delta: float, unfair: float, fair: float
) -> None:
    population = BiasedClassification(delta=delta, m=5, p1=0.5)
    assert population.optimal_true_risk == pytest.approx(unfair, abs=5e-7)
    assert population.fair_true_risk == pytest.approx(fair, abs=5e-7)
    assert_allclose(population.fair_table, population.truth().optimal_table * (1 - 0.5 * delta))


@pytest.mark.parametrize("delta", [0.2, 0.7])
def test_the_risks_of_biased_classification_are_those_of_a_sample(delta: float) -> None:
    population = BiasedClassification(delta=delta, m=4, p1=0.3)
    X, y, a = population.sample(200_000, seed=2)
    y0 = population.truth().sample(200_000, seed=2).y

    def losses(prediction: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return -np.where(labels == 1, np.log(prediction), np.log1p(-prediction))

    optimal, fair = population.optimal_prediction(X), population.fair_prediction(X)
    assert abs(z_score(losses(optimal, y), population.optimal_risk)) < 4
    assert abs(z_score(losses(fair, y), population.fair_risk)) < 4
    assert abs(z_score(losses(optimal, y0), population.optimal_true_risk)) < 4
    assert abs(z_score(losses(fair, y0), population.fair_true_risk)) < 4
    assert (y <= y0).all()
    assert (y[a == 0] == y0[a == 0]).all()
    assert abs(z_score(y[(a == 1) & (y0 == 1)], 1 - delta)) < 4
    check_distances(optimal, a, table_distances(population.optimal_table))


def test_when_no_positive_of_group_1_is_recorded_the_true_risk_is_infinite_and_parity_makes_it_finite() -> (
    None
):
    population = BiasedClassification(delta=1.0)
    assert population.optimal_true_risk == np.inf
    assert np.isfinite(
        [population.optimal_risk, population.fair_risk, population.fair_true_risk]
    ).all()


def _entropy(probability: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    return -probability * np.log(prediction) - (1 - probability) * np.log1p(-prediction)


def _square(probability: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    return (probability - prediction) ** 2


@pytest.mark.parametrize("loss", [_square, _entropy])
def test_the_sorting_rule_is_the_best_of_all_pairings(loss) -> None:
    rng = np.random.default_rng(3)
    for p1 in SHARES:
        optimum = rng.uniform(0.05, 0.95, (2, 5))

        def risk(fair0: np.ndarray, fair1: np.ndarray, optimum=optimum, p1=p1) -> float:
            return float(
                (1 - p1) * loss(optimum[0], fair0).mean() + p1 * loss(optimum[1], fair1).mean()
            )

        def paired(order: list[int], optimum=optimum, p1=p1) -> float:
            mean = (1 - p1) * optimum[0] + p1 * optimum[1, order]
            fair1 = np.empty(5)
            fair1[order] = mean
            return risk(mean, fair1)

        pairings = [paired(list(order)) for order in permutations(range(5))]
        assert risk(*fair_by_sorting(optimum, p1)) == pytest.approx(min(pairings))
        assert max(pairings) > min(pairings) + 1e-3


# all SP-fair hypotheses of a finite space


@pytest.mark.parametrize(("m", "count"), [(1, 1), (2, 3), (3, 16), (4, 131), (5, 1496)])
def test_the_fair_partitions_of_equal_atoms_are_as_many_as_there_are_block_permutations(
    m: int, count: int
) -> None:
    """1, 3, 16, 131, 1496: partitions of m white and m black points into blocks with as many of
    each.
    """
    space = FiniteSpace([(0.3 / m, 0.0)] * m + [(0.0, 0.7 / m)] * m, [0.0] * (2 * m))
    partitions = list(space.fair_partitions())
    assert len(partitions) == len(set(partitions)) == count
    for partition in partitions:
        assert sorted(atom for block in partition for atom in block) == list(range(2 * m))
        assert all(sum(atom < m for atom in block) * 2 == len(block) for block in partition)


@pytest.mark.parametrize(
    ("kind", "delta", "p1"),
    [*product(("shift", "shrink"), (0.2, 0.45, 0.7), (0.3, 0.5)), ("shrink", 1.4, 0.8)],
)
def test_enumeration_and_sorting_find_the_same_best_fair_hypothesis(
    kind: str, delta: float, p1: float
) -> None:
    population = BiasedRegression(kind, delta=delta, p1=p1, m=5, sigma=0.0)
    fit = space_of(population).best_fair()
    assert fit.excess_risk == pytest.approx(population.fair_risk, abs=1e-14)
    assert fit.prediction == pytest.approx(population.fair_table.ravel())
    assert space_of(population).is_fair(np.array(fit.prediction))


def test_a_subspace_for_each_partition_and_nothing_else_is_fair() -> None:
    """On all hypotheses with values 0, 1, 2: fair iff constant on the blocks of some partition."""
    space = FiniteSpace([(0.2, 0.0), (0.3, 0.0), (0.0, 0.2), (0.0, 0.3)], [0.0, 1.0, 0.0, 1.0])
    partitions = list(space.fair_partitions())
    assert sorted(partitions) == [((0, 1, 2, 3),), ((0, 2), (1, 3))]
    for values in product((0.0, 1.0, 2.0), repeat=4):
        constant = any(
            all(len({values[atom] for atom in block}) == 1 for block in part) for part in partitions
        )
        assert space.is_fair(np.array(values)) == constant


def test_atoms_shared_by_both_groups_need_no_partner() -> None:
    """Where the group is no feature, an atom may have mass in both groups: fair alone if the
    shares agree.
    """
    space = FiniteSpace([(0.1, 0.3), (0.05, 0.15), (0.1, 0.3)], [0.0, 1.0, 2.0])
    assert ((0,), (1,), (2,)) in set(space.fair_partitions())
    assert space.best_fair().excess_risk == 0
    uneven = FiniteSpace([(0.2, 0.1), (0.1, 0.2), (0.2, 0.2)], [0.0, 1.0, 2.0])
    assert uneven.best_fair().partition == ((0, 1), (2,))
    assert uneven.best_fair().prediction == pytest.approx((0.5, 0.5, 2.0))
    assert uneven.best_fair().excess_risk == pytest.approx(0.6 * 0.25)


@pytest.mark.parametrize("p1", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("bias", [0.0, 0.05, 0.7])
def test_the_squared_error_of_a_shifted_target_is_that_of_the_biased_regression(
    bias: float, p1: float
) -> None:
    own, known = (
        ShiftedTarget(bias=bias, p1=p1),
        BiasedRegression("shift", delta=bias, p1=p1, sigma=0.0),
    )
    assert own.optimal_true_risk == pytest.approx(known.optimal_true_risk, abs=1e-12)
    assert own.fair_true_risk == pytest.approx(known.fair_true_risk, abs=1e-12)
    np.testing.assert_allclose(own.fair_table, known.fair_table, atol=1e-12)


@pytest.mark.parametrize("tikhonov", [0.5, 1.0, 9.0])
def test_a_tikhonov_term_divides_the_gain_of_parity_by_one_plus_its_weight(tikhonov: float) -> None:
    plain, held = (ShiftedTarget(bias=0.3, p1=0.4, tikhonov=weight) for weight in (0.0, tikhonov))
    gains = [one.optimal_true_risk - one.fair_true_risk for one in (plain, held)]
    assert gains[0] == pytest.approx(0.6 * 0.4 * 0.3**2, abs=1e-12)
    assert gains[1] == pytest.approx(gains[0] / (1 + tikhonov), abs=1e-12)


@pytest.mark.parametrize(("p1", "fair"), [(0.3, 0.0), (0.7, 0.2)])
def test_absolute_errors_without_noise_follow_the_larger_group(p1: float, fair: float) -> None:
    """Not strongly convex: the theorem does not hold, however small the bias."""
    one = ShiftedTarget("absolute_error", bias=0.2, p1=p1)
    assert one.optimal_true_risk == pytest.approx(p1 * 0.2, abs=1e-12)
    assert one.fair_true_risk == pytest.approx(fair, abs=1e-12)


@pytest.mark.parametrize("loss", ["absolute_error", "huber"])
@pytest.mark.parametrize("p1", [0.3, 0.5, 0.7])
def test_noise_makes_small_biases_safe_for_other_losses(loss: str, p1: float) -> None:
    """Where the expected loss bends, it does so strongly at its least: parity helps at small
    biases.
    """
    for bias in (0.01, 0.1):
        one = ShiftedTarget(loss, bias=bias, p1=p1, sigma=0.3)
        assert one.fair_true_risk < 0.95 * one.optimal_true_risk


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
@pytest.mark.parametrize("sigma", [0.0, 0.4])
def test_risks_of_a_shifted_target_are_those_of_a_sample(loss: str, sigma: float) -> None:
    """The mean loss over quantiles of the noise, minimized on a fine grid."""
    one = ShiftedTarget(loss, bias=0.4, p1=0.65, sigma=sigma, m=2, tikhonov=0.2)
    nodes = ndtri((np.arange(1000) + 0.5) / 1000)
    grid = np.linspace(-1.5, 1.5, 1501)

    def risk(value: np.ndarray, target: float) -> np.ndarray:
        error = value[:, None] - target - sigma * nodes
        far = np.abs(error)
        huber = np.where(far <= 0.25, error**2 / 2, 0.25 * (far - 0.125))
        losses = {"squared_error": error**2, "absolute_error": far, "huber": huber}[loss]
        return losses.mean(-1) + 0.2 * value**2

    expected = []
    for f in (0.0, 1.0):
        true, low = risk(grid, f), risk(grid, f - 0.4)
        fair, own = (
            grid[np.argmin(0.35 * true + 0.65 * low)],
            (grid[np.argmin(true)], grid[np.argmin(low)]),
        )
        values = [np.interp(at, grid, true) - true.min() for at in (fair, *own)]
        expected.append((values[0], 0.35 * values[1] + 0.65 * values[2]))
    found = one.fair_true_risk, one.optimal_true_risk
    assert found == pytest.approx(np.mean(expected, axis=0), abs=2e-3)


def test_only_constants_are_fair_for_every_attribute() -> None:
    """All hypotheses of at most three values on four atoms of any mass."""
    space = FiniteSpace([(0.1, 0.2), (0.25, 0.05), (0.1, 0.1), (0.15, 0.05)], [0.0, 1.0, 2.0, 3.0])
    for values in product((0.0, 0.4, 1.0), repeat=4):
        prediction = np.array(values)
        atoms, gap = space.worst_attribute(prediction)
        assert gap == pytest.approx(0.0 if len(set(values)) == 1 else 1.0, abs=1e-12)
        inside = np.isin(np.arange(4), atoms)
        # those inside are all predicted lower, or all higher, than those outside
        if len(set(values)) > 1:
            ends = (
                prediction[inside].max() < prediction[~inside].min(),
                prediction[~inside].max() < prediction[inside].min(),
            )
            assert any(ends)


@pytest.mark.parametrize("p1", [0.2, 0.5])
def test_a_target_that_is_the_group(p1: float) -> None:
    """As a feature, its optimum is as unfair as can be; told by nothing, its optimum is
    constant and fair.
    """
    told = FiniteSpace([(1 - p1, 0.0), (0.0, p1)], [0.0, 1.0])
    assert not told.is_fair(np.array(told.optimum))
    assert told.worst_attribute(np.array(told.optimum))[1] == 1.0
    assert told.best_fair().excess_risk == pytest.approx(p1 * (1 - p1))
    untold = FiniteSpace([(0.3 * (1 - p1), 0.3 * p1), (0.7 * (1 - p1), 0.7 * p1)], [p1, p1])
    assert untold.is_fair(np.array(untold.optimum))
    assert untold.best_fair().excess_risk == pytest.approx(0.0, abs=1e-15)
