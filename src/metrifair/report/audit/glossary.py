"""What a page says about an audit beside its sentences: facts, what stands out, and what its words mean."""

from __future__ import annotations

from dataclasses import dataclass

from metrifair.auditing.records import AuditRecord, Decisions, Finding, NoteKind, WitnessCurve
from metrifair.figures.selection_rates import FOUR_FIFTHS, STANDARDS, is_below
from metrifair.metrics.registry import METRICS, is_largest_gap
from metrifair.report.audit.words import (
    confidence_text,
    headline_of,
    is_open,
    most_certain_first,
    quoted,
    selected_text,
    worst_of,
    worst_ratio,
)
from metrifair.wording.numbers import interval_text, number_text, percent_text

NOTE_HEADINGS: dict[NoteKind, str] = {
    "constant": "The same for everyone",
    "labels": "Which label is positive",
    "parity": "Are equal scores the right aim?",
    "small": "Small groups",
    "missing": "Rows left out",
    "exactness": "How exact",
    "weights": "Weights",
    "training": "Training rows",
}


@dataclass(frozen=True)
class AuditHighlight:
    """Something worth a glance, and the finding or decisions that it is about."""

    heading: str
    figures: tuple[tuple[str, str], ...]
    sentence: str
    where: str
    about: Finding | Decisions


def overview(record: AuditRecord) -> tuple[tuple[str, str], ...]:
    """What was audited, in figures.

    >>> overview(AuditRecord(1200, 3, (0.1, 0.9), 0.95, []))[:2]
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
    [('No gap is certain', '0.300')]
    """
    found = [_largest(record), _certified(record), _four_fifths(record)]
    return tuple(highlight for highlight in found if highlight is not None)


def _largest(record: AuditRecord) -> AuditHighlight | None:
    """The gap that is largest for certain; where none is, the one of the most rows, and that it is not certain."""
    worst = worst_of(record.findings)
    if worst is None:
        return None
    compared = [one for one in record.findings if one.metric == worst.metric]
    found = headline_of(compared)
    shown = found or most_certain_first(compared)[0]
    bounds, several = shown.joint_interval, sum(one.enough for one in compared) > 1
    kind = "bounds for all at once" if several else "interval"
    told = "" if bounds is None else f", {confidence_text(record.confidence)} {kind} {interval_text(bounds)}"
    return AuditHighlight(
        "Largest gap that is certain" if found else "No gap is certain",
        ((f"{metric_words(shown.metric).name}{told}", number_text(shown.value)),),
        shown.sentence or f"Between {quoted(shown.groups[0])} and {quoted(shown.groups[1])}.",
        f"{shown.attribute}, {shown.within}",
        shown,
    )


def _certified(record: AuditRecord) -> AuditHighlight | None:
    """The bound that holds for all Kolmogorov distances of the audit at once."""
    bounded = [
        (finding.certified_jointly, finding)
        for finding in record.findings
        if is_largest_gap(finding.metric) and finding.certified_jointly is not None and finding.enough
    ]
    if not bounded:
        return None
    bound, finding = max(bounded, key=lambda pair: pair[0])
    several = f"All {len(bounded)} Kolmogorov distances are" if len(bounded) > 1 else "The Kolmogorov distance is"
    sentence = f"{several} at most this in the population, with {confidence_text(record.confidence)} confidence."
    if bound >= 1:
        sentence = "No such distance is larger than 1: so few rows rule nothing out, whatever the distributions are."
    return AuditHighlight(
        "At most" if bound < 1 else "Nothing is proven",
        (("Certified upper bound", number_text(bound)),),
        sentence,
        f"{finding.attribute}, {finding.within}",
        finding,
    )


def _four_fifths(record: AuditRecord) -> AuditHighlight | None:
    worst = worst_ratio(record.decisions)
    if worst is None:
        return None
    table, low, high = worst
    sentence = (
        f"{quoted(low.group)} is selected in {percent_text(low.selection_rate)} of cases, "
        f"{quoted(high.group)} in {percent_text(high.selection_rate)}."
    )
    where = f"{table.attribute}, {table.within}, {selected_text(table).lower()}"
    if not STANDARDS[table.standard].four_fifths:
        return AuditHighlight(
            "Smallest impact ratio", (("Impact ratio", number_text(worst.ratio)),), sentence, where, table
        )
    figures = (("Four-fifths ratio", number_text(worst.ratio)), ("four fifths", number_text(FOUR_FIFTHS)))
    side = "near" if is_open(table) else "below" if is_below(worst.ratio) else "within"
    return AuditHighlight(f"Decisions {side} four fifths", figures, sentence, where, table)


