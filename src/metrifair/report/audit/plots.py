"""Charts of audits, comparisons and series by matplotlib, as their ``plot`` returns them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from metrifair.auditing.ranking import main_metric, sort_findings
from metrifair.auditing.records import (
    AuditRecord,
    ByGroup,
    Difference,
    DifferenceRecord,
    Distribution,
    Finding,
    Look,
    SeriesRecord,
)
from metrifair.errors import DataError, Remedy
from metrifair.metrics.registry import is_largest_gap
from metrifair.report.audit.by_group import reliability_chart, roc_chart
from metrifair.report.audit.charts import (
    cumulative_chart,
    distribution_chart,
    is_about,
    pair_gap,
)
from metrifair.report.audit.difference import (
    alarm_points,
    look_axis,
    look_line,
    sorted_differences,
    sorted_series,
)
from metrifair.report.charts import Axis, Gap, Line, LineChart, axis, widest_gap
from metrifair.report.display import (
    ALARM_COLOR,
    INK,
    ChartDisplay,
    IntervalRow,
    draw_intervals,
    draw_lines,
    name_label,
)
from metrifair.support.checks import check_known
from metrifair.wording.metrics import metric_words
from metrifair.wording.numbers import name_text, number_text
from metrifair.wording.terms import term_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AuditChartKind: TypeAlias = Literal["distributions", "densities", "findings", "roc", "reliability"]
"""The content of the chart."""

_MOST_ROWS = 20
_MOST_SERIES = 7
_MOST_TICKS = 6
_CUMULATIVE = "Share of the group below each score"


def audit_chart(record: AuditRecord, kind: AuditChartKind, ax: Axes | None) -> ChartDisplay:
    """A chart of one kind; a DataError if there is nothing to draw.

    >>> audit_chart(AuditRecord(9, 0, (0.0, 1.0), 0.95, []), "roc", None)
    Traceback (most recent call last):
    metrifair.errors.DataError: this audit has no curves by group to draw, which need two labels and one score; ...
    """
    check_known("kind", kind, get_args(AuditChartKind))
    if kind == "findings":
        return _draw_findings(record, ax)
    if kind == "distributions":
        return _draw_distributions(record, ax)
    if kind == "densities":
        return draw_lines(_density_chart(_first_distribution(record)), ax)
    if kind == "roc":
        table = _table_with(record, kind, "curves by group", "two labels and one score")
        return draw_lines(roc_chart(table), ax)
    table = _table_with(record, kind, "reliability curves", "two labels and probabilities")
    return draw_lines(reliability_chart(table), ax)


def _table_with(record: AuditRecord, curve: str, missing: str, requirement: str) -> ByGroup:
    """The first table of figures by group that has these curves."""
    for table in record.by_group:
        if any(getattr(group, curve) for group in table.groups):
            return table
    raise DataError(
        f"this audit has no {missing} to draw, which need {requirement}",
        remedy=Remedy("y_true"),
    )


def _draw_findings(record: AuditRecord, ax: Axes | None) -> ChartDisplay:
    """The first findings by the main metric: value and interval of each comparison."""
    metric = main_metric(record.findings)
    if not metric:
        raise DataError(
            "this audit has no findings to draw; each comparison needs two groups with rows"
        )
    findings = [finding for finding in sort_findings(record.findings) if finding.metric == metric]
    rows = [
        IntervalRow(_place_name(finding), finding.value, finding.joint_interval)
        for finding in findings[:_MOST_ROWS]
    ]
    return draw_intervals(rows, ax, title="", x_title=metric_words(metric).name)


def _place_name(figure: Finding | Difference | Look) -> str:
    """The groups and the set of a figure.

    >>> look = Look("May", "sex", "equal_opportunity", "label=1", ("f", "m"), "energy", (90, 80), 0.1)
    >>> _place_name(look)
    'f vs m of sex, label=1'
    """
    groups = " vs ".join(map(name_text, figure.groups)) or "all groups"
    return f"{groups} of {figure.attribute}, {figure.within}"


def _first_distribution(record: AuditRecord) -> Distribution:
    """The distribution that the first finding is about, or else the first one."""
    by_place = {(part.attribute, part.within): part for part in record.distributions}
    if not by_place:
        raise DataError(
            "this audit has no distributions to draw; an attribute needs 2 to 30 groups with rows"
        )
    for finding in sort_findings(record.findings):
        found = by_place.get((finding.attribute, finding.within))
        if found is not None:
            return found
    return record.distributions[0]


def _draw_distributions(record: AuditRecord, ax: Axes | None) -> ChartDisplay:
    """The share of each group below each score, with the largest gap."""
    distribution = _first_distribution(record)
    display = draw_lines(cumulative_chart(distribution, _CUMULATIVE), ax)
    gap = _largest_gap(record, distribution)
    if gap is not None:
        _mark_gap(display.ax_, gap)
    return display


def _mark_gap(axes: Axes, gap: Gap) -> None:
    """A line between both shares at the gap's score, and its size on the side with more room."""
    axes.vlines(gap.score, gap.low, gap.high, color=INK, linewidth=2)
    offset = -6
    alignment = "right"
    if gap.score < sum(axes.get_xlim()) / 2:
        offset = 6
        alignment = "left"
    axes.annotate(
        f"gap {number_text(gap.size)}",
        (gap.score, (gap.low + gap.high) / 2),
        (offset, 0),
        textcoords="offset points",
        horizontalalignment=alignment,
        verticalalignment="center",
        bbox={"facecolor": axes.get_facecolor(), "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )


def _largest_gap(record: AuditRecord, distribution: Distribution) -> Gap | None:
    """The gap of the first finding about a distribution, or else of its curves."""
    place = distribution.attribute, distribution.within
    for finding in sort_findings(record.findings):
        is_here = place == (finding.attribute, finding.within)
        if is_here and is_largest_gap(finding.metric) and is_about(finding, distribution.curves):
            return pair_gap(distribution.curves, finding)
    return widest_gap(distribution.curves)


def _density_chart(distribution: Distribution) -> LineChart:
    """The density of the scores of each group that has one."""
    curves = distribution.curves
    if not curves.density:
        raise DataError(
            "this audit has no densities to draw, which need groups with many different scores; "
            'plot("distributions") draws the shares below each score'
        )
    colors = {name: color for color, name in enumerate(curves.cumulative)}
    lines = [
        Line(
            name_text(name),
            colors[name],
            list(zip(curves.grid, values, strict=True)),
            [(score, 0.0, value) for score, value in zip(curves.grid, values, strict=True)],
        )
        for name, values in curves.density.items()
    ]
    highest = max(max(values) for values in curves.density.values())
    y = axis([0.0, highest], from_zero=True, count=4, least_span=0.0)
    return distribution_chart(distribution, lines, "Density", y)


def difference_chart(record: DifferenceRecord, ax: Axes | None) -> ChartDisplay:
    """The differences of the main metric, with the intervals that hold for all differences."""
    metric = main_metric(record.differences)
    if not metric:
        raise DataError("this comparison has no differences to draw")
    several = len(record.names) > 2
    rows = [
        IntervalRow(
            f"{figure.model}: {_place_name(figure)}" if several else _place_name(figure),
            figure.difference,
            figure.joint_interval,
        )
        for figure in sorted_differences(record.differences)
        if figure.metric == metric
    ]
    if several:
        title = f"Differences from {record.names[0]}"
    else:
        title = f"{record.names[1]} less {record.names[0]}"
    x_title = f"Difference: {term_name(metric)}"
    return draw_intervals(rows[:_MOST_ROWS], ax, title=title, x_title=x_title)


def series_chart(record: SeriesRecord, ax: Axes | None) -> ChartDisplay:
    """The distances of the main metric at each look, those with the smallest p-values first."""
    metric = main_metric(record.series)
    if not metric:
        raise DataError("this series has no distances to draw")
    series = [looks for looks in sorted_series(record) if looks[0].metric == metric][:_MOST_SERIES]
    places = {name: place for place, name in enumerate(record.looks)}
    lines = [
        look_line(looks, places, _place_name(looks[0]), color) for color, looks in enumerate(series)
    ]
    drawn = list(chain.from_iterable(series))
    x = Axis(0, max(1, len(places) - 1), ())
    y_title = metric_words(metric).name
    display = draw_lines(LineChart("", x, look_axis(drawn), lines, term_name("look"), y_title), ax)
    step = max(1, -(-len(places) // _MOST_TICKS))
    display.ax_.set_xticks(
        range(0, len(places), step), [name_label(name) for name in record.looks[::step]]
    )
    alarms = alarm_points(drawn, places)
    if alarms:
        _mark_alarms(display.ax_, alarms)
    return display


def _mark_alarms(axes: Axes, alarms: Sequence[tuple[float, float]]) -> None:
    """Diamonds at the alarms, and their entry in the legend."""
    looks, values = zip(*alarms, strict=True)
    marks = axes.scatter(looks, values, marker="D", color=ALARM_COLOR, zorder=3)
    legend: Any = axes.get_legend()
    names = [text.get_text() for text in legend.get_texts()]
    axes.legend([*legend.legend_handles, marks], [*names, "alarm"])
