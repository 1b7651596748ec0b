"""The fused step of linear models and networks with one hidden layer against the general step
on the CPU.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from metrifair.training import Schedule, train
from tests.seams.batches import Samples
from tests.seams.problem import Comparison
from tests.seams.training import BINARY, Network, Objective, fused, graphs, regression

pytestmark = pytest.mark.cuda

TWO, THREE = (
    (Comparison((0,), (1,)),),
    tuple(Comparison((i,), (j,)) for i, j in ((0, 1), (0, 2), (1, 2))),
)
# a fifth of what one step may move a parameter: ranks that rounding swaps show, a wrong slope does
# more
CLOSE = 2e-4
CASES: dict[str, dict[str, Any]] = {
    "usual": {},
    "population": {"estimate": "population"},
    "batch": {"estimate": "batch"},
    "outputs": {"penalize": "output"},
    "regression": {"task": regression()},
    "pairs of three": {"comparisons": THREE},
    "a pair among three": {"comparisons": THREE[2:]},  # rows that nothing compares come first
    "ties": {"tied": True},
    "constants": {"tied": True, "scale": 0.0},  # every score is the same
    "own rows": {"own_rows": True},
    "features column by column": {"by_column": True},
    "classes": {"class_weight": (0.5, 2.0)},
    "growing strength": {"schedule": {"growth": 0.5, "cooldown": 0.5}},
    "weight decay": {"schedule": {"weight_decay": 0.1}},
}
SIZES = {
    "powers of two": (128, 16, 16),
    "a row more": (129, 17, 17),
    "small": (20, 3, 5),
    "wide": (300, 200, 50),
    "one unit": (64, 1, 1),
    "large": (2048, 100, 16),
    "largest": (5000, 12, 8),
    "linear": (129, 17, 0),
    "linear and wide": (300, 200, 0),
    "linear and large": (2048, 100, 0),
}


def people(rows: int, features: int, *, tied: bool, scale: float) -> Samples:
    generator = torch.Generator().manual_seed(0)
    group = torch.randint(0, 3, (rows,), generator=generator)
    x = torch.randn(rows, features, generator=generator) + 0.5 * group[:, None]
    y = (torch.rand(rows, generator=generator) < torch.sigmoid(x[:, 0])).float()
    return Samples(scale * (x.round().clamp(0, 1) if tied else x), y, group, torch.ones(rows))


def trained(device: str, size: tuple[int, int, int], **case: Any) -> dict[str, Tensor]:
    batch, features, units = size
    data = people(
        case.pop("batches", 3) * batch + 1,
        features,
        tied=case.pop("tied", False),
        scale=case.pop("scale", 1.0),
    )
    comparisons = case.pop("comparisons", TWO)
    if comparisons is TWO:
        data = Samples(data.x, data.y, data.cell.clamp_max(1), data.weight)
    if case.pop("by_column", False):
        data = Samples(data.x.T.contiguous().T, data.y, data.cell, data.weight)
    some = torch.arange(len(data))
    rows = [some[:-5], some[5:]] if case.pop("own_rows", False) else None
    schedule = Schedule(batch, 3, 1e-3, **case.pop("schedule", {}))
    objective = Objective(case.pop("task", BINARY), comparisons, **case)
    network = Network(features, (units,) if units else ())
    found = train(
        data,
        network,
        objective,
        strengths=[0.0, 1.0, 30.0],
        seeds=[3, 8],
        schedule=schedule,
        rows=rows,
        device=device,
    )
    return {name: value.cpu() for name, value in found.parameters.items()}


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each recorded step was a fused one."""
    asked: list[bool] = []

    def spy(*given: Any) -> Any:
        step = original(*given)
        asked.append(step is not None)
        return step

    original = fused.fused_step
    monkeypatch.setattr(graphs, "fused_step", spy)
    return asked


@pytest.mark.parametrize("units", [16, 0], ids=["network", "linear"])
@pytest.mark.parametrize("case", CASES)
def test_a_fused_step_is_the_general_one(case: str, units: int, taken: list[bool]) -> None:
    there, here = (trained(device, (128, 12, units), **CASES[case]) for device in ("cuda", "cpu"))
    assert set(taken) == {True}
    torch.testing.assert_close(there, here, rtol=0, atol=CLOSE)


@pytest.mark.parametrize("size", SIZES)
def test_sizes_are_padded_without_a_trace(size: str, taken: list[bool]) -> None:
    there, here = (trained(device, SIZES[size]) for device in ("cuda", "cpu"))
    assert set(taken) == {True}
    torch.testing.assert_close(there, here, rtol=0, atol=CLOSE)


def test_epochs_longer_than_a_recording_are_gone_through_to_their_end() -> None:
    there, here = (trained(device, (8, 3, 4), batches=75) for device in ("cuda", "cpu"))
    torch.testing.assert_close(there, here, rtol=0, atol=CLOSE)


def test_steps_repeat_to_the_last_bit() -> None:
    first, again = (trained("cuda", (2048, 100, 16)) for _ in range(2))
    assert all(torch.equal(value, again[name]) for name, value in first.items())


@pytest.mark.parametrize(
    "objective",
    [
        Objective(BINARY, TWO, metric="mmd"),
        Objective(BINARY, TWO, rho=torch.sqrt),
        Objective(BINARY, (Comparison((0,), (1, 2)),)),
        Objective(regression("absolute_error"), TWO),
    ],
    ids=["metric", "rho", "sides of several cells", "loss"],
)
def test_other_objectives_take_the_general_step(objective: Objective, taken: list[bool]) -> None:
    data = people(200, 3, tied=False, scale=1.0)
    for model in (Network(3, (4,)), Network(3, (4, 4))):
        found = train(
            data,
            model,
            objective,
            strengths=[1.0],
            seeds=[0],
            schedule=Schedule(64, 1, 1e-3),
            device="cuda",
        )
        assert not bool(found.failed.any())
    assert taken == [False, False]


def test_without_triton_the_general_step_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "triton", None)
    there, here = (trained(device, (128, 12, 16)) for device in ("cuda", "cpu"))
    torch.testing.assert_close(there, here, rtol=0, atol=CLOSE)
