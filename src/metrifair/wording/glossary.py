"""The facts and highlights of an audit, and the glossary of its terms."""

from __future__ import annotations

from dataclasses import dataclass

from metrifair.auditing.measure.r2_correction import gap_bracket, joint_bracket, ratio_bracket
from metrifair.auditing.ranking import (
    headline_finding,
    is_inconclusive,
    main_metric,
    shown_findings,
    sort_findings,
    worst_ratio,
)
from metrifair.auditing.records import (
    FIGURES_OF_GROUPS,
    AuditRecord,
    ByGroup,
    Decisions,
    Finding,
    WitnessCurve,
)
from metrifair.figures.selection_rates import FOUR_FIFTHS, STANDARDS, is_below
from metrifair.metrics.registry import METRICS
from metrifair.wording.findings import finding_sentence, group_texts, rank_text
from metrifair.wording.groups import search_glossary
from metrifair.wording.metrics import CRITERION_MEANINGS, criterion_name, metric_words
from metrifair.wording.numbers import (
    confidence_text,
    interval_text,
    noun,
    number_text,
    percent_text,
    quoted,
)
from metrifair.wording.proxies import gap_interval_text
from metrifair.wording.rates import table_selected_text
from metrifair.wording.tables import rate_columns, rate_term
from metrifair.wording.terms import glossary_entries, term_name

CURVES = (
    ("Share below", "The share of a group with this score or less: its distribution function."),
    ("Density", "The relative frequency of scores in a group."),
)
"""The definitions of what pages draw of a group's scores."""


@dataclass(frozen=True)
class AuditHighlight:
    """A headline figure, and the finding or decisions behind it."""

    heading: str
    figures: tuple[tuple[str, str], ...]
    sentence: str
    where: str
    about: Finding | Decisions


def overview(record: AuditRecord) -> tuple[tuple[str, str], ...]:
    """The audit in figures.

    >>> overview(AuditRecord(1200, 3, (0.1, 0.9), 0.95, []))[:2]
    (('Rows', '1,200'), ('Excluded', '3'))
    """
    low, high = record.score_range
    clusters = []
    if record.clusters is not None:
        clusters = [("Clusters", f"{record.clusters.count:,} ({record.clusters.column})")]
    return (
        (term_name("rows"), f"{record.rows:,}"),
        *clusters,
        ("Excluded", f"{record.left_out:,}"),
        ("Scores", f"{number_text(low)} to {number_text(high)}"),
        ("Findings", f"{len(record.findings):,}"),
        ("Confidence", confidence_text(record.confidence)),
    )


def highlights(record: AuditRecord) -> tuple[AuditHighlight, ...]:
    """The smallest impact ratio and the largest gap, if they exist.

    >>> finding = Finding("sex", "statistical_parity", "everyone", ("f", "m"), (90, 90), "kolmogorov", 0.3)
    >>> [(found.heading, found.figures[0][1]) for found in highlights(AuditRecord(180, 0, (0, 1), 0.95, [finding]))]
    [('No significant gap', '0.300')]
    """
    headlines = [_four_fifths(record), _largest(record)]
    return tuple(highlight for highlight in headlines if highlight is not None)


def _largest(record: AuditRecord) -> AuditHighlight | None:
    """The largest significant gap; where none is, the one with the most rows."""
    metric = main_metric(record.findings)
    known = [finding for finding in record.findings if not finding.unknown_name]
    compared = [finding for finding in known if finding.metric == metric]
    if not compared:
        return None
    headline = headline_finding(compared)
    largest = headline or sort_findings(compared)[0]
    bracket = gap_bracket(largest, record)
    if bracket is None:
        bounds = largest.joint_interval
    else:
        bounds = joint_bracket(largest) or largest.joint_interval
    several = sum(finding.assessed for finding in compared) > 1
    kind = "joint interval" if several else "interval"
    interval = ""
    if bounds is not None:
        interval = f", {confidence_text(record.confidence)} {kind} {interval_text(bounds)}"
    left, right = group_texts(largest)
    return AuditHighlight(
        rank_text(headline, compared).capitalize() if headline else "No significant gap",
        ((f"{metric_words(metric).figure}{interval}", gap_interval_text(record, largest)),),
        finding_sentence(largest) or f"Between {left} and {right}.",
        f"{largest.attribute}, {largest.within}",
        largest,
    )


