"""The page of an experiment: its notes, tables and charts as Markdown, as HTML and as pictures."""

from __future__ import annotations

import base64
import io
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from experiments.printed import METHODS
from experiments.results import ModelResult
from experiments.settings import DATA, Effort
from metrifair.estimators.settings import as_device
from metrifair.report.html import Markup, document, element, joined, write_html
from metrifair.support.checks import require
from metrifair.support.files import write_file

TextTable = Sequence[Sequence[str]]  # the heading first

SKETCH = "A sketch (quick): few seeds, strengths, epochs and rows. The figures mean nothing."
"""The note of a quick run; pages begin with it."""

# Okabe and Ito's colors, told apart in all common kinds of color blindness.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
_SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
)
_WORDS = (
    (
        "Unfairness",
        (
            "Kolmogorov distance of the groups' scores, or the difference of their rates of "
            "positive "
            "labels."
        ),
    ),
    ("Published, corrected", "What the authors' code did, and what the paper's text means."),
    ("±", "One standard error over seeds or replications."),
)


@dataclass(frozen=True)
class Page:
    """What is told about an experiment; charts are Altair's, by caption."""

    title: str
    notes: Sequence[str]
    tables: Mapping[str, TextTable]
    charts: Mapping[str, Any]

    def markdown(self, name: str) -> str:
        """The page in Markdown; the pictures of its charts are files called after ``name``."""
        notes = sorted(self.notes, key=lambda note: note != SKETCH)
        lines = [
            f"# {self.title}",
            "",
            *(f"**{note}**\n" if note == SKETCH else f"{note}\n" for note in notes),
        ]
        for caption, table in self.tables.items():
            lines += [f"## {caption}", "", markdown_table(table), ""]
        lines += [f"![{caption}]({name}-{at}.svg)\n" for at, caption in enumerate(self.charts, 1)]
        return "\n".join(lines)

    def html(self, pictures: Mapping[str, bytes]) -> str:
        """The page in HTML with these pictures inside: nothing is loaded from elsewhere."""
        plain = [note for note in self.notes if note != SKETCH]
        parts = [element("p", SKETCH, class_="alarm")] if SKETCH in self.notes else []
        parts.append(element("ul", *(element("li", note) for note in plain), class_="notes"))
        for caption, (heading, *lines) in self.tables.items():
            head = element("tr", *(element("th", text, scope="col") for text in heading))
            body = [
                element(
                    "tr",
                    element("th", first, scope="row"),
                    *(element("td", _bold(text)) for text in line),
                )
                for first, *line in lines
            ]
            table = element("table", element("thead", head), element("tbody", *body))
            parts.append(element("section", element("h2", caption), table, class_="card"))
        for caption, picture in pictures.items():
            address = f"data:image/svg+xml;base64,{base64.b64encode(picture).decode()}"
            image = Markup(f'<img width="100%" alt="{joined(caption)}" src="{address}">')
            parts.append(element("figure", image, element("figcaption", caption)))
        return document(
            title=self.title,
            about="the paper's experiments",
            head=joined(*parts),
            unscripted="Nothing is missing: this page needs no scripts.",
            sections=(),
            words=_WORDS,
        )


def _bold(text: str) -> str:
    """What Markdown has in bold is bold in HTML."""
    return element("b", text.strip("*")) if text.startswith("**") else text


def markdown_table(table: TextTable) -> str:
    """The table in Markdown.

    >>> print(markdown_table([["data", "area"], ["Drug", "0.8"]]))
    | data | area |
    |---|---|
    | Drug | 0.8 |
    """
    heading, *lines = (f"| {' | '.join(line)} |" for line in table)
    return "\n".join([heading, "|" + "---|" * len(table[0]), *lines])


def write_page(page: Page, folder: Path, name: str, *, html: bool = True) -> None:
    """Write the charts as SVG, and the page in Markdown and, where wanted, in HTML."""
    require("vl_convert", extra="report", purpose="a picture of a chart")
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {}
    for at, (caption, chart) in enumerate(page.charts.items(), 1):
        text = io.StringIO()
        # a label for every point would triple the file
        chart.configure(aria=False).save(text, format="svg")
        pictures[caption] = text.getvalue().encode()
        write_file(folder / f"{name}-{at}.svg", pictures[caption])
    if html:
        write_html(folder / f"{name}.html", page.html(pictures))
    write_file(folder / f"{name}.md", page.markdown(name).encode())


def circumstances(effort: Effort, *, processes: int = 1) -> list[str]:
    """That it is a sketch, where it is one; and the machine.

    >>> circumstances(Effort.of(1, quick=True))[0] == SKETCH
    True
    """
    return [*([SKETCH] if effort.quick else []), f"Computed on: {machine(processes)}."]


def machine(processes: int = 1) -> str:
    """The machine and the versions that matter."""
    if as_device("auto").type == "cuda":
        processor = torch.cuda.get_device_name()
    else:
        threads = (
            f"threads: {torch.get_num_threads()}"
            if processes == 1
            else f"{processes} processes of one thread"
        )
        processor = f"{platform.machine()}, {threads}"
    return f"{processor}, torch {torch.__version__}, Python {platform.python_version()}"


