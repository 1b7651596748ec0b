"""The Sinkhorn divergence against worked numbers, POT and differences; the classifier against plain descent."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import ot
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from test_fairkde import gap, simulated

from metrifair.errors import DataError, Diverged
from metrifair.methods.sinkhorn import SinkhornClassifier, fit_stack, forward
from metrifair.methods.transport import Sinkhorn, _Problem, sinkhorn_divergence
from metrifair.models import Network


def clouds(n: int, m: int, d: int, *, scale: float = 1.0, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return np.maximum(scale * rng.normal(size=(n, d)), 0), np.maximum(scale * rng.normal(size=(m, d)) + 0.3, 0)


# --- the divergence -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("u", "v", "entropic", "sharp"),
    [
        ([0.0], [1.0], 1.0, 1.0),
        ([0.0, 1.0], [0.0, 2.0], 0.4999977, 0.5000227),
        ([0.0, 0.1], [0.05, 0.2], 0.0533260, 0.0667480),
        ([0.0, 0.1, 0.2], [0.05, 0.2], 0.0170844, 0.0241664),
    ],
)
def test_worked_numbers(u: list[float], v: list[float], entropic: float, sharp: float) -> None:
    assert float(sinkhorn_divergence(u, v)) == pytest.approx(entropic, abs=1e-7)
    assert float(sinkhorn_divergence(u, v, sharp=True)) == pytest.approx(sharp, abs=1e-7)
    assert float(sinkhorn_divergence(v, u)) == pytest.approx(entropic, abs=1e-7)


def test_worked_gradient() -> None:
    u = torch.tensor([0.0, 0.1, 0.2], dtype=torch.float64, requires_grad=True)
    sinkhorn_divergence(u, torch.tensor([0.05, 0.2], dtype=torch.float64)).backward()
    assert u.grad is not None
    assert u.grad.numpy() == pytest.approx((-0.227462, 0.045202, -0.05555), abs=1e-5)


@pytest.mark.parametrize("block", [None, 2])
def test_gradients_are_those_of_the_entropic_value(block: int | None) -> None:
    u, v = (torch.as_tensor(cloud).requires_grad_() for cloud in clouds(5, 6, 2))

    def value(*both: Any) -> Any:
        return sinkhorn_divergence(*both, tolerance=1e-12, block=block)

    assert torch.autograd.gradcheck(value, (u, v), eps=1e-6, atol=1e-6)


def by_pot(x: Any, y: Any, epsilon: float) -> tuple[float, float]:
    """Entropic value (relative to the product measure) and cost of the plan."""
    a, b = np.full(len(x), 1 / len(x)), np.full(len(y), 1 / len(y))
    cost = ot.dist(x, y, metric="euclidean")
    plan = ot.sinkhorn(a, b, cost, epsilon, method="sinkhorn_log", stopThr=1e-11, numItermax=10_000)
    relative = np.sum(plan * np.log(np.maximum(plan, 1e-300) / np.outer(a, b)))
    return float((plan * cost).sum() + epsilon * relative), float((plan * cost).sum())


@pytest.mark.parametrize(("n", "m", "d", "epsilon"), [(5, 8, 1, 0.2), (12, 30, 4, 0.4), (25, 10, 16, 1.0)])
def test_agrees_with_pot(n: int, m: int, d: int, epsilon: float) -> None:
    u, v = clouds(n, m, d)
    parts = [by_pot(x, y, epsilon) for x, y in ((u, v), (u, u), (v, v))]
    expected = [both - (first + second) / 2 for both, first, second in zip(*parts, strict=True)]
    for block in (None, 3):
        value, sharp = (sinkhorn_divergence(u, v, epsilon=epsilon, sharp=kind, block=block) for kind in (False, True))
        assert float(value) == pytest.approx(expected[0], abs=1e-8)
        assert float(sharp) == pytest.approx(expected[1], abs=1e-7)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=6),
    st.lists(st.floats(-0.5, 0.5), min_size=1, max_size=6),
    st.floats(-50, 50),
)
def test_laws(u: list[float], v: list[float], shift: float) -> None:
    """Symmetric, not negative, zero between a cloud and itself, and the same wherever the clouds lie."""
    first, second = np.array(u), np.array(v)
    value = float(sinkhorn_divergence(first, second))
    assert value >= -1e-8
    assert float(sinkhorn_divergence(second, first)) == pytest.approx(value, abs=1e-7)
    assert float(sinkhorn_divergence(first + shift, second + shift)) == pytest.approx(value, abs=1e-7)
    assert float(sinkhorn_divergence(first, first[::-1].copy())) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("block", [None, 1])
def test_points_far_apart_do_not_underflow(block: int | None) -> None:
    """Distances of 10,000 epsilons: exp(-cost / epsilon) is 0 everywhere."""
    u, v = torch.tensor([[0.0], [1.0]], dtype=torch.float64), torch.tensor([[1000.0], [1003.0]], dtype=torch.float64)
    assert float(sinkhorn_divergence(u, v, block=block)) == pytest.approx(1001, abs=0.1)
    value = Sinkhorn(block=block).divergence(u.requires_grad_(), v)
    value.value.backward()
    assert u.grad is not None
    assert u.grad.flatten().tolist() == pytest.approx([-0.5, -0.5], abs=1e-3)


def test_identical_rows_have_finite_gradients() -> None:
    u = torch.zeros(4, 2, dtype=torch.float64, requires_grad=True)
    sinkhorn_divergence(u, torch.zeros(3, 2, dtype=torch.float64)).backward()
    assert u.grad is not None
    assert u.grad.abs().max() == 0


def test_leading_axes_are_models() -> None:
    u, v = (np.stack([cloud, 2 * cloud]) for cloud in clouds(6, 8, 3))
    both = sinkhorn_divergence(u, v)
    alone = [float(sinkhorn_divergence(u[k], v[k])) for k in (0, 1)]
    assert both.tolist() == pytest.approx(alone, abs=1e-8)


def test_single_precision_is_near_double() -> None:
    u, v = clouds(30, 40, 5)
    single = sinkhorn_divergence(torch.tensor(u, dtype=torch.float32), torch.tensor(v, dtype=torch.float32))
    assert float(single) == pytest.approx(float(sinkhorn_divergence(u, v)), abs=1e-4)


def test_blocks_give_the_same_sweeps() -> None:
    u, v = (torch.as_tensor(cloud) for cloud in clouds(7, 9, 3, scale=5))
    whole, parts = (_Problem(u, v, block) for block in (None, 2))
    for one, other in zip(whole.start(), parts.start(), strict=True):
        torch.testing.assert_close(one, other)
    plans = [torch.cat([plan for _, _, plan in problem.plans(*whole.start())()]) for problem in (whole, parts)]
    torch.testing.assert_close(plans[0], plans[1])
    assert plans[0].sum(0).tolist() == pytest.approx([1 / 9] * 9)  # the columns are exact after a sweep


def test_a_start_near_the_solution_saves_sweeps() -> None:
    u, v = (torch.as_tensor(cloud) for cloud in clouds(40, 60, 8, scale=3))
    solver = Sinkhorn(max_iterations=10)
    assert not solver.divergence(u, v).converged
    found = Sinkhorn().divergence(u, v)
    assert found.converged
    again = solver.divergence(u, v, found.potentials)
    assert again.converged
    assert float(again.value) == pytest.approx(float(found.value), abs=1e-9)


def test_a_start_whose_plan_is_empty_does_no_harm() -> None:
    u, v = (torch.as_tensor(30 * cloud) for cloud in clouds(6, 8, 2))
    potentials = tuple(
        (torch.full((n,), -1e4, dtype=torch.float64), torch.full((m,), -1e4, dtype=torch.float64))
        for n, m in ((6, 6), (8, 8), (6, 8))
    )
    solver = Sinkhorn(epsilon=3.0)
    found = solver.divergence(u, v, potentials)
    assert found.converged
    assert float(found.value) == pytest.approx(float(solver.divergence(u, v).value), abs=1e-6)


def test_the_cap_warns() -> None:
    with pytest.warns(ConvergenceWarning, match="5 iterations"):
        sinkhorn_divergence(*clouds(20, 30, 2, scale=20), max_iterations=5)


@pytest.mark.parametrize(
    ("u", "options", "named"),
    [
        ([0.0], {"epsilon": 0}, "epsilon"),
        ([0.0], {"tolerance": 0}, "tolerance"),
        ([0.0], {"block": 0}, "block"),
        ([], {}, "u must"),
        ([float("nan")], {}, "u must"),
        ([[0.0, 1.0]], {}, "dimension"),
    ],
)
def test_the_divergence_refuses(u: Any, options: dict[str, Any], named: str) -> None:
    with pytest.raises(DataError, match=named):
        sinkhorn_divergence(u, [1.0], **options)


# --- the classifier -----------------------------------------------------------------------------------------------

QUICK: dict[str, Any] = {"epochs": 8, "hidden": (5,), "random_state": 2, "device": "cpu"}


def descended(x: Any, y: Any, a: Any, strength: float, *, level: str, among: Any) -> Any:
    """Plain gradient descent with POT's plans, through PyTorch's own distances."""
    start = Network(3, (5,)).initial(2)
    parameters = [start[name].clone().requires_grad_() for name in ("weight0", "bias0", "weight1", "bias1")]
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
    x, y, a = simulated(40)
    among = y == 1 if criterion == "equal_opportunity" else y >= 0
    expected = descended(x, y, a, 2.0, level=level, among=among)
    for options in ({}, {"block": 7}):
        model = SinkhornClassifier(2.0, criterion=criterion, level=level, epsilon=0.5, **QUICK, **options)
        found = model.fit(x, y, sensitive_features=a).decision_function(x)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_strength_0_is_plain_descent() -> None:
    x, y, a = simulated(40)
    model = SinkhornClassifier(0.0, **QUICK).fit(x, y, sensitive_features=a)
    expected = descended(x, y, a, 0.0, level="hidden", among=y >= 0)
    np.testing.assert_allclose(model.decision_function(x), expected, atol=1e-10)
    assert model.divergence_ == 0


def test_a_stack_equals_its_members() -> None:
    x, y, a = simulated(60)
    rows = [np.arange(0, 50), np.arange(10, 60)]
    template = SinkhornClassifier(**QUICK)
    for limit in (4 * 2**30, 4 * 8 * 40**2):  # all strengths at once, or one after the other
        template.set_params(memory_limit=limit)
        stack = fit_stack(template, x, y, a, strengths=[0.0, 0.3, 3.0], seeds=[2, 7], rows=rows)
        for model in stack:
            assert model is not None
            own = rows[0 if model.random_state == 2 else 1]
            alone = SinkhornClassifier(**model.get_params()).fit(x[own], y[own], sensitive_features=a[own])
            np.testing.assert_allclose(model.decision_function(x), alone.decision_function(x), atol=1e-6)
            if model.strength:
                assert model.divergence_ == pytest.approx(alone.divergence_, abs=1e-6)


def test_strength_makes_groups_alike() -> None:
    x, y, a = simulated(120)
    gaps = []
    for strength in (0.0, 5.0):
        model = SinkhornClassifier(strength, epochs=120, random_state=0, device="cpu").fit(x, y, sensitive_features=a)
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
    x, y = np.zeros((n, 1)), np.arange(n) % 2
    with pytest.raises(MemoryError, match="block"):
        SinkhornClassifier().fit(x, y, sensitive_features=np.arange(n) // 2 % 2)
    x, y, a = simulated(40)
    with pytest.raises(MemoryError, match="memory_limit"):
        SinkhornClassifier(memory_limit=1000).fit(x, y, sensitive_features=a)
    SinkhornClassifier(0.0, memory_limit=1000, epochs=1).fit(x, y, sensitive_features=a)  # no transport


MEASURED = """
import torch
from metrifair.methods.transport import Sinkhorn

