"""Networks of methods: batches of one's own, paths of strengths, weights in the loss."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from test_fairkde import simulated
from torch import Tensor

from experiments.stacks import fit_stack
from metrifair.baselines.fairkde import FairKDEClassifier
from metrifair.baselines.network import weighted_epochs
from metrifair.batches.samples import Samples
from metrifair.errors import DataError
from metrifair.problem.cells import Comparison
from metrifair.training import Schedule, train
from metrifair.training.models import Network
from metrifair.training.objective import BINARY, Objective
from metrifair.training.stack import Epoch, EpochSource, Outputs

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

    def draw(self, generators: Sequence[torch.Generator], outputs: Outputs) -> Epoch:
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


def test_a_path_is_one_long_training_whose_strength_and_rate_start_anew() -> None:
    """Against a stack in which the first part of a path is a member, and against twice the
    epochs.
    """
    data, objective = population(), Objective(BINARY, PAIR)

    def trained(
        strengths: Sequence[float], epochs: int, decay: float, *, path: bool
    ) -> dict[str, Tensor]:
        schedule = Schedule(
            batch_size=20, epochs=epochs, learning_rate=0.05, learning_rate_decay=decay
        )
        found = train(
            data,
            Network(3, (4,)),
            objective,
            strengths=strengths,
            seeds=[1, 2],
            schedule=schedule,
            path=path,
        )
        assert found.failed.shape == (2, len(strengths))
        return found.parameters

    path = trained([0.5, 0.5, 2.0], 4, 1.0, path=True)
    assert path["weight0"].shape[:2] == (2, 3)
    first, longer, longest = (trained([0.5], epochs, 1.0, path=False) for epochs in (4, 8, 12))
    for name, value in path.items():
        torch.testing.assert_close(value[:, :1], first[name])
        torch.testing.assert_close(value[:, 1:2], longer[name])
        assert not torch.allclose(value[:, 2:], longest[name], atol=1e-3)
    # the rate falls to nothing after an epoch, then is there again
    stopped = trained([0.5, 0.5], 4, 1e-9, path=True)
    for value in stopped.values():
        assert float((value[:, 1] - value[:, 0]).abs().max()) > 0.01


def test_weights_act_in_the_loss_with_the_batch_size_as_denominator() -> None:
    rows, weights = [np.array([3, 1, 4, 7, 9, 2, 6])], [np.array([1.0, 2, 3, 4, 5, 6, 7])]
    source = weighted_epochs(rows, weights, 3)
    for _ in range(3):
        epoch = source.draw([torch.Generator().manual_seed(0)], lambda: torch.zeros(()))
        assert epoch.rows.shape == epoch.weight.shape == (1, 2, 3)
        assert len(set(epoch.rows.flatten().tolist())) == 6  # a pass without repetition
        of_row = dict(zip(rows[0].tolist(), (weights[0] / 4).tolist(), strict=True))  # mean 1
        expected = [of_row[row] for row in epoch.rows.flatten().tolist()]
        assert epoch.weight.flatten().tolist() == pytest.approx(expected)
    full = weighted_epochs(rows, weights, 7)
    assert full.full_batch
    assert full.draw([torch.Generator()], lambda: torch.zeros(())).rows.tolist() == [
        [[3, 1, 4, 7, 9, 2, 6]]
    ]


def test_a_stack_without_rows_takes_all_and_its_own_strength() -> None:
    x, y, a = simulated(60)
    model = FairKDEClassifier(0.3, hidden=(2,), epochs=2, device="cpu")
    both = fit_stack(model, x, y, a, seeds=[4, 5])
    for seed, one in zip((4, 5), both, strict=True):
        assert (one.strength, one.random_state) == (0.3, seed)
        alone = FairKDEClassifier(**one.get_params()).fit(x, y, sensitive_features=a)
        np.testing.assert_allclose(one.decision_function(x), alone.decision_function(x), atol=1e-6)
    with pytest.raises(
        DataError, match="rows must contain the training rows of each of the 2 seeds, got 1"
    ):
        fit_stack(model, x, y, a, seeds=[4, 5], rows=[[0]])
