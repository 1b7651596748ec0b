"""Both ends of an audit by group probabilities: the weighted figures, and those divided by R2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from metrifair.auditing.measure.bins import Products
from metrifair.auditing.measure.group_pairs import GroupPair
from metrifair.auditing.measure.parts import members_in
from metrifair.auditing.measure.plug_in import plug_in_distances
from metrifair.auditing.measure.resampling import Intervals, Rows
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.measure.two_samples import TwoSamples
from metrifair.auditing.records import (
    AuditRecord,
    Decisions,
    Divided,
    DividedRates,
    Finding,
    Measure,
)
from metrifair.figures.attenuation import (
    SMALLEST_R2,
    divide_distance,
    divide_interval,
    divide_rate,
    is_certain,
    r_squared,
    unmix,
    unmixed_rates,
)
from metrifair.figures.intervals import Interval
from metrifair.figures.selection_rates import GroupRates, headline_groups
from metrifair.support.arrays import Booleans, Floats, Integers


class UnmixedPair(NamedTuple):
    """Two mixtures of weighted distributions, whose difference is in proportion to that of two
    groups.
    """

    r2: float  # by which the distance of the mixtures is divided
    pair: TwoSamples
    rows: Rows | None


PairIntervals = Callable[[UnmixedPair, Mapping[str, float]], Intervals]
"""The intervals of the distances between two mixtures."""


def overlaps_within(sample: AuditSample, units: Integers) -> Floats | None:
    """Sums of weight x probability of a group x probability of another group, (groups, groups),
    over the rows of units.

    None if groups are known, or observed with errors that are known.
    """
    members = sample.problem.members
    if members is None or members.rows.inverse is not None:
        return None
    codes = members.group[units]
    known = codes >= 0
    inside = units[known]
    codes = codes[known]
    count = len(members.rows.groups)
    if sample.scores.binned is not None:
        return _overlaps_of_cells(sample, inside, codes, count)
    amount = sample.units.amount[inside]
    others = members.rows.values[members.row[inside]]
    return np.stack([np.bincount(codes, amount * other, count) for other in others.T], 1).astype(
        np.float64
    )


def _overlaps_of_cells(
    sample: AuditSample, cells: Integers, codes: Integers, count: int
) -> Floats | None:
    """The same of the cells of a state, each of which is in one group."""
    if sample.scores.binned is None or sample.scores.binned.overlaps is None:
        return None
    sums = np.zeros((count, count))
    np.add.at(sums, codes, sample.scores.binned.overlaps[cells])
    return sums


@dataclass(frozen=True, eq=False)
class Attenuation:
    """How much of the gaps between groups the probabilities keep, within one set of rows."""

    sample: AuditSample
    units: Integers
    overlaps: Floats  # (groups, groups), with 0 for groups without rows

    @classmethod
    def within(cls, sample: AuditSample, units: Integers) -> Attenuation | None:
        """The attenuation within some units; None if each row has one group."""
        overlaps = overlaps_within(sample, units)
        if overlaps is None or is_certain(overlaps):
            return None
        return cls(sample, units, overlaps)

    @property
    def present(self) -> Booleans:
        """Mask of the groups with rows."""
        return np.asarray(self.overlaps.sum(1) > 0)

    def divided_findings(
        self,
        findings: Sequence[Finding],
        compared: GroupPair,
        intervals_of: PairIntervals,
    ) -> list[Finding]:
        """The findings of one comparison, by metric, with their second ends."""
        if compared.right is not None and self.present.sum() > 2:
            return self._unmixed_findings(findings, compared, compared.right, intervals_of)
        r2 = float(r_squared(self.overlaps)[compared.left])
        if r2 < SMALLEST_R2:
            return [replace(finding, divided=Divided(r2)) for finding in findings]
        return [replace(finding, divided=divided_by(finding, r2)) for finding in findings]

    def _unmixed_findings(
        self,
        findings: Sequence[Finding],
        compared: GroupPair,
        right: int,
        intervals_of: PairIntervals,
    ) -> list[Finding]:
        """Two among several groups: what the others add to the weighted difference is
        subtracted from it.
        """
        mixture = self._mixture(compared, right)
        if mixture is None or mixture.r2 < SMALLEST_R2:
            r2 = 0.0
            if mixture is not None:
                r2 = mixture.r2
            return [replace(finding, divided=Divided(r2)) for finding in findings]
        metrics = [finding.metric for finding in findings]
        values = {
            metric: float(value)
            for metric, value in plug_in_distances(*mixture.pair, metrics).items()
        }
        intervals = intervals_of(mixture, values)
        unmixed = []
        for finding in findings:
            as_weighted = replace(
                finding,
                value=values[finding.metric],
                interval=intervals.alone.get(finding.metric),
                joint_interval=intervals.jointly.get(finding.metric),
            )
            unmixed.append(replace(finding, divided=divided_by(as_weighted, mixture.r2)))
        return unmixed

    def _mixture(self, compared: GroupPair, right: int) -> UnmixedPair | None:
        """The mixtures of weighted distributions that differ as two groups do."""
        present = np.flatnonzero(self.present)
        place = {int(code): at for at, code in enumerate(present)}
        overlaps = self.overlaps[np.ix_(present, present)]
        coefficients = unmix(overlaps, place[compared.left], place[right])
        if coefficients is None:
            return None
        scale = float(coefficients[coefficients > 0].sum())
        by_group = np.zeros(len(self.overlaps))
        by_group[present] = coefficients / scale / overlaps.sum(1)
        products = None
        if self.sample.scores.binned is not None:
            products = self.sample.scores.binned.products
        if products is None:
            return UnmixedPair(1 / scale, *_mixture_of_rows(compared, by_group))
        return UnmixedPair(1 / scale, *_mixture_of_bins(compared, by_group, products))

    def divided_rates(self, table: Decisions, codes: Sequence[int]) -> DividedRates | None:
        """The second ends of the rates of a table, whose groups have these codes; None if an R2
        is too small.
        """
        overlaps = self.overlaps[np.ix_(codes, codes)]
        by_group = r_squared(overlaps)
        weighted = np.array([rate.selection_rate for rate in table.rates])
        rates = None
        if not (by_group.min() < SMALLEST_R2):
            rates = unmixed_rates(weighted, overlaps)
        if rates is None:
            return None
        amounts = overlaps.sum(1)
        two = None
        if len(codes) == 2:
            two = _TwoGroups.of(by_group, amounts / amounts.sum(), weighted)
        names = [rate.group for rate in table.rates]
        measures = {
            rate.group: Measure(
                float(value),
                None if two is None else two.rate_interval(rate.interval),
            )
            for rate, value in zip(table.rates, rates, strict=True)
        }
        ratios = _ratios(table, dict(zip(names, rates.tolist(), strict=True)), two)
        compared = headline_groups(table.rates, [rate.few for rate in table.rates])
        values = [measures[rate.group].value for rate in compared]
        large = [ratios[rate.group] for rate in compared if rate.group in ratios] or list(
            ratios.values()
        )
        divided = DividedRates(
            dict(zip(names, by_group.tolist(), strict=True)),
            measures,
            ratios,
            selection_difference=max(values) - min(values),
            selection_ratio=None,
        )
        if not large:
            return divided
        least = min(large, key=lambda ratio: ratio.value)
        return replace(
            divided, selection_ratio=least.value, selection_ratio_interval=least.interval
        )


@dataclass(frozen=True)
class _TwoGroups:
    """Two groups: R2 of both, the share of the rows in each, and the rate of all rows."""

    r2: float
    shares: tuple[float, float]
    mean: float

    @classmethod
    def of(cls, r2: Floats, shares: Floats, rates: Floats) -> _TwoGroups:
        """From the figures of both groups."""
        return cls(
            float(r2[0]),
            (float(shares[0]), float(shares[1])),
            float(shares @ rates),
        )

    def rate_interval(self, interval: Interval | None) -> Interval | None:
        """Both ends of the interval of a weighted rate, divided as the rate."""
        if interval is None:
            return None
        low = divide_rate(interval.low, self.mean, self.r2)
        return Interval(low, divide_rate(interval.high, self.mean, self.r2))

    def ratio_interval(self, interval: Interval | None, reference: int) -> Interval | None:
        """Both ends of the interval of a weighted ratio, divided as the ratio; None if the
        reference may be 0.
        """
        if interval is None:
            return None
        low = self._ratio(interval.low, reference)
        high = self._ratio(interval.high, reference)
        if low is None or high is None:
            return None
        return Interval(low, high)

    def _ratio(self, weighted: float, reference: int) -> float | None:
        """The ratio of two rates whose weighted ratio is given, and whose mean is that of all
        rows.
        """
        base = self.mean / (self.shares[1 - reference] * weighted + self.shares[reference])
        divided_base = divide_rate(base, self.mean, self.r2)
        if divided_base > 0:
            return divide_rate(weighted * base, self.mean, self.r2) / divided_base
        return None


def _ratios(
    table: Decisions, rates: Mapping[str, float], two: _TwoGroups | None
) -> dict[str, Measure]:
    """The ratio of each group to the reference of the weighted rates; none if the rate of the
    reference is 0.
    """
    base = 0.0
    if table.reference is not None:
        base = rates.get(table.reference, 0.0)
    if base <= 0:
        return {}
    reference = [rate.group for rate in table.rates].index(str(table.reference))
    return {
        rate.group: Measure(
            rates[rate.group] / base,
            _ratio_interval(rate, table, two, reference),
        )
        for rate in table.rates
        if rate.ratio is not None
    }


def _ratio_interval(
    rate: GroupRates, table: Decisions, two: _TwoGroups | None, reference: int
) -> Interval | None:
    if two is None or rate.group == table.reference:
        return None
    return two.ratio_interval(rate.ratio_interval, reference)


def divided_by(finding: Finding, r2: float) -> Divided:
    """The value and the intervals of a distance, divided by R2 and bounded."""
    return Divided(
        r2,
        divide_distance(finding.value, finding.metric, r2, finding.span),
        divide_interval(finding.interval, finding.metric, r2, finding.span),
        divide_interval(finding.joint_interval, finding.metric, r2, finding.span),
    )


def _mixture_of_rows(compared: GroupPair, by_group: Floats) -> tuple[TwoSamples, Rows]:
    """Both mixtures of rows in memory; ``by_group`` multiplies the weights of each group's
    entries.
    """
    scores = compared.part.scores
    members = compared.problem.members
    units, codes, _ = members_in(compared.problem, compared.part.units, compared.place)
    assert scores.amount is not None
    assert members is not None
    signed = scores.amount[units] * by_group[codes]
    sides = np.maximum(signed, 0.0), np.maximum(-signed, 0.0)
    place = scores.place[units]
    left, right = (
        np.bincount(place, side, len(scores.values)).astype(np.float64) for side in sides
    )
    samples, used = _used_scores(scores.values, left, right)
    rows = len(members.rows.values)
    by_row = [np.bincount(members.row[units], side, rows).astype(np.float64) for side in sides]
    place_of_row = np.zeros(len(members.rows.values), np.int64)
    place_of_row[members.row[units]] = (np.cumsum(used) - 1)[place]
    some = np.flatnonzero(by_row[0] + by_row[1])
    return samples, Rows.single(place_of_row[some], by_row[0][some], by_row[1][some])


def _mixture_of_bins(
    compared: GroupPair, by_group: Floats, products: Products
) -> tuple[TwoSamples, Rows]:
    """Both mixtures of counted rows, from sums by bin."""
    scores = compared.part.scores
    units, codes, present = members_in(compared.problem, compared.part.units, compared.place)
    width = len(scores.values)
    sides = np.zeros((2, width))
    second = np.zeros((2, 2, width))  # sums of products of the weights on the sides
    side_of = (by_group < 0).astype(np.int64)
    factor = np.abs(by_group)
    for group in present:
        cells = units[codes == group]
        sides[side_of[group]] += factor[group] * scores.at(cells)
        for other in present:
            sums = factor[group] * factor[other] * products.at(cells, {other}, width)
            second[side_of[group], side_of[other]] += sums
    samples, used = _used_scores(scores.values, *sides)
    left, right = (side[used] / side.sum() for side in sides)
    totals = sides.sum(1)
    squares = second[:, :, used] / (totals[:, None] * totals)[:, :, None]
    return samples, Rows(
        np.arange(used.sum()),
        left,
        right,
        squares[0, 0],
        squares[1, 1],
        squares[0, 1],
    )


def _used_scores(values: Floats, left: Floats, right: Floats) -> tuple[TwoSamples, Booleans]:
    used = (left > 0) | (right > 0)
    return TwoSamples(
        values[used],
        left[used].astype(np.float64),
        right[used].astype(np.float64),
    ), used


def r2_by_group(sample: AuditSample) -> dict[str, float]:
    """R2 of the probability of each group with rows, among all rows; empty if groups are known
    or misclassified.
    """
    members = sample.problem.members
    overlaps = overlaps_within(sample, np.arange(len(sample.problem)))
    if members is None or overlaps is None:
        return {}
    named = zip(
        members.rows.groups,
        r_squared(overlaps).tolist(),
        overlaps.sum(1),
        strict=True,
    )
    return {group: r2 for group, r2, amount in named if amount > 0}


def r2_of_audits(records: Sequence[AuditRecord]) -> list[Mapping[str, float]]:
    """R2 of each group's probability in each audit; empty if groups are known in all of them."""
    by_audit = [{} if record.proxy is None else record.proxy.r2 for record in records]
    if any(by_audit):
        return by_audit
    return []


