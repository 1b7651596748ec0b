"""The report on an audit as one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from metrifair.report.audit.content import audit_content, columns
from metrifair.report.audit.glossary import audit_glossary, criterion_name, metric_words, notes_by_kind, overview
from metrifair.report.audit.words import worst_first
from metrifair.report.charts import Json
from metrifair.report.frontier.page import frontier_head, frontier_section
from metrifair.report.frontier.view import FrontierView
from metrifair.report.frontier.words import glossary
from metrifair.report.html import Markup, Section, document, element, joined, resource
from metrifair.report.numbers import MISSING, number_text
from metrifair.results import AuditRecord, Finding

_MOST_BYTES = 1_470_000  # a page promises at most 1.5 MB; what its script needs beside the findings is small
_STATIC_ROWS = 25  # also the length of a page of the table, once the script runs
_OPEN_NOTES = 3
_MOST_NOTES = 60


def audit_html(record: AuditRecord, *, title: str = "Audit of scores", frontier: FrontierView | None = None) -> str:
    """The report on an audit: a page that needs nothing but a browser.

    Examples
    --------
    >>> finding = Finding("sex", "statistical_parity", "everyone", ("f", "<b>"), (90, 90), "kolmogorov", 0.3)
    >>> page = audit_html(AuditRecord(180, 0, (0.0, 1.0), 0.95, [finding], summary=["The scores differ."]))
    >>> "The scores differ." in page, "&lt;b&gt;" in page, "<b>f" in page
    (True, True, False)
    """
    body = Markup(Template(resource("audit.html")).substitute(table=_table(worst_first(record.findings))))
    added = [] if frontier is None else [_frontier_section(frontier)]
    words = dict(audit_glossary(record)) | dict(() if frontier is None else glossary(frontier))

    def page(content: Json) -> str:
        return document(
            title=title,
            about="audit of scores",
            head=_head(record),
            unscripted=_unscripted(len(record.findings)),
            sections=[Section(body, "audit-data", content, ("audit.js", "auditviews.js", "findings.js")), *added],
            words=list(words.items()),
        )

    room = _MOST_BYTES - len(page(None).encode(errors="replace"))
    return page(audit_content(record, room=room))


def _frontier_section(view: FrontierView) -> Section:
    """The frontier below an audit, with a heading of its own; fewer numbers, as two parts share the page."""
    part = frontier_section(view, most_numbers=25_000)
    heading = element("section", element("h2", view.title), frontier_head(view), class_="part")
    return Section(joined(heading, part.body), part.data, part.content, part.scripts)


def _head(record: AuditRecord) -> Markup:
    """The summary in plain words, the facts, and the remarks."""
    first, *others = record.summary or ("The scores were compared; the figures are below.",)
    return joined(
        element("p", first, id="audit-summary", class_="summary lead"),
        *([element("ul", *(element("li", text) for text in others), class_="sentences")] if others else []),
        element(
            "dl",
            *(element("div", element("dt", name), element("dd", text)) for name, text in overview(record)),
            class_="facts",
        ),
        *(
            [element("div", *(_remark(*found) for found in notes_by_kind(record)), class_="remarks")]
            if record.notes
            else []
        ),
    )


def _remark(kind: str, heading: str, texts: Sequence[str]) -> Markup:
    """Notes of one kind; a few stand open, the others unfold, the script of the page not needed."""
    shown, more = texts[:_OPEN_NOTES], texts[_OPEN_NOTES:_MOST_NOTES]
    hidden = len(texts) - len(shown) - len(more)
    rest = [element("li", text) for text in more]
    if hidden:
        rest.append(element("li", f"{hidden:,} more of this kind are not listed here."))
    folded = [element("details", element("summary", f"{len(texts) - len(shown):,} more"), element("ul", *rest))]
    return element(
        "aside",
        element("h2", heading),
        element("ul", *(element("li", text) for text in shown)),
        *(folded if rest else []),
        class_=f"remark {kind}",
    )


def _unscripted(count: int) -> str:
    listed = f"the {_STATIC_ROWS} largest of {count:,} findings" if count > _STATIC_ROWS else "all findings"
    return (
        f"The table below lists {listed}; allow JavaScript for this file to see the drawings, and to search and sort."
    )


def _table(findings: Sequence[Finding]) -> Markup:
    """The worst findings as a table that stands without the script, which takes it over."""
    shown = columns(findings)
    head = element("thead", element("tr", *(element("th", name, scope="col") for _, name in shown)))
    rows = (_row(finding, [key for key, _ in shown]) for finding in findings[:_STATIC_ROWS])
    return element("table", head, element("tbody", *rows), id="findings")


def _row(finding: Finding, keys: Sequence[str]) -> Markup:
    interval = finding.interval
    texts: dict[str, Markup] = {
        "groups": joined(
            f"{finding.groups[0]} vs {finding.groups[1]}",
            element("small", f"{finding.attribute}, {finding.within}", class_="narrow"),
        ),
        "attribute": joined(finding.attribute),
        "among": joined(element("span", finding.within), element("small", criterion_name(finding.criterion))),
        "metric": joined(metric_words(finding.metric).short),
        "value": joined(number_text(finding.value)),
        "low": joined(MISSING if interval is None else f"{number_text(interval.low)} to {number_text(interval.high)}"),
        "certified": joined(number_text(finding.certified)),
        "jointly": joined(number_text(finding.certified_jointly)),
        "p": joined(number_text(finding.p_value)),
        "samples": joined(f"{finding.sizes[0]:,} / {finding.sizes[1]:,}"),
    }
    first, *others = keys
    return element("tr", element("th", texts[first], scope="row"), *(element("td", texts[key]) for key in others))
