"""Intervals, and how many rows it takes to have one."""

from __future__ import annotations

from dataclasses import dataclass

FEW = 30  # samples: below, unless told otherwise, no figure says much about a group
FEWEST = 5  # samples, or as many as weighted ones are worth: below, there is no interval
FEWEST_DEPENDENT = 100  # rows: of fewer, intervals of a dependence cover it less often than they say


@dataclass(frozen=True)
class Interval:
    """Bounds between which a value lies with the stated confidence."""

    low: float
    high: float

    def including(self, value: float) -> Interval:
        """The shortest interval with these bounds and the value.

        >>> Interval(0.1, 0.2).including(0.3)
        Interval(low=0.1, high=0.3)
        """
        return Interval(min(self.low, value), max(self.high, value))
