"""Audits by probabilities of groups: assumptions, estimates, corrections and bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf

import numpy as np

from metrifair.auditing.measure.group_figures import LabeledScores, reliability
from metrifair.auditing.measure.r2_correction import r2_by_group
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.measure.selection import Selection
from metrifair.auditing.records import (
    REST_NAME,
    CorrectionMethod,
    Decisions,
    Finding,
    Measure,
    ProxyEstimate,
    ProxyRecord,
    ReliabilityBin,
)
from metrifair.figures.intervals import FEWEST, Interval
from metrifair.figures.membership_estimates import (
    CELL_ROWS,
    RateBounds,
    SampleEstimate,
    energy_estimate,
    rate_bounds,
    rate_estimate,
)
from metrifair.problem.memberships import Memberships, RowProbabilities
from metrifair.support.arrays import Booleans, Floats
from metrifair.support.checks import rows_or_none


@dataclass(frozen=True, eq=False)
class _ProxyRows:
    """Rows with probabilities of their groups, each once."""

    rows: RowProbabilities
    weight: Floats
    score: Floats | None  # None: probabilities of several classes
    selected: Floats | None  # 1 where a row is selected; None: no decisions

    @classmethod
    def of(
        cls,
        sample: AuditSample,
        members: Memberships,
        selection: Selection | None,
    ) -> _ProxyRows:
        """The rows behind the entries of a sample; each row has at least one entry."""
        row, first = np.unique(members.row, return_index=True)
        present = ~np.isnan(members.rows.values[row, 0])
        row = row[present]
        first = first[present]
        return cls(
            members.rows.take(row),
            np.ldexp(
                sample.units.amount[first] / members.share[first],
                sample.units.exponent,
            ),
            rows_or_none(sample.scores.single, first),
            None if selection is None else selection.amount[first] / sample.units.amount[first],
        )

    @cached_property
    def amounts(self) -> Floats:
        """The weight of each row in each group, (n, groups)."""
        return self.rows.values * self.weight[:, None]

    @cached_property
    def labeled(self) -> Booleans:
        """Rows whose group is known."""
        known = self.rows.known
        if known is None:
            return np.zeros(len(self.weight), np.bool_)
        return known >= 0

    @cached_property
    def known_amounts(self) -> Floats:
        """The weight of each row with a known group in each group, (labeled, groups)."""
        codes = np.zeros(0, np.int64)
        if self.rows.known is not None:
            codes = self.rows.known[self.labeled]
        return np.where(
            codes[:, None] == np.arange(len(self.rows.groups)),
            self.weight[self.labeled, None],
            0.0,
        )

    def side(self, group: str) -> Booleans:
        """Mask of this group among all groups."""
        return np.array([name == group for name in self.rows.groups])

    def corrected(
        self,
        figure: Callable[[Booleans, Floats], SampleEstimate],
        sides: Sequence[Booleans],
    ) -> SampleEstimate | None:
        """A figure corrected by known groups or for errors of observed ones; None if too little is
        known.

        ``figure`` takes some rows and their amounts (rows, groups). With known groups, it is the
        figure of all rows plus an unbiased correction: the change from probabilities to known
        groups on the labeled rows.
        """
        all_rows = np.ones(len(self.weight), np.bool_)
        if self.rows.inverse is not None:
            true_amounts = self.amounts @ self.rows.inverse
            if min(true_amounts[:, side].sum() for side in sides) <= 0:
                return None
            return figure(all_rows, true_amounts)
        fewest = min(
            (int((self.known_amounts[:, side] > 0).sum()) for side in sides),
            default=0,
        )
        if self.rows.known is None or fewest < FEWEST:
            return None
        weighted = figure(self.labeled, self.amounts[self.labeled])
        by_known = figure(self.labeled, self.known_amounts)
        change = by_known + -weighted
        return figure(all_rows, self.amounts) + change.unbiased.of_rows(self.labeled)


def proxy_record(
    sample: AuditSample,
    members: Memberships,
    selection: Selection | None,
    *,
    findings: Sequence[Finding],
    decisions: Sequence[Decisions],
    confidence: float,
) -> ProxyRecord:
    """The assumption, the estimates of all rows and the reliability of the probabilities."""
    proxy = _ProxyRows.of(sample, members, selection)
    rows = proxy.rows
    bounds = _bounds(proxy)
    estimates = [
        *_rates(proxy, decisions, bounds, confidence),
        *_energies(proxy, findings, confidence),
    ]
    corrected = any(estimate.corrected is not None for estimate in estimates)
    by: CorrectionMethod = "confusion"
    if rows.inverse is None:
        by = "known_groups"
    return ProxyRecord(
        rows.name,
        rows.assumption,
        rows.source,
        estimates,
        by if corrected else None,
        int(proxy.labeled.sum()),
        max((bound.cells for bound in bounds.values()), default=0),
        _reliability(proxy, confidence),
        sample.problem.strata is not None,
        r2_by_group(sample),
    )


def _bounds(proxy: _ProxyRows) -> dict[str, RateBounds]:
    """Bounds of the selection rate of each group with a positive probability; none without
    cells, decisions or rows.
    """
    if proxy.rows.cells is None or proxy.selected is None or len(proxy.weight) < CELL_ROWS:
        return {}
    return {
        group: rate_bounds(proxy.selected, probability, proxy.weight, proxy.rows.cells)
        for group, probability in zip(proxy.rows.groups, proxy.rows.values.T, strict=True)
        if probability.any()
    }


def _rates(
    proxy: _ProxyRows,
    decisions: Sequence[Decisions],
    bounds: dict[str, RateBounds],
    confidence: float,
) -> Iterator[ProxyEstimate]:
    """Selection rates, and their ratios to the reference's."""
    table = next((decision for decision in decisions if not decision.conditions), None)
    selected = proxy.selected
    if table is None or selected is None:
        return
    rates = {
        rate.group: proxy.corrected(partial(_rate, selected, side), [side])
        for rate, side in ((rate, proxy.side(rate.group)) for rate in table.rates)
    }
    divided_rates: Mapping[str, Measure] = {}
    divided_ratios: Mapping[str, Measure] = {}
    if table.divided is not None:
        divided_rates = table.divided.rates
        divided_ratios = table.divided.ratios
    for rate in table.rates:
        estimate = ProxyEstimate(
            "selection_rate",
            (rate.group,),
            Measure(rate.selection_rate, rate.interval),
            _measure(rates[rate.group], confidence, maximum=1.0),
            divided_rates.get(rate.group),
        )
        bound = bounds.get(rate.group)
        if bound is not None:
            estimate = replace(
                estimate,
                bounds=Interval(bound.lowest.value, bound.highest.value),
                bounds_interval=bound.interval(confidence),
            )
        yield estimate
    for rate in table.rates:
        if table.reference is None or rate.ratio is None or rate.group == table.reference:
            continue
        above = rates[rate.group]
        below = rates[table.reference]
        ratio = None
        if not (above is None or below is None or below.value <= 0):
            ratio = above.over(below)
        yield ProxyEstimate(
            "selection_ratio",
            (rate.group, table.reference),
            Measure(rate.ratio, rate.ratio_interval),
            _measure(ratio, confidence),
            divided_ratios.get(rate.group),
            *_ratio_bounds(bounds.get(rate.group), bounds.get(table.reference), confidence),
        )


