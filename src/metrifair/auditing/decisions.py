"""Decisions: the rows selected by a threshold, by the median or by decisions themselves, and the rates by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrifair.auditing.bins import Bins, Refiner
from metrifair.auditing.records import Decisions, SelectedBy
from metrifair.auditing.request import Request
from metrifair.auditing.sample import AuditSample, AuditSet, Members, all_units, members_in, sets_for
from metrifair.errors import DataError, Remedy
from metrifair.figures.selection_rates import HIGHEST, STANDARDS, GroupRates, RatioRule, compare_rates, headline_groups
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.problem.problem import Problem
from metrifair.problem.values import canonical
from metrifair.support.arrays import Floats, Integers
from metrifair.support.checks import shortlist

DEFAULT_THRESHOLD = 0.5  # of probabilities
_ROUNDING = 1e-12  # of sums of weights
_DECILES = range(1, 10)
_DIFFERENCES = {  # largest less smallest rate
    "selection_difference": "selection_rate",
    "true_positive_difference": "true_positive_rate",
    "false_positive_difference": "false_positive_rate",
    "accuracy_difference": "accuracy",
}
_LISTED = 10  # groups in a message
_MOST_REFINEMENTS = 8  # of the bin of the median


class Selection(NamedTuple):
    """The selected rows: the threshold, its source, and the selected amount of each unit."""

    threshold: float
    by: SelectedBy
    amount: NDArray[Any]  # rows, or weight, of each unit
    rules: Mapping[str, RatioRule]  # the reference of impact ratios, by attribute
    between: tuple[float, float] | None = None  # bounds of the median, if counts do not determine it


def threshold_for(
    request: Request, *, decisions: bool, probabilities: bool
) -> tuple[float | Literal["median"], SelectedBy] | None:
    """The threshold of decisions, and its source; None without decisions.

    ``decisions`` is True if the scores are 0 and 1, decisions themselves.

    >>> threshold_for(Request(), decisions=False, probabilities=True)
    (0.5, 'threshold')
    >>> threshold_for(Request(standard="ll144"), decisions=False, probabilities=True)
    ('median', 'median')
    """
    threshold = request.threshold
    if decisions and (threshold == "auto" or (not isinstance(threshold, str | None) and 0 < threshold <= 1)):
        return DEFAULT_THRESHOLD, "decisions"
    if threshold == "auto" and STANDARDS[request.standard or ""].by_median:
        threshold = "median"
    if threshold == "auto":
        threshold = DEFAULT_THRESHOLD if probabilities else None
    if threshold is None and request.standard:
        why = "there is no threshold" if request.threshold is None else "these scores are not probabilities"
        raise DataError(
            f"compares selection rates, and {why}",
            argument="standard",
            received=request.standard,
            remedy=Remedy("threshold", detail=", the lowest score that is selected, or 'median'"),
        )
    return None if threshold is None else (threshold, "median" if threshold == "median" else "threshold")


def number_or_default(threshold: float | str | None) -> float:
    """The threshold that a first pass over the rows uses; a default unless the user passed a number."""
    return DEFAULT_THRESHOLD if threshold is None or isinstance(threshold, str) else threshold


def at_or_above(scores: Any, threshold: float, precision: np.dtype[Any]) -> Any:
    """Mask of the scores at or above the threshold, compared in the precision of the original scores.

    Scores are an array or a column expression. A float32 score of 0.7 is slightly less than 0.7 as a float64, so the
    threshold is rounded as the scores were.

    >>> at_or_above(np.float32([0.6, 0.7]).astype(np.float64), 0.7, np.dtype(np.float32))
    array([False,  True])
    """
    with np.errstate(over="ignore"):  # beyond the largest float16, nothing is selected
        return scores >= float(precision.type(threshold))


def quantile_places(upto: NDArray[Any], share: float = 0.5, total: float | None = None) -> tuple[int, int]:
    """The two places between which a quantile lies; ``upto`` is the number of rows, or the weight, up to each place.

    The median is at the first place, or half way between both.

    >>> quantile_places(np.array([1, 2, 3])), quantile_places(np.array([1, 2, 3, 4])), quantile_places(np.array([1, 4]))
    ((1, 1), (1, 2), (1, 1))
    """
    total = float(upto[-1]) if total is None else total
    target, rounding = share * total, _ROUNDING * total
    return int(np.searchsorted(upto, target - rounding)), int(np.searchsorted(upto, target + rounding, side="right"))


def selection_for(sample: AuditSample, request: Request) -> Selection | None:
    """The selected rows of an audit; None without decisions."""
    if sample.problem.members is not None and not STANDARDS[request.standard or ""].imputed:
        raise DataError(
            "does not permit imputed groups: it requires the categories that people reported",
            argument="standard",
            received=request.standard,
            remedy="pass the reported groups, or another standard",
        )
    if None not in sample.predicted:
        if request.standard:
            raise DataError(
                "needs one score for each row",
                argument="standard",
                received=request.standard,
                remedy="audit one class at a time",
            )
        return None
    exact = sample.binned is None or bool(sample.binned.bins.single.all())
    decisions = exact and sample.predicted[None].are_decisions
    source = threshold_for(request, decisions=decisions, probabilities=sample.probabilities)
    if source is None:
        return None
    (threshold, by), low, between = source, request.favorable == "low", None
    if threshold == "median":
        threshold, amount, between = _beyond_median(sample, low=low)
    else:
        amount = sample.amount - sample.selected if low else sample.selected
    return Selection(threshold, by, amount, rules_for(sample, request), between)


def _beyond_median(sample: AuditSample, *, low: bool) -> tuple[float, Floats, tuple[float, float] | None]:
    """The median, the amount of each unit above it (``low``: below), and its bounds if bins do not determine it."""
    if sample.binned is not None:
        threshold, amount, between = median_cut(sample.binned.bins, sample.binned.refiner, low=low)
        return threshold, np.clip(amount, 0, sample.amount), between
    scores = sample.predicted[None]
    first, last = quantile_places(np.cumsum(scores.at(np.arange(scores.units))))
    selected = scores.place < last if low else scores.place > first
    return float(scores.values[first] / 2 + scores.values[last] / 2), selected * sample.amount, None


def median_cut(
    base: Bins, refiner: Refiner | None, *, low: bool = False
) -> tuple[float, NDArray[Any], tuple[float, float] | None]:
    """The median, the amount of each cell above it (``low``: below), and its bounds if counts do not determine it.

    In that case, the nearer end of its bin replaces the median.
    """
    bins, total = base, base.before[-1] + base.counts[-1]
    for refinements in range(_MOST_REFINEMENTS + 1):
        upto = bins.before + bins.counts
        first, last = quantile_places(upto.sum(1), total=float(total.sum()))
        if first != last or bins.single[first]:
            return (
                float(bins.high[first] / 2 + bins.low[last] / 2),
                bins.before[last] if low else total - upto[first],
                None,
            )
        if refiner is None or refinements == _MOST_REFINEMENTS:
            break
        bins = refiner.recount(bins[[first]], refiner.max_bins)
    ends = float(bins.low[first]), float(bins.high[first])
    at_top = upto[first].sum() - total.sum() / 2 <= total.sum() / 2 - bins.before[first].sum()
    below = upto[first] if at_top else bins.before[first]
    return ends[int(at_top)], below if low else total - below, ends


def problem_for(sample: AuditSample, standard: str | None) -> Problem:
    """The rows by the attributes whose rates a standard requires."""
    return sample.crossed if sample.crossed is not None and STANDARDS[standard or ""].crossed else sample.problem


def rules_for(sample: AuditSample, request: Request) -> dict[str, RatioRule]:
    """The reference of impact ratios by attribute; a DataError if it is none of the groups."""
    attributes = problem_for(sample, request.standard).scheme.attributes
    reference, rules = request.reference, {}
    if isinstance(reference, Mapping) and (strange := set(reference) - {attribute.name for attribute in attributes}):
        names = [attribute.name for attribute in attributes]
        raise DataError(
            f"names {min(strange)!r}, which is none of {names}",
            argument="reference",
            remedy="name a group of each attribute",
        )
    for attribute in attributes:
        category = reference.get(attribute.name, HIGHEST) if isinstance(reference, Mapping) else reference
        names = [str(group) for group in attribute.groups]
        groups = f"one of the groups of {attribute.name}: {shortlist(list(map(repr, names)), _LISTED)}"
        if category == HIGHEST and STANDARDS[request.standard or ""].named:
            raise DataError(
                "compares with a reference group",
                argument="standard",
                received=request.standard,
                remedy=Remedy("reference", detail=f", {groups}"),
            )
        same = [name for name, group in zip(names, attribute.groups, strict=True) if category in (group, name)]
        if category != HIGHEST and not same:
            raise DataError(
                f"must be 'highest' or {groups}",
                argument="reference",
                received=category,
                remedy="of several attributes, name one for each",
            )
        name = HIGHEST if category == HIGHEST else same[0]
        rules[attribute.name] = RatioRule(name, request.min_group_share, request.min_group_size, request.confidence)
    return rules


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
    sample: AuditSample, selection: Selection, request: Request, audit_set: AuditSet, place: int
) -> Decisions | None:
    """The decisions of one attribute within a set; None with fewer than two groups."""
    problem, inside = problem_for(sample, request.standard), audit_set.units
    attribute, members = problem.scheme.attributes[place], members_in(problem, inside, place)
    if len(members.present) < 2:
        return None
    counts, sizes, squares = _group_counts(sample, selection, problem, members)
    names = [str(attribute.groups[group]) for group in members.present]
    rule, rows = selection.rules[attribute.name], sample.size(inside)
    table = compare_rates(
        [_rates(*group) for group in zip(names, sizes.tolist(), counts, strict=True)],
        counts.sum(1),
        all_rows=rows,
        rule=rule,
        squares=squares,
        weighted=sample.weight is not None,
    )
    rates: Sequence[GroupRates] = table.rates
    if STANDARDS[request.standard or ""].scores:
        groups = [members.units[members.codes == group] for group in members.present]
        rates = _with_scores(rates, sample, inside, groups, rule)
    compared = headline_groups(rates, [rate.few for rate in rates])
    missing = inside[problem.groups[inside, place] < 0] if len(members.units) < len(inside) else inside[:0]
    differences: dict[str, Any] = {
        name: _range([getattr(rate, field) for rate in compared]) for name, field in _DIFFERENCES.items()
    }
    return Decisions(
        attribute.name,
        audit_set.within,
        selection.threshold,
        rates,
        selection_ratio=table.ratio,
        selection_ratio_interval=table.interval,
        **differences,
        reference=table.reference,
        unknown=_missing_group(sample, selection, missing, rows),
        selected_by=selection.by,
        favorable=request.favorable,
        favorable_decision=canonical(request.favorable_decision),
        standard=request.standard or "",
        conditions=audit_set.conditions,
    )


def _group_counts(
    sample: AuditSample, selection: Selection, problem: Problem, members: Members
) -> tuple[Floats, NDArray[Any], NDArray[Any] | None]:
    """Weight by group, label and decision, (groups, labels, 2); rows of each group; and sums of squared weights.

    Squares are None without weights, or if only sums of weights were counted.
    """
    units, codes, present = members
    positive = problem.is_positive if len(problem.scheme.classes) <= 2 else None
    shape = max(present) + 1, 1 if positive is None else 2
    index = slice(None) if len(units) == len(problem) else units  # all units need no copy
    cell = codes if positive is None else codes * 2 + positive[index]
    rows, weight = (None if part is None else part[index] for part in (sample.rows, sample.weight))
    total, selected = (
        np.bincount(cell, amount, shape[0] * shape[1]).reshape(shape)
        for amount in (rows if weight is None else weight, selection.amount[index])
    )
    counts = np.stack([total - selected, selected], -1).astype(np.float64)[present]
    squares = None
    if weight is not None and sample.binned is None:
        squares = np.bincount(codes, weight**2, shape[0])[present]
    elif weight is not None and sample.has_squares:
        squares = np.array([sample.squares_at(units[codes == code], code).sum() for code in present])
    return counts, np.rint(np.bincount(codes, rows, shape[0])[present]), squares


def _rates(name: str, size: float, table: Floats) -> GroupRates:
    """The rates of a group, from the weight by label and decision, (labels, 2)."""
    selected = float(table[:, 1].sum() / table.sum())
    if len(table) == 1:
        return GroupRates(name, int(size), selected)
    accuracy = float((table[0, 0] + table[1, 1]) / table.sum())
    false_positive, true_positive = (float(row[1] / row.sum()) if row.sum() > 0 else None for row in table)
    return GroupRates(name, int(size), selected, accuracy, true_positive, false_positive)


def _missing_group(sample: AuditSample, selection: Selection, units: Integers, rows: int) -> GroupRates | None:
    """The rates of rows with a missing group, which are in no ratio."""
    if not len(units):
        return None
    size, selected = sample.size(units), float(selection.amount[units].sum())
    total = size if sample.weight is None else float(sample.weight[units].sum())
    row_count = None if sample.weight is not None else int(selected)
    return GroupRates(
        "unknown", size, selected / total, selected=row_count, share=size / rows, left_out="unknown_group"
    )


def _with_scores(
    rates: Sequence[GroupRates], sample: AuditSample, inside: Integers, groups: Sequence[Integers], rule: RatioRule
) -> list[GroupRates]:
    """Add the mean score of each group less the reference's, and the ratio of rates beyond each decile of all scores.

    Scores of binned rows are the upper ends of their bins.
    """
    names, scores = [rate.group for rate in rates], sample.predicted[None]
    if rule.reference not in names:
        return list(rates)
    at, pooled = names.index(rule.reference), scores.at(inside).astype(np.float64)
    center = float(scores.values @ pooled / pooled.sum())
    spread = float(np.sqrt((scores.values - center) ** 2 @ pooled / pooled.sum()))
    cuts = [quantile_places(np.cumsum(pooled), decile / 10) for decile in _DECILES]
    means, shares = [], []  # of each group; beyond each decile
    for amounts in (scores.at(units).astype(np.float64) for units in groups):
        upto = np.append(0.0, np.cumsum(amounts)) / amounts.sum()
        means.append(float((scores.values - center) @ amounts / amounts.sum()))
        shares.append([upto[last] if sample.favorable == "low" else 1 - upto[first + 1] for first, last in cuts])

    def ratios(beyond: Sequence[float]) -> list[float | None]:
        pairs = zip(beyond, shares[at], strict=True)
        return [None if reference <= _ROUNDING else float(share / reference) for share, reference in pairs]

    return [
        replace(
            rate,
            mean_difference=None if spread == 0 or rates[at].left_out else (mean - means[at]) / spread,
            decile_ratios=() if rate.left_out else ratios(beyond),
        )
        for rate, mean, beyond in zip(rates, means, shares, strict=True)
    ]


def _range(rates: Sequence[float | None]) -> float | None:
    present = [rate for rate in rates if rate is not None]
    return max(present) - min(present) if present else None
