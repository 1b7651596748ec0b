"""The published files of the data sets, which some tests read: METRIFAIR_DATA names their folder.

Nobody ships these files, so the tests that need them skip where they are not, and say how to get
them. Those tests run in ``make test-all``, not in ``make test``, which needs nothing but Python.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# read before any test changes the environment
_NAMED = os.environ.get("METRIFAIR_DATA")
DOWNLOADED = Path(__file__).resolve().parents[1] / "build" / "data"
"""Where ``make data`` puts the files."""
FOLDER = Path(_NAMED) if _NAMED else DOWNLOADED
MISSING = f"there are no raw data files in {FOLDER}: 'make data' downloads them, or METRIFAIR_DATA names their folder"


def require_raw_data() -> Path:
    """The folder of the published files; the test skips where there is none."""
    if not FOLDER.is_dir():
        pytest.skip(MISSING)
    return FOLDER
