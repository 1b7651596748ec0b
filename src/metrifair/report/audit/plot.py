"""Charts of an audit for notebooks, by altair: distances with intervals, distributions, ROC and reliability curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from metrifair.checks import check_known, require
from metrifair.errors import DataError
from metrifair.metrics.registry import is_largest_gap
from metrifair.report.audit.by_group import MEAN_SCORE, OUTCOME_RATE
from metrifair.report.audit.glossary import metric_words
from metrifair.report.audit.words import most_certain_first
from metrifair.results import AuditRecord, ByGroup

AuditChartKind: TypeAlias = Literal["findings", "distributions", "roc", "reliability"]
"""What is drawn."""

_MOST_FINDINGS = 20
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b3578c", "#b07700", "#2f8fc9", "#1b1b1f")  # as on the pages


def audit_chart(record: AuditRecord, kind: AuditChartKind) -> Any:
    """A chart of one kind; a DataError where there is nothing to draw.

    >>> audit_chart(AuditRecord(9, 0, (0.0, 1.0), 0.95, []), "roc")
    Traceback (most recent call last):
    metrifair.errors.DataError: this audit has no curves by group to draw, which take two labels and one score; ...
    """
    check_known("kind", kind, ("findings", "distributions", "roc", "reliability"))
    # Any: altair's own types double the time mypy takes, and what is built here is checked by altair's schema.
    alt: Any = require("altair", extra="report", purpose="a chart")
    if kind == "findings":
        return _findings(alt, record)
    if kind == "distributions":
        return _distributions(alt, record)
    curves = [one for one in record.by_group if any(getattr(group, kind) for group in one.groups)]
    if not curves:
        raise DataError(
            "this audit has no curves by group to draw, which take two labels and one score; pass y_true"
            if kind == "roc"
            else "this audit has no reliability curves to draw, which take two labels and probabilities; pass y_true"
        )
    return _roc(alt, curves[0]) if kind == "roc" else _reliability(alt, curves[0])


def _findings(alt: Any, record: AuditRecord) -> Any:
    """The most certain findings by one metric: value and interval of each comparison."""
    metrics = list(dict.fromkeys(one.metric for one in record.findings))
    if not metrics:
        raise DataError("this audit has no findings to draw; each comparison needs two groups with rows")
    metric = next(filter(is_largest_gap, metrics), metrics[0])
    chosen = [one for one in most_certain_first(record.findings) if one.metric == metric][:_MOST_FINDINGS]
    rows = [
        {
            "comparison": f"{one.groups[0]} vs {one.groups[1]} of {one.attribute}, {one.within}",
            "value": one.value,
            "low": one.value if one.interval is None else one.interval.low,
            "high": one.value if one.interval is None else one.interval.high,
        }
        for one in chosen
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("comparison:N", sort=None, title=None, axis=alt.Axis(labelLimit=420))
    )
    scale = alt.Scale(zero=True)
    name = metric_words(metric).name
    spans = base.mark_rule(strokeWidth=4, opacity=0.45, color=_COLOURS[0]).encode(
        x=alt.X("low:Q", title=name, scale=scale), x2="high:Q"
    )
    dots = base.mark_circle(size=70, opacity=1, color=_COLOURS[0]).encode(
        x=alt.X("value:Q", title=name, scale=scale), tooltip=["comparison:N", "value:Q", "low:Q", "high:Q"]
    )
    return alt.layer(spans, dots)


def _distributions(alt: Any, record: AuditRecord) -> Any:
    """The distributions that the most certain finding is about, or else the first there are."""
    drawn = {(one.attribute, one.within): one for one in record.distributions}
    if not drawn:
        raise DataError("this audit has no distributions to draw; an attribute needs 2 to 30 groups with rows")
    first = next(
        (place for one in most_certain_first(record.findings) if (place := (one.attribute, one.within)) in drawn),
        next(iter(drawn)),
    )
    curves = drawn[first].curves
    rows = [
        {"x": x, "y": y, "group": name}
        for name, values in curves.cumulative.items()
        for x, y in zip(curves.grid, values, strict=True)
    ]
    titles = "Score", "Share of the group below each score"
    return _lines(alt, rows, titles, list(curves.cumulative), f"{first[0]}, {first[1]}")


def _roc(alt: Any, found: ByGroup) -> Any:
    rows = [
        {"x": x, "y": y, "group": one.group, "order": at} for one in found.groups for at, (x, y) in enumerate(one.roc)
    ]
    titles = "False positive rate", "True positive rate"
    chart = _lines(alt, rows, titles, [one.group for one in found.groups], f"{found.attribute}, {found.within}")
    return chart.encode(order="order:Q")


def _reliability(alt: Any, found: ByGroup) -> Any:
    rows = [
        {
            "x": each.score,
            "y": each.rate,
            "low": each.rate if each.interval is None else each.interval.low,
            "high": each.rate if each.interval is None else each.interval.high,
            "group": one.group,
        }
        for one in found.groups
        for each in one.reliability
    ]
    lines = _lines(
        alt, rows, (MEAN_SCORE, OUTCOME_RATE), [one.group for one in found.groups], f"{found.attribute}, {found.within}"
    )
    bands = lines.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", title=OUTCOME_RATE), y2="high:Q")
    return alt.layer(bands, lines.mark_line(point=True))


def _lines(alt: Any, rows: Sequence[dict[str, Any]], titles: tuple[str, str], groups: list[str], about: str) -> Any:
    colours = alt.Scale(domain=groups, range=[_COLOURS[at % len(_COLOURS)] for at in range(len(groups))])
    return (
        alt.Chart(alt.Data(values=list(rows)), title=about)
        .mark_line()
        .encode(
            x=alt.X("x:Q", title=titles[0]),
            y=alt.Y("y:Q", title=titles[1]),
            color=alt.Color("group:N", title=None, scale=colours),
            tooltip=["group:N", "x:Q", "y:Q"],
        )
    )
