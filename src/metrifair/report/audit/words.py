"""All sentences of an audit: findings, the summary. Whoever shows an audit places them.

They stand here and not with the audit since reports, which may not know audits, say some of them as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10

from metrifair.certificates import dkw_radius
from metrifair.metrics.registry import facts, is_largest_gap
from metrifair.report.numbers import percent_text
from metrifair.results import FEW, Decisions, Finding, Interval, Note

REST = "the rest"
"""What all groups but one are called."""

FOUR_FIFTHS = 0.8
_ROUNDING = 1e-9
_LAST_DIGITS = 1e-12  # a ratio of exactly four fifths is not below them, whatever its last digits


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


def gap_sentence(groups: tuple[str, str], score: float, shares: tuple[float, float], span: float = 0.0) -> str:
    """Where the shares at or below a score differ most, and whose are larger.

    >>> gap_sentence(("men", "women"), 0.43, (0.41, 0.62))
    'At score 0.43 the gap is largest: 62.0% of “women” but 41.0% of “men” have this score or less.'
    >>> gap_sentence(("men", "women"), 0.43, (0.5, 0.5))
    'No score tells “men” from “women”: their distributions agree.'
    """
    (less, many), (more, few) = sorted(zip(shares, groups, strict=True))
    if less == more:
        return f"No score tells {quoted(groups[0])} from {quoted(groups[1])}: their distributions agree."
    return (
        f"At score {score_text(score, span)} the gap is largest: {percent_text(more)} of {quoted(few)} but "
        f"{percent_text(less)} of {quoted(many)} have this score or less."
    )


def cut_sentence(
    name: str, groups: tuple[str, str], score: float, shares: tuple[float, float], span: float = 0.0
) -> str:
    """Who scores lower, below or above the worst cut of a number, and by how much.

    >>> cut_sentence("age", ("up to 41", "above 41"), 0.37, (0.4, 0.61))
    'People of age above 41 score lower: 21.0 points more of them than of those up to 41 have a score of 0.37 or less.'
    """
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
    cut = f"Wherever {name} is cut in two, leaving 5% on either side ({cuts} cuts were looked at)"
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


def meaning_of(metric: str, value: float, groups: tuple[str, str], score: float, span: float = 0.0) -> str:
    """What the number says; the gap is largest at ``score``, and ``span`` is that of all scores.

    >>> meaning_of("kolmogorov", 0.21, ("men", "women"), 0.43)
    'However a threshold is chosen, the shares of “men” and “women” above it differ by at most 21.0 percentage points; \
at 0.43 they do.'
    """
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


def worst_of(findings: Iterable[Finding], metric: str | None = None, criterion: str | None = None) -> Finding | None:
    """The finding with the largest value; without a metric by Kolmogorov, or else by the first metric there is."""
    chosen = [finding for finding in findings if criterion in (None, finding.criterion)]
    if metric is None and chosen:
        names = [finding.metric for finding in chosen]
        metric = next(filter(is_largest_gap, names), names[0])
    return max((one for one in chosen if one.metric == metric), key=lambda one: one.value, default=None)


def worst_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The largest finding of each metric, then the second of each, and so on: metrics have scales of their own.

    >>> some = [Finding("sex", "statistical_parity", "everyone", ("a", "b"), (9, 9), metric, value)
    ...         for metric, value in (("kolmogorov", 0.1), ("kolmogorov", 0.4), ("energy", 0.02))]
    >>> [finding.value for finding in worst_first(some)]
    [0.4, 0.02, 0.1]
    """
    seen: Counter[str] = Counter()
    places = []
    for finding in sorted(findings, key=lambda finding: -finding.value):
        places.append((seen[finding.metric], finding))
        seen[finding.metric] += 1
    order = list(dict.fromkeys(finding.metric for finding in findings))
    return tuple(finding for _, finding in sorted(places, key=lambda at: (at[0], order.index(at[1].metric))))


def functions_in(findings: Iterable[Finding]) -> int:
    """How many different distribution functions the findings compare; of the rest there is one for each group."""
    found: set[tuple[object, ...]] = set()
    for one in findings:
        first, second = one.groups
        where = one.attribute, one.criterion, one.within
        if one.cuts:  # of which this is the worst
            found |= {(*where, number) for number in range(2 * one.cuts)}
            continue
        found |= {(*where, first), (*where, second, first) if second == REST else (*where, second)}
    return len(found)


def joint_bounds(finding: Finding, functions: int, confidence: float) -> Interval | None:
    """Bounds that hold for the Kolmogorov distances of all findings at once, and so for the largest; None without.

    ``functions`` is how many distribution functions they compare.

    >>> one = Finding("sex", "statistical_parity", "everyone", ("f", "m"), (900, 900), "kolmogorov", 0.3, certified=0.4,
    ...               certified_jointly=0.4)
    >>> joint_bounds(one, functions_in([one]), 0.95)  # doctest: +ELLIPSIS
    Interval(low=0.20131..., high=0.4)
    """
    if not is_largest_gap(finding.metric) or finding.certified_jointly is None:
        return None
    radius = sum(dkw_radius(size, confidence=confidence, cdfs=max(2, functions)) for size in finding.sizes)
    least = finding.value if finding.bracket is None else finding.bracket.low
    return Interval(max(0.0, least - radius), finding.certified_jointly)


