"""Sections of an audit's page: "By group", with base rates, AUC, accuracy, log loss, calibration and their curves; and
"Along a number", with quantiles of the scores and selection rates drawn along an attribute; no script."""

from __future__ import annotations

from collections.abc import Sequence

from metrifair.auditing.records import AlongNumber, ByGroup, GroupFigures, Measure
from metrifair.figures.intervals import FEWEST
from metrifair.report.charts import Axis, Line, axis, line_chart, line_key
from metrifair.report.html import Markup, element, joined
from metrifair.wording.numbers import MISSING, interval_text, number_text, percent_text

FIGURES = {
    "base_rate": "Base rate",
    "auc": "AUC",
    "accuracy": "Accuracy",
    "log_loss": "Log loss",
    "calibration_error": "Calibration error",
}
"""What each figure is called."""

MEANINGS = {
    "Base rate": "The share of the group that has the outcome which high scores are to foretell.",
    "AUC": "How often a member with the outcome scores higher than one without it, both of the same group; ties count "
    "one half. The interval is by DeLong's errors.",
    "Log loss": "The mean of the logarithmic loss of probabilities: small where they are both sharp and right.",
    "Calibration error": "How far, on average, the mean score of people of about one score is from the share of them "
    "with the outcome, in ten bins of equal width (expected calibration error). Noise alone makes it larger than 0.",
}
"""What the words of the section mean."""

MEAN_SCORE, OUTCOME_RATE = "Mean score", "Share with the outcome, by mean score"
"""What the axes of a reliability curve are called."""

_MOST_TABLES = 12
_MOST_DRAWN = 4
_MOST_LINES = 12


def by_group_section(tables: Sequence[ByGroup]) -> Markup:
    """A table of figures with intervals for each attribute and stratum, and the curves of the first few."""
    if not tables:
        return Markup("")
    more = len(tables) - _MOST_TABLES
    said = f"{more} more tables are in the JSON. " if more > 0 else ""
    return element(
        "section",
        element("h2", "By group", id="by-group-title"),
        element("p", f"{said}Small figures are intervals, each of one figure by itself.", class_="hint"),
        *(_table(one, drawn=number < _MOST_DRAWN) for number, one in enumerate(tables[:_MOST_TABLES])),
        id="by-group",
        class_="card",
        aria_labelledby="by-group-title",
    )


def measure_text(found: Measure | None) -> str:
    """The value, or the proven bounds of one that rows were only counted for.

    >>> measure_text(Measure(0.75)), measure_text(None)
    ('0.750', '–')
    """
    if found is None:
        return MISSING
    bracket = found.bracket
    if bracket is None or number_text(bracket.low) == number_text(bracket.high):
        return number_text(found.value)
    return interval_text(bracket)


def _table(found: ByGroup, *, drawn: bool) -> Markup:
    known = {key: name for key, name in FIGURES.items() if any(getattr(one, key) is not None for one in found.groups)}
    head = element("tr", *(element("th", name, scope="col") for name in ("Group", "Rows", *known.values())))
    rows = [
        element(
            "tr",
            element("th", one.group, scope="row"),
            element("td", f"{one.size:,}"),
            *(_cell(getattr(one, key)) for key in known),
        )
        for one in found.groups
    ]
    gaps = [_cell(found.gaps.get(key)) for key in known]
    rows.append(
        element("tr", element("th", "Largest difference", scope="row"), element("td", ""), *gaps, class_="total")
    )
    where = f"{found.attribute}, {found.within}"
    table = element("table", element("thead", head), element("tbody", *rows), class_="figures")
    region = element("div", table, class_="scroll inside", tabindex="0", role="region", aria_label=f"By group: {where}")
    return joined(element("h3", where), region, *([_curves(found)] if drawn else []))


def _cell(found: Measure | None) -> Markup:
    interval = None if found is None else found.interval
    small = [] if interval is None else [element("small", interval_text(interval))]
    return element("td", measure_text(found), *small)


