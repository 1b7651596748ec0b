"""The report on a frontier: one HTML file, whose script only places numbers and texts; and a chart,
PNG and SVG.

The chart, for notebooks and pictures, needs the extra ``report``; the page needs a browser.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metrifair.errors import DataError
from metrifair.figures.utility import UTILITIES
from metrifair.report.charts import (
    Axis,
    axis,
    axis_json,
    check_curve,
    curves_json,
    score_axis,
    short,
    thin_curves,
    widest_gap,
)
from metrifair.report.html import (
    DRAWING,
    Json,
    Markup,
    Section,
    document,
    element,
    item_list,
    joined,
    resource,
)
from metrifair.support.checks import require
from metrifair.support.files import write_file
from metrifair.tradeoff.points import Point
from metrifair.wording.frontier import (
    UNSCRIPTED,
    area_sentence,
    compared_note,
    constant_sentence,
    constant_text,
    curve_notes,
    glossary,
    headline,
    highlights,
    overfit_sentence,
    remarks,
    row_note,
    row_notes,
)
from metrifair.wording.frontier_view import (
    FrontierRow,
    FrontierView,
    figure_lines,
    figure_texts,
)
from metrifair.wording.numbers import figure_text, noun

if TYPE_CHECKING:
    from altair import LayerChart, TopLevelMixin

_ACCENT = "#4b3fbf"
_SCRIPTS = ("frontier.js", "panels.js")
_MOST_SCORES, _FEWEST_SCORES = 240, 24  # at which a curve is drawn
_ROUNDING = 1e-6


def frontier_html(view: FrontierView, *, most_numbers: int = 110_000) -> str:
    r"""The report on a frontier: a page with a slider over the strength. It needs nothing but a
    browser.

    Examples
    --------
    >>> page = frontier_html(FrontierView([Point(0, 0, 0.9, 0.4)], title="<script>alert(1)</script>"))
    >>> "alert(1)" in page, "<script>alert(1)" in page
    (True, False)
    """
    return document(
        title=view.title,
        about="accuracy and fairness",
        head=frontier_head(view),
        unscripted=UNSCRIPTED,
        sections=[frontier_section(view, most_numbers=most_numbers)],
        words=glossary(view),
        provenance=view.provenance,
    )


def frontier_head(view: FrontierView) -> Markup:
    """The summary and the notes."""
    return joined(
        element("p", " ".join(headline(view)), id="summary", class_="summary"),
        item_list([*remarks(view), *view.notes], id="notes", class_="notes"),
    )


def frontier_section(view: FrontierView, *, most_numbers: int = 110_000) -> Section:
    """The drawing of a frontier with its slider; ``most_numbers`` bounds the curves, and so the
    size of the page.
    """
    content = page_content(view, most_numbers=most_numbers)
    return Section(Markup(resource("frontier.html")), "data", content, _SCRIPTS)


def widget_script() -> str:
    """The same drawing, slider and style as a module for notebooks; values come from the
    widget's model.
    """
    scripts = "".join(resource(name) for name in (*DRAWING, *_SCRIPTS))
    parts = f"const STYLE = {json.dumps(resource('page.css'))};\nconst BODY = {json.dumps(resource('frontier.html'))};\n"  # noqa: E501
    return f"{parts}function placeFrontier(page) {{\n{scripts}}}\n{resource('widget.js')}"


def page_content(view: FrontierView, *, most_numbers: int = 110_000) -> dict[str, Json]:
    """Everything the page shows; the curves in at most about so many numbers, of 6 to 7 characters
    each.

    >>> content = page_content(FrontierView([Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)], title="Loans"))
    >>> content["title"], content["start"], content["names"]["gap"]
    ('Loans', 0, 'Unfairness')
    """
    for strength, curves in view.curves.items():
        check_curve(curves, f"at strength {strength!r}")
    at = {row.place: number for number, row in enumerate(view.rows)}
    # The slider starts at the chosen model, else at the first that can be shown.
    start = None if view.choice is None else at.get(view.choice.place)
    if start is None:
        start = next((number for number, row in enumerate(view.rows) if row.usable), 0)
    return {
        "title": view.title,
        "highlights": [
            {
                "heading": highlight.heading,
                "sentence": highlight.sentence,
                "row": at.get(highlight.point.place),
                "figures": _headline(view, highlight.point),
            }
            for highlight in highlights(view)
        ],
        "names": {
            "strength": view.label("strength"),
            "utility": view.label(view.key),
            "gap": view.label(view.gap_key),
        },
        "start": start,
        "compared": compared_note(view),
        "rows": [_row(view, row) for row in view.rows],
        "frontier": _frontier(view, at),
        "table": _table(view),
        "groups": list(view.group_names),
        "distributions": _distributions(view, most_numbers),
    }


def _headline(view: FrontierView, point: Point) -> Json:
    """The three figures a glance should give: utility, unfairness, strength."""
    strength, *_ = figure_lines(view, point)
    return [
        [view.label(view.key), view.text(point, view.key)],
        [view.label(view.gap_key), view.text(point, view.gap_key)],
        list(strength),
    ]


def _row(view: FrontierView, row: FrontierRow) -> Json:
    reference = next((candidate for candidate in view.rows if candidate.usable), row)
    brief = ", ".join(f"{view.label(key)} {row.figures[key].text}" for key in view.keys[:3])
    brief += f"; {row.mark}" if row.mark else ""
    x, y = row.figures[view.gap_key], row.figures[view.key]
    return {
        "text": row.text,
        "parameter": view.parameter(row),
        "stop": row.family
        if len(view.parameters) > 1
        else row.text.removeprefix(f"{row.family}, "),
        "needsGroup": row.needs_group,
        "usable": row.usable,
        "state": row.state,
        "brief": brief if row.usable else "training failed",
        "spoken": f"{view.label('strength')} {row.text}: "
        f"{brief if row.usable else 'training failed'}",
        "against": "" if row is reference else f"{noun(view.label('strength'))} {reference.text}",
        "x": short(x.value),
        "y": short(y.value),
        "spread": [
            None if figure.ends is None else [short(figure.ends.low), short(figure.ends.high)]
            for figure in (x, y)
        ],
        "figures": [_figure(view, key, row, reference) for key in view.keys],
        "mark": row.mark,
        "overfit": overfit_sentence(view, row),
    }


def _figure(view: FrontierView, key: str, row: FrontierRow, reference: FrontierRow) -> Json:
    """One figure of a row beside that of the reference row; better or worse, if its direction
    is known.
    """
    figure, base = row.figures[key], reference.figures[key]
    utility = view.utility if key == view.key else UTILITIES.get(key)
    less = key in ("unfairness", "decision_unfairness") or (
        utility is not None and not utility.larger_is_better
    )
    direction = -1 if less else 1 if utility is not None else 0
    change = None if figure.value is None or base.value is None else figure.value - base.value
    gain = (change or 0.0) * direction
    seeds = (
        f" over {len(row.points) - row.failed} seeds"
        if figure.bounds_text and figure.over_seeds
        else ""
    )
    return {
        "name": view.label(key),
        "text": figure.text,
        "bounds": f"{figure.bounds_text}{seeds}",
        "change": "" if change is None or row is reference else figure_text(change, signed=True),
        "trend": "better" if gain > 0.0005 else "worse" if gain < -0.0005 else "",
    }


def _frontier(view: FrontierView, at: Mapping[float | tuple[str, float], int]) -> Json:
    x, y = frontier_axes(view)

    def place(point: Point | None) -> dict[str, Json] | None:
        return (
            None if point is None else {"x": short(view.gap(point)), "y": short(view.value(point))}
        )

    constant = place(view.baseline)
    return {
        "x": axis_json(x),
        "y": axis_json(y),
        "line": [[short(a), short(b)] for a, b in front_line(view)],
        "lineWithout": [
            [short(a), short(b)] for a, b in front_line(view, view.front_without_groups)
        ],
        "noise": short(view.noise),
        "limit": short(view.limit),
        "area": area_sentence(view),
        "chosen": place(view.choice),
        "constant": constant
        and {**constant, "lines": _constant_lines(view), "text": constant_sentence(view)},
        "points": [
            {
                "x": short(view.gap(point)),
                "y": short(view.value(point)),
                "row": at[point.place],
                "front": point in view.front,
                "frontWithout": point in view.front_without_groups,
                "mark": view.mark(point),
                "lines": [list(line) for line in figure_lines(view, point)],
            }
            for point in sorted(view.usable, key=lambda point: (at[point.place], point.seed))
        ],
    }


def _constant_lines(view: FrontierView) -> Json:
    """The constant predictor's figures; it has no strength and no seed."""
    if view.baseline is None:
        return []
    texts = figure_texts(view, replace(view.baseline, intervals={}))
    return [
        ["Constant predictor", constant_text(view.constant_value)],
        *([view.label(key), text] for key, text in texts.items()),
    ]


