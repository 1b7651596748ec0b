"""Result records: one trained model as a point (unfairness, accuracy), the Pareto part of many, and their area."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Interval:
    """Bounds between which a value lies with the stated confidence."""

    low: float
    high: float


@dataclass(frozen=True)
class Point:
    """What one model reaches on one part of the data.

    ``accuracy`` is the share of right decisions, or R2; ``unfairness`` the Kolmogorov distance of the scores, and
    ``decision_unfairness`` that of the decisions (None for regression), each the worst over all comparisons.
    """

    strength: float
    seed: int
    accuracy: float
    unfairness: float
    decision_unfairness: float | None = None
    more: Mapping[str, float] = field(default_factory=dict)  # other figures by name: auc, log_loss, four_fifths ...
    intervals: Mapping[str, Interval] = field(default_factory=dict)  # by the name of the figure
    failed: bool = False  # training diverged: the figures mean nothing

    def gap(self, on: str = "scores") -> float:
        """Unfairness of the scores, or of the decisions."""
        if on == "scores":
            return self.unfairness
        return self.unfairness if self.decision_unfairness is None else self.decision_unfairness


@dataclass(frozen=True)
class Curves:
    """Score distributions of the groups under one model: densities and distribution functions on one grid."""

    grid: Sequence[float]
    density: Mapping[str, Sequence[float]]  # by group
    cumulative: Mapping[str, Sequence[float]]


def pareto(points: Iterable[Point], *, on: str = "scores") -> tuple[Point, ...]:
    """The points that no other beats: none is at least as good in both figures and better in one.

    One of equal points is kept; they come in ascending order of unfairness, and so of accuracy.

    >>> some = [Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1), Point(2, 0, 0.7, 0.2)]
    >>> [point.strength for point in pareto(some)]
    [1, 0]
    """
    best: list[Point] = []
    usable = (point for point in points if not point.failed)
    for point in sorted(usable, key=lambda point: (point.gap(on), -point.accuracy)):
        if not best or point.accuracy > best[-1].accuracy:
            best.append(point)
    return tuple(best)


def area(points: Iterable[Point], *, on: str = "scores") -> float:
    """Share of the unit box that the points dominate: the integral of the best accuracy at unfairness at most t.

    An exact step integral, 0 where no point qualifies; a negative R2 counts as 0.

    >>> area([Point(0, 0, 0.9, 0.5), Point(1, 0, 0.5, 0.0)])      # 0.5 x 0.5 + 0.5 x 0.9
    0.7
    """
    steps = pareto(points, on=on)
    ends = [*(min(point.gap(on), 1.0) for point in steps[1:]), 1.0]
    return (
        sum(
            max(0.0, min(point.accuracy, 1.0)) * max(0.0, end - min(point.gap(on), 1.0))
            for point, end in zip(steps, ends, strict=True)
        )
        if steps
        else 0.0
    )
