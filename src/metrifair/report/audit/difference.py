"""Audits compared, and audits over time: in words, and as one page with all of them or a chart for each distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metrifair.auditing.records import (
    AuditRecord,
    Difference,
    DifferenceRecord,
    Distribution,
    Look,
    SeriesRecord,
    Verdict,
)
from metrifair.metrics.registry import METRICS
from metrifair.report.audit.by_group import FIGURES
from metrifair.report.audit.glossary import audit_glossary, criterion_name, metric_words, overview
from metrifair.report.audit.words import confidence_text, quoted
from metrifair.report.charts import Axis, Line, axis, interval_bar, line_chart, line_key, score_axis, thinned
from metrifair.report.html import Markup, Section, document, element, joined, origin_list
from metrifair.wording.numbers import MISSING, figure_text, interval_text, number_text, p_text

_VERDICTS: tuple[Verdict, ...] = ("worse", "better", "cannot be told apart", "not tested")
_MOST_ROWS = 2_000
_MOST_DRAWN = 6  # distributions of each audit
_MOST_GROUPS = 12

WORDS = {
    "Difference": "The figure of the model, less that of the baseline. For distances less is better, for ratios more.",
    "Interval of a difference": "Made of the intervals of both figures, whose errors are added as those of independent "
    "figures are, less what both have in common where the same rows are behind both. Close to a distance of 0 it is "
    "wider than need be.",
    "p-value of a difference": "How often chance alone would make a difference at least as large, of equal ones: by "
    "itself, and with all differences of the page considered (Holm), by which better and worse are called so.",
}


def difference_summary(record: DifferenceRecord, audits: Sequence[AuditRecord], *, at_hand: bool = False) -> list[str]:
    """The comparison in plain sentences, the most important first; one says how rows were taken together.

    Of rows ``at_hand`` it also says how to pair them.
    """
    baseline, *others = record.names
    told = []
    for name in others:
        own = [one for one in record.differences if one.model == name]
        count = {verdict: sum(one.verdict == verdict for one in own) for verdict in _VERDICTS}
        untested = f" {count['not tested']} have no interval." if count["not tested"] else ""
        tested = len(own) - count["not tested"]
        if not count["better"] + count["worse"]:
            which = f"None of the {tested} figures" if tested != 1 else "The one figure"
            can = "can" if tested != 1 else "cannot"
            told.append(f"{which} of {quoted(name)} {can} be told apart from those of {quoted(baseline)}.{untested}")
            continue
        told.append(
            f"{quoted(name)} is better than {quoted(baseline)} in {count['better']} and worse in {count['worse']} of "
            f"{tested} figures; {count['cannot be told apart']} cannot be told apart.{untested}"
        )
        told += [_largest(own, verdict) for verdict in ("better", "worse") if count[verdict]]
    told.append(_pairing(record, audits, at_hand=at_hand))
    if record.unmatched:
        told.append(f"{record.unmatched} figures that only one of the audits has are not compared.")
    return told


def _largest(differences: Sequence[Difference], verdict: Verdict) -> str:
    """The most certain change of a kind."""
    one = min(
        (one for one in differences if one.verdict == verdict), key=lambda one: (one.p_value, -abs(one.difference))
    )
    span = "" if one.interval is None else f", {interval_text(one.interval)}"
    return (
        f"Most certainly {verdict}: {_metric_name(one.metric)} of {_place(one)}, from {number_text(one.before)} to "
        f"{number_text(one.after)} ({figure_text(one.difference, signed=True)}{span})."
    )


def _place(one: Difference) -> str:
    groups = " and ".join(map(quoted, one.groups))
    return f"{groups}{' of ' if groups else ''}{one.attribute} ({one.within}, {criterion_name(one.criterion)})"


def _metric_name(metric: str) -> str:
    return metric_words(metric).short if metric in METRICS else FIGURES.get(metric, metric.replace("_", " "))


def _pairing(record: DifferenceRecord, audits: Sequence[AuditRecord], *, at_hand: bool) -> str:
    both = "Both audits" if len(audits) == 2 else "All audits"
    if record.pairing == "rows":
        return f"{both} are of the same {audits[0].rows:,} rows: what they have in common cancels (paired)."
    if record.pairing == "independent":
        return (
            f"{both} are taken for audits of different rows (independent), as nothing proves that they are the same. "
            f"Where they are, {'pass paired=True, or ' if at_hand else ''}audit the scores together, which tells more."
        )
    return (
        f"{both} are of the same rows, which are not all at hand: the intervals hold however both depend on each "
        "other, and are wider than those of rows in memory."
    )


def difference_html(record: DifferenceRecord, audits: Mapping[str, AuditRecord], *, title: str) -> str:
    """One page: what changed, and what was found in each audit."""
    first, *others = record.summary
    facts = (
        ("Baseline", record.names[0]),
        ("Compared with it", ", ".join(record.names[1:])),
        ("Differences", f"{len(record.differences):,}"),
        ("Confidence", confidence_text(record.confidence)),
        ("Rows", {"rows": "the same, paired", "independent": "independent"}.get(record.pairing, "the same, unpaired")),
    )
    head = joined(
        element("p", first, id="audit-summary", class_="summary lead"),
        *([element("ul", *(element("li", text) for text in others), class_="sentences")] if others else []),
        element(
            "dl", *(element("div", element("dt", name), element("dd", text)) for name, text in facts), class_="facts"
        ),
    )
    tables = [_table(record, name) for name in record.names[1:]]
    body = joined(*tables, _audits(audits))
    words = WORDS | dict(audit_glossary(next(iter(audits.values()))))
    return document(
        title=title,
        about="audits compared",
        head=head,
        unscripted="This page needs no script.",
        sections=[Section(body, "difference-data", None, ())],
        words=list(words.items()),
        provenance=record.origin,
    )


def _table(record: DifferenceRecord, name: str) -> Markup:
    """The differences of one audit from the baseline, what is certain first."""
    order = {verdict: place for place, verdict in enumerate(_VERDICTS)}
    own = sorted(
        (one for one in record.differences if one.model == name),
        key=lambda one: (order[one.verdict], 1.0 if one.p_value is None else one.p_value),
    )
    reach: dict[str, float] = {}
    for one in own:
        ends = (one.difference,) if one.interval is None else (one.difference, one.interval.low, one.interval.high)
        reach[one.metric] = max(reach.get(one.metric, 0.0), *map(abs, ends))
    names = ("Groups", "Among", "Figure", record.names[0], name, "Difference", "", "p-value", "Verdict")
    head = element("thead", element("tr", *(element("th", text, scope="col") for text in names)))
    rows = [_row(one, reach[one.metric]) for one in own[:_MOST_ROWS]]
    more = [element("p", f"and {len(own) - _MOST_ROWS:,} more: to_frame() has them all", class_="hint")]
    table = element("table", head, element("tbody", *rows), class_="differences")
    return element(
        "section",
        element("h2", f"{name} against {record.names[0]}"),
        *(more if len(own) > _MOST_ROWS else []),
        element(
            "div", table, class_="scroll", tabindex="0", role="region", aria_label=f"{name} against {record.names[0]}"
        ),
        class_="card",
    )


def _row(one: Difference, reach: float) -> Markup:
    groups = joined(" vs ".join(one.groups) or "all groups", element("small", one.attribute))
    ends = () if one.interval is None else (one.interval.low, one.interval.high)
    verdict = one.verdict if one.verdict in ("better", "worse") else ""
    cells = (
        joined(element("span", one.within), element("small", criterion_name(one.criterion))),
        joined(_metric_name(one.metric)),
        *map(joined, (number_text(one.before), number_text(one.after))),
        joined(figure_text(one.difference, signed=True), element("small", " to ".join(map(number_text, ends)))),
        interval_bar(one.difference, one.interval, reach, verdict),
        joined(p_text(one.p_value), element("small", f"{p_text(one.p_jointly)} of all")),
        element("span", one.verdict, class_=f"change {verdict}"),
    )
    return element("tr", element("th", groups, scope="row"), *(element("td", cell) for cell in cells))


def _audits(audits: Mapping[str, AuditRecord]) -> Markup:
    """What was found in each, side by side, with the groups' distributions."""
    drawn = [
        {(one.attribute, one.within): one for one in record.distributions if len(one.curves.grid) > 1}
        for record in audits.values()
    ]
    shared = [key for key in drawn[0] if all(key in own for own in drawn)][:_MOST_DRAWN]
    cards = []
    for (name, record), own in zip(audits.items(), drawn, strict=True):
        facts = [element("div", element("dt", term), element("dd", text)) for term, text in overview(record)]
        cards.append(
            element(
                "section",
                element("h2", name),
                element("ul", *(element("li", text) for text in record.summary), class_="sentences"),
                element("dl", *facts, class_="facts"),
                *(_drawing(own[key]) for key in shared),
                origin_list(record.provenance),
                class_="card",
            )
        )
    return element("div", *cards, class_="pair cards")


