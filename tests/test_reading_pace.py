"""Code to be read at walking pace: few tokens a line, one assignment a statement.

Each room has its limits, which only ever go down; a room that is done has those of ``DONE``.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import metrifair

ROOT = Path(metrifair.__file__).parent
DONE = (8.5, 3.0)  # tokens of a line of code; packed assignments among 1,000 statements
LIMITS = {
    "": (9.0, 31.5),  # the modules beside the rooms
    "api": (8.5, 18.0),
    "auditing": (9.7, 27.0),
    "baselines": (10.3, 24.5),
    "batches": (10.9, 25.5),
    "boosting": (9.2, 27.0),
    "cli": (8.5, 15.5),
    "estimators": (8.5, 25.5),
    "figures": (8.7, 3.0),  # measuring all resamples in one pass
    "nn": (9.1, 34.0),
    "postprocessing": (10.4, 43.0),
    "report": (8.6, 21.0),
    "saving": (8.8, 24.0),
    "studio": (8.5, 15.0),
    "tradeoff": (9.0, 26.0),
    "training": (10.6, 42.5),
    "wording": (8.5, 12.6),
}
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


def test_lines_and_packed_assignments_are_counted() -> None:
    source = '"""Two values."""\na, b = 1, 2\nc = (\n    a  # the first\n)\n'
    assert pace([source]) == (12 / 4, 1000 / 3)


@pytest.mark.parametrize(
    "room", ["", *sorted(path.name for path in ROOT.iterdir() if any(path.glob("*.py")))]
)
def test_a_room_only_gets_better_to_read(room: str) -> None:
    paths = (ROOT / room).rglob("*.py") if room else ROOT.glob("*.py")
    per_line, packed = pace(path.read_text() for path in paths)
    most_per_line, most_packed = LIMITS.get(room, DONE)
    assert per_line <= most_per_line
    assert packed <= most_packed
