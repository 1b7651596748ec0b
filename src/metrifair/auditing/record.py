"""The audit of a sample from end to end: comparisons, findings, decisions, distributions, notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from metrifair.auditing.by_group import figures_by_group
from metrifair.auditing.decisions import Selection, decision_tables, problem_for, selection_for
from metrifair.auditing.distribution import (
    RESOLUTION,
    TwoSamples,
    bin_means,
    bins,
    largest_gap,
    merge_bins,
    shares,
    unbiased_distance,
    witness_utility,
)
from metrifair.auditing.notes import DECISION_NOTES, audit_notes, decision_notes
from metrifair.auditing.numbers import Bands, along_number, worst_cut
from metrifair.auditing.proxies import proxy_record
from metrifair.auditing.records import AuditRecord, AuditSettings, Distribution, Finding, ProxyRecord, WitnessCurve
from metrifair.auditing.request import MOST_PAIRED, Plan, Request
from metrifair.auditing.resampling import Intervals, bootstrap, merge_scores, permutation_p_values, shared_normals
from metrifair.auditing.sample import (
    AuditSample,
    GroupPair,
    PairDistances,
    Part,
    group_pairs,
    measure_pairs,
    members_in,
    parts_for,
)
from metrifair.figures.certificates import certified_distance, dkw_radius, vc_radius
from metrifair.figures.curves import make_curves
from metrifair.figures.intervals import Interval
from metrifair.figures.power import detectable_gap
from metrifair.figures.selection_rates import HIGHEST
from metrifair.metrics.registry import facts
from metrifair.problem.values import Value, canonical, canonical_values
from metrifair.support.arrays import Floats, Integers
from metrifair.support.provenance import Provenance

_DRAWS = 100_000  # scores to resample in all comparisons together
_COARSEST = 64
_COARSER = 8  # times fewer scores for p-values than for intervals, where they are too many for either
_FINER = 8  # times as many scores for a witness curve as for resampling; its 101 points show no more
_SHARED = 16  # times as many scores that many groups share as for resampling
_MOST_CURVES = 1_000  # comparisons whose witnesses are drawn; more would only enlarge files
_GRID = 100
_ROUNDING = 1e-9


def audit_record(
    sample: AuditSample,
    request: Request,
    generator: np.random.Generator,
    selection: Selection | None,
) -> AuditRecord:
    """The whole audit; ``selection`` are the selected rows; None: no decisions."""
    parts = list(parts_for(sample, request.named_criteria(), request.loss))
    compared = [comparison for part in parts for comparison in group_pairs(sample, part, request.contrast)]
    scheme = sample.problem.scheme
    dependent = [
        Bands.of(sample, part, place, request.min_group_size)
        for part in parts
        for place, attribute in enumerate(scheme.attributes)
        if attribute.cuts or request.contrast == "independence"
    ]
    plan = _plan(request, compared, dependent, sampled=sample.has_squares)
    pair_distances, complete = measure_pairs(sample, compared, request.named_metrics(), _SHARED * plan.resolution)
    many_comparisons = sum(comparison.right is None for comparison in compared) > MOST_PAIRED
    normals = shared_normals(plan.resamples, plan.resolution, generator) if many_comparisons else None
    results = [
        finding
        for comparison, distances in zip(compared, pair_distances, strict=True)
        for finding in pair_findings(comparison, distances, sample, plan, generator, normals=normals)
    ]
    worst = [worst_cut(sample, bands, plan, generator) for bands in dependent]
    findings = with_significance(
        [*results, *(finding for cut in worst for finding in cut.findings)], plan.confidence, plan.permutations
    )
    decisions = [] if selection is None else decision_tables(sample, selection, request)
    selected = None if selection is None else selection.amount
    along = [along_number(sample, *pair, selected) for pair in zip(dependent, worst, strict=True)]
    return AuditRecord(
        **_row_counts(sample),
        score_range=plan.score_range or sample.ends,
        confidence=plan.confidence,
        findings=findings,
        decisions=decisions,
        distributions=[
            *_distributions(sample, parts, plan.score_range),
            *(cut.distribution for cut in worst if cut.distribution is not None),
        ],
        along=[curve for curve in along if curve is not None],
        notes=audit_notes(sample, parts, findings, decisions, plan=plan, selection=selection, complete=complete),
        permutations=plan.permutations,
        by_group=figures_by_group(sample, selection, request),
        proxy=_proxy_record(sample, selection, findings=findings, decisions=decisions, confidence=plan.confidence),
        settings=_settings(sample, request, selection),
    )


def record_with_rates(record: AuditRecord, sample: AuditSample, request: Request) -> AuditRecord:
    """The record of an audit with the rates of another request."""
    selection = selection_for(sample, request)
    decisions = [] if selection is None else decision_tables(sample, selection, request)
    settings = _settings(sample, request, selection)
    along = record.along
    if settings.selected_by != record.settings.selected_by:  # bands show the selection of the audit's own threshold
        along = [replace(table, selection_rates=()) for table in along]
    other_notes = [note for note in record.notes if note.kind not in DECISION_NOTES]
    return replace(
        record,
        decisions=decisions,
        along=along,
        notes=[*decision_notes(sample, decisions, request.threshold, selection), *other_notes],
        by_group=figures_by_group(sample, selection, request),
        proxy=_proxy_record(
            sample, selection, findings=record.findings, decisions=decisions, confidence=record.confidence
        ),
        settings=settings,
    )


def _proxy_record(sample: AuditSample, selection: Selection | None, **results: Any) -> ProxyRecord | None:
    """The estimates of an audit by group probabilities, and their assumption; None if groups are known."""
    members = sample.problem.members
    return None if members is None else proxy_record(sample, members, selection, **results)


def _settings(sample: AuditSample, request: Request, selection: Selection | None) -> AuditSettings:
    """The settings that change figures, with canonical values."""
    scheme, references = sample.problem.scheme, dict[str, Value]()
    rules = {} if selection is None else selection.rules
    for attribute in problem_for(sample, request.standard).scheme.attributes:
        names = list(map(str, attribute.groups))
        if attribute.name in rules and (reference := rules[attribute.name].reference) != HIGHEST:
            references[attribute.name] = canonical_values(attribute.values)[names.index(reference)]
    shared = {setting.name for setting in fields(AuditSettings)} & {option.name for option in fields(Request)}
    settings = {name: getattr(request, name) for name in shared}
    values = {
        "selected_by": None if selection is None else selection.by,
        "reference": references,
        "favorable_decision": canonical(request.favorable_decision),
        "pos_label": canonical_values(scheme.classes)[scheme.positive] if scheme.classes else None,
        "criteria": [criterion.name for criterion in request.named_criteria()],
        "metrics": request.named_metrics(),
    }
    return AuditSettings(**settings | values)


def _row_counts(sample: AuditSample) -> dict[str, Any]:
    """The numbers of rows that were audited, read and excluded, with reasons."""
    has_group = (sample.problem.groups >= 0).any(1)
    used, unknown = (sample.size(np.flatnonzero(mask)) for mask in (has_group, ~has_group))
    why = +(Counter(sample.left_out) + Counter({"missing_group": unknown}))
    rows_read = used + unknown + sum(sample.left_out.values())
    provenance = Provenance(rows_read=rows_read, left_out=dict(why))  # plain, for JSON
    return {"rows": used, "left_out": rows_read - used, "provenance": provenance}


def _plan(request: Request, compared: Sequence[GroupPair], bands: Sequence[Bands], *, sampled: bool) -> Plan:
    """The settings of each comparison, which depend on their number; ``bands`` are those of attributes that are cut."""
    # The distribution functions that are compared; that of the rest is another one for each group.
    functions = {
        (id(comparison.part), comparison.place, side)
        for comparison in compared
        for side in ((comparison.left, None), (comparison.right, comparison.left if comparison.right is None else None))
    }
    enough = sum(min(comparison.sizes) >= request.min_group_size for comparison in compared)
    resampled = {} if sampled else {"resamples": 0, "permutations": 0}
    return Plan(
        **vars(request) | resampled,
        # Many comparisons take minutes, not hours.
        resolution=int(np.clip(_DRAWS // max(1, len(compared)), _COARSEST, RESOLUTION)),
        witnesses=len(compared) <= _MOST_CURVES,
        cdfs=len(functions) + 2 * sum(len(attribute.sides) for attribute in bands),
        comparisons=max(1, enough + len(bands)),
    )


def with_significance(findings: Sequence[Finding], confidence: float, permutations: int) -> list[Finding]:
    """Add the significance of findings with enough rows, adjusted for all comparisons by a metric.

    A joint interval decides by whether it excludes 0, so that no verdict contradicts the interval beside it. Without
    one, a p-value of at most (1 - confidence) over their number is significant (Bonferroni), unless no p-value of so
    many permutations can be that small. For cuts, p-values of other metrics count only if the dependence (energy) is
    significant: in this order, the metrics of an attribute keep the level together.
    """
    numbers = Counter(finding.metric for finding in findings if finding.enough and finding.p_value is not None)
    adjusted = []
    for finding in findings:
        level = (1 - confidence) / max(1, numbers[finding.metric])
        if finding.enough and finding.joint_interval is not None:
            adjusted.append(replace(finding, significant=finding.joint_interval.low > 0, tested_by="joint_bounds"))
        elif finding.enough and finding.p_value is not None and level * (1 + permutations) >= 1 - _ROUNDING:
            adjusted.append(replace(finding, significant=finding.p_value <= level, tested_by="bonferroni"))
        else:
            adjusted.append(finding)
    independent = {
        _scope(finding)
        for finding in adjusted
        if finding.cuts and finding.metric == "energy" and finding.significant is False
    }
    compared = Counter(finding.metric for finding in findings if finding.enough)
    return [
        replace(finding, significant=False)
        if finding.tested_by == "bonferroni" and _scope(finding) in independent
        else finding
        for finding in (_with_detectable(finding, confidence, compared[finding.metric]) for finding in adjusted)
    ]


def _with_detectable(finding: Finding, confidence: float, comparisons: int) -> Finding:
    """Add the smallest detectable gap to a finding that is not significant; for pairs of groups without weights."""
    if finding.significant is not False or finding.metric != "kolmogorov" or finding.cuts or finding.certified is None:
        return finding
    rate = 0.5 if finding.shares is None else 1 - sum(finding.shares) / 2
    if not finding.decided:
        gap = detectable_gap(*finding.sizes, metric="kolmogorov", confidence=confidence, comparisons=comparisons)
    elif 0 < rate < 1:
        gap = detectable_gap(*finding.sizes, rate=rate, confidence=confidence, comparisons=comparisons)
    else:
        return finding
    return replace(finding, detectable=gap)


def _scope(finding: Finding) -> tuple[str, str, str]:
    return finding.attribute, finding.criterion, finding.within


def _distributions(
    sample: AuditSample, parts: Sequence[Part], score_range: tuple[float, float] | None
) -> list[Distribution]:
    """Distributions to draw: of each attribute within each set, unless there are too many groups to distinguish."""
    distributions: dict[tuple[str, str], Distribution] = {}
    for part in parts:
        for place, attribute in enumerate(sample.problem.scheme.attributes):
            key = attribute.name, part.within
            if key in distributions or not part.of_predictions or attribute.cuts or part.scores.are_decisions:
                continue  # rates describe decisions completely
            members = members_in(sample.problem, part.units, place)
            if not 2 <= len(members.present) <= MOST_PAIRED:
                continue
            units = {str(attribute.groups[code]): members.units[members.codes == code] for code in members.present}
            masses = {name: part.scores.at(indices).astype(np.float64) for name, indices in units.items()}
            sizes = {name: sample.size(indices) for name, indices in units.items()}
            ends = score_range or sample.ends
            if score_range is None and sample.binned is None:
                used = part.scores.values[np.flatnonzero(part.scores.at(part.units))[[0, -1]]]
                ends = float(used[0]), float(used[1])
            distributions[key] = Distribution(*key, make_curves(part.scores.values, masses, sizes, ends))
    return list(distributions.values())


def pair_findings(
    compared: GroupPair,
    distances: PairDistances,
    sample: AuditSample,
    plan: Plan,
    generator: np.random.Generator,
    *,
    normals: Floats | None,
) -> list[Finding]:
    """The findings of one comparison, one for each metric; ``normals`` are those of ``bootstrap``."""
    part, sizes, enough = compared.part, compared.sizes, min(compared.sizes) >= plan.min_group_size
    scores, left, right = distances.pair
    decided = part.of_predictions and part.scores.are_decisions
    # There may be many scores: they are binned once, and every coarser table is made from these bins.
    bin_index = bins(distances.pair, _FINER * plan.resolution)
    binned = merge_bins(distances.pair, bin_index)
    tests = plan if enough else replace(plan, permutations=0)  # no p-value of a group below the minimum size
    intervals, p_values = _intervals_and_p_values(distances, binned, bin_index, tests, generator, normals=normals)
    joint = _joint_intervals(intervals, distances, sizes, plan, weighted=sample.weighted) if enough else {}
    radii = (None, None, None) if sample.weighted else _radii(sizes, plan)
    sides = distances.left_scores or (scores, left), (scores, right)
    means = distances.means or (float(shares(left) @ scores), float(shares(right) @ scores))
    witnesses = _witness_curves(list(distances.values), binned) if plan.witnesses and not decided else {}
    return [
        Finding(
            compared.attribute.name,
            part.criterion,
            part.within,
            compared.groups,
            sizes,
            metric,
            value,
            bracket=distances.brackets.get(metric),
            unbiased=None if sample.weighted else unbiased_distance(metric, sides, value),
            interval=intervals.alone.get(metric),
            **_certified(metric, distances, radii, plan.score_range if part.of_predictions else None),
            p_value=p_values.get(metric),
            witness=witnesses.get(metric),
            enough=enough,
            joint_interval=joint.get(metric),
            at=distances.gap.score,
            shares=distances.gap.shares,
            means=means,
            span=float(scores[-1] - scores[0]),
            decided=decided,
            group_values=compared.group_values,
            conditions=part.conditions,
        )
        for metric, value in distances.values.items()
    ]


def _intervals_and_p_values(
    distances: PairDistances,
    binned: TwoSamples,
    bin_index: Integers,
    plan: Plan,
    generator: np.random.Generator,
    *,
    normals: Floats | None,
) -> tuple[Intervals, dict[str, float | None]]:
    """Intervals that include the values, and p-values by metric; for weighted samples, only with group probabilities.

    ``binned`` scores are merged into fewer bins again, which is not valid for all metrics.
    """
    exact = len(distances.pair.values) <= plan.resolution
    metrics = [metric for metric in plan.named_metrics() if exact or facts(metric).survives_bins]
    intervals = Intervals({}, {})
    p_values: dict[str, float | None] = {}
    if plan.resamples and metrics:
        rows = None if distances.rows is None else distances.rows._replace(place=bin_index[distances.rows.place])
        fine = binned._replace(values=bin_means(distances.pair, bin_index))
        few, few_rows = merge_scores(fine, rows, plan.resolution)
        resampled = bootstrap(
            few,
            metrics,
            confidence=plan.confidence,
            resamples=plan.resamples,
            generator=generator,
            rows=few_rows,
            comparisons=plan.comparisons,
            normals=normals,
        )
        alone, jointly = (_extend_to_values(kind, distances.values) for kind in (resampled.alone, resampled.jointly))
        intervals = Intervals(alone, jointly)
        p_values = dict(resampled.p_values) if plan.permutations else {}
    if plan.permutations and metrics and distances.rows is None:
        # If scores are merged anyway, fewer of them save draws and lose no power.
        max_bins = plan.resolution if exact else max(_COARSEST, plan.resolution // _COARSER)
        permuted = distances.permuted(max_bins)
        p_values = permutation_p_values(
            permuted.pair, metrics, permutations=plan.permutations, generator=generator, shared=permuted.shared
        )
    return intervals, p_values


def _extend_to_values(intervals: Mapping[str, Interval], values: Mapping[str, float]) -> dict[str, Interval]:
    """Extend the interval of each metric to include its value."""
    return {
        metric: Interval(min(interval.low, values[metric]), max(interval.high, values[metric]))
        for metric, interval in intervals.items()
    }


def _joint_intervals(
    intervals: Intervals, distances: PairDistances, sizes: tuple[int, int], plan: Plan, *, weighted: bool
) -> dict[str, Interval]:
    """Simultaneous intervals of all comparisons.

    Without resamples, the interval of the Kolmogorov distance is valid for any distributions. Resamples of the training
    rows give no information about other rows.
    """
    joint = dict(intervals.jointly) if plan.vc_dimension is None else {}
    if "kolmogorov" not in distances.values or "kolmogorov" in joint or weighted:
        return joint
    alone, _, paper = _radii(sizes, replace(plan, confidence=plan.joint_confidence))
    radius, value = alone if plan.vc_dimension is None else paper, distances.values["kolmogorov"]
    bracket = distances.brackets.get("kolmogorov", Interval(value, value))
    if radius is not None:
        joint["kolmogorov"] = Interval(max(0.0, bracket.low - radius), min(1.0, bracket.high + radius))
    return joint


def _certified(
    metric: str, distances: PairDistances, radii: Sequence[float | None], ends: tuple[float, float] | None
) -> dict[str, Any]:
    """Upper bounds of a distance whose distribution functions have at most these errors."""
    width = None if ends is None else ends[1] - ends[0]
    largest = distances.brackets[metric].high if metric in distances.brackets else distances.values[metric]
    bounds = [None if radius is None else certified_distance(metric, largest, radius, width=width) for radius in radii]
    return dict(zip(("certified", "certified_jointly", "paper_bound"), bounds, strict=True))


def _radii(sizes: tuple[int, int], plan: Plan) -> tuple[float | None, float | None, float | None]:
    """The total error of both distribution functions: for one comparison, for all jointly, and by the paper's bound.

    Rows that trained the model prove only statements about all models of its class at once. A linear one stays in its
    class at any threshold: so the radius around decisions is one around distribution functions.
    """
    dimension = plan.vc_dimension or 1
    by_dimension = [vc_radius(size, confidence=plan.confidence, dimension=dimension) for size in sizes]
    paper = [radius for radius in by_dimension if radius is not None]
    bound = sum(paper) if len(paper) == len(sizes) else None
    if plan.vc_dimension is not None:
        return None, None, bound
    alone = sum(dkw_radius(size, confidence=plan.confidence) for size in sizes)
    jointly = sum(dkw_radius(size, confidence=plan.confidence, cdfs=max(2, plan.cdfs)) for size in sizes)
    return alone, jointly, bound


def _witness_curves(metrics: Sequence[str], pair: TwoSamples) -> dict[str, WitnessCurve]:
    """The utilities that show the gap, where known, on at most 101 scores that include the one of the largest gap."""
    grid = np.union1d(np.linspace(pair.values[0], pair.values[-1], _GRID), largest_gap(pair).score)
    utilities = {metric: witness_utility(metric, pair) for metric in metrics}
    return {
        metric: WitnessCurve(grid.tolist(), utility(grid).tolist(), utility.expected)
        for metric, utility in utilities.items()
        if utility is not None
    }
