"""Mutation testing: how many small faults the fast tests of a room catch. `python -m benchmarks.mutate auditing`.

Each mutant changes one expression of one file, in a copy of the package. A mutant that the tests pass has survived: it
is equivalent to the original, or a test is missing.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGE = "src/metrifair"
ROOMS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "selection_rates": (["figures/selection_rates.py"], ["tests/figures"]),
    "objective": (["training/objective.py"], ["tests/training"]),
}
"""Files and tests of parts that are no folder; a folder has the tests of its name."""

_SWAPPED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_NO_VALUES = {"annotation", "returns", "decorator_list", "bases", "exc"}  # parts of a statement that compute nothing


class Mutant(NamedTuple):
    """One changed expression."""

    file: Path
    line: int
    kind: str
    before: str
    after: str
    source: str  # of the whole file

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.kind}: {self.before} -> {self.after}"


def _has_weight(node: ast.AST) -> bool:
    return any(
        "weight" in name for part in ast.walk(node) for name in (getattr(part, "id", ""), getattr(part, "attr", ""))
    )


def _constants(node: ast.Constant) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield "constant", ast.Constant(node.value + 1)
    elif isinstance(node.value, float):
        yield "constant", ast.Constant(2 * node.value if node.value else 1.0)


def _calls(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    plain = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
    if len(plain) == len(node.args) >= 2:
        yield "arguments", ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords)
    for place, keyword in enumerate(node.keywords):
        if keyword.arg is not None and "weight" in keyword.arg and not isinstance(keyword.value, ast.Constant):
            others = [other for at, other in enumerate(node.keywords) if at != place]
            yield "weights", ast.Call(node.func, node.args, others)
    if len(plain) == len(node.args) >= 2 and _has_weight(node.args[-1]):
        yield "weights", ast.Call(node.func, node.args[:-1], node.keywords)


def changes(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The kinds of faults that an expression may have, and the expression with each of them."""
    if isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SWAPPED:
        yield "comparison", ast.Compare(node.left, [_SWAPPED[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield "and, or", ast.BoolOp(_SWAPPED[type(node.op)](), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "not", node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in _SWAPPED:
        yield "arithmetic", ast.BinOp(node.left, _SWAPPED[type(node.op)](), node.right)
        if isinstance(node.op, ast.Mult):
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if _has_weight(side):
                    yield "weights", other


def _expressions(node: ast.AST, parents: tuple[tuple[str, int | None], ...] = ()) -> Iterator[tuple]:
    """All expressions that compute something, each with the way to it; no annotations, messages or docstrings."""
    for name, value in ast.iter_fields(node):
        if name in _NO_VALUES:
            continue
        for place, child in enumerate(value) if isinstance(value, list) else ((None, value),):
            if not isinstance(child, ast.AST):
                continue
            way = (*parents, (name, place))
            if isinstance(child, ast.expr):
                yield way, child
            yield from _expressions(child, way)


def _replaced(tree: ast.Module, way: Sequence[tuple[str, int | None]], new: ast.expr) -> str:
    changed = copy.deepcopy(tree)
    node: ast.AST = changed
    for name, place in way[:-1]:
        node = getattr(node, name) if place is None else getattr(node, name)[place]
    name, place = way[-1]
    if place is None:
        setattr(node, name, new)
    else:
        getattr(node, name)[place] = new
    return ast.unparse(ast.fix_missing_locations(changed))


def mutants(file: Path, root: Path, most: int | None = None, seed: int = 0) -> list[Mutant]:
    """The mutants of a file, or a seeded sample of them."""
    tree = ast.parse((root / file).read_text())
    every = [(way, node, kind, new) for way, node in _expressions(tree) for kind, new in changes(node)]
    if most is not None and len(every) > most:
        every = random.Random(f"{seed} {file}").sample(every, most)
    return [
        Mutant(file, node.lineno, kind, ast.unparse(node), ast.unparse(new), _replaced(tree, way, new))
        for way, node, kind, new in every
    ]


def sampled(files: Sequence[Path], root: Path, most: int, seed: int) -> list[Mutant]:
    """A seeded sample of the mutants of several files."""
    every = [mutant for file in files for mutant in mutants(file, root, most, seed)]
    return every if len(every) <= most else random.Random(seed).sample(every, most)


def passes(copied: Path, root: Path, tests: Sequence[str], limit: float | None = None) -> bool:
    """Whether the fast tests pass with the copied sources; one that takes too long fails."""
    path = os.pathsep.join([str(copied / "src"), str(root)])
    environment = {**os.environ, "PYTHONPATH": path, "HYPOTHESIS_STORAGE_DIRECTORY": str(copied / "examples")}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow", *tests]
    try:
        found = subprocess.run(command, cwd=root, env=environment, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return False
    if found.returncode not in (0, 1, 2):
        raise SystemExit(found.stdout.decode() + found.stderr.decode())
    return found.returncode == 0


def survivors(chosen: Sequence[Mutant], root: Path, tests: Sequence[str]) -> list[Mutant]:
    """The mutants that the tests do not catch."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder)
        shutil.copytree(root / "src", copied / "src", ignore=shutil.ignore_patterns("__pycache__"))
        start = time.monotonic()
        if not passes(copied, root, tests):
            raise SystemExit("the tests fail without a mutant")
        limit = 30 + 5 * (time.monotonic() - start)
        alive = []
        for number, mutant in enumerate(chosen, 1):
            file = copied / mutant.file
            original = file.read_text()
            file.write_text(mutant.source)
            # Python tells sources apart by size and second.
            Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)
            survived = passes(copied, root, tests, limit)
            file.write_text(original)
            Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)
            if survived:
                alive.append(mutant)
            print(f"{number}/{len(chosen)} {'SURVIVED' if survived else 'caught'} {mutant}", flush=True)
    return alive


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutate", description=__doc__.split("\n", 1)[0])
    parser.add_argument("room", help=f"a folder of the package, one of its files, or {', '.join(ROOMS)}")
    parser.add_argument("--mutants", type=int, default=200, help="how many are sampled (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", help="tests to run; by default those of the room")
    given = parser.parse_args()
    parts, tests = ROOMS.get(given.room, ([given.room], [f"tests/{given.room.split('/')[0]}"]))
    files = [
        file.relative_to(ROOT)
        for part in parts
        for file in ([ROOT / PACKAGE / part] if part.endswith(".py") else sorted((ROOT / PACKAGE / part).rglob("*.py")))
    ]
    chosen = sampled(files, ROOT, given.mutants, given.seed)
    alive = survivors(chosen, ROOT, given.tests or tests)
    caught = len(chosen) - len(alive)
    print(f"{given.room}: {caught} of {len(chosen)} mutants caught ({caught / len(chosen):.0%}); survivors:")
    print("\n".join(f"- {mutant}" for mutant in alive))


if __name__ == "__main__":
    main()