def notes_by_kind(record: AuditRecord) -> tuple[tuple[NoteKind, str, tuple[str, ...]], ...]:
    """Notes by kind, the ones to heed first: kind, heading, texts.

    >>> from metrifair.auditing.records import Note
    >>> notes_by_kind(AuditRecord(9, 0, (0, 1), 0.95, [], notes=[Note("weights", "x"), Note("small", "y")]))
    (('small', 'Small groups', ('y',)), ('weights', 'Weights', ('x',)))
    """
    texts = {kind: tuple(note.text for note in record.notes if note.kind == kind) for kind in NOTE_HEADINGS}
    return tuple((kind, NOTE_HEADINGS[kind], found) for kind, found in texts.items() if found)


def witness_text(finding: Finding, found: WitnessCurve) -> str:
    """What either group gets of the utility that shows the gap."""
    (left, right), (first, second) = found.expected, finding.groups
    square = " The distance is the square of this difference." if metric_words(finding.metric).squared else ""
    return (
        f"On average {quoted(first)} gets {number_text(left)} of it, {quoted(second)} {number_text(right)}: "
        f"a difference of {number_text(abs(left - right))}.{square}"
    )


def ratio_text(found: Decisions) -> str:
    """The four-fifths ratio with its interval, and which side of four fifths it is on."""
    ratio, interval = found.selection_ratio, found.selection_ratio_interval
    if ratio is None:
        why = next((rate.left_out for rate in found.rates if rate.left_out), "")
        there = any(rate.selection_rate > 0 and not rate.left_out for rate in found.rates)
        told = "Nobody of the reference" if there else "Nobody"
        return f"There is no ratio: {why}." if why else f"{told} is selected, so there is no ratio."
    bounds = "" if interval is None else f" ({interval_text(interval)})"
    if not STANDARDS[found.standard].four_fifths:
        return f"Smallest impact ratio {number_text(ratio)}{bounds}."
    side = "below" if is_below(ratio) else "not below"
    verdict = f"{side} four fifths, but the sample leaves both possible." if is_open(found) else f"{side} four fifths."
    return f"Four-fifths ratio {number_text(ratio)}{bounds}: {verdict}"


@dataclass(frozen=True)
class MetricWords:
    """A metric as readers meet it."""

    name: str
    meaning: str
    squared: bool = False  # the square of a difference of expected utilities
    most: float = float("inf")

    @property
    def short(self) -> str:
        """The name where it is clear that distances are meant.

        >>> metric_words("energy").short
        'Energy'
        """
        return self.name.removesuffix(" distance")


_CRITERIA = {
    "statistical_parity": "Scores should be distributed alike in all groups.",
    "equal_opportunity": "Scores should be distributed alike among those whose true label is positive.",
    "predictive_equality": "Scores should be distributed alike among those whose true label is negative.",
    "equalized_odds": "Scores should be distributed alike among those with the same true label.",
    "risk_parity": "The loss, how wrong the scores are, should be distributed alike in all groups.",
    "conditional_statistical_parity": "Scores should be distributed alike within each stratum of the control features.",
}


def metric_words(metric: str) -> MetricWords:
    """What a metric is called and says; a metric of the user's own keeps its name.

    >>> metric_words("kolmogorov").name, metric_words("my_metric").name
    ('Kolmogorov distance', 'my_metric')
    """
    row = METRICS.get(metric)
    return MetricWords(metric, "") if row is None else MetricWords(row.title, row.about, row.squared, row.most)


def criterion_name(criterion: str) -> str:
    """What a criterion is called; one of the user's own keeps its name.

    >>> criterion_name("equal_opportunity"), criterion_name("my criterion")
    ('Equal opportunity', 'my criterion')
    """
    return criterion.replace("_", " ").capitalize() if criterion in _CRITERIA else criterion


