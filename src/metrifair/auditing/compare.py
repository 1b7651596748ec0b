"""Compare audits: each figure of an audit with the same figure of the first, matched by values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from metrifair.auditing.differences import BY_GROUP, DECISIONS, ComparedFigure, Names, change
from metrifair.auditing.paired import correlations, in_memory
from metrifair.auditing.ranking import compares_few
from metrifair.auditing.records import AuditRecord, Conditions, Difference, DifferenceRecord, Pairing
from metrifair.auditing.source import AuditWithRows
from metrifair.errors import DataError
from metrifair.figures.selection_rates import HIGHEST
from metrifair.problem.criteria import CRITERIA
from metrifair.problem.values import Value
from metrifair.support.checks import check_switches
from metrifair.support.provenance import Provenance, files_of

_BY_GROUP = {"auc": True, "accuracy": True, "log_loss": False, "calibration_error": False}  # whether more is better
_WORST_CUT, _WORST_GROUP = "worst_cut", "worst_group"

Key: TypeAlias = tuple[str, str, Conditions, frozenset[Value], str]
"""What identifies a figure in all audits: attribute, criterion, conditions, group values and metric."""


def compared_figures(record: AuditRecord) -> dict[Key, ComparedFigure]:
    """The figures of an audit that others may have as well. Distances have no direction.

    Figures of groups below the minimum group size have no interval, so that they are not tested.
    """
    figures: dict[Key, ComparedFigure] = {}
    for one in record.findings:
        names: Names = one.attribute, one.criterion, one.within, one.groups, one.metric
        compared = one.group_values, one.conditions, one.sizes
        figure = ComparedFigure(*names, one.value, one.interval if one.enough else None, False, *compared)
        figures[_key(figure, worst=one.cuts > 0)] = figure
    for table in record.decisions:
        if table.selection_ratio is not None:
            names = table.attribute, DECISIONS, table.within, (), "selection_ratio"
            measured = table.selection_ratio, None if compares_few(table) else table.selection_ratio_interval
            figure = ComparedFigure(*names, *measured, larger_is_better=True, conditions=table.conditions)
            figures[_key(figure)] = figure
    for by_group in record.by_group:
        for group in by_group.groups:
            values = (group.group_value,), by_group.conditions
            for metric, more_is_better in _BY_GROUP.items():
                measure = getattr(group, metric)
                if measure is not None:
                    names = by_group.attribute, BY_GROUP, by_group.within, (group.group,), metric
                    interval = measure.interval if group.size >= record.settings.min_group_size else None
                    figure = ComparedFigure(*names, measure.value, interval, more_is_better, *values)
                    figures[_key(figure)] = figure
    return figures


def _key(figure: ComparedFigure, *, worst: bool = False) -> Key:
    """``worst``: each audit picks its own groups, the worst of all cuts of a number or of all groups."""
    groups = frozenset(figure.group_values)
    if worst:
        groups = frozenset([_WORST_CUT if groups == {None} else _WORST_GROUP])
    return figure.attribute, figure.criterion, figure.conditions, groups, figure.metric


def check_settings(audits: Mapping[str, AuditRecord], keys: Collection[Key]) -> None:
    """Raise a DataError where two audits differ in a setting that changes a figure which both have.

    ``standard`` and ``contrast`` change which figures there are, and none that two audits have in common.
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


def _settings(first: AuditRecord, second: AuditRecord, keys: Collection[Key]) -> dict[str, tuple[object, object]]:
    """The settings of both audits that change one of these figures, in the order in which they are checked."""
    mine, theirs = first.settings, second.settings
    found: dict[str, tuple[object, object]] = {"confidence": (first.confidence, second.confidence)}
    # A distance between predictions is the same whatever label they predict.
    if any(key[1] not in CRITERIA or CRITERIA[key[1]].score != "prediction" for key in keys):
        found["favorable"] = mine.favorable, theirs.favorable
        both = {name: (getattr(mine, name), getattr(theirs, name)) for name in ("favorable_decision", "pos_label")}
        found |= {name: values for name, values in both.items() if None not in values}
    if any(key[1] in CRITERIA and CRITERIA[key[1]].score == "loss" for key in keys):
        found["loss"] = mine.loss, theirs.loss
    if any(key[-1] in ("selection_ratio", "accuracy") for key in keys) and not _select_alike(first, second):
        found["threshold"] = _threshold(first), _threshold(second)
    for attribute in {key[0]: None for key in keys if key[-1] == "selection_ratio"}:
        found["min_group_share"] = mine.min_group_share, theirs.min_group_share
        references = mine.reference.get(attribute, HIGHEST), theirs.reference.get(attribute, HIGHEST)
        if references[0] != references[1]:
            found["reference"] = references
    cut = {one.attribute for record in (first, second) for one in record.findings if one.cuts}
    if any(key[0] in cut for key in keys):  # which cuts and bands of a numeric attribute there are
        found["min_group_size"] = mine.min_group_size, theirs.min_group_size
    return found


