"""Numbers that floats do not hold are refused; sums beyond the largest float are finite where
the distance is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch

from metrifair import DataError, audit, unfairness
from metrifair.metrics import (
    cramer_distance,
    distances,
    energy_distance,
    kolmogorov_distance,
    lp_distance,
    median_distance,
    mmd_squared,
    sliced_energy_distance,
    sliced_wasserstein_distance,
    total_variation,
    wasserstein_distance,
    witness,
)
from tests.expected_errors import Refusals
from tests.flat_options import flat

LARGE = 1.7e308
LONG = 2**53 + 1
FUNCTIONS = [
    cramer_distance,
    distances,
    energy_distance,
    kolmogorov_distance,
    lp_distance,
    mmd_squared,
    total_variation,
    wasserstein_distance,
    witness,
]
each_function = pytest.mark.parametrize(
    "function", FUNCTIONS, ids=lambda function: function.__name__
)
COMPLEX = {
    "list": [1j],
    "NumPy": np.array([1.0 + 2j]),
    "one among numbers": [1.0, 2j],
    "objects": np.array([1j], dtype=object),
    "tensor": torch.tensor([1j]),
}
INTEGERS: dict[str, Callable[[int], object]] = {
    "list": lambda one: [one],
    "NumPy": lambda one: np.array([one]),
    "unsigned": lambda one: np.array([one], dtype=np.uint64),
    "objects": lambda one: np.array([one], dtype=object),
    "pandas": lambda one: pd.Series([one]),
    "tensor": lambda one: torch.tensor([one]),
    "longer than 64 bits": lambda one: [one + 2**70],
    "longer than any float": lambda one: [one + 2**2000],
    "negative": lambda one: [-one],
}


@each_function
@pytest.mark.parametrize("values", COMPLEX.values(), ids=list(COMPLEX))
def test_complex_numbers_are_refused(function: Callable, values: object, refused: Refusals) -> None:
    with refused(DataError):
        function([2.0, 3.0], values)


@each_function
@pytest.mark.parametrize("container", INTEGERS.values(), ids=list(INTEGERS))
def test_integers_that_floats_do_not_tell_apart_are_refused(
    function: Callable, container: Callable, refused: Refusals
) -> None:
    with refused(DataError):
        function(container(LONG), [0.0])


@pytest.mark.parametrize("container", list(INTEGERS.values())[:6], ids=list(INTEGERS)[:6])
def test_long_integers_that_are_floats_are_compared(container: Callable) -> None:
    assert float(kolmogorov_distance(container(2**53), container(2**53 + 2))) == 1.0
    assert float(wasserstein_distance(container(2**62), container(2**62 + 1024))) == 1024.0


def test_integers_are_checked_wherever_numbers_are_taken(refused: Refusals) -> None:
    with refused(DataError):
        unfairness(None, np.array([2**53, LONG]), sensitive_features=["a", "b"])
    with refused(DataError):
        unfairness(None, np.array([1j, 2.0]), sensitive_features=["a", "b"])


# Distances of scores that are further apart than the largest float, and still have a finite
# distance.
FAR = [-LARGE, LARGE]
NEAR = [-LARGE, 1.6e308]  # half of it is 1e307 further down
FINITE = [
    (wasserstein_distance, FAR, NEAR, 0.5 * 1e307),
    (cramer_distance, FAR, NEAR, 0.25 * 1e307),
    (energy_distance, FAR, NEAR, 0.5 * 1e307),
    (partial(lp_distance, p=3.0), FAR, NEAR, 0.5 * 1e307 ** (1 / 3)),
    (lp_distance, [-LARGE], [LARGE], 2**0.5 * LARGE**0.5),
    (partial(mmd_squared, kernel="distance"), FAR, NEAR, 0.25 * 1e307),
    (mmd_squared, [-LARGE], [LARGE], 2.0),
    (partial(mmd_squared, kernel="laplace"), [-LARGE], [LARGE], 2.0),
    (kolmogorov_distance, [-LARGE], [LARGE], 1.0),
    (total_variation, [-LARGE], [LARGE], 1.0),
    (partial(energy_distance, vector=True), [[3e200, 0.0]], [[0.0, 4e200]], 1e201),
    (
        sliced_wasserstein_distance,
        [[score] for score in FAR],
        [[score] for score in NEAR],
        0.5 * 1e307,
    ),
    (sliced_energy_distance, [[score] for score in FAR], [[score] for score in NEAR], 0.5 * 1e307),
]


@pytest.mark.parametrize(("function", "u", "v", "expected"), FINITE)
def test_a_distance_that_is_a_float_is_found(
    function: Callable, u: list, v: list, expected: float
) -> None:
    assert function(u, v) == pytest.approx(expected, rel=1e-9)
    tensor = torch.tensor(u, dtype=torch.float64, requires_grad=function is not mmd_squared)
    assert function(tensor, v).item() == pytest.approx(expected, rel=1e-9)


def test_all_of_them_at_once_are_found_and_by_slices() -> None:
    found = distances(FAR, NEAR, ["wasserstein", "energy", "lp", "kolmogorov", "mmd"])
    assert found == pytest.approx(
        {
            "wasserstein": 5e306,
            "energy": 5e306,
            "lp": 0.5 * 1e307**0.5,
            "kolmogorov": 0.5,
            "mmd": 0.5,
        },
        rel=1e-9,
    )
    exact = sliced_energy_distance([[0.0, 0.0]], [[3.0, 4.0]], random_state=0)
    assert sliced_energy_distance([[0.0, 0.0]], [[3e307, 4e307]], random_state=0) == pytest.approx(
        1e307 * exact
    )
    assert median_distance([0.0, 1e200, 4e200]) == pytest.approx(3e200)


def test_single_precision_has_its_own_largest_number() -> None:
    u, v = torch.tensor([-3e38, 3e38]), torch.tensor([-3e38, 2e38])
    assert wasserstein_distance(u, v).item() == pytest.approx(0.5e38)


@pytest.mark.parametrize(
    "function",
    [
        wasserstein_distance,
        cramer_distance,
        energy_distance,
        partial(energy_distance, vector=True),
        partial(mmd_squared, kernel="distance"),
        distances,
        sliced_energy_distance,
    ],
)
def test_a_distance_beyond_all_floats_is_refused(function: Callable) -> None:
    vector = function is sliced_energy_distance or getattr(function, "keywords", {}).get("vector")
    u, v = ([[-LARGE]], [[LARGE]]) if vector else ([-LARGE], [LARGE])
    with pytest.raises(DataError) as caught:
        function(u, v)
    assert str(caught.value) == (
        "the distance exceeds the largest floating-point number; divide all scores by a constant"
    )


@pytest.mark.parametrize("metric", ["wasserstein", "energy", "cramer", "lp"])
def test_a_witness_beyond_all_floats_is_refused(metric: str) -> None:
    with pytest.raises(DataError) as caught:
        witness([-LARGE], [LARGE], metric=metric)
    assert str(caught.value) == (
        "the witness exceeds the largest floating-point number; divide all scores by a constant"
    )


@pytest.mark.parametrize(
    "measure",
    [unfairness, lambda _, scores, **given: audit(None, scores, random_state=0, **flat(**given))],
)
def test_neither_unfairness_nor_an_audit_is_infinite(measure: Callable) -> None:
    """The energy distance is twice the distance of the two scores."""
    options = (
        {"metric": "energy"} if measure is unfairness else {"metrics": "energy", "resamples": 0}
    )
    with pytest.raises(DataError) as caught:
        measure(None, [0.0, 0.0, LARGE, LARGE], sensitive_features=list("aabb"), **options)
    assert str(caught.value) == (
        "the distance exceeds the largest floating-point number; divide all scores by a constant"
    )


def test_weights_may_add_up_beyond_all_floats() -> None:
    found = wasserstein_distance([0.0, 1.0], [1.0], u_weights=[LARGE, LARGE])
    assert found == wasserstein_distance([0.0, 1.0], [1.0])
