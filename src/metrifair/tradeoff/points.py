"""The figures of each model of a trade-off, and the Pareto front of these models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

from metrifair.figures.curves import Curves
from metrifair.figures.intervals import Interval
from metrifair.figures.utility import Mark

ROUNDED_ONE = 1 + 1e-6
"""Figures of at most 1 may be larger by rounding, but not by more than this."""


class FrontierNote(NamedTuple):
    """A note on a frontier; ``metrifair.wording.frontier`` has one template for each kind."""

    kind: str
    facts: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Point:
    """The figures of one model on one part of the data.

    ``accuracy`` is the share of right decisions, or R2; ``unfairness`` the Kolmogorov distance of
    the scores, and ``decision_unfairness`` that of the decisions (None for regression), each the
    worst over all comparisons.
    """

    strength: float
    seed: int
    accuracy: float
    unfairness: float
    decision_unfairness: float | None = None
    # other figures by name: auc, log_loss, four_fifths ...
    more: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, Interval] = field(default_factory=dict)  # by the name of the figure
    failed: bool = False  # training diverged: the figures are invalid
    # standard errors by the name of the figure
    errors: Mapping[str, float] = field(default_factory=dict)
    # by utility, of a model that a constant could replace
    marks: Mapping[str, Mark] = field(default_factory=dict)
    overfit: bool = False  # unfairness is significantly smaller on the training rows
    is_noise: bool = (
        False  # the unfairness is not distinguishable from 0: "below" its interval's end
    )
    family: str = ""  # of models, where a frontier has several
    needs_group: bool = False  # whether the model needs the group to predict

    @property
    def place(self) -> float | tuple[str, float]:
        """The key that models of all seeds share: the strength, with the family if there are
        several.
        """
        if self.family:
            return (self.family, self.strength)
        return self.strength

    @property
    def job(self) -> Job:
        """The job that trains its model."""
        return Job(self.strength, self.seed, self.family)

    @property
    def figures(self) -> dict[str, float | None]:
        """All figures by their names.

        >>> Point(0, 0, 0.9, 0.4, more={"auc": 0.95}).figures
        {'accuracy': 0.9, 'unfairness': 0.4, 'decision_unfairness': None, 'auc': 0.95}
        """
        return {
            "accuracy": self.accuracy,
            "unfairness": self.unfairness,
            "decision_unfairness": self.decision_unfairness,
            **self.more,
        }

    def figure(self, name: str) -> float | None:
        """A figure by its name; None if there is none. Accuracy and R2 are one figure.

        >>> Point(0, 0, 0.9, 0.4, more={"auc": 0.95}).figure("auc")
        0.95
        """
        value = self.figures.get("accuracy" if name == "r2" else name)
        if value is not None and isfinite(value):
            return value
        return None

    def check(self) -> None:
        """Raise a ValueError if a figure lies outside of its range, which only a damaged file
        has.
        """
        distances = self.unfairness, self.decision_unfairness or 0.0
        if not self.failed and not (
            all(0 <= distance <= ROUNDED_ONE for distance in distances)
            and self.accuracy <= ROUNDED_ONE
        ):
            raise ValueError("an unfairness or accuracy is outside of its range")

    def gap(self, unfairness_of: str = "scores") -> float:
        """Unfairness of the scores, or of the decisions."""
        if unfairness_of == "scores":
            return self.unfairness
        if self.decision_unfairness is None:
            return self.unfairness
        return self.decision_unfairness


@dataclass(frozen=True)
class Change:
    """Figures of the chosen model less those without the penalty, on the same rows."""

    reference: Point  # without the penalty
    utility: float
    unfairness: float
    intervals: Mapping[str, Interval] = field(default_factory=dict)  # by "utility" and "unfairness"


class Job(NamedTuple):
    """One model to train."""

    value: float
    seed: int
    family: str = ""

    @property
    def name(self) -> str:
        """Its key in a ledger; each family is its own run there."""
        return f"{self.value!r} seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Outcome:
    """One configuration: its figures, and the model of all rows once it has been trained."""

    job: Job
    point: Point
    curves: Curves | None = None
    model: Any = None
    # of the model, once it has been trained: whether it is like those of the folds, and its
    # figures on the test rows if there are any
    resembles_folds: bool = False
    tested: Point | None = None


def _accuracy(point: Point) -> float:
    return point.accuracy


def pareto(
    points: Iterable[Point],
    *,
    unfairness_of: str = "scores",
    quality: Callable[[Point], float] = _accuracy,
) -> tuple[Point, ...]:
    """The points that no other beats: none is at least as good in both figures and better in one.

    Equal points appear once, all in ascending order of unfairness, and so of accuracy (or another
    ``quality``).

    >>> some = [Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1), Point(2, 0, 0.7, 0.2)]
    >>> [point.strength for point in pareto(some)]
    [1, 0]
    """
    best: list[Point] = []
    usable = (point for point in points if not point.failed)
    for point in sorted(usable, key=lambda point: (point.gap(unfairness_of), -quality(point))):
        if not best or quality(point) > quality(best[-1]):
            best.append(point)
    return tuple(best)


def area(
    points: Iterable[Point],
    *,
    unfairness_of: str = "scores",
    quality: Callable[[Point], float] = _accuracy,
) -> float:
    """Share of the unit box that the points dominate: the integral of the best accuracy at
    unfairness at most t.

    An exact step integral, 0 if no point qualifies; a negative R2 counts as 0.

    >>> area([Point(0, 0, 0.9, 0.5), Point(1, 0, 0.5, 0.0)])      # 0.5 x 0.5 + 0.5 x 0.9
    0.7
    """
    steps = pareto(points, unfairness_of=unfairness_of, quality=quality)
    bounds = [*(min(point.gap(unfairness_of), 1.0) for point in steps), 1.0]
    widths = (max(0.0, end - start) for start, end in pairwise(bounds))
    return sum(
        (
            max(0.0, min(quality(point), 1.0)) * width
            for point, width in zip(steps, widths, strict=True)
        ),
        0.0,
    )
