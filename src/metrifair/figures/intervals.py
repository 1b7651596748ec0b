"""Intervals, and the number of rows that they need."""

from __future__ import annotations

from dataclasses import dataclass

FEW = 30  # samples: the default minimum group size
FEWEST = 5  # samples, or the effective number of weighted ones: below, there is no interval
FEWEST_DEPENDENT = 100  # rows: of fewer, intervals of a dependence cover it less often than stated


@dataclass(frozen=True)
class Interval:
    """Bounds between which a value lies with the stated confidence."""

    low: float
    high: float
