"""Sort findings by their evidence, and select those that come first in a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from metrifair.auditing.records import (
    AuditRecord,
    Decisions,
    Difference,
    Finding,
    Look,
    independent_sizes,
)
from metrifair.figures.selection_rates import (
    GroupRates,
    headline_groups,
    is_below,
)
from metrifair.figures.two_rates import RatePair
from metrifair.metrics.registry import is_largest_gap


def main_metric(findings: Sequence[Finding | Difference | Look]) -> str:
    """Kolmogorov, or else the first metric of the figures; empty without figures."""
    names = [finding.metric for finding in findings]
    return next(filter(is_largest_gap, names), names[0] if names else "")


def worst_finding(
    findings: Iterable[Finding],
    metric: str | None = None,
    criterion: str | None = None,
) -> Finding | None:
    """The finding with the largest value; by default by the main metric, of all criteria.

    Findings about a group whose name says that it is not known are not compared.
    """
    known = [finding for finding in findings if not finding.unknown_name]
    candidates = [finding for finding in known if criterion in (None, finding.criterion)]
    if metric is None:
        metric = main_metric(candidates)
    return max(
        (finding for finding in candidates if finding.metric == metric),
        key=lambda finding: finding.value,
        default=None,
    )


def sort_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Sort significant findings by the lower end of the joint interval, then others by rows.

    Findings about groups of unknown name follow, and those about small groups come last.

    Metrics alternate because their scales differ: the first finding of each metric, then the second
    of each.

    >>> from metrifair.figures.intervals import Interval
    >>> facts = [("kolmogorov", 0.9, 10, 0.3), ("kolmogorov", 0.2, 80, 0.0),
    ...          ("kolmogorov", 0.4, 70, 0.1), ("energy", 0.02, 70, 0.01)]
    >>> some = [Finding("sex", "statistical_parity", "everyone", ("a", "b"), (rows, 90), metric,
    ...                 value, enough=rows >= 30, joint_interval=Interval(low, 1.0))
    ...         for metric, value, rows, low in facts]
    >>> [finding.value for finding in sort_findings(some)]
    [0.4, 0.02, 0.2, 0.9]
    """

    def rank(finding: Finding) -> tuple[int, float]:
        if finding.certain:
            low = 0.0
            if finding.joint_interval is not None:
                low = finding.joint_interval.low
            return 0, -low
        place = 1
        if finding.unknown_name:
            place = 2
        if not finding.enough:
            place = 3
        return place, -min(independent_sizes(finding))

    counts: Counter[tuple[str, int]] = Counter()
    order = {
        metric: place
        for place, metric in enumerate(dict.fromkeys(finding.metric for finding in findings))
    }
    ranked = []
    for finding in sorted(findings, key=lambda item: (*rank(item), -item.value)):
        kind = finding.metric, rank(finding)[0]
        ranked.append(((kind[1], counts[kind], order[finding.metric]), finding))
        counts[kind] += 1
    return tuple(finding for _, finding in sorted(ranked, key=lambda pair: pair[0]))


def headline_finding(findings: Sequence[Finding]) -> Finding | None:
    """The significant finding by the main metric whose joint interval is furthest above 0; None
    without one.
    """
    metric = main_metric(findings)
    return next(
        iter(
            sort_findings(
                [finding for finding in findings if finding.certain and finding.metric == metric]
            )
        ),
        None,
    )


def summarized_finding(findings: Sequence[Finding]) -> Finding | None:
    """The finding that a summary names: a significant one, or else the one with the most rows;
    None without one.
    """
    metric = main_metric(findings)
    compared = [finding for finding in findings if finding.metric == metric and finding.assessed]
    first = headline_finding(compared)
    if first is not None:
        return first
    bounded = [finding for finding in compared if finding.joint_interval is not None]
    return next(iter(sort_findings(bounded or compared)), None)


def shown_findings(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of a report.

    Decisions are shown for the main metric only, which is the difference of the rates.
    """
    metric = main_metric(findings)
    return [finding for finding in findings if not finding.decided or finding.metric == metric]


def lowest_rate(table: Decisions) -> GroupRates | None:
    """The group with the smallest impact ratio of a table; None if the table has no ratio.

    Among ties, prefer a group with enough rows that is not the reference.
    """
    lowest = [
        rate
        for rate in table.rates
        if rate.ratio is not None and rate.ratio == table.selection_ratio
    ]
    return min(
        lowest,
        key=lambda rate: (rate.group == table.reference, rate.few),
        default=None,
    )


def compares_few(table: Decisions) -> bool:
    """Whether the smallest impact ratio of a table compares a group below the minimum group
    size.
    """
    compared = headline_groups(table.rates, [rate.few for rate in table.rates])
    reference_excluded = table.reference is not None and table.reference not in [
        rate.group for rate in compared
    ]
    return reference_excluded or any(rate.few for rate in compared)


def required_tables(record: AuditRecord) -> list[Decisions]:
    """The tables of all rows that a standard requires; without a standard, all tables."""
    tables = [table for table in record.decisions if table.standard and table.within == "everyone"]
    return tables or list(record.decisions)


class WorstRatio(NamedTuple):
    """The smallest impact ratio among groups of enough rows: its table, the group, and the
    reference.
    """

    table: Decisions
    group: GroupRates
    reference: GroupRates

    @property
    def ratio(self) -> float:
        """The group's selection rate over the reference's."""
        return self.group.ratio or 0.0


def worst_ratio(decisions: Iterable[Decisions]) -> WorstRatio | None:
    """The smallest impact ratio of all tables among groups of enough rows; None if there is
    none.
    """
    ratios = [
        WorstRatio(table, rate, reference)
        for table in decisions
        for reference in [
            rate for rate in table.rates if rate.group == table.reference and not rate.few
        ]
        for rate in table.rates
        if rate.ratio is not None and rate is not reference and not rate.few
    ]
    return min(ratios, key=lambda worst: worst.ratio, default=None)


def is_inconclusive(table: Decisions) -> bool:
    """Whether the interval of the smallest impact ratio includes four fifths."""
    interval = table.selection_ratio_interval
    return interval is not None and is_below(interval.low) and not is_below(interval.high)


def reference_pair(table: Decisions, rate: GroupRates) -> RatePair | None:
    """The counts of a group and of the reference that it is tested against; None if it is not
    tested: rows have weights or clusters, or a group is small or excluded.
    """
    if rate.p_value is None or rate.selected is None:
        return None
    for other in table.rates:
        if other.group == table.reference and other.selected is not None:
            return RatePair(rate.selected, rate.size, other.selected, other.size)
    return None
