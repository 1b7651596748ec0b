"""All sentences of an audit: findings, the summary. Whoever shows an audit places them.

They stand here and not with the audit since reports, which may not know audits, say some of them as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from metrifair.auditing.records import Decisions, Finding, Note
from metrifair.figures.intervals import FEW, Interval
from metrifair.figures.selection_rates import STANDARDS, GroupRates, is_below
from metrifair.metrics.registry import facts, is_largest_gap
from metrifair.wording.numbers import percent_text

CHANCES = ("", "could be chance", "not by chance", "too few rows to tell")
"""Whether chance explains a finding: not known, yes, no, and that nobody can tell."""
REST = "the rest"
"""What all groups but one are called."""

_ROUNDING = 1e-9


# --- numbers and names ------------------------------------------------------------------------------------------


def score_text(score: float, span: float = 0.0) -> str:
    """A score in plain digits: three, and as many as tell hundredths of the ``span`` of all scores apart.

    >>> score_text(0.43217), score_text(-12345.6), score_text(0.2), score_text(0.99968, 0.0004)
    ('0.432', '-12346', '0.2', '0.99968')
    """
    if score == 0 or not 1e-9 < abs(score) < 1e15:
        return f"{score:.3g}"
    decimals = 2 - floor(log10(abs(score)))
    if span > 0:
        decimals = max(decimals, ceil(2 - log10(span)))
    text = f"{score:.{max(0, decimals)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def points_text(gap: float) -> str:
    """A difference of shares in percentage points.

    >>> points_text(0.21)
    '21.0 points'
    """
    return f"{percent_text(gap).rstrip('%')} points"


def confidence_text(confidence: float) -> str:
    """A confidence in percent, without needless digits.

    >>> confidence_text(0.95), confidence_text(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * confidence:.6g}%"


def quoted(name: str) -> str:
    """A group's name, set apart from the sentence around it."""
    return f"“{name}”"


# --- one finding ------------------------------------------------------------------------------------------------


def gap_sentence(
    groups: tuple[str, str], score: float, shares: tuple[float, float], span: float = 0.0, *, decided: bool = False
) -> str:
    """Where the shares at or below a score differ most, and whose are larger; of decisions, the shares of those of 1.

    >>> gap_sentence(("men", "women"), 0.43, (0.41, 0.62))
    'At score 0.43 the gap is largest: 62.0% of “women” but 41.0% of “men” have this score or less.'
    >>> gap_sentence(("men", "women"), 0.43, (0.5, 0.5))
    'No score tells “men” from “women”: their distributions agree.'
    >>> gap_sentence(("men", "women"), 0.0, (0.41, 0.62), decided=True)
    'The decision is 1 for 38.0% of “women” but for 59.0% of “men”.'
    """
    (less, many), (more, few) = sorted(zip(shares, groups, strict=True))
    if less == more:
        what = "decision" if decided else "score"
        return f"No {what} tells {quoted(groups[0])} from {quoted(groups[1])}: their distributions agree."
    if decided:
        rates = f"{percent_text(1 - more)} of {quoted(few)} but for {percent_text(1 - less)} of {quoted(many)}"
        return f"The decision is 1 for {rates}."
    return (
        f"At score {score_text(score, span)} the gap is largest: {percent_text(more)} of {quoted(few)} but "
        f"{percent_text(less)} of {quoted(many)} have this score or less."
    )


def cut_sentence(
    name: str, groups: tuple[str, str], score: float, shares: tuple[float, float], span: float = 0.0
) -> str:
    """Who scores lower, below or above the worst cut of a number, and by how much; of a group and the rest, the gap.

    >>> cut_sentence("age", ("up to 41", "above 41"), 0.37, (0.4, 0.61))
    'People of age above 41 score lower: 21.0 points more of them than of those up to 41 have a score of 0.37 or less.'
    """
    if groups[1] == REST:
        return gap_sentence(groups, score, shares, span)
    if shares[0] == shares[1]:
        return f"No cut of {name} tells people apart: their scores are distributed alike."
    lower, other = groups if shares[0] > shares[1] else groups[::-1]
    return (
        f"People of {name} {lower} score lower: {points_text(abs(shares[0] - shares[1]))} more of them than of those "
        f"{other} have a score of {score_text(score, span)} or less."
    )


