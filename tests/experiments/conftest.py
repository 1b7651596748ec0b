"""Where the raw data lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_NAMED = os.environ.get("METRIFAIR_DATA")
_FOLDER = Path(_NAMED) if _NAMED else Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def _one_folder() -> None:
    if _FOLDER.is_dir():
        os.environ["METRIFAIR_DATA"] = str(_FOLDER)


@pytest.fixture(scope="session")
def raw_data() -> Path:
    """The folder of the published files."""
    if not _FOLDER.is_dir():
        pytest.skip(f"needs the raw data: set METRIFAIR_DATA to their folder ({_FOLDER} does not exist)")
    return _FOLDER
