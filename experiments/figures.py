"""Charts of an experiment, and the page that holds its table and its charts; nothing is loaded from elsewhere."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from experiments.printed import METHODS
from experiments.settings import DATA
from experiments.tables import Curve, Table, html, markdown
from metrifair.checks import require
from metrifair.files import write_file
from metrifair.report.html import Markup, element, joined

# Okabe and Ito's colours, told apart in all common kinds of colour blindness.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1b1b1b}"
    "table{border-collapse:collapse}td,th{padding:.2rem .7rem;border-bottom:1px solid #ddd;text-align:left}"
    "img{max-width:100%}.banner{background:#fff3cd;border:2px solid #b58900;padding:.6rem 1rem;font-weight:bold}"
)

SKETCH = "A sketch (quick): few seeds, strengths, epochs and rows. The figures mean nothing."
"""The note of a quick run; pages begin with it."""


def altair() -> Any:
    """The charting library, an extra."""
    return require("altair", extra="report", purpose="a chart")


def tradeoff_chart(curves: Sequence[Curve], *, on: str, floors: Mapping[str, float], title: str) -> Any:
    """One panel per data set: mean accuracy against mean unfairness, a line through the strengths of each method.

    The dashed rule is the sampling floor: the mean distance of two samples of one distribution.
    """
    alt = altair()
    methods = [name for name in METHODS if any(curve.method == name for curve in curves)]
    names = [METHODS[name] for name in methods]
    colour = alt.Color("method:N", title=None, scale=alt.Scale(domain=names, range=list(_COLOURS[: len(names)])))
    shape = alt.Shape("method:N", title=None, scale=alt.Scale(domain=names, range=list(_SHAPES[: len(names)])))
    panels = []
    for data, part in groupby(curves, key=lambda curve: curve.data):
        records = [record for curve in part for record in mean_points(curve, on)]
        words = "R²" if DATA[data].task == "regression" else "accuracy"
        base = alt.Chart(alt.Data(values=records)).encode(
            x=alt.X("unfairness:Q", title=f"unfairness of {on}", scale=alt.Scale(zero=True)),
            y=alt.Y("accuracy:Q", title=words, scale=alt.Scale(zero=False)),
            color=colour,
        )
        tips = ["method:N", alt.Tooltip("strength:Q", format=".3g"), alt.Tooltip("accuracy:Q", format=".3f")]
        layers = [
            base.mark_line(opacity=0.5).encode(order="strength:Q"),
            base.mark_point(size=30).encode(shape=shape, tooltip=tips),
        ]
        if data in floors and on == "scores":
            rule = alt.Chart(alt.Data(values=[{"floor": floors[data]}])).mark_rule(strokeDash=[4, 3], color="#555")
            layers.append(rule.encode(x="floor:Q"))
        panels.append(alt.layer(*layers).properties(title=DATA[data].title, width=260, height=220))
    return alt.concat(*panels, columns=4, title=title)


def mean_points(curve: Curve, on: str) -> list[dict[str, float | str]]:
    """Means over seeds at each strength."""
    by_strength = groupby(sorted(curve.rows, key=lambda row: row.strength), key=lambda row: row.strength)
    found: list[dict[str, float | str]] = []
    for strength, part in by_strength:
        rows = [row for row in part if not row.failed]
        if rows:
            found.append(
                {
                    "method": METHODS[curve.method],
                    "strength": strength,
                    "unfairness": fmean(row.gap(on) for row in rows),
                    "accuracy": fmean(max(row.accuracy, 0.0) for row in rows),
                }
            )
    return found


def line_chart(records: Sequence[Mapping[str, Any]], *, x: str, y: str, colour: str, **settings: Any) -> Any:
    """Lines of y against x, one for each value of ``colour``; ``low`` and ``high`` in the records are a band around it.

    ``settings``: ``x_title``, ``y_title``, ``title``; ``log``, ``log_x``, ``log_y`` for logarithmic axes; ``points``
    for marks without a line.
    """
    alt = altair()
    scales = [
        alt.Scale(type="log" if settings.get(axis) or settings.get("log") else "linear", zero=False)
        for axis in ("log_x", "log_y")
    ]
    names = list(dict.fromkeys(str(record[colour]) for record in records))
    shades = alt.Scale(domain=names, range=[_COLOURS[at % len(_COLOURS)] for at in range(len(names))])
    base = alt.Chart(alt.Data(values=[dict(record) | {colour: str(record[colour])} for record in records])).encode(
        x=alt.X(f"{x}:Q", title=settings.get("x_title", x), scale=scales[0]),
        color=alt.Color(f"{colour}:N", title=None, scale=shades),
    )
    height = alt.Y(f"{y}:Q", title=settings.get("y_title", y), scale=scales[1])
    layers = [base.mark_point(filled=True, size=35) if settings.get("points") else base.mark_line()]
    layers = [layer.encode(y=height) for layer in layers]
    if records and "low" in records[0]:
        layers.insert(0, base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", scale=scales[1]), y2="high:Q"))
    return alt.layer(*layers).properties(width=320, height=240, title=settings.get("title", ""))


def side_by_side(charts: Sequence[Any], *, columns: int = 3) -> Any:
    """Several charts as one, each with its own colours."""
    return altair().concat(*charts, columns=columns).resolve_scale(color="independent")


def write_report(
    folder: Path,
    name: str,
    *,
    title: str,
    notes: Sequence[str],
    tables: Mapping[str, Table],
    charts: Mapping[str, Any],
    page: bool = True,
) -> None:
    """Write the charts as SVG, and tables and charts in Markdown and, where wanted, as a page."""
    folder.mkdir(parents=True, exist_ok=True)
    notes = sorted(notes, key=lambda note: note != SKETCH)
    pictures = {caption: _svg(chart) for caption, chart in charts.items()}
    files = {caption: f"{name}-{at}.svg" for at, caption in enumerate(pictures, 1)}
    for caption, picture in pictures.items():
        write_file(folder / files[caption], picture)
    if page:
        write_file(folder / f"{name}.html", _page(title, notes, tables, pictures).encode())
    lines = [f"# {title}", "", *(f"**{note}**\n" if note == SKETCH else f"{note}\n" for note in notes)]
    for caption, table in tables.items():
        lines += [f"## {caption}", "", markdown(table), ""]
    lines += [f"![{caption}]({files[caption]})\n" for caption in pictures]
    write_file(folder / f"{name}.md", "\n".join(lines).encode())


def _svg(chart: Any) -> bytes:
    require("vl_convert", extra="report", purpose="a picture of a chart")
    text = io.StringIO()
    chart.configure(aria=False).save(text, format="svg")  # a label for every point would triple the file
    return text.getvalue().encode()


def _note(text: str) -> Markup:
    return element("p", text, class_="banner") if text == SKETCH else element("p", text)


def _page(title: str, notes: Iterable[str], tables: Mapping[str, Table], pictures: Mapping[str, bytes]) -> str:
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    parts = [element("h1", title), *map(_note, notes)]
    parts += [joined(element("h2", caption), html(table)) for caption, table in tables.items()]
    for caption, picture in pictures.items():
        source = f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"
        image = Markup(f'<img alt="{joined(caption)}" src="{source}">')
        parts.append(element("figure", image, element("figcaption", caption)))
    head = joined(
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        element("title", title),
        Markup(f"<style>{_STYLE}</style>"),
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{joined(*parts)}</body></html>\n'