def cut_meanings(
    name: str, values: Mapping[str, float], cuts: int, correlation: float | None, *, named: bool = False
) -> dict[str, str]:
    """What the figures of an attribute say that is a number, or of which each group is set against the rest."""
    each = f"Whichever of the {cuts} groups of {name} is set against the rest"
    cut = f"Wherever {name} is cut in two, leaving enough people on either side ({cuts} cuts were looked at)"
    worst = f"With the worst of the {cuts} groups of {name}" if named else f"At the worst of {cuts} cuts of {name}"
    told = "" if correlation is None else f" The distance correlation is {score_text(correlation)}."
    return {
        "kolmogorov": f"{each if named else cut}, and "
        f"however a threshold is chosen, the shares above it differ by at most {points_text(values['kolmogorov'])}.",
        "wasserstein": f"{worst}, scores would have to move by "
        f"{score_text(values['wasserstein'])} on average to be distributed alike on both sides.",
        "energy": f"How much scores depend on {name} over all its values, on the scale of the energy distance between "
        f"two groups: 0 means not at all.{told}",
    }


def mean_sentence(groups: tuple[str, str], means: tuple[float, float], span: float = 0.0) -> str:
    """Whose scores are higher on average.

    >>> mean_sentence(("a", "b"), (0.5, 0.75))
    'The mean score is 0.75 for “b” and 0.5 for “a”.'
    """
    (low, lower), (high, higher) = sorted(zip(means, groups, strict=True))
    return (
        f"The mean score is {score_text(high, span)} for {quoted(higher)} and {score_text(low, span)} for "
        f"{quoted(lower)}."
    )


def meaning_of(
    metric: str, value: float, groups: tuple[str, str], score: float, span: float = 0.0, *, decided: bool = False
) -> str:
    """What the number says; the gap is largest at ``score``, and ``span`` is that of all scores.

    >>> meaning_of("kolmogorov", 0.21, ("men", "women"), 0.43)
    'However a threshold is chosen, the shares of “men” and “women” above it differ by at most 21.0 percentage points; \
at 0.43 they do.'
    """
    if decided and is_largest_gap(metric):
        differ = f"differ by {100 * value:.1f} percentage points"
        return f"The shares of {quoted(groups[0])} and {quoted(groups[1])} with the decision 1 {differ}."
    return facts(metric).meaning.format(
        first=quoted(groups[0]),
        second=quoted(groups[1]),
        value=score_text(value),
        half=score_text(value / 2),
        root=score_text(max(0.0, value) ** 0.5),
        points=f"{100 * value:.1f} percentage points",
        score=score_text(score, span),
    )


# --- the whole audit --------------------------------------------------------------------------------------------


def _main_metric(findings: Sequence[Finding]) -> str:
    names = [finding.metric for finding in findings]
    return next(filter(is_largest_gap, names), names[0] if names else "")


def worst_of(findings: Iterable[Finding], metric: str | None = None, criterion: str | None = None) -> Finding | None:
    """The finding with the largest value; without a metric by Kolmogorov, or else by the first metric there is."""
    chosen = [finding for finding in findings if criterion in (None, finding.criterion)]
    metric = _main_metric(chosen) if metric is None else metric
    return max((one for one in chosen if one.metric == metric), key=lambda one: one.value, default=None)


