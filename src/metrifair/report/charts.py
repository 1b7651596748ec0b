"""The content of charts: axes with round ticks, the groups' curves and their widest gap, as JSON of
few digits; and charts that need no script, lines with bands and an interval on a scale, as SVG.
"""

from __future__ import annotations

import math
from collections.abc import (
    Callable,
    Iterable,
    Sequence,
)
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from metrifair.errors import DataError
from metrifair.figures.curves import Curves
from metrifair.figures.intervals import Interval
from metrifair.report.html import (
    Markup,
    PageJson,
    element,
    joined,
)
from metrifair.wording.numbers import (
    MINUS,
    cutoff_text,
    number_text,
    percent_text,
    strength_texts,
)

_ROUND_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """The range of an axis and the positions of its ticks."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]  # position, text


def axis(
    values: Sequence[float],
    *,
    from_zero: bool = False,
    top: float = math.inf,
    count: int = 6,
    least_span: float = 0.01,
) -> Axis:
    """An axis that covers all values with a small margin, and has about ``count`` round ticks.

    ``from_zero`` starts it at 0; ``top`` is the largest possible value; ``least_span`` is its
    minimum width.

    >>> axis([0.1, 0.31], from_zero=True).ticks
    ((0.0, '0.0'), (0.1, '0.1'), (0.2, '0.2'), (0.3, '0.3'))
    >>> axis([0.7, 1.0], top=1.0).high
    1.0
    """
    least = 0.0 if from_zero else min(values)
    most = max(values)
    # One value, or equal ones, still need a width.
    span = max(most - least, least_span, 1e-6 * abs(most)) or 1.0
    air = 0.06 * span + (span - (most - least)) / (1 if from_zero else 2)
    low = least if from_zero else least - air
    high = max(min(most + air, top), most)
    rough = (high - low) / count
    power: float = 10.0 ** math.floor(math.log10(rough))
    step = next(
        power * step_size for step_size in _ROUND_STEPS if power * step_size >= rough * (1 - 1e-9)
    )
    return Axis(low, high, tuple(_ticks(low, high, step)))


def _ticks(
    low: float,
    high: float,
    step: float,
) -> Iterable[tuple[float, str]]:
    slack = 1e-9 * step
    numbers = range(math.ceil((low - slack) / step), math.floor((high + slack) / step) + 1)
    if not 1e-6 < step < 1e5:
        values = [number * step for number in numbers]
        return zip(values, strength_texts(values), strict=True)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    values = [round(number * step, decimals + 3) for number in numbers]
    return ((value, f"{value:.{decimals}f}".replace("-", MINUS)) for value in values)


@dataclass(frozen=True)
class Gap:
    """The largest difference between two groups' shares below a score."""

    score: float
    lower: str  # the group with the smaller share below the score
    upper: str
    low: float
    high: float

    @property
    def size(self) -> float:
        """The difference of the shares."""
        return self.high - self.low

    @property
    def text(self) -> str:
        """The gap as a sentence.

        >>> Gap(0.50031, "a", "b", 0.25, 0.75).text
        'Largest gap 0.500: at a cutoff of 0.5003, 25.0% of “b” and 75.0% of “a” pass it.'
        """
        return (
            f"Largest gap {number_text(self.size)}: at a cutoff {cutoff_text(self.score)}, "
            f"{percent_text(1 - self.high)} of “{self.upper}” and "
            f"{percent_text(1 - self.low)} of “{self.lower}” pass it."
        )


def widest_gap(curves: Curves) -> Gap | None:
    """Where the distribution functions are furthest apart, on the grid; None for fewer than two
    groups.

    >>> widest_gap(Curves([0, 1, 2], {}, {"a": [0.2, 0.5, 1.0], "b": [0.3, 0.9, 1.0]}))
    Gap(score=1, lower='a', upper='b', low=0.5, high=0.9)
    """
    best: Gap | None = None
    for at, score in enumerate(curves.grid):
        shares = {
            name: values[at]
            for name, values in curves.cumulative.items()
            if math.isfinite(values[at])
        }
        if len(shares) < 2:
            continue
        lower = min(shares, key=shares.__getitem__)
        others = [name for name in shares if name != lower]  # of equal shares, another group
        upper = max(others, key=shares.__getitem__)
        if best is None or shares[upper] - shares[lower] > best.size:
            best = Gap(score, lower, upper, shares[lower], shares[upper])
    return best


