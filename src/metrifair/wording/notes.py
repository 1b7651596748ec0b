"""Notes in sentences: one template for each kind of note, whose parameters are its facts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypeAlias

from metrifair.auditing.records import REST_NAME, Favorable, Note
from metrifair.errors import PYTHON, ArgumentNames
from metrifair.problem.problem import positive_sentence
from metrifair.problem.unknown_names import unknown_name_text
from metrifair.wording.findings import OTHERS
from metrifair.wording.metrics import metric_words
from metrifair.wording.numbers import (
    count_text,
    figure_text,
    listed,
    percent_text,
    points_text,
    quoted,
    score_text,
)
from metrifair.wording.rates import selected_text

Topic: TypeAlias = Literal[
    "constant", "labels", "parity", "small", "missing", "exactness", "weights"
]

TOPICS: dict[Topic, str] = {
    "constant": "The same result for everyone",
    "labels": "Positive label",
    "parity": "Is parity the right criterion?",
    "small": "Small groups",
    "missing": "Excluded rows",
    "exactness": "Precision",
    "weights": "Weights and clusters",
}
"""The headings of notes on a page, the most important first."""

_OF_RATES = ("constant", "labels", "missing", "weights")


class Template(NamedTuple):
    """The topic and the sentences of a kind of note; ``remedy`` is the argument that helps."""

    topic: Topic
    text: Callable[..., str]
    remedy: str = ""
    purpose: str = ""  # of the remedy


def note_text(note: Note, names: ArgumentNames = PYTHON) -> str:
    """The note as one to four sentences.

    >>> note_text(Note("left_out_rows", {"rows": 1}))
    'Excluded: 1 row with a missing score, label or weight.'
    >>> note_text(Note("undecided"))[-35:]
    'Pass threshold=... to compute them.'
    """
    template = NOTES[note.kind]
    text = template.text(**note.facts)
    if not template.remedy:
        return text
    value = note.facts["group"] if template.remedy == "known_names" else ...
    return f"{text} {_remedy(template, value, names)}"


def note_topic(note: Note) -> Topic:
    """The topic of the note, which names its heading."""
    return NOTES[note.kind].topic


def notes_by_topic(notes: Sequence[Note]) -> list[tuple[Topic, str, tuple[str, ...]]]:
    """Topic, heading and texts, the most important topic first.

    >>> notes_by_topic([Note("weighted_rows", {"in_memory": True}), Note("left_out_rows", {"rows": 2})])[0]
    ('missing', 'Excluded rows', ('Excluded: 2 rows with a missing score, label or weight.',))
    """
    texts = {
        topic: tuple(note_text(note) for note in notes if note_topic(note) == topic)
        for topic in TOPICS
    }
    return [
        (topic, TOPICS[topic], notes_of_topic)
        for topic, notes_of_topic in texts.items()
        if notes_of_topic
    ]


def rate_notes(notes: Sequence[Note]) -> list[Note]:
    """The notes that matter for tables of rates."""
    return [
        note for note in notes if note_topic(note) in _OF_RATES or note.kind == "median_bracket"
    ]


def _remedy(template: Template, value: object, names: ArgumentNames) -> str:
    """What to pass. A value that only the user can give is a placeholder."""
    argument = names.value(template.remedy, value)
    if template.remedy == "known_names":
        missing = names.value("missing", value)
        absent = f"leave these cells empty, or {names.verb} {missing}"
        if names is PYTHON:
            absent = (
                f"pass None instead. In a file, leave these cells empty, or read it with {missing}"
            )
        real = f"If it is a real group, {names.verb} {argument}."
        return f"{real} If it marks missing values, {absent}."
    return f"{names.verb.capitalize()} {argument} {template.purpose}."


# --- the same result for everyone


def constant_text(note: Note) -> str:
    """The fact behind a note on constant results, as the beginning of a sentence."""
    return _CONSTANT[note.kind](**note.facts)


def _same_decision(threshold: float, selected: bool) -> str:
    return (
        f"At threshold {score_text(threshold)}, {'everyone' if selected else 'nobody'} is selected"
    )


def _nearly_all_selected(**facts: Any) -> str:
    names = "threshold", "selected_by", "favorable", "favorable_decision"
    selected = selected_text(*(facts[name] for name in names))
    return f"{selected}, at least {percent_text(facts['share'])} of every group are selected"


_CONSTANT: dict[str, Callable[..., str]] = {
    "constant_scores": lambda score: f"Every score is {score_text(score)}",
    "constant_probabilities": lambda: "All rows have the same class probabilities",
    "same_decision": _same_decision,
    "nearly_all_selected": _nearly_all_selected,
}


def _without_gaps(kind: str) -> Callable[..., str]:
    return lambda **facts: (
        f"{_CONSTANT[kind](**facts)}, so no gap can appear. This is no evidence of fairness."
    )


def _without_contrast(**facts: Any) -> str:
    return f"{_same_decision(**facts)}. Equal selection rates are then no evidence of fairness."


def _without_meaning(**facts: Any) -> str:
    low, high = (score_text(facts[end], facts["high"] - facts["low"]) for end in ("low", "high"))
    nearly = _nearly_all_selected(**facts)
    return f"{nearly}, so impact ratios say little. Check the threshold: the scores range from {low} to {high}."


# --- labels and outcomes


def _positive_label(classes: Sequence[object], positive: object) -> str:
    return f"{positive_sentence(classes, positive)}."


def _reversed_score(auc: float, favorable: Favorable) -> str:
    side = "lower" if favorable == "high" else "higher"
    return (
        f"The score ranks the positive label {side} than the negative one (AUC {auc:.2f}). The "
        "score or the positive "
        "label may be reversed."
    )


def _groups_are_labels(attribute: str) -> str:
    return (
        f"The groups of {attribute} are a one-to-one encoding of the label. Accurate scores are "
        "then unfair by "
        "construction."
    )


def _uninformative_score(
    attribute: str, uninformative: Mapping[str, float], informative: Mapping[str, float]
) -> str:
    nothing, much = (
        listed(
            [
                f"{quoted(name)} ({figure_text(correlation, digits=2)})"
                for name, correlation in groups.items()
            ]
        )
        for groups in (uninformative, informative)
    )
    return (
        f"By {attribute}, the correlation of score and outcome is near 0 within {nothing}, but not "
        f"within {much}. "
        "Equal score distributions would then assign scores at random and help nobody. The first "
        "group needs features "
        "that predict its outcome."
    )


# --- missing values, small groups


_MISSING = {
    "missing_score": "score or decision",
    "missing_label": "label",
    "missing_weight": "weight",
    "missing_other_score": "score of another model",
}


def _left_out_rows(rows: int, reasons: Mapping[str, int] | None = None) -> str:
    """Rows by what they lack; counts of rows do not say what that was."""
    excluded = f"Excluded: {count_text(rows, 'row')}"
    if not reasons or not reasons.keys() <= _MISSING.keys():
        return f"{excluded} with a missing score, label or weight."
    if len(reasons) == 1:
        [reason] = reasons
        return f"{excluded} with a missing {_MISSING[reason]}."
    each = listed([f"{_MISSING[reason]} ({count:,})" for reason, count in reasons.items()])
    return f"{excluded} with a missing value: {each}."


_LISTED_ERRORS = 10  # groups in a note


def _suppressed_groups(column: str, groups: Sequence[object], min_cell: int) -> str:
    return (
        f"Suppressed: {column} {listed([quoted(str(group)) for group in groups])}. A cell (group, "
        "stratum and label) "
        f"has fewer than {min_cell} rows, or a total would reveal such a cell. All rows of "
        "suppressed groups are "
        "withheld, and their number is rounded up to a power of two."
    )


def _withheld_search(min_cell: int) -> str:
    return (
        "The search for groups is not part of this release: its groups overlap, and differences of "
        f"their counts would show cells with fewer than {min_cell:,} rows."
    )


def _merged_scores(min_cell: int) -> str:
    return (
        "Each score is known to an interval of a public grid. Neighboring intervals are merged "
        "until each count has at "
        f"least {min_cell} rows. counts.state has the mean score of each count, rounded to the "
        "grid. Figures spread a "
        "count over its interval as the rows of all groups are."
    )


def _unresolved_groups(column: str, groups: Sequence[object]) -> str:
    return (
        f"Not compared: {column} {listed([quoted(str(group)) for group in groups])}. The threshold "
        "is within intervals "
        "that contain at least half of their rows."
    )


def _rates_on_grid(column: str, errors: Sequence[tuple[str, float]]) -> str:
    return (
        "The threshold is within an interval of the grid. Selection rates may therefore differ "
        "from those of the "
        f"original scores, by {column} by at most: {error_texts(errors)}."
    )


def _distances_on_grid(column: str, errors: Sequence[tuple[str, float]]) -> str:
    return (
        "A Kolmogorov distance of the original scores differs by at most the sum of these shares "
        "of both groups, by "
        f"{column}: {error_texts(errors)}."
    )


def error_texts(errors: Sequence[tuple[str, float]]) -> str:
    """Groups with the largest error of their figures, the largest first.

    >>> error_texts([("f", 0.01), ("m", 0.2)])
    '“m” 20.0 points, “f” 1.0 points'
    """
    largest = sorted(errors, key=lambda pair: -pair[1])
    texts = [f"{quoted(group)} {points_text(share)}" for group, share in largest[:_LISTED_ERRORS]]
    rest = len(errors) - len(texts)
    more = [f"and {count_text(rest, 'more group')}, at most as much"] if rest else []
    return ", ".join([*texts, *more])


def _rounded_grid(digits: int) -> str:
    return f"All figures use grid scores rounded to {count_text(digits, 'digit')}."


def _rounded_scores(digits: int) -> str:
    return (
        "Decisions at a threshold use the original scores. All other figures use scores rounded to "
        f"{count_text(digits, 'digit')}."
    )


def _withheld_rows(rows: int) -> str:
    cells = (
        "cells (group, stratum and label) below the minimum group size when the counts were saved"
    )
    return f"Withheld: {count_text(rows, 'row')} in {cells}."


def _missing_groups(attribute: str, rows: int, of: int) -> str:
    return f"{attribute} is missing in {rows:,} of {of:,} rows; its findings exclude them."


def _missing_or_suppressed_groups(attribute: str, rows: int, of: int) -> str:
    return f"{attribute} is missing or suppressed in {rows:,} of {of:,} rows; its findings exclude them."


def _missing_all_groups(rows: int) -> str:
    return f"All findings exclude {count_text(rows, 'row')} without any group."


def _unknown_name(attribute: str, group: str, rows: int, of: int, *, in_tables: bool) -> str:
    role = "The tables of rates count it separately, and not as a group."
    if in_tables:
        role = "It is a group, but never the reference group or the headline."
    return f"{unknown_name_text(attribute, group, rows, of)} {role}"


def _names_alike(attribute: str, groups: Sequence[str]) -> str:
    names = " and ".join(map(repr, groups))
    return f"{attribute}: the groups {names} differ only in spelling. If they are one group, use one spelling."


def _absent_groups(groups: Sequence[tuple[str, str, str]]) -> str:
    names = [f"{quoted(name)} of {attribute} in {within}" for name, attribute, within in groups]
    return f"Not compared, because they have no rows: {listed(names)}."


def _small_groups(
    groups: Sequence[tuple[str, str, str, int]],
    min_group_size: int,
    fewest: int | None,
    clustered: bool = False,
) -> str:
    unit = "cluster" if clustered else "row"
    names = [
        f"{quoted(name)} of {attribute} ({count_text(size, unit)} in {within})"
        for name, attribute, within, size in groups
    ]
    text = f"Below the minimum group size of {count_text(min_group_size, unit)}: {listed(names)}."
    if fewest is None:
        return text
    return f"{text} Groups with fewer than {fewest} {unit}s have no confidence interval."


def _few_rows_for_dependence(
    sets: Sequence[tuple[str, str]], fewest: int, clustered: bool = False
) -> str:
    unit = "clusters" if clustered else "rows"
    return (
        "No confidence interval for the dependence of the scores, because there are fewer than "
        f"{fewest} {unit}: "
        f"{listed([f'{attribute} in {within}' for attribute, within in sets])}."
    )


def _undetectable_gaps(pairs: Sequence[tuple[str, str, str]], gap: float) -> str:
    few = f"too few rows to rule out a gap of {100 * gap:.0f} points"
    sets = list(dict.fromkeys(within for _, _, within in pairs))
    if len(sets) > 1:
        return f"{few.capitalize()}: {_pairs(pairs)}."
    between = listed([_pair(left, right) for left, right, _ in pairs])
    if sets == ["everyone"]:
        return f"{few.capitalize()} between {between}."
    return f"Among {sets[0]}, {few} between {between}."


def _pairs(pairs: Sequence[tuple[str, str, str]]) -> str:
    return listed([f"{_pair(left, right)} among {within}" for left, right, within in pairs])


def _pair(left: str, right: str) -> str:
    return f"{quoted(left)} and {OTHERS if right == REST_NAME else quoted(right)}"


# --- precision

_SMALLEST_ERROR = 1e-6


def _undecided() -> str:
    return "No selection rates: the scores are not probabilities of a label, so 0.5 is no natural threshold."


def _binned_attribute(attribute: str, levels: int) -> str:
    return (
        f"{attribute} has very many distinct values and is binned into {levels} levels of about "
        "equal size. Its "
        "figures are exact for these levels."
    )


def _binned_counts(rows: int, errors: Mapping[str, float]) -> str:
    text = f"The {rows:,} rows were counted in bins."
    known = {metric: _error_text(error) for metric, error in errors.items()}
    if len(set(known.values())) == 1:
        return f"{text} Distances are known to {min(known.values())}."
    each = ", ".join(f"{metric_words(metric).name} {error}" for metric, error in known.items())
    return f"{text} Distances are known to these errors: {each}." if known else text


def _error_text(error: float) -> str:
    """A bound of an error, rounded up to one digit.

    >>> _error_text(0.000061), _error_text(0.25), _error_text(2.2e-16)
    ('0.00007', '0.3', '0.000001')
    """
    if error <= _SMALLEST_ERROR:
        return f"{_SMALLEST_ERROR:f}"
    digit = math.floor(math.log10(error))
    return f"{Decimal(math.ceil(error / 10.0**digit)).scaleb(digit):f}"


def _median_bracket(low: float, high: float) -> str:
    ends = [score_text(end, high - low) for end in (low, high)]
    return f"By the binned counts, the median score lies between {ends[0]} and {ends[1]}. The nearer end replaces it."


def _weighted_rows(in_memory: bool) -> str:
    if in_memory:
        return "The rows are weighted. Certified bounds and p-values need equal weights and are omitted."
    return (
        "The rows are weighted. Certified bounds and p-values need equal weights, confidence "
        "intervals need rows in "
        "memory; all are omitted."
    )


def _clustered_rows(column: str, clusters: int, rows: int) -> str:
    return (
        f"The {rows:,} rows form {count_text(clusters, 'cluster')} by {quoted(column)}. Intervals "
        "and p-values allow "
        "for any dependence within a cluster. The minimum group size counts clusters. Certified "
        "bounds, unbiased "
        "estimates, detectable gaps and Fisher's test need independent rows. They are omitted "
        "where clusters have "
        "several rows."
    )


def _single_clusters(column: str, rows: int) -> str:
    return f"Each of the {rows:,} rows is a cluster of its own by {quoted(column)}. So rows are treated as independent."


def _repeated_ids(column: str, values: int, rows: int) -> str:
    return (
        f"{rows:,} rows have only {values:,} different values of {quoted(column)}, and the audit "
        "treats all rows as "
        "independent. If rows with one value depend on each other, confidence intervals are too "
        "narrow."
    )


def _group_probabilities(attribute: str) -> str:
    return (
        f"The audit uses {attribute} instead of known groups: group sizes are expected numbers of "
        "rows, p-values come "
        "from a bootstrap, and certified bounds are omitted."
    )


def _labels_unused(attribute: str) -> str:
    return (
        f"Figures by label are omitted, because they need a further assumption about {attribute}."
    )


def _few_known_rows(groups: Sequence[tuple[str, int]], fewest: int) -> str:
    names = [f"{quoted(name)} ({count_text(rows, 'row')})" for name, rows in groups]
    return f"Not corrected, because fewer than {fewest} rows are known to be in the group: {listed(names)}."


def _few_effective_rows(pairs: Sequence[tuple[str, str, str]], fewest: int) -> str:
    return f"No confidence interval, because the weights leave an effective sample size below {fewest}: {_pairs(pairs)}."  # noqa: E501


NOTES = {
    "constant_scores": Template("constant", _without_gaps("constant_scores")),
    "constant_probabilities": Template("constant", _without_gaps("constant_probabilities")),
    "same_decision": Template(
        "constant", _without_contrast, "threshold", "to compare decisions that differ"
    ),
    "nearly_all_selected": Template("constant", _without_meaning),
    "positive_label": Template("labels", _positive_label, "pos_label", "to change it"),
    "reversed_score": Template("labels", _reversed_score),
    "groups_are_labels": Template("parity", _groups_are_labels),
    "uninformative_score": Template("parity", _uninformative_score),
    "absent_groups": Template("small", _absent_groups),
    "small_groups": Template("small", _small_groups),
    "few_rows_for_dependence": Template("small", _few_rows_for_dependence),
    "undetectable_gaps": Template("small", _undetectable_gaps),
    "left_out_rows": Template("missing", _left_out_rows),
    "withheld_rows": Template("missing", _withheld_rows),
    "suppressed_groups": Template("missing", _suppressed_groups),
    "merged_scores": Template("exactness", _merged_scores),
    "withheld_search": Template("exactness", _withheld_search),
    "unresolved_groups": Template("missing", _unresolved_groups),
    "rates_on_grid": Template("exactness", _rates_on_grid),
    "distances_on_grid": Template("exactness", _distances_on_grid),
    "rounded_grid": Template("exactness", _rounded_grid),
    "rounded_scores": Template("exactness", _rounded_scores),
    "missing_groups": Template("missing", _missing_groups),
    "missing_or_suppressed_groups": Template("missing", _missing_or_suppressed_groups),
    "missing_all_groups": Template("missing", _missing_all_groups),
    "unknown_name": Template("missing", _unknown_name, "known_names"),
    "names_alike": Template("missing", _names_alike),
    "undecided": Template("exactness", _undecided, "threshold", "to compute them"),
    "binned_attribute": Template("exactness", _binned_attribute),
    "binned_counts": Template("exactness", _binned_counts),
    "median_bracket": Template("exactness", _median_bracket),
    "weighted_rows": Template("weights", _weighted_rows),
    "clustered_rows": Template("weights", _clustered_rows),
    "single_clusters": Template("weights", _single_clusters),
    "repeated_ids": Template("weights", _repeated_ids, "clusters", "to allow for it"),
    "group_probabilities": Template("weights", _group_probabilities),
    "labels_unused": Template("weights", _labels_unused, "with_labels", "to state it"),
    "few_known_rows": Template("weights", _few_known_rows),
    "few_effective_rows": Template("weights", _few_effective_rows),
}
"""The kinds of notes."""
