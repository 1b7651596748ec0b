"""The sentences and tables of a search for groups."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from metrifair.auditing.search_records import Condition, SearchRecord, WorseGroup
from metrifair.wording.numbers import (
    confidence_text,
    count_text,
    figure_text,
    part_text,
    percent_text,
    points_text,
    quoted,
)
from metrifair.wording.tables import Column, ColumnTable, count_column, text_column
from metrifair.wording.terms import glossary_entries, term_name

OUTCOME_FIGURES = {
    "selected": "selection rate",
    "missed positives": "miss rate",
    "false positives": "false positive rate",
    "score": "mean score",
    "metric": "mean",
}
"""The figure of a group, by outcome."""

GROUP_KEYS = ("marked", "rows", "figure", "others", "gap", "at_least", "worst_parent")
"""The columns of groups that people read, in their order."""


def group_text(conditions: Sequence[Condition]) -> str:
    """A group by its conditions.

    >>> group_text([Condition("job", "Sales"), Condition("age", "(25,40]"), Condition("pay", "≤9")])
    'job=Sales and age in (25,40] and pay ≤9'
    """
    return " and ".join(map(_condition_text, conditions))


def _condition_text(condition: Condition) -> str:
    if condition.value.startswith(("≤", ">")):
        return f"{condition.column} {condition.value}"
    if condition.value.startswith("("):
        return f"{condition.column} in {condition.value}"
    return f"{condition.column}={condition.value}"


def search_sentences(record: SearchRecord) -> list[str]:
    """The result in sentences, the most important first."""
    figure = OUTCOME_FIGURES[record.outcome]
    direction = "higher" if record.higher_is_worse else "lower"
    confidence = confidence_text(record.settings.confidence)
    searched = count_text(record.searched, "group")
    if not record.worse:
        first = (
            f"None of the {searched} of this search has a significantly {direction} {figure} than "
            f"the other rows, with {confidence} confidence for all at once."
        )
        return [first, *_certificates(record), *_caveats(record)]
    verb = "has" if len(record.worse) == 1 else "have"
    first = (
        f"Of {searched}, {len(record.worse):,} {verb} a {direction} {figure} than the other rows, "
        f"with {confidence} confidence for all at once."
    )
    sentences = [
        first,
        _worst_sentence(record),
        *_listed_sentence(record),
        *_protected_sentence(record),
    ]
    return [*sentences, *_certificates(record), *_caveats(record)]


def search_summary(record: SearchRecord) -> list[str]:
    """The search in the summary of an audit: how many groups are worse, and the largest bound."""
    first, *_ = search_sentences(record)
    worst = [_worst_sentence(record)] if record.worse else _certificates(record)
    return [f"Search for groups: {first[0].lower()}{first[1:]}", *worst]


def _worst_sentence(record: SearchRecord) -> str:
    worst = record.worse[0]
    figure = OUTCOME_FIGURES[record.outcome]
    return (
        f"The largest bound is that of {quoted(group_text(worst.conditions))}: its {figure} is "
        f"{value_text(record, worst.figure)} ({count_text(worst.rows, 'row')}), that of the other "
        f"rows {value_text(record, worst.others)}, a gap of at least "
        f"{gap_text(record, worst.at_least)}."
    )


def _listed_sentence(record: SearchRecord) -> list[str]:
    hidden = len(record.worse) - len(record.listed)
    if hidden == 0:
        return []
    listed = count_text(len(record.listed), "group")
    if any(group.is_worse_than_parents for group in record.listed):
        return [f"Listed: {listed}, worse than each parent and within no other listed group."]
    return [f"Listed: {listed}, within no other listed group. None is worse than each parent."]


def _protected_sentence(record: SearchRecord) -> list[str]:
    if not record.protected:
        return []
    only = sum(_is_protected_only(group) for group in record.worse)
    some = sum(group.is_protected for group in record.worse)
    sentence = (
        f"{part_text(only, len(record.worse), 'groups')} {_are(only)} of protected attributes "
        f"alone, and {some:,} {'has' if some == 1 else 'have'} at least one."
    )
    return [sentence]


def _is_protected_only(group: WorseGroup) -> bool:
    return all(condition.is_protected for condition in group.conditions)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _certificates(record: SearchRecord) -> list[str]:
    """Upper bounds for all groups, and for large ones."""
    confidence = confidence_text(record.settings.confidence)
    gaps = record.largest_gaps
    if not gaps:
        return []
    large = next((gap for gap in gaps if gap.rows >= 500), gaps[-1])
    sentence = (
        f"No group of this search with at least {count_text(large.rows, 'row')} is worse than the "
        f"other rows by more than {gap_text(record, large.gap)}, at {confidence} confidence."
    )
    return [sentence]


def _caveats(record: SearchRecord) -> list[str]:
    sentences = []
    if record.search_rows is not None:
        sentences.append(
            f"{count_text(record.search_rows, 'row')} selected the groups; all figures are those "
            f"of the other {count_text(record.rows, 'row')}."
        )
    if record.clusters is not None:
        sentences.append(
            f"Bounds allow for {count_text(record.clusters, 'cluster')} of dependent rows."
        )
    if record.repeated:
        sentences.append(
            f"{count_text(record.repeated, 'further group')} with nearly all rows of a parent "
            f"{'was' if record.repeated == 1 else 'were'} not searched."
        )
    return sentences


def value_text(record: SearchRecord, value: float) -> str:
    """A figure of a group: a share in percent, or a mean."""
    if record.outcome in ("score", "metric"):
        return figure_text(value)
    return percent_text(value)


def gap_text(record: SearchRecord, gap: float) -> str:
    """A difference between figures: in points, or of means."""
    if record.outcome in ("score", "metric"):
        return figure_text(gap)
    return points_text(gap)


def group_table(record: SearchRecord) -> ColumnTable:
    """The columns of groups that are worse: figures are percentages or means."""
    value = partial(value_text, record)
    gap = partial(gap_text, record)
    return ColumnTable(
        text_column("group", lambda group: group_text(group.conditions)),
        text_column("marked", _marked_text, kind="", term="group"),
        count_column("rows"),
        Column("figure", show=value),
        Column("others", show=value),
        Column("gap", show=gap),
        Column("at_least", show=gap),
        Column("worst_parent", "", partial(_worst_parent, record), value),
        count_column("conditions", lambda group: len(group.conditions)),
        Column("is_worse_than_parents", "Boolean"),
        Column("is_protected", "Boolean"),
        Column("is_listed", "Boolean"),
    )


def _marked_text(group: WorseGroup) -> str:
    """A group, with a star if it has a protected attribute."""
    return f"{group_text(group.conditions)}{' *' if group.is_protected else ''}"


def _worst_parent(record: SearchRecord, group: WorseGroup) -> float | None:
    figures = [parent.figure for parent in group.parents]
    if not figures:
        return None
    return max(figures) if record.higher_is_worse else min(figures)


def gap_columns(record: SearchRecord) -> list[Column]:
    """The columns of upper bounds of all gaps, by the rows of a group."""
    return [
        Column("group_rows", "Int64", "rows", "at least {:,}".format),
        count_column("groups"),
        Column("largest_gap", value="gap", show=partial(gap_text, record)),
    ]


def search_glossary() -> list[tuple[str, str]]:
    """The words of a page, with their meanings."""
    return glossary_entries("at_least", "others", "worst_parent", "largest_gap")


def overview(record: SearchRecord) -> list[tuple[str, str]]:
    """The facts of the head of a page."""
    settings = record.settings
    facts = [
        ("Outcome", record.outcome),
        (term_name("rows"), f"{record.rows:,}"),
        (OUTCOME_FIGURES[record.outcome].capitalize(), value_text(record, record.figure)),
        ("Groups searched", f"{record.searched:,}"),
        ("Conditions", f"up to {settings.max_conditions} of {', '.join(record.columns)}"),
        ("Minimum group size", count_text(settings.min_rows, "row")),
        ("Confidence", confidence_text(settings.confidence)),
    ]
    if settings.threshold is not None:
        facts.append(("Threshold", f"{settings.threshold:g}"))
    if settings.positive:
        facts.append(("Positive label", settings.positive))
    return facts
