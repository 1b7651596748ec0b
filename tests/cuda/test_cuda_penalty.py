"""The penalty of a user's own loop on a GPU: the values of the CPU, no waiting, CUDA graphs and
the compiler.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from metrifair.errors import DataError, TooFewSamples
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty
from tests.seams.nn import on_device

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype"),
]

ROWS = 4_096


@pytest.fixture
def no_waiting() -> Iterator[None]:
    """An error where the host waits for the device."""
    torch.zeros(1, device="cuda")  # the first use of a device waits for it
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode(before)


def batch(groups: int, rows: int = ROWS) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(rows, dtype=torch.float64, generator=generator)
    codes = torch.randint(0, groups, (rows,), generator=generator)
    labels = torch.randint(0, 2, (rows,), generator=generator)
    return scores, codes, labels


def value_and_slopes(module: Any, scores: Tensor, *columns: Tensor) -> tuple[Tensor, Tensor]:
    leaf = scores.detach().clone().requires_grad_()
    value = module(leaf, *columns)
    (slopes,) = torch.autograd.grad(value, leaf)
    return value.detach(), slopes


CASES: dict[str, dict[str, Any]] = {
    "2 groups": {"n_groups": 2},
    "10 groups, rest": {"n_groups": 10, "contrast": "rest"},
    "10 groups, pairs, plug-in": {"n_groups": 10, "estimate": "batch"},
    "labels": {"n_groups": 2, "n_classes": 2, "criterion": "equalized_odds"},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rows", [ROWS, 65_536])
def test_the_penalty_is_that_of_the_cpu_and_waits_for_nothing(
    case: str, rows: int, no_waiting: None
) -> None:
    columns = batch(CASES[case]["n_groups"], rows)
    expected = value_and_slopes(UnfairnessPenalty(**CASES[case]), *columns)
    torch.cuda.set_sync_debug_mode("default")
    module = UnfairnessPenalty(**CASES[case])
    on_gpu = [column.cuda() for column in columns]
    value_and_slopes(module, *on_gpu)  # sends constants to the device
    assert module._device is not None
    torch.cuda.set_sync_debug_mode("error")
    for _ in range(2 * on_device._CALLS_UNREAD):
        found = value_and_slopes(module, *on_gpu)
    torch.cuda.set_sync_debug_mode("default")
    torch.testing.assert_close(
        [part.cpu() for part in found], list(expected), rtol=1e-9, atol=1e-12
    )
    module.check_batches()


@pytest.mark.parametrize("estimate", ["population", "rows", "batch"])
def test_batches_of_a_sampler_wait_for_nothing(estimate: Any, no_waiting: None) -> None:
    torch.cuda.set_sync_debug_mode("default")
    scores, codes, _ = batch(3)
    sampler = StratifiedBatchSampler(codes, batch_size=512, random_state=0)
    module = UnfairnessPenalty(estimate=estimate, sampler=sampler)
    for rows in sampler:
        expected = value_and_slopes(module, scores[rows], codes[rows])
        on_gpu = scores[rows].cuda(), codes[rows].cuda()
        module(*on_gpu)
        torch.cuda.set_sync_debug_mode("error")
        found = value_and_slopes(module, *on_gpu)
        torch.cuda.set_sync_debug_mode("default")
        torch.testing.assert_close(
            [part.cpu() for part in found], list(expected), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("case", CASES)
def test_repeated_batches_of_a_shape_are_those_of_the_cpu(case: str, no_waiting: None) -> None:
    """They are replayed; each batch has values of its own until its backward pass."""
    torch.cuda.set_sync_debug_mode("default")
    on_cpu = UnfairnessPenalty(**CASES[case])
    module = UnfairnessPenalty(**CASES[case])
    scores, codes, labels = batch(CASES[case]["n_groups"])
    orders = [torch.randperm(ROWS, generator=torch.Generator().manual_seed(i)) for i in range(40)]
    leaves = [scores[order].square().cuda().requires_grad_() for order in orders]
    columns = [(codes[order.flip(0)].cuda(), labels[order].cuda()) for order in orders]
    values = [module(leaf, *own) for leaf, own in zip(leaves, columns, strict=True)]
    sum(values).backward()
    assert module._device is not None
    assert len(module._device._recorded) == 1
    for leaf, own, value in zip(leaves, columns, values, strict=True):
        expected = value_and_slopes(on_cpu, leaf.detach().cpu(), *(part.cpu() for part in own))
        found = [value.detach().cpu(), leaf.grad.cpu()]
        torch.testing.assert_close(found, list(expected), rtol=1e-9, atol=1e-12)
    copied = copy.deepcopy(module)
    assert copied(leaves[0], *columns[0]) == values[0]


def test_batches_that_were_recorded_in_inference_mode_can_train() -> None:
    columns = [column.cuda() for column in batch(2)]
    expected = value_and_slopes(UnfairnessPenalty(n_groups=2), *columns[:2])
    module = UnfairnessPenalty(n_groups=2)
    with torch.inference_mode():
        for _ in range(2 * on_device._CALLS_PLAIN):
            module(*columns[:2])
    assert module._device is not None
    assert len(module._device._recorded) == 1
    torch.testing.assert_close(value_and_slopes(module, *columns[:2]), expected)


def test_batches_of_random_sizes_hold_no_memory() -> None:
    module = UnfairnessPenalty(n_groups=2)
    scores, codes, _ = (column.cuda() for column in batch(2))
    for size in [*range(100, 1_000), *[200, 300, 400, 500, 600, 700] * 15]:
        module(scores[:size], codes[:size])
    assert module._device is not None
    assert len(module._device._recorded) <= 4
    assert len(module._device._calls) <= 65


@pytest.mark.parametrize("case", CASES)
def test_a_call_is_captured_in_a_cuda_graph(case: str) -> None:
    module = UnfairnessPenalty(**CASES[case])
    columns = [column.cuda() for column in batch(CASES[case]["n_groups"])]
    scores = columns[0].clone().requires_grad_()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            torch.autograd.grad(module(scores, *columns[1:]), scores)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = module(scores, *columns[1:])
        (slopes,) = torch.autograd.grad(value, scores)
    other = torch.rand(len(scores), dtype=torch.float64, device="cuda")
    with torch.no_grad():
        scores.copy_(other)
    graph.replay()
    expected = value_and_slopes(module, other, *columns[1:])
    torch.testing.assert_close((value.detach(), slopes), expected, rtol=1e-9, atol=1e-12)
    columns[1].fill_(99)
    graph.replay()
    with pytest.raises(DataError, match="values that were not declared"):
        module.check_batches()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores")
@pytest.mark.parametrize("case", ["2 groups", "10 groups, rest", "labels"])
def test_a_step_is_compiled_as_one_graph(case: str) -> None:
    torch._dynamo.reset()
    module = UnfairnessPenalty(**CASES[case])
    columns = [column.cuda() for column in batch(CASES[case]["n_groups"])]
    expected = value_and_slopes(module, *columns)
    compiled = torch.compile(module, fullgraph=True)
    found = value_and_slopes(compiled, *columns)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_errors_are_raised_in_a_later_call() -> None:
    module = UnfairnessPenalty(n_groups=2)
    scores, codes, _ = (column.cuda() for column in batch(2))
    assert module(scores, torch.zeros_like(codes)) == 0

    def run_on() -> None:
        for _ in range(2 * on_device._CALLS_UNREAD):
            module(scores, codes)
            torch.cuda.synchronize()

    with pytest.raises(TooFewSamples, match="an earlier batch had fewer than 2"):
        run_on()
    run_on()
