"""Populations are values with one shape of sample; bad parameters are refused with a message
that helps.
"""

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from experiments.populations import (
    BiasedClassification,
    BiasedRegression,
    ExactOffset,
    Example1,
    FiniteSpace,
    HiddenExperience,
    IndependentLabels,
    Normal,
    OnlineRegression,
    SlopeRegression,
    normal_mmd_squared,
    reference_slopes,
    unrestricted_tradeoff,
)
from experiments.populations.synthetic import OffsetRegression
from metrifair.errors import DataError

POPULATIONS = [
    HiddenExperience(0.3),
    IndependentLabels(0.3),
    BiasedRegression("shrink", p1=0.3),
    BiasedClassification(p1=0.3),
    OffsetRegression([1.0, 2.0], p1=0.3),
    SlopeRegression([1.0, 2.0], p1=0.3),
    Example1(0.3),
    OnlineRegression(p1=0.3),
]


@pytest.mark.parametrize("population", POPULATIONS)
def test_a_sample_has_features_targets_and_groups_and_depends_on_the_seed_only(population) -> None:
    sample = population.sample(300, seed=3)
    assert sample.X.dtype == np.float64
    assert sample.X.ndim == 2
    assert sample.y.shape == sample.a.shape == (300,) == sample.X.shape[:1]
    assert sample.a.dtype == np.int64
    assert_array_equal(sample.X[:, -1], sample.a)
    assert set(sample.a) == {0, 1}
    for part, again in zip(sample, population.sample(300, seed=3), strict=True):
        assert_array_equal(part, again)
    for part, again in zip(sample, population.sample(300, np.random.default_rng(3)), strict=True):
        assert_array_equal(part, again)
    assert (sample.X != population.sample(300, seed=4).X).any()


@pytest.mark.parametrize("population", POPULATIONS)
def test_a_population_is_a_value(population) -> None:
    assert eval(repr(population)) == population
    assert hash(eval(repr(population))) == hash(population)
    with pytest.raises(AttributeError):
        population.p1 = 0.4
    assert type(population)(p1=0.4) != population


@pytest.mark.parametrize("population", [IndependentLabels(0.3), BiasedClassification(p1=0.3)])
def test_labels_are_the_integers_0_and_1(population) -> None:
    labels = population.sample(300).y
    assert labels.dtype == np.int64
    assert set(labels) == {0, 1}


def test_slopes_given_as_an_array_or_as_lists_make_the_same_population() -> None:
    slopes = reference_slopes()
    assert OnlineRegression(slopes=slopes) == OnlineRegression(slopes=slopes.tolist())
    assert_array_equal(OnlineRegression(slopes=slopes).regime_slopes(1), slopes[1])


