"""The penalty of batches on an accelerator, computed on the CPU: the values and slopes of the
general one, without any operation that waits for the device.
"""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from metrifair import GroupProbabilities
from metrifair.errors import DataError, TooFewSamples
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty
from tests.expected_errors import Refusals
from tests.seams.nn import on_device, penalty

N = 60
GENERATOR = torch.Generator().manual_seed(3)
SCORES = torch.rand(N, generator=GENERATOR)
GROUPS = torch.randint(-1, 3, (N,), generator=GENERATOR)
LABELS = torch.randint(0, 2, (N,), generator=GENERATOR)
BOTH = torch.stack([GROUPS, torch.randint(0, 2, (N,), generator=GENERATOR)], 1)
WAITS = {
    "aten._local_scalar_dense.default",
    "aten.nonzero.default",
    "aten.item.default",
    "aten.is_nonzero.default",
    "aten.equal.default",
    "aten.masked_select.default",
    "aten.unique_consecutive.default",
    "aten._unique2.default",
}


class NoWaiting(TorchDispatchMode):
    """An error at each operation for which the host would wait for the device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func)
        assert name not in WAITS, f"{name} waits for the device"
        if name == "aten.index.Tensor":
            assert all(index is None or index.dtype != torch.bool for index in args[1])
        if name == "aten._to_copy.default":
            assert (kwargs or {}).get("device") is None, "a copy to another device"
        return func(*args, **(kwargs or {}))


@pytest.fixture
def accelerated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU is taken for an accelerator."""
    monkeypatch.setattr(penalty, "is_accelerator", lambda _: True)


def value_and_slopes(module: Any, scores: Tensor, *columns: Any) -> tuple[Tensor, Tensor]:
    leaf = scores.detach().clone().requires_grad_()
    value = module(leaf, *columns)
    value.backward()
    assert leaf.grad is not None
    return value.detach(), leaf.grad


