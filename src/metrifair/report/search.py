"""The page of the evidence of a search."""

from __future__ import annotations

from metrifair.report.html import (
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
from metrifair.wording.provenance import about_lines
from metrifair.wording.search import (
    PAGE_WORDS,
    SearchShown,
    absent_sentences,
    page_cells,
    page_headings,
    search_sentences,
    search_title,
    searched_sentences,
)
from metrifair.wording.terms import term_name


def search_html(shown: SearchShown) -> str:
    """One page: the choice, the search, all configurations, and what the folder does not contain."""
    facts = shown.facts
    by_number = {item.number: item for item in shown.figures.configurations}
    cells = [page_cells(facts, item, by_number.get(item.number)) for item in facts.configurations]
    rows = [table_row(first, rest) for first, *rest in cells]
    table = element("table", table_head(page_headings(facts)), element("tbody", *rows))
    delivered = [
        (term_name("rows"), f"{shown.figures.rows:,}"),
        *about_lines(shown.provenance.about),
    ]
    if facts.model is not None:
        delivered.append(("Model file", f"{facts.model.name}, sha256 {facts.model.sha256}"))
    body = joined(
        card("searched", "What was searched", item_list(searched_sentences(shown))),
        card(
            "configurations",
            "All configurations",
            table_region(table, aria_label="All configurations"),
        ),
        card("absent", "What is not here", item_list(absent_sentences(shown))),
    )
    return document(
        title=search_title(shown),
        about="the configurations of a search",
        head=summary_head(search_sentences(shown), fact_list(delivered)),
        unscripted="",
        sections=[Section(body, "data", None, ())],
        words=list(PAGE_WORDS),
        provenance=shown.provenance,
    )
