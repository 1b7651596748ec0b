"""Decisions: the rates of the selected rows by group, their differences and ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.measure.parts import (
    AuditSet,
    Members,
    all_units,
    members_in,
    sets_for,
)
from metrifair.auditing.measure.r2_correction import Attenuation
from metrifair.auditing.measure.reference_groups import problem_for
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.measure.selection import (
    SUM_ROUNDING,
    Selection,
    quantile_places,
)
from metrifair.auditing.records import Decisions
from metrifair.auditing.request import Request
from metrifair.figures.clusters import (
    count_clusters,
    share_correlations,
    share_size,
)
from metrifair.figures.selection_rates import (
    STANDARDS,
    ClusteredRates,
    ComparedRates,
    GroupRates,
    RatioRule,
    compare_rates,
    headline_groups,
)
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.problem.problem import Problem
from metrifair.problem.values import canonical
from metrifair.support.arrays import Booleans, Floats, Integers, sums_upto
from metrifair.support.checks import rows_or_none

_DECILES = range(1, 10)
_DIFFERENCES = {  # largest less smallest rate
    "selection_difference": "selection_rate",
    "true_positive_difference": "true_positive_rate",
    "false_positive_difference": "false_positive_rate",
    "accuracy_difference": "accuracy",
}


def decision_tables(sample: AuditSample, selection: Selection, request: Request) -> list[Decisions]:
    """The decisions by attribute within each stratum; for a standard, also those of all rows."""
    problem = problem_for(sample, request.standard)
    sets = sets_for(STATISTICAL_PARITY, problem)
    if request.standard and problem.strata is not None:
        sets = [all_units(problem), *sets]
    tables = [
        _decisions(sample, selection, request, audit_set, place)
        for audit_set in sets
        for place in range(len(problem.scheme.attributes))
    ]
    return [table for table in tables if table is not None]


def _decisions(
    sample: AuditSample,
    selection: Selection,
    request: Request,
    audit_set: AuditSet,
    place: int,
) -> Decisions | None:
    """The decisions of one attribute within a set; None with fewer than two groups.

    A standard counts groups of unknown name with missing groups; other tables show their rates
    without a ratio.
    """
    problem = problem_for(sample, request.standard)
    inside = sample.units.counted_among(audit_set.units, place)
    attribute = problem.scheme.attributes[place]
    members = members_in(problem, inside, place)
    if len(members.present) < 2:
        return None
    unknown = sample.unknown_names[attribute.name]
    has_group = len(members.units)
    if request.standard:
        members = _with_known_names(members, unknown)
    known = [group for group in members.present if not unknown[group]]
    if not members.present:
        return None
    rows = sample.units.size(inside)
    rule = selection.rules[attribute.name]
    table = _rate_table(sample, selection, problem, members, rule, place=place, rows=rows)
    rates: Sequence[GroupRates] = table.rates
    if STANDARDS[request.standard or ""].scores:
        groups = [members.units[members.codes == group] for group in members.present]
        rates = _with_scores(rates, sample, inside, groups, rule)
    known_rates = [rate for rate in rates if rate.left_out != "unknown_name"]
    compared: Sequence[GroupRates] = []
    ratio = None
    ratio_interval = None
    if len(known) > 1:
        compared = headline_groups(known_rates, [rate.few for rate in known_rates])
        ratio = table.ratio
        ratio_interval = table.interval
    missing = inside[:0]
    if len(members.units) < len(inside):
        missing = np.setdiff1d(inside, members.units)
    has_names = len(members.units) < has_group
    unknown_rates = _missing_group(sample, selection, missing, rows, has_names=has_names)
    differences: dict[str, Any] = {
        name: _range([getattr(rate, field) for rate in compared])
        for name, field in _DIFFERENCES.items()
    }
    decisions = Decisions(
        attribute.name,
        audit_set.within,
        selection.threshold,
        rates,
        selection_ratio=ratio,
        selection_ratio_interval=ratio_interval,
        **differences,
        reference=table.reference,
        unknown=unknown_rates,
        selected_by=selection.by,
        favorable=request.favorable,
        favorable_decision=canonical(request.favorable_decision),
        standard=request.standard or "",
        conditions=audit_set.conditions,
    )
    attenuation = Attenuation.within(sample, inside)
    if attenuation is None:
        return decisions
    return replace(decisions, divided=attenuation.divided_rates(decisions, members.present))


def _rate_table(
    sample: AuditSample,
    selection: Selection,
    problem: Problem,
    members: Members,
    rule: RatioRule,
    *,
    place: int,
    rows: int,
) -> ComparedRates:
    """The rates of the groups of an attribute, and the figures of the whole table."""
    counts, sizes, squares = _group_counts(sample, selection, problem, members)
    groups = problem.scheme.attributes[place].groups
    names = [str(groups[group]) for group in members.present]
    return compare_rates(
        [_rates(*group) for group in zip(names, sizes.tolist(), counts, strict=True)],
        counts.sum(1),
        all_rows=rows,
        rule=rule,
        squares=squares,
        weighted=sample.units.weight is not None,
        clustered=_clustered_rates(sample, selection, problem, members),
    )


def _with_known_names(members: Members, unknown: Booleans) -> Members:
    """The members of groups whose name does not say that they are not known."""
    if not unknown[members.present].any():
        return members
    is_known = ~unknown[members.codes]
    return Members(
        members.units[is_known],
        members.codes[is_known],
        [at for at in members.present if not unknown[at]],
    )


def _group_counts(
    sample: AuditSample,
    selection: Selection,
    problem: Problem,
    members: Members,
) -> tuple[Floats, NDArray[Any], NDArray[Any] | None]:
    """Weight by group, label and decision, (groups, labels, 2); rows of each group; and sums of
    squared weights.

    Squares are None without weights, or if only sums of weights were counted.
    """
    units, codes, present = members
    positive = None
    if len(problem.scheme.classes) <= 2:
        positive = problem.is_positive
    shape = max(present) + 1, 1 if positive is None else 2
    index = slice(None) if len(units) == len(problem) else units  # all units need no copy
    cell = codes
    if positive is not None:
        cell = codes * 2 + positive[index]
    rows, weight = (rows_or_none(part, index) for part in (sample.units.rows, sample.units.weight))
    total, selected = (
        np.bincount(cell, amount, shape[0] * shape[1]).reshape(shape)
        for amount in (
            rows if weight is None else weight,
            selection.amount[index],
        )
    )
    counts = np.stack([total - selected, selected], -1).astype(np.float64)[present]
    squares = None
    if weight is not None and sample.scores.binned is None:
        squares = np.bincount(codes, weight**2, shape[0])[present]
    elif weight is not None and sample.has_squares:
        squares = np.array(
            [sample.squares_at(units[codes == code], code).sum() for code in present]
        )
    return counts, np.rint(np.bincount(codes, rows, shape[0])[present]), squares


def _clustered_rates(
    sample: AuditSample,
    selection: Selection,
    problem: Problem,
    members: Members,
) -> ClusteredRates | None:
    """What the rates of the groups are worth; None if rows are independent."""
    if problem.clusters is None:
        return None
    units, codes, present = members
    clusters = problem.clusters[units]
    weight = sample.units.amount[units]
    selected = selection.amount[units] > 0
    group = np.searchsorted(present, codes)
    inside = [group == place for place in range(len(present))]
    return ClusteredRates(
        [count_clusters(clusters[rows]) for rows in inside],
        np.array([share_size(selected[rows], weight[rows], clusters[rows]) for rows in inside]),
        share_correlations(selected, weight, group, clusters),
    )


def _rates(name: str, size: float, table: Floats) -> GroupRates:
    """The rates of a group, from the weight by label and decision, (labels, 2)."""
    selected = float(table[:, 1].sum() / table.sum())
    if len(table) == 1:
        return GroupRates(name, int(size), selected)
    accuracy = float((table[0, 0] + table[1, 1]) / table.sum())
    false_positive, true_positive = (
        float(row[1] / row.sum()) if row.sum() > 0 else None for row in table
    )
    return GroupRates(name, int(size), selected, accuracy, true_positive, false_positive)


def _missing_group(
    sample: AuditSample,
    selection: Selection,
    units: Integers,
    rows: int,
    *,
    has_names: bool,
) -> GroupRates | None:
    """The rates of rows whose group is missing, or (``has_names``) has an unknown name.

    They are in no ratio.
    """
    if not len(units):
        return None
    size = sample.units.size(units)
    selected = float(selection.amount[units].sum())
    weight = sample.units.weight
    total = float(size)
    count = None
    if weight is None:
        count = int(selected)
    else:
        total = float(weight[units].sum())
    return GroupRates(
        "unknown",
        size,
        selected / total,
        selected=count,
        share=size / rows,
        left_out="missing_or_unknown_name" if has_names else "unknown_group",
    )


def _with_scores(
    rates: Sequence[GroupRates],
    sample: AuditSample,
    inside: Integers,
    groups: Sequence[Integers],
    rule: RatioRule,
) -> list[GroupRates]:
    """Add the mean score of each group less the reference's, and the ratio of rates beyond each
    decile of all scores.

    Scores of binned rows are the upper ends of their bins.
    """
    names = [rate.group for rate in rates]
    scores = sample.scores.by_class[None]
    if rule.reference not in names:
        return list(rates)
    at = names.index(rule.reference)
    pooled = scores.at(inside).astype(np.float64)
    center = float(scores.values @ pooled / pooled.sum())
    spread = float(np.sqrt((scores.values - center) ** 2 @ pooled / pooled.sum()))
    cuts = [quantile_places(np.cumsum(pooled), decile / 10) for decile in _DECILES]
    first_places, last_places = np.array(cuts).T
    # of each group; beyond each decile
    means = []
    shares = []
    for units in groups:
        amounts = scores.at(units).astype(np.float64)
        upto = sums_upto(amounts) / amounts.sum()
        means.append(float((scores.values - center) @ amounts / amounts.sum()))
        beyond = 1 - upto[first_places + 1]
        if sample.scores.favorable == "low":
            beyond = upto[last_places]
        shares.append(beyond.tolist())

    def ratios(beyond: Sequence[float]) -> list[float | None]:
        pairs = zip(beyond, shares[at], strict=True)
        return [
            None if reference <= SUM_ROUNDING else float(share / reference)
            for share, reference in pairs
        ]

    with_scores = []
    for rate, mean, beyond in zip(rates, means, shares, strict=True):
        difference = None
        if spread != 0 and not rates[at].left_out:
            difference = (mean - means[at]) / spread
        deciles: Sequence[float | None] = ()
        if not rate.left_out:
            deciles = ratios(beyond)
        with_scores.append(replace(rate, mean_difference=difference, decile_ratios=deciles))
    return with_scores


def _range(rates: Sequence[float | None]) -> float | None:
    present = [rate for rate in rates if rate is not None]
    if present:
        return max(present) - min(present)
    return None