def resident(kind):
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith(kind))

def share_taken(n, m, block, sweeps):
    u, v = (30 * torch.randn(size, 2, dtype=torch.float64) for size in (n, m))
    solver = Sinkhorn(max_iterations=sweeps, block=block)
    before = resident("VmRSS")
    solver.divergence(u, v, sharp=True)
    return (resident("VmHWM") - before) / solver.memory(n, m, 8)

share_taken(9, 9, None, 9)  # libraries take some at first
cases = (1500, 1500, 250, 10), (1000, 1000, None, 10), (1100, 1100, None, 60), (900, 1250, None, 60)  # ever larger
print(*[share_taken(*case) for case in cases])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_no_more_memory_is_taken_than_is_said() -> None:
    """In blocks and whole; after many sweeps, where one in the log domain is made while a plan is held, too."""
    outcome = subprocess.run(
        [sys.executable, "-c", MEASURED],
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"},  # what is freed is given back
        capture_output=True,
        text=True,
        check=True,
    )
    shares = [float(share) for share in outcome.stdout.split()]
    assert len(shares) == 4
    assert min(shares) > 0.6
    assert max(shares) < 1.2, shares  # vectors come on top


def test_descent_that_diverges_is_an_error_and_spares_the_rest_of_its_stack() -> None:
    x, y, a = simulated(40)
    wild = SinkhornClassifier(1.0, **{**QUICK, "learning_rate": 1e200})
    with pytest.raises(Diverged, match="learning_rate"):
        wild.fit(x, y, sensitive_features=a)
    calm = SinkhornClassifier(**{**QUICK, "epochs": 3, "learning_rate": 20.0})
    stack = fit_stack(calm, x, y, a, strengths=[0.01, 1.7e308], seeds=[2])
    assert stack[1] is None
    alone = SinkhornClassifier(**{**calm.get_params(), "strength": 0.01}).fit(x, y, sensitive_features=a)
    assert stack[0] is not None
    np.testing.assert_allclose(stack[0].decision_function(x), alone.decision_function(x), atol=1e-6)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"epsilon": 0}, "epsilon"),
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


def test_a_linear_model_is_penalised_at_its_output() -> None:
    x, y, a = simulated(120)
    model = SinkhornClassifier(20.0, model="linear", level="output", epochs=100, random_state=0, device="cpu")
    assert gap(model.fit(x, y, sensitive_features=a).predict_proba(x)[:, 1], a) < 0.05


def test_decay_slows_descent() -> None:
    x, y, a = simulated(40)
    still = SinkhornClassifier(0.0, learning_rate_decay=1e-9, **QUICK).fit(x, y, sensitive_features=a)
    once = SinkhornClassifier(0.0, **{**QUICK, "epochs": 1}).fit(x, y, sensitive_features=a)
    np.testing.assert_allclose(still.decision_function(x), once.decision_function(x), atol=1e-6)
