"""What the public functions take, what they give back, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from metrifair.errors import DataError, TooFewSamples
from metrifair.metrics import (
    cramer_distance,
    distances,
    energy_distance,
    kolmogorov_distance,
    lp_distance,
    mmd_squared,
    total_variation,
    wasserstein_distance,
    witness,
)

FUNCTIONS = [
    cramer_distance,
    energy_distance,
    kolmogorov_distance,
    lp_distance,
    mmd_squared,
    total_variation,
    wasserstein_distance,
]
each_function = pytest.mark.parametrize(
    "function", FUNCTIONS, ids=lambda function: function.__name__
)
nan = float("nan")


@pytest.fixture(autouse=True)
def _every_warning_every_time() -> Iterator[None]:
    """Torch gives most of its warnings once per process: only the first test would see them."""
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


# --- what goes in and what comes out
# ----------------------------------------------------------------------------

CONTAINERS: dict[str, Callable[[list[float]], object]] = {
    "list": list,
    "tuple": tuple,
    "NumPy": np.array,
    "NumPy float32": lambda values: np.array(values, dtype=np.float32),
    "strided NumPy": lambda values: np.repeat(values, 2)[::2],
    "pandas": pd.Series,
    "pandas with an index": lambda values: pd.Series(values, index=range(7, 7 + len(values))),
    "nullable pandas": lambda values: pd.Series(values, dtype="Float64"),
    "Polars": pl.Series,
    "decimals": lambda values: [Decimal(value) for value in values],
}


@each_function
@pytest.mark.parametrize("container", CONTAINERS.values(), ids=list(CONTAINERS))
def test_columns_of_every_kind_give_the_same_float(function: Callable, container: Callable) -> None:
    u, v, a = [0.5, 1.0, -2.0], [1.0, 3.0], [1.0, 2.0, 1.0]
    found = function(container(u), container(v), u_weights=container(a))
    assert isinstance(found, float)
    assert found == function(u, v, u_weights=a)


@each_function
def test_tensors_give_a_tensor(function: Callable) -> None:
    u, v = torch.tensor([0.5, 1.0], dtype=torch.float64), [1.0, 3.0]
    for found in (function(u, v), function(v, u), function(u, torch.tensor(v))):
        assert isinstance(found, torch.Tensor)
        assert found.dtype == torch.float64
        assert found.item() == pytest.approx(function([0.5, 1.0], v))


@each_function
def test_whole_numbers_and_truth_values_are_scores(function: Callable) -> None:
    expected = function([0.0, 1.0, 1.0], [0.0, 1.0])
    assert function([0, 1, 1], np.array([0, 1], dtype=np.int8)) == expected
    assert function([False, True, True], torch.tensor([False, True])).item() == pytest.approx(
        expected, rel=1e-15
    )


def test_the_gradient_flows_back_to_both_samples() -> None:
    u, v = torch.tensor([0.0, 1.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    energy_distance(u, v).backward()
    assert (u.grad.sum() + v.grad.sum()).item() == 0.0
    assert v.grad.item() == 2.0  # 2 E|U - V|, V above all of U


def test_arguments_are_left_as_they_were() -> None:
    u, v, a = np.array([3.0, 1.0, 2.0]), torch.tensor([2.0, 0.0]), np.array([1.0, 2.0, 3.0])
    for function in FUNCTIONS:
        function(u, v, u_weights=a)
    assert (u.tolist(), v.tolist(), a.tolist()) == ([3.0, 1.0, 2.0], [2.0, 0.0], [1.0, 2.0, 3.0])


# --- what is refused
# --------------------------------------------------------------------------------------------

TOO_DEEP = (
    "u must have 1 dimension(s), got an array of shape (2, 2); vectors: vector=True, where the "
    "metric has "
    "it; many models at once: torch tensors"
)
BAD_SAMPLES = {
    "empty": ([], [1.0], "u contains no scores; pass at least one"),
    "empty tensor": ([1.0], torch.zeros(3, 0), "v contains no scores; pass at least one"),
    "NaN": ([1.0], [0.0, nan], "v contains NaN or infinite values; remove or replace them"),
    "infinite": (
        [1.0, -np.inf],
        [0.0],
        "u contains NaN or infinite values; remove or replace them",
    ),
    "NaN in a tensor": (
        torch.tensor([[1.0], [nan]]),
        [0.0],
        "u contains NaN or infinite values; remove or replace them",
    ),
    "missing": (
        pd.Series([1, None], dtype="Int64"),
        [0.0],
        "u contains NaN or infinite values; remove or replace them",
    ),
    "null": (
        [0.0],
        pl.Series([1.0, None]),
        "v contains NaN or infinite values; remove or replace them",
    ),
    "words": (["low", "high"], [1.0], "u must contain numbers, got text such as 'low'"),
    "objects": (
        [1.0],
        [object, 1],
        "v must contain numbers, got object values such as <class 'object'>",
    ),
    "table": (np.zeros((2, 2)), [1.0], TOO_DEEP),
    "nested list": ([[0, 1], [2, 3]], [1.0], TOO_DEEP),
    "number": ([1.0], 3.0, "v must have at least 1 dimension(s), got shape ()"),
}


@pytest.mark.parametrize(
    "function", [*FUNCTIONS, distances, witness], ids=lambda function: function.__name__
)
@pytest.mark.parametrize(("u", "v", "message"), BAD_SAMPLES.values(), ids=list(BAD_SAMPLES))
def test_a_bad_sample_is_refused(function: Callable, u: object, v: object, message: str) -> None:
    with pytest.raises(DataError) as caught:
        function(u, v)
    assert str(caught.value) == message


def test_a_ragged_list_is_refused() -> None:
    with pytest.raises(DataError, match=r"^u must "):
        energy_distance([[1.0], [1.0, 2.0]], [1.0])


UNUSABLE = "u_weights must not be negative and must have a positive sum"
BAD_WEIGHTS = {
    "too few": (
        {"u_weights": [1.0]},
        "u contains 2 scores and u_weights 1 weights; pass one per score",
    ),
    "too many": (
        {"v_weights": [1.0] * 4},
        "v contains 3 scores and v_weights 4 weights; pass one per score",
    ),
    "negative": ({"u_weights": [2.0, -1.0]}, UNUSABLE),
    "all zero": ({"u_weights": [0, 0]}, UNUSABLE),
    "one model's all zero": ({"u_weights": torch.tensor([[0.0, 0.0], [1.0, 1.0]])}, UNUSABLE),
    "NaN": (
        {"v_weights": [1.0, nan, 1.0]},
        "v_weights contains NaN or infinite values; remove or replace them",
    ),
    "words": ({"u_weights": ["a", "b"]}, "u_weights must contain numbers, got text such as 'a'"),
}


@pytest.mark.parametrize(
    "function", [*FUNCTIONS, distances, witness], ids=lambda function: function.__name__
)
@pytest.mark.parametrize(("weights", "message"), BAD_WEIGHTS.values(), ids=list(BAD_WEIGHTS))
def test_bad_weights_are_refused(
    function: Callable, weights: dict[str, object], message: str
) -> None:
    with pytest.raises(DataError) as caught:
        function([0.0, 1.0], [1.0, 2.0, 3.0], **weights)
    assert str(caught.value) == message


@pytest.mark.parametrize("function", [energy_distance, mmd_squared])
@pytest.mark.parametrize(("u", "v"), [([0.0], [1.0, 2.0]), ([0.0, 1.0], [2.0])])
def test_one_score_is_too_few_for_an_unbiased_estimate(
    function: Callable, u: list[float], v: list[float]
) -> None:
    for options in ({}, {"u_weights": [2.0] * len(u)}):
        with pytest.raises(TooFewSamples) as caught:
            function(u, v, unbiased=True, **options)
        assert str(caught.value) == (
            f"an unbiased distance needs 2 scores of each kind on each side, got {len(u)} and "
            f"{len(v)}; "
            "use a larger batch size, or the biased distance (estimate='batch' of a penalty, "
            "unbiased=False of a function)"
        )


@pytest.mark.parametrize("p", [0.5, 0, -1, float("inf"), nan], ids=repr)
def test_p_outside_its_range_is_refused(p: float) -> None:
    with pytest.raises(DataError) as caught:
        lp_distance([0.0], [1.0], p=p)
    expected = (
        f"p must be a number from 1 upwards, got {p!r}; for p = infinity use kolmogorov_distance"
    )
    assert str(caught.value) == expected


@pytest.mark.parametrize("bins", [1, 0, -3, 2.5, "ten", True], ids=repr)
def test_bins_that_cannot_be_are_refused(bins: object) -> None:
    with pytest.raises(DataError) as caught:
        total_variation([0.0], [1.0], bins=bins)
    assert str(caught.value) == f"bins must be an integer from 2 upwards or None, got {bins!r}"
