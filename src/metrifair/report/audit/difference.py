"""Pages of comparisons and series of audits: sentences, tables, and a chart for each
distribution or distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from metrifair.auditing.records import (
    AuditRecord,
    Difference,
    DifferenceRecord,
    Distribution,
    Look,
    SeriesRecord,
)
from metrifair.figures.curves import Curves
from metrifair.report.audit.charts import cumulative_chart
from metrifair.report.charts import (
    Axis,
    Line,
    LineChart,
    axis,
    check_curve,
    interval_bar,
    line_key,
    svg_chart,
    thin_curves,
)
from metrifair.report.html import (
    Markup,
    Section,
    document,
    element,
    fact_list,
    item_list,
    joined,
    origin_list,
    summary_head,
    table_head,
    table_region,
    table_row,
    with_small,
)
from metrifair.support.provenance import Provenance
from metrifair.wording.compare import (
    GLOSSARY,
    SERIES_GLOSSARY,
    VERDICTS,
    difference_sentences,
    series_sentences,
)
from metrifair.wording.glossary import audit_glossary, overview
from metrifair.wording.numbers import (
    confidence_text,
    count_text,
    name_text,
)
from metrifair.wording.summary import audit_summary
from metrifair.wording.tables import (
    LOOKS,
    Column,
    difference_columns,
)
from metrifair.wording.terms import term_name

_MOST_ROWS = 2_000
_MOST_DRAWN = 6  # distributions of each audit
_MAX_GROUPS = 12
_MOST_CHARTS = 24
_MOST_TICKS = 6
_DIFFERENCE_KEYS = (
    "compared",
    "within",
    "metric",
    "before",
    "after",
    "difference",
    "p_value",
    "verdict",
)
_LOOK_KEYS = (
    "compared",
    "within",
    "metric",
    "look",
    "value",
    "interval",
    "difference",
    "p_value",
    "level",
    "alarm",
)
_PAIRING = {
    "rows": "the same, paired",
    "independent": "independent",
    "unknown": "the same, unpaired",
    "clusters": "different, of clusters that may be the same",
}


def difference_html(
    record: DifferenceRecord, audits: Mapping[str, AuditRecord], *, title: str
) -> str:
    """One page: the differences, and the audits side by side."""
    facts = (
        ("Baseline", record.names[0]),
        ("Compared with it", ", ".join(record.names[1:])),
        ("Differences", f"{len(record.differences):,}"),
        ("Confidence", confidence_text(record.confidence)),
        (term_name("rows"), _PAIRING[record.pairing]),
    )
    tables = [_differences(record, name) for name in record.names[1:]]
    return _page(
        summary_head(difference_sentences(record), fact_list(facts)),
        joined(*tables, _audits(audits)),
        GLOSSARY | dict(audit_glossary(next(iter(audits.values())))),
        record.origin,
        title=title,
        about="audits compared",
    )


def series_html(
    record: SeriesRecord,
    *,
    title: str,
) -> str:
    """One page: the sentences, a chart for each distance, and all figures."""
    facts = (
        ("Looks", f"{len(record.looks):,}"),
        ("First", record.looks[0]),
        ("Last", record.looks[-1]),
        (term_name("rows"), f"{sum(record.rows):,}"),
        ("Confidence", confidence_text(record.confidence)),
    )
    ordered = sorted_series(record)
    hint = "Bands are simultaneous over all looks."
    if len(ordered) > _MOST_CHARTS:
        hint = f"The {_MOST_CHARTS} of {len(ordered)} distances with the smallest p-values. {hint}"
    charts = element(
        "section",
        element("h2", "Distances, look by look"),
        element("p", hint, class_="hint"),
        element(
            "div",
            *(_chart(looks, record.looks) for looks in ordered[:_MOST_CHARTS]),
            class_="charts",
        ),
        class_="card",
    )
    columns = LOOKS.pick(*_LOOK_KEYS)
    rows = [_look_row(look, columns) for looks in ordered for look in looks]
    origins = [
        origin_list(origin, name)
        for name, origin in zip(record.looks, record.provenance, strict=False)
    ]
    sources = ""
    if origins:
        sources = element(
            "section", element("h2", "Where the looks come from"), *origins, class_="card"
        )
    return _page(
        summary_head(series_sentences(record), fact_list(facts)),
        joined(charts, _table("All looks", [column.heading for column in columns], rows), sources),
        SERIES_GLOSSARY,
        record.origin,
        title=title,
        about="audits over time",
    )


def sorted_series(record: SeriesRecord) -> list[list[Look]]:
    """The looks of each distance, those with the smallest p-value first."""
    series: dict[int, list[Look]] = {}
    for look in record.series:
        series.setdefault(look.baseline, []).append(look)
    return sorted(series.values(), key=lambda looks: min(map(_p_value, looks)))


def sorted_differences(differences: Iterable[Difference]) -> list[Difference]:
    """The differences, the most significant first."""
    order = list(VERDICTS)
    return sorted(differences, key=lambda figure: (order.index(figure.verdict), _p_value(figure)))


def _p_value(figure: Difference | Look) -> float:
    return 1.0 if figure.p_value is None else figure.p_value


def _page(
    head: Markup, body: Markup, words: Mapping[str, str], origin: Provenance, **titles: str
) -> str:
    return document(
        **titles,
        head=head,
        sections=[Section(body)],
        words=list(words.items()),
        provenance=origin,
    )


def _table(
    title: str,
    headings: Sequence[str],
    rows: Sequence[Markup],
) -> Markup:
    table = element(
        "table", table_head(headings), element("tbody", *rows[:_MOST_ROWS]), class_="differences"
    )
    more = len(rows) - _MOST_ROWS
    if more > 0:
        hint = [
            element("p", f"{count_text(more, 'more row')}: to_frame() returns all.", class_="hint")
        ]
    else:
        hint = []
    return element(
        "section", element("h2", title), *hint, table_region(table, aria_label=title), class_="card"
    )


def _differences(record: DifferenceRecord, name: str) -> Markup:
    """The differences of one audit from the baseline, the most significant first."""
    differences = sorted_differences(
        difference for difference in record.differences if difference.model == name
    )
    limits: dict[str, float] = {}
    for difference in differences:
        bounds = difference.joint_interval
        ends = [difference.difference]
        if bounds is not None:
            ends += [bounds.low, bounds.high]
        limits[difference.metric] = max(limits.get(difference.metric, 0.0), *map(abs, ends))
    columns = difference_columns(record.names[0], name, *_DIFFERENCE_KEYS)
    headings = [column.heading for column in columns]
    rows = [
        _difference_row(difference, columns, limits[difference.metric])
        for difference in differences
    ]
    return _table(f"{name} against {record.names[0]}", [*headings[:-2], "", *headings[-2:]], rows)


def _difference_row(
    difference: Difference,
    columns: Sequence[Column],
    limit: float,
) -> Markup:
    """A difference with its bar, and its verdict in color."""
    kind = difference.verdict if difference.verdict in ("better", "worse") else ""
    groups, *cells, verdict = (with_small(*column.cell(difference)) for column in columns)
    bar = interval_bar(difference.difference, difference.joint_interval, limit, kind)
    cells.insert(-1, bar)
    return table_row(groups, [*cells, element("span", verdict, class_=f"change {kind}")])


def _look_row(look: Look, columns: Sequence[Column]) -> Markup:
    """A look, with its alarm in color."""
    kind = look.alarm if look.alarm in ("better", "worse") else ""
    groups, *cells, alarm = (with_small(*column.cell(look)) for column in columns)
    return table_row(groups, [*cells, element("span", alarm, class_=f"change {kind}")])


def _audits(audits: Mapping[str, AuditRecord]) -> Markup:
    """The summaries of the audits side by side, with the groups' distributions."""
    pictures = [
        {
            (part.attribute, part.within): part
            for part in record.distributions
            if len(part.curves.grid) > 1
        }
        for record in audits.values()
    ]
    shared = [key for key in pictures[0] if all(key in picture for picture in pictures)][
        :_MOST_DRAWN
    ]
    cards = [
        element(
            "section",
            element("h2", name),
            item_list(audit_summary(record), class_="sentences"),
            fact_list(overview(record)),
            *(_drawing(distributions[key]) for key in shared),
            origin_list(record.provenance),
            class_="card",
        )
        for (name, record), distributions in zip(audits.items(), pictures, strict=True)
    ]
    return element("div", *cards, class_="pair cards")


