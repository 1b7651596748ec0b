"""Metrics on a CUDA device: values, gradients and errors are the CPU's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from metrifair.errors import DataError
from metrifair.metrics import energy_dependence, energy_distance
from tests.seams.metrics import METRICS, to_pair, training_metric

pytestmark = pytest.mark.cuda

EVERY: dict[str, Callable[..., Any]] = {
    **{name: row.plug_in for name, row in METRICS.items()},
    **{f"unbiased {name}": row.unbiased for name, row in METRICS.items() if row.unbiased},
    **{
        f"trained {name}": training_metric(name, estimate="batch")
        for name, row in METRICS.items()
        if row.in_training
    },
}


def tied_draws(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(-6, 7, shape, generator=torch.Generator().manual_seed(seed)).double() / 4


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_values_and_gradients_are_the_cpus(name: str, weighted: bool) -> None:
    found = []
    for device in ("cpu", "cuda"):
        u, v = (tied_draws(3, n, seed=n).to(device).requires_grad_() for n in (5, 4))
        weight = torch.tensor([1.0, 2, 1, 1, 3], device=device) if weighted else None
        value = EVERY[name](to_pair(u, v, weight, None))
        assert value.device.type == device
        slopes = torch.autograd.grad(value.sum(), (u, v)) if value.requires_grad else ()
        found.append([part.detach().cpu() for part in (value, *slopes)])
    torch.testing.assert_close(found[1], found[0], rtol=1e-10, atol=1e-12)


def test_a_dependence_is_the_cpus() -> None:
    z, a = torch.randn(3, 2000), torch.randint(20, 90, (2000,)).double()
    torch.testing.assert_close(
        energy_dependence(z.cuda(), a).cpu(), energy_dependence(z, a), rtol=1e-4, atol=1e-6
    )


def test_samples_on_two_devices_are_refused() -> None:
    with pytest.raises(DataError) as caught:
        energy_distance(torch.zeros(2), torch.zeros(2, device="cuda"))
    assert str(caught.value) == "u and v must be on one device, got cpu and cuda:0; move one"
