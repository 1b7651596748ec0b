"""The notes of an audit, each with the facts that its sentences in ``wording.notes`` need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.decisions import Selection
from metrifair.auditing.distribution import representative_rows
from metrifair.auditing.formats import LIKE_MISSING
from metrifair.auditing.records import Decisions, Favorable, Finding, Note
from metrifair.auditing.request import Plan, Threshold
from metrifair.auditing.resampling import standard_deviation
from metrifair.auditing.sample import WITHHELD, AuditSample, Part, members_in
from metrifair.figures.certificates import generalization_bounds
from metrifair.figures.intervals import FEWEST, FEWEST_DEPENDENT
from metrifair.metrics.registry import is_largest_gap
from metrifair.problem.problem import attributes_equal_to_label, is_evident_positive
from metrifair.problem.proxies import Memberships
from metrifair.problem.values import Value, canonical, letters
from metrifair.support.arrays import Floats

_NEARLY_ALL = 0.99  # selected
_UNDETECTABLE = 0.2  # a gap this large should be detected
_INFORMATIVE = 0.2  # smallest useful correlation of score and outcome
_CLEARLY = 4.0  # standard deviations below an AUC of one half
_SLIGHT = 0.02  # below one half: of no interest, however many the rows
DECISION_NOTES = frozenset(
    {"constant_scores", "constant_probabilities", "same_decision", "nearly_all_selected", "undecided", "median_bracket"}
)
_SAMPLE_ROWS = 100_000  # rows that represent all rows of a file in a correlation


def audit_notes(
    sample: AuditSample,
    parts: Sequence[Part],
    findings: Sequence[Finding],
    decisions: Sequence[Decisions],
    *,
    plan: Plan,
    selection: Selection | None,
    complete: bool | None,
) -> list[Note]:
    """All notes.

    ``complete`` is True if every bracket of binned counts is narrow enough; None: rows are in memory.
    """
    problem, scheme = sample.problem, sample.problem.scheme
    withheld = sample.left_out.get(WITHHELD, 0)
    rows = {"left_out_rows": sum(sample.left_out.values()) - withheld, "withheld_rows": withheld}
    notes = [Note(kind, {"rows": count}) for kind, count in rows.items() if count]
    notes += decision_notes(sample, decisions, plan.threshold, selection)
    if plan.pos_label is None and not is_evident_positive(scheme.classes, scheme.positive):
        classes = [canonical(label) for label in scheme.classes]
        notes.append(Note("positive_label", {"classes": classes, "positive": classes[scheme.positive]}))
    notes += _direction_notes(sample) + missing_notes(sample)
    for attribute in scheme.attributes:
        notes += naming_notes(attribute.name, attribute.groups)
    equal = attributes_equal_to_label(problem, sample.rows)
    notes += [Note("groups_are_labels", {"attribute": name}) for name in equal]
    notes += [Note("binned_attribute", {"attribute": name, "levels": count}) for name, count in sample.levels.items()]
    notes += _absent_notes(sample, parts) + small_notes(findings, plan.min_group_size)
    if complete is not None:
        notes.append(Note("binned_counts", {"rows": sample.size(np.arange(len(problem))), "complete": complete}))
    if problem.members is not None:
        notes += _proxy_notes(problem.members, scheme.attributes[0].name)
    elif sample.weighted:
        notes.append(Note("weighted_rows", {"in_memory": complete is None}))
    if sample.weighted:
        notes += _effective_notes(findings) if plan.resamples else []
    notes += _parity_notes(sample)
    if plan.vc_dimension is not None:
        notes.append(training_note(decisions, plan.vc_dimension, plan.confidence, weighted=sample.weighted))
    return notes


def decision_notes(
    sample: AuditSample, decisions: Sequence[Decisions], threshold: Threshold, selection: Selection | None
) -> list[Note]:
    """Notes about the selected rows."""
    notes = constant_notes(sample, decisions)
    if selection is None and threshold == "auto" and None in sample.predicted:
        notes.append(Note("undecided"))
    if selection is not None and selection.between is not None:
        low, high = selection.between
        notes.append(Note("median_bracket", {"low": low, "high": high}))
    return notes


def constant_notes(sample: AuditSample, decisions: Sequence[Decisions]) -> list[Note]:
    """Scores, or decisions at the threshold, that are the same for all rows: gaps of 0 then show nothing."""
    low, high = sample.ends
    if low == high:
        return [Note("constant_scores", {"score": low})]
    if sample.prediction is not None and sample.prediction.ndim > 1 and not np.ptp(sample.prediction, axis=0).any():
        return [Note("constant_probabilities")]
    rates = {rate.selection_rate for table in decisions for rate in table.rates}
    if len(rates) == 1 and rates <= {0.0, 1.0}:
        return [Note("same_decision", {"threshold": decisions[0].threshold, "selected": rates == {1.0}})]
    if rates and min(rates) >= _NEARLY_ALL:
        table = decisions[0]
        names = "threshold", "selected_by", "favorable", "favorable_decision"
        facts = {name: getattr(table, name) for name in names}
        return [Note("nearly_all_selected", {**facts, "share": _NEARLY_ALL, "low": low, "high": high})]
    return []


def _direction_notes(sample: AuditSample) -> list[Note]:
    """The note on a reversed score, for one score and two labels."""
    scores, outcome = sample.predicted.get(None), sample.outcome
    if scores is None or outcome is None or not sample.problem.scheme.classes:
        return []
    positive, negative = (np.flatnonzero(outcome == label) for label in (1, 0))
    sizes = sample.size(positive), sample.size(negative)
    return direction_notes(scores.at(positive), scores.at(negative), sizes, sample.favorable)


def direction_notes(
    positive: NDArray[Any], negative: NDArray[Any], sizes: tuple[int, int], favorable: Favorable = "high"
) -> list[Note]:
    """Scores that are clearly higher for the negative label: the score or the label may be reversed.

    Rows (or weights) of either label are counted at ascending scores; ``sizes`` are numbers of rows. The area under the
    ROC curve follows from these counts; scikit-learn would sort the scores again, which takes a third of the time of an
    audit.

    >>> direction_notes(np.repeat([1, 0], 20), np.repeat([0, 1], 20), (20, 20))
    [Note(kind='reversed_score', facts={'auc': 0.0, 'favorable': 'high'})]
    """
    if min(sizes) == 0:
        return []
    auc = float(positive / positive.sum() @ (np.cumsum(negative) - negative / 2) / negative.sum())
    error = np.sqrt((sum(sizes) + 1) / (12 * sizes[0] * sizes[1]))  # of a score that is independent of the label
    if auc > 0.5 - max(_CLEARLY * error, _SLIGHT):
        return []
    return [Note("reversed_score", {"auc": auc, "favorable": favorable})]


def missing_notes(sample: AuditSample) -> list[Note]:
    """Rows with a missing group, for each attribute; of several attributes, rows without any group."""
    has_group, attributes = sample.problem.groups >= 0, sample.problem.scheme.attributes
    notes, rows = [], sample.size(np.arange(len(has_group)))
    for attribute, column in zip(attributes, has_group.T, strict=True):
        if missing := sample.size(np.flatnonzero(~column)):
            notes.append(Note("missing_groups", {"attribute": attribute.name, "rows": missing, "of": rows}))
    if len(attributes) > 1 and (none := sample.size(np.flatnonzero(~has_group.any(1)))):
        notes.append(Note("missing_all_groups", {"rows": none}))
    return notes


def naming_notes(attribute: str, groups: Sequence[object]) -> list[Note]:
    """Groups with the name of a missing value, and names that differ only by case, spaces or ".0".

    >>> for note in naming_notes("sex", ["Female", "female ", "NA", "male"]):
    ...     print(note.kind, note.facts)
    name_like_missing {'attribute': 'sex', 'group': 'NA'}
    names_alike {'attribute': 'sex', 'groups': ['Female', 'female ']}
    """
    by_spelling: dict[str, list[str]] = {}
    for group in groups:
        if isinstance(group, str):
            by_spelling.setdefault(letters(group).removesuffix(".0"), []).append(group)
    like_missing = [name for word in map(letters, LIKE_MISSING) for name in by_spelling.get(word, ())]
    notes = [Note("name_like_missing", {"attribute": attribute, "group": name}) for name in like_missing]
    same = [names for names in by_spelling.values() if len(names) > 1]
    return notes + [Note("names_alike", {"attribute": attribute, "groups": names}) for names in same]


def _absent_notes(sample: AuditSample, parts: Sequence[Part]) -> list[Note]:
    """Groups without a row in some set."""
    absent: list[tuple[str, ...]] = []
    for part in parts:
        for place, attribute in enumerate(sample.problem.scheme.attributes):
            present = set(members_in(sample.problem, part.units, place).present)
            names = [str(group) for code, group in enumerate(attribute.groups) if code not in present]
            absent += [(name, attribute.name, part.within) for name in names]
    return [Note("absent_groups", {"groups": _distinct(absent)})] if absent else []


def small_notes(findings: Sequence[Finding], min_group_size: int) -> list[Note]:
    """Groups below the minimum group size, dependences without an interval, and intervals with 0 and a large gap."""
    notes = []
    small = _distinct(
        (group, finding.attribute, finding.within, size)
        for finding in findings
        for group, size in zip(finding.groups, finding.sizes, strict=True)
        if size < min_group_size
    )
    if small:
        fewest = FEWEST if any(min(finding.sizes) < FEWEST for finding in findings) else None
        notes.append(Note("small_groups", {"groups": small, "min_group_size": min_group_size, "fewest": fewest}))
    sets = _distinct(
        (finding.attribute, finding.within)
        for finding in findings
        if finding.cuts and finding.metric == "energy" and sum(finding.sizes) < FEWEST_DEPENDENT
    )
    if sets:
        notes.append(Note("few_rows_for_dependence", {"sets": sets, "fewest": FEWEST_DEPENDENT}))
    pairs = [
        (*finding.groups, finding.within)
        for finding in findings
        if finding.joint_interval is not None
        and is_largest_gap(finding.metric)
        and finding.joint_interval.low <= 0
        and finding.joint_interval.high >= _UNDETECTABLE
    ]
    if pairs:
        notes.append(Note("undetectable_gaps", {"pairs": _distinct(pairs), "gap": _UNDETECTABLE}))
    return notes


def _effective_notes(findings: Sequence[Finding]) -> list[Note]:
    """Comparisons of weighted rows without an interval, although there are enough rows."""
    gaps = [finding for finding in findings if is_largest_gap(finding.metric) and finding.value > 0]
    pairs = _distinct((*gap.groups, gap.within) for gap in gaps if gap.interval is None and min(gap.sizes) >= FEWEST)
    return [Note("few_effective_rows", {"pairs": pairs, "fewest": FEWEST})] if pairs else []


def _proxy_notes(members: Memberships, attribute: str) -> list[Note]:
    """Notes on group probabilities: unused labels, and groups with too few known rows for a correction."""
    notes, rows = [Note("group_probabilities", {"attribute": attribute})], members.rows
    if members.labels_unused:
        notes.append(Note("labels_unused", {"attribute": attribute}))
    if rows.known is not None:
        counts = np.bincount(rows.known[rows.known >= 0], minlength=len(rows.groups))
        few = [[group, int(count)] for group, count in zip(rows.groups, counts, strict=True) if count < FEWEST]
        notes += [Note("few_known_rows", {"groups": few, "fewest": FEWEST})] if few else []
    return notes


def _distinct(entries: Iterable[Sequence[str | int]]) -> list[list[str | int]]:
    return [list(entry) for entry in dict.fromkeys(map(tuple, entries))]  # lists, as in JSON


def _parity_notes(sample: AuditSample) -> list[Note]:
    """Groups whose score is uncorrelated with the outcome, while that of others is not (the paper's Example 1).

    Equal distributions then assign scores to such a group at random. The note needs one score and an outcome. A sample
    represents very many rows.
    """
    scores, outcome, problem = sample.predicted.get(None), sample.outcome, sample.problem
    if scores is None or outcome is None or problem.members is not None:
        return []
    score, unit = representative_rows(scores, _SAMPLE_ROWS)
    outcome, notes = outcome[unit], []
    for attribute, code in zip(problem.scheme.attributes, problem.groups[unit].T, strict=True):
        correlations = {}
        order = np.argsort(code, kind="stable")
        starts = np.searchsorted(code[order], np.arange(len(attribute.groups) + 1))
        for place, name in enumerate(attribute.groups):
            members = order[starts[place] : starts[place + 1]]
            if not _is_constant(outcome[members]):  # else no score can be correlated with it
                correlation = 0.0
                if not _is_constant(score[members]):  # numbers may be of any size
                    scaled = (values[members] / np.abs(values[members]).max() for values in (score, outcome))
                    correlation = float(np.corrcoef(*scaled)[0, 1])
                correlations[str(name)] = correlation, 2 / np.sqrt(len(members))
        uninformative = {name: r for name, (r, error) in correlations.items() if abs(r) < error < _INFORMATIVE}
        informative = {name: r for name, (r, error) in correlations.items() if r - error > 0 and r >= _INFORMATIVE}
        if uninformative and informative:
            facts = {"attribute": attribute.name, "uninformative": uninformative, "informative": informative}
            notes.append(Note("uninformative_score", facts))
    return notes


def _is_constant(values: Floats) -> bool:
    """Whether the values differ by no more than rounding errors."""
    return len(values) < 2 or standard_deviation(values) <= 1e-12 * float(np.abs(values).max())


def training_note(decisions: Sequence[Decisions], dimension: int, confidence: float, *, weighted: bool) -> Note:
    """The note on an audit of training rows, with the generalization bounds that they certify."""
    tables = [table for table in decisions if len(table.rates) == 2 and table.accuracy_difference is not None]
    if not tables or weighted:
        return Note("training_rows", {"dimension": dimension})
    first = tables[0]
    sizes = [rate.size for rate in first.rates]
    accuracy = sum(rate.size * (rate.accuracy or 0.0) for rate in first.rates) / sum(sizes)
    bounds = generalization_bounds(
        accuracy, first.selection_difference, samples=(sizes[0], sizes[1]), dimension=dimension, confidence=confidence
    )
    if bounds is None:
        return Note("training_rows_too_few", {"dimension": dimension})
    return Note(
        "training_rows_bounded",
        {
            "dimension": dimension,
            "confidence": confidence,
            "threshold": first.threshold,
            "attribute": first.attribute,
            "accuracy": bounds.accuracy,
            "unfairness": bounds.unfairness,
        },
    )


def release_notes(suppressed: Mapping[str, Sequence[Value]], min_cell: int, score_digits: int | None) -> list[Note]:
    """Notes on the differences between released counts and those of the rows."""
    notes = [
        Note("suppressed_groups", {"column": column, "groups": list(values), "min_cell": min_cell})
        for column, values in suppressed.items()
    ]
    if min_cell > 1:
        notes.append(Note("merged_scores", {"min_cell": min_cell}))
    return notes if score_digits is None else [*notes, Note("rounded_scores", {"digits": score_digits})]


def released_note(note: Note, suppressed: Collection[str]) -> Note:
    """A note of an audit of released counts: they do not distinguish missing groups from ``suppressed`` ones."""
    mixed = note.kind == "missing_groups" and note.facts["attribute"] in suppressed
    return Note("missing_or_suppressed_groups", note.facts) if mixed else note
