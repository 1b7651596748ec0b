"""A stack computes what its networks would compute one by one, from starts that only the seed
decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor, nn

from metrifair.errors import DataError
from metrifair.estimators import FairClassifier, FairRegressor, fit_stack
from metrifair.training import Scaling, Schedule, train, weighted_moments
from tests.one_split import frontier
from tests.seams.batches import Samples
from tests.seams.problem import Comparison
from tests.seams.training import (
    BINARY,
    Adam,
    Moments,
    Network,
    Objective,
    StackedModule,
    member,
    models,
    stack_parameters,
)

SEEDS, STRENGTHS, ROWS, FEATURES = (3, 4), 3, 7, 5
SHAPES = {"linear": (), "one layer": (4,), "two layers": (6, 3)}


def random_stack(model: Any) -> dict[str, Tensor]:
    """Parameters that differ between all members."""
    generator = torch.Generator().manual_seed(0)
    start = stack_parameters([model.initial(seed) for seed in SEEDS], STRENGTHS)
    return {
        name: value + torch.randn(value.shape, generator=generator, dtype=torch.float64)
        for name, value in start.items()
    }


def rows() -> Tensor:
    return torch.randn(
        len(SEEDS), ROWS, FEATURES, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )


def plain(network: Network, parameters: dict[str, Tensor]) -> nn.Sequential:
    """The same network from PyTorch's own layers."""
    layers: list[nn.Module] = []
    for layer, (before, after) in enumerate(
        zip(network.widths[:-1], network.widths[1:], strict=True)
    ):
        linear = nn.Linear(before, after, dtype=torch.float64)
        linear.load_state_dict(
            {"weight": parameters[f"weight{layer}"], "bias": parameters[f"bias{layer}"].squeeze(-1)}
        )
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("hidden", SHAPES.values(), ids=SHAPES)
def test_every_network_of_a_stack_is_the_plain_network_with_its_weights(
    hidden: tuple[int, ...], outputs: int
) -> None:
    network = Network(FEATURES, hidden, outputs)
    parameters, x = random_stack(network), rows()
    found = network(parameters, x)
    assert found.shape == (len(SEEDS), STRENGTHS, ROWS) + ((outputs,) if outputs > 1 else ())
    for s in range(len(SEEDS)):
        for k in range(STRENGTHS):
            own = {name: value[s, k] for name, value in parameters.items()}
            expected = plain(network, own)(x[s]).detach()
            torch.testing.assert_close(
                found[s, k], expected if outputs > 1 else expected.squeeze(-1)
            )


@pytest.mark.parametrize("hidden", SHAPES.values(), ids=SHAPES)
def test_gradients_of_one_network_do_not_reach_another(hidden: tuple[int, ...]) -> None:
    network = Network(FEATURES, hidden)
    parameters = {name: value.requires_grad_() for name, value in random_stack(network).items()}
    network(parameters, rows())[1, 2].sum().backward()
    for value in parameters.values():
        others = value.grad.clone()
        others[1, 2] = 0
        assert not others.any()
    assert parameters["bias0"].grad[1, 2].any()


@pytest.mark.parametrize(
    "model", [Network(FEATURES, (4,)), StackedModule(nn.Linear(FEATURES, 1))], ids=["net", "module"]
)
def test_a_member_is_a_stack_of_its_own_with_its_own_memory(model: Any) -> None:
    parameters, x = random_stack(model), rows()
    alone = member(parameters, 1, 2)
    torch.testing.assert_close(
        model(alone, x[1:2])[0, 0], model(parameters, x)[1, 2], rtol=1e-12, atol=1e-12
    )
    for value in alone.values():
        value.zero_()
    assert all(value[1, 2].any() for value in parameters.values())


