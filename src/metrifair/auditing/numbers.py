"""How much scores depend on an attribute, in an audit, and the worst cut of it in two.

Of a number people up to a cut are set against those above it; of names (``contrast="independence"``) each group against
the rest. Everything is read off one table: how many rows lie in each band of the attribute and at each score. With the
joint distribution function C and its margins F (of scores) and G (of the attribute), the gap between people up to a cut
and above it is (C - F G) / (G (1 - G)), and the squared distance covariance 4 x the integral of (C - F G)^2 over both;
of names the same with C and G of each group by itself, and twice the sum over groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from metrifair.auditing.distribution import Floats, Integers, LargestGap, TwoSamples, bin_means, bins, largest_gap
from metrifair.auditing.sample import AuditSample, Part
from metrifair.certificates import dkw_radius
from metrifair.curves import curves_of
from metrifair.errors import DataError
from metrifair.metrics.dependence import distance_correlation, energy_dependence
from metrifair.problem.attributes import number_name
from metrifair.problem.bands import cuts_of
from metrifair.report.audit import words
from metrifair.results import FEWEST_DEPENDENT, Distribution, Finding, Interval

METRICS = ("kolmogorov", "wasserstein", "energy")  # those that are read off the table
_SCORES = 1024  # told apart in the table
_DEALT = 128  # scores told apart where the attribute is dealt anew
_SHUFFLED = 2**16  # rows up to which the attribute itself is dealt anew
_FEW_CUTS, _FEW_SCORES = 20, 64  # of the smaller table that more rows, and the bootstrap, are drawn in
_TAIL = np.array([0.0005, 0.001, 0.002, 0.005, 0.01, 0.02])
_SHARES = np.concatenate(
    [_TAIL, np.arange(1, 20) / 20, 1 - _TAIL[::-1]]
)  # of the people, at whose ends resampling cuts
_EXACT = 2**20  # rows up to which the dependence is that of every single one


class Gaps(NamedTuple):
    """Of tables (..., bands, scores): the distances at each cut (..., cuts), and the dependence (...)."""

    kolmogorov: Floats
    wasserstein: Floats
    energy: Floats  # the dependence

    def worst(self, metric: str) -> Floats:
        """What a finding says: the largest over all cuts, or the dependence."""
        found: Floats = getattr(self, metric)
        return found if metric == "energy" else found.max(-1)


@dataclass(frozen=True, eq=False)
class BandTable:
    """Rows, or weights, by bands of the attribute (ascending) and by score."""

    counts: Floats  # (bands, scores)
    scores: Floats  # (scores,)
    levels: Floats  # (bands,): the mean of the attribute in each
    named: bool = False  # bands are groups, in no order

    def scales(self, rows: Floats) -> Floats:
        """What makes energy distances of distance covariances, where rows (..., bands) lie in the bands."""
        share = rows / rows.sum(-1, keepdims=True)
        far = 1 - np.eye(len(self.levels)) if self.named else np.abs(self.levels[:, None] - self.levels)
        sums = share @ far
        mean, squared = (share * sums).sum(-1), (share * (share @ far**2)).sum(-1)
        variance = squared - 2 * (share * sums**2).sum(-1) + mean**2
        usable = (variance > 0) & (mean > 0)
        product = np.where(usable, variance * mean, 1.0)
        found: Floats = np.where(usable, 2 * squared / product, 0.0)
        return found

    def gaps(self, counts: Floats | None = None) -> Gaps:
        """Those of this table, or of others (..., bands, scores) with the same scores and levels."""
        counts = self.counts if counts is None else counts
        total = counts.sum((-2, -1), keepdims=True)
        below = np.cumsum(counts.sum(-2, keepdims=True), -1) / total
        sides = counts if self.named else np.cumsum(counts, -2)[..., :-1, :]
        joint = np.cumsum(sides, -1) / total
        share = joint[..., :, -1:]
        apart, inside = joint - below * share, share * (1 - share)
        steps = np.append(np.diff(self.scores), 0.0)
        gap = np.divide(np.abs(apart), inside, out=np.zeros_like(apart), where=inside > 1e-12)
        covariance = (apart**2 @ steps) @ (np.full(len(self.levels), 2.0) if self.named else 4 * np.diff(self.levels))
        return Gaps(gap.max(-1), gap @ steps, self.scales(counts.sum(-1)) * covariance)

    def coarser(self, cuts: int, scores: int) -> BandTable:
        """At most so many cuts and scores; groups stay as they are."""
        bands = len(self.counts)
        few = self.named or bands <= cuts + 1
        band_of = np.arange(bands) if few else np.arange(bands) * (cuts + 1) // bands
        both = TwoSamples(self.scores, self.counts.sum(0), self.counts.sum(0))
        bin_of = bins(both, scores)
        counts = np.zeros((band_of[-1] + 1, bin_of[-1] + 1))
        np.add.at(counts, (band_of[:, None], bin_of[None, :]), self.counts)
        rows = self.counts.sum(1)
        levels = np.bincount(band_of, rows * self.levels) / np.bincount(band_of, rows)
        return BandTable(counts, bin_means(both, bin_of), levels, self.named)

    def resampled(self, rows: float, resamples: int, generator: np.random.Generator) -> tuple[float, Floats]:
        """The dependence in a table of fewer scores, and in as many resamples of it."""
        small = self.coarser(len(self.counts), _FEW_SCORES)
        share = (small.counts / small.counts.sum()).reshape(-1)
        drawn = generator.multinomial(max(2, round(rows)), share, size=resamples).astype(np.float64)
        return float(small.gaps().energy), small.gaps(drawn.reshape(-1, *small.counts.shape)).energy


class WorstCut(NamedTuple):
    """An attribute within a part of an audit: the cut that tells most, and everything that is found there."""

    findings: list[Finding]
    distribution: Distribution | None


class Bands(NamedTuple):
    """The units of a part whose attribute is known, their values, and the bands that these lie in."""

    units: Integers
    values: Floats  # numbers, or codes of groups
    band: Integers
    sides: list[tuple[str, str]]  # who is set against whom, cut by cut
    named: bool

    @classmethod
    def of(cls, sample: AuditSample, part: Part, place: int, least_count: int) -> Bands:
        """Those of the attribute at this place; without any cut where all values are equal.

        A number is cut where at least so many rows are on either side, if it can be.
        """
        problem, attribute = sample.problem, sample.problem.scheme.attributes[place]
        codes = problem.groups[part.units, place]
        units, codes = part.units[codes >= 0], codes[codes >= 0]
        if problem.numbers is not None and attribute.cuts:
            values = problem.numbers[units, place]
            cuts = cuts_of(values, _amounts(sample, units)) if len(units) else np.zeros(0)
            rows = None if sample.rows is None else sample.rows[units]
            upto = np.cumsum(np.bincount(np.searchsorted(cuts, values), rows, len(cuts) + 1))
            enough = np.minimum(upto[:-1], upto[-1] - upto[:-1]) >= least_count
            cuts = cuts[enough] if enough.any() else cuts
            names = [number_name(cut) for cut in cuts]
            sides = [(f"up to {name}", f"above {name}") for name in names]
            return cls(units, values, np.searchsorted(cuts, values), sides, named=False)
        present, band = np.unique(codes, return_inverse=True)
        sides = [(str(attribute.groups[one]), words.REST) for one in present]
        return cls(units, band.astype(np.float64), band, sides if len(sides) > 1 else [], named=True)

    @property
    def size(self) -> int:
        """How many bands there are."""
        return len(self.sides) + (not self.named)

    def with_tails(self, amounts: Floats | None) -> Bands:
        """Other bands of the number, narrower at both ends: of a heavy tail a few people decide how far it spreads."""
        found, place = np.unique(self.values, return_inverse=True)
        upto = np.cumsum(np.bincount(place, amounts))
        at = np.unique(np.searchsorted(upto, _SHARES * upto[-1] * (1 - 1e-12)))
        cuts = found[at[at < len(found) - 1]]
        if self.named or not len(cuts):
            return self
        return self._replace(band=np.searchsorted(cuts, self.values), sides=[("", "")] * len(cuts))

    def below(self, cut: int) -> NDArray[np.bool_]:
        """Who is on the first side of a cut."""
        found: NDArray[np.bool_] = self.band == cut if self.named else self.band <= cut
        return found


def _amounts(sample: AuditSample, units: Integers) -> Floats | None:
    of_each = sample.weight if sample.weight is not None else sample.rows
    return None if of_each is None else of_each[units].astype(np.float64)


class _Cut(NamedTuple):
    """The cut at which the distribution functions of the scores below and above are furthest apart."""

    number: int
    gap: LargestGap
    sides: TwoSamples
    every: Sequence[float] = ()  # the distances at all cuts

    @property
    def size(self) -> float:
        """The Kolmogorov distance."""
        return abs(self.gap.shares[0] - self.gap.shares[1])


def _scanned(part: Part, bands: Bands, levels: Floats) -> tuple[_Cut, BandTable]:
    """The worst cut, of equal ones the lowest, from every single score; and a table of fewer scores."""
    total = part.scores.at(bands.units).astype(np.float64)
    used = total > 0
    scores, total = part.scores.values[used], total[used]
    everyone = TwoSamples(scores, total, total)
    bin_of = bins(everyone, _SCORES)
    counts = np.zeros((bands.size, bin_of[-1] + 1))
    below, found, every = np.zeros(len(scores)), None, []
    for number in range(bands.size):
        own = part.scores.at(bands.units[bands.band == number])[used].astype(np.float64)
        counts[number] = np.bincount(bin_of, own, counts.shape[1])
        below = own if bands.named else below + own
        if number < len(bands.sides):
            sides = TwoSamples(scores, below, total - below)
            here = _Cut(number, largest_gap(sides), sides)
            every.append(here.size)
            found = here if found is None or here.size > found.size + 1e-12 else found
    if found is None:
        raise DataError("an attribute with one value cannot be cut")
    return found._replace(every=every), BandTable(counts, bin_means(everyone, bin_of), levels, bands.named)


def _at(part: Part, bands: Bands, number: int) -> _Cut:
    """One of the cuts."""
    total, below = (part.scores.at(own) for own in (bands.units, bands.units[bands.below(number)]))
    used = total > 0
    counts = below[used].astype(np.float64)
    sides = TwoSamples(part.scores.values[used], counts, total[used].astype(np.float64) - counts)
    return _Cut(number, largest_gap(sides), sides)


def worst_cut(
    sample: AuditSample,
    part: Part,
    place: int,
    *,
    metrics: tuple[str, ...],
    confidence: float,
    functions: int,
    comparisons: int,
    least_count: int,
    certified: bool,
    resamples: int,
    permutations: int,
    generator: np.random.Generator,
    ends: tuple[float, float] | None,
) -> WorstCut:
    """The findings of an attribute: the worst cut by each metric, the dependence, and how sure one can be of them.

    ``functions`` are the distribution functions that joint bounds hold for at once, those of this one's cuts among
    them; joint intervals hold for so many ``comparisons``.
    ``certified``: there are bounds at all, of rows without weights that trained nothing.
    """
    bands, name = Bands.of(sample, part, place, least_count), sample.problem.scheme.attributes[place].name
    units, values = bands.units, bands.values
    if not bands.sides:
        return WorstCut([], None)
    amounts = _amounts(sample, units)
    rows = np.bincount(bands.band, amounts, bands.size).astype(np.float64)
    levels = np.bincount(bands.band, values if amounts is None else values * amounts, bands.size) / rows
    cut, table = _scanned(part, bands, levels)
    furthest = _at(part, bands, int(table.gaps().wasserstein.argmax()))
    at = {"kolmogorov": cut, "wasserstein": furthest, "energy": cut}
    sizes = {
        metric: (sample.size(units[below]), sample.size(units[~below]))
        for metric, own in at.items()
        for below in [bands.below(own.number)]
    }
    groups, scores = bands.sides[cut.number], cut.sides.values
    observed, correlation = _observed(sample, part, bands, cut, table)
    p_values: dict[str, float] = {}
    if permutations and not sample.weighted:
        p_values = _p_values(table, sample.size(units), permutations, generator)
    intervals: list[Interval | None] = [None, None]
    level = 1 - (1 - confidence) / comparisons
    if resamples and sample.size(units) >= FEWEST_DEPENDENT:
        fine = bands.with_tails(amounts)
        rows_in = np.bincount(fine.band, amounts, fine.size)
        means = np.bincount(fine.band, values if amounts is None else values * amounts, fine.size) / rows_in
        resampled = _scanned(part, fine, means)[1].resampled(_effective(sample, units), resamples, generator)
        # Where no p-value can be small enough for the higher confidence, the smallest that can be has to do.
        intervals = [
            _interval(
                observed["energy"],
                *resampled,
                confidence=own,
                by_chance=p_values.get("energy", 0.0) > max(1 - own, 1 / (1 + permutations)),
            )
            for own in (confidence, level)
        ]
    alone, jointly = None, None
    enough = {metric: min(own) >= least_count for metric, own in sizes.items()}
    enough["energy"] = sample.size(units) >= least_count  # it is about all rows, not about a cut
    joint = {"energy": intervals[1]} if certified or sample.weighted else {}
    if certified:
        sides, cdfs = (rows if bands.named else np.cumsum(rows)[:-1], float(rows.sum())), 2 * len(bands.sides)
        alone, jointly = (_bounds(*sides, cut.every, *of).high for of in ((cdfs, confidence), (functions, confidence)))
        joint["kolmogorov"] = _bounds(*sides, cut.every, cdfs, level)
    span = float(scores[-1] - scores[0])
    told = words.cut_meanings(name, observed, len(bands.sides), correlation, named=bands.named)
    findings = [
        Finding(
            name,
            part.criterion,
            part.within,
            bands.sides[at[metric].number],
            sizes[metric],
            metric,
            observed[metric],
            interval=intervals[0] if metric == "energy" else None,
            certified=alone if metric == "kolmogorov" else None,
            certified_jointly=jointly if metric == "kolmogorov" else None,
            p_value=p_values.get(metric),
            sentence=words.cut_sentence(name, bands.sides[at[metric].number], *at[metric].gap[:2], span),
            meaning=told[metric],
            cuts=len(bands.sides),
            enough=enough[metric],
            joint_interval=joint.get(metric) if enough[metric] else None,
        )
        for metric in metrics
        if metric in METRICS
    ]
    if bands.named or not part.of_predictions:
        return WorstCut(findings, None)
    halves = dict(zip(groups, cut.sides[1:], strict=True))
    curves = curves_of(scores, halves, dict(zip(groups, sizes["kolmogorov"], strict=True)), ends or sample.ends)
    return WorstCut(findings, Distribution(name, part.within, curves))


def _observed(
    sample: AuditSample, part: Part, bands: Bands, cut: _Cut, table: BandTable
) -> tuple[dict[str, float], float | None]:
    """The figures by metric, and the distance correlation where rows are held and have no weights."""
    units, values, amounts = bands.units, bands.values, _amounts(sample, bands.units)
    observed = {metric: float(table.gaps().worst(metric)) for metric in METRICS} | {"kolmogorov": cut.size}
    correlation = None
    if sample.prediction is None:  # there are not many levels of the attribute: they were counted
        distinct, place_of = np.unique(values, return_inverse=True)
        every = bands._replace(band=place_of, sides=[("", "")] * (len(distinct) - (not bands.named)))
        observed["energy"] = float(_scanned(part, every, distinct)[1].gaps().energy)
    elif len(units) <= _EXACT:
        own = part.scores.values[part.scores.place[units]]
        attribute = values.astype(str) if bands.named else values
        observed["energy"] = energy_dependence(own, attribute, weights=amounts)
        correlation = distance_correlation(own, attribute) if amounts is None else None
    return observed, correlation


def _effective(sample: AuditSample, units: Integers) -> float:
    """How many rows of equal weight say as much."""
    if sample.weight is None or sample.rows is not None:
        return float(sample.size(units))
    weight = sample.weight[units]
    return float(weight.sum() ** 2 / (weight**2).sum())


def _bounds(below: Floats, everyone: float, gaps: Sequence[float], functions: int, confidence: float) -> Interval:
    """Bounds of the largest true gap at any cut, while so many distribution functions are all near the true ones."""
    radii = [
        sum(dkw_radius(int(size), confidence=confidence, cdfs=functions) for size in (own, everyone - own))
        for own in below
    ]
    low, high = float(np.max(np.subtract(gaps, radii))), float(np.max(np.add(gaps, radii)))
    return Interval(max(0.0, low), min(1.0, high))


def _p_values(table: BandTable, rows: int, permutations: int, generator: np.random.Generator) -> dict[str, float]:
    """How often an attribute dealt anew to the same scores shows as much: the worst cut is looked for every time."""
    used = table.coarser(len(table.counts), _DEALT) if rows <= _SHUFFLED else table.coarser(_FEW_CUTS, _FEW_SCORES)
    seen = {metric: float(used.gaps().worst(metric)) for metric in METRICS}
    beyond, done = dict.fromkeys(METRICS, 1), 1  # the attribute as it is among them
    for drawn in _dealt(used.counts, permutations, generator, shuffled=rows <= _SHUFFLED):
        gaps = used.gaps(drawn)
        done += len(drawn)
        for metric in METRICS:
            beyond[metric] += int((gaps.worst(metric) >= seen[metric] * (1 - 1e-9)).sum())
    return {metric: times / done for metric, times in beyond.items()}


def _dealt(counts: Floats, draws: int, generator: np.random.Generator, *, shuffled: bool) -> Iterator[Floats]:
    """Tables with the same margins, several at a time: (some, bands, scores)."""
    bands, scores = counts.shape
    whole = np.rint(counts).astype(np.int64)
    band, score = (np.repeat(place, whole.reshape(-1)) for place in np.indices(counts.shape).reshape(2, -1))
    at_once = max(1, 2**20 // counts.size)
    for start in range(0, draws, at_once):
        found = []
        for _ in range(min(at_once, draws - start)):
            if shuffled:
                cell = generator.permutation(band) * scores + score
                found.append(np.bincount(cell, minlength=counts.size).reshape(bands, scores))
                continue
            left, table = whole.sum(0), np.zeros_like(whole)
            for place, size in enumerate(whole.sum(1)[:-1]):
                table[place] = generator.multivariate_hypergeometric(left, size, method="marginals")
                left = left - table[place]
            table[-1] = left
            found.append(table)
        yield np.stack(found).astype(np.float64)


def _interval(value: float, here: float, drawn: Floats, *, confidence: float, by_chance: bool) -> Interval:
    """An interval of the dependence, on the scale of its root; from 0 on where chance shows as much.

    Resamples (``drawn``) depend more on the attribute than the sample does (``here``), as this does than the
    population: so much is taken off.
    """
    roots, root = np.sqrt(np.maximum(drawn, 0.0)), np.sqrt(max(value, 0.0))
    bias = float(roots.mean()) - np.sqrt(max(here, 0.0))
    reach = float(ndtri((1 + confidence) / 2) * roots.std(ddof=1))
    low, high = max(0.0, root - bias - reach), max(root - bias + reach, 0.0)
    if by_chance:
        low, high = 0.0, max(high, float(np.quantile(roots, confidence)))
    return Interval(float(min(value, low**2)), float(max(value, high**2)))
