"""The dependence of scores on an attribute in an audit: the worst cut of it in two, and curves along it.

For a number, rows up to a cut are compared with rows above it; for names (``contrast="independence"``), each group with
the rest. All figures are computed from one table: the number of rows in each band of the attribute and at each score.
With the joint distribution function C and its margins F (of scores) and G (of the attribute), the gap between
rows up to a cut and above it is (C - F G) / (G (1 - G)), and the squared distance covariance 4 x the integral of
(C - F G)^2 over both; of names the same with C and G of each group by itself, and twice the sum over groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.distribution import LargestGap, TwoSamples, bin_means, bins, largest_gap
from metrifair.auditing.records import REST, AlongNumber, Distribution, Finding
from metrifair.auditing.request import Plan
from metrifair.auditing.sample import AuditSample, Part
from metrifair.figures.certificates import dkw_radius
from metrifair.figures.curves import make_curves
from metrifair.figures.intervals import FEWEST_DEPENDENT, Interval
from metrifair.metrics.dependence import dependence_and_correlation
from metrifair.problem.bands import candidate_cuts, quantile_cuts
from metrifair.problem.cells import rows_by_cell
from metrifair.problem.values import Value, band_names, canonical_values, number_name
from metrifair.support.arrays import Floats, Integers
from metrifair.support.special import student_quantile

METRICS = ("kolmogorov", "wasserstein", "energy")  # those that the table determines
SCORES = 1024  # distinct scores in the table
_MORE_SCORES = 128  # distinct scores if the attribute is permuted
_SHUFFLED = 2**16  # rows up to which the attribute itself is permuted
_FEW_CUTS, _FEW_SCORES = 20, 64  # of the smaller table that more rows, and the bootstrap, are drawn in
_FEWEST_SCORES = 24  # if one row after the other is left out
_BLOCK = 2**20  # numbers in the tables that are in memory at once


class Gaps(NamedTuple):
    """The distances at each cut (..., cuts) and the dependence (...) of tables (..., bands, scores)."""

    kolmogorov: Floats
    wasserstein: Floats
    energy: Floats  # the dependence

    def worst(self, metric: str) -> Floats:
        """The value of a finding: the largest over all cuts, or the dependence."""
        gaps: Floats = getattr(self, metric)
        return gaps if metric == "energy" else gaps.max(-1)


@dataclass(frozen=True, eq=False)
class BandTable:
    """Rows, or weights, by bands of the attribute (ascending) and by score."""

    counts: Floats  # (bands, scores)
    scores: Floats  # (scores,)
    levels: Floats  # (bands,): the mean of the attribute in each
    named: bool = False  # bands are groups, in no order
    compared: Integers | None = None  # the groups whose gaps are searched; None: all

    def scales(self, rows: Floats) -> Floats:
        """The factor from distance covariances to energy distances, for rows (..., bands) in the bands."""
        share = rows / rows.sum(-1, keepdims=True)
        far = 1 - np.eye(len(self.levels)) if self.named else np.abs(self.levels[:, None] - self.levels)
        sums = share @ far
        mean, squared = (share * sums).sum(-1), (share * (share @ far**2)).sum(-1)
        variance = squared - 2 * (share * sums**2).sum(-1) + mean**2
        usable = (variance > 0) & (mean > 0)
        product = np.where(usable, variance * mean, 1.0)
        return np.asarray(np.where(usable, 2 * squared / product, 0.0))

    def gaps(self, counts: Floats | None = None) -> Gaps:
        """The gaps of this table, or of others (..., bands, scores) with the same scores and levels."""
        counts = self.counts if counts is None else counts
        total = counts.sum((-2, -1), keepdims=True)
        below = np.cumsum(counts.sum(-2, keepdims=True), -1) / total
        sides = counts if self.named else np.cumsum(counts, -2)[..., :-1, :]
        joint = np.cumsum(sides, -1)
        joint /= total
        share = joint[..., -1:].copy()
        joint -= below * share
        differences, steps = np.abs(joint, out=joint), np.append(np.diff(self.scores), 0.0)
        inside = (share * (1 - share))[..., 0]
        inside[inside <= 1e-12] = np.inf
        gaps = [differences.max(-1) / inside, differences @ steps / inside]
        if self.compared is not None:
            gaps = [gap[..., self.compared] for gap in gaps]
        differences *= differences
        weights = np.full(len(self.levels), 2.0) if self.named else 4 * np.diff(self.levels)
        return Gaps(gaps[0], gaps[1], self.scales(counts.sum(-1)) * ((differences @ steps) @ weights))

    def coarser(self, cuts: int, scores: int) -> BandTable:
        """The table with at most so many cuts and scores; groups do not change."""
        bands = len(self.counts)
        few = self.named or bands <= cuts + 1
        band_index = np.arange(bands) if few else np.arange(bands) * (cuts + 1) // bands
        pooled = TwoSamples(self.scores, self.counts.sum(0), self.counts.sum(0))
        bin_index = bins(pooled, scores)
        counts = np.zeros((band_index[-1] + 1, bin_index[-1] + 1))
        np.add.at(counts, (band_index[:, None], bin_index[None, :]), self.counts)
        rows = self.counts.sum(1)
        levels = np.bincount(band_index, rows * self.levels) / np.bincount(band_index, rows)
        return BandTable(counts, bin_means(pooled, bin_index), levels, self.named, self.compared)

    def resampled(self, rows: float, resamples: int, generator: np.random.Generator) -> Resampled:
        """The root of the dependence in a table of fewer scores, in resamples of it, and with one row left out."""
        small = self.coarser(len(self.counts), _FEW_SCORES)
        rows = max(2, round(rows))
        draws = generator.multinomial(rows, (small.counts / small.counts.sum()).reshape(-1), size=resamples)
        roots = small.roots(draws.astype(np.float64).reshape(-1, *small.counts.shape))
        few = self.coarser(len(self.counts), _FEWEST_SCORES)
        share = few.counts / few.counts.sum()
        used, without = np.argwhere(share > 0), np.zeros(0)
        at_once = max(1, _BLOCK // share.size)
        for start in range(0, len(used), at_once):
            some = used[start : start + at_once]
            remaining = np.repeat(share[None], len(some), axis=0)
            remaining[np.arange(len(some)), some[:, 0], some[:, 1]] -= 1 / rows
            without = np.append(without, few.roots(remaining))
        weight = share[used[:, 0], used[:, 1]]
        error = np.sqrt((rows - 1) * (weight @ (without - weight @ without) ** 2))
        return Resampled(float(small.roots(small.counts)), roots, float(error), rows)

    def roots(self, counts: Floats) -> Floats:
        """The roots of the dependence in tables (..., bands, scores)."""
        return np.asarray(np.sqrt(np.maximum(self.gaps(counts).energy, 0.0)))


class Resampled(NamedTuple):
    """Roots of a dependence."""

    observed: float  # of the rows
    resamples: Floats
    error: float  # by leaving one row out at a time (the jackknife)
    rows: int

    def interval(self, value: float, *, confidence: float, is_noise: bool) -> Interval:
        """An interval of the dependence, on the scale of its root; it begins at 0 if the dependence may be noise.

        Resamples depend more on the attribute than the sample does, and the sample more than the population: this bias
        is subtracted from the lower end. The larger one of two standard errors is used: that of the bootstrap is too
        small if rows are few or the dependence is weak.
        """
        root = np.sqrt(max(value, 0.0))
        bias = max(0.0, float(self.resamples.mean()) - self.observed)
        error = max(self.error, float(self.resamples.std(ddof=1)))
        margin = student_quantile(self.rows - 1, (1 + confidence) / 2) * error
        low, high = max(0.0, root - bias - margin), root + margin
        if is_noise:
            low, high = 0.0, max(high, float(np.quantile(self.resamples, confidence)))
        return Interval(float(min(value, low**2)), float(max(value, high**2)))


def p_values(table: BandTable, rows: int, permutations: int, generator: np.random.Generator) -> dict[str, float]:
    """The p-value of permuted attributes with the same scores; the worst cut is searched every time."""
    used = table.coarser(*(len(table.counts), _MORE_SCORES) if rows <= _SHUFFLED else (_FEW_CUTS, _FEW_SCORES))
    observed = {metric: float(used.gaps().worst(metric)) for metric in METRICS}
    beyond, done = dict.fromkeys(METRICS, 1), 1  # including the observed attribute
    for tables in _permuted(used.counts, permutations, generator, shuffled=rows <= _SHUFFLED):
        gaps = used.gaps(tables)
        done += len(tables)
        for metric in METRICS:
            beyond[metric] += int((gaps.worst(metric) >= observed[metric] * (1 - 1e-9)).sum())
    return {metric: times / done for metric, times in beyond.items()}


def _permuted(counts: Floats, draws: int, generator: np.random.Generator, *, shuffled: bool) -> Iterator[Floats]:
    """Tables with the same margins, several at a time: (some, bands, scores)."""
    bands, scores = counts.shape
    rows = np.rint(counts).astype(np.int64)
    band, score = (np.repeat(place, rows.reshape(-1)) for place in np.indices(counts.shape).reshape(2, -1))
    at_once = max(1, _BLOCK // counts.size)
    for start in range(0, draws, at_once):
        tables = []
        for _ in range(min(at_once, draws - start)):
            if shuffled:
                cell = generator.permutation(band) * scores + score
                tables.append(np.bincount(cell, minlength=counts.size).reshape(bands, scores))
                continue
            remaining, table = rows.sum(0), np.zeros_like(rows)
            for place, size in enumerate(rows.sum(1)[:-1]):
                table[place] = generator.multivariate_hypergeometric(remaining, size, method="marginals")
                remaining = remaining - table[place]
            table[-1] = remaining
            tables.append(table)
        yield np.stack(tables).astype(np.float64)


_TAIL = np.array([0.0005, 0.001, 0.002, 0.005, 0.01, 0.02])
_SHARES = np.concatenate([_TAIL, np.arange(1, 20) / 20, 1 - _TAIL[::-1]])  # of the rows, at whose ends resampling cuts
_EXACT = 2**20  # rows up to which the dependence is that of every single one


class WorstCut(NamedTuple):
    """An attribute within a part of an audit: the cut with the largest gap, and the figures there."""

    findings: list[Finding]
    distribution: Distribution | None


class Bands(NamedTuple):
    """The units of a part whose attribute is known, their values, and the bands of these values."""

    part: Part
    units: Integers
    values: Floats  # numbers, or codes of groups
    band: Integers
    sides: list[tuple[str, str]]  # the groups that each cut compares
    at: Integers  # the last band on the first side of each cut; of names, the only one
    attribute: str
    named: bool
    group_values: Sequence[Value]  # of the first side of each cut: canonical; None: a number
    amounts: Floats | None  # rows or weight of each unit; None: one row
    cuts: Floats | Sequence[float] = ()  # of a number

    @classmethod
    def of(cls, sample: AuditSample, part: Part, place: int, min_group_size: int) -> Bands:
        """The bands of the attribute at this place; without any cut if all values are equal.

        Cuts and groups need ``min_group_size`` rows on both sides, unless none has enough.
        """
        problem, attribute = sample.problem, sample.problem.scheme.attributes[place]
        codes = problem.groups[part.units, place]
        units, codes = part.units[codes >= 0], codes[codes >= 0]
        rows = None if sample.rows is None else sample.rows[units]
        amounts = rows if sample.weight is None else sample.weight[units]
        amounts = None if amounts is None else amounts.astype(np.float64)
        if problem.numbers is not None and attribute.cuts:
            values = problem.numbers[units, place]
            cuts = candidate_cuts(values, amounts) if len(units) else np.zeros(0)
            upto = np.cumsum(np.bincount(np.searchsorted(cuts, values), rows, len(cuts) + 1))
            cuts = cuts[_large_sides(upto[:-1], upto[-1], min_group_size)]
            sides = [(f"≤{name}", f">{name}") for name in map(number_name, cuts)]
            band, at = np.searchsorted(cuts, values), np.arange(len(cuts))
            none = [None] * len(cuts)
            return cls(part, units, values, band, sides, at, attribute.name, False, none, amounts, cuts)
        present, band = np.unique(codes, return_inverse=True)
        size = np.bincount(band, rows)
        at = _large_sides(size, size.sum(), min_group_size) if len(present) > 1 else present[:0]
        sides = [(str(attribute.groups[code]), REST) for code in present[at]]
        groups = canonical_values(attribute.values)
        first = [groups[code] for code in present[at]]
        return cls(part, units, band.astype(np.float64), band, sides, at, attribute.name, True, first, amounts)

    @property
    def size(self) -> int:
        """Number of bands."""
        return int(self.band.max()) + 1

    def levels(self) -> tuple[Floats, Floats]:
        """The rows, or weight, of each band, and the mean of the attribute in it."""
        rows = np.bincount(self.band, self.amounts, self.size).astype(np.float64)
        values = self.values if self.amounts is None else self.values * self.amounts
        return rows, np.bincount(self.band, values, self.size) / rows

    def with_tails(self) -> Bands:
        """Bands of the number that are narrower at both ends: a few rows determine the spread of a heavy tail."""
        distinct, place = np.unique(self.values, return_inverse=True)
        upto = np.cumsum(np.bincount(place, self.amounts))
        at = np.unique(np.searchsorted(upto, _SHARES * upto[-1] * (1 - 1e-12)))
        cuts = distinct[at[at < len(distinct) - 1]]
        if self.named or not len(cuts):
            return self
        return self._with_bands(np.searchsorted(cuts, self.values))

    def by_value(self) -> tuple[Bands, Floats]:
        """A band for each value, and the values."""
        distinct, place = np.unique(self.values, return_inverse=True)
        return self._with_bands(place), distinct

    def _with_bands(self, band: Integers) -> Bands:
        cuts = int(band.max()) + self.named
        return self._replace(band=band, sides=[("", "")] * cuts, at=np.arange(cuts))

    def rows(self) -> list[Integers]:
        """The places of the units in each band."""
        return rows_by_cell(self.band, self.size)

    def below(self, cut: int) -> NDArray[np.bool_]:
        """Mask of the units on the first side of a cut."""
        return np.asarray(self.band == self.at[cut] if self.named else self.band <= self.at[cut])

    def sizes(self, sample: AuditSample, cut: int) -> tuple[int, int]:
        """Rows on both sides of a cut."""
        below = self.below(cut)
        return sample.size(self.units[below]), sample.size(self.units[~below])


def _large_sides(sizes: NDArray[Any], total: float, min_group_size: int) -> Integers:
    """The sides that have enough rows and leave enough on the other side; all sides if none does."""
    cuts = np.flatnonzero(np.minimum(sizes, total - sizes) >= min_group_size)
    return cuts if len(cuts) else np.arange(len(sizes))


class _Cut(NamedTuple):
    """The cut with the largest gap between the distribution functions of the scores below and above."""

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
    scores, gaps = bands.part.scores, list[float]()
    upto = np.cumsum(scores.at(bands.units), dtype=np.float64)
    below = np.zeros(len(upto))
    for number, rows in enumerate(bands.rows()):
        amounts = scores.at(bands.units[rows])
        below = amounts if bands.named else below + amounts
        if number in bands.at:
            left = np.cumsum(below, dtype=np.float64)
            right = upto - left
            left /= left[-1]  # in place: there may be millions of scores, and a hundred cuts
            right /= right[-1]
            left -= right
            gaps.append(float(np.abs(left, out=left).max()))
    best = 0
    for number, gap in enumerate(gaps):
        best = number if gap > gaps[best] + 1e-12 else best
    return _cut_at(bands, best)._replace(distances=gaps)


def _band_table(bands: Bands, levels: Floats) -> BandTable:
    """The table of fewer scores."""
    part_scores = bands.part.scores
    total = part_scores.at(bands.units).astype(np.float64)
    used = total > 0
    pooled = TwoSamples(part_scores.values[used], total[used], total[used])
    bin_index = np.zeros(len(used), np.int64)
    bin_index[used] = bins(pooled, SCORES)
    means = bin_means(pooled, bin_index[used])
    binned = replace(part_scores, values=means, place=bin_index[part_scores.place])
    counts = np.stack([binned.at(bands.units[rows]) for rows in bands.rows()]).astype(np.float64)
    return BandTable(counts, means, levels, bands.named, bands.at if bands.named else None)


def _cut_at(bands: Bands, number: int) -> _Cut:
    """The cut of this number."""
    scores = bands.part.scores
    total, below = (scores.at(units) for units in (bands.units, bands.units[bands.below(number)]))
    used = total > 0
    counts = below[used].astype(np.float64)
    sides = TwoSamples(scores.values[used], counts, total[used].astype(np.float64) - counts)
    return _Cut(number, largest_gap(sides), sides)


def worst_cut(sample: AuditSample, bands: Bands, plan: Plan, generator: np.random.Generator) -> WorstCut:
    """The findings of an attribute: the worst cut by each metric and the dependence, with intervals and p-values."""
    if not bands.sides:
        return WorstCut([], None)
    rows, levels = bands.levels()
    cut, table = _scan_cuts(bands), _band_table(bands, levels)
    at = {"kolmogorov": cut, "wasserstein": _cut_at(bands, int(table.gaps().wasserstein.argmax())), "energy": cut}
    observed, correlation = _observed(sample, bands, cut, table)
    p_value_by_metric: dict[str, float] = {}
    if plan.permutations and not sample.weighted:
        p_value_by_metric = p_values(table, sample.size(bands.units), plan.permutations, generator)
    interval, jointly = _dependence_intervals(
        sample, bands, plan, observed=observed, p_value_by_metric=p_value_by_metric, generator=generator
    )
    evidence: dict[str, dict[str, Any]] = {metric: {"p_value": p_value_by_metric.get(metric)} for metric in METRICS}
    evidence["energy"] |= {"interval": interval, "correlation": correlation}
    if sample.weighted or plan.vc_dimension is None:
        evidence["energy"]["joint_interval"] = jointly
    if not sample.weighted and plan.vc_dimension is None:
        evidence["kolmogorov"] |= _certified_bounds(bands, rows, cut, plan)
    findings = [
        _cut_finding(sample, bands, at[metric], plan, metric=metric, value=observed[metric], **evidence[metric])
        for metric in plan.named_metrics()
        if metric in METRICS
    ]
    return WorstCut(findings, _halves(sample, bands, cut, plan))


def _cut_finding(sample: AuditSample, bands: Bands, cut: _Cut, plan: Plan, **evidence: Any) -> Finding:
    """The finding at a cut; tests and joint intervals need enough rows."""
    sizes = bands.sizes(sample, cut.number)
    # The dependence is about all rows, not about a cut.
    enough = (sum(sizes) if evidence["metric"] == "energy" else min(sizes)) >= plan.min_group_size
    if not enough:
        evidence |= {"p_value": None, "joint_interval": None}
    scores = cut.sides.values
    return Finding(
        bands.attribute,
        bands.part.criterion,
        bands.part.within,
        bands.sides[cut.number],
        sizes,
        **evidence,
        cuts=len(bands.sides),
        enough=enough,
        at=cut.gap.score,
        shares=cut.gap.shares,
        span=float(scores[-1] - scores[0]),
        cut=None if bands.named else float(bands.cuts[cut.number]),
        group_values=(bands.group_values[cut.number], None),
        conditions=bands.part.conditions,
    )


def _halves(sample: AuditSample, bands: Bands, cut: _Cut, plan: Plan) -> Distribution | None:
    """The distributions on both sides of the worst cut; None of groups, of decisions and of other scores."""
    part, groups = bands.part, bands.sides[cut.number]
    if bands.named or not part.of_predictions or part.scores.are_decisions:
        return None
    halves = dict(zip(groups, cut.sides[1:], strict=True))
    sizes = dict(zip(groups, bands.sizes(sample, cut.number), strict=True))
    curves = make_curves(cut.sides.values, halves, sizes, plan.score_range or sample.ends)
    return Distribution(bands.attribute, part.within, curves)


def _certified_bounds(bands: Bands, rows: Floats, cut: _Cut, plan: Plan) -> dict[str, Any]:
    """Bounds of the largest true gap at any cut: an upper one, one valid for all comparisons, and both ends.

    They are valid while the distribution functions on both sides of all cuts are near the true ones.
    """
    below, total = rows[bands.at] if bands.named else np.cumsum(rows)[:-1], float(rows.sum())

    def bounds(functions: int, confidence: float) -> Interval:
        radii = [
            sum(dkw_radius(int(size), confidence=confidence, cdfs=functions) for size in (left, total - left))
            for left in below
        ]
        low, high = float(np.max(np.subtract(cut.distances, radii))), float(np.max(np.add(cut.distances, radii)))
        return Interval(max(0.0, low), min(1.0, high))

    cdfs = 2 * len(bands.sides)
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
    """Intervals of the dependence: of this comparison, and simultaneous over all; None if rows are too few."""
    if not plan.resamples or sample.size(bands.units) < FEWEST_DEPENDENT:
        return None, None
    fine = bands.with_tails()
    table = _band_table(fine, fine.levels()[1])
    effective = float(sample.size(bands.units))  # effective number of rows of equal weight
    if sample.weight is not None and sample.rows is None:
        weight = sample.weight[bands.units]
        effective = float(weight.sum() ** 2 / (weight**2).sum())
    resampled = table.resampled(effective, plan.resamples, generator)
    # If no p-value can be small enough for the higher confidence, the smallest possible one is the limit.
    return [
        resampled.interval(
            observed["energy"],
            confidence=confidence,
            is_noise=p_value_by_metric.get("energy", 0.0) > max(1 - confidence, 1 / (1 + plan.permutations)),
        )
        for confidence in (plan.confidence, plan.joint_confidence)
    ]


def _observed(sample: AuditSample, bands: Bands, cut: _Cut, table: BandTable) -> tuple[dict[str, float], float | None]:
    """The figures by metric, and the distance correlation if rows are in memory and have no weights."""
    units, values, amounts = bands.units, bands.values, bands.amounts
    observed = {metric: float(table.gaps().worst(metric)) for metric in METRICS} | {"kolmogorov": cut.size}
    correlation = None
    if sample.prediction is None:  # out of core, an attribute has few levels
        observed["energy"] = float(_band_table(*bands.by_value()).gaps().energy)
    elif len(units) <= _EXACT:
        scores = bands.part.scores
        row_scores = scores.values[scores.place[units]]
        attribute = values.astype(str) if bands.named else values
        observed["energy"], correlation = dependence_and_correlation(row_scores, attribute, amounts)
    return observed, correlation


QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
_MOST_BANDS, _FEWEST_ROWS = 20, 30  # in a band; with fewer, quantiles at the ends are hardly more than one row each


def along_number(sample: AuditSample, bands: Bands, cut: WorstCut, selected: NDArray[Any] | None) -> AlongNumber | None:
    """Quantiles of the scores, and shares that are selected, in bands of a number with about as many rows each.

    ``selected`` is the selected amount of each unit; None: no decisions. The worst ``cut`` is marked. None for
    names, if all values are equal, and for other scores than predictions.
    """
    units, values, scores = bands.units, bands.values, bands.part.scores
    if bands.named or not bands.part.of_predictions or not len(units):
        return None
    amounts = np.ones(len(units)) if bands.amounts is None else bands.amounts
    rows = None if sample.rows is None else sample.rows[units]
    cuts = quantile_cuts(values, amounts, _MOST_BANDS, rows=rows, least=_FEWEST_ROWS)
    if not len(cuts):
        return None
    band, count = np.searchsorted(cuts, values), len(cuts) + 1
    weight = np.bincount(band, amounts, count)
    quantiles = np.zeros((count, len(QUANTILES)))
    for number in range(count):
        upto = np.cumsum(scores.at(units[band == number]).astype(np.float64))
        quantiles[number] = scores.values[np.searchsorted(upto, np.array(QUANTILES) * upto[-1] * (1 - 1e-12))]
    rates = () if selected is None else np.bincount(band, selected[units].astype(np.float64), count) / weight
    worst = next((finding for finding in cut.findings if finding.metric == "kolmogorov"), None)
    return AlongNumber(
        bands.attribute,
        bands.part.within,
        bands=band_names(cuts),
        at=(np.bincount(band, values * amounts, count) / weight).tolist(),
        sizes=[sample.size(units[band == number]) for number in range(count)],
        quantiles={f"{share:.0%}": quantiles[:, at].tolist() for at, share in enumerate(QUANTILES)},
        selection_rates=list(map(float, rates)),
        cut=None if worst is None else worst.cut,
    )