def is_below(ratio: float) -> bool:
    """Whether a ratio is below four fifths.

    >>> is_below(0.79), is_below(0.8), is_below(0.7999999999999999)
    (True, False, False)
    """
    return ratio < FOUR_FIFTHS * (1 - _LAST_DIGITS)


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
) -> list[str]:
    """The audit in two to six plain sentences, the most important first.

    ``permutations`` are those behind the p-values: no p-value is below 1 / (1 + permutations).
    """
    worst, told = worst_of(findings), []
    told += [
        f"{note.text.split(':')[0]}: what is audited here decides the same for everyone."
        for note in notes
        if note.kind == "constant"
    ]
    if worst is None:
        told.append("Nothing could be compared.")
    else:
        told.append(_headline(worst))
        told += _sureness(worst, findings, confidence)
        told += _chance([one for one in findings if one.metric == worst.metric], confidence, permutations)
        told += _decision_sentence(decisions)
    if notes:
        told.append(f"{'One note' if len(notes) == 1 else f'{len(notes)} notes'} should be read before acting.")
    return told


def _headline(worst: Finding) -> str:
    where = "" if worst.within == "everyone" else f" (within {worst.within})"
    who = f"between {quoted(worst.groups[0])} and {quoted(worst.groups[1])} of {worst.attribute}{where}"
    size = f"{100 * worst.value:.1f} percentage points" if facts(worst.metric).is_share else score_text(worst.value)
    few = [f"{quoted(group)} has {n}" for group, n in zip(worst.groups, worst.sizes, strict=True) if n < FEW]
    small = f" Few samples are behind it: {' and '.join(few)}." if few else ""
    return f"The largest gap is {who}: {size}. {worst.sentence}{small}"


def _sureness(worst: Finding, findings: Sequence[Finding], confidence: float) -> list[str]:
    """Bounds of the largest gap. That of several is picked because it is large: bounds must then hold for all."""
    text = points_text if facts(worst.metric).is_share else score_text
    several = sum(finding.metric == worst.metric for finding in findings)
    jointly, alone = joint_bounds(worst, functions_in(findings), confidence), worst.interval
    sure = f"With {percent_text(confidence)} confidence"
    if several > 1 and jointly is not None:
        span = f"{text(jointly.low)} and {text(jointly.high)}"
        return [f"{sure}, by bounds that hold for all {several} comparisons at once, the true gap is between {span}."]
    if alone is None:
        return [] if jointly is None or jointly.high >= 1 else [f"{sure} the true gap is at most {text(jointly.high)}."]
    span = f"{text(alone.low)} and {text(alone.high)}"
    if several > 1:
        picked = f"it is the largest of {several} and picked because it is large, so the true one may well be smaller"
        return [f"Taken by itself, its {percent_text(confidence)} interval lies between {span}; {picked}."]
    certain = "" if jointly is None else f"; a bound that holds for any distributions is {text(jointly.high)}"
    return [f"{sure} the true gap is between {span}{certain}."]


def _chance(compared: Sequence[Finding], confidence: float, permutations: int) -> list[str]:
    """How many comparisons of one metric chance does not explain, all of them considered (Bonferroni).

    Of too many comparisons no p-value can be small enough; bounds that hold for all at once then decide.
    """
    p_values = [finding.p_value for finding in compared if finding.p_value is not None]
    if not p_values:
        return []
    level, number = (1 - confidence) / len(p_values), len(p_values)
    beyond = sum(p_value <= level for p_value in p_values)
    if level * (1 + permutations) < 1 - _ROUNDING:
        functions = functions_in(compared)
        bounds = [joint_bounds(finding, functions, confidence) for finding in compared]
        if None in bounds:
            enough = ceil(number / (1 - confidence) - _ROUNDING)
            few = f"{permutations:,} permutations are too few to tell which of {number:,} gaps chance alone explains"
            return [f"{few}; that takes {enough:,} or more."]
        beyond = sum(bound is not None and bound.low > 0 for bound in bounds)
    if number == 1:
        return ["Chance alone does not explain it." if beyond else "Chance alone could explain it."]
    if not beyond:
        return [f"Chance alone could explain each of the {number:,} gaps compared."]
    return [f"Chance alone does not explain {beyond:,} of the {number:,} gaps compared."]


def _decision_sentence(decisions: Sequence[Decisions]) -> list[str]:
    rated = [one for one in decisions if one.selection_ratio is not None]
    if not rated:
        return []
    worst = min(rated, key=lambda one: one.selection_ratio or 0.0)
    rates = sorted(worst.rates, key=lambda rate: rate.selection_rate)
    ratio = worst.selection_ratio or 0.0
    where = "" if worst.within == "everyone" else f" (within {worst.within})"
    low, high = (f"{percent_text(rate.selection_rate)} of {quoted(rate.group)}" for rate in (rates[0], rates[-1]))
    rates_of = f"At threshold {score_text(worst.threshold)}{where}, {low} and {high} are selected"
    return [f"{rates_of}: a ratio of {ratio:.2f}, {'below' if is_below(ratio) else 'not below'} four fifths."]