# --- charts
# -----------------------------------------------------------------------------------------------------


def _altair() -> Any:
    return require("altair", extra="report", purpose="a chart")


def tradeoff_chart(
    results: Iterable[ModelResult],
    *,
    on: str,
    floors: Mapping[str, float] | None = None,
    title: str = "",
) -> Any:
    """One panel per data set: mean accuracy against mean unfairness, a line through the strengths
    of each method.

    ``floors``: by data set, where a dashed rule stands.
    """
    alt, panels = _altair(), []
    known = list(results)
    present = dict.fromkeys(one.method for one in known)
    names = [
        METHODS.get(name, name)
        for name in dict.fromkeys([*(m for m in METHODS if m in present), *present])
    ]
    color = alt.Color(
        "method:N", title=None, scale=alt.Scale(domain=names, range=list(_COLORS[: len(names)]))
    )
    shape = alt.Shape(
        "method:N", title=None, scale=alt.Scale(domain=names, range=list(_SHAPES[: len(names)]))
    )
    for data in dict.fromkeys(one.data for one in known):
        records = mean_points([one for one in known if one.data == data], on)
        words = "R²" if DATA[data].task == "regression" else "accuracy"
        base = alt.Chart(alt.Data(values=records)).encode(
            x=alt.X(
                "unfairness:Q",
                title=on if on in ("dependence", "worst cut") else f"unfairness of {on}",
                scale=alt.Scale(zero=True),
            ),
            y=alt.Y("accuracy:Q", title=words, scale=alt.Scale(zero=False)),
            color=color,
        )
        tips = [
            "method:N",
            alt.Tooltip("strength:Q", format=".3g"),
            alt.Tooltip("accuracy:Q", format=".3f"),
        ]
        layers = [
            base.mark_line(opacity=0.5).encode(order="strength:Q"),
            base.mark_point(size=30).encode(shape=shape, tooltip=tips),
        ]
        if floors and data in floors:
            rule = alt.Chart(alt.Data(values=[{"floor": floors[data]}])).mark_rule(
                strokeDash=[4, 3], color="#555"
            )
            layers.append(rule.encode(x="floor:Q"))
        panels.append(alt.layer(*layers).properties(title=DATA[data].title, width=260, height=220))
    return alt.concat(*panels, columns=4, title=title)


def mean_points(results: Iterable[ModelResult], on: str) -> list[dict[str, float | str]]:
    """Means over seeds at each strength of each method; a negative R2 counts as 0."""
    usable = [one for one in results if not one.failed]
    order = list(dict.fromkeys(one.method for one in usable))

    def key(one: ModelResult) -> tuple[int, float]:
        return order.index(one.method), one.strength

    return [
        {
            "method": METHODS.get(order[method], order[method]),
            "strength": strength,
            "unfairness": fmean(one.gap(on) for one in part),
            "accuracy": fmean(max(one.accuracy, 0.0) for one in part),
        }
        for (method, strength), found in groupby(sorted(usable, key=key), key=key)
        for part in [list(found)]
    ]


def line_chart(
    records: Sequence[Mapping[str, Any]], *, x: str, y: str, color: str, **settings: Any
) -> Any:
    """Lines of y against x, one for each value of ``color``; ``low`` and ``high`` in the records
    are a band around it.

    ``settings``: ``x_title``, ``y_title``, ``title``; ``log``, ``log_y`` for logarithmic axes;
    ``points`` for marks without a line.
    """
    alt = _altair()
    logs = (settings.get("log"), settings.get("log") or settings.get("log_y"))
    scales = [alt.Scale(type="log" if log else "linear", zero=False) for log in logs]
    names = list(dict.fromkeys(str(record[color]) for record in records))
    shades = alt.Scale(domain=names, range=[_COLORS[at % len(_COLORS)] for at in range(len(names))])
    base = alt.Chart(
        alt.Data(values=[dict(record) | {color: str(record[color])} for record in records])
    ).encode(
        x=alt.X(f"{x}:Q", title=settings.get("x_title", x), scale=scales[0]),
        color=alt.Color(f"{color}:N", title=None, scale=shades),
    )
    marks = base.mark_point(filled=True, size=35) if settings.get("points") else base.mark_line()
    layers = [marks.encode(y=alt.Y(f"{y}:Q", title=settings.get("y_title", y), scale=scales[1]))]
    if records and "low" in records[0]:
        layers.insert(
            0, base.mark_area(opacity=0.2).encode(y=alt.Y("low:Q", scale=scales[1]), y2="high:Q")
        )
    return alt.layer(*layers).properties(width=320, height=240, title=settings.get("title", ""))


def side_by_side(charts: Sequence[Any], *, columns: int = 3) -> Any:
    """Several charts as one, each with its own colors."""
    return _altair().concat(*charts, columns=columns).resolve_scale(color="independent")
