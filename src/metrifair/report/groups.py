"""The page and the chart of a search for groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from metrifair.auditing.search_records import SearchRecord, WorseGroup
from metrifair.figures.intervals import Interval
from metrifair.report.charts import interval_bar
from metrifair.report.display import ChartDisplay, IntervalRow, draw_intervals
from metrifair.report.html import (
    Markup,
    Section,
    card,
    column_row,
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
    GROUP_KEYS,
    OUTCOME_FIGURES,
    gap_columns,
    group_table,
    group_text,
    overview,
    search_glossary,
    search_sentences,
)
from metrifair.wording.tables import Column

_BAR = GROUP_KEYS.index("gap") + 1  # a picture follows the gap

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
        words=search_glossary(),
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
    columns = group_table(record).pick(*GROUP_KEYS)
    rows = [_row(columns, group, limit) for group in record.listed]
    headings = [column.heading for column in columns]
    head = table_head([*headings[:_BAR], "", *headings[_BAR:]])
    table = element("table", head, element("tbody", *rows))
    hint = "The line of each picture begins at the lower bound; the dot is the observed gap."
    marked = [" * Has a condition on a protected attribute."] if record.protected else []
    return card(
        "groups",
        "Groups that are worse",
        element("p", hint, *marked, class_="hint"),
        table_region(table, aria_label="Groups that are worse"),
    )


def _row(columns: Sequence[Column], group: WorseGroup, limit: float) -> Markup:
    name, *cells = (column.cell(group).text for column in columns)
    bar = interval_bar(group.gap, Interval(group.at_least, group.gap), limit, "worse")
    cells.insert(_BAR - 1, bar)
    return table_row(name, cells)


def _gaps(record: SearchRecord) -> Markup:
    columns = gap_columns(record)
    rows = [column_row(columns, gap) for gap in record.largest_gaps]
    head = table_head(column.heading for column in columns)
    table = element("table", head, element("tbody", *rows))
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
    x_title = f"Gap of the {OUTCOME_FIGURES[record.outcome]}{unit}, from its lower bound"
    return draw_intervals(rows, ax, title="", x_title=x_title)
