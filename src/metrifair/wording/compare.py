"""Comparisons and series of audits in sentences: one function for each kind of statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from metrifair.auditing.records import (
    Baseline,
    Difference,
    DifferenceRecord,
    Look,
    SeriesRecord,
    Verdict,
)
from metrifair.wording.metrics import criterion_name
from metrifair.wording.numbers import (
    confidence_text,
    count_text,
    figure_text,
    interval_text,
    listed,
    number_text,
    quoted,
)
from metrifair.wording.proxies import attenuated_sentences
from metrifair.wording.terms import glossary_entries, term_name

VERDICTS: dict[Verdict, str] = {
    "worse": "worse",
    "better": "better",
    "not_distinguishable": "not distinguishable",
    "not_tested": "not tested",
}
"""A verdict in a table, in the order in which tables list them."""

_TOPICS = {"decisions": "Decisions", "by_group": "By group"}

GLOSSARY = {
    **dict(glossary_entries("difference")),
    "Interval of a difference": "Combines the intervals of both figures as independent errors, "
    "less the correlation "
    "where both audits have the same rows. It is conservative near a distance of 0.",
    "Joint interval of a difference": "Intervals that hold simultaneously for all differences "
    "(Bonferroni). "
    "Better and worse mean that this interval excludes 0.",
    "p-value of a difference": "The probability of a difference at least as large if both figures "
    "were equal; the "
    "adjusted one accounts for the number of differences.",
}
SERIES_GLOSSARY = {
    **dict(glossary_entries("alarm")),
    "Baseline": "The first measurements of a distance, pooled until both groups reach the minimum "
    "group size.",
}


def topic_name(criterion: str) -> str:
    """The name of a criterion, or of its placeholder."""
    return _TOPICS.get(criterion) or criterion_name(criterion)


def place_text(figure: Difference | Look | Baseline) -> str:
    """The groups, the attribute and the set of a figure.

    >>> place_text(Look("May", "sex", "equal_opportunity", "label=1", ("f", "m"), "energy", (90, 80), 0.1))
    '“f” and “m” of sex (label=1, Equal opportunity)'
    """
    groups = " and ".join(map(quoted, figure.groups))
    where = f"({figure.within}, {topic_name(figure.criterion)})"
    return f"{groups} of {figure.attribute} {where}" if groups else f"{figure.attribute} {where}"


def difference_sentences(record: DifferenceRecord) -> list[str]:
    """A comparison, the most important first."""
    sentences = []
    for model in record.names[1:]:
        differences = [difference for difference in record.differences if difference.model == model]
        sentences.append(_verdicts(model, record.names[0], differences))
        for verdict in ("better", "worse"):
            changed = [difference for difference in differences if difference.verdict == verdict]
            if changed:
                sentences.append(_most_significant(changed))
    sentences.append(_pairing(record))
    if record.unmatched:
        many = f"{record.unmatched:,} figures are not compared: only one of the audits has them, or their groups differ."  # noqa: E501
        single = "1 figure is not compared: only one of the audits has it, or its groups differ."
        sentences.append(single if record.unmatched == 1 else many)
    return [*sentences, *attenuated_sentences(record.r2)]


def _verdicts(model: str, baseline: str, differences: Sequence[Difference]) -> str:
    count = Counter(difference.verdict for difference in differences)
    tested = len(differences) - count["not_tested"]
    without = count_text(count["not_tested"], "figure")
    has, verb = ("has", "is") if count["not_tested"] == 1 else ("have", "are")
    few = f" {without} {has} no interval or too few rows and {verb} not tested."
    untested = few if count["not_tested"] else ""
    if not count["better"] + count["worse"]:
        return f"No figure of {quoted(model)} differs significantly from {quoted(baseline)} ({tested} tested).{untested}"  # noqa: E501
    return (
        f"{quoted(model)} is better than {quoted(baseline)} in {count['better']} and worse in "
        f"{count['worse']} of "
        f"{count_text(tested, 'figure')}; not distinguishable: "
        f"{count['not_distinguishable']}.{untested}"
    )


def _most_significant(differences: Sequence[Difference]) -> str:
    most = min(
        differences, key=lambda difference: (difference.p_value, -abs(difference.difference))
    )
    interval = "" if most.joint_interval is None else f", {interval_text(most.joint_interval)}"
    return (
        f"Most significantly {most.verdict}: {term_name(most.metric)} of {place_text(most)}, "
        "from "
        f"{number_text(most.before)} to {number_text(most.after)} "
        f"({figure_text(most.difference, signed=True)}{interval})."
    )


def _pairing(record: DifferenceRecord) -> str:
    audits = "Both audits" if len(record.names) == 2 else "All audits"
    if record.pairing == "rows":
        return f"{audits} have the same {record.rows[0]:,} rows: errors in common cancel (paired)."
    if record.pairing == "independent":
        remedy = "audit the scores together"
        if record.can_pair:
            remedy = "pass paired=True, or audit the scores together"
        return (
            f"{audits} are treated as having different rows (independent). If their rows are the "
            f"same, {remedy}: "
            "intervals are then narrower."
        )
    if record.pairing == "clusters":
        return (
            f"{audits} have rows in clusters, and a cluster may have rows in several of them. The "
            "intervals hold for "
            "any correlation between audits. If no cluster is in two audits, pass paired=False: "
            "intervals are then "
            "narrower."
        )
    return (
        f"{audits} have the same rows, not all of which are in memory. The intervals hold for any "
        "correlation between "
        "audits, and are wider than those of paired rows."
    )


def series_sentences(record: SeriesRecord) -> list[str]:
    """A series of audits, the most important first."""
    alarms = [row for row in record.series if row.alarm in ("worse", "better")]
    sentences = [
        _changed([alarm for alarm in alarms if alarm.alarm == kind]) for kind in ("worse", "better")
    ]
    if all(baseline.unknown_name for baseline in record.baselines):
        sentences = ["No distance was tested."]
    elif all(row.level is None for row in record.series):
        least = f"{record.min_group_size:,} {'clusters' if record.clustered else 'rows'}"
        sentences = [
            f"No distance was tested: no group has a baseline and a later look of {least}."
        ]
    elif not alarms:
        sentences = [
            (
                "No distance has changed significantly since its baseline, over "
                f"{len(record.looks)} "
                "looks."
            )
        ]
    return [
        *filter(None, sentences),
        _error_rate(record),
        *_baselines(record),
        *attenuated_sentences(record.r2),
    ]


def _error_rate(record: SeriesRecord) -> str:
    alpha = confidence_text(1 - record.confidence)
    looks = "Bonferroni over looks, alpha / (k (k + 1)),"
    tested = [row for row in record.series if row.level is not None]
    if tested and all(row.exact for row in tested):
        return (
            f"If no scores change, the probability of any alarm is at most {alpha}, however many "
            "looks follow (an "
            f"exact test of each pair of groups; {looks} and over pairs). If scores change and a "
            "distance does not, "
            "the probability of an alarm is approximate."
        )
    approximate = (
        f"The probability of any false alarm is approximately at most {alpha}, however many looks "
        f"follow ({looks} and "
        "over distances)."
    )
    if record.clustered:
        return f"{approximate} A cluster may have rows at several looks."
    return approximate


def _changed(looks: Sequence[Look]) -> str:
    if not looks:
        return ""
    most = min(looks, key=lambda look: look.p_value or 0.0)
    distances = len({look.baseline for look in looks})
    at = len({look.look for look in looks})
    counts = f"{count_text(distances, 'distance')}, at {count_text(at, 'look')}"
    return (
        f"{most.alarm.capitalize()} than the baseline: {counts}. Most significant is "
        f"{term_name(most.metric)} of {place_text(most)} at {quoted(most.look)}: "
        f"{number_text(most.value)} ({figure_text(most.difference, signed=True)})."
    )


def _baselines(record: SeriesRecord) -> list[str]:
    """Caveats about baselines: pooled, begun later, too small, and looks that are not tested."""
    size = f"the minimum group size of {record.min_group_size:,} {'clusters' if record.clustered else 'rows'}"
    pooled = [
        baseline for baseline in record.baselines if baseline.enough and len(baseline.looks) > 1
    ]
    late = [baseline for baseline in record.baselines if baseline.looks[0] != record.looks[0]]
    small = [baseline for baseline in record.baselines if not baseline.enough]
    untested = {name: None for baseline in record.baselines for name in baseline.untested}
    unknown = [baseline for baseline in record.baselines if baseline.unknown_name]
    sentences = []
    if unknown:
        names = listed(list(dict.fromkeys(_groups_text(baseline) for baseline in unknown)))
        sentences.append(
            f"Not tested, because the name of a group says that it is not known: {names}."
        )
    if pooled:
        most = max(pooled, key=lambda baseline: len(baseline.looks))
        sentences.append(
            f"The baseline of {count_text(len(pooled), 'distance')} pools several looks, until "
            "both groups reach "
            f"{size}: {len(most.looks)} looks for {place_text(most)}."
        )
    if late:
        distances = count_text(len(late), "distance")
        sentences.append(
            f"The baseline of {distances} begins after the first look: {_groups(late)}."
        )
    if small:
        distances = count_text(len(small), "distance")
        sentences.append(
            f"The baseline of {distances} is below {size}, so that no look is tested: "
            f"{_groups(small)}."
        )
    if untested:
        looks = listed([quoted(name) for name in untested])
        why = f"a group is missing or below {size}, or the labels or strata differ"
        sentences.append(f"Some distances are not tested at {looks}: {why}.")
    return sentences


def _groups_text(baseline: Baseline) -> str:
    return f"{' and '.join(map(quoted, baseline.groups))} of {baseline.attribute}"


def _groups(baselines: Sequence[Baseline]) -> str:
    places = {_groups_text(row): row.looks[0] for row in baselines}
    return listed([f"{place} (from {quoted(look)})" for place, look in places.items()])
