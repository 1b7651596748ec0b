"""What a verification of evidence found, for tests of evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from metrifair.evidence import verify


def outcomes(path: Path, **options: Any) -> dict[str, str]:
    """The worst outcome of each kind of check."""
    order = ("agrees", "withheld", "unchecked", "differs")
    found: dict[str, str] = {}
    for check in verify(path, **options).checks:
        found[check.kind] = max(found.get(check.kind, "agrees"), check.outcome, key=order.index)
    return found
