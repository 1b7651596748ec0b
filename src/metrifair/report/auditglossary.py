"""What the words of an audit mean: metrics, criteria, evidence, decisions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from metrifair.metrics.registry import METRICS
from metrifair.results import AuditRecord, Finding


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


def confidence_text(confidence: float) -> str:
    """A confidence in percent, without needless digits.

    >>> confidence_text(0.95), confidence_text(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * confidence:.6g}%"


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
        *(pair for known, pair in _evidence_words(record.findings, confidence) if known),
        *(_DECISION_WORDS.items() if record.decisions else ()),
    )


def _evidence_words(findings: Sequence[Finding], confidence: str) -> Iterable[tuple[bool, tuple[str, str]]]:
    """Each word with whether the findings have what it names."""
    names = _EVIDENCE_NAMES | {"interval": f"{confidence} interval"}
    for key, name in names.items():
        known = any(getattr(finding, key) is not None for finding in findings)
        yield known, (name, _EVIDENCE[key].replace("CONFIDENCE", confidence))


_EVIDENCE_NAMES = {
    "witness": "Benefit",
    "unbiased": "Unbiased value",
    "interval": "Interval",
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
    "bracket": "Bounds between which the value of this file lies for certain: the file was too large to hold.",
    "certified": "With CONFIDENCE confidence the distance in the population is at most this, whatever the "
    "distributions are (by the inequality of Dvoretzky, Kiefer and Wolfowitz).",
    "certified_jointly": "The same, so that with CONFIDENCE confidence no finding of this audit exceeds its bound.",
    "paper_bound": "An upper bound of the same kind, by the VC dimension, as in the paper “Metrizing Fairness”.",
    "p_value": "How often two groups with one distribution would differ at least this much by chance. "
    "Among many findings some are small by chance.",
}
_DECISION_WORDS = {
    "Selection rate": "The share of a group that is decided positively at the threshold.",
    "Four-fifths ratio": "The lowest selection rate divided by the highest. Below 0.8, a rule of thumb of United "
    "States law asks for an explanation.",
    "True positive rate": "Of those with a positive label, the share that is selected.",
    "False positive rate": "Of those with a negative label, the share that is selected.",
}
