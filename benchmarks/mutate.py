"""Mutation testing: how many small faults the fast tests of a room catch. `python -m
benchmarks.mutate auditing`.

Each mutant changes one expression of one file, in a copy of the package. A mutant that the tests
pass has survived: it is equivalent to the original, or a test is missing. Only tests that run the
changed line see the mutant, the quickest first, until they have taken 20 seconds; longer tests than
--longest are left out. Processes are forked, after imports.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib
import itertools
import multiprocessing
import os
import random
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = "src/metrifair"
ROOMS: dict[str, tuple[Sequence[str], Sequence[str]]] = {
    "auditing": (
        ["auditing"],
        ["tests/auditing", "tests/laws/test_records.py", "tests/laws/test_toy_metric.py"],
    ),
    "changes": (
        ["auditing/changes", "api/compare.py", "api/monitor.py"],
        [
            "tests/auditing/test_change_test.py",
            "tests/auditing/test_compare.py",
            "tests/auditing/test_difference_oracles.py",
            "tests/auditing/test_monitor.py",
            "tests/auditing/test_monitor_oracles.py",
        ],
    ),
    "evidence": (
        [
            "api/evidence_writer.py",
            "api/refutation.py",
            "api/search_contradictions.py",
            "api/search_counts.py",
            "api/search_evidence.py",
            "api/search_figures.py",
            "api/search_file.py",
            "api/search_folder.py",
            "api/search_recount.py",
            "api/search_verification.py",
            "api/verification.py",
            "auditing/release/evidence_format.py",
        ],
        ["tests/api"],
    ),
    "selection_rates": (
        ["figures/selection_rates.py"],
        [
            "tests/figures/test_selection_rates.py",
            "tests/figures/test_rate_oracles.py",
            "tests/auditing/test_standards.py",
        ],
    ),
    "metrics": (
        ["metrics"],
        [
            "tests/metrics",
            "tests/laws/test_metrics.py",
            "tests/figures/test_certificates.py",
            "tests/training/test_objective.py",
        ],
    ),
    "objective": (["training/objective.py"], ["tests/training/test_objective.py"]),
    "power": (["figures/power.py"], ["tests/figures/test_power.py"]),
    "postprocessing": (
        ["postprocessing"],
        ["tests/postprocessing", "tests/saving/test_postprocessors_saved.py"],
    ),
    "proxies": (
        [
            "auditing/measure/proxy_estimates.py",
            "figures/attenuation.py",
            "figures/membership_estimates.py",
        ],
        [
            "tests/auditing/test_attenuation.py",
            "tests/auditing/test_proxy_audits.py",
            "tests/auditing/test_proxy_states.py",
            "tests/figures/test_membership_estimates.py",
        ],
    ),
    "solver": (["training/solver.py"], ["tests/training"]),
    "stacking": (["stacking.py"], ["tests/test_stacking.py"]),
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
_SLOW_IMPORTS = (
    "hypothesis",
    "numpy",
    "pandas",
    "polars",
    "scipy.stats",
    "sklearn.linear_model",
    "torch",
)
_FIRST = 12  # quickest tests, which run before the others are imported
_TOGETHER = 20.0  # seconds that the tests of a mutant may take
_SYMMETRIC = {
    "allclose",
    "array_equal",
    "gcd",
    "hypot",
    "isclose",
    "max",
    "maximum",
    "min",
    "minimum",
}
# parts of a statement that compute nothing
_NO_VALUES = {"annotation", "returns", "decorator_list", "bases", "exc"}


class Mutant(NamedTuple):
    """One changed expression."""

    file: Path
    line: int
    last: int
    kind: str
    before: str
    after: str
    source: str  # of the whole file

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.kind}: {self.before} -> {self.after}"


def _has_weight(node: ast.AST) -> bool:
    return any(
        "weight" in name
        for part in ast.walk(node)
        for name in (getattr(part, "id", ""), getattr(part, "attr", ""))
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
    name = getattr(node.func, "id", getattr(node.func, "attr", ""))
    if len(plain) == len(node.args) >= 2 and name not in _SYMMETRIC:
        yield (
            "arguments",
            ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords),
        )
    for place, keyword in enumerate(node.keywords):
        if (
            keyword.arg is not None
            and "weight" in keyword.arg
            and not isinstance(keyword.value, ast.Constant)
        ):
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
        yield (
            "comparison",
            ast.Compare(node.left, [_SWAPPED[type(node.ops[0])]()], node.comparators),
        )
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


def _expressions(
    node: ast.AST, parents: tuple[tuple[str, int | None], ...] = ()
) -> Iterator[tuple]:
    """All expressions that compute something, each with the way to it; no annotations, messages
    or docstrings.
    """
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


class _Change(NamedTuple):
    """Where a mutant differs from its file, before its source is written."""

    file: Path
    tree: ast.Module
    way: Sequence[tuple[str, int | None]]
    node: Any
    kind: str
    new: ast.expr

    def mutant(self) -> Mutant:
        before, after = ast.unparse(self.node), ast.unparse(self.new)
        source = _replaced(self.tree, self.way, self.new)
        return Mutant(
            self.file, self.node.lineno, self.node.end_lineno, self.kind, before, after, source
        )


def _list_changes(file: Path, root: Path, most: int | None, seed: int) -> list[_Change]:
    tree = ast.parse((root / file).read_text())
    every = [
        _Change(file, tree, way, node, *change)
        for way, node in _expressions(tree)
        for change in changes(node)
    ]
    return (
        every
        if most is None or len(every) <= most
        else random.Random(f"{seed} {file}").sample(every, most)
    )


def mutants(file: Path, root: Path, most: int | None = None, seed: int = 0) -> list[Mutant]:
    """The mutants of a file, or a seeded sample of them."""
    return [change.mutant() for change in _list_changes(file, root, most, seed)]


def sampled(files: Sequence[Path], root: Path, most: int, seed: int) -> list[Mutant]:
    """A seeded sample of the mutants of several files."""
    every = [change for file in files for change in _list_changes(file, root, most, seed)]
    return [
        one.mutant()
        for one in (every if len(every) <= most else random.Random(seed).sample(every, most))
    ]


class Reached:
    """A pytest plugin that records which lines each test runs, and how long it takes."""

    def __init__(self, folder: Path, longest: float) -> None:
        self.folder, self.longest = f"{folder}/", longest
        self.lines: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self.setup: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self.seconds: dict[str, float] = {}
        self.too_long: set[str] = set()

    @contextlib.contextmanager
    def _traced(self, lines: set[tuple[str, int]]) -> Iterator[None]:
        def inside(frame: FrameType, *_: object) -> Callable:
            lines.add((frame.f_code.co_filename.removeprefix(self.folder), frame.f_lineno))
            return inside

        def entered(frame: FrameType, *_: object) -> Callable | None:
            return inside(frame) if frame.f_code.co_filename.startswith(self.folder) else None

        sys.settrace(entered)
        threading.settrace(entered)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None]:
        """What all tests of a file share is set up in the first of them."""
        with self._traced(self.setup[item.nodeid.split("::")[0]]):
            yield

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Record the lines of the test itself; end it where it takes too long."""

        def end(*_: object) -> None:
            self.too_long.add(item.nodeid)
            pytest.skip("takes too long")

        start = time.process_time()
        signal.signal(signal.SIGPROF, end)
        signal.setitimer(signal.ITIMER_PROF, self.longest)
        try:
            with self._traced(self.lines[item.nodeid]):
                yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        self.seconds[item.nodeid] = time.process_time() - start

    def add(self, other: Reached) -> None:
        """What other tests have reached."""
        for mine, theirs in (
            (self.lines, other.lines),
            (self.setup, other.setup),
            (self.seconds, other.seconds),
        ):
            mine.update(theirs)  # type: ignore[arg-type]
        self.too_long |= other.too_long

    def tests(self, file: str, first: int, last: int) -> list[str]:
        """Tests that run one of the lines, the quickest first; for lines outside functions,
        those that run the file.
        """
        places = {(file, line) for line in range(first, last + 1)}
        modules = {name for name, lines in self.setup.items() if lines & places}
        tests = [
            test
            for test, lines in self.lines.items()
            if lines & places or test.split("::")[0] in modules
        ]
        if not tests:
            tests = [
                test for test, lines in self.lines.items() if any(name == file for name, _ in lines)
            ]
        quickest = sorted(
            set(tests) & set(self.seconds) - self.too_long,
            key=lambda test: (self.seconds[test], test),
        )
        spent = itertools.accumulate(self.seconds[test] for test in quickest)
        return [test for test, seconds in zip(quickest, spent, strict=True) if seconds <= _TOGETHER]


