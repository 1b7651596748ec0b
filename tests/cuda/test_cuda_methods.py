"""Baselines that train networks: a CUDA device ends where the CPU does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from experiments.stacks import FairKDEPath, fit_stack
from metrifair.baselines import (
    FairBatchClassifier,
    FairKDEClassifier,
    LabelBiasClassifier,
    MassagingClassifier,
    ReweighingClassifier,
    SinkhornClassifier,
)
from metrifair.estimators import FairClassifier

pytestmark = pytest.mark.cuda


def small(device: str) -> FairClassifier:
    return FairClassifier(0.0, hidden=(4,), epochs=5, batch_size=50, device=device, model="mlp")


METHODS: dict[str, Any] = {
    "fairkde": lambda on: FairKDEClassifier(hidden=(4,), epochs=5, batch_size=50, device=on),
    "fairkde path": lambda on: FairKDEPath(
        criterion="equal_opportunity",
        variant="reference",
        batch_size=50,
        epochs=5,
        device=on,
    ),
    "fairbatch": lambda on: FairBatchClassifier(
        hidden=(4,), epochs=5, batch_size=50, step=0.1, device=on
    ),
    "sinkhorn": lambda on: SinkhornClassifier(epochs=8, device=on),
    "sinkhorn blocks": lambda on: SinkhornClassifier(epochs=4, block=17, device=on),
    "labelbias": lambda on: LabelBiasClassifier(small(on), rounds=3),
    "massaging": lambda on: MassagingClassifier(small(on)),
    "reweighing": lambda on: ReweighingClassifier(small(on)),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_device_gives_what_the_cpu_gives(name: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(2, size=200)
    x = np.c_[rng.normal(size=(200, 2)) + 0.8 * a[:, None], a]
    y = (x[:, :2].sum(1) + rng.normal(size=200) > 0.8).astype(int)
    rows = [np.arange(0, 160), np.arange(40, 200)]
    outputs = []
    for device in ("cpu", "cuda"):
        template = METHODS[name](device)
        knob = {"strengths": [0.0, 0.5, 0.9]} if "strength" in template.get_params() else {}
        stack = fit_stack(template, x, y, a, seeds=[3, 8], rows=rows, **knob)
        outputs.append(np.stack([model.decision_function(x) for model in stack]))
    np.testing.assert_allclose(outputs[1], outputs[0], rtol=1e-2, atol=2e-3)
