"""The formulas run on NumPy arrays and on tensors, and arrays need no torch."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import metrifair.metrics
from tests.seams.metrics import TorchNamespace, namespace_for, numpy_namespace

ROOM = Path(metrifair.metrics.__file__).parent
FOR_TENSORS = {"sort", "value_and_slope"}  # of accelerators and of gradients

MEASURE = """
import json, sys
import numpy as np
import metrifair
from metrifair.metrics import median_distance, sliced_energy_distance, sliced_wasserstein_distance

u, v, age = np.array([0.1, 0.4, 0.4, 0.8]), np.array([0.2, 0.4, 0.9]), np.array([20, 30, 40, 50])
a, b = np.array([1.0, 2.0, 1.0, 0.0]), np.array([1.0, 1.0, 2.0])
weights = {"u_weights": a, "v_weights": b}
names = ["kolmogorov", "wasserstein", "energy", "cramer", "lp", "mmd", "total_variation"]
metrifair.metrics.distances(u, v, names, **weights)
for name in names:
    metrifair.metrics.witness(u, v, metric=name)
metrifair.metrics.energy_distance(u, v, unbiased=True)
metrifair.metrics.total_variation(u, v, bins=2)
for kernel in ("laplace", "inverse_multiquadric", "distance"):
    metrifair.metrics.mmd_squared(u, v, kernel=kernel, bandwidth=[0.5, 1.0], **weights)
for attribute in (age, ["f", "f", "m", "m"], {"age": age, "income": age[::-1]}):
    metrifair.metrics.distance_covariance(u, attribute, unbiased=True)
    metrifair.metrics.energy_dependence(u, attribute, weights=a + 1)
    metrifair.metrics.distance_correlation(u, attribute)
rows = np.stack([u, 1 - u], -1)
metrifair.metrics.energy_distance(rows, rows[1:], vector=True)
sliced_energy_distance(rows, rows[1:])
sliced_wasserstein_distance(rows, rows[1:])
median_distance(u)
print(json.dumps([name for name in ("torch", "scipy", "sklearn", "pandas") if name in sys.modules]))
"""


def test_arrays_are_measured_without_importing_torch_or_scipy() -> None:
    run = subprocess.run(
        [sys.executable, "-c", MEASURE], check=True, capture_output=True, text=True
    )
    assert json.loads(run.stdout) == []


@pytest.mark.parametrize("path", sorted(ROOM.glob("*.py")), ids=lambda path: path.name)
def test_only_one_file_imports_torch_when_it_is_imported(path: Path) -> None:
    """Imports within functions and for type checkers happen later, or never."""
    body = ast.parse(path.read_text()).body
    imported = {alias.name for node in body if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in body if isinstance(node, ast.ImportFrom)}
    heavy = {name.partition(".")[0] for name in imported} & {"torch", "scipy", "sklearn", "pandas"}
    assert heavy == ({"torch"} if path.name == "torch_namespace.py" else set())


def names_of(space: object) -> set[str]:
    return {name for name in dir(space) if not name.startswith("_")}


def test_both_sides_of_the_namespace_have_the_same_operations() -> None:
    statements = ast.parse((ROOM / "numpy_namespace.py").read_text()).body
    imports = [node for node in statements if isinstance(node, ast.Import | ast.ImportFrom)]
    arrays = names_of(numpy_namespace) - {
        alias.asname or alias.name for node in imports for alias in node.names
    }
    assert names_of(TorchNamespace(torch.device("cpu"))) == arrays | FOR_TENSORS


def test_the_first_tensor_decides_and_arrays_are_numpys() -> None:
    assert namespace_for(np.zeros(2), None, [1.0]) is numpy_namespace
    assert namespace_for(np.zeros(2), torch.zeros(2)).device == torch.device("cpu")
    assert namespace_for(torch.zeros(2)) is namespace_for(torch.ones(3))


@pytest.mark.parametrize(("device", "is_host"), [("cpu", True), ("meta", False)])
def test_values_are_checked_on_the_processor_alone(device: str, is_host: bool) -> None:
    assert TorchNamespace(torch.device(device)).is_host == is_host


OPERANDS = np.random.default_rng(0).integers(-3, 4, (2, 3, 7)) / 2
ORDER = np.argsort(OPERANDS, -1, kind="stable")
OPERATIONS = {
    "amax": (OPERANDS, -1),
    "sign": (OPERANDS,),
    "at_least": (OPERANDS, 0.5),
    "at_most": (OPERANDS, 0.5),
    "log": (OPERANDS**2,),
    "rsqrt": (1 + OPERANDS**2,),
    "gather": (OPERANDS, ORDER),
    "take": (OPERANDS, np.array([2, 0, 2])),
    "scattered": (OPERANDS, ORDER),
    "put": (OPERANDS, np.array([4, 1]), OPERANDS[..., :2] + 9),
    "pad": (OPERANDS, 1, 2, 5.0),
    "flip": (OPERANDS,),
    "cummax": (OPERANDS,),
    "cummin": (OPERANDS,),
    "logcumsumexp": (np.where(OPERANDS > 1, -np.inf, OPERANDS),),
    "searchsorted": (np.sort(OPERANDS, -1), OPERANDS[..., :4]),
    "sums_by_code": (OPERANDS, ORDER % 3, 3),
    "vecdot": (OPERANDS, OPERANDS[0]),
    "integers": (OPERANDS > 0,),
    "extent": (OPERANDS,),
}


@pytest.mark.parametrize("name", list(OPERATIONS))
def test_an_operation_is_the_same_for_arrays_and_tensors(name: str) -> None:
    def tensor(value: object) -> object:
        return torch.tensor(value) if isinstance(value, np.ndarray) else value

    given = OPERATIONS[name]
    there = getattr(namespace_for(torch.zeros(1)), name)(*map(tensor, given))
    here = getattr(numpy_namespace, name)(
        *(part.copy() if isinstance(part, np.ndarray) else part for part in given)
    )
    np.testing.assert_allclose(here, there, rtol=1e-15, atol=0)
