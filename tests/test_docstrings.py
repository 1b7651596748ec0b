"""Every public name is documented as the ecosystem expects, so that reference pages can be made of docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from numpydoc.validate import validate

import metrifair

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


def public(module: ModuleType, prefix: str) -> Iterator[tuple[str, Any]]:
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            if hasattr(value, "__all__"):
                yield from public(value, f"{prefix}.{name}")
        elif callable(value):
            yield f"{prefix}.{name}", value


def names() -> Iterator[tuple[str, frozenset[str]]]:
    """Where each public function, class and method of ours is defined, and what need not be said of it."""
    for name, value in public(metrifair, "metrifair"):
        own = f"{value.__module__}.{value.__qualname__}"
        failing = isinstance(value, type) and issubclass(value, Exception)
        yield own, frozenset(NOT_OF_ERRORS if failing else ())
        for method, member in inspect.getmembers(value, inspect.isfunction) if inspect.isclass(value) else ():
            if not method.startswith("_") and member.__module__.startswith("metrifair"):
                yield f"{member.__module__}.{member.__qualname__}", frozenset(NOT_OF_METHODS)
        assert name


@pytest.mark.parametrize(("name", "spared"), sorted(set(names())))
def test_it_is_documented(name: str, spared: frozenset[str]) -> None:
    found = [(code, message) for code, message in validate(name)["errors"] if code in WANTED and code not in spared]
    assert not found


def test_planted_fault_a_missing_parameter_is_found() -> None:
    def nothing(x: int) -> int:
        """Return it."""
        return x

    globals()["nothing"] = nothing
    nothing.__qualname__ = "nothing"
    assert "PR01" in {code for code, _ in validate(f"{__name__}.nothing")["errors"]}
