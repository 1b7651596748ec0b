"""The section "By group" of an audit's page: base rates, AUC, accuracy, log loss, calibration, and their curves."""

from __future__ import annotations

from collections.abc import Sequence

from metrifair.report.charts import Axis, Line, axis, line_chart, line_key
from metrifair.report.html import Markup, element, joined
from metrifair.report.numbers import MISSING, number_text
from metrifair.results import FEWEST, ByGroup, GroupFigures, Measure

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
    return f"{number_text(bracket.low)} to {number_text(bracket.high)}"


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
    small = (
        [] if interval is None else [element("small", f"{number_text(interval.low)} to {number_text(interval.high)}")]
    )
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
