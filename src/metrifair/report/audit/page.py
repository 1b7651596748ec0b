"""The report on an audit as one HTML file: tables, sentences, and the values that its script
draws, as JSON.
"""

from __future__ import annotations

import math
from collections.abc import (
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import (
    dataclass,
    field,
    replace,
)
from string import Template
from typing import Any, TypeVar

from metrifair.auditing.ranking import (
    required_tables,
    shown_findings,
    sort_findings,
)
from metrifair.auditing.records import (
    AuditRecord,
    Finding,
    MeasuresByGroup,
)
from metrifair.metrics.registry import METRICS
from metrifair.report.audit.by_group import (
    along_section,
    by_group_section,
    group_metrics_section,
)
from metrifair.report.audit.charts import (
    distribution_json,
    is_about,
    witness_json,
)
from metrifair.report.audit.proxies import proxy_section
from metrifair.report.audit.rates import rates_head, rates_section
from metrifair.report.charts import axis, axis_json
from metrifair.report.frontier import frontier_head, frontier_section
from metrifair.report.groups import group_search_section
from metrifair.report.html import (
    Markup,
    PageJson,
    Section,
    card,
    document,
    element,
    embedded_json,
    fact_list,
    item_list,
    joined,
    origin_list,
    resource,
    summary_head,
    table_head,
    table_region,
    table_row,
    with_small,
)
from metrifair.wording.crosswalks import Crosswalk
from metrifair.wording.findings import (
    SIGNIFICANCE,
    TESTS,
    describe,
    significance_text,
    test_draws,
)
from metrifair.wording.frontier import glossary
from metrifair.wording.frontier_view import FrontierView
from metrifair.wording.glossary import (
    audit_glossary,
    highlights,
    overview,
)
from metrifair.wording.metrics import criterion_name, metric_words
from metrifair.wording.notes import notes_by_topic
from metrifair.wording.numbers import (
    confidence_text,
    interval_text,
    name_text,
    number_text,
    p_text,
    percent_text,
    shown_number,
)
from metrifair.wording.summary import audit_summary, few_text
from metrifair.wording.tables import (
    FINDING_DETAILS,
    FINDING_KEYS,
    Column,
    ColumnTable,
    FrameColumns,
    finding_columns,
    finding_table,
)

Item = TypeVar("Item")

# Shares of the room for each kind of content, which is filled with the worst findings first.
_SHARES = {"rows": 0.44, "texts": 0.24, "witnesses": 0.13, "distributions": 0.19}

_NAMED = ("groups", "attribute", "within", "metric", "sizes", "significance")
"""The columns of which the script of the page gets names by number, or several fields."""

_FORMATS: Mapping[Callable[..., str], str] = {
    number_text: "number",
    percent_text: "percent",
    p_text: "p_value",
    interval_text: "range",
    str: "text",
}
"""The formats of the script by the functions that make the same texts in Python."""

# a page promises at most 1.5 MB; what its script needs beside the findings is small
_MOST_BYTES = 1_470_000
_STATIC = 0.22  # the largest share of the room for the table that is shown without the script
_FEW_ROWS = 25  # the length of a page of the table, once the script runs
_OPEN_NOTES = 3
_MOST_NOTES = 60


def audit_html(
    record: AuditRecord,
    *,
    title: str = "Audit of scores",
    frontier: FrontierView | None = None,
    group_metrics: Sequence[MeasuresByGroup] = (),
    crosswalks: Sequence[Crosswalk] = (),
    most_bytes: int = _MOST_BYTES,
) -> str:
    """The report on an audit: a page that needs nothing but a browser; crosswalks to public schemes
    are at its end.

    Examples
    --------
    >>> finding = Finding("sex", "statistical_parity", "everyone", ("f", "<b>"), (90, 90), "kolmogorov", 0.3)
    >>> page = audit_html(AuditRecord(180, 0, (0.0, 1.0), 0.95, [finding]))
    >>> "No significant gap" in page, "&lt;b&gt;" in page, "<b>f" in page
    (True, True, False)
    """
    findings = shown_findings(record.findings)
    top, sections = _static_parts(record, frontier, group_metrics)
    frontier_parts = [] if frontier is None else [_frontier_part(frontier)]
    schemes = [_crosswalk_card(table, number) for number, table in enumerate(crosswalks)]
    words = dict(audit_glossary(record)) | dict(() if frontier is None else glossary(frontier))
    count = len(findings)

    def page(content: PageJson, table: Markup, listed: int) -> str:
        listed_text = "all findings"
        if listed != count:
            listed_text = f"the first {listed:,} of {count:,} findings (Audit.to_json has all)"
        body = Markup(Template(resource("audit.html")).substitute(sections, table=table))
        return document(
            title=title,
            about="audit of scores",
            head=top,
            unscripted=f"The table below lists {listed_text}. Allow JavaScript for this file to "
            "see the charts, and to "
            "search and sort.",
            sections=[
                Section(
                    joined(body, *schemes),
                    "audit-data",
                    content,
                    ("audit.js", "auditviews.js", "findings.js"),
                ),
                *frontier_parts,
            ],
            words=list(words.items()),
            provenance=record.provenance,
        )

    room = most_bytes - len(page(None, Markup(""), 0).encode(errors="replace"))
    table, listed = _table(sort_findings(findings), record, room=int(_STATIC * room))
    content = audit_content(record, room=room, used=len(table.encode(errors="replace")))
    return page(content, table, listed)


def _static_parts(
    record: AuditRecord, frontier: FrontierView | None, group_metrics: Sequence[MeasuresByGroup]
) -> tuple[Markup, dict[str, Markup]]:
    """The head of the page, and its sections without a script; by a standard, the tables of
    rates come first. Notes follow the charts.
    """
    sections = {
        "first": proxy_section(record),
        "ratios": rates_section(record, frontier=frontier),
        "along": along_section(record),
        "bygroup": joined(
            by_group_section(record.by_group),
            group_metrics_section(group_metrics),
            group_search_section(record.group_search),
        ),
    }
    topics = [_remark(*topic) for topic in notes_by_topic(record.notes)]
    remarks = element("div", *topics, class_="remarks") if topics else Markup("")
    sections["remarks"] = remarks
    if not record.settings.standard:
        return summary_head(audit_summary(record), fact_list(overview(record))), sections
    sentences = item_list(audit_summary(record), class_="sentences")
    behind = card("distances", "Distances between score distributions", sentences)
    first = joined(sections["ratios"], sections["first"], behind, remarks)
    moved = {"first": first, "ratios": Markup(""), "remarks": Markup("")}
    return rates_head(record), sections | moved


def _frontier_part(frontier: FrontierView) -> Section:
    """A frontier below the audit, with a heading of its own; of fewer numbers, as two parts
    share the page.
    """
    part = frontier_section(frontier, most_numbers=25_000)
    head = element("h2", frontier.title), frontier_head(frontier), origin_list(frontier.provenance)
    return replace(part, body=joined(element("section", *head, class_="part"), part.body))


def _crosswalk_card(table: Crosswalk, number: int) -> Markup:
    """The figures that answer each item of a scheme, and their sources."""
    rows = [table_row(item["item"], (item["figure"], item["place"])) for item in table.items]
    head = table_head(["Item", "Figures", "Place in this folder"])
    body = element("table", head, element("tbody", *rows), class_="texts")
    name = f"crosswalk-{number}"
    listed = table_region(body, aria_labelledby=f"{name}-title")
    return card(
        name, f"Crosswalk: {table.title}", item_list(table.sources, class_="sentences hint"), listed
    )


def _remark(
    topic: str,
    heading: str,
    texts: Sequence[str],
) -> Markup:
    """Notes of one kind; a few are shown, the others unfold without the script of the page."""
    first = texts[:_OPEN_NOTES]
    more = texts[_OPEN_NOTES:_MOST_NOTES]
    hidden = len(texts) - len(first) - len(more)
    rest = list(more)
    if hidden:
        rest.append(f"{hidden:,} more of this kind are not listed here.")
    folded = [
        element("details", element("summary", f"{len(texts) - len(first):,} more"), item_list(rest))
    ]
    parts = element("h2", heading), item_list(first), *(folded if rest else [])
    return element("aside", *parts, class_=f"remark {topic}")


def _table(findings: Sequence[Finding], record: AuditRecord, *, room: int) -> tuple[Markup, int]:
    """Findings as a table that the script replaces, and the number of findings that fit the room.

    Many rows are in a noscript element, so that browsers with scripts do not lay them out in vain.
    """
    columns = finding_columns(record, findings)
    head = table_head(column.heading for column in columns)
    apart = element(
        "tr",
        element("th", few_text(record), colspan=str(len(columns)), scope="colgroup"),
        class_="apart",
    )
    rows: list[Markup] = []
    for at, finding in enumerate(findings):
        first = not finding.enough and (at == 0 or findings[at - 1].enough)
        row = joined(*([apart] if first else []), _row(finding, columns))
        room -= len(row.encode(errors="replace"))
        if room < 0:
            break
        rows.append(row)
    kind = "one-attribute" if len({finding.attribute for finding in findings}) == 1 else ""
    many = len(rows) > _FEW_ROWS
    parts = (head, element("tbody", *rows))
    if not many:
        return element("table", *parts, id="findings", class_=kind), len(rows)
    # until the script fills it
    empty = element("table", head, element("tbody"), id="findings", class_=kind, hidden="")
    return joined(
        empty, element("noscript", element("table", *parts, id="listed", class_=kind))
    ), len(rows)


def _row(finding: Finding, columns: Sequence[Column]) -> Markup:
    """A finding; on narrow screens its attribute and its set are below its groups."""
    groups, *cells = (column.cell(finding) for column in columns)
    where = element("small", f"{finding.attribute}, {finding.within}", class_="narrow")
    return table_row(joined(groups.text, where), (with_small(*cell) for cell in cells))


def finding_values(record: AuditRecord) -> FrameColumns:
    """The numbers and texts that the script of the page gets of a finding, by name."""
    keys = dict.fromkeys((*FINDING_KEYS, *FINDING_DETAILS))
    columns = finding_table(record).pick(*(key for key in keys if key not in _NAMED))
    values = (replace(column, kind=column.kind or "Ends", interval="") for column in columns)
    return ColumnTable(*values).frame()


def _shown_value(value: Any) -> PageJson:
    return value if isinstance(value, str) else shown_number(value)


def _script_column(column: Column) -> PageJson:
    """What the script needs to show a column."""
    facts = {"key": column.key, "name": column.heading}
    if column.key in _NAMED:
        return facts
    return {**facts, "format": _FORMATS[getattr(column.show, "func", column.show)]}


@dataclass
class _Names:
    """Attributes, groups, places and metrics by number, each named once however many findings
    it has.
    """

    # of each attribute, in the order of their colors
    groups: dict[str, dict[str, int]] = field(default_factory=dict)
    # attribute, criterion, within
    places: dict[tuple[str, str, str], int] = field(default_factory=dict)
    metrics: dict[str, int] = field(default_factory=dict)
    size: int = 0  # bytes of all names

    def group(self, attribute: str, name: str) -> int:
        return self.number(self.groups.setdefault(attribute, {}), name)

    def number(self, numbers: dict[Any, int], name: str | tuple[str, str, str]) -> int:
        """The number of a name among those that are known; a new name gets the next number."""
        if name not in numbers:
            numbers[name] = len(numbers)
            self.size += byte_size(name) + 80  # around it: what a place is made of
        return numbers[name]


_FINDING_PLACE = ("place", "left", "right", "leftSize", "rightSize", "metric")
"""The first fields of a row of the list of findings."""


def finding_place(finding: Finding) -> tuple[str, str, str]:
    """The place of a finding: attribute, criterion, set."""
    return finding.attribute, finding.criterion, finding.within


def audit_content(
    record: AuditRecord,
    *,
    room: int = 1_200_000,
    used: int = 0,
) -> dict[str, PageJson]:
    """Everything that the script of the page draws and lists, in so many bytes; the worst findings
    if not all fit.

    The list of findings has priority: bytes of the room that are already ``used`` reduce the other
    kinds of content.

    >>> finding = Finding("sex", "statistical_parity", "everyone", ("f", "m"), (90, 90), "energy", 0.3)
    >>> content = audit_content(AuditRecord(180, 0, (0, 1), 0.95, [finding]))
    >>> content["attributes"], content["total"]
    ([{'name': 'sex', 'groups': ['f', 'm']}], 1)
    """
    names = _Names()
    left = 1 - used / ((1 - _SHARES["rows"]) * max(room, 1))
    rooms = {
        kind: int(share * room * (1 if kind == "rows" else left)) for kind, share in _SHARES.items()
    }
    # their order of the groups is the order of the colors
    for distribution in record.distributions[:20]:
        for name in list(distribution.curves.cumulative)[:12]:
            names.group(distribution.attribute, name)
    findings = shown_findings(record.findings)
    ordered = sort_findings(findings)
    numbers = finding_values(record)
    rows = _rows(ordered, names, numbers, rooms["rows"])
    listed = ordered[: len(rows)]
    drawn = fit_into(_distributions(record, listed, names), rooms["distributions"])
    distribution_at = {
        place: number for number, (places, _) in enumerate(drawn) for place in places
    }
    curves = ((str(number), witness_json(finding)) for number, finding in enumerate(listed))
    return {
        "confidence": confidence_text(record.confidence),
        "draws": test_draws(record),
        "columns": list(map(_script_column, finding_columns(record, findings))),
        "details": list(map(_script_column, finding_table(record).pick(*FINDING_DETAILS))),
        "fields": [*_FINDING_PLACE, *numbers, "significance", "tested_by"],
        "few": few_text(record),
        "significances": list(SIGNIFICANCE),
        "tests": list(TESTS.values()),
        "rows": rows,
        "total": len(findings),
        "texts": fit_into((list(describe(finding)) for finding in listed), rooms["texts"]),
        "witnesses": dict(
            fit_into((pair for pair in curves if pair[1] is not None), rooms["witnesses"])
        ),
        "metrics": [_metric(name, findings, numbers) for name in names.metrics],
        "places": [_place(place, names, distribution_at) for place in names.places],
        "distributions": [distribution for _, distribution in drawn],
        "highlights": _highlights(record, listed),
        # Last, since everything above may name a group.
        "attributes": [
            {"name": name, "groups": list(map(name_text, groups))}
            for name, groups in names.groups.items()
        ],
    }


def _highlights(record: AuditRecord, listed: Sequence[Finding]) -> list[dict[str, PageJson]]:
    """The highlights, with the row of the list or the table of decisions that they are about."""
    row_at = {id(finding): number for number, finding in enumerate(listed)}
    table_at = {id(table): number for number, table in enumerate(required_tables(record))}
    return [
        {
            "heading": highlight.heading,
            "figures": [list(figure) for figure in highlight.figures],
            "sentence": highlight.sentence,
            "where": highlight.where,
            "row": row_at.get(id(highlight.about)),
            "decisions": table_at.get(id(highlight.about)),
        }
        for highlight in highlights(record)
    ]


def fit_into(items: Iterable[Item], room: int) -> list[Item]:
    """The items from the front whose JSON fits the room.

    >>> fit_into(["abc", "de", "f"], 11)
    ['abc', 'de']
    """
    first = []
    for item in items:
        room -= byte_size(item) + 1
        if room < 0:
            break
        first.append(item)
    return first


def byte_size(content: Any) -> int:
    """What some content adds to the page.

    >>> byte_size(["<"])
    10
    """
    return len(embedded_json(content).encode(errors="replace"))


def _rows(
    findings: Iterable[Finding], names: _Names, numbers: FrameColumns, room: int
) -> list[PageJson]:
    rows: list[PageJson] = []
    size = 0
    for finding in findings:
        left, right = (names.group(finding.attribute, name) for name in finding.groups)
        place = names.number(names.places, finding_place(finding))
        row: list[PageJson] = [
            place,
            left,
            right,
            *finding.sizes,
            names.number(names.metrics, finding.metric),
        ]
        row += [_shown_value(value(finding)) for _, value in numbers.values()]
        row += [
            SIGNIFICANCE.index(significance_text(finding)),
            list(TESTS).index(finding.tested_by),
        ]
        size += byte_size(row) + 1
        if size + names.size > room:
            break
        rows.append(row)
    return rows


def _distributions(
    record: AuditRecord, findings: Sequence[Finding], names: _Names
) -> Iterable[tuple[list[tuple[str, str, str]], PageJson]]:
    """Distributions with the places (attribute, criterion, set) that they show; those of the
    worst findings first.
    """
    ranks: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        ranks.setdefault((finding.attribute, finding.within), []).append(finding)
    order = {at: number for number, at in enumerate(ranks)}
    for part in sorted(
        record.distributions, key=lambda part: order.get((part.attribute, part.within), len(order))
    ):
        inside = ranks.get((part.attribute, part.within), [])
        other_scores = {
            finding.criterion for finding in inside if not is_about(finding, part.curves)
        }
        shown = [finding for finding in inside if finding.criterion not in other_scores]
        drawn = distribution_json(part, shown, names.group)
        if drawn is not None:
            yield list(dict.fromkeys(finding_place(finding) for finding in shown)), drawn


def _place(
    place: tuple[str, str, str], names: _Names, drawn: Mapping[tuple[str, str, str], int]
) -> PageJson:
    attribute, criterion, within = place
    return {
        "attribute": list(names.groups).index(attribute),
        "criterion": criterion_name(criterion),
        "within": within,
        "distribution": drawn.get(place),
    }


def _metric(
    name: str,
    findings: Sequence[Finding],
    numbers: FrameColumns,
) -> PageJson:
    """Name, meaning, and one axis for all findings, so that bars can be compared."""
    words = metric_words(name)
    reaching = ("value", "interval_high", "certified", "certified_jointly", "divided")
    ends = [
        number
        for finding in findings
        if finding.metric == name
        for key in reaching
        if (number := shown_number(numbers[key][1](finding))) is not None
    ]
    most = METRICS[name].maximum if name in METRICS else math.inf
    scale = axis([0.0, *ends], from_zero=True, top=max(most, *ends), count=5, least_span=0.0)
    return {
        "name": words.name,
        "short": words.short,
        "meaning": words.about,
        "axis": axis_json(scale),
    }
