"""The chart of a frontier by matplotlib: models, Pareto front, limit and choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from metrifair.errors import DataError
from metrifair.report.display import ALARM_COLOR, INK, SOFT, ChartDisplay, chart_axes, title_text
from metrifair.report.frontier import front_line, frontier_axes
from metrifair.tradeoff.points import Point
from metrifair.wording.frontier import compared_note
from metrifair.wording.frontier_view import FrontierView
from metrifair.wording.terms import term_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARGIN = 0.02  # left of 0, where a constant predictor is


class _Look(NamedTuple):
    """How a kind of point is drawn."""

    color: str
    marker: str
    size: int
    filled: bool = False
    intervals: bool = False


_MODEL = "Model"
_CHOSEN = "Chosen model"
_LOOKS = {
    _MODEL: _Look(SOFT, "o", 25, filled=True),
    "Not significantly better than a constant": _Look("#9b9aa3", "o", 25),
    term_name("constant"): _Look(SOFT, "s", 55),
    "Without the penalty": _Look("#b4530a", "^", 70, filled=True, intervals=True),
    _CHOSEN: _Look("#4b3fbf", "D", 90, intervals=True),
}
"""Kinds of points, in the order in which they are drawn."""


def frontier_chart(view: FrontierView, ax: Axes | None = None) -> ChartDisplay:
    """The trade-off: all models, the Pareto front, the chosen model and its limit.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    DataError
        If no model can be drawn because all failed.

    Examples
    --------
    >>> display = frontier_chart(FrontierView([Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)]))
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['Pareto front', 'Model']
    """
    if not view.usable:
        which = f"all {len(view.points)} points"
        if len(view.points) == 1:
            which = "the only point"
        raise DataError(
            f"{which} failed, so there is nothing to draw; "
            "train again with a smaller learning rate or smaller strengths"
        )
    axes = chart_axes(ax)
    x, y = frontier_axes(view)
    front = list(zip(*front_line(view), strict=True))
    axes.plot(*front, color=INK, linewidth=1.5, label=term_name("pareto"))
    if view.limit is not None:
        axes.axvline(view.limit, color=ALARM_COLOR, linestyle=(0, (5, 4)), label="Limit")
    for kind, points in _points_by_kind(view).items():
        _draw_points(axes, view, kind, points)
    axes.set(
        title=_title(view),
        xlabel=title_text(view.label(view.gap_key)),
        ylabel=title_text(view.label(view.key)),
        xlim=(x.low - _MARGIN * x.high, x.high),
        ylim=(y.low, y.high),
    )
    axes.legend()
    return ChartDisplay(axes)


def _points_by_kind(view: FrontierView) -> dict[str, list[Point]]:
    """The points of each kind that occurs; each model has one kind."""
    unpenalized = None if view.change is None else view.change.reference
    if view.choice is not None and unpenalized is not None and unpenalized.job == view.choice.job:
        unpenalized = None
    apart = [point for point in (unpenalized, view.choice) if point is not None]
    marked = [point for point in view.usable if view.mark(point)]
    plain = [point for point in view.usable if not view.mark(point) and point not in apart]
    baseline = [] if view.baseline is None else [view.baseline]
    chosen = [] if view.choice is None else [view.choice]
    unfair = [] if unpenalized is None else [unpenalized]
    kinds = zip(_LOOKS, (plain, marked, baseline, unfair, chosen), strict=True)
    return {kind: points for kind, points in kinds if points}


def _draw_points(axes: Axes, view: FrontierView, kind: str, points: Sequence[Point]) -> None:
    """The points of one kind, some with their intervals as a cross."""
    look = _LOOKS[kind]
    axes.scatter(
        [view.gap(point) for point in points],
        [view.value(point) for point in points],
        s=look.size,
        marker=look.marker,
        facecolors=look.color if look.filled else "none",
        edgecolors=look.color,
        linewidths=1.5,
        label=kind,
        zorder=3,
    )
    if not look.intervals:
        return
    for point in points:
        across = point.intervals.get(view.gap_key)
        up = point.intervals.get(view.key)
        if across is not None:
            axes.hlines(view.value(point), across.low, across.high, color=look.color, linewidth=1)
        if up is not None:
            axes.vlines(view.gap(point), up.low, up.high, color=look.color, linewidth=1)


def _title(view: FrontierView) -> str:
    """The title, and below it which figures the other models have."""
    return "\n".join([title_text(view.title), title_text(compared_note(view))]).strip()
