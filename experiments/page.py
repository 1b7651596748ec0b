"""The page of an experiment: its notes, tables and charts as Markdown, as HTML and as pictures."""

from __future__ import annotations

import base64
import io
import math
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, zip_longest
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

import torch
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.printed import METHODS
from experiments.results import ModelResult
from experiments.settings import DATA, Effort
from metrifair.estimators.settings import as_device
from metrifair.report.html import Markup, document, element, joined, write_html
from metrifair.support.files import write_file

TextTable = Sequence[Sequence[str]]  # the heading first

SKETCH = "A sketch (quick): few seeds, strengths, epochs and rows. The figures mean nothing."
"""The note of a quick run; pages begin with it."""

# Okabe and Ito's colors, told apart in all common kinds of color blindness.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
_MARKERS = ("o", "s", "^", "D", "P", "v", ">", "<")
_PANEL = (3.6, 3.0)  # inches
_LETTERS = 48  # below a panel
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
    """The report on an experiment; charts are figures by caption."""

    title: str
    notes: Sequence[str]
    tables: Mapping[str, TextTable]
    charts: Mapping[str, Figure]

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
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {caption: svg_of(figure) for caption, figure in page.charts.items()}
    for at, picture in enumerate(pictures.values(), 1):
        write_file(folder / f"{name}-{at}.svg", picture)
    if html:
        write_html(folder / f"{name}.html", page.html(pictures))
    write_file(folder / f"{name}.md", page.markdown(name).encode())


def svg_of(figure: Figure) -> bytes:
    """The figure as SVG: letters are text, and equal figures are equal bytes."""
    text = io.BytesIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "metrifair"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


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

Panel: TypeAlias = Callable[[Axes], None]
"""Draws a chart on axes."""


def side_by_side(panels: Sequence[Panel], *, columns: int = 3, legend: bool = False) -> Figure:
    """Several panels as one figure; with ``legend``, one legend for all below them, else one in
    each.
    """
    columns = min(columns, len(panels))
    lines = math.ceil(len(panels) / columns)
    figure = Figure(figsize=(columns * _PANEL[0], lines * _PANEL[1]), layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes, panel in zip_longest(grid.flat, panels):
        if panel is None:
            axes.set_axis_off()
        else:
            panel(axes)
    if legend:
        entries = {
            label: handle
            for axes in figure.axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        most = _LETTERS * columns // (max(map(len, entries)) + 6)
        figure.legend(entries.values(), entries, loc="outside lower center", ncols=most)
    for axes in () if legend else figure.axes[: len(panels)]:
        axes.legend(fontsize="small")
    return figure


def tradeoff_chart(
    results: Iterable[ModelResult], *, on: str, floors: Mapping[str, float] | None = None
) -> Figure:
    """One panel per data set: mean accuracy against mean unfairness, a line through the strengths
    of each method.

    ``floors``: by data set, the place of a dashed line.
    """
    known = list(results)
    present = dict.fromkeys(one.method for one in known)
    order = dict.fromkeys([*(method for method in METHODS if method in present), *present])
    places = {METHODS.get(name, name): place for place, name in enumerate(order)}
    panels = [
        partial(
            _draw_tradeoff,
            data,
            mean_points([one for one in known if one.data == data], on),
            places=places,
            on=on,
            floor=(floors or {}).get(data),
        )
        for data in dict.fromkeys(one.data for one in known)
    ]
    return side_by_side(panels, columns=4, legend=True)


def _draw_tradeoff(
    data: str,
    points: Sequence[Mapping[str, Any]],
    axes: Axes,
    *,
    places: Mapping[str, int],
    on: str,
    floor: float | None,
) -> None:
    for method in sorted({point["method"] for point in points}, key=lambda name: places[name]):
        own = [point for point in points if point["method"] == method]
        axes.plot(
            [point["unfairness"] for point in own],
            [point["accuracy"] for point in own],
            color=_COLORS[places[method] % len(_COLORS)],
            marker=_MARKERS[places[method] % len(_MARKERS)],
            markersize=4,
            markerfacecolor="none",
            linewidth=1,
            label=method,
        )
    if floor is not None:
        axes.axvline(floor, color="#555", linewidth=1, linestyle="--")
    axes.set(
        title=DATA[data].title,
        xlabel=on if on in ("dependence", "worst cut") else f"unfairness of {on}",
        ylabel="R²" if DATA[data].task == "regression" else "accuracy",
    )
    axes.set_xlim(left=0)


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
) -> Panel:
    """A panel with lines of y against x, one for each value of ``color``; ``low`` and ``high`` in
    the records are a band around it.

    ``settings``: ``x_title``, ``y_title``, ``title``; ``log``, ``log_y`` for logarithmic axes;
    ``points`` for marks without a line.
    """
    return partial(_draw_lines, records, x=x, y=y, color=color, settings=settings)


def _draw_lines(
    records: Sequence[Mapping[str, Any]],
    axes: Axes,
    *,
    x: str,
    y: str,
    color: str,
    settings: Mapping[str, Any],
) -> None:
    for place, name in enumerate(dict.fromkeys(record[color] for record in records)):
        own = [record for record in records if record[color] == name]
        across = [record[x] for record in own]
        shade = _COLORS[place % len(_COLORS)]
        if "low" in own[0]:
            low, high = ([record[end] for record in own] for end in ("low", "high"))
            axes.fill_between(across, low, high, color=shade, alpha=0.2, linewidth=0)
        style: dict[str, Any] = {}
        if settings.get("points"):
            style = {"marker": "o", "linestyle": "", "markersize": 4}
        axes.plot(across, [record[y] for record in own], color=shade, label=str(name), **style)
    if settings.get("log"):
        axes.set_xscale("log")
    if settings.get("log") or settings.get("log_y"):
        axes.set_yscale("log")
    axes.set(
        title=settings.get("title", ""),
        xlabel=settings.get("x_title", x),
        ylabel=settings.get("y_title", y),
    )
