"""Public modules: completion and `help` show public things only, and seeds are drawn unless one
is given.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from metrifair import criteria
from tests.seams.problem import CRITERIA

MODULES = (
    *(
        "metrifair",
        "metrifair.baselines",
        "metrifair.batches",
        "metrifair.criteria",
        "metrifair.datasets",
    ),
    *(
        "metrifair.errors",
        "metrifair.evidence",
        "metrifair.metrics",
        "metrifair.mlflow",
        "metrifair.nn",
        "metrifair.postprocessing",
    ),
    "metrifair.stacking",
)


def module_named(name: str) -> ModuleType:
    if name == "metrifair.mlflow":
        pytest.importorskip("mlflow", reason="MLflow is not installed")
    return import_module(name)


MLFLOW = pytest.param("metrifair.mlflow", marks=pytest.mark.extended)  # it is in the extra dev


@pytest.mark.parametrize(
    "name", [MLFLOW if name == "metrifair.mlflow" else name for name in MODULES]
)
def test_a_public_module_shows_public_things_only(name: str) -> None:
    module = module_named(name)
    assert sorted(dir(module)) == sorted(set(module.__all__))
    for public in module.__all__:
        value = getattr(module, public)
        assert not public.startswith("_")
        if isinstance(value, ModuleType):
            assert value.__name__ in MODULES
        elif isinstance(value, type) or inspect.isroutine(value):
            assert value.__module__.split(".")[0] == "metrifair"
            assert value.__doc__
        else:
            assert public.isupper()


def test_every_module_that_the_reference_names_is_public() -> None:
    reference = Path(__file__).parents[1] / "docs" / "reference" / "index.md"
    named = {
        line.split("::")[1].strip()
        for line in reference.read_text().splitlines()
        if "currentmodule::" in line
    }
    assert named == set(MODULES)


def test_the_criteria_are_values_of_their_names() -> None:
    assert criteria.CRITERIA is CRITERIA
    for name, criterion in CRITERIA.items():
        assert getattr(criteria, name.upper()) is criterion
        assert name.upper() in criteria.__all__
    assert set(criteria.OTHER_NAMES.values()) <= set(CRITERIA)


def seeded() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, class and method with a parameter random_state."""
    for module in (import_module(name) for name in MODULES if name != "metrifair.mlflow"):
        for name in module.__all__:
            value = getattr(module, name)
            methods = (
                [one for _, one in inspect.getmembers(value, inspect.isfunction)]
                if inspect.isclass(value)
                else []
            )
            for one in [value, *methods]:
                error = inspect.isclass(one) and issubclass(one, Exception)  # which takes a message
                own = callable(one) and not error and one.__module__.startswith("metrifair")
                if own and "random_state" in inspect.signature(one).parameters:
                    yield f"{module.__name__}.{name} {one.__qualname__}", one


def test_seeds_are_drawn_unless_one_is_given() -> None:
    found = dict(seeded())
    names = {name.split()[0] for name in found}
    assert {"metrifair.frontier", "metrifair.audit", "metrifair.FairClassifier"} <= names
    assert {"metrifair.nn.StratifiedBatchSampler", "metrifair.baselines.XianPostprocessor"} <= names
    defaults = {
        name: inspect.signature(one).parameters["random_state"].default
        for name, one in found.items()
    }
    chosen = {name.split()[-1] for name, default in defaults.items() if default is not None}
    # audits of the same rows have the same intervals
    audits = {"audit", "audit_file", "audit_table", "monitor", "AuditState.audit"}
    assert chosen == audits | {"find_groups"}
    assert all(default in (None, 0) for default in defaults.values())
