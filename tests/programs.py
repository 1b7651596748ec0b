"""Browsers and servers that some tests start, searched on the PATH alone, so that ``.ci/run``
can hide them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from metrifair.errors import MissingBrowser
from tests.seams.report import find_browser


def require_chromium() -> str:
    """The path of Chromium, which shows pages; the test skips where there is none."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not on the PATH; Debian has it as chromium")
    return path


def has_printer() -> bool:
    """Whether there is a browser that prints reports."""
    try:
        find_browser()
    except MissingBrowser:
        return False
    return True


def require_postgresql() -> Path:
    """The folder of PostgreSQL's programs; the test skips where there is none."""
    path = shutil.which("initdb")
    if path is None:
        pytest.skip(
            "initdb is not on the PATH; Debian's postgresql has it in "
            "/usr/lib/postgresql/VERSION/bin"
        )
    return Path(path).resolve().parent