def _threshold(record: AuditRecord) -> float | str | None:
    """The threshold that was used, whether it was passed or is a default."""
    if record.settings.selected_by == "median" or not record.decisions:
        return record.settings.selected_by
    return record.decisions[0].threshold


def _select_alike(first: AuditRecord, second: AuditRecord) -> bool:
    """Whether both audits would select the same rows, given the same scores."""
    passed = [(one.settings.threshold, one.settings.standard) for one in (first, second)]
    used = [_threshold(first), _threshold(second)]
    if passed[0] == passed[1] or used[0] == used[1]:
        return True
    # Any threshold from 0 to 1 selects the decisions 1.
    decided = "decisions" in (first.settings.selected_by, second.settings.selected_by)
    return decided and all(not isinstance(one, str | None) and 0 < one <= 1 for one in used)


def compare_audits(
    audits: Mapping[str, AuditWithRows],
    *,
    paired: bool | None = None,
    same_rows: bool = False,
    origin: Provenance | None = None,
) -> DifferenceRecord:
    """Compare each audit with the first.

    ``same_rows``: one call made all audits, of the same rows, and ``origin`` is theirs.
    """
    if paired is not None:
        check_switches(paired=paired)
    (baseline, first), *others = audits.items()
    confidence, mine = first.record.confidence, compared_figures(first.record)
    matched: list[tuple[str, ComparedFigure, ComparedFigure, float | None]] = []
    unmatched, pairings = 0, set[Pairing]()
    for name, other in others:
        theirs = compared_figures(other.record)
        matches = {key: (figure, theirs[key]) for key, figure in mine.items() if key in theirs}
        check_settings({baseline: first.record, name: other.record}, matches)
        unmatched += len(mine) + len(theirs) - 2 * len(matches)
        pairing, common = _pairing(first, other, list(matches.values()), paired=paired, same_rows=same_rows)
        pairings.add(pairing)
        for before, after in matches.values():
            correlation = common.get(before.names) if pairing == "rows" else 0.0 if pairing == "independent" else None
            matched.append((name, before, after, correlation))
    if not matched:
        raise DataError(
            f"{baseline} and {', '.join(name for name, _ in others)} have no finding in common",
            remedy="audit the same groups, criteria and metrics in both",
        )
    sources = [one.record.provenance for one in audits.values()]
    return DifferenceRecord(
        tuple(audits),
        [one.record.rows for one in audits.values()],
        pairings.pop() if len(pairings) == 1 else "unknown",
        confidence,
        _differences(matched, confidence),
        unmatched,
        can_pair=paired is None and in_memory(first) and any(in_memory(one) for _, one in others),
        provenance=sources,
        origin=replace(origin or sources[0], files=files_of(sources)),
    )


def _differences(
    matched: Sequence[tuple[str, ComparedFigure, ComparedFigure, float | None]], confidence: float
) -> list[Difference]:
    """The differences, each with the interval that holds for all of them at once."""
    tested = max(1, sum(None not in (before.interval, after.interval) for _, before, after, _ in matched))
    differences = []
    for name, before, after, correlation in matched:
        found = change(before, after, correlation, confidence, (1 - confidence) / tested)
        difference = Difference(
            name,
            *after.names,
            before.value,
            after.value,
            found.difference,
            found.interval,
            found.joint_interval,
            found.p_value,
            None if found.p_value is None else min(1.0, tested * found.p_value),
            found.verdict,
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
    """How the rows of two audits are related, and the correlations of their figures where rows are paired."""
    origins = [None if one.rows is None else one.rows.origin for one in (first, other)]
    one_call = same_rows or first.record is other.record or (origins[0] is not None and origins[0] is origins[1])
    if paired or (paired is None and one_call):
        found = correlations(first, other, figures)
        if found is not None:
            return "rows", found
        if paired:
            raise DataError(
                "paired=True needs the rows of both audits, the same ones in the same order",
                remedy="audit both in memory, such as audit(y_true, {'a': scores, 'b': others}, ...)",
            )
    hashes = [{file.sha256 for file in one.record.provenance.files} for one in (first, other)]
    one_file = paired is None and hashes[0] == hashes[1] != set()
    return "unknown" if same_rows or one_file else "independent", {}
