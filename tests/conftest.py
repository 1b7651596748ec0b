"""Property-based tests repeat exactly: the same examples in every run, on every machine.

`make test-slow` sets METRIFAIR_EXPLORE, and examples are drawn anew. Tests marked `cuda` skip where no such device is.
"""

from __future__ import annotations

import os

import pytest
import torch
from hypothesis import settings

settings.register_profile("repeat", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("explore" if os.environ.get("METRIFAIR_EXPLORE") else "repeat")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("cuda"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
