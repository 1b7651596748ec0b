"""Charts by matplotlib, as ``plot`` returns them: lines with bands, and values with intervals."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from metrifair.errors import DataError
from metrifair.figures.intervals import Interval
from metrifair.report.charts import Line, LineChart
from metrifair.support.checks import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colors and dashes of groups, as on the pages.
GROUP_COLORS = ("#0072b2", "#d55e00", "#009e73", "#b3578c", "#b07700", "#2f8fc9", "#1b1b1f")
INK = "#1b1b1f"
SOFT = "#5a5a63"
ALARM_COLOR = "#a84300"
_DASHES: tuple[Any, ...] = ("-", (0, (7, 3)), (0, (2, 3)), (0, (9, 3, 2, 3)))
_BAND = 0.15  # opacity
_MAX_NAME = 60  # characters
_LINE_LENGTH = 60


@dataclass(frozen=True, eq=False)
class ChartDisplay:
    """A chart that ``plot`` has drawn, to restyle, to save or to place among others.

    Parameters
    ----------
    ax_ : matplotlib.axes.Axes
        The axes with the chart.

    Examples
    --------
    >>> from metrifair import audit
    >>> found = audit(None, [0.2, 0.8, 0.4, 0.9], sensitive_features=["a", "a", "b", "b"], random_state=0)
    >>> display = found.plot()
    >>> display.ax_.get_xlabel(), display.figure_ is display.ax_.figure
    ('Score', True)
    """

    ax_: Axes

    @property
    def figure_(self) -> Any:
        """The figure of the axes, whose ``savefig`` writes a file."""
        return self.ax_.figure


class IntervalRow(NamedTuple):
    """A value with its interval, in a chart of many."""

    name: str
    value: float
    interval: Interval | None


def chart_axes(ax: Axes | None) -> Axes:
    """The given axes, or those of a new figure of pyplot.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    DataError
        If ``ax`` is something else, such as an array of axes.

    Examples
    --------
    >>> chart_axes("left")
    Traceback (most recent call last):
    metrifair.errors.DataError: ax must be one matplotlib Axes, got str; pass ax=None for a new figure
    """
    require("matplotlib", extra="report", purpose="a chart")
    from matplotlib.axes import Axes  # noqa: PLC0415  (pages need none)

    if ax is None:
        import matplotlib.pyplot as plt  # noqa: PLC0415  (it selects a window system)

        _, ax = plt.subplots(layout="constrained")
    if not isinstance(ax, Axes):
        raise DataError(
            f"ax must be one matplotlib Axes, got {type(ax).__name__}; "
            "pass ax=None for a new figure"
        )
    return ax


def name_label(name: str) -> str:
    """A name of the user's in a chart, cut if it is very long.

    >>> len(name_label(100 * "a"))
    60
    """
    return _without_math(name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…")


def title_text(text: str) -> str:
    """A title in lines of a chart's width."""
    return _without_math(textwrap.fill(text, _LINE_LENGTH, max_lines=3, placeholder=" …"))


def _without_math(text: str) -> str:
    """The text as matplotlib shows it unchanged, without formulas between dollar signs."""
    return text.replace("$", r"\$")


def draw_lines(chart: LineChart, ax: Axes | None) -> ChartDisplay:
    """Lines on two axes, with their bands and a legend."""
    axes = chart_axes(ax)
    if chart.diagonal:
        axes.axline((0.0, 0.0), slope=1.0, color=SOFT, linewidth=1, linestyle=":")
    drawn = [_draw_line(axes, line) for line in chart.lines]
    axes.legend(drawn, [name_label(line.name) for line in chart.lines])
    axes.set(
        title=title_text(chart.title),
        xlabel=title_text(chart.x_title),
        ylabel=title_text(chart.y_title),
        xlim=(chart.x.low, chart.x.high),
        ylim=(chart.y.low, chart.y.high),
    )
    return ChartDisplay(axes)


def _draw_line(axes: Axes, line: Line) -> Any:
    color, dashes = _line_style(line.color)
    if line.band:
        places, low, high = zip(*line.band, strict=True)
        axes.fill_between(places, low, high, color=color, alpha=_BAND, linewidth=0)
    places, values = zip(*line.points, strict=True)
    marker = "o" if line.dots else None
    (drawn,) = axes.plot(places, values, color=color, linestyle=dashes, marker=marker, markersize=4)
    return drawn


def _line_style(number: int) -> tuple[str, Any]:
    """The color and the dashes of a group, which together are the same for no two of 28."""
    color = number % len(GROUP_COLORS)
    dash = color + number // len(GROUP_COLORS)
    return GROUP_COLORS[color], _DASHES[dash % len(_DASHES)]


def draw_intervals(
    rows: Sequence[IntervalRow], ax: Axes | None, *, title: str, x_title: str
) -> ChartDisplay:
    """Values with their intervals, one below the other, and a line at 0."""
    axes = chart_axes(ax)
    places = range(len(rows))
    known = [(place, row.interval) for place, row in enumerate(rows) if row.interval is not None]
    axes.axvline(0.0, color=SOFT, linewidth=1)
    axes.hlines(
        [place for place, _ in known],
        [interval.low for _, interval in known],
        [interval.high for _, interval in known],
        color=GROUP_COLORS[0],
        alpha=0.45,
        linewidth=4,
    )
    axes.plot([row.value for row in rows], places, "o", color=GROUP_COLORS[0])
    axes.set_yticks(places, [name_label(row.name) for row in rows])
    axes.set_ylim(max(1, len(rows)) - 0.5, -0.5)
    axes.set(title=title_text(title), xlabel=title_text(x_title))
    return ChartDisplay(axes)
