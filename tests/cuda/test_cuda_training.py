"""Training on a CUDA device: the step that is recorded there ends where the CPU's does.

On such a machine `pytest -m cuda` runs all tests of its kind, and asks for torch, numpy,
scikit-learn and pytest alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from metrifair import FairClassifier, FairRegressor, PenaltyOptions, SearchOptions
from metrifair.estimators import fit_stack
from metrifair.nn import StratifiedBatchSampler, UnfairnessPenalty
from tests.seams.batches import DevicePasses, Layout, samples

pytestmark = pytest.mark.cuda

OPTIONS: dict[str, dict[str, Any]] = {
    "rows": {},
    "population": {"penalty": PenaltyOptions(estimate="population")},
    "batch": {"penalty": PenaltyOptions(estimate="batch")},
    "mmd": {"metric": "mmd"},
    "wasserstein": {"metric": "wasserstein", "penalty": PenaltyOptions(estimate="batch")},
    "equalized odds": {"criterion": "equalized_odds"},
    "rest": {"penalty": PenaltyOptions(contrast="rest")},
    "sum": {"penalty": PenaltyOptions(combine="sum")},
    "two layers": {"hidden": (8, 4)},
    "linear steps": {"hidden": (), "penalty": PenaltyOptions(solver="sgd")},
    "single batch": {"batch_size": 300},
}


def people(groups: int = 3) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    a = rng.integers(0, groups, 300)
    x = rng.normal(size=(300, 5)) + 0.4 * a[:, None]
    return x, (x[:, 0] + rng.normal(size=300) > 0.4).astype(int), a


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_a_stack_on_the_device_is_the_stack_on_the_cpu(name: str, weighted: bool) -> None:
    x, y, a = people()
    weight = np.random.default_rng(4).integers(1, 4, len(y)) if weighted else None
    options = {"model": "mlp", "hidden": (8,), "batch_size": 64, "epochs": 4} | OPTIONS[name]
    outputs = []
    for device in ("cpu", "cuda"):
        template = FairClassifier(device=device, **options)
        given = {"sensitive_features": a, "sample_weight": weight}
        stack = fit_stack(template, x, y, strengths=[0.0, 1.0, 30.0], seeds=[3, 8], **given)
        outputs.append(np.stack([model.decision_function(x) for model in stack]))
    assert np.ptp(outputs[0]) > 0.1
    np.testing.assert_allclose(outputs[1], outputs[0], rtol=1e-2, atol=5e-3)


def test_defaults_train_on_the_device() -> None:
    x, y, a = people(2)
    for kind, method in ((FairClassifier, "decision_function"), (FairRegressor, "predict")):
        far, near = (
            getattr(
                kind(model="mlp", random_state=0, device=device).fit(x, y, sensitive_features=a),
                method,
            )(x)
            for device in ("cuda", "cpu")
        )
        assert np.corrcoef(far, near)[0, 1] > 0.99


def test_a_frontier_on_the_device_is_that_on_the_cpu() -> None:
    pytest.importorskip("msgspec")  # of its ledger; nothing else here needs it
    from metrifair import frontier  # noqa: PLC0415

    x, y, a = people(2)
    options = {"strengths": [0.0, 1.0, 10.0], "random_state": 0, "search": SearchOptions(seeds=2)}
    far, near = (
        frontier(
            FairClassifier(hidden=(8,), epochs=4, device=device, model="mlp"),
            x,
            y,
            sensitive_features=a,
            **options,
        )
        for device in ("cuda", "cpu")
    )
    for one, other in zip(far.points, near.points, strict=True):
        assert one.unfairness == pytest.approx(other.unfairness, abs=0.1)
        assert one.accuracy == pytest.approx(other.accuracy, abs=0.1)


@pytest.mark.parametrize("estimate", ["rows", "population", "batch"])
def test_the_penalty_of_a_loop_of_ones_own_is_the_cpus(estimate: str) -> None:
    _, y, a = people(2)
    sampler = StratifiedBatchSampler(
        a, y, criterion="equal_opportunity", batch_size=64, estimate=estimate, random_state=0
    )
    batch = torch.as_tensor(next(iter(sampler)))
    score = torch.rand(300, dtype=torch.float64)[batch]
    found = []
    for device in ("cpu", "cuda"):
        penalty = UnfairnessPenalty("equal_opportunity", estimate=estimate, sampler=sampler)
        own = score.clone().to(device).requires_grad_()
        value = penalty(
            own, torch.as_tensor(a)[batch].to(device), torch.as_tensor(y)[batch].to(device)
        )
        value.backward()
        found.append((value.detach().cpu(), own.grad.cpu()))
    torch.testing.assert_close(found[1], found[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_batches_drawn_on_the_device_train_alike(
    weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, a = people(2)
    weight = np.random.default_rng(4).integers(1, 4, len(y)) if weighted else None
    options = {"model": "mlp", "hidden": (8,), "batch_size": 64, "epochs": 100, "random_state": 0}
    given = {"sensitive_features": a, "sample_weight": weight}
    near = FairClassifier(**options).fit(x, y, **given).decision_function(x)
    monkeypatch.setattr(samples, "DevicePasses", DevicePasses)
    far, again = (
        FairClassifier(device="cuda", **options).fit(x, y, **given).decision_function(x)
        for _ in range(2)
    )
    assert not np.allclose(far, near, rtol=1e-2, atol=5e-3)  # other batches
    np.testing.assert_array_equal(again, far)
    assert np.corrcoef(far, near)[0, 1] > 0.97


@pytest.mark.parametrize("weighted", [False, True])
def test_passes_of_the_device_are_those_of_its_laws(weighted: bool) -> None:
    """Rows of each cell stay in their places, no batch has a row twice, and seeds differ."""
    rows = [torch.arange(700), torch.arange(700, 1_000)]
    odds = [[(torch.arange(len(cell)) % 3).double() for cell in rows]] * 3 if weighted else None
    passes = DevicePasses([rows] * 3, Layout((45, 19)), 15, odds=odds, device="cuda")
    generators = [torch.Generator().manual_seed(seed) for seed in range(3)]
    # of shape: passes, seeds, steps, size
    drawn = torch.stack([passes(generators) for _ in range(200)]).cpu()
    assert ((drawn < 700) == (torch.arange(64) < 45)).all()
    if weighted:
        assert (drawn[..., :45] % 3 != 0).all()
    else:
        ordered = drawn.sort(-1).values
        assert (ordered[..., 1:] != ordered[..., :-1]).all()
    assert not torch.equal(drawn[:, 0], drawn[:, 1])
    counts = torch.bincount(drawn.flatten(), minlength=1_000)
    assert int((counts > 0).sum()) == (666 if weighted else 1_000)
