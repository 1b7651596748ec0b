"""Oneto's classifier against plain descent with the plans of POT; memory, divergence."""

from __future__ import annotations

from typing import Any

import numpy as np
import ot
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from test_fairkde import gap, simulated

from metrifair.baselines import SinkhornClassifier
from metrifair.errors import DataError, Diverged
from tests.seams.baselines import forward
from tests.seams.training import Network

QUICK: dict[str, Any] = {"epochs": 8, "hidden": (5,), "random_state": 2, "device": "cpu"}


def descended(x: Any, y: Any, a: Any, strength: float, *, level: str, among: Any) -> Any:
    """Plain gradient descent with POT's plans, through PyTorch's own distances."""
    start = Network(3, (5,)).initial(2)
    parameters = [
        start[name].clone().requires_grad_() for name in ("weight0", "bias0", "weight1", "bias1")
    ]
    features = torch.as_tensor((x - x.mean(0)) / x.std(0))
    target = torch.as_tensor(y, dtype=torch.float64)

    def output() -> tuple[Any, Any]:
        hidden = (features @ parameters[0].T + parameters[1].T).relu()
        return hidden, (hidden @ parameters[2].T + parameters[3].T).squeeze(1)

    for _ in range(QUICK["epochs"]):
        hidden, logit = output()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logit, target)
        compared = hidden if level == "hidden" else logit.sigmoid().unsqueeze(1)
        sides = [compared[torch.as_tensor(among & (a == code))] for code in (0, 1)]
        for i, j, factor in ((0, 1, 1.0), (0, 0, -0.5), (1, 1, -0.5)):
            cost = torch.cdist(sides[i], sides[j], compute_mode="donot_use_mm_for_euclid_dist")
            n, m = cost.shape
            plan = ot.sinkhorn(
                np.full(n, 1 / n), np.full(m, 1 / m), cost.detach().numpy(), 0.5, method="sinkhorn_log",
                stopThr=1e-10, numItermax=10_000,
            )  # fmt: skip
            loss = loss + strength * factor * (torch.as_tensor(plan) * cost).sum()
        for value, slope in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            value.data -= 0.1 * slope
    return output()[1].detach().numpy()


@pytest.mark.parametrize("level", ["hidden", "output"])
@pytest.mark.parametrize("criterion", ["statistical_parity", "equal_opportunity"])
def test_follows_descent_with_the_plans_of_pot(criterion: str, level: Any) -> None:
    """Which takes all rows as they come, also those that are there twice."""
    x, y, a = simulated(40)
    x[20:36] = x[:16]
    among = y == 1 if criterion == "equal_opportunity" else y >= 0
    expected = descended(x, y, a, 2.0, level=level, among=among)
    for options in ({}, {"block": 7}):
        model = SinkhornClassifier(
            2.0, criterion=criterion, level=level, epsilon=0.5, **QUICK, **options
        )
        found = model.fit(x, y, sensitive_features=a).decision_function(x)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_strength_0_is_plain_descent() -> None:
    x, y, a = simulated(40)
    model = SinkhornClassifier(0.0, **QUICK).fit(x, y, sensitive_features=a)
    expected = descended(x, y, a, 0.0, level="hidden", among=y >= 0)
    np.testing.assert_allclose(model.decision_function(x), expected, atol=1e-10)
    assert model.divergence_ == 0


def test_loose_plans_are_warned_about() -> None:
    x, y, a = simulated(40)
    model = SinkhornClassifier(0.01, max_iterations=2, **QUICK)
    with pytest.warns(ConvergenceWarning, match="2 iterations"):
        model.fit(x, y, sensitive_features=a)


def test_strength_makes_groups_alike() -> None:
    x, y, a = simulated(120)
    gaps = []
    for strength in (0.0, 5.0):
        model = SinkhornClassifier(strength, epochs=120, random_state=0, device="cpu").fit(
            x, y, sensitive_features=a
        )
        gaps.append(gap(model.predict_proba(x)[:, 1], a))
    assert gaps[0] > 0.2
    assert gaps[1] < 0.05


def test_the_reference_reports_the_plain_cost_of_the_same_training() -> None:
    x, y, a = simulated(40)
    both = [
        SinkhornClassifier(0.1, variant=variant, **QUICK).fit(x, y, sensitive_features=a)  # type: ignore[arg-type]
        for variant in ("method", "reference")
    ]
    np.testing.assert_array_equal(both[0].decision_function(x), both[1].decision_function(x))
    assert both[1].divergence_ > both[0].divergence_ > 0