def _drawing(distribution: Distribution) -> Markup:
    check_curve(
        distribution.curves, f"of {distribution.attribute!r} within {distribution.within!r}"
    )
    curves = thin_curves(distribution.curves, 120)
    names = list(curves.cumulative)[:_MAX_GROUPS]
    cumulative = {name: curves.cumulative[name] for name in names}
    drawn = replace(distribution, curves=Curves(curves.grid, {}, cumulative))
    title = f"Share below each score: {distribution.attribute}, {distribution.within}"
    return joined(svg_chart(cumulative_chart(drawn, title)), line_key(names))


def _chart(series: Sequence[Look], looks: Sequence[str]) -> Markup:
    """One distance, look by look, with its alarms."""
    places = {name: number for number, name in enumerate(looks)}
    step = max(1, -(-len(looks) // _MOST_TICKS))
    ticks = tuple((number, str(number + 1)) for number in range(0, len(looks), step))
    x = Axis(0, max(1, len(looks) - 1), ticks)
    first = series[0]
    lines = [look_line(series, places, first.metric, 0)]
    if alarms := alarm_points(series, places):
        lines.append(Line("alarm", 1, alarms, dots=True))
    title = f"{term_name(first.metric)}: {' vs '.join(map(name_text, first.groups))} of {first.attribute}, {first.within}"  # noqa: E501
    return svg_chart(LineChart(title, x, look_axis(series), lines, term_name("look"), title))


def look_line(series: Sequence[Look], places: Mapping[str, int], name: str, color: int) -> Line:
    """The values of one distance at its looks, with their intervals as a band."""
    band = [
        (places[look.look], look.interval.low, look.interval.high)
        for look in series
        if look.interval is not None
    ]
    return Line(name, color, [(places[look.look], look.value) for look in series], band)


def alarm_points(series: Iterable[Look], places: Mapping[str, int]) -> list[tuple[float, float]]:
    """The looks at which a distance differs significantly from its baseline."""
    return [(places[look.look], look.value) for look in series if look.alarm in ("better", "worse")]


def look_axis(series: Iterable[Look]) -> Axis:
    """An axis from 0 to the highest end of an interval."""
    highest = max(look.value if look.interval is None else look.interval.high for look in series)
    return axis([0.0, highest], from_zero=True, count=4, least_span=0.0)