def both_ends(value: float, divided: float | None) -> Interval | None:
    """The bracket of the weighted and the divided figure, the lower one first; None if there is
    one figure only.
    """
    if divided is None or divided == value:
        return None
    return Interval(min(value, divided), max(value, divided))


def gap_bracket(finding: Finding, record: AuditRecord) -> Interval | None:
    """Both ends of a distance, as the headline shows them; None if there is one end, or if
    other data decide.
    """
    if record.proxy is None or record.proxy.checked or finding.divided is None:
        return None
    return both_ends(finding.value, finding.divided.value)


def joint_bracket(finding: Finding) -> Interval | None:
    """The lowest and the highest end of both joint intervals of a distance; None unless both
    ends have one.
    """
    weighted = finding.joint_interval
    divided = None
    if finding.divided is not None:
        divided = finding.divided.joint_interval
    if weighted is None or divided is None:
        return None
    return Interval(min(weighted.low, divided.low), max(weighted.high, divided.high))


def ratio_bracket(table: Decisions, record: AuditRecord) -> Interval | None:
    """Both ends of the smallest impact ratio, as the headline shows them."""
    if (
        record.proxy is None
        or record.proxy.checked
        or table.divided is None
        or table.selection_ratio is None
    ):
        return None
    return both_ends(table.selection_ratio, table.divided.selection_ratio)
