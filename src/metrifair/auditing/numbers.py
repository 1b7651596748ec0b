"""Attributes that are numbers, in an audit: how much scores depend on them, and the worst cut in two.

Everything is read off one table: how many rows lie in each band of the attribute and at each score. With the joint
distribution function C and its margins F (of scores) and G (of the attribute), the gap between people up to a cut and
above it is (C - F G) / (G (1 - G)), and the squared distance covariance 4 x the integral of (C - F G)^2 over both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import ndtri

from metrifair.auditing.distribution import Floats, Integers, LargestGap, TwoSamples, bin_means, bins, largest_gap
from metrifair.auditing.sample import AuditSample, Part
from metrifair.certificates import dkw_radius
from metrifair.curves import curves_of
from metrifair.errors import DataError
from metrifair.metrics.dependence import distance_correlation, energy_dependence, energy_scale
from metrifair.metrics.dominance import AttributeValues
from metrifair.problem.bands import cuts_of, number_name
from metrifair.report.audit import words
from metrifair.results import FEWEST, Distribution, Finding, Interval

METRICS = ("kolmogorov", "wasserstein", "energy")  # those that are read off the table
_SCORES = 1024  # told apart in the table
_DEALT = 128  # scores told apart where the attribute is dealt anew
_SHUFFLED = 2**16  # rows up to which the attribute itself is dealt anew
_FEW_CUTS, _FEW_SCORES = 20, 64  # of the smaller table that more rows, and the bootstrap, are drawn in
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

    @cached_property
    def scale(self) -> float:
        """What makes an energy distance of the distance covariance."""
        return float(energy_scale(AttributeValues(torch.from_numpy(self.levels)), torch.from_numpy(self.counts.sum(1))))

    def gaps(self, counts: Floats | None = None) -> Gaps:
        """Those of this table, or of others (..., bands, scores) with the same scores and levels."""
        counts = self.counts if counts is None else counts
        total = counts.sum((-2, -1), keepdims=True)
        joint = np.cumsum(np.cumsum(counts, -2), -1) / total
        below, share = joint[..., -1:, :], joint[..., :, -1:]
        apart = (joint - below * share)[..., :-1, :]
        inside = share[..., :-1, :] * (1 - share[..., :-1, :])
        steps = np.append(np.diff(self.scores), 0.0)
        gap = np.divide(np.abs(apart), inside, out=np.zeros_like(apart), where=inside > 1e-12)
        covariance = 4 * (apart**2 @ steps) @ np.diff(self.levels)
        return Gaps(gap.max(-1), gap @ steps, self.scale * covariance)

    def coarser(self, cuts: int, scores: int) -> BandTable:
        """At most so many cuts and scores."""
        bands = len(self.counts)
        band_of = np.arange(bands) if bands <= cuts + 1 else np.arange(bands) * (cuts + 1) // bands
        both = TwoSamples(self.scores, self.counts.sum(0), self.counts.sum(0))
        bin_of = bins(both, scores)
        counts = np.zeros((band_of[-1] + 1, bin_of[-1] + 1))
        np.add.at(counts, (band_of[:, None], bin_of[None, :]), self.counts)
        rows = self.counts.sum(1)
        levels = np.bincount(band_of, rows * self.levels) / np.bincount(band_of, rows)
        return BandTable(counts, bin_means(both, bin_of), levels)

    def resampled(self, rows: float, resamples: int, generator: np.random.Generator) -> tuple[float, Floats]:
        """The dependence in a smaller table, and in as many resamples of it."""
        small = self.coarser(_FEW_CUTS, _FEW_SCORES)
        share = (small.counts / small.counts.sum()).reshape(-1)
        drawn = generator.multinomial(max(2, round(rows)), share, size=resamples).astype(np.float64)
        return float(small.gaps().energy), small.gaps(drawn.reshape(-1, *small.counts.shape)).energy


class WorstCut(NamedTuple):
    """A number within a part of an audit: the cut that tells most, and everything that is found there."""

    findings: list[Finding]
    distribution: Distribution | None


def cuts_in(sample: AuditSample, part: Part, place: int) -> Floats:
    """The cuts of an attribute that are looked at within a part."""
    units, values = _known(sample, part, place)
    return cuts_of(values, _amounts(sample, units)) if len(units) else np.zeros(0)


def _known(sample: AuditSample, part: Part, place: int) -> tuple[Integers, Floats]:
    """The units of a part whose number is known, and that number."""
    problem = sample.problem
    units = part.units[problem.groups[part.units, place] >= 0]
    return units, np.zeros(0) if problem.numbers is None else problem.numbers[units, place]


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


def _largest(scores: Floats, masses: Sequence[Floats]) -> _Cut:
    """Of cuts after each band but the last; of equal ones the lowest."""
    total, below, found, every = np.sum(masses, 0), np.zeros(len(scores)), None, []
    for number, own in enumerate(masses[:-1]):
        below = below + own
        sides = TwoSamples(scores, below, total - below)
        here = _Cut(number, largest_gap(sides), sides)
        every.append(here.size)
        if found is None or here.size > found.size + 1e-12:
            found = here
    if found is None:
        raise DataError("a number with one value cannot be cut")
    return found._replace(every=every)


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
    """The findings of a number: the worst cut by each metric, the dependence, and how sure one can be of them.

    ``functions`` are the distribution functions that joint bounds hold for at once, those of this number's cuts among
    them; joint intervals hold for so many ``comparisons``.
    ``certified``: there are bounds at all, of rows without weights that trained nothing.
    """
    units, values = _known(sample, part, place)
    cuts, name = cuts_in(sample, part, place), sample.problem.scheme.attributes[place].name
    if not len(cuts):
        return WorstCut([], None)
    band, amounts = np.searchsorted(cuts, values), _amounts(sample, units)
    used = part.scores.at(units) > 0
    scores = part.scores.values[used]
    masses = [part.scores.at(units[band == one])[used].astype(np.float64) for one in range(len(cuts) + 1)]
    cut = _largest(scores, masses)
    sizes = sample.size(units[band <= cut.number]), sample.size(units[band > cut.number])
    at = number_name(cuts[cut.number])
    groups = f"up to {at}", f"above {at}"
    rows = np.bincount(band, amounts, len(cuts) + 1).astype(np.float64)
    levels = np.bincount(band, values if amounts is None else values * amounts, len(cuts) + 1) / rows
    table = BandTable(np.array(masses), scores, levels).coarser(len(cuts), _SCORES)
    observed = {metric: float(table.gaps().worst(metric)) for metric in METRICS} | {"kolmogorov": cut.size}
    correlation = None
    if sample.prediction is not None and len(units) <= _EXACT:
        own = part.scores.values[part.scores.place[units]]
        observed["energy"] = energy_dependence(own, values, weights=amounts)
        correlation = distance_correlation(own, values) if amounts is None else None
    p_values: dict[str, float] = {}
    if permutations and not sample.weighted:
        p_values = _p_values(table, sample.size(units), permutations, generator)
    intervals: list[Interval | None] = [None, None]
    level = 1 - (1 - confidence) / comparisons
    if resamples and sample.size(units) >= 2 * FEWEST:
        resampled = table.resampled(_effective(sample, units), resamples, generator)
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
    alone, jointly, enough = None, None, min(sizes) >= least_count
    joint = {"energy": intervals[1]} if certified or sample.weighted else {}
    if certified:
        alone, jointly = (
            _bounds(rows, cut.every, *of).high for of in ((2 * len(cuts), confidence), (functions, confidence))
        )
        joint["kolmogorov"] = _bounds(rows, cut.every, 2 * len(cuts), level)
    span = float(scores[-1] - scores[0])
    told = words.cut_meanings(name, observed, len(cuts), correlation)
    findings = [
        Finding(
            name,
            part.criterion,
            part.within,
            groups,
            sizes,
            metric,
            observed[metric],
            interval=intervals[0] if metric == "energy" else None,
            certified=alone if metric == "kolmogorov" else None,
            certified_jointly=jointly if metric == "kolmogorov" else None,
            p_value=p_values.get(metric),
            sentence=words.cut_sentence(name, groups, cut.gap.score, cut.gap.shares, span),
            meaning=told[metric],
            cuts=len(cuts),
            enough=enough,
            joint_interval=joint.get(metric) if enough else None,
        )
        for metric in metrics
        if metric in METRICS
    ]
    if not part.of_predictions:
        return WorstCut(findings, None)
    halves = dict(zip(groups, cut.sides[1:], strict=True))
    curves = curves_of(scores, halves, dict(zip(groups, sizes, strict=True)), ends or sample.ends)
    return WorstCut(findings, Distribution(name, part.within, curves))


def _effective(sample: AuditSample, units: Integers) -> float:
    """How many rows of equal weight say as much."""
    if sample.weight is None or sample.rows is not None:
        return float(sample.size(units))
    weight = sample.weight[units]
    return float(weight.sum() ** 2 / (weight**2).sum())


def _bounds(rows: Floats, gaps: Sequence[float], functions: int, confidence: float) -> Interval:
    """Bounds of the largest true gap at any cut, while so many distribution functions are all near the true ones."""
    radii = [
        sum(dkw_radius(int(size), confidence=confidence, cdfs=functions) for size in (own, rows.sum() - own))
        for own in np.cumsum(rows)[:-1]
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
