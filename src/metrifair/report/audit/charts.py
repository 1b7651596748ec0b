"""Charts of an audit's page: the groups' distributions with the gap of each pair marked, witnesses,
decisions; and charts for notebooks, by altair: distances with intervals, distributions, ROC and
reliability curves.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import (
    Callable,
    Iterable,
    Sequence,
)
from typing import (
    Any,
    Literal,
    TypeAlias,
)

from metrifair.auditing.ranking import main_metric, sort_findings
from metrifair.auditing.records import (
    AuditRecord,
    Distribution,
    Finding,
    WitnessCurve,
)
from metrifair.errors import DataError, Remedy
from metrifair.figures.curves import Curves
from metrifair.metrics.registry import is_largest_gap
from metrifair.report.audit.by_group import reliability_chart, roc_chart
from metrifair.report.charts import (
    Gap,
    Line,
    LineChart,
    axis,
    axis_json,
    check_curve,
    curves_json,
    gap_json,
    grid_json,
    score_axis,
    short,
    thin_curves,
    widest_gap,
)
from metrifair.report.html import Json
from metrifair.support.checks import check_known, require
from metrifair.wording.glossary import witness_text
from metrifair.wording.metrics import metric_words

_MAX_GROUPS = 12
_MOST_SCORES = 160
_ROUNDING = 1e-3  # of shares that were drawn or binned

OTHER_SCORES = frozenset({"risk_parity"})
"""Criteria that compare something else than the prediction."""

GroupNumber = Callable[[str, str], int]  # attribute, group -> its place among the colors


def distribution_json(
    distribution: Distribution, findings: Sequence[Finding], number: GroupNumber
) -> Json:
    """The score distributions of the groups of one set; None if the scores are too far apart to
    draw.

    ``findings`` are those of the set, the worst first: of very many groups, those that they name
    are drawn.
    """
    check_curve(
        distribution.curves, f"of {distribution.attribute!r} within {distribution.within!r}"
    )
    grid = distribution.curves.grid
    if not _drawable(grid):
        return None
    members = _members(distribution, findings)
    gaps = {
        f"{number(distribution.attribute, finding.groups[0])},{number(distribution.attribute, finding.groups[1])}": gap
        for finding in findings
        if is_largest_gap(finding.metric) and set(finding.groups) <= set(members)
        if (gap := pair_gap(distribution.curves, finding)) is not None
    }
    return {
        **curves_json(thin_curves(_only(distribution.curves, members), _MOST_SCORES), members),
        "x": axis_json(score_axis([grid[0], grid[-1]])),
        "members": [number(distribution.attribute, name) for name in members],
        "left_out": len(distribution.curves.cumulative) - len(members),
        "gaps": {pair: gap_json(gap) for pair, gap in gaps.items()},
    }


def _drawable(grid: Sequence[float]) -> bool:
    """Whether an axis for these scores fits into floating-point numbers."""
    return (
        len(grid) > 1
        and math.isfinite(2 * (grid[-1] - grid[0]))
        and math.isfinite(2 * max(map(abs, grid)))
    )


def _members(distribution: Distribution, findings: Iterable[Finding]) -> list[str]:
    """The groups that are drawn, in their own order."""
    groups = list(distribution.curves.cumulative)
    compared = dict.fromkeys(
        name for finding in findings for name in finding.groups if name in groups
    )
    selected = set(list(dict.fromkeys([*compared, *groups]))[:_MAX_GROUPS])
    return [name for name in groups if name in selected]


def _only(curves: Curves, members: Sequence[str]) -> Curves:
    return Curves(
        curves.grid,
        {name: curves.density[name] for name in members if name in curves.density},
        {name: curves.cumulative[name] for name in members},
    )


def pair_gap(curves: Curves, finding: Finding) -> Gap | None:
    """The largest gap between the two groups of a Kolmogorov finding: where its witness drops, else
    by the curves.

    A group's expectation of a step is its share below the step, which is exact, while curves are
    drawn on a grid.

    >>> curves = Curves([0, 1, 2], {}, {"a": [0.2, 0.5, 1.0], "b": [0.3, 0.9, 1.0]})
    >>> pair_gap(curves, Finding("sex", "statistical_parity", "everyone", ("a", "b"), (9, 9), "kolmogorov", 0.4)).score
    1
    """
    if not set(finding.groups) <= set(curves.cumulative):
        return None
    drop = None if finding.witness is None else witness_step(finding.witness)
    if finding.witness is None or drop is None:
        return widest_gap(_only(curves, finding.groups))
    shares = dict(zip(finding.groups, finding.witness.expected, strict=True))
    lower, upper = sorted(finding.groups, key=shares.__getitem__)
    return Gap(drop, lower, upper, shares[lower], shares[upper])


def is_about(finding: Finding, curves: Curves) -> bool:
    """Whether a finding can be about the drawn scores: criteria may compare losses, or other
    scores.

    The share below a score lies between those below the scores of the grid on either side.
    """
    if finding.criterion in OTHER_SCORES:
        return False
    gap = pair_gap(curves, finding) if is_largest_gap(finding.metric) else None
    if gap is None:
        return True
    right = bisect_right(curves.grid, gap.score)
    for name, share in ((gap.lower, gap.low), (gap.upper, gap.high)):
        values = curves.cumulative[name]
        least = values[right - 1] if right > 0 else 0.0
        most = values[right] if right < len(values) else 1.0
        if not least - _ROUNDING <= share <= most + _ROUNDING:
            return False
    return True


def witness_step(witness: WitnessCurve) -> float | None:
    """The last score before a step utility drops; None if it does not.

    >>> witness_step(WitnessCurve([0.1, 0.2, 0.3], [1.0, 1.0, 0.0], (0.5, 0.2)))
    0.2
    """
    before = [
        score for score, utility in zip(witness.grid, witness.utility, strict=True) if utility > 0.5
    ]
    return float(max(before)) if 0 < len(before) < len(witness.grid) else None


def witness_json(finding: Finding) -> Json:
    """The witness of a finding with a sentence about it; None if there is none to draw."""
    witness = finding.witness
    if witness is None or not _drawable(witness.grid):
        return None
    if len(witness.utility) != len(witness.grid):
        raise DataError(
            f"the witness of {finding.attribute!r} within {finding.within!r} has "
            f"{len(witness.utility)} values, its "
            f"grid {len(witness.grid)}; give one value per score of the grid"
        )
    at = corners(witness.grid, witness.utility)
    levels = [*(witness.utility[index] for index in at), *witness.expected]
    return {
        "x": axis_json(score_axis([witness.grid[0], witness.grid[-1]])),
        "y": axis_json(
            axis([level for level in levels if math.isfinite(level)], count=4, least_span=0.0)
        ),
        "grid": grid_json([witness.grid[index] for index in at]),
        "utility": [short(witness.utility[index], digits=4) for index in at],
        "expected": [short(level) for level in witness.expected],
        "text": witness_text(finding, witness),
    }


def corners(grid: Sequence[float], values: Sequence[float]) -> list[int]:
    """Places of a curve that a line through the others would miss, at most about a plot's width of
    them.

    >>> corners([0, 1, 2, 3, 4], [1.0, 1.0, 1.0, 0.0, 0.0])
    [0, 2, 3, 4]
    """
    size = max(values) - min(values)
    places = [0]
    for at in range(1, len(grid) - 1):
        share = (grid[at] - grid[at - 1]) / (grid[at + 1] - grid[at - 1])
        on_the_line = values[at - 1] + share * (values[at + 1] - values[at - 1])
        if abs(on_the_line - values[at]) > 1e-9 * size:
            places.append(at)
    places.append(len(grid) - 1)
    every = math.ceil(len(places) / _MOST_SCORES)
    return [*places[:-1:every], places[-1]]


AuditChartKind: TypeAlias = Literal["findings", "distributions", "roc", "reliability"]
"""The content of the chart."""

_MOST_FINDINGS = 20
# as on the pages
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#b3578c", "#b07700", "#2f8fc9", "#1b1b1f")


def audit_chart(record: AuditRecord, kind: AuditChartKind) -> Any:
    """A chart of one kind; a DataError if there is nothing to draw.

    >>> audit_chart(AuditRecord(9, 0, (0.0, 1.0), 0.95, []), "roc")
    Traceback (most recent call last):
    metrifair.errors.DataError: this audit has no curves by group to draw, which need two labels and one score; ...
    """
    check_known("kind", kind, ("findings", "distributions", "roc", "reliability"))
    # Any: altair's own types double the time mypy takes, and altair's schema checks the chart.
    alt: Any = require("altair", extra="report", purpose="a chart")
    if kind == "findings":
        return _findings(alt, record)
    if kind == "distributions":
        return _distributions(alt, record)
    curves = [
        table for table in record.by_group if any(getattr(group, kind) for group in table.groups)
    ]
    if not curves:
        missing = "curves by group" if kind == "roc" else "reliability curves"
        requirement = (
            "two labels and one score" if kind == "roc" else "two labels and probabilities"
        )
        raise DataError(
            f"this audit has no {missing} to draw, which need {requirement}",
            remedy=Remedy("y_true"),
        )
    return _line_chart(alt, roc_chart(curves[0]) if kind == "roc" else reliability_chart(curves[0]))


def _findings(alt: Any, record: AuditRecord) -> Any:
    """The most certain findings by one metric: value and interval of each comparison."""
    metric = main_metric(record.findings)
    if not metric:
        raise DataError(
            "this audit has no findings to draw; each comparison needs two groups with rows"
        )
    findings = [finding for finding in sort_findings(record.findings) if finding.metric == metric][
        :_MOST_FINDINGS
    ]
    rows = [
        {
            "comparison": f"{finding.groups[0]} vs {finding.groups[1]} of {finding.attribute}, "
            f"{finding.within}",
            "value": finding.value,
            "low": finding.value if finding.interval is None else finding.interval.low,
            "high": finding.value if finding.interval is None else finding.interval.high,
        }
        for finding in findings
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("comparison:N", sort=None, title=None, axis=alt.Axis(labelLimit=420))
    )
    scale = alt.Scale(zero=True)
    name = metric_words(metric).name
    spans = base.mark_rule(strokeWidth=4, opacity=0.45, color=_COLORS[0]).encode(
        x=alt.X("low:Q", title=name, scale=scale), x2="high:Q"
    )
    dots = base.mark_circle(size=70, opacity=1, color=_COLORS[0]).encode(
        x=alt.X("value:Q", title=name, scale=scale),
        tooltip=["comparison:N", "value:Q", "low:Q", "high:Q"],
    )
    return alt.layer(spans, dots)


def _distributions(alt: Any, record: AuditRecord) -> Any:
    """The distributions that the most certain finding is about, or else the first there are."""
    distributions = {(part.attribute, part.within): part for part in record.distributions}
    if not distributions:
        raise DataError(
            "this audit has no distributions to draw; an attribute needs 2 to 30 groups with rows"
        )
    first = next(
        (
            place
            for finding in sort_findings(record.findings)
            if (place := (finding.attribute, finding.within)) in distributions
        ),
        next(iter(distributions)),
    )
    part = distributions[first]
    grid, where = part.curves.grid, f"{part.attribute}, {part.within}"
    curves_by_title = {
        "Density": part.curves.density,
        "Share of the group below each score": part.curves.cumulative,
    }
    places = {name: at for at, name in enumerate(part.curves.cumulative)}
    x, y = score_axis([grid[0], grid[-1]]), axis([0.0, 1.0])
    charts = [
        _line_chart(alt, LineChart(where, x, y, lines, "Score", title))
        for title, curves in curves_by_title.items()
        if (
            lines := [
                Line(name, places[name], list(zip(grid, curve, strict=True)))
                for name, curve in curves.items()
            ]
        )
    ]
    if len(charts) == 1:  # small groups have no density
        return charts[0]
    charts[0] = (
        charts[0].mark_area(line=True, fillOpacity=0.15).encode(y=charts[0].encoding.y.stack(None))
    )
    return alt.hconcat(*charts)


def _line_chart(alt: Any, chart: LineChart) -> Any:
    """The lines of a chart, and their bands, with every value on hover."""
    colors = [_COLORS[line.color % len(_COLORS)] for line in chart.lines]
    scale = alt.Scale(domain=[line.name for line in chart.lines], range=colors)
    x = alt.X("x:Q", title=chart.x_title)
    color = alt.Color("group:N", title=None, scale=scale)
    tips = [alt.Tooltip("x:Q", title=chart.x_title), alt.Tooltip("y:Q", title=chart.y_title)]
    rows = [
        {"x": across, "y": up, "group": line.name, "order": at}
        for line in chart.lines
        for at, (across, up) in enumerate(line.points)
    ]
    plot = alt.Chart(alt.Data(values=rows), title=chart.title).mark_line(
        point=any(line.dots for line in chart.lines)
    )
    y = alt.Y("y:Q", title=chart.y_title)
    plot = plot.encode(x=x, y=y, color=color, order="order:Q", tooltip=["group:N", *tips])
    ends = [
        {"x": at, "low": low, "high": high, "group": line.name}
        for line in chart.lines
        for at, low, high in line.band
    ]
    if not ends:
        return plot
    bands = alt.Chart(alt.Data(values=ends)).mark_area(opacity=0.15)
    return alt.layer(
        plot, bands.encode(x=x, y=alt.Y("low:Q", title=chart.y_title), y2="high:Q", color=color)
    )
