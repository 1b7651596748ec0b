"""What people read is what somebody approved: each surface equals its file in ``tests/approved``."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.approvals import SURFACES
from tests.approved_texts import FOLDER, approved, difference, read_sections, rendered
from tests.expected_errors import SURFACE as REFUSALS
from tests.expected_errors import Refusals


@pytest.mark.parametrize("surface", SURFACES)
def test_a_surface_says_what_was_approved(surface: str) -> None:
    changes = difference(surface, approved(surface), rendered(SURFACES[surface]()))
    if changes:
        pytest.fail(changes, pytrace=False)


@pytest.mark.parametrize("surface", SURFACES)
def test_another_word_is_a_difference(surface: str) -> None:
    text = approved(surface)
    word = max(text.split(), key=len)
    changes = difference(surface, text, text.replace(word, "reworded", 1))
    assert any(line.startswith("-") and word in line for line in changes.splitlines())
    assert any(line.startswith("+") and "reworded" in line for line in changes.splitlines())
    assert "make approve" in changes


def test_each_approved_file_is_that_of_a_surface() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {*SURFACES, REFUSALS}


def names_with_refusals() -> list[str]:
    """The names of the tests that ask for the fixture."""
    sources = [ast.parse(path.read_text()) for path in Path(__file__).parent.rglob("test_*.py")]
    return [
        node.name
        for tree in sources
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and "refused" in {arg.arg for arg in node.args.args}
    ]


def test_each_approved_refusal_is_that_of_a_test() -> None:
    titles = read_sections(REFUSALS)
    names = names_with_refusals()
    assert set(titles) == set(names)
    assert len(set(names)) == len(names), "two tests of one name share their messages"


def test_another_message_is_a_failure() -> None:
    title = next(iter(read_sections(REFUSALS)))
    expected = Refusals(title)
    with pytest.raises(pytest.fail.Exception, match="make approve"), expected(ValueError):
        raise ValueError("reworded")


def test_an_error_of_another_type_is_a_failure() -> None:
    with pytest.raises(KeyError), Refusals("nobody")(ValueError):
        raise KeyError("nobody")