def check_curve(curves: Curves, where: str) -> None:
    """Raise a DataError if a curve and its grid differ in length: it would be drawn at wrong
    scores.

    >>> check_curve(Curves([0, 1], {"a": [1, 1]}, {"a": [0, 1, 1]}), "at strength 0.5")
    Traceback (most recent call last):
    metrifair.errors.DataError: the cumulative curve of group 'a' at strength 0.5 has 3 values, its grid 2; ...
    """
    if len(curves.grid) < 2 or any(left >= right for left, right in pairwise(curves.grid)):
        raise DataError(
            f"the grid of the curves {where} must be two or more ascending scores, "
            f"got {len(curves.grid)} scores; sort them and leave out repeated ones"
        )
    for kind, by_group in (("density", curves.density), ("cumulative", curves.cumulative)):
        for name, values in by_group.items():
            if len(values) != len(curves.grid):
                raise DataError(
                    f"the {kind} curve of group {name!r} {where} has {len(values)} values, its "
                    f"grid {len(curves.grid)}; give one value per score of the grid"
                )


def thin_curves(curves: Curves, most: int) -> Curves:
    """The curves on at most about ``most`` evenly spaced scores of their grid; both ends and the
    widest gap remain.

    >>> thin_curves(Curves([0, 1, 2, 3, 4], {"a": [5, 6, 7, 8, 9]}, {}), 3)
    Curves(grid=[0, 2, 4], density={'a': [5, 7, 9]}, cumulative={})
    """
    count = len(curves.grid)
    if count <= most:
        return curves
    selected = {round(step * (count - 1) / (most - 1)) for step in range(most)}
    gap = widest_gap(curves)
    if gap is not None:
        selected.add(list(curves.grid).index(gap.score))
    places = sorted(selected)

    def at_places(values: Sequence[float]) -> list[float]:
        return [values[at] for at in places]

    return Curves(
        at_places(curves.grid),
        {name: at_places(values) for name, values in curves.density.items()},
        {name: at_places(values) for name, values in curves.cumulative.items()},
    )


def short(
    value: float | None,
    *,
    digits: int = 6,
) -> float | None:
    """The value with few digits, as the page needs no more; None if it is not a number.

    >>> short(0.123456789), short(float("nan"))
    (0.123457, None)
    """
    rounded = math.nan if value is None else float(f"{value:.{digits}g}")
    return rounded if math.isfinite(rounded) else None


def axis_json(scale: Axis) -> PageJson:
    """An axis as JSON for the page."""
    return {"low": scale.low, "high": scale.high, "ticks": [[at, text] for at, text in scale.ticks]}


def score_axis(scores: Iterable[float]) -> Axis:
    """Scores end where their grids end: probabilities get no air beyond 0 and 1.

    >>> score_axis([0.0, 1.0]).high
    1.0
    """
    ends = list(scores)
    scale = axis(ends, least_span=0.0)
    low, high = (min(ends), max(ends)) if max(ends) > min(ends) else (scale.low, scale.high)
    return Axis(low, high, tuple(tick for tick in scale.ticks if low <= tick[0] <= high))


def curves_json(curves: Curves, groups: Sequence[str]) -> dict[str, Any]:
    """Densities and shares below each score, one list per group, None for a group that has none."""
    tops = [value for values in curves.density.values() for value in values if math.isfinite(value)]
    return {
        "grid": grid_json(curves.grid),
        "top": axis_json(axis([0.0, *tops], from_zero=True, count=4, least_span=0.0)),
        "density": [_values(curves.density.get(name)) for name in groups],
        "cumulative": [_values(curves.cumulative.get(name)) for name in groups],
        "gap": gap_json(widest_gap(curves)),
    }


def grid_json(grid: Sequence[float]) -> list[float | None]:
    """Scores with enough digits to distinguish them.

    >>> grid_json([0.0, 1 / 3]), grid_json([1e9 + 0.25, 1e9 + 0.5])
    ([0.0, 0.333333], [1000000000.25, 1000000000.5])
    """
    size = max(map(abs, grid))
    span = max(grid) - min(grid)
    more = math.ceil(math.log10(size / span)) if 0 < span < size else 0
    return [short(score, digits=min(6 + more, 17)) for score in grid]


def gap_json(gap: Gap | None) -> PageJson:
    """Where a gap is marked, and the sentence about it."""
    if gap is None:
        return None
    ends: dict[str, PageJson] = {
        "x": short(gap.score),
        "low": short(gap.low),
        "high": short(gap.high),
    }
    return {**ends, "text": gap.text, "size": number_text(gap.size)}


def _values(values: Sequence[float] | None) -> PageJson:
    return None if values is None else [short(value, digits=4) for value in values]


# fit a telephone unscaled
_WIDTH = 360
_HEIGHT = 250
_LEFT = 44
_RIGHT = 8
_TOP = 10
_BOTTOM = 40
_BAR = 110


class Line(NamedTuple):
    """A line of a chart, optionally with a band around it and dots on it."""

    name: str
    color: int
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()  # x, low, high
    dots: bool = False


@dataclass(frozen=True)
class LineChart:
    """Lines on two axes: pages draw it as SVG, ``plot`` draws it with matplotlib."""

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    x_title: str
    y_title: str
    diagonal: bool = False  # a line where both axes agree
    marked: float | None = None  # a place on x