def audit_glossary(record: AuditRecord) -> tuple[tuple[str, str], ...]:
    """The words of the report and what they mean: only those that occur.

    >>> [word for word, _ in audit_glossary(AuditRecord(9, 0, (0, 1), 0.95, []))]
    ['Score', 'Group', 'Share below', 'Density']
    """
    confidence = confidence_text(record.confidence)
    metrics = dict.fromkeys(finding.metric for finding in record.findings)
    criteria = dict.fromkeys(finding.criterion for finding in record.findings)
    return (
        ("Score", "The number that the model gives to a person or case."),
        ("Group", "The people or cases with the same value of an attribute."),
        ("Share below", "The share of a group whose score is at most this one, the group's distribution function."),
        ("Density", "Where the scores of a group lie: the higher the curve, the more of its members have that score."),
        *((criterion_name(name), _CRITERIA[name]) for name in criteria if name in _CRITERIA),
        *((words.name, words.meaning) for words in map(metric_words, metrics) if words.meaning),
        *(
            (name.replace("CONFIDENCE", confidence), _EVIDENCE[key].replace("CONFIDENCE", confidence))
            for key, name in _EVIDENCE_NAMES.items()
            if any(getattr(finding, key) is not None for finding in record.findings)
        ),
        *(
            (word, meaning)
            for word, meaning in (_DECISION_WORDS.items() if record.decisions else ())
            if word != "Four-fifths ratio" or any(STANDARDS[one.standard].four_fifths for one in record.decisions)
        ),
    )


_EVIDENCE_NAMES = {
    "witness": "Benefit",
    "unbiased": "Unbiased value",
    "interval": "CONFIDENCE interval",
    "joint_interval": "All at once",
    "by_chance": "Chance",
    "bracket": "Proven bracket",
    "certified": "Certified upper bound",
    "certified_jointly": "Certified, all at once",
    "paper_bound": "The paper's bound",
    "p_value": "p-value",
}
_EVIDENCE = {
    "witness": "Something that a person gets and that depends on the score, chosen so that the groups' averages differ "
    "most: the witness of the distance.",
    "unbiased": "The distance without the part that chance adds on average; it can be below 0.",
    "interval": "In about CONFIDENCE of audits like this one, the distance of the populations lies between such bounds "
    "(by bootstrap). That is said of one finding by itself, not of the largest of many.",
    "joint_interval": "Bounds that hold, with CONFIDENCE confidence, for all comparisons by this distance at once, and "
    "so for the one that was picked: findings are ranked by the lower one, and certain where it is above 0.",
    "by_chance": "Whether chance alone could explain a finding, all comparisons considered: by p-values held against "
    "their number (Bonferroni), or, where no p-value can be small enough, by whether the joint bounds leave out 0.",
    "bracket": "Bounds between which the value of this file lies for certain: the file was too large to hold.",
    "certified": "With CONFIDENCE confidence the distance in the population is at most this, whatever the "
    "distributions are (by the inequality of Dvoretzky, Kiefer and Wolfowitz). A bound of 1 for a difference of shares "
    "rules nothing out.",
    "certified_jointly": "The same, so that with CONFIDENCE confidence no finding of this audit exceeds its bound.",
    "paper_bound": "An upper bound of the same kind, by the VC dimension, as in the paper “Metrizing Fairness”.",
    "p_value": "How often two groups with one distribution would differ at least this much by chance. "
    "Among many findings some are small by chance.",
}
_DECISION_WORDS = {
    "Selection rate": "The share of a group that is decided positively: at the threshold, or beyond the median score.",
    "Impact ratio": "The selection rate of a group divided by that of the reference.",
    "Shortfall": "How many more selections would bring a group to the rate of the reference.",
    "Fisher’s p": "How often chance alone would make two groups with one selection rate differ at least this much.",
    "Four-fifths ratio": "The smallest impact ratio. Below 0.8, a rule of thumb of United States law asks for an "
    "explanation.",
    "True positive rate": "Of those with a positive label, the share that is selected.",
    "False positive rate": "Of those with a negative label, the share that is selected.",
}
