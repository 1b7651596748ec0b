"""The audit of any source from end to end: comparisons, findings, decisions, curves, notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from metrifair.auditing.findings import (
    COARSEST,
    mixture_intervals,
    pair_findings,
)
from metrifair.auditing.measure.along_numbers import along_number
from metrifair.auditing.measure.attribute_bands import Bands
from metrifair.auditing.measure.decisions import decision_tables
from metrifair.auditing.measure.group_figures import figures_by_group
from metrifair.auditing.measure.group_pairs import GroupPair, group_pairs
from metrifair.auditing.measure.measured_pairs import measure_pairs
from metrifair.auditing.measure.parts import Part, members_in, parts_for
from metrifair.auditing.measure.proxy_estimates import proxy_record
from metrifair.auditing.measure.r2_correction import Attenuation
from metrifair.auditing.measure.reference_groups import problem_for
from metrifair.auditing.measure.resampling import shared_normals
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.measure.selection import Selection, selection_for
from metrifair.auditing.measure.two_samples import (
    RESOLUTION,
)
from metrifair.auditing.measure.worst_cuts import worst_cut
from metrifair.auditing.notes import (
    DECISION_NOTES,
    audit_notes,
    decision_notes,
    noted_for,
)
from metrifair.auditing.records import (
    AuditRecord,
    AuditSettings,
    Distribution,
    Finding,
    ProxyRecord,
    independent_sizes,
)
from metrifair.auditing.request import MOST_PAIRED, Plan, Request
from metrifair.auditing.significance import with_significance
from metrifair.auditing.sources.state_parts import (
    StateParts,
    check_positive_label,
)
from metrifair.auditing.sources.state_source import StateRows
from metrifair.errors import DataError
from metrifair.figures.curves import make_curves
from metrifair.figures.selection_rates import HIGHEST
from metrifair.problem.predictions import check_groups_not_swapped, check_not_swapped
from metrifair.problem.problem import Problem
from metrifair.problem.values import Value, canonical, canonical_values
from metrifair.support.arrays import Floats
from metrifair.support.provenance import Provenance, made_now

_DRAWS = 100_000  # scores to resample in all comparisons together
_SHARED = 16  # times as many scores that many groups share as for resampling
_MOST_CURVES = 1_000  # comparisons whose witnesses are drawn; more would only enlarge files


def audit_record(
    sample: AuditSample,
    request: Request,
    generator: np.random.Generator,
    selection: Selection | None,
) -> AuditRecord:
    """The whole audit; ``selection`` are the selected rows; None: no decisions."""
    parts = list(parts_for(sample, request.named_criteria(), request.loss))
    compared = [
        comparison for part in parts for comparison in group_pairs(sample, part, request.contrast)
    ]
    scheme = sample.problem.scheme
    dependent = [
        Bands.of(sample, part, place, request.min_group_size)
        for part in parts
        for place, attribute in enumerate(scheme.attributes)
        if attribute.cuts
    ]
    plan = _plan(request, compared, dependent, sampled=sample.has_squares)
    results = _findings_of_pairs(sample, request, compared, plan, generator)
    worst = [worst_cut(sample, bands, plan, generator) for bands in dependent]
    findings = with_significance(
        [*results, *(finding for cut in worst for finding in cut.findings)],
        plan.confidence,
        plan.permutations,
    )
    decisions = []
    if selection is not None:
        decisions = decision_tables(sample, selection, request)
    selected = None
    if selection is not None:
        selected = selection.amount
    along = [along_number(sample, *pair, selected) for pair in zip(dependent, worst, strict=True)]
    return AuditRecord(
        **_row_counts(sample),
        score_range=plan.score_range or sample.scores.ends,
        confidence=plan.confidence,
        findings=findings,
        decisions=decisions,
        distributions=[
            *_distributions(sample, parts, plan.score_range),
            *(cut.distribution for cut in worst if cut.distribution is not None),
        ],
        along=[curve for curve in along if curve is not None],
        notes=audit_notes(sample, parts, findings, decisions, plan=plan, selection=selection),
        permutations=plan.permutations,
        by_group=figures_by_group(sample, selection, request),
        proxy=_proxy_record(
            sample,
            selection,
            findings=findings,
            decisions=decisions,
            confidence=plan.confidence,
        ),
        settings=_settings(sample, request, selection),
        clusters=sample.facts.clusters,
    )


def _findings_of_pairs(
    sample: AuditSample,
    request: Request,
    compared: Sequence[GroupPair],
    plan: Plan,
    generator: np.random.Generator,
) -> list[Finding]:
    """The findings of all comparisons; of probable groups, with the figures divided by R2."""
    pair_distances = measure_pairs(
        sample, compared, request.named_metrics(), _SHARED * plan.resolution
    )
    many_comparisons = sum(comparison.right is None for comparison in compared) > MOST_PAIRED
    normals = None
    if many_comparisons:
        normals = shared_normals(plan.resamples, plan.resolution, generator)
    findings: list[Finding] = []
    parts = {id(comparison.part): comparison.part for comparison in compared}
    attenuations = {key: Attenuation.within(sample, part.units) for key, part in parts.items()}
    for comparison, distances in zip(compared, pair_distances, strict=True):
        measured = pair_findings(comparison, distances, sample, plan, generator, normals=normals)
        attenuation = attenuations[id(comparison.part)]
        if attenuation is not None:
            intervals_of = partial(mixture_intervals, comparison, plan, generator)
            measured = attenuation.divided_findings(measured, comparison, intervals_of)
        findings += measured
    return findings


def record_with_rates(record: AuditRecord, sample: AuditSample, request: Request) -> AuditRecord:
    """The record of an audit with the rates of another request."""
    selection = selection_for(sample, request)
    decisions = []
    if selection is not None:
        decisions = decision_tables(sample, selection, request)
    settings = _settings(sample, request, selection)
    along = record.along
    # bands show the selection of the audit's own threshold
    if settings.selected_by != record.settings.selected_by:
        along = [replace(table, selection_rates=()) for table in along]
    other_notes = [
        noted_for(note, request.standard)
        for note in record.notes
        if note.kind not in DECISION_NOTES
    ]
    return replace(
        record,
        decisions=decisions,
        along=along,
        notes=[
            *decision_notes(sample, decisions, request.threshold, selection),
            *other_notes,
        ],
        by_group=figures_by_group(sample, selection, request),
        proxy=_proxy_record(
            sample,
            selection,
            findings=record.findings,
            decisions=decisions,
            confidence=record.confidence,
        ),
        settings=settings,
    )


def _proxy_record(
    sample: AuditSample, selection: Selection | None, **results: Any
) -> ProxyRecord | None:
    """The estimates of an audit by group probabilities, and their assumption; None if groups
    are known.
    """
    members = sample.problem.members
    if members is None:
        return None
    return proxy_record(sample, members, selection, **results)


def _settings(sample: AuditSample, request: Request, selection: Selection | None) -> AuditSettings:
    """The settings that change figures, with canonical values."""
    scheme = sample.problem.scheme
    references = dict[str, Value]()
    rules = {} if selection is None else selection.rules
    for attribute in problem_for(sample, request.standard).scheme.attributes:
        names = list(map(str, attribute.groups))
        if attribute.name in rules and (reference := rules[attribute.name].reference) != HIGHEST:
            references[attribute.name] = canonical_values(attribute.values)[names.index(reference)]
    shared = {setting.name for setting in fields(AuditSettings)} & {
        option.name for option in fields(Request)
    }
    settings = {name: getattr(request, name) for name in shared}
    positive = None
    if scheme.classes:
        positive = canonical_values(scheme.classes)[scheme.positive]
    values = {
        "selected_by": None if selection is None else selection.by,
        "reference": references,
        "favorable_decision": canonical(request.favorable_decision),
        "pos_label": positive,
        "criteria": [criterion.name for criterion in request.named_criteria()],
        "metrics": request.named_metrics(),
    }
    return AuditSettings(**settings | values)


def _row_counts(sample: AuditSample) -> dict[str, Any]:
    """The numbers of rows that were audited, read and excluded, with reasons."""
    has_group = np.asarray((sample.problem.groups >= 0).any(1))
    once = sample.units.counted_by(0)
    if sample.units.table is not None:
        # rows without a group of one attribute may have one of another
        has_group = np.ones_like(has_group)
    used, unknown = (sample.units.size(once[mask[once]]) for mask in (has_group, ~has_group))
    why = +(Counter(sample.facts.left_out) + Counter({"missing_group": unknown}))
    rows_read = used + unknown + sum(sample.facts.left_out.values())
    provenance = Provenance(rows_read=rows_read, left_out=dict(why))  # plain, for JSON
    return {
        "rows": used,
        "left_out": rows_read - used,
        "provenance": provenance,
    }


def _plan(
    request: Request,
    compared: Sequence[GroupPair],
    bands: Sequence[Bands],
    *,
    sampled: bool,
) -> Plan:
    """The settings of each comparison, which depend on their number; ``bands`` are those of
    attributes that are cut.
    """
    # The distribution functions that are compared; that of the rest is another one for each group.
    functions = {
        (id(comparison.part), comparison.place, side)
        for comparison in compared
        for side in ((comparison.left, None), _other_side(comparison))
    }
    assessed = [comparison for comparison in compared if not comparison.unknown_name]
    enough = sum(
        min(independent_sizes(comparison)) >= request.min_group_size for comparison in assessed
    )
    resampled = {}
    if not sampled:
        resampled = {"resamples": 0, "permutations": 0}
    return Plan(
        **vars(request) | resampled,
        # Many comparisons take minutes, not hours.
        resolution=int(np.clip(_DRAWS // max(1, len(compared)), COARSEST, RESOLUTION)),
        witnesses=len(compared) <= _MOST_CURVES,
        cdfs=len(functions) + 2 * sum(len(attribute.cuts) for attribute in bands),
        comparisons=max(1, enough + len(bands)),
    )


def _other_side(comparison: GroupPair) -> tuple[int | None, int | None]:
    """The key of the distribution function of the second side; that of a rest is its group's."""
    if comparison.right is None:
        return None, comparison.left
    return comparison.right, None


