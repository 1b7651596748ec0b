"""What tests read inside of a frontier: here alone, so that its private parts may move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metrifair import Frontier
from tests.seams.tradeoff import Outcome


def outcomes_of(front: Frontier) -> Sequence[Outcome]:
    """All configurations that were trained, with their figures and curves."""
    return front._trade_off.outcomes


def source_of(front: Frontier) -> Any:
    """The rows of a frontier that is in memory, and the scores of each configuration."""
    source = front._trade_off.source
    assert source is not None
    return source
