"""Our Adam is PyTorch's Adam, kept in one vector; it can stop, go back, be pickled and go on."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.seams.training import Adam

SHAPES = {"weight": (2, 3, 4, 5), "bias": (2, 3, 4, 1), "number": (2, 3)}


def start(dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        name: torch.randn(shape, generator=generator, dtype=dtype) for name, shape in SHAPES.items()
    }


def loss(parameters: Mapping[str, Tensor], k: int) -> Tensor:
    """Uneven bowls that move from step to step, with gradients of very different sizes."""
    parts = [
        (10.0**j * (value - 0.1 * k).sin()).square().sum()
        for j, value in enumerate(parameters.values())
    ]
    return torch.stack(parts).sum()


def steps(adam: Adam, first: int, last: int) -> None:
    for k in range(first, last):
        loss(adam.parameters, k).backward()
        adam.step()


@pytest.mark.extended
@pytest.mark.parametrize("step", [Adam.step, Adam.step_if_finite])
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-11), (torch.float32, 2e-3)])
def test_it_is_the_adam_of_pytorch(
    step: Callable[[Adam], object], decay: float, dtype: torch.dtype, tolerance: float
) -> None:
    """To rounding, which 300 nonlinear steps amplify: a fault of the formula would show in the
    first digits.
    """
    adam = Adam(start(dtype), learning_rate=0.01, weight_decay=decay)
    theirs = {name: value.requires_grad_() for name, value in start(dtype).items()}
    reference = torch.optim.Adam(theirs.values(), lr=0.01, weight_decay=decay)
    for k in range(300):
        if k == 100:  # a schedule
            adam.learning_rate.mul_(0.5)
            reference.param_groups[0]["lr"] *= 0.5
        loss(adam.parameters, k).backward()
        step(adam)
        reference.zero_grad()
        loss(theirs, k).backward()
        reference.step()
    for name, value in theirs.items():
        torch.testing.assert_close(
            adam.parameters[name].detach(), value.detach(), rtol=tolerance, atol=tolerance
        )


COPIES: dict[str, Callable[[Adam], Adam]] = {
    "pickled": lambda adam: pickle.loads(pickle.dumps(adam)),
    "copied": copy.deepcopy,
}


@pytest.mark.parametrize("moved", COPIES.values(), ids=COPIES)
def test_it_goes_on_bit_by_bit_from_a_copy(moved: Callable[[Adam], Adam]) -> None:
    through = Adam(start(), learning_rate=0.01, weight_decay=0.1)
    steps(through, 0, 20)
    stopped = moved(through)
    steps(through, 20, 40)
    steps(stopped, 20, 40)
    assert torch.equal(stopped.vector, through.vector)
    for name, value in through.parameters.items():
        assert torch.equal(stopped.parameters[name], value)


def test_a_copy_has_memory_of_its_own() -> None:
    adam = Adam(start(), learning_rate=0.01)
    other = pickle.loads(pickle.dumps(adam))
    steps(other, 0, 1)
    assert torch.equal(adam.vector, Adam(start(), learning_rate=0.01).vector)


def test_parameters_are_views_of_the_vector_and_not_of_the_start() -> None:
    given = start()
    adam = Adam(given, learning_rate=0.01)
    adam.vector.zero_()
    assert not any(value.any() for value in adam.parameters.values())
    assert all(value.any() for value in given.values())


def test_gradients_gather_until_the_step_that_clears_them() -> None:
    once, twice = (Adam({"w": torch.tensor([1.0])}, learning_rate=0.1) for _ in range(2))
    (2 * once.parameters["w"]).sum().backward()
    for _ in range(2):
        twice.parameters["w"].sum().backward()
    assert once.gradient.tolist() == twice.gradient.tolist() == [2.0]
    once.step()
    assert once.gradient.tolist() == [0.0]


def test_a_snapshot_undoes_everything_that_a_step_changes() -> None:
    adam, undisturbed = (Adam(start(), learning_rate=0.01) for _ in range(2))
    steps(adam, 0, 10)
    steps(undisturbed, 0, 10)
    before = adam.snapshot()
    adam.learning_rate.mul_(0.1)
    steps(adam, 50, 53)
    loss(adam.parameters, 9).backward()  # a gradient left behind
    adam.restore(before)
    steps(adam, 10, 20)
    steps(undisturbed, 10, 20)
    assert torch.equal(adam.vector, undisturbed.vector)


@pytest.mark.parametrize("slope", [torch.nan, torch.inf, 1e200])
def test_a_step_that_is_not_finite_is_not_taken(slope: float) -> None:
    adam, undisturbed = (Adam(start(), learning_rate=0.01) for _ in range(2))
    for one in (adam, undisturbed):
        loss(one.parameters, 0).backward()
        assert one.step_if_finite()
    adam.gradient[3] = slope  # the square of the last one overflows
    with np.errstate(over="ignore", invalid="ignore"):
        assert not adam.step_if_finite()
    for one in (adam, undisturbed):
        loss(one.parameters, 1).backward()
        assert one.step_if_finite()
    assert all(map(torch.equal, adam.snapshot(), undisturbed.snapshot()))


def test_moments_that_overflowed_are_forgotten_and_the_others_kept() -> None:
    adam = Adam({"w": torch.zeros(4)}, learning_rate=0.1)
    adam.moments.copy_(
        torch.tensor([[1.0, torch.nan, torch.inf, -torch.inf], [1.0, 2.0, torch.inf, 3.0]])
    )
    adam.gradient.copy_(torch.tensor([torch.nan, 1.0, torch.inf, 0.0]))
    adam.forget_non_finite()
    assert adam.moments.tolist() == [[1.0, 0.0, 0.0, 0.0], [1.0, 2.0, 0.0, 3.0]]
    assert adam.gradient.tolist() == [0.0, 1.0, 0.0, 0.0]
