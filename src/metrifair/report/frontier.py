"""The report on a frontier: one HTML file, whose script only places numbers and texts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

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
    Markup,
    PageJson,
    Section,
    document,
    element,
    item_list,
    joined,
    resource,
)
from metrifair.tradeoff.points import Point
from metrifair.wording.frontier import (
    UNSCRIPTED,
    allowance_note,
    area_sentence,
    compared_note,
    constant_sentence,
    constant_text,
    curve_notes,
    glossary,
    headline,
    highlights,
    note_texts,
    overfit_sentence,
    page_headline,
    remarks,
    row_notes,
)
from metrifair.wording.frontier_tables import row_columns, sort_value
from metrifair.wording.frontier_view import (
    FrontierRow,
    FrontierView,
    figure_lines,
    figure_texts,
)
from metrifair.wording.numbers import count_text, figure_text, noun
from metrifair.wording.terms import term_name

_SCRIPTS = ("frontier.js", "panels.js")
# at which a curve is drawn
_MOST_SCORES = 240
_FEWEST_SCORES = 24
_GAP_ROUNDING = 1e-6


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
    """The answer; and folded, so that the chart is on the first screen, intervals and notes."""
    answer = page_headline(view)
    sentences = [*headline(view), *remarks(view), *note_texts(view)]
    sentences = [text for text in sentences if text != answer]
    return joined(
        element("p", answer, id="summary", class_="summary"),
        element(
            "details",
            element("summary", "Intervals, costs and notes"),
            item_list(sentences, id="notes", class_="notes"),
            class_="origin fold",
        ),
    )


def frontier_section(view: FrontierView, *, most_numbers: int = 110_000) -> Section:
    """The drawing of a frontier with its slider; ``most_numbers`` bounds the curves, and so the
    size of the page.
    """
    content = page_content(view, most_numbers=most_numbers)
    return Section(Markup(resource("frontier.html")), "data", content, _SCRIPTS)


def page_content(view: FrontierView, *, most_numbers: int = 110_000) -> dict[str, PageJson]:
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


def _headline(view: FrontierView, point: Point) -> PageJson:
    """The three figures a glance should give: utility, unfairness, strength."""
    strength, *_ = figure_lines(view, point)
    return [
        [view.label(view.key), view.text(point, view.key)],
        [view.label(view.gap_key), view.text(point, view.gap_key)],
        list(strength),
    ]


def _row(view: FrontierView, row: FrontierRow) -> PageJson:
    reference = next((candidate for candidate in view.rows if candidate.usable), row)
    brief = ", ".join(f"{view.label(key)} {row.figures[key].text}" for key in view.keys[:3])
    brief += f"; {row.mark}" if row.mark else ""
    if not row.usable:
        brief = "training failed"
    stop = row.text.removeprefix(f"{row.family}, ")
    if len(view.parameters) > 1:
        stop = row.family
    against = ""
    if row is not reference:
        against = f"{noun(view.label('strength'))} {reference.text}"
    x, y = row.figures[view.gap_key], row.figures[view.key]
    return {
        "text": row.text,
        "parameter": view.parameter_of(row),
        "stop": stop,
        "needsGroup": row.needs_group,
        "usable": row.usable,
        "state": row.state,
        "brief": brief,
        "spoken": f"{view.label('strength')} {row.text}: {brief}",
        "against": against,
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


def _figure(view: FrontierView, key: str, row: FrontierRow, reference: FrontierRow) -> PageJson:
    """One figure of a row beside that of the reference row; better or worse, if its direction
    is known.
    """
    figure = row.figures[key]
    base = reference.figures[key]
    utility = view.utility if key == view.key else UTILITIES.get(key)
    less = key in ("unfairness", "decision_unfairness") or (
        utility is not None and not utility.larger_is_better
    )
    direction = -1 if less else int(utility is not None)
    change = None if figure.value is None or base.value is None else figure.value - base.value
    gain = (change or 0.0) * direction
    seeds = ""
    if figure.bounds_text and figure.over_seeds:
        seeds = f" over {count_text(len(row.points) - row.failed, 'seed')}"
    trend = ""
    if abs(gain) > 0.0005:
        trend = "better" if gain > 0 else "worse"
    return {
        "name": view.label(key),
        "text": figure.text,
        "bounds": f"{figure.bounds_text}{seeds}",
        "change": "" if change is None or row is reference else figure_text(change, signed=True),
        "trend": trend,
    }


def _frontier(view: FrontierView, at: Mapping[float | tuple[str, float], int]) -> PageJson:
    x, y = frontier_axes(view)

    def place(point: Point | None) -> dict[str, PageJson] | None:
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


def _constant_lines(view: FrontierView) -> PageJson:
    """The constant predictor's figures; it has no strength and no seed."""
    if view.baseline is None:
        return []
    texts = figure_texts(view, replace(view.baseline, intervals={}))
    return [
        [term_name("constant"), constant_text(view.constant_value)],
        *([view.label(key), text] for key, text in texts.items()),
    ]


def _table(view: FrontierView) -> PageJson:
    columns = row_columns(view)
    rows = [
        [
            {"text": column.cell(row).text, "value": sort_value(view, column, row)}
            for column in columns
        ]
        for row in view.rows
    ]
    return {
        "columns": [column.heading for column in columns],
        "rows": rows,
        "notes": [*filter(None, [allowance_note(view)]), *row_notes(view, view.rows)],
    }


def _distributions(view: FrontierView, most_numbers: int) -> PageJson:
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
    rows: list[PageJson] = []
    for curves in curves_by_row:
        drawn = None if curves is None else curves_json(thin_curves(curves, most), view.group_names)
        rows.append(drawn and {**drawn, "grid": grids.setdefault(tuple(drawn["grid"]), len(grids))})
    gaps = [None if curves is None else widest_gap(curves) for curves in curves_by_row]
    differs = any(
        gap is not None and abs(gap.size - row.points[0].unfairness) > _GAP_ROUNDING
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
    if front is None:
        front = view.front
    for point in front:
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
