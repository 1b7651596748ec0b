"""A finding in sentences: where the gap is largest, and the meaning of the number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from metrifair.auditing.records import REST_NAME, AuditRecord, Finding, Measure
from metrifair.metrics.registry import METRICS, is_largest_gap
from metrifair.wording.metrics import metric_words
from metrifair.wording.numbers import (
    NO_NUMBER,
    count_text,
    cutoff_text,
    interval_text,
    number_text,
    percent_text,
    points_text,
    quoted,
    score_text,
)

SIGNIFICANCE = (
    "",
    "not distinguishable from noise",
    "significant",
    "group not known",
    "too few rows",
)
"""No test, not distinguishable from sampling noise, statistically significant, a group of unknown
name, below the minimum group size.
"""

OTHERS = "the other groups"

TESTS: dict[str, str] = {"": "", "bonferroni": "Bonferroni", "joint_bounds": "joint interval"}
"""How significance was tested, in a table."""


class Description(NamedTuple):
    """The sentences of a finding."""

    sentence: str  # where, and for which group
    meaning: str  # the meaning of the value


def describe(finding: Finding) -> Description:
    """The sentence and the meaning of a finding; each is empty if its facts are missing."""
    return Description(
        finding_sentence(finding), f"{finding_meaning(finding)} {detectable_text(finding)}".strip()
    )


def detectable_text(finding: Finding) -> str:
    """The gap that could have been found where none was; empty if it is not known.

    >>> names = ("sex", "statistical_parity", "everyone", ("f", "m"))
    >>> detectable_text(Finding(*names, (90, 90), "kolmogorov", 0.1, detectable=0.24))
    '180 rows reliably detect only gaps of 24.0 points or more (power 80%).'
    """
    if finding.detectable is None:
        return ""
    rows = count_text(sum(finding.sizes), "row")
    gap = points_text(finding.detectable)
    return f"{rows} reliably detect only gaps of {gap} or more (power 80%)."


def rank_text(headline: Finding, findings: Sequence[Finding]) -> str:
    """Why a finding is the headline: the interval is furthest above 0, of the largest gap or of
    another one.

    >>> names = ("sex", "statistical_parity", "everyone", ("f", "m"))
    >>> gap, larger = (Finding(*names, (90, 90), "kolmogorov", value, significant=True) for value in (0.3, 0.4))
    >>> rank_text(gap, [gap]), rank_text(gap, [gap, larger])
    ('largest significant gap', 'clearest gap')
    """
    if larger_gap(headline, findings) is not None:
        return "clearest gap"
    return "largest significant gap"


def larger_gap(headline: Finding, findings: Sequence[Finding]) -> Finding | None:
    """The largest significant gap if it is not the headline: its interval begins nearer to 0."""
    significant = [other for other in findings if other.certain and other.metric == headline.metric]
    largest = max(significant, key=lambda other: other.value, default=headline)
    return largest if largest.value > headline.value else None


def group_texts(finding: Finding) -> tuple[str, str]:
    """Both groups as parts of a sentence.

    >>> group_texts(Finding("region", "statistical_parity", "everyone", ("north", "rest"), (9, 90), "energy", 0.3))
    ('“north”', 'the other groups')
    """
    left, right = finding.groups
    is_rest = right == REST_NAME and finding.group_values[1:] in ((), (None,))
    return quoted(left), OTHERS if is_rest else quoted(right)


def finding_sentence(finding: Finding) -> str:
    """Where the shares at or above a cutoff differ most.

    >>> found = Finding("sex", "statistical_parity", "everyone", ("men", "women"), (90, 90), "kolmogorov", 0.21,
    ...                 at=0.43, shares=(0.41, 0.62))
    >>> finding_sentence(found)
    'At a cutoff just above 0.43, 38.0% of “women” and 59.0% of “men” pass it.'
    """
    if finding.shares is None or finding.at is None:
        return ""
    if finding.cut is not None:
        return _cut_sentence(finding, finding.at, finding.shares)
    groups = group_texts(finding)
    (less, lower), (more, upper) = sorted(zip(finding.shares, groups, strict=True))
    if less == more:
        scores = "decisions" if finding.decided else "scores"
        return f"The {scores} of {groups[0]} and {groups[1]} have the same distribution."
    if finding.decided:
        return f"The decision is 1 for {percent_text(1 - more)} of {upper} and {percent_text(1 - less)} of {lower}."
    where = (
        f"At a cutoff {cutoff_text(finding.at, finding.span)}, {percent_text(1 - more)} of "
        f"{upper} and {percent_text(1 - less)} of {lower} pass it."
    )
    compares_means = finding.metric in METRICS and METRICS[finding.metric].compares_means
    if finding.means is None or not compares_means:
        return where
    (low, below), (high, above) = sorted(zip(finding.means, groups, strict=True))
    means = f"{score_text(high, finding.span)} for {above} and {score_text(low, finding.span)} for {below}"
    return f"The mean score is {means}. {where}"


def _cut_sentence(finding: Finding, at: float, shares: tuple[float, float]) -> str:
    """Which side of the worst cut of a numeric attribute has lower scores."""
    if shares[0] == shares[1]:
        return f"No cut of {finding.attribute} separates the scores: both sides have the same distribution."
    cut = score_text(finding.cut or 0.0)
    (less, higher), (more, lower) = sorted(
        zip(shares, (f"up to {cut}", f"above {cut}"), strict=True)
    )
    return (
        f"Scores are lower for {finding.attribute} {lower}: {percent_text(1 - more)} pass a "
        f"cutoff {cutoff_text(at, finding.span)}, but {percent_text(1 - less)} of those {higher}."
    )


def finding_meaning(finding: Finding) -> str:
    """The meaning of the value of a finding.

    >>> found = Finding("sex", "statistical_parity", "everyone", ("men", "women"), (90, 90), "wasserstein", 0.21)
    >>> finding_meaning(found)
    'Scores would have to move by 0.21 on average to give “men” and “women” the same distribution.'
    """
    if finding.cuts:
        return _cut_meaning(finding)
    first, second = group_texts(finding)
    value = finding.value
    points = points_text(finding.value)
    if finding.decided and is_largest_gap(finding.metric):
        return f"The shares of {first} and {second} with decision 1 differ by {points}."
    cutoff = "an unknown cutoff"
    if finding.at is not None:
        cutoff = f"a cutoff {cutoff_text(finding.at, finding.span)}"
    return metric_words(finding.metric).meaning.format(
        first=first,
        second=second,
        value=score_text(value),
        half=score_text(value / 2),
        root=score_text(max(0.0, value) ** 0.5),
        points=points,
        cutoff=cutoff,
    )


def _cut_meaning(finding: Finding) -> str:
    """The same of the worst cut of a numeric attribute."""
    name = finding.attribute
    cuts = finding.cuts
    if finding.metric == "kolmogorov":
        return (
            f"For each cut of {name} ({cuts} in all) and any cutoff of the score, the shares at or "
            f"above the cutoff differ by at most {points_text(finding.value)}."
        )
    if finding.metric == "wasserstein":
        moved = score_text(finding.value)
        return (
            f"At the worst of {count_text(cuts, 'cut')} of {name}, scores would have to move by {moved} on average "
            "to give both sides the same distribution."
        )
    meaning = (
        f"The dependence of the scores on {name} over all its values, on the scale of the energy "
        "distance between two "
        "groups. 0 means independence."
    )
    if finding.correlation is None:
        return meaning
    return f"{meaning} The distance correlation is {score_text(finding.correlation)}."


def significance_text(finding: Finding) -> str:
    """Whether a finding is statistically significant, in a few words; empty if no test was made.

    >>> found = Finding("sex", "statistical_parity", "everyone", ("f", "m"), (9, 90), "energy", 0.3, enough=False)
    >>> significance_text(found)
    'too few rows'
    """
    if not finding.enough:
        return SIGNIFICANCE[4]
    if finding.unknown_name:
        return SIGNIFICANCE[3]
    return SIGNIFICANCE[0 if finding.significant is None else 1 + finding.significant]


def test_draws(record: AuditRecord) -> int:
    """The number of permutations behind the p-values of findings; 0 if they come from resamples
    of probabilities.
    """
    return 0 if record.proxy is not None else record.permutations


def measure_text(measure: Measure | None) -> str:
    """The value, or the proven bounds of a value of binned counts.

    >>> measure_text(Measure(0.75)), measure_text(None)
    ('0.750', '–')
    """
    if measure is None:
        return NO_NUMBER
    bracket = measure.bracket
    if bracket is None or number_text(bracket.low) == number_text(bracket.high):
        return number_text(measure.value)
    return interval_text(bracket)
