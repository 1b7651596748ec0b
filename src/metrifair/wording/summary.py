"""An audit in two to seven sentences, the most important first."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from metrifair.auditing.ranking import headline_finding, main_metric, required_tables, sort_findings, worst_ratio
from metrifair.auditing.records import AuditRecord, Decisions, Finding
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import FOUR_FIFTHS
from metrifair.metrics.registry import METRICS
from metrifair.wording.findings import detectable_text, finding_sentence, group_texts, rank_text
from metrifair.wording.notes import constant_text, note_topic
from metrifair.wording.numbers import (
    confidence_text,
    count_text,
    figure_text,
    percent_text,
    points_text,
    quoted,
    score_text,
)
from metrifair.wording.proxies import assumption_sentence, checked_sentence
from metrifair.wording.rates import four_fifths_text, rates_sentence, table_selected_text

_ROUNDING = 1e-9

_TESTS = {
    "bonferroni": "permutation test with Bonferroni adjustment",
    "joint_bounds": "joint confidence intervals",
}


def audit_summary(record: AuditRecord) -> list[str]:
    """The summary; a gap is a headline only if it is significant, by its joint confidence interval if it has one."""
    sentences = []
    for note in record.notes:
        if note_topic(note) == "constant":
            nearly = "nearly " if note.kind == "nearly_all_selected" else ""
            sentences.append(f"{constant_text(note)}: the results are {nearly}the same for everyone.")
    metric = main_metric(record.findings)
    compared = [finding for finding in record.findings if finding.metric == metric]
    if not compared:
        sentences.append("No groups could be compared.")
    else:
        enough = [finding for finding in compared if finding.enough]
        answer, *evidence = _headline(enough, record)
        sentences += [answer, *assumptions(record), *evidence]
        sentences += _significance(enough, record)
        small = len(compared) - len(enough)
        if enough and small:
            sentences.append(
                f"{count_text(small, 'comparison')} with a group below {record.settings.min_group_size} rows "
                f"{'is' if small == 1 else 'are'} reported separately."
            )
        sentences += _decisions(record.decisions)
        sentences += checks(record)
    if record.notes:
        notes = "the note" if len(record.notes) == 1 else f"the {len(record.notes)} notes"
        sentences.append(f"Read {notes} before acting.")
    return sentences


def rates_summary(record: AuditRecord) -> list[str]:
    """The answer of each table of rates."""
    constant = [f"{constant_text(note)}." for note in record.notes if note_topic(note) == "constant"]
    answers = [rates_sentence(table, record.settings) for table in required_tables(record)]
    return [*constant, *answers[:1], *assumptions(record), *answers[1:]]


def checks(record: AuditRecord) -> list[str]:
    """What corrects and bounds an audit by probabilities of groups."""
    sentence = "" if record.proxy is None else checked_sentence(record.proxy)
    return [sentence] if sentence else []


def assumptions(record: AuditRecord) -> list[str]:
    """The assumptions of an audit by group probabilities; none if groups are known."""
    return [] if record.proxy is None else [assumption_sentence(record.proxy)]


def _headline(compared: Sequence[Finding], record: AuditRecord) -> list[str]:
    """The largest gap whose joint interval excludes 0; if there is none, the gap with the most rows."""
    if not compared:
        least = record.settings.min_group_size
        return [f"No gap can be assessed: every comparison has a group with fewer than {least} rows."]
    several = len(compared)
    confident = f"With {confidence_text(record.confidence)} confidence"
    first = headline_finding(compared)
    if first is not None:
        gap = f"{_size(first)} {_between_groups(first)}"
        rank = f"The {rank_text(first, compared)} is {gap}." if several > 1 else f"The gap is {gap}."
        jointly = f", jointly for all {count_text(several, 'comparison')}" if several > 1 else ""
        bound = first.certified_jointly if several == 1 else None
        certified = "" if bound is None or bound >= 1 else f"; the certified upper bound is {_points(first, bound)}"
        headline = f"{rank} {finding_sentence(first)}".rstrip()
        if first.joint_interval is None:
            return [headline]
        return [headline, f"{confident}{jointly}, {_true_gap(first, first.joint_interval)}{certified}."]
    bounded = [finding for finding in compared if finding.joint_interval is not None]
    if not bounded:
        tested = any(finding.significant is not None for finding in compared)
        why = "no p-value is small enough" if tested else "there are no confidence intervals"
    elif several == 1:
        why = "its confidence interval includes 0"
    else:
        why = f"the joint confidence intervals of all {count_text(several, 'comparison')} include 0"
    shown = sort_findings(bounded or compared)[0]
    most = "The comparison with the most rows shows a gap of" if several > 1 else "The gap is"
    bounds = shown.joint_interval
    interval = "" if bounds is None else f" {confident}, {_true_gap(shown, bounds)}."
    gap = f"{most} {_size(shown)} {_between_groups(shown)}. {finding_sentence(shown)}".rstrip() + interval
    return [f"No gap is established: {why}.", f"{gap} {detectable_text(shown)}".rstrip()]


def _between_groups(finding: Finding) -> str:
    where = "" if finding.within == "everyone" else f" (within {finding.within})"
    left, right = group_texts(finding)
    return f"between {left} and {right} of {finding.attribute}{where}"


def _is_share(finding: Finding) -> bool:
    return finding.metric in METRICS and METRICS[finding.metric].is_share


def _size(finding: Finding) -> str:
    return f"{100 * finding.value:.1f} percentage points" if _is_share(finding) else score_text(finding.value)


def _points(finding: Finding, value: float) -> str:
    return points_text(value) if _is_share(finding) else score_text(value)


def _true_gap(finding: Finding, bounds: Interval) -> str:
    ends = (_points(finding, end) for end in (bounds.low, bounds.high))
    return f"the true gap is between {' and '.join(ends)}"


def _significance(compared: Sequence[Finding], record: AuditRecord) -> list[str]:
    """How many gaps by one metric are statistically significant, multiplicity-adjusted; nothing if none is."""
    tested = [finding for finding in compared if finding.significant is not None]
    if not tested:
        number = sum(finding.p_value is not None for finding in compared)
        required = ceil(number / (1 - record.confidence) - _ROUNDING)
        few = f"{record.permutations:,} permutations are too few to test {number:,} gaps"
        return [f"{few}; {required:,} are needed."] if number else []
    significant, number = sum(bool(finding.significant) for finding in tested), len(tested)
    if not significant:
        return []
    how = " and ".join(_TESTS[test] for test in dict.fromkeys(finding.tested_by for finding in tested) if test)
    how = f" ({how})" if how else ""
    if number == 1:
        return [f"The gap is statistically significant{how}."]
    verb = "is" if significant == 1 else "are"
    return [f"{significant:,} of the {number:,} gaps {verb} statistically significant{how}."]


def _decisions(decisions: Sequence[Decisions]) -> list[str]:
    """The smallest impact ratio; nothing if everyone is selected, which another sentence states."""
    worst = worst_ratio(decisions)
    if worst is None or min(rate.selection_rate for rate in worst[1:]) == 1:
        return []
    table = worst.table
    where = "" if table.within == "everyone" else f" (within {table.within})"
    low, high = (f"{percent_text(rate.selection_rate)} of {quoted(rate.group)}" for rate in worst[1:])
    verdict = f", {four_fifths_text(table)}".removesuffix(", ")
    selected = table_selected_text(table)
    ratio = figure_text(worst.ratio, digits=2, limit=FOUR_FIFTHS)
    return [f"{selected}{where}, {low} and {high} are selected: impact ratio {ratio}{verdict}."]
