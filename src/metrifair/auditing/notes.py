"""The notes of an audit, each with the facts that its sentences in ``wording.notes`` need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.measure.counted_scores import representative_rows
from metrifair.auditing.measure.parts import Part, members_in
from metrifair.auditing.measure.resampling import standard_deviation
from metrifair.auditing.measure.sample import WITHHELD, AuditSample
from metrifair.auditing.measure.selection import Selection
from metrifair.auditing.records import (
    Decisions,
    Favorable,
    Finding,
    GridError,
    Note,
    independent_sizes,
)
from metrifair.auditing.request import Plan, ThresholdChoice
from metrifair.figures.intervals import FEWEST, FEWEST_DEPENDENT
from metrifair.metrics.registry import is_largest_gap
from metrifair.problem.memberships import Memberships
from metrifair.problem.problem import (
    attributes_equal_to_label,
    is_evident_positive,
)
from metrifair.problem.unknown_names import unknown_name_counts
from metrifair.problem.values import Value, canonical, letters
from metrifair.support.arrays import Floats

_NEARLY_ALL = 0.99  # selected
_UNDETECTABLE = 0.2  # a gap this large should be detected
_INFORMATIVE = 0.2  # smallest useful correlation of score and outcome
_CLEARLY = 4.0  # standard deviations below an AUC of one half
_SLIGHT = 0.02  # below one half: of no interest, however many the rows
DECISION_NOTES = frozenset(
    {
        "constant_scores",
        "constant_probabilities",
        "same_decision",
        "nearly_all_selected",
        "undecided",
        "median_bracket",
    }
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
) -> list[Note]:
    """All notes."""
    problem = sample.problem
    scheme = sample.problem.scheme
    notes = _left_out_notes(sample.facts.left_out)
    notes += decision_notes(sample, decisions, plan.threshold, selection)
    if plan.pos_label is None and not is_evident_positive(scheme.classes, scheme.positive):
        classes = [canonical(label) for label in scheme.classes]
        notes.append(
            Note(
                "positive_label",
                {"classes": classes, "positive": classes[scheme.positive]},
            )
        )
    notes += _direction_notes(sample) + missing_notes(sample)
    notes += unknown_name_notes(sample, plan.standard)
    for attribute in scheme.attributes:
        notes += naming_notes(attribute.name, attribute.groups)
    equal = attributes_equal_to_label(problem, sample.units.rows)
    notes += [Note("groups_are_labels", {"attribute": name}) for name in equal]
    notes += [
        Note("binned_attribute", {"attribute": name, "levels": count})
        for name, count in sample.facts.levels.items()
    ]
    notes += _absent_notes(sample, parts) + small_notes(findings, plan.min_group_size)
    if sample.scores.binned is not None:
        facts = {
            "rows": sample.units.size(sample.units.counted_by(0)),
            "errors": _widest_errors(findings),
        }
        notes.append(Note("binned_counts", facts))
    if problem.members is not None:
        notes += _proxy_notes(problem.members, scheme.attributes[0].name)
    elif sample.units.weighted:
        notes.append(Note("weighted_rows", {"in_memory": sample.scores.binned is None}))
    notes += cluster_notes(sample)
    if sample.units.weighted and plan.resamples:
        notes += _effective_notes(findings)
    notes += _parity_notes(sample)
    return notes


def _left_out_notes(left_out: Mapping[str, int]) -> list[Note]:
    """The number of rows that lack a value, by reason, and of rows that were withheld."""
    reasons = {why: rows for why, rows in left_out.items() if rows and why != WITHHELD}
    notes = []
    if reasons:
        notes.append(Note("left_out_rows", {"rows": sum(reasons.values()), "reasons": reasons}))
    if withheld := left_out.get(WITHHELD, 0):
        notes.append(Note("withheld_rows", {"rows": withheld}))
    return notes


def _widest_errors(findings: Sequence[Finding]) -> dict[str, float]:
    """By metric, the largest distance of a value from an end of its bracket."""
    errors: dict[str, float] = {}
    for finding in findings:
        if finding.bracket is not None:
            error = max(
                finding.bracket.high - finding.value,
                finding.value - finding.bracket.low,
            )
            errors[finding.metric] = max(error, errors.get(finding.metric, 0.0))
    return errors


def decision_notes(
    sample: AuditSample,
    decisions: Sequence[Decisions],
    threshold: ThresholdChoice,
    selection: Selection | None,
) -> list[Note]:
    """Notes about the selected rows."""
    notes = constant_notes(sample, decisions)
    if selection is None and threshold == "auto" and None in sample.scores.by_class:
        notes.append(Note("undecided"))
    if selection is not None and selection.between is not None:
        low, high = selection.between
        notes.append(Note("median_bracket", {"low": low, "high": high}))
    return notes


def constant_notes(sample: AuditSample, decisions: Sequence[Decisions]) -> list[Note]:
    """Scores, or decisions at the threshold, that are the same for all rows: gaps of 0 then
    show nothing.
    """
    low, high = sample.scores.ends
    if low == high:
        return [Note("constant_scores", {"score": low})]
    if (
        sample.scores.prediction is not None
        and sample.scores.prediction.ndim > 1
        and not np.ptp(sample.scores.prediction, axis=0).any()
    ):
        return [Note("constant_probabilities")]
    rates = {rate.selection_rate for table in decisions for rate in table.rates}
    if len(rates) == 1 and rates <= {0.0, 1.0}:
        return [
            Note(
                "same_decision",
                {
                    "threshold": decisions[0].threshold,
                    "selected": rates == {1.0},
                },
            )
        ]
    if rates and min(rates) >= _NEARLY_ALL:
        table = decisions[0]
        names = "threshold", "selected_by", "favorable", "favorable_decision"
        facts = {name: getattr(table, name) for name in names}
        return [
            Note(
                "nearly_all_selected",
                {**facts, "share": _NEARLY_ALL, "low": low, "high": high},
            )
        ]
    return []


def cluster_notes(sample: AuditSample) -> list[Note]:
    """The note on rows in clusters; without clusters, on columns of ids that repeat."""
    if sample.facts.clusters is None:
        return [
            Note(
                "repeated_ids",
                {"column": column, "values": values, "rows": rows},
            )
            for column, (rows, values) in sample.facts.repeated_ids.items()
        ]
    rows = sample.units.size(np.arange(len(sample.problem)))
    facts: dict[str, Any] = {
        "column": sample.facts.clusters.column,
        "rows": rows,
    }
    if sample.problem.clusters is None:
        return [Note("single_clusters", facts)]
    return [Note("clustered_rows", {**facts, "clusters": sample.facts.clusters.count})]


def _direction_notes(sample: AuditSample) -> list[Note]:
    """The note on a reversed score, for one score and two labels."""
    scores = sample.scores.by_class.get(None)
    outcome = sample.outcome
    if scores is None or outcome is None or not sample.problem.scheme.classes:
        return []
    once = sample.units.counted_by(0)
    positive, negative = (once[outcome[once] == label] for label in (1, 0))
    sizes = sample.independent(positive), sample.independent(negative)
    return direction_notes(scores.at(positive), scores.at(negative), sizes, sample.scores.favorable)


def direction_notes(
    positive: NDArray[Any],
    negative: NDArray[Any],
    sizes: tuple[int, int],
    favorable: Favorable = "high",
) -> list[Note]:
    """Scores that are clearly higher for the negative label: the score or the label may be
    reversed.

    Rows (or weights) of either label are counted at ascending scores; ``sizes`` are numbers of
    rows, or of clusters. The area under the ROC curve follows from these counts; scikit-learn would
    sort the scores again, which takes a third of the time of an audit.

    >>> direction_notes(np.repeat([1, 0], 20), np.repeat([0, 1], 20), (20, 20))
    [Note(kind='reversed_score', facts={'auc': 0.0, 'favorable': 'high'})]
    """
    if min(sizes) == 0:
        return []
    auc = float(positive / positive.sum() @ (np.cumsum(negative) - negative / 2) / negative.sum())
    # of a score that is independent of the label
    error = np.sqrt((sum(sizes) + 1) / (12 * sizes[0] * sizes[1]))
    if auc > 0.5 - max(_CLEARLY * error, _SLIGHT):
        return []
    return [Note("reversed_score", {"auc": auc, "favorable": favorable})]


def missing_notes(sample: AuditSample) -> list[Note]:
    """Rows with a missing group, for each attribute; of several attributes, rows without any
    group.
    """
    has_group = sample.problem.groups >= 0
    attributes = sample.problem.scheme.attributes
    notes = []
    rows = sample.units.size(sample.units.counted_by(0))
    for place, attribute in enumerate(attributes):
        units = sample.units.counted_by(place)
        if missing := sample.units.size(units[~has_group[units, place]]):
            notes.append(
                Note(
                    "missing_groups",
                    {"attribute": attribute.name, "rows": missing, "of": rows},
                )
            )
    if (
        sample.units.table is None
        and len(attributes) > 1
        and (none := sample.units.size(np.flatnonzero(~has_group.any(1))))
    ):
        notes.append(Note("missing_all_groups", {"rows": none}))
    return notes


def naming_notes(attribute: str, groups: Sequence[object]) -> list[Note]:
    """Names of groups that differ only by case, spaces or ".0".

    >>> for note in naming_notes("sex", ["Female", "female ", "male"]):
    ...     print(note.kind, note.facts)
    names_alike {'attribute': 'sex', 'groups': ['Female', 'female ']}
    """
    by_spelling: dict[str, list[str]] = {}
    for group in groups:
        if isinstance(group, str):
            by_spelling.setdefault(letters(group).removesuffix(".0"), []).append(group)
    same = [names for names in by_spelling.values() if len(names) > 1]
    return [Note("names_alike", {"attribute": attribute, "groups": names}) for names in same]


def unknown_name_notes(sample: AuditSample, standard: str | None) -> list[Note]:
    """Groups whose name says that they are not known, with their rows; by probabilities, their
    expected number.
    """
    names = unknown_name_counts(sample.problem, sample.units.rows, sample.known_names)
    return [noted_for(Note("unknown_name", name._asdict()), standard) for name in names]


def noted_for(note: Note, standard: str | None) -> Note:
    """The same note of an audit with the tables of this standard, which count groups of unknown
    name separately.
    """
    if note.kind != "unknown_name":
        return note
    return Note(note.kind, {**note.facts, "in_tables": not standard})


def _absent_notes(sample: AuditSample, parts: Sequence[Part]) -> list[Note]:
    """Groups without a row in some set."""
    absent: list[tuple[str, ...]] = []
    for part in parts:
        for place, attribute in enumerate(sample.problem.scheme.attributes):
            present = set(members_in(sample.problem, part.units, place).present)
            names = [
                str(group) for code, group in enumerate(attribute.groups) if code not in present
            ]
            absent += [(name, attribute.name, part.within) for name in names]
    if absent:
        return [Note("absent_groups", {"groups": _distinct(absent)})]
    return []


def small_notes(findings: Sequence[Finding], min_group_size: int) -> list[Note]:
    """Groups below the minimum group size, dependences without an interval, and intervals with
    0 and a large gap.
    """
    notes = []
    small = _distinct(
        (group, finding.attribute, finding.within, size)
        for finding in findings
        for group, size in zip(finding.groups, independent_sizes(finding), strict=True)
        if size < min_group_size
    )
    clustered = any(finding.clusters is not None for finding in findings)
    if small:
        fewest = None
        if any(min(independent_sizes(finding)) < FEWEST for finding in findings):
            fewest = FEWEST
        facts = {
            "groups": small,
            "min_group_size": min_group_size,
            "fewest": fewest,
            "clustered": clustered,
        }
        notes.append(Note("small_groups", facts))
    sets = _distinct(
        (finding.attribute, finding.within)
        for finding in findings
        if finding.cuts
        and finding.metric == "energy"
        and sum(independent_sizes(finding)) < FEWEST_DEPENDENT
    )
    if sets:
        facts = {
            "sets": sets,
            "fewest": FEWEST_DEPENDENT,
            "clustered": clustered,
        }
        notes.append(Note("few_rows_for_dependence", facts))
    pairs = [
        (*finding.groups, finding.within)
        for finding in findings
        if finding.joint_interval is not None
        and is_largest_gap(finding.metric)
        and finding.joint_interval.low <= 0
        and finding.joint_interval.high >= _UNDETECTABLE
    ]
    if pairs:
        notes.append(
            Note(
                "undetectable_gaps",
                {"pairs": _distinct(pairs), "gap": _UNDETECTABLE},
            )
        )
    return notes


def _effective_notes(findings: Sequence[Finding]) -> list[Note]:
    """Comparisons of weighted rows without an interval, although there are enough rows."""
    gaps = [finding for finding in findings if is_largest_gap(finding.metric) and finding.value > 0]
    pairs = _distinct(
        (*gap.groups, gap.within)
        for gap in gaps
        if gap.interval is None and min(gap.sizes) >= FEWEST
    )
    if pairs:
        return [Note("few_effective_rows", {"pairs": pairs, "fewest": FEWEST})]
    return []


def _proxy_notes(members: Memberships, attribute: str) -> list[Note]:
    """Notes on group probabilities: unused labels, and groups with too few known rows for a
    correction.
    """
    notes = [Note("group_probabilities", {"attribute": attribute})]
    rows = members.rows
    if members.labels_unused:
        notes.append(Note("labels_unused", {"attribute": attribute}))
    if rows.known is not None:
        counts = np.bincount(rows.known[rows.known >= 0], minlength=len(rows.groups))
        few = [
            [group, int(count)]
            for group, count in zip(rows.groups, counts, strict=True)
            if count < FEWEST
        ]
        if few:
            notes.append(Note("few_known_rows", {"groups": few, "fewest": FEWEST}))
    return notes


def _distinct(entries: Iterable[Sequence[str | int]]) -> list[list[str | int]]:
    return [list(entry) for entry in dict.fromkeys(map(tuple, entries))]  # lists, as in JSON


def _parity_notes(sample: AuditSample) -> list[Note]:
    """Groups whose score is uncorrelated with the outcome, while that of others is not (the paper's
    Example 1).

    Equal distributions then assign scores to such a group at random. The note needs one score and
    an outcome. A sample represents very many rows.
    """
    scores = sample.scores.by_class.get(None)
    outcome = sample.outcome
    problem = sample.problem
    if scores is None or outcome is None or problem.members is not None:
        return []
    score, unit = representative_rows(scores, _SAMPLE_ROWS)
    outcome = outcome[unit]
    notes = []
    for attribute, code in zip(problem.scheme.attributes, problem.groups[unit].T, strict=True):
        correlations = {}
        order = np.argsort(code, kind="stable")
        starts = np.searchsorted(code[order], np.arange(len(attribute.groups) + 1))
        for place, name in enumerate(attribute.groups):
            members = order[starts[place] : starts[place + 1]]
            if not _is_constant(outcome[members]):  # else no score can be correlated with it
                correlation = 0.0
                if not _is_constant(score[members]):  # numbers may be of any size
                    scaled = (
                        values[members] / np.abs(values[members]).max()
                        for values in (score, outcome)
                    )
                    correlation = float(np.corrcoef(*scaled)[0, 1])
                size = len(members)
                if sample.scores.binned is None:
                    size = sample.independent(members)
                correlations[str(name)] = correlation, 2 / np.sqrt(size)
        uninformative = {
            name: r for name, (r, error) in correlations.items() if abs(r) < error < _INFORMATIVE
        }
        informative = {
            name: r
            for name, (r, error) in correlations.items()
            if r - error > 0 and r >= _INFORMATIVE
        }
        if uninformative and informative:
            facts = {
                "attribute": attribute.name,
                "uninformative": uninformative,
                "informative": informative,
            }
            notes.append(Note("uninformative_score", facts))
    return notes


def _is_constant(values: Floats) -> bool:
    """Whether the values differ by no more than rounding errors."""
    return len(values) < 2 or standard_deviation(values) <= 1e-12 * float(np.abs(values).max())


def release_notes(
    suppressed: Mapping[str, Sequence[Value]],
    min_cell: int,
    score_digits: int | None,
    error: GridError | None = None,
    *,
    without_search: bool = False,
) -> list[Note]:
    """Notes on the differences between released counts and those of the rows."""
    notes = [
        Note(
            "suppressed_groups",
            {"column": column, "groups": list(values), "min_cell": min_cell},
        )
        for column, values in suppressed.items()
    ]
    if min_cell > 1:
        notes.append(Note("merged_scores", {"min_cell": min_cell}))
    if without_search:
        notes.append(Note("withheld_search", {"min_cell": min_cell}))
    if error is not None:
        groups = error.unresolved.items()
        notes += [
            Note("unresolved_groups", {"column": column, "groups": list(values)})
            for column, values in groups
        ]
        for kind, by_column in (
            ("rates_on_grid", error.rates),
            ("distances_on_grid", error.distances),
        ):
            notes += [
                Note(
                    kind,
                    {
                        "column": column,
                        "errors": list(map(list, errors.items())),
                    },
                )
                for column, errors in by_column.items()
            ]
    if score_digits is None:
        return notes
    return [
        *notes,
        Note(
            "rounded_scores" if error is None else "rounded_grid",
            {"digits": score_digits},
        ),
    ]


def released_note(note: Note, suppressed: Collection[str]) -> Note:
    """A note of an audit of released counts: they do not distinguish missing groups from
    ``suppressed`` ones.
    """
    mixed = note.kind == "missing_groups" and note.facts["attribute"] in suppressed
    if mixed:
        return Note("missing_or_suppressed_groups", note.facts)
    return note
