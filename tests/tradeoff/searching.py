"""Arguments of `frontier` for tests: options of the search in their record, and a seed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from metrifair import SearchOptions

NAMES = [field.name for field in fields(SearchOptions)]


def arguments(**options: Any) -> dict[str, Any]:
    search = {name: options.pop(name) for name in NAMES if name in options}
    return {"random_state": 0, **options, "search": SearchOptions(**search)}