def _drawing(found: Distribution) -> Markup:
    curves = thinned(found.curves, 120)
    names = list(curves.cumulative)[:_MOST_GROUPS]
    lines = [
        Line(name, at, list(zip(curves.grid, curves.cumulative[name], strict=True))) for at, name in enumerate(names)
    ]
    about = f"{found.attribute}, {found.within}"
    chart = line_chart(
        about,
        score_axis([curves.grid[0], curves.grid[-1]]),
        axis([0.0, 1.0], from_zero=True, top=1.0, count=5),
        lines,
        x_title="Score",
        y_title=f"Share below each score: {about}",
    )
    return joined(chart, line_key(names))


_ALARM = (
    "A distance that differs from that at the first look, at a level that holds for all looks there will ever be and "
    "for all distances: with no change at all, hardly any series has one."
)
_MOST_CHARTS = 24
_MOST_TICKS = 6


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
        sections=[Section(joined(charts, _series_table(ordered), looks), "series-data", None, ())],
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


def _series_table(ordered: Sequence[Sequence[Look]]) -> Markup:
    names = ("Groups", "Among", "Distance", "Look", "Value", "Interval", "Since the first", "p-value", "Level", "Alarm")
    rows = []
    for one in [one for own in ordered for one in own][:_MOST_ROWS]:
        kind = one.alarm if one.alarm in ("better", "worse") else ""
        cells = (
            joined(element("span", one.within), element("small", criterion_name(one.criterion))),
            *map(
                joined, (metric_words(one.metric).short, one.look, number_text(one.value), interval_text(one.interval))
            ),
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