def _table(view: FrontierView) -> Json:
    several = any(len(row.points) > 1 for row in view.rows)
    failures = any(row.failed for row in view.rows)
    by_group = any(row.needs_group for row in view.rows)
    names = [
        view.label("strength"),
        *([view.label("needs_group")] if by_group else []),
        *(view.label(key) for key in view.keys),
    ]
    names += [*(["Models"] if several else []), "Pareto", *(["Training"] if failures else [])]
    cells = [
        [
            _cell(
                f"{row.text} *" if row_note(row) else row.text,
                number if view.parameters else row.strength,
            ),
            *([_cell("needed" if row.needs_group else "", row.needs_group)] if by_group else []),
            *(_cell(row.figures[key].text, row.figures[key].value) for key in view.keys),
            *(
                [_cell(str(len(row.points) - row.failed), len(row.points) - row.failed)]
                if several
                else []
            ),
            _cell("yes" if row.on_front else "", row.on_front),
            *([_cell(row.state, row.failed)] if failures else []),
        ]
        for number, row in enumerate(view.rows)
    ]
    return {"columns": names, "rows": cells, "notes": list(row_notes(view, view.rows))}


def _cell(text: str, value: float | None) -> Json:
    return {"text": text, "value": None if value is None else float(value)}


def _distributions(view: FrontierView, most_numbers: int) -> Json:
    """Curves by row of the table. Rows can share a grid, so grids are numbered and kept once."""
    curves_by_row = [view.curves.get(row.place) for row in view.rows]
    scores = [
        score for curves in curves_by_row if curves for score in (curves.grid[0], curves.grid[-1])
    ]
    if not scores:
        return None
    count = sum(1 + 2 * len(view.group_names) for curves in curves_by_row if curves)
    most = max(_FEWEST_SCORES, min(_MOST_SCORES, most_numbers // max(count, 1)))
    grids: dict[tuple[float, ...], int] = {}
    rows: list[Json] = []
    for curves in curves_by_row:
        drawn = None if curves is None else curves_json(thin_curves(curves, most), view.group_names)
        rows.append(drawn and {**drawn, "grid": grids.setdefault(tuple(drawn["grid"]), len(grids))})
    gaps = [None if curves is None else widest_gap(curves) for curves in curves_by_row]
    differs = any(
        gap is not None and abs(gap.size - row.points[0].unfairness) > _ROUNDING
        for gap, row in zip(gaps, view.rows, strict=True)
    )
    return {
        "x": axis_json(score_axis(scores)),
        "grids": [list(grid) for grid in grids],
        "rows": rows,
        "note": "".join(f" {sentence}" for sentence in curve_notes(view, gap_differs=differs)),
    }


def front_line(
    view: FrontierView, front: Sequence[Point] | None = None
) -> tuple[tuple[float, float], ...]:
    """Corners of the Pareto step line: the best utility that unfairness at most x allows, to the
    end of the axis.

    Of all models, or of a ``front`` among some of them.

    >>> view = FrontierView([Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)])
    >>> front_line(view)[:3]
    ((0.1, 0.8), (0.4, 0.8), (0.4, 0.9))
    """
    corners: list[tuple[float, float]] = []
    for point in view.front if front is None else front:
        if corners:
            corners.append((view.gap(point), corners[-1][1]))
        corners.append((view.gap(point), view.value(point)))
    return (*corners, (frontier_axes(view)[0].high, corners[-1][1])) if corners else ()


def frontier_axes(view: FrontierView) -> tuple[Axis, Axis]:
    """Axes of unfairness, from 0, and of the utility, of which up is better: a loss falls along its
    axis.

    They include the constant predictor, the limit and all error bars. If the utility's own error is known, its
    axis is no shorter than a 95 % interval, so that differences which are noise do not fill it.

    >>> x, y = frontier_axes(FrontierView([Point(0, 0, 0.9, 0.4), Point(1, 0, 0.8, 0.1)]))
    >>> x.low, [text for _, text in y.ticks]
    (0.0, ['0.80', '0.82', '0.84', '0.86', '0.88', '0.90'])
    """
    points = [
        *view.usable,
        *(point for point in (view.choice, view.baseline) if point is not None),
    ]
    if not points:
        return axis([1.0], from_zero=True, top=1.0), axis([0.0, 1.0], top=1.0)
    gaps = [view.gap(point) for point in points]
    values = [view.value(point) for point in points]
    if view.limit is not None:
        gaps.append(view.limit)
    for row in view.rows:
        for key, ends in ((view.gap_key, gaps), (view.key, values)):
            bounds = row.figures[key].ends
            if bounds is not None:
                ends += [bounds.low, bounds.high]
    # about an interval's
    width = max((4 * point.errors.get(view.key, 0.0) for point in points), default=0.0)
    most = view.utility.most if view.utility.larger_is_better else math.inf
    y = axis(values, top=most, least_span=max(0.01, width))
    if not view.utility.larger_is_better:
        y = Axis(y.high, y.low, y.ticks)
    return axis(gaps, from_zero=True, top=1.0), y


def frontier_chart(view: FrontierView) -> LayerChart:
    """The trade-off: all models, the Pareto front, the chosen model and its limit; every figure of
    a model on hover.

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
    # Any: altair's own types double the time mypy takes, and altair's schema checks the chart.
    alt: Any = require("altair", extra="report", purpose="a chart")
    if not view.usable:
        raise DataError(
            f"all {len(view.points)} points failed, so there is nothing to draw; "
            "train again with a smaller learning rate or smaller strengths"
        )
    x_axis, y_axis = frontier_axes(view)
    x = alt.X(
        "x:Q",
        title=view.label(view.gap_key),
        scale=alt.Scale(domain=[x_axis.low, x_axis.high], nice=False),
    )
    y = alt.Y(
        "y:Q",
        title=view.label(view.key),
        scale=alt.Scale(domain=[y_axis.low, y_axis.high], nice=False),
    )
    chosen = view.choice
    unpenalized = None if view.change is None else view.change.reference
    if chosen is not None and unpenalized is not None and unpenalized.job == chosen.job:
        unpenalized = None
    points_by_kind: dict[str, list[Point | None]] = {
        "Model": [
            point
            for point in view.usable
            if not view.mark(point) and point not in (unpenalized, chosen)
        ],
        "Not significantly better than a constant": [
            point for point in view.usable if view.mark(point)
        ],
        "Constant predictor": [view.baseline],
        "Without the penalty": [unpenalized],
        "Chosen model": [chosen],
    }
    drawn = {
        name: [point for point in points if point is not None]
        for name, points in points_by_kind.items()
    }
    lines = {_FRONT: True, _LIMIT: view.limit is not None}
    kinds = [name for name in _LOOKS if drawn.get(name, lines.get(name))]
    looks = {
        channel: alt.Scale(domain=kinds, range=[_LOOKS[name][place] for name in kinds])
        for place, channel in enumerate(("color", "shape"))
    }
    legend = alt.Legend(title=None, orient="bottom", symbolStrokeWidth=2, symbolSize=110, columns=3)

    color = alt.Color("kind:N", scale=looks["color"], legend=legend)
    shape = alt.Shape("kind:N", scale=looks["shape"])
    corners = [
        {"x": a, "y": b, "order": at, "kind": _FRONT} for at, (a, b) in enumerate(front_line(view))
    ]
    line = alt.Chart(alt.Data(values=corners)).mark_line(strokeWidth=1.5)
    layers = [line.encode(x=x, y=y, order="order:Q", color=color)]
    if view.limit is not None:
        limit = alt.Chart(alt.Data(values=[{"x": view.limit, "kind": _LIMIT}]))
        rule = limit.mark_rule(strokeDash=[5, 4], strokeWidth=1.5)
        layers.append(rule.encode(x=x, color=color))
    layers += [
        _interval_rules(alt, view, point, _LOOKS[name][0])
        for name in ("Without the penalty", "Chosen model")
        for point in drawn[name]
        if point.intervals
    ]
    for name in kinds:
        if points := drawn.get(name):
            size, filled = _LOOKS[name][2:]
            mark = {
                "type": "point",
                "filled": filled,
                "size": size,
                "strokeWidth": 2,
                "opacity": 0.8,
            }
            layers.append(
                _dots(alt, view, points, name).properties(mark=mark).encode(x, y, color, shape)
            )
    note = compared_note(view)
    title = alt.Title(view.title, subtitle=note) if note else view.title
    chart: LayerChart = alt.layer(*layers).properties(title=title, width=520, height=360)
    return chart


_FRONT = "Pareto front"
_LIMIT = "Limit"
# Color, shape, size and fill of each kind of point in a chart.
_LOOKS: dict[str, tuple[str, str, int, bool]] = {
    "Model": ("#555", "circle", 60, True),
    "Not significantly better than a constant": ("#999", "circle", 50, False),
    "Constant predictor": ("#777", "square", 130, False),
    _FRONT: ("#222", "stroke", 0, False),
    _LIMIT: ("#b02a37", "stroke", 0, False),
    "Without the penalty": ("#b4530a", "triangle-up", 150, True),
    "Chosen model": (_ACCENT, "diamond", 260, False),
}


def _interval_rules(alt: Any, view: FrontierView, point: Point, color: str) -> Any:
    """The intervals of both figures of a point, as a cross."""
    ends = []
    for key, swapped in ((view.gap_key, False), (view.key, True)):
        if (interval := point.intervals.get(key)) is not None:
            fixed = view.gap(point) if swapped else view.value(point)
            low, high = interval.low, interval.high
            x, y = ((fixed, fixed), (low, high)) if swapped else ((low, high), (fixed, fixed))
            ends.append({"x": x[0], "x2": x[1], "y": y[0], "y2": y[1]})
    rules = alt.Chart(alt.Data(values=ends)).mark_rule(color=color, strokeWidth=1, clip=True)
    return rules.encode(x="x:Q", x2="x2:Q", y="y:Q", y2="y2:Q")


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
        raise DataError(
            f"path must end in .png or .svg, got {os.fspath(path)!r}; for a page use to_html"
        )
    require("vl_convert", extra="report", purpose="a picture of a chart")
    if kind == ".png":
        picture = io.BytesIO()
        chart.save(picture, format="png", scale_factor=2)
        return write_file(path, picture.getvalue())
    text = io.StringIO()
    chart.save(text, format="svg")
    return write_file(path, text.getvalue().encode())


def _dots(alt: Any, view: FrontierView, points: Sequence[Point], kind: str) -> Any:
    """Chart of points with all their figures as tooltips.

    Fields are numbered, since names from users may contain characters with a meaning in field
    names.
    """
    records = [
        {"x": view.gap(point), "y": view.value(point), "kind": kind}
        | {f"text{number}": text for number, (_, text) in enumerate(figure_lines(view, point))}
        for point in points
    ]
    tips = [
        alt.Tooltip(f"text{number}:N", title=name)
        for number, (name, _) in enumerate(figure_lines(view, points[0]))
    ]
    return alt.Chart(alt.Data(values=records)).encode(tooltip=tips)
