"""Every public name is documented as the ecosystem expects, so that reference pages can be made
of docstrings.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from numpydoc.validate import validate

import metrifair
from metrifair import metrics, postprocessing

pytestmark = pytest.mark.extended  # numpydoc is in the extra dev

WANTED = {
    "GL08": "a docstring",
    "SS03": "a summary that ends with a full stop",
    "PR01": "every parameter",
    "PR02": "no parameter that there is not",
    "PR03": "parameters in their order",
    "PR04": "the type of every parameter",
    "PR07": "what every parameter means",
    "RT01": "what is returned",
    "YD01": "what is yielded",
    "EX01": "an example",
}
NOT_OF_METHODS = {"EX01"}  # their class has one
NOT_OF_ERRORS = {"PR01", "EX01"}  # which take a message, as all errors do


def public(module: ModuleType) -> Iterator[Any]:
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            if hasattr(value, "__all__"):
                yield from public(value)
        elif callable(value):
            yield value


def spared_by_name() -> dict[str, set[str]]:
    """Where each public function, class and method of ours is defined, and what need not be
    said of it.
    """
    spared: dict[str, set[str]] = {}
    for value in (*public(metrifair), *public(metrics), *public(postprocessing)):
        failing = isinstance(value, type) and issubclass(value, Exception)
        spared[f"{value.__module__}.{value.__qualname__}"] = NOT_OF_ERRORS if failing else set()
        for method, member in (
            inspect.getmembers(value, inspect.isfunction) if inspect.isclass(value) else ()
        ):
            if not method.startswith("_") and member.__module__.startswith("metrifair"):
                spared[f"{member.__module__}.{member.__qualname__}"] = NOT_OF_METHODS
    return spared


SPARED = spared_by_name()


@pytest.mark.parametrize("name", sorted(SPARED))  # in one order in all processes of pytest-xdist
def test_it_is_documented(name: str) -> None:
    wanted = WANTED.keys() - SPARED[name]
    assert not [(code, message) for code, message in validate(name)["errors"] if code in wanted]


def test_planted_fault_a_missing_parameter_is_found() -> None:
    def nothing(x: int) -> int:
        """Return it."""
        return x

    globals()["nothing"] = nothing
    nothing.__qualname__ = "nothing"
    assert "PR01" in {code for code, _ in validate(f"{__name__}.nothing")["errors"]}
