"""The shape of the package: one meaning for each class, alias and constant, no circles of
imports, few names at the top.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import metrifair

ROOT = Path(metrifair.__file__).parent


@cache
def trees() -> dict[str, ast.Module]:
    """The source of every module by its name."""
    names = {
        path: ".".join(("metrifair", *path.relative_to(ROOT).with_suffix("").parts))
        for path in ROOT.rglob("*.py")
    }
    return {
        name.removesuffix(".__init__"): ast.parse(path.read_text()) for path, name in names.items()
    }


def imports(node: ast.AST) -> Iterator[str]:
    """Modules of ours that a module imports anywhere, but for types alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.ImportFrom) and child.module and child.level == 0:
            names = [f"{child.module}.{alias.name}" for alias in child.names]
            yield from (name if name in trees() else child.module for name in names)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        yield from imports(child)


@cache
def graph() -> dict[str, set[str]]:
    """Modules of ours that each module imports."""
    return {
        name: {target for target in imports(tree) if target in trees()} - {name}
        for name, tree in trees().items()
    }


def circles(targets_of: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected modules (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    result: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in sorted(targets_of[name]):
            if target not in index:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], index[target])
        if low[name] == index[name]:
            members = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(members) > 1:
                result.append(sorted(members))

    for name in sorted(targets_of):
        if name not in index:
            visit(name)
    return result


def test_the_search_for_circles_finds_one() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c"]]


def test_no_modules_import_each_other_in_a_circle() -> None:
    # The package's own name stands for its version only, which is defined before anything is
    # imported.
    assert circles({name: targets - {"metrifair"} for name, targets in graph().items()}) == []


def assigned(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module defines as a class, an alias or a constant.

    A type variable stands for any type, and means nothing beyond its module.
    """
    if isinstance(node, ast.ClassDef):
        yield node.name
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign) and not ast.unparse(node.value).startswith("TypeVar("):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))


def names_of_two(sources: dict[str, ast.Module]) -> dict[str, list[str]]:
    """The public names that several modules define, and these modules; private ones of classes
    too.
    """
    places = defaultdict(list)
    for module, tree in sources.items():
        classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        named = {name for node in tree.body for name in assigned(node) if not name.startswith("_")}
        for name in classes | named:
            places[name].append(module)
    return {name: where for name, where in places.items() if len(where) > 1}


def test_names_of_two_things_are_found() -> None:
    sources = {
        "a": "Value = int | str\nMOST: int = 3\n_FEW = 1\nT = TypeVar('T')\nclass _Own: pass\n",
        "b": "class Value: pass\nMOST, LEAST = 4, 1\n_FEW = 2\nT = TypeVar('T')\n",
        "c": "def LEAST(): pass\nclass _Own: pass\n",
    }
    found = names_of_two({name: ast.parse(source) for name, source in sources.items()})
    assert found == {"Value": ["a", "b"], "MOST": ["a", "b"], "_Own": ["a", "c"]}


def test_no_name_of_a_class_alias_or_constant_means_two_things() -> None:
    assert names_of_two(trees()) == {}


def test_few_names_stand_at_the_top() -> None:
    assert len(metrifair.__all__) <= 38
    assert set(metrifair.__all__).isdisjoint(metrifair.metrics.__all__)


@pytest.mark.parametrize(
    "room", ["auditing", "tradeoff", "figures", "metrics", "problem", "training"]
)
def test_rooms_of_facts_import_no_words(room: str) -> None:
    below = [name for name in graph() if name.startswith(f"metrifair.{room}")]
    assert below
    wordy = ("metrifair.wording", "metrifair.report", "metrifair.api", "metrifair.cli")
    assert [
        (name, target) for name in below for target in graph()[name] if target.startswith(wordy)
    ] == []