def test_a_stack_starts_all_strengths_of_a_seed_alike() -> None:
    start = stack_parameters(
        [{"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 4.0])}], copies=2
    )
    assert start["w"].tolist() == [[[1.0, 2.0]] * 2, [[3.0, 4.0]] * 2]


MAKERS: dict[str, Callable[[], Any]] = {
    "network": lambda: Network(FEATURES, (4,)),
    "module": lambda: StackedModule(
        nn.Sequential(nn.Linear(FEATURES, 4), nn.Tanh(), nn.Linear(4, 1))
    ),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_start_depends_on_the_seed_alone(make: Callable[[], Any]) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = make().initial(0)
    torch.set_rng_state(before)
    drawn = torch.rand(3)
    torch.set_rng_state(before)
    model = make()
    again, other = model.initial(0), model.initial(1)
    torch.set_rng_state(before)
    assert torch.equal(torch.rand(3), drawn)
    for name, value in first.items():
        assert torch.equal(value, again[name])
        assert value.dtype == torch.float64
        assert not torch.equal(value, other[name])


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_drawing_a_start_leaves_the_global_generator_alone(make: Callable[[], Any]) -> None:
    model = make()
    before = torch.get_rng_state()
    model.initial(3)
    assert torch.equal(torch.get_rng_state(), before)


def test_weights_start_uniform_within_one_over_the_root_of_the_inputs() -> None:
    start = Network(400, (500,)).initial(0)
    for name, inputs in {"weight0": 400, "bias0": 400, "weight1": 500}.items():
        bound = 1 / math.sqrt(inputs)
        assert start[name].abs().max() <= bound
        # of 500 or more draws, missed with probability 0.98^500 = 4e-5
        assert start[name].abs().max() > 0.98 * bound
    spread = start["weight0"].std().item() * 20 * math.sqrt(3)
    assert spread == pytest.approx(1, abs=0.01)  # 200,000 draws: standard error of the spread 0.001


def test_a_network_without_features_is_a_constant() -> None:
    network = Network(0)
    assert network(
        stack_parameters([network.initial(0)], 2), torch.zeros(1, 3, 0, dtype=torch.float64)
    ).shape == (
        1,
        2,
        3,
    )


# --- modules of the user
# ----------------------------------------------------------------------------------------


class Ratio(nn.Module):
    """A parameter that no layer resets, one that is a single number, and (n,) outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(FEATURES, 1)
        self.slope = nn.Parameter(torch.tensor(0.25))

    def forward(self, x: Tensor) -> Tensor:
        return (self.slope * self.inner(x)).squeeze(-1)


MODULES = {
    "(n,)": (Ratio, 1),
    "(n, 1)": (lambda: nn.Sequential(nn.Linear(FEATURES, 4), nn.LayerNorm(4), nn.Linear(4, 1)), 1),
    "(n, 3)": (lambda: nn.Sequential(nn.Linear(FEATURES, 4), nn.Tanh(), nn.Linear(4, 3)), 3),
    "batch statistics": (
        lambda: nn.Sequential(nn.BatchNorm1d(FEATURES, track_running_stats=False), nn.Linear(5, 1)),
        1,
    ),
}


@pytest.mark.parametrize(("make", "outputs"), MODULES.values(), ids=MODULES)
def test_a_stacked_module_is_the_module_with_each_member_s_weights(
    make: Callable[[], nn.Module], outputs: int
) -> None:
    model, x = StackedModule(make(), outputs), rows()
    parameters = random_stack(model)
    found = model(parameters, x)
    for s in range(len(SEEDS)):
        for k in range(STRENGTHS):
            alone = make().double()
            alone.load_state_dict({name: value[s, k] for name, value in parameters.items()})
            expected = alone(x[s]).detach()
            torch.testing.assert_close(found[s, k], expected.reshape(found[s, k].shape))


def test_layers_start_anew_and_other_parameters_as_they_are() -> None:
    model = StackedModule(Ratio())
    first, second = model.initial(0), model.initial(1)
    assert first["slope"].item() == second["slope"].item() == 0.25
    assert not torch.equal(first["inner.weight"], second["inner.weight"])


def test_a_module_is_left_as_it_was() -> None:
    module = Ratio()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    model = StackedModule(module)
    model(random_stack(model), rows()).sum()
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


@pytest.mark.parametrize(
    ("module", "layer"),
    [
        (nn.BatchNorm1d(FEATURES), "layer itself (BatchNorm1d)"),
        (nn.Sequential(nn.Linear(FEATURES, 2), nn.BatchNorm1d(2)), "layer 1 (BatchNorm1d)"),
        (
            nn.Sequential(nn.Sequential(nn.InstanceNorm1d(2, track_running_stats=True))),
            "layer 0.0 (InstanceNorm1d)",
        ),
    ],
)
def test_running_statistics_are_refused(module: nn.Module, layer: str) -> None:
    with pytest.raises(DataError) as caught:
        StackedModule(module)
    assert str(caught.value) == (
        f"{layer} keeps running statistics, which a stack of models cannot share; use LayerNorm or "
        "GroupNorm"
    )


@pytest.mark.parametrize(
    ("module", "outputs", "wanted", "got"),
    [
        (nn.Linear(FEATURES, 2), 1, "(n,) or (n, 1)", "(7, 2)"),
        (nn.Linear(FEATURES, 2), 3, "(n, 3)", "(7, 2)"),
        (nn.Flatten(0), 1, "(n,) or (n, 1)", "(35,)"),
    ],
)
def test_outputs_of_another_shape_are_refused(
    module: nn.Module, outputs: int, wanted: str, got: str
) -> None:
    module = nn.Sequential(nn.LayerNorm(FEATURES), module)
    model = StackedModule(module, outputs)
    with pytest.raises(DataError) as caught:
        model(stack_parameters([model.initial(0)], 1), rows()[:1])
    assert str(caught.value) == f"the module must return {wanted} for n samples, got shape {got}"


class Branching(nn.Linear):
    """A module whose way depends on the numbers."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if x.sum().item() > 0 else x


@pytest.mark.parametrize(
    "module", [Branching(FEATURES, 1), nn.Linear(FEATURES + 1, 1)], ids=["branching", "too wide"]
)
def test_what_cannot_be_stacked_is_refused_with_the_reason(module: nn.Module) -> None:
    model = StackedModule(module)
    with pytest.raises(DataError) as caught:
        model(stack_parameters([model.initial(0)], 2), rows()[:1])
    name, reason = type(module).__name__, caught.value.__cause__
    assert str(caught.value) == (
        f"{name} cannot be run as a stack of models ({reason}); it must map a float tensor (n, "
        "features) to "
        "(n, outputs) by operations without side effects"
    )


def test_dropout_acts_in_training_only_and_in_every_member_for_itself() -> None:
    model = StackedModule(
        nn.Sequential(nn.Linear(FEATURES, 200), nn.Dropout(0.5), nn.Linear(200, 1))
    )
    torch.manual_seed(0)
    alike = stack_parameters([model.initial(0)] * 2, 2)
    found = model(alike, rows()[:1].expand(2, -1, -1), training=True)
    assert len({round(value, 9) for value in found[:, :, 0].flatten().tolist()}) == 4
    once, again = (model(alike, rows()[:1].expand(2, -1, -1)) for _ in range(2))
    assert torch.equal(once, again)


Floats = NDArray[np.float64]

N = 240
RNG = np.random.default_rng(3)
A = RNG.integers(2, size=N)
# so few bits that any shift leaves them all
X = np.round(1024 * (RNG.normal(size=(N, 3)) + 0.8 * A[:, None])) / 1024
Y = (X.sum(1) + RNG.normal(size=N) > 1.2).astype(int)
AMOUNT = X.sum(1) + RNG.normal(size=N)

UNITS = {
    "years": (2e4, 1.0),
    "timestamps": (1e9, 1.0),
    "cents": (1e6, 1e2),
    "small and far": (-1e9, 1e-3),
    "large": (0.0, 1e6),
    "tiny": (1e6, 1e-12),
}


def moved(x: Floats, units: str) -> Floats:
    """Every second feature with another zero, and in another unit."""
    shift, scale = UNITS[units]
    return np.where(np.arange(x.shape[1]) % 2 == 0, (x + shift) * scale, x)


class Small(torch.nn.Module):
    """A network of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = self.layers(x)
        return output


def output(model: Any, x: Floats) -> Floats:
    found: Floats = (
        model.predict(x) if isinstance(model, FairRegressor) else model.decision_function(x)
    )
    return found


def by_fit(model: Any, x: Floats, y: Any) -> list[Floats]:
    return [output(model.fit(x, y, sensitive_features=A), x)]


def by_stream(model: Any, x: Floats, y: Any) -> list[Floats]:
    for chunk in np.array_split(np.arange(N), 5):
        model.partial_fit(x[chunk], y[chunk], sensitive_features=A[chunk])
    return [output(model, x)]


def by_both(model: Any, x: Floats, y: Any) -> list[Floats]:
    half = N // 2
    model.fit(x[:half], y[:half], sensitive_features=A[:half])
    return [output(model.partial_fit(x[half:], y[half:], sensitive_features=A[half:]), x)]


def by_stack(model: Any, x: Floats, y: Any) -> list[Floats]:
    fits = fit_stack(model, x, y, strengths=[0.0, 2.0], seeds=[0, 5], sensitive_features=A)
    return [output(one, x) for one in fits]


def by_frontier(model: Any, x: Floats, y: Any) -> list[Floats]:
    front = frontier(model, x, y, sensitive_features=A, strengths=[0, 1.0], random_state=0)
    return [output(one, x) for one in front.models] + [
        np.array([point.accuracy for point in front.points])
    ]


WAYS: dict[str, Callable[[Any, Floats, Any], list[Floats]]] = {
    "fit": by_fit,
    "partial_fit": by_stream,
    "fit, then partial_fit": by_both,
    "stack": by_stack,
    "frontier": by_frontier,
}
# MMD is smooth: of the energy distance a rounding that swaps two ranks would show.
OPTIONS: dict[str, Any] = {
    "metric": "mmd",
    "epochs": 8,
    "learning_rate": 0.02,
    "random_state": 0,
    "device": "cpu",
}
MODELS: dict[str, tuple[Any, Any]] = {
    "linear": (FairClassifier(1.0, model="linear", **OPTIONS), Y),
    "network": (FairClassifier(1.0, model="mlp", hidden=(6,), **OPTIONS), Y),
    "module": (FairClassifier(1.0, model=Small(), **OPTIONS), Y),
    "regressor": (FairRegressor(1.0, model="mlp", hidden=(6,), **OPTIONS), AMOUNT),
}


def learnt(model: str, size: Any, way: str, x: Floats) -> list[Floats]:
    estimator, y = MODELS[model]
    size = 16 if size == "auto" and "partial" in way else size
    return WAYS[way](clone(estimator).set_params(batch_size=size), x, y)


@cache
def learnt_as_it_is(model: str, size: Any, way: str) -> list[Floats]:
    return learnt(model, size, way, X)


@pytest.mark.extended
@pytest.mark.pairwise
@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("size", ["auto", 40], ids=["full batch", "minibatch"])
def test_units_of_the_features_change_nothing(model: str, size: Any, units: str) -> None:
    """Every way of training meets every model, and all units; each test takes every other way.

    Single precision alone, from other roundings, explains 1e-4 but not the 1e-2 of a cast.
    """
    place = list(MODELS).index(model) // 2 + list(UNITS).index(units) // 2
    for name in list(WAYS)[place % 2 :: 2]:
        plain, other = (
            learnt_as_it_is(model, size, name),
            learnt(model, size, name, moved(X, units)),
        )
        for one, again in zip(plain, other, strict=True):
            np.testing.assert_allclose(again, one, rtol=0, atol=2e-4, err_msg=name)
        assert all(np.ptp(one) > 1e-3 for one in plain[:1])  # and something was learnt


@pytest.mark.parametrize("size", [30, 400], ids=["minibatch", "full batch"])
def test_seeds_with_rows_of_their_own_do_not_see_the_units_either(size: int) -> None:
    """One seed's rows hold a value far out, which must not cost the others their digits."""
    far = X.copy()
    far[7, 0] = 2.0**40
    cell = torch.as_tensor(A)
    alike = (cell == cell[7]).nonzero()[:, 0]
    without = (int(alike[-1]), 7, 7)  # each seed has as many rows of a cell as the others
    rows = [torch.arange(N)[torch.arange(N) != row] for row in without]

    def run(x: Floats, rows: list[torch.Tensor], seeds: list[int]) -> list[Floats]:
        data = Samples(torch.as_tensor(x), torch.as_tensor(Y.astype(float)), cell, torch.ones(N))
        objective = Objective(BINARY, (Comparison((0,), (1,)),))
        schedule = Schedule(size, epochs=6, learning_rate=0.02)
        found = train(
            data,
            Network(3, (5,)),
            objective,
            strengths=[1.0],
            seeds=seeds,
            schedule=schedule,
            rows=rows,
        )
        return [np.delete(found.predictor(s, 0).output(x), 7) for s in range(len(seeds))]

    together = run(far, rows, [0, 1, 2])
    for seed, (one, own) in enumerate(zip(together, rows, strict=True)):
        (alone,) = run(far, [own], [seed])
        np.testing.assert_allclose(one, alone, rtol=0, atol=1e-4 if size == 30 else 1e-9)
    for one, again in zip(together, run(moved(far, "years"), rows, [0, 1, 2]), strict=True):
        np.testing.assert_allclose(again, one, rtol=0, atol=1e-4 if size == 30 else 1e-7)


def of_a_stream(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scaling = Moments.none(1).with_samples(x.numpy(), weight.numpy()).scaling
    return scaling.mean[0], scaling.scale[0]


@pytest.mark.parametrize("moments", [weighted_moments, of_a_stream])
def test_moments_keep_their_digits_far_from_zero(
    moments: Callable[..., tuple[torch.Tensor, torch.Tensor]],
) -> None:
    """Against whole numbers, which Python adds exactly."""
    rng = np.random.default_rng(99)
    steps = rng.integers(0, 1000, 20_000)
    x, weight = (
        torch.as_tensor(steps + 10**12).double().unsqueeze(1),
        torch.as_tensor(rng.integers(1, 9, 20_000) / 8),
    )
    mean, scale = moments(x, weight)
    exact = sum(int(step) * int(8 * own) for step, own in zip(steps, weight, strict=True)) / float(
        8 * weight.sum()
    )
    # 16 roundings, of a sum in pairs, each of 2^-13 there, twice
    assert abs(float(mean[0] - 10**12) - exact) <= 2**-8
    spread = np.sqrt(np.average((steps - exact) ** 2, weights=weight))
    assert float(scale[0]) == pytest.approx(spread, rel=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1 + 0.2, -1e12, 1e-300])
def test_a_constant_has_unit_spread_wherever_it_lies(value: float) -> None:
    rng = np.random.default_rng(99)
    weight = torch.as_tensor(rng.uniform(0.1, 2, 999))
    mean, scale = weighted_moments(torch.full((999, 1), value, dtype=torch.float64), weight)
    assert scale[0] == 1.0
    assert float(mean[0]) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("size", ["auto", 40], ids=["full batch", "minibatch"])
def test_a_feature_whose_squares_overflow_is_refused(size: Any) -> None:
    wide = X.copy()
    wide[::2, 1] = 1e200
    with pytest.raises(DataError) as caught:
        FairClassifier(0.0, model="mlp", batch_size=size, **OPTIONS).fit(wide, Y)
    assert (
        str(caught.value) == "column 1 of X spreads so far that its square is infinite; rescale it"
    )


def test_a_target_whose_squares_overflow_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        FairRegressor(0.0, model="mlp", **OPTIONS).fit(X, 1e200 * AMOUNT)
    assert str(caught.value) == "y spreads so far that its square is infinite; rescale it"


def test_rounding_comes_last_and_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.as_tensor(moved(X, "timestamps"))
    units = Scaling(*(part.unsqueeze(0) for part in weighted_moments(x, torch.ones(N))))
    expected = ((x - units.mean) / units.scale).float()
    monkeypatch.setattr(models, "_NUMBERS_AT_ONCE", 21)
    found, left = units.in_shared_units(x, torch.device("cpu"), torch.float32)
    assert torch.equal(found, expected)
    by_column, _ = units.in_shared_units(x.T.contiguous().T, x.device, torch.float32)
    assert torch.equal(by_column, expected)
    assert by_column.is_contiguous()  # kernels read it row by row
    assert torch.equal(left.mean, torch.zeros_like(left.mean))
    assert torch.equal(left.scale, torch.ones_like(left.scale))


@pytest.mark.parametrize("network", [Network(3), Network(3, (4,)), Network(3, (5, 4), outputs=2)])
def test_a_network_by_hand_is_that_of_autograd(network: Network) -> None:
    adam = Adam(stack_parameters([network.initial(1)], 1), learning_rate=0.1)
    x, slope = (
        torch.randn(7, 3, dtype=torch.float64),
        torch.randn(7, network.outputs, dtype=torch.float64),
    )
    output, back = network.traced(adam.arrays, x.numpy())
    expected = network(adam.parameters, x.unsqueeze(0)).reshape(7, network.outputs)
    np.testing.assert_allclose(output, expected.detach(), rtol=1e-12)
    (expected * slope).sum().backward()
    by_autograd = adam.gradient.clone()
    adam.gradient.zero_()
    back(slope.numpy())
    torch.testing.assert_close(adam.gradient, by_autograd, rtol=1e-12, atol=1e-14)
    assert by_autograd.count_nonzero() > 0.4 * len(by_autograd)
