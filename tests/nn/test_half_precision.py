"""Scores in half precision, and autocast: the penalty is that of the same scores in double
precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from metrifair.metrics import distances, energy_dependence, sliced_energy_distance
from metrifair.nn import UnfairnessPenalty
from tests.seams.metrics import METRICS
from tests.seams.nn import value_and_slopes

N = 601  # 201 and 400: shares of both groups in a bin are never equal
GENERATOR = torch.Generator().manual_seed(0)
GROUPS = (torch.arange(N) % 3 == 0).long()
VECTORS = (torch.randn(N, 3, generator=GENERATOR) + 0.3 * GROUPS[:, None]).sigmoid().bfloat16()
HALVES = VECTORS[:, 0]
AGE = torch.randint(18, 80, (N,), generator=GENERATOR).double()


def with_autocast(function: Callable[[Tensor], Any], scores: Tensor) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return function(scores)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("estimate", ["population", "batch"])
@pytest.mark.parametrize("metric", METRICS)
def test_the_penalty_and_its_gradient_are_those_of_double_precision(
    metric: str, estimate: Any, dtype: torch.dtype
) -> None:
    penalty = UnfairnessPenalty(metric=metric, estimate=estimate, random_state=0)
    rounded = HALVES.to(dtype).clone().requires_grad_()
    exact = rounded.detach().double().requires_grad_()
    expected, value = (
        penalty(exact, GROUPS),
        with_autocast(lambda scores: penalty(scores, GROUPS), rounded),
    )
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(expected.item(), rel=1e-4, abs=1e-6)
    expected.backward()
    value.backward()
    # halves have three digits
    assert (rounded.grad - exact.grad).abs().max() < 0.02 * exact.grad.abs().max()


OPTIONS: dict[str, dict[str, Any]] = {
    "energy": {},
    "mmd": {"metric": "mmd"},
    "coordinates": {"metric": "wasserstein"},
    "rest": {"contrast": "rest"},
    "numbers": {"continuous": True},
}


@pytest.mark.parametrize("scores", [HALVES, VECTORS], ids=["scores", "vectors"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_autocast_does_not_change_the_penalty(options: dict[str, Any], scores: Tensor) -> None:
    def penalty(scores: Tensor) -> Tensor:
        groups, weights = (AGE, None) if options.get("continuous") else (GROUPS, AGE)
        return UnfairnessPenalty(**options, random_state=0)(scores, groups, weights=weights)

    assert with_autocast(penalty, scores).item() == with_autocast(penalty, scores.float()).item()
    assert with_autocast(penalty, scores).item() == penalty(scores.float()).item()


def test_two_columns_in_half_precision_are_the_probabilities_of_two_classes() -> None:
    exact = (HALVES * 8).round() / 8  # of which the complements are exact too
    two = torch.stack([1 - exact, exact], 1)
    assert UnfairnessPenalty(random_state=0)(two, GROUPS) == UnfairnessPenalty(random_state=0)(
        exact.float(), GROUPS
    )


def test_the_operation_of_compiled_graphs_declares_single_precision() -> None:
    penalty = UnfairnessPenalty(random_state=0)
    value, slopes = value_and_slopes(penalty._number, HALVES, GROUPS, None, None)
    assert value == penalty(HALVES, GROUPS)
    with torch._subclasses.FakeTensorMode() as mode:
        fake = value_and_slopes(
            penalty._number, *map(mode.from_tensor, (HALVES, GROUPS)), None, None
        )
    assert (
        [tensor.dtype for tensor in fake]
        == [value.dtype, slopes.dtype]
        == [torch.float32, torch.bfloat16]
    )


def test_distances_between_tensors_are_those_of_double_precision() -> None:
    def every(scores: Tensor) -> list[Tensor]:
        u, v = scores[GROUPS == 0], scores[GROUPS == 1]
        sliced, dependence = (
            sliced_energy_distance(u, v, random_state=0),
            energy_dependence(scores[:, 0], AGE),
        )
        return [*distances(u[:, 0], v[:, 0], tuple(METRICS)).values(), sliced, dependence]

    for value, expected in zip(with_autocast(every, VECTORS), every(VECTORS.double()), strict=True):
        assert value.dtype == torch.float32
        assert value.item() == pytest.approx(expected.item(), rel=1e-4, abs=1e-6)
