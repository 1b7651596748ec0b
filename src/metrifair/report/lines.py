"""Charts that need no script: lines with bands on two axes, and an interval on a scale, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from metrifair.report.charts import Axis
from metrifair.report.html import Markup, element, joined
from metrifair.results import Interval

_WIDTH, _HEIGHT = 360, 250  # fit a telephone unscaled
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 8, 10, 40
_BAR = 110


class Line(NamedTuple):
    """A line of a chart, with a band around it and dots on it where asked."""

    name: str
    colour: int
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()  # x, low, high
    dots: bool = False


def line_chart(
    title: str, x: Axis, y: Axis, lines: Sequence[Line], *, x_title: str, y_title: str, diagonal: bool = False
) -> Markup:
    """Lines, told apart by colour and dashes as everywhere on the pages; ``diagonal`` is where both axes agree.

    >>> from metrifair.report.charts import axis
    >>> unit = axis([0.0, 1.0])
    >>> "<polyline" in line_chart("a", unit, unit, [Line("one", 0, [(0.0, 0.0), (1.0, 1.0)])], x_title="x", y_title="y")
    True
    """
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def at(one: float, other: float) -> tuple[str, str]:
        across = _LEFT + (right - _LEFT) * (one - x.low) / (x.high - x.low)
        down = bottom - (bottom - _TOP) * (other - y.low) / (y.high - y.low)
        return f"{across:.1f}", f"{down:.1f}"

    parts = []
    for value, text in y.ticks:
        _, down = at(x.low, value)
        parts.append(element("line", class_="grid", x1=str(_LEFT), x2=str(right), y1=down, y2=down))
        parts.append(element("text", text, class_="tick", x=str(_LEFT - 6), y=str(float(down) + 4), text_anchor="end"))
    for value, text in x.ticks:
        across, _ = at(value, y.low)
        parts.append(element("text", text, class_="tick", x=across, y=str(bottom + 16), text_anchor="middle"))
    parts.append(element("line", class_="axis", x1=str(_LEFT), x2=str(right), y1=str(bottom), y2=str(bottom)))
    middle = str((_LEFT + right) // 2)
    parts.append(element("text", x_title, class_="axis-title", x=middle, y=str(_HEIGHT - 6), text_anchor="middle"))
    if diagonal:
        low, high = max(x.low, y.low), min(x.high, y.high)
        (x1, y1), (x2, y2) = at(low, low), at(high, high)
        parts.append(element("line", class_="cross", x1=x1, y1=y1, x2=x2, y2=y2))
    parts += [part for line in lines for part in _line(line, at)]
    drawing = element("svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=f"{title}: {y_title}")
    return element("div", element("h3", y_title), drawing, class_="plot still")


def _line(line: Line, at: Callable[[float, float], tuple[str, str]]) -> list[Markup]:
    def path(points: Sequence[tuple[float, float]]) -> str:
        return " ".join(",".join(at(*point)) for point in points)

    colour, dash = line.colour % 7, (line.colour % 7 + line.colour // 7) % 4
    parts = []
    if line.band:
        edge = [*((one, low) for one, low, _ in line.band), *((one, high) for one, _, high in reversed(line.band))]
        parts.append(element("polygon", class_=f"area c{colour}", points=path(edge)))
    name = element("title", line.name)
    parts.append(element("polyline", name, class_=f"group c{colour} d{dash}", points=path(line.points)))
    for point in line.points if line.dots else ():
        across, down = at(*point)
        parts.append(element("circle", class_=f"fill c{colour}", cx=across, cy=down, r="3"))
    return parts


def line_key(names: Sequence[str]) -> Markup:
    """The legend of lines whose colours are numbered as their names are."""
    entries = []
    for at, name in enumerate(names):
        line = element("line", class_=f"group c{at % 7} d{(at % 7 + at // 7) % 4}", x1="1", x2="27", y1="7", y2="7")
        entries.append(element("li", element("svg", line, width="28", height="14", aria_hidden="true"), name))
    return element("ul", *entries, class_="key")


def interval_bar(value: float, interval: Interval | None, reach: float, verdict: str = "") -> Markup:
    """A value and its interval around 0, on a scale that ends at ``reach`` on either side."""

    def at(one: float) -> str:
        return f"{_BAR / 2 * (1 + max(-1.0, min(1.0, one / reach if reach else 0.0))) * 0.96 + 0.02 * _BAR:.1f}"

    middle = at(0.0)
    parts = [element("line", class_="axis", x1=middle, x2=middle, y1="0", y2="14")]
    if interval is not None:
        ends = {"x1": at(interval.low), "x2": at(interval.high)}
        parts.append(element("line", class_=f"between {verdict}", y1="7", y2="7", **ends))
    parts.append(element("circle", class_=f"measured {verdict}", cx=at(value), cy="7", r="4"))
    return element(
        "svg", joined(*parts), class_="change-bar", viewBox=f"0 0 {_BAR} 14", width=str(_BAR), aria_hidden="true"
    )
