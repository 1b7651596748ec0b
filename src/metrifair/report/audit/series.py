"""Audits over time, in words and as one page with a chart for each distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metrifair.report.audit.glossary import criterion_name, metric_words
from metrifair.report.audit.words import confidence_text, quoted
from metrifair.report.charts import Axis, Line, axis, line_chart
from metrifair.report.html import Markup, Section, document, element, joined, origin_list
from metrifair.report.numbers import MISSING, figure_text, number_text, p_text
from metrifair.results import Look, SeriesRecord

_ALARM = (
    "A distance that differs from that at the first look, at a level that holds for all looks there will ever be and "
    "for all distances: with no change at all, hardly any series has one."
)
_MOST_CHARTS = 24
_MOST_TICKS = 6
_MOST_ROWS = 2_000


def series_summary(record: SeriesRecord) -> list[str]:
    """Which distances have changed since the first look, and by what test."""
    alarms = [one for one in record.series if one.alarm in ("better", "worse")]
    looks, first = len(record.looks), record.looks[0]
    told = []
    if not alarms:
        told.append(f"No distance has changed since {quoted(first)} by more than chance explains, over {looks} looks.")
    for alarm in ("worse", "better"):
        own = [one for one in alarms if one.alarm == alarm]
        if own:
            one = min(own, key=lambda one: one.p_value or 0.0)
            where = f"{' and '.join(map(quoted, one.groups))} of {one.attribute} ({one.within})"
            changed, at = len({_key(each) for each in own}), len({each.look for each in own})
            told.append(
                f"{alarm.capitalize()} than at {quoted(first)}: {changed} distance{'s' * (changed > 1)}, at {at} "
                f"look{'s' * (at > 1)}; most certainly {metric_words(one.metric).short} of {where} "
                f"at {quoted(one.look)}: {number_text(one.value)} ({figure_text(one.difference, signed=True)})."
            )
    told.append(
        f"Tested at every look, however many there will be: the chance of any false alarm is at most "
        f"{confidence_text(1 - record.confidence)} (Bonferroni over looks, alpha / (k (k + 1)), and over distances)."
    )
    return told


def _key(one: Look) -> tuple[object, ...]:
    return one.attribute, one.criterion, one.within, tuple(one.groups), one.metric


def series_html(record: SeriesRecord, *, title: str) -> str:
    """One page: what has changed, a chart for each distance, and all figures."""
    first, *others = record.summary
    by_key: dict[tuple[object, ...], list[Look]] = {}
    for one in record.series:
        by_key.setdefault(_key(one), []).append(one)
    ordered = sorted(by_key.values(), key=lambda own: min(2.0 if one.p_value is None else one.p_value for one in own))
    facts: Mapping[str, str] = {
        "Looks": f"{len(record.looks):,}",
        "First": record.looks[0],
        "Last": record.looks[-1],
        "Rows": f"{sum(record.rows):,}",
        "Confidence": confidence_text(record.confidence),
    }
    head = joined(
        element("p", first, id="audit-summary", class_="summary lead"),
        element("ul", *(element("li", text) for text in others), class_="sentences"),
        element(
            "dl",
            *(element("div", element("dt", name), element("dd", text)) for name, text in facts.items()),
            class_="facts",
        ),
    )
    more = len(ordered) - _MOST_CHARTS
    hint = f"The {_MOST_CHARTS} that changed most of {len(ordered)}; bands hold for all looks at once."
    charts = element(
        "section",
        element("h2", "Distances, look by look"),
        element("p", hint if more > 0 else "Bands hold for all looks at once.", class_="hint"),
        element("div", *(_chart(own, record.looks) for own in ordered[:_MOST_CHARTS]), class_="charts"),
        class_="card",
    )
    origins = [origin_list(one, name) for name, one in zip(record.looks, record.provenance, strict=False)]
    looks = element("section", element("h2", "Where the looks come from"), *origins, class_="card") if origins else ""
    return document(
        title=title,
        about="audits over time",
        head=head,
        unscripted="This page needs no script.",
        sections=[Section(joined(charts, _table(ordered), looks), "series-data", None, ())],
        words=[("Alarm", _ALARM)],
        provenance=record.origin,
    )


def _chart(own: Sequence[Look], looks: Sequence[str]) -> Markup:
    at = {name: number for number, name in enumerate(looks)}
    step = max(1, -(-len(looks) // _MOST_TICKS))
    x = Axis(0, max(1, len(looks) - 1), tuple((number, str(number + 1)) for number in range(0, len(looks), step)))
    highest = max(one.value if one.interval is None else one.interval.high for one in own)
    first = own[0]
    band = [(at[one.look], one.interval.low, one.interval.high) for one in own if one.interval is not None]
    alarms = [(at[one.look], one.value) for one in own if one.alarm in ("better", "worse")]
    lines = [Line(first.metric, 0, [(at[one.look], one.value) for one in own], band)]
    if alarms:
        lines.append(Line("alarm", 1, alarms, dots=True))
    title = f"{metric_words(first.metric).short}: {' vs '.join(first.groups)} of {first.attribute}, {first.within}"
    return line_chart(
        title, x, axis([0.0, highest], from_zero=True, count=4, least_span=0.0), lines, x_title="Look", y_title=title
    )


def _table(ordered: Sequence[Sequence[Look]]) -> Markup:
    names = ("Groups", "Among", "Distance", "Look", "Value", "Interval", "Since the first", "p-value", "Level", "Alarm")
    rows = []
    for one in [one for own in ordered for one in own][:_MOST_ROWS]:
        interval = (
            MISSING if one.interval is None else f"{number_text(one.interval.low)} to {number_text(one.interval.high)}"
        )
        kind = one.alarm if one.alarm in ("better", "worse") else ""
        cells = (
            joined(element("span", one.within), element("small", criterion_name(one.criterion))),
            *map(joined, (metric_words(one.metric).short, one.look, number_text(one.value), interval)),
            *map(joined, (figure_text(one.difference, signed=True), p_text(one.p_value), number_text(one.level))),
            element("span", kind or MISSING, class_=f"change {kind}"),
        )
        head = element("th", joined(" vs ".join(one.groups), element("small", one.attribute)), scope="row")
        rows.append(element("tr", head, *(element("td", cell) for cell in cells)))
    head = element("thead", element("tr", *(element("th", name, scope="col") for name in names)))
    table = element("table", head, element("tbody", *rows), class_="differences")
    return element(
        "section",
        element("h2", "All looks"),
        element("div", table, class_="scroll", tabindex="0", role="region", aria_label="All looks"),
        class_="card",
    )
