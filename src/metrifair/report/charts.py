"""Charts of a view for notebooks, PNG and SVG; needs the extra ``report``."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metrifair.checks import require
from metrifair.errors import DataError
from metrifair.report.distributions import check_curves, widest_gap
from metrifair.report.saving import save
from metrifair.report.scales import figure_text, strength_texts
from metrifair.report.view import FrontierView, figure_lines, front_line, frontier_axes
from metrifair.results import Point

if TYPE_CHECKING:
    from altair import HConcatChart, LayerChart, TopLevelMixin

# Okabe and Ito's colours, told apart in all common kinds of colour blindness; the page uses the same.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHES = ([1, 0], [7, 3], [2, 3], [9, 3, 2, 3])
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


def distribution_chart(view: FrontierView, strength: float) -> HConcatChart:
    """Densities and distribution functions of the groups at one strength, the largest gap marked.

    Raises
    ------
    MissingExtra
        If altair is not installed.
    DataError
        If the view has no curves for this strength.

    Examples
    --------
    >>> from metrifair.results import Curves
    >>> curves = Curves([0, 1], {"a": [1, 1], "b": [1, 1]}, {"a": [0, 1], "b": [0.5, 1]})
    >>> view = FrontierView([Point(0, 0, 0.9, 0.4)], curves={0: curves}, groups=("a", "b"))
    >>> len(distribution_chart(view, 0).hconcat)
    2
    """
    alt = _altair()
    check_curves(view.curves)
    if strength not in view.curves:
        known = ", ".join(strength_texts(sorted(view.curves))) or "none"
        raise DataError(f"strength must be one that has score distributions ({known}), got {strength!r}")
    names = list(view.group_names)
    colour = alt.Color(
        "group:N", title=None, scale=alt.Scale(domain=names, range=[_COLOURS[at % 7] for at in range(len(names))])
    )
    dashes = [_DASHES[(at % 7 + at // 7) % 4] for at in range(len(names))]
    dash = alt.StrokeDash("group:N", title=None, scale=alt.Scale(domain=names, range=dashes))
    x = alt.X("score:Q", title="score")
    records = _curve_records(view, strength)
    tips = [alt.Tooltip("group:N"), alt.Tooltip("score:Q", format=".3f")]
    lines = alt.Chart(alt.Data(values=records)).mark_line().encode(x=x, color=colour, strokeDash=dash)
    density = lines.encode(
        y=alt.Y("density:Q", title="density"), tooltip=[*tips, alt.Tooltip("density:Q", format=".3f")]
    )
    share = alt.Y("share:Q", title="share below", axis=alt.Axis(format="%"))
    below = lines.encode(y=share, tooltip=[*tips, alt.Tooltip("share:Q", format=".1%")])
    sides = [
        density.properties(width=330, height=240),
        (below + _gap_mark(view, strength)).properties(width=330, height=240),
    ]
    heading = f"{view.title}: {view.label('strength')} {strength_texts([strength])[0]}"
    chart: HConcatChart = alt.hconcat(*sides, title=heading)
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
        return save(path, picture.getvalue())
    text = io.StringIO()
    chart.save(text, format="svg")
    return save(path, text.getvalue().encode())


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


def _curve_records(view: FrontierView, strength: float) -> list[dict[str, float | str | None]]:
    curves = view.curves[strength]
    return [
        {
            "group": name,
            "score": float(score),
            "density": float(curves.density[name][at]) if name in curves.density else None,
            "share": float(curves.cumulative[name][at]) if name in curves.cumulative else None,
        }
        for name in view.group_names
        for at, score in enumerate(curves.grid)
    ]


def _gap_mark(view: FrontierView, strength: float) -> Any:
    """The largest gap as a vertical rule with its size beside it; an empty layer where there is none."""
    alt = _altair()
    gap = widest_gap(view.curves[strength])
    records = (
        []
        if gap is None
        else [
            {"score": float(gap.score), "low": float(gap.low), "high": float(gap.high), "text": figure_text(gap.size)}
        ]
    )
    data = alt.Chart(alt.Data(values=records)).encode(x="score:Q", y="low:Q", y2="high:Q")
    words = data.mark_text(align="left", dx=6, fontWeight="bold").encode(y="high:Q", text="text:N")
    return data.mark_rule(strokeWidth=2) + words