_THETA = "theta must be finite and not zero"
REFUSED: list[tuple[Callable[[], object], str]] = [
    *(
        (
            lambda make=make, p1=p1: make(p1=p1),
            f"p1 must lie strictly between 0 and 1, got {p1!r}; choose a share such as 0.5",
        )
        for make in (
            HiddenExperience,
            IndependentLabels,
            BiasedRegression,
            BiasedClassification,
            OffsetRegression,
            OnlineRegression,
        )
        for p1 in (0, 1, -0.1, math.nan)
    ),
    *(
        (lambda make=make: make(m=1), "m must be an integer from 2 upwards, got 1")
        for make in (BiasedRegression, BiasedClassification)
    ),
    (lambda: BiasedRegression(m=2.5), "m must be an integer from 2 upwards, got 2.5"),
    (
        lambda: BiasedRegression("stretch"),
        "kind must be one of 'shift', 'shrink', got 'stretch'",
    ),
    (
        lambda: IndependentLabels(loss="hinge"),
        "loss must be one of 'zero_one', 'squared', got 'hinge'",
    ),
    (
        lambda: BiasedRegression(delta=-0.1),
        "delta must be a finite number, at least 0, at most 1e+06, got -0.1",
    ),
    (lambda: BiasedRegression(beta=math.inf), "beta must be a finite number, got inf"),
    (
        lambda: BiasedRegression(sigma=-1.0),
        "sigma must be a finite number, at least 0, at most 1e+06, got -1.0",
    ),
    (
        lambda: BiasedClassification(delta=1.1),
        "delta must be a finite number, at least 0, at most 1, got 1.1",
    ),
    (
        lambda: Example1().mixture(2),
        "t must be a finite number, at least 0, at most 1, got 2; 2 percent is 0.02",
    ),
    *(
        (
            call,
            (
                "strength must be 0 or more, got -1; choose 0 for no penalty, infinity for exact "
                "parity"
            ),
        )
        for call in (
            lambda: Example1().tradeoff(-1),
            lambda: Example1().unrestricted_tradeoff(-1),
            lambda: OffsetRegression().tradeoff(-1),
            lambda: OffsetRegression().tradeoff_prediction(np.zeros((1, 2)), -1),
        )
    ),
    (
        lambda: SlopeRegression((-0.5,), delta=0.5),
        f"{_THETA} in either group, got (-0.5,) with delta 0.5; choose coefficients such as (1.0,)",
    ),
    (
        lambda: OffsetRegression(()),
        f"{_THETA}, got (); choose coefficients such as (1.0,)",
    ),
    (lambda: ExactOffset.drawn(0), "k must be an integer from 1 upwards, got 0"),
    *(
        (
            lambda population=population: population.sample(0),
            "n must be an integer from 1 upwards, got 0",
        )
        for population in POPULATIONS
    ),
    (
        lambda: HiddenExperience().sample(5, seed=-1),
        "seed must be an integer from 0 upwards, got -1",
    ),
    *(
        (
            lambda name=name: OnlineRegression(**{name: 0}),
            f"{name} must be an integer from 1 upwards, got 0",
        )
        for name in ("d", "n_pieces", "period")
    ),
    (
        lambda: OnlineRegression(d=3, slopes=reference_slopes()),
        (
            "slopes must be finite, of shape (regimes, 3, 5), got shape (2, 10, 5); "
            "give one matrix for each regime, or change d and n_pieces"
        ),
    ),
    (
        lambda: OnlineRegression(slopes=reference_slopes()).sample(4001),
        (
            "slopes were given for 2 regimes, got regime 2 (counted from 0); "
            "give more slopes, a longer period, or slopes=None"
        ),
    ),
    (
        lambda: OnlineRegression().stream(size=0),
        "size must be an integer from 1 upwards, got 0",
    ),
    (
        lambda: HiddenExperience().optimal_prediction(np.zeros((3, 4))),
        "X must have 2 columns, the group last, got shape (3, 4); pass rows as sample() returns",
    ),
    (
        lambda: HiddenExperience().optimal_prediction(np.array([[0.5, 2.0]])),
        "the last column of X must be the group, 0 or 1, got [2.]; pass rows as sample() returns",
    ),
    (
        lambda: BiasedRegression(m=3).fair_prediction(np.array([[3.0, 1.0]])),
        "the first column of X must contain 0 to 2, got [3.]; pass rows as sample() returns",
    ),
    (
        lambda: FiniteSpace([(0.5, 0.0), (0.0, 0.5)], [1.0]),
        (
            "masses must contain one pair for each of the 1 values of optimum, got shape (2, 2); "
            "give (P[X = x, A = 0], P[X = x, A = 1]) for each atom"
        ),
    ),
    (
        lambda: FiniteSpace([(0.5, 0.0), (0.5, 0.0)], [1.0, 2.0]),
        (
            "masses must be non-negative, sum to 1 and leave no group empty, got group sums [1. "
            "0.]; "
            "divide by the total"
        ),
    ),
    (
        lambda: list(FiniteSpace([(1 / 28, 1 / 28)] * 14, [0.0] * 14).fair_partitions()),
        "enumeration serves at most 12 atoms, got 14; merge atoms or use the sorting rule",
    ),
    (
        lambda: Normal(0.0, 0.0),
        (
            "Normal needs a finite mean and a positive deviation, got 0.0 and 0.0; "
            "describe a point mass by atomic_distances"
        ),
    ),
    (
        lambda: normal_mmd_squared(Normal(0, 1), Normal(0, 1), bandwidth=0),
        "bandwidth must be positive, got 0; choose a width such as 1.0",
    ),
    (
        lambda: unrestricted_tradeoff(np.sign, np.sign, p1=2, strength=1, support=(0, 1)),
        "p1 must lie strictly between 0 and 1, got 2; choose a share such as 0.5",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_bad_parameters_are_refused_by_name_with_what_came_and_what_to_do(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        call()