def svg_chart(chart: LineChart) -> Markup:
    """The chart without a script; lines differ by color and dashes.

    >>> unit = axis([0.0, 1.0])
    >>> "<polyline" in svg_chart(LineChart("a", unit, unit, [Line("one", 0, [(0.0, 0.0), (1.0, 1.0)])], "x", "y"))
    True
    """
    x, y = chart.x, chart.y
    right = _WIDTH - _RIGHT
    bottom = _HEIGHT - _BOTTOM

    def at(x_value: float, y_value: float) -> tuple[str, str]:
        across = _LEFT + (right - _LEFT) * (x_value - x.low) / (x.high - x.low)
        down = bottom - (bottom - _TOP) * (y_value - y.low) / (y.high - y.low)
        return f"{across:.1f}", f"{down:.1f}"

    parts = []
    for value, text in y.ticks:
        _, down = at(x.low, value)
        parts.append(element("line", class_="grid", x1=str(_LEFT), x2=str(right), y1=down, y2=down))
        parts.append(
            element(
                "text",
                text,
                class_="tick",
                x=str(_LEFT - 6),
                y=str(float(down) + 4),
                text_anchor="end",
            )
        )
    for value, text in x.ticks:
        across, _ = at(value, y.low)
        parts.append(
            element("text", text, class_="tick", x=across, y=str(bottom + 16), text_anchor="middle")
        )
    parts.append(
        element("line", class_="axis", x1=str(_LEFT), x2=str(right), y1=str(bottom), y2=str(bottom))
    )
    middle = str((_LEFT + right) // 2)
    parts.append(
        element(
            "text",
            chart.x_title,
            class_="axis-title",
            x=middle,
            y=str(_HEIGHT - 6),
            text_anchor="middle",
        )
    )
    if chart.diagonal:
        low, high = max(x.low, y.low), min(x.high, y.high)
        (x1, y1), (x2, y2) = at(low, low), at(high, high)
        parts.append(element("line", class_="cross", x1=x1, y1=y1, x2=x2, y2=y2))
    parts += [part for line in chart.lines for part in _line(line, at)]
    if chart.marked is not None:
        across, _ = at(chart.marked, y.low)
        parts.append(
            element("line", class_="worst-cut", x1=across, x2=across, y1=str(_TOP), y2=str(bottom))
        )
    label = f"{chart.title}: {chart.y_title}"
    drawing = element(
        "svg", *parts, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=label
    )
    return element("div", element("h3", chart.y_title), drawing, class_="plot still")


def _line(
    line: Line,
    at: Callable[[float, float], tuple[str, str]],
) -> list[Markup]:
    def path(points: Sequence[tuple[float, float]]) -> str:
        return " ".join(",".join(at(*point)) for point in points)

    color = line.color % 7
    dash = (line.color % 7 + line.color // 7) % 4
    parts = []
    if line.band:
        edge = [
            *((x, low) for x, low, _ in line.band),
            *((x, high) for x, _, high in reversed(line.band)),
        ]
        parts.append(element("polygon", class_=f"area c{color}", points=path(edge)))
    name = element("title", line.name)
    if line.points:
        parts.append(
            element("polyline", name, class_=f"group c{color} d{dash}", points=path(line.points))
        )
    if not line.dots:
        return parts
    for point in line.points:
        across, down = at(*point)
        parts.append(element("circle", class_=f"fill c{color}", cx=across, cy=down, r="3"))
    return parts


def line_key(names: Sequence[str]) -> Markup:
    """The legend of lines whose colors are numbered as their names are."""
    entries = []
    for at, name in enumerate(names):
        line = element(
            "line",
            class_=f"group c{at % 7} d{(at % 7 + at // 7) % 4}",
            x1="1",
            x2="27",
            y1="7",
            y2="7",
        )
        entries.append(
            element("li", element("svg", line, width="28", height="14", aria_hidden="true"), name)
        )
    return element("ul", *entries, class_="key")


def interval_bar(
    value: float, interval: Interval | None, limit: float, verdict: str = ""
) -> Markup:
    """A value and its interval around 0, on a scale that ends at ``limit`` on either side."""

    def at(number: float) -> str:
        return f"{_BAR / 2 * (1 + max(-1.0, min(1.0, number / limit if limit else 0.0))) * 0.96 + 0.02 * _BAR:.1f}"

    middle = at(0.0)
    parts = [element("line", class_="axis", x1=middle, x2=middle, y1="0", y2="14")]
    if interval is not None:
        ends = {"x1": at(interval.low), "x2": at(interval.high)}
        parts.append(element("line", class_=f"between {verdict}", y1="7", y2="7", **ends))
    parts.append(element("circle", class_=f"measured {verdict}", cx=at(value), cy="7", r="4"))
    return element(
        "svg",
        joined(*parts),
        class_="change-bar",
        viewBox=f"0 0 {_BAR} 14",
        width=str(_BAR),
        aria_hidden="true",
    )
