"""The worst cut of a number, and the dependence of scores on it: rows up to a cut are compared with
rows above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from metrifair.auditing.measure.attribute_bands import Bands, band_table
from metrifair.auditing.measure.band_tables import BAND_METRICS, BandTable, p_values
from metrifair.auditing.measure.plug_in import LargestGap, largest_gap
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.measure.two_samples import TwoSamples
from metrifair.auditing.records import Distribution, Finding
from metrifair.auditing.request import Plan
from metrifair.figures.certificates import dkw_radius
from metrifair.figures.curves import make_curves
from metrifair.figures.intervals import FEWEST_DEPENDENT, Interval
from metrifair.metrics.dependence import dependence_and_correlation
from metrifair.support.arrays import Floats

_EXACT = 2**20  # rows up to which the dependence is that of every single one


class WorstCut(NamedTuple):
    """A number within a part of an audit: the cut with the largest gap, and the figures there."""

    findings: list[Finding]
    distribution: Distribution | None


class _Cut(NamedTuple):
    """The cut with the largest gap between the distribution functions of the scores below and
    above.
    """

    number: int
    gap: LargestGap
    sides: TwoSamples
    distances: Sequence[float] = ()  # the distances at all cuts

    @property
    def size(self) -> float:
        """The Kolmogorov distance."""
        return abs(self.gap.shares[0] - self.gap.shares[1])


def _scan_cuts(bands: Bands) -> _Cut:
    """The cut with the largest gap between all scores on both sides, among ties the lowest."""
    scores = bands.part.scores
    gaps = list[float]()
    upto = np.cumsum(scores.at(bands.units), dtype=np.float64)
    below = np.zeros(len(upto))
    for counts in islice(bands.counts(scores), len(bands.cuts)):
        below = below + counts
        left = np.cumsum(below, dtype=np.float64)
        right = upto - left
        left /= left[-1]  # in place: there may be millions of scores, and a hundred cuts
        right /= right[-1]
        left -= right
        gaps.append(float(np.abs(left, out=left).max()))
    best = 0
    for number, gap in enumerate(gaps):
        if gap > gaps[best] + 1e-12:
            best = number
    return _cut_at(bands, best)._replace(distances=gaps)


def _cut_at(bands: Bands, number: int) -> _Cut:
    """The cut of this number."""
    scores = bands.part.scores
    total = scores.at(bands.units)
    below = scores.at(bands.units[bands.below(number)])
    used = total > 0
    counts = below[used].astype(np.float64)
    sides = TwoSamples(scores.values[used], counts, total[used].astype(np.float64) - counts)
    return _Cut(number, largest_gap(sides), sides)


def worst_cut(
    sample: AuditSample,
    bands: Bands,
    plan: Plan,
    generator: np.random.Generator,
) -> WorstCut:
    """The findings of a number: the worst cut by each metric and the dependence, with
    intervals and p-values.
    """
    if not len(bands.cuts):
        return WorstCut([], None)
    rows, levels = bands.levels()
    cut = _scan_cuts(bands)
    table = band_table(bands, levels)
    at = {
        "kolmogorov": cut,
        "wasserstein": _cut_at(bands, int(table.gaps().wasserstein.argmax())),
        "energy": cut,
    }
    observed, correlation = _observed(sample, bands, cut, table)
    p_value_by_metric: dict[str, float] = {}
    clustered = bands.rows_in_clusters()
    if plan.permutations and not sample.units.weighted and clustered is not None:
        p_value_by_metric = clustered.p_values(table, plan.permutations, generator)
    elif plan.permutations and not sample.units.weighted:
        p_value_by_metric = p_values(
            table, sample.units.size(bands.units), plan.permutations, generator
        )
    interval, jointly = _dependence_intervals(
        sample,
        bands,
        plan,
        observed=observed,
        p_value_by_metric=p_value_by_metric,
        generator=generator,
    )
    evidence: dict[str, dict[str, Any]] = {
        metric: {"p_value": p_value_by_metric.get(metric)} for metric in BAND_METRICS
    }
    evidence["energy"] |= {"interval": interval, "correlation": correlation}
    evidence["energy"]["joint_interval"] = jointly
    if not sample.units.weighted and clustered is None:
        evidence["kolmogorov"] |= _certified_bounds(bands, rows, cut, plan)
    findings = [
        _cut_finding(
            sample,
            bands,
            at[metric],
            plan,
            metric=metric,
            value=observed[metric],
            **evidence[metric],
        )
        for metric in plan.named_metrics()
        if metric in BAND_METRICS
    ]
    return WorstCut(findings, _halves(sample, bands, cut, plan))


def _cut_finding(
    sample: AuditSample, bands: Bands, cut: _Cut, plan: Plan, **evidence: Any
) -> Finding:
    """The finding at a cut; tests and joint intervals need enough rows."""
    sizes = bands.sizes(sample, cut.number)
    clusters = bands.cluster_sizes(cut.number)
    # The dependence is about all rows, not about a cut.
    all_rows = sample.independent(bands.units)
    smaller = min(sizes if clusters is None else clusters)
    enough = (all_rows if evidence["metric"] == "energy" else smaller) >= plan.min_group_size
    if not enough:
        evidence |= {"p_value": None, "joint_interval": None}
    scores = cut.sides.values
    return Finding(
        bands.attribute,
        bands.part.criterion,
        bands.part.within,
        bands.sides(cut.number),
        sizes,
        **evidence,
        cuts=len(bands.cuts),
        enough=enough,
        at=cut.gap.score,
        shares=cut.gap.shares,
        span=float(scores[-1] - scores[0]),
        cut=float(bands.cuts[cut.number]),
        group_values=(None, None),
        conditions=bands.part.conditions,
        clusters=clusters,
    )


def _halves(sample: AuditSample, bands: Bands, cut: _Cut, plan: Plan) -> Distribution | None:
    """The distributions on both sides of the worst cut; None of decisions and of other scores."""
    part = bands.part
    groups = bands.sides(cut.number)
    if not part.of_predictions or part.scores.are_decisions:
        return None
    halves = dict(zip(groups, cut.sides[1:], strict=True))
    sizes = dict(zip(groups, bands.sizes(sample, cut.number), strict=True))
    curves = make_curves(cut.sides.values, halves, sizes, plan.score_range or sample.scores.ends)
    return Distribution(bands.attribute, part.within, curves)


def _certified_bounds(bands: Bands, rows: Floats, cut: _Cut, plan: Plan) -> dict[str, Any]:
    """Bounds of the largest true gap at any cut: an upper one, one valid for all comparisons, and
    both ends.

    They are valid while the distribution functions on both sides of all cuts are near the true
    ones.
    """
    below = np.cumsum(rows)[:-1]
    total = float(rows.sum())

    def bounds(functions: int, confidence: float) -> Interval:
        radii = [
            sum(
                dkw_radius(int(size), confidence=confidence, cdfs=functions)
                for size in (left, total - left)
            )
            for left in below
        ]
        low = float(np.max(np.subtract(cut.distances, radii)))
        high = float(np.max(np.add(cut.distances, radii)))
        return Interval(max(0.0, low), min(1.0, high))

    cdfs = 2 * len(bands.cuts)
    return {
        "certified": bounds(cdfs, plan.confidence).high,
        "certified_jointly": bounds(plan.cdfs, plan.confidence).high,
        "joint_interval": bounds(cdfs, plan.joint_confidence),
    }


def _dependence_intervals(
    sample: AuditSample,
    bands: Bands,
    plan: Plan,
    *,
    observed: Mapping[str, float],
    p_value_by_metric: Mapping[str, float],
    generator: np.random.Generator,
) -> Sequence[Interval | None]:
    """Intervals of the dependence: of this comparison, and simultaneous over all; None if rows
    are too few.
    """
    if not plan.resamples or sample.independent(bands.units) < FEWEST_DEPENDENT:
        return None, None
    fine = bands.with_tails()
    table = band_table(fine, fine.levels()[1])
    clustered = fine.rows_in_clusters()
    if clustered is not None:
        resampled = clustered.resampled(table, plan.resamples, generator)
    else:
        effective = float(
            sample.units.size(bands.units)
        )  # effective number of rows of equal weight
        if sample.units.weight is not None and sample.units.rows is None:
            weight = sample.units.weight[bands.units]
            effective = float(weight.sum() ** 2 / (weight**2).sum())
        resampled = table.resampled(effective, plan.resamples, generator)
    # If no p-value can be small enough for the higher confidence, the smallest possible one is the
    # limit.
    return [
        resampled.interval(
            observed["energy"],
            confidence=confidence,
            is_noise=p_value_by_metric.get("energy", 0.0)
            > max(1 - confidence, 1 / (1 + plan.permutations)),
        )
        for confidence in (plan.confidence, plan.joint_confidence)
    ]


def _observed(
    sample: AuditSample, bands: Bands, cut: _Cut, table: BandTable
) -> tuple[dict[str, float], float | None]:
    """The figures by metric, and the distance correlation if rows are in memory and have no
    weights.
    """
    units = bands.units
    values = bands.values
    amounts = bands.amounts
    observed = {metric: float(table.gaps().worst(metric)) for metric in BAND_METRICS} | {
        "kolmogorov": cut.size
    }
    correlation = None
    if sample.scores.prediction is None:  # out of core, an attribute has few levels
        observed["energy"] = float(band_table(*bands.by_value()).gaps().energy)
    elif len(units) <= _EXACT:
        scores = bands.part.scores
        row_scores = scores.values[scores.place[units]]
        observed["energy"], correlation = dependence_and_correlation(row_scores, values, amounts)
    return observed, correlation
