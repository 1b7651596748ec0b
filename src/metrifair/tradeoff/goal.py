"""What is asked of a choice: a limit, and conditions of the models."""

from __future__ import annotations

from dataclasses import dataclass

from metrifair.errors import DataError, Remedy
from metrifair.figures.certificates import check_confidence
from metrifair.support.checks import check_number, check_switches


@dataclass(frozen=True)
class Goal:
    """The goal of a choice: exactly one of ``max_unfairness`` and ``min_accuracy``.

    ``needs_group``: only models that need the group at prediction, or only those that do not; None:
    either. ``best_effort``: the least unfair model, if none meets the goal.

    >>> Goal(max_unfairness=0.2, needs_group=False).max_unfairness
    0.2
    """

    max_unfairness: float | None = None
    min_accuracy: float | None = None
    needs_group: bool | None = None
    confidence: float | None = None
    best_effort: bool = False

    def __post_init__(self) -> None:
        limits = (self.max_unfairness, self.min_accuracy)
        if limits == (None, None):
            raise DataError(
                "or min_accuracy must be given",
                argument="max_unfairness",
                received=None,
                remedy=Remedy("max_unfairness", detail=", the largest gap that you accept"),
            )
        if None not in limits:
            raise DataError(
                "are alternatives",
                argument=("max_unfairness", "min_accuracy"),
                received=limits,
                remedy=Remedy("min_accuracy", leave_out=True),
            )
        if self.max_unfairness is not None:
            check_number("max_unfairness", self.max_unfairness, low=0.0, high=1.0)
        if self.min_accuracy is not None:
            check_number("min_accuracy", self.min_accuracy, high=1.0)
        if self.needs_group is not None:
            check_switches(needs_group=self.needs_group)
        check_switches(best_effort=self.best_effort)
        if self.confidence is None:
            return
        check_confidence(self.confidence)
        if self.max_unfairness is None:
            raise DataError("needs max_unfairness", argument="confidence")
