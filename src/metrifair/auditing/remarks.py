"""What to know before acting on the figures, and the whole audit in a few plain sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

import numpy as np

from metrifair.auditing.atoms import Floats, Integers
from metrifair.auditing.explaining import quoted, score_text
from metrifair.auditing.intervals import spread_of
from metrifair.certificates import dkw_radius
from metrifair.metrics.registry import facts, is_largest_gap
from metrifair.problem.cells import Attribute
from metrifair.report.auditdecisions import is_below
from metrifair.report.auditwords import functions_in, joint_bounds
from metrifair.report.numbers import percent_text
from metrifair.results import FEW, Decisions, Finding, Note, few_text, listed

_BLIND = 0.2  # a gap this large should not go unseen
_TELLING = 0.2  # a correlation of score and outcome that is worth having
_ROUNDING = 1e-9
_TELLING_LABELS = ({0, 1}, {-1, 1})  # False and True equal 0 and 1
_CLEARLY = 4.0  # standard deviations below chance
_SLIGHT = 0.02  # below chance: of no interest, however many the samples


def worst_of(findings: Iterable[Finding], metric: str | None = None, criterion: str | None = None) -> Finding | None:
    """The finding with the largest value; without a metric by Kolmogorov, or else by the first metric there is."""
    chosen = [finding for finding in findings if criterion in (None, finding.criterion)]
    if metric is None and chosen:
        names = [finding.metric for finding in chosen]
        metric = next(filter(is_largest_gap, names), names[0])
    return max((one for one in chosen if one.metric == metric), key=lambda one: one.value, default=None)


def missing_notes(unknown: Mapping[str, int], rows: int) -> list[Note]:
    """Samples whose group is not known, by attribute."""
    return [
        Note(
            "missing", f"{attribute} is not known for {count:,} of {rows:,} samples: they are left out of its findings."
        )
        for attribute, count in unknown.items()
        if count
    ]


def absent_note(absent: Sequence[str]) -> list[Note]:
    """Groups that have no sample in some set."""
    if not absent:
        return []
    return [Note("small", f"Not compared, having no sample there: {listed(absent)}.")]


def small_notes(findings: Iterable[Finding], confidence: float) -> list[Note]:
    """Groups with so few samples that no figure of theirs says much, or that a large gap would go unseen."""
    found = list(findings)
    few = few_text(
        (group, finding.attribute, finding.within, size)
        for finding in found
        for group, size in zip(finding.groups, finding.sizes, strict=True)
    )
    blind: dict[str, None] = {}
    for finding in found:
        radius = sum(dkw_radius(size, confidence=confidence) for size in finding.sizes)
        if is_largest_gap(finding.metric) and min(finding.sizes) >= FEW and radius > max(finding.value, _BLIND):
            blind[f"{quoted(finding.groups[0])} against {quoted(finding.groups[1])} in {finding.within}"] = None
    notes = [Note("small", few)] if few else []
    if blind:
        text = f"Too few samples to rule out a gap of {100 * _BLIND:.0f} points or more: {listed(list(blind))}."
        notes.append(Note("small", text))
    return notes


def label_notes(classes: Sequence[object], positive: int, *, assumed: bool) -> list[Note]:
    """Which of two labels counts as the positive one, where nobody said so and they do not tell.

    >>> label_notes(["approved", "denied"], 1, assumed=True)[0].text
    "Positive label: 'denied' (the last of 'approved', 'denied'); pass pos_label= to change it."
    """
    if not assumed or len(classes) != 2 or set(classes) in _TELLING_LABELS:
        return []
    names = ", ".join(map(repr, classes))
    text = f"Positive label: {classes[positive]!r} (the last of {names}); pass pos_label= to change it."
    return [Note("labels", text)]


def direction_notes(score: Floats, outcome: Floats) -> list[Note]:
    """Scores that are clearly higher where the outcome is 0: the score or the label may be the wrong one.

    >>> direction_notes(np.linspace(0, 1, 40), np.repeat([1.0, 0.0], 20))[0].text[:58]
    'The score ranks the positive label lower than the other (A'
    """
    above = outcome > 0
    positives, negatives = int(above.sum()), int((~above).sum())
    if not positives or not negatives:
        return []
    place = np.unique(score, return_inverse=True)[1]
    counts = np.bincount(place)
    rank = np.cumsum(counts) - (counts - 1) / 2  # the middle one, of equal scores
    auc = (float(rank[place[above]].sum()) - positives * (positives + 1) / 2) / (positives * negatives)
    chance = np.sqrt((positives + negatives + 1) / (12 * positives * negatives))  # spread where score tells nothing
    if auc > 0.5 - max(_CLEARLY * chance, _SLIGHT):
        return []
    return [
        Note(
            "labels",
            f"The score ranks the positive label lower than the other (AUC {auc:.2f}, worse than chance): the score or "
            "the positive label may be turned round.",
        )
    ]


def weight_note() -> Note:
    """What weights rule out."""
    return Note(
        "weights", "Samples have weights: certified bounds and p-values hold for equal weights only, and are left out."
    )


def parity_notes(score: Floats, outcome: Floats, codes: Integers, attributes: Sequence[Attribute]) -> list[Note]:
    """Groups for whom the score says nothing about the outcome, while for others it does (the paper's Example 1).

    ``codes`` are (n, attributes). There, equal distributions are reached by dealing scores to such a group by lot.
    """
    notes = []
    for attribute, code in zip(attributes, codes.T, strict=True):
        found = {
            str(name): _correlation(score[code == place], outcome[code == place])
            for place, name in enumerate(attribute.groups)
            if not _is_constant(outcome[code == place])  # where there is nothing to tell
        }
        blind = [name for name, (r, n) in found.items() if abs(r) < 2 / np.sqrt(n) < _TELLING]
        told = [name for name, (r, n) in found.items() if r - 2 / np.sqrt(n) > 0 and r >= _TELLING]
        if blind and told:
            notes.append(Note("parity", _lottery(attribute.name, blind, told, found)))
    return notes


def _lottery(attribute: str, blind: list[str], told: list[str], found: Mapping[str, tuple[float, int]]) -> str:
    nothing = listed([f"{quoted(name)} ({found[name][0]:.2f})" for name in blind])
    much = listed([f"{quoted(name)} ({found[name][0]:.2f})" for name in told])
    return (
        f"By {attribute}, the score says nothing about the outcome within {nothing}, but does within {much} (in "
        "brackets: correlation of score and outcome). Enforcing equal distributions here would deal out scores by lot "
        "and help nobody; what the first group lacks is information that bears on its outcome."
    )


def _correlation(score: Floats, outcome: Floats) -> tuple[float, int]:
    """Correlation with an outcome that varies, 0 where the score does not; and the number of samples."""
    if _is_constant(score):
        return 0.0, len(score)
    moved, other = ((of - of.mean()) / spread_of(of) for of in (score, outcome))
    return float((moved * other).mean()), len(score)


def _is_constant(values: Floats) -> bool:
    """Whether there is no spread but that of rounding errors."""
    return len(values) < 2 or spread_of(values) <= 1e-12 * float(np.abs(values).max())


def summary_of(
    findings: Sequence[Finding],
    decisions: Sequence[Decisions],
    notes: Sequence[Note],
    confidence: float,
    *,
    permutations: int = 999,
) -> list[str]:
    """The audit in two to five plain sentences, the most important first.

    ``permutations`` are those behind the p-values: no p-value is below 1 / (1 + permutations).
    """
    worst = worst_of(findings)
    if worst is None:
        return ["Nothing could be compared.", *_notes_sentence(notes)]
    return [
        _headline(worst),
        *_sureness(worst, findings, confidence),
        *_chance([one for one in findings if one.metric == worst.metric], confidence, permutations),
        *_decision_sentence(decisions),
        *_notes_sentence(notes),
    ]


def _headline(worst: Finding) -> str:
    where = "" if worst.within == "everyone" else f" (within {worst.within})"
    who = f"between {quoted(worst.groups[0])} and {quoted(worst.groups[1])} of {worst.attribute}{where}"
    size = f"{100 * worst.value:.1f} percentage points" if facts(worst.metric).is_share else score_text(worst.value)
    few = [f"{quoted(group)} has {n}" for group, n in zip(worst.groups, worst.sizes, strict=True) if n < FEW]
    small = f" Few samples are behind it: {' and '.join(few)}." if few else ""
    return f"The largest gap is {who}: {size}. {worst.sentence}{small}"


def _sureness(worst: Finding, findings: Sequence[Finding], confidence: float) -> list[str]:
    """Bounds of the largest gap. That of several is picked because it is large: bounds must then hold for all."""
    points = lambda share: percent_text(share).replace("%", " points")  # noqa: E731
    text = points if facts(worst.metric).is_share else score_text
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
    least, most, ratio = rates[0], rates[-1], worst.selection_ratio or 0.0
    verdict = "below" if is_below(ratio) else "not below"
    where = "" if worst.within == "everyone" else f" (within {worst.within})"
    low, high = (f"{percent_text(rate.selection_rate)} of {quoted(rate.group)}" for rate in (least, most))
    rates_of = f"At threshold {score_text(worst.threshold)}{where}, {low} and {high} are selected"
    return [f"{rates_of}: a ratio of {ratio:.2f}, {verdict} four fifths."]


def _notes_sentence(notes: Sequence[Note]) -> list[str]:
    if not notes:
        return []
    return [
        "One note should be read before acting."
        if len(notes) == 1
        else f"{len(notes)} notes should be read before acting."
    ]
