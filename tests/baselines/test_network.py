"""Networks of methods: batches of one's own, weights in the loss; many seeds and strengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from test_fairkde import simulated
from torch import Tensor

from experiments.stacks import FairKDEPath, fit_stack
from metrifair.baselines import FairKDEClassifier, SinkhornClassifier
from metrifair.errors import DataError
from metrifair.training import Schedule, train
from tests.expected_errors import Refusals
from tests.seams.baselines import weighted_epochs
from tests.seams.batches import Samples
from tests.seams.problem import Comparison
from tests.seams.training import BINARY, Epoch, EpochSource, Network, Objective

PAIR = (Comparison((0,), (1,)),)


def population(n: int = 40) -> Samples:
    rng = np.random.default_rng(0)
    cell = np.arange(n) % 2
    x = rng.normal(size=(n, 3)) + cell[:, None]
    y = (x.sum(1) > 1).astype(float)
    return Samples(*(torch.as_tensor(part) for part in (x, y, cell, np.ones(n))))


class Watching:
    """Deals the same ten rows in every step, weights them by the epoch, and notes what it is
    shown of the models.
    """

    def __init__(self) -> None:
        self.seen: list[Tensor] = []

    def draw(self, generators: Sequence[torch.Generator], outputs: Callable[..., Any]) -> Epoch:
        self.seen.append(outputs())
        rows = torch.arange(10).expand(len(generators), 2, 10)
        return Epoch(rows, torch.full((len(generators), 1, 10), float(len(self.seen))))


def test_a_dealer_sees_the_models_between_epochs_and_sets_the_weights() -> None:
    data, network = population(), Network(3)
    watching = Watching()
    schedule = Schedule(batch_size=10, epochs=3, learning_rate=0.1)
    found = train(
        data,
        network,
        Objective(BINARY, ()),
        strengths=[0.0],
        seeds=[4, 5],
        schedule=schedule,
        source=EpochSource(10, (), watching.draw, full_batch=True),
        standardize=False,
    )
    for place, seed in enumerate((4, 5)):
        start = network.initial(seed)
        weight, bias = (start[name].clone().requires_grad_() for name in ("weight0", "bias0"))
        adam = torch.optim.Adam([weight, bias], lr=0.1)
        for epoch in range(3):
            expected = (data.x @ weight[0] + bias[0, 0]).detach()
            torch.testing.assert_close(watching.seen[epoch][place, 0], expected)
            for _ in range(2):
                adam.zero_grad()
                output = data.x[:10] @ weight[0] + bias[0, 0]
                (
                    (epoch + 1)
                    * torch.nn.functional.binary_cross_entropy_with_logits(output, data.y[:10])
                ).backward()
                adam.step()
        torch.testing.assert_close(found.parameters["weight0"][place, 0], weight.detach())


def test_weights_act_in_the_loss_with_the_batch_size_as_denominator() -> None:
    weights = np.array([1.0, 2, 3, 4, 5, 6, 7])
    source = weighted_epochs(weights, 3)
    for _ in range(3):
        epoch = source.draw([torch.Generator().manual_seed(0)], lambda: torch.zeros(()))
        assert epoch.rows.shape == epoch.weight.shape == (1, 2, 3)
        assert len(set(epoch.rows.flatten().tolist())) == 6  # a pass without repetition
        expected = [float(weights[row] / 4) for row in epoch.rows.flatten()]  # mean 1
        assert epoch.weight.flatten().tolist() == pytest.approx(expected)
    full = weighted_epochs(weights, 7)
    assert full.full_batch
    assert full.draw([torch.Generator()], lambda: torch.zeros(())).rows.tolist() == [
        [[0, 1, 2, 3, 4, 5, 6]]
    ]


QUICK: dict[str, Any] = {"hidden": (2,), "epochs": 2, "batch_size": 20, "device": "cpu"}


def test_a_stack_has_every_seed_on_its_rows_at_every_strength() -> None:
    x, y, a = simulated(60)
    rows = [np.arange(0, 45), np.arange(20, 60)]
    template = FairKDEClassifier(0.3, **QUICK)
    stack = fit_stack(template, x, y, a, seeds=[4, 5], rows=rows, strengths=[0.0, 0.5])
    assert [(one.random_state, one.strength) for one in stack] == [
        (4, 0.0), (4, 0.5), (5, 0.0), (5, 0.5),
    ]  # fmt: skip
    for place, one in enumerate(stack):
        own = rows[place // 2]
        alone = FairKDEClassifier(**one.get_params()).fit(x[own], y[own], sensitive_features=a[own])
        np.testing.assert_array_equal(one.decision_function(x), alone.decision_function(x))


def test_a_stack_without_rows_takes_all_and_its_own_strength(refused: Refusals) -> None:
    x, y, a = simulated(60)
    model = FairKDEClassifier(0.3, **QUICK)
    both = fit_stack(model, x, y, a, seeds=[4, 5])
    for seed, one in zip((4, 5), both, strict=True):
        assert (one.strength, one.random_state) == (0.3, seed)
        alone = FairKDEClassifier(**one.get_params()).fit(x, y, sensitive_features=a)
        np.testing.assert_array_equal(one.decision_function(x), alone.decision_function(x))
    with refused(DataError):
        fit_stack(model, x, y, a, seeds=[4, 5], rows=[[0]])


def test_a_stack_has_none_where_training_diverged() -> None:
    x, y, a = simulated(40)
    calm = SinkhornClassifier(hidden=(5,), epochs=3, learning_rate=20.0, device="cpu")
    stack = fit_stack(calm, x, y, a, strengths=[0.01, 1.7e308])
    assert [model is None for model in stack] == [False, True]


def test_a_path_goes_on_where_the_last_strength_ended() -> None:
    """Without any step of training to speak of, the next strength has the same weights."""
    x, y, a = simulated(60)
    path = FairKDEPath(**QUICK)
    first, second = fit_stack(path, x, y, a, strengths=[0.4, 0.9], seeds=[3])
    alone = FairKDEClassifier(0.4, random_state=3, **QUICK).fit(x, y, sensitive_features=a)
    np.testing.assert_array_equal(first.decision_function(x), alone.decision_function(x))
    assert np.abs(second.decision_function(x) - first.decision_function(x)).max() > 1e-3
    still = FairKDEPath(0.9, before=first, **{**QUICK, "learning_rate": 1e-12})
    still.fit(x, y, sensitive_features=a)
    np.testing.assert_allclose(still.decision_function(x), first.decision_function(x), atol=1e-6)
