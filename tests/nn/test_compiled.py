"""The penalty within graphs that torch.compile makes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty
from tests.seams.nn import value_and_slopes

RNG = np.random.default_rng(0)
N = 300
GROUP = torch.as_tensor(RNG.integers(2, size=N))
LABEL = torch.as_tensor(RNG.integers(2, size=N))
X = torch.as_tensor(RNG.normal(size=(N, 4))).float()


def test_the_operation_is_the_penalty_with_its_gradient() -> None:
    sampler = StratifiedBatchSampler(
        GROUP, LABEL, batch_size=64, criterion="equal_opportunity", random_state=0
    )
    penalty = UnfairnessPenalty("equal_opportunity", sampler=sampler)
    rows = torch.as_tensor(next(iter(sampler)))
    scores = X[rows, 0].sigmoid().requires_grad_()
    plain = penalty(scores, GROUP[rows], LABEL[rows])
    (expected,) = torch.autograd.grad(plain, scores)
    value, _ = value_and_slopes(penalty._number, scores, GROUP[rows], LABEL[rows], None)
    (found,) = torch.autograd.grad(3 * value, scores)
    torch.testing.assert_close(value, plain)
    torch.testing.assert_close(found, 3 * expected)
    other = copy.deepcopy(penalty)
    assert other._number != penalty._number
    torch.testing.assert_close(
        value_and_slopes(other._number, scores, GROUP[rows], LABEL[rows], None)[0], plain
    )


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["rows", "population"])
def test_a_training_step_compiles_to_one_whole_graph(estimate: Any) -> None:
    sampler = StratifiedBatchSampler(GROUP, batch_size=64, random_state=0)
    penalty = UnfairnessPenalty(estimate=estimate, sampler=sampler)
    model = torch.nn.Linear(4, 1)

    def loss(x: Tensor, y: Tensor, group: Tensor) -> Tensor:
        output = model(x).squeeze(1)
        risk = torch.nn.functional.binary_cross_entropy_with_logits(output, y)
        return risk + 2.0 * penalty(output.sigmoid(), group)

    whole = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for batch in list(sampler)[:3]:
        rows = torch.as_tensor(batch)
        gradients = []
        for function in (loss, whole):
            model.zero_grad()
            value = function(X[rows], LABEL[rows].float(), GROUP[rows])
            value.backward()
            assert model.weight.grad is not None
            gradients.append((value.item(), model.weight.grad.clone()))
        assert gradients[0][0] == pytest.approx(gradients[1][0], rel=1e-5)
        torch.testing.assert_close(gradients[0][1], gradients[1][1], rtol=1e-4, atol=1e-6)
