"""What the terminal shows of audits, comparisons and series: sentences first, then tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from metrifair.api.audit_result import Audit, RateTable
from metrifair.api.compare import AuditDifference
from metrifair.api.monitor import AuditSeries
from metrifair.auditing.ranking import most_certain_first
from metrifair.auditing.records import AuditRecord, Finding
from metrifair.cli.console import say, show_table
from metrifair.cli.option_names import OPTION_NAMES
from metrifair.cli.rules import SEVERAL_RATES
from metrifair.errors import DataError
from metrifair.report.audit.by_group import measure_text
from metrifair.wording.notes import note_text
from metrifair.wording.numbers import MISSING, figure_text, interval_text, number_text, p_text
from metrifair.wording.rates import NO_VERDICT, STANDARD_WORDS, ratio_text
from metrifair.wording.summary import audit_summary

_SHOWN = 12  # comparisons, or tables of rates
_DIFFERENCES = 20  # rows of the table of differences
_WIDE = 110  # columns of a terminal that has room for every metric
_MOST_ROWS = 60  # of all tables of rates together
_OF_STANDARDS = ("p", "short of", "mean")  # columns that only a table asked for by a rule has


def show_audit(out: Console, record: AuditRecord) -> None:
    """Print the summary, the comparisons with the most evidence first, rates of decisions, and notes."""
    say(out, *audit_summary(record))
    metrics = list(dict.fromkeys(finding.metric for finding in record.findings))
    shown = metrics if out.width >= _WIDE else metrics[:1]
    by_comparison: dict[tuple[object, ...], dict[str, Finding]] = {}
    for one in record.findings:
        by_comparison.setdefault((one.attribute, one.criterion, one.within, one.groups), {})[one.metric] = one
    ranked = most_certain_first([one for one in record.findings if one.metric == metrics[0]])
    rows = [by_comparison[one.attribute, one.criterion, one.within, one.groups] for one in ranked]
    show_table(
        out,
        ["groups", "compared", *shown, "joint interval", "p-value", "significant"],
        [_comparison(own, shown) for own in rows[:_SHOWN]],
        left=2,
    )
    if len(rows) > _SHOWN:
        out.print(f"... and {len(rows) - _SHOWN} more comparisons; --output or --html shows all.")
    show_rates(out, record)
    show_by_group(out, record)
    say(out, *(f"Note: {note_text(note, OPTION_NAMES)}" for note in record.notes))


def _comparison(own: dict[str, Finding], metrics: Sequence[str]) -> list[str]:
    """A row of the table; joint interval, p-value and significance are those of the first metric."""
    first = next(iter(own.values()))
    values = [number_text(own[metric].value if metric in own else None) for metric in metrics]
    return [
        f"{first.attribute}: {first.groups[0]}, {first.groups[1]}",
        f"{first.within}: {first.criterion.replace('_', ' ')}",
        *values,
        interval_text(first.joint_interval),
        p_text(first.p_value),
        "too few" if not first.enough else {True: "yes", False: "no", None: MISSING}[first.significant],
    ]


def show_rates(out: Console, record: AuditRecord) -> None:
    """Rates by group, with the ratio to the reference; of a standard, what its table is."""

    asked = [one for one in record.decisions if one.standard and one.within == "everyone"] or record.decisions
    if not asked:
        return
    if asked[0].standard:
        say(out, STANDARD_WORDS[asked[0].standard].title)
    rows = []
    for table in asked[:_SHOWN]:
        for rate in [*table.rates, *([table.unknown] if table.unknown else [])]:
            told = {
                "group": f"{table.attribute}: {rate.group}",
                "within": table.within,
                "rows": f"{rate.size:,}",
                "selected": figure_text(rate.selection_rate),
                "ratio": "excluded" if rate.left_out else figure_text(rate.ratio),
                "p": p_text(rate.p_value),
                "short of": MISSING if rate.shortfall is None else f"{rate.shortfall:,}",
                "mean": figure_text(rate.mean_difference, digits=2),
                "right": figure_text(rate.accuracy),
                "of positives": figure_text(rate.true_positive_rate),
                "of negatives": figure_text(rate.false_positive_rate),
            }
            rows.append(told if table.standard else {name: told[name] for name in told if name not in _OF_STANDARDS})
    headings = [name for name in rows[0] if any(row[name] != MISSING for row in rows)]
    show_table(out, headings, [[row[name] for name in headings] for row in rows[:_MOST_ROWS]], left=2)
    if len(rows) > _MOST_ROWS:
        out.print(f"... and {len(rows) - _MOST_ROWS} more groups; --rates or --html shows all.")
    for table in (one for one in asked[:_SHOWN] if one.selection_ratio is None):
        say(out, f"{table.attribute}, {table.within}: {ratio_text(table, record.settings)}")
    if asked[0].standard:
        say(out, NO_VERDICT)


def show_by_group(out: Console, record: AuditRecord) -> None:
    """What else is known of each group: how well scores rank and fit it."""

    if not record.by_group:
        return
    figures = [
        [f"{found.attribute}: {one.group}", found.within, f"{one.size:,}", *map(measure_text, measures)]
        for found in record.by_group[:_SHOWN]
        for one in found.groups
        for measures in [(one.base_rate, one.auc, one.log_loss, one.calibration_error)]
    ]
    headings = ["group", "within", "rows", "base rate", "AUC", "log loss", "calibration error"]
    show_table(out, headings, figures[:_MOST_ROWS], left=2)


def show_differences(out: Console, found: AuditDifference) -> None:
    """Sentences first, then the differences, the most certain on top."""
    say(out, *found.summary)
    ordered = sorted(found.differences, key=lambda one: 2.0 if one.p_value is None else one.p_value)
    rows: Sequence[Sequence[object]] = [
        [
            (f"{one.model}, " if len(found.audits) > 2 else "")
            + ": ".join(filter(None, (one.attribute, ", ".join(one.groups)))),
            f"{one.within}: {one.criterion.replace('_', ' ')}",
            one.metric.replace("_", " "),
            number_text(one.before),
            number_text(one.after),
            figure_text(one.difference, signed=True),
            interval_text(one.joint_interval),
            p_text(one.p_adjusted),
            "unclear" if one.verdict == "not_distinguishable" else one.verdict.replace("_", " "),
        ]
        for one in ordered[:_DIFFERENCES]
    ]
    names = list(found.audits)
    after = names[1] if len(names) == 2 else "after"
    headings = ["groups", "compared", "figure", names[0], after, "difference", "joint interval", "p", "verdict"]
    show_table(out, headings, rows, left=3)
    if len(ordered) > _DIFFERENCES:
        out.print(f"... and {len(ordered) - _DIFFERENCES} more differences; --output or --html shows all.")


def show_alarms(out: Console, found: AuditSeries) -> None:
    """Sentences first, then the distances that have changed, the most certain on top."""
    say(out, *found.summary)
    rows = [
        [
            f"{one.attribute}: {', '.join(one.groups)}",
            f"{one.within}: {one.criterion.replace('_', ' ')}",
            one.look,
            one.metric,
            number_text(one.value),
            figure_text(one.difference, signed=True),
            p_text(one.p_value),
            one.alarm,
        ]
        for one in sorted(found.alarms, key=lambda one: one.p_value or 0.0)[:_DIFFERENCES]
    ]
    if rows:
        headings = ["groups", "compared", "look", "distance", "value", "since baseline", "p-value", "alarm"]
        show_table(out, headings, rows, left=4)


def write_rates(out: Console, found: Audit | AuditDifference, path: Path | None) -> None:
    """Write the table of rates and ratios, where a file is named."""
    if path is None:
        return
    from metrifair.cli.tables import write_table

    if isinstance(found, AuditDifference):
        raise DataError(SEVERAL_RATES)
    write_table(RateTable(found).to_frame("polars"), path)
    say(out, f"Rates: {path}")