class Chosen:
    """A pytest plugin that runs these tests, in their order.

    A mutant may change which tests there are.
    """

    def __init__(self, tests: Sequence[str]) -> None:
        self.order = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order),
            key=lambda i: self.order[i.nodeid],
        )


def _child(
    copied: Path,
    root: Path,
    tests: Sequence[Sequence[str]],
    answer: Connection,
    reached: Reached | None,
) -> None:
    """Run groups of tests with the copied sources until one of them fails, and send the exit
    status.

    A group without any test left passes.
    """
    os.setsid()
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    os.chdir(root)
    sys.path[:0] = [str(copied / "src"), str(root)]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(copied / "examples")
    status = 0
    for group in tests:
        files = dict.fromkeys(test.split("::")[0] for test in group)
        options = [
            "-x",
            "-p",
            "no:cacheprovider",
            "-m",
            "not slow and not extended",
            "--rootdir",
            str(root),
            *files,
        ]
        # for what was imported before the fork
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        status = int(pytest.main(options, plugins=[reached or Chosen(group)]))
        if status == pytest.ExitCode.NO_TESTS_COLLECTED:
            status = 0
        if status:
            break
    answer.send((status, reached))


def _run(
    root: Path, tests: Sequence[Sequence[str]], limit: float | None, **options: Any
) -> tuple[int, Any]:
    """Exit status of tests in a forked process; 1 where it took too long or was killed."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder)
        shutil.copytree(root / "src", copied / "src", ignore=shutil.ignore_patterns("__pycache__"))
        if mutant := options.get("mutant"):
            (copied / mutant.file).write_text(mutant.source)
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        reached = None if mutant else Reached(copied, options["longest"])
        process = context.Process(target=_child, args=(copied, root, tests, sender, reached))
        process.start()
        sender.close()
        answer: tuple[int, Any] = (1, None)
        if receiver.poll(limit):
            with contextlib.suppress(EOFError):
                answer = receiver.recv()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
        return answer


def reached_lines(
    root: Path, tests: Sequence[str], pool: ThreadPoolExecutor, longest: float
) -> Reached:
    """The lines that each test runs.

    Files whose tests fail, as where a package is missing, are named and left out.
    """
    files = [
        str(file.relative_to(root))
        for part in tests
        for file in (
            [root / part] if part.endswith(".py") else sorted((root / part).rglob("test_*.py"))
        )
    ]
    every = Reached(root, longest)
    runs = pool.map(lambda file: _run(root, [[file]], None, longest=longest), files)
    for file, (status, reached) in zip(files, runs, strict=True):
        if status:
            print(f"left out, as its tests fail without a mutant: {file}", flush=True)
        else:
            every.add(reached)
    if not every.seconds:
        raise SystemExit("no test passes without a mutant")
    print(f"{len(every.seconds)} tests, of which {len(every.too_long)} take too long", flush=True)
    return every


def survivors(
    mutants: Sequence[Mutant],
    root: Path,
    tests: Sequence[str],
    *,
    jobs: int = 1,
    longest: float = 5.0,
) -> list[Mutant]:
    """The mutants that the tests do not catch; ``longest`` is the processor time that a test
    may take.
    """
    for name in _SLOW_IMPORTS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with ThreadPoolExecutor(jobs) as pool:
        reached = reached_lines(root, tests, pool, longest)

        def survives(mutant: Mutant) -> bool:
            those = reached.tests(str(mutant.file), mutant.line, mutant.last)
            groups = [group for group in (those[:_FIRST], those[_FIRST:]) if group]
            limit = 120 + 10 * sum(reached.seconds[test] for test in those)
            status, _ = _run(root, groups, limit, mutant=mutant)
            if status not in (0, 1, 2):
                raise SystemExit(f"pytest ended with status {status} for {mutant}")
            ending = "caught" if status else "SURVIVED"
            print(
                f"{time.strftime('%H:%M:%S')} {ending} by {len(those)} tests: {mutant}", flush=True
            )
            return status == 0

        return [
            mutant
            for mutant, alive in zip(mutants, pool.map(survives, mutants), strict=True)
            if alive
        ]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mutate", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument(
        "room", help=f"a folder of the package, one of its files, or {', '.join(ROOMS)}"
    )
    parser.add_argument(
        "--mutants", type=int, default=200, help="how many are sampled (default: 200)"
    )
    parser.add_argument("--seed", type=int, help="of the sample (default: a new one, printed)")
    parser.add_argument("--tests", nargs="+", help="tests to run; by default those of the room")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (default: 1)")
    parser.add_argument(
        "--longest", type=float, default=5.0, help="seconds that a test may take (default: 5)"
    )
    args = parser.parse_args()
    parts, tests = ROOMS.get(args.room, ([args.room], [f"tests/{args.room.split('/')[0]}"]))
    files = [
        file.relative_to(ROOT)
        for part in parts
        for file in (
            [ROOT / PACKAGE / part]
            if part.endswith(".py")
            else sorted((ROOT / PACKAGE / part).rglob("*.py"))
        )
    ]
    seed = secrets.randbelow(1_000_000) if args.seed is None else args.seed
    mutants = sampled(files, ROOT, args.mutants, seed)
    print(f"{args.room}: {len(mutants)} mutants, seed {seed}", flush=True)
    alive = survivors(mutants, ROOT, args.tests or tests, jobs=args.jobs, longest=args.longest)
    caught = len(mutants) - len(alive)
    print(
        f"{args.room}, seed {seed}: {caught} of {len(mutants)} mutants caught "
        f"({caught / len(mutants):.0%}); "
        "survivors:"
    )
    print("\n".join(f"- {mutant}" for mutant in alive))


if __name__ == "__main__":
    main()