def _curves(found: ByGroup) -> Markup:
    groups = found.groups[:_MOST_LINES]
    unit = axis([0.0, 1.0], from_zero=True, top=1.0, count=5)
    charts = []
    if any(one.roc for one in groups):
        lines = [Line(one.group, at, one.roc) for at, one in enumerate(groups) if one.roc]
        charts.append(_chart(found, "ROC curve", lines, unit, ("False positive rate", "True positive rate")))
    if any(one.reliability for one in groups):
        lines = [_reliability(one, at) for at, one in enumerate(groups) if one.reliability]
        charts.append(_chart(found, "Reliability", lines, unit, (MEAN_SCORE, OUTCOME_RATE)))
    return (
        joined(element("div", *charts, class_="pair"), line_key([one.group for one in groups]))
        if charts
        else Markup("")
    )


def _reliability(one: GroupFigures, at: int) -> Line:
    drawn = [each for each in one.reliability if each.size >= FEWEST]  # a handful of rows shows nothing but noise
    band = [(each.score, each.interval.low, each.interval.high) for each in drawn if each.interval is not None]
    return Line(one.group, at, [(each.score, each.rate) for each in drawn], band, dots=True)


def _chart(found: ByGroup, name: str, lines: Sequence[Line], unit: Axis, titles: tuple[str, str]) -> Markup:
    about = f"{name} of {found.attribute}, {found.within}"
    return line_chart(about, unit, unit, lines, x_title=titles[0], y_title=titles[1], diagonal=True)


_MOST = 12  # sets that are drawn: a page promises not to be large
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 520, 280, 58, 12, 14, 46
_OUTER, _INNER, _MIDDLE = ("10%", "90%"), ("25%", "75%"), "50%"


def along_section(found: Sequence[AlongNumber]) -> Markup:
    """All drawings and tables as one section of the page; nothing where no attribute is a number."""
    if not found:
        return Markup("")
    left_out = len(found) - _MOST
    return element(
        "section",
        element("h2", "Along a number", id="along-title"),
        *(part for one in found[:_MOST] for part in _drawn(one)),
        *(
            [element("p", f"{left_out:,} more are in the JSON file of the audit.", class_="hint")]
            if left_out > 0
            else []
        ),
        id="along",
        class_="card",
        aria_labelledby="along-title",
    )


def _drawn(one: AlongNumber) -> list[Markup]:
    """Heading, sentence, drawings with their legend, and the same as a table."""
    x = axis([*one.at, *([] if one.cut is None else [one.cut])])
    scores = [value for values in one.quantiles.values() for value in values]
    probabilities = min(scores) >= 0 and max(scores) <= 1
    y = axis(scores, from_zero=probabilities, top=1.0) if probabilities else axis(scores)
    drawings = [("Scores", _quantiles(one, x, y))]
    if one.selection_rates:
        drawings.append(("Selected", _rates(one, x)))
    entries = [
        element("li", element("span", "\N{BLACK SQUARE}", class_=kind), text)
        for kind, text in (("middle", "median"), ("inner", "half of the people"), ("outer", "eight of ten people"))
    ]
    if one.cut is not None:
        entries.append(
            element("li", element("span", "\N{BOX DRAWINGS LIGHT QUADRUPLE DASH VERTICAL}"), "the worst cut")
        )
    return [
        element("h3", f"{one.attribute}, {one.within}"),
        element(
            "p",
            f"{one.sentence} {len(one.bands)} bands of {one.attribute}, of about as many people each.",
            class_="hint",
        ),
        element(
            "div",
            *(
                element("div", element("h3", title), element("div", drawing, class_="plot"))
                for title, drawing in drawings
            ),
            class_="pair",
        ),
        element("ul", *entries, class_="key"),
        element("details", element("summary", "The figures"), _along_table(one)),
    ]


