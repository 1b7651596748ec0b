"""The audit in plain words: the order of the findings, facts, remarks, what stands out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from metrifair.certificates import dkw_radius
from metrifair.metrics.registry import is_largest_gap
from metrifair.report.auditdecisions import FOUR_FIFTHS, is_below, is_open
from metrifair.report.auditglossary import confidence_text, metric_words
from metrifair.report.numbers import number_text, percent_text, strength_texts
from metrifair.results import AuditRecord, Decisions, Finding, GroupRates, Interval, NoteKind

NOTE_HEADINGS: dict[NoteKind, str] = {
    "labels": "Which label is positive",
    "parity": "Are equal scores the right aim?",
    "small": "Small groups",
    "missing": "Rows left out",
    "exactness": "How exact",
    "weights": "Weights",
}


REST = "the rest"
"""What all groups but one are called."""


@dataclass(frozen=True)
class AuditHighlight:
    """Something worth a glance, and the finding or decisions that it is about."""

    heading: str
    figures: tuple[tuple[str, str], ...]
    sentence: str
    where: str
    about: Finding | Decisions


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


def facts(record: AuditRecord) -> tuple[tuple[str, str], ...]:
    """What was audited, in figures.

    >>> facts(AuditRecord(1200, 3, (0.1, 0.9), 0.95, []))[:2]
    (('Rows', '1,200'), ('Left out', '3'))
    """
    low, high = record.score_range
    return (
        ("Rows", f"{record.rows:,}"),
        ("Left out", f"{record.left_out:,}"),
        ("Scores", f"{number_text(low)} to {number_text(high)}"),
        ("Findings", f"{len(record.findings):,}"),
        ("Confidence", confidence_text(record.confidence)),
    )


def highlights(record: AuditRecord) -> tuple[AuditHighlight, ...]:
    """What a glance should give: the largest gap, what is certified, the worst four-fifths ratio; where they exist.

    >>> finding = Finding("sex", "statistical_parity", "everyone", ("f", "m"), (90, 90), "kolmogorov", 0.3)
    >>> [(found.heading, found.figures[0][1]) for found in highlights(AuditRecord(180, 0, (0, 1), 0.95, [finding]))]
    [('Largest gap', '0.300')]
    """
    found = [_largest(record), _certified(record), _four_fifths(record)]
    return tuple(highlight for highlight in found if highlight is not None)


def _largest(record: AuditRecord) -> AuditHighlight | None:
    worst = worst_first(record.findings)[:1]
    main = [finding for finding in record.findings if is_largest_gap(finding.metric)] or list(worst)
    if not main:
        return None
    largest = max(main, key=lambda finding: finding.value)
    name = f"{metric_words(largest.metric).name}{_bounds_text(largest, record)}"
    sentence = largest.sentence or f"Between “{largest.groups[0]}” and “{largest.groups[1]}”."
    return AuditHighlight("Largest gap", ((name, number_text(largest.value)),), sentence, _where(largest), largest)


def _bounds_text(largest: Finding, record: AuditRecord) -> str:
    """Between which bounds the largest of the findings lies; an interval of one finding is too narrow for that."""
    several = sum(finding.metric == largest.metric for finding in record.findings)
    jointly = joint_bounds(largest, functions_in(record.findings), record.confidence) if several > 1 else None
    bounds = jointly or largest.interval
    if bounds is None:
        return ""
    kind = "bounds for all at once" if jointly else "interval by itself" if several > 1 else "interval"
    return f", {confidence_text(record.confidence)} {kind} {number_text(bounds.low)} to {number_text(bounds.high)}"


def functions_in(findings: Iterable[Finding]) -> int:
    """How many different distribution functions the findings compare."""
    return len({(one.attribute, one.criterion, one.within, side) for one in findings for side in _sides(one)})


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


def _sides(finding: Finding) -> tuple[tuple[str, ...], ...]:
    """The distribution functions of a finding, by name; of the rest there is one for each group left out of it."""
    first, second = finding.groups
    return (first,), (second, first) if second == REST else (second,)


def _certified(record: AuditRecord) -> AuditHighlight | None:
    """The bound that holds for all Kolmogorov distances of the audit at once."""
    bounded = [
        (finding.certified_jointly, finding)
        for finding in record.findings
        if is_largest_gap(finding.metric) and finding.certified_jointly is not None
    ]
    if not bounded:
        return None
    bound, finding = max(bounded, key=lambda pair: pair[0])
    several = f"All {len(bounded)} Kolmogorov distances are" if len(bounded) > 1 else "The Kolmogorov distance is"
    sentence = f"{several} at most this in the population, with {confidence_text(record.confidence)} confidence."
    return AuditHighlight(
        "What is certain", (("Certified upper bound", number_text(bound)),), sentence, _where(finding), finding
    )


def _four_fifths(record: AuditRecord) -> AuditHighlight | None:
    known = [(found.selection_ratio, found) for found in record.decisions if found.selection_ratio is not None]
    if not known:
        return None
    ratio, worst = min(known, key=lambda pair: pair[0])
    low, high = _extremes(worst.rates)
    sentence = (
        f"“{low.group}” is selected in {percent_text(low.selection_rate)} of cases, "
        f"“{high.group}” in {percent_text(high.selection_rate)}."
    )
    figures = (("Four-fifths ratio", number_text(ratio)), ("the rule asks for", number_text(FOUR_FIFTHS)))
    where = f"{worst.attribute}, {worst.within}, threshold {strength_texts([worst.threshold])[0]}"
    side = "near" if is_open(worst) else "below" if is_below(ratio) else "within"
    heading = f"Decisions {side} four fifths"
    return AuditHighlight(heading, figures, sentence, where, worst)


def _extremes(rates: Iterable[GroupRates]) -> tuple[GroupRates, GroupRates]:
    ordered = sorted(rates, key=lambda found: found.selection_rate)
    return ordered[0], ordered[-1]


def _where(finding: Finding) -> str:
    return f"{finding.attribute}, {finding.within}"


def remarks(record: AuditRecord) -> tuple[tuple[NoteKind, str, tuple[str, ...]], ...]:
    """Notes by kind, the ones to heed first: kind, heading, texts.

    >>> from metrifair.results import Note
    >>> remarks(AuditRecord(9, 0, (0, 1), 0.95, [], notes=[Note("weights", "x"), Note("small", "y")]))
    (('small', 'Small groups', ('y',)), ('weights', 'Weights', ('x',)))
    """
    texts = {kind: tuple(note.text for note in record.notes if note.kind == kind) for kind in NOTE_HEADINGS}
    return tuple((kind, NOTE_HEADINGS[kind], found) for kind, found in texts.items() if found)
