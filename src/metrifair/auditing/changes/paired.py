"""Correlations between the figures of two audits of the same rows.

To first order, a figure is a sum of the influences of the rows. The errors of two figures are as
correlated as the influences of their common rows. The influences on a distance are the values of
its witness utility.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from metrifair.auditing.audit_record import AuditedRows, AuditWithRows
from metrifair.auditing.measure.group_figures import SMALLEST, reliability_bin
from metrifair.auditing.measure.group_pairs import GroupPair, group_pairs
from metrifair.auditing.measure.parts import members_in, parts_for, sets_for
from metrifair.auditing.measure.plug_in import witness_utility
from metrifair.auditing.measure.reference_groups import problem_for
from metrifair.auditing.measure.sample import AuditSample
from metrifair.auditing.measure.selection import selection_for
from metrifair.auditing.ranking import lowest_rate
from metrifair.auditing.records import (
    BY_GROUP,
    DECISIONS,
    AuditRecord,
    ComparedFigure,
    Names,
)
from metrifair.metrics.registry import facts
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.problem.problem import Problem
from metrifair.problem.values import Value, canonical_values
from metrifair.support.arrays import Floats, Integers, distinct_codes, sums_upto


class _Influences(NamedTuple):
    """The influences of the rows of each side on a figure, in one order for all audits, and the
    rows' weights.

    ``rows`` are the row numbers, or those of their clusters: one may be on several sides.
    """

    values: Sequence[Floats]
    weights: Sequence[Floats]
    rows: Sequence[Integers]


def in_memory(audit: AuditWithRows) -> bool:
    """Whether another audit of the same rows can be paired with this one."""
    return audit.rows is not None and audit.rows.ordered


def correlations(
    before: AuditWithRows,
    after: AuditWithRows,
    figures: Sequence[tuple[ComparedFigure, ComparedFigure]],
) -> dict[Names, float] | None:
    """The correlation of the errors of each figure in two audits, by its names in the first.

    None if the rows of both audits differ or are not in memory.
    """
    rows = [
        audit.rows for audit in (before, after) if audit.rows is not None and audit.rows.ordered
    ]
    if len(rows) < 2 or not _same_rows(*rows):
        return None
    orders = [_order(row.sample) for row in rows]
    comparisons = [_comparisons(row) for row in rows]
    influences = [
        _group_influences(row, order) | _ratio_influences(row, audit.record, order)
        for row, audit, order in zip(rows, (before, after), orders, strict=True)
    ]
    by_name: dict[Names, float] = {}
    for old, new in figures:
        first = comparisons[0].get(old.names[:-1])
        second = comparisons[1].get(new.names[:-1])
        if old.names in influences[0] and new.names in influences[1]:
            by_name[old.names] = _correlation(influences[0][old.names], influences[1][new.names])
        elif first is not None and second is not None:
            if old.group_values != new.group_values and second.right is not None:
                second = replace(
                    second,
                    left=second.right,
                    right=second.left,
                    sizes=second.sizes[::-1],
                )
            correlation = _distance_correlation(old.metric, (first, second), orders)
            if correlation is not None:
                by_name[old.names] = correlation
    return by_name


def _order(sample: AuditSample) -> Integers:
    """The place of each row among those passed in."""
    if sample.units.order is None:
        return np.arange(len(sample.problem))
    return sample.units.order


def _unit_row(problem: Problem, order: Integers) -> Integers:
    """The row of each unit, or its cluster; a row may have several units if groups have
    probabilities.

    Clusters are numbered by their first rows, as they were passed in: alike in all audits of these
    rows.
    """
    if problem.clusters is not None:
        return _clusters_in_order(problem.clusters, order)
    if problem.members is None:
        return order
    return problem.members.row


def _clusters_in_order(clusters: Integers, order: Integers) -> Integers:
    """The clusters of units, numbered by the place of their first row among those passed in."""
    cluster = distinct_codes(clusters)
    first = np.full(int(cluster.max()) + 1, len(cluster))
    np.minimum.at(first, cluster, order)
    return np.asarray(first[cluster])


def _same_rows(before: AuditedRows, after: AuditedRows) -> bool:
    """Whether all rows have the same groups, labels, strata and weights, in the order they were
    passed in.
    """
    if (before.sample.problem.members is None) != (after.sample.problem.members is None):
        return False
    old = _columns(before)
    new = _columns(after)
    if old.keys() != new.keys():
        return False
    for name, (values, codes) in old.items():
        other_values, other_codes = new[name]
        place = {value: code for code, value in enumerate(values)}
        # Codes of equal values differ where they sort differently; -1 is that of missing values,
        # and comes last.
        recode = np.array([*(place.get(value, -2) for value in other_values), -1])
        if other_values:
            other_codes = recode[other_codes]
        if not np.array_equal(codes, other_codes):
            return False
    return True


def _columns(audited: AuditedRows) -> dict[str, tuple[Sequence[Value], Any]]:
    """The columns of all rows, as they were passed in: canonical values, and their codes; of
    numbers, the numbers.
    """
    problem = audited.sample.problem
    order = audited.sample.units.order
    scheme = problem.scheme
    place = slice(None) if order is None else np.argsort(order)
    strata: Sequence[object] = ()
    if scheme.strata is not None:
        strata = scheme.strata.conditions
    columns: dict[str, tuple[Sequence[Value], Any]] = {
        f"group {attribute.name}": (
            canonical_values(attribute.values),
            problem.groups[:, at],
        )
        for at, attribute in enumerate(scheme.attributes)
    }
    columns["label"] = canonical_values(scheme.classes), problem.labels
    columns["stratum"] = canonical_values(strata), problem.strata
    columns["weight"] = (), audited.sample.units.weight
    if problem.clusters is not None:
        columns["cluster"] = (
            (),
            _clusters_in_order(problem.clusters, _order(audited.sample)),
        )
    return {
        name: (values, codes[place])
        for name, (values, codes) in columns.items()
        if codes is not None
    }


def _comparisons(audited: AuditedRows) -> dict[tuple[Any, ...], GroupPair]:
    """The comparisons of an audit, by their names."""
    sample = audited.sample
    request = audited.request
    parts = parts_for(sample, request.named_criteria(), request.loss)
    several = [pair for part in parts for pair in group_pairs(sample, part, request.contrast)]
    return {
        (
            pair.attribute.name,
            pair.part.criterion,
            pair.part.within,
            pair.groups,
        ): pair
        for pair in several
    }


def _distance_correlation(
    metric: str, audits: Sequence[GroupPair], orders: Sequence[Any]
) -> float | None:
    """The correlation of a distance's errors in two audits: that of the values of their witness
    utilities.
    """
    utilities = [
        witness_utility(metric, compared.two_samples(compared.sides)[0]) for compared in audits
    ]
    if utilities[0] is None or utilities[1] is None:
        return None
    # The sign of a step is arbitrary; the distance grows with the gap, whichever group scores
    # higher.
    signs = [
        1.0 if gap.expected[0] >= gap.expected[1] else -1.0 for gap in utilities if gap is not None
    ]

    def influences(audit: int, witness: int) -> _Influences:
        """The influences of an audit's rows on the gap that the witness of either audit shows."""
        scores = audits[audit].part.scores
        utility = utilities[witness]
        values = np.zeros(0)
        if utility is not None:
            values = utility(scores.values) * signs[witness]
        sides = [
            units[np.argsort(orders[audit][units], kind="stable")] for units in audits[audit].sides
        ]
        weights = [
            np.ones(len(units)) if scores.amount is None else scores.amount[units]
            for units in sides
        ]
        unit_row = _unit_row(audits[audit].problem, orders[audit])
        gaps = [
            sign * values[scores.place[units]] for sign, units in zip((1, -1), sides, strict=True)
        ]
        return _Influences(gaps, weights, [unit_row[units] for units in sides])

    correlation = _correlation(influences(0, 0), influences(1, 1))
    if not facts(metric).is_maximum or signs[0] != signs[1]:
        return correlation
    # The place of the maximum is noise too, in which similar models differ. The distances differ by
    # no less than the gaps at the place of the first maximum do, and by no more than those at the
    # second.
    at_first, at_second = (_correlation(influences(0, at), influences(1, at)) for at in (0, 1))
    return max(correlation, (at_first + at_second) / 2)