def _distributions(
    sample: AuditSample,
    parts: Sequence[Part],
    score_range: tuple[float, float] | None,
) -> list[Distribution]:
    """Distributions to draw: of each attribute within each set, unless there are too many
    groups to distinguish.
    """
    distributions: dict[tuple[str, str], Distribution] = {}
    for part in parts:
        for place, attribute in enumerate(sample.problem.scheme.attributes):
            key = attribute.name, part.within
            if (
                key in distributions
                or not part.of_predictions
                or attribute.cuts
                or part.scores.are_decisions
            ):
                continue  # rates describe decisions completely
            members = members_in(sample.problem, part.units, place)
            if not 2 <= len(members.present) <= MOST_PAIRED:
                continue
            units = {
                str(attribute.groups[code]): members.units[members.codes == code]
                for code in members.present
            }
            masses = {
                name: part.scores.at(indices).astype(np.float64) for name, indices in units.items()
            }
            sizes = {name: sample.units.size(indices) for name, indices in units.items()}
            ends = score_range or sample.scores.ends
            if score_range is None and sample.scores.binned is None:
                used = part.scores.values[np.flatnonzero(part.scores.at(part.units))[[0, -1]]]
                ends = float(used[0]), float(used[1])
            distributions[key] = Distribution(
                *key, make_curves(part.scores.values, masses, sizes, ends)
            )
    return list(distributions.values())


