"""The difference of two figures: its interval and its p-value.

A figure and its interval suffice. The half widths of two intervals combine as errors do, less what the figures have in
common.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple, TypeAlias

from metrifair.auditing.records import Conditions, Verdict
from metrifair.errors import DataError
from metrifair.figures.intervals import Interval
from metrifair.metrics.registry import METRICS, facts
from metrifair.problem.values import Value
from metrifair.support.special import normal_cdf, normal_quantile

DECISIONS, BY_GROUP = "decisions", "by_group"
"""What a comparison states in place of a criterion, for ratios of selection rates and for figures of one group."""

_ALIKE = 0.9  # a correlation of errors
# Share of the bias of a maximum, by which its interval exceeds its error: 0.24 to 0.26 in four simulated settings.
_SLACK = 0.24

Names: TypeAlias = tuple[str, str, str, tuple[str, ...], str]
"""What one audit calls a figure: attribute, criterion, set, groups and metric."""


class ComparedFigure(NamedTuple):
    """A figure of an audit that other audits may have as well."""

    attribute: str
    criterion: str
    within: str
    groups: tuple[str, ...]
    metric: str
    value: float
    interval: Interval | None
    larger_is_better: bool = False
    group_values: tuple[Value, ...] = ()
    conditions: Conditions = ()
    sizes: tuple[int, int] = (0, 0)  # rows of both groups of a distance

    @property
    def names(self) -> Names:
        """What its own audit calls it."""
        return self.attribute, self.criterion, self.within, self.groups, self.metric


class FigureChange(NamedTuple):
    """The difference between two figures; without intervals there is no test."""

    difference: float
    interval: Interval | None = None
    p_value: float | None = None
    joint_interval: Interval | None = None
    verdict: Verdict = "not_tested"  # by whether the joint interval excludes 0


def change(
    before: ComparedFigure,
    after: ComparedFigure,
    correlation: float | None,
    confidence: float,
    joint_level: float | None = None,
) -> FigureChange:
    """The difference of two figures; ``correlation`` is that of their errors, None: any.

    ``joint_level`` is the error probability of the joint interval, by which the verdict is made; by default that of the
    interval.

    Errors below and above differ, so those of the difference combine separately (Zou and Donner's MOVER). Where an
    interval begins at 0, the value of the sample may be noise alone, on one side only, and errors are added linearly.
    """
    difference = after.value - before.value
    if before.interval is None or after.interval is None:
        return FigureChange(difference)
    sign = -1.0 if before.larger_is_better else 1.0  # 1 less the figure is one of which less is better
    old, new = _centered(before), _centered(after)
    near_zero = old.near_zero or new.near_zero
    shared = -1.0 if correlation is None else min(0.0, correlation) if near_zero else correlation
    if shared > _ALIKE:
        # Errors so similar cancel, with their bias and skewness; the centers of two bootstrap intervals differ by
        # noise.
        halves = [(one.below + one.above) / 2 for one in (old, new)]
        values = sign * before.value, sign * after.value
        old, new = (_Centered(value, half, half, False) for value, half in zip(values, halves, strict=True))
    z = normal_quantile((1 + confidence) / 2)
    below = _combined(new.below, old.above, -1.0 if new.near_zero else shared)
    above = _combined(new.above, old.below, -1.0 if old.near_zero else shared)
    center = new.value - old.value
    half = below if center > 0 else above
    p_value = 0.0 if half == 0 else float(2 * normal_cdf(-z * abs(center) / half))
    if center * sign * difference <= 0:  # the center and the difference disagree on the direction
        p_value = 1.0

    def interval(wider: float) -> Interval:
        ends = sorted((sign * (center - wider * below), sign * (center + wider * above)))
        return Interval(min(ends[0], difference) + 0.0, max(ends[1], difference) + 0.0)  # a zero has no sign

    joint = interval(1.0 if joint_level is None else float(-normal_quantile(joint_level / 2) / z))
    excludes_0 = joint.low > 0 or joint.high < 0
    verdict: Verdict = "not_distinguishable" if not excludes_0 else "worse" if sign * difference > 0 else "better"
    return FigureChange(difference, interval(1.0), p_value, joint, verdict)


class _Centered(NamedTuple):
    """The best estimate of a figure of which less is better, and its errors below and above."""

    value: float
    below: float
    above: float
    near_zero: bool


def _centered(figure: ComparedFigure) -> _Centered:
    """The center of an interval, which has no bias as the value of a sample has; of squares, by their roots."""
    if figure.interval is None:
        raise DataError(f"the {figure.metric} has no interval")
    value, low, high = figure.value, figure.interval.low, figure.interval.high
    if figure.larger_is_better:
        value, low, high = 1 - value, 1 - high, 1 - low
    if low <= 0 or figure.metric not in METRICS:
        return _Centered(value, value - low, high - value, low <= 0)
    squared = facts(figure.metric).squared
    center = ((sqrt(low) + sqrt(high)) / 2) ** 2 if squared else (low + high) / 2
    half = (high - low) / 2
    if facts(figure.metric).is_maximum:  # the size of its bias is not known, and cancels in a difference
        half -= _SLACK * max(0.0, value - center)
    return _Centered(center, half, half, False)


def _combined(first: float, second: float, correlation: float) -> float:
    return sqrt(max(0.0, first**2 + second**2 - 2 * correlation * first * second))
