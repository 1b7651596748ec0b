"""Tests import public names from public modules, and internal names from ``tests/seams`` alone.

A rename or a move in src then changes one file of tests. Few tests pin sentences: those are in
``tests/approved``, and a rewording changes one file of texts.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import metrifair

SOURCE = Path(metrifair.__file__).parent
TESTS = Path(__file__).parent
SEAMS = TESTS / "seams"
ROOMS = sorted(path.stem for path in SEAMS.glob("[!_]*.py"))
IMPORT = re.compile(r"(?:from|import) (metrifair(?:\.\w+)+)")

LIMITS = {
    "api": 11,
    "auditing": 131,
    "baselines": 40,
    "batches": 14,
    "boosting": 17,
    "cli": 28,
    "datasets": 4,
    "errors": 1,
    "estimators": 14,
    "figures": 70,
    "metrics": 42,
    "nn": 9,
    "postprocessing": 17,
    "problem": 44,
    "report": 31,
    "saving": 25,
    "studio": 22,
    "support": 16,
    "tradeoff": 49,
    "training": 26,
    "wording": 66,
}
"""How many names a seam may have; these limits only go down."""

PROSE_WORDS = 5
"""From how many words on a text is prose."""

MOST_PROSE_PINS = 453
"""How many test functions may compare with prose; this limit only goes down."""


def is_module(name: str) -> bool:
    """Whether a dotted name is that of a file or a folder of the package.

    >>> is_module("metrifair.problem.cells"), is_module("metrifair.errors.DataError")
    (True, False)
    """
    path = SOURCE.joinpath(*name.split(".")[1:])
    return path.is_dir() or path.with_suffix(".py").exists()


def is_internal(name: str) -> bool:
    """Whether a dotted name leads below a room.

    >>> is_internal("metrifair.problem.cells.Cells"), is_internal("metrifair.errors.DataError")
    (True, False)
    """
    parts = name.split(".")
    if parts[0] != "metrifair" or len(parts) < 3 or not parts[2]:
        return False
    return is_module(".".join(parts[:3]))


@cache
def public_names(module: str) -> frozenset[str]:
    """What a module says that it offers; a room that says nothing offers nothing."""
    return frozenset(getattr(import_module(module), "__all__", ()))


def imported_names(node: ast.ImportFrom) -> Iterator[str]:
    """The internal names of a statement `from metrifair.room import name`."""
    module = node.module or ""
    if module.split(".")[0] != "metrifair" or module == "metrifair.__main__":
        return
    for alias in node.names:
        name = f"{module}.{alias.name}"
        if module == "metrifair":
            is_public = not is_module(name) or public_names(name)
        else:
            is_public = not is_internal(module) and alias.name in public_names(module)
        if not is_public:
            yield name


def named_modules(text: str) -> Iterator[str]:
    """The internal names of a string: one for monkeypatch or importlib, or a program's imports."""
    if is_internal(text):
        yield text
    yield from filter(is_internal, IMPORT.findall(text))


def internal_names(tree: ast.AST) -> Iterator[str]:
    """What a module reaches below the rooms of the package without a seam."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from imported_names(node)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if is_internal(alias.name))
        elif isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            if is_internal(name):
                yield name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from named_modules(node.value)


@cache
def sources() -> dict[Path, ast.Module]:
    """All modules of the tests but the seams."""
    paths = (path for path in sorted(TESTS.rglob("*.py")) if SEAMS not in path.parents)
    return {path: ast.parse(path.read_text()) for path in paths}


def seam_names(room: str) -> dict[str, str]:
    """The names that a seam offers, each with the module that it comes from."""
    return {
        alias.asname or alias.name: node.module or ""
        for node in ast.parse((SEAMS / f"{room}.py").read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@cache
def used_names() -> frozenset[str]:
    """What tests import from seams: `room.name`."""
    return frozenset(
        f"{node.module.removeprefix('tests.seams.')}.{alias.name}"
        for tree in sources().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.seams.")
        for alias in node.names
    )


@pytest.mark.parametrize(
    "source",
    [
        "from metrifair.problem.cells import Cells",
        "from metrifair.problem import cells",
        "from metrifair.errors import remedy_text",
        "from metrifair import problem",
        "import metrifair.problem.cells",
        "metrifair.problem.cells.Cells",
        "monkeypatch.setattr('metrifair.problem.cells.Cells', None)",
        "import_module('metrifair.problem.cells')",
        "CODE = '''\nimport sys\nfrom metrifair.problem.cells import Cells\n'''",
    ],
)
def test_an_internal_name_is_found(source: str) -> None:
    assert list(internal_names(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        "from metrifair import audit, metrics",
        "from metrifair.errors import DataError",
        "from metrifair.metrics import energy_distance",
        "metrifair.metrics.energy_distance(u, v)",
        "from metrifair.__main__ import main",
        "'metrifair.metrics.energy_distance'",
    ],
)
def test_a_public_name_is_allowed(source: str) -> None:
    assert not list(internal_names(ast.parse(source)))


def test_tests_reach_internal_names_through_seams_alone() -> None:
    here = Path(__file__)
    reached = {
        path.relative_to(TESTS).as_posix(): names
        for path, tree in sources().items()
        if path != here and (names := sorted(internal_names(tree)))
    }
    assert reached == {}


@pytest.mark.parametrize("room", ROOMS)
def test_a_seam_has_the_names_of_its_room_that_tests_use(room: str) -> None:
    names = seam_names(room)
    assert {name for name in names if f"{room}.{name}" not in used_names()} == set()
    assert {module.split(".")[1] for module in names.values()} == {room}


@pytest.mark.parametrize("room", ROOMS)
def test_a_seam_does_not_grow(room: str) -> None:
    assert len(seam_names(room)) <= LIMITS[room]


def has_prose(node: ast.AST) -> bool:
    """Whether a part of a source contains a text of several words."""
    return any(
        isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and len(part.value.split()) >= PROSE_WORDS
        for part in ast.walk(node)
    )


def compares(node: ast.AST) -> bool:
    """Whether this is a comparison, the pattern of an expected message, or the end of a text."""
    if isinstance(node, ast.keyword):
        return node.arg == "match"
    if isinstance(node, ast.Call):
        function = node.func
        return isinstance(function, ast.Attribute) and function.attr in ("startswith", "endswith")
    return isinstance(node, ast.Compare)


def prose_pins(tree: ast.AST) -> list[str]:
    """The names of the test functions that compare with prose."""
    return [
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        and function.name.startswith("test")
        and any(compares(node) and has_prose(node) for node in ast.walk(function))
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "assert text == 'The rows are all of one group.'",
        "assert 'are all of one group' in text",
        "assert text.startswith('The rows are all of one')",
        "pytest.raises(ValueError, match='are all of one group')",
    ],
)
def test_a_comparison_with_prose_is_found(statement: str) -> None:
    assert prose_pins(ast.parse(f"def test_it():\n    {statement}\n")) == ["test_it"]


@pytest.mark.parametrize(
    "statement", ["assert kind == 'one_group'", "said('are all of one group')"]
)
def test_facts_are_no_prose(statement: str) -> None:
    assert not prose_pins(ast.parse(f"def test_it():\n    {statement}\n"))


def test_few_tests_compare_with_prose() -> None:
    pins = [name for tree in sources().values() for name in prose_pins(tree)]
    assert len(pins) <= MOST_PROSE_PINS, "approve the text: tests/approvals.py, or refused"
