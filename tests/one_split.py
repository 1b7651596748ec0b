"""`frontier` with one split into training, validation and test rows, however few rows there are."""

from __future__ import annotations

from typing import Any

import metrifair


def frontier(*given: Any, **options: Any) -> metrifair.Frontier:
    """The frontier of these arguments; a quarter of the rows are test rows, unless the caller
    states otherwise.
    """
    return metrifair.frontier(*given, **{"test": 0.25, **options})
