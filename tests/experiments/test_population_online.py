"""The online stream has the values of datasets.md, section 7.1, and is the same however it is
cut.
"""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from montecarlo import z_score
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from experiments.populations import (
    OnlineRegression,
    reference_slopes,
    regime_estimate,
    regime_tradeoff,
    unrestricted_tradeoff,
)


@pytest.fixture(scope="module")
def reference() -> OnlineRegression:
    return OnlineRegression(slopes=reference_slopes())


def test_the_slopes_of_the_reference_are_the_printed_ones() -> None:
    first, second = reference_slopes()
    rows = [first[0], first[-1], second[0], second[-1]]
    printed = [
        [-0.014974, 1.072887, -1.646090, -1.471878, -0.770309],
        [-1.031060, 1.261876, 1.172642, -0.886990, -0.072165],
        [1.279121, 1.988266, 0.793764, 0.270186, 1.340973],
        [-1.297394, 0.998630, 0.418603, -1.560168, -1.151639],
    ]
    assert_allclose(rows, printed, atol=5.01e-7, rtol=0)


def test_the_slopes_of_the_reference_leave_the_generator_of_torch_alone() -> None:
    torch.manual_seed(0)
    drawn = [(4 * torch.rand(10, 5) - 2).numpy() for _ in range(2)]
    torch.manual_seed(7)
    before = torch.get_rng_state()
    assert_array_equal(reference_slopes(), drawn)
    assert torch.equal(torch.get_rng_state(), before)


TRUTH = [
    (0, (2.2574, 3.5151), 1.4054, 0.4496, 0.8218, 1.2577, 0.3955, (0.308, 0.246, 0.031)),
    (1, (2.8188, 3.6822), 0.9022, 0.3866, 0.4822, 0.8635, 0.1898, (0.154, 0.127, 0.0134)),
]


@pytest.mark.parametrize(
    ("regime", "means", "variance", "kolmogorov", "energy", "w1", "fair_risk", "best"), TRUTH
)
def test_the_estimates_agree_with_the_table_of_truth(
    reference: OnlineRegression, regime, means, variance, kolmogorov, energy, w1, fair_risk, best
) -> None:
    n = 1_000_000
    estimate = regime_estimate(reference, regime, n=n, seed=1)
    # standard error of a mean of n/2 values, and that of the table (3e-4)
    error = math.sqrt(variance) * math.sqrt(2 / n) + 3e-4
    assert estimate.means == pytest.approx(means, abs=4 * error)
    assert estimate.variance == pytest.approx(variance, abs=8 * error)
    assert estimate.kolmogorov == pytest.approx(kolmogorov, abs=4 * error)
    assert (estimate.energy, estimate.wasserstein) == pytest.approx((energy, w1), abs=2 * error)
    assert estimate.fair_risk == pytest.approx(fair_risk, abs=2 * error)
    floor = regime_tradeoff(reference, 2.0, regime, n=400_000, seed=1)
    # the last column is printed to three digits
    assert (floor.objective, floor.risk) == pytest.approx(best[:2], abs=1e-3)
    assert floor.energy == pytest.approx(best[2], abs=5e-4)
    parity = regime_tradeoff(reference, math.inf, regime, n=400_000, seed=1)
    assert parity.risk == pytest.approx(fair_risk, abs=4e-3)


def test_the_estimates_agree_with_those_of_scipy_on_independent_rows(
    reference: OnlineRegression,
) -> None:
    _, y, a = reference.test_set(200_000, regime=1, seed=3)
    estimate = regime_estimate(reference, 1, n=400_000, seed=4)
    assert y.var() == pytest.approx(estimate.variance, abs=0.015)
    u, v = y[a == 0], y[a == 1]
    assert abs(z_score(u, estimate.means[0])) < 5
    assert abs(z_score(v, estimate.means[1])) < 5
    assert stats.wasserstein_distance(u, v) == pytest.approx(estimate.wasserstein, abs=0.02)
    assert stats.energy_distance(u, v) ** 2 == pytest.approx(estimate.energy, abs=0.02)
    assert stats.ks_2samp(u, v, method="asymp").statistic == pytest.approx(
        estimate.kolmogorov, abs=0.015
    )