def _ratio_bounds(
    rate: RateBounds | None, base: RateBounds | None, confidence: float
) -> tuple[Interval | None, Interval | None]:
    """The extreme ratios of a rate to a reference; None if the reference may be 0."""
    if rate is None or base is None or base.lowest.value <= 0:
        return None, None
    bounds = Interval(
        rate.lowest.value / base.highest.value,
        rate.highest.value / base.lowest.value,
    )
    if base.lowest.unbiased.value <= 0:
        return bounds, None
    lowest, highest = (
        top.unbiased.over(bottom.unbiased)
        for top, bottom in zip(rate[:2], base[1::-1], strict=True)
    )
    return bounds, Interval(
        max(0.0, lowest.interval(confidence).low),
        highest.interval(confidence).high,
    )


def _energies(
    proxy: _ProxyRows, findings: Sequence[Finding], confidence: float
) -> Iterator[ProxyEstimate]:
    """Energy distances between groups that can be corrected."""
    score = proxy.score
    if score is None:
        return
    for finding in findings:
        if (
            finding.metric != "energy"
            or finding.conditions
            or finding.criterion != "statistical_parity"
        ):
            continue
        left = proxy.side(finding.groups[0])
        right = ~left if finding.groups[1] == REST_NAME else proxy.side(finding.groups[1])
        corrected = proxy.corrected(partial(_energy, score, left, right), [left, right])
        if corrected is not None:
            weighted = Measure(finding.value, finding.interval)
            yield ProxyEstimate(
                "energy",
                finding.groups,
                weighted,
                _measure(corrected, confidence),
                _divided_measure(finding),
            )


def _divided_measure(finding: Finding) -> Measure | None:
    divided = finding.divided
    if divided is None or divided.value is None:
        return None
    return Measure(divided.value, divided.interval)


def _rate(selected: Floats, side: Booleans, rows: Booleans, amounts: Floats) -> SampleEstimate:
    return rate_estimate(selected[rows], amounts[:, side].sum(1))


def _energy(
    score: Floats,
    left: Booleans,
    right: Booleans,
    rows: Booleans,
    amounts: Floats,
) -> SampleEstimate:
    return energy_estimate(score[rows], amounts[:, left].sum(1), amounts[:, right].sum(1))


def _measure(
    estimate: SampleEstimate | None, confidence: float, maximum: float = inf
) -> Measure | None:
    """The figure with its interval; a correction makes neither negative."""
    if estimate is None:
        return None
    interval = estimate.interval(confidence)
    value, low, high = (
        min(max(number, 0.0), maximum) for number in (estimate.value, interval.low, interval.high)
    )
    return Measure(value, Interval(low, high))


def _reliability(proxy: _ProxyRows, confidence: float) -> dict[str, list[ReliabilityBin]]:
    """The reliability curve of each group's probability, by known groups."""
    inside = proxy.labeled
    groups = proxy.rows.groups
    if not inside.any() or proxy.rows.inverse is not None:
        return {}
    curves = {}
    for code, group in enumerate(groups):
        probability = proxy.rows.values[inside, code]
        known = proxy.known_amounts[:, code]
        weight = proxy.weight[inside]
        squares = known**2, (weight - known) ** 2
        curves[group] = reliability(
            LabeledScores(probability, probability, known, weight - known, squares),
            confidence,
        )
    return curves
