"""What people read is what somebody approved: each surface equals its file in ``tests/approved``."""

from __future__ import annotations

import pytest

from tests.approvals import FOLDER, SURFACES, approved, difference, rendered


@pytest.mark.parametrize("surface", SURFACES)
def test_a_surface_says_what_was_approved(surface: str) -> None:
    changes = difference(surface, rendered(SURFACES[surface]()))
    if changes:
        pytest.fail(changes, pytrace=False)


@pytest.mark.parametrize("surface", SURFACES)
def test_another_word_is_a_difference(surface: str) -> None:
    text = approved(surface)
    word = max(text.split(), key=len)
    changes = difference(surface, text.replace(word, "reworded", 1))
    assert any(line.startswith("-") and word in line for line in changes.splitlines())
    assert any(line.startswith("+") and "reworded" in line for line in changes.splitlines())
    assert "make approve" in changes


def test_each_approved_file_is_that_of_a_surface() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(SURFACES)
