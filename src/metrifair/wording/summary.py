"""An audit in one to eight sentences, the most important first."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from metrifair.auditing.measure.r2_correction import gap_bracket, joint_bracket, ratio_bracket
from metrifair.auditing.ranking import main_metric, required_tables, summarized_finding, worst_ratio
from metrifair.auditing.records import AuditRecord, Decisions, Finding
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import FOUR_FIFTHS, STANDARDS, is_below
from metrifair.metrics.registry import METRICS
from metrifair.wording.findings import (
    detectable_text,
    finding_sentence,
    group_texts,
    larger_gap,
    rank_text,
)
from metrifair.wording.groups import search_summary
from metrifair.wording.notes import constant_text, note_topic
from metrifair.wording.numbers import (
    confidence_text,
    count_text,
    figure_text,
    part_text,
    percent_text,
    points_text,
    quoted,
    score_text,
)
from metrifair.wording.proxies import assumption_sentence, checked_sentence
from metrifair.wording.rates import (
    INCONCLUSIVE,
    four_fifths_text,
    rates_sentence,
    table_selected_text,
)

_COUNT_ROUNDING = 1e-9

_TESTS = {
    "bonferroni": "permutation test with Bonferroni adjustment",
    "joint_bounds": "joint confidence intervals",
}


def audit_summary(record: AuditRecord) -> list[str]:
    """The summary; a gap is a headline only if it is significant, by its joint confidence
    interval if it has one.
    """
    sentences = []
    for note in record.notes:
        if note_topic(note) == "constant":
            nearly = "nearly " if note.kind == "nearly_all_selected" else ""
            sentences.append(
                f"{constant_text(note)}: the results are {nearly}the same for everyone."
            )
    metric = main_metric(record.findings)
    compared = [finding for finding in record.findings if finding.metric == metric]
    if not compared:
        sentences.append("No groups could be compared.")
    else:
        enough = [finding for finding in compared if finding.assessed]
        answer, *evidence = (
            _headline(enough, record) if enough else [_no_headline(compared, record)]
        )
        sentences += [answer, *assumptions(record), *evidence]
        sentences += _significance(enough, record)
        small = sum(not finding.enough for finding in compared)
        if enough and small:
            sentences.append(
                f"{count_text(small, 'comparison')} with a group below {least_size(record)} "
                f"{'is' if small == 1 else 'are'} reported separately."
            )
        sentences += _decisions(record)
        sentences += checks(record)
    if record.group_search is not None:
        sentences += search_summary(record.group_search)
    return sentences


def least_size(record: AuditRecord) -> str:
    """The minimum group size, in rows or clusters."""
    return count_text(
        record.settings.min_group_size, "row" if record.clusters is None else "cluster"
    )


def few_text(record: AuditRecord) -> str:
    """The heading of comparisons with a group below the minimum size."""
    unit = "rows" if record.clusters is None else "clusters"
    return f"Too few {unit}: fewer than {record.settings.min_group_size:,} in a group"


def rates_summary(record: AuditRecord) -> list[str]:
    """The answer of each table of rates."""
    constant = [
        f"{constant_text(note)}." for note in record.notes if note_topic(note) == "constant"
    ]
    answers = [_rates_answer(table, record) for table in required_tables(record)]
    return [*constant, *answers[:1], *assumptions(record), *answers[1:]]


def _rates_answer(table: Decisions, record: AuditRecord) -> str:
    """The answer of one table, with both ends of its smallest ratio if groups have
    probabilities.
    """
    bracket = ratio_bracket(table, record)
    answer = rates_sentence(table, record.settings)
    if bracket is None:
        return answer
    return f"{answer} With both assumptions: {_ratio_ends(table, bracket)}."


def checks(record: AuditRecord) -> list[str]:
    """What corrects and bounds an audit by probabilities of groups."""
    sentence = "" if record.proxy is None else checked_sentence(record.proxy)
    return [sentence] if sentence else []


def assumptions(record: AuditRecord) -> list[str]:
    """The assumptions of an audit by group probabilities; none if groups are known."""
    return [] if record.proxy is None else [assumption_sentence(record.proxy)]


def _headline(compared: Sequence[Finding], record: AuditRecord) -> list[str]:
    """The largest gap whose joint interval excludes 0; if there is none, the gap with the most
    rows.
    """
    several = len(compared)
    first = summarized_finding(compared)
    if first is not None and first.certain:
        gap = f"{_size(first, record)} between {_groups_of(first)}"
        rank = (
            f"The {rank_text(first, compared)} is {gap}." if several > 1 else f"The gap is {gap}."
        )
        bound = first.certified_jointly if several == 1 else None
        if bound is None or bound >= 1:
            certified = ""
        else:
            certified = f"; the certified upper bound is {_points(first, bound)}"
        headline = f"{rank} {_weighted_sentence(first, record)}".rstrip()
        larger = _larger_gap(first, compared, record)
        bounds = _joint_interval(first, record)
        if bounds is None:
            return [headline, *larger]
        sure = f"{_interval_text(first, bounds, record, several)}{certified}."
        return [headline, sure, *larger]
    bounded = [finding for finding in compared if finding.joint_interval is not None]
    tested = bool(bounded) or any(finding.significant is not None for finding in compared)
    comparisons = f" in {several:,} comparisons" if several > 1 else ""
    answer = f"No significant gap{comparisons}."
    if not tested:
        answer = f"No gap was tested{comparisons}: there are no confidence intervals."
    shown = compared[0] if first is None else first
    noise = ", within noise" if tested else ""
    gap = f"{_groups_of(shown)} differ by {_size(shown, record)}{noise}."
    bounds = _joint_interval(shown, record)
    if bounds is not None:
        gap = f"{gap} {_interval_text(shown, bounds, record, several)}."
    return [answer, f"{gap} {detectable_text(shown)}".rstrip()]


def _larger_gap(headline: Finding, compared: Sequence[Finding], record: AuditRecord) -> list[str]:
    """That a gap is larger than the headline, and why it is not the headline; none if none is."""
    larger = larger_gap(headline, compared)
    if larger is None:
        return []
    bounds = _joint_interval(larger, record)
    least = ""
    if bounds is not None:
        least = f": its interval begins at {_points(larger, bounds.low)}"
    gap = f"{_size(larger, record)} between {_groups_of(larger)}"
    return [f"A larger gap, {gap}, is less precise{least}."]


def _no_headline(compared: Sequence[Finding], record: AuditRecord) -> str:
    """Why no comparison can be a headline."""
    few = ""
    if any(not finding.enough for finding in compared):
        few = f"fewer than {least_size(record)}"
    unknown = ""
    if any(finding.unknown_name for finding in compared):
        unknown = "a name that says it is not known"
    reasons = " or ".join(filter(None, (few, unknown)))
    return f"No gap can be assessed: every comparison has a group with {reasons}."


def _groups_of(finding: Finding) -> str:
    where = "" if finding.within == "everyone" else f" (within {finding.within})"
    left, right = group_texts(finding)
    return f"{left} and {right} of {finding.attribute}{where}"


def _is_share(finding: Finding) -> bool:
    return finding.metric in METRICS and METRICS[finding.metric].is_share


def _size(finding: Finding, record: AuditRecord) -> str:
    """The gap; both ends of it if groups have probabilities and nothing decides between the
    ends.
    """
    bracket = gap_bracket(finding, record) or Interval(finding.value, finding.value)
    scale, show = (100, "{:.1f}".format) if _is_share(finding) else (1, score_text)
    ends = dict.fromkeys(show(scale * end) for end in (bracket.low, bracket.high))
    return " to ".join(ends) + (" points" if _is_share(finding) else "")


def _joint_interval(finding: Finding, record: AuditRecord) -> Interval | None:
    """The joint interval; from the lower end of one to the upper end of the other if both ends
    are shown.
    """
    if gap_bracket(finding, record) is None:
        return finding.joint_interval
    return joint_bracket(finding) or finding.joint_interval


def _weighted_sentence(finding: Finding, record: AuditRecord) -> str:
    """Where the gap is largest; with both ends, that its shares are the weighted ones."""
    sentence = finding_sentence(finding)
    if not sentence or gap_bracket(finding, record) is None:
        return sentence
    return f"Weighted, {sentence[0].lower()}{sentence[1:]}"


def _points(finding: Finding, value: float) -> str:
    return points_text(value) if _is_share(finding) else score_text(value)


def _interval_text(
    finding: Finding, bounds: Interval, record: AuditRecord, comparisons: int
) -> str:
    """The interval of a gap, and for what it is valid."""
    low, high = (_points(finding, end) for end in (bounds.low, bounds.high))
    conditions = []
    if comparisons > 1:
        conditions.append(f"valid for all {count_text(comparisons, 'comparison')} together")
    if gap_bracket(finding, record) is not None:
        conditions.append("if one of the two assumptions holds")
    valid = f" ({', '.join(conditions)})" if conditions else ""
    return f"{confidence_text(record.confidence)} interval: {low.removesuffix(' points')} to {high}{valid}"


def _significance(compared: Sequence[Finding], record: AuditRecord) -> list[str]:
    """How many gaps by one metric are statistically significant, multiplicity-adjusted; nothing
    if none is.
    """
    tested = [finding for finding in compared if finding.significant is not None]
    if not tested:
        number = sum(finding.p_value is not None for finding in compared)
        required = ceil(number / (1 - record.confidence) - _COUNT_ROUNDING)
        tests = count_text(number, "gap")
        are = "is" if record.permutations == 1 else "are"
        few = f"{count_text(record.permutations, 'permutation')} {are} too few to test {tests}"
        return [f"{few}; {required:,} are needed."] if number else []
    significant = sum(bool(finding.significant) for finding in tested)
    number = len(tested)
    if not significant:
        return []
    how = " and ".join(
        _TESTS[test] for test in dict.fromkeys(finding.tested_by for finding in tested) if test
    )
    how = f" ({how})" if how else ""
    weighted = "weighted " if any(gap_bracket(finding, record) for finding in compared) else ""
    if number == 1:
        return [f"The {weighted}gap is statistically significant{how}."]
    verb = "is" if significant == 1 else "are"
    gaps = part_text(significant, number, f"{weighted}gaps")
    return [f"{gaps} {verb} statistically significant{how}."]


def _decisions(record: AuditRecord) -> list[str]:
    """The smallest impact ratio; nothing if everyone is selected, which another sentence states."""
    worst = worst_ratio(record.decisions)
    if worst is None or min(rate.selection_rate for rate in worst[1:]) == 1:
        return []
    table = worst.table
    where = "" if table.within == "everyone" else f" (within {table.within})"
    low, high = (
        f"{percent_text(rate.selection_rate)} of {quoted(rate.group)}" for rate in worst[1:]
    )
    verdict = four_fifths_text(table)
    if verdict:
        separator = "; " if verdict == INCONCLUSIVE else ", "
        verdict = f"{separator}{verdict}"
    selected = table_selected_text(table)
    ratio = figure_text(worst.ratio, digits=2, limit=FOUR_FIFTHS)
    bracket = ratio_bracket(table, record)
    if bracket is not None:
        return [
            (
                f"{selected}{where}, {low} and {high} are selected, weighted: "
                f"{_ratio_ends(table, bracket)}."
            )
        ]
    return [f"{selected}{where}, {low} and {high} are selected: impact ratio {ratio}{verdict}."]


def _ratio_ends(table: Decisions, bracket: Interval) -> str:
    """Both ends of the smallest impact ratio, and which of them are below four fifths."""
    ends = [figure_text(end, digits=2, limit=FOUR_FIFTHS) for end in (bracket.low, bracket.high)]
    text = f"impact ratio {' to '.join(dict.fromkeys(ends))}"
    if not STANDARDS[table.standard].four_fifths:
        return text
    below = [is_below(end) for end in (bracket.low, bracket.high)]
    if all(below):
        return f"{text}, below four fifths at both ends"
    if any(below):
        return f"{text}, below four fifths at one end"
    return f"{text}, not below four fifths at either end"
