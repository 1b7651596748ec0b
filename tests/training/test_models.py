"""A stack computes what its networks would compute one by one, from starts that only the seed decides."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from metrifair.errors import DataError
from metrifair.training.models import Model, Network, StackedModule, member, stacked

SEEDS, STRENGTHS, ROWS, FEATURES = (3, 4), 3, 7, 5
SHAPES = {"linear": (), "one layer": (4,), "two layers": (6, 3)}


def random_stack(model: Model) -> dict[str, Tensor]:
    """Parameters that differ between all members."""
    generator = torch.Generator().manual_seed(0)
    start = stacked([model.initial(seed) for seed in SEEDS], STRENGTHS)
    return {
        name: value + torch.randn(value.shape, generator=generator, dtype=torch.float64)
        for name, value in start.items()
    }


def rows() -> Tensor:
    return torch.randn(len(SEEDS), ROWS, FEATURES, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def plain(network: Network, parameters: dict[str, Tensor]) -> nn.Sequential:
    """The same network from PyTorch's own layers."""
    layers: list[nn.Module] = []
    for layer, (before, after) in enumerate(zip(network.widths[:-1], network.widths[1:], strict=True)):
        linear = nn.Linear(before, after, dtype=torch.float64)
        linear.load_state_dict({"weight": parameters[f"weight{layer}"], "bias": parameters[f"bias{layer}"].squeeze(-1)})
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("hidden", SHAPES.values(), ids=SHAPES)
def test_every_network_of_a_stack_is_the_plain_network_with_its_weights(hidden: tuple[int, ...], outputs: int) -> None:
    network = Network(FEATURES, hidden, outputs)
    parameters, x = random_stack(network), rows()
    found = network(parameters, x)
    assert found.shape == (len(SEEDS), STRENGTHS, ROWS) + ((outputs,) if outputs > 1 else ())
    for s in range(len(SEEDS)):
        for k in range(STRENGTHS):
            own = {name: value[s, k] for name, value in parameters.items()}
            expected = plain(network, own)(x[s]).detach()
            torch.testing.assert_close(found[s, k], expected if outputs > 1 else expected.squeeze(-1))


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
def test_a_member_is_a_stack_of_its_own_with_its_own_memory(model: Model) -> None:
    parameters, x = random_stack(model), rows()
    alone = member(parameters, 1, 2)
    torch.testing.assert_close(model(alone, x[1:2])[0, 0], model(parameters, x)[1, 2], rtol=1e-12, atol=1e-12)
    for value in alone.values():
        value.zero_()
    assert all(value[1, 2].any() for value in parameters.values())


def test_a_stack_starts_all_strengths_of_a_seed_alike() -> None:
    start = stacked([{"w": torch.tensor([1.0, 2.0])}, {"w": torch.tensor([3.0, 4.0])}], copies=2)
    assert start["w"].tolist() == [[[1.0, 2.0]] * 2, [[3.0, 4.0]] * 2]


MAKERS: dict[str, Callable[[], Model]] = {
    "network": lambda: Network(FEATURES, (4,)),
    "module": lambda: StackedModule(nn.Sequential(nn.Linear(FEATURES, 4), nn.Tanh(), nn.Linear(4, 1))),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_the_start_depends_on_the_seed_alone(make: Callable[[], Model]) -> None:
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
def test_drawing_a_start_leaves_the_global_generator_alone(make: Callable[[], Model]) -> None:
    model = make()
    before = torch.get_rng_state()
    model.initial(3)
    assert torch.equal(torch.get_rng_state(), before)


def test_weights_start_uniform_within_one_over_the_root_of_the_inputs() -> None:
    start = Network(400, (500,)).initial(0)
    for name, inputs in {"weight0": 400, "bias0": 400, "weight1": 500}.items():
        bound = 1 / math.sqrt(inputs)
        assert start[name].abs().max() <= bound
        assert start[name].abs().max() > 0.98 * bound  # of 500 or more draws, missed with probability 0.98^500 = 4e-5
    spread = start["weight0"].std().item() * 20 * math.sqrt(3)
    assert spread == pytest.approx(1, abs=0.01)  # 200,000 draws: standard error of the spread 0.001


def test_a_network_without_features_is_a_constant() -> None:
    network = Network(0)
    assert network(stacked([network.initial(0)], 2), torch.zeros(1, 3, 0, dtype=torch.float64)).shape == (1, 2, 3)


# --- modules of the user ----------------------------------------------------------------------------------------


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
def test_a_stacked_module_is_the_module_with_each_member_s_weights(make: Callable[[], nn.Module], outputs: int) -> None:
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
        (nn.Sequential(nn.Sequential(nn.InstanceNorm1d(2, track_running_stats=True))), "layer 0.0 (InstanceNorm1d)"),
    ],
)
def test_running_statistics_are_refused(module: nn.Module, layer: str) -> None:
    with pytest.raises(DataError) as caught:
        StackedModule(module)
    assert str(caught.value) == (
        f"{layer} keeps running statistics, which a stack of models cannot share; use LayerNorm or GroupNorm"
    )


@pytest.mark.parametrize(
    ("module", "outputs", "wanted", "got"),
    [
        (nn.Linear(FEATURES, 2), 1, "(n,) or (n, 1)", "(7, 2)"),
        (nn.Linear(FEATURES, 2), 3, "(n, 3)", "(7, 2)"),
        (nn.Flatten(0), 1, "(n,) or (n, 1)", "(35,)"),
    ],
)
def test_outputs_of_another_shape_are_refused(module: nn.Module, outputs: int, wanted: str, got: str) -> None:
    module = nn.Sequential(nn.LayerNorm(FEATURES), module)
    model = StackedModule(module, outputs)
    with pytest.raises(DataError) as caught:
        model(stacked([model.initial(0)], 1), rows()[:1])
    assert str(caught.value) == f"the module must return {wanted} for n samples, got shape {got}"


class Branching(nn.Linear):
    """A module whose way depends on the numbers."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) if x.sum().item() > 0 else x


@pytest.mark.parametrize("module", [Branching(FEATURES, 1), nn.Linear(FEATURES + 1, 1)], ids=["branching", "too wide"])
def test_what_cannot_be_stacked_is_refused_with_the_reason(module: nn.Module) -> None:
    model = StackedModule(module)
    with pytest.raises(DataError) as caught:
        model(stacked([model.initial(0)], 2), rows()[:1])
    name, reason = type(module).__name__, caught.value.__cause__
    assert str(caught.value) == (
        f"{name} cannot be run as a stack of models ({reason}); it must map a float tensor (n, features) to "
        "(n, outputs) by operations without side effects"
    )


def test_dropout_acts_in_training_only_and_in_every_member_for_itself() -> None:
    model = StackedModule(nn.Sequential(nn.Linear(FEATURES, 200), nn.Dropout(0.5), nn.Linear(200, 1)))
    torch.manual_seed(0)
    alike = stacked([model.initial(0)] * 2, 2)
    found = model(alike, rows()[:1].expand(2, -1, -1), training=True)
    assert len({round(value, 9) for value in found[:, :, 0].flatten().tolist()}) == 4
    once, again = (model(alike, rows()[:1].expand(2, -1, -1)) for _ in range(2))
    assert torch.equal(once, again)
