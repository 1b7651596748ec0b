"""One comparison to findings: numbers, bounds, intervals, p-values and words, by metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from metrifair.auditing.distribution import (
    Gap,
    TwoSamples,
    bins,
    coarsened,
    distances_of,
    largest_gap,
    mean_scores,
    unbiased_distance,
    utility_of,
)
from metrifair.auditing.resampling import RESOLUTION, Rows, bootstrap, permutation_p_values, thinned
from metrifair.auditing.sample import Compared, Sample
from metrifair.certificates import certified_distance, dkw_radius, vc_radius
from metrifair.metrics.registry import facts
from metrifair.report.audit.words import gap_sentence, mean_sentence, meaning_of
from metrifair.results import Finding, Interval, WitnessCurve

_DRAWS = 100_000  # scores to resample in all comparisons together
_COARSEST = 64
_FINER = 8  # times as many scores for a witness curve as for resampling; its 101 points show no more
_MOST_CURVES = 1_000  # comparisons whose witnesses are drawn: of more, nobody looks at all, and files grow
_GRID = 100


@dataclass(frozen=True)
class Plan:
    """What is asked of every comparison of an audit."""

    metrics: tuple[str, ...]
    confidence: float = 0.95
    resamples: int = 500  # 0: no intervals
    permutations: int = 999  # 0: no p-values
    comparisons: int = 1  # in the whole audit
    cdfs: int = 2  # distribution functions of the whole audit
    width: float | None = None  # of the interval that holds all predictions, seen or not; None: not known

    @property
    def resolution(self) -> int:
        """How many scores resampling tells apart, so that many comparisons take minutes, not hours.

        >>> Plan((), comparisons=1).resolution, Plan((), comparisons=435).resolution
        (2048, 229)
        """
        return int(np.clip(_DRAWS // max(1, self.comparisons), _COARSEST, RESOLUTION))

    @property
    def witnesses(self) -> bool:
        """Whether the utilities that show the gaps are drawn."""
        return self.comparisons <= _MOST_CURVES


class Proven(NamedTuple):
    """What counting a file proves of a comparison: where the gap is largest, and bounds of each distance."""

    gap: Gap
    brackets: Mapping[str, Interval]


def findings_of(
    compared: Compared, sample: Sample, plan: Plan, generator: np.random.Generator, proven: Proven | None = None
) -> list[Finding]:
    """The findings of one comparison, one for each metric."""
    sides = compared.sides
    found, rows = compared.two_samples(sides)
    brackets: Mapping[str, Interval] = {}
    if proven is None:
        gap = largest_gap(found)
        values = {name: float(value) for name, value in distances_of(*found, plan.metrics).items()}
    else:
        gap, brackets = proven
        found = _split_at(found, gap, whole=not sample.weighted)
        values = {name: one.low / 2 + one.high / 2 for name, one in brackets.items()}
    sizes = sample.size(sides[0]), sample.size(sides[1])
    intervals, p_values = _sampled(found, rows, values, plan, generator)
    drawn = coarsened(found, bins(found, _FINER * plan.resolution)) if plan.witnesses else None
    alone, jointly, paper = (None, None, None) if sample.weighted else _radii(sizes, plan)
    span, width = float(found.values[-1] - found.values[0]), plan.width if compared.part.of_predictions else None
    where = gap_sentence(compared.groups, gap.score, gap.shares, span)
    means = f"{mean_sentence(compared.groups, mean_scores(found), span)} {where}"

    def bound(metric: str, radius: float | None) -> float | None:
        largest = brackets[metric].high if metric in brackets else values[metric]
        return None if radius is None else certified_distance(metric, largest, radius, width=width)

    return [
        Finding(
            compared.attribute.name,
            compared.part.criterion,
            compared.part.within,
            compared.groups,
            sizes,
            metric,
            value,
            bracket=brackets.get(metric),
            unbiased=None if sample.weighted else unbiased_distance(metric, found, value),
            interval=intervals.get(metric),
            certified=bound(metric, alone),
            certified_jointly=bound(metric, jointly),
            paper_bound=bound(metric, paper),
            p_value=p_values.get(metric),
            witness=None if drawn is None else _witness_curve(metric, drawn),
            sentence=means if facts(metric).compares_means else where,
            meaning=meaning_of(metric, value, compared.groups, gap.score, span),
        )
        for metric, value in values.items()
    ]


def _split_at(found: TwoSamples, gap: Gap, *, whole: bool) -> TwoSamples:
    """The same with the bin that holds the largest gap cut in two there, where shares are exact."""
    at = int(np.searchsorted(found.values, gap.score))
    if at == len(found.values) or found.values[at] == gap.score:
        return found
    halves = []
    for side, share in zip(found[1:], gap.shares, strict=True):
        first = np.clip(share * side.sum() - side[:at].sum(), 0.0, side[at])
        first = np.rint(first) if whole else first
        halves.append(np.concatenate([side[:at], [first, side[at] - first], side[at + 1 :]]))
    used = (halves[0] > 0) | (halves[1] > 0)
    return TwoSamples(np.insert(found.values, at, gap.score)[used], halves[0][used], halves[1][used])


def _sampled(
    found: TwoSamples,
    rows: tuple[Rows, ...],
    values: Mapping[str, float],
    plan: Plan,
    generator: np.random.Generator,
) -> tuple[dict[str, Interval], dict[str, float | None]]:
    """Intervals, which hold the values, and p-values by metric; no p-values for weighted samples."""
    intervals: dict[str, Interval] = {}
    p_values: dict[str, float | None] = {}
    if not plan.resamples and not plan.permutations:
        return intervals, p_values
    few, few_rows = thinned(found, rows, plan.resolution)
    exact = len(few.values) == len(found.values)
    metrics = [metric for metric in plan.metrics if exact or facts(metric).survives_bins]
    if plan.resamples and metrics:
        drawn = bootstrap(
            few, metrics, confidence=plan.confidence, resamples=plan.resamples, generator=generator, rows=few_rows
        )
        intervals = {
            metric: Interval(min(one.low, values[metric]), max(one.high, values[metric]))
            for metric, one in drawn.items()
        }
    if plan.permutations and metrics and not rows:
        p_values = permutation_p_values(few, metrics, permutations=plan.permutations, generator=generator)
    return intervals, p_values


def _radii(sizes: tuple[int, int], plan: Plan) -> tuple[float, float, float | None]:
    """How far both distribution functions together may be off: alone, jointly with all others, by the paper."""
    alone = sum(dkw_radius(size, confidence=plan.confidence) for size in sizes)
    jointly = sum(dkw_radius(size, confidence=plan.confidence, cdfs=max(2, plan.cdfs)) for size in sizes)
    by_dimension = [vc_radius(size, confidence=plan.confidence) for size in sizes]
    paper = [radius for radius in by_dimension if radius is not None]
    return alone, jointly, sum(paper) if len(paper) == len(sizes) else None


def _witness_curve(metric: str, found: TwoSamples) -> WitnessCurve | None:
    """The utility that shows the gap, on at most 101 scores that include the one of the largest gap; None without."""
    utility = utility_of(metric, found)
    if utility is None:
        return None
    grid = np.union1d(np.linspace(found.values[0], found.values[-1], _GRID), largest_gap(found).score)
    return WitnessCurve(grid.tolist(), utility(grid).tolist(), utility.expected)
