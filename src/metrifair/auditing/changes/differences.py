"""Compare audits: each figure of an audit with the same figure of the first, matched by values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import NamedTuple, TypeAlias

from metrifair.auditing.audit_record import AuditWithRows
from metrifair.auditing.changes.paired import correlations, in_memory
from metrifair.auditing.measure.r2_correction import r2_of_audits
from metrifair.auditing.ranking import compares_few
from metrifair.auditing.records import (
    BY_GROUP,
    DECISIONS,
    AuditRecord,
    ComparedFigure,
    Conditions,
    Decisions,
    Difference,
    DifferenceRecord,
    Finding,
    Names,
    Pairing,
    Verdict,
)
from metrifair.errors import DataError
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import HIGHEST
from metrifair.metrics.registry import METRICS, facts
from metrifair.problem.criteria import CRITERIA
from metrifair.problem.unknown_names import are_unknown
from metrifair.problem.values import Value
from metrifair.support.checks import check_switches
from metrifair.support.provenance import Provenance, distinct_files
from metrifair.support.special import normal_cdf, normal_quantile

# whether more is better
_BY_GROUP = {
    "auc": True,
    "accuracy": True,
    "log_loss": False,
    "calibration_error": False,
}
_WORST_CUT = "worst_cut"

Key: TypeAlias = tuple[str, str, Conditions, frozenset[Value], str]
"""The identity of a figure in all audits: attribute, criterion, conditions, group values and
metric.
"""


def compared_figures(record: AuditRecord) -> dict[Key, ComparedFigure]:
    """The figures of an audit that others may have as well. Distances have no direction.

    Figures of groups below the minimum group size, or of unknown name, have no interval: they are
    not tested.
    """
    figures = {}
    for finding in record.findings:
        figure = _distance(finding)
        figures[_key(figure, worst=finding.cuts > 0)] = figure
    others = (*map(_ratio, record.decisions), *_figures_of_groups(record))
    return figures | {_key(figure): figure for figure in others if figure is not None}


def _distance(finding: Finding) -> ComparedFigure:
    return ComparedFigure(
        finding.attribute,
        finding.criterion,
        finding.within,
        finding.groups,
        finding.metric,
        finding.value,
        finding.interval if finding.assessed else None,
        group_values=finding.group_values,
        conditions=finding.conditions,
        sizes=finding.sizes,
        unknown_name=finding.unknown_name,
        clusters=finding.clusters,
    )


def _ratio(table: Decisions) -> ComparedFigure | None:
    """The smallest impact ratio of a table; None if it has none."""
    if table.selection_ratio is None:
        return None
    return ComparedFigure(
        table.attribute,
        DECISIONS,
        table.within,
        (),
        "selection_ratio",
        table.selection_ratio,
        None if compares_few(table) else table.selection_ratio_interval,
        larger_is_better=True,
        conditions=table.conditions,
    )


def _figures_of_groups(record: AuditRecord) -> Iterator[ComparedFigure]:
    """The predictive figures of each group."""
    settings = record.settings
    for table in record.by_group:
        for group in table.groups:
            is_unknown = are_unknown([group.group_value], settings.known_names)[0]
            tested = group.independent_size >= settings.min_group_size and not is_unknown
            for metric, larger_is_better in _BY_GROUP.items():
                measure = getattr(group, metric)
                if measure is None:
                    continue
                yield ComparedFigure(
                    table.attribute,
                    BY_GROUP,
                    table.within,
                    (group.group,),
                    metric,
                    measure.value,
                    measure.interval if tested else None,
                    larger_is_better=larger_is_better,
                    group_values=(group.group_value,),
                    conditions=table.conditions,
                )


def _key(figure: ComparedFigure, *, worst: bool = False) -> Key:
    """The identity of a figure; with ``worst``, each audit selects the worst of all cuts."""
    groups = frozenset(figure.group_values)
    if worst:
        groups = frozenset([_WORST_CUT])
    return (
        figure.attribute,
        figure.criterion,
        figure.conditions,
        groups,
        figure.metric,
    )


def _has_same_groups(attribute: str, first: AuditRecord, second: AuditRecord) -> bool:
    """Whether both audits have the same groups of an attribute with enough rows; one of them may
    lack some.

    Otherwise, figures of all groups do not compare. Bands of numbers may differ: 45 and 25 may cut
    the same ages.
    """
    findings_by_audit = [
        [
            finding
            for finding in record.findings
            if finding.attribute == attribute and finding.assessed
        ]
        for record in (first, second)
    ]
    is_number = [any(finding.cuts for finding in findings) for findings in findings_by_audit]
    old, new = (
        {value for finding in findings for value in finding.group_values}
        for findings in findings_by_audit
    )
    return all(is_number) or (not any(is_number) and (old <= new or new <= old))


def check_settings(audits: Mapping[str, AuditRecord], keys: Collection[Key]) -> None:
    """Raise a DataError if two audits differ in a setting that changes a figure which both have.

    ``standard`` and ``contrast`` add and remove figures; they change none that two audits have in
    common.
    """
    first, second = audits.values()
    for setting, values in _settings(first, second, keys).items():
        if values[0] != values[1]:
            texts = [f"{value!r} in {name}" for value, name in zip(values, audits, strict=True)]
            raise DataError(
                f"is {texts[0]} and {texts[1]}, so that the figures of these audits do not compare",
                argument=setting,
                remedy="audit both with the same value",
            )


def _settings(
    first: AuditRecord, second: AuditRecord, keys: Collection[Key]
) -> dict[str, tuple[object, object]]:
    """The settings of both audits that change one of these figures, in the order in which they
    are checked.
    """
    old = first.settings
    new = second.settings
    settings: dict[str, tuple[object, object]] = {
        "confidence": (first.confidence, second.confidence)
    }
    # A distance between predictions does not depend on the label they predict.
    if any(key[1] not in CRITERIA or CRITERIA[key[1]].score != "prediction" for key in keys):
        settings["favorable"] = old.favorable, new.favorable
        pairs = {
            name: (getattr(old, name), getattr(new, name))
            for name in ("favorable_decision", "pos_label")
        }
        settings |= {name: values for name, values in pairs.items() if None not in values}
    if any(key[1] in CRITERIA and CRITERIA[key[1]].score == "loss" for key in keys):
        settings["loss"] = old.loss, new.loss
    if any(key[-1] in ("selection_ratio", "accuracy") for key in keys) and not _select_same_rows(
        first, second
    ):
        settings["threshold"] = _threshold(first), _threshold(second)
    for attribute in {key[0]: None for key in keys if key[-1] == "selection_ratio"}:
        settings["min_group_share"] = old.min_group_share, new.min_group_share
        settings["known_names"] = (
            sorted(old.known_names),
            sorted(new.known_names),
        )
        references = (
            old.reference.get(attribute, HIGHEST),
            new.reference.get(attribute, HIGHEST),
        )
        if references[0] != references[1]:
            settings["reference"] = references
    cut = {
        finding.attribute
        for record in (first, second)
        for finding in record.findings
        if finding.cuts
    }
    if any(key[0] in cut for key in keys):  # which cuts and bands of a numeric attribute there are
        settings["min_group_size"] = old.min_group_size, new.min_group_size
    return settings


def check_clusters(audits: Mapping[str, AuditRecord], clusters: str | None = None) -> None:
    """Raise a DataError unless all audits have clusters or none has; ``clusters`` is the name
    they must have.
    """
    names = {
        name: None if record.clusters is None else record.clusters.column
        for name, record in audits.items()
    }
    without = [name for name, column in names.items() if column is None]
    if clusters is None:
        if 0 < len(without) < len(names):
            known = next(name for name, column in names.items() if column is not None)
            raise DataError(
                f"{known} has clusters of rows, and {without[0]} treats rows as independent",
                remedy="audit the rows of both with clusters",
            )
        return
    if not isinstance(clusters, str):
        raise DataError(
            "must be the name of a column",
            argument="clusters",
            received=clusters,
        )
    if without:
        raise DataError(
            f"does not apply to {without[0]}, which treats rows as independent; counts contain no "
            "clusters",
            argument="clusters",
            received=clusters,
            remedy="audit the rows with clusters",
        )
    for name, column in names.items():
        if column != clusters:
            raise DataError(
                f"must be {column!r}, as in {name}",
                argument="clusters",
                received=clusters,
            )


def _threshold(record: AuditRecord) -> float | str | None:
    """The threshold that was used, whether it was passed or is a default."""
    if record.settings.selected_by == "median" or not record.decisions:
        return record.settings.selected_by
    return record.decisions[0].threshold


def _select_same_rows(first: AuditRecord, second: AuditRecord) -> bool:
    """Whether both audits would select the same rows, given the same scores."""
    passed = [(record.settings.threshold, record.settings.standard) for record in (first, second)]
    used = [_threshold(first), _threshold(second)]
    if passed[0] == passed[1] or used[0] == used[1]:
        return True
    # Any threshold from 0 to 1 selects the decisions 1.
    decided = "decisions" in (
        first.settings.selected_by,
        second.settings.selected_by,
    )
    return decided and all(
        not isinstance(threshold, str | None) and 0 < threshold <= 1 for threshold in used
    )


def compare_audits(
    audits: Mapping[str, AuditWithRows],
    *,
    paired: bool | None = None,
    same_rows: bool = False,
    clusters: str | None = None,
    origin: Provenance | None = None,
) -> DifferenceRecord:
    """Compare each audit with the first.

    ``same_rows``: one call made all audits, of the same rows, and ``origin`` is theirs.
    ``clusters`` is the name of the clusters that all audits must have.
    """
    if paired is not None:
        check_switches(paired=paired)
    check_clusters({name: audit.record for name, audit in audits.items()}, clusters)
    (baseline, first), *others = audits.items()
    confidence = first.record.confidence
    figures = compared_figures(first.record)
    matched: list[tuple[str, ComparedFigure, ComparedFigure, float | None]] = []
    unmatched = 0
    pairings = set[Pairing]()
    for name, audit in others:
        other_figures = compared_figures(audit.record)
        matches = {
            key: (figure, other_figures[key])
            for key, figure in figures.items()
            if key in other_figures
            and (figure.groups or _has_same_groups(key[0], first.record, audit.record))
        }
        check_settings({baseline: first.record, name: audit.record}, matches)
        unmatched += len(figures) + len(other_figures) - 2 * len(matches)
        pairing, common = _pairing(
            first,
            audit,
            list(matches.values()),
            paired=paired,
            same_rows=same_rows,
        )
        pairings.add(pairing)
        for before, after in matches.values():
            correlation = 0.0 if pairing == "independent" else common.get(before.names)
            matched.append((name, before, after, correlation))
    if not matched:
        raise DataError(
            f"{baseline} and {', '.join(name for name, _ in others)} have no finding in common",
            remedy="audit the same groups, criteria and metrics in both",
        )
    sources = [audit.record.provenance for audit in audits.values()]
    return DifferenceRecord(
        tuple(audits),
        [audit.record.rows for audit in audits.values()],
        pairings.pop() if len(pairings) == 1 else "unknown",
        confidence,
        _differences(matched, confidence),
        unmatched,
        r2=r2_of_audits([audit.record for audit in audits.values()]),
        can_pair=paired is None
        and in_memory(first)
        and any(in_memory(audit) for _, audit in others),
        provenance=sources,
        origin=replace(origin or sources[0], files=distinct_files(sources)),
    )


def _differences(
    matched: Sequence[tuple[str, ComparedFigure, ComparedFigure, float | None]],
    confidence: float,
) -> list[Difference]:
    """The differences, each with a simultaneous interval."""
    tested = max(
        1,
        sum(None not in (before.interval, after.interval) for _, before, after, _ in matched),
    )
    differences = []
    for name, before, after, correlation in matched:
        result = change(before, after, correlation, confidence, (1 - confidence) / tested)
        difference = Difference(
            name,
            *after.names,
            before.value,
            after.value,
            result.difference,
            result.interval,
            result.joint_interval,
            result.p_value,
            None if result.p_value is None else min(1.0, tested * result.p_value),
            result.verdict,
            group_values=after.group_values,
            conditions=after.conditions,
        )
        differences.append(difference)
    return differences


def _pairing(
    first: AuditWithRows,
    other: AuditWithRows,
    figures: Sequence[tuple[ComparedFigure, ComparedFigure]],
    *,
    paired: bool | None,
    same_rows: bool,
) -> tuple[Pairing, Mapping[Names, float]]:
    """The relation of the rows of two audits, and the correlations of their figures if the rows
    are paired.
    """
    origins = [None if audit.rows is None else audit.rows.origin for audit in (first, other)]
    same_call = (
        same_rows
        or first.record is other.record
        or (origins[0] is not None and origins[0] is origins[1])
    )
    if paired or (paired is None and same_call):
        by_figure = correlations(first, other, figures)
        if by_figure is not None:
            return "rows", by_figure
        if paired:
            raise DataError(
                "paired=True needs the rows of both audits, the same ones in the same order",
                remedy="audit both in memory, such as audit(y_true, {'a': scores, 'b': others}, "
                "...)",
            )
    hashes = [{file.sha256 for file in audit.record.provenance.files} for audit in (first, other)]
    same_file = paired is None and hashes[0] == hashes[1] != set()
    if same_rows or same_file:
        return "unknown", {}
    # One cluster, such as a person, may have rows in both audits.
    may_share = paired is None and all(
        audit.record.clusters is not None for audit in (first, other)
    )
    return "clusters" if may_share else "independent", {}


_SIMILAR = 0.9  # a correlation of errors
# Share of the bias of a maximum, by which its interval exceeds its error: 0.24 to 0.26 in four
# simulated settings.
_SLACK = 0.24


class FigureChange(NamedTuple):
    """The difference between two figures; without intervals there is no test."""

    difference: float
    interval: Interval | None = None
    p_value: float | None = None
    joint_interval: Interval | None = None
    verdict: Verdict = "not_tested"  # by whether the joint interval excludes 0


def change(
    before: ComparedFigure,
    after: ComparedFigure,
    correlation: float | None,
    confidence: float,
    joint_level: float | None = None,
) -> FigureChange:
    """The difference of two figures; ``correlation`` is that of their errors, None: any.

    ``joint_level`` is the error probability of the joint interval, by which the verdict is made; by
    default that of the interval.

    Errors below and above differ, so those of the difference combine separately (Zou and Donner's
    MOVER). Where an interval begins at 0, the value of the sample may be noise alone, on one side
    only, and errors are added linearly.
    """
    difference = after.value - before.value
    if before.interval is None or after.interval is None:
        return FigureChange(difference)
    # 1 less the figure is one of which less is better
    sign = -1.0 if before.larger_is_better else 1.0
    old = _centered(before)
    new = _centered(after)
    near_zero = old.near_zero or new.near_zero
    shared = -1.0 if correlation is None else correlation
    if near_zero:
        shared = min(0.0, shared)
    if shared > _SIMILAR:
        # Errors so similar cancel, with their bias and skewness; the centers of two bootstrap
        # intervals differ by noise.
        halves = [(estimate.below + estimate.above) / 2 for estimate in (old, new)]
        values = sign * before.value, sign * after.value
        old, new = (
            _Centered(value, half, half, False) for value, half in zip(values, halves, strict=True)
        )
    z = normal_quantile((1 + confidence) / 2)
    below = _combined(new.below, old.above, -1.0 if new.near_zero else shared)
    above = _combined(new.above, old.below, -1.0 if old.near_zero else shared)
    center = new.value - old.value
    half = below if center > 0 else above
    p_value = 0.0
    if half != 0:
        p_value = float(2 * normal_cdf(-z * abs(center) / half))
    if center * sign * difference <= 0:  # the center and the difference disagree on the direction
        p_value = 1.0

    def interval(wider: float) -> Interval:
        ends = sorted((sign * (center - wider * below), sign * (center + wider * above)))
        # a zero has no sign
        return Interval(min(ends[0], difference) + 0.0, max(ends[1], difference) + 0.0)

    joint = interval(1.0 if joint_level is None else float(-normal_quantile(joint_level / 2) / z))
    return FigureChange(
        difference,
        interval(1.0),
        p_value,
        joint,
        _verdict(joint, sign * difference),
    )


def _verdict(joint: Interval, increase: float) -> Verdict:
    """The verdict on a figure of which less is better, by its joint interval."""
    if joint.low <= 0 <= joint.high:
        return "not_distinguishable"
    return "worse" if increase > 0 else "better"


class _Centered(NamedTuple):
    """The best estimate of a figure whose smaller values are better, and its errors below and
    above.
    """

    value: float
    below: float
    above: float
    near_zero: bool


def _centered(figure: ComparedFigure) -> _Centered:
    """The center of an interval, which is less biased than the value of the sample; for
    squares, of their roots.
    """
    if figure.interval is None:
        raise DataError(f"the {figure.metric} has no interval")
    value = figure.value
    low = figure.interval.low
    high = figure.interval.high
    if figure.larger_is_better:
        value = 1 - value
        low, high = 1 - high, 1 - low
    if low <= 0 or figure.metric not in METRICS:
        return _Centered(value, value - low, high - value, low <= 0)
    squared = facts(figure.metric).squared
    center = ((sqrt(low) + sqrt(high)) / 2) ** 2 if squared else (low + high) / 2
    half = (high - low) / 2
    # the size of its bias is not known, and cancels in a difference
    if facts(figure.metric).is_maximum:
        half -= _SLACK * max(0.0, value - center)
    return _Centered(center, half, half, False)


def _combined(first: float, second: float, correlation: float) -> float:
    return sqrt(max(0.0, first**2 + second**2 - 2 * correlation * first * second))