class AuditSource(Protocol):
    """Rows that can be audited: in memory, in a file, in a table or in a state."""

    def counts(self, request: Request) -> AuditSample:
        """The units of the rows and counts of their scores, in bins if they are out of core."""


class AuditedRows(NamedTuple):
    """The rows, or their counts, and the request."""

    sample: AuditSample
    request: Request
    origin: object = None  # the call they were passed to: audits of one call share their rows
    ordered: bool = True  # whether rows are in memory, in the order in which they were passed
    source: AuditSource | None = None  # of the rows, for evidence


class AuditWithRows(Protocol):
    """An audit, and its rows if they are still available."""

    @property
    def record(self) -> AuditRecord:
        """The findings."""

    @property
    def rows(self) -> AuditedRows | None:
        """The rows."""


def audit_source(
    source: AuditSource,
    request: Request,
    generator: np.random.Generator,
    /,
    *,
    origin: object = None,
    ordered: bool = True,
    **provenance: Any,
) -> tuple[AuditRecord, AuditedRows]:
    """The audit of the rows of any source, with the facts of its provenance."""
    sample = source.counts(request)
    request = request.completed(
        sample.problem, *sample.scores.ends, probabilities=sample.probabilities
    )
    if None in sample.scores.by_class:
        _check_order(sample.problem, sample.scores.by_class[None].values, request)
    record = audit_record(sample, request, generator, selection_for(sample, request))
    record = replace(
        record,
        provenance=replace(record.provenance, **provenance, **made_now()),
    )
    return record, AuditedRows(
        sample,
        request,
        origin,
        ordered and sample.scores.binned is None,
        source,
    )


def _check_order(problem: Problem, score: Floats, request: Request) -> None:
    """Raise a DataError if labels, scores and groups look exchanged."""
    if not request.has_numeric_target:
        check_not_swapped(problem.labels, score)
    if request.numbers == "auto":
        check_groups_not_swapped(problem, score)


def audit_counts(
    parts: StateParts, request: Request, seed: int, **facts: Any
) -> tuple[AuditRecord, AuditedRows]:
    """The audit of all rows that were counted, with facts of its provenance."""
    shape = parts.shape
    counts = parts.counts
    if shape is None or counts is None or not parts.cells:
        raise DataError("this state contains no rows; add some, or merge it with others")
    check_positive_label(parts, request)
    label = []
    if shape.label is not None:
        label = [shape.label]
    facts = {
        "columns": {
            "group": list(shape.groups),
            "control": list(shape.controls),
            "label": label,
        },
        **facts,
    }
    request = replace(request, score_range=parts.score_range)
    return audit_source(
        StateRows(parts, shape, counts),
        request,
        np.random.default_rng(seed),
        seed=seed,
        **facts,
    )