def _four_fifths(record: AuditRecord) -> AuditHighlight | None:
    worst = worst_ratio(record.decisions)
    if worst is None:
        return None
    table, low, high = worst
    sentence = (
        f"The {noun(term_name(rate_term(table)))} is {percent_text(low.selection_rate)} for {quoted(low.group)} and "
        f"{percent_text(high.selection_rate)} for {quoted(high.group)}."
    )
    selected = table_selected_text(table)
    where = f"{table.attribute}, {table.within}, {noun(selected)}"
    bracket = ratio_bracket(table, record)
    ratio = (
        number_text(worst.ratio, limit=FOUR_FIFTHS) if bracket is None else interval_text(bracket)
    )
    if not STANDARDS[table.standard].four_fifths:
        return AuditHighlight(
            "Smallest impact ratio",
            ((term_name("selection_ratio"), ratio),),
            sentence,
            where,
            table,
        )
    figures = ((term_name("four_fifths"), ratio), ("four fifths", number_text(FOUR_FIFTHS)))
    side = "below" if is_below(worst.ratio) else "within"
    if is_inconclusive(table) or (
        bracket is not None and is_below(bracket.low) != is_below(bracket.high)
    ):
        side = "near"
    return AuditHighlight(f"Decisions {side} four fifths", figures, sentence, where, table)


def witness_text(finding: Finding, witness: WitnessCurve) -> str:
    """The mean of either group's utility, which shows the gap."""
    left, right = witness.expected
    first, second = group_texts(finding)
    squared = finding.metric in METRICS and METRICS[finding.metric].squared
    square = " The distance is the square of this difference." if squared else ""
    return (
        f"Its mean is {number_text(left)} for {first} and {number_text(right)} for {second}: a "
        "difference of "
        f"{number_text(abs(left - right))}.{square}"
    )


_EVIDENCE = (
    "witness",
    "unbiased",
    "divided",
    "interval",
    "joint_interval",
    "significant",
    "bracket",
    "certified",
    "certified_jointly",
    "p_value",
)
"""The fields of findings that a glossary explains."""


def audit_glossary(record: AuditRecord) -> tuple[tuple[str, str], ...]:
    """The terms of the report and their definitions: only those that occur.

    >>> [word for word, _ in audit_glossary(AuditRecord(9, 0, (0, 1), 0.95, []))]
    ['Score', 'Group']
    """
    confidence = confidence_text(record.confidence)
    findings = shown_findings(record.findings)
    metrics = dict.fromkeys(finding.metric for finding in findings)
    criteria = dict.fromkeys(finding.criterion for finding in findings)
    has_shares = bool(record.distributions)
    has_densities = any(distribution.curves.density for distribution in record.distributions)
    by_group = [
        key for key in FIGURES_OF_GROUPS if any(has_figure(table, key) for table in record.by_group)
    ]
    return (
        ("Score", "The number that the model assigns to a row."),
        *glossary_entries("group"),
        *CURVES[: has_shares + has_densities],
        *(
            (criterion_name(name), CRITERION_MEANINGS[name])
            for name in criteria
            if name in CRITERION_MEANINGS
        ),
        *((words.name, words.about) for words in map(metric_words, metrics) if words.about),
        *(
            (name, about.replace("CONFIDENCE", confidence))
            for key in _EVIDENCE
            if any(getattr(finding, key) is not None for finding in findings)
            for name, about in glossary_entries(key)
        ),
        *decision_words(record),
        *glossary_entries(*by_group),
        *search_words(record),
    )


def has_figure(table: ByGroup, key: str) -> bool:
    """Whether some group of the table has this figure."""
    return any(getattr(group, key) is not None for group in table.groups)


def search_words(record: AuditRecord) -> list[tuple[str, str]]:
    """The terms of a search for groups, with their definitions; none without a search."""
    return [] if record.group_search is None else search_glossary()


def decision_words(record: AuditRecord) -> list[tuple[str, str]]:
    """The terms of the tables of decisions, with their definitions."""
    tables = record.decisions
    keys = dict.fromkeys(
        column.term or column.key for table in tables for column in rate_columns(table)
    )
    if any(STANDARDS[table.standard].four_fifths for table in tables):
        keys["four_fifths"] = None
    keys.pop("group", None)  # explained once for all tables
    return glossary_entries(*keys)
