"""Sections of an audit's page that need no script: figures and curves by group, and scores
along numeric attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from metrifair.auditing.records import (
    FIGURES_OF_GROUPS,
    AlongNumber,
    AuditRecord,
    ByGroup,
    Finding,
    Measure,
    MeasuresByGroup,
    ReliabilityBin,
)
from metrifair.figures.intervals import FEWEST
from metrifair.metrics.registry import is_largest_gap
from metrifair.report.charts import (
    Axis,
    Line,
    LineChart,
    axis,
    line_key,
    svg_chart,
)
from metrifair.report.html import (
    Markup,
    card,
    column_row,
    element,
    joined,
    table_head,
    table_region,
    table_row,
    with_small,
)
from metrifair.wording.findings import finding_sentence, measure_text
from metrifair.wording.numbers import (
    count_text,
    interval_text,
    name_text,
    number_text,
    percent_text,
)
from metrifair.wording.tables import (
    FIGURES_BY_GROUP,
    figure_rows,
    filled,
    metric_table,
)
from metrifair.wording.terms import term_name

_MOST_TABLES = 12
_MOST_DRAWN = 4
_MOST_LINES = 12
_WEIGHT_ROUNDING = 1e-9  # of sums of weights
_UNIT = axis([0.0, 1.0], from_zero=True, top=1.0, count=5)


def by_group_section(tables: Sequence[ByGroup]) -> Markup:
    """A table of figures with intervals for each attribute and stratum, and the curves of the
    first few.
    """
    if not tables:
        return Markup("")
    more = len(tables) - _MOST_TABLES
    elsewhere = f"The JSON has {count_text(more, 'more table')}. " if more > 0 else ""
    hint = element(
        "p", f"{elsewhere}Small figures are confidence intervals of single figures.", class_="hint"
    )
    tables_html = (
        _table(table, curves=number < _MOST_DRAWN)
        for number, table in enumerate(tables[:_MOST_TABLES])
    )
    return card("by-group", "By group", hint, *tables_html)


def _table(
    by_group: ByGroup,
    *,
    curves: bool,
) -> Markup:
    groups = figure_rows(by_group)
    columns = filled(FIGURES_BY_GROUP.pick("group", "rows", *FIGURES_OF_GROUPS), groups)
    rows = [column_row(columns, group) for group in groups]
    gaps = (_cell(by_group.gaps.get(column.key)) for column in columns[2:])
    rows.append(table_row(term_name("largest_difference"), ["", *gaps], class_="total"))
    where = f"{by_group.attribute}, {by_group.within}"
    head = table_head(column.heading for column in columns)
    table = element("table", head, element("tbody", *rows), class_="figures")
    region = table_region(table, "scroll inside", aria_label=f"By group: {where}")
    return joined(element("h3", where), region, *([_curves(by_group)] if curves else []))


def _cell(measure: Measure | None) -> Markup:
    interval = None if measure is None else measure.interval
    return with_small(measure_text(measure), "" if interval is None else interval_text(interval))


def _curves(by_group: ByGroup) -> Markup:
    charts = [chart for chart in (roc_chart(by_group), reliability_chart(by_group)) if chart.lines]
    drawn = [
        replace(chart, lines=[line for line in chart.lines if line.color < _MOST_LINES])
        for chart in charts
    ]
    if not drawn:
        return Markup("")
    key = line_key([name_text(group.group) for group in by_group.groups[:_MOST_LINES]])
    return joined(element("div", *map(svg_chart, drawn), class_="pair"), key)


def roc_chart(by_group: ByGroup) -> LineChart:
    """The ROC curve of each group."""
    lines = [
        Line(name_text(group.group), at, group.roc)
        for at, group in enumerate(by_group.groups)
        if group.roc
    ]
    title = f"ROC curve of {by_group.attribute}, {by_group.within}"
    return LineChart(
        title,
        _UNIT,
        _UNIT,
        lines,
        term_name("false_positive_rate"),
        term_name("true_positive_rate"),
        diagonal=True,
    )


def reliability_chart(by_group: ByGroup) -> LineChart:
    """The reliability curve of each group, with intervals; bins with few rows are omitted as
    noise.
    """
    lines = [
        reliability_line(name_text(group.group), color, group.reliability, group.size)
        for color, group in enumerate(by_group.groups)
    ]
    lines = [line for line in lines if line.points]
    title = f"Reliability of {by_group.attribute}, {by_group.within}"
    return LineChart(
        title,
        _UNIT,
        _UNIT,
        lines,
        term_name("mean_score"),
        "Share with the outcome, by mean score",
        diagonal=True,
    )


def reliability_line(
    name: str,
    color: int,
    bins: Sequence[ReliabilityBin],
    rows: int,
) -> Line:
    """The reliability curve of ``rows`` rows, without bins of few rows.

    The size of a bin is a sum of weights, in any unit: its share of all weight is its share of the
    rows.
    """
    total = sum(bin_.size for bin_ in bins)
    fewest = FEWEST * total / max(1, rows)
    drawn = [bin_ for bin_ in bins if bin_.size >= fewest * (1 - _WEIGHT_ROUNDING)]
    points = [(bin_.score, bin_.rate) for bin_ in drawn]
    band = [
        (bin_.score, bin_.interval.low, bin_.interval.high)
        for bin_ in drawn
        if bin_.interval is not None
    ]
    return Line(name, color, points, band, dots=True)


_MOST_ROWS = 100  # of a table of metrics


def group_metrics_section(tables: Sequence[MeasuresByGroup]) -> Markup:
    """A table of metrics with intervals for each attribute and stratum."""
    if not tables:
        return Markup("")
    more = len(tables) - _MOST_TABLES
    elsewhere = f" Not shown: {count_text(more, 'more table')}; see to_frame()." if more > 0 else ""
    hint = element(
        "p", f"Small figures are bootstrap intervals of single values.{elsewhere}", class_="hint"
    )
    return card(
        "group-metrics", "Metrics by group", hint, *map(_metrics_table, tables[:_MOST_TABLES])
    )


def _metrics_table(table: MeasuresByGroup) -> Markup:
    where = f"{table.attribute}, {table.within}"
    columns = list(metric_table(table).values())[2:]
    names = [column.key for column in columns[2:]]
    rows = [column_row(columns, group) for group in figure_rows(table)[:_MOST_ROWS]]
    for key, values in (
        ("largest_difference", table.differences),
        ("smallest_ratio", table.ratios),
    ):
        cells = ["", *(number_text(values[name]) for name in names)]
        rows.append(table_row(term_name(key), cells, class_="total"))
    hidden = len(table.groups) - _MOST_ROWS
    missing = table.missing or 0
    counts = {
        "more groups are not shown": hidden,
        "rows with a missing group are left out": missing,
    }
    remarks = [
        element("p", f"{count:,} {text}.", class_="hint")
        for text, count in counts.items()
        if count > 0
    ]
    body = element(
        "table",
        table_head(column.heading for column in columns),
        element("tbody", *rows),
        class_="figures",
    )
    region = table_region(body, "scroll inside", aria_label=f"Metrics by group: {where}")
    return joined(element("h3", where), region, *remarks)


_MOST_ALONG = 12  # sets that are drawn, to keep pages small
_OUTER = ("10%", "90%")
_INNER = ("25%", "75%")
_MIDDLE = "50%"
_ALONG_KEY = "The line is the median; the bands hold the middle 50% and 80% of the rows."


def along_section(record: AuditRecord) -> Markup:
    """Charts and tables along all numeric attributes; empty if there are none."""
    if not record.along:
        return Markup("")
    more = len(record.along) - _MOST_ALONG
    worst = [
        finding
        for finding in record.findings
        if finding.cut is not None and is_largest_gap(finding.metric)
    ]
    cuts = {(row.attribute, row.within): row for row in worst}
    parts = [
        part
        for row in record.along[:_MOST_ALONG]
        for part in _along(row, cuts.get((row.attribute, row.within)))
    ]
    if more > 0:
        parts.append(element("p", f"{more:,} more are in the JSON of the audit.", class_="hint"))
    return card("along", "Along a numeric attribute", *parts)


def _along(number: AlongNumber, finding: Finding | None) -> list[Markup]:
    """Heading, sentence, charts, and the same as a table."""
    where = f"{number.attribute}, {number.within}"
    x = axis([*number.at, *([] if number.cut is None else [number.cut])])
    scores = [value for values in number.quantiles.values() for value in values]
    probabilities = min(scores) >= 0 and max(scores) <= 1
    y = axis(scores, from_zero=probabilities, top=1.0) if probabilities else axis(scores)
    bands = [
        Line(
            name,
            0,
            [],
            list(zip(number.at, number.quantiles[low], number.quantiles[high], strict=True)),
        )
        for name, (low, high) in (("middle 80%", _OUTER), ("middle 50%", _INNER))
    ]
    median = Line("median", 0, list(zip(number.at, number.quantiles[_MIDDLE], strict=True)))
    charts = [
        LineChart(where, x, y, [*bands, median], number.attribute, "Scores", marked=number.cut)
    ]
    if number.selection_rates:
        shares = axis([*number.selection_rates, 0.0], from_zero=True, top=1.0)
        shares = Axis(shares.low, shares.high, tuple((at, f"{at:.0%}") for at, _ in shares.ticks))
        rates = Line(
            "selected", 0, list(zip(number.at, number.selection_rates, strict=True)), dots=True
        )
        charts.append(
            LineChart(
                where,
                x,
                shares,
                [rates],
                number.attribute,
                term_name("selection_rate"),
                marked=number.cut,
            )
        )
    cut = "" if number.cut is None else " The dashed line is the cut of the largest gap."
    hint = f"{len(number.bands)} bands of {number.attribute} of about equal size. {_ALONG_KEY}{cut}"
    sentence = "" if finding is None else finding_sentence(finding)
    return [
        element("h3", where),
        element("p", f"{sentence} {hint}".strip(), class_="hint"),
        element("div", *map(svg_chart, charts), class_="pair"),
        element("details", element("summary", "The figures"), _along_table(number)),
    ]


def _along_table(number: AlongNumber) -> Markup:
    shares = list(number.quantiles)
    head = [number.attribute, term_name("rows"), *(f"{share} quantile" for share in shares)]
    head += [term_name("selection_rate")] if number.selection_rates else []
    rows = []
    for place, name in enumerate(number.bands):
        cells = [
            f"{number.sizes[place]:,}",
            *(number_text(number.quantiles[share][place]) for share in shares),
        ]
        cells += [percent_text(number.selection_rates[place])] if number.selection_rates else []
        rows.append(table_row(name, cells))
    table = element("table", table_head(head), element("tbody", *rows))
    return table_region(table, aria_label=f"Along {number.attribute}")
