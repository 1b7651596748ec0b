"""The audit of a sample, from one end to the other: comparisons, findings, decisions, distributions, notes, summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.decisions import decisions_of
from metrifair.auditing.findings import Plan, Proven, findings_of
from metrifair.auditing.notes import notes_of
from metrifair.auditing.request import MOST_PAIRED, Request
from metrifair.auditing.sample import Compared, Part, Sample, compared_in, members_of, parts_of
from metrifair.curves import curves_of
from metrifair.report.audit.words import summary_of
from metrifair.results import AuditRecord, Distribution

Prove: TypeAlias = Callable[[Sequence[Compared]], tuple[Sequence[Proven], bool]]
"""What passes over a file prove of comparisons, and whether all of it is as exact as was asked for."""


def record_of(
    sample: Sample,
    request: Request,
    generator: np.random.Generator,
    *,
    threshold: float | None,
    selected: NDArray[Any] | None,
    prove: Prove | None = None,
) -> AuditRecord:
    """The whole audit; ``selected`` is how much of each unit is selected at the threshold, None: nothing is decided."""
    parts = list(parts_of(sample, request.named_criteria(), request.loss))
    compared = [one for part in parts for one in compared_in(sample, part, request.contrast)]
    proven, complete = (None, None) if prove is None else prove(compared)
    sampled = prove is None or not sample.weighted  # weighted rows are resampled one by one
    ends = request.score_range
    plan = Plan(
        request.named_metrics(),
        request.confidence,
        request.resamples if sampled else 0,
        request.permutations if sampled else 0,
        len(compared),
        _distribution_functions(compared),
        None if ends is None else ends[1] - ends[0],
    )
    findings = [
        finding
        for place, one in enumerate(compared)
        for finding in findings_of(one, sample, plan, generator, None if proven is None else proven[place])
    ]
    decisions = []
    if threshold is not None and selected is not None:
        options: dict[str, Any] = {"threshold": threshold, "confidence": plan.confidence, "resamples": plan.resamples}
        decisions = decisions_of(sample, selected, **options, generator=generator)
    notes = notes_of(
        sample,
        parts,
        findings,
        confidence=plan.confidence,
        decided=selected is not None or request.threshold != "auto" or "" not in sample.predicted,
        assumed=request.pos_label is None,
        complete=complete,
    )
    known = (sample.problem.groups >= 0).any(1)
    unknown = sample.size(np.flatnonzero(~known))
    return AuditRecord(
        rows=sample.size(np.flatnonzero(known)),
        left_out=sample.left_out + unknown,
        score_range=ends or sample.ends,
        confidence=plan.confidence,
        findings=findings,
        decisions=decisions,
        distributions=_distributions(sample, parts, ends),
        notes=notes,
        summary=summary_of(findings, decisions, notes, plan.confidence, permutations=plan.permutations),
    )


def _distribution_functions(compared: Sequence[Compared]) -> int:
    """How many different ones the comparisons look at."""
    return len(
        {
            (id(one.part), one.place, side)
            for one in compared
            for side in ((one.left, None), (one.right, one.left if one.right is None else None))
        }
    )


def _distributions(
    sample: Sample, parts: Sequence[Part], score_range: tuple[float, float] | None
) -> list[Distribution]:
    """Distributions to draw: of each attribute within each set, where there are few enough groups to tell apart."""
    found: dict[tuple[str, str], Distribution] = {}
    for part in parts or ():
        for place, attribute in enumerate(sample.problem.scheme.attributes):
            key = attribute.name, part.within
            if key in found or not part.of_predictions:
                continue
            members = members_of(sample.problem, part.units, place)
            if not 2 <= len(members.present) <= MOST_PAIRED:
                continue
            units = {str(attribute.groups[group]): members.of(group) for group in members.present}
            masses = {name: part.scores.at(own).astype(np.float64) for name, own in units.items()}
            sizes = {name: sample.size(own) for name, own in units.items()}
            ends = score_range or sample.ends
            if score_range is None and sample.counted is None:
                used = part.scores.values[np.flatnonzero(part.scores.at(part.units))[[0, -1]]]
                ends = float(used[0]), float(used[1])
            found[key] = Distribution(*key, curves_of(part.scores.values, masses, sizes, ends))
    return list(found.values())