class _Scales:
    """Where numbers lie in a drawing."""

    def __init__(self, x: Axis, y: Axis) -> None:
        self.x_axis, self.y_axis = x, y

    def x(self, value: float) -> float:
        share = (value - self.x_axis.low) / (self.x_axis.high - self.x_axis.low)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = (value - self.y_axis.low) / (self.y_axis.high - self.y_axis.low)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)

    def path(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        return "L".join(f"{self.x(x):.1f} {self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))


def _quantiles(one: AlongNumber, x: Axis, y: Axis) -> Markup:
    scales = _Scales(x, y)
    shapes = []
    for kind, (low, high) in (("outer", _OUTER), ("inner", _INNER)):
        there, back = scales.path(one.at, one.quantiles[low]), scales.path(one.at[::-1], one.quantiles[high][::-1])
        shapes.append(element("path", d=f"M{there}L{back}Z", class_=f"middling {kind}"))
    shapes.append(element("path", d=f"M{scales.path(one.at, one.quantiles[_MIDDLE])}", class_="front"))
    return _frame(one, scales, shapes, "score", f"Quantiles of the scores along {one.attribute}, {one.within}")


def _rates(one: AlongNumber, x: Axis) -> Markup:
    shares = axis([*one.selection_rates, 0.0], from_zero=True, top=1.0)
    scales = _Scales(x, Axis(shares.low, shares.high, tuple((at, f"{at:.0%}") for at, _ in shares.ticks)))
    points = [
        element("circle", cx=f"{scales.x(at):.1f}", cy=f"{scales.y(rate):.1f}", r="3.5", class_="measured")
        for at, rate in zip(one.at, one.selection_rates, strict=True)
    ]
    line = element("path", d=f"M{scales.path(one.at, one.selection_rates)}", class_="front")
    return _frame(one, scales, [line, *points], "selected", f"Selection rates along {one.attribute}, {one.within}")


def _frame(one: AlongNumber, scales: _Scales, shapes: Sequence[Markup], title: str, label: str) -> Markup:
    """Grid, ticks, titles, the shapes, and where the worst cut is."""
    low, high = str(_HEIGHT - _BOTTOM), str(_TOP)
    lines = []
    for at, text in scales.y_axis.ticks:
        y = f"{scales.y(at):.1f}"
        lines += [
            element("line", x1=str(_LEFT), x2=str(_WIDTH - _RIGHT), y1=y, y2=y, class_="grid"),
            element("text", text, x=str(_LEFT - 8), y=f"{scales.y(at) + 4:.1f}", text_anchor="end", class_="tick"),
        ]
    for at, text in scales.x_axis.ticks:
        x = f"{scales.x(at):.1f}"
        lines += [
            element("line", x1=x, x2=x, y1=high, y2=low, class_="grid"),
            element("text", text, x=x, y=str(_HEIGHT - _BOTTOM + 18), text_anchor="middle", class_="tick"),
        ]
    middle, centre = (_LEFT + _WIDTH - _RIGHT) // 2, (_TOP + _HEIGHT - _BOTTOM) // 2
    titles = [
        element("text", one.attribute, x=str(middle), y=str(_HEIGHT - 6), text_anchor="middle", class_="axis-title"),
        element(
            "text",
            title,
            transform=f"translate(13 {centre}) rotate(-90)",
            text_anchor="middle",
            class_="axis-title upright",
        ),
    ]
    cut = []
    if one.cut is not None:
        x = f"{scales.x(one.cut):.1f}"
        cut.append(element("line", x1=x, x2=x, y1=high, y2=low, class_="worst-cut"))
    inside = joined(*lines, *shapes, *cut, *titles)
    return element("svg", inside, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", aria_label=label)


def _along_table(one: AlongNumber) -> Markup:
    shares = list(one.quantiles)
    head = [
        one.attribute,
        "Rows",
        *(f"{share} score up to" for share in shares),
        *(["Selected"] if one.selection_rates else []),
    ]
    rows = []
    for place, name in enumerate(one.bands):
        cells = [f"{one.sizes[place]:,}", *(number_text(one.quantiles[share][place]) for share in shares)]
        cells += [percent_text(one.selection_rates[place])] if one.selection_rates else []
        rows.append(element("tr", element("th", name, scope="row"), *(element("td", cell) for cell in cells)))
    heading = element("thead", element("tr", *(element("th", name, scope="col") for name in head)))
    table = element("table", heading, element("tbody", *rows))
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=f"Along {one.attribute}")
