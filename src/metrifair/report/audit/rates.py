"""The section of rates and ratios: the tables of a standard, without a script, for print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from metrifair.auditing.ranking import required_tables
from metrifair.auditing.records import (
    AuditRecord,
    AuditSettings,
    Decisions,
)
from metrifair.figures.selection_rates import STANDARDS, GroupRates
from metrifair.report.charts import (
    Axis,
    Line,
    LineChart,
    axis,
    line_key,
    svg_chart,
)
from metrifair.report.groups import group_search_section
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
    with_small,
)
from metrifair.wording.frontier_tables import alternative_columns
from metrifair.wording.frontier_view import FrontierView
from metrifair.wording.glossary import decision_words, search_words
from metrifair.wording.notes import notes_by_topic, rate_notes
from metrifair.wording.numbers import (
    confidence_text,
    count_text,
    name_text,
    noun,
    points_text,
)
from metrifair.wording.rates import (
    NO_VERDICT,
    STANDARD_WORDS,
    exclusions_sentence,
    facts_given,
    ratio_hint,
    table_selected_text,
)
from metrifair.wording.summary import rates_summary
from metrifair.wording.tables import (
    DECILES,
    RATES,
    Column,
    GroupRow,
    rate_columns,
    rates_title,
)
from metrifair.wording.terms import term_name

_MOST_ROWS = 1_500  # of all tables together: a page promises not to be large
_MOST_LINES = 12  # of the drawing of ratios at deciles


_DIFFERENCES = {
    "rate": attrgetter("selection_difference"),
    "true_positive_rate": attrgetter("true_positive_difference"),
    "false_positive_rate": attrgetter("false_positive_difference"),
}
"""The differences of a table of decisions, by column."""


def _rows(rates: Sequence[GroupRates], table: Decisions, columns: Sequence[Column]) -> list[Markup]:
    return [column_row(columns, GroupRow(table, rate)) for rate in rates]


def _differences(table: Decisions, columns: Sequence[Column]) -> Markup:
    """The largest difference of each rate, in points."""
    gaps = (_DIFFERENCES.get(column.key, lambda _: None)(table) for column in columns[1:])
    cells = ("" if gap is None else points_text(gap) for gap in gaps)
    return table_row(term_name("largest_difference"), cells, class_="total")


def rates_table(
    table: Decisions,
    rates: Sequence[GroupRates],
    settings: AuditSettings,
    number: int = 0,
    about: Mapping[str, str] | None = None,
) -> Markup:
    """One table of rates with its heading, small groups separately, and the reasons for exclusions.

    >>> found = Decisions("sex", "everyone", 0.5, [GroupRates("f", 9, 0.5, few=True)], 0.0, None)
    >>> "Too few rows" in rates_table(found, found.rates, AuditSettings())
    True
    """
    columns = rate_columns(table)
    title = f"By {table.attribute}"
    if table.within != "everyone":
        title = f"{title}, {table.within}"
    enough, few = ([rate for rate in rates if rate.few is apart] for apart in (False, True))
    rows = _rows(enough, table, columns)
    compared = [rate for rate in enough if rate.left_out != "unknown_name"]
    if len(compared) > 1 and not table.standard:
        rows.append(_differences(table, columns))
    bodies = [element("tbody", *rows)] if rows else []
    if few:
        words = element("th", "Too few rows", colspan=str(len(columns)), scope="rowgroup")
        heading = element("tr", words, class_="apart")
        bodies.append(element("tbody", heading, *_rows(few, table, columns)))
    if table.unknown is not None:
        bodies.append(element("tbody", *_rows([table.unknown], table, columns), class_="apart"))
    head = table_head(column.heading for column in columns)
    excluded = exclusions_sentence(table, settings, about)
    selected = noun(table_selected_text(table))
    low = " Low scores are favorable." if table.favorable == "low" else ""
    about_ratio = ratio_hint(table, settings)
    hints = [element("p", f"Selected: {selected}.{low} {about_ratio}".rstrip(), class_="hint")]
    if excluded:
        hints.append(element("p", excluded, class_="hint"))
    if len(rates) < len(table.rates):
        more = count_text(len(table.rates) - len(rates), "more group")
        text = f"The csv and JSON files have {more}."
        hints.append(element("p", text, class_="hint"))
    return joined(
        element("h3", title, id=f"ratios-{number}"),
        table_region(element("table", head, *bodies), aria_labelledby=f"ratios-{number}"),
        *hints,
        *([_deciles(table)] if any(rate.decile_ratios for rate in table.rates) else []),
    )


def _deciles(table: Decisions) -> Markup:
    """The ratio beyond each decile of the score: a curve for each category, and the numbers."""
    rates = [rate for rate in table.rates if rate.decile_ratios and not rate.few][:_MOST_LINES]
    points_by_rate = [
        [(10.0 * at, ratio) for at, ratio in enumerate(rate.decile_ratios, 1) if ratio is not None]
        for rate in rates
    ]
    y = axis(
        [1.0, *(ratio for points in points_by_rate for _, ratio in points)], from_zero=True, count=5
    )
    x = Axis(10, 90, tuple((10.0 * at, f"{10 * at}%") for at in range(1, 10)))
    lines = [
        Line(name_text(rate.group), at, points)
        for at, (rate, points) in enumerate(zip(rates, points_by_rate, strict=True))
    ]
    side = "below" if table.favorable == "low" else "above"
    title = f"Impact ratio if scores {side} each decile were selected"
    columns = [RATES["group"], *DECILES.values()]
    head = table_head(column.heading for column in columns)
    rows = _rows([rate for rate in table.rates if rate.decile_ratios], table, columns)
    chart = LineChart(table.attribute, x, y, lines, "decile of the score", title)
    return joined(
        element(
            "div",
            svg_chart(chart),
            line_key([name_text(rate.group) for rate in rates]),
            class_="pair",
        ),
        table_region(element("table", head, element("tbody", *rows)), aria_label="Deciles"),
    )


def alternatives_table(view: FrontierView) -> Markup:
    """Less discriminatory alternatives: models of a frontier at least as accurate, within its
    interval, and fairer.
    """
    base, fairer = view.alternatives
    columns = alternative_columns(view)
    names = [column.heading for column in columns]
    rows = [[with_small(*column.cell(point)) for column in columns] for point in (base, *fairer)]
    sentence = (
        f"{len(fairer):,} of {len(view.points):,} models {'is' if len(fairer) == 1 else 'are'} "
        "less unfair than the "
        f"model with the best {names[1].lower()}, and within the interval of its "
        f"{names[1].lower()}."
    )
    body = element("tbody", *(table_row(first, cells) for first, *cells in rows))
    return joined(
        element("h3", "Less discriminatory alternatives"),
        element("p", sentence, class_="said"),
        table_region(
            element("table", table_head(names), body), aria_label="Less discriminatory alternatives"
        ),
    )


def rates_section(
    record: AuditRecord,
    *,
    frontier: FrontierView | None = None,
) -> Markup:
    """All tables of rates as one section of the page; by a standard, only its tables."""
    tables = required_tables(record)
    if not tables:
        return Markup("")
    standard = STANDARDS[tables[0].standard]
    words = STANDARD_WORDS[tables[0].standard]
    room = _MOST_ROWS
    parts = []
    has_intervals = any(rate.interval for table in tables for rate in table.rates)
    small = (
        f" Small figures are {confidence_text(record.confidence)} confidence intervals of single "
        "figures."
    )
    about = record.provenance.about
    for number, table in enumerate(tables):
        if room > 0:
            parts.append(rates_table(table, table.rates[:room], record.settings, number, about))
        room -= len(table.rates)
    if words.fields:
        facts = facts_given(about)
        parts.append(
            fact_list((name.capitalize(), facts.get(name, "not given")) for name in words.fields)
        )
    if standard.named and frontier is not None:
        parts.append(alternatives_table(frontier))
    parts.append(element("p", f"{words.about}{small if has_intervals else ''}", class_="hint"))
    if words.source is not None:
        parts.append(element("p", " ".join(words.source.sentences), class_="hint"))
    return card(
        "ratios", rates_title(tables), *parts, element("p", NO_VERDICT, class_="said verdict")
    )


def rates_head(record: AuditRecord) -> Markup:
    """The answer of each table; the first sentence leads."""
    return summary_head(rates_summary(record) or ["There are no decisions, so there are no rates."])


def rates_html(
    record: AuditRecord,
    *,
    title: str,
    frontier: FrontierView | None = None,
) -> str:
    """The page of the tables alone: the answer, the tables, notes on them, and where they come
    from.
    """
    notes = [text for _, _, texts in notes_by_topic(rate_notes(record.notes)) for text in texts]
    remarks = [card("notes", "Notes", item_list(notes, class_="sentences"))] if notes else []
    search = group_search_section(record.group_search)
    body = joined(rates_section(record, frontier=frontier), search, *remarks)
    return document(
        title=title,
        about="selection rates",
        head=rates_head(record),
        sections=[Section(body)],
        words=[*decision_words(record), *search_words(record)],
        provenance=record.provenance,
    )
