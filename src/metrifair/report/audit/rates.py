"""The section of rates and ratios: the tables of a standard, without a script, for print."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from metrifair.auditing.ranking import required_tables
from metrifair.auditing.records import AuditRecord, AuditSettings, Decisions
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import FOUR_FIFTHS, STANDARDS, GroupRates, is_below
from metrifair.report.charts import Axis, Line, LineChart, axis, line_key, svg_chart
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
    with_small,
)
from metrifair.tradeoff.points import Point
from metrifair.wording.frontier_view import FrontierView
from metrifair.wording.notes import notes_by_topic, rate_notes
from metrifair.wording.numbers import (
    MISSING,
    confidence_text,
    figure_text,
    interval_text,
    name_text,
    noun,
    number_text,
    p_text,
    percent_text,
    strength_texts,
)
from metrifair.wording.rates import (
    DECISION_WORDS,
    NO_VERDICT,
    RATE_HEADINGS,
    STANDARD_WORDS,
    exclusions_sentence,
    facts_given,
    ratio_text,
    table_selected_text,
)
from metrifair.wording.summary import rates_summary

_MOST_ROWS = 1_500  # of all tables together: a page promises not to be large
_MOST_LINES = 12  # of the drawing of ratios at deciles


def _with_interval(
    text: str, interval: Interval | None, show: Callable[[float], str], word: str = ""
) -> Markup:
    return with_small(text, word or ("" if interval is None else interval_text(interval, show)))


def _cells(rate: GroupRates, table: Decisions, columns: Sequence[str]) -> list[str]:
    """The cells of a category, without its name."""
    is_reference = rate.group == table.reference and rate is not table.unknown
    below = rate.ratio is not None and is_below(rate.ratio)
    why = "excluded" if rate.left_out else ""
    texts: dict[str, str] = {
        "rows": f"{rate.size:,}",
        "share": percent_text(rate.share),
        "selected": MISSING if rate.selected is None else f"{rate.selected:,}",
        "rate": _with_interval(percent_text(rate.selection_rate), rate.interval, percent_text),
        "ratio": _with_interval(
            number_text(rate.ratio, limit=FOUR_FIFTHS),
            rate.ratio_interval,
            number_text,
            "reference" if is_reference else why,
        ),
        "below": "below" if below else "",
        "p": p_text(rate.p_value),
        "shortfall": MISSING if rate.shortfall is None else f"{rate.shortfall:,}",
        "difference": figure_text(rate.mean_difference, digits=2, signed=True),
    }
    return [texts[column] for column in columns if column != "group"]


def _rows(rates: Sequence[GroupRates], table: Decisions, columns: Sequence[str]) -> list[Markup]:
    return [table_row(name_text(rate.group), _cells(rate, table, columns)) for rate in rates]


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
    standard = STANDARDS[table.standard]
    names = {**RATE_HEADINGS, **({"rate": "Scoring rate"} if table.selected_by == "median" else {})}
    columns = standard.columns
    if all(rate.selected is None for rate in table.rates):  # of weighted rows
        columns = tuple(name for name in columns if name not in ("selected", "p", "shortfall"))
    title = f"By {table.attribute}{'' if table.within == 'everyone' else f', {table.within}'}"
    enough, few = ([rate for rate in rates if rate.few is apart] for apart in (False, True))
    bodies = [element("tbody", *_rows(enough, table, columns))] if enough else []
    if few:
        words = element("th", "Too few rows", colspan=str(len(columns)), scope="rowgroup")
        heading = element("tr", words, class_="apart")
        bodies.append(element("tbody", heading, *_rows(few, table, columns)))
    if table.unknown is not None:
        bodies.append(element("tbody", *_rows([table.unknown], table, columns), class_="apart"))
    head = table_head(names[name] for name in columns)
    excluded = exclusions_sentence(table, settings, about)
    selected = noun(table_selected_text(table))
    low = " Low scores are favorable." if table.favorable == "low" else ""
    hints = [
        element("p", f"Selected: {selected}.{low} {ratio_text(table, settings)}", class_="hint")
    ]
    if excluded:
        hints.append(element("p", excluded, class_="hint"))
    if len(rates) < len(table.rates):
        text = f"{len(table.rates) - len(rates):,} more categories are in the csv and JSON files."
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
    head = table_head(["Category", *(f"{10 * at}%" for at in range(1, 10))])
    rows = [
        table_row(
            name_text(rate.group), (figure_text(ratio, digits=2) for ratio in rate.decile_ratios)
        )
        for rate in table.rates
        if rate.decile_ratios
    ]
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
    names = [view.label(key) for key in ("strength", view.key, view.gap_key)]
    models = [base, *fairer]
    texts = strength_texts([point.strength for point in models])

    def row(point: Point, text: str, word: str = "") -> Markup:
        cells = []
        for key in (view.key, view.gap_key):
            interval = None if view.below(point, key) is not None else point.intervals.get(key)
            cells.append(_with_interval(view.text(point, key), interval, figure_text))
        return table_row(with_small(f"{point.family} {text}".strip(), word), cells)

    sentence = (
        f"{len(fairer):,} of {len(view.points):,} models {'is' if len(fairer) == 1 else 'are'} "
        "less unfair than the "
        f"model with the best {names[1].lower()}, and within the interval of its "
        f"{names[1].lower()}."
    )
    body = element("tbody", row(base, texts[0], "compared with"), *map(row, fairer, texts[1:]))
    return joined(
        element("h3", "Less discriminatory alternatives"),
        element("p", sentence, class_="said"),
        table_region(
            element("table", table_head(names), body), aria_label="Less discriminatory alternatives"
        ),
    )


def rates_section(record: AuditRecord, *, frontier: FrontierView | None = None) -> Markup:
    """All tables of rates as one section of the page; by a standard, only its tables."""
    tables = required_tables(record)
    if not tables:
        return Markup("")
    standard, words, room, parts = (
        STANDARDS[tables[0].standard],
        STANDARD_WORDS[tables[0].standard],
        _MOST_ROWS,
        [],
    )
    has_intervals = any(rate.interval for table in tables for rate in table.rates)
    small = (
        f" Small figures are {confidence_text(record.confidence)} confidence intervals of single "
        "figures. The interval "
        "below a table is adjusted for the choice of the smallest ratio."
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
    hint = element("p", f"{words.about}{small if has_intervals else ''}", class_="hint")
    return card(
        "ratios", words.title, *parts, hint, element("p", NO_VERDICT, class_="said verdict")
    )


def rates_head(record: AuditRecord) -> Markup:
    """The answer of each table; the first sentence leads."""
    return summary_head(rates_summary(record) or ["There are no decisions, so there are no rates."])


def rates_html(record: AuditRecord, *, title: str, frontier: FrontierView | None = None) -> str:
    """The page of the tables alone: the answer, the tables, notes on them, and where they come
    from.
    """
    notes = [text for _, _, texts in notes_by_topic(rate_notes(record.notes)) for text in texts]
    remarks = [card("notes", "Notes", item_list(notes, class_="sentences"))] if notes else []
    body = joined(rates_section(record, frontier=frontier), *remarks)
    columns = {
        RATE_HEADINGS[name]
        for table in record.decisions
        for name in STANDARDS[table.standard].columns
    }
    return document(
        title=title,
        about="selection rates",
        head=rates_head(record),
        unscripted="This page needs no script.",
        sections=[Section(body, "rates-data", None, ())],
        words=[(word, meaning) for word, meaning in DECISION_WORDS.items() if word in columns],
        provenance=record.provenance,
    )
