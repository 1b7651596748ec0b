"""A messy file of loans, and a studio with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.studio.driver import Studio, write_loans

pytest.importorskip("uvicorn", reason="uvicorn is in the extra studio")


@pytest.fixture(scope="session")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of loans."""
    return write_loans(tmp_path_factory.mktemp("loans") / "loans.csv")


@pytest.fixture(scope="module")
def studio(loans: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A studio with the loans, for all tests of a module."""
    folder = tmp_path_factory.mktemp("studio")
    running = Studio(str(loans), cwd=folder, kept=folder / "kept")
    yield running
    said = running.stop()
    assert "Traceback" not in said
    assert [
        path.name for path in folder.iterdir() if path.name.startswith("metrifair-studio")
    ] == []
