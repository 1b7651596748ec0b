"""The section of an audit's page on probabilities of groups: estimates, corrections, bounds,
and reliability.
"""

from __future__ import annotations

from metrifair.auditing.records import (
    AuditRecord,
    ProxyEstimate,
    ProxyRecord,
)
from metrifair.figures.intervals import Interval
from metrifair.report.audit.by_group import reliability_line
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
    element,
    table_head,
    table_region,
    table_row,
)
from metrifair.wording.numbers import percent_text
from metrifair.wording.proxies import check_hints
from metrifair.wording.tables import PROXY_ESTIMATES, estimate_rows
from metrifair.wording.terms import term_name

_KINDS = list(map(term_name, PROXY_ESTIMATES))
_APART = 0.16  # between the four estimates of a group, where groups are 1 apart
_MIDDLE = (len(_KINDS) - 1) / 2
_MOST_DRAWN = 12  # groups
_UNIT = axis([0.0, 1.0], from_zero=True, top=1.0, count=5)


def proxy_section(record: AuditRecord) -> Markup:
    """A picture and a table of the estimates, and the probabilities' reliability; empty if
    groups are known.
    """
    proxy = record.proxy
    if proxy is None or not proxy.estimates:
        return Markup("")
    charts = (
        (rates_chart(proxy), _KINDS),
        (reliability_chart(proxy), list(proxy.reliability)[:_MOST_DRAWN]),
    )
    drawn = [
        element("div", svg_chart(chart), line_key(names)) for chart, names in charts if chart.lines
    ]
    headings, lines = estimate_rows(proxy.estimates)
    rows = [table_row(first, cells) for first, *cells in lines]
    table = element("table", table_head(headings), element("tbody", *rows), class_="figures")
    return card(
        "proxy",
        f"Weighted by {proxy.attribute}",
        element("p", " ".join(check_hints(proxy)), class_="hint"),
        *([element("div", *drawn, class_="pair")] if drawn else []),
        table_region(table, "scroll inside", aria_label=f"Estimates weighted by {proxy.attribute}"),
    )


def rates_chart(proxy: ProxyRecord) -> LineChart:
    """Selection rates: both ends, corrected estimate and bounds of each group side by side."""
    rates = [estimate for estimate in proxy.estimates if estimate.figure == "selection_rate"][
        :_MOST_DRAWN
    ]
    lines = [line for place, rate in enumerate(rates) for line in _estimates(rate, place)]
    shares = Axis(_UNIT.low, _UNIT.high, tuple((at, f"{at:.0%}") for at, _ in _UNIT.ticks))
    groups = Axis(
        -0.5,
        len(rates) - 0.5,
        tuple((float(place), rate.groups[0]) for place, rate in enumerate(rates)),
    )
    return LineChart(
        f"Selection rates by {proxy.attribute}",
        groups,
        shares,
        lines,
        proxy.attribute,
        term_name("selection_rate"),
    )


def _estimates(estimate: ProxyEstimate, place: int) -> list[Line]:
    """A line with a dot for each estimate; bounds have no dot."""
    group = estimate.groups[0]
    lines = list[Line]()
    for color, measure in enumerate((estimate.weighted, estimate.divided, estimate.corrected)):
        if measure is not None:
            at = place + (color - _MIDDLE) * _APART
            interval = measure.interval
            if interval is not None:
                lines += [_segment(f"{_KINDS[color]}, {group}", color, at, interval)]
            lines.append(
                Line(
                    f"{group}: {percent_text(measure.value)}",
                    color,
                    [(at, measure.value)],
                    dots=True,
                )
            )
    if estimate.bounds is not None:
        color = len(_KINDS) - 1
        lines.append(
            _segment(
                f"{_KINDS[color]}, {group}",
                color,
                place + (color - _MIDDLE) * _APART,
                estimate.bounds,
            )
        )
    return lines


def _segment(
    name: str,
    color: int,
    at: float,
    ends: Interval,
) -> Line:
    return Line(name, color, [(at, max(0.0, ends.low)), (at, min(1.0, ends.high))])


def reliability_chart(proxy: ProxyRecord) -> LineChart:
    """The share of rows with a known group that belong to each group, by its probability;
    without bins of few rows.
    """
    curves = list(proxy.reliability.items())[:_MOST_DRAWN]
    lines = [
        reliability_line(group, color, bins, proxy.known)
        for color, (group, bins) in enumerate(curves)
    ]
    lines = [line for line in lines if line.points]
    title = f"Reliability of {proxy.attribute}"
    return LineChart(
        title, _UNIT, _UNIT, lines, "Mean probability", "Share of known groups", diagonal=True
    )