CASES: dict[str, tuple[dict[str, Any], Tensor]] = {
    "pairs": ({"n_groups": 3}, GROUPS),
    "rest": ({"n_groups": 3, "contrast": "rest", "combine": "sum"}, GROUPS),
    "two attributes": ({"n_groups": [3, 2]}, BOTH),
    "labels": ({"n_groups": 3, "n_classes": 2, "criterion": "equalized_odds"}, GROUPS),
    "cramer": ({"n_groups": 3, "metric": "cramer"}, GROUPS),
    "batch": ({"n_groups": 3, "estimate": "batch"}, GROUPS),
    "batch, rest": ({"n_groups": 3, "estimate": "batch", "contrast": "rest"}, GROUPS),
}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_the_penalty_on_a_device_is_the_general_one(
    case: str, tied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    further, groups = CASES[case]
    scores = ((SCORES * 8).round() / 8 if tied else SCORES).double()
    module = UnfairnessPenalty(**further)
    expected = value_and_slopes(module, scores, groups, LABELS)
    monkeypatch.setattr(penalty, "is_accelerator", lambda _: True)
    found = value_and_slopes(module, scores, groups, LABELS)
    assert module._device is not None
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    short = value_and_slopes(module, scores.float(), groups.to(torch.int8), LABELS)
    torch.testing.assert_close(short[1].double(), expected[1], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("estimate", ["population", "rows", "batch"])
@pytest.mark.parametrize("contrast", ["pairs", "rest"])
@pytest.mark.parametrize("criterion", ["statistical_parity", "equal_opportunity"])
def test_batches_of_a_sampler_have_the_same_penalty(
    estimate: Any, contrast: Any, criterion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"criterion": criterion, "contrast": contrast}
    sampler = StratifiedBatchSampler(GROUPS, LABELS, batch_size=20, random_state=0, **options)
    module = UnfairnessPenalty(estimate=estimate, sampler=sampler, **options)
    scores = SCORES.double()
    for rows in sampler:
        batch = scores[rows], GROUPS[rows], LABELS[rows]
        expected = value_and_slopes(module, *batch)
        with monkeypatch.context() as patch:
            patch.setattr(penalty, "is_accelerator", lambda _: True)
            found = value_and_slopes(module, *batch)
        assert module._device is not None
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_batches_drawn_by_probabilities_have_the_same_penalty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    race = GroupProbabilities({"a": SCORES, "b": 1 - SCORES}, attribute="race")
    sampler = StratifiedBatchSampler(race, batch_size=20, random_state=0)
    module = UnfairnessPenalty(estimate="rows", sampler=sampler)
    scores = SCORES.double()[next(iter(sampler))]
    expected = value_and_slopes(module, scores, sampler.batch_groups)
    monkeypatch.setattr(penalty, "is_accelerator", lambda _: True)
    found = value_and_slopes(module, scores, sampler.batch_groups)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.usefixtures("accelerated")
def test_no_operation_of_a_call_waits_for_the_device(sampled: bool) -> None:
    sampler = StratifiedBatchSampler(GROUPS, batch_size=N, random_state=0)
    module = UnfairnessPenalty(sampler=sampler) if sampled else UnfairnessPenalty(n_groups=3)
    rows = next(iter(sampler))
    scores, groups = SCORES[rows], GROUPS[rows]
    module(scores, groups)  # sends constants to the device
    with NoWaiting():
        for _ in range(3):
            value_and_slopes(module, scores, groups)


@pytest.mark.usefixtures("accelerated")
def test_training_follows_a_validation_in_inference_mode() -> None:
    expected = value_and_slopes(UnfairnessPenalty(n_groups=3), SCORES, GROUPS)
    module = UnfairnessPenalty(n_groups=3)
    with torch.inference_mode():
        module(SCORES, GROUPS)  # makes the constants
    torch.testing.assert_close(value_and_slopes(module, SCORES, GROUPS), expected)


def test_planted_fault_the_general_penalty_waits_for_a_device() -> None:
    module = UnfairnessPenalty(n_groups=3, metric="mmd")
    module(SCORES, GROUPS)
    with pytest.raises(AssertionError, match="waits for the device"), NoWaiting():
        module(SCORES, GROUPS)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "further", [{"n_groups": 3}, {"n_groups": 3, "n_classes": 2, "criterion": "equalized_odds"}]
)
@pytest.mark.usefixtures("accelerated")
def test_a_step_is_compiled_as_one_graph(backend: str, further: dict[str, Any]) -> None:
    torch._dynamo.reset()
    module = UnfairnessPenalty(**further)
    expected = value_and_slopes(module, SCORES, GROUPS, LABELS)
    own: list[str] = []

    def compiler(graph: torch.fx.GraphModule, _: Any) -> Any:
        targets = [str(node.target) for node in graph.graph.nodes]
        own.extend(target for target in targets if "metrifair" in target)
        return graph.forward

    for used in (backend, compiler):
        compiled = torch.compile(
            lambda s, g, y: 2 * module(s.sigmoid().logit(), g, y), backend=used, fullgraph=True
        )
        value, slopes = value_and_slopes(compiled, SCORES, GROUPS, LABELS)
        torch.testing.assert_close(value, 2 * expected[0])
        torch.testing.assert_close(slopes, 2 * expected[1], rtol=1e-4, atol=1e-6)
    assert own == ["metrifair.coefficients.default"]  # the one that waits for nothing


@pytest.mark.usefixtures("accelerated")
def test_a_compiled_step_without_a_call_before_prepares_itself() -> None:
    torch._dynamo.reset()
    module = UnfairnessPenalty(n_groups=3)
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    first, second = (value_and_slopes(compiled, SCORES, GROUPS) for _ in range(2))
    torch.testing.assert_close(first, second)
    assert module._device is not None


@pytest.mark.usefixtures("accelerated")
def test_errors_of_a_batch_are_raised_later_and_once(refused: Refusals) -> None:
    module = UnfairnessPenalty(n_groups=2)
    groups = torch.arange(N) % 2
    expected = module(SCORES, groups)
    assert module(SCORES, torch.zeros(N, dtype=torch.long)) == 0
    with refused(TooFewSamples):
        module.check_batches()
    module.check_batches()
    module(SCORES, torch.full((N,), 7))
    with refused(DataError):
        module.check_batches()
    module(SCORES, torch.full((N,), -5))
    for _ in range(on_device._CALLS_UNREAD - 1):
        value = module(SCORES, groups)
    assert value == expected
    with refused(DataError):
        module(SCORES, groups)
    assert module(SCORES, groups) == expected


@pytest.mark.usefixtures("accelerated")
def test_a_comparison_without_rows_counts_0_and_the_others_count() -> None:
    module = UnfairnessPenalty(n_groups=3, combine="sum")
    known = GROUPS.clamp_min(0)
    two = torch.where(known == 2, -1, known)
    expected = UnfairnessPenalty(n_groups=2, combine="sum")(SCORES, two)
    torch.testing.assert_close(module(SCORES, two), expected)


@pytest.mark.usefixtures("accelerated")
def test_copies_of_a_module_compute_the_same() -> None:
    module = UnfairnessPenalty(n_groups=3)
    expected = module(SCORES, GROUPS)
    for again in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert again(SCORES, GROUPS) == expected


@pytest.mark.parametrize(
    "further",
    [{}, {"metric": "mmd", "n_groups": 3}, {"continuous": True}],
    ids=["groups are not declared", "another metric", "numbers"],
)
@pytest.mark.usefixtures("accelerated")
def test_other_penalties_are_computed_in_general(further: dict[str, Any]) -> None:
    module = UnfairnessPenalty(**further)
    module(SCORES, GROUPS)
    assert module._device is None
