"""Code to be read at walking pace: few tokens a line, one assignment and one choice a statement."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import metrifair

ROOT = Path(metrifair.__file__).parent
MOST_TOKENS = 8.5  # of a line of code
MOST_PACKED = 3.0  # packed assignments among 1,000 statements
MOST_CHOICES = 25.0  # conditional expressions among 1,000 statements of the package
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def docstring_lines(tree: ast.Module) -> Iterator[int]:
    """The lines of docstrings."""
    for node in ast.walk(tree):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            yield from range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)


def is_packed(node: ast.AST) -> bool:
    """Whether a statement assigns several values to as many names, as a, b = 1, 2 does."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    return isinstance(node.targets[0], ast.Tuple)


def choices(node: ast.AST) -> int:
    """The conditional expressions within a part of a source."""
    return sum(isinstance(part, ast.IfExp) for part in ast.walk(node))


def is_dense(node: ast.AST) -> bool:
    """Whether a simple statement makes several choices, a choice contains another one, the head of
    a loop or of a condition makes one, or a comprehension has several conditions.
    """
    if isinstance(node, ast.comprehension):
        return len(node.ifs) > 1
    if isinstance(node, ast.For | ast.AsyncFor):
        return choices(node.iter) > 0
    if isinstance(node, ast.If | ast.While):
        return choices(node.test) > 0
    simple = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise, ast.IfExp)
    return isinstance(node, simple) and choices(node) > 1


def pace(sources: Iterable[str]) -> tuple[float, float]:
    """Tokens of a line of code, and packed assignments among 1,000 statements."""
    tokens = lines = statements = packed = 0
    for source in sources:
        tree = ast.parse(source)
        documentation = set(docstring_lines(tree))
        coded: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type not in _NO_CODE and token.start[0] not in documentation:
                tokens += 1
                coded.update(range(token.start[0], token.end[0] + 1))
        lines += len(coded)
        nodes = list(ast.walk(tree))
        statements += sum(isinstance(node, ast.stmt) for node in nodes)
        packed += sum(map(is_packed, nodes))
    return tokens / lines, 1000 * packed / statements


def paths_of(room: str) -> list[Path]:
    """The modules of a room; of "" those beside the rooms."""
    return sorted((ROOT / room).rglob("*.py") if room else ROOT.glob("*.py"))


ROOMS = ["", *sorted(path.name for path in ROOT.iterdir() if any(path.glob("*.py")))]


def test_lines_and_packed_assignments_are_counted() -> None:
    source = '"""Two values."""\na, b = 1, 2\nc = (\n    a  # the first\n)\n'
    assert pace([source]) == (12 / 4, 1000 / 3)


def test_dense_statements_are_counted() -> None:
    source = "a = 1 if b else 2\nc = (1 if a else 2) + (3 if b else 4)\n[x for x in a if x if b]\n"
    assert sum(map(is_dense, ast.walk(ast.parse(source)))) == 2


@pytest.mark.parametrize(
    "source",
    [
        "for x in a if b else c:\n    pass\n",
        "while (1 if a else 2) > b:\n    pass\n",
        "if b == (1 if a else 2):\n    pass\n",
        "with f(1 if a else 2 if b else 3):\n    pass\n",
    ],
)
def test_choices_in_heads_and_in_choices_are_dense(source: str) -> None:
    assert any(map(is_dense, ast.walk(ast.parse(source))))


def test_conditions_and_loops_without_choices_are_not_dense() -> None:
    source = "for x in a:\n    if x:\n        b = 1 if x else 2\n        c = 1 if b else 2\n"
    assert not any(map(is_dense, ast.walk(ast.parse(source))))


@pytest.mark.parametrize("room", ROOMS)
def test_a_statement_makes_one_choice(room: str) -> None:
    dense = [
        f"{path}:{getattr(node, 'lineno', '')}"
        for path in paths_of(room)
        for node in ast.walk(ast.parse(path.read_text()))
        if is_dense(node)
    ]
    assert not dense


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_read_at_walking_pace(room: str) -> None:
    per_line, packed = pace(path.read_text() for path in paths_of(room))
    assert per_line <= MOST_TOKENS
    assert packed <= MOST_PACKED


def test_the_package_makes_few_choices_within_statements() -> None:
    trees = [ast.parse(path.read_text()) for path in ROOT.rglob("*.py")]
    made = sum(map(choices, trees))
    statements = sum(isinstance(node, ast.stmt) for tree in trees for node in ast.walk(tree))
    assert 1000 * made / statements <= MOST_CHOICES
