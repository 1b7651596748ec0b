"""Where the raw data lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.raw_data import FOLDER, require_raw_data


@pytest.fixture(scope="session", autouse=True)
def _one_folder() -> None:
    if FOLDER.is_dir():
        os.environ["METRIFAIR_DATA"] = str(FOLDER)


@pytest.fixture(scope="session")
def raw_data() -> Path:
    """The folder of the published files."""
    return require_raw_data()
