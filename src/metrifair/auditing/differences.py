"""Differences of the figures of two audits: intervals, p-values, verdicts.

A figure and its interval are all it takes. Half widths of intervals add up as errors do, less what both have in
common: of rows that are at hand, the correlation of two distances is that of their witness utilities.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, compress
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from metrifair.auditing.by_group import SMALLEST, reliability_bin
from metrifair.auditing.decisions import are_decisions, selection_of
from metrifair.auditing.distribution import Floats, Integers, utility_of
from metrifair.auditing.records import AuditRecord, Difference, Verdict
from metrifair.auditing.sample import AuditSample, Compared, compared_in, members_of, parts_of, sets_of
from metrifair.auditing.source import AuditedRows, AuditResult
from metrifair.errors import DataError
from metrifair.figures.intervals import Interval
from metrifair.metrics.registry import METRICS, facts
from metrifair.problem.criteria import STATISTICAL_PARITY
from metrifair.problem.problem import Problem

BY_GROUP = "by group"
"""Where a comparison lists figures of one group, beside the names of criteria."""

_BY_GROUP = {"auc": True, "accuracy": True, "log_loss": False, "calibration_error": False}  # more is better

Key = tuple[str, str, str, tuple[str, ...], str]
"""What a figure is about: attribute, criterion, set, groups and metric."""


class Figure(NamedTuple):
    """A figure of an audit that has its counterpart in others."""

    attribute: str
    criterion: str
    within: str
    groups: tuple[str, ...]
    metric: str
    value: float
    interval: Interval | None
    larger_is_better: bool = False

    @property
    def key(self) -> Key:
        """What it is about."""
        return self.attribute, self.criterion, self.within, self.groups, self.metric


def meant(name: str) -> str:
    """A name by which values match that are equal: 1, 1.0 and True are one, whichever of them a file has.

    >>> meant("1.0"), meant("y = 1.0 and age = 0.5"), meant("True"), meant("v1.0.2")
    ('1', 'y = 1 and age = 0.5', '1', 'v1.0.2')
    """
    return {"True": "1", "False": "0"}.get(name, re.sub(r"(?<![\w.])(-?\d+)\.0(?![\w.])", r"\1", name))


def same_names(mine: Collection[str], theirs: Collection[str]) -> dict[str, str]:
    """Of names of another audit those of this one: equal ones, else those alone in what they mean, on both sides.

    >>> same_names(["1", "2", "b"], ["1.0", "2", "c"]), same_names(["1", "True"], ["1", "1.0"])
    ({'2': '2', '1.0': '1'}, {'1': '1'})
    """
    alone = []
    for names in (mine, theirs):
        times = Counter(map(meant, names))
        alone.append({meant(name): name for name in names if times[meant(name)] == 1})
    equal = {name: name for name in theirs if name in mine}
    return equal | {name: alone[0][meaning] for meaning, name in alone[1].items() if meaning in alone[0]}


class Counterpart(NamedTuple):
    """The same figure in another audit, where 10 and 2 may be in another order: distances have no direction."""

    key: Key
    turned: bool  # whether groups are


def counterparts(mine: Mapping[Key, Figure], theirs: Mapping[Key, Figure]) -> dict[Key, Counterpart]:
    """Which figures of two audits are about the same, however either spells its groups."""
    attributes = same_names({key[0] for key in mine}, {key[0] for key in theirs})
    sets = same_names({key[2] for key in mine}, {key[2] for key in theirs})
    own, others = defaultdict[str | None, set[str]](set), defaultdict[str | None, set[str]](set)
    for key in mine:
        own[key[0]].update(key[3])
    for key in theirs:
        others[attributes.get(key[0])].update(key[3])
    groups = {name: same_names(own[name], others[name]) for name in [*own, *others]}
    found: dict[Any, Counterpart] = {}
    for key in theirs:
        attribute = attributes.get(key[0])
        names = tuple(groups[attribute].get(group) for group in key[3])
        for turned in (True, False):
            here = attribute, key[1], sets.get(key[2]), names[::-1] if turned else names, key[4]
            found[here] = Counterpart(key, turned)
    return {key: found[key] for key in mine if key in found}


def figures_of(record: AuditRecord) -> dict[Key, Figure]:
    """By what they are about; the cut of a number may be another one in each audit."""
    found: dict[Key, Figure] = {}
    for one in record.findings:
        place = one.attribute, one.criterion, one.within
        key = *place, () if one.cuts else one.groups, one.metric
        found[key] = Figure(*place, one.groups, one.metric, one.value, one.interval)
    for rates in record.decisions:
        if rates.selection_ratio is not None:
            where = rates.attribute, "decisions", rates.within
            ratio = Figure(*where, (), "selection_ratio", rates.selection_ratio, rates.selection_ratio_interval, True)
            found[ratio.key] = ratio
    for table in record.by_group:
        for group in table.groups:
            for metric, more_is_better in _BY_GROUP.items():
                own = getattr(group, metric)
                if own is not None:
                    where = table.attribute, BY_GROUP, table.within
                    figure = Figure(*where, (group.group,), metric, own.value, own.interval, more_is_better)
                    found[figure.key] = figure
    return found


_ALIKE = 0.9  # a correlation of errors
# Of the bias of a maximum, by which its interval is wider than its error: 0.24 to 0.26 in four simulated settings.
_SLACK = 0.24


def difference_of(name: str, before: Figure, after: Figure, correlation: float | None, confidence: float) -> Difference:
    """The difference of two figures; ``correlation`` is that of their errors, None: any.

    Errors below and above differ, so those of the difference add up apart (Zou and Donner's MOVER). Where an interval
    begins at 0, what the sample shows beyond 0 may be noise alone, all of it on one side, and is added as it is.
    """
    place = before.attribute, before.criterion, before.within, after.groups, before.metric
    apart = after.value - before.value
    found = Difference(name, *place, before.value, after.value, apart)
    if before.interval is None or after.interval is None:
        return found
    sign = -1.0 if before.larger_is_better else 1.0  # what lacks to 1 is a figure like the others: less is better
    old, new = (_centred(one) for one in (before, after))
    near_zero = old.near_zero or new.near_zero
    shared = -1.0 if correlation is None else min(0.0, correlation) if near_zero else correlation
    if shared > _ALIKE:
        # Errors so alike cancel, their bias and skewness with them; the middles of two resampled intervals differ by
        # chance.
        halves = [(one.below + one.above) / 2 for one in (old, new)]
        values = sign * before.value, sign * after.value
        old, new = (_Centred(value, half, half, False) for value, half in zip(values, halves, strict=True))
    z = float(ndtri((1 + confidence) / 2))
    below = _added(new.below, old.above, -1.0 if new.near_zero else shared)
    above = _added(new.above, old.below, -1.0 if old.near_zero else shared)
    centre = new.value - old.value
    half = below if centre > 0 else above
    p_value = 1.0 if centre == 0 else 0.0 if half == 0 else float(2 * ndtr(-z * abs(centre) / half))
    ends = sorted((sign * (centre - below), sign * (centre + above)))
    interval = Interval(min(ends[0], apart) + 0.0, max(ends[1], apart) + 0.0)  # a zero has no sign
    return replace(found, interval=interval, p_value=p_value, verdict="worse" if centre > 0 else "better")


class _Centred(NamedTuple):
    """The best guess of a figure of which less is better, and how far off it may be below and above."""

    value: float
    below: float
    above: float
    near_zero: bool


def _centred(one: Figure) -> _Centred:
    """The middle of an interval has no bias, which the value of a sample has; squares are guessed as their roots."""
    if one.interval is None:
        raise DataError(f"the {one.metric} has no interval")
    value, low, high = one.value, one.interval.low, one.interval.high
    if one.larger_is_better:
        value, low, high = 1 - value, 1 - high, 1 - low
    if low <= 0 or one.metric not in METRICS:
        return _Centred(value, value - low, high - value, low <= 0)
    squared = facts(one.metric).squared
    middle = ((sqrt(low) + sqrt(high)) / 2) ** 2 if squared else (low + high) / 2
    half = (high - low) / 2
    if facts(one.metric).is_maximum:  # how large its bias is, is not known, and cancels in a difference
        half -= _SLACK * max(0.0, value - middle)
    return _Centred(middle, half, half, False)


def _added(one: float, other: float, correlation: float) -> float:
    return sqrt(max(0.0, one**2 + other**2 - 2 * correlation * one * other))


def judged(differences: Sequence[Difference], confidence: float) -> list[Difference]:
    """With p-values and verdicts that hold for all differences at once (Holm)."""
    p_values = np.array([1.0 if one.p_value is None else one.p_value for one in differences])
    order = np.argsort(p_values, kind="stable")
    tested = sum(one.p_value is not None for one in differences)
    steps = (min(1.0, float(p_values[at]) * max(1, tested - place)) for place, at in enumerate(order))
    jointly = dict(zip(order.tolist(), accumulate(steps, max), strict=True))
    found = []
    for at, one in enumerate(differences):
        if one.p_value is None:
            found.append(one)
            continue
        verdict: Verdict = one.verdict if jointly[at] <= 1 - confidence else "cannot be told apart"
        found.append(replace(one, p_jointly=jointly[at], verdict=verdict))
    return found


def correlations(audits: Sequence[AuditResult], pairs: Mapping[Key, Counterpart]) -> dict[Key, float] | None:
    """Of the errors of each figure in two audits of the same rows; None where they are not, or not at hand."""
    before, after = (one.rows for one in audits)
    if before is None or after is None or not _same_rows(before, after):
        return None
    held = before, after
    orders = [np.arange(len(one.sample.problem)) if one.sample.order is None else one.sample.order for one in held]
    compared: list[dict[tuple[Any, ...], Compared]] = [
        {(one.attribute.name, one.part.criterion, one.part.within, one.groups): one for one in _comparisons(rows)}
        for rows in held
    ]
    told = [
        _told_by_group(rows, order) | _told_of_ratios(rows, one.record, order)
        for rows, one, order in zip(held, audits, orders, strict=True)
    ]
    found: dict[Key, float] = {}
    for key, (other, turned) in pairs.items():
        mine, theirs = compared[0].get(key[:-1]), compared[1].get(other[:-1])
        if key in told[0] and other in told[1]:
            found[key] = _correlation(told[0][key], told[1][other])
        elif mine is not None and theirs is not None:
            if turned and theirs.right is not None:
                theirs = replace(theirs, left=theirs.right, right=theirs.left, sizes=theirs.sizes[::-1])
            together = _correlation_of(key[-1], (mine, theirs), orders)
            found |= {} if together is None else {key: together}
    return found


def _same_rows(before: AuditedRows, after: AuditedRows) -> bool:
    """Whether groups, labels, strata and weights of all rows mean the same, in the order they were handed over."""
    mine, theirs = _columns(before), _columns(after)
    columns = same_names(mine, theirs)
    if not len(columns) == len(mine) == len(theirs):
        return False
    for column, (others, codes) in theirs.items():
        names, own = mine[columns[column]]
        known, place = same_names(names, others), {name: code for code, name in enumerate(names)}
        # Codes of equal groups differ where names sort differently; -1, of the unknown, stands last.
        recode = np.array([*(place[known[name]] if name in known else -2 for name in others), -1])
        if not np.array_equal(own, recode[codes] if others else codes):
            return False
    return True


def _columns(held: AuditedRows) -> dict[str, tuple[list[str], Any]]:
    """What is known of each row, as handed over: names of values, and codes of rows; numbers have no names."""
    problem, order = held.sample.problem, held.sample.order
    scheme, place = problem.scheme, slice(None) if order is None else np.argsort(order)
    sets = scheme.strata
    strata = [] if sets is None else [" and ".join(sorted(compress(sets.names, inside))) for inside in sets.member]
    parts: dict[str, tuple[Sequence[object], Any]] = {
        f"group {one.name}": (one.groups, problem.groups[:, at]) for at, one in enumerate(scheme.attributes)
    }
    others = (scheme.classes, problem.labels), (strata, problem.strata), ((), held.sample.weight)
    parts |= zip(("label", "stratum", "weight"), others, strict=True)
    return {name: ([*map(str, names)], codes[place]) for name, (names, codes) in parts.items() if codes is not None}


def _comparisons(held: AuditedRows) -> list[Compared]:
    parts = parts_of(held.sample, held.request.named_criteria(), held.request.loss)
    return [one for part in parts for one in compared_in(held.sample, part, held.request.contrast)]


class _Told(NamedTuple):
    """What the rows of each side, in one order for all audits, add to a figure, and their weights."""

    utility: Sequence[Floats]
    weight: Sequence[Floats]


def _correlation_of(metric: str, audits: Sequence[Compared], orders: Sequence[Any]) -> float | None:
    """Of the errors of a distance in two audits: that of their witness utilities, over the rows of both."""
    two_samples = [one.two_samples(one.sides)[0] for one in audits]
    utilities = [utility_of(metric, found) for found in two_samples]
    if utilities[0] is None or utilities[1] is None:
        return None
    # A step has no direction of its own; the distance grows with the gap, whoever is ahead.
    signs = [1.0 if one.expected[0] >= one.expected[1] else -1.0 for one in utilities if one is not None]

    def told(audit: int, witness: int) -> _Told:
        """What rows add in one of the audits to the gap that the witness of either sees."""
        counted, utility = audits[audit].part.scores, utilities[witness]
        values = np.zeros(0) if utility is None else utility(counted.values) * signs[witness]
        sides = [units[np.argsort(orders[audit][units], kind="stable")] for units in audits[audit].sides]
        left, right = (values[counted.place[units]] for units in sides)
        weight = [np.ones(len(units)) if counted.amount is None else counted.amount[units] for units in sides]
        return _Told((left, right), weight)

    known = _correlation(told(0, 0), told(1, 1))
    if not facts(metric).is_maximum or signs[0] != signs[1]:
        return known
    # Where the maximum lies is noise too, in which models that are much alike differ. The distances differ by no less
    # than the gaps at the place of the first maximum do, and by no more than those at the second.
    return max(known, (_correlation(told(0, 0), told(1, 0)) + _correlation(told(0, 1), told(1, 1))) / 2)


def _told_by_group(held: AuditedRows, order: Any) -> dict[Key, _Told]:
    """What the rows of each group add to its AUC, accuracy, log loss and calibration error.

    An AUC has two sides: the mean over positive rows of the share of negative ones below them, and the other way round.
    """
    sample = held.sample
    positive, score = sample.outcome, sample.score
    if positive is None or score is None or len(sample.problem.scheme.classes) != 2:
        return {}
    selection = selection_of(sample, held.request)
    told: dict[Key, _Told] = {}
    for within, inside in sets_of(STATISTICAL_PARITY, sample.problem):
        for place, attribute in enumerate(sample.problem.scheme.attributes):
            for code, own, weight in _groups_of(sample, sample.problem, (inside, place), order):
                where = attribute.name, BY_GROUP, within, (str(attribute.groups[code]),)
                is_positive, scores = positive[own] == 1, score[own]
                if 0 < is_positive.sum() < len(own):
                    weights = weight[is_positive], weight[~is_positive]
                    below = _share_below(scores[is_positive], scores[~is_positive], weights[1])
                    above = 1 - _share_below(scores[~is_positive], scores[is_positive], weights[0])
                    told[*where, "auc"] = _Told((below, above), weights)
                if selection is not None:
                    chosen = selection.amount[own] > 0
                    right = chosen == (is_positive == (sample.favourable == "high"))
                    told[*where, "accuracy"] = _Told([right.astype(np.float64)], [weight])
                if sample.probabilities and not are_decisions(score):
                    inside_of = np.clip(scores, SMALLEST, 1 - SMALLEST)
                    loss = -np.where(is_positive, np.log(inside_of), np.log1p(-inside_of))
                    told[*where, "log_loss"] = _Told([loss], [weight])
                    # Of each bin, what rows add to its gap, whichever sign that has.
                    bin_of, off = reliability_bin(scores), scores - is_positive
                    signs = np.sign(np.bincount(bin_of, weight * off))
                    told[*where, "calibration_error"] = _Told([signs[bin_of] * off], [weight])
    return told


def _told_of_ratios(held: AuditedRows, record: AuditRecord, order: Any) -> dict[Key, _Told]:
    """What the rows of every group add to the smallest ratio of selection rates: those of the two it is of."""
    sample, selection = held.sample, selection_of(held.sample, held.request)
    problem = sample.rated or sample.problem
    sets = dict(sets_of(STATISTICAL_PARITY, problem))
    places = {attribute.name: place for place, attribute in enumerate(problem.scheme.attributes)}
    told: dict[Key, _Told] = {}
    for table in record.decisions:
        ratio = table.selection_ratio
        if selection is None or ratio is None:
            continue
        inside = sets.get(table.within, np.arange(len(problem)))  # a standard asks for everyone, too
        groups = problem.scheme.attributes[places[table.attribute]].groups
        slopes = {table.reference: -ratio, next(one.group for one in table.rates if one.ratio == ratio): 1.0}
        sides = [
            (slopes.get(str(groups[code]), 0.0) * (selection.amount[own] > 0), weight)
            for code, own, weight in _groups_of(sample, problem, (inside, places[table.attribute]), order)
        ]
        told[table.attribute, "decisions", table.within, (), "selection_ratio"] = _Told(*zip(*sides, strict=True))
    return told


def _groups_of(
    sample: AuditSample, problem: Problem, where: tuple[Integers, int], order: Any
) -> Iterator[tuple[int, Integers, Floats]]:
    """The groups of an attribute, given by its place, inside a set of rows: their rows as handed over, and weights.

    Which group comes first, rows tell, not names: these may sort differently in two audits.
    """
    units, codes, present = members_of(problem, *where)
    groups = [(int(code), units[codes == code]) for code in present]
    for code, units_of in sorted(groups, key=lambda one: order[one[1]].min()):
        own = units_of[np.argsort(order[units_of], kind="stable")]
        yield code, own, np.ones(len(own)) if sample.weight is None else sample.weight[own]


def _share_below(scores: Floats, others: Floats, weight: Floats) -> Floats:
    """The share of the others' weight below each score; what ties counts half."""
    order = np.argsort(others, kind="stable")
    upto = np.append(0.0, np.cumsum(weight[order])) / weight.sum()
    ends = [np.searchsorted(others[order], scores, side=side) for side in ("left", "right")]
    found: Floats = (upto[ends[0]] + upto[ends[1]]) / 2
    return found


def _correlation(mine: _Told, theirs: _Told) -> float:
    moments = np.zeros((2, 2))
    for one, other, weight in zip(mine.utility, theirs.utility, mine.weight, strict=True):
        share = weight / weight.sum()
        apart = np.stack([values - share @ values for values in (one, other)]) * share
        moments += apart @ apart.T
    scale = sqrt(moments[0, 0] * moments[1, 1])
    return 0.0 if scale == 0 else float(np.clip(moments[0, 1] / scale, -1.0, 1.0))