def _group_influences(audited: AuditedRows, order: Any) -> dict[Names, _Influences]:
    """The influences of each group's rows on its AUC, accuracy, log loss and calibration error.

    An AUC has two sides: the mean over positive rows of the share of negative ones below, and the
    other way round.
    """
    sample = audited.sample
    positive = sample.outcome
    score = sample.scores.single
    if positive is None or score is None or len(sample.problem.scheme.classes) != 2:
        return {}
    selection = selection_for(sample, audited.request)
    influences: dict[Names, _Influences] = {}
    unit_row = _unit_row(sample.problem, order)
    for within, _, inside in sets_for(STATISTICAL_PARITY, sample.problem):
        for place, attribute in enumerate(sample.problem.scheme.attributes):
            for code, rows, weight in _groups(sample, sample.problem, (inside, place), order):
                names = (
                    attribute.name,
                    BY_GROUP,
                    within,
                    (str(attribute.groups[code]),),
                )
                row_numbers = [unit_row[rows]]
                is_positive = positive[rows] == 1
                scores = score[rows]
                if 0 < is_positive.sum() < len(rows):
                    weights = weight[is_positive], weight[~is_positive]
                    below = _share_below(scores[is_positive], scores[~is_positive], weights[1])
                    above = 1 - _share_below(scores[~is_positive], scores[is_positive], weights[0])
                    influences[*names, "auc"] = _Influences(
                        (below, above),
                        weights,
                        (
                            row_numbers[0][is_positive],
                            row_numbers[0][~is_positive],
                        ),
                    )
                if selection is not None:
                    selected = selection.amount[rows] > 0
                    correct = selected == (is_positive == (sample.scores.favorable == "high"))
                    influences[*names, "accuracy"] = _Influences(
                        [correct.astype(np.float64)], [weight], row_numbers
                    )
                if sample.probabilities and not sample.scores.by_class[None].are_decisions:
                    clipped = np.clip(scores, SMALLEST, 1 - SMALLEST)
                    loss = -np.where(is_positive, np.log(clipped), np.log1p(-clipped))
                    influences[*names, "log_loss"] = _Influences([loss], [weight], row_numbers)
                    # The contribution of each row to the absolute gap of its bin.
                    bins = reliability_bin(scores)
                    error = scores - is_positive
                    signs = np.sign(np.bincount(bins, weight * error))
                    influences[*names, "calibration_error"] = _Influences(
                        [signs[bins] * error], [weight], row_numbers
                    )
    return influences


