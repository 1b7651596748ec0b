"""One comparison to findings: numbers, bounds, intervals, p-values and words, by metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metrifair.auditing.atoms import bins, coarsened, distances_of, largest_gap, unbiased_distance
from metrifair.auditing.comparing import Compared
from metrifair.auditing.explaining import meaning_of, sentence_of, witness_curve
from metrifair.auditing.intervals import RESOLUTION, bootstrap, permutation_p_values, thinned
from metrifair.certificates import certified_distance, dkw_radius, vc_radius
from metrifair.metrics.registry import facts
from metrifair.results import Finding, Interval

_DRAWS = 100_000  # atoms to resample in all comparisons together
_COARSEST = 64
_FINER = 8  # times as many atoms for a witness curve as for resampling; its 101 points show no more
_MOST_CURVES = 1_000  # comparisons whose witnesses are drawn: of more, nobody looks at all, and files grow


@dataclass(frozen=True)
class Plan:
    """What is asked of every comparison of an audit."""

    metrics: Sequence[str]
    confidence: float = 0.95
    resamples: int = 500  # 0: no intervals
    permutations: int = 999  # 0: no p-values
    cdfs: int = 2  # distribution functions of the whole audit
    width: float | None = None  # of the interval that holds all scores, seen or not; None: not known
    resolution: int = RESOLUTION  # atoms that resampling tells apart
    witnesses: bool = True  # whether the utilities that show the gaps are drawn


def resolution_for(comparisons: int) -> int:
    """How many atoms resampling may tell apart, so that many comparisons take minutes, not hours.

    >>> resolution_for(1), resolution_for(435), resolution_for(10_000)
    (2048, 229, 64)
    """
    return int(np.clip(_DRAWS // max(1, comparisons), _COARSEST, RESOLUTION))


def plan_for(plan: Plan, *, comparisons: int, cdfs: int) -> Plan:
    """The plan for an audit of so many comparisons, which look at so many distribution functions."""
    return replace(
        plan,
        cdfs=max(2, cdfs),
        resolution=resolution_for(comparisons),
        witnesses=comparisons <= _MOST_CURVES,
    )


def findings_of(compared: Compared, plan: Plan, generator: np.random.Generator) -> list[Finding]:
    """The findings of one comparison, one for each metric."""
    found, weighted = compared.atoms, bool(compared.rows)
    values = {name: float(value) for name, value in distances_of(*found, plan.metrics).items()}
    intervals, p_values = _sampled(compared, values, plan, generator)
    gap = largest_gap(found)
    drawn = coarsened(found, bins(found, _FINER * plan.resolution))
    alone, jointly, paper = (None, None, None) if weighted else radii(compared.sizes, plan)
    return [
        Finding(
            compared.attribute,
            compared.criterion,
            compared.within,
            compared.groups,
            compared.sizes,
            metric,
            value,
            unbiased=None if weighted else unbiased_distance(metric, found, value),
            interval=intervals.get(metric),
            certified=_bound(metric, value, alone, plan),
            certified_jointly=_bound(metric, value, jointly, plan),
            paper_bound=_bound(metric, value, paper, plan),
            p_value=p_values.get(metric),
            witness=witness_curve(metric, drawn) if plan.witnesses else None,
            sentence=sentence_of(metric, compared.groups, found),
            meaning=meaning_of(metric, value, compared.groups, gap, float(found.values[-1] - found.values[0])),
        )
        for metric, value in values.items()
    ]


def _sampled(
    compared: Compared, values: Mapping[str, float], plan: Plan, generator: np.random.Generator
) -> tuple[dict[str, Interval], dict[str, float | None]]:
    """Intervals, which hold the values, and p-values by metric; no p-values for weighted samples."""
    few, rows = thinned(compared.atoms, compared.rows, plan.resolution)
    exact = len(few.values) == len(compared.atoms.values)
    metrics = [metric for metric in plan.metrics if exact or facts(metric).survives_bins]
    intervals: dict[str, Interval] = {}
    p_values: dict[str, float | None] = {}
    if plan.resamples and metrics:
        found = bootstrap(
            few, metrics, confidence=plan.confidence, resamples=plan.resamples, generator=generator, rows=rows
        )
        intervals = {
            metric: Interval(min(one.low, values[metric]), max(one.high, values[metric]))
            for metric, one in found.items()
        }
    if plan.permutations and metrics and not rows:
        p_values = permutation_p_values(few, metrics, permutations=plan.permutations, generator=generator)
    return intervals, p_values


def radii(sizes: tuple[int, int], plan: Plan) -> tuple[float, float, float | None]:
    """How far both distribution functions together may be off: alone, jointly with all others, by the paper."""
    alone = sum(dkw_radius(size, confidence=plan.confidence) for size in sizes)
    jointly = sum(dkw_radius(size, confidence=plan.confidence, cdfs=plan.cdfs) for size in sizes)
    by_dimension = [vc_radius(size, confidence=plan.confidence) for size in sizes]
    paper = [radius for radius in by_dimension if radius is not None]
    return alone, jointly, sum(paper) if len(paper) == len(sizes) else None


def _bound(metric: str, value: float, radius: float | None, plan: Plan) -> float | None:
    return None if radius is None else certified_distance(metric, value, radius, width=plan.width)
