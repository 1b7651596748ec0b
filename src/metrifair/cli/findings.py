"""What an audit found, on the terminal: its sentences, tables, and which limits are broken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console

from metrifair.checks import check_known
from metrifair.cli.console import decimals, printable, show_table
from metrifair.cli.options import GAPS, Limit, as_options
from metrifair.errors import DataError
from metrifair.metrics.registry import METRICS, USUAL
from metrifair.report.numbers import number_text
from metrifair.results import AuditRecord, Decisions, Finding, Interval

_SHOWN = 12  # comparisons in the table on the terminal
_WIDE = 110  # columns of a terminal that has room for every metric
_ROUNDING = 1e-12  # as floats, 0.4 - 0.3 is a little above 0.1


def metrics_asked(metrics: Sequence[str], limits: Iterable[Limit]) -> list[str] | None:
    """The metrics to measure: those that were named, or the usual ones, and those with a limit.

    >>> metrics_asked(["energy"], [Limit("kolmogorov", 0.1), Limit("accuracy_difference", 0.1)])
    ['energy', 'kolmogorov']
    """
    limited = [limit.metric for limit in limits]
    for metric in limited:
        check_known("--fail-above", metric, (*METRICS, *GAPS))
    more = [metric for metric in limited if metric in METRICS]
    if not metrics and set(more) <= set(USUAL):
        return None
    return list(dict.fromkeys([*(metrics or USUAL), *more]))


def broken(record: AuditRecord, limits: Iterable[Limit]) -> list[str]:
    """One line for each limit that is broken, about its worst finding."""
    found = []
    for limit in limits:
        measured = _measured(record, limit.metric)
        if not measured and not record.findings:
            raise DataError(
                f"--fail-above {limit.metric}: nothing could be compared, so there is no such figure; each comparison "
                "needs two groups with rows"
            )
        if not measured:
            needed = "decisions: use --threshold" if not record.decisions else "labels that --label names"
            raise DataError(f"--fail-above {limit.metric}: the audit has no such figure, as it needs {needed}")
        value, where = max(measured)
        if value > limit.value * (1 + _ROUNDING):
            found.append(f"{limit.metric} is {value:.4g}, above {limit.value:g}: {where}")
    return found


def _measured(record: AuditRecord, metric: str) -> list[tuple[float, str]]:
    if metric in METRICS:
        return [(one.value, _where(one)) for one in record.findings if one.metric == metric]
    gaps = [(getattr(one, metric), f"{one.attribute}, {one.within}") for one in record.decisions]
    return [(gap, where) for gap, where in gaps if gap is not None]


def _where(finding: Finding) -> str:
    return (
        f"{finding.groups[0]} against {finding.groups[1]} ({finding.attribute}, {finding.criterion}, {finding.within})"
    )


def show_audit(out: Console, record: AuditRecord) -> None:
    """Sentences first, then the comparisons with the largest distance on top."""
    for sentence in record.summary:
        out.print(printable(sentence), soft_wrap=True)
    metrics = list(dict.fromkeys(finding.metric for finding in record.findings))
    shown = metrics if out.width >= _WIDE else metrics[:1]
    rows = _comparisons(record)
    headings = ["groups", "compared", *shown, "interval", "at most", "p-value"]
    show_table(out, headings, [_row(own, shown) for own in rows[:_SHOWN]], left=2)
    if len(rows) > _SHOWN:
        out.print(f"... and {len(rows) - _SHOWN} more comparisons; --output or --html shows all.")
    if record.decisions:
        headings = ["group", "within", "rows", "selected", "right", "of positives", "of negatives"]
        show_table(out, headings, [row for one in record.decisions[:_SHOWN] for row in _rates(one)], left=2)
    for note in record.notes:
        out.print(f"Note: {printable(as_options(note.text))}", soft_wrap=True)


def _comparisons(record: AuditRecord) -> list[dict[str, Finding]]:
    """The findings of each comparison by metric, the largest distance first."""
    rows: dict[tuple[object, ...], dict[str, Finding]] = {}
    for one in record.findings:
        rows.setdefault((one.attribute, one.criterion, one.within, one.groups), {})[one.metric] = one
    return sorted(rows.values(), key=lambda own: -next(iter(own.values())).value)


def _row(own: dict[str, Finding], metrics: Sequence[str]) -> list[str]:
    """Interval, bound and p-value are those of the first metric."""
    first = next(iter(own.values()))
    groups = f"{first.attribute}: {first.groups[0]}, {first.groups[1]}"
    values = [number_text(own[metric].value if metric in own else None) for metric in metrics]
    bound = first.certified_jointly if first.certified_jointly is not None else first.certified
    compared = f"{first.within}: {first.criterion.replace('_', ' ')}"
    return [groups, compared, *values, _span(first.interval), number_text(bound), _p(first.p_value)]


def _span(interval: Interval | None) -> str:
    return "-" if interval is None else f"{number_text(interval.low)}-{number_text(interval.high)}"


def _p(value: float | None) -> str:
    return decimals(value, 4) if value is None or value >= 1e-4 else "< 0.0001"


def _rates(decisions: Decisions) -> list[list[str]]:
    return [
        [
            f"{decisions.attribute}: {rate.group}",
            decisions.within,
            f"{rate.size:,}",
            *(decimals(part) for part in (rate.selection_rate, rate.accuracy)),
            *(decimals(part) for part in (rate.true_positive_rate, rate.false_positive_rate)),
        ]
        for rate in decisions.rates
    ]
