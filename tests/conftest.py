"""Property-based tests repeat exactly: the same examples in every run, on every machine.

`make test-slow` sets METRIFAIR_EXPLORE, and examples are drawn anew.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("repeat", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("explore" if os.environ.get("METRIFAIR_EXPLORE") else "repeat")
