"""The parts of an audit, one after the other: findings, decisions, distributions and notes of what was given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.asking import Request
from metrifair.auditing.atoms import Floats, Integers
from metrifair.auditing.comparing import (
    MOST_PAIRED,
    comparisons,
    contrast_of,
    distribution_functions,
    opponents,
    present_groups,
)
from metrifair.auditing.curves import curves_of
from metrifair.auditing.decisions import (
    Threshold,
    are_decisions,
    counted,
    decided,
    deciding,
    decisions_of,
    ratio_interval,
)
from metrifair.auditing.evidence import Plan, findings_of, plan_for
from metrifair.auditing.explaining import quoted
from metrifair.auditing.inputs import Given, Part, parts, strata_of
from metrifair.auditing.intervals import Rows
from metrifair.auditing.remarks import (
    absent_note,
    direction_notes,
    label_notes,
    missing_notes,
    parity_notes,
    small_notes,
    summary_of,
    weight_note,
)
from metrifair.results import AuditRecord, Decisions, Distribution, Finding, Note


def conducted(data: Given, request: Request, generator: np.random.Generator) -> AuditRecord:
    """The whole audit."""
    within = list(parts(data, request.criteria))
    plan = _completed(request, data, within)
    findings = [
        finding
        for part in within
        for place, attribute in enumerate(data.groups.attributes)
        for compared in comparisons(
            part,
            attribute,
            data.groups.codes[part.rows, place],
            None if data.weights is None else data.weights[part.rows],
            request.contrast,
        )
        for finding in findings_of(compared, _for_score(plan, part, request), generator)
    ]
    threshold, notes = _threshold(data, request.threshold)
    decisions = [] if threshold is None else decisions_at(data, threshold, plan, generator)
    notes += _notes(data, within, findings, plan)
    seen = float(data.prediction.min()), float(data.prediction.max())
    left_out = int((data.groups.codes < 0).all(1).sum())
    return AuditRecord(
        rows=len(data) - left_out,
        left_out=left_out,
        score_range=request.score_range or seen,
        confidence=plan.confidence,
        findings=findings,
        decisions=decisions,
        distributions=_distributions(data, within, request.score_range),
        notes=notes,
        summary=summary_of(findings, decisions, notes, plan.confidence, permutations=plan.permutations),
    )


def _completed(request: Request, data: Given, within: Sequence[Part]) -> Plan:
    """The plan, with how many distribution functions and comparisons there will be."""
    cdfs, compared = 0, 0
    for part in within:
        for place, attribute in enumerate(data.groups.attributes):
            present = _present(data, part, place)
            contrast = contrast_of(len(attribute.groups), request.contrast)
            cdfs += distribution_functions(len(present), contrast)
            compared += len(opponents(present, contrast))
    return plan_for(request.plan, comparisons=compared, cdfs=cdfs)


def _present(data: Given, part: Part, attribute: int) -> list[int]:
    weights = None if data.weights is None else data.weights[part.rows]
    groups = len(data.groups.attributes[attribute].groups)
    found: list[int] = present_groups(data.groups.codes[part.rows, attribute], weights, groups).tolist()
    return found


def _for_score(plan: Plan, part: Part, request: Request) -> Plan:
    """The plan for a part; the range of the predictions bounds predictions only."""
    if request.score_range is None or not part.of_predictions:
        return plan
    low, high = request.score_range
    return replace(plan, width=high - low)


def _threshold(data: Given, threshold: Threshold) -> tuple[float | None, list[Note]]:
    if data.score is None:
        return None, []
    return deciding(threshold, decisions=are_decisions(data.score), probabilities=data.probabilities)


def decisions_at(data: Given, threshold: float, plan: Plan, generator: np.random.Generator) -> list[Decisions]:
    """Decisions by attribute within each stratum."""
    score, outcome = data.score, None if data.has_target else data.outcome
    if score is None:
        return []
    selected = decided(score, threshold)
    positive = None if outcome is None else outcome == 1
    found = []
    for name, inside in strata_of(data):
        rows = slice(None) if inside.all() else inside  # everyone need not be copied
        weights = None if data.weights is None else data.weights[rows]
        for place, attribute in enumerate(data.groups.attributes):
            codes = data.groups.codes[rows, place]
            counts = counted(
                len(attribute.groups), codes, selected[rows], None if positive is None else positive[rows], weights
            )
            if (counts.sum((1, 2)) > 0).sum() < 2:
                continue
            found.append(
                decisions_of(
                    counts,
                    [str(group) for group in attribute.groups],
                    np.bincount(codes[codes >= 0], minlength=len(attribute.groups)).tolist(),
                    attribute=attribute.name,
                    within=name,
                    threshold=threshold,
                    ratio_interval=ratio_interval(
                        _resampled_groups(counts, codes, selected[rows], weights),
                        confidence=plan.confidence,
                        resamples=plan.resamples,
                        generator=generator,
                    ),
                )
            )
    return found


def _resampled_groups(
    counts: Floats, codes: Integers, selected: NDArray[np.bool_], weights: Floats | None
) -> list[Rows | Floats]:
    """The decisions about each group that has any, as they are resampled."""
    found: list[Rows | Floats] = []
    for group in np.flatnonzero(counts.sum((1, 2)) > 0):
        if weights is None:
            found.append(counts[group].sum(0))
        else:
            own = (codes == group) & (weights > 0)
            found.append(Rows(selected[own].astype(np.int64), weights[own]))
    return found


def _distributions(data: Given, within: Sequence[Part], score_range: tuple[float, float] | None) -> list[Distribution]:
    """Distributions to draw: of each attribute within each set, where there are few enough groups to tell apart."""
    found: dict[tuple[str, str], Distribution] = {}
    for part in within:
        for place, attribute in enumerate(data.groups.attributes):
            codes = data.groups.codes[part.rows, place]
            present = _present(data, part, place)
            key = attribute.name, part.within
            if key in found or not part.of_predictions or not 2 <= len(present) <= MOST_PAIRED:
                continue
            weights = None if data.weights is None else data.weights[part.rows]
            masses, sizes = {}, {}
            for group in present:
                own, name = codes == group, str(attribute.groups[group])
                counts = np.bincount(part.place[own], None if weights is None else weights[own], len(part.distinct))
                masses[name], sizes[name] = counts.astype(np.float64), int(own.sum())
            ends = score_range or (float(part.distinct[0]), float(part.distinct[-1]))
            found[key] = Distribution(*key, curves_of(part.distinct, masses, sizes, ends))
    return list(found.values())


def _notes(data: Given, within: Sequence[Part], findings: Sequence[Finding], plan: Plan) -> list[Note]:
    unknown = {
        attribute.name: int((code < 0).sum())
        for attribute, code in zip(data.groups.attributes, data.groups.codes.T, strict=True)
    }
    notes = label_notes(data.classes, data.positive, assumed=data.positive_assumed)
    if data.score is not None and data.outcome is not None and data.classes:
        notes += direction_notes(data.score, data.outcome)
    notes += missing_notes(unknown, len(data)) + absent_note(_absent(data, within))
    notes += small_notes(findings, plan.confidence)
    if data.weights is not None:
        notes.append(weight_note())
    if data.score is not None and data.outcome is not None:
        notes += parity_notes(data.score, data.outcome, data.groups.codes, data.groups.attributes)
    return notes


def _absent(data: Given, within: Sequence[Part]) -> list[str]:
    """Groups without a sample in some set."""
    absent: dict[str, None] = {}
    for part in within:
        for place, attribute in enumerate(data.groups.attributes):
            for group in sorted(set(range(len(attribute.groups))) - set(_present(data, part, place))):
                absent[f"{quoted(str(attribute.groups[group]))} of {attribute.name} in {part.within}"] = None
    return list(absent)
