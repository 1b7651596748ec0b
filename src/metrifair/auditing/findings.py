"""The findings of a comparison: distances with intervals, p-values, certificates and witnesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from metrifair.auditing.measure.cluster_errors import ClusterRows
from metrifair.auditing.measure.group_pairs import GroupPair
from metrifair.auditing.measure.measured_pairs import PairDistances
from metrifair.auditing.measure.permutation_tests import (
    cluster_p_values,
    permutation_p_values,
)
from metrifair.auditing.measure.plug_in import (
    largest_gap,
    shares,
    unbiased_distance,
    witness_utility,
)
from metrifair.auditing.measure.r2_correction import UnmixedPair
from metrifair.auditing.measure.resampling import (
    Intervals,
    bootstrap,
    merge_scores,
)
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.measure.two_samples import (
    TwoSamples,
    bin_means,
    bins,
    in_pooled_bins,
    merge_bins,
    pooled_bins,
)
from metrifair.auditing.records import (
    Finding,
    WitnessCurve,
    independent_sizes,
)
from metrifair.auditing.request import Plan
from metrifair.figures.certificates import (
    certified_distance,
    dkw_radius,
)
from metrifair.figures.intervals import Interval
from metrifair.metrics.registry import facts
from metrifair.support.arrays import Floats, Integers

COARSEST = 64
# times fewer scores for p-values than for intervals, where they are too many for either
_COARSER = 8
# times as many scores for a witness curve as for resampling; its 101 points show no more
_FINER = 8
_GRID = 100


def pair_findings(
    compared: GroupPair,
    distances: PairDistances,
    sample: AuditSample,
    plan: Plan,
    generator: np.random.Generator,
    *,
    normals: Floats | None,
) -> list[Finding]:
    """The findings of one comparison, one for each metric; ``normals`` are those of
    ``bootstrap``.
    """
    part = compared.part
    sizes = compared.sizes
    enough = min(independent_sizes(compared)) >= plan.min_group_size
    decided = part.of_predictions and part.scores.are_decisions
    # There may be many scores: they are binned once, and every coarser table is made from these
    # bins.
    bin_index = bins(distances.pair, _FINER * plan.resolution)
    binned = merge_bins(distances.pair, bin_index)
    clustered = isinstance(distances.rows, ClusterRows)
    weighted = sample.units.weighted
    # No p-value of a group below the minimum size, nor of clusters whose rows have weights.
    tests = plan
    if not enough or (weighted and clustered):
        tests = replace(plan, permutations=0)
    intervals, p_values = _intervals_and_p_values(
        distances, binned, bin_index, tests, generator, normals=normals
    )
    # Certificates and unbiased estimates are those of independent rows that count equally.
    equal = not weighted and not clustered
    joint: dict[str, Interval] = {}
    if enough and not compared.unknown_name:
        joint = _joint_intervals(intervals, distances, sizes, plan, equal=equal)
    radii = _radii(sizes, plan) if equal else (None, None)
    scores, left, right = distances.pair
    sides = distances.left_scores or (scores, left), (scores, right)
    score_range = None
    if part.of_predictions:
        score_range = plan.score_range
    witnesses = {}
    if plan.witnesses and not decided:
        witnesses = _witness_curves(list(distances.values), binned)
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
            unbiased=unbiased_distance(metric, sides, value) if equal else None,
            interval=intervals.alone.get(metric),
            **_certified(metric, distances, radii, score_range),
            p_value=p_values.get(metric),
            witness=witnesses.get(metric),
            enough=enough,
            unknown_name=compared.unknown_name,
            joint_interval=joint.get(metric),
            at=distances.gap.score,
            shares=distances.gap.shares,
            means=_means(distances),
            span=float(scores[-1] - scores[0]),
            decided=decided,
            group_values=compared.group_values,
            conditions=part.conditions,
            clusters=compared.clusters,
        )
        for metric, value in distances.values.items()
    ]


def _means(distances: PairDistances) -> tuple[float, float]:
    """The mean scores of both sides."""
    if distances.means:
        return distances.means
    scores, left, right = distances.pair
    return float(shares(left) @ scores), float(shares(right) @ scores)


def _intervals_and_p_values(
    distances: PairDistances,
    binned: TwoSamples,
    bin_index: Integers,
    plan: Plan,
    generator: np.random.Generator,
    *,
    normals: Floats | None,
) -> tuple[Intervals, dict[str, float | None]]:
    """Intervals that include the values, and p-values by metric.

    Weighted samples have p-values only with group probabilities, by resamples. Those of clusters
    are the larger ones of resamples and of permutations, if whole clusters can be permuted.

    ``binned`` scores are merged into fewer bins again, which is not valid for all metrics.
    """
    exact = len(distances.pair.values) <= plan.resolution
    metrics = [metric for metric in plan.named_metrics() if exact or facts(metric).survives_bins]
    intervals = Intervals({}, {})
    p_values: dict[str, float | None] = {}
    if plan.resamples and metrics:
        rows = None
        if distances.rows is not None:
            rows = distances.rows._replace(place=bin_index[distances.rows.place])
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
        alone, jointly = (
            _extend_to_values(kind, distances.values)
            for kind in (resampled.alone, resampled.jointly)
        )
        intervals = Intervals(alone, jointly)
        p_values = {}
        if plan.permutations:
            p_values = dict(resampled.p_values)
    # If scores are merged anyway, fewer of them save draws and lose no power.
    max_bins = plan.resolution if exact else max(COARSEST, plan.resolution // _COARSER)
    if plan.permutations and metrics and isinstance(distances.rows, ClusterRows):
        permuted_p_values = _cluster_p_values(
            distances, metrics, plan, generator, max_bins=max_bins
        )
        p_values = {
            metric: _larger(p_values.get(metric), permuted_p_values.get(metric))
            for metric in metrics
        }
    elif plan.permutations and metrics and distances.rows is None:
        permuted = distances.permuted(max_bins)
        p_values = permutation_p_values(
            permuted.pair,
            metrics,
            permutations=plan.permutations,
            generator=generator,
            shared=permuted.shared,
        )
    return intervals, p_values


def mixture_intervals(
    compared: GroupPair,
    plan: Plan,
    generator: np.random.Generator,
    mixture: UnmixedPair,
    values: Mapping[str, float],
) -> Intervals:
    """The intervals of the distances between two mixtures of groups, as of the groups
    themselves.
    """
    pair = mixture.pair
    rows = mixture.rows
    distances = PairDistances(
        pair,
        partial(in_pooled_bins, pair),
        largest_gap(pair),
        values,
        rows=rows,
    )
    bin_index = bins(pair, _FINER * plan.resolution)
    untested = replace(plan, permutations=0)
    intervals, _ = _intervals_and_p_values(
        distances,
        merge_bins(pair, bin_index),
        bin_index,
        untested,
        generator,
        normals=None,
    )
    joint = {}
    if min(compared.sizes) >= plan.min_group_size:
        joint = dict(intervals.jointly)
    return Intervals(intervals.alone, joint)


def _cluster_p_values(
    distances: PairDistances,
    metrics: Sequence[str],
    plan: Plan,
    generator: np.random.Generator,
    *,
    max_bins: int,
) -> dict[str, float | None]:
    """P-values by permutations of whole clusters; none if clusters have rows of both groups."""
    pair = distances.pair
    rows = distances.rows
    if not isinstance(rows, ClusterRows) or rows.mixed:
        return {}
    pooled = pooled_bins(pair.values, pair.left + pair.right, max_bins)
    merged = merge_bins(pair, pooled.bin_index)._replace(values=pooled.values)
    rows = rows._replace(place=pooled.bin_index[rows.place])
    return cluster_p_values(
        merged,
        metrics,
        permutations=plan.permutations,
        generator=generator,
        rows=rows,
    )


def _larger(first: float | None, second: float | None) -> float | None:
    """The larger one of two p-values, each of which may be unknown."""
    return max((value for value in (first, second) if value is not None), default=None)


def _extend_to_values(
    intervals: Mapping[str, Interval], values: Mapping[str, float]
) -> dict[str, Interval]:
    """Extend the interval of each metric to include its value."""
    return {
        metric: Interval(
            min(interval.low, values[metric]),
            max(interval.high, values[metric]),
        )
        for metric, interval in intervals.items()
    }


def _joint_intervals(
    intervals: Intervals,
    distances: PairDistances,
    sizes: tuple[int, int],
    plan: Plan,
    *,
    equal: bool,
) -> dict[str, Interval]:
    """Simultaneous intervals of all comparisons.

    Without resamples, the interval of the Kolmogorov distance is valid for any distributions, if
    rows are independent and count equally (``equal``).
    """
    joint = dict(intervals.jointly)
    if "kolmogorov" not in distances.values or "kolmogorov" in joint or not equal:
        return joint
    radius, _ = _radii(sizes, replace(plan, confidence=plan.joint_confidence))
    value = distances.values["kolmogorov"]
    bracket = distances.brackets.get("kolmogorov", Interval(value, value))
    joint["kolmogorov"] = Interval(max(0.0, bracket.low - radius), min(1.0, bracket.high + radius))
    return joint


def _certified(
    metric: str,
    distances: PairDistances,
    radii: Sequence[float | None],
    ends: tuple[float, float] | None,
) -> dict[str, Any]:
    """Upper bounds of a distance whose distribution functions have at most these errors."""
    width = None
    if ends is not None:
        width = ends[1] - ends[0]
    if metric in distances.brackets:
        largest = distances.brackets[metric].high
    else:
        largest = distances.values[metric]
    bounds = [
        None if radius is None else certified_distance(metric, largest, radius, width=width)
        for radius in radii
    ]
    return dict(zip(("certified", "certified_jointly"), bounds, strict=True))


def _radii(sizes: tuple[int, int], plan: Plan) -> tuple[float, float]:
    """The total error of both distribution functions: for one comparison, and for all jointly."""
    alone = sum(dkw_radius(size, confidence=plan.confidence) for size in sizes)
    jointly = sum(
        dkw_radius(size, confidence=plan.confidence, cdfs=max(2, plan.cdfs)) for size in sizes
    )
    return alone, jointly


def _witness_curves(metrics: Sequence[str], pair: TwoSamples) -> dict[str, WitnessCurve]:
    """The utilities that show the gap, where known, on at most 101 scores that include the one
    of the largest gap.
    """
    grid = np.union1d(
        np.linspace(pair.values[0], pair.values[-1], _GRID),
        largest_gap(pair).score,
    )
    utilities = {metric: witness_utility(metric, pair) for metric in metrics}
    return {
        metric: WitnessCurve(grid.tolist(), utility(grid).tolist(), utility.expected)
        for metric, utility in utilities.items()
        if utility is not None
    }
