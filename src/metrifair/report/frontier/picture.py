"""The chart of a frontier for notebooks, PNG and SVG; needs the extra ``report``."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metrifair.checks import require
from metrifair.errors import DataError
from metrifair.files import write_file
from metrifair.report.frontier.view import FrontierView, figure_lines, front_line, frontier_axes
from metrifair.results import Point

if TYPE_CHECKING:
    from altair import LayerChart, TopLevelMixin

_ACCENT = "#4b3fbf"


def frontier_chart(view: FrontierView) -> LayerChart:
    """The trade-off: all models, the Pareto line, the chosen model; every figure of a model on hover.

    Raises
    ------
    MissingExtra
        If altair is not installed.
    DataError
        If no model can be drawn because all failed.

    Examples
    --------
    >>> chart = frontier_chart(FrontierView([Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)]))
    >>> len(chart.layer)                                           # points and line; no chosen model
    2
    """
    alt = _altair()
    if not view.usable:
        raise DataError(
            f"all {len(view.points)} points failed, so there is nothing to draw; "
            "train again with a smaller learning rate or smaller strengths"
        )
    x_axis, y_axis = frontier_axes(view)
    x = alt.X("x:Q", title=view.label(view.gap_key), scale=alt.Scale(domain=[x_axis.low, x_axis.high], nice=False))
    y = alt.Y("y:Q", title=view.label("accuracy"), scale=alt.Scale(domain=[y_axis.low, y_axis.high], nice=False))
    line = [{"x": a, "y": b, "order": at} for at, (a, b) in enumerate(front_line(view))]
    layers = [
        alt.Chart(alt.Data(values=line)).mark_line(color="#222", strokeWidth=1.5).encode(x=x, y=y, order="order:Q"),
        _dots(view, view.usable).mark_circle(size=60, opacity=0.6, color="#555").encode(x=x, y=y),
    ]
    if view.choice is not None:
        layers.append(
            _dots(view, [view.choice])
            .mark_point(shape="diamond", size=260, filled=False, strokeWidth=2.5, color=_ACCENT)
            .encode(x=x, y=y)
        )
    chart: LayerChart = alt.layer(*layers).properties(title=view.title, width=520, height=360)
    return chart


def save_picture(chart: TopLevelMixin, path: str | os.PathLike[str]) -> Path:
    """Write a chart as .png or .svg, without a browser, and return the path.

    Raises
    ------
    MissingExtra
        If vl-convert-python is not installed.
    DataError
        If the path ends otherwise, or cannot be written.

    Examples
    --------
    >>> save_picture(None, "front.gif")
    Traceback (most recent call last):
    metrifair.errors.DataError: path must end in .png or .svg, got 'front.gif'; for a page use to_html
    """
    kind = Path(path).suffix.lower()
    if kind not in (".png", ".svg"):
        raise DataError(f"path must end in .png or .svg, got {os.fspath(path)!r}; for a page use to_html")
    require("vl_convert", extra="report", purpose="a picture of a chart")
    if kind == ".png":
        picture = io.BytesIO()
        chart.save(picture, format="png", scale_factor=2)
        return write_file(path, picture.getvalue())
    text = io.StringIO()
    chart.save(text, format="svg")
    return write_file(path, text.getvalue().encode())


def _altair() -> Any:
    # Any: altair's own types double the time mypy takes, and what is built here is checked by altair's schema.
    return require("altair", extra="report", purpose="a chart")


def _dots(view: FrontierView, points: Sequence[Point]) -> Any:
    """Chart of points with all their figures as tooltips.

    Fields are numbered, since names that come from users may hold signs that mean something in a field's name.
    """
    alt = _altair()
    records = [
        {"x": point.gap(view.on), "y": point.accuracy}
        | {f"text{number}": text for number, (_, text) in enumerate(figure_lines(view, point))}
        for point in points
    ]
    tips = [
        alt.Tooltip(f"text{number}:N", title=name) for number, (name, _) in enumerate(figure_lines(view, points[0]))
    ]
    return alt.Chart(alt.Data(values=records)).encode(tooltip=tips)
