"""Print audits, comparisons and series on the terminal: sentences first, then tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from metrifair.auditing.records import AuditRecord, ByGroup, Decisions, Difference, Finding
from metrifair.cli.console import rows_to_show, say, say_hidden, show_columns, show_table
from metrifair.cli.option_names import OPTION_NAMES
from metrifair.cli.rules import SEVERAL_RATES
from metrifair.errors import DataError
from metrifair.figures.selection_rates import FOUR_FIFTHS, STANDARDS, GroupRates, is_below
from metrifair.wording.findings import measure_text
from metrifair.wording.notes import note_text, rate_notes
from metrifair.wording.numbers import (
    MISSING,
    figure_text,
    interval_text,
    name_text,
    number_text,
    p_text,
    percent_text,
)
from metrifair.wording.proxies import HEADINGS, estimate_row
from metrifair.wording.rates import NO_VERDICT, STANDARD_WORDS, exclusions_sentence, ratio_text
from metrifair.wording.summary import audit_summary, rates_summary
from metrifair.wording.tables import Column, filled, finding_table

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.api.compare import AuditDifference
    from metrifair.api.monitor import AuditSeries

_SHOWN = 12  # comparisons, or tables of rates
_DIFFERENCES = 20  # rows of the table of differences
_WIDE = 110  # columns of a terminal that has room for every metric
_MOST_ROWS = 60  # of all tables of rates together


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
    notes = record.notes if details or not standard else rate_notes(record.notes)
    say(out, *(f"Note: {note_text(note, OPTION_NAMES)}" for note in notes))
    if standard and not details:
        say(
            out,
            "Use --details to add distances between score distributions, figures by group and all "
            "findings.",
        )


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
    rows = [estimate_row(row) for row in shown]
    used = [at for at in range(len(HEADINGS)) if any(row[at] != MISSING for row in rows)]
    if rows:
        headings = [HEADINGS[at] for at in used]
        show_table(out, headings, [[row[at] for at in used] for row in rows[:_SHOWN]], left=1)
        say_hidden(out, len(rows) - _SHOWN, "estimates")


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


def _names(groups: Sequence[str]) -> str:
    return ", ".join(map(name_text, groups))


def show_rates(out: Console, record: AuditRecord) -> None:
    """Rates by group, with the ratio to the reference; for a standard, its answer first, and
    the exclusions.
    """
    tables = required_tables(record)
    if not tables:
        return
    standard = tables[0].standard
    if standard:
        say(out, STANDARD_WORDS[standard].title, *rates_summary(record))
    worst = worst_ratio(record.decisions)
    shown_tables = rows_to_show(
        tables, _SHOWN, lambda table: (_smallest_ratio(table), -_rate_range(table))
    )
    pairs = [(table, rate) for table in shown_tables for rate in _table_rates(table)]

    def rank(pair: tuple[Decisions, GroupRates]) -> tuple[bool, float]:
        table, rate = pair
        summarized = (
            worst is not None and table is worst.table and rate in (worst.group, worst.reference)
        )
        return not summarized, inf if rate.ratio is None else rate.ratio

    shown = rows_to_show(pairs, _MOST_ROWS, rank)
    rows = [_rate(table, rate) for table, rate in shown]
    headings = [name for name in rows[0] if any(row[name] != MISSING for row in rows)]
    show_table(out, headings, [[row[name] for name in headings] for row in rows], left=2)
    say_hidden(
        out, sum(map(len, map(_table_rates, tables))) - len(shown), "groups", "--rates or --html"
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


def _table_rates(table: Decisions) -> list[GroupRates]:
    """The groups of a table, and the rows with a missing group."""
    return [*table.rates, *([] if table.unknown is None else [table.unknown])]


def _smallest_ratio(table: Decisions) -> float:
    """The smallest impact ratio among groups of enough rows; infinite if there is none."""
    worst = worst_ratio([table])
    return inf if worst is None else worst.ratio


def _rate_range(table: Decisions) -> float:
    return 0.0 if table.selection_difference is None else table.selection_difference


def _rate(table: Decisions, rate: GroupRates) -> dict[str, str]:
    """A row of the table of rates, by heading; of a standard, the columns of its table."""
    few = " (too few rows)" if rate.few else ""
    texts = {
        "group": f"{table.attribute}: {name_text(rate.group)}{few if table.standard else ''}",
        "within": MISSING if table.standard else table.within,
        "rows": f"{rate.size:,}",
        "selected": MISSING if rate.selected is None else f"{rate.selected:,}",
        "rate": percent_text(rate.selection_rate),
        "ratio": "excluded" if rate.left_out else figure_text(rate.ratio, limit=FOUR_FIFTHS),
    }
    if not table.standard:
        return texts | {
            "right": figure_text(rate.accuracy),
            "of positives": figure_text(rate.true_positive_rate),
            "of negatives": figure_text(rate.false_positive_rate),
        }
    columns = {
        "below": (
            "below 4/5",
            "yes" if rate.ratio is not None and is_below(rate.ratio) else MISSING,
        ),
        "p": ("p-value", p_text(rate.p_value)),
        "shortfall": ("short of", MISSING if rate.shortfall is None else f"{rate.shortfall:,}"),
        "difference": ("mean", figure_text(rate.mean_difference, digits=2)),
    }
    return texts | dict(
        columns[name] for name in STANDARDS[table.standard].columns if name in columns
    )


def show_by_group(out: Console, record: AuditRecord) -> None:
    """Further figures of each group: how well scores rank and fit it."""
    if not record.by_group:
        return
    tables = rows_to_show(record.by_group, _SHOWN, lambda table: -_largest_gap(table))
    figures = [
        [
            f"{table.attribute}: {name_text(group.group)}",
            table.within,
            f"{group.size:,}",
            *map(measure_text, measures),
        ]
        for table in tables
        for group in table.groups
        for measures in [(group.base_rate, group.auc, group.log_loss, group.calibration_error)]
    ]
    headings = ["group", "within", "rows", "base rate", "AUC", "log loss", "calibration error"]
    show_table(out, headings, figures[:_MOST_ROWS], left=2)
    total = sum(len(table.groups) for table in record.by_group)
    say_hidden(out, total - min(len(figures), _MOST_ROWS), "groups")


def _largest_gap(table: ByGroup) -> float:
    """The gap of the AUC between groups, or of the base rate if there is none."""
    gap = table.gaps.get("auc", table.gaps.get("base_rate"))
    return 0.0 if gap is None else gap.value


def _significance_rank(row: Difference) -> tuple[float, float]:
    """The most significant difference first, as the sentences name it: by p-value, then by size."""
    return 2.0 if row.p_value is None else row.p_value, -abs(row.difference)


def show_differences(out: Console, difference: AuditDifference) -> None:
    """Sentences first, then the differences, the most significant on top."""
    say(out, *difference.summary)
    wide = out.width >= _WIDE
    ordered = sorted(difference.differences, key=_significance_rank)
    rows: Sequence[Sequence[object]] = [
        [
            (f"{row.model}, " if len(difference.audits) > 2 else "")
            + ": ".join(filter(None, (row.attribute, _names(row.groups)))),
            f"{row.within}: {row.criterion.replace('_', ' ')}",
            row.metric.replace("_", " "),
            number_text(row.before),
            number_text(row.after),
            *(
                [figure_text(row.difference, signed=True), interval_text(row.joint_interval)]
                if wide
                else []
            ),
            p_text(row.p_adjusted),
            "unclear" if row.verdict == "not_distinguishable" else row.verdict.replace("_", " "),
        ]
        for row in ordered[:_DIFFERENCES]
    ]
    names = list(difference.audits)
    after = names[1] if len(names) == 2 else "after"
    tested = (*(("difference", "joint interval") if wide else ()), "adjusted p-value", "verdict")
    show_table(out, ["groups", "compared", "figure", names[0], after, *tested], rows, left=3)
    if not wide:
        say(
            out,
            f"A terminal of {_WIDE} columns, --output or --html also shows differences and joint "
            "intervals.",
        )
    say_hidden(out, len(ordered) - _DIFFERENCES, "differences")


def show_alarms(out: Console, series: AuditSeries) -> None:
    """Sentences first, then the distances that have changed, the most certain on top."""
    say(out, *series.summary)
    rows = [
        [
            f"{change.attribute}: {_names(change.groups)}",
            f"{change.within}: {change.criterion.replace('_', ' ')}",
            change.look,
            change.metric,
            number_text(change.value),
            figure_text(change.difference, signed=True),
            p_text(change.p_value),
            change.alarm,
        ]
        for change in sorted(series.alarms, key=lambda alarm: alarm.p_value or 0.0)[:_DIFFERENCES]
    ]
    if rows:
        headings = [
            "groups",
            "compared",
            "look",
            "distance",
            "value",
            "since baseline",
            "p-value",
            "alarm",
        ]
        show_table(out, headings, rows, left=4)
        say_hidden(out, len(series.alarms) - len(rows), "alarms")


def write_rates(out: Console, result: Audit | AuditDifference, path: Path | None) -> None:
    """Write the table of rates and ratios, if a file is named."""
    if path is None:
        return
    from metrifair.cli.tables import write_table

    if not isinstance(result, Audit):
        raise DataError(SEVERAL_RATES)
    write_table(RateTable(result).to_frame("polars"), path)
    say(out, f"Rates: {path}")
