"""`model.module()`: layers of torch alone that say what the model says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from metrifair import FairClassifier, FairRegressor
from tests.flat_options import with_penalty

# trained for a moment
pytestmark = pytest.mark.filterwarnings(
    "ignore:(the model predicts the same|.*models are constant)"
)

RNG = np.random.default_rng(0)
A = RNG.integers(2, size=120)
X = RNG.normal(size=(120, 3)) * [1, 20, 0.01] + [0, 500, 0] + A[:, None]
VALUE = X[:, 0] + RNG.normal(size=120)
YES, THREE = np.where(VALUE > 0, "yes", "no"), np.digitize(VALUE, [0, 1])
QUICK: dict[str, Any] = {"epochs": 2, "random_state": 0}


class Flat(nn.Module):
    """A network that returns (n,), with a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1, bias=False)
        self.register_buffer("shift", torch.tensor(0.25))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).squeeze() + self.shift.to(x)  # of one row, no axis is left


MODELS: dict[str, tuple[type, dict[str, Any], Any]] = {
    "linear": (FairClassifier, {"model": "linear"}, YES),
    "linear, three classes": (FairClassifier, {"model": "linear"}, THREE),
    "network": (FairClassifier, QUICK | {"model": "mlp"}, YES),
    "network, three classes": (FairClassifier, QUICK | {"model": "mlp", "hidden": (4, 5)}, THREE),
    "network as it is": (FairClassifier, QUICK | {"model": "mlp", "standardize": False}, YES),
    "regression, linear": (FairRegressor, {"model": "linear"}, 100 + 7 * VALUE),
    "regression": (FairRegressor, QUICK | {"model": "mlp"}, 100 + 7 * VALUE),
    "module": (
        FairClassifier,
        QUICK | {"model": nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))},
        THREE,
    ),
    "module of a line": (
        FairRegressor,
        QUICK | {"model": nn.Linear(3, 1, bias=False)},
        100 + 7 * VALUE,
    ),
    "module that is flat": (FairRegressor, QUICK | {"model": Flat()}, 100 + 7 * VALUE),
    "module as it is": (
        FairClassifier,
        QUICK | {"model": nn.Linear(3, 1), "standardize": False},
        YES,
    ),
}
OURS = [name for name in MODELS if not name.startswith("module")]


def fitted(name: str) -> Any:
    kind, parameters, target = MODELS[name]
    return kind(**with_penalty(**parameters)).fit(X, target, sensitive_features=A)


def said(model: Any, rows: Any = X) -> Any:
    found = (
        model.decision_function(rows)
        if hasattr(model, "decision_function")
        else model.predict(rows)
    )
    return found if found.ndim == 2 else found[:, None]


@pytest.mark.parametrize("name", MODELS)
def test_a_module_says_what_the_model_says(name: str) -> None:
    model = fitted(name)
    module = model.module()
    assert not module.training
    assert {part.dtype for part in module.parameters()} == {torch.float64}
    np.testing.assert_allclose(
        module(torch.tensor(X)).detach().numpy(), said(model), rtol=1e-10, atol=1e-10
    )
    half = np.float32(X)
    np.testing.assert_allclose(
        module.float()(torch.tensor(half)).detach().numpy(), said(model), rtol=1e-3, atol=2e-3
    )


@pytest.mark.parametrize("name", OURS)
def test_a_module_of_ours_is_layers_of_torch_alone(name: str) -> None:
    module = fitted(name).module()
    assert {type(part) for part in module.modules()} <= {nn.Sequential, nn.Linear, nn.ReLU}
    widths = [
        (layer.in_features, layer.out_features) for layer in module if isinstance(layer, nn.Linear)
    ]
    layers: list[nn.Module] = []
    for place, (before, after) in enumerate(widths):
        layers += ([nn.ReLU()] if place else []) + [nn.Linear(before, after, dtype=torch.float64)]
    again = nn.Sequential(*layers)
    again.load_state_dict(module.state_dict())
    x = torch.tensor(X)
    assert torch.equal(again(x), module(x))


def test_a_module_is_a_copy_and_can_be_trained_on() -> None:
    for name in ("network", "module that is flat"):
        model = fitted(name)
        before, module = said(model), model.module()
        own = getattr(model.predictor_.model, "module", nn.ReLU())
        assert not set(map(id, module.modules())) & set(map(id, own.modules()))
        loss = module(torch.tensor(X)).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for part in module.parameters():
                assert part.grad is not None
                part.sub_(part.grad)
        assert np.array_equal(said(model), before)
        assert float(module(torch.tensor(X)).square().mean().detach()) != float(loss.detach())


def test_a_stream_gives_the_module_of_the_moment() -> None:
    model = FairClassifier(1.0, hidden=(4,), random_state=0, model="mlp")
    for chunk in (slice(0, 60), slice(60, 120)):
        model.partial_fit(X[chunk], YES[chunk], sensitive_features=A[chunk])
        assert model.n_updates_
        np.testing.assert_allclose(
            model.module()(torch.tensor(X)).detach().numpy(), said(model), atol=1e-10
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_module_is_scripted_and_exported_with_any_number_of_rows() -> None:
    model = fitted("network, three classes")
    rows = torch.export.Dim("rows", min=1)
    program = torch.export.export(
        model.module(), (torch.tensor(X[:5]),), dynamic_shapes=({0: rows},)
    )
    np.testing.assert_allclose(
        program.module()(torch.tensor(X)).detach().numpy(), said(model), atol=1e-10
    )
    scripted = torch.jit.script(model.module())  # type: ignore[no-untyped-call]
    np.testing.assert_allclose(scripted(torch.tensor(X)).detach().numpy(), said(model), atol=1e-10)