def test_the_floor_is_that_of_direct_minimization_over_quantiles() -> None:
    """Gradient descent on sorted predictions of two small groups, against the equation for each
    threshold.
    """
    y0, y1 = np.linspace(0, 1, 60), np.linspace(0.3, 2.3, 60) ** 1.5
    p1, strength, n = 0.4, 0.7, 60

    def energy_slopes(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        # mid-ranks: the derivative of 2 E|U - V| - E|U - U'| with respect to each u
        def below(x: np.ndarray, z: np.ndarray) -> np.ndarray:
            return (np.searchsorted(x, z, "left") + np.searchsorted(x, z, "right")) / (2 * n)

        return 4 / n * (below(v, u) - below(u, u))

    q0, q1 = y0.copy(), y1.copy()
    for step in range(6000):
        rate = n / (2 + 0.05 * step)
        slope0 = 2 * (1 - p1) / n * (q0 - y0) + strength * energy_slopes(q0, q1)
        slope1 = 2 * p1 / n * (q1 - y1) + strength * energy_slopes(q1, q0)
        q0, q1 = np.sort(q0 - rate * slope0), np.sort(q1 - rate * slope1)
    risk = (1 - p1) * ((q0 - y0) ** 2).mean() + p1 * ((q1 - y1) ** 2).mean()
    direct = risk + strength * stats.energy_distance(q0, q1) ** 2
    found = unrestricted_tradeoff(
        lambda z: np.searchsorted(y0, z, "right") / n,
        lambda z: np.searchsorted(y1, z, "right") / n,
        p1=p1,
        strength=strength,
        support=(-0.01, y1[-1] + 0.01),
        points=20_001,
    )
    assert found.objective == pytest.approx(direct, abs=1e-3)
    assert found.objective < direct + 1e-5  # nothing found by descent is better than the floor
    assert found.energy == pytest.approx(stats.energy_distance(q0, q1) ** 2, abs=2e-3)


def test_the_target_is_the_largest_of_the_pieces_and_the_group_the_last_feature(
    reference: OnlineRegression,
) -> None:
    for chunk in reference.stream(4000, seed=1, size=500):
        pieces = [chunk.X @ reference_slopes()[chunk.regime][:, piece] for piece in range(5)]
        assert_allclose(chunk.y, np.max(pieces, axis=0), atol=1e-12)
        assert_array_equal(chunk.a, chunk.X[:, -1])
        assert_allclose(reference.optimal_prediction(chunk.X, chunk.regime), chunk.y)


def test_features_are_uniform_and_groups_have_their_share() -> None:
    X, _, a = OnlineRegression(p1=0.3).test_set(100_000, seed=2)
    assert abs(z_score(a, 0.3)) < 4
    for column in X.T[:-1]:
        assert stats.kstest(column, "uniform").pvalue > 1e-4


def test_the_regime_switches_at_row_2000_exactly(reference: OnlineRegression) -> None:
    regimes = [chunk.regime for chunk in reference.stream(4000, seed=0)]
    assert regimes == [0] * 2000 + [1] * 2000
    X, y, _ = reference.sample(4000, seed=0)
    for row, regime in [(1999, 0), (2000, 1)]:
        assert y[row] == reference.optimal_prediction(X[row : row + 1], regime)[0]
        assert y[row] != reference.optimal_prediction(X[row : row + 1], 1 - regime)[0]


@pytest.mark.parametrize("size", [1, 7, 64, 2000, 5000])
def test_chunking_does_not_change_the_stream(size: int) -> None:
    population = OnlineRegression(slopes_seed=3)
    chunks = list(population.stream(4500, seed=5, size=size))
    whole = population.sample(4500, seed=5)
    for part in range(3):
        assert_array_equal(np.concatenate([chunk[part] for chunk in chunks]), whole[part])
    assert max(len(chunk.y) for chunk in chunks) <= size
    assert [chunk.regime for chunk in chunks for _ in chunk.y] == [
        row // 2000 for row in range(4500)
    ]


def test_one_seed_gives_one_stream_and_another_seed_another() -> None:
    population = OnlineRegression()
    assert_array_equal(population.sample(100, seed=1).X, population.sample(100, seed=1).X)
    assert (population.sample(100, seed=1).X[:, 0] != population.sample(100, seed=2).X[:, 0]).all()
    assert_array_equal(
        population.sample(100, seed=np.random.default_rng(1)).X, population.sample(100, seed=1).X
    )


def test_the_test_set_shares_features_between_regimes_and_none_with_the_stream() -> None:
    population = OnlineRegression()
    first, second = (
        population.test_set(200, regime=0, seed=1),
        population.test_set(200, regime=1, seed=1),
    )
    assert_array_equal(first.X, second.X)
    assert (first.y != second.y).any()
    assert not np.isin(first.X[:, 0], population.sample(4000, seed=1).X[:, 0]).any()


def test_slopes_are_drawn_anew_for_each_regime_and_seed_within_their_bounds() -> None:
    population = OnlineRegression(slopes_seed=1)
    slopes = np.stack([population.regime_slopes(regime) for regime in range(400)])
    assert_array_equal(slopes[3], population.regime_slopes(3))
    assert len(np.unique(slopes)) == slopes.size
    assert (slopes[0] != OnlineRegression(slopes_seed=2).regime_slopes(0)).all()
    assert stats.kstest(slopes.ravel(), stats.uniform(-2, 4).cdf).pvalue > 1e-4


def test_importing_the_populations_imports_no_heavy_library() -> None:
    """Loaded apart from the rest of the package, so that only the populations are on trial."""
    code = (
        "import sys, types, pathlib, metrifair\n"
        "package = types.ModuleType('metrifair.datasets')\n"
        "package.__path__ = [str(pathlib.Path(metrifair.__file__).parent / 'datasets')]\n"
        "sys.modules['metrifair.datasets'] = package\n"
        "import experiments.populations.synthetic\n"
        "print(sorted({'torch', 'scipy', 'pandas', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
