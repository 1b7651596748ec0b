"""The page and the chart of a search for groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from metrifair.auditing.search_records import SearchRecord, WorseGroup
from metrifair.figures.intervals import Interval
from metrifair.report.charts import interval_bar
from metrifair.report.display import ChartDisplay, IntervalRow, draw_intervals
from metrifair.report.html import (
    Markup,
    Section,
    card,
    document,
    element,
    fact_list,
    item_list,
    joined,
    summary_head,
    table_head,
    table_region,
    table_row,
)
from metrifair.support.provenance import Provenance
from metrifair.wording.groups import (
    FIGURES,
    GAP_HEADINGS,
    GLOSSARY,
    HEADINGS,
    gap_rows,
    group_row,
    group_text,
    overview,
    search_sentences,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def group_search_html(
    record: SearchRecord, *, title: str, provenance: Provenance, about: Mapping[str, str]
) -> str:
    """One page: the sentences, the listed groups and the bounds of all gaps."""
    facts = [*overview(record), *about.items()]
    parts = [_gaps(record)]
    if record.worse:
        parts.insert(0, _groups(record))
    return document(
        title=title,
        about="groups searched",
        head=summary_head(search_sentences(record), fact_list(facts)),
        sections=[Section(joined(*parts))],
        words=list(GLOSSARY.items()),
        provenance=provenance,
    )


def group_search_section(record: SearchRecord | None) -> Markup:
    """The search as a section of the page of an audit; empty without a search."""
    if record is None:
        return Markup("")
    sentences = item_list(search_sentences(record), class_="sentences")
    said = card("group-search", "Search for groups", sentences, fact_list(overview(record)))
    listed = [_groups(record)] if record.worse else []
    return joined(said, *listed, _gaps(record))


def _groups(record: SearchRecord) -> Markup:
    limit = max(group.gap for group in record.listed)
    rows = [_row(record, group, limit) for group in record.listed]
    head = table_head([HEADINGS[0], *HEADINGS[1:5], "", *HEADINGS[5:]])
    table = element("table", head, element("tbody", *rows))
    hint = "The line of each picture begins at the lower bound; the dot is the observed gap."
    marked = [" * Has a condition on a protected attribute."] if record.protected else []
    return card(
        "groups",
        "Groups that are worse",
        element("p", hint, *marked, class_="hint"),
        table_region(table, aria_label="Groups that are worse"),
    )


def _row(record: SearchRecord, group: WorseGroup, limit: float) -> Markup:
    name, *cells = group_row(record, group)
    bar = interval_bar(group.gap, Interval(group.at_least, group.gap), limit, "worse")
    return table_row(name, [*cells[:4], bar, *cells[4:]])


def _gaps(record: SearchRecord) -> Markup:
    rows = [table_row(row[0], row[1:]) for row in gap_rows(record)]
    table = element("table", table_head(GAP_HEADINGS), element("tbody", *rows))
    hint = (
        "All these bounds hold jointly. They are about groups of this search, compared with the "
        "other rows."
    )
    return card(
        "largest-gaps",
        "How large a gap could be missed",
        element("p", hint, class_="hint"),
        table_region(table, aria_label="Upper bounds of all gaps"),
    )


def group_search_chart(record: SearchRecord, ax: Axes | None) -> ChartDisplay:
    """The gaps of the listed groups, with their lower bounds, by matplotlib."""
    scale = 100.0
    unit = " in points"
    if record.outcome in ("score", "metric"):
        scale = 1.0
        unit = ""
    rows = [
        IntervalRow(
            group_text(group.conditions),
            scale * group.gap,
            Interval(scale * group.at_least, scale * group.gap),
        )
        for group in record.listed
    ]
    x_title = f"Gap of the {FIGURES[record.outcome]}{unit}, from its lower bound"
    return draw_intervals(rows, ax, title="", x_title=x_title)
