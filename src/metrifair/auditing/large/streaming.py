"""The audit of a file that is too large to hold: every part of it from counts in bins.

A cell is one combination of groups, strata and label. To the rest of the audit cells look like samples, one each: that
tells which of them are compared. Distances are bracketed; everything else is taken from the base bins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from metrifair.auditing.asking import Request
from metrifair.auditing.atoms import Atoms
from metrifair.auditing.comparing import Compared, contrast_of, distribution_functions, opponents
from metrifair.auditing.evidence import Plan, findings_of, plan_for, radii
from metrifair.auditing.explaining import meaning_of
from metrifair.auditing.inputs import Part, parts
from metrifair.auditing.large.brackets import Sides
from metrifair.auditing.large.cellwise import (
    Cells,
    decisions_from,
    distributions_from,
    left_out_notes,
    notes_from,
    present_in,
    threshold_of,
)
from metrifair.auditing.large.counting import Bins
from metrifair.auditing.large.passes import Measured, Result, Survey, check_brackets, measured
from metrifair.auditing.large.rows import Rows
from metrifair.auditing.remarks import summary_of
from metrifair.certificates import certified_distance
from metrifair.errors import DataError
from metrifair.problem.cells import Attribute
from metrifair.report.auditwords import REST
from metrifair.results import AuditRecord, Finding, Interval


class Pairing(NamedTuple):
    """Two sides of cells within a part."""

    part: Part
    attribute: Attribute
    groups: tuple[str, str]
    sizes: tuple[int, int]
    sides: Sides


def check_metrics(metrics: Sequence[str]) -> None:
    """Raise a DataError for metrics of which counts of scores prove nothing."""
    check_brackets("metrics", metrics)


def _check_criteria(request: Request) -> None:
    for criterion in request.criteria:
        if criterion.score != "prediction":
            raise DataError(
                f"{criterion.name} compares other scores than the predictions, which is not done for files too large "
                "to hold; write those scores to the file, as a column of their own"
            )


def streamed(
    rows: Rows, cells: Cells, survey: Survey, request: Request, generator: np.random.Generator, *, tolerance: float
) -> AuditRecord:
    """The whole audit."""
    _check_criteria(request)
    within = list(parts(cells.data, request.criteria))
    pairs = [pairing for part in within for pairing in _pairings(cells, part, request)]
    result = measured(
        rows.read,
        survey,
        [pairing.sides for pairing in pairs],
        request.plan.metrics,
        cells=len(rows.cells),
        weighted=cells.weighted,
        tolerance=tolerance,
    )
    plan = _plan(request, cells, within, len(pairs))
    findings = [
        finding
        for pairing, found in zip(pairs, result.found, strict=True)
        for finding in _findings(pairing, found, result, plan, generator)
    ]
    threshold, notes = threshold_of(cells, request.threshold, result.base)
    decisions = [] if threshold is None else decisions_from(cells, result.base, threshold, plan, generator)
    notes += left_out_notes(rows.left_out)
    notes += notes_from(cells, within, result, findings, confidence=plan.confidence)
    ends = request.score_range or (survey.low, survey.high)
    return AuditRecord(
        rows=int(cells.tally.rows.sum()),
        left_out=rows.left_out,
        score_range=ends,
        confidence=plan.confidence,
        findings=findings,
        decisions=decisions,
        distributions=distributions_from(cells, within, result.base, ends),
        notes=notes,
        summary=summary_of(findings, decisions, notes, plan.confidence, permutations=plan.permutations),
    )


def _pairings(cells: Cells, part: Part, request: Request) -> Iterator[Pairing]:
    for place, attribute in enumerate(cells.data.groups.attributes):
        codes = cells.data.groups.codes[part.rows, place]
        contrast = contrast_of(len(attribute.groups), request.contrast)
        for left, right in opponents(present_in(cells, part, place), contrast):
            on_right = (codes >= 0) & (codes != left) if right is None else codes == right
            both = part.rows[codes == left], part.rows[on_right]
            first, second = (float(cells.tally.weight[side].sum()) for side in both)
            sizes = int(cells.tally.rows[both[0]].sum()), int(cells.tally.rows[both[1]].sum())
            names = str(attribute.groups[left]), REST if right is None else str(attribute.groups[right])
            yield Pairing(part, attribute, names, sizes, Sides(*both, (first, second)))


def _plan(request: Request, cells: Cells, within: Sequence[Part], compared: int) -> Plan:
    cdfs = sum(
        distribution_functions(len(present_in(cells, part, place)), contrast_of(len(one.groups), request.contrast))
        for part in within
        for place, one in enumerate(cells.data.groups.attributes)
    )
    width = None if request.score_range is None else request.score_range[1] - request.score_range[0]
    plan = replace(plan_for(request.plan, comparisons=compared, cdfs=cdfs), width=width)
    return replace(plan, resamples=0, permutations=0) if cells.weighted else plan


def _atoms(base: Bins, found: Measured) -> Atoms:
    """The base bins as atoms at their largest scores, with one more at the largest gap: all are exact there."""
    left, right = (base.total("counts", side).astype(np.float64) for side in found.sides[:2])
    values, at = base.high, int(np.searchsorted(base.high, found.gap.score))
    if values[at] != found.gap.score:
        halves = []
        for side, share, total in zip((left, right), found.gap.shares, found.sides.totals, strict=True):
            first = np.clip(share * total - side[:at].sum(), 0.0, side[at])
            first = first if base.weighted else np.rint(first)
            halves.append(np.concatenate([side[:at], [first, side[at] - first], side[at + 1 :]]))
        left, right = halves
        values = np.insert(values, at, found.gap.score)
    used = (left > 0) | (right > 0)
    return Atoms(values[used], left[used], right[used])


def _findings(
    pairing: Pairing, found: Measured, result: Result, plan: Plan, generator: np.random.Generator
) -> list[Finding]:
    """Findings of the base bins, with the values and bounds that the brackets prove."""
    part, atoms = pairing.part, _atoms(result.base, found)
    compared = Compared(pairing.attribute.name, part.criterion, part.within, pairing.groups, pairing.sizes, atoms)
    span = float(atoms.values[-1] - atoms.values[0])
    return [
        _proven(finding, found, result, plan, span=span, weighted=result.base.weighted)
        for finding in findings_of(compared, plan, generator)
    ]


def _proven(finding: Finding, found: Measured, result: Result, plan: Plan, *, span: float, weighted: bool) -> Finding:
    bracket = found.bracket(finding.metric, result.scale)
    value = bracket.low / 2 + bracket.high / 2
    alone, jointly, paper = (None, None, None) if weighted else radii(finding.sizes, plan)
    sampled = finding.interval

    def bound(radius: float | None) -> float | None:
        return None if radius is None else certified_distance(finding.metric, bracket.high, radius, width=plan.width)

    return replace(
        finding,
        value=value,
        bracket=bracket,
        unbiased=None if weighted or finding.unbiased is None else finding.unbiased + (value - finding.value),
        interval=None if sampled is None else Interval(min(sampled.low, value), max(sampled.high, value)),
        certified=bound(alone),
        certified_jointly=bound(jointly),
        paper_bound=bound(paper),
        meaning=meaning_of(finding.metric, value, finding.groups, found.gap, span),
    )