def _ratio_influences(
    audited: AuditedRows, record: AuditRecord, order: Any
) -> dict[Names, _Influences]:
    """The influences of each group's rows on the smallest ratio of selection rates: only two
    groups have any.
    """
    sample = audited.sample
    selection = selection_for(audited.sample, audited.request)
    problem = problem_for(sample, audited.request.standard)
    sets = {
        audit_set.within: audit_set.units for audit_set in sets_for(STATISTICAL_PARITY, problem)
    }
    places = {attribute.name: place for place, attribute in enumerate(problem.scheme.attributes)}
    influences: dict[Names, _Influences] = {}
    for table in record.decisions:
        ratio = table.selection_ratio
        lowest = lowest_rate(table)
        if selection is None or ratio is None or lowest is None:
            continue
        # a standard adds a table of all rows
        inside = sets.get(table.within, np.arange(len(problem)))
        groups = problem.scheme.attributes[places[table.attribute]].groups
        slopes = {table.reference: -ratio, lowest.group: 1.0}
        sides = [
            (
                slopes.get(str(groups[code]), 0.0) * (selection.amount[rows] > 0),
                weight,
                _unit_row(problem, order)[rows],
            )
            for code, rows, weight in _groups(
                sample, problem, (inside, places[table.attribute]), order
            )
        ]
        influences[table.attribute, DECISIONS, table.within, (), "selection_ratio"] = _Influences(
            *zip(*sides, strict=True)
        )
    return influences


def _groups(
    sample: AuditSample,
    problem: Problem,
    where: tuple[Integers, int],
    order: Any,
) -> Iterator[tuple[int, Integers, Floats]]:
    """The groups of the attribute at a place, within a set of rows: code, rows in the order passed
    in, and weights.

    Groups come in the order of their first rows, since their names may sort differently in two
    audits.
    """
    units, codes, present = members_in(problem, *where)
    groups = [(int(code), units[codes == code]) for code in present]
    for code, members in sorted(groups, key=lambda group: order[group[1]].min()):
        rows = members[np.argsort(order[members], kind="stable")]
        yield (
            code,
            rows,
            np.ones(len(rows)) if sample.units.weight is None else sample.units.weight[rows],
        )


def _share_below(scores: Floats, others: Floats, weight: Floats) -> Floats:
    """The share of the others' weight below each score; ties count half."""
    order = np.argsort(others, kind="stable")
    upto = sums_upto(weight[order]) / weight.sum()
    ends = [np.searchsorted(others[order], scores, side=side) for side in ("left", "right")]
    return np.asarray((upto[ends[0]] + upto[ends[1]]) / 2)


def _correlation(first: _Influences, second: _Influences) -> float:
    """The correlation of the errors of two figures: that of the influences of single rows,
    summed over sides.
    """
    totals = np.zeros((2, 1 + max(int(rows.max()) for rows in first.rows)))
    for old, new, weight, rows in zip(
        first.values, second.values, first.weights, first.rows, strict=True
    ):
        share = weight / weight.sum()
        for audit, values in enumerate((old, new)):
            totals[audit] += np.bincount(rows, share * (values - share @ values), totals.shape[1])
    moments = totals @ totals.T
    scale = sqrt(moments[0, 0] * moments[1, 1])
    if scale == 0:
        return 0.0
    return float(np.clip(moments[0, 1] / scale, -1.0, 1.0))