def most_certain_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings that are certain by their lower joint bound, then the others by their rows, those of too few rows last.

    The first of each metric, then the second of each, and so on: metrics have scales of their own.

    >>> some = [Finding("sex", "statistical_parity", "everyone", ("a", "b"), (rows, 90), metric, value,
    ...                 enough=rows >= 30, joint_interval=Interval(low, 1.0))
    ...         for metric, value, rows, low in (("kolmogorov", 0.9, 10, 0.3), ("kolmogorov", 0.2, 80, 0.0),
    ...                                          ("kolmogorov", 0.4, 70, 0.1), ("energy", 0.02, 70, 0.01))]
    >>> [finding.value for finding in most_certain_first(some)]
    [0.4, 0.02, 0.2, 0.9]
    """

    def rank(one: Finding) -> tuple[int, float]:
        if one.certain and one.joint_interval is not None:
            return 0, -one.joint_interval.low
        return 1 if one.enough else 2, -min(one.sizes)

    seen: Counter[tuple[str, int]] = Counter()
    order = {metric: place for place, metric in enumerate(dict.fromkeys(one.metric for one in findings))}
    places = []
    for finding in sorted(findings, key=lambda one: (*rank(one), -one.value)):
        kind = finding.metric, rank(finding)[0]
        places.append(((kind[1], seen[kind]), finding))
        seen[kind] += 1
    return tuple(finding for _, finding in sorted(places, key=lambda at: (*at[0], order[at[1].metric])))


def headline_of(findings: Sequence[Finding]) -> Finding | None:
    """The gap that is largest for certain, by Kolmogorov or else by the first metric there is; None: none is."""
    certain = [one for one in findings if one.certain]
    metric = _main_metric(findings)
    return next((one for one in most_certain_first(certain) if one.metric == metric), None)


def is_open(found: Decisions) -> bool:
    """Whether the interval of the four-fifths ratio holds values on both sides."""
    interval = found.selection_ratio_interval
    return interval is not None and is_below(interval.low) and not is_below(interval.high)


def summary_of(
    findings: Sequence[Finding],
    decisions: Sequence[Decisions],
    notes: Sequence[Note],
    confidence: float,
    *,
    permutations: int = 999,
    least_count: int = FEW,
) -> list[str]:
    """The audit in two to seven plain sentences, the most important first.

    Only what is certain makes a headline. ``permutations`` are those behind the p-values, ``least_count`` the rows that
    a group needs.
    """
    worst, told = worst_of(findings), []
    for note in (one for one in notes if one.kind == "constant"):
        alike, nearly = note.text.split(":")[0], "nearly " if "nearly" in note.text else ""
        told.append(f"{alike}: what is audited here decides {nearly}the same for everyone.")
    if worst is None:
        told.append("Nothing could be compared.")
    else:
        compared = [one for one in findings if one.metric == worst.metric]
        enough = [one for one in compared if one.enough]
        told += _headline(enough, confidence, least_count)
        told += _chance(enough, confidence, permutations)
        small = len(compared) - len(enough)
        if enough and small:
            told.append(f"Too few rows to tell, fewer than {least_count} in a group: {_comparisons(small)}.")
        told += _decision_sentence(decisions)
    if notes:
        told.append(f"{'One note' if len(notes) == 1 else f'{len(notes)} notes'} should be read before acting.")
    return told


def _headline(compared: Sequence[Finding], confidence: float, least_count: int) -> list[str]:
    """The gap that is largest for certain, and its bounds; or that there is none, and the gap of the most rows."""
    if not compared:
        return [f"Nothing is certain: every comparison has a group of fewer than {least_count} rows, too few to tell."]
    several, sure = len(compared), f"With {percent_text(confidence)} confidence"
    certain = headline_of(compared)
    if certain is not None:
        rank = "The largest gap that is certain is" if several > 1 else "The gap is certain:"
        told = [f"{rank} {_who(certain)}: {_size(certain)}. {certain.sentence}"]
        jointly = f", by bounds that hold for all {_comparisons(several)} at once," if several > 1 else ""
        bound = certain.certified_jointly if several == 1 else None
        proven = (
            ""
            if bound is None or bound >= 1
            else f"; a bound that holds for any distributions is {_points(certain, bound)}"
        )
        return [*told, f"{sure}{jointly} the true gap is {_between(certain)}{proven}."]
    bounded = [one for one in compared if one.joint_interval is not None]
    first = most_certain_first(bounded or compared)[0]
    if not bounded:
        what = "there are no bounds to tell by"
    elif several == 1:
        what = "the bounds of the gap hold 0"
    else:
        what = f"the bounds that hold for all {_comparisons(several)} at once hold 0 for each"
    told = [f"Nothing is certain: {what}."]
    most = "The most rows are behind the gap" if several > 1 else "The gap is"
    bounds = "" if not bounded else f" {sure} the true gap is {_between(first)}."
    return [*told, f"{most} {_who(first)}: {_size(first)}. {first.sentence}{bounds}"]


def _who(one: Finding) -> str:
    where = "" if one.within == "everyone" else f" (within {one.within})"
    return f"between {quoted(one.groups[0])} and {quoted(one.groups[1])} of {one.attribute}{where}"


def _size(one: Finding) -> str:
    return f"{100 * one.value:.1f} percentage points" if facts(one.metric).is_share else score_text(one.value)


def _points(one: Finding, value: float) -> str:
    return points_text(value) if facts(one.metric).is_share else score_text(value)


def _between(one: Finding) -> str:
    bounds = one.joint_interval or Interval(one.value, one.value)
    return f"between {_points(one, bounds.low)} and {_points(one, bounds.high)}"


def _comparisons(number: int) -> str:
    return f"{number:,} comparison{'' if number == 1 else 's'}"


def _chance(compared: Sequence[Finding], confidence: float, permutations: int) -> list[str]:
    """How many comparisons of one metric chance does not explain, all of them considered, and how that was judged."""
    judged = [one for one in compared if one.by_chance is not None]
    if not judged:
        number = sum(one.p_value is not None for one in compared)
        enough = ceil(number / (1 - confidence) - _ROUNDING)
        few = f"{permutations:,} permutations are too few to tell which of {number:,} gaps chance alone explains"
        return [f"{few}; that takes {enough:,} or more."] if number else []
    beyond, number = sum(not one.by_chance for one in judged), len(judged)
    how = " and ".join(dict.fromkeys(one.judged_by for one in judged))
    if number == 1:
        return [f"Chance alone {'does not' if beyond else 'could'} explain it ({how})."]
    if not beyond:
        return [f"Chance alone could explain each of the {number:,} gaps compared ({how})."]
    return [f"Chance alone does not explain {beyond:,} of the {number:,} gaps compared ({how})."]


def chance_text(one: Finding) -> str:
    """Whether chance explains a finding, in a few words; empty where that is not known.

    >>> chance_text(Finding("sex", "statistical_parity", "everyone", ("f", "m"), (9, 90), "energy", 0.3, enough=False))
    'too few rows to tell'
    """
    if not one.enough:
        return CHANCES[3]
    return CHANCES[0 if one.by_chance is None else 1 if one.by_chance else 2]


class WorstRatio(NamedTuple):
    """The smallest ratio that enough rows are behind: its table, the group, and the reference."""

    table: Decisions
    group: GroupRates
    reference: GroupRates

    @property
    def ratio(self) -> float:
        """The group's rate over the reference's."""
        return self.group.ratio or 0.0


def worst_ratio(decisions: Iterable[Decisions]) -> WorstRatio | None:
    """The smallest ratio of all tables among groups of enough rows; None where there is none."""
    found = [
        WorstRatio(table, rate, reference)
        for table in decisions
        for reference in [one for one in table.rates if one.group == table.reference and not one.few]
        for rate in table.rates
        if rate.ratio is not None and rate is not reference and not rate.few
    ]
    return min(found, key=lambda one: one.ratio, default=None)


def selected_text(found: Decisions) -> str:
    """Who is selected.

    >>> selected_text(Decisions("sex", "everyone", 0.5, [], 0.0, None, favourable="low", selected_by="median"))
    'Below the median score 0.5'
    """
    at, low = score_text(found.threshold), found.favourable == "low"
    if found.selected_by == "median":
        return f"{'Below' if low else 'Above'} the median score {at}"
    if found.selected_by == "decisions":
        return "As decided"
    return f"Below threshold {at}" if low else f"At threshold {at}"


def _decision_sentence(decisions: Sequence[Decisions]) -> list[str]:
    worst = worst_ratio(decisions)
    if worst is None:
        return []
    table, ratio = worst.table, worst.ratio
    if min(rate.selection_rate for rate in worst[1:]) == 1:  # everyone is selected, which the summary says first
        return []
    where = "" if table.within == "everyone" else f" (within {table.within})"
    low, high = (f"{percent_text(rate.selection_rate)} of {quoted(rate.group)}" for rate in worst[1:])
    side = f", {'below' if is_below(ratio) else 'not below'} four fifths"
    told = side if STANDARDS[table.standard].four_fifths else ""
    return [f"{selected_text(table)}{where}, {low} and {high} are selected: a ratio of {ratio:.2f}{told}."]