def test_hidden_layers_and_outputs_are_those_of_the_network() -> None:
    for hidden in ((), (4,), (1,), (4, 3)):
        network = Network(3, hidden)
        parameters = {name: value[None, None] for name, value in network.initial(0).items()}
        x = torch.randn(1, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        layer, output = forward(network, parameters, x)
        torch.testing.assert_close(output, network(parameters, x))
        assert layer.shape == (1, 1, 6, hidden[-1] if hidden else 3)


def test_memory_is_refused_before_it_is_taken() -> None:
    """A terabyte would be needed: allocation itself would fail."""
    n = 200_000
    x, y = np.arange(n, dtype=float)[:, None], np.arange(n) % 2
    with pytest.raises(MemoryError, match="block"):
        SinkhornClassifier().fit(x, y, sensitive_features=np.arange(n) // 2 % 2)
    x, y, a = simulated(40)
    with pytest.raises(MemoryError, match="memory_limit"):
        SinkhornClassifier(memory_limit=1000).fit(x, y, sensitive_features=a)
    # no transport
    SinkhornClassifier(0.0, memory_limit=1000, epochs=1).fit(x, y, sensitive_features=a)
    # few distinct points
    SinkhornClassifier(memory_limit=1000, epochs=1).fit(np.sign(x), y, sensitive_features=a)


@pytest.mark.parametrize("options", [{"learning_rate": 1e200}, {"epochs": 1, "strength": 1.7e308}])
def test_descent_that_diverges_is_an_error(options: dict[str, Any]) -> None:
    """Also where it diverges at the last step."""
    x, y, a = simulated(40)
    wild = SinkhornClassifier(**{**QUICK, "learning_rate": 20.0, **options})
    with pytest.raises(Diverged, match="learning_rate"):
        wild.fit(x, y, sensitive_features=a)


def test_a_column_that_cannot_be_standardized_is_named() -> None:
    x, y, a = simulated(40)
    x[:, 1] *= 1e200
    with pytest.raises(DataError, match="column 1"):
        SinkhornClassifier(**QUICK).fit(x, y, sensitive_features=a)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"tol": 0}, "tol"),
        ({"max_iterations": 1.5}, "max_iterations must be an integer"),
        ({"block": 0}, "block must be an integer"),
        ({"block": 1.5}, "block must be an integer"),
        ({"strength": -1}, "strength"),
        ({"model": "linear"}, "level"),
        ({"level": "input"}, "level"),
        ({"criterion": "equalized_odds"}, "criterion"),
        ({"precision": "half"}, "precision"),
        ({"variant": "paper"}, "variant"),
        ({"epochs": 0}, "epochs"),
        ({"memory_limit": -1}, "memory_limit"),
    ],
)
def test_fit_refuses(options: dict[str, Any], named: str) -> None:
    x, y, a = simulated(40)
    with pytest.raises(DataError, match=named):
        SinkhornClassifier(**{**QUICK, **options}).fit(x, y, sensitive_features=a)


def test_an_empty_cell_is_named() -> None:
    x, y, a = simulated(40)
    y[a == 1] = 0
    with pytest.raises(DataError, match="group 1"):
        SinkhornClassifier(criterion="equal_opportunity", **QUICK).fit(x, y, sensitive_features=a)


def test_a_linear_model_is_penalized_at_its_output() -> None:
    x, y, a = simulated(120)
    model = SinkhornClassifier(
        20.0, model="linear", level="output", epochs=100, random_state=0, device="cpu"
    )
    assert gap(model.fit(x, y, sensitive_features=a).predict_proba(x)[:, 1], a) < 0.05


def test_decay_slows_descent() -> None:
    x, y, a = simulated(40)
    still = SinkhornClassifier(0.0, learning_rate_decay=1e-9, **QUICK).fit(
        x, y, sensitive_features=a
    )
    once = SinkhornClassifier(0.0, **{**QUICK, "epochs": 1}).fit(x, y, sensitive_features=a)
    np.testing.assert_allclose(still.decision_function(x), once.decision_function(x), atol=1e-6)
