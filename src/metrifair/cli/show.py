"""Print audits, comparisons and series on the terminal: sentences first, then tables."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from metrifair.api.audit_result import Audit, RateTable
from metrifair.auditing.ranking import (
    main_metric,
    required_tables,
    shown_findings,
    sort_findings,
    summarized_finding,
    worst_ratio,
)
from metrifair.auditing.records import (
    FIGURES_OF_GROUPS,
    AuditRecord,
    ByGroup,
    Decisions,
    Difference,
    Finding,
)
from metrifair.auditing.search_records import SearchRecord
from metrifair.cli.console import rows_to_show, say, say_hidden, show_columns, show_table
from metrifair.cli.option_names import OPTION_NAMES
from metrifair.cli.rules import SEVERAL_RATES
from metrifair.errors import DataError
from metrifair.wording.groups import GROUP_KEYS, gap_columns, group_table, search_summary
from metrifair.wording.notes import note_text, rate_notes
from metrifair.wording.rates import NO_VERDICT, exclusions_sentence, ratio_text
from metrifair.wording.summary import audit_summary, rates_summary
from metrifair.wording.tables import (
    FIGURES_BY_GROUP,
    LOOKS,
    RATES,
    Column,
    GroupRow,
    difference_columns,
    estimate_rows,
    figure_rows,
    filled,
    finding_table,
    rate_columns,
    rate_rows,
    rates_title,
)

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.api.compare import AuditDifference
    from metrifair.api.monitor import AuditSeries

_SHOWN = 12  # comparisons, or tables of rates
_DIFFERENCES = 20  # rows of the table of differences
_WIDE = 110  # columns of a terminal that has room for every metric
_MOST_ROWS = 60  # of all tables of rates together
# of rates: columns that only pages and files have room for
_STANDARD_FILES = ("share",)
_FILES = (*_STANDARD_FILES, "fisher_p", "standard_deviations", "odds_ratio", "shortfall")
_ALARM_KEYS = (
    "compared",
    "within",
    "look",
    "metric",
    "value",
    "difference",
    "p_value",
    "alarm",
)


def show_audit(out: Console, record: AuditRecord, *, details: bool = False) -> None:
    """Print the summary, the comparisons with the most evidence first, rates of decisions, and
    notes.

    By a standard, its tables of rates come first, and the others are ``details``.
    """
    standard = record.settings.standard is not None
    if standard:
        show_rates(out, record)
    if details or not standard:
        say(out, *audit_summary(record))
        _show_comparisons(out, record)
        if not standard:
            show_rates(out, record)
        _show_proxy(out, record)
        show_by_group(out, record)
    if record.group_search is not None:
        if standard and not details:
            say(out, *search_summary(record.group_search))
        show_search(out, record.group_search)
    notes = record.notes if details or not standard else rate_notes(record.notes)
    say(out, *(f"Note: {note_text(note, OPTION_NAMES)}" for note in notes))
    if standard and not details:
        say(
            out,
            "Use --details to add distances between score distributions, figures by group and all "
            "findings.",
        )


def show_search(out: Console, record: SearchRecord) -> None:
    """Print the listed groups of a search, and the bounds of all gaps."""
    if record.listed:
        show_columns(out, group_table(record).pick(*GROUP_KEYS), record.listed)
    if any(group.is_protected for group in record.listed):
        say(out, "* Has a condition on a protected attribute.")
    show_columns(out, gap_columns(record), record.largest_gaps)


def _show_proxy(out: Console, record: AuditRecord) -> None:
    """Estimates weighted by probabilities, where they have a second end, or known groups or
    cells check them.
    """
    estimates = [] if record.proxy is None else record.proxy.estimates
    shown = [
        row
        for row in estimates
        if any(end is not None for end in (row.divided, row.corrected, row.bounds))
    ]
    if shown:
        headings, lines = estimate_rows(shown)
        show_table(out, headings, lines[:_SHOWN])
        say_hidden(out, len(lines) - _SHOWN, "estimates")


def _show_comparisons(out: Console, record: AuditRecord) -> None:
    findings = shown_findings(record.findings)
    main = main_metric(findings)
    metrics = list(
        dict.fromkeys([*([main] if findings else []), *(finding.metric for finding in findings)])
    )
    shown_metrics = metrics if out.width >= _WIDE else metrics[:1]
    by_comparison: dict[_Comparison, dict[str, Finding]] = {}
    for finding in findings:
        by_comparison.setdefault(_comparison_key(finding), {})[finding.metric] = finding
    ranked = sort_findings([finding for finding in findings if finding.metric == main])
    summarized = summarized_finding(findings)
    rank = {id(finding): place for place, finding in enumerate(ranked)}
    shown = rows_to_show(
        ranked, _SHOWN, lambda finding: (finding is not summarized, rank[id(finding)])
    )
    table = finding_table(record)
    distances = [_distance_column(metric, by_comparison) for metric in shown_metrics]
    evidence = filled(table.pick("divided", "joint", "p_value", "significance"), ranked)
    places = table.pick("groups", "within")
    show_columns(out, [*places, *distances, *evidence], shown)
    say_hidden(out, len(ranked) - len(shown), "comparisons")


_Comparison: TypeAlias = tuple[str, str, str, tuple[str, ...]]


def _distance_column(
    metric: str, by_comparison: Mapping[_Comparison, Mapping[str, Finding]]
) -> Column:
    """The values by one metric, beside the findings by the first one."""

    def value(finding: Finding) -> float | None:
        same = by_comparison[_comparison_key(finding)].get(metric)
        return None if same is None else same.value

    return Column(metric, value=value)


def _comparison_key(finding: Finding) -> _Comparison:
    """What findings by all metrics of one comparison share."""
    return finding.attribute, finding.criterion, finding.within, tuple(finding.groups)


def show_rates(out: Console, record: AuditRecord) -> None:
    """Rates by group, with the ratio to the reference; for a standard, its answer first, and
    the exclusions.
    """
    tables = required_tables(record)
    if not tables:
        return
    standard = tables[0].standard
    if standard:
        say(out, rates_title(tables), *rates_summary(record))
    worst = worst_ratio(record.decisions)
    shown_tables = rows_to_show(
        tables, _SHOWN, lambda table: (_smallest_ratio(table), -_rate_range(table))
    )
    pairs = [row for table in shown_tables for row in rate_rows(table)]

    def rank(row: GroupRow) -> tuple[bool, float]:
        summarized = (
            worst is not None
            and row.table is worst.table
            and row.group in (worst.group, worst.reference)
        )
        return not summarized, inf if row.group.ratio is None else row.group.ratio

    shown = rows_to_show(pairs, _MOST_ROWS, rank)
    places = RATES.pick("attribute", "group", *([] if standard else ["within"]))
    columns = [
        column
        for column in filled(rate_columns(tables[0])[1:], shown)
        if column.key not in (_STANDARD_FILES if standard else _FILES)
    ]
    show_columns(out, [*places, *columns], shown)
    say_hidden(
        out,
        sum(len(rate_rows(table)) for table in tables) - len(shown),
        "groups",
        "--rates or --html",
    )
    if standard:
        about = record.provenance.about
        say(
            out,
            *filter(None, (exclusions_sentence(table, record.settings, about) for table in tables)),
            NO_VERDICT,
        )
        return
    for table in (table for table in shown_tables if table.selection_ratio is None):
        say(out, f"{table.attribute}, {table.within}: {ratio_text(table, record.settings)}")


def _smallest_ratio(table: Decisions) -> float:
    """The smallest impact ratio among groups of enough rows; infinite if there is none."""
    worst = worst_ratio([table])
    return inf if worst is None else worst.ratio


def _rate_range(table: Decisions) -> float:
    return 0.0 if table.selection_difference is None else table.selection_difference


def show_by_group(out: Console, record: AuditRecord) -> None:
    """Further figures of each group: how well scores rank and fit it."""
    if not record.by_group:
        return
    tables = rows_to_show(record.by_group, _SHOWN, lambda table: -_largest_gap(table))
    rows = [row for table in tables for row in figure_rows(table)]
    shown = rows[:_MOST_ROWS]
    show_columns(
        out,
        filled(
            FIGURES_BY_GROUP.pick("attribute", "group", "within", "rows", *FIGURES_OF_GROUPS), shown
        ),
        shown,
    )
    total = sum(len(table.groups) for table in record.by_group)
    say_hidden(out, total - len(shown), "groups")


def _largest_gap(table: ByGroup) -> float:
    """The gap of the AUC between groups, or of the base rate if there is none."""
    gap = table.gaps.get("auc", table.gaps.get("base_rate"))
    return 0.0 if gap is None else gap.value


def _significance_rank(row: Difference) -> tuple[float, float]:
    """The most significant difference first, as the sentences name it: by p-value, then by size."""
    return 2.0 if row.p_value is None else row.p_value, -abs(row.difference)


def show_differences(out: Console, difference: AuditDifference) -> None:
    """Sentences first, then the differences, the most significant on top."""
    say(out, *difference.summary.splitlines())
    wide = out.width >= _WIDE
    ordered = sorted(difference.differences, key=_significance_rank)
    names = list(difference.audits)
    after = names[1] if len(names) == 2 else "after"
    keys = ["compared", "within", "metric", "before", "after"]
    if len(names) > 2:
        keys.insert(0, "model")
    if wide:
        keys += ["difference", "joint"]
    columns = difference_columns(names[0], after, *keys, "p_adjusted", "verdict")
    show_columns(out, columns, ordered[:_DIFFERENCES])
    if not wide:
        say(
            out,
            f"A terminal of {_WIDE} columns, --output or --html also shows differences and joint "
            "intervals.",
        )
    say_hidden(out, len(ordered) - _DIFFERENCES, "differences")


def show_alarms(out: Console, series: AuditSeries) -> None:
    """Sentences first, then the distances that have changed, the most certain on top."""
    say(out, *series.summary.splitlines())
    shown = sorted(series.alarms, key=lambda alarm: alarm.p_value or 0.0)[:_DIFFERENCES]
    if shown:
        show_columns(out, LOOKS.pick(*_ALARM_KEYS), shown)
        say_hidden(out, len(series.alarms) - len(shown), "alarms")


def write_rates(out: Console, result: Audit | AuditDifference, path: Path | None) -> None:
    """Write the table of rates and ratios, if a file is named."""
    if path is None:
        return
    from metrifair.cli.tables import write_table

    if not isinstance(result, Audit):
        raise DataError(SEVERAL_RATES)
    write_table(RateTable(result).to_frame("polars"), path)
    say(out, f"Rates: {path}")
