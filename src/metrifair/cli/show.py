"""Print audits, comparisons and series on the terminal: sentences first, then tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from metrifair.api.audit_result import Audit, RateTable
from metrifair.auditing.ranking import required_tables, shown_findings, sort_findings
from metrifair.auditing.records import AuditRecord, Decisions, Finding
from metrifair.cli.console import say, show_table
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

if TYPE_CHECKING:
    from rich.console import Console

    from metrifair.api.compare import AuditDifference
    from metrifair.api.monitor import AuditSeries

_SHOWN = 12  # comparisons, or tables of rates
_DIFFERENCES = 20  # rows of the table of differences
_WIDE = 110  # columns of a terminal that has room for every metric
_MOST_ROWS = 60  # of all tables of rates together


def show_audit(out: Console, record: AuditRecord, *, details: bool = False) -> None:
    """Print the summary, the comparisons with the most evidence first, rates of decisions, and notes.

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
        say(out, "Use --details to add distances between score distributions, figures by group and all findings.")


def _show_proxy(out: Console, record: AuditRecord) -> None:
    """Estimates weighted by probabilities, where known groups or cells check them."""
    estimates = [] if record.proxy is None else record.proxy.estimates
    rows = [estimate_row(row) for row in estimates if row.corrected is not None or row.bounds is not None]
    if rows:
        show_table(out, HEADINGS, rows[:_SHOWN], left=1)


def _show_comparisons(out: Console, record: AuditRecord) -> None:
    findings = shown_findings(record.findings)
    metrics = list(dict.fromkeys(finding.metric for finding in findings))
    shown_metrics = metrics if out.width >= _WIDE else metrics[:1]
    by_comparison: dict[tuple[object, ...], dict[str, Finding]] = {}
    for finding in findings:
        by_comparison.setdefault((finding.attribute, finding.criterion, finding.within, finding.groups), {})[
            finding.metric
        ] = finding
    ranked = sort_findings([finding for finding in findings if finding.metric == metrics[0]])
    rows = [by_comparison[finding.attribute, finding.criterion, finding.within, finding.groups] for finding in ranked]
    show_table(
        out,
        ["groups", "compared", *shown_metrics, "joint interval", "p-value", "significant"],
        [_comparison(findings_of_row, shown_metrics) for findings_of_row in rows[:_SHOWN]],
        left=2,
    )
    if len(rows) > _SHOWN:
        out.print(f"... and {len(rows) - _SHOWN} more comparisons; --output or --html shows all.")


def _names(groups: Sequence[str]) -> str:
    return ", ".join(map(name_text, groups))


def _comparison(shown: dict[str, Finding], metrics: Sequence[str]) -> list[str]:
    """A row of the table; joint interval, p-value and significance are those of the first metric."""
    first = next(iter(shown.values()))
    values = [number_text(shown[metric].value if metric in shown else None) for metric in metrics]
    return [
        f"{first.attribute}: {_names(first.groups)}",
        f"{first.within}: {first.criterion.replace('_', ' ')}",
        *values,
        interval_text(first.joint_interval),
        p_text(first.p_value),
        "too few" if not first.enough else {True: "yes", False: "no", None: MISSING}[first.significant],
    ]


def show_rates(out: Console, record: AuditRecord) -> None:
    """Rates by group, with the ratio to the reference; for a standard, its answer first, and the exclusions."""
    tables = required_tables(record)
    if not tables:
        return
    standard = tables[0].standard
    if standard:
        say(out, STANDARD_WORDS[standard].title, *rates_summary(record))
    rows = [
        _rate(table, rate)
        for table in tables[:_SHOWN]
        for rate in [*table.rates, *([table.unknown] if table.unknown else [])]
    ]
    headings = [name for name in rows[0] if any(row[name] != MISSING for row in rows)]
    show_table(out, headings, [[row[name] for name in headings] for row in rows[:_MOST_ROWS]], left=2)
    if len(rows) > _MOST_ROWS:
        out.print(f"... and {len(rows) - _MOST_ROWS} more groups; --rates or --html shows all.")
    if standard:
        about = record.provenance.about
        say(out, *filter(None, (exclusions_sentence(table, record.settings, about) for table in tables)), NO_VERDICT)
        return
    for table in (table for table in tables[:_SHOWN] if table.selection_ratio is None):
        say(out, f"{table.attribute}, {table.within}: {ratio_text(table, record.settings)}")


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
        "below": ("below 4/5", "yes" if rate.ratio is not None and is_below(rate.ratio) else MISSING),
        "p": ("p-value", p_text(rate.p_value)),
        "shortfall": ("short of", MISSING if rate.shortfall is None else f"{rate.shortfall:,}"),
        "difference": ("mean", figure_text(rate.mean_difference, digits=2)),
    }
    return texts | dict(columns[name] for name in STANDARDS[table.standard].columns if name in columns)


def show_by_group(out: Console, record: AuditRecord) -> None:
    """Further figures of each group: how well scores rank and fit it."""
    if not record.by_group:
        return
    figures = [
        [f"{table.attribute}: {name_text(group.group)}", table.within, f"{group.size:,}", *map(measure_text, measures)]
        for table in record.by_group[:_SHOWN]
        for group in table.groups
        for measures in [(group.base_rate, group.auc, group.log_loss, group.calibration_error)]
    ]
    headings = ["group", "within", "rows", "base rate", "AUC", "log loss", "calibration error"]
    show_table(out, headings, figures[:_MOST_ROWS], left=2)


def show_differences(out: Console, difference: AuditDifference) -> None:
    """Sentences first, then the differences, the most significant on top."""
    say(out, *difference.summary)
    wide = out.width >= _WIDE
    ordered = sorted(difference.differences, key=lambda row: 2.0 if row.p_value is None else row.p_value)
    rows: Sequence[Sequence[object]] = [
        [
            (f"{row.model}, " if len(difference.audits) > 2 else "")
            + ": ".join(filter(None, (row.attribute, _names(row.groups)))),
            f"{row.within}: {row.criterion.replace('_', ' ')}",
            row.metric.replace("_", " "),
            number_text(row.before),
            number_text(row.after),
            *([figure_text(row.difference, signed=True), interval_text(row.joint_interval)] if wide else []),
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
        say(out, f"A terminal of {_WIDE} columns, --output or --html also shows differences and joint intervals.")
    if len(ordered) > _DIFFERENCES:
        out.print(f"... and {len(ordered) - _DIFFERENCES} more differences; --output or --html shows all.")


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
        headings = ["groups", "compared", "look", "distance", "value", "since baseline", "p-value", "alarm"]
        show_table(out, headings, rows, left=4)


def write_rates(out: Console, result: Audit | AuditDifference, path: Path | None) -> None:
    """Write the table of rates and ratios, if a file is named."""
    if path is None:
        return
    from metrifair.cli.tables import write_table

    if not isinstance(result, Audit):
        raise DataError(SEVERAL_RATES)
    write_table(RateTable(result).to_frame("polars"), path)
    say(out, f"Rates: {path}")
