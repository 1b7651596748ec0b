"""The paper's bounds by the VC dimension, as the formulas say, and as they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from experiments.theory import generalization_bounds, vc_radius
from metrifair.errors import DataError
from tests.seams.figures import dkw_radius
from tests.seams.metrics import METRICS


@pytest.mark.parametrize("dimension", [1, 4])
@pytest.mark.parametrize("samples", [30, 1000])
def test_the_papers_radius_is_its_formula(samples: int, dimension: int) -> None:
    delta = 0.05 / 3
    bound = (
        4 / samples * (dimension * (math.log(2 * samples / dimension) + 1) - math.log(delta / 4))
    )
    assert vc_radius(samples, dimension=dimension) == pytest.approx(math.sqrt(bound) / 2, rel=1e-14)


def test_the_papers_radius_is_wider_and_needs_more_samples_than_its_dimension() -> None:
    for samples in (2, 50, 10_000):
        radius = vc_radius(samples)
        assert radius is not None
        assert radius > dkw_radius(samples)
    assert vc_radius(1) is None
    assert vc_radius(5, dimension=5) is None


def test_what_has_no_papers_radius_is_refused() -> None:
    with pytest.raises(DataError, match="samples and dimension must be at least 1, got 0 and 1"):
        vc_radius(0)
    with pytest.raises(DataError, match="confidence must lie between 0 and 1"):
        vc_radius(9, confidence=1.0)


# the largest difference of a utility between the decisions 0 and 1, as the paper's families have it
ALPHA = {
    "kolmogorov": 1.0,
    "wasserstein": 1.0,
    "lp": 1.0,
    "cramer": 1.0,
    "total_variation": 1.0,
    "energy": math.sqrt(2),
    "mmd": math.sqrt(2 - 2 * math.exp(-1 / 2)),
}


@pytest.mark.parametrize("metric", METRICS)
def test_the_theorem_is_the_papers_for_every_metric(metric: str) -> None:
    radius = vc_radius(40_000, dimension=3), vc_radius(50_000, dimension=3)
    everyone = vc_radius(90_000, dimension=3)
    assert everyone is not None
    found = generalization_bounds(0.9, 0.04, samples=(40_000, 50_000), dimension=3, metric=metric)
    assert found is not None
    assert found.accuracy == pytest.approx(0.9 - everyone, rel=1e-12)
    assert radius[0] is not None
    assert radius[1] is not None
    power = 2 if METRICS[metric].squared else 1
    expected = (0.04 ** (1 / power) + ALPHA[metric] * (radius[0] + radius[1])) ** power
    assert found.unfairness == pytest.approx(expected, rel=1e-12)


def test_decisions_are_never_further_apart_than_all_and_nothing() -> None:
    found = generalization_bounds(0.1, 0.9, samples=(60, 60), dimension=5)
    assert found == (0.0, 1.0)
    assert generalization_bounds(0.1, 0.9, samples=(60, 5), dimension=5) is None


def test_the_theorem_holds_for_models_that_the_rows_trained() -> None:
    """One linear model fits labels that are noise, another looks fair on its training rows and is
    not.

    Bounds for a model chosen beforehand fail for both, every time; that shows the test's power.
    """
    rng, rows, d, confidence = np.random.default_rng(0), 4000, 120, 0.95
    shift = np.zeros(d)
    shift[0] = 0.3
    for _ in range(10):
        x, y = rng.normal(size=(2, rows, d)), rng.random((2, rows)) < 0.5
        memory = (x * (2 * y - 1)[..., None]).mean((0, 1))
        accuracy = float(((x @ memory > 0) == y).mean())  # 1/2, in truth
        x[1] += shift
        apart = x[1].mean(0) - x[0].mean(0)
        # the groups' means agree on these rows
        blind = shift - apart * (shift @ apart) / (apart @ apart)
        middle = (x.mean((0, 1)) @ blind).item()
        decided = (x @ blind > middle).mean(1)
        ends = middle - np.array([0.0, shift @ blind])
        true_gap = abs(np.diff(ndtr(-ends / np.linalg.norm(blind)))).item()
        gap = float(abs(decided[0] - decided[1]))

        bounds = generalization_bounds(
            accuracy, gap, samples=(rows, rows), dimension=d + 1, confidence=confidence
        )
        assert bounds is not None
        assert 0 < bounds.accuracy <= 0.5
        assert true_gap <= bounds.unfairness < 1

        def one_model(count: int) -> float:
            return math.sqrt(math.log(2 * 3 / (1 - confidence)) / (2 * count))

        assert accuracy - one_model(2 * rows) > 0.51
        assert true_gap > gap + one_model(rows)
